from __future__ import annotations

from pathlib import Path
from types import ModuleType

from cheesebench.experiment.jobs import Compiled, Job
from cheesebench.experiment.records import CellPlan
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification


def test_only_the_last_paradigms_are_kept(stranger: ModuleType, plugins: PluginManager) -> None:
    cells: dict[CellPlan, Specification] = stranger.cells(["walker"], names=["corridor", "hall", "alley"])
    jobs = [
        Job(plan=plan, specification=specification, seed=0, subject=0, log=Path("results/run"), wants_records=False)
        for plan, specification in cells.items()
    ]
    several, all_of_them = Compiled(plugins, most=2), Compiled(plugins)
    for compiled in (several, all_of_them):
        before = [compiled.paradigm(job, cells[job.plan]) for job in jobs]
        after = [compiled.paradigm(job, cells[job.plan]) for job in reversed(jobs)][::-1]
        kept = [one is other for one, other in zip(before, after, strict=True)]
        assert kept == [compiled is all_of_them, True, True]
