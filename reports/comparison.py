"""Renders the comparison of two runs as text, Markdown and JSON, and a summary as
JSON.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from tabulate import tabulate

from cheesebench.amounts import (
    level,
    number,
    percent,
    points,
    rounded,
    signed,
)
from cheesebench.files import strict_json
from cheesebench.reports.cells import NOTHING, clean, escape
from cheesebench.reports.markdown import table as markdown_table
from cheesebench.statistics import to_plain
from cheesebench.statistics.comparison import ALPHA, THIS_RUN
from cheesebench.statistics.wording import plural

if TYPE_CHECKING:
    from cheesebench.statistics import PairedComparison
    from cheesebench.statistics.comparison import (
        CellComparison,
        ModelComparison,
        RunComparison,
    )


def plain_json(result: object) -> str:
    """Return a result as ASCII JSON with sorted keys, and null for numbers that are not
    finite.
    """
    return strict_json(to_plain(result), sort_keys=True, indent=2) + "\n"


MARKS = {"better": "▲", "worse": "▼", "no loss": "=", "undecided": "?"}

_HOW_TO_READ = (
    "Every difference is {} minus {}, in points (or in the unit of the measure shown), over pairs of "
    "subjects with the same seed. Answers are at the 5 % level; answers on single protocols are corrected for testing "
    "several. 'Better' and 'worse' reject the hypothesis that nothing has changed (by sign flips), and are no test of the "
    "mean. 'No loss of 30 points' excludes a loss of that size, but no smaller one; 'undecided' excludes nothing."
)
#: Width of the text for a terminal, in columns.
WIDTH = 80
#: ``_TO`` separates the ends of an interval. ``_LEVELLED`` has the indices of the
#: columns whose numbers get equally many decimals.
_TO, _LEVELLED = "..", range(2, 6)
#: Maximum length, in characters, of a run's name that stands above a column.
_NARROW = 10


def sides(comparison: RunComparison) -> tuple[str, str]:
    """Return the headings for the two sides: the name of the run (or of the model, if
    both sides are from one run) if it is short, or else ``first`` and ``second``.
    """
    runs = (comparison.first, comparison.second)
    if runs[0] == runs[1]:
        named = {model.names for model in comparison.models}
        pair = named.pop() if len(named) == 1 else runs
        return (
            pair
            if len(set(pair)) == 2 and max(map(len, pair)) <= _NARROW
            else ("first", "second")
        )
    first, second = (
        clean(run) if len(run) <= _NARROW else side
        for run, side in zip(runs, ("first", "second"), strict=True)
    )
    return first, second


def remedy_parts(comparison: RunComparison) -> list[tuple[str, bool]]:
    """Return the parts of a remedy as pairs: the text, and whether it is a command to
    type.
    """
    parts = comparison.remedy.split("`")
    return [(part, bool(number % 2)) for number, part in enumerate(parts) if part]


def how_to_read(comparison: RunComparison) -> str:
    return _HOW_TO_READ.format(*sides(comparison))


def headers(comparison: RunComparison) -> tuple[str, ...]:
    rates = sides(comparison)
    return "", "protocol", *rates, "difference", "95 %", "p", "Holm", "pairs", "remarks"


def text(comparison: RunComparison) -> str:
    """Return the comparison for a terminal. A session's output ends with its decision,
    and its report.md says how to read the answers, so neither is repeated.
    """
    parts = [f"{title(comparison, clean)}"]
    for model in comparison.models:
        parts += [
            heading(model, clean),
            _text_table(comparison, model),
            _filled(answer(comparison, model, clean)),
        ]
        parts += [
            _filled(f"{', '.join(names)}: {reason}")
            for reason, names in reasons(model).items()
        ]
        parts += [_filled(lost(model))] if model.missing else []
    parts += [_filled(f"Warning: {line}") for line in comparison.warnings]
    parts += [
        f"{note}\n" + "\n".join(f"  {line}" for line in lines)
        for note, lines in _notes(comparison, clean)
    ]
    read = how_to_read(comparison)
    if comparison.decision:
        read = f"{read.partition('. ')[0]}. How to read the answers: report.md."
    return "\n\n".join([*parts, _filled(read)]) + "\n"


def markdown(comparison: RunComparison) -> str:
    parts = [f"# {title(comparison, escape)}"]
    if comparison.decision:
        said = f"**{escape(comparison.decision)}** {_remedy(comparison)}"
        parts.append(said.rstrip())
    names = tuple(map(escape, headers(comparison)))
    for model in comparison.models:
        parts += [
            f"## {heading(model, escape)}",
            f"**{answer(comparison, model, escape)}**",
            markdown_table(names, rows(comparison, model), right=names[2:8]),
        ]
        found = [
            f"- {escape(', '.join(names))}: {escape(reason)}"
            for reason, names in reasons(model).items()
        ]
        found += [f"- {lost(model)}"] if model.missing else []
        parts += ["\n".join(found)] if found else []
    parts += [f"> **Warning:** {escape(line)}" for line in comparison.warnings]
    for note, lines in _notes(comparison, escape):
        parts.append(f"{note}\n\n" + "\n".join(f"- {line}" for line in lines))
    read = escape(how_to_read(comparison))
    parts.append(
        f"<details><summary>How to read this</summary>\n\n{read}\n\n</details>"
    )
    return "\n\n".join(parts) + "\n"


def _remedy(comparison: RunComparison) -> str:
    return "".join(
        f"`{clean(part)}`"
        if is_code
        else f"{' ' * part.startswith(' ')}{escape(part)}{' ' * part.endswith(' ')}"
        for part, is_code in remedy_parts(comparison)
    )


def json(comparison: RunComparison) -> str:
    """Return everything as JSON with sorted keys, including the warnings."""
    plain = to_plain(comparison)
    assert isinstance(plain, dict)
    return plain_json({**plain, "warnings": comparison.warnings})


def _filled(line: str) -> str:
    return textwrap.fill(clean(line), WIDTH)


def title(comparison: RunComparison, shown: Callable[[object], str]) -> str:
    runs = (comparison.first, comparison.second)
    if runs[0] == runs[1] and all(
        len(set(one.names)) == 2 for one in comparison.models
    ):
        return f"Models of {shown(runs[0])}"
    first, second = (
        shown(run) if run == side else f"{shown(run)} ({side})"
        for run, side in zip(runs, sides(comparison), strict=True)
    )
    if comparison.first == THIS_RUN:
        first = first.capitalize()
    return f"{first} against {second}"


def heading(model: ModelComparison, shown: Callable[[object], str]) -> str:
    names = dict.fromkeys((model.first_model, model.second_model))
    where = ", ".join(filter(None, (model.view, model.variant)))
    return f"{' against '.join(map(shown, names))} in {shown(where)}"


def answer(
    comparison: RunComparison, model: ModelComparison, shown: Callable[[object], str]
) -> str:
    overall = model.overall
    first, second = map(shown, _who(comparison, model))
    if overall.difference is None:
        return f"{MARKS['undecided']} {shown(overall.reason)}"
    p = _p(overall.p_value)
    measured = [cell for cell in model.rated if cell.paired.pairs]
    where = f"over {plural(len(measured), 'protocol')} (p {p if p.startswith('<') else f'= {p}'})"
    size = f"{points(overall.difference)} points {where}"
    if overall.answer != "undecided":
        return f"{MARKS[overall.answer]} {first} is {overall.answer} than {second}: {size}."
    if all(cell.identical for cell in model.cells):
        return f"= {first} and {second} are identical: every subject did exactly the same in both."
    left = [shown(cell.protocol) for cell in model.cells if cell.answer == "undecided"]
    mark = MARKS["undecided" if left else "no loss"]
    undecided = f"Undecided on {', '.join(left)}. " if left else ""
    no = f"No difference between {first} and {second} can be shown"
    return f"{mark} {undecided}{no}: {size}.{_reservations(model)}{_without_result(model, shown)}"


def _who(comparison: RunComparison, model: ModelComparison) -> tuple[str, str]:
    """Return the names of the compared runs, or of the compared models if both are from
    one run.
    """
    runs = comparison.first, comparison.second
    models = model.first_model, model.second_model
    return models if runs[0] == runs[1] and models[0] != models[1] else runs


def _without_result(model: ModelComparison, shown: Callable[[object], str]) -> str:
    left = [shown(cell.protocol) for cell in model.rated if not cell.paired.pairs]
    return f" Without a result: {', '.join(left)}." if left else ""


def _reservations(model: ModelComparison) -> str:
    """Return the reservations about a result that shows no difference, or ""."""
    said, overall = "", model.overall
    if overall.p_value is not None and overall.p_value < ALPHA <= (
        overall.p_worst or 0
    ):
        # With other results of the missing trials, the p value could have been large.
        said += " This result depends on missing trials."
    elif (
        model.adjusted_p is not None
        and overall.p_value is not None
        and overall.p_value < ALPHA
    ):
        said += f" {overall.reason}"
    if overall.interval is not None and overall.interval[0] < 0:
        ends = " to ".join(map(points, overall.interval))
        said += (
            f" The mean's 95 % interval is {ends}; no protocol's answer depends on it."
        )
    return said


def lost(model: ModelComparison) -> str:
    """Return a sentence on how missing trials are compared, or "" if none is
    missing.
    """
    if not model.missing:
        return ""
    return (
        f"{plural(model.missing, 'trial')} of these subjects could not be run. The rates leave such trials out; "
        "'no loss' counts them as failed, and 'better' and 'worse' must hold however they would have ended."
    )


def rows(comparison: RunComparison, model: ModelComparison) -> list[tuple[str, ...]]:
    found = [_row(cell, sides(comparison)) for cell in model.cells]
    overall = model.overall
    pairs = str(overall.pairs)
    mark = MARKS.get(model.said, MARKS["no loss"])
    kinds = [clean(cell.measure) for cell in model.cells]
    if len(model.rated) < 2:
        return _levelled(found, kinds)
    first, second = map(_rate, model.rates)
    identical = all(cell.identical for cell in model.cells)
    numbers = _numbers(overall, identical=identical)
    whole = (
        f"{mark} {model.said}",
        "all",
        first,
        second,
        *numbers,
        _p(model.adjusted_p),
        pairs,
        "",
    )
    return _levelled([*found, whole], [*kinds, ""])


def _levelled(
    found: Sequence[tuple[str, ...]], kinds: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return the rows. In a column of rates, differences or intervals, all numbers of
    one kind get the same number of decimals.
    """
    columns = [
        _level_ends(column, kinds) if place in _LEVELLED else column
        for place, column in enumerate(zip(*found, strict=True))
    ]
    return list(zip(*columns, strict=True))


def _level_ends(column: Sequence[str], kinds: Sequence[str]) -> list[str]:
    pairs = [text.split(_TO) for text in column]
    ends = [
        (end, kind) for pair, kind in zip(pairs, kinds, strict=True) for end in pair
    ]
    levelled = iter(level([end for end, _ in ends], [kind for _, kind in ends]))
    return [_TO.join(islice(levelled, len(pair))) for pair in pairs]


def _row(cell: CellComparison, names: tuple[str, str]) -> tuple[str, ...]:
    return (
        f"{MARKS[cell.answer]} {cell.said}",
        clean(cell.protocol),
        _value(cell, cell.first_rate, named=True),
        _value(cell, cell.second_rate),
        *_numbers(
            cell.paired,
            signed if cell.measure else points,
            identical=cell.identical,
        ),
        _p(cell.adjusted_p),
        _pairs(cell),
        ", ".join(cell.remarks(*names)),
    )


def _pairs(cell: CellComparison) -> str:
    most = max(cell.subjects)
    return (
        str(cell.paired.pairs)
        if cell.paired.pairs == most
        else f"{cell.paired.pairs} of {most}"
    )


def reasons(model: ModelComparison) -> dict[str, list[str]]:
    """Return the sentences that explain rows, each with its protocols. The reason of
    the overall answer is left out.
    """
    found = dict[str, list[str]]()
    for cell in model.cells:
        if _needs_reason(cell) and cell.reason != model.overall.reason:
            found.setdefault(cell.why, []).append(cell.protocol)
        elif cell.rule:
            found.setdefault(f"Undecided, because {cell.rule}.", []).append(
                cell.protocol
            )
    return found


def _needs_reason(cell: CellComparison) -> bool:
    """Return whether a row needs a sentence. It needs none if the results are
    identical, or if there are six pairs or more and their p value explains the answer.
    """
    raw = cell.paired.p_value
    return not cell.identical and (
        raw is None
        or cell.paired.pairs < 6
        or (raw < ALPHA) != (cell.answer in ("better", "worse"))
    )


def _numbers(
    paired: PairedComparison,
    shown: Callable[[float], str] = points,
    *,
    identical: bool = False,
) -> tuple[str, str, str]:
    difference = NOTHING if paired.difference is None else shown(paired.difference)
    interval = (
        NOTHING
        if paired.interval is None or identical
        else _TO.join(map(shown, paired.interval))
    )
    return difference, interval, _p(paired.p_value)


def _value(cell: CellComparison, value: float | None, *, named: bool = False) -> str:
    """Return a pass rate, or the mean of a measure, with its name if ``named``."""
    if not cell.measure or value is None:
        return _rate(value)
    return f"{clean(cell.measure)} {number(value)}" if named else number(value)


def _rate(value: float | None) -> str:
    return NOTHING if value is None else percent(value)


def _p(value: float | None) -> str:
    if value is None:
        return NOTHING
    return (
        "< .001"
        if value < 0.001
        else rounded(value, 3).lstrip("0")
        if value < 1
        else "1"
    )


def _notes(
    comparison: RunComparison, shown: Callable[[object], str]
) -> list[tuple[str, list[str]]]:
    notes = []
    # The names of two different models are already above the table.
    named = {
        (model.first_model, model.second_model)
        for model in comparison.models
        if model.first_model != model.second_model
    }
    changed = [one for one in comparison.changed if one[1:] not in named]
    if changed:
        lines = [
            f"{shown(name)}: {shown(before)} against {shown(after)}"
            for name, before, after in changed
        ]
        notes.append(("Other differences between the runs:", lines))
    if comparison.left_out:
        notes.append(("Not compared:", [shown(line) for line in comparison.left_out]))
    return notes


def _text_table(comparison: RunComparison, model: ModelComparison) -> str:
    """Return the narrow table. It has only the p value that decides the answer: the
    Holm-adjusted one, if there is one.
    """
    found = rows(comparison, model)
    lines = [
        (said, *values, holm if holm != NOTHING else p, remarks)
        for said, *values, p, holm, _, remarks in found
    ]
    p = "Holm" if any(row[-3] != NOTHING for row in found) else "p"
    names = ("", "protocol", *sides(comparison), "points", "95 %", p, "")
    alignment = ("left", "left", "right", "right", "right", "right", "right", "left")
    drawn: str = tabulate(
        lines,
        headers=names,
        tablefmt="simple",
        disable_numparse=True,
        colalign=alignment,
    )
    return "\n".join(line.rstrip() for line in drawn.splitlines())
