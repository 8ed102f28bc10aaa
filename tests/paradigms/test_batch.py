"""A batch is nothing but its lives: observations, rewards, ends and infos equal those of the scalar classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from cheesebench.errors import CheeseBenchError, OptionError, ProtocolError, StepAfterEndError
from cheesebench.paradigms.arena import ArenaParadigm, batch, pages
from cheesebench.paradigms.arena import vector as scalar_kernel
from cheesebench.paradigms.arena.batch import ArenaVectorEnvironment
from cheesebench.paradigms.arena.jit import vector as jit_vector
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from fuzz.kernel import WEIGHTS, Classes, Lanes, assert_equal, assert_same_lives, classes_of, lanes_of
from tests.paradigms.strategies import protocols
from tests.paradigms.zoo import ZOO, examine, load

T = TypeVar("T")
#: Stepped by numpy and its lives, and by compiled code.
both = pytest.mark.parametrize("compiled", [False, True], ids=["lives", "compiled"])

#: Protocols that deal out a set, and others of the zoo with sets of numbers of any kind, which do not fit into bits.
DEALT = ("dealt", "radial_arm_maze", "radial_arm_maze.rodent")
UNTRANSLATABLE = ("picked", "measured", "truths", "crowded", *DEALT)
SHIPPED = Catalogue(installed_plugins().protocol_directories)
#: All that is shipped, the classics included.
FILES = SHIPPED.files | {
    path.name.split(".")[0]: path for path in sorted(SHIPPED.folders["classics"].glob("*.protocol.yaml"))
}


def read(name: str) -> Specification:
    return load(name) if name in ZOO else SHIPPED.load(FILES[name]).walkable()


#: Protocol -> a scalar class and a vector class which share one compiled paradigm.
CLASSES: dict[str, Classes] = {}


def classes(name: str) -> Classes:
    if name not in CLASSES:
        CLASSES[name] = classes_of(read(name))
    return CLASSES[name]


@st.composite
def plans(draw: Callable[..., Any], longest: int) -> dict[str, Any]:
    """Return how lanes are to be made and what they do (see ``assert_same_lives``)."""
    return {
        "count": draw(st.integers(1, 5)),
        "first": draw(st.integers(0, 9)),
        "seed": draw(st.integers(0, 2**40)),
        "luck": draw(st.integers(0, 2**32 - 1)),
        # A bias makes for subjects that get somewhere.
        "weights": draw(st.sampled_from(WEIGHTS)),
        "steps": draw(st.integers(1, longest)),
        "again": draw(st.integers(0, longest)),
        "observations": draw(st.sampled_from(batch.OBSERVATIONS)),
    }


@both
@pytest.mark.parametrize("name", [*FILES, *ZOO])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # `python -m fuzz` does more
@given(plan=plans(700))
def test_a_batch_lives_as_its_lives_do(name: str, compiled: bool, plan: dict[str, Any]) -> None:
    assert assert_same_lives(classes(name), plan, compiled) is None


@pytest.mark.parametrize("name", [*FILES, *ZOO])
def test_what_cannot_be_compiled(name: str) -> None:
    if name not in UNTRANSLATABLE:
        assert isinstance(classes(name)[1](2, compiled=True)._lanes, jit_vector.CompiledLanes)
        return
    why = "a draw deals out a set" if name in DEALT else "a set can have .*"
    with pytest.raises(OptionError, match=rf"This protocol cannot be compiled: {why}.*Remove 'compiled'"):
        classes(name)[1](2, compiled=True)
    assert isinstance(classes(name)[1](batch.MANY)._lanes, scalar_kernel.ScalarLanes)


def test_many_lanes_are_compiled_where_numba_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    batched = classes("patience")[1]
    assert isinstance(batched(batch.MANY)._lanes, jit_vector.CompiledLanes)
    assert isinstance(batched(batch.MANY - 1)._lanes, scalar_kernel.ScalarLanes)
    assert isinstance(batched(batch.MANY, compiled=False)._lanes, scalar_kernel.ScalarLanes)
    monkeypatch.setattr(batch, "find_spec", lambda name: None)
    assert isinstance(batched(batch.MANY)._lanes, scalar_kernel.ScalarLanes)
    with pytest.raises(OptionError, match=r"'compiled' needs numba. Install it: pip install"):
        batched(2, compiled=True)


@both
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(text=protocols(), plan=plans(200))
def test_a_batch_of_any_protocol_lives_as_its_lives_do(text: str, compiled: bool, plan: dict[str, Any]) -> None:
    note(text)
    specification, found = examine(text, "any")
    assume(specification is not None)
    assert specification is not None, found
    assert_same_lives(classes_of(specification), plan, compiled)


@both
@pytest.mark.parametrize("name", ZOO)
def test_nothing_changes_when_memory_is_short(name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_POSES", 1)
    monkeypatch.setattr(pages, "MAX_BYTES", 1000)
    monkeypatch.setattr(scalar_kernel, "TRACE_ROWS", 3)
    monkeypatch.setattr(jit_vector, "TRACE_ROWS", 3)
    monkeypatch.setattr(jit_vector, "LOOKS", 6)
    scalar, batched = classes(name)
    subjects, vector = Lanes(scalar, 3, 0), lanes_of(batched, 3, compiled)
    assert_equal(vector, vector.reset(seed=5), subjects.reset(5))
    random = np.random.default_rng(5)
    for _ in range(400):
        actions = random.integers(0, 4, 3)
        assert_equal(vector, vector.step(actions), subjects.step(actions))


def test_it_is_a_gymnasium_vector_environment_equal_to_the_synchronous_one() -> None:
    name = next(iter(SHIPPED.files)).replace("_", " ").title().replace(" ", "")
    vector = gymnasium.make_vec(f"cheesebench/{name}-v1", num_envs=3, subject=2)
    plain = gymnasium.make_vec(f"cheesebench/{name}-v1", num_envs=3, subject=2, vectorization_mode="sync")
    assert isinstance(vector, ArenaVectorEnvironment)
    assert isinstance(plain, SyncVectorEnv)
    assert vector.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP is plain.metadata["autoreset_mode"]
    assert vector.observation_space == plain.observation_space
    assert vector.action_space == plain.action_space
    # The lanes of the synchronous one are the same subject under different seeds, so a lane of each is compared.
    (seen, _), (expected, _) = vector.reset(seed=[9, 1, 1]), plain.reset(seed=9)
    assert seen[0] == expected[0]
    assert vector.observation_space.contains(seen)
    vector.action_space.seed(0)
    for _ in range(300):
        actions = vector.action_space.sample()
        actual, wanted = vector.step(actions), plain.step(actions)
        assert vector.observation_space.contains(actual[0])
        for one, other in zip(actual[:4], wanted[:4], strict=True):
            assert one[0] == other[0]
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


def test_pictures_have_numbers_and_no_arrays() -> None:
    _, batched = classes("patience")
    with pytest.raises(OptionError, match="Ask for observations='ids'"):
        batched(3, view="topdown_2d")
    vector = batched(3, view="topdown_2d", observations="ids")
    numbers, _ = vector.reset(seed=4)
    for _ in range(20):
        numbers, *_ = vector.step(vector.action_space.sample())
    assert len({picture.png for picture in vector.texts}) == len(vector.texts) > 1
    assert vector.texts[numbers[0]].png.startswith(b"\x89PNG")


def test_a_protocol_file_and_numbers_of_observations(protocol_file: Callable[[str, str], Any]) -> None:
    path = protocol_file("patience", ZOO["patience"])
    vector = gymnasium.make_vec("cheesebench/Protocol-v1", num_envs=4, protocol=path, observations="ids")
    ids, infos = vector.reset(seed=3)
    assert vector.observation_space.contains(ids)
    assert infos["subject"].tolist() == [0, 1, 2, 3]
    for _ in range(60):
        ids = vector.step(vector.action_space.sample())[0]
        texts = vector.get_wrapper_attr("texts") if hasattr(vector, "get_wrapper_attr") else vector.texts  # type: ignore[attr-defined]
        assert len(set(texts)) == len(texts) > max(ids)  # equal texts have equal numbers


def test_more_observations_than_can_be_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_TEXTS", 3)
    vector = classes("patience")[1](8, observations="ids")
    with pytest.raises(CheeseBenchError, match="Ask for 'strings'"):
        vector.reset(seed=0)


def test_mistakes_are_named() -> None:
    batched: Any = classes("patience")[1]
    vector: Any = batched(2)
    with pytest.raises(StepAfterEndError, match=r"Call reset\(\) before step"):
        vector.step([0, 0])
    vector.reset(seed=1)
    with pytest.raises(OptionError, match="There is no action 4"):
        vector.step([0, 4])
    with pytest.raises(OptionError, match="There is no action -1"):
        vector.step(np.array([0, -1], np.int8))
    with pytest.raises(OptionError, match="2 whole numbers, one per environment"):
        vector.step([0])
    with pytest.raises(OptionError, match="2 whole numbers"):
        vector.step([0.5, 1.0])
    with pytest.raises(OptionError, match="There are 3 seeds for 2 environments"):
        vector.reset(seed=[1, 2, 3])
    with pytest.raises(OptionError, match="'observations' must be one of strings, ids"):
        batched(2, observations="tokens")
    with pytest.raises(OptionError, match="'num_envs' must be at least 1, not 0"):
        batched(0)
    with pytest.raises(OptionError, match=r"'num_envs' must be a whole number, not 2\.5"):
        batched(2.5)
    for odd in ("yes", "", 2):
        with pytest.raises(OptionError, match=f"'compiled' must be True, False or None, not {odd!r}"):
            batched(2, compiled=odd)
    for no in (0, np.False_):
        assert isinstance(batched(2, compiled=no)._lanes, scalar_kernel.ScalarLanes)
    for seeds in ([1, None], [1, "2"], "12", np.array([1.0, 2.0])):
        with pytest.raises(OptionError, match="'seed' must be a whole number, not "):
            vector.reset(seed=seeds)


@both
def test_actions_are_whole_numbers_of_any_kind(compiled: bool) -> None:
    vector, other = (classes("patience")[1](5, compiled=compiled) for _ in range(2))
    vector.reset(seed=1)
    other.reset(seed=1)
    spaced, fixed = np.arange(10)[::-2] % 4, np.arange(5)[::-1] % 4
    fixed.flags.writeable = False
    for actions in (
        *(np.array([3, 1, 0, 2, 3], letter) for letter in "bBhHiIlLqQ"),
        spaced,
        fixed,
        spaced.astype(">i4"),
    ):
        assert vector.step(actions)[0] == other.step(actions.tolist())[0]
    with pytest.raises(OptionError, match="There is no action 255"):
        vector.step(np.full(5, 255, np.uint8))


def test_actions_of_any_layout_need_no_other_compilation() -> None:
    vector = classes("patience")[1](5, compiled=True)
    vector.reset(seed=1)
    kernel = vector._lanes._kernel.step_all  # type: ignore[attr-defined]
    known = len(kernel.signatures)
    vector.step((np.arange(10) % 4)[::2])
    vector.step(np.broadcast_to(np.int64(3), 5))
    assert len(kernel.signatures) == known == 1


@both
def test_resets_need_no_more_room(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_vector, "LOOKS", 1)
    monkeypatch.setattr(pages, "MAX_POSES", 1)
    scalar, batched = classes("doors_and_draws")
    subjects, vector = Lanes(scalar, 3, 0), batched(3, compiled=compiled)
    assert_equal(vector, vector.reset(seed=5), subjects.reset(5))
    for _ in range(60):
        assert_equal(vector, vector.reset(), subjects.reset(None))
        assert len(vector._lanes.album._looks) <= 6


@both
def test_no_lane_lives_on_after_a_mistake(compiled: bool) -> None:
    text = """
        version: 1
        paradigm: mistaken
        arena: {map: a.b, legend: {a: {zone: left}, b: {zone: right}}}
        draw: {way: {per: trial, order: by_subject, of: {length: [5, 0]}}}
        start: {at: left}
        trial: {limit: length, start: only, states: {only: {rules: [{enter: right, end: there}]}}}
        schedule: {only: {trials: 2}}
    """
    specification, found = examine(text, "mistaken")
    assert specification is not None, found
    vector = classes_of(specification)[1](4, compiled=compiled)
    for _ in range(2):
        with pytest.raises(ProtocolError, match="The limit of the trial is 0"):
            vector.reset(seed=1)
        with pytest.raises(StepAfterEndError, match=r"Call reset\(\) before step"):
            vector.step([0, 0, 0, 0])


def test_rendering() -> None:
    vector = classes("patience")[1](2, render_mode="ansi")
    with pytest.raises(StepAfterEndError, match=r"Call reset\(\) before render"):
        vector.render()
    texts, _ = vector.reset(seed=1)
    assert vector.render() == texts
    assert classes("patience")[1](2).render() is None
    assert ArenaParadigm(read("patience")).program.reads_trace
