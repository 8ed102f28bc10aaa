"""Four kinds of respondents, from bad to good, that play whole runs. Each answers calls
as a model's server would, so that the real agent, client and log are used.

``hopeless`` names one action at the beginning of its life (a subject that never acts is
not asked again), and then writes words without any action. ``weak`` walks at random.
``ratlike`` and ``competent`` follow a solver, except in a quarter and in a twentieth of
their trials, where they walk at random. The server distinguishes subjects by the seeds
of their calls, and replays each life along with the run, so that the solver knows its
state.

Tokens are those of ``o200k_base`` (which comes with litellm); a prompt's cached tokens
are those that were sent before: in blocks of 16 tokens, as in vLLM's cache, and, for
the price of an API, in steps of 128 from 1,024 on, as in OpenAI's.
"""

from __future__ import annotations

import importlib.util
import os
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from cheesebench.experiment.subjects import agent_seed, call_seed, interrupts_of
from cheesebench.interfaces import ACTION_OF_LETTER, ACTIONS, STAY
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import DARKNESS
from cheesebench.paradigms.arena.audit.search import Search, is_success
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.agents.llm.parsing import parse
from cheesebench.records import CellPlan
from cheesebench.testing.fake_server import Answer, Call
from cheesebench.trial_loop import TrialLoop

#: Share of trials in which each respondent walks at random. None means that it names a
#: single action in its life.
LAPSES: Mapping[str, float | None] = {
    "hopeless": None,
    "weak": 1.0,
    "ratlike": 0.25,
    "competent": 0.05,
}
#: Maximum number of actions of a reply, as in the agent's prompt.
MOST = 8
#: Maximum number of steps of the solver: ``EFFORT`` until its first success, ``POLISH``
#: for finding a shorter path.
EFFORT, POLISH = 20_000, 500
_TEXT = (
    "grey light near warm quiet perhaps again slowly beyond under the of and a this that some many round small "
    "distant open narrow bright dim edge corner stone water cold dry late early still soft sharp far"
)
_WORDS = _TEXT.split()
#: Number of tokens that a server adds to a message.
AROUND = 4
BLOCK = 16
#: ``API_LEAST`` is the minimum number of tokens that an API caches, ``API_STEP`` the
#: increment above it.
API_LEAST, API_STEP = 1024, 128


@lru_cache(maxsize=1)
def encoding() -> Any:
    """Return the tokenizer. Its file comes with litellm, so nothing is downloaded."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        raise SystemExit(
            "litellm, which brings the tokenizer, is not installed: pip install litellm tiktoken"
        )
    os.environ["TIKTOKEN_CACHE_DIR"] = str(
        Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    )
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


@lru_cache(maxsize=50_000)
def tokens(text: str) -> tuple[int, ...]:
    """Return the tokens of a text. Results are cached, because past texts recur in
    every prompt.
    """
    return tuple(encoding().encode_ordinary(text))


class PrefixCache:
    """An unlimited model of a server's prefix cache, in blocks."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def read(self, prompt: Sequence[int]) -> int:
        """Return how many tokens at the beginning of the prompt are cached, in whole
        blocks; then cache the rest.
        """
        mark, cached, known = 0, 0, True
        for start in range(0, len(prompt) - BLOCK + 1, BLOCK):
            mark = hash((mark, *prompt[start : start + BLOCK]))
            known = known and mark in self._seen
            cached += BLOCK if known else 0
            self._seen.add(mark)
        return cached


@dataclass
class Player:
    """One subject, with a copy of its life in the run."""

    kind: str
    paradigm: ArenaParadigm
    plan: CellPlan
    seed: int
    subject: int
    origin: int = 0
    calls: int = 0
    _plan: deque[int] = field(default_factory=deque)
    _walks: bool = False

    def __post_init__(self) -> None:
        self.origin = agent_seed(self.plan, self.seed, self.subject)
        self._life = ArenaSubject(
            self.paradigm.program, DARKNESS, self.seed, self.subject
        )
        #: The same life as the agent sees it, because the picture may end a plan.
        self._seen = self.paradigm.environment(
            installed_plugins().view(self.plan.view), self.seed, self.subject
        )
        self._loop: TrialLoop | None = None
        self._chance = random.Random(f"{self.kind}|{self.origin}")
        self._search = Search(
            self.paradigm.program, self.paradigm.specification, is_success
        )
        self._begin()

    @property
    def next_seed(self) -> int:
        """The seed of the subject's next call, by which the server recognises the
        call.
        """
        return call_seed(self.origin, self.calls + 1)

    def reply(self) -> str:
        """Return the subject's reply to its next call, and carry out the actions in
        it.
        """
        self.calls += 1
        text = self._say()
        self._live(lambda loop: loop.act(parse(text, MOST, 500).actions or (STAY,)))
        return text

    def _say(self) -> str:
        if LAPSES[self.kind] is None:
            if self.calls == 1:
                return "ACTIONS: STAY"
            return " ".join(self._chance.choices(_WORDS, k=10)) + "."
        if self._walks:
            chosen = self._chance.choices(ACTIONS, k=MOST)
        else:
            chosen = [ACTIONS[action] for action in list(self._plan)[:MOST]] or ["STAY"]
        learnt = " ".join(self._chance.choices(_WORDS, k=60))
        return f"LEARNINGS: {learnt}\nACTIONS: {', '.join(chosen)}"

    def _live(self, act: Callable[[TrialLoop], None]) -> None:
        """Act, and repeat the action in the life without a picture; then begin the next
        trial if this one has ended.
        """
        loop = self._loop
        assert loop is not None
        before = len(loop.letters)
        act(loop)
        self._follow(loop.letters[before:])
        if loop.ended:
            self._begin()

    def _follow(self, letters: Sequence[str]) -> None:
        for letter in letters:
            self._life.step(ACTION_OF_LETTER[letter])
            if self._plan:
                self._plan.popleft()

    def _begin(self) -> None:
        """Begin the next trial in which the subject is asked; none is left at the end
        of the schedule.
        """
        while (observation := self._seen.begin_trial()) is not None:
            self._life.begin_trial()
            self._plan.clear()
            loop = self._loop = TrialLoop(
                self._seen,
                observation,
                lambda *step: None,
                interrupts=interrupts_of(self.plan),
            )
            self._follow(loop.letters)
            if not loop.ended:
                self._think()
                return

    def _think(self) -> None:
        lapses = LAPSES[self.kind]
        if lapses is None:
            return
        self._walks = self._chance.random() < lapses
        if not self._walks:
            found = self._search.solve(self._life, EFFORT, POLISH)
            ending = found.shortest or found.best_failure
            self._walks = ending is None
            self._plan = deque(ending.actions if ending else ())


@dataclass
class Counted:
    """The numbers of tokens of a call. ``api`` is the number that an API's cache would
    have had.
    """

    prompt: int
    cached: int
    api: int
    completion: int


class Respondents:
    """The script of a server: each call is answered by its subject."""

    def __init__(self) -> None:
        self._waiting: dict[int, Player] = {}
        self._cache = PrefixCache()
        #: Tokens of each subject's calls, in order.
        self.counted: dict[tuple[str, str, int], list[Counted]] = {}

    def seat(self, player: Player) -> None:
        """Expect a subject's first call."""
        self._waiting[player.next_seed] = player
        self.counted[(player.kind, player.plan.protocol, player.subject)] = []

    def __call__(self, call: Call) -> Answer:
        """Answer a call, and count its tokens."""
        player = self._waiting.pop(call.body["seed"])
        text = player.reply()
        self._waiting[player.next_seed] = player
        prompt: list[int] = []
        for message in call.body["messages"]:
            # The tokens around a message depend only on its role.
            role = -1 - ("system", "user", "assistant").index(message["role"])
            prompt += (*[role] * AROUND, *tokens(message["content"]))
        cached = self._cache.read(prompt)
        api = cached // API_STEP * API_STEP if cached >= API_LEAST else 0
        counted = Counted(
            len(prompt), cached, api, len(encoding().encode_ordinary(text))
        )
        self.counted[(player.kind, player.plan.protocol, player.subject)].append(
            counted
        )
        usage = {
            "prompt_tokens": counted.prompt,
            "completion_tokens": counted.completion,
            "total_tokens": counted.prompt + counted.completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        return Answer(text=text, usage=usage)
