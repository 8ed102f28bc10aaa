"""Two-choice trials: whether a subject told two kinds of trial apart (d'), or leaned to one answer (bias).

What is asked is general: trials that end in one right and one wrong outcome, and a variable of the protocol that had
two values (a side, a stimulus). A subject that knows which value it is answers both kinds rightly; one that always
gives the same answer is right on one kind and wrong on the other. Signal detection tells the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from cheesebench.experiment.records import TrialRecord


@dataclass(frozen=True, slots=True)
class Choices:
    """How well trials of two kinds were told apart.

    A hit is being right on ``first``, a false alarm being wrong on ``second``. ``d_prime`` is z(hits) - z(false
    alarms) and ``bias`` is -(z(hits) + z(false alarms)) / 2, positive when the answer that is right on ``second`` is
    preferred. Both come from log-linear rates (Hautus 1995: half a trial is added to every count), so that perfect
    answers stay finite. The trials of all subjects are pooled; leanings of subjects to opposite sides cancel out,
    which is why ``side_bias`` is the mean size of each subject's own.
    """

    variable: str
    first: str
    second: str
    right_on_first: int
    trials_of_first: int
    right_on_second: int
    trials_of_second: int
    d_prime: float
    bias: float
    side_bias: float | None
    """Mean over subjects of ``|right rate on first - right rate on second|``; None where nobody met both kinds."""


def two_choices(records: Sequence[TrialRecord]) -> tuple[Choices, ...]:
    """Return the choices in trials of one block, for every variable that had two names as values.

    Trials with other ends than the two (such as time-outs) are left out; there is nothing to return unless
    exactly one outcome is a success and exactly one other, chosen and not timed out, is a failure.
    """
    answered = [r for r in records if r.success is not None and r.outcome not in (None, "timeout")]
    ends = {(r.outcome, r.success) for r in answered}
    if len(ends) != 2 or len({outcome for outcome, _ in ends}) != 2 or len({success for _, success in ends}) != 2:
        return ()
    names = dict.fromkeys(name for record in answered for name in record.variables)
    return tuple(choices for name in names if (choices := _by(name, answered)) is not None)


def _by(name: str, answered: Sequence[TrialRecord]) -> Choices | None:
    found = [record.variables.get(name) for record in answered]
    values = sorted({value for value in found if isinstance(value, str)})
    if len(values) != 2 or not all(isinstance(value, str) for value in found):
        return None
    first, second = values
    subjects = sorted({record.subject for record in answered})
    tables = [_count(name, first, second, [r for r in answered if r.subject == subject]) for subject in subjects]
    right_1, all_1, right_2, all_2 = (sum(column) for column in zip(*tables, strict=True))
    z = NormalDist().inv_cdf
    hits, alarms = z((right_1 + 0.5) / (all_1 + 1)), z((all_2 - right_2 + 0.5) / (all_2 + 1))
    own = [abs(table[0] / table[1] - table[2] / table[3]) for table in tables if table[1] and table[3]]
    return Choices(
        variable=name,
        first=first,
        second=second,
        right_on_first=right_1,
        trials_of_first=all_1,
        right_on_second=right_2,
        trials_of_second=all_2,
        d_prime=hits - alarms,
        bias=-(hits + alarms) / 2,
        side_bias=sum(own) / len(own) if own else None,
    )


def _count(name: str, first: str, second: str, life: Sequence[TrialRecord]) -> tuple[int, int, int, int]:
    kinds = [[bool(r.success) for r in life if r.variables[name] == value] for value in (first, second)]
    return sum(kinds[0]), len(kinds[0]), sum(kinds[1]), len(kinds[1])
