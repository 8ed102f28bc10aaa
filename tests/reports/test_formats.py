"""JSON, text, and the registration of all formats."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from cheesebench.experiment.records import CellPlan
from cheesebench.plugin_manager import PluginManager
from cheesebench.reports import cheesebench_reporters, json_report, text
from cheesebench.statistics import RunSummary

MakePlan = Callable[..., CellPlan]
MakeRun = Callable[..., RunSummary]


@pytest.mark.parametrize("reporter", list(cheesebench_reporters()), ids=lambda reporter: reporter.name)
def test_every_registered_format_renders_the_same_text_twice(
    reporter: object, make_plan: MakePlan, make_run: MakeRun
) -> None:
    known = PluginManager().reporters
    name = str(getattr(reporter, "name", ""))
    assert known[name].suffix.startswith(".")
    summary = make_run([(make_plan("pool"), 0.6), (make_plan("cage"), "budget")])
    assert known[name].render(summary) == known[name].render(summary)
    assert known[name].render(summary).endswith("\n")
    assert known[name].render(make_run([], {}))


def test_json_is_the_whole_summary_with_sorted_keys(make_plan: MakePlan, make_run: MakeRun) -> None:
    summary = make_run([(make_plan("pool"), 0.6)])
    document = json_report.render(summary)
    assert json.loads(document) == json.loads(json.dumps(summary.to_dict()))
    assert document == json.dumps(json.loads(document), sort_keys=True, indent=2) + "\n"


def test_json_has_null_for_what_is_no_number_and_survives_any_text(make_plan: MakePlan, make_run: MakeRun) -> None:
    summary = make_run([(make_plan("pool", title="\ud800 \u2028"), 0.6)])
    strange = dataclasses.replace(summary, manifest={"x": float("nan"), "y": [float("inf"), 1.5]})
    document = json_report.render(strange)
    assert json.loads(document)["manifest"] == {"x": None, "y": [None, 1.5]}
    assert document.isascii()


def test_text_is_a_table_for_each_model(make_plan: MakePlan, make_run: MakeRun) -> None:
    cells = [(make_plan("pool", model=model), rate) for model, rate in (("walker", 0.1), ("swimmer\x1b[2J", 0.99))]
    report = text.render(make_run(cells))
    assert "\x1b" not in report
    walker, swimmer = report.split("\n\nswimmer")
    assert walker.startswith("walker in ascii_2d (1 FAIL)")
    assert "✘ FAIL" in walker
    assert "✔ PASS" in swimmer
    assert "10 subjects x 20 trials (200/200 valid)" in walker


def test_registering_the_formats_imports_nothing_heavy() -> None:
    program = (
        "import sys, cheesebench.reports as reports\n"
        "list(reports.cheesebench_reporters())\n"
        "print([m for m in ('tabulate', 'scipy', 'numpy', 'cheesebench.statistics') if m in sys.modules])\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
