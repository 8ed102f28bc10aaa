"""Memory of rewarded steps: their current value, and whether they pay twice."""

from __future__ import annotations

from collections.abc import Iterable

Step = tuple[int, int]

#: A step is aimed at while it is worth more than this share of the best reward ever met.
WORTHWHILE = 0.1
#: What the worth of a step is multiplied with each time that it pays nothing.
FADING = 0.7
#: Recollections that depend on what paid before; when there are more, they are forgotten.
MOST_RECOLLECTIONS = 100_000


class RewardMemory:
    """Remembers steps (state, action) that were rewarded.

    Two things are learnt beside their worth. Whether a reward that was taken can be taken again in the same trial:
    most food cannot, some can, and the experience with one step counts for those without experience. And what a step
    was worth in its *context*, the step that paid last in this trial: food may lie where it did not lie before.
    """

    def __init__(self) -> None:
        self.best = 0.0
        """The largest reward ever met."""
        self.changed = False
        """Whether ``promising`` may return something else than when it was asked last."""
        self._worth: dict[Step, float] = {}
        self._recollections: dict[tuple[Step | None, Step], float] = {}
        self._context: Step | None = None
        #: Steps that paid in this trial, and those that are not expected to pay again before the next one.
        self._paid: set[Step] = set()
        self._spent: set[Step] = set()
        #: (paid again, tried again) by step and of all together. At first a second reward is as likely as not.
        self._again: dict[Step, tuple[int, int]] = {}
        self._all_again = (1, 2)

    def begin_trial(self) -> None:
        """Spent rewards count again."""
        self.changed |= bool(self._spent) or self._context is not None
        self._paid.clear()
        self._spent.clear()
        self._context = None

    def promising(self) -> Iterable[Step]:
        """Return the steps to aim at now, in the order in which they paid first."""
        self.changed = False
        least, context, recall = WORTHWHILE * self.best, self._context, self._recollections.get
        return [
            step
            for step, worth in self._worth.items()
            if step not in self._spent and recall((context, step), worth) > least
        ]

    def note(self, step: Step, reward: float) -> None:
        """A step was made and paid ``reward``."""
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
