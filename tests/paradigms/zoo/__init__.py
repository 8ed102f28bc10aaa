"""Protocols for tests, which are not shipped: together they use every feature of the
language, in odd combinations.

Each is as small as its purpose allows, which its first comment names. All of them load
without an error, and no subject meets a ProtocolError in them.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from cheesebench.protocol import SUFFIX, Specification
from tests.arenas import examine_text

#: Name -> text of the protocol.
ZOO = {
    path.name.removesuffix(SUFFIX): path.read_text(encoding="utf-8")
    for path in sorted(Path(__file__).parent.glob(f"*{SUFFIX}"))
}


def examine(text: str, name: str) -> tuple[Specification | None, str]:
    """Load a protocol from its text; return it (None if it has errors), and all
    findings.
    """
    specification, found = examine_text(textwrap.dedent(text), f"{name}{SUFFIX}")
    return specification, "\n".join(map(str, found))


def load(name: str) -> Specification:
    """Load a protocol of the zoo."""
    specification, found = examine(ZOO[name], name)
    assert specification is not None, found
    return specification
