"""Links of the built site that lead nowhere, to a page or to a place in one."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from lxml.html import HtmlElement

from website.built import tree_of

HOME = "http://site/"
CARDS = "//meta[@property='og:url' or @property='og:image' or @name='twitter:image']/@content"
LOCATION = re.compile("<loc>(.*?)</loc>")  # of a page, in the sitemap
EDITIONS = (".pdf", ".epub")


def read(folder: Path) -> dict[str, HtmlElement]:
    """The pages of the site by their names."""
    names = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.html"))}
    return {name: tree_of(path) for name, path in names.items() if "_static/" not in name}


def links(page: HtmlElement) -> set[str]:
    """What a page links to or loads, and what it says of itself to other sites."""
    loaded = ((element.get("rel"), value) for element, _, value, _ in page.iterlinks())
    return {value for rel, value in loaded if rel != "preconnect"} | set(page.xpath(CARDS))


def dead_links(folder: Path, home: str = HOME) -> list[str]:
    """Each link inside of the site without a target, and each id that a page has twice.

    What begins with ``home``, the address that the site will have, is inside, too. An edition that
    stands beside the pages has to be linked.
    """
    pages = read(folder)
    linked = {name: links(page) for name, page in pages.items()}
    if (sitemap := folder / "sitemap.xml").is_file():
        linked[sitemap.name] = set(LOCATION.findall(sitemap.read_text(encoding="utf-8")))
    places = {name: set(page.xpath("//@id | //a/@name")) for name, page in pages.items()}
    found, reached = [], set()
    for name, page in pages.items():
        twice = [place for place, times in Counter(page.xpath("//@id")).items() if times > 1]
        found += [f"{name} has two places #{place}" for place in sorted(twice)]
    for name, written in linked.items():
        for link in sorted(written):
            address, place = map(unquote, urldefrag(urljoin(home + name, link)))
            if not address.startswith(home):
                if not urlsplit(link).scheme and not urlsplit(link).netloc:
                    found.append(f"{name} links to {link}, which leads out of the site")
                continue
            target = address.removeprefix(home).partition("?")[0]
            reached.add(target)
            if not (folder / (target or "index.html")).is_file():
                found.append(f"{name} links to {link}, which is not there")
            elif place and target in places and place not in places[target]:
                found.append(f"{name} links to {link}, and {target} has no such place")
    beside = {path.name for path in folder.iterdir() if path.suffix in EDITIONS}
    return found + [f"no page links to {name}" for name in sorted(beside - reached)]
