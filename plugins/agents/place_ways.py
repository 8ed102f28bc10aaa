"""Shortest paths from one pose to all cells of a map."""

from __future__ import annotations

from collections.abc import Callable, Container

from cheesebench import FORWARD, ROTATE_LEFT, ROTATE_RIGHT
from cheesebench.plugins.agents.grid import Grid

_ACTIONS = (FORWARD, ROTATE_RIGHT, ROTATE_LEFT)


class Ways:
    """Breadth-first from ``start``, over poses (``cell * 8 + heading``).

    From a cell (other than the first) that may not be ``crossed``, no path continues. ``barred`` holds poses from which
    FORWARD is known to fail; ``turn`` is how many eighths a rotation turns.
    """

    def __init__(
        self, grid: Grid, start: int, turn: int, barred: Container[int], crossed: Callable[[int], bool]
    ) -> None:
        self._came: dict[int, tuple[int, int]] = {}
        self._pose = {start >> 3: start}
        #: Number of steps to each cell that can be reached.
        self.distance = {start >> 3: 0}
        depth = {start: 0}
        queue = [start]
        for pose in queue:  # grows while it is read
            cell = pose >> 3
            if cell != start >> 3 and not crossed(cell):
                continue
            for action in _ACTIONS:
                following = grid.step(pose, action, turn)
                if following in depth or (action == FORWARD and pose in barred):
                    continue
                depth[following] = depth[pose] + 1
                self._came[following] = pose, action
                queue.append(following)
                if following >> 3 not in self._pose:
                    self._pose[following >> 3] = following
                    self.distance[following >> 3] = depth[following]

    def way_to(self, cell: int) -> list[int]:
        """Return the actions that lead to the cell, last one first."""
        actions, pose = [], self._pose[cell]
        while pose in self._came:
            pose, action = self._came[pose]
            actions.append(action)
        return actions
