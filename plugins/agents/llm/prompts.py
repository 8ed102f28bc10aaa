"""The texts for a model: the system prompts and the messages, made from the templates
in ``prompts.yaml``.

All functions are pure. Every message can be understood by itself: it never refers to a
message that may have left the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import yaml

from cheesebench import ACTIONS, Message, Part, Picture


@lru_cache(maxsize=1)
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = yaml.safe_load(
        files("cheesebench.plugins.agents.llm")
        .joinpath("prompts.yaml")
        .read_text(encoding="utf-8")
    )
    return data


def variants() -> tuple[str, ...]:
    """Return the names of all system prompts."""
    return tuple(_data()["variants"])


#: Placeholders for values, in the shipped prompts and in a user's own prompt.
PLACEHOLDERS = (
    "reading",
    "actions",
    "actions_form",
    "learnings",
    "learnings_form",
    "patience",
    "changes",
    "memory",
)


def unknown_placeholders(text: str) -> list[str]:
    """Return the names after a dollar sign (``$NAME``, ``${NAME}``) in a prompt that
    are not placeholders.
    """
    return [
        name for name in Template(text).get_identifiers() if name not in PLACEHOLDERS
    ]


@lru_cache(maxsize=64)
def system_prompt(
    variant: str,
    reading: str,
    actions: int,
    learnings: int,
    *,
    changes: bool = False,
    patience: int = 0,
    remembers: bool = True,
    interrupts: bool = True,
    tools: bool = False,
) -> str:
    """Return the system prompt: the same for every paradigm, trial and call.

    ``variant`` is the prompt's name, or the prompt itself, with ``PLACEHOLDERS``.
    ``reading`` explains the view ("" if the view has no explanation). ``actions`` is
    the maximum number of actions in one reply. ``learnings`` is the maximum number of
    characters of learnings (0: they are not requested). ``patience`` is the number of
    answers without an action after which a trial passes without calls (0: never).

    With ``changes``, later observations are shown as changes. With ``remembers``,
    prompts have past pairs. With ``interrupts``, an event drops the rest of a plan.
    With ``tools``, the model answers by calling a tool.
    """
    data = _data()
    pieces: Mapping[str, str] = data["pieces"]
    values: dict[str, Any] = {
        "actions": actions,
        "learnings": learnings,
        "reading": reading or data["reading"],
        "patience": _patience(patience),
        "changes": pieces["changes"] + " " if changes else "",
        "memory": pieces[_memory(remembers=remembers, notes=learnings > 0)],
    }

    def piece(name: str) -> str:
        return Template(pieces[name]).substitute(values)

    asked = "asked_when_it_happens" if interrupts else "asked_at_the_end"
    values["asked"] = "" if actions == 1 else piece(asked)
    values["learnings_form"] = piece("learnings_form")
    values["actions_form"] = piece("action_form" if actions == 1 else "actions_form")
    if variant not in data["variants"]:
        return Template(variant).safe_substitute(values)
    names = _piece_names(variant, tools=tools, once=actions == 1)
    text = "\n\n".join(map(piece, names))
    return text if learnings else _without_learnings(text)


def _patience(answers: int) -> str:
    """Return the sentence about answers without an action, on a line of its own, or
    "".
    """
    if not answers:
        return ""
    return Template("\n" + _data()["pieces"]["patience"]).substitute(patience=answers)


def _memory(*, remembers: bool, notes: bool) -> str:
    """Return the name of the piece that describes the memory."""
    if remembers:
        return "remembers"
    return "forgets_but_notes" if notes else "forgets"


def _piece_names(variant: str, *, tools: bool, once: bool) -> list[str]:
    """Return the names of the pieces of a shipped prompt. With ``tools``, pieces about
    tool calls replace others. With ``tools`` and ``once``, the prompt asks for calls
    with a single action.
    """
    data = _data()
    names: list[str] = data["variants"][variant]
    if not tools:
        return names
    names = [
        f"{name}_tools" if f"{name}_tools" in data["pieces"] else name for name in names
    ]
    if not once:
        return names
    return ["format_tool_once" if name == "format_tools" else name for name in names]


def _without_learnings(text: str) -> str:
    """Remove the lines that ask for learnings."""
    labels = ("LEARNINGS:", "learnings:")
    return "\n".join(line for line in text.split("\n") if not line.startswith(labels))


def instructions(reading: str) -> str:
    """Return the instructions for a person. ``reading`` explains the view, or is ""."""
    data = _data()
    values = {"reading": reading or data["reading"]}
    return "\n\n".join(
        Template(data["pieces"][name]).substitute(values) for name in data["people"]
    )


@lru_cache(maxsize=1)
def messages() -> Mapping[str, Template]:
    """Return the templates of the messages, by name."""
    texts: Mapping[str, str] = _data()["messages"]
    answer = texts["answer"]
    return {
        name: Template(Template(text).safe_substitute(answer=answer))
        for name, text in texts.items()
    }


def descriptions() -> dict[str, str]:
    """Return the system prompt's description of each action, up to the first comma or
    placeholder.
    """
    lines = [line.partition(": ") for line in _data()["pieces"]["actions"].split("\n")]
    return {
        name: re.split("[,$]", words)[0] for name, _, words in lines if name in ACTIONS
    }


def form_words() -> tuple[str, ...]:
    """Return the words that explain each label in the prompt's form of an answer, up to
    the first comma. If a reply repeats them, they mean nothing.
    """
    pieces = _data()["pieces"]
    names = ("learnings_form", "actions_form", "action_form")
    return tuple(pieces[name].partition(": ")[2].split(",")[0] for name in names)


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of a trial, with its first observation."""

    observation: str


@dataclass(frozen=True, slots=True)
class Freed:
    """The moment at which the subject is free again, with its observation."""

    observation: str


@dataclass(frozen=True, slots=True)
class Step:
    """One step and its result. ``action`` is None for a step taken without asking the
    model.
    """

    action: int | None
    reward: float
    observation: str
    ended: bool


Event = Begun | Freed | Step


def tell(
    events: Iterable[Event], changes: bool = False, closed: bool = False
) -> tuple[Part, ...]:
    """Return the part of a message that tells what happened: every step, its reward,
    and the observation after it.

    If ``closed``, the last observation is left out unless the trial ended with it,
    because it opens the next stretch. An observation equal to the previous one is not
    repeated, and equal steps without any change are written as one. With ``changes``,
    observations between the first and the last one are written as the lines that differ
    from the previous one, if this is shorter. All trials end with the same words, which
    do not say how the trial ended.
    """
    text = messages()
    runs = list(_runs(events))
    last_seen = _last_seen(runs)
    parts: list[Part] = []
    before: str | None = None
    for number, (event, unchanged, times) in enumerate(runs):
        parts.append(("\n" if parts else "") + _head(event, times))
        if closed and number == len(runs) - 1 and not _ends_trial(event):
            break
        if unchanged:
            parts.append(text["unchanged"].template)
        elif patch := ("" if number == last_seen else _change(before, event, changes)):
            parts.append(f"{text['changed'].template}\n{patch}")
        else:
            parts += ["\n", *_perceived(event.observation)]
        if _ends_trial(event):
            parts.append("\n" + text["trial_ended"].template)
        before = event.observation
    return joined(parts)


def _ends_trial(event: Event) -> bool:
    return isinstance(event, Step) and event.ended


class _Run(NamedTuple):
    """An event, whether its observation equals the previous one, and how many such
    steps there are in a row.
    """

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


def _last_seen(runs: Sequence[_Run]) -> int:
    """Return the number (from 0) of the last run whose observation differs from the
    previous one.
    """
    seen = (number for number, run in enumerate(runs) if not run.unchanged)
    return max(seen, default=0)


def _change(before: str | None, event: Event, changes: bool) -> str:
    """Return the changed lines of a step's observation, or "" to show it in full."""
    if not changes or not isinstance(event, Step):
        return ""
    return _patch(before, event.observation)


def _patch(before: str | None, now: str) -> str:
    """Return the changed lines with their numbers. Return "" if they are no shorter
    than the whole, if the number of lines has changed, for pictures, or if there is no
    earlier observation.
    """
    if before is None or isinstance(before, Picture) or isinstance(now, Picture):
        return ""
    old, new = before.split("\n"), now.split("\n")
    if len(old) != len(new):
        return ""
    pairs = enumerate(zip(old, new, strict=True), 1)
    patch = "\n".join(
        f"{number}: {line}" for number, (was, line) in pairs if was != line
    )
    return patch if len(patch) < len(now) else ""


def _head(event: Event, times: int) -> str:
    if not isinstance(event, Step):
        return messages()[
            "new_trial" if isinstance(event, Begun) else "your_turn"
        ].template
    return _told_step(event.action, event.reward, times)


@lru_cache(maxsize=1024)
def _told_step(action: int | None, reward: float, times: int) -> str:
    text = messages()
    name = text["waited"].template if action is None else ACTIONS[action]
    # The sign distinguishes reward from punishment.
    sign = f"{reward:+.6g}" if reward else "0"
    template = text["step"] if times == 1 else text["steps"]
    return template.substitute(action=name, reward=sign, times=times)


def _perceived(observation: str) -> list[Part]:
    if isinstance(observation, Picture):
        words = str(observation)
        return [observation.png, "\n" + words] if words else [observation.png]
    return [observation]


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts, with neighbouring pieces of text joined."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        else:
            result.append(part)
    return tuple(result)


@lru_cache(maxsize=64)
def _request(actions: int) -> str:
    return messages()["request_one" if actions == 1 else "request"].substitute(
        actions=actions
    )


def without_pictures(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts with a few words in place of every picture."""
    word = messages()["no_picture"].template
    return joined(part if isinstance(part, str) else word for part in parts)


class PastPair(NamedTuple):
    """A past call: its observation, and the model's reply, which is "" if it had no
    action.
    """

    observed: tuple[Part, ...]
    reply: str


def conversation(
    system: Message,
    past: Sequence[PastPair],
    staying: int,
    observed: tuple[Part, ...],
    learnings: str | None,
    actions: int,
    refused: int = 0,
) -> tuple[Message, ...]:
    """Return the whole prompt of a call.

    A server should cache the first ``staying`` pairs, so the last reply among them is
    marked as staying. If ``learnings`` is None, learnings are not requested.
    ``actions`` is the maximum number of actions that the prompt asks for. ``refused``
    is the number of replies to this prompt that had no action. If there are any, the
    prompt says so.
    """
    text = messages()
    memory = (
        ""
        if learnings is None
        else text["learnings"].substitute(
            text=learnings or text["no_learnings"].template
        )
    )
    feedback = [text["feedback"].template] * min(refused, 1)
    closing = "\n\n" + "\n".join(filter(None, (*feedback, memory, _request(actions))))
    prompt = [system]
    told: list[Part] = []
    for number, pair in enumerate(past, 1):
        told += [*pair.observed]
        if pair.reply:
            stays = number == _last_reply(past[:staying])
            prompt.append(Message("user", joined(told)))
            prompt.append(Message("assistant", (pair.reply,), stays=stays))
            told = []
        else:
            told.append(f"\n{text['no_action'].template}\n")
    return (*prompt, Message("user", joined((*told, *observed, closing))))


def _last_reply(past: Sequence[PastPair]) -> int:
    """Return the number (from 1) of the last pair that has a reply, or 0 if none
    has.
    """
    return max((number for number, pair in enumerate(past, 1) if pair.reply), default=0)


def notes_request(
    system: Message, observed: tuple[Part, ...], learnings: str
) -> tuple[Message, ...]:
    """Return the prompt that asks only for learnings, with events that will not be
    shown again.
    """
    text = messages()
    memory = text["learnings"].substitute(
        text=learnings or text["no_learnings"].template
    )
    closing = f"\n\n{memory}\n{text['request_notes'].template}"
    return system, Message("user", joined((*observed, closing)))
