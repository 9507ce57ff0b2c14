import contextlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from website.browser import browser_path, chromium
from website.server import serve


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, whose pages know no limit of time; skips, with the reason, without one."""
    try:
        browser_path()
    except SystemExit as missing:
        pytest.skip(str(missing))
    with chromium() as browser:
        yield browser


@contextlib.contextmanager
def watched(page: Page, *own: str) -> Iterator[None]:
    """Fails on an error, on a request to what is not ``own``, on what is wider than the screen."""
    wrong: list[str] = []
    listeners = {
        "pageerror": lambda error: wrong.append(f"throws {error}"),
        "console": lambda message: wrong.append(f"logs {message.text}"),
        "request": lambda r: r.url.startswith((*own, "data:")) or wrong.append(f"asks {r.url}"),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    yield
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        wrong.append("is wider than the screen")
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    assert wrong == []


@pytest.fixture(scope="module")
def served():
    """Serves a folder until all tests of the module are done, and gives its address."""
    servers = {}

    def served(folder):
        if folder not in servers:
            servers[folder] = serve(folder)
        return servers[folder][1]

    yield served
    for server, _ in servers.values():
        server.shutdown()
        server.server_close()
