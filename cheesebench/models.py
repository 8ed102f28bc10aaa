"""Resolves the name of a model: a registered name, an alias, a provider's id, or ``backend/id``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.chat import BackendSpec, ModelEntry
from cheesebench.errors import OptionError, UnknownNameError

if TYPE_CHECKING:
    from cheesebench.plugin_manager import PluginManager

#: Environment variable that names a list of models of the user's own.
VARIABLE = "CHEESEBENCH_MODELS"


def load_models(path: str | Path) -> tuple[ModelEntry, ...]:
    """Return the models that a YAML file lists; raises FileError with ``file:line:col`` for each error."""
    from cheesebench.model_files import read_models

    return read_models(Path(path))


def user_models(path: str | Path | None = None) -> tuple[ModelEntry, ...]:
    """Return the models of the user's list: ``path``, else the file named by CHEESEBENCH_MODELS, else none."""
    chosen = path or os.environ.get(VARIABLE)
    return load_models(Path(chosen).expanduser()) if chosen else ()


def known_models(plugins: PluginManager, extra_entries: Iterable[ModelEntry] = ()) -> dict[str, ModelEntry]:
    """Return all registered models by name; ``extra_entries`` replace registered ones of the same name."""
    return {**plugins.models, **{entry.name: entry for entry in extra_entries}}


def resolve_model(plugins: PluginManager, name: str, extra_entries: Iterable[ModelEntry] = ()) -> ModelEntry:
    """Return the entry that ``name`` means: upper and lower case are the same.

    A name comes before an alias, an alias before a provider's id, and that before ``backend/id`` or ``backend:id``.
    Later entries, and so ``extra_entries``, come first. Raises UnknownNameError, for backends and options too.
    """
    entries = known_models(plugins, extra_entries)
    wanted = name.casefold()
    for names_of in (_names, _aliases, _ids):
        matching = [entry for entry in reversed(entries.values()) if wanted in map(str.casefold, names_of(entry))]
        if matching and names_of is _ids and len(matching) > 1:
            raise UnknownNameError("model", name, (entry.name for entry in matching), remedy="Name one of these.")
        if matching:
            check_options(plugins.backend(matching[0].backend), matching[0].options)
            return matching[0]
    return _as_it_stands(plugins, name, entries)


def check_options(spec: BackendSpec, options: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for an option that the backend does not have."""
    for name in options:
        if name not in spec.options:
            raise UnknownNameError(f"option of the backend {spec.name} named", name, spec.options)


def _names(entry: ModelEntry) -> tuple[str, ...]:
    return (entry.name,)


def _aliases(entry: ModelEntry) -> tuple[str, ...]:
    return entry.aliases


def _ids(entry: ModelEntry) -> tuple[str, ...]:
    return (entry.id,)


def _as_it_stands(plugins: PluginManager, name: str, entries: Mapping[str, ModelEntry]) -> ModelEntry:
    """Return an entry for ``backend/id``: what is known of that id there, or nothing but the id."""
    place = min((at for at in (name.find("/"), name.find(":")) if at > 0), default=len(name))
    backend, identity = name[:place], name[place + 1 :]
    backends = plugins.backends
    if place == len(name):
        others = [*entries, *(alias for entry in entries.values() for alias in entry.aliases), *backends]
        remedy = f"'cheesebench models' lists the models; or write BACKEND/ID ({', '.join(sorted(backends))})."
        remedy += f" {plugins.not_loaded(name)}".rstrip()
        raise UnknownNameError("model", name, plugins.agents, also=others, remedy=remedy)
    if backend not in backends:
        ids = [known for entry in entries.values() for known in (entry.id, entry.name)]
        remedy = f"Put one of them before the id, as in openai/{name}, or see 'cheesebench models'. "
        remedy += plugins.remedy_for(backend)
        raise UnknownNameError("backend", backend, backends, whole=name, also=ids, remedy=remedy)
    if not identity.strip():
        raise OptionError(f"'{name}' does not name a model. Write its id after the backend, as in {backend}/MODEL-ID.")
    for entry in entries.values():
        if (entry.backend, entry.id) == (backend, identity):
            return dataclasses.replace(entry, name=name, aliases=())
    # Whether it accepts images is unknown; the server will say.
    return ModelEntry(name=name, backend=backend, id=identity, images=backends[backend].capabilities.images)
