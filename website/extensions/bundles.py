"""The one style sheet and the one script of the site, and the files around the pages.

The style sheets of the theme and of the book become ``_static/site.css``, without the rules that no
page uses; one of ours that no page uses is an error. A rule for dark mode does not hold on paper,
and one for light mode does: what is printed from a dark page is black on white. Without JavaScript
a page is light.

Last, each page gets the hash of every sheet and script that it loads, as they are in the end: no
browser shows a new page with an old style.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import lxml.html
import tinycss2
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

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
    "sphinx_highlight.js",
    "clipboard.min.js",
    "copybutton.js",
    "place.js",
    "scripts/sphinx-book-theme.js",
    "scripts/bootstrap.js",
    "scripts/pydata-sphinx-theme.js",
)

UNUSED = (
    *("design-tabs.js", "scripts/fontawesome.js"),
    "mystnb.css",  # cells.css says what a cell looks like
)
LEFT_BY_THE_THEME = ("vendor", "scripts/fontawesome.js", "scripts/fontawesome.js.map")
SCHEME = re.compile(r"""\[data-theme=["']?(dark|light)["']?\]""")
WORDS = re.compile(r"[\w-]+")
STAMPED = re.compile(r'(?P<tag>\b(?:href|src)="[./]*(?P<file>_static/[^"?]+\.(?:css|js)))[^"]*"')
FONT = re.compile(r'url\("(fonts/[^"]+)"\)')
# What Bootstrap's script gives to an element; its other names are of parts that no page has.
BOOTSTRAP = {"show", "fade", "collapsing", "tooltip", "tooltip-inner", "tooltip-arrow", "dropup"}
# The words that a search has found are marked on the page that one goes to, in its text, by the
# address and not by what the browser has kept from some search before; and nothing moves down.
MARKS = {
    'localStorage.getItem("sphinx_highlight_terms")\n        || url': "url",
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
    """Puts its stamp into each address of a sheet and a script, ``site.css?v=…``."""
    stamps = cache(lambda file: stamp(folder / file))
    for path in pages_of(folder):
        page = path.read_text(encoding="utf-8")
        path.write_text(
            STAMPED.sub(lambda m: f'{m["tag"]}?v={stamps(m["file"])}"', page), encoding="utf-8"
        )


def is_used(selector: list, known: set[str], ours: bool) -> bool:
    """Whether each class and id of a selector stands somewhere; what is in () does not count."""
    for before, token in zip([None, *selector], selector, strict=False):
        name = token.value if token.type in ("ident", "hash") else ""
        is_class = token.type == "ident" and before is not None and before == "."
        if is_class and not ours and re.fullmatch("fa[srb]?|fa-.*", name):
            return False  # icons are ours: icons.css
        if (is_class or token.type == "hash") and name not in known:
            return False
    return True


def selectors(prelude: list) -> list[list]:
    parts: list[list] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            parts.append([])
        elif token.type != "comment":
            parts[-1].append(token)
    return parts


def written(kept: list[str], body: str) -> str:
    """A rule; one for dark mode not on paper, and one for light mode also there."""
    dark = [one for one in kept if (found := SCHEME.search(one)) and found[1] == "dark"]
    light = [one for one in kept if (found := SCHEME.search(one)) and found[1] == "light"]
    others = [one for one in kept if one not in dark + light]
    by_day = [SCHEME.sub(":not([data-theme=dark])", one) for one in light]
    on_paper = [SCHEME.sub("[data-theme]", one) for one in light]
    rules = [f"{','.join(others + by_day)}{{{body}}}"] if others + by_day else []
    if dark:
        rules.append(f"@media not print{{{','.join(dark)}{{{body}}}}}")
    if on_paper:
        rules.append(f"@media print{{{','.join(on_paper)}{{{body}}}}}")
    return "\n".join(rules)


def lean(rules: list, known: set[str], ours: bool) -> str:
    """A style sheet without the rules that no page uses."""
    out = []
    for rule in rules:
        if rule.type == "error":
            raise ExtensionError(f"a style sheet cannot be read: {rule.message}")
        if rule.type == "qualified-rule":
            every = selectors(rule.prelude)
            kept = [s for s in every if is_used(s, known, ours)]
            if ours and len(kept) < len(every):
                dead = [tinycss2.serialize(s).strip() for s in every if s not in kept]
                raise ExtensionError(f"no page has {', '.join(dead)} of a style sheet of ours")
            if kept:
                body = [token for token in rule.content if token.type != "comment"]
                texts = [tinycss2.serialize(one).strip() for one in kept]
                out.append(written(texts, " ".join(tinycss2.serialize(body).split())))
        elif rule.at_keyword in ("media", "supports", "container"):
            inner = tinycss2.parse_rule_list(rule.content, True, True)
            if inside := lean(inner, known, ours):
                out.append(f"@{rule.at_keyword} {tinycss2.serialize(rule.prelude)}{{{inside}}}")
        elif rule.at_keyword not in ("import", "charset"):
            text = rule.serialize()
            if "Font Awesome" not in text.replace("\\", ""):
                out.append(text)
    return "\n".join(out)


def join_sheets(static: Path, known: set[str]) -> str:
    sheets = {plain(p.relative_to(static).as_posix()): p for p in static.rglob("*.css")}
    texts = []
    for name in SHEETS:
        css = sheets[name].read_text(encoding="utf-8")
        rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
        texts.append(lean(rules, known, (OURS / name).exists()))
    return FONT.sub(lambda font: f'url("{font[1]}?v={stamp(static / font[1])}")', "\n".join(texts))


def known_names(folder: Path, static: Path) -> set[str]:
    """The classes and ids that a page has, or that a script may give to one."""
    known = set(BOOTSTRAP)
    for path in pages_of(folder):
        page = lxml.html.parse(str(path), lxml.html.HTMLParser(encoding="utf-8"))
        known.update(*(names.split() for names in page.xpath("//@class | //@id")))
    for name in (*SCRIPTS, "search.js"):
        if "bootstrap" not in name:
            known.update(WORDS.findall((static / name).read_text(encoding="utf-8")))
    return known


def mended(path: Path, changes: dict[str, str]) -> str:
    """A script with each ``old`` replaced. Raises ExtensionError where an ``old`` is missing."""
    script = path.read_text(encoding="utf-8")
    for old, new in changes.items():
        if old not in script and new not in script:
            raise ExtensionError(f"{path.name} has changed: it has no {old}")
        script = script.replace(new, old).replace(old, new)
    return script


def join_scripts(static: Path) -> str:
    changes = {"scripts/pydata-sphinx-theme.js": TAB_STOPS, "sphinx_highlight.js": MARKS}
    scripts = (mended(static / name, changes.get(name, {})) for name in SCRIPTS)
    return "\n;\n".join(re.sub(r"^//# sourceMappingURL=.*$", "", s, flags=re.M) for s in scripts)


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
    sheet = join_sheets(static, known_names(folder, static))
    (static / "site.css").write_text(sheet, encoding="utf-8")
    (static / "site.js").write_text(join_scripts(static), encoding="utf-8")
    for name in LEFT_BY_THE_THEME:
        path = static / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    stamp_pages(folder)
    base = app.config.html_baseurl
    (folder / "robots.txt").write_text(f"User-agent: *\nAllow: /\n\nSitemap: {base}sitemap.xml\n")
    lost = (WEBSITE / "templates" / "404.html").read_text(encoding="utf-8")
    (folder / "404.html").write_text(lost.replace("BASE", base), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_files, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
