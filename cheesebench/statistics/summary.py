"""Results of the statistics, as plain data. Reports only have to show them.

Rates are proportions, never percentages. Differences, bounds and margins are, too,
unless a verdict is about a measure: then they are in its unit. ``to_plain`` converts
every type to JSON values.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Literal

from cheesebench import tables
from cheesebench.interfaces import Value
from cheesebench.published import PublishedRow
from cheesebench.records import CellCalls, CellPlan, Variant
from cheesebench.statistics.ability import Ability, MeanAbility
from cheesebench.statistics.by_answer import ByAnswer
from cheesebench.statistics.outlook import Outlook

#: Possible outcomes of a trial, in the order of reports. ``unscored``: the protocol
#: declares no success. ``unparsed``: the trial failed, and no reply could be read.
#: ``truncated reply``: the trial failed, and every reply was cut off. ``not run``: the
#: run ended before the trial, or before the trial's subject.
TAXONOMY = (
    "success",
    "wrong choice",
    "timeout",
    "unparsed",
    "truncated reply",
    "unscored",
    "infrastructure",
    "budget",
    "not run",
)


_WHERE = r"(stopped in trial \d+: )?"
#: Patterns for causes of missing trials that a resumed run reads from its log, instead
#: of asking again, and what it keeps.
_KEPT = (
    (re.compile(f"{_WHERE}[0-9]+ empty replies in a row"), "empty replies"),
    (
        re.compile(
            f"{_WHERE}(bad request|context too long|content filter)(:| at call |, as recorded: )"
        ),
        "refused calls",
    ),
)


class Verdict(StrEnum):
    """The answer to the question of a cell. Usually this is: does the model do at least
    as well as the rodent, up to the margin?
    """

    PASS = "PASS"
    """The model is not worse than the animals by the margin: the evidence for this
    claim, which is the growth of the wealth of bets on it, is at least 20 to 1.
    """
    FAIL = "FAIL"
    """The model is worse by more than the margin: the evidence for this claim is at
    least 20 to 1.
    """
    INCONCLUSIVE = "INCONCLUSIVE"
    """The data do not decide, or no claim is made."""
    ERROR = "ERROR"
    """Nothing could be measured, the model never acted, or trials that could decide
    were lost to technical faults. This says nothing about the model.
    """


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One point of the learning curve: pass rate in a session, with its two-sided 95 %
    interval. In ``JudgedMean.curve``, ``rate`` is the mean of the measure.

    ``session`` counts from 1. If ``CellResult.curve_unit`` is not ``session``, it is
    the number of a group of trials.
    """

    session: int
    rate: float
    low: float
    high: float
    trials: int
    judged: bool = True
    """Whether any trial of the point enters the verdict."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A numeric or yes/no measure in ``n`` trials: the mean of the ``subjects``, each
    of which counts with the mean of its trials, and the standard deviation between them
    (None for one subject).
    """

    name: str
    mean: float
    sd: float | None
    n: int
    subjects: int


@dataclass(frozen=True, slots=True)
class ClassShares:
    """A categorical measure: the number of trials with each value. The most frequent
    comes first; equal counts are ordered by name.
    """

    name: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SplitRate:
    """The pass rate for one value of a variable that the protocol names in ``split``:
    ``passed`` of ``trials``.
    """

    variable: str
    value: Value
    passed: int
    trials: int


@dataclass(frozen=True, slots=True)
class ConditionCurve:
    """A measure under each value of a variable. The values are in rising order."""

    measure: str
    variable: str
    points: tuple[tuple[Value, Measure], ...]


@dataclass(frozen=True, slots=True)
class Flags:
    """Caveats about a result, which ``judge`` sets."""

    not_diagnostic: bool = False
    """The random agent's rate is at or above reference - margin, so a PASS says
    little.
    """
    this_subject_only: bool = False
    """There is only one distinct subject, so the interval concerns this subject, not
    the model.
    """
    duplicate_subjects: int = 0
    """Number of subjects that are exact copies of other subjects. They count in the
    rate, but not as further evidence.
    """
    memory_contradicted: bool = False
    """The agent declares no memory, but its subjects differ by more than chance."""
    stopped_by_result: bool = False
    """A sequential cell stopped because of its results, so its rate is biased."""
    goal_visible: bool = False
    """A rewarded place looks like no other square, so the goal can be seen (W311)."""
    reference_declared: bool = False
    """The reference has neither an interval nor a standard deviation between animals,
    so it is used as a constant.
    """
    analogy: bool = False
    """The source of the reference measured a different event from the protocol's
    success.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMean:
    """The measure that a verdict is about. Its mean is the mean of the subjects' means,
    in the measure's unit.
    """

    measure: str
    better: Literal["higher", "lower", "alike"]
    mean: float
    interval: tuple[float, float] | None
    """Two-sided interval of at least 95 %, whatever values missing trials would have
    had; None for one distinct subject.
    """
    sd: float | None
    """Standard deviation between subjects; None for one subject."""
    subjects: int
    """Number of subjects with a value."""
    without: int = 0
    """Number of subjects that were run but have no value in any trial. The mean does
    not include them.
    """
    curve: tuple[CurvePoint, ...] = ()
    """The mean of the measure by session, in its unit. All trials count that the
    reference covers.
    """
    curve_unit: str = "session"
    """See ``CellResult.curve_unit``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """State of a cell's two betting games (``betting``). Wealth is given as a multiple
    of the initial wealth.
    """

    passing: float = 0.0
    """Largest wealth of the PASS game."""
    failing: float = 0.0
    """Largest wealth of the FAIL game."""
    passing_at_stop: float = 0.0
    """Wealth of the PASS game where the cell stops: a sequential cell when it is
    decided or stale, other cells after all subjects.
    """
    failing_at_stop: float = 0.0
    goal: float
    """The growth of wealth that a verdict needs."""
    verdict: Verdict | None = None
    """PASS or FAIL; None if neither game has reached the goal."""
    decided: int | None = None
    """Number of subjects after which a game reached the goal; None if neither did."""
    stale: bool = False
    """Whether a sequential cell stopped because no bet had ever doubled its wealth."""
    subjects: int
    """Number of subjects that count: in a sequential cell, all subjects up to the end
    of the set that decided, or else of the last set so far.
    """
    most: int
    """Planned number of subjects."""
    sequential: bool = False
    outlook: Outlook | None = None
    """Forecast for more subjects; None if the cell is decided or stale, or the subjects
    seen so far allow none.
    """
    beyond: int = 0
    """Number of further subjects that have begun, but do not count."""

    @property
    def over(self) -> bool:
        """Whether the cell is decided, or stale."""
        return self.verdict is not None or self.stale

    @property
    def p_value(self) -> float:
        """P value of the claim with the larger wealth. It is valid however often the
        cell is judged.
        """
        return min(1.0, 1 / max(self.passing, self.failing, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellResult(tables.Brief):
    """A judged cell: a model on a protocol in a view.

    Counts of trials cover the trials that enter the estimand. Exact copies of subjects
    are included, but narrow no interval.
    """

    plan: CellPlan
    verdict: Verdict | None
    """None for a control, which tests no claim, unless it is an ERROR."""
    reason: str
    """The reason for the verdict: plain sentences for readers who see a verdict for the
    first time.
    """
    n_text: str
    """Sample size in words: ``10 subjects x 20 trials (200/200 valid)``."""
    subjects: int = 0
    """Number of subjects with a trial that was run or tried, copies included."""
    planned: int = 0
    """Number of trials that should enter the estimand: valid + missing."""
    valid: int = 0
    passed: int = 0
    missing: int = 0
    rate: float | None = None
    """Mean of the subjects' own pass rates; None without a valid trial."""
    interval: tuple[float, float] | None = None
    """Two-sided interval of at least 95 %. If trials are missing, it holds whether they
    would have failed or passed. None without a rate.
    """
    interval_method: str = ""
    """The method by which the interval was computed."""
    standard_error: float | None = None
    """Standard error: the standard deviation of the subjects' pass rates divided by the
    root of their number; None for one subject. ``interval`` is wider, because it holds
    at any number of subjects.
    """
    icc: float | None = None
    """Observed intraclass correlation of the subjects' trials (one-way ANOVA, from 0 to
    1); None with one subject.
    """
    judged: JudgedMean | None = None
    """The measure that the verdict concerns; None for a pass rate, and without a value.
    With a measure, the differences and the plan's margin are in its unit.
    """
    difference: float | None = None
    """Difference model - reference (or chance, if the verdict is about chance), of the
    pass rate or of the measure in ``judged``; None without a value, or if the cell
    makes no claim.
    """
    difference_low: float | None = None
    """One-sided 5 % lower bound of the difference, at any number of subjects. With
    ``--familywise``, the 5 % are divided by the number of cells that are judged
    together. None without a difference.
    """
    difference_high: float | None = None
    """One-sided upper bound of the difference, at the same level; None without a
    difference.
    """
    superior: bool = False
    """Whether the verdict is PASS, and even the worse bound is better than a reference
    that has an interval of its own. Never true for ``better: alike``.
    """
    open_zones: tuple[tuple[float, float], ...] = ()
    """Ranges of the rate (or mean) in which no number of subjects decides, because the
    animals are only a sample; empty if the reference is a constant, or the cell makes
    no claim.
    """
    subjects_needed: int | None = None
    """Number of subjects that would decide an INCONCLUSIVE cell in 4 of 5 cases. It is
    None for other verdicts, for a stale cell, for a single distinct subject, and if no
    number up to the forecast's limit would.
    """
    game: Game | None = None
    """State of the betting games; None if the cell makes no claim."""
    ability: Ability | None = None
    """Model, animals and bar on the ability scale, from 0 (without the ability) to 1
    (ideal); None if no zero of the scale is proved, or the verdict is about a measure.
    """
    answers: tuple[ByAnswer, ...] = ()
    """Subjects grouped by the answer that each was given for life."""
    flags: Flags = field(default_factory=Flags)
    curve: tuple[CurvePoint, ...] = ()
    curve_unit: str = "session"
    """``session``, or for example ``5 trials`` if the whole life is one session. It is
    the unit of ``judged.curve`` if there is no ``curve``.
    """
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Number of trials by outcome (all of ``TAXONOMY`` with zeros, and ``run anew`` if
    it occurs). The numbers add up to ``planned``.
    """
    raw_outcomes: Mapping[str, int] = field(default_factory=dict)
    """Number of trials by outcome, under the protocol's own names. The most frequent
    comes first.
    """
    measures: tuple[Measure, ...] = ()
    """The protocol's own numeric measures. In blocks without a judged trial, their
    names contain the block, as in ``latency in probe``.
    """
    conditions: tuple[ConditionCurve, ...] = ()
    """Measures that the protocol reports ``by`` a variable, if the variable took from 2
    to 50 values.
    """
    agent_counts: Mapping[str, int] = field(default_factory=dict)
    """The agent's own counters (``unparsed``, ...), summed over the trials."""
    calls: CellCalls | None = None
    """Totals of the cell's calls to the model; None without calls."""
    classes: tuple[ClassShares, ...] = ()
    """The protocol's own measures whose values are names."""
    splits: tuple[SplitRate, ...] = ()
    """Pass rate by the variables that the protocol names in ``split``. Their values are
    in rising order.
    """
    strategy: tuple[Measure, ...] = ()
    """Measures of the agent's movement, the same for every protocol."""
    warnings: tuple[str, ...] = ()
    """Reasons to doubt the numbers, whatever the verdict, such as replies without an
    answer, or missing trials.
    """
    causes: tuple[str, ...] = ()
    """Causes of trials that could not be run, in the words of the errors. The most
    frequent comes first.
    """
    contradicted: tuple[str, ...] = ()
    """Contradictions between lesions and the construct, one sentence each. A control
    cell has its own contradiction, and a plain cell has the contradictions of its
    controls.
    """
    remarks: tuple[str, ...] = ()
    """Facts that a reader of the verdict must know: trials run anew, impossible
    results.
    """

    @property
    def is_undecided(self) -> bool:
        """Whether the cell has neither a PASS, a FAIL nor an ERROR."""
        return self.verdict in (None, Verdict.INCONCLUSIVE)

    @property
    def is_unfinished(self) -> bool:
        """Whether the cell's numbers are no result: it is an ERROR, or it is undecided,
        not sequential, and most of its trials are missing.
        """
        few = not self.plan.sequential and 2 * self.missing > self.planned
        return self.verdict is Verdict.ERROR or (self.is_undecided and few)

    @property
    def worst_case(self) -> str:
        """How to read the bounds of a decided cell with missing trials, or "". They may
        contradict the verdict, which was reached without these trials.
        """
        is_decided = self.verdict in (Verdict.PASS, Verdict.FAIL)
        if not (is_decided and self.missing) or self.difference_low is None:
            return ""
        return "With missing trials, the bounds of a difference are a worst case and do not decide; the evidence does."

    @property
    def is_cut_off(self) -> bool:
        """Whether a resumed run would continue the cell, which the budget or Ctrl-C
        stopped. A sequential cell that is decided needs no more subjects.
        """
        needs_more = self.verdict is Verdict.INCONCLUSIVE or not self.plan.sequential
        is_cut = self.outcomes.get("budget") or (
            self.outcomes.get("not run") and not self.has_failed_trials
        )
        return bool(is_cut) and needs_more

    @property
    def has_failed_trials(self) -> bool:
        """Whether trials failed for technical reasons, with a known cause."""
        return bool(self.causes and self.outcomes.get("infrastructure"))

    @property
    def lost_for_good(self) -> bool:
        """Whether a resumed run would keep every cause of missing trials, so that it
        continues nothing.
        """
        kept = list(map(self.kept, self.causes))
        return bool(kept) and all(kept) and not self.outcomes.get("budget")

    @staticmethod
    def kept(cause: str) -> str:
        """Return what a resumed run keeps of a cause of missing trials instead of
        asking again, in words, or "" if it asks again.
        """
        return next((what for pattern, what in _KEPT if pattern.match(cause)), "")

    def ending(self, verdict: Verdict, reason: str, **values: Any) -> CellResult:
        """Return this cell with a verdict, its reason, and these other values."""
        return dataclasses.replace(self, verdict=verdict, reason=reason, **values)


@dataclass(frozen=True, slots=True)
class Average:
    """Mean pass rate over ``protocols`` fixed protocols. Its two-sided 95 % interval
    combines the cells' intervals.
    """

    mean: float
    interval: tuple[float, float]
    protocols: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelSummary(tables.Brief):
    """One model in one view (and variant) over all its protocols."""

    model: str
    view: str
    variant: str = ""
    overall: Average | None
    """Mean pass rate over the finished protocols, except protocols judged by a measure;
    None if there is no such rate.
    """
    ability: MeanAbility | None = None
    """Mean ability over the protocols with an ability scale; None if none has one."""
    animals: MeanAbility | None = None
    """Mean ability of the animals over the protocols with a scale, whether or not the
    model has a rate there; None if no such protocol has a reference.
    """
    profile: Mapping[str, Average]
    """The same mean for each cognitive dimension, in the order of the plans."""
    gate: Verdict
    """Verdict over all cells: PASS if all of them pass (an intersection-union test,
    which needs no correction), FAIL if any fails.
    """
    gate_reason: str
    failed: tuple[str, ...]
    """Protocols that the model fails: a list of which, on average, at most 5 % are
    wrong (e-BH: Wang and Ramdas 2022).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChoice:
    """One protocol of a best-of-views number."""

    protocol: str
    rates: Mapping[str, float]
    """View -> pass rate."""
    best: float
    cross_fitted: float | None
    """Rate of the view that is best on one half of the subjects (or trials), scored on
    the other half; None if there are too few trials to halve.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BestOfViews(tables.Brief):
    """The headline number of the CheeseBench paper for one model, and a number without
    its bias.
    """

    model: str
    variant: str = ""
    best: float
    """Mean over protocols of the best view's rate, which is biased upward."""
    cross_fitted: float | None
    """Mean over protocols of the rates of views chosen on one half of the subjects (or
    trials) and scored on the other half; None if a protocol has too few trials to
    halve.
    """
    protocols: tuple[ViewChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairedComparison(tables.Brief):
    """A comparison of two runs with the same seeds: the difference (first - second)
    over the paired subjects.
    """

    answer: Literal["better", "worse", "no loss", "undecided"] = "undecided"
    reason: str
    pairs: int = 0
    difference: float | None = None
    """Mean over pairs of the difference between the two subjects' means; None without a
    pair.
    """
    interval: tuple[float, float] | None = None
    """Two-sided 95 % t interval of the difference; None with fewer than two pairs."""
    p_value: float | None = None
    """Two-sided p value; None without a pair."""
    p_worst: float | None = None
    """The largest p value that missing trials could have given; 1 if even the sign of
    the difference depends on them, None without a pair.
    """


@dataclass(frozen=True, slots=True)
class PairedPoint:
    """One point of two curves: the mean pass rate (or judged measure) of the paired
    subjects in each, and the mean of the differences.

    ``interval`` is the two-sided 95 % t interval of plain - control; None with fewer
    than two pairs.
    """

    session: int
    plain: float
    control: float
    difference: float
    interval: tuple[float, float] | None
    pairs: int


@dataclass(frozen=True, slots=True)
class Gain:
    """Gain of the pass rate (or judged measure) from the first point of the curve to
    the last: mean over subjects, with its 95 % t interval (None for a single subject).
    """

    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ControlResult(tables.Brief):
    """A control and its plain cell, paired by subject. The comparison makes no claim
    about the rodent.
    """

    control: CellResult
    """The control cell; its own curve has the intervals of its rates."""
    plain: CellResult
    curve_unit: str
    points: tuple[PairedPoint, ...]
    gain_plain: Gain | None
    """Gain of the plain cell; None if the curves share fewer than two points, or no
    subject has both the first and the last.
    """
    gain_control: Gain | None
    gain_difference: Gain | None
    comparison: PairedComparison
    """Comparison of the plain cell (first) with the control (second), over the trials
    that enter the estimand.
    """
    lesion: str = ""
    """What the control says about the construct, if the control is a lesion."""

    @property
    def highest_without(self) -> float | None:
        """The highest pass rate that is possible without the ability; None if it is
        not proved, the verdict is about a measure, or the construct predicts no loss of
        the ability under this control.
        """
        plan, claim = self.plain.plan, self.control.plan.lesion
        predicted = claim is not None and claim.at_most is not None
        if plan.ability is None or plan.measured is not None or not predicted:
            return None
        return plan.ability.without


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedContrast:
    """A cell beside a model's published number, obtained under the same rules.

    ``low`` and ``high`` are 95 % limits of the difference, as if all trials were
    independent.
    """

    model: str
    protocol: str
    view: str
    rate: float
    """Pass rate over the first ``trials`` trials of the cell: as many as the published
    model had, or fewer if some are missing.
    """
    trials: int
    published: float
    published_trials: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A model of a leaderboard: its mean score over the protocols, and the ranks that
    its differences allow.
    """

    model: str
    rate: float
    best_rank: int
    """One more than the number of models that are certainly better."""
    worst_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDifference:
    """Mean paired difference of two models over the protocols. All intervals together
    hold at 95 %.
    """

    first: str
    second: str
    difference: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Leaderboard(tables.Brief):
    """The models of a run in one view, best first (``--design leaderboard``)."""

    view: str
    variant: str
    protocols: int
    subjects: int
    """Number of subjects that all models have: the smallest over the protocols."""
    models: tuple[Ranked, ...]
    differences: tuple[ModelDifference, ...]
    not_validated: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    """Cells that pass, as ``MODEL on PROTOCOL``: a list of which, on average, at most 5
    % are wrong (e-BH).
    """
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunSummary(tables.Tabular):
    """The results of a whole run: the input of reporters."""

    optional = frozenset({"variant"})
    manifest: Mapping[str, object]
    cells: tuple[CellResult, ...]
    models: tuple[ModelSummary, ...] = ()
    best_of_views: tuple[BestOfViews, ...] = ()
    """One entry for each model (and variant) that has rates in several views of a
    protocol.
    """
    controls: tuple[ControlResult, ...] = ()
    """Every control cell with its plain cell. Controls are in ``cells`` but not in
    ``models``.
    """
    published: tuple[PublishedRow, ...] = ()
    """Published results for the run's protocols, if any."""
    contrasts: tuple[PublishedContrast, ...] = ()
    """The run beside the published model that ``--against`` names."""
    leaderboards: tuple[Leaderboard, ...] = ()
    """One leaderboard for every view of a run with the design ``leaderboard`` and
    several models.
    """
    compared: object = None
    """The comparison with the baseline named by ``--compare``: a RunComparison, typed
    as object because its module imports this one.
    """
    frozen_set: str = ""
    """Name of the frozen set that was run, with ``+`` if something in it was changed;
    empty without a set.
    """

    @property
    def unfinished(self) -> str:
        """A sentence on the cells that the budget or Ctrl-C stopped, or "" if there
        are none.
        """
        cut = sum(cell.is_cut_off for cell in self.cells)
        if not cut:
            return ""
        name, number = self.manifest.get("run_id"), len(self.cells)
        return f"Run '{name}' is unfinished ({cut} of {number} cell{'s' * (number > 1)}) and can be resumed."

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each cell. ``Run.verdicts`` has more columns."""
        return [
            {
                "model": cell.plan.model,
                "protocol": cell.plan.label,
                "view": cell.plan.view,
                "variant": str(cell.plan.variant),
                "verdict": cell.verdict and cell.verdict.value,
                "reason": cell.reason,
                "rate": cell.rate if cell.judged is None else cell.judged.mean,
                "reference": cell.plan.reference and cell.plan.reference.value,
                "difference": cell.difference,
            }
            for cell in self.cells
        ]

    def to_dict(self) -> dict[str, object]:
        """Return the summary as dictionaries, lists, strings and numbers, ready for
        ``json.dumps``.
        """
        plain = to_plain(self)
        assert isinstance(plain, dict)
        return plain


def to_plain(value: object) -> object:
    """Return a result as plain data: dataclasses (except ``Variant``) and mappings
    become dictionaries, lists and tuples become lists, enums become their values, and
    other objects that JSON lacks become strings.
    """
    if isinstance(value, Variant):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: to_plain(getattr(value, item.name))
            for item in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
