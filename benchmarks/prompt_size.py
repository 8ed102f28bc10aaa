"""Counts the characters of prompt that are sent to a model for each executed step.

A subject of random actions that writes 200 characters of learnings with every reply
lives through a protocol, for every length of the history, every number of actions per
call, and both forms of observations. ``new`` is the part of the prompts that no prefix
cache of a server can know: everything after the longest beginning shared with the
previous prompt. ``observed`` is the output of the view, once for each step. ``CPU/call,
us`` is the cost of the agent.

    python benchmarks/prompt_size.py t_maze morris_water_maze --keep

Numbers of characters are the same on every machine; ``--keep`` keeps only them.
"""

from __future__ import annotations

import itertools
import operator
import random
import time

import common

from cheesebench.chat import ChatReply, ModelAgentContext
from cheesebench.interfaces import ACTIONS, RUNNING, STAY, Paradigm
from cheesebench.plugin_manager import installed_plugins

HISTORIES: tuple[int | str, ...] = (1, 3, 5, 10, "3-7")
NUMBERS = (1, 4, 8, 16)
#: Number of executed steps for each figure, in as many trials as that takes.
STEPS = 2000
#: Columns for docs/prompts.md.
KEPT = ("characters per step", "new per step")
LEARNINGS = ("What I have learnt: " + "and so on, " * 20)[:200]


def shared(one: str, other: str) -> int:
    """Return the length of the longest common beginning of two texts."""
    same = itertools.takewhile(bool, map(operator.eq, one, other))
    return sum(1 for _ in same)


def measure(
    paradigm: Paradigm, history: int | str, number: int, observations: str
) -> dict[str, float]:
    """Return the figures of one subject."""
    plugins = installed_plugins()
    spec = plugins.model_agent("llm")
    settings = {
        **spec.settings,
        "history": history,
        "actions": number,
        "observations": observations,
    }
    agent = spec.create(ModelAgentContext(seed=0, view="ascii_2d", settings=settings))
    draw = random.Random(0)
    steps = calls = sent = new = observed = 0
    last, cost, subject = "", 0.0, -1
    life = paradigm.environment(plugins.view("ascii_2d"), 0, 0)
    while steps < STEPS:
        observation = life.begin_trial()
        if observation is None:
            # The life of this subject is over. The figures continue with the next
            # subject.
            subject += 1
            life = paradigm.environment(plugins.view("ascii_2d"), 0, subject)
            continue
        agent.begin_trial(observation)
        observed += len(observation)
        status = RUNNING
        while status == RUNNING:
            actions = [STAY]
            if not life.waiting:
                start = time.process_time()
                prompt = agent.prompt()
                text = ChatReply(
                    text=f"LEARNINGS: {LEARNINGS}\nACTIONS: {', '.join(draw.choices(ACTIONS, k=number))}"
                )
                actions = list(agent.read(text))
                cost += time.process_time() - start
                calls += 1
                whole = "\n".join(message.text for message in prompt)
                sent += len(whole)
                new += len(whole) - shared(last, whole)
                last = whole
            for action in actions:
                observation, reward, status = life.step(action)
                agent.observe(action, reward, observation, status != RUNNING)
                steps += 1
                observed += len(observation)
                if status != RUNNING:
                    break
    return {
        "calls/step": calls / steps,
        "characters per step": sent / steps,
        "new per step": new / steps,
        "observed per step": observed / steps,
        "characters per call": sent / calls,
        "CPU/call, us": cost / calls * 1e6,
    }


if __name__ == "__main__":
    options = common.arguments(__doc__, keeps=True)
    table = {}
    for specification in common.specifications(options.protocols or ["t_maze"]):
        paradigm = installed_plugins().compile(specification)
        for told, history, number in itertools.product(
            ("full", "changes"), HISTORIES, NUMBERS
        ):
            row = f"{specification.name} {told} h={history} k={number}"
            table[row] = measure(paradigm, history, number, told)
    if options.keep:
        full = {
            name: {column: row[column] for column in KEPT}
            for name, row in table.items()
            if " full " in name
        }
        common.keep("prompt_size", full)
    common.report("prompt_size", table, options.json)
