"""Connections to backends that check what a backend replies, before any of our code relies on it."""

from __future__ import annotations

import dataclasses
from typing import get_args

from cheesebench.chat import (
    BackendContext,
    BackendSpec,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    FaultKind,
    Finish,
    Usage,
)
from cheesebench.errors import PluginError
from cheesebench.experiment.guard import guarded
from cheesebench.interface_checks import awaitable, checked
from cheesebench.redaction import quoted

#: What SQLite cannot store as a number.
_TOO_MANY = 2**63


class CheckedConnection:
    """A backend's connection; ``complete`` raises PluginError for what is no reply or no known fault."""

    def __init__(self, spec: BackendSpec, context: BackendContext) -> None:
        """Connect; see ``guarded`` for what is raised."""
        self._who = f"The backend '{spec.name}'"
        with guarded(spec.name, "connecting"):
            self._connection = checked(spec.connect(context), Connection, f"{self._who}: connect returned")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply, or raise ChatFaultError as the backend did."""
        try:
            reply: object = await awaitable(self._connection.complete(request), self._who, "complete")
        except ChatFaultError as fault:
            if not (wrong := _wrong_fault(fault)):
                raise
            did = "raised"
        else:
            if not (wrong := _wrong_reply(reply)) and isinstance(reply, ChatReply):
                return reply
            did = "returned"
        # Outside of the handler: the fault must not become the context of what is shown.
        raise PluginError(f"{self._who} {did} {wrong}. Please report this to its author.")

    async def close(self) -> None:
        """Close the backend's connection."""
        await awaitable(self._connection.close(), self._who, "close")


def _wrong_fault(fault: ChatFaultError) -> str:
    kind: object = fault.kind
    wish: object = fault.retry_after
    known = get_args(FaultKind)
    if kind not in known:
        return f"ChatFaultError({_shown(kind)}, ...), but one of these kinds is expected: {', '.join(known)}"
    if wish is not None and not isinstance(wish, int | float):
        return f"ChatFaultError(retry_after={_shown(wish)}), but seconds or None are expected"
    return ""


def _wrong_reply(reply: object) -> str:
    if not isinstance(reply, ChatReply):
        return f"{type(reply).__name__}, but a ChatReply is expected"
    for name in ("text", "reasoning", "model"):
        value: object = getattr(reply, name)
        if not isinstance(value, str):
            return f"{name}={_shown(value)}, but text is expected"
    known = get_args(Finish)
    if reply.finish not in known:
        return f"finish={_shown(reply.finish)}, but one of these is expected: {', '.join(known)}"
    return _wrong_usage(reply.usage)


def _wrong_usage(usage: object) -> str:
    if not isinstance(usage, Usage):
        return f"usage={_shown(usage)}, but a Usage is expected"
    for name in (field.name for field in dataclasses.fields(usage)):
        count: object = getattr(usage, name)
        if not is_count(count):
            return f"usage.{name}={_shown(count)}, but a number of tokens is expected"
    # They are parts of the prompt; more than the whole would make a call cost less than nothing.
    if usage.cached + usage.written > usage.prompt:
        parts = f"usage.cached={usage.cached} and usage.written={usage.written}"
        return f"{parts}, but they are parts of usage.prompt={usage.prompt}"
    return ""


def is_count(value: object) -> bool:
    """Return whether a value is a number of tokens that a log can store. ``True`` is none, although it is an int."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_MANY


def _shown(value: object) -> str:
    return quoted(repr(value), 60)
