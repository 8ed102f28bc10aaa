"""The backend ``openai``: any local or remote server that speaks OpenAI's Chat
Completions.

This module has the client, which uses plain aiohttp, and then the backend. The modules
``faults`` and ``replies`` interpret answers.

The client takes little CPU time per call (OpenAI's own SDK takes more than ten times as
much: ``benchmarks/client.py``) and is safe with servers that misbehave. A connection
carries one call, so data sent late, twice or unasked can never become another call's
reply. Bodies are bounded, never decompressed, and read under one deadline. Redirects
are not followed, because they would carry the key elsewhere.

aiohttp is imported on first use, because runs that ask no model do not need it.
"""

from __future__ import annotations

import asyncio
import base64
import difflib
import ipaddress
import json
import os
import re
import ssl
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
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
    Message,
    OptionError,
    Sampling,
    ServerFacts,
    __version__,
    check_address,
    quoted,
    redact,
)
from cheesebench.plugins.backends.faults import (
    fault_of_answer,
    reply_of_error,
)
from cheesebench.plugins.backends.replies import read_reply

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

#: Maximum number of bytes in a reply's body. 100,000 tokens take less than half of
#: this.
MAX_BODY = 4 * 1024 * 1024
#: Maximum number of bytes read from an error's body.
MAX_ERROR_BODY = 64 * 1024
#: Time limit for opening a connection, including TLS, in seconds.
CONNECT_TIMEOUT = 20.0
#: Time limit of a request about the server itself, in seconds.
FACTS_TIMEOUT = 5.0
#: Maximum number of listed models that an error names.
MOST_NAMED = 5
#: Ollama's default context, in tokens. Ollama silently cuts longer prompts.
OLLAMA_CONTEXT = 4096
#: Parts of the request body that the registry must not set.
RESERVED = ("messages", "model", "stream", "n")
#: The two names that servers use for the request's limit on reply tokens.
MAX_TOKENS_NAMES = ("max_tokens", "max_completion_tokens")
#: Words with which a server says that it does not know a parameter.
_UNKNOWN = (
    r"(un(supported|known|recognized|expected)|extra|not (supported|permitted|allowed))"
)
#: For each name of the limit, matches the error message of a server that wants this
#: name instead of the other one.
_OTHER_NAME = {
    "max_completion_tokens": re.compile(
        r"\bmax_tokens\b.*\bmax_completion_tokens\b", re.DOTALL | re.IGNORECASE
    ),
    "max_tokens": re.compile(
        rf"{_UNKNOWN}.*\bmax_completion_tokens\b|\bmax_completion_tokens\b.*{_UNKNOWN}",
        re.DOTALL | re.IGNORECASE,
    ),
}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Headers = Callable[[ChatRequest], Mapping[str, str]]


class ChatCompletions:
    """An open ``Connection`` to one server. It must be created inside the event loop,
    and raises OptionError for an invalid address, or a key that no header can have.

    ``max_tokens_name`` is the request's name for the limit on reply tokens. ``headers``
    returns more headers for a request, for example for a load balancer. If
    ``constrains``, a form is requested as a schema of the reply, because the server
    does not enforce tool calls. ``model`` is the model's id in the server's own lists,
    and ``about_key`` is added to errors about the key.

    The harness limits the calls in flight, so the connection pool has no limit.
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
        about_key: str = "",
    ) -> None:
        import aiohttp

        self._url = endpoint(base_url)
        self.where = str(self._url.with_path("").with_query(None))
        self._max_tokens_name = max_tokens_name
        self._tried = {max_tokens_name}
        self._headers = headers
        self._constrains = constrains
        self._model = model.removesuffix(":latest")
        self._about_key = about_key
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
        import aiohttp

        try:
            async with asyncio.timeout(request.timeout):
                return await self._complete(request)
        except (aiohttp.ClientError, OSError) as error:
            raise self._broken_off(error, request.timeout) from None
        except ChatFaultError as fault:
            if fault.kind == "unknown_model":
                raise await self._with_names(fault) from None
            raise

    def _broken_off(self, error: Exception, timeout: float) -> ChatFaultError:
        import aiohttp

        faults: tuple[tuple[tuple[type[Exception], ...], FaultKind, str], ...] = (
            (
                (aiohttp.ConnectionTimeoutError,),
                "connection",
                f"accepted no connection within {CONNECT_TIMEOUT:g} s",
            ),
            ((TimeoutError,), "timeout", f"has not answered within {timeout:g} s"),
            # Later calls would fail in the same way, so this counts as a fault of the
            # account, which stops the model.
            (
                (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError),
                "authentication",
                f"has a certificate that is not trusted ({quoted(str(error))})",
            ),
            (
                (aiohttp.ClientResponseError, aiohttp.InvalidURL),
                "malformed",
                f"does not speak HTTP ({quoted(str(error), 120)})",
            ),
            (
                (aiohttp.ClientConnectorError,),
                "connection",
                f"cannot be reached ({_reason(error)})",
            ),
            ((Exception,), "connection", f"dropped the connection ({_reason(error)})"),
        )
        kind, said = next(one[1:] for one in faults if isinstance(error, one[0]))
        fault = self._fault(kind, said)
        connects = isinstance(error, aiohttp.ClientConnectorError)
        fault.refused = connects and kind == "connection"
        return fault

    async def close(self) -> None:
        await self._session.close()

    async def facts(self) -> ServerFacts:
        """Return what the server says about itself, and None for what it does not say.
        llama.cpp, vLLM and Ollama each say it at a different path.
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
        """Return the entry for this model in a list of models, or the list's only
        entry, or an empty dict.
        """
        models = [one for one in listed.get(key) or () if isinstance(one, dict)]
        own = [
            one
            for one in models
            if str(one.get(name)).removesuffix(":latest") == self._model
        ]
        return own[0] if own else models[0] if len(models) == 1 else {}

    async def _get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path, or an empty dict if there is none."""
        found = await self.get_json(path, FACTS_TIMEOUT)
        return found if isinstance(found, dict) else {}

    async def _with_names(self, fault: ChatFaultError) -> ChatFaultError:
        """Return a fault that also names models that the server lists, the most similar
        ones first.
        """
        base = self._url.path.removesuffix("/chat/completions")
        names = _ids((await self._get(f"{base}/models")).get("data"))
        near = difflib.get_close_matches(self._model, names, MOST_NAMED, 0.0)
        if not near:
            return fault
        more = f" and {len(names) - len(near)} more" * (len(names) > len(near))
        known = ", ".join(quoted(name, 80) for name in near)
        said = f"{str(fault).rstrip('.')}. It lists {known}{more}."
        return ChatFaultError(fault.kind, said, fault.retry_after)

    async def get_json(self, path: str, timeout: float) -> Any:
        """Return the JSON value at a path, or None if there is none within ``timeout``
        seconds.
        """
        import aiohttp

        try:
            async with (
                asyncio.timeout(timeout),
                self._session.get(
                    self._url.with_path(path), allow_redirects=False, proxy=self._proxy
                ) as response,
            ):
                body = await _read(response, MAX_BODY)
                return json.loads(body) if response.status == 200 else None
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError, RecursionError):
            return None

    async def _complete(self, request: ChatRequest) -> ChatReply:
        if self._constrains and request.form is not None:
            request = replace(request, form=replace(request.form, by_tool=False))
        name = self._max_tokens_name
        try:
            return await self._post(request, name)
        except ChatFaultError as fault:
            # The server may not accept the name of the limit. Asking again with the
            # other name does not count as another attempt.
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
            body = (await _read(response, MAX_ERROR_BODY)).decode("utf-8", "replace")
            if response.status < 300:
                raise self._fault(
                    "malformed",
                    f"answers {response.status}, which cannot be a reply",
                )
            if response.status < 400:
                place = quoted(response.headers.get("Location", "nowhere"), 100)
                # A temporary redirect, for example by a gateway that is restarting, is
                # retried. A permanent one means that the address is wrong.
                kind: FaultKind = (
                    "bad_request" if response.status in (301, 308) else "server"
                )
                raise self._fault(
                    kind,
                    f"redirects to {place}; give the final address with --base-url",
                )
            limit = request.sampling.max_tokens
            if reply := reply_of_error(response.status, body, limit):
                return reply
            fault = fault_of_answer(response.status, body, response.headers, self.where)
            if fault.kind == "authentication" and self._about_key:
                said = str(fault).rstrip(". ")
                raise ChatFaultError(fault.kind, f"{said}. {self._about_key}")
            raise fault

    async def _body(self, response: aiohttp.ClientResponse) -> bytearray:
        framing = response.headers.getall("Transfer-Encoding", [])
        if [one.lower() for one in framing] not in ([], ["chunked"]):
            # Raise the fault at once, because aiohttp would wait for the connection to
            # close.
            raise self._fault(
                "malformed",
                f"sends its reply in the transfer encoding '{quoted(', '.join(framing), 30)}', which is not supported",
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
    """Return the address of Chat Completions below a base URL. If the URL has no path,
    ``/v1`` is added. Raise OptionError for a URL that is invalid, or may hold a key.
    """
    from yarl import URL

    check_address(base_url, query=True)
    url = URL(base_url)
    path = url.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return url.with_path(f"{path}/chat/completions").with_query(url.query)


def encode(request: ChatRequest, max_tokens_name: str = "max_tokens") -> bytes:
    """Return the body of a request. ``extra``, the 'served' settings of the model's
    entry, overrides all other parameters.
    """
    sampling = sampling_parameters(request.sampling)
    limit = sampling.pop("max_tokens", None)
    if limit is not None and not request.extra.keys() & set(MAX_TOKENS_NAMES):
        sampling[max_tokens_name] = limit
    body = {
        "model": request.model,
        "messages": [body_message(message) for message in request.messages],
        **sampling,
        **form_parameters(request.form),
        **request.extra,
    }
    return _ENCODER.encode(body).encode("utf-8", "replace")


def sampling_parameters(sampling: Sampling) -> dict[str, Any]:
    """Return the sampling parameters that are set, under OpenAI's names."""
    values = {
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def form_parameters(form: AnswerForm | None) -> dict[str, Any]:
    """Return the parameters that request a form of the reply: a tool that must be
    called, or a schema of the reply. Without a form there are none.
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
    # llama.cpp knows only words such as "required" here, and no tool names.
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
    }


def body_message(message: Message) -> dict[str, Any]:
    """Return a message in OpenAI's form: text, or a list of parts if there are
    pictures.
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


def _ids(listed: Any) -> list[str]:
    """Return the ids in a server's list of models, or an empty list if it is none."""
    models = listed if isinstance(listed, list) else []
    return [str(one["id"]) for one in models if isinstance(one, dict) and "id" in one]


def _count(said: object) -> int | None:
    return (
        said
        if isinstance(said, int) and not isinstance(said, bool) and said > 0
        else None
    )


async def _read(response: aiohttp.ClientResponse, most: int) -> bytearray:
    """Return the body, or its first ``most`` bytes."""
    body = bytearray()
    while len(body) < most and (piece := await response.content.readany()):
        body += piece
    return body[:most]


def _header_value(key: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise OptionError(
            "The key or header value contains a character that is not allowed in an HTTP header, such as a line "
            "break. Export it again."
        )
    return key


def _reason(error: Exception) -> str:
    """Return why there is no connection. The address is left out, because the fault
    already names it.
    """
    cause = getattr(error, "os_error", None)
    # An SSL error's number is not a system error number.
    if isinstance(cause, ssl.SSLError):
        said = f"TLS: {cause.reason or cause}"
        if cause.reason == "WRONG_VERSION_NUMBER":
            said = "TLS: it speaks another protocol, perhaps plain http://"
    elif isinstance(cause, OSError):
        number = cause.errno or 0
        said = os.strerror(number) if number > 0 else cause.strerror or str(cause)
    else:
        said = _broken_off_where(str(error))
    return quoted(said, 200) or type(cause or error).__name__


def _broken_off_where(said: str) -> str:
    """Return the text of an error of aiohttp, with the place in place of its wording if
    a reply has broken off.
    """
    if not said.startswith("Response payload is not completed"):
        return said
    received = re.search(r"received (\d+ of \d+ bytes)", said)
    return f"after {received[1]}" if received else "in the middle of its reply"


def _proxy(url: URL) -> str | None:
    """Return the proxy that the environment sets for an address, or None. Addresses of
    this machine need no proxy.
    """
    if _is_loopback(url.host or ""):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(url.host or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


#: Minimum number of characters of a secret. Shorter keys ("EMPTY", "x") are no secrets,
#: and removing them from reports would remove ordinary words.
_SHORTEST_SECRET = 8
#: The default base URL.
PUBLIC = "https://api.openai.com/v1"


OPTIONS: Mapping[str, str] = {
    "base_url": "address of the server, including /v1 (default: the value of OPENAI_BASE_URL, or OpenAI's API)",
    "api_key_env": "name of the environment variable with the key (default: OPENAI_API_KEY)",
    "headers": "more headers, separated by commas, each with the environment variable that has its value: "
    "api-key=AZURE_API_KEY",
    "max_tokens_name": "name of the parameter that limits a reply: max_tokens (default), or max_completion_tokens (default "
    "for OpenAI's own API)",
}


def base_url(context: BackendContext) -> str:
    """Return the address of the server. Raise OptionError if the option ``base_url`` is
    not valid or may hold a key, even if another address is used, because the option is
    recorded.
    """
    own = context.options.get("base_url")
    if own:
        check_address(str(own), query=True)
    return str(context.base_url or own or os.environ.get("OPENAI_BASE_URL") or PUBLIC)


def key_from_environment(
    options: Mapping[str, Any], default: str, required: bool
) -> tuple[str | None, str]:
    """Return a key, or None, and a sentence for errors about the key. The key is in the
    environment variable that the option ``api_key_env`` names, by default in
    ``default``.

    Raise OptionError for an invalid name, for a key that reports could show, and if
    there is no key although it is ``required`` or the option names one.
    """
    name = str(options.get("api_key_env") or default)
    if name and (key := secret_in(variable_name("api_key_env", name))):
        return key, f"The server refuses the key in {name}."
    if required or "api_key_env" in options:
        own = (
            ", or give --base-url for your own server"
            if name == "OPENAI_API_KEY" and "api_key_env" not in options
            else ", then try again"
        )
        raise OptionError(
            f"The environment variable {quoted(name, 100)} has no key. Export it{own}."
        )
    if options.get("headers"):
        return (
            None,
            "The server refuses the headers given by the option headers.",
        )
    return (
        None,
        f"{name} is not set, or empty (in CI, a job of a fork sees no secrets).",
    )


def variable_name(option: str, given: object) -> str:
    """Return the name of an environment variable that an option gives. Raise
    OptionError if it is not such a name.
    """
    name = str(given)
    if not re.fullmatch("[A-Z_][A-Z0-9_]{0,99}", name):
        # The value may be the key itself, so it must not be shown.
        raise OptionError(
            f"The value of the option {option} is not the name of an environment variable (capitals, digits and _). "
            "Export the key under such a name, and give the name."
        )
    return name


def secret_in(name: str) -> str:
    """Return the key in an environment variable, or "". Raise OptionError if the key is
    long enough to be a secret, and reports could show it.
    """
    key = os.environ.get(name, "").strip()
    if len(key) >= _SHORTEST_SECRET and redact(key) == key:
        raise OptionError(
            f"The key in {quoted(name, 100)} could be written into reports, because the variable's name does not show "
            "that it holds a key. Export it under a name that ends in _KEY."
        )
    return key


#: Matches headers that the HTTP client itself sets or needs, which an option must not
#: replace.
_TAKEN = re.compile(
    "accept|accept-encoding|connection|content-.*|cookie|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade"
    "|user-agent",
    re.IGNORECASE,
)


def own_headers(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of the option ``headers``, with the values of their
    environment variables: ``{api-key: AZURE_API_KEY}``, or on the command line
    ``api-key=AZURE_API_KEY``.

    Raise OptionError for a header that cannot be set, or a variable without a usable
    value.
    """
    given = options.get("headers") or {}
    if isinstance(given, str):
        given = dict(part.strip().partition("=")[::2] for part in given.split(","))
    if not isinstance(given, Mapping):
        raise OptionError(
            "The option headers must map names of headers to names of environment variables: {x-key: GATEWAY_KEY}."
        )
    found = {}
    for header, variable in given.items():
        name = str(header)
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name) or _TAKEN.fullmatch(name):
            raise OptionError(
                f"The option headers cannot set '{quoted(name, 20)}'. Name a header of your gateway, such as api-key."
            )
        value = secret_in(variable_name(f"headers ({name})", variable))
        if not value:
            raise OptionError(
                f"The environment variable {variable} (header {name}) is not set, or empty. Export it, then try again."
            )
        found[name] = _header_value(value)
    return found


#: Matches the name of a 'served' setting whose value is usually a secret.
_SECRET = re.compile(
    r"(?<!cache_)key|token$|secret|passw|authori[sz]ation|credential|headers?$|cookie|session_?id$"
    r"|^(user|auth|pass|pwd|bearer|jwt|sig|signature)$",
    re.IGNORECASE,
)


def check_served(served: Mapping[str, Any], reserved: Iterable[str] = RESERVED) -> None:
    """Raise OptionError if a model's 'served' settings contain a parameter that the
    harness sets, or may contain a key, because these settings are recorded.
    """
    for name in reserved:
        if name in served:
            raise OptionError(
                f"A model's 'served' cannot set '{name}', which CheeseBench sets. Remove it from the registry."
            )
    if secret := _secret_name(served):
        raise OptionError(
            f"A model's 'served' has '{quoted(secret, 60)}', which may be a key, and would be recorded. Remove it from "
            "the registry; a key belongs in an environment variable (options: {api_key_env: NAME})."
        )


def _secret_name(settings: Any) -> str:
    """Return the name of a setting, at any depth, that may hold a key, or "" if there
    is none. Either the name says so, or ``redact`` finds a key in the value.
    """
    if isinstance(settings, list):
        return next(filter(None, map(_secret_name, settings)), "")
    for name, value in settings.items() if isinstance(settings, Mapping) else ():
        named = isinstance(value, str | Mapping) and _SECRET.search(str(name))
        if value and (named or redact(str(value)) != str(value)):
            return str(name)
        if inner := _secret_name(value):
            return inner
    return ""


def connect(context: BackendContext) -> Connection:
    check_served(context.entry.served)
    url = base_url(context)
    public = endpoint(url).host == endpoint(PUBLIC).host
    name = str(context.options.get("max_tokens_name") or MAX_TOKENS_NAMES[public])
    if name not in MAX_TOKENS_NAMES:
        raise OptionError(
            f"The option max_tokens_name is '{quoted(name, 50)}'. Known: {', '.join(MAX_TOKENS_NAMES)}."
        )
    key, about_key = key_from_environment(
        context.options, "OPENAI_API_KEY", required=public
    )
    headers = own_headers(context.options)
    return ChatCompletions(
        url,
        key=key,
        max_tokens_name=name,
        headers=lambda request: headers,
        model=context.entry.id,
        about_key=about_key,
    )


def check(context: BackendContext) -> str:
    """Return in words whether there is a key for the server (``BackendSpec.check``).
    Raise OptionError for an invalid option or a missing key.
    """
    url = base_url(context)
    public = endpoint(url).host == endpoint(PUBLIC).host
    key, _ = key_from_environment(context.options, "OPENAI_API_KEY", required=public)
    key = key or next(iter(own_headers(context.options).values()), None)
    return f"{'a key' if key else 'no key'} for {url}; the server was not asked"


OPENAI = BackendSpec(
    name="openai",
    connect=connect,
    check=check,
    account=lambda context: f"openai {endpoint(base_url(context)).authority}",
    options=OPTIONS,
    summary="any server that speaks OpenAI's Chat Completions (vLLM, SGLang, Ollama, llama.cpp, a gateway)",
)
