"""The worker process: does one job after another until its standard input is closed.

It ends by itself when the session that started it dies, however that happens: the pipe is closed then.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import sys
import threading
from typing import Any, BinaryIO

from cheesebench import run_job

#: Length of a message in a pipe, before the message.
HEADER = struct.Struct(">I")


def pack(message: Any) -> bytes:
    """Return the bytes that carry a message through a pipe."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(content)) + content


def main(jobs: BinaryIO) -> None:
    """Read jobs from ``jobs`` and write reports to standard output, each at once: a crash must lose none."""
    # An agent's output must not mix with the reports: it goes to standard error (workers.log).
    reports = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, inbox), daemon=True).start()
    while True:
        messages = run_job(pickle.loads(inbox.get()))
        for report in messages:
            try:
                packed = pack(report)
            except Exception as error:  # a plugin's measure cannot be pickled: this ends the subject
                packed = pack(messages.throw(error))
            message = memoryview(packed)
            while message:  # a pipe may take a part of a long one
                message = message[reports.write(message) :]


def _receive(jobs: BinaryIO, inbox: queue.SimpleQueue[bytes]) -> None:
    while len(header := jobs.read(HEADER.size)) == HEADER.size:
        inbox.put(jobs.read(HEADER.unpack(header)[0]))
    # Nothing reads the reports any longer, whatever the main thread is doing.
    sys.stderr.flush()
    os._exit(0)
