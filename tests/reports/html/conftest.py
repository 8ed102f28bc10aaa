"""Real runs for pages: a little maze run by the random agent, and a run in which every
text is hostile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cheesebench import AgentSpec
from cheesebench.chat import (
    BackendContext,
    BackendSpec,
    ChatReply,
    ChatRequest,
    ModelEntry,
    Usage,
)
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.records import CellPlan
from cheesebench.statistics import summarise_subjects

MAZE = """
version: 1
paradigm: {name}
title: {title}
dimension: {dimension}
arena:
  map: |
    #######
    #S.C.G#
    #######
  legend: {{S: box, C: cue, G: goal}}
start: {{at: box, face: E}}
trial:
  limit: 30
  start: wait
  states:
    wait: {{freeze: true, say: ["{say}"], rules: [{{after: 2, go: run}}]}}
    run:
      show: {{cue: "*"}}
      each: {{reward: -0.01}}
      rules:
        - {{enter: goal, reward: 1, count: visits, end: found}}
schedule: {{main: {{sessions: 2, trials: 4}}}}
success: last == found
measures: {{latency: steps / 2}}
reference: [{{measure: success, value: 0.75, curve: [0.5, 0.75], status: made up}}]
chance: {{value: 0.125, trials: 100, how: counted}}
"""

#: Text that would run, hide or reorder something if it were more than text.
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>\x1b[31m\u202e\x00 & \"'"

#: Decides whether it continues from trial to trial: always forward.
Report = Callable[[RunLog, PluginManager], str]


class Walker:
    """Walks on, and finds the goal in every trial except the second of each session."""

    def __init__(self, context: object) -> None:
        self.trials = 0

    def begin_trial(self, observation: str) -> None:
        self.trials += 1

    def act(self, observation: str) -> list[int]:
        return [3] if self.trials % 4 == 2 else [0]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        pass


def maze(
    directory: Path,
    name: str = "little",
    title: str = "A little maze",
    say: str = "wait",
) -> Specification:
    """Return the protocol ``name``."""
    path = directory / f"{name}.protocol.yaml"
    text = MAZE.format(name=name, title=title, say=say, dimension=f"{name} learning")
    path.write_text(text, encoding="utf-8")
    specification: Specification = with_arena(Catalogue().load(path))
    return specification


def make_log(
    directory: Path,
    specifications: list[Specification],
    model: str = "walker",
    subjects: int = 3,
    **changes: object,
) -> tuple[RunLog, PluginManager]:
    """Run the walker under the name ``model``; return the open log and the plugins that
    know it.
    """
    plugins = PluginManager()
    agent = AgentSpec(model, Walker, memory="none")
    plugins.register(
        SimpleNamespace(cheesebench_agents=lambda: [agent]), name="walkers"
    )
    cells: list[tuple[CellPlan, Specification]] = []
    for specification in specifications:
        plan = plan_cell(
            specification,
            model,
            "ascii_2d",
            find_design("cohort", subjects),
            agent.memory,
        )
        cells.append((dataclasses.replace(plan, **changes), specification))  # type: ignore[arg-type]
    log = RunLog.create(
        directory,
        "20250131-093000-ab12",
        cells,
        options={"seed": 3, "design": "cohort"},
    )
    with RunSession(log, plugins, cells, seed=3, processes=0) as session:
        session.finish()
    return log, plugins


def page(log: RunLog, plugins: PluginManager) -> str:
    """Return the page of a run."""
    return plugins.report(
        "html",
        summarise_subjects(log.manifest, log.plans(), log.trials_by_subject),
        log,
    )


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunLog, PluginManager]]:
    """Three subjects in three little mazes, eight trials each."""
    directory = tmp_path_factory.mktemp("run")
    log, plugins = make_log(
        directory, [maze(directory, name) for name in ("little", "middle", "large")]
    )
    yield log, plugins
    log.close()


@pytest.fixture(scope="module")
def hostile(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunLog, PluginManager]]:
    """A run whose model and title try to break the page."""
    directory = tmp_path_factory.mktemp("hostile")
    log, plugins = make_log(
        directory, [maze(directory)], HOSTILE.replace("\x00", ""), 1, title=HOSTILE
    )
    yield log, plugins
    log.close()


@pytest.fixture
def report() -> Report:
    return page


#: A reply with actions and, beside them, everything that must stay text; as long as a
#: server allows.
RANT = (
    f"{HOSTILE}\ud800\r\nLEARNINGS: {HOSTILE} the goal lies east\nACTIONS: F, F, F, F\n"
)
LONG = "x" * 1_000_000


class Parrot:
    """A model server in this process: it repeats one reply, and sends something very
    long in some calls.
    """

    def __init__(self, context: BackendContext) -> None:
        self._calls = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self._calls += 1
        text = (f"{LONG}\n" if self._calls == 2 else "") + RANT
        usage = Usage(prompt=1200, completion=34, cached=1000)
        return ChatReply(
            text=text, reasoning=f"I think {HOSTILE}", usage=usage, model="parrot-1"
        )

    async def close(self) -> None:
        pass


def make_talk(directory: Path, view: str = "ascii_2d") -> tuple[RunLog, PluginManager]:
    """Let a model that only rants live through the maze."""
    plugins = PluginManager()
    entry = ModelEntry(name="ranter", backend="parrot", id="p", images=True)
    backend = BackendSpec(name="parrot", connect=Parrot)
    plugins.register(
        SimpleNamespace(cheesebench_backends=lambda: [backend]), name="parrots"
    )
    model = language_model(plugins, entry, settings={"actions": 4, "history": 1})
    specification = maze(directory)
    design = find_design("cohort", 1)
    plan = plan_cell(
        specification,
        "ranter",
        view,
        design,
        agent=model.agent.name,
        settings=model.settings,
    )
    cells = [(plan, specification)]
    log = RunLog.create(
        directory, "talk", cells, options={"seed": 3, "design": "cohort"}
    )
    language = LanguageModels(log, {"ranter": model})
    with RunSession(
        log, plugins, cells, seed=3, processes=0, language=language
    ) as session:
        session.finish()
    return log, plugins


@pytest.fixture(scope="module")
def talk(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunLog, PluginManager]]:
    """A run of a language model whose every reply is hostile."""
    log, plugins = make_talk(tmp_path_factory.mktemp("talk"))
    yield log, plugins
    log.close()


@pytest.fixture(scope="module")
def pictures(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunLog, PluginManager]]:
    """The same with observations that are pictures."""
    log, plugins = make_talk(tmp_path_factory.mktemp("pictures"), "topdown_2d")
    yield log, plugins
    log.close()
