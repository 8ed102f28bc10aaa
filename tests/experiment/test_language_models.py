"""The log of a run of a language model, whole: trials, calls, and the journal."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from cheesebench.chat import (
    BackendContext,
    BackendSpec,
    ChatReply,
    ChatRequest,
    ModelEntry,
    Price,
    Usage,
)
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.experiment.unfinished import is_over, left_to_run
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import CellPlan
from cheesebench.statistics import summarise_subjects, to_plain
from cheesebench.statistics.judgement import judge_set
from tests.reports.html.conftest import maze
from tests.stored import check_stored

#: What a server says in turn: walks, a look around with a note, nothing, much.
SAID = (
    "I go on.\nACTIONS: F, F, F, F",
    "LEARNINGS: the goal lies east\nACTIONS: L, R, F",
    "",
    "I wonder." * 3,
    "ACTIONS: FORWARD, FORWARD, FORWARD, FORWARD, FORWARD, FORWARD",
)


class Server:
    """A model server in this process, whose reply depends on the prompt alone."""

    def __init__(self, context: BackendContext) -> None:
        pass

    async def complete(self, request: ChatRequest) -> ChatReply:
        number = sum(map(ord, "".join(message.text for message in request.messages)))
        return ChatReply(
            text=SAID[number % len(SAID)],
            reasoning="East." if number % 2 else "",
            finish="length" if number % 4 == 3 else "stop",
            usage=Usage(prompt=100 + number % 97, completion=20, cached=60),
            model="server-1" if number % 8 else "server-2",
        )

    async def close(self) -> None:
        pass


#: What each run, day, version and machine has of its own.
OWN = (
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:[\d.]+)?(\+00:00|Z)?", "DATE"),
    (r"\b[0-9a-f]{32,64}\b", "DIGEST"),
    (r"X'[0-9A-F]*'", "BLOB"),
    (r'"(versions|git|plugins)": ?\{[^}]*\}', r'"\1": {}'),
)


def film(log: RunLog, plan: CellPlan) -> Iterator[str]:
    """Yield what the log tells of its only cell."""
    for entry in log.journal():
        yield f"{entry.kind}: {entry.text} {entry.subject}"
    yield json.dumps(to_plain(plan), sort_keys=True)
    for trial in log.trials():
        yield json.dumps(to_plain(trial), sort_keys=True)
        yield f"  events {[to_plain(one) for one in log.events(trial)]}"
    for number, call in enumerate(log.calls.of_life(plan, 0)):
        system = "" if number else call.system
        told = dataclasses.replace(call, seconds=0.0, system=system)
        yield json.dumps(to_plain(told), sort_keys=True)
    yield f"calls of the other: {len(list(log.calls.of_life(plan, 1)))}"
    for name, found in (
        ("completed", log.completed_subjects(plan)),
        ("counts", log.trial_counts()),
        ("redrawn", log.redrawn(plan)),
        ("remarks", log.remarks(plan)),
        ("causes", log.causes(plan)),
        ("resumes", log.resumes(plan)),
        ("served by", sorted(log.calls.served_by("asked", 5))),
        ("has a reply", log.calls.has_reply("asked")),
        ("calls", to_plain(dataclasses.replace(log.calls.totals(), seconds=0.0))),
        ("rows", log.verify()),
    ):
        yield f"{name}: {found}"
    found = summarise_subjects(
        log.manifest, log.plans(), log.trials_by_subject, log.calls.by_cell()
    ).cells[0]
    yield f"{found.verdict} {found.warnings} {found.agent_counts}"


@pytest.mark.parametrize("unparsed", ["noop", "end-trial", "retry-with-feedback"])
def test_a_log_is_compared_with_what_is_stored(tmp_path: Path, unparsed: str) -> None:
    plugins = PluginManager()
    backend = BackendSpec(name="server", connect=Server)
    plugins.register(
        SimpleNamespace(cheesebench_backends=lambda: [backend]), name="servers"
    )
    entry = ModelEntry(
        name="asked",
        backend="server",
        id="a",
        price=Price(prompt=1.0, cached=0.5, completion=4.0, on=date(2025, 1, 1)),
    )
    settings = {"actions": 4, "history": 2, "unparsed": unparsed}
    model = language_model(plugins, entry, settings=settings)
    little = maze(tmp_path)
    plan = plan_cell(
        little,
        "asked",
        "ascii_2d",
        find_design("cohort", 2),
        agent=model.agent.name,
        settings=model.settings,
    )
    options = {"seed": 3, "design": "cohort"}
    cells = [(plan, little)]
    with RunLog.create(tmp_path, "asked", cells, options=options) as log:
        language = LanguageModels(log, {"asked": model})
        with RunSession(
            log, plugins, cells, seed=3, processes=0, language=language
        ) as session:
            assert list(left_to_run(log, plan, None)) == [0, 1]
            session.finish()
        # A cell without a reply that named an action is over, but begun anew later.
        assert is_over(log, plan, judge_set)
        lines = list(film(log, plan))
    whole = "\n".join(lines).replace(str(tmp_path), ".")
    for own, instead in OWN:
        whole = re.sub(own, instead, whole)
    whole = re.sub(r"-?\d+\.\d{6,}(e-\d+)?", lambda one: f"{float(one[0]):.6g}", whole)
    check_stored(f"log.{unparsed}.txt", f"{whole}\n")
