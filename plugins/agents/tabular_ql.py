"""Tabular-QL: Q-learning over observations, and paths to reward along the transitions
seen so far.

It follows the baseline of that name in the CheeseBench paper.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence

from cheesebench import ACTIONS, AgentContext

_FAR = 1 << 60


class Transitions:
    """States (numbered from 0), with the last successor and the cost of each action.

    Distances to the aim come from a search that runs backwards from the aim
    (breadth-first if all costs are 1). A new transition only updates the states that it
    brings nearer, unless it replaces a transition on a cheapest path. The next step of
    a path is one look-up.
    """

    def __init__(self, actions: int) -> None:
        self._next: list[list[int | None]] = []
        self._before: list[dict[tuple[int, int], int]] = []
        self._distance: list[int] = []
        self._choice: list[int | None] = []
        self._aim: list[tuple[int, int]] = []
        self._actions = actions

    def new_state(self) -> int:
        self._next.append([None] * self._actions)
        self._before.append({})
        self._distance.append(_FAR)
        self._choice.append(None)
        return len(self._next) - 1

    def add(self, state: int, action: int, following: int, cost: int = 1) -> None:
        """Record that ``action`` led from ``state`` to ``following``. Later experience
        replaces earlier experience.
        """
        known = self._next[state][action]
        if known == following and self._before[following][state, action] == cost:
            return
        self._next[state][action] = following
        if known is not None:
            del self._before[known][state, action]
        self._before[following][state, action] = cost
        if known is not None and self._choice[state] == action:
            # The old transition is gone, so distances that depended on it may grow.
            self._search()
        elif self._distance[following] + cost < self._distance[state]:
            self._set(state, action, self._distance[following] + cost)
            self._spread([state])

    def after(self, state: int) -> Sequence[int | None]:
        """Return the last successor of ``state`` for each action, or None for an
        untried action.
        """
        return self._next[state]

    def cost(self, state: int, action: int) -> int:
        following = self._next[state][action]
        return 0 if following is None else self._before[following][state, action]

    def aim(self, steps: Iterable[tuple[int, int]]) -> None:
        """Make these steps, given as (state, action), the aim of paths."""
        self._aim = list(steps)
        self._search()

    def step_towards_aim(self, state: int) -> int | None:
        """Return the first action of a cheapest known path to the aim, or None if no
        path is known.
        """
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
        for nearer in queue:  # The loop appends to ``queue``.
            near = self._distance[nearer]
            for (state, action), cost in self._before[nearer].items():
                if near + cost < self._distance[state]:
                    self._set(state, action, near + cost)
                    queue.append(state)


#: Maximum number of characters of an observation that is stored as text. A longer one
#: is stored as a digest, to limit memory use.
LONGEST_KEY = 8192


class QTable:
    """The action values of states, which are numbered from 0 in order of appearance,
    and a map of the transitions between them.

    The key of a state is the text of its observation (for a long one, a SHA-256
    digest), so nothing depends on the process's hash seed.
    """

    def __init__(self, transitions: Transitions, discount: float) -> None:
        self._numbers: dict[str, int] = {}
        self._values: list[list[float]] = []
        self._transitions = transitions
        self._discount = discount

    def __len__(self) -> int:
        return len(self._values)

    def state(self, observation: str) -> int:
        """Return the number of an observation's state. A new observation gets a new
        state, also on the map.
        """
        if len(observation) > LONGEST_KEY:
            observation = hashlib.sha256(
                observation.encode("utf-8", "surrogatepass")
            ).hexdigest()
        number = self._numbers.get(observation)
        if number is None:
            number = self._numbers[observation] = self._transitions.new_state()
            self._values.append([0.0] * len(ACTIONS))
        return number

    def learn(
        self,
        state: int,
        action: int,
        reward: float,
        following: int,
        ended: bool,
        rate: float,
    ) -> None:
        """Move a value towards the reward plus the discounted best value of the next
        state (0 if the trial ended).
        """
        future = 0.0 if ended else self._discount * max(self._values[following])
        values = self._values[state]
        values[action] += rate * (reward + future - values[action])

    def greedy(self, state: int, chance: random.Random) -> int:
        """Return the action with the highest value. ``chance`` breaks ties."""
        values = self._values[state]
        best = max(values)
        return chance.choice(
            [action for action, value in enumerate(values) if value == best]
        )


_COUNT = len(ACTIONS)

#: Discount per step.
GAMMA = 0.9
#: Learning rate in the first trial. In later trials it is divided by the square root of
#: the trial's number.
ALPHA = 0.5
#: The share of random actions is ``EPSILON`` in the first trial, is multiplied by
#: ``EPSILON_DECAY`` from trial to trial, and is at least ``EPSILON_FLOOR``.
EPSILON, EPSILON_DECAY, EPSILON_FLOOR = 0.3, 0.98, 0.05


class TabularQL:
    """An agent that explores with probability epsilon. Otherwise it follows the
    shortest known path to reward. If it knows none, it chooses greedily by Q.

    A step that was rewarded before but not this time is no aim until the next trial, or
    until it is rewarded again. The bait may have been eaten, and may be replaced for
    the next trial.
    """

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._transitions = Transitions(_COUNT)
        self._table = QTable(self._transitions, GAMMA)
        #: ``_rewarded``: the steps (state, action) that were ever rewarded.
        #: ``_disappointing``: rewarded steps that brought no reward in this trial.
        self._rewarded: dict[tuple[int, int], None] = {}
        self._disappointing: set[tuple[int, int]] = set()
        self._trial = 0
        self._here = 0

    def begin_trial(self, observation: str) -> None:
        """Start a trial: the rates decay, and all places where reward was found count
        again.
        """
        self._trial += 1
        self._alpha = ALPHA / self._trial**0.5
        self._epsilon = max(EPSILON_FLOOR, EPSILON * EPSILON_DECAY ** (self._trial - 1))
        self._disappointing.clear()
        self._transitions.aim(self._rewarded)
        self._here = self._table.state(observation)

    def act(self, observation: str) -> tuple[int]:
        if self._random.random() < self._epsilon:
            return (self._random.randrange(_COUNT),)
        step = self._transitions.step_towards_aim(self._here)
        if step is not None:
            return (step,)
        return (self._table.greedy(self._here, self._random),)

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Learn from one step, also from one in which the subject was frozen."""
        here, there = self._here, self._table.state(observation)
        self._table.learn(here, action, reward, there, ended, self._alpha)
        self._transitions.add(here, action, there)
        self._remember_reward((here, action), reward)
        self._here = there

    def _remember_reward(self, step: tuple[int, int], reward: float) -> None:
        if reward > 0:
            if step in self._rewarded and step not in self._disappointing:
                return
            self._rewarded[step] = None
            self._disappointing.discard(step)
        elif step in self._rewarded and step not in self._disappointing:
            self._disappointing.add(step)
        else:
            return
        self._transitions.aim(
            [known for known in self._rewarded if known not in self._disappointing]
        )
