"""What can go wrong at a server, and which fault of the harness it is."""

from __future__ import annotations

from dataclasses import dataclass

from cheesebench.chat import FaultKind
from cheesebench.testing.fake_server import Answer


@dataclass(frozen=True, slots=True)
class Mishap:
    """One way in which a call fails: what the server does, and what may be made of it.

    ``refused``: there is no server at all.
    """

    name: str
    what: str
    answer: Answer
    kinds: frozenset[FaultKind]
    retry_after: float | None = None
    refused: bool = False


def _kinds(*kinds: FaultKind) -> frozenset[FaultKind]:
    return frozenset(kinds)


def _refusal(status: int, message: str, code: str = "", **headers: str) -> Answer:
    error = {"message": message, **({"code": code} if code else {})}
    return Answer(
        status=status, error=error, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


#: In this order.
FAULTS = (
    Mishap(
        *("rate limit", "status 429"),
        _refusal(429, "Rate limit reached.", "rate_limit_exceeded", Retry_After="2"),
        _kinds("rate_limit"),
        retry_after=2.0,
    ),
    Mishap(
        *("quota", "status 429 that mentions the quota"),
        _refusal(429, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
        _kinds("quota"),
    ),
    Mishap("overload", "status 503", _refusal(503, "The server is overloaded."), _kinds("overload")),
    Mishap("server error", "status 500", _refusal(500, "Internal server error."), _kinds("server")),
    Mishap("time-out", "a server that never answers", Answer(fault="hang"), _kinds("timeout")),
    Mishap("drip", "a reply that comes byte by byte", Answer(fault="drip", text="x" * 300), _kinds("timeout")),
    Mishap("refused", "a connection that is refused", Answer(), _kinds("connection"), refused=True),
    Mishap("reset", "a connection that is reset", Answer(fault="reset"), _kinds("connection")),
    Mishap(
        *("truncated", "a connection that is reset in the middle of the reply"),
        Answer(fault="reset_in_body", text="x" * 999),
        _kinds("connection", "malformed"),
    ),
    Mishap("not HTTP", "an answer that is not HTTP", Answer(fault="noise"), _kinds("malformed", "connection")),
    Mishap("malformed", "an answer that is not JSON", Answer(body=b"\x00\xff<html>"), _kinds("malformed")),
    Mishap("no body", "an answer without a body", Answer(body=b""), _kinds("malformed")),
    Mishap(
        *("no reply", "a JSON object with no reply in it"),
        Answer(body={"unexpected": []}),
        _kinds("malformed", "server"),
    ),
    Mishap(
        *("authentication", "status 401"),
        _refusal(401, "Incorrect API key provided.", "invalid_api_key"),
        _kinds("authentication"),
    ),
    Mishap(
        *("unknown model", "status 404 of the model"),
        _refusal(404, "The model does not exist.", "model_not_found"),
        _kinds("unknown_model"),
    ),
    Mishap(
        *("context too long", "status 400 of the context's length"),
        _refusal(400, "This model's maximum context length is 9 tokens.", "context_length_exceeded"),
        _kinds("context_too_long"),
    ),
    Mishap("bad request", "status 400", _refusal(400, "temprature: unknown field"), _kinds("bad_request")),
)
