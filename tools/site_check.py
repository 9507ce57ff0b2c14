"""Open every page of the built site in headless Chromium: ``make site-check``.

Each page is loaded twice, on a wide light screen and on a narrow dark one, with all that can be
unfolded unfolded. It fails when a page asks another host for anything, misses a file, logs an
error, is wider than the screen, links to what is not there, or has a formula that is not set, or a
picture or a fold without words; and where axe-core finds that a page shuts some readers out, as by
too little contrast.
"""

import http.server
import os
import re
import shutil
import sys
import threading
from functools import partial
from pathlib import Path

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, sync_playwright

from tools.chapters import ROOT
from tools.site_links import dead_links

SITE = ROOT / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCREENS = ((1280, "light"), (390, "dark"))
# What a browser would fetch by itself, as opposed to a link that a reader may follow.
LOADS = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=[\"'](?:https?:)?//[^\"']+"
    r"|<link\b(?=[^>]*\brel=[\"'][^\"']*(?:stylesheet|icon|preload|preconnect|prefetch))[^>]*"
    r"?\bhref=[\"'](?:https?:)?//[^\"']+"
    r"|url\(\s*[\"']?(?:https?:)?//[^)]+|@import\s+[\"'](?:https?:)?//[^\"']+",
    re.IGNORECASE,
)
IN_THE_PAGE = """async () => {
    document.querySelectorAll('details').forEach(d => d.open = true);
    const found = [];
    for (const part of document.querySelectorAll('.book-translator, .book-living')) {
        part.scrollIntoView({behavior: 'instant'});
        for (let n = 0; n < 100 && !part.querySelector('section'); n++)
            await new Promise(done => setTimeout(done, 100));
        if (!part.querySelector('section')) found.push(`never fills in: ${part.className}`);
    }
    window.scrollTo({top: document.body.scrollHeight, behavior: 'instant'});
    const width = document.documentElement.scrollWidth;
    if (width > window.innerWidth) found.push(`is ${width} px wide on ${window.innerWidth} px`);
    for (const math of document.querySelectorAll('.math'))
        if (!math.querySelector('math') || math.querySelector('merror'))
            found.push(`has a formula that is not set: ${math.textContent}`);
    for (const image of document.querySelectorAll('.bd-article img'))
        if (!image.alt || image.alt.includes('/')) found.push(`has no words for ${image.src}`);
    for (const fold of document.querySelectorAll('summary[aria-label]'))
        found.push(`calls a fold "${fold.ariaLabel}", not by its title: ${fold.innerText}`);
    const all = selector => [...document.querySelectorAll(selector)];
    const seen = selector => all(selector).filter(element => element.checkVisibility());
    if (seen('h1').length !== 1) found.push(`has ${seen('h1').length} titles`);
    const searches = seen('.search-button__button, .search-button-field').length;
    if (searches > 1) found.push(`has ${searches} search boxes`);
    return found;
}"""

# What axe-core looks for, on each page and screen; and what it may find, with the reason: (rule,
# part of the element's selector). One that is found nowhere any more has to go.
AXE = """async script => {
    if (!window.axe) new Function(script).call(window);
    window.scrollTo(0, 0);  // nothing under the header that stays
    const values = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const options = {runOnly: {type: 'tag', values}, resultTypes: ['violations']};
    return (await axe.run(options)).violations.flatMap(({id, nodes}) =>
        nodes.map(node => [id, node.target.join(' '), node.failureSummary]));
}"""
KNOWN: dict[tuple[str, str], str] = {}


def browser_path() -> str:
    for name in filter(None, (os.environ.get("CHROMIUM"), *BROWSERS)):
        if path := shutil.which(name):
            return path
    sys.exit(
        "No Chromium or Chrome found: install one (Debian: apt install chromium) or set CHROMIUM."
    )


def serve(folder: Path) -> tuple[http.server.ThreadingHTTPServer, str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_) -> None:
            """Silence: a browser may leave a page before all of a file has come."""

    server = Server(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"


def written_addresses(folder: Path) -> list[str]:
    """Outside addresses that a page or a style sheet would load by itself."""
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".html", ".css"))
    return [
        f"{path.relative_to(folder)} would load {match[0][:120]}"
        for path in files
        for match in LOADS.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]


def look_at(page: Page, address: str, base: str) -> tuple[list[str], set[tuple[str, str]]]:
    """What is wrong with one page on one screen, and which of KNOWN it has."""
    found: list[str] = []
    listeners = {
        "request": lambda r: (
            r.url.startswith((base, "data:", "blob:")) or found.append(f"asks for {r.url}")
        ),
        "response": lambda r: r.status >= 400 and found.append(f"gets {r.status} for {r.url}"),
        "pageerror": lambda e: found.append(f"throws {e}"),
        "console": lambda m: m.type == "error" and found.append(f"logs an error: {m.text}"),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(address, wait_until="networkidle")
    found += page.evaluate(IN_THE_PAGE)
    barriers, known = shut_out(page)
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    return found + barriers, known


def shut_out(page: Page) -> tuple[list[str], set[tuple[str, str]]]:
    """What axe-core finds on a page, and which of KNOWN is among it."""
    found, known = [], set()
    for rule, target, summary in page.evaluate(AXE, AXE_SCRIPT):
        excuse = {key for key in KNOWN if key[0] == rule and key[1] in target}
        known |= excuse
        if not excuse:
            found.append(f"breaks {rule} at {target}: {' '.join(summary.split())[:200]}")
    return found, known


def look_at_all(browser: Browser, pages: list[str], base: str) -> list[str]:
    """Every page on every screen; one window for each screen, since to open one takes long."""
    complaints, known = [], set()
    for width, scheme in SCREENS:
        page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        page.route("**/*", lambda r: r.continue_() if r.request.url.startswith(base) else r.abort())
        for name in pages:
            found, seen = look_at(page, base + name, base)
            complaints += [f"{name} ({width} px, {scheme}) {what}" for what in found]
            known |= seen
        page.close()
    return complaints + [f"KNOWN lists {old}, which no page has" for old in KNOWN.keys() - known]


def main(site: Path = SITE) -> int:
    if not (site / "index.html").exists():
        sys.exit("There is no built site in _build/html: run make book first.")
    names = (path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    pages = sorted(name for name in names if not name.startswith("_static/"))
    complaints = written_addresses(site) + dead_links(site)
    server, base = serve(site)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        complaints += look_at_all(browser, pages, base)
        browser.close()
    server.shutdown()
    print(
        "\n".join(complaints)
        or f"{len(pages)} pages on {len(SCREENS)} screens: no outside host, no error, no barrier."
    )
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
