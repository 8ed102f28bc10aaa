"""Rules for requests: all messages, to the right model, with the parameters that are set."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from cheesebench.chat import ChatReply, Connection, Message, Sampling
from cheesebench.redaction import quoted
from cheesebench.testing.backend_calls import BackendCase, Outcome, ask
from cheesebench.testing.fake_server import Answer, FakeServer
from cheesebench.testing.rules import BreachError, Rules, need

#: A PNG of one pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def add_requests(rules: Rules[BackendCase]) -> None:
    """Add the rules about what is sent."""
    rules.rule("messages arrive")(_messages)
    rules.rule("model id")(_model_id)
    rules.rule("parameters")(_parameters)
    rules.rule("served settings")(_served)
    rules.rule("pictures")(_pictures)


def _messages(case: BackendCase) -> None:
    talk = (
        Message("system", ("be-a-mouse",)),
        Message("user", ("first-question",)),
        Message("assistant", ("first-answer",)),
        Message("user", ("second-question",)),
    )
    outcome, server = case.play(
        Answer(text="ACTIONS: FORWARD"), lambda connection, server: ask(connection, case.request(messages=talk))
    )
    need(isinstance(outcome, ChatReply), f"a plain call causes the fault: {outcome}")
    text = getattr(outcome, "text", "")
    need(text == "ACTIONS: FORWARD", f"the reply 'ACTIONS: FORWARD' is read as '{quoted(text, 60)}'")
    sent = json.dumps(server.calls[0].body)
    places = [sent.find(message.text) for message in talk]
    need(min(places) >= 0, f"'{talk[places.index(min(places))].text}' is not sent")
    need(places[1] < places[2] < places[3], "the messages are not sent in order")


def _model_id(case: BackendCase) -> None:
    outcome, server = case.play("ACTIONS: STAY", lambda connection, server: ask(connection, case.request()))
    need(isinstance(outcome, ChatReply), f"a plain call causes the fault: {outcome}")
    call = server.calls[0]
    sent = [json.dumps(call.body), call.path, *call.headers.values()]
    # Of PROVIDER/ID some libraries send the second half.
    named = any(case.model.rpartition("/")[2] in text for text in sent)
    need(named, f"the model's id '{case.model}' is sent neither in the body nor in the URL nor in a header")


def _parameters(case: BackendCase) -> None:
    """What is set is sent, or declared as not supported; what is None is left to the server."""
    sampling = Sampling(temperature=0.625, max_tokens=217, seed=90210, stop=("END-7",))

    async def scene(connection: Connection, server: FakeServer) -> tuple[Outcome, Outcome]:
        return await ask(connection, case.request(sampling=sampling)), await ask(connection, case.request())

    outcomes, server = case.play("ACTIONS: STAY", scene)
    for outcome in outcomes:
        need(isinstance(outcome, ChatReply), f"a call with parameters causes the fault: {outcome}")
    able = case.spec.capabilities
    declared = {"temperature": able.temperature, "seed": able.seed, "stop": able.stop}
    wanted = {"temperature": 0.625, "max_tokens": 217, "seed": 90210, "stop": "END-7"}
    asked, unasked = (server.calls[number].body for number in (0, 1))
    for name, value in wanted.items():
        if not declared.get(name, True) or holds(asked, value):
            continue
        instead, always = named(asked, name), named(unasked, name)
        remedy = f"send it, or declare Capabilities({name}=False)" if name in declared else "it limits the cost"
        if instead:
            how = "as a constant" if instead == always else f"where {value!r} is set"
            raise BreachError(f"{name} is sent as {quoted(repr(instead[0]), 60)}, {how}: {remedy}")
        raise BreachError(f"{name} is not sent: {remedy}")
    needless = [name for name in ("temperature", "seed") if named(unasked, name)]
    need(not needless, f"{', '.join(needless)} is sent although it is None, which means that the server decides")


def _served(case: BackendCase) -> None:
    request = case.request(extra={"top_p": 0.375})
    outcome, server = case.play("ACTIONS: STAY", lambda connection, server: ask(connection, request))
    need(isinstance(outcome, ChatReply), f"a call with a served setting causes the fault: {outcome}")
    sent = holds(server.calls[0].body, 0.375)
    need(sent, "top_p of ChatRequest.extra is not sent: a model's 'served' settings belong in the body unchanged")


def holds(body: object, value: object) -> bool:
    """Return whether a value occurs anywhere in a body, under any name."""
    if isinstance(body, Mapping):
        return any(holds(inner, value) for inner in body.values())
    if isinstance(body, list):
        return any(holds(inner, value) for inner in body)
    return body == value


def named(body: object, name: str) -> list[object]:
    """Return the values under a name in a body, at any depth, without None."""
    if isinstance(body, list):
        return [value for inner in body for value in named(inner, name)]
    if not isinstance(body, Mapping):
        return []
    own = [body[name]] if body.get(name) is not None else []
    return own + [value for inner in body.values() for value in named(inner, name)]


def _pictures(case: BackendCase) -> None:
    if not case.spec.capabilities.images:
        return
    message = Message("user", ("look: ", PIXEL, " well?"))
    outcome, server = case.play(
        "ACTIONS: STAY", lambda connection, server: ask(connection, case.request(messages=(message,)))
    )
    need(isinstance(outcome, ChatReply), f"a message with a picture causes the fault: {outcome}")
    sent = base64.b64encode(PIXEL).decode() in json.dumps(server.calls[0].body)
    need(sent, "the picture is not sent as base64; send it, or declare Capabilities(images=False)")
