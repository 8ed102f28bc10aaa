"""A server that misbehaves in every known way: no fault may count as behaviour, or as a
good number.

Each class of fault (``fuzz.hostilities``) is a model of its own, so that one session
meets many of them. Each session is compared with an undisturbed one. The first tests
take some of the classes; ``-m slow`` takes all of them.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cheesebench.experiment import calling
from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import installed_plugins
from cheesebench.statistics import summarise_subjects
from fuzz.hostile import HostileServer, Mood
from fuzz.hostilities import HOSTILITIES, Hostility
from tests.pytest_plugin.conftest import corridor

Records = Mapping[str, list[dict[str, Any]]]
#: Number of subjects, and of trials of each; every trial is one call.
SUBJECTS, TRIALS = 3, 3
#: Seconds of an attempt, for silent servers; and seconds of waiting for a busy server.
ATTEMPT, PATIENCE = 1.5, 3.0
#: Number of retries.
RETRIES = 2


def _names(*outcomes: str, slow: bool = False) -> list[str]:
    return [
        name
        for name, one in HOSTILITIES.items()
        if one.outcome in outcomes and one.slow == slow
    ]


#: Grouped, because a busy server slows all calls down, and a silent one keeps a slot.
GROUPS = {
    "again": _names("again"),
    "silent": _names("again", slow=True),
    "read": _names("read"),
    "refused": _names("refused", "account"),
    "throttled": _names("throttled"),
}
#: One fault of each kind.
SOME = (
    *(
        "status-500",
        "status-400",
        "quota-of-a-month",
        "filter-1-empty",
        "nothing-but-audio",
        "finish-timeout",
        "status-401",
        "status-of-nobody-abc",
        "error-as-200",
        "quota-as-429",
    ),
    *(
        "reset-in-body",
        "close-in-chunk",
        "noise",
        "header-endless",
        "bomb-gzip",
        "body-endless",
    ),
    *("content-number", "tool-call", "usage-absurd", "model-hostile"),
    *(
        "reply-twice",
        "reply-later",
        "reply-after-timeout",
        "choices-reversed",
        "transfer-x",
        "transfer-tab",
    ),
)


@pytest.fixture
def session(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(calling, "PATIENCE", PATIENCE)
    (project.path / "lab/short.protocol.yaml").write_text(
        corridor("short", trials=TRIALS), encoding="utf-8"
    )
    return Session(project)


class Session:
    """Runs models against the server; its attributes have the results."""

    def __init__(self, project: pytest.Pytester) -> None:
        self.project = project

    def run(self, names: Sequence[str], mood: Mood) -> HostileServer:
        """Run these models, each with its fault, and read the results."""
        silent = [name for name in names if HOSTILITIES[name].slow]
        with HostileServer(HOSTILITIES, mood) as server:
            self.result = self.project.runpytest(
                *("--model", ",".join(f"openai/{name}" for name in names), "--base-url", server.base_url),
                *("--cheese-run-id", mood, "--subjects", str(SUBJECTS), "--junitxml=junit.xml", "--exit-zero"),
                *("--cheese-timeout", str(ATTEMPT if silent else 60), "--cheese-retries", str(RETRIES)),
                "lab/short.protocol.yaml",
            )  # fmt: skip
        with RunLog.open_read_only(self.project.path / "results" / mood) as log:
            self.records: dict[str, list[dict[str, Any]]] = {}
            for line in log.dump():
                record = json.loads(line)
                self.records.setdefault(
                    record["model"].removeprefix("openai/"), []
                ).append(record)
            found = {
                plan.model.removeprefix("openai/"): log.calls.of_cell(plan)
                for plan in log.plans()
            }
            self.calls = {
                name: calls.totals.calls
                for name, calls in found.items()
                if calls is not None
            }
            summary = summarise_subjects(
                log.manifest,
                log.plans(),
                log.trials_by_subject,
                log.calls.by_cell(),
                log.causes(),
            )
            plugins = installed_plugins()
            self.surfaces = {
                name: plugins.report(name, summary, log)
                for name in ("markdown", "html")
            }
        return server


def _check(session: Session, names: Sequence[str]) -> None:
    session.run(names, "calm")
    calm = session.records
    assert {len(one) for one in calm.values()} == {SUBJECTS * TRIALS}
    assert not any(record["missing"] for one in calm.values() for record in one)

    server = session.run(names, "passing")
    for name in names:
        assert server.hit[name], name
        if HOSTILITIES[name].outcome == "refused":
            _check_refused(session.records[name], calm[name])
        else:
            assert session.records[name] == calm[name], name
            paid = [
                count for (model, _), count in server.answered.items() if model == name
            ]
            assert paid == [1] * (SUBJECTS * TRIALS), (
                f"{name}: an answer was paid twice"
            )
        assert session.calls[name] >= sum(
            not record["missing"] for record in session.records[name]
        ), name

    lasting = [name for name in names if HOSTILITIES[name].outcome != "read"]
    if not lasting:
        return
    session.run(lasting, "lasting")
    session.result.assert_outcomes(errors=len(lasting))
    for name in lasting:
        for record, undisturbed in zip(session.records[name], calm[name], strict=True):
            first = record["trial"] == 0
            assert (
                record == undisturbed
                if first
                else record["missing"] == "infrastructure"
            ), (name, record)
        _check_cause(session, HOSTILITIES[name])


def _check_refused(records: list[dict[str, Any]], calm: list[dict[str, Any]]) -> None:
    """Subjects whose request is refused stop there; all others continue, with unchanged
    answers.
    """
    stopped: set[int] = set()
    for record, undisturbed in zip(records, calm, strict=True):
        if record["missing"]:
            stopped.add(record["subject"])
            assert record["missing"] == "infrastructure", record
        else:
            assert record["subject"] not in stopped, "behaviour after a refusal"
            assert record == undisturbed
    assert stopped


def _check_cause(session: Session, one: Hostility) -> None:
    """The cause must appear with this model in the terminal, in JUnit, Markdown and
    HTML.
    """
    model = f"openai/{one.name}"
    said = rf"{one.said}\b" if one.said else "connection|malformed|timeout"
    cases = ElementTree.parse(session.project.path / "junit.xml").iter("testcase")
    (case,) = [case for case in cases if case.attrib["name"].endswith(f"-{model}]")]
    told = {
        "junit": " ".join([*case.itertext(), *(str(part.attrib) for part in case)]),
        "terminal": str(session.result.stdout)
        .partition(f"-{model}] ___")[2]
        .partition("\n____")[0],
        "markdown": session.surfaces["markdown"]
        .partition(f"\n## {model} ·")[2]
        .partition("\n## ")[0],
        "html": session.surfaces["html"]
        .partition(f'{model} <span class="where">in ascii_2d</span></h2>')[2]
        .partition("</h2>")[0],
    }
    for name, text in told.items():
        assert re.search(said, " ".join(text.split())), (one.name, name, text[:2000])


def test_some_classes_of_fault(session: Session) -> None:
    _check(session, SOME)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_every_class_of_fault(session: Session, group: str) -> None:
    _check(session, GROUPS[group])
