"""Groups as sequences, and draws in short form: draws and computations in lives."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import lives_for
from cheesebench.paradigms.arena.audit.validity import (
    columns,
    sample_beginnings,
    sample_draws,
)
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

Live = Callable[..., ArenaSubject]

PLUS = """
arena: {map: "#####\\n#abc#\\n#####\\n", legend: {a: one, b: [two], c: three}, groups: {site: [one, two, three]}}
""".replace("[two]", "two")
WAIT = "trial: {limit: 1, start: run, states: {run: {rules: [{act: STAY, end: done}]}}}\nstart: {at: two, face: E}\n"


def drawn(life: ArenaSubject, trials: int, *names: str) -> list[tuple[object, ...]]:
    """Return the draws of this many trials."""
    found = []
    for _ in range(trials):
        life.begin_trial()
        found.append(tuple(life.values[name] for name in names))
        life.step(3)
    return found


def measured(live: Live, measure: str, more: str = "") -> object:
    life = live(
        f"{PLUS}{WAIT}{more}\nschedule: {{main: {{trials: 9}}}}\nmeasures: {{m: '{measure}'}}\n"
    )
    life.begin_trial()
    life.step(3)
    return life.ending().measures["m"]


def test_the_place_of_a_member_and_the_member_at_a_place(live: Live) -> None:
    assert measured(live, "member(site, 3)") == "three"
    assert measured(live, "member(site, subject + 1)") == "one"
    assert measured(live, "member(site, trial * 0.5)") is None
    assert measured(live, "position(where(site), site)") == 2
    assert measured(live, "position(none, site)") == 0
    frame = "draw: {d: {per: subject, of: {home: [three], frame: [1]}}}"
    assert (
        measured(
            live, "member(site, (position(home, site) + frame) % size(site) + 1)", frame
        )
        == "two"
    )


def test_permutations_fill_several_variables(live: Live) -> None:
    text = (
        PLUS
        + WAIT
        + "draw: {d: {order: shuffle, permute: [x, y, z], into: [first, second]}}\nschedule: {m: {trials: 12}}"
    )
    found = drawn(live(text), 12, "first", "second")
    assert Counter(found) == dict.fromkeys(itertools.permutations("xyz", 2), 2)
    balanced = text.replace("shuffle", "balanced")
    orders = {
        drawn(live(balanced, 5, subject), 1, "first", "second")[0]
        for subject in range(6)
    }
    assert orders == set(itertools.permutations("xyz", 2))


def test_weights_are_how_often_a_row_counts(live: Live) -> None:
    text = (
        PLUS
        + WAIT
        + "draw: {d: {order: shuffle, of: {pays: [1, 0]}, weights: [4, 1]}}\nschedule: {m: {trials: 2000}}"
    )
    found = [value for (value,) in drawn(live(text), 20, "pays")]
    assert [found[block : block + 5].count(1) for block in range(0, 20, 5)] == [4] * 4
    independent = drawn(live(text.replace("order: shuffle, ", "")), 2000, "pays")
    assert 1500 < independent.count((1,)) < 1700


def test_members_are_dealt_out_with_replacement(live: Live) -> None:
    text = (
        PLUS
        + WAIT
        + "draw: {d: {sample: site, distinct: false, into: [p, q]}}\nschedule: {m: {trials: 300}}"
    )
    assert set(drawn(live(text), 300, "p", "q")) == set(
        itertools.product(("one", "two", "three"), repeat=2)
    )


def test_a_range_of_numbers(live: Live) -> None:
    text = (
        PLUS
        + WAIT
        + (
            "draw: {d: {order: cycle, of: {n: {from: 0.1, to: 0.5, step: 0.1}, k: {from: 2, to: 6}}}}\n"
            "schedule: {m: {trials: 9}}"
        )
    )
    assert drawn(live(text), 6, "n", "k") == [
        (0.1, 2),
        (0.2, 3),
        (0.3, 4),
        (0.4, 5),
        (0.5, 6),
        (0.1, 2),
    ]


def test_a_column_is_another_one_turned(live: Live) -> None:
    draw = "draw: {d: {order: cycle, of: {p: [one, two, three], q: {turned: p, from: three}}}}\n"
    pairs = [("one", "three"), ("two", "one"), ("three", "two")]
    assert (
        drawn(live(PLUS + WAIT + draw + "schedule: {m: {trials: 9}}"), 3, "p", "q")
        == pairs
    )


def test_the_audit_of_draws_knows_them(load: Callable[[str], Specification]) -> None:
    text = (
        PLUS
        + WAIT.replace("act: STAY, end: done", "enter: p, end: done")
        + (
            "draw: {d: {permute: [one, three], into: [p, q]}}\nschedule: {m: {trials: 20}}\nsuccess: last == done"
        )
    )
    paradigm = ArenaParadigm(load(text))
    lives = (
        sample_draws(paradigm, lives_for(paradigm.specification, 200, 0)),
        sample_beginnings(paradigm, 50, 0),
    )
    found = {column.name: column for column in columns(paradigm.specification, *lives)}
    assert found["p"].values == 2
    assert found["p"].is_answer
    assert found["p"].share.value == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize(
    ("value", "entered"),
    [
        ("member(site, trial)", True),
        ("start_at", True),
        ("none", True),
        ("member(other, trial)", False),
    ],
)
def test_a_rule_waits_for_the_places_that_its_variable_can_hold_and_for_no_others(
    live: Live, value: str, entered: bool
) -> None:
    text = (
        PLUS.replace("}}\n", ", other: [two]}}\n")
        + f"""
vars: {{goal: none}}
draw: {{start_at: {{of: {{start_at: [three, one]}}}}}}
start: {{at: two, face: E}}
trial:
  limit: 3
  start: run
  states: {{run: {{set: {{goal: "{value}"}}, rules: [{{enter: goal, end: there}}]}}}}
schedule: {{main: {{trials: 9}}}}
"""
    )
    program = live(text)._program
    listens = bool(
        program.states["run"].listen & program.geometry.bit.get(("enter", "three"), 0)
    )
    assert listens == entered
