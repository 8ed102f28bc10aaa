"""Adversaries in real lives: they know the protocol but not the outcomes of its draws, and lack channels."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.beliefs import (
    Belief,
    Percept,
    World,
    merged,
    normalised,
    signature,
    twins,
)
from cheesebench.paradigms.arena.audit.lesions.hypotheses import Hypothesis
from cheesebench.paradigms.arena.audit.lesions.planner import Decision, Planner, has_ended
from cheesebench.paradigms.arena.audit.runs import is_judged
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

Parts = dict[Percept | None, Belief]


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
        self._pushed: dict[Hashable, Parts] = {}

    def live(self, seed: int, subject: int, trials: int) -> list[Lived]:
        """Lead a real life of at most so many trials; return them."""
        life = ArenaSubject(self._paradigm.program, self.world.view, seed, subject)
        belief, lived = self.world.prior(), list[Lived]()
        while len(lived) < trials and (observation := life.begin_trial()) is not None:
            ensemble = self.world.begin(belief)
            percept = self.world.percept(observation, 0.0, False, life.waiting)
            actions, belief_after = self._trial(life, ensemble, percept)
            lived.append(lived_trial(life, len(lived), self._paradigm.specification))
            belief = self.carried(ensemble, actions) if self._lesion.forgets_trials else belief_after
        return lived

    def _trial(self, life: ArenaSubject, ensemble: Parts, percept: Percept) -> tuple[list[int], Belief]:
        """Live one trial; return the actions, and what is believed at its end."""
        world, remaining, root = self.world, set(self._lesion.forgets_at), ensemble
        self.planner.begin_trial()
        taken: list[int] = []
        course = Course(twins(_possible(ensemble, percept)))
        while True:
            if life.state in remaining:
                root = self.entries(root, frozenset(remaining), life.state)
                course = Course(twins(_possible(root, percept)))
                remaining.discard(life.state)
            elif remaining:
                course.belief = [one for one in course.belief if one.life.state not in remaining]
            action = self._act(course, bool(remaining))
            observation, reward, status = life.step(action)
            taken.append(action)
            percept = world.percept(observation, reward, status != RUNNING, life.waiting)
            course.belief = _possible(world.step(course.belief, action), percept)
            if status != RUNNING:
                return taken, merged(normalised(course.belief), between=True)

    def _act(self, course: Course, is_pushed: bool) -> int:
        """Return the next action, and take note of how far the course of action has come."""
        if course.belief[0].life.waiting:
            course.decision = None
            return STAY
        if course.decision is None or course.is_over:
            course.belief = merged(course.belief)
            course.decision = self._decide(course.belief, is_pushed)
            course.place, course.size = 0, len(course.belief)
        course.place += 1
        return course.decision.actions[course.place - 1]

    def _decide(self, belief: Belief, is_pushed: bool) -> Decision:
        """Decide; what is done before something is forgotten must be what others would have done, too."""
        if is_pushed:
            return self.planner.base(belief)
        return self.planner.decide(belief, 0 if self._lesion.forgets_trials else belief[0].life.trials_left)

    def entries(self, root: Parts, states: frozenset[str], state: str) -> Parts:
        """Return in what ways a state can be entered by those who act as this subject does, by what is perceived."""
        key = (frozenset((percept, signature(part)) for percept, part in root.items()), states, state)
        if key not in self._pushed:
            self._pushed[key] = self._push(root, states, state)
        return self._pushed[key]

    def _push(self, root: Parts, states: frozenset[str], state: str) -> Parts:
        entries: dict[Percept | None, Belief] = {}
        pending = [(percept, Course(twins(part))) for percept, part in root.items() if percept is not None]
        while pending:
            percept, course = pending.pop()
            entries.setdefault(percept, []).extend(one for one in course.belief if one.life.state == state)
            course.belief = [one for one in course.belief if one.life.state not in states]
            if not course.belief:
                continue
            action = self._act(course, True)
            pending += [
                (there, Course(part, course.decision, course.place, course.size))
                for there, part in self.world.step(course.belief, action).items()
                if not has_ended(there)
            ]
        return {percept: merged(part) for percept, part in entries.items() if part}

    def carried(self, ensemble: Parts, actions: list[int]) -> Belief:
        """Return all hypotheses at the end of a trial, whatever was perceived: the trial is forgotten."""
        belief = twins(one for part in ensemble.values() for one in part)
        ends: dict[Hashable, Hypothesis] = {}
        for _, life in belief:
            if not self.world.relevance.behaviour:
                life.abandon()
                continue
            # Histories differ far more than trials do: each trial is lived once.
            key = life.key(), life.clock, life.read_values, life.limit
            if key in ends:
                life.end_as(ends[key])
                continue
            ends[key], status, rest = life, RUNNING, iter(actions)
            while status == RUNNING:
                _, _, status = life.step(next(rest, STAY))
        return merged(normalised(belief), between=True)


@dataclass(slots=True)
class Course:
    """What is believed, and what is being done."""

    belief: Belief
    decision: Decision | None = None
    place: int = 0
    size: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the decision is carried out, or rests on what has turned out otherwise."""
        assert self.decision is not None
        if self.place >= len(self.decision.actions):
            return True
        if self.decision.leader is not None:
            return all(one.life is not self.decision.leader for one in self.belief)
        return 2 * len(self.belief) < self.size


def _possible(parts: Parts | dict[Percept, Belief], percept: Percept) -> Belief:
    belief = dict(parts).get(percept)
    assert belief, "what happened was not among the hypotheses: the planner's model of the protocol is wrong"
    return belief
