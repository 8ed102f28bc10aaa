"""What the commands print is what the functions of the same names return."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import cheesebench
import cheesebench.errors
from cheesebench.cli import main
from tests.pytest_plugin.conftest import corridor

ROOT = Path(__file__).parents[2]
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
    assert cheesebench.compare(*runs) == found
    [cell] = runs[0].summary.cells
    [own] = cheesebench.verdict(runs[0]).tasks
    assert (own.answer, own.reason) == (cell.verdict.value, cell.reason)
    assert cheesebench.verdict(*runs).tasks[0].answer == "indistinguishable"
    with pytest.raises(cheesebench.OptionError, match="Leave the value out"):
        cheesebench.verdict(runs[0], value=0.5)
    assert cheesebench.plan(runs[0], lab, **SMALL).rows() == forecast.rows()
    shown = found._repr_html_()
    assert "<th>answer</th>" in shown
    assert f"<td>{found.rows()[0]['reason']}</td>" in shown
    head, _, line = repr(found).splitlines()
    assert head.split() == list(found.rows()[0])
    assert line.startswith(str(found.rows()[0]["model"]))
    pytest.importorskip("pandas")
    assert list(found.frame()["protocol"]) == ["east"]
    pytest.importorskip("matplotlib")
    files = cheesebench.figures(runs, formats=["svg"])
    assert 'src="data:image/svg+xml;base64,' in files._repr_html_()
    assert repr(files) == f"<Figures: {', '.join(files)}>"
    assert main(["figures", "one", "two", "--format=svg"]) == 0
    assert set(files) == {path.name for path in Path("figures").iterdir()}
    with pytest.raises(
        cheesebench.OptionError, match="'gif' is not one of svg, png, pdf"
    ):
        cheesebench.figures("one", formats=["gif"])


def test_completion_offers_what_the_reference_page_shows() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))
    for members in re.findall(r"members: \[(.*?)\]", page):
        shown |= set(members.split(", "))
    errors = {name for name in cheesebench.__all__ if name.endswith("Error")} & set(
        vars(cheesebench.errors)
    )
    assert set(dir(cheesebench)) == (shown | errors | {"__version__"}) & set(
        cheesebench.__all__
    )


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
