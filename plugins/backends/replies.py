"""Reads the answer to a successful request as a reply with its reasoning and token
counts, or as a fault.

A reply is readable text in the requested choice. An answer that the server ended early,
or that has an unknown form, is a fault that names the cause, and never an empty reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from cheesebench import (
    AnswerForm,
    ChatFaultError,
    ChatReply,
    FaultKind,
    Finish,
    Usage,
    quoted,
)
from cheesebench.plugins.backends.faults import fault_of_error

#: Spellings of why a reply ended, by meaning. They have only the letters before the
#: first colon, in lower case, without a leading "finish reason". A meaning that is a
#: kind of fault says that the model did not end the reply, whatever it had written.
_SPELT_FINISHES: Mapping[Finish | FaultKind, str] = {
    "stop": "stop stopped eos eostoken eosfound endturn endofturn endoftext stopsequence"
    " stoptoken toolcalls toolcall functioncall functioncalls tooluse complete"
    " completed done finish finished natural normal success",
    "length": "length maxtokens maxtoken maxoutputtokens maxcompletiontokens maxnewtokens"
    " maxlength modellength tokenlimit limit maxtokensreached modelcontextwindowexceeded",
    # The model wrote a malformed tool call, which counts as its own behaviour.
    "unread": "malformedfunctioncall malformedtoolcall unexpectedtoolcall toomanytoolcalls"
    " invalidtoolcall functioncallfilter",
    "content_filter": "contentfilter contentfiltered filter filtered safety safe recitation"
    " blocklist prohibitedcontent prohibited spii language imagesafety imagerecitation"
    " imageprohibitedcontent refusal sensitive blocked moderation moderated flagged"
    " guardrailintervened guardrail guardrails policy policyviolation contentpolicy"
    " contentpolicyviolation modelarmor toxic errortoxic usagepolicy copyright",
    "timeout": "timeout timedout timelimit deadlineexceeded requesttimeout errortimeout",
    "overload": "insufficientsystemresource insufficientsystemresources overload overloaded"
    " resourceexhausted capacity preempted evicted",
    "rate_limit": "ratelimit ratelimited ratelimitexceeded throttled",
    "quota": "quota quotaexceeded insufficientquota",
    "server": "abort aborted cancel cancelled canceled usercancel error errored failed failure"
    " unknownerror servererror internalerror internalservererror networkerror"
    " connectionerror disconnected interrupted terminated killed exception unavailable"
    " errorlimit noresponse",
}
_FINISHES = {
    word: meaning
    for meaning, words in _SPELT_FINISHES.items()
    for word in words.split()
}
_FAULTS = frozenset(get_args(FaultKind))
#: Spellings that mean a tool call.
_CALLS = frozenset(
    ["toolcalls", "toolcall", "functioncall", "functioncalls", "tooluse"]
)
#: Matches a tag that models put around their reasoning.
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought)>", re.IGNORECASE)
#: Known fields of a message. Any other field may be a reply in an unknown form.
_BESIDE = frozenset(
    (
        *("role", "name", "content", "refusal", "reasoning", "reasoning_content"),
        *("reasoning_details", "tool_calls", "function_call", "annotations"),
        *("citations", "id", "type", "status", "thinking_blocks"),
        "provider_specific_fields",
    )
)
#: Maximum number of characters read from a model's name. Messages show fewer.
_LONGEST_NAME = 4096


def read_reply(body: bytes | bytearray, form: AnswerForm | None = None) -> ChatReply:
    """Return the reply in the body of a successful answer. Raise ChatFaultError if
    there is none.
    """
    try:
        answer = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise _malformed(_no_json(body.decode("utf-8", "replace")), body) from None
    return reply_in(answer, body, form)


def reply_in(
    answer: Any, body: bytes | bytearray, form: AnswerForm | None = None
) -> ChatReply:
    """Return the reply in the JSON of an answer. Raise ChatFaultError if there is none.
    If the answer has an unknown form, the fault's ``answer`` quotes ``body``, which may
    be empty if the caller does not have it.

    If a tool was offered, the arguments of its call are the reply.
    """
    if not isinstance(answer, dict):
        raise _malformed("The answer is not a JSON object", body)
    # Some gateways report errors with status 200.
    if any(map(answer.get, ("error", "errors"))):
        raise fault_of_error(200, answer)
    choice = _choice(answer.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _malformed("The answer has no 'choices[0].message'", body)
    if choice.get("error"):
        raise fault_of_error(200, choice)
    finish = _finish(choice.get("finish_reason"))
    # OpenRouter adds the finish reason of the server behind it, which may be a fault.
    _finish(choice.get("native_finish_reason"))
    call = None if form is None else _arguments(message)
    said = _said(message, call, body)
    spent = _spent(answer)
    usage, doubt = count_tokens(spent)
    if not (said.text or said.thoughts or call is not None):
        _check_empty(choice, spent, finish, body)
    return ChatReply(
        text=replace_surrogates(said.text),
        reasoning=replace_surrogates(said.thoughts),
        finish=finish or "other",
        usage=usage,
        model=_name(_words(answer.get("model"))[:_LONGEST_NAME]),
        doubt=doubt,
    )


def _spent(answer: Mapping[str, Any]) -> Any:
    """Return the object with the token counts of an answer, or None."""
    beside = answer.get("x_groq")
    places = (
        answer.get("usage"),
        answer.get("usageMetadata"),
        beside.get("usage") if isinstance(beside, Mapping) else None,
    )
    return next(filter(None, places), None)


def _no_json(text: str) -> str:
    """Return a clause about a body that is not JSON."""
    text = text.strip()
    if not text:
        return "The answer is empty"
    if text.startswith("<"):
        page = "The answer is a web page instead of JSON"
        return str(fault_of_error(200, None, page, text)).rstrip(".")
    if text.startswith("{") and not text.endswith("}"):
        return f"The answer breaks off in the middle of its JSON, after {len(text)} characters"
    return "The answer is not JSON"


def _malformed(said: str, body: bytes | bytearray) -> ChatFaultError:
    """Return a fault whose ``answer`` quotes the beginning of a body."""
    fault = ChatFaultError("malformed", f"{said}.")
    fault.answer = quoted(body[:400].decode("utf-8", "replace"), 120)
    return fault


def _choice(choices: Any) -> Mapping[str, Any]:
    """Return the requested choice, which has index 0 or no index, or an empty dict."""
    listed = [one for one in choices or () if isinstance(one, dict)] if isinstance(choices, list) else []  # fmt: skip
    first = [one for one in listed if str(one.get("index", "")) in ("0", "0.0")]
    unnumbered = [one for one in listed if one.get("index") is None]
    return next(iter([*first, *unnumbered]), {})


def _finish(reason: Any) -> Finish | None:
    """Return why a reply ended, or None if that is unknown. Raise ChatFaultError if the
    model was not the cause.
    """
    meaning = _FINISHES.get(_word(reason))
    if meaning in _FAULTS:
        why = (
            "The server's content filter cut off the reply"
            if meaning == "content_filter"
            else "The server ended the reply early"
        )
        raise ChatFaultError(
            meaning,  # type: ignore[arg-type]  # _FAULTS holds FaultKind only
            f"{why} (finish_reason '{quoted(str(reason), 60)}').",
        )
    return meaning  # type: ignore[return-value]  # faults were raised above


def _word(reason: Any) -> str:
    """Return a finish reason as it is spelt in ``_SPELT_FINISHES``. SGLang puts it into
    an object.
    """
    said = reason.get("type") if isinstance(reason, Mapping) else reason
    word = re.sub("[^a-z]", "", _words(said).partition(":")[0].lower())
    return word.removeprefix("finishreason")


class _Said(NamedTuple):
    text: str
    thoughts: str


def _said(
    message: Mapping[str, Any], call: str | None, body: bytes | bytearray
) -> _Said:
    """Return a message's text (or the arguments of its call) and its reasoning. Raise
    ChatFaultError for content of an unknown form.
    """
    content = message.get("content")
    if isinstance(content, list):
        content, thoughts = _parts(content, body)
    elif isinstance(content, str | None):
        content, thoughts = content or "", ""
    else:
        raise _malformed(
            "The reply's content is neither text nor a list of parts", body
        )
    # A refusal is the model's own text, and is judged like any other reply.
    text, inline = split_thoughts(content or _words(message.get("refusal")))
    # If a tool was called, the message's text is not the answer but reasoning.
    if call is not None:
        text, inline = call, join_thoughts(inline, text)
    fields = map(_words, (message.get("reasoning_content"), message.get("reasoning")))
    return _Said(text, join_thoughts(next(filter(None, fields), thoughts), inline))


def _parts(parts: list[Any], body: bytes | bytearray) -> tuple[str, str]:
    """Return the text and the reasoning in a list of parts. Raise ChatFaultError if the
    list is empty, or has a part of an unknown form, which may hold text.
    """
    read = [_part(part) for part in parts if part is not None]
    if not read or None in read:
        raise _malformed(
            "The reply's content has no part, or one of an unknown form", body
        )
    known = [one for one in read if one is not None]
    return "".join(one.text for one in known), join_thoughts(
        *(one.thoughts for one in known)
    )


def _part(part: Any) -> _Said | None:
    """Return the text and the reasoning of one part, or None if its form is unknown."""
    if isinstance(part, str):
        return _Said(part, "")
    if not isinstance(part, Mapping):
        return None
    kind = str(part.get("type", "")).lower()
    if kind.startswith(("thinking", "reasoning", "redacted")) or part.get("thought") is True or "thinking" in part:  # fmt: skip
        return _Said("", _thoughts(part))
    text = part.get("refusal") if kind == "refusal" else part.get("text")
    if isinstance(text, Mapping):
        text = text.get("value")
    return _Said(text, "") if isinstance(text, str) else None


def _thoughts(part: Mapping[str, Any]) -> str:
    """Return the reasoning in a part. It is a text, or a list of parts."""
    for inner in map(part.get, ("thinking", "text", "reasoning", "summary", "content")):
        if isinstance(inner, list):
            inner = "".join(_words(one.get("text")) for one in inner if isinstance(one, Mapping))  # fmt: skip
        if inner and isinstance(inner, str):
            return inner
    return ""


def _arguments(message: Mapping[str, Any]) -> str | None:
    """Return the arguments of the first tool call as JSON, or None if there is no
    readable call. Some servers send an object instead of JSON text.
    """
    calls = message.get("tool_calls")
    first = (
        calls[0]
        if isinstance(calls, list) and calls
        else {"function": message.get("function_call")}
    )
    function = first.get("function") if isinstance(first, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if isinstance(arguments, Mapping):
        return json.dumps(arguments)
    return arguments if isinstance(arguments, str) else None


def _check_empty(
    choice: Mapping[str, Any],
    usage: Any,
    finish: Finish | None,
    body: bytes | bytearray,
) -> None:
    """Raise ChatFaultError unless it is clear that the model itself wrote an empty
    reply. It is not clear, for example, if the answer has a tool call, text elsewhere,
    no tokens, or an unknown finish reason.
    """
    message = choice["message"]
    if message.get("tool_calls") or message.get("function_call"):
        raise _malformed("The reply has a tool call, but no text", body)
    elsewhere = [name for name in message if name not in _BESIDE and message[name]]
    elsewhere += [name for name in ("text", "delta") if choice.get(name)]
    # Gemini leaves the content out if reasoning has used up the limit, or if the call
    # was malformed.
    cut_off = finish == "length" and count_tokens(usage)[0].completion > 0
    if elsewhere or not ("content" in message or cut_off or finish == "unread"):
        held = f", but a part '{quoted(str(elsewhere[0]), 30)}'" if elsewhere else ""
        raise _malformed(f"The reply has no content{held}", body)
    # The model made a malformed call, which the server does not show.
    if finish == "unread":
        return
    if _is_filtered(choice.get("content_filter_results")):
        raise ChatFaultError(
            "content_filter", "The server's content filter has removed the reply."
        )
    if _wrote_nothing(usage) and not cut_off:
        raise _malformed("The server sends an empty reply (0 tokens)", body)
    reason = choice.get("finish_reason")
    if finish is None or _word(reason) in _CALLS:
        said = quoted(json.dumps(reason, default=str), 60)
        raise _malformed(
            f"The reply is empty, and finish_reason {said} does not say why", body
        )


def _is_filtered(results: Any) -> bool:
    """Return whether Azure's filter says of any category that it has removed text."""
    found = results.values() if isinstance(results, Mapping) else ()
    return any(
        isinstance(one, Mapping) and one.get("filtered") is True for one in found
    )


@lru_cache(maxsize=64)
def _name(model: str) -> str:
    """Return the server's name for the model, made fit for display. Thousands of
    replies have the same name, so results are cached.
    """
    return quoted(model, 200)


def split_thoughts(text: str) -> tuple[str, str]:
    """Return a text without the reasoning in ``<think>`` tags, and this reasoning.

    A closing tag without an opening one ends reasoning that began in the prompt's
    template. An opening tag without a closing one means that the reasoning was cut off.
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
            else:  # Everything before this tag was reasoning.
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


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced, because neither files nor
    databases accept them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


#: Larger token counts are taken for errors of the server.
_MOST_TOKENS = 10**7
#: Where servers report each count: a name, or ``object.name``, in lower-case letters
#: only. If a server reports a count in several places, the largest one is used.
_COUNTS: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompttokens", "inputtokens", "prompttokencount", "inputtokencount", "promptevalcount",
        "input", "billedunits.inputtokens"),
    "completion": (
        "completiontokens", "outputtokens", "candidatestokencount", "outputtokencount", "evalcount",
        "generatedtokens", "output", "billedunits.outputtokens"),
    "total": ("totaltokens", "totaltokencount"),
    "reasoning": (
        "completiontokensdetails.reasoningtokens", "outputtokensdetails.reasoningtokens", "reasoningtokens",
        "thoughtstokencount", "thinkingtokens", "completiontokensdetails.thinkingtokens"),
    "cached": (
        "prompttokensdetails.cachedtokens", "inputtokensdetails.cachedtokens", "cachedtokens",
        "promptcachehittokens", "cachereadinputtokens", "cachedcontenttokencount",
        "cachedprompttokens", "inputtokensdetails.cacheread", "numcachedtokens"),
    "written": (
        "cachecreationinputtokens", "cachecreation", "prompttokensdetails.cachecreationtokens",
        "prompttokensdetails.cachewritetokens", "cachewriteinputtokens",
        "inputtokensdetails.cachewritetokens", "inputtokensdetails.cachecreationtokens"),
}  # fmt: skip


def count_tokens(usage: Any) -> tuple[Usage, str]:
    """Return the token counts of a call, and, in words, a contradiction between the
    server's counts (usually empty).

    Impossible counts are ignored. The reply's tokens are at least the total minus the
    prompt, so that they include reasoning wherever the server counts it. If there are
    more cached tokens than prompt tokens, the server counts them separately, unless the
    total contradicts this.
    """
    counts = dict(_counts(usage))
    prompt, completion, total, reasoning, cached, written = (
        max((counts.get(place, 0) for place in places), default=0)
        for places in _COUNTS.values()
    )
    prompt, cached, written, doubt = _with_cache(
        prompt, completion, total, cached, written
    )
    if completion and not prompt:
        prompt = max(0, total - completion)
    if total and total < prompt + completion:
        doubt = f"{total:,} tokens in all, but {prompt:,} prompt tokens and {completion:,} reply tokens"
    beside = reasoning if reasoning > completion else 0
    reply = max(completion + beside, total - prompt)
    return Usage(
        prompt=prompt,
        completion=reply,
        cached=cached,
        reasoning=min(reasoning, reply),
        written=written,
    ), doubt


def _with_cache(
    prompt: int, completion: int, total: int, cached: int, written: int
) -> tuple[int, int, int, str]:
    """Return the numbers of prompt tokens, of prompt tokens read from the cache, and of
    prompt tokens written to the cache, and a contradiction in words or "".

    Some servers, such as Anthropic's, count the prompt without its cached part. The
    total, if there is one, shows how the server counts.
    """
    cache = cached + written
    beside = prompt + cache + completion
    if cache and (total == beside or (cache > prompt and not 0 < total < beside)):
        return prompt + cache, cached, written, ""
    if cache <= prompt:
        return prompt, cached, written, ""
    kept = min(cached, prompt)
    doubt = f"{cache:,} cached tokens, but {prompt:,} prompt tokens"
    return prompt, kept, min(written, prompt - kept), doubt


def _wrote_nothing(usage: Any) -> bool:
    """Return whether the server says that the reply has 0 tokens, whatever the total
    is.
    """
    counts = dict(_counts(usage))
    said = [counts[name] for name in _COUNTS["completion"] if name in counts]
    thought = [counts[name] for name in _COUNTS["reasoning"] if name in counts]
    return bool(said) and not any((*said, *thought))


def _counts(usage: Any, place: str = "") -> list[tuple[str, int]]:
    """Return the counts in a usage object. Their names are spelt as in ``_COUNTS``."""
    found: list[tuple[str, int]] = []
    for name, value in usage.items() if isinstance(usage, Mapping) else ():
        key = re.sub("[^a-z]", "", str(name)[:60].lower())
        if isinstance(value, Mapping) and not place:
            parts = _counts(value, f"{key}.")
            # Anthropic splits its count of tokens written to the cache by their
            # lifetime.
            found += [*parts, (key, sum(count for _, count in parts))]
        else:
            found.append((f"{place}{key}", _tokens(value)))
    return found


def _tokens(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value):
        value = int(value)
    plausible = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value <= _MOST_TOKENS
    )
    return int(value) if plausible else 0
