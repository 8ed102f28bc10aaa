"""Text films of trials: action, observation and reward, frame by frame, to be checked by eye."""

from __future__ import annotations

from collections.abc import Sequence

from cheesebench.experiment.replay import Frame
from cheesebench.interfaces import ACTION_LETTERS, ACTIONS, WAITED_LETTER
from cheesebench.redaction import inert

#: Frames that are kept at the beginning and at the end of a long trial.
FIRST, LAST = 3, 5
#: Blanks between two frames that stand side by side.
GAP = 3

_WORDS = dict(zip(ACTION_LETTERS, ACTIONS, strict=True)) | {"": "start", WAITED_LETTER: "(frozen)"}


def printable(text: str) -> str:
    """Return ``text`` with its line breaks, and all else that a terminal, or a CI, might obey made visible."""
    if text.replace("\n", "").isprintable():  # nearly every text: tables of calls have millions
        return inert(text)
    return inert(
        "\n".join(
            line if line.isprintable() else "".join(c if c.isprintable() else _spelt_out(c) for c in line)
            for line in text.split("\n")
        )
    )


def _spelt_out(glyph: str) -> str:
    return glyph.encode("unicode_escape").decode()


def film_strip(frames: Sequence[Frame], width: int = 80, first: int = FIRST, last: int = LAST) -> str:
    """Return the frames side by side, in rows of at most ``width`` characters.

    Each has a heading with its step, the action that led to it and the reward (unless 0). Of a long trial, only the
    ``first`` and ``last`` frames are shown, with the number of frames left out.
    """
    cut = len(frames) - first - last
    if cut <= 0:
        return _rows(frames, 0, width)
    begin, end = _rows(frames[:first], 0, width), _rows(frames[first + cut :], first + cut, width)
    return "\n\n".join((begin, f"... {cut} more ...", end))


def _picture(step: int, frame: Frame) -> list[str]:
    """Return the lines of one frame, all of the same length."""
    head = f"{step} {_WORDS.get(frame.action, frame.action)}"
    if frame.reward:
        head += f" {frame.reward:+g}"
    lines = printable(f"{head}\n{frame.observation}").split("\n")
    width = max(map(len, lines))
    return [line.ljust(width) for line in lines]


def _rows(frames: Sequence[Frame], step: int, width: int) -> str:
    """Return rows of frames, the first of which is number ``step``."""
    rows: list[list[Sequence[str]]] = []
    room = 0
    for number, frame in enumerate(frames, step):
        picture = _picture(number, frame)
        needed = len(picture[0]) + GAP
        if not rows or room < needed:
            rows.append([])
            room = width + GAP
        rows[-1].append(picture)
        room -= needed
    return "\n\n".join(map(_beside, rows))


def _beside(pictures: Sequence[Sequence[str]]) -> str:
    height = max(map(len, pictures))
    padded = [[*picture, *[" " * len(picture[0])] * (height - len(picture))] for picture in pictures]
    return "\n".join((" " * GAP).join(line).rstrip() for line in zip(*padded, strict=True))
