"""Paired comparison of two runs with the same seeds: better, worse, or indistinguishable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.statistics.counts import SubjectCounts, count_subjects
from cheesebench.statistics.intervals import quantile
from cheesebench.statistics.sample import draw_sample, trials_by_subject
from cheesebench.statistics.summary import PairedComparison
from cheesebench.statistics.wording import plural, points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Method = Literal["permutation", "t"]
Answer = Literal["better", "worse", "indistinguishable"]
Subjects = Mapping[int, SubjectCounts]
Pair = tuple[SubjectCounts, SubjectCounts]

#: Two-sided error probability.
ALPHA = 0.05
#: Most sign flips tried: all of them up to 13 pairs, a sample of this size beyond.
MOST_FLIPS = 9999
#: Signs that are in memory at once: several arrays of so many numbers.
FLIPS_AT_ONCE = 500_000


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
    tested with sign flips (exact, or sampled with ``seed``) or with a t test. Missing trials are counted in favour
    of the first and then of the second run; if the answer depends on that, it is "indistinguishable". Exact copies of a
    pair are left out.
    """
    counted = [
        count_subjects(draw_sample(plan, trials_by_subject(side).values()).per_subject) for side in (first, second)
    ]
    return compare_differences(paired_differences(*counted), seed=seed, method=method)


def paired_differences(first: Subjects, second: Subjects) -> list[list[float]]:
    """Return the differences of subject means (first - second) of the distinct pairs.

    If trials are missing, two more lists follow: with all of them in favour of the first run, and of the second. Only
    these lists include subjects without a single result in one of the runs.
    """
    pairs = distinct_pairs(first, second)
    measured = [(a, b) for a, b in pairs if a.scored and b.scored]
    fills: list[tuple[bool | None, bool | None]] = [(None, None)]
    if any(one.missing for pair in pairs for one in pair):
        fills += [(True, False), (False, True)]
        pairs = [(a, b) for a, b in pairs if a.scored + a.missing and b.scored + b.missing]
    return [
        [a.rate(x) - b.rate(y) for a, b in (measured if x is None else pairs)]
        for x, y in (fills if measured else fills[:1])
    ]


def distinct_pairs(first: Subjects, second: Subjects) -> list[Pair]:
    """Return the subjects that both runs have, in the order of their numbers, without exact repeats of a pair."""
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
    method: Method = "permutation",
    shown: Callable[[float], str] = lambda difference: f"{points(difference)} points",
) -> PairedComparison:
    """Compare two runs, given the result of ``paired_differences`` (or a weighted combination of several).

    ``shown`` writes a difference for the reason.
    """
    differences = possible[0]
    if not differences:
        return nothing_compared("No subject was measured in both runs.", method)
    p_values = [paired_p_value(values, seed=seed, method=method) for values in possible]
    answers = [_answer(values, p) for values, p in zip(possible, p_values, strict=True)]
    agreed = answers[0] if len(set(answers)) == 1 else "indistinguishable"
    signs = {sum(values) > 0 for values in possible}
    mean = sum(differences) / len(differences)
    return PairedComparison(
        answer=agreed,
        reason=_reason(agreed, answers, shown(mean), len(differences), method),
        pairs=len(differences),
        difference=mean,
        interval=t_interval(differences),
        p_value=p_values[0],
        p_worst=max(p_values) if len(signs) == 1 else 1.0,
        method=method,
    )


def paired_p_value(differences: Sequence[float], *, seed: int, method: Method) -> float:
    """Return the two-sided p value of the hypothesis that differences are centred at zero (at least one)."""
    import numpy as np

    values = np.asarray(differences, dtype=float)
    if len(values) < 2:
        return 1.0
    spread = float(values.std(ddof=1))
    # Without variance the t statistic is undefined; sign flips still work.
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
        batch=max(1, FLIPS_AT_ONCE // len(values)),
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
    """Return the answer that paired differences (first - second) and their p value give."""
    if p_value >= ALPHA:
        return "indistinguishable"
    return "better" if sum(differences) > 0 else "worse"


def _reason(agreed: Answer, answers: Sequence[Answer], difference: str, pairs: int, method: Method) -> str:
    gap = f"Over {plural(pairs, 'paired subject')} the difference is {difference}"
    if agreed != "indistinguishable":
        return f"{gap}, more than chance explains: the first run is {agreed}."
    if len(set(answers)) > 1:
        return f"{gap}, but the answer depends on missing trials."
    if method == "permutation" and 2 * 0.5**pairs >= ALPHA:
        return f"{gap}; so few pairs cannot distinguish two runs (at least six are needed)."
    return f"{gap}, which chance can explain: the runs are indistinguishable."


def nothing_compared(reason: str, method: Method = "permutation") -> PairedComparison:
    """Return the comparison of nothing, with its reason."""
    return PairedComparison(
        answer="indistinguishable",
        reason=reason,
        pairs=0,
        difference=None,
        interval=None,
        p_value=None,
        p_worst=None,
        method=method,
    )
