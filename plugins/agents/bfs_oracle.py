"""An agent that reads the top-down map and walks to a visible ``G``. Its score measures
how much a map reveals.

It sees what a model sees, and has no memory from trial to trial.
"""

from __future__ import annotations

import random

from cheesebench import ACTIONS, FORWARD, ROTATE_LEFT, ROTATE_RIGHT, AgentContext
from cheesebench.plugins.agents import grid

GOAL = "G"


class BfsOracle:
    """An agent that walks to the nearest ``G`` that it can reach and has not visited
    since it was last placed, by breadth-first search over cells and headings. If there
    is none, it explores.

    Exploring means going to the nearest of the least visited cells. Every character
    except ``#`` and blanks counts as walkable until a FORWARD straight into it fails.
    If the observation is not a map, the agent acts at random.
    """

    #: Maximum number of cached graphs. A graph follows from the text that it was built
    #: from, so the cache is no memory of trials.
    CACHED_GRIDS = 32

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._grids: dict[tuple[str, int], grid.Grid] = {}
        self._forget_trial()

    def _forget_trial(self) -> None:
        self._pose: int | None = None
        self._picture = self._rest = ""
        self._stride = 0
        #: Number of eighths of a circle per rotation. It is 1 until a rotation shows
        #: that the arena has only four headings.
        self._turn = 1
        self._visits: dict[int, int] = {}
        self._level = 0
        self._reached: set[int] = set()
        #: ``_solid``: the cells that proved solid, each with the character that it had.
        #: ``_barred``: the poses from which FORWARD failed.
        self._solid: dict[int, str] = {}
        self._barred: set[int] = set()
        #: Failures of FORWARD since an action last had an effect. They are discarded if
        #: the subject may have been frozen at the time.
        self._doubtful: list[tuple[int, int | None]] = []
        self._plan: list[int] = []
        self._goals: list[int] = []
        self._grid = grid.Grid("", 1)

    def begin_trial(self, observation: str) -> None:
        """Forget the last trial, and read the first observation."""
        self._forget_trial()
        self._look(observation)

    def act(self, observation: str) -> tuple[int]:
        if self._pose is None:
            return (self._random.randrange(len(ACTIONS)),)
        if not self._plan:
            self._plan = self._next_plan(self._pose)
        return (self._plan.pop(),)

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Read the observation, and learn from the result of the action."""
        before, picture, rest = self._pose, self._picture, self._rest
        expected = (
            None if before is None else self._grid.step(before, action, self._turn)
        )
        self._look(observation)
        if self._pose != expected:
            self._plan.clear()
        if (
            before is not None
            and self._pose is not None
            and self._carried(before >> 3, self._pose >> 3)
        ):
            # The subject was moved, so forget which cells were visited: this agent
            # measures what pictures show, and must not know where it was placed.
            self._visits, self._level = {self._pose >> 3: 1}, 0
        if before is None or self._pose is None:
            return
        if (picture, rest) == (self._picture, self._rest):
            self._learn(action, before, self._pose)
        else:
            # What changed the observation may also have ended a freeze, which would
            # explain the earlier failures.
            self._withdraw_doubtful()

    def _carried(self, before: int, after: int) -> bool:
        """Return whether the subject was moved: no single step leads from one of the
        cells to the other.
        """
        rows, columns = zip(
            divmod(before, self._stride), divmod(after, self._stride), strict=True
        )
        return abs(rows[0] - rows[1]) > 1 or abs(columns[0] - columns[1]) > 1

    def _look(self, observation: str) -> None:
        sight = grid.read(observation)
        if sight is None:
            self._pose = None
            return
        place = sight.cell
        same_map = len(sight.map) == len(self._picture) and sight.stride == self._stride
        beneath = self._picture[place] if same_map else grid.usual_ground(sight.map)
        picture = sight.map[:place] + beneath + sight.map[place + 1 :]
        if picture != self._picture or not same_map:
            self._new_picture(sight, picture)
        self._rest = sight.rest
        if self._pose is None or self._pose >> 3 != place:
            self._visits[place] = self._visits.get(place, 0) + 1
        self._pose = place << 3 | sight.heading
        if place in self._goals:
            self._goals.remove(place)
            self._reached.add(place)

    def _new_picture(self, sight: grid.Sight, picture: str) -> None:
        if (len(picture), sight.stride) != (len(self._picture), self._stride):
            self._visits, self._solid, self._reached = {}, {}, set()
        self._solid = {
            cell: glyph for cell, glyph in self._solid.items() if picture[cell] == glyph
        }
        self._reached = {cell for cell in self._reached if picture[cell] == GOAL}
        self._picture, self._stride = picture, sight.stride
        self._barred.clear()
        self._replan_from_scratch()

    def _replan_from_scratch(self) -> None:
        """Build the graph and the goals anew, and drop the plan."""
        text = self._picture
        for cell in self._solid:
            text = text[:cell] + grid.WALLS[0] + text[cell + 1 :]
        key = (text, self._stride)
        if key not in self._grids:
            if len(self._grids) >= self.CACHED_GRIDS:
                self._grids.clear()
            self._grids[key] = grid.Grid(text, self._stride)
        self._grid = self._grids[key]
        self._goals = [
            cell
            for cell, glyph in enumerate(text)
            if glyph == GOAL and cell not in self._reached
        ]
        self._level = 0
        self._plan.clear()

    def _learn(self, action: int, before: int, after: int) -> None:
        if action == FORWARD and after == before:
            self._bar(before)
        elif action in (ROTATE_LEFT, ROTATE_RIGHT):
            turned = (after - before if action == ROTATE_RIGHT else before - after) & 7
            if after == before:
                self._withdraw_doubtful()
            elif turned in (1, 2) and after >> 3 == before >> 3:
                self._turn = turned
                self._doubtful.clear()
        elif after != before:
            self._doubtful.clear()

    def _bar(self, pose: int) -> None:
        """Record that FORWARD failed at this pose."""
        target = self._grid.in_front(pose)
        self._barred.add(pose)
        # A diagonal step can fail because of the corner that it cuts, so its failure
        # does not show that the target is solid.
        solid = target if not pose & 1 and self._grid.free(target) else None
        self._doubtful.append((pose, solid))
        if solid is not None:
            self._solid[solid] = self._picture[solid]
        self._replan_from_scratch()

    def _withdraw_doubtful(self) -> None:
        """Discard the doubtful failures: the subject may have been frozen."""
        if not self._doubtful:
            return
        for pose, solid in self._doubtful:
            self._barred.discard(pose)
            if solid is not None:
                self._solid.pop(solid, None)
        self._doubtful.clear()
        self._replan_from_scratch()

    def _next_plan(self, pose: int) -> list[int]:
        """Return a non-empty list of actions in reverse order."""
        left_first = self._random.random() < 0.5
        if self._goals:
            plan, _ = self._grid.plan(
                pose,
                self._goals.__contains__,
                self._turn,
                self._barred,
                left_first=left_first,
            )
            if plan:
                return plan
            self._goals = []  # No goal is reachable in this graph.
        plan, seen = self._grid.plan(
            pose, self._seldom_visited, self._turn, self._barred, left_first=left_first
        )
        if plan is None and len(seen) > 1:
            self._level = min(self._visits.get(cell, 0) for cell in seen[1:])
            plan, _ = self._grid.plan(
                pose,
                self._seldom_visited,
                self._turn,
                self._barred,
                left_first=left_first,
            )
        return plan or [self._random.randrange(len(ACTIONS))]

    def _seldom_visited(self, cell: int) -> bool:
        return self._visits.get(cell, 0) <= self._level
