"""A small world to try agents in: free steps, waiting, words, gain and loss, two ways for a trial to end."""

from __future__ import annotations

from cheesebench.errors import PluginError
from cheesebench.interfaces import SubjectEnvironment
from cheesebench.plugin_manager import installed_plugins

#: Trials in a life there.
TRIALS = 6

_PROTOCOL = """
version: 1
paradigm: conformance
arena:
  map: |
    #########
    #L..S..R#
    #.#####.#
    #...x...#
    #########
  legend: {L: {zone: left, glyph: ","}, R: right, S: box, x: {zone: hot, glyph: "~"}}
  groups: {side: [left, right]}
  landmarks: {N: "1", W: "2"}
draw:
  goal: {per: trial, of: {goal: [left, right]}}
start: {at: box, face: random}
trial:
  limit: 60
  start: wait
  states:
    wait: {freeze: true, say: "...", rules: [{after: 3, go: run}]}
    run:
      say: GO
      show: {goal: "*"}
      each: {reward: -0.01}
      rules:
        - {enter: goal, reward: 1, end: found}
        - {enter: side, reward: -1, end: missed}
  watch: [{enter: hot, reward: -0.5}]
schedule: {main: {sessions: 2, trials: 3}}
success: last == found
"""


def environment(view: str, seed: int) -> SubjectEnvironment:
    """Return a new subject of that world, in a view of text."""
    from cheesebench.protocol import Catalogue

    plugins = installed_plugins()
    specification, found = Catalogue().inspect_text(_PROTOCOL)
    if specification is None:
        raise PluginError("\n".join(map(str, found)))
    return plugins.compile(specification.walkable()).environment(plugins.view(view), seed, 0)
