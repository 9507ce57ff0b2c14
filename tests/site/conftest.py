import pytest

from website.browser import browser_path, chromium


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; skips, with the reason, where there is none."""
    try:
        browser_path()
    except SystemExit as missing:
        pytest.skip(str(missing))
    with chromium() as browser:
        yield browser
