"""A Gymnasium vector environment of many subjects. Lanes are stepped by ``vector`` or, compiled, by ``jit.vector``."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from operator import index
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from cheesebench.errors import OptionError, StepAfterEndError
from cheesebench.extras import install_command
from cheesebench.gymnasium_plugin import class_name
from cheesebench.interfaces import ACTIONS, PictureView, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.environment import (
    SEEDS,
    check_own,
    checked_render_mode,
    checked_subject,
    class_named,
    find_protocol,
    refuse_arguments,
    view_named,
    wanted_subject,
)
from cheesebench.paradigms.arena.pages import MAX_TEXTS
from cheesebench.paradigms.arena.program import Program
from cheesebench.paradigms.arena.spaces import text_space
from cheesebench.paradigms.arena.vector import Bools, Floats, Lanes, ScalarLanes
from cheesebench.protocol import Specification

#: What ``observations`` can be.
OBSERVATIONS = ("strings", "ids")
#: Lanes from which it is worth to import numba, where it is installed.
MANY = 32


class ArenaVectorEnvironment(VectorEnv[Any, Any, Any]):
    """A paradigm as a Gymnasium vector environment: each lane is a subject, as in ``ArenaEnvironment``.

    Lane ``i`` is subject ``subject + i``; all have the seed that ``reset`` is given (a sequence has one seed for each
    lane). Observations, rewards and infos equal those of ``SyncVectorEnv`` over the scalar environments.

    Observations: a tuple of ``num_envs`` texts, or (``observations="ids"``) an int64 array of shape ``(num_envs,)``;
    ``texts[id]`` is the text, and equal texts have equal ids. In a view of pictures there are ids only, and
    ``texts[id].png`` is the picture. Actions: an array of integers 0-3, shape ``(num_envs,)``.
    Rewards: float64. The autoreset mode is NEXT_STEP: in the step after the last one of a trial the lane's action is
    ignored, its reward is 0 and its observation is the first one of the next trial.

    Args:
        num_envs: number of lanes.
        view: name of a registered view.
        subject: number of the first lane's subject.
        observations: ``"strings"`` or ``"ids"``.
        render_mode: ``"ansi"`` makes ``render`` return the current observations as texts.
        compiled: whether steps are executed by code that numba has compiled: the same results, several times as fast.
            None: where numba is installed and there are 32 lanes or more.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # Gymnasium declares it as an instance variable
        "render_modes": ["ansi"],
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    specification: ClassVar[Specification]
    paradigm: ClassVar[ArenaParadigm]

    def __init__(
        self,
        num_envs: int = 1,
        view: str = "ascii_2d",
        subject: int = 0,
        observations: str = "strings",
        render_mode: str | None = None,
        compiled: bool | None = None,
        **unknown: object,
    ) -> None:
        refuse_arguments(unknown, ("view", "subject", "observations", "render_mode", "compiled"))
        if observations not in OBSERVATIONS:
            raise OptionError(f"'observations' must be one of {', '.join(OBSERVATIONS)}, not {observations!r}.")
        num_envs = _whole("num_envs", num_envs)
        if num_envs < 1:
            raise OptionError(f"'num_envs' must be at least 1, not {num_envs}.")
        if compiled not in (None, True, False):
            raise OptionError(f"'compiled' must be True, False or None, not {compiled!r}.")
        compiled = None if compiled is None else bool(compiled)  # 0 and numpy's False are False, too
        self._arguments = (num_envs, view, subject, observations, render_mode, compiled)
        self.num_envs = num_envs
        self.render_mode = checked_render_mode(render_mode, self.metadata["render_modes"])
        self._view, self._subject = view_named(view), checked_subject(subject)
        self._ids = observations == "ids"
        if isinstance(self._view, PictureView) and not self._ids:
            raise OptionError(
                f"The view '{view}' draws images, and one array per environment would fill the memory. "
                "Ask for observations='ids' (texts[id].png is the image), or use a text view."
            )
        self.single_action_space: spaces.Space[Any] = spaces.Discrete(len(ACTIONS))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.single_observation_space: spaces.Space[Any] = (
            spaces.Discrete(MAX_TEXTS) if self._ids else text_space(self.paradigm, self._view)
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._lanes = _lanes_of(self.paradigm.program, self._view, num_envs, compiled)
        #: Whether lives have begun and can go on; a mistake of the protocol ends all of them.
        self._living = False

    @property
    def texts(self) -> NDArray[np.object_]:
        """The texts by id: all observations of the lanes so far."""
        return self._lanes.album.texts

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the next trial in every lane; with ``seed`` (or a new first ``subject``), start new subjects."""
        first = wanted_subject(options, self._subject)
        if not self._living or seed is not None or first != self._subject:
            self._subject = first
            self._lanes.live(self._seeds(seed), first)
        self._living = False
        infos = self._lanes.begin()
        self._living = True
        return self._observe(), infos

    def _seeds(self, seed: Any) -> Sequence[int]:
        """Return the seed of each lane."""
        if isinstance(seed, str):
            _whole("seed", seed)  # raises: text would be taken for a sequence of seeds
        if isinstance(seed, Sequence | np.ndarray):
            if len(seed) != self.num_envs:
                raise OptionError(f"There are {len(seed)} seeds for {self.num_envs} environments. Give one for each.")
            seeds = [_whole("seed", number) for number in seed]
            if min(seeds) < 0:
                raise OptionError(f"A seed must be 0 or more, not {min(seeds)}.")
            return seeds
        super().reset(seed=seed)
        number = int(self.np_random.integers(SEEDS)) if seed is None else int(seed)
        return [number] * self.num_envs

    def step(self, actions: Any) -> tuple[Any, Floats, Bools, Bools, dict[str, Any]]:
        """Execute one action in every lane; for the results see the class.

        ``infos`` has the scalar environment's values as arrays, each with a mask (``outcome`` and ``_outcome``).
        """
        actions = self._checked(actions)
        album = self._lanes.album
        if album.crowded and not self._ids:
            album.forget_texts()
        self._living = False
        rewards, terminated, truncated, infos = self._lanes.step(actions)
        self._living = True
        return self._observe(), rewards, terminated, truncated, infos

    def render(self) -> tuple[str, ...] | None:
        """Return the current observations as texts (``render_mode="ansi"``)."""
        if self.render_mode != "ansi":
            return None
        if not self._living:
            raise StepAfterEndError("No trial has begun. Call reset() before render().")
        album = self._lanes.album
        return album.look_up(album.observe(self._lanes.places))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle (and copy) the constructor's arguments, as the scalar environment does: a copy has no trial."""
        check_own(type(self))
        return _made_again, (self.specification, self._arguments), {"spec": self.spec}

    def _checked(self, actions: Any) -> NDArray[np.int64]:
        if not self._living:
            raise StepAfterEndError("No trial has begun. Call reset() before step().")
        numbers = np.asarray(actions)
        if numbers.shape != (self.num_envs,) or numbers.dtype.kind not in "iu":
            raise OptionError(
                f"Actions must be {self.num_envs} whole numbers, one per environment, not {numbers.dtype} "
                f"{numbers.shape}."
            )
        if (numbers >> 2).any():  # also where there is no sign, to which `& ~3` cannot be done
            odd = numbers[numbers >> 2 != 0][0]
            raise OptionError(f"There is no action {odd}. Actions are 0 to 3: {', '.join(ACTIONS)}.")
        return numbers.astype(np.int64, copy=False)

    def _observe(self) -> Any:
        album = self._lanes.album
        numbers = album.observe(self._lanes.places)
        return numbers if self._ids else album.look_up(numbers)


def _whole(name: str, value: object) -> int:
    """Return an integer argument called ``name``. Raises OptionError for other values."""
    try:
        return index(value)  # type: ignore[arg-type]  # whatever it is
    except TypeError:
        raise OptionError(f"'{name}' must be a whole number, not {value!r}.") from None


def _lanes_of(program: Program, view: View, num_envs: int, compiled: bool | None) -> Lanes:
    """Return compiled lanes if requested and possible, else scalar ones."""
    installed = find_spec("numba") is not None
    if not (installed and num_envs >= MANY if compiled is None else compiled):
        return ScalarLanes(program, view, num_envs)
    if not installed:
        raise OptionError(f"'compiled' needs numba. Install it: {install_command('fast')}")
    from cheesebench.paradigms.arena.jit.vector import CompiledLanes, UntranslatableError

    try:
        return CompiledLanes(program, view, num_envs)
    except UntranslatableError:
        if compiled:
            raise
        return ScalarLanes(program, view, num_envs)


def _made_again(specification: Specification, arguments: tuple[Any, ...]) -> ArenaVectorEnvironment:
    return vector_class(specification, ArenaParadigm(specification))(*arguments)


def vector_class(specification: Specification, paradigm: ArenaParadigm) -> type[ArenaVectorEnvironment]:
    """Create the vector environment class of a compiled protocol."""
    name = f"{class_name(specification.name)}Vector"
    doc = f"{specification.title} (protocol {specification.name}). {ArenaVectorEnvironment.__doc__}"
    members = {"__doc__": doc, "__module__": __name__, "specification": specification, "paradigm": paradigm}
    return type(name, (ArenaVectorEnvironment,), members)


def make_from_file(protocol: str | Path | None = None, **options: Any) -> ArenaVectorEnvironment:
    """Return a vector environment of any protocol; see ``environment.make_from_file``."""
    specification = find_protocol(protocol)
    return vector_class(specification, ArenaParadigm(specification))(**options)


_classes: dict[str, type[ArenaVectorEnvironment]] = {}


def __getattr__(name: str) -> Any:
    """Return the vector class of a shipped protocol; it has the same name as the scalar one."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name not in _classes:
        scalar = class_named(name)
        _classes[name] = vector_class(scalar.specification, scalar.paradigm)
    return _classes[name]
