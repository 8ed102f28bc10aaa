"""Gymnasium environments: one class per protocol, observations in any view and four actions.

One episode is one trial; a session is a series of resets of the same environment. At the end of the schedule it starts
again for the same subject (with the subject's draws), so that training can continue indefinitely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
from gymnasium import spaces

from cheesebench.errors import OptionError, StepAfterEndError, UnknownNameError
from cheesebench.gymnasium_plugin import class_name
from cheesebench.interfaces import ACTIONS, TERMINATED, TRUNCATED, PictureView, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.spaces import Pixels, observation_space, observed, pixels
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, load_protocol
from cheesebench.wrappers import checked_options

#: Lives are drawn from seeds below this number when ``reset`` is called without one.
SEEDS = 2**31
#: The last subject there can be: expressions compute with its number, which floats and arrays hold exactly.
MAX_SUBJECT = 10**15
#: The view that ``render`` draws pictures in where the observations are none.
WATCHED_IN = "topdown_2d"


class ArenaEnvironment(gymnasium.Env[Any, Any]):
    """A paradigm as a Gymnasium environment; ``environment_class`` creates its subclasses.

    Observation: ``Text``, what the view draws (for ``ascii_2d`` a map, rows separated by newlines, then what the state
    says); in a view of pictures a dict of ``picture`` (uint8, height x width x 3, RGB) and ``text`` (what the state
    says). Action: ``Discrete(4)`` = FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY. Reward: float, any size. ``terminated``
    is True when a rule or ``finish`` ended the trial, ``truncated`` at the step limit.

    ``info`` has ``state`` (str) on every step, and at the end of a trial ``outcome`` (str), ``success`` (bool or
    None), ``measures`` (dict), ``counters`` (dict) and ``life_over`` (bool: this was the last trial of the subject's
    schedule); after a reset ``block`` (str), ``session`` and ``trial`` (int, from 1) and ``subject`` (int, from 0).

    A copied or unpickled environment is newly created with the same arguments: it has no current trial.

    Args:
        view: name of a registered view.
        subject: number of the subject whose life this is; ``reset(options={"subject": n})`` changes it.
        render_mode: ``"ansi"`` makes ``render`` return the current observation as text (of a picture, the text alone);
            ``"rgb_array"`` makes it return the arena from above (in a view of pictures, the observation) as pixels.
    """

    metadata = {  # noqa: RUF012 - Gymnasium declares it as an instance variable
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }
    specification: ClassVar[Specification]
    paradigm: ClassVar[ArenaParadigm]

    def __init__(
        self, view: str = "ascii_2d", subject: int = 0, render_mode: str | None = None, **unknown: object
    ) -> None:
        refuse_arguments(unknown, ("view", "subject", "render_mode"))
        self._view = view_named(view)
        self.render_mode = checked_render_mode(render_mode, self.metadata["render_modes"])
        self._subject = checked_subject(subject)
        self._arguments = {"view": view, "subject": self._subject, "render_mode": render_mode}
        self._life: ArenaSubject | None = None
        self._observation = ""
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = observation_space(self.paradigm, self._view)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the next trial; with ``seed`` (or a new ``subject`` in the options), of a new subject."""
        super().reset(seed=seed)
        subject = wanted_subject(options, self._subject)
        if self._life is None or seed is not None or subject != self._subject:
            self._subject = subject
            number = seed if seed is not None else int(self.np_random.integers(SEEDS))
            self._life = ArenaSubject(self.paradigm.program, self._view, number, subject)
        life = self._life
        self._observation = life.begin_next_trial()
        return observed(self._observation), beginning(life)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Execute one action; for the results see the class."""
        life = self._life
        if life is None:
            raise StepAfterEndError("No trial has begun. Call reset() before step().")
        try:
            number = index(action)
        except TypeError:
            raise OptionError(f"An action must be a whole number from 0 to 3, not {action!r}.") from None
        if not 0 <= number < 4:
            raise OptionError(f"There is no action {action}. Actions are 0 to 3: {', '.join(ACTIONS)}.")
        self._observation, reward, status = life.step(number)
        if not status:
            return observed(self._observation), reward, False, False, {"state": life.state}
        info = {"state": life.state, **ending(life)}
        return observed(self._observation), reward, status == TERMINATED, status == TRUNCATED, info

    @property
    def life_over(self) -> bool:
        """Whether the latest trial was the last one of the subject's life, also if it was broken off."""
        return self._life is not None and self._life.life_over

    def render(self) -> str | Pixels | None:
        """Return the observation as text (``"ansi"``), or uint8 of shape (height, width, 3) (``"rgb_array"``)."""
        if self.render_mode != "rgb_array":
            return str(self._observation) if self.render_mode == "ansi" else None
        life = self._life
        if life is None:
            raise StepAfterEndError("No trial has begun. Call reset() before render().")
        watched = self._view if isinstance(self._view, PictureView) else installed_plugins().view(WATCHED_IN)
        gallery = self.paradigm.program.gallery(watched)
        look = life.next_event()[0]
        return pixels(gallery.draw(gallery.look(look.key, look.quarters), life.pose))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle (and copy) the constructor's arguments; generated classes cannot be found by name."""
        check_own(type(self))
        return _made_again, (self.specification, self._arguments), {"spec": self.spec}


def check_own(kind: type) -> None:
    """Raise TypeError for a subclass of a protocol's class: made again, it would be the plain paradigm."""
    if "specification" not in vars(kind):
        raise TypeError(
            f"'{kind.__name__}' is a subclass, so it cannot be copied or pickled here. Write a wrapper "
            "(gymnasium.Wrapper) instead, or give it its own __reduce__."
        )


def _made_again(specification: Specification, arguments: dict[str, Any]) -> ArenaEnvironment:
    return environment_class(specification)(**arguments)


def beginning(life: ArenaSubject) -> dict[str, Any]:
    """Return the ``info`` at the start of a trial."""
    return {"block": life.block, "session": life.session, "trial": life.trial, "subject": life.subject}


def ending(life: ArenaSubject) -> dict[str, Any]:
    """Return the ``info`` at the end of a trial, without the state."""
    outcome, success, measures, counters = life.ending()
    return {
        "outcome": outcome,
        "success": success,
        "measures": measures,
        "counters": counters,
        "life_over": life.life_over,
    }


def refuse_arguments(unknown: Iterable[str], known: Sequence[str]) -> None:
    """Raise UnknownNameError for the first argument that ``gymnasium.make`` was given and does not know."""
    for name in unknown:
        raise UnknownNameError("argument", name, known)


def view_named(view: object) -> View:
    """Return the view of that name. Raises UnknownNameError, also for what is no name."""
    return installed_plugins().view(view if isinstance(view, str) else repr(view))


def checked_subject(subject: object) -> int:
    """Return the number of a subject. Raises OptionError."""
    try:
        number = -1 if isinstance(subject, bool) else index(subject)  # type: ignore[arg-type]  # whatever it is
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_SUBJECT:
        raise OptionError(f"A subject must be a whole number from 0 to {MAX_SUBJECT}, not {subject!r}.")
    return number


def wanted_subject(options: object, current: int) -> int:
    """Return the subject named in the options of ``reset``, else the current one. Raises for other options."""
    return current if options is None else checked_subject(checked_options(options).get("subject", current))


def checked_render_mode(render_mode: str | None, known: Iterable[str]) -> str | None:
    """Return the render mode. Raises UnknownNameError."""
    if render_mode is not None and render_mode not in known:
        raise UnknownNameError("render mode", render_mode, known)
    return render_mode


def environment_class(specification: Specification) -> type[ArenaEnvironment]:
    """Create the environment class of a checked protocol."""
    return type(
        class_name(specification.name),
        (ArenaEnvironment,),
        {
            "__doc__": f"{specification.title} (protocol {specification.name}). {ArenaEnvironment.__doc__}",
            "__module__": __name__,
            "specification": specification,
            "paradigm": ArenaParadigm(specification),
        },
    )


_classes: dict[str, type[ArenaEnvironment]] = {}


def class_named(name: str) -> type[ArenaEnvironment]:
    """Return the class of an installed protocol by class name. Raises AttributeError."""
    if name not in _classes:
        catalogue = Catalogue(installed_plugins().protocol_directories)
        for stem, path in catalogue.files.items():
            if class_name(stem) == name:
                _classes[name] = environment_class(catalogue.load(path).walkable())
                break
        else:
            raise AttributeError(f"no protocol has a class called {name!r}")
    return _classes[name]


def make_from_file(protocol: str | Path | None = None, **options: Any) -> ArenaEnvironment:
    """Return an environment of any protocol: ``gymnasium.make("cheesebench/Protocol-v1", protocol=PATH_OR_NAME)``."""
    return environment_class(find_protocol(protocol))(**options)


def find_protocol(protocol: str | Path | None) -> Specification:
    """Return a protocol by the path of its file, else by its name. Raises OptionError for what is neither."""
    if not isinstance(protocol, str | Path):
        raise OptionError(f"'protocol' must be the file or the name of a protocol, not {protocol!r}.")
    if Path(protocol).is_file():
        return load_protocol(protocol)
    return Catalogue(installed_plugins().protocol_directories).find(str(protocol)).walkable()
