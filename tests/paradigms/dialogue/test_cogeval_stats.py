"""``cheesebench cogeval-stats``: tables of runs and of score files, figures, and
errors.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import IO

import pytest

from cheesebench.cli import MISTAKE, main
from cheesebench.extras import install_command

HEADER = "graph,domain,condition,model,folder,temperature,successes,total\n"
SCORES = HEADER + "".join(
    f"{graph},rooms,{condition},{model},x,{temperature},{successes},10\n"
    for graph, ease in (("one", 6), ("two", 1))
    for condition in ("valuePath", "transReval", "nClusters")
    for model, better in (("able", 3), ("unable", 0))
    for temperature in ("0", "1")
    for successes in [min(10, ease + better + (condition == "transReval"))]
)
ROOT = Path(__file__).parents[3]
BESIDE = [
    parent / "shared" / "data" / "cogeval" / "scores_half.csv"
    for parent in Path(__file__).parents
]


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    path = tmp_path / "scores.csv"
    path.write_text(SCORES, encoding="utf-8")
    return path


def test_tables_of_a_file(
    scores: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # No cell of a table is wrapped.
    assert (
        main(["cogeval-stats", "--scores", str(scores), "--published", "gpt-4-32k"])
        == 0
    )
    text = capsys.readouterr().out
    assert "graph:group" in text
    assert "domain" not in text.split("Proportion of right answers")[0], (
        "a factor of one level is no term"
    )
    assert "0.65 (0.29, 0.14, 4)" in text, "mean, SD, SE and number of items"
    assert (
        "Compared with gpt-4-32k as published, margin 0.1 (arXiv 2309.15129, Table 3; scored with partial credit"
        in text
    )
    assert "not compared: asked about only 0 of 6 graphs in 3 domains or more" in text


def test_a_name_that_stops_early_means_the_one_that_goes_on(
    scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["cogeval-stats", "--scores", str(scores), "--published", "gpt-4"])
        == MISTAKE
    )
    assert "Did you mean 'gpt-4-32k'?" in capsys.readouterr().err


def test_a_condition_on_all_its_graphs_in_three_domains_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    lines = [
        f"g{graph},{domain},policyReval,m,x,0,1,10"
        for graph in range(3)
        for domain in "abc"
    ]
    path.write_text(HEADER + "\n".join(lines), encoding="utf-8")
    command = [
        "cogeval-stats",
        "--scores",
        str(path),
        "--published",
        "gpt-4-32k",
        "--json",
    ]
    assert main(command) == 0
    (row,) = json.loads(capsys.readouterr().out)["published"]
    assert row["verdict"] in ("PASS", "FAIL", "INCONCLUSIVE")
    path.write_text(HEADER + "\n".join(lines[1:]), encoding="utf-8")
    assert main(command) == 0
    (row,) = json.loads(capsys.readouterr().out)["published"]
    assert row["incomplete"] == "2 of 3 graphs in 3 domains or more"
    assert "verdict" not in row


def test_coefficients_are_those_of_a_fit_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(
        HEADER + "g,d,valuePath,a,x,0,20,40\ng,d,valuePath,b,x,0,30,40\n",
        encoding="utf-8",
    )
    assert main(["cogeval-stats", "--scores", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["coefficients"]
    assert (found["factor"], found["level"], found["reference"]) == ("model", "b", "a")
    # Odds of 3 against odds of 1.
    assert found["estimate"] == pytest.approx(math.log(3))
    assert found["se"] == pytest.approx(
        math.sqrt(1 / 20 + 1 / 20 + 1 / 30 + 1 / 10), rel=1e-4
    )


def test_json_for_programs(scores: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["cogeval-stats", "--scores", str(scores), "--json", "--model", "able"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert [row["term"] for row in found["deviance"]["rows"]] == [
        "graph",
        "temperature",
        "group",
        "graph:group",
    ]
    assert {row["model"] for row in found["conditions"]} == {"able"}


def test_figures_are_the_same_every_time(scores: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    for name in ("a", "b"):
        assert (
            main(
                [
                    "cogeval-stats",
                    "--scores",
                    str(scores),
                    "--figures",
                    str(tmp_path / name),
                ]
            )
            == 0
        )
        drawn.append(
            [path.read_bytes() for path in sorted((tmp_path / name).glob("*.svg"))]
        )
    assert len(drawn[0]) == 3
    assert drawn[0] == drawn[1]
    assert b"valuePath" in drawn[0][0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("graph,domain\n", "no column 'condition'"),
        (
            HEADER + "g,d,valuePath,m,x,0,two,3\n",
            "line 2: 'successes' and 'total' must be whole numbers, but are 'two' and '3'",
        ),
        (HEADER + "g,d,valuePath,m,x,0,4,3\n", "line 2: 4 of 3 cannot be right"),
        (HEADER, "has no line after the column names"),
        ("\0\xff", "no column"),
    ],
)
def test_a_broken_file_is_one_line(
    tmp_path: Path, content: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(content, encoding="utf-8")
    assert main(["cogeval-stats", "--scores", str(path)]) == MISTAKE
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Name runs, or one table of scores"),
        (["--scores", "nowhere.csv"], "cannot be read"),
        (["--scores", "/dev/zero"], "it is not a file"),
        (["nothing"], "nothing"),
        (["--published", "gpt-5"], "gpt-5"),
    ],
)
def test_mistakes(
    arguments: list[str], words: str, scores: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--published" in arguments:
        arguments = [*arguments, "--scores", str(scores)]
    assert main(["cogeval-stats", *arguments]) == MISTAKE
    assert words in capsys.readouterr().err


def test_a_table_has_at_most_32_megabytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "large.csv"
    for size, words in (
        (32 * 1024**2, "there is no column "),
        (32 * 1024**2 + 1, "it has more than 33,554,432 bytes"),
    ):
        table.write_bytes(b"model\n" + b"x" * (size - 6))
        assert main(["cogeval-stats", "--scores", str(table)]) == MISTAKE
        assert words in capsys.readouterr().err


def test_a_missing_extra_is_one_line_with_the_remedy(
    scores: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.genmod.families", None)
    assert main(["cogeval-stats", "--scores", str(scores)]) == MISTAKE
    message = capsys.readouterr().err
    assert install_command("cogeval") in message
    assert message.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(
    not any(path.is_file() for path in BESIDE),
    reason="the published scores are not beside the project",
)
def test_the_published_scores_give_the_published_degrees_of_freedom(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the paper's eight models, Table 2 has 7, 5, 2, 2, 4, 14, 10, 20, 8 (and 40,
    not its 44, for the last).
    """
    path = next(path for path in BESIDE if path.is_file())
    models = "gpt-4-32k gpt-35-turbo text-davinci-003 bard claude-v1 llama-13b cohere-xlarge alpaca-7b"
    chosen = [part for name in models.split() for part in ("--model", name)]
    assert main(["cogeval-stats", "--scores", str(path), "--json", *chosen]) == 0
    rows = json.loads(capsys.readouterr().out)["deviance"]["rows"]
    assert [row["df"] for row in rows] == [7, 5, 2, 2, 4, 14, 10, 20, 8, 40]
    significant = [row["p"] < 0.001 for row in rows]
    assert significant == [True, True, True, False, True, False, True, True, True, True]
    page = (ROOT / "docs" / "cogeval.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| \S.*\| [\d.]+ \| ([\d.]+) \|$", page, re.MULTILINE)
    assert shown == [f"{row['chi2']:.1f}" for row in rows]


def test_a_figure_that_is_not_finished_leaves_the_old_one(
    scores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = pytest.importorskip("matplotlib.figure")

    def interrupted(self: object, file: IO[bytes], **how: object) -> None:
        file.write(b"<svg")
        raise KeyboardInterrupt

    monkeypatch.setattr(figure.Figure, "savefig", interrupted)
    old = tmp_path / "figures" / "by_graph.svg"
    old.parent.mkdir()
    old.write_text("old")
    main(["cogeval-stats", "--scores", str(scores), "--figures", str(old.parent)])
    assert old.read_text() == "old"
    assert [*old.parent.iterdir()] == [old]
