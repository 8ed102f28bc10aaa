"""The task that Ray runs on a node. Its code is sent by value, and imports nothing of
CheeseBench before it has checked the node's installation.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

#: ``SEND_SECONDS`` is the time after which finished trials are sent, ``SEND_BYTES`` the
#: number of bytes from which they are sent at once. Ray keeps a message of less than
#: 100 kB in the memory of the driver, where it survives the death of a node.
SEND_SECONDS, SEND_BYTES = 0.1, 64_000


def do_jobs(
    path: list[str],
    expected: Mapping[str, str],
    content: bytes,
    jobs: list[tuple[int, int, Any]],
) -> Iterator[bytes]:
    """Do jobs of one cell, and yield pickled messages.

    ``path`` is the session's sys.path, ``expected`` its installation, ``content`` a
    pickled job of the cell; ``jobs`` have number, subject and yoke. A message is
    ``("differs", phrases)``, which is the only one if there are no jobs, or
    ``("reports", seconds, reports)``: the seconds since the first job began, and for
    each report the number of its job, whether it is the last, and the report, pickled.
    """
    # If a directory of the session also exists on this node, plugins in it can be
    # loaded.
    sys.path += [
        entry for entry in path if entry not in sys.path and os.path.isdir(entry)
    ]
    try:
        from cheesebench import differences, installation, run_job

        problems = differences(installation(), expected)
    # The installation is missing or broken, or its version does not have these modules.
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
                # A plugin's measure cannot be pickled, which ends the subject.
                report = messages.throw(error)
                packed = pickle.dumps(report, pickle.HIGHEST_PROTOCOL)
            reports.append((number, report.ended, packed))
            size += len(packed)
            now = time.monotonic()
            if size >= SEND_BYTES or now - sent >= SEND_SECONDS:
                yield pickle.dumps(("reports", now - began, reports))
                reports, size, sent = [], 0, now
    yield pickle.dumps(("reports", time.monotonic() - began, reports))
