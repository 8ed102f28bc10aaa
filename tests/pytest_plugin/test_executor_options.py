"""Executor options on the command line: mistakes are one line, before
anything is run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cheesebench.extras import install_command


def refusal(project: pytest.Pytester, *arguments: str) -> str:
    """Return the one-line refusal of a command, after checking that no run is left."""
    result = project.runpytest_inprocess("--protocols=lab", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    [line] = [
        line for line in result.errlines if line and not line.startswith("Exit code 4")
    ]
    assert not list(Path("results").glob("*/run.sqlite"))
    return line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--executor-option=address=auto"],
            "the executor 'local' has no such option. It has none.",
        ),
        (
            ["--executor=ray", "--executor-option=adress=auto"],
            "has no such option. Did you mean 'address'?",
        ),
        (["--executor=ray", "--executor-option=num_gpus"], "expected NAME=VALUE"),
        (["--executor=rai"], "There is no executor 'rai'. Did you mean 'ray'?"),
    ],
)
def test_options_of_an_executor(
    project: pytest.Pytester, arguments: list[str], said: str
) -> None:
    assert said in refusal(project, "--model=random", *arguments)


def test_an_agent_of_a_conftest_is_not_sent_elsewhere(project: pytest.Pytester) -> None:
    line = refusal(project, "--model=walker", "--executor=ray")
    assert (
        "--executor ray: what 'walker' on east needs comes from a conftest.py" in line
    )
    assert "Install it as a package" in line


def test_without_ray_it_is_said_how_to_install_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert install_command("ray") in refusal(
        project, "--model=random", "--executor=ray"
    )


@pytest.mark.parametrize("address", ["ray://head:10001"])
def test_an_address_that_cannot_work_is_refused(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert "Ray Client, which cannot stream results" in refusal(
        project, "--model=random", "--executor=ray"
    )
    monkeypatch.delenv("RAY_ADDRESS")
    given = ("--executor-option=num_cpus=none",)
    assert "give a number of at least" in refusal(
        project, "--model=random", "--executor=ray", *given
    )
