"""The built-in backends: kinds of model server. Each imports what it needs when it is used."""

from __future__ import annotations

from collections.abc import Iterable

from cheesebench import BackendSpec, hookimpl
from cheesebench.plugins.backends.litellm import LITELLM
from cheesebench.plugins.backends.openai import OPENAI
from cheesebench.plugins.backends.scripted import SCRIPTED
from cheesebench.plugins.backends.vllm import VLLM
from cheesebench.plugins.backends.vllm_offline import VLLM_OFFLINE

__all__ = ["cheesebench_backends"]


@hookimpl
def cheesebench_backends() -> Iterable[BackendSpec]:
    """Return the built-in backends."""
    return (OPENAI, VLLM, VLLM_OFFLINE, LITELLM, SCRIPTED)
