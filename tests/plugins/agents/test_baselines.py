"""The random agent and Tabular-QL, in worlds of a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import cheesebench
from cheesebench import FORWARD, Agent, AgentContext
from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents import RandomAgent, TabularQL
from cheesebench.plugins.agents.tabular_ql import Transitions
from tests.stored import check_stored


def context(seed: int) -> AgentContext:
    return AgentContext(seed, "ascii_2d")


def test_the_baselines_are_registered_with_what_they_remember() -> None:
    agents = PluginManager().agents
    assert {
        name: agents[name].memory for name in agents if not name.startswith("graded-")
    } == {
        "random": "none",
        "tabular-ql": "life",
        "hippocampal-ql": "life",
        "place-learner": "life",
        "bfs-oracle": "none",
        "tabular-ql@paper": "life",
        "bfs-oracle@paper": "life",
        "tabular-ql@default": "life",
        "bfs-oracle@default": "none",
    }


def test_random_is_uniform_and_comes_from_its_seed() -> None:
    agent, copy, other = (
        RandomAgent(context(1)),
        RandomAgent(context(1)),
        RandomAgent(context(2)),
    )
    actions = [agent.act("")[0] for _ in range(20_000)]
    assert actions == [copy.act("")[0] for _ in range(20_000)]
    assert actions[:50] != [other.act("")[0] for _ in range(50)]
    shares = Counter(actions)
    # Four standard errors of a share of a quarter.
    assert all(
        abs(shares[action] - 5_000) < 4 * (20_000 * 0.25 * 0.75) ** 0.5
        for action in range(4)
    )


def corridor(
    agent: Agent, trials: int, *, length: int = 6, limit: int = 200
) -> list[int]:
    """Run an agent where FORWARD leads on, any other action leads back to the start,
    and the end pays. Return the latencies.
    """
    latencies = []
    for _ in range(trials):
        place, steps = 0, 0
        agent.begin_trial(f"place {place}")
        while place < length and steps < limit:
            action = agent.act(f"place {place}")[0]
            place, steps = (place + 1 if action == FORWARD else 0), steps + 1
            agent.observe(
                action,
                1.0 if place == length else -0.01,
                f"place {place}",
                place == length,
            )
        latencies.append(steps)
    return latencies


def test_tabular_ql_learns_a_corridor_that_chance_hardly_solves() -> None:
    latencies = [corridor(TabularQL(context(seed)), 60) for seed in range(5)]
    assert all(min(life[-20:]) == 6 for life in latencies)
    assert sum(sum(life[-20:]) / 20 for life in latencies) / 5 < 15
    by_chance = [corridor(RandomAgent(context(seed)), 20) for seed in range(5)]
    assert sum(sum(life) / 20 for life in by_chance) / 5 > 150


def test_tabular_ql_learns_without_a_map_what_pays_at_once() -> None:
    # One state, so that there is no path to plan: only the values show that STAY (3) is
    # bad and action 1 pays more than 2.
    agent = TabularQL(context(3))
    pay = (-1.0, -0.1, -0.5, -2.0)
    agent.begin_trial("box")
    for _ in range(400):
        action = agent.act("box")[0]
        agent.observe(action, pay[action], "box", False)
    chosen: Counter[int] = Counter()
    for _ in range(400):
        action = agent.act("box")[0]
        chosen[action] += 1
        agent.observe(action, pay[action], "box", False)
    assert chosen.most_common(1)[0][0] == 1


def test_tabular_ql_same_seed_same_actions_whatever_the_hash_seed(
    under_hash_seeds: Callable[..., list[str]],
) -> None:
    program = (
        "from cheesebench import AgentContext\n"
        "from cheesebench.plugins.agents import TabularQL, BfsOracle\n"
        "for kind in (TabularQL, BfsOracle):\n"
        "    agent = kind(AgentContext(5, 'ascii_2d'))\n"
        "    rooms = ['###\\n#' + arrow + '.#G\\n###\\n' for arrow in '↑→↓']\n"
        "    agent.begin_trial(rooms[0])\n"
        "    for step in range(300):\n"
        "        action, = agent.act(rooms[step % 3])\n"
        "        print(action, end='')\n"
        "        agent.observe(action, step % 7 - 3.0, rooms[(step + action) % 3], False)\n"
    )
    outputs = set(under_hash_seeds(program))
    assert len(outputs) == 1
    assert len(outputs.pop()) == 600


def test_a_spent_reward_is_left_alone_until_the_next_trial() -> None:
    # Bait is at "a" once per trial; "b" is a waiting place. Action 0 goes to a,
    # anything else to b.
    agent = TabularQL(context(1))
    visits = []
    for _ in range(40):
        agent.begin_trial("b")
        here, baited, count = "b", True, 0
        for _ in range(20):
            action = agent.act(here)[0]
            here = "a" if action == 0 else "b"
            found = here == "a" and baited
            baited = baited and not found
            count += here == "a"
            agent.observe(action, 1.0 if found else -0.2, here, False)
        visits.append(count)
    assert min(visits[5:]) >= 1
    assert sum(visits[-20:]) / 20 < 10


def test_the_map_leads_the_shortest_way_and_follows_changes() -> None:
    graph = Transitions(2)
    a, b, c, d = (graph.new_state() for _ in range(4))
    assert graph.step_towards_aim(a) is None
    graph.add(a, 0, b)
    graph.add(b, 0, c)
    graph.add(c, 0, d)
    graph.aim([(d, 1)])
    assert [graph.step_towards_aim(state) for state in (a, b, c, d)] == [0, 0, 0, 1]
    graph.add(a, 1, c)  # a shorter way
    assert graph.step_towards_aim(a) == 1
    graph.add(a, 1, a)  # which closes again
    assert graph.step_towards_aim(a) == 0
    graph.add(b, 0, a)  # and the longer one too
    assert graph.step_towards_aim(a) is None
    graph.aim([])
    assert graph.step_towards_aim(d) is None


def test_what_each_agent_does_is_compared_with_what_is_stored(tmp_path: Path) -> None:
    """The first and the last trials of a life in three protocols, action by action."""
    names = [
        "bfs-oracle", "graded-60", "hippocampal-ql", "place-learner", "random",
        "tabular-ql", "bfs-oracle@paper", "tabular-ql@paper",
    ]  # fmt: skip
    protocols = ["t_maze", "operant_chamber", "dnms"]
    done = cheesebench.run(
        names,
        protocols,
        design="cohort",
        subjects=1,
        seed=3,
        results=tmp_path,
        progress=False,
    )
    lines = []
    with RunLog.open_read_only(done.directory) as log:
        for plan in log.plans():
            lines.append(f"{plan.model} {plan.label} {plan.memory}")
            trials = log.trials(plan)
            lines += [
                f"  {one.trial} {one.outcome} {one.steps} {one.reward:g} {one.actions}"
                for one in (*trials[:4], *trials[-2:])
            ]
    check_stored("agents.txt", "\n".join(lines) + "\n")
