"""Visible goals (W311): by their glyphs, and by the order of drawing."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.protocol.short import FOUND, SIDES, Examine, state, trial

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
