"""What the JSON in a run log has to be: a log can come from anybody, and what reads it relies on its types."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError
from cheesebench.experiment.records import LARGEST, CellPlan, ReferenceValue, Variant, is_measurement
from cheesebench.options import OPTIONS, Option

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: More trials than any life, and any cell, has: the gaps of unfinished lives are filled up.
MOST_OF_LIFE, MOST_TRIALS = 10**5, 10**7
#: More options, plugins, versions, protocols or settings than any run has: reports list them.
MOST_ENTRIES = 10_000
#: More levels of lists in lists, digits of a whole number, animals, and letters of a variant, than there ever are.
DEEPEST, MOST_DIGITS, MOST_ANIMALS, LONGEST_VARIANT = 50, 100, 10**9, 10_000

#: As ``enter_estimand`` reads it.
_ESTIMAND = re.compile(r"all:?|last:\s*0*[1-9][0-9]{0,17}\s*|block:\s*\S.*", re.DOTALL)

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


def read_json(text: str) -> Any:
    """Return the JSON in a manifest or plan; ValueError where it is none, or has what no run writes."""
    value = json.loads(text, parse_int=_whole)
    _check_depth(value, DEEPEST)
    check_letters(text, value)
    return value


def check_letters(text: str, value: Any) -> None:
    """Raise ValueError if ``value``, read from JSON ``text``, has half a surrogate pair: it could not be written."""
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _check_depth(value: Any, left: int) -> None:
    if not left:
        raise ValueError(f"lists are nested more than {DEEPEST} deep")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, left - 1)


def checked_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest as it is; ValueError, with what is wrong, unless everything in it has its type."""
    for key, kind in MANIFEST.items():
        if key not in manifest:
            raise ValueError(f"the manifest has no {key}")
        _adapter(kind).validate_python(manifest[key], strict=True)
        if isinstance(manifest[key], dict):
            _check_size(manifest[key], f"the manifest's {key}")
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
    values = read_json(text)
    if not isinstance(values, dict) or not isinstance(values.get("variant"), str):
        raise ValueError("a plan has no variant")
    if len(values["variant"]) > LONGEST_VARIANT:
        raise ValueError(f"a variant has {len(values['variant']):,} letters")
    variant = Variant.parse(values.pop("variant"))
    plan: CellPlan = replace(_adapter(CellPlan).validate_json(json.dumps(values), strict=True), variant=variant)
    if min(plan.subjects, plan.trials) < 0 or not fits(plan):
        raise ValueError(f"a plan has {plan.subjects} subjects of {plan.trials} trials")
    _check_size(plan.settings, "a plan's settings")
    _check_size(plan.by, "a plan's conditions")
    if any(not 0 <= share <= 1 for share in _shares(plan)):
        raise ValueError("a share in a plan is not between 0 and 1")
    if plan.measured is not None and not _is_measurable(plan):
        raise ValueError("the measure of a plan has an empty range, no margin, or a number out of range")
    if plan.reference is not None and not _are_animals(plan.reference):
        raise ValueError("the reference of a plan has impossible animals")
    if not _ESTIMAND.fullmatch(plan.estimand):
        raise ValueError("a plan's estimand is not 'all', 'last:K' or 'block:NAME'")
    if plan.in_words and not isinstance(plan.settings.get("temperature"), int | float | None):
        raise ValueError("the temperature of a dialogue is not a number")
    if list(plan.looks) != sorted({look for look in plan.looks if 0 < look <= plan.subjects}):
        raise ValueError("the looks of a plan are not rising numbers of its subjects")
    return plan


def _check_size(mapping: Collection[Any], what: str) -> None:
    if len(mapping) > MOST_ENTRIES:
        raise ValueError(f"{what} are more than {MOST_ENTRIES:,}")


def fits(plan: CellPlan) -> bool:
    """Return whether a log may have a cell of so many trials."""
    return plan.trials <= MOST_OF_LIFE and plan.subjects * max(plan.trials, 1) <= MOST_TRIALS


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
    return all(map(is_measurement, (low, high, plan.margin))) and min(high - low, plan.margin) >= 1 / LARGEST


def _are_animals(reference: ReferenceValue) -> bool:
    number, sd = reference.n_animals or 1, reference.sd or 0.0
    values = (reference.value, sd, *(reference.interval or ()), *reference.curve_sd)
    return (
        0 < number <= MOST_ANIMALS
        and sd >= 0
        and all(map(is_measurement, values))
        and len(reference.curve_sd) in (0, len(reference.curve))
    )


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
