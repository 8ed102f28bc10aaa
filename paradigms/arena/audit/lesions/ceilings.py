"""Highest pass rates under each lesion: from real lives of adversaries, and proven bounds."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cheesebench.interfaces import AuditSettings
from cheesebench.lesions import INTACT, LANDMARKS, TRIAL, Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.exact import upper_bound
from cheesebench.paradigms.arena.audit.lesions.living import Adversary, Lived
from cheesebench.paradigms.arena.audit.lesions.tables import live_by_table
from cheesebench.paradigms.arena.audit.numbers import Z99, Rate, rate
from cheesebench.paradigms.arena.audit.runs import Runner, subjects
from cheesebench.protocol import Specification

#: Lives on which a ceiling is measured, and the maximum of their trials together (but at least two lives).
LIVES, TRIALS = 8, 480
#: Steps of hypotheses, in planning and in real beliefs, after which no third life is begun (for an effort of 1).
STEPS = 30_000_000
#: For a lesion without a requirement, stop after this many lives if the interval is this narrow.
FEWEST, NARROW = 3, 0.06
#: For one with a requirement, while the interval is wider than this, or speaks against the limit but not clearly, go on
#: to so many times the lives, and the steps: where a subject passes all of its trials or none, eight lives say little.
#: (Looking more than once makes an error at the limit about as frequent as the 99 % interval says: .5 %, simulated.)
WIDE, MORE_LIVES, MORE_STEPS = 0.25, 8, 4
#: Added to the seed of an audit, so that its other lives are not used here.
APART = 31_000_000
#: A naive subject that knows the file differs in nothing from one that feels no reward.
_SAME = {frozenset({"naive"}): frozenset({"anhedonia"})}


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Results of an adversary with a lesion: ``lives`` holds the trials of each life."""

    lesion: Lesion
    lives: tuple[tuple[Lived, ...], ...]
    proven: float | None = None
    """No subject with this lesion does better; None: not proven."""

    @property
    def found(self) -> Rate:
        """The pass rate over judged trials."""
        return rate([_counted([one for one in life if one.judged]) for life in self.lives])

    @property
    def surely(self) -> float:
        """What is left at least: the lower end of a wider interval, as many lesions of many protocols are judged."""
        return rate([_counted([one for one in life if one.judged]) for life in self.lives], Z99).low

    @property
    def at_last(self) -> Rate:
        """The pass rate over the last third of each life's judged trials: after what there was to learn."""
        counts = []
        for life in self.lives:
            judged = [one for one in life if one.judged]
            counts.append(_counted(judged[-max(1, len(judged) // 3) :]))
        return rate(counts)

    @property
    def by_session(self) -> dict[int, float]:
        """The pass rate of all trials of each session, judged or not."""
        return self._curve([[(one.session, one.success) for one in life] for life in self.lives])

    @property
    def by_trial(self) -> dict[int, float]:
        """The pass rate of the first, second, ... trial of a life."""
        return self._curve([[(one.trial + 1, one.success) for one in life] for life in self.lives])

    def _curve(self, lives: Sequence[Sequence[tuple[int, bool]]]) -> dict[int, float]:
        points: dict[int, list[bool]] = {}
        for life in lives:
            for number, success in life:
                points.setdefault(number, []).append(success)
        return {number: sum(points[number]) / len(points[number]) for number in sorted(points)}


def _counted(trials: Sequence[Lived]) -> tuple[int, int]:
    return sum(one.success for one in trials), len(trials)


def battery(specification: Specification) -> list[Lesion]:
    """Return the lesions that are tried: none, the standard ones, and those that the construct names."""
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
    """One lesion, and how thoroughly its ceiling is looked for."""

    lesion: Lesion
    effort: float
    seed: int
    is_brief: bool = False
    """Whether a rate that is known well enough is not looked at for longer: for lesions of which nothing is asked."""
    trials: int = TRIALS
    """Most trials of all lives together (but two lives at least)."""
    is_bounded: bool = True
    """Whether a bound is looked for, too, which may take as long as the lives."""
    at_most: float = 1.0
    """What may be left."""


def measure(paradigm: ArenaParadigm, order: Order) -> Ceiling:
    """Let an adversary with the lesion lead real lives."""
    lesion = Lesion(_SAME.get(order.lesion.words, order.lesion.words), order.lesion.amnesia, order.lesion.hide)
    planned = paradigm.specification.planned_trials
    group = subjects(paradigm.specification)
    number = max(2, min(max(LIVES, group if group <= 2 * LIVES else 0), order.trials // planned))
    # Subjects of one seed are balanced: of a draw that holds for life, no row comes more often by luck.
    seeds = [(order.seed + APART + one // group, one % group) for one in range(MORE_LIVES * number)]
    proven = None
    if lesion.memoryless:
        lives = live_by_table(paradigm, lesion, seeds[:number], order.effort)
    else:
        gc.disable()  # tens of thousands of lives are kept: looking through them time and again takes half of the time
        try:
            adversary = Adversary(paradigm, lesion, order.effort)
            lives = []
            for seed, subject in seeds:
                lives.append(adversary.live(seed, subject, planned))
                if _is_enough(lives, number, adversary.world.spent / (STEPS * order.effort), order):
                    break
            proven = upper_bound(adversary, order.effort) if order.is_bounded else None
        finally:
            gc.enable()
    return Ceiling(order.lesion, tuple(tuple(life) for life in lives), proven)


def _is_enough(lives: Sequence[Sequence[Lived]], number: int, spent: float, order: Order) -> bool:
    """Return whether the rate is known well enough after these lives; ``spent`` is the share of ``STEPS``."""
    if len(lives) < 2:
        return False
    so_far = Ceiling(order.lesion, tuple(map(tuple, lives)))
    found = so_far.found
    width = found.high - found.low
    if order.is_brief:
        return len(lives) >= number or spent > 1 or (len(lives) >= FEWEST and width <= NARROW)
    is_doubtful = width > WIDE or found.low > order.at_most >= so_far.surely
    return (len(lives) >= number or spent > 1) and (not is_doubtful or spent > MORE_STEPS)


def ceilings(lesions: Sequence[Lesion], settings: AuditSettings, runner: Runner) -> list[Ceiling]:
    """Return the ceilings under these lesions, side by side where there are processes for it."""
    construct = runner.paradigm.specification.construct
    asked, limits = {INTACT}, dict[Lesion, float]()
    if construct is not None:
        limits = dict(construct.abolished_by)
        asked |= {*limits, *construct.spared_by}
    orders = [
        Order(one, settings.effort, settings.seed, one not in asked, at_most=limits.get(one, 1.0)) for one in lesions
    ]
    return shared(runner.map(measure, orders, settings.progress))


def shared(found: Sequence[Ceiling]) -> list[Ceiling]:
    """Return ceilings with the least bound that holds: whoever has less does no better than whoever has more."""
    proofs = [one for one in found if one.proven is not None and not one.lesion.forgets_at]
    together = []
    for one in found:
        bounds = [other.proven for other in (one, *proofs) if one.lesion.leaves_no_more_than(other.lesion)]
        together.append(replace(one, proven=min([bound for bound in bounds if bound is not None], default=None)))
    return together
