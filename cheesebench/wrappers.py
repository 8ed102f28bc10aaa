"""Gymnasium wrappers that turn observations into numbers, for learners that do not accept text.

A wrapper computes its result from the observation alone, so the learner gets exactly the same information.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from cheesebench.errors import OptionError


class OneHotCharacters(gymnasium.ObservationWrapper[NDArray[np.uint8], Any, str], RecordConstructorArgs):
    """Text as zeros and ones: ``Box(0, 1, (length * characters,), uint8)``, one for each position and character.

    Read as ``reshape(length, characters)``: in row ``i`` the column of the text's ``i``-th character is 1, and rows
    after its end are 0. ``length`` is that of the longest text, and columns are in the order of the characters' code
    points, so that shape and meaning are the same in every process and for every subject of a protocol in a view.

    Args:
        env: an environment whose observations are texts (any view that draws no pictures).

    Raises:
        OptionError: if its observations are not texts.
    """

    def __init__(self, env: gymnasium.Env[str, Any]) -> None:
        RecordConstructorArgs.__init__(self)  # so that a ``spec`` makes it again
        gymnasium.ObservationWrapper.__init__(self, env)
        space = env.observation_space
        if not isinstance(space, spaces.Text):
            raise OptionError(
                f"OneHotCharacters takes texts, not {space}. Create the environment with view='ascii_2d'."
            )
        #: Code points of the characters, ascending: the columns.
        self._columns = np.array(sorted(map(ord, space.character_set)), np.uint32)
        self._length = space.max_length
        self.observation_space = spaces.Box(0, 1, (self._length * len(self._columns),), np.uint8)

    def observation(self, observation: str) -> NDArray[np.uint8]:
        """Return a text as zeros and ones; it may also be one that an agent is given when it is judged.

        Raises:
            OptionError: if the text cannot come from this environment (it is from another protocol or view).
        """
        if not self.env.observation_space.contains(observation):
            raise OptionError(f"{self.env} shows no such text. Is it another protocol or view? {observation[:200]!r}")
        encoded = np.zeros((self._length, len(self._columns)), np.uint8)
        points = np.frombuffer(observation.encode("utf-32-le"), np.uint32)
        encoded[np.arange(len(points)), self._columns.searchsorted(points)] = 1
        return encoded.reshape(-1)
