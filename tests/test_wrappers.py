"""Observations as numbers: nothing is lost, nothing is added, and every process counts alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from cheesebench import installed_plugins
from cheesebench.errors import OptionError
from cheesebench.interfaces import PictureView
from cheesebench.wrappers import OneHotCharacters

VIEWS = [name for name, view in installed_plugins().views.items() if not isinstance(view, PictureView)]


def read(encoded: Any, environment: gymnasium.Env[Any, Any]) -> str:
    """Return the text that an array stands for."""
    space = environment.observation_space
    assert isinstance(space, spaces.Text)
    characters = sorted(space.character_set)
    encoded = encoded.reshape(space.max_length, len(characters))
    rows = encoded[encoded.any(axis=1)]
    assert (encoded.sum(axis=1)[: len(rows)] == 1).all()
    return "".join(characters[column] for column in rows.argmax(axis=1))


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version:UserWarning")
@pytest.mark.parametrize("view", VIEWS)
def test_an_array_is_its_text(view: str) -> None:
    environment = gymnasium.make("cheesebench/TMaze-v1", view=view, render_mode="ansi")
    wrapped = OneHotCharacters(environment)
    check_env(wrapped, skip_render_check=True)
    environment.reset(seed=5)
    wrapped.action_space.seed(5)
    seen = set()
    for _ in range(150):
        encoded, _, terminated, truncated, _ = wrapped.step(wrapped.action_space.sample())
        text: Any = environment.render()
        assert wrapped.observation_space.contains(encoded)
        assert read(encoded, environment) == text
        seen.add(text)
        if terminated or truncated:
            wrapped.reset()
    assert len(seen) > 5


def test_columns_are_the_same_in_every_process(under_hash_seeds: Callable[..., list[str]]) -> None:
    code = (
        "import gymnasium, cheesebench, hashlib; from cheesebench.wrappers import OneHotCharacters; "
        "env = OneHotCharacters(gymnasium.make('cheesebench/BarnesMaze-v1')); "
        "print(hashlib.sha256(env.reset(seed=1)[0].tobytes()).hexdigest(), env.observation_space.shape)"
    )
    assert len(set(under_hash_seeds(code))) == 1


def test_other_texts_are_refused() -> None:
    wrapped = OneHotCharacters(gymnasium.make("cheesebench/TMaze-v1"))
    other, _ = gymnasium.make("cheesebench/MorrisWaterMaze-v1").reset(seed=0)
    with pytest.raises(OptionError, match="Is it another protocol or view"):
        wrapped.observation(other)
    with pytest.raises(OptionError, match="OneHotCharacters takes texts, not Dict"):
        OneHotCharacters(gymnasium.make("cheesebench/TMaze-v1", view="topdown_2d"))


def test_in_vector_environments_of_gymnasium_s_own() -> None:
    vector = gymnasium.make_vec(
        "cheesebench/TMaze-v1", num_envs=2, vectorization_mode="sync", wrappers=(OneHotCharacters,)
    )
    observations, _ = vector.reset(seed=1)
    assert vector.observation_space.contains(observations)
    assert observations.dtype == np.uint8
    # One for each character of both pictures: those of the maze are 47.
    assert observations.sum() == 94
