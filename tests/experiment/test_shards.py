"""Shards: how cells are dealt, which shards fit together, and what a merge copies."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.shards import (
    Shard,
    deal,
    describe_shard,
    merge_runs,
    read_shard,
)
from cheesebench.interfaces import TaskEvent
from cheesebench.records import CellPlan
from fuzz.run_logs import rewritten
from tests.experiment.recorded import record

Cut = Callable[..., Path]
EVENTS = [TaskEvent(1, "run", "enter", "p:3")]


def plans(stranger: ModuleType, *sizes: int) -> list[CellPlan]:
    [plan] = stranger.cells(["walker"])
    return [
        dataclasses.replace(plan, protocol=f"p{number}", subjects=size, trials=1)
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("text", "index", "of"),
    [("1/1", 1, 1), ("2/8", 2, 8), ("100000/100000", 100_000, 100_000)],
)
def test_a_shard_is_written_and_read(text: str, index: int, of: int) -> None:
    shard = Shard.parse(text)
    assert (shard.index, shard.of, str(shard)) == (index, of, text)
    for wrong in (f"0/{of}", f"{of + 1}/{of}", f"{index}/100001", text + "x"):
        with pytest.raises(OptionError, match=r"from 1/N to N/N, for example 2/8"):
            Shard.parse(wrong)


def test_large_cells_are_dealt_first_and_to_the_lightest(stranger: ModuleType) -> None:
    cells = plans(stranger, 3, 9, 5, 4, 0, 0)

    def dealt(of: int) -> dict[str, list[str]]:
        return {
            str(shard): [plan.protocol for plan in own]
            for shard, own in deal(cells, of).items()
        }

    assert dealt(1) == {"1/1": [f"p{n}" for n in range(6)]}
    assert dealt(2) == {"1/2": ["p0", "p1"], "2/2": ["p2", "p3", "p4", "p5"]}
    assert sum(map(len, dealt(3).values())) == 6
    many = dealt(9)
    assert len(many) == 6
    assert all(len(own) == 1 for own in many.values())
    assert many["1/9"] == ["p1"]
    assert Shard(1, 9).part(cells) == [cells[1]]
    assert Shard(8, 9).part(cells) == []
    assert deal([], 3) == {}


def test_a_manifest_has_the_cells_of_all_shards(stranger: ModuleType) -> None:
    cells = plans(stranger, 1, 2)
    manifest = {"run_id": "r", **describe_shard(Shard(2, 3), cells)}
    assert read_shard(manifest) == (Shard(2, 3), cells)
    assert read_shard({"run_id": "r"}) is None
    entry: dict[str, Any] = manifest["shard"]
    for changes in (
        {"index": 4},
        {"cells": entry["cells"] * 2},
        {"cells": 3},
        {"cells": ["{"]},
        {"of": None},
    ):
        with pytest.raises(
            RunLogError, match="The manifest of run 'r' has no valid shard"
        ):
            read_shard({**manifest, "shard": {**entry, **changes}})


@pytest.fixture
def cut(stranger: ModuleType, tmp_path: Path) -> Cut:
    """Make a shard of a run of two cells, each with one trial."""

    def cut(index: int, of: int = 2, name: str = "", **options: Any) -> Path:
        cells = stranger.cells(["walker", "talker"])
        shard = Shard(index, of)
        own = shard.part(list(cells))
        named = name or f"part{index}"
        given = {"seed": 1, "shard": str(shard), **options}
        more = describe_shard(shard, list(cells))
        with RunLog.create(
            tmp_path / "parts",
            named,
            [(plan, cells[plan]) for plan in own],
            options=given,
        ) as log:
            log.add_to_manifest(more)
            for plan in own:
                log.write_trial(record(plan, 1, 0), EVENTS)
                log.write_life(plan, 1, 1)
                log.note("kept", f"by {named}", plan, 1)
        return tmp_path / "parts" / named / "run.sqlite"

    return cut


def test_a_full_disk_is_no_damage_of_a_shard(
    cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [cut(1), cut(2)]
    for part in parts:
        with rewritten(part) as shard:
            shard.execute(
                "UPDATE trials SET variables = json_object('x', hex(zeroblob(50000)))"
            )
    write_new = RunLog.write_new

    def on_a_small_disk(*arguments: Any, **options: Any) -> RunLog:
        log = write_new(*arguments, **options)
        [(pages,)] = log._connection.execute("PRAGMA page_count")
        log._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        return log

    monkeypatch.setattr(RunLog, "write_new", on_a_small_disk)
    with pytest.raises(RunLogError, match="the disk is full") as caught:
        merge_runs(parts, tmp_path / "results", "all")
    assert "parts" not in str(caught.value)


def test_shards_in_any_order_become_one_run(cut: Cut, tmp_path: Path) -> None:
    seen: list[Path] = []
    twice = cut(1).parent / ".." / "part1" / "run.sqlite"
    parts = [cut(2), twice, twice.resolve()]
    merged = merge_runs(
        parts, tmp_path / "out", "all", lambda log: seen.append(log.directory)
    )
    assert merged.path == tmp_path / "out" / "all" / "run.sqlite"
    assert (merged.parts, merged.cells, merged.missing) == (2, 2, {})
    assert len(seen) == 1
    assert seen[0].parent.name.endswith(".draft")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["all"]
    with RunLog.open_read_only(merged.path) as log:
        log.verify()
        assert [plan.model for plan in log.plans()] == ["walker", "talker"]
        trials = [(one.model, one.subject) for one in log.trials()]
        assert trials == [("talker", 1), ("walker", 1)]
        assert [log.events(one) for one in log.trials()] == [tuple(EVENTS)] * 2
        assert [log.completed_subjects(plan) for plan in log.plans()] == [
            {1: 1},
            {1: 1},
        ]
        assert {entry.text for entry in log.journal(kind="kept")} == {
            "by part1",
            "by part2",
        }
        assert "merged from 2 of 2 shards" in [
            entry.text for entry in log.journal(kind="created")
        ]
        manifest = log.manifest
        assert (
            manifest["run_id"],
            manifest["options"]["shard"],
            "shard" in manifest,
        ) == ("all", None, False)
    with pytest.raises(RunLogError, match="Run 'all' already exists"):
        merge_runs([cut(1, name="y"), cut(2, name="z")], tmp_path / "out", "all")


def test_missing_shards_are_named(cut: Cut, tmp_path: Path) -> None:
    merged = merge_runs([cut(2)], tmp_path / "out")
    assert (merged.parts, merged.cells) == (1, 2)
    assert [(str(shard), len(cells)) for shard, cells in merged.missing.items()] == [
        ("1/2", 1)
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 2}, "seed is 1 and 2"),
        ({"view": ["x"]}, "view is not given and ['x']"),
        ({"of": 3}, "is one of 2 shards, shard 2/3 (part2) one of 3"),
        ({"index": 1, "name": "again"}, "Shard 1/2 is there twice: shard 1/2 ("),
    ],
)
def test_only_shards_of_one_command_are_merged(
    cut: Cut, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(RunLogError) as caught:
        merge_runs([cut(1), cut(**({"index": 2} | change))], tmp_path / "out")
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


def manifest_of(path: Path, key: str, change: Callable[[Any], Any]) -> None:
    with rewritten(path) as connection:
        [(text,)] = connection.execute(
            "SELECT value FROM manifest WHERE key = ?", (key,)
        ).fetchall()
        connection.execute(
            "UPDATE manifest SET value = ? WHERE key = ?",
            (json.dumps(change(json.loads(text))), key),
        )


@pytest.mark.parametrize(
    ("key", "change", "said"),
    [
        ("versions", lambda one: one | {"platform": "other"}, ""),
        ("versions", lambda one: one | {"numpy": "0"}, "numpy is "),
        (
            "git",
            lambda one: {"revision": "abcdef0123456789", "dirty": False},
            "the git revision is ",
        ),
        (
            "plugins",
            lambda one: {"kit": "1", "pytest:x": "2"},
            "plugin kit is not given and 1",
        ),
        ("plugins", lambda one: {**one, "pytest:x": "2"}, ""),
        (
            "protocols",
            lambda one: {**one, "more": {"sha256": "0", "text": ""}},
            "the protocol more is not given and 0",
        ),
        (
            "shard",
            lambda one: {**one, "cells": one["cells"][::-1]},
            "the order of the cells differs",
        ),
        (
            "shard",
            lambda one: {**one, "cells": one["cells"][:1]},
            "has corridor in ascii_2d by talker",
        ),
    ],
)
def test_what_differs_between_shards_is_named(
    cut: Cut, tmp_path: Path, key: str, change: Callable[[Any], Any], said: str
) -> None:
    one, other = cut(1), cut(2)
    manifest_of(other, key, change)
    if not said:
        assert merge_runs([one, other], tmp_path / "out").parts == 2
        return
    with pytest.raises(RunLogError) as caught:
        merge_runs([one, other], tmp_path / "out")
    assert "are not parts of one run: " in str(caught.value)
    assert said in str(caught.value)
    assert str(caught.value).endswith(" Merge only shards of the same command.")


def test_a_whole_run_and_one_of_other_cells_are_no_shards(
    cut: Cut, stranger: ModuleType, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    with RunLog.create(
        tmp_path / "parts", "whole", cells.items(), options={"seed": 1}
    ) as log:
        path = log.path
    with pytest.raises(
        RunLogError,
        match=r"whole was not made with --shard. Only shards of one run can be merged",
    ):
        merge_runs([path], tmp_path / "out")
    one = cut(1)
    with rewritten(one) as connection:
        connection.execute("DELETE FROM cells")
    with pytest.raises(
        RunLogError,
        match=r"The cells of shard 1/2 \(part1\) differ from the cells that this shard",
    ):
        merge_runs([one], tmp_path / "out")
