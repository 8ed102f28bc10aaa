"""Gymnasium wrappers: one turns text into numbers, for learners that do not accept
text; the other turns a whole life into one episode.

Their observations hold what an agent gets when CheeseBench judges it, and nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TransformObservation
from numpy.typing import NDArray

from cheesebench.errors import OptionError, StepAfterEndError, UnknownNameError

#: If no seed is given for a life, one below this number is drawn.
SEEDS = 2**31


def checked_options(options: object) -> dict[str, Any]:
    """Return the options of ``reset``: the number of a ``subject``, or nothing.

    Raises:
        OptionError: if the options are not a dictionary.
        UnknownNameError: if there is any other option.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise OptionError(
            f"The options of reset() must be a dictionary such as {{'subject': 3}}, not {options!r}."
        )
    for name in options:
        if name != "subject":
            raise UnknownNameError(
                "option of reset() called",
                name if isinstance(name, str) else repr(name),
                ["subject"],
            )
    return dict(options)


class OneHotCharacters(TransformObservation[NDArray[np.uint8], Any, str]):
    """Text as zeros and ones: ``Box(0, 1, (length * characters,), uint8)``, one number
    for each position and character.

    After ``reshape(length, characters)``, row ``i`` has a 1 in the column of the text's
    ``i``-th character; rows after the end of the text are 0. ``length`` is the length
    of the longest possible text, and columns are in the order of the characters' code
    points. So shape and meaning are the same in every process, and for every subject of
    a protocol in a view.

    Gymnasium's ``VectorizeTransformObservation(environment, OneHotCharacters)`` does
    the same for a vector environment.

    Args:
        env: an environment whose observations are texts (any view that draws no
            pictures).

    Raises:
        OptionError: if the environment's observations are not texts, or if it is a
            vector environment.
    """

    def __init__(self, env: gymnasium.Env[str, Any]) -> None:
        given: Any = env
        if isinstance(given, gymnasium.vector.VectorEnv):
            raise OptionError(
                "OneHotCharacters takes a single environment. For a vector environment, write "
                "gymnasium.wrappers.vector.VectorizeTransformObservation(environment, OneHotCharacters)."
            )
        space = env.observation_space
        if not isinstance(space, spaces.Text):
            raise OptionError(
                f"OneHotCharacters takes texts, not {space}. Create the environment with view='ascii_2d'."
            )
        # A ``spec`` needs these arguments to create the wrapper again.
        RecordConstructorArgs.__init__(self)
        #: Code points of the characters in ascending order, one for each column.
        self._columns = np.array(sorted(map(ord, space.character_set)), np.uint32)
        self._length = space.max_length
        box = spaces.Box(0, 1, (self._length * len(self._columns),), np.uint8)
        super().__init__(env, self._encode, box)

    def observation(self, observation: str) -> NDArray[np.uint8]:
        """Return a text as zeros and ones. It may also be an observation of a judged
        run.

        Raises:
            OptionError: if the text cannot come from this environment. It is then from
                another protocol or view.
        """
        return self._encode(observation)

    def _encode(self, observation: str) -> NDArray[np.uint8]:
        if not self.env.observation_space.contains(observation):
            raise OptionError(
                f"{self.env} never shows this text. Is it from another protocol or view? {observation[:200]!r}"
            )
        encoded = np.zeros((self._length, len(self._columns)), np.uint8)
        points = np.frombuffer(observation.encode("utf-32-le"), np.uint32)
        encoded[np.arange(len(points)), self._columns.searchsorted(points)] = 1
        return encoded.reshape(-1)


class WholeLife(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A whole life (all the trials of one subject) as one episode, for agents that
    learn or remember across trials.

    A trial's last step returns the trial's last observation and its reward. The next
    step ignores its action, has the reward 0, and returns the first observation of the
    next trial, as in a vector environment. ``terminated`` is True at the end of the
    last trial of the subject's schedule. ``truncated`` is never True: the step limit of
    a trial ends only the trial, and so does a ``TimeLimit`` inside this wrapper. (A
    ``TimeLimit`` around this wrapper cuts lives off.)

    ``reset(seed=s)`` begins the life of the environment's subject under seed ``s``.
    Each ``reset()`` after it begins the life of the next subject under the same seed.
    So the lives are the same, and in the same order, as in a run with ``--seed s``.
    ``reset(options={"subject": n})`` continues with subject ``n``.

    After every step and reset, ``info`` has what the environment put there, and
    ``trial_over`` (bool): whether the trial has just ended. A policy may use
    ``trial_over``, because a judged agent is told, too.

    Args:
        env: an environment of one subject. For many at once, ``gymnasium.make_vec(...,
            wrappers=[WholeLife])``.

    Raises:
        OptionError: if it is a vector environment, or not one of CheeseBench's.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)  # A ``spec`` needs this.
        given: Any = env
        if isinstance(given, gymnasium.vector.VectorEnv):
            raise OptionError(
                "WholeLife takes the environment of one subject, not a vector environment. Call "
                "make_vec(..., wrappers=[WholeLife]), or read infos['life_over']."
            )
        gymnasium.Wrapper.__init__(self, env)
        if not hasattr(env.unwrapped, "life_over"):
            raise OptionError(
                f"WholeLife takes an environment of CheeseBench, not {env}, which has no lives."
            )
        #: The seed of all lives, the number of the first subject, and the number of the
        #: present one. Each is None until it is known.
        self._seed: int | None = None
        self._first: int | None = None
        self._subject: int | None = None
        self._trial_over = self._life_over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the life of the next subject, or of the subject in ``options``. With
        ``seed``, start again with the first subject, under this seed.
        """
        wanted = checked_options(options)
        if seed is None and self._subject is not None:
            wanted.setdefault("subject", self._subject + 1)
        elif self._first is not None:
            wanted.setdefault("subject", self._first)
        if seed is None:
            seed = (
                int(self.np_random.integers(SEEDS))
                if self._seed is None
                else self._seed
            )
        observation, info = self.env.reset(seed=seed, options=wanted)
        self._seed, self._subject = seed, info["subject"]
        if self._first is None or "subject" in (options or ()):
            self._first = self._subject
        self._trial_over = self._life_over = False
        return observation, {**info, "trial_over": False}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Execute one action, or begin the next trial. The class says what is returned.

        Raises:
            StepAfterEndError: if the life is over.
        """
        if self._life_over:
            raise StepAfterEndError(
                "This life is over. Call reset() to begin the life of the next subject."
            )
        if self._trial_over:
            self._trial_over = False
            observation, info = self.env.reset()
            return observation, 0.0, False, False, {**info, "trial_over": False}
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._trial_over = terminated or truncated
        self._life_over = self._trial_over and bool(self.get_wrapper_attr("life_over"))
        return (
            observation,
            reward,
            self._life_over,
            False,
            {**info, "trial_over": self._trial_over},
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the present life. The environment in a copy is new,
        and must be reset first.
        """
        return {
            **vars(self),
            "_subject": None,
            "_trial_over": False,
            "_life_over": False,
        }
