"""Results that are tables: they show themselves in a notebook, and become data
frames.
"""

from __future__ import annotations

from html import escape
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from cheesebench.amounts import number
from cheesebench.errors import OptionError
from cheesebench.extras import install_command

if TYPE_CHECKING:
    import pandas

#: Characters of a value where a result is printed; ``rows()`` has all of it.
WIDEST = 40


def import_pandas() -> Any:
    """Return pandas, which is an extra. Raises OptionError where it is not there."""
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

    def rows(self) -> list[dict[str, object]]:
        """Return the rows: column -> value. Every row has the same columns."""
        raise NotImplementedError

    def frame(self) -> pandas.DataFrame:
        """Return the rows as a data frame. Raises OptionError where pandas is not
        installed.
        """
        frame: pandas.DataFrame = import_pandas().DataFrame(self.rows())
        return frame

    def __repr__(self) -> str:
        rows = [
            {name: _cut(value) for name, value in row.items()} for row in self.rows()
        ]
        text: str = tabulate(rows, headers="keys", disable_numparse=True)
        return text or f"<{type(self).__name__}: nothing>"

    def _repr_html_(self) -> str:
        rows = self.rows()
        head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
        body = "".join(
            f"<tr>{''.join(f'<td>{_shown(value)}</td>' for value in row.values())}</tr>"
            for row in rows
        )
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            if rows
            else "<p>nothing</p>"
        )


def _shown(value: object) -> str:
    return escape(_text(value))


def _cut(value: object) -> str:
    text = shorten(_text(value), WIDEST, placeholder=" ...")
    return text if text.isprintable() else repr(text)[1:-1]


def _text(value: object) -> str:
    if value is None:
        return "–"
    return number(value) if isinstance(value, float) else str(value)
