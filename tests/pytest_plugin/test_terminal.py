"""A session's output on the terminal: 80 columns, colours if possible, and glyphs if
possible.
"""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import takewhile

import pytest

from tests.pytest_plugin.conftest import corridor

ESCAPE = "\x1b["


def summary(lines: list[str]) -> list[str]:
    """Return the lines under the heading ``cheesebench``."""
    begin = next(
        number
        for number, line in enumerate(lines)
        if line.strip("=") == " cheesebench "
    )
    # With -q, the line with the counts is not underlined.
    return list(
        takewhile(
            lambda line: not re.search(r"=====|^\d+ failed.* in ", line),
            lines[begin + 1 :],
        )
    )


FLAGS = [(), ("-vv",), ("-n", "1", "-v"), ("-q", "--no-header")]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_the_summary_is_the_same_whatever_surrounds_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # With nine subjects a FAIL remains when corrected.
    command = ("--model", "statue", "lab", "--subjects=9", "--cheese-run-id=one")
    result = project.runpytest_inprocess(*command, *flags)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert summary(result.stdout.lines) == [
        "statue in ascii_2d (3 FAIL)",
        "",
        "Each protocol: 9 subjects; not validated; rodent declared.",
        "",
        "        protocol  rate  rodent              difference  margin",
        "------  --------  ----  ------  ----------------------  ------",
        "✘ FAIL  east       0 %  (60 %)  -60.0 (-60.0 to -24.3)     -10",
        "✘ FAIL  few        0 %  (90 %)  -90.0 (-90.0 to -54.3)     -10",
        "✘ FAIL  west       0 %  (60 %)  -60.0 (-60.0 to -24.3)     -10",
        "",
        "✘ FAIL: 0 of 3 protocols passed; east, few, west failed; corrected for 3",
        "  protocols (e-BH): all.",
        "",
        "Run: results/one",
        "Report: results/one/report.md",
        "To watch its trials: cheesebench report results/one --html",
        "To print a failed trial step by step, add --film",
        "",
        "Exit code 1: 3 protocols failed.",
        "The seed was drawn; --seed 0 repeats the run.",
    ]
    assert ESCAPE not in str(result.stdout)


def test_a_failed_trial_is_offered_only_for_a_pass_rate(
    project: pytest.Pytester,
) -> None:
    text = re.sub(
        r"(?s)reference:.*",
        "measures: {latency: steps}\nreference:\n  - {measure: latency, value: 2, sd: 0.5, n_animals: 12, better: lower, "
        "margin: 1, range: [0, 5], status: for a test}\n",
        corridor("ranged"),
    )
    (project.path / "ranged.protocol.yaml").write_text(text, encoding="utf-8")
    command = ("--model", "statue", "ranged.protocol.yaml", "--subjects=9")
    result = project.runpytest_inprocess(*command)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["To watch its trials: *"])
    result.stdout.no_fnmatch_line("*add --film*")


def test_long_names_and_many_remarks_fit_too(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = (project.path / "lab" / "east.protocol.yaml").read_text(encoding="utf-8")
    name = "corridor_" * 8 + "end"
    (project.path / "lab" / f"{name}.protocol.yaml").write_text(
        text.replace("east", name), encoding="utf-8"
    )
    result = project.runpytest(
        "--model", "walker", "lab", "--design=smoke", "--cheese-run-id=one"
    )
    lines = summary(result.stdout.lines)
    assert [line for line in lines if len(line) > 80 and name not in line] == []
    assert any(
        line.startswith("? INCONCLUSIVE  corridor_") and "…" in line for line in lines
    )


def test_verdicts_are_coloured_where_colours_are_shown(
    project: pytest.Pytester,
) -> None:
    result = project.runpytest(
        "--model", "walker", "--model", "statue", "lab", "--color=yes"
    )
    lines = summary(result.stdout.lines)
    assert any(
        line.startswith(f"{ESCAPE}32m✔ PASS{ESCAPE}0m  ") and " east " in line
        for line in lines
    )
    assert any(line.startswith(f"{ESCAPE}31m✘ FAIL{ESCAPE}0m  east") for line in lines)
    assert any(
        line.startswith(f"{ESCAPE}33m? INCONCLUSIVE{ESCAPE}0m  few") for line in lines
    )


@pytest.mark.parametrize(
    ("encoding", "flags"), [("cp1252", ("-v",)), ("cp437", ("-v", "-n", "1"))]
)
def test_code_pages_without_our_glyphs_get_what_is_like_them(
    project: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    encoding: str,
    flags: tuple[str, ...],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--model",
        "statue",
        "lab",
        "--film",
        *flags,
    ]
    result = subprocess.run(
        command,
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.decode(encoding)
    assert re.search(r"x FAIL +east +0 % +\(60 %\) +-60(\.0)? ", text)
    assert "#>..#" in text  # the film of a failed trial
    assert "\\u" not in text
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
