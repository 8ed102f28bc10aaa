"""The protocol language: YAML text -> a checked specification, or diagnostics for its author."""

from cheesebench.protocol.arena import Arena, Landmark
from cheesebench.protocol.catalogue import Catalogue, load_protocol
from cheesebench.protocol.diagnostics import Diagnostic, Position
from cheesebench.protocol.inherit import SUFFIX
from cheesebench.protocol.specification import BaseSpecification, Specification
from cheesebench.protocol.values import DEFAULT_EDITION

__all__ = [
    "DEFAULT_EDITION",
    "SUFFIX",
    "Arena",
    "BaseSpecification",
    "Catalogue",
    "Diagnostic",
    "Landmark",
    "Position",
    "Specification",
    "load_protocol",
]
