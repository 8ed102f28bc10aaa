"""Starting and ending the run, with and without pytest-xdist."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from typing import Any, NoReturn

import pytest

from cheesebench.errors import CheeseBenchError
from cheesebench.pytest_session.items import CellItem
from cheesebench.pytest_session.one_worker import scheduler
from cheesebench.pytest_session.pipeline import refused
from cheesebench.pytest_session.progress import progress_line
from cheesebench.pytest_session.run import WORKER_INPUT, Run
from cheesebench.redaction import redact
from cheesebench.running.run import SLICE


def _interrupt(number: int, frame: object) -> NoReturn:
    """End the session as Ctrl-C does: what is finished is kept, and how to go on is said."""
    raise KeyboardInterrupt(signal.Signals(number).name)


class Running:
    """The hooks around the tests. The loop itself stays pytest's (or pytest-xdist's)."""

    def __init__(self, run: Run) -> None:
        self._run = run
        #: Tests that were reported before their turn.
        self._reported: set[pytest.Item] = set()
        #: Failures that workers of pytest-xdist have reported.
        self._failures = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Create the run before pytest-xdist starts its workers; being terminated is being interrupted."""
        if not self._run.is_worker and threading.current_thread() is threading.main_thread():
            handlers = contextlib.ExitStack()
            handlers.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _interrupt))
            self._run.config.add_cleanup(handlers.close)
        if self._run.is_controller:
            try:
                self._run.open([])
            except CheeseBenchError as error:
                raise refused(self._run.config, error) from error

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Pass the run's data to a worker."""
        workers = node.workerinput["workercount"]
        one_worker = self._run.needs_one_worker and node.config.getoption("dist") != "each"
        node.workerinput[WORKER_INPUT] = self._run.hand_over(workers, one_worker)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Give all cells to one worker if they share a budget."""
        return scheduler(config, log) if self._run.needs_one_worker else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Begin to run every selected cell; the items then wait for theirs."""
        if self._run.is_controller or session.config.option.collectonly:
            return
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            return
        items = [item for item in session.items if isinstance(item, CellItem) and not item.obstacle]
        # A shard without cells is a run, too: those who merge need not know that there are more shards than cells.
        if not items and not self._run.whole:
            return
        cells = [(item.plan, item.specification) for item in items]
        try:
            self._run.open(cells)
            self._run.start(cells)
        except CheeseBenchError as error:
            if not self._run.is_worker:
                raise refused(self._run.config, error) from error
            # A worker that dies would be an internal error; its items can say what is wrong.
            for item in items:
                item.obstacle = redact(str(error))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """With ``-x`` or ``--maxfail``, report cells as they are decided: whatever fails first ends the run."""
        if item in self._reported:
            return True
        if self._run.has_all_cells and isinstance(item, CellItem) and not item.obstacle:
            self._run.start_all()
        if not item.config.option.maxfail or not isinstance(item, CellItem) or item.obstacle:
            return None
        session = item.session
        if self._run.is_worker:
            return self._await_halt(item)
        later = [one for one in session.items[session.items.index(item) + 1 :] if isinstance(one, CellItem)]
        with progress_line(item.config, item.nodeid, self._run.tally) as line:
            while not self._run.is_over(item.plan):
                waiting = [one for one in later if one not in self._reported and not one.obstacle]
                decided = next((one for one in waiting if self._run.is_over(one.plan)), None)
                if decided is None:
                    line(self._run.progress(item.plan))
                    self._run.mention_silence()
                    time.sleep(SLICE)
                    continue
                item.config.hook.pytest_runtest_protocol(item=decided, nextitem=item)
                self._reported.add(decided)
                if session.shouldfail or session.shouldstop:
                    return True
        return None

    def _await_halt(self, item: CellItem) -> bool | None:
        """Wait for a worker's cell; end the worker without a report of it once other workers' failures end the run."""
        while not self._run.is_halted:
            if self._run.is_over(item.plan):
                return None
            self._run.mention_silence()
            time.sleep(SLICE)
        self._run.stop_sending()
        item.session.shouldstop = "another worker's failure ends the run"
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """With ``-x`` or ``--maxfail``, stop all workers of pytest-xdist, and not only the one that failed."""
        most = self._run.config.option.maxfail
        if self._run.is_controller and most and report.failed:
            self._failures += 1
            if self._failures >= most:
                self._run.halt_workers()

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Send nothing more, before anything is reported."""
        self._run.stop_sending()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Close the log."""
        if self._run.is_controller:
            self._run.call_off_halt()
        try:
            self._run.close()
        except CheeseBenchError as error:
            print(f"cheesebench: {redact(str(error))}", file=sys.stderr)
