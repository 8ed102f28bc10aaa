"""Upper bounds by dynamic programming over beliefs, where these are few.

The bound is over one trial, so it holds where no trial tells anything about the next: under amnesia between trials, or
where all that is drawn is drawn for the trial alone. Elsewhere the problem is relaxed: the subject is told all that
earlier trials could have told it, which can only help.

Time is not counted (unless a rule reads it), and a subject may let it run out whenever it likes: that can only help, too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from cheesebench.interfaces import STAY
from cheesebench.paradigms.arena.audit.lesions.beliefs import Parts, Rest, World, cloud_of, signature
from cheesebench.paradigms.arena.audit.lesions.living import Adversary, begun
from cheesebench.paradigms.arena.audit.lesions.nodes import Cloud
from cheesebench.protocol.declare import TIMEOUT
from cheesebench.protocol.expressions import Binary, BuiltIn, Constant, Expression

#: Beliefs, and steps of hypotheses, after which no bound is given (for an effort of 1).
BELIEFS, STEPS = 400_000, 6_000_000
#: Different ways in which a trial can begin, after which no bound is given.
BEGINNINGS = 6
#: Values that differ by less are equal.
EQUAL = 1e-10
#: How much more than the rest of the effort the first of several ways may let expect before the bound is given up.
HOPEFUL = 2


class TooMany(Exception):
    """There are too many beliefs for the effort."""


class Told(Exception):
    """A trial tells something about later ones."""


@dataclass(slots=True)
class Option:
    """A belief: of each action what is gained at once, and where the rest of the weight goes."""

    cloud: Cloud
    gains: list[float] = field(default_factory=list)
    leads: list[list[tuple[float, int]]] = field(default_factory=list)
    value: float = 0.0


def upper_bound(adversary: Adversary, effort: float = 1.0) -> float | None:
    """Return how often a subject with the adversary's lesion can succeed in a trial at most; None: not proven."""
    world = adversary.world
    if world.lesion.memoryless or len(world.lesion.forgets_at) > 1 or world.relevance.behaviour or world.relevance.trace:
        return None
    program = Beliefs(world, effort)
    try:
        if world.lesion.forgets_trials or _stands_alone(world):
            return program.best([(1.0, parts) for parts in _beginnings(adversary)])
        if _is_independent(world):
            try:
                return program.best([(1.0, parts) for parts in _beginnings(adversary)], tells=False)
            except Told:
                program = Beliefs(world, effort)
        return max(program.mean(ways) for ways in _told(adversary))
    except TooMany:
        return None


def _is_independent(world: World) -> bool:
    """Return whether what is drawn for a trial tells nothing about other trials."""
    draws = world.program.specification.draws
    alone = all(draw.per != "trial" or (draw.order in ("random", "cycle") and not draw.max_run) for draw in draws)
    return alone and not any(draw.keep_if for draw in draws)


def _stands_alone(world: World) -> bool:
    """Return whether no trial tells anything about the next."""
    return _is_independent(world) and all(draw.per == "trial" for draw in world.program.specification.draws)


def _priors(adversary: Adversary) -> Iterator[Rest]:
    """Yield what somebody who has been told nothing believes before each judged trial."""
    world = adversary.world
    judged, rest = world.program.specification.judged_blocks, world.prior()
    for _ in range(world.program.specification.planned_trials):
        parts = world.begin(rest)
        if None in parts:
            return
        node, _ = next(iter(next(iter(parts.values()))))
        if node.origin.block in judged:
            yield rest
        rest = adversary.carried(parts, [])


def _parts(adversary: Adversary, rest: Rest) -> Parts:
    """Return in what ways trials begin, or the state is entered at which all is forgotten."""
    parts = begun(adversary.world.begin(rest))
    for state in adversary.world.lesion.forgets_at:
        parts = adversary.entries(parts, 0, frozenset({state}), state)
    return parts


def _beginnings(adversary: Adversary) -> Iterable[Parts]:
    known: dict[Hashable, Parts] = {}
    for rest in _priors(adversary):
        parts = _parts(adversary, rest)
        known.setdefault(_signature(parts), parts)
        if len(known) > BEGINNINGS:
            raise TooMany
    return known.values()


def _told(adversary: Adversary) -> Iterator[list[tuple[float, Parts]]]:
    """Yield for each trial how it can begin for those who know all that earlier ones could have told, and how often."""
    seen: set[Hashable] = set()
    known: dict[int, tuple[Hashable, Parts]] = {}
    for rest in _priors(adversary):
        ways: dict[Hashable, tuple[float, Parts]] = {}
        for number, weight in rest.items():
            if number not in known:
                parts = _parts(adversary, {number: 1.0})
                known[number] = _signature(parts), parts
            key, parts = known[number]
            ways[key] = ways.get(key, (0.0, parts))[0] + weight, parts
        together = frozenset((key, round(weight, 9)) for key, (weight, _) in ways.items())
        if together not in seen:
            seen.add(together)
            yield list(ways.values())


def _signature(parts: Parts) -> Hashable:
    whole = sum(sum(part.values()) for part in parts.values())
    return frozenset(
        (percept, signature(cloud_of(part)), round(sum(part.values()) / whole, 9)) for percept, part in parts.items()
    )


class Beliefs:
    """The beliefs that can be reached, and their values."""

    def __init__(self, world: World, effort: float) -> None:
        self._world, self._nodes = world, world.nodes
        self._left, self._room = STEPS * effort, BELIEFS * effort
        self._options: list[Option] = []
        self._numbers: dict[Hashable, int] = {}
        self._pending: deque[int] = deque()
        self._lasting: dict[int, float] | None = None
        success = world.program.specification.success
        self._waits_for_success = success is None or _at_timeout(success) is not False

    def best(self, ways: list[tuple[float, Parts]], *, tells: bool = True) -> float:
        """Return the value of the best beginning; raise ``Told`` where a trial tells (and must not) what lasts."""
        if not tells:
            self._lasting = _lasting(cloud_of(belief) for _, parts in ways[:1] for belief in parts.values())
        return max(self._values(ways))

    def mean(self, ways: list[tuple[float, Parts]]) -> float:
        """Return the value of beginnings by their weights."""
        whole = sum(weight for weight, _ in ways)
        return sum(weight * value for (weight, _), value in zip(ways, self._values(ways), strict=True)) / whole

    def _values(self, ways: list[tuple[float, Parts]]) -> list[float]:
        roots = []
        for number, (_, parts) in enumerate(ways):
            before, room = self._left, len(self._options)
            roots.append([(sum(part.values()), self._number(cloud_of(part))) for part in parts.values()])
            self._expand()
            rest = len(ways) - number - 1
            if rest * (before - self._left) > HOPEFUL * self._left and len(self._options) - room:
                raise TooMany
        self._iterate()
        values = []
        for root in roots:
            entered = sum(weight for weight, _ in root)
            value = sum(weight * self._options[place].value for weight, place in root)
            values.append(min(1.0, value + max(0.0, 1.0 - entered)))
        return values

    def _number(self, cloud: Cloud) -> int:
        """Return the number of a belief."""
        if self._lasting is not None and not _equal(_lasting([cloud]), self._lasting):
            raise Told
        key = signature(cloud)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._options)
            self._options.append(Option(cloud))
            self._pending.append(number)
        return number

    def _expand(self) -> None:
        while self._pending:
            if len(self._options) > self._room or self._left < 0:
                raise TooMany
            # The first to reach a belief are those with the fewest steps, and so with the most that are left.
            option = self._options[self._pending.popleft()]
            cloud, whole = option.cloud, sum(option.cloud.values())
            waiting = next(iter(cloud)).waiting
            for action in [STAY] if waiting else range(4):
                gain, leads = 0.0, list[tuple[float, int]]()
                self._left -= len(cloud)
                for percept, part in self._nodes.step(cloud, action, 0).items():
                    if percept >= 0:
                        leads.append((sum(part.values()) / whole, self._number(part)))
                        continue
                    if self._lasting is not None and not _equal(_lasting([part]), self._lasting):
                        raise Told
                    gain += sum(weight for node, weight in part.items() if node.success) / whole
                option.gains.append(gain)
                option.leads.append(leads)
            if self._waits_for_success:
                option.gains.append(self._at_the_limit(cloud) / whole)
                option.leads.append([])

    def _at_the_limit(self, cloud: Cloud) -> float:
        """Return how often the trial is a success if its time is up now."""
        ends = self._nodes.step(cloud, STAY, max(node.limit for node in cloud))
        return sum(weight for part in ends.values() for node, weight in part.items() if node.success)

    def _iterate(self) -> None:
        """Set the value of every belief: the largest chance of success (value iteration, the last ones first)."""
        options, change = self._options, 1.0
        while change > EQUAL:
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


def _lasting(clouds: Iterable[Cloud]) -> dict[int, float]:
    """Return how likely everything is that lasts."""
    weights: dict[int, float] = defaultdict(float)
    for cloud in clouds:
        for node, weight in cloud.items():
            weights[node.lasting] += weight
    whole = sum(weights.values())
    return {one: weight / whole for one, weight in weights.items()}


def _equal(some: dict[int, float], others: dict[int, float]) -> bool:
    return some.keys() == others.keys() and all(abs(some[one] - others[one]) < EQUAL for one in some)


def _at_timeout(tree: Expression) -> bool | None:
    """Return whether this holds of a trial whose time is up; None: it depends."""
    match tree:
        case Binary("==", BuiltIn("last"), Constant(name)):
            return name == TIMEOUT
        case Binary("and", left, right):
            both = _at_timeout(left), _at_timeout(right)
            return False if False in both else (None if None in both else True)
        case Binary("or", left, right):
            both = _at_timeout(left), _at_timeout(right)
            return True if True in both else (None if None in both else False)
    return None
