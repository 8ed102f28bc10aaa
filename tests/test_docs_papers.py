"""The page on the papers: every row names a place in the code, and every command in it
is carried out.

Commands of ``cheesebench`` run here; if they need a run, they get a small one. Longer
commands (audits, and whole sessions of ``pytest`` against a server) are marked slow.
Sessions have the options of the page, on a part of the selected cells (``-k``), and in
the design ``smoke`` unless the page names one.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import papers
from benchmarks.paper_commands import commands
from benchmarks.places import filled
from cheesebench.cli import main
from cheesebench.experiment.cells import find_study, shipped_studies
from cheesebench.paradigms.dialogue.statistics import read_published
from cheesebench.published import published
from cheesebench.testing.fake_server import FakeServer
from tests.docs.test_pages import QUICK
from website.published import numbers

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8")
    .split("\n## The numbers")[0]
    .splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| what |"))
]
COMMANDS = commands()
#: Runs in the examples of the page.
RUNS = ("20250131-093000-ab12", "20250131-093000-cd34")
#: Commands that take minutes over all rows.
LONG = ("audit", "plan")
SHORT = [
    one
    for one in COMMANDS
    if one.startswith("cheesebench")
    and one.split()[1] not in LONG
    and ("--published" not in one or one.endswith("gpt-4-32k"))
]
REPLY = "LEARNINGS: none yet.\nACTIONS: FORWARD, FORWARD, ROTATE_LEFT, FORWARD\nAnswer: room 1"


def test_every_row_has_a_place_and_a_command_or_a_reason() -> None:
    assert len(ROWS) > 60
    for row in ROWS:
        assert len(row) == 4, row
        what, _, here, last = row
        assert what
        assert last
        if here.startswith("not "):
            assert "`pytest" not in last, f"{what}: it is not here, and has a command"
        assert "partly" not in " ".join(row)
    assert len({row[0] for row in ROWS}) == len(ROWS), "a row stands twice"


def session(
    here: Path, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, as a user does."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTEST_ADDOPTS": f"{QUICK} -p no:cacheprovider --design smoke --cheese-exit-zero",
        **variables,
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=here, env=environment, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a reader's files: runs, scores and a prompt."""
    here = tmp_path_factory.mktemp("papers")
    for kind, words in {
        "walked": (
            "--model",
            "random",
            "--edition",
            "paper",
            "--protocols",
            "t_maze@paper",
        ),
        "asked": (
            "--model",
            "random-walk",
            "--protocols",
            "cogeval",
            "-k",
            "n7line and valuePath",
        ),
        "told": ("--model", "openai/tiny", "--protocols", "t_maze"),
    }.items():
        (here / kind).mkdir()
        with FakeServer(REPLY) as server:
            base = ("--base-url", server.base_url) if kind == "told" else ()
            done = session(here / kind, *words, *base, "--cheese-run-id", RUNS[0])
            assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(
        here / "walked" / "results" / RUNS[0], here / "walked" / "results" / RUNS[1]
    )
    columns = "graph,domain,condition,model,temperature,successes,total"
    rows = [
        f"{graph},{domain},{condition},{model},{temperature},{(len(graph) + 3 * n + len(model)) % 11},10"
        for graph in ("cogeval_n7line", "cogeval_n15star")
        for domain in ("ordered_rooms", "social_ties")
        for n, condition in enumerate(("valuePath", "rewardReval", "transReval"))
        for model in ("one", "other one")
        for temperature in ("0", "1")
    ]
    (here / "asked" / "scores.csv").write_text(
        "\n".join([columns, *rows]) + "\n", encoding="utf-8"
    )
    return here


def place(folder: Path, command: str) -> Path:
    """Return the folder in which a command can be carried out: that of dialogues, of
    calls to a model, or of walks.
    """
    kinds = {"cogeval-stats": "asked", "show": "told"}
    return folder / kinds.get(command.split()[1], "walked")


@pytest.mark.parametrize("command", SHORT)
def test_the_command_runs(
    command: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = shlex.split(command)[1:]
    monkeypatch.chdir(place(folder, command))
    # The command ends with 1 for two different protocols, like diff.
    assert main(words) == int(words[0] == "diff"), capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [one for one in COMMANDS if one.startswith("cheese") and one not in SHORT],
)
def test_the_long_command_runs(
    command: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = shlex.split(command)[1:]
    monkeypatch.chdir(place(folder, command))
    # An audit of all parts takes minutes for each protocol; tests/test_audit_shipped.py
    # has all of them.
    quick = ["--part", "blind", "--trials", "20"] if words[0] == "audit" else []
    assert main([*words, *quick]) in (0, 1), capsys.readouterr().err


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[tuple[FakeServer, Path]]:
    """Yield a server, and a registry in which it answers for every model
    on the page.
    """
    studied = {
        model
        for study in shipped_studies()
        for model in find_study(study, Path()).models
    }
    named = {
        name for command in COMMANDS for name in re.findall(r"--model (\S+)", command)
    }
    with FakeServer(REPLY) as server:
        entries = [
            f"  {name}: {{backend: openai, id: tiny, images: true, options: {{base_url: '{server.base_url}'}}}}"
            for name in sorted(
                studied | {name for name in named if re.search(r"\d", name)}
            )
        ]
        registry = folder / "models.yaml"
        registry.write_text("\n".join(["models:", *entries]) + "\n", encoding="utf-8")
        (folder / "walked" / "my.txt").write_text(
            "Reply with ACTIONS.\n", encoding="utf-8"
        )
        yield server, registry


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [one for one in COMMANDS if one.startswith("pytest ")]
)
def test_the_session_runs(
    command: str, folder: Path, served: tuple[FakeServer, Path]
) -> None:
    server, registry = served
    words = shlex.split(command)[1:]
    asks = any(
        name in registry.read_text(encoding="utf-8")
        for name in re.findall(r"--model (\S+)", command)
    )
    asks = asks or "--model" not in words
    part = [] if "-k" in words else ["-k", "t_maze or n7line"]
    before = server.count
    done = session(folder / "walked", *words, *part, CHEESEBENCH_MODELS=str(registry))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "error" not in said.splitlines()[-1], said
    assert (server.count > before) == asks, "models are asked, and nobody else"


def test_most_kinds_of_commands_are_carried_out() -> None:
    assert {
        command.split()[1] for command in COMMANDS if command.startswith("cheesebench")
    } > set(LONG)
    assert len(COMMANDS) > 50


def test_commands_ended_as_a_reader_expects() -> None:
    """Each in a fresh clone (``benchmarks/paper_commands.py``)."""
    assert set(papers.COMMANDS) == set(COMMANDS)
    for command, ended in papers.COMMANDS.items():
        may = {0}
        if re.search(r"qwen|--study (scaling|ablation-vision)", command):
            may = {4} if command.startswith("pytest") else {0}
        elif " diff " in command:
            may = {1}
        elif command.startswith("pytest"):
            may = {0, 1}
        assert ended["exit"] in may, command


def test_figures_have_the_published_numbers() -> None:
    """The ablations, and the best of three views by number of parameters."""
    ablations, models = published()["ablations"], published()["models"]
    sizes = [models[f"qwen2.5-vl-{size}"]["overall"] for size in ("3b", "7b", "32b", "72b")]  # fmt: skip
    told = {
        "Figure 5": sizes,
        "Figure 6a": ablations["history"].values(),
        "Figure 6b": ablations["prompt"].values(),
        "Figure 6c": ablations["actions"].values(),
    }
    by_figure = {row[0].split(" (")[0]: row[0] for row in ROWS}
    for figure, rates in told.items():
        assert f" {', '.join(f'{100 * rate:.1f}' for rate in rates)} " in by_figure[figure]  # fmt: skip
    for rate in ablations["vision"].values():
        assert f"{100 * rate:.1f}" in by_figure["Figure 6d"]


def test_the_numbers_are_those_that_reports_show() -> None:
    text = numbers()
    for model in published()["models"].values():
        assert f"{model['overall']:.1%}".removesuffix("%") in text
    assert text.count("`ascii_3d`") == len(published()["models"])
    assert "57.0" in text


def test_the_means_of_dialogues_are_as_many_as_the_page_says() -> None:
    published_means = read_published(ROOT / "protocols" / "cogeval").conditions
    count = sum(map(len, published_means.values()))
    (row,) = [row for row in ROWS if row[0].startswith("Table 3 (means by condition")]
    assert f", {count} values" in row[2]


def test_the_pages_have_the_numbers_that_came_out_here() -> None:
    for name, (page, text) in papers.parts().items():
        assert filled(page, name, text) == page.read_text(encoding="utf-8"), (
            f"{page.name}, {name}: python benchmarks/papers.py --write"
        )


@pytest.mark.slow
def test_they_are_those_of_the_public_scores() -> None:
    scores = ROOT.parent / "shared" / "data" / "cogeval" / "scores_half.csv"
    if not scores.is_file():
        pytest.skip("needs the public scores")
    kept = json.loads(papers.KEPT.read_text(encoding="utf-8"))
    assert papers.measured(scores) == kept
