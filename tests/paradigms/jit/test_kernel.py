"""What surrounds the compiled kernel: its cache on disk, its memory, its layout."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.batch import vector_class
from cheesebench.paradigms.arena.jit import kernel, translate
from cheesebench.paradigms.arena.jit import vector as compiled
from cheesebench.paradigms.arena.jit.compiled import announce_compilation
from cheesebench.paradigms.arena.jit.vocabulary import UntranslatableError
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from tests.paradigms.zoo import load


def test_another_source_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernel._digest()
    for file in Path(kernel.__file__).parent.glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(kernel, "__file__", str(tmp_path / "kernel.py"))
    assert kernel._digest() == before
    with (tmp_path / "hashing.py").open("a") as source:
        source.write("\n")
    assert kernel._digest() != before
    # numba looks at the values of a closure.
    one, other = kernel._made(before).step_all, kernel._made(kernel._digest()).step_all
    assert [cell.cell_contents for cell in one.py_func.__closure__] != [  # type: ignore[attr-defined]
        cell.cell_contents
        for cell in other.py_func.__closure__  # type: ignore[attr-defined]
    ]


def test_where_no_folder_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(lambda: 0)
    assert callable(kernel._made("another").step_all)


def test_people_are_told_what_takes_so_long(caplog: pytest.LogCaptureFixture) -> None:
    function = numba.njit(lambda number: number + 1)
    with announce_compilation():
        assert function(1) == 2
        assert function(1.0) == 2.0
    assert [record.message for record in caplog.records] == [
        "Compiling the steps of vector environments. This takes about 20 seconds, once per machine."
    ]
    with announce_compilation():
        assert function(2) == 3
    assert len(caplog.records) == 1


def test_what_would_take_too_much_memory_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ArenaParadigm(load("patience")).program
    assert translate.translate(program).lane_size <= translate.MAX_LANE
    monkeypatch.setattr(translate, "MAX_LANE", 20)
    with pytest.raises(UntranslatableError, match="cannot be compiled: a subject has too many possible states"):
        translate.translate(program)


def test_rows_of_lanes_spread_over_the_cache() -> None:
    for columns in (1, 8, 9, 100):
        for kind in (np.int64, np.int32):
            rows = compiled._spread(5, columns, kind)
            assert rows.shape[0] == 5
            assert rows.shape[1] >= columns
            assert rows.ctypes.data % compiled.LINE == 0
            assert rows.strides[0] // compiled.LINE % 2 == 1
            assert not rows.any()


def test_a_traced_life_may_be_longer_than_its_first_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "TRACE_ROWS", 2)
    specification = load("patience")
    vector = vector_class(specification, ArenaParadigm(specification))(3, compiled=True)
    vector.reset(seed=1)
    for _ in range(30):
        vector.step(np.full(3, 3))
    assert isinstance(vector._lanes, compiled.CompiledLanes)
    assert vector._lanes._traces.shape[1] >= 2 * 25  # the limit


def test_programs_are_translated_once_and_forgotten() -> None:
    specification = Catalogue(installed_plugins().protocol_directories)
    paradigm = ArenaParadigm(specification.load(specification.files["t_maze"]).walkable())
    environments = [vector_class(paradigm.specification, paradigm)(2, compiled=True) for _ in range(2)]
    made = [environment._lanes._made for environment in environments]  # type: ignore[attr-defined]
    assert made[0] is made[1]
    assert paradigm.program in compiled._translations
