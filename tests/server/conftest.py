"""Servers that really serve, a browser that visits them, and a little maze that a model
walks through.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.server.http_guard import Serving
from tests import chromium

if TYPE_CHECKING:
    from playwright import sync_api as playwright

Scheme = Literal["light", "dark"]
Serve = Callable[[Serving], str]
Open = Callable[..., "playwright.Page"]

#: Fetched for tests, and never shipped.
AXE = "axe-core@4.10.3"
#: The goal is straight ahead; stepping aside wastes the trial.
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
    specification: Specification = with_arena(Catalogue().load(path))
    return specification


@pytest.fixture
def lived() -> Callable[..., RunLog]:
    """Run an agent that needs no server in a maze; return the open log of the run."""

    def lived(
        results: Path,
        maze: Specification,
        name: str,
        model: str = "random",
        subjects: int = 4,
    ) -> RunLog:
        plugins = PluginManager()
        design, memory = find_design("cohort", subjects), plugins.agent(model).memory
        cells = [(plan_cell(maze, model, "ascii_2d", design, memory), maze)]
        log = RunLog.create(
            results,
            name,
            cells,
            options={"seed": 3, "design": "cohort", "subjects": subjects},
        )
        with RunSession(log, plugins, cells, seed=3, processes=0) as session:
            session.finish()
        return log

    return lived


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
        yield serving.guard.url(serving.port)
    finally:
        over.set()
        thread.join(30)
        assert not failed


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda serving: stack.enter_context(serving_in_thread(serving))


browser = chromium.browser


@pytest.fixture
def open_page(browser: playwright.Browser) -> Iterator[Open]:
    """Open a page in a private session. Complaints, and requests to other hosts, fail
    the test.

    ``expected`` is a regular expression for complaints that belong to the test (a
    server that is gone).
    """
    contexts: list[playwright.BrowserContext] = []
    complaints: list[str] = []

    def open_page(
        url: str,
        width: int = 1400,
        scheme: Scheme = "light",
        expected: str = "(?!)",
        **options: Any,
    ) -> playwright.Page:
        def complain(text: str) -> None:
            if not re.search(expected, text):
                complaints.append(text)

        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        origin = "/".join(url.split("/")[:3])
        page.on("console", lambda message: complain(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        allowed = (f"{origin}/", "data:")
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(allowed)
                else complaints.append(request.url)
            ),
        )
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def axe(request: pytest.FixtureRequest) -> str:
    """The code of axe-core, which finds accessibility problems of a page; from npm, for
    tests only.
    """
    given = os.environ.get("CHEESEBENCH_AXE")
    if given is not None:
        return Path(given).read_text(encoding="utf-8")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(
            "axe-core comes from npm, which is not installed; CHEESEBENCH_AXE can name its axe.min.js"
        )
    folder = Path(request.config.cache.mkdir("axe-core"))
    file = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not file.is_file():
        install = [
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
            str(folder),
            AXE,
        ]
        done = subprocess.run(
            install, capture_output=True, text=True, timeout=120, check=False
        )
        if not file.is_file():
            pytest.skip(f"npm cannot install {AXE}: {done.stderr[-200:]}")
    return file.read_text(encoding="utf-8")


@pytest.fixture
def check_axe(axe: str) -> Callable[[playwright.Page], None]:
    """Fail for every problem that axe-core finds in the present state of a page."""

    def check(page: playwright.Page) -> None:
        # The page's policy would forbid this as a script; the browser's debugger
        # evaluates code in this way.
        page.evaluate(axe)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        said = [
            f"{one['id']}: {one['help']}: {node['html'][:120]}"
            for one in found["violations"]
            for node in one["nodes"]
        ]
        assert said == [], page.url
        assert len(found["passes"]) > 5

    return check
