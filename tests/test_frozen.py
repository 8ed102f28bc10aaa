"""Frozen sets: they never change, the defaults are the newest one, and any version runs
them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

import cheesebench
from benchmarks.freeze import defaults, prompts
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.provenance import describe_protocols
from cheesebench.experiment.settings import Given, with_set
from cheesebench.frozen import FILE, fingerprint, frozen_set, frozen_sets, standing
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena

SETS = frozen_sets()
NEWEST = next(iter(SETS.values()))
every_set = pytest.mark.parametrize("name", SETS)


def test_the_defaults_are_the_newest_set() -> None:
    protocols = list(defaults())
    plans = [
        plan_cell(one, "random", NEWEST.views[0], find_design("cohort"), "none")
        for one in protocols
    ]
    told = json.loads((NEWEST.folder / FILE).read_text(encoding="utf-8"))
    found = standing(plans, describe_protocols(protocols))
    assert found is not None
    assert (str(found), found.differences, found.missing, told["prompts"]) == (
        NEWEST.name, (), (), prompts()
    ), "something that results depend on has changed: python benchmarks/freeze.py, under the next name"  # fmt: skip
    usual = installed_plugins().model_agent("llm").settings
    assert {name: usual[name] for name in NEWEST.settings} == NEWEST.settings


@every_set
def test_a_set_has_the_files_that_it_was_frozen_with(name: str) -> None:
    folder = SETS[name].folder
    now = {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != FILE
    }
    assert now == SETS[name].files
    assert folder.name == name


@every_set
def test_a_set_means_what_it_meant(name: str) -> None:
    one, catalogue = SETS[name], Catalogue()
    for protocol, kept in one.protocols.items():
        path = one.folder / f"{protocol}.protocol.yaml"
        specification = with_arena(catalogue.load(path))
        plan = plan_cell(specification, "random", one.views[0], find_design("cohort"), "none")  # fmt: skip
        assert fingerprint(plan) == kept, protocol


def test_a_run_of_the_set_carries_its_name(tmp_path: Path) -> None:
    run = cheesebench.run(
        "random", "t_maze", set=NEWEST.name, design="smoke", results=tmp_path,
        progress=False,
    )  # fmt: skip
    assert run.summary.frozen_set == NEWEST.name
    [cell] = run.summary.cells
    assert (cell.plan.protocol, cell.plan.view) == ("t_maze", "ascii_2d")
    report = " ".join(run.report("markdown").split())
    assert f"| frozen set | {NEWEST.name} |" in report
    resumed = cheesebench.run(
        "random", "t_maze", resume=run.id, results=tmp_path, progress=False
    )
    assert resumed.summary.frozen_set == NEWEST.name
    other = cheesebench.run(
        "random", "t_maze", set=NEWEST.name, view="ascii_3d", design="smoke",
        results=tmp_path, progress=False,
    )  # fmt: skip
    assert other.summary.frozen_set == f"{NEWEST.name}+"


def test_settings_with_other_defaults_by_now_are_set() -> None:
    plugins = installed_plugins()
    then = {**NEWEST.settings, "history": "2-4", "patience": 9}
    older = replace(NEWEST, settings=then)
    found = with_set(Given({}), older, plugins, "llm").values
    assert found["history"] == "2-4"
    assert found["agent_option"] == ["patience=9"]
    assert "temperature" not in found
    own = Given({"history": "1", "agent_option": ["patience=1"], "view": ["ascii_3d"]})  # fmt: skip
    found = with_set(own, older, plugins, "llm").values
    assert (found["history"], found["agent_option"]) == ("1", ["patience=1"])
    assert found["view"] == ["ascii_3d"]
    assert len(found["protocols"]) == len(NEWEST.protocols)


def test_nothing_else_is_run_as_a_set(tmp_path: Path) -> None:
    """Neither another edition nor another protocol under the set's option."""
    plugins = installed_plugins()
    given = Given({"edition": "paper"})
    with pytest.raises(OptionError, match=f"remove --edition, or --set {NEWEST.name}"):
        with_set(given, NEWEST, plugins, "llm")
    for name in ("y_maze", "t_maze@paper", "classics"):
        with pytest.raises(
            UnknownNameError, match=f"of the set {NEWEST.name} called '{name}'"
        ):
            with_set(Given({"protocols": [f"t_maze,{name}"]}), NEWEST, plugins, "llm")
    twin = str(tmp_path / "held.protocol.yaml")
    given = Given({"edition": "default", "protocols": ["dnms", twin, str(tmp_path)]})
    first, *files = with_set(given, NEWEST, plugins, "llm").values["protocols"]
    assert first == str(NEWEST.folder / "dnms.protocol.yaml")
    assert files == [twin, str(tmp_path)]


def test_a_set_that_is_none_is_named_with_a_remedy() -> None:
    with pytest.raises(UnknownNameError, match=NEWEST.name):
        frozen_set("2026.l")
