"""Strict reading of YAML files other than protocols (model lists, scripts of replies), with the same kind of errors."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from cheesebench.errors import FileError
from cheesebench.protocol.diagnostics import Diagnostics, EnoughFindingsError, in_file_order
from cheesebench.protocol.source import Kind, read_file
from cheesebench.protocol.structure import read_shape

M = TypeVar("M", bound=BaseModel)


def read_document(path: Path, model: type[M], noun: str, begins: str) -> M:
    """Return the content of a YAML file as ``model``, a pydantic model that forbids unknown keys.

    ``noun`` names the kind of file in messages, ``begins`` is an example of its first line. Raises FileError with a
    finding for each error.
    """
    diagnostics = Diagnostics()
    document = None
    root = read_file(Path(path), diagnostics, Kind(noun, "a mapping of keys", begins))
    if root is not None and not diagnostics.errors:
        with contextlib.suppress(EnoughFindingsError):
            document = read_shape(root, root.plain(), diagnostics, model)
    if document is None or diagnostics.errors:
        raise FileError(findings=in_file_order(diagnostics.errors))
    return document
