"""Makes the report of each item, with a traceback only for programming errors, and
chooses its letter.
"""

from __future__ import annotations

import textwrap
from collections.abc import Generator
from typing import Any

import pytest
from _pytest.junitxml import xml_key

from cheesebench.errors import CheeseBenchError
from cheesebench.pytest_session import cells
from cheesebench.pytest_session.collection import BrokenProtocol
from cheesebench.pytest_session.run import PytestRun
from cheesebench.statistics import Verdict
from cheesebench.terminal import printable

#: The category in pytest's counts, the letter, and the word, possibly with its colour.
_Status = tuple[str, str, str | tuple[str, dict[str, bool]]]


class Outcomes:
    """The hooks that make and show the report of an item."""

    def __init__(self, run: PytestRun) -> None:
        self._run = run
        #: Text to restore to a report after pytest has written its line.
        self._blanked: tuple[str, int, str] | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the verdict to the report, and remove the traceback unless it shows a
        programming error.
        """
        if not isinstance(item, (cells.CellItem, BrokenProtocol)):
            return (yield)
        ours = _our_error(call)
        if ours is not None:
            # Only the last frame is kept, because pytest would parse the source of
            # every frame first, which takes 0.1 s per failure.
            ours.traceback = ours.traceback[-1:]
        elif call.excinfo is not None:
            # Drop pytest's own frames, because only the frames after them help the
            # author of a plugin.
            call.excinfo.traceback = call.excinfo.traceback.cut(path=cells.__file__)
        report = yield
        if ours is not None:
            report.longrepr = _without_traceback(ours, item)
        if isinstance(item, cells.CellItem):
            _attach_verdict(report, item, unmeasured=ours is not None)
        elif ours is not None:
            # These facts go to the controller of pytest-xdist, as a verdict does.
            broken = item.name.partition("[")[0], str(item.path), str(ours.value)
            report.cheesebench_broken = broken  # type: ignore[attr-defined]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Pass every report to JUnit XML before it reaches the terminal, for which
        ``_blank_reason`` takes the reason out of the report.
        """
        plugins, xml = (
            session.config.pluginmanager,
            session.config.stash.get(xml_key, None),
        )
        if xml is not None and plugins.is_registered(xml):
            plugins.register(plugins.unregister(xml))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> _Status | None:
        """Show verdicts in place of pytest's words. Inconclusive cells, controls and
        forgiven failures have categories of their own.
        """
        verdict = getattr(report, "cheesebench_verdict", None)
        if verdict is None or report.when != "call":
            return None
        if report.skipped:
            self._blank_reason(report)
            if getattr(report, "cheesebench_control", False):
                # A control tests no claim, so its result cannot be undecided.
                return "controls", "c", ("CONTROL", {"yellow": True})
            return "inconclusive", "?", (verdict, {"yellow": True})
        if report.passed and verdict == Verdict.FAIL:
            # Only the comparison with a baseline decides whether the session fails.
            return "forgiven", "f", (verdict, {"yellow": True})
        return report.outcome, "F" if report.failed else ".", verdict

    def _blank_reason(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        """With ``-v``, hide the reason for now, because pytest would cut it at the end
        of the line.
        """
        reason = report.longrepr
        is_verbose = self._run.config.option.verbose == 1
        if is_verbose and isinstance(reason, tuple) and reason[2]:
            self._blanked = reason
            report.longrepr = (*reason[:2], "")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, None, None]:
        """With ``-v``, write reasons in full."""
        yield
        if self._blanked is not None:
            report.longrepr, self._blanked = self._blanked, None
            _write_reason(self._run.config, report.longrepr[2])


def _our_error(
    call: pytest.CallInfo[None],
) -> pytest.ExceptionInfo[BaseException] | None:
    found = call.excinfo
    is_ours = found is not None and isinstance(found.value, CheeseBenchError)
    return found if is_ours else None


def _attach_verdict(
    report: pytest.TestReport, item: cells.CellItem, *, unmeasured: bool
) -> None:
    """Attach the facts that a pytest-xdist controller needs about a cell. They are
    plain attributes, which pytest-xdist passes on from the worker.
    """
    if report.when == "setup":
        report.cheesebench_unmeasured = unmeasured  # type: ignore[attr-defined]
    if report.when != "call" or item.result is None:
        return
    verdict = item.result.verdict or Verdict.INCONCLUSIVE
    report.cheesebench_verdict = verdict.value  # type: ignore[attr-defined]
    report.cheesebench_control = bool(item.plan.control)  # type: ignore[attr-defined]
    if report.skipped:
        path, _, _ = item.location
        kind = "CONTROL" if item.plan.control else "INCONCLUSIVE"
        report.longrepr = (path, 1, f"{kind}: {item.result.reason}")


def _without_traceback(
    excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item
) -> Any:
    shown = excinfo.getrepr(style="value", chain=False)
    if shown.reprcrash is not None:
        # The first line is enough for pytest's short summary and for the message in
        # JUnit XML.
        shown.reprcrash.message = str(excinfo.value).split("\n", 1)[0]
        shown.reprcrash.path, shown.reprcrash.lineno = item.location[0], 1
    return shown


def _write_reason(config: pytest.Config, reason: str) -> None:
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        terminal.ensure_newline()
        text = printable(reason.partition(": ")[2])
        indent = "    "
        filled = textwrap.fill(
            text,
            80,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        terminal.write_line(filled)
