"""``cheesebench compare`` and ``cheesebench bless``: tables, refusals, exit codes, and
baseline files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.baselines import baseline_text, count_run, read_baseline
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.reports.comparison import text
from cheesebench.statistics.comparison import compare_runs
from fuzz.run_logs import rewritten

Run = Callable[..., Any]
RUN = "20250131-093000-ab12"


@pytest.fixture
def worse(results: Path) -> str:
    """A copy of the run in which every trial except one has failed."""
    shutil.copytree(results / RUN, results / "worse")
    with rewritten(results / "worse" / "run.sqlite") as connection:
        connection.execute("UPDATE trials SET success = 0, outcome = 'timeout'")
        connection.execute(
            "UPDATE trials SET success = 1 WHERE subject = 0 AND trial = 0"
        )
    return "worse"


def stored(results: Path, here: Path, name: str) -> None:
    """Make a baseline of a run that a replay would refute."""
    with RunLog.open_read_only(results / name) as log:
        text = baseline_text(count_run(log, name))
    (here / "baselines").mkdir()
    (here / "baselines" / f"{name}.json").write_text(text, encoding="utf-8")


def test_a_run_against_itself_is_identical(run: Run, results: Path) -> None:
    found = run("compare", RUN, RUN)
    assert (found.code, found.err.count("Replayed: ")) == (0, 1)
    assert "are identical: every subject did exactly the same" in " ".join(
        found.out.split()
    )
    assert all(len(line) <= 80 for line in found.out.splitlines())


def test_two_models_of_one_run_are_told_apart(
    run: Run, results: Path, worse: str
) -> None:
    with (
        RunLog.open_read_only(results / RUN) as first,
        RunLog.open_read_only(results / worse) as second,
    ):
        found = compare_runs(count_run(first, "both"), count_run(second, "both"))
    (model,) = found.models
    assert "No difference between both and both can be shown" in text(found)
    two = replace(
        found, models=(replace(model, first_model="human", second_model="random"),)
    )
    assert "No difference between human and random can be shown" in text(two)


def test_a_baseline_that_has_nothing_to_lose_is_warned_of(
    run: Run, results: Path, here: Path, worse: str
) -> None:
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute(
            "UPDATE trials SET success = 0, outcome = 'timeout' WHERE subject > 0"
        )
    stored(results, here, worse)
    said = " ".join(run("compare", RUN, worse).out.split())
    assert " in worse rarely succeeds on little (" in said
    baseline = read_baseline(here / "baselines" / f"{worse}.json")
    with RunLog.open_read_only(results / RUN) as log:
        shown = compare_runs(count_run(log, RUN), baseline)._repr_html_()
    assert " in worse rarely succeeds on little (" in shown
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute(OTHER_VERSION)
        connection.execute("UPDATE cells SET plan = json_set(plan, '$.chance', 0.9)")
    lost = "nothing that a later run could lose, in little ("
    said = " ".join(run("bless", RUN, "low").err.split())
    assert lost in said
    assert "moving at random 90 %" in said
    # A proved rate without the ability takes precedence over random moves.
    scale = json.dumps({"without": 0.95, "ideal": 1.0})
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute(
            "UPDATE cells SET plan = json_set(plan, '$.ability', json(?))", [scale]
        )
    said = " ".join(run("bless", RUN, "low").err.split())
    assert lost in said
    assert "without the ability at most 95 %" in said
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute(
            "UPDATE cells SET plan = json_set(plan, '$.ability', NULL, '$.chance', NULL)"
        )
    assert lost not in run("bless", RUN, "low").err


def test_formats(run: Run, results: Path, here: Path, worse: str) -> None:
    forged = run("compare", RUN, worse)
    assert (forged.code, forged.out) == (2, "")
    assert "is now" in forged.err, "a trial comes out otherwise when it is replayed"
    stored(results, here, worse)
    told = json.loads(run("compare", RUN, worse, "--format", "json").out)
    (model,) = told["models"]
    assert (told["first"], told["second"], model["view"], len(model["cells"])) == (
        RUN,
        "worse",
        "ascii_2d",
        1,
    )
    markdown = run("compare", RUN, worse, "--format", "markdown").out
    assert markdown.startswith(f"# {RUN} (first) against worse\n")
    assert "| little" in markdown
    refused = run("compare", RUN, worse, "--format", "nothing")
    assert (refused.code, "There is no report format 'nothing'" in refused.err) == (
        2,
        True,
    )


def test_a_baseline_stands_for_the_run(run: Run, results: Path, here: Path) -> None:
    blessed = run("bless", RUN, "main")
    assert (blessed.code, blessed.out) == (0, "")
    path = here / "baselines" / "main.json"
    with RunLog.open_read_only(results / RUN) as log:
        counted = count_run(log, "main")
    assert read_baseline(path) == counted
    assert path.read_text() == baseline_text(counted)
    for name in ("main", path):
        assert "identical" in run("compare", RUN, name).out
    assert "It replaces" in run("bless", RUN, "main").err


@pytest.mark.parametrize("doubts", [[1, None], ["\x1b[31m"], "words", 5, {"a": 1}])
def test_doubts_of_a_stranger_are_text_or_damage(
    run: Run, results: Path, here: Path, doubts: object
) -> None:
    run("bless", RUN, "main")
    path = here / "baselines" / "main.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        cell["doubts"] = doubts
    path.write_text(json.dumps(content), encoding="utf-8")
    found = run("compare", RUN, "main")
    assert (
        "is doubtful in the trials that count: " in " ".join(found.out.split())
    ) == (doubts != 5)
    assert ("is a damaged baseline" in found.err) == (doubts == 5)
    assert "\x1b" not in found.out + found.err


@pytest.mark.parametrize(
    "counts",
    [[None, 1, 0, ""], [1, "1", 0, ""], [1e300, 1, 0, ""], [1, 1, 0, 5], [1, 1]],
)
def test_counts_of_a_stranger_are_numbers(
    run: Run, results: Path, here: Path, counts: list[object]
) -> None:
    run("bless", RUN, "main")
    path = here / "baselines" / "main.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["cells"][0]["subjects"][0][1:] = counts
    path.write_text(json.dumps(content), encoding="utf-8")
    found = run("compare", RUN, "main")
    assert (found.code, "is a damaged baseline" in found.err) == (2, True)


def test_a_baseline_of_a_cohort_is_small(results: Path) -> None:
    with RunLog.open_read_only(results / RUN) as log:
        counted = count_run(log)
    (cell,) = counted.cells
    nine_of_ten = [cell] * 9
    many = dict.fromkeys(range(10), cell.subjects[0])
    text = baseline_text(
        type(counted)(
            name="n", seed=0, cells=tuple(nine_of_ten), manifest=counted.manifest
        )
    )
    assert (
        len(text)
        + 9
        * len(json.dumps([[n, 1000, 1000, 1000, s.digest] for n, s in many.items()]))
        < 100_000
    )


def test_changed_protocols_are_refused_by_name(
    run: Run, results: Path, worse: str
) -> None:
    with rewritten(results / "worse" / "run.sqlite") as connection:
        connection.execute(
            "UPDATE cells SET plan = json_set(plan, '$.sha256', 'abcdefgh')"
        )
    found = run("compare", RUN, worse)
    assert (found.code, found.out) == (2, "")
    assert "the protocol little differs (" in found.err
    assert "and abcdefgh)" in found.err


def test_fail_worse_is_exit_code_1(run: Run, here: Path, results: Path) -> None:
    run("bless", RUN, "high")
    path = here / "baselines" / "high.json"
    baseline = json.loads(path.read_text())
    own, better = (
        [[n, passed, 4, 0, f"{n}{passed}"] for n in range(8)] for passed in (0, 4)
    )
    for name, subjects in (("low", own), ("high", better), ("same", own)):
        baseline["cells"][0]["subjects"] = subjects
        baseline["name"] = name
        (here / "baselines" / f"{name}.json").write_text(json.dumps(baseline))
    assert run("compare", "low", "high").code == 0
    failed = run("compare", "low", "high", "--compare-fail", "worse")
    assert (failed.code, "worse than" in failed.out) == (1, True)
    red, green = "Exit code 1, the gate is red:", "Exit code 0, the gate is green:"
    worse = f"{red} worse than high on little."
    assert " ".join(failed.err.split()) == worse
    wrong = run("compare", "low", "high", "--compare-fail", "wrose")
    assert (wrong.code, wrong.err) == (
        2,
        "cheesebench: --compare-fail: there is no 'wrose'. Did you mean 'worse'? Known: never, worse, undecided, "
        "worse,undecided.\n",
    )
    kept = run("compare", "high", "low", "--compare-fail", "worse")
    assert (kept.code, kept.err) == (0, f"{green} no loss against low on 1 protocol.\n")
    few = run("compare", "low", "same", "--compare-fail", "worse,undecided", "--json")
    [cell] = json.loads(few.out)["models"][0]["cells"]
    evidence = f"{cell['evidence']:.2g} to 1"
    assert (few.code, 1 < cell["evidence"] < 20) == (1, True)
    assert " ".join(few.err.split()) == (
        f"{red} undecided whether it is worse than same on little ('no loss of 30 points' "
        f"needs evidence of 20 to 1, and has {evidence}). More subjects would decide: bless "
        "a run with more --subjects, and compare with that run."
    )
    baseline["name"] = "gaps"
    baseline["cells"][0]["subjects"] = [[n, 0, 3, 1, f"{n}0"] for n in range(8)]
    (here / "baselines" / "gaps.json").write_text(json.dumps(baseline))
    gaps = run("compare", "gaps", "same", "--compare-fail", "undecided").err
    assert "Compare a run without missing trials" in " ".join(gaps.split())
    ours = run("compare", "same", "gaps", "--compare-fail", "undecided").err
    assert "More subjects would decide" in " ".join(ours.split())
    shown = " ".join(run("compare", "low", "same").out.split())
    rule = f"'no loss of 30 points' needs evidence of 20 to 1, and has {evidence}."
    assert f"Undecided, because {rule}" in shown


def test_a_run_with_gaps_is_blessed_only_on_demand(
    run: Run, results: Path, here: Path
) -> None:
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute("DELETE FROM lives WHERE subject = 1")
        connection.execute("DELETE FROM trials WHERE subject = 1 AND trial > 1")
    refused = run("bless", RUN, "main")
    assert refused.code == 2
    assert (
        f"little in ascii_2d has 2 missing trials. Finish it with pytest --resume {RUN}"
        in refused.err
    )
    assert not (here / "baselines").exists()
    assert run("bless", RUN, "main", "--incomplete").code == 0


def test_names_that_lead_nowhere(run: Run, results: Path) -> None:
    assert run("bless", RUN, "../main").code == 2
    run("bless", RUN, "main")
    found = run("compare", RUN, "mian")
    assert (found.code, "Baselines in baselines: main." in found.err) == (2, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot be read as a baseline"),
        ("[]", "is not a baseline"),
        ('{"cheesebench_baseline": 99}', "format 99; this CheeseBench reads 1"),
        ('{"cheesebench_baseline": 1}', "damaged"),
        (
            '{"cheesebench_baseline": 1, "name": "", "seed": 0, "manifest": {}, "cells": [{"subjects": [3]}]}',
            "damaged",
        ),
    ],
)
def test_what_is_no_baseline_is_refused(here: Path, content: str, said: str) -> None:
    path = here / "main.json"
    path.write_text(content)
    with pytest.raises(RunLogError, match=said):
        read_baseline(path)


OTHER_VERSION = (
    "UPDATE manifest SET value = json_set(value, '$.cheesebench', '0.0.1') "
    "WHERE key = 'versions'"
)


def test_a_run_of_another_version_is_replayed_whatever_it_says_of_the_animals(
    run: Run, results: Path, here: Path, worse: str
) -> None:
    words = (
        "UPDATE cells SET plan = json_set(plan, '$.reference.status', 'in other words', "
        "'$.reference.kind', 'analogy', '$.reference.training', '')"
    )
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute(words)
    assert "options say: reference is" in run("report", RUN, "--verify").err
    with rewritten(results / RUN / "run.sqlite") as connection:
        connection.execute(OTHER_VERSION)
    found = run("report", RUN, "--verify")
    assert found.code == 0
    assert "because another version of CheeseBench stored them" in found.err
    stored(results, here, worse)
    assert run("compare", RUN, worse).code == 0
