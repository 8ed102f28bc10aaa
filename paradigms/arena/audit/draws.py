"""Draws: are they balanced, and can the next one be predicted from earlier ones?"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.numbers import Z_MANY, Rate, rate
from cheesebench.paradigms.arena.audit.runs import DARKNESS, lives_for, subjects
from cheesebench.paradigms.arena.endings import plain_value
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification
from cheesebench.protocol.expressions import Binary, Expression, Variable, walk

#: Longest period, in trials, that is searched for in a sequence of draws.
LONGEST_CYCLE = 8
#: A share may exceed what it should be by so much before it is called unbalanced, a guess before it is called easy.
TOLERANCE = 0.03

Predictor = Callable[[Sequence[Hashable], Sequence[Hashable]], Hashable]
"""From the values so far, and all there are, the next one."""


@dataclass(frozen=True, slots=True)
class Column:
    """Statistics of a column of a draw over many lives.

    ``is_answer`` says that rules, success or checks depend on it, and that it holds names: then it must be balanced
    and, from trial to trial, not to be foreseen.
    """

    name: str
    per: str
    order: str
    is_answer: bool
    values: int
    commonest: str
    share: Rate
    longest_run: int
    other_one: float | None
    """How often "not the last one" is right, where there are two values."""
    best_predictor: str
    predicted: Rate | None


#: The values of all draws, trial by trial, life by life.
Lives = list[list[dict[str, Hashable]]]


def sample_draws(paradigm: ArenaParadigm, trials: int, seed: int) -> Lives:
    """Return the values of all draws of lives that do nothing, whole ones as far as possible."""
    return _sample(paradigm, list(lives_for(paradigm.specification, trials, seed)))


def sample_beginnings(paradigm: ArenaParadigm, lives: int, seed: int) -> Lives:
    """Return the values of all draws in the first trial of many lives."""
    group = subjects(paradigm.specification)
    seeds = range(seed, seed - (-lives // group))
    return _sample(paradigm, [(own_seed, subject, 1) for own_seed in seeds for subject in range(group)])


def _sample(paradigm: ArenaParadigm, orders: list[tuple[int, int, int]]) -> Lives:
    names = [name for draw in paradigm.specification.draws for name in draw.columns]
    lives = []
    for own_seed, subject, count in orders:
        life = ArenaSubject(paradigm.program, DARKNESS, own_seed, subject)
        lived: list[dict[str, Hashable]] = []
        for _ in range(count):
            if life.begin_trial() is None:
                break
            lived.append({name: life.values[name] for name in names})
            while life.step(STAY)[2] == RUNNING:
                pass
        lives.append(lived)
    return lives


def columns(specification: Specification, lives: Lives, beginnings: Lives) -> Iterator[Column]:
    """Yield the statistics of every column; draws that hold for life are judged over more lives (``beginnings``)."""
    answers, compared = _answers(specification), _answers(specification, compared_only=True)
    for draw in specification.draws:
        for number, name in enumerate(draw.columns):
            possible: list[Hashable] = list(dict.fromkeys(row[number] for row in draw.rows))
            fair = len(possible)
            if draw.sample is not None:
                # What is dealt out may be a set of few of all that it can have: one of so many is no foresight.
                possible = [*specification.drawn(name)]
                fair = next((d.pick for d in specification.draws if d.pick and draw.sample in d.columns), len(possible))
            lived = beginnings if draw.per == "subject" else lives
            series = [[trial[name] for trial in life] for life in lived if life]
            # Numbers set clocks and counts, which need no balance; unless they are compared as names are.
            is_name = all(value is None or isinstance(value, str) for value in possible) or name in compared
            yield _column(name, draw.per, draw.order, name in answers and is_name, possible, fair, series)


def _column(
    name: str, per: str, order: str, is_answer: bool, possible: list[Hashable], fair: int, series: list[list[Hashable]]
) -> Column:
    # Of a draw that picks several rows, each member counts.
    counts = [Counter(member for value in values for member in _members(value)) for values in series]
    total: Counter[Hashable] = Counter(itertools.chain.from_iterable(count.elements() for count in counts))
    commonest = max(total, key=lambda value: (total[value], str(value)))
    share = rate([(count[commonest], sum(count.values())) for count in counts], Z_MANY)
    best, predicted, other = "", None, None
    if per == "trial" and len(possible) > 1:
        best, predicted = _best_predictor(series, possible)
        if len(possible) == 2:
            other = _predict(series, possible, _another).value
    return Column(
        name=name,
        per=per,
        order=order,
        is_answer=is_answer,
        values=fair,
        commonest=str(plain_value(commonest)),
        share=share,
        longest_run=max(len(list(run)) for values in series for _, run in itertools.groupby(values)),
        other_one=other,
        best_predictor=best,
        predicted=predicted,
    )


def _members(value: Hashable) -> Sequence[Hashable]:
    return sorted(value, key=str) if isinstance(value, frozenset) else [value]


def is_unbalanced(column: Column) -> bool:
    """Return whether the most common value is significantly more common than expected."""
    fair = 1 / column.values
    return column.share.low > fair and column.share.value > fair + TOLERANCE


def is_foreseeable(column: Column) -> bool:
    """Return whether a simple predictor from the past is significantly better than guessing the most common value."""
    guess, usual = column.predicted, max(column.share.value, 1 / column.values)
    return guess is not None and guess.low > usual and guess.value > usual + TOLERANCE


# -- what the answer depends on


def _answers(specification: Specification, *, compared_only: bool = False) -> set[str]:
    """Return the variables that decide the outcome of the subject's choices, and those that checks call hidden.

    That is what triggers and guards of places and actions read, and ends and success; not what clocks go by, such as
    the order of phases.
    ``compared_only``: only those whose value is asked for as a name's is (``==``, ``!=``, ``in``).
    """
    rules = [rule for state in specification.states.values() for rule in state.rules] + list(specification.watch)
    rules = [rule for rule in rules if rule.after is None]
    trees = [specification.success, *(rule.guard for rule in rules), *(end.guard for end in specification.finish)]
    if compared_only:
        return {name for tree in trees for part in _comparisons(tree) for name in _variables(part)}
    hidden = {check.hidden for check in specification.document.checks}
    hidden |= {rule.target.name for rule in rules if rule.target is not None and rule.target.variable}
    return hidden | {name for tree in trees for name in _variables(tree)}


def _comparisons(tree: Expression | None) -> Iterator[Expression]:
    """Yield the variables and constants that stand beside ``==``, ``!=`` or ``in``."""
    for node in walk(tree):
        match node:
            case Binary(("==" | "!=" | "in"), left, right):
                yield from (side for side in (left, right) if isinstance(side, Variable))


def _variables(tree: Expression | None) -> set[str]:
    return {node.name for node in walk(tree) if isinstance(node, Variable)}


# -- guesses from the past


def _another(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    """Predicts the value after the last one; of two values, the other one."""
    return possible[(possible.index(past[-1]) + 1) % len(possible)] if past[-1] in possible else past[-1]


def _again(lag: int) -> Predictor:
    return lambda past, possible: past[-lag] if len(past) >= lag else past[-1]


def _most_frequent(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    counts = Counter(past)
    return max(possible, key=lambda value: counts[value])


def _least_frequent(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    counts = Counter(past)
    return min(possible, key=lambda value: counts[value])


def _successor(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    """Predicts the most frequent successor of the last value."""
    after = Counter(later for value, later in itertools.pairwise(past) if value == past[-1])
    return after.most_common(1)[0][0] if after else past[-1]


PREDICTORS: dict[str, Predictor] = {
    "the same again": _again(1),
    "the other one": _another,
    "the most frequent so far": _most_frequent,
    "the least frequent so far": _least_frequent,
    "what usually comes next": _successor,
    **{f"that of {lag} trials ago": _again(lag) for lag in range(2, LONGEST_CYCLE + 1)},
}


def _predict(series: Sequence[Sequence[Hashable]], possible: Sequence[Hashable], predictor: Predictor) -> Rate:
    counts: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for life, values in enumerate(series):
        right = sum(predictor(values[:n], possible) == values[n] for n in range(1, len(values)))
        counts[life] = (right, max(0, len(values) - 1))
    return rate(counts.values(), Z_MANY)


def _best_predictor(series: Sequence[Sequence[Hashable]], possible: Sequence[Hashable]) -> tuple[str, Rate | None]:
    rates = {name: _predict(series, possible, predictor) for name, predictor in PREDICTORS.items()}
    best = max(rates, key=lambda name: (rates[name].low, rates[name].value))
    return (best, rates[best]) if rates[best].trials else ("", None)
