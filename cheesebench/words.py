"""The view of subjects that read text only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cheesebench.interfaces import Scene


class Words:
    """A view that draws nothing: the environment's own text is the observation.

    It is always available (``PluginManager.view("words")``), for families without an arena. ``--view`` does not
    offer it, because in an arena it would show nothing.
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
