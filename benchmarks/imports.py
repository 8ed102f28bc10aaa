"""What a project pays for having the plugin installed: CPU time of imports, each in a fresh interpreter (best of 9)."""

from __future__ import annotations

import subprocess
import sys

import common

CASES = {
    "pytest plugin, after pytest": ("pytest", "cheesebench.pytest_plugin"),
    "cheesebench, after nothing": ("sys", "cheesebench"),
    "cheesebench, after gymnasium": ("gymnasium", "cheesebench"),
}
CODE = """
import time, {first}
start = time.process_time()
import {second}
print(time.process_time() - start)
"""


def measure(first: str, second: str) -> common.Times:
    """Return the times that the second import takes."""
    command = [sys.executable, "-c", CODE.format(first=first, second=second)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(9)]
    return common.Times(tuple(float(run.stdout) for run in runs))


if __name__ == "__main__":
    options = common.arguments(__doc__, protocols=False)
    common.report("imports", {name: {"ms": measure(*modules)} for name, modules in CASES.items()}, options.json)
