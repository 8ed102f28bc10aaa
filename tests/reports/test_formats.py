"""JSON, text, and the registration of all formats."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from cheesebench.experiment.records import CellPlan
from cheesebench.plugin_manager import PluginManager
from cheesebench.reports import badge, cheesebench_reporters, comment, json_report, text
from cheesebench.statistics import RunSummary, Verdict

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
    matrix, walker, swimmer = re.split(r"\n\n(?=walker in|swimmer.* in)", report)
    assert re.search(r"pool\s+✘ \S+ %\s+✔ \S+ %", matrix)
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


def test_a_badge_says_how_many_are_passed(make_plan: MakePlan, make_run: MakeRun) -> None:
    one = badge.render(make_run([(make_plan("pool"), 0.99), (make_plan("maze"), 0.1)]))
    assert "<title>as good as the rodent: 1 of 2</title>" in one
    assert badge.COLOURS[Verdict.FAIL] in one
    two = badge.render(make_run([(make_plan("pool", model=name), 0.99) for name in ("a", "b<c")]))
    assert "2 of 2 models" in two
    assert badge.COLOURS[Verdict.PASS] in two
    ElementTree.fromstring(two)


def test_a_comment_has_the_matrix_and_room_for_more(make_plan: MakePlan, make_run: MakeRun) -> None:
    cells = [(make_plan(f"pool_{number}_{'x' * 300}"), 0.1) for number in range(20)]
    text = comment.render(make_run(cells))
    assert text.startswith(comment.MARK)
    assert "| **walker (ascii_2d)** | ✘ FAIL" in text
    many = [(make_plan(f"pool_{number}_{'x' * 4000}"), 0.1) for number in range(20)]
    assert len(comment.render(make_run(many))) < 65_536
    assert text.count("<details>") == text.count("</details>") == 1
