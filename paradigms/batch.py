"""Many lives at once: a Gymnasium vector environment over the same tables, with numpy.

Every lane is a life (``life.ArenaLife``), and only a life knows the clauses of the language. But on most steps nothing
can happen: then pose and pay are one look-up each, and numpy does these look-ups for all lanes together. Where
something can happen, the lane's life is told where it stands, and executes the step itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from cheesebench.errors import OptionError, StepAfterEndError
from cheesebench.gymnasium_plugin import class_name
from cheesebench.interfaces import ACTIONS, RUNNING, TERMINATED, PictureView
from cheesebench.paradigms import ArenaParadigm
from cheesebench.paradigms.environment import (
    SEEDS,
    beginning,
    check_own,
    checked_render_mode,
    checked_subject,
    class_named,
    find_protocol,
    wanted_subject,
)
from cheesebench.paradigms.infos import gather
from cheesebench.paradigms.life import ArenaLife
from cheesebench.paradigms.pages import MAX_TEXTS, Pages
from cheesebench.paradigms.spaces import text_space
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification

#: What ``observations`` can be.
OBSERVATIONS = ("strings", "ids")
#: Steps of which the trace of all lanes is kept before every life takes over its part.
TRACE_ROWS = 256

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class ArenaVectorEnvironment(VectorEnv[Any, Any, Any]):
    """A paradigm as a Gymnasium vector environment: each lane is a subject, and lives as in ``ArenaEnvironment``.

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
    ) -> None:
        if observations not in OBSERVATIONS:
            raise OptionError(f"'observations' is one of {', '.join(OBSERVATIONS)}, not {observations!r}.")
        if num_envs < 1:
            raise OptionError(f"There must be a lane at least, and 'num_envs' is {num_envs}.")
        self._arguments = (num_envs, view, subject, observations, render_mode)
        self.num_envs = num_envs
        self.render_mode = checked_render_mode(render_mode, self.metadata["render_modes"])
        self._view, self._subject = installed_plugins().view(view), checked_subject(subject)
        self._ids = observations == "ids"
        if isinstance(self._view, PictureView) and not self._ids:
            raise OptionError(
                f"The view '{view}' draws pictures, and as many arrays as there are lanes would fill the memory. "
                "Ask for observations='ids' (texts[id].png is the picture), or take a view of text."
            )
        self.single_action_space: spaces.Space[Any] = spaces.Discrete(len(ACTIONS))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.single_observation_space: spaces.Space[Any] = (
            spaces.Discrete(MAX_TEXTS) if self._ids else text_space(self.paradigm, self._view)
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._pages = Pages(self.paradigm.program, self.paradigm.program.gallery(self._view))
        self._traced = self.paradigm.program.reads_trace
        #: Where every lane has been, page + pose + action; the first row is that of this value of the clock.
        self._trace, self._traced_from = np.zeros((TRACE_ROWS if self._traced else 0, num_envs), np.int64), 0
        self._lives: list[ArenaLife] = []
        #: Steps of the whole batch so far; of what follows every entry is about one lane.
        self._clock = 0
        #: Value of the clock when the trial began, and when the life was last told where it stands.
        self._began, self._told = [0] * num_envs, [0] * num_envs
        self._over = [False] * num_envs
        #: Where the lane stands: first entry of its page, and page + pose.
        self._page, self._at = [0] * num_envs, np.zeros(num_envs, np.int64)
        #: Value of the clock at which a timer or the limit may matter, and the state's name.
        self._wake = np.zeros(num_envs, np.int64)
        self._states = np.full(num_envs, None, dtype=object)

    @property
    def texts(self) -> NDArray[np.object_]:
        """The texts that ids stand for: all that the lanes have met up to now."""
        return self._pages.texts

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the next trial in every lane; with ``seed`` (or a new first ``subject`` in the options) new lives."""
        first = wanted_subject(options, self._subject)
        if not self._lives or seed is not None or first != self._subject:
            program, view, self._subject = self.paradigm.program, self._view, first
            seeds = self._seeds(seed)
            self._lives = [ArenaLife(program, view, number, first + lane) for lane, number in enumerate(seeds)]
        else:
            self._tell_all()  # a trial may begin where the last one was when it was broken off
        lanes = range(self.num_envs)
        infos = {lane: self._begin(lane) for lane in lanes}
        self._settle(lanes)
        return self._observe(), gather(self.num_envs, infos)

    def _seeds(self, seed: int | Sequence[int] | None) -> Sequence[int]:
        """Return the seed of each lane."""
        if isinstance(seed, Sequence | np.ndarray):
            if len(seed) != self.num_envs:
                raise OptionError(f"There are {len(seed)} seeds for {self.num_envs} lanes. Give one for each.")
            return [int(number) for number in seed]
        super().reset(seed=seed)
        number = int(self.np_random.integers(SEEDS)) if seed is None else int(seed)
        return [number] * self.num_envs

    def step(self, actions: Any) -> tuple[Any, Floats, Bools, Bools, dict[str, Any]]:
        """Execute one action in every lane; see the class for what is returned.

        ``infos`` has what the scalar environment's has, as arrays with a mask each (``outcome`` and ``_outcome``).
        """
        actions = self._checked(actions)
        self._make_room()
        index = self._at + actions  # 6
        self._at = self._pages.moves.take(index)  # 7
        self._clock += 1
        if self._traced:
            self._trace[self._clock - self._traced_from] = self._at + actions
        rewards = self._pages.rewards.take(index)
        terminated, truncated = np.zeros(self.num_envs, bool), np.zeros(self.num_envs, bool)
        happening = self._pages.alarms.take(index) | (self._wake <= self._clock)
        infos: dict[str, Any] = {}
        if happening.any():
            infos = self._step_lives(happening.nonzero()[0], index, rewards, terminated, truncated)
        else:
            self._add_states(infos, [])
        return self._observe(), rewards, terminated, truncated, infos

    def render(self) -> tuple[str, ...] | None:
        """Return the current observations as texts (``render_mode="ansi"``)."""
        return self._pages.look_up(self._pages.observe(self._at)) if self.render_mode == "ansi" else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle (and copy) what it was made from, as the scalar environment does: no trial has begun in a copy."""
        check_own(type(self))
        return _made_again, (self.specification, self._arguments), {"spec": self.spec}

    def _checked(self, actions: Any) -> NDArray[np.integer[Any]]:
        if not self._lives:
            raise StepAfterEndError("No trial has begun. Call reset() before step().")
        numbers = np.asarray(actions)
        if numbers.shape != (self.num_envs,) or numbers.dtype.kind not in "iu":
            raise OptionError(
                f"Actions are {self.num_envs} whole numbers, one for each lane, not {numbers.dtype} {numbers.shape}."
            )
        if (numbers & ~3).any():
            odd = numbers[(numbers & ~3) != 0][0]
            raise OptionError(f"There is no action {odd}. Actions are 0 to 3: {', '.join(ACTIONS)}.")
        return numbers

    def _observe(self) -> Any:
        numbers = self._pages.observe(self._at)
        return numbers if self._ids else self._pages.look_up(numbers)

    # -- lanes on which something can happen

    def _step_lives(
        self, lanes: NDArray[np.intp], index: NDArray[np.int64], rewards: Floats, terminated: Bools, truncated: Bools
    ) -> dict[str, Any]:
        """Let the lives of these lanes execute the step, write down what came of it, and return the infos."""
        ended: dict[int, dict[str, Any]] = {}
        begun: dict[int, dict[str, Any]] = {}
        before = self._clock - 1
        for lane, entry in zip(lanes.tolist(), index[lanes].tolist(), strict=True):
            if self._over[lane]:
                begun[lane] = self._begin(lane)
                rewards[lane] = 0.0
                continue
            life, offset = self._lives[lane], entry - self._page[lane]
            self._tell(lane, offset & ~3, before)
            _, rewards[lane], status = life.step(offset & 3)
            self._told[lane] = self._clock
            if status != RUNNING:
                self._over[lane] = True
                (terminated if status == TERMINATED else truncated)[lane] = True
                ended[lane] = life.ending()._asdict()
        self._settle(lanes.tolist())
        infos = gather(self.num_envs, ended) | gather(self.num_envs, begun)
        self._add_states(infos, list(begun))
        return infos

    def _add_states(self, infos: dict[str, Any], begun: list[int]) -> None:
        """Add the names of the states; as in the scalar environment the first observation of a trial has none."""
        states, known = self._states.copy(), np.ones(self.num_envs, bool)
        states[begun], known[begun] = None, False
        infos["state"], infos["_state"] = states, known

    def _begin(self, lane: int) -> dict[str, Any]:
        life = self._lives[lane]
        life.begin_next_trial()
        self._over[lane] = False
        self._began[lane] = self._told[lane] = self._clock
        return beginning(life)

    def _tell(self, lane: int, pose: int, clock: int) -> None:
        """Tell a life what it has done since it was last told, up to this value of the clock."""
        trace: Sequence[int] = ()
        if self._traced and clock > self._told[lane]:
            rows = slice(self._told[lane] + 1 - self._traced_from, clock + 1 - self._traced_from)
            trace = (self._trace[rows, lane] - self._page[lane]).tolist()
        self._lives[lane].fast_forward(pose, clock - self._began[lane], trace)
        self._told[lane] = clock

    def _tell_all(self) -> None:
        for lane, at in enumerate(self._at.tolist()):
            if not self._over[lane]:
                self._tell(lane, at - self._page[lane], self._clock)

    def _settle(self, lanes: Sequence[int]) -> None:
        """Read from lives where they stand, and how long nothing can happen there."""
        at, wake, states = [], [], []
        for lane in lanes:
            life = self._lives[lane]
            look, state, quiet, step_to_wake = life.outlook()
            page = self._page[lane] = self._pages.page(look, state, quiet)
            at.append(page + life.pose)
            wake.append(self._began[lane] + step_to_wake)
            states.append(life.state)
        self._at[lanes], self._wake[lanes], self._states[lanes] = at, wake, states

    def _make_room(self) -> None:
        if self._pages.full:
            self._tell_all()
            self._pages.forget_pages()
            self._settle(range(self.num_envs))
        if self._traced and self._clock + 1 - self._traced_from == TRACE_ROWS:
            self._tell_all()
            self._traced_from = self._clock + 1
        if self._pages.crowded and not self._ids:
            self._pages.forget_texts()


def _made_again(specification: Specification, arguments: tuple[Any, ...]) -> ArenaVectorEnvironment:
    return vector_class(specification, ArenaParadigm(specification))(*arguments)


def vector_class(specification: Specification, paradigm: ArenaParadigm) -> type[ArenaVectorEnvironment]:
    """Make the vector environment class of a compiled protocol."""
    name = f"{class_name(specification.name)}Vector"
    doc = f"{specification.title} (protocol {specification.name}). {ArenaVectorEnvironment.__doc__}"
    members = {"__doc__": doc, "__module__": __name__, "specification": specification, "paradigm": paradigm}
    return type(name, (ArenaVectorEnvironment,), members)


def make_from_file(protocol: str | Path, **options: Any) -> ArenaVectorEnvironment:
    """Return a vector environment of any protocol; see ``environment.make_from_file``."""
    specification = find_protocol(protocol)
    return vector_class(specification, ArenaParadigm(specification))(**options)


_classes: dict[str, type[ArenaVectorEnvironment]] = {}


def __getattr__(name: str) -> Any:
    """Return the vector class of a shipped protocol, which has the name of the scalar one."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name not in _classes:
        scalar = class_named(name)
        _classes[name] = vector_class(scalar.specification, scalar.paradigm)
    return _classes[name]
