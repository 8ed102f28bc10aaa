"""Two runs with the same seeds: subjects are pairs, and "indistinguishable" is a legal answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.statistics.intervals import quantile
from cheesebench.statistics.sample import Life, enter_estimand, lives, signature
from cheesebench.statistics.summary import PairedComparison
from cheesebench.statistics.wording import plural, points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Method = Literal["permutation", "t"]
Answer = Literal["better", "worse", "indistinguishable"]

#: Two-sided error probability.
ALPHA = 0.05
#: Most sign flips tried: all of them up to 13 pairs, a sample of this size beyond.
MOST_FLIPS = 9999


def compare_paired(
    plan: CellPlan,
    first: Iterable[TrialRecord],
    second: Iterable[TrialRecord],
    *,
    seed: int,
    method: Method = "permutation",
) -> PairedComparison:
    """Compare two sets of trials of one protocol run with the same seeds, subject by subject.

    The paired differences of subject means (first - second, over the trials that enter ``plan.estimand``) are
    tested with sign flips (exact, or sampled from ``seed``) or with t. Missing trials are counted in favour
    of the first and then of the second; the answer must not depend on it. Exact repeats of a pair are left
    out.
    """
    pairs = _pairs(plan, lives(first), lives(second))
    if not pairs:
        return _nothing("No subject was measured in both runs.", method)
    possible = [[_difference(a, b, x, y) for a, b in pairs] for x, y in _fills(pairs)]
    differences = possible[0]
    p_values = [paired_p_value(values, seed=seed, method=method) for values in possible]
    answers = [_answer(values, p) for values, p in zip(possible, p_values, strict=True)]
    agreed = answers[0] if len(set(answers)) == 1 else "indistinguishable"
    mean = sum(differences) / len(differences)
    return PairedComparison(
        answer=agreed,
        reason=_reason(agreed, answers, mean, len(pairs), method),
        pairs=len(pairs),
        difference=mean,
        interval=t_interval(differences),
        p_value=p_values[0],
        method=method,
    )


def _pairs(plan: CellPlan, first: Mapping[int, Life], second: Mapping[int, Life]) -> list[tuple[Life, Life]]:
    """Return the trials that enter the estimand, for every distinct pair with a valid trial on both sides."""
    known: set[tuple[object, object]] = set()
    pairs: list[tuple[Life, Life]] = []
    for subject in sorted(first.keys() & second.keys()):
        marks = signature(first[subject]), signature(second[subject])
        if None not in marks and marks in known:
            continue
        known.add(marks)
        pair = enter_estimand(plan.estimand, first[subject]), enter_estimand(plan.estimand, second[subject])
        if all(any(r.success is not None for r in life) for life in pair):
            pairs.append(pair)
    return pairs


def _fills(pairs: Sequence[tuple[Life, Life]]) -> list[tuple[bool | None, bool | None]]:
    """Return what missing trials of either side are taken for: left out, then for and against the first."""
    gaps = any(r.missing for pair in pairs for life in pair for r in life)
    return [(None, None), (True, False), (False, True)] if gaps else [(None, None)]


def _difference(first: Life, second: Life, fill_first: bool | None, fill_second: bool | None) -> float:
    return _mean(first, fill_first) - _mean(second, fill_second)


def _mean(life: Life, fill: bool | None) -> float:
    results = [fill if record.missing else record.success for record in life]
    scored = [result for result in results if result is not None]
    return sum(scored) / len(scored)


def paired_p_value(differences: Sequence[float], *, seed: int, method: Method) -> float:
    """Return the two-sided p value that the differences are centred at zero (at least one difference)."""
    import numpy as np

    values = np.asarray(differences, dtype=float)
    if len(values) < 2:
        return 1.0
    spread = float(values.std(ddof=1))
    # Without spread t has nothing to measure against; the signs still count.
    if method == "permutation" or spread < 1e-12:
        return _sign_flip_p_value(values, seed)
    from scipy.special import stdtr

    statistic = abs(float(values.mean())) / (spread / len(values) ** 0.5)
    return float(2 * stdtr(len(values) - 1, -statistic))


def _sign_flip_p_value(values: NDArray[np.float64], seed: int) -> float:
    import numpy as np
    from scipy.stats import permutation_test

    test = permutation_test(
        (values,),
        lambda sample, axis: np.mean(sample, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=MOST_FLIPS,
        rng=np.random.default_rng(seed),
    )
    return float(test.pvalue)


def t_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """Return the two-sided 95 % t interval of the mean; None with fewer than two differences."""
    count = len(differences)
    if count < 2:
        return None
    mean = sum(differences) / count
    error = (sum((d - mean) ** 2 for d in differences) / (count - 1) / count) ** 0.5
    half = quantile(ALPHA / 2, count - 1) * error
    return mean - half, mean + half


def _answer(differences: Sequence[float], p_value: float) -> Answer:
    if p_value >= ALPHA:
        return "indistinguishable"
    return "better" if sum(differences) > 0 else "worse"


def _reason(agreed: Answer, answers: Sequence[Answer], mean: float, pairs: int, method: Method) -> str:
    gap = f"Over {plural(pairs, 'paired subject')} the difference is {points(mean)} points"
    if agreed != "indistinguishable":
        return f"{gap}, more than chance explains: the first run is {agreed}."
    if len(set(answers)) > 1:
        return f"{gap}, but the answer depends on missing trials."
    if method == "permutation" and 2 * 0.5**pairs >= ALPHA:
        return f"{gap}; so few pairs can never tell two runs apart (six are the least)."
    return f"{gap}, which chance explains well enough: the runs are indistinguishable."


def _nothing(reason: str, method: Method) -> PairedComparison:
    return PairedComparison(
        answer="indistinguishable",
        reason=reason,
        pairs=0,
        difference=None,
        interval=None,
        p_value=None,
        method=method,
    )
