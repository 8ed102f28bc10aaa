#!/usr/bin/env python3
"""Runs tests; what fails runs once more, alone, and what passes then is flaky.

    .ci/twice.py LIST PYTEST ARGUMENT ...

Flaky tests are printed as ``FLAKY <id>``, appended to the file LIST, and fail nothing.
What fails twice fails. More than 20 failures are no flakes and do not run again. Exit
codes are pytest's.
"""

import json
import subprocess
import sys
from pathlib import Path

#: Failing tests that may run again.
MOST = 20
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def failed() -> list[str]:
    """Return the tests of the last run that failed, as pytest's cache has them."""
    if not FAILED.exists():
        return []
    return sorted(json.loads(FAILED.read_text(encoding="utf-8")))


def main() -> int:
    flaky, *command = sys.argv[1:]
    FAILED.unlink(missing_ok=True)
    code = subprocess.call(command)
    first = failed()
    if code != 1 or not 0 < len(first) <= MOST:
        return code
    print(f"\n=== {len(first)} failed; once more, alone", flush=True)
    code = subprocess.call([*command, "--lf", "-n", "0"])
    if code not in (0, 1):
        return code
    passed = sorted({*first} - {*failed()})
    for test in passed:
        print("FLAKY", test, flush=True)
    with Path(flaky).open("a", encoding="utf-8") as file:
        file.writelines(f"{test}\n" for test in passed)
    return code


if __name__ == "__main__":
    sys.exit(main())
