"""Open every page of the built site in headless Chromium: ``make site-check``.

Each page is loaded twice, on a wide light screen and on a narrow dark one, with all that can be
unfolded unfolded. It fails when a page asks another host for anything, misses a file, logs an
error, is wider than the screen, or has a formula that MathJax could not set, or a picture or a fold
without words.
"""

import http.server
import os
import re
import shutil
import sys
import threading
from functools import partial
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tools.chapters import ROOT

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
    if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
    window.scrollTo(0, document.body.scrollHeight);
    const found = [];
    const width = document.documentElement.scrollWidth;
    if (width > window.innerWidth) found.push(`is ${width} px wide on ${window.innerWidth} px`);
    for (const error of document.querySelectorAll('mjx-merror'))
        found.push(`has a formula in error: ${error.textContent}`);
    for (const math of document.querySelectorAll('.math'))
        if (!math.querySelector('mjx-container')) found.push(`shows raw TeX: ${math.textContent}`);
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


def look_at(page: Page, address: str, base: str) -> list[str]:
    """What is wrong with one page on one screen."""
    found: list[str] = []
    page.on(
        "request",
        lambda r: r.url.startswith((base, "data:", "blob:")) or found.append(f"asks for {r.url}"),
    )
    page.on("response", lambda r: r.status >= 400 and found.append(f"gets {r.status} for {r.url}"))
    page.on("pageerror", lambda e: found.append(f"throws {e}"))
    page.on("console", lambda m: m.type == "error" and found.append(f"logs an error: {m.text}"))
    page.goto(address, wait_until="networkidle")
    return found + page.evaluate(IN_THE_PAGE)


def main() -> int:
    if not (SITE / "index.html").exists():
        sys.exit("There is no built site in _build/html: run make book first.")
    names = (path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    pages = sorted(name for name in names if not name.startswith("_static/"))
    complaints = written_addresses(SITE)
    server, base = serve(SITE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        for width, scheme in SCREENS:
            for name in pages:
                page = browser.new_page(
                    viewport={"width": width, "height": 844}, color_scheme=scheme
                )
                page.route(
                    "**/*", lambda r: r.continue_() if r.request.url.startswith(base) else r.abort()
                )
                complaints += [
                    f"{name} ({width} px, {scheme}) {what}"
                    for what in look_at(page, base + name, base)
                ]
                page.close()
        browser.close()
    server.shutdown()
    print(
        "\n".join(complaints)
        or f"{len(pages)} pages on {len(SCREENS)} screens: no outside host, no error."
    )
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
