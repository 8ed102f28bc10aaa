"""Computes results of dialogues: scores by condition and model, kinds of failure, and
the influence of each factor.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.extras import install_command
from cheesebench.paradigms.dialogue.life import setting
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.source import real_path
from cheesebench.statistics.comparison import ALPHA
from cheesebench.statistics.intervals import quantile
from cheesebench.statistics.summary import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cheesebench.paradigms.dialogue.specification import DialogueSpecification

    Floats = NDArray[np.float64]

#: The terms of the paper's Table 2, in the order in which they enter the analysis.
#: ``group`` is the group of conditions.
TERMS = (
    "model",
    "graph",
    "domain",
    "temperature",
    "group",
    "model:temperature",
    "graph:domain",
    "graph:group",
    "domain:group",
    "graph:domain:group",
)
#: Groups of conditions that the paper's Table 2 leaves out.
OUTSIDE = ("Groups", "Map")
#: Kinds of failure, each with the measure that flags it.
FAILURES: Mapping[str, str] = {
    "no answer": "no_answer",
    "several answers": "several_answers",
    "wrong form": "wrong_form",
    "unknown node": "unknown_nodes",
    "wrong start": "wrong_start",
    "wrong goal": "wrong_goal",
    "hallucinated edge": "hallucinated_edges",
    "blocked edge": "blocked_edge",
    "loop": "loop",
    "too long": "excess_length",
    "missing edge": "missing_edges",
}
#: A wrong answer without any of these flags, such as a first step in the wrong
#: direction, or a wrong number.
OTHER = "none of these"
KINDS = (*FAILURES, OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The correct answers of one model to one item, among ``total`` generations.
    ``failures`` counts the answers with each flag.
    """

    model: str
    graph: str
    domain: str
    condition: str
    group: str
    temperature: str = ""
    successes: int
    total: int
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.successes / self.total


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean over ``n`` items, the items' standard deviation, and the standard error
    of the mean. The standard deviation and the standard error are None if there is only
    one item.
    """

    mean: float
    sd: float | None
    se: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """A model's mean on a condition compared with a published mean: the difference with
    one-sided 5 % bounds (None if there is only one item), and the verdict.
    """

    difference: float
    low: float | None
    high: float | None
    verdict: Verdict


def scores_of(plan: CellPlan, records: Iterable[TrialRecord]) -> list[Score]:
    """Return the scores of a dialogue's cell. Missing trials do not count. Raise
    RunLogError if the plan lacks a setting.

    There is one score for each start-goal pair. If each subject is asked a single
    question, there is one score in all: pairs then take turns, as in the published
    data.
    """
    items: dict[tuple[object, ...], list[TrialRecord]] = {}
    for record in records:
        if not record.missing and record.success is not None:
            pair = (record.variables.get("start"), record.variables.get("goal"))
            items.setdefault(pair if plan.trials > 1 else (), []).append(record)
    temperature = plan.settings.get("temperature")
    return [
        Score(
            model=plan.model,
            graph=plan.protocol,
            domain=setting(plan, "domain"),
            condition=setting(plan, "condition"),
            group=setting(plan, "group"),
            temperature="" if temperature is None else f"{temperature:g}",
            successes=sum(bool(record.success) for record in trials),
            total=len(trials),
            failures=_failures(trials),
        )
        for trials in items.values()
    ]


def _failures(trials: Iterable[TrialRecord]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for record in trials:
        flags = {
            name: record.measures.get(measure) for name, measure in FAILURES.items()
        }
        raised = [
            name
            for name, value in flags.items()
            if isinstance(value, int | float) and value > 0
        ]
        found.update(raised or ([] if record.success else [OTHER]))
    return {name: found[name] for name in KINDS}


def deviance_table(scores: Sequence[Score]) -> DevianceTable | None:
    """Return the table of deviances (the paper's Table 2) for the scores of its groups,
    with every term whose factors vary, or None if no factor varies. Raise OptionError
    if statsmodels is not installed.
    """
    used, factors = _factors(scores)
    varying = {name for name, values in factors.items() if len(set(values)) > 1}
    terms = [term for term in TERMS if set(term.split(":")) <= varying]
    if not terms:
        return None
    return sequential_deviance(
        factors,
        [score.successes for score in used],
        [score.total for score in used],
        terms,
    )


def main_effects(scores: Sequence[Score]) -> tuple[Coefficient, ...]:
    """Return the coefficients of all factors together, with standard errors. There are
    none if no factor varies. Raise OptionError if statsmodels is not installed.
    """
    used, factors = _factors(scores)
    return coefficients(
        factors, [score.successes for score in used], [score.total for score in used]
    )


def _factors(scores: Sequence[Score]) -> tuple[list[Score], dict[str, list[str]]]:
    used = [score for score in scores if score.group not in OUTSIDE]
    names = ("model", "graph", "domain", "temperature", "group")
    return used, {name: [getattr(score, name) for score in used] for name in names}


def spread(values: Sequence[float]) -> Spread:
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Spread(mean, None, None, n)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Spread(mean, sd, sd / math.sqrt(n), n)


def by(scores: Iterable[Score], factor: str) -> dict[tuple[str, str], Spread]:
    """Return the spread over items by (level of ``factor``, model), in order of
    appearance. By ``condition``, this is the paper's Table 3.

    Lists of edges are not plans. They have their own condition and group, and do not
    count in other means, unless there is nothing else.
    """
    rates: dict[tuple[str, str], list[float]] = {}
    for score in _plans(scores, factor):
        rates.setdefault((getattr(score, factor), score.model), []).append(score.rate)
    return {key: spread(values) for key, values in rates.items()}


def _plans(scores: Iterable[Score], factor: str) -> list[Score]:
    every = list(scores)
    plans = [score for score in every if score.group != "Map"]
    return plans if plans and factor not in ("condition", "group") else every


def failure_shares(
    scores: Iterable[Score], factor: str = "model"
) -> dict[str, dict[str, float]]:
    """Return, for each level of a factor, the share of answers with each flag. An
    answer may have several flags. Scores from a table have none, and do not count.

    Lists of edges (group "Map") are not paths. Among conditions or groups they have a
    row of their own. They do not count for other factors, unless there is nothing else.
    """
    counts: dict[str, Counter[str]] = {}
    totals: Counter[str] = Counter()
    for score in _plans(scores, factor):
        if score.failures:
            level = getattr(score, factor)
            counts.setdefault(level, Counter()).update(score.failures)
            totals[level] += score.total
    return {
        level: {name: found[name] / totals[level] for name in KINDS}
        for level, found in counts.items()
    }


def contrast(own: Spread, published: float, margin: float) -> Contrast:
    """Compare a mean over items with a published mean. The published mean counts as
    exact, because the number of its items was not published.

    PASS means not worse by more than ``margin``, FAIL means worse by more, and
    INCONCLUSIVE means that the items do not decide.
    """
    difference = own.mean - published
    if own.se is None:
        return Contrast(difference, None, None, Verdict.INCONCLUSIVE)
    # If all items are equal, their standard deviation says nothing, so each item then
    # counts as one answer.
    shrunk = (own.mean * own.n + 0.5) / (own.n + 1)
    reach = quantile(ALPHA, own.n - 1) * (
        own.se or math.sqrt(shrunk * (1 - shrunk) / own.n)
    )
    low, high = difference - reach, difference + reach
    verdict = (
        Verdict.PASS
        if low > -margin
        else Verdict.FAIL
        if high < -margin
        else Verdict.INCONCLUSIVE
    )
    return Contrast(difference, low, high, verdict)


# -- published results: a data file beside the protocols

FILE_NAME = "published.yaml"


@dataclass(frozen=True)
class Published:
    """Published results. ``conditions`` holds mean and standard deviation by condition
    and model. ``groups`` holds the group of each condition. ``scored`` describes how
    the published answers were scored.
    """

    source: str
    scored: str
    groups: Mapping[str, str]
    conditions: Mapping[str, Mapping[str, tuple[float, float]]]

    @property
    def models(self) -> list[str]:
        return list(
            dict.fromkeys(model for row in self.conditions.values() for model in row)
        )

    def model(self, name: str) -> dict[str, tuple[float, float]]:
        """Return a model's mean and standard deviation by condition. If there is no
        such model, raise UnknownNameError, which lists the models.
        """
        if name not in self.models:
            raise UnknownNameError("published model", name, self.models)
        return {
            condition: row[name]
            for condition, row in self.conditions.items()
            if name in row
        }


@cache
def read_published(folder: Path) -> Published:
    """Return the published results in a folder of protocols. Raise OptionError if there
    are none.
    """
    path = folder / FILE_NAME
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError:
        raise OptionError(
            f"The published results are missing: there is no file {path}. Install CheeseBench again."
        ) from None
    return Published(
        source=content["source"],
        scored=content["scored"],
        groups={
            condition: group
            for group, members in content["groups"].items()
            for condition in members
        },
        conditions={
            condition: {
                model: (float(mean), float(sd)) for model, (mean, sd) in row.items()
            }
            for condition, row in content["conditions"].items()
        },
    )


def published_beside(specification: DialogueSpecification) -> Published:
    return read_published(real_path(Path(specification.path)).parent)


# -- sequential analysis of deviance

#: A column is left out if its part that is independent of the others is shorter than
#: this share of the longest column.
RANK_TOLERANCE = 1e-9
#: ``_ROUNDS``: maximum number of rounds of a fit. ``_SETTLED``: tolerance of a fit, far
#: finer than any printed figure.
_ROUNDS, _SETTLED = 100, 1e-8


@dataclass(frozen=True, slots=True)
class DevianceRow:
    """One term: how much the deviance falls if the term is added after all terms above
    it.
    """

    term: str
    df: int
    """Degrees of freedom of the term."""
    chi2: float
    """Fall of the deviance."""
    p: float
    """p value of the fall, from a chi-squared distribution."""
    residual_df: int
    residual: float
    """Deviance that is left, on ``residual_df`` degrees of freedom."""


@dataclass(frozen=True, slots=True)
class DevianceTable:
    """Table of deviances. ``null`` is the deviance of the intercept alone, on
    ``null_df`` degrees of freedom.
    """

    null_df: int
    null: float
    rows: tuple[DevianceRow, ...]


def sequential_deviance(
    factors: Mapping[str, Sequence[object]],
    successes: Sequence[int],
    totals: Sequence[int],
    terms: Sequence[str],
) -> DevianceTable:
    """Return the table of deviances.

    ``terms`` name factors and interactions (``graph:domain``) in order of entry. All
    sequences have one value per observation. Observations with a total of 0 are left
    out. Raise ValueError if a term names no factor or there is no observation, and
    OptionError if statsmodels is not installed.
    """
    import numpy as np
    from scipy.special import chdtrc

    kept = [number for number, total in enumerate(totals) if total > 0]
    if not kept:
        raise ValueError("there is no observation")
    rows = {
        name: [values[number] for number in kept] for name, values in factors.items()
    }
    answers = np.array(
        [(successes[number], totals[number] - successes[number]) for number in kept],
        dtype=float,
    )
    design: list[Floats] = [np.ones(len(kept))]
    null_df, null = residual_df, residual = _fit(answers, design)
    table = []
    for term in terms:
        design += _columns(term, rows)
        after_df, after = _fit(answers, design)
        df = residual_df - after_df
        # Because of rounding, a term that explains nothing may have a slightly negative
        # change.
        change = max(0.0, residual - after) if df else 0.0
        residual, residual_df = after, after_df
        table.append(
            DevianceRow(
                term,
                df,
                change,
                float(chdtrc(df, change)) if df else 1.0,
                residual_df,
                residual,
            )
        )
    return DevianceTable(null_df, null, tuple(table))


@dataclass(frozen=True, slots=True)
class Coefficient:
    """Log odds ratio between a level of a factor and the factor's first level, with
    standard error, z and two-sided p.
    """

    factor: str
    level: str
    reference: str
    estimate: float
    se: float
    z: float
    p: float


def coefficients(
    factors: Mapping[str, Sequence[object]],
    successes: Sequence[int],
    totals: Sequence[int],
) -> tuple[Coefficient, ...]:
    """Return the main effects of factors in a joint fit without interactions.

    Factors with one level are left out, and so are levels that the others determine.
    Raise OptionError if statsmodels is not installed.
    """
    import numpy as np

    kept = [number for number, total in enumerate(totals) if total > 0]
    rows = {
        name: [values[number] for number in kept] for name, values in factors.items()
    }
    named = [
        (name, str(level), str(levels[0]))
        for name, values in rows.items()
        for levels in [_levels(values)]
        for level in levels[1:]
    ]
    if not named:
        return ()
    answers = np.array(
        [(successes[number], totals[number] - successes[number]) for number in kept],
        dtype=float,
    )
    design = [
        np.ones(len(kept)),
        *(column for name in rows for column in _columns(name, rows)),
    ]
    columns, chosen = _independent(design)
    fit = _fitted(answers, columns)
    places = {column: place for place, column in enumerate(chosen)}
    return tuple(
        Coefficient(
            *names,
            *(
                float(values[places[number]])
                for values in (fit.params, fit.bse, fit.tvalues, fit.pvalues)
            ),
        )
        for number, names in enumerate(named, start=1)
        if number in places
    )


def _fit(answers: Floats, design: Sequence[Floats]) -> tuple[int, float]:
    """Return residual degrees of freedom and residual deviance of a fit. ``answers``
    has columns of successes and failures.
    """
    fit = _fitted(answers, _independent(design)[0])
    return int(fit.df_resid), float(fit.deviance)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread, because on small tables several threads
    mostly wait for one another.

    Raise OptionError if the extra ``cogeval`` is not installed.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise _lacks("threadpoolctl") from None
    with threadpool_limits(1, user_api="blas"):
        yield


def _lacks(library: str) -> OptionError:
    return OptionError(
        f"The analysis of deviance needs {library}. Install it: {install_command('cogeval')}"
    )


def _independent(design: Sequence[Floats]) -> tuple[Floats, list[int]]:
    """Return linearly independent columns, and their indices. Dropping the others
    leaves the fit unchanged, and makes it several times faster.
    """
    import numpy as np
    from scipy.linalg import qr

    columns = np.column_stack(design)
    triangle, order = qr(columns, mode="r", pivoting=True)
    sizes = np.abs(np.diag(triangle))
    chosen = np.sort(order[: len(sizes)][sizes > RANK_TOLERANCE * sizes[0]])
    return columns[:, chosen], chosen.tolist()


def _fitted(answers: Floats, columns: Floats) -> Any:
    try:
        from statsmodels.genmod.families import Binomial
        from statsmodels.genmod.generalized_linear_model import GLM
    except ImportError:
        raise _lacks("statsmodels") from None
    with warnings.catch_warnings():
        # Levels with only successes, or none, have no finite estimate. The deviance is
        # still correct.
        warnings.simplefilter("ignore")
        return GLM(answers, columns, family=Binomial()).fit(
            maxiter=_ROUNDS, tol=_SETTLED, wls_method="qr"
        )


def _levels(values: Sequence[object]) -> list[object]:
    return sorted(dict.fromkeys(values), key=str)


def _columns(term: str, rows: Mapping[str, Sequence[object]]) -> list[Floats]:
    """Return the dummy variables of a term. For an interaction, these are all products
    of its factors' dummy variables. Raise ValueError for an unknown factor.
    """
    import numpy as np

    dummies: list[list[Floats]] = []
    for name in term.split(":"):
        if name not in rows:
            raise ValueError(f"there is no factor '{name}'")
        values = rows[name]
        dummies.append(
            [
                np.array([float(value == level) for value in values])
                for level in _levels(values)[1:]
            ]
        )
    return [np.prod(np.stack(columns), axis=0) for columns in product(*dummies)]
