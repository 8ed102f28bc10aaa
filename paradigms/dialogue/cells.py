"""Runs the subjects of dialogues: baselines, which see the puzzle, and models, which see the text.

A subject of a dialogue is one generation: it answers every start-goal pair of its condition once, each in a
conversation of its own, in which its own replies stay.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cheesebench.chat import ChatRequest, Message, Sampling
from cheesebench.errors import RunLogError
from cheesebench.experiment.conversations import SilenceWatch, call_seed
from cheesebench.experiment.designs import Design, without_looks
from cheesebench.experiment.records import CellPlan, TrialRecord, Variant
from cheesebench.experiment.subjects import agent_seed, trial_record
from cheesebench.interfaces import TaskEvent
from cheesebench.paradigms.dialogue.language.specification import variant_name

if TYPE_CHECKING:
    from cheesebench.dialogue import Conversational, Dialogue, RespondentSpec
    from cheesebench.family import Asker, CellRequest
    from cheesebench.paradigms.dialogue.language.specification import DialogueSpecification

#: Stands for the view in the log: nothing is looked at.
NO_VIEW = "dialogue"
#: Generations of a cell where the design leaves it open; a design that claims nothing runs its own few subjects.
GENERATIONS = 30
#: Settings of a language model that matter where nothing but the question is said to it.
_OF_A_DIALOGUE = ("temperature", "max_tokens", "backend", "id", "served", "dropped")

_Trials = tuple[TrialRecord, tuple[TaskEvent, ...]]


def plan_dialogues(specification: DialogueSpecification, request: CellRequest) -> Iterator[CellPlan]:
    """Yield the plans of all cells of a dialogue: every condition in every domain (at every temperature)."""
    language = request.language
    several = len(request.temperatures) > 1
    own: Mapping[str, Any] = language.settings if language else {}
    temperatures = request.temperatures if language and several else (own.get("temperature"),)
    for temperature in temperatures:
        for domain, condition in specification.variants:
            yield plan_dialogue(
                specification,
                request.model,
                domain,
                condition,
                request.design,
                generations=request.generations,
                agent=language.agent.name if language else "",
                settings={**own, "temperature": temperature} if language else None,
                in_variant=bool(language) and several,
            )


def plan_dialogue(
    specification: DialogueSpecification,
    model: str,
    domain: str,
    condition: str,
    design: Design,
    *,
    generations: int | None = None,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    in_variant: bool = False,
) -> CellPlan:
    """Return the plan of one cell: a condition in the words of a domain, compared with chance.

    ``settings`` are those of a language model; ``in_variant`` puts its temperature into the cell's name.
    """
    asked, document = specification.conditions[condition], specification.document
    kept = {name: value for name, value in (settings or {}).items() if name in _OF_A_DIALOGUE}
    temperature = kept.get("temperature")
    trials = len(asked.asked_of(0))
    subjects = generations or (GENERATIONS if design.claims else design.subjects)
    # The items are asked as published, each this many times: nothing is learnt from one to the next.
    design = without_looks(design)
    return CellPlan(
        model=model,
        protocol=specification.name,
        view=NO_VIEW,
        variant=Variant(condition=variant_name(domain, condition, temperature if in_variant else None)),
        title=f"{specification.title}: {condition}, {domain.replace('_', ' ')}",
        dimension=document.dimension,
        species=document.species or "",
        sha256=specification.sha256,
        design=design.name,
        subjects=subjects,
        trials=trials if design.trials is None else min(trials, design.trials),
        memory="none",
        margin=document.margin,
        chance=asked.chance(subjects),
        against="chance",
        claims=design.claims,
        agent=agent,
        settings={**kept, "domain": domain, "condition": condition, "group": asked.group},
    )


def begin(paradigm: Conversational, plan: CellPlan, subject: int) -> Dialogue:
    """Return a subject's questions of a cell."""
    return paradigm.dialogue(setting(plan, "domain"), setting(plan, "condition"), subject)


def setting(plan: CellPlan, name: str) -> str:
    """Return what a cell's settings say that ``plan_dialogue`` put there; RunLogError where a log has it not."""
    found = plan.settings.get(name)
    if not isinstance(found, str):
        raise RunLogError(f"The plan of {plan.label} has no {name}: its log is damaged. Use an undamaged copy.")
    return found


def respond(
    paradigm: Conversational, respondent: RespondentSpec, plan: CellPlan, seed: int, subject: int
) -> Iterator[_Trials]:
    """Run a baseline, yielding each conversation when it is over."""
    dialogue = begin(paradigm, plan, subject)
    origin = agent_seed(plan, seed, subject)
    for trial in range(plan.trials):
        question = dialogue.begin_trial()
        if question is None:
            return
        turn = 0
        while question is not None:
            own = hashlib.sha256(f"{origin}|{plan.variant}|{trial}|{turn}".encode()).digest()
            text = respondent.reply(dialogue.puzzle, question, int.from_bytes(own[:8], "big") >> 1)
            question, turn = dialogue.answer(text), turn + 1
        yield _record(dialogue, plan, subject, trial, turn, {}), ()


async def talk(
    paradigm: Conversational, plan: CellPlan, seed: int, subject: int, caller: Asker
) -> AsyncGenerator[_Trials, None]:
    """Live a language model's life, yielding every conversation when it is over.

    The messages are what the protocol tells a model first, the questions, and the model's own replies, nothing else.
    Raises SubjectStoppedError when there is no reply to be had.
    """
    dialogue, watch = begin(paradigm, plan, subject), SilenceWatch()
    before = (Message("system", (dialogue.system,)),) if dialogue.system else ()
    origin = _origin(plan, seed, subject)
    settings, asked = plan.settings, 0
    for trial in range(plan.trials):
        question = dialogue.begin_trial()
        if question is None:
            return
        messages: tuple[Message, ...] = before
        cut_off = empty = 0
        while question is not None:
            messages = (*messages, Message("user", (question,)))
            asked += 1
            request = ChatRequest(
                model=settings["id"],
                messages=messages,
                sampling=Sampling(
                    temperature=settings.get("temperature"),
                    max_tokens=settings.get("max_tokens"),
                    seed=None if "seed" in settings["dropped"] else call_seed(origin, asked),
                ),
                conversation=f"{origin:016x}",
                extra=settings["served"],
            )
            reply = await caller.ask(trial, request)
            watch.see(reply)
            cut_off += reply.finish == "length"
            empty += not reply.text.strip() and reply.finish != "length"
            messages = (*messages, Message("assistant", (reply.text,)))
            question = dialogue.answer(reply.text)
        tally = {"calls": len(messages) // 2, "truncated": cut_off, "empty": empty}
        yield _record(dialogue, plan, subject, trial, len(messages) // 2, tally), ()


def _origin(plan: CellPlan, seed: int, subject: int) -> int:
    """Return the seed of a subject's calls; it differs between cells because they share a server's cache."""
    state = hashlib.sha256(f"{agent_seed(plan, seed, subject)}|{plan.variant}".encode()).digest()
    return int.from_bytes(state[:8], "big") >> 1


def _record(
    dialogue: Dialogue, plan: CellPlan, subject: int, trial: int, turns: int, tally: Mapping[str, int]
) -> TrialRecord:
    result = dialogue.result()
    temperature = plan.settings.get("temperature")
    if temperature is not None:
        result = dataclasses.replace(result, variables={**result.variables, "temperature": temperature})
    done = {"reward": float(bool(result.success)), "steps": turns, "tally": dict(tally)}
    return trial_record(plan, subject, trial, result, **done)
