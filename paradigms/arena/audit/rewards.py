"""Reward against success: does anything earn more in a trial by failing than by succeeding?"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.numbers import Z99
from cheesebench.paradigms.arena.audit.runs import DARKNESS, is_judged, lives_for
from cheesebench.paradigms.arena.audit.search import EFFORT as SOLVING
from cheesebench.paradigms.arena.audit.search import WAIT, Ending, Found, Move, Node, Search, is_success
from cheesebench.paradigms.arena.audit.ways import events_of
from cheesebench.paradigms.arena.life import ArenaSubject

#: Steps (on copies) that the search for reward spends on a trial, and the solver on more than one success.
EFFORT, POLISH = 6_000, 1_000
#: Steps that the solver spends on a trial that is not judged: it has to be played all the same.
UNJUDGED = 4_000
#: How often two ways of spending a trial are compared where `p` decides what they earn.
STREAMS = 300
#: Maximum pairs of places visited alternately, and number of random plans, in a trial.
PAIRS, RANDOM_PLANS = 50, 20
#: Rewards that differ by less are equal.
EQUAL = 1e-6


@dataclass
class Solutions:
    """Results of the solver over many trials."""

    trials: int = 0
    """Those that are judged."""
    lived: int = 0
    """All of them."""
    solved: int = 0
    in_half: int = 0
    """Solved within half of the limit, waiting for clocks not counted."""
    in_half_with_clocks: int = 0
    latencies: list[int] = field(default_factory=list)
    least_success: float = math.inf
    best_success: float = -math.inf
    unsolved: str = ""
    """The first trial without a solution."""
    failures: Counter[str] = field(default_factory=Counter)
    """How trials without a solution end on the way that pays most, by outcome."""


def solve_subjects(paradigm: ArenaParadigm, trials: int, seed: int) -> Solutions:
    """Solve trial after trial, and go on in each life with the shortest solution.

    Trials that are not judged (the first run of a session, say) are solved, too, because others may build on them.
    """
    specification, found = paradigm.specification, Solutions()
    search = Search(paradigm.program, specification, is_success)
    for own_seed, subject, count in lives_for(specification, trials, seed, judged=True):
        life = ArenaSubject(paradigm.program, DARKNESS, own_seed, subject)
        for number in range(specification.planned_trials):
            if count == 0 or life.begin_trial() is None:
                break
            found.lived += 1
            limit = specification.limit if isinstance(specification.limit, int) else life.values[specification.limit]
            effort = SOLVING if life.block in specification.judged_blocks else UNJUDGED
            solutions, before = search.solve(life, effort), life.twin()
            shortest = solutions.shortest
            _finish(life, shortest)
            if is_judged(life.result(), specification) is None:
                continue
            count -= 1
            found.trials += 1
            if shortest is None:
                found.unsolved = found.unsolved or f"seed {own_seed}, subject {subject}, trial {number + 1}"
                _finish(before, solutions.best_failure)
                found.failures[before.result().outcome] += 1
            else:
                _count(found, shortest, float(limit))
    return found


def _finish(life: ArenaSubject, solution: Ending | None) -> None:
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
    gain: float
    """Reward of failing minus reward of succeeding, without chance; minus infinity if only one was found."""


def temptations(paradigm: ArenaParadigm, trials: int, seed: int) -> Iterator[Temptation]:
    """Yield for each trial what is earned by succeeding and by failing: by search, by repetition and at random."""
    specification = paradigm.specification
    for own_seed, subject, count in lives_for(specification, trials, seed, judged=True):
        life = ArenaSubject(paradigm.program, DARKNESS, own_seed, subject)
        for number in range(specification.planned_trials):
            if count == 0 or life.begin_trial() is None:
                break
            if life.block in specification.judged_blocks:
                count -= 1
                yield _tempt(paradigm, life, f"seed {own_seed}, subject {subject}, trial {number + 1}")
            while life.step(STAY)[2] == RUNNING:
                pass


def _tempt(paradigm: ArenaParadigm, life: ArenaSubject, where: str) -> Temptation:
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
    return Temptation(where, success, failure, how, _gain(paradigm, life, success, failure))


def _gain(paradigm: ArenaParadigm, life: ArenaSubject, success: Ending | None, failure: Ending | None) -> float:
    """Return what the failure earns more. Luck does not count: no subject can foresee it."""
    if success is None or failure is None:
        return -math.inf
    gain = failure.reward - success.reward
    rules = [*paradigm.program.watch, *(rule for state in paradigm.program.states.values() for rule in state.rules)]
    if gain <= EQUAL or all(rule.p is None for rule in rules):
        return gain
    gains = [_earned(life, failure, number) - _earned(life, success, number) for number in range(STREAMS)]
    return statistics.mean(gains) - Z99 * statistics.stdev(gains) / math.sqrt(STREAMS)


def _earned(life: ArenaSubject, ending: Ending, number: int) -> float:
    """Return what the same actions earn when every `p` is drawn anew; when they are over, time passes."""
    twin = life.twin()
    twin.use_alternative_stream(number)
    actions, earned, status = iter(ending.actions), 0.0, RUNNING
    while status == RUNNING:
        _, reward, status = twin.step(next(actions, STAY))
        earned += reward
    return earned


def _repeat(search: Search, paradigm: ArenaParadigm, life: ArenaSubject, chance: random.Random) -> Found:
    """Visit every place repeatedly, every pair alternately, and some at random, until the trial ends."""
    places = list(events_of(paradigm.program).everywhere)
    pairs = [(one, other) for one in places for other in places]
    if len(pairs) > PAIRS:
        pairs = [(one, one) for one in places] + chance.sample(pairs, max(0, PAIRS - len(places)))
    plans: list[list[Move]] = [[WAIT], *([("go to", one), ("go to", other)] for one, other in pairs)]
    moves: list[Move] = [*(("go to", place) for place in places), WAIT]
    plans += [chance.choices(moves, k=chance.randrange(2, 8)) for _ in range(RANDOM_PLANS)]
    found = Found()
    for plan in plans:
        node = Node(life.twin())
        while node.status == RUNNING:
            led_on = [search.follow(node, move) for move in plan if node.status == RUNNING]
            if not any(led_on):  # no way leads there: time passes
                search.follow(node, WAIT)
        found.add(node.ending(), is_judged(node.life.result(), paradigm.specification))
    return found
