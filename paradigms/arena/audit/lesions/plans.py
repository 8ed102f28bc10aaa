"""Plans of somebody who knows which hypothesis is true: actions to success, by moves along distance tables."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms.arena.audit.lesions.hypotheses import Hypothesis
from cheesebench.paradigms.arena.audit.search import WAIT, Ending, Found, Move, Node, Search
from cheesebench.paradigms.arena.life import NEVER, ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.protocol import Specification

#: Steps of the search for moves that lead to success, and of making them shorter.
EFFORT, POLISH = 3000, 600
#: Failed searches after which no more are made in a stage without any success.
IN_VAIN = 4
#: Lists of moves that are tried before a search (in like circumstances; in the same state), and plans that are kept.
LISTS, GENERAL, MOST_PLANS = 3, 12, 200_000


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions to the end of the trial, and whether that is a success."""

    actions: tuple[int, ...]
    success: bool


class Solver(Search):
    """The search of the audit, asking hypotheses themselves whether a trial is a success."""

    def __init__(self, program: Program, specification: Specification) -> None:
        super().__init__(program, specification)
        self._groups = [tuple(group) for group in program.geometry.arena.groups.values() if len(group) > 2]

    def look(self, life: ArenaSubject, effort: int, polish: int) -> Found:
        """Return what searching move by move finds."""
        return self._descend(life, Found(), effort, polish)

    def keep_on(self, life: ArenaSubject, found: Found) -> None:
        """Add what doing one thing all through the trial leads to; then what going round does, where that succeeds."""
        self._keep_on(life, found)
        if found.shortest is None:
            self._go_round(life, found)

    def _go_round(self, life: ArenaSubject, found: Found) -> None:
        """Go through the members of each group in turn, from each one, either way round, until the trial ends."""
        for members in self._groups:
            for first, step in itertools.product(range(len(members)), (1, -1)):
                node, place = Node(life.twin()), first
                while node.status == RUNNING:
                    if self.follow(node, ("go to", members[place % len(members)])):
                        place += step
                    else:
                        self.follow(node, WAIT)
                if self.judged(node.life):
                    found.add(node.ending(), True)

    def judged(self, life: ArenaSubject) -> bool | None:
        """Return whether the trial that has just ended is a success."""
        return life.is_success()


class Plans:
    """Plans for hypotheses, kept: what was found for one is tried first for others that are in like circumstances."""

    def __init__(self, program: Program) -> None:
        self._solver = Solver(program, program.specification)
        self._places = {*program.geometry.arena.zones, *program.geometry.arena.solids}
        self._plans: dict[Hashable, Plan] = {}
        #: Circumstances -> lists of moves that led to success, the latest first.
        self._moves: dict[Hashable, list[tuple[Move, ...]]] = {}
        #: State -> lists of moves by the names of variables instead of what these hold: for other circumstances.
        self._general: dict[str, list[tuple[Move, ...]]] = {}
        #: Stage -> the fewest steps from there to success, ways to fail, and the number of failed searches.
        self._soonest: dict[Hashable, int] = {}
        self._failures: dict[Hashable, list[tuple[Move, ...]]] = {}
        self._searched_in_vain: dict[Hashable, int] = {}
        #: Circumstances -> the step from which on no success is looked for, and the best failure.
        self._hopeless: dict[Hashable, tuple[int, tuple[Move, ...]]] = {}

    def of(self, life: Hypothesis) -> Plan:
        """Return the plan for a hypothesis, which is left as it is."""
        key = (life.key(), life.steps)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._find(life)
        return plan

    def _find(self, life: Hypothesis) -> Plan:
        circumstances = life.circumstances()
        if circumstances not in self._moves:
            general = self._general.get(life.state, ())
            self._moves[circumstances] = list(dict.fromkeys(_instance(moves, life) for moves in general))
        lists = self._moves[circumstances]
        best: Plan | None = None
        for number, moves in enumerate(lists):
            plan = self._follow(life, moves)
            if plan is not None and plan.success and (best is None or len(plan.actions) < len(best.actions)):
                best, chosen = plan, number
        if best is not None:
            lists.insert(0, lists.pop(chosen))
            del lists[LISTS:]
            return best
        hopeless = self._hopeless.get(circumstances)
        if hopeless is not None and life.steps >= hopeless[0]:
            return self._follow(life, hopeless[1]) or self._wait(life)
        if self._is_vain(life):
            return self._fail(life)
        found = self._search(life)
        if found.shortest is not None:
            lists.insert(0, found.shortest.moves)
            self._soonest[life.stage] = min(self._soonest.get(life.stage, NEVER), found.shortest.steps)
            general = self._general.setdefault(life.state, [])
            if (moves := _generalised(found.shortest.moves, life)) not in general:
                general.insert(0, moves)
                del general[GENERAL:]
            return _plan(found.shortest, success=True)
        moves = found.best_failure.moves if found.best_failure else ()
        self._hopeless[circumstances] = (life.steps, moves)
        failures = self._failures.setdefault(life.stage, [])
        if (ways := _generalised(moves, life)) in failures:
            failures.remove(ways)
        failures.insert(0, ways)
        self._searched_in_vain[life.stage] = self._searched_in_vain.get(life.stage, 0) + 1
        return _plan(found.best_failure, success=False) if found.best_failure else self._wait(life)

    def _search(self, life: Hypothesis) -> Found:
        """Search for success; after ``IN_VAIN`` failed searches, doing one thing all through the trial is not tried."""
        found = self._solver.look(life, EFFORT, POLISH)
        is_vain = self._searched_in_vain.get(life.stage, 0) >= IN_VAIN
        if found.shortest is None and (not is_vain or found.best_failure is None):
            self._solver.keep_on(life, found)
        return found

    def _is_vain(self, life: Hypothesis) -> bool:
        """Return whether a search would probably fail, given others in this stage."""
        soonest = self._soonest.get(life.stage)
        if soonest is None:
            return self._searched_in_vain.get(life.stage, 0) >= IN_VAIN
        return life.steps + soonest > life.limit

    def _fail(self, life: Hypothesis) -> Plan:
        """Return a way to end the trial that ended it for others."""
        for moves in self._failures.get(life.stage, [])[:LISTS]:
            plan = self._follow(life, _instance(moves, life))
            if plan is not None:
                return plan
        return self._wait(life)

    def _follow(self, life: Hypothesis, moves: tuple[Move, ...]) -> Plan | None:
        """Make moves that led somewhere before; None where they cannot be made, or do not end the trial."""
        node = Node(life.twin())
        for move in moves:
            if (
                node.status != RUNNING
                or move[0].startswith("always")
                or not self._can(move)
                or not self._solver.follow(node, move)
            ):
                break
        if node.status == RUNNING:
            return None
        return Plan(tuple(node.actions), bool(self._solver.judged(node.life)))

    def _can(self, move: Move) -> bool:
        return move == WAIT or move[1] in self._places

    def _wait(self, life: Hypothesis) -> Plan:
        twin, status, actions = life.twin(), RUNNING, 0
        while status == RUNNING:
            _, _, status = twin.step(STAY)
            actions += 1
        return Plan((STAY,) * actions, twin.is_success())


def _generalised(moves: tuple[Move, ...], life: Hypothesis) -> tuple[Move, ...]:
    """Return moves with the names of variables (marked) for the places that these hold now."""
    names = {value: name for name, value in reversed(life.named.items()) if isinstance(value, str)}
    return tuple((kind, f"={names[place]}" if place in names else place) for kind, place in moves)


def _instance(moves: tuple[Move, ...], life: Hypothesis) -> tuple[Move, ...]:
    """Return generalised moves as they are for this hypothesis."""
    named = life.named
    return tuple((kind, str(named.get(place[1:])) if place.startswith("=") else place) for kind, place in moves)


def _plan(ending: Ending, *, success: bool) -> Plan:
    return Plan(ending.actions, success)
