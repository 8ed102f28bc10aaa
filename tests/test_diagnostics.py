"""Findings: how one is written, how many are kept, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from cheesebench.diagnostics import (
    GROUPS,
    MAX_FINDINGS,
    MAX_LISTED,
    MEANINGS,
    Diagnostic,
    Diagnostics,
    EnoughFindingsError,
    Position,
    in_file_order,
    listed,
)
from cheesebench.errors import PluginError


def at(line: int, column: int = 1) -> Position:
    return Position("a.yaml", line, column)


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (
            Diagnostic(at(3, 7), "error", 121, "No such key.", "Delete it."),
            "a.yaml:3:7: error E121: No such key. Delete it.",
        ),
        (
            Diagnostic(at(3, 7), "warning", 301, "Not on the map."),
            "a.yaml:3:7: warning W301: Not on the map.",
        ),
        (
            Diagnostic(at(3, 7), "info", 401, "Two rules."),
            "a.yaml:3:7: info I401: Two rules.",
        ),
        # What the file holds does not reach a terminal as it is.
        (
            Diagnostic(at(1), "error", 121, "No key 'a\x1b[2J\n\u202e'."),
            "a.yaml:1:1: error E121: No key 'a\\x1b[2J\\n\\u202e'.",
        ),
        (
            Diagnostic(at(1), "error", 121, "No key ü."),
            "a.yaml:1:1: error E121: No key ü.",
        ),
        # A word is cut once it is longer than the name of a file can be.
        (
            Diagnostic(at(1), "error", 121, "x" * 255),
            f"a.yaml:1:1: error E121: {'x' * 255}",
        ),
        (
            Diagnostic(at(1), "error", 121, "x" * 256),
            f"a.yaml:1:1: error E121: {'x' * 80}...",
        ),
    ],
)
def test_a_finding_is_one_line(finding: Diagnostic, text: str) -> None:
    assert str(finding) == text


def test_findings_are_kept_once_and_in_order() -> None:
    found = Diagnostics()
    found.info(401, at(9), "note")
    found.error(122, at(5), "one", "Do this.")
    found.warning(301, at(2), "two")
    found.error(122, at(5), "one", "Do this.")
    found.error(122, at(5), "one", "Do that.")
    assert [(one.label, one.position.line, one.remedy) for one in found.found] == [
        ("I401", 9, ""),
        ("E122", 5, "Do this."),
        ("W301", 2, ""),
        ("E122", 5, "Do that."),
    ]
    assert [one.remedy for one in found.errors] == ["Do this.", "Do that."]


def test_too_many_errors_end_with_a_line_that_says_so() -> None:
    found = Diagnostics()
    for line in range(1, MAX_FINDINGS + 1):
        found.error(122, at(line), "A key is missing.")
        found.warning(301, at(line), "Not on the map.")
    with pytest.raises(EnoughFindingsError):
        found.error(122, at(999), "A key is missing.")
    assert len(found.errors) == MAX_FINDINGS + 1
    assert str(found.errors[-1]) == (
        "a.yaml:999:1: error E199: There are more than 100 errors. Fix the ones above first."
    )


@pytest.mark.parametrize("add", ["warning", "info"])
def test_too_many_warnings_and_notes_end_without_a_word(add: str) -> None:
    found = Diagnostics()
    for line in range(1, MAX_FINDINGS + 1):
        (found.warning if line % 2 else found.info)(301, at(line), "Not on the map.")
    before = found.found
    with pytest.raises(EnoughFindingsError):
        getattr(found, add)(301, at(999), "Not on the map.")
    assert found.found == before
    assert len(before) == MAX_FINDINGS


@pytest.mark.parametrize("position", ["a.yaml:1:1", None, 3])
def test_a_family_that_gives_no_position_is_told(position: Any) -> None:
    with pytest.raises(
        PluginError, match=r"diagnostics.warning: the position is "
    ) as raised:
        Diagnostics().warning(301, position, "Not on the map.")
    assert repr(position)[:10] in str(raised.value)


def test_unknown_keys_come_first() -> None:
    findings = [
        Diagnostic(at(2, 5), "error", 122, "missing"),
        Diagnostic(at(2, 3), "warning", 301, "unused"),
        Diagnostic(at(9), "error", 121, "unknown"),
        Diagnostic(Position("a", 99, 1), "error", 122, "another file"),
        Diagnostic(at(4), "error", 121, "unknown"),
    ]
    ordered = [
        (one.position.file, one.position.line, one.position.column)
        for one in in_file_order(findings)
    ]
    assert ordered == [
        ("a.yaml", 4, 1),
        ("a.yaml", 9, 1),
        ("a", 99, 1),
        ("a.yaml", 2, 3),
        ("a.yaml", 2, 5),
    ]


def test_long_lists_are_cut() -> None:
    names = [f"n{number}" for number in range(MAX_LISTED + 2)]
    assert listed([]) == "none"
    assert listed(iter(names[:2])) == "n0, n1"
    assert listed(names[:MAX_LISTED]) == ", ".join(names[:MAX_LISTED])
    assert listed(names) == f"{', '.join(names[:MAX_LISTED])} and 2 more"


def test_each_code_has_one_meaning_and_one_group() -> None:
    severities = {"1": "error", "2": "error", "3": "warning", "4": "info"}
    for code, (severity, meaning) in MEANINGS.items():
        assert severity == severities[str(code)[0]]
        assert meaning.endswith(".")
        assert len([1 for low, high, _ in GROUPS if low <= code <= high]) == 1
    assert list(MEANINGS) == sorted(MEANINGS)
