"""Audits the task itself: whether it can be solved, anything leaks, draws are fair,
reward agrees with success, and cues are visible.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cheesebench.errors import ProtocolError
from cheesebench.interface_checks import rendered
from cheesebench.interfaces import (
    RUNNING,
    STAY,
    AuditFinding,
    AuditSettings,
    AuditVerdict,
    Scene,
    Tile,
    View,
)
from cheesebench.paradigms.arena.audit import runs, search
from cheesebench.paradigms.arena.audit.chances import APART, NOT_JUDGED
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject, plain_value
from cheesebench.paradigms.arena.scenes import LANDMARK, Gallery, LookKey, canvas_of
from cheesebench.paradigms.arena.tables import Geometry
from cheesebench.protocol import Arena, Specification, expressions
from cheesebench.protocol.answers import answers as answers_of
from cheesebench.protocol.arena import FLOOR, VOID, WALL, Square
from cheesebench.protocol.documents import Check
from cheesebench.protocol.names import TIMEOUT
from cheesebench.protocol.references import judged_reference
from cheesebench.statistics.wording import plural

#: Minimum share of trials that a solver with full knowledge must solve, within half of
#: the limit if trials can end before it.
SOLVABLE = 0.99
#: Draws that are made once per life are judged over at least this many lives.
BEGINNINGS = 400
#: Looks are collected in at least this many trials. Not every subject sees every look.
FEWEST_LOOKS = 64
#: Maximum number of items that a sentence lists.
MANY = 6


#: Verdict on a task that is not solved, by whether the protocol has no 'success'. The
#: solver looks for events, and a measure that stands for 'success' may need none.
_UNSOLVED: Mapping[bool, AuditVerdict] = {False: "FAIL", True: "note"}


def audit_solvable(
    paradigm: ArenaParadigm, settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield whether a solver with full knowledge succeeds."""
    found = search.solve_subjects(
        paradigm, max(16, settings.trials // 10), settings.seed + 5 * APART
    )
    if not found.trials:
        text = f"{NOT_JUDGED}: the estimand counts none of the {found.lived} trials of complete lives"
        yield AuditFinding(
            "solvable", "FAIL", text, {"trials": 0, "lived": found.lived}
        )
        return
    share, in_half = found.solved / found.trials, found.in_half / found.trials
    lasts = paradigm.specification.outcomes == (TIMEOUT,)
    fails = (share if lasts else in_half) < SOLVABLE
    text = f"{runs.shown(share)} of {found.trials} trials solved"
    if lasts:
        text += "; every trial lasts until its limit"
    else:
        text += f", {runs.shown(in_half)} within half of the limit"
    if not lasts and found.in_half_with_clocks < found.in_half:
        text += " (waiting for the protocol's clocks not counted)"
    if found.unsolved:
        text += f"; not solved: {found.unsolved}"
    if fails:
        text += _why_unsolved(found, paradigm.specification)
    numbers: dict[str, object] = {
        "solved": share,
        "in_half": in_half,
        "trials": found.trials,
    }
    failing = _UNSOLVED[paradigm.specification.document.success is None]
    yield AuditFinding("solvable", failing if fails else "ok", text, numbers)


#: Added where the solver fails and a rule reads ``steps`` in its condition.
_TOO_EARLY = (
    "; the solver waits for `after`, not for a condition that reads `steps`: put the time that is too early into a state of"
    " its own (`{after: gap, go: ready}`)"
)


def _how_trials_end(found: search.Solutions, specification: Specification) -> str:
    outcome, times = found.failures.most_common(1)[0]
    rules = (rule for state in specification.states.values() for rule in state.rules)
    reads_steps = any(
        expressions.BuiltIn("steps") in expressions.walk(rule.guard) for rule in rules
    )
    said = f"; success never held; the outcome was '{outcome}' in {times} of {found.trials}"
    return said + (_TOO_EARLY if reads_steps else "")


def _why_unsolved(found: search.Solutions, specification: Specification) -> str:
    ends = not found.solved and found.failures
    how = _how_trials_end(found, specification) if ends else ""
    return _never_fired(found, specification) + how


def _never_fired(found: search.Solutions, specification: Specification) -> str:
    """Return the rules that never fired in the solver's search, with their lines."""
    states = specification.states.values()
    rules = [*specification.watch, *(rule for one in states for rule in one.rules)]
    never = {
        f"line {rule.position.line} ('{rule.text}')": None
        for rule in rules
        if f"{Path(rule.position.file).name}:{rule.position.line}" not in found.fired
    }
    if not never:
        return ""
    return f"; never fired in the search: {', '.join([*never][:MANY])}"


def audit_leaks(
    paradigm: ArenaParadigm, views: Sequence[View], settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield whether the variables that `checks` declare hidden can be guessed, in each
    view and from the pose. Also yield which other draws can be guessed, and which
    states no run entered.
    """
    checks = paradigm.specification.document.checks
    if not checks:
        yield AuditFinding(
            "leak", "note", "`checks` is empty: nothing is declared hidden", {}
        )
    for view in views:
        if settings.progress:
            settings.progress(f"leaks in {view.name}")
        trials, others = max(100, settings.trials // 3), dict[str, list[Sample]]()
        samples = collect(paradigm, view, trials, settings.seed + 6 * APART)
        rarest = min((len(samples[check.at]) for check in checks), default=FEWEST)
        if rarest < FEWEST:  # A random walker seldom gets far in a long trial.
            trials *= min(MOST_TIMES, math.ceil(2 * FEWEST / max(1, rarest)))
            samples = collect(paradigm, view, trials, settings.seed + 6 * APART)
        for check in checks:
            rule = f"leak: {check.hidden} at {check.at}, {view.name}"
            entries = samples[check.at]
            if len(entries) < FEWEST:
                text = (
                    f"'{check.at}' was entered in only {len(entries)} of {trials} trials:"
                    " too few to judge; raise --trials"
                )
                numbers: dict[str, object] = {"entries": len(entries)}
                yield AuditFinding(rule, "undecided", text, numbers)
                continue
            finding = _judged_leak(rule, check, entries)
            if finding.verdict == "FAIL":
                # The best of many guesses may be lucky, so it is tested on a second
                # sample.
                others = others or collect(
                    paradigm, view, 2 * trials, settings.seed + 11 * APART
                )
                finding = _judged_leak(rule, check, others[check.at])
            yield finding
        never = [name for name, entries in samples.items() if not entries]
        if never and view is views[0]:
            text = f"states that no run entered: {', '.join(never)}; they were entered by force to inspect what they show"
            yield AuditFinding("states", "note", text, {"never": never})
        elif view is views[0]:
            yield AuditFinding("states", "ok", "every state was entered", {"never": []})
        yield from _undeclared(
            paradigm,
            view,
            samples | _forced(paradigm, view, never, settings.seed + 6 * APART),
        )


def _judged_leak(rule: str, check: Check, samples: Sequence[Sample]) -> AuditFinding:
    seen, stood = best_guess(samples, check.at, check.hidden)
    worst = max(seen, stood, key=lambda guess: guess.rate.low)
    text = f"guessed right in {worst.rate} from {worst.source}; chance {runs.shown(check.chance)}"
    values = {sample.values[check.hidden] for sample in samples}
    if len(values) == 1:  # Right without looking, so the picture is not at fault.
        value = str(values.pop()).replace("None", "none")
        text = (
            f"'{check.hidden}' is always {value} when '{check.at}' is entered, so it is known without looking:"
            " check it in a state in which it varies, or check the draw that it is set from"
        )
    numbers: dict[str, object] = {
        "chance": check.chance,
        "seen": seen.rate.numbers(),
        "pose": stood.rate.numbers(),
    }
    return AuditFinding(
        rule, "FAIL" if worst.rate.low > check.chance + 1e-9 else "ok", text, numbers
    )


def _undeclared(
    paradigm: ArenaParadigm, view: View, samples: dict[str, list[Sample]]
) -> Iterator[AuditFinding]:
    checked = {
        (check.at, check.hidden) for check in paradigm.specification.document.checks
    }
    names = [name for draw in paradigm.specification.draws for name in draw.columns]
    unchecked = [
        guess
        for guess in readable(samples, names)
        if (guess.state, guess.hidden) not in checked
    ]
    numbers: dict[str, object] = {
        f"{guess.state}/{guess.hidden}": guess.rate.value for guess in unchecked
    }
    text = described(unchecked[:MANY]) + (
        f"; and {len(unchecked) - MANY} more" if len(unchecked) > MANY else ""
    )
    yield AuditFinding(
        f"shown, {view.name}",
        "note",
        text or "no draw can be guessed anywhere",
        numbers,
    )


def audit_draws(
    paradigm: ArenaParadigm, settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield whether each column of the draws is balanced, and unpredictable from its
    earlier values. Only answers can fail.
    """
    specification = paradigm.specification
    if not specification.draws:
        yield AuditFinding("draws", "note", "nothing is drawn", {})
        return
    lives = sample_draws(
        paradigm,
        runs.lives_for(specification, settings.trials, settings.seed + 7 * APART),
    )
    beginnings = sample_beginnings(
        paradigm, max(BEGINNINGS, settings.trials // 4), settings.seed + 8 * APART
    )
    for column in columns(specification, lives, beginnings):
        numbers: dict[str, object] = {
            "per": column.per, "order": column.order, "answer": column.is_answer, "values": column.values,
            "commonest": column.commonest, "share": column.share.value, "longest_run": column.longest_run,
            "best_predictor": column.best_predictor, "predicted": column.predicted.value if column.predicted else None,
        }  # fmt: skip
        unbalanced, foreseen = is_unbalanced(column), is_foreseeable(column)
        bad: AuditVerdict = "FAIL" if column.is_answer else "note"
        verdict: AuditVerdict = bad if unbalanced or foreseen else "ok"
        yield AuditFinding(
            f"draw: {column.name}",
            verdict,
            _about(column, unbalanced, foreseen),
            numbers,
        )


def _about(column: Column, unbalanced: bool, foreseen: bool) -> str:
    fair = runs.shown(1 / column.values)
    parts = [
        f"{plural(column.values, 'value')} per {column.per}; commonest {column.commonest} ({runs.shown(column.share.value)})"
    ]
    if unbalanced:
        parts[0] += f", UNBALANCED (fair: {fair})"
    if column.per == "trial":
        parts.append(f"longest run {column.longest_run}")
    if column.predicted is not None:
        parts.append(
            f"best guess: {column.best_predictor} ({runs.shown(column.predicted.value)})"
        )
        if foreseen:
            parts[-1] += ", FORESEEABLE"
    return "; ".join(parts)


def audit_rewards(
    paradigm: ArenaParadigm, settings: AuditSettings, chances: Sequence[runs.Tally]
) -> Iterator[AuditFinding]:
    """Yield whether failing can earn more than succeeding."""
    found = list(
        search.temptations(
            paradigm, max(8, settings.trials // 80), settings.seed + 9 * APART
        )
    )
    worst = max(found, key=lambda one: one.gain)
    solved = [one.success.reward for one in found if one.success]
    most = max([*solved, *(tally.best_success for tally in chances)], default=-math.inf)
    least = min(
        [*solved, *(tally.least_success for tally in chances)], default=math.inf
    )
    blind = max(
        chances, key=lambda tally: tally.best_failure, default=runs.Tally("none")
    )
    numbers: dict[str, object] = {
        "best_success": _finite(most), "least_success": _finite(least),
        "best_blind_failure": _finite(blind.best_failure), "policy": blind.name, "gain": _finite(worst.gain),
    }  # fmt: skip
    if not math.isfinite(most):
        yield AuditFinding(
            "reward and success", "note", "no trial was a success", numbers
        )
    elif worst.gain > search.EQUAL:
        yield AuditFinding("reward and success", "FAIL", _tempting(worst), numbers)
    elif blind.best_failure > most + search.EQUAL:
        text = f"{blind.name} earns {blind.best_failure:g} in a failed trial; the best success earns {most:g}"
        yield AuditFinding("reward and success", "FAIL", text, numbers)
    else:
        yield AuditFinding(
            "reward and success",
            "ok",
            _agreeing(found, most, least, blind.best_failure),
            numbers,
        )


def audit_same_event(
    paradigm: ArenaParadigm, settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield whether 'success' counts exactly the trials that would have been counted in
    the animals.
    """
    specification, rule, passed, trials = paradigm.specification, "same event", 0, 0
    written, number = (
        specification.document.reference,
        judged_reference(specification.document.reference),
    )
    if number is None or (counts := written[number].counts) is None:
        yield AuditFinding(
            rule,
            "note",
            "no judged reference says in 'counts' what was counted in the animals",
            {},
        )
        return
    for seed, subject, each in runs.lives_for(
        specification, settings.trials // 2, settings.seed + 13 * APART, judged=True
    ):
        walker = runs.Walker(
            paradigm.program,
            (runs.event_random, runs.wanderer, runs.tour)[subject % 3](
                random.Random(seed + subject)
            ),
        )
        for result, trial in runs.walk(
            ArenaSubject(paradigm.program, runs.DARKNESS, seed, subject),
            walker,
            specification,
            each,
        ):
            if trial.success is None:
                continue
            value = result.measures[counts.measure]
            counted = isinstance(value, int | float) and value <= counts.at_most
            trials, passed = trials + 1, passed + counted
            if counted != trial.success:
                success = "a success" if trial.success else "no success"
                text = (
                    f"seed {seed}, subject {subject}: {counts.measure} is {_written(value)} (counted: at most "
                    f"{counts.at_most:g}), "
                    f"but '{result.outcome}' is {success}"
                )
                yield AuditFinding(
                    rule, "FAIL", text, {"trials": trials, "counted": passed}
                )
                return
    text = f"{counts.measure} is at most {counts.at_most:g} in {passed} of {trials} trials, and exactly these trials succeed"
    yield AuditFinding(rule, "ok", text, {"trials": trials, "counted": passed})


def _written(value: object) -> str:
    if isinstance(value, int | float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _tempting(worst: search.Temptation) -> str:
    assert worst.failure is not None
    assert worst.success is not None
    plan = ", ".join(
        " ".join(filter(None, move)) for move in worst.failure.moves[:MANY]
    )
    more = " ..." if len(worst.failure.moves) > MANY else ""
    return (
        f"{worst.where}: failing earns {worst.failure.reward:g} ({plan}{more}; found by {worst.how}), "
        f"succeeding {worst.success.reward:g}"
    )


def _agreeing(
    found: Sequence[search.Temptation], most: float, least: float, blind: float
) -> str:
    failure = max([blind, *(one.failure.reward for one in found if one.failure)])
    earned = f"successes earn {least:g} to {most:g}"
    if not math.isfinite(failure):
        return f"no trial failed; {earned}"
    text = f"failing never pays more; {earned}, failures at most {failure:g}"
    if abs(failure - least) < search.EQUAL and abs(most - least) < search.EQUAL:
        return f"every trial earns the same, {most:g}, whether it succeeds or fails"
    if failure > least + search.EQUAL:
        text += " (a slow or wasteful success can earn less than a failure in another trial)"
    return text


def audit_cues(
    paradigm: ArenaParadigm, views: Sequence[View], settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield whether every cue can be seen in every view, and note a goal that the map
    shows.
    """
    met = looks(
        paradigm, max(FEWEST_LOOKS, settings.trials // 20), settings.seed + 10 * APART
    )
    for view in views:
        if settings.progress:
            settings.progress(f"cues in {view.name}")
        seen = visible_cues(
            paradigm, view, met, random.Random(f"{settings.seed}|{view.name}|cues")
        )
        hidden = [name for name, visible in seen.items() if not visible]
        text = {0: "there are no cues", 1: "the only cue is visible"}.get(
            len(seen), f"all {len(seen)} cues are visible"
        )
        if hidden:
            more = f" and {len(hidden) - MANY} more" if len(hidden) > MANY else ""
            text = (
                f"cues that do not change the picture: {', '.join(hidden[:MANY])}{more}. If a subject hides "
                "a cue by standing there, put the cue on a solid, or on the square beside it"
            )
        numbers: dict[str, object] = {"cues": len(seen), "hidden": hidden}
        yield AuditFinding(
            f"cues, {view.name}", "FAIL" if hidden else "ok", text, numbers
        )
    if paradigm.specification.goal_visible:
        text = "a rewarded place looks like no other square, so the map shows the goal"
        why = paradigm.specification.acknowledged.get("W311")
        text += f"; acknowledged: {why}" if why else ""
        yield AuditFinding("goal visible", "note", text, {})


# -- draws: are they balanced, and is the next one predictable from earlier ones?


#: Longest cycle, in trials, that is searched for in a sequence of draws.
LONGEST_CYCLE = 8
#: A draw counts as unbalanced only if the share of its most common value exceeds the
#: fair share by more than this. A draw counts as foreseeable only if a guess is right
#: this much more often than the most common value.
TOLERANCE = 0.03

Predictor = Callable[[Sequence[Hashable], Sequence[Hashable]], Hashable]
"""Function from the values so far and all possible values to a prediction of the next
value.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """Statistics of a column of a draw over many lives.

    ``is_answer`` says whether this is a column of names (or of numbers that are
    compared as names are) on which rules, `finish`, 'success' or checks depend. Such a
    column must be balanced, and unpredictable from trial to trial.
    """

    name: str
    per: str
    order: str
    is_answer: bool
    values: int
    """Number of values that would be equally frequent in a fair draw."""
    commonest: str
    share: runs.Rate
    """Share of the commonest value."""
    longest_run: int
    """Length of the longest run of one value, in trials."""
    best_predictor: str
    predicted: runs.Rate | None
    """Share of the values that the best predictor foresees, or None without
    predictions.
    """


#: The values of all draws, trial by trial, life by life.
Lives = list[list[dict[str, Hashable]]]


def sample_beginnings(paradigm: ArenaParadigm, lives: int, seed: int) -> Lives:
    """Return the values of all draws in the first trial of each of many lives."""
    group = runs.subjects(paradigm.specification)
    seeds = range(seed, seed - (-lives // group))
    return sample_draws(
        paradigm,
        [(own_seed, subject, 1) for own_seed in seeds for subject in range(group)],
    )


def sample_draws(
    paradigm: ArenaParadigm, orders: Iterable[tuple[int, int, int]]
) -> Lives:
    """Return the values of all draws in lives in which the subject only waits.
    ``orders`` gives the seed, the subject and the number of trials of each life.
    """
    names = [name for draw in paradigm.specification.draws for name in draw.columns]
    lives = []
    for own_seed, subject, count in orders:
        life = ArenaSubject(paradigm.program, runs.DARKNESS, own_seed, subject)
        lived: list[dict[str, Hashable]] = []
        for _ in range(count):
            if life.begin_trial() is None:
                break
            lived.append({name: life.values[name] for name in names})
            while life.step(STAY)[2] == RUNNING:
                pass
        lives.append(lived)
    return lives


def columns(
    specification: Specification, lives: Lives, beginnings: Lives
) -> Iterator[Column]:
    """Yield the statistics of every column. Draws that are made once per life are
    judged over ``beginnings``.
    """
    answers, compared = (
        answers_of(specification),
        answers_of(specification, compared_only=True),
    )
    for draw in specification.draws:
        for number, name in enumerate(draw.columns):
            possible: list[Hashable] = list(
                dict.fromkeys(row[number] for row in draw.rows)
            )
            fair = len(possible)
            if draw.sample is not None:
                # The draw may take its values from a set of a few members that was
                # drawn before. Guessing one of these members is not foresight.
                possible = [*specification.drawn(name)]
                fair = next(
                    (
                        d.pick
                        for d in specification.draws
                        if d.pick and draw.sample in d.columns
                    ),
                    len(possible),
                )
            lived = beginnings if draw.per == "subject" else lives
            series = [[trial[name] for trial in life] for life in lived if life]
            # Numbers set clocks and counts. They need no balance, unless expressions
            # compare them as they compare names.
            is_name = (
                all(value is None or isinstance(value, str) for value in possible)
                or name in compared
            )
            yield _column(
                name,
                draw.per,
                draw.order,
                name in answers and is_name,
                possible,
                fair,
                series,
            )


def _column(
    name: str,
    per: str,
    order: str,
    is_answer: bool,
    possible: list[Hashable],
    fair: int,
    series: list[list[Hashable]],
) -> Column:
    # If a draw picks several rows, each member of the pick counts.
    counts = [
        Counter(member for value in values for member in _members(value))
        for values in series
    ]
    total: Counter[Hashable] = Counter(
        itertools.chain.from_iterable(count.elements() for count in counts)
    )
    commonest = max(total, key=lambda value: (total[value], str(value)))
    share = runs.rate(
        [(count[commonest], sum(count.values())) for count in counts], runs.Z_MANY
    )
    longest_run = max(
        len(list(run)) for values in series for _, run in itertools.groupby(values)
    )
    foreseen = (
        _best_predictor(series, possible)
        if per == "trial" and len(possible) > 1
        else ("", None)
    )
    return Column(
        name,
        per,
        order,
        is_answer,
        fair,
        str(plain_value(commonest)),
        share,
        longest_run,
        *foreseen,
    )


def _members(value: Hashable) -> Sequence[Hashable]:
    return sorted(value, key=str) if isinstance(value, frozenset) else [value]


def is_unbalanced(column: Column) -> bool:
    """Return whether the most common value is significantly more common than expected,
    and by more than ``TOLERANCE``.
    """
    fair = 1 / column.values
    return column.share.low > fair and column.share.value > fair + TOLERANCE


def is_foreseeable(column: Column) -> bool:
    """Return whether a simple prediction from earlier values is right significantly
    more often than the most common value (or than the fair share, if that is larger),
    and by more than ``TOLERANCE``.
    """
    guess, usual = column.predicted, max(column.share.value, 1 / column.values)
    return guess is not None and guess.low > usual and guess.value > usual + TOLERANCE


# -- guesses from the past


def _another(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    return (
        possible[(possible.index(past[-1]) + 1) % len(possible)]
        if past[-1] in possible
        else past[-1]
    )


def _again(lag: int) -> Predictor:
    return lambda past, possible: past[-lag] if len(past) >= lag else past[-1]


def _most_frequent(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    counts = Counter(past)
    return max(possible, key=lambda value: counts[value])


def _least_frequent(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    counts = Counter(past)
    return min(possible, key=lambda value: counts[value])


def _successor(past: Sequence[Hashable], possible: Sequence[Hashable]) -> Hashable:
    after = Counter(
        later for value, later in itertools.pairwise(past) if value == past[-1]
    )
    return after.most_common(1)[0][0] if after else past[-1]


PREDICTORS: dict[str, Predictor] = {
    "the same again": _again(1),
    "the other one": _another,
    "the most frequent so far": _most_frequent,
    "the least frequent so far": _least_frequent,
    "what usually comes next": _successor,
    **{
        f"the value {lag} trials ago": _again(lag)
        for lag in range(2, LONGEST_CYCLE + 1)
    },
}


def _predict(
    series: Sequence[Sequence[Hashable]],
    possible: Sequence[Hashable],
    predictor: Predictor,
) -> runs.Rate:
    counts: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for life, values in enumerate(series):
        right = sum(
            predictor(values[:n], possible) == values[n] for n in range(1, len(values))
        )
        counts[life] = (right, max(0, len(values) - 1))
    return runs.rate(counts.values(), runs.Z_MANY)


def _best_predictor(
    series: Sequence[Sequence[Hashable]], possible: Sequence[Hashable]
) -> tuple[str, runs.Rate | None]:
    rates = {
        name: _predict(series, possible, predictor)
        for name, predictor in PREDICTORS.items()
    }
    best = max(rates, key=lambda name: (rates[name].low, rates[name].value))
    return (best, rates[best]) if rates[best].trials else ("", None)


# -- leaks: can a draw be predicted from the observation or from the pose on entering a
# state? Guesses are cross-validated over seeds: they are learnt and tested on different
# lives.


#: Number of folds of seeds. The values in each fold are guessed from the other folds.
FOLDS = 5
#: ``FEWEST``: minimum number of entries into a state that allow a judgement.
#: ``FORCED``: number of trials in which states are entered by force.
FEWEST, FORCED = 50, 200
#: If a state is seldom entered, the number of trials is multiplied by at most this.
MOST_TIMES = 16


@dataclass(frozen=True, slots=True)
class Sample:
    """The first entry into a state in one trial."""

    fold: int
    """Number of the fold of seeds to which the life belongs (see ``FOLDS``)."""
    life: int
    observation: str
    pose: int
    cell: int
    heading: int
    values: Mapping[str, Hashable]
    """Values of all draws and of variables in `checks`, by name, as texts."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A guess of a draw: its success rate, and its basis."""

    state: str
    hidden: str
    rate: runs.Rate
    source: str

    def __str__(self) -> str:
        return f"'{self.hidden}' at '{self.state}': {self.rate} from {self.source}"


class _Observer:
    """Takes a sample at the first entry into each state of a trial. The caller clears
    ``entered`` after the trial.
    """

    def __init__(
        self,
        found: dict[str, list[Sample]],
        columns: Sequence[str],
        geometry: Geometry,
        fold: int,
        life: int,
    ) -> None:
        self._found, self._columns, self._geometry, self._fold, self._life = (
            found,
            columns,
            geometry,
            fold,
            life,
        )
        self.entered: set[str] = set()

    def __call__(self, life: ArenaSubject, observation: str) -> None:
        if life.state not in self.entered:
            self.entered.add(life.state)
            cell, heading = (
                self._geometry.cell(life.pose),
                self._geometry.heading(life.pose),
            )
            values = {name: _label(life.values[name]) for name in self._columns}
            sample = Sample(
                self._fold, self._life, observation, life.pose, cell, heading, values
            )
            self._found[life.state].append(sample)


def collect(
    paradigm: ArenaParadigm, view: View, trials: int, seed: int
) -> dict[str, list[Sample]]:
    """Return the samples at the first entry into each state of a trial, by state.

    The subjects know the tables but not the draws. About half of them walk to random
    events. The others walk to any places that may matter, and wait now and then. All
    meet every block of the schedule, judged or not.
    """
    specification, geometry = paradigm.specification, paradigm.program.geometry
    columns = [column for draw in specification.draws for column in draw.columns]
    columns += [
        check.hidden
        for check in specification.document.checks
        if check.hidden not in columns
    ]
    found: dict[str, list[Sample]] = {name: [] for name in specification.states}
    # A fold consists of whole seeds, so that a draw that is balanced over subjects is
    # balanced in each fold.
    per_fold = -(-trials // FOLDS)
    number = 0
    for fold in range(FOLDS):
        for own_seed, subject, count in runs.lives_for(
            specification, per_fold, seed + 1000 * fold
        ):
            number += 1
            chance = random.Random(f"{own_seed}|{subject}|leaks")
            life = ArenaSubject(paradigm.program, view, own_seed, subject)
            # The choice is random rather than alternating, because rows of a draw may
            # alternate over subjects.
            rests = chance.random() < 0.5
            choice = runs.wanderer(chance) if rests else runs.event_random(chance)
            walker = runs.Walker(paradigm.program, choice, everywhere=rests)
            observer = _Observer(found, columns, geometry, fold, number)
            for _ in runs.walk(
                life, walker, specification, count, observer, every_block=True
            ):
                observer.entered.clear()
    return found


def _forced(
    paradigm: ArenaParadigm, view: View, states: Sequence[str], seed: int
) -> dict[str, list[Sample]]:
    """Return samples of states that no run has entered. They are entered by force when
    a trial begins.
    """
    columns = [
        column for draw in paradigm.specification.draws for column in draw.columns
    ]
    found: dict[str, list[Sample]] = {name: [] for name in states}
    orders = runs.lives_for(paradigm.specification, FORCED, seed) if states else ()
    for number, (own_seed, subject, count) in enumerate(orders):
        life = ArenaSubject(paradigm.program, view, own_seed, subject)
        for _ in range(count):
            if life.begin_trial() is None:
                break
            for name in states:
                observer = _Observer(
                    found, columns, paradigm.program.geometry, number % FOLDS, number
                )
                with suppress(ProtocolError):
                    # The state may need values that only a regular entry sets.
                    observer(twin := life.twin(), twin.force(name))
            while life.step(STAY)[2] == RUNNING:
                pass
    return found


def _label(value: object) -> str:
    return str(plain_value(value))


def best_guess(
    samples: Sequence[Sample], state: str, hidden: str
) -> tuple[Guess, Guess]:
    """Return the best guesses of a draw at a state: from the observation, and from the
    pose.
    """
    return _best(samples, state, hidden, _seen(samples)), _best(
        samples, state, hidden, _stands(samples)
    )


def prior(samples: Sequence[Sample], hidden: str) -> float:
    """Return the success rate of always guessing the most frequent value."""
    counts = Counter(sample.values[hidden] for sample in samples)
    return max(counts.values()) / len(samples)


Columns = dict[str, list[Hashable]]


def _seen(samples: Sequence[Sample]) -> dict[str, Columns]:
    """Return the features of the observation that guesses use, in families. Within a
    family, the feature that is best in training is used.
    """
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
    counts: Columns = {
        f"the number of '{c}'": [text.count(c) for text in texts] for c in characters
    }
    return {
        "whole": {"the whole picture": list(texts)},
        "place": places,
        "count": {
            name: column for name, column in counts.items() if len(set(column)) > 1
        },
    }


def _stands(samples: Sequence[Sample]) -> dict[str, Columns]:
    return {
        "pose": {"the pose": [sample.pose for sample in samples]},
        "cell": {"the cell": [sample.cell for sample in samples]},
        "heading": {"the heading": [sample.heading for sample in samples]},
    }


def _best(
    samples: Sequence[Sample], state: str, hidden: str, families: dict[str, Columns]
) -> Guess:
    labels = [sample.values[hidden] for sample in samples]
    guesses = []
    for columns in families.values():
        # A constant column guesses the most frequent value.
        right, source = _cross_validate(
            samples, labels, columns or {"the most frequent value": [0] * len(samples)}
        )
        lives: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for sample, is_right in zip(samples, right, strict=True):
            passed, trials = lives[sample.life]
            lives[sample.life] = (passed + is_right, trials + 1)
        guesses.append(
            Guess(state, hidden, runs.rate(lives.values(), runs.Z_MANY), source)
        )
    # The lower limits of the rates are compared first. This prefers a guess that is
    # significantly above chance to a guess that a few samples favour.
    return max(guesses, key=lambda guess: (guess.rate.low, guess.rate.value))


def _cross_validate(
    samples: Sequence[Sample], labels: Sequence[Hashable], columns: Columns
) -> tuple[list[bool], str]:
    """Return whether each sample is guessed right, and the feature that most folds
    use.
    """
    right = [False] * len(samples)
    used: Counter[str] = Counter()
    members = [
        [number for number, sample in enumerate(samples) if sample.fold == fold]
        for fold in range(FOLDS)
    ]
    whole = {
        name: Counter(zip(column, labels, strict=True))
        for name, column in columns.items()
    }
    for inside in filter(None, members):
        tables = {
            name: whole[name]
            - Counter((column[number], labels[number]) for number in inside)
            for name, column in columns.items()
        }
        best = max(tables, key=lambda name: _hits(tables[name]))
        used[best] += 1
        table, usual = _majority(tables[best])
        for number in inside:
            right[number] = table.get(columns[best][number], usual) == labels[number]
    return right, used.most_common(1)[0][0] if used else ""


def _hits(table: Counter[tuple[Hashable, Hashable]]) -> int:
    best: dict[Hashable, int] = {}
    for (feature, _), count in table.items():
        best[feature] = max(best.get(feature, 0), count)
    return sum(best.values())


def _majority(
    table: Counter[tuple[Hashable, Hashable]],
) -> tuple[dict[Hashable, Hashable], Hashable]:
    """Return the most frequent label for each value of a feature, and overall."""
    best: dict[Hashable, tuple[int, str, Hashable]] = {}
    overall: Counter[Hashable] = Counter()
    for (feature, label), count in table.items():
        overall[label] += count
        best[feature] = max(
            best.get(feature, (0, "", None)), (count, str(label), label)
        )
    usual = (
        max(overall, key=lambda label: (overall[label], str(label)))
        if overall
        else None
    )
    return {feature: label for feature, (_, _, label) in best.items()}, usual


def readable(
    samples: Mapping[str, Sequence[Sample]], names: Sequence[str]
) -> Iterator[Guess]:
    """Yield the draws that can be guessed better than by their most frequent value, at
    each state that has at least ``FEWEST`` samples. The better of two guesses counts:
    from the observation, or from the pose.
    """
    for state, entries in samples.items():
        if len(entries) < FEWEST:
            continue
        for name in names:
            guess = max(
                best_guess(entries, state, name), key=lambda guess: guess.rate.low
            )
            if guess.rate.low > prior(entries, name) + 0.01:
                yield guess


def described(guesses: Sequence[Guess]) -> str:
    return "; ".join(
        f"'{g.hidden}' at '{g.state}': guessed right in {runs.shown(g.rate.value)} from {g.source}"
        for g in guesses
    )


# -- cues: every cue must change the picture from at least one reachable pose, in every
# view


@dataclass(frozen=True, slots=True)
class Cue:
    """A visible item: its name, a scene with it, the same scene without it, and the
    poses from which it may be seen.
    """

    name: str
    present: Scene
    absent: Scene
    poses: Sequence[int]


@dataclass(slots=True)
class Met:
    """Where a look occurs: its first state, and the poses that can be reached while it
    lasts.
    """

    state: str
    poses: set[int] = field(default_factory=set)


def looks(paradigm: ArenaParadigm, trials: int, seed: int) -> dict[LookKey, Met]:
    """Return the looks that a wandering subject meets, each with all poses that can be
    reached while it lasts.
    """
    found: dict[LookKey, Met] = {}
    program = paradigm.program

    def note(life: ArenaSubject, _: str) -> None:
        met = found.setdefault(
            program.states[life.state].read_look(life), Met(life.state)
        )
        _spread(met.poses, life.pose, life.tables.moves)

    for own_seed, subject, count in runs.lives_for(
        paradigm.specification, trials, seed
    ):
        chance = random.Random(f"{own_seed}|{subject}|looks")
        life = ArenaSubject(program, runs.DARKNESS, own_seed, subject)
        walker = runs.Walker(program, runs.wanderer(chance), everywhere=True)
        for _ in runs.walk(
            life, walker, paradigm.specification, count, note, every_block=True
        ):
            pass
    return found


def _spread(poses: set[int], start: int, moves: Sequence[int]) -> None:
    """Add a pose, and all poses that can be reached from it."""
    waiting = [] if start in poses else [start]
    poses.update(waiting)
    while waiting:
        pose = waiting.pop()
        for following in moves[pose : pose + 4]:
            if following not in poses:
                poses.add(following)
                waiting.append(following)


def cues(paradigm: ArenaParadigm, view: View, met: dict[LookKey, Met]) -> Iterator[Cue]:
    """Yield the cues: landmarks, glyphs of zones and solids, and the closed doors,
    shown glyphs and text of each look.
    """
    arena = paradigm.program.geometry.arena
    gallery = Gallery(paradigm.program.geometry, view)
    scenes = [gallery.scene(doors, zones, text) for doors, _, zones, text in met]
    anywhere = sorted(set().union(*(one.poses for one in met.values())))
    canvas = canvas_of(arena)
    for mark in (one for one in arena.landmarks if one.glyph != VOID):
        square = (mark.column - canvas.left, mark.row - canvas.top)
        outside = square_kind(arena, mark.column, mark.row) == VOID
        bare = Tile("void", VOID) if outside else Tile("wall", WALL)
        # Some states may show the landmark as a blank. It must be visible in the states
        # that draw it.
        drawn = (
            scene
            for scene in scenes
            if scene.tiles[square[1]][square[0]].kind == "landmark"
        )
        usual = next(drawn, scenes[0])
        yield Cue(
            f"landmark {mark.name}", usual, _replaced(usual, [square], bare), anywhere
        )
    for name, squares, usual_tile in _drawn(arena):
        present = gallery.scene((), (), ())
        at = [(column - canvas.left, row - canvas.top) for column, row in squares]
        yield Cue(
            f"glyph of {name}", present, _replaced(present, at, usual_tile), anywhere
        )
    yield from _of_states(gallery, met)


def _of_states(gallery: Gallery, met: dict[LookKey, Met]) -> Iterator[Cue]:
    def is_covered(pair: tuple[str, str], glyphs: tuple[tuple[str, str], ...]) -> bool:
        """Return whether a glyph could be seen alone, but others are drawn over all of
        it.
        """
        others = tuple(one for one in glyphs if one != pair)
        none = gallery.scene((), (), ())
        return gallery.scene((), (pair,), ()) != none and gallery.scene(
            (), others, ()
        ) == gallery.scene((), glyphs, ())

    #: Each landmark is searched for from every pose of any look, because in some states
    #: the subject is held facing away from it.
    marks: dict[tuple[str, str], set[int]] = {}
    for (_, _, glyphs, _), one in met.items():
        for pair in (pair for pair in glyphs if pair[0].startswith(LANDMARK)):
            marks.setdefault(pair, set()).update(one.poses)
    for (closed, _, glyphs, text), one in met.items():
        state, poses = one.state, sorted(one.poses)
        whole = gallery.scene(closed, glyphs, text)
        for door in sorted(closed):
            yield Cue(
                f"{door} closed at '{state}'",
                whole,
                gallery.scene(closed - {door}, glyphs, text),
                poses,
            )
        for pair in glyphs:
            without = tuple(other for other in glyphs if other[0] != pair[0])
            name = pair[0].removeprefix(LANDMARK)
            if name != pair[0] and pair[1] != VOID:
                # Without the item, the landmark's usual glyph may look the same, so
                # show a blank.
                without = (*without, (pair[0], VOID))
            around = sorted(marks.get(pair, poses))
            if pair[1] == FLOOR and is_covered(pair, glyphs):
                continue  # Plain floor says that nothing is there.
            yield Cue(
                f"'{pair[1]}' on {name} at '{state}'",
                whole,
                gallery.scene(closed, without, text),
                around,
            )
        if text:
            yield Cue(
                f"text of '{state}'", whole, gallery.scene(closed, glyphs, ()), poses
            )


def square_kind(arena: Arena, column: int, row: int) -> str:
    inside = 0 <= row < len(arena.kinds) and 0 <= column < len(arena.kinds[0])
    return arena.kind((column, row)) if inside else VOID


def _drawn(arena: Arena) -> Iterator[tuple[str, list[Square], Tile]]:
    """Yield the zones and solids that have their own glyph, each with its squares and
    the usual tile of its kind.

    Where zones overlap, a square belongs to the smallest of them.
    """
    owners: dict[Square, str] = {}
    for name in sorted(
        arena.zones, key=lambda name: len(arena.zones[name]), reverse=True
    ):
        owners |= {arena.cells[cell]: name for cell in arena.zones[name]}
    owners |= {square: name for name, solid in arena.solids.items() for square in solid}
    drawn: dict[str, list[Square]] = {}
    for square, glyph in arena.glyphs.items():
        name = owners.get(square, "")
        if name not in arena.doors and glyph != (
            WALL if name in arena.solids else FLOOR
        ):
            drawn.setdefault(name, []).append(square)
    for name, squares in drawn.items():
        yield (
            name,
            squares,
            Tile("wall", WALL) if name in arena.solids else Tile("floor", FLOOR),
        )


def _replaced(scene: Scene, squares: Sequence[tuple[int, int]], tile: Tile) -> Scene:
    rows = [list(row) for row in scene.tiles]
    for column, row in squares:
        rows[row][column] = tile
    return Scene(tuple(map(tuple, rows)), scene.text)


def visible_cues(
    paradigm: ArenaParadigm, view: View, met: dict[LookKey, Met], chance: random.Random
) -> dict[str, bool]:
    """Return for each cue whether the view shows it in at least one of its looks. One
    is enough, because a subject may be placed facing away.
    """
    seen: dict[str, bool] = {}
    for cue in cues(paradigm, view, met):
        if not seen.get(cue.name):
            seen[cue.name] = is_visible(paradigm, view, cue, chance)
    return seen


def is_visible(
    paradigm: ArenaParadigm, view: View, cue: Cue, chance: random.Random
) -> bool:
    """Return whether at least one pose shows a difference."""
    # Most cues are visible from nearly everywhere, so a random order needs few poses.
    poses = chance.sample(cue.poses, len(cue.poses))
    return any(seen_from(paradigm, view, cue, pose) for pose in poses)


def seen_from(paradigm: ArenaParadigm, view: View, cue: Cue, pose: int) -> bool:
    """Return whether the cue, seen from a pose, looks different from its absence."""
    geometry = paradigm.program.geometry
    canvas = canvas_of(geometry.arena)
    column, row = geometry.arena.cells[geometry.cell(pose)]
    here = (column - canvas.left, row - canvas.top, geometry.heading(pose))
    return rendered(view, cue.present, *here) != rendered(view, cue.absent, *here)
