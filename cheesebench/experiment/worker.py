"""The worker process: does one job after another until its standard input is closed.

It ends by itself when the session that started it dies, however that happens: the pipe is closed then.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
import time
from typing import BinaryIO

from cheesebench.errors import RunLogError
from cheesebench.experiment.jobs import HEADER, Job, Report, Workplace, pack
from cheesebench.experiment.records import TrialRecord
from cheesebench.plugin_manager import installed_plugins

#: Seconds between two reports of progress (records that are wanted are sent at once).
REPORT_INTERVAL = 0.1


def main(jobs: BinaryIO) -> None:
    """Read jobs from ``jobs`` and write reports to standard output."""
    # What an agent prints must not get between the reports: it goes where errors go (workers.log).
    reports = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, inbox), daemon=True).start()
    workplace = Workplace(installed_plugins())
    while True:
        _do(pickle.loads(inbox.get()), workplace, reports)


def _receive(jobs: BinaryIO, inbox: queue.SimpleQueue[bytes]) -> None:
    while len(header := jobs.read(HEADER.size)) == HEADER.size:
        inbox.put(jobs.read(HEADER.unpack(header)[0]))
    # Nobody is there any longer. Whatever the main thread is doing, finished trials are in the log.
    sys.stderr.flush()
    os._exit(0)


def _do(job: Job, workplace: Workplace, reports: BinaryIO) -> None:
    trials = 0
    reported = time.monotonic()

    def finished(record: TrialRecord) -> None:
        nonlocal trials, reported
        trials += 1
        if job.wants_records:
            reports.write(pack(Report(trials=trials, record=record)))
        elif (now := time.monotonic()) - reported >= REPORT_INTERVAL:
            reported = now
            reports.write(pack(Report(trials=trials)))

    complete, error = False, ""
    try:
        complete = workplace.do(job, finished)
    except RunLogError as problem:
        error = str(problem)
    reports.write(pack(Report(trials=trials, ended=True, complete=complete, error=error)))
