"""The paper's own rules: found as an edition, never run by default, and as easy for
random moves as the package.

The step-for-step comparison with the package is in tests/peer.
"""

from __future__ import annotations

import math
import re
import sqlite3
from functools import cache
from pathlib import Path

import pytest

import cheesebench
from benchmarks.random_rates import TASKS
from cheesebench.experiment.cells import default_protocols, plan_cell
from cheesebench.experiment.subjects import run_subject
from cheesebench.family import Design
from cheesebench.interfaces import AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.statistics import judge

CATALOGUE = Catalogue(installed_plugins().protocol_directories)
#: Results of the package's random agent over 99 seeds of the paper's trials, in
#: percent: rate, 95 % interval.
PACKAGE = {name: (task.rate, task.low, task.high) for name, task in TASKS.items()}
#: Table 1 of the paper: trials, and maximum steps of each.
TABLE_1 = {
    "morris_water_maze": (20, 500),
    "barnes_maze": (16, 300),
    "star_maze": (40, 300),
    "t_maze": (40, 200),
    "radial_arm_maze": (20, 400),
    "dnms": (100, 50),
    "operant_chamber": (50, 100),
    "shuttle_box": (40, 50),
    "place_preference": (12, 300),
}
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "earlier-numbers.md"
every_paradigm = pytest.mark.parametrize("name", PACKAGE)


@cache
def specification_of(name: str) -> Specification:
    specification: Specification = with_arena(CATALOGUE.find(name, "paper"))
    return specification


def test_it_is_an_edition_like_any_other_and_not_the_one_that_runs() -> None:
    names = {f"{name}@paper" for name in PACKAGE}
    assert {one.name for one in CATALOGUE.select(edition="paper")} == names
    chosen = default_protocols(CATALOGUE, "paper")
    assert {getattr(one, "name", None) for one in chosen} == names
    assert not names & set(CATALOGUE.names())


@every_paradigm
def test_it_has_the_trials_and_steps_of_the_paper(name: str) -> None:
    specification = specification_of(name)
    assert (specification.planned_trials, specification.limit) == TABLE_1[name]
    assert specification.construct is None, "nobody says that it measures what it names"
    assert specification.document.cite["arxiv"] == "2604.10825"


def test_there_are_six_dimensions() -> None:
    assert len({specification_of(name).document.dimension for name in PACKAGE}) == 6


@every_paradigm
def test_it_says_what_it_keeps_of_the_laboratory_s_protocol(name: str) -> None:
    for edition in ("paper", "default"):
        fidelity = with_arena(CATALOGUE.find(name, edition)).document.fidelity
        assert fidelity is not None
        assert all(fidelity.model_dump().values())


@every_paradigm
def test_its_own_tests_pass(name: str) -> None:
    reports = ArenaParadigm(specification_of(name)).own_tests(
        installed_plugins().view("ascii_2d")
    )
    assert len(reports) >= 2
    assert [str(report) for report in reports if not report.passed] == []


#: Under this edition, a name with ``@paper`` and the bare one are the same agent.
AGENTS = [name for name in installed_plugins().agents if "@paper" not in name]
#: Mean over the paradigms of the rate in the view where it is highest, in percent.
HEADLINE = """
    SELECT 100 * avg(best), count(*) FROM (
        SELECT max(rate) AS best FROM (
            SELECT protocol, avg(success) AS rate FROM trials
            WHERE compared GROUP BY protocol, view HAVING count(success)
        ) GROUP BY protocol HAVING count(*) = 3
    )
"""


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_the_headline_of_nine_in_three_views(
    agent: str, tmp_path: Path
) -> None:
    run = cheesebench.run(
        agent, edition="paper", design="paper", seed=0, results=tmp_path, progress=False
    )
    with sqlite3.connect(run.directory / "run.sqlite") as log:
        ((mean, protocols),) = log.execute(HEADLINE)
    assert protocols == len(PACKAGE)
    (best,) = run.summary.best_of_views
    assert {one.protocol for one in best.protocols} == {
        f"{one}@paper" for one in PACKAGE
    }
    assert 100 * best.best == pytest.approx(mean)
    said = re.search(r"^Best of views \*\*(.+?) %\*\*", run.report(), re.MULTILINE)
    assert said
    assert float(said[1]) == pytest.approx(mean, abs=0.051)


def random_rate(name: str, subjects: int) -> tuple[float, int]:
    """Return the pass rate of the random agent, and its trials."""
    specification, plugins = specification_of(name), installed_plugins()
    agent, design = plugins.agent("random"), Design(name="check", subjects=subjects)
    plan = plan_cell(specification, agent.name, "ascii_2d", design, agent.memory)
    paradigm, view = ArenaParadigm(specification), plugins.view("ascii_2d")
    cell = judge(
        plan,
        [
            record
            for n in range(subjects)
            for record, _ in run_subject(paradigm, view, agent, plan, 1, n)
        ],
    )
    assert cell.rate is not None
    return cell.rate, cell.valid


@pytest.mark.parametrize("subjects", [4, pytest.param(99, marks=pytest.mark.slow)])
@every_paradigm
def test_random_is_as_good_as_in_the_package(name: str, subjects: int) -> None:
    published, low, high = (number / 100 for number in PACKAGE[name])
    rate, trials = random_rate(name, subjects)
    error = math.hypot(
        (high - low) / 2 / 1.96,
        math.sqrt(max(published * (1 - published), 0.001) / trials),
    )
    assert abs(rate - published) < 3 * error
    assert subjects > 4 or error < 0.07, "so few trials would let anything pass"


def test_the_page_has_rates_of_many_trials_that_lie_inside_the_package_s_intervals() -> (
    None
):
    row = re.compile(
        r"^\| `(\w+)@paper` \| (\d+) \| ([\d.]+) ± ([\d.]+) \| .* \| yes \|",
        re.MULTILINE,
    )
    found = {
        name: (int(n), float(rate), float(error))
        for name, n, rate, error in row.findall(PAGE.read_text("utf-8"))
    }
    assert set(found) == set(PACKAGE)
    for name, (subjects, rate, error) in found.items():
        _, low, high = PACKAGE[name]
        assert low <= rate <= high
        assert error < 3
        assert subjects * specification_of(name).planned_trials >= 5_900


@every_paradigm
def test_the_chance_level_that_it_states_is_the_package_s(name: str) -> None:
    stated = specification_of(name).document.chance
    assert stated is not None
    published, low, high = (number / 100 for number in PACKAGE[name])
    own = math.sqrt(published * (1 - published) / stated.trials)
    assert (
        abs(stated.value - published)
        < 3 * math.hypot((high - low) / 2 / 1.96, own) + 0.001
    )


@pytest.mark.parametrize("name", ["t_maze", "operant_chamber"])
def test_its_audit_says_what_is_wrong_with_it(name: str) -> None:
    settings = AuditSettings(trials=60, parts=("blind",))
    findings = ArenaParadigm(specification_of(name)).audit(
        [installed_plugins().view("ascii_2d")], settings
    )
    assert "blind ceiling" in {one.rule for one in findings if one.verdict == "FAIL"}


def quoted() -> dict[str, tuple[str, str]]:
    """Return the lines of the audit that the documentation quotes: policy and rate by
    protocol.
    """
    lines = re.findall(
        r"^\| `(\w+)@paper` \| (.+?) \| (.+?) \|",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return {name: (policy, rate) for name, policy, rate in lines}


def test_all_nine_are_quoted() -> None:
    assert set(quoted()) == set(PACKAGE)


@pytest.mark.slow
@every_paradigm
def test_the_audit_says_what_the_documentation_quotes(name: str) -> None:
    settings = AuditSettings(trials=400, parts=("blind",), processes=2)
    view = installed_plugins().view("ascii_2d")
    findings = {
        one.rule: one
        for one in ArenaParadigm(specification_of(name)).audit([view], settings)
    }
    policy, rate = quoted()[name]
    assert f": {policy} {rate};" in findings["blind ceiling"].text


def test_they_are_in_the_wheel() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert '"paper/*.yaml"' in project.read_text(encoding="utf-8")
