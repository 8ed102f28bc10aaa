"""Warnings and notes about a protocol that is free of errors: what is probably a mistake."""

from __future__ import annotations

from cheesebench.protocol.diagnostics import Diagnostics
from cheesebench.protocol.names import Names
from cheesebench.protocol.source import Node
from cheesebench.protocol.specification import Specification


def check(specification: Specification, names: Names, root: Node, diagnostics: Diagnostics) -> Specification:
    """Add warnings and notes; return the specification with the warnings in it."""
    return specification
