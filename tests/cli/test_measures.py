"""``measures``: every trial of a real run as CSV, and summed up by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.commands.csv_text import cell, csv_lines
from cheesebench.commands.measures import KEYS, long_lines, wide_lines
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.records import TrialRecord
from cheesebench.interfaces import Value

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]

RUN = "20250131-093000-ab12"


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_summary_has_mean_spread_and_number(results: Path, run: Run) -> None:
    result = run("measures", RUN)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("random on little in ascii_2d, block main (8 trials of 2 subjects)\n")
    with RunLog.open_read_only(results / RUN / "run.sqlite") as log:
        steps = [record.steps for record in log.trials()]
    [row] = [line.split() for line in result.out.splitlines() if line.startswith("trial     steps")]
    assert row[2] == f"{sum(steps) / 8:.4g}"
    assert row[-1] == "8"
    assert "counter   visits" in result.out
    assert "measure   latency" in result.out
    assert "strategy  action_entropy_bits" in result.out


def test_one_protocol_has_a_row_for_each_trial(results: Path, run: Run) -> None:
    rows = read(run("measures", RUN, "--protocol", "little", "--csv", "-").out)
    with RunLog.open_read_only(results / RUN / "run.sqlite") as log:
        records = log.trials()
    assert len(rows) == len(records) == 8
    assert tuple(rows[0])[: len(KEYS)] == KEYS
    for row, record in zip(rows, records, strict=True):
        assert (row["subject"], row["trial"], row["session"]) == (
            str(record.subject),
            str(record.trial),
            str(record.session),
        )
        assert row["success"] == str(record.success).lower()
        assert float(row["reward"]) == record.reward
        assert float(row["measure.latency"]) == record.measures["latency"] == record.steps / 2
        assert int(row["counter.visits"]) == record.counters["visits"]
        assert row["missing"] == ""


def test_without_a_protocol_it_has_a_row_for_each_value(results: Path, run: Run) -> None:
    wide = read(run("measures", RUN, "--protocol", "little", "--csv", "-").out)
    long = read(run("measures", RUN, "--csv", "-").out)
    assert list(long[0]) == [*KEYS, "kind", "name", "value"]
    again: dict[tuple[str, str], dict[str, str]] = {}
    for row in long:
        name = row["name"] if row["kind"] == "trial" else f"{row['kind']}.{row['name']}"
        again.setdefault((row["subject"], row["trial"]), {key: row[key] for key in KEYS})[name] = row["value"]
    assert list(again.values()) == wide


def test_a_file_is_written_and_said(results: Path, run: Run, here: Path) -> None:
    printed = run("measures", RUN, "--csv", "-").out
    result = run("measures", RUN, "--csv", "trials.csv")
    assert (result.code, result.out) == (0, "")
    assert result.err == "cheesebench: 8 trials written to trials.csv.\n"
    assert (here / "trials.csv").read_text(encoding="utf-8") == printed
    assert run("measures", RUN, "--csv", "nowhere/trials.csv").code == 2


def test_a_protocol_that_is_not_in_the_run(results: Path, run: Run) -> None:
    result = run("measures", RUN, "--protocol", "litle")
    assert result.code == 2
    assert "There is no protocol in this run called 'litle'. Did you mean 'little'?" in result.err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (-1.5, "-1.5"),
        (3, "3"),
        (0.1 + 0.2, "0.30000000000000004"),
        (["a", "b"], "a|b"),
        ([], ""),
        ("plain", "plain"),
        ("=1+1", "'=1+1"),
        ("-2+3", "'-2+3"),
        ("+1", "'+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1+1", "'  =1+1"),
        ("\t=1+1", "'\\t=1+1"),
        ("\r=1+1", "'\\r=1+1"),
        ("＝1", "'＝1"),
        (["=1", "b"], "'=1|b"),
        ("bell\x07 \x1b[2J", "bell\\x07 \\x1b[2J"),
        ("\ud800", "\\ud800"),
    ],
)
def test_a_cell_is_exact_and_never_a_formula(value: Value, text: str) -> None:
    assert cell(value) == text
    text.encode()


def test_quotes_commas_and_line_breaks_come_back() -> None:
    row: list[Value] = ['say "no"', "a,b", "two\nlines", None]
    text = "".join(csv_lines(["=name", "b", "c", "d"], [row]))
    assert "\r" not in text
    assert list(csv.reader(io.StringIO(text))) == [["'=name", "b", "c", "d"], ['say "no"', "a,b", "two\nlines", ""]]


def test_trials_that_were_not_run_have_a_row_and_no_values() -> None:
    lived = TrialRecord(
        model="m", protocol="p", view="v", subject=0, trial=0, outcome="end", actions="FF", measures={"x": 1}
    )
    missing = TrialRecord(model="m", protocol="p", view="v", subject=0, trial=1, missing="budget")
    rows = read("".join(wide_lines([lived, missing])))
    assert [row["missing"] for row in rows] == ["", "budget"]
    assert rows[0]["measure.x"] == "1"
    assert {rows[1][name] for name in rows[1] if name not in (*KEYS, "missing")} == {""}
    assert [row["name"] for row in read("".join(long_lines([missing])))] == ["missing"]


def test_two_protocols_may_measure_different_things() -> None:
    records = [
        TrialRecord(model="m", protocol=name, view="v", subject=0, trial=0, measures={name: 1}) for name in ("a", "b")
    ]
    measures = [
        (row["protocol"], row["name"]) for row in read("".join(long_lines(records))) if row["kind"] == "measure"
    ]
    assert measures == [("a", "a"), ("b", "b")]
