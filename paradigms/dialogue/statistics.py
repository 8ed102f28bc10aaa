"""Results of dialogues: scores by condition and model, kinds of failure, and the factors that make the difference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.paradigms.dialogue.cells import setting
from cheesebench.paradigms.dialogue.deviance import Coefficient, DevianceTable, coefficients, sequential_deviance
from cheesebench.statistics.intervals import quantile
from cheesebench.statistics.spending import ALPHA
from cheesebench.statistics.summary import Verdict

#: The factors of the paper's Table 2 in the order of their entry. ``group`` is the group of conditions.
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
#: Groups of conditions that are not in that table.
OUTSIDE = ("Groups", "Map")
#: Flags of an answer that count as a kind of failure: name of each, and its measure.
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
#: A wrong answer with none of these flags: a first step on the wrong way, a wrong number.
OTHER = "none of these"
KINDS = (*FAILURES, OTHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One item of one model: so many of ``total`` generations were right. ``failures`` counts answers with a flag."""

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
        """Share of right answers."""
        return self.successes / self.total


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean over ``n`` items, their standard deviation, and the standard error of the mean (None with one item)."""

    mean: float
    sd: float | None
    se: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """A model's mean on a condition against a published mean: difference with one-sided 5 % bounds, and verdict."""

    difference: float
    low: float | None
    high: float | None
    verdict: Verdict


def scores_of(plan: CellPlan, records: Iterable[TrialRecord]) -> list[Score]:
    """Return the scores of a dialogue's cell; missing trials do not count.

    There is one for each start-goal pair. Where every subject is asked for one only, the pairs take turns, as in the
    published data, and there is one for all of them.
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
        flags = {name: record.measures.get(measure) for name, measure in FAILURES.items()}
        raised = [name for name, value in flags.items() if isinstance(value, int | float) and value > 0]
        found.update(raised or ([] if record.success else [OTHER]))
    return {name: found[name] for name in KINDS}


def deviance_table(scores: Sequence[Score]) -> DevianceTable | None:
    """Return Table 2 of these scores: every term whose factors vary; None without any."""
    used, factors = _factors(scores)
    varying = {name for name, values in factors.items() if len(set(values)) > 1}
    terms = [term for term in TERMS if set(term.split(":")) <= varying]
    if not terms:
        return None
    return sequential_deviance(factors, [score.successes for score in used], [score.total for score in used], terms)


def main_effects(scores: Sequence[Score]) -> tuple[Coefficient, ...]:
    """Return the coefficients of all factors together, with standard errors."""
    used, factors = _factors(scores)
    return coefficients(factors, [score.successes for score in used], [score.total for score in used])


def _factors(scores: Sequence[Score]) -> tuple[list[Score], dict[str, list[str]]]:
    used = [score for score in scores if score.group not in OUTSIDE]
    names = ("model", "graph", "domain", "temperature", "group")
    return used, {name: [getattr(score, name) for score in used] for name in names}


def spread(values: Sequence[float]) -> Spread:
    """Return mean, standard deviation and standard error of at least one value."""
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Spread(mean, None, None, n)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Spread(mean, sd, sd / math.sqrt(n), n)


def by(scores: Iterable[Score], factor: str) -> dict[tuple[str, str], Spread]:
    """Return the spread over items by (level of ``factor``, model), in order of appearance: Table 3 by condition.

    Lists of edges are no plans: they have a condition and a group of their own, and are in no other mean with plans.
    """
    rates: dict[tuple[str, str], list[float]] = {}
    for score in _plans(scores, factor):
        rates.setdefault((getattr(score, factor), score.model), []).append(score.rate)
    return {key: spread(values) for key, values in rates.items()}


def _plans(scores: Iterable[Score], factor: str) -> list[Score]:
    every = list(scores)
    plans = [score for score in every if score.group != "Map"]
    return plans if plans and factor not in ("condition", "group") else every


def failure_shares(scores: Iterable[Score], factor: str = "model") -> dict[str, dict[str, float]]:
    """Return by level of a factor the share of all answers that have each flag; an answer may have several.

    Lists of edges (group "Map") are no paths: they have a row of their own among conditions.
    """
    counts: dict[str, Counter[str]] = {}
    totals: Counter[str] = Counter()
    for score in _plans(scores, factor):
        if score.failures:
            level = getattr(score, factor)
            counts.setdefault(level, Counter()).update(score.failures)
            totals[level] += score.total
    return {level: {name: found[name] / totals[level] for name in KINDS} for level, found in counts.items()}


def contrast(own: Spread, published: float, margin: float) -> Contrast:
    """Compare a mean over items with a published mean, taken as exact (the number of items was not published).

    PASS: not worse by more than ``margin``; FAIL: worse by more; INCONCLUSIVE: the items do not decide.
    """
    difference = own.mean - published
    if own.se is None:
        return Contrast(difference, None, None, Verdict.INCONCLUSIVE)
    # If all items are equal their standard deviation is uninformative: then each counts as one answer.
    shrunk = (own.mean * own.n + 0.5) / (own.n + 1)
    reach = quantile(ALPHA, own.n - 1) * (own.se or math.sqrt(shrunk * (1 - shrunk) / own.n))
    low, high = difference - reach, difference + reach
    verdict = Verdict.PASS if low > -margin else Verdict.FAIL if high < -margin else Verdict.INCONCLUSIVE
    return Contrast(difference, low, high, verdict)
