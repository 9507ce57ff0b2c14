"""Open every page of the built site in headless Chromium: ``make site-check``.

Each page is loaded on a wide light screen and on a narrow dark one, with all that can be unfolded
unfolded. It fails when a page asks another host for anything, misses a file, logs an error, is
wider than the screen or cuts something off, links to what is not there, or has a formula that is
not set, or a picture without words; and where axe-core finds that a page shuts some
readers out, as by too little contrast. A screen of middle width is looked at without axe-core.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import yaml
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, ViewportSize

from website import ROOT, SITE
from website.browser import chromium
from website.checks.links import HOME, dead_links
from website.server import serve

Screen = tuple[int, Literal["light", "dark"]]  # its width in pixels, and its colours
Look = tuple[Screen, str]  # at this page

SCREENS: tuple[Screen, ...] = ((1280, "light"), (390, "dark"))
BETWEEN: Screen = (820, "light")
IN_THE_PAGE = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
ACCESSIBILITY = Path(__file__).with_name("accessibility.js").read_text(encoding="utf-8")


def leads_on(path: Path) -> bool:
    """Whether a page is only an address that leads to another page, as the site's root."""
    return path.read_text(encoding="utf-8").lower().startswith('<meta http-equiv="refresh"')


def window(browser: Browser, screen: Screen, base: str) -> tuple[Page, list[str]]:
    """A window, and a list that fills with what its pages ask of other hosts, miss and throw."""
    width, colours = screen
    size: ViewportSize = {"width": width, "height": 844}
    page, found = browser.new_page(viewport=size, color_scheme=colours), []

    def asks(request: Request) -> None:
        if not request.url.startswith((base, "data:", "blob:")):
            found.append(f"asks for {request.url}")

    def gets(response: Response) -> None:
        if response.status >= 400:
            found.append(f"gets {response.status} for {response.url}")

    def logs(message: ConsoleMessage) -> None:
        if message.type == "error":
            found.append(f"logs an error: {message.text}")
        elif message.text.startswith("waits for"):
            print(f"{page.url} {message.text}", file=sys.stderr)

    page.on("request", asks)
    page.on("response", gets)
    page.on("pageerror", lambda error: found.append(f"throws {error}"))
    page.on("console", logs)
    return page, found


def look_at_some(browser: Browser, looks: Iterable[Look], base: str) -> Iterator[tuple]:
    """Each look with what it finds; one window for each screen, since to open one takes long."""
    windows: dict[Screen, tuple[Page, list[str]]] = {}
    for screen, name in looks:
        if screen not in windows:
            windows[screen] = window(browser, screen, base)
        page, found = windows[screen]
        found.clear()
        page.goto(base + name, wait_until="load")
        found += page.evaluate(IN_THE_PAGE)
        if screen != BETWEEN:
            for rule, target, summary in page.evaluate(ACCESSIBILITY, AXE_SCRIPT):
                found.append(f"breaks {rule} at {target}: {' '.join(summary.split())[:200]}")
            page.wait_for_load_state("networkidle")
        yield name, screen, found.copy()


def complaints(seen: Iterable[tuple]) -> list[str]:
    """What the looks found, in the order of the pages."""
    return [
        f"{name} ({width} px, {scheme}) {what}"
        for name, (width, scheme), found in sorted(seen, key=lambda look: look[:2])
        for what in found
    ]


def look_at_all(pages: list[str], base: str) -> list[str]:
    """Every page on every screen; each core has a browser, and takes the next page when it can."""
    looks = iter([(screen, name) for name in pages for screen in (*SCREENS, BETWEEN)])

    def share(_) -> list[tuple]:
        with chromium() as browser:
            return list(look_at_some(browser, looks, base))

    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        return complaints(look for seen in pool.map(share, range(cores)) for look in seen)


def main(site: Path = SITE) -> int:
    if not (site / "index.html").exists():
        sys.exit("There is no built site in _build/html: run make book first.")
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    files = sorted(site.rglob("*.html"), key=lambda path: -path.stat().st_size)  # long ones first
    names = [path.relative_to(site).as_posix() for path in files if not leads_on(path)]
    pages = [name for name in names if "_static/" not in name]
    found = dead_links(site, config["html"]["baseurl"] or HOME)
    server, base = serve(site)
    found += look_at_all(pages, base)
    server.shutdown()
    server.server_close()
    good = (
        f"{len(pages)} pages on {len(SCREENS) + 1} screens: no outside host, no error, no barrier."
    )
    print("\n".join(found) or good)
    return 1 if found else 0
