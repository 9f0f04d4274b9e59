"""The system's browser, driven by Playwright: nothing is downloaded."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]


def browser_path() -> str | None:
    """Where the browser is, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window; the test is skipped where there is none, unless FAIRWAVE_BROWSER=required."""
    found = browser_path()
    if found is None:
        if os.environ.get("FAIRWAVE_BROWSER") == "required":
            pytest.fail("no browser, though FAIRWAVE_BROWSER=required")
        pytest.skip("no Chromium on this machine; install it to test the page")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=QUIET)
        yield browser
        browser.close()
