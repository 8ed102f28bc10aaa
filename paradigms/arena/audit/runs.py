"""Runs policies and walkers over lives, and counts their trials. The results are rates
with intervals.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import os
import random
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import TypeVar

from cheesebench import interrupts
from cheesebench.interfaces import FORWARD, RUNNING, STAY, Scene, TrialResult, View
from cheesebench.paradigms.arena.audit import policies
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program, Rule
from cheesebench.paradigms.arena.tables import Tables, arrives, destination, is_frozen
from cheesebench.protocol import Specification
from cheesebench.protocol.expressions import FUNCTIONS
from cheesebench.protocol.specification import ReferenceSpec

#: Normal quantiles. ``Z95`` and ``Z99`` are for the 95 % and 99 % intervals in
#: findings, and ``Z_MANY`` is for rules that test many numbers at once.
Z95, Z99, Z_MANY = 1.96, 2.576, 4.0


# -- rates with intervals for trials clustered in lives. They are computed without
# scipy, so that an audit does not need it.


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of trials with its interval (``low``, ``high``)."""

    passed: int
    trials: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share, or 0 if there are no trials."""
        return self.passed / self.trials if self.trials else 0.0

    def __str__(self) -> str:
        return f"{shown(self.value)} [{shown(self.low)}, {shown(self.high)}]"

    def numbers(self) -> dict[str, object]:
        return {
            "rate": self.value,
            "low": self.low,
            "high": self.high,
            "trials": self.trials,
        }


def shown(share: float) -> str:
    """Return a share as text: ``.25``, ``1.00``, or ``.0049`` if two decimals would be
    too few.
    """
    text = f"{share:.2f}" if share < 1e-6 or share >= 0.095 else f"{share:.2g}"
    return text.removeprefix("0") if text.startswith("0.") else text


def rate(counts: Iterable[tuple[int, int]], z: float = Z95) -> Rate:
    """Return the rate from pairs of passed and judged trials, one pair for each life.

    The interval is Wilson's for the effective number of trials. Lives may differ by
    more than chance (a policy may be always right with half of the subjects). Then the
    number of trials is divided by Kish's design effect, which is the observed variance
    between lives over the expected one, and at least 1.
    """
    lives = [(passed, trials) for passed, trials in counts if trials]
    passed, trials = sum(p for p, _ in lives), sum(n for _, n in lives)
    low, high = wilson(passed, trials, z, _design_effect(lives, passed, trials))
    return Rate(passed, trials, low, high)


def wilson(
    passed: float, trials: float, z: float, design_effect: float = 1.0
) -> tuple[float, float]:
    """Return Wilson's lower and upper limits of a share, or (0, 1) if there are no
    trials.
    """
    n = trials / design_effect
    if n <= 0:
        return 0.0, 1.0
    p = passed / trials
    centre, spread = (
        p + z * z / (2 * n),
        z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)),
    )
    scale = 1 + z * z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _design_effect(lives: Sequence[tuple[int, int]], passed: int, trials: int) -> float:
    if len(lives) < 2 or not 0 < passed < trials:
        return 1.0
    p = passed / trials
    # Variance of the pooled rate between lives (linearised ratio), divided by the
    # variance of independent trials.
    residuals = sum((own - p * n) ** 2 for own, n in lives)
    between = residuals * len(lives) / (len(lives) - 1) / trials**2
    return max(1.0, between / (p * (1 - p) / trials))


def differ(one: Rate, passed: float, trials: float, z: float = Z_MANY) -> bool:
    """Return whether a rate and another one, ``passed`` of ``trials``, differ by more
    than chance (two-proportion z test).

    The variance of ``one`` is at least what its interval implies, which allows for
    differences between lives.
    """
    other = passed / trials
    pooled = (one.passed + passed) / (one.trials + trials)
    spread = (one.high - one.low) / (2 * Z95)
    error = math.sqrt(
        max(spread**2, pooled * (1 - pooled) / one.trials)
        + pooled * (1 - pooled) / trials
    )
    return abs(one.value - other) > z * error + 1e-12


# -- runs and tallies


X = TypeVar("X")
Y = TypeVar("Y")
#: Minimum and maximum number of subjects of one seed. The number is a multiple of what
#: draws that are balanced over subjects need, unless that exceeds the maximum.
FEWEST_SUBJECTS, MOST_SUBJECTS = 8, 48


class Darkness:
    """An empty view: the subject observes nothing, and no picture has to be drawn."""

    name = "darkness"
    characters = "."

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return "."

    def max_length(self, scene: Scene) -> int:
        return 1


DARKNESS = Darkness()


def subjects(specification: Specification) -> int:
    """Return the number of subjects of one seed. Draws that are balanced over subjects
    (without ``pick``) are balanced over these, unless that takes more than
    ``MOST_SUBJECTS``.
    """
    rows = [
        len(draw.rows)
        for draw in specification.draws
        if draw.order in ("balanced", "by_subject") and draw.pick is None
    ]
    together = math.lcm(1, *rows)
    return min(MOST_SUBJECTS, together * math.ceil(FEWEST_SUBJECTS / together))


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial as the audit needs it: whether it passed (None if it is not judged),
    reward, steps, and the value of the verdict's measure (see ``measured_value``).
    """

    success: bool | None
    reward: float
    steps: int
    measured: float | None = None


@dataclass
class Tally:
    """The trials of a policy. ``lives`` has the numbers of passed and judged trials of
    each life, and ``means`` the mean of the verdict's measure in each life that has
    one.
    """

    name: str
    lives: list[tuple[int, int]] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    reward: float = 0.0
    """Sum over all trials."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Number of trials by outcome."""
    best_failure: float = -math.inf
    """Largest reward of a judged trial that failed."""
    best_success: float = -math.inf
    """Largest reward of a judged success."""
    least_success: float = math.inf
    """Smallest reward of a judged success."""

    def rate(self, z: float = Z95) -> Rate:
        """Return the share of judged trials that succeed."""
        return rate(self.lives, z)

    def add(self, trials: Sequence[tuple[TrialResult, Trial]]) -> None:
        judged = [trial for _, trial in trials if trial.success is not None]
        self.lives.append((sum(bool(trial.success) for trial in judged), len(judged)))
        values = [one.measured for one in judged if one.measured is not None]
        if values:
            self.means.append(statistics.mean(values))
        for result, trial in trials:
            self.outcomes[result.outcome] += 1
            self.reward += trial.reward
            if trial.success:
                self.best_success = max(self.best_success, trial.reward)
                self.least_success = min(self.least_success, trial.reward)
            elif trial.success is False:
                self.best_failure = max(self.best_failure, trial.reward)


def is_judged(result: TrialResult, specification: Specification) -> bool | None:
    """Return whether the trial is a success, or None if it does not count for the pass
    rate.
    """
    return (
        result.success
        if result.compared and result.block in specification.judged_blocks
        else None
    )


def measured_value(result: TrialResult, specification: Specification) -> float | None:
    """Return the value of the measure that the verdict is about, or None if the verdict
    is about successes, or the trial has no value.
    """
    about = specification.judged
    if about is None or about.better is None:
        return None
    value = result.measures.get(about.measure)
    return float(value) if isinstance(value, int | float) else None


def mean_of(
    means: Sequence[float], about: ReferenceSpec, z: float = Z95
) -> tuple[float, float, float] | None:
    """Return the mean of ``means`` (the verdict's measure, life by life) with its
    interval, which is cut off at the measure's range (with a single mean, it is the
    whole range). Return None if there are no means.
    """
    if not means:
        return None
    mean, least, most = statistics.mean(means), *(about.range or (-math.inf, math.inf))
    error = math.inf
    if len(means) > 1:
        error = z * statistics.stdev(means) / len(means) ** 0.5
    return mean, max(least, mean - error), min(most, mean + error)


def is_beyond(low: float, high: float, about: ReferenceSpec) -> bool:
    """Return whether a whole interval of the measure satisfies the verdict."""
    return all(
        low > limit if sign == ">=" else high < limit for sign, limit in asked_of(about)
    )


def asked_of(about: ReferenceSpec) -> list[tuple[str, float]]:
    """Return what a verdict asks of the mean of its measure: signs and limits."""
    margin = about.margin or 0.0
    limits = [(">=", about.value - margin), ("<=", about.value + margin)]
    return {"higher": limits[:1], "lower": limits[1:]}.get(about.better or "", limits)


def asked_in_words(about: ReferenceSpec) -> str:
    words = {">=": "at least", "<=": "at most"}
    return " and ".join(f"{words[sign]} {limit:.3g}" for sign, limit in asked_of(about))


def live(
    life: ArenaSubject,
    lives_by: policies.Policy,
    specification: Specification,
    most_judged: int | None = None,
) -> Iterator[tuple[TrialResult, Trial]]:
    """Run a policy through a life, or until ``most_judged`` of its trials are judged.
    Yield each trial.

    While the subject only waits, its action is STAY, as in a real run.
    """
    number = 0
    while number != most_judged and life.begin_trial() is not None:
        lives_by.begin()
        total = _play(life, lives_by)
        lives_by.end(total)
        result = life.result()
        value = measured_value(result, specification)
        trial = Trial(is_judged(result, specification), total, life.steps, value)
        number += trial.success is not None
        yield result, trial


def _play(life: ArenaSubject, lives_by: policies.Policy) -> float:
    step, act, feels = life.step, lives_by.act, lives_by.feels
    status, bumped, total, gained = RUNNING, False, 0.0, 0.0
    while status == RUNNING:
        if life.waiting:
            _, reward, status = step(STAY)
            gained += reward
        else:
            action = act(bumped, gained)
            if feels:
                bumped = action == FORWARD and life.tables.moves[life.pose] == life.pose
            _, gained, status = step(action)
            reward = gained
        total += reward
    return total


def lives_for(
    specification: Specification, trials: int, seed: int, *, judged: bool = False
) -> Iterator[tuple[int, int, int]]:
    """Yield lives (seed, subject, number of trials) in whole balanced groups that
    together have at least ``trials`` trials.

    With ``judged``, only trials of judged blocks are counted. The caller must play the
    trials before them, too.
    """
    group, planned = subjects(specification), specification.planned_trials
    if judged:
        blocks = specification.judged_blocks
        planned = sum(
            one.planned for one in specification.schedule if one.name in blocks
        )
    each = min(planned, math.ceil(trials / group))
    for number in range(math.ceil(trials / (each * group))):
        for subject in range(group):
            yield seed + number, subject, each


@dataclass(frozen=True, slots=True)
class Order:
    """One policy to run. ``limit`` replaces the protocol's step limit, unless it is
    None.
    """

    name: str
    trials: int
    """Minimum number of judged trials, in as many lives as it takes."""
    seed: int
    """Seed of the first life."""
    limit: int | None = None


class Runner:
    """Runs policies, in parallel if it has processes. Equal orders give equal
    tallies.
    """

    def __init__(self, paradigm: ArenaParadigm, processes: int = 1) -> None:
        self.paradigm = paradigm
        self._pool: ProcessPoolExecutor | None = None
        if processes > 1:
            context = get_context("spawn")
            #: Workers end when ``_alive``, an end of a pipe, closes. It closes even if
            #: this process is killed.
            theirs, self._alive = context.Pipe(duplex=False)
            with started_apart():
                self._pool = ProcessPoolExecutor(
                    processes,
                    context,
                    initializer=_prepare,
                    initargs=(paradigm.specification, theirs),
                )

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool:
            if kind is not None:
                self._alive.close()
            self._pool.shutdown(cancel_futures=True)

    def map(
        self,
        do: Callable[[ArenaParadigm, X], Y],
        orders: Sequence[X],
        progress: Callable[[str], None] | None,
        names: Callable[[X], str],
        says: Callable[[Y], str],
    ) -> list[Y]:
        """Apply ``do`` to the paradigm and each order, and return the results in the
        same order. The progress says how many are done, what is being done (``names``)
        and what came out last (``says``).
        """
        results, latest = dict[int, Y](), ""
        left = list(range(len(orders)))
        done = self._done(do, orders)
        while left:
            if progress:
                now = names(orders[left[0]])
                progress(f"{latest}searched {len(results)} of {len(orders)}, now {now}")
            number, result = next(done)
            results[number] = result
            left.remove(number)
            latest = f"{names(orders[number])}: {says(result)}; "
        return [results[number] for number in range(len(orders))]

    def _done(
        self, do: Callable[[ArenaParadigm, X], Y], orders: Sequence[X]
    ) -> Iterator[tuple[int, Y]]:
        """Yield each order's index and result, as they are ready."""
        if self._pool is None or len(orders) < 2:
            for number, order in enumerate(orders):
                yield number, do(self.paradigm, order)
            return
        with started_apart():
            numbers = {
                self._pool.submit(_do_here, do, order): number
                for number, order in enumerate(orders)
            }
        for future in as_completed(numbers):
            yield numbers[future], future.result()

    def run(
        self, orders: Sequence[Order], each: Callable[[int], None] = lambda _: None
    ) -> list[Tally]:
        """Return the tallies of all orders, in their order. ``each`` is called with the
        number of orders completed so far.
        """
        if self._pool is None or len(orders) < 2:
            return list(
                _counted((carry_out(self.paradigm, order) for order in orders), each)
            )
        chunk = max(1, len(orders) // 32)
        with started_apart():
            done = self._pool.map(_carry_out_here, orders, chunksize=chunk)
        return list(_counted(done, each))


def _counted(tallies: Iterator[Tally], each: Callable[[int], None]) -> Iterator[Tally]:
    for number, tally in enumerate(tallies, 1):
        each(number)
        yield tally


def carry_out(paradigm: ArenaParadigm, order: Order, view: View = DARKNESS) -> Tally:
    if order.limit is not None:
        paradigm = ArenaParadigm(replace(paradigm.specification, limit=order.limit))
    specification, tally = paradigm.specification, Tally(order.name)
    for seed, subject, trials in lives_for(
        specification, order.trials, order.seed, judged=True
    ):
        chance = random.Random(f"{order.seed}|{seed}|{subject}|{order.name}")
        life = ArenaSubject(paradigm.program, view, seed, subject)
        tally.add(
            list(live(life, policies.policy(order.name, chance), specification, trials))
        )
    return tally


@contextlib.contextmanager
def started_apart() -> Iterator[None]:
    """Protect the workers that are started in this context from signals."""
    # Start multiprocessing's resource tracker first, because signals are let through
    # again once it has started.
    with interrupts.held():
        resource_tracker.ensure_running()
    with interrupts.held():
        yield


_here: list[ArenaParadigm] = []


def _prepare(specification: Specification, alive: Connection) -> None:
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()
    _here[:] = [ArenaParadigm(specification)]


def _end_with(alive: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        alive.recv()
    os._exit(0)


def _do_here(do: Callable[[ArenaParadigm, X], Y], order: X) -> Y:
    return do(_here[0], order)


def _carry_out_here(order: Order) -> Tally:
    return carry_out(_here[0], order)


# -- ways to events: for every pose, the action that leads towards a place


#: Cost, in steps, of a step that triggers another event. It is so high that a path with
#: such a step is taken only if there is no other.
DETOUR = 1000
NO_WAY = -1


@dataclass(frozen=True, slots=True)
class Way:
    """The way to a goal. Both lists are indexed by ``pose >> 2``. They hold the action
    to take (NO_WAY if no path leads to the goal), and whether this action reaches it.
    """

    actions: list[int]
    last: list[bool]


class Ways:
    """The ways of one arena, stored by tables (closed doors), events with rules, and
    place.
    """

    def __init__(self, program: Program) -> None:
        self._geometry = program.geometry
        self._acts = sum(
            bit for (kind, _), bit in program.geometry.bit.items() if kind == "act"
        )
        # Tables are kept with their ways, so that their id() is not reused.
        self._known: dict[tuple[int, int, str], tuple[Tables, Way]] = {}

    def to(self, tables: Tables, listen: int, place: str) -> Way:
        """Return the way that enters (or presses) ``place``, avoiding other events
        where possible.
        """
        key = (id(tables), listen, place)
        if key not in self._known:
            self._known[key] = (tables, self._find(tables, listen & ~self._acts, place))
        return self._known[key][1]

    def _find(self, tables: Tables, listen: int, place: str) -> Way:
        geometry = self._geometry
        actions, last = [NO_WAY] * geometry.poses, [False] * geometry.poses
        if is_frozen(tables, 0):
            return Way(actions, last)
        goal = destination(geometry.arena, [place])
        before: list[list[int]] = [[] for _ in range(geometry.poses)]
        reached = [DETOUR * DETOUR] * geometry.poses
        queue: list[tuple[int, int]] = []
        for index, there in enumerate(tables.moves):
            pose = index >> 2
            if index & 3 == FORWARD and arrives(geometry, tables, index, goal):
                actions[pose], last[pose], reached[pose] = FORWARD, True, 1
                heapq.heappush(queue, (1, pose))
            elif index & 3 < 3 and there != index & ~3:
                before[there >> 2].append(index)
        while queue:
            steps, pose = heapq.heappop(queue)
            if steps > reached[pose]:
                continue
            for index in before[pose]:
                cost = steps + (DETOUR if tables.events[index] & listen else 1)
                if cost < reached[index >> 2]:
                    reached[index >> 2] = cost
                    actions[index >> 2], last[index >> 2] = index & 3, False
                    heapq.heappush(queue, (cost, index >> 2))
        return Way(actions, last)


class Events:
    """Places that may matter: the places that the rules of each state, or of `watch`,
    react to, in the order of the file, and the places that expressions read.
    """

    def __init__(self, program: Program) -> None:
        names = [
            (bit, name)
            for (kind, name), bit in program.geometry.bit.items()
            if kind in ("enter", "inside", "press")
        ]

        def heard(masks: Sequence[int]) -> tuple[str, ...]:
            return tuple(
                dict.fromkeys(
                    name for mask in masks for bit, name in names if mask & bit
                )
            )

        watched = heard([rule.mask for rule in program.watch if not _only_costs(rule)])
        read = tuple(_read(program))
        #: Places that the rules of a state react to. If a state has none and is not
        #: frozen: places that ``watch`` reacts to, or else places that expressions
        #: read.
        self.of_state = {
            name: heard([rule.mask for rule in state.rules if not _only_costs(rule)])
            or (() if state.freeze else watched or read)
            for name, state in program.states.items()
        }
        #: Every place that may matter.
        self.everywhere = tuple(
            dict.fromkeys(
                [
                    *(name for names in self.of_state.values() for name in names),
                    *watched,
                    *read,
                ]
            )
        )


def _read(program: Program) -> list[str]:
    arena = program.geometry.arena
    members = [
        name for group in program.geometry.member_at for name in arena.groups[group]
    ]
    if program.reads_path:
        held = {
            str(value)
            for draw in program.specification.draws
            for row in draw.rows
            for value in row
        }
        members += [name for name in arena.zones if name in held]
        text = program.specification.text
        functions = [name for name, function in FUNCTIONS.items() if function.reads]
        members += [
            name
            for name in arena.zones
            if any(f"{function}({name})" in text for function in functions)
        ]
    return members


def _only_costs(rule: Rule) -> bool:
    """Return whether a rule does nothing, or only takes reward away (for a bump, say),
    so that no subject would choose it.
    """
    leads_on = rule.go is not None or rule.end is not None
    return (
        not leads_on
        and rule.effects.only_constant_reward
        and (rule.effects.constant or 0.0) <= 0
    )


def ways_of(program: Program) -> Ways:
    """Return the ways of a program, which all its walkers share."""
    return _of(program)[0]


def events_of(program: Program) -> Events:
    return _of(program)[1]


@lru_cache(maxsize=4)
def _of(program: Program) -> tuple[Ways, Events]:
    return Ways(program), Events(program)


#: Function that chooses one of the places that can be reached, or None to wait until
#: the state changes.
Choice = Callable[[Sequence[str]], str | None]
#: Function that is called with the life and the observation when a trial has begun or
#: the state has changed.
Watcher = Callable[[ArenaSubject, str], None]


# -- walkers: agents that know the tables and walk straight to events. Their pass rate
# is the chance level of *choices*.


class Walker:
    """Goes from event to event. ``choose`` picks one of the places that the rules of
    the current state react to, or, with ``everywhere``, one of all places that may
    matter.
    """

    def __init__(
        self, program: Program, choose: Choice, *, everywhere: bool = False
    ) -> None:
        self._ways, self._events, self._states = (
            ways_of(program),
            events_of(program),
            program.states,
        )
        self._choose, self._everywhere = choose, everywhere
        self._place: str | None = None
        self._state = ""
        self._arriving = True

    def begin(self) -> None:
        self._state, self._arriving = "", True

    def act(self, life: ArenaSubject) -> int:
        """Return the next action towards the chosen place.

        Choose a new place first if the trial has just begun, the place has been
        reached, or the state has changed. If a door has closed the way, wait for one
        step, and choose a new place at the next one.
        """
        tables, listen = life.tables, self._states[life.state].listen
        if self._arriving or life.state != self._state:
            self._state, self._arriving = life.state, False
            names = (
                self._events.everywhere
                if self._everywhere
                else self._events.of_state[life.state]
            )
            near = life.pose >> 2
            self._place = self._choose(
                [
                    name
                    for name in names
                    if self._ways.to(tables, listen, name).actions[near] != NO_WAY
                ]
            )
        if self._place is None:
            return STAY
        way = self._ways.to(tables, listen, self._place)
        action = way.actions[life.pose >> 2]
        if action == NO_WAY:  # A door has closed.
            self._arriving = True
            return STAY
        self._arriving = way.last[life.pose >> 2]
        return action


def event_random(chance: random.Random) -> Choice:
    """Return the choice of ``event-random``: uniform over the reachable places."""
    return lambda places: chance.choice(places) if places else None


def tour(chance: random.Random) -> Choice:
    """Return a choice that visits the places in the order of the file, from a random
    start.
    """
    number = itertools.count(chance.randrange(1000))
    return lambda places: places[next(number) % len(places)] if places else None


def wanderer(chance: random.Random) -> Choice:
    """Return a choice that sometimes waits, so that more states are met."""
    return lambda places: chance.choice([*places, None]) if places else None


def walk(
    life: ArenaSubject,
    walker: Walker,
    specification: Specification,
    trials: int,
    watch: Watcher | None = None,
    *,
    every_block: bool = False,
) -> Iterator[tuple[TrialResult, Trial]]:
    """Run a walker until ``trials`` trials are judged, or the life is over. Yield each
    trial.

    With ``every_block``, about ``trials`` trials of each block are played instead,
    spread over its sessions and repetitions: the first trials of each session, and its
    last one. The other trials are begun and skipped.
    """
    blocks = {block.name: block for block in specification.schedule}
    judged = 0
    while every_block or judged < trials:
        if (observation := life.begin_trial()) is None:
            return
        if every_block:
            block = blocks[life.block]
            if (
                math.ceil(trials / (block.sessions * block.repeat))
                < life.trial
                < block.trials
            ):
                continue
        walker.begin()
        status, total, state = RUNNING, 0.0, ""
        while status == RUNNING:
            if watch is not None and life.state != state:
                watch(life, observation)
            state = life.state
            observation, reward, status = life.step(walker.act(life))
            total += reward
        result = life.result()
        value = measured_value(result, specification)
        trial = Trial(is_judged(result, specification), total, life.steps, value)
        judged += trial.success is not None
        yield result, trial


def walk_subjects(
    paradigm: ArenaParadigm,
    name: str,
    choice: Callable[[random.Random], Choice],
    order: Order,
) -> Tally:
    """Run a walker through as many lives as the order needs. ``choice`` returns the
    walker's choice function, given a random stream.
    """
    tally = Tally(name)
    for seed, subject, trials in lives_for(
        paradigm.specification, order.trials, order.seed, judged=True
    ):
        chance = random.Random(f"{order.seed}|{seed}|{subject}|{name}")
        life = ArenaSubject(paradigm.program, DARKNESS, seed, subject)
        walker = Walker(paradigm.program, choice(chance))
        tally.add(list(walk(life, walker, paradigm.specification, trials)))
    return tally
