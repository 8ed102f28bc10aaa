"""Shards of a run, and the merged run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cheesebench.cli import main
from cheesebench.errors import OptionError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.shards import Shard
from cheesebench.records import CellPlan
from cheesebench.testing.fake_server import FakeServer

GIVEN = (
    "--model=walker,statue,random",
    "--protocols=lab",
    "--control=reward-shuffled",
    "--exit-zero",
    "-q",
    "--seed=0",
)
#: Tables of a run without times of writing.
TABLES = ("cells", "trials", "events", "lives")


def contents(path: Path) -> dict[str, list[Any]]:
    with RunLog.open_read_only(path) as log:
        return {
            table: log.select(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5, 6")
            for table in TABLES
        }


def reported(run: str, capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert main(["report", run, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # The only two entries of a report that identify the run.
    del found["manifest"]["run_id"], found["manifest"]["created"]
    found["manifest"].pop("signature", None)
    return found


@pytest.fixture
def shards(project: pytest.Pytester) -> Callable[..., list[str]]:
    """Runs all parts of a run, each as a separate process would; returns their ids."""

    def run(
        of: int, *given: str, name: str = "part", only: Sequence[int] = ()
    ) -> list[str]:
        names = [
            f"{name}-{index}"
            for index in range(1, of + 1)
            if index in (only or range(1, of + 1))
        ]
        for run_id in names:
            shard = f"--shard={run_id.rpartition('-')[2]}/{of}"
            seed = (
                () if any(one.startswith("--seed") for one in given) else ("--seed=0",)
            )
            assert (
                project.runpytest_inprocess(
                    *(given or GIVEN), *seed, shard, f"--cheese-run-id={run_id}"
                ).ret
                == 0
            )
        return [f"results/{run_id}" for run_id in names]

    return run


def some_plan(number: int, subjects: int) -> CellPlan:
    return CellPlan(
        model="random", protocol=f"maze_{number}", view="ascii_2d", title="", dimension="", species="", sha256="",
        design="cohort", subjects=subjects, trials=10, memory="none",
    )  # fmt: skip


@pytest.mark.parametrize("of", [1, 2, 3, 8, 40])
def test_every_cell_is_in_one_shard(of: int) -> None:
    plans = [
        some_plan(number, random.Random(number).randint(1, 60)) for number in range(30)
    ]
    parts = [Shard(index, of).part(plans) for index in range(1, of + 1)]
    assert sorted((plan for part in parts for plan in part), key=plans.index) == plans
    assert [Shard(index, of).part(plans) for index in range(1, of + 1)] == parts
    trials = [sum(plan.subjects * plan.trials for plan in part) for part in parts]
    assert max(trials) - min(trials) <= max(
        plan.subjects * plan.trials for plan in plans
    )


@pytest.mark.parametrize(
    "text",
    ["", "0/8", "9/8", "2", "2/", "-1/8", "1/0", "1/1000000", "\u0661/\u0662", "1/2/3"],
)
def test_a_shard_is_a_part_of_parts(text: str) -> None:
    with pytest.raises(OptionError, match="for example 2/8"):
        Shard.parse(text)


def test_four_shards_in_any_order_are_one_run(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.runpytest_inprocess(*GIVEN, "--cheese-run-id=whole").ret == 0
    names = shards(4)
    random.Random(1).shuffle(names)
    before = {
        path: path.read_bytes() for name in names for path in Path(name).iterdir()
    }
    assert main(["merge", *names, "--run-id", "all"]) == 0
    assert {
        path: path.read_bytes() for name in names for path in Path(name).iterdir()
    } == before
    whole, merged = Path("results/whole"), Path("results/all")
    assert contents(merged) == contents(whole)
    with RunLog.open_read_only(whole) as one, RunLog.open_read_only(merged) as other:
        assert list(other.dump()) == list(one.dump())
        kept = [
            {k: v for k, v in log.manifest.items() if k not in ("run_id", "created")}
            for log in (one, other)
        ]
        assert kept[0] == kept[1]
    assert reported("all", capsys) == reported("whole", capsys)
    for form in ("--csv",):
        assert main(["export", "whole", form]) == main(["export", "all", form]) == 0
        for table in (whole / "export").iterdir():
            assert (merged / "export" / table.name).read_bytes() == table.read_bytes()
    # Resuming the merged run finds nothing to do.
    again = project.runpytest_inprocess(*GIVEN, "--resume=all")
    assert again.ret == 0
    assert contents(merged) == contents(whole)


def test_shards_of_one_family_of_verdicts_are_merged(
    project: pytest.Pytester, shards: Any
) -> None:
    """Each shard knows the evidence that all cells together ask for."""
    made = shards(2, "--model=walker", "--protocols=lab", "--familywise")
    assert main(["merge", *made, "--run-id", "all"]) == 0
    assert main(["report", "all", "--verify", "--output", "again.md"]) == 0
    with RunLog.open_read_only(Path("results/all")) as log:
        assert {plan.goal for plan in log.plans()} == {20.0 * len(log.plans())}


def test_more_shards_than_cells(project: pytest.Pytester, shards: Any) -> None:
    given = ("--model=walker", "--protocols=lab", "-k", "east", "-q")
    assert main(["merge", *shards(3, *given), "--run-id", "all"]) == 0
    with RunLog.open_read_only(Path("results/all")) as log:
        assert len(log.plans()) == 1
        assert log.trials()


def test_a_shard_of_very_many_is_merged_as_fast_as_one_of_few(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--model=walker,statue", "--protocols=lab", "--exit-zero", "-q")
    assert main(["merge", *shards(100_000, *given, only=(1,)), "--run-id", "all"]) == 1
    with RunLog.open_read_only(Path("results/all")) as log:
        assert capsys.readouterr().err.count("Missing: shard ") == len(log.plans()) - 1


def test_a_state_of_git_without_its_parts_is_unknown(
    project: pytest.Pytester, shards: Any
) -> None:
    names = shards(2, "--model=walker", "--protocols=lab", "-q")
    change("part-1", git=lambda _: {})
    assert main(["merge", *names, "--run-id", "all"]) == 0


def test_what_is_missing_is_named_and_run_by_resuming(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--model=walker,statue", "--protocols=lab", "--exit-zero", "-q")
    assert project.runpytest_inprocess(*given, "--cheese-run-id=whole").ret == 0
    names = shards(3, *given, only=(1, 3))
    capsys.readouterr()
    assert main(["merge", *names, "--run-id", "all"]) == 1
    told = capsys.readouterr().err
    assert "Missing: shard 2/3 (2 cells: " in told
    assert "--resume all" in told
    assert project.runpytest_inprocess(*given, "--resume=all").ret == 0
    assert contents(Path("results/all")) == contents(Path("results/whole"))


def test_a_shard_that_was_interrupted_is_unfinished(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--model=walker,breaker", "--protocols=lab", "-k", "east")
    for index in (1, 2):
        project.runpytest_inprocess(
            *given, f"--shard={index}/2", "--seed=0", f"--cheese-run-id=part-{index}"
        )
    capsys.readouterr()
    assert main(["merge", "part-2", "part-1", "--run-id", "all"]) == 1
    assert "Unfinished: 1 cell: east in ascii_2d by breaker." in capsys.readouterr().err


def change(run: str, **entries: Any) -> None:
    """Change a manifest as its run would have written it."""
    with RunLog.open(Path("results") / run) as log:
        manifest = log.manifest
        log.add_to_manifest({key: edit(manifest[key]) for key, edit in entries.items()})


FOREIGN: dict[str, tuple[dict[str, Callable[[Any], Any]], str]] = {
    "seed": ({"options": lambda o: {**o, "seed": 5}}, "seed is 0 and 5"),
    "design": (
        {"options": lambda o: {**o, "design": "smoke"}},
        "design is cohort and smoke",
    ),
    "model": (
        {"options": lambda o: {**o, "temperature": [0.5]}},
        "temperature is not given and [0.5]",
    ),
    "version": (
        {"versions": lambda v: {**v, "cheesebench": "9.9"}},
        "cheesebench is 0.1.0 and 9.9",
    ),
    "library": ({"versions": lambda v: {**v, "numpy": "1.0"}}, "numpy is "),
    "plugin": (
        {"plugins": lambda p: {**p, "mouse": "mouse 1.0"}},
        "plugin mouse is not given and mouse 1.0",
    ),
    "revision": (
        {"git": lambda g: {"revision": "f" * 40, "dirty": False}},
        "the git revision is None and ffffffffffff",
    ),
    "protocol": (
        {
            "protocols": lambda p: {
                name: {**text, "sha256": "0" * 64} for name, text in p.items()
            }
        },
        "the protocol east is ",
    ),
    "of": (
        {"shard": lambda s: {**s, "of": 9}},
        "(part-1) is one of 2 shards, shard 2/9",
    ),
    "cells": (
        {"shard": lambda s: {**s, "cells": s["cells"][:1]}},
        "only shard 1/2 (part-1) has ",
    ),
    "settings": (
        {
            "shard": lambda s: {
                **s,
                "cells": [
                    text.replace('"settings":{', '"settings":{"a":1')
                    for text in s["cells"]
                ],
            }
        },
        "is planned in different ways",
    ),
    "no shard": ({"shard": lambda s: None}, "was not made with --shard"),
    "nonsense": (
        {"shard": lambda s: {"index": "; rm", "of": [], "cells": 3}},
        "has no valid shard",
    ),
    "other part": (
        {"shard": lambda s: {**s, "index": 1}},
        "Shard 1/2 is there twice: shard 1/2 (part-",
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_does_not_belong_together_is_refused_with_the_reason(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    shards(2, "--model=walker", "--protocols=lab", "-q")
    entries, reason = FOREIGN[what]
    change("part-2", **entries)
    for names in (["part-1", "part-2"], ["part-2", "part-1"]):
        capsys.readouterr()
        assert main(["merge", *names, "--run-id", "all"]) == 2
        told = capsys.readouterr().err
        assert reason in told
        assert told.count("\n") == 1
        assert not Path("results/all").exists()


def test_a_copy_of_a_shard_is_named(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shards(2, "--model=walker", "--protocols=lab", "-q")
    shutil.copytree("results/part-1", "results/copy")
    assert main(["merge", "part-1", "part-2", "copy"]) == 2
    assert (
        "Shard 1/2 is there twice: shard 1/2 (part-1) and shard 1/2 (copy). Leave one"
        in capsys.readouterr().err
    )
    # A shard that is given twice counts once.
    assert main(["merge", "part-1", "part-2", "results/part-1", "--run-id", "all"]) == 0


def test_a_damaged_shard_leaves_nothing_behind(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shards(2, "--model=walker", "--protocols=lab", "-q")
    with sqlite3.connect("results/part-2/run.sqlite") as connection:
        connection.execute("UPDATE trials SET reward = reward + 1")
    connection.close()
    assert main(["merge", "part-1", "part-2", "--run-id", "all"]) == 2
    assert "part-2/run.sqlite is damaged" in capsys.readouterr().err
    assert not Path("results/all").exists()


KILLED = """
import os, signal, sys
from cheesebench.cli import main
from cheesebench.experiment import shards
copy = shards._copy
def copy_one(part, log):
    if part.shard.index == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    copy(part, log)
shards._copy = copy_one
main(sys.argv[1:])
"""


def test_a_merge_that_is_killed_leaves_no_half_of_a_run(
    project: pytest.Pytester, shards: Any
) -> None:
    command = ["merge", *shards(2, "--model=walker", "--protocols=lab", "-q")]
    command += ["--run-id", "all"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *command], check=False)
    assert killed.returncode == -signal.SIGKILL
    [draft] = Path("results").glob(".*.draft")
    assert main(["runs"]) == 0
    assert not Path("results/all").exists()
    old = time.time() - 100_000
    os.utime(draft, (old, old))
    assert main(command) == 0
    assert not draft.exists()
    with RunLog.open_read_only(Path("results/all")) as log:
        assert {one.missing for one in log.trials()} == {""}
    assert main(command) == 2, "it is there"


KILLED_LATE = """
import os, signal, sys
from cheesebench.cli import main
from cheesebench.commands import merge
write_output = merge.write_output
def write(text, output):
    if output is None:
        os.kill(os.getpid(), signal.SIGKILL)
    write_output(text, output)
merge.write_output = write
main(sys.argv[1:])
"""


def test_a_merged_run_is_there_with_its_report_or_not_at_all(
    project: pytest.Pytester, shards: Any
) -> None:
    command = ["merge", *shards(2, "--model=walker", "--protocols=lab", "-q")]
    command += ["--run-id", "all"]
    killed = subprocess.run([sys.executable, "-c", KILLED_LATE, *command], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert sorted(os.listdir("results/all")) == ["report.md", "run.sqlite"]
    assert Path("results/all/report.md").read_text().startswith("# CheeseBench: ")
    assert not [one for one in os.listdir("results") if one.endswith(".draft")]
    assert main(["report", "all", "--verify", "--output", "again.md"]) == 0


def test_calls_are_merged_and_not_made_again(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeServer("ACTIONS: FORWARD, FORWARD") as server:
        given = (
            "--model=openai/tiny",
            "--base-url",
            server.base_url,
            "--protocols=lab",
            "--subjects=2",
            "-q",
        )
        assert (
            project.runpytest_inprocess(
                *given, "--cheese-run-id=whole", "--exit-zero"
            ).ret
            == 0
        )
        names = shards(3, *given, "--exit-zero")
        assert main(["merge", *names, "--run-id", "all"]) == 0
        asked = len(server.calls)
        assert (
            project.runpytest_inprocess(*given, "--resume=all", "--exit-zero").ret == 0
        )
        assert len(server.calls) == asked
    columns = "model, protocol, view, variant, subject, trial, call, digest, system, asked, reply, prompt_tokens"
    found = []
    for name in ("whole", "all"):
        with RunLog.open_read_only(Path("results") / name) as log:
            found.append(
                log.select(f"SELECT {columns} FROM calls ORDER BY 1, 2, 3, 4, 5, 6, 7")
            )
    assert found[0] == found[1]
    assert found[0]


def test_a_strangers_shard_makes_a_strangers_run(
    project: pytest.Pytester, shards: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Merging starts no process, calls no server and writes only the target. Resuming
    the merged run refuses to use the addresses it recorded.
    """
    with FakeServer("ACTIONS: FORWARD, FORWARD") as server:
        given = (
            "--model=openai/tiny",
            "--base-url",
            server.base_url,
            "--protocols=lab",
            "--subjects=2",
            "-q",
        )
        names = shards(2, *given, "--exit-zero")
        asked = len(server.calls)
        with RunLog.open(Path("results/part-1")) as log:
            log.add_to_manifest({"signature": "0" * 64})
        before = sorted(Path().rglob("*"))
        assert main(["merge", *names, "--run-id", "all"]) == 0
        target = Path("results/all")
        assert {
            path for path in Path().rglob("*") if not path.is_relative_to(target)
        } == {*before}
        assert len(server.calls) == asked
        capsys.readouterr()
        resumed = project.runpytest_inprocess(
            "--model=openai/tiny", "--resume=all", "--protocols=lab", "--subjects=2"
        )
        assert resumed.ret == pytest.ExitCode.USAGE_ERROR
        assert "was not made by you on this machine" in resumed.stderr.str()


def test_a_resumed_shard_stays_its_part(project: pytest.Pytester, shards: Any) -> None:
    given = ("--model=walker", "--protocols=lab", "-q")
    shards(2, *given)
    before = contents(Path("results/part-2"))
    assert project.runpytest_inprocess(*given, "--resume=part-2").ret == 0
    assert contents(Path("results/part-2")) == before
    assert (
        project.runpytest_inprocess(*given, "--resume=part-2", "--shard=1/2").ret
        == pytest.ExitCode.USAGE_ERROR
    )


def test_a_baseline_is_checked_against_all_shards(
    project: pytest.Pytester, shards: Any
) -> None:
    """What a run compares does not depend on the parts that it was run in."""
    given = (
        "--model=walker",
        "--protocols=lab",
        "--design=cohort",
        "--subjects=10",
        "-q",
    )
    assert project.runpytest_inprocess(*given, "--cheese-run-id=base").ret == 0
    compared = (*given, "--compare=base", "--compare-fail=worse")
    assert project.runpytest_inprocess(*compared, "--cheese-run-id=whole").ret == 0
    names = []
    for index in (1, 2):
        project.runpytest_inprocess(
            *compared, f"--shard={index}/2", "--seed=0", f"--cheese-run-id=part-{index}"
        )
        names.append(f"part-{index}")
    assert main(["merge", *names, "--run-id", "all"]) == 0
    assert contents(Path("results/all")) == contents(Path("results/whole"))


def test_xdist(project: pytest.Pytester, shards: Any) -> None:
    pytest.importorskip("xdist")
    given = ("--model=walker,statue", "--protocols=lab", "--exit-zero", "-q")
    assert project.runpytest_inprocess(*given, "--cheese-run-id=whole").ret == 0
    for index in (1, 2):
        shard = (
            f"--shard={index}/2",
            "--seed=0",
            f"--cheese-run-id=part-{index}",
            "-n2",
        )
        assert project.runpytest_inprocess(*given, *shard).ret == 0
    assert main(["merge", "part-1", "part-2", "--run-id", "all"]) == 0
    assert (
        contents(Path("results/all"))["trials"]
        == contents(Path("results/whole"))["trials"]
    )
