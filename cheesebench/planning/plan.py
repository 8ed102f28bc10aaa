"""The forecast of a run: upper bounds, estimates from earlier runs, and statistical power."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from cheesebench.chat import Price, Usage
from cheesebench.experiment.log_types import check_fits
from cheesebench.experiment.servers import server_name
from cheesebench.family import Seat
from cheesebench.planning.earlier import Earlier, EarlierRuns
from cheesebench.planning.enough import Sufficiency
from cheesebench.planning.profiles import ProfiledRun, outdated, profiled, shipped_profiles
from cheesebench.planning.rehearsal import (
    LongestPrompt,
    longest_prompt,
    most_asks,
    most_steps,
    random_life,
    rehearse_conversations,
)
from cheesebench.statistics.intervals import ICC_FLOOR
from cheesebench.statistics.merit import scale_of
from cheesebench.statistics.power import (
    MOST_SIMULATED,
    Chances,
    Cohort,
    disagreement,
    like_the_animals,
    sequential_chances,
    subjects_for_power,
    verdict_chances,
)
from cheesebench.statistics.sample import enter_estimand
from cheesebench.statistics.summary import Verdict

if TYPE_CHECKING:
    from cheesebench.experiment.contestants import LanguageModel
    from cheesebench.experiment.records import CellPlan
    from cheesebench.interfaces import Paradigm, View
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Calls, tokens, dollars. None: unknown or unbounded."""

    calls: float | None = 0
    prompt: float | None = 0
    completion: float | None = 0
    dollars: float | None = None

    @property
    def tokens(self) -> float | None:
        """Of prompts and replies together."""
        return None if self.prompt is None or self.completion is None else self.prompt + self.completion


#: What an agent takes that makes no calls.
FREE = Amount(dollars=0.0)
#: Prompts, and how often each is sent.
Asked = Sequence[tuple[int, LongestPrompt]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Simulated probabilities of a cell's verdicts."""

    rodent: float
    margin: float
    """Both in the unit of the measure, if the verdict is about one."""
    trials: int
    """Trials of each subject that enter the pass rate."""
    icc: float
    """Between the trials of a subject; of a measure, the animals' standard deviation stands for it."""
    at_rodent: Chances
    """If the model is exactly as good as the rodent."""
    at_margin: Chances
    """If it is worse by exactly the margin: then PASS is an error, and so is FAIL."""
    disagree_at_rodent: float
    """Probability that two runs of a model as good as the rodent get different verdicts."""
    disagree_at_margin: float
    subjects_for_80: int | None
    """Subjects with which a model as good as the rodent passes with 80 % probability; None if over 1000."""
    subjects_at_rodent: float | None = None
    """For a sequential cell: mean number of subjects if the model is as good as the rodent."""
    subjects_at_zero: float | None = None
    """The same if it never succeeds; of a measure, if it is at the worst end, or three margins worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellForecast:
    """One planned cell. ``steps`` is the maximum per trial; None if it cannot be determined."""

    plan: CellPlan
    steps: int | None
    most: Amount
    estimate: Amount | None
    """None without an earlier run."""
    seconds: float | None
    """Seconds per call in earlier runs."""
    earlier: Earlier | None
    outlook: Outlook | None
    """None if the design or the protocol makes no claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A whole run."""

    cells: tuple[CellForecast, ...]
    concurrency: int
    """The limit of each server."""
    most: Amount
    estimate: Amount | None
    """None if any cell has none."""
    minutes: float | None
    """Estimated, with ``in_flight`` calls at once; the calls of one subject are sequential."""
    all_pass: Mapping[str, float]
    """By model and view, the probability that all protocols PASS if the model is exactly as good as the rodent."""
    price_of: date | None
    """Date of the oldest price used for dollars."""
    in_flight: int
    """Maximum calls in flight: one for each active subject, and at most ``concurrency`` at each server."""
    servers: tuple[str, ...] = ()
    """Scheme, host and port of each server that is named."""
    as_planned: tuple[ProfiledRun, ...] = ()
    """Cost for respondents from hopeless to competent; empty if that was not measured."""
    sequential: tuple[ProfiledRun, ...] = ()
    """The same with the sequential design, if the plan has a fixed number of subjects."""
    outdated: tuple[str, ...] = ()
    """Protocols that have changed since the respondents were measured."""
    budget: Sufficiency | None = None
    """Whether a budget suffices, if one is asked about."""


def forecast(
    plugins: PluginManager,
    cells: Iterable[tuple[CellPlan, BaseSpecification]],
    models: Mapping[str, LanguageModel],
    earlier: EarlierRuns,
    *,
    concurrency: int,
    seed: int,
    icc: float | None = None,
) -> Forecast:
    """Return what the cells would take; ``models`` are the language models among theirs.

    ``icc`` replaces the one that is assumed. A rehearsal is lived for each cell, but no model is asked. Raises
    OptionError for a cell of more trials than a log may have.
    """
    cells = list(cells)
    for plan, _ in cells:
        check_fits(plan)
    found = tuple(
        _cell(plugins, plan, specification, models.get(plan.model), earlier, seed, icc) for plan, specification in cells
    )
    servers = tuple(dict.fromkeys(server_name(url) for model in models.values() for url in model.base_urls))
    in_flight = min(
        concurrency * max(1, len(servers)), max(1, sum(_alive(cell.plan) for cell in found if cell.plan.agent))
    )
    prices = [model.entry.price for model in models.values() if model.entry.price is not None]
    return Forecast(
        cells=found,
        concurrency=concurrency,
        most=total([cell.most for cell in found]),
        estimate=total_estimate(found),
        minutes=_minutes(found, in_flight),
        in_flight=in_flight,
        servers=servers,
        **_by_profiles(found, models),
        all_pass=_all_pass(found),
        price_of=min((price.on for price in prices), default=None),
    )


def _alive(plan: CellPlan) -> int:
    """Return the number of concurrent subjects: all, or those of the first look."""
    return plan.looks[0] if plan.looks else plan.subjects


def _by_profiles(cells: Sequence[CellForecast], models: Mapping[str, LanguageModel]) -> dict[str, Any]:
    """Return the measured cost of respondents, if the run has exactly one model."""
    plans = [cell.plan for cell in cells if cell.plan.agent]
    if len(models) != 1 or len(plans) != len(cells):
        return {}
    [model] = models.values()
    found = shipped_profiles()
    fixed = any(plan.claims and not plan.looks for plan in plans)
    return {
        "as_planned": profiled(plans, model.entry.price, found),
        "sequential": profiled(plans, model.entry.price, found, sequential=True) if fixed else (),
        "outdated": tuple(outdated(found, ((plan.protocol, plan.sha256) for plan in plans))),
    }


def _cell(
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
    model: LanguageModel | None,
    runs: EarlierRuns,
    seed: int,
    icc: float | None,
) -> CellForecast:
    outlook, most, estimate, seconds, earlier = None, FREE, FREE if model is None else None, None, None
    if specification.has_place:
        walkable = specification.walkable()
        paradigm, view = plugins.compile(walkable), plugins.view(plan.view)
        steps = most_steps(walkable)
        asked = None if model is None or steps is None else _steps_asked(plan, model, steps, paradigm, view)
        outlook = _outlook(plan, len(enter_estimand(plan.estimand, random_life(paradigm, view, plan, seed))), seed, icc)
    else:
        asked = None if model is None else _questions_asked(plugins, plan, specification)
        steps = 1 if asked is None else -(-sum(times for times, _ in asked) // (plan.subjects * plan.trials))
    if model is not None:
        most = _bound(model, asked)
        estimate, seconds, earlier = from_earlier(plan, model, runs)
    if estimate is not None and outlook is not None and outlook.subjects_at_rodent is not None:
        # A model as good as the rodent takes longest to decide: for most models this is an overestimate.
        estimate = scaled(estimate, outlook.subjects_at_rodent / plan.subjects)
    return CellForecast(
        plan=plan,
        steps=steps,
        most=most,
        estimate=estimate,
        seconds=seconds,
        earlier=earlier,
        outlook=outlook,
    )


def _steps_asked(plan: CellPlan, model: LanguageModel, steps: int, paradigm: Paradigm, view: View) -> Asked:
    """Return the calls of a cell with a place, at most: each step takes as many as the agent can make, the longest."""
    calls = plan.subjects * plan.trials * steps * most_asks(model, paradigm, view, plan)
    return [(calls, longest_prompt(model, paradigm, view, plan))]


def _questions_asked(plugins: PluginManager, plan: CellPlan, specification: BaseSpecification) -> Asked:
    """Return the calls of a cell without a place: its questions are known, so that the bound is close."""
    family = plugins.family(specification)
    seat = Seat(plugins=plugins, plan=plan, seed=0, subject=0)
    return [(plan.subjects, prompt) for prompt in rehearse_conversations(family, family.compile(specification), seat)]


def from_earlier(
    plan: CellPlan, model: LanguageModel, runs: EarlierRuns
) -> tuple[Amount | None, float | None, Earlier | None]:
    """Return what earlier runs make of a cell, and the seconds of one of their calls."""
    earlier = runs.of(plan.model, plan.protocol, plan.view)
    if earlier is None or not earlier.totals.calls:
        return None, None, earlier
    estimate = _estimate(plan, earlier, model.entry.price)
    return estimate, earlier.totals.seconds / earlier.totals.calls, earlier


def _bound(model: LanguageModel, asked: Asked | None) -> Amount:
    """Return what these calls take at most: no prompt is longer than the model's context, no reply than its limit."""
    if asked is None:
        return Amount(calls=None, prompt=None, completion=None)
    calls, context = sum(times for times, _ in asked), model.entry.context
    reply = model.settings.get("max_tokens") or context
    if reply is None:
        return Amount(calls=calls, prompt=None, completion=None)
    lengths = ((times, prompt.tokens(reply)) for times, prompt in asked)
    prompts = sum(times * (tokens if context is None else min(tokens, context)) for times, tokens in lengths)
    return _priced(Amount(calls=calls, prompt=prompts, completion=calls * reply), model.entry.price)


def _estimate(plan: CellPlan, earlier: Earlier, price: Price | None) -> Amount:
    share = plan.subjects * plan.trials / earlier.trials
    totals = earlier.totals
    amount = Amount(calls=totals.calls * share, prompt=totals.prompt * share, completion=totals.completion * share)
    return _priced(amount, price, cached=totals.cached * share)


def scaled(amount: Amount, by: float) -> Amount:
    """Return so many times an amount."""

    def scale(value: float | None) -> float | None:
        return None if value is None else value * by

    return Amount(
        calls=scale(amount.calls),
        prompt=scale(amount.prompt),
        completion=scale(amount.completion),
        dollars=scale(amount.dollars),
    )


def _priced(amount: Amount, price: Price | None, cached: float = 0) -> Amount:
    if price is None or amount.prompt is None or amount.completion is None:
        return amount
    usage = Usage(prompt=round(amount.prompt), completion=round(amount.completion), cached=round(cached))
    return replace(amount, dollars=price.cost(usage))


def total(amounts: Sequence[Amount]) -> Amount:
    """Return all together; unknown where any is."""

    def of(name: str) -> float | None:
        values = [getattr(amount, name) for amount in amounts]
        return None if None in values else sum(values)

    return Amount(calls=of("calls"), prompt=of("prompt"), completion=of("completion"), dollars=of("dollars"))


def total_estimate(cells: Sequence[CellForecast]) -> Amount | None:
    """Return all estimates together; None if any cell has none."""
    estimates = [cell.estimate for cell in cells if cell.estimate is not None]
    return total(estimates) if len(estimates) == len(cells) else None


def _minutes(cells: Sequence[CellForecast], concurrency: int) -> float | None:
    """Return the total call time divided by ``concurrency``, or the time of the longest subject if that is more."""
    work, longest = 0.0, 0.0
    for cell in cells:
        if cell.estimate is None or cell.estimate.calls is None:
            return None
        seconds = cell.estimate.calls * (cell.seconds or 0.0)
        work += seconds
        longest = max(longest, seconds / cell.plan.subjects)
    return max(work / concurrency, longest) / 60


def _outlook(plan: CellPlan, trials: int, seed: int, icc: float | None) -> Outlook | None:
    reference = plan.reference
    if reference is None or not plan.claims or not trials or plan.subjects > MOST_SIMULATED:
        return None
    # Without memory between trials, all subjects are alike.
    assumed = 0.0 if plan.memory == "none" else ICC_FLOOR if icc is None else icc
    scale = scale_of(plan)
    animals, margin = scale.merits(reference), plan.margin / abs(scale.unit)
    cohort = like_the_animals(animals, scale, Cohort(subjects=plan.subjects, trials=trials, icc=assumed))
    truths = (animals.value, animals.value - margin)
    needed: tuple[float | None, ...] = (None, None)
    if plan.looks:
        worst = 0.0 if scale.bounded else animals.value - 3 * margin
        (at_rodent, first), (at_margin, _), (_, last) = (
            sequential_chances(rate, cohort, plan.looks, animals, margin, seed=seed) for rate in (*truths, worst)
        )
        needed = (first, last)
    else:
        at_rodent, at_margin = (verdict_chances(rate, cohort, animals, margin, seed=seed) for rate in truths)
    return Outlook(
        rodent=reference.value,
        margin=plan.margin,
        trials=trials,
        icc=assumed,
        at_rodent=at_rodent,
        at_margin=at_margin,
        disagree_at_rodent=disagreement(at_rodent),
        disagree_at_margin=disagreement(at_margin),
        subjects_for_80=subjects_for_power(cohort, animals, margin, seed=seed),
        subjects_at_rodent=needed[0],
        subjects_at_zero=needed[1],
    )


def _all_pass(cells: Iterable[CellForecast]) -> dict[str, float]:
    found: dict[str, float] = {}
    for cell in cells:
        if cell.plan.against == "chance":
            continue
        name = f"{cell.plan.model} in {cell.plan.view}"
        chance = 0.0 if cell.outlook is None else cell.outlook.at_rodent[Verdict.PASS]
        found[name] = found.get(name, 1.0) * chance
    return found
