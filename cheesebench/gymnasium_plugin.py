"""Registers shipped protocols with Gymnasium as soon as both Gymnasium and cheesebench
are imported.

A package usually registers its environments when it is imported. But importing
cheesebench must not import Gymnasium, because pytest imports cheesebench in every
project. So the registration waits until Gymnasium is imported.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


def register() -> None:
    """Register ``cheesebench/<ClassName>-v1`` for the shipped protocols that are in no
    folder of their own, without loading any of them.

    ``cheesebench/Protocol-v1`` creates an environment from any file:
    ``gymnasium.make("cheesebench/Protocol-v1", protocol="my.protocol.yaml")``.
    """
    # Both are imported only if Gymnasium is used, because pytest imports this module in
    # every project.
    import gymnasium

    import cheesebench.protocols

    suffix = ".protocol.yaml"
    for path in sorted(Path(cheesebench.protocols.__path__[0]).glob(f"*{suffix}")):
        name = class_name(path.name.removesuffix(suffix))
        gymnasium.register(
            id=f"cheesebench/{name}-v1",
            entry_point=f"cheesebench.paradigms:{name}",
        )
    gymnasium.register(
        id="cheesebench/Protocol-v1",
        entry_point="cheesebench.paradigms.arena.environment:make_from_file",
    )


def class_name(name: str) -> str:
    """Convert ``t_maze@rodent`` (or the file name ``t_maze.rodent``) to
    ``TMazeRodent``.
    """
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_@.]", name))


def register_when_imported() -> None:
    """Register now if Gymnasium is already imported, otherwise right after it is
    imported.
    """
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium:
    """Import hook that waits for Gymnasium to be imported and then removes itself."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
