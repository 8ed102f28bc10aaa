"""Policies that never observe do what their names say."""

from __future__ import annotations

import random

import pytest

from cheesebench.interfaces import ACTION_LETTERS, STAY
from cheesebench.paradigms.arena.audit.policies import (
    CYCLE,
    Policy,
    cycles,
    judged,
    mutated,
    policy,
    spelt,
)


def made(name: str, seed: int = 0) -> Policy:
    return policy(name, random.Random(seed))


def trial(subject: Policy, felt: str) -> str:
    """Return the actions of one trial. ``felt`` has what follows each action: ``#``
    blocked, ``+`` a reward, ``-`` a cost, ``.`` nothing.
    """
    subject.begin()
    actions, last = [], "."
    for sign in felt:
        reward = {"+": 1.0, "-": -1.0}.get(last, 0.0)
        actions.append(subject.act(last == "#", reward))
        last = sign
    return spelt(actions)


@pytest.mark.parametrize(
    ("name", "felt", "actions"),
    [
        (f"{CYCLE}FFR", ".......", "FFRFFRF"),
        ("bump 45 L", "..#..#..", "FFFLFFLF"),
        ("bump 90 R", ".#......", "FFRRFFFF"),
        ("bump 135 alternately", "#....#....", "FLLLFFRRRF"),
        ("bump 180 L", "#......", "FLLLLFF"),
        # To the wall on the left after a step; away from it when blocked.
        ("along the wall 45 L", "..#.#..#....", "FLFRFRFLFLFL"),
        ("along the wall 90 R", "..#...", "FRRFRR"),
    ],
)
def test_how_they_go(name: str, felt: str, actions: str) -> None:
    assert trial(made(name), felt) == actions


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        ("bump any L", {"L", "LL", "LLL", "LLLL"}),
        ("bump 45 randomly", {"L", "R"}),
        ("bump 135 randomly", {"LLL", "RRR"}),
    ],
)
def test_a_turn_at_random_is_any_of_them(name: str, turns: set[str]) -> None:
    found = {trial(made(name, seed), "#.....").strip("F") for seed in range(60)}
    assert found == turns


def test_jitter_is_a_turn_now_and_then() -> None:
    assert set(trial(made("bump 45 randomly"), "." * 200)) == {"F"}
    actions = trial(made("bump 45 randomly, jitter 0.1"), "." * 2000)
    assert 140 < len(actions.replace("F", "")) < 260
    assert {"L", "R"} < set(actions)


@pytest.mark.parametrize(("shift", "kept"), [("1", 0), ("0.5", 0.5), ("0.2", 0.8)])
def test_an_action_is_kept_after_a_win_and_changed_after_a_cost(
    shift: str, kept: float
) -> None:
    felt = "+.-" * 500
    actions = trial(made(f"win-stay action, shift {shift}"), felt)
    same = {sign: list[bool]() for sign in felt[:3]}
    for sign, one, then in zip(felt, actions, actions[1:], strict=False):
        same[sign].append(one == then)
    assert all(same["+"])
    assert not any(same["-"])
    assert sum(same["."]) / len(same["."]) == pytest.approx(kept, abs=0.07)


def test_the_best_trial_is_replayed_once_or_in_a_loop() -> None:
    once, again = (
        made(f"replay{how}, else forward 4:1:1") for how in ("", " in a loop")
    )
    for subject in (once, again):
        lost = trial(subject, "." * 9)
        subject.end(0.0)
        won = trial(subject, "." * 9)
        subject.end(1.0)
        assert lost != won
        assert trial(subject, "." * 9) == won
        subject.end(0.5)  # worse: the other one stays
        longer = trial(subject, "." * 40)
        assert longer[:9] == won
        assert (longer == (won * 5)[:40]) == (subject is again)
        subject.end(1.0)  # as good: the new one
        assert trial(subject, "." * 40) == longer


def test_a_string_that_earned_is_repeated_until_it_earns_nothing_twice() -> None:
    for seed in range(9):
        subject = made("win-stay string, else uniform", seed)
        actions = trial(subject, "..+" + "." * 30)
        assert actions[3:9] == actions[:3] * 2
        assert len(set(actions[9:])) > 1
        assert trial(made("win-stay string, else uniform", seed), "..+" * 9) == (
            actions[:3] * 9
        )


@pytest.mark.parametrize("most", [4, 100, 10_000])
def test_cycles_are_the_constant_ones_and_others_up_to_a_number(most: int) -> None:
    names = cycles(3, most)
    assert names[:4] == [f"{CYCLE}{letter}" for letter in ACTION_LETTERS]
    assert len(names) == len(set(names)) == min(most, len(cycles(3, 20_000)))
    assert not {f"{CYCLE}{spelt([STAY] * n)}" for n in (2, 3)} & set(names)
    assert names == cycles(3, most)
    if most > 100:
        assert {f"{CYCLE}FL", f"{CYCLE}FFFLLFFFRR", f"{CYCLE}FRRRRFR"} <= set(names)
        assert names != cycles(4, most)


def test_every_name_makes_its_policy() -> None:
    for name in (*judged(), *cycles(0, 50)):
        first, second = (trial(made(name, 1), "..#..+.-" * 20) for _ in range(2))
        assert first == second, name


def test_a_mutation_is_small_and_never_empty() -> None:
    chance, actions = random.Random(0), [0, 1, 2, 3]
    found = [mutated(actions, chance) for _ in range(300)]
    assert all(found)
    assert sum(one == actions for one in found) < 60
    assert {len(one) < 4 for one in found} == {True, False}
    assert actions == [0, 1, 2, 3]
    assert max(len(mutated([0] * 80, chance)) for _ in range(100)) == 80
