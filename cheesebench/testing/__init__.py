"""Conformance tests that authors of plugins run in their own repositories.

A test file takes five lines. Each ``assert_`` function raises AssertionError with the
name of every broken rule:

    from cheesebench.testing import assert_backend_sound
    from my_package import BACKEND

    def test_my_backend():
        assert_backend_sound(BACKEND)

``assert_agent_sound``, ``assert_respondent_sound``, ``assert_view_sound`` and
``assert_sound`` (the audit of a protocol file) are used the same way.
``broken_backend_rules`` and the like return the findings instead.

``cheesebench.testing.fake_server`` is a server that follows a script.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cheesebench.testing.agents import (
        assert_agent_sound,
        assert_respondent_sound,
        broken_agent_rules,
        broken_respondent_rules,
    )
    from cheesebench.testing.backends import assert_backend_sound, broken_backend_rules
    from cheesebench.testing.protocols import QUICK, assert_sound, audit_protocol
    from cheesebench.testing.rules import Broken
    from cheesebench.testing.views import assert_view_sound, broken_view_rules

# The modules are imported on first use, because the fake server, which is run with
# ``python -m``, needs none of them.
_HOME = {
    **dict.fromkeys(
        ("assert_agent_sound", "broken_agent_rules"), "cheesebench.testing.agents"
    ),
    **dict.fromkeys(
        ("assert_backend_sound", "broken_backend_rules"), "cheesebench.testing.backends"
    ),
    **dict.fromkeys(
        ("QUICK", "assert_sound", "audit_protocol"), "cheesebench.testing.protocols"
    ),
    **dict.fromkeys(
        ("assert_respondent_sound", "broken_respondent_rules"),
        "cheesebench.testing.agents",
    ),
    **dict.fromkeys(("Broken",), "cheesebench.testing.rules"),
    **dict.fromkeys(
        ("assert_view_sound", "broken_view_rules"), "cheesebench.testing.views"
    ),
}

__all__ = [
    "QUICK",
    "Broken",
    "assert_agent_sound",
    "assert_backend_sound",
    "assert_respondent_sound",
    "assert_sound",
    "assert_view_sound",
    "audit_protocol",
    "broken_agent_rules",
    "broken_backend_rules",
    "broken_respondent_rules",
    "broken_view_rules",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
