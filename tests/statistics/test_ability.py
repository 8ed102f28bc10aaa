"""The ability scale: its ends come from audits, its numbers from rates."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.protocol import Catalogue, Specification
from cheesebench.protocol.answers import answers_for_life
from cheesebench.protocol.validation import ability_scale, idle_sessions
from cheesebench.records import AbilityScale, CellPlan, Measured, ReferenceValue
from cheesebench.statistics.ability import ability, index, mean_ability
from cheesebench.statistics.question import question_of, thresholds
from cheesebench.statistics.wording import on_scale


def plan(
    name: str, reference: ReferenceValue | None, scale: AbilityScale | None
) -> CellPlan:
    return CellPlan(
        model="m", protocol=name, view="v", title="", dimension="d", species="", sha256="",
        design="cohort", subjects=20, trials=10, memory="life", reference=reference,
        margin=0.12, ability=scale,
    )  # fmt: skip


def _shipped(name: str) -> Specification:
    return _load(Path("protocols") / f"{name.replace('@', '.')}.protocol.yaml")


def _load(path: Path) -> Specification:
    specification = Catalogue().load(path)
    assert isinstance(specification, Specification)
    return specification


def test_example_of_the_operant_chamber() -> None:
    animals = ReferenceValue(value=0.70, sd=0.137, n_animals=35, source="mice")
    own = plan("operant", animals, AbilityScale(without=0.5, ideal=1.0))
    found = ability(own, 0.85, (0.78, 0.92))
    assert found is not None
    assert found.model == pytest.approx(0.70)
    assert found.interval == pytest.approx((0.56, 0.84))
    assert found.rodent == pytest.approx(0.40)
    # .70 less .12 is .58, and the mean of 35 mice may be .042 too low.
    assert found.bar == pytest.approx(0.243, abs=0.001)


@pytest.mark.parametrize(
    ("rate", "said"), [(0.444, "0.00"), (0.2, "< 0"), (1.0, "1.00"), (0.889, "0.80")]
)
def test_what_is_printed(rate: float, said: str) -> None:
    scale = AbilityScale(without=0.444, ideal=0.9999)
    assert on_scale(index(scale, rate)) == said
    assert on_scale(None) == "–"


def test_a_bound_that_is_proved_up_to_rounding_is_zero_and_not_below() -> None:
    assert (
        on_scale(index(AbilityScale(without=0.5000000000000008, ideal=1.0), 0.5))
        == "0.00"
    )


def test_means_count_the_same_animals_once_and_name_what_is_missing() -> None:
    rats = ReferenceValue(value=0.8, n_animals=10, source="rats")
    # Other animals of the same laboratory, and declared numbers of the same paper.
    others = ReferenceValue(value=0.6, n_animals=16, source="rats")
    declared = ReferenceValue(value=0.6, source="paper")
    scale = AbilityScale(without=0.5, ideal=1.0)
    rates = {
        "t_maze": (rats, scale, 1.0), "dnms": (rats, scale, 0.5), "barnes": (others, scale, 0.2),
        "star": (declared, scale, 1.0), "radial": (declared, scale, 1.0), "unproved": (declared, None, 1.0),
    }  # fmt: skip
    plans = [
        (plan(name, animals, ends), rate)
        for name, (animals, ends, rate) in rates.items()
    ]
    found = mean_ability((one, ability(one, rate)) for one, rate in plans)
    assert found is not None
    # (1 + 0) / 2 for the two with the same rats; below 0 counts as 0.
    assert found.mean == pytest.approx((0.5 + 0 + 1 + 1) / 4)
    assert found.together == (("t_maze", "dnms"),)
    assert found.missing == ("unproved",)
    assert found.rodent == pytest.approx((0.6 + 0.2 + 0.2 + 0.2) / 4)


def test_shipped_scales_are_those_of_the_stored_audits() -> None:
    stored = json.loads(Path("protocols/lesions.audit.json").read_text())
    seen = 0
    for report in stored:
        specification = _shipped(report["protocol"])
        found = ability_scale(specification)
        rules = {one["rule"]: one for one in report["findings"]}
        construct = specification.construct
        assert construct is not None
        proved = [
            rules[f"lesion: {lesion}"]["numbers"]["proven"]
            for lesion, _ in construct.abolished_by
        ]
        if found is None:
            judged = specification.judged
            assert None in proved or (
                judged is not None and judged.measure != "success"
            )
            continue
        seen += 1
        assert found.without == max(proved)
        assert found.ideal == rules["lesion: intact"]["numbers"]["found"]["rate"]
    assert seen >= 9


def test_probes_and_conditioning_are_idle() -> None:
    assert idle_sessions(_shipped("place_preference"))
    assert idle_sessions(_shipped("barnes_maze"))
    assert not idle_sessions(_shipped("star_maze"))


def test_answers_for_life_are_found_through_what_is_set_from_them() -> None:
    assert answers_for_life(_shipped("operant_chamber")) == ("place",)
    assert answers_for_life(_shipped("place_preference")) == ("paired",)
    assert answers_for_life(_shipped("shuttle_box")) == ("danger",)
    # Its answer is drawn anew in each trial.
    assert answers_for_life(_shipped("dnms")) == ()


@pytest.mark.parametrize(
    "broken",
    [
        {"findings": None},
        {"findings": [{"rule": "lesion: intact", "numbers": {"by_session": 3}}]},
        {
            "findings": [
                {"rule": "lesion: blind", "verdict": "ok", "numbers": {"proven": "x"}}
            ]
        },
    ],
)
def test_a_stranger_s_audit_gives_no_scale(
    tmp_path: Path, broken: dict[str, object]
) -> None:
    text = Path("protocols/t_maze.protocol.yaml").read_text()
    shutil.copy("protocols/animals/t_maze.csv", tmp_path)
    path = tmp_path / "mine.protocol.yaml"
    text = text.replace("protocol: t_maze", "protocol: mine", 1)
    path.write_text(text.replace("animals/t_maze.csv", "t_maze.csv"))
    specification = _load(path)
    audit = {"sha256": specification.sha256, **broken}
    (tmp_path / "mine.audit.json").write_text(json.dumps(audit))
    assert ability_scale(specification) is None
    assert idle_sessions(specification) == ()


@pytest.mark.parametrize("name", ["t_maze", "barnes_maze", "radial_arm_maze"])
def test_pass_begins_where_enough_subjects_pass(name: str) -> None:
    """The printed bar is the upper end of the rates that no number of subjects
    decides.
    """
    specification = _shipped(name)
    cell = plan_cell(
        specification, "random", "ascii_2d", find_design("cohort", None), "none"
    )
    question, scale = question_of(cell), cell.ability
    assert question is not None
    assert scale is not None
    [(_, upper)] = question.open_zones() or [(0.0, question.reference.value - 0.1)]
    assert specification.bar == pytest.approx(upper)
    found = ability(cell, None)
    assert found is not None
    assert found.bar == pytest.approx(index(scale, upper))
    above, below = np.full(5000, upper + 0.03), np.full(5000, upper - 0.01)
    assert question.play(above, above, goal=20).passed
    assert not question.play(below, below, goal=20).passed


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_thresholds_are_in_the_unit_of_a_measure(
    better: Literal["higher", "lower"],
) -> None:
    measured = Measured(name="latency", better=better, range=(0.0, 100.0))
    sample = ReferenceValue(value=50, sd=5, n_animals=20, measured=measured)
    sign = 1 if better == "higher" else -1
    passes, fails = thresholds(sample, 10)
    assert sign * (passes - 50) > -10 > sign * (fails - 50)
    exact = dataclasses.replace(sample, sd=None)
    assert thresholds(exact, 10) == (50 - sign * 10, 50 - sign * 10)
