"""Tables of the terminal: what is shortened, and numbers that stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.records import AbilityScale, CellPlan
from cheesebench.reports import cells
from cheesebench.reports.text import (
    _blocks,
    _by,
    _contrasts,
    _drawn,
    _filled,
    _leaderboard,
    _said_once,
    _shortened,
    _size,
    _study,
    render,
)
from cheesebench.statistics import RunSummary

#: Texts that tabulate would write anew if it took them for numbers.
NUMBERS = ["007", "1e3", "0.50"]


@pytest.mark.parametrize(
    ("name", "room", "shown"),
    [
        ("maze", 4, "maze"),
        ("mazes", 4, "ma…s"),
        ("long_delays", 6, "lon…ys"),
        ("long_delays", 7, "lon…ays"),
    ],
)
def test_a_name_keeps_both_ends(name: str, room: int, shown: str) -> None:
    assert _shortened(name, room) == shown


def test_settings_of_a_study_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cells,
        "settings_table",
        lambda summary: (
            ["a", "b", "c", "d"],
            [[*NUMBERS, "9"], ["x" * 50, "", "", ""]],
        ),
    )
    monkeypatch.setattr(cells, "study_name", lambda summary: "history")
    said = _study(cast(Any, None), 60)
    title, _, head, _, row, long = said.splitlines()
    assert title == "Study history: mean pass rate over the protocols"
    assert head.split() == ["a", "b", "c"]
    assert row.split() == NUMBERS
    assert len(long.strip()) == 20
    assert "…" in long


def test_numbers_beside_published_ones_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("m" * 40, "v", *NUMBERS)]
    monkeypatch.setattr(cells, "contrast_rows", lambda contrasts: rows)
    said = _contrasts([cast(Any, SimpleNamespace(model="gpt"))], 80)
    lines = said.splitlines()
    assert lines[0] == "Beside gpt, as published"
    assert lines[2].split()[-1] == "difference"
    assert lines[4].split()[1:] == ["v", *NUMBERS]
    assert len(lines[4].split()[0]) == 26


def test_rows_of_a_leaderboard_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [["1", "m" * 40, *NUMBERS]]
    monkeypatch.setattr(cells, "leaderboard_rows", lambda board: rows)
    monkeypatch.setattr(cells, "leaderboard_title", lambda board: "Title")
    monkeypatch.setattr(cells, "leaderboard_lists", lambda board: "Lists")
    said = _leaderboard(cast(Any, None), 80)
    parts = said.split("\n\n")
    assert (parts[0], parts[2]) == ("Title", "Lists")
    row = parts[1].splitlines()[-1].split()
    assert row[2:] == NUMBERS
    assert len(row[1]) == 26


def test_a_wide_table_is_split_beside_its_names() -> None:
    lines = [["", "aaaa", "bbbb", "cccc"], ["one", *NUMBERS], ["two", "1", "2", "3"]]
    assert _blocks(lines, 100) == [
        "     aaaa  bbbb  cccc\none   007   1e3  0.50\ntwo     1     2     3"
    ]
    assert _blocks(lines, 15) == [
        "     aaaa  bbbb\none   007   1e3\ntwo     1     2",
        "     cccc\none  0.50\ntwo     3",
    ]
    assert len(_blocks(lines, 14)) == 3


def test_lines_of_verdicts_are_drawn_without_blanks_at_the_end() -> None:
    head = ["", "protocol", "rate", "animals", "difference", "margin"]
    row = ["P", "maze", *NUMBERS, ""]
    first, second = _drawn([head, row])
    assert second.split() == ["P", "maze", *NUMBERS]
    assert second == second.rstrip()
    assert first.split() == head[1:]


def test_words_are_wrapped_and_never_split() -> None:
    assert _filled("aa bb-cc dd", 7) == "aa\n  bb-cc\n  dd"
    assert _filled("aaaaaaaaaa b", 5, "- ", "") == "- aaaaaaaaaa\nb"


def test_the_sample_is_short_if_every_trial_is_valid() -> None:
    def cell(valid: int, planned: int = 20, twice: int = 0) -> Any:
        return SimpleNamespace(
            planned=planned,
            valid=valid,
            flags=SimpleNamespace(duplicate_subjects=twice),
            subjects=2,
            n_text="n = 2",
        )

    sizes = [
        _size(cell(20)),
        _size(cell(19)),
        _size(cell(0, 0)),
        _size(cell(20, 20, 1)),
    ]
    assert sizes == ["2 subjects", "n = 2", "n = 2", "n = 2"]


@pytest.mark.parametrize(
    ("remarks", "common", "rest"),
    [
        ([["2", "odd"]], [], [["2", "odd"]]),
        ([["2", "odd"], ["2", "odd", "own"]], ["2", "odd"], [[], ["own"]]),
        (
            [["2", "odd"], ["2", "odd"], ["3", "odd"]],
            ["2, except where noted", "odd"],
            [[], [], ["3"]],
        ),
        ([["2"], ["3"]], [], [["2"], ["3"]]),
    ],
)
def test_what_all_cells_share_is_said_once(
    remarks: list[list[str]], common: list[str], rest: list[list[str]]
) -> None:
    assert _said_once(cast(Any, remarks), remarks) == (common, rest)


def test_a_measure_by_a_variable() -> None:
    points = [(2, SimpleNamespace(mean=0.95)), ("long", SimpleNamespace(mean=0.8))]
    curve = SimpleNamespace(measure="right", variable="delay", points=points)
    assert _by(cast(Any, curve)) == "right by delay: 0.95 (2), 0.8 (long)"


def test_how_to_read_several_models_is_said_once(
    make_plan: Callable[..., CellPlan], make_run: Callable[..., RunSummary]
) -> None:
    scale = AbilityScale(without=0.25, ideal=0.95)
    plans = [
        make_plan("pool", model=model, ability=scale) for model in ("walker", "crawler")
    ]
    one, both = (
        render(make_run([(plan, 0.5) for plan in plans[:number]])) for number in (1, 2)
    )
    for said in ("Ability: (rate", "Pass rates of random moves"):
        assert one.count(said) == both.count(said) == 1
    assert both.count("Mean ability") == 2
    assert both.index("Ability: (rate") > both.rindex("crawler in ascii_2d")
    assert one.index("Ability: (rate") < one.rindex("of 1 protocol")
