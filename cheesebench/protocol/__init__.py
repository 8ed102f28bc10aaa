"""The protocol language: YAML text -> a checked specification, or diagnostics for its author."""

from cheesebench.protocol.arena import Arena, Landmark
from cheesebench.protocol.catalogue import AnySpecification, Catalogue, load_protocol
from cheesebench.protocol.diagnostics import Diagnostic, Position
from cheesebench.protocol.dialogue.specification import DialogueSpecification
from cheesebench.protocol.inherit import DEFAULT_EDITION, SUFFIX
from cheesebench.protocol.specification import BaseSpecification, Specification

__all__ = [
    "DEFAULT_EDITION",
    "SUFFIX",
    "AnySpecification",
    "Arena",
    "BaseSpecification",
    "Catalogue",
    "Diagnostic",
    "DialogueSpecification",
    "Landmark",
    "Position",
    "Specification",
    "load_protocol",
]
