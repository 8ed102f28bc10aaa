"""Protocols in a few lines: everything else comes from a corridor with a goal at its
end.

``«`` in a text marks the position of an expected finding, and is not part of the text.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.diagnostics import Diagnostic
from cheesebench.protocol import SUFFIX, Specification
from tests.arenas import examine_text
from tests.protocol.short import RIGHT

MARK = "«"
CORRIDOR = {
    "version": "version: 1",
    "paradigm": "paradigm: corridor",
    "arena": 'arena: {map: "S..Z", legend: {S: box, Z: goal}}',
    "start": "start: {at: box, face: E}",
    "trial": "trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}",
    "schedule": "schedule: {one: {}}",
}
#: One line per finding, for people and for tools.
LINE = re.compile(r"[^\n]+:\d+:\d+: (error E|warning W|info I)[1-4]\d\d: [^\n]+[.?]")

Examination = tuple[Specification | None, list[Diagnostic]]


def _complete(text: str) -> str:
    """Append the required keys that this text lacks."""
    text = textwrap.dedent(text).strip("\n")
    present = {line.split(":")[0].strip(MARK) for line in text.splitlines()}
    return (
        "\n".join(
            [text, *(line for key, line in CORRIDOR.items() if key not in present)]
        ).strip("\n")
        + "\n"
    )


def _examine(text: str) -> Examination:
    """Return the loader's findings on a text; every finding must have the format and a
    position inside the text.
    """
    specification, found = examine_text(text, "x.yaml")
    assert (specification is None) == any(d.severity == "error" for d in found)
    lines = re.split("\r\n|[\r\n\x85\u2028\u2029]", text)
    for diagnostic in found:
        assert LINE.fullmatch(str(diagnostic)), str(diagnostic)
        assert len(str(diagnostic)) < 3000
        assert diagnostic.remedy or diagnostic.severity == "info", str(diagnostic)
        line, column = diagnostic.position.line, diagnostic.position.column
        assert 1 <= line <= len(lines) + 1, str(diagnostic)
        assert 1 <= column <= (len(lines[line - 1]) if line <= len(lines) else 0) + 1, (
            str(diagnostic)
        )
    return specification, found


@pytest.fixture
def complete() -> Callable[[str], str]:
    return _complete


@pytest.fixture
def examine() -> Callable[[str], Examination]:
    """Examine a text without any change."""
    return _examine


@pytest.fixture
def findings() -> Callable[[str], list[str]]:
    """Return ``E201 3:14`` for every finding in a text that is completed and may have
    marks.
    """

    def findings(text: str) -> list[str]:
        return [
            _code_and_place(d) for d in _examine(_complete(text).replace(MARK, ""))[1]
        ]

    return findings


@pytest.fixture
def marked() -> Callable[[str], str]:
    """Return ``line:column`` of the mark in a text as ``findings`` sees it."""

    def marked(text: str) -> str:
        before = _complete(text).split(MARK)[0]
        return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"

    return marked


@pytest.fixture
def check_error(
    findings: Callable[[str], list[str]], marked: Callable[[str], str]
) -> Callable[[str, str], None]:
    """Check that a text has one error: this code at its mark."""

    def check_error(code: str, text: str) -> None:
        errors = [found for found in findings(text) if found.startswith("E")]
        assert errors == [f"{code} {marked(text)}"]

    return check_error


@pytest.fixture
def check_warning(
    findings: Callable[[str], list[str]], marked: Callable[[str], str]
) -> Callable[[str, str], None]:
    """Check that a text has no error, and only the warning with this code at its mark,
    apart from those which come with it.
    """

    def check_warning(code: str, text: str) -> None:
        found = [one for one in findings(text) if not one.startswith("I")]
        assert f"{code} {marked(text)}" in found
        beside = {
            "W303": {"W308"},
            "W310": {"W311"},
            "W307": {"W306"},
            "W314": {"W311"},
            "W331": {"W305", "W330"},
            "W335": {"W305"},
        }.get(code, set())
        assert {one.split()[0] for one in found} <= {code} | beside

    return check_warning


@pytest.fixture
def check_mistake() -> Callable[[str, str, str], None]:
    """Put something wrong in the place of a part of the protocol without a mistake, and
    check that there is one error, in which ``said`` occurs.
    """

    def check_mistake(right: str, wrong: str, said: str) -> None:
        assert right in RIGHT
        specification, found = _examine(RIGHT.replace(right, wrong, 1))
        assert specification is None
        (error,) = [str(one) for one in found if one.severity != "info"]
        assert said in error

    return check_mistake


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a protocol (completed) into the folder of the test and return its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / f"{name}{SUFFIX}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            text if re.search("^extends: (?!null)", text, re.M) else _complete(text),
            encoding="utf-8",
        )
        return path

    return write


def _code_and_place(diagnostic: Diagnostic) -> str:
    code = f"{diagnostic.severity[0].upper()}{diagnostic.code}"
    return f"{code} {diagnostic.position.line}:{diagnostic.position.column}"
