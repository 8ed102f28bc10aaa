"""The ability scale: 0 is the best possible rate without the ability, and 1 is the rate
of an ideal learner.

The protocol's audit proves the rate at 0: no behaviour without the ability exceeds it.
The rate of a single such behaviour, for example random moves, may be lower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cheesebench.records import AbilityScale, CellPlan
from cheesebench.statistics.question import thresholds

#: Number of decimals to which an index is rounded. The bounds in the proofs have as
#: many.
DECIMALS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """Model, animals and bar of a cell on its ability scale.

    Numbers are not clipped: a model below 0 is worse than the best subject without the
    ability, and a model above 1 was lucky.
    """

    model: float | None = None
    """The model's index; None if the cell has no rate."""
    interval: tuple[float, float] | None = None
    """The rate's 95 % interval on the same scale; None if the cell has no rate."""
    rodent: float | None = None
    bar: float | None = None
    """The index above which enough subjects give a PASS. It stands for the animals'
    rate less the margin, and is higher if the animals' mean is uncertain. None without
    a reference.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAbility:
    """Mean index over protocols. Each index is clipped to the range from 0 to 1.

    Protocols with the same animals together have the weight of one protocol.
    """

    mean: float
    rodent: float | None
    """Mean of the animals over the same protocols; None if one of these protocols has
    no reference.
    """
    bar: float | None
    protocols: tuple[str, ...]
    """Protocols that have a scale and a rate."""
    missing: tuple[str, ...] = ()
    """Protocols that lack a scale or a rate."""
    together: tuple[tuple[str, ...], ...] = ()
    """Groups of protocols that share their animals."""


def index(scale: AbilityScale, rate: float) -> float:
    """Return (rate - without) / (ideal - without)."""
    found = round((rate - scale.without) / (scale.ideal - scale.without), DECIMALS)
    return found + 0.0  # Adding 0.0 turns a negative zero into 0.


def ability(
    plan: CellPlan, rate: float | None, interval: tuple[float, float] | None = None
) -> Ability | None:
    """Return the model, animals and bar of a cell on its protocol's scale. Return None
    if the zero of the scale is not proved, or the verdict is about a measure.
    """
    scale, animals = plan.ability, plan.reference
    if scale is None or plan.measured is not None:
        return None
    return Ability(
        model=None if rate is None else index(scale, rate),
        interval=None
        if interval is None
        else (index(scale, interval[0]), index(scale, interval[1])),
        rodent=None if animals is None else index(scale, animals.value),
        bar=None
        if animals is None
        else index(scale, thresholds(animals, plan.margin)[0]),
    )


def mean_ability(
    cells: Iterable[tuple[CellPlan, Ability | None]],
) -> MeanAbility | None:
    """Return the mean over a model's cells, or None if no cell has an index."""
    found = list(cells)
    known = {
        plan.label: (plan, one)
        for plan, one in found
        if one is not None and one.model is not None
    }
    if not known:
        return None
    groups = _by_animals({name: plan for name, (plan, _) in known.items()})

    def mean(side: str) -> float | None:
        values = {name: getattr(one, side) for name, (_, one) in known.items()}
        return None if None in values.values() else grouped_mean(groups, values)

    model = mean("model")
    assert model is not None
    return MeanAbility(
        mean=model,
        rodent=mean("rodent"),
        bar=mean("bar"),
        protocols=tuple(known),
        missing=tuple(plan.label for plan, _ in found if plan.label not in known),
        together=tuple(names for names in groups if len(names) > 1),
    )


def grouped_mean(groups: Iterable[Sequence[str]], values: Mapping[str, float]) -> float:
    """Return the mean of the groups' means. Each value is clipped to the range from 0
    to 1.
    """
    means = [
        sum(min(1.0, max(0.0, values[name])) for name in names) / len(names)
        for names in groups
    ]
    return sum(means) / len(means)


def _by_animals(plans: Mapping[str, CellPlan]) -> list[tuple[str, ...]]:
    """Group protocols by their animals. Two protocols have the same animals if their
    references name the same source and the same number of animals.
    """
    groups: dict[object, list[str]] = {}
    for name, plan in plans.items():
        animals = plan.reference
        is_known = animals is not None and animals.n_animals and animals.source
        key = (animals.source, animals.n_animals) if animals and is_known else name
        groups.setdefault(key, []).append(name)
    return [tuple(names) for names in groups.values()]
