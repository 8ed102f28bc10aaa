"""The agent ``llm``: a language model plays a subject, one prompt after another. See ``docs/prompts.md``."""

from __future__ import annotations

from cheesebench import ModelAgentSpec
from cheesebench.plugins.agents.llm.agent import LlmAgent
from cheesebench.plugins.agents.llm.prompts import instructions
from cheesebench.plugins.agents.llm.settings import SETTINGS, check, read_history

__all__ = ["SPEC", "LlmAgent"]

SPEC = ModelAgentSpec(
    name="llm",
    create=LlmAgent,
    settings=SETTINGS,
    check=check,
    readers={"history": read_history},
    memory="life",
    instructions=instructions,
    summary="asks a language or vision model: observations in, learnings and actions out",
)
