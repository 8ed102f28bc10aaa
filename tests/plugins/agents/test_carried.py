"""The oracle measures what pictures show, so its actions before it was moved must not
be a clue.
"""

from __future__ import annotations

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugin_manager import installed_plugins
from tests.arenas import examine_text

ALTERNATION = """
version: 1
paradigm: alternation
arena:
  map: |
    #######
    #l...r#
    ###.###
    ###S###
    #######
  legend: {S: box, l: left, r: right}
  groups: {arm: [left, right]}
start: {at: box, face: random}
vars: {sample: none}
trial:
  limit: 300
  start: first
  states:
    first: {rules: [{enter: arm, set: {sample: it}, place: box, go: second}]}
    second: {rules: [{enter: arm, if: it != sample, reward: 1, end: correct}, {enter: arm, end: error}]}
schedule: {one: {trials: 300}}
success: last == correct
"""


def test_being_carried_back_leaves_no_trace() -> None:
    specification, found = examine_text(ALTERNATION)
    assert specification is not None, found
    plugins = installed_plugins()
    from cheesebench.interfaces import AgentContext

    agent = plugins.agent("bfs-oracle").create(AgentContext(seed=1, view="ascii_2d"))
    life = ArenaParadigm(specification).environment(plugins.view("ascii_2d"), 0, 0)
    outcomes = []
    while (observation := life.begin_trial()) is not None:
        agent.begin_trial(observation)
        status = 0
        while not status:
            for action in agent.act(observation):
                observation, reward, status = life.step(action)
                agent.observe(action, reward, observation, bool(status))
        outcomes.append(life.result().outcome)
    assert len(outcomes) == 300
    assert 0.4 < outcomes.count("correct") / 300 < 0.6
