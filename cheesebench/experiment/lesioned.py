"""Lesions of running subjects: the same model with a channel removed, as a control for the plain cell.

Lesions of the picture are implemented by a view (``Lesionable.lesioned``), those of reward by an environment whose
steps pay nothing, and amnesia by recreating the agent.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from cheesebench.errors import CheeseBenchError, OptionError
from cheesebench.experiment.records import CellPlan, LesionClaim
from cheesebench.interfaces import Lesionable, ObservableSubject, SubjectEnvironment, TrialResult
from cheesebench.lesions import INTACT, LANDMARKS, TEXT, Lesion

if TYPE_CHECKING:
    from cheesebench.chat import ModelAgent
    from cheesebench.interfaces import Agent, Paradigm, View
    from cheesebench.protocol import Specification

A = TypeVar("A", "Agent", "ModelAgent")

_WITHOUT = {
    "blind": "sight",
    "anhedonia": "reward",
    "naive": "reward",
    "memoryless": "memory",
}


def lesion_of(plan: CellPlan) -> Lesion:
    """Return the lesion of a cell's subjects; INTACT for plain cells and other controls."""
    return INTACT if plan.lesion is None else Lesion.parse(plan.control)


def parse_control(name: str) -> Lesion | None:
    """Return the lesion that ``--control`` names, or None for another control."""
    try:
        lesion = Lesion.parse(name)
    except CheeseBenchError:
        return None
    return None if lesion == INTACT else lesion


def in_words(lesion: Lesion) -> str:
    """Return a phrase for what the subject lacks, such as ``without landmarks and reward``."""
    lacks = dict.fromkeys(what for word, what in _WITHOUT.items() if word in lesion.words)
    hidden = sorted(lesion.hide)
    lacks |= dict.fromkeys(f"the text of '{name[5:]}'" if name.startswith("text:") else name for name in hidden)
    if lesion.forgets_trials:
        lacks["memory across trials"] = None
    lacks |= {f"memory of what came before '{state}'": None for state in sorted(lesion.forgets_at)}
    if lesion.sees_pose_only:
        lacks = {"any observation except its position": None, **lacks}
    return f"without {' and '.join(name.replace('glyph:', '') for name in lacks)}"


def takes_at_least(lesion: Lesion, other: Lesion) -> bool:
    """Return whether ``lesion`` removes everything that ``other`` removes, for a model's subject.

    A blind subject sees nothing that could be hidden, and a memoryless one has nothing to forget. ``naive`` differs
    from ``anhedonia`` only for a subject that knows the protocol file, which a model does not.
    """
    blind, memoryless = lesion.sees_nothing, lesion.memoryless
    hidden = {name for name in other.hide if not (name.startswith("text:") and TEXT in lesion.hide)}
    return (
        (blind or not other.sees_nothing)
        and (blind or lesion.sees_pose_only or not other.sees_pose_only)
        and (blind or hidden <= lesion.hide)
        and (lesion.feels_no_reward or not other.feels_no_reward)
        and (memoryless or not other.memoryless)
        and (memoryless or other.amnesia <= lesion.amnesia)
    )


def claimed(specification: Specification, lesion: Lesion) -> LesionClaim:
    """Return the prediction of the protocol's construct for a lesion: its maximum rate, and whether it must not matter.

    A lesion that removes more than one that abolishes the construct cannot leave a higher rate.
    """
    construct = specification.construct
    if construct is None:
        return LesionClaim(words=in_words(lesion))
    bounds = [most for abolishing, most in construct.abolished_by if takes_at_least(lesion, abolishing)]
    return LesionClaim(words=in_words(lesion), at_most=min(bounds, default=None), spared=lesion in construct.spared_by)


def obstacle(specification: Specification, lesion: Lesion) -> str:
    """Return why a protocol's subjects cannot have a lesion: what it would take away is not there; else nothing."""
    arena = specification.arena
    for state in sorted(lesion.forgets_at):
        if state not in specification.states:
            return f"there is no state '{state}'"
    for name in sorted(lesion.hide):
        kind, colon, rest = name.partition(":")
        if kind == "text" and colon and rest not in specification.states:
            return f"there is no state '{rest}'"
        if name == LANDMARKS and not arena.landmarks:
            return "there are no landmarks"
        places = (arena.zones, arena.doors, arena.solids, arena.groups)
        is_known = any(name in known for known in places) or arena.landmark(name) is not None
        if not colon and name not in (LANDMARKS, TEXT) and not is_known:
            return f"there is no zone, solid or landmark '{name}'"
    return ""


class LesionedParadigm:
    """A paradigm whose subjects lack a channel of what they see and feel; amnesia is the agent's (``Mind``)."""

    def __init__(self, paradigm: Paradigm, lesion: Lesion) -> None:
        self.specification = paradigm.specification
        if lesion.changes_the_picture and not isinstance(paradigm, Lesionable):
            family = paradigm.specification.family
            raise OptionError(f"--control {lesion}: protocols of the family '{family}' have no picture to hide.")
        if why := obstacle(self.specification, lesion):
            raise OptionError(f"--control {lesion}: {self.specification.name} has none: {why}.")
        self._paradigm, self._lesion = paradigm, lesion

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        """Return the lesioned environment of ``subject`` (from 0) under ``seed``."""
        if self._lesion.changes_the_picture:
            assert isinstance(self._paradigm, Lesionable)
            view = self._paradigm.lesioned(view, self._lesion)
        life = self._paradigm.environment(view, seed, subject)
        return UnrewardedSubject(life) if self._lesion.feels_no_reward else life


class UnrewardedSubject:
    """An environment in which no step is rewarded; success is judged as usual."""

    def __init__(self, life: SubjectEnvironment) -> None:
        self._life = life
        self.waiting = False

    @property
    def state(self) -> str:
        """Name of the present state, if the environment exposes it."""
        return str(getattr(self._life, "state", ""))

    def begin_trial(self) -> str | None:
        """Begin the next trial."""
        observation = self._life.begin_trial()
        self.waiting = self._life.waiting
        return observation

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action; the reward is 0."""
        observation, _, status = self._life.step(action)
        self.waiting = self._life.waiting
        return observation, 0.0, status

    def result(self) -> TrialResult:
        """Return the trial's result."""
        return self._life.result()


class Mind(Generic[A]):
    """The agent of one life, made anew wherever its lesion makes it forget.

    ``create`` takes a seed. The first agent has the seed of the plain cell's subject; each later one has another,
    or an agent that draws lots would draw the same ones in every trial.
    """

    def __init__(self, create: Callable[[int], A], seed: int, lesion: Lesion) -> None:
        self._create: Callable[[int], A] = create
        self._seed, self._lesion = seed, lesion
        self.agent: A = create(seed)
        self._made = 0
        self._state = ""
        #: Counters of this trial's earlier agents.
        self._counted: Counter[str] = Counter()
        #: Whether memory can be erased within a trial.
        self.forgetful = lesion.memoryless or bool(lesion.forgets_at)

    def begin_trial(self, life: SubjectEnvironment, trial: int, observation: str) -> None:
        """Begin trial number ``trial`` (from 0)."""
        self._counted.clear()
        self._state = self._state_of(life) if self.forgetful else ""
        if trial and (self._lesion.forgets_trials or (self.forgetful and self._forgets_here())):
            self._renew()
        self.agent.begin_trial(observation)

    def forgets(self, life: SubjectEnvironment, observation: str) -> bool:
        """Return whether the last step erased its memory; then ``agent`` is a new one, started with ``observation``.

        Call it after every step that does not end the trial, if ``forgetful``.
        """
        before, self._state = self._state, self._state_of(life)
        if not (self._lesion.memoryless or (self._state != before and self._forgets_here())):
            return False
        self._counted.update(self._tally())
        self._renew()
        self.agent.begin_trial(observation)
        return True

    def tally(self) -> Mapping[str, int]:
        """Return the counters of this trial, summed over its agents."""
        own = self._tally()
        return {name: own.get(name, 0) + self._counted[name] for name in {**own, **self._counted}}

    def _forgets_here(self) -> bool:
        return self._lesion.memoryless or self._state in self._lesion.forgets_at

    def _tally(self) -> Mapping[str, int]:
        tally = getattr(self.agent, "tally", None)
        return {} if tally is None else dict(tally())

    def _renew(self) -> None:
        self._made += 1
        hashed = hashlib.blake2b(f"{self._seed}|{self._made}".encode(), digest_size=8).digest()
        self.agent = self._create(int.from_bytes(hashed, "big") >> 1)

    def _state_of(self, life: SubjectEnvironment) -> str:
        if isinstance(life, ObservableSubject | UnrewardedSubject):
            return life.state
        raise OptionError(f"--control {self._lesion}: this environment does not expose its states.")
