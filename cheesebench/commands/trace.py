"""``cheesebench trace``: prints a table of steps with action, visible change, reward,
state, the rules that fired, and the variables that they set.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Protocol, runtime_checkable

from cheesebench import interfaces
from cheesebench.chat import Picture
from cheesebench.commands import play
from cheesebench.commands.common import (
    PROTOCOL,
    add_life,
    add_trial,
    counted,
    describe,
    load_protocol,
    one_line,
    table,
    wait_for_trial,
)
from cheesebench.errors import OptionError
from cheesebench.plugin_manager import installed_plugins

#: Maximum number of changed squares that are listed one by one, in a step or in a line
#: of the picture.
MOST_CHANGES = 4
_HEADERS = (
    "step",
    "action",
    "what changed",
    "reward",
    "state",
    "what fired and was set",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints the first picture of each trial, and a row for each step: the action, changes in the picture, reward, state, "
        "the rules that fired with their lines, and the variables that they set.",
        "my_maze --actions FFFRFF",
        "my_maze.protocol.yaml --actions 'F F L' --seed 3 --subject 1 --trial 2",
    )
    parser.add_argument("protocol", metavar="FILE", help=PROTOCOL)
    parser.add_argument(
        "--actions",
        metavar="LETTERS",
        required=True,
        help="F (forward), L and R (turn), S (stay). Each step takes one, also while nothing moves; what is left when a trial "
        "ends is played in the next, and the trace stops after the last (a protocol's `tests` then stay to the end of the trial)",
    )
    parser.add_argument(
        "--view",
        metavar="NAME",
        default="ascii_2d",
        help="the view (default: ascii_2d)",
    )
    add_trial(parser)
    add_life(parser)


def run(options: argparse.Namespace) -> int:
    actions = play.parse_actions(options.actions)
    if not actions:
        raise OptionError(
            "--actions has no action. Use F (forward), L and R (turn), S (stay)."
        )
    specification = load_protocol(options.protocol)
    plugins = installed_plugins()
    life = plugins.compile(specification).environment(
        plugins.view(options.view), options.seed, options.subject
    )
    number = options.trial
    observation: str | None = wait_for_trial(life, number)
    while actions and observation is not None:
        print(
            one_line(
                f"{specification.name}: trial {number} of subject {options.subject}, seed {options.seed}"
            )
        )
        print(f"\n{observation.rstrip()}")
        trace = Trace(life, observation)
        result = trace.play(actions)
        print(f"\n{table(_HEADERS, trace.rows)}\n\n{_end(result)}\n")
        if result is None:
            return 0
        observation = life.begin_trial() if actions else None
        number += observation is not None
    if actions:
        print(
            f"The schedule ends after {counted(number, 'trial')}. Not played: {counted(len(actions), 'action')}."
        )
    return 0


@runtime_checkable
class _Valued(Protocol):
    """A subject whose variables can be read at any time."""

    values: Mapping[str, object]


class Trace:
    """Makes the rows of one trial. A step has a row, and further rows if more than one
    rule fired or variable was set.
    """

    def __init__(self, life: interfaces.SubjectEnvironment, observation: str) -> None:
        self._life, self._seen = life, observation
        self._state = self._now()
        self._shown = (
            len(life.events) if isinstance(life, interfaces.ObservableSubject) else 0
        )
        self._values = self._held()
        self._at = self._pose()
        held, *others = [*self._set({})] or [""]
        at = ""
        if self._at is not None:
            column, row, heading = self._at
            at = f"at ({column}, {row}), facing {interfaces.HEADINGS[heading // 45]}"
        self.rows: list[Sequence[object]] = [(0, "", at, "", self._state, held)]
        self.rows += [("", "", "", "", "", other) for other in others]

    def play(self, actions: list[int]) -> interfaces.TrialResult | None:
        """Take actions from the list until the trial ends. Return its result, or None
        if the actions end first.
        """
        step = 0
        while actions:
            action, step = actions.pop(0), step + 1
            frozen = self._life.waiting
            observation, reward, status = self._life.step(action)
            vain = self._in_vain(action, frozen)
            result = None if status == interfaces.RUNNING else self._life.result()
            fired = [*self._fired(result), *self._set(self._values)]
            change = changes(self._seen, observation)
            state = self._now()
            moved = state if state == self._state else f"{self._state} -> {state}"
            first, *others = fired or [""]
            self.rows.append(
                (
                    step,
                    interfaces.ACTIONS[action] + vain,
                    change,
                    f"{reward:+g}" if reward else "",
                    moved,
                    first,
                )
            )
            self.rows += [("", "", "", "", "", other) for other in others]
            self._seen, self._state = observation, state
            self._values, self._at = self._held(), self._pose()
            if result is not None:
                return result
        return None

    def _held(self) -> dict[str, object]:
        return {**self._life.values} if isinstance(self._life, _Valued) else {}

    def _pose(self) -> tuple[int, int, int] | None:
        """Return column, row and heading, or None if the subject has no place."""
        where = (
            self._life.location if isinstance(self._life, interfaces.Located) else None
        )
        return None if where is None else where[:3]

    def _set(self, before: Mapping[str, object]) -> Iterator[str]:
        """Yield the variables, columns and counters that have changed, with their new
        values.
        """
        for name, value in self._held().items():
            if name not in before or before[name] != value:
                yield f"{name} = {_value(value)}"

    def _in_vain(self, action: int, frozen: bool) -> str:
        """Return why an action did not move the subject, or "" if it did, if the action
        was to stay, or if the subject has no place.
        """
        if self._at is None or action == interfaces.STAY or self._pose() != self._at:
            return ""
        return " (frozen)" if frozen else " (blocked)"

    def _now(self) -> str:
        return (
            self._life.state
            if isinstance(self._life, interfaces.ObservableSubject)
            else ""
        )

    def _fired(self, result: interfaces.TrialResult | None) -> Iterator[str]:
        """Yield the rules that fired since the last call of this method, each with its
        place in the file.
        """
        events = result.events if result is not None else ()
        if result is None and isinstance(self._life, interfaces.ObservableSubject):
            events = self._life.events
        for event in events[self._shown :]:
            yield f"{event.source}: {event.event}"
        self._shown = len(events)


def changes(before: str, now: str) -> str:
    """Return the differences between two observations in a few words, or "" if they are
    equal. For text, these are the changed squares by column and row (from 0) and the
    changed lines, or only their number.
    """
    if before == now:
        return ""
    if isinstance(now, Picture):
        words = (
            f"; text: {now.strip()}" if str.__str__(now) != str.__str__(before) else ""
        )
        return f"the picture{words}"
    pairs = zip_longest(before.split("\n"), now.split("\n"))
    changes = [
        change
        for row, (old, new) in enumerate(pairs)
        for change in _changes_of_line(row, old, new, len(now.split("\n")[0]))
    ]
    return (
        "; ".join(changes)
        if len(changes) <= MOST_CHANGES
        else f"{len(changes)} squares or lines"
    )


def _changes_of_line(
    row: int, old: str | None, new: str | None, width: int
) -> list[str]:
    """Return the squares of a line that differ. Return the whole line if many do, or if
    one of the two observations has no such line, and the old and the new one if one is
    not as wide as a map of ``width`` squares: it is text.
    """
    if old is None or new is None:
        return [f"line {row}: {(new or '').strip() or '(gone)'}"]
    if {len(old), len(new)} != {width}:
        return _changed_text(row, old, new)
    return _changed_squares(row, old, new)


def _changed_squares(row: int, old: str, new: str) -> list[str]:
    pairs = enumerate(zip_longest(old, new, fillvalue=" "))
    differing = [(column, one, other) for column, (one, other) in pairs if one != other]
    if len(differing) > MOST_CHANGES:
        return [f"line {row}: {new.strip() or '(empty)'}"]
    return [
        f"({column}, {row}) {_glyph(one)} to {_glyph(other)}"
        for column, one, other in differing
    ]


def _changed_text(row: int, old: str, new: str) -> list[str]:
    words = f"{old.strip() or '(empty)'} -> {new.strip() or '(empty)'}"
    return [f"line {row}: {words}"] if old != new else []


def _value(value: object) -> str:
    if isinstance(value, frozenset):
        return f"[{', '.join(sorted(map(str, value)))}]"
    return "none" if value is None else f"{value}"


def _glyph(glyph: str) -> str:
    return "blank" if glyph == " " else glyph


def _end(result: interfaces.TrialResult | None) -> str:
    if result is None:
        return "No actions are left, but the trial has not ended."
    judgement = {True: ", success", False: ", no success", None: ""}[result.success]
    return one_line(f"The trial ends: {result.outcome}{judgement}.")
