"""The verdict table for a terminal, 80 to 120 columns wide."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cheesebench.reports import cells, controls, studies
from cheesebench.reports.escaping import clean
from cheesebench.reports.matrix import Matrix, columns_of, matrix
from cheesebench.statistics.wording import number, shown_value

if TYPE_CHECKING:
    from cheesebench.statistics import CellResult, ControlResult, ModelSummary, RunSummary
    from cheesebench.statistics.summary import ConditionCurve, PublishedContrast

#: Columns that every terminal has, and those beyond which lines are tiring to read.
NARROW, WIDE = 80, 120
_ALIGNMENT = ("left", "left", "right", "right", "left", "right")
#: Characters of a protocol's name that are shown at least.
_LEAST = 12
#: Columns of a control's table that there is room for: the rates' own intervals are in the other reports.
_CONTROL_COLUMNS = (0, 1, 3, 5, 6, 7)


def render(summary: RunSummary) -> str:
    """Return one table for each model and view, with its verdicts and totals."""
    if not summary.models:
        return "No cell was run.\n"
    width = min(max(NARROW, shutil.get_terminal_size().columns), WIDE)
    found = matrix(summary)
    parts = [_matrix(found, width)] if found.is_several else []
    parts += [_model(summary, model, width) for model in summary.models]
    parts += [_control(result, width) for result in summary.controls]
    if summary.contrasts:
        parts.append(_contrasts(summary.contrasts, width))
    if studies.study_name(summary):
        parts.append(_study(summary, width))
    return "\n\n".join(parts) + "\n"


def _matrix(found: Matrix, width: int) -> str:
    """Return models x paradigms, in as many blocks as the width asks for."""
    from tabulate import tabulate

    tables = []
    for block in columns_of(found, width):
        head, *lines = [[clean(value) for value in line] for line in block]
        rule = ["-" * max(len(line[at]) for line in (head, *lines)) for at in range(len(head))]
        # The headers are a row like the others: tabulate pads real headers by two columns.
        align = ["left", *("right" for _ in head[1:])]
        tables.append(tabulate([head, rule, *lines], tablefmt="plain", disable_numparse=True, colalign=align))
    return "\n\n".join("\n".join(line.rstrip() for line in table.splitlines()) for table in tables)


def _model(summary: RunSummary, model: ModelSummary, width: int) -> str:
    own = cells.cells_of(summary, model)
    reasons = [
        f"{cells.marked(cell.verdict)} {cell.plan.label}: {cell.reason}"
        for cell in own
        if cell.verdict == "ERROR" or (cell.verdict == "INCONCLUSIVE" and (cell.plan.claims or not cell.planned))
    ]
    totals = cells.call_totals(own)
    calls = ""
    if totals.calls:
        numbers = zip(cells.CALL_HEADERS, cells.call_numbers(totals), strict=True)
        calls = "Calls: " + ", ".join(f"{value} {name}" for name, value in numbers if value not in (cells.NOTHING, "0"))
    parts = [
        _filled(f"{' in '.join(cells.whose(model))} ({cells.counts(own)})", width),
        _filled(cells.connected(own), width),
        _verdicts(own, width),
        "\n".join(_filled(reason, width) for reason in reasons),
        "\n".join(_filled(f"{cell.plan.label}: {said}", width) for cell in own for said in cell.contradicted),
        "\n".join(_filled(f"{cell.plan.label}: {said}", width) for cell in own for said in map(_by, cell.conditions)),
        _filled(calls, width),
        _filled(f"{cells.marked(model.gate)}: {model.gate_reason}", width),
    ]
    return "\n\n".join(part for part in parts if part)


def _by(curve: ConditionCurve) -> str:
    """Return a measure value by value: ``right by delay: 0.95 (2), 0.8 (10)``."""
    points = ", ".join(f"{number(measure.mean)} ({shown_value(value)})" for value, measure in curve.points)
    return f"{curve.measure} by {curve.variable}: {points}"


def _verdicts(own: Sequence[CellResult], width: int) -> str:
    """Return two lines for each cell: verdict and rates, then the sample size and remarks."""
    from tabulate import tabulate

    headers = ["", "protocol", "rate", "95 %", cells.reference_name(own), "random"]
    rows = [
        [cells.marked(cell.verdict), cells.rate(cell), cells.interval(cell), cells.reference(cell), cells.floor(cell)]
        for cell in own
    ]
    taken = [max(map(len, column)) for column in zip(*rows, (headers[0], *headers[2:]), strict=True)]
    room = max(_LEAST, width - sum(taken) - 2 * len(taken))
    for row, cell in zip(rows, own, strict=True):
        row.insert(1, _shortened(clean(cell.plan.label), room))
    # The headers are a row like the others: tabulate pads real headers by two columns.
    table = tabulate([headers, *rows], tablefmt="plain", disable_numparse=True, colalign=_ALIGNMENT)
    head, *lines = table.splitlines()
    taken.insert(1, max(len(row[1]) for row in [headers, *rows]))
    rule = "  ".join("-" * column for column in taken)
    indent = " " * (taken[0] + 2)
    shown = [row[1] for row in rows]
    details = [
        # Names that look the same when shortened are given in full below.
        "; ".join((*([cell.plan.label] if shown.count(row[1]) > 1 else []), cell.n_text, *cells.remarks(cell)))
        for row, cell in zip(rows, own, strict=True)
    ]
    return "\n".join(
        [head.rstrip(), rule]
        + [
            f"{line.rstrip()}\n{_filled(detail, width, indent, indent)}"
            for line, detail in zip(lines, details, strict=True)
        ]
    )


def _shortened(name: str, room: int) -> str:
    """Return a name in at most ``room`` characters, keeping both ends, because names may differ at either."""
    if len(name) <= room:
        return name
    end = (room - 1) // 2
    return f"{name[: room - 1 - end]}…{name[len(name) - end :]}"


def _filled(text: str, width: int, first: str = "", rest: str = "  ") -> str:
    """Return text wrapped to ``width`` characters; words are never split."""
    return textwrap.fill(
        clean(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _study(summary: RunSummary, width: int) -> str:
    from tabulate import tabulate

    headers, rows = studies.settings_table(summary)
    # A terminal is too narrow for one column per protocol; see the Markdown report.
    short = [[_shortened(clean(value), (width - 20) // 2) for value in row[:3]] for row in rows]
    table = tabulate(short, headers=headers[:3], tablefmt="simple", disable_numparse=True)
    return f"Study {clean(studies.study_name(summary))}: mean pass rate over the protocols\n\n{table}"


def _contrasts(contrasts: Sequence[PublishedContrast], width: int) -> str:
    from tabulate import tabulate

    headers, rows = list(cells.CONTRAST_HEADERS), cells.contrast_rows(contrasts)
    table = tabulate(
        [[_shortened(clean(row[0]), 26), *map(clean, row[1:])] for row in rows],
        headers=[*headers[:-1], "difference"],
        tablefmt="simple",
        disable_numparse=True,
        colalign=["left", "left", "right", "right", "right"],
    )
    title = _filled(f"Beside {contrasts[0].model}, as published", width)
    return f"{title}\n\n{table}\n\n{_filled(cells.HOW_TO_READ_CONTRASTS, width, '', '')}"


def _control(result: ControlResult, width: int) -> str:
    from tabulate import tabulate

    headers = controls.headers(result)
    table = tabulate(
        [[row[column] for column in _CONTROL_COLUMNS] for row in controls.rows(result)],
        headers=[headers[column] for column in _CONTROL_COLUMNS],
        tablefmt="simple",
        disable_numparse=True,
        colalign=["right"] * len(_CONTROL_COLUMNS),
    )
    said = "\n".join(_filled(sentence, width) for sentence in controls.sentences(result))
    return f"{_filled(f'Control {controls.title(result)}', width)}\n\n{table}\n\n{said}"
