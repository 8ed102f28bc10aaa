"""Reward against success: does anything earn more in a trial by failing than by succeeding?"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms import ArenaParadigm
from cheesebench.paradigms.audit.runs import DARKNESS, is_judged, lives_for
from cheesebench.paradigms.audit.search import WAIT, Ending, Found, Move, Node, Search, branch
from cheesebench.paradigms.audit.ways import events_of
from cheesebench.paradigms.life import ArenaLife

#: Steps (on copies) that the search for reward spends on a trial, and the solver on more than one success.
EFFORT, POLISH = 6_000, 1_000
#: Most pairs of places that are gone to by turns, and number of random plans, in a trial.
PAIRS, RANDOM_PLANS = 50, 20
#: Rewards that differ by less are equal.
EQUAL = 1e-6


@dataclass
class Solutions:
    """What the solver came to over many trials."""

    trials: int = 0
    solved: int = 0
    in_half: int = 0
    """Solved within half of the limit, waiting for clocks not counted."""
    in_half_with_clocks: int = 0
    latencies: list[int] = field(default_factory=list)
    least_success: float = math.inf
    best_success: float = -math.inf
    unsolved: str = ""
    """The first trial without a solution."""


def solve_lives(paradigm: ArenaParadigm, trials: int, seed: int) -> Solutions:
    """Solve trial after trial, and go on in each life with the shortest solution."""
    specification, found = paradigm.specification, Solutions()
    search = Search(paradigm.program, specification)
    for own_seed, subject, count in lives_for(specification, trials, seed):
        life = ArenaLife(paradigm.program, DARKNESS, own_seed, subject)
        for number in range(count):
            if life.begin_trial() is None:
                break
            limit = specification.limit if isinstance(specification.limit, int) else life.values[specification.limit]
            shortest = search.solve(life).shortest
            _finish(life, shortest)
            if is_judged(life.result(), specification) is None:
                continue
            found.trials += 1
            if shortest is None:
                found.unsolved = found.unsolved or f"seed {own_seed}, subject {subject}, trial {number + 1}"
            else:
                _count(found, shortest, float(limit))
    return found


def _finish(life: ArenaLife, solution: Ending | None) -> None:
    """End the trial in the life itself: as the solution does, or by waiting."""
    for action in solution.actions if solution else ():
        life.step(action)
    while solution is None and life.step(STAY)[2] == RUNNING:
        pass


def _count(found: Solutions, shortest: Ending, limit: float) -> None:
    found.solved += 1
    found.latencies.append(shortest.steps)
    found.in_half += shortest.steps - shortest.waited <= limit / 2
    found.in_half_with_clocks += shortest.steps <= limit / 2
    found.least_success = min(found.least_success, shortest.reward)
    found.best_success = max(found.best_success, shortest.reward)


@dataclass(frozen=True, slots=True)
class Temptation:
    """A trial with the best paid success and the best paid failure that were found."""

    where: str
    success: Ending | None
    failure: Ending | None
    how: str
    """Who found the failure."""

    @property
    def gain(self) -> float:
        """What failing earns more than succeeding; minus infinity where only one of them was found."""
        if self.success is None or self.failure is None:
            return -math.inf
        return self.failure.reward - self.success.reward


def temptations(paradigm: ArenaParadigm, trials: int, seed: int) -> Iterator[Temptation]:
    """Yield for each trial what is earned by succeeding and by failing: by search, by repetition and at random."""
    specification = paradigm.specification
    for own_seed, subject, count in lives_for(specification, trials, seed):
        life = ArenaLife(paradigm.program, DARKNESS, own_seed, subject)
        for number in range(count):
            if life.begin_trial() is None:
                break
            yield _tempt(paradigm, life, f"seed {own_seed}, subject {subject}, trial {number + 1}")
            while life.step(STAY)[2] == RUNNING:
                pass


def _tempt(paradigm: ArenaParadigm, life: ArenaLife, where: str) -> Temptation:
    search = Search(paradigm.program, paradigm.specification)
    chance = random.Random(where)
    searches = {
        "the solver": search.solve(life, polish=POLISH),
        "a search for reward": search.greedy(life, EFFORT),
        "repetition": _repeat(search, paradigm, life, chance),
    }
    success = max(
        (found.best_success for found in searches.values() if found.best_success),
        key=lambda ending: ending.reward,
        default=None,
    )
    how, failure = max(
        ((name, found.best_failure) for name, found in searches.items()),
        key=lambda item: item[1].reward if item[1] else -math.inf,
    )
    return Temptation(where, success, failure, how)


def _repeat(search: Search, paradigm: ArenaParadigm, life: ArenaLife, chance: random.Random) -> Found:
    """Go to every place again and again, to every two by turns, and to some at random, until the trial ends."""
    places = list(events_of(paradigm.program).everywhere)
    pairs = [(one, other) for one in places for other in places]
    if len(pairs) > PAIRS:
        pairs = [(one, one) for one in places] + chance.sample(pairs, max(0, PAIRS - len(places)))
    plans: list[list[Move]] = [[WAIT], *([("go to", one), ("go to", other)] for one, other in pairs)]
    moves: list[Move] = [*(("go to", place) for place in places), WAIT]
    plans += [chance.choices(moves, k=chance.randrange(2, 8)) for _ in range(RANDOM_PLANS)]
    found = Found()
    for plan in plans:
        node = Node(branch(life))
        while node.status == RUNNING:
            led_on = [search.follow(node, move) for move in plan if node.status == RUNNING]
            if not any(led_on):  # no way leads there: time passes
                search.follow(node, WAIT)
        found.add(node.ending(), is_judged(node.life.result(), paradigm.specification))
    return found
