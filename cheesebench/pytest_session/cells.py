"""The tests of a session's cells. All cells start together, and each test waits for its
own cell and judges it. At the end, all cells are reported.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import CheeseBenchError
from cheesebench.interfaces import BaseSpecification
from cheesebench.pytest_session import ci, exit_status, explanations, refusals
from cheesebench.pytest_session.reporting import Reporting
from cheesebench.pytest_session.run import PytestRun, progress_line
from cheesebench.records import CellPlan
from cheesebench.redaction import redact
from cheesebench.statistics import (
    CellResult,
    Verdict,
    draw_sample,
    judge_sample,
    wording,
)
from cheesebench.statistics.run import with_causes
from cheesebench.summaries import summarise_log
from cheesebench.tally import Tally
from cheesebench.terminal import printable

#: Prefix of the ids of tests without a file. In JUnit XML, what is before the colons is
#: the class name.
PREFIX = "cheesebench::"


class NotMeasuredError(CheeseBenchError):
    """A cell could not be measured: a test error, which says nothing about the
    model.
    """


class VerdictError(CheeseBenchError, AssertionError):
    """A verdict that fails the test. Its text is the explanation.

    It is an AssertionError, because reports (such as Allure's) count any other error as
    a broken test.
    """


class CellItem(pytest.Item):
    """The test of one cell. Its setup waits for the trials and judges them, so that a
    failure there is an error of the test. Its call reports the verdict.
    """

    def __init__(
        self,
        *,
        run: PytestRun,
        specification: BaseSpecification,
        plan: CellPlan,
        **keywords: Any,
    ) -> None:
        super().__init__(**keywords)
        self.run = run
        self.specification = specification
        self.plan = plan
        self.result: CellResult | None = None
        #: Why the cell cannot be run, if that is known in advance, or an empty string.
        self.obstacle = ""
        #: The exception with which another plugin failed this test before its setup.
        self.failure: BaseException | None = None
        self.add_marker("cheesebench")
        self.extra_keyword_matches.update((plan.dimension, plan.model))

    def __repr__(self) -> str:
        construct, has_items = self.plan.construct, self.plan.items
        validity = (
            ""
            if has_items or (construct is not None and construct.status == "validated")
            else " not validated"
        )
        return f"{super().__repr__()[:-1]}{validity}{'' if has_items or self.plan.comparable else ' no reference'}>"

    def setup(self) -> None:
        if self.obstacle:
            raise NotMeasuredError(self.obstacle)
        if self.failure is not None:
            raise self.failure
        if self.run.only_shows:
            return
        with progress_line(self.config, self.nodeid, self.run.tally) as line:
            self.run.wait(self.plan, line)
        plan = self.run.as_logged(self.plan)
        result = judge_sample(plan, draw_sample(plan, self.run.trials_by_subject(plan)))
        self.result = with_causes(
            wording.with_calls(result, self.run.calls(plan)), self.run.causes(plan)
        )
        own = ci.case_properties(self.result)
        # A plugin that repeats a test sets the test up again, but each property must
        # occur once.
        names = {name for name, _ in own}
        others = [one for one in self.user_properties if one[0] not in names]
        self.user_properties[:] = [*others, *own]
        if self.result.verdict is Verdict.ERROR:
            assert self.run.log is not None
            text = explanations.missing_trials(self.run, self.result, ci.is_ci())
            if exit_status.never_acted(self.result):
                if exit_status.is_over(self.run.log, self.plan):
                    text = self._how_to_act(self.run.log.run_id)
                text = f"{self.result.reason}\n\n{text}"
            raise NotMeasuredError(printable(text))

    def _how_to_act(self, run_id: str) -> str:
        name, comparing = self.plan.protocol, self.run.comparing
        baseline = "" if comparing is None else comparing.acted(self.plan)
        assert self.result is not None
        cut_off = wording.why_unread(self.result)
        remedy = exit_status.how_to_act(
            run_id, name, baseline, in_ci=ci.is_ci(), cut_off=cut_off
        )
        return ci.plain(remedy)

    def runtest(self) -> None:
        assert self.result is not None
        verdict = self.result.verdict
        makes_claims = self.plan.claims and self.plan.comparable
        fails = (
            verdict is Verdict.INCONCLUSIVE
            and makes_claims
            and self.run.settings.inconclusive_fails
        )
        if (verdict is Verdict.FAIL and not self.run.forgives) or fails:
            if self.is_last_straw():
                # Stop sending calls now, because making a film takes time.
                self.run.stop_sending()
            raise VerdictError(
                explanations.explain(self.run, self.specification, self.result)
            )
        if self.result.is_undecided:
            pytest.skip(printable(self.result.reason))

    def is_last_straw(self) -> bool:
        """Return whether the next failure ends the session (``-x``, ``--maxfail``)."""
        most = self.config.option.maxfail
        return bool(most) and self.session.testsfailed + 1 >= most

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        return Path(self.specification.path), 0, self.name


class Cells:
    """The hooks that start all cells, and report them at the end of the session."""

    def __init__(self, run: PytestRun, reporting: Reporting) -> None:
        self._run = run
        self._reporting = reporting

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start all selected cells. Each item then waits for its own cell."""
        if not self._runs_anything(session):
            return
        run, items = self._run, _to_run(session)
        # A shard without cells is a run, too, so that ``merge`` needs no special case
        # for it.
        if not items and not run.whole:
            return
        cells = [(item.plan, item.specification) for item in items]
        try:
            run.check_comparable(cells)
            run.open(cells)
            driver = run.session(cells)
            with run.nothing_left_behind():
                driver.connect()
        except CheeseBenchError as error:
            if not run.is_worker:
                run.close()  # Nothing was run, so a resumed run is not reported again.
                raise refusals.refused(run.config, error) from error
            # An error here would kill the worker, and pytest would report an internal
            # error. The items can report it properly.
            for item in items:
                item.obstacle = redact(str(error))
            return
        if not run.is_worker:
            assert run.log is not None
            refusals.announce(run.config, run.log.directory)
            run.tally = Tally(run, [plan for plan, _ in cells], run.recorded)
            driver.start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = [item for item in session.items if isinstance(item, CellItem)]
        self._reporting.set_paths(
            {item.plan.protocol: Path(item.specification.path) for item in items}
        )

    def _runs_anything(self, session: pytest.Session) -> bool:
        option = session.config.option
        if self._run.is_controller or option.collectonly or self._run.only_shows:
            return False
        return not session.testsfailed or option.continue_on_collection_errors

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> None:
        """Judge the whole run from its log, once, and write the reports."""
        run, reporting = self._run, self._reporting
        run.stop()
        if run.is_worker:
            return
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not run.whole:
            reporting.say_nothing_selected()
            return
        if run.log is None:
            refusals.tell_interruption(run.config, run.interrupted)
            return
        with reporting.failures_said():
            reporting.say_shard()
            if run.log.plans():
                summary = summarise_log(run.log, finished_only=False)
                text = run.plugins.reporter("text").render(summary)
                reporting.compare(session, exitstatus, summary)
                reporting.write(text)
        reporting.set_exit_status(session, exitstatus)


def _to_run(session: pytest.Session) -> list[CellItem]:
    return [
        item
        for item in session.items
        if isinstance(item, CellItem) and not item.obstacle
    ]
