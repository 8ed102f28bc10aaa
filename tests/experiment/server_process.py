"""A fake server in a process of its own, which writes down what it was asked and what
it has answered.

Arguments: file of the notes, seconds that a call takes, port (0: a free one). It prints
its base URL. A reply follows from the seed of its call alone, whichever server gives
it; the seed is also what tells calls apart.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from cheesebench.testing.fake_server import Answer, Call, FakeServer


def walk(call: Call) -> str:
    """Reply with a few letters that follow from the seed of the call alone."""
    return "".join(
        random.Random(call.body.get("seed", 0)).choices(
            "FLRS ", weights=(6, 1, 1, 1, 1), k=3
        )
    )


class NotingServer(FakeServer):
    """Notes each answer before it is sent."""

    def __init__(self, path: str, latency: float, port: int) -> None:
        super().__init__(self._walk, latency=latency, port=port)
        # Unbuffered: what is noted stays when the process is killed.
        self._notes = open(path, "ab", buffering=0)  # noqa: SIM115

    def _walk(self, call: Call) -> str:
        self._note("asked", call)
        return walk(call)

    def reply_body(self, answer: Answer, call: Call) -> Any:
        self._note("answered", call)
        return super().reply_body(answer, call)

    def _note(self, what: str, call: Call) -> None:
        self._notes.write(f"{what} {call.body.get('seed', 'probe')}\n".encode())


if __name__ == "__main__":
    with NotingServer(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])) as server:
        print(server.base_url, flush=True)
        while True:
            time.sleep(3600)
