"""Judges every cell of a run, and summarises each model over its protocols."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cheesebench import tables
from cheesebench.amounts import points
from cheesebench.published import published_rows
from cheesebench.records import GOAL, CellCalls, CellKey, CellPlan, TrialRecord
from cheesebench.statistics import wording
from cheesebench.statistics.ability import Ability, mean_ability
from cheesebench.statistics.beside import against_published
from cheesebench.statistics.betting import LIMIT, limits
from cheesebench.statistics.by_answer import ByAnswer, by_answer
from cheesebench.statistics.comparison import rank_models
from cheesebench.statistics.controls import compare_with_control
from cheesebench.statistics.intervals import mean_limits
from cheesebench.statistics.judgement import judge_sample
from cheesebench.statistics.plausibility import drifting, implausible
from cheesebench.statistics.sample import (
    Sample,
    SubjectRecords,
    draw_sample,
    scores_of,
    trials_by_subject,
)
from cheesebench.statistics.summary import (
    Average,
    BestOfViews,
    CellResult,
    ControlResult,
    Leaderboard,
    ModelSummary,
    RunSummary,
    Verdict,
    ViewChoice,
)
from cheesebench.statistics.wording import not_started, plural

#: Results (1 or 0) of one half of the subjects (or of the trials), and results of the
#: other half.
Halves = tuple[Sequence[int], Sequence[int]]


def summarise_run(
    manifest: Mapping[str, object],
    plans: Sequence[CellPlan],
    trials: Iterable[TrialRecord],
) -> RunSummary:
    """Judge every planned cell and summarise every model. The order of ``trials`` does
    not matter.
    """
    by_cell: dict[CellKey, list[TrialRecord]] = {plan.key: [] for plan in plans}
    for record in trials:
        by_cell.get(record.key, []).append(record)
    return summarise_subjects(
        manifest, plans, lambda plan: trials_by_subject(by_cell[plan.key]).values()
    )


class _Kept:
    """The parts of a run's samples that are needed until all cells are judged."""

    def __init__(self, plans: Sequence[CellPlan], against: str | None) -> None:
        self.against = against
        self.halves: dict[CellKey, Halves] = {}
        self.samples: dict[CellKey, Sample] = {}
        """Samples of controls and their plain cells, and of twins and their originals.
        """
        self.ranked: list[tuple[CellPlan, Sample]] = []
        self.beside: list[tuple[CellPlan, bytes]] = []
        self._paired = {
            key
            for one in plans
            if one.control or one.twin_of
            for key in (one.key, one.public_key if one.twin_of else one.plain_key)
        }

    def add(self, cell: CellResult, sample: Sample) -> None:
        plan = cell.plan
        self.halves[plan.key] = halve(sample)
        if plan.design == "leaderboard" and not (plan.control or plan.twin_of):
            self.ranked.append((plan, sample))
        if plan.key in self._paired:
            self.samples[plan.key] = sample
        if self.against and cell.valid and not plan.control:
            results = b"".join(one.results for one in sample.per_subject)
            self.beside.append((plan, results))


def _told_apart(plans: Sequence[CellPlan]) -> list[CellPlan]:
    """Add its id to the title of each protocol that shares it with another, such as an
    edition without a title of its own: reports have titles that stand alone.
    """
    own = {plan.protocol: plan.title for plan in plans}
    shared = {title for title, n in Counter(own.values()).items() if title and n > 1}
    return [
        replace(plan, title=f"{plan.title} ({plan.protocol})")
        if plan.title in shared
        else plan
        for plan in plans
    ]


def summarise_subjects(
    manifest: Mapping[str, object],
    plans: Sequence[CellPlan],
    trials_of: Callable[[CellPlan], Iterable[SubjectRecords]],
    calls: Mapping[CellKey, CellCalls] | None = None,
    causes: Mapping[CellKey, tuple[str, ...]] | None = None,
    remarks_of: Callable[[CellPlan], tuple[str, ...]] | None = None,
) -> RunSummary:
    """Judge and summarise a run of any size.

    ``trials_of`` returns the trials of each subject of a cell, in the order of the
    subjects' numbers. Each cell's trials are read once. ``calls`` has the totals of
    each cell's calls to the model, and ``causes`` has the reasons why trials of a cell
    could not be run. ``remarks_of`` returns remarks on how a cell was run.
    """
    plans = _told_apart(plans)
    kept, cells = _Kept(plans, _against(manifest)), list[CellResult]()
    for plan in plans:
        sample = draw_sample(plan, trials_of(plan))
        cell = wording.with_calls(
            judge_sample(plan, sample), (calls or {}).get(plan.key)
        )
        remarks = remarks_of(plan) if remarks_of is not None else ()
        answers = tuple(by_answers(cell, sample, manifest.get("seed")))
        cell = replace(
            cell,
            answers=answers,
            remarks=(
                *remarks,
                *implausible(cell, sample),
                *drifting(sample),
                *wording.uneven(plan, answers),
            ),
        )
        cells.append(with_causes(cell, (causes or {}).get(plan.key, ())))
        kept.add(cell, sample)
    cells = [
        _with_gap(_with_contradictions(cell, cells), cells, kept.samples)
        for cell in cells
    ]
    plain = [cell for cell in cells if not cell.plan.control]
    return RunSummary(
        manifest=tables.BriefDict(manifest),
        cells=tuple(cells),
        models=tuple(
            summarise_model(group) for group in _by_model_view_and_variant(plain)
        ),
        best_of_views=best_of_views(plain, kept.halves),
        controls=tuple(_controls(cells, kept.samples)),
        published=published_rows(plans),
        contrasts=against_published(kept.against, kept.beside),
        leaderboards=tuple(
            _with_lists(board, plain) for board in rank_models(kept.ranked)
        ),
    )


def _against(manifest: Mapping[str, object]) -> str | None:
    """Return the name of the published model with which the run is compared, or None if
    there is none.
    """
    options = manifest.get("options")
    name = options.get("against") if isinstance(options, Mapping) else None
    return name if isinstance(name, str) else None


def by_answers(cell: CellResult, sample: Sample, seed: object) -> Iterator[ByAnswer]:
    """For each answer that a subject keeps for life, yield the judged subjects, grouped
    by that answer. Answers that are the same for all subjects are left out.
    """
    if cell.game is not None and cell.plan.sequential:
        sample = sample.up_to(cell.game.subjects)
    for at, name in enumerate(cell.plan.answers):
        scores = [
            (one.answers[at], one.scores if sample.measured else one.results)
            for one in sample.per_subject
        ]
        found = by_answer(
            name,
            [
                (level, sum(own) / len(own))
                for level, own in scores
                if own and level is not None
            ],
            seed,
        )
        if found is not None:
            yield found


def with_causes(cell: CellResult, causes: tuple[str, ...]) -> CellResult:
    """Return a cell with the causes of missing trials. The reason for its verdict names
    a cause if the cause matters (``wording.with_causes``).
    """
    cell = replace(cell, causes=causes)
    return replace(cell, reason=wording.with_causes(cell))


def _with_contradictions(cell: CellResult, cells: Iterable[CellResult]) -> CellResult:
    """Return a plain cell with the contradictions that its controls found. Controls and
    cells without a construct are returned as they are.
    """
    if cell.plan.control or cell.plan.construct is None:
        return cell
    own = [
        one for one in cells if one.plan.control and one.plan.plain_key == cell.plan.key
    ]
    return replace(
        cell,
        contradicted=tuple(sentence for one in own for sentence in one.contradicted),
    )


def _with_gap(
    cell: CellResult, cells: Iterable[CellResult], samples: Mapping[CellKey, Sample]
) -> CellResult:
    """Return a twin's cell with a remark that compares its rate with the rate on the
    published protocol. Other cells, and twins without both rates, are returned as they
    are.
    """
    plan = cell.plan
    if not plan.twin_of:
        return cell
    public = next((one for one in cells if one.plan.key == plan.public_key), None)
    if public is None or public.rate is None or cell.rate is None:
        return cell
    # Each interval holds at 97.5 %, so both hold together at 95 %, whenever the run
    # stopped.
    known, held_out = (
        limits(one.low, one.high, 2 * LIMIT, one.distinct)
        for one in (
            scores_of(samples[key].subjects()) for key in (public.plan.key, plan.key)
        )
    )
    low, high = known[0] - held_out[1], known[1] - held_out[0]
    difference = points(public.rate - cell.rate)
    between = f"{points(low)} to {points(high)}"
    text = f"The published {plan.twin_of} minus this twin: {difference} points ({between})."
    return replace(cell, remarks=(*cell.remarks, text))


def _controls(
    cells: Sequence[CellResult], samples: Mapping[CellKey, Sample]
) -> Iterator[ControlResult]:
    by_key = {cell.plan.key: cell for cell in cells}
    for cell in cells:
        plain = by_key.get(cell.plan.plain_key)
        if cell.plan.control and plain is not None:
            yield compare_with_control(
                plain, samples[plain.plan.key], cell, samples[cell.plan.key]
            )


def _by_model_view_and_variant(cells: Iterable[CellResult]) -> list[list[CellResult]]:
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in cells:
        groups.setdefault(
            (cell.plan.model, cell.plan.view, cell.plan.series), []
        ).append(cell)
    return list(groups.values())


def summarise_model(cells: Sequence[CellResult]) -> ModelSummary:
    failed = e_bh(
        {c.plan.label: c.game.failing_at_stop for c in cells if c.game is not None}
    )
    gate, reason = _gate(cells, failed)
    finished = [cell for cell in cells if not cell.is_unfinished]
    return ModelSummary(
        model=cells[0].plan.model,
        view=cells[0].plan.view,
        variant=cells[0].plan.series,
        overall=average(finished),
        ability=mean_ability(
            (cell.plan, None if cell.is_unfinished else cell.ability) for cell in cells
        ),
        animals=mean_ability((cell.plan, _of_animals(cell)) for cell in cells),
        profile=_profile(finished),
        gate=gate,
        gate_reason=reason,
        failed=failed,
    )


def _of_animals(cell: CellResult) -> Ability | None:
    """Return the ability of a cell's animals, as if they had been the subjects, or None
    without a scale.
    """
    return cell.ability and replace(cell.ability, model=cell.ability.rodent)


def _profile(cells: Sequence[CellResult]) -> dict[str, Average]:
    """Return the mean pass rate in each cognitive dimension."""
    by_dimension = dict[str, list[CellResult]]()
    for cell in cells:
        by_dimension.setdefault(cell.plan.dimension, []).append(cell)
    means = {name: average(own) for name, own in by_dimension.items()}
    return {name: mean for name, mean in means.items() if mean is not None}


def e_bh(evidence: Mapping[str, float]) -> tuple[str, ...]:
    """Return the longest list of names of which at most 5 % are wrong on average. The
    list keeps the order of the names.

    The list has the k largest e-values, for the largest k such that each of them is at
    least ``GOAL`` times the number of all e-values divided by k (Wang and Ramdas 2022,
    J R Stat Soc B 84:822). E-values may depend on one another. They must be taken at
    the stop, because the largest values ever reached are no e-values.
    """
    largest = sorted(evidence.values(), reverse=True)
    long = max(
        (k for k, one in enumerate(largest, 1) if one >= GOAL * len(evidence) / k),
        default=0,
    )
    return tuple(
        name for name, one in evidence.items() if long and one >= largest[long - 1]
    )


def _with_lists(board: Leaderboard, cells: Iterable[CellResult]) -> Leaderboard:
    """Return a leaderboard with its lists of PASSes and of FAILs, each with at most 5 %
    wrong verdicts on average.
    """
    games = {
        f"{cell.plan.model} on {cell.plan.label}": cell.game
        for cell in cells
        if cell.game is not None
        and (cell.plan.view, cell.plan.series) == (board.view, board.variant)
    }
    sides = (
        {name: getattr(game, side) for name, game in games.items()}
        for side in ("passing_at_stop", "failing_at_stop")
    )
    passed, failed = map(e_bh, sides)
    return replace(board, passed=passed, failed=failed)


def average(cells: Sequence[CellResult]) -> Average | None:
    """Return the unweighted mean of the cells' rates. Cells judged by a measure are
    left out. Return None if there is no rate.

    The protocols are fixed and their subjects independent. For a single protocol, the
    interval is the cell's.
    """
    estimates = [
        (cell.rate, *cell.interval)
        for cell in cells
        if cell.plan.measured is None
        and cell.rate is not None
        and cell.interval is not None
    ]
    if not estimates:
        return None
    return Average(
        mean=math.fsum(rate for rate, _, _ in estimates) / len(estimates),
        interval=mean_limits(estimates),
        protocols=len(estimates),
    )


def _gate(cells: Sequence[CellResult], listed: Sequence[str]) -> tuple[Verdict, str]:
    """Return the overall verdict on these cells and its reason. The verdict is PASS if
    all cells pass, FAIL if any fails, otherwise ERROR if any is an ERROR, and otherwise
    INCONCLUSIVE.
    """
    count = {
        verdict: sum(cell.verdict is verdict for cell in cells) for verdict in Verdict
    }
    total = plural(
        len(cells), "cell" if all(cell.plan.items for cell in cells) else "protocol"
    )
    if count[Verdict.PASS] == len(cells):
        doubtful = _without_construct(cells)
        if len(cells) == 1:
            return Verdict.PASS, f"The {total.removeprefix('1 ')} passed{doubtful}."
        text = f"All {total} passed, which needs no correction{doubtful}"
        return Verdict.PASS, f"{text}."
    tally = f"{count[Verdict.PASS]} of {total} passed"
    not_run = sum(cell.verdict is Verdict.ERROR and not_started(cell) for cell in cells)
    unmeasured = count[Verdict.ERROR] - not_run
    said = [(unmeasured, "could not be measured"), (not_run, "interrupted, not run")]
    broken = "; ".join(f"{number} {what}" for number, what in said if number)
    if count[Verdict.FAIL]:
        failed = [cell.plan.label for cell in cells if cell.verdict is Verdict.FAIL]
        held = listed if all(c.plan.goal == GOAL for c in cells) else None
        corrected = "" if len(cells) == 1 else _corrected(failed, held, total)
        said_of = (tally, f"{', '.join(failed)} failed", corrected, broken)
        return Verdict.FAIL, "; ".join(filter(None, said_of)) + "."
    if broken:
        return Verdict.ERROR, f"{tally}; {broken}."
    if len(cells) == 1:
        return Verdict.INCONCLUSIVE, f"The {total.removeprefix('1 ')} is inconclusive."
    rest = "the rest" if count[Verdict.PASS] else "all"
    return Verdict.INCONCLUSIVE, f"{tally} and none failed; {rest} are inconclusive."


def _without_construct(cells: Sequence[CellResult]) -> str:
    """Return a phrase that names the protocols whose construct fails its audit, so that
    a PASS does not show it, or "" if there are none.
    """
    plans = [cell.plan for cell in cells]
    names = [
        plan.label
        for plan in plans
        if plan.construct is not None and plan.construct.status == "failed"
    ]
    if not names:
        return ""
    if len(cells) == 1:
        return ", but its construct fails its audit"
    what, fails = (
        ("construct", "fails its audit")
        if len(names) == 1
        else ("constructs", "fail their audits")
    )
    return f", but the {what} of {', '.join(names)} {fails}"


def _corrected(failed: Sequence[str], listed: Sequence[str] | None, total: str) -> str:
    """Return a phrase that says which FAILs are corrected for several protocols: the
    FAILs in ``listed``, or all if ``listed`` is None.
    """
    if listed is None:
        return f"corrected for {total} (--familywise): all"
    kept = [name for name in failed if name in listed]
    if kept == failed:
        return f"corrected for {total} (e-BH): all"
    if not kept:
        return f"not corrected for {total} (--familywise does that)"
    rest = ", ".join(name for name in failed if name not in listed)
    text = f"corrected for {total} (e-BH): {', '.join(kept)}"
    return f"{text}; not corrected: {rest} (--familywise corrects all)"


# -- the best of several views: the headline number of the CheeseBench paper, and a
# number without its bias. The maximum of several noisy proportions is biased upward:
# with ten trials per cell, a model exactly at the rodent reference (mean 78.9 %) in
# each of three views is expected to score 89.0 %.


def best_of_views(
    cells: Sequence[CellResult], halves: Mapping[CellKey, Halves]
) -> tuple[BestOfViews, ...]:
    """Return the best-of-views number of every model that has rates in at least two
    views of some protocol.

    ``cells`` are judged cells. ``halves`` maps ``CellPlan.key`` to the result of
    ``halve`` for the cell's sample.
    """
    groups: dict[tuple[str, str], dict[str, list[CellResult]]] = {}
    for cell in cells:
        if cell.rate is not None:
            groups.setdefault((cell.plan.model, str(cell.plan.variant)), {}).setdefault(
                cell.plan.protocol, []
            ).append(cell)
    combined = []
    for (model, variant), protocols in groups.items():
        choices = [
            _choice(views, halves) for views in protocols.values() if len(views) > 1
        ]
        if choices:
            combined.append(_combine(model, variant, choices))
    return tuple(combined)


def _combine(model: str, variant: str, choices: Sequence[ViewChoice]) -> BestOfViews:
    fitted = [
        choice.cross_fitted for choice in choices if choice.cross_fitted is not None
    ]
    return BestOfViews(
        model=model,
        variant=variant,
        best=sum(choice.best for choice in choices) / len(choices),
        cross_fitted=sum(fitted) / len(fitted) if len(fitted) == len(choices) else None,
        protocols=tuple(choices),
    )


def _choice(
    cells: Sequence[CellResult], halves: Mapping[CellKey, Halves]
) -> ViewChoice:
    rates = {cell.plan.view: cell.rate for cell in cells if cell.rate is not None}
    return ViewChoice(
        protocol=cells[0].plan.protocol,
        rates=rates,
        best=max(rates.values()),
        cross_fitted=cross_fit([halves[cell.plan.key] for cell in cells]),
    )


def halve(sample: Sample) -> tuple[bytes, bytes]:
    """Return the results of every other subject, and the results of the rest. If there
    is only one subject, split its trials in the same way.
    """
    results = [one.results for one in sample.per_subject if one.results]
    if len(results) == 1:
        return results[0][::2], results[0][1::2]
    return b"".join(results[::2]), b"".join(results[1::2])


def cross_fit(halves: Sequence[Halves]) -> float | None:
    """Choose the view on one half and score it on the other half. Return the rate,
    averaged over both directions.

    ``halves`` has one pair per view. If several views are best in one half, their
    scores on the other half are averaged. Return None if a half is empty.
    """
    if not all(first and second for first, second in halves):
        return None
    rates = [
        (sum(first) / len(first), sum(second) / len(second)) for first, second in halves
    ]
    scores = []
    for choose, score in ((0, 1), (1, 0)):
        best = max(pair[choose] for pair in rates)
        chosen = [pair[score] for pair in rates if pair[choose] == best]
        scores.append(sum(chosen) / len(chosen))
    return sum(scores) / 2
