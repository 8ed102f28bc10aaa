"""The pages on verdicts have the figures of the stored simulation, which must keep the
promises; and the picture.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import skew

import cheesebench
from benchmarks import verdict_simulation as engine
from benchmarks.places import filled
from cheesebench.experiment.calling import HOPELESS_REPLIES
from cheesebench.planning.simulation import ICC_FLOOR, RUNS, Subjects, simulate
from cheesebench.records import MOST_SUBJECTS, ReferenceValue
from cheesebench.statistics.question import Question
from website import wealth

FOUND = json.loads(engine.RESULTS.read_text(encoding="utf-8"))
EXPLAINED = " ".join(
    (Path(__file__).parents[1] / "docs/explanation/verdicts.md")
    .read_text(encoding="utf-8")
    .split()
)


def expected(name: str, key: str) -> float:
    return float(np.mean([row[key] for row in FOUND["expectations"][name].values()]))


def test_the_page_has_the_stored_figures() -> None:
    page, tables = engine.PAGE.read_text(encoding="utf-8"), engine.tables(FOUND)
    for name, table in tables.items():
        assert filled(engine.PAGE, name, f"\n{table}\n") == page
    assert page.count("<!-- measured:") == len(tables)


def test_no_error_is_above_five_percent() -> None:
    """Within two standard errors, with new animals: nine paradigms, eleven kinds of
    subjects, and measures.
    """
    most = 0.05 + 2 * (0.05 * 0.95 / FOUND["runs"]) ** 0.5
    assert FOUND["runs"] >= 2_000
    assert {engine.REDRAWN, *FOUND["errors"]} == set(engine.CASES)
    for case, protocols in FOUND["errors"].items():
        assert len(protocols) == (5 if case == engine.REDRAWN else 9)
        for name, kinds in protocols.items():
            assert len(kinds) >= 9
            for kind, shares in kinds.items():
                assert max(shares) <= most, (case, name, kind)
    assert all(max(shares) <= 0.05 for shares in FOUND["measures"].values())


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["20 points worse", "as good", "10 points better"])
def test_a_plan_is_right_to_three_points(truth: str) -> None:
    """The package's simulation against the stored one, which shares no code with it;
    both have sampling errors.
    """
    shift, icc = engine.TRUTHS[truth]
    assert shift is not None
    for seed, setting in enumerate(engine.shipped()):
        animals = ReferenceValue(
            value=setting.reference, sd=setting.sd, n_animals=setting.animals
        )
        mean = min(1.0, setting.reference + shift)
        if setting.sessions[0][1]:
            subjects = Subjects(sessions=setting.sessions, icc=icc).at(mean)
        else:  # a measure
            subjects = Subjects(
                sessions=((mean, 1),), icc=icc, spread=(icc * mean * (1 - mean)) ** 0.5
            )
        found = simulate(
            Question(animals, -setting.margin, -setting.margin),
            subjects,
            MOST_SUBJECTS,
            seed=seed,
        )
        row = FOUND["expectations"][truth][setting.name]
        for own, stored in ((found.passes, row["PASS"]), (found.fails, row["FAIL"])):
            noise = 2 * (stored * (1 - stored) * (1 / RUNS + 5 / FOUND["runs"])) ** 0.5
            assert abs(own - stored) <= 0.03 + noise, (setting.name, own, stored)
        assert found.counted.mean() == pytest.approx(row["run"], abs=4)


def test_what_the_explanation_says() -> None:
    assert "five to nine subjects" in EXPLAINED
    assert round(expected("random", "decided")) == 5
    assert round(expected("perfect", "decided")) == 9
    assert "some fifty; it passes in nine of ten runs" in EXPLAINED
    assert 45 <= expected("as good", "decided") <= 55


def test_missing_trials_make_no_claim_and_intervals_hold() -> None:
    assert FOUND["missing"]["at the bar, all failures missing"][0] <= 0.05
    assert FOUND["missing"]["at the bar, all successes missing"][1] <= 0.05
    assert min(FOUND["coverage"].values()) >= 0.95


def test_the_most_skewed_animals_err_no_more_often() -> None:
    skews = {
        one.name: float(skew(one.each))
        for one in engine.shipped()
        if len(one.each or ()) > 2
    }
    name = min(skews, key=lambda one: skews[one])
    animals = {one.name: one.animals for one in engine.shipped()}[name]
    rows = FOUND["errors"][engine.REDRAWN][name].values()
    worst = [max(row[side] for row in rows) for side in (0, 1)]
    page = " ".join(engine.PAGE.read_text(encoding="utf-8").split())
    assert (
        f"The {animals} mice of *{name}* are the most skewed of the measured animals ({skews[name]:.1f}). "
        f"Redrawn from their file, they give at most {worst[0]:.3f} of false PASSes and {worst[1]:.3f} of false FAILs"
        in page
    )


def test_an_equal_model_passes() -> None:
    """In nine of ten runs on average; the water maze and place preference need more
    subjects than the maximum.
    """
    assert expected("as good", "PASS") >= 0.88
    assert min(one["PASS"] for one in FOUND["expectations"]["as good"].values()) >= 0.75


@pytest.mark.slow
def test_the_figures_are_still_true() -> None:
    settings = engine.shipped()
    again = engine.expectations(settings, engine.chances(), 400)
    for name, own in again.items():
        for key, noise in (("PASS", 0.1), ("FAIL", 0.1), ("decided", 8.0)):
            mean = float(np.mean([row[key] for row in own.values()]))
            assert mean == pytest.approx(expected(name, key), abs=noise), (name, key)


def test_the_picture_is_that_of_the_rule() -> None:
    assert wealth.PICTURE.read_text(encoding="utf-8") == wealth.picture()


def test_what_a_run_costs_is_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """And within the promises: $12 for a hopeless, weak or competent model, $30 for one
    like the animals.
    """
    monkeypatch.syspath_prepend(Path(engine.__file__).parent)
    costs = importlib.import_module("verdict_cost")
    table = costs.shipped_table()
    assert filled(costs.PAGE, "costs", table) == costs.PAGE.read_text(encoding="utf-8")
    rows = [line.split("|") for line in table.splitlines()[3:]]
    dollars = {row[1].strip(): float(row[7]) for row in rows}
    assert {
        name: cost <= (30 if name == "ratlike" else 12)
        for name, cost in dollars.items()
    } == dict.fromkeys(costs.LAPSES, True)
    readme = " ".join(
        (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").split()
    )
    assert (
        f"${dollars['hopeless']:.2f} for a model that names one action and then no more (nine "
        f"FAILs; one that never names any is an ERROR after some {HOPELESS_REPLIES} calls each and those in flight), "
        f"${dollars['competent']:.2f} for one that is right in 19 of 20 trials, and "
        f"${dollars['ratlike']:.2f} for one that is right in three of four" in readme
    )
    open_ = [
        f"{1 - expected(name, 'PASS') - expected(name, 'FAIL'):.0%}".replace("%", " %")
        for name in ("as good", "20 points worse", "30 points worse")
    ]
    assert (
        f"{open_[0]} of verdicts on a model as good as the animals are INCONCLUSIVE"
        in readme
    )
    assert (
        f"{open_[1]} on one that is 20 points worse, and {open_[2]} on one that is 30 points worse"
        in readme
    )


@pytest.mark.slow
def test_what_a_model_like_the_animals_costs_is_what_a_plan_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The prices of the played runs, and the powers on the page, must agree as well."""
    monkeypatch.syspath_prepend(Path(engine.__file__).parent)
    costs = importlib.import_module("verdict_cost")
    plan = cheesebench.plan("gpt-5.4-mini")
    dollars = {name: needs.dollars or (0, 0) for name, needs in plan.needs.items()}
    half, most = dollars["as the animals"]
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"up to ${half:.0f}, 95 % up to ${most:.0f} (`cheesebench plan" in readme
    rows = [line.split("|") for line in costs.shipped_table().splitlines()[3:]]
    played = {row[1].strip(): float(row[7]) for row in rows}
    for player, kind in (("random", "weak"), ("95 % right", "competent")):
        assert dollars[player][0] == pytest.approx(played[kind], rel=0.1), kind
    assumed = cheesebench.plan("gpt-5.4-mini", icc=ICC_FLOOR)
    powers = {
        row["protocol"]: row["passes"]
        for row in assumed.rows()
        if row["player"] == "as the animals" and row["protocol"] != "all"
    }
    simulated = {
        name: row["PASS"] for name, row in FOUND["expectations"]["as good"].items()
    }
    assert powers == pytest.approx(simulated, abs=0.05)


def test_what_a_gpu_does_is_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/servers.md has the duration of nine verdicts; ``verdict_cost.py`` has the
    rates of 90 calls in flight.
    """
    monkeypatch.syspath_prepend(Path(engine.__file__).parent)
    costs = importlib.import_module("verdict_cost")
    root = Path(__file__).parents[1]
    found = json.loads(
        (root / "benchmarks/measured/gpu.json").read_text(encoding="utf-8")
    )
    first = found["loads"][0]
    took = costs.Cost(
        prompt=first["prefix_cache_queries"],
        cached=first["prefix_cache_hits"],
        completion=first["generation_tokens"],
    )
    assert took.gpu_hours * 3600 == pytest.approx(first["seconds"], rel=0.05)
    page = " ".join((root / "docs/servers.md").read_text(encoding="utf-8").split())
    rate = first["request_success"] / first["seconds"]
    protocols = json.loads(costs.SHIPPED.read_text(encoding="utf-8"))[
        "protocols"
    ].values()
    minutes = {
        kind: sum(
            one["respondents"][kind]["stopped"]
            * one["respondents"][kind]["each"]["calls"]
            for one in protocols
        )
        / (60 * rate)
        for kind in ("competent", "ratlike")
    }
    assert f"At {rate:.0f} calls a second" in page
    assert (
        f"{minutes['competent']:.1f} minutes for a competent model and {minutes['ratlike']:.1f} for one"
        in page
    )
    assert not any(one["num_preemptions"] for one in found["loads"])
    cold, warm = (
        line.split()[1] for line in found["said"] if line.startswith("after ")
    )
    assert f"up after {cold} s, the second time {warm} s" in page
    said = " ".join(found["said"])
    sizes = re.search(
        r"took ([\d.]+ GiB) .*memory: ([\d.]+ GiB) .*size: ([\d,]+ tokens)", said
    )
    assert sizes is not None
    assert "{} of weights, {} of cache for {}".format(*sizes.groups()) in page
    [seen] = [one for one in found["loads"] if one["view"] == "topdown_2d"]
    assert (
        f"With {seen['mm_cache_queries'] / seen['request_success']:.0f} pictures a call"
        in page
    )
