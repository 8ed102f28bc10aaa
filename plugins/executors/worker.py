"""The worker process: does one job after another until its standard input is closed.

If the session that started the worker dies, the input is closed too, so the worker
never outlives its session.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from typing import BinaryIO

from cheesebench import run_job
from cheesebench.plugins.executors import pipes


def main(jobs: BinaryIO) -> None:
    """Read jobs from ``jobs``, and write each report to standard output at once, so
    that a crash loses none.
    """
    # An agent's output must not mix with the reports, so it goes to standard error
    # (workers.log).
    reports = pipes.take_output()
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, inbox), daemon=True).start()
    while True:
        messages = run_job(pickle.loads(inbox.get()))
        for report in messages:
            try:
                packed = pipes.pack(report)
            except Exception as error:
                # A plugin's measure that cannot be pickled ends the subject.
                packed = pipes.pack(messages.throw(error))
            pipes.write_all(reports, packed)


def _receive(jobs: BinaryIO, inbox: queue.SimpleQueue[bytes]) -> None:
    for message in pipes.read_messages(jobs):
        inbox.put(message)
    # Exit now, even if the main thread is busy, because nobody reads its reports.
    sys.stderr.flush()
    os._exit(0)
