"""The extension points of CheeseBench. Plugins register under the entry point group
``cheesebench``; in a pytest session, a ``conftest.py`` is a plugin, too.

Functions with these names are hooks, marked with ``cheesebench.hookimpl`` or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pluggy

if TYPE_CHECKING:
    from cheesebench.chat import BackendSpec, ModelAgentSpec, ModelEntry
    from cheesebench.dialogue import RespondentSpec
    from cheesebench.executor import ExecutorSpec
    from cheesebench.family import Family, Plugins, RecordedRun
    from cheesebench.interfaces import AgentSpec, CommandSpec, View
    from cheesebench.records import CellPlan, TrialRecord
    from cheesebench.statistics import RunSummary

PROJECT = "cheesebench"
#: Version of the hooks and of all types that they use. It grows with incompatible
#: changes, not with additions. A plugin declares the version that it is written for
#: with ``cheesebench_api = 1`` in its module, and is refused if that version is not
#: supported.
API_VERSION = 1
#: The oldest supported version.
OLDEST_API_VERSION = 1
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class Reporter(Protocol):
    """A report format for finished or interrupted runs (hook
    ``cheesebench_reporters``). It may also have ``summary``, a phrase that says what it
    is.
    """

    name: str
    """Name for ``cheesebench report RUN --format NAME``."""
    suffix: str
    """File name ending, with the dot."""

    def render(self, summary: RunSummary) -> str:
        """Return the report's text."""
        ...


@runtime_checkable
class RunReporter(Protocol):
    """Optional interface of a reporter that also shows single trials and therefore
    needs the run log.
    """

    def render_run(
        self, summary: RunSummary, log: RecordedRun, plugins: Plugins
    ) -> str:
        """Return the report's text. ``plugins`` compiles the run's protocols and has
        its views.
        """
        ...


@runtime_checkable
class RunsReporter(Protocol):
    """Optional interface of a reporter that shows the trials of several runs, for
    ``cheesebench report``.
    """

    def render_runs(
        self, summary: RunSummary, logs: Sequence[Any], plugins: Any
    ) -> str:
        """Return one report of the runs whose open logs are ``logs``."""
        ...


@runtime_checkable
class FigureReporter(Protocol):
    """Optional interface of a reporter that draws figures of several runs, for
    ``cheesebench figures``.
    """

    def render_figures(
        self, runs: Sequence[tuple[RunSummary, Any]], plugins: Any, **how: Any
    ) -> Mapping[str, bytes]:
        """Return file contents by name. ``runs`` are summaries with their open logs.

        ``how`` has ``sizes`` (billions of parameters by model), ``formats``, ``width``
        (inches or None), ``dpi``, and in ``only`` the names of the figures to draw
        (empty: all of them).
        """
        ...


@hookspec
def cheesebench_agents() -> Iterable[AgentSpec]:
    """Called when a model is looked up; return agents for ``--model``."""
    raise NotImplementedError


@hookspec
def cheesebench_model_agents() -> Iterable[ModelAgentSpec]:
    """Called when an agent is looked up; return the agents for language models that
    ``--agent`` can name.
    """
    raise NotImplementedError


@hookspec
def cheesebench_respondents() -> Iterable[RespondentSpec]:
    """Called when a model is looked up; return the baselines for dialogues that
    ``--model`` can name.
    """
    raise NotImplementedError


@hookspec
def cheesebench_backends() -> Iterable[BackendSpec]:
    """Called when a model is looked up; return the kinds of model server that your
    plugin supports.
    """
    raise NotImplementedError


@hookspec
def cheesebench_models() -> Iterable[ModelEntry]:
    """Called when a model is looked up; return the models that ``--model`` can name,
    with their backends.
    """
    raise NotImplementedError


@hookspec
def cheesebench_views() -> Iterable[View]:
    """Called when a view is looked up; return the views that ``--view`` can name."""
    raise NotImplementedError


@hookspec
def cheesebench_protocols() -> Iterable[Path]:
    """Called when protocols are looked up; return directories with ``*.protocol.yaml``
    files.
    """
    raise NotImplementedError


@hookspec
def cheesebench_families() -> Iterable[Family[Any, Any]]:
    """Called when a protocol is read; return your families (kinds of paradigm)."""
    raise NotImplementedError


@hookspec
def cheesebench_executors() -> Iterable[ExecutorSpec]:
    """Called when a run starts; return the executors that ``--executor`` can name."""
    raise NotImplementedError


@hookspec
def cheesebench_reporters() -> Iterable[Reporter]:
    """Called when a report is written; return your report formats."""
    raise NotImplementedError


@hookspec
def cheesebench_commands() -> Iterable[CommandSpec]:
    """Called for the help, and for a command that is not built in; return your commands
    for ``cheesebench``.

    This hook is not called in a ``conftest.py``, which belongs to a pytest session.
    """
    raise NotImplementedError


@hookspec
def cheesebench_trial_finished(plan: CellPlan, record: TrialRecord) -> None:
    """Called when a trial has been written to the run log, in the session's process
    (with pytest-xdist, in the worker's), one call at a time.

    The subject may have run in another process. If a plugin raises, the error is
    written to the run's journal, the plugin's hook is not called again, and the run
    continues.
    """


@hookspec
def cheesebench_run_finished(summary: RunSummary) -> None:
    """Called once at the end of a run, by pytest or by ``cheesebench.run``, when its
    verdicts are known.

    If a plugin raises, the error is reported, and the run keeps its verdicts.
    """
