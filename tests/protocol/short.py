"""Short ways to write a part of a protocol."""

from __future__ import annotations

from collections.abc import Callable

from cheesebench.diagnostics import Diagnostic
from cheesebench.protocol import Specification

#: What fixtures of this folder do with a text.
Check = Callable[[str, str], None]
Examine = Callable[[str], tuple[Specification | None, list[Diagnostic]]]
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
