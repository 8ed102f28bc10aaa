"""A solver that knows the tables, the draws and the rules: it searches on copies of the life.

Its moves are large ones: go to a place, go and stand before it, wait until something happens. So it needs no
knowledge of any paradigm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cheesebench.interfaces import ACTION_LETTERS, RUNNING, STAY
from cheesebench.paradigms.arena.audit.runs import is_judged
from cheesebench.paradigms.arena.audit.ways import NO_WAY, events_of, ways_of
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.protocol import Specification

#: Steps (on copies) that are spent on a trial until a success is found, and then on finding a shorter one.
EFFORT, POLISH = 60_000, 4_000
#: Steps of the search after which one thing is kept up all through the trial, before the search is gone on with.
KEEPING_AFTER = 3_000

Move = tuple[str, str]
"""What is done ("go to", "stand before", "wait"), and where."""
WAIT: Move = ("wait", "")

Judge = Callable[[ArenaSubject, Specification], bool | None]
"""Says of a trial that has just ended whether it is a success; None: it does not count."""


def counts(life: ArenaSubject, specification: Specification) -> bool | None:
    """Return whether the trial is a success; None if the pass rate is taken over others."""
    return is_judged(life.result(), specification)


def is_success(life: ArenaSubject, _: Specification) -> bool | None:
    """Return whether the trial is a success, also where the pass rate is taken over others."""
    return life.success()


@dataclass(frozen=True, slots=True)
class Ending:
    """One way in which a trial can end: its actions, reward, how it was found, and steps spent waiting for a clock."""

    actions: tuple[int, ...]
    reward: float
    waited: int
    moves: tuple[Move, ...]

    @property
    def steps(self) -> int:
        """Length of the trial."""
        return len(self.actions)


@dataclass
class Found:
    """What a search has found: the shortest success, the best paid one, and the best paid failure."""

    shortest: Ending | None = None
    best_success: Ending | None = None
    best_failure: Ending | None = None

    def needs(self, ending: Ending) -> bool:
        """Return whether an ending would be recorded if it is a success, or if it is a failure."""
        if self.shortest is None or self.best_success is None or self.best_failure is None:
            return True
        least = min(self.best_success.reward, self.best_failure.reward)
        return ending.steps < self.shortest.steps or ending.reward > least

    def add(self, ending: Ending, success: bool | None) -> None:
        """Record an ending."""
        if success:
            if self.shortest is None or ending.steps < self.shortest.steps:
                self.shortest = ending
            if self.best_success is None or ending.reward > self.best_success.reward:
                self.best_success = ending
        elif success is False and (self.best_failure is None or ending.reward > self.best_failure.reward):
            self.best_failure = ending


@dataclass
class Node:
    """A moment of a trial that can be reached: a copy of the life, and what led to it."""

    life: ArenaSubject
    status: int = RUNNING
    reward: float = 0.0
    waited: int = 0
    actions: list[int] = field(default_factory=list)
    moves: tuple[Move, ...] = ()

    def ending(self) -> Ending:
        """Return it as an ending."""
        return Ending(tuple(self.actions), self.reward, self.waited, self.moves)


class Search:
    """Searches the trials of one program; the life must have begun a trial, and is left as it was."""

    def __init__(self, program: Program, specification: Specification, judge: Judge = counts) -> None:
        self._ways, self._events, self._specification = ways_of(program), events_of(program), specification
        self._states, self._spent, self._judge = program.states, 0, judge

    def solve(self, life: ArenaSubject, effort: int = EFFORT, polish: int = POLISH) -> Found:
        """Return what depth-first search finds, most promising moves first, shorter and shorter successes.

        Promising is what pays, then what leads to another state, then what is near. If that yields nothing, one
        thing is done all through the trial: what has to be kept up to the end is too deep to be found step by step.
        """
        found = self._descend(life, Found(), min(effort, KEEPING_AFTER), polish)
        if found.shortest is None:
            kept = self._keep_on(life, found)
            if effort > KEEPING_AFTER:
                self._descend(life, found, polish if kept else effort, polish)
        return found

    def _keep_on(self, life: ArenaSubject, found: Found) -> bool:
        """Do one thing again and again until the trial ends, whatever the state, and wait where it cannot be done.

        Returns whether that was a success.
        """
        for action, name in enumerate(ACTION_LETTERS):
            node = Node(life.twin(), moves=((f"always {name}", ""),))
            while node.status == RUNNING:
                node.waited += node.life.waiting
                self._step(node, action)
            found.add(node.ending(), self.judged(node.life))
        for place in self._events.everywhere:
            node = Node(life.twin())
            while node.status == RUNNING:
                if not self.follow(node, ("go to", place)):
                    self.follow(node, WAIT)
            found.add(node.ending(), self.judged(node.life))
        return found.shortest is not None

    def judged(self, life: ArenaSubject) -> bool | None:
        """Return whether the trial that has just ended is a success; None: it does not count."""
        return self._judge(life, self._specification)

    def greedy(self, life: ArenaSubject, effort: int) -> Found:
        """Return the result of a search for reward alone, whether or not the trial succeeds."""
        return self._descend(life, Found(), effort, None)

    def _descend(self, life: ArenaSubject, found: Found, effort: int, polish: int | None) -> Found:
        seen: dict[object, tuple[int, float]] = {}
        stack = [Node(life.twin())]
        self._spent, allowed = 0, effort
        while stack and self._spent < allowed:
            node = stack.pop()
            children: list[tuple[tuple[bool, bool, float, int], int, Node]] = []
            for move in self.moves(node.life):
                child = self.make(node, move)
                if child is None:
                    continue
                if child.status != RUNNING:
                    before, ending = found.shortest, child.ending()
                    if found.needs(ending):  # judging takes as long as walking there
                        found.add(ending, self.judged(child.life))
                    if polish is not None and before is None and found.shortest is not None:
                        allowed = min(allowed, self._spent + polish)
                elif self._is_worth_it(child, seen, found if polish is not None else None):
                    children.append((self._promise(node, child), len(children), child))
            # The most promising one comes last, and so is taken first; of equal ones the first in the file.
            children.sort(key=lambda entry: (entry[0], -entry[1]))
            stack += [child for _, _, child in children]
        return found

    def _is_worth_it(self, child: Node, seen: dict[object, tuple[int, float]], found: Found | None) -> bool:
        """Return whether a moment is new, or reached sooner or with more reward than before."""
        life = child.life
        steps = len(child.actions)
        if found is not None and found.shortest is not None and steps >= found.shortest.steps:
            return False
        key = (life.state, life.pose, tuple(life.values.items()), tuple(life.occupied.items()))
        if key in seen:
            known_steps, known_reward = seen[key]
            if steps >= known_steps and child.reward <= known_reward + 1e-9:
                return False
            seen[key] = (min(steps, known_steps), max(child.reward, known_reward))
        else:
            seen[key] = (steps, child.reward)
        return True

    def _promise(self, node: Node, child: Node) -> tuple[bool, bool, float, int]:
        gain = child.reward - node.reward
        return gain > 0, child.life.state != node.life.state, round(gain, 6), -len(child.actions)

    def moves(self, life: ArenaSubject) -> list[Move]:
        """Return what can be done now, what the state listens to first."""
        if life.waiting:
            return [WAIT]
        places = dict.fromkeys((*self._events.of_state[life.state], *self._events.everywhere))
        return [*(("go to", place) for place in places), WAIT, *(("stand before", place) for place in places)]

    def make(self, node: Node, move: Move) -> Node | None:
        """Make a move on a copy; return where it leads, or None where it leads nowhere."""
        if not self._leads_on(node.life, move):
            return None
        child = Node(node.life.twin(), RUNNING, node.reward, node.waited, list(node.actions), node.moves)
        self._move(child, move)
        self._spent += len(child.actions) - len(node.actions)
        return child

    def follow(self, node: Node, move: Move) -> bool:
        """Make a move in the node itself; return whether it leads anywhere."""
        if not self._leads_on(node.life, move):
            return False
        self._move(node, move)
        return True

    def _leads_on(self, life: ArenaSubject, move: Move) -> bool:
        kind, place = move
        if kind == "wait":
            return True
        way = self._ways.to(life.tables, self._states[life.state].listen, place)
        near = life.pose >> 2
        return way.actions[near] != NO_WAY and not (kind == "stand before" and way.last[near])

    def _move(self, node: Node, move: Move) -> None:
        kind, place = move
        node.moves = (*node.moves, move)
        if kind == "wait":
            self._wait(node)
        else:
            self._go(node, place, stop_before=kind == "stand before")

    def _step(self, node: Node, action: int) -> None:
        _, reward, node.status = node.life.step(action)
        node.reward += reward
        node.actions.append(action)

    def _wait(self, node: Node) -> None:
        """Stay until something happens."""
        life, fired, before = node.life, node.life.happenings, len(node.actions)
        state, tables = life.state, life.tables
        while node.status == RUNNING and life.state == state and life.tables is tables and life.happenings == fired:
            self._step(node, STAY)
        if life.outcome != "timeout":
            node.waited += len(node.actions) - before

    def _go(self, node: Node, place: str, *, stop_before: bool) -> None:
        """Walk until the place is entered or pressed (or only the last step is missing), or things have changed."""
        life = node.life
        state, tables = life.state, life.tables
        way = self._ways.to(tables, self._states[life.state].listen, place)
        while node.status == RUNNING and life.state == state and life.tables is tables:
            pose = life.pose >> 2
            if way.actions[pose] == NO_WAY or (stop_before and way.last[pose]):
                return
            arriving = way.last[pose]
            self._step(node, way.actions[pose])
            if arriving:
                return
