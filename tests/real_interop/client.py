"""Runs lives over OpenEnv with its own client: ``client.py URL FIRST LIVES``; a line of
JSON for each finished life.
"""

from __future__ import annotations

import asyncio
import json
import sys

from openenv.core.generic_client import GenericEnvClient

SAID = (
    {"text": "ACTIONS: FORWARD, FORWARD"},
    {"actions": ["ROTATE_LEFT", "FORWARD"], "learnings": "left"},
)


async def live(url: str, subject: int) -> None:
    async with GenericEnvClient(base_url=url) as client:
        result = await client.reset(
            seed=7, split="test", protocol="dnms", subject=subject
        )
        trials, calls = [], 0
        while not result.done:
            result = await client.step(SAID[calls % len(SAID)])
            trials += [[one["trial"], one["outcome"], one["success"], one["reward"]] for one in
                       result.observation["trials"]]  # fmt: skip
            calls += 1
        print(
            json.dumps({"subject": subject, "calls": calls, "trials": trials}),
            flush=True,
        )


async def main(url: str, first: int, lives: int) -> None:
    await asyncio.gather(
        *(live(url, subject) for subject in range(first, first + lives))
    )


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
