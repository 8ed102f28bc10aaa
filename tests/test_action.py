"""The action and the container file: their real steps, read from the files, in the
shells that they name.

Only the parts that GitHub and a registry supply are replaced.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load(
    (ROOT / "action.yml").read_text(encoding="utf-8")
)
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
GITHUB = {"run_id": "77", "run_attempt": "1", "token": "t", "event.pull_request.number": "5"}  # fmt: skip
#: A ``gh`` that records its arguments; comments are those of OWN.
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$ASKED"
case "$*" in *--paginate*) printf '%s' "$OWN";; esac
"""
#: Runs the main job in seconds.
QUICK = "--design smoke --protocols=t_maze\n-k 't_maze or nothing'\n--exit-zero"


def test_no_value_of_others_becomes_code() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", ""), step["name"]
        assert step.get("shell", "bash") == "bash"
        assert "uses" in step or step["shell"]


def test_the_page_shows_the_same_comment() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    [comment] = [step["run"] for step in STEPS if step.get("name") == "Comment"]
    for line in comment.splitlines():
        known = line.strip().replace("$DIRECTORY/", "results/$RUN/")
        assert known in page, line


def test_uses_of_one_workflow_do_not_meet_and_forks_do_not_comment() -> None:
    for word in ("key", "restore-keys", "name"):
        for step in STEPS:
            assert step.get("with", {}).get(word, "${{ inputs.name }}").startswith("${{ inputs.name }}")  # fmt: skip
    [comment] = [step for step in STEPS if step.get("name") == "Comment"]
    assert "!github.event.pull_request.head.repo.fork" in comment["if"]


def expressions(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its expressions replaced by their values."""
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)


def given(inputs: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the action's expressions for some inputs."""
    github = {f"github.{name}": value for name, value in GITHUB.items()}
    known = {
        f"inputs.{name}": inputs.get(
            name, expressions(str(one.get("default", "")), github)
        )
        for name, one in ACTION["inputs"].items()
    }
    return {**github, **known}


class Job:
    """A job that runs the action's own steps in a folder."""

    def __init__(self, here: Path, python: Path, **inputs: str) -> None:
        self.here, self.values = here, given(inputs)
        tools = here / "tools"
        tools.mkdir(exist_ok=True)
        (tools / "gh").write_text(GH)
        (tools / "gh").chmod(0o755)
        self.asked = here / "asked"
        self.output = here / "output"
        self.output.touch()
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join(
                [str(tools), str(python.parent), os.environ["PATH"]]
            ),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_REPOSITORY": "lab/model",
            "GITHUB_SERVER_URL": "https://forge.example",
            "GITHUB_RUN_ID": GITHUB["run_id"],
            "ASKED": str(self.asked),
            "OWN": "",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip understands it as: no isolation
            "PIP_NO_DEPS": "1",
        }

    def step(self, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        [step] = [one for one in STEPS if one.get("name") == name]
        told = dict(line.split("=", 1) for line in self.output.read_text().splitlines())
        outputs = {f"steps.run.outputs.{name}": value for name, value in told.items()}
        own = {
            name: expressions(str(value), {**self.values, **outputs})
            for name, value in step.get("env", {}).items()
        }
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.here,
            env={**self.environment, **own, **more},
            capture_output=True,
            text=True,
        )


def test_the_action_runs_resumes_and_comments(tmp_path: Path) -> None:
    job = Job(tmp_path, Path(sys.executable), model="random", options=QUICK, name="one")
    ran = job.step("Run", PYTHONPATH=str(ROOT))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert job.output.read_text() == "directory=results/one-77\n"
    for name in ("run.sqlite", "report.md", "comment.md"):
        assert (tmp_path / "results" / "one-77" / name).is_file()
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "junit.xml").is_file()
    assert job.step("Run", PYTHONPATH=str(ROOT)).returncode == 0, "it is resumed"
    assert job.step("Comment").returncode == 0
    assert job.step("Comment", OWN="11\n12\n").returncode == 0
    first, posted, second, patched = job.asked.read_text().splitlines()
    assert first == second
    assert first.startswith("api repos/lab/model/issues/5/comments --paginate")
    assert posted == "api repos/lab/model/issues/5/comments --field body=@marked.md"  # fmt: skip
    assert patched == "api --method PATCH repos/lab/model/issues/comments/11 --field body=@marked.md"  # fmt: skip
    own = (tmp_path / "results" / "one-77" / "comment.md").read_text(encoding="utf-8")
    marked = (tmp_path / "marked.md").read_text(encoding="utf-8")
    assert marked == own.replace("<!-- cheesebench -->", "<!-- one -->", 1) != own


def test_a_run_that_never_began_leaves_no_old_comment(tmp_path: Path) -> None:
    options = "--base-url=http://127.0.0.1:9/v1"
    job = Job(tmp_path, Path(sys.executable), model="openai/gone", options=options)
    ran = job.step("Run", PYTHONPATH=str(ROOT), OPENAI_API_KEY="none")
    assert ran.returncode == 4, ran.stdout + ran.stderr
    assert job.step("Comment", OWN="11\n").returncode == 0
    assert job.asked.read_text().endswith("/comments/11 --field body=@marked.md\n")
    assert (tmp_path / "marked.md").read_text() == (
        "<!-- cheesebench -->\n**CheeseBench could not run**, so nothing was tested: "
        "[the job says why](https://forge.example/lab/model/actions/runs/77).\n"
    )


def test_a_value_with_code_in_it_is_only_a_value(tmp_path: Path) -> None:
    code = "$(touch caught); `touch caught`"
    options = "--design=smoke\n-k '$(touch caught)' `touch caught`"
    job = Job(tmp_path, Path(sys.executable), model=code, options=options)
    assert job.step("Run", PYTHONPATH=str(ROOT)).returncode != 0
    assert not (tmp_path / "caught").exists()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that has our dependencies, but not us."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=True)
    purelib = Path(sysconfig.get_path("purelib"))
    [site] = home.glob("lib/python*/site-packages")
    # Python brings a setuptools of its own, which may be too old to build with.
    for old in site.glob("setuptools*"):
        shutil.rmtree(old)
    for one in purelib.iterdir():
        own = "cheesebench" in one.name.casefold() or one.name.startswith("pip")
        if not own and not (site / one.name).exists():
            (site / one.name).symlink_to(one)
    return home / "bin" / "python"


@pytest.mark.slow
def test_the_action_installs_us(tmp_path: Path, fresh: Path) -> None:
    job = Job(tmp_path, fresh, model="random", options=QUICK)
    installed = job.step("Install")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    ran = job.step("Run")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def instructions() -> Iterator[tuple[str, str]]:
    for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest


@pytest.mark.slow
def test_the_container_file_serves_the_main_job(tmp_path: Path, fresh: Path) -> None:
    """Carry out the file in a folder that replaces the image's root."""
    place, environment = tmp_path, dict(Job(tmp_path, fresh).environment)
    command: list[str] = []
    for word, rest in instructions():
        inside = rest.replace("/opt/cheesebench", str(tmp_path / "opt" / "cheesebench"))
        if word == "COPY":
            source, target = inside.split()
            left_out = (ROOT / ".dockerignore").read_text().split()
            ignored = shutil.ignore_patterns(
                *(one.removeprefix("**/") for one in left_out)
            )
            shutil.copytree(ROOT / source, target, ignore=ignored, symlinks=True)
        elif word == "RUN":
            done = subprocess.run(["sh", "-c", inside], cwd=place, env=environment, capture_output=True, text=True)  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
        elif word == "WORKDIR":
            place = tmp_path / rest.lstrip("/")
            place.mkdir()
        elif word == "ENV":
            environment |= dict(one.split("=", 1) for one in shlex.split(rest))
        elif word in ("ENTRYPOINT", "CMD"):
            command += json.loads(rest)
        else:
            assert (word, rest) in (("FROM", "python:3.12-slim"), ("USER", "1000"))
    assert command[-5:] == ["--model", "random", "--seed", "0", "--exit-zero"]
    environment |= {"PYTHONPATH": ""}
    done = subprocess.run([*command, "-k", "t_maze"], cwd=place, env=environment, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "t_maze" in done.stdout
    assert list((place / "results").glob("*/report.md"))
    assert not (tmp_path / "opt" / "cheesebench").exists()
