"""The information in the prompts: through the real path, a reasoner that reads nothing
else passes, and without a memory it fails.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench import ChatReply, ModelAgentContext
from cheesebench.experiment.controls import UnrewardedSubject
from cheesebench.interfaces import ACTIONS, Paradigm, SubjectEnvironment, View
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents.llm import LLM, LlmAgent
from cheesebench.protocol import Catalogue
from cheesebench.trial_loop import Interrupts, TrialLoop
from tests import reasoner
from tests.reasoner import judged, think
from tests.reasoner_eyes import NINE

VIEWS = ("ascii_2d", "ascii_2d_fpv", "ascii_3d", "topdown_2d")
#: View, history, learnings, and the verdict of the reasoner in all nine.
ROWS = [
    *((view, "3-7", 500, "PASS") for view in VIEWS),
    *(("ascii_2d", history, 500, "PASS") for history in ("0", "3", "10")),
    *(("ascii_2d", "3", 0, "PASS"), ("ascii_2d", "0", 0, "FAIL")),
]
#: A trial of the shuttle box takes more answers than three.
SHORT = ("ascii_2d", "3", 0, "shuttle_box")
PLUGINS = PluginManager()
CATALOGUE = Catalogue(PLUGINS.protocol_directories)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", NINE)
@pytest.mark.parametrize(("view", "history", "learnings", "wanted"), ROWS)
def test_memory_decides(
    protocol: str, view: str, history: str, learnings: int, wanted: str, tmp_path: Path
) -> None:
    if (view, history, learnings, protocol) == SHORT:
        wanted = "FAIL"
    assert judged(protocol, history, learnings, tmp_path, view).verdict == wanted


def test_the_table_of_the_page_says_so() -> None:
    page = (Path(__file__).parents[1] / "docs" / "prompts.md").read_text(
        encoding="utf-8"
    )
    table = page.split("<!-- reasoner -->\n")[1].split("\n\n")[0].splitlines()
    head, _, *rows, tourist = [
        [part.strip() for part in line.strip("|").split("|")] for line in table
    ]
    assert head[3:] == list(NINE)
    assert tourist[0] == "ascii_2d, tourist"
    # A habit of one lever is all or nothing, which is hard to judge.
    cells = zip(NINE, tourist[3:], strict=True)
    assert {name for name, cell in cells if "F" not in cell} == {"operant_chamber"}
    assert [row[:3] for row in rows] == [
        [view, history, str(learnings)] for view, history, learnings, _ in ROWS
    ]
    for row, (*settings, wanted) in zip(rows, ROWS, strict=True):
        for protocol, cell in zip(NINE, row[3:], strict=True):
            short = (*settings, protocol) == SHORT
            assert cell[-1] == ("F" if short else wanted[0])


def test_memory_decides_in_the_star_maze(tmp_path: Path) -> None:
    run = cheesebench.run(
        "ideal",
        "star_maze",
        results=tmp_path,
        seed=0,
        plugins=[reasoner],
        progress=False,
        control=["no-memory"],
    )
    assert run.verdicts().iloc[0].verdict == "PASS"
    rates = run.trials().groupby("variant").success.mean()
    assert rates[""] > 0.9
    # One of four arms is right.
    assert 0.15 < rates["control=no-memory"] < 0.35


def environment(protocol: str, seed: int = 1) -> SubjectEnvironment:
    view: View = PLUGINS.view("ascii_2d")
    paradigm: Paradigm = PLUGINS.compile(CATALOGUE.find(protocol))
    return paradigm.environment(view, seed, 0)


def subject(**settings: Any) -> LlmAgent:
    return LlmAgent(
        ModelAgentContext(
            seed=1, view="ascii_2d", settings={**LLM.settings, **settings}
        )
    )


def walk(
    life: SubjectEnvironment,
    agent: LlmAgent,
    interrupts: Interrupts,
    trials: int,
    seed: int = 0,
) -> list[tuple[str, str]]:
    """Let a chatterbox act at random; return the last message of each prompt, and the
    observation at its time.
    """
    chance, told = random.Random(seed), []
    for _ in range(trials):
        observation = life.begin_trial()
        assert observation is not None
        agent.begin_trial(observation)
        loop = TrialLoop(
            life,
            observation,
            agent.observe,
            interrupts=interrupts,
            listener=lambda: agent,
        )
        while not loop.ended:
            told.append((agent.prompt()[-1].text, loop.observation))
            said = ", ".join(chance.choice(ACTIONS) for _ in range(8))
            if plan := agent.read(
                ChatReply(
                    text=f"Remember {seed}.\nLEARNINGS: {seed}\nACTIONS: {said}\nNote {seed}."
                )
            ):
                loop.act(plan)
    return told


@pytest.mark.parametrize("protocol", NINE)
def test_without_a_memory_a_stretch_begins_with_what_is_seen_and_nothing_else(
    protocol: str,
) -> None:
    """No note passes through: neither in the reply, the plan, its tail, the last
    action, nor the body's heading.
    """
    begun = 0
    for seed in range(3):
        agent = subject(history=0, learnings=0, interrupt="never")
        for message, observation in walk(
            environment(protocol), agent, "boundary", 4, seed
        ):
            assert f"Remember {seed}" not in message
            # The first step of a trial in the water maze needs no call.
            own = message.replace("\nwaited: reward 0, unchanged", "", 1)
            if own.startswith(("NEW TRIAL", "YOUR TURN")) and own.count("reward") == 0:
                begun += 1
                assert (
                    own
                    == f"{message[:9]}\n{observation}\n\nYour answer (at most 8 actions):"
                )
    assert begun >= 12


@pytest.mark.parametrize("protocol", NINE)
def test_with_a_history_boundaries_change_no_prompt(protocol: str) -> None:
    class Deaf(LlmAgent):
        def freed(self, observation: str) -> None:
            pass

    context = ModelAgentContext(
        seed=1, view="ascii_2d", settings={**LLM.settings, "history": 1}
    )
    told = [
        walk(environment(protocol), kind(context), "change", 3)
        for kind in (LlmAgent, Deaf)
    ]
    assert told[0] == told[1]


def plans(
    life: SubjectEnvironment, interrupts: Interrupts, reply: Callable[[LlmAgent], str]
) -> list[str]:
    """Return the executed part of each reply of a trial."""
    observation = life.begin_trial()
    assert observation is not None
    agent = subject()
    agent.begin_trial(observation)
    loop = TrialLoop(
        life, observation, agent.observe, interrupts=interrupts, listener=lambda: agent
    )
    pieces = []
    while not loop.ended:
        before = len(loop.letters)
        loop.act(agent.read(ChatReply(text=reply(agent))))
        pieces.append("".join(loop.letters[before:]))
    return pieces


def stays(times: int) -> Callable[[LlmAgent], str]:
    return lambda agent: f"ACTIONS: STAY x{times}"


def test_a_plan_is_dropped_when_the_world_answers() -> None:
    # Some quiet steps, then a signal: the animal looks again, and again when it is
    # over.
    assert plans(environment("shuttle_box"), "change", stays(8))[:4] == [
        "SSS",
        "SSSSSSSS",
        "S",
        "SSSS",
    ]
    assert plans(environment("shuttle_box"), "never", stays(8)) == [
        *["SSSSSSSS"] * 5,
        "SSSSS",
    ]


@pytest.mark.parametrize("interrupts", ["change", "boundary"])
def test_what_was_planned_is_not_played_blind_after_the_subject_was_held(
    interrupts: Interrupts,
) -> None:
    def longer(agent: LlmAgent) -> str:
        return think(agent.prompt()) + ", STAY, STAY, STAY, STAY, STAY"

    pieces = plans(environment("t_maze"), interrupts, longer)
    assert all(re.fullmatch(r"[FLRS]+\.*", piece) for piece in pieces)
    assert any(piece.endswith("....") for piece in pieces)


@pytest.mark.parametrize("paid", [1.0, -0.25])
def test_a_plan_is_dropped_by_what_is_paid_once_and_not_by_its_end(paid: float) -> None:
    class Steady:
        """Nothing changes, and the second step is paid."""

        waiting = False

        def __init__(self) -> None:
            self.steps = 0

        def begin_trial(self) -> str:
            return "#→#"

        def step(self, action: int) -> tuple[str, float, int]:
            self.steps += 1
            return "#→#", paid * (self.steps == 2), int(self.steps == 8)

    life: Any = Steady()
    assert plans(life, "change", stays(4)) == ["SS", "SSSS", "SS"]
    # A change that a subject cannot feel drops no plan.
    assert plans(UnrewardedSubject(Steady()), "change", stays(4)) == ["SSSS", "SSSS"]  # type: ignore[arg-type]
