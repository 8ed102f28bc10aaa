"""Resolves the name of a model: a registered name, an alias, a provider's id, or
``backend/id``.
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cheesebench import arguments
from cheesebench.chat import BackendSpec, ModelEntry, Price
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.protocol.documents import checked
from cheesebench.protocol.structure import read_document

if TYPE_CHECKING:
    from cheesebench.plugin_manager import PluginManager


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


#: One line of text without surrounding whitespace.
Word = Annotated[
    str,
    StringConstraints(
        pattern=r"^[^\s\x00-\x1f](?:[^\x00-\x1f]*[^\s\x00-\x1f])?$", max_length=300
    ),
]
Dollars = Annotated[float, Field(ge=0)]


class Document(BaseModel):
    """Base class of the data models here. Unknown keys are errors, and values are not
    converted.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ListedPrice(Document):
    """Dollars per million tokens, and the date ``on`` which the price was published."""

    prompt: Dollars
    completion: Dollars
    cached: Dollars | None = None
    written: Dollars | None = None
    on: Annotated[str, checked(_is_date, "a date such as 2026-10-21")]


class ListedModel(Document):
    """One model, with the keys of ModelEntry."""

    backend: Word
    id: Word
    aliases: list[Word] = Field(default_factory=list)
    family: str = ""
    parameters: float | None = Field(None, gt=0)
    images: bool = False
    reasoning: bool = False
    context: int | None = Field(None, ge=1)
    max_tokens: int | None = Field(None, ge=1)
    served: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    drops: list[Literal["temperature", "max_tokens", "seed", "stop", "system"]] = Field(
        default_factory=list
    )
    price: ListedPrice | None = None
    trained_on: list[Word] = Field(default_factory=list)
    licence: str = ""
    note: str = ""


class ModelList(Document):
    """A file that lists models by name."""

    models: dict[Word, ListedModel]


def read_models(path: Path) -> tuple[ModelEntry, ...]:
    """Return the models that a file lists. Raise FileError, with ``file:line:col:
    error E...`` for each error.
    """
    listed = read_document(path, ModelList, "list of models", "models:").models
    return tuple(_entry(name, model) for name, model in listed.items())


def _entry(name: str, model: ListedModel) -> ModelEntry:
    price = None
    if model.price is not None:
        figures = model.price.model_dump()
        price = Price(**{**figures, "on": datetime.date.fromisoformat(model.price.on)})
    facts = model.model_dump(exclude={"price"})
    facts |= {key: tuple(facts[key]) for key in ("aliases", "drops", "trained_on")}
    return ModelEntry(name=name, price=price, **facts)


#: Environment variable with the path of the user's own list of models.
VARIABLE = "CHEESEBENCH_MODELS"


@arguments.checked()
def load_models(path: str | Path) -> tuple[ModelEntry, ...]:
    """Return the models that a YAML file lists. (``catalogue`` returns the installed
    ones.) Raises FileError, with ``file:line:col`` for each error.
    """
    return read_models(Path(path))


def user_models(path: str | Path | None = None) -> tuple[ModelEntry, ...]:
    """Return the models of the user's list: the file ``path``, or else the file that
    CHEESEBENCH_MODELS names, or else none.
    """
    chosen = path or os.environ.get(VARIABLE)
    return load_models(Path(chosen).expanduser()) if chosen else ()


def known_models(
    plugins: PluginManager, extra_entries: Iterable[ModelEntry] = ()
) -> dict[str, ModelEntry]:
    """Return all registered models and ``extra_entries`` by name. An extra entry
    replaces a registered model of the same name.
    """
    return {**plugins.models, **{entry.name: entry for entry in extra_entries}}


def resolve_model(
    plugins: PluginManager, name: str, extra_entries: Iterable[ModelEntry] = ()
) -> ModelEntry:
    """Return the entry for ``name``, ignoring case.

    Names take precedence over aliases, aliases over a provider's ids, and ids over
    ``backend/id`` or ``backend:id``. Later entries, and so ``extra_entries``, win.
    Raise UnknownNameError for an unknown model, backend or backend option, and for an
    id that several models have. Raise OptionError for a backend without an id.
    """
    entries = known_models(plugins, extra_entries)
    wanted = name.casefold()
    for names_of in (_names, _aliases, _ids):
        matching = [
            entry
            for entry in reversed(entries.values())
            if wanted in map(str.casefold, names_of(entry))
        ]
        if matching and names_of is _ids and len(matching) > 1:
            raise UnknownNameError(
                "model",
                name,
                (entry.name for entry in matching),
                remedy="Name one of these.",
            )
        if matching:
            check_options(plugins.backend(matching[0].backend), matching[0].options)
            return matching[0]
    return _as_it_stands(plugins, name, entries)


def check_options(spec: BackendSpec, options: Mapping[str, Any]) -> None:
    """Raise UnknownNameError for an option that the backend does not have."""
    for name in options:
        if name not in spec.options:
            raise UnknownNameError(
                f"option of the backend {spec.name} named", name, spec.options
            )


def _names(entry: ModelEntry) -> tuple[str, ...]:
    return (entry.name,)


def _aliases(entry: ModelEntry) -> tuple[str, ...]:
    return entry.aliases


def _ids(entry: ModelEntry) -> tuple[str, ...]:
    return (entry.id,)


def _no_model(
    plugins: PluginManager, name: str, entries: Mapping[str, ModelEntry]
) -> UnknownNameError:
    if name in plugins.backends:
        remedy = f"'{name}' is a backend: write {name}/MODEL-ID."
        return UnknownNameError("model", name, plugins.agents, remedy=remedy)
    aliases = (alias for entry in entries.values() for alias in entry.aliases)
    # Names of backends are short, so only a very similar one is suggested.
    backends = difflib.get_close_matches(name, plugins.backends, cutoff=0.75)
    others = [*entries, *aliases, *backends]
    own = "" if set(name) & set("/:") else f": openai/{name} for a server of your own"
    remedy = f"'cheesebench models' lists the models. Or write BACKEND/ID ({', '.join(sorted(plugins.backends))}){own}."
    remedy += f" {plugins.not_loaded(name)}".rstrip()
    return UnknownNameError("model", name, plugins.agents, also=others, remedy=remedy)


def _no_backend(
    plugins: PluginManager, name: str, backend: str, entries: Mapping[str, ModelEntry]
) -> UnknownNameError:
    ids = [known for entry in entries.values() for known in (entry.id, entry.name)]
    remedy = f"If '{name}' is the whole id, put a backend before it, as in openai/{name}. Or see 'cheesebench models'. "
    remedy += plugins.remedy_for(backend)
    return UnknownNameError(
        "backend", backend, plugins.backends, whole=name, also=ids, remedy=remedy
    )


def _as_it_stands(
    plugins: PluginManager, name: str, entries: Mapping[str, ModelEntry]
) -> ModelEntry:
    """Return the entry for ``backend/id``: the registered one, or a new one with only
    the id. Raise the errors of ``resolve_model``.
    """
    place = min(
        (at for at in (name.find("/"), name.find(":")) if at > 0), default=len(name)
    )
    backend, identity = name[:place], name[place + 1 :]
    if place == len(name):
        raise _no_model(plugins, name, entries)
    if backend not in plugins.backends:
        raise _no_backend(plugins, name, backend, entries)
    if not identity.strip():
        raise OptionError(
            f"'{name}' does not name a model. Write its id after the backend, as in {backend}/MODEL-ID."
        )
    for entry in entries.values():
        if (entry.backend, entry.id) == (backend, identity):
            return dataclasses.replace(entry, name=name, aliases=())
    # It is unknown whether the model accepts images. If it does not, its server refuses
    # them.
    return ModelEntry(
        name=name,
        backend=backend,
        id=identity,
        images=plugins.backends[backend].capabilities.images,
    )
