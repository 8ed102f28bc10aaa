"""A verdict about a measure is audited without a `success`, by what it asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.interfaces import AuditFinding, AuditPart
from cheesebench.testing import audit_protocol

#: Spontaneous alternation. Nothing is right or wrong, and nothing ends a trial early.
ALTERNATION = """
version: 1
paradigm: alternation
arena: {radial: {arms: 3, length: 2}}
vars: {one: none, two: none}
start: {at: hub, face: random}
trial:
  limit: 120
  start: explore
  states: {explore: {}}
  watch:
    - {enter: arm, count: visits}
    - {enter: arm, if: it != one and it != two and two != none, count: triads}
    - {enter: arm, set: {two: one, one: it}}
schedule: {day: {sessions: 1, trials: 1}}
measures: {alternation: triads / (visits - 2)}
reference:
  - {measure: alternation, value: 0.66, sd: 0.1, n_animals: 12, better: BETTER, margin: 0.12,
     range: [0, 1], kind: invented, status: a test}
"""
CONSTRUCT = """
construct:
  name: memory for arms
  kind: memory
  abolished_by: [{lesion: memoryless, at_most: 0.5}]
"""


def audited(
    folder: Path, text: str, *parts: AuditPart, better: str = "higher"
) -> dict[str, AuditFinding]:
    path = folder / "alternation.protocol.yaml"
    path.write_text(text.replace("BETTER", better), encoding="utf-8")
    report = audit_protocol(path, trials=40, parts=parts, effort=0.02)
    return {one.rule: one for one in report.findings}


def test_a_blind_subject_that_reaches_the_mean_is_found(tmp_path: Path) -> None:
    found = audited(tmp_path, ALTERNATION, "chance", "blind", "solvable")
    assert "its alternation is at least 0.54" in found["success"].text
    assert "mean alternation" in found["chance: uniform"].text
    assert "chance: as stated" not in found  # It would be a rate of no report.
    assert found["blind ceiling"].verdict == "note"
    # Circling alternates without any memory.
    assert found["blind, below the rodent"].verdict == "FAIL"
    assert "sees nothing passes" in found["blind, below the rodent"].text
    assert found["solvable"].verdict == "ok"
    assert "every trial lasts until its limit" in found["solvable"].text


@pytest.mark.parametrize(
    ("better", "said"),
    [("lower", "at most 0.78"), ("alike", "at least 0.54 and at most 0.78")],
)
def test_what_is_asked_for(tmp_path: Path, better: str, said: str) -> None:
    found = audited(tmp_path, ALTERNATION, "limit", better=better)
    assert said in found["success"].text


def test_a_construct_needs_no_success(tmp_path: Path) -> None:
    found = audited(tmp_path, ALTERNATION + CONSTRUCT, "lesions")
    row = found["lesion: memoryless"]
    assert "at most .50 may remain" in row.text
    assert "the verdict asks for at least 0.54" in row.text


def test_without_a_verdict_nothing_is_judged(tmp_path: Path) -> None:
    text = ALTERNATION.replace("better: BETTER, margin: 0.12,", "").replace(
        "range: [0, 1], ", ""
    )
    assert "chance: uniform" not in audited(tmp_path, text, "chance")
