"""The forecast of a run: costs of subjects, percentiles, and rows of its table."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cheesebench import planning
from cheesebench.chat import Message, ModelEntry, Price
from cheesebench.errors import OptionError
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.family import LanguageModel
from cheesebench.paradigms.dialogue.life import plan_dialogue
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.planning import (
    PLAYERS,
    CellForecast,
    Forecast,
    Needs,
    Outlook,
    Profile,
    Spent,
    forecast,
    rehearse,
    shipped_profiles,
    simulation,
    size_of,
)
from cheesebench.planning.earlier import DENSITY, PICTURED, REPLY, Manner
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.records import CellPlan, Measured, ReferenceValue, TrialRecord
from tests.paradigms.dialogue.conftest import TEXT
from tests.stored import check_stored

PRICE = Price(prompt=2.0, cached=0.5, completion=10.0, on=date(2026, 1, 2))


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate 100 runs, which is quicker."""
    monkeypatch.setattr(simulation, "RUNS", 100)


@pytest.fixture
def little(here: Path) -> Specification:
    return with_arena(Catalogue().load(here / "little.protocol.yaml"))


def model_of(agent: str = "llm", **entry: Any) -> LanguageModel:
    named: dict[str, Any] = {
        "name": "m",
        "backend": "openai",
        "id": "m",
        "price": PRICE,
        "context": 8000,
    }
    return language_model(
        installed_plugins(), ModelEntry(**(named | entry)), agent=agent
    )


def planned(
    specification: Specification,
    model: LanguageModel | None = None,
    subjects: int = 8,
    **changes: Any,
) -> CellPlan:
    name, agent, settings = "random", "", {}
    if model is not None:
        name, agent, settings = model.entry.name, model.agent.name, dict(model.settings)
    design = find_design(changes.pop("design", "cohort"), subjects)
    plan = plan_cell(
        specification, name, "ascii_2d", design, agent=agent, settings=settings
    )
    return replace(plan, **changes)


def test_amounts_are_added_multiplied_and_priced() -> None:
    one = Spent(calls=2, prompt=1000, cached=1, api=400, completion=100, seconds=3)
    assert one * 2 == one + one
    assert one * 0.5 == Spent(
        calls=1, prompt=500, cached=0.5, api=200, completion=50, seconds=1.5
    )
    assert one.at(PRICE) == pytest.approx((600 * 2 + 400 * 0.5 + 100 * 10) / 1e6)
    assert one.at(None) is None
    assert Spent().at(None) == Spent().at(PRICE) == 0.0


def test_profiles_are_those_of_every_player() -> None:
    profiles = shipped_profiles()
    mark, found = profiles["t_maze"]
    assert len(mark) == 64
    assert set(PLAYERS.values()) <= set(found)
    assert all(one.each.calls > 0 for one in found.values())
    assert shipped_profiles() is profiles


def profile(trials: int = 10, **each: float) -> Profile:
    return Profile(
        trials=trials, rate=0.5, stopped=6, verdict="PASS", each=Spent(**each)
    )


def test_a_measured_profile_is_changed_to_the_model_s_manner() -> None:
    measured = {
        "x": profile(10, calls=20, prompt=1000, cached=600, api=400, completion=1800)
    }
    manner = Manner(reply=100, density=0.5, seconds=2.0)
    found = planning._in_its_manner(measured, 5, manner)
    # Half of the trials; twice as dense prompts; replies of 100 tokens instead of 90.
    assert found == {
        "x": Spent(calls=10, prompt=1000, cached=600, api=400, completion=900 + 10 * (100 - REPLY), seconds=20)
    }  # fmt: skip
    assert (REPLY, DENSITY) == (90, 0.25)


def test_measured_profiles_fit_only_the_same_protocol_at_half_its_length(
    little: Specification, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(little)
    found = {kind: profile(2 * plan.trials) for kind in PLAYERS.values()}
    known = {"little": (plan.sha256, found)}
    monkeypatch.setattr(planning, "shipped_profiles", lambda: known)
    assert planning._measured_profiles(plan) == {
        name: found[kind] for name, kind in PLAYERS.items()
    }
    assert planning._measured_profiles(replace(plan, sha256="x")) is None
    assert planning._measured_profiles(replace(plan, protocol="x")) is None
    found["weak"] = profile(2 * plan.trials + 1)
    assert planning._measured_profiles(plan) is None
    del found["weak"]
    assert planning._measured_profiles(plan) is None


def test_a_model_is_like_a_player_if_it_acts_enough(little: Specification) -> None:
    plan = planned(little, settings={"actions": 8})

    def alike(acts: float, actions: float | None) -> bool:
        return planning._resembles_players(Manner(acts=acts, actions=actions), plan)

    assert alike(0.5, None)
    assert alike(0.5, 6.0)
    assert not alike(0.49, None)
    assert not alike(1.0, 5.9)


def test_the_size_of_a_prompt_is_weighted() -> None:
    prompt = [
        Message(role="system", parts=("äb",)),
        Message(role="user", parts=("abcd", b"png", "e")),
        Message(role="assistant", parts=("12",)),
    ]  # fmt: skip
    assert size_of(prompt) == (3 + PICTURED * 5 + PICTURED * 2, 1)
    manner = Manner(reply=70, density=0.5, acts=0.5, seconds=2.0)
    found = planning._cost(prompt, manner)
    tokens = (3 + PICTURED * 7) * 0.5 + 800 + 70 * 0.5 + 4 * 3
    assert found == replace(found, calls=1, completion=70, cached=0, api=0, seconds=2.0)
    assert found.prompt == pytest.approx(tokens)
    long = planning._cost(prompt, replace(manner, reply=1000))
    assert long.prompt == pytest.approx(tokens + (REPLY - 70) * 0.5)


def test_the_number_of_actions_has_the_manner_s_mean() -> None:
    def counts(mean: float | None, **settings: int) -> list[int]:
        choices = random.Random(1)
        return [
            planning._count(settings, Manner(actions=mean), choices) for _ in range(400)
        ]

    assert set(counts(None, actions=5)) == {5}
    assert set(counts(None)) == {1}
    assert set(counts(0.25)) == {1}
    assert set(counts(2.0)) == {2}
    some = counts(2.25)
    assert set(some) == {2, 3}
    assert 0.17 < some.count(3) / 400 < 0.33


@pytest.mark.parametrize("agent", ["llm", "llm-tools"])
def test_a_subject_is_rehearsed_without_a_model(
    little: Specification, agent: str
) -> None:
    model, plugins = model_of(agent), installed_plugins()
    plan = planned(little, model)
    spent, longest = rehearse(plugins, plan, little, model)
    assert spent.completion == REPLY * spent.calls
    assert spent.calls >= plan.trials
    assert spent.prompt / spent.calls < longest < spent.prompt
    mute, _ = rehearse(plugins, plan, little, model, Manner(acts=0.0, reply=10))
    assert mute.completion == 10 * mute.calls
    assert rehearse(plugins, plan, little, model) == (spent, longest)
    reasoning, _ = rehearse(plugins, plan, little, model_of(agent, reasoning=True))
    assert reasoning.completion == (REPLY + 1000) * reasoning.calls
    # The first trials stand for all of them.
    many = replace(plan, trials=10 * plan.trials)
    whole, _ = rehearse(plugins, many, little, model)
    assert whole.calls == pytest.approx(10 * spent.calls)


def test_percentiles_and_shares_within_budgets() -> None:
    values = np.arange(101)
    assert planning._percentiles(values) == (50.0, 95.0)
    within: Callable[..., float | None] = planning._share_within
    assert within([(values, 49), (values, None), (None, 3.0)]) == pytest.approx(
        50 / 101
    )
    assert within([(values, 49), (values, 24)]) == pytest.approx(25 / 101)
    assert within([(values, None), (None, 1.0)]) is None


def test_needs_are_those_of_all_cells_together() -> None:
    each = Spent(calls=2, prompt=100, completion=10, seconds=1.5)
    one = planning._Runs(np.array([10] * 99 + [20]), each, PRICE)
    other = planning._Runs(np.array([1]), Spent(calls=1, prompt=5), PRICE)
    found = planning._needs([one, other], None, 1105)
    assert found.subjects == (11.0, 11.0)
    assert found.calls == (21.0, 21.0)
    assert found.tokens == (1105.0, 1105.0)
    dollars = (10 * (200 + 100) + 10) / 1e6
    assert found.dollars == pytest.approx((dollars, dollars))
    assert found.seconds == (15.0, 15.0)
    assert found.suffices == 0.99
    assert planning._needs([one, other], None, 1104).suffices == 0.0
    assert planning._needs([one, other], dollars / 2, 10**9).suffices == 0.0
    unknown = planning._needs([one, replace(other, price=None)], 1.0, None)
    assert (unknown.dollars, unknown.suffices) == (None, None)


@pytest.mark.parametrize(
    ("name", "needed", "shown"),
    [
        ("subjects", (9.2, 12.0), (10, 12)),
        ("calls", (0.0, 0.0), (None, None)),
        ("calls", (0.0, 0.5), (0, 1)),
        ("cost", (0.5, 1.25), (0.5, 1.25)),
        ("cost", None, (None, None)),
    ],
)
def test_numbers_other_than_dollars_are_rounded_up(
    name: str, needed: tuple[float, float] | None, shown: tuple[object, object]
) -> None:
    half, most = shown
    assert planning._pair(name, needed) == {name: half, f"{name}_95": most}


def outlook(passes: float, **each: float) -> Outlook:
    return Outlook(
        passes=passes, fails=0.1, disagree=0.2, subjects=(8.0, 10.5), each=Spent(**each), dollar_each=0.5
    )  # fmt: skip


def test_rows_have_all_players_and_the_whole_run(little: Specification) -> None:
    plan = planned(little)
    players = {
        "random": outlook(0.0), "as the animals": outlook(0.9, calls=2, prompt=10, completion=1.5), "60 % right": outlook(1.0),
    }  # fmt: skip
    cell = CellForecast(plan=plan, trials=4, icc=0.3, outlooks=players, measured=True)
    measure = ReferenceValue(value=3.0, measured=Measured(name="x"))
    other = replace(cell, plan=replace(plan, reference=measure, protocol="other"))
    need = Needs(
        subjects=(16.0, 20.5), calls=(0.0, 0.0), tokens=(9.5, 10.0), dollars=(1.0, 2.0)
    )
    needs = dict.fromkeys(players, need)
    found = Forecast(
        cells=(cell, other), needs=needs, all_pass={"random in v": 0.8}, rate=0.6
    )
    rows = found.rows()
    assert len(rows) == 9
    assert rows[1] == {
        "model": "random", "protocol": "little", "view": "ascii_2d", "player": "as the animals", "rate": 0.75,
        "planned": 8, "passes": 0.9, "fails": 0.1, "disagree": 0.2, "subjects": 8, "subjects_95": 11, "calls": 16,
        "calls_95": 21, "tokens": 92, "tokens_95": 121, "cost": 4.0, "cost_95": 5.25,
    }  # fmt: skip
    assert [row["rate"] for row in rows] == [
        0.125,
        0.75,
        0.6,
        None,
        None,
        0.6,
        None,
        None,
        0.6,
    ]
    assert rows[7] == {
        "model": "random", "protocol": "all", "view": "ascii_2d", "player": "as the animals", "rate": None,
        "planned": None, "passes": 0.8, "fails": None, "disagree": None, "subjects": 16, "subjects_95": 21,
        "calls": None, "calls_95": None, "tokens": 10, "tokens_95": 10, "cost": 1.0, "cost_95": 2.0,
    }  # fmt: skip
    assert rows[6]["passes"] is None
    two = replace(found, all_pass={"a": 0.8, "b": 0.7}).rows()
    assert two[7]["passes"] is None
    assert len(replace(found, cells=(cell,)).rows()) == 3
    assert replace(players["random"], dollar_each=None).dollars is None


def test_all_cells_pass_with_the_product_of_their_chances(
    little: Specification,
) -> None:
    plan = planned(little)

    def cell(passes: float, **changes: Any) -> CellForecast:
        players = {"as the animals": outlook(passes)}
        return CellForecast(
            plan=replace(plan, **changes), trials=4, icc=None, outlooks=(changes and players) or players, measured=False,
        )  # fmt: skip

    alone = replace(
        cell(0.0), outlooks={"random": outlook(1.0)}, plan=replace(plan, view="w")
    )
    cells = [
        cell(0.5), cell(0.8), cell(0.1, claims=False), cell(0.1, against="chance"), cell(0.9, model="n"), alone,
    ]  # fmt: skip
    assert planning._all_pass(cells) == {
        "random in ascii_2d": pytest.approx(0.4), "n in ascii_2d": 0.9, "random in w": 0.0,
    }  # fmt: skip


def plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return "–".join(map(plain, value))
    return str(value)


def test_forecasts_are_compared_with_what_is_stored(little: Specification) -> None:
    model = model_of()
    free = (planned(little), little)
    dear = (planned(little, model), little)
    smoke = (planned(little, model, design="smoke"), little)
    chance = (planned(little, against="chance"), little)
    sequential = (planned(little, model, 20, design="sequential"), little)
    forecasts = {
        "free": forecast(installed_plugins(), [free], {}, seed=1),
        "dear and free": forecast(
            installed_plugins(), [dear, free], {"m": model}, seed=1, icc=0.1, rate=0.6, max_cost=0.02, max_tokens=10**9
        ),
        "sequential": forecast(installed_plugins(), [sequential], {"m": model}, seed=2, max_tokens=20_000),
        "without a claim": forecast(installed_plugins(), [smoke, chance], {"m": model}, seed=1),
        "asked": forecast(
            installed_plugins(), [dear], {"m": model}, seed=1,
            asked={"m": Manner(replies=6, reply=50, acts=0.5, actions=2.5, seconds=3, context=99, asked=True)},
        ),
    }  # fmt: skip
    lines = []
    for name, found in forecasts.items():
        lines.append(f"{name}: {found.price_of}, {dict(found.all_pass)}, {found.rate}")
        for row in found.rows():
            lines.append(
                "  " + " ".join(f"{key}={plain(value)}" for key, value in row.items())
            )
        for player, need in found.needs.items():
            own = {key: getattr(need, key) for key in need.__slots__}
            lines.append(
                f"  {player}: " + " ".join(f"{k}={plain(v)}" for k, v in own.items())
            )
        for one in found.cells:
            keys = (
                "trials", "icc", "icc_basis", "measured", "own", "longest", "context", "needed", "needed_assumed",
            )  # fmt: skip
            lines.append(
                "  " + " ".join(f"{key}={plain(getattr(one, key))}" for key in keys)
            )
        lines += [f"  {one[:40]}" for one in found.told]
    check_stored("forecasts.txt", "\n".join([*lines, ""]))


def test_a_cell_that_no_log_can_have_is_refused(little: Specification) -> None:
    plan = planned(little, trials=10**9, subjects=10**6)
    with pytest.raises(OptionError):
        forecast(installed_plugins(), [(plan, little)], {}, seed=1)


def test_many_subjects_are_not_simulated(little: Specification) -> None:
    plan = planned(little, subjects=simulation.MOST_SIMULATED + 1)
    found = forecast(installed_plugins(), [(plan, little)], {}, seed=1)
    assert list(found.cells[0].outlooks) == ["random"]
    assert found.needs["as the animals"].subjects == (2001.0, 2001.0)


class Before:
    """An earlier run, by what is asked of it."""

    def __init__(self, own: dict[str, float] | None, manner: Manner | None) -> None:
        self._own, self._manner = own, manner

    def subject(self, plan: CellPlan) -> dict[str, float] | None:
        return self._own

    def manner(self, plan: CellPlan) -> Manner | None:
        return self._manner


def test_a_subject_costs_what_it_cost_before_or_what_its_manner_says(
    little: Specification, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, plugins = model_of(), installed_plugins()
    plan = planned(little, model)

    def cost(own: Any = None, before: Any = None, asked: Manner | None = None) -> Any:
        earlier: Any = Before(own, before)
        return planning._subject_cost(plugins, plan, little, model, earlier, asked)

    spent = {"calls": 3.0, "prompt": 70.0}
    own = cost({**spent, "longest": 40.0}, asked=Manner(context=99))
    assert own.each == dict.fromkeys(PLAYERS, Spent(**spent))
    assert (own.own, own.longest, own.context, own.price) == (True, 40.0, 99, PRICE)
    quick, talkative = Manner(reply=10), Manner(reply=300)
    for found, manner in (
        (cost(before=quick), quick),
        (cost(before=quick, asked=talkative), talkative),
        (cost(), None),
    ):
        reply = REPLY if manner is None else manner.reply
        assert (found.manner, found.own, found.measured) == (manner, False, False)
        assert all(one.completion == reply * one.calls for one in found.each.values())
        assert (found.context, found.longest > 0) == (8000, True)
    profiles = {
        name: profile(plan.trials, calls=number, completion=number * REPLY)
        for number, name in enumerate(PLAYERS, 1)
    }
    monkeypatch.setattr(planning, "_measured_profiles", lambda plan: profiles)
    measured = cost(before=quick)
    assert measured.measured
    assert [one.calls for one in measured.each.values()] == [
        *range(1, len(PLAYERS) + 1)
    ]
    idle = cost(before=replace(quick, acts=0.1))
    assert not idle.measured
    assert len({one.calls for one in idle.each.values()}) == 1


def test_a_measure_of_random_moves_is_measured(
    little: Specification, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = installed_plugins()
    speed = Measured(name="steps", better="lower", range=(0.0, 100.0))
    plan = planned(little, reference=ReferenceValue(value=3.0, measured=speed))
    animals = simulation.Subjects(sessions=((0.9, 4),), spread=0.1, icc=0.2)

    def at_random(plan: CellPlan) -> simulation.Subjects:
        return planning._at_random(plugins, plan, little, animals)

    rate = at_random(planned(little, chance=0.25))
    assert rate == replace(animals.at(0.25), icc=0.0)
    lives: list[list[int | None]] = [[75, None], [50, 0], [None], [25]]
    took = iter(lives * 2)
    lived = list[int]()

    def run_subject(*given: Any) -> Iterator[tuple[TrialRecord, tuple[()]]]:
        lived.append(given[-1])
        for trial, steps in enumerate(next(took)):
            measures = {} if steps is None else {"steps": steps}
            yield (
                TrialRecord(
                    model="random", protocol="little", view="ascii_2d", subject=given[-1], trial=trial, success=True,
                    steps=10, measures=measures,
                ),
                (),
            )  # fmt: skip

    monkeypatch.setattr(planning, "run_subject", run_subject)
    monkeypatch.setattr(planning, "LIVES", 4)
    assert planning._means_at_random(plugins, plan, little) == [0.25, 0.75, 0.75]
    assert lived == [0, 1, 2, 3]
    found = at_random(plan)
    [(mean, count)] = found.sessions
    assert mean == pytest.approx(7 / 12)
    assert count == 1
    assert found.spread == pytest.approx(1 / 12**0.5)
    took = iter([[75], [50], [25]])
    monkeypatch.setattr(planning, "STEPS", 10)
    assert planning._means_at_random(plugins, plan, little) == [0.25, 0.5]
    monkeypatch.setattr(planning, "LIVES", 2)
    took = iter([[75], [25]])
    assert at_random(plan).sessions == ((0.5, 1),)
    took = iter([[75], [None]])
    assert at_random(plan) == simulation.Subjects(sessions=((0.0, 1),), spread=0.0)


def test_a_dialogue_is_rehearsed_whole() -> None:
    garden, found = Catalogue().inspect_text(TEXT, "garden.protocol.yaml")
    assert isinstance(garden, DialogueSpecification), found
    model, plugins = model_of("llm"), installed_plugins()
    spent, longest = {}, {}
    for condition in ("plain", "cut"):
        plan = plan_dialogue(
            garden, "m", "numbers", condition, find_design("cohort", 2),
            agent="llm", settings=dict(model.settings),
        )  # fmt: skip
        spent[condition], longest[condition] = rehearse(plugins, plan, garden, model)
    assert [one.calls for one in spent.values()] == [1, 2]
    assert [one.completion for one in spent.values()] == [REPLY, 2 * REPLY]
    assert longest["plain"] == spent["plain"].prompt > 0
    # The second question comes with all that was said before.
    assert longest["cut"] == spent["cut"].prompt - longest["plain"]
    assert longest["cut"] > longest["plain"]
