"""Data that the plugin passes on to sessions that run models, and an error that both
raise. pytest imports this module in every project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest

#: The spellings of each of our options in this session, by key. The short spelling is
#: missing if it belongs to another plugin.
SPELLINGS = pytest.StashKey[Mapping[str, Sequence[str]]]()
#: Keys of the options that come from a profile.
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
        f"{where}: this file ends the program while it is loaded (SystemExit: {error}). Fix it, or remove it."
    )
