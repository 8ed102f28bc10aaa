"""Results of the statistics: plain data for reports, with nothing left to compute.

Rates, differences, bounds and margins are proportions (0 to 1), never percentages;
those of a verdict about a measure are in the measure's unit. ``to_plain`` converts
every type to JSON values.
"""

from __future__ import annotations

import dataclasses
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

#: Possible fates of a trial, in the order of reports. ``unscored``: the protocol
#: declares no success; ``unparsed``: failed, and no reply could be read; ``truncated
#: reply``: failed, and every reply was cut off; ``not run``: subjects of the plan
#: without any record.
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


class Verdict(StrEnum):
    """The answer to: does this model do at least as well as the rodent, up to the
    margin?
    """

    PASS = "PASS"
    """Not worse than the animals by the margin: the wealth of bets on it has grown
    20-fold.
    """
    FAIL = "FAIL"
    """Worse by more than the margin: the wealth of bets on this has grown 20-fold."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """The data do not decide, or no claim is made."""
    ERROR = "ERROR"
    """Nothing could be measured, or trials were lost to infrastructure, or the run was
    interrupted before a trial that counts: says nothing about the model.
    """


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One point of the learning curve: pass rate in a session, with its two-sided 95 %
    interval.

    ``session`` counts from 1; with another ``CellResult.curve_unit`` it is the number
    of a run of trials.
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
    """Mean and standard deviation over ``n`` trials; ``sd`` is None for a single
    trial.
    """

    name: str
    mean: float
    sd: float | None
    n: int


@dataclass(frozen=True, slots=True)
class ClassShares:
    """A categorical measure: the number of trials with each value, most frequent first
    (ties by name).
    """

    name: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SplitRate:
    """The trials with one value of a variable that the protocol splits by: ``passed``
    of ``trials``.
    """

    variable: str
    value: Value
    passed: int
    trials: int


@dataclass(frozen=True, slots=True)
class ConditionCurve:
    """A measure by the values of a variable, in rising order: each with mean, spread
    and number of trials.
    """

    measure: str
    variable: str
    points: tuple[tuple[Value, Measure], ...]


@dataclass(frozen=True, slots=True)
class Flags:
    """Caveats about a result, set by ``judge``."""

    not_diagnostic: bool = False
    """The random agent's rate is at or above reference - margin: passing says
    little.
    """
    this_subject_only: bool = False
    """One subject with a memory, so the interval concerns this subject,
    not the model.
    """
    duplicate_subjects: int = 0
    """Subjects that are exact copies of another one: counted in the rate, but not as
    further evidence.
    """
    memory_contradicted: bool = False
    """The agent declares no memory, but its subjects differ by more than chance."""
    stopped_by_result: bool = False
    """A sequential cell stopped because of its results, so that its rate is biased
    towards the verdict.
    """
    goal_visible: bool = False
    """A rewarded place is drawn unlike its neighbours, so the goal can be seen
    (W311).
    """
    reference_declared: bool = False
    """The reference has neither an interval nor a spread between animals and is used as
    a constant.
    """
    analogy: bool = False
    """The source of the reference measured a different event from success."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMean:
    """The measure that a verdict is about: mean over the subjects of their own means,
    in the measure's unit.
    """

    measure: str
    better: Literal["higher", "lower", "alike"]
    mean: float
    interval: tuple[float, float] | None
    """Two-sided 95 % at least; None for one subject, and if missing trials could have
    had any value.
    """
    sd: float | None
    """Standard deviation between subjects; None for one."""
    subjects: int
    """Subjects with a value."""
    without: int = 0
    """Number of subjects that ran but have no value in any trial; no mean includes
    them.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """State of a cell's two betting games (``betting``). Wealth is a multiple of its
    initial value.
    """

    passing: float = 0.0
    """Largest wealth of the PASS game."""
    failing: float = 0.0
    """Largest wealth of the FAIL game."""
    passing_at_stop: float = 0.0
    """Wealth of the PASS game after the deciding subject, or the last one."""
    failing_at_stop: float = 0.0
    goal: float
    """Growth that wealth must reach for a verdict."""
    verdict: Verdict | None = None
    """PASS or FAIL; None if neither game has reached the goal."""
    decided: int | None = None
    """Number of subjects after which a game reached the goal."""
    stale: bool = False
    """Whether a sequential cell stopped because no bet had ever doubled its wealth."""
    subjects: int
    """Number of subjects that count: in a sequential cell, those of all sets so far, or
    up to the set that decided.
    """
    most: int
    """Planned number of subjects."""
    sequential: bool = False
    outlook: Outlook | None = None
    """Forecast for further subjects; None if the cell is decided or stale."""
    beyond: int = 0
    """Number of subjects that were begun in addition to those that count."""

    @property
    def over(self) -> bool:
        """Whether the cell is decided, or stale."""
        return self.verdict is not None or self.stale

    @property
    def p_value(self) -> float:
        """P value of the claim with the larger wealth; it holds however often the cell
        is judged.
        """
        return min(1.0, 1 / max(self.passing, self.failing, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellResult(tables.Brief):
    """A judged cell: a model on a protocol in a view.

    Counts are of trials that enter the estimand, including exact copies of subjects
    (which narrow no interval).
    """

    plan: CellPlan
    verdict: Verdict
    reason: str
    """One or two plain sentences for readers who see a verdict for the first time."""
    n_text: str
    """Sample size in words: ``10 subjects x 20 trials (200/200 valid)``."""
    subjects: int = 0
    """Subjects seen, copies included."""
    planned: int = 0
    """Number of trials planned for the estimand: valid + missing."""
    valid: int = 0
    passed: int = 0
    missing: int = 0
    rate: float | None = None
    """Mean of the subjects' own pass rates; None without a valid trial."""
    interval: tuple[float, float] | None = None
    """Two-sided 95 % at least; with missing trials, it holds whether they would have
    failed or passed.
    """
    interval_method: str = ""
    """The method of the interval."""
    standard_error: float | None = None
    """Standard deviation of the subjects' pass rates over the root of their number;
    None for one. ``interval`` is wider: it holds at any number of subjects.
    """
    icc: float | None = None
    """Intraclass correlation observed between subjects (one-way ANOVA, in 0-1); None
    with one subject.
    """
    judged: JudgedMean | None = None
    """The measure, if the verdict concerns one; the differences and the plan's margin
    are in its unit.
    """
    difference: float | None = None
    """Model - reference, of the pass rate or of the measure in ``judged``."""
    difference_low: float | None = None
    """One-sided 5 % lower bound of the difference, at any number of subjects."""
    difference_high: float | None = None
    """One-sided 5 % upper bound of the difference."""
    superior: bool = False
    """PASS, and even the lower bound is above a reference that has an interval of its
    own.
    """
    open_zones: tuple[tuple[float, float], ...] = ()
    """Ranges of the rate (or mean) in which no number of subjects decides, because the
    animals are a sample; empty if the reference is a constant.
    """
    subjects_needed: int | None = None
    """Number of subjects that would decide an INCONCLUSIVE in 4 of 5 cases; None if
    more than 1,000 are needed.
    """
    game: Game | None = None
    """State of the betting; None without a claim."""
    ability: Ability | None = None
    """Model, animals and bar on the scale from 0 (without the ability) to 1 (ideal);
    None if no zero is proved.
    """
    answers: tuple[ByAnswer, ...] = ()
    """Subjects grouped by the answer that each was given for life."""
    flags: Flags = field(default_factory=Flags)
    curve: tuple[CurvePoint, ...] = ()
    curve_unit: str = "session"
    """``session``, or for example ``5 trials`` if the whole life is one session."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Taxonomy (``TAXONOMY``, zeros too); the counts add up to ``planned``."""
    raw_outcomes: Mapping[str, int] = field(default_factory=dict)
    """The protocol's own outcome names, by falling count."""
    measures: tuple[Measure, ...] = ()
    """The protocol's own numeric measures; those in blocks without a judged trial are
    named by the block, such as ``latency in probe``.
    """
    conditions: tuple[ConditionCurve, ...] = ()
    """Measures that the protocol reports ``by`` a variable, if it took at least two
    values.
    """
    agent_counts: Mapping[str, int] = field(default_factory=dict)
    """The agent's own counters (``unparsed``, ...), summed over the trials."""
    calls: CellCalls | None = None
    """Totals of the cell's calls to the model; None without calls."""
    classes: tuple[ClassShares, ...] = ()
    """The protocol's own measures whose values are names."""
    splits: tuple[SplitRate, ...] = ()
    """Pass rate by the variables that the protocol names in ``split``; values in rising
    order.
    """
    strategy: tuple[Measure, ...] = ()
    """Measures of the agent's movement, the same for every protocol."""
    warnings: tuple[str, ...] = ()
    """Reasons to doubt the numbers, for any verdict: replies without an answer, missing
    trials.
    """
    causes: tuple[str, ...] = ()
    """Causes of trials that could not be run, in the words of the failures, most
    frequent first.
    """
    contradicted: tuple[str, ...] = ()
    """Contradictions between lesions and the construct, one sentence each: a control
    cell has its own, a plain cell those of its controls.
    """
    remarks: tuple[str, ...] = ()
    """Facts that a reader of the verdict must know: trials run anew, impossible
    results.
    """

    def ending(self, verdict: Verdict, reason: str, **values: Any) -> CellResult:
        """Return this cell with a verdict and its reason, and other values."""
        return dataclasses.replace(self, verdict=verdict, reason=reason, **values)


@dataclass(frozen=True, slots=True)
class Average:
    """Mean pass rate over ``protocols`` fixed protocols, with a two-sided 95 % interval
    that combines the cells' own.
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
    """None if no cell has a rate."""
    ability: MeanAbility | None = None
    """Mean over the protocols with an ability scale; None if none has one."""
    animals: MeanAbility | None = None
    """Mean of the animals over the same protocols, whether or not the model
    has a rate.
    """
    profile: Mapping[str, Average]
    """By cognitive dimension, in the order of the plans."""
    gate: Verdict
    """PASS if all cells pass (an intersection-union test, which needs no correction),
    FAIL if any cell fails.
    """
    gate_reason: str
    failed: tuple[str, ...]
    """Cells in the list of FAILs of which at most 5 % are wrong on average (e-BH: Wang
    and Ramdas 2022).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChoice:
    """One protocol of a best-of-views number."""

    protocol: str
    rates: Mapping[str, float]
    """View -> pass rate."""
    best: float
    cross_fitted: float | None
    """None if there are too few trials to halve."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BestOfViews(tables.Brief):
    """The paper's headline number for one model, and a number without its bias."""

    model: str
    variant: str = ""
    best: float
    """Mean over protocols of the best view's rate: biased upward."""
    cross_fitted: float | None
    """Rate of the view chosen on one half of the subjects (or trials), scored on the
    other half.
    """
    protocols: tuple[ViewChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairedComparison(tables.Brief):
    """Two runs with the same seeds: first - second over the paired subjects."""

    answer: Literal["better", "worse", "no loss", "undecided"] = "undecided"
    reason: str
    pairs: int = 0
    difference: float | None = None
    """Mean of the paired differences of subject means; None without a pair."""
    interval: tuple[float, float] | None = None
    """Two-sided 95 % t interval of the difference; None with fewer than two pairs."""
    p_value: float | None = None
    """Two-sided."""
    p_worst: float | None = None
    """The largest p value that missing trials could have given; 1 if even the sign
    depends on them.
    """


@dataclass(frozen=True, slots=True)
class PairedPoint:
    """One point of two curves: mean over the paired subjects of their pass rates, and
    of the differences.

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
    """Pass rate at the last point of the curve minus that at the first: mean over
    subjects, 95 % t interval.
    """

    mean: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ControlResult(tables.Brief):
    """A control and its plain cell, paired by subject. It makes no claim about the
    rodent.
    """

    control: CellResult
    """The control cell; its own curve has the intervals of its rates."""
    plain: CellResult
    curve_unit: str
    points: tuple[PairedPoint, ...]
    gain_plain: Gain | None
    """None if the curve has a single point."""
    gain_control: Gain | None
    gain_difference: Gain | None
    comparison: PairedComparison
    """Plain (first) against control (second), over the trials that enter the
    estimand.
    """
    lesion: str = ""
    """The control's implication for the construct, if it is a lesion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedContrast:
    """A cell beside the published number of a model under the same rules.

    ``low`` and ``high`` are 95 % limits of the difference, as if all trials were
    independent.
    """

    model: str
    protocol: str
    view: str
    rate: float
    """Pass rate over the first ``trials`` of the cell: as many as the published model
    had, or fewer if some are missing.
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
    """Mean paired difference of two models over the protocols; all intervals together
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
    """Smallest number of subjects over the protocols; the same for each model."""
    models: tuple[Ranked, ...]
    differences: tuple[ModelDifference, ...]
    not_validated: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    """Models on protocols whose PASS also holds as a list: at most 5 % of it are wrong
    on average (e-BH).
    """
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunSummary(tables.Tabular):
    """The results of a whole run: the input of reporters."""

    manifest: Mapping[str, object]
    cells: tuple[CellResult, ...]
    models: tuple[ModelSummary, ...] = ()
    best_of_views: tuple[BestOfViews, ...] = ()
    """One per model that ran in more than one view."""
    controls: tuple[ControlResult, ...] = ()
    """Every control cell with its plain cell. Controls are in ``cells`` but not in
    ``models``.
    """
    published: tuple[PublishedRow, ...] = ()
    """Published results for the run's protocols, if any."""
    contrasts: tuple[PublishedContrast, ...] = ()
    """The run beside the published model that ``--against`` names."""
    leaderboards: tuple[Leaderboard, ...] = ()
    """One for every view of a run of the design ``leaderboard`` with several models."""
    compared: object = None
    """The comparison with the baseline named by ``--compare``: a RunComparison, typed
    as object because its module imports this one.
    """
    frozen_set: str = ""
    """Name of the frozen set that was run, with ``+`` if something was changed; empty
    without one.
    """

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each cell; ``Run.verdicts`` has more columns."""
        return [
            {
                "model": cell.plan.model,
                "protocol": cell.plan.label,
                "view": cell.plan.view,
                "verdict": cell.verdict.value,
                "rate": cell.rate if cell.judged is None else cell.judged.mean,
                "rodent": cell.plan.reference and cell.plan.reference.value,
                "difference": cell.difference,
                "reason": cell.reason,
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
    """Return a result as plain data: dataclasses and mappings become dictionaries,
    sequences lists.
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
