"""The protocol language: YAML text -> a checked specification, or diagnostics for its author."""

from cheesebench.protocol.arena import Arena, Landmark
from cheesebench.protocol.catalogue import DEFAULT_EDITION, SUFFIX, Catalogue, load_protocol
from cheesebench.protocol.diagnostics import Diagnostic, Position
from cheesebench.protocol.specification import Specification

__all__ = [
    "DEFAULT_EDITION",
    "SUFFIX",
    "Arena",
    "Catalogue",
    "Diagnostic",
    "Landmark",
    "Position",
    "Specification",
    "load_protocol",
]
