"""Beliefs: weighted hypotheses about the life; stepped in parallel, and split by percepts.

A hypothesis in a trial is a node (what the rest of the trial depends on) and a history (draws and schedule, which stay
as they are for the trial). Between trials it is a number that stands for all that later trials depend on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TypeVar

from cheesebench.interfaces import Scene, View
from cheesebench.lesions import MOST_SCENES, Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.hypotheses import History, Hypothesis, OpenSequence, Script
from cheesebench.paradigms.arena.audit.lesions.nodes import Cloud, Node, Nodes
from cheesebench.paradigms.arena.audit.lesions.relevance import Relevance

K = TypeVar("K")
#: Most hypotheses that are kept; beyond, the least likely ones are dropped.
MOST = 20_000
#: Nodes, lives that they hold, and ways in which trials begin, that are kept; beyond, all are forgotten.
MOST_NODES, MOST_LIVES, MOST_BEGINNINGS = 400_000, 60_000, 400_000

Grain = tuple[Node, int]
"""A node, and the number of a history."""
Belief = dict[Grain, float]
"""What is believed in a trial; weights need not add up to 1."""
Beginning = tuple[float, int, Node, tuple[OpenSequence, ...], Hashable]
"""One way in which a trial begins: its chance, what is perceived, the node, the draws, and what tells these apart."""
Rest = dict[int, float]
"""What is believed between trials."""
Parts = dict[int, Belief]
"""Beliefs by what is perceived: the number of a percept, ``-1 - number`` where the trial has ended."""


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
        self.relevance = Relevance(self.program, is_blind=lesion.sees_nothing)
        self.nodes = Nodes(self.relevance, self.script, self.percept)
        #: Steps that hypotheses were stepped: the measure of all effort.
        self.spent = 0
        self._percepts: dict[Hashable, int] = {}
        self.histories: list[History] = []
        self._history_numbers: dict[Hashable, int] = {}
        #: Between trials: the numbers of hypotheses, and a life that stands for each; how the next trial begins.
        self._resting: dict[Hashable, int] = {}
        self._lives: list[Hypothesis] = []
        self._begun: dict[int, list[tuple[float, int | None, Grain | None]]] = {}
        self._alike: dict[Hashable, list[Beginning]] = {}
        self._room = MOST_BEGINNINGS

    def prior(self) -> Rest:
        """Return what is believed before the first trial."""
        return {self._rest("prior", lambda: Hypothesis(self.program, self.view, self.script, self.relevance)): 1.0}

    def percept(self, observation: str, reward: float, ended: bool, waiting: bool) -> int:
        """Return the number of what is perceived of a step (and what two hypotheses must agree on)."""
        percept = observation, 0.0 if self._feels_nothing else reward, ended, waiting and not ended
        return self._percepts.setdefault(percept, len(self._percepts))

    # -- trials

    def begin(self, rest: Rest) -> dict[int | None, Belief]:
        """Begin the next trial in each hypothesis; return them by what is perceived (None: the schedule is over)."""
        if len(self.nodes) > MOST_NODES or self.nodes.lives > MOST_LIVES or self._room < 0:
            self.nodes.clear()
            self._begun.clear()
            self._alike.clear()
            self._room = MOST_BEGINNINGS
        parts: dict[int | None, Belief] = defaultdict(dict)
        for number, weight in rest.items():
            begun = self._begun.get(number)
            if begun is None:
                begun = self._begun[number] = self._beginnings(number)
                self._room -= len(begun)
            for chance, percept, grain in begun:
                part = parts[percept]
                if grain is not None:
                    part[grain] = part.get(grain, 0.0) + weight * chance
        return {percept: likeliest(part) for percept, part in parts.items()}

    def _beginnings(self, number: int) -> list[tuple[float, int | None, Grain | None]]:
        life = self._lives[number]
        plan, key = life.beginning()
        if key is None:
            return [(1.0, None, None)]
        if key not in self._alike:
            self._alike[key] = self._begin(life)
        found: list[tuple[float, int | None, Grain | None]] = []
        for chance, percept, node, sequences, drawn in self._alike[key]:
            history = self._history(History(plan, sequences, (plan.key(), drawn)))
            found.append((chance, percept, (node, history)))
        return found

    def _begin(self, life: Hypothesis) -> list[Beginning]:
        def begin() -> tuple[Hypothesis, str | None]:
            twin = life.twin()
            return twin, twin.begin_trial()

        found: dict[Hashable, Beginning] = {}
        for chance, (twin, observation) in self.script.all_of(begin):
            assert observation is not None
            percept = self.percept(observation, 0.0, False, twin.waiting)
            history, limit = twin.history, twin.limit
            node = self.nodes.node(twin.unhurried(), limit)
            key = percept, node.number, history.key[1]
            before = found[key][0] if key in found else 0.0
            found[key] = before + chance, percept, node, history.sequences, history.key[1]
        return list(found.values())

    def step(self, belief: Belief, action: int, steps: int) -> Parts:
        """Return the beliefs after an action, by what is perceived; ``steps`` have been taken in the trial."""
        parts: Parts = {}
        self.spent += len(belief)
        leads = self.nodes.leads
        for (node, history), weight in belief.items():
            for chance, percept, there in leads(node, action, steps):
                part = parts.get(percept)
                if part is None:
                    parts[percept] = {(there, history): weight * chance}
                else:
                    grain = there, history
                    part[grain] = part.get(grain, 0.0) + weight * chance
        return parts

    def rest(self, belief: Belief) -> Rest:
        """Return what is believed once trials have ended."""
        rest: Rest = defaultdict(float)
        carry = self.relevance.carry
        for (node, history), weight in belief.items():
            life, before = node.origin, self.histories[history]
            pose = life.pose if carry else 0
            recent = (life.outcome, life.noted) if before.plan.counts_outcomes or self.relevance.last else None
            number = self._resting.get(key := (history, life.kept(), pose, recent))
            if number is None:
                number = self._rest(key, lambda life=life, before=before: life.resting(before))  # type: ignore[misc]
            rest[number] += weight
        return normalised(rest)

    def trials_left(self, belief: Belief) -> int:
        """Return how many trials are planned after this one."""
        _, history = next(iter(belief))
        return self.histories[history].plan.left

    def _rest(self, key: Hashable, life: Callable[[], Hypothesis]) -> int:
        number = self._resting.setdefault(key, len(self._lives))
        if number == len(self._lives):
            self._lives.append(life())
        return number

    def _history(self, history: History) -> int:
        number = self._history_numbers.setdefault(history.key, len(self.histories))
        if number == len(self.histories):
            self.histories.append(history)
        return number


def cloud_of(belief: Belief) -> Cloud:
    """Return what a belief is about this trial."""
    cloud: Cloud = {}
    for (node, _), weight in belief.items():
        cloud[node] = cloud.get(node, 0.0) + weight
    return cloud


def normalised(weights: dict[K, float]) -> dict[K, float]:
    """Return weights that add up to 1."""
    whole = sum(weights.values())
    return {one: weight / whole for one, weight in weights.items()}


def likeliest(belief: Belief) -> Belief:
    """Return the belief without its least likely hypotheses, where there are too many."""
    if len(belief) <= MOST:
        return belief
    return dict(sorted(belief.items(), key=lambda entry: -entry[1])[:MOST])


def sampled(cloud: Cloud, size: int) -> Cloud:
    """Return at most so many hypotheses that stand for all (systematic, so that equal beliefs give equal samples)."""
    if len(cloud) <= size:
        return cloud
    stride, place, chosen, so_far = sum(cloud.values()) / size, 0.5, Cloud(), 0.0
    for node, weight in cloud.items():
        so_far += weight
        times = 0
        while so_far > place * stride and place < size:
            place += 1
            times += 1
        if times:
            chosen[node] = times * stride
    return chosen


def signature(cloud: Cloud) -> Hashable:
    """Return what two clouds have in common that are equal."""
    whole = sum(cloud.values())
    return frozenset([(node.number, round(weight / whole, 9)) for node, weight in cloud.items()])
