"""What readers search: sections, terms of the glossary and names of the package, as records.

Pagefind makes an index of them in small files, of which a search fetches the few that it needs, and
``theme/search.html`` asks it. A record is a section in its own words, without code, outputs and the
sections inside it; so a hit leads to a place and not to a page, and what is shown of it is prose.
"""

import html
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import lxml.html
from lxml.html import HtmlElement
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

FOLDER = "_static/search"
SEARCHED = "*.html", "chapters/*.html", "appendix/*.html"
# Sphinx's own index and search, which know pages only.
SPHINX_S = "searchindex.js", "_static/searchtools.js", "_static/language_data.js"
ARTICLE = "//article[contains(concat(' ', @class, ' '), ' bd-article ')]"
# Not prose: code, what it prints and draws, and what only helps to find one's way.
NOT_SEARCHED = (
    *("h1", "h2", "h3", "h4", "script", "style", "section", "nav", "svg", "img", "summary"),
    *(".headerlink", ".cell_input", ".output", ".book-folded", ".book-head", ".py", ".glossary"),
)
# What a formula's parts are called where it is one line of text, before which of its children.
IN_A_LINE = {"msqrt": "√", "msub": " _", "msup": " ^", "msubsup": " _^", "mfrac": " /"}
# Pagefind's own user interfaces, of which the search page needs none.
NOT_NEEDED = "*-ui.*", "*-highlight.js", "wasm.unknown.pagefind"


class Record(NamedTuple):
    """``where`` is the page that ``address`` leads to, if ``title`` is not the page's own.

    ``kind`` is "term", "chapter", "appendix" or "name": in this order they are shown.
    """

    address: str
    title: str
    where: str
    text: str
    kind: str


def words_of(element: HtmlElement) -> str:
    """An element's own prose."""
    copied = lxml.html.fromstring(lxml.html.tostring(element))
    for css in NOT_SEARCHED:
        name = f"self::{css}" if not css.startswith(".") else ""
        has = name or f"contains(concat(' ', @class, ' '), ' {css[1:]} ')"
        for inner in copied.xpath(f".//*[{has}]"):
            inner.drop_tree()
    for part in copied.iter(*IN_A_LINE):
        for sign, child in zip(IN_A_LINE[part.tag], part, strict=False):
            child.text = sign.strip() + (child.text or "")
    return " ".join(copied.text_content().split())


def heading_of(section: HtmlElement) -> str:
    (heading, *_) = section.xpath("./h1 | ./h2 | ./h3 | ./h4")
    return " ".join(heading.text_content().removesuffix("#").split())


def terms(article: HtmlElement, address: str, page: str) -> Iterator[Record]:
    """Each entry of a glossary; a name in another language stands in its text."""
    for entry in article.xpath(".//dl[contains(@class, 'glossary')]/dt[@id][not(preceding-sibling::"
                               "*[1][self::dt])]"):  # fmt: skip
        said = [words_of(entry)]
        for follows in entry.itersiblings():
            said.append(words_of(follows))
            if follows.tag == "dd":
                break
        yield Record(f"{address}#{entry.get('id')}", said[0], page, " ".join(said[1:]), "term")


def names(article: HtmlElement, address: str, page: str) -> Iterator[Record]:
    """Each class and function of the package, with what its docstring says."""
    for entry in article.xpath(".//dt[contains(@class, 'sig')][@id]"):
        if (said := entry.getnext()) is not None and said.tag == "dd":
            name = entry.get("id").rpartition(".")[2]
            text = f"{entry.get('id')} {words_of(said)}"
            yield Record(f"{address}#{entry.get('id')}", name, page, text, "name")


def records_of(path: Path, folder: Path) -> Iterator[Record]:
    """What one built page has to find: nothing, if it has no article."""
    address = path.relative_to(folder).as_posix()
    page = lxml.html.parse(str(path), lxml.html.HTMLParser(encoding="utf-8")).getroot()
    for article in page.xpath(ARTICLE):
        sections = [s for s in article.xpath(".//section") if s.xpath("./h1 | ./h2 | ./h3 | ./h4")]
        title = heading_of(sections[0]) if sections else ""
        kind = "appendix" if address.startswith("appendix/") else "chapter"
        for i, section in enumerate(sections):
            here = address if i == 0 else f"{address}#{section.get('id')}"
            if text := words_of(section):
                yield Record(here, heading_of(section), title if i else "", text, kind)
        yield from terms(article, address, title)
        yield from names(article, address, title)


def as_html(record: Record) -> str:
    address, title, where, text, kind = (html.escape(part) for part in record)
    return (
        f'<html lang="en"><body data-pagefind-filter="kind:{kind}"><h1>{title}</h1>'
        f'<p data-pagefind-ignore><b data-pagefind-meta="address">{address}</b>'
        f'<b data-pagefind-meta="where">{where}</b></p><p>{text}</p></body></html>'
    )


def write_index(records: Iterable[Record], to: Path) -> None:
    """One index of all records, in a folder of its own. Raises ExtensionError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        for i, record in enumerate(records):
            (Path(folder) / f"{i}.html").write_text(as_html(record), encoding="utf-8")
        command = [sys.executable, "-m", "pagefind", "--site", folder, "--output-path", str(to)]
        done = subprocess.run([*command, "--include-characters", "_√"], capture_output=True)
    if done.returncode:
        raise ExtensionError(f"pagefind makes no index: {done.stderr.decode()[-500:]}")
    for pattern in NOT_NEEDED:
        for left in to.glob(pattern):
            left.unlink()


def write_search(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    pages = [page for where in SEARCHED for page in sorted(folder.glob(where))]
    write_index((r for page in pages for r in records_of(page, folder)), folder / FOLDER)
    for name in SPHINX_S:
        (folder / name).unlink(missing_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_search, priority=950)  # once all pages are as they stay
    return {"parallel_read_safe": True, "parallel_write_safe": True}
