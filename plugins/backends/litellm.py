"""The backend ``litellm``: the APIs of many providers through ``litellm.acompletion``.

litellm is imported at the first call, because the import takes seconds of CPU time. It
only translates. Its retries, caches, fallbacks, limits and prices stay off, because the
harness has its own. A parameter that litellm would silently drop is refused.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from cheesebench import (
    BackendContext,
    BackendSpec,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    FaultKind,
    Message,
    OptionError,
    check_address,
    install_command,
    quoted,
)
from cheesebench.plugins.backends.faults import (
    fault_of_error,
    reply_of_error,
    retry_after,
)
from cheesebench.plugins.backends.openai import (
    RESERVED,
    body_message,
    check_served,
    form_parameters,
    key_from_environment,
    sampling_parameters,
)
from cheesebench.plugins.backends.processes import typed
from cheesebench.plugins.backends.replies import reply_in

#: Environment variables that are set before litellm is imported, so that it downloads
#: no price list, reads no ``.env`` file, and logs only errors.
ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "ERROR",
}
#: Parameters that switch off what litellm would do on its own.
OURS = {
    "num_retries": 0,
    "max_retries": 0,
    "drop_params": False,
    "stream": False,
    "caching": False,
}

#: Matches models whose API caches prompts only on request, wherever they are served.
#: Most other APIs cache without a request, or charge by the hour for a requested cache.
CLAUDE = re.compile(r"(?:^|[/.])claude|anthropic", re.IGNORECASE)

OPTIONS: Mapping[str, str] = {
    "base_url": "address of the API, if not the provider's own",
    "api_key_env": "name of the environment variable with the key (default: the one that litellm reads for the "
    "provider)",
    "api_version": "version of the API, if the provider needs one (Azure)",
    "cache_control": "true or false: ask the API to cache the constant part of prompts (default: true for Claude, "
    "false for other models)",
}

#: Kinds of fault by litellm's error class, for classes that say more than status and
#: words. A status is often litellm's own guess.
_CLASSES: dict[str, FaultKind] = {
    "Timeout": "timeout",
    "APIConnectionError": "connection",
    "AuthenticationError": "authentication",
    "NotFoundError": "unknown_model",
    "ContextWindowExceededError": "context_too_long",
    "ContentPolicyViolationError": "content_filter",
    "UnsupportedParamsError": "bad_request",
    "PaymentRequiredError": "quota",
    "APIResponseValidationError": "malformed",
}
#: Words of errors that litellm reports with a server's status although no server gave a
#: readable answer.
_WORDS: dict[FaultKind, re.Pattern[str]] = {
    "unknown_model": re.compile("llm provider not provided"),
    "connection": re.compile(
        "connection error|reset by peer|cannot connect|disconnected|payload is not completed"
    ),
    "malformed": re.compile(
        "bad status line|expecting value|unable to get json|invalid json|decode"
    ),
}


class LiteLLM:
    """An open ``Connection`` to the provider named first in the model's id."""

    _open = 0

    def __init__(self, options: Mapping[str, Any], base_url: str | None) -> None:
        key = (
            key_from_environment(options, "", required=False)[0]
            if "api_key_env" in options
            else None
        )
        if base_url:
            check_address(base_url)
        self._key_name = options.get("api_key_env")
        fixed = {
            "api_base": base_url,
            "api_key": key,
            "api_version": options.get("api_version"),
        }
        self._fixed = OURS | {name: value for name, value in fixed.items() if value}
        given = options.get("cache_control")
        self._caches = None if given is None else typed("cache_control", given, bool)
        self._library: Any = None
        self._checked: set[frozenset[str]] = set()
        LiteLLM._open += 1

    async def complete(self, request: ChatRequest) -> ChatReply:
        if self._library is None:
            # Import litellm in a thread, so that other calls can go on meanwhile.
            self._library = await asyncio.to_thread(import_litellm)
        sampling = sampling_parameters(request.sampling)
        parameters = {
            **sampling,
            **form_parameters(request.form),
            **request.extra,
        }
        self._refuse_silent_drops(request.model, sampling)
        caches = (
            CLAUDE.search(request.model) is not None
            if self._caches is None
            else self._caches
        )
        messages = [
            _with_breakpoint(message) if caches else body_message(message)
            for message in request.messages
        ]
        try:
            # litellm's own timeout starts again at every byte.
            async with asyncio.timeout(request.timeout):
                answer = await self._library.acompletion(
                    model=request.model,
                    messages=messages,
                    timeout=request.timeout,
                    **parameters,
                    **self._fixed,
                )
        except TimeoutError:
            text = f"{request.model} has not answered within {request.timeout:g} s."
            raise ChatFaultError("timeout", text) from None
        except Exception as error:
            # Any exception, even a KeyError, is a fault of this call only: the run goes
            # on.
            status = int(getattr(error, "status_code", None) or 500)
            limit = request.sampling.max_tokens
            if reply := reply_of_error(status, str(error), limit):
                return reply
            raise self._fault(error) from None
        return reply_in(answer.model_dump(), b"", request.form)

    async def close(self) -> None:
        """Close this connection. Closing the last one also closes litellm's clients,
        which all connections share.
        """
        LiteLLM._open -= 1
        if self._library is not None and not LiteLLM._open:
            await self._library.close_litellm_async_clients()

    def _refuse_silent_drops(self, model: str, parameters: Mapping[str, Any]) -> None:
        """Raise ChatFaultError if litellm refuses one of the parameters, or would
        silently drop it, as it does for some models.
        """
        if frozenset(parameters) in self._checked:
            return
        for parameter, value in parameters.items():
            try:
                sent = is_sent(self._library, model, parameter, value)
            except Exception as error:
                raise self._fault(error) from None
            if not sent:
                raise ChatFaultError(
                    "bad_request",
                    f"litellm sends no {parameter} to {model}. {_remedy(parameter)}",
                )
        self._checked.add(frozenset(parameters))

    def _fault(self, error: Exception) -> ChatFaultError:
        text = str(error)
        kind = fault_kind(error)
        refused = re.search(
            r"does(?: not|n't) support (?:parameters: \[')?([a-z_]+)", text
        )
        # A model file can drop no other parameters of a request.
        if refused and refused[1] in ("temperature", "max_tokens", "seed", "stop"):
            text = f"{quoted(text, 200)} {_remedy(refused[1])}"
        headers = getattr(error, "litellm_response_headers", None)
        if headers is None:
            headers = getattr(getattr(error, "response", None), "headers", None)
        wish = retry_after(
            {str(name).lower(): str(value) for name, value in (headers or {}).items()}
        )
        name = self._key_name or "the variable that litellm reads for this provider"
        about_key = f" The key is read from {name}." * (kind == "authentication")
        fault = ChatFaultError(kind, f"{quoted(text)}{about_key}", wish)
        fault.refused = (
            kind == "connection"
            and re.search(r"cannot connect|connection refused", text, re.I) is not None
        )
        return fault


def _with_breakpoint(message: Message) -> dict[str, Any]:
    """Return the body of a message. If the message ``stays``, the body ends with a
    cache breakpoint in Anthropic's format.
    """
    body = body_message(message)
    if not message.stays:
        return body
    content = body["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {
        **body,
        "content": [*parts[:-1], {**parts[-1], "cache_control": {"type": "ephemeral"}}],
    }


def import_litellm() -> Any:
    """Import litellm so that it logs only errors and downloads no prices."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    library: Any = importlib.import_module("litellm")
    library.suppress_debug_info = True
    library.telemetry = False
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    return library


def fault_kind(error: Exception) -> FaultKind:
    if by_words := _kind_by_words(error):
        return by_words
    classes = [one.__name__ for one in type(error).__mro__]
    by_class = next((_CLASSES[name] for name in classes if name in _CLASSES), None)
    if by_class not in (None, "authentication"):
        return by_class
    # A provider may also refuse a key because the account has no money left.
    details = {"message": str(error), "code": getattr(error, "code", None)}
    status = int(getattr(error, "status_code", None) or 500)
    read = fault_of_error(status, {"error": details}).kind
    return read if by_class is None or read == "quota" else by_class


def _kind_by_words(error: Exception) -> FaultKind | None:
    """Return the kind of fault that an error's words show, or None. Words decide only
    if litellm may have made up the error's status.
    """
    if getattr(error, "status_code", 500) not in (200, 400, 500):
        return None
    text = str(error).lower()[:2000]
    return next((kind for kind, words in _WORDS.items() if words.search(text)), None)


def is_sent(library: Any, model: str, parameter: str, value: Any) -> bool:
    """Return whether litellm sends a parameter to a model. litellm raises its own error
    if it knows that the model refuses the parameter.
    """
    name, provider, *_ = library.get_llm_provider(model)
    sent = library.utils.get_optional_params(
        model=name,
        custom_llm_provider=provider,
        drop_params=False,
        **{parameter: value},
    )
    return _holds(sent, value)


def _holds(sent: Any, value: Any) -> bool:
    """Return whether a value occurs anywhere in the sent parameters, under any name."""
    if isinstance(sent, Mapping):
        return any(_holds(inner, value) for inner in sent.values())
    return bool(sent == value)


def _remedy(parameter: str) -> str:
    return f"List the model in a model file of your own with 'drops: [{parameter}]', and name the file with --models."


def connect(context: BackendContext) -> Connection:
    """Open a connection. Raise OptionError if litellm is not installed, or an option or
    served setting is not allowed.
    """
    _check_installed(context)
    check_served(
        context.entry.served,
        (*RESERVED, *OURS, "timeout", "api_key", "api_base", "api_version"),
    )
    own = context.options.get("base_url")
    if own:  # The option is recorded, even if another address is used.
        check_address(str(own))
    return LiteLLM(context.options, context.base_url or own)


def check(context: BackendContext) -> str:
    """Return what is available (``BackendSpec.check``). Raise OptionError if litellm is
    not installed, or if the option ``api_key_env`` leads to no usable key. Other keys
    are not looked for, because only litellm knows which keys a provider needs.
    """
    _check_installed(context)
    if "api_key_env" in context.options:
        key_from_environment(context.options, "", required=True)
        return "litellm is installed; a key is set, but was not tried"
    return "litellm is installed; keys are not checked"


def _check_installed(context: BackendContext) -> None:
    if find_spec("litellm") is None:
        raise OptionError(
            f"The model '{context.entry.name}' is called through litellm, which is not installed. "
            f"Install it: {install_command('litellm')}"
        )


LITELLM = BackendSpec(
    name="litellm",
    connect=connect,
    check=check,
    account=lambda context: (
        f"litellm {context.base_url or context.entry.id.partition('/')[0]}"
    ),
    options=OPTIONS,
    summary="the APIs of Anthropic, Google, xAI and many others, addressed by litellm's ids (provider/model)",
)
