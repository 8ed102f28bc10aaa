"""Judges the cells of one run, or of several runs together, from their logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from cheesebench import frozen
from cheesebench.errors import OptionError
from cheesebench.experiment import unfinished
from cheesebench.experiment.log_file import is_claimed
from cheesebench.statistics import RunSummary, summarise_subjects
from cheesebench.statistics.judgement import judge_set
from cheesebench.statistics.wording import plural
from cheesebench.verification import calls_by_cell

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.records import CellKey, CellPlan


def summarise_log(log: RunLog, *, finished_only: bool | None = None) -> RunSummary:
    """Judge a run.

    With ``finished_only``, only finished cells are judged, because trials of a running
    cell are not missing yet; the summary's manifest then has the number of these cells.
    None, the default, means True while a session is running the run, otherwise False.
    """
    plans, manifest = log.plans(), log.manifest
    if is_claimed(log.path) if finished_only is None else finished_only:
        finished = [
            plan for plan in plans if unfinished.is_finished(log, plan, judge_set)
        ]
        manifest = {
            **manifest,
            "in_progress": f"{len(finished)} of {plural(len(plans), 'cell')}",
        }
        plans = finished
    found = summarise_subjects(
        manifest,
        plans,
        log.trials_by_subject,
        calls_by_cell(log),
        log.causes(),
        log.remarks,
    )
    return replace(found, frozen_set=_frozen_set([log]))


def summarise_logs(logs: Sequence[RunLog]) -> RunSummary:
    """Judge the cells of several runs as if they belonged to one run.

    Raise OptionError unless all cells are finished, all runs have the same rules, and
    every cell is in one run only.
    """
    owner: dict[CellKey, RunLog] = {}
    for log in logs:
        for plan in log.plans():
            _check_joins(log, plan, owner)
            owner[plan.key] = log
    for first, second in combinations(logs, 2):
        _check_rules(first, second)
    calls = {key: one for log in logs for key, one in calls_by_cell(log).items()}
    causes = {key: one for log in logs for key, one in log.causes().items()}
    plans = [plan for log in logs for plan in log.plans()]
    found = summarise_subjects(
        _joint_manifest(logs),
        plans,
        lambda plan: owner[plan.key].trials_by_subject(plan),
        calls,
        causes,
        lambda plan: owner[plan.key].remarks(plan),
    )
    return replace(found, frozen_set=_frozen_set(logs))


def _check_rules(first: RunLog, second: RunLog) -> None:
    """Raise OptionError if the plain cells of a protocol have no rules in common."""
    mine, theirs = _rules(first), _rules(second)
    for protocol, rules in theirs.items():
        if protocol in mine and rules.isdisjoint(mine[protocol]):
            raise OptionError(
                f"{protocol} has other rules in {second.path} than in {first.path} (protocol, design, trials, "
                "estimand or margin). Their results cannot be compared: leave one of them out."
            )


def _rules(log: RunLog) -> dict[str, set[tuple[object, ...]]]:
    """Return the rules of each protocol's plain cells. A run may have several, because
    its agents and language models have different designs. A control is compared only
    with its own plain cell.
    """
    found: dict[str, set[tuple[object, ...]]] = {}
    for plan in log.plans():
        if not plan.control:
            rule = (plan.sha256, plan.trials, plan.estimand, plan.design, plan.margin)
            found.setdefault(plan.protocol, set()).add(rule)
    return found


def _frozen_set(logs: Iterable[RunLog]) -> str:
    """Return the name of the runs' frozen set, or "" if there is none. There are
    several names if the runs have different sets, or only some of them differ from
    their set (``+``).
    """
    found = (frozen.standing(log.plans(), log.manifest["protocols"]) for log in logs)
    return ", ".join(sorted({str(one) for one in found if one is not None}))


def _check_joins(log: RunLog, plan: CellPlan, owner: dict[CellKey, RunLog]) -> None:
    """Raise OptionError for a cell that is not finished, or is also in another log."""
    if not unfinished.is_finished(log, plan, judge_set):
        raise OptionError(
            f"{log.run_id} is incomplete: {plan.label} ({plan.model}) is not finished. Continue the run with "
            f"--resume {log.run_id}, or leave it out."
        )
    if plan.key in owner:
        raise OptionError(
            f"{owner[plan.key].path} and {log.path} both have {plan.model} on {plan.label} in {plan.view}. "
            "Leave one of them out."
        )


def _joint_manifest(logs: Iterable[RunLog]) -> dict[str, object]:
    manifests = [log.manifest for log in logs]
    return {
        "run_id": ", ".join(str(one["run_id"]) for one in manifests),
        "protocols": {
            name: text for one in manifests for name, text in one["protocols"].items()
        },
        "options": {
            "seed": ", ".join(str(one["options"].get("seed")) for one in manifests)
        },
    }
