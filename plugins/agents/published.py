"""The two baselines of the CheeseBench paper, by the rules of its published package
(cheesebench 0.2.0).

In the edition ``paper`` they are ``tabular-ql`` and ``bfs-oracle``. Their rules belong
to a published experiment, and must not change: ``tests/peer`` compares their steps with
the package's own.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from cheesebench import (
    ACTIONS,
    FORWARD,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    STAY,
    AgentContext,
)

#: ``GAMMA``: discount per step. ``ALPHA``: learning rate in the first trial.
GAMMA, ALPHA = 0.9, 0.5
#: The share of random steps is ``EPSILON`` before the first trial. It is multiplied by
#: ``EPSILON_DECAY`` when a trial begins (also the first), and is at least
#: ``EPSILON_FLOOR``.
EPSILON, EPSILON_DECAY, EPSILON_FLOOR = 0.3, 0.98, 0.05

#: A picture's digest, and the heading that the agent believes it has.
State = tuple[bytes, int]

#: Glyphs that mean a goal to Tabular-QL, anywhere on the screen.
GOALS = frozenset("GP*+")
#: Number of headings that Tabular-QL distinguishes.
HEADINGS = 8
#: Actions from which a random step is chosen: all but STAY.
EXPLORING = (FORWARD, ROTATE_LEFT, ROTATE_RIGHT)
#: Number of consecutive equal states after which the agent turns.
STUCK = 5
#: Maximum length of a path on the agent's map, in steps.
DEEPEST = 50


class PublishedTabularQL:
    """An agent that walks forward while a goal glyph is on screen. Otherwise it follows
    its map to a picture with a goal glyph. If there is no path, it turns if it is
    stuck, and else chooses epsilon-greedily by Q.

    A state is the picture with the heading by dead reckoning from the start of the
    trial. The reward of a trial's last step is never learnt, because the package resets
    the agent first.
    """

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._values: dict[State, np.ndarray] = {}
        self._map: dict[tuple[State, int], State] = {}
        self._goals: set[State] = set()
        self._trial, self._epsilon = 0, EPSILON

    def begin_trial(self, observation: str) -> None:
        """Forget the position, keep what was learnt, and explore less."""
        self._trial += 1
        self._alpha = ALPHA / np.sqrt(self._trial)
        self._epsilon = max(EPSILON_FLOOR, self._epsilon * EPSILON_DECAY)
        self._recent: deque[State] = deque(maxlen=STUCK)
        self._enter(observation, 0)

    def act(self, observation: str) -> tuple[int]:
        return (self._choose(),)

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Learn from one step, unless it was the last of a trial."""
        if ended:
            return
        before = self._here
        # Turning left decreases the heading, as in the package. Only the names of the
        # headings depend on this.
        turned = {ROTATE_LEFT: -1, ROTATE_RIGHT: 1}.get(action, 0)
        self._enter(observation, (before[1] + turned) % HEADINGS)
        best = np.max(self._of(self._here))
        values = self._of(before)
        # The values have single precision, like the package's, because ties depend on
        # this.
        values[action] += self._alpha * (reward + GAMMA * best - values[action])
        self._map[before, action] = self._here

    def _enter(self, observation: str, heading: int) -> None:
        picture = hashlib.blake2b(
            observation.encode("utf-8", "surrogatepass"), digest_size=16
        )
        self._here = (picture.digest(), heading)
        self._sees_goal = not GOALS.isdisjoint(observation)
        if self._sees_goal:
            self._goals.add(self._here)
        self._recent.append(self._here)

    def _of(self, state: State) -> np.ndarray:
        return self._values.setdefault(state, np.zeros(len(ACTIONS), np.float32))

    def _choose(self) -> int:
        if self._sees_goal:
            return FORWARD
        planned = self._towards_goal()
        if planned is not None:
            return planned
        if self._recent.count(self._here) == STUCK:
            return self._random.choice([ROTATE_LEFT, ROTATE_RIGHT])
        if self._random.random() < self._epsilon:
            return self._random.choice(EXPLORING)
        return int(np.argmax(self._of(self._here)))

    def _towards_goal(self) -> int | None:
        """Return the first action of a shortest known path to a goal picture, or None
        if no path of at most ``DEEPEST`` steps is known.
        """
        if not self._goals:
            return None
        reached, queue = {self._here}, deque([(self._here, 0, STAY)])
        while queue:
            state, length, first = queue.popleft()
            if state in self._goals:
                return first
            if length < DEEPEST:
                for action, following in self._exits(state):
                    if following not in reached:
                        reached.add(following)
                        queue.append(
                            (following, length + 1, first if length else action)
                        )
        return None

    def _exits(self, state: State) -> Iterator[tuple[int, State]]:
        for action in range(len(ACTIONS)):
            following = self._map.get((state, action))
            if following is not None:
                yield action, following


#: The change of row and column in a step up, right, down and left.
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))
#: Order in which the search tries the four directions (indices into ``STEPS``).
TRIED = (0, 2, 3, 1)
#: The direction that the oracle reads from each arrow. It knows no diagonals, so it
#: takes them for one of the four directions.
TAKEN_FOR = dict(zip("↑→↗↓↘←↖↙^>v<", (0, 1, 1, 2, 2, 3, 3, 3, 0, 1, 2, 3), strict=True))
#: ``AIMS``: the glyphs that mean a goal to the oracle. ``WALL``: the only glyph that it
#: cannot pass.
AIMS, WALL = frozenset("GP*+E"), "#"
#: Action for each number of right turns still needed.
TURNS = (FORWARD, ROTATE_RIGHT, ROTATE_RIGHT, ROTATE_LEFT)


class PublishedBfsOracle:
    """An agent that takes the first step of a shortest path to a goal glyph, in four
    directions. If it sees no goal, it follows a fixed pattern.

    It assumes turns of 90 degrees. If turns are 45 degrees, it therefore walks along
    diagonals, which it takes for rows and columns.
    """

    def __init__(self, context: AgentContext) -> None:
        #: Counts the steps at which no arrow or no reachable goal was visible, over the
        #: whole life. On a step without a visible arrow, it is reduced modulo 8.
        self._searched = 0

    def begin_trial(self, observation: str) -> None:
        """Do nothing: this agent is never reset."""

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Do nothing: this agent learns nothing."""

    def act(self, observation: str) -> tuple[int]:
        facing, direction = _read(observation)
        if facing is None:
            return (self._lost(),)
        if direction is None:
            return (self._look_for_goal(),)
        return (TURNS[(direction - facing) % 4],)

    def _lost(self) -> int:
        self._searched = (self._searched + 1) % 8
        return FORWARD if self._searched < 4 else ROTATE_RIGHT

    def _look_for_goal(self) -> int:
        self._searched += 1
        if self._searched % 3 == 0:
            return ROTATE_RIGHT
        return ROTATE_LEFT if self._searched % 5 == 0 else FORWARD


#: Results are cached, because the same pictures come again, and a result depends only
#: on its picture.
@lru_cache(maxsize=4096)
def _read(observation: str) -> tuple[int | None, int | None]:
    """Return the direction that the oracle believes it faces, and the direction of the
    first step to a goal. Both are None if no arrow is visible, and the second one is
    None if no reachable goal is.
    """
    cells = {
        (row, column): glyph
        for row, line in enumerate(observation.strip().split("\n"))
        for column, glyph in enumerate(line)
    }
    own = [(place, glyph) for place, glyph in cells.items() if glyph in TAKEN_FOR]
    if not own:
        return None, None
    place, glyph = own[-1]
    return TAKEN_FOR[glyph], _first_step(cells, place)


def _first_step(
    cells: dict[tuple[int, int], str], start: tuple[int, int]
) -> int | None:
    """Return the direction of the first step to the nearest goal, or None if no path
    leads to a goal.
    """
    queue: deque[tuple[tuple[int, int], int | None]] = deque([(start, None)])
    reached = {start}
    while queue:
        place, first = queue.popleft()
        if cells[place] in AIMS:
            return first
        for direction in TRIED:
            down, right = STEPS[direction]
            following = (place[0] + down, place[1] + right)
            if following not in reached and cells.get(following, WALL) != WALL:
                reached.add(following)
                queue.append((following, direction if first is None else first))
    return None
