"""What the pages of ``cheesebench view`` show of a run, as JSON values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cheesebench.baselines import count_run
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.records import CellPlan
from cheesebench.plugin_manager import PluginManager
from cheesebench.server.pages import shown
from cheesebench.server.watch import CellState, RunState
from cheesebench.statistics import CellResult
from cheesebench.statistics.run import summarise_subjects
from cheesebench.statistics.runs import RunComparison, compare_runs
from cheesebench.statistics.wording import number, with_doubts


def to_json(state: RunState) -> dict[str, Any]:
    """Return a run's state as the page shows it; seconds are whole, so that it changes once a second."""
    flight = state.flight
    return {
        "run": shown(state.run_id),
        "created": state.created,
        "status": state.status,
        "design": shown(state.design),
        "cells": [_cell(number, cell, state) for number, cell in enumerate(state.cells)],
        "models": [
            {
                "name": shown(one.model),
                "view": shown(one.view),
                "gate": one.gate.value,
                "reason": shown(one.gate_reason),
            }
            for one in state.models
        ],
        "done": state.done,
        "left": state.left,
        "most": sum(cell.most for cell in state.cells),
        "calls": state.calls.calls,
        "tokens": state.calls.prompt + state.calls.completion,
        "cost": state.calls.cost,
        "cost_left": state.cost_left,
        "max_cost": state.max_cost,
        "seconds": round(state.seconds),
        "seconds_left": None if state.seconds_left is None else round(state.seconds_left),
        "in_flight": None if flight is None else flight.calls,
        "limit": None if flight is None else flight.limit,
        "replies": [
            {
                "cell": shown(f"{reply.key[0]} on {reply.key[1]}"),
                "subject": reply.subject,
                "trial": reply.trial,
                "text": reply.text.encode("utf-8", "replace").decode(),
                "seconds": round(reply.seconds, 1),
            }
            for reply in state.replies
        ],
    }


def _cell(number: int, cell: CellState, state: RunState) -> dict[str, Any]:
    plan, result = cell.plan, cell.result
    look, decided = result.look, not state.is_open(cell)
    return {
        "number": number,
        "model": shown(plan.model),
        "protocol": shown(plan.label),
        "title": shown(plan.title or plan.protocol),
        "view": shown(", ".join(filter(None, (plan.view, "" if plan.in_words else str(plan.variant))))),
        "control": bool(plan.control),
        "verdict": result.verdict.value,
        "decided": decided,
        # While a cell is run, what has not been run yet is missing.
        "reason": shown(with_doubts(result) if decided else result.reason),
        "rate": result.rate,
        "interval": result.interval,
        "reference": None if plan.reference is None or plan.measured is not None else plan.reference.value,
        "margin": plan.margin,
        "measured": _measured(result),
        "chance": plan.chance,
        "subjects": cell.begun,
        "planned": plan.subjects,
        "look": None if look is None else look.following or look.subjects,
        "done": cell.done,
        "left": cell.left,
        "calls": cell.calls.calls,
        "cost": cell.calls.cost,
    }


def _measured(result: CellResult) -> dict[str, str | None] | None:
    """Return the measure that the verdict is about, as text; None for a pass rate."""
    measured, judged, reference = result.plan.measured, result.judged, result.plan.reference
    if measured is None or reference is None:
        return None
    limits = None if judged is None or judged.interval is None else " to ".join(map(number, judged.interval))
    mean = "–" if judged is None else number(judged.mean)
    return {"mean": shown(f"{measured.name} {mean}"), "interval": limits, "reference": number(reference.value)}


def subjects(log: RunLog, plan: CellPlan) -> list[dict[str, Any]]:
    """Return the subjects of a cell that have begun, one after the other."""
    complete = log.completed_subjects(plan)
    rows = []
    for records in log.recorded_subjects(plan):
        run = [record for record in records if not record.missing]
        rows.append(
            {
                "subject": records[0].subject,
                "trials": len(run),
                "passed": sum(record.success is True for record in run),
                "failed": sum(record.success is False for record in run),
                "complete": records[0].subject in complete,
            }
        )
    return rows


def report(path: Path, plugins: PluginManager) -> str:
    """Return the HTML report of a run."""
    with RunLog.open_read_only(path) as log, log.snapshot():
        summary = summarise_subjects(
            log.manifest, log.plans(), log.trials_by_subject, log.calls.by_cell(), log.causes()
        )
        return plugins.report("html", summary, log)


def compare(first: Path, second: Path, models: tuple[str | None, str | None]) -> RunComparison:
    """Return the comparison of two runs. Raises ComparisonError where they cannot be compared."""
    counted = []
    for path in (first, second):
        with RunLog.open_read_only(path) as log, log.snapshot():
            counted.append(count_run(log, path.parent.name))
    return compare_runs(counted[0], counted[1], models=models)
