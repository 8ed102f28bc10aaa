"""What a run of Python has and says, apart from its records."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.api import names_of, plugins_with, teller
from cheesebench.errors import OptionError, UnknownNameError

SHORT: dict[str, Any] = {
    "protocols": "operant_chamber",
    "design": "smoke",
    "subjects": 1,
    "progress": False,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> cheesebench.Run:
    folder = tmp_path_factory.mktemp("results")
    return cheesebench.run("random", seed=1, results=folder, run_id="mine", **SHORT)


def test_a_run_as_text_and_as_a_page(made: cheesebench.Run, tmp_path: Path) -> None:
    assert made.html() == made.directory / "report.html"
    other = tmp_path / "own.html"
    assert made.html(other) == other
    assert other.read_text("utf-8") == made.report("html")
    with pytest.raises(OptionError, match=r"cannot be written: .* Name a file in an"):
        made.html(tmp_path)


def test_the_journal_says_what_happened(made: cheesebench.Run) -> None:
    journal = made.journal()
    assert "started" in {*journal["kind"]}
    assert len(journal) > 1


def test_a_trial_of_the_only_subject(made: cheesebench.Run) -> None:
    frames = made.trial().frames
    assert (
        repr(frames)
        == f"<{len(frames)} frames; for frame in trial.frames: print(frame.observation) draws all>"
    )
    with pytest.raises(OptionError, match="the cell has only subject 0"):
        made.trial(subject=1)


def test_a_table_that_there_is_not(made: cheesebench.Run) -> None:
    with pytest.raises(UnknownNameError, match="There is no table 'trails'"):
        made.table("trails")


def test_a_coroutine_makes_the_same_run(made: cheesebench.Run, tmp_path: Path) -> None:
    run = asyncio.run(
        cheesebench.run_async("random", seed=1, results=tmp_path, **SHORT)
    )
    assert run.trials().shape == made.trials().shape
    assert run.verdicts()["verdict"].tolist() == made.verdicts()["verdict"].tolist()


def test_a_run_that_is_over_says_so(made: cheesebench.Run) -> None:
    told: list[str] = []
    again = {**SHORT, "progress": told.append}
    run = cheesebench.run(
        "random", seed=1, results=made.directory.parent, resume="mine", **again
    )
    assert run.directory == made.directory
    assert "Nothing was left to run in 'mine'" in told[-1]


def test_a_profile_gives_what_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.cheesebench.profiles.quick]\nseed = 7\ndesign = "smoke"\n'
        'protocols = "operant_chamber"\nsubjects = 3\n',
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    plan = cheesebench.plan("random", profile="quick", subjects=1)
    assert [cell.plan.subjects for cell in plan.cells] == [1]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("a", ["a"]),
        (Path("a/b"), [os.fspath(Path("a/b"))]),
        (["a", Path("b")], ["a", "b"]),
    ],
)
def test_one_name_or_several(given: Any, names: list[str]) -> None:
    assert names_of(given) == names


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"sede": 3}, "sede= is not an option of a run. Did you mean 'seed'?"),
        ({"junit": 3}, "junit= is not an option of a run. Remove it."),
    ],
)
def test_an_option_that_there_is_not(option: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        cheesebench.run("random", "t_maze", **option)
    assert said in str(caught.value)


def test_who_tells_of_the_progress() -> None:
    told: list[str] = []
    teller(told.append)("one")
    assert told == ["one"]
    teller(False)("two")
    teller(None)("three")
    assert told == ["one"]


def test_the_plugins_of_a_run_are_those_that_it_was_made_with(
    made: cheesebench.Run,
) -> None:
    assert plugins_with((), made) is plugins_with((), made)
    assert plugins_with(()) is not plugins_with(())
