"""What follows from a schedule and an estimand: which trials are judged, and when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import FORWARD, RUNNING, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena.audit.runs import DARKNESS, is_judged
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.protocol.specification import BlockSpec, UntilSpec
from cheesebench.statistics.sample import enter_estimand
from tests.protocol.short import FOUND, Examine, state, trial

SHIPPED = Path(__file__).parents[2] / "protocols"
#: Sessions of 4, 4, 3, 3 and 5 trials.
BLOCKS = (
    "schedule: {one: {sessions: 2, trials: 4}, two: {sessions: 2, trials: 3}, three: {trials: 5}}\n"
    "success: last == found\n"
)


@pytest.fixture
def accept(
    examine: Examine, complete: Callable[[str], str]
) -> Callable[[str], Specification]:
    def accepted(text: str) -> Specification:
        specification, found = examine(complete(text))
        assert specification is not None, found
        return specification

    return accepted


Accept = Callable[[str], Specification]


@pytest.mark.parametrize(
    ("estimand", "said", "judged", "dose"),
    [
        ("", "all", {1: 4, 2: 4, 3: 3, 4: 3, 5: 5}, (0, 19)),
        ("{last: 7}", "last:7", {4: 2, 5: 5}, (12, 7)),
        ("{last: 5}", "last:5", {5: 5}, (14, 5)),
        ("{last: 19}", "last:19", {1: 4, 2: 4, 3: 3, 4: 3, 5: 5}, (0, 19)),
        ("{block: two}", "block:two", {3: 3, 4: 3}, (8, 6)),
        ("{block: [one, three]}", "block:one,three", {1: 4, 2: 4, 5: 5}, (6, 13)),
        ("{where: steps > 1}", "all", {1: 4, 2: 4, 3: 3, 4: 3, 5: 5}, None),
        ("{where: trial > 1}", "all", {1: 3, 2: 3, 3: 2, 4: 2, 5: 4}, (5, 14)),
        ("{where: not trial == 1}", "all", {1: 3, 2: 3, 3: 2, 4: 2, 5: 4}, (5, 14)),
        ("{where: trial % 2 == 0}", "all", {1: 2, 2: 2, 3: 1, 4: 1, 5: 2}, (10, 8)),
        ("{block: two, where: trial < 3}", "block:two", {3: 2, 4: 2}, (9, 4)),
        ("{block: two, where: session > 1}", "block:two", {4: 3}, (11, 3)),
        ("{last: 6, where: trial > 1}", "last:6", {4: 2, 5: 4}, (13, 6)),
        ("{where: block == two}", "all", {3: 3, 4: 3}, (8, 6)),
        ("{last: 7, where: block != three}", "last:7", {2: 1, 3: 3, 4: 3}, (7, 7)),
    ],
)
def test_an_estimand_chooses_trials_of_sessions(
    estimand: str,
    said: str,
    judged: dict[int, int],
    dose: tuple[int, int] | None,
    accept: Accept,
) -> None:
    one = accept(BLOCKS + (f"estimand: {estimand}" if estimand else ""))
    assert one.estimand == said
    assert one.judged_sessions == judged
    assert one.planned_trials == 19
    assert one.sessions == (("one", 4),) * 2 + (("two", 3),) * 2 + (("three", 5),)
    assert (one.dose and one.dose[:2]) == dose


@pytest.mark.parametrize(
    ("estimand", "after"),
    [
        ("{block: one}", {"two", "three"}),
        ("{block: [one, two]}", {"three"}),
        ("{block: three}", set()),
        ("{last: 2}", set()),
    ],
)
def test_blocks_after_the_last_judged_one_do_not_count(
    estimand: str, after: set[str], accept: Accept
) -> None:
    assert accept(f"{BLOCKS}estimand: {estimand}").blocks_after_judged == after


UNTIL = "until: {outcome: found, count: 1}"


@pytest.mark.parametrize(
    ("early", "estimand", "blocks", "part"),
    [
        ("", "all", "one two three", False),
        ("", "{block: two}", "two", False),
        ("", "{last: 3}", "three", True),
        ("", "{last: 5}", "three", False),
        ("", "{last: 6}", "two three", True),
        ("", "{last: 11}", "two three", False),
        ("", "{last: 30}", "one two three", False),
        ("one", "{last: 5}", "three", False),
        ("one", "{last: 11}", "two three", False),
        ("one", "{last: 12}", "one two three", True),
        ("one", "{last: 19}", "one two three", False),
        ("three", "{last: 5}", "two three", True),
        ("", "{where: block == two}", "two", False),
        ("", "{last: 6, where: block == two}", "two", False),
        ("", "{last: 8, where: block != two}", "one three", True),
        ("", "{last: 13, where: block != two}", "one three", False),
        ("", "{last: 5, where: steps > 3}", "one two three", True),
        ("", "{last: 6, where: block == two and steps > 3}", "two", False),
        ("", "{last: 8, where: block == three or steps > 3}", "one two three", True),
    ],
)
def test_an_audit_judges_whole_blocks(
    early: str, estimand: str, blocks: str, part: bool, accept: Accept
) -> None:
    """In lives of a random subject, it judges exactly the trials that count, unless
    they are a part of a block.
    """
    text = BLOCKS.replace(f"{early}: {{", f"{early}: {{{UNTIL}, ") if early else BLOCKS
    one = accept(f"{text}estimand: {estimand}")
    assert one.judged_blocks == tuple(blocks.split())
    assert one.judges_part_of_a_block is part
    lives = [_random_life(one, subject) for subject in range(12)]
    alike = [
        enter_estimand(one.estimand, life) == tuple(t for t in life if t.is_audited)
        for life in lives
    ]
    assert all(alike) is not part


class Lived(NamedTuple):
    number: int
    block: str
    compared: bool
    is_audited: bool
    missing: str = ""


def _random_life(specification: Specification, subject: int) -> list[Lived]:
    life = ArenaSubject(Program(specification), DARKNESS, 0, subject)
    chance, lived = Random(subject), list[Lived]()
    eager = chance.random()
    while life.begin_trial() is not None:
        while life.step(FORWARD if chance.random() < eager else STAY)[2] == RUNNING:
            pass
        result = life.result()
        is_audited = is_judged(result, specification) is not None
        lived.append(Lived(len(lived), result.block, result.compared, is_audited))
    return lived


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("block == two", [False, True, False]),
        ("block != two", [True, False, True]),
        ("block == two or steps > 3", [True, True, True]),
        ("block == two and steps > 3", [False, True, False]),
        ("block != two and block != one", [False, False, True]),
        ("block == one or block == two", [True, True, False]),
        ("steps > 3", [True, True, True]),
    ],
)
def test_a_reference_cannot_be_about_blocks_that_a_condition_rules_out(
    where: str, holds: list[bool], accept: Accept
) -> None:
    one = accept(f"{BLOCKS}estimand: {{where: {where}}}")
    assert [may for *_, may in one.planned_blocks] == holds
    assert [block[:3] for block in one.planned_blocks] == [
        ("one", 2, 4),
        ("two", 2, 3),
        ("three", 1, 5),
    ]


def test_until_makes_the_number_of_sessions_vary(accept: Accept) -> None:
    until = "until: {outcome: found, count: 3}"
    text = BLOCKS.replace("one: {sessions: 2,", f"one: {{{until}, sessions: 2,")
    assert accept(text).sessions_vary
    assert accept(text).dose is None
    # In one session it does not, nor after what is judged.
    single = BLOCKS.replace("three: {", f"three: {{{until}, ")
    assert not accept(single).sessions_vary
    late = BLOCKS.replace("two: {", f"two: {{{until}, ")
    assert accept(late).sessions_vary
    assert not accept(f"{late}estimand: {{block: one}}").sessions_vary


@pytest.mark.parametrize(
    ("lesion", "why"),
    [
        ("blind", ""),
        ("hide=landmarks", "there are no landmarks"),
        ("hide=goal", ""),
        ("hide=gaol", "there is no zone, group, door, solid or landmark 'gaol'"),
        ("amnesia=run", ""),
        ("amnesia=wait", "there is no state 'wait'"),
        ("hide=text:run", ""),
        ("hide=text:wait", "there is no state 'wait'"),
    ],
)
def test_a_lesion_needs_what_it_takes_away(
    lesion: str, why: str, accept: Accept
) -> None:
    said, _, known = accept("").obstacle(Lesion.parse(lesion)).partition(", only ")
    assert said == why
    assert bool(known) == ("there is no " in why)


def test_a_column_can_hold_what_its_draws_deal_out(accept: Accept) -> None:
    one = accept(
        "draw:\n  some: {pick: 1, of: {some: [goal, box]}}\n  dealt: {sample: some, into: [a]}\n"
        f"trial: {{limit: 9, start: run, states: {{run: {{{FOUND}}}}}}}"
    )
    assert one.drawn("a") == ["goal", "box"]
    assert one.drawn("b") == []


def test_the_bar_is_the_reference_less_the_margin(accept: Accept) -> None:
    animals = "reference: [{measure: success, value: 0.8, status: x}]\n"
    assert accept("").bar is None
    rate = accept(f"{BLOCKS}margin: 0.1\n{animals}")
    assert rate.bar == pytest.approx(0.7)
    assert rate.judged is rate.reference
    measured = (
        "measures: {latency: steps}\nreference: [{measure: latency, value: 5, better: lower, "
        "margin: 1, range: [0, 9], status: x}]"
    )
    one = accept(BLOCKS + measured)
    assert one.bar == pytest.approx(6)
    assert one.judged is one.references[0]
    assert one.reference is None


@pytest.mark.parametrize(
    ("noted", "kept"),
    # Two of the last three trials: one miss may lie between them.
    [
        ("", ()),
        ("+", (True,)),
        ("-+", (True,)),
        ("+-+", (True, False, True)),
        ("++-", (False, True, True)),
        ("+--", ()),
        ("-+-", (False, True)),
    ],
)
def test_trials_that_a_criterion_can_still_count(
    noted: str, kept: tuple[bool, ...]
) -> None:
    until = UntilSpec(frozenset({"+"}), count=2, of=3)
    assert until.still_counts([*noted]) == kept
    assert until.met(noted[-3:]) == (noted[-3:].count("+") >= 2)


@pytest.mark.parametrize(
    ("most", "sittings"),
    [
        (None, [("one", 6, 4)]),
        (99, [("one", 6, 4)]),
        (10, [("one", 2, 4), ("one", 1, 2)]),
        (3, [("one", 1, 3)]),
    ],
)
def test_the_last_session_of_a_block_may_be_cut_short(
    most: int | None, sittings: list[tuple[str, int, int]]
) -> None:
    block = BlockSpec("one", 2, 4, 3, (), None, most)
    assert [*block.sittings] == sittings
    assert block.planned == sum(sessions * trials for _, sessions, trials in sittings)


@pytest.mark.parametrize(
    ("keys", "training"),
    [
        ("value: 0.8", ""),
        ("value: 0.8, dose: {before: 3, judged: 4}", "3 + 4 trials (declared)"),
        (
            "value: 0.8, sd: 0.1, n_animals: 9, dose: {before: 3, judged: 4, of: days}",
            "3 + 4 days",
        ),
    ],
)
def test_the_training_of_the_animals(keys: str, training: str, accept: Accept) -> None:
    text = f"{BLOCKS}reference: [{{measure: success, {keys}, status: x}}]"
    reference = accept(text).reference
    assert reference is not None
    assert reference.training == training


def test_what_a_protocol_says_of_itself(accept: Accept) -> None:
    plain = accept("")
    assert (plain.most_calls, plain.goal_visible) == (9, False)
    assert plain.states["run"].entry.empty
    assert not plain.states["run"].rules[0].effects.empty
    drawn = accept(
        "vars: {gap: 5}\n" + trial("{enter: goal, end: a}").replace("9", "gap")
    )
    assert drawn.most_calls == 1
    assert accept(state("show: {goal: P}")).goal_visible


def test_a_dialogue_has_no_arena() -> None:
    dialogue = Catalogue().load(SHIPPED / "cogeval" / "n7tree.protocol.yaml")
    with pytest.raises(ProtocolError) as caught:
        with_arena(dialogue)
    said = f"'{dialogue.name}' is a dialogue, which has no arena. Run it: "
    assert f"{dialogue.path}:1:1: error E229: {said}" in str(caught.value)
