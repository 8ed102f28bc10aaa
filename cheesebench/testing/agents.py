"""Rules for agents (with and without a language model), and for respondents in
dialogues.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, get_args

from cheesebench.chat import (
    ChatReply,
    Message,
    ModelAgent,
    ModelAgentContext,
    ModelAgentSpec,
)
from cheesebench.dialogue import Puzzle, RespondentSpec
from cheesebench.errors import PluginError
from cheesebench.interfaces import (
    ACTIONS,
    MEMORY_RULE,
    STAY,
    Agent,
    AgentContext,
    AgentSpec,
    Memory,
    Paradigm,
    SubjectEnvironment,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.redaction import quoted
from cheesebench.testing.rules import DECLARATION, Broken, Rules, assert_none, need
from cheesebench.trial_loop import TrialLoop

#: Number of trials in a life of the test world.
TRIALS = 6

_PROTOCOL = """
version: 1
paradigm: conformance
arena:
  map: |
    #########
    #L..S..R#
    #.#####.#
    #...x...#
    #########
  legend: {L: {zone: left, glyph: ","}, R: right, S: box, x: {zone: hot, glyph: "~"}}
  groups: {side: [left, right]}
  landmarks: {N: "1", W: "2"}
draw:
  goal: {per: trial, of: {goal: [left, right]}}
start: {at: box, face: random}
trial:
  limit: 60
  start: wait
  states:
    wait: {freeze: true, say: "...", rules: [{after: 3, go: run}]}
    run:
      say: GO
      show: {goal: "*"}
      each: {reward: -0.01}
      rules:
        - {enter: goal, reward: 1, end: found}
        - {enter: side, reward: -1, end: missed}
  watch: [{enter: hot, reward: -0.5}]
schedule: {main: {sessions: 2, trials: 3}}
success: last == found
"""


def environment(view: str, seed: int) -> SubjectEnvironment:
    """Return the environment of a new subject in the test world. ``view`` is a text
    view.
    """
    plugins = installed_plugins()
    specification, found = Catalogue().inspect_text(_PROTOCOL)
    if specification is None:
        raise PluginError("\n".join(map(str, found)))
    paradigm: Paradigm = plugins.compile(specification)
    return paradigm.environment(plugins.view(view), seed, 0)


#: Maximum number of actions in one answer: far more than a trial has steps.
MOST_ACTIONS = 100_000
#: Replies and texts that must not break any agent.
HOSTILE = (
    *(
        "",
        " ",
        "\n" * 500,
        "\x00\x1b[2J\x1b]0;owned\x07",
        "\ud800",
        "🐭" * 99,
        "ACTIONS:",
        "ACTIONS: , ,;|",
    ),
    *(
        "ACTIONS: FLY, DIG",
        "ACTIONS: " + "FORWARD, " * 20_000,
        "FORWARD " * 20_000,
        "ACTIONS: ١٢٣ ²",
        "LEARNINGS:",
    ),
    *(
        '{"actions": [0, 99, -1, null, 1e999]}',
        "[" * 5_000,
        "<think>" * 3_000,
        "</think>",
        "<think>ACTIONS: STAY",
    ),
    *(
        "LEARNINGS: " + "x" * 200_000,
        "%s %(x)s {0} {x} ${x}",
        "ACTIONS: 1e9",
        "ACTIONS: -1, 4, 99999999999999999999",
    ),
)

RULES: Rules[AgentCase] = Rules()
MODEL_RULES: Rules[ModelAgentCase] = Rules()


@dataclass(frozen=True, slots=True)
class AgentCase:
    """An agent without a model, and the view in which it is tested."""

    spec: AgentSpec
    view: str


@dataclass(frozen=True, slots=True)
class ModelAgentCase:
    """An agent that asks a language model, the view in which it is tested, and its
    settings.
    """

    spec: ModelAgentSpec
    view: str
    settings: Mapping[str, Any]


def broken_agent_rules(
    spec: AgentSpec | ModelAgentSpec,
    *,
    view: str = "ascii_2d",
    settings: Mapping[str, Any] | None = None,
    but: Collection[str] = (),
) -> list[Broken]:
    """Return the rules that an agent breaks.

    ``view`` is the (text) view in which the agent is tested. ``settings`` replace the
    defaults of an agent that asks a model. ``but`` names rules to skip.
    """
    if isinstance(spec, ModelAgentSpec):
        return MODEL_RULES.broken(
            ModelAgentCase(spec, view, {**spec.settings, **(settings or {})}), but
        )
    return RULES.broken(AgentCase(spec, view), but)


def assert_agent_sound(
    spec: AgentSpec | ModelAgentSpec,
    *,
    view: str = "ascii_2d",
    settings: Mapping[str, Any] | None = None,
    but: Collection[str] = (),
) -> None:
    """Raise AssertionError with the rules that an agent breaks; see
    ``broken_agent_rules`` for the arguments.
    """
    broken = broken_agent_rules(spec, view=view, settings=settings, but=but)
    assert_none(f"the agent '{getattr(spec, 'name', spec)}'", broken)


def check_name(name: object, memory: object, summary: str) -> None:
    # NAME@EDITION replaces NAME in protocols of that edition.
    parts = name.split("@") if isinstance(name, str) else []
    good = (
        len(parts) in (1, 2)
        and all(part and part == part.strip() for part in parts)
        and not set(str(name)) & set("/:, \n")
    )
    need(
        good,
        f"the name {name!r} cannot be written as --model NAME: use letters, digits and hyphens",
        hinders=False,
    )
    need(
        memory in get_args(Memory),
        f"memory is {memory!r}; {MEMORY_RULE}",
        hinders=False,
    )
    need(
        summary.strip(),
        "summary is empty: write the phrase that 'cheesebench list' shows",
        hinders=False,
    )


@contextmanager
def untouched_randomness() -> Iterator[None]:
    """Raise BreachError if the block changes Python's or numpy's global generator."""
    before = random.getstate()
    arrays = _state_of_arrays()
    try:
        yield
    finally:  # Also where the block breaks another rule.
        drawn = random.getstate() != before
        same = _state_of_arrays() == arrays
        need(
            not drawn,
            "draws from the global 'random': use random.Random(context.seed), or runs cannot be repeated",
        )
        need(
            same,
            "draws from the global 'numpy.random': use numpy.random.default_rng(context.seed)",
        )


def _state_of_arrays() -> tuple[object, ...]:
    from numpy import random as numpy_random

    state: Any = numpy_random.get_state(legacy=True)
    name, words, *rest = state
    return (name, words.tobytes(), *rest)


# -- agents that act by themselves


def _live(lives: Sequence[tuple[Agent, SubjectEnvironment]]) -> list[list[int]]:
    """Run agents in parallel, one answer each in turn. Return the actions of each."""
    chosen: list[list[int]] = [[] for _ in lives]
    running = [
        _steps(agent, life, actions)
        for (agent, life), actions in zip(lives, chosen, strict=True)
    ]
    while running:
        running = [steps for steps in running if next(steps, None) is not None]
    return chosen


def _steps(agent: Agent, life: SubjectEnvironment, chosen: list[int]) -> Iterator[int]:
    """Run a life as the runner does, and yield after every answer."""
    while (observation := life.begin_trial()) is not None:
        agent.begin_trial(observation)
        loop = TrialLoop(life, observation, agent.observe)
        while not loop.ended:
            actions = checked(agent.act(loop.observation))
            chosen += actions
            loop.act(actions)
            yield 1


def checked(actions: object, fewest: int = 1) -> list[int]:
    """Return actions as a list. Raise BreachError if they are not valid actions."""
    need(
        isinstance(actions, Sequence) and not isinstance(actions, str),
        f"answers {_kind(actions)}, not actions",
    )
    found = list(actions) if isinstance(actions, Sequence) else []
    need(fewest <= len(found) <= MOST_ACTIONS, f"answers with {len(found)} actions")
    for action in found:
        whole = isinstance(action, int) and not isinstance(action, bool)
        need(
            whole and 0 <= action < len(ACTIONS),
            f"answers with the action {action!r}; actions are 0 to 3",
        )
    return found


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _alone(case: AgentCase, seed: int) -> list[int]:
    agent = case.spec.create(AgentContext(seed, case.view))
    return _live([(agent, environment(case.view, 7))])[0]


@RULES.rule(DECLARATION)
def _declaration(case: AgentCase) -> None:
    need(
        isinstance(case.spec, AgentSpec),
        f"is a {type(case.spec).__name__}, but an AgentSpec is expected",
    )
    check_name(case.spec.name, case.spec.memory, case.spec.summary)


@RULES.rule("valid actions")
def _actions(case: AgentCase) -> None:
    need(_alone(case, 1), "never acted")


@RULES.rule("same seed, same actions")
def _deterministic(case: AgentCase) -> None:
    lives = []
    for state in (1, 2):
        before = random.getstate()
        random.seed(state)
        lives.append(_alone(case, 11))
        random.setstate(before)
    need(
        lives[0] == lives[1],
        "two subjects with the same seed act differently: runs cannot be repeated",
    )


@RULES.rule("no global randomness")
def _no_global_randomness(case: AgentCase) -> None:
    with untouched_randomness():
        _alone(case, 3)


@RULES.rule("independent subjects")
def _independent(case: AgentCase) -> None:
    """Subjects that run in parallel in one process behave as each does alone."""
    agents = [case.spec.create(AgentContext(seed, case.view)) for seed in (21, 22)]
    together = _live([(agent, environment(case.view, 7)) for agent in agents])
    alone = [_alone(case, seed) for seed in (21, 22)]
    need(
        together == alone,
        "a subject acts differently when another one runs beside it: they share state",
    )


@RULES.rule("any observation")
def _whatever_is_seen(case: AgentCase) -> None:
    agent = case.spec.create(AgentContext(5, case.view))
    for text in HOSTILE:
        agent.begin_trial(text)
        for _ in range(3):
            action = checked(agent.act(text))[0]
            agent.observe(action, 1e9, text, False)
        agent.observe(STAY, float("-1e9"), text, True)


# -- agents that ask a model


def _converse(
    case: ModelAgentCase, seed: int, replies: Callable[[int], str]
) -> list[object]:
    """Run with a model that gives these replies (by call number). Return all prompts,
    actions and tallies of the agent.
    """
    agent, lived = _new(case, seed), environment(case.view, 7)
    record: list[object] = []
    calls = 0
    while (observation := lived.begin_trial()) is not None:
        agent.begin_trial(observation)
        loop, asked = TrialLoop(lived, observation, agent.observe), 0
        while not loop.ended:
            prompt = agent.prompt()
            _check_prompt(prompt)
            need(
                agent.prompt() == prompt,
                "prompt() called twice returns two different prompts: it must be a function of the past",
            )
            actions = checked(agent.read(ChatReply(text=replies(calls))), fewest=0)
            record += [prompt, *actions]
            calls, asked = calls + 1, asked + 1
            need(
                asked <= 2000,
                "a trial takes over 2000 calls: read() never gives up on a reply without an action",
            )
            if actions:
                loop.act(actions)
        record.append(_checked_tally(agent.tally()))
    return record


def _new(case: ModelAgentCase, seed: int) -> ModelAgent:
    return case.spec.create(
        ModelAgentContext(seed=seed, view=case.view, settings=case.settings)
    )


def _check_prompt(prompt: object) -> None:
    need(
        isinstance(prompt, tuple) and prompt,
        f"prompt() returns {_kind(prompt)}, but messages are expected",
    )
    messages = prompt if isinstance(prompt, tuple) else ()
    for message in messages:
        need(
            isinstance(message, Message),
            f"prompt() holds {_kind(message)}, but a Message is expected",
        )
        need(
            message.role in ("system", "user", "assistant"),
            f"a message has the role {message.role!r}",
        )
        need(
            isinstance(message.parts, tuple),
            f"a message's parts are {_kind(message.parts)}, but a tuple is expected",
        )
        pictures = [part for part in message.parts if not isinstance(part, str)]
        need(
            not pictures,
            "a prompt contains a picture, although every observation is text",
        )
    need(
        messages[-1].role == "user",
        "the last message is not the user's, so there is nothing to answer",
    )


def _checked_tally(tally: object) -> object:
    need(
        isinstance(tally, Mapping),
        f"tally() returns {_kind(tally)}, but counts by name are expected",
    )
    counts = dict(tally) if isinstance(tally, Mapping) else {}
    for name, count in counts.items():
        whole = isinstance(count, int) and not isinstance(count, bool) and count >= 0
        need(
            isinstance(name, str) and whole,
            f"tally() counts {name!r} as {count!r}, but counts are whole numbers of at least 0",
        )
    return counts


def _sensible(number: int) -> str:
    words = (
        "FORWARD",
        "ROTATE_LEFT, FORWARD",
        "ROTATE_RIGHT",
        "FORWARD, FORWARD",
        "STAY",
    )
    return f"LEARNINGS: call {number} went well.\nACTIONS: {words[number % len(words)]}"


@MODEL_RULES.rule(DECLARATION)
def _model_declaration(case: ModelAgentCase) -> None:
    check_name(case.spec.name, case.spec.memory, case.spec.summary)


@MODEL_RULES.rule("settings")
def _settings(case: ModelAgentCase) -> None:
    """Settings are recorded and can be varied, so they are plain values that pass the
    agent's own check.
    """
    try:
        same = json.loads(json.dumps(dict(case.settings))) == dict(case.settings)
    except (TypeError, ValueError):
        same = False
    need(
        same,
        "settings are not plain values (numbers, words, true or false), which the run log needs",
    )
    case.spec.check(case.settings)
    _new(case, 1)


@MODEL_RULES.rule("prompts are a function of the past")
def _prompts(case: ModelAgentCase) -> None:
    need(_converse(case, 1, _sensible), "no call was made")


@MODEL_RULES.rule("constant messages")
def _what_stays(case: ModelAgentCase) -> None:
    """A message that is declared constant stays constant, because caching a prefix that
    is not used again costs money.
    """
    prompts = [one for one in _converse(case, 1, _sensible) if isinstance(one, tuple)]
    for before, prompt, after in zip(
        [(), *prompts], prompts, prompts[1:], strict=False
    ):
        for number, message in enumerate(prompt, 1):
            kept = prompt[:number] in (before[:number], after[:number])
            need(
                kept or not message.stays,
                f"message {number} of a prompt is declared constant, but neither the previous nor the next prompt "
                "begins with the same messages up to it",
            )


@MODEL_RULES.rule("same seed, same prompts")
def _same_prompts(case: ModelAgentCase) -> None:
    lives = []
    for state in (1, 2):
        before = random.getstate()
        random.seed(state)
        lives.append(_converse(case, 11, _sensible))
        random.setstate(before)
    need(
        lives[0] == lives[1],
        "two subjects with the same seed ask or act differently after the same replies",
    )


@MODEL_RULES.rule("no global randomness")
def _model_randomness(case: ModelAgentCase) -> None:
    with untouched_randomness():
        _converse(case, 3, _sensible)


@MODEL_RULES.rule("independent subjects")
def _model_independent(case: ModelAgentCase) -> None:
    one, other = _new(case, 1), _new(case, 2)
    one.begin_trial("here")
    before = one.prompt()
    other.begin_trial("elsewhere")
    other.read(ChatReply(text="LEARNINGS: all is blue.\nACTIONS: FORWARD"))
    other.observe(0, 5.0, "nowhere", True)
    need(
        one.prompt() == before,
        "the experience of one subject changes the prompts of another: they share state",
    )


@MODEL_RULES.rule("any reply")
def _whatever_is_replied(case: ModelAgentCase) -> None:
    """A model's reply is untrusted text. Reading it raises no error, and gives actions
    or nothing.
    """
    for text in HOSTILE:
        for reply in (
            ChatReply(text=text, finish="length"),
            ChatReply(text=text, reasoning=text),
        ):
            agent = _new(case, 5)
            agent.begin_trial("here")
            try:
                actions = checked(agent.read(reply), fewest=0)
            except (
                ArithmeticError,
                LookupError,
                ValueError,
                TypeError,
                AttributeError,
                RecursionError,
            ) as error:
                said = quoted(text, 40)
                need(
                    False,
                    f"read() raises {type(error).__name__} ({quoted(str(error), 80)}) at the reply '{said}'",
                )
            else:
                for action in actions[:20]:
                    agent.observe(action, -1e9, "here", False)
                _check_prompt(agent.prompt())
                _checked_tally(agent.tally())


@MODEL_RULES.rule("trials end")
def _gives_up(case: ModelAgentCase) -> None:
    """A model that never names an action cannot hold its subject in one step
    endlessly.
    """
    _converse(case, 1, lambda number: "I would rather not say.")


RESPONDENT_RULES: Rules[RespondentSpec] = Rules()

_ARCS = {"a": ("b", "c"), "b": ("d",), "c": ("e",), "d": (), "e": ()}
_WALKS = (("a", "b", "d"), ("a", "c", "e"))


def _say(way: Sequence[str]) -> str:
    return f"Answer: {', '.join(way[1:])}"


def _puzzle(number: int | None) -> Puzzle:
    rewards = {"d": 1.0, "e": 5.0}
    keys = (_WALKS[1],)
    return Puzzle(
        start="a",
        arcs=_ARCS,
        rewards=rewards,
        keys=keys,
        number=number,
        walks=lambda: _WALKS,
        say=_say,
    )


#: The first puzzle asks for a path, the second for a number.
_PUZZLES = (_puzzle(None), _puzzle(2))


def broken_respondent_rules(
    spec: RespondentSpec, *, but: Collection[str] = ()
) -> list[Broken]:
    """Return the rules that a baseline for dialogues breaks. Rules in ``but`` are
    skipped.
    """
    return RESPONDENT_RULES.broken(spec, but)


def assert_respondent_sound(spec: RespondentSpec, *, but: Collection[str] = ()) -> None:
    """Raise AssertionError with the rules that a baseline for dialogues breaks."""
    assert_none(
        f"the baseline '{getattr(spec, 'name', spec)}'",
        broken_respondent_rules(spec, but=but),
    )


@RESPONDENT_RULES.rule(DECLARATION)
def _respondent_declaration(spec: RespondentSpec) -> None:
    check_name(spec.name, spec.memory, spec.summary)


@RESPONDENT_RULES.rule("answers in words")
def _answers(spec: RespondentSpec) -> None:
    for puzzle in _PUZZLES:
        reply: object = spec.reply(puzzle, "Where to?", 1)
        need(
            isinstance(reply, str) and reply,
            f"answers {reply!r}, but a non-empty string is expected",
        )


@RESPONDENT_RULES.rule("same seed, same answer")
def _respondent_deterministic(spec: RespondentSpec) -> None:
    for puzzle in _PUZZLES:
        for seed in range(8):
            one, other = (spec.reply(puzzle, "Where to?", seed) for _ in range(2))
            need(
                one == other,
                "gives two different answers to the same question with the same seed",
            )


@RESPONDENT_RULES.rule("no global randomness")
def _respondent_randomness(spec: RespondentSpec) -> None:
    before = random.getstate()
    try:
        with untouched_randomness():
            for puzzle in _PUZZLES:
                spec.reply(puzzle, "Where to?", 3)
    finally:
        random.setstate(before)
