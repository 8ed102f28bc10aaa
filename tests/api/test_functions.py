"""What the commands print is what the functions of the same names return."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.cli import main
from tests.pytest_plugin.conftest import corridor

SMALL: dict[str, Any] = {
    "subjects": 6,
    "design": "flat-4",
    "seed": 3,
    "view": "ascii_2d",
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "east.protocol.yaml"
    path.write_text(corridor("east", trials=4), encoding="utf-8")
    return path


def test_a_run_is_planned_compared_and_drawn(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forecast = cheesebench.plan("random", lab, **SMALL)
    words = ["--subjects=6", "--design=flat-4", "--seed=3", "--view=ascii_2d", "--json"]
    assert main(["plan", "--model=random", f"--protocols={lab}", *words]) == 0
    assert (
        json.loads(capsys.readouterr().out)["cells"][0]["trials"]
        == forecast.cells[0].trials
    )
    runs = [
        cheesebench.run("random", lab, run_id=name, progress=False, **SMALL)
        for name in ("one", "two")
    ]
    found = cheesebench.compare(runs[0].directory, "two")
    assert main(["compare", "one", "two", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert found.models[0].cells[0].identical
    assert said["models"][0]["cells"][0]["answer"] == found.models[0].cells[0].answer
    with pytest.raises(
        cheesebench.CheeseBenchError, match="There is no baseline or run 'three'"
    ):
        cheesebench.compare("one", "three")
    pytest.importorskip("matplotlib")
    files = cheesebench.figures(["one", "two"], formats=["svg"])
    assert main(["figures", "one", "two", "--format=svg"]) == 0
    assert set(files) == {path.name for path in Path("figures").iterdir()}
    with pytest.raises(
        cheesebench.OptionError, match="'gif' is not one of svg, png, pdf"
    ):
        cheesebench.figures("one", formats=["gif"])


def test_protocols_are_linted_and_audited(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [findings] = cheesebench.lint(lab).values()
    assert main(["lint", str(lab)]) == 0
    said = capsys.readouterr().out
    assert all(str(one) in said for one in findings)
    (lab.parent / "west.protocol.yaml").write_text("paradigm: west\n", encoding="utf-8")
    assert [
        one.severity for one in cheesebench.lint(".")[Path("west.protocol.yaml")]
    ].count("error") > 0
    report = cheesebench.audit(
        str(lab), trials=200, parts=("chance",), views=["ascii_2d"]
    )
    main(
        [
            "audit",
            str(lab),
            "--trials=200",
            "--part=chance",
            "--view=ascii_2d",
            "--json",
        ]
    )
    [printed] = json.loads(capsys.readouterr().out)
    assert [one["text"] for one in printed["findings"]] == [
        one.text for one in report.findings
    ]
