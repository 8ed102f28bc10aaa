"""``cheesebench play``: lets a person play a subject's trials, and shows which rules
fire.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Generator, Iterator, Sequence
from typing import TextIO

from cheesebench.chat import Picture
from cheesebench.commands.common import (
    PROTOCOL,
    add_life,
    add_trial,
    counted,
    describe,
    load_protocol,
    one_line,
    wait_for_trial,
    write_bytes,
)
from cheesebench.errors import OptionError
from cheesebench.interfaces import (
    ACTION_LETTERS,
    ACTIONS,
    FORWARD,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    RUNNING,
    STAY,
    ObservableSubject,
    PictureView,
    SubjectEnvironment,
    TaskEvent,
    TrialResult,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.terminal import printable

#: The action of each key: the letters of actions, WASD, the space bar, and the arrows,
#: which terminals send in two ways.
KEYS = {
    "f": FORWARD, "w": FORWARD, "\x1b[A": FORWARD, "\x1bOA": FORWARD,
    "l": ROTATE_LEFT, "a": ROTATE_LEFT, "\x1b[D": ROTATE_LEFT, "\x1bOD": ROTATE_LEFT,
    "r": ROTATE_RIGHT, "d": ROTATE_RIGHT, "\x1b[C": ROTATE_RIGHT, "\x1bOC": ROTATE_RIGHT,
    "s": STAY, " ": STAY, "\x1b[B": STAY, "\x1bOB": STAY,
}  # fmt: skip
#: The keys q and Ctrl-D. (Ctrl-C is left to the terminal.)
QUIT_KEYS = ("q", "\x04")
QUIT_WORDS = ("Q", "QUIT", "EXIT")
_KEY = re.compile("\x1b[\\[O][A-Z]|.", re.DOTALL)


def parse_actions(text: str) -> list[int]:
    """Parse actions such as ``F F L``, ``ffl`` or ``FORWARD, STAY``. Raise OptionError
    for other words.
    """
    actions = []
    for word in re.split(r"[\s,]+", text.upper().strip()):
        for name in [word] if word in ACTIONS else word:
            if name not in ACTIONS and name not in ACTION_LETTERS:
                raise OptionError(
                    f"'{name}' in '{text.strip()}' is not an action. Use F (forward), L and R (turn), S (stay)."
                )
            actions.append(
                ACTIONS.index(name) if name in ACTIONS else ACTION_LETTERS.index(name)
            )
    return actions


def from_lines(lines: TextIO) -> Iterator[int]:
    """Yield the actions of each line, until a line is a word of ``QUIT_WORDS`` or the
    input ends. Lines with unknown words are reported and skipped.
    """
    for line in lines:
        if line.strip().upper() in QUIT_WORDS:
            return
        try:
            yield from parse_actions(line)
        except OptionError as error:
            print(printable(f"{error} q quits."))


def reads_keys() -> bool:
    """Return whether single key presses can be read. Standard input must be a terminal,
    and the system not Windows.
    """
    return sys.platform != "win32" and sys.stdin.isatty()


def from_terminal() -> Generator[int]:
    """Yield the action of each key that has one, until q or Ctrl-D. The terminal is
    restored when the iterator is closed.
    """
    # The imports are here because Windows lacks both modules.
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        # TCSANOW keeps what has been typed already.
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


_CLEAR = "\x1b[2J\x1b[H"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Keys: arrows or WASD to move, space bar to stay, q to quit. Without a terminal, lines of letters are read "
        "from standard input: F (forward), L and R (turn), S (stay).",
        "my_maze.protocol.yaml",
        'my_maze --seed 3 --actions "F F L"',
    )
    parser.add_argument("protocol", metavar="FILE", help=PROTOCOL)
    parser.add_argument(
        "--view",
        metavar="NAME",
        default="ascii_2d",
        help="the view (default: ascii_2d)",
    )
    parser.add_argument(
        "--output",
        metavar="PNG",
        help="for a view that draws images: write each image to this file",
    )
    parser.add_argument(
        "--actions", metavar="LETTERS", help="play these actions (F L R S), then stop"
    )
    add_trial(parser)
    add_life(parser)


def run(options: argparse.Namespace) -> int:
    given = None if options.actions is None else parse_actions(options.actions)
    view = installed_plugins().view(options.view)
    if isinstance(view, PictureView) != (options.output is not None):
        raise OptionError(
            f"'{view.name}' draws pictures, which a terminal cannot show. Give --output FILE.png, and look at that "
            "file while you play, or use a text view."
            if options.output is None
            else f"'{view.name}' draws text, so there is no image to write. Remove --output, or use another --view."
        )
    specification = load_protocol(options.protocol)
    life = (
        installed_plugins()
        .compile(specification)
        .environment(view, options.seed, options.subject)
    )
    by_key = given is None and reads_keys()
    first = wait_for_trial(life, options.trial)
    game = Game(
        life,
        specification.name,
        clear=by_key and _can_clear(),
        output=options.output,
        trial=options.trial,
    )
    if given is not None:
        game.play(iter(given), first)
    elif by_key:
        print("Arrows or WASD move, the space bar stays, q quits.\n")
        # Closing the iterator restores the terminal, even after an error.
        with contextlib.closing(from_terminal()) as actions:
            game.play(actions, first)
    else:
        print(
            "Letters move: F (forward), L and R (turn), S (stay), then Enter; q quits.\n"
        )
        game.play(from_lines(sys.stdin), first)
    return 0


def _can_clear() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Game:
    """Lets a person play the trials of one subject, and prints everything that
    happens.
    """

    def __init__(
        self,
        life: SubjectEnvironment,
        name: str,
        *,
        clear: bool = False,
        output: str | None = None,
        trial: int = 1,
    ) -> None:
        self._first = trial
        self._life, self._name, self._clear, self._output = life, name, clear, output
        self._trials = self._judged = self._successes = 0
        #: Total reward of all trials.
        self._total = 0.0

    def play(self, actions: Iterator[int], observation: str | None) -> None:
        """Play the trial that begins with this observation, and the trials after it.
        Print a summary.

        The game ends with the schedule, or when no actions are left.
        """
        while observation is not None and self._play_trial(observation, actions):
            observation = self._life.begin_trial()
        if observation is None:
            print("The schedule is complete.")
        judged = f", {self._successes} with success" if self._judged else ""
        print(
            f"{counted(self._trials, 'trial')} played to the end{judged}; total reward {self._total:g}."
        )

    def _play_trial(self, observation: str, actions: Iterator[int]) -> bool:
        self._show(0, "start", observation, 0.0)
        print()
        shown = 0
        for steps, action in enumerate(actions, 1):
            frozen, before = self._life.waiting, self._pose()
            observation, reward, status = self._life.step(action)
            blocked = (
                action == FORWARD
                and not frozen
                and before is not None
                and self._pose() == before
            )
            self._total += reward
            if self._clear:
                print(_CLEAR, end="")
            self._show(
                steps, ACTIONS[action] + " (blocked)" * blocked, observation, reward
            )
            result = None if status == RUNNING else self._life.result()
            events = self._events(result)
            self._print_events(events[shown:])
            shown = len(events)
            if result is not None:
                self._end(result)
                return True
        return False

    def _pose(self) -> object:
        """Return the subject's position and heading, for comparison, or None if the
        environment has no pose.
        """
        return getattr(self._life, "pose", None)

    def _show(self, steps: int, action: str, observation: str, reward: float) -> None:
        life = self._life
        where = [f"trial {self._first + self._trials}", f"step {steps}: {action}"]
        if isinstance(life, ObservableSubject):
            where[:1] = [
                f"block {life.block}",
                f"session {life.session}",
                f"trial {life.trial}",
            ]
            where.append(f"state {life.state}")
        print(one_line(" · ".join([self._name, *where])))
        if isinstance(observation, Picture) and self._output is not None:
            write_bytes(observation.png, self._output)
        if text := str(observation):
            print(printable(text))
        frozen = " · frozen: every action waits" if life.waiting else ""
        print(f"reward {reward:+g} · total {self._total:g}{frozen}", flush=True)

    def _events(self, result: TrialResult | None) -> Sequence[TaskEvent]:
        if result is not None:
            return result.events
        return self._life.events if isinstance(self._life, ObservableSubject) else ()

    def _print_events(self, events: Sequence[TaskEvent]) -> None:
        for event in events:
            print(
                "  " + one_line(f"{event.source}: {event.event} in state {event.state}")
            )
        print(flush=True)

    def _end(self, result: TrialResult) -> None:
        self._trials += 1
        self._judged += result.success is not None
        self._successes += bool(result.success)
        judgement = {True: " (success)", False: " (no success)", None: ""}[
            result.success
        ]
        print(one_line(f"The trial ends: {result.outcome}{judgement}."))
        numbers = {**result.counters, **result.measures}
        if numbers:
            print(
                one_line(
                    ", ".join(
                        f"{name} {_number(value)}" for name, value in numbers.items()
                    )
                )
            )
        print()


def _number(value: object) -> str:
    return (
        f"{value:g}"
        if isinstance(value, float)
        else "none"
        if value is None
        else str(value)
    )
