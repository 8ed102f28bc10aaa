"""Clients that follow no rules: they cannot fill the terminal, keep connections from
others, or learn anything.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from cheesebench.server import http_guard
from cheesebench.server.http_guard import RequestGuard, Serving

if TYPE_CHECKING:
    from aiohttp import web

Serve = Callable[[Serving], str]
TOKEN = "a-token-that-is-known"
LONG = b"a" * 100_000
#: Requests that are not valid: ``{path}`` is the page, ``{host}`` the right header.
NOISE = {
    "no method": b"\0\xff\x1b[31m / HTTP/1.1\r\n{host}\r\n\r\n",
    "no version": b"GET {path} HTTP/9.9\r\n{host}\r\n\r\n",
    "an escape in a header": b"GET {path} HTTP/1.1\r\n{host}\r\nX: \x1b[31m\0\r\n\r\n",
    "an escape in the path": b"GET /\x1b[31m<script> HTTP/1.1\r\n{host}\r\n\r\n",
    "a long path": b"GET /" + LONG + b" HTTP/1.1\r\n{host}\r\n\r\n",
    "a long header": b"GET {path} HTTP/1.1\r\n{host}\r\nX: " + LONG + b"\r\n\r\n",
    "many headers": b"GET {path} HTTP/1.1\r\n{host}\r\n"
    + b"X: a\r\n" * 20_000
    + b"\r\n",
    "no host": b"GET {path} HTTP/1.1\r\n\r\n",
    "a broken host": b"GET {path} HTTP/1.1\r\nHost: [::1\r\n\r\n",
    "a broken address": b"GET http://[::1/x HTTP/1.1\r\n{host}\r\n\r\n",
    "two lengths": b"POST {path}join HTTP/1.1\r\n{host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length, chunks": b"POST {path}join HTTP/1.1\r\n{host}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "an endless length": b"POST {path}join HTTP/1.1\r\n{host}\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "a broken chunk": b"POST {path}join HTTP/1.1\r\n{host}\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "no gzip": b"POST {path}join HTTP/1.1\r\n{host}\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    "nothing that is expected": b"GET {path} HTTP/1.1\r\n{host}\r\nExpect: it\r\nConnection: close\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"a" * 300,
}


def connect(base: str, said: bytes) -> socket.socket:
    """Return a connection over which these bytes were sent."""
    parts = urlsplit(base)
    connection = socket.create_connection(
        (parts.hostname or "", parts.port or 0), timeout=30
    )
    with suppress(ConnectionError):  # the server has closed it
        connection.sendall(
            said.replace(b"{path}", parts.path.encode()).replace(
                b"{host}", b"Host: %b" % parts.netloc.encode()
            )
        )
    return connection


def heard(connection: socket.socket) -> bytes:
    """Return the complete answer, until the other side ends the connection."""
    said = b""
    with connection, suppress(ConnectionError):
        while more := connection.recv(65536):
            said += more
    return said


@contextmanager
def people(here: Path) -> Iterator[str]:
    """Run ``cheesebench people``; yield the address. Afterwards it must print only how
    it ended, and the number of visitors.
    """
    words = (
        sys.executable,
        "-m",
        "cheesebench",
        "people",
        "--protocols",
        "t_maze",
        "--design",
        "smoke",
    )
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=here
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("Give this link")
            yield process.stdout.readline().strip()
            process.send_signal(signal.SIGINT)
            said = process.stdout.read()
            assert re.fullmatch(
                r"Ctrl-C stops the server.*\ncheesebench: ended by SIGINT\.\n"
                r"0 places taken, 0 complete\..*\n",
                said,
            )
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_noise_prints_nothing_where_it_is_served(tmp_path: Path) -> None:
    with people(tmp_path) as base:
        for name, noise in NOISE.items():
            status = heard(connect(base, noise))[:13]
            assert status[9:10] == b"4" or status == b"", (name, status)
        for _ in range(50):  # gone before the answer
            connect(base, b"GET {path} HTTP/1.1\r\n{host}\r\n\r\n").close()
            connect(
                base,
                b"POST {path}join HTTP/1.1\r\n{host}\r\nContent-Length: 9\r\n\r\n{",
            ).close()
        asked = b"GET {path} HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"
        assert heard(connect(base, asked)).startswith(b"HTTP/1.1 200 OK")


async def fail(request: web.Request) -> web.StreamResponse:
    raise ZeroDivisionError(os.environ["ACME_API_KEY"])


async def answer(request: web.Request) -> web.StreamResponse:
    from aiohttp import web

    return web.Response(text="here")


def serving(**handlers: http_guard.Handler) -> Serving:
    return Serving(
        RequestGuard(token=TOKEN),
        [("GET", path, handler) for path, handler in handlers.items()],
    )


def test_a_mistake_of_ours_is_told_where_it_is_served_alone(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "4u-0123456789")
    base = serve(serving(fail=fail))
    said = heard(connect(base, b"GET {path}fail HTTP/1.1\r\n{host}\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 500 ")
    assert said.endswith(b"\r\n\r\nThe server has failed. Try again later.")
    assert b"Content-Security-Policy: default-src 'none'" in said
    told = capsys.readouterr().err
    assert "ZeroDivisionError: [redacted]" in told
    assert "test_strangers.py" in told
    assert "127.0.0.1" not in told


def test_who_has_asked_is_kept_only_for_a_while(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_guard, "KEPT", 0.5)
    base = serve(serving(page=answer))
    asked = b"GET {path}page HTTP/1.1\r\n{host}\r\n\r\n"
    for more in (b"", b"GET /"):  # a second request that never comes, or never ends
        assert heard(connect(base, asked + more)).endswith(b"here")


def test_who_has_asked_often_shuts_nobody_out(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_guard, "WAITING", 3)
    base = serve(serving(page=answer))
    asked = b"GET {path}page HTTP/1.1\r\n{host}\r\n\r\n"
    parts = urlsplit(base)
    visitor = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    many = [connect(base, asked) for _ in range(6)]
    for connection in many:
        assert connection.recv(65536).endswith(b"here")
    for connection in many[:3]:
        assert heard(connection) == b""
    visitor.request("GET", f"{parts.path}page")
    assert visitor.getresponse().read() == b"here"
    silent = [connect(base, b"") for _ in range(5)]
    for connection in silent:  # strangers are closed first, regardless of their order
        assert heard(connection) == b""
    visitor.request("GET", f"{parts.path}page")
    assert visitor.getresponse().read() == b"here"
    visitor.close()
    for connection in many:
        connection.close()
