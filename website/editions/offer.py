"""The finished PDF and ePub, put beside the site's pages, which then link to them.

The site is built before the editions are made from it, so their links come last: on the front page
in the element that ``intro.md`` keeps for them, and below each page's list of chapters in that of
``theme/editions.html``. A site without the editions has no link to them.
"""

import posixpath
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser

from website import ROOT, SITE
from website.browser import chromium
from website.editions.pages import Fault
from website.words import said, speaks_chinese

NAME = "the-transformer-executed"
KINDS = {"pdf": "PDF", "epub": "ePub"}
PLACE = re.compile(
    r'(?P<start><(?P<tag>div|p) class="book-editions">).*?(?P<end></(?P=tag)>)', re.DOTALL
)


def name() -> str:
    """What the editions' files are called."""
    return NAME + "-zh" * speaks_chinese()


def linked(page: str, root: str, sizes: dict[str, int]) -> str:
    """A page of the site, with links to the editions of these sizes in bytes, and to no others."""
    address = {ending: f"{root}{name()}.{ending}" for ending in sizes}
    short = " · ".join(f'<a href="{address[ending]}">{KINDS[ending]}</a>' for ending in sizes)
    links = said(" or ").join(
        f'<a href="{address[ending]}">{KINDS[ending]}</a> ({size / 1e6:.1f} MB)'
        for ending, size in sizes.items()
    )
    line = said("To read without a network, the whole book in one file: {links}.")
    line = f"<p>{line.format(links=links)}</p>"
    inside = {"div": line, "p": said("The whole book: ") + short} if sizes else {"div": "", "p": ""}
    return PLACE.sub(lambda place: place["start"] + inside[place["tag"]] + place["end"], page)


def offer(site: Path) -> None:
    """Links the site to the editions that stand beside its pages, and to no others.

    Its Chinese pages have their own.
    """
    files = {ending: site / f"{name()}.{ending}" for ending in KINDS}
    sizes = {ending: path.stat().st_size for ending, path in files.items() if path.is_file()}
    for path in sorted(set(site.rglob("*.html")) - set((site / "zh").rglob("*"))):
        old = path.read_text(encoding="utf-8")
        root = posixpath.relpath(".", path.relative_to(site).parent.as_posix()) + "/"
        new = linked(old, root.removeprefix("./"), sizes)
        if new != old:
            path.write_text(new, encoding="utf-8")


def publish(ending: str, make: Callable[[Browser, Path], str], site: Path | None = None) -> int:
    """Has ``make`` write an edition to a path, and offers it; 1, and no edition, at a fault."""
    site = site or SITE
    target = ROOT / "_build" / ending / f"{name()}.{ending}"
    try:
        with chromium() as browser:
            said = make(browser, target)
        shutil.copy(target, site)
        offer(site)
    except Fault as fault:
        for path in (target, site / target.name):
            path.unlink(missing_ok=True)
        offer(site)
        print(fault, file=sys.stderr)
        return 1
    size = target.stat().st_size / 1e6
    print(f"{said}, {size:.1f} MB: {target.relative_to(ROOT)}, and beside the site's pages")
    return 0
