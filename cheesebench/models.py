"""Models by name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.chat import ModelEntry
from cheesebench.errors import UnknownNameError

if TYPE_CHECKING:
    from cheesebench.plugin_manager import PluginManager


def resolve_model(plugins: PluginManager, name: str, extra: Iterable[ModelEntry] = ()) -> ModelEntry:
    """Return a model."""
    known = {**plugins.models, **{entry.name: entry for entry in extra}}
    if name in known:
        return known[name]
    for sign in ("/", ":"):
        backend, found, ident = name.partition(sign)
        if found and backend in plugins.backends:
            return ModelEntry(name=name, backend=backend, id=ident)
    raise UnknownNameError("model", name, [*known, *plugins.agents])


def load_models(path: Path) -> list[ModelEntry]:
    """Load."""
    return []
