"""A generator's expansion, pasted into the protocol in its place, is the same arena."""

from __future__ import annotations

import pytest

from cheesebench.protocol import Specification
from cheesebench.protocol.arena import arena_as_yaml
from tests.arenas import examine_text

PROTOCOL = """
version: 1
paradigm: generated
start: {{at: {start}, face: N}}
trial: {{limit: 50, start: run, states: {{run: {{rules: [{{enter: {goal}, reward: 1, end: found}}]}}}}}}
schedule: {{main: {{}}}}
{arena}
"""


def load(arena: str, start: str, goal: str) -> Specification:
    specification, found = examine_text(
        PROTOCOL.format(arena=arena, start=start, goal=goal)
    )
    assert specification is not None, "\n".join(map(str, found))
    return specification


def as_yaml(specification: Specification) -> str:
    assert specification.arena.drawn is not None
    return arena_as_yaml(specification.arena.drawn, specification.document.arena)


@pytest.mark.parametrize(
    ("arena", "start", "goal"),
    [
        ("arena: {pool: {radius: 3}}", "edge", "spot_nw"),
        (
            "arena: {pool: {radius: 9}, landmarks: {N: 1, E: '\"', S: \"\\\\\", W: '#'}}",
            "edge",
            "spot",
        ),
        ("arena: {ring: {radius: 4, holes: 2}, headings: 4}", "centre", "hole1"),
        (
            "arena: {ring: {radius: 12, holes: 20}, landmarks: [{at: [0, 0], glyph: ':'}]}",
            "centre",
            "hole",
        ),
        ("arena: {radial: {arms: 4, length: 3}}", "centre", "cup"),
        (
            "arena: {radial: {arms: 8, length: 5, hub: 3}, groups: {odd: [arm1, arm3]}}",
            "hub",
            "odd",
        ),
        (
            "arena: {radial: {arms: 5, length: 4, width: 3}, landmarks: {post: {at: [-1, -1], glyph: é}}}",
            "hub",
            "cup",
        ),
    ],
)
def test_the_expansion_loads_to_the_same_arena(
    arena: str, start: str, goal: str
) -> None:
    generated = load(arena, start, goal)
    text = as_yaml(generated)
    ejected = load(text, start, goal)
    assert ejected.arena == generated.arena
    assert ejected.arena.drawn is None
    assert ejected.document.arena.map is not None


def test_an_expansion_reads_as_if_written_by_hand() -> None:
    text = as_yaml(
        load("arena: {radial: {arms: 2, length: 1}, landmarks: {N: 1}}", "hub", "arm1")
    )
    assert text == (
        "arena:\n"
        "  map: |2\n"
        "     ###\n"
        "    ##a##\n"
        "    #bbb#\n"
        "    #bcb#\n"
        "    #bbb#\n"
        "    ##d##\n"
        "     ###\n"
        "  legend:\n"
        '    "a": {door: gate1, zones: [arm1, cup1], glyph: "o"}\n'
        '    "b": {zone: hub, glyph: "."}\n'
        '    "c": {zones: [hub, centre], glyph: "."}\n'
        '    "d": {door: gate2, zones: [arm2, cup2], glyph: "o"}\n'
        "  groups:\n"
        "    arm: [arm1, arm2]\n"
        "    cup: [cup1, cup2]\n"
        "    gate: [gate1, gate2]\n"
        "  landmarks:\n"
        '    N: "1"\n'
    )
