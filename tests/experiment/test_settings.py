"""The settings of a run: given options, a profile, the manifest, a
study, and defaults.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import OptionError
from cheesebench.experiment.earlier import Earlier
from cheesebench.experiment.settings import (
    Given,
    OptionValues,
    Origin,
    Settings,
    read_settings,
)
from cheesebench.options import BY_KEY, OPTIONS
from cheesebench.plugin_manager import installed_plugins


def settings(
    given: dict[str, Any], recorded: dict[str, Any] | None = None, **profile: Any
) -> Settings:
    options = Given({"model": ["random"], **given})
    options = options.filled_in(Origin.PROFILE, **profile)
    earlier = Earlier(recorded=recorded)
    return read_settings(options, installed_plugins(), Path.cwd(), earlier)


def test_every_option_has_one_value_and_one_default() -> None:
    names = [field.name for field in dataclasses.fields(OptionValues)]
    assert sorted(names) == sorted(BY_KEY)
    found = Given({}).resolve()
    for option in OPTIONS:
        expected = False if option.flag else option.default
        assert getattr(found, option.key) == expected


def test_what_is_typed_goes_before_a_profile_and_both_before_a_manifest() -> None:
    recorded = {"seed": 5, "seed_drawn": True, "subjects": 4, "edition": "rodent"}
    found = settings({"subjects": 4}, recorded, subjects=9, edition="rodent")
    assert found.requests["random"].subjects == 4
    assert (found.selection.edition, found.seed) == ("rodent", 5)
    assert found.seed_drawn
    assert found.selection.named_edition == "rodent"
    assert found.origins["subjects"] is Origin.GIVEN
    assert found.origins["results"] is Origin.DEFAULT
    assert found.origins_text == [
        "from the profile: --edition",
        "from the manifest: --seed",
    ]
    with pytest.raises(OptionError, match="made with --subjects 4, not 9"):
        settings({}, recorded, subjects=9)


def test_a_flag_of_the_run_that_is_resumed_holds_without_being_typed() -> None:
    """pytest gives False for a flag that is not there."""
    for flag in (False, None, True):
        found = settings({"familywise": flag}, {"familywise": True})
        assert found.familywise
    with pytest.raises(OptionError, match="made without --familywise"):
        settings({"familywise": True}, {"familywise": False})


def test_the_manifest_has_what_was_resolved() -> None:
    found = settings({"seed": 3, "control": ["blind"]})
    assert found.recorded.keys() == {
        *(option.key for option in OPTIONS if option.recorded),
        "seed_drawn",
    }
    assert found.recorded["view"] == ["ascii_2d"]
    assert found.recorded["design"] == "cohort"
    assert found.recorded["model"] == ["random"]
    assert (found.recorded["seed"], found.recorded["seed_drawn"]) == (3, False)
    again = settings({}, dict(found.recorded))
    assert again == dataclasses.replace(found, origins=again.origins, calls=again.calls)


def test_a_study_fills_in_what_nobody_gives() -> None:
    study = "ablation-history"
    model = {"model": ["openai/tiny"]}
    found = settings({**model, "study": study})
    assert found.design == "flat-15"
    assert found.origins["design"] is Origin.STUDY
    assert found.recorded["study"] == study
    assert settings({**model, "study": study, "subjects": 3}).design == "cohort"
    assert settings({**model, "study": study, "design": "smoke"}).design == "smoke"
