"""Short ways to write a part of a protocol."""

from __future__ import annotations

from collections.abc import Callable

from cheesebench.diagnostics import Diagnostic
from cheesebench.protocol import Specification

#: What fixtures of this folder do with a text.
Check = Callable[[str, str], None]
Examine = Callable[[str], tuple[Specification | None, list[Diagnostic]]]
Mistake = Callable[[str, str, str], None]
Findings = Callable[[str], list[str]]

FOUND = "rules: [{enter: goal, reward: 1, end: found}]"
SIDES = 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {side: [box, goal]}}\n'
EMPTY = "trial: {limit: 1, start: a, states: {a: {}}}"
SCORED = "success: last == found\n"
WALK = f"trial: {{limit: 9, start: run, states: {{run: {{{FOUND}}}}}}}\n"
RING = "start: {at: hole1}\ntrial: {limit: 9, start: a, states: {a: {rules: [{enter: hole2, end: b}]}}}\n"
LEVER = 'arena: {map: "S..ZL", legend: {S: box, Z: goal, L: {solid: lever}}, groups: {side: [box, goal]}}\n'
DOOR = 'arena: {map: "S.d.Z", legend: {S: box, Z: goal, d: {door: gate}}}\n'
LANDMARK = 'arena: {map: "S..Z", legend: {S: box, Z: goal}, landmarks: {N: "1"}}\n'

#: A protocol without a mistake.
RIGHT = """
version: 1
paradigm: right
arena:
  radial: {arms: 4, length: 3}
  landmarks: {N: "1", lamp: {at: [1, 1], glyph: "l"}}
vars:
  n: {init: 0, per: subject}
  seen: {init: [], per: session}
  home: none
draw:
  one: {per: subject, of: {sort: [low, high]}}
  two: {of: {goal: [arm1, arm2]}}
  gap: {of: {wait: {from: 1, to: 3}}}
start: {at: hub, face: N}
trial:
  limit: 60
  start: run
  states:
    run:
      say: "TONE {sort}"
      rules:
        - {enter: arm, if: it == goal, reward: 1, add: {seen: it}, end: correct}
        - {enter: arm, set: {n: n + 1, home: it}, go: rest}
    rest:
      show: {lamp: "*"}
      rules:
        - {after: wait, end: wrong}
        - {press: any, end: bumped}
schedule:
  train: {trials: 10, until: {if: last == correct, count: 3, of: 5}}
success: last == correct
measures:
  fast: {value: steps, by: [sort]}
  order: size(seen) + position(home, arm)
"""


def trial(rule: str, more: str = "") -> str:
    return (
        f"trial: {{limit: 9, start: run, {more}states: {{run: {{rules: [{rule}]}}}}}}\n"
    )


def state(keys: str) -> str:
    return f"trial: {{limit: 9, start: run, states: {{run: {{{keys}, {FOUND}}}}}}}\n"


def arena(keys: str, legend: str = "") -> str:
    return f'arena: {{map: "SZ", legend: {{S: box, Z: goal{legend}}}, {keys}}}\n'


def construct(lesion: str) -> str:
    lesions = f"[{{lesion: {lesion}, at_most: 0.5}}]"
    return f"success: last == found\nconstruct:\n  name: x\n  kind: perception\n  abolished_by: {lesions}\n"
