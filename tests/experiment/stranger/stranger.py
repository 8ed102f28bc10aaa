"""A third-party plugin: a family of corridors, and agents with good and bad manners.

Tests put this directory on ``sys.path``, where its metadata makes it an installed
plugin: worker processes load it as they would load anybody's.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cheesebench.diagnostics import Diagnostics
from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.family import CellRequest, Family, Listing
from cheesebench.interfaces import (
    FORWARD,
    RUNNING,
    STAY,
    TERMINATED,
    TRUNCATED,
    AgentContext,
    AgentSpec,
    Paradigm,
    TaskEvent,
    TrialResult,
    View,
)
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol.arena import Arena
from cheesebench.protocol.documents import ProtocolDocument
from cheesebench.protocol.specification import (
    BlockSpec,
    EffectsSpec,
    Place,
    ReferenceSpec,
    Specification,
    StartSpec,
)
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.source import Node
from cheesebench.stepwise import StepwiseFamily

LIMIT = 30
#: Number of consecutive runs to the end that ends the life.
CRITERION = 3


def corridor(name: str = "corridor", trials: int = 6) -> Specification:
    """Return a protocol of this family: a corridor to walk along, with a pause in its
    middle.
    """
    source = {
        "version": 1,
        "paradigm": name,
        "dimension": "patience",
        "arena": {"map": "...", "legend": {}},
        "start": {"at": "floor"},
        "trial": {"limit": LIMIT, "start": "run", "states": {"run": {}}},
        "schedule": {"training": {"trials": trials}},
        "reference": [
            {"measure": "latency", "value": 7, "status": "invented"},
            {
                "measure": "success",
                "value": 0.8,
                "interval": [0.7, 0.9],
                "curve": [0.5, 0.8],
                "status": "invented",
            },
        ],
        "chance": {"value": 0.5, "trials": 100, "how": "invented"},
    }
    text = json.dumps(source)
    nothing = EffectsSpec()
    return Specification(
        paradigm=name,
        edition="default",
        family="corridor",
        path=f"{name}.protocol.yaml",
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        ancestors=(),
        document=ProtocolDocument.model_validate(source),
        arena=Arena(("...",), ((0, 0), (1, 0), (2, 0)), {}, {}, {}, {}, (), {}, 8),
        variables={},
        draws=(),
        columns={},
        counters=("pauses",),
        start=StartSpec(Place("floor"), "N", False, False),
        limit=LIMIT,
        entry=(),
        states={},
        each=nothing,
        watch=(),
        finish=(),
        schedule=(BlockSpec("training", 1, trials, 1, (), None),),
        success=None,
        where=None,
        measures={},
        outcomes=("found",),
        references=(
            _invented("latency", 7, "declared"),
            _invented(
                "success", 0.8, "measured", interval=(0.7, 0.9), curve=(0.5, 0.8)
            ),
        ),
    )


def _invented(
    measure: str,
    value: float,
    kind: Literal["measured", "declared"],
    interval: tuple[float, float] | None = None,
    curve: tuple[float, ...] = (),
) -> ReferenceSpec:
    return ReferenceSpec(
        measure=measure,
        value=value,
        interval=interval,
        n_animals=None,
        sd=None,
        kind=kind,
        curve=curve,
        curve_sd=(),
        over=(),
        where=None,
        species="",
        source="",
        status="invented",
    )


#: ``left``: an object that the agent of this thread leaves in the record of the trial,
#: as a careless environment might.
WALL = threading.local()


class CorridorLife:
    """Walk to the end of a corridor of 4 to 12 cells; the subject is held for two steps
    in the middle.
    """

    def __init__(self, specification: Specification, seed: int, subject: int) -> None:
        self._random = random.Random(f"{specification.sha256}|{seed}|{subject}")
        self._trials = specification.planned_trials
        self._outcomes: list[str] = []
        self.waiting = False

    def begin_trial(self) -> str | None:
        if (
            len(self._outcomes) == self._trials
            or self._outcomes[-CRITERION:] == ["found"] * CRITERION
        ):
            return None
        self._length = self._random.randint(4, 12)
        self._place, self._steps, self._held, self._bumps = 0, 0, 0, 0
        self._outcome = ""
        self._events: list[TaskEvent] = []
        return self._observation()

    def step(self, action: int) -> tuple[str, float, int]:
        assert not self._outcome, "stepped after the end"
        self._steps += 1
        if self.waiting:
            self._held -= 1
            self.waiting = self._held > 0
        elif action == FORWARD:
            self._place += 1
            if self._place == self._length // 2:
                self._held, self.waiting = 2, True
                self._events.append(
                    TaskEvent(
                        self._steps, "run", "enter middle", "corridor.protocol.yaml:1"
                    )
                )
        elif action == STAY:
            self._bumps += 1
        if self._place == self._length:
            return self._end("found", TERMINATED, 0.1 * self._length)
        if self._steps == LIMIT:
            return self._end("timeout", TRUNCATED, -1.0)
        return self._observation(), -0.1, RUNNING

    def result(self) -> TrialResult:
        return TrialResult(
            block="training",
            session=1,
            outcome=self._outcome,
            success=self._outcome == "found",
            compared=True,
            counters={"pauses": len(self._events)},
            measures={
                "latency": self._steps,
                "speed": self._place / self._steps,
                "first": None,
            },
            variables={
                "length": self._length,
                "seen": ["start", "mitte \u2460", *self._graffiti()],
                "held": False,
            },
            path_length=self._place,
            bumps=self._bumps,
            events=self._events,
        )

    def _graffiti(self) -> list[Any]:
        left, WALL.left = getattr(WALL, "left", []), []
        return left

    def _end(self, outcome: str, status: int, reward: float) -> tuple[str, float, int]:
        self._outcome = outcome
        self._outcomes.append(outcome)
        self.waiting = False
        return self._observation(), reward, status

    def _observation(self) -> str:
        return "." * self._place + ">" + "." * (self._length - self._place)


@dataclass
class Corridor(Paradigm):
    """A compiled corridor."""

    specification: Specification

    def environment(self, view: View, seed: int, subject: int) -> CorridorLife:
        return CorridorLife(self.specification, seed, subject)


class CorridorFamily(StepwiseFamily[Specification, Corridor]):
    """Compiles corridors, which have no files."""

    name, plural, document = "corridor", "corridors", ProtocolDocument

    def matches(self, tree: Node) -> bool:
        return False

    def load(
        self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
    ) -> Specification | None:
        raise AssertionError("there are no files of corridors")

    def listing(self, specification: Specification) -> Listing:
        return Listing(values={}, row={"corridor": specification.name})

    def cells(
        self, specification: Specification, request: CellRequest
    ) -> Iterable[CellPlan]:
        return [
            plan_cell(specification, request.model, view, request.design)
            for view in request.views
        ]

    def compile(self, specification: Specification) -> Corridor:
        return Corridor(specification)


class Walker:
    """Walks on most of the time, up to three actions at once; counts its trials."""

    def __init__(self, context: AgentContext) -> None:
        self.random = random.Random(context.seed)
        self.trials = 0

    def begin_trial(self, observation: str) -> None:
        self.trials += 1

    def act(self, observation: str) -> Sequence[int]:
        return self.random.choices(
            range(4), weights=(4, 1, 1, 1), k=self.random.randint(1, 3)
        )

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        pass


class Slow(Walker):
    """Acts slowly, so that there is time to kill it."""

    def act(self, observation: str) -> Sequence[int]:
        time.sleep(0.005)
        return super().act(observation)


class Raiser(Walker):
    """Fails in its third trial."""

    def act(self, observation: str) -> Sequence[int]:
        if self.trials == 3:
            raise ValueError("no idea\nwhat to do")
        return super().act(observation)


class Quitter(Walker):
    """Calls sys.exit in its second trial."""

    def act(self, observation: str) -> Sequence[int]:
        if self.trials == 2:
            sys.exit("enough")
        return super().act(observation)


class Dying(Walker):
    """Kills its process in its second trial, if its seed is odd."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        self.mortal = context.seed % 2 == 1

    def act(self, observation: str) -> Sequence[int]:
        if self.mortal and self.trials == 2:
            print("dying", flush=True)
            os._exit(3)
        return super().act(observation)


class Loser(Walker):
    """Kills its process when it is about to be wrong, which happens three times in the
    second trial.
    """

    def act(self, observation: str) -> Sequence[int]:
        tries = Path(os.environ["TRIES"])
        if self.trials == 2 and tries.stat().st_size < 3:
            with tries.open("a", encoding="ascii") as file:
                file.write("x")
            os._exit(3)
        return super().act(observation)


class Forking(Dying):
    """Leaves a child process behind, with all its open files."""

    def __init__(self, context: AgentContext) -> None:
        super().__init__(context)
        if self.mortal and (child := os.fork()):
            print(f"forked {child}", flush=True)
        elif self.mortal:
            time.sleep(3600)
            os._exit(0)


class Moody(Walker):
    """Ignores its seed."""

    def act(self, observation: str) -> Sequence[int]:
        return [random.SystemRandom().randrange(4)]


class Strange(Walker):
    """Leaves an object in the record of its second trial that is not JSON."""

    left: Any = 1j

    def begin_trial(self, observation: str) -> None:
        super().begin_trial(observation)
        WALL.left = [self.left] if self.trials == 2 else []


class Secretive(Strange):
    """Leaves an object there that cannot be pickled."""

    left = staticmethod(lambda: None)


class Mumbler(Walker):
    """Fails in its second trial with a text that cannot be encoded."""

    def act(self, observation: str) -> Sequence[int]:
        if self.trials == 2:
            raise ValueError("mumble \udcff")
        return super().act(observation)


class Talker(Walker):
    """Prints to the stream of the reports."""

    def act(self, observation: str) -> Sequence[int]:
        print("thinking aloud", flush=True)
        return super().act(observation)


class Answers(Walker):
    """Always gives the same answer, whether or not it is an action."""

    answer: Any = (7,)

    def act(self, observation: str) -> Sequence[int]:
        answer: Sequence[int] = self.answer
        return answer


_ALL = (
    Walker,
    Slow,
    Raiser,
    Quitter,
    Dying,
    Loser,
    Forking,
    Moody,
    Talker,
    Answers,
    Strange,
    Secretive,
    Mumbler,
)
AGENTS = {agent.__name__.lower(): agent for agent in _ALL}


def cheesebench_agents() -> Iterable[AgentSpec]:
    return [AgentSpec(name, agent) for name, agent in AGENTS.items()]


def cheesebench_families() -> Iterable[Family[Any, Any]]:
    return [CorridorFamily()]


def cells(
    models: Iterable[str], subjects: int = 3, names: Iterable[str] = ("corridor",)
) -> dict[CellPlan, Specification]:
    """Return the cells of a run."""
    protocols = [corridor(name) for name in names]
    design = find_design("cohort", subjects)
    return {
        plan_cell(p, model, "ascii_2d", design): p
        for model in models
        for p in protocols
    }


def run(
    log: RunLog,
    plan: dict[CellPlan, Specification],
    seed: int = 1,
    processes: int | None = None,
) -> list[str]:
    """Run all cells to their end and return the dump of the log."""
    with RunSession(
        log, PluginManager(), plan, seed=seed, processes=processes
    ) as session:
        session.finish()
    return list(log.dump())


def main(
    results: str, run_id: str, model: str, subjects: str, processes: str, names: str
) -> None:
    """Start a run, or continue it, and print its dump."""
    plan = cells([model], int(subjects), names.split(","))
    if (Path(results) / run_id).exists():
        log = RunLog.open(Path(results) / run_id)
    else:
        log = RunLog.create(Path(results), run_id, plan.items(), options={"seed": 1})
    with log:
        for line in run(log, plan, processes=int(processes)):
            print(line)


def key(record: TrialRecord) -> tuple[int, int]:
    """Return subject and trial."""
    return (record.subject, record.trial)


if __name__ == "__main__":
    main(*sys.argv[1:])
