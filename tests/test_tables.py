"""Results as tables: as text, as HTML, as data frames, and their parts in brief."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

from cheesebench.amounts import percent
from cheesebench.errors import OptionError
from cheesebench.tables import LONGEST, WIDEST, Brief, BriefDict, Tabular

LONG = "word " * 12


class Result(Tabular):
    units: ClassVar[Mapping[str, Callable[[float], str]]] = {"rate": percent}
    optional = frozenset(("cost", "calls"))

    def __init__(self, *rows: dict[str, object], told: tuple[str, ...] = ()) -> None:
        self._rows, self._told = list(rows), told

    def rows(self) -> list[dict[str, object]]:
        return self._rows

    @property
    def told(self) -> tuple[str, ...]:
        return self._told


ROWS = Result(
    {"name": "<a>", "rate": 0.5, "n": 3, "mean": 1 / 3, "cost": None, "calls": None},
    {"name": LONG, "rate": None, "n": 1, "mean": 2.0, "cost": None, "calls": 4},
    told=("Read & see.", "Twice."),
)


def test_a_table_as_text() -> None:
    cut = " ".join(LONG.split())[: WIDEST - 4].rsplit(" ", 1)[0] + " ..."
    head, dashes, first, second, *rest = repr(ROWS).splitlines()
    assert head.split() == ["name", "rate", "n", "mean", "calls"]
    assert set(dashes) <= set("- ")
    assert first.split() == ["<a>", "50", "%", "3", "0.333", "–"]
    assert second.startswith(cut)
    assert second.split()[-4:] == ["–", "1", "2", "4"]
    assert [one for one in rest if one] == ["Read & see.", "Twice."]
    assert "\x1b" not in repr(Result({"name": "\x1b[2J"}))


def test_a_table_as_html() -> None:
    left = ' style="text-align: left'
    wide = f'{left}; min-width: 30em"'
    assert ROWS._repr_html_() == (
        f'<table><thead><tr><th{left}">name</th><th>rate</th><th>n</th><th>mean</th><th>calls</th></tr></thead><tbody>'
        f'<tr><td{left}">&lt;a&gt;</td><td>50 %</td><td>3</td><td>0.333</td><td>–</td></tr>'
        f"<tr><td{wide}>{LONG}</td><td>–</td><td>1</td><td>2</td><td>4</td></tr></tbody></table>"
        "<p>Read &amp; see.</p><p>Twice.</p>"
    )
    assert Result()._repr_html_() == "<p>nothing</p>"
    path = Result({"path": Path("x")})._repr_html_()
    assert f'<td{left}">x</td>' in path
    assert "min-width" not in Result({"name": "x" * WIDEST})._repr_html_()


def test_a_data_frame_has_types_that_allow_missing_values() -> None:
    frame = Result(
        {"a": True, "b": 1, "c": 1, "d": "x", "e": None, "f": (1,), "g": 1.5},
        {"a": None, "b": 2.5, "c": None, "d": None, "e": None, "f": None, "g": None},
    ).frame()
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds == {
        "a": "boolean", "b": "Float64", "c": "Int64", "d": "string", "e": "object", "f": "object", "g": "Float64",
    }  # fmt: skip
    assert frame["b"].tolist() == [1.0, 2.5]
    assert frame["e"][0] is pd.NA
    assert frame["f"].tolist() == [(1,), pd.NA]
    assert frame["c"].isna().tolist() == [False, True]
    assert Result().frame().empty


def test_without_pandas_there_is_one_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OptionError, match="Data frames need pandas, which is not inst"):
        ROWS.frame()


@dataclasses.dataclass(frozen=True, repr=False)
class Part(Brief):
    name: str
    number: int = 3
    text: str = ""
    parts: tuple[int, ...] = ()


def test_a_part_says_what_is_unusual_in_few_letters() -> None:
    assert repr(Part("a")) == "Part(name='a')"
    assert (
        repr(Part("a", 4, parts=(1, 2, 3, 4)))
        == "Part(name='a', number=4, parts=(1, 2, 3, ...))"
    )
    shown = repr(Part("x" * 100, text="y" * 100))
    assert len(shown) < 2 * WIDEST + 30
    many = dataclasses.make_dataclass(
        "Many", [(f"field_{n}", str) for n in range(9)], bases=(Brief,), repr=False
    )
    shown = repr(many(*["z" * 30] * 9))
    assert len(shown) == LONGEST
    assert shown.endswith("...)")


def test_a_large_dictionary_is_shortened_value_by_value() -> None:
    found = BriefDict(a=[1, 2, 3, 4], b={"c": {"d": {"e": 1}}})
    assert repr(found) == "{'a': [1, 2, 3, ...], 'b': {'c': {'d': {...}}}}"
    assert found["a"] == [1, 2, 3, 4]
