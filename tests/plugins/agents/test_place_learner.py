"""Place-learner: its curves rise, they fall without the landmarks, and it survives any
text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench import AgentContext
from cheesebench.commands.common import load_protocol
from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.controls import LesionedParadigm
from cheesebench.experiment.subjects import run_subject
from cheesebench.lesions import Lesion
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.agents import PlaceLearner, place_learner
from cheesebench.plugins.agents.grid import Grid
from cheesebench.plugins.agents.place_learner import (
    FRESH,
    IN_VAIN,
    REWARDED,
    Choice,
    Frame,
    Moment,
    Trial,
    Ways,
    Worth,
    look,
)
from cheesebench.protocol import Catalogue, Specification, with_arena
from tests.arenas import examine_text
from tests.stored import check_stored

PLUGINS = installed_plugins()


def context(seed: int) -> AgentContext:
    return AgentContext(seed, "ascii_2d")


def successes(
    specification: Specification, lesion: str = "", subjects: int = 4, seed: int = 11
) -> list[list[bool]]:
    """Return the successes of each subject's life."""
    agent = PLUGINS.agent("place-learner")
    plan = plan_cell(
        specification, agent.name, "ascii_2d", find_design("cohort"), agent.memory
    )
    paradigm = PLUGINS.compile(specification)
    if lesion:
        paradigm = LesionedParadigm(paradigm, Lesion.parse(lesion))
    view = PLUGINS.view("ascii_2d")
    return [
        [
            bool(record.success)
            for record, _ in run_subject(paradigm, view, agent, plan, seed, subject)
        ]
        for subject in range(subjects)
    ]


def share(lives: list[list[bool]], trials: slice) -> float:
    chosen = [success for life in lives for success in life[trials]]
    return sum(chosen) / len(chosen)


def shipped(name: str) -> Specification:
    specification: Specification = with_arena(
        Catalogue(PLUGINS.protocol_directories).find(name)
    )
    return specification


#: The first trial in which it can know, and its minimum rate from then on, in per cent.
@pytest.mark.parametrize(
    "name",
    [
        "barnes_maze",
        "star_maze",
        "morris_water_maze",
        "operant_chamber",
        "t_maze",
        "dnms",
        "radial_arm_maze",
    ],
)
def test_its_curve_rises(name: str) -> None:
    # In the operant chamber half of the first trials succeed by chance.
    lives = successes(shipped(name), subjects=12)
    first, last = share(lives, slice(0, 1)), share(lives, slice(-6, None))
    assert last >= 0.8  # one of six may be a probe, in which nothing succeeds
    assert last > first + 0.3


@pytest.mark.parametrize(
    ("name", "chance"),
    [("barnes_maze", 8 / 18), ("star_maze", 0.25), ("morris_water_maze", 10 / 56)],
)
def test_it_is_lost_without_landmarks(name: str, chance: float) -> None:
    # Over 80 trials; four standard errors.
    assert share(successes(shipped(name), "hide=landmarks"), slice(None)) < chance + 0.2


@pytest.mark.parametrize(
    ("name", "chance"), [("operant_chamber", 0.5), ("shuttle_box", 1 / 3)]
)
def test_it_does_not_learn_what_it_does_not_feel(name: str, chance: float) -> None:
    # 160 trials; four standard errors.
    assert share(successes(shipped(name), "anhedonia"), slice(None)) < chance + 0.16


#: Not one of the nine: food behind one of three doors, the one with the lamp on it,
#: wherever that is.
CUE = """
version: 1
paradigm: lamp
arena:
  map: |
    #########
    #A..B..C#
    #.......#
    ####S####
    #########
  legend: {A: {zone: a, glyph: "o"}, B: {zone: b, glyph: "o"}, C: {zone: c, glyph: "o"}, S: box}
  groups: {door: [a, b, c]}
draw: {lit: {per: trial, of: {lit: [a, b, c]}}}
start: {at: box, face: random}
trial:
  limit: 30
  start: run
  states:
    run:
      show: {lit: "*"}
      rules: [{enter: lit, reward: 1, end: right}, {enter: door, end: wrong}]
schedule: {only: {trials: 30}}
success: last == right
"""


def test_it_learns_a_cue_in_a_maze_that_it_was_not_made_for() -> None:
    specification, found = examine_text(CUE)
    assert specification is not None, found
    assert share(successes(specification), slice(-10, None)) >= 0.9


def test_same_seed_same_actions_whatever_the_hash_seed(
    under_hash_seeds: Callable[..., list[str]],
) -> None:
    program = (
        "from cheesebench import AgentContext\n"
        "from cheesebench.plugins.agents import PlaceLearner\n"
        "agent = PlaceLearner(AgentContext(5, 'ascii_2d'))\n"
        "rooms = ['#####\\n#' + arrow + '.Lo#\\n#v..#\\n#####\\n' for arrow in '↑→↓']\n"
        "for trial in range(5):\n"
        "    agent.begin_trial(rooms[0])\n"
        "    for step in range(60):\n"
        "        action, = agent.act('')\n"
        "        print(action, end='')\n"
        "        agent.observe(action, step % 7 - 3.0, rooms[(step + action) % 3], step == 59)\n"
    )
    outputs = set(under_hash_seeds(program))
    assert len(outputs) == 1
    assert len(outputs.pop()) == 300


PICTURES = st.lists(
    st.text(alphabet="#. \n↑↘oGé\u202e\ud800\x00", max_size=40)
    | st.sampled_from(
        [
            "",
            "###\n#↑#\n###",
            "#↑.#\n",
            "→",
            "#####\n#.→.#\n#####\nTONE",
            "##\n↓.\n..\n##",
            "↑\n.\n.\n",
        ]
    ),
    min_size=2,
    max_size=40,
)


@given(PICTURES, st.integers(0, 99), st.sampled_from([0.0, 1e9, -1e9, 1e-9]))
def test_any_text_will_do(texts: list[str], seed: int, reward: float) -> None:
    agent = PlaceLearner(context(seed))
    for _ in range(2):
        agent.begin_trial(texts[0])
        for step, text in enumerate(texts):
            # Every third step was not chosen by the agent.
            action = agent.act(text)[0] if step % 3 else 3
            assert action in range(4)
            agent.observe(action, reward * (step % 2), text, step == len(texts) - 1)


def test_the_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_learner, "MAX_MEMORY", 50)
    agent = PlaceLearner(context(1))
    for trial in range(40):
        agent.begin_trial(f"#####\n#↑..#\n#####\n{trial}")
        for step in range(5):
            agent.observe(
                agent.act("")[0], 1.0, f"#####\n#↑..#\n#####\n{trial} {step}", step == 4
            )
        assert len(agent._worth) + len(agent._moments) <= 50 + 40


ROOM = ["##1##", "#..o#", "4.↑.2", "#...#", "##3##"]


def place(frame: Frame, rows: list[str], glyph: str) -> int:
    """Look at the picture; return the number of the only place that looks like this."""
    here = look("\n".join(rows))
    assert here is not None
    frame.orient(here)
    return frame.place(here, here.picture.index(glyph), glyph, ".")


@pytest.mark.parametrize("quarters", range(4))
def test_a_place_of_a_turned_picture_is_the_same_place(quarters: int) -> None:
    frame = Frame()
    straight = place(frame, ROOM, "o")
    rows = ROOM
    for _ in range(quarters):
        rows = ["".join(column) for column in zip(*reversed(rows), strict=True)]
    turned = [row.replace("↑", "↑→↓←"[quarters]) for row in rows]
    assert place(frame, turned, "o") == straight
    assert frame.turn == 90 * quarters


def ring(turn: int) -> list[str]:
    """Eight fixed holes, with landmarks outside three of them that rotate by eighths,
    as well as a grid allows.
    """
    picture = [["."] * 11 for _ in range(11)]
    for number in range(8):
        x, y = (round(4 * f(math.pi * number / 4)) for f in (math.sin, math.cos))
        picture[5 - y][5 + x] = "o"
        x, y = (round(5 * f(math.pi * number / 4)) for f in (math.sin, math.cos))
        picture[5 - y][5 + x] = {0: "1", 2: "2", 5: "3"}.get((number - turn) % 8, "#")
    picture[5][5] = "↑"
    return ["".join(row) for row in picture]


def hole(frame: Frame, turn: int, number: int) -> int:
    here = look("\n".join(ring(turn)))
    assert here is not None
    frame.orient(here)
    x, y = (round(4 * f(math.pi * number / 4)) for f in (math.sin, math.cos))
    return frame.place(here, (5 - y) * here.stride + 5 + x, "o", ".")


@given(st.lists(st.integers(0, 7), min_size=2, max_size=9))
def test_holes_are_told_apart_by_landmarks_that_go_round(turns: list[int]) -> None:
    frame = Frame()
    first = [hole(frame, turns[0], (number + turns[0]) % 8) for number in range(8)]
    assert len(set(first)) == 8
    for turn in turns:
        assert [hole(frame, turn, (number + turn) % 8) for number in range(8)] == first


def test_one_sign_that_moves_is_no_landmark() -> None:
    frame = Frame()
    for rows in (["#O###", "#.↑.#", "#####"], ["#####", "#.↑.#", "###O#"]):
        here = look("\n".join(rows))
        assert here is not None
        frame.orient(here)
        assert frame.turn == 0
    assert look("no picture") is None


def test_ways_lead_round_what_must_not_be_crossed() -> None:
    text = "#####\n#.o.#\n#...#\n#####\n"
    start = 7 << 3 | 2  # the upper left cell, facing right
    straight = Ways(Grid(text, 6), start, 2, set(), lambda cell: True)
    assert straight.way_to(9) == [0, 0]
    around = Ways(Grid(text, 6), start, 2, set(), lambda cell: text[cell] == ".")
    assert around.distance[8] == 1  # it may be entered, not crossed
    assert around.distance[9] > straight.distance[9] == 2
    assert 3 not in Ways(Grid(text, 6), start, 2, {start}, lambda cell: True).distance


def test_outcomes_are_credited_to_places_and_looks_and_what_follows_fades() -> None:
    worth, trial = Worth(), Trial()
    moment = ("", ())
    sample, right, wrong = (
        Choice(moment, place, FRESH, glyph, True)
        for place, glyph in ((1, "O"), (2, "O"), (3, "="))
    )
    trial.choices += [(sample, 0.0), (right, 1.0)]
    trial.learn(worth)
    trial.choices += [(wrong, 0.0)]
    trial.learn(worth)
    assert worth.of_place(right) > worth.of_place(sample) > 0.5 > worth.of_place(wrong)
    assert worth.of_looks(right) > 0.5 > worth.of_looks(wrong)
    # A place's role in the trial makes it a different place.
    assert worth.of_place(wrong._replace(been=REWARDED)) > 0.5


def test_entering_in_vain_says_more_of_the_place_than_of_its_looks() -> None:
    vain, punished = Worth(), Worth()
    choice = Choice(("", ()), 1, FRESH, "O", True)
    vain.nothing(choice)
    punished.credit(choice, 0.0)
    assert vain.of_place(choice) == punished.of_place(choice) < 0.5
    assert punished.of_looks(choice) < vain.of_looks(choice) < 0.5
    vain.forget_looks(choice.moment)
    assert vain.of_looks(choice) == 0.5 > vain.of_place(choice)


def test_a_place_to_which_it_was_led_is_worth_most_until_it_has_been_there() -> None:
    worth = Worth()
    worth.shown = 1
    shown, other = (Choice(("", ()), place, FRESH, "O", True) for place in (1, 2))
    assert worth.of_place(shown) > 1 > worth.of_place(other)
    assert worth.of_place(shown._replace(been=IN_VAIN)) < worth.of_place(other)


def test_a_moment_that_always_lasts_as_long_passes_by_itself() -> None:
    assert not Moment(count=2, shortest=8, longest=8, unprompted=True).regular
    assert not Moment(
        count=9, shortest=8, longest=8
    ).regular  # the subject may have caused it
    assert Moment(count=3, shortest=8, longest=8, unprompted=True).regular
    assert not Moment(count=3, shortest=7, longest=8, unprompted=True).regular
    assert Moment(count=2, shortest=2, longest=2).brief


@pytest.mark.parametrize(
    ("protocol", "most"), [("t_maze", 8), ("barnes_maze", 3), ("dnms", 8)]
)
def test_what_it_does_is_compared_with_what_is_stored(protocol: str, most: int) -> None:
    """The first trials of a subject, action by action."""
    plugins, specification = installed_plugins(), with_arena(load_protocol(protocol))
    plan = plan_cell(
        specification, "place-learner", "ascii_2d", find_design("cohort", 1), "life"
    )
    lived = run_subject(
        plugins.compile(specification), plugins.view("ascii_2d"), plugins.agent("place-learner"), plan, 3, 0,
    )  # fmt: skip
    lines = [
        f"{record.trial} {record.outcome} {record.actions}"
        for record, _ in islice(lived, most)
    ]
    check_stored(f"place_learner.{protocol}.txt", "\n".join([*lines, ""]))
