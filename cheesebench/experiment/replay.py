"""Replay: a recorded trial once more, from its actions, to be looked at."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.errors import RunLogError
from cheesebench.experiment.controls import controlled
from cheesebench.experiment.subjects import read_result
from cheesebench.interfaces import ACTION_OF_LETTER, RUNNING

if TYPE_CHECKING:
    from cheesebench.dialogue import Conversational
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.interfaces import Life, Paradigm, View
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import AnySpecification, Specification


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of the film: the letter of the action that led to it ("" for the first), and its reward."""

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
    lived_in = controlled(paradigm, plan, seed, log.directory.parent)
    return replay(lived_in.life(view, seed, record.subject), records)


def replay(life: Life, records: Sequence[TrialRecord]) -> list[Frame]:
    """Live ``records`` (a subject's trials from its first one) again and return the film of the last of them.

    Trials depend on the trials before them, therefore all of them are lived, and each must come out exactly as
    recorded: RunLogError names the first that does not.
    """
    last: list[Frame] = []
    for frames in films(life, records):
        last = frames
    return last


def films(life: Life, records: Iterable[TrialRecord]) -> Iterator[list[Frame]]:
    """Yield the film of each of ``records`` (a subject's trials from its first one), checked as in ``replay``."""
    for record in records:
        yield _replay_trial(life, record)


def recorded_protocol(log: RunLog, plan: CellPlan) -> Specification:
    """Return the protocol of a cell as the run used it, from the run's own manifest, wherever its file is now.

    Raises RunLogError when this version reads another protocol out of that text, or when it is a dialogue.
    """
    from cheesebench.protocol import Specification

    specification = _recorded(log, plan)
    if not isinstance(specification, Specification):
        raise RunLogError(f"'{plan.protocol}' is a dialogue: it has no film. See its calls: cheesebench show.")
    return specification


def recorded_dialogue(log: RunLog, plugins: PluginManager, plan: CellPlan) -> Conversational:
    """Return what the subjects of a dialogue's cell were asked, compiled once more; see ``recorded_paradigm``."""
    from cheesebench.protocol import DialogueSpecification

    specification = _recorded(log, plan)
    if not isinstance(specification, DialogueSpecification):
        raise RunLogError(f"'{plan.protocol}' is no dialogue.")
    return plugins.compile_dialogue(specification)


def _recorded(log: RunLog, plan: CellPlan) -> AnySpecification:
    from cheesebench.protocol import Catalogue

    recorded = log.manifest["protocols"].get(plan.protocol, {})
    specification, found = Catalogue().inspect_text(recorded.get("text", ""), f"{plan.protocol}.protocol.yaml")
    if specification is None or specification.sha256 != plan.sha256:
        reason = found[0].sentence if found else "it means something else now"
        raise RunLogError(f"The protocol '{plan.protocol}' cannot be read as the run had it ({reason}). {_REMEDY}")
    return specification


def recorded_paradigm(log: RunLog, plugins: PluginManager, plan: CellPlan) -> Paradigm:
    """Return what the subjects of a cell lived in: its protocol (or control) compiled once more.

    Raises RunLogError as ``recorded_protocol`` does, and PluginError where no plugin compiles it.
    """
    paradigm = plugins.compile(recorded_protocol(log, plan))
    return controlled(paradigm, plan, log.manifest["options"]["seed"], log.directory.parent)


def _replay_trial(life: Life, record: TrialRecord) -> list[Frame]:
    if record.missing:
        raise RunLogError(f"{_name(record)} was not run ({record.missing}), so there is nothing to replay.")
    observation = life.begin_trial()
    if observation is None:
        raise RunLogError(f"{_name(record)} cannot be replayed: the schedule is over before it. {_REMEDY}")
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
            f"{_name(record)} does not come out as recorded: {name} was {getattr(record, name)!r} "
            f"and is now {getattr(lived, name)!r}. {_REMEDY}"
        )
    return frames


_REMEDY = "Use the protocol and the version of CheeseBench that the run's manifest names."


def _name(record: TrialRecord) -> str:
    return f"Trial {record.trial} of subject {record.subject} ({record.model} on {record.protocol}, {record.view})"
