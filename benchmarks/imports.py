"""Measures what the plugin costs a project that has it installed, and the start-up time
of the command.

The figures are the CPU times of imports and of the help, each in a fresh interpreter
(the best of 5).
"""

from __future__ import annotations

import subprocess
import sys

import common

#: For each case, the modules that are imported before the clock starts, and the
#: measured code.
CASES = {
    "pytest plugin, after pytest": ("pytest", "import cheesebench.pytest_plugin"),
    "cheesebench, after nothing": ("sys", "import cheesebench"),
    "cheesebench, after gymnasium": ("gymnasium", "import cheesebench"),
    "cheesebench --help, after Python": (
        "sys",
        "from cheesebench.cli import main; main(['--help'])",
    ),
    "cheesebench lint --help, after Python": (
        "sys",
        "from cheesebench.cli import main; main(['lint', '--help'])",
    ),
}
CODE = """
import time, {first}
start = time.process_time()
try:
    {code}
except SystemExit:
    pass
print(time.process_time() - start)
"""


def measure(first: str, code: str) -> common.Times:
    """Return the times of the code after ``first`` is imported."""
    command = [sys.executable, "-c", CODE.format(first=first, code=code)]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    return common.Times(tuple(float(run.stdout.splitlines()[-1]) for run in runs))


if __name__ == "__main__":
    options = common.arguments(__doc__, protocols=False)
    common.report(
        "imports",
        {name: {"ms": measure(*modules)} for name, modules in CASES.items()},
        options.json,
    )
