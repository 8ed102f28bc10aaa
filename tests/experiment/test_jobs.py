from __future__ import annotations

from types import ModuleType

from cheesebench.executor import Job
from cheesebench.experiment.subjects import ParadigmCache
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification
from cheesebench.records import CellPlan


def test_only_the_last_paradigms_are_kept(
    stranger: ModuleType, plugins: PluginManager
) -> None:
    cells: dict[CellPlan, Specification] = stranger.cells(
        ["walker"], names=["corridor", "hall", "alley"]
    )
    jobs = [
        Job(plan=plan, specification=specification, seed=0, subject=0)
        for plan, specification in cells.items()
    ]
    several, all_of_them = ParadigmCache(plugins, most=2), ParadigmCache(plugins)
    for compiled in (several, all_of_them):
        before = [compiled.paradigm(job) for job in jobs]
        after = [compiled.paradigm(job) for job in reversed(jobs)][::-1]
        kept = [one is other for one, other in zip(before, after, strict=True)]
        assert kept == [compiled is all_of_them, True, True]
