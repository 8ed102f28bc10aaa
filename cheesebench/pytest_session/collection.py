"""Collects the items of a session: one for each cell, and one for each protocol that
cannot be run.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import replace
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
    cells_of,
    load_shortly_named,
    selected_protocols,
)
from cheesebench.experiment.settings import Settings
from cheesebench.family import CellRequest
from cheesebench.interfaces import BaseSpecification
from cheesebench.protocol import SUFFIX
from cheesebench.pytest_options import ended
from cheesebench.pytest_session import refusals
from cheesebench.pytest_session.cells import PREFIX, CellItem, NotMeasuredError
from cheesebench.pytest_session.run import PytestRun
from cheesebench.records import CellKey, CellPlan
from cheesebench.source import real_path
from cheesebench.terminal import printable


class BrokenProtocol(pytest.Item):
    """A selected protocol that cannot be loaded, or cannot be run with a model. Its
    test is an error, which does not stop the other tests.
    """

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
    settings: Settings

    def collect(self) -> Iterator[pytest.Item]:
        protocol = load_shortly_named(self.run.catalogue, self.path)
        yield from cell_items(
            self, self.run, self.settings, protocol, f"{self.nodeid}::"
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
    settings: Settings,
    protocol: Selected,
    prefix: str = PREFIX,
) -> Iterator[pytest.Item]:
    """Yield a protocol's items. They are named ``protocol[view-model]``, or
    ``protocol[view-variant-model]`` for a variant. An edition other than the default
    one is part of the protocol's name: ``protocol@edition``.

    The items of a protocol with conditions are named ``protocol[condition-model]``. The
    model is in the name, so that ``--lf`` does not mistake one model's failure for
    another's.
    """
    if isinstance(protocol, Broken):
        name = protocol.path.name.removesuffix(SUFFIX)
        yield _broken(parent, prefix, name, protocol.path, protocol.error)
        return
    for model, request in settings.requests.items():
        plans, obstacles = _plans(protocol, request)
        for view, obstacle in obstacles.items():
            shown = "-".join(filter(None, [view, model]))
            name = printable(f"{protocol.name}[{shown}]")
            yield _broken(parent, prefix, name, Path(protocol.path), obstacle)
        for plan in plans:
            seen = "" if plan.variant.condition else plan.view
            within = [seen, str(plan.variant), model]
            name = printable(f"{protocol.name}[{'-'.join(filter(None, within))}]")
            # The id is given explicitly, because pytest 9.2 would not find an id with
            # brackets again (--lf).
            yield CellItem.from_parent(
                parent,
                name=name,
                nodeid=prefix + name,
                run=run,
                specification=protocol,
                plan=plan,
            )


def _broken(
    parent: pytest.Collector,
    prefix: str,
    name: str,
    path: Path,
    error: CheeseBenchError,
) -> BrokenProtocol:
    item: BrokenProtocol = BrokenProtocol.from_parent(
        parent, name=name, nodeid=prefix + name, path=path, text=str(error)
    )
    return item


def _plans(
    specification: BaseSpecification, request: CellRequest
) -> tuple[list[CellPlan], dict[str, CheeseBenchError]]:
    """Return the planned cells and, by view, the errors of cells that cannot be run (an
    empty name stands for all views). A view that does not suit the protocol does not
    affect the other views.
    """
    try:
        return cells_of(specification, request), {}
    except (UnsuitableError, PluginError) as obstacle:
        views = request.views
        if len(views) == 1 or isinstance(obstacle, PluginError):
            return [], {"": obstacle}
    plans: list[CellPlan] = []
    obstacles: dict[str, CheeseBenchError] = {}
    for view in views:
        try:
            plans += cells_of(specification, replace(request, views=(view,)))
        except UnsuitableError as error:
            obstacles[view] = error
    reasons = {str(error): error for error in obstacles.values()}
    if len(obstacles) == len(views) and len(reasons) == 1:
        return [], {"": next(iter(reasons.values()))}
    return plans, obstacles


class Collection:
    """The hooks of collection. The constructor raises a CheeseBenchError for a protocol
    that does not exist.
    """

    def __init__(self, run: PytestRun, settings: Settings) -> None:
        self._run = run
        self._settings = settings
        self._has_paths = run.config.args_source is pytest.Config.ArgsSource.ARGS
        #: Ids of tests without a file, as printed. They are removed from the arguments,
        #: because pytest would take them for files.
        self._ids = [one for one in run.config.args if one.startswith(PREFIX)]
        # A controller hands its arguments to its workers, so it keeps the ids in them.
        if self._ids and not run.is_controller:
            self._hide_ids(run.config)
        named = [one.removeprefix(PREFIX).partition("[")[0] for one in self._ids]
        self._selected: list[Selected] = []
        if settings.selection.names or named or not self._has_paths:
            self._selected = selected_protocols(
                run.catalogue, settings.selection, list(dict.fromkeys(named))
            )

    def _hide_ids(self, config: pytest.Config) -> None:
        config.args = [one for one in config.args if one not in self._ids]
        self._has_paths = bool(config.args)
        config.args = config.args or [str(config.invocation_params.dir)]

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """If a conftest.py exits the program, name it, because pytest would report an
        internal error. Report a wrong path or expression (``-k``) wherever people
        look.
        """
        try:
            return (yield)
        except SystemExit as error:
            raise refusals.refused(self._run.config, ended(error)) from None
        except pytest.UsageError as error:
            if refusals.is_told(error):
                raise
            said = str(error).rstrip(".")
            wrong = "path" if "not found" in said else "expression"
            said = f"{said}. Correct the {wrong}."
            raise refusals.refused(self._run.config, said) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> pytest.CollectReport | None:
        """Collect the chosen protocols, and the paths on the command line, if any,
        instead of ``testpaths`` or the working directory.
        """
        if not isinstance(collector, pytest.Session):
            return None
        if self._has_paths and not self._selected:
            return None
        nodes: list[pytest.Item | pytest.Collector] = [
            item
            for protocol in self._selected
            for item in cell_items(collector, self._run, self._settings, protocol)
        ]
        if self._has_paths:
            nodes.extend(collector.collect())
        return pytest.CollectReport(collector.nodeid, "passed", None, nodes)

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> ProtocolFile | None:
        if not file_path.name.endswith(SUFFIX):
            return None
        file: ProtocolFile = ProtocolFile.from_parent(parent, path=file_path)
        file.run, file.settings = self._run, self._settings
        return file

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Keep one item for each cell, and only the named ids, if any are named. After
        ``-k`` and ``-m`` have been applied, drop the cells of other shards.
        """
        self._keep_one_of_each(items)
        if self._ids:
            _keep_named(self._ids, config, items)
        yield
        if self._run.settings.shard is not None:
            self._keep_shard(config, items)

    def _keep_shard(self, config: pytest.Config, items: list[pytest.Item]) -> None:
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
        """Keep one item for each cell. If two files claim the same name, the second one
        gets an error.
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


def _keep_named(
    ids: list[str], config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Of the tests that come from no file, keep only those that these ids name (with or
    without the part in brackets). Raise pytest.UsageError for an id of no test.
    """
    names = {
        item: {item.nodeid, item.nodeid.partition("[")[0]}
        for item in items
        if item.nodeid.startswith(PREFIX)
    }
    known = sorted(set().union(*names.values()))
    for wrong in (one for one in ids if one not in known):
        raise refusals.refused(config, UnknownNameError("test called", wrong, known))
    others = [item for item, own in names.items() if own.isdisjoint(ids)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


def _same_file(one: CellItem, other: CellItem) -> bool:
    return real_path(Path(one.specification.path)) == real_path(
        Path(other.specification.path)
    )
