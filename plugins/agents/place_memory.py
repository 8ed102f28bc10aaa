"""The memory of the place-learner: values of places, statistics of moments, and events of this trial."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

#: What a place can have been in this trial.
FRESH, IN_VAIN, REWARDED = 0, 1, 2
#: What is expected of such a place before anything is known; and of one to which the subject was led.
GUESS = (0.5, 0.4, 0.7)
SHOWN = 2.0
#: An entry that had no consequences counts so much of an outcome for the looks of the place.
HINT = 0.1
#: A choice is worth so much of what followed it, if nothing came of it by itself.
FADING = 0.9
#: The worth of what a place looked like, compared with that of the place itself.
LOOKS = 2.0
#: In a moment that is no longer than so many steps there is no time to go anywhere.
SHORT = 4
#: So many moments of the same length are no accident.
NO_ACCIDENT = 3

#: What a moment looked like: its text, and how many there are of each glyph that stands out.
Signature = tuple[str, tuple[tuple[str, int], ...]]


class Choice(NamedTuple):
    """What is credited with an outcome."""

    moment: Signature
    place: int
    been: int
    glyph: str
    #: Whether the moment began at another place.
    elsewhere: bool


class Worth:
    """Mean outcomes, each with a guess that counts for one outcome, from the general to the particular."""

    def __init__(self) -> None:
        self._sums: dict[Hashable, tuple[float, float]] = {}
        #: Where the subject was led to.
        self.shown: int | None = None

    def __len__(self) -> int:
        return len(self._sums)

    def _add(self, key: Hashable, outcome: float, weight: float = 1.0) -> None:
        total, count = self._sums.get(key, (0.0, 0.0))
        self._sums[key] = total + weight * outcome, count + weight

    def nothing(self, choice: Choice) -> None:
        """Record that a choice had no outcome."""
        moment, place, been, glyph, elsewhere = choice
        self._add((place, been), 0.0)
        self._add((moment, place, been), 0.0)
        self._add((moment, glyph, been, elsewhere), 0.0, HINT)

    def credit(self, choice: Choice, outcome: float) -> None:
        """Record an outcome of a choice, between -1 and 1: for the place (also in such moments) and its looks."""
        moment, place, been, glyph, elsewhere = choice
        self._add((place, been), outcome)
        self._add((moment, place, been), outcome)
        self._add((moment, glyph, been, elsewhere), outcome)

    def of_place(self, choice: Choice) -> float:
        """Return what the place is worth."""
        guess = SHOWN if choice.place == self.shown and choice.been == FRESH else GUESS[choice.been]
        guess = self._mean((choice.place, choice.been), guess)
        return self._mean((choice.moment, choice.place, choice.been), guess)

    def of_looks(self, choice: Choice) -> float:
        """Return what a place is worth by what it looks like and has been in this trial."""
        key = (choice.moment, choice.glyph, choice.been, choice.elsewhere)
        return self._mean(key, GUESS[choice.been])

    def forget_looks(self, moment: Signature) -> None:
        """Forget what was credited to looks in such moments."""
        for key in [key for key in self._sums if isinstance(key, tuple) and len(key) == 4 and key[0] == moment]:
            del self._sums[key]

    def _mean(self, key: Hashable, guess: float) -> float:
        total, count = self._sums.get(key, (0.0, 0.0))
        return (total + guess) / (count + 1)


@dataclass
class Moment:
    """Statistics of moments that look alike."""

    #: How many there were, how long they lasted (steps), whether one ended although the subject did not move, and
    #: whether a trial ended in one with reward or punishment.
    count: int = 0
    shortest: int = 1 << 30
    longest: int = 0
    unprompted: bool = False
    felt: bool = False

    @property
    def brief(self) -> bool:
        """Whether it passes by itself before the subject could get anywhere."""
        return self.count > 1 and self.shortest == self.longest <= SHORT

    @property
    def regular(self) -> bool:
        """Whether it lasts equally long, so that what the subject does does not end it."""
        return self.unprompted and self.count >= NO_ACCIDENT and self.shortest == self.longest > SHORT

    @property
    def timed(self) -> bool:
        """Whether it is regular, and where the subject is at its end has consequences."""
        return self.felt and self.regular


@dataclass
class Trial:
    """Working memory: empty when a trial begins."""

    #: What places have been in this trial, if not ``FRESH``.
    been: dict[int, int] = field(default_factory=dict)
    #: Choices, and what came of each by itself.
    choices: list[tuple[Choice, float]] = field(default_factory=list)

    def learn(self, worth: Worth) -> None:
        """Credit the choices, the last one first."""
        following = 0.0
        for choice, own in reversed(self.choices):
            following = own or FADING * following
            worth.credit(choice, following)
        self.choices.clear()
