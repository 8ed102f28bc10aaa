"""A budget under pytest-xdist: one worker runs all cells, so that the money can go to the cell nearest to a verdict.

Workers that know nothing of each other's cells would spend it in the order of the cells. Little is lost: subjects run
in parallel within a process, too, and other tests are dealt out to the other workers as they would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cheesebench.pytest_session.items import PREFIX

if TYPE_CHECKING:
    import pytest

#: Of all cells, for pytest-xdist.
SCOPE = "cheesebench"


def is_cell(nodeid: str) -> bool:
    """Return whether a test is a cell, or a protocol that could not be loaded."""
    return nodeid.startswith(PREFIX) or nodeid.partition("::")[0].endswith(".protocol.yaml")


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Return what deals out the tests of a session whose cells share a budget; None for ``--dist each``.

    Tests that are not cells stay together or apart as ``--dist`` has it.
    """
    from xdist.scheduler import LoadFileScheduling, LoadGroupScheduling, LoadScopeScheduling

    dist = config.getoption("dist")
    if dist == "each":
        return None
    kinds = {"loadfile": LoadFileScheduling, "loadgroup": LoadGroupScheduling, "loadscope": LoadScopeScheduling}

    class OneWorker(kinds.get(dist, LoadScopeScheduling)):  # type: ignore[misc]
        """Deals out all cells at once."""

        def _split_scope(self, nodeid: str) -> str:
            if is_cell(nodeid):
                return SCOPE
            return str(super()._split_scope(nodeid)) if dist in kinds else nodeid

    return OneWorker(config, log)
