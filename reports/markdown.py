"""The report in GitHub-flavoured Markdown (also used for ``$GITHUB_STEP_SUMMARY``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cheesebench.reports import cells as words
from cheesebench.reports import controls, matrix, studies
from cheesebench.reports.escaping import clean, escape
from cheesebench.reports.pictures import condition_curves, learning_curves, profile
from cheesebench.reports.provenance import provenance
from cheesebench.statistics import TAXONOMY, Verdict
from cheesebench.statistics.published import ELSEWHERE, published_elsewhere
from cheesebench.statistics.spending import ALPHA
from cheesebench.statistics.wording import number, percent, shares, shown_value

if TYPE_CHECKING:
    from cheesebench.statistics import BestOfViews, CellResult, ControlResult, Measure, ModelSummary, RunSummary
    from cheesebench.statistics.summary import PublishedContrast

#: Longest text in a table: a longer one would push its column out of sight.
CELL = 160


def render(summary: RunSummary) -> str:
    """Return the whole report."""
    blocks = [f"# CheeseBench: {words.question(summary.cells)}?", *_overview(summary)]
    blocks.append("> " + "  \n> ".join(escape(line) for line in words.how_to_read(summary.cells)))
    for model in summary.models:
        blocks.extend(_model(model, words.cells_of(summary, model)))
    blocks.extend(_study(summary))
    for best in summary.best_of_views:
        blocks.extend(_best_of_views(best))
    blocks.extend(_controls(summary.controls))
    blocks.extend(_contrasts(summary.contrasts))
    blocks.extend(_published(summary))
    blocks.extend(provenance(summary, table))
    return "\n\n".join(blocks) + "\n"


def _contrasts(contrasts: Sequence[PublishedContrast]) -> list[str]:
    if not contrasts:
        return []
    headers = words.CONTRAST_HEADERS
    return [
        f"## Beside {escape(contrasts[0].model)}, as published",
        words.HOW_TO_READ_CONTRASTS,
        table(headers, words.contrast_rows(contrasts), headers[2:]),
    ]


def _published(summary: RunSummary) -> list[str]:
    """Say why there is nothing published beside this run, where somebody may look for it."""
    elsewhere = not summary.published and published_elsewhere(cell.plan for cell in summary.cells)
    return [f"> {ELSEWHERE}"] if elsewhere else []


def _study(summary: RunSummary) -> list[str]:
    name = studies.study_name(summary)
    if not name:
        return []
    headers, rows = studies.settings_table(summary)
    return [f"## Study: {escape(name)}", studies.HOW, table(list(map(escape, headers)), rows, map(escape, headers[2:]))]


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> str:
    """Return a Markdown table; ``rows`` are escaped here, and the columns named in ``right`` align right."""
    from tabulate import tabulate

    numeric = set(right)
    return tabulate(
        [[escape(clean(value, CELL)) for value in row] for row in rows],
        headers=list(headers),
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if header in numeric else "left" for header in headers],
    )


def _overview(summary: RunSummary) -> list[str]:
    return [matrix.render(summary).rstrip()]


def _model(model: ModelSummary, cells: Sequence[CellResult]) -> list[str]:
    blocks = [
        f"## {' · '.join(map(escape, words.whose(model)))}: {words.marked(model.gate)}",
        _headline(model, cells),
        "### Verdicts",
        _verdicts(cells),
    ]
    meanings = _meanings(cells)
    if meanings:
        blocks.append(meanings)
    holm = _holm(model, cells)
    if holm:
        blocks.append(holm)
    blocks.extend(_validity(cells))
    blocks.extend(_open_questions(cells))
    blocks.extend(profile(model, cells))
    blocks.extend(learning_curves(cells))
    blocks.extend(condition_curves(cells))
    blocks.extend(["### Outcomes of the trials", _outcomes(cells)])
    blocks.extend(_measures(cells))
    blocks.extend(_calls(cells))
    return blocks


def _headline(model: ModelSummary, cells: Sequence[CellResult]) -> str:
    sentences = [f"**{escape(model.gate_reason)}**"]
    if model.overall is not None:
        error = words.standard_error(model.overall)
        mean = f"Mean pass rate **{percent(model.overall.mean)}**{f' (standard error {error})' if error else ''}"
        rodent, chance = words.rodent_mean(cells), words.chance_mean(cells)
        against = [
            f"{name} {percent(value)}"
            for name, value in ((words.reference_name(cells), rodent), ("random", chance))
            if value is not None
        ]
        sentences.append(f"{mean}{'; ' if against else ''}{', '.join(against)}.")
    return " ".join(sentences)


def _verdicts(cells: Sequence[CellResult]) -> str:
    rows = [
        (
            cell.plan.label,
            words.marked(cell.verdict),
            words.rate(cell),
            words.interval(cell),
            words.reference(cell),
            words.floor(cell),
            words.difference(cell),
            words.margin(cell),
            cell.n_text,
            ", ".join(words.remarks(cell)),
        )
        for cell in cells
    ]
    difference = words.difference_name(cells)
    headers = (
        "protocol",
        "verdict",
        "rate",
        "95 %",
        words.reference_name(cells),
        "random",
        difference,
        "margin",
        "n",
        "remarks",
    )
    return table(headers, rows, right=("rate", "95 %", "random", difference, "margin"))


def _meanings(cells: Sequence[CellResult]) -> str:
    used = {remark for cell in cells for remark in words.remarks(cell)}
    lines = [f"- *{remark}*: {meaning}." for remark, meaning in words.MEANINGS.items() if remark in used]
    return "\n".join(lines)


def _validity(cells: Sequence[CellResult]) -> list[str]:
    said = [f"- **{escape(label)}**: {escape(text)}" for label, text in words.validities(cells)]
    return ["### What was measured", "\n".join(said)] if said else []


def _holm(model: ModelSummary, cells: Sequence[CellResult]) -> str:
    failed = [cell.plan.label for cell in cells if cell.verdict is Verdict.FAIL]
    if not failed:
        return ""
    items = []
    for name in failed:
        p_value = model.holm.get(name)
        if p_value is None:
            continue
        shown = "p < .001" if p_value < 0.001 else f"p = {p_value:.3f}".replace("0.", ".")
        stands = "stands" if p_value < ALPHA else "does not hold"
        items.append(f"{escape(name)} {stands} ({shown})")
    return f"Every cell is a test; after correcting the FAILs for that (Holm): {', '.join(items)}."


def _open_questions(cells: Sequence[CellResult]) -> list[str]:
    undecided = [cell for cell in cells if cell.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR)]
    if not undecided:
        return []
    lines = [f"- **{escape(cell.plan.label)}**: {escape(cell.reason)}" for cell in undecided]
    return ["### Undecided, and why", "\n".join(lines)]


def _outcomes(cells: Sequence[CellResult]) -> str:
    others = {name: None for cell in cells for name in cell.outcomes if name not in TAXONOMY}
    names = [name for name in (*TAXONOMY, *others) if any(cell.outcomes.get(name) for cell in cells)]
    rows = [
        (
            cell.plan.label,
            *(str(cell.outcomes.get(name) or "·") for name in names),
            ", ".join(f"{name} {count}" for name, count in cell.raw_outcomes.items()),
        )
        for cell in cells
    ]
    headers = ("protocol", *map(escape, names), "in the protocol's words")
    return table(headers, rows, right=map(escape, names))


def _measures(cells: Sequence[CellResult]) -> list[str]:
    blocks = []
    own = [
        (cell.plan.label, measure.name, _mean(measure), str(measure.n)) for cell in cells for measure in cell.measures
    ]
    if own:
        blocks += [
            "### Measures",
            table(("protocol", "measure", "mean ± sd", "trials"), own, ["mean ± sd", "trials"]),
        ]
    classes = [
        (cell.plan.protocol, found.name, shares(found), str(sum(found.counts.values())))
        for cell in cells
        for found in cell.classes
    ]
    if classes:
        blocks += ["### Classes", table(("protocol", "measure", "share of trials", "trials"), classes, ["trials"])]
    splits = [
        (cell.plan.protocol, one.variable, shown_value(one.value), percent(one.passed / one.trials), str(one.trials))
        for cell in cells
        for one in cell.splits
    ]
    if splits:
        headers = ["protocol", "split by", "value", "rate", "trials"]
        blocks += ["### By condition", table(headers, splits, right=headers[2:])]
    names = list({measure.name: None for cell in cells for measure in cell.strategy})
    if names:
        headers = ["protocol", *(escape(name.replace("_", " ")) for name in names)]
        rows = []
        for cell in cells:
            means = {measure.name: number(measure.mean) for measure in cell.strategy}
            rows.append((cell.plan.label, *(means.get(name, words.NOTHING) for name in names)))
        blocks += ["### Movement (means per trial)", table(headers, rows, right=headers[1:])]
    return blocks


def _calls(cells: Sequence[CellResult]) -> list[str]:
    calls = words.calls_table(cells)
    if calls is None:
        return []
    headers = [escape(header) for header in calls.headers]
    names = [f"Answered by {', '.join(map(escape, calls.served_by))}."] if calls.served_by else []
    return ["### Calls to the model", table(headers, calls.rows, right=headers[1:]), *names]


def _mean(measure: Measure) -> str:
    spread = "" if measure.sd is None else f" ± {number(measure.sd)}"
    return f"{number(measure.mean)}{spread}"


def _best_of_views(best: BestOfViews) -> list[str]:
    fitted = words.NOTHING if best.cross_fitted is None else percent(best.cross_fitted)
    rows = [
        (
            choice.protocol,
            ", ".join(f"{view} {percent(rate)}" for view, rate in choice.rates.items()),
            percent(choice.best),
            words.NOTHING if choice.cross_fitted is None else percent(choice.cross_fitted),
            percent(choice.equal_views),
        )
        for choice in best.protocols
    ]
    headers = ("protocol", "views", "best", "cross-fitted", "if all views were equal")
    return [
        f"## Best of views: {escape(best.model)}",
        f"Best of views **{percent(best.best)}**, biased upward. For comparison: the view chosen on one half of the "
        f"data and scored on the other (**{fitted}**), and what equal views would give by chance "
        f"(**{percent(best.equal_views)}**).",
        table(headers, rows, right=headers[2:]),
    ]


def _controls(results: Sequence[ControlResult]) -> list[str]:
    if not results:
        return []
    blocks = ["## Controls", controls.HOW_TO_READ]
    for result in results:
        headers = controls.headers(result)
        blocks += [
            f"### {escape(controls.title(result))}",
            table(headers, controls.rows(result), right=headers),
            escape(" ".join(controls.sentences(result))),
        ]
    return blocks
