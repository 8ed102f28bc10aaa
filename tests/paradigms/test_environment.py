"""Environments under the usual operations of reinforcement learning libraries: copy,
pickle, render, wrap, run in processes.
"""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import (
    Autoreset,
    FlattenObservation,
    FrameStackObservation,
    RecordEpisodeStatistics,
    TimeLimit,
)
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorStatistics

import cheesebench  # noqa: F401  # registers the environments
from cheesebench.errors import (
    OptionError,
    ProtocolError,
    StepAfterEndError,
    UnknownNameError,
)
from cheesebench.paradigms.arena.environment import ArenaEnvironment
from cheesebench.plugin_manager import installed_plugins
from cheesebench.wrappers import WholeLife

MAZE = "cheesebench/TMaze-v1"
ENVIRONMENTS = [
    name
    for name in gymnasium.registry
    if name.startswith("cheesebench/") and "Protocol" not in name
]


def episode(environment: gymnasium.Env[Any, Any], **reset: Any) -> list[Any]:
    """Play a trial with the same actions every time; return all results."""
    lived: list[Any] = [environment.reset(**reset)]
    for step in range(10_000):
        lived.append(environment.step(step * 7 % 4))
        if lived[-1][2] or lived[-1][3]:
            return lived
    raise AssertionError("the trial did not end")


def test_every_protocol_is_registered() -> None:
    assert MAZE in ENVIRONMENTS
    assert len(ENVIRONMENTS) >= 18


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasium_s_checker_has_nothing_to_say_of_the_registered_one(
    name: str,
) -> None:
    environment = gymnasium.make(name, render_mode="rgb_array")
    # It raises for warnings, too (pytest makes them errors), and renders in all modes.
    check_env(environment.unwrapped)
    environment.close()


@pytest.mark.parametrize(
    "how", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_copies_are_made_anew(
    how: Callable[[Any], Any], protocol_file: Callable[[str, str], Any]
) -> None:
    arena = "arena: {map: '#fff#', legend: {f: {zone: floor}}}"
    trial = "trial: {limit: 9, start: run, states: {run: {}}}"
    file = protocol_file(
        "corridor",
        f"version: 1\nparadigm: corridor\n{arena}\nstart: {{at: floor, face: E}}\n{trial}\n"
        "schedule: {only: {sessions: 1, trials: 3}}\n",
    )
    for made in (
        gymnasium.make(MAZE, view="ascii_3d", subject=5, render_mode="ansi"),
        gymnasium.make(
            "cheesebench/Protocol-v1",
            protocol=file,
            subject=5,
            view="ascii_3d",
            render_mode="ansi",
        ),
    ):
        expected = episode(made, seed=4)
        copied = how(made)
        assert episode(copied, seed=4) == expected
        assert copied.render() == expected[-1][0]
        assert copied.spec == made.spec
        assert expected[0][1]["subject"] == 5
        bare = how(made.unwrapped)
        with pytest.raises(StepAfterEndError, match=r"Call reset\(\) before step"):
            bare.step(0)


def test_actions_are_whole_numbers_of_any_kind() -> None:
    environment = gymnasium.make(MAZE)
    environment.reset(seed=0)
    for action in (1, np.int64(1), np.uint8(1), np.array(1)):
        environment.step(action)
    for wrong in (1.0, "FORWARD", None, [1], np.array([1, 2]), np.array(1.5)):
        with pytest.raises(
            OptionError, match="An action must be a whole number from 0 to 3, not"
        ):
            environment.step(wrong)
    for number in (4, -1, np.int64(7)):
        with pytest.raises(OptionError, match=f"There is no action {number}"):
            environment.step(number)


def test_options_of_reset() -> None:
    environment = gymnasium.make(MAZE)
    assert environment.reset(options={"subject": np.int64(3)})[1]["subject"] == 3
    assert environment.reset(options={})[1] == {
        "block": "acquisition",
        "session": 1,
        "trial": 2,
        "subject": 3,
    }
    for reset in (environment.reset, WholeLife(environment).reset):
        with pytest.raises(
            UnknownNameError,
            match=r"no option of reset.*'subjekt'. Did you mean 'subject'",
        ):
            reset(options={"subjekt": 1})
        with pytest.raises(
            OptionError,
            match=r"A subject must be a whole number from 0 to 1000000000000000, not 1\.5",
        ):
            reset(options={"subject": 1.5})
        with pytest.raises(
            OptionError,
            match="A subject must be a whole number from 0 to 1000000000000000, not True",
        ):
            reset(options={"subject": True})
        wrong: Any
        for wrong in ([1], 5, "subject", []):
            with pytest.raises(
                OptionError,
                match=r"options of reset\(\) must be a dictionary such as .'subject': 3., not",
            ):
                reset(options=wrong)
        with pytest.raises(
            UnknownNameError,
            match=r"no option of reset\(\) called '1'\. Known: subject",
        ):
            reset(options={1: 2})  # type: ignore[dict-item]  # wrong on purpose


def test_wrong_seeds_are_named() -> None:
    wrong: Any
    for wrong in ("12", 1.0):
        with pytest.raises(
            gymnasium.error.Error, match="Seed must be a python integer, actual type"
        ):
            gymnasium.make(MAZE).reset(seed=wrong)


def test_pixels_for_people_who_watch() -> None:
    from_above = gymnasium.make(MAZE, view="topdown_2d").reset(seed=1)[0]["picture"]
    for view in installed_plugins().views:
        environment = gymnasium.make(MAZE, view=view, render_mode="rgb_array")
        environment.reset(seed=1)
        first: Any = environment.render()
        np.testing.assert_array_equal(first, from_above)
        environment.step(1)
        assert (np.asarray(environment.render()) != first).any()
    with pytest.raises(StepAfterEndError, match=r"Call reset\(\) before render"):
        copy.copy(environment.unwrapped).render()


@pytest.mark.filterwarnings("ignore:.*not in the possible render_modes:UserWarning")
def test_unknown_render_modes_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="no render mode 'rgb'"):
        gymnasium.make(MAZE, render_mode="rgb")


def test_the_page_names_the_registered_ones() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/gymnasium.md").read_text(
        encoding="utf-8"
    )
    [named] = re.findall(r"The names of the nine are\s([^.]*)\.", page)
    registered = {
        name
        for name in gymnasium.registry
        if name.startswith("cheesebench/") and "/Protocol-" not in name
    }
    plain = {f"cheesebench/{name}-v1" for name in re.findall(r"`(\w+)`", named)}
    assert plain == {
        name for name in registered if not re.search("(Rodent|Probe)-", name)
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"views": "ascii_3d"}, "argument 'views'. Did you mean 'view'? Known: "),
        ({"view": None}, "There is no view 'None'. Known: ascii_2d, "),
        ({"view": ["ascii_2d"]}, "There is no view '['ascii_2d']'."),
    ],
)
def test_unknown_arguments_are_refused_in_a_sentence(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        gymnasium.make(MAZE, **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize("protocol", [3, None])
def test_what_is_no_protocol_is_refused(protocol: Any) -> None:
    with pytest.raises(
        OptionError, match=f"must be the file or the name of a protocol, not {protocol}"
    ):
        gymnasium.make("cheesebench/Protocol-v1", protocol=protocol)


def test_protocols_go_by_name_too() -> None:
    environment = gymnasium.make("cheesebench/Protocol-v1", protocol="y_maze")
    assert isinstance(environment.unwrapped, ArenaEnvironment)
    assert environment.unwrapped.specification.name == "y_maze"
    with pytest.raises(
        UnknownNameError, match=r"no protocol 'y_mase'\. Did you mean 'y_maze'"
    ):
        gymnasium.make("cheesebench/Protocol-v1", protocol="y_mase")
    with pytest.raises(ProtocolError, match="is a dialogue"):
        gymnasium.make("cheesebench/Protocol-v1", protocol="cogeval_n7line")


def test_the_usual_wrappers() -> None:
    counted = RecordEpisodeStatistics(gymnasium.make(MAZE))
    lived = episode(counted, seed=2)
    assert lived[-1][4]["episode"]["l"] == len(lived) - 1
    assert lived[-1][4]["episode"]["r"] == sum(step[1] for step in lived[1:])
    environment = gymnasium.make(MAZE)
    expected, _ = environment.reset(seed=2)
    space = environment.observation_space
    assert isinstance(space, spaces.Text)
    assert list(space.character_list) == sorted(space.character_set)
    flat, _ = FlattenObservation(gymnasium.make(MAZE)).reset(seed=2)
    assert (
        "".join(
            space.character_list[number]
            for number in flat
            if number < len(space.character_list)
        )
        == expected
    )
    assert (
        FrameStackObservation(gymnasium.make(MAZE), 3).reset(seed=2)[0]
        == (expected,) * 3
    )
    # Breaking a trial off is allowed: the next reset begins the next trial.
    short = Autoreset(TimeLimit(gymnasium.make(MAZE), 3))
    short.reset(seed=2)
    steps = [short.step(3) for _ in range(4)]
    assert [truncated for _, _, _, truncated, _ in steps] == [False, False, True, False]
    assert steps[-1][4]["trial"] == 2
    vector = RecordVectorStatistics(gymnasium.make_vec(MAZE, num_envs=2))
    vector.reset(seed=2)
    for _ in range(32):
        *_, truncated, infos = vector.step(np.array([3, 3]))
    assert truncated.all()
    assert infos["episode"]["l"].tolist() == [32, 32]


#: A script of its own, because processes of the asynchronous mode import the module
#: that started them.
LANES = """
import sys
import gymnasium, cheesebench

SUBJECTS, SEEDS = [4, 0, 7], [5, 6, 6]
MAZES = {"cheesebench/TMaze-v1": {}, "cheesebench/Protocol-v1": {"protocol": "y_maze", "view": "ascii_3d"}}
ACTIONS = [[step % 3, step * 7 % 4, 0] for step in range(200)]

def together(mode, name, options):
    own = {"vector_kwargs": {"shared_memory": False, "context": "spawn"}} if mode == "async" else {}
    vector = gymnasium.make_vec(name, num_envs=3, vectorization_mode=mode, **own, **options)
    vector.set_attr("subject", SUBJECTS)
    yield vector.reset(seed=SEEDS)
    yield from map(vector.step, ACTIONS)
    yield vector.reset()
    vector.close()

def alone(lane, name, options):
    one = gymnasium.make(name, subject=SUBJECTS[lane], **options)
    yield one.reset(seed=SEEDS[lane])
    over = False
    for actions in ACTIONS:
        if over:
            observation, info = one.reset()
            result = observation, 0.0, False, False, info
        else:
            result = one.step(actions[lane])
        yield result
        over = result[2] or result[3]
    yield one.reset()

def of_lane(infos, lane):
    return {
        key: of_lane(value, lane) if isinstance(value, dict) else value[lane]
        for key, value in infos.items() if not key.startswith("_") and infos["_" + key][lane]
    }

if __name__ == "__main__":
    mode, ended = sys.argv[1], 0
    for name, options in MAZES.items():
        results = list(together(mode, name, options))
        for lane in range(3):
            for (*found, infos), (*expected, info) in zip(results, alone(lane, name, options), strict=True):
                assert [array[lane] for array in found] == expected, (lane, expected, found)
                assert of_lane(infos, lane) == info
                ended += "outcome" in info
    assert ended > 10, ended
    if mode == "async":
        try:
            gymnasium.make_vec("cheesebench/TMaze-v1", num_envs=2, vectorization_mode="async")
        except ValueError as error:
            print(error, "|", error.__cause__)
"""


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_each_lane_is_a_single_environment_with_its_subject_and_seed(
    mode: str, tmp_path: Path
) -> None:
    script = tmp_path / "lanes.py"
    script.write_text(LANES, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script, mode],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    if mode == "async":
        assert "you can disable this feature with `shared_memory=False`" in done.stdout
        assert "AsyncVectorEnv cannot pass texts through shared memory" in done.stdout


def test_the_subject_is_a_number_and_another_one_begins_a_life() -> None:
    environment: Any = gymnasium.make(MAZE, subject=5).unwrapped
    assert environment.reset(seed=3)[1] == {
        "block": "acquisition",
        "session": 1,
        "trial": 1,
        "subject": 5,
    }
    environment.subject = 5
    assert environment.reset()[1]["trial"] == 2
    environment.subject = np.int64(6)
    assert environment.subject == 6
    assert environment.reset()[1] == {
        "block": "acquisition",
        "session": 1,
        "trial": 1,
        "subject": 6,
    }
    with pytest.raises(
        OptionError,
        match=r"A subject must be a whole number from 0 to 1000000000000000, not -1",
    ):
        environment.subject = -1


SIGNS = """\
version: 1
paradigm: signs
arena: {map: "#zy#", legend: {z: left, y: right}}
vars: {sign: FIRST, other: b}
start: {at: left, face: E}
trial:
  limit: 5
  start: one
  states:
    one:
      show: {left: sign}
      rules: [{enter: right, set: {sign: VALUE, other: c}, end: correct}]
schedule: {main: {trials: 1}}
success: last == correct
"""


@pytest.mark.parametrize(
    ("first", "value", "shown"),
    [("a", "q", "q"), ("a", "other", "b"), ("1", "steps + 1", "2")],
)
def test_a_glyph_that_a_rule_assigns_is_in_the_observation_space(
    tmp_path: Path, first: str, value: str, shown: str
) -> None:
    path = tmp_path / "signs.protocol.yaml"
    text = SIGNS.replace("FIRST", first).replace("VALUE", value)
    path.write_text(text, encoding="utf-8")
    environment: Any = gymnasium.make("cheesebench/Protocol-v1", protocol=path)
    environment.reset(seed=1)
    observation = environment.step(0)[0]
    assert observation[1] == shown
    assert environment.observation_space.contains(observation)


def test_a_class_of_ones_own_is_not_taken_for_the_paradigm() -> None:
    own: Any = type(
        "Mine", (type(gymnasium.make("cheesebench/TMaze-v1").unwrapped),), {}
    )()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="'Mine' is a subclass"):
            copied(own)
