"""Runs policies over lives, and tallies their trials."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TypeVar

from cheesebench.interfaces import FORWARD, RUNNING, STAY, Scene, TrialResult, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.family import policy
from cheesebench.paradigms.arena.audit.numbers import Z95, Rate, rate
from cheesebench.paradigms.arena.audit.policies import Policy
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

X = TypeVar("X")
Y = TypeVar("Y")
#: Subjects of one seed: enough for every row of a draw that is counterbalanced over subjects, at least and at most.
FEWEST_SUBJECTS, MOST_SUBJECTS = 8, 48


class Darkness:
    """An empty view: a subject in it observes nothing, and nothing has to be rendered."""

    name = "darkness"
    characters = "."

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return the same everywhere."""
        return "."

    def max_length(self, scene: Scene) -> int:
        """Return 1."""
        return 1


DARKNESS = Darkness()


def subjects(specification: Specification) -> int:
    """Return how many subjects make a balanced group."""
    rows = [
        len(draw.rows) for draw in specification.draws if draw.order in ("balanced", "by_subject") and draw.pick is None
    ]
    together = math.lcm(1, *rows)
    return min(MOST_SUBJECTS, together * math.ceil(FEWEST_SUBJECTS / together))


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial as the audit needs it: pass or fail (None: not judged), reward and steps."""

    success: bool | None
    reward: float
    steps: int


@dataclass
class Tally:
    """Tally of a policy's trials; ``lives`` has passed and judged trials of each life."""

    name: str
    lives: list[tuple[int, int]] = field(default_factory=list)
    reward: float = 0.0
    """Of all trials together."""
    outcomes: Counter[str] = field(default_factory=Counter)
    best_failure: float = -math.inf
    best_success: float = -math.inf
    least_success: float = math.inf

    def rate(self, z: float = Z95) -> Rate:
        """Return the share of judged trials that succeed."""
        return rate(self.lives, z)

    def add(self, trials: Sequence[tuple[TrialResult, Trial]]) -> None:
        """Count the trials of one more life."""
        judged = [trial for _, trial in trials if trial.success is not None]
        self.lives.append((sum(bool(trial.success) for trial in judged), len(judged)))
        for result, trial in trials:
            self.outcomes[result.outcome] += 1
            self.reward += trial.reward
            if trial.success:
                self.best_success = max(self.best_success, trial.reward)
                self.least_success = min(self.least_success, trial.reward)
            elif trial.success is False:
                self.best_failure = max(self.best_failure, trial.reward)


def is_judged(result: TrialResult, specification: Specification) -> bool | None:
    """Return whether the trial is a success; None if it does not count for the pass rate."""
    return result.success if result.compared and result.block in specification.judged_blocks else None


def live(
    life: ArenaSubject, lives_by: Policy, specification: Specification, most_judged: int | None = None
) -> Iterator[tuple[TrialResult, Trial]]:
    """Run a policy through a life, or until so many of its trials are judged; yield each trial.

    Frozen steps are played as STAY, as the runner does.
    """
    number = 0
    while number != most_judged and life.begin_trial() is not None:
        lives_by.begin()
        total = _play(life, lives_by)
        lives_by.end(total)
        result = life.result()
        trial = Trial(is_judged(result, specification), total, life.steps)
        number += trial.success is not None
        yield result, trial


def _play(life: ArenaSubject, lives_by: Policy) -> float:
    """Play one trial; return its reward."""
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
    """Yield seed, subject and number of trials of the lives that make up at least ``trials`` in balanced groups.

    With ``judged`` these are trials of judged blocks: however late they come, each life is played up to them.
    """
    group, planned = subjects(specification), specification.planned_trials
    if judged:
        blocks = specification.judged_blocks
        planned = sum(one.planned for one in specification.schedule if one.name in blocks)
    each = min(planned, math.ceil(trials / group))
    for number in range(math.ceil(trials / (each * group))):
        for subject in range(group):
            yield seed + number, subject, each


@dataclass(frozen=True, slots=True)
class Order:
    """One policy to be run: ``limit`` replaces the protocol's."""

    name: str
    trials: int
    seed: int
    limit: int | None = None


class Runner:
    """Runs policies, side by side where there are processes for it; equal orders give equal tallies."""

    def __init__(self, paradigm: ArenaParadigm, processes: int = 1) -> None:
        self.paradigm = paradigm
        self._pool: ProcessPoolExecutor | None = None
        if processes > 1:
            self._pool = ProcessPoolExecutor(
                processes, get_context("spawn"), initializer=_prepare, initargs=(paradigm.specification,)
            )

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def map(
        self, do: Callable[[ArenaParadigm, X], Y], orders: Sequence[X], progress: Callable[[str], None] | None = None
    ) -> list[Y]:
        """Return what a function of the paradigm makes of each order, in their order."""
        if self._pool is None or len(orders) < 2:
            done: Iterator[Y] = (do(self.paradigm, order) for order in orders)
        else:
            done = self._pool.map(_do_here, [do] * len(orders), orders)
        results = []
        for number, result in enumerate(done, 1):
            results.append(result)
            if progress:
                progress(f"{number} of {len(orders)}")
        return results

    def run(self, orders: Sequence[Order], each: Callable[[int], None] = lambda _: None) -> list[Tally]:
        """Return the tallies of all orders, in their order; ``each`` is called with the number completed."""
        if self._pool is None or len(orders) < 2:
            return list(_counted((carry_out(self.paradigm, order) for order in orders), each))
        chunk = max(1, len(orders) // 32)
        return list(_counted(self._pool.map(_carry_out_here, orders, chunksize=chunk), each))


def _counted(tallies: Iterator[Tally], each: Callable[[int], None]) -> Iterator[Tally]:
    for number, tally in enumerate(tallies, 1):
        each(number)
        yield tally


def carry_out(paradigm: ArenaParadigm, order: Order, view: View = DARKNESS) -> Tally:
    """Run one policy."""
    if order.limit is not None:
        paradigm = ArenaParadigm(replace(paradigm.specification, limit=order.limit))
    specification, tally = paradigm.specification, Tally(order.name)
    for seed, subject, trials in lives_for(specification, order.trials, order.seed, judged=True):
        chance = random.Random(f"{order.seed}|{seed}|{subject}|{order.name}")
        life = ArenaSubject(paradigm.program, view, seed, subject)
        tally.add(list(live(life, policy(order.name, chance), specification, trials)))
    return tally


_here: list[ArenaParadigm] = []


def _prepare(specification: Specification) -> None:
    """Compile the protocol in a worker process, once."""
    _here[:] = [ArenaParadigm(specification)]


def _do_here(do: Callable[[ArenaParadigm, X], Y], order: X) -> Y:
    return do(_here[0], order)


def _carry_out_here(order: Order) -> Tally:
    return carry_out(_here[0], order)
