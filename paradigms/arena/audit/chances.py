"""Audits chance: the pass rates of uniform, event-driven and blind policies, and how
the step limit changes the uniform policy's rate.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from cheesebench.interfaces import (
    ACTION_LETTERS,
    STAY,
    AuditFinding,
    AuditSettings,
    AuditVerdict,
)
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena.audit import policies, runs
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.protocol import Specification
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.specification import ReferenceSpec
from cheesebench.statistics.wording import plural

#: ``CEILING``: default limit of the success rate of blind policies.
#: ``HIGHEST_CEILING``: highest limit that the protocol may justify.
CEILING, HIGHEST_CEILING = 0.25, 0.5
#: ``SEMIFINAL``: number of the best policies that are run again on other lives.
#: ``FINAL``: number of the best of these, which then get all trials.
SEMIFINAL, FINAL = 8, 3
#: Policies that are in the final of a verdict about a measure, whatever the luck of the
#: others: random actions, and doing nothing.
SEEDED = ("uniform", policies.CYCLE + policies.spelt([STAY]))
#: Minimum number of fixed cycles to try, however short the audit.
FEWEST_CYCLES = 40
#: The search for a fixed string of actions. It makes one starting string, and one more
#: for every ``PER_BEGINNING`` trials of the audit. It makes one generation, and one
#: more for every ``PER_GENERATION`` trials. ``PARENTS``: strings that survive a
#: generation. ``OFFSPRING``: strings made from the survivors.
PER_BEGINNING, PER_GENERATION, PARENTS, OFFSPRING = 30, 100, 4, 16
#: From this many judged trials on, a rate near the limit is ok.
FEWEST_JUDGED = 100
#: How far the best rate found may lie above a limit that its interval contains.
TOLERANCE = 0.05
BLIND = Lesion.parse("blind")
#: Beginning of a finding without judged trials.
NOT_JUDGED = "not judged"
#: Distance between the seeds of the parts of an audit.
APART = 1_000_000


def ceiling(specification: Specification) -> tuple[float, str]:
    """Return the highest rate that a blind policy may reach, and the reason.

    It is the largest of three rates, but at most ``HIGHEST_CEILING``: the default, the
    highest chance of a hidden choice in `checks`, and the lowest rate that `construct`
    allows without the picture or a part of it (such as a cue that is visible from the
    start).
    """
    stated = [
        (one.chance, f"the chance of '{one.hidden}' in `checks`")
        for one in specification.document.checks
    ]
    if (construct := specification.construct) is not None:
        lacking = [
            (most, lesion)
            for lesion, most in construct.abolished_by
            if BLIND.leaves_no_more_than(lesion)
        ]
        if lacking:
            most, lesion = min(lacking)
            stated.append((most, f"what '{lesion}' leaves, in `construct`"))
    most, why = max(stated, default=(CEILING, ""), key=lambda one: one[0])
    if most > HIGHEST_CEILING:
        return HIGHEST_CEILING, f"{why}: {runs.shown(most)}, more than a ceiling may be"
    return (most, why) if most > CEILING else (CEILING, "the default ceiling")


def blind_remedy(specification: Specification, most: float, reached: float) -> str:
    """Return the remedy for a blind policy that succeeds in ``reached`` of the trials,
    more than ``most``.
    """
    varied = [
        one
        for one in specification.draws
        if one.per == "trial" and (one.sample or len(set(one.rows)) > 1)
    ]
    drawn = [name for draw in varied for name in draw.columns]
    if not drawn:
        return _remedy_for_what_stays(specification, most)
    if most < HIGHEST_CEILING and reached <= HIGHEST_CEILING + TOLERANCE:
        state, hidden = hidden_choice(specification)
        if hidden is None:
            lesion = "abolished_by: [{lesion: {hide: CUE}, at_most: 0.5}]"
            return (
                "If success is a choice of two whose cue is visible, state the rate that remains without the cue: "
                f"'construct: {{name: NAME, {lesion}}}' sets the ceiling to .50"
            )
        return f"If success is a hidden choice of two, add {_check(state, hidden)}"
    return f"Let success depend on what is drawn for each trial ({', '.join(drawn[:3])}), so that fixed actions rarely succeed"


def _remedy_for_what_stays(specification: Specification, most: float) -> str:
    """Return the remedy where nothing is drawn for each trial: what is right may stay
    by design for a subject or a block (a reversal, say).
    """
    anew = "raw what decides success anew for each trial ('draw', 'per: trial'), so that fixed actions rarely succeed"
    state, hidden = hidden_choice(specification)
    if hidden is None or most >= HIGHEST_CEILING:
        return f"D{anew}"
    return f"If '{hidden}' stays by design (as in a reversal), add {_check(state, hidden)}; otherwise d{anew}"


def _check(state: str, hidden: str) -> str:
    return f"'checks: [{{at: {state}, hidden: {hidden}, chance: 0.5}}]', which sets the ceiling to .50"


def hidden_choice(specification: Specification) -> tuple[str, str | None]:
    """Return a state that may end the trial, and a column that the rules of this state
    (or 'success') read and its `show` does not name.

    Return an empty name and None if no state has such a column (its cue is visible).
    """
    varied = _varied(specification)
    states = specification.states.values()
    # Where no rule ends the trial, 'finish' or the limit does, in any state.
    ending = [one for one in states if any(rule.end for rule in one.rules)]
    for state in ending or states:
        shown_here = {
            place.name for pair in state.show for place in pair if place.variable
        }
        for rule in state.rules:
            trees = [rule.guard, rule.effects.reward, specification.success]
            unseen = (_read(trees, rule.target) & varied) - shown_here
            if hidden := [name for name in specification.columns if name in unseen]:
                return state.name, hidden[0]
    return "", None


def _varied(specification: Specification) -> set[str]:
    """Return the columns of draws that have different rows, or sample."""
    return {
        name
        for one in specification.draws
        if one.sample or len(set(one.rows)) > 1
        for name in one.columns
    }


def _read(trees: Iterable[Any], target: Any) -> set[str]:
    """Return the columns and variables that occur in expressions, or give the place of
    a rule.
    """
    nodes = (node for tree in trees for node in ex.walk(tree))
    read = {node.name for node in nodes if isinstance(node, ex.Variable)}
    return read | {target.name} if target is not None and target.variable else read


def audit_chances(
    paradigm: ArenaParadigm,
    settings: AuditSettings,
    runner: runs.Runner,
    chances: list[runs.Tally],
) -> Iterator[AuditFinding]:
    trials, seed, document = (
        settings.trials,
        settings.seed,
        paradigm.specification.document,
    )
    (uniform,) = runner.run([runs.Order("uniform", trials, seed)])
    chances.append(uniform)
    measured = uniform.rate()
    of_measure = _of_measure(uniform, paradigm.specification)
    yield AuditFinding(
        "chance: uniform", "note", _of_trials(uniform) + of_measure, measured.numbers()
    )
    stated = document.chance
    if document.success is None:
        pass  # `chance` is a pass rate, which reports of this protocol do not have.
    elif not measured.trials:
        yield AuditFinding(
            "chance: as stated", "note", _of_trials(uniform), measured.numbers()
        )
    elif stated is None:
        lines = f"chance: {{value: {measured.value:.4g}, trials: {measured.trials}, how: ...}}"
        text = f"no chance is stated; write {lines}"
        yield AuditFinding("chance: as stated", "note", text, measured.numbers())
    else:
        wrong = runs.differ(measured, stated.value * stated.trials, stated.trials)
        text = f"stated {runs.shown(stated.value)} of {stated.trials} trials, measured {measured}"
        numbers = measured.numbers() | {
            "stated": stated.value,
            "stated_trials": stated.trials,
        }
        yield AuditFinding(
            "chance: as stated", "FAIL" if wrong else "ok", text, numbers
        )
    name = "event-random"
    tally = runs.walk_subjects(
        paradigm,
        name,
        runs.event_random,
        runs.Order(name, max(1, trials // 2), seed + APART),
    )
    chances.append(tally)
    of_measure = _of_measure(tally, paradigm.specification)
    yield AuditFinding(
        f"chance: {name}",
        "note",
        _of_trials(tally) + of_measure,
        tally.rate().numbers(),
    )


def _of_measure(tally: runs.Tally, specification: Specification) -> str:
    """Return the mean of the verdict's measure in words, or an empty string if the
    verdict is about successes, or there is no value.
    """
    about = specification.judged
    if about is None or (found := runs.mean_of(tally.means, about)) is None:
        return ""
    mean, low, high = found
    asked = runs.asked_in_words(about)
    return (
        f"; mean {about.measure} {mean:.3g} [{low:.3g}, {high:.3g}], the verdict asks"
        f" for {asked}"
    )


def _of_trials(tally: runs.Tally) -> str:
    rate = tally.rate()
    if rate.trials:
        return f"{rate} of {rate.trials} trials"
    return f"{NOT_JUDGED}: the estimand counts none of the {tally.outcomes.total()} trials of complete lives"


def under(finalists: Sequence[runs.Tally], most: float) -> tuple[AuditVerdict, str]:
    """Return whether the best policies stay under a limit, as a verdict, and a remark.
    If there were too few trials, the remark says how many are needed.
    """
    rates = [tally.rate(runs.Z99) for tally in finalists]
    if any(rate.low > most for rate in rates):
        return "FAIL", ""
    near = [rate for rate in rates if rate.high > most]
    fewest = min([FEWEST_JUDGED, *(rate.trials for rate in near)])
    if fewest < FEWEST_JUDGED:
        text = (
            f"; {NOT_JUDGED}: after {plural(fewest, 'judged trial')} the rate may still be above the limit;"
            f" at least {FEWEST_JUDGED} are needed"
        )
        return "note", f"{text} (raise --trials)"
    return _above(near, most)


def _above(rates: Sequence[runs.Rate], most: float) -> tuple[AuditVerdict, str]:
    """Return whether a rate is above a limit that its interval contains, as a verdict,
    and a remark.
    """
    above = [rate for rate in rates if rate.value > most + TOLERANCE]
    if not above:
        return "ok", ""
    needed = max(_settling(rate, most) for rate in above)
    text = "; the best found is above the limit, but its interval is wide: audit with"
    return "undecided", f"{text} --trials {needed} or more"


def _settling(rate: runs.Rate, most: float) -> int:
    """Return about how many trials give an interval that is above the limit, in
    hundreds, if the rate stays. The half more is for the luck of the search.
    """
    narrower = (rate.value - rate.low) / (rate.value - most)
    return 100 * math.ceil(1.5 * rate.trials * narrower**2 / 100)


def audit_blind(
    paradigm: ArenaParadigm,
    settings: AuditSettings,
    runner: runs.Runner,
    chances: list[runs.Tally],
) -> Iterator[AuditFinding]:
    specification = paradigm.specification
    entered = enter(settings, runner)
    finalists = contest(entered, settings, runner, chances, _by_rate)
    best = finalists[0]
    most, reason = ceiling(specification)
    verdict, unsettled = under(finalists, most)
    if specification.document.success is None and verdict != "ok":
        verdict = "note"  # The protocol judges a mean, not single trials.
    rate, tried = (
        best.rate(runs.Z99),
        sum(
            tally.name in policies.judged() or tally.name.startswith(policies.CYCLE)
            for tally in chances
        ),
    )
    text = f"best of {tried} policies: {best.name} {rate}; ceiling {runs.shown(most)} ({reason}){unsettled}"
    if verdict == "FAIL":
        text += f". {blind_remedy(specification, most, rate.value)}"
    numbers = rate.numbers() | {
        "policy": best.name,
        "ceiling": most,
        "policies": tried,
        "finalists": {
            tally.name: tally.rate(runs.Z99).numbers() for tally in finalists
        },
    }
    yield AuditFinding("blind ceiling", verdict, text, numbers)
    about = specification.judged
    if about is not None and about.better is not None:
        by_measure = contest(
            entered, settings, runner, [], _by_measure(about), always=SEEDED
        )
        yield _under_the_measure(about, by_measure)
    else:
        yield from _under_the_rodent(specification, best)


def _under_the_measure(
    about: ReferenceSpec, finalists: Sequence[runs.Tally]
) -> AuditFinding:
    """Return the finding on whether a blind policy surely passes the verdict on a
    measure.
    """
    name, asked = "blind, below the rodent", runs.asked_in_words(about)
    verdict: AuditVerdict = "ok"
    numbers: dict[str, object] = {}
    parts = []
    for tally in finalists:
        if (found := runs.mean_of(tally.means, about, runs.Z99)) is None:
            continue
        mean, low, high = found
        numbers[tally.name] = {"mean": mean, "low": low, "high": high}
        parts.append(f"{tally.name} {mean:.3g} [{low:.3g}, {high:.3g}]")
        if runs.is_beyond(low, high, about):
            verdict = "FAIL"
        elif verdict == "ok" and runs.is_beyond(mean, mean, about):
            verdict = "undecided"
    if not parts:
        return AuditFinding(
            name, "note", f"no trial has a value of {about.measure}", {}
        )
    text = f"mean {about.measure}, with 99 % intervals: {', '.join(parts)}; the verdict asks for {asked}"
    if verdict == "FAIL":
        text += (
            ". A subject that sees nothing passes: change the measure or the task so"
            " that fixed actions do not reach it"
        )
    elif verdict == "undecided":
        text += "; a mean passes, but its interval is wide: raise --trials"
    return AuditFinding(name, verdict, text, numbers)


def _under_the_rodent(
    specification: Specification, best: runs.Tally
) -> Iterator[AuditFinding]:
    reference = specification.reference
    if reference is None:
        yield AuditFinding(
            "blind, below the rodent", "note", "there is no reference for 'success'", {}
        )
        return
    rate, most = best.rate(runs.Z99), reference.value - specification.document.margin
    verdict, unsettled = under([best], most)
    text = f"{best.name} {rate}; the rodent {runs.shown(reference.value)} less the margin is {runs.shown(most)}{unsettled}"
    numbers = rate.numbers() | {
        "policy": best.name,
        "reference": reference.value,
        "most": most,
    }
    yield AuditFinding("blind, below the rodent", verdict, text, numbers)


#: How well a policy does. The best has the largest.
Merit = Callable[[runs.Tally], float]


def _by_rate(tally: runs.Tally) -> float:
    return tally.rate().value


def _by_measure(about: ReferenceSpec) -> Merit:
    """Return how near a policy comes to what the verdict asks of the mean of its
    measure, or how far it goes beyond it.
    """

    def merit(tally: runs.Tally) -> float:
        if (found := runs.mean_of(tally.means, about)) is None:
            return -math.inf
        signed = {"higher": found[0], "lower": -found[0]}
        return signed.get(about.better or "", -abs(found[0] - about.value))

    return merit


def enter(settings: AuditSettings, runner: runs.Runner) -> list[runs.Tally]:
    """Return the tallies of all policies that are known by name, in few trials."""
    trials, seed = settings.trials, settings.seed
    orders = [
        runs.Order(name, max(16, trials // 6), seed + 2 * APART)
        for name in policies.judged()
    ]
    orders += [
        runs.Order(name, _few(settings), seed + 2 * APART)
        for name in policies.cycles(seed, max(FEWEST_CYCLES, trials // 4))
    ]
    report = settings.progress or (lambda _: None)
    return runner.run(
        orders, lambda done: report(f"blind policies {done} of {len(orders)}")
    )


def _few(settings: AuditSettings) -> int:
    """Return the number of trials of a fixed cycle. It does not learn, so a few trials
    of every subject are as informative as complete lives.
    """
    return max(16, settings.trials // 40)


def contest(
    entered: Sequence[runs.Tally],
    settings: AuditSettings,
    runner: runs.Runner,
    chances: list[runs.Tally],
    merit: Merit,
    always: Sequence[str] = (),
) -> list[runs.Tally]:
    """Return the best blind policies, best first, and those named in ``always``. Their
    rates come from lives that were not used to select them. The tallies of the first
    and the last round are added to ``chances``.
    """
    trials, seed = settings.trials, settings.seed
    report = settings.progress or (lambda _: None)
    report("search for a blind string of actions")
    first = [*entered, *climb(entered, settings, runner, _few(settings), merit)]
    chances += first
    names = [tally.name for tally in _ranked(first, merit)[:SEMIFINAL]]
    report("the best blind policies again, on other subjects")
    second = runner.run(
        [runs.Order(name, max(32, trials // 4), seed + 3 * APART) for name in names]
    )
    names = [tally.name for tally in _ranked(second, merit)[:FINAL]]
    final = runner.run(
        [
            runs.Order(name, trials, seed + 4 * APART)
            for name in dict.fromkeys([*names, *always])
        ]
    )
    chances += final
    return _ranked(final, merit)


def climb(
    first: Sequence[runs.Tally],
    settings: AuditSettings,
    runner: runs.Runner,
    trials: int,
    merit: Merit,
) -> list[runs.Tally]:
    """Improve fixed strings by hill climbing with bounded effort, from good and random
    starts.
    """
    chance, seed = random.Random(f"{settings.seed}|climb"), settings.seed + 2 * APART
    strings = policies.variations(settings.seed)
    names = [
        policies.CYCLE + policies.spelt(next(strings))
        for _ in range(1 + settings.trials // PER_BEGINNING)
    ]
    found = runner.run([runs.Order(name, trials, seed) for name in names])
    best = _ranked(
        [*found, *(tally for tally in first if tally.name.startswith(policies.CYCLE))],
        merit,
    )[:PARENTS]
    for generation in range(1 + settings.trials // PER_GENERATION):
        parents = [
            [
                ACTION_LETTERS.index(letter)
                for letter in tally.name.removeprefix(policies.CYCLE)
            ]
            for tally in best
        ]
        names = [tally.name for tally in best]
        names += [
            policies.CYCLE
            + policies.spelt(policies.mutated(chance.choice(parents), chance))
            for _ in range(OFFSPRING)
        ]
        # Each generation is run on other lives, because the best strings of the last
        # one were partly lucky.
        orders = [
            runs.Order(name, 2 * trials, seed + 1000 * (generation + 1))
            for name in dict.fromkeys(names)
        ]
        best = _ranked(runner.run(orders), merit)[:PARENTS]
    return best


def _ranked(tallies: Sequence[runs.Tally], merit: Merit = _by_rate) -> list[runs.Tally]:
    """Return the tallies sorted, best first. Among equals the mean reward decides,
    because it may indicate partial solutions.
    """
    return sorted(
        tallies,
        key=lambda tally: (
            -merit(tally),
            -tally.reward / max(1, tally.outcomes.total()),
        ),
    )


def audit_limit(
    paradigm: ArenaParadigm, settings: AuditSettings, runner: runs.Runner
) -> Iterator[AuditFinding]:
    limit = paradigm.specification.limit
    if not isinstance(limit, int):
        yield AuditFinding(
            "step limit",
            "note",
            f"the limit is the variable '{limit}', so it was not varied",
            {},
        )
        return
    trials = max(16, settings.trials // 2)
    limits = (max(1, limit // 2), limit, 2 * limit)
    tallies = runner.run(
        [runs.Order("uniform", trials, settings.seed, steps) for steps in limits]
    )
    rates = {steps: tally.rate() for steps, tally in zip(limits, tallies, strict=True)}
    text = "; ".join(
        f"{plural(steps, 'step')}: uniform {runs.shown(rate.value)}"
        for steps, rate in rates.items()
    )
    numbers = {str(steps): rate.numbers() for steps, rate in rates.items()}
    yield AuditFinding("step limit", "note", text, numbers)
