"""Subjects whose replies come from another program, call by call: an OpenEnv client, or
a model of Inspect.

Agent, trial loop and records are the same as in a run, so equal seeds and replies give
equal records.
"""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cheesebench.chat import ChatReply, ChatRequest, ModelEntry
from cheesebench.experiment import cells
from cheesebench.experiment.log_file import (
    plan_to_json,
    read_plan,
    trial_from_row,
    trial_to_row,
)
from cheesebench.family import Asker, CellRequest, SubjectContext, Trial
from cheesebench.interfaces import BaseSpecification
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.statistics import CellResult, judge


@dataclass(frozen=True, slots=True)
class Hosted:
    """A cell whose language model is elsewhere."""

    specification: BaseSpecification
    plan: CellPlan
    paradigm: Any
    plugins: PluginManager

    def converse(
        self, seed: int, subject: int, asker: Asker
    ) -> AsyncGenerator[Trial, None]:
        """Run one subject, and yield each finished trial. ``asker`` returns the model's
        replies.
        """
        context = SubjectContext(
            plugins=self.plugins, plan=self.plan, seed=seed, subject=subject
        )
        return self.plugins.family(self.specification).converse(
            self.paradigm, context, asker
        )


def hosted(
    protocols: Iterable[str] = (),
    *,
    edition: str | None = None,
    model: str = "hosted",
    agent: str = "llm",
    settings: Mapping[str, Any] | None = None,
    view: str = "ascii_2d",
    subjects: int | None = None,
    trials: int | None = None,
) -> list[Hosted]:
    """Return the cells that a run of ``model`` would have on ``protocols``, which are
    names, files or folders (default: the built-in protocols of the edition).

    Raise CheeseBenchError for an unknown name, a faulty protocol, or an impossible
    setting or view.
    """
    plugins = installed_plugins()
    # The backend is only a placeholder for "messages in, text out": it is never called.
    language = cells.language_model(
        plugins,
        ModelEntry(name=model, backend="openai", id=model),
        agent=agent,
        settings={
            name: value for name, value in (settings or {}).items() if value is not None
        },
    )
    cells.check_views(model, language, [plugins.view(view)])
    wanted = replace(
        cells.find_design("cohort", subjects), sequential=False, trials=trials
    )
    request = CellRequest(
        model=model, plugins=plugins, design=wanted, language=language, views=(view,)
    )
    catalogue, names, found = (
        Catalogue(plugins.protocol_directories, plugins.families),
        list(protocols),
        [],
    )
    usual = [] if names else cells.default_protocols(catalogue, edition or "default")
    chosen = (
        cells.named_protocols(catalogue, Path.cwd(), names, edition) if names else usual
    )
    for one in chosen:
        if isinstance(one, cells.Broken):
            raise one.error
        paradigm = plugins.compile(one)
        found += [
            Hosted(one, plan, paradigm, plugins)
            for plan in cells.cells_of(one, request)
        ]
    return found


def life_to_json(plan: CellPlan, records: Iterable[TrialRecord]) -> dict[str, Any]:
    """Return a subject's records with its plan, for the log of another program."""
    return {
        "plan": plan_to_json(plan),
        "trials": [trial_to_row(one) for one in records],
    }


def life_from_json(life: Mapping[str, Any]) -> tuple[CellPlan, list[TrialRecord]]:
    """Undo ``life_to_json``. Raise one of the errors in NOT_AS_WRITTEN for anything
    else.
    """
    return read_plan(life["plan"]), [trial_from_row(row) for row in life["trials"]]


def judge_lives(lives: Iterable[Mapping[str, Any]]) -> list[CellResult]:
    """Judge the cells of these lives (``life_to_json``). Subjects without a life count
    as missing.
    """
    found: dict[CellPlan, list[TrialRecord]] = {}
    for plan, records in map(life_from_json, lives):
        found.setdefault(plan, []).extend(records)
    return [judge(plan, records) for plan, records in found.items()]


@types.coroutine
def _handed_over(request: ChatRequest) -> Generator[ChatRequest, ChatReply, ChatReply]:
    return (yield request)


class Turns(Asker):
    """Runs one subject turn by turn, without an event loop. ``request`` is the pending
    call, and ``reply`` answers it.
    """

    def __init__(self, cell: Hosted, seed: int, subject: int) -> None:
        self.plan = cell.plan
        self.records: list[TrialRecord] = []
        #: The pending call; None between trials, and after the last one.
        self.request: ChatRequest | None = None
        self.over = False
        self._trials = cell.converse(seed, subject, self)
        self._step: Any = None
        self.go_on()

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Pass the call to the caller of ``go_on`` or ``reply``, and wait for its
        reply.
        """
        return await _handed_over(request)

    def go_on(self) -> None:
        """Begin the next trial if none is in progress. If no trial is left, set
        ``over``.
        """
        if self.request is None and not self.over:
            self._step = self._trials.__anext__()
            self._advance(None)

    def reply(self, text: str) -> None:
        """Answer the pending call. If this ends the trial, its record is added to
        ``records``.
        """
        self._advance(ChatReply(text=text))

    def _advance(self, reply: ChatReply | None) -> None:
        self.request = None
        try:
            self.request = self._step.send(reply)
        except StopIteration as ended:
            self.records.append(ended.value[0])
        except StopAsyncIteration:
            self.over = True
