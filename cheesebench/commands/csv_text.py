"""CSV in a portable dialect, with cells escaped that a spreadsheet would run as formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from cheesebench.film import printable
from cheesebench.interfaces import Value

#: Characters that start a formula in a spreadsheet (also after blanks), as listed by OWASP; the last four are
#: full-width forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
#: Separates the members of a set.
SEPARATOR = "|"


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """Yield a table as CSV, row by row: line feeds, full float precision, ``true``/``false``, empty cells for None."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([[_text(name) for name in header]], ([cell(value) for value in row] for row in rows)):
        writer.writerow(row)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def cell(value: Value) -> str:
    """Return a value as the text of a cell; text that a spreadsheet would run as a formula gets a leading ``'``."""
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return _text(SEPARATOR.join(value))


def _text(text: str) -> str:
    safe = printable(text)
    return f"'{safe}" if text.lstrip(" \n").startswith(_FORMULA) else safe
