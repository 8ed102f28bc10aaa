"""What is sent to the model: pure functions from what was observed and replied to messages.

Everything that a message tells is told in that message: nothing in it refers to one that may have left the prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cheesebench import ACTIONS, Message, Part, Picture
from cheesebench.plugins.agents.llm.prompts import messages


@dataclass(frozen=True, slots=True)
class Begun:
    """A trial begins with this observation."""

    observation: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step and what came of it. ``action`` is None for a step that nobody asked for."""

    action: int | None
    reward: float
    observation: str
    ended: bool


Event = Begun | Step


def tell(events: Iterable[Event]) -> tuple[Part, ...]:
    """Return the observation part of a message: every step, its reward, and what was perceived after it.

    An observation that is just as the one before it is not repeated, and equal steps without any change are told
    as one. Outcomes are not named: a trial ends as any other.
    """
    text = messages()
    parts: list[Part] = []
    for event, unchanged, times in _runs(events):
        ended = isinstance(event, Step) and event.ended
        lines = "\n" if parts else ""
        lines += text["new_trial"].template if isinstance(event, Begun) else _step(event, times)
        parts.append(lines + (text["unchanged"].template if unchanged else "\n"))
        if not unchanged:
            parts += _perceived(event.observation)
        if ended:
            parts.append("\n" + text["trial_ended"].template)
    return joined(parts)


def _runs(events: Iterable[Event]) -> Iterator[tuple[Event, bool, int]]:
    """Yield the events, whether each observation is as the one before, and how many such steps there are in a row."""
    last: Event | None = None
    run: tuple[Event, bool, int] | None = None
    for event in events:
        unchanged = last is not None and same(last.observation, event.observation)
        if run is not None and run[1] and unchanged and event == run[0]:
            run = (event, True, run[2] + 1)
        else:
            if run is not None:
                yield run
            run = (event, unchanged, 1)
        last = event
    if run is not None:
        yield run


def same(one: str, other: str) -> bool:
    """Return whether two observations are equal, to the eye too."""
    return one == other and getattr(one, "png", None) == getattr(other, "png", None)


def _step(step: Step, times: int) -> str:
    text = messages()
    action = text["waited"].template if step.action is None else ACTIONS[step.action]
    # Adding 0.0 makes -0.0 plain; a sign tells reward from punishment at a glance.
    reward = f"{step.reward + 0.0:+.6g}" if step.reward else "0"
    template = text["step"] if times == 1 else text["steps"]
    return template.substitute(action=action, reward=reward, times=times)


def _perceived(observation: str) -> list[Part]:
    if isinstance(observation, Picture):
        return [observation.png, *(["\n" + str(observation)] if observation else [])]
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


def without_pictures(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts with words in place of every picture."""
    word = messages()["no_picture"].template
    return joined(part if isinstance(part, str) else word for part in parts)


def past_pair(parts: tuple[Part, ...], reply: str) -> tuple[Message, Message]:
    """Return a call as it is remembered: what was observed, and the reply."""
    return Message("user", parts), Message("assistant", (reply or messages()["no_reply"].template,))


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
    known = "" if learnings is None else text["learnings"].substitute(text=learnings or text["no_learnings"].template)
    request = text["request"].substitute(actions=actions)
    closing = "\n\n" + "\n".join(filter(None, (known, request)))
    prompt = [system, *(message for pair in past for message in pair), Message("user", joined((*observed, closing)))]
    for reply in refused:
        prompt.append(past_pair((), reply)[1])
        prompt.append(Message("user", (text["feedback"].template,)))
    return tuple(prompt)
