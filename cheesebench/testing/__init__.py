"""Tests for authors: run ours in your own repository.

A vendor's test file is five lines; each function raises AssertionError with every rule that is broken, by name:

    from cheesebench.testing import assert_backend_sound
    from my_package import BACKEND

    def test_my_backend():
        assert_backend_sound(BACKEND)

``assert_agent_sound``, ``assert_respondent_sound``, ``assert_view_sound`` and ``assert_sound`` (the audit of a
protocol file) are used alike. ``broken_backend_rules`` and its like return the findings instead.
"""

from cheesebench.testing.agents import assert_agent_sound, broken_agent_rules
from cheesebench.testing.backends import assert_backend_sound, broken_backend_rules
from cheesebench.testing.protocols import QUICK, assert_sound, audit_protocol
from cheesebench.testing.respondents import assert_respondent_sound, broken_respondent_rules
from cheesebench.testing.rules import Broken
from cheesebench.testing.views import assert_view_sound, broken_view_rules

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
