"""The built-in executors: worker processes on this machine, threads of this process,
and tasks of a Ray cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cheesebench import ExecutorSpec, hookimpl
from cheesebench.plugins.executors.local import LocalExecutor
from cheesebench.plugins.executors.ray_cluster import RayExecutor
from cheesebench.plugins.executors.threads import ThreadExecutor

__all__ = ["cheesebench_executors"]

#: Options of the executor ``ray``.
RAY_OPTIONS: Mapping[str, str] = {
    "address": "address of the cluster: auto or HOST:PORT (default: RAY_ADDRESS, or else a cluster on this machine, or "
    "else a new one)",
    "num_cpus": "number of processors that a subject takes (default: 1)",
    "num_gpus": "number of GPUs that a subject takes (default: 0)",
}


@hookimpl
def cheesebench_executors() -> Iterable[ExecutorSpec]:
    return (
        ExecutorSpec(
            "local", LocalExecutor, summary="worker processes on this machine"
        ),
        ExecutorSpec(
            "threads",
            ThreadExecutor,
            summary="threads of this process",
            in_process=True,
        ),
        ExecutorSpec(
            "ray",
            RayExecutor,
            summary="nodes of a Ray cluster",
            elsewhere=True,
            options=RAY_OPTIONS,
        ),
    )
