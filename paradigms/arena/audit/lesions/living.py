"""Adversaries in real lives: they know the protocol but not the outcomes of its draws, and lack channels."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import INTACT, Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.beliefs import (
    Belief,
    Grain,
    Parts,
    Rest,
    World,
    cloud_of,
    likeliest,
)
from cheesebench.paradigms.arena.audit.lesions.nodes import Node
from cheesebench.paradigms.arena.audit.lesions.planner import Decision, Planner
from cheesebench.paradigms.arena.audit.runs import is_judged
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

#: Steps of hypotheses, for an effort of 1, in which it is found how a trial ends for all who act as one subject does.
TO_THE_END = 1_000_000
#: Weight of a hypothesis that is kept only because it is true.
UNLIKELY = 1e-12
_NONE: Rest = {}


@dataclass(frozen=True, slots=True)
class Lived:
    """One trial of a real life: its place in the schedule, and whether it is a success, and is judged."""

    trial: int
    session: int
    success: bool
    judged: bool
    steps: int


def lived_trial(life: ArenaSubject, number: int, specification: Specification) -> Lived:
    """Return what is noted of the trial that has just ended."""
    result = life.result()
    judged = is_judged(result, specification) is not None
    return Lived(number, result.session, bool(result.success), judged, life.steps)


class Adversary:
    """One subject with a lesion, leading one life after the other."""

    def __init__(self, paradigm: ArenaParadigm, lesion: Lesion, effort: float) -> None:
        self.world = World(paradigm, lesion)
        self.planner = Planner(self.world, effort)
        self._paradigm, self._lesion = paradigm, lesion
        # What a lesion leaves of later blocks decides nothing.
        self._over = frozenset[str]() if lesion == INTACT else paradigm.specification.blocks_after_judged
        self._pushed: dict[Hashable, Parts] = {}
        self._carried: dict[Hashable, Rest | None] = {}

    def live(self, seed: int, subject: int, trials: int) -> list[Lived]:
        """Lead a real life of at most so many trials; return them. With a lesion it ends with the last judged block."""
        life = ArenaSubject(self._paradigm.program, self.world.view, seed, subject)
        rest, lived = self.world.prior(), list[Lived]()
        self.planner.begin_life()
        while len(lived) < trials and (observation := life.begin_trial()) is not None and life.block not in self._over:
            ensemble = self.world.begin(rest)
            percept = self.world.percept(observation, 0.0, False, life.waiting)
            actions, rest_after = self._trial(life, ensemble, percept)
            lived.append(lived_trial(life, len(lived), self._paradigm.specification))
            rest = self.carried(ensemble, actions, rest_after) if self._lesion.forgets_trials else rest_after
        return lived

    def _trial(self, life: ArenaSubject, ensemble: Mapping[int | None, Belief], percept: int) -> tuple[list[int], Rest]:
        """Live one trial; return the actions, and what is believed at its end."""
        world, remaining = self.world, set(self._lesion.forgets_at)
        root, forgotten = begun(ensemble), 0
        self.planner.begin_trial()
        taken: list[int] = []
        course = Course(possible(root, percept))
        while True:
            if life.state in remaining:
                root = self.entries(root, forgotten, frozenset(remaining), life.state)
                forgotten = life.steps
                course = Course(possible(root, percept), life.steps)
                remaining.discard(life.state)
            elif remaining:
                course.belief = {one: weight for one, weight in course.belief.items() if one[0].state not in remaining}
            action = self._act(course, bool(remaining))
            observation, reward, status = life.step(action)
            taken.append(action)
            percept = world.percept(observation, reward, status != RUNNING, life.waiting)
            percept = percept if status == RUNNING else -1 - percept
            parts = world.step(course.belief, action, course.steps)
            course.go_on(world, action, percept, possible(parts, percept))
            if status != RUNNING:
                return taken, world.rest(course.belief)

    def _act(self, course: Course, is_pushed: bool) -> int:
        """Return the next action, and take note of how far the course of action has come."""
        if next(iter(course.belief))[0].waiting:
            course.decision = None
            return STAY
        if course.decision is None or course.is_over:
            course.decision = decision = self._decide(course, is_pushed)
            course.place, course.size, course.leader = 0, len(course.belief), decision.leader
        course.place += 1
        return course.decision.actions[course.place - 1]

    def _decide(self, course: Course, is_pushed: bool) -> Decision:
        """Decide; what is done before something is forgotten must be what others would have done, too."""
        cloud = cloud_of(course.belief)
        if is_pushed:
            return self.planner.base(cloud, course.steps)
        left = 0 if self._lesion.forgets_trials else self.world.trials_left(course.belief)
        return self.planner.decide(cloud, course.steps, left, is_settled=course.is_settled)

    def entries(self, root: Parts, steps: int, states: frozenset[str], state: str) -> Parts:
        """Return in what ways a state can be entered by those who act as this subject does, by what is perceived.

        ``root`` is from where they go, so many steps into the trial. Those who enter sooner and later are put together:
        the time that has passed is forgotten, too.
        """
        key = _signature(root), steps, states, state
        if key not in self._pushed:
            self._pushed[key] = self._push(root, steps, states, state)
        return self._pushed[key]

    def _push(self, root: Parts, steps: int, states: frozenset[str], state: str) -> Parts:
        entries: Parts = {}
        pending = [(percept, Course(part, steps)) for percept, part in root.items()]
        while pending:
            percept, course = pending.pop()
            there = entries.setdefault(percept, {})
            for grain, weight in course.belief.items():
                if grain[0].state == state:
                    there[grain] = there.get(grain, 0.0) + weight
            course.belief = {one: weight for one, weight in course.belief.items() if one[0].state not in states}
            if not course.belief:
                continue
            pending += [(number, further) for number, further in self._branches(course, True) if number >= 0]
        return {percept: likeliest(part) for percept, part in entries.items() if part}

    def carried(self, ensemble: Mapping[int | None, Belief], actions: Sequence[int] = (), real: Rest = _NONE) -> Rest:
        """Return what is believed of the end of a trial that is forgotten: how it ends for those who act as this one.

        They decide as this subject would have decided, whatever they perceive at the beginning and on the way. Where
        that is too much work, or something is forgotten within the trial, too, all repeat the real ``actions``. How the
        trial ended in fact (``real``) stays possible.
        """
        root = begun(ensemble)
        if not self.world.relevance.behaviour:
            return self.world.rest(_together(root))
        key = _signature(root)
        if key not in self._carried:
            self._carried[key] = None if self._lesion.forgets_at else self._to_the_end(root)
        found = self._carried[key] or self._repeated(root, actions)
        # Last, and only if it is missing: the order would tell what was forgotten, and no two lives would be alike.
        return found | {one: UNLIKELY for one in real if one not in found}

    def _to_the_end(self, root: Parts) -> Rest | None:
        """Let all who begin so decide for themselves until their trials end; None: there are too many ways."""
        self.planner.begin_trial()
        ended, most = Belief(), self.world.spent + TO_THE_END * self.planner.effort
        pending = [Course(part) for part in root.values()]
        while pending:
            if self.world.spent > most:
                return None
            for percept, further in self._branches(pending.pop(), False):
                if percept < 0:
                    _add(ended, further.belief)
                else:
                    pending.append(further)
        return self.world.rest(likeliest(ended))

    def _branches(self, course: Course, is_pushed: bool) -> Iterator[tuple[int, Course]]:
        """Act; yield how it goes on, by what is perceived (below 0: the trial has ended)."""
        action = self._act(course, is_pushed)
        for percept, part in self.world.step(course.belief, action, course.steps).items():
            further = course.copy()
            further.go_on(self.world, action, percept, part)
            yield percept, further

    def _repeated(self, root: Parts, actions: Sequence[int]) -> Rest:
        belief, ended = _together(root), Belief()
        steps, rest = 0, iter(actions)
        while belief:
            parts = self.world.step(belief, next(rest, STAY), steps)
            belief, steps = {}, steps + 1
            for percept, part in parts.items():
                _add(belief if percept >= 0 else ended, part)
        return self.world.rest(ended)


@dataclass(slots=True)
class Course:
    """What is believed after so many steps of a trial, and what is being done."""

    belief: Belief
    steps: int = 0
    decision: Decision | None = None
    place: int = 0
    size: int = 0
    leader: Node | None = None

    def copy(self) -> Course:
        """Return one that goes on by itself."""
        return Course(self.belief, self.steps, self.decision, self.place, self.size, self.leader)

    def go_on(self, world: World, action: int, percept: int, belief: Belief) -> None:
        """Go on after a step, with what is believed now."""
        if self.leader is not None:
            _, expected, there = world.nodes.leads(self.leader, action, self.steps)[0]
            self.leader = there if expected == percept else None
        self.belief, self.steps = belief, self.steps + 1

    @property
    def is_settled(self) -> bool:
        """Whether the decision is carried out, and nothing was learnt by it."""
        done = self.decision is not None and self.decision.leader is None and self.place >= len(self.decision.actions)
        return done and len(self.belief) == self.size

    @property
    def is_over(self) -> bool:
        """Whether the decision is carried out, or rests on what has turned out otherwise."""
        assert self.decision is not None
        if self.place >= len(self.decision.actions):
            return True
        if self.decision.leader is not None:
            return self.leader is None
        return 2 * len(self.belief) < self.size


def begun(ensemble: Mapping[int | None, Belief]) -> Parts:
    """Return in what ways a trial begins, without those who have none any more."""
    return {percept: part for percept, part in ensemble.items() if percept is not None}


def possible(parts: Parts, percept: int) -> Belief:
    """Return what is believed after a percept."""
    belief = parts.get(percept)
    assert belief, "what happened was not among the hypotheses: the planner's model of the protocol is wrong"
    return belief


def _together(parts: Parts) -> Belief:
    belief = Belief()
    for part in parts.values():
        _add(belief, part)
    return belief


def _add(belief: Belief, other: Belief) -> None:
    for grain, weight in other.items():
        belief[grain] = belief.get(grain, 0.0) + weight


def _signature(parts: Parts) -> Hashable:
    return frozenset(
        [(percept, *_key(grain), round(w, 9)) for percept, part in parts.items() for grain, w in part.items()]
    )


def _key(grain: Grain) -> tuple[int, int]:
    return grain[0].number, grain[1]
