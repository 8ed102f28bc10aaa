"""Verifies a log: its rows are unchanged, and every trial, when replayed, equals its
record.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from cheesebench.errors import RunLogError, UnknownNameError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import recorded_protocol
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.records import CellCalls, CellKey, CellPlan
from cheesebench.redaction import quoted
from cheesebench.statistics.wording import plural


def verify(log: RunLog) -> str:
    """Return a description of the verified parts. Raises RunLogError for a log that was
    changed.
    """
    rows = log.verify()
    _refuse(log, _uncalled(log))
    trials = replay(log, installed_plugins())
    return (
        f"Verified: {log.path} has the {rows:,} rows that were written. Replayed: {log.path}, "
        f"{plural(trials, 'trial')}."
    )


def replay(
    log: RunLog, plugins: PluginManager, cells: Container[CellKey] | None = None
) -> int:
    """Replay every trial of a log, or of some of its cells, and return their number.

    Raises RunLogError for a trial that differs from its record.
    """
    replayed = 0
    for plan in log.plans():
        if cells is not None and plan.key not in cells:
            continue
        specification = recorded_protocol(log, plan, plugins)
        family = plugins.family(specification)
        _check_bar(plan, family.as_planned(specification, plan))
        for life in log.trials_by_subject(plan):
            wanted = {record.trial for record in life if not record.missing}
            if wanted:
                replayed += sum(
                    1
                    for _ in family.watch(log, plugins, plan, {life[0].subject: wanted})
                )
    return replayed


def _check_bar(plan: CellPlan, true: CellPlan) -> None:
    """Raise RunLogError for a cell whose plan contradicts its protocol."""
    recorded = _judged_by(plan)
    for name, value in _judged_by(true).items():
        if recorded[name] != value:
            raise RunLogError(
                f"The run judges {plan.label} by another {name} than its protocol: "
                f"{quoted(str(recorded[name]), 60)}, not {quoted(str(value), 60)}. Use an undamaged copy."
            )


def _judged_by(plan: CellPlan) -> dict[str, object]:
    """Return the fields of a plan that come from the protocol and affect a verdict.
    Descriptions of the animals are left out, because their wording changes from version
    to version.
    """
    animals = plan.reference
    return {
        "number of trials": plan.trials,
        "way to stop": "sequential" if plan.sequential else "fixed",
        "estimand": plan.estimand,
        "margin": plan.margin,
        "twin_of": plan.twin_of,
        "chance": None if plan.against == "reference" else plan.chance,
        "reference": animals
        and (
            animals.value,
            animals.interval,
            animals.sd,
            animals.n_animals,
            animals.measured,
        ),
    }


def rows_only(log: RunLog, ranked: bool = False) -> str:
    """Return a description of a log whose trials are not replayed.

    Raises RunLogError if its rows were changed; if models are ``ranked``, also for a
    language model that was never called.
    """
    rows, uncalled = log.verify(), _uncalled(log)
    if ranked:
        _refuse(log, uncalled)
    models = dict.fromkeys(plan.model for plan in uncalled)
    named = f"; there is not one call to {', '.join(models)}" if models else ""
    return (
        f"{log.path} has the {rows:,} rows that were written; its trials were not replayed "
        f"(cheesebench report --verify){named}."
    )


def _refuse(log: RunLog, uncalled: Sequence[CellPlan]) -> None:
    for plan in uncalled:
        raise RunLogError(
            f"{log.path} has trials of {plan.model}, but not one call to it. Leave the run out."
        )


def calls_by_cell(log: RunLog) -> dict[CellKey, CellCalls]:
    """Return the totals of the calls of each cell with calls; for a language model with
    trials but no calls, an empty total.
    """
    none = CellCalls()
    return {**{plan.key: none for plan in _uncalled(log)}, **log.calls.by_cell()}


def _uncalled(log: RunLog) -> list[CellPlan]:
    """Return the cells of language models that have trials but no calls: the log is a
    replay, or has a wrong name.

    An agent may be defined where only pytest finds it (a ``conftest.py``), so an
    unknown name does not count as a language model.
    """
    called, plugins = log.calls.by_cell(), installed_plugins()
    return [
        plan
        for plan in log.plans()
        if plan.key not in called
        and _is_language_model(plan, plugins)
        and any(not one.missing for life in log.trials_by_subject(plan) for one in life)
    ]


def _is_language_model(plan: CellPlan, plugins: PluginManager) -> bool:
    if plan.model in plugins.agents or plan.model in plugins.respondents:
        return False
    try:
        resolve_model(plugins, plan.model)
    except UnknownNameError:
        return bool(plan.agent)
    return True
