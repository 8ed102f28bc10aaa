"""The body of a Chat Completions answer -> a ChatReply; whatever is no reply becomes a fault, never a guess."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cheesebench import ChatFaultError, ChatReply, Finish, Usage, quoted
from cheesebench.plugins.backends.faults import fault_of_error

#: How servers say why a reply ended. What is not listed is "other".
_FINISH: dict[object, Finish] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens"), "length"),
}
#: Reasons that are the server's own breakdown: what it had written until then is no reply of the model.
_BROKEN_OFF = frozenset({"abort", "aborted", "cancelled", "canceled", "error"})
#: Tags that models put around their thoughts.
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought)>", re.IGNORECASE)
#: More tokens than any reply has: a number beyond it is a slip of the server.
_MOST_TOKENS = 10**9
#: Characters of a model's name that are read: what is shown of it is shorter still.
_LONGEST_NAME = 4096


def read_reply(body: bytes | bytearray) -> ChatReply:
    """Return the reply in the body of an answer with status 200; raise ChatFaultError if there is none."""
    try:
        answer = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise ChatFaultError("malformed", f"The answer is not JSON: {_beginning(body)}") from None
    return reply_in(answer, body)


def reply_in(answer: Any, body: bytes | bytearray) -> ChatReply:
    """Return the reply in the JSON of an answer; ``body`` is quoted if there is none."""
    if not isinstance(answer, dict):
        raise ChatFaultError("malformed", f"The answer is not a JSON object: {_beginning(body)}")
    if answer.get("error"):  # Gateways say 200 and mean an error.
        raise fault_of_error(200, answer)
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise ChatFaultError("malformed", f"The answer has no 'choices[0].message': {_beginning(body)}")
    if choice.get("error"):
        raise fault_of_error(200, choice)
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        raise ChatFaultError("content_filter", "The server's content filter cut off the reply.")
    if isinstance(finish, str) and finish.lower() in _BROKEN_OFF:
        raise ChatFaultError("server", f"The server ended the reply early (finish_reason '{finish}').")
    if not isinstance(message.get("content"), str | list | None):
        raise ChatFaultError(
            "malformed", f"The reply's content is neither text nor a list of parts: {_beginning(body)}"
        )
    content, thoughts = _content(message.get("content"))
    # A refusal is what the model says; it is judged like any other reply.
    content = content or _words(message.get("refusal"))
    text, inline = split_thoughts(content)
    reasoning = _words(message.get("reasoning_content")) or _words(message.get("reasoning")) or thoughts
    if not (content or reasoning):
        _check_empty(message, answer.get("usage"), body)
    return ChatReply(
        text=replace_surrogates(text),
        reasoning=replace_surrogates(join_thoughts(reasoning, inline)),
        finish=_FINISH.get(finish, "other") if isinstance(finish, str) else "other",
        usage=read_usage(answer.get("usage")),
        model=_name(_words(answer.get("model"))[:_LONGEST_NAME]),
    )


def _check_empty(message: Mapping[str, Any], usage: Any, body: bytes | bytearray) -> None:
    """Raise ChatFaultError for an empty reply that the model never wrote: a tool call, or no token at all."""
    if message.get("tool_calls") or message.get("function_call"):
        raise ChatFaultError("malformed", f"The reply is a tool call and no text: {_beginning(body)}")
    if isinstance(usage, Mapping) and usage.get("completion_tokens") == 0:
        raise ChatFaultError("malformed", f"The reply is empty (0 tokens): {_beginning(body)}")


@lru_cache(maxsize=64)
def _name(model: str) -> str:
    """Return what the server says it is, fit to be shown: for thousands of replies the same."""
    return quoted(model, 200)


def split_thoughts(text: str) -> tuple[str, str]:
    """Return a text without the thoughts in ``<think>`` tags, and the thoughts.

    A closing tag without an opening one ends thoughts that began in the prompt's template; thoughts that are not
    closed were cut off.
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
    """Return thoughts from several places as one text."""
    return "\n".join(filter(None, thoughts))


def read_usage(usage: Any) -> Usage:
    """Return the tokens that a server counted; what makes no sense counts as none."""
    if not isinstance(usage, Mapping):
        return Usage()
    prompt, completion = _tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens"))
    read, written = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = _tokens(read.get("cached_tokens") if isinstance(read, Mapping) else usage.get("prompt_cache_hit_tokens"))
    reasoning = _tokens(written.get("reasoning_tokens") if isinstance(written, Mapping) else None)
    cached = min(cached, prompt)
    return Usage(
        prompt=prompt,
        completion=completion,
        cached=cached,
        reasoning=min(reasoning, completion),
        written=min(_put_into_cache(usage), prompt - cached),
    )


def _put_into_cache(usage: Mapping[str, Any]) -> int:
    """Return the tokens that were written into a cache: providers and gateways name them differently."""
    details = usage.get("prompt_tokens_details")
    places = [usage.get("cache_creation_input_tokens")]
    if isinstance(details, Mapping):
        places += [details.get("cache_creation_tokens"), details.get("cache_write_tokens")]
    return max(map(_tokens, places))


def replace_surrogates(text: str) -> str:
    """Return the text with halves of surrogate pairs, which no file and no database takes, replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _content(content: Any) -> tuple[str, str]:
    """Return the text and the thoughts of a message's content: a string, or a list of parts."""
    if not isinstance(content, list):
        return _words(content), ""
    text, thoughts = [], []
    for part in content:
        if isinstance(part, Mapping):
            text.append(_words(part.get("text")))
            inner = part.get("thinking")
            thoughts.append(_content(inner)[0] if isinstance(inner, list) else _words(inner))
    return "".join(text), join_thoughts(*thoughts)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _tokens(value: Any) -> int:
    plausible = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return int(value) if plausible else 0


def _beginning(body: bytes | bytearray) -> str:
    """Return how a body begins: enough to see what it is."""
    return quoted(body[:400].decode("utf-8", "replace"), 120) or "(empty)"
