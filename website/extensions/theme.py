"""The book's theme: ``website/theme/``, which inherits ``sphinx_book_theme``.

Its ``layout.html`` puts one style sheet and one script on a page, in place of those that the theme
and the extensions ask for. So each of these must be known: it is in the one sheet or script
(``bundles.py``), or no page needs it, or it is the page's own (``page_parts.py``).
"""

import re
from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from website import ROOT
from website.extensions.bundles import IN_TURN, SCRIPTS, SHEETS, UNUSED, plain
from website.extensions.page_parts import FOLDER

NAME = "the_transformer_executed"
FOLDER_OF_THEME = ROOT / "website" / "theme"
LOGO = " ".join((ROOT / "website" / "static" / "logo.svg").read_text(encoding="utf-8").split())
DRAWN = re.sub("^<svg.*?>|</svg>$", "", LOGO)
ICON = "data:image/svg+xml," + quote(LOGO, safe=" /=:")
# What the theme says in each page's head to scripts that are not loaded.
SAID_IN_VAIN = "DOCUMENTATION_OPTIONS."
# What docutils says in the head of each page with a text, and Sphinx's layout on all pages.
VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1" />\n'


def own(files: list, bundled: tuple[str, ...]) -> list:
    """Those of a page's sheets or scripts that only its parts have.

    Raises ExtensionError for one that is neither in the bundle nor left out on purpose: it would
    be lost without a word.
    """
    ours = []
    for file in files:
        name = plain(str(file.filename or "").removeprefix("_static/"))
        if name.startswith(FOLDER):
            ours.append(file)
        elif name and name not in (*bundled, *UNUSED):
            raise ExtensionError(f"{name} is new: SHEETS, SCRIPTS or UNUSED has to name it")
        elif not name and not file.attributes.get("body", "").startswith(SAID_IN_VAIN):
            raise ExtensionError(f"a script in the page is new: {file.attributes.get('body')}")
    return ours


def put_own(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """For ``layout.html``: the sheets and scripts that come at the page's end.

    The logo stands in the page, twice: a file would be one more that the first screen waits for.
    """
    context["own_sheets"] = own(context["css_files"], SHEETS)
    context["own_scripts"] = own(context["script_files"], (*SCRIPTS, *IN_TURN))
    context["logo_drawn"] = DRAWN
    context["favicon_url"] = ICON
    context["metatags"] = context.get("metatags", "").replace(VIEWPORT, "")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_theme(NAME, str(FOLDER_OF_THEME))
    app.connect("html-page-context", put_own, priority=900)  # after all that ask for files
    return {"parallel_read_safe": True, "parallel_write_safe": True}
