"""Cached values equal computed ones: long expressions, and traces."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.interfaces import FORWARD
from cheesebench.paradigms.arena import ArenaParadigm, program
from cheesebench.paradigms.arena.life import Trace
from cheesebench.paradigms.arena.tables import Geometry
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.protocol import expressions as ex

#: Equal numbers that a record distinguishes, and numbers that equal nothing.
ODD = st.sampled_from(
    [0, 0.0, -0.0, False, 1, 1.0, True, -1, 2**53, float("nan"), float("inf")]
)
LEAVES: st.SearchStrategy[ex.Expression] = st.one_of(
    st.sampled_from([ex.Variable("a"), ex.Variable("b")]),
    st.sampled_from([0, 1, 0.0, 1.0, 2.5]).map(ex.Number),
)


def grown(
    smaller: st.SearchStrategy[ex.Expression],
) -> st.SearchStrategy[ex.Expression]:
    signs = st.sampled_from(["+", "-", "*", "/", "==", "<", ">=", "and", "or"])
    return st.one_of(
        st.builds(ex.Binary, signs, smaller, smaller),
        st.builds(ex.Unary, st.sampled_from(["-", "not"]), smaller),
    )


@given(
    tree=st.recursive(LEAVES, grown, max_leaves=12),
    asked=st.lists(st.tuples(ODD, ODD), min_size=2, max_size=12),
)
def test_a_long_expression_is_remembered_as_it_is(
    tree: ex.Expression, asked: list[tuple[Any, Any]]
) -> None:
    looked_up, computed = (
        program.compile_expression(tree),
        program._plain_function(tree),
    )
    for a, b in asked:
        memory = SimpleNamespace(values={"a": a, "b": b}, it=None)
        assert repr(looked_up(memory)) == repr(computed(memory))


def test_there_is_no_negative_zero() -> None:
    memory = SimpleNamespace(values={"a": 0.0})
    for tree in (
        ex.Unary("-", ex.Variable("a")),
        ex.Binary("*", ex.Variable("a"), ex.Number(-1)),
        ex.Binary("/", ex.Variable("a"), ex.Number(-2)),
    ):
        assert repr(program.compile_expression(tree)(memory)) == "0.0"


def test_what_is_long_enough_is_remembered() -> None:
    long: ex.Expression = ex.Variable("a")
    for number in range(8):
        long = ex.Binary("+", long, ex.Number(number))
    memory = SimpleNamespace(values={"a": 1}, it=None)
    function = program.compile_expression(long)
    assert [function(memory), function(memory)] == [29, 29]
    memory.values["a"] = 1.0  # equal, but a different number in a record
    assert repr(function(memory)) == "29.0"


@cache
def geometry_of(name: str) -> Geometry:
    return ArenaParadigm(
        with_arena(Catalogue(installed_plugins().protocol_directories).find(name))
    ).program.geometry


class Retraced:
    """The counts that a trace promises, counted step by step."""

    def __init__(self, geometry: Geometry, trace: Trace) -> None:
        self._geometry, self._steps = geometry, []
        before = trace.first
        for number, entry in enumerate(trace.entries, 1):
            self._steps.append((before, entry & ~3, entry & 3))
            before = trace.placed.get(number, entry & ~3)

    def is_in(self, pose: int, places: tuple[str, ...]) -> bool:
        return self._geometry.cell(pose) in self._geometry.cells_of(places)

    def steps_in(self, places: tuple[str, ...]) -> int:
        return sum(self.is_in(after, places) for _, after, _ in self._steps)

    def entries_into(self, places: tuple[str, ...]) -> int:
        return sum(
            self.is_in(after, places) and not self.is_in(before, places)
            for before, after, _ in self._steps
        )

    def moved(self) -> int:
        return sum(
            action == FORWARD and after != before
            for before, after, action in self._steps
        )


@pytest.mark.parametrize("name", ["morris_water_maze", "radial_arm_maze"])
@settings(max_examples=40)
@given(data=st.data())
def test_a_trace_counts_what_happened(name: str, data: st.DataObject) -> None:
    geometry = geometry_of(name)
    moves = geometry.tables(frozenset(), False).moves
    places = [(zone,) for zone in list(geometry.arena.zones)[:3]]
    poses = st.integers(0, geometry.poses - 1).map(lambda number: number * 4)
    trace = Trace(geometry)
    for _ in range(data.draw(st.integers(1, 3))):  # a trace is used again
        trace.clear()
        pose = trace.first = data.draw(poses)
        for step in range(1, data.draw(st.integers(1, 25)) + 1):
            action = data.draw(st.sampled_from([0, 0, 0, 1, 2, 3]))
            pose = moves[pose + action]
            trace.entries.append(pose + action)
            if data.draw(st.integers(0, 9)) == 0:
                pose = trace.placed[step] = data.draw(poses)
            if data.draw(st.integers(0, 3)) == 0:  # also read in the middle of a trial
                retraced = Retraced(geometry, trace)
                for place in places:
                    assert trace.steps_in(place) == retraced.steps_in(place)
                    assert trace.entries_into(place) == retraced.entries_into(place)
                assert trace.path()[0] == retraced.moved()
