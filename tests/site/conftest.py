import pytest

from website.browser import browser_path, chromium


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, whose pages know no limit of time; skips, with the reason, without one."""
    try:
        browser_path()
    except SystemExit as missing:
        pytest.skip(str(missing))
    with chromium() as browser:
        yield browser
