"""Models by paradigms at a glance: as a matrix, as a comment on a pull request, and as
a badge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from markupsafe import escape as markup_escape
from tabulate import tabulate

from cheesebench.amounts import dollars, level, number, per_hundred, percent
from cheesebench.reports import cells as words
from cheesebench.reports.cells import clean, escape
from cheesebench.statistics import Verdict, gate
from cheesebench.statistics.wording import on_scale, plural

if TYPE_CHECKING:
    from cheesebench.published import PublishedRow
    from cheesebench.records import CellKey
    from cheesebench.statistics import CellResult, ModelSummary, RunSummary
    from cheesebench.statistics.summary import BestOfViews

#: Maximum number of columns of a readable table. If there are more, a dialogue has one
#: column instead of one for each condition. A model with more conditions than this is
#: drawn as a grid.
MOST = 24

Kind = Literal["model", "rodent", "published", "baseline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The result of a model, or the animals' number, on one paradigm. Published models
    and best views have only a rate.
    """

    rate: float | None
    verdict: Verdict | None = None
    interval: tuple[float, float] | None = None
    subjects: int = 0
    text: str = ""
    """The text that is shown in place of the verdict and the rate, or ""."""
    between: str = ""
    """The interval as text, unless ``interval`` is given."""
    key: CellKey | None = None
    """The key of the field's cell, or None unless the field has exactly one cell."""
    ability: str = ""
    """The rate on the ability scale, as text, or "" if no zero is proved."""
    is_borrowed: bool = False
    """Whether the animals' number is declared, invented or an analogy."""

    @property
    def shown(self) -> str:
        """The field as text: ``✔ 87 %``, ``74 %``, ``(74 %)`` if it is borrowed, or
        ``–``.
        """
        if self.is_borrowed:
            return f"({self.text or percent(self.rate or 0.0)})"
        if self.text:
            return self.text
        rate = words.NOTHING if self.rate is None else percent(self.rate)
        return rate if self.verdict is None else f"{words.MARKS[self.verdict]} {rate}"

    @property
    def range(self) -> str:
        """The 95 % interval as text, in percent (``80–92``) or in the unit of a
        measure, or "" if there is no interval.
        """
        if self.interval is None:
            return self.between
        low, high = map(per_hundred, self.interval)
        return f"{low}–{high}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: a model, the rodent, a published model, or (of the kind ``baseline``)
    a model in its best view on each protocol.
    """

    name: str
    where: str
    """View and variant, or "" if the row has neither."""
    kind: Kind
    fields: tuple[Field, ...]
    mean: float | None = None
    """Mean pass rate over the protocols, or None if it is unknown or abilities are
    compared.
    """
    ability: float | None = None
    """Mean ability, or None if the row has none that can be compared."""
    passed: str = ""
    """The passed protocols in words, ``7 of 9``, or "" if the row is not a model of the
    run.
    """
    gate: Verdict | None = None
    """The model's verdict on all protocols together, or None if the row is not a model
    of the run.
    """
    cost: float | None = None
    """Cost in dollars of the calls with a known price, or None if the row is not a
    model of the run.
    """
    calls: int = 0
    """Number of calls."""

    @property
    def whose(self) -> str:
        """The row's name, with view and variant."""
        return f"{self.name} ({self.where})" if self.where else self.name

    @property
    def mean_shown(self) -> str:
        """The mean ability, as in ``0.71``. For a row without a mean ability it is the
        mean pass rate, with the number of protocols if some have no rate, as in ``80 %
        (8 of 9)``, or ``–`` if there is no mean.
        """
        if self.ability is not None:
            return on_scale(self.ability)
        if self.mean is None:
            return words.NOTHING
        rated = sum(field.rate is not None for field in self.fields)
        fewer = self.kind != "published" and rated < len(self.fields)
        return f"{percent(self.mean)}{f' ({rated} of {len(self.fields)})' if fewer else ''}"

    @property
    def cost_shown(self) -> str:
        """The cost in dollars, or ``–`` if nothing was paid or the price is unknown."""
        return dollars(self.cost) if self.cost else words.NOTHING


@dataclass(frozen=True, slots=True)
class Matrix:
    """The table. It has a column for each paradigm (for a dialogue, one for each
    condition, if there is room), and the models of the run are the first rows.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    source: str
    """Source of the published rows, or "" without such rows."""
    notes: tuple[str, ...] = ()
    """Notes on how to read the table."""

    @property
    def has_cost(self) -> bool:
        """Whether any model has a cost to show."""
        return any(row.cost for row in self.rows)

    @property
    def mean_name(self) -> str:
        """The heading of the means: of abilities, or of rates if no row
        has an ability.
        """
        own = any(row.ability is not None for row in self.rows)
        return "mean ability" if own else "mean"

    @property
    def is_several(self) -> bool:
        """Whether the run has more than one model (or view, or variant) to compare."""
        return sum(row.kind == "model" for row in self.rows) > 1

    def lines(self) -> list[list[str]]:
        """Return the matrix for a terminal: the headings, then the rows. Published rows
        and empty columns are left out.
        """
        one_place = len({row.where for row in self.rows if row.kind == "model"}) == 1
        lines = [
            [
                "",
                "PASS",
                self.mean_name.replace(" ", "\n"),
                *(column.replace("_", "\n") for column in self.columns),
                "cost",
            ]
        ]
        for row in self.rows:
            if row.kind != "published":
                cost = row.cost_shown if row.kind == "model" else ""
                whose = row.name if one_place else row.whose
                lines.append(
                    [
                        whose,
                        row.passed,
                        row.mean_shown,
                        *(field.shown for field in row.fields),
                        cost,
                    ]
                )
        kept = [
            at
            for at in range(len(lines[0]))
            if any(line[at] not in ("", words.NOTHING) for line in lines[1:])
        ]
        return [[line[at] for at in kept] for line in lines]


def _of_published(row: PublishedRow, columns: Sequence[str]) -> Row:
    return Row(
        name=row.model,
        where=row.where,
        kind="published",
        fields=tuple(Field(rate=row.rates.get(column)) for column in columns),
        mean=row.overall,
    )


def matrix(summary: RunSummary) -> Matrix:
    """Return the matrix of a run. Its rows are the models, best first, then the rodents
    (if their numbers are known) and the published models under the same rules. Beside
    published models, a row with each model's best view follows the models.
    """
    whole = _whole(summary.models)
    ranked = sorted(
        summary.models, key=lambda one: _standing(one, whole, summary), reverse=True
    )
    own = [
        (_comparable(model, whole), words.cells_of(summary, model)) for model in ranked
    ]
    plain = [cell for _, cells in own for cell in cells]
    columns = tuple(dict.fromkeys(cell.plan.label for cell in plain))
    grouped = len(columns) > MOST
    if grouped:
        columns = tuple(dict.fromkeys(cell.plan.protocol for cell in plain))
    rows = [
        _model(model, words.with_controls(summary, cells), cells, columns, grouped)
        for model, cells in own
    ]
    if not grouped:
        rows += _of_plans(plain, columns, [model for model, _ in own])
    source = ""
    if summary.published:
        # A published rate over several views is the rate in the best view. So a row
        # with the model's best view is added, too.
        rows[len(own) : len(own)] = [
            _best(best, columns) for best in summary.best_of_views
        ]
        rows += [_of_published(row, columns) for row in summary.published]
        first = summary.published[0]
        source = ". ".join(filter(None, (first.how, first.source)))
    if whole:  # Rates cannot be compared with abilities.
        rows = [replace(row, mean=None) for row in rows]
    notes = (*_averaged(summary, whole), *_footnotes(plain, grouped))
    return Matrix(columns, _levelled(rows), source, notes)


def _footnotes(cells: Sequence[CellResult], grouped: bool) -> Iterator[str]:
    once = list({cell.plan.label: cell for cell in cells}.values())
    if not grouped:
        yield from words.ability_footnotes(once)
    if any(map(words.origin, cells)):
        yield "Rodents in brackets are declared, invented, or an analogy."
    yield from _unproved(once)


def _whole(models: Sequence[ModelSummary]) -> tuple[str, ...]:
    """Return the protocols over which mean abilities are compared: the largest set over
    which a model has a mean ability (of several, the one that most models share). The
    result is empty if no model has one.
    """
    found = [tuple(one.ability.protocols) for one in models if one.ability is not None]
    return max(found, key=lambda one: (len(one), found.count(one)), default=())


def _comparable(model: ModelSummary, whole: tuple[str, ...]) -> ModelSummary:
    """Return a model without its mean pass rate, and without its mean ability unless
    the mean is over the protocols in ``whole``. Without such protocols, return the
    model as it is.
    """
    if not whole:
        return model
    own = model.ability
    is_whole = own is not None and tuple(own.protocols) == whole
    return replace(model, ability=own if is_whole else None, overall=None)


def _unproved(cells: Sequence[CellResult]) -> Iterator[str]:
    """Yield notes on the protocols for which no audit shows what they measure."""
    found: dict[str, list[str]] = {}
    unproved = {
        words.NOT_VALIDATED,
        words.VALIDITY["failed"],
        words.VALIDITY["declared"],
    }
    for cell in cells:
        if (said := words.validity(cell)) in unproved:
            found.setdefault(said, []).append(cell.plan.label)
    for said, names in found.items():
        yield f"{said[0].upper()}{said[1:]} ({', '.join(names)}): {words.MEANINGS[said]}."


def _levelled(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows with the same number of decimals in all rates, in their intervals,
    and in the intervals of measures, because the table is read in both directions.
    """
    fields = [field for row in rows for field in row.fields]
    shown = iter(level(field.shown for field in fields))
    kinds = ["measure" if field.rate is None else "" for field in fields]
    ranges = iter(level((field.range for field in fields), kinds))
    return tuple(
        replace(
            row,
            fields=tuple(
                replace(
                    field,
                    text=next(shown),
                    between=next(ranges),
                    interval=None,
                    is_borrowed=False,
                )
                for field in row.fields
            ),
        )
        for row in rows
    )


def _standing(
    model: ModelSummary, whole: tuple[str, ...], summary: RunSummary
) -> tuple[float, int, float]:
    """Return the sort key of a board: mean ability over the protocols in ``whole``,
    passed protocols, and mean rate, which also ranks models without any ability.
    """
    passed = sum(
        cell.verdict is Verdict.PASS for cell in words.cells_of(summary, model)
    )
    own = _comparable(model, whole).ability
    ability = -1.0 if own is None else own.mean
    return ability, passed, -1 if model.overall is None else model.overall.mean


def _averaged(summary: RunSummary, names: tuple[str, ...]) -> list[str]:
    """Return a list with a note on which protocols are in the mean abilities, because
    means are only compared over the same protocols. It is empty without mean abilities.
    """
    found = [one.ability for one in summary.models if one.ability is not None]
    if not found:
        return []
    count = plural(len(names), "protocol")
    text = f"The mean is the mean ability (below 0 counts as 0) over {count}"
    if any(tuple(one.protocols) != names for one in found):
        return [f"{text}; a model that lacks one of them has no mean."]
    missing = f"; not in it: {', '.join(found[0].missing)}" if found[0].missing else ""
    same = " and ".join(", ".join(one) for one in found[0].together)
    return [
        f"{text}{missing}{f'; {same} share their animals and count once' if same else ''}."
    ]


def _best(best: BestOfViews, columns: Sequence[str]) -> Row:
    rates = {choice.protocol: choice.best for choice in best.protocols}
    views = {view for choice in best.protocols for view in choice.rates}
    where = ", ".join(filter(None, (best.variant, f"best of {len(views)} views")))
    fields = tuple(Field(rate=rates.get(column)) for column in columns)
    return Row(
        name=best.model, where=where, kind="baseline", fields=fields, mean=best.best
    )


def _model(
    model: ModelSummary,
    paid: Sequence[CellResult],
    cells: Sequence[CellResult],
    columns: Sequence[str],
    grouped: bool,
) -> Row:
    by_column: dict[str, list[CellResult]] = {}
    for cell in cells:
        by_column.setdefault(
            cell.plan.protocol if grouped else cell.plan.label, []
        ).append(cell)
    name, where = words.whose(model)
    totals = words.call_totals(paid)
    return Row(
        name=name,
        where=where,
        kind="model",
        fields=tuple(_field(by_column.get(column, [])) for column in columns),
        mean=None if model.overall is None else model.overall.mean,
        ability=None if model.ability is None else model.ability.mean,
        passed=f"{sum(cell.verdict is Verdict.PASS for cell in cells)} of {len(cells)}",
        gate=model.gate,
        cost=totals.cost,
        calls=totals.calls,
    )


def _field(cells: Sequence[CellResult]) -> Field:
    if len(cells) == 1:
        cell = cells[0]
        if cell.is_unfinished:
            seen = f"{cell.valid} of {plural(cell.planned, 'trial')}"
            shown = seen if cell.missing else words.NOTHING
            return Field(
                rate=None,
                verdict=cell.verdict,
                text=f"{words.MARKS[cell.verdict]} {shown}",
                key=cell.plan.key,
            )
        if cell.plan.measured is not None:
            between = (
                ""
                if cell.judged is None or cell.judged.interval is None
                else words.interval(cell)
            )
            text = f"{words.MARKS[cell.verdict]} {words.rate(cell)}"
            return Field(
                rate=None,
                verdict=cell.verdict,
                subjects=cell.subjects,
                text=text,
                between=between,
                key=cell.plan.key,
            )
        return Field(
            rate=cell.rate,
            verdict=cell.verdict,
            interval=cell.interval,
            subjects=cell.subjects,
            key=cell.plan.key,
            ability="" if cell.ability is None else words.ability(cell),
        )
    return Field(rate=None, text=words.counts(cells))


def _of_plans(
    cells: Sequence[CellResult],
    columns: Sequence[str],
    models: Sequence[ModelSummary],
) -> list[Row]:
    """Return a list with the animals' row (the numbers in the protocols). It is empty
    if no protocol has a reference.
    """
    own = {cell.plan.label: cell for cell in cells}
    if all(own[column].plan.reference is None for column in columns):
        return []
    fields = tuple(_of_animals(own[column]) for column in columns)
    rates = [field.rate for field in fields]
    return [
        Row(
            name="rodent",
            where="",
            kind="rodent",
            fields=fields,
            mean=words.complete_mean(rates),
            ability=_mean_of_animals(models),
        )
    ]


def _mean_of_animals(models: Sequence[ModelSummary]) -> float | None:
    """Return the animals' mean ability over the protocols of the models' means, or over
    all protocols with a scale if no model has a mean. Return None if it differs between
    models, or is unknown.
    """
    rated = [one.ability for one in models if one.ability is not None]
    unrated = [one.animals for one in models if one.animals is not None]
    means = {one.rodent for one in rated or unrated}
    return means.pop() if len(means) == 1 else None


def _of_animals(cell: CellResult) -> Field:
    animals = cell.plan.reference
    if animals is None:
        return Field(rate=None)
    borrowed = bool(words.origin(cell))
    if animals.measured is not None:
        return Field(rate=None, text=number(animals.value), is_borrowed=borrowed)
    scale = "" if cell.ability is None else words.ability_of_rodent(cell)
    return Field(rate=animals.value, ability=scale, is_borrowed=borrowed)


HOW = (
    "Verdict (✔ PASS, ✘ FAIL, ? INCONCLUSIVE, ! ERROR), pass rate (or measure) with its 95 % interval, number of "
    "subjects (n), and ability (a). The rows below the models are there for comparison."
)
#: Note on a board. It does not mention numbers of subjects, which are in each model's
#: own table.
HOW_BOARD = "Verdict, pass rate (or measure), 95 % interval, and ability. The rows below the models are there for comparison."
#: Beginning of the note on the published rows. Their source follows.
PUBLISHED = "The published numbers do not come from this run, and no verdict depends on them. Source:"


DOUBTFUL = "Doubtful, whatever the verdict:"


def render(summary: RunSummary) -> str:
    found = matrix(summary)
    if not found.rows:
        return "No cell was run, so there is nothing to judge.\n"
    headers = ["model", "PASS", found.mean_name, *found.columns, "cost"]
    body = [
        [
            f"**{_text(row.whose)}**"
            if row.kind == "model"
            else f"*{_text(row.whose)}*",
            row.passed,
            row.mean_shown,
            *map(_markdown, row.fields),
            row.cost_shown if row.kind == "model" else "",
        ]
        for row in found.rows
    ]
    table = tabulate(
        body,
        headers=list(map(_text, headers)),
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["left", "left", *("right" for _ in headers[2:])],
    )
    source = f"{PUBLISHED} {escape(clean(found.source, 600))}." if found.source else ""
    notes = " ".join(map(escape, found.notes))
    parts = (table, *_in_doubt(summary.cells), HOW, notes, source)
    return "\n\n".join(filter(None, parts)) + "\n"


def _in_doubt(cells: Sequence[CellResult]) -> Iterator[str]:
    """Yield lists of cells with their reasons: cells with an ERROR, other cells with
    trials that failed for technical reasons, and doubtful cells.
    """
    broken = [
        f"- {words.marked(cell.verdict)} {_told(cell, cell.reason)}"
        for cell in cells
        if cell.verdict is Verdict.ERROR
    ]
    lost = [
        f"- {words.marked(cell.verdict)} {_told(cell, cell.reason)}"
        for cell in cells
        if cell.verdict is not Verdict.ERROR and cell.has_failed_trials
    ]
    lists = {
        "Errors:": broken,
        "Trials that failed for technical reasons:": lost,
        DOUBTFUL: _doubtful(cells),
    }
    for title, lines in lists.items():
        if lines:
            yield f"{title}\n\n" + "\n".join(lines)


def _text(value: str) -> str:
    return escape(clean(value, 160))


def _markdown(field: Field) -> str:
    details = ", ".join(
        filter(
            None,
            (
                field.range,
                f"n {field.subjects}" if field.subjects else "",
                f"a {field.ability}" if field.ability else "",
            ),
        )
    )
    return f"{field.shown} ({details})" if details else field.shown


@dataclass(frozen=True, slots=True)
class Shade:
    """The cells of one condition on one graph, which differ in their domain: their mean
    rate and their worst verdict.
    """

    rate: float
    verdict: Verdict

    @property
    def shown(self) -> str:
        return f"{words.MARKS[self.verdict]} {percent(self.rate)}"


@dataclass(frozen=True, slots=True)
class Grid:
    """A model on a dialogue with many cells. Conditions are rows, and graphs are
    columns.
    """

    how: ClassVar[str] = (
        "Mean rate over the domains of a graph; ✔ if all of them pass, otherwise the worst mark of a domain (! before "
        "✘ before ?)."
    )

    conditions: tuple[str, ...]
    graphs: tuple[str, ...]
    rows: tuple[tuple[Shade | None, ...], ...]


def grid(own: Sequence[CellResult]) -> Grid | None:
    """Return the grid of conditions by graphs, or None unless there are more than
    ``MOST`` cells, all of a dialogue.
    """
    if len(own) <= MOST or not all(cell.plan.variant.condition for cell in own):
        return None
    groups: dict[tuple[str, str], list[CellResult]] = {}
    for cell in own:
        # A variant is named ``domain-condition`` or, in a run at several temperatures,
        # ``domain-condition-temperature``.
        groups.setdefault(
            (cell.plan.variant.condition.partition("-")[2], cell.plan.protocol), []
        ).append(cell)
    conditions, protocols = (
        tuple(dict.fromkeys(key[at] for key in groups)) for at in (0, 1)
    )
    parts = [name.split("_") for name in protocols]
    shared = next(
        (
            at
            for at, heads in enumerate(zip(*parts, strict=False))
            if len(set(heads)) > 1
        ),
        0,
    )
    graphs = tuple(clean("_".join(words[shared:])) for words in parts)
    return Grid(
        conditions,
        graphs,
        tuple(
            tuple(_shade(groups.get((c, p), [])) for p in protocols) for c in conditions
        ),
    )


def _shade(group: Sequence[CellResult]) -> Shade | None:
    rates = [cell.rate for cell in group if cell.rate is not None]
    verdicts = {cell.verdict for cell in group}
    worst = (Verdict.ERROR, Verdict.FAIL, Verdict.INCONCLUSIVE)
    verdict = next((one for one in worst if one in verdicts), Verdict.PASS)
    return Shade(sum(rates) / len(rates), verdict) if rates else None


#: Length, in characters, of a comment on GitHub without its comparison. The list of
#: what did not pass is cut to fit. GitHub's limit leaves room for the comparison.
LARGEST = 60_000
#: Maximum number of cells in a list of doubts. The tables of the report have the doubts
#: of every cell.
MOST_DOUBTFUL = 40


def render_comment(summary: RunSummary) -> str:
    if not summary.models:
        return f"{gate.MARK}\n**CheeseBench**: no cell was run.\n"
    heads = [
        f"**{words.MARKS[model.gate]} {escape(clean(' in '.join(words.whose(model))))}**: "
        f"{words.counts(words.cells_of(summary, model))}"
        for model in summary.models
    ]
    parts = [
        gate.MARK,
        f"### {words.question(summary.cells).capitalize()}?",
        "  \n".join(heads),
        _upright(found := matrix(summary)),
        escape(" ".join(found.notes)),
    ]
    plain = [cell for cell in summary.cells if not cell.plan.control]
    undecided = [
        f"- {words.marked(cell.verdict)} {_told(cell, cell.reason)}"
        for cell in plain
        if cell.verdict is not Verdict.PASS
    ]
    # The doubts are not in the folded part, because a number without them looks better
    # than it is.
    if doubtful := _doubtful(plain):
        parts.append(f"{DOUBTFUL}\n\n" + "\n".join(doubtful))
    run = escape(clean(summary.manifest.get("run_id") or "a run"))
    end = f"Run `{run}`. The whole report is in its `report.md`."
    details = _folded(
        "What did not pass, and why",
        undecided,
        LARGEST - sum(map(len, parts)) - len(end),
    )
    text = "\n\n".join(filter(None, (*parts, details, end))) + "\n"
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _told(cell: CellResult, what: str) -> str:
    name, owner = _named(cell)
    return f"**{escape(clean(name))}** ({escape(clean(owner))}): {escape(clean(what))}"


def _named(cell: CellResult) -> tuple[str, str]:
    """Return the cell's name among its model's cells, and its model with the view and
    the control or setting: the plain cell has the same name as its controls.
    """
    plan = cell.plan
    return plan.label, ", ".join(
        filter(None, (f"{plan.model} in {plan.view}", plan.series))
    )


def doubts(cells: Sequence[CellResult]) -> list[tuple[str, str, str]]:
    """Return name and owner of the cells with warnings or remarks, each with these in
    one text.
    """
    return [
        (*_named(cell), "; ".join(said))
        for cell in cells
        if (said := (*cell.warnings, *cell.remarks))
    ]


def _doubtful(cells: Sequence[CellResult]) -> list[str]:
    found = [
        f"- **{escape(clean(name))}** ({escape(clean(owner))}): {escape(clean(said))}"
        for name, owner, said in doubts(cells)
    ]
    left = len(found) - MOST_DOUBTFUL
    return [*found[:MOST_DOUBTFUL], *([f"- and {left} more"] if left > 0 else [])]


def _upright(found: Matrix) -> str:
    """Return the matrix with the paradigms as rows, because a comment is narrow, and
    most runs have one or two models.
    """
    rows = [row for row in found.rows if row.kind in ("model", "rodent")]
    headers = ["", *(_text(row.whose) for row in rows)]
    body = [
        [_text(name), *(_markdown(row.fields[at]) for row in rows)]
        for at, name in enumerate(found.columns)
    ]
    if len(found.columns) > 1:
        body.append([f"**{found.mean_name}**", *(row.mean_shown for row in rows)])
    align = ["left", *("right" for _ in rows)]
    return tabulate(
        body, headers=headers, tablefmt="pipe", disable_numparse=True, colalign=align
    )


def _folded(title: str, lines: list[str], room: int) -> str:
    """Return a collapsible section with as many lines as there is room for, or ""
    without lines.
    """
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 200:
            kept.append(f"- and {len(lines) - len(kept)} more")
            break
        kept.append(line)
    body = "\n".join(kept)
    return (
        f"<details><summary>{title}</summary>\n\n{body}\n\n</details>" if kept else ""
    )


LABEL = "as good as the rodent"
#: Colours that have enough contrast with white letters (4.5 : 1 or more).
COLOURS = {
    Verdict.PASS: "#1a7f37",
    Verdict.FAIL: "#b42318",
    Verdict.INCONCLUSIVE: "#8a5a00",
    Verdict.ERROR: "#57606a",
}
#: In pixels. ``LETTER``: mean width of a letter of size 11. ``EDGE``: width of the
#: margin beside the text.
LETTER, EDGE = 6.4, 6


def render_badge(summary: RunSummary) -> str:
    """Return the badge. It says how many protocols the model passes or, if there are
    several models (or views), how many of them pass everything.
    """
    models = summary.models
    if len(models) == 1:
        own = words.cells_of(summary, models[0])
        passed = sum(cell.verdict is Verdict.PASS for cell in own)
        said, gate = f"{passed} of {len(own)}", models[0].gate
    else:
        passed = sum(model.gate is Verdict.PASS for model in models)
        said = f"{passed} of {len(models)} models" if models else "not run"
        gates = [model.gate for model in models]
        worst = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.PASS)
        gate = next((one for one in worst if one in gates), Verdict.ERROR)
    return _badge(LABEL, said, COLOURS[gate])


def _badge(label: str, said: str, colour: str) -> str:
    label, said = markup_escape(clean(label)), markup_escape(clean(said))
    left, right = (round(len(text) * LETTER + 2 * EDGE) for text in (label, said))
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {said}">'
        f"<title>{label}: {said}</title>"
        f'<clipPath id="r"><rect width="{width}" height="20" rx="4"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#24292f"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2}" y="14" textLength="{left - 2 * EDGE}" lengthAdjust="spacingAndGlyphs">{label}</text>'
        f'<text x="{left + right / 2}" y="14" textLength="{right - 2 * EDGE}" lengthAdjust="spacingAndGlyphs">{said}'
        "</text></g></svg>\n"
    )
