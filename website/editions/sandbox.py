"""Pages for the PDF and the ePub, which can load what they are given and nothing else."""

import mimetypes
from pathlib import Path

import matplotlib
from playwright.sync_api import Browser, Page, Route

from website import ROOT

BASE = "http://book.invalid/"  # a name that no host can have
FOLDERS = {
    "fonts": ROOT / "website" / "static" / "fonts",  # those of the site, and for signs and code:
    "dejavu": Path(matplotlib.get_data_path()) / "fonts" / "ttf",
    "styles": ROOT / "website" / "editions",
}


def opened(browser: Browser, text: str, site: Path, **screen) -> tuple[Page, list[str]]:
    """A page with this HTML, and a list that fills with the files that it asks for in vain.

    ``site/…`` is the built site; :data:`FOLDERS` names the others.
    """
    page, missing = browser.new_page(**screen), []
    folders = FOLDERS | {"site": site}

    def answer(route: Route) -> None:
        address = route.request.url.removeprefix(BASE)
        folder, _, name = address.partition("/")
        path = folders.get(folder, ROOT / "no such folder") / name.partition("?")[0]
        if not address:
            route.fulfill(body=text, content_type="text/html; charset=utf-8")
        elif path.is_file():
            route.fulfill(path=path, content_type=mimetypes.guess_type(path)[0])
        elif not address.startswith("data:"):
            missing.append(f"{address} cannot be loaded")
            route.fulfill(status=404)

    page.route("**/*", answer)
    page.on("pageerror", lambda error: missing.append(f"throws {error}"))
    page.goto(BASE, wait_until="load")
    return page, missing
