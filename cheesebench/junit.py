"""Properties of test cases and of the suite in JUnit XML files, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cheesebench.film import printable
from cheesebench.statistics.reference_limits import has_interval, reference_limits

if TYPE_CHECKING:
    from cheesebench.statistics import CellResult, RunSummary
    from cheesebench.statistics.runs import RunComparison

Properties = list[tuple[str, str]]

PREFIX = "cheesebench."


def case_properties(result: CellResult) -> Properties:
    """Return the properties of one judged cell; what is unknown is left out. Rates are proportions.

    A control has its name (``control``) in place of a verdict, unless it could not be measured.
    """
    plan, flags, reference = result.plan, result.flags, result.plan.reference
    interval = result.interval
    animals = reference_limits(reference, 0.025) if reference is not None and has_interval(reference) else None
    return _properties(
        [
            ("model", plan.model),
            ("protocol", plan.protocol),
            ("protocol_sha256", plan.sha256),
            ("view", plan.view),
            ("variant", str(plan.variant)),
            ("design", plan.design),
            ("control", plan.control),
            ("verdict", None if plan.control and result.verdict != "ERROR" else result.verdict.value),
            ("reason", result.reason),
            ("n", result.n_text),
            ("subjects", result.subjects),
            ("trials_per_subject", plan.trials),
            ("planned", result.planned),
            ("valid", result.valid),
            ("passed", result.passed),
            ("missing", result.missing),
            ("rate", result.rate),
            ("interval_low", interval and interval[0]),
            ("interval_high", interval and interval[1]),
            ("interval_method", result.interval_method),
            *_measure_properties(result),
            ("reference", reference and reference.value),
            ("reference_low", animals and animals[0]),
            ("reference_high", animals and animals[1]),
            ("reference_declared", flags.reference_declared if reference is not None else None),
            ("margin", plan.margin),
            ("difference", result.difference),
            ("difference_low", result.difference_low),
            ("difference_high", result.difference_high),
            ("p_inferior", result.p_inferior),
            ("icc", result.icc),
            ("random", plan.chance),
            ("subjects_needed", result.subjects_needed),
            ("not_diagnostic", flags.not_diagnostic),
            ("goal_visible", flags.goal_visible),
            ("this_subject_only", flags.this_subject_only),
            ("duplicate_subjects", flags.duplicate_subjects),
            ("memory_contradicted", flags.memory_contradicted),
            ("analogy", flags.analogy or None),
            ("settled", result.settled or None),
            ("warnings", "; ".join(result.warnings)),
            ("causes", "; ".join(result.causes)),
            *_look_properties(result),
            *_validity_properties(result),
            *_call_properties(result),
        ]
    )


def _measure_properties(result: CellResult) -> list[tuple[str, object]]:
    """Return the measure that a verdict is about: reference, margin and differences are then in its unit."""
    measured, judged = result.plan.measured, result.judged
    if measured is None:
        return []
    return [
        ("measure", measured.name),
        ("measure_better", measured.better),
        ("measure_mean", judged and judged.mean),
        ("measure_low", judged and judged.interval and judged.interval[0]),
        ("measure_high", judged and judged.interval and judged.interval[1]),
        ("measure_sd", judged and judged.sd),
        ("measure_subjects", judged and judged.subjects),
    ]


def _look_properties(result: CellResult) -> list[tuple[str, object]]:
    look = result.look
    if look is None:
        return []
    return [
        ("look", look.subjects),
        ("look_most", look.most),
        ("look_standing", look.standing),
        ("look_tail", look.tail),
        ("look_next", look.following),
        ("look_needed", look.needed),
        ("look_beyond", look.beyond),
        ("truncated", result.flags.truncated),
    ]


def _validity_properties(result: CellResult) -> list[tuple[str, object]]:
    plan = result.plan
    if plan.in_words:
        return []
    construct, lesion = plan.construct, plan.lesion
    return [
        ("construct", construct and construct.name),
        ("validity", "not validated" if construct is None else construct.status),
        ("abolished_by", construct and [f"{name} {most:g}" for name, most in construct.abolished_by]),
        ("lesion", plan.control if lesion else None),
        ("lesion_at_most", lesion and lesion.at_most),
        ("contradicted", " ".join(result.contradicted)),
    ]


def _call_properties(result: CellResult) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = [(f"agent.{name}", count) for name, count in result.agent_counts.items()]
    if result.calls is not None:
        totals = result.calls.totals
        pairs += [(f"calls.{name}", getattr(totals, name)) for name in totals.__slots__]
        pairs.append(("served_by", result.calls.served_by))
    return pairs


def suite_properties(summary: RunSummary) -> Properties:
    """Return the properties of the whole run: its identity, and the result of each model in each view."""
    manifest = summary.manifest
    pairs: list[tuple[str, object]] = [(name, manifest.get(name)) for name in ("run_id", "created", "format")]
    for section in ("options", "versions", "git"):
        values = manifest.get(section)
        if isinstance(values, Mapping):
            pairs.extend((f"{section}.{name}", value) for name, value in values.items())
    for model in summary.models:
        where = f"{model.model}[{'-'.join(filter(None, (model.view, model.variant)))}]"
        pairs.append((f"{where}.gate", model.gate.value))
        pairs.append((f"{where}.gate_reason", model.gate_reason))
        if model.overall is not None:
            pairs.append((f"{where}.mean_rate", model.overall.mean))
            pairs.append((f"{where}.mean_rate_standard_error", model.overall.standard_error))
    return _properties(pairs)


def comparison_properties(found: RunComparison) -> Properties:
    """Return the properties of the comparison with a baseline, which is about the whole run."""
    pairs: list[tuple[str, object]] = [("compared_with", found.second), ("worse", found.worse)]
    for model in found.models:
        where = "-".join(filter(None, (model.view, model.variant)))
        for cell in model.cells:
            name = f"{model.first_model}[{where}].{cell.protocol}.compared"
            pairs += [(name, cell.answer), (f"{name}_difference", cell.paired.difference)]
        pairs.append((f"{model.first_model}[{where}].compared", model.overall.answer))
    pairs.append(("not_compared", list(found.unseen) or None))
    pairs.append(("comparison_warnings", " ".join(found.warnings)))
    return _properties(pairs)


def _properties(pairs: Iterable[tuple[str, object]]) -> Properties:
    return [(printable(PREFIX + name), _text(value)) for name, value in pairs if value is not None and value != ""]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return printable(",".join(map(str, value)))
    return printable(str(value))
