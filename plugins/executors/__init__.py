"""The built-in executors: worker processes on this machine, and threads of this process."""

from __future__ import annotations

from collections.abc import Iterable

from cheesebench import Executor, ExecutorContext, ExecutorSpec, hookimpl

__all__ = ["cheesebench_executors"]


def _local(context: ExecutorContext) -> Executor:
    from cheesebench.plugins.executors.local import LocalExecutor

    return LocalExecutor(context)


def _threads(context: ExecutorContext) -> Executor:
    from cheesebench.plugins.executors.threads import ThreadExecutor

    return ThreadExecutor(context)


@hookimpl
def cheesebench_executors() -> Iterable[ExecutorSpec]:
    """Return the built-in executors."""
    return (
        ExecutorSpec("local", _local, summary="worker processes on this machine"),
        ExecutorSpec("threads", _threads, summary="threads of this process", in_process=True),
    )
