"""Films: a small protocol, some actions, and the observations as text that can be
checked by eye.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import ACTION_LETTERS
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from tests.arenas import examine_text

#: A corridor of five cells without walls around it; its picture is one line.
HEADER = """
version: 1
paradigm: corridor
schedule: {one: {sessions: 1, trials: 8}}
"""

Film = Callable[..., str]
Load = Callable[[str], Specification]
Live = Callable[..., ArenaSubject]


@pytest.fixture
def load() -> Load:
    """Load a protocol from text; a minimal corridor protocol supplies missing keys."""

    def load(text: str) -> Specification:
        text = textwrap.dedent(text)
        header = "\n".join(
            line for line in HEADER.splitlines() if line.split(":")[0] + ":" not in text
        )
        specification, found = examine_text(f"{header}\n{text}", "film.protocol.yaml")
        if specification is None:
            raise ProtocolError(findings=found)
        return specification

    return load


@pytest.fixture
def live(load: Load) -> Live:
    """Return a life under a protocol text."""

    def live(text: str, seed: int = 0, subject: int = 0) -> ArenaSubject:
        life = ArenaParadigm(load(text)).environment(
            installed_plugins().view("ascii_2d"), seed, subject
        )
        assert isinstance(life, ArenaSubject)
        return life

    return live


@pytest.fixture
def film(live: Live) -> Film:
    """Play trials and return the film: one line for each frame (action, picture,
    reward, state or outcome).

    ``actions`` holds letters; a blank begins the next trial. ``/`` separates rows of a
    picture.
    """

    def film(text: str, actions: str, *, seed: int = 0, subject: int = 0) -> str:
        life = live(text, seed, subject)
        lines = []
        for trial in actions.split(" "):
            picture = life.begin_trial()
            assert picture is not None, "the schedule is over"
            lines.append(_line("-", picture, 0.0, life.state))
            for letter in trial:
                picture, reward, status = life.step(ACTION_LETTERS.index(letter))
                end = (
                    f"{life.outcome} ({('', 'terminated', 'truncated')[status]})"
                    if status
                    else life.state
                )
                lines.append(_line(letter, picture, reward, end))
        return "\n".join(lines)

    return film


def _line(action: str, picture: str, reward: float, state: str) -> str:
    pay = f"{reward:+g}" if reward else "0"
    return f"{action} {picture.replace(chr(10), '/')} {pay} {state}"


def reel(text: str) -> str:
    """Return an expected film without its indentation (blanks between columns are for
    reading only).
    """
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


@pytest.fixture(name="reel")
def _reel() -> Callable[[str], str]:
    return reel


@pytest.fixture
def protocol_file(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a protocol file and return its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / f"{name}.protocol.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write
