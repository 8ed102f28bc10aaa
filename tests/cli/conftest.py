"""An empty working directory, a small protocol, and the command, called in this
process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cheesebench import verification
from cheesebench.cli import main
from cheesebench.experiment import log_file
from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena

RUN = "20250131-093000-ab12"

MAZE = """
version: 1
paradigm: little
dimension: patience
arena:
  map: |
    #######
    #S.C.G#
    #######
  legend: {S: box, C: cue, G: goal}
  landmarks: {N: "1"}
start: {at: box, face: E}
trial:
  limit: 9
  start: wait
  states:
    wait: {freeze: true, say: "...", rules: [{after: 2, go: run}]}
    run:
      show: {cue: "*"}
      rules:
        - {enter: goal, reward: 1, count: visits, end: found}
schedule: {main: {sessions: 2, trials: 2}}
success: last == found
measures: {latency: steps / 2}
reference: [{measure: success, value: 0.75, status: made up}]
chance: {value: 0.125, trials: 100, how: counted}
tests: [{visit: goal, expect: {outcome: found}}]
"""


@dataclass(frozen=True)
class Result:
    """The result of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def maze() -> str:
    """The text of the protocol ``little``."""
    return MAZE


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which no cell of a table is wrapped."""
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the protocol ``little`` in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "little.protocol.yaml").write_text(MAZE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``cheesebench`` with these arguments."""

    def run(*arguments: object) -> Result:
        log_file.OPENED.clear()  # as in a process of the command's own
        verification.REPLAYED.clear()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def below_a_loop(run: Run) -> Run:
    """Run ``cheesebench`` inside a running event loop, as in a notebook."""

    async def running(*arguments: object) -> Result:
        return run(*arguments)

    return lambda *arguments: asyncio.run(running(*arguments))


@pytest.fixture
def results(here: Path) -> Path:
    """The directory of a run of the random agent: two subjects through ``little``."""
    plugins = installed_plugins()
    specification = with_arena(Catalogue().load(here / "little.protocol.yaml"))
    plan = plan_cell(
        specification,
        "random",
        "ascii_2d",
        find_design("cohort", 2),
        plugins.agent("random").memory,
    )
    cells = [(plan, specification)]
    with RunLog.create(
        here / "results",
        RUN,
        cells,
        options={"seed": 0, "design": "cohort", "subjects": 2},
    ) as log:
        with RunSession(log, plugins, cells, seed=0, processes=0) as session:
            session.finish()
        assert len(log.trials()) == 8
    return here / "results"


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two installed distributions: one supplies the protocols in the returned
    directory, the other is broken.
    """
    site = tmp_path / "site"
    protocols = site / "strange_protocols"
    protocols.mkdir(parents=True)
    (site / "strange.py").write_text(
        f"from pathlib import Path\ndef cheesebench_protocols(): return [Path({str(protocols)!r})]\n",
        encoding="utf-8",
    )
    (site / "broken.py").write_text(
        "raise RuntimeError('out of\\x1b[2J cheese')\n", encoding="utf-8"
    )
    for name in ("strange", "broken"):
        metadata = site / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
        (metadata / "entry_points.txt").write_text(
            f"[cheesebench]\n{name} = {name}\n", encoding="utf-8"
        )
    monkeypatch.syspath_prepend(site)
    installed_plugins.cache_clear()
    yield protocols
    for name in ("strange", "broken"):
        sys.modules.pop(name, None)
    installed_plugins.cache_clear()
