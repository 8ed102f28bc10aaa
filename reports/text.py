"""The report for a terminal, 80 to 120 columns wide."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tabulate import tabulate

from cheesebench.amounts import number
from cheesebench.reports import cells
from cheesebench.reports.matrix import Grid, grid, matrix
from cheesebench.statistics.wording import abilities, plural, shown_value

if TYPE_CHECKING:
    from cheesebench.statistics import (
        CellResult,
        ControlResult,
        ModelSummary,
        RunSummary,
    )
    from cheesebench.statistics.summary import (
        ConditionCurve,
        Leaderboard,
        PublishedContrast,
    )

#: Limits of the width of lines, in columns. ``NARROW``: the minimum, which nearly every
#: terminal has. ``WIDE``: the maximum, because longer lines are tiring to read.
NARROW, WIDE = 80, 120
_ALIGNMENT = ("left", "left", "right", "right", "right", "right")
#: Minimum number of characters shown of a protocol's name.
_LEAST = 12
#: Columns of a control's table that fit into a terminal. Other reports also have the
#: columns with the rates' own intervals.
_CONTROL_COLUMNS = (0, 1, 3, 5, 6, 7)


def render(summary: RunSummary) -> str:
    progress = cells.in_progress(summary)
    if not summary.models:
        return f"{progress or 'No cell was run.'}\n"
    width = min(max(NARROW, shutil.get_terminal_size().columns), WIDE)
    found = matrix(summary)
    parts = [progress] if progress else []
    parts += _blocks(found.lines(), width) if found.is_several else []
    parts += _models(summary, width)
    parts += [_leaderboard(board, width) for board in summary.leaderboards]
    parts += [_control(result, width) for result in summary.controls]
    if summary.contrasts:
        parts.append(_contrasts(summary.contrasts, width))
    if cells.study_name(summary):
        parts.append(_study(summary, width))
    return "\n\n".join(parts) + "\n"


def _blocks(lines: Sequence[Sequence[str]], width: int) -> list[str]:
    """Split a table into several, each with as many columns as fit beside the first
    column. The first line is the head of the table.
    """
    names, *columns = [
        ["\n".join(map(cells.clean, cell.split("\n"))) for cell in column]
        for column in zip(*lines, strict=True)
    ]
    widths = [
        max(len(part) for cell in column for part in cell.split("\n"))
        for column in (names, *columns)
    ]
    blocks: list[list[list[str]]] = []
    room = 0
    for column, wide in zip(columns, widths[1:], strict=True):
        if not blocks or wide + 2 > room:
            blocks.append([names])
            room = width - widths[0]
        blocks[-1].append(column)
        room -= wide + 2
    # The headings are a row like the others, because tabulate pads real headers by two
    # columns.
    tables = [
        tabulate(
            list(zip(*block, strict=True)),
            tablefmt="plain",
            disable_numparse=True,
            colalign=["left", *("right" for _ in block[1:])],
        )
        for block in blocks
    ]
    return ["\n".join(line.rstrip() for line in table.splitlines()) for table in tables]


def _models(summary: RunSummary, width: int) -> list[str]:
    """Return the part of each model. If there are several, the notes on how to read
    them follow once.
    """
    found = [(model, cells.cells_of(summary, model)) for model in summary.models]
    tables = [cell for _, own in found if grid(own) is None for cell in own]
    notes = [] if len(found) == 1 else list(dict.fromkeys(_reading(tables)))
    parts = [_model(summary, model, width, alone=not notes) for model, _ in found]
    return [*parts, *filter(None, ["\n".join(_filled(one, width) for one in notes)])]


def _model(summary: RunSummary, model: ModelSummary, width: int, *, alone: bool) -> str:
    own = cells.cells_of(summary, model)
    notes = [cells.mean_ability(model, own), *(_reading(own) if alone else ())]
    if (by_graph := grid(own)) is not None:
        title = _filled(
            f"{' in '.join(cells.whose(model))} ({cells.counts(own)})", width
        )
        gate = _filled(f"{cells.marked(model.gate)}: {model.gate_reason}", width)
        return f"{title}\n\n{_grid(by_graph, width)}\n\n{gate}"
    parts = [
        _filled(f"{' in '.join(cells.whose(model))} ({cells.counts(own)})", width),
        _filled(cells.connected(own), width),
        _verdicts(own, width),
        _filled(cells.behaviour(str(summary.manifest.get("run_id", "")), own), width),
        "\n".join(_filled(note, width) for note in notes if note),
        "\n".join(_filled(reason, width) for reason in _undecided(own)),
        "\n".join(
            _filled(f"{cell.plan.label}: {said}", width)
            for cell in own
            for said in (*cell.contradicted, *cell.remarks)
        ),
        "\n".join(
            _filled(f"{cell.plan.label}: {said}", width)
            for cell in own
            for said in (*cells.reported(cell), *map(_by, cell.conditions))
        ),
        _filled(_calls(summary, own), width),
        _filled(f"{cells.marked(model.gate)}: {model.gate_reason}", width),
    ]
    return "\n\n".join(part for part in parts if part)


def _undecided(own: Sequence[CellResult]) -> list[str]:
    """Return the reasons of cells with an ERROR, with an undecided claim, or without a
    planned trial. A reason that several cells share is given once.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for cell in own:
        is_open = cell.verdict == "INCONCLUSIVE" and (
            cell.plan.claims or not cell.planned
        )
        if cell.verdict == "ERROR" or is_open:
            key = cells.marked(cell.verdict), cell.reason
            found.setdefault(key, []).append(cell.plan.label)
    return [
        f"{mark} {', '.join(labels)}: {reason}"
        for (mark, reason), labels in found.items()
    ]


def _calls(summary: RunSummary, own: Sequence[CellResult]) -> str:
    """Return the line on calls and tokens, or "" if there is no call."""
    paid = cells.with_controls(summary, own)
    totals = cells.call_totals(paid)
    if not totals.calls:
        return ""
    what = "Calls: " if len(paid) == len(own) else "Calls, controls included: "
    numbers = zip(cells.CALL_HEADERS, cells.call_numbers(totals), strict=True)
    nothing = (cells.NOTHING, "0")
    return what + ", ".join(
        f"{value} {name}" for name, value in numbers if value not in nothing
    )


def _reading(own: Sequence[CellResult]) -> list[str]:
    """Return the notes below the verdicts: how to read the numbers, and the limits of a
    PASS.
    """
    simple = [
        f"{cells.clean(cell.plan.label)}: {found}"
        for cell in own
        if (found := cells.passed_by(cell))
    ]
    dosed = [cells.HOW_TO_READ_DOSE] if any(map(cells.dose, own)) else []
    read = (
        *cells.ability_footnotes(own),
        *dosed,
        *cells.undecidable(own),
        cells.worst_case(own),
    )
    return [*filter(None, read), *simple]


def _grid(found: Grid, width: int) -> str:
    conditions = [_shortened(cells.clean(one), 20) for one in found.conditions]
    fields = [
        [cells.NOTHING if field is None else field.shown for field in row]
        for row in found.rows
    ]
    rows = [[name, *row] for name, row in zip(conditions, fields, strict=True)]
    return "\n\n".join(
        [
            *_blocks([["", *found.graphs], *rows], width),
            _filled(f"{found.how} The report has every cell.", width, "", ""),
        ]
    )


def _by(curve: ConditionCurve) -> str:
    """Return the mean of a measure for each value of a variable, as in ``right by
    delay: 0.95 (2), 0.8 (10)``.
    """
    points = ", ".join(
        f"{number(measure.mean)} ({shown_value(value)})"
        for value, measure in curve.points
    )
    return f"{curve.measure} by {curve.variable}: {points}"


def _verdicts(own: Sequence[CellResult], width: int) -> str:
    """Return the table of verdicts. Remarks that apply to all cells are above it, and
    other remarks below the line of their cell.
    """
    remarks = [_remarks(cell) for cell in own]
    common, remarks = _said_once(own, remarks)
    headers = ["", "protocol", "rate", cells.standard_name(own), "difference", "margin"]
    rows = _rows(own, headers, width)
    head, *lines = _drawn([headers, *rows])
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    indent = " " * (widths[0] + 2)
    shown = [row[1] for row in rows]
    found = (
        [_filled(f"Each protocol: {'; '.join(common)}.", width), ""] if common else []
    )
    found += [head, "  ".join("-" * column for column in widths)]
    for line, name, cell, texts in zip(lines, shown, own, remarks, strict=True):
        # Names that are shortened are given in full below.
        detail = [cell.plan.label] * (name != cells.clean(cell.plan.label))
        detail += filter(
            None,
            (
                cells.measured_name(cell),
                "" if cell.is_unfinished else abilities(cell),
                *texts,
            ),
        )
        found.append(line)
        about = filter(None, ("; ".join(detail), cells.dose(cell)))
        found += [_filled(one, width, indent, indent) for one in about]
    return "\n".join(found)


def _rows(
    own: Sequence[CellResult], headers: Sequence[str], width: int
) -> list[list[str]]:
    """Return the lines of the table. The names of protocols get the width that the
    numbers leave.
    """
    rows = [
        [
            cells.marked(cell.verdict),
            numbers.rate.removeprefix(f"{cells.measured_name(cell)} "),
            f"({numbers.standard})" if cells.origin(cell) else numbers.standard,
            numbers.difference,
            numbers.margin,
        ]
        for cell, numbers in zip(own, cells.numbers(own), strict=True)
    ]
    beside = zip((headers[0], *headers[2:]), *rows, strict=True)
    taken = [max(map(len, column)) for column in beside]
    room = max(_LEAST, width - sum(taken) - 2 * len(taken))
    for row, cell in zip(rows, own, strict=True):
        row.insert(1, _shortened(cells.clean(cell.plan.label), room))
    return rows


def _drawn(lines: Sequence[Sequence[str]]) -> list[str]:
    # The headings are a row like the others, because tabulate pads real headers by two
    # columns.
    table = tabulate(
        lines, tablefmt="plain", disable_numparse=True, colalign=_ALIGNMENT
    )
    return [line.rstrip() for line in table.splitlines()]


def _remarks(cell: CellResult) -> list[str]:
    """Return the sample size and the remarks. The evidence of a decided cell is left
    out, and so is how the cell was run, which is shown below the table.
    """
    elsewhere = (cells.settled(cell), cells.how_it_was_run(cell))
    return [
        _size(cell),
        *(text for text in cells.remarks(cell) if text not in elsewhere),
    ]


def _said_once(
    own: Sequence[CellResult], remarks: list[list[str]]
) -> tuple[list[str], list[list[str]]]:
    """Return the remarks that all of several cells share, with the most frequent sample
    size (if several cells have it), and the remaining remarks of each cell.
    """
    common = [
        text
        for text in remarks[0]
        if len(own) > 1 and all(text in others for others in remarks)
    ]
    said = set(common)
    [(usual, count)] = Counter(size for size, *_ in remarks).most_common(1)
    if 1 < count < len(own):
        common.insert(0, f"{usual}, except where noted")
        said.add(usual)
    return common, [[one for one in texts if one not in said] for texts in remarks]


def _size(cell: CellResult) -> str:
    """Return the sample size. If every planned trial is valid and no subject is a copy,
    it is only the number of subjects.
    """
    if (
        cell.planned
        and cell.valid == cell.planned
        and not cell.flags.duplicate_subjects
    ):
        return plural(cell.subjects, "subject")
    return cell.n_text


def _shortened(name: str, room: int) -> str:
    """Return a name in at most ``room`` characters. Both ends are kept, because names
    may differ at either end.
    """
    if len(name) <= room:
        return name
    end = (room - 1) // 2
    return f"{name[: room - 1 - end]}…{name[len(name) - end :]}"


def _filled(text: str, width: int, first: str = "", rest: str = "  ") -> str:
    """Return text wrapped to ``width`` characters. Longer words are not split."""
    return textwrap.fill(
        cells.clean(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _study(summary: RunSummary, width: int) -> str:
    headers, rows = cells.settings_table(summary)
    # A terminal is too narrow for one column per protocol. The Markdown report has
    # them.
    short = [
        [_shortened(cells.clean(value), (width - 20) // 2) for value in row[:3]]
        for row in rows
    ]
    table = tabulate(
        short, headers=headers[:3], tablefmt="simple", disable_numparse=True
    )
    return f"Study {cells.clean(cells.study_name(summary))}: mean pass rate over the protocols\n\n{table}"


def _contrasts(contrasts: Sequence[PublishedContrast], width: int) -> str:
    headers, rows = list(cells.CONTRAST_HEADERS), cells.contrast_rows(contrasts)
    table = tabulate(
        [
            [_shortened(cells.clean(row[0]), 26), *map(cells.clean, row[1:])]
            for row in rows
        ],
        headers=[*headers[:-1], "difference"],
        tablefmt="simple",
        disable_numparse=True,
        colalign=["left", "left", "right", "right", "right"],
    )
    title = _filled(f"Beside {contrasts[0].model}, as published", width)
    return (
        f"{title}\n\n{table}\n\n{_filled(cells.HOW_TO_READ_CONTRASTS, width, '', '')}"
    )


def _leaderboard(board: Leaderboard, width: int) -> str:
    rows = [
        [_shortened(cells.clean(value), 26) for value in row]
        for row in cells.leaderboard_rows(board)
    ]
    align = ("left", "left", "right", "right", "right")
    drawn = tabulate(
        rows,
        cells.LEADERBOARD_HEADERS,
        tablefmt="simple",
        disable_numparse=True,
        colalign=align,
    )
    said = (
        cells.leaderboard_title(board),
        cells.leaderboard_lists(board),
        cells.HOW_TO_READ_LEADERBOARD,
    )
    title, *rest = (_filled(line, width, "", "") for line in said)
    return "\n\n".join([title, drawn, *rest])


def _control(result: ControlResult, width: int) -> str:
    headers = cells.headers(result)
    table = tabulate(
        [[row[column] for column in _CONTROL_COLUMNS] for row in cells.rows(result)],
        headers=[headers[column] for column in _CONTROL_COLUMNS],
        tablefmt="simple",
        disable_numparse=True,
        colalign=["right"] * len(_CONTROL_COLUMNS),
    )
    said = "\n".join(_filled(sentence, width) for sentence in cells.sentences(result))
    title = _filled(f"Control {cells.title(result)}", width)
    # A verdict on a measure has no curve of pass rates.
    return "\n\n".join([title, *([table] if result.points else []), said])
