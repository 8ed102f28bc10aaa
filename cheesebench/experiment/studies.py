"""Studies, declared in YAML: the same protocols under several settings, as one run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.contestants import LanguageModel, varied
from cheesebench.experiment.records import Variant
from cheesebench.protocol.other_files import read_document

SUFFIX = ".study.yaml"

_Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/-]*$", max_length=100)]
_Level = int | float | bool | Annotated[str, StringConstraints(pattern=r"^[^\s,=][^,=\n]*$", max_length=60)]


class _Document(BaseModel):
    """Content of a study file; for the keys see Study."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: Literal[1]
    study: _Word
    title: str
    about: str = ""
    views: list[_Word] = Field(default_factory=list)
    models: list[_Word] = Field(default_factory=list)
    trials: Annotated[int, Field(ge=1)] = 15
    axes: dict[_Word, Annotated[list[_Level], Field(min_length=1)]] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Study:
    """What a study varies.

    ``axes`` are settings of the agent that asks a model, with their levels; every combination is a variant.
    ``views`` and ``models`` hold where the command line names none. ``trials`` are run by one subject of each cell,
    unless the command line asks for another design.
    """

    name: str
    title: str
    about: str = ""
    views: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    trials: int = 15
    axes: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def design(self) -> str:
        """Name of its own design."""
        return f"flat-{self.trials}"

    def variants(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of levels; a single empty one without axes."""
        for levels in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, levels, strict=True))

    def check(self, models: Mapping[str, LanguageModel], names: tuple[str, ...]) -> None:
        """Raise OptionError if one of the models (``names``) cannot be varied in this way."""
        for name in names:
            if self.axes and name not in models:
                raise OptionError(
                    f"The study '{self.name}' varies {', '.join(self.axes)}, but '{name}' asks no model and has no "
                    "such settings."
                )
            for changes in self.variants():
                if name in models:
                    varied(models[name], changes)


def variant_of(changes: Mapping[str, Any]) -> Variant:
    """Return the variant of a cell, such as ``history=1``, with the settings in the study's order."""
    return Variant(settings=tuple((name, str(value)) for name, value in changes.items()))


def shipped_studies() -> dict[str, Path]:
    """Return the paths of the shipped studies by name."""
    folder = Path(str(files("cheesebench.studies")))
    return {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def find_study(name: str, directory: Path) -> Study:
    """Return a study by name, or from a file (relative to ``directory``).

    Raises UnknownNameError, FileError with ``file:line:col`` for each error in the file, and OptionError for a study
    that varies nothing.
    """
    shipped = shipped_studies()
    path = directory / name
    if not (name.endswith(SUFFIX) or path.is_file()):
        if name not in shipped:
            raise UnknownNameError("study", name, shipped)
        path = shipped[name]
    document = read_document(path, _Document, "study", "study:")
    if not document.axes and len(document.views) < 2 and len(document.models) < 2:
        raise OptionError(f"{path}: the study varies nothing. Add axes, or several views or models.")
    return Study(
        name=document.study,
        title=document.title,
        about=document.about,
        views=tuple(document.views),
        models=tuple(document.models),
        trials=document.trials,
        axes={axis: tuple(levels) for axis, levels in document.axes.items()},
    )
