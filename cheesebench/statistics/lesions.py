"""What a lesion implies for the construct: if the score does not fall, it was not reached through the construct."""

from __future__ import annotations

from cheesebench.statistics.summary import CellResult, PairedComparison
from cheesebench.statistics.wording import percent


def contradiction(cell: CellResult) -> str:
    """Return how a control cell contradicts the protocol's construct; empty where it does not.

    It does where even the lower limit of its rate (two-sided 95 %) is above what the construct leaves.
    """
    plan, claim = cell.plan, cell.plan.lesion
    if claim is None or claim.at_most is None or plan.construct is None:
        return ""
    if cell.rate is None or cell.interval is None or cell.interval[0] <= claim.at_most:
        return ""
    return (
        f"{percent(cell.rate)} of trials succeed {claim.words}, but at most {percent(claim.at_most)} should: this is "
        f"not {plan.construct.name}."
    )


def lesion_sentence(cell: CellResult, comparison: PairedComparison | None = None) -> str:
    """Return what a control cell with a lesion says of the construct; empty where nothing is claimed of the lesion.

    ``comparison`` is that of its plain cell (first) with it.
    """
    plan, claim = cell.plan, cell.plan.lesion
    if claim is None or plan.construct is None or cell.rate is None or cell.interval is None:
        return ""
    if claim.spared:
        if comparison is None or comparison.answer != "better":
            return ""
        return f"The rate falls {claim.words}, which must not matter for {plan.construct.name}."
    if claim.at_most is None:
        return f"The construct, {plan.construct.name}, makes no claim about subjects {claim.words}."
    if text := contradiction(cell):
        return text
    most = percent(claim.at_most)
    if cell.interval[1] <= claim.at_most:
        return f"The rate is at most {most} {claim.words}, as {plan.construct.name} must be."
    return (
        f"{percent(cell.rate)} of trials succeed {claim.words}, and at most {most} should: whether this is "
        f"{plan.construct.name} is undecided."
    )
