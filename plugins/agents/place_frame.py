"""Pictures brought into one orientation: of the quarter turns, the one that agrees best with the first picture seen."""

from __future__ import annotations

from typing import NamedTuple

from cheesebench.plugins.agents.grid import ARROWS, read

#: Marks the subject's cell, whose content cannot be seen.
UNKNOWN = "\0"
_HIDE_SUBJECT = str.maketrans(dict.fromkeys(ARROWS, UNKNOWN))


class Situation(NamedTuple):
    """What an observation shows, turned into the remembered orientation.

    ``cell`` is an index into ``picture`` (line ends included, ``stride`` from row to row), in which the subject is
    ``UNKNOWN``; ``heading`` is in eighths clockwise from up; ``text`` is what is written beneath the picture.
    """

    picture: str
    stride: int
    cell: int
    heading: int
    text: str


class Frame:
    """The orientation in which places are remembered. It is chosen anew for each trial and kept during it."""

    def __init__(self) -> None:
        self._remembered: list[str] = []
        self._quarters = 0

    def begin_trial(self, observation: str) -> None:
        """Choose by how many quarters the pictures of this trial are turned; of equally good ones, the least."""
        sight = read(observation)
        if sight is None:
            return
        rows = _rows(sight.map)
        self._quarters = 0
        if not _same_shape(rows, self._remembered):
            self._remembered = rows
            return
        best = -1
        for quarters in range(4):
            if _same_shape(rows, self._remembered):
                agreement = _agreement(rows, self._remembered)
                if agreement > best:
                    best, self._quarters = agreement, quarters
            rows = _turn(rows)

    def look(self, observation: str) -> Situation | None:
        """Return the situation, or None if the observation is not a map with the subject in it."""
        sight = read(observation)
        if sight is None:
            return None
        rows = _rows(sight.map)
        y, x = divmod(sight.cell, sight.stride)
        for _ in range(self._quarters):
            x, y = len(rows) - 1 - y, x
            rows = _turn(rows)
        stride = len(rows[0]) + 1
        heading = (sight.heading + 2 * self._quarters) & 7
        return Situation("\n".join(rows) + "\n", stride, y * stride + x, heading, sight.rest.strip())


def _rows(text: str) -> list[str]:
    return text.removesuffix("\n").translate(_HIDE_SUBJECT).split("\n")


def _turn(rows: list[str]) -> list[str]:
    """Turn clockwise by a quarter."""
    return ["".join(column) for column in zip(*reversed(rows), strict=True)]


def _same_shape(rows: list[str], others: list[str]) -> bool:
    return list(map(len, rows)) == list(map(len, others))


def _agreement(rows: list[str], others: list[str]) -> int:
    pairs = zip("".join(rows), "".join(others), strict=True)
    return sum(one == other != UNKNOWN for one, other in pairs)
