"""State shared by the plugin, which pytest imports in every project, and a session that
runs models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest

#: Our spellings of each option in this session, by key. The short one may belong to
#: another plugin.
SPELLINGS = pytest.StashKey[Mapping[str, Sequence[str]]]()
#: Options that come from a profile, by key.
PROFILED = pytest.StashKey[Iterable[str]]()


def ended(error: SystemExit) -> pytest.UsageError:
    """Return the error for a conftest.py or plugin that exits while it is loaded."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = (
        "?"
        if trace is None
        else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    )
    return pytest.UsageError(
        f"{where}: ends the program while it is loaded (SystemExit: {error}). Fix it, or remove it."
    )
