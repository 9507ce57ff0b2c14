"""What a page has folded away of its cells lies in a file beside it, and comes after the page.

Half of a chapter's HTML is code in folds that few readers open. A phone on a slow line, and a host
that compresses nothing, made the first line wait for all of it. So a folded cell has a link in its
place, to ``10_decoding.folded.html``. That is a page of its own: for readers without scripts, for
a site that was opened as files, and for a line that breaks. Where scripts run, ``static/folded.js``
fetches it when the page is at rest, and puts each cell back into its fold.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from string import Template

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from website.extensions.page_parts import is_site

WEBSITE = Path(__file__).parents[1]
TEMPLATE = WEBSITE / "templates" / "folded.html"
SCHEME = WEBSITE / "theme" / "scheme.js"  # light or dark, as on the page itself
ENDING = ".folded.html"
FEWEST = 20_000  # letters that a page has to have in folds, or they stay where they are
FOLD = re.compile(
    r'<details class="[^"]*\bhide\b[^"]*">\s*<summary>(?P<title>.*?)</summary>\s*', re.DOTALL
)
EDGE = re.compile(r"<(/?)details\b")
# What runs by itself, or is drawn where it stands, is not moved.
RUNS = re.compile(r"<script\b|<iframe\b|\bdata-figure=")
# A cell's name there is made from what is in it: a page that a browser has kept since it changed is
# never filled with another cell.
STUB = '<p class="book-folded"><a href="{file}#{name}">On a page of its own</a></p>\n'
STUBS = re.compile(r'<p class="book-folded"><a href="[^"#]*#(cell-\w+)">[^<]*</a></p>\n')
CELL = (
    '<section id="{name}">\n<h2>{title}</h2>\n<div class="cell">{inside}</div>'
    "<!-- {name} --></section>\n"
)
CELLS = re.compile(
    r'<section id="(?P<name>cell-\w+)">\n<h2>[^\n]*</h2>\n<div class="cell">(?P<inside>.*?)'
    r"</div><!-- (?P=name) --></section>\n",
    re.DOTALL,
)
# One of 10,000 letters is an explorer, with all its maps; theme/scheme.js has it run.
SCRIPT = re.compile(r"<script>((?:(?!</script>).){10000,})</script>", re.DOTALL)
LATE = '<template class="book-late"><script src="{}"></script></template>'


def beside(page: Path) -> Path:
    """Where the folded cells of a page lie."""
    return page.with_name(page.name.removesuffix(".html") + ENDING)


def is_folded(page: Path) -> bool:
    """Whether a file is not a page, but holds what another has folded away."""
    return page.name.endswith(ENDING)


def folds(page: str) -> Iterator[tuple[int, int, str]]:
    """Where the inside of each folded cell begins and ends, and the fold's title."""
    end = 0
    for fold in FOLD.finditer(page):
        if fold.start() < end:
            continue  # inside of another one
        depth = 1
        for edge in EDGE.finditer(page, fold.end()):
            depth += -1 if edge[1] else 1
            if not depth:
                end = edge.start()
                break
        else:
            raise ExtensionError(f"a fold has no end: {fold[0][:100]}")
        if not RUNS.search(page, fold.end(), end):
            yield fold.end(), end, " ".join(fold["title"].split())


def taken_apart(page: str, file: str) -> tuple[str, str]:
    """A page without its folded cells, and these cells; ``file`` is the one that will have them."""
    found = list(folds(page))
    if sum(end - start for start, end, _ in found) < FEWEST:
        return page, ""
    out, cells, last = [], {}, 0
    for start, end, title in found:
        inside = page[start:end]
        name = f"cell-{hashlib.sha256(inside.encode()).hexdigest()[:10]}"
        cells[name] = CELL.format(name=name, title=title, inside=inside)
        out += [page[last:start], STUB.format(file=file, name=name)]
        last = end
    return "".join([*out, page[last:]]), "".join(cells.values())


def put_together(page: str, cells: str) -> str:
    """The inverse of ``taken_apart``. Raises KeyError for a cell that is not among ``cells``."""
    insides = {cell["name"]: cell["inside"] for cell in CELLS.finditer(cells)}
    return STUBS.sub(lambda stub: insides[stub[1]], page)


def whole(path: Path) -> str:
    """A built page with its folded cells in their places, as a reader's browser will have it."""
    page = path.read_text(encoding="utf-8")
    return put_together(page, beside(path).read_text("utf-8")) if STUBS.search(page) else page


def without_scripts(page: str, path: Path) -> str:
    """A page whose long scripts lie in files beside it, and come once the first screen is there."""
    for old in path.parent.glob(f"{path.stem}.script-*.js"):
        if old.name not in page:
            old.unlink()

    def moved(script: re.Match) -> str:
        name = f"{path.stem}.script-{hashlib.sha256(script[1].encode()).hexdigest()[:8]}.js"
        path.with_name(name).write_text(script[1], encoding="utf-8")
        return LATE.format(name)

    return SCRIPT.sub(moved, page)


def page_of_cells(page: str, path: Path, site: Path, cells: str) -> str:
    """The folded cells of the page at ``path`` as a page, which says where they belong."""
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        page=escape(path.name),
        root=posixpath.relpath(site, path.parent),
        title=escape(unescape(title[1]).partition(" — ")[0]) if title else path.stem,
        scheme=SCHEME.read_text(encoding="utf-8"),
        cells=cells,
    )


def take_cells_out(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html" or not is_site(app.builder):
        return
    for name in app.env.found_docs:
        path = Path(app.builder.get_outfilename(name))
        page = path.read_text(encoding="utf-8") if path.is_file() else ""
        if STUBS.search(page):
            continue  # of an earlier build, and as it was
        rest, cells = taken_apart(page, beside(path).name)
        beside(path).unlink(missing_ok=True)
        if cells:
            beside(path).write_text(
                page_of_cells(page, path, Path(app.outdir), cells), encoding="utf-8"
            )
        if (rest := without_scripts(rest, path)) != page:
            path.write_text(rest, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", take_cells_out, priority=850)  # before the sheets are joined
    return {"parallel_read_safe": True, "parallel_write_safe": True}
