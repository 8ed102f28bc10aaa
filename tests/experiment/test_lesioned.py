"""Lesions of running subjects, for agents and language models: effects on pictures,
rewards and memory.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from cheesebench.chat import ChatReply, ChatRequest, ModelEntry
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.cells import language_model, plan_cell
from cheesebench.experiment.controls import (
    LesionedParadigm,
    check_control,
    control_cell,
    controlled,
    has_control,
    in_words,
    takes_at_least,
)
from cheesebench.experiment.log_file import plan_to_json, read_plan
from cheesebench.experiment.replay import films
from cheesebench.experiment.subjects import converse, run_subject
from cheesebench.family import Design
from cheesebench.interfaces import AgentContext, AgentSpec, Paradigm
from cheesebench.lesions import Lesion
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification
from cheesebench.records import CellPlan, TrialRecord
from tests.arenas import examine_text

#: A sample on the way, a delay, and a choice with a reward.
TEXT = """version: 1
paradigm: memory
dimension: working memory
arena: {map: "L.S.R", legend: {L: left, S: box, R: right}, landmarks: {N: "^"}}
draw: {sample: {of: {sample: [left, right]}}}
start: {at: box, face: E}
trial:
  limit: 20
  start: [{if: sample == left, go: shown_left}, shown_right]
  states:
    shown_left: {say: SAMPLE left, rules: [{act: STAY, go: delay}]}
    shown_right: {say: SAMPLE right, rules: [{act: STAY, go: delay}]}
    delay: {freeze: true, rules: [{after: 2, go: choice}]}
    choice: {say: GO, rules: [{enter: left, if: sample == left, reward: 1, end: right_one}, {enter: left, end: wrong},
      {enter: right, if: sample == right, reward: 1, end: right_one}, {enter: right, end: wrong}]}
schedule: {only: {trials: 4}}
success: last == right_one
reference: [{measure: success, value: 0.8, status: made up}]
construct:
  name: working memory
  kind: memory
  abolished_by:
    - {lesion: {amnesia: choice}, at_most: 0.5}
    - {lesion: blind, at_most: 0.6}
  spared_by: [anhedonia]
"""
PLUGINS = installed_plugins()


@pytest.fixture(scope="module")
def specification() -> Specification:
    found, problems = examine_text(TEXT)
    assert found is not None, problems
    return found


class Notebook:
    """Waits, then walks to the side that it has read; writes down everything that
    happens to it.
    """

    def __init__(self, context: AgentContext, made: list[Notebook]) -> None:
        self.seed, self.said, self.rewards, self.side, self.trials = (
            context.seed,
            list[str](),
            list[float](),
            "",
            0,
        )
        self._turned = False
        made.append(self)

    def begin_trial(self, observation: str) -> None:
        self.trials += 1
        self._turned = False
        self._read(observation)

    def _read(self, observation: str) -> None:
        self.said.append(observation)
        for side in ("left", "right"):
            if f"SAMPLE {side}" in observation:
                self.side = side

    def act(self, observation: str) -> Sequence[int]:
        if "SAMPLE" in observation or "GO" not in observation:
            # An agent that loses its plan never executes the last of these.
            return [3, 3, 3]
        if self.side == "left" and not self._turned:
            self._turned = True
            return [1, 1, 1, 1]
        return [0]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        self.rewards.append(reward)
        self._read(observation)


def lived(
    specification: Specification, lesion: str
) -> tuple[list[TrialRecord], list[Notebook], CellPlan]:
    """Run one subject's life with the lesion; return records, the agents in order, and
    the plan.
    """
    made: list[Notebook] = []
    agent = AgentSpec(name="notebook", create=lambda context: Notebook(context, made))
    plan = plan_cell(
        specification, "notebook", "ascii_2d", Design(name="test", subjects=1)
    )
    if lesion:
        plan = control_cell(plan, lesion, specification)
    paradigm = controlled(PLUGINS.compile(specification), plan, 7)
    assert isinstance(paradigm, Paradigm)
    trials = run_subject(paradigm, PLUGINS.view("ascii_2d"), agent, plan, 7, 0)
    records = [record for record, _ in trials]
    # With any lesion, a replay of the recorded trials gives the same trials.
    assert len(
        list(films(paradigm.environment(PLUGINS.view("ascii_2d"), 7, 0), records))
    ) == len(records)
    return records, made, plan


def rate(records: Sequence[TrialRecord]) -> float:
    return sum(bool(record.success) for record in records) / len(records)


def test_the_intact_subject_remembers(specification: Specification) -> None:
    records, made, _ = lived(specification, "")
    assert (rate(records), len(made), made[0].trials) == (1.0, 1, 4)


def test_the_blind_see_nothing_and_still_feel(specification: Specification) -> None:
    records, made, _ = lived(specification, "blind")
    assert set(made[0].said) == {"."}
    assert {record.outcome for record in records} == {"timeout"}


def test_hidden_text_is_gone_and_nothing_else(specification: Specification) -> None:
    _, made, _ = lived(specification, "hide=text:shown_left+hide=text:shown_right")
    said = "\n".join(made[0].said)
    assert "SAMPLE" not in said
    assert "^" in said


def test_hidden_landmarks_are_gone_and_nothing_else(
    specification: Specification,
) -> None:
    _, made, _ = lived(specification, "hide=landmarks")
    said = "\n".join(made[0].said)
    assert "SAMPLE" in said
    assert "^" not in said


def test_without_reward_all_is_done_as_before(specification: Specification) -> None:
    plain, _, _ = lived(specification, "")
    records, made, _ = lived(specification, "anhedonia")
    assert set(made[0].rewards) == {0.0}
    assert [record.actions for record in records] == [
        record.actions for record in plain
    ]
    assert (
        sum(record.reward for record in plain),
        sum(record.reward for record in records),
    ) == (4, 0)
    assert rate(records) == 1.0


def test_amnesia_between_trials_is_a_new_agent_for_each(
    specification: Specification,
) -> None:
    plain = lived(specification, "")[1]
    records, made, _ = lived(specification, "amnesia=trial")
    assert [agent.trials for agent in made] == [1, 1, 1, 1]
    assert made[0].seed == plain[0].seed
    assert len({agent.seed for agent in made}) == 4
    assert rate(records) == 1.0


def test_amnesia_at_a_state_forgets_the_trial_before_it_and_what_was_planned(
    specification: Specification,
) -> None:
    records, made, _ = lived(specification, "amnesia=choice")
    # Without the plan it goes straight on, to the right.
    assert [record.success for record in records] == [
        record.variables["sample"] == "right" for record in records
    ]
    assert all(
        record.actions.startswith("S") and record.actions.endswith("FF")
        for record in records
    )
    assert len(made) == 1, (
        "what earlier trials taught stays, so there is no other agent, but a copy"
    )


class Diary:
    """Waits, and at every beginning reports its memory of each trial, and its next
    random number.
    """

    def __init__(self, seed: int, told: list[tuple[int, int, float]]) -> None:
        self.trials, self.steps, self.chance = 0, 0, random.Random(seed)
        self.tell = told.append  # a method of a list is not copied

    def begin_trial(self, observation: str) -> None:
        self.tell((self.trials, self.steps, self.chance.random()))
        self.trials += 1

    def act(self, observation: str) -> Sequence[int]:
        return [3]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        self.steps += 1


def test_earlier_trials_are_remembered_when_this_one_is_forgotten(
    specification: Specification,
) -> None:
    told: list[tuple[int, int, float]] = []
    agent = AgentSpec(name="diary", create=lambda context: Diary(context.seed, told))
    plan = plan_cell(
        specification, "diary", "ascii_2d", Design(name="test", subjects=1)
    )
    plan = control_cell(plan, "amnesia=choice", specification)
    paradigm = controlled(PLUGINS.compile(specification), plan, 7)
    assert (
        len(list(run_subject(paradigm, PLUGINS.view("ascii_2d"), agent, plan, 7, 0)))
        == 4
    )
    # Each trial, and each 'choice', begins with the memory from before the trial,
    # without its three steps.
    assert [trials for trials, _, _ in told] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [steps for _, steps, _ in told] == [0, 0, 17, 17, 34, 34, 51, 51]
    assert len({number for _, _, number in told}) == 8, (
        "random numbers are not drawn again"
    )


def test_an_agent_that_cannot_be_copied_forgets_no_part_of_a_trial(
    specification: Specification,
) -> None:
    class Closed(Diary):
        def __deepcopy__(self, parts: object) -> Closed:
            raise TypeError("cannot pickle a lock")

    agent = AgentSpec(name="closed", create=lambda context: Closed(context.seed, []))
    plan = plan_cell(
        specification, "closed", "ascii_2d", Design(name="test", subjects=1)
    )
    plan = control_cell(plan, "amnesia=choice", specification)
    paradigm = controlled(PLUGINS.compile(specification), plan, 7)
    with pytest.raises(
        OptionError,
        match=r"amnesia=choice: The agent cannot be copied .*lock.*\. Use --control memoryless\.",
    ):
        next(iter(run_subject(paradigm, PLUGINS.view("ascii_2d"), agent, plan, 7, 0)))


def test_the_memoryless_are_new_at_every_step(specification: Specification) -> None:
    records, made, _ = lived(specification, "memoryless")
    decided = sum(len(record.actions) for record in records)
    assert decided - 4 <= len(made) <= decided + 4
    assert len({agent.seed for agent in made}) == len(made)


def test_lives_with_lesions_are_equal_in_every_process(
    specification: Specification,
) -> None:
    for lesion in ("amnesia=choice", "memoryless", "blind+anhedonia"):
        first, second = lived(specification, lesion), lived(specification, lesion)
        assert first[0] == second[0]
        assert [agent.seed for agent in first[1]] == [agent.seed for agent in second[1]]


class Answering:
    """A model that first waits and then walks; keeps every prompt."""

    def __init__(self, plan: CellPlan) -> None:
        self.plan = plan
        self.asked: list[tuple[int, str]] = []
        self.at_choice: list[str] = []

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        assert actions

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        prompt = "\n".join(
            str(part) for message in request.messages[1:] for part in message.parts
        )
        self.asked.append((trial, prompt))
        now = "\n".join(str(part) for part in request.messages[-1].parts).rpartition(
            "SAMPLE"
        )[2]
        letter = "FORWARD" if "GO" in now else "STAY"
        if letter == "FORWARD":
            self.at_choice.append(prompt)
        return ChatReply(
            text=f"LEARNINGS: I have seen {len(self.asked)} prompts.\nACTIONS: {letter}",
            model="tiny",
        )


def conversed(
    specification: Specification, lesion: str
) -> tuple[Answering, list[TrialRecord]]:
    entry = ModelEntry(name="tiny", backend="openai", id="tiny-1")
    model = language_model(PLUGINS, entry)
    plan = plan_cell(
        specification,
        entry.name,
        "ascii_2d",
        Design(name="t", subjects=1),
        agent="llm",
        settings=model.settings,
    )
    if lesion:
        plan = control_cell(plan, lesion, specification)
    paradigm = controlled(PLUGINS.compile(specification), plan, 7)
    assert isinstance(paradigm, Paradigm)
    asker = Answering(plan)

    async def talk() -> list[TrialRecord]:
        life = converse(
            paradigm,
            PLUGINS.view("ascii_2d"),
            PLUGINS.model_agent("llm"),
            plan,
            7,
            0,
            asker,
        )
        return [record async for record, _ in life]

    return asker, asyncio.run(talk())


def test_a_language_model_forgets_between_trials(specification: Specification) -> None:
    plain, forgetting = (
        conversed(specification, "")[0],
        conversed(specification, "amnesia=trial")[0],
    )
    first_of_second = next(prompt for trial, prompt in plain.asked if trial == 1)
    forgotten = next(prompt for trial, prompt in forgetting.asked if trial == 1)
    assert "I have seen" in first_of_second
    assert "I have seen" not in forgotten
    assert len(forgotten) < len(first_of_second)


def test_a_language_model_forgets_at_a_state_and_its_calls_are_all_counted(
    specification: Specification,
) -> None:
    asker, records = conversed(specification, "amnesia=choice")
    assert len(asker.at_choice) >= len(records)
    assert not any("SAMPLE" in prompt for prompt in asker.at_choice)
    assert any(
        "SAMPLE" in prompt for prompt in conversed(specification, "")[0].at_choice
    )
    assert sum(record.tally["calls"] for record in records) == len(asker.asked)


def test_a_language_model_without_sight_or_reward(specification: Specification) -> None:
    asker, _ = conversed(specification, "blind")
    assert not any("SAMPLE" in prompt or "^" in prompt for _, prompt in asker.asked)
    _, records = conversed(specification, "anhedonia")
    assert {record.reward for record in records} == {0.0}


@pytest.mark.parametrize(
    ("lesion", "at_most", "spared"),
    [
        ("blind", 0.6, False),
        ("amnesia=choice", 0.5, False),
        ("blind+amnesia=choice", 0.5, False),
        ("blind+anhedonia", 0.6, False),
        ("anhedonia", None, True),
        ("amnesia=trial", None, False),
    ],
)
def test_a_lesion_is_held_to_what_the_construct_says_of_it(
    specification: Specification, lesion: str, at_most: float | None, spared: bool
) -> None:
    plan = lived(specification, lesion)[2]
    assert plan.lesion is not None
    assert (plan.lesion.at_most, plan.lesion.spared) == (at_most, spared)
    assert not plan.claims
    assert read_plan(plan_to_json(plan)) == plan


@pytest.mark.parametrize(
    ("lesion", "other", "expected"),
    [
        ("blind", "hide=landmarks", True),
        ("blind", "pose-only+hide=text:shown", True),
        ("pose-only", "hide=landmarks", False),
        ("hide=landmarks", "blind", False),
        ("hide=text", "hide=text:shown", True),
        ("hide=text:shown", "hide=text", False),
        ("anhedonia", "naive", True),
        ("blind", "anhedonia", False),
        ("memoryless", "amnesia=trial+amnesia=choice", True),
        ("amnesia=trial", "amnesia=choice", False),
        ("amnesia=trial", "memoryless", False),
        ("blind+anhedonia+amnesia=trial", "amnesia=trial+anhedonia", True),
    ],
)
def test_who_lacks_more_is_held_to_the_same_bound(
    lesion: str, other: str, expected: bool
) -> None:
    assert takes_at_least(Lesion.parse(lesion), Lesion.parse(other)) is expected
    assert takes_at_least(Lesion.parse(lesion), Lesion.parse(lesion))


@pytest.mark.parametrize(
    ("lesion", "words"),
    [
        ("blind", "without sight"),
        ("hide=landmarks", "without landmarks"),
        ("anhedonia+hide=text:fed", "without reward and the text of 'fed'"),
        ("amnesia=trial", "without memory across trials"),
        ("amnesia=choice", "without memory of what came before 'choice' in a trial"),
        ("hide=glyph:o", "without o"),
        ("pose-only", "without any observation except position and heading"),
    ],
)
def test_what_is_lacking_is_said_in_words(lesion: str, words: str) -> None:
    assert in_words(Lesion.parse(lesion)) == words


def test_names_of_lesions_are_checked(tmp_path: Any) -> None:
    assert check_control(" anhedonia+blind ", tmp_path) == "blind+anhedonia"
    for name in ("blnd", "hide=", "intact", "amnesia"):
        with pytest.raises(UnknownNameError):
            check_control(name, tmp_path)


@pytest.mark.parametrize(
    "lesion", ["amnesia=nowhere", "hide=cellar", "hide=text:nowhere"]
)
def test_what_is_not_there_cannot_be_taken(
    specification: Specification, lesion: str
) -> None:
    assert not has_control(specification, lesion)
    with pytest.raises(OptionError, match="there is no"):
        LesionedParadigm(PLUGINS.compile(specification), Lesion.parse(lesion))
