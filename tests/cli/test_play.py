"""``play``: by one string of letters, by lines, and by the keys of a real (pseudo)
terminal.
"""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cheesebench.commands.play import parse_actions
from cheesebench.errors import OptionError
from cheesebench.interfaces import FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]

#: A path in the corridor of ``little``: two frozen steps, then four to the goal.
FOUND = "SS FFFF"


def test_pictures_are_written_to_a_file_at_every_step(run: Run, here: Path) -> None:
    played = run(
        "play",
        "little",
        "--view",
        "topdown_2d",
        "--output",
        "now.png",
        "--actions",
        "SSFF",
    )
    assert played.code == 0
    assert "\n...\nreward +0" in played.out
    after_two = (here / "now.png").read_bytes()
    assert after_two.startswith(b"\x89PNG")
    run(
        "play",
        "little",
        "--view",
        "topdown_2d",
        "--output",
        "now.png",
        "--actions",
        "SSF",
    )
    assert (here / "now.png").read_bytes() != after_two
    assert "total reward" in played.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--view", "topdown_2d"], "a terminal cannot show. Give --output FILE.png"),
        (
            ["--output", "now.png"],
            "'ascii_2d' draws text, so there is no image to write.",
        ),
    ],
)
def test_pictures_and_files_belong_together(
    run: Run, options: list[str], message: str
) -> None:
    refused = run("play", "little", *options, "--actions", "F")
    assert refused.code != 0
    assert message in refused.err


def test_play_begins_in_a_later_trial(run: Run) -> None:
    result = run("play", "little", "--trial", "2", "--actions", "S")
    assert result.code == 0
    assert result.out.startswith(
        "little · block main · session 1 · trial 2 · step 0: start"
    )
    assert "0 trials played to the end" in result.out


def test_actions_are_played_and_rules_named(run: Run) -> None:
    result = run("play", "little", "--actions", "SSFFFF")
    assert result.code == 0
    frames = result.out.split("\n\n")
    assert frames[0] == (
        "little · block main · session 1 · trial 1 · step 0: start · state wait\n"
        "###1###\n"
        "#→....#\n"
        "#######\n"
        "...\n"
        "reward +0 · total 0 · frozen: every action waits"
    )
    assert frames[2] == (
        "little · block main · session 1 · trial 1 · step 2: STAY · state run\n"
        "###1###\n"
        "#→.*..#\n"
        "#######\n"
        "reward +0 · total 0\n"
        "  little.protocol.yaml:17: after 2 in state wait"
    )
    assert frames[6] == (
        "little · block main · session 1 · trial 1 · step 6: FORWARD · state run\n"
        "###1###\n"
        "#..*.→#\n"
        "#######\n"
        "reward +1 · total 1\n"
        "  little.protocol.yaml:21: enter goal (goal) in state run"
    )
    assert frames[7] == "The trial ends: found (success).\nvisits 1, latency 3"
    assert frames[8].startswith(
        "little · block main · session 1 · trial 2 · step 0: start"
    )
    assert result.out.endswith(
        "\n1 trial played to the end, 1 with success; total reward 1.\n"
    )


def test_where_nothing_is_judged_no_success_is_counted(
    run: Run, here: Path, maze: str
) -> None:
    kept = [
        line
        for line in maze.splitlines()
        if not line.startswith(("success:", "reference:", "chance:"))
    ]
    (here / "unjudged.protocol.yaml").write_text("\n".join(kept), encoding="utf-8")
    result = run("play", "unjudged.protocol.yaml", "--actions", "SSFFFF")
    assert result.out.endswith("\n1 trial played to the end; total reward 1.\n")


def test_a_blocked_step_says_so(run: Run) -> None:
    frames = [
        line
        for line in run("play", "little", "--actions", "FF LL F S F").out.splitlines()
        if "step" in line
    ]
    ways = [frame.split(": ", 1)[1].split(" ·")[0] for frame in frames]
    assert ways == [
        "start",
        *["FORWARD"] * 2,
        *["ROTATE_LEFT"] * 2,
        "FORWARD (blocked)",
        "STAY",
        "FORWARD (blocked)",
    ]


def test_the_whole_schedule(run: Run) -> None:
    result = run("play", "little", "--actions", FOUND * 3 + "S" * 9 + "F")
    assert "session 2 · trial 2" in result.out
    assert "The trial ends: timeout (no success).\nvisits 0, latency 4.5" in result.out
    assert result.out.endswith(
        "The schedule is complete.\n4 trials played to the end, 3 with success; total reward 3.\n"
    )


def test_lines_are_read_where_there_is_no_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("s, s\n\nforward\nffx\nFFF\nq\nSSS\n")
    )
    result = run("play", "little")
    assert result.out.startswith("Letters move: ")
    assert "'X' in 'ffx' is not an action." in result.out
    assert "1 trial played to the end, 1 with success" in result.out
    assert result.out.count("step 0: start") == 2


def test_the_end_of_the_lines_ends_the_game(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("s"))
    result = run("play", "little")
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith("\n0 trials played to the end; total reward 0.\n")


def test_ways_to_write_actions() -> None:
    expected = [FORWARD, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY]
    for text in (
        "FFLRS",
        "f f l r s",
        "F,F, L\tR\nS",
        "FORWARD forward Rotate_Left rotate_right STAY",
        " ffLRs ",
    ):
        assert parse_actions(text) == expected
    assert parse_actions("") == []
    for text in ("G", "FORWARDS", "F.F", "1"):
        with pytest.raises(OptionError, match="is not an action"):
            parse_actions(text)


def test_text_of_a_protocol_cannot_command_the_terminal(
    run: Run, here: Path, maze: str
) -> None:
    hostile = maze.replace('say: "..."', 'say: "ok\\u202e"')
    (here / "hostile.protocol.yaml").write_text(hostile, encoding="utf-8")
    out = run("play", "hostile", "--actions", "S").out
    assert "\u202e" not in out
    assert "ok\\u202e" in out


class Typist:
    """A person at a terminal, who waits until single keys are read."""

    def __init__(self, keyboard: int, terminal: int) -> None:
        self._keyboard, self._terminal = keyboard, terminal

    def attributes(self) -> list[Any]:
        import termios

        return termios.tcgetattr(self._terminal)

    def reads_lines(self) -> bool:
        import termios

        return bool(self.attributes()[3] & termios.ICANON)

    def types(self, keys: bytes) -> None:
        def wait_and_type() -> None:
            while self.reads_lines():
                time.sleep(0.01)
            os.write(self._keyboard, keys)

        threading.Thread(target=wait_and_type, daemon=True).start()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
class TestAtATerminal:
    """A pseudo-terminal replaces standard input; someone types at its other end once
    the game reads keys.
    """

    @pytest.fixture
    def terminal(self, monkeypatch: pytest.MonkeyPatch, here: Path) -> Iterator[Typist]:
        import pty

        keyboard, terminal = pty.openpty()
        with os.fdopen(terminal, "r", encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            yield Typist(keyboard, terminal)
        os.close(keyboard)

    def test_keys_move(self, terminal: Typist, run: Run) -> None:
        # Space, down, then up, w, F, and an arrow in the terminal's other mode; keys
        # without a meaning in between.
        terminal.types(b" \x1b[Bxx\x1b[5~\x1b[AwF\xc3\xa9\x1bOAa\x1b[DdR\x1b[Cq")
        result = run("play", "little")
        assert result.code == 0
        played = [
            line.split(": ")[1].split(" ")[0]
            for line in result.out.splitlines()
            if " · step " in line
        ]
        turns = [
            "ROTATE_LEFT",
            "ROTATE_LEFT",
            "ROTATE_RIGHT",
            "ROTATE_RIGHT",
            "ROTATE_RIGHT",
        ]
        assert played == ["start", "STAY", "STAY", *["FORWARD"] * 4, "start", *turns]

    @pytest.mark.parametrize("ending", ["q", "\x04", "broken"])
    def test_the_terminal_is_given_back_as_it_was(
        self, terminal: Typist, ending: str, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = terminal.attributes()
        modes = []

        def end(*_: object) -> None:
            modes.append(terminal.reads_lines())
            if ending == "broken":
                raise KeyboardInterrupt

        monkeypatch.setattr("cheesebench.commands.play.Game._end", end)
        terminal.types(b"  FFFF" + ending.encode())
        assert run("play", "little").code == (130 if ending == "broken" else 0)
        assert modes == [False]
        assert terminal.reads_lines()
        assert terminal.attributes() == before
