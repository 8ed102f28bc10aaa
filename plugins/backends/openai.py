"""The backend ``openai``: any server that speaks OpenAI's Chat Completions, near or far."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from cheesebench import BackendContext, BackendSpec, Connection, OptionError, quoted
from cheesebench.plugins.backends.chat_completions import RESERVED, ChatCompletions, endpoint

#: Where calls go by default.
PUBLIC = "https://api.openai.com/v1"
#: What the limit of a reply may be called in the request.
MAX_TOKENS_NAMES = ("max_tokens", "max_completion_tokens")

OPTIONS: Mapping[str, str] = {
    "base_url": "address of the server, up to /v1 (default: OPENAI_BASE_URL, or the public API)",
    "api_key_env": "name of the environment variable with the key (default: OPENAI_API_KEY)",
    "max_tokens_name": "name of the parameter for the limit of a reply: max_tokens, or max_completion_tokens "
    "(OpenAI's own API)",
}


def base_url(context: BackendContext) -> str:
    """Return where the calls go."""
    return str(context.base_url or context.options.get("base_url") or os.environ.get("OPENAI_BASE_URL") or PUBLIC)


def key_from_environment(options: Mapping[str, Any], default: str, required: bool) -> str | None:
    """Return the key in the variable that the option ``api_key_env`` names, or in ``default``.

    Raises OptionError if there is none and it is ``required`` or was asked for by name.
    """
    name = str(options.get("api_key_env") or default)
    key = os.environ.get(name, "").strip()
    if not key and (required or "api_key_env" in options):
        own = ", or give --base-url for your own server" if name == "OPENAI_API_KEY" else ", then try again"
        raise OptionError(f"The environment variable {quoted(name, 100)} has no key. Export it{own}.")
    return key or None


def check_served(served: Mapping[str, Any], reserved: Iterable[str] = RESERVED) -> None:
    """Raise OptionError if a model's served settings set what is the harness's."""
    for name in reserved:
        if name in served:
            raise OptionError(
                f"A model's 'served' cannot set '{name}', which CheeseBench sets. Remove it from the registry."
            )


def connect(context: BackendContext) -> Connection:
    """Open a connection to the server."""
    check_served(context.entry.served)
    url = base_url(context)
    public = endpoint(url).host == endpoint(PUBLIC).host
    name = str(context.options.get("max_tokens_name") or MAX_TOKENS_NAMES[public])
    if name not in MAX_TOKENS_NAMES:
        raise OptionError(f"The option max_tokens_name is '{quoted(name, 50)}'. Known: {', '.join(MAX_TOKENS_NAMES)}.")
    key = key_from_environment(context.options, "OPENAI_API_KEY", required=public)
    return ChatCompletions(url, key=key, max_tokens_name=name)


OPENAI = BackendSpec(
    name="openai",
    connect=connect,
    account=lambda context: f"openai {endpoint(base_url(context)).authority}",
    options=OPTIONS,
    summary="any server that speaks OpenAI's Chat Completions (vLLM, SGLang, Ollama, llama.cpp, a gateway)",
)
