"""Forecasts a run's cost and verdicts before the run makes any call.

A cell with a reference is simulated a thousand times for three players: one that moves
at random, one exactly as good as the animals (with their learning curve), and one that
succeeds in 95 % of trials (or in another share that the user gives). Each simulated
run has the number of subjects that the verdict's rule would require.

The cost of one subject was measured with scripted respondents on the shipped protocols
(``benchmarks/verdict_cost.py`` writes ``profiles.json``). Where this does not fit, a
rehearsal plays one subject that moves at random through the agent. An earlier run of
the same cell with the same settings (``earlier.py``) takes precedence over both.

The manner of a model's replies (their length, and whether they name an action) comes
from its runs on other protocols, or from a few questions that ``--ask`` puts to it now
(``asking.py``).
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cheesebench import amounts, arguments, tables
from cheesebench.chat import (
    ChatReply,
    ChatRequest,
    Message,
    ModelAgentContext,
    Price,
    Usage,
)
from cheesebench.experiment.cells import replayed_models
from cheesebench.experiment.language_models import run_blocking
from cheesebench.experiment.log_file import check_fits
from cheesebench.experiment.replay import recorded_paradigm
from cheesebench.experiment.subjects import agent_seed, interrupts_of, run_subject
from cheesebench.family import Asker, SubjectContext
from cheesebench.interfaces import ACTIONS
from cheesebench.planning import simulation, told
from cheesebench.planning.earlier import DENSITY, PICTURED, REPLY, EarlierRuns, Manner
from cheesebench.records import Summable
from cheesebench.statistics.ability import Ability, ability
from cheesebench.statistics.question import Question, question_of, scale_of
from cheesebench.statistics.sample import enter_estimand
from cheesebench.trial_loop import TrialLoop

if TYPE_CHECKING:
    from datetime import date

    import numpy as np
    from numpy.typing import NDArray

    from cheesebench.experiment.log import RunLog
    from cheesebench.family import Family, LanguageModel
    from cheesebench.interfaces import BaseSpecification, Paradigm
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan

T = TypeVar("T")

#: The players, each with the scripted respondent whose measured cost it is assumed to
#: have.
PLAYERS = {"random": "weak", "as the animals": "ratlike", "95 % right": "competent"}
#: Pass rate of the last player, unless another one is given.
COMPETENT = 0.95
#: ``PICTURE`` is the number of tokens of a picture, ``AROUND`` the number of tokens
#: that a server adds to each message.
PICTURE, AROUND = 800, 4
#: Minimum share of replies that name an action. Below it, a model is unlike any player.
ACTS = 0.5
#: Minimum share of the allowed actions that a reply names on average. Below it, a model
#: is unlike any player.
ENOUGH = 0.75
#: Number of reasoning tokens per reply that is assumed, without a measurement, for a
#: model that reasons.
REASONING = 1000
#: A rehearsal begins no trial after this many calls. By then, an agent's history is
#: full, unless the user has set a very long one.
MOST_CALLS = 200
#: For a verdict about a measure, ``LIVES`` subjects that move at random are run, or
#: fewer if these have more than ``STEPS`` steps together.
LIVES, STEPS = 100, 50_000
#: The percentiles of a run's cost that a forecast gives.
HALF, NEARLY_ALL = 50, 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent(Summable):
    """Calls and tokens.

    ``cached`` is the number of prompt tokens in vLLM's cache, ``api`` the number in an
    API's cache. ``seconds`` is the elapsed time, or 0 if it is unknown. The time of
    parallel calls counts once.
    """

    calls: float = 0
    prompt: float = 0
    cached: float = 0
    api: float = 0
    completion: float = 0
    seconds: float = 0

    def __mul__(self, factor: float) -> Spent:
        """Return all numbers multiplied by a factor."""
        return Spent(**{name: getattr(self, name) * factor for name in self.__slots__})

    def at(self, price: Price | None) -> float | None:
        """Return the dollars at an API, or None if the price of a call is unknown."""
        if not self.calls:
            return 0.0
        if price is None:
            return None
        return price.cost(
            Usage(
                prompt=round(self.prompt),
                cached=round(self.api),
                completion=round(self.completion),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A scripted respondent on one protocol: its verdict, and the cost of one of its
    subjects.
    """

    trials: int
    rate: float
    stopped: int
    """Number of subjects that the sequential design ran."""
    verdict: str
    each: Spent


@lru_cache(maxsize=1)
def shipped_profiles() -> Mapping[str, tuple[str, Mapping[str, Profile]]]:
    """Return the hash of each measured protocol and the profiles of the respondents on
    it, by the protocol's name.
    """
    found = json.loads(
        files("cheesebench.planning")
        .joinpath("profiles.json")
        .read_text(encoding="utf-8")
    )
    return {
        name: (
            measured["sha256"],
            {
                kind: Profile(**{**one, "each": Spent(**one["each"])})
                for kind, one in measured["respondents"].items()
            },
        )
        for name, measured in found["protocols"].items()
    }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outlook(tables.Brief):
    """The forecast for one player in a cell."""

    passes: float
    fails: float
    disagree: float
    """Probability that two runs get different verdicts."""
    subjects: tuple[float, float]
    """Number of subjects that suffices for half of all runs, and for 95 %."""
    each: Spent
    """Expected cost of one subject, in calls and tokens."""
    dollar_each: float | None = None
    """The expected cost of one subject in dollars, or None if the price of a call is
    unknown.
    """

    @property
    def dollars(self) -> tuple[float, float] | None:
        """Dollars that suffice for half of all runs, and for 95 %, or None if the price
        is unknown.
        """
        half, nearly_all = self.subjects
        each = self.dollar_each
        return None if each is None else (half * each, nearly_all * each)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CellForecast(tables.Brief):
    """The forecast for one planned cell. ``outlooks`` has an entry for each player. If
    no verdict is simulated, there is one player, and all planned subjects run.
    """

    plan: CellPlan
    trials: int
    """Number of trials of a subject that count, or 0 if no verdict is simulated."""
    icc: float | None
    """Intraclass correlation of the trials of a subject as good as the animals, or None
    if no verdict is simulated.
    """
    outlooks: Mapping[str, Outlook]
    measured: bool
    """Whether the cost was measured with scripted respondents on this version of the
    protocol.
    """
    own: bool = False
    """Whether the cost was measured in an earlier run with the same settings."""
    longest: float = 0.0
    """Tokens of the longest prompt."""
    context: int | None = None
    """Maximum number of prompt and reply tokens together, or None if neither the
    model's entry nor its server states it.
    """
    manner: Manner | None = None
    """Statistics of the model's replies, or None if there are none, or if ``own``."""
    icc_basis: simulation.Basis | None = None
    """Where ``icc`` comes from."""
    needed: int | None = None
    """Number of subjects that a model as good as the animals needs for a PASS in 80 %
    of runs, if its subjects differ by ``icc``. It is None if the planned subjects
    suffice for that, or if more than 300 are needed.
    """
    needed_assumed: int | None = None
    """The number that it needs if its subjects differ by ``ICC_FLOOR`` and not as the
    animals do. It is None if ``icc`` is not from the animals, or if more than 300 are
    needed.
    """
    ability: Ability | None = None
    """The animals and the bar on the ability scale, or None if no scale is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Cost of a whole run with one player. Half of all runs need at most the first
    number of each pair, and 95 % at most the second.
    """

    subjects: tuple[float, float]
    calls: tuple[float, float]
    tokens: tuple[float, float]
    dollars: tuple[float, float] | None
    seconds: tuple[float, float] = (0.0, 0.0)
    """Wall-clock seconds, with as many parallel calls as in earlier runs, or 0 if
    unknown.
    """
    suffices: float | None = None
    """Share of runs for which the budget suffices, or None without a limit or a
    price.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Forecast(tables.Tabular):
    """The forecast of a whole run. ``needs`` has an entry for each player."""

    units: ClassVar[Mapping[str, Callable[[float], str]]] = {
        **dict.fromkeys(("rate", "passes", "fails", "disagree"), amounts.percent),
        **dict.fromkeys(("cost", "cost_95"), amounts.dollars),
    }
    optional = frozenset(("calls", "calls_95", "tokens", "tokens_95"))
    cells: tuple[CellForecast, ...]
    needs: Mapping[str, Needs]
    all_pass: Mapping[str, float]
    """For each model and view: the probability that all cells PASS if the model is
    exactly as good as the animals.
    """
    rate: float = COMPETENT
    """Pass rate of the last player."""
    price_of: date | None = None
    """Date of the oldest price that the dollars are computed with."""

    @property
    def told(self) -> tuple[str, ...]:
        """What was assumed about the model, and how to read the columns."""
        asks = any(row["calls"] for row in self.rows())
        claiming = [cell for cell in self.cells if cell.trials]
        free = "No calls are made, so the run is free."
        sources = told.sources(self) if asks else [free]
        few = [*told.limits(self), *told.needed(claiming)]
        how = [told.HOW + told.assumed(claiming)] if claiming else []
        return tuple(map(arguments.in_python, [*few, *sources, *how]))

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each cell and player and, with several cells, a row of each
        player for the whole run (``all``).

        ``rate`` is the player's pass rate (NA if it is unknown), and ``planned`` the
        number of subjects that the run may have.

        A row has the shares of runs that PASS (``passes``) and that FAIL (``fails``),
        how often two runs of the same player get different verdicts (``disagree``), and
        the ``subjects``, ``calls``, ``tokens`` and ``cost`` (dollars) that suffice for
        half of all runs. Columns whose names end in ``_95`` have what suffices for 95
        %. In the row ``all`` of the player as good as the animals, ``passes`` is the
        share of runs that PASS everything, or NA if there are several models or views.
        Other shares are NA in rows ``all``.
        """
        rows: list[dict[str, object]] = [
            {
                "model": cell.plan.model,
                "protocol": cell.plan.label,
                "view": cell.plan.view,
                "player": player,
                "rate": self._rate_of(cell.plan, player),
                "planned": cell.plan.subjects,
                "passes": found.passes,
                "fails": found.fails,
                "disagree": found.disagree,
                **_pair("subjects", found.subjects),
                **_spent(found),
                **_pair("cost", found.dollars),
            }
            for cell in self.cells
            for player, found in cell.outlooks.items()
        ]
        return rows + self._whole() if len(self.cells) > 1 else rows

    def _rate_of(self, plan: CellPlan | None, player: str) -> float | None:
        """Return the pass rate of a player in a cell, or in the whole run (None)."""
        weak, animals, _ = PLAYERS
        if player not in (weak, animals):
            return self.rate
        if plan is None or plan.measured is not None:
            return None
        if player == weak:
            return plan.chance
        return None if plan.reference is None else plan.reference.value

    def _whole(self) -> list[dict[str, object]]:
        """Return a row of the whole run for each simulated player."""
        players = dict.fromkeys(name for cell in self.cells for name in cell.outlooks)
        models = dict.fromkeys(cell.plan.model for cell in self.cells)
        views = dict.fromkeys(cell.plan.view for cell in self.cells)
        chances = list(self.all_pass.values())
        return [
            {
                "model": ", ".join(models),
                "protocol": "all",
                "view": ", ".join(views),
                "player": player,
                "rate": self._rate_of(None, player),
                "planned": None,
                "passes": chances[0]
                if player == "as the animals" and len(chances) == 1
                else None,
                "fails": None,
                "disagree": None,
                **_pair("subjects", self.needs[player].subjects),
                **_pair("calls", self.needs[player].calls),
                **_pair("tokens", self.needs[player].tokens),
                **_pair("cost", self.needs[player].dollars),
            }
            for player in players
        ]


def _pair(name: str, needed: tuple[float, float] | None) -> dict[str, object]:
    """Return the columns ``name`` and ``name_95``. Numbers other than dollars are
    rounded up. Both columns are None if ``needed`` is or, for calls and tokens, if both
    numbers are 0.
    """
    if needed is None or (name in Forecast.optional and not any(needed)):
        return {name: None, f"{name}_95": None}
    half, most = needed if name == "cost" else map(math.ceil, needed)
    return {name: half, f"{name}_95": most}


def _spent(found: Outlook) -> dict[str, object]:
    """Return the columns on a cell's calls and tokens."""
    half, most = found.subjects
    calls, tokens = found.each.calls, found.each.prompt + found.each.completion
    return {
        **_pair("calls", (half * calls, most * calls)),
        **_pair("tokens", (half * tokens, most * tokens)),
    }


@dataclass(frozen=True, slots=True)
class _Runs:
    """Simulated runs of one player in a cell: the number of subjects of each run, and
    the cost of a subject.
    """

    counted: NDArray[np.int64]
    each: Spent
    price: Price | None

    @property
    def dollars(self) -> float | None:
        """Price of one subject, or None if the price of a call is unknown."""
        return self.each.at(self.price)


def forecast(
    plugins: PluginManager,
    cells: Iterable[tuple[CellPlan, BaseSpecification]],
    models: Mapping[str, LanguageModel],
    *,
    seed: int,
    icc: float | None = None,
    rate: float = COMPETENT,
    max_cost: float | None = None,
    max_tokens: int | None = None,
    earlier: EarlierRuns | None = None,
    asked: Mapping[str, Manner] | None = None,
) -> Forecast:
    """Return the forecast for cells. ``models`` has their language models by name.

    ``earlier`` has runs that may show the cost of a model. ``asked`` has the manner of
    the models' answers to their first questions (``asking.py``), which takes precedence
    over replies in earlier runs on other protocols. ``icc`` replaces the intraclass
    correlation of all players but the first, and ``rate`` is the pass rate of the last
    player. Raise OptionError for a cell with more trials than a log may have.
    """
    import numpy as np

    found: list[CellForecast] = []
    runs: dict[str, list[_Runs]] = {name: [] for name in PLAYERS}
    for number, (plan, specification) in enumerate(cells):
        check_fits(plan)
        cost = _SubjectCost(each=dict.fromkeys(PLAYERS, Spent()))
        if (model := models.get(plan.model)) is not None:
            told = (asked or {}).get(plan.model)
            cost = _subject_cost(plugins, plan, specification, model, earlier, told)
        verdicts = _verdicts(plugins, plan, specification, seed, icc, rate)
        found.append(_cell_forecast(plan, cost, verdicts))
        # Cells with the same assumptions have the same simulated runs, so that their
        # rows are equal. In a whole run they are independent.
        order = np.random.default_rng(seed + number)
        for name, own in runs.items():
            player = verdicts.player_for(name)
            counted = order.permutation(verdicts.counted[player])
            own.append(_Runs(counted, cost.each[player], cost.price))
    dates = (
        model.entry.price.on
        for model in models.values()
        if model.entry.price is not None
    )
    needs = {
        name: _needs(own, max_cost, max_tokens) for name, own in runs.items() if own
    }
    return Forecast(
        cells=_at_rate(found, rate),
        needs=_renamed(needs, rate),
        all_pass=_all_pass(found),
        rate=rate,
        price_of=min(dates, default=None),
    )


def _at_rate(cells: Iterable[CellForecast], rate: float) -> tuple[CellForecast, ...]:
    return tuple(replace(one, outlooks=_renamed(one.outlooks, rate)) for one in cells)


def _renamed(players: Mapping[str, T], rate: float) -> dict[str, T]:
    """Return a mapping by player in which the last player is named after its rate, such
    as ``60 % right``.
    """
    last, named = list(PLAYERS)[-1], f"{amounts.percent(rate)} right"
    return {named if name == last else name: one for name, one in players.items()}


# -- cost of a cell's subjects


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubjectCost:
    """The cost of one subject of a cell for each player, and what it is based on."""

    each: Mapping[str, Spent]
    measured: bool = False
    own: bool = False
    longest: float = 0.0
    manner: Manner | None = None
    context: int | None = None
    price: Price | None = None


def _subject_cost(
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
    model: LanguageModel,
    earlier: EarlierRuns | None,
    asked: Manner | None,
) -> _SubjectCost:
    """Return a subject's cost in an earlier run of the same cell or, without such a
    run, its cost with replies in the model's manner.
    """
    profiles = _measured_profiles(plan)
    cost = _SubjectCost(
        each={},
        measured=profiles is not None,
        context=(asked and asked.context) or model.entry.context,
        price=model.entry.price,
    )
    if earlier is not None and (own := earlier.subject(plan)) is not None:
        longest = own.pop("longest")
        each = dict.fromkeys(PLAYERS, Spent(**own))
        return replace(cost, each=each, own=True, longest=longest)
    manner = asked or (None if earlier is None else earlier.manner(plan))
    expected = manner or Manner(reply=_reply_of(model))
    rehearsed, longest = rehearse(plugins, plan, specification, model, expected)
    cost = replace(cost, longest=longest, manner=manner)
    if profiles is None or not _resembles_players(expected, plan):
        each = dict.fromkeys(PLAYERS, rehearsed)
        return replace(cost, each=each, measured=False)
    return replace(cost, each=_in_its_manner(profiles, plan.trials, expected))


def cost_as_recorded(log: RunLog, plugins: PluginManager, plan: CellPlan) -> Spent:
    """Return the cost of a subject of a cell in a log, for the dearest player, in the
    manner of the latest replies. No trial of the log counts, because the first ones are
    the cheapest.
    """
    specification = recorded_paradigm(log, plugins, plan).specification
    model = replayed_models(plugins, [plan])[plan.model]
    manner = EarlierRuns(log.directory.parent).manner(plan)
    cost = _subject_cost(plugins, plan, specification, model, None, manner)
    return max(cost.each.values(), key=lambda one: one.prompt + one.completion)


def _measured_profiles(plan: CellPlan) -> Mapping[str, Profile] | None:
    """Return the measured profile of each player, or None if they do not fit the
    plan.
    """
    mark, profiles = shipped_profiles().get(plan.protocol, ("", {}))
    if mark != plan.sha256 or not set(PLAYERS.values()) <= set(profiles):
        return None
    found = {name: profiles[kind] for name, kind in PLAYERS.items()}
    # The first prompts are the shortest, so the cost of all trials says little about a
    # few first trials.
    if any(2 * plan.trials < profile.trials for profile in found.values()):
        return None
    return found


def _resembles_players(manner: Manner, plan: CellPlan) -> bool:
    """Return whether a model names about as many actions as the scripted respondents,
    which name as many as allowed.
    """
    if manner.acts < ACTS:
        return False
    return manner.actions is None or manner.actions >= ENOUGH * plan.settings["actions"]


# -- verdicts on a cell


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdicts:
    """The simulated verdicts of a cell for each player. ``counted`` has the number of
    subjects of each run.

    If no verdict is simulated, there is one player.
    """

    counted: Mapping[str, NDArray[np.int64]]
    simulated: Mapping[str, simulation.Simulated] = field(default_factory=dict)
    trials: int = 0
    icc: float | None = None
    icc_basis: simulation.Basis | None = None
    needed: int | None = None
    needed_assumed: int | None = None

    def player_for(self, name: str) -> str:
        """Return the player of this name, or the only player."""
        return name if name in self.counted else next(iter(self.counted))


def _verdicts(
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
    seed: int,
    icc: float | None,
    rate: float,
) -> _Verdicts:
    import numpy as np

    sessions = specification.judged_sessions
    if (question := _simulated_question(plan, sessions)) is None:
        return _Verdicts(counted={next(iter(PLAYERS)): np.array([plan.subjects])})
    own_icc, basis = simulation.clustering_of(plan, icc, specification.animals_icc)
    animals = simulation.subjects_like_animals(plan, sessions, own_icc)
    # What the animals' rows show holds for the animals; of another player nothing is
    # known.
    unlike = (
        replace(animals, icc=simulation.ICC_FLOOR) if basis == "animals" else animals
    )
    weak = _at_random(plugins, plan, specification, animals)
    competent = animals if question.alike else unlike.at(rate)
    simulated = {
        name: simulation.simulate(
            question,
            subjects,
            plan.subjects,
            seed=seed,
            goal=plan.goal,
            sequential=plan.sequential,
        )
        for name, subjects in zip(PLAYERS, (weak, animals, competent), strict=True)
    }
    _, own, _ = simulated.values()
    needing = partial(simulation.subjects_needed, question, seed=seed, goal=plan.goal)
    return _Verdicts(
        counted={name: one.counted for name, one in simulated.items()},
        simulated=simulated,
        needed=needing(animals) if own.passes < simulation.MUST_PASS else None,
        needed_assumed=needing(unlike) if basis == "animals" else None,
        trials=sum(sessions.values()),
        icc=animals.icc,
        icc_basis=basis,
    )


def _simulated_question(plan: CellPlan, sessions: Mapping[int, int]) -> Question | None:
    """Return the question of a cell whose verdict can be simulated, otherwise None."""
    can_be = plan.against == "reference" and (sessions or plan.measured is not None)
    few = plan.subjects <= simulation.MOST_SIMULATED
    return question_of(plan) if can_be and few else None


def _cell_forecast(
    plan: CellPlan, cost: _SubjectCost, verdicts: _Verdicts
) -> CellForecast:
    outlooks = {
        name: Outlook(
            passes=one.passes,
            fails=one.fails,
            disagree=one.disagree,
            subjects=_percentiles(one.counted),
            each=cost.each[name],
            dollar_each=cost.each[name].at(cost.price),
        )
        for name, one in verdicts.simulated.items()
    }
    if not outlooks:
        (alone,) = verdicts.counted
        outlooks[alone] = Outlook(
            passes=0,
            fails=0,
            disagree=0,
            subjects=(plan.subjects, plan.subjects),
            each=cost.each[alone],
            dollar_each=cost.each[alone].at(cost.price),
        )
    return CellForecast(
        plan=plan,
        trials=verdicts.trials,
        icc=verdicts.icc,
        icc_basis=verdicts.icc_basis,
        outlooks=outlooks,
        needed=verdicts.needed,
        needed_assumed=verdicts.needed_assumed,
        measured=cost.measured,
        own=cost.own,
        longest=cost.longest,
        context=cost.context,
        manner=cost.manner,
        ability=ability(plan, None),
    )


def _at_random(
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
    animals: simulation.Subjects,
) -> simulation.Subjects:
    """Return subjects that move at random. Their pass rate is declared, and the same
    for all of them. Their score in a measure is not declared, so it is measured here.
    """
    if plan.measured is None:
        return replace(animals.at(plan.chance or 0.0), icc=0.0)
    means = _means_at_random(plugins, plan, specification)
    if len(means) < 2:
        return simulation.Subjects(sessions=((0.0, 1),), spread=0.0)
    return simulation.Subjects(
        sessions=((statistics.fmean(means), 1),), spread=statistics.stdev(means)
    )


def _means_at_random(
    plugins: PluginManager, plan: CellPlan, specification: BaseSpecification
) -> list[float]:
    """Return the mean score of each subject that moves at random, for at most ``LIVES``
    subjects and about ``STEPS`` steps.
    """
    scale, view, paradigm = (
        scale_of(plan),
        plugins.view(plan.view),
        plugins.compile(specification),
    )
    means, steps = list[float](), 0
    for subject in range(LIVES):
        if steps > STEPS:
            break
        life = [
            record
            for record, _ in run_subject(
                paradigm, view, plugins.agent("random"), plan, 0, subject
            )
        ]
        steps += sum(record.steps for record in life)
        scores = [
            scale.score_of(record) for record in enter_estimand(plan.estimand, life)
        ]
        if known := [score for score in scores if score is not None]:
            means.append(statistics.fmean(known))
    return means


def _needs(
    cells: Sequence[_Runs], max_cost: float | None, max_tokens: int | None
) -> Needs:
    """Return the percentiles of what all cells need together. Cells are independent of
    one another.
    """
    import numpy as np

    longest = max(len(one.counted) for one in cells)
    counts = [np.resize(one.counted, longest) for one in cells]

    def total(of: Callable[[_Runs], float]) -> NDArray[np.float64]:
        parts = [count * of(one) for count, one in zip(counts, cells, strict=True)]
        return np.asarray(np.sum(parts, axis=0), dtype=float)

    has_price = all(one.dollars is not None for one in cells)
    dollars = total(lambda one: one.dollars or 0.0) if has_price else None
    tokens = total(lambda one: one.each.prompt + one.each.completion)
    return Needs(
        subjects=_percentiles(total(lambda one: 1.0)),
        calls=_percentiles(total(lambda one: one.each.calls)),
        tokens=_percentiles(tokens),
        dollars=None if dollars is None else _percentiles(dollars),
        seconds=_percentiles(total(lambda one: one.each.seconds)),
        suffices=_share_within([(dollars, max_cost), (tokens, max_tokens)]),
    )


def _share_within(
    spent: Sequence[tuple[NDArray[np.float64] | None, float | None]],
) -> float | None:
    """Return the share of runs within every limit, or None without a limit."""
    import numpy as np

    within = [
        own <= most for own, most in spent if own is not None and most is not None
    ]
    return float(np.all(within, axis=0).mean()) if within else None


def _percentiles(values: NDArray[Any]) -> tuple[float, float]:
    import numpy as np

    half, nearly_all = np.percentile(values, (HALF, NEARLY_ALL))
    return float(half), float(nearly_all)


def _all_pass(cells: Iterable[CellForecast]) -> dict[str, float]:
    found: dict[str, float] = {}
    for cell in cells:
        animals = cell.outlooks.get("as the animals")
        if (
            cell.plan.claims
            and cell.plan.against == "reference"
            and not cell.plan.control
        ):
            name = f"{cell.plan.model} in {cell.plan.view}"
            found[name] = found.get(name, 1.0) * (
                0.0 if animals is None else animals.passes
            )
    return found


# -- rehearsal of one subject, without a model


def rehearse(
    plugins: PluginManager,
    plan: CellPlan,
    specification: BaseSpecification,
    model: LanguageModel,
    manner: Manner | None = None,
) -> tuple[Spent, float]:
    """Return the cost of a subject that moves at random and answers in the model's
    manner, and the tokens of its longest prompt.

    All prompt tokens count as outside the server's cache.
    """
    manner = manner or Manner(reply=_reply_of(model))
    paradigm = plugins.compile(specification)
    if not paradigm.is_stepwise:
        listener = _Listener(plan, manner)
        _converse(plugins.family(specification), paradigm, plan, plugins, listener)
        return sum(listener.spent, Spent()), max(
            (one.prompt for one in listener.spent), default=0.0
        )
    spent, trials = _walk(plugins, plan, paradigm, model, manner)
    return sum(spent, Spent()) * (plan.trials / trials), max(
        (one.prompt for one in spent), default=0.0
    )


def _in_its_manner(
    profiles: Mapping[str, Profile], trials: int, manner: Manner
) -> dict[str, Spent]:
    """Return the costs of the scripted respondents over this many trials, if their
    replies were as long as the model's.
    """
    return {
        name: _with_replies_of(profile.each * (trials / profile.trials), manner)
        for name, profile in profiles.items()
    }


def _with_replies_of(measured: Spent, manner: Manner) -> Spent:
    more = measured.calls * (manner.reply - REPLY)
    seconds, factor = measured.calls * manner.seconds, manner.density / DENSITY
    parts = {
        name: getattr(measured, name) * factor for name in ("prompt", "cached", "api")
    }
    return replace(
        measured, **parts, completion=measured.completion + more, seconds=seconds
    )


def _reply_of(model: LanguageModel) -> float:
    """Return the number of tokens of a reply that is assumed without a measurement,
    including the reasoning of a reasoning model.
    """
    return REPLY + (REASONING if model.entry.reasoning else 0)


def _walk(
    plugins: PluginManager,
    plan: CellPlan,
    paradigm: Paradigm,
    model: LanguageModel,
    manner: Manner,
) -> tuple[list[Spent], float]:
    """Return the cost of each call of the first trials, and the number of these
    trials.
    """
    settings = {name: plan.settings[name] for name in model.agent.settings}
    agent = model.agent.create(
        ModelAgentContext(
            seed=agent_seed(plan, 0, 0), view=plan.view, settings=settings
        )
    )
    life = paradigm.environment(plugins.view(plan.view), 0, 0)
    choices, spent, trials = random.Random(0), list[Spent](), 0
    while (
        len(spent) < MOST_CALLS
        and trials < plan.trials
        and (observation := life.begin_trial()) is not None
    ):
        agent.begin_trial(observation)
        loop = TrialLoop(
            life,
            observation,
            agent.observe,
            interrupts=interrupts_of(plan),
            listener=lambda: agent,
        )
        while not loop.ended:
            spent.append(_cost(agent.prompt(), manner))
            said = ", ".join(
                choices.choice(ACTIONS)
                for _ in range(_count(settings, manner, choices))
            )
            acts = choices.random() < manner.acts
            if actions := agent.read(
                ChatReply(text=f"ACTIONS: {said}" if acts else "?")
            ):
                # Without actions, the agent asks again, as it does after notes.
                loop.act(actions)
        trials += 1
    return spent, max(1, trials)


def _count(settings: Mapping[str, Any], manner: Manner, choices: random.Random) -> int:
    """Return the number of actions in the next reply. Its mean is ``manner.actions``
    or, if this is None, as many as allowed.
    """
    if manner.actions is None:
        return int(settings.get("actions") or 1)
    whole = int(manner.actions)
    return max(1, whole + (choices.random() < manner.actions - whole))


def _cost(prompt: Sequence[Message], manner: Manner) -> Spent:
    size, pictures = size_of(prompt)
    # The prompt has the short replies of the rehearsal, so the tokens of a model's own
    # earlier replies are added. Reasoning does not stay in a prompt.
    replies = (
        sum(message.role == "assistant" for message in prompt)
        * min(manner.reply, REPLY)
        * manner.acts
    )
    tokens = size * manner.density + pictures * PICTURE + replies + AROUND * len(prompt)
    return Spent(
        calls=1, prompt=tokens, completion=manner.reply, seconds=manner.seconds
    )


def size_of(prompt: Sequence[Message]) -> tuple[float, int]:
    """Return the number of bytes of text in a prompt, weighted by ``PICTURED`` for
    observations, and its number of pictures.
    """
    size, pictures = 0.0, 0
    for message in prompt:
        weight = 1.0 if message.role == "system" else PICTURED
        size += weight * sum(
            len(part.encode()) for part in message.parts if isinstance(part, str)
        )
        pictures += sum(isinstance(part, bytes) for part in message.parts)
    return size, pictures


def _converse(
    family: Family[Any, Any],
    paradigm: Paradigm,
    plan: CellPlan,
    plugins: PluginManager,
    listener: _Listener,
) -> None:
    context = SubjectContext(plugins=plugins, plan=plan, seed=0, subject=0)

    async def whole() -> None:
        async for _ in family.converse(paradigm, context, listener):
            pass

    run_blocking(whole())


@dataclass
class _Listener(Asker):
    """Answers every call with the same word, and records the cost of the request."""

    plan: CellPlan
    manner: Manner
    spent: list[Spent] = field(default_factory=list)

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        self.spent.append(_cost(request.messages, self.manner))
        return ChatReply(text="unknown")


__all__ = [
    "CellForecast",
    "Forecast",
    "Needs",
    "Outlook",
    "Profile",
    "Spent",
    "forecast",
    "rehearse",
    "shipped_profiles",
]
