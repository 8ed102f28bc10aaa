"""Reads lists of models from YAML files."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cheesebench.chat import ModelEntry, Price
from cheesebench.protocol.other_files import read_document
from cheesebench.protocol.values import checked


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


#: One line of text without surrounding blanks.
Word = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f](?:[^\x00-\x1f]*[^\s\x00-\x1f])?$", max_length=300)]
Dollars = Annotated[float, Field(ge=0)]


class Document(BaseModel):
    """Base of the models here: unknown keys are errors, values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ListedPrice(Document):
    """Dollars per million tokens."""

    prompt: Dollars
    completion: Dollars
    cached: Dollars | None = None
    written: Dollars | None = None
    on: Annotated[str, checked(_is_date, "a date such as 2026-10-21")]


class ListedModel(Document):
    """One model; the keys are those of ModelEntry."""

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
    drops: list[Literal["temperature", "max_tokens", "seed", "stop"]] = Field(default_factory=list)
    price: ListedPrice | None = None
    note: str = ""


class ModelList(Document):
    """A file of models, by name."""

    models: dict[Word, ListedModel]


def read_models(path: Path) -> tuple[ModelEntry, ...]:
    """Return the models of a file. Raises FileError with ``file:line:col: error E...`` for each error."""
    listed = read_document(path, ModelList, "list of models", "models:").models
    return tuple(_entry(name, model) for name, model in listed.items())


def _entry(name: str, model: ListedModel) -> ModelEntry:
    price = None
    if model.price is not None:
        figures = model.price.model_dump()
        price = Price(**{**figures, "on": datetime.date.fromisoformat(model.price.on)})
    facts = model.model_dump(exclude={"price", "aliases", "drops"})
    return ModelEntry(name=name, aliases=tuple(model.aliases), drops=tuple(model.drops), price=price, **facts)
