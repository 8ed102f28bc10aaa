"""The agents ``llm`` and ``llm-tools``: a language model plays a subject. See
``docs/prompts.md``.

``llm`` reads free text, and ``llm-tools`` asks the model to call a tool. All settings
are recorded, and can be varied.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from cheesebench import (
    ACTIONS,
    STAY,
    AnswerForm,
    ChatReply,
    Message,
    ModelAgentContext,
    ModelAgentSpec,
    OptionError,
    Part,
    did_you_mean,
)
from cheesebench.plugins.agents.llm import parsing, prompts

#: What happens after a reply without a valid action.
NOOP, RETRY, END_TRIAL = "noop", "retry-with-feedback", "end-trial"
#: When the rest of a plan is dropped.
ON_CHANGE, NEVER = "change", "never"
#: How a model of ``llm-tools`` answers: with a tool call, or with constrained JSON.
TOOLS, SCHEMA = "tools", "schema"
#: How later observations of a message are shown.
FULL, CHANGES = "full", "changes"

SETTINGS: Mapping[str, Any] = {
    # Number of past pairs of observation and reply in a prompt, or a range of numbers
    # (`Window`).
    "history": "3-7",
    # Maximum number of actions in one reply.
    "actions": 8,
    # Name of the system prompt.
    "prompt": "default",
    "unparsed": NOOP,
    # Whether an event drops the rest of a plan, or a plan is always completed (as in
    # the paper).
    "interrupt": ON_CHANGE,
    # After this many consecutive answers without an action, the rest of the trial
    # passes without calls (0: never).
    "patience": 5,
    # Whether later observations of a message are shown in full, or as changed lines.
    "observations": FULL,
    # Maximum number of characters of learnings (0: they are not requested).
    "learnings": 500,
    "reasoning_in_history": False,
    "images_in_history": True,
    # Sampling parameters, which the harness reads.
    "temperature": 0.7,
    # Unless the user sets it, the number is computed from the other settings
    # (`reply_tokens`).
    "max_tokens": 256,
}
#: Settings of ``llm-tools``: all settings of ``llm``, and how the model answers.
TOOL_SETTINGS: Mapping[str, Any] = {**SETTINGS, "answer": TOOLS}


class Window(NamedTuple):
    """The number of past pairs in a prompt, once a life is long enough: from ``least``
    to ``most``.

    Pairs are added until there are more than ``most``. Then all but the last ``least``
    are dropped. Between drops, prompts only grow, so that servers can reuse their
    prompt caches. If ``least`` equals ``most``, the window slides.
    """

    least: int
    most: int

    @property
    def slides(self) -> bool:
        """Whether every new pair pushes out the oldest one."""
        return self.least == self.most

    def cut(self, pairs: int) -> int:
        """Return how many of ``pairs`` pairs are dropped."""
        return pairs - self.least if pairs > self.most else 0


def read_history(text: str) -> int | str:
    """Return the setting ``history`` as it is recorded: a number of pairs, ``5``, or a
    range, ``"3-7"``. Raise ValueError if it is neither, or the range ends before it
    begins.
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", text, re.ASCII)
    if found is None:
        raise ValueError(
            f"{text!r} is neither a number of past pairs nor a range such as 3-7"
        )
    least, most = int(found[1]), int(found[2] or found[1])
    if least > most:
        raise ValueError(f"{text!r} ends before it begins")
    return least if least == most else f"{least}-{most}"


def window(history: int | str) -> Window:
    """Parse a valid setting ``history``."""
    least, _, most = str(history).partition("-")
    return Window(int(least), int(most or least))


class _Rule(NamedTuple):
    """A requirement on a value, in words and as a test."""

    wanted: str
    holds: Callable[[Any], bool]


def _whole(least: int) -> _Rule:
    return _Rule(
        f"a whole number of at least {least}",
        lambda value: (
            isinstance(value, int) and not isinstance(value, bool) and value >= least
        ),
    )


def _is_history(value: Any) -> bool:
    if not isinstance(value, str):
        return _whole(0).holds(value)
    try:
        return read_history(value) == value
    except ValueError:
        return False


def _one_of(*known: str) -> _Rule:
    return _Rule(
        f"one of {', '.join(known)}",
        lambda value: isinstance(value, str) and value in known,
    )


@lru_cache(maxsize=1)
def _rules() -> Mapping[str, _Rule]:
    switch = _Rule("true or false", lambda value: isinstance(value, bool))
    return {
        "history": _Rule(
            'a whole number of at least 0, or a range such as "3-7"', _is_history
        ),
        "actions": _whole(1),
        "prompt": _Rule(
            f"one of {', '.join(prompts.variants())}, a file (with a dot or a slash in its name), or a prompt of several words",
            lambda value: (
                isinstance(value, str)
                and (value in prompts.variants() or len(value.split()) > 1)
            ),
        ),
        "unparsed": _one_of(NOOP, RETRY, END_TRIAL),
        "interrupt": _one_of(ON_CHANGE, NEVER),
        "answer": _one_of(TOOLS, SCHEMA),
        "patience": _whole(0),
        "observations": _one_of(FULL, CHANGES),
        "learnings": _whole(0),
        "reasoning_in_history": switch,
        "images_in_history": switch,
        "temperature": _Rule(
            "a number from 0 to 2, or none to leave it to the server",
            lambda value: (
                value is None
                or (
                    isinstance(value, int | float)
                    and not isinstance(value, bool)
                    and 0 <= value <= 2
                )
            ),
        ),
        "max_tokens": _Rule(
            "a whole number of at least 1, or none to leave it to the server",
            lambda value: value is None or _whole(1).holds(value),
        ),
    }


def check(settings: Mapping[str, Any]) -> None:
    """Raise OptionError for an unknown setting or an invalid value."""
    _check(settings, SETTINGS)


def check_tools(settings: Mapping[str, Any]) -> None:
    """Do the same as ``check`` for the settings of ``llm-tools``."""
    _check(settings, TOOL_SETTINGS)


def _check(settings: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    rules = {name: rule for name, rule in _rules().items() if name in known}
    for name, value in settings.items():
        if name not in rules:
            raise OptionError(
                f"The agent has no setting '{name}'.{did_you_mean(name, rules)} Known: {', '.join(rules)}."
            )
        if not rules[name].holds(value):
            is_variant = name == "prompt" and isinstance(value, str)
            hint = did_you_mean(value, prompts.variants()) if is_variant else ""
            raise OptionError(
                f"The setting {name} is {value!r}; it must be {rules[name].wanted}.{hint}"
            )
        if name == "prompt":
            _check_placeholders(value)


def _check_placeholders(prompt: str) -> None:
    for name in prompts.unknown_placeholders(prompt)[:1]:
        filled = ", ".join(f"${one}" for one in prompts.PLACEHOLDERS)
        raise OptionError(
            f"The prompt has '${name}', which is not a placeholder."
            f"{did_you_mean(name, prompts.PLACEHOLDERS)} Known: {filled}. Write $$ for a dollar sign."
        )


#: With ``retry-with-feedback``, how often the model is asked again after a reply
#: without an action, before STAY is played.
RETRIES = 2
#: The STAY actions for the rest of an abandoned trial (``end-trial``, ``patience``).
#: There are more of them than any sensible trial has steps.
REST = (STAY,) * 10_000
#: Maximum number of characters of a reply that later prompts repeat. It matters only
#: if ``max_tokens`` is large or the server ignores it.
REPLY_LENGTH = 20_000
#: Names of the counters of a trial; see ``LlmAgent.tally``.
COUNTS = (
    *("calls", "notes", "unparsed", "truncated", "empty", "unusable"),
    *("ran_on", "unknown_items", "dropped_actions"),
    *("interrupted", "interrupted_actions", *ACTIONS),
)


def reply_tokens(settings: Mapping[str, Any]) -> int:
    """Return the number of tokens in the longest reply that the prompt asks for.

    It counts 7 tokens for each action, one for every 3 characters of learnings, and 30
    for the labels. The number is doubled for a prompt that asks for reasoning first,
    and for the user's own prompts. It is rounded up to a multiple of 16.
    """
    actions: int = settings["actions"]
    learnings: int = settings["learnings"]
    reasons = (
        settings["prompt"] not in prompts.variants() or settings["prompt"] == "cot"
    )
    asked = 7 * actions + learnings / 3 + 30
    return 16 * math.ceil((2 * asked if reasons else asked) / 16)


class _Past:
    """A past pair of observation and reply. Prompts have a reply that is rewritten from
    the executed actions, unless ``said`` has the model's own text. ``refused`` says
    whether the reply had no action.
    """

    def __init__(
        self, parts: tuple[Part, ...], said: str, learnings: str | None, refused: bool
    ) -> None:
        self.parts, self.said, self.learnings = parts, said, learnings
        self.refused = refused
        self.carried_out: list[int] = []


class LlmAgent:
    """The agents ``llm`` and ``llm-tools``. History and learnings last for all trials
    of a life.

    A *stretch* begins when a trial begins, and when the subject is free again after
    being held or moved. Without a history, a message holds only the present stretch
    (``docs/prompts.md``, "Without a history"). There is no randomness: prompts depend
    only on settings, observations and replies.
    """

    def __init__(self, context: ModelAgentContext) -> None:
        settings = {**SETTINGS, **context.settings}
        self._tools = "answer" in settings
        self._most: int = settings["actions"]
        self._room: int = settings["learnings"]
        self._policy: str = settings["unparsed"]
        self._patience: int = 1 if self._policy == END_TRIAL else settings["patience"]
        self._reasons = context.reasoning
        self._keeps_reasoning: bool = settings["reasoning_in_history"]
        self._keeps_replies = self._keeps_reasoning or settings["interrupt"] == NEVER
        self._pictures: bool = settings["images_in_history"]
        self._changes: bool = settings["observations"] == CHANGES
        self._window = window(settings["history"])
        text = prompts.system_prompt(
            settings["prompt"],
            context.reading,
            self._most,
            self._room,
            changes=self._changes,
            patience=0 if self._policy == END_TRIAL else self._patience,
            remembers=bool(self._window.most),
            interrupts=settings["interrupt"] == ON_CHANGE,
            tools=self._tools,
        )
        self._system = Message("system", (text,), stays=True)
        self._past: list[_Past] = []
        self._learnings = ""
        #: Events since the last accepted reply. Without a history, only events of the
        #: present stretch.
        self._events: list[prompts.Event] = []
        #: Events of earlier stretches that the model has not seen. Notes on them are
        #: requested before the next stretch.
        self._untold: list[prompts.Event] = []
        #: Actions of the last reply that have not been executed yet.
        self._pending: deque[int] = deque()
        #: Number of rejected replies to the current prompt. None of them names an
        #: action.
        self._refused = 0
        #: Number of consecutive accepted replies without an action, across trials.
        #: After ``patience`` such replies, the model is asked for one action per trial
        #: until it names an action again.
        self._silent = 0
        self._counts: Counter[str] = Counter()

    @property
    def learnings(self) -> str:
        """The model's learnings so far, as in the next prompt."""
        return self._learnings

    def begin_trial(self, observation: str) -> None:
        """Start a new trial. Actions of the last trial that were not executed are
        dropped.
        """
        self._pending.clear()
        self._counts.clear()
        self._end_stretch()
        self._events.append(prompts.Begun(observation))

    def freed(self, observation: str) -> None:
        """Begin a new stretch if there is no history, because the subject is free again
        after being held or moved.
        """
        if not self._window.most and self._events:
            # The last step belongs to the old stretch, and the new observation to the
            # next one.
            self._end_stretch()
            self._events.append(prompts.Freed(observation))

    def interrupted(self) -> bool:
        """Drop the rest of the plan, and return whether there was one. In a trial that
        passes without calls there is none.
        """
        if not self._pending:
            return False
        self._counts["interrupted"] += 1
        self._counts["interrupted_actions"] += len(self._pending)
        self._pending.clear()
        return True

    def _end_stretch(self) -> None:
        if self._window.most:
            return
        if self._room and not (self._patience and self._silent >= self._patience):
            self._untold += self._events
        self._events.clear()

    def prompt(self) -> tuple[Message, ...]:
        """Return the system prompt, the past pairs and the events since the last
        accepted reply. If notes on earlier stretches are due, return a request for them
        instead.
        """
        learnings = self._learnings if self._room else None
        if self._untold:
            return prompts.notes_request(
                self._system,
                prompts.tell(self._untold, self._changes, closed=True),
                self._learnings,
            )
        past = [
            prompts.PastPair(one.parts, "" if one.refused else self._remembered(one))
            for one in self._past
        ]
        return prompts.conversation(
            self._system,
            past,
            self._staying(),
            prompts.tell(self._events, self._changes),
            learnings,
            self._most,
            self._refused,
        )

    def read(self, reply: ChatReply) -> Sequence[int]:
        """Return the reply's actions, at most as many as the setting ``actions``. For a
        reply without an action, return STAY or ``REST``. Return nothing if the model is
        to be asked again, as it is after its notes.
        """
        spoken = self._spoken(reply)
        told = "\n".join(
            message.text for message in self.prompt() if message.role != "assistant"
        )
        ended_early = reply.finish == "length"
        torn = ended_early and not spoken.ran_on
        parsed = parsing.parse(spoken.text, self._most, self._room, told, torn)
        cut_off = spoken.cut_off or ended_early
        self._count(
            calls=1,
            truncated=cut_off,
            empty=not (spoken.text or cut_off or reply.finish == "unread"),
            ran_on=spoken.ran_on or parsed.ran_on,
        )
        if self._untold:
            # Only learnings were requested. The next prompt asks for actions.
            self._count(notes=1, unusable=cut_off or not spoken.text)
            self._untold.clear()
            self._learn(parsed)
            return ()
        self._count(
            unparsed=not parsed.actions,
            unusable=cut_off or not parsed.actions,
            unknown_items=0 if cut_off else parsed.unknown,
            dropped_actions=parsed.dropped,
        )
        if not parsed.actions and self._policy == RETRY and self._refused < RETRIES:
            self._refused += 1
            return ()
        self._commit(reply, spoken, parsed)
        self._learn(parsed)
        return self._carried_out(parsed)

    def _spoken(self, reply: ChatReply) -> parsing.Spoken:
        if reply.finish == "unread":
            return parsing.Spoken("", reply.reasoning, False)
        spoken = parsing.separate_reasoning(reply.text, reply.finish == "length")
        thought = reply.reasoning or spoken.reasoning
        if self._reasons and reply.finish == "length" and not thought:
            # The reply was cut off within untagged reasoning, so it has no answer.
            return parsing.Spoken("", spoken.text, True)
        return spoken

    def _count(self, **counts: int) -> None:
        for name, count in counts.items():
            self._counts[name] += count

    def _carried_out(self, parsed: parsing.Parsed) -> Sequence[int]:
        self._silent = 0 if parsed.actions else self._silent + 1
        if self._patience and self._silent >= self._patience:
            # Nothing is pending, so the model is told that it waited in these steps.
            return REST
        self._pending.extend(parsed.actions or (STAY,))
        return parsed.actions or (STAY,)

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Record the result of a step, even of one that the model did not choose."""
        asked = self._pending.popleft() if self._pending else None
        if asked is not None and self._past and not self._silent:
            self._past[-1].carried_out.append(asked)
            self._count(**{ACTIONS[asked]: 1})
        self._events.append(prompts.Step(asked, reward, observation, ended))

    def tally(self) -> Mapping[str, int]:
        """Return all counts of the trial, in the order of ``COUNTS``."""
        return {name: self._counts[name] for name in COUNTS}

    def _staying(self) -> int:
        """Return the number of past pairs, from the first, that a server should cache.

        As a rule these are all pairs, because the next prompt begins with them. If the
        next prompt will drop pairs, these are the pairs of the previous prompt, whose
        cache can be used once more. A window that slides leaves nothing to cache.
        """
        pairs, (_, most) = len(self._past), self._window
        if pairs < most:
            return pairs
        return 0 if self._window.slides else pairs - 1

    def _learn(self, parsed: parsing.Parsed) -> None:
        if parsed.learnings is not None:
            self._learnings = _storable(parsed.learnings)

    def _remembered(self, past: _Past) -> str:
        """Return a past reply as later prompts have it: notes and executed actions, or
        the model's own text if that is kept.
        """
        if past.said:
            return past.said
        if self._tools:
            answer: dict[str, Any] = {
                "actions": [ACTIONS[action] for action in past.carried_out]
            }
            return json.dumps(
                answer
                | ({} if past.learnings is None else {"learnings": past.learnings})
            )
        notes = [] if past.learnings is None else [f"LEARNINGS: {past.learnings}"]
        return "\n".join([*notes, parsing.canonical(past.carried_out)])

    def _commit(
        self, reply: ChatReply, spoken: parsing.Spoken, parsed: parsing.Parsed
    ) -> None:
        """Turn the current prompt and its reply into a past pair."""
        said = ""
        if self._keeps_replies and parsed.actions:
            reasoning = (
                (reply.reasoning or spoken.reasoning) if self._keeps_reasoning else ""
            )
            said = (
                f"<think>\n{reasoning}\n</think>\n{spoken.text}"
                if reasoning
                else spoken.text
            )
        learnings = None if parsed.learnings is None else _storable(parsed.learnings)
        parts = prompts.tell(self._events, self._changes)
        if not self._pictures:
            parts = prompts.without_pictures(parts)
        said = _storable(said[:REPLY_LENGTH])
        self._past.append(_Past(parts, said, learnings, not parsed.actions))
        del self._past[: self._window.cut(len(self._past))]
        self._events.clear()
        self._refused = 0


def _storable(text: str) -> str:
    """Return the text with lone surrogates replaced, because they can be neither sent
    nor stored.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def answer_form(settings: Mapping[str, Any]) -> AnswerForm:
    """Return the form of the replies of ``llm-tools``. The actions come first, so that
    a truncated call still contains them.
    """
    actions: dict[str, Any] = {"type": "string", "enum": list(ACTIONS)}
    listed = {
        "type": "array",
        "items": actions,
        "minItems": 1,
        "maxItems": settings["actions"],
    }
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"actions": listed},
        "additionalProperties": False,
    }
    if settings["learnings"]:
        schema["properties"]["learnings"] = {
            "type": "string",
            "maxLength": settings["learnings"],
        }
    schema["required"] = [*schema["properties"]]
    text = prompts.messages()[
        "tool" if settings["learnings"] else "tool_without_learnings"
    ].substitute(learnings=settings["learnings"])
    return AnswerForm(
        name="act", description=text, schema=schema, by_tool=settings["answer"] == TOOLS
    )


def memory_line(settings: Mapping[str, Any]) -> str:
    """Return the memory of a subject with these settings in words, such as ``3-7 past
    answers, 500 characters of notes``.
    """
    history, notes = window(settings["history"]), settings["learnings"]
    noted = f"{notes} characters of notes" if notes else ""
    if not history.most:
        return f"notes only ({notes} characters)" if notes else "none"
    answers = f"{settings['history']} past answer{'s' * (history.most > 1)}"
    kept = "reasoning kept" if settings["reasoning_in_history"] else ""
    whole = "whole replies kept" if settings["interrupt"] == NEVER and not kept else ""
    return ", ".join(filter(None, (answers, noted, kept, whole)))


LLM = ModelAgentSpec(
    name="llm",
    create=LlmAgent,
    settings=SETTINGS,
    check=check,
    readers={"history": read_history},
    memory="life",
    instructions=prompts.instructions,
    remembers=memory_line,
    reply_tokens=reply_tokens,
    summary="asks a language or vision model: observations in, learnings and actions out",
)
LLM_TOOLS = replace(
    LLM,
    name="llm-tools",
    settings=TOOL_SETTINGS,
    check=check_tools,
    form=answer_form,
    summary="like `llm`, but the model acts by calling a tool or filling in a schema, so no text has to be parsed",
)
