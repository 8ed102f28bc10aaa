"""Child processes that can receive signals, wherever the tests are run from."""

from __future__ import annotations

import signal


def reset_signals() -> None:
    """For ``preexec_fn``: tests in the background, or under nohup, ignore some of these
    signals, and children inherit that.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
