"""The protocol language. It turns YAML text into a checked specification, or into
diagnostics for the author.
"""

from cheesebench.protocol.arena import Arena, Landmark
from cheesebench.protocol.catalogue import SUFFIX, Catalogue, load_protocol
from cheesebench.protocol.specification import Specification, arenas, with_arena

__all__ = [
    "SUFFIX",
    "Arena",
    "Catalogue",
    "Landmark",
    "Specification",
    "arenas",
    "load_protocol",
    "with_arena",
]
