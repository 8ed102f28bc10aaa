"""Errors: which name was meant, what is listed, and where a plugin raised."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from cheesebench import errors
from cheesebench.diagnostics import Diagnostic, Position
from cheesebench.errors import (
    CheeseBenchError,
    FileError,
    OptionError,
    ProtocolError,
    UnknownNameError,
    cause_of,
    closest,
    did_you_mean,
    look_alike,
    raised_where,
    said_of_logs,
)
from cheesebench.experiment import log_file


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("t_mase", ["barnes_maze", "t_maze"], "t_maze"),
        ("T_MAZE", ["t_maze_long", "t_maze"], "t_maze"),
        ("T-maze", ["y_maze", "t_maze"], "t_maze"),
        # A prefix of at least three letters stands for the name that it begins.
        ("gpt-4", ["gpt-35", "gpt-4-32k"], "gpt-4-32k"),
        ("gp", ["gpt-4-32k"], None),
        ("dog", ["cat", "horse"], None),
        ("", ["cat"], None),
        ("cat", [], None),
        # Only the first 100 letters of a name and the first 500 names are compared.
        ("a" * 100 + "b" * 400, ["a" * 100], "a" * 100),
        ("needle", [*map(str, range(499)), "needles"], "needles"),
        ("needle", [*map(str, range(500)), "needles"], None),
    ],
)
def test_the_closest_name(name: str, known: list[str], meant: str | None) -> None:
    assert closest(name, known) == meant
    hint = did_you_mean(name, known)
    assert hint == (f" Did you mean '{meant}'?" if meant else "")


@pytest.mark.parametrize(
    ("given", "more", "text"),
    [
        (
            ("view", "asci", ["words", "ascii_2d"]),
            {},
            "There is no view 'asci'. Did you mean 'ascii_2d'? Known: ascii_2d, words.",
        ),
        # What is also known may be meant, but is not listed.
        (
            ("model", "gpt5", ["qwen"]),
            {"also": ["gpt-5"]},
            "There is no model 'gpt5'. Did you mean 'gpt-5'? Known: qwen.",
        ),
        # A part of a text is compared first, then the whole text.
        (
            ("protocol", "maze", ["t_maze@long"]),
            {"whole": "t_maze@lon"},
            "There is no protocol 'maze'. Did you mean 't_maze@long'? Known: t_maze@long.",
        ),
        (
            ("view", "zzz", ["words"]),
            {"remedy": "Give one."},
            "There is no view 'zzz'. Known: words. Give one.",
        ),
    ],
)
def test_a_name_that_is_unknown(
    given: tuple[str, str, list[str]], more: dict[str, str], text: str
) -> None:
    error = UnknownNameError(*given, **more)
    assert str(error) == text
    assert error.known == sorted(given[2])


@pytest.mark.parametrize("extra", [0, 1])
def test_more_names_than_fit_a_line_are_cut_to_the_nearest(extra: int) -> None:
    # Ten names of 22 letters and 9 separators have 238; the last one fills the line.
    names = [f"{number:02}{'x' * 20}" for number in range(10)]
    names[-1] += "x" * (errors.SHORT - len(", ".join(names)) + extra)
    text = str(UnknownNameError("view", "03", names))
    if extra:
        assert "Nearest of 10: " in text
        assert text.count("xx, ") == errors.NEAREST - 1
        assert names[3] in text
    else:
        assert text.endswith(f" Known: {', '.join(names)}.")


def test_a_letter_that_only_looks_latin_is_named() -> None:
    assert look_alike("maze") == ""
    assert look_alike("m_1!→") == ""
    assert look_alike("mаze") == (
        "The 'а' in it is CYRILLIC SMALL LETTER A: type the word with letters from a to z."
    )


@pytest.mark.parametrize("kind", [ProtocolError, FileError])
def test_findings_are_the_text_and_outlive_a_pickle(kind: type[ProtocolError]) -> None:
    position = Position("a.yaml", 3, 5)
    findings = [
        Diagnostic(position, "error", 121, "There is no key 'sucess'.", "Delete it."),
        Diagnostic(position, "error", 122, "A key is missing."),
    ]
    for error in (kind("", findings), pickle.loads(pickle.dumps(kind("", findings)))):
        assert error.findings == tuple(findings)
        assert error.lines == (
            "a.yaml:3:5: error E121: There is no key 'sucess'. Delete it.",
            "a.yaml:3:5: error E122: A key is missing.",
        )
        assert str(error) == "\n".join(error.lines)
    late = pickle.loads(pickle.dumps(kind("found while it ran")))
    assert (str(late), late.lines, late.findings) == (
        "found while it ran",
        ("found while it ran",),
        (),
    )


def test_a_cause_has_its_class_unless_it_is_ours() -> None:
    assert cause_of(OptionError("give one")) == "give one"
    assert cause_of(ValueError("give one")) == "ValueError: give one"


def _raised(statement: str, file: str) -> BaseException:
    try:
        exec(compile(statement, file, "exec"), {})
    except Exception as error:
        return error
    raise AssertionError(statement)


@pytest.mark.parametrize(
    ("statement", "file", "text"),
    [
        (
            "\n\nraise ValueError('bad')",
            "/a/agent.py",
            "ValueError: bad (agent.py:3)",
        ),
        ("raise ValueError", "/a/agent.py", "ValueError (agent.py:1)"),
        # The innermost place counts.
        (
            "def f():\n    1 / 0\n\nf()",
            "/a/agent.py",
            "ZeroDivisionError: division by zero (agent.py:2)",
        ),
        (
            "\n1 / 0",
            "/tmp/ipykernel_77/12345.py",
            "ZeroDivisionError: division by zero (line 2 of a notebook cell)",
        ),
        (
            "from cheesebench.errors import OptionError\nraise OptionError('give one')",
            "/a/agent.py",
            "give one",
        ),
        (
            "compile('(', 'own.py', 'exec')",
            "/a/agent.py",
            "SyntaxError: '(' was never closed (own.py, line 1)",
        ),
    ],
)
def test_where_a_plugin_raised(statement: str, file: str, text: str) -> None:
    assert raised_where(_raised(statement, file)) == text


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert raised_where(ValueError("bad")) == "ValueError: bad"


def test_a_notebook_shows_the_line_that_called_us(tmp_path: Path) -> None:
    path = tmp_path / "cell.py"
    path.write_text(
        "from cheesebench.amounts import percent\n\npercent('x')\n",
        encoding="utf-8",
    )
    error = _raised(path.read_text("utf-8"), str(path))
    shown = CheeseBenchError("give one").with_traceback(error.__traceback__)
    assert shown._render_traceback_() == [
        "----> 3 percent('x')\n",
        "CheeseBenchError: give one",
    ]
    assert CheeseBenchError("give one")._render_traceback_() == [
        "CheeseBenchError: give one"
    ]


def test_logs_are_blamed_only_while_one_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_file, "OPENED", set())
    assert said_of_logs(KeyError("x")) is None
    monkeypatch.delitem(sys.modules, log_file.__name__)
    assert said_of_logs(KeyError("x")) is None


@pytest.mark.parametrize(
    ("said", "worded"),
    [
        ("no such thing", "no such thing"),
        (
            "argument --design/--cheese-design: invalid choice: 'cohrt' (choose from 'smoke', 'cohort')",
            "--design: there is no 'cohrt'. Did you mean 'cohort'? Known: smoke, cohort.",
        ),
        (
            "argument --subjects: invalid int value: 'x'",
            "--subjects x: write a whole number.",
        ),
        (
            "argument --max-cost: invalid float value: 'x'",
            "--max-cost x: write a number.",
        ),
        ("argument --model: expected one argument", "--model: expected one argument."),
    ],
)
def test_argparse_s_errors_are_worded_like_ours(said: str, worded: str) -> None:
    assert str(OptionError.of_argparse(said)) == worded
    told = str(OptionError.of_argparse(said, "cheesebench plan --help"))
    # What has a remedy needs no other.
    has_remedy = worded.startswith(("--design", "--subjects", "--max-cost"))
    more = "" if has_remedy else " See 'cheesebench plan --help'."
    assert told == f"{worded.removesuffix('.')}.{more}"
