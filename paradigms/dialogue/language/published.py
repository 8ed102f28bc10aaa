"""Published results of other models on a family of dialogues: a data file beside its protocols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.protocol.source import real_path

if TYPE_CHECKING:
    from cheesebench.paradigms.dialogue.language.specification import DialogueSpecification

#: Name of the data file.
FILE_NAME = "published.yaml"


@dataclass(frozen=True)
class Published:
    """``conditions`` holds mean and standard deviation by condition and model; ``groups`` the group of a condition.

    ``scored`` says how the published answers were scored.
    """

    source: str
    scored: str
    groups: Mapping[str, str]
    conditions: Mapping[str, Mapping[str, tuple[float, float]]]

    @property
    def models(self) -> list[str]:
        """All models, in the order of the file."""
        return list(dict.fromkeys(model for row in self.conditions.values() for model in row))

    def model(self, name: str) -> dict[str, tuple[float, float]]:
        """Return mean and standard deviation of a model by condition; UnknownNameError lists what there is."""
        if name not in self.models:
            raise UnknownNameError("published model", name, self.models)
        return {condition: row[name] for condition, row in self.conditions.items() if name in row}


@cache
def read_published(folder: Path) -> Published:
    """Return what lies in a folder of protocols; OptionError where nothing does."""
    import yaml

    path = folder / FILE_NAME
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError:
        raise OptionError(f"There are no published results for these protocols: there is no file {path}.") from None
    return Published(
        source=content["source"],
        scored=content["scored"],
        groups={condition: group for group, members in content["groups"].items() for condition in members},
        conditions={
            condition: {model: (float(mean), float(sd)) for model, (mean, sd) in row.items()}
            for condition, row in content["conditions"].items()
        },
    )


def published_beside(specification: DialogueSpecification) -> Published:
    """Return what has been published of the family that a protocol lies in."""
    return read_published(real_path(Path(specification.path)).parent)
