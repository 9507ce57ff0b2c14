"""Links of the built site that lead nowhere, to a page or to a place in one."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import lxml.html

HOME = "http://site/"


def read(folder: Path) -> Iterator[tuple[str, lxml.html.HtmlElement]]:
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith("_static/"):
            parser = lxml.html.HTMLParser(encoding="utf-8")
            yield name, lxml.html.parse(str(path), parser).getroot()


def links(page: lxml.html.HtmlElement) -> set[str]:
    """What a page links to or loads."""
    return {
        value
        for element, attribute, value, _ in page.iterlinks()
        if attribute in ("href", "src") and element.get("rel") not in ("canonical", "preconnect")
    }


def dead_links(folder: Path) -> list[str]:
    """Each link inside of the site without a target, and each id that a page has twice."""
    pages = dict(read(folder))
    places = {name: set(page.xpath("//@id | //a/@name")) for name, page in pages.items()}
    found = []
    for name, page in pages.items():
        twice = [place for place, times in Counter(page.xpath("//@id")).items() if times > 1]
        found += [f"{name} has two places #{place}" for place in sorted(twice)]
        for link in sorted(links(page)):
            address = urlsplit(urljoin(HOME + name, link))
            if address.scheme != "http" or address.netloc != "site":
                continue
            target, place = unquote(address.path).lstrip("/"), unquote(address.fragment)
            if not (folder / target).is_file():
                found.append(f"{name} links to {link}, which is not there")
            elif place and target in places and place not in places[target]:
                found.append(f"{name} links to {link}, and {target} has no such place")
    return found
