"""One subject played by a model: its history, and how prompts and actions follow from it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from cheesebench import STAY, ChatReply, Message, ModelAgentContext, Part
from cheesebench.plugins.agents.llm.conversation import (
    Begun,
    Event,
    Step,
    conversation,
    past_pair,
    tell,
    with_mark,
    without_pictures,
)
from cheesebench.plugins.agents.llm.parsing import Spoken, parse, separate_reasoning
from cheesebench.plugins.agents.llm.prompts import system_prompt
from cheesebench.plugins.agents.llm.settings import CHANGES, END_TRIAL, RETRY, SETTINGS, window

#: Feedback messages for replies without an action before a STAY is played (``retry-with-feedback``).
RETRIES = 2
#: STAY steps played once a trial is given up (``end-trial``, ``patience``): longer than any sensible trial.
REST = (STAY,) * 10_000
#: Characters of a reply that are kept. Far more than ``max_tokens`` lets through; for servers without limits.
REPLY_LENGTH = 20_000
#: What is counted, trial by trial; see ``LlmAgent.tally``.
COUNTS = ("calls", "unparsed", "truncated", "empty", "unusable", "dropped_actions")


class LlmAgent:
    """The agent ``llm``. History and learnings continue across the trials of a life.

    Nothing here is random: prompts depend only on observations and replies.
    """

    def __init__(self, context: ModelAgentContext) -> None:
        settings = {**SETTINGS, **context.settings}
        self._most: int = settings["actions"]
        self._room: int = settings["learnings"]
        self._policy: str = settings["unparsed"]
        self._patience: int = 1 if self._policy == END_TRIAL else settings["patience"]
        self._reasoning: bool = settings["reasoning_in_history"]
        self._pictures: bool = settings["images_in_history"]
        self._changes: bool = settings["observations"] == CHANGES
        announced = 0 if self._policy == END_TRIAL else self._patience
        text = system_prompt(settings["prompt"], context.reading, self._most, self._room, self._changes, announced)
        self._system = Message("system", (text,), stays=True)
        self._window = window(settings["history"])
        self._past: list[tuple[Message, Message]] = []
        self._learnings = ""
        #: Since the last call.
        self._events: list[Event] = []
        #: Actions of the last reply that have not been executed yet.
        self._pending: deque[int] = deque()
        #: Replies to the current prompt that had no action and were rejected.
        self._refused: list[str] = []
        #: Replies without an action since the last one that held some. It goes on from trial to trial: whoever has
        #: stopped answering is asked once in a trial, and as usual again after an answer.
        self._silent = 0
        self._counts: Counter[str] = Counter()

    @property
    def learnings(self) -> str:
        """The model's learnings so far, as in the next prompt."""
        return self._learnings

    def begin_trial(self, observation: str) -> None:
        """Start a new trial; actions of the last one that were not executed are dropped."""
        self._pending.clear()
        self._counts.clear()
        self._events.append(Begun(observation))

    def prompt(self) -> tuple[Message, ...]:
        """Return the system prompt, the past pairs, and what has happened since the last call."""
        learnings = self._learnings if self._room else None
        past = with_mark(self._past, self._staying())
        return conversation(
            self._system, past, tell(self._events, self._changes), learnings, self._most, [*self._refused]
        )

    def read(self, reply: ChatReply) -> Sequence[int]:
        """Return at most k actions; for a reply without one STAY, none where it is to be asked again, or ``REST``."""
        spoken = separate_reasoning(reply.text)
        parsed = parse(spoken.text, self._most, self._room)
        cut_off = spoken.cut_off or reply.finish == "length"
        self._counts["calls"] += 1
        self._counts["unparsed"] += not parsed.actions
        self._counts["truncated"] += cut_off
        self._counts["empty"] += not (spoken.text or cut_off)
        self._counts["unusable"] += cut_off or not parsed.actions
        self._counts["dropped_actions"] += parsed.dropped
        remembered = self._remembered(reply, spoken)
        if not parsed.actions and self._policy == RETRY and len(self._refused) < RETRIES:
            self._refused.append(remembered)
            return ()
        self._commit(remembered)
        if parsed.learnings is not None:
            self._learnings = _storable(parsed.learnings)
        self._silent = 0 if parsed.actions else self._silent + 1
        if self._patience and self._silent >= self._patience:
            return REST  # and nothing is pending, so these steps are shown as waiting
        actions = parsed.actions or (STAY,)
        self._pending.extend(actions)
        return actions

    def observe(self, action: int, reward: float, observation: str, ended: bool) -> None:
        """Record the result of a step, chosen by the model or frozen."""
        asked = self._pending.popleft() if self._pending else None
        self._events.append(Step(asked, reward, observation, ended))

    def tally(self) -> Mapping[str, int]:
        """Return the counts of the trial, all of them, in the order of ``COUNTS``."""
        return {name: self._counts[name] for name in COUNTS}

    def _staying(self) -> int:
        """Return how many of the past pairs are worth remembering for a server: what later prompts begin with, too.

        The last prompt before a cut adds nothing that stays, but it still begins as the one before it.
        """
        pairs, (_, most) = len(self._past), self._window
        if pairs < most:
            return pairs
        return 0 if self._window.slides else pairs - 1

    def _remembered(self, reply: ChatReply, spoken: Spoken) -> str:
        text = spoken.text
        reasoning = reply.reasoning or spoken.reasoning
        if self._reasoning and reasoning:
            text = f"<think>\n{reasoning}\n</think>\n{text}"
        return _storable(text[:REPLY_LENGTH])

    def _commit(self, reply: str) -> None:
        """The present prompt becomes past."""
        parts: tuple[Part, ...] = tell(self._events, self._changes)
        self._past.append(past_pair(parts if self._pictures else without_pictures(parts), reply))
        del self._past[: self._window.cut(len(self._past))]
        self._events.clear()
        self._refused.clear()


def _storable(text: str) -> str:
    """Return text that can be encoded (a lone surrogate can be neither sent nor stored)."""
    return text.encode("utf-8", "replace").decode("utf-8")
