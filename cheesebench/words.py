"""The view of subjects that are given words alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cheesebench.interfaces import Scene


class Words:
    """A view that draws nothing: whatever a life says is what its subject gets.

    It is always there (``PluginManager.view("words")``), for families whose subjects look at nothing; no ``--view``
    offers it, because in an arena it would show nothing.
    """

    name = "words"
    characters = ""
    reading = "They are words."

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return nothing."""
        return ""

    def max_length(self, scene: Scene) -> int:
        """Return 0."""
        return 0
