"""Remedies for YAML that cannot be parsed, based on the common mistakes of authors."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BLOCK = re.compile(r"( *)(?:- +)?([\w-]+): +[|>][-+]? *(?:#.*)?")


def remedy_for(problem: str, lines: Sequence[str], row: int, column: int) -> str:
    """Return what to do about a problem of the YAML parser at ``lines[row][column]`` (both from 0)."""
    line = lines[row] if row < len(lines) else ""
    written = line.lstrip()
    if "\t" in line[: len(line) - len(written)] or line[column : column + 1] == "\t":
        return "Indent with spaces, not tabs."
    if re.match(r"-[^-\s\d]", written):
        return "A list entry begins with a dash and a space."
    if (block := block_cut_short(lines, row)) is not None:
        return block
    if (opened := _odd_quote(lines, row)) is not None:
        return f"Is the quote in line {opened + 1} closed?"
    if "could not find expected ':'" in problem and ":" not in written:
        return "Write 'key: value'."
    if "mapping values" in problem and written.count(": ") > 1:
        return "Quote a text that contains a colon."
    if "alphabetic or numeric" in problem or "cannot start any token" in problem:
        return "Put glyphs such as '*', '&' and '@' in quotes."
    return _between_levels(lines, row) or "Check quotes, colons and indentation."


def _between_levels(lines: Sequence[str], row: int) -> str | None:
    """Return what to do where this line begins below nothing that encloses it."""
    above = [line for line in lines[:row] if line.strip() and not line.lstrip().startswith("#")]
    if row >= len(lines) or not above or sum(map(_opened, above)) > 0:
        return None  # lines within brackets begin anywhere
    indent, levels, lowest = _indent(lines[row]), set[int](), len(lines[row]) + 1
    for line in reversed(above):
        if (level := _indent(line)) < lowest:
            lowest = level
            levels |= {level, *([level + len(dash[0])] if (dash := re.match(r"- +", line[level:])) else [])}
    last = _indent(above[-1])
    levels.add(last)
    if indent in levels:
        return None
    below = [_indent(line) for line in lines[row + 1 :] if line.strip() and not line.lstrip().startswith("#")]
    before = _indent(above[-2]) if len(above) > 1 else None
    if indent in (before, *below[:1]):
        if before != last:  # nothing else is indented as the line above
            return (
                f"The line above is indented by {last}, this line and others by {indent}: indent that one by {indent}."
            )
        return f"This line is indented by {indent}, the line above by {last}: one of the two is indented wrongly."
    nearest = last if last in below[:1] else min(levels, key=lambda level: (abs(level - indent), level))
    return f"This line is indented by {indent}, the line above by {last}: indent it by {nearest}."


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _opened(line: str) -> int:
    return sum(line.count(mark) for mark in "{[") - sum(line.count(mark) for mark in "}]")


def block_cut_short(lines: Sequence[str], row: int) -> str | None:
    """Return what to do where the first row of a block is indented more than this one, which YAML takes for its end."""
    top = next((number for number in range(min(row, len(lines) - 1), -1, -1) if _BLOCK.fullmatch(lines[number])), None)
    if top is None:
        return None
    found = _BLOCK.fullmatch(lines[top])
    assert found is not None
    outside = len(found[1])
    below = []
    for line in lines[top + 1 :]:
        if line.strip():
            below.append(len(line) - len(line.lstrip(" ")))
            if below[-1] <= outside:
                break
    inside = [indent for indent in below if indent > outside]
    if not inside or len(inside) < row - top or inside[0] == min(inside):
        return None
    return f"Its first row begins with blanks: write '{found[2]}: |{min(inside) - outside}' to keep them."


def _odd_quote(lines: Sequence[str], row: int) -> int | None:
    """Return the first line up to this one with an odd number of double quotes."""
    texts = [re.sub(r"(^|\s)#.*", "", line) for line in lines[: row + 1]]
    return next((number for number, text in enumerate(texts) if text.count('"') % 2), None)
