"""The pytest items: one for each model, protocol and view."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import CheeseBenchError, PluginError, UnsuitableError
from cheesebench.experiment.records import CellPlan
from cheesebench.experiment.selection import load_shortly_named
from cheesebench.film import printable
from cheesebench.junit import case_properties
from cheesebench.protocol import BaseSpecification
from cheesebench.pytest_session.explanation import explain, missing_trials
from cheesebench.pytest_session.progress import progress_line
from cheesebench.pytest_session.run import Run
from cheesebench.statistics import CellResult, Verdict, draw_sample, judge_sample
from cheesebench.statistics.run import with_causes
from cheesebench.statistics.wording import with_calls

#: What stands before a test that is in no file; in JUnit XML it is the name of the class.
PREFIX = "cheesebench::"


class NotMeasuredError(CheeseBenchError):
    """A cell could not be measured: a test error, which says nothing about the model."""


class VerdictError(CheeseBenchError):
    """A verdict that fails the test; its text is the explanation."""


class CellItem(pytest.Item):
    """One cell: its trials are waited for in ``setup``, where failing is an error, and judged in the call."""

    def __init__(self, *, run: Run, specification: BaseSpecification, plan: CellPlan, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.run = run
        self.specification = specification
        self.plan = plan
        self.result: CellResult | None = None
        #: Why it cannot be run, if known in advance.
        self.obstacle = ""
        self.add_marker("cheesebench")
        self.extra_keyword_matches.update((plan.dimension, plan.model))

    def setup(self) -> None:
        """Wait for the trials; NotMeasuredError if any could not be run."""
        if self.obstacle:
            raise NotMeasuredError(self.obstacle)
        with progress_line(self.config, self.nodeid, self.run.tally) as line:
            self.run.wait(self.plan, line)
        plan = self.run.as_logged(self.plan)
        result = judge_sample(plan, draw_sample(plan, self.run.trials_by_subject(plan)))
        self.result = with_causes(with_calls(result, self.run.calls(plan)), self.run.causes(plan))
        self.user_properties.extend(case_properties(self.result))
        if self.result.verdict is Verdict.ERROR:
            raise NotMeasuredError(printable(missing_trials(self.run, self.result)))

    def runtest(self) -> None:
        """Turn the verdict into an outcome."""
        assert self.result is not None
        verdict = self.result.verdict
        makes_claims = self.plan.claims and self.plan.comparable
        fails = verdict is Verdict.INCONCLUSIVE and makes_claims and self.run.settings.inconclusive_fails
        if verdict is Verdict.FAIL or fails:
            if self.is_last_straw():
                self.run.stop_sending()  # before a film is made, which takes time
            raise VerdictError(explain(self.run, self.specification, self.result))
        if verdict is Verdict.INCONCLUSIVE:
            pytest.skip(printable(self.result.reason))

    def is_last_straw(self) -> bool:
        """Return whether one more failure ends the session (``-x``, ``--maxfail``)."""
        most = self.config.option.maxfail
        return bool(most) and self.session.testsfailed + 1 >= most

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        """Return the protocol file as the place of the test."""
        return Path(self.specification.path), 0, self.name


class BrokenProtocol(pytest.Item):
    """A selected protocol that cannot be loaded: a test error, while the others run."""

    def __init__(self, *, text: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._text = text

    def setup(self) -> None:
        """Raise the diagnostics."""
        raise NotMeasuredError(self._text)

    def runtest(self) -> None:
        """Never reached."""

    def reportinfo(self) -> tuple[os.PathLike[str], None, str]:
        """Return the protocol file as the place of the test."""
        return self.path, None, self.name


class ProtocolFile(pytest.File):
    """A ``*.protocol.yaml`` file among the paths of the command line."""

    run: Run

    def collect(self) -> Iterator[pytest.Item]:
        """Return one item for each model and view."""
        yield from cell_items(self, self.run, load_shortly_named(self.run.catalogue, self.path), f"{self.nodeid}::")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the diagnostics without a traceback."""
        if isinstance(excinfo.value, CheeseBenchError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


def cell_items(
    parent: pytest.Collector, run: Run, specification: BaseSpecification, prefix: str = PREFIX
) -> Iterator[pytest.Item]:
    """Yield a protocol's items, named ``protocol[view-model]``, with ``@edition`` where it is not the default one.

    Those of a protocol that is told apart by conditions are named ``protocol[condition-model]``. The model is always in
    the name: a failure of one model is never taken for that of another (``--lf``).
    """
    settings = run.settings
    for model in settings.models:
        try:
            plans = list(run.plans(specification, model))
        except (UnsuitableError, PluginError) as obstacle:
            name = printable(f"{specification.name}[{model}]")
            path = Path(specification.path)
            yield BrokenProtocol.from_parent(parent, name=name, nodeid=prefix + name, path=path, text=str(obstacle))
            continue
        for plan in plans:
            seen = "" if plan.variant.condition else plan.view
            within = [seen, str(plan.variant), model]
            name = printable(f"{specification.name}[{'-'.join(filter(None, within))}]")
            # The id is given, because pytest 9.2 would not find one with brackets again (--lf).
            yield CellItem.from_parent(
                parent, name=name, nodeid=prefix + name, run=run, specification=specification, plan=plan
            )
