"""What the PDF and the ePub share: the built pages of the site, made fit for paper.

Both are made from ``_build/html``, so that they say what the site says. Paper can neither unfold
nor run:

    a drawing or a plot             stays; its code is left out
    a folded check                  what it found stays; its code is left out
    a solution                      stands, with its code, at the end of the chapter
    a hint or a note in the text    is open, under its title
    a cell that waits for a number  is left out, and what a cell says of the answer that it lacks
    the reference and the ledger    are left out, and links to them become text
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from lxml import html
from lxml.html import HtmlElement

from website.built import ARTICLE, classed, tree_of
from website.words import said

RAW_TEX = re.compile(r"\$\$|\\[(\[]|\\(?:frac|sqrt|text|mathbf|operatorname|begin)\b")
FEW_LINES = 10  # of code, which stay on one page
SITE_ONLY = re.compile(r"appendix/(api|ledger)")
SCREEN_ONLY = ("book-waits", "book-screen", "book-editions", "book-letters", "blank")


NOT_FOR_PAPER = (
    ".//script | .//style | .//button | .//template | .//noscript"
    "| .//a[contains(@class, 'headerlink')] | .//*[contains(@class, 'viewcode-link')]"
    f"| .//*[{classed(*SCREEN_ONLY)}]"
)
RUN_MESSAGES = re.compile(r"(→ From here on this page runs|Overwriting|Appending to) .*\n?", re.M)


class Fault(Exception):
    """What an edition must not be printed with: a line for each thing that is wrong."""


@dataclass
class Page:
    """A page of the book: ``chapters/03_…``, the caption of its part, and its text as a tree."""

    name: str
    part: str
    body: HtmlElement

    @property
    def title(self) -> str:
        return words(next(self.body.iter("h1")))

    @property
    def begins_part(self) -> bool:
        return self.name.startswith("part-")

    @property
    def sections(self) -> list[tuple[str, str]]:
        """The id and the words of each section."""
        heads = self.body.iterfind(".//section/h2")
        return [(head.getparent().get("id"), words(head)) for head in heads]


def slug(name: str) -> str:
    """A page's name without its folder, which no two pages share."""
    return name.rpartition("/")[2]


def words(element: HtmlElement) -> str:
    return " ".join(element.text_content().split())


def new(tag: str, text: str = "", **attributes: str) -> HtmlElement:
    made = html.Element(tag, {name.rstrip("_"): value for name, value in attributes.items()})
    made.text = text
    return made


def contents(book: Path) -> tuple[dict, list[tuple[str, str]]]:
    """``_config.yml``, and from ``_toc.yml`` each page's name with the caption of its part."""
    config = yaml.safe_load((book / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((book / "_toc.yml").read_text(encoding="utf-8"))
    pages = [(toc["root"], "")]
    for part in toc["parts"]:
        pages += [(page["file"], part["caption"]) for page in part["chapters"]]
    return config, [page for page in pages if not SITE_ONLY.match(page[0])]


def read(site: Path, name: str, part: str) -> Page:
    """A page as the site has it; raises :class:`Fault` if it is missing."""
    path = site / f"{name}.html"
    if not path.is_file():
        raise Fault(f"{name}: there is no such page in the built site: run make book first")
    [article] = tree_of(path).xpath(ARTICLE)
    article.tag = "div"
    article.attrib.clear()
    return Page(name, part, article)


def fit_for_paper(page: Page) -> None:
    """Leaves out what only a screen has a use for, and opens the folds or empties them."""
    for cell in page.body.xpath(f".//div[{classed('book-yours')}]"):
        if not re.search(r"^(def|class|%%)", cell.text_content(), re.M):
            cell.drop_tree()
    for element in page.body.xpath(NOT_FOR_PAPER):
        element.drop_tree()
    for pre in list(page.body.iter("pre")):
        for line in pre.xpath(f".//span[{classed('line')} or not(node())]"):
            line.drop_tag()
        pre.text = RUN_MESSAGES.sub("", pre.text or "")
        if not words(pre):
            pre.drop_tree()
        elif pre.text_content().count("\n") < FEW_LINES:
            pre.set("class", "book-short")
    for fold in page.body.xpath(".//details"):
        if "book-code" in fold.get("class", "").split():
            fold.drop_tree()
            continue
        title = words(fold.find("summary"))
        fold.find("summary").drop_tree()
        if "hide" not in fold.get("class", "").split():
            fold.tag = "div"
            fold.set("class", "book-aside")
            fold.insert(0, new("p", title, class_="book-fold"))
            continue
        cell = fold.getparent()
        fold.drop_tag()
        shut(cell, title)
    if solutions := list(taken_out(page.body)):
        end = new("section", id="solutions")
        end.extend([new("h2", said("Solutions")), *solutions])
        page.body.find(".//h1").getparent().append(end)


def shut(cell: HtmlElement, title: str) -> None:
    """A folded cell on paper: see the table at the top of this file."""
    if title.startswith(said("Solution")):
        cell.set("class", "cell book-solution")
        for line in cell.xpath(".//pre/span[starts-with(normalize-space(.), '# @title')]"):
            line.tail = (line.tail or "").removeprefix("\n")
            line.drop_tree()
    elif "%%writefile" not in cell.text_content():
        for code in cell.xpath(f".//div[{classed('cell_input')}]"):
            code.drop_tree()
        if not words(cell) and cell.find(".//img") is None:
            cell.drop_tree()
            return
        if "tag_hide-input" in cell.get("class", "") or cell.find(".//pre") is None:
            return
        cell.set("class", "cell book-proof")
    cell.insert(0, new("p", title, class_="book-fold"))


def taken_out(body: HtmlElement) -> Iterator[HtmlElement]:
    """Each solution, and what belongs to it: among the exercises, the folds that follow it."""
    for solution in body.xpath(f".//div[{classed('book-solution')}]"):
        belongs = [solution]
        if solution.xpath("ancestor::section[@id='exercises']"):
            after = solution.getnext()
            while after is not None and after.get("class") in ("book-aside", "cell book-proof"):
                belongs.append(after)
                after = after.getnext()
        for element in belongs:
            element.drop_tree()
            yield element


def linked(pages: list[Page], site: Path, address: Callable[[str, str], str]) -> list[str]:
    """Leads every link to ``address(page, id)``, and says which lead nowhere.

    A link to a page of the site that is not in the book, such as a module's source, becomes text.
    """
    places = {page.name: set(page.body.xpath(".//@id")) for page in pages}
    wrong = []
    for page in pages:
        for link in page.body.xpath(".//a[@href]"):
            url = urlsplit(link.get("href"))
            if url.scheme or url.netloc:
                continue
            path = posixpath.join(posixpath.dirname(page.name), unquote(url.path))
            path = posixpath.normpath(path).lstrip("/") if url.path else f"{page.name}.html"
            name, place = path.removesuffix(".html"), unquote(url.fragment)
            if name in places and (not place or place in places[name]):
                link.set("href", address(name, place))
            elif name not in places and (site / path).is_file():
                link.drop_tag()
            else:
                wrong.append(f"{page.name}: links to {link.get('href')}, which is not there")
    return wrong


def pictures(pages: list[Page], site: Path) -> tuple[dict[str, Path], list[str]]:
    """Gives each picture an address from the site's root; the files, and what is missing."""
    files, wrong = {}, []
    for page in pages:
        for image in page.body.xpath(".//img"):
            source = unquote(image.get("src", ""))
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), source))
            if not (site / path).is_file() or not (site / path).stat().st_size:
                wrong.append(f"{page.name}: the picture {source} is not there")
            image.set("src", path)
            files[path] = site / path
            image.attrib.pop("loading", None)
    return files, wrong


def raw_tex(pages: list[Page]) -> list[str]:
    """Formulas that Sphinx took for text: TeX that is neither code nor a formula."""
    inside = f"ancestor::code | ancestor::pre | ancestor::*[{classed('math', 'highlight')}]"
    query = f".//text()[not({inside})]"
    texts = ((page.name, text) for page in pages for text in page.body.xpath(query))
    return [
        f"{name}: raw TeX: {' '.join(text.split())[:100]}"
        for name, text in texts
        if RAW_TEX.search(text)
    ]
