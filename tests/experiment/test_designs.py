from __future__ import annotations

from types import ModuleType

import pytest

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.cells import DESIGNS, find_design, plan_cell


def test_only_smoke_claims_nothing() -> None:
    assert [design.name for design in DESIGNS.values() if not design.claims] == [
        "smoke"
    ]


def test_subjects_replace_the_default() -> None:
    assert find_design("cohort").subjects == 20
    assert find_design("cohort", 3).subjects == 3
    assert find_design("paper", 3).trials is None


@pytest.mark.parametrize("subjects", [0, -1])
def test_a_run_needs_a_subject(subjects: int) -> None:
    with pytest.raises(OptionError, match=f"--subjects {subjects}: .* at least one"):
        find_design("cohort", subjects)


def test_an_unknown_design_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match=r"There is no design 'cohrt'. Did you mean 'cohort'\?"
    ):
        find_design("cohrt")


def test_a_plan_says_what_the_protocol_says(stranger: ModuleType) -> None:
    specification = stranger.corridor(trials=6)
    plan = plan_cell(
        specification, "walker", "ascii_2d", find_design("cohort"), memory="none"
    )
    assert plan.key == ("walker", "corridor", "ascii_2d", "")
    assert (plan.subjects, plan.trials, plan.memory, plan.claims) == (
        DESIGNS["cohort"].subjects,
        6,
        "none",
        True,
    )
    assert (plan.dimension, plan.sha256, plan.margin, plan.chance) == (
        "patience",
        specification.sha256,
        0.1,
        0.5,
    )
    # The latency comes first in the protocol, but is not a pass rate.
    assert plan.reference is not None
    assert (plan.reference.value, plan.reference.interval) == (0.8, (0.7, 0.9))
    assert plan.reference.curve == (0.5, 0.8)


@pytest.mark.parametrize(("trials", "planned"), [(6, 2), (1, 1)])
def test_smoke_cuts_lives_short(
    stranger: ModuleType, trials: int, planned: int
) -> None:
    plan = plan_cell(
        stranger.corridor(trials=trials), "walker", "ascii_2d", find_design("smoke")
    )
    assert (plan.subjects, plan.trials, plan.claims) == (2, planned, False)
