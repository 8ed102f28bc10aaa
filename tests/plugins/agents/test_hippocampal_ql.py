"""Hippocampal-QL: it learns a maze, remembers eaten food, has rising curves, and
survives any text.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench import FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY, AgentContext
from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.subjects import run_subject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.agents import HippocampalQL, hippocampal_ql
from cheesebench.plugins.agents.hippocampal_ql import RewardMemory
from cheesebench.plugins.agents.tabular_ql import Transitions
from cheesebench.protocol import Catalogue, Specification, with_arena


def context(seed: int) -> AgentContext:
    return AgentContext(seed, "ascii_2d")


class Room:
    """Ten by ten cells with hidden food in one of them; the text is position and
    heading.
    """

    size, goal = 10, (6, 3)
    ways = ((0, -1), (1, 0), (0, 1), (-1, 0))

    def __init__(self, x: int, y: int, heading: int) -> None:
        self.x, self.y, self.heading = x, y, heading

    def text(self) -> str:
        return f"{self.x} {self.y} {'↑→↓←'[self.heading]}"

    def step(self, action: int) -> tuple[float, bool]:
        if action == FORWARD:
            x, y = (
                self.x + self.ways[self.heading][0],
                self.y + self.ways[self.heading][1],
            )
            if not (0 <= x < self.size and 0 <= y < self.size):
                return -0.01, False
            self.x, self.y = x, y
        elif action in (ROTATE_LEFT, ROTATE_RIGHT):
            self.heading = (self.heading + (1 if action == ROTATE_RIGHT else 3)) % 4
        found = (self.x, self.y) == self.goal
        return (1.0, True) if found else (0.0, False)


def latencies(agent: HippocampalQL, trials: int, limit: int = 400) -> list[int]:
    taken = []
    for trial in range(trials):
        room = Room(0, 0, trial % 4)
        agent.begin_trial(room.text())
        steps = 0
        while steps < limit:
            steps += 1
            action = agent.act(room.text())[0]
            reward, ended = room.step(action)
            agent.observe(action, reward, room.text(), ended)
            if ended:
                break
        taken.append(steps)
    return taken


def test_later_trials_in_a_room_are_short() -> None:
    lives = [latencies(HippocampalQL(context(seed)), 24) for seed in range(6)]
    first = sum(life[0] for life in lives) / 6
    last = sum(sum(life[-8:]) / 8 for life in lives) / 6
    assert last < 20  # the best path takes 10 to 12 steps
    assert first > 2 * last


def test_a_way_to_something_new_is_searched_once_unless_it_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = HippocampalQL(context(1))
    agent.begin_trial("0")
    for place in range(3):
        for action in (ROTATE_LEFT, ROTATE_RIGHT, STAY):
            agent.observe(action, 0.0, str(place), False)
        agent.observe(FORWARD, 0.0, str(place + 1), False)
    searched = []
    search = agent._search

    def counted(horizon: int) -> list[tuple[int, int]]:
        searched.append(horizon)
        return search(horizon)

    monkeypatch.setattr(agent, "_search", counted)
    agent.begin_trial("0")
    for place in range(3):
        assert agent._step_to_news(100) == FORWARD
        agent.observe(FORWARD, 0.0, str(place + 1), False)
    # Nothing was tried in the last place.
    assert agent._step_to_news(100) is not None
    assert searched == [100]
    agent.begin_trial("0")
    assert agent._step_to_news(100) == FORWARD
    agent.observe(FORWARD, 0.0, "0", False)
    # That was blocked, so no way is known, and none is searched for some steps.
    for _ in range(1 + hippocampal_ql.BORED):
        assert agent._step_to_news(50) is None
        assert searched == [100, 100, 50]
    assert agent._step_to_news(50) is None
    assert searched == [100, 100, 50, 50]


def test_same_seed_same_actions_whatever_the_hash_seed(
    under_hash_seeds: Callable[..., list[str]],
) -> None:
    program = (
        "from cheesebench import AgentContext\n"
        "from cheesebench.plugins.agents import HippocampalQL\n"
        "agent = HippocampalQL(AgentContext(5, 'ascii_2d'))\n"
        "for trial in range(5):\n"
        "    agent.begin_trial('room 0')\n"
        "    place = 0\n"
        "    for step in range(80):\n"
        "        action, = agent.act(f'room {place}')\n"
        "        print(action, end='')\n"
        "        place = (place * 3 + action) % 17\n"
        "        agent.observe(action, 1.0 if place == 11 else -0.1, f'room {place}', step == 79)\n"
    )
    outputs = set(under_hash_seeds(program))
    assert len(outputs) == 1
    assert len(outputs.pop()) == 400


def test_any_text_is_a_state_and_the_memory_has_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hippocampal_ql, "MOST_STATES", 50)
    agent = HippocampalQL(context(2))
    texts = [
        "",
        "\x00\x1b[2J",
        "\ud800 lone",
        "G" * 100_000,
        "ACTIONS: STAY",
        "{}",
        "%s",
    ]
    for trial in range(3):
        agent.begin_trial(texts[trial])
        for step in range(300):
            text = texts[step % 7] + str(step // 3) * (step % 2)
            action = agent.act(text)[0]
            assert action in range(4)
            agent.observe(action, (-1e9, 1e9, 0.0, 1e-9)[step % 4], text, step == 299)
            assert len(agent._table) <= 50


#: Long trials with a fixed north, in which every picture recurs; today's mazes are
#: rotated.
OLD = Path(__file__).parents[2] / "fixtures" / "old_nine"


@pytest.mark.parametrize("name", ["morris_water_maze", "star_maze", "radial_arm_maze"])
def test_its_curve_rises_where_every_picture_comes_back(name: str) -> None:
    assert_rising(with_arena(Catalogue().load(OLD / f"{name}.protocol.yaml")))


def test_its_curve_rises_where_a_rodent_s_does() -> None:
    assert_rising(
        with_arena(Catalogue(installed_plugins().protocol_directories).find("t_maze"))
    )


def assert_rising(specification: Specification) -> None:
    plugins = installed_plugins()
    agent = plugins.agent("hippocampal-ql")
    plan = plan_cell(
        specification, agent.name, "ascii_2d", find_design("cohort"), agent.memory
    )
    paradigm, view = plugins.compile(specification), plugins.view("ascii_2d")
    sessions: dict[int, list[bool]] = {}
    for subject in range(plan.subjects):
        for record, _ in run_subject(paradigm, view, agent, plan, 3, subject):
            sessions.setdefault(record.session, []).append(bool(record.success))
    rates = [sum(session) / len(session) for session in sessions.values()]
    assert (rates[-1] + rates[-2]) / 2 > rates[0] + 0.1


def test_the_map_avoids_what_is_dear() -> None:
    graph = Transitions(2)
    a, b, c = (graph.new_state() for _ in range(3))
    graph.aim([(c, 0)])
    graph.add(a, 0, c, 20)
    assert graph.step_towards_aim(a) == 0
    graph.add(a, 1, b)
    graph.add(b, 0, c)
    assert graph.step_towards_aim(a) == 1
    assert (graph.cost(a, 0), graph.cost(a, 1), graph.cost(c, 0)) == (20, 1, 0)
    graph.add(a, 0, c)  # the punishment is gone
    assert graph.step_towards_aim(a) == 0
    assert list(graph.after(a)) == [c, b]


def test_what_pays_once_is_spent_until_the_next_trial() -> None:
    memory = RewardMemory()
    memory.begin_trial()
    memory.note((1, 0), 1.0)
    assert list(memory.promising()) == [(1, 0)]  # nothing is known of second helpings
    memory.note((1, 0), 0.0)
    memory.note((2, 0), 1.0)
    assert list(memory.promising()) == []  # nor is this one expected to pay again
    memory.begin_trial()
    assert list(memory.promising()) == [(1, 0), (2, 0)]


def test_what_pays_again_is_not_spent() -> None:
    memory = RewardMemory()
    memory.begin_trial()
    for _ in range(5):
        memory.note((1, 0), 1.0)
    assert list(memory.promising()) == [(1, 0)]


def test_where_food_lies_may_depend_on_where_it_was() -> None:
    # After `left` has paid only `other` pays, and vice versa, so each has a value only
    # in its context.
    memory = RewardMemory()
    left, right, end_left, end_right = (1, 0), (2, 0), (3, 0), (4, 0)
    for first, good, bad in (
        (left, end_right, end_left),
        (right, end_left, end_right),
    ) * 2:
        for second, reward in ((good, 1.0), (bad, 0.0)):
            memory.begin_trial()
            memory.note(first, 1.0)
            memory.note(second, reward)
    memory.begin_trial()
    memory.note(left, 1.0)
    assert end_right in memory.promising()
    assert end_left not in memory.promising()


def test_what_always_disappoints_fades() -> None:
    memory = RewardMemory()
    memory.note((1, 0), 1.0)
    trials = 0
    while memory.promising():
        memory.begin_trial()
        memory.note((1, 0), 0.0)
        memory.begin_trial()
        trials += 1
        assert trials < 20
    assert trials > 1
