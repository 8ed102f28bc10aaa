"""What ``serve`` listens to and says; the server itself is tested in ``interop``."""

from __future__ import annotations

import argparse
import logging
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.cli import main
from cheesebench.commands import serve
from cheesebench.commands.serve import _is_news, _listen
from cheesebench.interop.asgi_guard import AsgiGuard


class Served:
    """The application, without OpenEnv."""

    def __init__(self, cells: Any, *, episode: str, reward: str, seed: int) -> None:
        self.given = (len(cells), episode, reward, seed)
        self.begun = {"t_maze": 0, "dnms": 3}

    def app(self, sessions: int) -> Any:
        return f"app of {sessions}"


@pytest.fixture(name="started")
def _started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configurations with which a server has run."""
    made: list[Any] = []

    class Server:
        def __init__(self, config: Any) -> None:
            self.config = config

        def run(self) -> None:
            made.append(self.config)

    uvicorn = SimpleNamespace(
        Server=Server, Config=lambda app, **given: SimpleNamespace(app=app, **given)
    )
    monkeypatch.setitem(sys.modules, "uvicorn", cast(Any, uvicorn))
    openenv = cast(Any, SimpleNamespace(Served=Served))
    monkeypatch.setitem(sys.modules, "cheesebench.interop.openenv_server", openenv)
    return made


@pytest.mark.parametrize(
    ("address", "each", "said", "most"),
    [
        ("127.0.0.1", None, "1 protocol, 8 sessions at a time, 8 for one client", 8),
        ("127.0.0.1", 3, "8 sessions at a time, 3 for one client", 3),
        ("0.0.0.0", None, "8 sessions at a time, 2 for one client", 2),
    ],
)
def test_who_can_reach_it_is_said(
    started: list[Any],
    capsys: pytest.CaptureFixture[str],
    address: str,
    each: int | None,
    said: str,
    most: int,
) -> None:
    options = argparse.Namespace(
        address=address, port=8123, sessions=8, sessions_each=each, host_name=["lab:1"]
    )
    _listen(options, cast(Any, Served([1], episode="", reward="", seed=0)), 1)
    out = capsys.readouterr().err
    assert out.startswith(f"OpenEnv at http://{address}:8123: ")
    assert said in out
    assert ("Anybody who reaches" in out) == (address != "127.0.0.1")
    [config] = started
    assert isinstance(config.app, AsgiGuard)
    assert (cast(Any, config.app.application), config.app.each) == ("app of 8", most)
    assert (config.host, config.port) == (address, 8123)
    assert config.ws_max_size == AsgiGuard.largest


def test_what_was_trained_on_is_said_at_the_end(
    started: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made: list[Any] = []

    def hosted(names: Any, **given: Any) -> list[str]:
        made.append((names, given))
        return ["cell"] * 2

    monkeypatch.setattr(serve, "hosted", hosted)
    command = ["serve", "--openenv", "t_maze", "dnms", "--agent-option", "history=3"]
    assert main([*command, "--seed", "5", "--episode", "trial"]) == 0
    said = capsys.readouterr().err
    assert "Training lives: dnms 3. Reports mention" in said
    assert "trained_on: [dnms]" in said
    [(names, given)] = made
    assert names == ["t_maze", "dnms"]
    assert given["settings"] == {"history": "3"}
    assert main([*command[:4], "--agent-option", "history"]) == 2
    assert "--agent-option history: write NAME=VALUE." in capsys.readouterr().err
    assert len(started) == 1


def test_a_refused_handshake_is_no_news() -> None:
    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("uvicorn", 30, "", 0, text, (), None)

    assert not _is_news(record("ASGI callable returned without completing handshake."))
    assert _is_news(record("address already in use"))
