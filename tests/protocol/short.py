"""Short ways to write a part of a protocol."""

from __future__ import annotations

FOUND = "rules: [{enter: goal, reward: 1, end: found}]"
SIDES = 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {side: [box, goal]}}\n'


def trial(rule: str, more: str = "") -> str:
    return (
        f"trial: {{limit: 9, start: run, {more}states: {{run: {{rules: [{rule}]}}}}}}\n"
    )


def state(keys: str) -> str:
    return f"trial: {{limit: 9, start: run, states: {{run: {{{keys}, {FOUND}}}}}}}\n"
