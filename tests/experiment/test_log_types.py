"""Types of the values in a plan, a manifest and a trial of a hostile log."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import (
    MOST_OF_LIFE,
    MOST_TRIALS,
    plan_to_json,
    read_plan,
    trial_from_row,
)
from cheesebench.records import CellPlan
from tests.experiment.recorded import record


def test_a_cell_has_no_more_trials_than_anybody_could_run(log: RunLog) -> None:
    text = plan_to_json(log.plans()[0])

    def read(subjects: int, trials: int) -> CellPlan:
        return read_plan(
            json.dumps({**json.loads(text), "subjects": subjects, "trials": trials})
        )

    most = MOST_TRIALS // MOST_OF_LIFE
    assert read(most, MOST_OF_LIFE).subjects == most
    for subjects, trials in (
        (most + 1, MOST_OF_LIFE),
        (1, MOST_OF_LIFE + 1),
        (MOST_TRIALS + 1, 1),
        (10**30, 1),
    ):
        with pytest.raises(
            ValueError, match=f"a plan has {subjects} subjects of {trials} trials"
        ):
            read(subjects, trials)


@pytest.mark.parametrize(
    "changes",
    [
        {"session": -1},
        {"session": 10**6},
        {"trial": 10**6},
    ],
)
def test_a_trial_that_no_run_has_is_damaged(
    log: RunLog, changes: dict[str, Any]
) -> None:
    row = [*asdict(replace(record(log.plans()[0], 0, 0), **changes)).values()]
    row = [json.dumps(value) if isinstance(value, dict) else value for value in row]
    with pytest.raises(ValueError, match="impossible trial"):
        trial_from_row(row)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"options": {}}, "options have no seed"),
        ({"options": {"seed": None}}, "options have no seed"),
        ({"options": {"seed": "1"}}, "options have no seed"),
        ({"options": 5}, "valid dictionary"),
    ],
)
def test_a_manifest_has_what_its_readers_ask_for(
    log: RunLog, entry: dict[str, object], said: str
) -> None:
    log.add_to_manifest(entry)
    with pytest.raises(RunLogError, match=f"damaged: .*{said}"):
        log.manifest  # noqa: B018
