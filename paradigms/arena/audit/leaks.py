"""Leaks: can a draw be predicted from the observation or from the pose when a state is entered?

Cross-validated over seeds: the predictor is trained and tested on different lives.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cheesebench.interfaces import View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.numbers import Z_MANY, Rate, rate, shown
from cheesebench.paradigms.arena.audit.runs import lives_for
from cheesebench.paradigms.arena.audit.walkers import Walker, event_random, walk, wanderer
from cheesebench.paradigms.arena.endings import plain_value
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.tables import Geometry

#: Groups of seeds; each is guessed from the others.
FOLDS = 5
#: Minimum entries into a state for a finding.
FEWEST = 50


@dataclass(frozen=True, slots=True)
class Sample:
    """The first entry into a state in one trial."""

    fold: int
    life: int
    observation: str
    pose: int
    cell: int
    heading: int
    values: Mapping[str, Hashable]


@dataclass(frozen=True, slots=True)
class Guess:
    """How well a draw can be guessed, and from what."""

    state: str
    hidden: str
    rate: Rate
    source: str

    def __str__(self) -> str:
        return f"'{self.hidden}' at '{self.state}': {self.rate} from {self.source}"


class _Observer:
    """Takes a sample at the first entry into each state of a trial; ``entered`` is emptied after it."""

    def __init__(
        self, found: dict[str, list[Sample]], columns: Sequence[str], geometry: Geometry, fold: int, life: int
    ) -> None:
        self._found, self._columns, self._geometry, self._fold, self._life = found, columns, geometry, fold, life
        self.entered: set[str] = set()

    def __call__(self, life: ArenaSubject, observation: str) -> None:
        if life.state not in self.entered:
            self.entered.add(life.state)
            cell, heading = self._geometry.cell(life.pose), self._geometry.heading(life.pose)
            values = {name: _label(life.values[name]) for name in self._columns}
            sample = Sample(self._fold, self._life, observation, life.pose, cell, heading, values)
            self._found[life.state].append(sample)


def collect(paradigm: ArenaParadigm, view: View, trials: int, seed: int) -> dict[str, list[Sample]]:
    """Return what is seen at the first entry into each state of a trial, by state.

    The subjects know the tables but not the draws: half walk to events at random, half also wait now and then. They
    meet every block of the schedule, whatever the pass rate is taken over.
    """
    specification, geometry = paradigm.specification, paradigm.program.geometry
    columns = [column for draw in specification.draws for column in draw.columns]
    columns += [check.hidden for check in specification.document.checks if check.hidden not in columns]
    found: dict[str, list[Sample]] = {name: [] for name in specification.states}
    # Folds are whole seeds, so that a draw that is balanced over subjects is balanced in each of them.
    per_fold = -(-trials // FOLDS)
    number = 0
    for fold in range(FOLDS):
        for own_seed, subject, count in lives_for(specification, per_fold, seed + 1000 * fold):
            number += 1
            chance = random.Random(f"{own_seed}|{subject}|leaks")
            life = ArenaSubject(paradigm.program, view, own_seed, subject)
            # At random and not alternately: rows of a draw may alternate over subjects, too.
            rests = chance.random() < 0.5
            choice = wanderer(chance) if rests else event_random(chance)
            walker = Walker(paradigm.program, choice, everywhere=rests)
            observer = _Observer(found, columns, geometry, fold, number)
            for _ in walk(life, walker, specification, count, observer, every_block=True):
                observer.entered.clear()
    return found


def _label(value: object) -> str:
    return str(plain_value(value))


def best_guess(samples: Sequence[Sample], state: str, hidden: str) -> tuple[Guess, Guess]:
    """Return the best guess of a draw at a state, from what is seen and from the pose."""
    return _best(samples, state, hidden, _seen(samples)), _best(samples, state, hidden, _stands(samples))


def prior(samples: Sequence[Sample], hidden: str) -> float:
    """Return how often the most frequent value is right."""
    counts = Counter(sample.values[hidden] for sample in samples)
    return max(counts.values()) / len(samples)


Columns = dict[str, list[Hashable]]


def _seen(samples: Sequence[Sample]) -> dict[str, Columns]:
    """Return what a guess can go by, in families; of each family the best column on the training lives is used."""
    texts = [sample.observation for sample in samples]
    width = max(map(len, texts))
    places: Columns = {}
    known: set[tuple[Hashable, ...]] = set()
    for place in range(width):
        column = tuple(text[place : place + 1] for text in texts)
        if len(set(column)) > 1 and column not in known:
            known.add(column)
            places[f"the character at offset {place}"] = list(column)
    characters = sorted({character for text in texts for character in text})
    counts: Columns = {f"the number of '{c}'": [text.count(c) for text in texts] for c in characters}
    return {
        "whole": {"the whole picture": list(texts)},
        "place": places,
        "count": {name: column for name, column in counts.items() if len(set(column)) > 1},
    }


def _stands(samples: Sequence[Sample]) -> dict[str, Columns]:
    return {
        "pose": {"the pose": [sample.pose for sample in samples]},
        "cell": {"the cell": [sample.cell for sample in samples]},
        "heading": {"the heading": [sample.heading for sample in samples]},
    }


def _best(samples: Sequence[Sample], state: str, hidden: str, families: dict[str, Columns]) -> Guess:
    labels = [sample.values[hidden] for sample in samples]
    guesses = []
    for columns in families.values():
        # With a constant column, the most frequent value is guessed.
        right, source = _cross_validate(samples, labels, columns or {"the most frequent value": [0] * len(samples)})
        lives: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for sample, is_right in zip(samples, right, strict=True):
            passed, trials = lives[sample.life]
            lives[sample.life] = (passed + is_right, trials + 1)
        guesses.append(Guess(state, hidden, rate(lives.values(), Z_MANY), source))
    # The one that is significantly above chance, not one that is favoured by a few samples.
    return max(guesses, key=lambda guess: (guess.rate.low, guess.rate.value))


def _cross_validate(samples: Sequence[Sample], labels: Sequence[Hashable], columns: Columns) -> tuple[list[bool], str]:
    """Return for each sample whether it is guessed, and the column that was used in most folds."""
    right = [False] * len(samples)
    used: Counter[str] = Counter()
    members = [[number for number, sample in enumerate(samples) if sample.fold == fold] for fold in range(FOLDS)]
    whole = {name: Counter(zip(column, labels, strict=True)) for name, column in columns.items()}
    for inside in filter(None, members):
        tables = {
            name: whole[name] - Counter((column[number], labels[number]) for number in inside)
            for name, column in columns.items()
        }
        best = max(tables, key=lambda name: _hits(tables[name]))
        used[best] += 1
        table, usual = _majority(tables[best])
        for number in inside:
            right[number] = table.get(columns[best][number], usual) == labels[number]
    return right, used.most_common(1)[0][0] if used else ""


def _hits(table: Counter[tuple[Hashable, Hashable]]) -> int:
    """Return how many of the training samples the majority rule gets right."""
    best: dict[Hashable, int] = {}
    for (feature, _), count in table.items():
        best[feature] = max(best.get(feature, 0), count)
    return sum(best.values())


def _majority(table: Counter[tuple[Hashable, Hashable]]) -> tuple[dict[Hashable, Hashable], Hashable]:
    """Return the most frequent label of each feature, and of all."""
    best: dict[Hashable, tuple[int, str, Hashable]] = {}
    overall: Counter[Hashable] = Counter()
    for (feature, label), count in table.items():
        overall[label] += count
        best[feature] = max(best.get(feature, (0, "", None)), (count, str(label), label))
    usual = max(overall, key=lambda label: (overall[label], str(label))) if overall else None
    return {feature: label for feature, (_, _, label) in best.items()}, usual


def readable(samples: Mapping[str, Sequence[Sample]], names: Sequence[str]) -> Iterator[Guess]:
    """Yield draws that are predictable though no check names them: the better of observation and pose, by state."""
    for state, entries in samples.items():
        if len(entries) < FEWEST:
            continue
        for name in names:
            guess = max(best_guess(entries, state, name), key=lambda guess: guess.rate.low)
            if guess.rate.low > prior(entries, name) + 0.01:
                yield guess


def described(guesses: Sequence[Guess]) -> str:
    """Return guesses as text."""
    return "; ".join(f"'{g.hidden}' at '{g.state}' {shown(g.rate.value)} from {g.source}" for g in guesses)
