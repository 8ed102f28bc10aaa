"""Baselines: a run's counts as a file that is read back, and what is no baseline."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import cheesebench
from cheesebench import baselines
from cheesebench.errors import RunLogError
from cheesebench.records import Measured
from cheesebench.statistics.comparison import CellCounts, CountedRun
from cheesebench.statistics.sample import SubjectScore
from cheesebench.verification import replay_counted
from fuzz.run_logs import rewritten
from tests.cli.conftest import MAZE

CELL = CellCounts(
    model="m", protocol="p", view="v", variant="", title="P", sha256="0", design="cohort", trials=20, estimand="all",
    subjects={0: SubjectScore(18, 20, 0, "a"), 3: SubjectScore(1.5, 19, 1, "b")}, agent="llm",
    settings={"history": 3, "stop": ["x"]},
)  # fmt: skip
MEASURED = replace(
    CELL, protocol="q", measured=Measured(name="latency", better="lower", range=(0.0, 9.0)), margin=0.5, animals=4.0,
    doubts=("one", "two"), untested="because", sequential=True,
)  # fmt: skip
RUN = CountedRun(
    name="main", seed=7, cells=(CELL, MEASURED), manifest={"run_id": "r", "git": None}
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "main.json"
    path.write_text(baselines.baseline_text(RUN), encoding="utf-8")
    return path


def test_a_baseline_is_read_back_as_it_was(path: Path) -> None:
    assert baselines.read_counted(path) == RUN
    assert replay_counted(path) == ""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[:6] == [
        "{",
        ' "cheesebench_baseline": 1,',
        ' "name": "main",',
        ' "seed": 7,',
        ' "manifest": {"run_id":"r","git":null},',
        ' "cells": [',
    ]
    assert lines[8:] == [" ]", "}"]
    assert [line.startswith('  {"model":"m",') for line in lines[6:8]] == [True, True]
    plain, measured = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert plain["subjects"] == [[0, 18, 20, 0, "a"], [3, 1.5, 19, 1, "b"]]
    rare = {"measured", "margin", "animals", "doubts", "untested"}
    assert not rare & plain.keys()
    assert rare <= measured.keys()


def change(path: Path, **changes: object) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | changes), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cheesebench_baseline": 2}, "is a baseline of format 2; this CheeseBench reads 1."),
        ({"cheesebench_baseline": None}, "is not a baseline. Make it anew from a run, and commit it: cheesebench bless RUN "),
        ({"cells": [{}]}, "is a damaged baseline (KeyError('subjects'))."),
        ({"cells": 3}, "is a damaged baseline (TypeError"),
        ({"cells": [{"subjects": [[0, "x", 1, 0, "a"]]}]}, "a subject's counts are ('x', 1, 0)"),
        ({"cells": [{"subjects": [[0, 1, 1, 0, 5]]}]}, "a subject's counts are (1, 1, 0)"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_said(
    path: Path, changes: dict[str, object], said: str
) -> None:
    change(path, **changes)
    with pytest.raises(RunLogError) as caught:
        baselines.read_baseline(path)
    assert str(caught.value).startswith(f"{path} is ")
    assert said in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_baseline_with_a_merge_conflict_is_to_be_made_anew(
    path: Path, end: str
) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    torn = [*lines[:3], "<<<<<<< HEAD", lines[3], "=======", lines[3], ">>>>>>> topic"]
    path.write_text(end.join([*torn, *lines[4:]]), encoding="utf-8", newline="")
    with pytest.raises(RunLogError) as caught:
        baselines.read_baseline(path)
    assert str(caught.value) == (
        f"{path} has the marks of a merge conflict of git. Make it anew from a run of the merged commit, and commit it: "
        "cheesebench bless RUN main"
    )


@pytest.mark.parametrize(("text", "said"), [("{", "cannot be read"), ("[]", "is not")])
def test_what_is_no_object_is_no_baseline(path: Path, text: str, said: str) -> None:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RunLogError, match=said):
        baselines.read_baseline(path)


def test_a_baseline_is_found_by_name_or_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, results = path.parent, path.parent / "results"
    monkeypatch.chdir(folder)
    assert baselines.locate_counted(results, "main", folder) == path
    assert baselines.locate_counted(results, "main.json") == path
    with pytest.raises(RunLogError) as caught:
        baselines.locate_counted(results, "mian", folder)
    assert str(caught.value) == (
        f"There is no baseline or run 'mian'. Did you mean 'main'? Baselines in {folder}: main."
    )
    with pytest.raises(RunLogError) as caught:
        baselines.locate_counted(results, "other")
    assert str(caught.value) == (
        "There is no baseline or run 'other'. There is no baseline in baselines. Make a run (pytest --model MODEL "
        "--design cohort --run-id RUN), bless it (cheesebench bless RUN other), and commit baselines/other.json."
    )
    with pytest.raises(
        RunLogError,
        match=r"cheesebench bless RUN NAME\), and commit baselines.NAME\.json\.$",
    ):
        baselines.locate_counted(results, "results/other")


def test_what_is_missing_is_named_cell_by_cell() -> None:
    whole = replace(CELL, subjects={0: SubjectScore(1, 20, 0, "a")})
    two = replace(MEASURED, subjects={0: SubjectScore(1, 18, 2, "a")})
    nothing = replace(CELL, protocol="r", subjects={0: SubjectScore(0, 0, 20, "a")})
    run = replace(RUN, cells=(CELL, whole, two, nothing))
    assert list(baselines.incomplete(run)) == [
        "p in v has 1 missing trial",
        "q in v has 2 missing trials",
        "nothing was measured on r in v",
    ]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of a run of the random agent, 8 trials."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "little.protocol.yaml").write_text(MAZE, encoding="utf-8")
    cheesebench.run(
        "random", ["little.protocol.yaml"], design="cohort", subjects=2, seed=0, run_id="one", progress=False
    )  # fmt: skip
    return tmp_path / "results" / "one" / "run.sqlite"


def test_the_trials_that_a_comparison_needs_are_replayed(log: Path) -> None:
    told: list[str] = []
    found = baselines.compare_files(log, log, tell=told.append)
    assert found.first == "one"
    [said] = told
    assert said.startswith("Replayed: one, 8 trials in ")
    path = log.parent / "base.json"
    counted = baselines.read_counted(log)
    assert (counted.name, counted.seed, len(counted.cells)) == ("one", 0, 1)
    assert set(counted.manifest) == {
        "run_id",
        "created",
        "versions",
        "git",
        "options",
        "plugins",
    }
    path.write_text(
        baselines.baseline_text(replace(counted, name="base")), encoding="utf-8"
    )
    found = baselines.compare_files(path, log, tell=told.append)
    assert (found.first, found.second) == ("base", "one")
    again = "Replayed: one, 8 trials earlier in this session, and the log is the same."
    assert told[1:] == [again]
    assert baselines.compare_files(path, path).second == "base"
    assert len(told) == 2


def test_only_cells_that_are_asked_for_and_of_this_version_are_replayed(
    log: Path,
) -> None:
    assert replay_counted(log, ()).startswith("Replayed: one, 0 trials in ")
    lines: list[str] = []
    said = replay_counted(log, progress=lines.append)
    assert said.startswith("Replayed: one, 8 trials in ")
    assert lines[-1] == "Replaying one: 8 trials"
    assert len(lines) > 1
    count = len(lines)
    assert replay_counted(log, None, lines.append).endswith("the log is the same.")
    assert len(lines) == count, "not replayed again"
    with rewritten(log) as connection:
        [(text,)] = connection.execute(
            "SELECT value FROM manifest WHERE key = 'versions'"
        ).fetchall()
        versions = json.loads(text) | {"cheesebench": "0.0.1"}
        connection.execute(
            "UPDATE manifest SET value = ? WHERE key = 'versions'",
            (json.dumps(versions),),
        )
    said = "Not replayed: one, which CheeseBench 0.0.1 wrote."
    assert replay_counted(log) == said
    with rewritten(log) as connection:
        connection.execute("UPDATE manifest SET value = '{}' WHERE key = 'versions'")
    assert replay_counted(log) == said.replace("0.0.1", "unknown")
