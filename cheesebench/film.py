"""A trial as a film: action, picture and reward, frame beside frame, that a biologist can check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Frames that are kept at the beginning and at the end of a long trial.
FIRST, LAST = 3, 5
#: Blanks between two frames that stand side by side.
GAP = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """One moment: what was done (nothing, for the first observation), what it brought, what was seen then."""

    step: int
    action: str
    reward: float
    observation: str


def printable(text: str) -> str:
    """Return ``text`` with its line breaks, and everything else that a terminal might obey made visible."""
    return "\n".join(
        "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
        for line in text.split("\n")
    )


def film(frames: Sequence[Frame], width: int = 80, first: int = FIRST, last: int = LAST) -> str:
    """Return the frames side by side, in as many rows as lines of ``width`` characters need.

    Of a long trial only the ``first`` and ``last`` frames are shown, and how many are left out between them.
    """
    cut = len(frames) - first - last
    if cut <= 0:
        return _strips(frames, width)
    left_out = f"... {cut} frames ..."
    return "\n\n".join((_strips(frames[:first], width), left_out, _strips(frames[-last:], width)))


def _strips(frames: Sequence[Frame], width: int) -> str:
    rows: list[str] = []
    strip: list[list[str]] = []
    for picture in map(_picture, frames):
        if strip and sum(len(other[0]) + GAP for other in strip) + len(picture[0]) > width:
            rows.append(_beside(strip))
            strip = []
        strip.append(picture)
    rows.append(_beside(strip))
    return "\n\n".join(rows)


def _picture(frame: Frame) -> list[str]:
    """Return the lines of one frame, all of the same length."""
    head = f"{frame.step} {frame.action}" if frame.action else f"{frame.step} start"
    if frame.reward:
        head += f" {frame.reward:+g}"
    lines = [printable(head), *printable(frame.observation).split("\n")]
    width = max(map(len, lines))
    return [line.ljust(width) for line in lines]


def _beside(strip: Sequence[Sequence[str]]) -> str:
    height = max((len(picture) for picture in strip), default=0)
    lines = []
    for number in range(height):
        cells = [picture[number] if number < len(picture) else " " * len(picture[0]) for picture in strip]
        lines.append((" " * GAP).join(cells).rstrip())
    return "\n".join(lines)
