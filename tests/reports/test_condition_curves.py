"""A measure that a protocol reports by a variable: a curve in every report."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence

import pytest

from cheesebench.interfaces import Value
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.reports import html as page
from cheesebench.reports import markdown, text
from cheesebench.statistics import RunSummary, summarise_run, to_plain
from cheesebench.statistics.measures import MOST_POINTS
from tests.reports.conftest import MANIFEST

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]
Summary = Callable[..., RunSummary]
BY = (("right", "delay"), ("latency", "side"))


@pytest.fixture
def summary(make_plan: MakePlan, make_trials: MakeTrials) -> Summary:
    """Return a run in which a measure falls with the delay; ``delays`` are used in
    turn.
    """

    def make(
        delays: Sequence[Value] = (16, 2, 4.5), by: Sequence[tuple[str, str]] = BY
    ) -> RunSummary:
        plan = make_plan("dmtp", by=by, subjects=6, trials=20)
        trials = []
        for number, record in enumerate(make_trials(plan, 0.5)):
            delay = delays[number % len(delays)]
            right = 1 / delay if isinstance(delay, (int, float)) else 0.25
            measures: dict[str, Value] = {"right": right, **record.measures}
            variables: dict[str, Value] = {
                "delay": delay,
                "side": ("<q>", "west")[number % 2],
            }
            trials.append(
                dataclasses.replace(record, measures=measures, variables=variables)
            )
        return summarise_run(MANIFEST, [plan], trials)

    return make


def test_values_rise_and_names_come_last(summary: Summary) -> None:
    (cell,) = summary((16, None, 2, 4.5)).cells
    right, latency = cell.conditions
    assert (right.measure, right.variable, latency.measure) == (
        "right",
        "delay",
        "latency",
    )
    assert [(value, measure.mean) for value, measure in right.points] == [
        (2, 0.5), (4.5, pytest.approx(1 / 4.5)), (16, 1 / 16), (None, 0.25),
    ]  # fmt: skip
    assert sum(measure.n for _, measure in right.points) == cell.valid
    assert json.loads(json.dumps(to_plain(cell)))["conditions"][0]["points"][0][0] == 2


@pytest.mark.parametrize(
    "delays", [(4,), tuple(range(1, MOST_POINTS + 2))], ids=["one value", "too many"]
)
def test_what_is_no_curve(delays: Sequence[Value], summary: Summary) -> None:
    run = summary(delays, BY[:1])
    assert run.cells[0].conditions == ()
    assert "by delay" not in text.render(run)
    assert "Measures by condition" not in markdown.render(run)


def test_the_terminal_has_it_in_a_line(summary: Summary) -> None:
    assert "dmtp: right by delay: 0.5 (2), 0.222 (4.5), 0.0625 (16)" in text.render(
        summary()
    )


def test_markdown_draws_bars(summary: Summary) -> None:
    report = markdown.render(summary())
    curve = report[report.index("### Measures by condition") :].split("```")[1]
    rows = re.findall(r"^([\d.]+) +(█+)[^ ]* +([\d.]+)", curve, re.MULTILINE)
    assert [(value, mean) for value, _, mean in rows] == [
        ("2", "0.5"),
        ("4.5", "0.222"),
        ("16", "0.0625"),
    ]
    lengths = [len(drawn) for _, drawn, _ in rows]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 25
    assert "<q>" not in curve


def test_html_draws_a_curve_and_has_its_numbers(summary: Summary) -> None:
    html = page.render(summary())
    data = re.search(
        r'<script[^>]*id="chart-data"[^>]*>(.*?)</script>', html, re.DOTALL
    )
    assert data is not None
    charts = [chart for chart in json.loads(data[1]) if chart["kind"] == "conditions"]
    assert [chart["labels"] for chart in charts] == [
        ["2", "4.5", "16"],
        ["<q>", "west"],
    ]
    assert charts[0]["means"] == pytest.approx([0.5, 0.222222, 0.0625])
    assert [chart["joined"] for chart in charts] == [True, False], (
        "names are not joined by a line"
    )
    assert "Mean of right by delay: 0.5 at 2, 0.222 at 4.5, 0.0625 at 16." in html
    assert re.search(r'<th scope="row">4.5</th><td class="n">0.222', html)
    assert "<q>" not in html.replace(data[1], "")
