"""The built-in executors: worker processes on this machine, threads of this process,
and tasks of a Ray cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cheesebench import Executor, ExecutorContext, ExecutorSpec, hookimpl

__all__ = ["cheesebench_executors"]

#: Options of the executor ``ray``.
RAY_OPTIONS: Mapping[str, str] = {
    "address": "of the cluster: auto, or HOST:PORT. Default: RAY_ADDRESS, else one on this machine, else a new one",
    "num_cpus": "processors that a subject takes. Default: 1",
    "num_gpus": "GPUs that a subject takes. Default: 0",
}


def _local(context: ExecutorContext) -> Executor:
    from cheesebench.plugins.executors.local import LocalExecutor

    return LocalExecutor(context)


def _threads(context: ExecutorContext) -> Executor:
    from cheesebench.plugins.executors.threads import ThreadExecutor

    return ThreadExecutor(context)


def _ray(context: ExecutorContext) -> Executor:
    from cheesebench.plugins.executors.ray_cluster import RayExecutor

    return RayExecutor(context)


@hookimpl
def cheesebench_executors() -> Iterable[ExecutorSpec]:
    return (
        ExecutorSpec("local", _local, summary="worker processes on this machine"),
        ExecutorSpec(
            "threads", _threads, summary="threads of this process", in_process=True
        ),
        ExecutorSpec(
            "ray",
            _ray,
            summary="nodes of a Ray cluster",
            elsewhere=True,
            options=RAY_OPTIONS,
        ),
    )
