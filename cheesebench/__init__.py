"""CheeseBench: do models do as well as the rodent? A pytest plugin; see README.md for the tour.

The names below are the public face. They load on first use, because pytest imports plugins in every project.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cheesebench.gymnasium_plugin import register_when_imported

__version__ = "0.1.0"

if TYPE_CHECKING:
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
    from cheesebench.errors import CheeseBenchError, FileError, OptionError, PluginError, did_you_mean
    from cheesebench.hookspecs import hookimpl
    from cheesebench.interfaces import (
        ACTION_LETTERS,
        ACTIONS,
        FORWARD,
        HEADINGS,
        ROTATE_LEFT,
        ROTATE_RIGHT,
        STAY,
        Agent,
        AgentContext,
        AgentSpec,
        Scene,
        Tile,
        View,
    )
    from cheesebench.models import load_models
    from cheesebench.plugin_manager import installed_plugins
    from cheesebench.protocol.other_files import read_document
    from cheesebench.redaction import quoted, redact

_HOME = {
    **dict.fromkeys(
        ("ACTIONS", "ACTION_LETTERS", "HEADINGS", "FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "STAY"),
        "cheesebench.interfaces",
    ),
    **dict.fromkeys(
        ("Agent", "AgentContext", "AgentSpec", "Scene", "Tile", "View"),
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
        ("CheeseBenchError", "FileError", "OptionError", "PluginError", "did_you_mean"), "cheesebench.errors"
    ),
    "installed_plugins": "cheesebench.plugin_manager",
    "load_models": "cheesebench.models",
    "read_document": "cheesebench.protocol.other_files",
    **dict.fromkeys(("quoted", "redact"), "cheesebench.redaction"),
    **dict.fromkeys(("Puzzle", "RespondentSpec"), "cheesebench.dialogue"),
    "hookimpl": "cheesebench.hookspecs",
}

__all__ = [
    "ACTIONS",
    "ACTION_LETTERS",
    "FORWARD",
    "HEADINGS",
    "ROTATE_LEFT",
    "ROTATE_RIGHT",
    "STAY",
    "Agent",
    "AgentContext",
    "AgentSpec",
    "BackendContext",
    "BackendSpec",
    "Capabilities",
    "ChatFaultError",
    "ChatReply",
    "ChatRequest",
    "CheeseBenchError",
    "Connection",
    "FaultKind",
    "FileError",
    "Finish",
    "Message",
    "ModelAgent",
    "ModelAgentContext",
    "ModelAgentSpec",
    "ModelEntry",
    "OptionError",
    "Part",
    "Picture",
    "PluginError",
    "Price",
    "Puzzle",
    "RespondentSpec",
    "Sampling",
    "Scene",
    "Server",
    "Tile",
    "Usage",
    "View",
    "__version__",
    "did_you_mean",
    "hookimpl",
    "installed_plugins",
    "load_models",
    "quoted",
    "read_document",
    "redact",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


# Last, because it may import parts of this package at once.
register_when_imported()
