"""What the JSON in a run log has to be: a log can come from anybody, and what reads it relies on its types."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError
from cheesebench.experiment.records import CellPlan, Variant
from cheesebench.options import OPTIONS, Option

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: More trials than any life, and any cell, has: the gaps of unfinished lives are filled up.
MOST_OF_LIFE, MOST_TRIALS = 10**5, 10**7
#: More options, plugins, versions, protocols or settings than any run has: reports list them.
MOST_ENTRIES = 10_000

_ESTIMAND = re.compile(r"all|last:[1-9][0-9]{0,17}|block:\s*\S.*", re.DOTALL)

#: What every manifest has, and of which type it is.
MANIFEST: Mapping[str, Any] = {
    "format": int,
    "run_id": str,
    "created": str,
    "versions": dict[str, str],
    "git": dict[str, str | bool] | None,
    "options": dict[str, Any],
    "plugins": dict[str, str],
    "protocols": dict[str, dict[str, str]],
}


def checked_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest as it is; ValueError, with what is wrong, unless everything in it has its type."""
    for key, kind in MANIFEST.items():
        if key not in manifest:
            raise ValueError(f"the manifest has no {key}")
        _adapter(kind).validate_python(manifest[key], strict=True)
        if isinstance(manifest[key], dict):
            _check_size(manifest[key], f"the manifest's {key}")
    if (git := manifest["git"]) is not None and not {"revision", "dirty"} <= git.keys():
        raise ValueError("the manifest's git has no revision, or does not say whether it was dirty")
    recorded = manifest["options"]
    if recorded.get("seed") is None:  # without it no trial can be lived again
        raise ValueError("the manifest's options have no seed")
    for option in OPTIONS:
        if option.key in recorded and not _is_value(option, recorded[option.key]):
            raise ValueError(f"the option {option.name} is {recorded[option.key]!r}")
    return dict(manifest)


@lru_cache(maxsize=4096)
def read_plan(text: str) -> CellPlan:
    """Return the plan in a JSON object; ValueError, with what is wrong, where there is none."""
    values = json.loads(text)
    if not isinstance(values, dict) or not isinstance(values.get("variant"), str):
        raise ValueError("a plan has no variant")
    variant = Variant.parse(values.pop("variant"))
    plan: CellPlan = replace(_adapter(CellPlan).validate_json(json.dumps(values), strict=True), variant=variant)
    if min(plan.subjects, plan.trials) < 0 or not fits(plan):
        raise ValueError(f"a plan has {plan.subjects} subjects of {plan.trials} trials")
    _check_size(plan.settings, "a plan's settings")
    if any(not 0 <= share <= 1 for share in _shares(plan)):
        raise ValueError("a share in a plan is not between 0 and 1")
    if plan.measured is not None and not _is_measurable(plan):
        raise ValueError("the measure of a plan has an empty range, or no margin")
    if not _ESTIMAND.fullmatch(plan.estimand):
        raise ValueError("a plan's estimand is not 'all', 'last:K' or 'block:NAME'")
    if plan.in_words and not isinstance(plan.settings.get("temperature"), int | float | None):
        raise ValueError("the temperature of a dialogue is not a number")
    if any(look < 1 for look in plan.looks):
        raise ValueError("a look in a plan has no subjects")
    return plan


def _check_size(mapping: Mapping[str, Any], what: str) -> None:
    if len(mapping) > MOST_ENTRIES:
        raise ValueError(f"{what} are more than {MOST_ENTRIES:,}")


def fits(plan: CellPlan) -> bool:
    """Return whether a log may have a cell of so many trials."""
    return plan.trials <= MOST_OF_LIFE and plan.subjects * plan.trials <= MOST_TRIALS


def check_fits(plan: CellPlan) -> None:
    """Raise OptionError for a cell of more trials than a log may have."""
    if not fits(plan):
        raise OptionError(
            f"{plan.label} by {plan.model}: {plan.subjects:,} subjects of {plan.trials:,} trials are more than "
            f"a cell can have ({MOST_TRIALS:,} trials). Give fewer --subjects."
        )


def _is_measurable(plan: CellPlan) -> bool:
    assert plan.measured is not None
    low, high = plan.measured.range or (0.0, 1.0)
    return math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(plan.margin) and plan.margin > 0


def _shares(plan: CellPlan) -> Iterator[float]:
    yield from filter(lambda share: share is not None, (plan.chance,))
    if plan.measured is not None:
        return  # in the measure's own unit
    yield plan.margin
    if (reference := plan.reference) is not None:
        yield from (reference.value, *(reference.interval or ()), *reference.curve)


def _is_value(option: Option, value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, list):
        return (option.repeatable or option.commas) and all(_is_single(option, one) for one in value)
    return _is_single(option, value)


def _is_single(option: Option, value: Any) -> bool:
    if option.flag:
        return isinstance(value, bool)
    if option.type is str:
        return isinstance(value, str)
    number = isinstance(value, int) or (option.type is float and isinstance(value, float) and math.isfinite(value))
    return number and not isinstance(value, bool) and (option.minimum is None or value >= option.minimum)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # workers read no log

    return TypeAdapter(kind)
