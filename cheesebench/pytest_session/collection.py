"""The items of a session, one for each model, protocol and view: collected, awaited,
and explained when they fail.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import (
    CheeseBenchError,
    PluginError,
    UnknownNameError,
    UnsuitableError,
)
from cheesebench.experiment.cells import (
    Broken,
    Selected,
    default_protocols,
    load_shortly_named,
    named_protocols,
)
from cheesebench.interfaces import BaseSpecification
from cheesebench.options import BY_KEY
from cheesebench.protocol import SUFFIX
from cheesebench.pytest_options import ended
from cheesebench.pytest_session.ci import case_properties, refused
from cheesebench.pytest_session.run import PytestRun, progress_line
from cheesebench.records import CellKey, CellPlan, TrialRecord
from cheesebench.source import real_path
from cheesebench.statistics import CellResult, Verdict, draw_sample, judge_sample
from cheesebench.statistics.run import with_causes
from cheesebench.statistics.sample import enter_estimand
from cheesebench.statistics.wording import (
    BETTER,
    NEVER_ACTED,
    amount,
    gap,
    margin,
    number,
    percent,
    plural,
    with_calls,
)
from cheesebench.terminal import printable


def explain(
    run: PytestRun, specification: BaseSpecification, result: CellResult
) -> str:
    """Return what failed and by how much, in a line; with ``-v`` or ``--film``, all
    numbers and a failed trial.
    """
    assert run.log is not None
    if run.config.option.verbose <= 0 and not run.settings.values["film"]:
        text = printable(f"{result.verdict}: {_short(result)}.")
        columns = min(shutil.get_terminal_size().columns, 120)
        return textwrap.fill(
            text,
            columns,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    width = max(map(len, (name for name, _ in _numbers(result))))
    table = "\n".join(f"  {name:<{width}}  {value}" for name, value in _numbers(result))
    parts = [f"{result.verdict}: {result.reason}", table]
    if (failed := _first_failed(run, result)) is not None:
        family = run.plugins.family(specification)
        parts.append(family.explain(run.log, run.plugins, specification, failed))
    return printable("\n\n".join(parts))


def _first_failed(run: PytestRun, result: CellResult) -> TrialRecord | None:
    """Return the first failed trial that counts towards the rate; None for a
    measure.
    """
    if result.plan.measured is not None:
        return None
    judged = chain.from_iterable(
        enter_estimand(result.plan.estimand, life)
        for life in run.trials_by_subject(result.plan)
    )
    return next((record for record in judged if record.success is False), None)


def _short(result: CellResult) -> str:
    plan, reference = result.plan, result.plan.reference
    parts = []
    if result.judged is not None:
        parts.append(f"{result.judged.measure} {number(result.judged.mean)}")
    elif result.rate is not None:
        parts.append(f"rate {percent(result.rate)}")
    if plan.against == "chance" and plan.chance is not None:
        parts.append(f"chance {percent(plan.chance)}")
    elif reference is not None:
        parts.append(f"rodent {amount(plan, reference.value)}")
    if (
        result.difference is not None
        and result.difference_low is not None
        and result.difference_high is not None
    ):
        low, high = gap(plan, result.difference_low), gap(plan, result.difference_high)
        parts.append(f"difference {gap(plan, result.difference)} ({low} to {high})")
        parts.append(f"margin {margin(plan)}")
    return ", ".join(parts) or result.reason.rstrip(".")


def missing_trials(run: PytestRun, result: CellResult) -> str:
    """Return how many trials could not be run, why, and how to continue."""
    assert run.log is not None
    marks = [
        bool(record.missing)
        for record in chain.from_iterable(run.trials_by_subject(result.plan))
    ]
    causes = [entry.text.rstrip() for entry in run.log.journal(result.plan, "error")]
    parts = [
        f"{plural(sum(marks), 'trial')} of {len(marks)} could not be run. This says nothing about the model.",
        *causes[-1:],
        f"Fix the cause, then run the rest with --resume {run.log.run_id}.",
    ]
    return "\n\n".join(parts)


def _numbers(result: CellResult) -> list[tuple[str, str]]:
    plan, reference = result.plan, result.plan.reference
    rows = [
        ("model", plan.model),
        ("protocol", f"{plan.title} ({plan.protocol}, {plan.sha256[:8]})"),
        ("view", plan.view),
        ("n", result.n_text),
    ]
    unit = " points" if plan.measured is None else ""
    if (found := result.judged) is not None:
        limits = (
            ""
            if found.interval is None
            else ", 95 % interval {} to {}".format(*map(number, found.interval))
        )
        rows.append(
            (found.measure, f"{number(found.mean)}{limits} ({BETTER[found.better]})")
        )
    if result.rate is not None and result.interval is not None:
        low, high = result.interval
        rows.append(
            (
                "rate",
                f"{percent(result.rate)}, 95 % interval {percent(low)} to {percent(high)}",
            )
        )
    if reference is not None:
        origin = ", ".join(
            filter(None, (reference.species, reference.source, reference.status))
        )
        shown = f"{amount(plan, reference.value)} ({textwrap.shorten(origin, 100, placeholder=' ...')})"
        rows.append(("reference", shown))
    rows.append(("margin", f"{gap(plan, plan.margin).lstrip('+')}{unit}"))
    if (
        result.difference is not None
        and result.difference_low is not None
        and result.difference_high is not None
    ):
        low, high = result.difference_low, result.difference_high
        rows.append(
            (
                "difference",
                f"{gap(plan, result.difference)}{unit}, one-sided 5 % bounds {gap(plan, low)} and {gap(plan, high)}",
            )
        )
    return rows


#: Prefix of tests without a file; in JUnit XML it is the class name.
PREFIX = "cheesebench::"


class NotMeasuredError(CheeseBenchError):
    """A cell could not be measured: a test error, which says nothing about the
    model.
    """


class VerdictError(CheeseBenchError, AssertionError):
    """A verdict that fails the test; its text is the explanation.

    An AssertionError, because reports (Allure's) take any other for a breakdown.
    """


def shows_only(option: Any) -> bool:
    """Return whether pytest only shows what would be done (``--setup-plan``,
    ``--setup-only``): then no model is asked.
    """
    return bool(option.setuponly or option.setupplan)


class CellItem(pytest.Item):
    """One cell: its trials are waited for in ``setup``, where failing is an error, and
    judged in the call.
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
        #: Why it cannot be run, if known in advance.
        self.obstacle = ""
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
        if shows_only(self.config.option):
            return
        with progress_line(self.config, self.nodeid, self.run.tally) as line:
            self.run.wait(self.plan, line)
        plan = self.run.as_logged(self.plan)
        result = judge_sample(plan, draw_sample(plan, self.run.trials_by_subject(plan)))
        self.result = with_causes(
            with_calls(result, self.run.calls(plan)), self.run.causes(plan)
        )
        own = case_properties(self.result)
        # A plugin that repeats a test sets it up again: each property stands once.
        names = {name for name, _ in own}
        others = [one for one in self.user_properties if one[0] not in names]
        self.user_properties[:] = [*others, *own]
        if self.result.verdict is Verdict.ERROR:
            assert self.run.log is not None
            text = missing_trials(self.run, self.result)
            if self.result.reason.startswith(NEVER_ACTED):
                show = f"cheesebench show {self.run.log.run_id} --call 1"
                remedy = "Another --prompt or a larger model may name actions."
                text = f"{self.result.reason}\n\nRead a reply ({show}). {remedy}"
            raise NotMeasuredError(printable(text))

    def runtest(self) -> None:
        assert self.result is not None
        verdict = self.result.verdict
        makes_claims = self.plan.claims and self.plan.comparable
        fails = (
            verdict is Verdict.INCONCLUSIVE
            and makes_claims
            and self.run.settings.inconclusive_fails
        )
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
        return Path(self.specification.path), 0, self.name


class BrokenProtocol(pytest.Item):
    """A selected protocol that cannot be loaded: a test error, while the others run."""

    def __init__(self, *, text: str, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._text = text

    def setup(self) -> None:
        raise NotMeasuredError(self._text)

    def runtest(self) -> None:
        """Never reached."""

    def reportinfo(self) -> tuple[os.PathLike[str], None, str]:
        return self.path, None, self.name


class ProtocolFile(pytest.File):
    """A ``*.protocol.yaml`` file among the paths of the command line."""

    run: PytestRun

    def collect(self) -> Iterator[pytest.Item]:
        yield from cell_items(
            self,
            self.run,
            load_shortly_named(self.run.catalogue, self.path),
            f"{self.nodeid}::",
        )

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        if isinstance(excinfo.value, CheeseBenchError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


def cell_items(
    parent: pytest.Collector,
    run: PytestRun,
    specification: BaseSpecification,
    prefix: str = PREFIX,
) -> Iterator[pytest.Item]:
    """Yield a protocol's items, named ``protocol[view-model]``, with ``@edition``
    unless it is the default one.

    Those of a protocol with conditions are named ``protocol[condition-model]``. The
    model is always in the name: a failure of one model is never taken for that of
    another (``--lf``).
    """
    settings = run.settings
    for model in settings.models:
        plans, obstacles = _plans(run, specification, model)
        for view, obstacle in obstacles.items():
            shown = "-".join(filter(None, [view, model]))
            name = printable(f"{specification.name}[{shown}]")
            path = Path(specification.path)
            yield BrokenProtocol.from_parent(
                parent, name=name, nodeid=prefix + name, path=path, text=str(obstacle)
            )
        for plan in plans:
            seen = "" if plan.variant.condition else plan.view
            within = [seen, str(plan.variant), model]
            name = printable(f"{specification.name}[{'-'.join(filter(None, within))}]")
            # The id is given, because pytest 9.2 would not find one with brackets again
            # (--lf).
            yield CellItem.from_parent(
                parent,
                name=name,
                nodeid=prefix + name,
                run=run,
                specification=specification,
                plan=plan,
            )


def _plans(
    run: PytestRun, specification: BaseSpecification, model: str
) -> tuple[list[CellPlan], dict[str, CheeseBenchError]]:
    """Return the planned cells, and why others cannot be run, by view (empty for all
    views): a view that does not suit the protocol takes no other one with it.
    """
    try:
        return run.plans(specification, model), {}
    except (UnsuitableError, PluginError) as obstacle:
        views = run.settings.views
        if len(views) == 1 or isinstance(obstacle, PluginError):
            return [], {"": obstacle}
    plans: list[CellPlan] = []
    obstacles: dict[str, CheeseBenchError] = {}
    for view in views:
        try:
            plans += run.plans(specification, model, (view,))
        except UnsuitableError as error:
            obstacles[view] = error
    reasons = {str(error): error for error in obstacles.values()}
    if len(obstacles) == len(views) and len(reasons) == 1:
        return [], {"": next(iter(reasons.values()))}
    return plans, obstacles


class Collection:
    """The hooks of collection; raises a CheeseBenchError if what is to be collected
    does not exist.
    """

    def __init__(self, run: PytestRun) -> None:
        self._run = run
        config, settings = run.config, run.settings
        self._has_paths = config.args_source is pytest.Config.ArgsSource.ARGS
        #: Ids of tests without a file, as printed: pytest would look for files.
        self._ids = [one for one in config.args if one.startswith(PREFIX)]
        if self._ids and not run.is_controller:  # whose workers are given its arguments
            config.args = [one for one in config.args if one not in self._ids]
            self._has_paths = bool(config.args)
            config.args = config.args or [str(config.invocation_params.dir)]
        edition = config.getoption(BY_KEY["edition"].destination)
        names = settings.protocols or [
            one.removeprefix(PREFIX).partition("[")[0] for one in self._ids
        ]
        self._selected: list[Selected] = []
        if names:
            self._selected = named_protocols(
                run.catalogue,
                config.invocation_params.dir,
                list(dict.fromkeys(names)),
                edition,
            )
        elif not self._has_paths:
            self._selected = default_protocols(run.catalogue, settings.edition)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Name the conftest.py that exits the program: pytest would report an internal
        error.
        """
        try:
            return (yield)
        except SystemExit as error:
            raise ended(error) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> pytest.CollectReport | None:
        """Collect the chosen protocols instead of ``testpaths`` or the working
        directory.
        """
        if not isinstance(collector, pytest.Session):
            return None
        if self._has_paths and not self._selected:
            return None
        nodes: list[pytest.Item | pytest.Collector] = list(self._items(collector))
        if self._has_paths:
            nodes.extend(collector.collect())
        return pytest.CollectReport(collector.nodeid, "passed", None, nodes)

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> ProtocolFile | None:
        if not file_path.name.endswith(SUFFIX):
            return None
        file: ProtocolFile = ProtocolFile.from_parent(parent, path=file_path)
        file.run = self._run
        return file

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Keep one item for each cell; then, when ``-k`` and ``-m`` have chosen, those
        of this shard.
        """
        self._keep_one_of_each(items)
        if self._ids:
            _keep_named(self._ids, config, items)
        yield
        if self._run.settings.shard is None:
            return
        cells = [
            item for item in items if isinstance(item, CellItem) and not item.obstacle
        ]
        mine = {
            plan.key
            for plan, _ in self._run.of_shard(
                [(item.plan, item.specification) for item in cells]
            )
        }
        others = [item for item in cells if item.plan.key not in mine]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]

    def _keep_one_of_each(self, items: list[pytest.Item]) -> None:
        """Keep one item for each cell; two files that claim the same name are an error
        of the second.
        """
        first: dict[CellKey, CellItem] = {}
        kept: list[pytest.Item] = []
        for item in items:
            if isinstance(item, CellItem):
                other = first.setdefault(item.plan.key, item)
                if other is not item and _same_file(other, item):
                    continue
                if other is not item:
                    item.obstacle = (
                        f"{item.specification.path}: the protocol {item.plan.protocol} is already run from "
                        f"{other.specification.path}. Change 'paradigm' or 'edition' in one of them."
                    )
            kept.append(item)
        items[:] = kept

    def pytest_report_collectionfinish(self) -> list[str]:
        """Report files that shadow others, unless pytest is run with ``-q``."""
        return (
            self._run.catalogue.shadowed if self._run.config.option.verbose >= 0 else []
        )

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        for selected in self._selected:
            if isinstance(selected, Broken):
                name = selected.path.name.removesuffix(SUFFIX)
                yield BrokenProtocol.from_parent(
                    session,
                    name=name,
                    nodeid=PREFIX + name,
                    path=selected.path,
                    text=str(selected.error),
                )
            else:
                yield from cell_items(session, self._run, selected)


def _keep_named(
    ids: list[str], config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Keep the tests that were named by their ids (with or without what is in
    brackets), and those of files.
    """
    names = {
        item: {item.nodeid, item.nodeid.partition("[")[0]}
        for item in items
        if item.nodeid.startswith(PREFIX)
    }
    known = sorted(set().union(*names.values()))
    for wrong in (one for one in ids if one not in known):
        raise refused(config, UnknownNameError("test called", wrong, known))
    others = [item for item, own in names.items() if own.isdisjoint(ids)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


def _same_file(one: CellItem, other: CellItem) -> bool:
    return real_path(Path(one.specification.path)) == real_path(
        Path(other.specification.path)
    )
