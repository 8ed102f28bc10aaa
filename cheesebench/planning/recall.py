"""Asks each model one question outside any run: what it knows of CheeseBench's
files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from cheesebench.chat import ChatRequest, Message, Sampling
from cheesebench.experiment.language_models import (
    conversation,
    reached,
    run_blocking,
)
from cheesebench.family import LanguageModel

#: ``TIMEOUT`` is the number of seconds that an answer may take. An answer may have
#: ``TOKENS`` tokens, or more if the model's settings allow more.
TIMEOUT, TOKENS = 300.0, 200


def answers(
    models: Mapping[str, LanguageModel],
    question: str,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Return each model's answer. Raise UnreachableModelError for a model that does
    not answer.
    """
    with reached(models, progress) as (connected, directory):
        return {
            name: run_blocking(_answer(model, question, directory))
            for name, model in connected.items()
        }


async def _answer(model: LanguageModel, question: str, directory: Path) -> str:
    most = max(TOKENS, model.settings["max_tokens"] or 0)
    request = ChatRequest(
        model=model.entry.id,
        messages=(Message(role="user", parts=(question,)),),
        sampling=Sampling(
            # None leaves the parameter out, because some models do not support it.
            temperature=None if model.settings["temperature"] is None else 0.0,
            max_tokens=most,
        ),
        timeout=TIMEOUT,
        extra=model.settings["served"],
    )
    async with conversation(model, directory) as connection:
        return (await connection.complete(request)).text
