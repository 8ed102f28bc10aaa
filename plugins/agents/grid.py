"""Reads the agent's pose from a top-down map, and computes the result of each step.

A cell is an index into the map's text, including line ends, so a move adds an offset. A
pose is ``cell * 8 + heading``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import NamedTuple

from cheesebench import FORWARD, ROTATE_LEFT, ROTATE_RIGHT

ARROWS = "↑↗→↘↓↙←↖"
WALLS = "# \n"
_ARROW = re.compile(f"[{ARROWS}]")
_NOT_YET = -1


class Sight(NamedTuple):
    """A parsed observation: the map's text, the offset from row to row, the pose, and
    the text below the map.
    """

    map: str
    stride: int
    cell: int
    heading: int
    rest: str


def read(observation: str) -> Sight | None:
    """Return the parsed observation, or None if it is not a top-down map with an arrow
    in it.

    The map is the first line and the lines directly below it that have the same length.
    """
    arrow = _ARROW.search(observation)
    if arrow is None:
        return None
    stride = observation.find("\n") + 1 or len(observation) + 1
    end = stride - 1
    while end < len(observation):
        next_end = observation.find("\n", end + 1)
        if (len(observation) if next_end < 0 else next_end) != end + stride:
            break
        end += stride
    if arrow.start() >= end:
        return None
    heading = ARROWS.index(arrow.group())
    return Sight(observation[:end], stride, arrow.start(), heading, observation[end:])


def usual_ground(text: str) -> str:
    """Return the most common character except walls, arrows and goals, or ``.`` if
    there is no other.
    """
    candidates = sorted(set(text).difference(WALLS, ARROWS, "G"))
    return max(candidates, key=text.count, default=".")


class Grid:
    """The poses on a map, and the steps between them. Every character except ``WALLS``
    is walkable.
    """

    def __init__(self, text: str, stride: int) -> None:
        margin = "\n" * (stride + 1)
        # Negative indices also end up in the margin.
        self._text = text + margin + margin
        self._offsets = (
            -stride,
            1 - stride,
            1,
            stride + 1,
            stride,
            stride - 1,
            -1,
            -stride - 1,
        )
        self._ahead = [_NOT_YET] * (len(text) * 8)

    def free(self, cell: int) -> bool:
        return self._text[cell] not in WALLS

    def in_front(self, pose: int) -> int:
        """Return the cell in front of a pose (it may lie outside the map)."""
        return (pose >> 3) + self._offsets[pose & 7]

    def step(self, pose: int, action: int, turn: int) -> int:
        """Return the pose after the action. ``turn`` is how far ROTATE_LEFT and
        ROTATE_RIGHT turn, in eighths of a circle.
        """
        if action == FORWARD:
            if self._ahead[pose] == _NOT_YET:
                self._ahead[pose] = self._forward(pose)
            return self._ahead[pose]
        if action == ROTATE_RIGHT:
            return pose & ~7 | (pose + turn) & 7
        if action == ROTATE_LEFT:
            return pose & ~7 | (pose - turn) & 7
        return pose

    def _forward(self, pose: int) -> int:
        cell, heading = pose >> 3, pose & 7
        target = self.in_front(pose)
        if not self.free(target):
            return pose
        if heading & 1:
            beside = (self._offsets[heading - 1], self._offsets[(heading + 1) & 7])
            if not any(self.free(cell + offset) for offset in beside):
                return pose
        return target << 3 | heading

    def plan(
        self,
        start: int,
        wanted: Callable[[int], bool],
        turn: int,
        barred: Container[int],
        *,
        left_first: bool,
    ) -> tuple[list[int] | None, list[int]]:
        """Search breadth-first from the pose ``start`` for the nearest other cell that
        is ``wanted``.

        ``barred`` holds poses from which FORWARD is known to fail. Return the actions
        that lead to that cell, the last one first (None if there is no such cell), and
        the cells that the search visited, the nearest first.
        """
        actions = (
            (FORWARD, ROTATE_LEFT, ROTATE_RIGHT)
            if left_first
            else (FORWARD, ROTATE_RIGHT, ROTATE_LEFT)
        )
        came: dict[int, tuple[int, int]] = {start: (start, FORWARD)}
        seen = {start >> 3: None}
        queue = [start]
        for pose in queue:  # The loop appends to ``queue``.
            for action in actions:
                if action == FORWARD and pose in barred:
                    continue
                following = self.step(pose, action, turn)
                if following in came:
                    continue
                came[following] = (pose, action)
                queue.append(following)
                cell = following >> 3
                if cell not in seen:
                    seen[cell] = None
                    if wanted(cell):
                        return _way_back(came, start, following), list(seen)
        return None, list(seen)


def _way_back(came: dict[int, tuple[int, int]], start: int, end: int) -> list[int]:
    actions = []
    while end != start:
        end, action = came[end]
        actions.append(action)
    return actions
