"""Links to the book's repository and to the site's own address, once ``_config.yml`` names them.

Until then no button, no picture and no file for search engines leads to a place that is not there.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from website import ROOT

PLACEHOLDER = "https://github.com/your_name/"
OF_THE_SITE = re.compile(r'<meta property="og:(?:url|image)\b.*\n')
LOST = ROOT / "website" / "templates" / "404.html"


def leave_out_the_repository(app: Sphinx, config: Config) -> None:
    options = config.html_theme_options
    if options.get("repository_url", "").startswith(PLACEHOLDER):
        buttons = ("use_repository_button", "use_issues_button", "launch_buttons")
        for name in ("repository_url", *buttons):
            options.pop(name, None)
    config.ogp_site_url = config.html_baseurl


def leave_out_the_site(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    if not app.config.html_baseurl:
        context["metatags"] = OF_THE_SITE.sub("", context.get("metatags", ""))


def write_files(app: Sphinx, exception: Exception | None) -> None:
    """The page for a wrong address, and what search engines ask for first."""
    if exception is not None or app.builder.name != "html":
        return
    out, base = Path(app.outdir), app.config.html_baseurl
    (out / "404.html").write_text(LOST.read_text(encoding="utf-8"), encoding="utf-8")
    where = f"\nSitemap: {base}sitemap.xml\n" if base else ""
    (out / "robots.txt").write_text(f"User-agent: *\nAllow: /\n{where}", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", leave_out_the_repository)
    app.connect("html-page-context", leave_out_the_site, priority=800)  # after opengraph's
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
