"""Whether a budget suffices for a planned run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cheesebench.planning.plan import Forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Sufficiency:
    """Whether ``dollars`` suffice. None, and an empty mapping: nobody can say."""

    dollars: float
    any_model: bool | None
    """For the bound, which no model exceeds."""
    respondents: Mapping[str, bool]
    """For each of the scripted respondents, as planned."""
    estimate: bool | None
    """For what earlier runs took."""
    text: str
    """A sentence for people."""


def sufficiency(found: Forecast, dollars: float) -> Sufficiency:
    """Return whether ``dollars`` suffice: for any model, for some respondents, or by the estimate."""
    most, about = found.most.dollars, None if found.estimate is None else found.estimate.dollars
    needs = {run.respondent: run.dollars for run in found.as_planned if run.dollars is not None}
    return Sufficiency(
        dollars=dollars,
        any_model=None if most is None else most <= dollars,
        respondents={name: needed <= dollars for name, needed in needs.items()},
        estimate=None if about is None else about <= dollars,
        text=_sentence(f"--max-cost {dollars:g}", dollars, most, needs, about),
    )


def _sentence(budget: str, cost: float, most: float | None, needs: Mapping[str, float], about: float | None) -> str:
    if most is not None and most <= cost:
        return f"{budget} suffices for any model: the bound is ${most:.2f}."
    if needs:
        can = [name for name, dollars in needs.items() if dollars <= cost]
        dearest = f"${math.ceil(100 * max(needs.values())) / 100:.2f} would do for all of them"
        if len(can) == len(needs):
            return f"{budget} suffices for all of these respondents, but not for the bound."
        return f"{budget} suffices for {', '.join(can) or 'none'} of these respondents; {dearest}."
    if about is None:
        return f"Nobody can say whether {budget} suffices: there is no price, or no earlier run."
    return f"{budget} {'suffices' if about <= cost else 'does not suffice'} by the estimate of ${about:.2f}."
