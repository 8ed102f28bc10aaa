"""Estimates the highest pass rate under each lesion. Adversaries show in real lives
what can be reached, and proofs bound it.
"""

from __future__ import annotations

import gc
import itertools
import math
import random
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from cheesebench.interfaces import (
    FORWARD,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    STAY,
    AuditFinding,
    AuditSettings,
    AuditVerdict,
)
from cheesebench.lesions import INTACT, LANDMARKS, TRIAL, Lesion
from cheesebench.paradigms.arena import scenes
from cheesebench.paradigms.arena.audit import (
    aims,
    beliefs,
    exact,
    forgetting,
    kept,
    policies,
    relevance,
    runs,
)
from cheesebench.paradigms.arena.audit.adversary import (
    Adversary,
    Errand,
    Lived,
    lived_trial,
)
from cheesebench.paradigms.arena.audit.reflexes import Reflexes
from cheesebench.paradigms.arena.audit.search import EQUAL
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.protocol import Specification, expressions
from cheesebench.protocol.names import TIMEOUT
from cheesebench.protocol.specification import Place, ReferenceSpec

#: A ceiling is measured on ``LIVES`` lives, or on a balanced group of up to twice as
#: many, with at most ``TRIALS`` trials together. At least two lives are led. There are
#: more lives if a requirement stays undecided (``MORE_LIVES``).
LIVES, TRIALS = 8, 480
#: Limit of the effort, in steps of hypotheses, at an effort of 1. Once it is spent and
#: two lives have been led, a search ends, unless a limit is still undecided
#: (``MORE_STEPS``).
STEPS = 30_000_000
#: The search stops after ``FEWEST`` lives if a limit is proved. Without a requirement,
#: it also stops then if the interval is no wider than ``NARROW``.
FEWEST, NARROW = 3, 0.06
#: ``ENOUGH``: share of the steps after which a search without a requirement stops.
#: ``SHOWN``: share of the effort for lives that only illustrate a proof.
ENOUGH, SHOWN = 0.3, 0.05
#: While a lesion with a requirement is undecided, the search continues up to
#: ``MORE_LIVES`` times the usual lives and ``MORE_STEPS`` times the usual steps.
MORE_LIVES, MORE_STEPS = 200, 2
#: Added to the seed of an audit, so that these lives differ from the audit's other
#: lives.
APART = 31_000_000
#: A naive subject that knows the protocol is equivalent to one that feels no reward.
_SAME = {frozenset({"naive"}): frozenset({"anhedonia"})}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The result of an adversary with a lesion. ``lives`` holds the trials of each
    life.
    """

    lesion: Lesion
    lives: tuple[tuple[Lived, ...], ...]
    proven: float | None = None
    """A proved upper bound, or None if nothing is proved."""
    asked: ReferenceSpec | None = None
    """The reference, if the verdict concerns a measure, or None if it concerns
    successes.
    """
    how: str = ""
    """Words on the errand in the first trials of each life, or an empty string if there
    was none.
    """
    followed: float = 1.0
    """The smallest share of subjects that were followed up to the point where they
    forget. It is below 1 if following all would have taken too much effort.
    """
    stopped: str = ""
    """Why the search was given up, or an empty string if it was not."""
    lacking_more: str = ""
    """Words on a subject that lacks more and led these lives, or an empty string if the
    lives are those of the search under this lesion.
    """

    @property
    def found(self) -> runs.Rate:
        """The pass rate over judged trials."""
        return runs.rate(
            [_counted([one for one in life if one.judged]) for life in self.lives]
        )

    @property
    def surely(self) -> float:
        """The lower end of a 99 % interval of the pass rate. The interval is strict,
        because many lesions of many protocols are judged.
        """
        return runs.rate(
            [_counted([one for one in life if one.judged]) for life in self.lives],
            runs.Z99,
        ).low

    def verdict(self, at_most: float) -> AuditVerdict:
        """Return the verdict on the limit ``at_most``. It is FAIL if the lives exceed a
        proved bound, or a limit that is not proved, by more than chance, or if they
        certainly pass the verdict on a measure. It is ok if a bound proves the limit,
        and undecided in any other case.
        """
        is_proved = self.is_proved(at_most)
        if (
            self.is_contradicted
            or self.goes_beyond
            or (self.surely > at_most + 1e-9 and not is_proved)
        ):
            return "FAIL"
        return "ok" if is_proved else "undecided"

    def is_open(self, at_most: float) -> bool:
        """Return whether more lives may change the verdict: it is undecided, and the
        rate exceeds the limit, or the measure may satisfy the verdict's requirement.
        """
        may_pass = self.asked is not None and not self._falls_short
        return self.verdict(at_most) == "undecided" and (
            may_pass or self.found.value > at_most
        )

    @property
    def is_contradicted(self) -> bool:
        """Whether the rate in real lives exceeds the proved bound by more than chance,
        so that either the proof or the planner is wrong.
        """
        found = runs.rate(
            [_counted([one for one in life if one.judged]) for life in self.lives],
            runs.Z_MANY,
        )
        return self.proven is not None and found.low > self.proven + 1e-9

    def is_proved(self, at_most: float) -> bool:
        return self.proven is not None and self.proven <= at_most + 1e-9

    @property
    def goes_beyond(self) -> bool:
        """Whether the 95 % interval of the measure is entirely beyond the verdict's
        requirement. Always False if the measure should be like the animals'.
        """
        if self.measured is None or self.asked is None or self.asked.better == "alike":
            return False
        _, low, high = self.measured
        return runs.is_beyond(low, high, self.asked)

    @property
    def _falls_short(self) -> bool:
        """Whether a 99 % interval of the measure, over the usual number of lives,
        misses one of the verdict's requirements entirely.
        """
        measured = self._mean(runs.Z99)
        if self.asked is None or measured is None or len(self.lives) < LIVES:
            return False
        _, low, high = measured
        asked = runs.asked_of(self.asked)
        return any(high < one if sign == ">=" else low > one for sign, one in asked)

    @property
    def measured(self) -> tuple[float, float, float] | None:
        """The mean of the verdict's measure over lives, with a 95 % interval. None if
        the verdict has no measure, or no trial has a value.
        """
        return self._mean(runs.Z95)

    def _mean(self, z: float) -> tuple[float, float, float] | None:
        values = [
            [one.measured for one in life if one.judged and one.measured is not None]
            for life in self.lives
        ]
        means = [statistics.mean(own) for own in values if own]
        return None if self.asked is None else runs.mean_of(means, self.asked, z)

    @property
    def at_last(self) -> runs.Rate:
        """The pass rate over the last third of each life's judged trials, after
        learning.
        """
        counts = []
        for life in self.lives:
            judged = [one for one in life if one.judged]
            counts.append(_counted(judged[-max(1, len(judged) // 3) :]))
        return runs.rate(counts)

    @property
    def by_session(self) -> dict[int, float]:
        """The pass rate of each session, judged or not."""
        points: dict[int, list[bool]] = {}
        for life in self.lives:
            for one in life:
                points.setdefault(one.session, []).append(one.success)
        return {
            number: sum(points[number]) / len(points[number])
            for number in sorted(points)
        }


def _counted(trials: Sequence[Lived]) -> tuple[int, int]:
    return sum(one.success for one in trials), len(trials)


def battery(specification: Specification) -> list[Lesion]:
    """Return the lesions to try: no lesion, the standard lesions, and the lesions that
    the construct names.
    """
    texts = ["blind", "pose-only", "anhedonia", f"amnesia={TRIAL}", "memoryless"]
    if specification.arena.landmarks:
        texts.append(f"hide={LANDMARKS}")
    named: list[Lesion] = []
    if specification.construct is not None:
        named = [lesion for lesion, _ in specification.construct.abolished_by]
        named += specification.construct.spared_by
    return list(dict.fromkeys([INTACT, *named, *map(Lesion.parse, texts)]))


@dataclass(frozen=True, slots=True)
class Order:
    """What to search for: one lesion, and how thoroughly."""

    lesion: Lesion
    effort: float
    seed: int
    is_brief: bool = False
    """Whether to stop as soon as the rate is known well enough. This is for lesions
    without a requirement.
    """
    trials: int = TRIALS
    """Maximum number of trials of all lives together (at least two lives are led)."""
    at_most: float | None = None
    """The pass rate that may remain under the lesion, or None if no bound is needed."""
    targets: tuple[str, ...] = ()
    """States and outcomes for errands, because a later trial may depend on them."""
    kept: str = ""
    """Folder of stored results, or an empty string if results are not stored."""


def search(paradigm: ArenaParadigm, order: Order) -> Ceiling:
    """Return the ceiling under a lesion. A stored result is used if there is one. A new
    result is stored.
    """
    place = _place(order)
    about = paradigm.specification.judged
    asked = about if about is not None and about.better is not None else None
    if (found := kept.read(place)) is not None:
        return Ceiling(order.lesion, asked=asked, **found)
    measured = measure(paradigm, order)
    kept.write(
        place,
        measured.lives,
        proven=measured.proven,
        how=measured.how,
        followed=measured.followed,
        stopped=measured.stopped,
    )
    return measured


def _place(order: Order) -> Path | None:
    """Return the path of a search's result, or None if results are not stored."""
    # The lesion is written as a text, with sorted names, because each process orders
    # sets of names differently.
    return kept.place(
        order.kept, (str(order.lesion), replace(order, lesion=INTACT, kept=""))
    )


def measure(paradigm: ArenaParadigm, order: Order) -> Ceiling:
    """Let a subject with the lesion lead real lives until the rate is known well
    enough, and return the ceiling.
    """
    lesion = Lesion(
        _SAME.get(order.lesion.words, order.lesion.words),
        order.lesion.amnesia,
        order.lesion.hide,
    )
    planned = paradigm.specification.planned_trials
    group = runs.subjects(paradigm.specification)
    number = max(
        2, min(max(LIVES, group if group <= 2 * LIVES else 0), order.trials // planned)
    )
    # The subjects of one seed are balanced, so that no row of a draw that is made once
    # per life is more frequent by chance.
    seeds = [
        (order.seed + APART + one // group, one % group)
        for one in range(MORE_LIVES * number)
    ]
    about = paradigm.specification.judged
    so_far = Ceiling(
        order.lesion,
        (),
        asked=about if about is not None and about.better is not None else None,
    )
    if lesion.memoryless:
        subject = Reflexes(paradigm, lesion, order.effort, order.seed)
        for seed in seeds:
            so_far = replace(so_far, lives=(*so_far.lives, tuple(subject.live(*seed))))
            if _is_enough(so_far, number, len(so_far.lives) / (4 * number), order):
                break
        return so_far
    gc.collect()  # This frees the lives of the previous lesion.
    # Tens of thousands of lives are stored, and automatic garbage collection would take
    # half of the time.
    gc.disable()
    try:
        adversary = Adversary(paradigm, lesion, order.effort)
        adversary.world.limit_ways()
        proven = (
            None
            if order.at_most is None
            else exact.upper_bound(adversary, order.effort, order.at_most)
        )
        if order.at_most is not None and replace(so_far, proven=proven).is_proved(
            order.at_most
        ):
            adversary.planner.effort *= SHOWN
        begun = adversary.world.spent
        for seed in seeds:
            lives = (*so_far.lives, tuple(adversary.live(*seed, planned)))
            so_far = replace(
                so_far, lives=lives, proven=proven, followed=adversary.followed
            )
            if _is_enough(
                so_far,
                number,
                (adversary.world.spent - begun) / (STEPS * order.effort),
                order,
            ):
                break
        is_open = order.at_most is not None and not so_far.is_proved(order.at_most)
        errands = (
            [Errand(one, trials) for trials in (1, 2) for one in order.targets]
            if is_open
            else []
        )
        for errand in errands:
            if (other := _after(errand, adversary, so_far, seeds, planned)) is not None:
                so_far = other
                break
    except beliefs.TooManyError as error:
        so_far = replace(so_far, lives=(), stopped=str(error))
    finally:
        gc.enable()
    return so_far


def _after(
    errand: Errand,
    adversary: Adversary,
    plain: Ceiling,
    seeds: Sequence[tuple[int, int]],
    planned: int,
) -> Ceiling | None:
    """Return the result with an errand in the first trials of each life, or None if it
    is not significantly better than the result without it.
    """
    found = replace(plain, lives=(), how=f", after {errand.trials} x '{errand.target}'")
    for number, seed in enumerate(seeds[ERRANDS : ERRANDS + LIVES], 1):
        found = replace(
            found, lives=(*found.lives, tuple(adversary.live(*seed, planned, errand)))
        )
        if number == ERRANDS and found.found.value <= plain.found.high:
            return None
    return found if found.surely > plain.found.value else None


def _is_enough(so_far: Ceiling, number: int, spent: float, order: Order) -> bool:
    """Return whether the rate is known well enough. ``spent`` is the share of the usual
    effort that has been used.
    """
    if len(so_far.lives) < 2:
        return False
    is_clear = order.is_brief and (
        so_far.found.high - so_far.found.low <= NARROW or spent > ENOUGH
    )
    is_proved = order.at_most is not None and so_far.is_proved(order.at_most)
    if len(so_far.lives) >= FEWEST and (
        is_clear or (is_proved and so_far.found.low <= (so_far.proven or 0.0))
    ):
        return True
    if len(so_far.lives) < number and spent <= 1:
        return False
    return (
        order.at_most is None or spent > MORE_STEPS or not so_far.is_open(order.at_most)
    )


def ceilings(
    lesions: Sequence[Lesion],
    limits: Mapping[Lesion, float],
    settings: AuditSettings,
    runner: runs.Runner,
) -> list[Ceiling]:
    """Return the ceilings under these lesions, computed in parallel if the runner has
    processes. ``limits`` holds the rates that may remain under some of them.
    """
    orders = _orders(lesions, limits, settings, runner.paradigm)
    return shared(_searched(orders, settings, runner))


def _searched(
    orders: Sequence[Order], settings: AuditSettings, runner: runs.Runner
) -> list[Ceiling]:
    return runner.map(
        search,
        orders,
        settings.progress,
        lambda one: f"lesion {one.lesion}",
        lambda one: "given up" if one.stopped else f"found {one.found}",
    )


def _orders(
    lesions: Sequence[Lesion],
    limits: Mapping[Lesion, float],
    settings: AuditSettings,
    paradigm: ArenaParadigm,
) -> list[Order]:
    """Return the order for the search of each lesion."""
    construct = paradigm.specification.construct
    asked = {*limits, *(construct.spared_by if construct is not None else ())}
    targets = _targets(paradigm, settings.seed)
    return [
        _of_the_intact(settings, TRIALS)
        if one == INTACT
        else Order(
            one,
            settings.effort,
            settings.seed,
            one not in asked,
            at_most=limits.get(one),
            targets=targets,
            kept=settings.kept,
        )
        for one in lesions
    ]


def _of_the_intact(settings: AuditSettings, trials: int) -> Order:
    """Return the order for the search without a lesion. Two parts of the audit use the
    same order, so that they share its stored results.
    """
    is_brief = trials < TRIALS
    return Order(
        INTACT, settings.effort, settings.seed, is_brief, trials, kept=settings.kept
    )


def _targets(paradigm: ArenaParadigm, seed: int) -> tuple[str, ...]:
    """Return the targets of errands: states that no random subject entered, and all
    outcomes. There are none if every state was entered and no guard reads earlier
    outcomes.
    """
    specification = paradigm.specification
    entered = set[str]().union(*forgetting.wandered(paradigm, seed).values())
    rare = [name for name in specification.states if name not in entered]
    rules = [rule for state in specification.states.values() for rule in state.rules]
    begun = [one.guard for one in (*specification.entry, *rules)]
    nodes = [node for tree in begun for node in expressions.walk(tree)]
    tells = any(
        isinstance(node, expressions.Recent) or node == expressions.BuiltIn("last")
        for node in nodes
    )
    return (
        (*rare, *dict.fromkeys((TIMEOUT, *specification.outcomes)))
        if rare or tells
        else ()
    )


def shared(found: Sequence[Ceiling]) -> list[Ceiling]:
    """Return the ceilings, each with the lowest bound that applies to it. As a rule, a
    subject with more lesions does no better, so a bound of fewer lesions holds for it.
    """
    proofs = [
        one for one in found if one.proven is not None and not one.lesion.forgets_at
    ]
    together = []
    for one in found:
        # A subject that forgets at a state may keep other things. Only a subject that
        # keeps nothing at all certainly does no better.
        others = found if one.lesion.memoryless else (one, *proofs)
        bounds = [
            other.proven
            for other in others
            if one.lesion.leaves_no_more_than(other.lesion)
        ]
        together.append(
            replace(
                one,
                proven=min(
                    [bound for bound in bounds if bound is not None], default=None
                ),
            )
        )
    return together


# -- what a subject reaches that lacks more, this one reaches, too


#: What a memoryless subject lacks besides: its next action depends on nothing but the
#: picture, so it goes by no reward.
_NO_REWARD_EITHER = Lesion.parse("anhedonia")
#: What a subject lacks that repeats one action.
_EVERYTHING = Lesion.parse("blind+memoryless") | _NO_REWARD_EITHER
#: What such a subject does, by its action.
_REPEATED = {
    FORWARD: "always steps forward",
    ROTATE_LEFT: "always turns left",
    ROTATE_RIGHT: "always turns right",
    STAY: "stands still",
}


def raised(
    found: Sequence[Ceiling],
    repeated: Sequence[Ceiling],
    limits: Collection[Lesion],
) -> list[Ceiling]:
    """Return the ceilings. If a subject that lacks more surely does better than the one
    that was planned for a lesion of ``limits``, or passes the verdict on a measure that
    the other does not, its lives replace those of the other. ``repeated`` are the
    ceilings of subjects that repeat one action.
    """
    weaker = [
        replace(one, lacking_more=f"a subject with '{one.lesion}'")
        for one in found
        # A subject that forgets at a state may keep other things.
        if one.lesion.memoryless or not one.lesion.forgets_at
    ]
    return [
        _raised(one, [*weaker, *repeated]) if one.lesion in limits else one
        for one in found
    ]


def _raised(ceiling: Ceiling, weaker: Sequence[Ceiling]) -> Ceiling:
    better = [
        one
        for one in weaker
        if _lacked(one.lesion).leaves_no_more_than(ceiling.lesion)
        and one.lesion != ceiling.lesion
        and _surely_better(one, ceiling)
    ]
    if not better:
        return ceiling
    best = max(better, key=lambda one: (one.goes_beyond, one.found.value))
    return replace(
        ceiling,
        lives=best.lives,
        how=f", by {best.lacking_more}",
        followed=1.0,
        lacking_more=best.lacking_more,
    )


def _surely_better(one: Ceiling, other: Ceiling) -> bool:
    if other.stopped or one.stopped or not one.found.trials:
        return False
    if one.goes_beyond != other.goes_beyond:
        return one.goes_beyond
    return one.surely > other.found.high


def _lacked(lesion: Lesion) -> Lesion:
    return lesion | _NO_REWARD_EITHER if lesion.memoryless else lesion


def _repeating(paradigm: ArenaParadigm, seed: int) -> list[Ceiling]:
    """Return the ceilings of subjects that repeat one action for life."""
    specification = paradigm.specification
    about = specification.judged
    asked = about if about is not None and about.better is not None else None
    group, planned = runs.subjects(specification), specification.planned_trials
    number = max(2, min(max(LIVES, group), TRIALS // planned))
    return [
        Ceiling(
            _EVERYTHING,
            tuple(
                _repeated(paradigm, action, seed + APART + one // group, one % group)
                for one in range(number)
            ),
            asked=asked,
            lacking_more=f"a subject that {words}",
        )
        for action, words in _REPEATED.items()
    ]


def _repeated(
    paradigm: ArenaParadigm, action: int, seed: int, subject: int
) -> tuple[Lived, ...]:
    life = ArenaSubject(paradigm.program, runs.DARKNESS, seed, subject)
    acting = policies.Cycle([action])
    trials: list[Lived] = []
    for _ in runs.live(life, acting, paradigm.specification):
        trials.append(lived_trial(life, len(trials), paradigm.specification))
    return tuple(trials)


# -- the rule: do the rates agree with the claims of the construct?


#: Minimum final pass rate of an intact subject. Below it, the search may be too weak,
#: and low rates under lesions would prove nothing. Under a lesion that spares the
#: construct, such a final rate is enough.
INTACT_AT_LAST = 0.99
#: Minimum pass rate under a lesion that spares the construct, unless the final rate
#: reaches ``INTACT_AT_LAST``. In the rule on rewards, it is the bar of a protocol
#: without a reference.
SPARED = 0.95
#: Number of lives after which an errand without a clear gain is given up. Otherwise it
#: is tried in ``LIVES`` lives. Lives with errands leave out as many of the first seeds.
ERRANDS = 2
#: Minimum share of followed subjects that counts as all of them.
WHOLE = 0.999
#: ``EXCESS`` is added to a finding if the observed rate exceeds the limit but does not
#: refute it. ``CONTRADICTED`` is added if the observed rate exceeds a proved bound.
EXCESS = "; the excess is within chance"
#: Added to a bound that is below the observed rate.
BY_CHANCE = " (more was found by chance, in few trials)"
#: Added to a row that fails only by the mean of the measure.
BEYOND = ", but the mean of the measure passes"
CONTRADICTED = "; the observed rate exceeds the proved bound: a bug in the audit"
#: Added to the row of an earlier amnesia (``earlier_amnesias``) that the construct does
#: not name.
TOLD_LATER = (
    "; tried because the construct's amnesia also removes what is told after the state named here:"
    " if only what comes before it is to be remembered, let the construct name this amnesia instead; if both are,"
    " add it to `spared_by`, or to `abolished_by` with an `at_most` of its own"
)
#: Added to an undecided row whose limit no effort can prove, with the reason.
BY_A_NOTE = (
    "; the subject may leave itself a note that outlasts the forgetting (where it"
    " stands, say), so no effort can prove the limit: `place` the subject in the"
    " state at which it forgets, or freeze the states before that one"
)
BY_CHOICE = (
    "; a subject may choose which of its trials count (or have a value), and one trial"
    " may tell it about the next, so no effort can prove the limit: draw everything anew"
    " in each trial (`per: trial`), or judge what every trial has (the first choice, say)"
)
#: Added to an undecided row if a trial in which nothing was done has no value, instead
#: of ``BY_CHOICE``.
BY_LACK = (
    "; a trial in which '{0}' stays 0 has no value, so a subject chooses which of its trials count, and no effort can"
    " prove the limit: divide by `max({0}, 1)`, so that such a trial counts 0"
)
#: Added to an undecided row if what is judged is counted over several trials.
COUNTED_ON = (
    "; '{0}' is counted over several trials, so no effort can prove the limit of one: count it in one trial"
    " (`per: trial`), which ends after so many events, not with the first (`finish: [{{if: {0} == 10, end: done}}]`)"
)
#: The reason shown for a search that was given up for the same reason as the search of
#: the intact subject.
AS_INTACT = (
    "no effort can prove the limit, for the reason in the row of the intact subject"
)
#: How a lesion was got round that leaves what a subject reaches that lacks more.
LACKING_MORE = (
    ". How: {0} needs nothing of what the lesion takes away. Count what it does as a failure,"
    " or let the verdict be about something else"
)
NOT_VALIDATED = "not validated: the protocol names no `construct`"


def outlook(paradigm: ArenaParadigm, settings: AuditSettings) -> str:
    """Return a sentence on the expected duration of the searches."""
    specification = paradigm.specification
    if specification.construct is None and settings.parts is None:
        return "about a minute for a small maze (no 'construct': no lesion is searched)"
    construct = specification.construct
    limits = dict(construct.abolished_by) if construct else {}
    orders = _orders(battery(specification), limits, settings, paradigm)
    known = sum(place.is_file() for one in orders if (place := _place(one)) is not None)
    if known == len(orders):
        return f"all {known} lesions were searched in earlier audits"
    ways = beliefs.World(paradigm, INTACT).ways()
    if math.prod(ways) > beliefs.MOST_WAYS:
        return f"the lesions will stay undecided: {beliefs.too_many(ways)}"
    more = f"; kept from earlier audits: {known}" if known else ""
    begun = f"; chance has {math.prod(ways):,} ways in a trial" if ways else ""
    return f"lesions to search: {len(orders) - known} (seconds to several minutes each){begun}{more}"


def audit_lesions(
    paradigm: ArenaParadigm, settings: AuditSettings, runner: runs.Runner
) -> Iterator[AuditFinding]:
    """Yield the construct, or that there is none, then the rate that remains under each
    lesion, and whether the construct allows it. Without a construct, lesions are tried
    only if the user names the parts of the audit.
    """
    construct = paradigm.specification.construct
    if construct is None:
        yield AuditFinding("construct", "note", NOT_VALIDATED, {})
        if settings.parts is None:
            return  # The search takes minutes, and the user did not ask for it.
    else:
        yield AuditFinding(
            "construct", "note", f"{construct.name}", {"name": construct.name}
        )
    named = dict(construct.abolished_by) if construct else {}
    earlier = forgetting.earlier_amnesias(paradigm, settings.effort, settings.seed)
    at_most = earlier | named
    lesions = dict.fromkeys([*battery(paradigm.specification), *earlier])
    found = ceilings(list(lesions), at_most, settings, runner)
    found = raised(found, _repeating(paradigm, settings.seed), at_most)
    spared = construct.spared_by if construct else ()
    found = [_bounded(one, paradigm, settings.effort, spared) for one in found]
    intact = next(one for one in found if one.lesion == INTACT)
    found = _told_once(found, intact)
    void = _why_void(paradigm.specification, intact)
    for ceiling in found:
        finding = _finding(
            ceiling, at_most.get(ceiling.lesion), ceiling.lesion in spared, void
        )
        remark = TOLD_LATER if ceiling.lesion in earlier.keys() - named.keys() else ""
        remark += _why_not(finding.verdict, ceiling, at_most, settings, runner)
        yield replace(finding, text=finding.text + remark)


def _told_once(found: Sequence[Ceiling], intact: Ceiling) -> list[Ceiling]:
    """Return the ceilings. Where the search was given up for the same reason as without
    a lesion, ``AS_INTACT`` replaces the reason.
    """
    return [
        replace(one, stopped=AS_INTACT)
        if one.stopped and one.stopped == intact.stopped and one is not intact
        else one
        for one in found
    ]


def _bounded(
    ceiling: Ceiling,
    paradigm: ArenaParadigm,
    effort: float,
    spared: Collection[Lesion],
) -> Ceiling:
    """Return the ceiling. If a subject that should pass was not found to, it has a
    bound that proves that there is none, or no bound.
    """
    if (
        ceiling.stopped
        or not ceiling.found.trials
        or not _passes_too_seldom(ceiling, spared)
    ):
        return ceiling
    least = INTACT_AT_LAST if ceiling.lesion == INTACT else SPARED
    if ceiling.proven is not None and ceiling.proven < least:
        return ceiling
    return replace(
        ceiling, proven=_proved_below(paradigm, ceiling.lesion, effort, least)
    )


@lru_cache(maxsize=4)  # Two parts of the audit ask about the intact subject.
def _proved_below(
    paradigm: ArenaParadigm, lesion: Lesion, effort: float, least: float
) -> float | None:
    """Return a proved bound, below ``least``, on the pass rate of subjects with a
    lesion, or None. It holds for each trial, so also for the last ones.
    """
    most = least - 0.001
    if paradigm.specification.where is not None or lesion.memoryless:
        return None
    try:
        adversary = Adversary(paradigm, lesion, effort)
        adversary.world.limit_ways()
        proven = exact.upper_bound(adversary, effort, most)
    except beliefs.TooManyError:
        return None
    return proven if proven is not None and proven <= most else None


def _passes_too_seldom(ceiling: Ceiling, spared: Collection[Lesion]) -> bool:
    """Return whether a subject without a lesion, or with one in ``spared``, was found
    to pass too seldom. It passes if its mean of the verdict's measure surely does.
    """
    if ceiling.at_last.value >= INTACT_AT_LAST or ceiling.goes_beyond:
        return False
    return ceiling.lesion == INTACT or (
        ceiling.lesion in spared and ceiling.found.value < SPARED
    )


def _why_void(
    specification: Specification, intact: Ceiling
) -> tuple[AuditVerdict, str]:
    """Return the verdict on the intact subject, and why no ``ok`` of a lesion counts,
    or "".
    """
    if intact.stopped:
        return "undecided", ": nothing can be compared"
    if specification.judges_part_of_a_block:
        return "FAIL", (
            ": the estimand counts only the last trials of a block, and these rates are over all of them;"
            " put the trials that count into a block of their own, and write `estimand: {block: NAME}`"
        )
    if not _passes_too_seldom(intact, ()):
        return "note", ""
    if intact.proven is not None:
        return "FAIL", ": nobody passes nearly always"
    return "undecided", (
        ": no subject was found that passes nearly always (none may exist, or the search is too weak: see `decidable`)"
    )


def _why_not(
    verdict: AuditVerdict,
    ceiling: Ceiling,
    limits: Mapping[Lesion, float],
    settings: AuditSettings,
    runner: runs.Runner,
) -> str:
    """Return why a verdict is not ``ok``, if the audit knows it, or ""."""
    if verdict == "undecided" and ceiling.lesion in limits and not ceiling.stopped:
        return _why_unproved(runner.paradigm, ceiling.lesion)
    if verdict == "FAIL" and ceiling.lacking_more:
        return LACKING_MORE.format(ceiling.lacking_more)
    if verdict == "FAIL" and ceiling.found.value > limits.get(ceiling.lesion, 1.0):
        return _got_round(ceiling, limits[ceiling.lesion], settings, runner)
    return ""


def _why_unproved(paradigm: ArenaParadigm, lesion: Lesion) -> str:
    known = relevance.Relevance(paradigm.program, lesion)
    outlasts = bool(lesion.forgets_at) and known.outlasts(lesion.forgets_at)
    if outlasts:
        return BY_A_NOTE
    return _by_choice(paradigm.specification) + _counted_on(paradigm.specification)


def _by_choice(specification: Specification) -> str:
    """Return that a subject chooses which trials count, if it does, or ""."""
    if not exact.is_chosen(specification):
        return ""
    about = specification.judged
    match exact.lacking(specification):
        case [divisor] if about and about.better == "higher" and _sum(divisor):
            return BY_LACK.format(_sum(divisor))
    return BY_CHOICE


def _sum(divisor: expressions.Expression) -> str:
    """Return the text of a variable, or of a sum of variables, and otherwise ""."""
    match divisor:
        case expressions.Variable(name):
            return name
        case expressions.Binary("+", left, right) if _sum(left) and _sum(right):
            return f"{_sum(left)} + {_sum(right)}"
    return ""


def _counted_on(specification: Specification) -> str:
    """Return that what is judged is counted over several trials, if it is, or ""."""
    read = {
        one.name
        for one in expressions.walk(specification.success)
        if isinstance(one, expressions.Variable)
    }
    lasting = [
        one.name
        for one in specification.variables.values()
        if one.name in read and one.per != "trial" and one.type.kind == "number"
    ]
    return COUNTED_ON.format(lasting[-1]) if lasting else ""


# -- a lesion that leaves too much: what does the subject go by?


#: Lesions that are added to one that fails: what they take away is needed if the rate
#: then falls.
BLIND, POSE_ONLY = Lesion.parse("blind"), Lesion.parse("pose-only")
NO_REWARD, NO_TRIALS = Lesion.parse("anhedonia"), Lesion.parse(f"amnesia={TRIAL}")
#: ``EFFORT_ROUND``: effort of a search with such an added lesion, relative to the
#: audit's. ``TRIALS_ROUND``: its maximum number of trials.
EFFORT_ROUND, TRIALS_ROUND = 0.3, 60
#: ``TRIALS_HABIT``: number of trials of each habit. ``ALWAYS``: a habit that is right
#: at least this often is right because what is right never changes.
TRIALS_HABIT, ALWAYS = 200, 0.99


def _got_round(
    ceiling: Ceiling, at_most: float, settings: AuditSettings, runner: runs.Runner
) -> str:
    """Return what a subject goes by whose lesion leaves more than ``at_most``, and a
    remedy, as the end of a sentence.
    """
    lesion, found = ceiling.lesion, ceiling.found.value

    def lost(extras: Sequence[Lesion]) -> dict[Lesion, str]:
        """Return the lesions that, when added, lower the rate more than halfway to the
        limit, each with words on the rate that the two leave.
        """
        added = [one for one in extras if not lesion.leaves_no_more_than(one)]
        orders = [
            Order(
                lesion | one,
                settings.effort * EFFORT_ROUND,
                settings.seed,
                is_brief=True,
                trials=TRIALS_ROUND,
                kept=settings.kept,
            )
            for one in added
        ]
        rates = _searched(orders, settings, runner)
        return {
            one: f"'{lesion | one}' leaves {runs.shown(rate.found.value)}"
            for one, rate in zip(added, rates, strict=True)
            if rate.found.value < (found + at_most) / 2
        }

    needed = lost([NO_TRIALS, NO_REWARD, POSE_ONLY, BLIND])
    if POSE_ONLY not in needed:
        if not needed.keys() & {NO_TRIALS, NO_REWARD}:
            habit, share = _best_habit(runner.paradigm, settings.seed)
            if (found + at_most) / 2 < share < ALWAYS:
                return (
                    f". How: {habit} is right in {runs.shown(share)} of the trials: let each answer be right in at most"
                    f" {runs.shown(at_most)} of them, or raise `at_most`"
                )
        return _unseen(lesion, needed)
    shown = lost(list(map(Lesion.parse, _shown(runner.paradigm.specification))))
    if not shown:
        return (
            f". How: the subject sees more than one thing that tells what is right ({needed[POSE_ONLY]}):"
            " let the construct name a lesion that hides them all, or show less"
        )
    thing, said = next(iter(shown.items()))
    return (
        f". How: the subject sees {' and '.join(sorted(thing.hide))} ({said}): let the construct name that lesion, if this"
        " is part of what the subject must lack, or make it look alike in all trials"
    )


def _best_habit(paradigm: ArenaParadigm, seed: int) -> tuple[str, float]:
    """Return what most often succeeds if it is done in every trial, and how often: to
    go to one place, at once or where a rule reacts to it, or to wait.
    """
    places = runs.events_of(paradigm.program).everywhere
    habits = [
        ("always waiting", _habit(paradigm, seed, None, is_at_once=False)),
        *(
            (f"always going to '{place}'", _habit(paradigm, seed, place, is_at_once=at))
            for place in places
            for at in (False, True)
        ),
    ]
    return max(habits, key=lambda one: one[1])


def _habit(
    paradigm: ArenaParadigm, seed: int, place: str | None, *, is_at_once: bool
) -> float:
    tally = runs.Tally(f"always {place}")
    specification = paradigm.specification
    lives = runs.lives_for(specification, TRIALS_HABIT, seed, judged=True)
    for own_seed, subject, trials in lives:
        chance = random.Random(f"{own_seed}|{subject}|{tally.name}")
        life = ArenaSubject(paradigm.program, runs.DARKNESS, own_seed, subject)
        walker = _Faithful(paradigm.program, place, chance, is_at_once=is_at_once)
        tally.add(list(runs.walk(life, walker, specification, trials)))
    return tally.rate().value


class _Faithful(runs.Walker):
    """Goes to one place in every trial. With ``is_at_once`` it goes there directly, and
    stays. Otherwise it goes there when a rule reacts to the place, and until then to
    random places that rules react to. Without a place it waits.
    """

    def __init__(
        self,
        program: Program,
        place: str | None,
        chance: random.Random,
        *,
        is_at_once: bool,
    ) -> None:
        any_of = runs.event_random(chance)

        def choose(near: Sequence[str]) -> str | None:
            return place if place is None or place in near else any_of(near)

        super().__init__(program, choose, everywhere=is_at_once)
        arena = program.geometry.arena
        self._goal = {*(arena.cells_of(place) if place and is_at_once else ())}
        self._cell = program.geometry.cell

    def act(self, life: ArenaSubject) -> int:
        if self._cell(life.pose) in self._goal:
            return STAY
        return super().act(life)


def _unseen(lesion: Lesion, needed: Mapping[Lesion, str]) -> str:
    """Return what a subject goes by that need not look at the picture, as the end of a
    sentence.
    """
    if (said := needed.get(NO_TRIALS)) is not None:
        told = (
            "the reward"
            if NO_REWARD in needed
            else "its own actions, the clock, or when the trial ends"
        )
        remedy = (
            "Let a success and a failure last equally long, and end in one state"
            if lesion.feels_no_reward
            else "Draw what is right anew for each trial (`per: trial`)"
        )
        return f". How: not by the picture, but by what earlier trials told the subject ({said}): {told}. {remedy}"
    if (said := needed.get(NO_REWARD)) is not None:
        return f". How: by the reward ({said}): let none come before the choice"
    if (said := needed.get(BLIND)) is not None:
        return (
            f". How: where the subject stands or faces is enough ({said}, but pose-only leaves as much as before): either that"
            " tells what is right (`place` it at one spot before the choice), or what is right never changes (draw it)"
        )
    how = ". How: the subject's own actions and the clock are enough, without picture and earlier trials"
    if lesion.forgets_at:
        return (
            f"{how}: where it stands as it forgets may tell it what is right. `place` it at one spot in the state at"
            " which it forgets"
        )
    return (
        f"{how}. Draw what is right at random (`order: cycle` begins alike for all), count doing nothing as a failure, and"
        " let the first choice decide"
    )


def _shown(specification: Specification) -> Iterator[str]:
    """Yield the lesions that hide one thing each: text, landmarks, or a glyph."""
    arena, states = specification.arena, specification.states.values()
    if any(state.say for state in states):
        yield "hide=text"
    if arena.landmarks:
        yield f"hide={LANDMARKS}"
    shown = {glyph for state in states for _, glyph in state.show}
    glyphs = {*arena.glyphs.values(), *_drawn_as(shown, specification)} - {*aims.PLAIN}
    yield from (f"hide=glyph:{one}" for one in sorted(glyphs))


def _drawn_as(shown: Collection[Place], specification: Specification) -> Iterator[str]:
    """Yield the glyphs. A variable counts with its initial value, and with what draws
    and blocks give it.
    """
    yield from (one.name for one in shown if not one.variable)
    for name, value in scenes.values_held(specification):
        if Place(name, variable=True) in shown:
            yield str(value)


def _finding(
    ceiling: Ceiling,
    at_most: float | None,
    is_spared: bool,
    void: tuple[AuditVerdict, str],
) -> AuditFinding:
    found, lesion = ceiling.found, ceiling.lesion
    if ceiling.stopped:
        is_asked = lesion == INTACT or at_most is not None or is_spared
        return AuditFinding(
            f"lesion: {lesion}",
            "undecided" if is_asked else "note",
            f"not searched: {ceiling.stopped}",
            {"found": found.numbers(), "proven": None, "at_most": at_most},
        )
    text = (
        f"found {found} in {found.trials} trials{ceiling.how}{_bound(ceiling, at_most)}"
    )
    verdict: AuditVerdict = "note"
    if not found.trials:
        text, verdict = (
            "not judged: the estimand counts none of the trials",
            "FAIL" if lesion == INTACT else "note",
        )
    elif lesion == INTACT:
        text += f"; in the last third of a life {runs.shown(ceiling.at_last.value)}"
        verdict, why = void
        text += f"{why}; no `ok` below counts" if why else ""
    elif at_most is not None:
        verdict, remark = _abolished(ceiling, at_most, bool(void[1]))
        text += f"; at most {runs.shown(at_most)} may remain{remark}"
    elif is_spared:
        verdict = "ok"
        if _passes_too_seldom(ceiling, (lesion,)):
            verdict = "undecided" if ceiling.proven is None else "FAIL"
        text += f"; at least {runs.shown(SPARED)} must remain, or {runs.shown(INTACT_AT_LAST)} in the last third of a life"
    if ceiling.followed < WHOLE:
        text += f"; {runs.shown(ceiling.followed)} of the subjects were followed to the state where they forget"
    text += f"{_measure_in_words(ceiling)}; by session {_curve(ceiling)}"
    numbers: dict[str, object] = {
        "found": found.numbers(), "proven": ceiling.proven, "at_last": ceiling.at_last.value, "at_most": at_most,
        "followed": ceiling.followed, "measured": ceiling.measured,
        "by_session": list(ceiling.by_session.values()),
    }  # fmt: skip
    return AuditFinding(f"lesion: {lesion}", verdict, text, numbers)


def _measure_in_words(ceiling: Ceiling) -> str:
    """Return the mean of the verdict's measure and what the verdict asks for, as the
    end of a sentence, or "".
    """
    if ceiling.measured is None or ceiling.asked is None:
        return ""
    mean, low, high = ceiling.measured
    return (
        f"; the measure is {mean:.3g} [{low:.3g}, {high:.3g}], the verdict asks for"
        f" {runs.asked_in_words(ceiling.asked)}"
    )


def _bound(ceiling: Ceiling, at_most: float | None) -> str:
    """Return the proved bound in words. If more was found, by chance and within
    ``at_most``, say so. (What exceeds ``at_most`` is mentioned after the limit.)
    """
    if ceiling.proven is None:
        return ""
    highest = 1.0 if at_most is None else at_most
    is_chance = ceiling.proven + 1e-9 < ceiling.found.value <= highest + 1e-9
    remark = BY_CHANCE if is_chance and not ceiling.is_contradicted else ""
    return f", proven at most {runs.shown(ceiling.proven)}{remark}"


def _abolished(
    ceiling: Ceiling, at_most: float, is_void: bool
) -> tuple[AuditVerdict, str]:
    verdict, remark = ceiling.verdict(at_most), ""
    if verdict == "FAIL":
        if ceiling.is_contradicted:
            return verdict, CONTRADICTED
        return verdict, "" if ceiling.surely > at_most + 1e-9 else BEYOND
    if not ceiling.is_proved(at_most):
        remark = " (searched, not proven)"
    if ceiling.found.value > at_most + 1e-9:
        remark += EXCESS
    if is_void and remark:
        return "note", f"{remark}; void, as the row of the intact subject says"
    return verdict, remark


def _curve(ceiling: Ceiling) -> str:
    values = [runs.shown(value) for value in ceiling.by_session.values()]
    return " ".join(values if len(values) <= 12 else [*values[:6], "...", *values[-4:]])


def intact(paradigm: ArenaParadigm, settings: AuditSettings) -> Ceiling:
    """Return the ceiling of a subject that has no lesion, and knows the rules but not
    the draws.
    """
    if settings.progress:
        settings.progress("searching how a subject without a lesion may succeed")
    return search(paradigm, _of_the_intact(settings, min(TRIALS, settings.trials)))


def _per_trial(tally: runs.Tally) -> float:
    return tally.reward / sum(tally.outcomes.values())


def _most_judged(tally: runs.Tally) -> int:
    """Return after how many judged trials the lives of a policy end, at the latest."""
    return max(judged for _, judged in tally.lives)


def _where_cut(passing: Ceiling, most_judged: int) -> str:
    if all(sum(one.judged for one in life) <= most_judged for life in passing.lives):
        return ""
    first = "judged trial" if most_judged == 1 else f"{most_judged} judged trials"
    return f" (both over the first {first} of a life)"


def _earned(passing: Ceiling, most_judged: int) -> tuple[float, float]:
    """Return the mean reward per trial of lives up to this many judged trials, and half
    the width of its 99 % interval.

    A policy's lives end there, and blocks may pay differently.
    """
    means = []
    for life in passing.lives:
        judged = itertools.accumulate(one.judged for one in life)
        rewards = [
            one.reward
            for one, number in zip(life, judged, strict=True)
            if number - one.judged < most_judged
        ]
        if rewards:
            means.append(statistics.mean(rewards))
    error = runs.Z99 * statistics.stdev(means) / len(means) ** 0.5
    return statistics.mean(means), error


def _best_success(tallies: Sequence[runs.Tally], passing: Ceiling) -> float:
    """Return the most that is known to be earned in a judged trial that succeeds."""
    trials = itertools.chain.from_iterable(passing.lives)
    lived = [one.reward for one in trials if one.success and one.judged]
    return max([*lived, *(one.best_success for one in tallies)], default=-math.inf)


def _why_failing_pays(best: runs.Tally, most: float) -> tuple[AuditVerdict, str]:
    """Return the verdict on a policy that fails and earns more than the subject that
    was found to pass, and what to do. Successes are known to earn ``most``.
    """
    if most > _per_trial(best) + EQUAL:
        return "undecided", (
            f". Single successes earn up to {most:.3g}, and the search is for subjects that pass, not for those that earn most,"
            " so no effort can prove that passing pays less: pay success more, or what that policy does less, until this row is "
            "ok, or leave it: a model that passes and earns more than that policy settles it"
        )
    return "FAIL", (
        f". A subject that learns from reward would learn to fail: pay success more, or reduce the rewards that {best.name} "
        "gets or the costs that it avoids"
    )


def audit_life_rewards(
    paradigm: ArenaParadigm,
    settings: AuditSettings,
    tallies: Sequence[runs.Tally],
    passing: Ceiling,
) -> Iterator[AuditFinding]:
    """Yield whether a policy that fails earns more reward per trial than a subject that
    passes. Yield nothing if the searched subject does not pass, or has led fewer than
    two lives, or no policy fails.

    The search looks for who passes, not for who earns most, so where it earns less than
    a policy that fails, another subject that passes may earn more. It is undecided
    unless every known success earns less than the policy.
    """
    reference = paradigm.specification.reference
    bar = (
        SPARED
        if reference is None
        else reference.value - paradigm.specification.document.margin
    )
    if passing.found.value < bar or sum(map(bool, passing.lives)) < 2:
        return
    failing = [one for one in tallies if one.rate().trials and one.rate().high < bar]
    compared = [(one, _earned(passing, _most_judged(one))) for one in failing]
    if not compared:
        return
    best, (mean, error) = max(
        compared, key=lambda pair: _per_trial(pair[0]) - pair[1][0]
    )
    other = _per_trial(best)
    text = f"a subject that passes earns {mean:.3g} a trial; among policies that fail, {best.name} earns most, {other:.3g}"
    text += _where_cut(passing, _most_judged(best))
    verdict: AuditVerdict = "ok"
    if other > mean + error + EQUAL:
        verdict, remark = _why_failing_pays(best, _best_success(tallies, passing))
        text += remark
    numbers: dict[str, object] = {
        "passing": mean,
        "failing": other,
        "policy": best.name,
    }
    yield AuditFinding("reward over a life", verdict, text, numbers)


#: Said where the search finds nobody that passes nearly always, and nothing is proved.
NOT_FOUND = (
    "that is the best that the search found, not the best that there is: a model that does better in a run shows that the"
    " task can be decided; perhaps nothing reveals the right answer, or --effort is too low"
)


def _decided(
    paradigm: ArenaParadigm, ceiling: Ceiling, effort: float
) -> tuple[AuditVerdict, str]:
    """Return the verdict on a task, by what the intact subject was found to reach, and
    a remark.
    """
    if ceiling.at_last.value >= INTACT_AT_LAST:
        return "ok", ""
    states = paradigm.specification.states.values()
    if any(rule.p is not None for state in states for rule in state.rules):
        return "note", "; chance (`p`) plays a part"
    if not _passes_too_seldom(ceiling, ()):
        return "ok", _measure_in_words(ceiling)
    most = _proved_below(paradigm, INTACT, effort, INTACT_AT_LAST)
    if most is None:
        return "undecided", f": {NOT_FOUND}"
    return (
        "FAIL",
        f": nothing reveals the right answer (proven at most {runs.shown(most)})",
    )


def audit_decidable(
    paradigm: ArenaParadigm,
    settings: AuditSettings,
    solvable: Sequence[AuditFinding],
    intact: Callable[[], Ceiling],
) -> Iterator[AuditFinding]:
    """Yield the solver's result. If it succeeds, also yield whether a subject that does
    not know the draws can succeed, unless none of that subject's trials is judged.
    """
    yield from solvable
    if any(one.verdict != "ok" for one in solvable):
        return
    ceiling = intact()
    if ceiling.stopped:
        text = f"not searched: {ceiling.stopped}"
        yield AuditFinding("decidable", "undecided", text, {})
        return
    at_last = ceiling.at_last
    if not at_last.trials:
        return
    verdict, remark = _decided(paradigm, ceiling, settings.effort)
    text = (
        "a subject that knows the rules but not the draws succeeds in"
        f" {runs.shown(ceiling.found.value)} of the trials, and in {at_last} of the last third of a life{remark}"
    )
    numbers: dict[str, object] = {
        "found": ceiling.found.numbers(),
        "at_last": at_last.numbers(),
    }
    yield AuditFinding("decidable", verdict, text, numbers)
