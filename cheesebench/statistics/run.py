"""A whole run: every cell judged, and each model summarised over its protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cheesebench.experiment.records import CellCalls, CellKey, CellPlan, TrialRecord
from cheesebench.statistics import wording
from cheesebench.statistics.against_published import against_published
from cheesebench.statistics.controls import compare_with_control
from cheesebench.statistics.holm import holm
from cheesebench.statistics.judgement import judge_sample
from cheesebench.statistics.published import published_rows
from cheesebench.statistics.sample import Sample, SubjectRecords, draw_sample, trials_by_subject
from cheesebench.statistics.spending import ALPHA
from cheesebench.statistics.summary import Average, CellResult, ControlResult, ModelSummary, RunSummary, Verdict
from cheesebench.statistics.views import Halves, best_of_views, halve
from cheesebench.statistics.wording import not_started, plural


def summarise_run(
    manifest: Mapping[str, object], plans: Sequence[CellPlan], trials: Iterable[TrialRecord]
) -> RunSummary:
    """Judge every planned cell and summarise every model; the order of ``trials`` does not matter."""
    by_cell: dict[CellKey, list[TrialRecord]] = {plan.key: [] for plan in plans}
    for record in trials:
        by_cell.get(record.key, []).append(record)
    return summarise_subjects(manifest, plans, lambda plan: trials_by_subject(by_cell[plan.key]).values())


def summarise_subjects(
    manifest: Mapping[str, object],
    plans: Sequence[CellPlan],
    trials_of: Callable[[CellPlan], Iterable[SubjectRecords]],
    calls: Mapping[CellKey, CellCalls] | None = None,
    causes: Mapping[CellKey, tuple[str, ...]] | None = None,
) -> RunSummary:
    """Judge and summarise a run of any size.

    ``trials_of`` yields the trials of each subject of a cell, by rising subject; they are read once. ``calls`` has the
    totals of each cell's calls to its model, ``causes`` the reasons why its trials could not be run.
    """
    cells: list[CellResult] = []
    halves: dict[CellKey, Halves] = {}
    paired = {key for plan in plans if plan.control for key in (plan.key, plan.plain_key)}
    samples: dict[CellKey, Sample] = {}
    against, beside = _against(manifest), list[tuple[CellPlan, bytes]]()
    for plan in plans:
        sample = draw_sample(plan, trials_of(plan))
        cell = wording.with_calls(judge_sample(plan, sample), (calls or {}).get(plan.key))
        cells.append(with_causes(cell, (causes or {}).get(plan.key, ())))
        halves[plan.key] = halve(sample)
        if plan.key in paired:
            samples[plan.key] = sample
        if against and cell.valid and not plan.control:
            beside.append((plan, b"".join(one.results for one in sample.per_subject)))
    cells = [_with_contradictions(cell, cells) for cell in cells]
    plain = [cell for cell in cells if not cell.plan.control]
    return RunSummary(
        manifest=manifest,
        cells=tuple(cells),
        models=tuple(summarise_model(group) for group in _by_model_view_and_variant(plain)),
        best_of_views=best_of_views(plain, halves),
        controls=tuple(_controls(cells, samples)),
        published=published_rows(plans),
        contrasts=against_published(against, beside),
    )


def _against(manifest: Mapping[str, object]) -> str | None:
    """Return the published model that the run was to be compared with."""
    options = manifest.get("options")
    name = options.get("against") if isinstance(options, Mapping) else None
    return name if isinstance(name, str) else None


def with_causes(cell: CellResult, causes: tuple[str, ...]) -> CellResult:
    """Return a cell with why its trials could not be run; the reason of an ERROR says the first of it."""
    cell = replace(cell, causes=causes)
    return replace(cell, reason=wording.with_causes(cell))


def _with_contradictions(cell: CellResult, cells: Iterable[CellResult]) -> CellResult:
    """Return a plain cell with the contradictions of the construct that its lesions show."""
    if cell.plan.control or cell.plan.construct is None:
        return cell
    own = [one for one in cells if one.plan.control and one.plan.plain_key == cell.plan.key]
    return replace(cell, contradicted=tuple(sentence for one in own for sentence in one.contradicted))


def _controls(cells: Sequence[CellResult], samples: Mapping[CellKey, Sample]) -> Iterator[ControlResult]:
    by_key = {cell.plan.key: cell for cell in cells}
    for cell in cells:
        plain = by_key.get(cell.plan.plain_key)
        if cell.plan.control and plain is not None:
            yield compare_with_control(plain, samples[plain.plan.key], cell, samples[cell.plan.key])


def _by_model_view_and_variant(cells: Iterable[CellResult]) -> list[list[CellResult]]:
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in cells:
        groups.setdefault((cell.plan.model, cell.plan.view, cell.plan.series), []).append(cell)
    return list(groups.values())


def summarise_model(cells: Sequence[CellResult]) -> ModelSummary:
    """Summarise the cells of one model in one view (at least one)."""
    dimensions = dict.fromkeys(cell.plan.dimension for cell in cells)
    profile = {name: average([c for c in cells if c.plan.dimension == name]) for name in dimensions}
    holm = adjusted_p_values(cells)
    failed = tuple(name for name, p in holm.items() if p < ALPHA)
    gate, reason = _gate(cells, failed)
    return ModelSummary(
        model=cells[0].plan.model,
        view=cells[0].plan.view,
        variant=cells[0].plan.series,
        overall=average(cells),
        profile={name: mean for name, mean in profile.items() if mean is not None},
        gate=gate,
        gate_reason=reason,
        failed=failed,
        holm=holm,
    )


def average(cells: Sequence[CellResult]) -> Average | None:
    """Return the unweighted mean of the cells' rates; None where no cell has one that its verdict is about.

    The protocols are fixed and their subjects independent, so the squared standard errors add.
    """
    rated = [cell for cell in cells if cell.plan.measured is None]
    estimates = [(c.rate, c.standard_error) for c in rated if c.rate is not None and c.standard_error is not None]
    if not estimates:
        return None
    count = len(estimates)
    return Average(
        mean=sum(rate for rate, _ in estimates) / count,
        standard_error=sum(error**2 for _, error in estimates) ** 0.5 / count,
        protocols=count,
    )


def adjusted_p_values(cells: Sequence[CellResult]) -> dict[str, float]:
    """Return Holm-adjusted p values of being inferior, by cell label, over all cells that were compared.

    A cell with an ERROR has no p value and does not count as a test.
    """
    compared = {c.plan.label: c.p_inferior for c in cells if c.p_inferior is not None}
    return dict(zip(compared, holm(list(compared.values())), strict=True))


def _gate(cells: Sequence[CellResult], surviving: Sequence[str]) -> tuple[Verdict, str]:
    """Return the overall result of these cells' tests and its reason: red if one of them is red."""
    count = {verdict: sum(cell.verdict is verdict for cell in cells) for verdict in Verdict}
    total = plural(len(cells), "cell" if all(cell.plan.in_words for cell in cells) else "protocol")
    if count[Verdict.PASS] == len(cells):
        if len(cells) == 1:
            return Verdict.PASS, f"The {total.removeprefix('1 ')} passed."
        return Verdict.PASS, f"All {total} passed, which needs no correction."
    tally = f"{count[Verdict.PASS]} of {total} passed"
    not_run = sum(cell.verdict is Verdict.ERROR and not_started(cell) for cell in cells)
    unmeasured = count[Verdict.ERROR] - not_run
    said = [(unmeasured, "could not be measured"), (not_run, "interrupted, not run")]
    broken = "; ".join(f"{number} {what}" for number, what in said if number)
    if count[Verdict.FAIL]:
        failed = [cell.plan.label for cell in cells if cell.verdict is Verdict.FAIL]
        survived = [name for name in failed if name in surviving]
        corrected = "also" if survived == failed else f"{', '.join(survived)} also" if survived else "but no longer"
        text = f"{', '.join(failed)} failed, {corrected} after Holm's correction for testing them together"
        return Verdict.FAIL, "; ".join(filter(None, (tally, text, broken))) + "."
    if broken:
        return Verdict.ERROR, f"{tally}; {broken}."
    return Verdict.INCONCLUSIVE, f"{tally} and none failed; the rest need more data or make no claim."
