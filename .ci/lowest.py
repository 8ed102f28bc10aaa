#!/usr/bin/env python3
"""Install the lowest versions that pyproject.toml allows, extras too, and let the main
command and what each extra is for work with them.

Usage: .ci/lowest.py DIRECTORY [NAME ...] (names of ENVIRONMENTS; they are kept there)
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: What tests need besides; of these any version will do.
TOOLS = ("hypothesis", "jsonschema", "check-jsonschema", "pytest-timeout")


class Environment(NamedTuple):
    """Extras that are installed together, and the commands in which their modules
    work.
    """

    extras: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    beside: tuple[str, ...] = ()


#: What our lowest versions say of newer ones beside them is not ours to mend.
_PYTEST = (
    *("python", "-m", "pytest", "-q", "-W", "default", "--durations=3"),
    *("-m", "not slow"),  # also those that the README's command leaves out as long
)
_FRAME = "import cheesebench, sys; print(cheesebench.open_run(sys.argv[1]).trials())"
#: vLLM, torch and what tests and pages need are left out: they take gigabytes; and Ray,
#: whose three nodes take minutes.
ENVIRONMENTS = {
    "usual": Environment(
        ("cogeval", "figures", "pandas", "parquet"),
        (
            (*_PYTEST, "tests/protocol/test_schema.py"),
            (*_PYTEST, "tests/plugins/backends/test_openai.py"),
            (*_PYTEST, "tests/cli/test_figures.py", "-k", "widths"),
            ("cheesebench", "export", "{results}", "--parquet", "--output={home}/out"),
            ("python", "-c", _FRAME, "{results}"),
        ),
    ),
    "litellm": Environment(
        ("litellm",),
        ((*_PYTEST, "tests/plugins/backends/test_litellm.py", "-k", "not whole_run"),),
    ),
    "interop": Environment(
        ("inspect", "openenv", "pandas", "parquet"),
        (
            (
                *(*_PYTEST, "tests/real_interop", "-m", "interop"),
                *("-k", "mistakes_of_openenv or task_of_inspect"),
            ),
        ),
        ("trackio", "openai<3"),  # Inspect of that time knows no later client
    ),
}


def run(*command: object, **environment: object) -> None:
    print("$", *command, flush=True)
    given = {name: str(value) for name, value in environment.items()}
    subprocess.run(
        [str(part) for part in command],
        check=True,
        cwd=ROOT,
        env=os.environ | given,
    )


def check(name: str, top: Path) -> None:
    """Make an environment, and use it."""
    extras, commands, beside = ENVIRONMENTS[name]
    home, programs = top / name, top / name / "bin"
    uv = (top / "uv" / "bin" / "uv", "--quiet", "--cache-dir", top / "cache")
    if not uv[0].exists():
        venv.create(top / "uv", with_pip=True)
        run(top / "uv" / "bin" / "pip", "install", "--quiet", "uv")
    if not programs.exists():
        run(*uv, "venv", "--python", sys.executable, home)
    pip = (*uv, "pip", "install", "--python", programs / "python")
    run(*pip, "--resolution", "lowest-direct", "-e", f".[{','.join(extras)}]")
    run(*pip, *TOOLS, *beside)
    run(*uv, "pip", "list", "--python", programs / "python")
    shutil.rmtree(home / "results", ignore_errors=True)
    model = ("--model", "random", "--design", "smoke", "--exit-zero", "-q")
    run(programs / "pytest", *model, f"--results={home / 'results'}")
    (results,) = (home / "results").iterdir()
    for program, *arguments in commands:
        filled = (part.format(home=home, results=results) for part in arguments)
        run(programs / program, *filled, CHEESEBENCH_INTEROP_HOME=home)


def main(directory: str, *names: str) -> None:
    for name in names or ENVIRONMENTS:
        check(name, Path(directory).resolve())


if __name__ == "__main__":
    main(*sys.argv[1:])
