"""Films of text with values filled in; the same in lanes, for lesions
and for controls.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.audit.exact import upper_bound
from cheesebench.paradigms.arena.audit.lesions import Order, measure
from cheesebench.paradigms.arena.controls import LabelsSwapped
from cheesebench.paradigms.arena.environment import text_space
from cheesebench.paradigms.arena.scenes import hidden_by
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from cheesebench.protocol.expressions import (
    LoneBraceError,
    as_text,
    filled,
    names_in_text,
    text_parts,
)

Film = Callable[..., str]

CORRIDOR = """
arena: {map: "######\\n#S..Z#\\n######\\n", legend: {S: box, Z: goal}}
start: {at: box, face: E}
"""


def test_text_follows_values(film: Film) -> None:
    text = CORRIDOR + (
        "vars: {left: 2.5, place: none, seen: []}\n"
        "trial:\n  limit: 3\n  start: run\n  states:\n    run:\n"
        "      say: '{{{left}}} {place} {seen} {steps_done}'\n"
        "      rules:\n        - {act: FORWARD, set: {left: left - 1, place: box}, add: {seen: goal}, "
        "count: steps_done}\n"
    )
    assert [
        line.split("} ")[0].split("{")[1] for line in film(text, "FLF").splitlines()
    ] == [
        "2.5",
        "1.5",
        "1.5",
        "0.5",
    ]
    assert "{2.5} none none 0" in film(text, "F").splitlines()[0]
    assert "{1.5} box goal 1" in film(text, "F").splitlines()[1]


def test_what_values_look_like() -> None:
    assert filled("a {x} b", {"x": 0.1 + 0.2}) == "a 0.3 b"
    assert as_text(True) == as_text(1.0) == "1"
    assert as_text(1_000_000) == as_text(1e6) == "1e+06"
    assert as_text(-0.0) == as_text(0) == "0"
    assert as_text(frozenset({"b", "a"})) == "a, b"
    assert as_text(frozenset()) == as_text(None) == "none"
    assert filled("{{x}} {{{x}}}", {"x": 7}) == "{x} {7}"
    assert names_in_text(["{ a } {b}", "{a}"]) == ("a", "b")
    assert text_parts("plain") == ("plain",)
    for text, offset in (("a{", 1), ("}", 0), ("{a{b}", 0), ("{{{", 2)):
        with pytest.raises(LoneBraceError) as caught:
            text_parts(text)
        assert caught.value.offset == offset


#: A value drawn, one of a variable, one that a block sets, and sets that grow.
LONG = CORRIDOR + (
    "draw: {tone: {of: {tone: [high, a_tone_whose_name_is_longer_than_all_the_rest]}}, "
    "pair: {pick: 2, of: {sign: [star, moon, sun]}}}\n"
    "vars: {seen: [], level: 2.5}\n"
    "trial: {limit: 4, start: run, states: {run: {say: '{tone} {sign} {level} {seen}', rules: ["
    "{act: FORWARD, add: {seen: tone}}, {act: ROTATE_RIGHT, set: {level: level / 3}}]}}}\n"
    "schedule: {one: {trials: 6, set: {level: 1234567}}}\n"
)


def test_every_text_fits_the_space_of_observations(
    load: Callable[[str], Specification],
) -> None:
    paradigm = ArenaParadigm(load(LONG))
    view = installed_plugins().view("ascii_2d")
    space = text_space(paradigm, view)
    life, read = paradigm.environment(view, 0, 0), []
    while (observation := life.begin_trial()) is not None:
        read += [observation, life.step(2)[0], life.step(0)[0]]
    assert len(read) == 18
    assert any("a_tone" in text for text in read)
    assert all(text in space for text in read)


TWO = CORRIDOR + (
    "draw: {tone: {order: cycle, of: {tone: [high, low]}}, level: {order: cycle, of: {db: [60, 7.5]}}}\n"
    "trial: {limit: 4, start: run, states: {run: {say: 'TONE {tone} {db}', rules: [{enter: goal, go: after}]}, "
    "after: {say: GO, rules: [{after: 1, end: done}]}}}\n"
)


def test_a_lesion_hides_the_text_of_a_state_whatever_it_is_filled_with(
    load: Callable[[str], Specification],
) -> None:
    (pattern,) = hidden_by(Lesion.parse("hide=text:run"), load(TWO)).texts
    assert all(pattern.fullmatch(text) for text in ("TONE high 60", "TONE low 7.5"))
    assert not pattern.fullmatch("GO")
    assert not pattern.fullmatch("TONE high")


def test_swapped_labels_leave_text_with_values(
    load: Callable[[str], Specification],
) -> None:
    life = LabelsSwapped(load(TWO), 1).environment(
        installed_plugins().view("ascii_2d"), 1, 0
    )
    assert "TONE high 60" in str(life.begin_trial())
    for _ in range(3):
        observation = life.step(0)[0]
    assert "GO" not in observation


CHOICE = """
arena:
  map: |
    #######
    #l.S.r#
    #######
  legend: {S: box, l: left, r: right}
  groups: {arm: [left, right]}
draw: {food: {of: {food: [left, right]}}}
start: {at: box, face: N}
trial:
  limit: 20
  start: run
  states:
    run:
      say: "FOOD {food}"
      rules: [{enter: arm, if: it == food, reward: 1, end: found}, {enter: arm, end: empty}]
schedule: {main: {trials: 10}}
success: last == found
"""


@pytest.mark.parametrize(
    ("lesion", "ceiling"), [("intact", 1.0), ("hide=text:run", 0.5), ("hide=text", 0.5)]
)
def test_the_lesion_audit_reads_text_with_values(
    lesion: str, ceiling: float, load: Callable[[str], Specification]
) -> None:
    paradigm = ArenaParadigm(load(CHOICE))
    assert upper_bound(Adversary(paradigm, Lesion.parse(lesion), 1.0)) == pytest.approx(
        ceiling
    )
    rate = measure(paradigm, Order(Lesion.parse(lesion), 0.05, 0)).found
    assert rate.low <= ceiling <= rate.high
