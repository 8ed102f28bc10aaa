"""Observations and tables of many looks in flat arrays, so that one gather serves lanes with different looks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cheesebench.errors import CheeseBenchError
from cheesebench.paradigms.arena.program import Program, State
from cheesebench.paradigms.arena.reward_only import reward_only_step
from cheesebench.paradigms.arena.scenes import MAX_BYTES, Gallery, Look

#: Maximum number of different observations of one vector environment (each id must stay valid).
MAX_TEXTS = 200_000
#: Most poses of all pages together: 8 bytes each for the observation, and for their tables (``Pages``) 68 more.
MAX_POSES = 500_000


class Album:
    """Observations by number. A look has a page; ``page + pose`` is a place (poses are multiples of 4: ``tables``)."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery = gallery
        self._size = gallery.geometry.poses * 4
        self._pages: dict[Any, int] = {}
        self._looks: list[Look] = []
        #: Number of the observation of each pose, or -1 where it has not been met yet.
        self._numbers = np.zeros(0, np.int64)
        self._number_of: dict[str, int] = {}
        self._texts = np.full(64, None, dtype=object)
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether it is time to ``forget_pages``."""
        return len(self._looks) * self._size > MAX_POSES * 4

    @property
    def crowded(self) -> bool:
        """Whether it is time to ``forget_texts``, because they are no longer needed."""
        return self._bytes > MAX_BYTES or len(self._number_of) > MAX_TEXTS // 2

    @property
    def texts(self) -> NDArray[np.object_]:
        """The texts met so far, by number."""
        return self._texts[: len(self._number_of)]

    def page_of(self, look: Look) -> int:
        """Return where the page of a look begins."""
        start = self._pages.get(look)
        if start is None:
            start = self._pages[look] = self._open(look)
        return start

    def _open(self, look: Look) -> int:
        """Add a page; return where it begins."""
        start = len(self._looks) * self._size
        self._looks.append(look)
        if start == len(self._numbers) * 4:
            room = max(self._size, start) // 4  # twice as much as before
            self._numbers = np.concatenate([self._numbers, np.zeros(room, np.int64)])
        self._numbers[start // 4 : (start + self._size) // 4] = -1
        return start

    def forget_pages(self) -> None:
        """Forget all pages; observations keep their numbers."""
        self._looks.clear()
        self._pages.clear()

    def forget_texts(self) -> None:
        """Forget all observations; those of the pages get new numbers."""
        self._bytes = 0
        self._number_of.clear()
        self._texts[:] = None
        self._numbers[:] = -1

    def observe(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the observations at these indices (page + pose)."""
        numbers = self._numbers.take(at >> 2)
        if (numbers < 0).any():
            for place in np.unique(at[numbers < 0]).tolist():
                self._draw(place)
            numbers = self._numbers.take(at >> 2)
        return numbers

    def look_up(self, numbers: NDArray[np.int64]) -> tuple[str, ...]:
        """Return the texts of these observations."""
        return tuple(self._texts.take(numbers).tolist())

    def _draw(self, place: int) -> None:
        look, pose = self._looks[place // self._size], place % self._size
        text = look.frames[pose >> 2] or self._gallery.draw(look, pose)
        number = self._number_of.setdefault(text, len(self._number_of))
        if number >= MAX_TEXTS:
            raise CheeseBenchError(
                f"This environment has shown more than {MAX_TEXTS} different observations. Ask for 'strings'."
            )
        if number >= len(self._texts):
            self._texts = np.concatenate([self._texts, np.full(len(self._texts), None, dtype=object)])
        if self._texts[number] is None:
            self._bytes += sys.getsizeof(text)
            self._texts[number] = text
        self._numbers[place >> 2] = number


class Pages(Album):
    """An album with a page for each look in each state, and tables: ``page + pose + action`` is an index.

    ``moves`` has the next index without an action (page + pose), ``alarms`` whether something happens that the life
    must look at, ``rewards`` the reward where nothing does.
    """

    def __init__(self, program: Program, gallery: Gallery) -> None:
        super().__init__(gallery)
        self._program = program
        self.moves = np.zeros(0, np.int64)
        self.alarms = np.zeros(0, np.bool_)
        self.rewards = np.zeros(0)

    def page(self, look: Look, state: State, reward_only: bool) -> int:
        """Return the start of a page; ``reward_only``: events that only pay need no attention."""
        key = (look, state.name, reward_only)  # of the look itself: a look's key is long, and asked for at every event
        start = self._pages.get(key)
        if start is None:
            start = self._pages[key] = self._add(look, state, reward_only)
        return start

    def _add(self, look: Look, state: State, reward_only: bool) -> int:
        start, size = self._open(look), self._size
        if start == len(self.moves):
            room = max(size, start)  # twice as much as before
            self.moves = np.concatenate([self.moves, np.zeros(room, np.int64)])
            self.alarms = np.concatenate([self.alarms, np.zeros(room, np.bool_)])
            self.rewards = np.concatenate([self.rewards, np.zeros(room)])
        self.moves[start : start + size] = look.tables.moves
        self.moves[start : start + size] += start
        heard = [bits & state.listen for bits in look.tables.events]
        rewards = {bits: reward_only_step(self._program, state, bits) if reward_only else None for bits in set(heard)}
        rewards[0] = state.pay
        self.alarms[start : start + size] = [rewards[bits] is None for bits in heard]
        self.rewards[start : start + size] = [rewards[bits] or 0.0 for bits in heard]
        return start
