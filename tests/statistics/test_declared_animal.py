"""The declared animal: commensurable references let it pass, all others do not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.declared_animal import DeclaredAnimal, simulate
from cheesebench.statistics.power import fixed_verdicts

CURVE = (0.25, 0.607, 0.743, 0.836, 0.879)
WEEK = dict.fromkeys(range(1, 6), 4)


def test_mice_with_their_own_spread_pass_over_all_their_trials() -> None:
    mice = ReferenceValue(value=0.663, sd=0.131, n_animals=35, curve=CURVE)
    found = simulate(mice, WEEK, 0.1, seed=1)
    assert not found.is_at_fault
    assert found.mean == pytest.approx(0.663)
    assert found.passes > 0.99


def test_an_asymptote_fails_whoever_had_to_learn() -> None:
    found = simulate(ReferenceValue(value=0.879, curve=CURVE), WEEK, 0.1, seed=1)
    assert found.is_at_fault
    assert found.fails[60] > 0.99
    assert found.passes == 0


def test_the_last_sessions_may_be_compared_with_the_asymptote() -> None:
    mice = ReferenceValue(value=0.857, sd=0.17, n_animals=35, curve=CURVE)
    assert not simulate(mice, {4: 4, 5: 4}, 0.1, seed=1).is_at_fault


def test_animals_that_differ_too_much_for_the_margin_are_at_fault() -> None:
    rats = ReferenceValue(value=0.66, sd=0.25, n_animals=19)
    assert simulate(rats, WEEK, 0.1, seed=1).is_at_fault
    assert not simulate(rats, WEEK, 0.2, seed=1).is_at_fault


@pytest.mark.parametrize(("sd", "trials"), [(0.131, 20), (0.2, 40), (0.3, 10)])
def test_simulated_animals_have_the_spread_that_is_declared(sd: float, trials: int) -> None:
    seen: list[float] = []

    def judge(
        rates: NDArray[np.float64], reference: ReferenceValue, margin: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        seen.append(float(rates.std(axis=-1).mean()))
        assert abs(rates.mean() - reference.value) < 0.01
        return fixed_verdicts(rates, reference, margin)

    simulate(ReferenceValue(value=0.66, sd=sd, n_animals=30), {1: trials}, 0.1, seed=2, judge=judge)
    assert seen[-1] == pytest.approx(sd, abs=0.015)


def test_who_declares_nothing_varies_as_animals_do() -> None:
    assert simulate(ReferenceValue(value=0.8), WEEK, 0.1, seed=1).icc == 0.3


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_certain_animals_are_simulated_too(value: float) -> None:
    found = simulate(ReferenceValue(value=value, sd=0.0, n_animals=10), WEEK, 0.1, seed=1)
    assert found.mean == value


def test_equal_seeds_give_equal_numbers() -> None:
    mice = ReferenceValue(value=0.663, sd=0.131, n_animals=35, curve=CURVE)
    assert simulate(mice, WEEK, 0.1, seed=3, runs=50) == simulate(mice, WEEK, 0.1, seed=3, runs=50)


def test_the_bounds_allow_for_the_error_of_the_simulation() -> None:
    assert not DeclaredAnimal(fails={10: 0.05, 60: 0.0}, passes=0.8, mean=0.8, icc=0.3).is_at_fault
    assert DeclaredAnimal(fails={10: 0.08, 60: 0.0}, passes=1.0, mean=0.8, icc=0.3).is_at_fault
    assert DeclaredAnimal(fails={10: 0.0, 60: 0.0}, passes=0.75, mean=0.8, icc=0.3).is_at_fault
