"""Letters, words and reasons of cells in pytest's output."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.errors import CheeseBenchError
from cheesebench.pytest_session import cells
from cheesebench.pytest_session.outcomes import (
    Outcomes,
    _attach_verdict,
    _our_error,
    _without_traceback,
    _write_reason,
)
from cheesebench.statistics import Verdict


def outcomes(verbose: int = 0, terminal: object = None) -> Outcomes:
    plugins = {"terminalreporter": terminal}
    config = SimpleNamespace(
        option=SimpleNamespace(verbose=verbose),
        pluginmanager=SimpleNamespace(getplugin=plugins.get),
    )
    return Outcomes(cast(Any, SimpleNamespace(config=config)))


def report(outcome: str = "passed", when: str = "call", **facts: Any) -> Any:
    found = SimpleNamespace(
        when=when,
        outcome=outcome,
        passed=outcome == "passed",
        failed=outcome == "failed",
        skipped=outcome == "skipped",
        longrepr=("x.yaml", 1, "INCONCLUSIVE: too few"),
    )
    vars(found).update({f"cheesebench_{name}": fact for name, fact in facts.items()})
    return found


YELLOW = {"yellow": True}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (report(), None),
        (report(when="setup", verdict="PASS"), None),
        (report(verdict="PASS"), ("passed", ".", "PASS")),
        (report("failed", verdict="FAIL"), ("failed", "F", "FAIL")),
        (report("failed", verdict="INCONCLUSIVE"), ("failed", "F", "INCONCLUSIVE")),
        (report(verdict="FAIL"), ("forgiven", "f", ("FAIL", YELLOW))),
        (report("skipped", verdict="INCONCLUSIVE"), ("inconclusive", "?", ("INCONCLUSIVE", YELLOW))),
        (report("skipped", verdict="INCONCLUSIVE", control=True), ("controls", "c", ("CONTROL", YELLOW))),
        (report("skipped", verdict="INCONCLUSIVE", control=False), ("inconclusive", "?", ("INCONCLUSIVE", YELLOW))),
    ],
)  # fmt: skip
def test_each_verdict_has_its_letter_and_word(given: Any, status: Any) -> None:
    assert outcomes().pytest_report_teststatus(given) == status


@pytest.mark.parametrize(("verbose", "hidden"), [(0, False), (1, True), (2, False)])
def test_with_v_a_reason_is_written_in_full_below_its_line(
    verbose: int, hidden: bool
) -> None:
    lines: list[str] = []
    terminal = SimpleNamespace(ensure_newline=lambda: None, write_line=lines.append)
    hooks = outcomes(verbose, terminal)
    given = report("skipped", verdict="INCONCLUSIVE")
    hooks.pytest_report_teststatus(given)
    assert (given.longrepr[2] == "") == hidden
    for _ in range(2):
        written = hooks.pytest_runtest_logreport(given)
        next(written)
        with pytest.raises(StopIteration):
            next(written)
    assert given.longrepr == ("x.yaml", 1, "INCONCLUSIVE: too few")
    assert lines == (["    too few"] if hidden else [])


def test_a_long_reason_is_wrapped_and_without_a_terminal_none_is_written() -> None:
    lines: list[str] = []
    terminal = SimpleNamespace(ensure_newline=lambda: None, write_line=lines.append)
    config = cast(Any, outcomes(1, terminal))._run.config
    _write_reason(config, "CONTROL: " + "word-word " * 20)
    [text] = lines
    rows = text.splitlines()
    assert max(map(len, rows)) <= 80
    assert all(row.startswith("    word-word") for row in rows)
    _write_reason(cast(Any, outcomes(1))._run.config, "CONTROL: word")
    assert len(lines) == 1


def item(verdict: Verdict | None, control: str = "") -> Any:
    result = None if verdict is None else SimpleNamespace(verdict=verdict, reason="why")
    return SimpleNamespace(
        result=result,
        plan=SimpleNamespace(control=control),
        location=("x.yaml", 0, "cell"),
    )


@pytest.mark.parametrize(
    ("outcome", "control", "longrepr"),
    [
        ("passed", "", None),
        ("skipped", "", ("x.yaml", 1, "INCONCLUSIVE: why")),
        ("skipped", "blind", ("x.yaml", 1, "CONTROL: why")),
    ],
)
def test_facts_of_a_cell_go_with_its_report(
    outcome: str, control: str, longrepr: object
) -> None:
    given = report(outcome)
    before = given.longrepr
    _attach_verdict(given, item(Verdict.INCONCLUSIVE, control), unmeasured=False)
    assert (given.cheesebench_verdict, given.cheesebench_control) == (
        "INCONCLUSIVE",
        bool(control),
    )
    assert given.longrepr == (longrepr or before)
    assert not hasattr(given, "cheesebench_unmeasured")


@pytest.mark.parametrize("unmeasured", [False, True])
def test_a_setup_says_whether_the_cell_was_measured(unmeasured: bool) -> None:
    setup = report(when="setup")
    _attach_verdict(setup, item(Verdict.PASS), unmeasured=unmeasured)
    assert setup.cheesebench_unmeasured == unmeasured
    assert not hasattr(setup, "cheesebench_verdict")
    unjudged = report()
    _attach_verdict(unjudged, item(None), unmeasured=unmeasured)
    assert not hasattr(unjudged, "cheesebench_verdict")


def test_only_our_errors_have_no_traceback() -> None:
    def caught(error: Exception) -> Any:
        try:
            raise error
        except type(error):
            return SimpleNamespace(excinfo=pytest.ExceptionInfo.from_current())

    ours = caught(cells.NotMeasuredError("first\nsecond"))
    assert _our_error(ours) is ours.excinfo
    assert _our_error(caught(CheeseBenchError("odd"))) is not None
    assert _our_error(caught(ValueError("odd"))) is None
    assert _our_error(cast(Any, SimpleNamespace(excinfo=None))) is None
    shown = _without_traceback(cast(Any, ours.excinfo), item(None))
    assert shown.reprcrash.message == "first"
    assert (shown.reprcrash.path, shown.reprcrash.lineno) == ("x.yaml", 1)
    assert "second" in str(shown)
