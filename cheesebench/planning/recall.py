"""One question to each model, outside any run: what it knows of our files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from cheesebench.chat import ChatFaultError, ChatRequest, Message, Sampling
from cheesebench.experiment.calling import said
from cheesebench.experiment.language_models import (
    CheckedConnection,
    UnreachableModelError,
    connected,
    context_of,
    run_blocking,
    start_servers,
    stop_servers,
)
from cheesebench.family import LanguageModel

#: Seconds for an answer, and its most tokens.
TIMEOUT, TOKENS = 300.0, 200


def answers(
    models: Mapping[str, LanguageModel],
    question: str,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Return each model's answer. Raises UnreachableModelError for one that gives
    none.
    """
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        servers = start_servers(models, directory, progress)
        try:
            urls = {name: server.base_url for name, server in servers.items()}
            return {
                name: run_blocking(_answer(model, question, directory))
                for name, model in connected(models, urls).items()
            }
        finally:
            stop_servers(servers)


async def _answer(model: LanguageModel, question: str, directory: Path) -> str:
    connection = CheckedConnection(model.backend, context_of(model, directory, 1))
    most = max(TOKENS, model.settings["max_tokens"] or 0)
    request = ChatRequest(
        model=model.entry.id,
        messages=(Message(role="user", parts=(question,)),),
        sampling=Sampling(
            # What the model does not have cannot be set.
            temperature=None if model.settings["temperature"] is None else 0.0,
            max_tokens=most,
        ),
        timeout=TIMEOUT,
        extra=model.settings["served"],
    )
    try:
        return (await connection.complete(request)).text
    except ChatFaultError as fault:
        raise UnreachableModelError(
            f"The model '{model.entry.name}' does not answer: {said(fault)}"
        ) from None
    finally:
        with suppress(Exception):
            await connection.close()
