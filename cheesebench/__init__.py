"""CheeseBench: does a model perform as well as a rodent? A pytest plugin; see
README.md.

The names below are the public API. They are imported on first use, because pytest
imports plugins in every project.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cheesebench.gymnasium_plugin import register_when_imported

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cheesebench.api import PlayedTrial, Run, open_run, run, run_async
    from cheesebench.auditing import AuditReport
    from cheesebench.chat import (
        AnswerForm,
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
        ServerFacts,
        Usage,
        check_address,
    )
    from cheesebench.diagnostics import Diagnostics
    from cheesebench.dialogue import Puzzle, RespondentSpec
    from cheesebench.errors import (
        CheeseBenchError,
        ComparisonError,
        FileError,
        OptionError,
        PluginError,
        ProtocolError,
        RunLogError,
        UnknownNameError,
        UnsuitableError,
        did_you_mean,
    )
    from cheesebench.executor import (
        Executor,
        ExecutorContext,
        ExecutorSpec,
        Job,
        Report,
        WorkerDiedError,
    )
    from cheesebench.experiment.provenance import differences, installation
    from cheesebench.experiment.subjects import JobRunner, run_job
    from cheesebench.extras import install_command
    from cheesebench.family import CellRequest, Family, Listing, Words
    from cheesebench.functions import (
        Figures,
        Findings,
        Installed,
        audit,
        catalogue,
        compare,
        figures,
        lint,
        plan,
        report,
    )
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
        BaseSpecification,
        CommandSpec,
        Paradigm,
        Scene,
        Tile,
        TrialResult,
        View,
    )
    from cheesebench.interop.answers import TaskVerdict
    from cheesebench.interop.verdicts import ScoreVerdict, verdict
    from cheesebench.models import load_models
    from cheesebench.planning import Forecast
    from cheesebench.plugin_manager import installed_plugins
    from cheesebench.protocol.documents import DocumentModel
    from cheesebench.protocol.resolve import identity
    from cheesebench.protocol.structure import read_document, read_structure
    from cheesebench.records import CellPlan, ReferenceValue, Variant
    from cheesebench.redaction import quoted, redact
    from cheesebench.source import Node
    from cheesebench.statistics.comparison import RunComparison
    from cheesebench.stepwise import StepwiseFamily

_HOME = {
    "PlayedTrial": "cheesebench.api",
    **dict.fromkeys(("Run", "open_run"), "cheesebench.api"),
    **dict.fromkeys(("run", "run_async"), "cheesebench.api"),
    **dict.fromkeys(
        (
            "ACTIONS",
            "ACTION_LETTERS",
            "HEADINGS",
            "FORWARD",
            "ROTATE_LEFT",
            "ROTATE_RIGHT",
            "STAY",
        ),
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
            "Paradigm",
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
            "AnswerForm",
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
            "ServerFacts",
            "Usage",
            "check_address",
        ),
        "cheesebench.chat",
    ),
    **dict.fromkeys(
        (
            "CheeseBenchError",
            "ComparisonError",
            "FileError",
            "OptionError",
            "PluginError",
            "ProtocolError",
            "RunLogError",
            "UnknownNameError",
            "UnsuitableError",
            "did_you_mean",
        ),
        "cheesebench.errors",
    ),
    **dict.fromkeys(
        (
            "Executor",
            "ExecutorContext",
            "ExecutorSpec",
            "Job",
            "Report",
            "WorkerDiedError",
        ),
        "cheesebench.executor",
    ),
    **dict.fromkeys(("JobRunner", "run_job"), "cheesebench.experiment.subjects"),
    **dict.fromkeys(
        ("differences", "installation"), "cheesebench.experiment.provenance"
    ),
    **dict.fromkeys(("ScoreVerdict", "verdict"), "cheesebench.interop.verdicts"),
    **dict.fromkeys(
        ("audit", "catalogue", "compare", "figures", "lint", "plan", "report"),
        "cheesebench.functions",
    ),
    **dict.fromkeys(("Figures", "Findings", "Installed"), "cheesebench.functions"),
    "AuditReport": "cheesebench.auditing",
    "Forecast": "cheesebench.planning",
    "RunComparison": "cheesebench.statistics.comparison",
    "TaskVerdict": "cheesebench.interop.answers",
    "install_command": "cheesebench.extras",
    "installed_plugins": "cheesebench.plugin_manager",
    "load_models": "cheesebench.models",
    "read_document": "cheesebench.protocol.structure",
    **dict.fromkeys(("quoted", "redact"), "cheesebench.redaction"),
    **dict.fromkeys(("Puzzle", "RespondentSpec"), "cheesebench.dialogue"),
    "hookimpl": "cheesebench.hookspecs",
    **dict.fromkeys(("CellRequest", "Family", "Listing"), "cheesebench.family"),
    **dict.fromkeys(("CellPlan", "ReferenceValue", "Variant"), "cheesebench.records"),
    "StepwiseFamily": "cheesebench.stepwise",
    "Words": "cheesebench.family",
    "BaseSpecification": "cheesebench.interfaces",
    "Diagnostics": "cheesebench.diagnostics",
    "DocumentModel": "cheesebench.protocol.documents",
    "Node": "cheesebench.source",
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
    "AnswerForm",
    "AuditReport",
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
    "ComparisonError",
    "Connection",
    "Diagnostics",
    "DocumentModel",
    "Executor",
    "ExecutorContext",
    "ExecutorSpec",
    "Family",
    "FaultKind",
    "Figures",
    "FileError",
    "Findings",
    "Finish",
    "Forecast",
    "Installed",
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
    "Paradigm",
    "Part",
    "Picture",
    "PlayedTrial",
    "PluginError",
    "Price",
    "ProtocolError",
    "Puzzle",
    "ReferenceValue",
    "Report",
    "RespondentSpec",
    "Run",
    "RunComparison",
    "RunLogError",
    "Sampling",
    "Scene",
    "ScoreVerdict",
    "Server",
    "ServerFacts",
    "StepwiseFamily",
    "TaskVerdict",
    "Tile",
    "TrialResult",
    "UnknownNameError",
    "UnsuitableError",
    "Usage",
    "Variant",
    "View",
    "Words",
    "WorkerDiedError",
    "__version__",
    "audit",
    "catalogue",
    "check_address",
    "compare",
    "did_you_mean",
    "differences",
    "figures",
    "hookimpl",
    "identity",
    "install_command",
    "installation",
    "installed_plugins",
    "lint",
    "load_models",
    "open_run",
    "plan",
    "quoted",
    "read_document",
    "read_structure",
    "redact",
    "report",
    "run",
    "run_async",
    "run_job",
    "verdict",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        try:
            return getattr(importlib.import_module(_HOME[name]), name)
        except KeyboardInterrupt:
            said = f"Interrupted while cheesebench.{name} was loaded."
            raise KeyboardInterrupt(said) from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


#: Names that ``dir`` lists, for users. The other names are for plugins.
_SHOWN = (
    "ACTIONS",
    "ACTION_LETTERS",
    "Agent",
    "AgentContext",
    "AgentSpec",
    "AuditReport",
    "BackendSpec",
    "CellPlan",
    "ChatReply",
    "CheeseBenchError",
    "ComparisonError",
    "Diagnostics",
    "DocumentModel",
    "FORWARD",
    "Figures",
    "FileError",
    "Findings",
    "Forecast",
    "Installed",
    "Node",
    "OptionError",
    "PlayedTrial",
    "PluginError",
    "ProtocolError",
    "ROTATE_LEFT",
    "ROTATE_RIGHT",
    "ReferenceValue",
    "Run",
    "RunComparison",
    "RunLogError",
    "STAY",
    "ScoreVerdict",
    "TaskVerdict",
    "UnknownNameError",
    "UnsuitableError",
    "Usage",
    "Variant",
    "__version__",
    "audit",
    "catalogue",
    "compare",
    "differences",
    "figures",
    "identity",
    "install_command",
    "installation",
    "installed_plugins",
    "lint",
    "load_models",
    "open_run",
    "plan",
    "quoted",
    "read_document",
    "read_structure",
    "redact",
    "report",
    "run",
    "run_async",
    "verdict",
)


def __dir__() -> list[str]:
    return list(_SHOWN)


# This comes last, because it may import parts of this package at once.
register_when_imported()
