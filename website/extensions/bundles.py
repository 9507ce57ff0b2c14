"""The one style sheet and the one script of the site, and the files around the pages.

The style sheets of the theme and of the book become ``_static/site.css``, without the rules that no
page uses; one of ours that no page uses is an error. A rule for dark mode does not hold on paper,
and one for light mode does: what is printed from a dark page is black on white. Without JavaScript
a page is light.

Last, each page gets the hash of every sheet, script and font that it names, as they are in the end:
no browser shows a new page with an old style.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lxml.html
import rjsmin
import tinycss2
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from website.extensions.lean_pages import lean_page
from website.extensions.lean_styles import Pages, lean
from website.extensions.lean_values import without_unasked
from website.extensions.page_parts import FOLDER

WEBSITE = Path(__file__).parents[1]
OURS = WEBSITE / "static"
SHEETS = (
    "styles/theme.css",
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "copybutton.css",
    "sphinx-design.min.css",
    "icons.css",
    "book.css",
    "cells.css",
    "front.css",
    "lookup.css",
    "print.css",
)
SCRIPTS = (
    "documentation_options.js",
    "doctools.js",
    "folded.js",
    "sphinx_highlight.js",
    "clipboard.min.js",
    "copybutton.js",
    "menus.js",
)
# Those that ask what the page looks like; each runs in a task of its own, so that a touch does not
# wait for all of them.
IN_TURN = (
    "place.js",
    "scripts/sphinx-book-theme.js",
    "scripts/pydata-sphinx-theme.js",
)

UNUSED = (
    *("design-tabs.js", "scripts/fontawesome.js"),
    "scripts/bootstrap.js",  # its menus are ours: theme/page-buttons.html and static/menus.js
    "mystnb.css",  # cells.css says what a cell looks like
)
LEFT_BY_THE_THEME = ("vendor", "scripts/fontawesome.js", "scripts/fontawesome.js.map")
STAMPED = re.compile(
    r'(?P<tag>\b(?:href|src)="[./]*(?P<file>_static/[^"?]+\.(?:css|js|woff2)))[^"]*"'
)
PARSER = lxml.html.HTMLParser(encoding="utf-8")
FONT = re.compile(r'url\("(fonts/[^"]+)"\)')  # as layout.html names those of the first screen
# The words that a search has found are marked on the page that one goes to, in its text, by the
# address and not by what the browser has kept from some search before; and nothing moves down.
MARKS = {
    'localStorage.getItem("sphinx_highlight_terms")\n        || url': '"" || url',
    'document.querySelector("body")': 'document.querySelector("article.bd-article")',
    'document.getElementById("searchbox")': "null",
}
# The theme asks each table and block of code how wide it is and then changes it, one by one, which
# lays the whole page out each time, to let the keyboard scroll it. Ours wrap: only tables and
# formulas scroll, and place.js measures them all at once, when the page is at rest.
TAB_STOPS = {
    'document.querySelectorAll(["pre",".nboutput > .output_area",".cell_output > .output",'
    '".jp-RenderedHTMLCommon",".pst-scrollable-table-container"].join(", ")).forEach('
    "e=>{e.tabIndex=e.scrollWidth>e.clientWidth||e.scrollHeight>e.clientHeight?0:-1})": (
        "bookTabStops()"
    ),
}
# It also asks where the sidebar's marked chapter is, to scroll there: once the page is laid out.
# And it marks the last heading that it saw in the contents; place.js marks what is being read.
PLACES = {
    'const e=document.querySelector("#pst-page-toc-nav");': "const e=null;",
    ',e(function(){if(!document.querySelector(".bd-docs-nav"))return;': (
        ",(window.requestIdleCallback??setTimeout)(function(){"
        'if(!document.querySelector(".bd-docs-nav"))return;'
    ),
}
# What comes into a fold later gets its buttons then: a function does it for a part of the page.
BUTTONS = {
    "const codeCells = document.querySelectorAll(COPYBUTTON_SELECTOR)\n"
    "  codeCells.forEach((codeCell, index) => {\n    const id = codeCellId(index)": (
        "let index = 0\n  window.bookCopyButtons = (part) =>"
        " part.querySelectorAll(COPYBUTTON_SELECTOR).forEach((codeCell) => {\n"
        "    if (codeCell.id.startsWith('codecell')) return\n"
        "    const id = codeCellId(index++)"
    ),
    "clipboardButton(id))\n  })\n": (
        "clipboardButton(id))\n  })\n"
        "  ;(window.requestIdleCallback ?? setTimeout)(() => window.bookCopyButtons(document))\n"
    ),
}


def plain(name: str) -> str:
    """A file's name without the digest that myst-nb puts into its own."""
    return re.sub(r"^(mystnb)\.[0-9a-f]{64}\.", r"\1.", name)


def stamp(path: Path) -> str:
    """Changes with what is in a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8]


def pages_of(folder: Path) -> Iterator[Path]:
    """The site's pages, without the theme's templates, which Sphinx copies, too."""
    return (path for path in folder.rglob("*.html") if path.parent.name != "_static")


def stamp_pages(folder: Path) -> None:
    """Makes each page lean, with a stamp in each address of a sheet and a script."""
    stamps = cache(lambda file: stamp(folder / file))
    for path in pages_of(folder):
        page = STAMPED.sub(
            lambda m: f'{m["tag"]}?v={stamps(m["file"])}"', path.read_text(encoding="utf-8")
        )
        path.write_text(lean_page(page), encoding="utf-8")


def join_sheets(folder: Path, static: Path) -> str:
    """The one style sheet: what of all of them some page of the site in ``folder`` may use."""
    sheets = {plain(p.relative_to(static).as_posix()): p for p in static.rglob("*.css")}
    texts = {name: sheets[name].read_text(encoding="utf-8") for name in SHEETS}
    pages = all_pages(folder, static, "".join(texts.values()))
    out = []
    for name, css in texts.items():
        rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
        out.append(lean(rules, pages, (OURS / name).exists()))
    css = without_unasked("\n".join(out), pages.asked)
    return FONT.sub(lambda font: f'url("{font[1]}?v={stamp(static / font[1])}")', css)


def all_pages(folder: Path, static: Path, sheets: str) -> Pages:
    """What the pages have, and what their scripts may add."""
    pages = Pages(sheets)
    for path in pages_of(folder):
        text = path.read_text(encoding="utf-8")
        pages.add_page(lxml.html.document_fromstring(text.encode(), parser=PARSER), text)
    for name in (*SCRIPTS, *IN_TURN, "search.js"):
        pages.add_script((static / name).read_text(encoding="utf-8"))
    pages.names |= pages.given
    for path in static.glob(f"{FOLDER}*/**/*"):  # which have styles of their own, besides
        if path.suffix in (".js", ".css"):
            pages.add_script(path.read_text(encoding="utf-8"), path.suffix == ".js")
    return pages


def mended(path: Path, changes: dict[str, str]) -> str:
    """A script with each ``old`` replaced. Raises ExtensionError where an ``old`` is missing."""
    script = path.read_text(encoding="utf-8")
    for old, new in changes.items():
        if old not in script and new not in script:
            raise ExtensionError(f"{path.name} has changed: it has no {old}")
        script = script.replace(new, old).replace(old, new)
    return script


def join_scripts(static: Path) -> str:
    """The one script, without comments."""
    changes = {
        "scripts/pydata-sphinx-theme.js": TAB_STOPS | PLACES,
        "sphinx_highlight.js": MARKS,
        "copybutton.js": BUTTONS,
    }
    scripts = []
    for name in (*SCRIPTS, *IN_TURN):
        script = rjsmin.jsmin(mended(static / name, changes.get(name, {})), keep_bang_comments=True)
        scripts.append(f"setTimeout(()=>{{{script}\n}})" if name in IN_TURN else script)
    return "\n;\n".join(scripts)


def none_in_vain(static: Path) -> None:
    """Raises ExtensionError where a file that is left out is there no more."""
    there = {plain(path.relative_to(static).as_posix()) for path in static.rglob("*")}
    if gone := [name for name in (*UNUSED, *LEFT_BY_THE_THEME) if name not in there]:
        raise ExtensionError(f"the theme has changed: there is no _static/{', '.join(gone)}")


def write_files(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    static = folder / "_static"
    none_in_vain(static)
    sheet = join_sheets(folder, static)
    (static / "site.css").write_text(sheet, encoding="utf-8")
    (static / "site.js").write_text(join_scripts(static), encoding="utf-8")
    for name in LEFT_BY_THE_THEME:
        path = static / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    stamp_pages(folder)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_files, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
