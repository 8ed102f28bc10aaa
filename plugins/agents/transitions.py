"""A graph of the transitions that an agent has seen, with shortest paths to its target steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_FAR = 1 << 60


class Transitions:
    """States (numbered from 0) and what each action last led to, at what cost.

    Distances to the aim are kept up to date by a search that runs backwards from it (breadth-first where all
    costs are 1): a new transition costs only the part of the graph that it brings nearer, and asking for the way
    is one look-up.
    """

    def __init__(self, actions: int) -> None:
        self._next: list[list[int | None]] = []
        self._before: list[dict[tuple[int, int], int]] = []
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

    def add(self, state: int, action: int, following: int, cost: int = 1) -> None:
        """Note that ``action`` led from ``state`` to ``following``; later experience replaces older."""
        known = self._next[state][action]
        if known == following and self._before[following][state, action] == cost:
            return
        self._next[state][action] = following
        if known is not None:
            del self._before[known][state, action]
        self._before[following][state, action] = cost
        if known is not None and self._choice[state] == action:
            # The old path is gone; states that were near because of it may be far now.
            self._search()
        elif self._distance[following] + cost < self._distance[state]:
            self._set(state, action, self._distance[following] + cost)
            self._spread([state])

    def after(self, state: int) -> Sequence[int | None]:
        """Return what each action last led to from ``state``; None for an action that was never tried there."""
        return self._next[state]

    def cost(self, state: int, action: int) -> int:
        """Return the cost of an action that was tried in ``state``."""
        following = self._next[state][action]
        return 0 if following is None else self._before[following][state, action]

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
            near = self._distance[nearer]
            for (state, action), cost in self._before[nearer].items():
                if near + cost < self._distance[state]:
                    self._set(state, action, near + cost)
                    queue.append(state)
