"""Controls: cells of any protocol in which one source of learning is removed.

A control cell has the plan of its plain cell except for the variant (``control=NAME``), so its subjects have the same
seeds and draws, and their curves can be paired. It makes no claim of its own. Controls are applied in one place:
``controlled`` wraps the paradigm that is compiled for a plan.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.errors import OptionError, RunLogError, UnknownNameError
from cheesebench.executor import Yoke
from cheesebench.experiment.designs import COHORT
from cheesebench.experiment.lesioned import LesionedParadigm, claimed, lesion_of, obstacle, parse_control
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.experiment.records import CellPlan
from cheesebench.interfaces import (
    ACTION_OF_LETTER,
    RUNNING,
    CueControllable,
    Paradigm,
    SubjectEnvironment,
    TrialResult,
    Yokeable,
)
from cheesebench.lesions import WORDS

if TYPE_CHECKING:
    from cheesebench.interfaces import CompiledProtocol, CueControl, View
    from cheesebench.protocol import Specification

REWARD_SHUFFLED = "reward-shuffled"
YOKED = "yoked"
#: Whom each subject of a cell is yoked to.
Yokes = Callable[[int], Yoke]
CUE_CONTROLS: tuple[CueControl, ...] = ("cue-off", "cue-shuffled", "labels-swapped")
#: The controls by name, and what each takes away.
CONTROLS = {
    REWARD_SHUFFLED: "each trial gets the rewards of another trial, so reward does not depend on behaviour",
    "cue-off": "landmarks, shown glyphs and texts are removed",
    "cue-shuffled": "landmarks, shown glyphs and texts are drawn at random, independent of the condition",
    "labels-swapped": "glyphs and texts swap places for the whole run: they are as informative, but mean something "
    "else",
    f"{YOKED}:RUN": "rewards and events are those of a subject in another run, independent of this one's actions",
}
#: A lesion is a control, too: ``blind``, ``anhedonia``, ``amnesia=trial``, ``hide=landmarks``; see ``lesioned``.


def check_control(name: str, results: Path) -> str:
    """Return the name of a control. Raises UnknownNameError, or RunLogError for a run that does not exist."""
    if (lesion := parse_control(name)) is not None:
        return str(lesion)
    kind, _, run = name.partition(":")
    if kind == YOKED and run:
        locate(results, run, exact=True)
    elif name not in CONTROLS or name.startswith(YOKED):
        raise UnknownNameError("control", name, [*CONTROLS, *WORDS, "amnesia=trial", "amnesia=STATE", "hide=landmarks"])
    return name


def control_cell(plan: CellPlan, name: str, specification: Specification | None = None) -> CellPlan:
    """Return the plan of a control for a plain cell; a lesion needs the protocol's ``specification``."""
    variant = dataclasses.replace(plan.variant, control=name)
    lesion = parse_control(name)
    claim = None if lesion is None or specification is None else claimed(specification, lesion)
    if plan.looks:  # a control makes no claim, so no look could decide it
        plan = dataclasses.replace(plan, looks=(), design="cohort", subjects=min(plan.subjects, COHORT))
    return dataclasses.replace(plan, variant=variant, claims=False, lesion=claim)


def has_control(specification: Specification, name: str) -> bool:
    """Return whether a protocol has anything that the control could remove."""
    lesion = parse_control(name)
    return lesion is None or not obstacle(specification, lesion)


def controlled(paradigm: CompiledProtocol, plan: CellPlan, seed: int, yokes: Yokes | None = None) -> CompiledProtocol:
    """Return the paradigm that a cell's subjects live in: the compiled one, or its control.

    ``seed`` is the run's; ``yokes`` is what ``yokes_of`` returns for the cell. Raises OptionError where the protocol's
    family knows no such control, UnknownNameError where nobody does.
    """
    name = plan.control
    if not name:
        return paradigm
    if plan.lesion is not None and isinstance(paradigm, Paradigm):
        return LesionedParadigm(paradigm, lesion_of(plan))
    if name == REWARD_SHUFFLED and isinstance(paradigm, Paradigm):
        return _RewardShuffled(paradigm)
    if yokes is not None:
        return yoked(paradigm, plan, yokes)
    if not isinstance(paradigm, CueControllable):
        raise OptionError(
            f"--control {name}: protocols of the family '{paradigm.specification.family}' have no controls."
        )
    how = next((control for control in CUE_CONTROLS if control == name), None)
    if how is None:  # of a log that says so, or of another version
        raise UnknownNameError("control", name, CUE_CONTROLS)
    return paradigm.with_cues(how, seed)


def yoked(paradigm: CompiledProtocol, plan: CellPlan, yokes: Yokes) -> CompiledProtocol:
    """Return the paradigm in which every subject gets the rewards and events of the subject that it is yoked to."""
    if not isinstance(paradigm, Yokeable):
        family = paradigm.specification.family
        raise OptionError(f"--control {plan.control}: protocols of the family '{family}' cannot be yoked.")
    return _Yoked(paradigm, yokes)


def yokes_of(plan: CellPlan, results: Path) -> Yokes | None:
    """Return the yokes of a cell's subjects; None if the cell is not yoked.

    ``results`` is the directory of the runs. Raises RunLogError if the master run cannot be used; so does the returned
    function if that run has not finished the subject.

    A subject is yoked to the next subject of that run, not to the one of the same number: an agent with the same seed
    and the same events would act identically, and so would cause the events itself.
    """
    if not plan.control.startswith(YOKED):
        return None
    log = locate(results, plan.control.partition(":")[2], exact=True)
    with RunLog.open_read_only(log) as run:
        master = _master(run, plan)
        seed = run.manifest["options"]["seed"]

    def yoke(subject: int) -> Yoke:
        with RunLog.open_read_only(log) as run:
            # A sequential cell has only as many subjects as it needed.
            numbers = sorted(run.completed_subjects(master)) if master.looks else range(master.subjects)
            number = numbers[(subject + 1) % len(numbers)]
            records = run.trials(master, number)
        if not records or any(record.missing for record in records):
            raise RunLogError(f"{log}: subject {number} has not finished its trials. Resume that run first.")
        trials = tuple(tuple(ACTION_OF_LETTER[letter] for letter in record.actions) for record in records)
        return Yoke(seed, number, trials)

    return yoke


class _RewardShuffled:
    """Every trial pays what another trial has earned."""

    def __init__(self, paradigm: Paradigm) -> None:
        self._paradigm = paradigm
        self.specification: Specification = paradigm.specification

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        return ShuffledRewards(self._paradigm.environment(view, seed, subject), f"{seed}|{subject}|{REWARD_SHUFFLED}")


class ShuffledRewards:
    """An environment whose trials pay what a random earlier trial of the same subject has earned (with replacement).

    The whole sum is paid on the first step and nothing afterwards. So the trial's return does not depend on what the
    subject does, including when it ends the trial, for any discount factor. If it were paid step by step, a subject
    could learn to shorten costly trials and to prolong rewarding ones. Over trials, the returns are a bootstrap sample
    of what the subject has actually earned so far. The first trial pays nothing.
    """

    def __init__(self, life: SubjectEnvironment, key: str) -> None:
        self._life = life
        self.waiting = False
        # Random seeds a string by SHA-512, which is the same in every process.
        self._random = random.Random(key)
        #: Earnings of each finished trial; earnings of this trial so far; the reward still to be paid.
        self._earned: list[float] = []
        self._sum = self._due = 0.0

    @property
    def earned(self) -> Sequence[float]:
        """What the finished trials have actually earned."""
        return self._earned

    def begin_trial(self) -> str | None:
        """Begin the next trial and draw its payment."""
        observation = self._life.begin_trial()
        self.waiting = self._life.waiting
        self._sum, self._due = 0.0, self._random.choice(self._earned) if self._earned else 0.0
        return observation

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action; see the class for the reward."""
        observation, reward, status = self._life.step(action)
        self.waiting = self._life.waiting
        self._sum += reward
        paid, self._due = self._due, 0.0
        if status != RUNNING:
            self._earned.append(self._sum)
        return observation, paid, status

    def result(self) -> TrialResult:
        """Return the trial's result; success is judged by the actual behaviour."""
        return self._life.result()


class _Yoked:
    """Every subject is yoked to a subject of another run."""

    def __init__(self, paradigm: Yokeable, yokes: Yokes) -> None:
        self._paradigm = paradigm
        self._yokes = yokes
        self.specification = paradigm.specification

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        """Return the yoked environment, with the other subject's draws."""
        yoke = self._yokes(subject)
        return self._paradigm.yoked_environment(view, yoke.seed, yoke.subject, yoke.trials)


def _master(run: RunLog, plan: CellPlan) -> CellPlan:
    """Return the cell of another run that comes closest: the same protocol; if it can be, the same model and view."""
    cells = [cell for cell in run.plans() if cell.protocol == plan.protocol and not cell.control]
    if not cells:
        known = ", ".join(dict.fromkeys(cell.protocol for cell in run.plans()))
        raise RunLogError(f"{run.path} has no plain cell of {plan.protocol} to yoke to (only {known}).")
    best = max(cells, key=lambda cell: (cell.model == plan.model, cell.view == plan.view))
    if best.sha256 != plan.sha256:
        raise RunLogError(
            f"{run.path} was made with another version of {plan.protocol} ({best.sha256[:8]}, now {plan.sha256[:8]}). "
            "Yoke to a run of the same protocol."
        )
    if (len(run.completed_subjects(best)) if best.looks else best.subjects) < 2:
        raise RunLogError(f"{run.path} has only one subject. Yoke to a run with two or more.")
    return best
