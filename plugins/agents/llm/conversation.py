"""The messages sent to the model: pure functions of observations and replies.

Every message is self-contained: nothing in it refers to one that may have left the prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from cheesebench import ACTIONS, Message, Part, Picture
from cheesebench.plugins.agents.llm.prompts import messages


@dataclass(frozen=True, slots=True)
class Begun:
    """A trial begins with this observation."""

    observation: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step and its result. ``action`` is None for a step taken without asking the model."""

    action: int | None
    reward: float
    observation: str
    ended: bool


Event = Begun | Step


def tell(events: Iterable[Event], changes: bool = False) -> tuple[Part, ...]:
    """Return the observation part of a message: every step, its reward, and what was perceived after it.

    An observation that is just as the one before it is not repeated, and equal steps without any change are told
    as one. With ``changes``, observations between the first and the last one are told as the lines that differ from
    the one before. Outcomes are not named: a trial ends as any other.
    """
    text = messages()
    runs = list(_runs(events))
    last_seen = max((number for number, run in enumerate(runs) if not run.unchanged), default=0)
    parts: list[Part] = []
    before: str | None = None
    for number, (event, unchanged, times) in enumerate(runs):
        in_full = not changes or isinstance(event, Begun) or number == last_seen
        patch = "" if in_full else _patch(before, event.observation)
        parts.append(("\n" if parts else "") + _head(event, times))
        if unchanged:
            parts.append(text["unchanged"].template)
        elif patch:
            parts.append(f"{text['changed'].template}\n{patch}")
        else:
            parts += ["\n", *_perceived(event.observation)]
        if isinstance(event, Step) and event.ended:
            parts.append("\n" + text["trial_ended"].template)
        before = event.observation
    return joined(parts)


class _Run(NamedTuple):
    """An event, whether its observation is as the one before, and how many such steps there are in a row."""

    event: Event
    unchanged: bool
    times: int = 1


def _runs(events: Iterable[Event]) -> Iterator[_Run]:
    run: _Run | None = None
    for event in events:
        unchanged = run is not None and run.event.observation == event.observation
        if run is not None and run.unchanged and unchanged and event == run.event:
            run = run._replace(times=run.times + 1)
            continue
        if run is not None:
            yield run
        run = _Run(event, unchanged)
    if run is not None:
        yield run


def _patch(before: str | None, now: str) -> str:
    """Return the lines that have changed, with their numbers; nothing where the whole is as short."""
    if before is None or isinstance(before, Picture) or isinstance(now, Picture):
        return ""
    old, new = before.split("\n"), now.split("\n")
    if len(old) != len(new):
        return ""
    pairs = enumerate(zip(old, new, strict=True), 1)
    patch = "\n".join(f"{number}: {line}" for number, (was, line) in pairs if was != line)
    return patch if len(patch) < len(now) else ""


def _head(event: Event, times: int) -> str:
    if isinstance(event, Begun):
        return messages()["new_trial"].template
    return _told_step(event.action, event.reward, times)


@lru_cache(maxsize=1024)
def _told_step(action: int | None, reward: float, times: int) -> str:
    text = messages()
    name = text["waited"].template if action is None else ACTIONS[action]
    # A sign distinguishes reward from punishment.
    sign = f"{reward:+.6g}" if reward else "0"
    template = text["step"] if times == 1 else text["steps"]
    return template.substitute(action=name, reward=sign, times=times)


def _perceived(observation: str) -> list[Part]:
    if isinstance(observation, Picture):
        words = str(observation)
        return [observation.png, "\n" + words] if words else [observation.png]
    return [observation]


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts with neighbouring pieces of text made one."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        else:
            result.append(part)
    return tuple(result)


@lru_cache(maxsize=64)
def _request(actions: int) -> str:
    return messages()["request"].substitute(actions=actions)


def without_pictures(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts with words in place of every picture."""
    word = messages()["no_picture"].template
    return joined(part if isinstance(part, str) else word for part in parts)


def past_pair(parts: tuple[Part, ...], reply: str) -> tuple[Message, Message]:
    """Return a call as a past pair: the observation and the reply."""
    return Message("user", parts), Message("assistant", (reply or messages()["no_reply"].template,))


def with_mark(past: Sequence[tuple[Message, Message]], staying: int) -> list[tuple[Message, Message]]:
    """Return the pairs with a mark on the last of those that stay."""
    marked = list(past)
    if staying:
        observed, reply = marked[staying - 1]
        marked[staying - 1] = observed, replace(reply, stays=True)
    return marked


def conversation(
    system: Message,
    past: Iterable[tuple[Message, Message]],
    observed: tuple[Part, ...],
    learnings: str | None,
    actions: int,
    refused: Sequence[str] = (),
) -> tuple[Message, ...]:
    """Return the whole prompt of a call.

    ``learnings`` None: they are not asked for. ``refused`` are replies to this very prompt in which there was no
    action, and which are to be told so.
    """
    text = messages()
    memory = "" if learnings is None else text["learnings"].substitute(text=learnings or text["no_learnings"].template)
    closing = "\n\n" + "\n".join(filter(None, (memory, _request(actions))))
    prompt = [system, *(message for pair in past for message in pair), Message("user", joined((*observed, closing)))]
    for reply in refused:
        prompt.append(past_pair((), reply)[1])
        prompt.append(Message("user", (text["feedback"].template,)))
    return tuple(prompt)
