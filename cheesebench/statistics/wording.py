"""The sentences that explain a verdict to a reader who has not seen one before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from cheesebench.amounts import number, per_hundred, percent, points, rounded, signed
from cheesebench.interfaces import Value
from cheesebench.records import CellCalls, CellPlan, ReferenceValue
from cheesebench.statistics.by_answer import ByAnswer
from cheesebench.statistics.question import animals_interval, scale_of
from cheesebench.statistics.sample import Sample
from cheesebench.statistics.summary import CellResult, ClassShares, Game, Verdict

#: Phrases for the better side of a measure.
BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "alike": "closer to the animals is better",
}
NO_SUCCESS_DECLARED = (
    "The protocol declares no success, so there is no pass rate to compare."
)


def no_value(plan: CellPlan) -> str:
    """Return the reason for a cell without any value that a verdict could be about."""
    if plan.measured is None:
        return NO_SUCCESS_DECLARED
    return f"The verdict is about '{plan.measured.name}', which has no value in any trial that counts."


def beyond_range(plan: CellPlan, outside: int) -> Iterator[str]:
    """Yield a warning if values of the judged measure lie beyond the range that the
    protocol declares.
    """
    if outside and plan.measured is not None:
        low, high = map(number, plan.measured.range)
        values = f"{plural(outside, 'value')} of {plan.measured.name}"
        yield f"{values} beyond its range of {low} to {high}: counted as the end of the range"


#: The built-in agent that picks each action at random.
AT_RANDOM = "random"
#: A measure with a range of at least this width is hardly a share, which is from 0 to
#: 1.
NO_SHARE = 50.0


def passed_at_random(cell: CellResult) -> Iterator[str]:
    """Yield a warning if the random agent passes. The warning asks about units if the
    mean is from 0 to 1 although the range is wide.
    """
    plan, measured = cell.plan, cell.plan.measured
    if cell.verdict is not Verdict.PASS or plan.against != "reference":
        return
    if plan.model != AT_RANDOM or plan.agent:
        return
    text = "random actions pass, and a protocol that they pass measures nothing"
    if measured is not None and cell.judged is not None:
        low, high = measured.range
        if 0 <= cell.judged.mean <= 1 and high - low >= NO_SHARE:
            text += (
                f" (a mean {measured.name} of {number(cell.judged.mean)} in a range of {number(low)} to {number(high)}: "
                "are measure, range and animals in one unit?)"
            )
    yield text


def sample_size(sample: Sample) -> str:
    """Return the sample size in its standard form: ``10 subjects x 20 trials (200/200
    valid)``.
    """
    lengths = sorted({one.entered for one in sample.per_subject}) or [
        sample.absent_trials
    ]
    per_subject = (
        f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]}-{lengths[-1]}"
    )
    everybody = sample.seen + sample.absent
    who = plural(everybody, "subject")
    if sample.copies:
        who = f"{who} ({everybody - sample.copies} distinct)"
    if sample.per_subject and not sample.entered and not sample.absent:
        return f"{who}, none of whose trials count"
    valid, planned = sample.entered - sample.missing, sample.entered + sample.not_run
    return f"{who} x {per_subject} trial{'' if per_subject == '1' else 's'} ({valid}/{planned} valid)"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 subject``, ``2 subjects``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def amount(plan: CellPlan, value: float) -> str:
    """Return a value of the judged quantity as text: ``82 %`` or, in the unit of a
    measure, ``4.25``.
    """
    return percent(value) if plan.measured is None else number(value)


def score(plan: CellPlan, mean: float) -> str:
    """Return a mean of scores as text: a pass rate or, with its name and in its unit,
    the judged measure.
    """
    name = "" if plan.measured is None else f"{plan.measured.name} "
    return f"{name}{amount(plan, scale_of(plan).value(mean))}"


def gap(plan: CellPlan, difference: float) -> str:
    """Return a signed difference of the judged quantity as text: in points, or in the
    unit of a measure.
    """
    return points(difference) if plan.measured is None else signed(difference)


def on_scale(index: float | None) -> str:
    """Return an index of the ability scale as text, such as ``0.58``. It is ``< 0``
    below the scale, at most ``1.00``, and ``–`` for None.
    """
    if index is None:
        return "–"
    return "< 0" if index < 0 else rounded(min(1.0, index), 2)


def abilities(cell: CellResult) -> str:
    """Return a cell's ability in words, such as ``ability 0.95 (rodent 0.40; PASS from
    0.24)``, or "" if there is no scale.
    """
    found = cell.ability
    if found is None:
        return ""
    sides = [("rodent", found.rodent), ("PASS from", found.bar)]
    beside = "; ".join(f"{name} {on_scale(at)}" for name, at in sides if at is not None)
    return f"ability {on_scale(found.model)}{f' ({beside})' if beside else ''}"


def bar(plan: CellPlan) -> float:
    """Return the difference from the animals beyond which PASS begins: minus the
    margin, or plus the margin if less is better.
    """
    return (
        plan.margin
        if plan.measured is not None and plan.measured.better == "lower"
        else -plan.margin
    )


def margin(plan: CellPlan) -> str:
    """Return the difference beyond which a verdict is FAIL, as text: ``-10`` (points),
    ``+10`` if the verdict is about chance, a number in the unit of a measure, or
    ``±0.1`` (``better: alike``).
    """
    if plan.against == "chance":
        return points(plan.margin)
    return f"±{number(plan.margin)}" if is_alike(plan) else gap(plan, bar(plan))


def is_alike(plan: CellPlan) -> bool:
    """Return whether a verdict asks for a value like the animals' (``better:
    alike``).
    """
    return plan.measured is not None and plan.measured.better == "alike"


def interval_method(subjects: int) -> str:
    if subjects > 1:
        return f"betting, over {plural(subjects, 'subject')}"
    return "Wilson over trials, normal quantile (this subject only)"


def odds(evidence: float) -> str:
    """Return evidence (the growth of wealth) as odds: ``31 to 1``, ``1.4 to 1``, ``over
    a million to 1``.
    """
    if evidence > 1e6:
        return "over a million to 1"
    return f"{evidence:,.0f} to 1" if evidence >= 9.95 else f"{evidence:.2g} to 1"


def standing(game: Game) -> str:
    """Return the state of a cell's betting in words, for the journal and the progress
    line.
    """
    if game.verdict is not None:
        evidence = game.passing if game.verdict is Verdict.PASS else game.failing
        return f"{game.verdict} after {plural(game.decided or 0, 'subject')}: evidence {odds(evidence)}"
    where = f"{game.subjects} of at most {plural(game.most, 'subject')}"
    if game.stale:
        return f"stopped at {where}: evidence never reached 2 to 1"
    return f"undecided at {where}: evidence {odds(game.passing)} (PASS) and {odds(game.failing)} (FAIL)"


#: Words for the cause of missing trials, where the recorded word says too little.
_CAUSES = {"infrastructure": "technical faults"}


def nothing_measured(cell: CellResult) -> str:
    """Return the reason for the verdict of a cell without a valid trial."""
    if not cell.planned:
        return "No trial was run. This says nothing about the model."
    if not_started(cell):
        return (
            "Interrupted, not run: the run ended before the cell's first trial that counts. This says nothing about the model. "
            "Resume the run."
        )
    causes = [
        f"{_CAUSES.get(name, name)} {cell.outcomes[name]}"
        for name in cell.outcomes
        if cell.outcomes[name]
    ]
    return (
        f"No trial that counts could be measured: {plural(cell.planned, 'trial')} missing ({', '.join(causes)}). "
        "This says nothing about the model."
        + (
            f" {_LARGER}"
            if cell.outcomes["budget"] and not cell.outcomes["infrastructure"]
            else ""
        )
    )


def not_started(cell: CellResult) -> bool:
    return bool(cell.planned) and cell.outcomes.get("not run") == cell.planned


def broken_down(outcomes: Mapping[str, int]) -> int:
    """Return the number of trials lost to breakdowns, including trials that were run
    anew too often.
    """
    return outcomes["infrastructure"] + outcomes.get("run anew", 0)


def breakdown(cell: CellResult, broken: int) -> str:
    """Return the reason for an ERROR of a cell in which some trials were run. ``cell``
    is judged by the trials that were run.
    """
    one = cell.valid == 1
    ran = f"{plural(cell.valid, 'trial')} that {'was run decides' if one else 'were run decide'}"
    return (
        f"{plural(broken, 'trial')} of {cell.planned} that count failed for technical reasons, which says nothing about the "
        f"model, and the {ran} nothing without {'it' if broken == 1 else 'them'}. {_after_breakdown(cell)}."
    )


_RESUME = "Fix the cause and resume the run"
_LARGER = "Resume the run with a larger budget."


def _after_breakdown(cell: CellResult) -> str:
    if cell.lost_for_good:
        return "Mend the model or its server, then start a new run"
    return "Start a new run" if cell.outcomes.get("run anew") else _RESUME


def nothing_entered(cell: CellResult) -> str:
    """Return the reason for a cell in which trials were run, but none of them enters
    the pass rate or the mean of the judged measure.
    """
    kind, _, names = cell.plan.estimand.partition(":")
    blocks = [f"'{name}'" for name in names.split(",")]
    what = "none counts for the reference or the estimand"
    if kind == "block":
        reached = "the block {} was" if len(blocks) == 1 else "the blocks {} were"
        what = f"none of the trials that count: {reached.format(' and '.join(blocks))} not reached"
    ran = f"{plural(cell.subjects, 'subject')} x up to {plural(cell.plan.trials, 'trial')} were run, but {what}"
    lacks = (
        "pass rate"
        if cell.plan.measured is None
        else f"mean of {cell.plan.measured.name}"
    )
    return f"{ran}, so there is no {lacks}." + (
        ""
        if cell.plan.claims or cell.plan.control
        else f" Design '{cell.plan.design}' never gives a PASS or a FAIL."
    )


def no_claim(cell: CellResult) -> str:
    """Return why a cell with a rate gets no verdict."""
    if cell.plan.control:
        return "A control makes no claim: compare its curve with the plain cell's."
    if not cell.plan.claims:
        return f"Design '{cell.plan.design}' never gives a PASS or a FAIL."
    return (
        "The protocol has no reference on `success` (a reference on a measure without `better` is only reported), so "
        "there is nothing to compare with."
    )


def verdict(cell: CellResult) -> str:
    plan = cell.plan
    if plan.against == "chance":
        assert cell.rate is not None
        assert plan.chance is not None
        rates = f"{percent(cell.rate)} of answers are right, against {percent(plan.chance)} by chance"
    else:
        assert plan.reference is not None
        against = (
            f"against {amount(plan, plan.reference.value)} ({_animals(plan.reference)})"
        )
        if cell.judged is not None:
            rates = f"The mean of {cell.judged.measure} is {number(cell.judged.mean)}, {against}"
        else:
            assert cell.rate is not None
            rates = f"{percent(cell.rate)} of trials succeed, {against}"
    return " ".join([f"{rates}: {_betting(cell)}", *_caveats(cell), *_memory(plan)])


def _animals(reference: ReferenceValue) -> str:
    """Return the reference's species in a few words: ``mouse``, or ``mouse, declared``
    if the reference is used as a constant.
    """
    named = re.split("[,;:]", reference.species)[0].strip() or "rodent"
    return f"{named}, declared" if animals_interval(reference) is None else named


def _memory(plan: CellPlan) -> list[str]:
    """Return sentences on the memory and the training of a language model's subjects,
    on which a verdict depends.
    """
    line, trained = plan.settings.get("memory"), plan.settings.get("trained_on")
    said = [f"Memory: {line}."] if isinstance(line, str) and line else []
    return (
        [*said, f"Trained on: {', '.join(map(str, trained))}."]
        if isinstance(trained, list)
        else said
    )


def _claims(plan: CellPlan) -> tuple[str, str]:
    """Return the claims on which the PASS game and the FAIL game bet, in words."""
    if plan.against == "chance":
        return (
            "better than chance",
            f"less than {per_hundred(plan.margin)} points better than chance",
        )
    margin = (
        f"{per_hundred(plan.margin)} points"
        if plan.measured is None
        else number(plan.margin)
    )
    if is_alike(plan):
        return (
            f"within {margin} of the animals",
            f"further than {margin} from the animals",
        )
    return f"not worse by {margin}", f"worse by more than {margin}"


def _betting(cell: CellResult) -> str:
    game, (passes, fails) = cell.game, _claims(cell.plan)
    assert game is not None
    goal = f"{odds(game.goal)} decides"
    if game.verdict is Verdict.PASS:
        ending = ", and even better than the animals" if cell.superior else ""
        return (
            f"evidence for '{passes}' is {odds(game.passing)} ({goal}): PASS{ending}."
        )
    if game.verdict is Verdict.FAIL:
        return f"evidence for '{fails}' is {odds(game.failing)} ({goal}): FAIL."
    both = f"evidence for '{passes}' is {odds(game.passing)}, for '{fails}' {odds(game.failing)}"
    return f"{both}; {goal}. {_remedy(cell)}".rstrip()


def _of_missing(cell: CellResult) -> str:
    why = " (the budget was spent)" if cell.outcomes.get("budget") else ""
    missing = plural(cell.missing, "missing trial")
    way = f"resume the run to complete {'it' if cell.missing == 1 else 'them'}"
    if cell.outcomes.get("run anew"):
        way = "start a new run, because stops made this one repeat too many trials"
    return f"{missing.capitalize()}{why} could decide it: {way}."


def _remedy(cell: CellResult) -> str:
    game, one = cell.game, _one(cell)
    assert game is not None
    where = f"{game.subjects} of at most {plural(game.most, one)}"
    if cell.missing:
        return _of_missing(cell)
    if game.stale:
        return f"Stopped at {where}: evidence had never reached 2 to 1, so more subjects would hardly decide it."
    said = _outlook(cell)
    if game.sequential and game.subjects < game.most:
        return f"Undecided at {where}; {said or 'a resumed run adds more'}."
    more = (
        f": --subjects {cell.subjects_needed}"
        if cell.plan.items and cell.subjects_needed
        else ""
    )
    return f"{said[:1].upper()}{said[1:]}{more}." if said else ""


def _outlook(cell: CellResult) -> str:
    """Return a clause on how many subjects would decide a cell, and with what
    probability.
    """
    ahead, many = None if cell.game is None else cell.game.outlook, f"{_one(cell)}s"
    if cell.flags.this_subject_only and cell.flags.duplicate_subjects:
        return f"more {many} would only be copies"
    if ahead is None or cell.flags.this_subject_only:
        return ""
    if ahead.decides:
        return f"about {ahead.subjects} {many} would decide it in 4 of 5 such cases"
    value = cell.rate if cell.judged is None else cell.judged.mean
    if value is not None and any(low <= value <= high for low, high in cell.open_zones):
        return (
            f"no number of {many} decides this, because the animals are a sample, and "
            f"{amount(cell.plan, value)} lies within {undecidable(cell)}"
        )
    return f"even {ahead.subjects:,} {many} would decide it in only {percent(round(ahead.chance, 2))} of such cases"


def undecidable(cell: CellResult) -> str:
    """Return the range in which no number of subjects decides, such as ``41 % to 59.5
    %``, or "" if the reference is a constant or the cell makes no claim.
    """
    zones = [
        " to ".join(amount(cell.plan, end) for end in zone) for zone in cell.open_zones
    ]
    return " or ".join(zones)


def _one(cell: CellResult) -> str:
    return "generation" if cell.plan.items else "subject"


def _caveats(cell: CellResult) -> list[str]:
    flags, found, game = cell.flags, list[str](), cell.game
    if game is not None and game.beyond:
        verb = ("has", "is") if game.beyond == 1 else ("have", "are")
        found.append(
            f"{plural(game.beyond, 'subject')} beyond these {verb[0]} begun but {verb[1]} not counted."
        )
    if flags.this_subject_only:
        one = _one(cell)
        only = f"distinct {one}" if flags.duplicate_subjects else one
        found.append(
            f"There is only one {only}, so this is about that {one}, not the model."
        )
    if flags.duplicate_subjects:
        found.append(
            f"{plural(flags.duplicate_subjects, _one(cell))} did exactly the same as another one: counted in the "
            f"{'rate' if cell.judged is None else 'mean'}, but not as further evidence."
        )
    if cell.judged is not None and cell.judged.without:
        found.append(
            f"The mean leaves out {plural(cell.judged.without, _one(cell))} without any value of the measure."
        )
    if flags.analogy:
        what = "this success" if cell.judged is None else "this measure"
        found.append(
            f"The animals' number is an analogy: it is about a different event from {what}."
        )
    if flags.memory_contradicted:
        found.append("The agent declares no memory, but its subjects differ.")
    if flags.not_diagnostic:
        assert cell.plan.chance is not None
        found.append(
            f"Not diagnostic: moving at random already succeeds in {percent(cell.plan.chance)} of trials."
        )
    if cell.missing and cell.verdict is not Verdict.INCONCLUSIVE:
        found.append(f"{plural(cell.missing, 'missing trial')} could not change this.")
        found.append(cell.worst_case)
    return [*filter(None, found)]


def uneven(plan: CellPlan, answers: Iterable[ByAnswer]) -> Iterator[str]:
    """Yield a remark for each answer on which the result depends."""
    for one in answers:
        if one.is_uneven:
            rates = ", ".join(
                f"{score(plan, level.rate)} where {one.answer} is {shown_value(level.value)}"
                for level in one.rates
            )
            p = number(one.p_value or 0.0)
            yield f"{UNEVEN[0].upper()}{UNEVEN[1:]}: {rates} (p {p}). A rule that prefers one answer does this."


#: Replaces the word *validated* for a PASS that does not hold for each answer.
UNEVEN = "depends on which answer is right"
#: If unusable answers and missing trials together exceed this share, every report
#: warns.
DOUBTFUL = 0.05
#: The phrase for replies that ended at their limit of tokens.
_CUT_OFF = "cut off"
#: An agent's counters of unusable replies, and the phrase for each.
_NO_ANSWERS = {
    "empty": "empty",
    "truncated": _CUT_OFF,
    "unparsed": "without a readable answer",
}


def warnings(cell: CellResult) -> tuple[str, ...]:
    """Return the doubts about the numbers of a cell, for any verdict."""
    return doubts(cell.plan, cell.agent_counts, cell.calls, cell.missing, cell.planned)


def doubts(
    plan: CellPlan,
    counts: Mapping[str, int],
    asked: CellCalls | None,
    missing: int,
    planned: int,
    *,
    replies: str = "all replies",
) -> tuple[str, ...]:
    """Return doubts about a cell's numbers, from the agent's counters, the calls and
    the missing trials. ``replies`` says which replies are counted.

    Unusable answers of all kinds and missing trials are added up, because each kind
    alone may be rare.
    """
    if asked is not None and not asked.totals.calls:
        return (NEVER_CALLED,)
    calls, malformed = (
        counts.get("calls", 0),
        0 if asked is None else asked.totals.malformed,
    )
    kinds = {said: counts.get(name, 0) for name, said in _NO_ANSWERS.items()}
    # A reply may be of several kinds. If the agent gives no total, the kinds are added
    # up.
    unusable = min(counts.get("unusable", sum(kinds.values())), calls)
    share = (unusable + malformed) / max(1, calls + malformed)
    if share + missing / max(1, planned) <= DOUBTFUL:
        return ()
    shares = _of_replies(kinds, calls, replies, how_to_finish(plan, counts))
    if malformed:
        shares.append(
            f"{percent(malformed / (calls + malformed))} of answers malformed or refused"
        )
    if 0 < missing < planned:  # a cell without any trial has no numbers
        shares.append(f"{percent(missing / planned)} of trials missing")
    return tuple(shares)


def _of_replies(
    kinds: Mapping[str, int], calls: int, replies: str, cut_off: str
) -> list[str]:
    """Return the share of each kind in ``calls`` replies. ``cut_off`` is the remedy for
    replies that were cut off, or "".
    """
    remedies = {_CUT_OFF: f" ({cut_off})" * bool(cut_off)}
    return [
        f"{percent(count / calls)} of {replies} {said}{remedies.get(said, '')}"
        for said, count in kinds.items()
        if calls and count
    ]


def how_to_finish(plan: CellPlan, counts: Mapping[str, int]) -> str:
    """Return the remedy for replies that were cut off at their limit, with the limit,
    or "" if they are too few to matter.
    """
    if counts.get("truncated", 0) <= DOUBTFUL * counts.get("calls", 0):
        return ""
    limit = plan.settings.get("max_tokens")
    return "raise --reply-tokens" + f", now {limit}" * (limit is not None)


def why_unread(cell: CellResult) -> str:
    """Return the remedy for replies that named no action, if most of these may have
    been cut off, or "".
    """
    counts = cell.agent_counts
    if 2 * counts.get("truncated", 0) <= counts.get("unparsed", 0):
        return ""
    how = how_to_finish(cell.plan, counts)
    return (
        f"{how} ({percent(counts['truncated'] / counts['calls'])} of the replies were cut off)"
        if how
        else ""
    )


def with_doubts(cell: CellResult) -> str:
    """Return the reason for a verdict, with any doubts about the cell's numbers."""
    if not cell.warnings or cell.verdict is Verdict.ERROR:  # an ERROR has no numbers
        return cell.reason
    return f"{cell.reason} Doubtful: {'; '.join(cell.warnings)}."


def with_calls(cell: CellResult, calls: CellCalls | None) -> CellResult:
    """Return a cell with the totals of its calls, which may make its numbers doubtful.

    The agent's counters then cover all recorded trials. If the model never acted, the
    verdict becomes ERROR, because the model has not been tested.
    """
    own = [text for text in cell.warnings if text not in warnings(cell)]
    cell = replace(
        cell,
        calls=calls,
        agent_counts=calls.counts if calls and calls.counts else cell.agent_counts,
    )
    cell = replace(cell, warnings=(*warnings(cell), *own))
    if reason := untested(cell.agent_counts, calls):
        return cell.ending(Verdict.ERROR, reason, subjects_needed=None)
    return cell


def untested(counts: Mapping[str, int], calls: CellCalls | None) -> str:
    """Return a sentence that says that the model has not been tested, if there were
    replies but none named an action. Otherwise return "".
    """
    asked = to_act(counts)
    if not 0 < asked <= counts.get("unparsed", 0):
        return ""
    first = f" The first: {calls.unread}." if calls and calls.unread else ""
    if counts.get("empty", 0) >= asked:
        return f"{NEVER_ACTED}: all were empty ({plural(asked, 'call')}), so the model has not been tested."
    return f"{NEVER_ACTED} ({plural(asked, 'call')}), so the model has not been tested.{first}"


def to_act(counts: Mapping[str, int]) -> int:
    """Return the number of replies that were meant to name an action, which excludes
    notes.
    """
    return counts.get("calls", 0) - counts.get("notes", 0)


#: Doubt about a language model's trials if there was not a single call to the model.
NEVER_CALLED = (
    "not one call to the model (a replay of a run, or the log of another model)"
)
#: Start of the reason for a cell in which every reply was unreadable.
NEVER_ACTED = "No reply named an action"


def with_causes(cell: CellResult) -> str:
    """Return the reason for a cell's verdict. If the cell could not be measured, its
    budget was spent or it broke down, the reason names the cause.
    """
    # Whether a resumed run would help depends on the causes, which are known only now.
    reason = cell.reason.replace(_RESUME, _after_breakdown(cell))
    spent = next((cause for cause in cell.causes if "--max-" in cause), "")
    if spent and cell.is_undecided:
        if "--max-minutes" in spent:  # Minutes count anew in each session.
            reason = reason.replace(_LARGER, "Resume the run.")
        return f"{reason} Stopped by the budget: {spent}."
    if not cell.causes or reason.startswith(NEVER_ACTED):
        return reason
    return f"{reason}{_caused(cell)}"


def _caused(cell: CellResult) -> str:
    """Return a sentence on the cause of an ERROR, or of trials that failed for
    technical reasons. Return "" if there is neither.
    """
    more = len(cell.causes) - 1
    others = f" ({plural(more, 'other cause')})" if more else ""
    named = f"{cell.causes[0].rstrip('.')}{others}."
    if cell.verdict is Verdict.ERROR:
        return f" Cause: {named}"
    broken = broken_down(cell.outcomes)
    if not broken:
        return ""
    return f" {plural(broken, 'trial')} failed for technical reasons: {named} {_after_breakdown(cell)}."


def shares(found: ClassShares) -> str:
    """Return the share of each value of a categorical measure: ``direct 40 %, serial 60
    %``.
    """
    total = sum(found.counts.values())
    return ", ".join(
        f"{name} {percent(count / total)}" for name, count in found.counts.items()
    )


def shown_value(value: Value) -> str:
    return (
        "none"
        if value is None
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
