"""Computes upper bounds by dynamic programming over beliefs.

A bound concerns one trial. If no trial reveals anything about the next one (under
amnesia between trials, if every draw is made for its trial alone, or if no trial
reveals a value that lasts), the trial itself is bounded. Otherwise an easier problem is
bounded, in which the subject knows everything that earlier trials could have told it.
Clocks that only end a trial in failure are removed at first. Both changes can only help
the subject.

Bounds of still easier problems are computed first, because there may be too many
beliefs. Either each step may start anywhere (``Stages``), or the subject is told all
pictures of the trial, and takes the shortest way to each event (``Walks``). The lowest
bound found counts.

Steps are not counted unless a rule reads their number. The subject may let the time run
out whenever it wants, which can only help, too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import cast

from cheesebench.interfaces import STAY
from cheesebench.paradigms.arena.audit import beliefs, relevance, walks
from cheesebench.paradigms.arena.audit.adversary import Adversary, begun
from cheesebench.paradigms.arena.audit.hypotheses import GRADED
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.names import TIMEOUT
from cheesebench.protocol.specification import ReferenceSpec, Specification

#: Limits for computing a bound, at an effort of 1. ``BELIEFS``: number of beliefs.
#: ``STEPS``: steps of hypotheses. ``BEGUN``: effort for the beginnings of trials, in
#: steps of nodes within beliefs.
BELIEFS, STEPS, BEGUN = 80_000, 5_000_000, 8_000_000
#: The beliefs of a bound store at most this many lives, at any effort. More would fill
#: the memory.
LIVES = 60_000
#: ``BEGINNINGS``: maximum number of different beginnings of judged trials, for a
#: subject that knows nothing of earlier trials. ``KNOWN``: the same for a subject that
#: knows what earlier trials told it. It also limits the number of beliefs between two
#: trials, and the number of different things that a trial may tell.
BEGINNINGS, KNOWN = 16, 16
#: Limits of ``Stages`` at an effort of 1. ``FREE_STEPS``: steps of hypotheses.
#: ``STAGES``: number of stages.
FREE_STEPS, STAGES = 250_000, 4_000
#: Below this total weight a belief is rescaled, so that its weights do not underflow.
TINY = 1e-200
#: A bound above this value says nothing.
CERTAIN = 0.999
#: The computation stops if the latest beginning suggests that those still to come need
#: more than this multiple of the remaining effort.
HOPEFUL = 2


@dataclass(slots=True)
class Option:
    """A belief and its value. Each choice (an action, or an action in the last step
    before the limit) has a gain, which is the share that succeeds at once. It also has
    the beliefs that may follow, each as its share and its number.
    """

    cloud: beliefs.Cloud
    gains: list[float] = field(default_factory=list)
    leads: list[list[tuple[float, int]]] = field(default_factory=list)
    value: float = 0.0
    """The largest share that can still succeed."""


def upper_bound(
    adversary: Adversary, effort: float = 1.0, at_most: float = 0.0
) -> float | None:
    """Return an upper bound on the success rate of subjects with the adversary's
    lesion, or None if no bound is proved.

    The search ends with the first bound that is at or below ``at_most``. If the verdict
    is about a measure, a bound exists only if the measure provably misses the verdict's
    requirement.
    """
    specification = adversary.world.program.specification
    about = specification.judged
    is_measured = about is not None and about.better is not None
    if is_measured and not _is_missed(adversary, effort):
        return None
    adversary = of_this_trial(adversary, effort)
    if _selects(specification.where):
        return None if is_measured else _share(adversary, effort, at_most)
    return _least(adversary, effort, at_most)


def _is_missed(adversary: Adversary, effort: float) -> bool:
    """Return whether it is proved that the mean of the measure misses the verdict's
    requirement.
    """
    world = adversary.world
    specification = world.program.specification
    about = specification.judged
    if about is None or about.range is None or about.better == "alike":
        return False
    measure = specification.measures[about.measure]
    worth, asked = _worth(measure, about, _dated(world))
    if _is_at_most(asked, {GRADED: worth}, adversary, effort):
        return True
    # Another proof is enough if a subject learns nothing more about a trial once it has
    # ended: whenever a trial ends, the subject's expected score is at most the required
    # one. Choosing which trials have a value then gains nothing, because a trial
    # without a value is graded as exactly the required score.
    neutral = {GRADED: _share_of(measure, about), relevance.NEUTRAL: ex.Number(asked)}
    return _stands_alone(world) and _is_at_most(asked, neutral, adversary, effort)


def _dated(world: beliefs.World) -> list[str]:
    """Return the names of variables that depend only on the date (block, session and
    trial).
    """
    specification = world.program.specification
    fixed = [
        name
        for name, one in specification.variables.items()
        if one.per == "block" and name not in world.relevance.written
    ]
    rotas = [
        one
        for one in specification.draws
        if one.order == "cycle" and one.keep_if is None
    ]
    return [*fixed, *(column for one in rotas for column in one.columns)]


def _is_at_most(
    most: float,
    measures: dict[str, ex.Expression],
    adversary: Adversary,
    effort: float,
) -> bool:
    """Return whether it is proved that the mean of the pseudo-measure ``GRADED`` is at
    most ``most``.
    """
    specification = adversary.world.program.specification
    where = None if _selects(specification.where) else specification.where
    worthy = replace(
        specification, success=measures[GRADED], measures=measures, where=where
    )
    judge = Adversary(ArenaParadigm(worthy), adversary.world.lesion, effort)
    bound = _least(judge, effort, most)
    return bound is not None and bound <= most + walks.EQUAL


def of_this_trial(adversary: Adversary, effort: float) -> Adversary:
    """Return an adversary that succeeds wherever this one does, but is judged by this
    trial alone. Return the same adversary if there is no ``success``, or no conjunct of
    it is left.

    A conjunct of ``success`` that reads earlier trials is dropped. ``recent(X, k) ==
    k`` is weakened to "this trial ended in X".
    """
    world = adversary.world
    specification = world.program.specification
    if specification.success is None:
        return adversary
    conjuncts = list(relevance.operands(specification.success, "and"))
    kept = [
        easier
        for one in conjuncts
        if (easier := _implied(one, world.relevance.kept)) is not None
    ]
    if kept == conjuncts or not kept:
        return adversary
    success = reduce(lambda left, right: ex.Binary("and", left, right), kept)
    return Adversary(
        ArenaParadigm(replace(specification, success=success)), world.lesion, effort
    )


def _implied(condition: ex.Expression, kept: Collection[str]) -> ex.Expression | None:
    """Return the part of a condition that concerns this trial alone, or None if there
    is no such part.
    """
    match condition:
        case ex.Binary(
            "==" | ">=", ex.Recent(str(outcome), trials), ex.Number(number)
        ) if number >= trials:
            return ex.Binary("==", ex.BuiltIn("last"), ex.Constant(outcome))
    earlier = any(
        isinstance(one, ex.Recent)
        or (isinstance(one, ex.Variable) and one.name in kept)
        for one in ex.walk(condition)
    )
    return None if earlier else condition


def _share(adversary: Adversary, effort: float, at_most: float) -> float | None:
    """Return ``at_most`` if no subject succeeds in a larger share of the trials that
    ``where`` counts, or None if that is not proved.

    A subject's score is the share of successes in its own trials, so it could stop
    answering after a success. That does not help if no subject ever learns whether it
    has succeeded. So the share is bounded if at no end of a counted trial a subject can
    expect more than ``at_most``. If everything is forgotten between trials, it is
    enough that no trial has a positive mean score, where a success scores 1 -
    ``at_most``, any other counted trial -``at_most``, and a trial that is not counted
    0. (The code adds ``at_most`` to these scores.)
    """
    world = adversary.world
    specification = world.program.specification
    assert specification.success is not None
    assert specification.where is not None
    if not _stands_alone(world):
        return None
    succeeds, counts = _truth(specification.success), _truth(specification.where)
    if world.lesion.forgets_trials:
        fails = ex.Binary("-", ex.Number(1), counts)
        scores = (
            ex.Binary("*", succeeds, counts),
            ex.Binary("*", ex.Number(at_most), fails),
        )
        measures: dict[str, ex.Expression] = {GRADED: ex.Binary("+", *scores)}
    else:
        share = ex.Binary("/", succeeds, counts)
        measures = {GRADED: share, relevance.NEUTRAL: ex.Number(at_most)}
    return at_most if _is_at_most(at_most, measures, adversary, effort) else None


def _truth(condition: ex.Expression) -> ex.Expression:
    """Return an expression that is 1 where a condition holds, and 0 elsewhere."""
    return ex.Binary("!=", condition, ex.Number(0))


def _worth(
    measure: ex.Expression, about: ReferenceSpec, fixed: Sequence[str]
) -> tuple[ex.Expression, float]:
    """Return an expression for the score of a measure, from 0 to 1, and the score that
    the verdict requires. Names in ``fixed`` depend on the date only.

    Where a trial has no value, neither has the expression, and ``Hypothesis.worth``
    gives it the best score, because a subject may choose to have no value. But in a
    measure ``part / condition`` whose condition depends on the date only, a trial
    without a value scores 0.
    """
    value, counts = measure, cast(ex.Expression, ex.Number(1))
    match measure:
        case ex.Binary("/", part, ex.Binary(sign) as has) if (
            sign not in ex.ARITHMETIC_SIGNS and not _selects(has, fixed)
        ):
            value, counts = part, has
    asked = ex.constant(_share_of(ex.Number(about.bar), about)) or 0.0
    return ex.Binary("*", _share_of(value, about), counts), asked


def _share_of(value: ex.Expression, about: ReferenceSpec) -> ex.Expression:
    """Return an expression for how far a value is on the way from the worst (0) to the
    best (1).
    """
    low, high = about.range or (0.0, 0.0)
    worst, best = (high, low) if about.better == "lower" else (low, high)
    return ex.Binary(
        "/", ex.Binary("-", value, ex.Number(worst)), ex.Number(best - worst)
    )


def _least(adversary: Adversary, effort: float, at_most: float) -> float | None:
    world = adversary.world
    specification = world.program.specification
    if _hangs_on_the_past(world) or _selects(specification.where):
        return None
    hasty = walks.without_deadlines(specification)
    unhurried = (
        adversary
        if hasty is specification
        else Adversary(ArenaParadigm(hasty), world.lesion, effort)
    )
    # For the bound `from_anywhere`, one start heading stands for all of them: the
    # heading is drawn independently of everything else, and the bound reveals it
    # anyway.
    turned = Adversary(ArenaParadigm(hasty), world.lesion, effort, faces_alike=True)
    # Trials without deadlines can only help the subject, so a bound on them holds.
    # Trials with deadlines follow, in case that bound is too high or takes too much
    # effort.
    ways: list[tuple[Bound, Adversary]] = [
        (from_anywhere, turned),
        (by_walks, adversary),
    ]
    if _forgets(world):
        ways += [(_of_one_trial, unhurried), (_of_one_trial, adversary)]
    else:
        ways += [(_told_all, unhurried), (_informed, adversary), (_told_all, adversary)]
    bounds = []
    for bound, one in dict.fromkeys(ways):
        with suppress(beliefs.TooManyError, RecursionError):
            value = bound(one, effort)
            if one.world.is_partial:
                continue
            bounds.append(value)
            if value <= at_most + walks.EQUAL:
                break
    return min(bounds, default=None)


#: Function that returns a bound. It raises ``TooManyError`` if no bound holds, or the
#: effort is too small.
Bound = Callable[[Adversary, float], float]


def _forgets(world: beliefs.World) -> bool:
    """Return whether other trials reveal nothing, so that a subject that forgets at a
    state loses only what it learnt in this trial.
    """
    return world.lesion.forgets_trials or _stands_alone(world)


def _of_one_trial(adversary: Adversary, effort: float) -> float:
    return Beliefs(adversary.world, effort).best(_beginnings(adversary, effort))


def _told_all(adversary: Adversary, effort: float) -> float:
    space = Beliefs(adversary.world, effort)
    return max(space.mean(ways) for ways in _told(adversary, effort))


def _informed(adversary: Adversary, effort: float) -> float:
    """Return the bound for a subject that knows everything that its earlier trials told
    it, however it acted in them. Raise ``TooManyError`` if there is too much to know,
    or the bound says nothing.
    """
    world = adversary.world
    specification = world.program.specification
    judged, over = specification.judged_blocks, specification.blocks_after_judged
    known: dict[Hashable, tuple[float, list[dict[int, float]]]] = {}
    most, rests = 0.0, [world.prior()]
    if world.relevance.kept:
        raise beliefs.TooManyError
    for _ in range(specification.planned_trials):
        further: dict[Hashable, beliefs.Rest] = {}
        for rest in rests:
            parts = begun(world.begin(rest))
            if (
                not parts
                or (block := world.plan_of(next(iter(parts.values()))).block) in over
            ):
                return most
            key = _signature(parts)
            if key not in known:
                space = Beliefs(world, effort, tells=True)
                value = space.best([parts])
                if world.lesion.forgets_at and block in judged:
                    value = Beliefs(world, effort).best([_entered(adversary, parts)])
                known[key] = value, list(space.told.values())
            value, told = known[key]
            most = max(most, value) if block in judged else most
            before = _lasting(map(beliefs.cloud_of, parts.values()))
            for after in told:
                whole = [
                    grain
                    for part in parts.values()
                    for grain in part.items()
                    if grain[0][0].lasting in after
                ]
                later = world.rest(
                    {
                        one: w * after[one[0].lasting] / before[one[0].lasting]
                        for one, w in whole
                    }
                )
                further[
                    frozenset((one, round(weight, 9)) for one, weight in later.items())
                ] = later
            if max(len(known), len(further)) > KNOWN or most > CERTAIN:
                raise beliefs.TooManyError
        rests = list(further.values())
    return most


def from_anywhere(adversary: Adversary, effort: float) -> float:
    """Return the bound of ``Stages``, which takes seconds. Raise ``TooManyError`` if
    judged trials read the subject's pose, path or number of steps, a trial depends on
    the past (see ``_hangs_on_the_past``), or the effort is too small.
    """
    if adversary.world.relevance.way:
        raise beliefs.TooManyError
    return _relaxed(adversary, Stages(adversary.world, effort).value, effort)


def by_walks(adversary: Adversary, effort: float) -> float:
    """Return the bound of ``Walks``. Raise ``TooManyError`` if it does not apply, or
    the effort is too small.
    """
    return _relaxed(adversary, walks.Walks(adversary.world, effort).value, effort)


def _relaxed(
    adversary: Adversary, value: Callable[[beliefs.Parts], float], effort: float
) -> float:
    if _hangs_on_the_past(adversary.world):
        raise beliefs.TooManyError
    if _forgets(adversary.world):
        return max(map(value, _beginnings(adversary, effort)))
    means, values = [], dict[int, float]()
    for ways in _told(adversary, effort):
        for _, parts in ways:
            if id(parts) not in values:
                values[id(parts)] = value(parts)
        whole = sum(weight for weight, _ in ways)
        means.append(sum(weight * values[id(parts)] for weight, parts in ways) / whole)
    return max(means)


def _hangs_on_the_past(world: beliefs.World) -> bool:
    """Return whether a trial depends on actions in earlier trials, or on something that
    beliefs do not contain.
    """
    lesion, known = world.lesion, world.relevance
    # If few permutations satisfy `max_run`, the shuffle builds its order in another
    # way, so the permutations are not equally likely.
    dealt = any(
        one.order == "shuffle" and one.max_run
        for one in world.program.specification.draws
    )
    outlasts = bool(lesion.forgets_at) and known.outlasts(lesion.forgets_at)
    return (
        outlasts
        or dealt
        or lesion.memoryless
        or known.behaviour
        or known.trace
        or known.subject
    )


def _selects(where: ex.Expression | None, fixed: Sequence[str] = ()) -> bool:
    """Return whether the subject may influence which trials are judged. If so, a bound
    on all trials says nothing about the judged ones.
    """
    # The subject's number is not a date, because it may select a row of a draw.
    dates = [*map(ex.BuiltIn, ("block", "session", "trial")), *map(ex.Variable, fixed)]
    nodes = () if where is None else ex.walk(where)
    return not all(
        isinstance(one, ex.Binary | ex.Constant | ex.Number) or one in dates
        for one in nodes
    )


def is_chosen(specification: Specification) -> bool:
    """Return whether no bound exists, because a subject may choose which trials count,
    or have a value of the judged measure, and one trial may tell it about the next.
    """
    about = specification.judged
    chosen = _selects(specification.where)
    if about is not None and about.better is not None:
        chosen = any(map(_selects, lacking(specification)))
    return chosen and not _are_anew(specification)


def lacking(specification: Specification) -> list[ex.Expression]:
    """Return what the judged measure is divided by, and may be 0, so that a trial has
    no value.
    """
    about = specification.judged
    if about is None or about.better is None:
        return []
    return [
        one.right
        for one in ex.walk(specification.measures[about.measure])
        if isinstance(one, ex.Binary) and one.operator == "/" and _may_be_0(one.right)
    ]


def _may_be_0(divisor: ex.Expression) -> bool:
    match divisor:
        case ex.Number(value):
            return value == 0
        case ex.Compute("max", arguments):
            return not any(
                isinstance(one, ex.Number) and one.value > 0 for one in arguments
            )
    return True


def _stands_alone(world: beliefs.World) -> bool:
    return _are_anew(world.program.specification)


def _are_anew(specification: Specification) -> bool:
    """Return whether every draw is made for its trial alone."""
    draws = specification.draws
    alone = all(
        one.per == "trial" and one.order in ("random", "cycle") and not one.max_run
        for one in draws
    )
    return alone and not any(draw.keep_if for draw in draws)


def _priors(adversary: Adversary) -> Iterator[beliefs.Rest]:
    """Yield the belief before each judged trial, for a subject that knows nothing of
    earlier trials.
    """
    world = adversary.world
    specification, rest = world.program.specification, world.prior()
    judged, over = specification.judged_blocks, specification.blocks_after_judged
    for _ in range(specification.planned_trials):
        parts = world.begin(rest)
        if None in parts:
            return
        block = world.plan_of(next(iter(parts.values()))).block
        if block in over:
            return
        if block in judged:
            yield rest
        rest = adversary.carried(parts)


def _entered(adversary: Adversary, parts: beliefs.Parts) -> beliefs.Parts:
    """Return the beliefs on first entering one of the states at which everything is
    forgotten, in trials with these beginnings. If there is no such state, return the
    beginnings.
    """
    states = adversary.world.lesion.forgets_at
    if not states:
        return parts
    entered: beliefs.Parts = defaultdict(dict)
    for state in sorted(states):
        for percept, part in adversary.entries(parts, 0, states, state).items():
            for grain, weight in part.items():
                together = entered[percept]
                together[grain] = together.get(grain, 0.0) + weight
    return dict(entered)


def beginnings(adversary: Adversary) -> Iterator[beliefs.Parts]:
    """Yield the different beginnings of the judged trials, for a subject that knows
    nothing of earlier trials.
    """
    seen = set[Hashable]()
    for rest in _priors(adversary):
        parts = begun(adversary.world.begin(rest))
        if (key := _signature(parts)) not in seen:
            seen.add(key)
            yield parts


def _beginnings(adversary: Adversary, effort: float) -> list[beliefs.Parts]:
    known: dict[Hashable, beliefs.Parts] = {}
    most = adversary.world.spent + BEGUN * effort
    for root in beginnings(adversary):
        parts = _entered(adversary, root)
        known.setdefault(_signature(parts), parts)
        if len(known) > BEGINNINGS or adversary.world.spent > most:
            raise beliefs.TooManyError
    return list(known.values())


def _told(
    adversary: Adversary, effort: float
) -> Iterator[list[tuple[float, beliefs.Parts]]]:
    """Yield the possible beginnings of each judged trial, with weights, for a subject
    that knows everything that earlier trials could tell it. Trials that begin alike are
    yielded once.
    """
    seen: set[Hashable] = set()
    keys: dict[int, Hashable] = {}
    known: dict[Hashable, beliefs.Parts] = {}
    most = adversary.world.spent + BEGUN * effort
    for rest in _priors(adversary):
        ways: dict[Hashable, float] = defaultdict(float)
        for number, weight in rest.items():
            if number not in keys:
                if adversary.world.spent > most:
                    raise beliefs.TooManyError
                parts = begun(adversary.world.begin({number: 1.0}))
                key = keys[number] = _signature(parts)
                if key not in known:
                    known[key] = _entered(adversary, parts)
            ways[keys[number]] += weight
        together = frozenset((key, round(weight, 9)) for key, weight in ways.items())
        if together not in seen:
            seen.add(together)
            yield [(weight, known[key]) for key, weight in ways.items()]


def _signature(parts: beliefs.Parts) -> Hashable:
    whole = sum(sum(part.values()) for part in parts.values())
    return frozenset(
        (
            percept,
            beliefs.signature(beliefs.cloud_of(part)),
            round(sum(part.values()) / whole, 9),
        )
        for percept, part in parts.items()
    )


class Beliefs:
    """The beliefs that can be reached in a trial, and their values. Computing values
    raises ``TooManyError`` if the effort is too small.
    """

    def __init__(
        self, world: beliefs.World, effort: float, *, tells: bool = False
    ) -> None:
        self._nodes, self._tells = world.nodes, tells
        self._left, self._room, self._most_lives = (
            STEPS * effort,
            BELIEFS * effort,
            world.nodes.lives + LIVES,
        )
        self._options: list[Option] = []
        self._numbers: dict[Hashable, int] = {}
        self._pending: deque[int] = deque()
        #: What a subject may know about lasting values at the end of a trial: the
        #: share of each number in ``Node.lasting``.
        self.told: dict[Hashable, dict[int, float]] = {}
        success = world.program.specification.success
        self._ends_at_the_limit = (
            tells or relevance.holds_of(success, TIMEOUT) is not False
        )

    def best(self, beginnings: Sequence[beliefs.Parts]) -> float:
        """Return the value of the best beginning."""
        return max(self._values([(1.0, parts) for parts in beginnings]))

    def mean(self, ways: list[tuple[float, beliefs.Parts]]) -> float:
        """Return the weighted mean of the values of these beginnings."""
        whole = sum(weight for weight, _ in ways)
        return (
            sum(
                weight * value
                for (weight, _), value in zip(ways, self._values(ways), strict=True)
            )
            / whole
        )

    def _values(self, ways: list[tuple[float, beliefs.Parts]]) -> list[float]:
        roots = []
        for number, (_, parts) in enumerate(ways):
            before, room = self._left, len(self._options)
            clouds = _clouds(parts, by_limit=self._ends_at_the_limit)
            roots.append(
                [(sum(cloud.values()), self._number(cloud)) for cloud in clouds]
            )
            self._expand()
            rest = len(ways) - number - 1
            if (
                rest * (before - self._left) > HOPEFUL * self._left
                and len(self._options) - room
            ):
                raise beliefs.TooManyError
        self._iterate()
        values = []
        for root in roots:
            entered = sum(weight for weight, _ in root)
            value = sum(weight * self._options[place].value for weight, place in root)
            values.append(min(1.0, value + max(0.0, 1.0 - entered)))
        return values

    def _number(self, cloud: beliefs.Cloud) -> int:
        key = beliefs.signature(cloud)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._options)
            self._options.append(
                Option(
                    cloud if sum(cloud.values()) > TINY else beliefs.normalised(cloud)
                )
            )
            self._pending.append(number)
        return number

    def _expand(self) -> None:
        while self._pending:
            if (
                len(self._options) > self._room
                or self._left < 0
                or self._nodes.lives > self._most_lives
            ):
                raise beliefs.TooManyError
            option = self._options[self._pending.popleft()]
            cloud, whole = option.cloud, sum(option.cloud.values())
            waiting = next(iter(cloud)).waiting
            for action in [STAY] if waiting else range(4):
                gain, leads = 0.0, list[tuple[float, int]]()
                self._left -= len(cloud)
                for percept, part in self._nodes.step(cloud, action, 0).items():
                    share = sum(part.values()) / whole
                    if not share:
                        continue  # The weight has underflowed to 0.
                    if percept >= 0:
                        leads.append((share, self._number(part)))
                        continue
                    self._tell(part)
                    gain += self._nodes.succeeded(part) / whole
                option.gains.append(gain)
                option.leads.append(leads)
                if self._ends_at_the_limit:
                    ends = list(
                        self._nodes.step(cloud, action, _last_step(cloud)).values()
                    )
                    for part in ends:
                        self._tell(part)
                    option.gains.append(sum(map(self._nodes.succeeded, ends)) / whole)
                    option.leads.append([])

    def _tell(self, ended: beliefs.Cloud) -> None:
        if self._tells:
            lasting = _lasting([ended])
            self.told.setdefault(
                frozenset((one, round(share, 9)) for one, share in lasting.items()),
                lasting,
            )
            if len(self.told) > KNOWN:
                raise beliefs.TooManyError

    def _iterate(self) -> None:
        """Set the value of every belief to the best chance of success. This is value
        iteration, from the last belief to the first.
        """
        options, change = self._options, 1.0
        while change > walks.EQUAL:
            change = 0.0
            for option in reversed(options):
                best = option.value
                for gain, leads in zip(option.gains, option.leads, strict=True):
                    for share, place in leads:
                        gain += share * options[place].value
                    if gain > best:
                        best = gain
                if best > option.value:
                    change = max(change, best - option.value)
                    option.value = best


def _last_step(cloud: beliefs.Cloud) -> int:
    return max(node.limit for node in cloud)


def _clouds(parts: beliefs.Parts, *, by_limit: bool) -> list[beliefs.Cloud]:
    """Return the beliefs at the beginning of a trial. With ``by_limit``, each is split
    by the step limit, as if the subject knew when its time is up.
    """
    clouds = [beliefs.cloud_of(part) for part in parts.values()]
    if not by_limit:
        return clouds
    limits = [dict.fromkeys(node.limit for node in cloud) for cloud in clouds]
    return [
        {node: weight for node, weight in cloud.items() if node.limit == limit}
        for cloud, own in zip(clouds, limits, strict=True)
        for limit in own
    ]


@dataclass(slots=True)
class Stage:
    """All hypotheses with one key, each with its largest weight in any belief."""

    cloud: beliefs.Cloud
    gains: list[float] = field(default_factory=list)
    leads: list[list[tuple[float, float, int]]] = field(default_factory=list)
    """For each choice of a step, the stages that may follow. Each is the weight that
    continues there, the largest chance of a hypothesis to continue there, and the
    stage's number.
    """
    value: float = 0.0
    """Upper bound on the weight that can still succeed."""
    is_pending: bool = False
    """Whether the stage is in the queue of stages to expand."""


class Stages:
    """Upper bounds from an easier problem: each step may start anywhere, and the
    subject knows its position, its clocks, the closed doors and everything else in
    ``Hypothesis.shared``, but not the draws.

    The subject must be told its position, because all hypotheses of a belief take a
    step from the same pose.

    Hypotheses that percepts have excluded may come back: beliefs whose hypotheses share
    the same key are merged into one stage, which holds each hypothesis at its largest
    weight. No belief in a stage has a larger value (in weights) than the stage, because
    no step gains more from fewer hypotheses.
    """

    def __init__(self, world: beliefs.World, effort: float) -> None:
        self._world, self._nodes = world, world.nodes
        self._left, self._room = FREE_STEPS * effort, STAGES * effort
        self._values: dict[Hashable, float] = {}
        self._steps: dict[Hashable, list[int]] = {}
        self._somewhere: dict[Hashable, beliefs.Node] = {}
        self._leads: dict[tuple[int, int], list[tuple[float, int, beliefs.Node]]] = {}
        self._waits_for_success = (
            relevance.holds_of(world.program.specification.success, TIMEOUT)
            is not False
        )
        self._has_doors = bool(world.program.specification.arena.doors)

    def value(self, parts: beliefs.Parts) -> float:
        """Return the bound for one beginning of a trial. Raise TooManyError if the
        effort is too small.
        """
        clouds = _clouds(parts, by_limit=self._waits_for_success)
        whole = sum(sum(cloud.values()) for cloud in clouds)
        if not self._waits_for_success:
            return min(1.0, self._begun(clouds) + max(0.0, 1.0 - whole))
        by_limit: dict[int, list[beliefs.Cloud]] = defaultdict(list)
        for cloud in clouds:
            by_limit[_last_step(cloud)].append(cloud)
        return min(
            1.0, sum(map(self._begun, by_limit.values())) + max(0.0, 1.0 - whole)
        )

    def _begun(self, clouds: list[beliefs.Cloud]) -> float:
        """Return the largest weight that can succeed in trials with one step limit, or
        with any limits if a timeout is a failure.
        """
        total, most = 0.0, 0.0
        while clouds:
            waiting = [one for one in clouds if next(iter(one)).waiting]
            total += sum(
                self._decided(one) for one in clouds if not next(iter(one)).waiting
            )
            if self._waits_for_success:  # The trial may end by timeout now.
                most = max(
                    most, total + sum(self._at_the_limit(one, STAY) for one in waiting)
                )
            further: dict[Hashable, beliefs.Cloud] = {}
            total += sum(self._waited(one, further) for one in waiting)
            clouds = list(further.values())
        return max(most, total)

    def _waited(
        self, cloud: beliefs.Cloud, further: dict[Hashable, beliefs.Cloud]
    ) -> float:
        """Take a step in which the subject only waits, and return the weight that
        succeeds. Add the beliefs after the step to ``further``. Percepts still split
        the belief here.
        """
        self._left -= len(cloud)
        if self._left < 0:
            raise beliefs.TooManyError
        parts, gain = self._nodes.step(cloud, STAY, 0), 0.0
        for percept, part in parts.items():
            if percept < 0:
                gain += self._nodes.succeeded(part)
            # Drop a belief that does not change, because it would wait forever.
            elif part != cloud and any(part.values()):
                there = further.setdefault(beliefs.signature(part), {})
                for node, weight in part.items():
                    there[node] = there.get(node, 0.0) + weight
        return gain

    def _decided(self, cloud: beliefs.Cloud) -> float:
        groups: dict[tuple[int, Hashable, Hashable], beliefs.Cloud] = {}
        for node, weight in cloud.items():
            # The pictures that may help in this trial are revealed at once. That can
            # only help the subject.
            _, pictures = self._world.relevance.told(node.origin)
            here, key = self._apart(node)
            group = groups.setdefault((node.pose, pictures, key), {})
            group[here] = group.get(here, 0.0) + weight
        return sum(
            self._value_of(key, pictures if self._has_doors else (), group)
            for (_, pictures, key), group in groups.items()
        )

    def _value_of(self, key: Hashable, doors: Hashable, cloud: beliefs.Cloud) -> float:
        """Return the largest weight that can succeed. Clouds with the same key, doors
        and shares of draws have the same share of success, so it is computed once.
        """
        whole, told = sum(cloud.values()), self._world.relevance.told
        alike = (
            key,
            doors,
            walks.shares(
                (told(node.origin)[0], weight) for node, weight in cloud.items()
            ),
        )
        if alike not in self._values:
            self._values[alike] = self._solved(
                key, {node: weight / whole for node, weight in cloud.items()}
            )
        return self._values[alike] * whole

    def _apart(self, node: beliefs.Node) -> tuple[beliefs.Node, Hashable]:
        """Return the node without its position, and a key that is equal for hypotheses
        between which the subject is told no difference.
        """
        clocks = node.origin.clocks(node.ahead)
        here = self._somewhere.setdefault((node.circumstances, clocks), node.bare)
        return here, (node.waiting, clocks, node.origin.shared, id(node.origin.tables))

    def _solved(self, key: Hashable, cloud: beliefs.Cloud) -> float:
        stages, numbers, pending = [Stage(cloud)], {key: 0}, deque([0])
        while pending:
            if self._left < 0 or len(stages) > self._room:
                raise beliefs.TooManyError
            stage = stages[pending.popleft()]
            stage.gains, stage.leads, stage.is_pending = [], [], False
            for entry in self._entries(stage.cloud):
                gain, groups = self._step(stage.cloud, entry)
                stage.gains.append(gain)
                stage.leads.append([])
                for (_, shared), (most, group) in groups.items():
                    number = numbers.setdefault(shared, len(stages))
                    stages += [Stage({})] if number == len(stages) else []
                    stage.leads[-1].append((sum(group.values()), most, number))
                    there = stages[number]
                    for node, weight in group.items():
                        # No belief has a larger weight than the initial one.
                        share = min(1.0, weight / most)
                        if share > there.cloud.get(node, 0.0) + walks.EQUAL:
                            there.cloud[node] = share
                            pending += [] if there.is_pending else [number]
                            there.is_pending = True
                if self._waits_for_success:
                    stage.gains.append(self._at_the_limit(stage.cloud, entry))
                    stage.leads.append([])
        change = 1.0
        while change > walks.EQUAL:
            change = 0.0
            for stage in reversed(stages):
                values = [
                    gain
                    + sum(
                        min(weight, most * stages[number].value)
                        for weight, most, number in leads
                    )
                    for gain, leads in zip(stage.gains, stage.leads, strict=True)
                ]
                best = min(max(values, default=0.0), sum(stage.cloud.values()))
                change, stage.value = (
                    max(change, best - stage.value),
                    max(best, stage.value),
                )
        return stages[0].value

    def _at_the_limit(self, cloud: beliefs.Cloud, entry: int) -> float:
        there = cloud if next(iter(cloud)).waiting else self._placed(cloud, entry)
        return sum(
            map(
                self._nodes.succeeded,
                self._nodes.step(there, entry & 3, _last_step(there)).values(),
            )
        )

    def _placed(self, cloud: beliefs.Cloud, entry: int) -> beliefs.Cloud:
        there = beliefs.Cloud()
        for node, weight in cloud.items():
            placed = self._nodes.moved(node, entry & ~3, node.ahead)
            there[placed] = there.get(placed, 0.0) + weight
        return there

    def _step(
        self, cloud: beliefs.Cloud, entry: int
    ) -> tuple[
        float, dict[tuple[Hashable, Hashable], tuple[float, dict[beliefs.Node, float]]]
    ]:
        """Return the weight that succeeds at once, and the rest in groups.

        The key of a group is its percept with its pose, and the key of ``_apart``. Its
        value is the largest chance that a hypothesis gets there, and the weights of its
        nodes.
        """
        ended = dict[int, beliefs.Cloud]()
        groups = dict[
            tuple[Hashable, Hashable], tuple[float, dict[beliefs.Node, float]]
        ]()
        self._left -= len(cloud)
        for node, weight in cloud.items():
            often: dict[tuple[Hashable, Hashable], float] = defaultdict(float)
            for chance, percept, there in self._led(node, entry):
                if percept < 0:
                    part = ended.setdefault(percept, {})
                    part[there] = part.get(there, 0.0) + weight * chance
                    continue
                here, key = self._apart(there)
                # Even a blind subject knows its position in this easier problem.
                told = ((percept, there.pose), key)
                often[told] += chance
                most, group = groups.get(told, (0.0, {}))
                group[here] = group.get(here, 0.0) + weight * chance
                groups[told] = max(most, often[told]), group
        return sum(map(self._nodes.succeeded, ended.values())), groups

    def _led(
        self, node: beliefs.Node, entry: int
    ) -> Sequence[tuple[float, int, beliefs.Node]]:
        found = self._leads.get((node.number, entry))
        if found is None:
            placed = self._nodes.moved(node, entry & ~3, node.ahead)
            found = self._leads[node.number, entry] = list(
                self._nodes.leads(placed, entry & 3, 0)
            )
        return found

    def _entries(self, cloud: beliefs.Cloud) -> list[int]:
        """Return pairs of pose and action, one for each different effect that an action
        can have in this cloud.
        """
        first, program = next(iter(cloud)), self._world.program
        tables = list(
            {id(one): one for one in (node.origin.tables for node in cloud)}.values()
        )
        key = first.state, first.waiting, *map(id, tables)
        if key not in self._steps:
            geometry, listen, found = (
                program.geometry,
                program.states[first.state].listen,
                dict[Hashable, int](),
            )
            timed = self._world.relevance.timed
            for entry in (
                range(STAY, geometry.poses * 4, 4)
                if first.waiting
                else range(geometry.poses * 4)
            ):
                cells = [geometry.cell(one.moves[entry]) for one in tables]
                where = [
                    members[cell]
                    for members in geometry.member_at.values()
                    for cell in cells
                ]
                found.setdefault(
                    (
                        *where,
                        *[one.events[entry] & listen for one in tables],
                        *[own[one.moves[entry]] for own in timed for one in tables],
                    ),
                    entry,
                )
            self._steps[key] = list(found.values())
        return self._steps[key]


def _lasting(clouds: Iterable[beliefs.Cloud]) -> dict[int, float]:
    weights: dict[int, float] = defaultdict(float)
    for cloud in clouds:
        for node, weight in cloud.items():
            weights[node.lasting] += weight
    whole = sum(weights.values())
    return {one: weight / whole for one, weight in weights.items()}
