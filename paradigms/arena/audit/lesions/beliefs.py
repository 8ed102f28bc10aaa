"""Beliefs: weighted hypotheses about the life; stepped in parallel, and split by percepts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from cheesebench.interfaces import RUNNING, Scene, View
from cheesebench.lesions import MOST_SCENES, Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.hypotheses import Hypothesis, Script
from cheesebench.paradigms.arena.audit.lesions.relevance import Relevance

#: Most hypotheses that are kept; beyond, the least likely ones are dropped.
MOST = 20_000
#: Most hypotheses that are kept for trials that begin alike.
ROOM = 100_000


class Particle(NamedTuple):
    """A hypothesis and its weight."""

    weight: float
    life: Hypothesis


Belief = list[Particle]
Percept = Hashable


class Everything:
    """A view of all that any view can show: the whole scene, and the pose. Its texts are short, and only compared."""

    characters = "0123456789 "

    def __init__(self, name: str) -> None:
        self.name = f"everything {name}"
        self._numbers: dict[Scene, int] = {}
        self._kept: dict[int, tuple[Scene, int]] = {}

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return a text that tells scenes and poses apart."""
        kept = self._kept.get(id(scene))
        if kept is None:
            if len(self._kept) >= MOST_SCENES:
                self._kept.clear()
            kept = self._kept[id(scene)] = scene, self._numbers.setdefault(scene, len(self._numbers))
        return f"{kept[1]} {column} {row} {heading}"

    def max_length(self, scene: Scene) -> int:
        """Return an upper bound of the length."""
        return 40


class World:
    """One protocol as a subject with a lesion meets it: which hypotheses there are, and what tells them apart."""

    def __init__(self, paradigm: ArenaParadigm, lesion: Lesion) -> None:
        self.paradigm, self.lesion = paradigm, lesion
        self.program = paradigm.program
        self._feels_nothing = lesion.feels_no_reward
        self.view: View = paradigm.lesioned(Everything(str(lesion)), lesion)
        self.script = Script()
        self.relevance = Relevance(self.program)
        #: Steps that hypotheses were stepped: the measure of all effort.
        self.spent = 0
        #: How trials begin that have begun before, by what was believed; and how many more hypotheses that may be.
        self._begun: dict[Hashable, dict[Percept | None, Belief]] = {}
        self._room = ROOM

    def prior(self) -> Belief:
        """Return what is believed before the first trial."""
        return [Particle(1.0, Hypothesis(self.program, self.view, self.script, self.relevance))]

    def percept(self, observation: str, reward: float, ended: bool, waiting: bool) -> Percept:
        """Return what is perceived of a step (and what two hypotheses must agree on)."""
        return observation, 0.0 if self._feels_nothing else reward, ended, waiting and not ended

    def begin(self, belief: Belief) -> dict[Percept | None, Belief]:
        """Begin the next trial in each hypothesis; return them by what is perceived (None: the schedule is over).

        What is returned must not be stepped, but its twins.
        """
        key = frozenset((life.lasting_key(), round(weight, 9)) for weight, life in belief)
        if key in self._begun:
            return self._begun[key]
        parts: dict[Percept | None, dict[Hashable, Particle]] = defaultdict(dict)
        for weight, life in belief:

            def begin(life: Hypothesis = life) -> tuple[Hypothesis, str | None]:
                twin = life.twin()
                return twin, twin.begin_trial()

            for chance, (twin, observation) in self.script.all_of(begin):
                percept = None if observation is None else self.percept(observation, 0.0, False, twin.waiting)
                _add(parts[percept], (twin.future(), twin.key()), weight * chance, twin)
        if self._room < sum(map(len, parts.values())):
            self._begun.clear()
            self._room = ROOM
        self._room -= sum(map(len, parts.values()))
        self._begun[key] = {percept: _likeliest(part.values()) for percept, part in parts.items()}
        return self._begun[key]

    def step(self, belief: Belief, action: int) -> dict[Percept, Belief]:
        """Take an action in each hypothesis (they are changed); return them by what is perceived."""
        parts: dict[Percept, Belief] = {}
        self.spent += len(belief)
        for particle in belief:
            life = particle.life
            if life.can_branch(action):
                self._branch(particle, action, parts)
                continue
            observation, reward, status = life.step(action)
            percept = self.percept(observation, reward, status != RUNNING, life.waiting)
            part = parts.get(percept)
            if part is None:
                parts[percept] = [particle]
            else:
                part.append(particle)
        return parts

    def _branch(self, particle: Particle, action: int, parts: dict[Percept, Belief]) -> None:
        weight, life = particle
        before = life.twin()
        self.script.taken = []
        # The likeliest: the hypothesis itself goes on so, for whoever follows it.
        observation, reward, status = life.step(action)
        taken = self.script.taken
        chance = math.prod(chances[choice] for choice, chances in taken)
        percept = self.percept(observation, reward, status != RUNNING, life.waiting)
        parts.setdefault(percept, []).append(Particle(weight * chance, life))
        if not taken:
            return

        def step() -> tuple[Hypothesis, tuple[str, float, int]]:
            twin = before.twin()
            return twin, twin.step(action)

        for number, (chance, (twin, (observation, reward, status))) in enumerate(self.script.all_of(step)):
            if number:  # the first is the likeliest
                percept = self.percept(observation, reward, status != RUNNING, twin.waiting)
                parts.setdefault(percept, []).append(Particle(weight * chance, twin))


def twins(belief: Iterable[Particle]) -> Belief:
    """Return copies that go on by themselves."""
    return [Particle(weight, life.twin()) for weight, life in belief]


def total(belief: Iterable[Particle]) -> float:
    """Return the sum of the weights."""
    return sum(particle.weight for particle in belief)


def normalised(belief: Belief) -> Belief:
    """Return the belief with weights that add up to 1."""
    whole = total(belief)
    return [Particle(weight / whole, life) for weight, life in belief]


def merged(belief: Belief, *, between: bool = False) -> Belief:
    """Return the belief with hypotheses joined that differ in nothing that matters (``between``: two trials)."""
    if len(belief) == 1:
        return belief
    kinds: dict[Hashable, Particle] = {}
    for weight, life in belief:
        _add(kinds, life.lasting_key() if between else (life.future(), life.key(), life.clock), weight, life)
    return _likeliest(kinds.values())


def sampled(belief: Belief, size: int) -> Belief:
    """Return at most so many hypotheses that stand for all (systematic, so that equal beliefs give equal samples)."""
    if len(belief) <= size:
        return belief
    stride, place, chosen, so_far = total(belief) / size, 0.5, [], 0.0
    for weight, life in belief:
        so_far += weight
        times = 0
        while so_far > place * stride and place < size:
            place += 1
            times += 1
        if times:
            chosen.append(Particle(times * stride, life))
    return chosen


def signature(belief: Belief) -> Hashable:
    """Return what two beliefs have in common that are equal, in this trial and for later ones."""
    whole = total(belief)
    return frozenset((life.future(), life.key(), life.steps, round(weight / whole, 9)) for weight, life in belief)


def situation(belief: Belief) -> Hashable:
    """Return what two beliefs have in common that call for the same decision, whichever trial it is."""
    whole = total(belief)
    weights: dict[Hashable, float] = defaultdict(float)
    for weight, life in belief:
        weights[life.identity()] += weight / whole
    return frozenset((one, round(weight, 9)) for one, weight in weights.items())


def _add(kinds: dict[Hashable, Particle], key: Hashable, weight: float, life: Hypothesis) -> None:
    if key in kinds:
        kinds[key] = Particle(kinds[key].weight + weight, kinds[key].life)
    else:
        kinds[key] = Particle(weight, life)


def _likeliest(particles: Iterable[Particle]) -> Belief:
    kept = list(particles)
    return kept if len(kept) <= MOST else sorted(kept, key=lambda one: -one.weight)[:MOST]
