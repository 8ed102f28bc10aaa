"""Servers that really serve, a browser that looks at them, and a little maze that a model walks through."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from cheesebench.protocol import Catalogue, Specification
from cheesebench.server.door import Serving

if TYPE_CHECKING:
    from playwright import sync_api as playwright

Scheme = Literal["light", "dark"]
Serve = Callable[[Serving], str]
Open = Callable[..., "playwright.Page"]

#: Straight on to the goal; whoever steps aside wastes the trial.
MAZE = """
version: 1
paradigm: little
title: A little maze
dimension: little learning
arena:
  map: |
    #######
    #S.C.G#
    #######
  legend: {S: box, C: cue, G: goal}
start: {at: box, face: E}
trial:
  limit: 12
  start: wait
  states:
    wait: {freeze: true, rules: [{after: 2, go: run}]}
    run:
      show: {cue: "*"}
      each: {reward: -0.01}
      rules:
        - {enter: goal, reward: 1, end: found}
schedule: {main: {sessions: 2, trials: 3}}
success: last == found
reference: [{measure: success, value: 0.5, status: made up}]
chance: {value: 0.125, trials: 100, how: counted}
"""


@pytest.fixture
def maze(tmp_path: Path) -> Specification:
    path = tmp_path / "little.protocol.yaml"
    path.write_text(MAZE, encoding="utf-8")
    return Catalogue().load(path).walkable()


@contextmanager
def serving_in_thread(serving: Serving) -> Iterator[str]:
    """Serve in a thread of its own; yield the address below the token."""
    ready, over = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    async def main() -> None:
        await serving.start()
        ready.set()
        await asyncio.to_thread(over.wait)
        await serving.stop()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(30)
    if failed:
        raise failed[0]
    try:
        yield serving.door.url(serving.port)
    finally:
        over.set()
        thread.join(30)
        assert not failed


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda serving: stack.enter_context(serving_in_thread(serving))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with sync_api.sync_playwright() as started:
        names = ("chromium", "chromium-browser", "google-chrome")
        found = next(filter(None, map(shutil.which, names)), started.chromium.executable_path)
        if not os.path.exists(found):
            pytest.skip("no Chromium here: apt-get install chromium, or playwright install chromium")
        browser = started.chromium.launch(executable_path=found)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: playwright.Browser) -> Iterator[Open]:
    """Open a page as somebody of their own; what it complains of, or asks of anybody else, fails the test."""
    contexts: list[playwright.BrowserContext] = []
    complaints: list[str] = []

    def open_page(url: str, width: int = 1400, scheme: Scheme = "light", **options: Any) -> playwright.Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        origin = "/".join(url.split("/")[:3])
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        allowed = (f"{origin}/", "data:")
        page.on("request", lambda request: None if request.url.startswith(allowed) else complaints.append(request.url))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
