"""Findings about a whole protocol: what cannot happen, be seen or be of use."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

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
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


WARNINGS = {
    "a measure that is best if nothing is done": (
        "W338", trial("{enter: box, count: presses}, {enter: goal, reward: 1, end: found}")
        + "measures: {got: presses}\n"
        + "reference: «[{measure: got, value: 4, better: lower, margin: 1, range: [0, 30], status: x}]"
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
        "trial: {limit: «9, start: run, states: {run: {rules: [{enter: goal, reward: 1, count: n}]}}, "
        "finish: [{if: n == 1, end: found}]}",
    ),
    "limit too low for what finish ends": (
        "W307",
        "trial: {limit: «2, start: run, states: {run: {rules: [{enter: goal, reward: 1, count: n}]}}, "
        "finish: [{if: n == 1, end: found}]}",
    ),
    "no way to an end": ("W307", 'arena: {map: "S.#Z", legend: {S: box, Z: goal}}\n' + WALK.replace("9", "«9")),
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
    assert findings(text) == ([f"I402 {marked(text)}"] if told else [])


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
