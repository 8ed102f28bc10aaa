"""The library of classics: shipped, found by name and by folder, sound by their own tests, and never run by default."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from cheesebench.interfaces import AuditSettings
from cheesebench.paradigms import ArenaParadigm
from cheesebench.paradigms.audit.runs import Order, carry_out
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification

CLASSICS = (
    "contextual_fear",
    "delayed_alternation",
    "five_choice",
    "go_no_go",
    "hebb_williams",
    "novel_object",
    "odd_one_out",
    "probabilistic_reversal",
    "progressive_ratio",
    "reversal_learning",
    "water_maze_matching",
    "y_maze",
)
CATALOGUE = Catalogue(installed_plugins().protocol_directories)
every_classic = pytest.mark.parametrize("name", CLASSICS)


def specification_of(name: str) -> Specification:
    return CATALOGUE.find(name)


def test_the_folder_holds_them_and_no_others() -> None:
    files = sorted(CATALOGUE.folders["classics"].glob("*.protocol.yaml"))
    assert tuple(path.name.split(".")[0] for path in files) == CLASSICS
    assert not set(CLASSICS) & set(CATALOGUE.names()), "by default only the paper's protocols run"


@every_classic
def test_it_is_clean_tested_and_cited(name: str) -> None:
    specification, found = CATALOGUE.examine(CATALOGUE.folders["classics"] / f"{name}.protocol.yaml")
    assert specification is not None
    assert [str(finding) for finding in found if finding.severity == "warning"] == []
    document = specification.document
    assert specification.title
    assert specification.success is not None
    assert document.species
    assert document.dimension != "unclassified"
    assert re.fullmatch(r"10\.\d{4,}/\S+", document.cite["doi"])
    assert len(document.tests) >= 3
    view = installed_plugins().view("ascii_2d")
    assert [str(report) for report in ArenaParadigm(specification).own_tests(view) if not report.passed] == []


@every_classic
def test_it_states_the_chance_level_that_the_random_agent_has(name: str) -> None:
    specification = specification_of(name)
    stated = specification.document.chance
    assert stated is not None
    rate = carry_out(ArenaParadigm(specification), Order("uniform", 400, 77)).rate()
    if rate.trials:
        error = math.sqrt(max(stated.value * (1 - stated.value), 0.01) / rate.trials)
        assert abs(rate.value - stated.value) < 4 * error + 0.03


@every_classic
def test_nothing_leaks_and_everything_is_seen(name: str) -> None:
    settings = AuditSettings(trials=60, parts=("solvable", "draws", "leaks", "cues"))
    views = [installed_plugins().view("ascii_2d")]
    findings = ArenaParadigm(specification_of(name)).audit(views, settings)
    assert [f"{one.rule}: {one.text}" for one in findings if one.verdict == "FAIL"] == []


def test_they_run_by_name_and_by_folder(pytester: pytest.Pytester) -> None:
    arguments = ("--model", "random", "--collect-only", "-q", "-p", "no:cacheprovider")
    folder = pytester.runpytest_inprocess(*arguments, "--protocols", "classics")
    assert folder.ret == 0
    folder.stdout.fnmatch_lines([f"{name}[[]ascii_2d[]]" for name in CLASSICS])
    one = pytester.runpytest_inprocess(*arguments, "--protocols", "five_choice")
    one.stdout.fnmatch_lines(["five_choice[[]ascii_2d[]]"])
    usual = pytester.runpytest_inprocess(*arguments)
    assert not [line for line in usual.outlines if line.split("[")[0] in CLASSICS]


def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from cheesebench.cli import main

    main(["list"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in CLASSICS)


def test_they_are_in_the_wheel() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert '"classics/*.yaml"' in project.read_text(encoding="utf-8")
