"""The paper's own baselines: their names in each edition, and their rules in small
worlds. ``tests/peer`` compares them with the package, step by step.
"""

from __future__ import annotations

import pytest

from cheesebench import FORWARD, ROTATE_LEFT, ROTATE_RIGHT, AgentContext
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents import (
    BfsOracle,
    PublishedBfsOracle,
    PublishedTabularQL,
    TabularQL,
)

PLUGINS = PluginManager()


@pytest.mark.parametrize(
    ("name", "protocol", "rules"),
    [
        ("tabular-ql", "t_maze@paper", PublishedTabularQL),
        ("bfs-oracle", "t_maze@paper", PublishedBfsOracle),
        ("tabular-ql", "t_maze", TabularQL),
        ("tabular-ql", "t_maze@rodent", TabularQL),
        ("tabular-ql@paper", "t_maze", PublishedTabularQL),
        ("tabular-ql@default", "t_maze@paper", TabularQL),
        ("bfs-oracle@default", "t_maze@paper", BfsOracle),
        ("bfs-oracle", "", BfsOracle),
    ],
)
def test_a_name_means_the_rules_of_the_protocols_edition(
    name: str, protocol: str, rules: object
) -> None:
    assert PLUGINS.agent(name, protocol).create is rules


def tabular() -> PublishedTabularQL:
    return PublishedTabularQL(AgentContext(seed=1, view="ascii_2d"))


def walked(agent: PublishedTabularQL, pictures: str, rewards: str) -> list[int]:
    """Show one-glyph pictures in turn (reward 1 where ``rewards`` has a ``+``); return
    the actions.
    """
    agent.begin_trial(pictures[0])
    actions: list[int] = []
    for number, picture in enumerate(pictures[1:], 1):
        actions.extend(agent.act(pictures[number - 1]))
        paid = 1.0 if rewards[number - 1] == "+" else 0.0
        agent.observe(actions[-1], paid, picture, number == len(pictures) - 1)
    return actions


@pytest.mark.parametrize("goal", "GP*+")
def test_a_goal_on_screen_is_walked_at_whatever_else_is_known(goal: str) -> None:
    assert walked(tabular(), goal * 6, "......") == [FORWARD] * 5


def test_the_last_reward_of_a_trial_is_never_learnt_from() -> None:
    agent = tabular()
    for _ in range(200):
        walked(agent, "ab", "+")
    assert not any(value.any() for value in agent._values.values())
    walked(agent, "abc", "+.")
    assert sum(bool(value.any()) for value in agent._values.values()) == 1


def test_it_turns_when_the_same_picture_stays() -> None:
    agent = tabular()
    agent._epsilon = 0.0
    # Headings by dead reckoning are part of a state, so it is stuck going forward.
    assert walked(agent, "a" * 6, "......")[-1] in (ROTATE_LEFT, ROTATE_RIGHT)


@pytest.mark.parametrize(
    ("picture", "action"),
    [
        ("#####\n#→.G#\n#####", FORWARD),
        ("#####\n#↑.G#\n#####", ROTATE_RIGHT),
        ("#####\n#←.G#\n#####", ROTATE_RIGHT),  # it turns round to the right
        ("#####\n#↓.P#\n#####", ROTATE_LEFT),
        ("#####\n#↗.E#\n#####", FORWARD),  # a diagonal is read as an axis
        ("#####\n#→#G#\n#...#\n#####", ROTATE_RIGHT),
        ("#→#\n#4#\n#+#", ROTATE_RIGHT),  # only # is a wall
    ],
)
def test_the_oracle_knows_four_directions(picture: str, action: int) -> None:
    agent = PublishedBfsOracle(AgentContext(seed=1, view="ascii_2d"))
    assert agent.act(picture) == (action,)


def test_without_a_way_it_follows_a_pattern_over_its_whole_life() -> None:
    agent = PublishedBfsOracle(AgentContext(seed=1, view="ascii_2d"))
    shown = []
    for _ in range(3):
        agent.begin_trial("→.")
        shown += [agent.act("→.")[0] for _ in range(5)]
    right, left, on = ROTATE_RIGHT, ROTATE_LEFT, FORWARD
    assert shown == [on, on, right, on, left, right, on, on, right, left, on, right, on, on, right]  # fmt: skip
    blind = PublishedBfsOracle(AgentContext(seed=1, view="ascii_2d"))
    assert [blind.act("?")[0] for _ in range(9)] == [on] * 3 + [right] * 4 + [on] * 2
