import jaxtyping
import pytest
from playwright.sync_api import sync_playwright

from tools.site_check import browser_path


@pytest.fixture
def unchecked():
    """Switch the run-time check of annotations off, so that a test meets the code's own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; skips, with the reason, where there is none."""
    try:
        path = browser_path()
    except SystemExit as missing:
        pytest.skip(str(missing))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
