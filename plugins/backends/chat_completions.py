"""Chat Completions over plain aiohttp: the client of every backend whose server speaks OpenAI's protocol.

It is written for little CPU time per call and for servers that misbehave: bodies are bounded, never decompressed,
and read under one time-out; redirects are not followed, because they would carry the key elsewhere. What it needs is
imported when it is used: most runs ask no model.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cheesebench import ChatFaultError, ChatReply, ChatRequest, FaultKind, Message, OptionError, __version__, quoted
from cheesebench.plugins.backends.faults import fault_of_answer
from cheesebench.plugins.backends.replies import read_reply

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

#: Largest reply that is read, in bytes. A reply of 100,000 tokens has about half of it.
MAX_BODY = 4 * 1024 * 1024
#: Most of an error's body that is read, in bytes.
MAX_ERROR_BODY = 64 * 1024
#: Seconds until a server must have taken a connection.
CONNECT_TIMEOUT = 20.0
#: Seconds that an idle connection is kept: less than uvicorn (5), so that we do not call into a closing one.
KEEP_ALIVE = 4.0
#: Shorter keys ("EMPTY", "x") are no secrets, and would blot out ordinary words.
SHORTEST_KEY = 8
#: Parts of the request body that are not for the registry to set.
RESERVED = ("messages", "model", "stream", "n")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Headers = Callable[[ChatRequest], Mapping[str, str]]


class ChatCompletions:
    """An open connection to one server (a ``Connection``): create it inside the event loop.

    ``max_tokens_name`` is what the limit of a reply is called in the body; ``headers`` returns headers of one
    request (a balancer's, say). The harness bounds the calls in flight, so the pool of connections is not bounded.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: str | None = None,
        max_tokens_name: str = "max_tokens",
        headers: Headers | None = None,
    ) -> None:
        import aiohttp

        self._url = endpoint(base_url)
        self.where = str(self._url.with_path("").with_query(None))
        self._key = key or ""
        self._max_tokens_name = max_tokens_name
        self._headers = headers
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
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=common,
            auto_decompress=False,
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply, or raise ChatFaultError."""
        import asyncio
        import ssl

        import aiohttp

        try:
            async with asyncio.timeout(request.timeout):
                reply = await self._complete(request)
        except TimeoutError as error:
            if isinstance(error, aiohttp.ConnectionTimeoutError):
                raise self._fault("connection", f"accepted no connection within {CONNECT_TIMEOUT:g} s") from None
            raise self._fault("timeout", f"has not answered within {request.timeout:g} s") from None
        except (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError) as error:
            # No later call will be more welcome: it counts as a matter of the account.
            raise self._fault(
                "authentication", f"has a certificate that is not trusted ({quoted(str(error))})"
            ) from None
        except (aiohttp.ClientResponseError, aiohttp.InvalidURL) as error:
            raise self._fault(
                "malformed", f"does not speak HTTP ({quoted(self._without_key(str(error)), 120)})"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            said = quoted(self._without_key(_reason(error)), 200) or type(error).__name__
            raise self._fault("connection", f"cannot be reached ({said})") from None
        except ChatFaultError as fault:
            raise ChatFaultError(fault.kind, self._without_key(str(fault)), fault.retry_after) from None
        return without_key(reply, self._key)

    async def close(self) -> None:
        """Close all sockets."""
        await self._session.close()

    async def _complete(self, request: ChatRequest) -> ChatReply:
        async with self._session.post(
            self._url,
            data=encode(request, self._max_tokens_name),
            headers=self._headers(request) if self._headers else None,
            allow_redirects=False,
            proxy=self._proxy,
        ) as response:
            if 200 <= response.status < 300:
                return read_reply(self._without_key_in(await self._body(response)))
            body = self._without_key_in(await _read(response, MAX_ERROR_BODY))
            if response.status < 300:
                raise self._fault("malformed", f"answers {response.status}, which is no answer to a question")
            if response.status < 400:
                place = quoted(response.headers.get("Location", "nowhere"), 100)
                # A stray temporary redirect (a gateway that restarts) is retried; a permanent one is a wrong address.
                kind: FaultKind = "bad_request" if response.status in (301, 308) else "server"
                raise self._fault(kind, f"redirects to {place}; give the final address with --base-url")
            raise fault_of_answer(response.status, body, response.headers, self.where)

    async def _body(self, response: aiohttp.ClientResponse) -> bytearray:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding.lower() != "identity":
            raise self._fault("malformed", f"sends its reply as '{quoted(encoding, 30)}', which was not requested")
        announced = response.content_length or 0
        if announced > MAX_BODY or len(body := await _read(response, MAX_BODY + 1)) > MAX_BODY:
            raise self._fault("malformed", f"sends a reply of more than {MAX_BODY // 1024**2} MB")
        return body

    def _fault(self, kind: FaultKind, said: str) -> ChatFaultError:
        return ChatFaultError(kind, f"{self.where} {said}.")

    def _without_key_in(self, body: bytearray) -> bytearray:
        # Before anything is shortened: half a key would not be found.
        key = self._key.encode()
        return body.replace(key, b"[redacted]") if len(key) >= SHORTEST_KEY and key in body else body

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[redacted]") if len(self._key) >= SHORTEST_KEY else text


def without_key(reply: ChatReply, key: str | None) -> ChatReply:
    """Return the reply; a server that echoes the key must not bring it into the run log."""
    if not key or len(key) < SHORTEST_KEY:
        return reply
    texts = {"text": reply.text, "reasoning": reply.reasoning, "model": reply.model}
    echoed = {name: text.replace(key, "[redacted]") for name, text in texts.items() if key in text}
    return replace(reply, **echoed) if echoed else reply  # type: ignore[arg-type]


def endpoint(base_url: str) -> URL:
    """Return the address of Chat Completions below a base URL; ``/v1`` is added where there is no path.

    Raises OptionError for what is no such URL.
    """
    from yarl import URL

    try:
        url = URL(base_url)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise OptionError(
            f"The base URL '{quoted(base_url, 100)}' is not valid. Write an address such as http://127.0.0.1:8000/v1."
        )
    if url.user or url.password:
        raise OptionError("The base URL contains a user or password. Put the key into an environment variable instead.")
    path = url.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return url.with_path(f"{path}/chat/completions").with_query(url.query).with_fragment(None)


def encode(request: ChatRequest, max_tokens_name: str = "max_tokens") -> bytes:
    """Return the body of a request. The entry's served settings (``extra``) win over the sampling's."""
    sampling = request.sampling
    body: dict[str, Any] = {"model": request.model, "messages": [body_message(message) for message in request.messages]}
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if sampling.max_tokens is not None and not {"max_tokens", "max_completion_tokens"} & request.extra.keys():
        body[max_tokens_name] = sampling.max_tokens
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    body.update(request.extra)
    return _ENCODER.encode(body).encode("utf-8", "replace")


def body_message(message: Message) -> dict[str, Any]:
    """Return a message as OpenAI's protocol has it: text, or a list of parts if there are pictures."""
    if all(isinstance(part, str) for part in message.parts):
        return {"role": message.role, "content": message.text}
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: str | bytes) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(part).decode()}"}}


async def _read(response: aiohttp.ClientResponse, most: int) -> bytearray:
    """Return the body, or the first ``most`` bytes of it; the connection of a longer one is not used again."""
    body = bytearray()
    while len(body) < most and (piece := await response.content.readany()):
        body += piece
    if len(body) >= most:
        response.close()
        del body[most:]
    return body


def _header_value(key: str) -> str:
    if not (key.isascii() and key.isprintable()):
        raise OptionError(
            "The key contains a character that is not allowed in an HTTP header, such as a line break. Export it again."
        )
    return key


def _reason(error: Exception) -> str:
    """Return why there is no connection, without the address, which the fault states already."""
    cause = getattr(error, "os_error", None)
    if not isinstance(cause, OSError):
        return str(error)
    return os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or str(error)


def _proxy(url: URL) -> str | None:
    """Return the proxy that the environment names for this address; calls to this machine never go through one."""
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
