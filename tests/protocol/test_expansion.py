"""A generator's expansion, pasted into the protocol in its place, is the same arena."""

from __future__ import annotations

import pytest

from cheesebench.errors import OptionError
from cheesebench.protocol import Specification
from cheesebench.protocol.expansion import arena_as_yaml
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
    specification, found = examine_text(PROTOCOL.format(arena=arena, start=start, goal=goal))
    assert specification is not None, "\n".join(map(str, found))
    return specification


@pytest.mark.parametrize(
    ("arena", "start", "goal"),
    [
        ("arena: {pool: {radius: 3}}", "edge", "spot_nw"),
        ("arena: {pool: {radius: 9}, landmarks: {N: 1, E: '\"', S: \"\\\\\", W: '#'}}", "edge", "spot"),
        ("arena: {ring: {radius: 4, holes: 2}, headings: 4}", "centre", "hole1"),
        ("arena: {ring: {radius: 12, holes: 20}, landmarks: [{at: [0, 0], glyph: ':'}]}", "centre", "hole"),
        ("arena: {radial: {arms: 4, length: 3}}", "centre", "cup"),
        ("arena: {radial: {arms: 8, length: 5, hub: 3}, groups: {odd: [arm1, arm3]}}", "hub", "odd"),
        ("arena: {radial: {arms: 5, length: 4, width: 3}, landmarks: {post: {at: [-1, -1], glyph: é}}}", "hub", "cup"),
        ("arena: {boxes: {}}", "west", "east"),
        ("arena: {boxes: {width: 7, height: 4, doorway: 3}, headings: 4}", "side", "gate"),
    ],
)
def test_the_expansion_loads_to_the_same_arena(arena: str, start: str, goal: str) -> None:
    generated = load(arena, start, goal)
    text = arena_as_yaml(generated)
    ejected = load(text, start, goal)
    assert ejected.arena == generated.arena
    assert ejected.arena.drawn is None
    assert ejected.document.arena.map is not None


def test_an_expansion_reads_as_if_written_by_hand() -> None:
    text = arena_as_yaml(load("arena: {boxes: {width: 2, height: 1}, landmarks: {N: 1}}", "west", "east"))
    assert text == (
        "arena:\n"
        "  map: |2\n"
        "    #######\n"
        "    #aabcc#\n"
        "    #######\n"
        "  legend:\n"
        '    "a": {zone: west, glyph: "."}\n'
        '    "b": {door: gate, glyph: "|"}\n'
        '    "c": {zone: east, glyph: "."}\n'
        "  groups:\n"
        "    side: [west, east]\n"
        "  landmarks:\n"
        '    N: "1"\n'
    )


def test_a_map_has_no_expansion() -> None:
    text = arena_as_yaml(load("arena: {boxes: {}}", "west", "east"))
    with pytest.raises(OptionError, match="is already a map"):
        arena_as_yaml(load(text, "west", "east"))
