"""One run with nearly everything that a run can have, in every format."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser

import pytest

from cheesebench.experiment.controls import control_cell
from cheesebench.records import (
    AbilityScale,
    CallTotals,
    Ceilings,
    CellCalls,
    CellPlan,
    Construct,
    Measured,
    ReferenceValue,
    TrialRecord,
    Variant,
)
from cheesebench.reports import (
    board,
    comparison,
    html,
    markdown,
    matrix,
    text,
)
from cheesebench.reports import (
    cells as told_cells,
)
from cheesebench.statistics import RunSummary
from cheesebench.statistics.run import summarise_subjects
from tests.reports.conftest import MANIFEST, plan_of, trials_of
from tests.stored import check_stored, without_prose

LATENCY = Measured(name="latency", better="lower", range=(0.0, 100.0))
CONSTRUCT = Construct(
    name="spatial learning",
    abolished_by=(("hide=landmarks", 0.4),),
    status="validated",
    leaves=("anhedonia", 0.7),
    passed_by=("memory only for what the last trial paid", 0.75),
)


def cells() -> list[tuple[CellPlan, float | str]]:
    """Plans, each with the share of successes or the cause of missing trials."""
    able = AbilityScale(without=0.25, ideal=0.95)
    pool = plan_of("pool", subjects=20, construct=CONSTRUCT, ability=able)
    swim = plan_of(
        "swim",
        margin=5.0,
        reference=ReferenceValue(
            value=30.0,
            sd=4.0,
            n_animals=16,
            kind="measured",
            measured=LATENCY,
            source="PMC2",
            training="20 trials before",
        ),
    )
    asked = {
        "agent": "llm",
        "settings": {"backend": "openai", "temperature": 0.7, "history": 8},
    }
    return [
        (pool, 0.9),
        (control_cell(pool, "cue-off"), 0.2),
        (
            plan_of("maze", dimension="memory", ceilings=Ceilings(first=0.5, all=0.6)),
            0.2,
        ),
        (swim, 0.5),
        (plan_of("box", subjects=2, trials=8, answers=("side",)), 0.7),
        (plan_of("cage"), "infrastructure"),
        (plan_of("field", reference=None), 0.5),
        (
            plan_of(
                "yard", reference=ReferenceValue(value=0.6, kind="analogy"), idle=(2,)
            ),
            0.6,
        ),
        (plan_of("coin", against="chance", chance=0.5, estimand="last:8"), 0.75),
        (plan_of("pool", view="ascii_3d", subjects=20), 0.5),
        (plan_of("pool", model="provider/swimmer", subjects=20, **asked), 0.97),
        (plan_of("maze", model="provider/swimmer", **asked), "budget"),
        (
            plan_of(
                "pool", model="provider/swimmer", variant=Variant.parse("history=1")
            ),
            0.4,
        ),
        (plan_of("gate", design="smoke", claims=False, goal_visible=True), 1.0),
    ]


CALLS = CellCalls(
    totals=CallTotals(
        calls=900,
        attempts=950,
        prompt=1_234_567,
        completion=23_456,
        cached=400_000,
        reasoning=12_000,
        cost=12.345,
        seconds=3600.0,
        written=1000,
        malformed=7,
    ),
    served_by=("swimmer-2025-01-01", "swimmer-2025-02-01"),
    answered=890,
    unread="subject 3, trial 2: 'I would rather not'",
    counts={"calls": 900, "unparsed": 21, "truncated": 4, "empty": 2},
)


def records(plan: CellPlan, rate: float | str) -> list[TrialRecord]:
    if isinstance(rate, str):
        return trials_of(plan, 0.0, missing=rate)
    return [
        dataclasses.replace(
            one,
            reward=float(bool(one.success)),
            path_length=11 + one.trial,
            bumps=one.trial % 3,
            variables={"side": "left" if one.subject % 2 else "right"},
        )
        for one in trials_of(plan, rate)
    ]


@cache
def rich_run() -> RunSummary:
    """The run, without the sentences on verdicts: ``tests/statistics`` has them."""
    whole = told_run()
    cells = (
        dataclasses.replace(one, reason=f"Reason {number}.")
        for number, one in enumerate(whole.cells, 1)
    )
    return dataclasses.replace(whole, cells=tuple(cells))


@cache
def told_run() -> RunSummary:
    rates = dict(cells())

    def trials(plan: CellPlan) -> Iterator[list[TrialRecord]]:
        whole = records(plan, rates[plan])
        for first in range(0, len(whole), plan.trials):
            yield whole[first : first + plan.trials]

    asked = {plan.key: CALLS for plan in rates if plan.agent}
    causes = {
        plan.key: ("HTTP 503 from the server", "no answer in 60 s")
        for plan in rates
        if plan.protocol == "cage"
    }
    return summarise_subjects(MANIFEST, list(rates), trials, asked, causes)


class Words(HTMLParser):
    """The words of a page, and the data of its charts; no style and no script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._kind = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self._kind = tag if tag in ("style", "script") else ""
        if named.get("id") == "chart-data":
            self._kind = "data"

    def handle_endtag(self, tag: str) -> None:
        self._kind = ""

    def handle_data(self, data: str) -> None:
        if self._kind == "data":
            self.lines += [json.dumps(one, sort_keys=True) for one in json.loads(data)]
        elif not self._kind and data.strip():
            self.lines.append(" ".join(data.split()))


def words(summary: RunSummary) -> str:
    return "\n".join(Words(html.render(summary)).lines) + "\n"


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("run.txt", text.render),
        ("run.md", markdown.render),
        ("run.matrix.md", matrix.render),
        ("run.comment.md", matrix.render_comment),
        ("run.badge.svg", matrix.render_badge),
        ("run.board.svg", board.render),
        ("run.html.txt", words),
        ("run.json", comparison.plain_json),
    ],
)
def test_a_rich_run_in_every_format(
    name: str, render: Callable[[RunSummary], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    whole = render(rich_run())
    is_prose = name.endswith((".txt", ".md"))
    check_stored(name, without_prose(whole) if is_prose else whole)


def test_notes_are_not_replies_of_trials_that_did_not_finish() -> None:
    [gate] = [one for one in rich_run().cells if one.plan.protocol == "gate"]
    counts = {"calls": 15, "notes": 3, "unparsed": 12}
    calls = dataclasses.replace(CALLS, answered=17)
    cell = dataclasses.replace(gate, agent_counts=counts, calls=calls)
    said = told_cells.connected([cell])
    assert said == (
        "NO REPLY NAMED AN ACTION: 12 calls answered, and no reply was readable. "
        "Not counted: 2 in trials that did not finish."
    )
    done = dataclasses.replace(calls, answered=15)
    assert "Not" not in told_cells.connected([dataclasses.replace(cell, calls=done)])
