"""The built-in agents: the baselines, which need no server, and the agents for language
models.
"""

from __future__ import annotations

from collections.abc import Iterable

from cheesebench import AgentSpec, ModelAgentSpec, RespondentSpec, hookimpl
from cheesebench.plugins.agents.bfs_oracle import BfsOracle
from cheesebench.plugins.agents.graded import GRADED
from cheesebench.plugins.agents.hippocampal_ql import HippocampalQL
from cheesebench.plugins.agents.llm import LLM, LLM_TOOLS
from cheesebench.plugins.agents.place_learner import PlaceLearner
from cheesebench.plugins.agents.published import (
    PublishedBfsOracle,
    PublishedTabularQL,
)
from cheesebench.plugins.agents.random_agent import RandomAgent
from cheesebench.plugins.agents.respondents import RESPONDENTS
from cheesebench.plugins.agents.tabular_ql import TabularQL

__all__ = [
    "BfsOracle",
    "HippocampalQL",
    "PlaceLearner",
    "PublishedBfsOracle",
    "PublishedTabularQL",
    "RandomAgent",
    "TabularQL",
    "cheesebench_agents",
    "cheesebench_model_agents",
    "cheesebench_respondents",
]


@hookimpl
def cheesebench_agents() -> Iterable[AgentSpec]:
    return (
        AgentSpec(
            "random",
            RandomAgent,
            memory="none",
            summary="picks one of the four actions at random",
        ),
        AgentSpec(
            "tabular-ql",
            TabularQL,
            memory="life",
            summary="Q-learning and a map learned from experience",
        ),
        AgentSpec(
            "hippocampal-ql",
            HippocampalQL,
            memory="life",
            summary="Q-learning, a map, replay, curiosity",
        ),
        AgentSpec(
            "place-learner",
            PlaceLearner,
            memory="life",
            summary="remembers places by landmarks and walks to them",
        ),
        AgentSpec(
            "bfs-oracle",
            BfsOracle,
            memory="none",
            summary="walks to a visible G by BFS, else explores",
        ),
        # In the edition `paper`, these two replace the agents named before the "@".
        AgentSpec(
            "tabular-ql@paper",
            PublishedTabularQL,
            memory="life",
            summary="Tabular-QL by the rules of the CheeseBench paper's package",
        ),
        AgentSpec(
            "bfs-oracle@paper",
            PublishedBfsOracle,
            memory="life",
            summary="the BFS oracle by the rules of the CheeseBench paper's package",
        ),
        # In the edition `paper`, our own versions are available under these names.
        AgentSpec(
            "tabular-ql@default",
            TabularQL,
            memory="life",
            summary="`tabular-ql` by CheeseBench's own rules, also in the edition paper",
        ),
        AgentSpec(
            "bfs-oracle@default",
            BfsOracle,
            memory="none",
            summary="`bfs-oracle` by CheeseBench's own rules, also in the edition paper",
        ),
        *GRADED,
    )


@hookimpl
def cheesebench_model_agents() -> Iterable[ModelAgentSpec]:
    return (LLM, LLM_TOOLS)


@hookimpl
def cheesebench_respondents() -> Iterable[RespondentSpec]:
    return RESPONDENTS
