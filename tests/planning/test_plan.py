"""What a run would take: the bounds hold for a real run, and estimates come from earlier ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from cheesebench.chat import ModelEntry, Price
from cheesebench.commands.plan import _row
from cheesebench.experiment.contestants import LanguageModel, language_model
from cheesebench.experiment.designs import find_design, plan_cell
from cheesebench.experiment.language_models import LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.records import CallTotals, CellPlan
from cheesebench.experiment.session import RunSession
from cheesebench.family import CellRequest
from cheesebench.planning import Forecast, forecast
from cheesebench.planning.earlier import EarlierRuns
from cheesebench.planning.rehearsal import most_steps
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import Catalogue, Specification
from cheesebench.testing.fake_server import FakeServer

MAZE = """
version: 1
paradigm: tiny
title: Tiny
dimension: patience
arena:
  map: |
    #####
    #S.G#
    #####
  legend: {S: box, G: goal}
start: {at: box, face: N}
trial:
  limit: LIMIT
  start: run
  states:
    run: {rules: [{enter: goal, reward: 1, end: found}]}
schedule:
  easy: {sessions: 1, trials: 3}
  hard: {sessions: 1, trials: 2}
success: last == found
estimand: {block: hard}
reference: [{measure: success, value: 0.75, status: made up}]
"""


@pytest.fixture
def plugins() -> PluginManager:
    """All that is installed."""
    return installed_plugins()


def load(directory: Path, text: str) -> Specification:
    path = directory / "tiny.protocol.yaml"
    path.write_text(text, encoding="utf-8")
    return Catalogue().load(path).walkable()


def model_of(plugins: PluginManager, base_url: str = "http://127.0.0.1:9", **changes: object) -> LanguageModel:
    entry = ModelEntry(name="tiny-model", backend="openai", id="tiny", **changes)  # type: ignore[arg-type]
    return language_model(plugins, entry, base_url=base_url, settings={"max_tokens": 50})


def planned(specification: Specification, model: LanguageModel, subjects: int = 2) -> CellPlan:
    design = find_design("cohort", subjects)
    return plan_cell(specification, "tiny-model", "ascii_2d", design, agent="llm", settings=model.settings)


def predicted(
    plugins: PluginManager, plan: CellPlan, specification: Specification, model: LanguageModel, results: Path
) -> Forecast:
    return forecast(
        plugins, [(plan, specification)], {"tiny-model": model}, EarlierRuns(results), concurrency=4, seed=0
    )


def lived(plugins: PluginManager, results: Path, specification: Specification, reply: str) -> CallTotals:
    """Run two subjects against a server that always says ``reply``; return what it took."""
    with FakeServer(reply) as server:
        model = model_of(plugins, server.base_url)
        plan = planned(specification, model)
        cells = [(plan, specification)]
        with RunLog.create(results, "earlier", cells, options={"seed": 0}) as log:
            models = LanguageModels(log, {"tiny-model": model})
            with RunSession(log, plugins, cells, seed=0, processes=0, language=models) as session:
                session.finish()
            assert not any(record.missing for record in log.trials())
            return log.calls.totals()


@pytest.fixture
def maze(tmp_path: Path) -> Specification:
    """A maze whose trials end after 12 steps."""
    return load(tmp_path, MAZE.replace("LIMIT", "12"))


@pytest.mark.parametrize("reply", ["ACTIONS: STAY", f"LEARNINGS: {'y' * 900}\nACTIONS: ROTATE_LEFT"])
def test_no_run_takes_more_than_the_bound(
    plugins: PluginManager, tmp_path: Path, maze: Specification, reply: str
) -> None:
    model = model_of(plugins)
    found = predicted(plugins, planned(maze, model), maze, model, tmp_path / "none")
    assert found.most.calls == 2 * 5 * 12
    spent = lived(plugins, tmp_path / "results", maze, reply)
    assert spent.calls == found.most.calls, "these replies never do more than one step"
    assert found.most.prompt is not None
    assert found.most.prompt / 20 < spent.prompt <= found.most.prompt


def test_a_model_that_stops_answering_takes_less_than_the_bound(
    plugins: PluginManager, tmp_path: Path, maze: Specification
) -> None:
    model = model_of(plugins)
    found = predicted(plugins, planned(maze, model), maze, model, tmp_path / "none")
    spent = lived(plugins, tmp_path / "results", maze, "I do not know")
    # Its patience, and then one question in each of the other trials.
    assert spent.calls < (found.most.calls or 0)


def test_an_agent_that_asks_again_can_make_more_calls(
    plugins: PluginManager, tmp_path: Path, maze: Specification
) -> None:
    entry = ModelEntry(name="tiny-model", backend="openai", id="tiny")
    model = language_model(plugins, entry, settings={"unparsed": "retry-with-feedback"})
    found = predicted(plugins, planned(maze, model), maze, model, tmp_path)
    assert found.most.calls == 2 * 5 * 12 * 3


def test_the_estimate_comes_from_earlier_runs(plugins: PluginManager, tmp_path: Path, maze: Specification) -> None:
    spent = lived(plugins, tmp_path / "results", maze, "ACTIONS: ROTATE_RIGHT, FORWARD, FORWARD")
    price = Price(prompt=1.0, completion=10.0, on=date(2026, 1, 31))
    model = model_of(plugins, price=price)
    plan = planned(maze, model, subjects=20)
    found = predicted(plugins, plan, maze, model, tmp_path / "results")
    about = found.estimate
    assert about is not None
    assert (about.calls, about.prompt, about.completion) == (spent.calls * 10, spent.prompt * 10, spent.completion * 10)
    assert about.dollars == pytest.approx((spent.prompt * 10 + spent.completion * 100) / 1e6)
    assert found.minutes == pytest.approx(spent.seconds * 10 / 4 / 60)
    assert found.price_of == price.on
    assert found.cells[0].earlier is not None
    assert found.cells[0].earlier.runs == ("earlier",)
    other = replace(plan, model="another")
    told = forecast(
        plugins, [(other, maze)], {"another": model}, EarlierRuns(tmp_path / "results"), concurrency=4, seed=0
    )
    assert told.cells[0].earlier is not None
    assert told.cells[0].earlier.models == ("tiny-model",), "for want of runs of its own"


def test_without_an_earlier_run_nothing_is_made_up(plugins: PluginManager, tmp_path: Path, maze: Specification) -> None:
    model = model_of(plugins)
    found = predicted(plugins, planned(maze, model), maze, model, tmp_path)
    assert (found.estimate, found.minutes, found.most.dollars, found.price_of) == (None, None, None, None)


def test_the_context_of_a_model_bounds_its_prompts(plugins: PluginManager, tmp_path: Path, maze: Specification) -> None:
    model = model_of(plugins, context=1000)
    found = predicted(plugins, planned(maze, model), maze, model, tmp_path)
    assert found.most.prompt == 120 * 1000


def test_the_trials_that_count_are_those_of_the_estimand(
    plugins: PluginManager, tmp_path: Path, maze: Specification
) -> None:
    model = model_of(plugins)
    outlook = predicted(plugins, planned(maze, model), maze, model, tmp_path).cells[0].outlook
    assert outlook is not None
    assert (outlook.trials, outlook.rodent) == (2, 0.75)


def test_no_question_is_longer_than_the_context(plugins: PluginManager, tmp_path: Path) -> None:
    questions = Catalogue(plugins.protocol_directories).find("cogeval_n7line")
    wide, narrow = model_of(plugins), model_of(plugins, context=200)
    request = CellRequest(model="tiny-model", plugins=plugins, design=find_design("cohort", 2), language=wide)
    plan = next(iter(plugins.family(questions).cells(questions, request)))
    bounds = []
    for model in (wide, narrow):
        found = forecast(
            plugins, [(plan, questions)], {"tiny-model": model}, EarlierRuns(tmp_path), concurrency=4, seed=0
        )
        bounds.append(found.most)
    assert bounds[0].calls == bounds[1].calls
    assert bounds[1].prompt == (bounds[1].calls or 0) * 200 < (bounds[0].prompt or 0)


def test_cells_without_a_step_are_shown(plugins: PluginManager, tmp_path: Path, maze: Specification) -> None:
    model = model_of(plugins)
    (cell,) = predicted(plugins, planned(maze, model), maze, model, tmp_path).cells
    for steps, shown in (((0, 0), "0"), ((0, 12), "12"), ((None, 12), "?")):
        cells = [replace(cell, steps=one) for one in steps]
        assert _row(cells, cells)[2] == shown


def test_the_most_steps_of_a_limit_that_varies(tmp_path: Path) -> None:
    drawn = MAZE.replace("LIMIT", "patience") + "draw: {d: {of: {patience: [7, 30, 9]}}}\n"
    assert most_steps(load(tmp_path, drawn)) == 30
