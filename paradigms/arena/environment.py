"""Gymnasium environments: one class per protocol, observations in any view and four
actions.

One episode is one trial. Each reset begins the subject's next trial. After the last
trial the schedule starts again for the same subject, which keeps the draws that are
made once per subject, so that training can continue indefinitely.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from functools import cache
from operator import index
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory
from numpy.typing import NDArray
from PIL import Image

from cheesebench.chat import Picture
from cheesebench.errors import OptionError, StepAfterEndError, UnknownNameError
from cheesebench.gymnasium_plugin import class_name
from cheesebench.interfaces import ACTIONS, TERMINATED, TRUNCATED, PictureView, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import (
    Catalogue,
    Specification,
    expressions,
    load_protocol,
    with_arena,
)
from cheesebench.protocol.documents import MAX_NAME
from cheesebench.wrappers import checked_options

#: RGB picture: uint8, height x width x 3.
Pixels = NDArray[np.uint8]


#: Seeds for ``reset`` without a seed are drawn below this number.
SEEDS = 2**31
#: Largest possible subject number. Expressions compute with the number, so a float must
#: hold it exactly.
MAX_SUBJECT = 10**15
#: The view that ``render`` draws as a picture when observations are texts.
WATCHED_IN = "topdown_2d"


class ArenaEnvironment(gymnasium.Env[Any, Any]):
    """A paradigm as a Gymnasium environment. ``environment_class`` creates a subclass
    for each protocol. Its constructor raises UnknownNameError for an unknown view,
    render mode or argument, and OptionError for an invalid subject.

    Observation: ``Text``, what the view draws (for ``ascii_2d`` a map, rows separated
    by newlines, then what the state says). In a view of pictures, it is a dict of
    ``picture`` (uint8, height x width x 3, RGB) and ``text`` (what the state says).
    Action: ``Discrete(4)`` = FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY. Reward: float,
    any size. ``terminated`` is True when a rule or ``finish`` ended the trial,
    ``truncated`` when the step limit ended it.

    After a step, ``info`` has ``state`` (str). At the end of a trial it also has
    ``outcome`` (str), ``success`` (bool or None), ``measures`` (dict), ``counters``
    (dict) and ``life_over`` (bool: this was the last trial of the subject's schedule).
    After a reset it has ``block`` (str), ``session`` and ``trial`` (int, from 1) and
    ``subject`` (int, from 0).

    A copied or unpickled environment is newly created with the same arguments: it has
    no current trial.

    Args:
        view: name of a registered view.
        subject: number of the subject whose life this is. To change it, call
            ``reset(options={"subject": n})``, or set the attribute ``subject``: the
            next reset then begins that subject's life. A vector environment sets the
            attribute in each lane (``set_attr``).
        render_mode: with ``"ansi"``, ``render`` returns the current observation as text
            (of a picture, the text alone). With ``"rgb_array"``, it returns the arena
            from above (in a view of pictures, the observation) as pixels.
    """

    metadata = {  # noqa: RUF012 - Gymnasium declares it as an instance variable
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }
    specification: ClassVar[Specification]
    paradigm: ClassVar[ArenaParadigm]

    def __init__(
        self,
        view: str = "ascii_2d",
        subject: int = 0,
        render_mode: str | None = None,
        **unknown: object,
    ) -> None:
        refuse_arguments(unknown, ("view", "subject", "render_mode"))
        self._view = view_named(view)
        self.render_mode = checked_render_mode(
            render_mode, self.metadata["render_modes"]
        )
        self.subject = subject
        self._arguments = {
            "view": view,
            "subject": self._subject,
            "render_mode": render_mode,
        }
        self._life: ArenaSubject | None = None
        self._observation = ""
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = observation_space(self.paradigm, self._view)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin the next trial. The first call, a ``seed``, or another ``subject`` (in
        the options, or set as an attribute) begins a new life. Raise UnknownNameError
        for another option, OptionError for an invalid subject, and ProtocolError for a
        mistake that shows only now (as ``step`` does).
        """
        super().reset(seed=seed)
        self.subject = checked_options(options).get("subject", self._subject)
        life = self._life
        if life is None or seed is not None or life.subject != self._subject:
            number = seed if seed is not None else int(self.np_random.integers(SEEDS))
            life = self._life = ArenaSubject(
                self.paradigm.program, self._view, number, self._subject
            )
        self._observation = life.begin_next_trial()
        return observed(self._observation), beginning(life)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Execute one action. The docstring of the class describes the results. Raise
        OptionError for an action that is not 0 to 3, and StepAfterEndError before the
        first reset and after the end of a trial.
        """
        life = self._life
        if life is None:
            raise StepAfterEndError("No trial has begun. Call reset() before step().")
        try:
            number = index(action)
        except TypeError:
            raise OptionError(
                f"An action must be a whole number from 0 to 3, not {action!r}."
            ) from None
        if not 0 <= number < 4:
            raise OptionError(
                f"There is no action {action}. Actions are 0 to 3: {', '.join(ACTIONS)}."
            )
        self._observation, reward, status = life.step(number)
        if not status:
            return (
                observed(self._observation),
                reward,
                False,
                False,
                {"state": life.state},
            )
        info = {"state": life.state, **ending(life)}
        return (
            observed(self._observation),
            reward,
            status == TERMINATED,
            status == TRUNCATED,
            info,
        )

    @property
    def subject(self) -> int:
        """Number of the subject, from 0. If it is set to another number, the next
        ``reset`` begins that subject's life. Raise OptionError for an invalid number.
        """
        return self._subject

    @subject.setter
    def subject(self, number: object) -> None:
        self._subject = checked_subject(number)

    @property
    def life_over(self) -> bool:
        """Whether the latest trial, finished or not, was the last one of the subject's
        life.
        """
        return self._life is not None and self._life.life_over

    def render(self) -> str | Pixels | None:
        """Return the current observation as text (``"ansi"``), a picture as uint8
        pixels of shape (height, width, 3) (``"rgb_array"``, see the class), or None if
        there is no render mode. Raise StepAfterEndError if a picture is asked for
        before the first reset.
        """
        if self.render_mode != "rgb_array":
            return str(self._observation) if self.render_mode == "ansi" else None
        life = self._life
        if life is None:
            raise StepAfterEndError("No trial has begun. Call reset() before render().")
        watched = (
            self._view
            if isinstance(self._view, PictureView)
            else installed_plugins().view(WATCHED_IN)
        )
        return pixels(life.drawn_in(self.paradigm.program.gallery(watched)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Make pickle and copy store the constructor's arguments, because generated
        classes cannot be found by name.
        """
        check_own(type(self))
        return _made_again, (self.specification, self._arguments), {"spec": self.spec}


def check_own(kind: type) -> None:
    """Raise TypeError for a subclass of a protocol's class, because its copy would be
    the plain paradigm.
    """
    if "specification" not in vars(kind):
        raise TypeError(
            f"'{kind.__name__}' is a subclass of a protocol's class, so it cannot be copied or pickled. Write a wrapper "
            "(gymnasium.Wrapper) instead, or give it its own __reduce__."
        )


def _made_again(
    specification: Specification, arguments: dict[str, Any]
) -> ArenaEnvironment:
    return environment_class(specification)(**arguments)


def beginning(life: ArenaSubject) -> dict[str, Any]:
    return {
        "block": life.block,
        "session": life.session,
        "trial": life.trial,
        "subject": life.subject,
    }


def ending(life: ArenaSubject) -> dict[str, Any]:
    outcome, success, measures, counters = life.ending()
    return {
        "outcome": outcome,
        "success": success,
        "measures": measures,
        "counters": counters,
        "life_over": life.life_over,
    }


def refuse_arguments(unknown: Iterable[str], known: Sequence[str]) -> None:
    """Raise UnknownNameError for the first of these arguments of ``gymnasium.make``, if
    there are any.
    """
    for name in unknown:
        raise UnknownNameError("argument", name, known)


def view_named(view: object) -> View:
    return installed_plugins().view(view if isinstance(view, str) else repr(view))


def checked_subject(subject: object) -> int:
    try:
        number = -1 if isinstance(subject, bool) else index(subject)  # type: ignore[arg-type]  # others raise TypeError
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_SUBJECT:
        raise OptionError(
            f"A subject must be a whole number from 0 to {MAX_SUBJECT}, not {subject!r}."
        )
    return number


def checked_render_mode(render_mode: str | None, known: Iterable[str]) -> str | None:
    if render_mode is not None and render_mode not in known:
        raise UnknownNameError("render mode", render_mode, known)
    return render_mode


# -- the classes of protocols

#: The classes by path and text of the protocol. The lanes of a vector environment share
#: them, with their compiled protocols and drawn pictures.
_classes: dict[tuple[str, str], type[ArenaEnvironment]] = {}


def environment_class(specification: Specification) -> type[ArenaEnvironment]:
    """Return the environment class of a checked protocol. Protocols with the same path
    and text share one class.
    """
    key = specification.path, specification.text
    if key not in _classes:
        members = {
            "__doc__": f"{specification.title} (protocol {specification.name}). {ArenaEnvironment.__doc__}",
            "__module__": __name__,
            "specification": specification,
            "paradigm": ArenaParadigm(specification),
        }
        _classes[key] = type(
            class_name(specification.name), (ArenaEnvironment,), members
        )
    return _classes[key]


@cache
def class_named(name: str) -> type[ArenaEnvironment]:
    """Return the class with this name, if it belongs to an installed protocol. Raise
    AttributeError if there is none.
    """
    catalogue = Catalogue(installed_plugins().protocol_directories)
    for stem, path in catalogue.files.items():
        if class_name(stem) == name:
            return environment_class(with_arena(catalogue.load(path)))
    raise AttributeError(f"no protocol has a class called {name!r}")


def make_from_file(
    protocol: str | Path | None = None, **options: Any
) -> ArenaEnvironment:
    """Return an environment of any protocol with an arena. This makes
    ``gymnasium.make("cheesebench/Protocol-v1", protocol=PATH_OR_NAME)`` work. Raise
    OptionError if ``protocol`` is neither a path nor a string, UnknownNameError for an
    unknown name, and ProtocolError for a protocol with errors or without an arena.
    """
    return environment_class(find_protocol(protocol))(**options)


def find_protocol(protocol: str | Path | None) -> Specification:
    if not isinstance(protocol, str | Path):
        raise OptionError(
            f"'protocol' must be the file or the name of a protocol, not {protocol!r}."
        )
    if Path(protocol).is_file():
        return load_protocol(protocol)
    found: Specification = with_arena(
        Catalogue(installed_plugins().protocol_directories).find(str(protocol))
    )
    return found


# -- observation spaces


class TextSpace(spaces.Text):
    """``Text`` that refuses to be shared between processes.

    ``AsyncVectorEnv`` (Gymnasium 1.1 to 1.4) reads texts from shared memory only once,
    when it is created, so every observation would be a row of newlines. The error asks
    for ``shared_memory=False``.
    """


@create_shared_memory.register(TextSpace)
def _refuse(space: TextSpace, n: int = 1, ctx: Any = None) -> Any:
    raise CustomSpaceError(
        "AsyncVectorEnv cannot pass texts through shared memory. Pass shared_memory=False."
    )


def text_space(paradigm: ArenaParadigm, view: View) -> TextSpace:
    gallery = paradigm.program.gallery(view)
    scenes = [
        gallery.scene((), (), text) for text in _longest_texts(paradigm.specification)
    ]
    assigned = [
        (one.variable, one.value)
        for effects in paradigm.program.all_effects()
        for one in effects.assignments
    ]
    characters = frozenset(view.characters) | gallery.characters(
        paradigm.specification, assigned
    )
    return TextSpace(
        min_length=0,
        max_length=max(1, *(view.max_length(scene) for scene in scenes)),
        # The space numbers the characters in this order. They are sorted because the
        # order of a set differs between processes.
        charset="".join(sorted(characters)),
    )


def _longest_texts(specification: Specification) -> list[tuple[str, ...]]:
    """Return the lines of each state's text, with values filled in that are at least as
    long as any real value.
    """
    rows = [value for draw in specification.draws for row in draw.rows for value in row]
    held = [variable.initial for variable in specification.variables.values()]
    held += [value for block in specification.schedule for _, value in block.set]
    longest = max(MAX_NAME, *map(len, map(expressions.as_text, [*rows, *held])), 0)
    everything = (
        len({*rows, *held})
        + len(specification.arena.zones)
        + len(specification.arena.solids)
    )
    kinds = {
        name: variable.type.kind for name, variable in specification.variables.items()
    }
    kinds |= {name: type_.kind for name, type_ in specification.columns.items()}
    values = {
        name: "m" * (longest * (everything if kind == "set" else 1))
        for name, kind in kinds.items()
    }
    return [
        tuple(expressions.filled(line, values) for line in state.say)
        for state in specification.states.values()
    ]


def observation_space(paradigm: ArenaParadigm, view: View) -> spaces.Space[Any]:
    text = text_space(paradigm, view)
    if not isinstance(view, PictureView):
        return text
    width, height = view.picture_size(paradigm.program.gallery(view).scene((), (), ()))
    return spaces.Dict(
        {"picture": spaces.Box(0, 255, (height, width, 3), np.uint8), "text": text}
    )


def observed(observation: str) -> Any:
    """Return a text as it is, and a picture as the dict of its observation space (see
    ``ArenaEnvironment``).
    """
    if not isinstance(observation, Picture):
        return observation
    return {"picture": pixels(observation), "text": str(observation)}


def pixels(picture: str) -> Pixels:
    assert isinstance(picture, Picture)
    with Image.open(io.BytesIO(picture.png)) as image:
        return np.array(image.convert("RGB"))
