"""Links to the book's repository and to the site's own address, once ``_config.yml`` names them.

Until then no button, no picture and no word to search engines leads to a place that is not there,
and what a page says of the repository, in a ``<span class="book-repository">``, is left out.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

PLACEHOLDER = "https://github.com/your_name/"
SITE_TAGS = re.compile(r'<meta property="og:(?:url|image)\b.*\n')


def leave_out_the_repository(app: Sphinx, config: Config) -> None:
    options = config.html_theme_options
    if options.get("repository_url", "").startswith(PLACEHOLDER):
        buttons = ("use_repository_button", "use_issues_button", "launch_buttons")
        for name in ("repository_url", *buttons):
            options.pop(name, None)
    config.ogp_site_url = config.html_baseurl


def leave_out_what_is_said_of_it(app: Sphinx, doctree: nodes.document, page: str) -> None:
    if "repository_url" in app.config.html_theme_options:
        return
    for start in [raw for raw in doctree.findall(nodes.raw) if "book-repository" in raw.astext()]:
        place = start.parent
        first = place.index(start)
        while place.pop(first).astext() != "</span>":
            pass
        while not place.children:
            place.parent.remove(place)
            place = place.parent


def leave_out_the_site(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    if not app.config.html_baseurl:
        context["metatags"] = SITE_TAGS.sub("", context.get("metatags", ""))


def setup(app: Sphinx) -> None:
    app.connect("config-inited", leave_out_the_repository)
    app.connect("doctree-resolved", leave_out_what_is_said_of_it)
    app.connect("html-page-context", leave_out_the_site, priority=800)  # after opengraph's
