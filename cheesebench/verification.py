"""Verifies a log: its rows are unchanged, and its trials, when replayed, equal their
records.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from cheesebench import records
from cheesebench.amounts import dollars, duration
from cheesebench.chat import Usage
from cheesebench.errors import CheeseBenchError, RunLogError, UnknownNameError
from cheesebench.experiment import planned
from cheesebench.experiment import replay as replaying
from cheesebench.experiment.log import RunLog
from cheesebench.family import SubjectContext
from cheesebench.interfaces import BaseSpecification
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.redaction import quoted
from cheesebench.statistics.wording import plural


def verify(log: RunLog) -> str:
    """Verify a log, and return sentences on what was verified. Raise RunLogError if
    rows were changed, a plan or a trial differs from its record, or a language
    model's cell has trials but no calls.
    """
    rows = log.verify()
    _refuse(log, _uncalled(log))
    trials, told = replay(log)
    return (
        f"Verified: the {rows:,} rows of {log.path} are as they were written. Replayed: {log.path}, "
        f"{plural(trials, 'trial')}.{told}"
    )


def _unheard(said: object) -> None:
    """Ignore what is said."""


#: Number of trials of each cell that ``replay_counted`` has replayed in this process,
#: by the digest of its log's rows. A run that this process has made is not in it: its
#: workers read the code from the disk, where an upgrade may have changed it since this
#: process began, and only the replay would notice.
REPLAYED: dict[str, dict[records.CellKey, int]] = {}


def replay_counted(
    path: Path,
    cells: Container[records.CellKey] | None = None,
    progress: Callable[[str], None] = _unheard,
) -> str:
    """Replay the trials of some cells of a run, and return sentences on this. Return ""
    for a baseline, which has no trials.

    If ``cells`` is None, all cells are replayed, after the checks of ``read_counted``.
    A run that another version of CheeseBench wrote is not replayed, because differences
    are possible; the sentence says so. A cell is replayed once in a process, unless
    rows of its log change. ``progress`` is called with a line after each subject. Raise
    RunLogError for a plan or a trial that differs from its record.
    """
    if path.suffix == ".json":
        return ""
    began, name = time.monotonic(), quoted(path.parent.name)
    with RunLog.open_read_only(path) as log:
        if cells is None:
            rows_only(log, ranked=True)
        if not planned.written_here(log):
            version = quoted(log.manifest["versions"].get("cheesebench", "unknown"), 30)
            return (
                f"Not replayed: {name}, which CheeseBench {version} wrote.{_told(log)}"
            )
        known = REPLAYED.setdefault(log.rows_digest(), {})
        before = len(known)
        trials, said = replay(
            log,
            cells,
            lambda count: progress(f"Replaying {name}: {plural(count, 'trial')}"),
            known,
        )
    took = f"in {duration(time.monotonic() - began)}"
    if trials and len(known) == before:
        took = "earlier in this session, and the log is the same"
    return f"Replayed: {name}, {plural(trials, 'trial')} {took}.{said}"


def replay(
    log: RunLog,
    cells: Container[records.CellKey] | None = None,
    counted: Callable[[int], None] = _unheard,
    known: dict[records.CellKey, int] | None = None,
) -> tuple[int, str]:
    """Plan and replay every cell of a log, or some of its cells. Built-in agents act
    again, and so do the agents of language models, from the recorded replies.

    Return the number of trials, and sentences on what is to be known of the log.
    ``counted`` is called with the number of trials so far. ``known`` has the numbers of
    trials of cells that need not be replayed, and the numbers of the others are added
    to it. Raise RunLogError for a plan or a trial that differs from its record.
    """
    plugins, trials, gaps = installed_plugins(), 0, dict[str, None]()
    known = {} if known is None else known
    for plan in log.plans():
        if cells is None or plan.key in cells:
            specification = replaying.recorded_protocol(log, plan, plugins)
            gaps[planned.check_plan(log, plugins, plan, specification)] = None
            if plan.agent and plan.agent not in plugins.model_agents:
                gaps[
                    f" The replies to the agent '{quoted(plan.agent, 60)}' were not read again: there is no such agent here."
                ] = None
            if plan.key in known:
                trials += known[plan.key]
                continue
            before = trials
            for count in _replay_cell(log, plugins, plan, specification):
                trials += count
                counted(trials)
            known[plan.key] = trials - before
    return trials, "".join(gaps) + _told(log)


def _replay_cell(
    log: RunLog,
    plugins: PluginManager,
    plan: records.CellPlan,
    specification: BaseSpecification,
) -> Iterator[int]:
    """Replay a cell, and yield the number of trials of each subject."""
    family = plugins.family(specification)
    # Compile the protocol once for all subjects.
    paradigm = replaying.recorded_paradigm(log, plugins, plan)
    for life in log.trials_by_subject(plan):
        subject = life[0].subject
        wanted = {record.trial for record in life if not record.missing}
        if plan.agent in plugins.model_agents:
            replaying.check_conversation(log, plugins, plan, paradigm, life)
            yield len(wanted)
            continue
        for _ in family.watch(log, plugins, plan, {subject: wanted}) if wanted else ():
            pass
        replaying.check_end(log, plugins, plan, paradigm, life)
        if _is_shipped(plan, plugins):
            context = SubjectContext(
                plugins=plugins,
                plan=plan,
                seed=log.manifest["options"]["seed"],
                subject=subject,
            )
            _check_agent(life, family.live(paradigm, context))
        yield len(wanted)


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


def rows_only(log: RunLog, ranked: bool = False) -> str:
    """Verify only the rows of a log, and return a sentence on this. The sentence names
    language models that have trials on a protocol but no calls.

    Raise RunLogError if the rows were changed and, with ``ranked``, for such a
    language model.
    """
    rows, uncalled = log.verify(), _uncalled(log)
    if ranked:
        _refuse(log, uncalled)
    models = dict.fromkeys(plan.model for plan in uncalled)
    named = (
        f"; there are trials without one call to {', '.join(models)}" if models else ""
    )
    return (
        f"The {rows:,} rows of {log.path} are as they were written. Its trials were not replayed "
        f"(cheesebench report RUN --verify does that){named}.{_told(log)}"
    )


def _told(log: RunLog) -> str:
    """Return sentences on language models whose names stand for other models here, and
    on language models whose recorded costs differ from what their tokens cost here.
    Costs in a log of another version of CheeseBench are not compared.
    """
    calls, none = log.calls.by_cell(), records.CellCalls()
    spent: dict[tuple[str, str], records.CallTotals] = {}
    for plan in log.plans():
        if "id" in plan.settings:
            asked = plan.model, str(plan.settings["id"])
            own = calls.get(plan.key, none)
            spent[asked] = spent.get(asked, none.totals) + own.totals
    is_here = planned.written_here(log)
    return "".join(
        _told_of(*asked, totals if is_here else none.totals)
        for asked, totals in spent.items()
    )


def _told_of(name: str, asked: str, totals: records.CallTotals) -> str:
    try:
        entry = resolve_model(installed_plugins(), name)
    except CheeseBenchError:
        return ""
    if entry.id != asked:
        return f" In the log, {name} stands for '{quoted(asked)}', here for '{quoted(entry.id)}'."
    usage = Usage(
        prompt=totals.prompt,
        completion=totals.completion,
        cached=totals.cached,
        written=totals.written,
    )
    cost = totals.cost if entry.price is None else entry.price.cost(usage)
    if math.isclose(cost, totals.cost, rel_tol=1e-6, abs_tol=1e-9):
        return ""
    return f" {name} cost {dollars(totals.cost)} according to the log, but its tokens cost {dollars(cost)} here."


def _refuse(log: RunLog, uncalled: Sequence[records.CellPlan]) -> None:
    for plan in uncalled:
        raise RunLogError(
            f"{log.path} has trials of {plan.model} on {plan.label}, but not one call to it. Leave the run out."
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
        if (plan.key not in called or not plan.agent)
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
