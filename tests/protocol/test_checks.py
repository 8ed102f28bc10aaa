"""Findings about a whole protocol: what cannot happen, be seen or be of use."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest

from cheesebench.protocol import checks
from tests.protocol.short import (
    FOUND,
    LEVER,
    RIGHT,
    SCORED,
    SIDES,
    WALK,
    Check,
    Examine,
    Findings,
    construct,
    state,
    trial,
)

ERRORS = {
    "the distance to what is pressed": ("E134", LEVER + trial("«{press: lever, reward: distance(it), end: found}")),
    "the distance to what may be solid": (
        "E134", LEVER + "draw: {d: {of: {prize: [lever, goal]}}}\nmeasures: {m: «distance(prize)}"
    ),
    "the distance to what is set to something solid": (
        "E134", LEVER + "vars: {v: goal, w: goal}\n"
        + trial("{enter: goal, set: {v: w}, end: found}, {press: lever, set: {w: it}}, "
                "{enter: box, set: {w: lever}}, «{enter: box, reward: distance(v)}")
    ),
    "the distance to a set with something solid": (
        "E134", LEVER + "vars: {seen: [goal, lever]}\nmeasures: {m: «distance(seen)}"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


ERRING = trial("{enter: goal, reward: 1, set: {errors: errors - 10}, end: found}")
TONES = (
    "draw: {{a: {{of: {{danger: [{2}, {3}]}}}}, b: {{of: {{sound: [{0}, {1}]}}}}}}\n"
    + trial(
        "{enter: goal, if: sound == danger, reward: 1, end: found}, {enter: goal, end: lost}"
    )
    .replace("{", "{{")
    .replace("}", "}}")
)


WARNINGS = {
    "a measure that is best if nothing is done": (
        "W338", trial("{enter: box, count: presses}, {enter: goal, reward: 1, end: found}")
        + "measures: {got: presses}\n"
        + "reference: «[{measure: got, value: 4, better: lower, margin: 1, range: [0, 30], status: x}]"
    ),
    "an outcome that is best if nothing is done": (
        "W338", trial("{enter: goal, reward: 1, end: found}, {enter: box, end: wrong}")
        + "measures: {got: last == wrong}\n"
        + "reference: «[{measure: got, value: 0.4, better: lower, margin: 0.1, range: [0, 1], status: x}]"
    ),
    "the same outcome as a number": (
        "W338", trial("{enter: goal, reward: 1, end: found}, {enter: box, end: wrong}")
        + "measures: {got: (last == wrong) * 1}\n"
        + "reference: «[{measure: got, value: 0.4, better: lower, margin: 0.1, range: [0, 1], status: x}]"
    ),
    "a verdict on what begins out of range": (
        "W339", "vars: {«errors: 40}\n" + ERRING + "measures: {got: errors}\n"
        + "reference: [{measure: got, value: 4, better: lower, margin: 1, range: [0, 30], status: x}]"
    ),
    "a drawn name in two spellings": ("W340", TONES.format("TONE", "NOISE", "TONE", "«NOIZE")),
    "a verdict against the animals' curve": (
        "W341", "vars: {errors: 20}\nschedule: {one: {sessions: 4}}\n" + ERRING
        + "measures: {got: errors}\nreference: [{measure: got, value: 7, curve: [9, 7, 8, 4], better: «higher, margin: 1,"
        " range: [0, 30], status: x}]"
    ),
    "a hole in the wall": (
        "W342", "arena:\n  map: |\n    #####\n    #S.Z«.\n    #####\n  legend: {S: box, Z: goal}\n"
    ),
    "unreachable state": ("W302", f"trial: {{limit: 9, start: run, states: {{run: {{{FOUND}}}, «lost: {{}}}}}}"),
    "rule after one that takes all": ("W303", trial("{enter: goal, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "rule after a group": ("W303", SIDES + trial("{enter: side, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "rule after a shorter time": ("W303", trial("{after: 3, reward: 1, end: found}, «{after: 5, end: lost}")),
    "rule after every step": ("W303", trial("{after: 1, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "rule after every move": ("W303", trial("{act: FORWARD, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "time past the limit": ("W303", trial("{enter: goal, reward: 1, end: found}, «{after: 99, end: lost}")),
    "time at the limit of a later state": (
        "W303",
        trial("{enter: goal, reward: 1, go: held}").replace(
            "states: {", "states: {held: {rules: [«{after: 9, end: b}]}, "
        ),
    ),
    "time past the limit in a block": (
        "W303",
        "vars: {gap: 3}\nschedule: {one: {}, two: {set: {gap: 99}}}\n"
        + trial("{enter: goal, reward: 1, end: found}, «{after: gap, end: lost}"),
    ),
    "all drawn times past the limit": (
        "W303",
        "draw: {gap: {of: {gap: [10, 20]}}}\n"
        + trial("{enter: goal, reward: 1, end: found}, «{after: gap, end: lost}"),
    ),
    "a frozen trap": (
        "W304",
        trial("{enter: goal, go: held}").replace(
            "states: {", "states: {«held: {freeze: true, rules: [{after: 2, reward: 1, go: held}]}, "
        ),
    ),
    "frozen for ever": ("W304", f"trial: {{limit: 9, start: run, states: {{«run: {{freeze: true, {FOUND}}}}}}}"),
    "nothing to win": ("W305", "«" + trial("{enter: goal, reward: -1, end: found}")),
    "zone behind walls": ("W306", 'arena: {map: "S.Z#X", legend: {S: box, Z: goal, X: {zone: «cell, glyph: x}}}'),
    "limit too low": ("W307", f"trial: {{limit: «2, start: run, states: {{run: {{{FOUND}}}}}}}"),
    "no way to what finish ends": (
        "W307",
        'arena: {map: "S.#Z", legend: {S: box, Z: goal}}\n'
        "«start: {at: box}\ntrial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, count: n}]}}, "
        "finish: [{if: n == 1, end: found}]}",
    ),
    "limit too low for what finish ends": (
        "W307",
        "trial: {limit: «2, start: run, states: {run: {rules: [{enter: goal, reward: 1, count: n}]}}, "
        "finish: [{if: n == 1, end: found}]}",
    ),
    "no way to an end": ("W307", 'arena: {map: "S.#Z", legend: {S: box, Z: goal}}\n' + "«start: {at: box}\n" + WALK),
    "unused variable": ("W308", "vars: {«n: 0}"),
    "unused draw": ("W308", "draw: {«d: {of: {x: [1, 2]}}}"),
    "unused zone": ("W308", 'arena: {map: "S.X.Z", legend: {S: box, Z: goal, «X: middle}}'),
    "unused symbol": ("W308", "vars: {v: c}\nsuccess: v == c\n«" + trial("{enter: goal, reward: 1, set: {v: d}}")),
    "cue like floor": ("W310", state("show: {«goal: .}")),
    "cue like a wall": ("W310", state("show: {«goal: '#'}")),
    "cue like the agent": ("W310", state("show: {«goal: ↑}")),
    "cue like a wall far away": ("W310", state("show: {«goal: ░}")),
    "drawn cue like floor": ("W310", "draw: {d: {of: {lamp: [., x]}}}\n" + state("show: {«goal: lamp}")),
    "variable cue like floor": ("W310", "vars: {lamp: .}\n" + state("show: {«goal: lamp}")),
    "success that is a number": ("W312", "success: «steps"),
    "end condition on a clock": (
        "W313",
        trial("{enter: goal, reward: 1, end: found}", "finish: [«{if: steps > 5, end: late}], "),
    ),
    "text with a variable of another language": (
        "W314",
        "draw: {d: {of: {cue: [x, y]}}}\n" + state("show: {goal: cue}, say: «'TONE $cue'"),
    ),
    "text named like a variable": ("W314", "draw: {d: {of: {cue: [x, y]}}}\n" + state("show: {goal: cue}, say: «cue")),
    "a split of nothing": ("W319", "draw: {d: {of: {k: [1, 2]}}}\nsplit: «[k]"),
    "shown in all states like a wall": ("W310", trial("{enter: goal, reward: 1, end: found}", "show: {«box: '#'}, ")),
    "more last trials than there are": ("W317", "schedule: {one: {trials: 5}}\nestimand: {last: «6}"),
    "more last trials than count": (
        "W317", SCORED + "schedule: {one: {}, two: {}}\nestimand: {last: «2, where: block == one}"
    ),
    "a part of a block for a construct": (
        "W336", "schedule: {one: {trials: 5}}\nestimand: {last: «4}\n" + construct("blind")
    ),
    "a trial that no session has": ("W327", "schedule: {one: {trials: 10}}\nsuccess: «last == found and trial > 20"),
    "a session that no block has": (
        "W327", "schedule: {one: {sessions: 2, trials: 9}}\n"
        + trial("{enter: goal, reward: 1, end: found}, «{act: STAY, if: 3 <= session, end: lost}"),
    ),
    "a construct that lets a lesioned subject pass": (
        "W329", SCORED + "margin: 0.1\nreference: [{measure: success, value: 0.7, status: x}]\n"
        + "construct: {name: x, kind: learning, "
        + "abolished_by: [{lesion: blind, at_most: 0.6}, «{lesion: anhedonia, at_most: 0.61}]}"
    ),
    "a construct without the lesion of its kind": (
        "W330", SCORED + "construct: {name: x, kind: memory, abolished_by: «[{lesion: blind, at_most: 0.5}]}"
    ),
    "an event that forgives what a turned maze leaves": (
        "W331",
        'arena: {ring: {radius: 6, holes: 4}, landmarks: {N: " ", E: " "}}\n'
        + "draw: {d: {of: {one: [N, E], two: {turned: one, from: E}}}}\nstart: {at: hole1}\n"
        + "trial: {limit: 9, start: a, show: {one: A, two: B}, states: {a: {rules: [{enter: hole2, end: found}, "
        + "«{enter: hole, if: n < 1, count: n}, {enter: hole, count: n, end: lost}]}}}\n"
        + construct("{hide: landmarks}").replace("0.5", "0.4")
    ),
    "zone drawn like a wall": ("W310", 'arena: {map: "S..Z", legend: {S: box, «Z: {zone: goal, glyph: "#"}}}'),
    "zone drawn like the agent": ("W310", 'arena: {map: "SZ", legend: {S: box, «Z: {zone: goal, glyph: ↑}}}'),
    "rule after any action": ("W303", trial("{act: any, reward: 1, end: found}, «{enter: goal, end: lost}")),
    "rule after the same action": ("W303", trial("{act: STAY, reward: 1, end: found}, «{act: STAY, end: lost}")),
    "press after anything that blocks the way": (
        "W303", LEVER + trial("{press: any, reward: 1, end: found}, «{press: lever, end: lost}, {enter: side, end: a}")
    ),
    "rule after the same drawn time": (
        "W303", "draw: {gap: {of: {gap: [3, 4]}}}\n"
        + trial("{after: gap, reward: 1, end: found}, «{after: gap, end: lost}, {enter: goal, end: a}")
    ),
    "an entry of finish after one without a condition": (
        "W303", trial("{enter: goal, reward: 1, count: n}", "finish: [{end: found}, «{if: n == 1, end: lost}], ")
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), WARNINGS.values(), ids=list(WARNINGS))
def test_a_warning_stands_where_its_cause_is(
    code: str, text: str, check_warning: Check
) -> None:
    check_warning(code, text)


@pytest.mark.parametrize(
    "trigger", ["watch: [{act: FORWARD, count: n}], ", ""], ids=["watched", "a rule"]
)
def test_an_end_in_finish_may_be_nearer_than_all_others(
    trigger: str, findings: Findings
) -> None:
    rule = "" if trigger else ", {act: FORWARD, count: n}"
    text = (
        f"trial: {{limit: 2, start: run, {trigger}states: {{run: {{rules: ["
        f"{{enter: goal, reward: 1, end: found}}{rule}]}}}}, finish: [{{if: n == 2, end: tired}}]}}"
    )
    assert not [one for one in findings(text) if one.startswith(("W", "E"))]


@pytest.mark.parametrize(
    "condition", ["trial > 9", "10 == trial", "session >= 2", "trial % 20 == 3"]
)
def test_a_trial_that_comes(condition: str, findings: Findings) -> None:
    text = f"schedule: {{one: {{sessions: 2, trials: 10}}}}\nsuccess: last == found and {condition}"
    assert not [one for one in findings(text) if one.startswith("W")]


@pytest.mark.parametrize(("entry", "glyph"), [("middle", "."), ("{solid: post}", "#")])
def test_a_place_that_nothing_uses_is_drawn_as_what_it_is(
    entry: str, glyph: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    _, found = examine(
        complete(f'arena: {{map: "S.Z.X", legend: {{S: box, Z: goal, X: {entry}}}}}')
    )
    remedies = [one.remedy for one in found if one.code == 308]
    assert remedies == [f"Remove it from the legend, and draw it as '{glyph}'."]


TOGETHER = {
    "a timer and a zone": trial(
        "{enter: goal, reward: 1, end: found}, «{after: 5, end: lost}"
    ),
    "two overlapping zones": 'arena: {map: "S.Z", legend: {S: box, Z: {zones: [goal, corner]}}}\n'
    + trial("{enter: goal, reward: 1, end: found}, «{enter: corner, end: lost}"),
    "a move and a zone": trial(
        "{act: FORWARD, p: 0.5, end: lost}, «{enter: goal, reward: 1, end: found}"
    ),
}


@pytest.mark.parametrize("text", TOGETHER.values(), ids=list(TOGETHER))
def test_two_triggers_on_one_step(
    text: str, findings: Findings, marked: Callable[[str], str]
) -> None:
    assert findings(text) == [f"I401 {marked(text)}"]


APART = {
    "zones apart": LEVER
    + trial("{enter: goal, reward: 1, end: found}, {enter: box, end: lost}"),
    "a turn and a zone": trial(
        "{act: STAY, end: lost}, {enter: goal, reward: 1, end: found}"
    ),
    "the same zone": trial(
        "{enter: goal, if: steps > 3, reward: 1, end: found}, {enter: goal, end: lost}"
    ),
    "a timer while nothing moves": trial(
        "{after: 2, reward: 1, end: found}, {enter: goal, end: lost}"
    ).replace("run: {", "run: {freeze: true, "),
}


@pytest.mark.parametrize("text", APART.values(), ids=list(APART))
def test_triggers_that_never_fall_together(text: str, findings: Findings) -> None:
    assert [found for found in findings(text) if found.startswith("I")] == []


def test_a_variable_that_rules_change_can_hold_a_solid(findings: Findings) -> None:
    text = LEVER + "vars: {next: lever}\n"
    text += trial(
        "{enter: goal, set: {next: lever}}, {press: next, reward: 1, end: found}"
    )
    assert [found for found in findings(text) if not found.startswith("I")] == []


CLOCKS = {
    "at the limit": trial(
        "{enter: goal, reward: 1, end: found}, {after: 9, end: late}"
    ),
    "a variable that rules change": "vars: {gap: 99}\n"
    + trial(
        "{enter: goal, reward: 1, end: found}, {act: STAY, set: {gap: 2}}, {after: gap, end: late}"
    ),
    "drawn, sometimes in time": "draw: {gap: {of: {gap: [3, 20]}}}\n"
    + trial("{enter: goal, reward: 1, end: found}, {after: gap, end: late}"),
}


@pytest.mark.parametrize("text", CLOCKS.values(), ids=list(CLOCKS))
def test_clocks_that_can_run_out(text: str, findings: Findings) -> None:
    assert not [found for found in findings(text) if found.startswith("W303")]


@pytest.mark.parametrize(
    ("references", "told"),
    [
        ("{measure: latency, value: 35, status: x}", True),
        (
            "{measure: latency, value: 35, status: x}, {measure: success, value: 0.5, status: x}",
            False,
        ),
    ],
)
def test_references_without_one_on_success_are_noted(
    references: str, told: bool, findings: Findings, marked: Callable[[str], str]
) -> None:
    text = f"{SCORED}measures: {{latency: steps}}\n«reference: [{references}]"
    assert (f"I402 {marked(text)}" in findings(text)) == told


def test_a_second_reference_on_success_is_noted(
    findings: Findings, marked: Callable[[str], str]
) -> None:
    rate = "{measure: success, value: 0.5, status: x}"
    other = "{measure: latency, value: 35, status: x}"
    second = "«{measure: success, value: 0.4, status: y}"
    text = (
        f"{SCORED}measures: {{latency: steps}}\nreference: [{rate}, {other}, {second}]"
    )
    assert findings(text) == [f"I406 {marked(text)}"]


@pytest.mark.parametrize("value", [0.7, 0.6555, 0.6101, 0.6])
def test_the_margin_that_is_named_is_small_enough(
    value: float, examine: Examine, complete: Callable[[str], str]
) -> None:
    def remedies(margin: str) -> list[str]:
        text = f"{SCORED}margin: {margin}\nreference: [{{measure: success, value: {value}, status: x}}]\n"
        text += "construct: {name: x, kind: perception, abolished_by: [{lesion: blind, at_most: 0.61}]}"
        return [one.remedy for one in examine(complete(text))[1] if one.code == 329]

    [remedy] = remedies("0.1")
    pattern = r"Lower 'at_most' to [\d.]+(?:\. If the lesion leaves more, lower 'margin' to ([\d.]+))?\."
    named = re.fullmatch(pattern, remedy)
    assert named is not None
    assert (named[1] is None) == (value < 0.611)
    if named[1] is not None:
        assert remedies(named[1]) == []


def test_the_corridor_is_clean(findings: Findings) -> None:
    assert findings("") == []


def test_the_protocol_has_no_mistake(examine: Examine) -> None:
    specification, found = examine(RIGHT)
    assert specification is not None
    assert [str(one) for one in found if one.severity != "info"] == []


NOTHING_SAID = {
    "a limit that is drawn": "vars: {gap: 3}\n"
    + trial("{enter: goal, reward: 1, end: found}, {after: 99, end: lost}").replace(
        "limit: 9", "limit: gap"
    ),
    "a circle of variables with places": "vars: {v: goal, w: goal}\n"
    + trial(
        "{enter: goal, if: distance(v) < 9, reward: 1, set: {v: w}, end: found}, {enter: box, set: {w: v}}"
    ),
    "a set that is emptied": "vars: {seen: [goal]}\nmeasures: {m: distance(seen)}\n"
    + trial("{enter: goal, reward: 1, set: {seen: none}, end: found}"),
    "another action": trial(
        "{act: STAY, reward: 1, end: found}, {act: ROTATE_LEFT}, {enter: goal}"
    ),
    "another drawn time": "draw: {d: {of: {a: [3, 4], b: [2, 5]}}}\n"
    + trial("{after: a, reward: 1, end: found}, {after: b, end: lost}, {enter: goal}"),
    "entries of finish with conditions": trial(
        "{enter: goal, reward: 1, count: n}",
        "finish: [{if: n == 2, end: found}, {if: n == 1, end: lost}, {go: run}], ",
    ),
}


@pytest.mark.parametrize("text", NOTHING_SAID.values(), ids=list(NOTHING_SAID))
def test_nothing_is_said_of(text: str, findings: Findings) -> None:
    assert [one for one in findings(text) if not one.startswith("I")] == []


def test_a_search_that_is_too_long_says_nothing_about_the_limit(
    findings: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"trial: {{limit: 2, start: run, states: {{run: {{{FOUND}}}}}}}"
    assert [one.split()[0] for one in findings(text)] == ["W307"]
    monkeypatch.setattr(checks, "MAX_SITUATIONS", 3)
    assert findings(text) == []


#: Visible goals (W311): by their glyphs, and by the order of drawing.
VISIBLE = {
    "drawn goal": 'arena: {map: "S..Z", legend: {S: box, Z: {zone: goal, glyph: P}}}',
    "shown goal": state("show: {goal: P}"),
    "shown drawn goal": SIDES
    + "draw: {d: {of: {x: [box, goal]}}}\n"
    + trial("{enter: x, reward: 1, end: found}").replace(
        "run: {", "run: {show: {x: P}, "
    ),
}
VISIBLE["one of two signs, whose meaning nothing hides"] = (
    SIDES
    + "draw: {signs: {sample: side, into: [black, white]}, good: {per: subject, of: {good: [1, 2]}}}\n"
    + trial(
        "{enter: white, if: good == 1, reward: 1, end: found}, {enter: side, end: lost}"
    ).replace("run: {", "run: {show: {black: x, white: o}, ")
)
#: A sample is shown. A choice of places follows, or only a pause.
SAMPLE = SIDES + "draw: {d: {sample: side, into: [x]}}\ntrial:\n  limit: 30\n"
SAMPLE += "  start: sample\n  states:\n"
SAMPLE += "    sample: {show: {x: P}, rules: [{enter: x, reward: 1, go: wait}]}\n"
PAUSE = "    wait: {freeze: true, rules: [{after: 2, NEXT}]}\n"
CHOICE = "    choice: {rules: [{enter: x, reward: 1, end: found}]}\n"
VISIBLE["shown, and then a pause that ends the trial"] = SAMPLE + PAUSE.replace(
    "NEXT", "end: found"
)
VISIBLE["shown, and come back to"] = SAMPLE.replace(
    "[{enter", "[{enter: x, if: steps > 20, end: found}, {enter"
) + PAUSE.replace("NEXT", "go: sample")
#: Each square has an odour, all of them of one set: which one is new can't be seen.
ODOURS = (
    SIDES
    + "draw: {smell: {permute: [A, B], into: [old, new]}, signs: {sample: side, into: [one, two]}}\n"
    + trial("{enter: two, reward: 1, end: found}, {enter: one, end: lost}")
)
VISIBLE["the only odour"] = ODOURS.replace("run: {", "run: {show: {two: new}, ")
HIDDEN = {
    "bare goal": "",
    "one of two odours of one set": ODOURS.replace(
        "run: {", "run: {show: {one: old, two: new}, "
    ),
    "a sample, before a choice": SAMPLE + PAUSE.replace("NEXT", "go: choice") + CHOICE,
    "drawn like the start": 'arena: {map: "S..Z", legend: {S: {zone: box, glyph: P}, Z: {zone: goal, glyph: P}}}',
    "one of two drawn alike": 'arena: {map: "A.S.B", legend: {S: box, A: {zone: a, glyph: P}, B: {zone: b, glyph: P}}}'
    + "\ndraw: {d: {of: {x: [a, b]}}}\n"
    + trial("{enter: x, reward: 1, end: found}"),
    "shown in a block that does not count": (
        "schedule: {one: {trials: 2}, cued: {trials: 2}}\nsuccess: last == found\nestimand: {block: one}\n"
        + state("say: hidden").replace(
            "start: run", "start: [{if: block == cued, go: cued}, run]"
        )[:-3]
        + f", cued: {{show: {{goal: P}}, {FOUND}}}}}}}\n"
    ),
    "one of two signs, which a hidden draw makes the good one": SIDES
    + "draw: {signs: {sample: side, into: [black, white]}, good: {per: subject, of: {good: [1, 2]}}}\n"
    + "checks: [{at: run, hidden: good, chance: 0.5}]\n"
    + trial(
        "{enter: black, if: good == 1, reward: 1, end: found}, {enter: white, if: good == 2, reward: 1, end: found}, "
        "{enter: side, end: lost}"
    ).replace("run: {", "run: {show: {black: x, white: o}, "),
    "punished": 'arena: {map: "S..Z", legend: {S: box, Z: {zone: goal, glyph: P}}}\n'
    + trial("{enter: goal, reward: -1, end: found}"),
}


@pytest.mark.parametrize("text", VISIBLE.values(), ids=list(VISIBLE))
def test_a_goal_that_can_be_seen(
    text: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    specification, found = examine(complete(text))
    assert specification is not None, found
    assert [d.code for d in found if d.severity == "warning"] == [311]
    assert specification.goal_visible
    assert [d.code for d in specification.warnings] == [311]


@pytest.mark.parametrize("text", HIDDEN.values(), ids=list(HIDDEN))
def test_a_goal_that_cannot_be_seen(
    text: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    specification, found = examine(complete(text))
    assert specification is not None, found
    assert 311 not in [d.code for d in found]
    assert not specification.goal_visible


#: Two places in a drawn order: entering the first one pays.
PAIR = 'arena: {map: "A.S.B", legend: {S: box, A: {zone: a}, B: {zone: b}}, groups: {ab: [a, b]}}\n'
PAIR += "draw: {d: {sample: ab, into: [x, y]}}\n"


@pytest.mark.parametrize(
    ("shown", "visible"),
    [
        ({"x": "P", "y": "o"}, True),
        ({"x": "P", "y": "P"}, False),
        ({"x": "P", "a": "P", "b": "P"}, False),
    ],
)
def test_the_order_of_show_is_that_in_which_it_is_drawn(
    shown: dict[str, str],
    visible: bool,
    examine: Examine,
    complete: Callable[[str], str],
) -> None:
    for order in itertools.permutations(shown):
        show = ", ".join(f"{place}: {shown[place]}" for place in order)
        rules = trial("{enter: x, reward: 1, end: found}, {enter: y, end: lost}")
        specification, found = examine(
            complete(PAIR + rules.replace("run: {", f"run: {{show: {{{show}}}, "))
        )
        assert specification is not None, found
        assert specification.goal_visible == visible, show


def test_what_is_drawn_over_the_goal_hides_it(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    for show, visible in (("x: P, a: o, b: o", False), ("a: o, b: o, x: P", True)):
        rules = trial("{enter: x, reward: 1, end: found}, {enter: y, end: lost}")
        specification, found = examine(
            complete(PAIR + rules.replace("run: {", f"run: {{show: {{{show}}}, "))
        )
        assert specification is not None, found
        assert specification.goal_visible == visible, show


@pytest.mark.parametrize(
    "text",
    [
        TONES.format("tone_a", "tone_b", "tone_a", "tone_c"),
        TONES.format("odour1", "odour2", "odour1", "odour3"),
        TONES.format("TONE", "NOISE", "TONE", "NOISE"),
        TONES.format("TONE", "NOISE", "TONE", "LIGHT"),
        "vars: {errors: 20}\nmeasures: {got: errors}\n" + ERRING
        + "reference: [{measure: got, value: 4, better: lower, margin: 1, range: [0, 30], status: x}]",
        "vars: {errors: 40}\nmeasures: {got: errors}\nschedule: {one: {set: {errors: 20}}}\n" + ERRING
        + "reference: [{measure: got, value: 4, better: lower, margin: 1, range: [0, 30], status: x}]",
    ],
)  # fmt: skip
def test_names_and_first_values_that_are_meant(text: str, findings: Findings) -> None:
    assert not [one for one in findings(text) if one.startswith(("W339", "W340", "E"))]


@pytest.mark.parametrize(
    ("curve", "better", "warned"),
    [
        ("[9, 7, 8, 4]", "higher", True),
        ("[9, 7, 8, 4]", "lower", False),
        ("[9, 7, 8, 4]", "alike", False),
        ("[2, 2.5, 3, 4]", "lower", True),
        ("[2, 2.5, 3, 4]", "higher", False),
        ("[3, 8, 9, 4]", "lower", False),
        ("[4.9, 4.5, 4.4, 4]", "higher", False),
        # Steps of a plateau go up and down.
        ("[20, 12, 7, 5, 6, 4, 5, 4.5, 5.5, 4]", "higher", True),
        ("[20, 12, 7, 5, 6, 4, 5, 4.5, 5.5, 4]", "lower", False),
        ("[6, 4, 5, 4.5, 5.5, 4]", "higher", False),
    ],
)
def test_a_verdict_goes_the_way_of_the_animals(
    curve: str, better: str, warned: bool, findings: Findings
) -> None:
    text = (
        f"vars: {{errors: 20}}\nmeasures: {{got: errors}}\nschedule: {{one: {{sessions: {curve.count(',') + 1}}}}}\n"
        + f"reference: [{{measure: got, value: 4, curve: {curve}, better: {better}, margin: 1, range: [0, 30], status: x}}]\n"
        + ERRING
    )
    assert any(one.startswith("W341") for one in findings(text)) == warned


@pytest.mark.parametrize(
    ("rows", "warned"),
    [
        (["#####", "#S.Z.", "#####"], True),
        (["#####", "#S.Z", "#####"], True),
        (["## ##", "#S.Z#", "#####"], True),
        ([" ####", "#S.Z#", "#### "], False),
        (["S.Z"], False),
        (["  ###", "S...Z", "  ###"], False),
    ],
)
def test_a_hole_in_a_wall_is_told_and_an_open_arm_is_not(
    rows: list[str], warned: bool, findings: Findings
) -> None:
    art = "".join(f"    {row}\n" for row in rows)
    text = f"arena:\n  map: |2\n{art}  legend: {{S: box, Z: goal}}\n"
    assert any(one.startswith("W342") for one in findings(text)) == warned
