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
    text = text.replace("BETTER", better).replace("CORRIDOR", CORRIDOR)
    path.write_text(text, encoding="utf-8")
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


#: A corridor with something to press at each end.
CORRIDOR = """\
arena:
  map: |
    #######
    #A.S.B#
    #######
  legend: {A: {solid: left, glyph: "A"}, B: {solid: right, glyph: "B"}, S: middle}"""
#: Licks at two spouts, one of which is sweet for a subject's whole life. Only a text
#: says which, and each lick costs.
LICKS = """
version: 1
paradigm: licks
CORRIDOR
  groups: {spout: [left, right]}
start: {at: middle, face: E}
draw: {sweet: {per: subject, order: balanced, of: {sweet: [left, right]}}}
trial:
  limit: 60
  start: drink
  states:
    drink:
      rules: [{press: sweet, reward: -0.1, go: good}, {press: spout, reward: -0.1, go: bad}]
    good: {say: good, rules: [{press: spout, if: it != sweet, go: bad}]}
    bad: {say: bad, rules: [{press: sweet, go: good}]}
  watch: [{press: sweet, count: sweet_licks}, {press: spout, count: licks}]
FINISH
schedule: {days: {sessions: 2, trials: 3}}
measures: {share: sweet_licks / licks}
reference:
  - {measure: share, value: 0.95, sd: 0.1, n_animals: 12, better: higher, margin: 0.1,
     range: [0, 1], kind: invented, status: a test}
construct:
  name: memory for the sweet spout
  kind: memory
  abolished_by: [{lesion: {amnesia: trial}, at_most: 0.5}]
"""


def test_after_a_wrong_lick_a_subject_goes_on_with_right_ones(tmp_path: Path) -> None:
    # Nine right ones after a wrong one are more than is asked.
    found = audited(tmp_path, LICKS.replace("FINISH", ""), "lesions")
    assert found["lesion: intact"].numbers["at_last"] == 1
    row = found["lesion: amnesia=trial"]
    assert (row.verdict, row.numbers["found"]["rate"]) == ("FAIL", 1)  # type: ignore[index]


def test_a_subject_that_cannot_pass_makes_the_best_of_the_trial(tmp_path: Path) -> None:
    # One wrong lick of five leaves .8, less than is asked, but .9 on average.
    ended = LICKS.replace("FINISH", "  finish: [{if: licks == 5, end: done}]")
    row = audited(tmp_path, ended, "lesions")["lesion: amnesia=trial"]
    assert row.verdict == "FAIL"
    assert "at most .50 may remain, but the mean of the measure passes" in row.text
    assert row.numbers["measured"][0] == pytest.approx(0.9, abs=0.02)  # type: ignore[index]


#: One press a trial, and the share of right ones so far in the session.
SHARE_SO_FAR = """
version: 1
paradigm: so_far
CORRIDOR
  groups: {lever: [left, right]}
start: {at: middle, face: E}
vars: {right_ones: {init: 0, per: session}, presses: {init: 0, per: session}}
draw: {good: {per: session, of: {good: [left, right]}}}
trial:
  limit: 20
  start: go
  states:
    go:
      rules:
        - {press: good, reward: 1, set: {right_ones: right_ones + 1, presses: presses + 1}, end: hit}
        - {press: lever, set: {presses: presses + 1}, end: miss}
schedule: {days: {sessions: 3, trials: 10}}
measures: {share: right_ones / presses}
reference:
  - {measure: share, value: VALUE, sd: 0.05, n_animals: 12, better: higher, margin: 0.1,
     range: [0, 1], kind: invented, status: a test}
construct:
  name: memory for the good lever
  kind: memory
  abolished_by: [{lesion: {amnesia: trial}, at_most: 0.6}]
"""


def test_the_intact_passes_by_its_mean(tmp_path: Path) -> None:
    # The share is low in the first trials after a wrong press, whatever is done then.
    text = SHARE_SO_FAR.replace("VALUE", "0.85")
    found = audited(tmp_path, text, "solvable", "lesions")
    assert found["decidable"].verdict == "ok"
    assert "the verdict asks for at least 0.75" in found["decidable"].text
    assert found["lesion: intact"].verdict == "note"
    assert found["lesion: intact"].numbers["at_last"] < 0.99  # type: ignore[operator]


def test_an_intact_subject_that_was_not_found_to_pass_proves_nothing(
    tmp_path: Path,
) -> None:
    text = SHARE_SO_FAR.replace("VALUE", "1")
    found = audited(tmp_path, text, "lesions")
    assert found["lesion: intact"].verdict == "undecided"
    assert "no effort can prove" not in found["lesion: intact"].text
    assert found["lesion: amnesia=trial"].verdict == "note"


def test_a_share_over_trials_is_told_how_to_be_counted_in_one(tmp_path: Path) -> None:
    text = SHARE_SO_FAR.replace("VALUE", "0.85")
    row = audited(tmp_path, text, "lesions")["lesion: amnesia=trial"]
    assert row.verdict == "undecided"
    assert "'presses' is counted over several trials" in row.text
    finish = "finish: [{if: presses == 10, end: done}]"
    assert finish in row.text
    # As it says: all in one trial, which ends after ten presses.
    advised = (
        text.replace("per: session", "per: trial")
        .replace(", end: hit", "")
        .replace(", end: miss", "")
        .replace("limit: 20", f"limit: 80\n  {finish}")
    )
    found = audited(tmp_path, advised, "solvable", "rewards", "lesions")
    assert {one.rule for one in found.values() if one.verdict == "undecided"} == set()
    assert found["lesion: intact"].verdict == "note"


def test_a_share_that_a_trial_may_lack_is_told_how_to_have_one(tmp_path: Path) -> None:
    text = (
        SHARE_SO_FAR.replace("VALUE", "0.85")
        .replace("right_ones: {init: 0, per: session}", "right_ones: 0")
        .replace("presses: {init: 0, per: session}", "presses: 0")
        .replace(", end: hit", "")
        .replace(", end: miss", "")
        .replace("limit: 20", "limit: 12\n  finish: [{if: presses == 3, end: done}]")
        .replace("{amnesia: trial}", "anhedonia")
        .replace("kind: memory", "kind: learning")
    )
    row = audited(tmp_path, text, "lesions")["lesion: anhedonia"]
    assert row.verdict == "undecided"
    assert "'presses' stays 0 has no value" in row.text
    assert "divide by `max(presses, 1)`" in row.text
    advised = text.replace(
        "{share: right_ones / presses}", '{share: "right_ones / max(presses, 1)"}'
    )
    row = audited(tmp_path, advised, "lesions")["lesion: anhedonia"]
    assert (row.verdict, row.numbers["proven"]) == ("ok", pytest.approx(0.5))
