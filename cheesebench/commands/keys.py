"""Input for ``cheesebench play``: actions from terminal keys, lines of text, or one string."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterator
from typing import TextIO

from cheesebench.errors import OptionError
from cheesebench.film import printable
from cheesebench.interfaces import ACTION_LETTERS, ACTIONS, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY

#: Keys of a terminal: letters of actions, WASD, the space bar, and arrows (in both modes that terminals have).
KEYS = {
    "f": FORWARD, "w": FORWARD, "\x1b[A": FORWARD, "\x1bOA": FORWARD,
    "l": ROTATE_LEFT, "a": ROTATE_LEFT, "\x1b[D": ROTATE_LEFT, "\x1bOD": ROTATE_LEFT,
    "r": ROTATE_RIGHT, "d": ROTATE_RIGHT, "\x1b[C": ROTATE_RIGHT, "\x1bOC": ROTATE_RIGHT,
    "s": STAY, " ": STAY, "\x1b[B": STAY, "\x1bOB": STAY,
}  # fmt: skip
#: q and Ctrl-D (Ctrl-C is left to the terminal).
QUIT_KEYS = ("q", "\x04")
QUIT_WORDS = ("Q", "QUIT", "EXIT")
_KEY = re.compile("\x1b[\\[O][A-Z]|.", re.DOTALL)


def parse_actions(text: str) -> list[int]:
    """Return the actions of a text such as ``F F L`` or ``ffl`` or ``FORWARD, STAY``; OptionError for others."""
    actions = []
    for word in re.split(r"[\s,]+", text.upper().strip()):
        for name in [word] if word in ACTIONS else word:
            if name not in ACTIONS and name not in ACTION_LETTERS:
                raise OptionError(
                    f"'{name}' in '{text.strip()}' is not an action. Use F (forward), L and R (turn), S (stay)."
                )
            actions.append(ACTIONS.index(name) if name in ACTIONS else ACTION_LETTERS.index(name))
    return actions


def from_lines(lines: TextIO) -> Iterator[int]:
    """Yield the actions of each line until one says q, or there are no more; what is no action is said and dropped."""
    for line in lines:
        if line.strip().upper() in QUIT_WORDS:
            return
        try:
            yield from parse_actions(line)
        except OptionError as error:
            print(printable(f"{error} q quits."))


def reads_keys() -> bool:
    """Return whether single key presses can be read: standard input is a terminal, and this is not Windows."""
    return sys.platform != "win32" and sys.stdin.isatty()


def from_terminal() -> Generator[int]:
    """Yield an action for every key until q; closing the iterator restores the terminal."""
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        # TCSANOW keeps what was typed ahead.
        tty.setcbreak(terminal, termios.TCSANOW)
        while pressed := os.read(terminal, 64):
            for key in _KEY.findall(pressed.decode("utf-8", "replace")):
                name = key.lower() if len(key) == 1 else key
                if name in QUIT_KEYS:
                    return
                if name in KEYS:
                    yield KEYS[name]
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
