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
from cheesebench.protocol import Specification, texts
from cheesebench.protocol.values import MAX_NAME

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
    scenes = [gallery.scene((), (), text) for text in _longest_texts(paradigm.specification)]
    characters = frozenset(view.characters) | gallery.characters(paradigm.specification)
    return TextSpace(
        min_length=0,
        max_length=max(1, *(view.max_length(scene) for scene in scenes)),
        # Text numbers characters in this order; the order of a set differs between processes.
        charset="".join(sorted(characters)),
    )


def _longest_texts(specification: Specification) -> list[tuple[str, ...]]:
    """Return the text of each state, filled with what is at least as long as any value."""
    rows = [value for draw in specification.draws for row in draw.rows for value in row]
    held = [variable.initial for variable in specification.variables.values()]
    held += [value for block in specification.schedule for _, value in block.set]
    longest = max(MAX_NAME, *map(len, map(texts.as_text, [*rows, *held])), 0)
    everything = len({*rows, *held}) + len(specification.arena.zones) + len(specification.arena.solids)
    kinds = {name: variable.type.kind for name, variable in specification.variables.items()}
    kinds |= {name: type_.kind for name, type_ in specification.columns.items()}
    values = {name: "m" * (longest * (everything if kind == "set" else 1)) for name, kind in kinds.items()}
    return [tuple(texts.filled(line, values) for line in state.say) for state in specification.states.values()]


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
