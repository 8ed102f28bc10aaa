"""Children that a signal is sent to, wherever the tests are run from."""

from __future__ import annotations

import signal


def reset_signals() -> None:
    """For ``preexec_fn``: whoever runs the tests in the background has SIGINT ignored,
    and children inherit that.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
