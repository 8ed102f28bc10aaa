"""The built-in backends: ways to reach a model. Large libraries are imported on first
use.
"""

from __future__ import annotations

from collections.abc import Iterable

from cheesebench import BackendSpec, hookimpl
from cheesebench.plugins.backends.litellm import LITELLM
from cheesebench.plugins.backends.llamacpp import LLAMACPP
from cheesebench.plugins.backends.openai import OPENAI
from cheesebench.plugins.backends.scripted import SCRIPTED
from cheesebench.plugins.backends.vllm import VLLM, VLLM_OFFLINE

__all__ = ["cheesebench_backends"]


@hookimpl
def cheesebench_backends() -> Iterable[BackendSpec]:
    return (OPENAI, VLLM, VLLM_OFFLINE, LLAMACPP, LITELLM, SCRIPTED)
