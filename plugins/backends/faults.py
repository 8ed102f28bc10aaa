"""Interprets a server's error: as a fault, or as a reply (``reply_of_error``).

Servers describe the same error in different ways. Clear words in the message decide
first, then the code in the body, then other words in the message, and last the status.
Each of these four is a table, so that a new phrase is a new entry.
"""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from cheesebench import ChatFaultError, ChatReply, FaultKind, Usage, quoted

#: Longest pause that a server may ask for, in seconds. A longer one is shortened to it.
MAX_RETRY_AFTER = 86400.0

#: Codes and types in error bodies that decide at any status, by kind of fault. The
#: numbers are Zhipu's.
_SPELT_CODES: Mapping[FaultKind, str] = {
    "quota": "insufficient_quota billing_hard_limit_reached insufficient_balance billing_error"
    " credits_exhausted usage_limit_reached budget_exceeded arrearage 1113 1304 1308",
    "context_too_long": "context_length_exceeded exceed_context_size_error"
    " string_above_max_length request_too_large 1261",
    "content_filter": "content_filter content_policy_violation data_inspection_failed"
    " responsibleaipolicyviolation moderation_blocked invalid_prompt"
    " safety_violation 1301",
    "unknown_model": "model_not_found model_not_available deployment_not_found"
    " deploymentnotfound 1211",
    "authentication": "invalid_api_key authentication_error permission_error"
    " account_deactivated",
    "rate_limit": "rate_limit_exceeded rate_limit_error too_many_requests 1302",
    "overload": "overloaded_error engine_overloaded server_overloaded"
    " capacity_exceeded 1305",
}
_CODES = {code: kind for kind, codes in _SPELT_CODES.items() for code in codes.split()}

_CLIENT = frozenset(range(400, 500))
_ANY = frozenset(range(400, 600))


class _Words(NamedTuple):
    kind: FaultKind
    statuses: frozenset[int]
    pattern: re.Pattern[str]


def _words(kind: FaultKind, statuses: frozenset[int], *phrases: str) -> _Words:
    return _Words(kind, statuses, re.compile("|".join(phrases), re.DOTALL))


#: Words for periods of a day or longer. A limit per such period is a quota, because
#: no pause between attempts outlasts it.
_LONG = (
    r"(per|a|each|this|the|/)[ _-]?(day|week|month|year|24 ?h|86400 ?s)|(per|by)day|daily|weekly|monthly|\btoday\b"
    r"|\b[rt]pd\b"
)
#: ``_MONEY``: words for what an account can spend. ``_GONE``: words for having none.
_MONEY = r"credits?\b|balance\b|funds?\b|billing"
_GONE = (
    r"insufficient|not (enough|active)|expired|exhausted|depleted|used up|(ran|run) out"
)
#: Patterns that decide before the error's code does. Some servers use rate-limit codes
#: even for limits that outlast every pause.
_FIRST = (
    _words(
        "context_too_long",
        _CLIENT,
        r"request too large",
        r"(single|this) request (is|asks|needs).{0,40}(larger|more|greater) than",
    ),
    _words(
        "quota",
        _CLIENT,
        rf"(limit|quota|allowance|usage|requests?|tokens?|calls|spend\w*|cap|exceeded|used up|free-models).{{0,60}}({_LONG})",
        rf"({_LONG}).{{0,60}}(limit|quota|allowance|usage|exceeded|exhausted|used up|cap\b)",
        r"(specified|api) (api )?usage limits?|you will regain access",
        r"credit balance|insufficient[ _]quota|(hard|spend(ing)?|budget) limit",
        rf"({_MONEY}).{{0,30}}({_GONE})|({_GONE}).{{0,30}}({_MONEY})",
        r"(any|no|out of|all|available|enough|more|add|buy|purchase|remaining|your|run out of).{0,20} credits\b"
        # Exclude messages which say that nothing was charged: no money is missing.
        r"(?!.{0,20}(charged|deducted|billed|consumed))",
        r"payment required|budget has been exceeded|account.{0,30}(arrears|overdue|suspended for billing)",
    ),
    _words(
        "content_filter",
        _CLIENT - {429},
        r"violat\w+ (\w+ ){0,4}(usage|content|safety|acceptable|community|terms|polic|guideline)",
        r"safety.?(check|system|filter|guard)|content.?(management.?)?(polic|filter|moderation)|responsibleai",
        r"(was|been|is|were) flagged|(input|prompt|output|response|request|content).{0,30}(blocked|inappropriate)",
        r"data may contain|usage (guidelines|polic)|sensitive (content|information|words)|敏感|不安全|moderation",
    ),
)
#: Patterns that decide only if the error's code does not. Rate limits may be in tokens,
#: so with a 429, "too many tokens" says nothing about the prompt.
_THEN = (
    _words(
        "context_too_long",
        _ANY - {401, 403, 404, 429, 503},
        r"context.?(length|window|size)|maximum.{0,20}(model|context|sequence|prompt).{0,10}length|max_model_len",
        r"(prompt|input|(?<!_)request|messages?).{0,40}(too (long|large)|exceeds?.{0,40}(tokens|limit|length))",
        r"range of input length|must have (less|fewer) than \d+ tokens",
        r"too many (input |prompt )?tokens|reduce the length|inputs?`? tokens \+ `?max_new_tokens",
        r"max_(completion_|new_)?tokens.{0,20}must be at least 1, got -",
    ),
    _words(  # llama.cpp reports this with status 500, which would be retried.
        "bad_request",
        _ANY - {429, 503},
        r"(image|picture|vision|multi-?modal).{0,60}not (support|allow|enabl|accept|a )|not a multi-?modal|mmproj",
        r"(not support|cannot read|no support for).{0,30}(image|vision|multi-?modal)",
        r"system (role|message|prompt)s? (is |are )?not supported|roles? must alternate",
        r"only user and assistant roles are supported",
    ),
    _words(
        "authentication",
        _CLIENT - {429},
        r"(invalid|incorrect|missing|no|expired).{0,20}api.?key|api.?key.{0,20}(not valid|invalid|expired|missing)",
        r"no connected db",  # litellm's proxy says this of an unknown key.
    ),
    _words(
        "unknown_model",
        _CLIENT - {401, 429},
        r"model.{0,120}(does not exist|doesn't exist|not exist|not found|is unknown)|(unknown|no such) model",
        r"invalid model( name| id)|not a valid model",
    ),
    _words(
        "overload",
        _ANY,
        r"overloaded|over capacity|no capacity|at capacity|currently unavailable",
    ),
    # LM Studio and gateways report breakdowns with the status of a bad request.
    _words(
        "server",
        frozenset({400, 404, 409, 412, 422}),
        r"model (has |was )?(crashed|unloaded)|channel error|operation (was )?cancell?ed",
        r"(generation|inference|prediction|worker|engine|backend|upstream|runner|process)\b.{0,20}"
        r"\b(failed|crashed|died|terminated|unavailable|reset)|upstream (connect|request) (error|timeout)",
        r"internal (server )?error|out of memory|cuda error|temporar(y|ily)|unexpected(ly)? (error|end|closed)",
        r"(try again|retry)( \w+)? (later|after|in \d|shortly|soon)",
    ),
)
_STATUS: Mapping[int, FaultKind] = {
    **dict.fromkeys((401, 403, 407), "authentication"),
    402: "quota",
    **dict.fromkeys((404, 410), "unknown_model"),
    **dict.fromkeys((408, 504, 522, 524), "timeout"),
    **dict.fromkeys((409, 418, 421, 424, 444, 449, 460, 499), "server"),
    413: "context_too_long",
    **dict.fromkeys((420, 429), "rate_limit"),
    **dict.fromkeys((423, 425, 498, 503, 529), "overload"),
}

#: Matches the error of a server that could not read the model's tool call.
_UNREAD = re.compile(
    r"\"tool_use_failed\"|failed to call a function|failed to parse input at pos"
    r"|(?:error|failed) (?:while |to )?pars(?:e|ing) (?:the )?(?:tool|function)[ _]calls?"
    # If these words follow, the error is about an earlier call in the request.
    r"(?![^'\"{]{0,40}\b(?:messages?|request|history)\b)",
    re.IGNORECASE,
)
#: Matches the quotation of a tool call that could not be read, in errors of Groq,
#: llama.cpp or Ollama.
_WRITTEN = re.compile(
    r'"failed_generation"\s*:\s*(?P<json>"(?:[^"\\]|\\.)*")'
    r"|at pos \d+:\s*(?P<input>.+)|raw='(?P<raw>.*)', err=",
    re.IGNORECASE | re.DOTALL,
)
#: Matches the error (sent with status 400) of a model that used up the request's token
#: limit before it answered, as OpenAI's reasoning models may. A message that also names
#: an account or a period is about another limit.
_EXHAUSTED = re.compile(
    r"^(?!.*\b(organi[sz]ation|account|project|workspace|user|team|tier|plan|billing|cycle|second|minute|hour|rate)s?\b)"
    r".*\bmax_(completion_|output_|new_)?tokens\b.{0,60}limit (was|is|has been) reached",
    re.IGNORECASE | re.DOTALL,
)


def reply_of_error(status: int, body: str, limit: int | None) -> ChatReply | None:
    """Return the reply that an error with this status and body stands for, or None if
    the error is a fault.

    There are two such errors. Either the reply was cut off before it began. The server
    then reports no token counts, so the reply counts as ``limit`` tokens (the request's
    limit; none if it is None). Or the server could not read the model's tool call,
    which is the model's own behaviour.
    """
    message = _spoken(_json_of(body))[1] or body
    is_clear = any(_matching(_FIRST, status, message[:2000].lower()))
    if status == 400 and _EXHAUSTED.search(message) and not is_clear:
        used = Usage(completion=limit or 0, reasoning=limit or 0)
        return ChatReply(text="", finish="length", usage=used)
    written = _unread_call(message, body)
    if written is None:
        return None
    text = written.encode("utf-8", "replace").decode()
    return ChatReply(text=text, finish="unread")


def _unread_call(message: str, body: str) -> str | None:
    """Return the text of a tool call that the server could not read. Return "" if the
    server's error does not quote the call, and None if it is another error.
    """
    if not _UNREAD.search(body):
        return None
    found = _WRITTEN.search(message) or _WRITTEN.search(body)
    if found is None:
        return ""
    if found["json"] is None:
        return found["input"] or found["raw"]
    try:
        return str(json.loads(found["json"], strict=False))
    except ValueError:
        return found["json"]


def _json_of(text: str) -> Any:
    """Return the JSON value of a body, or None if the body is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def fault_of_answer(
    status: int, body: str, headers: Mapping[str, str], where: str
) -> ChatFaultError:
    """Return the fault for an answer whose status is not 2xx. ``where`` is the server's
    address.
    """
    fault = fault_of_error(status, _json_of(body), f"{where} answers {status}", body)
    wish = retry_after(headers)
    fault.retry_after = fault.retry_after if wish is None else wish
    return fault


def fault_of_error(
    status: int,
    content: Any,
    said: str = "The server reports an error",
    body: str = "",
) -> ChatFaultError:
    """Return the fault that the JSON of an answer describes: ``{"error": {...}}`` in
    one of its many forms. ``said`` introduces the message. If the JSON has no message,
    the beginning of ``body`` is quoted, or the heading of an HTML page.
    """
    codes, message, details = _spoken(content)
    if status < 400:
        # Some gateways answer 200, and put the status of the server behind them into
        # the body.
        status = next(
            (int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 500
        )
    # An HTML page comes from a gateway or proxy, and does not describe the request.
    page = body.lstrip().startswith("<")
    shown = quoted(message or (_heading(status, body) if page else body[:400]))
    text = f"{said}: {shown}" if shown else f"{said}."
    words = message or ("" if page else body[:2000])
    kind = _kind(status, codes, words, details)
    fault = ChatFaultError(kind, text, _wish_in(details))
    fault.answer = quoted(body[:400], 120) if page else ""
    return fault


def _heading(status: int, page: str) -> str:
    """Return the title or the main heading of an HTML page, without the status with
    which it may begin, or "" if there is none.
    """
    found = re.search(r"<(?:title|h1)\b[^>]{0,200}>([^<]{1,200})", page[:20000], re.I)
    said = html.unescape(found[1]).strip() if found else ""
    return said.removeprefix(f"{status} ")


def _spoken(content: Any) -> tuple[list[str], str, Mapping[str, Any]]:
    """Return the codes, the message and the details in an error's JSON."""
    content = _first(content)
    whole: Mapping[str, Any] = content if isinstance(content, Mapping) else {}
    error = whole.get("error") or _first(whole.get("errors")) or content
    details: Mapping[str, Any] = error if isinstance(error, Mapping) else whole
    spoken = (error, *map(details.get, ("message", "detail", "msg")))
    message = next((one for one in spoken if one and isinstance(one, str)), "")
    return _codes(details), message, details


def _codes(details: Mapping[str, Any]) -> list[str]:
    inner = details.get("innererror")
    placed = [*map(details.get, ("code", "type", "status"))]
    placed += [inner.get("code")] if isinstance(inner, Mapping) else []
    return [str(code)[:100].lower() for code in placed if code]


def _first(value: Any) -> Any:
    """Return the first item of a list (some servers send a list of errors), or any
    other value as it is.
    """
    return value[0] if isinstance(value, list) and value else value


def _kind(
    status: int, codes: list[str], message: str, details: Mapping[str, Any]
) -> FaultKind:
    words = f"{' '.join(codes)} {message[:2000].lower()}"
    if status == 429:
        words += json.dumps(details.get("details", ""))[:4000].lower()
        # If the server says when to retry, "You exceeded your current quota" is about a
        # quota per minute.
        if "exceeded your current quota" in words and _wish_in(details) is None:
            return "quota"
    if status in _CLIENT and _asks_too_much(words):
        return "context_too_long"
    kinds = (
        *_matching(_FIRST, status, words),
        *(_CODES[code] for code in codes if code in _CODES),
        *_matching(_THEN, status, words),
    )
    usual: FaultKind = "server" if status >= 500 else "bad_request"
    return next(iter(kinds), _STATUS.get(status, usual))


def _matching(
    table: tuple[_Words, ...], status: int, words: str
) -> Iterator[FaultKind]:
    for kind, statuses, pattern in table:
        if status in statuses and pattern.search(words):
            yield kind


def _asks_too_much(words: str) -> bool:
    """Return whether the words say that this request alone exceeds the limit."""
    found = re.search(r"limit:? ([\d,]+).{0,60}requested:? ([\d,]+)", words)
    if found is None:
        return False
    limit, requested = (int(text.replace(",", "")[:18] or 0) for text in found.groups())
    return requested > limit


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the server asks to wait before the next attempt, or None
    if it does not say. The headers give this in milliseconds, in seconds or as a date.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if (milliseconds := _number(headers.get(name))) is not None:
            return _bounded(milliseconds / 1000)
    wish = headers.get("retry-after")
    if (seconds := _number(wish)) is not None:
        return _bounded(seconds)
    then = _seconds_of_date(wish)
    if then is None:
        return None
    # Compare the date with the server's own clock, which may be wrong.
    now = _seconds_of_date(headers.get("date"))
    return _bounded(then - (time.time() if now is None else now))


def _wish_in(details: Mapping[str, Any]) -> float | None:
    """Return the ``retryDelay`` ("30s") of one of Google's errors in seconds, or None
    if there is none.
    """
    parts: Any = details.get("details")
    for part in parts if isinstance(parts, list) else []:
        delay = part.get("retryDelay") if isinstance(part, Mapping) else None
        if isinstance(delay, str):
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
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), MAX_RETRY_AFTER)
