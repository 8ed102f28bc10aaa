"""``render``: the picture for an agent, with a legend."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.interfaces import HEADINGS
from cheesebench.protocol import Catalogue, with_arena

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]

BOXES = """
version: 1
paradigm: two_boxes
arena:
  map: "#######\\n#ww+ee#\\n#######"
  legend: {w: west, e: east, +: {door: gate, glyph: "|"}}
  groups: {side: [west, east]}
  landmarks: {post: {at: [-1, -1], glyph: "^"}}
draw: {way: {order: cycle, of: {goal: [east, west], look: ["*", "%"]}}}
start: {at: side, face: random}
trial:
  limit: 9
  start: run
  states:
    run: {close: gate, rules: [{after: 2, go: open}]}
    open: {place: west, say: "now\\u202e", show: {goal: look}, rules: [{enter: goal, reward: 1, end: found}]}
schedule: {main: {}}
"""


def squeezed(text: str) -> str:
    """Collapse blanks, so that a test does not depend on the width of a table's
    columns.
    """
    return re.sub(" +", " ", text)


def test_the_initial_state_and_its_legend(run: Run) -> None:
    result = run("render", "little")
    assert result.code == 0
    assert squeezed(result.out) == (
        "little: state wait (first trial of subject 0, seed 0)\n"
        "\n"
        "###1###\n"
        "#→....#\n"
        "#######\n"
        "...\n"
        "\n"
        "glyph name what squares\n"
        "----- ---- -------- -------\n"
        ". box zone 1\n"
        ". cue zone 1\n"
        ". goal zone 1\n"
        "# 1 wall solid 16\n"
        "1 N landmark 1\n"
        "\n"
        "The subject stands at column 1, row 1 (from 0), facing E.\n"
    )


def test_another_state_shows_its_cues_without_being_entered(run: Run) -> None:
    out = run("render", "little", "--state", "run").out
    assert "#→.*..#" in out
    assert "\n* cue zone" in squeezed(out)
    assert "\n...\n" not in out


def test_doors_draws_and_landmarks_outside(run: Run, here: Path) -> None:
    (here / "two_boxes.protocol.yaml").write_text(BOXES, encoding="utf-8")
    closed = run("render", "two_boxes").out
    assert closed.startswith("two_boxes: state run")
    assert "| gate door, closed 1" in squeezed(closed)
    opened = run("render", "two_boxes", "--state", "open").out
    assert ". gate door, open" in squeezed(opened)
    assert "group side: west, east" in opened
    assert "^ post landmark" in squeezed(opened)
    # The first row of the draw has the goal in the east. The text of the state cannot
    # control the terminal.
    assert "* east zone 2" in squeezed(opened)
    assert "now\\u202e" in opened


def test_seed_and_subject_choose_the_life(run: Run, here: Path) -> None:
    (here / "two_boxes.protocol.yaml").write_text(BOXES, encoding="utf-8")
    starts = {
        run("render", "two_boxes", "--seed", seed).out.splitlines()[-2]
        for seed in range(12)
    }
    assert len(starts) > 4
    again = [
        run("render", "two_boxes", "--seed", 3, "--subject", subject).out
        for subject in (0, 1, 0)
    ]
    assert again[0] == again[2] != again[1]


def test_every_view_can_be_shown(run: Run) -> None:
    alone = run("render", "little", "--view", "ascii_2d").out
    assert (
        alone == run("render", "little", "--view", "ascii_2d", "--view", "ascii_2d").out
    )
    assert "#→....#" in run("render", "little", "--view", "all").out


def test_pictures_go_to_a_file(run: Run, here: Path) -> None:
    shown = run("render", "little", "--view", "topdown_2d")
    assert shown.code == 0
    assert "\n(a picture; --output FILE.png writes it)\n...\n" in shown.out
    written = run("render", "little", "--view", "topdown_2d", "--output", "little.png")
    assert "\n(a picture, written to little.png)\n...\n" in written.out
    assert (here / "little.png").read_bytes().startswith(b"\x89PNG")
    nowhere = run(
        "render", "little", "--view", "topdown_2d", "--output", "nowhere/little.png"
    )
    assert nowhere.code != 0
    assert "nowhere/little.png cannot be written" in nowhere.err


@pytest.mark.parametrize("views", [[], ["--view", "ascii_3d"], ["--expand"]])
def test_where_there_is_no_picture_there_is_none_to_write(
    run: Run, views: list[str]
) -> None:
    result = run("render", "little", *views, "--output", "little.png")
    assert result.code != 0
    assert "--output" in result.err


def test_expand_prints_an_arena_to_paste(run: Run, here: Path) -> None:
    rest = "version: 1\nparadigm: arms\nstart: {at: hub}\nschedule: {main: {}}\ntrial: {limit: 9, start: run, states: "
    rest += "{run: {close: gate2, rules: [{enter: arm1, reward: 1, end: found}]}}}\n"
    (here / "arms.protocol.yaml").write_text(
        rest + "arena: {radial: {arms: 2, length: 1}}\n", encoding="utf-8"
    )
    result = run("render", "arms", "--expand")
    assert result.code == 0
    assert result.out.startswith(
        "# Replaces the 'arena' of arms.protocol.yaml\narena:\n  map: |2\n"
    )
    (here / "ejected.protocol.yaml").write_text(rest + result.out, encoding="utf-8")
    catalogue = Catalogue([here])
    assert (
        with_arena(catalogue.find("ejected.protocol.yaml")).arena
        == with_arena(catalogue.find("arms.protocol.yaml")).arena
    )
    again = run("render", "ejected.protocol.yaml", "--expand")
    assert again.code != 0
    assert again.err.endswith("is already a map. Edit it in ejected.protocol.yaml.\n")
    (here / "child.protocol.yaml").write_text(
        "extends: ejected\nparadigm: child\n", encoding="utf-8"
    )
    child = run("render", "child", "--expand")
    assert child.err.endswith("Edit it in child.protocol.yaml or ejected.\n"), child.err


def test_a_name_is_enough_for_a_file_in_this_directory(run: Run) -> None:
    assert run("render", "little").out == run("render", "little.protocol.yaml").out


def test_a_later_trial_is_drawn_as_a_life_that_waits_meets_it(
    run: Run, here: Path
) -> None:
    text = BOXES.replace("main: {}", "main: {trials: 4}").replace(
        "close: gate,", 'close: gate, say: "{goal}",'
    )
    (here / "boxes.protocol.yaml").write_text(text, encoding="utf-8")
    goals = [
        run("render", "boxes.protocol.yaml", "--trial", number).out for number in "123"
    ]
    assert ["\neast\n" in out for out in goals] == [True, False, True]
    assert "state run (trial 3 of subject 0, seed 0)" in goals[2]
    refused = run("render", "boxes.protocol.yaml", "--trial", "5")
    assert refused.code != 0
    assert "The schedule ends after 4 trials. Use a smaller --trial." in refused.err


@pytest.mark.parametrize("seed", range(6))
def test_the_text_is_turned_like_the_picture(run: Run, seed: int) -> None:
    picture, _, text = run("render", "barnes_maze", "--seed", seed).out.partition(
        "glyph"
    )
    [arrow] = [glyph for glyph in "↑↗→↘↓↙←↖" if glyph in picture]
    rows = picture.split("\n\n")[1].splitlines()
    [row] = [number for number, line in enumerate(rows) if arrow in line]
    column = rows[row].index(arrow)
    heading = HEADINGS["↑↗→↘↓↙←↖".index(arrow)]
    assert f"stands at column {column}, row {row} (from 0), facing {heading}." in text
