"""The shipped models. Their lists are YAML files beside this module, read like a user's
own list.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from cheesebench import ModelEntry, hookimpl, load_models

__all__ = ["cheesebench_models"]

#: Names of the shipped lists of models, in display order.
LISTS = ("local", "paper", "open_weights", "proprietary")


@hookimpl
def cheesebench_models() -> Iterable[ModelEntry]:
    return _shipped()


@lru_cache(maxsize=1)
def _shipped() -> tuple[ModelEntry, ...]:
    folder = Path(__file__).parent
    return tuple(
        entry for name in LISTS for entry in load_models(folder / f"{name}.yaml")
    )
