"""Upper bounds by dynamic programming over beliefs, where these are few.

The bound is over one trial, so it holds where no trial tells anything about the next: under amnesia between trials, or
where all that is drawn is drawn for the trial alone, or where no trial tells what lasts. Elsewhere the problem is
relaxed: the subject is told all that earlier trials could have told it, which can only help. So do clocks that are
stopped after which a trial fails for sure.

Time is not counted (unless a rule reads it), and a subject may let it run out whenever it likes: that can only help,
too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from cheesebench.interfaces import STAY
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.beliefs import Parts, Rest, World, cloud_of, signature
from cheesebench.paradigms.arena.audit.lesions.living import Adversary, begun
from cheesebench.paradigms.arena.audit.lesions.nodes import Cloud
from cheesebench.protocol.declare import TIMEOUT
from cheesebench.protocol.expressions import Binary, BuiltIn, Constant, Expression
from cheesebench.protocol.specification import RuleSpec, Specification

#: Beliefs, and steps of hypotheses, after which no bound is given (for an effort of 1).
BELIEFS, STEPS = 60_000, 1_500_000
#: Lives that may be held for the beliefs of a bound, whatever the effort: a limit of memory.
LIVES = 60_000
#: Different ways in which a trial can begin, after which no bound is given.
BEGINNINGS = 6
#: Values that differ by less are equal.
EQUAL = 1e-10
#: A bound that says nothing.
CERTAIN = 0.999
#: How much more than the rest of the effort the first of several ways may let expect before the bound is given up.
HOPEFUL = 2


class TooManyError(Exception):
    """There are too many beliefs for the effort."""


class ToldError(Exception):
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
    if (
        world.lesion.memoryless
        or len(world.lesion.forgets_at) > 1
        or world.relevance.behaviour
        or world.relevance.trace
    ):
        return None
    specification = world.program.specification
    hasty = without_deadlines(specification)
    try:
        if hasty is not specification:
            # Whoever has all the time there is can do no worse. Where that is too much, the deadlines count.
            unhurried = Adversary(ArenaParadigm(hasty), world.lesion, effort)
            if (bound := _bound(unhurried, effort, tells=True)) < CERTAIN:
                return bound
        return _bound(adversary, effort, tells=False)
    except TooManyError:
        return None


def _bound(adversary: Adversary, effort: float, *, tells: bool) -> float:
    """Return the bound for one protocol; without ``tells``, trials of which none tells what lasts are looked for."""
    world = adversary.world
    if world.lesion.forgets_trials or _stands_alone(world):
        return Beliefs(world, effort).best(_beginnings(adversary))
    if not tells and _is_independent(world):
        try:
            return Beliefs(world, effort).best(_beginnings(adversary), tells=False)
        except ToldError:
            pass
    beliefs = Beliefs(world, effort)
    return max(beliefs.mean(ways) for ways in _told(adversary))


def without_deadlines(specification: Specification) -> Specification:
    """Return the protocol without the clocks after which a trial fails for sure: its subjects have all the time."""
    states = {}
    for name, state in specification.states.items():
        rules = tuple(rule for rule in state.rules if rule.after is None or not _fails(rule, specification))
        states[name] = state if len(rules) == len(state.rules) else replace(state, rules=rules)
    if all(states[name] is state for name, state in specification.states.items()):
        return specification
    return replace(specification, states=states)


def _fails(rule: RuleSpec, specification: Specification) -> bool:
    """Return whether no trial in which this rule has fired is a success."""
    ends = {one.end for one in specification.watch if one.end} | {one.end for one in specification.finish if one.end}
    ends |= {TIMEOUT}
    seen = {one.go for one in specification.finish if one.go}
    pending = [rule, *(one for name in seen for one in specification.states[name].rules)]
    while pending:
        one = pending.pop()
        ends |= {one.end} if one.end else set()
        if one.go and one.go not in seen:
            seen.add(one.go)
            pending += specification.states[one.go].rules
    pending_watch = [one.go for one in specification.watch if one.go]
    return not pending_watch and all(_holds_of(specification.success, name) is False for name in ends)


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
    specification, rest = world.program.specification, world.prior()
    judged, over = specification.judged_blocks, specification.blocks_after_judged
    for _ in range(specification.planned_trials):
        parts = world.begin(rest)
        if None in parts:
            return
        _, history = next(iter(next(iter(parts.values()))))
        block = world.histories[history].plan.block
        if block in over:
            return
        if block in judged:
            yield rest
        rest = adversary.carried(parts)


def _parts(adversary: Adversary, rest: Rest) -> Parts:
    """Return in what ways trials begin, or the state is entered at which all is forgotten."""
    parts = begun(adversary.world.begin(rest))
    for state in adversary.world.lesion.forgets_at:
        parts = adversary.entries(parts, 0, frozenset({state}), state)
    return parts


def _beginnings(adversary: Adversary) -> list[Parts]:
    known: dict[Hashable, Parts] = {}
    for rest in _priors(adversary):
        parts = _parts(adversary, rest)
        known.setdefault(_signature(parts), parts)
        if len(known) > BEGINNINGS:
            raise TooManyError
    return list(known.values())


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
        self._nodes = world.nodes
        self._left, self._room, self._most_lives = STEPS * effort, BELIEFS * effort, world.nodes.lives + LIVES
        self._options: list[Option] = []
        self._numbers: dict[Hashable, int] = {}
        self._pending: deque[int] = deque()
        self._lasting: dict[int, float] | None = None
        success = world.program.specification.success
        self._waits_for_success = _holds_of(success, TIMEOUT) is not False

    def best(self, beginnings: Sequence[Parts], *, tells: bool = True) -> float:
        """Return the value of the best beginning; raise ``ToldError`` where a trial tells (and must not) what lasts."""
        if not tells:
            self._lasting = _lasting(cloud_of(belief) for belief in beginnings[0].values())
        return max(self._values([(1.0, parts) for parts in beginnings]))

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
                raise TooManyError
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
            raise ToldError
        key = signature(cloud)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._options)
            self._options.append(Option(cloud))
            self._pending.append(number)
        return number

    def _expand(self) -> None:
        while self._pending:
            if len(self._options) > self._room or self._left < 0 or self._nodes.lives > self._most_lives:
                raise TooManyError
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
                        raise ToldError
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


def _holds_of(tree: Expression | None, outcome: str) -> bool | None:
    """Return whether this holds of a trial that has ended so; None: it depends."""
    match tree:
        case Binary("==", BuiltIn("last"), Constant(name)):
            return name == outcome
        case Binary("and", left, right):
            both = _holds_of(left, outcome), _holds_of(right, outcome)
            return False if False in both else (None if None in both else True)
        case Binary("or", left, right):
            both = _holds_of(left, outcome), _holds_of(right, outcome)
            return True if True in both else (None if None in both else False)
    return None
