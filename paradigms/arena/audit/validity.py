"""Rules on the task itself: solvable, nothing leaks, draws are fair, reward agrees with success, cues are seen."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence

from cheesebench.interfaces import AuditFinding, AuditSettings, AuditVerdict, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import draws, leaks, visibility
from cheesebench.paradigms.arena.audit.chances import APART, NOT_JUDGED, Chances
from cheesebench.paradigms.arena.audit.numbers import shown
from cheesebench.paradigms.arena.audit.rewards import EQUAL, Solutions, Temptation, solve_subjects, temptations
from cheesebench.paradigms.arena.audit.runs import Tally

#: Share of trials that somebody who knows everything must solve.
SOLVABLE = 0.99
#: Fewest lives over which draws that hold for life are judged.
BEGINNINGS = 400
#: Fewest trials in which looks are met: what a subject is put down to look at once is not seen by all.
FEWEST_LOOKS = 64
#: Most of what is listed in one sentence.
MANY = 6


def audit_solvable(paradigm: ArenaParadigm, settings: AuditSettings) -> Iterator[AuditFinding]:
    """Yield whether a solver with full knowledge succeeds, and how fast."""
    found = solve_subjects(paradigm, max(16, settings.trials // 10), settings.seed + 5 * APART)
    if not found.trials:
        text = f"{NOT_JUDGED}: the estimand counts none of {found.lived} trials, even over complete subjects"
        yield AuditFinding("solvable", "FAIL", text, {"trials": 0, "lived": found.lived})
        return
    share, in_half = found.solved / found.trials, found.in_half / found.trials
    fails = in_half < SOLVABLE
    text = f"{shown(share)} of {found.trials} trials solved, {shown(in_half)} within half of the limit"
    if found.in_half_with_clocks < found.in_half:
        text += " (waiting for the protocol's clocks not counted)"
    if found.unsolved:
        text += f"; not: {found.unsolved}"
    if not found.solved and found.failures:
        outcome, times = found.failures.most_common(1)[0]
        text += f"; success never held; the outcome was '{outcome}' in {times} of {found.trials}"
    numbers: dict[str, object] = {"solved": share, "in_half": in_half, "trials": found.trials}
    yield AuditFinding("solvable", "FAIL" if fails else "ok", text, numbers)
    if found.latencies:
        yield _latencies(found)


def _latencies(found: Solutions) -> AuditFinding:
    least, median, most = min(found.latencies), statistics.median(found.latencies), max(found.latencies)
    text = f"shortest solutions: {least} to {most} steps, median {median:g}"
    return AuditFinding("latency of the solver", "note", text, {"least": least, "median": median, "most": most})


def audit_leaks(paradigm: ArenaParadigm, views: Sequence[View], settings: AuditSettings) -> Iterator[AuditFinding]:
    """Yield whether what `checks` calls hidden can be guessed, in each view and from the pose; and what else can."""
    checks = paradigm.specification.document.checks
    if not checks:
        yield AuditFinding("leak", "note", "`checks` is empty: nothing is declared hidden", {})
    for view in views:
        if settings.progress:
            settings.progress(f"leaks in {view.name}")
        samples = leaks.collect(paradigm, view, max(100, settings.trials // 3), settings.seed + 6 * APART)
        for check in checks:
            rule = f"leak: {check.hidden} at {check.at}, {view.name}"
            entries = samples[check.at]
            if len(entries) < leaks.FEWEST:
                text = f"'{check.at}' was entered in only {len(entries)} trials: too few to judge"
                yield AuditFinding(rule, "note", text, {"entries": len(entries)})
                continue
            yield _judged_leak(rule, check.chance, leaks.best_guess(entries, check.at, check.hidden))
        yield from _undeclared(paradigm, view, samples)


def _judged_leak(rule: str, chance: float, guesses: tuple[leaks.Guess, leaks.Guess]) -> AuditFinding:
    worst = max(guesses, key=lambda guess: guess.rate.low)
    seen, stood = guesses
    text = f"guessed {worst.rate} from {worst.source}; chance {shown(chance)}"
    numbers: dict[str, object] = {"chance": chance, "seen": seen.rate.numbers(), "pose": stood.rate.numbers()}
    return AuditFinding(rule, "FAIL" if worst.rate.low > chance + 1e-9 else "ok", text, numbers)


def _undeclared(paradigm: ArenaParadigm, view: View, samples: dict[str, list[leaks.Sample]]) -> Iterator[AuditFinding]:
    checked = {(check.at, check.hidden) for check in paradigm.specification.document.checks}
    names = [name for draw in paradigm.specification.draws for name in draw.columns]
    unchecked = [guess for guess in leaks.readable(samples, names) if (guess.state, guess.hidden) not in checked]
    numbers: dict[str, object] = {f"{guess.state}/{guess.hidden}": guess.rate.value for guess in unchecked}
    text = leaks.described(unchecked[:MANY]) + (f"; and {len(unchecked) - MANY} more" if len(unchecked) > MANY else "")
    yield AuditFinding(f"shown, {view.name}", "note", text or "no draw can be guessed anywhere", numbers)


def audit_draws(paradigm: ArenaParadigm, settings: AuditSettings) -> Iterator[AuditFinding]:
    """Yield whether answers are balanced, and cannot be predicted from earlier ones."""
    specification = paradigm.specification
    if not specification.draws:
        yield AuditFinding("draws", "note", "nothing is drawn", {})
        return
    lives = draws.sample_draws(paradigm, settings.trials, settings.seed + 7 * APART)
    beginnings = draws.sample_beginnings(paradigm, max(BEGINNINGS, settings.trials // 4), settings.seed + 8 * APART)
    for column in draws.columns(specification, lives, beginnings):
        numbers: dict[str, object] = {
            "per": column.per, "order": column.order, "answer": column.is_answer, "values": column.values,
            "commonest": column.commonest, "share": column.share.value, "longest_run": column.longest_run,
            "other_one": column.other_one, "best_predictor": column.best_predictor,
            "predicted": column.predicted.value if column.predicted else None,
        }  # fmt: skip
        unbalanced, foreseen = draws.is_unbalanced(column), draws.is_foreseeable(column)
        bad: AuditVerdict = "FAIL" if column.is_answer else "note"
        verdict: AuditVerdict = bad if unbalanced or foreseen else "ok"
        yield AuditFinding(f"draw: {column.name}", verdict, _about(column, unbalanced, foreseen), numbers)


def _about(column: draws.Column, unbalanced: bool, foreseen: bool) -> str:
    fair = shown(1 / column.values)
    parts = [f"{column.values} values per {column.per}; commonest {column.commonest} {shown(column.share.value)}"]
    if unbalanced:
        parts[0] += f", UNBALANCED (fair: {fair})"
    if column.per == "trial":
        parts.append(f"longest run {column.longest_run}")
    if column.other_one is not None:
        parts.append(f"'the other one' is right {shown(column.other_one)}")
    if column.predicted is not None:
        parts.append(f"best guess, {column.best_predictor}, {shown(column.predicted.value)}")
        if foreseen:
            parts[-1] += " FORESEEABLE"
    return "; ".join(parts)


def audit_rewards(paradigm: ArenaParadigm, settings: AuditSettings, chances: Chances) -> Iterator[AuditFinding]:
    """Yield whether anything earns more by failing than by succeeding."""
    found = list(temptations(paradigm, max(8, settings.trials // 80), settings.seed + 9 * APART))
    worst = max(found, key=lambda one: one.gain)
    solved = [one.success.reward for one in found if one.success]
    most = max([*solved, *(tally.best_success for tally in chances.all)], default=-math.inf)
    least = min([*solved, *(tally.least_success for tally in chances.all)], default=math.inf)
    blind = max(chances.all, key=lambda tally: tally.best_failure, default=Tally("nobody"))
    numbers: dict[str, object] = {
        "best_success": _finite(most), "least_success": _finite(least),
        "best_blind_failure": _finite(blind.best_failure), "policy": blind.name, "gain": _finite(worst.gain),
    }  # fmt: skip
    if not math.isfinite(most):
        yield AuditFinding("reward and success", "note", "no trial was a success", numbers)
    elif worst.gain > EQUAL:
        yield AuditFinding("reward and success", "FAIL", _tempting(worst), numbers)
    elif blind.best_failure > most + EQUAL:
        text = f"{blind.name} earns {blind.best_failure:g} in a failed trial; the best success earns {most:g}"
        yield AuditFinding("reward and success", "FAIL", text, numbers)
    else:
        yield AuditFinding("reward and success", "ok", _agreeing(found, most, least, blind.best_failure), numbers)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _tempting(worst: Temptation) -> str:
    assert worst.failure is not None
    assert worst.success is not None
    plan = ", ".join(" ".join(filter(None, move)) for move in worst.failure.moves[:MANY])
    more = " ..." if len(worst.failure.moves) > MANY else ""
    return (
        f"{worst.where}: failing earns {worst.failure.reward:g} ({plan}{more}; found by {worst.how}), "
        f"succeeding {worst.success.reward:g}"
    )


def _agreeing(found: Sequence[Temptation], most: float, least: float, blind: float) -> str:
    failure = max([blind, *(one.failure.reward for one in found if one.failure)])
    text = f"failing never pays more; successes earn {least:g} to {most:g}, failures at most {failure:g}"
    if abs(failure - least) < EQUAL and abs(most - least) < EQUAL:
        return f"every trial earns the same, {most:g}, whether it succeeds or fails"
    if failure > least + EQUAL:
        text += " (a slow or wasteful success can earn less than a failure elsewhere)"
    return text


def audit_cues(paradigm: ArenaParadigm, views: Sequence[View], settings: AuditSettings) -> Iterator[AuditFinding]:
    """Yield whether every cue can be seen in every view."""
    met = visibility.looks(paradigm, max(FEWEST_LOOKS, settings.trials // 20), settings.seed + 10 * APART)
    for view in views:
        if settings.progress:
            settings.progress(f"cues in {view.name}")
        chance = random.Random(f"{settings.seed}|{view.name}|cues")
        seen: dict[str, bool] = {}
        for cue in visibility.cues(paradigm, view, met):
            # One that comes in several looks need be seen in one of them: a subject may have been put down facing away.
            if not seen.get(cue.name):
                seen[cue.name] = visibility.is_visible(paradigm, view, cue, chance)
        hidden = [name for name, visible in seen.items() if not visible]
        text = f"all {len(seen)} cues are visible"
        if hidden:
            more = f" and {len(hidden) - MANY} more" if len(hidden) > MANY else ""
            text = f"shown no differently from their absence: {', '.join(hidden[:MANY])}{more}"
        numbers: dict[str, object] = {"cues": len(seen), "hidden": hidden}
        yield AuditFinding(f"cues, {view.name}", "FAIL" if hidden else "ok", text, numbers)
    if paradigm.specification.goal_visible:
        text = "a rewarded place is drawn unlike its neighbours, so the map shows the goal"
        yield AuditFinding("goal visible", "note", text, {})
