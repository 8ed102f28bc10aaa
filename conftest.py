"""Fixtures that every part of the tests shares."""

from __future__ import annotations

pytest_plugins = ["pytester"]
