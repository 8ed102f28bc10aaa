"""Trials that are judged late in a life, or never: an audit plays up to them, and must
not say ok without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cheesebench.interfaces import AuditFinding, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.chances import FEWEST_JUDGED, under
from cheesebench.paradigms.arena.audit.runs import Order, Tally, carry_out
from cheesebench.testing import assert_sound
from tests.paradigms.audit.conftest import SOUND

Plant = Callable[..., ArenaParadigm]

LATE = (
    "schedule: {main: {sessions: 2, trials: 10}}",
    "schedule: {easy: {trials: 12}, main: {trials: 4}}\nestimand: {block: main}",
)
#: Impossible in the judged blocks: a wait longer than a trial.
IMPOSSIBLE = (
    ("draw:\n", "vars: {gap: {init: 1, per: block}}\ndraw:\n"),
    ("  start: cue\n", "  start: [{if: block == easy, go: choice}, cue]\n"),
    ("{after: 3, go: choice}", "{after: gap, go: choice}"),
    (LATE[0], LATE[1].replace("{trials: 4}", "{trials: 4, set: {gap: 50}}")),
)
#: No trial satisfies both.
NEVER = ("success:", "estimand: {where: steps < 0}\nsuccess:")


def found(paradigm: ArenaParadigm, settings: AuditSettings) -> dict[str, AuditFinding]:
    wanted = replace(settings, parts=("chance", "blind", "solvable", "rewards"))
    return {finding.rule: finding for finding in paradigm.audit([], wanted)}


def test_lives_are_lived_until_trials_are_judged(plant: Plant) -> None:
    tally = carry_out(plant(LATE), Order("uniform", 32, 0))
    assert tally.rate().trials == 32
    assert {judged for _, judged in tally.lives} == {4}
    assert tally.outcomes.total() == 8 * 16


def test_what_is_solvable_early_and_impossible_late_fails(
    plant: Plant, settings: AuditSettings
) -> None:
    findings = found(plant(*IMPOSSIBLE), settings)
    assert findings["solvable"].verdict == "FAIL"
    assert findings["solvable"].text.startswith(".00 of ")
    assert found(plant(LATE), settings)["solvable"].verdict == "ok"


def test_a_success_that_never_holds_says_how_trials_end(
    plant: Plant, settings: AuditSettings
) -> None:
    findings = found(
        plant(("success: last == correct", "success: last == correct and trial > 20")),
        settings,
    )
    assert findings["solvable"].text.endswith(
        "; success never held; the outcome was 'correct' in 24 of 24"
    )


def test_a_lever_that_pays_late_is_told_how_to_wait(
    plant: Plant, settings: AuditSettings
) -> None:
    """The solver presses at once: no state says that it is too early."""
    lever = (
        ("#LL.B.RR#", "#LLPB.RR#"),
        ("B: box}", "B: box, P: {solid: lever}}"),
        ("{enter: side, reward: 1, end: correct}", "{press: lever, if: steps > 9, reward: 1, end: correct}"),
        ("{enter: arm, end: error}", "{press: lever, end: error}"),
        ("checks: [{at: choice, hidden: side, chance: 0.5}]", ""),
    )  # fmt: skip
    assert found(plant(*lever), settings)["solvable"].text.endswith(
        "put the time that is too early into a state of its own (`{after: gap, go: ready}`)"
    )


def test_an_impossible_paradigm_is_not_sound(tmp_path: Path) -> None:
    text = SOUND
    for old, new in IMPOSSIBLE:
        text = text.replace(old, new)
    path = tmp_path / "impossible.protocol.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=r"solvable: \.00 of"):
        assert_sound(path, parts=["solvable"])


def test_where_no_trial_is_judged_nothing_is_ok(
    plant: Plant, settings: AuditSettings
) -> None:
    findings = found(plant(NEVER), settings)
    assert findings["solvable"].verdict == "FAIL"
    assert not [
        finding.rule for finding in findings.values() if finding.verdict == "ok"
    ]
    assert "not judged" in findings["chance: uniform"].text
    assert "at least 100 are needed" in findings["blind ceiling"].text
    assert not any("trials: 0" in finding.text for finding in findings.values())


def test_a_stated_chance_is_compared_with_no_trial(
    plant: Plant, settings: AuditSettings
) -> None:
    stated = ("checks:", "chance: {value: 0.1, trials: 2000, how: made up}\nchecks:")
    assert found(plant(NEVER, stated), settings)["chance: as stated"].verdict == "note"


@pytest.mark.parametrize(
    ("passed", "trials", "verdict"),
    [
        (0, 0, "note"),
        (4, 16, "note"),
        (16, 16, "FAIL"),
        (0, 64, "ok"),
        (FEWEST_JUDGED // 2, FEWEST_JUDGED, "ok"),
    ],
)
def test_few_trials_are_no_ground_for_ok(
    passed: int, trials: int, verdict: str
) -> None:
    found, text = under([Tally("somebody", lives=[(passed, trials)])], 0.5)
    assert found == verdict
    assert (f"at least {FEWEST_JUDGED} are needed" in text) == (verdict == "note")


@pytest.mark.parametrize(
    ("passed", "verdict"), [(30, "ok"), (60, "undecided"), (100, "FAIL")]
)
def test_a_best_rate_above_the_ceiling_is_not_ok(passed: int, verdict: str) -> None:
    """Four subjects of 30 trials: an interval so wide says nothing."""
    lives = [(passed // 2, 30), (passed // 2, 30), (0, 30), (0, 30)]
    if verdict == "FAIL":
        lives = [(25, 30)] * 4
    found, text = under([Tally("somebody", lives=lives)], 0.2)
    assert found == verdict
    assert ("--trials" in text) == (verdict == "undecided")
