"""A page for each address that a page of the book once had: it leads to where its text is now.

``old_addresses`` in ``_config.yml`` has them, each with the page that it leads to, both without an
ending. A link that somebody has kept goes on working so.
"""

import posixpath
from html import escape
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# It begins as the site's root does, which says to the checks that it only leads on.
PAGE = (
    '<meta http-equiv="refresh" content="0; url={to}">\n<meta charset="utf-8">\n'
    '<meta name="robots" content="noindex">\n<link rel="icon" href="data:,">\n'
    '<title>{title}</title>\n<p>This page has moved: <a href="{to}">{title}</a></p>\n'
)


def page_for(old: str, new: str, title: str) -> str:
    to = posixpath.relpath(new, posixpath.dirname(old)) + ".html"
    return PAGE.format(to=escape(to), title=escape(title))


def write_pages(app: Sphinx, exception: Exception | None) -> None:
    """Raises ExtensionError for an address that is in use, or that leads to no page."""
    if exception is not None or app.builder.name != "html":
        return
    for old, new in app.config.old_addresses.items():
        if old in app.env.found_docs or new not in app.env.found_docs:
            raise ExtensionError(f"old_addresses: {old} is a page, or {new} is none")
        path = Path(app.outdir) / f"{old}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_for(old, new, app.env.titles[new].astext()), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("old_addresses", {}, "env", types=[dict])
    app.connect("build-finished", write_pages, priority=800)  # over what an older build has left
    return {"parallel_read_safe": True, "parallel_write_safe": True}
