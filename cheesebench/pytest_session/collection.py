"""Collection: items for the chosen protocols, or for those found under the paths of the command line."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from cheesebench.experiment.records import CellKey
from cheesebench.experiment.selection import Broken, Selected, default_protocols, named_protocols
from cheesebench.options import BY_KEY
from cheesebench.protocol import SUFFIX
from cheesebench.protocol.source import real_path
from cheesebench.pytest_plugin import ended
from cheesebench.pytest_session.items import PREFIX, BrokenProtocol, CellItem, ProtocolFile, cell_items
from cheesebench.pytest_session.run import Run


class Collection:
    """The hooks of collection; raises a CheeseBenchError if what is to be collected does not exist."""

    def __init__(self, run: Run) -> None:
        self._run = run
        config, settings = run.config, run.settings
        self._has_paths = config.args_source is pytest.Config.ArgsSource.ARGS
        self._selected: list[Selected] = []
        if settings.protocols:
            edition = config.getoption(BY_KEY["edition"].destination)
            directory = config.invocation_params.dir
            self._selected = named_protocols(run.catalogue, directory, settings.protocols, edition)
        elif not self._has_paths:
            self._selected = default_protocols(run.catalogue, settings.edition)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Say which conftest.py ends the program: pytest would call it an internal error."""
        try:
            return (yield)
        except SystemExit as error:
            raise ended(error) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Collect the chosen protocols instead of ``testpaths`` or the working directory."""
        if not isinstance(collector, pytest.Session):
            return None
        if self._has_paths and not self._selected:
            return None
        nodes: list[pytest.Item | pytest.Collector] = list(self._items(collector))
        if self._has_paths:
            nodes.extend(collector.collect())
        return pytest.CollectReport(collector.nodeid, "passed", None, nodes)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> ProtocolFile | None:
        """Collect ``*.protocol.yaml`` files."""
        if not file_path.name.endswith(SUFFIX):
            return None
        file: ProtocolFile = ProtocolFile.from_parent(parent, path=file_path)
        file.run = self._run
        return file

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Keep one item for each cell; then, when ``-k`` and ``-m`` have chosen, those of this shard."""
        self._keep_one_of_each(items)
        yield
        if self._run.settings.shard is None:
            return
        cells = [item for item in items if isinstance(item, CellItem) and not item.obstacle]
        mine = {plan.key for plan, _ in self._run.of_shard([(item.plan, item.specification) for item in cells])}
        others = [item for item in cells if item.plan.key not in mine]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]

    def _keep_one_of_each(self, items: list[pytest.Item]) -> None:
        """Keep one item for each cell; two files that claim the same name are an error of the second."""
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
        return self._run.catalogue.shadowed if self._run.config.option.verbose >= 0 else []

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        for selected in self._selected:
            if isinstance(selected, Broken):
                name = selected.path.name.removesuffix(SUFFIX)
                yield BrokenProtocol.from_parent(
                    session, name=name, nodeid=PREFIX + name, path=selected.path, text=str(selected.error)
                )
            else:
                yield from cell_items(session, self._run, selected)


def _same_file(one: CellItem, other: CellItem) -> bool:
    return real_path(Path(one.specification.path)) == real_path(Path(other.specification.path))
