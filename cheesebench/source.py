"""Reads YAML text into a tree of nodes with positions, and enforces the safety limits
of the language.

PyYAML scans and composes. This module rejects what the language forbids (tags, anchors,
aliases, duplicate keys, several documents, deep nesting, large files) and reads scalars
according to YAML 1.2's core schema, so that ``on``, ``no`` and ``1:30`` stay text."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from cheesebench.diagnostics import Diagnostics, EnoughFindingsError, Position
from cheesebench.files import read_bytes

if TYPE_CHECKING:
    from yaml.nodes import Node as YamlNode

#: Beginning of a remedy for the line above the line where the parser stopped.
_ABOVE = "The line above is"
_BLOCK = re.compile(r"( *)(?:- +)?([\w-]+): +[|>][-+]? *(?:#.*)?")


def remedy_for(problem: str, lines: Sequence[str], row: int, column: int) -> str:
    """Return the remedy for a problem of the YAML parser at ``lines[row][column]``
    (both from 0).
    """
    line = lines[row] if row < len(lines) else ""
    written = line.lstrip()
    if "\t" in line[: len(line) - len(written)] or line[column : column + 1] == "\t":
        return "Indent with spaces, not tabs."
    if re.match(r"-[^-\s\d]", written):
        return "Begin a list entry with a dash and a space."
    if (block := block_cut_short(lines, row)) is not None:
        return block
    if (opened := _odd_quote(lines, row)) is not None:
        return f"Is the quote in line {opened + 1} closed?"
    if "could not find expected ':'" in problem and ":" not in written:
        return "Write 'key: value'."
    is_value = column != line.find(":")
    if "mapping values" in problem and is_value and written.count(": ") > 1:
        return "Quote a text that contains a colon."
    if "alphabetic or numeric" in problem or "cannot start any token" in problem:
        return "Put glyphs such as '*', '&' and '@' in quotes."
    return _between_levels(lines, row) or "Check quotes, colons and indentation."


def _between_levels(lines: Sequence[str], row: int) -> str | None:
    """Return the remedy for a line whose indentation matches no enclosing line, or None
    for any other line.
    """
    above = _with_content(lines[:row])
    if row >= len(lines) or not above or sum(map(_opened, above)) > 0:
        return None  # lines within brackets may begin anywhere
    indent, last = _indent(lines[row]), _indent(above[-1])
    levels = {last, *_open_levels(above, len(lines[row]) + 1)}
    if indent in levels:
        return None
    below = [_indent(line) for line in _with_content(lines[row + 1 :])]
    before = _indent(above[-2]) if len(above) > 1 else None
    if indent in (before, *below[:1]) and before == last:
        return f"This line is indented by {indent}, the line above by {last}: one of the two is indented wrongly."
    siblings = set(_open_levels(above[:-1], len(lines[row]) + 1))
    if indent in (before, *below[:1], *siblings):
        # Other lines are indented like this one, so the line above is wrong.
        return f"{_ABOVE} indented by {last}, the next line and others by {indent}: indent it by {indent}."
    right = last if last in below[:1] else _nearest(levels, indent, below[:1])
    return f"This line is indented by {indent}, the line above by {last}: indent it by {right}."


def _nearest(levels: Collection[int], indent: int, below: Collection[int]) -> int:
    """Return the level nearest to ``indent``. Of two equally near levels, return the
    level of the line below.
    """
    return min(levels, key=lambda at: (abs(at - indent), at not in below, at))


def _with_content(lines: Sequence[str]) -> list[str]:
    return [
        line for line in lines if line.strip() and not line.lstrip().startswith("#")
    ]


def _open_levels(above: Sequence[str], lowest: int) -> Iterator[int]:
    """Yield the indentations below ``lowest`` that a further line may have."""
    for line in reversed(above):
        if (level := _indent(line)) < lowest:
            lowest = level
            yield level
            if dash := re.match(r"- +", line[level:]):
                yield level + len(dash[0])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _opened(line: str) -> int:
    return sum(line.count(mark) for mark in "{[") - sum(
        line.count(mark) for mark in "}]"
    )


def block_cut_short(lines: Sequence[str], row: int) -> str | None:
    """Return the remedy for a block that ends at ``row`` because its first row is
    indented more, or None if there is no such block.
    """
    top = next(
        (
            number
            for number in range(min(row, len(lines) - 1), -1, -1)
            if _BLOCK.fullmatch(lines[number])
        ),
        None,
    )
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
    """Return the index of the first line, up to ``row``, with an odd number of double
    quotes, or None.
    """
    texts = [re.sub(r"(^|\s)#.*", "", line) for line in lines[: row + 1]]
    return next(
        (number for number, text in enumerate(texts) if text.count('"') % 2), None
    )


#: Maximum size of a file, in bytes, and of a text, in characters.
MAX_BYTES = 256 * 1024
#: Code of the error for a duplicate key, and for a key that is not a plain word.
DUPLICATE_KEY = 105
#: Maximum depth to which mappings and lists may be nested.
MAX_DEPTH = 40
#: The absolute value of a number must be below ten to this power.
MAX_DIGITS = 15

# Matches a character that YAML does not count as printable. Escapes in quotes can still
# produce such characters.
_NOT_TEXT = re.compile(
    "[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_CONSTANTS = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file, for error messages: its name, what its content is, and its first
    line.
    """

    noun: str = "protocol"
    looks: str = "a mapping with keys such as 'version' and 'paradigm'"
    begins: str = "version: 1"


PROTOCOL = Kind()


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the file: a scalar, a mapping (in file order) or a list, with its
    position.

    ``text_at`` is the position of a scalar's text if the file contains this text
    unchanged: after a quote, or below the ``|`` of a block. It is None for text that
    YAML has changed (escapes, folded lines).
    """

    value: Scalar | Mapping[str, Node] | Sequence[Node]
    position: Position
    keys: Mapping[str, Position] = field(default_factory=dict)
    text_at: Position | None = None

    def inside(self, offset: int) -> Position:
        """Return the position of the character at ``offset`` in a text, or the position
        of the node if the file does not contain the text unchanged.
        """
        if self.text_at is None or not isinstance(self.value, str):
            return self.position
        row = self.value.count("\n", 0, offset)
        column = offset - (self.value.rfind("\n", 0, offset) + 1)
        return Position(
            self.text_at.file, self.text_at.line + row, self.text_at.column + column
        )

    def plain(self) -> Any:
        """Return the value as plain Python data."""
        if isinstance(self.value, Mapping):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list | tuple):
            return [child.plain() for child in self.value]
        return self.value

    def child(self, key: str | int) -> Node | None:
        """Return the value under a key or index, or None."""
        if isinstance(self.value, Mapping):
            return self.value.get(str(key))
        if (
            isinstance(self.value, list | tuple)
            and isinstance(key, int)
            and key < len(self.value)
        ):
            found: Node = self.value[key]
            return found
        return None

    def find(self, path: Sequence[str | int]) -> Node:
        """Return the node at the end of the path. Steps to missing nodes are
        skipped.
        """
        node = self
        for step in path:
            node = node.child(step) or node
        return node

    def key_position(self, key: str) -> Position:
        """Return the position of a key, or the position of this node if the key is
        missing.
        """
        return self.keys.get(key, self.position)


class _RefusedError(Exception):
    def __init__(self, code: int, mark: Any, sentence: str, remedy: str) -> None:
        self.code, self.mark, self.sentence, self.remedy = code, mark, sentence, remedy


class _StrictComposer(Composer):
    """PyYAML's composer, restricted to the language. Anything forbidden is an error
    with a position.
    """

    depth = 0

    def compose_node(self, parent: YamlNode | None, index: Any) -> YamlNode | None:
        event = self.peek_event()  # type: ignore[attr-defined]
        if isinstance(event, yaml.AliasEvent):
            raise _RefusedError(
                107,
                event.start_mark,
                f"The alias '*{event.anchor}' is not allowed.",
                "Repeat the value.",
            )
        if event.anchor is not None:
            raise _RefusedError(
                107,
                event.start_mark,
                f"The anchor '&{event.anchor}' is not allowed.",
                "Remove it.",
            )
        if event.tag is not None and event.tag != "!":
            raise _RefusedError(
                106,
                event.start_mark,
                f"The tag '{event.tag}' is not allowed.",
                "Remove it.",
            )
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _RefusedError(
                108,
                event.start_mark,
                f"Values are nested more than {MAX_DEPTH} deep.",
                "Flatten the file.",
            )
        node: YamlNode | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _loader_class() -> type[Any]:
    if yaml.__with_libyaml__:  # It is ten times as fast as the Python parser.
        from yaml.cyaml import CParser  # type: ignore[attr-defined]

        class Fast(_StrictComposer, CParser, BaseResolver):
            def __init__(self, text: str) -> None:
                CParser.__init__(self, text)
                Composer.__init__(self)
                BaseResolver.__init__(self)

        return Fast

    class Portable(Reader, Scanner, Parser, _StrictComposer, BaseResolver):
        def __init__(self, text: str) -> None:
            Reader.__init__(self, text)
            Scanner.__init__(self)
            Parser.__init__(self)
            Composer.__init__(self)
            BaseResolver.__init__(self)

    return Portable


_Loader = _loader_class()


def real_path(path: Path) -> Path:
    """Return a path with its links resolved as far as possible. A circle of links is no
    error.
    """
    return Path(os.path.realpath(path))


def read_file(
    path: Path, diagnostics: Diagnostics, kind: Kind = PROTOCOL
) -> Node | None:
    start = Position(str(path), 1, 1)
    try:
        data = read_bytes(path, MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: an invalid path
        reason = getattr(error, "strerror", None) or error
        diagnostics.error(
            101,
            start,
            f"The file cannot be read: {reason}.",
            "Check the path and its permissions.",
        )
        return None
    if len(data) > MAX_BYTES:
        sentence = f"The file is larger than {MAX_BYTES // 1024} KB."
        diagnostics.error(
            103, start, sentence, f"Shorten the {kind.noun} to a page or two."
        )
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        place = Position(str(path), line, column)
        diagnostics.error(
            102,
            place,
            f"The file is not UTF-8 (byte 0x{data[error.start]:02x}).",
            "Save it as UTF-8 text.",
        )
        return None
    return read_text(text, str(path), diagnostics, kind)


def read_text(
    text: str, file: str, diagnostics: Diagnostics, kind: Kind = PROTOCOL
) -> Node | None:
    """Read YAML text whose top level is a mapping. On a problem, add a diagnostic and
    return None.
    """
    start = Position(file, 1, 1)
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_BYTES:
        sentence = f"The text is larger than {MAX_BYTES // 1024} KB."
        diagnostics.error(
            103, start, sentence, f"Shorten the {kind.noun} to a page or two."
        )
        return None
    if odd := _NOT_TEXT.search(text):
        before = _LINE_BREAK.split(text[: odd.start()])
        place = Position(file, len(before), len(before[-1]) + 1)
        diagnostics.error(
            102, place, f"The character U+{ord(odd[0]):04X} is not text.", "Remove it."
        )
        return None
    lines = _LINE_BREAK.split(text)
    try:
        document = _Loader(text).get_single_node()
    except _RefusedError as refused:
        place = _position(refused.mark, file) if refused.mark else start
        diagnostics.error(refused.code, place, refused.sentence, refused.remedy)
        return None
    except yaml.YAMLError as error:
        _report_syntax(error, lines, file, diagnostics, kind)
        return None
    except (ValueError, OverflowError):
        # From the pure Python scanner, for an escape such as "\\Uffffffff".
        diagnostics.error(
            104,
            start,
            "This is not valid YAML: an escape is not a character.",
            "Fix the escape.",
        )
        return None
    if document is None or not isinstance(document, yaml.MappingNode):
        place = start if document is None else _position(document.start_mark, file)
        diagnostics.error(
            110,
            place,
            f"A {kind.noun} is {kind.looks}.",
            f"Begin with '{kind.begins}'.",
        )
        return None
    with contextlib.suppress(EnoughFindingsError):
        return _Converter(file, lines, diagnostics).convert(document)
    return None


def _report_syntax(
    error: yaml.YAMLError,
    lines: Sequence[str],
    file: str,
    diagnostics: Diagnostics,
    kind: Kind,
) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if "nesting depth" in str(error):
        # libyaml reads ahead of the composer, so deep nesting may reach libyaml's own
        # limit before ours.
        place = _position(mark, file) if mark else Position(file, 1, 1)
        diagnostics.error(
            108,
            place,
            f"Values are nested more than {MAX_DEPTH} deep.",
            "Flatten the file.",
        )
        return
    if "could not find expected ':'" in str(error):
        # The parser notices a missing colon only in the next line.
        mark = getattr(error, "context_mark", None) or mark
    place = _position(mark, file) if mark else Position(file, 1, 1)
    if "but found another document" in str(error):
        diagnostics.error(
            109,
            place,
            "The file holds more than one YAML document.",
            f"Keep one {kind.noun} per file.",
        )
        return
    problem = (
        getattr(error, "problem", None)
        or getattr(error, "reason", None)
        or "it cannot be parsed"
    )
    remedy = remedy_for(problem, lines, place.line - 1, place.column - 1)
    if remedy.startswith(_ABOVE):
        # The parser notices a wrong indentation only in the next line.
        above = max(n for n in range(place.line - 1) if _with_content([lines[n]]))
        place = Position(file, above + 1, _indent(lines[above]) + 1)
        remedy = remedy.replace(_ABOVE, "This line is", 1)
    diagnostics.error(104, place, f"This is not valid YAML: {problem}.", remedy)


def _position(mark: yaml.Mark, file: str) -> Position:
    return Position(file, mark.line + 1, mark.column + 1)


class _Converter:
    """Turns composed YAML into nodes. An invalid value does not affect the others."""

    def __init__(
        self, file: str, lines: Sequence[str], diagnostics: Diagnostics
    ) -> None:
        self.file, self.lines, self.diagnostics = file, lines, diagnostics

    def convert(self, node: YamlNode) -> Node:
        position = _position(node.start_mark, self.file)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, position)
        if isinstance(node, yaml.SequenceNode):
            return Node([self.convert(child) for child in self._items(node)], position)
        assert isinstance(node, yaml.ScalarNode)
        plain = not node.style  # None, or "" from the C parser
        value = (
            scalar(node.value, position, self.diagnostics)
            if plain
            else self._text(node.value, position)
        )
        return Node(value, position, text_at=self._text_at(node, position))

    def _mapping(self, node: yaml.MappingNode, position: Position) -> Node:
        children: dict[str, Node] = {}
        keys: dict[str, Position] = {}
        for key_node, value_node in self._pairs(node):
            place = _position(key_node.start_mark, self.file)
            if not isinstance(key_node, yaml.ScalarNode):
                self.diagnostics.error(
                    DUPLICATE_KEY,
                    place,
                    "A key must be a plain word.",
                    "Write 'key: value'.",
                )
                continue
            key = self._text(key_node.value, place)
            if key in children:
                sentence = (
                    f"The key '{key}' appears twice (first in line {keys[key].line})."
                )
                self.diagnostics.error(DUPLICATE_KEY, place, sentence, "Keep one.")
                continue
            keys[key] = place
            children[key] = self.convert(value_node)
            if (
                key == "map"
                and isinstance(value_node, yaml.ScalarNode)
                and value_node.style == "|"
            ):
                self._check_rows(value_node.start_mark.line, children[key])
        return Node(children, position, keys)

    def _pairs(self, node: yaml.MappingNode) -> list[tuple[YamlNode, YamlNode]]:
        """Return the keys and values of a mapping. Report (113) and join the halves of
        numbers with a decimal comma: YAML reads ``{value: 0,85}`` as ``{value: 0, 85:
        null}``.
        """
        pairs: list[tuple[YamlNode, YamlNode]] = []
        for key, value in node.value:
            if node.flow_style and pairs and _is_nothing(value):
                whole = pairs[-1][1]
                if _may_be_cut(whole) and _may_be_rest(key):
                    self._join(whole, key, "keys")
                    continue
            pairs.append((key, value))
        return pairs

    def _items(self, node: yaml.SequenceNode) -> list[YamlNode]:
        """Return the entries of a list. Report (113) and join the halves of numbers if
        all of them are shares with a decimal comma, as in ``[0,5, 0,75]``. ``[0,1,
        0,0]`` may be pairs of conditions.
        """
        items: list[YamlNode] = node.value
        if not node.flow_style:
            return items
        begin, end = node.start_mark, node.end_mark
        rows = [*self.lines[begin.line : end.line], self.lines[end.line][: end.column]]
        rows[0] = rows[0][begin.column :]
        if not _SHARES.fullmatch(" ".join(rows)):
            return items
        if {item.value for item in items[1::2]} <= {"0", "1"}:
            return items
        for whole, rest in zip(items[::2], items[1::2], strict=True):
            self._join(whole, rest, "entries")
        return items[::2]

    def _join(self, whole: YamlNode, rest: YamlNode, parts: str) -> None:
        before = _WHOLE.search(whole.value)
        after = re.match(r"\d+", rest.value)
        assert before
        assert after
        written = f"{before[0]},{after[0]}"
        remedy = f"Write {before[0]}.{after[0]}: a comma separates {parts}."
        if len(after[0]) == 3 and int(before[0]):
            remedy = f"Write {before[0]}.{after[0]} or {before[0]}{after[0]}: a comma separates {parts}."
        line, column = whole.start_mark.line + 1, whole.start_mark.column + 1
        place = Position(self.file, line, column + before.start())
        self.diagnostics.error(
            113, place, f"YAML reads {written} as two {parts}.", remedy
        )
        whole.value = f"{whole.value}.{rest.value}"

    def _check_rows(self, header: int, node: Node) -> None:
        """Reject a map of which YAML reads later rows as comments, because its first
        row begins with blanks.
        """
        after = header + 1 + str(node.value).rstrip("\n").count("\n") + 1
        row = self.lines[after].strip() if after < len(self.lines) else ""
        remedy = block_cut_short(self.lines, header + 1)
        if remedy and len(row) > 1 and row.startswith("#") and row.endswith("#"):
            place = Position(self.file, after + 1, 1)
            self.diagnostics.error(
                112,
                place,
                "YAML reads this row as a comment, so the map ends above it.",
                remedy,
            )
            raise EnoughFindingsError

    def _text(self, text: str, position: Position) -> str:
        if odd := _NOT_TEXT.search(text):
            self.diagnostics.error(
                102,
                position,
                f"The character U+{ord(odd[0]):04X} is not text.",
                "Remove it.",
            )
            return _NOT_TEXT.sub("?", text)
        return text

    def _text_at(self, node: yaml.ScalarNode, position: Position) -> Position | None:
        """Return the position of a scalar's text in the file, or None if YAML has
        changed the text.
        """
        line, column = node.start_mark.line, node.start_mark.column
        written: list[str] = node.value.rstrip("\n").split("\n")
        if node.style in ("|", ">"):
            line += 1
            first = next(
                (row for row in range(len(written)) if written[row].strip()), None
            )
            if first is None:
                return None
            # The block is indented by the blanks that the line has in the file, but not
            # in the text.
            column = len(self.lines[line + first]) - len(
                self.lines[line + first].lstrip(" ")
            )
            column -= len(written[first]) - len(written[first].lstrip(" "))
        elif node.style:
            column += 1
        found = self.lines[line : line + len(written)]
        if [
            row[column : column + len(text)]
            for row, text in zip(found, written, strict=False)
        ] != written:
            return None
        return Position(position.file, line + 1, column + 1)


#: Matches a list of shares with decimal commas, in which a blank follows each other
#: comma.
_SHARES = re.compile(r"\[\s*0,\d+(?:,\s+0,\d+)+,?\s*\]")
#: Matches the digits before a decimal comma, at the end of a value.
_WHOLE = re.compile(r"(?:^[-+]|(?<![\w.,]))\d+$")


def _is_plain(node: YamlNode) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.style


def _is_nothing(node: YamlNode) -> bool:
    return _is_plain(node) and node.value == ""


def _may_be_cut(value: YamlNode) -> bool:
    """Return whether a value may be a number, or an expression, that a decimal comma
    ended. The arguments of a function are reported elsewhere.
    """
    if not _is_plain(value) or value.value.count("(") > value.value.count(")"):
        return False
    return bool(_WHOLE.search(value.value))


def _may_be_rest(key: YamlNode) -> bool:
    """Return whether a key without a value may be what follows a decimal comma."""
    if not _is_plain(key) or ")" in key.value:
        return False
    return bool(re.match(r"\d+(?![\w.])", key.value))


def scalar(text: str, position: Position, diagnostics: Diagnostics) -> Scalar:
    """Return a plain scalar as YAML 1.2's core schema reads it. A number that is out of
    range is reported and becomes 0.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    for pattern, convert in (
        (_INTEGER, lambda t: int(t, 0 if t[:2] in ("0o", "0x") else 10)),
        (_FLOAT, float),
    ):
        if pattern.fullmatch(text):
            value: float = convert(text) if len(text) <= 40 else 1e99
            if abs(value) >= 10**MAX_DIGITS:
                diagnostics.error(
                    111,
                    position,
                    f"The number {text[:20]} is out of range.",
                    "Use a smaller number.",
                )
                return 0
            return value
    return text


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it, in file order."""
    yield node
    children = node.value.values() if isinstance(node.value, Mapping) else node.value
    if isinstance(node.value, Mapping | list | tuple):
        for child in children:  # type: ignore[union-attr]
            yield from walk(child)  # type: ignore[arg-type]
