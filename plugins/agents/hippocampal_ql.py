"""Hippocampal-QL: Q-learning with a learnt map, replay, memories of reward, and
curiosity.

Like Tabular-QL, the agent knows only observations (the text is the state), actions and
rewards. It adds functions that are attributed to the hippocampus. It searches its map
backwards from remembered rewards. A memory of reward fades when the reward fails to
come, and is recalled in the context of the last reward in the trial. After a trial, the
agent replays the trial's steps backwards. If no known way leads to reward, it takes the
nearest untried action.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable

from cheesebench import ACTIONS, FORWARD, AgentContext
from cheesebench.plugins.agents.tabular_ql import QTable, Transitions

Step = tuple[int, int]

#: A step is a goal while it is worth more than this share of the largest reward so far.
WORTHWHILE = 0.1
#: Factor by which the worth of a step is multiplied each time that the step is not
#: rewarded, unless it was rewarded before in the same trial.
FADING = 0.7
#: Maximum number of context-dependent memories. When there would be more, all of them
#: are forgotten.
MOST_RECOLLECTIONS = 100_000


class RewardMemory:
    """Remembers the worth of rewarded steps (state, action), and two more facts about
    each.

    The first is whether its reward can be taken again in the same trial, because most
    food can be taken only once. Until the agent has tried this with a step, its
    experience with all steps counts. The second is the worth of a step in its
    *context*, the last rewarded step of the trial, because food may then appear in a
    new place.
    """

    def __init__(self) -> None:
        self.best = 0.0
        """The largest reward so far."""
        self.changed = False
        """Whether ``promising`` may return another result than in its last call."""
        self._worth: dict[Step, float] = {}
        self._recollections: dict[tuple[Step | None, Step], float] = {}
        self._context: Step | None = None
        #: ``_paid``: the steps that were rewarded in this trial. ``_spent``: the steps
        #: that are not expected to be rewarded again before the next trial.
        self._paid: set[Step] = set()
        self._spent: set[Step] = set()
        #: How often steps were rewarded again, and how often they were tried again, in
        #: the same trial: for each step, and for all steps together. The initial counts
        #: make a second reward as likely as not.
        self._again: dict[Step, tuple[int, int]] = {}
        self._all_again = (1, 2)

    def begin_trial(self) -> None:
        """Make spent rewards count again."""
        self.changed |= bool(self._spent) or self._context is not None
        self._paid.clear()
        self._spent.clear()
        self._context = None

    def promising(self) -> Iterable[Step]:
        """Return the steps to aim at now, in the order of their first rewards."""
        self.changed = False
        least, context, recall = (
            WORTHWHILE * self.best,
            self._context,
            self._recollections.get,
        )
        return [
            step
            for step, worth in self._worth.items()
            if step not in self._spent and recall((context, step), worth) > least
        ]

    def note(self, step: Step, reward: float) -> None:
        if reward <= 0 and step not in self._worth:
            return
        self._recollect(step, reward)
        if step in self._paid:
            self._count_again(step, reward > 0)
        if reward > 0:
            self.best = max(self.best, reward)
            self._worth[step] = (self._worth.get(step, reward) + reward) / 2
            self._paid.add(step)
            if self._pays_again(step):
                self._spent.discard(step)
            else:
                self._spent.add(step)
            self._context = step
            self.changed = True
            return
        if step not in self._paid:
            self._worth[step] *= FADING
        if step not in self._spent:
            self._spent.add(step)
            self.changed = True

    def _recollect(self, step: Step, reward: float) -> None:
        if len(self._recollections) >= MOST_RECOLLECTIONS:
            self._recollections.clear()
        key = self._context, step
        self._recollections[key] = (self._recollections.get(key, reward) + reward) / 2

    def _count_again(self, step: Step, paid: bool) -> None:
        own_paid, own_tried = self._again.get(step, (0, 0))
        self._again[step] = own_paid + paid, own_tried + 1
        self._all_again = self._all_again[0] + paid, self._all_again[1] + 1

    def _pays_again(self, step: Step) -> bool:
        paid, tried = self._again.get(step, self._all_again)
        return 2 * paid >= tried


_COUNT = len(ACTIONS)

#: ``GAMMA``: discount per step. ``ALPHA``: learning rate. ``EPSILON``: share of random
#: actions, which end unforeseen cycles.
GAMMA, ALPHA, EPSILON = 0.95, 0.5, 0.02
#: Cost of a punishment that is at least as large as the best reward, as a number of
#: steps on the map.
PUNISHMENT = 200
#: A step that costs more than this is dear. If the known path to reward goes on with a
#: dear step, a nearby untried action comes first. The search for untried actions takes
#: no dear steps.
DEAR = 12
#: Maximum number of states that a search for an untried action visits: ``FAR`` if no
#: path to reward is known, otherwise ``NEAR``.
FAR, NEAR = 3000, 100
#: Number of steps without a search after a search for untried actions has failed.
BORED = 5
#: An action is no longer interesting if it was tried at least this often, and changed
#: the observation in at most 5 % of the cases.
ENOUGH = 20
#: ``REPLAY`` is the maximum number of steps replayed after a trial. ``MOST_STATES`` is
#: the maximum number of states. When it is reached, map, values and memories are reset.
REPLAY, MOST_STATES = 1000, 20_000


class HippocampalQL:
    """An agent that takes the cheapest known path to a remembered reward, or else the
    shortest one to an untried action. If there is neither, it acts by value.

    An untried action nearby comes first if the next step of the path to reward is dear
    (``DEAR``). A share ``EPSILON`` of the actions is random.
    """

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        #: How often each action was tried, and how often it changed the observation.
        self._tried, self._moved = [0] * _COUNT, [0] * _COUNT
        self._trial: deque[tuple[int, int, float, int, bool]] = deque(maxlen=REPLAY)
        self._forget()

    def _forget(self) -> None:
        self._map = Transitions(_COUNT)
        self._table = QTable(self._map, GAMMA)
        self._memory = RewardMemory()
        #: The path to something new as (state, action), in reverse order.
        self._way: list[tuple[int, int]] = []
        self._bored = 0
        self._here = 0
        self._trial.clear()

    def begin_trial(self, observation: str) -> None:
        """Start a trial, in which taken rewards count again."""
        if len(self._table) >= MOST_STATES:
            self._forget()
        self._memory.begin_trial()
        self._way.clear()
        self._trial.clear()
        self._here = self._table.state(observation)

    def act(self, observation: str) -> tuple[int]:
        if self._memory.changed:
            self._map.aim(self._memory.promising())
        if self._random.random() < EPSILON:
            return (self._random.randrange(_COUNT),)
        step = self._map.step_towards_aim(self._here)
        if step is None:
            step = self._step_to_news(FAR)
        elif self._map.cost(self._here, step) > DEAR:
            news = self._step_to_news(NEAR)
            step = step if news is None else news
        return (self._table.greedy(self._here, self._random) if step is None else step,)

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Learn from one step, also from one in which the subject was frozen."""
        if len(self._table) >= MOST_STATES:
            self._forget()
        here, there = self._here, self._table.state(observation)
        self._table.learn(here, action, reward, there, ended, ALPHA)
        self._tried[action] += 1
        self._moved[action] += here != there
        self._memory.note((here, action), reward)
        self._map.add(here, action, there, self._cost(reward))
        self._trial.append((here, action, reward, there, ended))
        self._here = there
        if ended:
            for step in reversed(self._trial):
                self._table.learn(*step, ALPHA)

    def _cost(self, reward: float) -> int:
        best = self._memory.best
        return (
            1 + min(PUNISHMENT, int(-PUNISHMENT * reward / best))
            if reward < 0 < best
            else 1
        )

    def _step_to_news(self, horizon: int) -> int | None:
        """Return the next step of the shortest path, without dear steps, to an untried
        and interesting action in one of the nearest ``horizon`` states. Return None if
        there is no such path, or a search failed at most ``BORED`` steps ago.
        """
        if self._bored:
            self._bored -= 1
            return None
        if not self._way or self._way[-1][0] != self._here:
            self._way = self._search(horizon)
        if self._way:
            return self._way.pop()[1]
        self._bored = BORED
        return None

    def _search(self, horizon: int) -> list[tuple[int, int]]:
        order = self._interesting()
        origin: dict[int, tuple[int, int]] = {}
        queue, met = [self._here], {self._here}
        for state in queue:  # The loop appends to ``queue``.
            after = self._map.after(state)
            for action in order:
                following = after[action]
                if following is None:
                    way = [(state, action)]
                    while way[-1][0] != self._here:
                        way.append(origin[way[-1][0]])
                    return way
                if (
                    following not in met
                    and len(met) < horizon
                    and self._map.cost(state, action) <= DEAR
                ):
                    met.add(following)
                    origin[following] = state, action
                    queue.append(following)
        return []

    def _interesting(self) -> list[int]:
        """Return the actions that are worth trying: FORWARD first, then the others in
        random order.
        """
        order = [
            a
            for a in range(_COUNT)
            if self._tried[a] < ENOUGH or 20 * self._moved[a] > self._tried[a]
        ]
        self._random.shuffle(order)
        return sorted(order, key=lambda action: action != FORWARD)
