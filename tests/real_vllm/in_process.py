"""The backend ``vllm-offline`` with a real engine; run by vLLM's Python, prints its
results as JSON.

Arguments: the model, a directory.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import recipe  # type: ignore[import-not-found]

from cheesebench import (
    BackendContext,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    Message,
    ModelEntry,
    Sampling,
)
from cheesebench.plugins.backends.vllm import VLLM_OFFLINE


async def ask(connection: Connection, *requests: ChatRequest) -> list[dict[str, Any]]:
    """Return replies and faults as JSON values."""
    answers = await asyncio.gather(
        *map(connection.complete, requests), return_exceptions=True
    )
    found = []
    for answer in answers:
        if isinstance(answer, ChatReply):
            found.append(asdict(answer))
        elif isinstance(answer, ChatFaultError):
            found.append({"fault": answer.kind, "said": str(answer)})
        else:
            raise answer
    return found


async def main(model: str, directory: str) -> None:
    connection = VLLM_OFFLINE.connect(
        BackendContext(
            entry=ModelEntry(name="tiny", backend="vllm-offline", id=model),
            directory=Path(directory),
            options=recipe.ENGINE,
        )
    )
    seeded = Sampling(temperature=0.7, max_tokens=12, seed=5)
    request = ChatRequest(
        model=model, messages=(Message("user", ("which way? " * 20,)),), sampling=seeded
    )
    try:
        found = {
            "once": await ask(connection, request),
            "again": await ask(connection, request),
            "too_long": await ask(
                connection,
                replace(request, messages=(Message("user", ("\u0001" * 9000,)),)),
            ),
            "cut": await ask(
                connection,
                replace(request, messages=(Message("user", ("\u0001" * 8160,)),)),
            ),
            "unknown_setting": await ask(
                connection, replace(request, extra={"nonsense": 1})
            ),
            "bad_setting": await ask(connection, replace(request, extra={"top_p": 7})),
            "served": await ask(
                connection, replace(request, extra={"top_p": 0.5, "max_tokens": 3})
            ),
            "late": await ask(
                connection,
                replace(
                    request, timeout=0.001, sampling=Sampling(max_tokens=3000, seed=1)
                ),
            ),
            "many": await ask(
                connection,
                *(
                    replace(
                        request,
                        conversation=str(n),
                        sampling=Sampling(temperature=0.7, max_tokens=16, seed=n),
                    )
                    for n in range(64)
                ),
            ),
        }
    finally:
        await connection.close()
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
