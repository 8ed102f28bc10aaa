"""What went wrong, said by a status, a body and headers -> one of the kinds of fault that the harness knows.

Servers agree on little: the code in the body says most, then the words of the message, then the status.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from cheesebench import ChatFaultError, FaultKind, quoted

#: Longest wish of a server that is passed on, in seconds: beyond a day it is none.
MAX_RETRY_AFTER = 86400.0

#: Codes and types in error bodies that leave no doubt, whatever the status is.
_CODES: dict[str, FaultKind] = {
    **dict.fromkeys(
        ("insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_error"), "quota"
    ),
    **dict.fromkeys(
        ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length"), "context_too_long"
    ),
    **dict.fromkeys(("content_filter", "content_policy_violation", "data_inspection_failed"), "content_filter"),
    **dict.fromkeys(("model_not_found", "model_not_available", "deployment_not_found"), "unknown_model"),
    **dict.fromkeys(
        ("invalid_api_key", "authentication_error", "permission_error", "account_deactivated"), "authentication"
    ),
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", "too_many_requests"), "rate_limit"),
    **dict.fromkeys(("overloaded_error", "engine_overloaded", "server_overloaded", "capacity_exceeded"), "overload"),
}
_CLIENT = frozenset(range(400, 500))
#: What messages say, in the order in which it counts, and the statuses for which it is believed. Limits of a rate
#: count tokens too, so a 429 that speaks of too many tokens says nothing of the prompt.
_WORDS: dict[FaultKind, tuple[frozenset[int], re.Pattern[str]]] = {
    "context_too_long": (
        frozenset(range(400, 600)) - {401, 403, 404, 429, 503},
        re.compile(
            r"context.?(length|window|size)|maximum.{0,20}(model|context|sequence|prompt).{0,10}length|max_model_len"
            r"|(prompt|input|request|messages?).{0,40}(too (long|large)|exceeds?.{0,40}(tokens|length|limit))"
            r"|too many (input |prompt )?tokens|reduce the length"
        ),
    ),
    "quota": (
        _CLIENT,
        re.compile(
            r"credit balance|insufficient[ _](credit|balance|fund|quota)|(hard|spend(ing)?|budget) limit|perday"
            r"|out of credits|payment required|budget has been exceeded"
        ),
    ),
    "content_filter": (
        _CLIENT - {429},
        re.compile(
            r"content.?(management.?)?(policy|filter)|safety system|responsibleai|moderation|was flagged"
            r"|data may contain|output blocked"
        ),
    ),
    "authentication": (
        _CLIENT - {429},
        re.compile(
            r"(invalid|incorrect|missing|no|expired).{0,20}api.?key|api.?key.{0,20}(not valid|invalid|expired|missing)"
            r"|no connected db"  # litellm's proxy, of a key that it does not know
        ),
    ),
    "unknown_model": (
        _CLIENT - {401, 429},
        re.compile(
            r"model.{0,120}(does not exist|doesn't exist|not exist|not found|is unknown)|(unknown|no such) model"
            r"|invalid model( name| id)|not a valid model"
        ),
    ),
    "overload": (
        frozenset(range(400, 600)),
        re.compile(r"overloaded|over capacity|no capacity|at capacity|currently unavailable"),
    ),
}
_STATUS: dict[int, FaultKind] = {
    401: "authentication",
    402: "quota",
    403: "authentication",
    404: "unknown_model",
    407: "authentication",
    408: "timeout",
    409: "server",
    410: "unknown_model",
    413: "context_too_long",
    418: "server",
    425: "overload",
    429: "rate_limit",
    498: "overload",
    499: "server",
    503: "overload",
    504: "timeout",
    522: "timeout",
    524: "timeout",
    529: "overload",
}


def fault_of_answer(status: int, body: bytes | bytearray, headers: Mapping[str, str], where: str) -> ChatFaultError:
    """Return the fault that an answer with a status other than 2xx stands for; ``where`` is the server's address."""
    try:
        content = json.loads(body.decode())
    except (ValueError, RecursionError):
        content = None
    fault = fault_of_error(status, content, f"{where} answers {status}", body)
    wish = retry_after(headers)
    fault.retry_after = fault.retry_after if wish is None else wish
    return fault


def fault_of_error(
    status: int, content: Any, said: str = "The server reports an error", body: bytes | bytearray = b""
) -> ChatFaultError:
    """Return the fault that the JSON of an answer speaks of: ``{"error": {...}}`` in its many forms."""
    if isinstance(content, list) and content:
        content = content[0]
    error: Any = content.get("error", content) if isinstance(content, Mapping) else None
    details: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    spoken: list[Any] = [error, *(details.get(name) for name in ("message", "detail", "msg"))]
    message = next(filter(None, (words for words in spoken if isinstance(words, str))), "")
    codes = [str(details[name])[:100].lower() for name in ("code", "type", "status") if details.get(name)]
    if status < 400:
        # The true status is in the body, where gateways put it.
        status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 500)
    shown = quoted(message or body[:400].decode("utf-8", "replace"))
    text = f"{said}: {shown}" if shown else f"{said}."
    return ChatFaultError(_kind(status, codes, message, details), text, _wish_in(details))


def _kind(status: int, codes: list[str], message: str, details: Mapping[str, Any]) -> FaultKind:
    inner = details.get("innererror")
    if isinstance(inner, Mapping):
        codes = [*codes, str(inner.get("code")).lower()]
    for code in codes:
        if code in _CODES:
            return _CODES[code]
    words = f"{' '.join(codes)} {message[:2000].lower()}"
    if status == 429:
        # "You exceeded your current quota" is a minute's quota where the server says when to come back.
        words += json.dumps(details.get("details", ""))[:4000].lower()
        if "exceeded your current quota" in words and _wish_in(details) is None:
            return "quota"
    for kind, (statuses, pattern) in _WORDS.items():
        if status in statuses and pattern.search(words):
            return kind
    if status in _STATUS:
        return _STATUS[status]
    return "server" if status >= 500 else "bad_request"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return in how many seconds the server wants to be asked again: milliseconds, seconds or a date."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (milliseconds := _number(headers.get(name))) is not None:
            return _bounded(milliseconds / 1000)
    wish = headers.get("retry-after")
    if (seconds := _number(wish)) is not None:
        return _bounded(seconds)
    then = _seconds_of_date(wish)
    if then is None:
        return None
    # By the server's own clock, which may be wrong in the same way.
    now = _seconds_of_date(headers.get("date"))
    return _bounded(then - (time.time() if now is None else now))


def _wish_in(details: Mapping[str, Any]) -> float | None:
    """Return the ``retryDelay`` of a Google error body ("30s")."""
    parts: Any = details.get("details")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, Mapping) and isinstance(delay := part.get("retryDelay"), str):
            seconds = _number(delay.removesuffix("s"))
            return None if seconds is None else _bounded(seconds)
    return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _seconds_of_date(text: str | None) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
