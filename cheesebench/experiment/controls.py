"""Controls: cells of any protocol in which one thing that could be learnt from is taken away.

A control cell has the plan of its plain cell but for the variant (``control=NAME``), so its subjects have the same
seeds and draws, and their curves can be paired. It makes no claim of its own. Whoever compiles a paradigm for a plan
asks ``controlled`` once; nothing else knows of controls.
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
    from cheesebench.interfaces import Compiled, CueControl, View
    from cheesebench.protocol import Specification

REWARD_SHUFFLED = "reward-shuffled"
YOKED = "yoked"
#: Whom each subject of a cell is yoked to.
Yokes = Callable[[int], Yoke]
CUE_CONTROLS: tuple[CueControl, ...] = ("cue-off", "cue-shuffled", "labels-swapped")
#: The controls by name, and what each takes away.
CONTROLS = {
    REWARD_SHUFFLED: "what a trial pays is dealt from another trial: reward does not depend on behaviour",
    "cue-off": "landmarks, shown glyphs and texts are taken away",
    "cue-shuffled": "landmarks, shown glyphs and texts are drawn anew, whatever the condition is",
    "labels-swapped": "glyphs and texts change places for the whole run: they mean as much, but not what they say",
    f"{YOKED}:RUN": "rewards and events are those of a subject in another run, whatever this one does",
}
#: A lesion is a control, too: ``blind``, ``anhedonia``, ``amnesia=trial``, ``hide=landmarks``; see ``lesioned``.


def check_control(name: str, results: Path) -> str:
    """Return the name of a control, or raise UnknownNameError or RunLogError (for a run that is not there)."""
    if (lesion := parse_control(name)) is not None:
        return str(lesion)
    kind, _, run = name.partition(":")
    if kind == YOKED and run:
        locate(results, run)
    elif name not in CONTROLS or name.startswith(YOKED):
        raise UnknownNameError("control", name, [*CONTROLS, *WORDS, "amnesia=trial", "amnesia=STATE", "hide=landmarks"])
    return name


def control_cell(plan: CellPlan, name: str, specification: Specification | None = None) -> CellPlan:
    """Return the plan of the control beside a plain cell of a protocol; a lesion needs its ``specification``."""
    variant = dataclasses.replace(plan.variant, control=name)
    lesion = parse_control(name)
    claim = None if lesion is None or specification is None else claimed(specification, lesion)
    if plan.looks:  # it claims nothing, so that no look could decide it
        plan = dataclasses.replace(plan, looks=(), design="cohort", subjects=min(plan.subjects, COHORT))
    return dataclasses.replace(plan, variant=variant, claims=False, lesion=claim)


def has_control(specification: Specification, name: str) -> bool:
    """Tell whether there is anything in a protocol that a control could take away."""
    lesion = parse_control(name)
    return lesion is None or not obstacle(specification, lesion)


def controlled(paradigm: Compiled, plan: CellPlan, seed: int, yokes: Yokes | None = None) -> Compiled:
    """Return the paradigm that a cell's subjects live in: the compiled one, or its control.

    ``seed`` is the run's; ``yokes`` is what ``yokes_of`` returns for the cell. Raises OptionError where the protocol's
    family knows no such control.
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
        raise OptionError(f"--control {name}: protocols of the family '{paradigm.specification.family}' have none.")
    how = next(control for control in CUE_CONTROLS if control == name)
    return paradigm.with_cues(how, seed)


def yoked(paradigm: Compiled, plan: CellPlan, yokes: Yokes) -> Compiled:
    """Return the paradigm in which every subject meets what the one that it is yoked to brought about."""
    if not isinstance(paradigm, Yokeable):
        family = paradigm.specification.family
        raise OptionError(f"--control {plan.control}: protocols of the family '{family}' cannot be yoked.")
    return _Yoked(paradigm, yokes)


def yokes_of(plan: CellPlan, results: Path) -> Yokes | None:
    """Return what tells whom each subject of a cell is yoked to; None where the cell is not yoked.

    ``results`` is the directory of the runs. Raises RunLogError where the run to be yoked to cannot be used; so does
    what is returned, where that run has not finished the subject.

    A subject is yoked to the next one of that run, not to the one of its own number: an agent with the same seed that
    meets the same events does the same, and would bring about by itself what it is yoked to.
    """
    if not plan.control.startswith(YOKED):
        return None
    log = locate(results, plan.control.partition(":")[2])
    with RunLog.open_read_only(log) as run:
        master = _master(run, plan)
        seed = int(run.manifest["options"]["seed"])

    def yoke(subject: int) -> Yoke:
        with RunLog.open_read_only(log) as run:
            # A sequential cell has lived as many subjects as it needed.
            numbers = sorted(run.completed_subjects(master)) if master.looks else range(master.subjects)
            number = numbers[(subject + 1) % len(numbers)]
            records = run.trials(master, number)
        if not records or any(record.missing for record in records):
            raise RunLogError(f"{log}: subject {number} has not finished its trials. Resume that run first.")
        trials = tuple(tuple(ACTION_OF_LETTER[letter] for letter in record.actions) for record in records)
        return Yoke(seed, number, trials)

    return yoke


class _RewardShuffled:
    """Every life earns as ever, but is paid what another trial earned."""

    def __init__(self, paradigm: Paradigm) -> None:
        self._paradigm = paradigm
        self.specification: Specification = paradigm.specification

    def life(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        return ShuffledRewards(self._paradigm.life(view, seed, subject), f"{seed}|{subject}|{REWARD_SHUFFLED}")


class ShuffledRewards:
    """A life whose trials pay what an earlier trial of the same life has earned, drawn with replacement.

    The whole sum is paid with the first step, and no other step pays: whatever a subject does then (also whether it
    ends the trial early or late), the trial's return is the same, for every discount. Paid step by step, a trial that
    costs could be shortened, and one that pays drawn out: that would be something to learn. Over trials the returns
    are a bootstrap sample of what the life has truly earned so far. The first trial pays nothing.
    """

    def __init__(self, life: SubjectEnvironment, key: str) -> None:
        self._life = life
        self.waiting = False
        # A text is hashed by SHA-512, in the same way in every process.
        self._random = random.Random(key)
        #: What each finished trial has earned; what this one has earned so far; what it is still to pay.
        self._earned: list[float] = []
        self._sum = self._due = 0.0

    @property
    def earned(self) -> Sequence[float]:
        """What the finished trials have truly earned."""
        return self._earned

    def begin_trial(self) -> str | None:
        """Begin the next trial, and deal what it pays."""
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
        """Return what the trial came to: success is that of what was truly done."""
        return self._life.result()


class _Yoked:
    """Every life is yoked to that of a subject of another run."""

    def __init__(self, paradigm: Yokeable, yokes: Yokes) -> None:
        self._paradigm = paradigm
        self._yokes = yokes
        self.specification = paradigm.specification

    def life(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        """Return the yoked life; its draws are the other subject's, too."""
        yoke = self._yokes(subject)
        return self._paradigm.yoked_life(view, yoke.seed, yoke.subject, yoke.trials)


def _master(run: RunLog, plan: CellPlan) -> CellPlan:
    """Return the cell of another run that comes closest: the same protocol; if it can be, the same model and view."""
    cells = [cell for cell in run.plans() if cell.protocol == plan.protocol and not cell.control]
    if not cells:
        known = ", ".join(dict.fromkeys(cell.protocol for cell in run.plans()))
        raise RunLogError(f"{run.path} has no plain cell of {plan.protocol} to be yoked to (only {known}).")
    best = max(cells, key=lambda cell: (cell.model == plan.model, cell.view == plan.view))
    if best.sha256 != plan.sha256:
        raise RunLogError(
            f"{run.path} was made with another {plan.protocol} ({best.sha256[:8]}, now {plan.sha256[:8]}). "
            "Yoke to a run of the same protocol."
        )
    if (len(run.completed_subjects(best)) if best.looks else best.subjects) < 2:
        raise RunLogError(f"{run.path} has one subject only. Yoke to a run with two or more.")
    return best
