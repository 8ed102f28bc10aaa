"""Warns about implausible results: a rate above what the audit found possible, or a
model that changes during its run.
"""

from __future__ import annotations

from collections.abc import Iterator

from cheesebench.amounts import percent
from cheesebench.statistics.sample import Sample, scores_of
from cheesebench.statistics.summary import CellResult

#: ``FEWEST``: minimum number of subjects for a remark on drift. ``DRIFT``: size of a
#: normal deviate beyond which scores count as drifting. Chance exceeds it in about one
#: of 1,000 cells.
FEWEST, DRIFT = 20, 3.3
#: Results above the audit's ceiling are remarked on if the probability of reaching them
#: by chance is below this.
LEVEL = 1e-4


def implausible(cell: CellResult, sample: Sample) -> Iterator[str]:
    """Yield a sentence for each count of successes that exceeds the audit's ceiling by
    more than chance explains. Controls have no ceiling.
    """
    ceilings = cell.plan.ceilings
    if ceilings is None or cell.plan.control:
        return
    first = [one.first for one in sample.per_subject if one.first is not None]
    for name, passed, valid, most in (
        ("In trial 1", sum(first), len(first), ceilings.first),
        ("Over all trials", cell.passed, cell.valid, ceilings.all),
    ):
        if most is not None and valid and tail(passed, valid, most) < LEVEL:
            yield (
                f"{name}, {passed} of {valid} succeed, but according to the protocol's audit at most "
                f"{percent(most)} can. Does the model know the seed or a published run?"
            )


def tail(passed: int, valid: int, rate: float) -> float:
    """Return the probability of at least ``passed`` successes in ``valid`` trials with
    this rate.
    """
    from scipy.special import bdtrc

    return float(bdtrc(passed - 1, valid, rate))


def drifting(sample: Sample) -> Iterator[str]:
    """Yield a sentence if scores rise or fall with the subject's number by more than
    chance explains. A verdict assumes that they do neither.

    If the model does not change, the correlation between scores and the order of
    subjects, times the root of n - 1, is nearly standard normal.
    """
    import numpy as np

    found = scores_of(sample.judged())
    # Subjects with missing trials are left out, because their scores are not known
    # exactly.
    scores = found.low[found.low == found.high]
    count = len(scores)
    if count < FEWEST or not scores.std():
        return
    if abs(np.corrcoef(scores, np.arange(count))[0, 1]) * (count - 1) ** 0.5 > DRIFT:
        first, second = scores[: count // 2].mean(), scores[count // 2 :].mean()
        means = (
            f"In per cent of the measure's range, the first half of the subjects score {percent(first)}, the second half "
            if sample.measured
            else f"The first half of the subjects succeed in {percent(first)} of their trials, the second half in "
        )
        yield (
            f"{means}{percent(second)}, a larger difference than chance explains. The model may have changed during the "
            "run, but a verdict assumes that it has not."
        )
