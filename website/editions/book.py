"""What a book has and a site has not: an imprint, a page for each part, and an index."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from html import escape
from itertools import count
from pathlib import Path
from urllib.parse import unquote

from lxml import html
from lxml.html import HtmlElement

from website.built import TERM
from website.editions.pages import (
    Fault,
    Page,
    contents,
    fit_for_paper,
    linked,
    new,
    pictures,
    raw_tex,
    read,
    slug,
    words,
)
from website.words import alphabetical, said

SUBTITLE = "every claim with a ✓ is checked by code"
IMPRINT = """<div><h1>{title}</h1><p>{subtitle}</p><p>{author}<br>{release}</p>
<p>The text and the drawings are under the licence Creative Commons Attribution 4.0,
<a href="https://creativecommons.org/licenses/by/4.0/">creativecommons.org/licenses/by/4.0</a>.
You may pass them on and change them if you name their authors. The code is under the MIT licence.
The sentences of the data set Multi30k that chapter 11 quotes belong to their authors.</p>
<p>The chapters of this book are notebooks. What is printed here as a result is what the code gave
when the chapter last ran, from its first cell to its last. Where a sentence has a ✓, the code
tested it and would have stopped if it were false. Drawings and plots were made by code, too.</p>
<p>The notebooks hold more than paper can. The code of drawings, plots and checks is left out here,
but what it drew and found is not. The solutions come at the end of each chapter. The reference of
the package and the ledger of all claims are on the book's site, where some figures move.</p>
<p>Set by Chromium in Source Serif, STIX Two Math and DejaVu Sans Mono.</p></div>"""
DEFINED = re.compile(r"^(?:class|def) (\w+)(?!\w|\(\s*self)(?<!_solution)", re.M)
Places = list[tuple[Page, HtmlElement]]


def imprint(config: dict) -> Page:
    told = {"title": config["title"], "subtitle": said(SUBTITLE), "author": config["author"]}
    told["release"] = config["sphinx"]["config"]["release"]
    text = said(IMPRINT).format(**{name: escape(value) for name, value in told.items()})
    return Page("imprint", "", html.fromstring(text))


def in_parts(pages: list[Page]) -> Iterator[Page]:
    """The pages, with one before each part that names its chapters."""
    part = ""
    for page in pages:
        if page.part != part:
            part = page.part
            body = new("div")
            body.append(new("h1", part))
            for chapter in pages:
                if chapter.part == part:
                    line = new("p")
                    line.append(new("a", chapter.title, href=f"{chapter.name}.html"))
                    body.append(line)
            yield Page(f"part-{slug(page.name)}", part, body)
        yield page


def number(page: Page, element: HtmlElement) -> str:
    """The number of the section or chapter that an element stands in, or else its page's name."""
    titles = [words(head) for head in element.xpath("ancestor::section/h2")] + [page.title]
    numbers = (re.match(r"[\d.]*\d", title) for title in titles)
    return next((found[0] for found in numbers if found), page.title.partition(":")[0])


def places(pages: list[Page]) -> dict[tuple[str, str], Places]:
    """Where the text links a term of the glossary or stresses it, and where code defines a name.

    The keys are the tag in which the index has a name, and the name. A term that no chapter links
    or stresses has its place in the chapters that its entry names.
    """
    found: dict[tuple[str, str], Places] = defaultdict(list)
    entries = [entry for page in pages for entry in page.body.xpath(TERM)]
    known = {str(entry.get("id")): words(entry) for entry in entries}
    known |= {name.lower().partition(" (")[0]: name for name in known.values()}
    chapters = {page.name: page for page in pages if page.name.startswith("chapters/")}
    for page in chapters.values():
        for element in page.body.iter("a", "em", "strong", "h1", "h2", "h3", "div"):
            if "cell_input" in element.get("class", "").split():
                for name in DEFINED.findall(element.text_content()):
                    found["code", name].append((page, element))
                continue
            text = re.sub(r"^[\d.]+ |\.$", "", words(element).lower())
            link = unquote(element.get("href", "").partition("#")[2])
            if name := known.get(link) or known.get(text) or known.get(text.removesuffix("s")):
                found["span", name].append((page, element))
    for entry in entries:
        if ("span", words(entry)) not in found:
            for address in entry.xpath("following-sibling::dd[1]//a/@href"):
                if named := chapters.get(address.removeprefix("../").partition(".html")[0]):
                    found["span", words(entry)].append((named, named.body.find(".//h1")))
    return found


def index(pages: list[Page]) -> HtmlElement:
    """The terms, classes and functions, each with a link to its first place in each section.

    The PDF makes the number of a page of the section's.
    """
    ids = count(1)
    body = new("div", class_="book-index")
    body.append(new("h1", said("Index")))
    for (tag, name), found in sorted(
        places(pages).items(), key=lambda entry: alphabetical(entry[0][1])
    ):
        line = new("p")
        line.append(new(tag, name))
        line[0].tail = " "
        sections: dict[tuple[str, str], HtmlElement] = {}
        for page, element in found:
            sections.setdefault((page.name, number(page, element)), element)
        for (home, section), element in sections.items():
            if not element.get("id"):
                element.set("id", f"indexed-{next(ids)}")
            address = f"/{home}.html#{element.get('id')}"
            line.append(new("a", section, class_="book-at", href=address))
        body.append(line)
    return body


def book_pages(
    book: Path, site: Path, address: Callable[[str, str], str]
) -> tuple[dict, list[Page], dict[str, Path]]:
    """The configuration, all pages, fit for paper and linked, and their pictures.

    Raises :class:`Fault`, with all that is wrong.
    """
    config, names = contents(book)
    pages = [read(site, name, part) for name, part in names]
    for page in pages:
        fit_for_paper(page)
    pages[0].body.find(".//h1").text = said("Preface")
    pages.append(Page("book_index", pages[-1].part, index(pages)))
    pages = [imprint(config), *in_parts(pages)]
    wrong = linked(pages, site, address) + raw_tex(pages)
    files, missing = pictures(pages, site)
    if wrong + missing:
        raise Fault("\n".join(wrong + missing))
    return config, pages, files
