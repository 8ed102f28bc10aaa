"""CheeseBench: does a model perform as well as a rodent? A pytest plugin; see README.md.

The names below are the public API. They are imported on first use, because pytest imports plugins in every project.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cheesebench.gymnasium_plugin import register_when_imported

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cheesebench.api.player import PlayedTrial
    from cheesebench.api.result import Run, open_run
    from cheesebench.api.running import run, run_async
    from cheesebench.chat import (
        BackendContext,
        BackendSpec,
        Capabilities,
        ChatFaultError,
        ChatReply,
        ChatRequest,
        Connection,
        FaultKind,
        Finish,
        Message,
        ModelAgent,
        ModelAgentContext,
        ModelAgentSpec,
        ModelEntry,
        Part,
        Picture,
        Price,
        Sampling,
        Server,
        Usage,
    )
    from cheesebench.dialogue import Puzzle, RespondentSpec
    from cheesebench.errors import CheeseBenchError, FileError, OptionError, PluginError, UnsuitableError, did_you_mean
    from cheesebench.executor import Executor, ExecutorContext, ExecutorSpec, Job, Report, WorkerDiedError
    from cheesebench.experiment.installation import differences, installation
    from cheesebench.experiment.jobs import JobRunner, run_job
    from cheesebench.experiment.records import CellPlan, ReferenceValue, Variant
    from cheesebench.extras import install_command
    from cheesebench.family import CellRequest, Family, Listing
    from cheesebench.hookspecs import hookimpl
    from cheesebench.interfaces import (
        ACTION_LETTERS,
        ACTIONS,
        FORWARD,
        HEADINGS,
        ROTATE_LEFT,
        ROTATE_RIGHT,
        RUNNING,
        STAY,
        TERMINATED,
        TRUNCATED,
        Agent,
        AgentContext,
        AgentSpec,
        CommandSpec,
        Scene,
        Tile,
        TrialResult,
        View,
    )
    from cheesebench.models import load_models
    from cheesebench.plugin_manager import installed_plugins
    from cheesebench.protocol.arena_documents import DocumentModel
    from cheesebench.protocol.diagnostics import Diagnostics
    from cheesebench.protocol.other_files import read_document
    from cheesebench.protocol.resolve import identity
    from cheesebench.protocol.source import Node
    from cheesebench.protocol.specification import BaseSpecification
    from cheesebench.protocol.structure import read_structure
    from cheesebench.redaction import quoted, redact
    from cheesebench.stepwise import StepwiseFamily
    from cheesebench.words import Words

_HOME = {
    "PlayedTrial": "cheesebench.api.player",
    **dict.fromkeys(("Run", "open_run"), "cheesebench.api.result"),
    **dict.fromkeys(("run", "run_async"), "cheesebench.api.running"),
    **dict.fromkeys(
        ("ACTIONS", "ACTION_LETTERS", "HEADINGS", "FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "STAY"),
        "cheesebench.interfaces",
    ),
    **dict.fromkeys(
        (
            "RUNNING",
            "TERMINATED",
            "TRUNCATED",
            "Agent",
            "AgentContext",
            "AgentSpec",
            "CommandSpec",
            "Scene",
            "Tile",
            "TrialResult",
            "View",
        ),
        "cheesebench.interfaces",
    ),
    **dict.fromkeys(
        (
            "BackendContext",
            "BackendSpec",
            "Capabilities",
            "ChatFaultError",
            "ChatReply",
            "ChatRequest",
            "Connection",
            "FaultKind",
            "Finish",
            "Message",
            "ModelAgent",
            "ModelAgentContext",
            "ModelAgentSpec",
            "ModelEntry",
            "Part",
            "Picture",
            "Price",
            "Sampling",
            "Server",
            "Usage",
        ),
        "cheesebench.chat",
    ),
    **dict.fromkeys(
        ("CheeseBenchError", "FileError", "OptionError", "PluginError", "UnsuitableError", "did_you_mean"),
        "cheesebench.errors",
    ),
    **dict.fromkeys(
        ("Executor", "ExecutorContext", "ExecutorSpec", "Job", "Report", "WorkerDiedError"), "cheesebench.executor"
    ),
    **dict.fromkeys(("JobRunner", "run_job"), "cheesebench.experiment.jobs"),
    **dict.fromkeys(("differences", "installation"), "cheesebench.experiment.installation"),
    "install_command": "cheesebench.extras",
    "installed_plugins": "cheesebench.plugin_manager",
    "load_models": "cheesebench.models",
    "read_document": "cheesebench.protocol.other_files",
    **dict.fromkeys(("quoted", "redact"), "cheesebench.redaction"),
    **dict.fromkeys(("Puzzle", "RespondentSpec"), "cheesebench.dialogue"),
    "hookimpl": "cheesebench.hookspecs",
    **dict.fromkeys(("CellRequest", "Family", "Listing"), "cheesebench.family"),
    **dict.fromkeys(("CellPlan", "ReferenceValue", "Variant"), "cheesebench.experiment.records"),
    "StepwiseFamily": "cheesebench.stepwise",
    "Words": "cheesebench.words",
    "BaseSpecification": "cheesebench.protocol.specification",
    "Diagnostics": "cheesebench.protocol.diagnostics",
    "DocumentModel": "cheesebench.protocol.arena_documents",
    "Node": "cheesebench.protocol.source",
    "identity": "cheesebench.protocol.resolve",
    "read_structure": "cheesebench.protocol.structure",
}

__all__ = [
    "ACTIONS",
    "ACTION_LETTERS",
    "FORWARD",
    "HEADINGS",
    "ROTATE_LEFT",
    "ROTATE_RIGHT",
    "RUNNING",
    "STAY",
    "TERMINATED",
    "TRUNCATED",
    "Agent",
    "AgentContext",
    "AgentSpec",
    "BackendContext",
    "BackendSpec",
    "BaseSpecification",
    "Capabilities",
    "CellPlan",
    "CellRequest",
    "ChatFaultError",
    "ChatReply",
    "ChatRequest",
    "CheeseBenchError",
    "CommandSpec",
    "Connection",
    "Diagnostics",
    "DocumentModel",
    "Executor",
    "ExecutorContext",
    "ExecutorSpec",
    "Family",
    "FaultKind",
    "FileError",
    "Finish",
    "Job",
    "JobRunner",
    "Listing",
    "Message",
    "ModelAgent",
    "ModelAgentContext",
    "ModelAgentSpec",
    "ModelEntry",
    "Node",
    "OptionError",
    "Part",
    "Picture",
    "PlayedTrial",
    "PluginError",
    "Price",
    "Puzzle",
    "ReferenceValue",
    "Report",
    "RespondentSpec",
    "Run",
    "Sampling",
    "Scene",
    "Server",
    "StepwiseFamily",
    "Tile",
    "TrialResult",
    "UnsuitableError",
    "Usage",
    "Variant",
    "View",
    "Words",
    "WorkerDiedError",
    "__version__",
    "did_you_mean",
    "differences",
    "hookimpl",
    "identity",
    "install_command",
    "installation",
    "installed_plugins",
    "load_models",
    "open_run",
    "quoted",
    "read_document",
    "read_structure",
    "redact",
    "run",
    "run_async",
    "run_job",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


# Last, because it may import parts of this package immediately.
register_when_imported()
