"""Lives in every protocol of the zoo, trial by trial; parts of a compiled protocol."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import (
    Program,
    _members,
    constant_value,
    groups_watched,
    names_in,
    plain_name,
    read_place,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.specification import Place
from tests.paradigms.zoo import ZOO, load
from tests.stored import check_stored

TRIALS, SUBJECTS = 5, 2


def led(name: str, subject: int) -> Iterator[str]:
    """Lead the first trials of a life at random, mostly forward."""
    program = ArenaParadigm(load(name)).program
    life = ArenaSubject(program, installed_plugins().view("ascii_2d"), 5, subject)
    chance = random.Random(f"{name} {subject}")
    for _ in range(TRIALS):
        try:
            if life.begin_trial() is None:
                return
            total, status = 0.0, RUNNING
            while status == RUNNING:
                action = chance.choices(range(4), (5, 2, 2, 1))[0]
                _, reward, status = life.step(action)
                total += reward
        except ProtocolError as error:
            yield f"  {type(error).__name__}"
            return
        one = life.result()
        counts = {key: value for key, value in one.counters.items() if value}
        measures = {key: shown(value) for key, value in one.measures.items()}
        yield (
            f"  {subject} {one.block} {one.session}: {one.outcome} {one.success} "
            f"{one.compared} {life.steps} {total:.6g} {one.path_length} {one.bumps} {counts} {measures}"
        )


def shown(value: object) -> object:
    return round(value, 6) if isinstance(value, float) else value


def test_lives_in_the_zoo_are_compared_with_what_is_stored() -> None:
    lines = []
    for name in ZOO:
        lines.append(name)
        for subject in range(SUBJECTS):
            lines += led(name, subject)
    check_stored("lives.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("value", "names", "told", "members"),
    [
        (None, [], "none", set()),
        ("left", ["left"], "left", {"left"}),
        (3, ["3"], "3", {3}),
        (frozenset({"right", "left"}), ["left", "right"], "left or right", {"left", "right"}),
        (frozenset(), [], "", set()),
    ],
)  # fmt: skip
def test_a_value_names_places(
    value: ex.RuntimeValue, names: list[str], told: str, members: set[Any]
) -> None:
    assert names_in(value) == names
    assert plain_name(value) == told
    assert _members(value) == members


def test_only_a_literal_number_is_constant() -> None:
    one, v = ex.Number(1.5), ex.Variable("v")
    assert constant_value(one) == 1.5
    assert constant_value(ex.Unary("-", one)) == -1.5
    others = [None, v, ex.Unary("-", v), ex.Unary("not", one), ex.Binary("+", one, one)]
    assert {constant_value(other) for other in others} == {None}


def test_a_place_is_named_or_held() -> None:
    memory = SimpleNamespace(it="left", values={"goal": "right", "it": "gate"})
    places = [
        Place("box", False),
        Place("goal", True),
        Place("it", True),
        Place("it", False),
    ]
    found = [read_place(one)(memory) for one in places]
    assert found == ["box", "right", "left", "it"]


TWO_ZONES = """
arena: {map: "l.S.r", legend: {S: box, l: left, r: right}, groups: {arm: [left, right], end: [left]}}
vars: {v: 0, goal: left, seen: []}
start: {at: box, face: E}
success: where(arm) == left or (time(end) > 1 and where(end) == left)
trial:
  limit: 9
  start: one
  states:
    one:
      rules:
        - {enter: left, reward: REWARD, add: {seen: it}, set: {goal: VALUE}, end: found}
        - {enter: goal, remove: {seen: goal}, end: found}
"""


@pytest.mark.parametrize(
    ("reward", "may_pay"), [("1", True), ("0", False), ("-2", False), ("v", True)]
)
def test_what_is_no_literal_may_pay(
    load: Callable[[str], Specification], reward: str, may_pay: bool
) -> None:
    text = TWO_ZONES.replace("REWARD", reward).replace("VALUE", "right")
    program = ArenaParadigm(load(text)).program
    first, second = program.states["one"].rules
    assert (first.effects.may_pay, second.effects.may_pay) == (may_pay, False)


def test_groups_are_watched_where_their_last_member_is_asked_for(
    load: Callable[[str], Specification],
) -> None:
    specification = load(TWO_ZONES.replace("REWARD", "1").replace("VALUE", "right"))
    assert groups_watched(specification.success) == {"arm", "end"}
    assert groups_watched(None) == set()


@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("right", ["left", "right"]),
        ("goal", []),
        ("none", ["left"]),
        ("member(arm, v + 1)", ["left", "left", "right"]),
    ],
)
def test_what_a_variable_can_hold_is_what_it_is_given(
    load: Callable[[str], Specification], value: str, held: list[str]
) -> None:
    text = TWO_ZONES.replace("REWARD", "1").replace("VALUE", f'"{value}"')
    program: Program = ArenaParadigm(load(text)).program
    assert program._assigned("goal") == held
    assert program._assigned("seen") == []
