#!/usr/bin/env python3
"""Install the lowest versions that pyproject.toml allows, extras too, and run the main
command and a fast part of the suite with them.

Usage: .ci/lowest.py DIRECTORY [NAME ...] (names of ENVIRONMENTS; they are kept there)
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What the tests below need besides, by the bounds of the extra ``test``.
TOOLS = ("hypothesis", "jsonschema", "check-jsonschema")
#: A part of the suite that takes a minute, and imports every package.
TESTS = (
    # What our lowest versions say of newer ones beside them is not ours to mend.
    *("-m", "pytest", "-q", "-W", "default", "tests/protocol/test_schema.py"),
    *("tests/interop/test_scores.py", "tests/plugins/backends/test_openai.py"),
    "tests/cli/test_figures.py",
)
#: Extras that are installed together, and what Python does with them; the first with
#: the lowest versions of everything else, too. The others pin what we need ourselves.
#: vLLM, Ray and what tests and pages need are left out: they take gigabytes.
ENVIRONMENTS = {
    "usual": (("cogeval", "figures", "pandas", "parquet"), TESTS),
    "litellm": (("litellm",), ("-c", "import litellm, openai")),
    "inspect": (("inspect",), ("-c", "import cheesebench.interop.inspect_tasks")),
    "openenv": (("openenv",), ("-c", "import cheesebench.interop.openenv_server")),
}


def lowest(requirement: str) -> str:
    """Return ``name==version`` of a requirement's lower bound."""
    found = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
    if found is None:
        raise SystemExit(f"{requirement}: give it a lower bound in pyproject.toml")
    return f"{found[1]}=={found[2]}"


def run(*command: object) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def check(name: str, home: Path) -> None:
    """Make an environment, and use it."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    chosen, commands = ENVIRONMENTS[name]
    own = [one for extra in chosen for one in extras[extra]]
    if name == "usual":
        tools = [one for one in extras["test"] if re.match(r"[\w-]+", one)[0] in TOOLS]
        own += [*project["dependencies"], *tools]
    pinned = sorted({lowest(one) for one in own})
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    place = f".[{','.join(chosen)}]"
    run(home / "bin" / "pip", "install", "-q", "-e", place, *pinned)
    model = ("--model", "random", "--design", "smoke", "--exit-zero")
    run(home / "bin" / "pytest", "-q", *model, "--results", home / "results")
    run(home / "bin" / "python", *commands)


def main(directory: str, *names: str) -> None:
    for name in names or ENVIRONMENTS:
        check(name, Path(directory).resolve() / name)


if __name__ == "__main__":
    main(*sys.argv[1:])
