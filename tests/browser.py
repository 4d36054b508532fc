"""A real browser, for those tests that look at pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

__all__ = ["opened"]

OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]


@contextmanager
def opened() -> Iterator[Any]:
    """Chromium, headless; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        try:  # the system's, or the one that `playwright install chromium` fetched
            path = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        except api.Error:
            pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
        yield browser
        browser.close()
