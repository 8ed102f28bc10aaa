"""A small described graph, for the tests of reading, scoring and asking."""

from __future__ import annotations

import pytest

from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.protocol import Catalogue

#: Two paths to a reward, a dead end, and an edit of every kind.
TEXT = """
version: 1
paradigm: garden
system: You are a guide.
arena:
  graph:
    start: 1
    edges: [[1, 2], [2, 3], [1, 4], [4, 3], [3, 5], [4, 6]]
    rewards: {5: 40, 6: 10}
    vocabulary:
      numbers: "room {n}"
      people: {names: {1: Ada, 2: Ben, 3: Cleo, 4: Dan, 5: Eve, 6: Finn, 7: Gus}, scene: people}
conditions:
  plain: {ask: best_path}
  first: {ask: best_path, answer: {form: first_step}}
  loose: {ask: best_path, answer: {include_start: false}}
  groups: {ask: groups}
  map: {ask: edges}
  turns: {ask: shortest_path, pairs: {distance: 2, count: 5, each: 2}}
  near: {ask: shortest_path, pairs: [[2, 5], [6, 2]], instruct: breadth_first}
  cut: {after: plain, edit: {remove: [[3, 5]], add: [[6, 5]]}, ask: best_path, instruct: step_by_step}
  gate: {after: cut, edit: {add: [[1, 7]], portal: {at: 7, to_neighbours_of: 6}}, ask: best_path}
"""


@pytest.fixture(scope="session")
def garden() -> DialogueSpecification:
    specification, found = Catalogue().inspect_text(TEXT, "garden.protocol.yaml")
    assert isinstance(specification, DialogueSpecification), found
    return specification
