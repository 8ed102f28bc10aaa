"""A project with three tiny protocols and agents that certainly pass,
fail, or break.
"""

from __future__ import annotations

import pytest

#: Otherwise every process would import anyio and, at its end, all of Hypothesis.
FEWER_PLUGINS = "-p no:hypothesispytest -p no:anyio"

CORRIDOR = """
version: 1
paradigm: {name}
title: A corridor
dimension: egocentric navigation
species: mouse
arena:
  map: |
    #####
    #S.E#
    #####
  legend: {{S: box, E: end}}
start: {{at: box, face: E}}
trial:
  limit: 5
  start: run
  states:
    run:
      rules:
        - {{enter: end, reward: 1, end: found}}
schedule:
  only: {{sessions: 1, trials: {trials}}}
success: last == found
reference:
  - {{measure: success, value: {reference}, source: nobody, status: made up}}
"""

AGENTS = """
import os, time
from cheesebench import AgentSpec

class Walker:
    "Walks straight on: always finds the end of the corridor. Subjects differ in where they wait, or they were copies."
    def __init__(self, context): self.trials, self.seed, self.waits = 0, context.seed, False
    def begin_trial(self, observation):
        self.trials += 1
        self.waits = self.trials > 3 and self.seed >> self.trials & 1
    def act(self, observation):
        action, self.waits = (3 if self.waits else 0), False
        return [action]
    def observe(self, action, reward, observation, ended): pass

class Statue(Walker):
    "Never moves: never finds anything."
    def act(self, observation):
        action, self.waits = (1 if self.waits else 3), False
        return [action]

class Breaker(Walker):
    "Breaks down in its third trial."
    def act(self, observation):
        if self.trials == 3:
            raise OSError("the line is \\x1b[31mdead")
        return [0]

class Dawdler(Walker):
    "A walker that gets stuck in its third trial for as long as the variable is set."
    def act(self, observation):
        while self.trials == 3 and "DAWDLE" in os.environ:
            time.sleep(0.05)
        return super().act(observation)

def cheesebench_agents():
    return [
        AgentSpec(name, create, memory="none")
        for name, create in dict(walker=Walker, statue=Statue, breaker=Breaker, dawdler=Dawdler).items()
    ]
"""


def corridor(name: str, reference: float = 0.6, trials: int = 20) -> str:
    """Return a protocol in which a walker always succeeds."""
    return CORRIDOR.format(name=name, reference=reference, trials=trials)


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """A project with the agents and, in ``lab``, ``east``, ``west`` and ``few`` (too
    few trials).
    """
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("CI", raising=False)
    # The smallest numbers of subjects that pass and fail.
    monkeypatch.setenv(
        "PYTEST_ADDOPTS",
        "--design=cohort --subjects=6 --view=ascii_2d -p no:hypothesispytest -p no:anyio",
    )
    pytester.makeconftest(AGENTS)
    lab = pytester.mkdir("lab")
    for name, text in {
        "east": corridor("east"),
        "few": corridor("few", reference=0.9, trials=2),
        "west": corridor("west"),
    }.items():
        (lab / f"{name}.protocol.yaml").write_text(text, encoding="utf-8")
    return pytester
