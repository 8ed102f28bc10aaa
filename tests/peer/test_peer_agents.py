"""The edition ``paper``'s own baselines against the package's: the same actions after
the same pictures and rewards, and the same rates in 200 trials.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.paper_agents import AGENTS, KEPT, asked_of_package, here, lives, there
from benchmarks.random_rates import TASKS

pytestmark = pytest.mark.peer

#: Number of lives in which every step is compared.
LIVES = 2


@pytest.mark.parametrize("name", sorted(TASKS))
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_the_same_steps(peer: Path, agent: str, name: str) -> None:
    lived = list(lives(agent, name, LIVES))
    told = asked_of_package(
        peer,
        {
            "agent": agent,
            "lives": [
                [{"seen": trial.seen, "paid": trial.paid} for trial in life]
                for life in lived
            ],
        },
    )
    assert told == [[trial.actions for trial in life] for life in lived]


@pytest.mark.parametrize("name", sorted(TASKS))
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_the_same_rates(peer: Path, agent: str, name: str) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))[agent][name]
    assert here(agent, name) == kept["here"]
    assert there(peer, agent, name) == kept["package"]
