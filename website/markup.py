"""Writes text as Markdown: escaped text, the prose of docstrings and help, and
tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: Characters that Markdown would take for markup. An underscore within a word is not
#: one.
_MARKUP = re.compile(r"[\\`*\[\]|]|(?<![^\W_])_|_(?![^\W_])")
#: Matches code in help texts and docstrings: ``code``, `code`, an example at the end,
#: --options, *.suffixes, NAME=X.
_CODE = re.compile(
    r"``(.+?)``|`([^`]+)`|(?<=Example: )(.+)$"
    r"|(?<![\w-])(--[a-z][\w-]*(?:=[\w./]+)?|\*\.[a-z][\w.]*|[A-Z]+=[A-Z]+)"
)


def escape(text: object) -> str:
    """Return Markdown that shows exactly this text, on one line."""
    flat = " ".join(str(text).split())
    return (
        _MARKUP.sub(r"\\\g<0>", flat)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )


def code(text: object) -> str:
    """Return text as inline code, also in a table."""
    flat = " ".join(str(text).split())
    fence = "``" if "`" in flat else "`"
    return f"{fence}{flat}{fence}".replace("|", "\\|")


def prose(text: str) -> str:
    """Return the text of a docstring or a help on one line, with its code marked as
    code.
    """
    parts, end = [], 0
    for match in _CODE.finditer(text):
        parts += [
            _plain(text[end : match.start()]),
            code(next(filter(None, match.groups()))),
        ]
        end = match.end()
    return " ".join("".join([*parts, _plain(text[end:])]).split())


def _plain(text: str) -> str:
    # Blanks at both ends stay, because they separate the text from the code beside it.
    kept = re.sub(r"\s+", " ", text)
    return (
        _MARKUP.sub(r"\\\g<0>", kept)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )


def sentence(text: str) -> str:
    """Return prose with a capital at its beginning and a full stop at its end."""
    found = prose(text)
    if not found:
        return found
    return found[0].upper() + found[1:] + ("" if found[-1] in ".!?:" else ".")


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are already Markdown. Empty columns are left out."""
    rows = [list(row) for row in rows]
    kept = [
        number for number, _ in enumerate(headers) if any(row[number] for row in rows)
    ]
    lines = [[headers[number] for number in kept], ["---"] * len(kept)]
    lines += [[row[number] for number in kept] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fenced(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.strip(chr(10))}\n```"


def sections(parts: Iterable[str]) -> str:
    """Return parts with a blank line between them."""
    return "\n\n".join(part for part in parts if part)
