"""A Chromium for the tests of pages. Without it or Playwright, they are skipped with a
reason.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright import sync_api as playwright


# Module scope at most: while Playwright is running, this thread counts as having an
# event loop, and every asyncio.run() of a later test in the same process would be
# refused.
@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    """Start the installed browser, or else Playwright's own, and close it
    at the end.
    """
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed"
    )
    with sync_api.sync_playwright() as started:
        names = ("chromium", "chromium-browser", "google-chrome")
        found = next(
            filter(None, map(shutil.which, names)), started.chromium.executable_path
        )
        if not os.path.exists(found):
            pytest.skip(
                "no Chromium here: apt-get install chromium, or playwright install chromium"
            )
        browser = started.chromium.launch(executable_path=found)
        yield browser
        browser.close()
