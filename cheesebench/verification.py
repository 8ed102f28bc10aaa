"""Verifies a log: its rows are unchanged, and every trial, when replayed, equals its
record.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import takewhile

from cheesebench import records
from cheesebench.errors import RunLogError, UnknownNameError
from cheesebench.experiment import replay as replaying
from cheesebench.experiment.log import RunLog
from cheesebench.family import SubjectContext
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.redaction import quoted
from cheesebench.statistics.wording import plural


def verify(log: RunLog) -> str:
    """Verify a log, and return sentences on what was verified. Raise RunLogError if
    rows were changed, a plan does not fit its protocol, a trial differs from its
    record, or a language model was never called.
    """
    rows = log.verify()
    _refuse(log, _uncalled(log))
    trials = replay(log, installed_plugins(), agents=True)
    return (
        f"Verified: {log.path} has the {rows:,} rows that were written. Replayed: {log.path}, "
        f"{plural(trials, 'trial')}.{_asked_as(log)}"
    )


def replay(
    log: RunLog,
    plugins: PluginManager,
    cells: Container[records.CellKey] | None = None,
    *,
    agents: bool = False,
) -> int:
    """Replay every trial of a log, or of some of its cells, and return the number of
    trials. With ``agents``, built-in agents also act again, and must act the same. The
    plans of the cells must fit their protocols.

    Raise RunLogError for the first difference.
    """
    return sum(
        _replay_cell(log, plugins, plan, acts=agents and _is_shipped(plan, plugins))
        for plan in log.plans()
        if cells is None or plan.key in cells
    )


def _replay_cell(
    log: RunLog, plugins: PluginManager, plan: records.CellPlan, *, acts: bool
) -> int:
    """Replay a cell, check its plan against its protocol, and return the number of
    trials. With ``acts``, the cell's agent also acts again, and must act the same.
    """
    specification = replaying.recorded_protocol(log, plan, plugins)
    family = plugins.family(specification)
    _check_bar(plan, family.as_planned(specification, plan))
    _check_goal(plan, bool(log.manifest["options"].get("familywise")))
    # Compile the protocol once for all subjects.
    paradigm = replaying.recorded_paradigm(log, plugins, plan)
    replayed = 0
    for life in log.trials_by_subject(plan):
        subject = life[0].subject
        wanted = {record.trial for record in life if not record.missing}
        watched = family.watch(log, plugins, plan, {subject: wanted})
        for trial in watched if wanted else ():
            replayed += 1
            if trial.differs:
                raise RunLogError(
                    f"{_which(trial.record)} does not follow from the model's replies. {trial.note}"
                )
        replaying.check_end(log, plugins, plan, paradigm, life)
        if acts:
            context = SubjectContext(
                plugins=plugins,
                plan=plan,
                seed=log.manifest["options"]["seed"],
                subject=subject,
            )
            _check_agent(life, family.live(paradigm, context))
    return replayed


def _is_shipped(plan: records.CellPlan, plugins: PluginManager) -> bool:
    """Return whether a cell's model is a built-in agent. Built-in agents act the same
    under the same seed; a stranger's agent may not.
    """
    found = plugins.agents.get(plan.model)
    create = None if found is None else getattr(found.create, "func", found.create)
    return getattr(create, "__module__", "").startswith(f"{__package__}.")


def _check_agent(
    life: Sequence[records.TrialRecord],
    lived: Iterable[tuple[records.TrialRecord, object]],
) -> None:
    """Raise RunLogError for a trial whose recorded actions differ from the actions in
    ``lived``, where the agent has acted again.
    """
    ran = takewhile(lambda record: not record.missing, life)
    for record, (again, _) in zip(ran, lived, strict=False):
        if record.actions != again.actions:
            raise RunLogError(
                f"{_which(record)} is not what {record.model} does under the run's seed. Use an "
                "undamaged copy, or the version of CheeseBench that the run's manifest names."
            )


def _which(record: records.TrialRecord) -> str:
    return f"Trial {record.trial + 1} of subject {record.subject} ({record.model} on {record.protocol})"


def _check_bar(plan: records.CellPlan, true: records.CellPlan) -> None:
    """Raise RunLogError if a recorded plan differs from the ``true`` one in anything
    that affects a verdict.
    """
    recorded = _judged_by(plan)
    for name, value in _judged_by(true).items():
        # A log of an earlier version has an empty schedule.
        if recorded[name] not in (value, ()):
            raise RunLogError(
                f"The run judges {plan.label} by another {name} than its protocol: "
                f"{quoted(str(recorded[name]), 60)}, not {quoted(str(value), 60)}. Use an undamaged copy."
            )


def _check_goal(plan: records.CellPlan, familywise: bool) -> None:
    """Raise RunLogError if a verdict of the run needs other evidence than its options
    say.
    """
    times, rest = divmod(plan.goal, records.GOAL)
    if rest or times < 1 or (times > 1 and not familywise):
        raise RunLogError(
            f"The run judges {plan.label} by other evidence than its options say: {plan.goal:g} to 1, not "
            f"{records.GOAL:g} to 1. Use an undamaged copy."
        )


def _judged_by(plan: records.CellPlan) -> dict[str, object]:
    """Return the parts of a plan that come from the protocol and affect a verdict.
    Descriptions of the animals are left out, because their words change from version to
    version.
    """
    animals = plan.reference
    return {
        "number of trials": plan.trials,
        "schedule": plan.blocks,
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
    """Verify only the rows of a log, and return a sentence on this. The sentence names
    language models that were never called.

    Raise RunLogError if the rows were changed and, with ``ranked``, for a language
    model that was never called.
    """
    rows, uncalled = log.verify(), _uncalled(log)
    if ranked:
        _refuse(log, uncalled)
    models = dict.fromkeys(plan.model for plan in uncalled)
    named = f"; there is not one call to {', '.join(models)}" if models else ""
    return (
        f"{log.path} has the {rows:,} rows that were written; its trials were not replayed "
        f"(cheesebench report RUN --verify does that){named}.{_asked_as(log)}"
    )


def _asked_as(log: RunLog) -> str:
    """Return sentences on the language models whose servers were asked for a different
    model from the one that the name stands for here.
    """
    plugins = installed_plugins()
    pairs = dict.fromkeys(
        (plan.model, plan.settings["id"])
        for plan in log.plans()
        if "id" in plan.settings
    )
    return "".join(
        f" {name} was asked for as '{quoted(str(asked))}'."
        for name, asked in pairs
        if _id_of(name, plugins) not in (None, asked)
    )


def _id_of(name: str, plugins: PluginManager) -> str | None:
    """Return the id for which a server is asked, or None for a name that is unknown."""
    try:
        return resolve_model(plugins, name).id
    except UnknownNameError:
        return None


def _refuse(log: RunLog, uncalled: Sequence[records.CellPlan]) -> None:
    for plan in uncalled:
        raise RunLogError(
            f"{log.path} has trials of {plan.model}, but not one call to it. Leave the run out."
        )


def calls_by_cell(log: RunLog) -> dict[records.CellKey, records.CellCalls]:
    """Return the call totals of every cell that made calls. A language model's cell
    that has trials but no calls has a total of 0.
    """
    none = records.CellCalls()
    return {**{plan.key: none for plan in _uncalled(log)}, **log.calls.by_cell()}


def _uncalled(log: RunLog) -> list[records.CellPlan]:
    """Return the language models' cells that have trials but no calls: the log is a
    replay, or the model's name was changed. An unknown name without an agent is no
    language model, because it may be an agent of a ``conftest.py``, which only pytest
    finds.
    """
    called, plugins = log.calls.by_cell(), installed_plugins()
    return [
        plan
        for plan in log.plans()
        if plan.key not in called
        and _is_language_model(plan, plugins)
        and any(not one.missing for life in log.trials_by_subject(plan) for one in life)
    ]


def _is_language_model(plan: records.CellPlan, plugins: PluginManager) -> bool:
    if plan.model in plugins.agents or plan.model in plugins.respondents:
        return False
    try:
        resolve_model(plugins, plan.model)
    except UnknownNameError:
        return bool(plan.agent)
    return True
