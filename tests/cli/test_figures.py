"""Figures of runs, opened as files."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from cheesebench.cli import main
from cheesebench.testing.fake_server import FakeServer
from fuzz.run_logs import rewritten

#: Imported before any test, because ``pytester`` drops at its end what was imported
#: since, and a second copy of matplotlib does not know the first one's classes.
pytest.importorskip("matplotlib.figure")
Run = Callable[..., None]
OLD_NINE = Path(__file__).parents[1] / "fixtures" / "old_nine"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Runs pytest in an empty directory, which is the working directory."""

    def run(*options: str) -> None:
        assert pytester.runpytest_inprocess("-q", *options).ret in (0, 1)

    return run


def test_every_figure_that_runs_have_something_for(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    # Protocols in which every trial is judged, so that two trials of smoke give a rate.
    only = (
        "--design=smoke",
        f"--protocols={OLD_NINE}",
        "-k",
        "(t_maze or dnms or shuttle) and not rodent",
    )
    run("--model=random,tabular-ql", "--cheese-run-id=one", *only)
    with FakeServer("ACTIONS: FORWARD, ROTATE_LEFT") as server:
        models = "--model=qwen2.5-vl-3b,qwen2.5-vl-7b"
        history = (
            "--study=ablation-history",
            f"--base-url={server.base_url}",
            "--cheese-run-id=two",
        )
        run(models, *history, *only[:2], "-k", "t_maze and not rodent")
    capsys.readouterr()
    assert main(["figures", "one", "two"]) == 0
    names = ["paradigms", "profile", "scaling", "settings"]
    written = capsys.readouterr().out
    files = [
        f"{name}.{suffix}"
        for name in (*names, "occupancy", "tracks")
        for suffix in ("svg", "png")
    ]
    assert written.startswith("figures: ")
    assert set(files) <= set(written.removeprefix("figures: ").rstrip().split(", "))
    page = Path("figures/figures.md").read_text(encoding="utf-8")
    for name in names:
        drawing = ElementTree.parse(f"figures/{name}.svg")
        words = " ".join(drawing.getroot().itertext())
        assert "random" in words or name in ("scaling", "settings")
        assert "pass rate" in words or name == "profile"
        with Image.open(f"figures/{name}.png") as picture:
            assert min(picture.size) > 400
        assert f"]({name}.svg)" in page
    assert "qwen2.5-vl-3b (3.75 billion)" in page, (
        "the alt text says what the curve shows"
    )
    assert "| tabular-ql " in page


def test_the_same_runs_give_the_same_files(run: Run) -> None:
    run("--model=random", "--design=smoke", "-k", "t_maze", "--cheese-run-id=one")
    assert (
        main(["figures", "one", "--output", "a"])
        == main(["figures", "one", "--output", "b"])
        == 0
    )
    assert sorted(path.name for path in Path("a").iterdir()) == sorted(
        ["figures.md"]
        + [
            f"{name}.{kind}"
            for name in ("occupancy", "paradigms", "tracks")
            for kind in ("png", "svg")
        ]
    )
    # Two trials of smoke do not reach the judged block.
    assert "![Results by paradigm. random: no rate." in Path("a/figures.md").read_text(
        encoding="utf-8"
    )
    for path in Path("a").iterdir():
        assert path.read_bytes() == (Path("b") / path.name).read_bytes()


def test_runs_of_other_protocols_are_refused(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        run(
            "--model=random",
            "--design=smoke",
            "-k",
            "t_maze",
            f"--cheese-run-id={name}",
        )
    with rewritten(Path("results/two/run.sqlite")) as connection:
        connection.execute(
            "UPDATE cells SET plan = json_set(plan, '$.sha256', 'feedface')"
        )
    assert main(["figures", "one", "two"]) == 2
    assert (
        "The protocol 't_maze' is not the same in the runs one ("
        in capsys.readouterr().err
    )
    assert not Path("figures").exists()
    assert main(["figures", "one", "--format", "gif"]) == 2
    assert "'gif' is not one of svg, png, pdf" in capsys.readouterr().err


def test_widths_and_dots_are_those_that_were_asked_for(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "--model=random",
        "--design=cohort",
        "--cheese-subjects=2",
        "-k",
        "morris",
        "--cheese-run-id=one",
    )
    assert (
        main(["figures", "one", "--format", "png", "--width", "6", "--dpi", "100"]) == 0
    )
    for name in (
        "forest",
        "curves",
        "latency",
        "path_length",
        "strategies",
        "occupancy",
        "tracks",
    ):
        with Image.open(f"figures/{name}.png") as picture:
            # Cropped to the drawing, with labels and legend.
            assert 480 <= picture.width <= 720, name
    page = Path("figures/figures.md").read_text(encoding="utf-8")
    assert "random on morris_water_maze" in page
    assert main(["figures", "one", "--width", "0"]) == 2
