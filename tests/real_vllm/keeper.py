"""A process that starts a vLLM server through the ``vllm`` backend, prints its address,
and keeps it.

Arguments: vLLM's Python, the model, a directory for the log, the maximum tokens of
prompt and reply. It never stops the server itself.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import recipe  # type: ignore[import-not-found]

from cheesebench import BackendContext, ModelEntry
from cheesebench.plugins.backends.vllm import serve


def main(python: str, model: str, directory: str, most: str) -> None:
    server = serve(
        BackendContext(
            entry=ModelEntry(name="tiny", backend="vllm", id=model),
            directory=Path(directory),
            options={
                **recipe.ENGINE,
                "max_model_len": most,
                "python": python,
                "startup_timeout": recipe.STARTUP_TIMEOUT,
            },
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    )
    print(server.base_url, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main(*sys.argv[1:])
