"""Attacks by hand on four of the default protocols: a policy that lacks the construct
is right as often as chance, by symmetry.

The planner of the audit searches for further attacks; these ones succeeded against
earlier versions. They run over whole cycles of subjects, so that every rate is exact
unless it depends on an independent draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cheesebench.auditing import audit_specification
from cheesebench.commands.common import installed_catalogue
from cheesebench.interfaces import RUNNING, STAY, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.paradigms.arena.tables import Tables, destination, shortest_path
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import with_arena

CATALOGUE = installed_catalogue()
VIEW = installed_plugins().view("ascii_2d")
LEVERS = ("lever_north", "lever_south")
SIDES = ("west", "east")
#: A policy's memory of its life.
Memory = dict[str, Any]
#: Returns the next place to go to (None: stay), from life and memory; called after
#: every step.
Policy = Callable[[ArenaSubject, Memory], str | None]


def rate(
    name: str, policy: Policy, subjects: int = 8, seeds: int = 3
) -> tuple[float, int]:
    """Return a policy's success rate in judged trials, and their number."""
    paradigm = ArenaParadigm(with_arena(CATALOGUE.find(name)))
    judged = [
        result
        for seed in range(seeds)
        for subject in range(subjects)
        for result in lived(ArenaSubject(paradigm.program, VIEW, seed, subject), policy)
        if result["block"] in paradigm.specification.judged_blocks
    ]
    return sum(result["success"] for result in judged) / len(judged), len(judged)


def lived(life: ArenaSubject, policy: Policy) -> list[Mapping[str, Any]]:
    """Live a whole life by a policy."""
    memory = Memory(rewards=[], trial=0)
    results: list[Mapping[str, Any]] = []
    while life.begin_trial() is not None:
        status, memory["rewards"], memory["trial"] = RUNNING, [], memory["trial"] + 1
        while status == RUNNING:
            place = None if life.waiting else policy(life, memory)
            _, reward, status = life.step(
                STAY if place is None else towards(life, place)
            )
            memory["rewards"].append(reward)
        memory["paid"] = sum(memory["rewards"])
        result = life.result()
        results.append({"success": bool(result.success), "block": result.block})
    return results


def is_in(life: ArenaSubject, place: str) -> bool:
    """Whether the subject is at a place."""
    geometry = life._program.geometry
    return geometry.cell(life.pose) in geometry.arena.cells_of(place)


def towards(life: ArenaSubject, place: str) -> int:
    """Return the next action on the way to a place: STAY if the subject is there, or
    there is no path.
    """
    if is_in(life, place):
        return STAY
    return first_step(life._program, id(life.tables), life.tables, life.pose, place)


_steps: dict[tuple[int, int, int, str], int] = {}


def first_step(
    program: Program, number: int, tables: Tables, pose: int, place: str
) -> int:
    """Return the first action of the shortest path. Cached, because lives repeat the
    same paths.
    """
    key = (id(program), number, pose, place)
    if key not in _steps:
        path = shortest_path(
            program.geometry, tables, pose, destination(program.geometry.arena, [place])
        )
        _steps[key] = path[0] if path else STAY
        _kept.append((program, tables))
    return _steps[key]


#: Objects whose ids are part of the keys of the paths, kept alive.
_kept: list[object] = []


def is_about(expected: float, found: tuple[float, int]) -> bool:
    """Whether a rate is that of an independent coin, to four standard errors."""
    share, trials = found
    return abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / trials)


# -- operant chamber: the same lever always, in turns, by the number of the trial; and a
# learner


def lever(life: ArenaSubject, which: int) -> str:
    """Return the place of a lever of the chamber in this trial's picture."""
    return LEVERS[(which + int(life.values["turn"])) % 2]


@pytest.mark.parametrize("which", [0, 1])
def test_a_habit_of_one_lever_earns_a_half(which: int) -> None:
    assert rate("operant_chamber", lambda life, memory: lever(life, which))[0] == 0.5


@pytest.mark.parametrize("end", LEVERS)
def test_a_habit_of_one_end_of_the_picture_is_right_twice_running_in_a_quarter(
    end: str,
) -> None:
    share, _ = rate("operant_chamber", lambda life, memory: end)
    assert is_about(0.25, (share, 8 * 3 * 12)), "neighbouring trials share a press"


def test_levers_by_the_number_of_the_trial_are_never_right_twice_running() -> None:
    assert (
        rate("operant_chamber", lambda life, memory: lever(life, memory["trial"] % 2))[
            0
        ]
        == 0
    )


def test_whether_the_last_press_paid_and_not_which_it_was_earns_a_half() -> None:
    """Always right with one lever, every other time with the other one."""

    def outcome(life: ArenaSubject, memory: Memory) -> str:
        return lever(life, int(memory.get("paid", 1) == 0))

    assert rate("operant_chamber", outcome)[0] == 0.5


def test_a_lever_by_the_number_of_the_subject_earns_a_half() -> None:
    share, _ = rate(
        "operant_chamber", lambda life, memory: lever(life, life.subject % 2), 4, 40
    )
    assert is_about(0.5, (share, 80)), "all trials of a subject come out alike"


def win_stay_lose_shift(life: ArenaSubject, memory: Memory) -> str:
    if not life.steps and memory["trial"] > 1:
        memory["lever"] = (memory["lever"] + (memory["paid"] == 0)) % 2
    return lever(life, memory.setdefault("lever", 0))


def test_a_learner_from_reward_has_learnt_when_it_is_judged() -> None:
    assert rate("operant_chamber", win_stay_lose_shift)[0] == 1


# -- shuttle box: reflexes, places, and a learner


def other_side(life: ArenaSubject) -> str:
    return SIDES[life.values["origin"] == "west"]


@pytest.mark.parametrize(
    ("answered", "right"),
    [
        ((), 0),
        (("hearing",), 1 / 3),
        (("hearing_clicks",), 1 / 3),
        (("seeing",), 1 / 3),
        (("hearing", "seeing"), 0),
        (("hearing", "hearing_clicks", "seeing"), 0),
    ],
)
def test_a_reflex_is_right_in_every_third_life_at_most(
    answered: tuple[str, ...], right: float
) -> None:
    found = rate(
        "shuttle_box",
        lambda life, memory: other_side(life) if life.state in answered else None,
        subjects=9,
    )
    assert found[0] == pytest.approx(right)


SIGNALS = ("hearing", "seeing", "hearing_clicks")


@pytest.mark.parametrize(("unshocked", "shocked"), [(0, 1), (1, 2), (2, 0)])
def test_whether_the_last_trial_was_shocked_and_not_by_which_signal_earns_a_half(
    unshocked: int, shocked: int
) -> None:
    def outcome(life: ArenaSubject, memory: Memory) -> str | None:
        hurt = memory.get("paid", 0) <= -1
        answered = SIGNALS[shocked if hurt else unshocked]
        return other_side(life) if life.state == answered else None

    assert is_about(0.5, rate("shuttle_box", outcome, subjects=9, seeds=6))


def test_a_place_avoids_nothing() -> None:
    assert rate("shuttle_box", lambda life, memory: "west_end")[0] < 0.25


def felt(life: ArenaSubject, memory: Memory) -> str | None:
    """Stay until a shock has followed a signal, which is then the dangerous one."""
    if life.state in SIGNALS:
        memory["signal"], memory["over"] = life.state, 0
        return other_side(life) if memory.get("danger") == life.state else None
    if life.state == "outcome" and "danger" not in memory:
        memory["over"] += 1
        if memory["over"] == 2 and memory["rewards"][-1] < 0:
            memory["danger"] = memory["signal"]
    return None


def test_who_felt_the_shock_knows_its_signal() -> None:
    assert rate("shuttle_box", felt)[0] == 1


# -- place preference: sides, floors, first confinements, and a learner


@pytest.mark.parametrize("side", SIDES)
def test_a_side_that_is_always_preferred_is_right_every_other_time(side: str) -> None:
    assert rate("place_preference", lambda life, memory: side)[0] == 0.5


def test_a_floor_that_is_preferred_is_right_every_other_time() -> None:
    def comma(life: ArenaSubject, memory: Memory) -> str | None:
        return (
            SIDES[life.values["floor_east"] == ","] if life.state == "choice" else None
        )

    assert rate("place_preference", comma)[0] == 0.5


def confined_first(life: ArenaSubject, memory: Memory) -> str | None:
    if life.state.endswith("_closed"):
        memory.setdefault("there", SIDES[is_in(life, "east")])
    return memory.get("there") if life.state == "choice" else None


def test_the_first_confinement_is_right_every_other_time() -> None:
    assert is_about(0.5, rate("place_preference", confined_first, 16, 6))


@pytest.mark.parametrize("rate_of_learning", [0.02, 0.3, 1])
def test_a_rescorla_wagner_learner_prefers_what_was_paid(
    rate_of_learning: float,
) -> None:
    def policy(life: ArenaSubject, memory: Memory) -> str | None:
        worth = memory.setdefault("worth", dict.fromkeys(SIDES, 0.0))
        if not life.steps and (side := memory.pop("stay", None)):
            worth[side] += rate_of_learning * (memory["paid"] - worth[side])
        if life.state.endswith("_closed"):
            memory["stay"] = SIDES[is_in(life, "east")]
        return max(SIDES, key=worth.__getitem__) if life.state == "choice" else None

    assert rate("place_preference", policy)[0] == 1


# -- delayed non-match to sample: pictures, windows, and memory


def lit(life: ArenaSubject) -> list[str]:
    shown = [life.values["sample"]] + [life.values["novel"]] * (life.state == "choice")
    return sorted(shown)


def test_the_first_or_last_window_that_is_lit_is_new_every_other_time() -> None:
    assert is_about(0.5, rate("dnms", lambda life, memory: lit(life)[0]))
    assert is_about(0.5, rate("dnms", lambda life, memory: lit(life)[-1]))


def test_a_window_by_count_is_rarely_right() -> None:
    """The policy takes the next window in every trial, lit or not."""
    assert (
        rate("dnms", lambda life, memory: f"window{1 + memory['trial'] % 8}")[0] < 0.01
    )


def remembered(life: ArenaSubject, memory: Memory) -> str:
    if life.state == "sampling":
        memory["sample"] = lit(life)[0]
        return str(memory["sample"])
    return next(window for window in lit(life) if window != memory["sample"])


def test_who_remembers_the_sample_is_always_right() -> None:
    assert rate("dnms", remembered)[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["operant_chamber", "shuttle_box", "place_preference", "dnms"]
)
def test_its_construct_holds_and_its_animals_pass(name: str) -> None:
    settings = AuditSettings(parts=("lesions", "animal"))
    report = audit_specification(
        with_arena(CATALOGUE.find(name)), settings, ["ascii_2d"]
    )
    assert [f"{one.rule}: {one.text}" for one in report.failures] == []
    assert {"construct", "lesion: intact", "declared animal"} <= {
        one.rule for one in report.findings
    }
