"""A graph of the transitions that an agent has seen, with shortest ways to the steps that it aims at."""

from __future__ import annotations

from collections.abc import Iterable

_FAR = 1 << 60


class Transitions:
    """States (numbered from 0) and what each action last led to.

    Distances to the aim are kept up to date by a breadth-first search that runs backwards from it: a new
    transition costs only the part of the graph that it brings nearer, and asking for the way is one look-up.
    """

    def __init__(self, actions: int) -> None:
        self._next: list[list[int | None]] = []
        self._before: list[dict[tuple[int, int], None]] = []
        self._distance: list[int] = []
        self._choice: list[int | None] = []
        self._aim: list[tuple[int, int]] = []
        self._actions = actions

    def new_state(self) -> int:
        """Add a state without transitions; return its number."""
        self._next.append([None] * self._actions)
        self._before.append({})
        self._distance.append(_FAR)
        self._choice.append(None)
        return len(self._next) - 1

    def add(self, state: int, action: int, following: int) -> None:
        """Note that ``action`` led from ``state`` to ``following``; later experience replaces older."""
        known = self._next[state][action]
        if known == following:
            return
        self._next[state][action] = following
        self._before[following][state, action] = None
        if known is not None:
            del self._before[known][state, action]
        if known is not None and self._choice[state] == action:
            # The old way is gone; whatever was near because of it may be far now.
            self._search()
        elif self._distance[following] + 1 < self._distance[state]:
            self._set(state, action, self._distance[following] + 1)
            self._spread([state])

    def aim(self, steps: Iterable[tuple[int, int]]) -> None:
        """From now on ways lead to these steps, given as (state, action)."""
        self._aim = list(steps)
        self._search()

    def step_towards_aim(self, state: int) -> int | None:
        """Return the first action of a shortest known way to the aim, or None if no way is known."""
        return self._choice[state]

    def _search(self) -> None:
        self._distance = [_FAR] * len(self._next)
        self._choice = [None] * len(self._next)
        for state, action in self._aim:
            if self._distance[state] > 1:
                self._set(state, action, 1)
        self._spread([state for state, _ in self._aim])

    def _set(self, state: int, action: int, distance: int) -> None:
        self._distance[state] = distance
        self._choice[state] = action

    def _spread(self, queue: list[int]) -> None:
        for nearer in queue:  # grows while it is read
            distance = self._distance[nearer] + 1
            for state, action in self._before[nearer]:
                if distance < self._distance[state]:
                    self._set(state, action, distance)
                    queue.append(state)
