"""The report in GitHub-flavoured Markdown. It is also used for
``$GITHUB_STEP_SUMMARY``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

from cheesebench.amounts import number, per_hundred, percent
from cheesebench.canary import CANARY
from cheesebench.interfaces import DEFAULT_EDITION
from cheesebench.published import ELSEWHERE, published_elsewhere
from cheesebench.reports import cells as words
from cheesebench.reports import matrix
from cheesebench.statistics import TAXONOMY, Verdict
from cheesebench.statistics.question import animals_interval
from cheesebench.statistics.wording import plural, shares, shown_value

if TYPE_CHECKING:
    from cheesebench.records import CellPlan, ReferenceValue
    from cheesebench.statistics import (
        CellResult,
        ControlResult,
        ModelSummary,
        RunSummary,
    )
    from cheesebench.statistics.summary import (
        BestOfViews,
        ConditionCurve,
        PublishedContrast,
    )

LEVELS = "▁▂▃▄▅▆▇█"
_PARTS = " ▏▎▍▌▋▊▉"


def bar(proportion: float, width: int = 20) -> str:
    """Return a horizontal bar of ``width`` characters, filled to the proportion (0 to
    1) in eighths.
    """
    eighths = round(min(max(proportion, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    drawn = "█" * full + (_PARTS[part] if part else "")
    return drawn.ljust(width, "░")


def level(proportion: float) -> str:
    """Return the block character whose height is nearest to the proportion: the lowest
    one for 0, the full one for 1.
    """
    return LEVELS[round(min(max(proportion, 0.0), 1.0) * (len(LEVELS) - 1))]


def columns(proportions: Sequence[float | None], width: int) -> str:
    """Return a column for each proportion, separated by spaces: ``width`` equal blocks,
    or dots for None.
    """
    return " ".join(
        ("·" if value is None else level(value)) * width for value in proportions
    )


_LABEL = 24
_TITLE = 120
_VALUE = 12
#: Up to this many sessions, the columns are wide, and have the sessions' numbers above
#: them.
_NUMBERED = 15


def profile(model: ModelSummary, cells: Sequence[CellResult]) -> list[str]:
    """Return the pass rate by cognitive dimension for model and rodent, or an empty
    list if there is no rate.
    """
    if not model.profile:
        return []
    lines = []
    for dimension, average in model.profile.items():
        own = [cell for cell in cells if cell.plan.dimension == dimension]
        rows = [
            ("model", average.mean),
            ("rodent", words.rodent_mean(own)),
        ]
        label = words.fenced(dimension or "(no dimension)", _LABEL)
        for name, value in rows:
            if value is None:
                continue
            shown = words.mean(average) if name == "model" else percent(value)
            lines.append(f"{label}  {name:<6}  {bar(value, 25)}  {shown:>6}")
            label = " " * _LABEL
        lines.append("")
    return ["### By dimension", words.HOW_TO_READ_PROFILE, _block(lines)]


def learning_curves(cells: Sequence[CellResult]) -> list[str]:
    """Return lines with the pass rate, and the measure that a verdict is about, by
    session (or group of trials) for model and rodent, or an empty list without a curve.
    """
    curves = [_curve(one) for cell in cells for one in words.curves(cell)]
    if not curves:
        return []
    return [
        "### Learning curves",
        _block([line for curve in curves for line in (*curve, "")]),
    ]


def condition_curves(cells: Sequence[CellResult]) -> list[str]:
    """Return lines with the measures that are reported for each value of a variable, or
    an empty list without such measures.
    """
    curves = [(cell, curve) for cell in cells for curve in cell.conditions]
    if not curves:
        return []
    return [
        "### Measures by condition",
        _block([line for one in curves for line in (*_conditions(*one), "")]),
    ]


def _conditions(cell: CellResult, curve: ConditionCurve) -> list[str]:
    title = words.fenced(cell.plan.title or cell.plan.protocol, _TITLE).rstrip()
    lines = [
        f"{title}, {words.fenced(curve.measure, _TITLE).rstrip()} by {words.fenced(curve.variable, _TITLE).rstrip()}"
    ]
    means = [measure.mean for _, measure in curve.points]
    # A bar cannot have a negative length.
    largest = max(means) if min(means) >= 0 else 0.0
    for value, measure in curve.points:
        drawn = f"{bar(measure.mean / largest, 25)}  " if largest else ""
        spread = "" if measure.sd is None else f" ± {number(measure.sd)}"
        label = words.fenced(shown_value(value), _VALUE)
        counted = (
            f"({plural(measure.subjects, 'subject')}, {plural(measure.n, 'trial')})"
        )
        lines.append(f"{label}  {drawn}{number(measure.mean)}{spread}  {counted}")
    return lines


def _curve(curve: words.Curve) -> list[str]:
    by_session = curve.unit == "session"
    means = {point.session: point.rate for point in curve.points}
    animals = () if curve.animals is None else curve.animals.curve
    last = max(max(means), len(animals) if by_session else 0)
    sessions = range(1, last + 1)
    width = 3 if last <= _NUMBERED else 1
    plan = curve.cell.plan
    title = words.fenced(plan.title or plan.protocol, _TITLE).rstrip()
    name = (
        f"{words.fenced(curve.name, _TITLE).rstrip()}{' (%)' * (not curve.is_measure)}"
    )
    lines = [f"{title}, {name} by {curve.along}"]
    if width > 1:
        lines.append("         " + " ".join(f"{number:^3}" for number in sessions))
    drawn = _drawn(curve, [*means.values(), *animals])
    lines.append(
        _row("model", [means.get(number) for number in sessions], width, drawn)
    )
    if curve.animals is not None and animals:
        longest = last if by_session else len(animals)
        values = [*animals, *[None] * (longest - len(animals))]
        lines.append(
            _row("rodent", values, width, drawn)
            + _spread(curve.animals, drawn.shown)
            + ("" if by_session else "  (by session)")
        )
    return lines


class _Drawn(NamedTuple):
    """How the values of a curve are drawn: the values of an empty and of a full block,
    and the function that writes a value.
    """

    low: float
    high: float
    shown: Callable[[float], str]


def _drawn(curve: words.Curve, values: Sequence[float]) -> _Drawn:
    if not curve.is_measure:
        return _Drawn(0.0, 1.0, per_hundred)
    return _Drawn(min(0.0, *values), max(0.0, *values), number)


def _spread(rodents: ReferenceValue, shown: Callable[[float], str]) -> str:
    """Return the standard deviations between animals along their curve, as text, or ""
    if they are unknown.
    """
    said = " ".join(shown(sd) for sd in rodents.curve_sd)
    return f"  ± {said} (SD between animals)" if said else ""


def _row(name: str, values: Sequence[float | None], width: int, drawn: _Drawn) -> str:
    written = [drawn.shown(value) for value in values if value is not None]
    if len(set(written)) == 1:
        numbers = f"{written[0]}"
    elif width == 1:
        numbers = f"{written[0]} → {written[-1]}"
    else:
        numbers = " ".join(
            "·" if value is None else drawn.shown(value) for value in values
        ).rstrip(" ·")
    size = (drawn.high - drawn.low) or 1.0
    places = [None if value is None else (value - drawn.low) / size for value in values]
    return f"{name:<6}   {columns(places, width)}   {numbers}"


def _block(lines: Sequence[str]) -> str:
    text = "\n".join(line.rstrip() for line in lines).rstrip("\n")
    return f"```text\n{text}\n```"


Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

#: Number of characters of a hash that are shown. The run log has the whole hash.
SHORT = 12


def provenance(summary: RunSummary, table: Table) -> list[str]:
    """Return the section on the run: options, versions, protocols, and the sources of
    their references.
    """
    return [
        "## The run",
        table(("", ""), run_facts(summary)),
        *_protocols(summary, table),
    ]


def run_facts(summary: RunSummary) -> list[tuple[str, str]]:
    """Return the facts that identify the run, as pairs of name and text. Facts that the
    manifest lacks are left out.
    """
    manifest = summary.manifest
    facts = [("run", manifest.get("run_id")), ("created", manifest.get("created"))]
    options = words.mapping(manifest.get("options"))
    designs = list(dict.fromkeys(cell.plan.design for cell in summary.cells))
    facts.append(("frozen set", summary.frozen_set))
    facts.append(("seed", _said_seed(options)))
    facts.append(("design", ", ".join(designs) or options.get("design")))
    # The option 'agent' names the agent of language models, if there are any. A
    # baseline acts by itself.
    acted = dict.fromkeys(cell.plan.agent or cell.plan.model for cell in summary.cells)
    if acted and "agent" in options:
        options = {**options, "agent": list(acted)}
    # The option 'edition' says what is meant by a paradigm alone, not what was run.
    ran = dict.fromkeys(
        cell.plan.protocol.partition("@")[2] or DEFAULT_EDITION
        for cell in summary.cells
    )
    if ran and "edition" in options:
        options = {**options, "edition": list(ran)}
    facts.extend(
        (name, value)
        for name, value in options.items()
        if name not in ("seed", "seed_drawn", "design", "set")
    )
    git = words.mapping(manifest.get("git"))
    if git:
        dirty = " with uncommitted changes" if git.get("dirty") else ""
        facts.append(("git revision", f"{str(git.get('revision'))[:SHORT]}{dirty}"))
    facts.extend(words.mapping(manifest.get("versions")).items())
    facts.append(("record format", manifest.get("format")))
    return [
        (name, _shown(value))
        for name, value in facts
        if value not in (None, "", [], ())
    ]


def _said_seed(options: Mapping[str, Any]) -> str:
    """Return the seed, and whether it was drawn or given, or "" if there is none. If it
    was given, the worlds of the run were known in advance.
    """
    seed = options.get("seed")
    origin = "drawn" if options.get("seed_drawn") else "given"
    return "" if seed is None else f"{seed} ({origin})"


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _protocols(summary: RunSummary, table: Table) -> list[str]:
    plans = {cell.plan.protocol: cell.plan for cell in summary.cells}
    if not plans:
        return []
    rows = [
        (plan.protocol, plan.sha256[:SHORT], plan.estimand) for plan in plans.values()
    ]
    blocks = ["### Protocols", table(("protocol", "sha256", "trials compared"), rows)]
    references = [
        f"- **{words.escape(plan.protocol)}**: {words.escape(origin)}"
        for plan in plans.values()
        for origin in origins(plan)
    ]
    return (
        [*blocks, "### Sources of the rodents' numbers", "\n".join(references)]
        if references
        else blocks
    )


def origins(plan: CellPlan) -> list[str]:
    """Return each of the animals' numbers with its source, in one line. That which the
    verdict is about comes first.
    """
    if plan.reference is None:
        return [_origin(one.animals, one.measure) for one in plan.reported]
    judged = plan.reference.measured.name if plan.reference.measured else "success"
    others = [_origin(one.animals, one.measure) for one in plan.reported]
    return [_origin(plan.reference, judged), *others]


def _origin(animals: ReferenceValue, measure: str) -> str:
    kinds = ["an analogy"] * (animals.kind == "analogy")
    kinds += ["declared"] * (animals_interval(animals) is None)
    shown, name = (percent, "") if measure == "success" else (number, f"{measure} ")
    spread = (
        f"{animals.n_animals} animals, SD {shown(animals.sd)}"
        if animals.n_animals and animals.sd
        else ""
    )
    said = (
        f"{name}{shown(animals.value)}",
        ", ".join(kinds),
        spread,
        animals.training,
        animals.species,
        animals.source,
        animals.status,
    )
    return "; ".join(filter(None, said))


#: Maximum length of a text in a table, in characters. A longer one would push other
#: columns out of sight.
CELL = 160


def render(summary: RunSummary) -> str:
    blocks = [f"# CheeseBench: {words.question(summary.cells)}?", *_overview(summary)]
    if progress := words.in_progress(summary):
        blocks.insert(1, f"**{words.escape(progress)}**")
    blocks.append(
        "> "
        + "  \n> ".join(words.escape(line) for line in words.how_to_read(summary.cells))
    )
    for model in summary.models:
        blocks.extend(_model(summary, model, words.cells_of(summary, model)))
    blocks.extend(_study(summary))
    for best in summary.best_of_views:
        blocks.extend(_best_of_views(best))
    for board in summary.leaderboards:
        headers = words.LEADERBOARD_HEADERS
        blocks += [
            f"## {words.escape(words.leaderboard_title(board))}",
            table(headers, words.leaderboard_rows(board), headers[2:]),
        ]
        blocks += [
            words.escape(words.leaderboard_lists(board)),
            f"> {words.HOW_TO_READ_LEADERBOARD}",
        ]
    blocks.extend(_controls(summary.controls))
    blocks.extend(_contrasts(summary.contrasts))
    blocks.extend(_published(summary))
    blocks.extend(provenance(summary, table))
    blocks.append(f"<!-- {CANARY} -->")
    return "\n\n".join(blocks) + "\n"


def _contrasts(contrasts: Sequence[PublishedContrast]) -> list[str]:
    if not contrasts:
        return []
    headers = words.CONTRAST_HEADERS
    return [
        f"## Beside {words.escape(contrasts[0].model)}, as published",
        words.HOW_TO_READ_CONTRASTS,
        table(headers, words.contrast_rows(contrasts), headers[2:]),
    ]


def _published(summary: RunSummary) -> list[str]:
    """Return a list with the reason why no published results are shown, for a reader
    who may expect them. It is empty if nobody expects them, or they are shown.
    """
    elsewhere = not summary.published and published_elsewhere(
        cell.plan for cell in summary.cells
    )
    return [f"> {ELSEWHERE}"] if elsewhere else []


def _study(summary: RunSummary) -> list[str]:
    name = words.study_name(summary)
    if not name:
        return []
    headers, rows = words.settings_table(summary)
    return [
        f"## Study: {words.escape(name)}",
        words.HOW,
        table(list(map(words.escape, headers)), rows, map(words.escape, headers[2:])),
    ]


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()
) -> str:
    """Return a Markdown table. ``rows`` are escaped here, but ``headers`` are not. The
    columns whose headers are in ``right`` are aligned to the right.
    """
    numeric = set(right)
    return tabulate(
        [[words.escape(words.clean(value, CELL)) for value in row] for row in rows],
        headers=list(headers),
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["right" if header in numeric else "left" for header in headers],
    )


def _overview(summary: RunSummary) -> list[str]:
    return [matrix.render(summary).rstrip()]


def _model(
    summary: RunSummary, model: ModelSummary, cells: Sequence[CellResult]
) -> list[str]:
    blocks = [
        f"## {' · '.join(map(words.escape, words.whose(model)))}: {words.marked(model.gate)}",
        _headline(model, cells),
        "### Verdicts",
        _verdicts(cells),
    ]
    run_id = str(summary.manifest.get("run_id", ""))
    if did := words.behaviour(run_id, cells):
        blocks.append(words.escape(did))
    meanings = _meanings(cells)
    if meanings:
        blocks.append(meanings)
    blocks.extend(_validity(cells))
    blocks.extend(_by_answer(cells))
    blocks.extend(_open_questions(cells))
    blocks.extend(profile(model, cells))
    blocks.extend(learning_curves(cells))
    blocks.extend(condition_curves(cells))
    blocks.extend(["### Outcomes of the trials", _outcomes(cells)])
    blocks.extend(_measures(cells))
    blocks.extend(_calls(words.with_controls(summary, cells)))
    return blocks


def _headline(model: ModelSummary, cells: Sequence[CellResult]) -> str:
    sentences = [f"**{words.escape(model.gate_reason)}**"]
    if model.overall is not None:
        over = words.averaged_over(cells)
        mean = f"Mean pass rate {over}{' ' if over else ''}**{percent(model.overall.mean)}** ({words.limits(model.overall)})"
        rodent = words.rodent_mean(cells)
        declared = words.declared_in(words.averaged(cells))
        against = "" if rodent is None else f"; rodent {percent(rodent)}{declared}"
        sentences.append(f"{mean}{against}.")
    if ability := words.mean_ability(model, cells):
        sentences.append(words.escape(ability))
    return " ".join(sentences)


#: Headings of the columns on the ability scale.
ABILITY = ("ability (95 %)", "ability of the rodent", "PASS from ability")


def _scale_columns(cells: Sequence[CellResult]) -> tuple[str, ...]:
    """Return the headings of the columns that help to read a rate: the ability scale
    or, if a verdict is about chance, the chance level. There may be none.
    """
    if words.has_ability(cells):
        return ABILITY
    is_chance = any(cell.plan.against == "chance" for cell in cells)
    return (words.CHANCE,) if is_chance else ()


def _on_scale(cell: CellResult, headings: Sequence[str]) -> tuple[str, ...]:
    between = words.ability_interval(cell)
    shown = (
        f"{words.ability(cell)}{f' ({between})' if between else ''}",
        words.ability_of_rodent(cell),
        words.ability_of_bar(cell),
        words.floor(cell),
    )
    return tuple(
        text
        for heading, text in zip((*ABILITY, words.CHANCE), shown, strict=True)
        if heading in headings
    )


def _verdicts(cells: Sequence[CellResult]) -> str:
    own = _scale_columns(cells)
    rows = [
        (
            cell.plan.label,
            words.marked(cell.verdict),
            shown.rate,
            shown.interval,
            shown.reference,
            *_on_scale(cell, own),
            shown.difference,
            shown.margin,
            cell.n_text,
            ", ".join(words.remarks(cell)),
        )
        for cell, shown in zip(cells, words.numbers(cells), strict=True)
    ]
    difference = words.difference_name(cells)
    headers = (
        "protocol",
        "verdict",
        "rate",
        "95 %",
        "rodent",
        *own,
        difference,
        "margin",
        "n",
        "remarks",
    )
    drawn = table(headers, rows, right=("rate", "95 %", *own, difference, "margin"))
    notes = [
        *words.ability_footnotes(cells),
        words.training(cells),
        words.worst_case(cells),
    ]
    return "\n\n".join([drawn, *map(words.escape, filter(None, notes))])


def _meanings(cells: Sequence[CellResult]) -> str:
    used = {remark for cell in cells for remark in words.remarks(cell)}
    lines = [
        f"- *{remark}*: {meaning}."
        for remark, meaning in words.MEANINGS.items()
        if remark in used
    ]
    return "\n".join(lines)


def _validity(cells: Sequence[CellResult]) -> list[str]:
    said = [
        f"- **{words.escape(label)}**: {words.escape(text)}"
        for label, text in words.validities(cells)
    ]
    return ["### What was measured", "\n".join(said)] if said else []


def _open_questions(cells: Sequence[CellResult]) -> list[str]:
    undecided = [
        cell for cell in cells if cell.verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR)
    ]
    if not undecided:
        return []
    lines = [
        f"- **{words.escape(cell.plan.label)}**: {words.escape(cell.reason)}"
        for cell in undecided
    ]
    return ["### Undecided, and why", "\n".join(lines)]


def _by_answer(cells: Sequence[CellResult]) -> list[str]:
    rows = words.by_answer(cells)
    if not rows:
        return []
    drawn = table(words.BY_ANSWER, rows, right=words.BY_ANSWER[3:])
    return ["### For each answer", drawn, words.HOW_TO_READ_BY_ANSWER]


def _outcomes(cells: Sequence[CellResult]) -> str:
    counted = dict.fromkeys(
        name for cell in cells for name, count in cell.outcomes.items() if count
    )
    names = sorted(counted, key=lambda one: [*TAXONOMY, *counted].index(one))
    rows = [
        (
            cell.plan.label,
            *(str(cell.outcomes.get(name) or "·") for name in names),
            ", ".join(f"{name} {count}" for name, count in cell.raw_outcomes.items()),
        )
        for cell in cells
    ]
    shown = [words.escape(words.ENDINGS.get(name, name)) for name in names]
    headers = ("protocol", *shown, "in the protocol's words")
    return table(headers, rows, right=shown)


def _measures(cells: Sequence[CellResult]) -> list[str]:
    animals = ["rodent"] if words.have_animals(cells) else []
    own = [
        (
            cell.plan.label,
            measure.name,
            words.mean_over_subjects(measure),
            *(words.escape(words.animals_of(cell, measure.name)) for _ in animals),
            str(measure.subjects),
            str(measure.n),
        )
        for cell in cells
        for measure in cell.measures
    ]
    classes = [
        (cell.plan.protocol, found.name, shares(found), str(sum(found.counts.values())))
        for cell in cells
        for found in cell.classes
    ]
    splits = [
        (
            cell.plan.protocol,
            one.variable,
            shown_value(one.value),
            percent(one.passed / one.trials),
            str(one.trials),
        )
        for cell in cells
        for one in cell.splits
    ]
    means = [
        "protocol",
        "measure",
        "mean ± SD over subjects",
        *animals,
        "subjects",
        "trials",
    ]
    parts = ["protocol", "measure", "share of trials", "trials"]
    conditions = ["protocol", "split by", "value", "rate", "trials"]
    return [
        *_titled("### Measures", means, own, means[2:]),
        *_titled("### Classes", parts, classes, parts[3:]),
        *_titled("### By condition", conditions, splits, conditions[2:]),
        *_movement(cells),
    ]


def _titled(
    title: str,
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
) -> list[str]:
    """Return a table with its heading, or an empty list if the table has no rows."""
    return [title, table(headers, rows, right)] if rows else []


def _movement(cells: Sequence[CellResult]) -> list[str]:
    names = list({measure.name: None for cell in cells for measure in cell.strategy})
    if not names:
        return []
    rows = []
    for cell in cells:
        means = {measure.name: number(measure.mean) for measure in cell.strategy}
        rows.append(
            (cell.plan.label, *(means.get(name, words.NOTHING) for name in names))
        )
    headers = [words.escape(name.replace("_", " ")) for name in names]
    return _titled(
        "### Movement (means per trial)", ["protocol", *headers], rows, headers
    )


def _calls(cells: Sequence[CellResult]) -> list[str]:
    calls = words.calls_table(cells)
    if calls is None:
        return []
    headers = [words.escape(header) for header in calls.headers]
    names = (
        [f"Answered by {', '.join(map(words.escape, calls.served_by))}."]
        if calls.served_by
        else []
    )
    return [
        "### Calls to the model",
        table(headers, calls.rows, right=headers[1:]),
        *names,
    ]


def _best_of_views(best: BestOfViews) -> list[str]:
    fitted = words.NOTHING if best.cross_fitted is None else percent(best.cross_fitted)
    rows = [
        (
            choice.protocol,
            ", ".join(f"{view} {percent(rate)}" for view, rate in choice.rates.items()),
            percent(choice.best),
            words.NOTHING
            if choice.cross_fitted is None
            else percent(choice.cross_fitted),
        )
        for choice in best.protocols
    ]
    headers = ("protocol", "views", "best", "cross-fitted")
    return [
        f"## Best of views: {words.escape(best.model)}",
        f"Best of views **{percent(best.best)}**, biased upward. For comparison: the rate of the view that is chosen on "
        f"one half of the data and scored on the other, **{fitted}**.",
        table(headers, rows, right=headers[2:]),
    ]


def _controls(results: Sequence[ControlResult]) -> list[str]:
    if not results:
        return []
    blocks = ["## Controls", words.HOW_TO_READ_CONTROLS]
    for result in results:
        headers = words.headers(result)
        blocks += [
            f"### {words.escape(words.title(result))}",
            *(
                [table(headers, words.rows(result), right=headers)]
                * bool(result.points)
            ),
            words.escape(" ".join(words.sentences(result))),
        ]
    return blocks
