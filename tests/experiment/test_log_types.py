"""What a plan, a manifest and a trial in a log of anybody's may be."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_types import MOST_ENTRIES, MOST_OF_LIFE, MOST_TRIALS, read_plan
from cheesebench.experiment.records import CellPlan
from cheesebench.experiment.rows import MOST_VALUES, plan_to_json, seal, trial_from_row
from fuzz.run_logs import rewritten
from tests.experiment.recorded import record


def test_a_cell_has_no_more_trials_than_anybody_could_run(log: RunLog) -> None:
    text = plan_to_json(log.plans()[0])

    def read(subjects: int, trials: int) -> CellPlan:
        return read_plan(json.dumps({**json.loads(text), "subjects": subjects, "trials": trials}))

    most = MOST_TRIALS // MOST_OF_LIFE
    assert read(most, MOST_OF_LIFE).subjects == most
    for subjects, trials in ((most + 1, MOST_OF_LIFE), (1, MOST_OF_LIFE + 1), (MOST_TRIALS + 1, 1), (10**30, 1)):
        with pytest.raises(ValueError, match=f"a plan has {subjects} subjects of {trials} trials"):
            read(subjects, trials)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        *(
            ({"estimand": text}, "estimand is not")
            for text in ("x", "", "last:0", "last:٣", "last:" + "9" * 5000, "block: ")
        ),
        ({"variant": "map", "settings": {"temperature": "warm"}}, "temperature of a dialogue"),
        ({"variant": "map", "settings": {"temperature": 10**100}}, "a number has 101 digits"),
        ({"variant": "\ud800"}, "surrogates not allowed"),
        ({"variant": "a" + "," * 10_000}, "a variant has 10,001 letters"),
        ({"settings": {"x": json.loads("[" * 60 + "]" * 60)}}, "nested more than 50 deep"),
        ({"subjects": 10**9, "trials": 0}, "1000000000 subjects of 0 trials"),
        *(({"subjects": 10, "looks": looks}, "looks of a plan") for looks in ([10, 6], [6, 6, 10], [0], [6, 11])),
        ({"by": [["m", "v"]] * (MOST_ENTRIES + 1)}, "conditions are more than 10,000"),
        *(
            ({"reference": {"value": 0.5, **animals}}, "impossible animals")
            for animals in (
                {"n_animals": 10**10},
                {"n_animals": -1},
                {"sd": -0.1},
                {"sd": 1e31},
                {"curve": [0.5, 0.5], "curve_sd": [0.1]},
            )
        ),
        *(
            (
                {"reference": {"value": 1, "measured": {"name": "m", "range": limits}}, "margin": margin},
                "number out of range",
            )
            for limits, margin in (((0, 1e300), 1), ((0, 1e-300), 1), (None, 1e-300), (None, 1e300))
        ),
    ],
)
def test_a_plan_has_what_its_readers_ask_for(log: RunLog, values: dict[str, object], said: str) -> None:
    text = plan_to_json(log.plans()[0])
    for estimand in ("all", "last:1", "last: 05", "block:a, b"):
        assert read_plan(json.dumps({**json.loads(text), "estimand": estimand, "variant": "map"})).in_words
    with pytest.raises(ValueError, match=said):
        read_plan(json.dumps({**json.loads(text), **values}))


@pytest.mark.parametrize(
    "changes",
    [
        {"session": -1},
        {"session": 10**6},
        {"trial": 10**6},
        {"measures": {"latency": 10**100}},
        {"counters": {"visits": -(10**100)}},
        {"variables": {"cue": "\ud800"}},
    ],
)
def test_a_trial_that_no_run_has_is_damaged(log: RunLog, changes: dict[str, Any]) -> None:
    row = [*asdict(replace(record(log.plans()[0], 0, 0), **changes)).values()]
    row = [json.dumps(value) if isinstance(value, dict) else value for value in row]
    with pytest.raises(ValueError, match=r"impossible trial|more than 100 digits|surrogates not allowed"):
        trial_from_row([*row, seal(row)])


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"options": {}}, "options have no seed"),
        ({"options": {"seed": None}}, "options have no seed"),
        ({"options": {"seed": "1"}}, "the option seed is '1'"),
        ({"options": {"seed": 1, "x": json.loads("[" * 60 + "]" * 60)}}, "nested more than 50 deep"),
        ({"options": {"seed": 1, "x": 10**100}}, "a number has 101 digits"),
    ],
)
def test_a_manifest_has_what_its_readers_ask_for(log: RunLog, entry: dict[str, object], said: str) -> None:
    log.add_to_manifest(entry)
    with pytest.raises(RunLogError, match=f"damaged: .*{said}"):
        log.manifest  # noqa: B018


@pytest.mark.parametrize("key", ["options", "plugins", "versions", "protocols"])
def test_a_manifest_has_no_more_entries_than_any_run(log: RunLog, key: str) -> None:
    entry: object = {} if key == "protocols" else "1"
    log.add_to_manifest({key: log.manifest[key] | dict.fromkeys(map(str, range(MOST_ENTRIES + 1)), entry)})
    with pytest.raises(RunLogError, match=f"damaged: the manifest's {key} are more than 10,000"):
        log.manifest  # noqa: B018


def test_a_plan_has_no_more_settings_than_any_agent(log: RunLog) -> None:
    plan = replace(log.plans()[0], settings=dict.fromkeys(map(str, range(MOST_ENTRIES + 1)), 1))
    with pytest.raises(ValueError, match="a plan's settings are more than 10,000"):
        read_plan(plan_to_json(plan))


def test_a_trial_has_no_more_values_than_any_protocol(log: RunLog) -> None:
    log.write_trial(record(log.plans()[0], 0, 0), ())
    with rewritten(log.path) as connection:
        values = json.dumps(dict.fromkeys(map(str, range(MOST_VALUES + 1)), 1))
        connection.execute("UPDATE trials SET counters = ? WHERE subject + trial = 0", (values,))
    with pytest.raises(RunLogError, match="a trial has more than 10,000 values of a kind"):
        log.trials()
