"""One run: the cells of a shard, the evidence, what is said while it waits, and what is
left behind.
"""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench import model_run
from cheesebench.api import given_options
from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment.earlier import read_earlier
from cheesebench.experiment.settings import read_settings
from cheesebench.ini_file import usual_protocols
from cheesebench.model_run import Cell, ModelRun
from cheesebench.plugin_manager import installed_plugins
from tests.reports.html.conftest import maze

TWO = ("little", "pool")


def prepared(results: Path, **options: Any) -> tuple[ModelRun, list[Cell], list[str]]:
    """Return a run of the model ``random`` that is not open, its cells, and what it
    says.
    """
    files = [maze(results.parent, name).path for name in TWO]
    given = given_options(
        "random",
        files,
        (),
        **{"results": results, "seed": 4, "subjects": 2, "processes": 1} | options,
    )
    plugins, said = installed_plugins(), list[str]()
    values = given.resolve()
    earlier = read_earlier(plugins, Path(values.results), values.resume, ["random"])
    settings = read_settings(given, plugins, Path(), earlier, usual_protocols())
    work = ModelRun(settings, plugins, earlier, said.append)
    return work, work.of_shard(list(settings.planned(work.catalogue))), said


def test_a_run_from_its_settings_to_its_log(tmp_path: Path) -> None:
    work, cells, said = prepared(tmp_path / "runs", run_id="first")
    assert [plan.protocol for plan, _ in cells] == list(TWO)
    assert (work.is_worker, work.is_complete) == (False, False)
    work.open(cells)
    assert (work.is_worker, work.is_complete) == (False, False)
    work.session(cells)
    polls = list[object]()
    work.start_all()
    for plan, _ in cells:
        work.wait(plan, polls.append)
        assert work.is_over(plan)
        assert work.progress(plan).done == 2 * plan.trials
        assert [len(rows) for rows in work.trials_by_subject(plan)] == [plan.trials] * 2
        assert work.calls(plan) is None
        assert work.causes(plan) == ()
        # A changed plan is judged by the recorded one, an unknown one as it is.
        assert work.as_logged(dataclasses.replace(plan, margin=0.9)) == plan
        other = dataclasses.replace(plan, model="other")
        assert work.as_logged(other) is other
    assert (work.is_complete, said) == (True, [])
    work.close()
    assert (work.is_complete, work.log, said) == (False, None, [])


def test_a_resumed_run_is_claimed_while_it_goes_on(tmp_path: Path) -> None:
    work, cells, _ = prepared(tmp_path / "runs", run_id="first")
    work.open(cells)
    work.close()
    again, cells, _ = prepared(tmp_path / "runs", resume="first")
    again.open(cells)
    rival, _, _ = prepared(tmp_path / "runs", resume="first")
    with pytest.raises(RunLogError, match="first"):
        rival.open(cells)
    again.close()
    rival.open(cells)
    rival.close()


def test_a_run_that_cannot_be_resumed_is_closed(tmp_path: Path) -> None:
    work, cells, _ = prepared(tmp_path / "runs", run_id="first")
    work.open(cells)
    work.close()
    again, cells, _ = prepared(tmp_path / "runs", resume="first")
    changed = [(dataclasses.replace(plan, trials=1), text) for plan, text in cells]
    with pytest.raises(RunLogError):
        again.open(changed)
    assert again.log is None
    with sqlite3.connect(tmp_path / "runs" / "first" / "run.sqlite", timeout=0) as log:
        log.execute("BEGIN EXCLUSIVE")


def test_a_shard_has_its_own_cells_and_records_all(tmp_path: Path) -> None:
    parts = []
    for shard in ("1/2", "2/2"):
        work, cells, _ = prepared(tmp_path / "runs", run_id=f"s{shard[0]}", shard=shard)
        parts.append([plan.key for plan, _ in cells])
        assert [plan.protocol for plan, _ in work.whole] == list(TWO)
        work.open(cells)
        assert work.log is not None
        assert sorted(work.log.manifest["protocols"]) == sorted(TWO)
        assert [plan.key for plan in work.log.plans()] == parts[-1]
        work.close()
    assert all(parts)
    assert not set(parts[0]) & set(parts[1])
    whole, cells, _ = prepared(tmp_path / "runs")
    assert {*parts[0], *parts[1]} == {plan.key for plan, _ in cells}
    assert whole.whole == []


def test_several_verdicts_need_more_evidence_each(tmp_path: Path) -> None:
    def goals(**options: Any) -> list[float]:
        work, cells, _ = prepared(tmp_path / "runs", subjects=20, **options)
        work.open(cells)
        assert work.log is not None
        found = [plan.goal for plan in work.log.plans()]
        work.close()
        return found

    alone = goals(run_id="alone")
    together = goals(run_id="together", familywise=True)
    assert together == [2 * goal for goal in alone]
    # Each shard counts the cells of all of them.
    part = goals(run_id="part", familywise=True, shard="1/2")
    assert part == together[:1]


def test_a_control_without_anything_to_remove_is_refused(tmp_path: Path) -> None:
    work, cells, _ = prepared(tmp_path / "runs", control=["hide=landmarks"])
    with pytest.raises(OptionError) as raised:
        work.open(cells)
    said = "--control hide=landmarks: these protocols have nothing for it to remove. In"
    assert str(raised.value) == f"{said} little there are no landmarks."
    assert not (tmp_path / "runs").exists()


class Waiting:
    """A session whose only cell is over at the ``n``-th look, of a silent server."""

    def __init__(self, looks: int, silences: Sequence[float] = (), said: str = ""):
        self.looks, self.silences, self.said = looks, list(silences), said
        self.stopped = self.closed = 0

    def wait(self, plan: object, seconds: float) -> bool:
        assert seconds in (0, model_run.POLL_SECONDS)
        self.looks -= 1
        if self.looks == -99:
            raise KeyboardInterrupt
        return self.looks <= 0

    def progress(self, plan: object) -> str:
        return f"{self.looks} left"

    def silence(self) -> tuple[str, float, str] | None:
        return ("lab/a", self.silences.pop(0), self.said) if self.silences else None

    def stop_sending(self) -> None:
        self.stopped += 1

    def close(self) -> None:
        self.closed += 1


def waiting(tmp_path: Path, runner: Any, news: Sequence[str] = ()) -> tuple[Any, Any]:
    said = list[str]()
    work, _, _ = prepared(tmp_path / "runs")
    work._tell_at_once = said.append
    work._runner = runner
    work.language = SimpleNamespace(news=lambda: list(news))  # type: ignore[assignment]
    return work, said


def test_each_look_shows_the_progress(tmp_path: Path) -> None:
    work, said = waiting(tmp_path, Waiting(3))
    seen = list[object]()
    work.wait(None, seen.append)
    assert (seen, said) == (["2 left", "1 left"], [])


def test_a_silence_is_said_after_a_minute_and_then_every_four(tmp_path: Path) -> None:
    silences = [59.9, 60.0, 100.0, 299.9, 300.0, 540.0, 3.0, 61.0]
    work, said = waiting(tmp_path, Waiting(99, silences))
    spoken = []
    for _ in range(len(silences) + 1):
        before = len(said)
        work.mention_silence()
        spoken.append(len(said) > before)
    assert spoken == [False, True, False, False, True, True, False, True, False]
    assert said[0] == "cheesebench: no reply from 'lab/a' for 60 s"


def test_a_silence_has_its_cause_and_news_come_first(tmp_path: Path) -> None:
    work, said = waiting(
        tmp_path, Waiting(99, [75.0], " (HTTP 503). It waits."), ["the server has died"]
    )
    work.mention_silence()
    assert said[0] == "cheesebench: the server has died"
    assert (
        said[1] == "cheesebench: no reply from 'lab/a' for 75 s (HTTP 503). It waits."
    )


def test_after_ctrl_c_no_call_is_made(tmp_path: Path) -> None:
    runner = Waiting(2)

    def interrupted(progress: object) -> None:
        raise KeyboardInterrupt

    work, _ = waiting(tmp_path, runner)
    with pytest.raises(KeyboardInterrupt):
        work.wait(None, interrupted)
    assert (runner.stopped, runner.closed) == (1, 0)
    work.stop()
    work.stop()
    work.stop_sending()
    assert (runner.stopped, runner.closed) == (1, 1)


def test_a_cell_whose_error_waits_to_be_told_is_over(tmp_path: Path) -> None:
    def broken(plan: object, seconds: float) -> bool:
        raise RunLogError("disk full")

    work, _ = waiting(tmp_path, SimpleNamespace(wait=broken))
    assert work.is_over(None)
    work._runner = Waiting(9)
    assert not work.is_over(None)


@pytest.mark.parametrize("log_file", [False, True])
def test_a_run_that_cannot_begin_leaves_only_what_explains_it(
    tmp_path: Path, log_file: bool
) -> None:
    work, cells, _ = prepared(tmp_path / "runs", run_id="new")
    work.open(cells)
    stopped = list[str]()
    work._servers = {"lab/a": SimpleNamespace(stop=lambda: stopped.append("a"))}
    if log_file:
        (tmp_path / "runs" / "new" / "server.log").write_text("out of memory")
    with pytest.raises(OptionError, match="no key"), work.nothing_left_behind():
        raise OptionError("no key")
    assert (stopped, work.log) == (["a"], None)
    assert (tmp_path / "runs" / "new").exists() is log_file


def test_an_old_run_is_never_removed(tmp_path: Path) -> None:
    work, cells, _ = prepared(tmp_path / "runs", run_id="old")
    work.open(cells)
    work.close()
    again, cells, _ = prepared(tmp_path / "runs", resume="old")
    again.open(cells)
    with pytest.raises(OptionError, match="no key"), again.nothing_left_behind():
        raise OptionError("no key")
    assert (tmp_path / "runs" / "old" / "run.sqlite").exists()


def test_the_log_is_closed_even_if_a_server_cannot_be_stopped(tmp_path: Path) -> None:
    work, cells, _ = prepared(tmp_path / "runs", run_id="new")
    work.open(cells)

    def stop() -> None:
        raise OSError("will not die")

    work._servers = {"lab/a": SimpleNamespace(stop=stop)}
    with pytest.raises(Exception, match="will not die"):
        work.close()
    assert work.log is None
    again, cells, _ = prepared(tmp_path / "runs", resume="new")
    again.open(cells)  # It is not claimed any more.
    again.close()
