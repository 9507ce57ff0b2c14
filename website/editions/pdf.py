"""The book as one PDF: ``make pdf`` prints the built site's pages with Chromium.

The book is printed twice, for Chromium cannot write a page number into the contents: where the
sections stand in the first print is written into the contents of the second.
"""

import hashlib
import json
from functools import partial
from html import escape
from pathlib import Path

import pikepdf
from lxml import html
from playwright.sync_api import Browser

from website import ROOT, SITE
from website.editions.cover import cover
from website.editions.offer import publish
from website.editions.pages import SUBTITLE, Fault, Page, book_pages, slug
from website.editions.press import BASE, opened

TEXT_WIDTH = 634  # px: A4 without the margins of print.css
Lines = list[tuple[str, str, str]]  # of the contents: what kind, the words, where it leads
LISTED = ("Exercises", "Solutions")  # sections without a number that the contents name
ABOUT = (
    "The book is a series of notebooks, and its site and the notebooks hold more than paper can."
    " Here the code of drawings, plots and folded proofs is left out; what it drew or printed is"
    " not. Solutions stand at the end of each chapter. To run the code, or to read what is left"
    " out, open the site or the notebooks: the README of the repository says how."
)
DOCUMENT = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="styles/print.css"><style>{running}</style>
<script type="module" src="styles/print.js"></script></head>
<body><div id="book-cover">{cover}</div>
<nav id="book-contents"><h1>Contents</h1>{contents}</nav>
<section id="book-about"><h2>About this edition</h2><p>{about}</p></section>{pages}</body></html>"""


def address(name: str, place: str) -> str:
    """Where a page or a place in it stands in the one document; a PDF's names have 127 bytes."""
    if len(place) > 70:
        place = hashlib.sha256(place.encode()).hexdigest()[:20]
    return f"#{slug(name)}" + (f"--{place}" if place else "")


def prepared(pages: list[Page]) -> None:
    """Makes ids unique in the book, and pictures load."""
    for page in pages:
        for image in page.body.xpath(".//img"):
            image.set("src", f"site/{image.get('src')}")
        for element in page.body.xpath(".//*[@id]"):
            element.set("id", address(page.name, element.get("id"))[1:])


def entries(pages: list[Page]) -> Lines:
    """The lines of the contents: what kind each is, its words, and the id that it leads to."""
    lines, part = [], ""
    for page in pages:
        if page.part != part:
            part = page.part
            lines.append(("part", part, slug(page.name)))
        lines.append(("chapter", page.title, slug(page.name)))
        for place, title in page.sections:
            if page.name.startswith("chapters/") and (title[0].isdigit() or title in LISTED):
                lines.append(("section", title, place))
    return lines


def contents(lines: Lines) -> str:
    made = []
    for kind, title, place in lines:
        if kind == "part":
            made.append(f'<p class="part">{escape(title)}</p>')
        else:
            link = f'<a href="#{escape(place, quote=True)}">{escape(title)}</a>'
            made.append(f'<p class="{kind}">{link}<i></i><span>000</span></p>')
    return "".join(made)


def document(config: dict, pages: list[Page], lines: Lines) -> str:
    """The whole book as one page of HTML."""
    bodies, running = [], []
    for page in pages:
        name, title = slug(page.name), json.dumps(page.title)
        inner = html.tostring(page.body, encoding="unicode")
        part = f'<p class="book-part">{escape(page.part)}</p>' if page.part else ""
        bodies.append(f'<section class="book-page" id="{name}">{part}{inner}</section>')
        running.append(
            f"@page p{name} {{ @top-center {{ content: {title}; font: 9.5pt Book; color: #555 }} }}"
            f' [id="{name}"] {{ page: p{name} }}'
        )
    return DOCUMENT.format(
        title=escape(config["title"]),
        running=" ".join(running),
        cover=cover(config["title"], SUBTITLE),
        about=ABOUT,
        contents=contents(lines),
        pages="".join(bodies),
    )


def numbers(pdf: pikepdf.Pdf) -> dict[str, int]:
    """The page, from 1, of each place that a link leads to."""
    number: dict[object, int] = {page.objgen: n for n, page in enumerate(pdf.pages, start=1)}
    return {name[1:]: number[place[0].objgen] for name, place in pdf.Root.Dests.items()}


def numbers_in(file: Path) -> dict[str, int]:
    with pikepdf.open(file) as pdf:
        return numbers(pdf)


def dead_links(pdf: pikepdf.Pdf) -> list[str]:
    """Links of the PDF that lead nowhere: to no place in it, or to what was on this machine."""
    known, wrong = set(pdf.Root.get("/Dests", {}).keys()), []
    for n, page in enumerate(pdf.pages, start=1):
        for note in page.get("/Annots", []):
            place = note.get("/Dest")
            uri = str(note.get("/A", pikepdf.Dictionary()).get("/URI", ""))
            if place is not None and isinstance(place, pikepdf.Name) and place not in known:
                wrong.append(f"page {n}: a link to {place}, which is not there")
            if uri.startswith((BASE, "file:")):
                wrong.append(f"page {n}: a link to {uri}")
    return wrong


def add_bookmarks(pdf: pikepdf.Pdf, lines: Lines) -> None:
    """Parts, chapters and sections, in three levels."""
    with pdf.open_outline() as outline:
        levels = [outline.root]
        for kind, title, place in lines:
            depth = ("part", "chapter", "section").index(kind)
            depth = min(depth, len(levels) - 1)  # the preface stands in no part
            destination = pikepdf.Array(list(pdf.Root.Dests["/" + place]))
            item = pikepdf.OutlineItem(title, destination=destination)
            item.is_closed = True
            del levels[depth + 1 :]
            levels[depth].append(item)
            levels.append(item.children)


def printed(browser: Browser, text: str, site: Path, target: Path) -> dict[str, int]:
    """Prints the document to ``target``; the page numbers in its contents. Raises ``Fault``."""
    size = {"width": TEXT_WIDTH, "height": 970}
    page, missing = opened(browser, text, site, viewport=size, color_scheme="light")
    page.emulate_media(media="print")
    page.evaluate("edition.loaded()")
    page.evaluate("edition.fit()")
    if wrong := missing + page.evaluate("edition.wrong()"):
        raise Fault("\n".join(wrong))
    onto_paper = partial(page.pdf, path=target, prefer_css_page_size=True, print_background=True)
    onto_paper(tagged=False)
    shown = numbers_in(target)
    for _ in range(3):  # a heading at the edge of a page may move as the numbers come in
        page.evaluate("shown => edition.number(shown)", shown)
        onto_paper(tagged=True)
        if (stand := numbers_in(target)) == shown:
            break
        shown = stand
    page.close()
    return shown


def finish(target: Path, config: dict, lines: Lines, shown: dict[str, int]) -> int:
    """Adds bookmarks, and looks at the PDF itself; its pages. Raises ``Fault``."""
    with pikepdf.open(target, allow_overwriting_input=True) as pdf:
        wrong = dead_links(pdf)
        found = numbers(pdf)
        wrong += [
            f"the contents say page {shown[place]} for {title}, which stands on {found[place]}"
            for _, title, place in lines
            if shown[place] != found[place]
        ]
        add_bookmarks(pdf, lines)
        pdf.docinfo["/Title"] = config["title"]
        pdf.docinfo["/Author"] = config["author"]
        pdf.Root.PageMode = pikepdf.Name.UseOutlines
        pdf.save(target, object_stream_mode=pikepdf.ObjectStreamMode.generate, linearize=True)
        n_pages = len(pdf.pages)
    if wrong:
        raise Fault("\n".join(wrong))
    return n_pages


def make(browser: Browser, book: Path, site: Path, target: Path) -> int:
    """Prints the built site of ``book`` to ``target``; the number of pages. Raises ``Fault``."""
    config, pages, _ = book_pages(book, site, address)
    prepared(pages)
    lines = entries(pages)
    target.parent.mkdir(parents=True, exist_ok=True)
    shown = printed(browser, document(config, pages, lines), site, target)
    return finish(target, config, lines, shown)


def publish_pdf() -> int:
    return publish("pdf", lambda browser, to: f"{make(browser, ROOT, SITE, to)} pages")
