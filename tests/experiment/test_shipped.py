"""The whole chain on the shipped protocols with the shipped agents:
lives, log, films.
"""

from __future__ import annotations

from pathlib import Path

from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import film
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.records import CellPlan


def shipped(plugins: PluginManager, *models: str) -> dict[CellPlan, Specification]:
    protocols = [
        with_arena(one) for one in Catalogue(plugins.protocol_directories).select()
    ]
    assert protocols
    design = find_design("smoke")
    return {
        plan_cell(
            protocol, model, "ascii_2d", design, plugins.agent(model).memory
        ): protocol
        for model in models
        for protocol in protocols
    }


def dump(path: Path, cells: dict[CellPlan, Specification], processes: int) -> list[str]:
    """Run all cells, film their trials, and return the dump."""
    plugins = PluginManager()
    with RunLog.create(
        path, f"run{processes}", cells.items(), options={"seed": 3}
    ) as log:
        with RunSession(log, plugins, cells, seed=3, processes=processes) as session:
            session.finish()
        for plan, specification in cells.items():
            paradigm, view = plugins.compile(specification), plugins.view(plan.view)
            for record in log.trials(plan):
                assert not record.missing, log.journal(plan)
                assert len(film(log, paradigm, view, record)) == record.steps + 1
        return list(log.dump())


def test_every_shipped_protocol_runs_alike_everywhere_and_can_be_filmed(
    tmp_path: Path,
) -> None:
    cells = shipped(PluginManager(), "random", "tabular-ql")
    here, elsewhere = dump(tmp_path, cells, 0), dump(tmp_path, cells, 2)
    assert here == elsewhere
    assert len(here) == sum(plan.subjects * plan.trials for plan in cells)
