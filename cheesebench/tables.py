"""Base classes of results: tables, which a notebook shows and which become data frames,
and parts of results with a short ``repr``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from reprlib import Repr
from textwrap import shorten
from typing import TYPE_CHECKING, Any, ClassVar

from tabulate import tabulate

from cheesebench.amounts import number
from cheesebench.errors import OptionError
from cheesebench.extras import install_command

if TYPE_CHECKING:
    import pandas

#: Maximum number of characters of a value in a printed table, and of a text in the
#: ``repr`` of a part of a result. ``rows()`` has the whole value. In a notebook, the
#: column of a longer text is wide.
WIDEST = 40
#: Maximum number of characters in the ``repr`` of a part of a result.
LONGEST = 200

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = WIDEST
_SHORT.maxdict = _SHORT.maxtuple = _SHORT.maxlist = 3
_SHORT.maxlevel = 2


def import_pandas() -> Any:
    """Return pandas, which is an extra. Raise OptionError if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise OptionError(
            f"Data frames need pandas, which is not installed. Install it with: {install_command('pandas')}"
        ) from None
    return pandas


class Tabular:
    """A result with rows."""

    __slots__ = ()
    #: Column -> function that formats its floats. Floats in other columns have three
    #: significant digits.
    units: ClassVar[Mapping[str, Callable[[float], str]]] = {}
    #: Columns that are shown only if a row has a value in them.
    optional: ClassVar[frozenset[str]] = frozenset()

    def rows(self) -> list[dict[str, object]]:
        """Return the rows, with values by column. Every row has the same columns."""
        raise NotImplementedError

    @property
    def told(self) -> tuple[str, ...]:
        """Sentences that a reader needs beside the table. They are shown below it."""
        return ()

    def frame(self) -> pandas.DataFrame:
        """Return the rows as a data frame. Raise OptionError if pandas is not
        installed.
        """
        pandas, rows = import_pandas(), self.rows()
        return pandas.DataFrame(
            {
                name: _column(pandas, [row[name] for row in rows])
                for name in (rows[0] if rows else ())
            }
        )

    def __repr__(self) -> str:
        rows = [
            {name: _cut(self._shown(name, value)) for name, value in row.items()}
            for row in self._rows_shown()
        ]
        text: str = tabulate(rows, headers="keys", disable_numparse=True)
        text = text or f"<{type(self).__name__}: nothing>"
        return "\n".join([text, *self.told])

    def _rows_shown(self) -> list[dict[str, object]]:
        rows = self.rows()
        empty = {
            name
            for name in self.optional
            if all(row.get(name) in (None, "") for row in rows)
        }
        return [
            {name: value for name, value in row.items() if name not in empty}
            for row in rows
        ]

    def _repr_html_(self) -> str:
        rows = self._rows_shown()
        head = "".join(
            f"<th{_side(next((row[name] for row in rows if row[name]), None))}>{escape(name)}</th>"
            for name in (rows[0] if rows else ())
        )
        cells = (
            "".join(self._cell(name, value) for name, value in row.items())
            for row in rows
        )
        body = "".join(f"<tr>{one}</tr>" for one in cells)
        table = (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            if rows
            else "<p>nothing</p>"
        )
        return table + "".join(f"<p>{escape(one)}</p>" for one in self.told)

    def _shown(self, name: str, value: object) -> str:
        if isinstance(value, float) and name in self.units:
            return self.units[name](value)
        return _text(value)

    def _cell(self, name: str, value: object) -> str:
        return f"<td{_side(value)}>{escape(self._shown(name, value))}</td>"


class Brief:
    """A dataclass with a short ``repr``, because parts of a result hold whole protocols
    and sentences. The ``repr`` leaves out fields that equal their default (unless a
    factory makes it), and has at most ``LONGEST`` characters.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        said = ", ".join(
            f"{one.name}={_SHORT.repr(getattr(self, one.name))}"
            for one in dataclasses.fields(self)  # type: ignore[arg-type]
            if getattr(self, one.name) != one.default
        )
        most = LONGEST - len(type(self).__name__) - 2
        cut = said if len(said) <= most else f"{said[: most - 3]}..."
        return f"{type(self).__name__}({cut})"


class BriefDict(dict[str, object]):
    """A large dictionary with a short ``repr``."""

    def __repr__(self) -> str:
        said = ", ".join(f"{name!r}: {_SHORT.repr(one)}" for name, one in self.items())
        return f"{{{said}}}"


#: Pandas types that allow missing values, by the Python type of the values.
_NULLABLE = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}


def _column(pandas: Any, values: list[Any]) -> Any:
    """Return a column of a data frame, with NA for None as in the frames of a run."""
    kinds = {type(value) for value in values if value is not None}
    kind = kinds.pop() if len(kinds) == 1 else float if kinds == {int, float} else None
    if kind in _NULLABLE:
        return pandas.array(values, dtype=_NULLABLE[kind])
    return [pandas.NA if value is None else value for value in values]


def _side(value: object) -> str:
    """Return an HTML attribute that aligns text to the left, and gives a long text more
    width, or "" for other values. Notebooks align everything to the right, and make a
    wrapped text narrow.
    """
    if not isinstance(value, str | Path):
        return ""
    wide = "; min-width: 30em" if len(str(value)) > WIDEST else ""
    return f' style="text-align: left{wide}"'


def _cut(text: str) -> str:
    text = shorten(text, WIDEST, placeholder=" ...")
    return text if text.isprintable() else repr(text)[1:-1]


def _text(value: object) -> str:
    if value is None:
        return "–"
    return number(value) if isinstance(value, float) else str(value)
