"""The JSON Schema and the loader agree on a file's shape."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cheesebench.protocols
from cheesebench.diagnostics import Diagnostics
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue
from cheesebench.protocol.schema import FILE_NAME, protocol_schema, schema_text
from cheesebench.source import read_file, read_text
from tests.arenas import examine, examine_text

_catalogue = Catalogue(installed_plugins().protocol_directories)
_validator = jsonschema.Draft202012Validator(protocol_schema())

#: Every short form of the language, beside its long form.
SHORT_FORMS = """
version: 1
paradigm: short_forms
title: 8
cite: {pmc: PMC1, doi: '10.1000'}
arena:
  map: |
    ######
    #AB5d#
    ###L##
  legend: {A: west, B: {zones: [east, far], glyph: 7}, 5: {zone: five}, d: {door: gate}, L: {solid: lever}}
  groups: {side: [west, east]}
  landmarks: {N: "1", S: 2, post: {at: [0, 0], glyph: "^"}}
vars: {n: 0, name: none, flag: true, seen: [], kept: {init: [west], per: subject}}
draw: {d: {of: {lamp: [1, 2], goal: [west, east]}}}
start: {at: west}
trial:
  limit: 20
  start: first
  states:
    first:
      say: 3
      show: {east: lamp, lever: "!"}
      close: gate
      rules:
        - {press: lever, count: presses, reward: n + 1}
        - {enter: goal, if: it == east, p: 0.5, set: {n: n + 1, name: goal}, add: {seen: it}, end: found}
        - {after: 9, go: second}
    second: {say: [TONE, 2], close: [gate], each: {reward: -0.5}}
  watch: [{act: STAY, count: [stays, acts]}]
  finish: [{if: size(seen) == 2, end: both}]
schedule:
  main: {trials: 2, set: {n: 1, seen: [west]}, until: {outcome: found, count: 1, of: 2}}
  rest: {}
success: last == found
estimand: {last: 2}
measures: {latency: steps, one: 1}
reference: [{measure: success, value: 0.8, interval: [0.7, 0.9], status: declared}]
tests:
  - {actions: FF, expect: {outcome: found}}
  - {actions: [F, STAY], expect: {reward: 1, variables: {seen: [west]}}}
  - {visit: side, expect: {success: true, counters: {presses: 0}, measures: {latency: 2}}}
notes: [one, two]
"""


def plain(text: str) -> Any:
    """Read YAML as the loader does, into plain data."""
    diagnostics = Diagnostics()
    root = read_text(text, "x.yaml", diagnostics)
    assert root is not None, diagnostics.found
    return root.plain()


def misfits(data: object) -> list[str]:
    return [error.message for error in _validator.iter_errors(data)]


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = Path(cheesebench.protocols.__path__[0], FILE_NAME).read_text(
        encoding="utf-8"
    )
    assert committed == schema_text(), (
        f"run: cheesebench schema --output protocols/{FILE_NAME}"
    )


def test_it_is_a_valid_schema_that_describes_itself() -> None:
    schema = protocol_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$id" not in schema
    assert schema["title"] == "CheeseBench protocol"
    trial = schema["$defs"]["Trial"]["properties"]
    assert (
        trial["limit"]["description"]
        == "Maximum number of steps of a trial, or the variable that holds it."
    )
    undescribed = [
        name for name, model in schema["$defs"].items() if not model.get("description")
    ]
    undescribed += [
        f"{name}: {key}"
        for name, model in schema["$defs"].items()
        for key, value in model["properties"].items()
        if not value.get("description")
    ]
    assert undescribed == []


@pytest.mark.parametrize(
    "path", list(_catalogue.files.values()), ids=list(_catalogue.files)
)
def test_every_shipped_protocol_validates(path: Path) -> None:
    root = read_file(path, Diagnostics())
    assert root is not None
    assert misfits(root.plain()) == []


def test_short_forms_validate_and_load() -> None:
    specification, found = examine_text(SHORT_FORMS)
    assert specification is not None, "\n".join(map(str, found))
    assert misfits(plain(SHORT_FORMS)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["titel"], "typo at the top"),
        (["arena", "lengend"], {}),
        (["trial", "states", "first", "ruls"], []),
        (["trial", "states", "first", "rules", 0, "rewrd"], 1),
        (["trial", "watch", 0, "when"], 1),
        (["draw", "d", "oder"], "random"),
        (["schedule", "main", "trails"], 3),
        (["tests", 0, "expect", "outcom"], "found"),
        (["vars", "two words"], 1),
        (["arena", "legend", "A"], {"zone": "west", "glyf": "x"}),
        (["draw", "d", "order"], "shufle"),
        (["draw", "d", "per"], "trials"),
        (["version"], 2),
        (["schedule", "main", "trials"], "ten"),
        (["start", "carry"], "yes"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, list) else "",
)
def test_a_typo_fails(path: list[str | int], value: object) -> None:
    data = plain(SHORT_FORMS)
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert misfits(data)
    assert not _loads(data)


@pytest.mark.parametrize(
    "key", ["version", "paradigm", "arena", "start", "trial", "schedule"]
)
def test_a_required_key_is_missed(key: str) -> None:
    data = plain(SHORT_FORMS)
    del data[key]
    assert misfits(data)


def test_an_edition_needs_only_what_it_changes(tmp_path: Path) -> None:
    edition: dict[str, Any] = {
        "version": 1,
        "extends": "short_forms",
        "paradigm": "short_forms",
        "edition": "rodent",
        "arena": {"legend": {"B": {"glyph": None}}, "landmarks": None},
        "trial": {
            "limit": 30,
            "states": {
                "second": {
                    "say": None,
                    "freeze": True,
                    "rules": [{"after": 2, "end": "out"}],
                }
            },
        },
        "draw": {"d": {"per": "session"}},
        "tests": None,
    }
    (tmp_path / f"short_forms{SUFFIX}").write_text(SHORT_FORMS, encoding="utf-8")
    child = tmp_path / f"short_forms.rodent{SUFFIX}"
    child.write_text(json.dumps(edition), encoding="utf-8")
    specification, found = examine(child, Catalogue([tmp_path]))
    assert specification is not None, "\n".join(map(str, found))
    assert misfits(edition) == []

    typo = copy.deepcopy(edition)
    typo["trial"]["states"]["second"]["frezze"] = True
    assert misfits(typo)
    half_a_rule = copy.deepcopy(edition)
    half_a_rule["reference"] = [
        {"measure": "success", "value": 0.5}
    ]  # lists are replaced as a whole
    assert misfits(half_a_rule)
    no_edition = {key: value for key, value in edition.items() if key != "extends"}
    assert misfits(no_edition)


def test_null_deletes_in_any_file() -> None:
    data = plain(SHORT_FORMS)
    data["measures"]["one"] = None
    data["title"] = None
    assert misfits(data) == []
    assert _loads(data)
    data["trial"]["limit"] = None
    assert misfits(data)
    assert not _loads(data)


def _loads(data: object) -> bool:
    """JSON is YAML, so let the loader judge the same data."""
    return examine_text(json.dumps(data))[0] is not None
