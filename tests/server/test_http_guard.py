"""Who is let in: hosts, tokens, methods and origins; and where one can listen."""

from __future__ import annotations

import errno
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from cheesebench.errors import OptionError
from cheesebench.server.http_guard import (
    LOOPBACK,
    RequestGuard,
    _crowded,
    _refuse,
    check_address,
    new_token,
)


def guard(**changes: Any) -> RequestGuard:
    return RequestGuard(**({"token": "secret"} | changes))


@pytest.mark.parametrize(
    ("address", "local", "hosts", "url"),
    [
        (LOOPBACK, True, {"127.0.0.1:8", "localhost:8", "[::1]:8"}, "127.0.0.1:8"),
        ("127.0.0.2", True, {"127.0.0.2:8", "127.0.0.1:8", "localhost:8", "[::1]:8"}, "127.0.0.2:8"),
        ("localhost", True, {"127.0.0.1:8", "localhost:8", "[::1]:8"}, "localhost:8"),
        ("0.0.0.0", False, {"127.0.0.1:8", "localhost:8", "[::1]:8"}, "127.0.0.1:8"),
        ("10.0.0.7", False, {"10.0.0.7:8"}, "10.0.0.7:8"),
        ("lab.example", False, {"lab.example:8"}, "lab.example:8"),
    ],
)  # fmt: skip
def test_names_under_which_a_page_is_served(
    address: str, local: bool, hosts: set[str], url: str
) -> None:
    one = guard(address=address)
    assert one.is_local == local
    assert one.hosts(8) == hosts
    assert one.url(8, "a") == f"http://{url}/secret/a"
    named = guard(address=address, names=("Lab.example:1", "b"))
    assert named.hosts(8) == hosts | {"lab.example:1", "b"}
    assert named.url(8) == "http://Lab.example:1/secret/"


@pytest.mark.parametrize(
    ("headers", "path", "method", "error"),
    [
        ({}, "/secret/a", "GET", None),
        ({}, "/secret", "HEAD", None),
        ({"Host": "LOCALHOST:8"}, "/secret/a", "GET", None),
        ({"Host": "evil.example"}, "/secret/a", "GET", web.HTTPMisdirectedRequest),
        ({}, "/secret/a", "POST", web.HTTPMethodNotAllowed),
        ({}, "/secre/a", "GET", web.HTTPNotFound),
        ({}, "/", "GET", web.HTTPNotFound),
        ({"Sec-Fetch-Site": "same-origin"}, "/secret/", "GET", None),
        ({"Sec-Fetch-Site": "cross-site"}, "/secret/", "GET", web.HTTPForbidden),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, "/secret/", "GET", None),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, "/secret/", "HEAD", web.HTTPForbidden),
        ({"Origin": "http://127.0.0.1:8"}, "/secret/", "GET", None),
        ({"Origin": "http://evil.example"}, "/secret/", "GET", web.HTTPForbidden),
    ],
)  # fmt: skip
def test_only_who_has_the_address_is_let_in(
    headers: dict[str, str], path: str, method: str, error: type[Exception] | None
) -> None:
    given = {"Host": "127.0.0.1:8", **headers}
    request = make_mocked_request(method, path, headers=given)
    if error is None:
        guard().check(request, 8)
    else:
        with pytest.raises(error):
            guard().check(request, 8)


def test_tokens_cannot_be_guessed() -> None:
    assert len({new_token() for _ in range(9)}) == 9
    assert len(new_token()) == 32


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OptionError) as found:
            check_address(LOOPBACK, port)
    said = str(found.value)
    assert said.startswith(f"Cannot listen on 127.0.0.1:{port} (")
    assert said.endswith("Leave --port out, or give another one.")
    check_address(LOOPBACK, 0)


@pytest.mark.parametrize(
    ("port", "code", "where"),
    [
        (8, errno.EADDRNOTAVAIL, "10.0.0.7 (odd). Leave --address out"),
        (0, errno.EACCES, "10.0.0.7 (odd). Leave --address out"),
        (8, errno.EACCES, "10.0.0.7:8 (odd). Leave --port out"),
    ],
)
def test_an_address_that_this_machine_lacks_is_named(
    port: int, code: int, where: str
) -> None:
    with pytest.raises(OptionError) as found:
        _refuse(guard(address="10.0.0.7", port=port), OSError(code, "odd"))
    assert f"Cannot listen on {where}" in str(found.value)


def test_only_other_faults_than_a_lack_of_descriptors_have_a_traceback() -> None:
    told: list[Any] = []
    loop = cast(Any, SimpleNamespace(default_exception_handler=told.append))
    _crowded(loop, {"message": "socket.accept() out of system resource"})
    assert told == []
    _crowded(loop, {"message": "odd"})
    _crowded(loop, {})
    assert told == [{"message": "odd"}, {}]
