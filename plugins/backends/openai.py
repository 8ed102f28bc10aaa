"""The backend ``openai``: any server that speaks OpenAI's Chat Completions, near or
far.

In this order: what faults mean, how replies are read, the client (plain aiohttp), the
backend. The client is written for little CPU time per call (OpenAI's own SDK takes more
than ten times as much: ``benchmarks/client.py``) and for servers that misbehave. A
connection carries one call: what a server sends late, twice or unasked is never another
call's reply. Bodies are bounded, never decompressed, and read under one deadline;
redirects are not followed, because they would carry the key elsewhere. aiohttp is
imported when it is used: most runs ask no model.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cheesebench import (
    AnswerForm,
    BackendContext,
    BackendSpec,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    FaultKind,
    Finish,
    Message,
    OptionError,
    ServerFacts,
    Usage,
    __version__,
    check_address,
    quoted,
    redact,
)

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

# -- Faults: servers agree on little. The code in the body says most, then the words of
# the message, then the status.

#: Longest wish of a server that is passed on, in seconds: beyond a day it is none.
MAX_RETRY_AFTER = 86400.0

#: Codes and types in error bodies that leave no doubt, whatever the status is.
_CODES: dict[str, FaultKind] = {
    **dict.fromkeys(
        (
            "insufficient_quota",
            "billing_hard_limit_reached",
            "insufficient_balance",
            "billing_error",
        ),
        "quota",
    ),
    **dict.fromkeys(
        (
            "context_length_exceeded",
            "exceed_context_size_error",
            "string_above_max_length",
        ),
        "context_too_long",
    ),
    **dict.fromkeys(
        ("content_filter", "content_policy_violation", "data_inspection_failed"),
        "content_filter",
    ),
    **dict.fromkeys(
        ("model_not_found", "model_not_available", "deployment_not_found"),
        "unknown_model",
    ),
    **dict.fromkeys(
        (
            "invalid_api_key",
            "authentication_error",
            "permission_error",
            "account_deactivated",
        ),
        "authentication",
    ),
    **dict.fromkeys(
        ("rate_limit_exceeded", "rate_limit_error", "too_many_requests"), "rate_limit"
    ),
    **dict.fromkeys(
        (
            "overloaded_error",
            "engine_overloaded",
            "server_overloaded",
            "capacity_exceeded",
        ),
        "overload",
    ),
}
_CLIENT = frozenset(range(400, 500))
#: What messages say, in the order in which it counts, and the statuses for which it is
#: believed. Limits of a rate count tokens too, so a 429 that speaks of too many tokens
#: says nothing of the prompt.
_WORDS: dict[FaultKind, tuple[frozenset[int], re.Pattern[str]]] = {
    "context_too_long": (
        frozenset(range(400, 600)) - {401, 403, 404, 429, 503},
        re.compile(
            r"context.?(length|window|size)|maximum.{0,20}(model|context|sequence|prompt).{0,10}length|max_model_len"
            r"|(prompt|input|(?<!_)request|messages?).{0,40}(too (long|large)|exceeds?.{0,40}(tokens|limit|length))"
            r"|too many (input |prompt )?tokens|reduce the length"
        ),
    ),
    "bad_request": (  # llama.cpp says it with status 500, which would be asked again
        frozenset(range(400, 600)) - {429, 503},
        re.compile(
            r"(image|picture|vision|multi-?modal).{0,60}not (support|allow|enabl|accept|a )|not a multi-?modal|mmproj"
            r"|(not support|cannot read|no support for).{0,30}(image|vision|multi-?modal)"
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
        re.compile(
            r"overloaded|over capacity|no capacity|at capacity|currently unavailable"
        ),
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


#: What a 400 says when the model has used up its limit before it answered (OpenAI's
#: reasoning models).
_EXHAUSTED = re.compile(
    r"(max_\w*tokens|output).{0,40}limit (was|is|has been) reached", re.IGNORECASE
)


def reply_of_refusal(fault: ChatFaultError, limit: int | None) -> ChatReply | None:
    """Return the reply that a refusal stands for: one that the server could not read,
    or that was cut off before it began. None: it is a fault.

    The server does not say how many tokens it took; ``limit`` is the request's.
    """
    if fault.unread is not None:
        return ChatReply(text=replace_surrogates(fault.unread), finish="unread")
    if fault.kind != "bad_request" or not _EXHAUSTED.search(str(fault)):
        return None
    return ChatReply(
        text="",
        finish="length",
        usage=Usage(completion=limit or 0, reasoning=limit or 0),
    )


#: How servers say that they could not read what the model wrote as a call of a tool.
_UNREAD = re.compile(
    r"tool_use_failed|failed to call a function|failed to parse input at pos"
    r"|(?:error|failed) (?:while |to )?pars(?:e|ing) (?:the )?(?:tool|function)[ _]calls?",
    re.IGNORECASE,
)
#: Where they put it: Groq, llama.cpp, Ollama.
_WRITTEN = re.compile(
    r'"failed_generation"\s*:\s*(?P<json>"(?:[^"\\]|\\.)*")'
    r"|at pos \d+:\s*(?P<input>.+)|raw='(?P<raw>.*)', err=",
    re.IGNORECASE | re.DOTALL,
)


def unread_call(said: str) -> str | None:
    """Return what a model wrote, in an error of a server that could not read it as a
    call of a tool; "" where the error does not repeat it, None if it is another error.
    """
    if not _UNREAD.search(said):
        return None
    written = _WRITTEN.search(said)
    if written is None:
        return ""
    if written["json"] is None:
        return written["input"] or written["raw"]
    try:
        return str(json.loads(written["json"], strict=False))
    except ValueError:
        return written["json"]


def fault_of_answer(
    status: int, body: bytes | bytearray, headers: Mapping[str, str], where: str
) -> ChatFaultError:
    """Return the fault that an answer with a status other than 2xx stands for;
    ``where`` is the server's address.
    """
    try:
        content = json.loads(body.decode())
    except (ValueError, RecursionError):
        content = None
    fault = fault_of_error(status, content, f"{where} answers {status}", body)
    wish = retry_after(headers)
    fault.retry_after = fault.retry_after if wish is None else wish
    return fault


def fault_of_error(
    status: int,
    content: Any,
    said: str = "The server reports an error",
    body: bytes | bytearray = b"",
) -> ChatFaultError:
    """Return the fault that the JSON of an answer speaks of: ``{"error": {...}}`` in
    its many forms.
    """
    if isinstance(content, list) and content:
        content = content[0]
    error: Any = content.get("error", content) if isinstance(content, Mapping) else None
    details: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    spoken: list[Any] = [
        error,
        *(details.get(name) for name in ("message", "detail", "msg")),
    ]
    message = next(
        filter(None, (words for words in spoken if isinstance(words, str))), ""
    )
    codes = [
        str(details[name])[:100].lower()
        for name in ("code", "type", "status")
        if details.get(name)
    ]
    if status < 400:
        # The true status is in the body, where gateways put it.
        status = next(
            (int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 500
        )
    shown = quoted(message or body[:400].decode("utf-8", "replace"))
    text = f"{said}: {shown}" if shown else f"{said}."
    fault = ChatFaultError(
        _kind(status, codes, message, details), text, _wish_in(details)
    )
    written = json.dumps({"failed_generation": details.get("failed_generation") or ""})
    in_json = written if "failed_generation" in details else ""
    fault.unread = unread_call(f"{' '.join(codes)} {message}{in_json}")
    return fault


def _kind(
    status: int, codes: list[str], message: str, details: Mapping[str, Any]
) -> FaultKind:
    inner = details.get("innererror")
    if isinstance(inner, Mapping):
        codes = [*codes, str(inner.get("code")).lower()]
    for code in codes:
        if code in _CODES:
            return _CODES[code]
    words = f"{' '.join(codes)} {message[:2000].lower()}"
    if status == 429:
        # "You exceeded your current quota" is a minute's quota where the server says
        # when to come back.
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
    """Return in how many seconds the server wants to be asked again: milliseconds,
    seconds or a date.
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
    # By the server's own clock, which may be wrong in the same way.
    now = _seconds_of_date(headers.get("date"))
    return _bounded(then - (time.time() if now is None else now))


def _wish_in(details: Mapping[str, Any]) -> float | None:
    """Return the ``retryDelay`` of a Google error body ("30s")."""
    parts: Any = details.get("details")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, Mapping) and isinstance(
            delay := part.get("retryDelay"), str
        ):
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


#: How servers say why a reply ended. What is not listed is "other".
_FINISH: dict[object, Finish] = {
    **dict.fromkeys(
        (
            "stop",
            "eos",
            "eos_token",
            "end_turn",
            "stop_sequence",
            "tool_calls",
            "function_call",
            "tool_use",
        ),
        "stop",
    ),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens"), "length"),
    "malformed_function_call": "unread",
}
#: Reasons that are the server's own breakdown: what it had written until then is no
#: reply of the model.
_BROKEN_OFF = frozenset({"abort", "aborted", "cancelled", "canceled", "error"})
#: Tags that models put around their thoughts.
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought)>", re.IGNORECASE)
#: More tokens than any reply has: a number beyond it is a slip of the server.
_MOST_TOKENS = 10**9
#: Characters of a model's name that are read: what is shown of it is shorter still.
_LONGEST_NAME = 4096


def read_reply(body: bytes | bytearray, form: AnswerForm | None = None) -> ChatReply:
    """Return the reply in the body of an answer with status 200; raise ChatFaultError
    if there is none.
    """
    try:
        answer = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise ChatFaultError(
            "malformed", f"The answer is not JSON: {_beginning(body)}"
        ) from None
    return reply_in(answer, body, form)


def reply_in(
    answer: Any, body: bytes | bytearray, form: AnswerForm | None = None
) -> ChatReply:
    """Return the reply in the JSON of an answer; ``body`` is quoted if there is none.

    Where a tool was offered, the arguments of its call are the reply.
    """
    if not isinstance(answer, dict):
        raise ChatFaultError(
            "malformed", f"The answer is not a JSON object: {_beginning(body)}"
        )
    if answer.get("error"):  # Gateways say 200 and mean an error.
        raise fault_of_error(200, answer)
    choices = answer.get("choices")
    listed = choices if isinstance(choices, list) else []
    choice = next(
        (one for one in listed if isinstance(one, dict) and one.get("index") == 0),
        next(iter(listed), None),
    )
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ChatFaultError(
            "malformed", f"The answer has no 'choices[0].message': {_beginning(body)}"
        )
    if choice.get("error"):
        raise fault_of_error(200, choice)
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        raise ChatFaultError(
            "content_filter", "The server's content filter cut off the reply."
        )
    if isinstance(finish, str) and finish.lower() in _BROKEN_OFF:
        raise ChatFaultError(
            "server", f"The server ended the reply early (finish_reason '{finish}')."
        )
    if not isinstance(message.get("content"), str | list | None):
        raise ChatFaultError(
            "malformed",
            f"The reply's content is neither text nor a list of parts: {_beginning(body)}",
        )
    content, thoughts = _content(message.get("content"))
    # A refusal is what the model says; it is judged like any other reply.
    content = content or _words(message.get("refusal"))
    text, inline = split_thoughts(content)
    if form is not None and (call := _arguments(message)):
        # What is said beside a call is no answer.
        content, text, inline = call, call, join_thoughts(inline, text)
    reasoning = (
        _words(message.get("reasoning_content"))
        or _words(message.get("reasoning"))
        or thoughts
    )
    ended = _FINISH.get(finish.lower(), "other") if isinstance(finish, str) else "other"
    if not (content or reasoning or ended == "unread"):
        _check_empty(message, answer.get("usage"), body)
    return ChatReply(
        text=replace_surrogates(text),
        reasoning=replace_surrogates(join_thoughts(reasoning, inline)),
        finish=ended,
        usage=read_usage(answer.get("usage")),
        model=_name(_words(answer.get("model"))[:_LONGEST_NAME]),
    )


def _arguments(message: Mapping[str, Any]) -> str:
    """Return the arguments of the first call of a tool, as JSON; some servers send the
    object itself.
    """
    calls = message.get("tool_calls")
    first = (
        calls[0]
        if isinstance(calls, list) and calls
        else {"function": message.get("function_call")}
    )
    function = first.get("function") if isinstance(first, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    return (
        json.dumps(arguments) if isinstance(arguments, Mapping) else _words(arguments)
    )


def _check_empty(
    message: Mapping[str, Any], usage: Any, body: bytes | bytearray
) -> None:
    """Raise ChatFaultError for an empty reply that the model never wrote: a tool call,
    or no token at all.
    """
    if message.get("tool_calls") or message.get("function_call"):
        raise ChatFaultError(
            "malformed", f"The reply is a tool call and no text: {_beginning(body)}"
        )
    if isinstance(usage, Mapping) and usage.get("completion_tokens") == 0:
        raise ChatFaultError(
            "malformed", f"The reply is empty (0 tokens): {_beginning(body)}"
        )


@lru_cache(maxsize=64)
def _name(model: str) -> str:
    """Return what the server says it is, fit to be shown: for thousands of replies the
    same.
    """
    return quoted(model, 200)


def split_thoughts(text: str) -> tuple[str, str]:
    """Return a text without the thoughts in ``<think>`` tags, and the thoughts.

    A closing tag without an opening one ends thoughts that began in the prompt's
    template; thoughts that are not closed were cut off.
    """
    if "<" not in text:
        return text, ""
    said: list[str] = []
    thought: list[str] = []
    end = depth = 0
    for tag in _THOUGHT.finditer(text):
        piece = text[end : tag.start()]
        end = tag.end()
        if tag[1]:
            if depth:
                thought.append(piece)
            else:  # it was all thought so far
                thought += [*said, piece]
                said.clear()
            depth = max(depth - 1, 0)
        else:
            (thought if depth else said).append(piece)
            depth += 1
    (thought if depth else said).append(text[end:])
    if not end:
        return text, ""
    return "".join(said).strip(), "\n".join(filter(None, map(str.strip, thought)))


def join_thoughts(*thoughts: str) -> str:
    return "\n".join(filter(None, thoughts))


def read_usage(usage: Any) -> Usage:
    """Return the tokens that a server counted; what makes no sense counts as none."""
    if not isinstance(usage, Mapping):
        return Usage()
    prompt, completion = (
        _tokens(usage.get("prompt_tokens")),
        _tokens(usage.get("completion_tokens")),
    )
    read, written = (
        usage.get("prompt_tokens_details"),
        usage.get("completion_tokens_details"),
    )
    cached = _tokens(
        read.get("cached_tokens")
        if isinstance(read, Mapping)
        else usage.get("prompt_cache_hit_tokens")
    )
    reasoning = _tokens(
        written.get("reasoning_tokens") if isinstance(written, Mapping) else None
    )
    cached = min(cached, prompt)
    return Usage(
        prompt=prompt,
        completion=completion,
        cached=cached,
        reasoning=min(reasoning, completion),
        written=min(_put_into_cache(usage), prompt - cached),
    )


def _put_into_cache(usage: Mapping[str, Any]) -> int:
    """Return the tokens that were written into a cache: providers and gateways name
    them differently.
    """
    details = usage.get("prompt_tokens_details")
    places = [usage.get("cache_creation_input_tokens")]
    if isinstance(details, Mapping):
        places += [
            details.get("cache_creation_tokens"),
            details.get("cache_write_tokens"),
        ]
    return max(map(_tokens, places))


def replace_surrogates(text: str) -> str:
    """Return the text with halves of surrogate pairs, which no file and no database
    takes, replaced.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _content(content: Any) -> tuple[str, str]:
    """Return the text and the thoughts of a message's content: a string, or a list of
    parts.
    """
    if not isinstance(content, list):
        return _words(content), ""
    text: list[str] = []
    thoughts: list[str] = []
    for part in content:
        if isinstance(part, Mapping):
            said = _words(part.get("text"))
            (thoughts if part.get("thought") is True else text).append(said)
            inner = part.get("thinking")
            thoughts.append(
                _content(inner)[0] if isinstance(inner, list) else _words(inner)
            )
    return "".join(text), join_thoughts(*thoughts)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _tokens(value: Any) -> int:
    plausible = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= _MOST_TOKENS
    )
    return int(value) if plausible else 0


def _beginning(body: bytes | bytearray) -> str:
    """Return how a body begins: enough to see what it is."""
    return quoted(body[:400].decode("utf-8", "replace"), 120) or "(empty)"


#: Largest reply that is read, in bytes. A reply of 100,000 tokens has about half of it.
MAX_BODY = 4 * 1024 * 1024
#: Most of an error's body that is read, in bytes.
MAX_ERROR_BODY = 64 * 1024
#: Seconds until a server must have taken a connection, TLS included.
CONNECT_TIMEOUT = 20.0
#: Seconds for a question about the server itself.
FACTS_TIMEOUT = 5.0
#: Tokens of Ollama's context where nothing else is set. It cuts longer prompts without
#: a word.
OLLAMA_CONTEXT = 4096
#: Parts of the request body that are not for the registry to set.
RESERVED = ("messages", "model", "stream", "n")
#: What the limit of a reply may be called in the request.
MAX_TOKENS_NAMES = ("max_tokens", "max_completion_tokens")
#: How a server says that it does not know a parameter, which its message names.
_UNKNOWN = (
    r"(un(supported|known|recognized|expected)|extra|not (supported|permitted|allowed))"
)
#: How it says that it wants this name of the limit.
_OTHER_NAME = {
    "max_completion_tokens": re.compile(
        r"\bmax_tokens\b.*\bmax_completion_tokens\b", re.DOTALL
    ),
    "max_tokens": re.compile(
        rf"{_UNKNOWN}.*\bmax_completion_tokens\b|\bmax_completion_tokens\b.*{_UNKNOWN}",
        re.DOTALL | re.IGNORECASE,
    ),
}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Headers = Callable[[ChatRequest], Mapping[str, str]]


class ChatCompletions:
    """An open connection to one server (a ``Connection``): create it inside the event
    loop.

    ``max_tokens_name`` is what the limit of a reply is called in the body; ``headers``
    returns headers of one request (a balancer's, say). ``constrains``: forms are asked
    for by a schema of the reply, because the server does not enforce calls of tools.
    The harness bounds the calls in flight, so the pool of connections is not bounded.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None = None,
        max_tokens_name: str = "max_tokens",
        headers: Headers | None = None,
        constrains: bool = False,
        model: str = "",
    ) -> None:
        import aiohttp

        self._url = endpoint(base_url)
        self.where = str(self._url.with_path("").with_query(None))
        self._max_tokens_name = max_tokens_name
        self._tried = {max_tokens_name}
        self._headers = headers
        self._constrains = constrains
        self._model = model.removesuffix(":latest")
        self._proxy = _proxy(self._url)
        common = {
            "User-Agent": f"cheesebench/{__version__}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if key:
            common["Authorization"] = f"Bearer {_header_value(key)}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=common,
            auto_decompress=False,
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        import asyncio
        import ssl

        import aiohttp

        try:
            async with asyncio.timeout(request.timeout):
                return await self._complete(request)
        except TimeoutError as error:
            if isinstance(error, aiohttp.ConnectionTimeoutError):
                raise self._fault(
                    "connection", f"accepted no connection within {CONNECT_TIMEOUT:g} s"
                ) from None
            raise self._fault(
                "timeout", f"has not answered within {request.timeout:g} s"
            ) from None
        except (
            aiohttp.ClientConnectorCertificateError,
            ssl.SSLCertVerificationError,
        ) as error:
            # No later call will be more welcome: it counts as a matter of the account.
            raise self._fault(
                "authentication",
                f"has a certificate that is not trusted ({quoted(str(error))})",
            ) from None
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL) as error:
            raise self._fault(
                "malformed", f"does not speak HTTP ({quoted(str(error), 120)})"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            said = quoted(_reason(error), 200) or type(error).__name__
            lost = self._fault("connection", f"cannot be reached ({said})")
            lost.refused = isinstance(error, aiohttp.ClientConnectorError)
            raise lost from None
        except ChatFaultError as fault:
            if cut_off := reply_of_refusal(fault, request.sampling.max_tokens):
                return cut_off
            raise

    async def close(self) -> None:
        await self._session.close()

    async def facts(self) -> ServerFacts:
        """Return what the server says about itself; llama.cpp, vLLM and Ollama say it
        each in a place of its own.
        """
        base = self._url.path.removesuffix("/chat/completions")
        root = base.removesuffix("/v1")
        properties = await self._get(f"{root}/props")
        usual = properties.get("default_generation_settings")
        context = usual.get("n_ctx") if isinstance(usual, dict) else None
        if context is None:
            context = self._own(await self._get(f"{base}/models"), "data", "id").get(
                "max_model_len"
            )
        if context is None and (
            loaded := self._own(await self._get(f"{root}/api/ps"), "models", "model")
        ):
            context = loaded.get("context_length", OLLAMA_CONTEXT)
        return ServerFacts(
            slots=_count(properties.get("total_slots")), context=_count(context)
        )

    def _own(self, listed: dict[str, Any], key: str, name: str) -> dict[str, Any]:
        """Return what a list of models says of the one that is asked, or of the only
        one.
        """
        models = [one for one in listed.get(key) or () if isinstance(one, dict)]
        own = [
            one
            for one in models
            if str(one.get(name)).removesuffix(":latest") == self._model
        ]
        return own[0] if own else models[0] if len(models) == 1 else {}

    async def _get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path; an empty one if there is none."""
        import asyncio

        import aiohttp

        try:
            async with (
                asyncio.timeout(FACTS_TIMEOUT),
                self._session.get(
                    self._url.with_path(path), allow_redirects=False, proxy=self._proxy
                ) as response,
            ):
                found = (
                    json.loads(await _read(response, MAX_BODY))
                    if response.status == 200
                    else {}
                )
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    async def _complete(self, request: ChatRequest) -> ChatReply:
        if self._constrains and request.form is not None:
            request = replace(request, form=replace(request.form, by_tool=False))
        name = self._max_tokens_name
        try:
            return await self._post(request, name)
        except ChatFaultError as fault:
            # The request was not understood, so it is no second attempt; once for each
            # name.
            other = next(one for one in MAX_TOKENS_NAMES if one != name)
            if fault.kind != "bad_request" or not _OTHER_NAME[other].search(str(fault)):
                raise
            if self._max_tokens_name == name:
                if other in self._tried:
                    raise
                self._tried.add(other)
                self._max_tokens_name = other
        return await self._post(request, self._max_tokens_name)

    async def _post(self, request: ChatRequest, max_tokens_name: str) -> ChatReply:
        async with self._session.post(
            self._url,
            data=encode(request, max_tokens_name),
            headers=self._headers(request) if self._headers else None,
            allow_redirects=False,
            proxy=self._proxy,
        ) as response:
            if 200 <= response.status < 300:
                return read_reply(await self._body(response), request.form)
            body = await _read(response, MAX_ERROR_BODY)
            if response.status < 300:
                raise self._fault(
                    "malformed",
                    f"answers {response.status}, which is no answer to a question",
                )
            if response.status < 400:
                place = quoted(response.headers.get("Location", "nowhere"), 100)
                # A stray temporary redirect (a gateway that restarts) is retried; a
                # permanent one is a wrong address.
                kind: FaultKind = (
                    "bad_request" if response.status in (301, 308) else "server"
                )
                raise self._fault(
                    kind,
                    f"redirects to {place}; give the final address with --base-url",
                )
            raise fault_of_answer(response.status, body, response.headers, self.where)

    async def _body(self, response: aiohttp.ClientResponse) -> bytearray:
        framing = response.headers.getall("Transfer-Encoding", [])
        if [one.lower() for one in framing] not in (
            [],
            ["chunked"],
        ):  # aiohttp would wait for the connection's end
            raise self._fault(
                "malformed", f"frames its reply as '{quoted(', '.join(framing), 30)}'"
            )
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise self._fault(
                "malformed",
                f"sends its reply as '{quoted(encoding, 30)}', which was not requested",
            )
        announced = response.content_length or 0
        if (
            announced > MAX_BODY
            or len(body := await _read(response, MAX_BODY + 1)) > MAX_BODY
        ):
            raise self._fault(
                "malformed", f"sends a reply of more than {MAX_BODY // 1024**2} MB"
            )
        return body

    def _fault(self, kind: FaultKind, said: str) -> ChatFaultError:
        return ChatFaultError(kind, f"{self.where} {said}.")


def endpoint(base_url: str) -> URL:
    """Return the address of Chat Completions below a base URL; ``/v1`` is added where
    there is no path.

    Raises OptionError for what is no such URL.
    """
    from yarl import URL

    check_address(base_url)
    url = URL(base_url)
    path = url.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return url.with_path(f"{path}/chat/completions")


def encode(request: ChatRequest, max_tokens_name: str = "max_tokens") -> bytes:
    """Return the body of a request. The entry's served settings (``extra``) win over
    the sampling's.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [body_message(message) for message in request.messages],
    }
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if (
        sampling.max_tokens is not None
        and not {"max_tokens", "max_completion_tokens"} & request.extra.keys()
    ):
        body[max_tokens_name] = sampling.max_tokens
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    body.update(form_parameters(request.form))
    body.update(request.extra)
    return _ENCODER.encode(body).encode("utf-8", "replace")


def form_parameters(form: AnswerForm | None) -> dict[str, Any]:
    """Return the parameters that make a reply take a form: a tool that must be called,
    or a schema of the reply.
    """
    if form is None:
        return {}
    if not form.by_tool:
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": form.name, "schema": form.schema},
            }
        }
    function = {
        "name": form.name,
        "description": form.description,
        "parameters": form.schema,
    }
    # "required" and not the tool's name: llama.cpp knows only the words.
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
    }


def body_message(message: Message) -> dict[str, Any]:
    """Return a message as OpenAI's protocol has it: text, or a list of parts if there
    are pictures.
    """
    if all(isinstance(part, str) for part in message.parts):
        return {"role": message.role, "content": message.text}
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: str | bytes) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {
        "type": "image_url",
        "image_url": {
            "url": f"data:image/png;base64,{base64.b64encode(part).decode()}"
        },
    }


def _count(said: object) -> int | None:
    return (
        said
        if isinstance(said, int) and not isinstance(said, bool) and said > 0
        else None
    )


async def _read(response: aiohttp.ClientResponse, most: int) -> bytearray:
    """Return the body, or the first ``most`` bytes of it."""
    body = bytearray()
    while len(body) < most and (piece := await response.content.readany()):
        body += piece
    return body[:most]


def _header_value(key: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise OptionError(
            "The key contains a character that is not allowed in an HTTP header, such as a line break. Export it again."
        )
    return key


def _reason(error: Exception) -> str:
    """Return why there is no connection, without the address, which the fault states
    already.
    """
    cause = getattr(error, "os_error", None)
    if not isinstance(cause, OSError):
        return str(error)
    return (
        os.strerror(cause.errno)
        if cause.errno and cause.errno > 0
        else cause.strerror or str(error)
    )


def _proxy(url: URL) -> str | None:
    """Return the proxy that the environment names for this address; calls to this
    machine never go through one.
    """
    import urllib.request

    if _is_loopback(url.host or ""):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(url.host or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


#: Shorter keys ("EMPTY", "x") are no secrets, and would blot out ordinary words.
_SHORTEST_SECRET = 8
#: Where calls go by default.
PUBLIC = "https://api.openai.com/v1"


OPTIONS: Mapping[str, str] = {
    "base_url": "address of the server, up to /v1 (default: OPENAI_BASE_URL, or the public API)",
    "api_key_env": "name of the environment variable with the key (default: OPENAI_API_KEY)",
    "max_tokens_name": "name of the parameter for the limit of a reply: max_tokens, or max_completion_tokens "
    "(OpenAI's own API)",
}


def base_url(context: BackendContext) -> str:
    return str(
        context.base_url
        or context.options.get("base_url")
        or os.environ.get("OPENAI_BASE_URL")
        or PUBLIC
    )


def key_from_environment(
    options: Mapping[str, Any], default: str, required: bool
) -> str | None:
    """Return the key in the variable that the option ``api_key_env`` names, or in
    ``default``.

    Raises OptionError if there is none and it is ``required`` or was asked for by name.
    """
    name = str(options.get("api_key_env") or default)
    key = os.environ.get(name, "").strip()
    if not key and (required or "api_key_env" in options):
        own = (
            ", or give --base-url for your own server"
            if name == "OPENAI_API_KEY"
            else ", then try again"
        )
        raise OptionError(
            f"The environment variable {quoted(name, 100)} has no key. Export it{own}."
        )
    if len(key) >= _SHORTEST_SECRET and redact(key) == key:
        raise OptionError(
            f"The key in {quoted(name, 100)} could be written into reports, because the variable's name does not say "
            "that it is one. Export it under a name that ends in _KEY."
        )
    return key or None


def check_served(served: Mapping[str, Any], reserved: Iterable[str] = RESERVED) -> None:
    """Raise OptionError if a model's served settings set what is the harness's."""
    for name in reserved:
        if name in served:
            raise OptionError(
                f"A model's 'served' cannot set '{name}', which CheeseBench sets. Remove it from the registry."
            )


def connect(context: BackendContext) -> Connection:
    check_served(context.entry.served)
    url = base_url(context)
    public = endpoint(url).host == endpoint(PUBLIC).host
    name = str(context.options.get("max_tokens_name") or MAX_TOKENS_NAMES[public])
    if name not in MAX_TOKENS_NAMES:
        raise OptionError(
            f"The option max_tokens_name is '{quoted(name, 50)}'. Known: {', '.join(MAX_TOKENS_NAMES)}."
        )
    key = key_from_environment(context.options, "OPENAI_API_KEY", required=public)
    return ChatCompletions(url, key=key, max_tokens_name=name, model=context.entry.id)


def check(context: BackendContext) -> str:
    """Return whether there is a key for the public API (``BackendSpec.check``)."""
    url = base_url(context)
    public = endpoint(url).host == endpoint(PUBLIC).host
    key = key_from_environment(context.options, "OPENAI_API_KEY", required=public)
    return f"{'a key' if key else 'no key'} for {url}; not asked"


OPENAI = BackendSpec(
    name="openai",
    connect=connect,
    check=check,
    account=lambda context: f"openai {endpoint(base_url(context)).authority}",
    options=OPTIONS,
    summary="any server that speaks OpenAI's Chat Completions (vLLM, SGLang, Ollama, llama.cpp, a gateway)",
)
