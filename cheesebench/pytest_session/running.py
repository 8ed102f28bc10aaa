"""Starts and ends the run, with and without pytest-xdist."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from cheesebench import interrupts
from cheesebench.errors import CheeseBenchError
from cheesebench.options import BY_KEY
from cheesebench.pytest_session import refusals, resuming
from cheesebench.pytest_session.cells import PREFIX, CellItem
from cheesebench.pytest_session.run import PytestRun, progress_line
from cheesebench.redaction import redact

#: The pytest-xdist group of all cells.
SCOPE = "cheesebench"


def is_cell(nodeid: str) -> bool:
    """Return whether a test is a cell, or a protocol that cannot be run."""
    return nodeid.startswith(PREFIX) or nodeid.partition("::")[0].endswith(
        ".protocol.yaml"
    )


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler of a session whose cells share a budget, or None with
    ``--dist each``.

    The distribution that ``--dist`` asks for still applies to tests that are not cells.
    """
    from xdist.scheduler import (
        LoadFileScheduling,
        LoadGroupScheduling,
        LoadScopeScheduling,
    )

    dist = config.getoption("dist")
    if dist == "each":
        return None
    kinds = {
        "loadfile": LoadFileScheduling,
        "loadgroup": LoadGroupScheduling,
        "loadscope": LoadScopeScheduling,
    }

    class OneWorker(kinds.get(dist, LoadScopeScheduling)):  # type: ignore[misc]
        """Gives all cells to one worker at once."""

        def _split_scope(self, nodeid: str) -> str:
            if is_cell(nodeid):
                return SCOPE
            return str(super()._split_scope(nodeid)) if dist in kinds else nodeid

    return OneWorker(config, log)


class Running:
    """The hooks around the tests. The loop itself remains
    pytest's (or pytest-xdist's).
    """

    def __init__(self, run: PytestRun) -> None:
        self._run = run
        #: Tests that were reported before their turn.
        self._reported: set[pytest.Item] = set()
        #: Number of failures reported by pytest-xdist workers.
        self._failures = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """With pytest-xdist, create the run before the workers start. From here on, a
        signal raises KeyboardInterrupt, which pytest handles.
        """
        if not self._run.is_worker:
            self._run.config.add_cleanup(interrupts.install())
            interrupts.begin()
        if self._run.is_controller:
            try:
                self._run.open([])
            except CheeseBenchError as error:
                self._run.close()
                raise refusals.refused(self._run.config, error) from error
            assert self._run.log is not None
            refusals.announce(self._run.config, self._run.log.directory)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        if not self._run.is_controller:
            return
        workers = node.workerinput["workercount"]
        one_worker = (
            self._run.needs_one_worker and node.config.getoption("dist") != "each"
        )
        node.workerinput.update(self._run.hand_over(workers, one_worker))

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Give all cells to one worker if they share a budget."""
        return scheduler(config, log) if self._run.needs_one_worker else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """With ``-x`` or ``--maxfail``, report cells in the order in which they are
        decided, so that the first failure ends the run.
        """
        if item in self._reported:
            return True
        if not isinstance(item, CellItem) or item.obstacle:
            return None
        if self._run.has_all_cells:
            self._run.start_all()
        if not item.config.option.maxfail:
            return None
        try:
            if self._run.is_worker:
                return self._await_halt(item)
            return self._report_others_until_over(item)
        except pytest.fail.Exception as failure:
            # pytest-timeout may raise this exception anywhere. From here, pytest would
            # report it as an internal error.
            item.failure = failure
            return None

    def _report_others_until_over(self, item: CellItem) -> bool | None:
        """Report cells that are decided before this one. Return True if one of them
        ends the run, and None otherwise.
        """
        session = item.session
        later = [
            one
            for one in session.items[session.items.index(item) + 1 :]
            if isinstance(one, CellItem) and not one.obstacle
        ]
        with progress_line(item.config, item.nodeid, self._run.tally) as line:
            while not self._run.is_over(item.plan):
                waiting = (one for one in later if one not in self._reported)
                decided = next(
                    (one for one in waiting if self._run.is_over(one.plan)), None
                )
                if decided is None:
                    line(self._run.progress(item.plan))
                    self._run.pause()
                    continue
                item.config.hook.pytest_runtest_protocol(item=decided, nextitem=item)
                self._reported.add(decided)
                if session.shouldfail or session.shouldstop:
                    return True
        return None

    def _await_halt(self, item: CellItem) -> bool | None:
        """Wait for a worker's cell, and return None. If failures in other workers end
        the run, end this worker without a report, and return True.
        """
        while not self._run.is_halted:
            if self._run.is_over(item.plan):
                return None
            self._run.pause()
        self._run.stop_sending()
        item.session.shouldstop = "another worker's failure ends the run"
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """With ``-x`` or ``--maxfail``, stop all pytest-xdist workers, not only the
        worker with the failure.
        """
        most = self._run.config.option.maxfail
        if self._run.is_controller and most and report.failed:
            self._failures += 1
            if self._failures >= most:
                self._run.halt_workers()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Stop sending calls before anything is reported."""
        if not self._run.is_worker:
            self._run.interrupted = str(excinfo.value) or "SIGINT"
            interrupts.end(self._how_to_go_on())
        self._run.stop_sending()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """From here on, finish the reports even if signals arrive."""
        if not self._run.is_worker:
            interrupts.end(self._how_to_go_on())

    def _how_to_go_on(self) -> str:
        config, log = self._run.config, self._run.log
        # Before the log is opened, the option names the run to resume.
        resumed = config.getoption(BY_KEY["resume"].destination)
        run_id = resumed if log is None else log.run_id
        if run_id is None:
            return interrupts.NOTHING_RUN
        return f"cheesebench: interrupted. To continue: {resuming.resume_command(config, run_id)}"

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        if self._run.is_controller:
            self._run.call_off_halt()
        told = (
            not self._run.interrupted
            or self._run.told_how_to_go_on
            or self._run.is_complete
        )
        last_words = "" if told else self._how_to_go_on()
        try:
            self._run.close()
        except CheeseBenchError as error:
            print(f"cheesebench: {redact(str(error))}", file=sys.stderr)
        if last_words:
            print(last_words, file=sys.stderr, flush=True)
        if not self._run.is_worker:
            interrupts.over()
