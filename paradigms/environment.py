"""Gymnasium environments: one class per protocol, observations in any view and four actions.

One episode is one trial; a session is a run of resets on the same environment. When the schedule of a life is over
it begins again for the same subject (what was drawn for the subject stays), so that a learner can go on for ever.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from cheesebench.chat import Picture
from cheesebench.errors import OptionError, StepAfterEndError
from cheesebench.gymnasium_plugin import class_name
from cheesebench.interfaces import ACTIONS, TERMINATED, TRUNCATED, PictureView, View
from cheesebench.paradigms import ArenaParadigm
from cheesebench.paradigms.life import ArenaLife
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, load_protocol

#: Lives are drawn from seeds below this number when ``reset`` is called without one.
SEEDS = 2**31


class ArenaEnvironment(gymnasium.Env[Any, Any]):
    """A paradigm as a Gymnasium environment; subclasses are made by ``environment_class``.

    Observation: ``Text``, what the view draws (for ``ascii_2d`` a map, rows parted by newlines, then what the state
    says); in a view of pictures a dict of ``picture`` (uint8, height x width x 3, RGB) and ``text`` (what the state
    says). Action: ``Discrete(4)`` = FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY. Reward: float, any size. ``terminated``
    is True when a rule or ``finish`` ended the trial, ``truncated`` at the step limit.

    ``info`` has ``state`` (str) on every step, and at the end of a trial ``outcome`` (str), ``success`` (bool or
    None), ``measures`` (dict) and ``counters`` (dict); after a reset ``block`` (str), ``session`` and ``trial``
    (int, from 1) and ``subject`` (int, from 0).

    Args:
        view: name of a registered view.
        subject: number of the subject whose life this is; ``reset(options={"subject": n})`` changes it.
        render_mode: ``"ansi"`` makes ``render`` return the current observation as text (of a picture, the text alone).
    """

    metadata = {  # noqa: RUF012 - Gymnasium declares it as an instance variable
        "render_modes": ["ansi"],
        "render_fps": 4,
    }
    specification: ClassVar[Specification]
    paradigm: ClassVar[ArenaParadigm]

    def __init__(self, view: str = "ascii_2d", subject: int = 0, render_mode: str | None = None) -> None:
        self._view = installed_plugins().view(view)
        self.render_mode = render_mode
        self._subject = checked_subject(subject)
        self._life: ArenaLife | None = None
        self._observation = ""
        self.action_space = spaces.Discrete(len(ACTIONS))
        self.observation_space = observation_space(self.paradigm, self._view)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the next trial; with ``seed`` (or a new ``subject`` in the options) a new life."""
        super().reset(seed=seed)
        subject = checked_subject((options or {}).get("subject", self._subject))
        if self._life is None or seed is not None or subject != self._subject:
            self._subject = subject
            number = seed if seed is not None else int(self.np_random.integers(SEEDS))
            self._life = ArenaLife(self.paradigm.program, self._view, number, subject)
        life = self._life
        self._observation = life.begin_next_trial()
        return observed(self._observation), beginning(life)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Execute one action; see the class for what is returned."""
        life = self._life
        if life is None:
            raise StepAfterEndError("No trial has begun. Call reset() before step().")
        if not 0 <= action < 4:
            raise OptionError(f"There is no action {action}. Actions are 0 to 3: {', '.join(ACTIONS)}.")
        self._observation, reward, status = life.step(int(action))
        if not status:
            return observed(self._observation), reward, False, False, {"state": life.state}
        info = {"state": life.state, **life.ending()._asdict()}
        return observed(self._observation), reward, status == TERMINATED, status == TRUNCATED, info

    def render(self) -> str | None:
        """Return the current observation (``render_mode="ansi"``)."""
        return str(self._observation) if self.render_mode == "ansi" else None


def observation_space(paradigm: ArenaParadigm, view: View) -> spaces.Space[Any]:
    """Return the space of all observations that a view can give of a paradigm."""
    text = text_space(paradigm, view)
    if not isinstance(view, PictureView):
        return text
    width, height = view.picture_size(paradigm.program.gallery(view).scene((), (), ()))
    return spaces.Dict({"picture": spaces.Box(0, 255, (height, width, 3), np.uint8), "text": text})


def observed(observation: str) -> Any:
    """Return an observation as its space has it: a picture with its pixels."""
    if not isinstance(observation, Picture):
        return observation
    from PIL import Image

    with Image.open(io.BytesIO(observation.png)) as picture:
        return {"picture": np.array(picture.convert("RGB")), "text": str(observation)}


def text_space(paradigm: ArenaParadigm, view: View) -> spaces.Text:
    """Return the space of all texts that a view can draw of a paradigm."""
    gallery = paradigm.program.gallery(view)
    scenes = [gallery.scene((), (), state.say) for state in paradigm.specification.states.values()]
    return spaces.Text(
        min_length=0,
        max_length=max(1, *(view.max_length(scene) for scene in scenes)),
        charset=frozenset(view.characters) | gallery.characters(paradigm.specification),
    )


def beginning(life: ArenaLife) -> dict[str, Any]:
    """Return the ``info`` of a trial that begins."""
    return {"block": life.block, "session": life.session, "trial": life.trial, "subject": life.subject}


def checked_subject(subject: object) -> int:
    """Return the number of a subject, or raise OptionError."""
    if not isinstance(subject, int) or isinstance(subject, bool) or subject < 0:
        raise OptionError(f"A subject is a whole number from 0, not {subject!r}.")
    return subject


def environment_class(specification: Specification) -> type[ArenaEnvironment]:
    """Make the environment class of a checked protocol."""
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
    """Return the class of an installed protocol by its class name; AttributeError when there is none."""
    if name not in _classes:
        catalogue = Catalogue(installed_plugins().protocol_directories)
        for stem, path in catalogue.files.items():
            if class_name(stem) == name:
                _classes[name] = environment_class(catalogue.load(path))
                break
        else:
            raise AttributeError(f"no protocol has a class called {name!r}")
    return _classes[name]


def make_from_file(protocol: str | Path, **options: Any) -> ArenaEnvironment:
    """Return an environment of any protocol file: ``gymnasium.make("cheesebench/Protocol-v1", protocol=PATH)``."""
    return environment_class(load_protocol(protocol))(**options)
