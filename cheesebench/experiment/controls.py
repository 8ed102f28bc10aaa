"""Controls: cells, of any protocol, that remove one source of learning.

A control cell is its plain cell in another variant (``control=NAME``). Its subjects
have the same seeds and draws as the plain cell's, so their curves can be paired. A
control cell makes no claim of its own. Controls are applied in one place:
``controlled`` wraps the paradigm that is compiled for a plan.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.errors import (
    CheeseBenchError,
    OptionError,
    RunLogError,
    UnknownNameError,
    UnsuitableError,
)
from cheesebench.executor import Yoke
from cheesebench.experiment.cells import COHORT
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.interfaces import (
    ACTION_OF_LETTER,
    RUNNING,
    Located,
    Paradigm,
    Pose,
    Situated,
    SubjectEnvironment,
    TrialResult,
)
from cheesebench.lesions import INTACT, TEXT, WORDS, Lesion
from cheesebench.records import CellPlan, LesionClaim
from cheesebench.trial_loop import foresight

if TYPE_CHECKING:
    from cheesebench.interfaces import BaseSpecification, CueControl, View

REWARD_SHUFFLED = "reward-shuffled"
YOKED = "yoked"
#: The control under which a language model's prompts hold nothing from before the
#: present part of the trial.
NO_MEMORY = "no-memory"
FORGETS = {"history": 0, "learnings": 0}
#: Maps a subject's number to the subject of another run that it is yoked to.
Yokes = Callable[[int], Yoke]
CUE_CONTROLS: tuple[CueControl, ...] = ("cue-off", "cue-shuffled", "labels-swapped")
#: The controls by name, each with a phrase that says what it removes or changes.
CONTROLS = {
    REWARD_SHUFFLED: "each trial pays what a random earlier trial earned, so reward does not depend on behaviour",
    "cue-off": "landmarks, shown glyphs and texts are removed",
    "cue-shuffled": "landmarks, shown glyphs and texts are drawn at random, independent of the condition",
    "labels-swapped": "glyphs and texts swap places for the whole run: they are as informative, but mean something "
    "else",
    NO_MEMORY: "the prompt of a language model has nothing from before the present part of the trial",
    f"{YOKED}:RUN": "rewards and events come from a subject in another run, independently of this subject's actions",
}
#: Lesions of more than one word, each with what is removed. They are controls, too
#: (``parse_control``).
_LESIONS = {
    "amnesia=trial": "no memory across trials",
    "amnesia=STATE": "no memory of a trial from before it first entered the state",
    "hide=landmarks": "no landmarks",
    "hide=ZONE": "no picture of the zone, solid, door or group",
    "hide=glyph:X": "no squares drawn with X",
    "hide=text": "no text of states",
    "hide=text:STATE": "no text of the state",
}


def described() -> dict[str, str]:
    """Return all controls by name, each with a phrase that says what it removes, or
    what it leaves.
    """
    return {**CONTROLS, **WORDS, **_LESIONS}


def check_control(name: str, results: Path) -> str:
    """Return the name of a control, in its canonical form if it is a lesion. Raise
    UnknownNameError for an unknown name, and RunLogError for a run that does not exist.
    """
    if (lesion := parse_control(name)) is not None:
        return str(lesion)
    kind, _, run = name.partition(":")
    if kind == YOKED and run:
        locate(results, run, exact=True)
    elif name not in CONTROLS or name.startswith(YOKED):
        raise UnknownNameError(
            "control",
            name,
            [*CONTROLS, *WORDS, "amnesia=trial", "amnesia=STATE", "hide=landmarks"],
        )
    return name


def control_cell(
    plan: CellPlan, name: str, specification: BaseSpecification | None = None
) -> CellPlan:
    """Return the plan of a control for a plain cell. A lesion needs the protocol's
    ``specification``.

    Raise UnsuitableError for ``no-memory`` if the agent has no such settings.
    """
    if name == NO_MEMORY:
        if not plan.settings.keys() >= FORGETS.keys():
            raise UnsuitableError(
                f"--control {NO_MEMORY} needs an agent with the settings {' and '.join(FORGETS)}, which "
                f"'{plan.agent or plan.model}' does not have. Use --control memoryless."
            )
        plan = dataclasses.replace(plan, settings={**plan.settings, **FORGETS})
    variant = dataclasses.replace(plan.variant, control=name)
    lesion = parse_control(name)
    claim = (
        None
        if lesion is None or specification is None
        else claimed(specification, lesion)
    )
    if plan.sequential:  # A control makes no claim, so no verdict could stop it early.
        plan = dataclasses.replace(
            plan, sequential=False, design="cohort", subjects=min(plan.subjects, COHORT)
        )
    return dataclasses.replace(plan, variant=variant, claims=False, lesion=claim)


def has_control(specification: BaseSpecification, name: str) -> bool:
    lesion = parse_control(name)
    return lesion is None or not specification.obstacle(lesion)


def controlled(
    paradigm: Paradigm, plan: CellPlan, seed: int, yokes: Yokes | None = None
) -> Paradigm:
    """Return the paradigm of a cell's subjects: the compiled one, or its control
    version.

    ``seed`` is the run's seed. ``yokes`` is the result of ``yokes_of`` for the cell.
    Raise UnsuitableError if the protocol's family does not have this control,
    UnknownNameError if no family has it, and OptionError for an impossible lesion.
    """
    name = plan.control
    if name in ("", NO_MEMORY):
        return paradigm
    if plan.lesion is not None:
        return LesionedParadigm(paradigm, lesion_of(plan))
    if name == REWARD_SHUFFLED:
        return _RewardShuffled(paradigm)
    if yokes is not None:
        return _Yoked(paradigm, yokes)
    how = next((control for control in CUE_CONTROLS if control == name), None)
    if how is None:  # The log is forged, or comes from another version.
        raise UnknownNameError("control", name, CUE_CONTROLS)
    return paradigm.with_cues(how, seed)


def yokes_of(plan: CellPlan, results: Path) -> Yokes | None:
    """Return the yokes of a cell's subjects, or None if the cell is not yoked.

    ``results`` is the directory of the runs. Raise RunLogError if the other run cannot
    be used. The returned function raises RunLogError if that run has not finished the
    subject. A subject is yoked to the next subject of the other run, not to the subject
    with the same number: an agent with the same seed and the same events would act
    identically, and so would cause the events itself.
    """
    if not plan.control.startswith(YOKED):
        return None
    log = locate(results, plan.control.partition(":")[2], exact=True)
    with RunLog.open_read_only(log) as run:
        master = _master(run, plan)
        seed = run.manifest["options"]["seed"]

    def yoke(subject: int) -> Yoke:
        with RunLog.open_read_only(log) as run:
            # A sequential cell has run only as many subjects as its verdict needed.
            numbers = (
                sorted(run.completed_subjects(master))
                if master.sequential
                else range(master.subjects)
            )
            number = numbers[(subject + 1) % len(numbers)]
            records = run.trials(master, number)
        if not records or any(record.missing for record in records):
            raise RunLogError(
                f"{log}: subject {number} has not finished its trials. Resume that run first."
            )
        trials = tuple(
            tuple(ACTION_OF_LETTER[letter] for letter in record.actions)
            for record in records
        )
        return Yoke(seed, number, trials)

    return yoke


#: What one-word lesions remove. (``pose-only`` is worded by what it leaves.)
_WITHOUT = {
    "blind": "sight",
    "anhedonia": "reward",
    "naive": "reward",
    "memoryless": "memory",
}


def lesion_of(plan: CellPlan) -> Lesion:
    """Return the lesion of a cell's subjects. It is INTACT for plain cells and for
    other controls.
    """
    return INTACT if plan.lesion is None else Lesion.parse(plan.control)


def parse_control(name: str) -> Lesion | None:
    """Return the lesion that ``--control`` names, or None if the control is not a
    lesion.
    """
    try:
        lesion = Lesion.parse(name)
    except CheeseBenchError:
        return None
    return None if lesion == INTACT else lesion


def in_words(lesion: Lesion) -> str:
    """Return a phrase for what a lesion removes, such as ``without landmarks and
    reward``.
    """
    lacks = dict.fromkeys(
        what for word, what in _WITHOUT.items() if word in lesion.words
    )
    hidden = sorted(lesion.hide)
    lacks |= dict.fromkeys(
        f"the text of '{name[5:]}'" if name.startswith("text:") else name
        for name in hidden
    )
    if lesion.forgets_trials:
        lacks["memory across trials"] = None
    lacks |= {
        f"memory of what came before '{state}' in a trial": None
        for state in sorted(lesion.forgets_at)
    }
    if lesion.sees_pose_only:
        lacks["any observation except position and heading"] = None
    return f"without {' and '.join(name.replace('glyph:', '') for name in lacks)}"


def takes_at_least(lesion: Lesion, other: Lesion) -> bool:
    """Return whether, for a model's subject, ``lesion`` removes everything that
    ``other`` removes.

    A blind subject sees nothing that could be hidden, and a memoryless one has nothing
    to forget. ``naive`` differs from ``anhedonia`` only for a subject that knows the
    protocol file, and a model does not.
    """
    takes_reward = lesion.feels_no_reward or not other.feels_no_reward
    return takes_reward and _takes_sight(lesion, other) and _takes_memory(lesion, other)


def _takes_sight(lesion: Lesion, other: Lesion) -> bool:
    """Return whether ``lesion`` hides everything that ``other`` hides."""
    if lesion.sees_nothing:
        return True
    if other.sees_nothing or (other.sees_pose_only and not lesion.sees_pose_only):
        return False
    hidden = {
        name
        for name in other.hide
        if not (name.startswith("text:") and TEXT in lesion.hide)
    }
    return hidden <= lesion.hide


def _takes_memory(lesion: Lesion, other: Lesion) -> bool:
    """Return whether a subject with ``lesion`` forgets everything that a subject with
    ``other`` forgets.
    """
    if lesion.memoryless:
        return True
    return not other.memoryless and other.amnesia <= lesion.amnesia


def claimed(specification: BaseSpecification, lesion: Lesion) -> LesionClaim:
    """Return the construct's prediction for a lesion: the maximum rate under it, or
    that it must not matter. Without a prediction, the claim has only words for the
    lesion.

    A lesion that includes a lesion of ``abolished_by`` cannot leave a higher rate.
    """
    construct = specification.construct
    if construct is None:
        return LesionClaim(words=in_words(lesion))
    bounds = [
        most
        for abolishing, most in construct.abolished_by
        if takes_at_least(lesion, abolishing)
    ]
    return LesionClaim(
        words=in_words(lesion),
        at_most=min(bounds, default=None),
        spared=lesion in construct.spared_by,
    )


class LesionedParadigm(Paradigm):
    """A paradigm whose subjects do not get part of the input (the picture or the
    reward). Amnesia concerns the agent instead (``LesionedAgent``).
    """

    def __init__(self, paradigm: Paradigm, lesion: Lesion) -> None:
        self.specification = paradigm.specification
        if why := self.specification.obstacle(lesion):
            raise OptionError(
                f"--control {lesion} is impossible in {self.specification.name}: {why}."
            )
        self._paradigm, self._lesion = paradigm, lesion

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        if self._lesion.changes_the_picture:
            view = self._paradigm.lesioned(view, self._lesion)
        life = self._paradigm.environment(view, seed, subject)
        return UnrewardedSubject(life) if self._lesion.feels_no_reward else life


class UnrewardedSubject:
    """An environment in which no step is rewarded."""

    def __init__(self, life: SubjectEnvironment) -> None:
        self._life = life
        self.waiting = False

    @property
    def state(self) -> str:
        return str(getattr(self._life, "state", ""))

    def begin_trial(self) -> str | None:
        observation = self._life.begin_trial()
        self.waiting = self._life.waiting
        return observation

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action. The reward is always 0."""
        observation, _, status = self._life.step(action)
        self.waiting = self._life.waiting
        return observation, 0.0, status

    @property
    def placed(self) -> bool:
        """Whether an outside event put the subject elsewhere in the last step."""
        return isinstance(self._life, Situated) and self._life.placed

    def foreseen(self, action: int) -> str | None:
        """Return the picture after this action, as if its only effect were movement, or
        None if the environment cannot tell.
        """
        return foresight(self._life, action)

    @property
    def location(self) -> Pose | None:
        return self._life.location if isinstance(self._life, Located) else None

    #: Empty, because no place is rewarded.
    goals: frozenset[tuple[int, int]] = frozenset()
    happenings = 0

    def result(self) -> TrialResult:
        """Return the trial's result. Its success depends on the actual behaviour."""
        return self._life.result()


class _RewardShuffled(Paradigm):
    """A paradigm whose trials pay what earlier trials earned (``ShuffledRewards``)."""

    def __init__(self, paradigm: Paradigm) -> None:
        self._paradigm = paradigm
        self.specification = paradigm.specification

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        return ShuffledRewards(
            self._paradigm.environment(view, seed, subject),
            f"{seed}|{subject}|{REWARD_SHUFFLED}",
        )


class ShuffledRewards(UnrewardedSubject):
    """An environment whose trials pay the earnings of a random earlier trial of the
    same subject (with replacement).

    The whole sum is paid on the first step, and nothing afterwards. So, whatever the
    discount factor, the return of a trial does not depend on the subject's actions, not
    even on the action that ends the trial. If the sum were paid step by step, a subject
    could learn to shorten costly trials and to prolong rewarding ones.

    Over trials, the returns are a bootstrap sample of the subject's earnings so far.
    The first trial pays nothing.
    """

    def __init__(self, life: SubjectEnvironment, key: str) -> None:
        super().__init__(life)
        # ``Random`` hashes a string seed with SHA-512, so the draws are the same in
        # every process.
        self._random = random.Random(key)
        #: Earnings of each finished trial.
        self._earned: list[float] = []
        #: Earnings of this trial so far, and the reward still to be paid in it.
        self._sum = self._due = 0.0

    @property
    def earned(self) -> Sequence[float]:
        """Actual earnings of the finished trials."""
        return self._earned

    def begin_trial(self) -> str | None:
        """Begin the next trial, and draw its payment."""
        observation = super().begin_trial()
        self._sum, self._due = (
            0.0,
            self._random.choice(self._earned) if self._earned else 0.0,
        )
        return observation

    def step(self, action: int) -> tuple[str, float, int]:
        observation, reward, status = self._life.step(action)
        self.waiting = self._life.waiting
        self._sum += reward
        paid, self._due = self._due, 0.0
        if status != RUNNING:
            self._earned.append(self._sum)
        return observation, paid, status


class _Yoked(Paradigm):
    """A paradigm whose subjects each get the rewards and events of a subject of another
    run.
    """

    def __init__(self, paradigm: Paradigm, yokes: Yokes) -> None:
        self._paradigm = paradigm
        self._yokes = yokes
        self.specification = paradigm.specification

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        yoke = self._yokes(subject)
        return self._paradigm.yoked_environment(
            view, yoke.seed, yoke.subject, yoke.trials
        )


def _master(run: RunLog, plan: CellPlan) -> CellPlan:
    """Return the closest cell of another run: on the same protocol and, if possible, of
    the same model and view. Raise RunLogError if no cell can be yoked to.
    """
    plain = [cell for cell in run.plans() if not cell.control]
    cells = [cell for cell in plain if cell.protocol == plan.protocol]
    if not cells:
        known = ", ".join(dict.fromkeys(cell.protocol for cell in plain))
        only = f" (only of {known})" if known else ""
        raise RunLogError(
            f"{run.path} has no cell of {plan.protocol} without a control{only}. Yoke to a run that has one."
        )
    best = max(
        cells, key=lambda cell: (cell.model == plan.model, cell.view == plan.view)
    )
    if best.sha256 != plan.sha256:
        raise RunLogError(
            f"{run.path} was made with another version of {plan.protocol} ({best.sha256[:8]}, now {plan.sha256[:8]}). "
            "Yoke to a run of the same version."
        )
    known_subjects = _subjects_to_yoke_to(run, best)
    if known_subjects < 2:
        raise RunLogError(
            f"{run.path} has {known_subjects} subject{'s' * (known_subjects != 1)} of {plan.protocol} to yoke to. Yoke to "
            "a run with two or more."
        )
    return best


def _subjects_to_yoke_to(run: RunLog, cell: CellPlan) -> int:
    # A sequential cell may have run fewer subjects than planned.
    return len(run.completed_subjects(cell)) if cell.sequential else cell.subjects
