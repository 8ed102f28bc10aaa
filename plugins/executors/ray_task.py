"""The task that Ray runs on a node. Its code is sent by value, so that it can report
that CheeseBench is missing on the node.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

#: Finished trials are sent after ``SEND_SECONDS``, or when they have ``SEND_BYTES``
#: bytes. Ray keeps a message of less than 100 kB in the driver's memory, where it
#: survives the death of a node.
SEND_SECONDS, SEND_BYTES = 0.1, 64_000


def do_jobs(
    path: list[str],
    expected: Mapping[str, str],
    content: bytes,
    jobs: list[tuple[int, int, Any]],
) -> Iterator[bytes]:
    """Do jobs of one cell, and yield pickled messages.

    ``path`` is the session's sys.path, ``expected`` its installation, and ``content`` a
    pickled job of the cell. Each of ``jobs`` has a number, a subject and a yoke.

    A message ``("differs", phrases)`` says how the node's installation differs. It is
    sent if there are differences, or if there are no jobs, and is then the only
    message. All other messages are ``("reports", seconds, reports)``: the seconds since
    the first job began, and for each report the number of its job, whether it is the
    job's last, and the pickled report.
    """
    # Plugins in the session's directories can be loaded if this node has these
    # directories, too.
    sys.path += [
        entry for entry in path if entry not in sys.path and os.path.isdir(entry)
    ]
    try:
        from cheesebench import differences, installation, run_job

        problems = differences(installation(), expected)
    # CheeseBench is missing or broken, or this version does not have these functions.
    except Exception as error:
        problems = [f"cheesebench cannot be imported ({type(error).__name__}: {error})"]
    if problems or not jobs:
        yield pickle.dumps(("differs", problems))
        return
    template = pickle.loads(content)
    reports: list[tuple[int, bool, bytes]] = []
    began = sent = time.monotonic()
    size = 0
    for number, subject, yoke in jobs:
        messages = run_job(replace(template, subject=subject, yoke=yoke))
        for report in messages:
            try:
                packed = pickle.dumps(report, pickle.HIGHEST_PROTOCOL)
            except Exception as error:
                # A plugin's measure that cannot be pickled ends the subject.
                report = messages.throw(error)
                packed = pickle.dumps(report, pickle.HIGHEST_PROTOCOL)
            reports.append((number, report.ended, packed))
            size += len(packed)
            now = time.monotonic()
            if size >= SEND_BYTES or now - sent >= SEND_SECONDS:
                yield pickle.dumps(("reports", now - began, reports))
                reports, size, sent = [], 0, now
    yield pickle.dumps(("reports", time.monotonic() - began, reports))
