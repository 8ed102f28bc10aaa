"""Observation spaces, and conversion of observations to their space."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory
from numpy.typing import NDArray

from cheesebench.chat import Picture
from cheesebench.interfaces import PictureView, View
from cheesebench.paradigms.arena import ArenaParadigm

#: A picture: uint8, height x width x 3, RGB.
Pixels = NDArray[np.uint8]


class TextSpace(spaces.Text):
    """``Text`` that refuses to be shared between processes.

    ``AsyncVectorEnv`` (Gymnasium 1.1 to 1.4) reads texts from shared memory only once, when it is created, so that
    every observation would be a row of newlines. The error asks for ``shared_memory=False``.
    """


@create_shared_memory.register(TextSpace)
def _refuse(space: TextSpace, n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError("AsyncVectorEnv cannot pass texts through shared memory. Pass shared_memory=False.")


def text_space(paradigm: ArenaParadigm, view: View) -> TextSpace:
    """Return the space of all texts that a view can draw of a paradigm."""
    gallery = paradigm.program.gallery(view)
    scenes = [gallery.scene((), (), state.say) for state in paradigm.specification.states.values()]
    characters = frozenset(view.characters) | gallery.characters(paradigm.specification)
    return TextSpace(
        min_length=0,
        max_length=max(1, *(view.max_length(scene) for scene in scenes)),
        # Text numbers characters in this order; the order of a set differs between processes.
        charset="".join(sorted(characters)),
    )


def observation_space(paradigm: ArenaParadigm, view: View) -> spaces.Space[Any]:
    """Return the space of all observations that a view can give of a paradigm."""
    text = text_space(paradigm, view)
    if not isinstance(view, PictureView):
        return text
    width, height = view.picture_size(paradigm.program.gallery(view).scene((), (), ()))
    return spaces.Dict({"picture": spaces.Box(0, 255, (height, width, 3), np.uint8), "text": text})


def observed(observation: str) -> Any:
    """Convert an observation to its space (a picture to its pixels)."""
    if not isinstance(observation, Picture):
        return observation
    return {"picture": pixels(observation), "text": str(observation)}


def pixels(picture: str) -> Pixels:
    """Return the pixels of a picture."""
    from PIL import Image

    assert isinstance(picture, Picture)
    with Image.open(io.BytesIO(picture.png)) as image:
        return np.array(image.convert("RGB"))
