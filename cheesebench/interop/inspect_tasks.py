"""Offers every protocol as a task of Inspect AI: ``inspect eval cheesebench/t_maze
--model openai/gpt-4o``.

A sample is one subject with all its trials, or one conversation. Its score is the
proportion of its judged trials that succeeded or, if a measure is judged, the measure's
mean, placed on its range from the worse end (0) to the better one (1), or from the
lower end to the upper one with ``better: alike``. The metrics ``PASS`` and ``FAIL`` are
the proportions of cells with these verdicts.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from inspect_ai import Task, model, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolChoice, ToolFunction, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema

from cheesebench.chat import ChatReply, ChatRequest, Message, Usage
from cheesebench.experiment.calling import SubjectStoppedError
from cheesebench.experiment.provenance import draw_seed
from cheesebench.family import Asker
from cheesebench.interop.hosted import (
    Hosted,
    hosted,
    judge_lives,
    life_from_json,
    life_to_json,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.records import CellPlan
from cheesebench.statistics import Verdict, draw_sample


def protocol(
    protocol: str,
    view: str = "ascii_2d",
    subjects: int | None = None,
    trials: int | None = None,
    seed: int | None = None,
    agent: str = "llm",
    edition: str | None = None,
    settings: dict[str, Any] | None = None,
) -> Task:
    """Return the task for a protocol. ``protocol`` is a name or a file, and
    ``settings`` are settings of the agent.
    """
    cells = hosted(
        [protocol], edition=edition, model=str(model.get_model()), agent=agent, settings=settings, view=view,
        subjects=subjects, trials=trials,
    )  # fmt: skip
    seed, asked = draw_seed() if seed is None else seed, cells[0].plan.settings
    dataset = [
        Sample(
            id=f"{cell.plan.label}-{subject:04}",
            input=f"{cell.plan.title}: subject {subject}",
            target="success",
            metadata={"cell": number, "subject": subject},
        )
        for number, cell in enumerate(cells)
        for subject in range(cell.plan.subjects)
    ]
    return Task(
        dataset=dataset,
        solver=live(cells, seed),
        scorer=success(),
        config=model.GenerateConfig(
            temperature=asked.get("temperature"), max_tokens=asked.get("max_tokens")
        ),
        metadata={"view": view, "seed": str(seed), "sha256": cells[0].plan.sha256},
        name=cells[0].specification.name,
    )


class _Asker(Asker):
    """Asks the evaluation's model on behalf of one subject. The last prompt and reply
    become the sample's conversation.
    """

    def __init__(self, plan: CellPlan, state: TaskState) -> None:
        self.plan, self._state = plan, state

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        form, config = request.form, model.GenerateConfig(seed=request.sampling.seed)
        tools: list[ToolInfo] = []
        choice: ToolChoice = "none"
        if form is not None and form.by_tool:
            parameters = ToolParams.model_validate(form.schema)
            tools = [
                ToolInfo(
                    name=form.name, description=form.description, parameters=parameters
                )
            ]
            choice = ToolFunction(name=form.name)
        elif form is not None:
            config.response_schema = model.ResponseSchema(
                name=form.name, json_schema=JSONSchema.model_validate(form.schema)
            )
        messages = [_message(one) for one in request.messages]
        output = await model.get_model().generate(
            messages, tools=tools, tool_choice=choice, config=config
        )
        self._state.messages = [*messages, output.message]
        self._state.output = output
        if output.stop_reason == "content_filter":
            raise SubjectStoppedError(
                "the content filter of the model's server stopped the reply"
            )
        return _reply(output)


def _message(message: Message) -> model.ChatMessage:
    kinds = {
        "system": model.ChatMessageSystem,
        "user": model.ChatMessageUser,
        "assistant": model.ChatMessageAssistant,
    }
    return kinds[message.role](content=message.text)


def _reply(output: model.ModelOutput) -> ChatReply:
    message, used = output.message, output.usage
    text = (
        json.dumps(message.tool_calls[0].arguments)
        if message.tool_calls
        else message.text
    )
    parts = [] if isinstance(message.content, str) else message.content
    return ChatReply(
        text=text,
        reasoning="\n".join(
            part.reasoning for part in parts if isinstance(part, model.ContentReasoning)
        ),
        finish="length"
        if output.stop_reason in ("max_tokens", "model_length")
        else "stop",
        usage=Usage(prompt=used.input_tokens, completion=used.output_tokens)
        if used
        else Usage(),
        model=output.model,
    )


@solver  # type: ignore[untyped-decorator]
def live(cells: list[Hosted], seed: int) -> Solver:
    """Return the solver, which runs the subject of a sample through its protocol."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        cell, subject = cells[state.metadata["cell"]], state.metadata["subject"]
        records = [
            record
            async for record, _ in cell.converse(
                seed, subject, _Asker(cell.plan, state)
            )
        ]
        state.metadata["life"] = life_to_json(cell.plan, records)
        return state

    return solve


def _share_of(verdict: Verdict) -> Metric:
    def share(scores: list[SampleScore]) -> float:
        found = [
            cell.verdict
            for cell in judge_lives(
                one.score.metadata for one in scores if one.score.metadata
            )
        ]
        return found.count(verdict) / max(1, len(found))

    return share


@metric  # type: ignore[untyped-decorator]
def PASS() -> Metric:  # noqa: N802 - what people see
    """Return the metric that is the share of cells with the verdict PASS. Most tasks
    have one cell.
    """
    return _share_of(Verdict.PASS)


@metric  # type: ignore[untyped-decorator]
def FAIL() -> Metric:  # noqa: N802
    """Return the metric that is the share of cells with the verdict FAIL."""
    return _share_of(Verdict.FAIL)


@scorer(metrics=[mean(), stderr(), PASS(), FAIL()])  # type: ignore[untyped-decorator]
def success() -> Scorer:
    """Return the scorer of subjects. A score's metadata has the subject's records, from
    which the verdict is computed.
    """

    async def score(state: TaskState, target: Target) -> Score:
        life = state.metadata["life"]
        plan, records = life_from_json(life)
        counted = [
            one.total / one.scored
            for one in draw_sample(plan, [records]).judged()
            if one.scored
        ]
        ends = ", ".join(str(one.outcome) for one in records)
        # Inspect needs a number even for a subject without a trial that counts. The
        # metrics PASS and FAIL judge by the records, which do not count it as failed.
        value = counted[0] if counted else 0.0
        return Score(value=value, explanation=ends, metadata=life)

    return score


# Inspect puts a function's package before the task's name. A partial function has no
# package, so the name stays as it is.
task(name="cheesebench/protocol")(partial(protocol))
for _stem in Catalogue(installed_plugins().protocol_directories).files:
    if "." not in _stem:  # Editions are selected by a parameter.
        task(name=f"cheesebench/{_stem}")(partial(protocol, _stem))
