"""The book as one PDF: ``make pdf`` prints the built site's pages with Chromium.

The book is printed more than once, for Chromium cannot write the number of a page into the text:
where each place stands in one print is written into the contents, the references and the index of
the next, until none has moved.
"""

import hashlib
import json
import re
from html import escape
from pathlib import Path

import pikepdf
from lxml import html
from lxml.html import HtmlElement
from playwright.sync_api import Browser

from website import ROOT, SITE
from website.editions.book import SUBTITLE, book_pages
from website.editions.cover import cover
from website.editions.offer import publish
from website.editions.pages import Fault, Page, new, slug
from website.editions.sandbox import opened
from website.words import language, said

TEXT_WIDTH = 634  # px: A4 without the margins of print.css
LISTED = ("exercises", "solutions")  # sections without a number that the contents name
NO_REFERENCE = (
    "@class='book-at' or ancestor::h2 or ancestor::th or ancestor::dl[contains(@class, 'glossary')]"
)
REFERENCE = f".//a[starts-with(@href, '#')][not({NO_REFERENCE})]"
LOOKED_UP = re.compile(r"#\w+--(term|cite)-")  # by the alphabet, and not by a page
DOCUMENT = """<!DOCTYPE html><html lang="{language}"><head><meta charset="utf-8">
<title>{title}</title>
<link rel="stylesheet" href="styles/book.css"><link rel="stylesheet" href="styles/print.css">
<style>{running}</style><script type="module" src="styles/print.js"></script></head>
<body><div id="book-cover">{cover}</div>{pages}</body></html>"""


def address(name: str, place: str) -> str:
    """Where a page or a place in it stands in the one document; a PDF's names have 127 bytes."""
    if len(place) > 70:
        place = hashlib.sha256(place.encode()).hexdigest()[:20]
    return f"#{slug(name)}" + (f"--{place}" if place else "")


def references(pages: list[Page]) -> None:
    """Puts the page after each section's first link to a place in another section."""
    home = {}
    for page in pages:
        home[address(page.name, "")] = page.name
        for element in page.body.xpath(".//*[@id]"):
            home[address(page.name, element.get("id"))] = section(page, element)
    for page in pages:
        known = set()
        for link in page.body.xpath(REFERENCE):
            place, here = link.get("href"), section(page, link)
            goes_on = re.match(r"['’\w]", link.tail or "")
            if LOOKED_UP.match(place) or here == home[place] or (here, place) in known or goes_on:
                continue
            known.add((here, place))
            before = "".join(link.xpath("preceding-sibling::node()/descendant-or-self::text()"))
            inside = before.count("(") + before.count("（") > before.count(")") + before.count("）")
            opening, closing = said(", p.\xa0|" if inside else " (p.\xa0|)").split("|")
            number = new("span", opening, class_="book-page-of")
            number.append(new("span", "000", class_="book-at"))
            number[0].tail = closing
            link.append(number)


def section(page: Page, element: HtmlElement) -> str:
    return f"{page.name} {element.xpath('string(ancestor-or-self::section[h2][1]/@id)')}"


def prepared(pages: list[Page]) -> None:
    """Makes ids unique in the book, pictures load, and headings stand below those of the parts."""
    for page in pages:
        for image in page.body.xpath(".//img"):
            image.set("src", f"site/{image.get('src')}")
        for element in page.body.xpath(".//*[@id]"):
            element.set("id", address(page.name, element.get("id"))[1:])
        if not page.begins_part:
            for heading in page.body.iter("h1", "h2", "h3"):
                heading.tag = f"h{int(heading.tag[1]) + 1}"


def contents(pages: list[Page]) -> str:
    made = []

    def add(kind: str, title: str, place: str) -> None:
        made.append(
            f'<p class="{kind}"><a href="{place}">{escape(title)}<i></i>'
            '<span class="book-at">000</span></a></p>'
        )

    for page in pages[1:]:  # after the imprint
        add("part" if page.begins_part else "chapter", page.title, address(page.name, ""))
        for place, title in page.sections:
            if page.name.startswith("chapters/") and (title[0].isdigit() or place in LISTED):
                add("section", title, address(page.name, place))
    return f'<nav id="book-contents"><h2>{said("Contents")}</h2>{"".join(made)}</nav>'


def document(config: dict, pages: list[Page]) -> str:
    """The whole book as one page of HTML."""
    references(pages)
    inside = contents(pages)
    titles = {page.name: page.title for page in pages}
    prepared(pages)
    bodies, running = [], []
    for page in pages:
        name = slug(page.name)
        kind = "book-part" if page.begins_part else "book-page"
        inner = html.tostring(page.body, encoding="unicode")
        bodies.append(f'<section class="{kind}" id="{name}">{inner}</section>')
        if page.part and not page.begins_part:
            head = json.dumps(titles[page.name], ensure_ascii=False)
            running.append(
                f"@page p{name} {{ @top-center {{ content: {head};"
                f' font: 9.5pt Book; color: #555 }} }} [id="{name}"] {{ page: p{name} }}'
            )
    return DOCUMENT.format(
        language=language(),
        title=escape(config["title"]),
        running=" ".join(running),
        cover=cover(config, said(SUBTITLE)),
        pages="".join([bodies[0], inside, *bodies[1:]]),
    )


def numbers(pdf: pikepdf.Pdf) -> dict[str, int]:
    """The page, from 1, of each place that a link leads to."""
    number: dict[object, int] = {page.objgen: n for n, page in enumerate(pdf.pages, start=1)}
    return {name[1:]: number[place[0].objgen] for name, place in pdf.Root.Dests.items()}


def printed(browser: Browser, text: str, site: Path, target: Path) -> None:
    """Prints the document to ``target``, until no number changes. Raises ``Fault``."""
    size = {"width": TEXT_WIDTH, "height": 970}
    page, missing = opened(browser, text, site, viewport=size, color_scheme="light")
    page.emulate_media(media="print")
    page.evaluate("edition.loaded()")
    page.evaluate("edition.fit()")
    if wrong := missing + page.evaluate("edition.wrong()"):
        raise Fault("\n".join(wrong))
    written: dict[str, int] = {}
    for _ in range(5):
        page.pdf(
            path=target, prefer_css_page_size=True, print_background=True, tagged=True, outline=True
        )
        with pikepdf.open(target) as pdf:
            stand = numbers(pdf)
        if stand == written:
            page.close()
            return
        page.evaluate("stand => edition.number(stand)", stand)
        written = stand
    raise Fault("the pages of the contents and the references do not settle")


def finish(target: Path, config: dict) -> int:
    """Says whose book it is, and shuts the bookmarks; the number of its pages."""
    with pikepdf.open(target, allow_overwriting_input=True) as pdf:
        with pdf.open_outline() as outline:
            for part in outline.root:
                for item in [part, *part.children]:
                    item.is_closed = True
        pdf.docinfo["/Title"] = config["title"]
        pdf.docinfo["/Author"] = config["author"]
        pdf.Root.PageMode = pikepdf.Name.UseOutlines
        pdf.save(target, object_stream_mode=pikepdf.ObjectStreamMode.generate, linearize=True)
        return len(pdf.pages)


def make(browser: Browser, book: Path, site: Path, target: Path) -> int:
    """Prints the built site of ``book`` to ``target``; the number of pages. Raises ``Fault``."""
    config, pages, _ = book_pages(book, site, address)
    target.parent.mkdir(parents=True, exist_ok=True)
    printed(browser, document(config, pages), site, target)
    return finish(target, config)


def publish_pdf(book: Path = ROOT, site: Path = SITE) -> int:
    return publish("pdf", lambda browser, to: f"{make(browser, book, site, to)} pages", site)
