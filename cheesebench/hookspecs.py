"""Every extension point of CheeseBench. Plugins register under the entry point group ``cheesebench``.

In a pytest session a ``conftest.py`` that defines one of these functions is picked up too; there the name is
enough, elsewhere mark the function with ``cheesebench.hookimpl``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from cheesebench.chat import BackendSpec, ModelAgentSpec, ModelEntry
    from cheesebench.dialogue import RespondentSpec
    from cheesebench.executor import ExecutorSpec
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.family import Family
    from cheesebench.interfaces import AgentSpec, CommandSpec, Reporter, View
    from cheesebench.statistics import RunSummary

PROJECT = "cheesebench"
#: Version of the hooks, and of all that goes through them. It goes up when a plugin that is written for it could be
#: misunderstood by an older CheeseBench; what is only added does not change it. A plugin says what it is written for
#: with ``cheesebench_api = 1`` in its module, and is refused where that version is not known.
API_VERSION = 1
#: The oldest version that is still understood.
OLDEST_API_VERSION = 1
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def cheesebench_agents() -> Iterable[AgentSpec]:
    """Called when a model is looked up; return the agents that ``--model`` can name: they act by themselves."""
    raise NotImplementedError


@hookspec
def cheesebench_model_agents() -> Iterable[ModelAgentSpec]:
    """Called when an agent is looked up; return the agents that ``--agent`` can name: they ask a language model."""
    raise NotImplementedError


@hookspec
def cheesebench_respondents() -> Iterable[RespondentSpec]:
    """Called when a model is looked up; return the baselines for dialogues that ``--model`` can name."""
    raise NotImplementedError


@hookspec
def cheesebench_backends() -> Iterable[BackendSpec]:
    """Called when a model is looked up; return the kinds of model server that you can talk to."""
    raise NotImplementedError


@hookspec
def cheesebench_models() -> Iterable[ModelEntry]:
    """Called when a model is looked up; return the models that ``--model`` can name, with their backends."""
    raise NotImplementedError


@hookspec
def cheesebench_views() -> Iterable[View]:
    """Called when a view is looked up; return the views that ``--view`` can name."""
    raise NotImplementedError


@hookspec
def cheesebench_protocols() -> Iterable[Path]:
    """Called when protocols are looked up; return directories that hold ``*.protocol.yaml`` files."""
    raise NotImplementedError


@hookspec
def cheesebench_families() -> Iterable[Family[Any, Any]]:
    """Called when a protocol is read; return the families (kinds of paradigm) that are yours."""
    raise NotImplementedError


@hookspec
def cheesebench_executors() -> Iterable[ExecutorSpec]:
    """Called when a run starts; return the executors that ``--executor`` can name: where subjects are run."""
    raise NotImplementedError


@hookspec
def cheesebench_reporters() -> Iterable[Reporter]:
    """Called when a report is written; return the formats that you can write."""
    raise NotImplementedError


@hookspec
def cheesebench_commands() -> Iterable[CommandSpec]:
    """Called for the help, and for a command that is not built in; return the commands that ``cheesebench`` can run.

    A plugin of a ``conftest.py`` is not asked: it belongs to a session of pytest.
    """
    raise NotImplementedError


@hookspec
def cheesebench_trial_finished(plan: CellPlan, record: TrialRecord) -> None:
    """Called when a trial has been written to the run log, in the process of the session, one call at a time.

    (The subject may have been run elsewhere.) An observer that raises is named in the run's journal and
    at the end of the session, and is not called again; the others and the run go on.
    """


@hookspec
def cheesebench_run_finished(summary: RunSummary) -> None:
    """Called once when a run has ended and its verdicts are known."""
