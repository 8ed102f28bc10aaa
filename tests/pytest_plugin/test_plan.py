"""``plan`` after a run of the same model with the same settings uses
that run's cost.
"""

from __future__ import annotations

import json

import pytest

from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import Answer, Call, FakeServer

MODELS = """
models:
  short:
    backend: openai
    id: short
    context: 900
"""


def wordy(call: Call) -> Answer:
    usage = {"prompt_tokens": 700, "completion_tokens": 300, "total_tokens": 1000}
    return Answer(text="ACTIONS: FORWARD, FORWARD", usage=usage)


def planned(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str], *options: str
) -> str:
    capsys.readouterr()
    models = (
        "--models",
        str(project.path / "models.yaml"),
        "--results",
        str(project.path / "results"),
    )
    assert (
        main(
            [
                "plan",
                "--model",
                "short",
                *models,
                "--protocols",
                str(project.path / "lab"),
                *options,
            ]
        )
        == 0
    )
    return capsys.readouterr().out


def test_it_says_what_the_models_own_run_took(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.path / "models.yaml").write_text(MODELS, encoding="utf-8")
    design = ("--design", "smoke", "--subjects", "2")
    before = json.loads(planned(project, capsys, *design, "--json"))
    assert not any(cell["own"] for cell in before["cells"])
    with FakeServer(wordy) as server:
        project.runpytest(
            *(
                "--model",
                "short",
                "--models",
                "models.yaml",
                "--base-url",
                server.base_url,
                *design,
                "lab",
            ),
            *("--cheese-run-id", "one"),
        )
    with RunLog.open_read_only(project.path / "results" / "one") as log:
        totals = log.calls.totals()
    after = json.loads(planned(project, capsys, *design, "--json"))
    assert all(cell["own"] for cell in after["cells"])
    need = next(iter(after["needs"].values()))
    assert need["calls"][0] == pytest.approx(totals.calls)
    assert need["tokens"][0] == pytest.approx(totals.prompt + totals.completion)
    # Elapsed time, because calls of several subjects are in flight at once.
    assert 0 < need["seconds"][0] <= totals.seconds * 1.000001
    text = " ".join(planned(project, capsys, *design).split())
    assert "The longest prompt has about 700 tokens" in text
    assert (
        "and a reply up to 256. Together they exceed the context of short, 900 tokens."
        in text
    )


def test_runs_with_other_settings_do_not_count(
    project: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.path / "models.yaml").write_text(MODELS, encoding="utf-8")
    with FakeServer(wordy) as server:
        run = (
            "--model",
            "short",
            "--models",
            "models.yaml",
            "--base-url",
            server.base_url,
            "--design",
            "smoke",
        )
        project.runpytest(*run, "--history", "1", "lab")
    found = json.loads(planned(project, capsys, "--design", "smoke", "--json"))
    assert not any(cell["own"] for cell in found["cells"])
