"""Whether a log says what happened: its rows are those that were written, and every
trial, lived again, comes out as it was recorded.
"""

from __future__ import annotations

from collections.abc import Container

from cheesebench.errors import RunLogError, UnknownNameError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import recorded_protocol
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.records import CellKey, CellPlan
from cheesebench.statistics.wording import plural


def verify(log: RunLog) -> str:
    """Return what was verified. Raises RunLogError for a log that was changed."""
    rows, trials = check_rows(log), replay(log, installed_plugins())
    return (
        f"Verified: {log.path} has the {rows:,} rows that were written. Replayed: {log.path}, "
        f"{plural(trials, 'trial')}."
    )


def check_rows(log: RunLog) -> int:
    """Return the number of rows. Raises RunLogError if they are not those that were
    written, or as ``check_calls``.
    """
    rows = log.verify()
    check_calls(log)
    return rows


def replay(
    log: RunLog, plugins: PluginManager, cells: Container[CellKey] | None = None
) -> int:
    """Live every trial of a log again, or of some of its cells, and return their
    number. Raises RunLogError for one that comes out otherwise.
    """
    replayed = 0
    for plan in log.plans():
        if cells is not None and plan.key not in cells:
            continue
        family = plugins.family(recorded_protocol(log, plan, plugins))
        for life in log.trials_by_subject(plan):
            wanted = {record.trial for record in life if not record.missing}
            if wanted:
                replayed += sum(
                    1
                    for _ in family.watch(log, plugins, plan, {life[0].subject: wanted})
                )
    return replayed


def rows_only(log: RunLog, ranked: bool) -> str:
    """Return what is known of a log whose trials are not replayed. Raises RunLogError
    if its rows are not those that were written; where models are ``ranked``, as
    ``check_calls``, too.
    """
    if ranked:
        check_calls(log)
    rows, models = log.verify(), uncalled(log)
    named = f"; there is not one call to {', '.join(models)}" if models else ""
    return (
        f"{log.path} has the {rows:,} rows that were written; its trials were not replayed "
        f"(--verify){named}."
    )


def check_calls(log: RunLog) -> None:
    """Raise RunLogError for trials of a language model that was never called."""
    for model in uncalled(log):
        raise RunLogError(
            f"{log.path} has trials of {model}, but not one call to it. Leave the run out."
        )


def uncalled(log: RunLog) -> list[str]:
    """Return the language models that have trials without a single call: this is the
    replay of a run, or a log under another name. An agent may be defined where only
    pytest finds it (a ``conftest.py``), so an unknown name is none.
    """
    called, plugins = log.calls.by_cell(), installed_plugins()
    return [
        plan.model
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
