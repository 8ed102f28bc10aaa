"""Replays recorded trials from their actions, to show their observations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.errors import RunLogError
from cheesebench.experiment.controls import controlled, yokes_of
from cheesebench.experiment.subjects import read_result
from cheesebench.interfaces import ACTION_OF_LETTER, RUNNING, Paradigm
from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.interfaces import CompiledProtocol, SubjectEnvironment, View
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a film: the letter of the action that led to it ("" for the first), the observation, the reward."""

    action: str
    observation: str
    reward: float


def film(log: RunLog, paradigm: Paradigm, view: View, record: TrialRecord) -> list[Frame]:
    """Return the film of a recorded trial; ``paradigm`` is compiled from the protocol that the run used.

    Raises RunLogError when the trial is missing or does not come out as recorded.
    """
    plan = next(plan for plan in log.plans() if plan.key == record.key)
    seed = log.manifest["options"]["seed"]
    records = log.trials(plan, record.subject)[: record.trial + 1]
    lived_in = steppable(controlled(paradigm, plan, seed, yokes_of(plan, log.directory.parent)), plan)
    return replay(lived_in.environment(view, seed, record.subject), records)


def replay(life: SubjectEnvironment, records: Sequence[TrialRecord]) -> list[Frame]:
    """Replay ``records`` (a subject's trials from its first one) and return the film of the last of them.

    Trials depend on earlier trials, so all of them are replayed, and each must be exactly as recorded. Raises
    RunLogError for the first that is not.
    """
    last: list[Frame] = []
    for frames in films(life, records):
        last = frames
    return last


def films(life: SubjectEnvironment, records: Iterable[TrialRecord]) -> Iterator[list[Frame]]:
    """Yield the film of each of ``records`` (a subject's trials from its first one), checked as in ``replay``."""
    for record in records:
        yield _replay_trial(life, record)


def recorded_protocol(log: RunLog, plan: CellPlan, plugins: PluginManager | None = None) -> BaseSpecification:
    """Return the protocol of a cell as the run used it, from the run's own manifest, wherever its file is now.

    ``plugins`` have the families (default: those that are installed). Raises RunLogError when this version reads
    another protocol out of that text.
    """
    from cheesebench.protocol import Catalogue

    recorded = log.manifest["protocols"].get(plan.protocol, {})
    catalogue = Catalogue(families=None if plugins is None else plugins.families)
    specification, found = catalogue.inspect_text(recorded.get("text", ""), f"{plan.protocol}.protocol.yaml")
    if specification is None or specification.sha256 != plan.sha256:
        reason = found[0].sentence if found else "its meaning has changed"
        raise RunLogError(f"The protocol '{plan.protocol}' cannot be read as in the run ({reason}). {_REMEDY}")
    return specification


def recorded_paradigm(log: RunLog, plugins: PluginManager, plan: CellPlan) -> CompiledProtocol:
    """Return the paradigm of a cell's subjects: its recorded protocol compiled again, with its control.

    Raises RunLogError like ``recorded_protocol``, and PluginError if no plugin compiles it.
    """
    compiled = plugins.compile(recorded_protocol(log, plan, plugins))
    return controlled(compiled, plan, log.manifest["options"]["seed"], yokes_of(plan, log.directory.parent))


def steppable(compiled: CompiledProtocol, plan: CellPlan) -> Paradigm:
    """Return a cell's paradigm as one that is lived step by step; RunLogError where it is not."""
    if not isinstance(compiled, Paradigm):
        family = compiled.specification.family
        raise RunLogError(
            f"'{plan.protocol}' is a {family}, whose trials cannot be watched. To see its calls: cheesebench show."
        )
    return compiled


def _replay_trial(life: SubjectEnvironment, record: TrialRecord) -> list[Frame]:
    if record.missing:
        raise RunLogError(f"{_name(record)} was not run ({record.missing}), so there is nothing to replay.")
    observation = life.begin_trial()
    if observation is None:
        raise RunLogError(f"{_name(record)} cannot be replayed: the schedule ends before it. {_REMEDY}")
    frames = [Frame("", observation, 0.0)]
    total, status = 0.0, RUNNING
    for letter in record.actions:
        if status != RUNNING:
            raise RunLogError(f"{_name(record)} cannot be replayed: it ends before its last action. {_REMEDY}")
        observation, reward, status = life.step(ACTION_OF_LETTER[letter])
        total += reward
        frames.append(Frame(letter, observation, reward))
    if status == RUNNING:
        raise RunLogError(f"{_name(record)} cannot be replayed: it does not end with its last action. {_REMEDY}")
    lived = dataclasses.replace(record, reward=total, **read_result(life.result()))
    if lived != record:
        names = [field.name for field in dataclasses.fields(record)]
        name = next(name for name in names if getattr(lived, name) != getattr(record, name))
        raise RunLogError(
            f"{_name(record)} differs from the record: {name} was {quoted(repr(getattr(record, name)))} "
            f"and is now {quoted(repr(getattr(lived, name)))}. {_REMEDY}"
        )
    return frames


_REMEDY = "Use the protocol and the version of CheeseBench that the run's manifest names."


def _name(record: TrialRecord) -> str:
    return f"Trial {record.trial} of subject {record.subject} ({record.model} on {record.protocol}, {record.view})"
