"""A built page as a tree, for the search, the check of links, the PDF and the ePub."""

from pathlib import Path

from lxml import html
from lxml.html import HtmlElement


def tree_of(path: Path) -> HtmlElement:
    """The whole page."""
    return html.document_fromstring(path.read_bytes(), html.HTMLParser(encoding="utf-8"))


def classed(*names: str) -> str:
    """The XPath condition of an element that has one of these CSS classes."""
    return " or ".join(
        f"contains(concat(' ', normalize-space(@class), ' '), ' {n} ')" for n in names
    )


ARTICLE = f"//article[{classed('bd-article')}]"
# The first name of each entry of a glossary; others, as the Chinese one, follow it.
TERM = f".//dl[{classed('glossary')}]/dt[@id][not(preceding-sibling::*[1][self::dt])]"
