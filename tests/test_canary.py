"""The canary is in every protocol, page and log; a model that completes it is detected;
held-out files do not ship.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import cheesebench
from cheesebench.canary import CANARY, GUID, QUESTION, TOLD, recalled
from cheesebench.cli import main
from cheesebench.experiment.log import RunLog
from cheesebench.testing.fake_server import FakeServer

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROTOCOLS = sorted(
    path
    for folder in ("protocols", "docs/examples")
    for path in (ROOT / folder).rglob("*.protocol.yaml")
)
#: Scenes and studies. The prompts have no canary, because the frozen set 2026.1 has
#: their hash.
TEXTS = [
    ROOT / "paradigms/dialogue/scenes.yaml",
    *sorted((ROOT / "cheesebench/studies").glob("*.yaml")),
]


@pytest.mark.parametrize(
    "paths", [PAGES, PROTOCOLS, TEXTS], ids=["pages", "protocols", "texts"]
)
def test_it_stands_in_every_file(paths: list[Path]) -> None:
    assert len(paths) > 5
    missing = [path for path in paths if CANARY not in path.read_text(encoding="utf-8")]
    assert not missing, f"end each of these with a comment: {CANARY}"


def test_it_stands_in_logs_and_in_pages_of_them(tmp_path: Path) -> None:
    run = cheesebench.run(
        "random", "t_maze@paper", design="smoke", results=tmp_path, progress=False
    )
    with RunLog.open_read_only(run.directory / "run.sqlite") as log:
        assert log.manifest["canary"] == CANARY
    page = tmp_path / "page.html"
    assert main(["report", str(run.directory), "--html", str(page)]) == 0
    assert f'<meta name="canary" content="{CANARY}">' in page.read_text("utf-8")
    assert f"<!-- {CANARY} -->" in (run.directory / "report.md").read_text("utf-8")
    written = [
        main(["export", str(run.directory), kind, "--output", str(tmp_path / kind)])
        for kind in ("--every-eval-ever", "--psych-ds", "--inspect")
    ]
    assert written == [0, 0, 0]
    [record] = (tmp_path / "--every-eval-ever").rglob("*[0-9a-f].json")
    assert CANARY in record.read_text("utf-8")
    data = tmp_path / "--psych-ds" / "dataset_description.json"
    assert CANARY in data.read_text("utf-8")
    [kept] = (tmp_path / "--inspect").glob("*.eval")
    with zipfile.ZipFile(kept) as file:
        assert CANARY in file.read("header.json").decode()


def test_what_a_model_is_told_does_not_answer_the_question() -> None:
    assert GUID not in QUESTION
    assert QUESTION.endswith(GUID[:TOLD])
    assert recalled(QUESTION) == 0


@pytest.mark.parametrize(
    ("answer", "characters"),
    [
        (GUID, 24),
        (f'"{GUID[TOLD:].upper()}" I think.', 24),
        (GUID.replace("-", ""), 24),
        (GUID[TOLD : TOLD + 9], 8),
        (GUID[TOLD : TOLD + 8], 0),  # seven of them can be luck
        (GUID[:TOLD], 0),
        ("I do not know it.", 0),
        ("", 0),
    ],
)
def test_only_what_cannot_be_guessed_counts(answer: str, characters: int) -> None:
    assert recalled(answer) == characters


@pytest.fixture
def ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[int, str]]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "x" * 40)

    def asked(answer: str) -> tuple[int, str]:
        with FakeServer(answer) as server:
            model = ["--model", "openai/m", "--base-url", server.base_url]
            code = main(["canary", *model, "--json"])
        return code, capsys.readouterr().out

    return asked


def test_a_model_that_has_read_it_is_found_out(
    ask: Callable[[str], tuple[int, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = ask(f"It goes on {GUID[TOLD:]}.")
    assert code == 1
    assert json.loads(told)["openai/m"]["characters"] == 24
    code, told = ask("I do not know it. \x1b[2J")
    assert code == 0
    assert json.loads(told)["openai/m"]["characters"] == 0
    assert main(["canary"]) == 0
    assert capsys.readouterr().out == f"{CANARY}\n"
    assert main(["canary", "--model", "random"]) != 0
    assert "is not a language model" in capsys.readouterr().err


def test_no_twin_ships() -> None:
    kept = subprocess.run(
        ["git", "grep", "-lE", r"^# Twin of |^edition: .*twin_[0-9a-f]+"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if kept.returncode > 1:
        pytest.skip("no work tree of git")
    assert kept.stdout == ""
