"""Runs whose verdict concerns a measure: reports and tables use its unit, and runs are
compared by it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.auditing import audit_animal
from cheesebench.baselines import baseline_text, count_run, read_baseline
from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.interfaces import AuditSettings
from cheesebench.protocol import Specification, load_protocol
from cheesebench.pytest_session.ci import case_properties
from cheesebench.statistics import CellResult, Verdict
from cheesebench.statistics.comparison import CountedRun, RunComparison, compare_runs
from fuzz.run_logs import rewritten

#: A walk to a goal: the latency has the trial's limit as its range.
WALK = """
version: 1
paradigm: {name}
title: A walk
arena: {{map: "S....Z", legend: {{S: box, Z: goal}}}}
start: {{at: box, face: random}}
trial: {{limit: 40, start: run, states: {{run: {{rules: [{{enter: goal, reward: 1, end: found}}]}}}}}}
schedule: {{one: {{sessions: 2, trials: 3}}}}
measures: {{latency: steps}}
{more}
reference:
  - {{measure: latency, value: 14, sd: 4, n_animals: 12, better: lower, margin: 5, range: [0, 40], status: for a test}}
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    for name, more in {"ranged": "", "free": "success: last == found"}.items():
        text = WALK.format(name=name, more=more)
        (folder / f"{name}.protocol.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(here: Path) -> cheesebench.Run:
    return lived(here, "random", "made")


def lived(here: Path, model: str, name: str, **options: Any) -> cheesebench.Run:
    usual: dict[str, Any] = {
        "run_id": name,
        "design": "cohort",
        "subjects": 8,
        "view": "ascii_2d",
        "seed": 0,
    }
    protocols = [str(here / f"{one}.protocol.yaml") for one in ("ranged", "free")]
    found: cheesebench.Run = cheesebench.run(
        model, protocols, results=here / "results", progress=False,
        **(usual | options),
    )  # fmt: skip
    return found


def cells(run: cheesebench.Run) -> dict[str, CellResult]:
    return {cell.plan.protocol: cell for cell in run.summary.cells}


def test_the_verdict_is_the_mean_of_subjects(made: cheesebench.Run) -> None:
    trials = made.table("values")
    found = cells(made)
    for name, cell in found.items():
        own = trials[(trials["protocol"] == name) & (trials["name"] == "latency")]
        mean = own["number"].groupby(own["subject"]).mean().mean()
        assert cell.judged is not None
        assert cell.judged.mean == pytest.approx(mean)
        assert cell.difference == pytest.approx(mean - 14)
        assert cell.verdict is Verdict.FAIL, cell.reason
        assert f"is {cell.judged.mean:.3g}, against 14 (rodent)" in cell.reason
        assert "evidence for 'worse by more than 5' is" in cell.reason
    assert found["ranged"].rate is None
    assert found["free"].rate is not None
    assert made.summary.models[0].overall is None, (
        "no pass rate is judged, so that there is no mean of them"
    )


@pytest.mark.parametrize("report", ["text", "markdown", "html", "matrix"])
def test_reports_have_it_in_its_unit(report: str, made: cheesebench.Run) -> None:
    shown = " ".join(made.report(report).split())
    for cell in made.summary.cells:
        assert cell.judged is not None
        # In the text report, the measure's name is in a line below its row.
        assert (
            f" {cell.judged.mean:.3g} "
            if report == "text"
            else f"latency {cell.judged.mean:.3g}"
        ) in shown
        assert "latency" in shown
        assert "1400 %" not in shown
    if report != "text":
        assert "rodent" in shown
    if report == "markdown":
        assert "+5" in shown
        assert "PASS then needs an upper bound below it" in shown


def test_the_report_for_programs(made: cheesebench.Run) -> None:
    told = json.loads(made.report("json"))
    for cell in told["cells"]:
        judged = cell["judged"]
        assert (judged["measure"], judged["better"]) == ("latency", "lower")
        assert judged["interval"][0] < judged["mean"] < judged["interval"][1]
    for cell in made.summary.cells:
        assert cell.judged is not None
        properties = dict(case_properties(cell))
        assert properties["cheesebench.measure"] == "latency"
        assert properties["cheesebench.margin"] == "5"
        assert float(properties["cheesebench.measure_mean"]) == pytest.approx(
            cell.judged.mean, abs=1e-3
        )
    frame = made.verdicts()
    assert frame["measure"].tolist() == ["latency", "latency"]
    assert frame["mean"].tolist() == [
        cell.judged and cell.judged.mean for cell in made.summary.cells
    ]


def test_the_plan_and_the_reference_card(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(here / f"{name}.protocol.yaml") for name in ("ranged", "free")]
    for design in ("cohort", "sequential"):
        told = [
            "plan",
            "--model",
            "random",
            "--design",
            design,
            "--protocols",
            ",".join(files),
        ]
        assert main([*told, "--json"]) == 0
        for cell in json.loads(capsys.readouterr().out)["cells"]:
            outlooks = cell["outlooks"]
            assert (outlooks["random"]["fails"], outlooks["95 % right"]["passes"]) == (
                1.0,
                1.0,
            )
            assert outlooks["as the animals"]["passes"] > 0.2
        assert main(told) == 0
        assert "subjects differ as the animals do" in " ".join(
            capsys.readouterr().out.split()
        )
    assert main(["reference", *files]) == 0
    card = capsys.readouterr().out
    assert "lower is better, margin 5" in card
    assert "0 to 40" in card


def test_the_audit_simulates_animals(here: Path) -> None:
    for name in ("ranged", "free"):
        specification = load_protocol(here / f"{name}.protocol.yaml")
        assert isinstance(specification, Specification)
        [finding] = audit_animal(specification, AuditSettings())
        assert finding.verdict == "ok", finding
        assert "have a mean latency of 14; they FAIL in 0 % of" in finding.text


def test_a_sequential_run_goes_on_where_it_was(here: Path) -> None:
    """A run with one look, resumed with more subjects, equals an uninterrupted run."""
    options = {"design": "sequential", "subjects": 30}
    whole = lived(here, "tabular-ql", "whole", **options)
    assert all(cell.verdict is Verdict.FAIL for cell in whole.summary.cells)
    with rewritten(whole.directory / "run.sqlite") as connection:
        for table in ("trials", "events", "lives"):
            connection.execute(f"DELETE FROM {table} WHERE subject >= 3")
    half = cheesebench.open_run(whole.directory)
    assert all(cell.verdict is Verdict.INCONCLUSIVE for cell in half.summary.cells)
    resumed = lived(here, "tabular-ql", "whole", **options, run_id=None, resume="whole")
    for one, other in zip(whole.summary.cells, resumed.summary.cells, strict=True):
        assert (one.verdict, one.game, one.judged) == (
            other.verdict,
            other.game,
            other.judged,
        )


@pytest.fixture(scope="module")
def compared(here: Path, made: cheesebench.Run) -> RunComparison:
    return compare_runs(counted(lived(here, "bfs-oracle", "oracle")), counted(made))


def counted(run: cheesebench.Run) -> CountedRun:
    with RunLog.open_read_only(run.directory / "run.sqlite") as log:
        return count_run(log)


def test_runs_are_compared_by_the_measure(
    here: Path, made: cheesebench.Run, compared: RunComparison
) -> None:
    oracle, random = (
        cells(cheesebench.open_run(here / "results" / "oracle")),
        cells(made),
    )
    [model] = compared.models
    for cell in model.cells:
        first, second = oracle[cell.protocol].judged, random[cell.protocol].judged
        assert first is not None
        assert second is not None
        assert (cell.first_rate, cell.second_rate) == pytest.approx(
            (first.mean, second.mean)
        )
        assert cell.paired.difference == pytest.approx(first.mean - second.mean)
        assert (cell.measure, cell.answer) == ("latency", "better"), "less is better"
        assert f"{first.mean - second.mean:.3g} of latency" in cell.paired.reason
    assert model.overall.difference is None
    [back] = compare_runs(counted(made), counted(made)).models
    assert all(cell.identical for cell in back.cells)


def test_comparisons_have_it_in_its_unit(
    here: Path,
    made: cheesebench.Run,
    compared: RunComparison,
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = ["--results", str(here / "results")]
    for form in ("text", "markdown"):
        assert main(["compare", "made", "oracle", "--format", form, *results]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        [model] = compared.models
        for cell in model.cells:
            assert f"latency {cell.second_rate:.3g}" in shown
        assert "there is no mean over them" in shown
        assert "%" not in shown.replace("95 %", "").replace("5 %", "")


def test_a_baseline_keeps_the_measure(made: cheesebench.Run, tmp_path: Path) -> None:
    run = counted(made)
    (tmp_path / "main.json").write_text(baseline_text(run), encoding="utf-8")
    assert read_baseline(tmp_path / "main.json") == run
    assert {cell.measured and cell.measured.range for cell in run.cells} == {
        (0.0, 40.0)
    }
