import pytest

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
