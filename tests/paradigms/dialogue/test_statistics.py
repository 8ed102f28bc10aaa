"""Scores of dialogues, their means and their kinds of failure, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.family import Design
from cheesebench.paradigms.dialogue.life import plan_dialogue
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.paradigms.dialogue.statistics import (
    KINDS,
    OTHER,
    Published,
    Score,
    Spread,
    _factors,
    _failures,
    _levels,
    by,
    contrast,
    deviance_table,
    failure_shares,
    read_published,
    scores_of,
    spread,
)
from cheesebench.records import CellPlan, TrialRecord


def score(successes: int = 1, total: int = 4, **changes: Any) -> Score:
    given: dict[str, Any] = {
        "model": "m", "graph": "g", "domain": "d", "condition": "c", "group": "Traversal",
    }  # fmt: skip
    return Score(successes=successes, total=total, **(given | changes))


def test_means_of_items_have_their_spread() -> None:
    assert spread([0.5]) == Spread(0.5, None, None, 1)
    found = spread([0.0, 0.5, 1.0])
    assert (found.mean, found.sd, found.n) == (0.5, 0.5, 3)
    assert found.se == pytest.approx(0.5 / math.sqrt(3))


def test_lists_of_edges_count_only_among_conditions_and_groups() -> None:
    scores = [
        score(),
        score(3, condition="e"),
        score(4, condition="map", group="Map"),
        score(2, model="n"),
    ]
    assert {key: one.mean for key, one in by(scores, "domain").items()} == {
        ("d", "m"): 0.5,
        ("d", "n"): 0.5,
    }
    assert {key: one.mean for key, one in by(scores, "condition").items()} == {
        ("c", "m"): 0.25,
        ("e", "m"): 0.75,
        ("map", "m"): 1.0,
        ("c", "n"): 0.5,
    }
    assert list(by(scores, "group")) == [
        ("Traversal", "m"),
        ("Map", "m"),
        ("Traversal", "n"),
    ]
    # If there is nothing else, they count.
    assert {key: one.mean for key, one in by(scores[2:3], "domain").items()} == {
        ("d", "m"): 1.0
    }


def test_shares_of_failures_are_of_all_answers() -> None:
    none = dict.fromkeys(KINDS, 0)
    scores = [
        score(2, 4, failures={**none, "loop": 2, "too long": 1}),
        score(0, 6, failures={**none, "loop": 3}),
        score(0, 2, model="n"),
        score(0, 5, group="Map", failures={**none, "missing edge": 5}),
    ]
    [(model, found)] = failure_shares(scores).items()
    assert model == "m"
    assert list(found) == list(KINDS)
    assert {name: share for name, share in found.items() if share} == {
        "loop": 0.5,
        "too long": 0.1,
    }
    assert failure_shares(scores, "group")["Map"]["missing edge"] == 1.0


@pytest.mark.parametrize(
    ("own", "published", "verdict"),
    [
        (Spread(0.5, None, None, 1), 0.5, "INCONCLUSIVE"),
        (Spread(0.6, 0.1, 0.02, 25), 0.5, "PASS"),
        (Spread(0.3, 0.1, 0.02, 25), 0.5, "FAIL"),
        (Spread(0.4, 0.1, 0.02, 25), 0.5, "INCONCLUSIVE"),
        (Spread(1.0, 0.0, 0.0, 4), 1.0, "INCONCLUSIVE"),
        (Spread(1.0, 0.0, 0.0, 400), 1.0, "PASS"),
    ],
)
def test_a_mean_is_compared_with_the_published_one(
    own: Spread, published: float, verdict: str
) -> None:
    found = contrast(own, published, 0.1)
    assert (found.difference, found.verdict.value) == (own.mean - published, verdict)
    if own.se is None:
        assert (found.low, found.high) == (None, None)
    else:
        assert found.low is not None
        assert found.high is not None
        assert found.low + found.high == pytest.approx(2 * found.difference)
    if own.n == 25:
        assert found.high == pytest.approx(found.difference + 1.7109 * 0.02, abs=1e-5)


def records(
    plan: CellPlan, *trials: tuple[str, bool | None, dict[str, Any]]
) -> list[TrialRecord]:
    return [
        TrialRecord(
            model=plan.model,
            protocol=plan.protocol,
            view=plan.view,
            subject=number,
            trial=0,
            missing="" if success is not None else "budget",
            success=success,
            variables={"start": start, "goal": "5"},
            measures=measures,
        )
        for number, (start, success, measures) in enumerate(trials)
    ]


def test_each_pair_of_a_cell_has_a_score(garden: DialogueSpecification) -> None:
    plan = plan_dialogue(
        garden, "m", "numbers", "turns", Design(name="few", subjects=2), agent="llm",
        settings={"temperature": 0.5},
    )  # fmt: skip
    lived = records(
        plan,
        ("1", True, {}),
        ("2", False, {"loop": 1, "excess_length": 2, "wrong_goal": 0}),
        ("1", False, {}),
        ("1", None, {}),
    )
    assert plan.trials > 1
    first, second = scores_of(plan, lived)
    assert (first.successes, first.total, first.rate) == (1, 2, 0.5)
    assert (first.model, first.graph, first.domain) == ("m", "garden", "numbers")
    assert (first.condition, first.temperature) == ("turns", "0.5")
    assert {name: n for name, n in first.failures.items() if n} == {OTHER: 1}
    assert {name: n for name, n in second.failures.items() if n} == {
        "loop": 1,
        "too long": 1,
    }
    # If each subject has one pair, the pairs share a score.
    [whole] = scores_of(replace(plan, trials=1, settings={**plan.settings, "temperature": None}), lived)  # fmt: skip
    assert (whole.successes, whole.total, whole.temperature) == (1, 3, "")
    right = records(plan, ("1", True, {"loop": True, "wrong_goal": "x"}))
    assert {name: n for name, n in _failures(right).items() if n} == {"loop": 1}


def test_only_factors_that_vary_are_analysed() -> None:
    scores = [score(), score(2, group="Map"), score(3, group="Groups")]
    used, factors = _factors(scores)
    assert used == scores[:1]
    assert list(factors) == ["model", "graph", "domain", "temperature", "group"]
    assert deviance_table(scores) is None
    assert _levels(["b", 10, "a", 9, "b"]) == [10, 9, "a", "b"]


def test_published_results_are_read_by_model(tmp_path: Path) -> None:
    (tmp_path / "published.yaml").write_text(
        "source: paper\nscored: by hand\ngroups: {Traversal: [one, two]}\n"
        "conditions: {one: {a: [1, 0.5], b: [0, 0]}, two: {a: [0.5, 0.25]}}\n",
        encoding="utf-8",
    )
    found = read_published(tmp_path)
    assert found == Published(
        source="paper",
        scored="by hand",
        groups={"one": "Traversal", "two": "Traversal"},
        conditions={
            "one": {"a": (1.0, 0.5), "b": (0.0, 0.0)},
            "two": {"a": (0.5, 0.25)},
        },
    )
    assert found.models == ["a", "b"]
    assert found.model("b") == {"one": (0.0, 0.0)}
    with pytest.raises(UnknownNameError, match="published model 'c'"):
        found.model("c")
    with pytest.raises(OptionError, match="there is no file"):
        read_published(tmp_path / "nowhere")
