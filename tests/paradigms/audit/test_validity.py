"""Whole audits of a small task and of faulty ones: each finding as it is told."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.interfaces import AuditFinding, AuditSettings, Scene, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import audit
from cheesebench.paradigms.arena.audit.runs import Rate, Tally
from cheesebench.paradigms.arena.audit.search import Ending, Solutions, Temptation
from cheesebench.paradigms.arena.audit.validity import (
    FOLDS,
    PREDICTORS,
    TOLERANCE,
    Column,
    Sample,
    _agreeing,
    _best_predictor,
    _column,
    _finite,
    _forced,
    _hits,
    _how_trials_end,
    _majority,
    _seen,
    _tempting,
    audit_cues,
    audit_draws,
    audit_leaks,
    audit_rewards,
    audit_same_event,
    audit_solvable,
    best_guess,
    described,
    is_foreseeable,
    is_unbalanced,
    looks,
    prior,
    readable,
    visible_cues,
)
from cheesebench.plugin_manager import installed_plugins
from tests.arenas import examine, examine_text
from tests.paradigms.audit.conftest import SOUND
from tests.paradigms.audit.test_lesions import CONSTRUCT, EGG

Plant = Callable[..., ArenaParadigm]
Changes = tuple[tuple[str, str], ...]
#: Nothing is right here: the side hardly changes, failing pays, two cues are dark, and
#: the time is short.
FAULTY: Changes = (
    ("#LL.B.RR#", "#LL+B.RR#"),
    ("legend: {", 'legend: {+: {door: gate, glyph: "."}, '),
    ("  groups:", '  landmarks: {W: "1", E: "."}\n  groups:'),
    (
        "side: {of: {side: [left, right]}}",
        "side: {of: {side: [left, left, right]}}\n"
        "  turn: {per: subject, order: cycle, of: {turn: [1, 2, 3]}}",
    ),
    ("limit: 40", "limit: 9"),
    ("{enter: arm, end: error}", "{enter: arm, reward: 2, end: error}"),
    ("    choice:\n", '    choice:\n      close: [gate]\n      show: {side: "."}\n'),
    ("chance: 0.5", "chance: 0.2"),
    ("success:", "chance: {value: 0.9, trials: 2000, how: made up}\nsuccess:"),
)
#: Dawdling pays, by a step, and luck decides.
TEMPTING: Changes = (
    ("    choice:\n", "    choice:\n      each: {reward: 0.1}\n"),
    ("{enter: side, reward", "{enter: side, p: 0.8, reward"),
    ("== correct", "== correct and steps < 20"),
)
#: Only the second block is judged, and the first one is long.
LATE: Changes = (
    (
        "schedule: {main: {sessions: 2, trials: 10}}",
        "schedule: {main: {sessions: 2, trials: 10}, late: {sessions: 2, trials: 3}}\n"
        "estimand: {block: late}",
    ),
    ("  side: {of:", "  side: {order: shuffle, copies: 2, of:"),
)
#: The verdict is about a measure, of which those who fail have half.
MEASURED: Changes = (
    CONSTRUCT,
    (
        "reference: [{measure: success, value: 0.9,",
        "measures: {much: 20 + (last == correct) * 20}\n"
        "reference: [{measure: much, value: 38, better: higher, margin: 2,"
        " range: [0, 40],",
    ),
)
TASKS: dict[str, Changes] = {
    "sound": (CONSTRUCT,),
    "faulty": FAULTY,
    "tempting": TEMPTING,
    "measured": MEASURED,
    "late": LATE,
    "egg": (*EGG, ("WHEN", "last == timeout")),
}
FOUND: dict[str, list[str]] = {
    "sound": [
        "chance: uniform: note: .27 [.17, .38] of 64 trials",
        "chance: as stated: note: no chance is stated; write chance: {value: 0.2656, trials: 64, how: ...}",
        "chance: event-random: note: .59 [.42, .74] of 32 trials",
        "blind ceiling: note: best of 109 policies: replay, else bump 45 .53 [.38, .68]; ceiling .50 (the chance "
        "of 'side' in `checks`); not judged: after 64 judged trials the rate may still be above the limit; at least 100 "
        "are needed (raise --trials)",
        "blind, below the rodent: ok: replay, else bump 45 .53 [.38, .68]; the rodent .90 less the margin is .80",
        "step limit: note: 20 steps: uniform .16; 40 steps: uniform .28; 80 steps: uniform .31",
        "solvable: ok: 1.00 of 16 trials solved, 1.00 within half of the limit",
        "decidable: ok: a subject that knows the rules but not the draws succeeds in 1.00 of the trials, and in "
        "1.00 [.82, 1.00] of the last third of a life",
        "reward and success: ok: failing never pays more; successes earn 1 to 1, failures at most 0",
        "reward over a life: ok: a subject that passes earns 1 a trial; among policies that fail, event-random "
        "earns most, 0.594 (both over the first 4 judged trials of a life)",
        "same event: note: no judged reference says in 'counts' what was counted in the animals",
        "draw: side: ok: 2 values per trial; commonest left (.55); longest run 8; best guess: what usually comes "
        "next (.55)",
        "leak: side at choice, ascii_2d: ok: guessed right in .53 [.41, .66] from the number of '↓'; chance .50",
        "states: ok: every state was entered",
        "shown, ascii_2d: note: 'side' at 'cue': guessed right in 1.00 from the whole picture",
        "cues, ascii_2d: ok: all 2 cues are visible",
        "construct: note: working memory",
        "lesion: intact: note: found 1.00 [.98, 1.00] in 160 trials; in the last third of a life 1.00; by session "
        "1.00 1.00",
        "lesion: amnesia=choice: ok: found .50 [.38, .62] in 60 trials, proven at most .50; at most .60 may "
        "remain; by session .60 .40",
        "lesion: anhedonia: ok: found 1.00 [.98, 1.00] in 160 trials; at least .95 must remain, or .99 in "
        "the last third of a life; by session 1.00 1.00",
        "lesion: blind: note: found .50 [.38, .62] in 60 trials; by session .60 .40",
        "lesion: pose-only: note: found .51 [.40, .62] in 80 trials; by session .53 .50",
        "lesion: amnesia=trial: note: found 1.00 [.95, 1.00] in 80 trials; by session 1.00 1.00",
        "lesion: memoryless: note: found .00 [.00, .046] in 80 trials, proven at most .50; by session .00 .00",
        "little memory: note: subjects with little memory were not searched (minutes): --part memory. Reports say "
        "'memory not searched' without it",
    ],
    "faulty": [
        "chance: uniform: note: .031 [.0086, .11] of 64 trials",
        "chance: as stated: FAIL: stated .90 of 2000 trials, measured .031 [.0086, .11]",
        "chance: event-random: note: .44 [.23, .67] of 32 trials",
        "blind ceiling: note: best of 109 policies: win-stay string, else bump 45 .12 [.053, .27]; ceiling .25 "
        "(the default ceiling); not judged: after 64 judged trials the rate may still be above the limit; at least 100 "
        "are needed (raise --trials)",
        "blind, below the rodent: ok: win-stay string, else bump 45 .12 [.053, .27]; the rodent .90 less the "
        "margin is .80",
        "step limit: note: 4 steps: uniform .00; 9 steps: uniform .031; 18 steps: uniform .062",
        "solvable: FAIL: .38 of 16 trials solved, .31 within half of the limit (waiting for the protocol's clocks "
        "not counted); not solved: seed 5000000, subject 0, trial 2",
        "reward and success: FAIL: uniform earns 2 in a failed trial; the best success earns 1",
        "same event: note: no judged reference says in 'counts' what was counted in the animals",
        "draw: side: ok: 2 values per trial; commonest left (.69); longest run 8; best guess: the most frequent so "
        "far (.62)",
        "draw: turn: note: 3 values per subject; commonest 1 (1.00), UNBALANCED (fair: .33)",
        "leak: side at choice, ascii_2d: FAIL: guessed right in .66 [.54, .76] from the whole picture; chance .20",
        "states: ok: every state was entered",
        "shown, ascii_2d: note: 'side' at 'cue': guessed right in 1.00 from the whole picture",
        "cues, ascii_2d: FAIL: cues that do not change the picture: gate closed at 'choice', '.' on right "
        "at 'choice', '.' on left at 'choice'. If a subject hides a cue by standing there, put the cue "
        "on a solid, or on the square beside it",
        "construct: note: not validated: the protocol names no `construct`",
    ],
    "tempting": [
        "chance: uniform: note: .11 [.045, .24] of 64 trials",
        "chance: as stated: note: no chance is stated; write chance: {value: 0.1094, trials: 64, how: ...}",
        "chance: event-random: note: .50 [.34, .66] of 32 trials",
        "blind ceiling: note: best of 109 policies: cycle FFFLF .39 [.25, .55]; ceiling .50 (the chance of 'side' "
        "in `checks`); not judged: after 64 judged trials the rate may still be above the limit; at least 100 are needed "
        "(raise --trials)",
        "blind, below the rodent: ok: cycle FFFLF .39 [.25, .55]; the rodent .90 less the margin is .80",
        "step limit: note: 20 steps: uniform .094; 40 steps: uniform .16; 80 steps: uniform .062",
        "solvable: FAIL: .81 of 16 trials solved, .81 within half of the limit; not solved: seed 5000000, subject "
        "4, trial 1",
        "reward and success: FAIL: seed 9000000, subject 2, trial 1: failing earns 4.5 (wait, stand before left, "
        "stand before right, stand before left, stand before right, stand before left ...; found by a search for "
        "reward), succeeding 2.1",
        "same event: note: no judged reference says in 'counts' what was counted in the animals",
        "draw: side: ok: 2 values per trial; commonest left (.55); longest run 8; best guess: what usually comes "
        "next (.55)",
        "leak: side at choice, ascii_2d: ok: guessed right in .53 [.41, .66] from the number of '↓'; chance .50",
        "states: ok: every state was entered",
        "shown, ascii_2d: note: 'side' at 'cue': guessed right in 1.00 from the whole picture",
        "cues, ascii_2d: ok: all 2 cues are visible",
        "construct: note: not validated: the protocol names no `construct`",
    ],
    "measured": [
        "chance: uniform: note: .27 [.17, .38] of 64 trials; mean much 25.3 [23.9, 26.8], the verdict asks for at "
        "least 36",
        "chance: as stated: note: no chance is stated; write chance: {value: 0.2656, trials: 64, how: ...}",
        "chance: event-random: note: .59 [.42, .74] of 32 trials; mean much 31.9 [30.1, 33.7], the verdict asks "
        "for at least 36",
        "blind ceiling: note: best of 109 policies: replay, else bump 45 .53 [.38, .68]; ceiling .50 (the chance "
        "of 'side' in `checks`); not judged: after 64 judged trials the rate may still be above the limit; at least 100 "
        "are needed (raise --trials)",
        "blind, below the rodent: ok: mean much, with 99 % intervals: replay, else bump 45 30.6 [28.3, 33], "
        "bump 45 L 28.8 [25.8, 31.7], "
        "along the wall 45 R 28.8 [25.8, 31.7], uniform 24.7 [20.9, 28.4], cycle S 20 [20, 20]; the verdict asks for at least 36",
        "step limit: note: 20 steps: uniform .16; 40 steps: uniform .28; 80 steps: uniform .31",
        "solvable: ok: 1.00 of 16 trials solved, 1.00 within half of the limit",
        "decidable: ok: a subject that knows the rules but not the draws succeeds in 1.00 of the trials, and in "
        "1.00 [.82, 1.00] of the last third of a life",
        "reward and success: ok: failing never pays more; successes earn 1 to 1, failures at most 0",
        "reward over a life: ok: a subject that passes earns 1 a trial; among policies that fail, event-random "
        "earns most, 0.594 (both over the first 4 judged trials of a life)",
        "same event: note: no judged reference says in 'counts' what was counted in the animals",
        "draw: side: ok: 2 values per trial; commonest left (.55); longest run 8; best guess: what usually comes "
        "next (.55)",
        "leak: side at choice, ascii_2d: ok: guessed right in .53 [.41, .66] from the number of '↓'; chance .50",
        "states: ok: every state was entered",
        "shown, ascii_2d: note: 'side' at 'cue': guessed right in 1.00 from the whole picture",
        "cues, ascii_2d: ok: all 2 cues are visible",
        "construct: note: working memory",
        "lesion: intact: note: found 1.00 [.98, 1.00] in 160 trials; in the last third of a life 1.00; the measure"
        " is 40 [40, 40], the verdict asks for at least 36; by session 1.00 1.00",
        "lesion: amnesia=choice: ok: found .50 [.38, .62] in 60 trials, proven at most .50; at most .60 may "
        "remain; the measure is 30 [28.9, 31.1], the verdict asks for at least 36; by session .60 .40",
        "lesion: anhedonia: ok: found 1.00 [.98, 1.00] in 160 trials; at least .95 must remain, or .99 in "
        "the last third of a life; the measure is 40 [40, 40], the verdict asks for at least 36; by session 1.00 1.00",
        "lesion: blind: note: found .50 [.38, .62] in 60 trials; the measure is 30 [28.9, 31.1], the verdict asks "
        "for at least 36; by session .60 .40",
        "lesion: pose-only: note: found .51 [.40, .62] in 80 trials; the measure is 30.2 [29.3, 31.2], the verdict"
        " asks for at least 36; by session .53 .50",
        "lesion: amnesia=trial: note: found 1.00 [.95, 1.00] in 80 trials; the measure is 40 [40, 40], the verdict"
        " asks for at least 36; by session 1.00 1.00",
        "lesion: memoryless: note: found .00 [.00, .046] in 80 trials, proven at most .50; the measure is 20 [20, "
        "20], the verdict asks for at least 36; by session .00 .00",
        "little memory: note: subjects with little memory were not searched (minutes): --part memory. Reports say "
        "'memory not searched' without it",
    ],
    "late": [
        "chance: uniform: note: .26 [.17, .37] of 96 trials",
        "chance: as stated: note: no chance is stated; write chance: {value: 0.2604, trials: 96, how: ...}",
        "chance: event-random: note: .44 [.28, .61] of 32 trials",
        "blind ceiling: note: best of 109 policies: cycle FLLLSFFLLFRLFFFFSFFLRF .52 [.39, .65]; ceiling .50 (the "
        "chance of 'side' in `checks`); not judged: after 96 judged trials the rate may still be above the limit; at least 100 "
        "are needed (raise --trials)",
        "blind, below the rodent: ok: cycle FLLLSFFLLFRLFFFFSFFLRF .52 [.39, .65]; the rodent .90 less the margin "
        "is .80",
        "step limit: note: 20 steps: uniform .12; 40 steps: uniform .25; 80 steps: uniform .53",
        "solvable: ok: 1.00 of 16 trials solved, 1.00 within half of the limit",
        "decidable: ok: a subject that knows the rules but not the draws succeeds in 1.00 of the trials, and in "
        "1.00 [.51, 1.00] of the last third of a life",
        "reward and success: ok: failing never pays more; successes earn 1 to 1, failures at most 0",
        "reward over a life: ok: a subject that passes earns 1 a trial; among policies that fail, bump 45 "
        "randomly, jitter 0.2 earns most, 0.534 (both over the first 2 judged trials of a life)",
        "same event: note: no judged reference says in 'counts' what was counted in the animals",
        "draw: side: ok: 2 values per trial; commonest right (.50); longest run 3; best guess: the least frequent so"
        " far (.71)",
        "leak: side at choice, ascii_2d: ok: guessed right in .55 [.45, .63] from the number of '↗'; chance .50",
        "states: ok: every state was entered",
        "shown, ascii_2d: note: 'side' at 'cue': guessed right in 1.00 from the whole picture",
        "cues, ascii_2d: ok: all 2 cues are visible",
        "construct: note: not validated: the protocol names no `construct`",
    ],
    "egg": [
        "chance: uniform: note: .31 [.21, .43] of 64 trials",
        "chance: as stated: note: no chance is stated; write chance: {value: 0.3125, trials: 64, how: ...}",
        "chance: event-random: note: .56 [.39, .72] of 32 trials",
        "blind ceiling: note: best of 109 policies: replay, else bump 135 .47 [.28, .67]; ceiling .50 (the chance "
        "of 'side' in `checks`); not judged: after 64 judged trials the rate may still be above the limit; at least 100 "
        "are needed (raise --trials)",
        "blind, below the rodent: ok: replay, else bump 135 .47 [.28, .67]; the rodent .90 less the margin is .80",
        "step limit: note: 20 steps: uniform .12; 40 steps: uniform .31; 80 steps: uniform .44",
        "solvable: ok: 1.00 of 16 trials solved, 1.00 within half of the limit",
        "decidable: ok: a subject that knows the rules but not the draws succeeds in .98 of the trials, and in "
        "1.00 [.82, 1.00] of the last third of a life",
        "reward and success: ok: failing never pays more; successes earn 1 to 1, failures at most 0",
        "reward over a life: ok: a subject that passes earns 0.833 a trial; among policies that fail, bump 45 L "
        "earns most, 0.562 (both over the first 2 judged trials of a life)",
        "same event: note: no judged reference says in 'counts' what was counted in the animals",
        "draw: side: ok: 2 values per subject; commonest right (.50)",
        "leak: side at choice, ascii_2d: ok: guessed right in .40 [.27, .56] from the whole picture; chance .50",
        "states: ok: every state was entered",
        "shown, ascii_2d: note: no draw can be guessed anywhere",
        "cues, ascii_2d: ok: all 2 cues are visible",
        "goal visible: note: a rewarded place looks like no other square, so the map shows the goal",
        "construct: note: working memory",
        "lesion: intact: note: found .98 [.95, .99] in 160 trials; in the last third of a life 1.00; by session "
        ".96 1.00",
        "lesion: anhedonia: FAIL: found .95 [.90, .97] in 160 trials, after 1 x 'told'; at most .60 may remain; by"
        " session .90 1.00. How: the subject sees glyph:* ('anhedonia+hide=glyph:*' leaves .55): let the construct name that"
        " lesion, if this is part of what the subject must lack, or make it look alike in all trials",
        "lesion: blind: note: found .52 [.39, .64] in 60 trials; by session .53 .50",
        "lesion: pose-only: note: found .98 [.94, 1.00] in 120 trials; by session .97 1.00",
        "lesion: amnesia=trial: note: found .47 [.29, .66] in 60 trials; by session .50 .43",
        "lesion: memoryless: note: found .00 [.00, .046] in 80 trials; by session .00 .00",
        "little memory: note: subjects with little memory were not searched (minutes): --part memory. Reports say "
        "'memory not searched' without it",
    ],
}


def film(paradigm: ArenaParadigm) -> list[str]:
    view = installed_plugins().view("ascii_2d")
    settings = AuditSettings(trials=60, effort=0.001)
    findings = audit(paradigm, [view], settings)
    return [f"{one.rule}: {one.verdict}: {one.text}" for one in findings]


@pytest.mark.parametrize("name", TASKS)
def test_the_findings_of_an_audit_are_written_down(plant: Plant, name: str) -> None:
    """A change of the audit that is meant changes these lines."""
    assert film(plant(*TASKS[name])) == FOUND[name]


# -- numbers of draws and guesses, by hand


def column(share: Rate, predicted: Rate | None = None, values: int = 2) -> Column:
    return Column(
        name="side",
        per="trial",
        order="random",
        is_answer=True,
        values=values,
        commonest="left",
        share=share,
        longest_run=3,
        best_predictor="the same again",
        predicted=predicted,
    )


def share_of(value: float, low: float) -> Rate:
    return Rate(round(value * 1000), 1000, low, 1.0)


@pytest.mark.parametrize(
    ("value", "low", "values", "unbalanced"),
    [
        (0.8, 0.7, 2, True),
        (0.8, 0.5, 2, False),  # within chance
        (0.5 + TOLERANCE, 0.51, 2, False),  # too little to matter
        (0.501 + TOLERANCE, 0.501, 2, True),
        (0.8, 0.45, 2, False),
        (0.8, 0.3, 4, True),
    ],
)
def test_a_value_that_is_much_more_common_than_others_is_unbalanced(
    value: float, low: float, values: int, unbalanced: bool
) -> None:
    assert is_unbalanced(column(share_of(value, low), values=values)) == unbalanced


@pytest.mark.parametrize(
    ("share", "value", "low", "foreseen"),
    [
        (0.5, 0.9, 0.8, True),
        (0.5, 0.9, 0.5, False),
        (0.5, 0.5 + TOLERANCE, 0.51, False),
        (0.7, 0.9, 0.69, False),  # always guessing the most common value does as well
        (0.7, 0.9, 0.71, True),
        (0.3, 0.9, 0.45, False),  # of two values one is guessed right half of the time
    ],
)
def test_what_earlier_trials_tell_is_more_than_the_most_common_value(
    share: float, value: float, low: float, foreseen: bool
) -> None:
    found = column(share_of(share, 0.0), share_of(value, low))
    assert is_foreseeable(found) == foreseen
    assert not is_foreseeable(column(share_of(share, 0.0)))


@pytest.mark.parametrize(
    ("past", "guesses"),
    [
        ("aab", ["b", "c", "a", "c", "b", "a", "a"]),
        ("abab", ["b", "c", "a", "c", "a", "a", "b"]),
        ("c", ["c", "a", "c", "a", "c", "c", "c"]),
        ("bba", ["a", "b", "b", "c", "a", "b", "b"]),
        ("ccb", ["b", "c", "c", "a", "b", "c", "c"]),
    ],
)
def test_guesses_from_the_past(past: str, guesses: list[str]) -> None:
    names = list(PREDICTORS)[:7]
    assert names[5:] == ["the value 2 trials ago", "the value 3 trials ago"]
    assert [PREDICTORS[name](past, "abc") for name in names] == guesses


@pytest.mark.parametrize(
    ("series", "name", "passed"),
    [
        (["aaaaaaaa", "bbbbbbbb"], "the same again", 14),
        (["abababab", "babababa"], "the other one", 14),
        (["abcabcabc", "bcabcabca"], "the other one", 16),
        (["aabaabaab", "abaabaaba"], "the value 3 trials ago", 13),
    ],
)
def test_the_best_guess_from_the_past_is_named(
    series: list[str], name: str, passed: int
) -> None:
    possible = sorted(set("".join(series)))
    found, rate = _best_predictor(series, possible)
    assert rate is not None
    trials = sum(len(life) - 1 for life in series)
    assert (found, rate.passed, rate.trials) == (name, passed, trials)
    assert _best_predictor(["a", "b"], "ab") == ("", None)


def test_what_is_said_of_a_column() -> None:
    series: list[list[Hashable]] = [list("aabb"), list("abbb")]
    found = _column("side", "trial", "random", True, ["a", "b"], 2, series)
    assert (found.commonest, found.share.passed, found.share.trials) == ("b", 5, 8)
    assert (found.longest_run, found.values) == (3, 2)
    assert found.best_predictor == "the same again"
    assert found.predicted is not None
    once = _column("side", "subject", "random", True, ["a", "b"], 2, series)
    assert (once.best_predictor, once.predicted) == ("", None)
    only = _column("side", "trial", "random", True, ["a"], 1, [list("aa")])
    assert (only.best_predictor, only.predicted) == ("", None)
    picks: list[list[Hashable]] = [[frozenset("ab"), frozenset("bc")]]
    many = _column("sites", "subject", "random", True, [], 3, picks)
    assert (many.commonest, many.share.passed, many.share.trials) == ("b", 2, 4)
    assert many.longest_run == 1


def samples(*observed: tuple[str, str], **changes: Any) -> list[Sample]:
    """Return samples of 50 lives: the observation and the side of each, in turns."""
    return [
        Sample(
            fold=life % FOLDS,
            life=life,
            observation=observed[life // FOLDS % len(observed)][0],
            pose=changes.get("pose", 0),
            cell=changes.get("cell", 0),
            heading=changes.get("heading", life % 4),
            values={"side": observed[life // FOLDS % len(observed)][1]},
        )
        for life in range(changes.get("number", 50))
    ]


@pytest.mark.parametrize(
    ("observed", "passed", "source"),
    [
        ([(".L.", "left"), ("R..", "right")], 50, "the whole picture"),
        ([("..", "left"), ("..", "right")], 25, ""),
    ],
)
def test_a_draw_is_guessed_from_what_is_seen(
    observed: list[tuple[str, str]], passed: int, source: str
) -> None:
    found = samples(*observed)
    seen, stood = best_guess(found, "choice", "side")
    assert (seen.state, seen.hidden, seen.rate.trials) == ("choice", "side", 50)
    assert stood.rate.passed <= 25
    assert prior(found, "side") == 0.5
    if source:
        assert (seen.rate.passed, seen.source) == (passed, source)
        [guess] = readable({"choice": found, "cue": found[:49]}, ["side"])
        assert guess == seen
        assert described([guess, guess]) == "; ".join(
            ["'side' at 'choice': guessed right in 1.00 from the whole picture"] * 2
        )
        assert str(seen).startswith("'side' at 'choice': 1.00 [")
        assert str(seen).endswith("] from the whole picture")
    else:
        assert seen.rate.passed <= passed
        assert list(readable({"choice": found}, ["side"])) == []


def test_features_are_guessed_in_families() -> None:
    # The rest of the picture is new in every life, so that the whole tells nothing.
    def found(text: Callable[[int, bool], str]) -> list[Sample]:
        chance = random.Random(3)
        return [
            Sample(
                n % FOLDS,
                n,
                text(chance.randrange(10**6), is_left),
                n,
                0,
                0,
                {"side": "left" if is_left else "right"},
            )
            for n in range(100)
            for is_left in [chance.random() < 0.5]
        ]

    place = best_guess(
        found(lambda n, left: f"{n:06}{'L' if left else 'R'}"), "c", "side"
    )[0]
    assert (place.source, place.rate.passed) == ("the character at offset 6", 100)
    families = _seen(samples(("ab", "left"), ("bbb", "right")))
    assert {name: list(columns) for name, columns in families.items()} == {
        "whole": ["the whole picture"],
        "place": ["the character at offset 0", "the character at offset 2"],
        "count": ["the number of 'a'", "the number of 'b'"],
    }
    assert families["place"]["the character at offset 2"][:6] == [""] * 5 + ["b"]
    assert families["count"]["the number of 'b'"][:6] == [1] * 5 + [3]
    standing = samples((".", "left"), (".", "right"))
    by_pose = [replace(one, cell=one.life // FOLDS % 2) for one in standing]
    assert best_guess(by_pose, "c", "side")[1].source == "the cell"


def test_the_most_frequent_label_of_a_feature_is_its_guess() -> None:
    table: Counter[tuple[Hashable, Hashable]] = Counter(
        {("x", "a"): 2, ("x", "b"): 3, ("y", "a"): 4, ("y", "c"): 4}
    )
    assert _hits(table) == 7
    assert _majority(table) == ({"x": "b", "y": "c"}, "a")
    assert _majority(Counter()) == ({}, None)


def tempted(
    failure: float | None, success: float | None = None, moves: int = 1
) -> Temptation:
    """Return what a search for reward has found in one trial."""

    def ending(reward: float | None) -> Ending | None:
        plan = tuple(("go to", f"arm{n}") for n in range(moves))
        return None if reward is None else Ending((0,), reward, 0, plan)

    return Temptation("trial 1", ending(success), ending(failure), "greed", 0.0)


@pytest.mark.parametrize(
    ("failures", "most", "least", "blind", "said"),
    [
        ([None], 1.0, 0.5, -math.inf, "no trial failed; successes earn 0.5 to 1"),
        ([0.25, None], 1.0, 0.5, -math.inf, "failing never pays more; successes earn 0.5 to 1, failures at most 0.25"),
        ([0.25], 1.0, 0.5, 0.4, "failing never pays more; successes earn 0.5 to 1, failures at most 0.4"),
        (
            [0.75], 1.0, 0.5, 0.0,
            "failing never pays more; successes earn 0.5 to 1, failures at most 0.75"
            " (a slow or wasteful success can earn less than a failure in another trial)",
        ),
        ([1.0], 1.0, 1.0, 0.0, "every trial earns the same, 1, whether it succeeds or fails"),
        ([0.5], 1.0, 0.5, 0.0, "failing never pays more; successes earn 0.5 to 1, failures at most 0.5"),
    ],
)  # fmt: skip
def test_rewards_that_agree_with_success_are_told(
    failures: list[float | None], most: float, least: float, blind: float, said: str
) -> None:
    assert _agreeing([tempted(one) for one in failures], most, least, blind) == said


def test_a_failure_that_pays_more_is_told_with_its_moves() -> None:
    assert _tempting(tempted(2.0, 1.0, moves=2)) == (
        "trial 1: failing earns 2 (go to arm0, go to arm1; found by greed), succeeding 1"
    )
    many = _tempting(tempted(2.0, 1.0, moves=7))
    assert "go to arm5 ...; found" in many
    assert "arm5 ..." not in _tempting(tempted(2.0, 1.0, moves=6))
    numbers = [_finite(one) for one in (1.5, math.inf, -math.inf)]
    assert numbers == [1.5, None, None]


@pytest.mark.parametrize(("guard", "more"), [("", False), ("if: steps > 3, ", True)])
def test_how_trials_end_that_are_never_solved(
    plant: Plant, guard: str, more: bool
) -> None:
    changed = plant(("{enter: side, reward", f"{{enter: side, {guard}reward"))
    found = Solutions(trials=9, failures=Counter(error=3, timeout=6))
    said = _how_trials_end(found, changed.specification)
    start = "; success never held; the outcome was 'timeout' in 6 of 9"
    assert said.startswith(start)
    assert (said != start) == more


def test_a_task_that_is_not_solved_names_the_rules_that_never_fired(
    plant: Plant, settings: AuditSettings
) -> None:
    changed = plant(("{enter: side, reward", "{enter: side, if: trial > 99, reward"))
    only = replace(settings, parts=("solvable",))
    [found] = [one for one in changed.audit([], only) if one.rule == "solvable"]
    assert found.verdict == "FAIL"
    assert "; never fired in the search: line 21 ('enter side'); success" in found.text


def test_a_state_that_no_run_enters_is_looked_at_in_every_trial_of_whole_lives(
    plant: Plant,
) -> None:
    paradigm = plant(
        ("\ndraw:", "\nvars: {late: {init: 0, per: subject}}\ndraw:"),
        (
            "- {enter: arm, end: error}",
            "- {enter: arm, end: error}\n        - {after: 30, set: {late: late + 1}}",
        ),
        ("schedule:", '    far: {say: "{late}"}\nschedule:'),
    )
    view = installed_plugins().view("ascii_2d")
    [(name, found)] = _forced(paradigm, view, ["far"], 0).items()
    assert (name, len(found)) == ("far", 320)
    said = Counter(one.observation.rpartition("\n")[2] for one in found)
    # Each trial lasts until its limit, so that the next one begins later in the life.
    assert len(said) == 20
    assert set(said.values()) == {16}
    assert {one.fold for one in found} == set(range(FOLDS))
    assert _forced(paradigm, view, [], 0) == {}


def counted(folder: Path, measure: str, *changes: tuple[str, str]) -> ArenaParadigm:
    """Return the sound task, whose animals passed in trials where a measure was 0."""
    rows = (f"{animal},{session},0\n" for animal in "ab" for session in (1, 2))
    (folder / "animals.csv").write_text(f"animal,session,late\n{''.join(rows)}")
    text = SOUND.replace(
        "reference: [{measure: success, value: 0.9,",
        f"measures: {{late: {measure}}}\nreference: [{{measure: success,"
        " animals: animals.csv, counts: {measure: late, at_most: 0},",
    )
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "sound.protocol.yaml"
    path.write_text(text, encoding="utf-8")
    specification, found = examine(path)
    assert specification is not None, found
    return ArenaParadigm(specification)


@pytest.mark.parametrize(
    ("measure", "verdict", "text"),
    [
        ("last != correct", "ok", "and exactly these trials succeed"),
        (
            "1 * (last == timeout)",
            "FAIL",
            "late is 0 (counted: at most 0), but 'error' is",
        ),
        ("last == timeout", "FAIL", "late is 0 (counted: at most 0), but 'error' is"),
        ("1", "FAIL", "late is 1 (counted: at most 0), but 'correct' is a success"),
        ("0 / 0", "FAIL", "late is none (counted: at most 0), but 'correct' is a"),
    ],
)
def test_what_was_counted_in_the_animals_is_what_counts_here(
    tmp_path: Path, measure: str, verdict: str, text: str
) -> None:
    paradigm = counted(tmp_path, measure)
    settings = AuditSettings(trials=32, seed=0)
    (found,) = audit_same_event(paradigm, settings)
    assert (found.rule, found.verdict) == ("same event", verdict)
    assert text in found.text
    trials, quick = found.numbers["trials"], found.numbers["counted"]
    assert isinstance(trials, int)
    assert isinstance(quick, int)
    if verdict == "ok":
        assert trials == 16, "two of each of eight subjects"
        assert 0 < quick < trials
        assert f"is at most 0 in {quick} of {trials} trials" in found.text
    else:
        # The first trial that differs is the last one that is looked at.
        told = {"1": 0, "0 / 0": 0}
        assert quick == told.get(measure, trials)


def test_only_judged_trials_are_compared_with_the_animals(
    tmp_path: Path, plant: Plant
) -> None:
    blocks = (
        "schedule: {main: {sessions: 2, trials: 10}}",
        "schedule: {early: {trials: 2}, main: {trials: 3}}\nestimand: {block: main}",
    )
    late = "last != correct and block == main"
    paradigm = counted(tmp_path, late, blocks)
    (found,) = audit_same_event(paradigm, AuditSettings(trials=32, seed=0))
    assert (found.verdict, found.numbers["trials"]) == ("ok", 16)
    (none,) = audit_same_event(plant(), AuditSettings(trials=32, seed=0))
    assert (none.verdict, none.numbers) == ("note", {})


def test_where_nothing_is_drawn_no_draw_is_judged(plant: Plant) -> None:
    fixed = plant(
        ("draw:\n  side: {of: {side: [left, right]}}\n", "vars: {side: left}\n"),
        ("checks: [{at: choice, hidden: side, chance: 0.5}]", "checks: []"),
    )
    (found,) = audit_draws(fixed, AuditSettings(trials=8))
    assert (found.verdict, found.text) == ("note", "nothing is drawn")


def test_where_no_trial_counts_none_is_solved(plant: Plant) -> None:
    never = (
        "success: last",
        "estimand: {where: last == timeout and steps < 2}\nsuccess: last",
    )
    (found,) = audit_solvable(plant(never), AuditSettings(trials=8))
    assert (found.verdict, found.numbers["trials"]) == ("FAIL", 0)
    assert found.numbers["lived"]


def test_a_trial_that_always_lasts_has_no_half(plant: Plant) -> None:
    lasting = (
        (
            "{enter: side, reward: 1, end: correct}",
            "{enter: side, reward: 1, count: n}",
        ),
        ("        - {enter: arm, end: error}\n", ""),
        ("success: last == correct", "success: n > 0"),
    )
    (found,) = audit_solvable(plant(*lasting), AuditSettings(trials=8))
    assert found.verdict == "ok"
    assert found.text == "1.00 of 16 trials solved; every trial lasts until its limit"


#: Everything that a cue can be: a landmark, glyphs of a zone and of a solid, a closed
#: door, a shown glyph and a text.
CUES = """
version: 1
paradigm: cues
arena:
  map: |
    #########
    #L..S..R#
    #+##V####
  legend:
    L: {zone: left, glyph: "o"}
    S: box
    R: right
    +: {door: gate}
    V: {solid: lever, glyph: "V"}
  groups: {arm: [left, right]}
  landmarks: {W: {at: [0, 1], glyph: "1"}}
start: {at: box, face: random}
trial:
  limit: 20
  start: one
  states:
    one: {close: [gate], show: {right: "*"}, say: go, rules: [{enter: arm, go: two}, {press: lever, go: two}]}
    two: {show: {left: ".", W: "2"}, rules: [{enter: arm, end: done}]}
schedule: {main: {trials: 4}}
success: last == done
"""


class Blank:
    """Shows the text and nothing else."""

    name, characters = "blank", "go. \n"

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return "\n".join((".", *scene.text))

    def max_length(self, scene: Scene) -> int:
        return 2 + sum(len(line) + 1 for line in scene.text)


CUE_NAMES = [
    "landmark W", "glyph of left", "glyph of lever", "gate closed at 'one'",
    "'*' on right at 'one'", "text of 'one'", "'.' on left at 'two'", "'2' on W at 'two'",
]  # fmt: skip


def test_each_cue_is_seen_or_named(plant: Plant) -> None:
    specification, found = examine_text(CUES)
    assert specification is not None, found
    paradigm, settings = ArenaParadigm(specification), AuditSettings(trials=8)
    views: list[View] = [installed_plugins().view("ascii_2d"), Blank()]
    told: list[str] = []
    settings = replace(settings, progress=told.append)
    seen, blank = [
        one
        for one in audit_cues(paradigm, views, settings)
        if one.rule != "goal visible"
    ]
    assert told == ["cues in ascii_2d", "cues in blank"]
    assert (seen.rule, seen.verdict, seen.numbers) == (
        "cues, ascii_2d",
        "ok",
        {"cues": 8, "hidden": []},
    )
    assert blank.verdict == "FAIL"
    assert blank.numbers == {
        "cues": 8,
        "hidden": [one for one in CUE_NAMES if one != "text of 'one'"],
    }
    assert "and 1 more. If a subject" in blank.text
    met = looks(paradigm, 16, 0)
    assert visible_cues(paradigm, views[0], met, random.Random(0)) == dict.fromkeys(
        CUE_NAMES, True
    )


def rewarded(
    plant: Plant, *changes: tuple[str, str], blind: float = 0.0
) -> AuditFinding:
    tally = Tally("policy", best_failure=blind, best_success=1.0, least_success=1.0)
    settings = AuditSettings(trials=8, seed=0)
    (found,) = audit_rewards(plant(*changes), settings, [Tally("worse"), tally])
    return found


def test_reward_and_success_disagree_where_a_failure_earns_more(plant: Plant) -> None:
    agreed = rewarded(plant)
    assert (agreed.verdict, agreed.numbers["gain"]) == ("ok", -1.0)
    assert agreed.numbers["policy"] == "policy"
    assert [
        agreed.numbers[name]
        for name in ("best_success", "least_success", "best_blind_failure")
    ] == [1, 1, 0]
    tempting = rewarded(
        plant, ("{enter: arm, end: error}", "{enter: arm, reward: 3, end: error}")
    )
    assert (tempting.verdict, tempting.numbers["gain"]) == ("FAIL", 2.0)
    assert "failing earns 3 (" in tempting.text
    blind = rewarded(plant, blind=1.5)
    assert (blind.verdict, blind.text) == (
        "FAIL",
        "policy earns 1.5 in a failed trial; the best success earns 1",
    )
    assert rewarded(plant, blind=1.0).verdict == "ok"
    never = ("success: last == correct", "success: last == timeout and steps < 2")
    (found,) = audit_rewards(plant(never), AuditSettings(trials=8), [])
    assert (found.verdict, found.text) == ("note", "no trial was a success")
    assert found.numbers["best_success"] is None


def test_what_is_not_declared_hidden_is_only_noted(plant: Plant) -> None:
    bare = plant(("checks: [{at: choice, hidden: side, chance: 0.5}]", "checks: []"))
    told: list[str] = []
    settings = AuditSettings(trials=8, seed=0, progress=told.append)
    first, *rest = audit_leaks(bare, [installed_plugins().view("ascii_2d")], settings)
    assert (first.rule, first.verdict, first.numbers) == ("leak", "note", {})
    assert [one.rule for one in rest] == ["states", "shown, ascii_2d"]
    assert told == ["leaks in ascii_2d"]
