"""Comparison of two runs with the same seeds, subject by subject. The answer is better,
worse, no loss of a certain size, or undecided.

The difference of a pair is the first run's score minus the second's, from -1 to 1. A
run is better or worse if a sign-flip test rejects "no change", corrected over the
compared protocols (Holm 1979). The test is valid, because the members of a pair are
exchangeable under that hypothesis. A loss of ``LOSS`` (for a measure, see
``CellCounts.loss``) is excluded if the evidence against it reached 20 to 1: the wealth
of bets on "no such loss" grew 20-fold (``betting``). Both tests need a number of pairs
that was fixed beforehand, because a run that stopped because of its results is lucky or
unlucky.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, count, islice, product, repeat
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    runtime_checkable,
)

from cheesebench import tables
from cheesebench.amounts import number, per_hundred, percent, points, signed
from cheesebench.errors import ComparisonError
from cheesebench.records import (
    GOAL,
    CellCalls,
    CellKey,
    CellPlan,
    Measured,
    sets_until,
)
from cheesebench.statistics.betting import bets, wealth
from cheesebench.statistics.intervals import mean_limits, quantile, t_interval
from cheesebench.statistics.question import PASS_RATE, Scale, measured_scale
from cheesebench.statistics.sample import (
    Sample,
    SubjectRecords,
    SubjectScore,
    draw_sample,
)
from cheesebench.statistics.summary import (
    Leaderboard,
    ModelDifference,
    PairedComparison,
    Ranked,
)
from cheesebench.statistics.wording import doubts, odds, plural, untested

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Answer = Literal["better", "worse", "no loss", "undecided"]
#: The protocol, view and variant that two cells must share to be compared.
Place = tuple[str, str, str]

#: Name of a run in its own reports.
THIS_RUN = "this run"
#: Two-sided error probability.
ALPHA = 0.05
#: Maximum number of sign flips. Up to 13 differences, all flips are tried. For more
#: differences, this number of flips is drawn, unless they all have one size: then the
#: number of plus signs is binomial. Where no drawn flip reaches the sum, Hoeffding's
#: bound counts if it is smaller.
MOST_FLIPS = 9999
#: Signs are drawn at random for the largest differences, up to this number of them. A
#: normal draw approximates the sum of the others.
FLIPPED = 1000
#: ``NO_AGENT`` stands for the agent if a program acts by itself. ``SETTING`` is the
#: prefix of the name of an agent's setting.
NO_AGENT, SETTING = "none: a program", "setting "
REVISION = "git revision"
UNMEASURED = "No trial that counts was measured."
UNPAIRED = "No subject was measured in both runs."
#: The loss of pass rate that the answer "no loss" excludes.
LOSS = 0.3
#: The loss that "no loss" excludes for a measure, as a multiple of its margin. It is at
#: most half of the measure's range, unless the margin alone is larger.
LOSS_IN_MARGINS = 3
#: A larger share of replies that named no action may be why a run is worse: a gate then
#: says so, and ``bless`` warns.
SILENT = 0.05


Subjects = Mapping[int, SubjectScore]
Pair = tuple[SubjectScore, SubjectScore]
#: Two cells whose subjects are pairs.
Cells = tuple["CellCounts", "CellCounts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """One cell for a comparison: the properties that two cells must share to be paired,
    and the subjects by number.
    """

    model: str
    protocol: str
    view: str
    variant: str
    title: str
    sha256: str
    design: str
    trials: int
    """Number of planned trials of each subject."""
    estimand: str
    subjects: Subjects
    agent: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    measured: Measured | None = None
    """The compared measure; None for the pass rate. Margin and animals' value are in
    its unit.
    """
    margin: float = 0.0
    animals: float = 0.0
    sequential: bool = False
    """Whether the number of subjects depended on the results."""
    doubts: tuple[str, ...] = ()
    """Doubts about the numbers, in the words of reports: replies that are not answers,
    and missing trials.
    """
    silent: tuple[int, int] = (0, 0)
    """In the trials that count: the number of replies that named no action, and of all
    replies that should. Both are 0 without a model, and in older baselines.
    """
    untested: str = ""
    """Why nothing was measured (the model never acted, or no trial could be run); empty
    if something was measured or no cause is known.
    """

    @property
    def is_silent(self) -> bool:
        """Whether many of the replies that should name an action name none."""
        return _share(self.silent) > SILENT

    @property
    def nothing(self) -> str:
        """Why the cell has no result to compare, or "" if it has one."""
        scored, missing = (
            sum(getattr(one, name) for one in self.subjects.values())
            for name in ("scored", "missing")
        )
        if not scored:
            return self.untested or UNMEASURED
        if missing <= scored or self.sequential:
            return ""
        were = "was" if scored == 1 else "were"
        return f"Only {scored} of {scored + missing} trials that count {were} measured."

    @property
    def compared(self) -> Subjects:
        """The subjects, if the cell has a result."""
        return {} if self.nothing else self.subjects

    @property
    def least_subjects(self) -> int:
        """Number of pairs that suffices to exclude the loss if nothing has changed."""
        return next(n for n in count(2) if excludes_loss([0.0] * n, self.loss))

    @property
    def loss(self) -> float:
        """The loss of score that must be excluded."""
        if self.measured is None:
            return LOSS
        own = self.margin / abs(self.scale.unit)
        # A loss of more than half of the range is never acceptable, unless the margin
        # is that wide.
        return max(own, min(LOSS_IN_MARGINS * own, 0.5))

    @property
    def control(self) -> tuple[str, str] | None:
        """The variant of the control's plain cell, and the name of the control; None
        for a plain cell.
        """
        plain, found, name = f",{self.variant}".partition(",control=")
        return (plain[1:], name) if found else None

    @property
    def scale(self) -> Scale:
        """The scale that converts between the compared unit and scores."""
        return PASS_RATE if self.measured is None else measured_scale(self.measured)

    @property
    def alike(self) -> bool:
        """Whether the model nearer to the animals' mean is the better one (``better:
        alike``).
        """
        return self.measured is not None and self.measured.better == "alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """A run, or a baseline made from one, for comparison. ``name`` identifies it in
    messages.
    """

    name: str
    seed: object
    cells: tuple[CellCounts, ...]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Provenance of the run: ``run_id``, ``created``, ``versions``, ``git``,
    ``options``, ``plugins``.
    """

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(cell.model for cell in self.cells))

    @property
    def is_sequential(self) -> bool:
        return any(cell.sequential for cell in self.cells)


def count_cell(
    plan: CellPlan,
    trials: Iterable[SubjectRecords],
    calls: CellCalls | None = None,
    causes: Sequence[str] = (),
) -> CellCounts:
    """Return the counts of a cell. ``trials`` yields the trials of each subject, in
    ascending order of the subjects. They are not kept in memory.

    ``calls`` are the totals of the cell's calls to a model, or None if it made none.
    ``causes`` explain why trials could not be run. A model that never acted has not
    been tested, so it has no subjects to compare.
    """
    sample, measured = draw_sample(plan, trials), plan.measured
    counts = calls.counts if calls and calls.counts else sample.tally.agent_counts()
    never_acted = untested(counts, calls)
    return CellCounts(
        model=plan.model,
        protocol=plan.protocol,
        view=plan.view,
        variant=str(plan.variant),
        title=plan.title,
        sha256=plan.sha256,
        design=plan.design,
        trials=plan.trials,
        estimand=plan.estimand,
        # A cell of a single set cannot be stopped by its result.
        sequential=plan.sequential and len(sets_until(plan.subjects)) > 1,
        agent=plan.agent,
        settings=plan.settings,
        subjects={} if never_acted else sample.by_number(),
        measured=measured,
        margin=plan.margin if measured else 0.0,
        animals=plan.reference.value if measured and plan.reference else 0.0,
        doubts=() if never_acted else _doubts_of(plan, sample, calls, causes),
        silent=_silent(sample.tally.agent_counts()),
        untested=never_acted or _unmeasured(sample, causes),
    )


def _doubts_of(
    plan: CellPlan, sample: Sample, calls: CellCalls | None, causes: Sequence[str]
) -> tuple[str, ...]:
    """Return doubts about a cell's numbers and, if trials are missing, the first
    cause.
    """
    if not sample.per_subject:
        return ()
    not_run = 0 if plan.sequential else sample.not_run
    missing, planned = sample.missing + not_run, sample.entered + not_run
    counts = sample.tally.agent_counts()
    # Only the replies in the compared trials are counted, which the reports say.
    found = doubts(plan, counts, calls, missing, planned, replies="replies")
    return (*found, *causes[:1]) if found and missing else found


def _share(silent: tuple[int, int]) -> float:
    none, replies = silent
    return none / max(1, replies)


def _silent(counts: Mapping[str, int]) -> tuple[int, int]:
    return counts.get("unparsed", 0), counts.get("calls", 0) - counts.get("notes", 0)


def _unmeasured(sample: Sample, causes: Sequence[str]) -> str:
    """Return why no trial was measured, or "" if a trial was measured or no cause is
    known.
    """
    if not causes or any(one.results for one in sample.per_subject):
        return ""
    return f"{UNMEASURED} Cause: {causes[0].rstrip('.')}."


def paired_differences(first: Subjects, second: Subjects) -> list[list[float]]:
    """Return the differences of subject means (first - second) over the distinct pairs.

    If trials are missing, and any pair has results in both runs, two more lists follow.
    In the first all missing trials count in favour of the first run, and in the second
    in favour of the second run. Only these lists include subjects without any result in
    one of the runs.
    """
    pairs = distinct_pairs(first, second)
    measured = [(a, b) for a, b in pairs if a.scored and b.scored]
    fills: list[tuple[bool | None, bool | None]] = [(None, None)]
    if any(one.missing for pair in pairs for one in pair):
        fills += [(True, False), (False, True)]
        pairs = [
            (a, b) for a, b in pairs if a.scored + a.missing and b.scored + b.missing
        ]
    return [
        [a.rate(x) - b.rate(y) for a, b in (measured if x is None else pairs)]
        for x, y in (fills if measured else fills[:1])
    ]


def distinct_pairs(first: Subjects, second: Subjects) -> list[Pair]:
    """Return the subjects that both runs have, in numerical order, without exact
    repeats of a pair.
    """
    known: set[tuple[str, str]] = set()
    pairs = []
    for subject in sorted(first.keys() & second.keys()):
        pair = first[subject], second[subject]
        digests = pair[0].digest, pair[1].digest
        if all(digests) and digests in known:
            continue
        known.add(digests)
        pairs.append(pair)
    return pairs


def compare_differences(
    possible: Sequence[Sequence[float]],
    *,
    seed: int,
    shown: Callable[[float], str] = lambda difference: f"{points(difference)} points",
    imagined: float = 0.0,
) -> PairedComparison:
    """Compare two runs. ``possible`` is the result of ``paired_differences``, or a
    weighted combination of several such results.

    ``shown`` formats a difference for the reason. ``imagined`` is the size of an
    imagined difference that counts against the answer (``imagined_pair``).
    """
    differences = possible[0]
    if not len(differences):
        return PairedComparison(reason=UNPAIRED)
    p_values = [
        paired_p_value(values, seed=seed, imagined=imagined) for values in possible
    ]
    answers = [_answer(values, p) for values, p in zip(possible, p_values, strict=True)]
    agreed = answers[0] if len(set(answers)) == 1 else "undecided"
    signs = {sum(values) > 0 for values in possible}
    mean = sum(differences) / len(differences)
    limits = t_interval(differences, imagined=imagined)
    reason = _reason(agreed, answers, shown(mean), len(differences))
    if agreed != "undecided" and limits and limits[0] <= 0 <= limits[1]:
        reason += " The interval has its own rule, about the mean, so it may contain 0: a few pairs could outweigh the others."
    return PairedComparison(
        answer=agreed,
        reason=reason,
        pairs=len(differences),
        difference=mean,
        interval=limits,
        p_value=p_values[0],
        p_worst=max(p_values) if len(signs) == 1 else 1.0,
    )


def paired_p_value(
    differences: Sequence[float], *, seed: int, imagined: float = 0.0
) -> float:
    """Return the two-sided p value of a sign-flip test. It is 1 for fewer than two
    differences.

    The null hypothesis is that the differences are symmetric about zero. With
    ``imagined``, the size of a difference that is added against the leading side, the
    null hypothesis is that the mean difference is zero. Then p is no smaller than by
    ``_rare_losses``: against many small gains, flips with one loss more are too few.
    """
    import numpy as np

    values = np.asarray(differences, dtype=float)
    # Sums are compared within rounding errors, so the unit must not matter.
    unit = float(np.abs(values).max(initial=imagined)) or 1.0
    values, imagined = values / unit, imagined / unit
    ahead = abs(float(values.sum())) - imagined
    # The sizes are sorted, so that the result depends neither on the order of pairs nor
    # on names.
    sizes = np.sort(np.append(np.abs(values), imagined))[::-1]
    sizes = sizes[sizes > 0]
    if len(values) < 2 or ahead <= 1e-12:
        return 1.0
    p_value = _tail_of_flips(sizes, ahead - 1e-9, seed)
    return max(p_value, _rare_losses(values / imagined)) if imagined else p_value


def _rare_losses(differences: NDArray[np.float64]) -> float:
    """Return how likely it is to see no more losses of the leading side than these, if
    losses of size 1 are as frequent as its mean gain would need to be worth nothing. A
    smaller loss counts with its square.
    """
    from scipy.special import betainc

    gains = differences * math.copysign(1, float(differences.sum()))
    count, losses = len(gains), float((gains[gains < 0] ** 2).sum())
    gain = (float(gains.sum()) + losses) / (count - losses)
    return float(betainc(count - losses, losses + 1, 1 / (1 + gain)))


def _tail_of_flips(sizes: NDArray[np.float64], reached: float, seed: int) -> float:
    """Return the share of signs with which the sum of ``sizes`` (largest first) is at
    least as far from zero as ``reached``. For many sizes, the share is estimated.
    """
    import numpy as np
    from scipy.special import bdtrc

    if sizes[0] - sizes[-1] < 1e-12:
        count = len(sizes)
        pluses = math.ceil((count + reached / sizes[0]) / 2)
        return float(min(1.0, 2 * bdtrc(pluses - 1, count, 0.5)))
    if 2 ** len(sizes) <= MOST_FLIPS:
        every = np.array(list(product((-1.0, 1.0), repeat=len(sizes))))
        return float((np.abs(every @ sizes) >= reached).mean())
    random = np.random.default_rng(seed)
    largest, rest = sizes[:FLIPPED], sizes[FLIPPED:]
    signs = random.choice(np.array([-1.0, 1.0]), (MOST_FLIPS, len(largest)))
    sums = signs @ largest + np.linalg.norm(rest) * random.standard_normal(MOST_FLIPS)
    farther = int((np.abs(sums) >= reached).sum())
    drawn = (1 + farther) / (1 + MOST_FLIPS)
    # Draws alone cannot show how small a p value is below 1 in 10,000, which many
    # comparisons need after Holm's correction. Hoeffding's inequality bounds it.
    bound = 2 * math.exp(-(reached**2) / (2 * float(sizes @ sizes)))
    return drawn if farther else min(drawn, bound)


def loss_evidence(differences: Sequence[float], loss: float) -> float:
    """Return the evidence for "the mean difference is above -loss": the largest growth
    of the wealth of bets on it.
    """
    import numpy as np

    halves = (1 + np.asarray(differences, dtype=float)) / 2
    if len(halves) < 2:
        return 1.0
    return float(wealth(bets(halves, (1 - loss) / 2)).max())


def excludes_loss(differences: Sequence[float], loss: float) -> bool:
    """Return whether the evidence against a loss reached the goal."""
    return loss_evidence(differences, loss) >= GOAL


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for multiple tests, in the order given (Holm 1979,
    Scand J Stat 6:65).
    """
    adjusted, highest = [0.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for left, index in zip(range(len(p_values), 0, -1), order, strict=True):
        highest = max(highest, min(1.0, left * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _answer(differences: Sequence[float], p_value: float) -> Answer:
    """Return the answer for paired differences (first - second) and their p value."""
    if p_value >= ALPHA:
        return "undecided"
    return "better" if sum(differences) > 0 else "worse"


def _reason(
    agreed: Answer, answers: Sequence[Answer], difference: str, pairs: int
) -> str:
    gap = f"Over {plural(pairs, 'paired subject')} the difference is {difference}"
    if agreed != "undecided":
        return f"{gap}, more than chance explains."
    if len(set(answers)) > 1:
        return f"{gap}, but the answer depends on missing trials."
    if 2 * 0.5**pairs >= ALPHA:
        return f"{gap}; so few pairs cannot distinguish two runs (at least six are needed)."
    return f"{gap}, which chance can explain."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellComparison(tables.Brief):
    """The comparison on one protocol in one view: first run minus second. Rates are
    means over the paired subjects' own rates.
    """

    protocol: str
    title: str
    answer: Answer
    """The answer. ``better`` and ``worse`` hold after Holm's correction over all
    compared protocols.
    """
    reason: str
    first_rate: float | None
    second_rate: float | None
    paired: PairedComparison
    adjusted_p: float | None
    """``paired.p_worst`` after Holm's correction; None without a pair."""
    subjects: tuple[int, int]
    """Number of subjects with a record in the first run, and in the second. A model
    that never acted has none.
    """
    missing: tuple[int, int]
    """Numbers of missing trials of the paired subjects, in the first and in the second
    run.
    """
    measure: str = ""
    """The compared measure, in whose unit all numbers are; empty for the pass rate."""
    loss: float = LOSS
    """The loss that ``no loss`` excludes: a proportion or, if there is a measure, a
    value in its unit.
    """
    evidence: float | None = None
    """The evidence against that loss, which decides between ``no loss`` and
    ``undecided``; None for other answers, and without a pair.
    """
    doubts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Doubts about the numbers of the first run, and about the numbers of the second.
    """
    silent: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    """Of the first run, and of the second: the number of replies that named no action
    in trials that count, and of all replies in them.
    """
    identical: bool
    """Whether the trials of every paired subject are exactly the same in both runs."""

    @property
    def rates(self) -> tuple[float | None, float | None]:
        return self.first_rate, self.second_rate

    @property
    def more_silent(self) -> float:
        """By how much the first run has the larger share of replies that named no
        action.
        """
        mine, theirs = map(_share, self.silent)
        return mine - theirs

    @property
    def is_silenced(self) -> bool:
        """Whether replies that named no action may be why the first run is worse: they
        are many, and a larger share than in the second run. How large the loss is does
        not matter, because a trial without an action goes on without calls: a few such
        replies can cost many trials.
        """
        return self.more_silent > 0 and _share(self.silent[0]) > SILENT

    @property
    def said(self) -> str:
        """The answer in words: ``no loss of 30 points``."""
        return self.excluded if self.answer == "no loss" else self.answer

    @property
    def excluded(self) -> str:
        """The answer that excludes a loss, in words."""
        return f"no loss of {number(self.loss) if self.measure else f'{per_hundred(self.loss)} points'}"

    @property
    def rule(self) -> str:
        """The rule by which the comparison is undecided, as a clause, or "" for other
        answers and without a pair.
        """
        if self.answer != "undecided" or self.evidence is None:
            return ""
        return f"'{self.excluded}' needs evidence of {odds(GOAL)}, and has {odds(self.evidence)}"

    @property
    def why(self) -> str:
        """The reason for the answer. If the answer is undecided, the rule is added."""
        return f"{self.reason} {self.rule}." if self.rule else self.reason

    @property
    def has_little_to_lose(self) -> bool:
        """Whether the second run succeeds so rarely that a loss could not be seen."""
        if self.measure or self.identical or self.answer in ("better", "worse"):
            return False
        return self.second_rate is not None and self.second_rate < self.loss

    def remarks(self, *names: str) -> tuple[str, ...]:
        """Return remarks on the subjects. ``names`` are the names of both runs."""
        lost = [
            f"{count} missing in {name}"
            for count, name in zip(self.missing, names, strict=True)
            if count
        ]
        return (*lost, *(["identical"] if self.identical else []))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelComparison(tables.Brief):
    """The comparison of a model of the first run with a model of the second, in one
    view (and variant), over all shared protocols.
    """

    first_model: str
    second_model: str
    view: str
    variant: str
    overall: PairedComparison
    """The comparison over all protocols, equally weighted. This is a separate test."""
    cells: tuple[CellComparison, ...]
    adjusted_p: float | None = None
    """``overall.p_worst`` after Holm's correction over all pairs of models of one run;
    None if two runs are compared.
    """

    @property
    def names(self) -> tuple[str, str]:
        return self.first_model, self.second_model

    def whose(self, in_view: bool, names: Sequence[str] = ()) -> str:
        """Return the names (default: the names of both models), with view and variant
        if ``in_view``.
        """
        who = " against ".join(dict.fromkeys(names or self.names))
        where = ", ".join(filter(None, (self.view, self.variant)))
        return f"{who} ({where})" if in_view else who

    @property
    def answers(self) -> tuple[Answer, ...]:
        return (self.overall.answer, *(cell.answer for cell in self.cells))

    @property
    def rated(self) -> tuple[CellComparison, ...]:
        """The protocols whose pass rate is compared, which the overall comparison
        covers.
        """
        return tuple(cell for cell in self.cells if not cell.measure)

    @property
    def missing(self) -> int:
        """Number of missing trials of the paired subjects, in both runs together."""
        return sum(sum(cell.missing) for cell in self.cells)

    @property
    def rates(self) -> tuple[float | None, float | None]:
        """Mean pass rates of the first and of the second run over the protocols for
        which both have results. If there are none, each mean is over the run's own
        protocols (None if these have no result).
        """
        own = [one for one in self.rated if one.paired.pairs] or self.rated
        first, second = (
            [rate for one in own if (rate := one.rates[side]) is not None]
            for side in (0, 1)
        )
        return (
            sum(first) / len(first) if first else None,
            sum(second) / len(second) if second else None,
        )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each protocol and, if several have a pass rate, one for the
        mean over these. ``RunComparison.rows`` says what the columns mean.
        """
        found = [
            (one.protocol, one.said, one.rates, one.paired, one.adjusted_p, one.reason)
            for one in self.cells
        ]
        if len(self.rated) > 1:
            whole = self.overall
            p = self.adjusted_p
            found.append(("all", self.said, self.rates, whole, p, whole.reason))
        for protocol, answer, rates, paired, adjusted, reason in found:
            low, high = paired.interval or (None, None)
            yield {
                "model": self.first_model,
                "other_model": self.second_model,
                "view": self.view,
                "variant": self.variant,
                "protocol": protocol,
                "verdict": answer,
                "reason": reason,
                "subjects": paired.pairs,
                "rate": rates[0],
                "reference": rates[1],
                "difference": paired.difference,
                "difference_low": low,
                "difference_high": high,
                "p_value": paired.p_worst,
                "p_holm": adjusted,
            }

    @property
    def said(self) -> str:
        """The overall answer in words. If the mean decides nothing, but each pass rate
        excludes a loss, the answer is "no loss", too.
        """
        kept = [cell.said for cell in self.rated if cell.answer == "no loss"]
        is_kept = all(cell.answer in ("no loss", "better") for cell in self.rated)
        if self.overall.answer == "undecided" and kept and is_kept:
            return kept[0]
        return self.overall.answer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunComparison(tables.Tabular):
    """The comparison of two runs, or of the models of one. Each answer describes the
    first of two runs or models.
    """

    first: str
    second: str
    models: tuple[ModelComparison, ...]
    changed: tuple[tuple[str, str, str], ...]
    """Other differences between the runs. Each has a name, the value in the first run,
    and the value in the second.
    """
    stopped: tuple[str, ...] = ()
    """Names of the runs that stopped because of their results."""
    not_run: tuple[str, ...] = ()
    """Parts that only the second run has (protocol and view, or a model)."""
    unseen: tuple[str, ...] = ()
    """Parts that only the first run has (protocol and view, or a model): a loss there
    would go unnoticed.
    """
    decision: str = ""
    """The effect on the session and its reason, in a sentence. Empty if there is none
    (``cheesebench compare``).
    """
    gate: str = ""
    """What the session's gate says: GREEN, RED, INTERRUPTED or COULD NOT RUN; empty
    without a gate.
    """
    remedy: str = ""
    """The remedy, in a sentence or two, with its commands in backticks; empty if none
    is needed.
    """

    @property
    def cells(self) -> Iterator[tuple[ModelComparison, CellComparison]]:
        """All protocols that were compared, each with its model."""
        return ((model, cell) for model in self.models for cell in model.cells)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Descriptions of the parts that only one of the runs has."""
        return (
            *(f"{what}: only in {self.first}" for what in self.unseen),
            *(
                f"{cell.subjects[0] - cell.subjects[1]} of {cell.subjects[0]} subjects on {cell.protocol}: only in "
                f"{self.first}"
                for _, cell in self.cells
                if cell.subjects[0] > cell.subjects[1]
            ),
            *(f"{what}: only in {self.second}" for what in self.not_run),
        )

    @property
    def other_settings(self) -> list[tuple[str, str, str]]:
        """The settings of language models that differ. Each has a name, the value in
        the first run, and the value in the second.
        """
        return [
            (name.removeprefix(SETTING), first, second)
            for name, first, second in self.changed
            if name.startswith(SETTING) or name == "agent"
            if NO_AGENT not in (first, second)
        ]

    def keys(self, side: int) -> set[CellKey]:
        """Return the compared cells of the first run (0), or of the second (1)."""
        return {
            (model.names[side], cell.protocol, model.view, model.variant)
            for model, cell in self.cells
        }

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each compared protocol, and one for the mean of several pass
        rates (``all``).

        * ``model`` and ``other_model``, ``view``, ``variant``, ``protocol``: what is
          compared. ``verdict``: the answer about ``model``, with its ``reason``.
        * ``rate`` and ``reference``: the means of ``model`` and of ``other_model`` over
          the paired ``subjects``, if there are any.
        * ``difference``: the rate minus the reference. ``difference_low`` to
          ``difference_high`` is its 95 % interval.
        * ``p_value``: the largest p value of this row that missing trials could have
          given. ``p_holm``: the same after Holm's correction, which decides between
          better and worse. The correction is over the protocols or, for the models of
          one run, over all comparisons. It is None for the row ``all`` of two runs,
          where ``p_value`` decides.
        """
        return [row for model in self.models for row in model.rows()]

    def __str__(self) -> str:
        who = [(model, model.whose(self._several)) for model in self.models]
        named = len(who) > 1 or any(len(set(model.names)) > 1 for model, _ in who)
        lines = [
            f"{row['verdict']}: {row['protocol']}{f' ({name})' if named else ''}: {row['reason']}"
            for model, name in who
            for row in model.rows()
        ]
        return "\n".join([*lines, *self.told])

    @property
    def told(self) -> tuple[str, ...]:
        """The warnings, what only the second run has, and why an interval is wide."""
        alone = (f"Only in {self.second}: {', '.join(self.not_run)}.",)
        return (*self.warnings, *(alone if self.not_run else ()), *self._wide())

    def _wide(self) -> Iterator[str]:
        """Yield a sentence on the intervals of differences that are as large as any can
        be.
        """
        found = dict.fromkeys(
            cell.protocol
            for _, cell in self.cells
            if not cell.measure and abs(cell.paired.difference or 0) == 1
        )
        if found:
            yield (
                f"All pairs differ by 100 points on {', '.join(found)}: nothing shows how much other pairs may differ, so the "
                "interval is wide. Where differences vary a little, it may be much narrower."
            )

    @property
    def worse(self) -> bool:
        """Whether any model is worse, over all protocols or on one of them."""
        return any("worse" in model.answers for model in self.models)

    @property
    def undecided(self) -> bool:
        """Whether a protocol is undecided, nothing was compared, or the second run
        lacks a part of the first.
        """
        answers = [cell.answer for _, cell in self.cells]
        return not answers or "undecided" in answers or bool(self.unseen)

    @property
    def warnings(self) -> list[str]:
        """Sentences on what a comparison without a loss does not cover."""
        return [*self.not_compared, *self.doubtful]

    @property
    def not_compared(self) -> list[str]:
        """A sentence on the parts that the second run lacks, if any."""
        if not self.unseen:
            return []
        what = ", ".join(self.unseen)
        return [
            f"{self.second} does not have {what}: a loss there would not be seen. Compare with a run that has "
            f"{'it' if len(self.unseen) == 1 else 'them'}."
        ]

    @property
    def doubtful(self) -> list[str]:
        """Sentences on comparisons whose numbers may mislead."""
        second, found = self.second, list(self._doubts())
        if alike := self._with_itself():
            found.append(
                f"{second} is compared with itself ({', '.join(alike)}), so nothing can differ. To compare the models of "
                "one run, give only this run."
            )
        for name in self.stopped:
            found.append(
                f"{name} has the design 'sequential', which stops when its results decide, so its rates are biased; compare "
                "runs of the design 'cohort'."
            )
        low: dict[str, list[str]] = {}
        for model, cell in self.cells:
            if cell.second_rate is not None and cell.has_little_to_lose:
                who = f"{model.second_model} in {second}"
                place = ", ".join(filter(None, (cell.protocol, model.variant)))
                low.setdefault(who, []).append(f"{place} ({percent(cell.second_rate)})")
        for who, where in low.items():
            rarely = f"{who} rarely succeeds on {', '.join(dict.fromkeys(where))}"
            found.append(
                f"{rarely}: it has little to lose there, and a model that does nothing may not show as worse."
            )
        return found

    def _with_itself(self) -> list[str]:
        """Return the models whose own trials are on both sides."""
        found = [
            one.first_model
            for one in self.models
            if self.first == self.second and len(set(one.names)) == 1
            if all(cell.identical for cell in one.cells)
        ]
        return list(dict.fromkeys(found))

    def _doubts(self) -> Iterator[str]:
        runs = self.first, self.second
        for model, cell in self.cells:
            for name, who, doubtful in zip(runs, model.names, cell.doubts, strict=True):
                # The decision may have named the cause already.
                new = [one for one in doubtful if one not in self.decision]
                if new:
                    yield f"{cell.protocol} of {who} in {name} is doubtful in the trials that count: {'; '.join(new)}."

    @property
    def losses(self) -> Iterator[tuple[str, str, str]]:
        """Yield the losses. Each has a title, a protocol (empty for all together) and a
        reason.
        """
        for model, who in self._who():
            title = f"worse than {self.second}: {who} on"
            yield from (
                (f"{title} {c.protocol}", c.protocol, c.reason)
                for c in model.cells
                if c.answer == "worse"
            )
            # With a single protocol, the overall answer would only repeat it.
            if model.overall.answer == "worse" and len(model.rated) > 1:
                yield f"{title} all protocols together", "", model.overall.reason

    @property
    def open_questions(self) -> Iterator[tuple[str, str, str]]:
        """Yield the undecided comparisons, and the parts that the second run lacks.
        Each has a title, a protocol (empty for the parts) and a reason.
        """
        title = f"not known to be as good as {self.second}"
        for model, who in self._who():
            yield from (
                (f"{title}: {who} on {c.protocol}", c.protocol, c.why)
                for c in model.cells
                if c.answer == "undecided"
            )
        for reason in self.not_compared:
            yield title, "", reason

    def _who(self) -> Iterator[tuple[ModelComparison, str]]:
        """Yield each model with its name (and view and variant, if these differ)."""
        for model in self.models:
            yield model, model.whose(self._several, [model.first_model])

    @property
    def _several(self) -> bool:
        """Whether there are several views, or variants."""
        return len({(model.view, model.variant) for model in self.models}) > 1


@runtime_checkable
class ComparisonReporter(Protocol):
    """Optional interface of a reporter that can render comparisons, for ``cheesebench
    compare`` and ``--compare``.
    """

    def render_comparison(self, comparison: RunComparison) -> str: ...


def compare_runs(
    first: CountedRun,
    second: CountedRun | None = None,
    *,
    models: tuple[str | None, str | None] = (None, None),
    protocols: Sequence[str] = (),
) -> RunComparison:
    """Compare two runs of the same protocols with the same seed, subject by subject.

    Models of the same name are compared. If each run has only one model, these two are
    compared. ``models`` selects a model by name in either run, ``protocols`` restricts
    what is compared. Sampled sign flips (beyond 13 pairs) use the run's seed.

    Without ``second``, every two models of the run are compared (or only the two
    ``models``), without their controls, and Holm's correction is over all of these
    comparisons. A single model is compared with each of its controls.

    Raises:
        ComparisonError: If subjects cannot be paired (seeds, protocols or judged trials
            differ), nothing is left to compare, or a run lacks a selected model or
            protocol.
    """
    seed = first.seed if isinstance(first.seed, int) else 0
    if second is None:
        pairs = _own_pairs(first, models, protocols)
        return RunComparison(
            first=first.name,
            second=first.name,
            models=_family(_by_models(pairs), seed, first.name),
            stopped=(first.name,) if first.is_sequential else (),
            changed=_changes(first, first, pairs),
        )
    pairs, only = match_runs(first, second, models=models, protocols=protocols)
    return RunComparison(
        first=first.name,
        second=second.name,
        models=_each(_by_models(pairs), seed, (first.name, second.name)),
        stopped=tuple(run.name for run in (first, second) if run.is_sequential),
        not_run=tuple(what for what, side in only if side == 1),
        unseen=tuple(what for what, side in only if side == 0),
        changed=_changes(first, second, pairs),
    )


def _by_models(pairs: Iterable[Cells]) -> list[list[Cells]]:
    groups: dict[tuple[str, str, str, str], list[Cells]] = {}
    for a, b in pairs:
        groups.setdefault((a.model, b.model, a.view, a.variant), []).append((a, b))
    return list(groups.values())


def _own_pairs(
    run: CountedRun, models: tuple[str | None, str | None], protocols: Sequence[str]
) -> list[Cells]:
    """Return the pairs of cells of every two models of a run, or of the two ``models``.
    One model is paired with its controls. Raise the errors of ``compare_runs``.
    """
    chosen = _choose(run, None, protocols)
    for model in models:
        _choose(run, model, ())
    named = list(dict.fromkeys(one for one in models if one)) or run.models
    pairs = list(_every_two(chosen, named))
    if len(named) == 1:
        pairs = list(_with_controls(_choose(chosen, named[0], ())))
    if len(named) < 2 and not pairs:
        raise ComparisonError(
            f"Within one run, two models are needed, or one with a control: {run.name} has "
            f"{', '.join(run.models) or 'no model'}. Give a second run, or two models."
        )
    _check(run, run, pairs)
    return pairs


def _every_two(run: CountedRun, models: Sequence[str]) -> Iterator[Cells]:
    """Yield the pairs of plain cells of every two models. Nobody asks whether the
    controls of two models differ, and a test of it would weaken the others.
    """
    plain = replace(run, cells=tuple(one for one in run.cells if one.control is None))
    for one, other in combinations(models, 2):
        mine, theirs = _places(plain, one), _places(plain, other)
        yield from ((mine[at], theirs[at]) for at in mine if at in theirs)


#: Begins the control's part of the name that a control has in a comparison.
_CONTROL = " (control="


def _with_controls(run: CountedRun) -> Iterator[Cells]:
    """Yield each plain cell with each of its controls, whose model has the name of the
    control, too.
    """
    plain = {(one.protocol, one.view, one.variant): one for one in run.cells}
    for cell in run.cells:
        if cell.control is not None:
            variant, control = cell.control
            name = f"{cell.model}{_CONTROL}{control})"
            if own := plain.get((cell.protocol, cell.view, variant)):
                yield own, replace(cell, model=name)


def match_runs(
    first: CountedRun,
    second: CountedRun,
    *,
    models: tuple[str | None, str | None] = (None, None),
    protocols: Sequence[str] = (),
) -> tuple[list[Cells], list[tuple[str, int]]]:
    """Return the pairs of cells that two runs share, and the names of the parts that
    only one run has, each with the number of that run (0 or 1). Raise the errors of
    ``compare_runs``.

    The function uses no subjects, so it accepts a run that has not begun.
    """
    chosen = [
        _choose(run, model, protocols)
        for run, model in zip((first, second), models, strict=True)
    ]
    matched = _match_models(*chosen)
    pairs: list[Cells] = []
    only: list[tuple[str, int]] = []
    for one, other in matched:
        mine, theirs = _places(chosen[0], one), _places(chosen[1], other)
        pairs += [(mine[place], theirs[place]) for place in mine if place in theirs]
        only += [(_where(place), 0) for place in mine if place not in theirs]
        only += [(_where(place), 1) for place in theirs if place not in mine]
    for side, run in enumerate(chosen):
        seen = {pair[side] for pair in matched}
        if first is not second:
            only += [(model, side) for model in run.models if model not in seen]
    _check(first, second, pairs)
    return pairs, only


def _choose(run: CountedRun, model: str | None, protocols: Sequence[str]) -> CountedRun:
    """Return a run with only this model and these protocols. All are kept if none is
    given. Raise ComparisonError for a name that the run does not have.
    """
    known = {
        "model": run.models,
        "protocol": list(dict.fromkeys(cell.protocol for cell in run.cells)),
    }
    wanted = [("model", model)] if model is not None else []
    for kind, name in [*wanted, *(("protocol", name) for name in protocols)]:
        if name not in known[kind]:
            raise ComparisonError(_unknown(run, kind, name, known[kind]))
    kept = (
        one
        for one in run.cells
        if model in (None, one.model) and (not protocols or one.protocol in protocols)
    )
    return replace(run, cells=tuple(kept))


def _unknown(run: CountedRun, kind: str, name: str, known: Sequence[str]) -> str:
    """Return what to say of a name that a run does not have."""
    plain, is_control, _ = name.partition(_CONTROL)
    if not is_control or plain not in known:
        return f"{run.name} has no {kind} '{name}', only {', '.join(known)}."
    return (
        f"{run.name} has '{name}' only as a control. To compare it with its model: "
        f"cheesebench compare {run.name} --first-model {plain}"
    )


def _match_models(first: CountedRun, second: CountedRun) -> list[tuple[str, str]]:
    here, there = first.models, second.models
    if len(here) == len(there) == 1:
        return [(here[0], there[0])]
    shared = [model for model in here if model in there]
    if shared:
        return [(model, model) for model in shared]
    for run in (first, second):
        if not run.cells:
            raise ComparisonError(
                f"{run.name} has no cells, so there is nothing to compare."
            )
    raise ComparisonError(
        f"{first.name} has {', '.join(here)} and {second.name} has {', '.join(there)}: no model is in both. Choose "
        "with --first-model and --second-model which to compare."
    )


def _places(run: CountedRun, model: str) -> dict[Place, CellCounts]:
    return {
        (cell.protocol, cell.view, cell.variant): cell
        for cell in run.cells
        if cell.model == model
    }


def _where(place: Place) -> str:
    protocol, *rest = place
    return f"{protocol} ({', '.join(filter(None, rest))})"


def _check(
    first: CountedRun,
    second: CountedRun,
    pairs: Sequence[Cells],
) -> None:
    """Raise ComparisonError if there is no pair, or (with all differences) unless the
    subjects of all pairs met the same trials.
    """
    if not pairs:
        raise ComparisonError(
            f"{first.name} and {second.name} have no protocol in the same view in common. Give two runs of the same protocols "
            "and views."
        )
    differences, what, remedy = list[str](), dict[str, str](), ""
    if first.seed != second.seed:
        what["seed"] = "seed"
        differences.append(
            f"the seed is {first.seed} in {first.name} and {second.seed} in {second.name}"
        )
    for a, b in pairs:
        if a.sha256 != b.sha256:
            what["protocol"] = "protocols"
            remedy = "; if a protocol has changed on purpose, bless the new run as the baseline"
            differences.append(
                f"the protocol {a.protocol} differs ({a.sha256[:8]} and {b.sha256[:8]})"
            )
        elif (a.trials, a.estimand) != (b.trials, b.estimand):
            what["trials"] = "design"
            differences.append(
                f"a subject of {a.protocol} has {plural(a.trials, 'trial')} in {first.name} (design {a.design}, "
                f"judged: {a.estimand}) and {b.trials} in {second.name} (design {b.design}, judged: {b.estimand})"
            )
    if differences:
        again = f"Run one of them again with the {' and '.join(what.values())} of the other{remedy}"
        if (smoke := _smoke(first, second, pairs)) and list(what) == ["trials"]:
            again = f"{smoke} is of the design smoke, which measures nothing: run it again without --design smoke"
        # Where no two subjects are pairs, no choice of protocols helps.
        shared = "seed" not in what and len(set(differences)) < len(pairs)
        select = "; or select shared protocols with --protocols" * shared
        raise ComparisonError(
            f"{first.name} and {second.name} cannot be compared, because their subjects are not pairs: "
            f"{'; '.join(dict.fromkeys(differences))}. {again[:1].upper()}{again[1:]}{select}."
        )


def _smoke(first: CountedRun, second: CountedRun, pairs: Sequence[Cells]) -> str:
    """Return the name of the run of the design ``smoke``, if only one is of it."""
    a, b = ({pair[side].design for pair in pairs} == {"smoke"} for side in (0, 1))
    return "" if a == b else first.name if a else second.name


class _Tests(NamedTuple):
    """The tests that Holm's correction covers: their number, and the noun for one of
    them (``protocol``).
    """

    number: int
    kind: str

    @property
    def least(self) -> int:
        """Smallest number of pairs with which all of these tests can be decided."""
        return next(n for n in count(1) if 2 * 0.5**n * self.number < ALPHA)

    def only_alone(self, answer: Answer, pairs: int) -> str:
        """Return the reason for an answer that does not hold after the correction."""
        said = f"Alone it would be {answer}, but not after correcting for {plural(self.number, self.kind)}"
        if pairs >= self.least:
            return f"{said}."
        return f"{said}, which takes at least {self.least} pairs, not {pairs}, unless others differ more clearly."


@dataclass(frozen=True, slots=True)
class _Tested:
    """The paired comparisons of two models' cells, before Holm's correction."""

    cells: Sequence[Cells]
    differences: Sequence[Sequence[Sequence[float]]]
    found: Sequence[PairedComparison]

    def model(
        self, adjusted: Sequence[float], tests: _Tests, seed: int
    ) -> ModelComparison:
        """Return the comparison, given the corrected p values of its cells."""
        first, second = self.cells[0]
        return ModelComparison(
            first_model=first.model,
            second_model=second.model,
            view=first.view,
            variant=first.variant,
            overall=_one_reason(self.found)
            or _overall(self.cells, self.differences, seed),
            cells=tuple(
                _cell(a, b, one, p, tests)
                for (a, b), one, p in zip(self.cells, self.found, adjusted, strict=True)
            ),
        )


def _tested(cells: Sequence[Cells], seed: int, runs: tuple[str, str]) -> _Tested:
    differences = [paired_differences(a.compared, b.compared) for a, b in cells]
    found = [
        compare_differences(own, seed=seed, shown=_shown(pair[1]))
        if own[0]
        else PairedComparison(reason=_unpaired(pair, runs))
        for pair, own in zip(cells, differences, strict=True)
    ]
    return _Tested(cells, differences, found)


def _each(
    groups: Sequence[Sequence[Cells]], seed: int, runs: tuple[str, str]
) -> tuple[ModelComparison, ...]:
    """Compare pairs of models. Holm's correction is over the cells of each pair."""
    tested = [_tested(cells, seed, runs) for cells in groups]
    return tuple(
        one.model(_adjusted(one.found), _Tests(len(one.found), "protocol"), seed)
        for one in tested
    )


def _family(
    groups: Sequence[Sequence[Cells]], seed: int, name: str
) -> tuple[ModelComparison, ...]:
    """Compare pairs of models of one run. Holm's correction is over the cells of all
    pairs; the overall answers are corrected for the number of pairs.
    """
    tested = [_tested(cells, seed, (name, name)) for cells in groups]
    every = [found for one in tested for found in one.found]
    tests, adjusted = _Tests(len(every), "comparison"), iter(_adjusted(every))
    models = [
        one.model(list(islice(adjusted, len(one.found))), tests, seed) for one in tested
    ]
    whole = _adjusted([one.overall for one in models])
    pairs = _Tests(len(models), "comparison")
    return tuple(map(_with_corrected, models, whole, repeat(pairs)))


def _with_corrected(model: ModelComparison, p: float, tests: _Tests) -> ModelComparison:
    """Return the comparison with an overall answer that is corrected for the pairs."""
    overall = model.overall
    if overall.answer != "undecided" and p >= ALPHA:
        alone = tests.only_alone(overall.answer, overall.pairs)
        overall = replace(overall, answer="undecided", reason=alone)
    known = None if overall.p_worst is None else p
    return replace(model, overall=overall, adjusted_p=known)


def _adjusted(comparisons: Sequence[PairedComparison]) -> list[float]:
    return holm([1.0 if one.p_worst is None else one.p_worst for one in comparisons])


def _one_reason(comparisons: Sequence[PairedComparison]) -> PairedComparison | None:
    """If no protocol has a pair, return an overall comparison with the reason that all
    protocols share. Return None if a protocol has a pair, or the reasons differ.
    """
    reasons = {one.reason for one in comparisons}
    if any(one.pairs for one in comparisons):
        return None
    if len(reasons) > 1:  # The first sentences say which run has no result.
        reasons = {one.partition(". ")[0] + "." for one in reasons}
    return PairedComparison(reason=reasons.pop()) if len(reasons) == 1 else None


def _cell(
    a: CellCounts,
    b: CellCounts,
    paired: PairedComparison,
    adjusted: float,
    tests: _Tests,
) -> CellComparison:
    pairs = distinct_pairs(a.subjects, b.subjects)
    first, second = _mean_rates((a.compared, b.compared), b.scale)
    answer = _nearer(paired.answer, b, first, second) if b.alike else paired.answer
    alone = ""
    if answer != "undecided" and adjusted >= ALPHA:
        alone, answer = tests.only_alone(answer, paired.pairs), "undecided"
    kept = _evidence(b, pairs) if answer == "undecided" and paired.pairs else None
    if kept is not None and kept >= GOAL:
        answer = "no loss"
    return CellComparison(
        protocol=a.protocol,
        title=a.title,
        answer=answer,
        reason=alone or paired.reason,
        evidence=kept,
        first_rate=first,
        second_rate=second,
        paired=_in_unit(paired, b.scale),
        measure="" if b.measured is None else b.measured.name,
        loss=b.loss * abs(b.scale.unit),
        adjusted_p=None if paired.p_worst is None else adjusted,
        subjects=(len(a.subjects), len(b.subjects)),
        missing=(sum(x.missing for x, _ in pairs), sum(y.missing for _, y in pairs)),
        doubts=(a.doubts, b.doubts),
        silent=(a.silent, b.silent),
        identical=_are_identical(pairs),
    )


def _are_identical(pairs: Sequence[Pair]) -> bool:
    alike = (x.digest and x._replace(distinct=y.distinct) == y for x, y in pairs)
    return bool(pairs) and all(alike)


def _unpaired(cells: Cells, runs: tuple[str, str]) -> str:
    """Return why two runs have no pair: which of them has no result, and why, or else
    ``UNPAIRED``.
    """
    found = [
        f"There is no result of {run}. {cell.nothing}"
        for run, cell in zip(runs, cells, strict=True)
        if cell.nothing
    ]
    return " ".join(found) or UNPAIRED


def _nearer(
    answer: Answer, b: CellCounts, first: float | None, second: float | None
) -> Answer:
    """Return the answer for a measure with ``better: alike``: better if the first run's
    mean is nearer to the animals' mean, unless the answer is undecided.
    """
    if answer == "undecided" or first is None or second is None:
        return answer
    return "better" if abs(first - b.animals) < abs(second - b.animals) else "worse"


def _evidence(b: CellCounts, pairs: Sequence[Pair]) -> float:
    """Return the evidence against the loss that must be excluded. Missing trials count
    as if they showed a loss.
    """
    planned = [
        (x, y) for x, y in pairs if x.scored + x.missing and y.scored + y.missing
    ]
    fallen = [x.rate(False) - y.rate(True) for x, y in planned]
    risen = [y.rate(False) - x.rate(True) for x, y in planned]
    # With ``better: alike``, a change in either direction is a loss.
    return min(loss_evidence(one, b.loss) for one in (fallen, risen)[: 1 + b.alike])


def _shown(b: CellCounts) -> Callable[[float], str]:
    """Return the function that formats a difference of scores in the compared unit."""
    if b.measured is None:
        return lambda score: f"{points(score)} points"
    name = b.measured.name
    return lambda score: f"{signed(b.scale.difference(score))} of {name}"


def _in_unit(paired: PairedComparison, scale: Scale) -> PairedComparison:
    if paired.difference is None:
        return paired
    interval = paired.interval and scale.differences(paired.interval)
    return replace(
        paired, difference=scale.difference(paired.difference), interval=interval
    )


def _mean_rates(
    runs: tuple[Subjects, Subjects], scale: Scale
) -> tuple[float | None, float | None]:
    """Return the means of both runs over the pairs with results in both. If there is no
    such pair, each mean is over the run's own subjects (None if these have no result).
    """
    both = [(a, b) for a, b in distinct_pairs(*runs) if a.scored and b.scored]
    sides = zip(*both, strict=True) if both else (run.values() for run in runs)
    first, second = (_mean(side, scale) for side in sides)
    return first, second


def _mean(subjects: Iterable[SubjectScore], scale: Scale) -> float | None:
    rates = [one.rate() for one in subjects if one.scored]
    return scale.value(sum(rates) / len(rates)) if rates else None


def _overall(
    group: Sequence[Cells],
    differences: Sequence[Sequence[Sequence[float]]],
    seed: int,
) -> PairedComparison:
    """Compare over all protocols: test the mean of their mean differences by flipping
    the signs of all pairs.

    The protocols are fixed, so the interval adds up the squared distances from their
    means to the limits (``mean_limits``). Protocols compared by a measure are left out,
    because their units differ.
    """
    possible = [
        one
        for (_, b), one in zip(group, differences, strict=True)
        if b.measured is None
    ]
    if not possible:
        return PairedComparison(
            reason="Each protocol is compared by a measure of its own, so there is no mean over them."
        )
    cells = [cell for cell in possible if cell[0]]
    found = compare_differences(_scenarios(cells), seed=seed)
    return _with_interval(found, [cell[0] for cell in cells])


def _scenarios(cells: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """Return the weighted differences of all cells over the recorded trials. If trials
    are missing, also return the differences with all missing trials counted in favour
    of the first run, and then of the second run.
    """
    most = max((len(cell) for cell in cells), default=1)
    return [
        _weighted([cell[number] if number < len(cell) else cell[0] for cell in cells])
        for number in range(most)
    ]


def _weighted(cells: Sequence[Sequence[float]]) -> list[float]:
    """Return all differences, scaled so that their mean is the mean of the protocols'
    means.
    """
    total = sum(len(values) for values in cells)
    return [
        value * total / (len(cells) * len(values))
        for values in cells
        for value in values
    ]


def _with_interval(
    found: PairedComparison, cells: Sequence[Sequence[float]]
) -> PairedComparison:
    if found.difference is None:
        return found
    estimates = [
        (sum(values) / len(values), *limits)
        for values in cells
        if (limits := t_interval(values))
    ]
    if len(estimates) < len(cells):
        return replace(found, interval=None)
    return replace(found, interval=mean_limits(estimates))


def _changes(
    first: CountedRun,
    second: CountedRun,
    pairs: Sequence[Cells],
) -> tuple[tuple[str, str, str], ...]:
    """Return the facts in which two runs differ, which may explain the answers. Each
    has a name, the value in the first run, and the value in the second.
    """
    before = _facts(first, [a for a, _ in pairs])
    after = _facts(second, [b for _, b in pairs])
    return tuple(
        (n, before.get(n, "-"), after.get(n, "-"))
        for n in _comparable(before, after)
        if before.get(n) != after.get(n)
    )


def _comparable(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    agents = {before.get("agent"), after.get("agent")}
    # A program has no settings of a language model.
    one_program = len(agents) == 2 and NO_AGENT in agents
    for name in dict.fromkeys((*before, *after)):
        # A revision that one run does not know is no difference.
        is_known = name != REVISION or (name in before and name in after)
        if is_known and not (one_program and name.startswith(SETTING)):
            yield name


#: The options of settings that have another name. Reports say what a person types.
_OPTIONS = {"max_tokens": "reply-tokens"}


def _facts(run: CountedRun, cells: Iterable[CellCounts]) -> dict[str, str]:
    plugins, versions, git = (
        entry if isinstance(entry := run.manifest.get(name), Mapping) else {}
        for name in ("plugins", "versions", "git")
    )
    facts = {f"plugin {name}": origin for name, origin in plugins.items()}
    facts |= {f"{name} version": value for name, value in versions.items()}
    if git:
        changed = " with changes" if git.get("dirty") else ""
        facts[REVISION] = f"{str(git.get('revision'))[:12]}{changed}"
    for cell in cells:
        facts |= {"model": cell.model, "agent": cell.agent or NO_AGENT}
        facts |= {
            f"{SETTING}{_OPTIONS.get(name, name)}": value
            for name, value in cell.settings.items()
        }
    return {name: str(value) for name, value in facts.items()}


#: Number of random sign vectors from which a leaderboard takes the quantile ``LEVEL``.
FLIPS = 4000
LEVEL = 0.95
#: Mean score of each subject if its missing trials count as failed, as passed, and not
#: at all.
Ratings = dict[int, tuple[float, float, float]]


def rank_models(cells: Iterable[tuple[CellPlan, Sample]]) -> tuple[Leaderboard, ...]:
    """Return a ranking for every view and variant with at least two models, if all of
    them have a protocol in common.

    Left out are cells without any result, cells judged by a measure with ``better:
    alike``, and protocols on which some model has no result from the common subjects.
    """
    places: dict[tuple[str, str], dict[str, dict[str, Ratings]]] = {}
    doubted = set[str]()
    for plan, sample in cells:
        alike = plan.measured is not None and plan.measured.better == "alike"
        if alike or not any(one.scored for one in sample.judged()):
            continue
        if plan.construct is None or plan.construct.status != "validated":
            doubted.add(plan.protocol)
        models = places.setdefault((plan.view, plan.series), {})
        models.setdefault(plan.model, {})[plan.protocol] = _ratings(sample)
    return tuple(_boards(places, doubted))


def _boards(
    places: Mapping[tuple[str, str], dict[str, dict[str, Ratings]]], doubted: set[str]
) -> Iterator[Leaderboard]:
    for (view, variant), models in places.items():
        shared = _shared([*models.values()])
        if len(models) > 1 and shared:
            scores = {
                name: [own[one] for one in shared] for name, own in models.items()
            }
            yield replace(
                _rank(view, variant, scores),
                not_validated=tuple(name for name in shared if name in doubted),
            )


def _shared(models: Sequence[dict[str, Ratings]]) -> list[str]:
    """Return the protocols on which every model has a score from at least one of the
    subjects that all models have.
    """
    found = []
    for name in sorted(set.intersection(*map(set, models))):
        ratings = [own[name] for own in models]
        common = set.intersection(*map(set, ratings))
        scores = ([own[number][2] for number in common] for own in ratings)
        if not any(all(map(math.isnan, own)) for own in scores):
            found.append(name)
    return found


def _ratings(sample: Sample) -> Ratings:
    return {
        number: (
            one.rate(False),
            one.rate(True),
            one.total / one.scored if one.scored else math.nan,
        )
        for number, one in enumerate(sample.judged())
        if one.scored + one.missing
    }


def _rank(view: str, variant: str, models: dict[str, list[Ratings]]) -> Leaderboard:
    import numpy as np

    names, protocols = list(models), len(next(iter(models.values())))
    pairs = list(combinations(range(len(names)), 2))
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    # For each protocol, the subjects that every model has.
    common = [
        sorted(set.intersection(*(set(own[at]) for own in models.values())))
        for at in range(protocols)
    ]
    # One array per protocol, with three axes: missing trials (counted as failed, as
    # passed, or not at all), models, and subjects.
    scores = [
        np.array([[own[at][s] for s in common[at]] for own in models.values()])
        .reshape(len(names), len(common[at]), 3)
        .transpose(2, 0, 1)
        for at in range(protocols)
    ]
    random, rows = np.random.default_rng(0), 2 * len(pairs)
    means, squares, flipped = np.zeros(rows), np.zeros(rows), np.zeros((rows, FLIPS))
    for failed, passed, _ in scores:
        # Missing trials count against the first model and for the other model, and then
        # the other way round.
        differences = np.concatenate(
            [failed[one] - passed[other], passed[one] - failed[other]]
        )
        count = differences.shape[1]
        centred = differences - differences.mean(axis=1, keepdims=True)
        means += differences.mean(axis=1) / protocols
        squares += (centred**2).sum(axis=1) / max(1, count - 1) / count / protocols**2
        flipped += (
            centred @ random.choice([-1.0, 1.0], (count, FLIPS)) / count / protocols
        )
    errors = np.sqrt(squares)
    largest = (np.abs(flipped) / np.where(errors > 0, errors, np.inf)[:, None]).max(
        axis=0
    )
    # Equal differences show no spread: allow for one more subject that differs
    # entirely.
    unseen = 1 / protocols / min(map(len, common))
    wanted = max(quantile((1 - LEVEL) / 2, None), float(np.quantile(largest, LEVEL)))
    half = wanted * np.sqrt(squares + unseen**2) + unseen
    low, high = (means - half)[: len(pairs)], (means + half)[len(pairs) :]
    # An entry of 1 says that the row's model is certainly better than the column's.
    better = np.zeros((len(names), len(names)), dtype=int)
    better[one, other], better[other, one] = low > 0, high < 0
    rates = np.mean([np.nanmean(own[2], axis=1) for own in scores], axis=0)
    ranked = [
        Ranked(
            model=name,
            rate=float(rates[at]),
            best_rank=1 + int(better[:, at].sum()),
            worst_rank=len(names) - int(better[at].sum()),
        )
        for at, name in enumerate(names)
    ]
    return Leaderboard(
        view=view,
        variant=variant,
        protocols=protocols,
        subjects=min(map(len, common)),
        models=tuple(sorted(ranked, key=lambda one: -one.rate)),
        differences=tuple(
            ModelDifference(
                first=names[a],
                second=names[b],
                difference=float(rates[a] - rates[b]),
                interval=(max(-1.0, float(least)), min(1.0, float(most))),
            )
            for (a, b), least, most in zip(pairs, low, high, strict=True)
        ),
    )
