"""Asks each model the first questions of a run in advance (``cheesebench plan --ask``),
and measures the length and speed of its answers, and whether they name actions. It also
finds the next requests of a run.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from cheesebench.chat import ChatReply, ChatRequest, ServerFacts
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.calling import SubjectStoppedError
from cheesebench.experiment.language_models import (
    CheckedConnection,
    Question,
    conversation,
    reached,
    run_blocking,
)
from cheesebench.experiment.log import digest
from cheesebench.experiment.replay import recorded_paradigm
from cheesebench.family import Asker, LanguageModel, SubjectContext
from cheesebench.interfaces import PictureView
from cheesebench.planning import size_of
from cheesebench.planning.earlier import DENSITY, Manner

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import BaseSpecification, Paradigm
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan

    Cell = tuple[CellPlan, BaseSpecification]

#: Number of questions to each model, shared among its cells. Every cell that makes
#: calls puts at least one. It also limits the questions in flight to a server that does
#: not say how many it can take.
QUESTIONS = 6
#: Timeout for one answer, in seconds.
TIMEOUT = 300.0


def first_answers(
    plugins: PluginManager,
    cells: Sequence[Cell],
    models: Mapping[str, LanguageModel],
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Manner]:
    """Put the first questions of each cell to its model, and return the manner of the
    answers by model. Raise UnreachableModelError for a model that does not answer, and
    CheeseBenchError if a model's cells ask nothing.
    """
    with reached(models, progress) as (connected, directory):
        return {
            name: run_blocking(
                _ask(
                    plugins,
                    [one for one in cells if one[0].model == name],
                    model,
                    directory,
                )
            )
            for name, model in connected.items()
        }


@dataclass(slots=True)
class _Listener:
    """Answers a subject's requests from the log (``family.Asker``). Keeps the first
    request that has no answer there, and stops the subject. Also stops a subject whose
    request differs from the log, or failed there.
    """

    log: RunLog
    plan: CellPlan
    subject: int
    heard: Question | None = None
    _trial: int = -1
    _call: int = 0

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        self._call = self._call + 1 if trial == self._trial else 0
        self._trial = trial
        known = self.log.calls.find(self.plan, self.subject, trial, self._call)
        if known is None:
            self.heard = Question(request, self.plan, self.subject, trial, self._call)
        elif known.fault is None and known.digest == digest(request):
            return known.reply
        raise SubjectStoppedError("it has said what it asks next")

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        """Do nothing, because the actions in replies do not matter here."""


def next_requests(
    plugins: PluginManager,
    log: RunLog,
    next_subjects: Sequence[tuple[Cell, int]],
    seed: int,
) -> dict[str, list[Question]]:
    """Return the next requests of a run by model: one for each agent with its settings,
    and with a picture if one of the views has pictures.

    Each request is what a cell's next subject will ask. The list of a model that has
    answered before may be empty.
    """
    kinds: dict[tuple[str, str, str], tuple[Cell, int]] = {}
    pictures_last = sorted(
        next_subjects,
        key=lambda one: isinstance(plugins.views.get(one[0][0].view), PictureView),
    )
    for (plan, specification), subject in pictures_last:
        kind = plan.model, plan.agent, repr(plan.settings)
        kinds[kind] = (plan, specification), subject
    found: dict[str, list[Question]] = {}
    for (plan, _), subject in kinds.values():
        listener = _Listener(log, plan, subject)
        # Faults of an agent or a paradigm are reported when the trials run.
        with suppress(Exception):
            paradigm = recorded_paradigm(log, plugins, plan)
            run_blocking(_begin(plugins, plan, paradigm, listener, seed, subject))
        if listener.heard is not None:
            found.setdefault(plan.model, []).append(listener.heard)
        elif log.calls.count(plan, subject):
            found.setdefault(plan.model, [])
    return found


async def _ask(
    plugins: PluginManager, cells: Sequence[Cell], model: LanguageModel, directory: Path
) -> Manner:
    most = math.ceil(QUESTIONS / len(cells))
    return _summed(*await put_questions(plugins, cells, model, directory, most))


async def put_questions(
    plugins: PluginManager,
    cells: Sequence[Cell],
    model: LanguageModel,
    directory: Path,
    most: int,
) -> tuple[list[Questioner], ServerFacts]:
    """Put the first ``most`` questions of each cell to a model. Return the exchanges,
    and what the server says about itself.
    """
    async with conversation(model, directory, QUESTIONS) as connection:
        facts = await connection.facts()
        gate = asyncio.Semaphore(facts.slots or QUESTIONS)
        askers = [Questioner(plan, connection, gate, most) for plan, _ in cells]
        subjects = zip(cells, askers, strict=True)
        await asyncio.gather(
            *(
                _begin(plugins, plan, plugins.compile(specification), asker, seed=0)
                for (plan, specification), asker in subjects
            )
        )
    return askers, facts


async def _begin(
    plugins: PluginManager,
    plan: CellPlan,
    paradigm: Paradigm,
    asker: Asker,
    seed: int,
    subject: int = 0,
) -> None:
    family = plugins.family(paradigm.specification)
    context = SubjectContext(plugins=plugins, plan=plan, seed=seed, subject=subject)
    with suppress(SubjectStoppedError):
        async for _ in family.converse(paradigm, context, asker):
            pass


@dataclass(slots=True)
class Questioner:
    """Puts one subject's questions to the model until there are enough answers
    (``family.Asker``).
    """

    plan: CellPlan
    connection: CheckedConnection
    gate: asyncio.Semaphore
    most: int
    seconds: float = 0.0
    asked: list[tuple[ChatRequest, ChatReply]] = field(default_factory=list)
    #: Number of replies without an action.
    silent: int = 0
    #: Number of actions in each reply that has any.
    named: list[int] = field(default_factory=list)
    _counted: Mapping[str, int] = field(default_factory=dict)

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Return the reply. Stop the subject when enough questions have been asked."""
        if len(self.asked) >= self.most:
            raise SubjectStoppedError("all questions have been asked")
        async with self.gate:
            began = time.monotonic()
            reply = await self.connection.complete(replace(request, timeout=TIMEOUT))
            self.seconds += time.monotonic() - began
        self.asked.append((request, reply))
        return reply

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        """Record whether the reply named an action, and how many."""
        counted = dict(tally())
        before = (
            self._counted
            if counted.get("calls", 0) > self._counted.get("calls", 0)
            else {}
        )
        silent = counted.get("unparsed", 0) > before.get("unparsed", 0)
        self.silent += silent
        if actions and not silent:
            self.named.append(len(actions))
        self._counted = counted


def _summed(askers: Sequence[Questioner], facts: ServerFacts) -> Manner:
    exchanged = list(chain.from_iterable(asker.asked for asker in askers))
    if not exchanged:
        raise CheeseBenchError(
            "Nothing was asked, because these cells make no calls. Remove --ask."
        )
    number = len(exchanged)
    side_by_side = min(facts.slots or QUESTIONS, len(askers))
    named = list(chain.from_iterable(asker.named for asker in askers))
    replies = [_tokens_of(reply) for _, reply in exchanged]
    return Manner(
        replies=number,
        reply=sum(replies) / number,
        acts=1 - sum(asker.silent for asker in askers) / number,
        actions=fmean(named) if named else None,
        density=_density(exchanged),
        seconds=sum(asker.seconds for asker in askers) / number / side_by_side,
        asked=True,
        context=facts.context,
    )


def _tokens_of(reply: ChatReply) -> float:
    """Return the number of tokens of a reply. It is estimated if the server does not
    count them.
    """
    return reply.usage.completion or len(reply.text.encode()) * DENSITY


def _density(exchanged: Sequence[tuple[ChatRequest, ChatReply]]) -> float:
    """Return the number of tokens per byte of text in the prompts without pictures, or
    ``DENSITY`` if the server does not count tokens.
    """
    tokens, size = 0, 0.0
    for request, reply in exchanged:
        length, pictures = size_of(request.messages)
        if reply.usage.prompt and not pictures:
            tokens += reply.usage.prompt
            size += length
    return tokens / size if size else DENSITY
