"""Observations as numbers: nothing lost, nothing added, and equal in every process.
Lives as episodes.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import VectorizeTransformObservation

from cheesebench import installed_plugins
from cheesebench.errors import OptionError, StepAfterEndError
from cheesebench.interfaces import PictureView
from cheesebench.wrappers import OneHotCharacters, WholeLife

VIEWS = [
    name
    for name, view in installed_plugins().views.items()
    if not isinstance(view, PictureView)
]


def read(encoded: Any, environment: gymnasium.Env[Any, Any]) -> str:
    """Return the text that an array encodes."""
    space = environment.observation_space
    assert isinstance(space, spaces.Text)
    characters = sorted(space.character_set)
    encoded = encoded.reshape(space.max_length, len(characters))
    rows = encoded[encoded.any(axis=1)]
    assert (encoded.sum(axis=1)[: len(rows)] == 1).all()
    return "".join(characters[column] for column in rows.argmax(axis=1))


@pytest.mark.filterwarnings(
    "ignore:.*is different from the unwrapped version:UserWarning"
)
@pytest.mark.parametrize("view", VIEWS)
def test_an_array_is_its_text(view: str) -> None:
    environment = gymnasium.make("cheesebench/TMaze-v1", view=view, render_mode="ansi")
    wrapped = OneHotCharacters(environment)
    check_env(wrapped, skip_render_check=True)
    environment.reset(seed=5)
    wrapped.action_space.seed(5)
    seen = set()
    for _ in range(150):
        encoded, _, terminated, truncated, _ = wrapped.step(
            wrapped.action_space.sample()
        )
        text: Any = environment.render()
        assert wrapped.observation_space.contains(encoded)
        assert read(encoded, environment) == text
        seen.add(text)
        if terminated or truncated:
            wrapped.reset()
    assert len(seen) > 5


def test_columns_are_the_same_in_every_process(
    under_hash_seeds: Callable[..., list[str]],
) -> None:
    code = (
        "import gymnasium, cheesebench, hashlib; from cheesebench.wrappers import OneHotCharacters; "
        "env = OneHotCharacters(gymnasium.make('cheesebench/BarnesMaze-v1')); "
        "print(hashlib.sha256(env.reset(seed=1)[0].tobytes()).hexdigest(), env.observation_space.shape)"
    )
    assert len(set(under_hash_seeds(code))) == 1


def test_other_texts_are_refused() -> None:
    wrapped = OneHotCharacters(gymnasium.make("cheesebench/TMaze-v1"))
    other, _ = gymnasium.make("cheesebench/MorrisWaterMaze-v1").reset(seed=0)
    with pytest.raises(OptionError, match="Is it from another protocol or view"):
        wrapped.observation(other)
    with pytest.raises(OptionError, match="OneHotCharacters takes texts, not Dict"):
        OneHotCharacters(gymnasium.make("cheesebench/TMaze-v1", view="topdown_2d"))


def test_in_vector_environments_of_gymnasium_s_own() -> None:
    vector = gymnasium.make_vec(
        "cheesebench/TMaze-v1", num_envs=2, wrappers=(OneHotCharacters,)
    )
    observations, _ = vector.reset(seed=1)
    assert vector.observation_space.contains(observations)
    assert observations.dtype == np.uint8
    # One for each character of both pictures; those of the maze have 47.
    assert observations.sum() == 94


def test_around_a_vector_environment() -> None:
    own: Any = gymnasium.make_vec("cheesebench/TMaze-v1", num_envs=2)
    own.set_attr("subject", [0, 1])
    with pytest.raises(
        OptionError,
        match=r"VectorizeTransformObservation\(environment, OneHotCharacters\)",
    ):
        OneHotCharacters(own)  # the usual first attempt
    vector: Any = VectorizeTransformObservation(own, OneHotCharacters)
    single = OneHotCharacters(gymnasium.make("cheesebench/TMaze-v1", subject=1))
    assert vector.single_observation_space == single.observation_space
    vector.action_space.seed(0)
    seen, (expected, _) = vector.reset(seed=[1, 1])[0], single.reset(seed=1)
    for _ in range(20):
        np.testing.assert_array_equal(seen[1], expected)
        actions = vector.action_space.sample()
        seen, _, terminated, truncated, _ = vector.step(actions)
        expected, *_ = single.step(actions[1])
        assert not (terminated | truncated)[1]


# -- a life as one episode


def lives(
    environment: gymnasium.Env[Any, Any], **reset: Any
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Play a life at random; return its observations and rewards, and its infos."""
    environment.action_space.seed(4)
    observation, info = environment.reset(**reset)
    seen, infos = [observation], [info]
    over = False
    while not over:
        observation, reward, over, truncated, info = environment.step(
            environment.action_space.sample()
        )
        assert not truncated
        seen += [reward, observation]
        infos.append(info)
    return seen, infos


def test_a_life_is_what_a_lane_of_a_vector_environment_lives() -> None:
    whole = WholeLife(gymnasium.make("cheesebench/BarnesMaze-v1", subject=2))
    lane = gymnasium.make_vec("cheesebench/BarnesMaze-v1", num_envs=1, subject=2)
    expected: list[Any] = list(lane.reset(seed=6)[0])
    whole.action_space.seed(4)
    ends = []
    over = False
    while not over:
        (observation,), (reward,), terminated, truncated, infos = lane.step(
            np.array([whole.action_space.sample()])
        )
        expected += [reward, observation]
        ends.append(bool(terminated[0] or truncated[0]))
        over = ends[-1] and infos["life_over"][0]
    seen, told = lives(whole, seed=6)
    assert seen == expected
    assert [info["trial_over"] for info in told] == [False, *ends]
    assert sum(ends) > 10
    with pytest.raises(StepAfterEndError, match=r"This life is over\. Call reset\(\)"):
        whole.step(0)


def test_lives_are_those_of_a_run() -> None:
    whole = WholeLife(gymnasium.make("cheesebench/TMaze-v1", subject=3))
    plain = gymnasium.make("cheesebench/TMaze-v1")

    def alike(found: Any, seed: int, subject: int) -> bool:
        observation, info = plain.reset(seed=seed, options={"subject": subject})
        return bool(found == (observation, {**info, "trial_over": False}))

    assert alike(whole.reset(seed=8), 8, 3)
    whole.step(0)  # a life may be broken off
    assert alike(whole.reset(), 8, 4)
    assert alike(whole.reset(options={"subject": 11}), 8, 11)
    assert alike(whole.reset(), 8, 12)
    assert alike(whole.reset(seed=9), 9, 11)
    assert alike(whole.reset(seed=8, options={"subject": 3}), 8, 3)
    # Without any seed, the environment draws one for all lives.
    drawn = WholeLife(gymnasium.make("cheesebench/TMaze-v1"))
    drawn.unwrapped.np_random = np.random.default_rng(1)
    seed = int(np.random.default_rng(1).integers(2**31))
    assert alike(drawn.reset(), seed, 0)
    assert alike(drawn.reset(), seed, 1)


@pytest.mark.filterwarnings(
    "ignore:.*is different from the unwrapped version:UserWarning"
)
def test_gymnasium_accepts_whole_lives() -> None:
    whole = WholeLife(gymnasium.make("cheesebench/TMaze-v1"))
    check_env(whole, skip_render_check=True)
    assert whole.spec is not None
    assert isinstance(gymnasium.make(whole.spec), WholeLife)
    short = WholeLife(TimeLimit(gymnasium.make("cheesebench/TMaze-v1"), 5))
    _, infos = lives(short, seed=1)
    plain = [
        info["life_over"] for info in lives(whole, seed=1)[1] if "life_over" in info
    ]
    # The same schedule, of trials that are cut off.
    assert sum(info["trial_over"] for info in infos) == len(plain)
    assert plain == [False] * (len(plain) - 1) + [True]


@pytest.mark.parametrize(
    "how", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_a_copied_life_begins_anew(how: Callable[[Any], Any]) -> None:
    whole = WholeLife(gymnasium.make("cheesebench/TMaze-v1", subject=3))
    whole.reset(seed=8)
    first = whole.reset()
    over = False
    while not over:
        over = whole.step(3)[4]["trial_over"]
    copied = how(whole)
    with pytest.raises(StepAfterEndError, match=r"No trial has begun\. Call reset"):
        copied.step(0)
    assert copied.reset()[1]["subject"] == 3
    assert copied.reset() == first
    assert whole.step(0)[4]["trial"] == 2  # which does not disturb the original


def test_whole_lives_at_once() -> None:
    vector = gymnasium.make_vec(
        "cheesebench/TMaze-v1", num_envs=2, wrappers=(WholeLife, OneHotCharacters)
    )
    vector.reset(seed=1)
    trials = np.zeros(2, int)
    over = np.zeros(2, bool)
    while not over.any():
        *_, over, truncated, infos = vector.step(vector.action_space.sample())
        trials += infos["trial_over"]
        assert not truncated.any()
    assert trials.max() > 10
    *_, infos = vector.step(vector.action_space.sample())
    assert infos["subject"][over].tolist() == [1] * over.sum()


def test_a_life_begins_with_reset() -> None:
    whole = WholeLife(gymnasium.make("cheesebench/TMaze-v1"))
    with pytest.raises(gymnasium.error.ResetNeeded):
        whole.step(0)


def test_what_has_no_life_is_refused() -> None:
    made: Any = gymnasium.make_vec("cheesebench/TMaze-v1", num_envs=2)
    with pytest.raises(
        OptionError,
        match="takes the environment of one subject, not a vector environment",
    ):
        WholeLife(made)
    with pytest.raises(
        OptionError,
        match=r"takes an environment of CheeseBench, not .*CartPole.*, which has no lives",
    ):
        WholeLife(gymnasium.make("CartPole-v1"))
