"""Runs of a language model in one place, for tests against a real server."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

from cheesebench.chat import ModelEntry, Price
from cheesebench.experiment.calling import Patience
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import CallOptions, LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.family import LanguageModel
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification
from cheesebench.records import CellPlan
from cheesebench.testing.fake_server import Call, FakeServer

SEED = 5
#: Short timeouts, so that no test waits longer than necessary.
HASTE = CallOptions(concurrency=8, patience=Patience(request=2.0, retries=2))
ENTRY = ModelEntry(
    name="tiny",
    backend="openai",
    id="tiny-1",
    price=Price(prompt=1.0, completion=2.0, on=date(2026, 1, 1)),
)

Cells = dict[CellPlan, Specification]


def walk(call: Call) -> str:
    """Reply with a few letters that depend only on the seed of the call."""
    return "".join(
        random.Random(call.body["seed"]).choices("FLRS ", weights=(6, 1, 1, 1, 1), k=3)
    )


class Laboratory:
    """Runs the cells of one model, in one place."""

    def __init__(
        self, plugins: PluginManager, stranger: ModuleType, results: Path
    ) -> None:
        self.plugins, self.stranger, self.results = plugins, stranger, results
        self.options = HASTE

    def model(
        self, server: FakeServer, entry: ModelEntry = ENTRY, **settings: Any
    ) -> LanguageModel:
        return language_model(
            self.plugins,
            entry,
            agent="talker",
            settings=settings,
            base_url=server.base_url,
        )

    def cells(
        self,
        model: LanguageModel,
        subjects: int = 3,
        names: tuple[str, ...] = ("corridor", "hall"),
    ) -> Cells:
        design = find_design("cohort", subjects)
        return {
            plan_cell(
                protocol,
                model.entry.name,
                "ascii_2d",
                design,
                agent=model.agent.name,
                settings=model.settings,
            ): protocol
            for protocol in map(self.stranger.corridor, names)
        }

    def log(self, name: str, cells: Cells) -> RunLog:
        return RunLog.create(self.results, name, cells.items(), options={"seed": SEED})

    def session(
        self,
        log: RunLog,
        model: LanguageModel,
        cells: Cells,
        source: RunLog | None = None,
    ) -> RunSession:
        models = LanguageModels(log, {model.entry.name: model}, self.options, source)
        return RunSession(
            log, self.plugins, cells, seed=SEED, processes=0, language=models
        )

    def run(
        self,
        log: RunLog,
        model: LanguageModel,
        cells: Cells,
        source: RunLog | None = None,
    ) -> list[str]:
        with self.session(log, model, cells, source) as session:
            session.finish()
        return list(log.dump())


def errors(log: RunLog) -> list[str]:
    return [entry.text for entry in log.journal(kind="error")]
