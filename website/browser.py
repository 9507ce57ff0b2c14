"""The Chromium or Chrome of this machine, without a window."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from playwright.sync_api import Browser, sync_playwright

# It can reach this machine and no other.
ARGUMENTS = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser_path() -> str:
    """Where it is: ``CHROMIUM`` says so, or it is looked for. Without one the program ends."""
    for name in filter(None, (os.environ.get("CHROMIUM"), *NAMES)):
        if path := shutil.which(name):
            return path
    sys.exit(
        "No Chromium or Chrome found: install one (Debian: apt install chromium) or set CHROMIUM."
    )


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that is closed in the end. Each thread needs one of its own.

    Its pages wait for what is asked of them as long as it takes: a busy machine is no error.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=ARGUMENTS, timeout=0
        )
        for name in ("new_context", "new_page"):
            setattr(browser, name, partial(_patient, getattr(browser, name)))
        try:
            yield browser
        finally:
            browser.close()


def _patient(make, **options):
    """A new context or page without a limit of time."""
    made = make(**options)
    made.set_default_timeout(0)
    return made
