"""Place-learner: its curves rise, they fall with the landmarks, and it survives any text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench import AgentContext
from cheesebench.experiment.designs import find_design, plan_cell
from cheesebench.experiment.lesioned import LesionedParadigm
from cheesebench.experiment.subjects import live
from cheesebench.lesions import Lesion
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.agents import PlaceLearner, place_learner
from cheesebench.plugins.agents.grid import Grid
from cheesebench.plugins.agents.place_frame import UNKNOWN, Frame
from cheesebench.plugins.agents.place_memory import FRESH, REWARDED, Choice, Moment, Trial, Worth
from cheesebench.plugins.agents.place_ways import Ways
from cheesebench.protocol import Catalogue, Specification
from tests.arenas import examine_text

PLUGINS = installed_plugins()


def context(seed: int) -> AgentContext:
    return AgentContext(seed, "ascii_2d")


def successes(specification: Specification, lesion: str = "", subjects: int = 4, seed: int = 11) -> list[list[bool]]:
    """Return the successes of each subject's life."""
    agent = PLUGINS.agent("place-learner")
    plan = plan_cell(specification, agent.name, "ascii_2d", find_design("cohort"), agent.memory)
    paradigm = PLUGINS.compile(specification)
    if lesion:
        paradigm = LesionedParadigm(paradigm, Lesion.parse(lesion))
    view = PLUGINS.view("ascii_2d")
    return [
        [bool(record.success) for record, _ in live(paradigm, view, agent, plan, seed, subject)]
        for subject in range(subjects)
    ]


def share(lives: list[list[bool]], trials: slice) -> float:
    chosen = [success for life in lives for success in life[trials]]
    return sum(chosen) / len(chosen)


def shipped(name: str) -> Specification:
    return Catalogue(PLUGINS.protocol_directories).find(name).walkable()


#: A trial of its own before it can know, and after that at least so many in a hundred.
@pytest.mark.parametrize(
    "name", ["barnes_maze", "star_maze", "morris_water_maze", "operant_chamber", "t_maze", "dnms", "radial_arm_maze"]
)
def test_its_curve_rises(name: str) -> None:
    lives = successes(shipped(name))
    first, last = share(lives, slice(0, 1)), share(lives, slice(-6, None))
    assert last >= 0.9
    assert last > first + 0.3


@pytest.mark.parametrize("name", ["barnes_maze", "star_maze", "morris_water_maze"])
def test_it_is_lost_without_landmarks(name: str) -> None:
    # By chance .25 at most, over 80 trials; four standard errors.
    assert share(successes(shipped(name), "hide=landmarks"), slice(None)) < 0.25 + 0.2


@pytest.mark.parametrize(("name", "chance"), [("operant_chamber", 0.25), ("shuttle_box", 0.5)])
def test_it_does_not_learn_what_it_does_not_feel(name: str, chance: float) -> None:
    # 160 trials; four standard errors.
    assert share(successes(shipped(name), "anhedonia"), slice(None)) < chance + 0.16


#: None of the nine: food behind one of three doors; the one with the lamp on it, wherever that is.
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


def test_same_seed_same_actions_whatever_the_hash_seed(under_hash_seeds: Callable[..., list[str]]) -> None:
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
    | st.sampled_from(["", "###\n#↑#\n###", "#↑.#\n", "→", "#####\n#.→.#\n#####\nTONE", "##\n↓.\n..\n##", "↑\n.\n.\n"]),
    min_size=2,
    max_size=40,
)


@given(PICTURES, st.integers(0, 99), st.sampled_from([0.0, 1e9, -1e9, 1e-9]))
def test_any_text_will_do(texts: list[str], seed: int, reward: float) -> None:
    agent = PlaceLearner(context(seed))
    for _ in range(2):
        agent.begin_trial(texts[0])
        for step, text in enumerate(texts):
            # Every third step is one for which no action was asked.
            action = agent.act(text)[0] if step % 3 else 3
            assert action in range(4)
            agent.observe(action, reward * (step % 2), text, step == len(texts) - 1)


def test_the_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place_learner, "MOST", 50)
    agent = PlaceLearner(context(1))
    for trial in range(40):
        agent.begin_trial(f"#####\n#↑..#\n#####\n{trial}")
        for step in range(5):
            agent.observe(agent.act("")[0], 1.0, f"#####\n#↑..#\n#####\n{trial} {step}", step == 4)
        assert len(agent._worth) + len(agent._moments) <= 50 + 40


ROOM = ["##1##", "#..o#", "4.↑.2", "#...#", "##3##"]


@pytest.mark.parametrize("quarters", range(4))
def test_a_turned_picture_is_turned_back(quarters: int) -> None:
    frame = Frame()
    frame.begin_trial("\n".join(ROOM))
    straight = frame.look("\n".join(ROOM))
    rows = ROOM
    for _ in range(quarters):
        rows = ["".join(column) for column in zip(*reversed(rows), strict=True)]
    turned = "\n".join(rows).replace("↑", "↑→↓←"[quarters])
    frame.begin_trial(turned)
    assert frame.look(turned) == straight
    assert straight is not None
    assert straight.picture[straight.cell] == UNKNOWN
    assert straight.heading == 0


def test_a_picture_that_says_nothing_of_its_orientation_is_left_as_it_is() -> None:
    frame = Frame()
    for text in ("###\n#↑#\n###", "###\n#→#\n###"):
        frame.begin_trial(text)
        seen = frame.look(text)
        assert seen is not None
        assert seen.heading == (0 if "↑" in text else 2)
    assert frame.look("no picture") is None


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
        Choice(moment, place, FRESH, glyph, True) for place, glyph in ((1, "O"), (2, "O"), (3, "="))
    )
    trial.choices += [(sample, 0.0), (right, 1.0)]
    trial.learn(worth)
    trial.choices += [(wrong, 0.0)]
    trial.learn(worth)
    assert worth.of_place(right) > worth.of_place(sample) > 0.5 > worth.of_place(wrong)
    assert worth.of_looks(right) > 0.5 > worth.of_looks(wrong)
    # What a place has been in the trial makes another place of it.
    assert worth.of_place(wrong._replace(been=REWARDED)) > 0.5


def test_a_moment_that_always_lasts_as_long_passes_by_itself() -> None:
    assert not Moment(count=2, shortest=8, longest=8, unprompted=True).regular
    assert not Moment(count=9, shortest=8, longest=8).regular  # it may have been the subject's doing
    assert Moment(count=3, shortest=8, longest=8, unprompted=True).regular
    assert not Moment(count=3, shortest=7, longest=8, unprompted=True).regular
    assert Moment(count=2, shortest=2, longest=2).brief
