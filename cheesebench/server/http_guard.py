"""Controls access to the served pages. A request must have the secret token in its
address, the right host, no foreign origin, and an allowed method.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import logging
import secrets
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from aiohttp import web

from cheesebench.errors import CheeseBenchError, OptionError
from cheesebench.interrupts import passed_to
from cheesebench.redaction import quoted, redact

#: Default address of the pages, which other machines cannot reach.
LOOPBACK = "127.0.0.1"
#: Maximum size of a request's body in bytes. A key press of a person takes a few dozen.
LARGEST = 4096
#: ``PATIENCE``: maximum number of seconds that a request may take to arrive. ``KEPT``:
#: maximum number of seconds that a client with the token may take to read the reply and
#: ask again. ``WAITING``: maximum number of connections without a request. Each
#: connection costs a file descriptor, so a client that opens many silent ones would
#: shut out all others.
PATIENCE, KEPT, WAITING = 15.0, 300.0, 200
#: Headers of every reply. Other origins are allowed nothing (there is no CORS).
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Policy for errors and non-HTML replies. Pages have policies of their own.
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


def new_token() -> str:
    """Return a token that cannot be guessed (192 bits)."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, kw_only=True)
class RequestGuard:
    """The requirements for a request: the token is the first part of its path, and its
    host, its origin and its method are allowed.
    """

    token: str
    address: str = LOOPBACK
    port: int = 0
    names: tuple[str, ...] = ()
    """Further hosts under which the page may be requested (``lab.example``,
    ``lab.example:8443``).
    """
    methods: tuple[str, ...] = ("GET", "HEAD")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address."""
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return self.address == "localhost"

    def hosts(self, port: int) -> frozenset[str]:
        """Return all accepted values of the header Host."""
        own = {self.address} if self.address not in ("0.0.0.0", "::") else set()
        if not own or self.is_local:
            own |= {LOOPBACK, "localhost", "[::1]"}
        shown = {
            f"[{one}]" if ":" in one and not one.startswith("[") else one for one in own
        }
        return frozenset(f"{one}:{port}" for one in shown) | {
            name.lower() for name in self.names
        }

    def url(self, port: int, path: str = "") -> str:
        """Return the address to open in a browser. Its host is the first of ``names``
        or, if there are none, an address at which the server listens.
        """
        host = (
            self.names[0]
            if self.names
            else f"{LOOPBACK if self.address in ('0.0.0.0', '::') else self.address}:{port}"
        )
        return f"http://{host}/{self.token}/{path}"

    def check(self, request: web.Request, port: int) -> None:
        """Raise an HTTP error if the request does not meet the requirements. The error
        reveals nothing that the token protects.
        """
        if request.headers.get("Host", "").lower() not in self.hosts(port):
            raise web.HTTPMisdirectedRequest(
                text="This page is not served under that name."
            )
        if request.method not in self.methods:
            raise web.HTTPMethodNotAllowed(request.method, self.methods)
        given = request.path.removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise web.HTTPNotFound(
                text="There is nothing at this address. Use the whole address that you were given."
            )
        if request.headers.get("Sec-Fetch-Site", "none") not in (
            "none",
            "same-origin",
        ) and not _is_visit(request):
            raise web.HTTPForbidden(text="Another site asks for this page.")
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower().partition("://")[2] not in self.hosts(
            port
        ):
            raise web.HTTPForbidden(text="Another site asks for this page.")


def _is_visit(request: web.Request) -> bool:
    """Return whether the request opens the page in a browser, by a link or a typed
    address. A link may be on any site, because the address already contains the token.
    """
    return (
        request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate"
    )


Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]


@dataclass
class Serving:
    """An application behind its guard, from ``start`` until ``stop``."""

    guard: RequestGuard
    routes: Iterable[tuple[str, str, Handler]]
    """For each route, the method, the path below the token (may have ``{name}``) and
    the handler.
    """
    explains: bool = True
    """Whether visitors see the texts of CheeseBench's errors. Otherwise only the
    server's terminal shows them.
    """
    port: int = 0
    patience: float = PATIENCE
    _runner: web.AppRunner | None = field(default=None, init=False)
    _sweeping: asyncio.Task[None] | None = field(default=None, init=False)
    #: Connections of clients that have sent the token.
    _known: set[object] = field(default_factory=set, init=False)
    #: Connections on which a client with the token is being answered.
    _busy: set[object] = field(default_factory=set, init=False)
    #: Time of the last reply on a connection or, before the first reply, of the first
    #: check that found it (by the loop's clock).
    _since: dict[Any, float] = field(default_factory=dict, init=False)

    async def start(self) -> None:
        """Listen. Raise OptionError if the port or the address is not available."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._guard(request, handler)

        application = web.Application(middlewares=[guard], client_max_size=LARGEST)
        for method, path, handler in self.routes:
            application.router.add_route(method, f"/{{token}}/{path}", handler)
        # There is no access log, because it would contain the token and people's
        # addresses. Requests that aiohttp cannot parse are not logged either: each
        # would print a traceback, and a port scanner would fill the terminal.
        # ``_guard`` reports our own errors.
        silent = logging.Logger("cheesebench.server", logging.CRITICAL + 1)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=silent,
            handler_cancellation=True,
            shutdown_timeout=1.0,
        )
        await self._runner.setup()
        listening = _listen(self.guard)
        self.port = listening.getsockname()[1]
        await web.SockSite(self._runner, listening).start()
        self._sweeping = asyncio.create_task(self._sweep(self._runner))

    async def _sweep(self, runner: web.AppRunner) -> None:
        """From time to time, close idle connections: all that have been silent for too
        long, and further ones if there are more than ``WAITING``.
        """
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(min(1.0, self.patience / 4))
            connections = (
                set(runner.server.connections) if runner.server is not None else set()
            )
            self._known &= connections
            self._since = {one: self._since.get(one, clock()) for one in connections}
            idle = connections - self._busy
            # Connections without the token are closed first. Among equals, the one that
            # has been silent for longest is closed first.
            order = sorted(idle, key=lambda one: (one in self._known, self._since[one]))
            for number, one in enumerate(order):
                patience = KEPT if one in self._known else self.patience
                late = clock() - self._since[one] > patience
                if one.transport is not None and (late or number < len(idle) - WAITING):
                    one.transport.abort()

    async def stop(self) -> None:
        """Stop listening, and end all requests."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _guard(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        try:
            self.guard.check(request, self.port)
            with self._answering(request.protocol):
                if request.can_read_body:
                    async with asyncio.timeout(self.patience):
                        # This reads the body and caches it for the handlers.
                        await request.read()
                response = await handler(request)
        except ConnectionError:  # The client is gone.
            raise
        except web.RequestPayloadError:
            response = web.Response(
                status=web.HTTPBadRequest.status_code,
                text="The request cannot be read.",
            )
            response.force_close()
        except TimeoutError:
            response = web.Response(
                status=web.HTTPRequestTimeout.status_code,
                text="The request is incomplete.",
            )
            response.force_close()
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=error.text)
            response.force_close()
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
        except CheeseBenchError as error:
            said = quoted(str(error), 2000)
            if not self.explains:
                print(f"cheesebench: {said}", file=sys.stderr, flush=True)
                said = "The server cannot record this now. Nothing is lost. Try again later."
            response = web.Response(status=503, text=said)
        except Exception as error:
            # The place of an internal error is shown only on the server's terminal.
            print(
                redact("".join(traceback.format_exception(error))),
                file=sys.stderr,
                flush=True,
            )
            response = web.Response(
                status=500, text="The server has failed. Try again later."
            )
            response.force_close()
        if not response.prepared:
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
        return response

    @contextlib.contextmanager
    def _answering(self, connection: object) -> Iterator[None]:
        """Keep the client's connection from being closed as idle while its request is
        being answered.
        """
        self._known.add(connection)
        self._busy.add(connection)
        try:
            yield
        finally:
            self._busy.discard(connection)
            self._since[connection] = asyncio.get_running_loop().time()


def check_address(address: str, port: int) -> None:
    """Raise OptionError unless this machine can listen on the address and port (0 means
    any port).
    """
    _listen(RequestGuard(token=new_token(), address=address, port=port)).close()


def _listen(guard: RequestGuard) -> socket.socket:
    family = socket.AF_INET6 if ":" in guard.address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            # Otherwise the port of a killed server stays in use for a minute.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((guard.address, guard.port))
    except OSError as error:
        listening.close()
        _refuse(guard, error)
    return listening


def _refuse(guard: RequestGuard, error: OSError) -> NoReturn:
    if error.errno == errno.EADDRNOTAVAIL or not guard.port:
        where, remedy = (
            guard.address,
            "Leave --address out, or name an address that this machine has.",
        )
    else:
        where, remedy = (
            f"{guard.address}:{guard.port}",
            "Leave --port out, or give another one.",
        )
    raise OptionError(
        f"Cannot listen on {where} ({error.strerror}). {remedy}"
    ) from None


def _crowded(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Print no traceback if no file descriptor is left for a connection, because
    asyncio tries again a second later.
    """
    if "out of system resource" not in context.get("message", ""):
        loop.default_exception_handler(context)


def serve(serving: Serving, begun: Callable[[int], None]) -> None:
    """Serve until Ctrl-C (or another signal). Call ``begun`` with the port once
    connections are accepted.
    """

    async def main() -> None:
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_crowded)
        with passed_to(lambda: loop.call_soon_threadsafe(over.set)):
            await serving.start()
            try:
                begun(serving.port)
                await over.wait()
            finally:
                await serving.stop()

    asyncio.run(main())
