"""Rules for backends on failing servers: one request, the right fault, and no disclosure of the key."""

from __future__ import annotations

from functools import partial

from cheesebench.chat import ChatFaultError
from cheesebench.testing.backend_calls import HALF_KEY, KEY, SHORT, BackendCase, Outcome, ask
from cheesebench.testing.fake_server import Answer
from cheesebench.testing.faults import FAULTS, Mishap
from cheesebench.testing.overhearing import texts_of
from cheesebench.testing.rules import BreachError, Rules, need

#: Comes first, because much follows from it.
NO_RETRIES = "no retries"
#: Servers that say the key themselves.
ECHOES = tuple(
    Mishap(name, name, answer, frozenset())
    for name, answer in {
        "a refusal that echoes the key": Answer(status=401, error={"message": f"Incorrect API key provided: {KEY}"}),
        "a long error that echoes the key": Answer(status=500, error={"message": "x" * 285 + KEY}),
        "a refusal in plain text that echoes the key": Answer(status=400, body=f"oh {KEY}".encode()),
        "a page that echoes the key": Answer(body=f"<html>{KEY}".encode()),
    }.items()
)


def add_first(rules: Rules[BackendCase]) -> None:
    """Add the rule that is checked first."""
    rules.rule(NO_RETRIES)(_no_retries)


def add_last(rules: Rules[BackendCase]) -> None:
    """Add a rule for each fault, and the one about the key."""
    for mishap in FAULTS:
        rules.rule(f"fault: {mishap.name}")(partial(_check_fault, mishap))
    rules.rule("no key in errors")(_no_key)


def _met(case: BackendCase, mishap: Mishap) -> tuple[Outcome | BreachError, int]:
    """Return the result of a call whose first attempt meets this mishap, and the number of attempts."""
    if mishap.name not in case.kept:
        request = case.request(timeout=SHORT if mishap.kinds == {"timeout"} else case.patience)
        requests: list[int] = []
        outcome: Outcome | BreachError
        try:
            if mishap.refused:
                outcome = case.play_refused(lambda connection: ask(connection, request))
            else:
                script: list[str | Answer] = [mishap.answer, "without an error"]
                outcome, server = case.play(script, lambda connection, server: ask(connection, request))
                requests.append(server.count)
                headers = [dict(call.headers) for call in server.calls]
                case.key_sent |= any(KEY in value for one in headers for value in one.values())
        except BreachError as breach:
            outcome = breach
        case.kept[mishap.name] = outcome, sum(requests)
    return case.kept[mishap.name]


def _follows(case: BackendCase, mishap: Mishap) -> bool:
    """Return whether the result of a mishap only repeats that there was a second attempt."""
    outcome, attempts = _met(case, mishap)
    if mishap.refused and isinstance(outcome, BreachError):  # not counted: a backend that retries does so here, too
        attempts = max(count for _, count in case.kept.values())
    return attempts > 1 and NO_RETRIES not in case.but


def _no_retries(case: BackendCase) -> None:
    counts = {mishap.name: _met(case, mishap)[1] for mishap in FAULTS}
    retried = [f"{name} ({count} requests)" for name, count in counts.items() if count > 1]
    need(not retried, f"retries by itself: {', '.join(retried)}. One call must be one request; CheeseBench retries")


def _check_fault(mishap: Mishap, case: BackendCase) -> None:
    if _follows(case, mishap):
        return
    outcome, _ = _met(case, mishap)
    if isinstance(outcome, BreachError):
        raise outcome
    kinds = " or ".join(sorted(mishap.kinds))
    if not isinstance(outcome, ChatFaultError):
        raise BreachError(f"{mishap.what} is read as a reply; it is the fault '{kinds}'")
    need(outcome.kind in mishap.kinds, f"{mishap.what} is reported as '{outcome.kind}'; it is '{kinds}' ({outcome})")
    need(str(outcome).strip(), f"{mishap.what} is reported without a message")
    need(len(str(outcome)) < 1000, f"{mishap.what} is reported in {len(str(outcome))} characters: shorten the message")
    if mishap.retry_after is not None:
        wish = outcome.retry_after
        heard = wish is not None and abs(wish - mishap.retry_after) < 0.5
        need(heard, f"the server's Retry-After of {mishap.retry_after:g} s is reported as {wish}")


def _no_key(case: BackendCase) -> None:
    if not case.key_env:
        return
    for mishap in (*ECHOES, *FAULTS):
        outcome, _ = _met(case, mishap)
        # Half a key is a secret, too: a text that is shortened first and searched afterwards keeps it.
        if isinstance(outcome, Exception) and any(HALF_KEY in text for text in texts_of(outcome)):
            what = "text of the fault" if HALF_KEY in str(outcome) else "cause or context of the fault"
            what = "exception that is raised" if isinstance(outcome, BreachError) else what
            raise BreachError(f"the {what} contains the key ({mishap.what})")
    need(case.key_sent, f"the key in {case.key_env} is not sent in a header, so its use cannot be checked")
    need(not case.heard, f"the key is in {case.heard[0] if case.heard else ''}")
