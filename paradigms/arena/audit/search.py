"""A solver that knows the tables, the draws and the rules. It searches on copies of the
life.

Its moves are large: go to a place, stand before a place, wait until something happens.
So it needs no knowledge of any paradigm.
"""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from heapq import heappop, heappush

from cheesebench.interfaces import ACTION_LETTERS, RUNNING, STAY
from cheesebench.paradigms.arena.audit import runs
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.protocol import Specification

#: Limits in steps on copies. ``EFFORT``: the search for a first success. ``POLISH``:
#: the search for a shorter success after the first one.
EFFORT, POLISH = 60_000, 4_000
#: Number of steps without a success after which the search tries to repeat one action,
#: or to go to one place, through the trial.
KEEPING_AFTER = 3_000

Move = tuple[str, str]
"""A move, and its place. The move is "go to", "stand before", "wait" (without a place),
or "always" with an action's letter, which is repeated through the trial.
"""
WAIT: Move = ("wait", "")

Judge = Callable[[ArenaSubject, Specification], bool | None]
"""Function that returns whether the trial that just ended is a success, or None if it
does not count.
"""


def counts(life: ArenaSubject, specification: Specification) -> bool | None:
    """Return whether the trial is a success, or None if it does not count for the pass
    rate.
    """
    return runs.is_judged(life.result(), specification)


def is_success(life: ArenaSubject, _: Specification) -> bool | None:
    """Return whether the trial is a success, even if it does not count for the pass
    rate, or None if the protocol has no `success`.
    """
    return life.success()


@dataclass(frozen=True, slots=True)
class Ending:
    """One possible end of a trial: actions, reward, steps spent waiting for a clock,
    the moves that led to it, its worth (see ``Search.worth``), and whether the limit
    ended it.
    """

    actions: tuple[int, ...]
    reward: float
    waited: int
    moves: tuple[Move, ...]
    worth: float = 0.0
    is_cut_off: bool = False

    @property
    def steps(self) -> int:
        return len(self.actions)


@dataclass
class Found:
    """The results of a search: the shortest success, the success with the highest
    reward, and the failure with the highest reward. Where endings differ in worth, a
    failure of higher worth replaces one of higher reward, and the shortest success is
    the one of highest worth among equally short ones.
    """

    shortest: Ending | None = None
    best_success: Ending | None = None
    best_failure: Ending | None = None

    def needs(self, ending: Ending) -> bool:
        """Return whether this ending could improve the results, as a success or as a
        failure.
        """
        if (
            self.shortest is None
            or self.best_success is None
            or self.best_failure is None
        ):
            return True
        least = min(self.best_success.reward, self.best_failure.reward)
        worst = min(self.shortest.worth, self.best_failure.worth)
        return (
            ending.steps < self.shortest.steps
            or ending.reward > least
            or ending.worth > worst
        )

    def add(self, ending: Ending, success: bool | None) -> None:
        if success:
            if self.shortest is None or _haste(ending) < _haste(self.shortest):
                self.shortest = ending
            if self.best_success is None or ending.reward > self.best_success.reward:
                self.best_success = ending
        elif success is False and (
            self.best_failure is None or _gain_of(ending) > _gain_of(self.best_failure)
        ):
            self.best_failure = ending


def _haste(ending: Ending) -> tuple[int, float]:
    return ending.steps, -ending.worth


def _gain_of(ending: Ending) -> tuple[float, float]:
    return ending.worth, ending.reward


@dataclass
class SearchNode:
    """A reachable moment of a trial: a copy of the life, and the moves that led
    there.
    """

    life: ArenaSubject
    status: int = RUNNING
    reward: float = 0.0
    waited: int = 0
    actions: list[int] = field(default_factory=list)
    moves: tuple[Move, ...] = ()

    def ending(self, worth: float = 0.0) -> Ending:
        return Ending(
            tuple(self.actions),
            self.reward,
            self.waited,
            self.moves,
            worth,
            self.life.outcome == "timeout",
        )


class Search:
    """Searches the trials of one program. The life must have begun a trial, and is left
    unchanged.
    """

    def __init__(
        self, program: Program, specification: Specification, judge: Judge = counts
    ) -> None:
        self._ways, self._events, self._specification = (
            runs.ways_of(program),
            runs.events_of(program),
            specification,
        )
        self._states, self.spent, self._judge = program.states, 0, judge
        #: Places in the file of the rules that have fired.
        self.fired: set[str] = set()

    def solve(
        self, life: ArenaSubject, effort: int = EFFORT, polish: int = POLISH
    ) -> Found:
        """Search depth first. Paths that are as long as the shortest success are not
        continued.

        Rewarded moves come first, then moves that lead to another state, then near
        moves. If nothing has succeeded after ``KEEPING_AFTER`` steps, one action or one
        destination is repeated through the trial, because the search cannot go deep
        enough to find that. Then the search begins anew.
        """
        found = self._descend(life, Found(), min(effort, KEEPING_AFTER), polish)
        if found.shortest is None:
            kept = self._keep_on(life, found)
            if effort > KEEPING_AFTER:
                self._descend(life, found, polish if kept else effort, polish)
        return found

    def _keep_on(self, life: ArenaSubject, found: Found) -> bool:
        """Try each action, repeated until the trial ends. Then try going to each place
        again and again, and waiting where no path leads there. Return whether a success
        is known.
        """
        for action, name in enumerate(ACTION_LETTERS):
            node = SearchNode(life.twin(), moves=((f"always {name}", ""),))
            while node.status == RUNNING:
                node.waited += node.life.waiting
                self._step(node, action)
            found.add(node.ending(self.worth(node.life)), self.judged(node.life))
        for place in self._events.everywhere:
            node = SearchNode(life.twin())
            while node.status == RUNNING:
                if not self.follow(node, ("go to", place)):
                    self.follow(node, WAIT)
            found.add(node.ending(self.worth(node.life)), self.judged(node.life))
        return found.shortest is not None

    def judged(self, life: ArenaSubject) -> bool | None:
        """Return whether the trial that has just ended is a success, or None if it does
        not count.
        """
        return self._judge(life, self._specification)

    def worth(self, life: ArenaSubject) -> float:
        """Return what the trial that has just ended is worth beyond its success. Here,
        it is 0 for all trials.
        """
        return 0.0

    def greedy(self, life: ArenaSubject, effort: int) -> Found:
        """Return the result of a search for reward alone, whether or not the trial
        succeeds.
        """
        return self._descend(life, Found(), effort, None)

    def _descend(
        self,
        life: ArenaSubject,
        found: Found,
        effort: int,
        polish: int | None,
        *,
        is_wide: bool = False,
    ) -> Found:
        """Search depth first. With ``is_wide``, search those nodes first whose moves
        were promising throughout, so that an early mistake is corrected, too.
        """
        seen: dict[object, tuple[int, float]] = {}
        pending, pushed = [(0, 0, SearchNode(life.twin()))], 0
        self.spent, allowed = 0, effort
        while pending and self.spent < allowed:
            doubts, _, node = heappop(pending)
            children: list[tuple[tuple[bool, bool, float, int], int, SearchNode]] = []
            for move in self.moves(node.life):
                child = self.make(node, move)
                if child is None:
                    continue
                if child.status != RUNNING:
                    before = found.shortest
                    ending = child.ending(self.worth(child.life))
                    # Test for success only if needed, because the test is as expensive
                    # as a walk.
                    if found.needs(ending):
                        found.add(ending, self.judged(child.life))
                    if (
                        polish is not None
                        and before is None
                        and found.shortest is not None
                    ):
                        allowed = min(allowed, self.spent + polish)
                elif self._is_worth_it(
                    child, seen, found if polish is not None else None
                ):
                    children.append((self._promise(node, child), len(children), child))
            # The most promising child is last, because the last is taken first. Among
            # equals, the child whose place is first in the file is last.
            children.sort(key=lambda entry: (entry[0], -entry[1]))
            for place, (_, _, child) in enumerate(children):
                pushed += 1
                doubt = is_wide * (len(children) - 1 - place)
                heappush(pending, (doubts + doubt, -pushed, child))
        return found

    def _is_worth_it(
        self,
        child: SearchNode,
        seen: dict[object, tuple[int, float]],
        found: Found | None,
    ) -> bool:
        life = child.life
        steps = len(child.actions)
        if (
            found is not None
            and found.shortest is not None
            and steps >= found.shortest.steps
        ):
            return False
        key = (
            life.state,
            life.pose,
            tuple(life.values.items()),
            tuple(life.occupied.items()),
        )
        if key in seen:
            known_steps, known_reward = seen[key]
            if steps >= known_steps and child.reward <= known_reward + 1e-9:
                return False
            seen[key] = (min(steps, known_steps), max(child.reward, known_reward))
        else:
            seen[key] = (steps, child.reward)
        return True

    def _promise(
        self, node: SearchNode, child: SearchNode
    ) -> tuple[bool, bool, float, int]:
        gain = child.reward - node.reward
        return (
            gain > 0,
            child.life.state != node.life.state,
            round(gain, 6),
            -len(child.actions),
        )

    def moves(self, life: ArenaSubject) -> list[Move]:
        """Return the possible moves. Places that the state reacts to come first."""
        if life.waiting:
            return [WAIT]
        places = dict.fromkeys(
            (*self._events.of_state[life.state], *self._events.everywhere)
        )
        return [
            *(("go to", place) for place in places),
            WAIT,
            *(("stand before", place) for place in places),
        ]

    def make(self, node: SearchNode, move: Move) -> SearchNode | None:
        """Make a move on a copy. Return the new node, or None if the move has no
        effect.
        """
        if not self._leads_on(node.life, move):
            return None
        child = SearchNode(
            node.life.twin(),
            RUNNING,
            node.reward,
            node.waited,
            list(node.actions),
            node.moves,
        )
        self._move(child, move)
        self.spent += len(child.actions) - len(node.actions)
        return child

    def follow(self, node: SearchNode, move: Move) -> bool:
        """Make a move in the node itself. Return whether the move has an effect."""
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
        return way.actions[near] != runs.NO_WAY and not (
            kind == "stand before" and way.last[near]
        )

    def _move(self, node: SearchNode, move: Move) -> None:
        kind, place = move
        node.moves = (*node.moves, move)
        if kind == "wait":
            self._wait(node)
        else:
            self._go(node, place, stop_before=kind == "stand before")

    def _step(self, node: SearchNode, action: int) -> None:
        before = node.life.happenings
        _, reward, node.status = node.life.step(action)
        if node.life.happenings > before:
            self.fired.update(one.source for one in node.life.events[before:])
        node.reward += reward
        node.actions.append(action)

    def _wait(self, node: SearchNode) -> None:
        life, fired, before = node.life, node.life.happenings, len(node.actions)
        state, tables = life.state, life.tables
        while (
            node.status == RUNNING
            and life.state == state
            and life.tables is tables
            and life.happenings == fired
        ):
            self._step(node, STAY)
        if life.outcome != "timeout":
            node.waited += len(node.actions) - before

    def _go(self, node: SearchNode, place: str, *, stop_before: bool) -> None:
        life = node.life
        state, tables = life.state, life.tables
        way = self._ways.to(tables, self._states[life.state].listen, place)
        while node.status == RUNNING and life.state == state and life.tables is tables:
            pose = life.pose >> 2
            if way.actions[pose] == runs.NO_WAY or (stop_before and way.last[pose]):
                return
            arriving = way.last[pose]
            self._step(node, way.actions[pose])
            if arriving:
                return


#: Limits in steps on copies. ``_EFFORT``: the search for reward in a trial.
#: ``_POLISH``: the solver after its first success.
_EFFORT, _POLISH = 6_000, 1_000


# -- reward against success: can a trial that fails earn more than one that succeeds?


#: Limit of the solver, in steps, for a trial that is not judged but has to be played.
UNJUDGED = 4_000
#: Number of random streams on which two ways to play a trial are compared, if `p`
#: decides rewards.
STREAMS = 300
#: ``PAIRS``: maximum number of pairs of places that are visited alternately in a trial.
#: ``RANDOM_PLANS``: number of random plans that are tried in a trial.
PAIRS, RANDOM_PLANS = 50, 20
#: Rewards that differ by less than this count as equal.
EQUAL = 1e-6


@dataclass
class Solutions:
    """Results of the solver over many trials."""

    trials: int = 0
    """Number of judged trials."""
    lived: int = 0
    """Number of trials, judged or not."""
    solved: int = 0
    in_half: int = 0
    """Number of trials solved within half of the limit, without the time spent waiting
    for clocks.
    """
    in_half_with_clocks: int = 0
    """Number of trials solved within half of the limit, all steps counted."""
    least_success: float = math.inf
    """Smallest reward of the shortest solutions."""
    best_success: float = -math.inf
    """Largest reward of the shortest solutions."""
    unsolved: str = ""
    """The first judged trial that was not solved, in words, or "" if all were."""
    failures: Counter[str] = field(default_factory=Counter)
    """Outcomes of the unsolved trials, each played in the way that earns most."""
    fired: Set[str] = frozenset()
    """Places in the file of the rules that fired in the search."""


def solve_subjects(paradigm: ArenaParadigm, trials: int, seed: int) -> Solutions:
    """Solve one trial after the other. Each life continues after the shortest solution,
    or, if there is none, after the failure that earns most.

    Trials that are not judged (the first run of a session, say) are solved, too,
    because later trials may depend on them.
    """
    specification, found = paradigm.specification, Solutions()
    search = Search(paradigm.program, specification, is_success)
    for own_seed, subject, count in runs.lives_for(
        specification, trials, seed, judged=True
    ):
        life = ArenaSubject(paradigm.program, runs.DARKNESS, own_seed, subject)
        for number in range(specification.planned_trials):
            if count == 0 or life.begin_trial() is None:
                break
            found.lived += 1
            limit = (
                specification.limit
                if isinstance(specification.limit, int)
                else life.values[specification.limit]
            )
            effort = EFFORT if life.block in specification.judged_blocks else UNJUDGED
            solutions = search.solve(life, effort)
            shortest = solutions.shortest
            # Play the trial in the way found, because a later success may depend on it,
            # as in "this press and the one before".
            _finish(life, shortest or solutions.best_failure)
            if runs.is_judged(life.result(), specification) is None:
                continue
            count -= 1
            found.trials += 1
            if shortest is None:
                found.unsolved = (
                    found.unsolved
                    or f"seed {own_seed}, subject {subject}, trial {number + 1}"
                )
                found.failures[life.result().outcome] += 1
            else:
                _count(found, shortest, float(limit))
    found.fired = search.fired
    return found


def _finish(life: ArenaSubject, solution: Ending | None) -> None:
    for action in solution.actions if solution else ():
        life.step(action)
    while solution is None and life.step(STAY)[2] == RUNNING:
        pass


def _count(found: Solutions, shortest: Ending, limit: float) -> None:
    found.solved += 1
    found.in_half += shortest.steps - shortest.waited <= limit / 2
    found.in_half_with_clocks += shortest.steps <= limit / 2
    found.least_success = min(found.least_success, shortest.reward)
    found.best_success = max(found.best_success, shortest.reward)


@dataclass(frozen=True, slots=True)
class Temptation:
    """The best success and the best failure of a trial, by reward."""

    where: str
    success: Ending | None
    failure: Ending | None
    how: str
    """The search that found the failure."""
    gain: float
    """Reward of failing minus reward of succeeding. If chance decides rewards, it is
    the lower end of a 99 % interval. It is minus infinity unless both endings were
    found.
    """


def temptations(
    paradigm: ArenaParadigm, trials: int, seed: int
) -> Iterator[Temptation]:
    """Yield the success and the failure with the highest reward in trials of the judged
    blocks, as found by search, by repetition and by random plans.
    """
    specification = paradigm.specification
    for own_seed, subject, count in runs.lives_for(
        specification, trials, seed, judged=True
    ):
        life = ArenaSubject(paradigm.program, runs.DARKNESS, own_seed, subject)
        for number in range(specification.planned_trials):
            if count == 0 or life.begin_trial() is None:
                break
            if life.block in specification.judged_blocks:
                count -= 1
                yield _tempt(
                    paradigm,
                    life,
                    f"seed {own_seed}, subject {subject}, trial {number + 1}",
                )
            while life.step(STAY)[2] == RUNNING:
                pass


def _tempt(paradigm: ArenaParadigm, life: ArenaSubject, where: str) -> Temptation:
    search = Search(paradigm.program, paradigm.specification)
    chance = random.Random(where)
    searches = {
        "the solver": search.solve(life, polish=_POLISH),
        "a search for reward": search.greedy(life, _EFFORT),
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
    return Temptation(
        where, success, failure, how, _gain(paradigm, life, success, failure)
    )


def _gain(
    paradigm: ArenaParadigm,
    life: ArenaSubject,
    success: Ending | None,
    failure: Ending | None,
) -> float:
    if success is None or failure is None:
        return -math.inf
    gain = failure.reward - success.reward
    rules = [
        *paradigm.program.watch,
        *(rule for state in paradigm.program.states.values() for rule in state.rules),
    ]
    if gain <= EQUAL or all(rule.p is None for rule in rules):
        return gain
    gains = [
        _earned(life, failure, number) - _earned(life, success, number)
        for number in range(STREAMS)
    ]
    return statistics.mean(gains) - runs.Z99 * statistics.stdev(gains) / math.sqrt(
        STREAMS
    )


def _earned(life: ArenaSubject, ending: Ending, number: int) -> float:
    """Return the reward of the same actions if every `p` is drawn from another stream.
    After the last action the subject waits.
    """
    twin = life.twin()
    twin.use_alternative_stream(number)
    actions, earned, status = iter(ending.actions), 0.0, RUNNING
    while status == RUNNING:
        _, reward, status = twin.step(next(actions, STAY))
        earned += reward
    return earned


def _repeat(
    search: Search, paradigm: ArenaParadigm, life: ArenaSubject, chance: random.Random
) -> Found:
    places = list(runs.events_of(paradigm.program).everywhere)
    pairs = [(one, other) for one in places for other in places]
    if len(pairs) > PAIRS:
        pairs = [(one, one) for one in places] + chance.sample(
            pairs, max(0, PAIRS - len(places))
        )
    plans: list[list[Move]] = [
        [WAIT],
        *([("go to", one), ("go to", other)] for one, other in pairs),
    ]
    moves: list[Move] = [*(("go to", place) for place in places), WAIT]
    plans += [
        chance.choices(moves, k=chance.randrange(2, 8)) for _ in range(RANDOM_PLANS)
    ]
    found = Found()
    for plan in plans:
        node = SearchNode(life.twin())
        while node.status == RUNNING:
            led_on = [
                search.follow(node, move) for move in plan if node.status == RUNNING
            ]
            if not any(led_on):  # No path leads there, so time passes.
                search.follow(node, WAIT)
        found.add(
            node.ending(), runs.is_judged(node.life.result(), paradigm.specification)
        )
    return found
