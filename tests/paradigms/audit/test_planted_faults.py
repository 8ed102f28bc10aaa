"""The purpose of the audit: it must name a planted fault, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.interfaces import AuditFinding, AuditPart, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.chances import APART, blind_remedy, ceiling
from cheesebench.paradigms.arena.audit.validity import (
    _judged_leak,
    audit_leaks,
    collect,
)
from cheesebench.plugin_manager import installed_plugins

Plant = Callable[..., ArenaParadigm]


def failures(paradigm: ArenaParadigm, settings: AuditSettings) -> dict[str, str]:
    """Return the failing rules in the requested parts, each with its text."""
    findings: list[AuditFinding] = list(
        paradigm.audit([installed_plugins().view("ascii_2d")], settings)
    )
    return {
        finding.rule: finding.text for finding in findings if finding.verdict == "FAIL"
    }


def test_the_sound_protocol_passes(plant: Plant, settings: AuditSettings) -> None:
    assert failures(plant(), settings) == {}


def test_equal_settings_give_equal_findings(
    plant: Plant, settings: AuditSettings
) -> None:
    views = [installed_plugins().view("ascii_2d")]
    brief = replace(settings, trials=40)
    assert list(plant().audit(views, brief)) == list(plant().audit(views, brief))


FIXED = ("[left, right]}}", "[left]}}")
FAULTS = {
    "a glyph that stays on the picture": (
        [("    choice:\n", '    choice:\n      show: {side: ","}\n')],
        "leak: side at choice, ascii_2d",
        "guessed right in 1.00",
    ),
    "a start that tells the side": (
        [
            ("#LL.B.RR#", "#LL.BCRR#"),
            ("B: box}", "B: box, C: booth}"),
            ("[left, right]}}", "[left, right], home: [box, booth]}}"),
            ("at: box", "at: home"),
        ],
        "leak: side at choice, ascii_2d",
        "guessed right in 1.00",
    ),
    "a chance that is declared too low": (
        [("chance: 0.5", "chance: 0.2")],
        "leak: side at choice, ascii_2d",
        "chance .20",
    ),
    "one side more often": (
        [("[left, right]}}", "[left, left, right]}}")],
        "draw: side",
        "commonest left",
    ),
    "one side for most of the subjects": (
        [
            (
                "side: {of: {side: [left, right]}}",
                "side: {per: subject, of: {side: [left, left, right]}}",
            )
        ],
        "draw: side",
        "UNBALANCED",
    ),
    "a number that stands for a side": (
        [
            (
                "{of: {side: [left, right]}}",
                "{of: {side: [left, right, left, right], code: [1, 2, 1, 1]}}",
            ),
            (
                "{enter: arm, end: error}",
                "{enter: arm, if: code == 1, end: error}\n        - {enter: arm, end: error}",
            ),
        ],
        "draw: code",
        "commonest 1 (.7",
    ),
    "sides by turns": (
        [("{of: {side: [left, right]}}", "{order: cycle, of: {side: [left, right]}}")],
        "draw: side",
        "best guess: the other one (1.00), FORESEEABLE",
    ),
    "sides in the same order over and over": (
        [
            (
                "{of: {side: [left, right]}}",
                "{order: cycle, of: {side: [left, left, right, right]}}",
            )
        ],
        "draw: side",
        "FORESEEABLE",
    ),
    "failing pays more": (
        [("{enter: arm, end: error}", "{enter: arm, reward: 2, end: error}")],
        "reward and success",
        "failing earns 2",
    ),
    "dawdling pays more": (
        [
            ("    choice:\n", "    choice:\n      each: {reward: 0.1}\n"),
            ("== correct", "== correct and steps < 20"),
        ],
        "reward and success",
        "failing earns",
    ),
    "the same way always": (
        [
            FIXED,
            ("face: random", "face: W"),
            ("checks: [{at: choice, hidden: side, chance: 0.5}]\n", ""),
        ],
        "blind ceiling",
        "ceiling .25",
    ),
    "too little time": (
        [("limit: 40", "limit: 6")],
        "solvable",
        "within half of the limit",
    ),
    "a chance level from another task": (
        [("success:", "chance: {value: 0.9, trials: 2000, how: made up}\nsuccess:")],
        "chance: as stated",
        "stated .90",
    ),
    "a lamp that cannot be seen": (
        [('show: {side: "*"}', 'show: {side: "."}')],
        "cues, ascii_2d",
        "'.' on left",
    ),
}


#: The part of each rule.
PARTS: dict[str, AuditPart] = {
    "leak": "leaks", "draw": "draws", "reward and success": "rewards", "blind ceiling": "blind",
    "solvable": "solvable", "chance": "chance", "cues, ascii_2d": "cues",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, plant: Plant, settings: AuditSettings) -> None:
    changes, rule, words = FAULTS[fault]
    part = PARTS[rule.split(":")[0]]
    failed = failures(plant(*changes), replace(settings, parts=(part,)))
    assert words in failed.get(rule, ""), failed


def test_a_variable_that_is_not_set_yet_is_no_leak_of_the_picture(
    plant: Plant, settings: AuditSettings
) -> None:
    """It is known without looking, and no picture tells it."""
    early = plant(
        ("draw:\n", "vars: {food: none}\ndraw:\n"),
        ("{after: 3, go: choice}", "{after: 3, set: {food: side}, go: choice}"),
        ("at: choice, hidden: side", "at: cue, hidden: food"),
    )
    failed = failures(early, replace(settings, parts=("leaks",)))
    assert failed["leak: food at cue, ascii_2d"].startswith(
        "'food' is always none when 'cue' is entered, so it is known without looking"
    )


def test_a_ceiling_above_the_highest_says_that_it_is_cut(plant: Plant) -> None:
    easy = plant(("hidden: side, chance: 0.5", "hidden: side, chance: 0.8"))
    assert ceiling(easy.specification) == (
        0.5,
        "the chance of 'side' in `checks`: .80, more than a ceiling may be",
    )
    assert ceiling(plant().specification) == (0.5, "the chance of 'side' in `checks`")


def test_a_blind_ceiling_that_is_passed_says_what_to_do(plant: Plant) -> None:
    def remedy(
        *changes: tuple[str, str], most: float = 0.25, reached: float = 0.5
    ) -> str:
        paradigm = plant(*changes)
        return blind_remedy(paradigm.specification, most, reached)

    assert (
        "add 'checks: [{at: choice, hidden: side, chance: 0.5}]', which sets the ceiling to .50"
        in remedy()
    )
    for high in (remedy(reached=0.9), remedy(most=0.5, reached=0.7)):
        assert "Let success depend on what is drawn for each trial (side" in high
    assert "Draw what decides success anew for each trial" in remedy(FIXED)
    stays = remedy(("  side: {of:", "  side: {per: subject, of:"))
    assert stays.startswith(
        "If 'side' stays by design (as in a reversal), add 'checks: [{at: choice"
    )
    seen = remedy(
        ("start: cue", "start: choice"),
        ("    choice:\n", '    choice:\n      show: {side: "*"}\n'),
    )
    assert "checks" not in seen, "a draw that is shown is not hidden"
    assert (
        "'construct: {name: NAME, abolished_by: [{lesion: {hide: CUE}, at_most: 0.5}]}'"
        in seen
    )
    signs = (
        "  side: {of: {side: [left, right]}}",
        "  sign: {sample: arm, into: [black, side]}\n  good: {of: {good: [1, 2]}}",
    )
    shown = ("    choice:\n", '    choice:\n      show: {black: "*", side: "o"}\n')
    guarded = ("{enter: side, reward: 1", "{enter: side, if: good == 1, reward: 1")
    assert "{at: choice, hidden: good, chance: 0.5}" in remedy(signs, shown, guarded)


IN_ANOTHER_BLOCK = (
    (
        "schedule: {main: {sessions: 2, trials: 10}}",
        "schedule: {main: {sessions: 2, trials: 10}, late: {trials: 10}}\nestimand: {block: main}",
    ),
    ("  start: cue\n", "  start: [{if: block == late, go: lit}, cue]\n"),
    (
        "    choice:\n",
        '    lit: {show: {side: "*"}, rules: [{enter: side, reward: 1, end: correct}]}\n    choice:\n',
    ),
)


def test_a_guess_that_was_lucky_once_is_no_leak(plant: Plant) -> None:
    sound, seed = plant(), 143  # the first of 400 seeds whose sample has such a guess
    view, [check] = (
        installed_plugins().view("ascii_2d"),
        sound.specification.document.checks,
    )
    alone = _judged_leak(
        "leak", check, collect(sound, view, 100, seed + 6 * APART)[check.at]
    )
    assert alone.verdict == "FAIL"
    [judged, *_] = audit_leaks(sound, [view], AuditSettings(trials=200, seed=seed))
    assert judged.verdict == "ok"


@pytest.mark.parametrize(("often", "verdict"), [(0.1, "FAIL"), (0.0005, "undecided")])
def test_a_state_that_is_seldom_entered_is_looked_at_for_longer(
    often: float, verdict: str, plant: Plant
) -> None:
    seldom = (
        (
            "rules: [{after: 3, go: choice}]",
            f"rules: [{{after: 3, p: {often}, go: choice}}, {{after: 3, end: none_today}}]",
        ),
        ("    choice:\n", '    choice:\n      show: {side: ","}\n'),
    )
    view, settings = installed_plugins().view("ascii_2d"), AuditSettings(trials=200)
    [judged, *_] = audit_leaks(plant(*seldom), [view], settings)
    assert judged.rule == "leak: side at choice, ascii_2d"
    assert judged.verdict == verdict


def test_leaks_are_looked_for_in_every_block(
    plant: Plant, settings: AuditSettings
) -> None:
    checks = ("checks: [", "checks: [{at: lit, hidden: side, chance: 0.5}, ")
    leaks = replace(settings, parts=("leaks",))
    assert list(failures(plant(*IN_ANOTHER_BLOCK, checks), leaks)) == [
        "leak: side at lit, ascii_2d"
    ]


def test_what_a_rule_sets_can_be_hidden(plant: Plant, settings: AuditSettings) -> None:
    changes = (
        ("start: {at: box", "vars: {copy: none}\nstart: {at: box"),
        ("cue: {freeze: true,", "cue: {set: {copy: side}, freeze: true,"),
        (
            "checks: [",
            "checks: [{at: choice, hidden: copy, chance: 0.5}, {at: cue, hidden: copy, chance: 0.5}, ",
        ),
    )
    leaks = replace(settings, parts=("leaks",))
    assert list(failures(plant(*changes), leaks)) == ["leak: copy at cue, ascii_2d"]


@pytest.mark.parametrize(
    ("per", "schedule"),
    [
        ("block", "{sessions: 2, trials: 10, repeat: 2}"),
        ("session", "{sessions: 2, trials: 10}"),
        ("trial", "{sessions: 10, trials: 2}"),
    ],
)
def test_cues_and_leaks_of_later_repetitions_and_sessions_are_seen(
    per: str, schedule: str, plant: Plant, settings: AuditSettings
) -> None:
    changes = (
        ("#LL.B.RR#", "#LL+B.RR#"),
        ("legend: {", 'legend: {+: {door: gate, glyph: "."}, '),
        (
            "draw:\n",
            f"draw:\n  turn: {{per: {per}, order: cycle, of: {{turn: [1, 2]}}}}\n",
        ),
        ("{main: {sessions: 2, trials: 10}}", f"{{main: {schedule}}}"),
        *IN_ANOTHER_BLOCK[2:],
        ("    lit: {", "    lit: {close: [gate], "),
        ("  start: cue\n", "  start: [{if: turn == 2, go: lit}, cue]\n"),
        ("checks: [", "checks: [{at: lit, hidden: side, chance: 0.5}, "),
    )
    failed = failures(plant(*changes), replace(settings, parts=("cues", "leaks")))
    assert "gate closed at 'lit'" in failed.get("cues, ascii_2d", ""), failed
    assert "leak: side at lit, ascii_2d" in failed
