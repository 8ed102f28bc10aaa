"""One table of the language, two kernels: what the compiled one does not have is declared so, and falls back."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from cheesebench.errors import OptionError
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.batch import MANY, vector_class
from cheesebench.paradigms.arena.environment import environment_class
from cheesebench.paradigms.arena.jit import formulas, translate
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.path import Path
from cheesebench.paradigms.arena.program import names_in
from cheesebench.paradigms.arena.vector import ScalarLanes
from cheesebench.protocol.documents import Effects, Rule, State
from cheesebench.protocol.features import ARITHMETIC, BUILT_INS, EFFECTS, FUNCTIONS, HISTORY, TRIGGERS, Function
from cheesebench.protocol.specification import EffectsSpec
from tests.arenas import examine_text

pytest.importorskip("numba")

COMPILED = (
    (BUILT_INS, formulas.BUILT_INS),
    (FUNCTIONS, formulas.FUNCTIONS),
    (ARITHMETIC, formulas.ARITHMETIC),
    (HISTORY, ()),
    (TRIGGERS, translate.TRIGGERS),
    (EFFECTS, translate.EFFECTS),
)
PROTOCOL = """
version: 1
paradigm: late
arena:
  map: |
    #######
    #S...Z#
    #######
  legend: {S: box, Z: {zone: goal, glyph: "*"}}
draw: {side: {per: trial, of: {face: [E, W]}}}
start: {at: box, face: face}
trial:
  limit: 14
  start: run
  states: {run: {each: {reward: -0.1}, rules: [{enter: goal, if: "steps > 5", reward: 1, place: box, end: found}]}}
schedule: {main: {trials: 6}}
success: last == found
measures: {first: MEASURE}
"""


def neither(table: dict[str, Any], compiled: Any) -> list[str]:
    """Return the entries that are not compiled though they are not declared as falling back, or are both."""
    return [name for name, entry in table.items() if entry.scalar_only == (name in compiled)]


@pytest.mark.parametrize(
    ("table", "compiled"), COMPILED, ids=["names", "functions", "arithmetic", "history", "triggers", "effects"]
)
def test_every_entry_is_compiled_or_declared_to_fall_back(table: dict[str, Any], compiled: Any) -> None:
    remedy = "compile these in paradigms/arena/jit/, or declare them with scalar_only=True"
    assert neither(table, compiled) == [], remedy
    assert set(compiled) <= set(table), "compiled code for what is not in the language"


def test_the_test_fails_for_an_entry_that_is_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, "latency", Function("zone", reads="trace"))
    assert neither(FUNCTIONS, formulas.FUNCTIONS) == ["latency"]
    monkeypatch.setitem(FUNCTIONS, "latency", Function("zone", reads="trace", scalar_only=True))
    assert neither(FUNCTIONS, formulas.FUNCTIONS) == []
    monkeypatch.setitem(FUNCTIONS, "time", Function("zone", reads="trace", scalar_only=True))
    assert neither(FUNCTIONS, formulas.FUNCTIONS) == ["time"], "declared to fall back, and compiled"


def test_the_documents_and_the_scalar_kernel_have_what_the_table_has() -> None:
    assert set(Effects.model_fields) == set(EFFECTS) == {field.name for field in dataclasses.fields(EffectsSpec)}
    assert set(EFFECTS) < set(State.model_fields)
    others = {"if_", "p", "go", "end"}
    assert set(Rule.model_fields) - set(EFFECTS) - others == set(TRIGGERS)
    known = set(dir(ArenaSubject)) | {"where", "size", *ArenaSubject.__init__.__code__.co_names}
    assert (set(FUNCTIONS) | set(BUILT_INS)) - known == set(), "write methods of these names in paradigms/arena/path.py"


def latency(self: Path, place: Any) -> float:
    """Return the steps until a place was first entered."""
    inside = self._geometry.inside(tuple(names_in(place)))
    reached = [number for number, entry in enumerate(self._trace.entries, 1) if inside[entry]]
    return float(reached[0]) if reached else math.nan


@pytest.fixture
def with_latency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, "latency", Function("zone", reads="trace", scalar_only=True))
    monkeypatch.setattr(Path, "latency", latency, raising=False)


def paradigm(measure: str) -> ArenaParadigm:
    specification, found = examine_text(PROTOCOL.replace("MEASURE", measure), "late.protocol.yaml")
    assert specification is not None, found
    return ArenaParadigm(specification)


def assert_same_lives(made: ArenaParadigm, lanes: int, steps: int = 90) -> list[float]:
    """Step a vector environment and scalar ones by the same actions; return the measure's value."""
    vector = vector_class(made.specification, made)(lanes)
    assert isinstance(vector._lanes, ScalarLanes), "the compiled kernel does not have it"
    scalar = [environment_class(made.specification)(subject=lane) for lane in range(lanes)]
    texts, _ = vector.reset(seed=3)
    assert list(texts) == [one.reset(seed=3)[0] for one in scalar]
    chance, over, measured = np.random.default_rng(1), [False] * lanes, []
    for _ in range(steps):
        # Those that are told apart by their measure walk on; others do as they like.
        actions = np.where(np.arange(lanes) % 2, chance.integers(0, 4, lanes), 0)
        texts, rewards, terminated, truncated, infos = vector.step(actions)
        for lane, one in enumerate(scalar):
            if over[lane]:
                assert (texts[lane], rewards[lane]) == (one.reset()[0], 0.0)
                over[lane] = False
                continue
            text, reward, ended, cut, info = one.step(int(actions[lane]))
            assert (texts[lane], rewards[lane], terminated[lane], truncated[lane]) == (text, reward, ended, cut)
            over[lane] = ended or cut
            if over[lane]:
                value = infos["measures"]["first"][lane]
                assert value == info["measures"]["first"]
                measured += [] if value is None else [value]
    return measured


def test_a_function_that_the_compiled_kernel_does_not_have_falls_back(with_latency: None) -> None:
    measured = assert_same_lives(paradigm("latency(goal)"), MANY)
    assert min(measured) == 4, "straight on, from the box to the goal"
    made = paradigm("latency(goal)")
    with pytest.raises(
        OptionError, match="cannot be compiled: it uses 'latency', which only the scalar kernel supports"
    ):
        vector_class(made.specification, made)(MANY, compiled=True)


@pytest.mark.parametrize(
    ("module", "name", "rest"),
    [
        (translate, "EFFECTS", ("set", "add", "count", "reward")),
        (translate, "TRIGGERS", ("press", "after", "act")),
        (formulas, "BUILT_INS", {}),
        (formulas, "OPERATORS", {}),
    ],
)
def test_so_does_everything_else(module: Any, name: str, rest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, rest)
    assert assert_same_lives(paradigm("time(goal)"), MANY)


def test_nothing_falls_back_without_a_reason() -> None:
    made = paradigm("time(goal)")
    assert not isinstance(vector_class(made.specification, made)(MANY)._lanes, ScalarLanes)
