"""What commands share: tables, paragraphs, numbers, cells and protocols."""

from __future__ import annotations

import argparse
import dataclasses
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.commands import common
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.options import BY_KEY
from cheesebench.protocol import Catalogue
from cheesebench.records import CellPlan, Variant


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")


def test_a_table_fits_the_terminal_if_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("t_maze", None, "a word and more"), ("y", 3, "x\x1b")]
    monkeypatch.setenv("COLUMNS", "80")
    assert common.table(["name", "n", "text"], rows) == (
        "name    n  text\n------  -  ---------------\nt_maze     a word and more\ny       3  x\\x1b"
    )
    assert not common.breaks_words(["name", "n", "text"], rows)
    monkeypatch.setenv("COLUMNS", "20")
    assert common.table(["name", "n", "text"], rows) == (
        "name    n  text\n------  -  --------\nt_maze     a word\n           and more\ny       3  x\\x1b"
    )
    assert not common.breaks_words(["name", "n", "text"], rows)
    long = [("a_very_long_name", "another_long_word/with-parts")]
    assert common.breaks_words(["", ""], long)
    monkeypatch.setenv("COLUMNS", "36")
    assert common.table(["first", "second"], long) == (
        "first             second\n----------------  ------------------\na_very_long_name  another_long_word/\n"
        "                  with-parts"
    )
    assert common.table(["only"], []) == "only\n----"


def test_the_first_column_is_narrowed_last(narrow: None) -> None:
    rows = [("first_column_of_a_row", "x" * 30, "words " * 6)]
    widths = [
        len(one) for one in common.table(["a", "b", "c"], rows).splitlines()[1].split()
    ]
    assert widths == [13, 8, 5]


def test_text_is_one_line_or_a_paragraph(narrow: None) -> None:
    assert common.one_line(" a\n b\t\x1b ") == "a b \\x1b"
    assert [common.one_line("abcd", most) for most in (3, 4)] == ["abc...", "abcd"]
    text = "one two three four five six seven eight"
    assert common.paragraph(text) == "one two three four five six\n  seven eight"
    assert (
        common.paragraph(text, "> ", "") == "> one two three four five six\nseven eight"
    )
    assert common.paragraph("x" * 40 + " a-b", "- ") == "- " + "x" * 40 + "\n-   a-b"
    assert [common.counted(number, "trial") for number in (0, 1, 2)] == [
        "0 trials",
        "1 trial",
        "2 trials",
    ]


def test_paths_are_relative_to_here_if_they_are_inside(here: Path) -> None:
    assert common.shown_path("a/b") == "a/b"
    assert common.shown_path(here / "a") == "a"
    assert common.shown_path("/elsewhere/a") == "/elsewhere/a"


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (common.whole_number, "0", 0), (common.whole_number, "9" * 39, 10**39 - 1), (common.whole_number, "9" * 40, None),
        (common.positive_number, "9" * 18, 10**18 - 1), (common.positive_number, "9" * 19, None),
        (common.whole_number, "-1", None), (common.whole_number, "\u0661", None), (common.positive_number, "1", 1),
        (common.positive_number, "0", None), (common.positive_number, "-1", None),
        (common.port_number, "65535", 65535), (common.port_number, "65536", None),
        (common.port_number, "0", 0),
    ],
)  # fmt: skip
def test_numbers_are_whole_and_in_range(
    read: Any, text: str, value: int | None
) -> None:
    if value is not None:
        assert read(text) == value
        return
    least = 1 if read is common.positive_number else 0
    said = {
        "65536": "is not a port: ports go up to 65535",
        "9" * 19: "has more than 18 digits",
        "9" * 40: "has more than 39 digits",
    }.get(text, f"is not a whole number of at least {least}")
    with pytest.raises(argparse.ArgumentTypeError, match=f"^'{text}' {said}$"):
        read(text)


def test_every_seed_that_a_run_draws_can_be_typed() -> None:
    parser = argparse.ArgumentParser()
    common.add_life(parser)
    assert parser.parse_args(["--seed", str(2**128 - 1)]).seed == 2**128 - 1
    with pytest.raises(SystemExit):
        parser.parse_args(["--subject", str(2**63)])


PLAN = CellPlan(
    model="m", protocol="p", view="v", title="", dimension="", species="", sha256="0", design="cohort", subjects=10,
    trials=20, memory="life",
)  # fmt: skip


def test_one_cell_is_chosen_by_what_tells_it_apart() -> None:
    other = dataclasses.replace(PLAN, protocol="q")
    varied = dataclasses.replace(PLAN, variant=Variant((("history", "1"),)))
    twice = dataclasses.replace(PLAN, variant=Variant((("history", "2"),)))

    def choose(*plans: CellPlan, **given: str) -> CellPlan:
        parser = argparse.ArgumentParser()
        common.add_cell(parser)
        words = [word for name, value in given.items() for word in (f"--{name}", value)]
        return common.choose_cell(plans, parser.parse_args(words))

    assert choose(PLAN) is PLAN
    assert choose(PLAN, other, protocol="q") is other
    assert choose(PLAN, varied) is PLAN
    assert choose(PLAN, varied, variant="history=1") is varied
    with pytest.raises(
        OptionError, match=r"The run has several protocols. Name one: --protocol p."
    ):
        choose(PLAN, other)
    with pytest.raises(
        OptionError,
        match=r"The run has several variants. Name one: --variant history=1.",
    ):
        choose(varied, twice)
    with pytest.raises(
        UnknownNameError, match=r"There is no view in this run called 'w'."
    ):
        choose(PLAN, view="w")


def test_an_option_of_a_run_is_added_as_it_is_declared() -> None:
    parser = argparse.ArgumentParser()
    common.add_options(parser, "subjects", "reply-tokens")
    common.add_option(parser, "control", help="other")
    common.add_option(parser, "seed", default=7)
    found = parser.parse_args(["--subjects", "3"])
    assert vars(found) == {
        "subjects": 3, "reply_tokens": None, "control": list(BY_KEY["control"].default or ()), "seed": 7,
    }  # fmt: skip
    assert parser.parse_args(["--control", "blind"]).control[-1] == "blind"
    assert "other" in parser.format_help()


def test_a_help_has_its_description_and_examples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "42")
    parser = argparse.ArgumentParser(prog="cheesebench x", description="First.")
    common.describe(parser, f"{'word ' * 12}\na-line", "", "--a b")
    assert (
        parser.description
        == "First. word word word word word word\nword word word word word word\na-line"
    )
    assert parser.epilog == "examples:\n  cheesebench x\n  cheesebench x --a b"


def test_protocols_are_found_here_first(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = Catalogue([here / "installed"])
    (here / "installed").mkdir()
    text = (here / "little.protocol.yaml").read_text(encoding="utf-8")
    for name in ("little", "known"):
        (here / "installed" / f"{name}.protocol.yaml").write_text(
            text.replace("little", name), encoding="utf-8"
        )
    assert common.find_protocol(catalogue, "little.protocol.yaml") == Path(
        "little.protocol.yaml"
    )
    assert common.find_protocol(catalogue, "little") == Path("little.protocol.yaml")
    assert (
        capsys.readouterr().err
        == "cheesebench: little.protocol.yaml is used, not the installed 'little'.\n"
    )
    assert (
        common.find_protocol(catalogue, "known")
        == here / "installed" / "known.protocol.yaml"
    )
    (here / "mine.protocol.yaml").write_text(
        text.replace("little", "mine"), encoding="utf-8"
    )
    assert common.find_protocol(catalogue, "mine") == Path("mine.protocol.yaml")
    assert capsys.readouterr().err == ""
    for name, said in (
        (
            "installed",
            r"^installed is a directory. Name one \*.protocol.yaml file in it.$",
        ),
        ("no.yaml", "^There is no file no.yaml. Check the path.$"),
        ("a/b", "^There is no file a/b. Check the path.$"),
        ("knwn", r"^There is no protocol 'knwn'. Did you mean 'known'\?"),
        ("mien", r"^There is no protocol 'mien'. Did you mean 'mine'\?"),
        (
            "litle",
            r"Did you mean 'little'\? .* The installed protocol 'little' has a similar name, too.",
        ),
    ):
        with pytest.raises((OptionError, UnknownNameError), match=said):
            common.find_protocol(catalogue, name)


def test_results_are_written_to_a_file_or_printed(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    common.write_output("a\x1b\n", None)
    assert capsys.readouterr().out == "a\x1b\n", "a program gets what it is"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    common.write_lines(["a\x1b\n", "b\n"], None)
    assert screen.getvalue() == "a\\x1b\nb\n"
    common.write_lines(["a", "b"], "out")
    assert (here / "out").read_text(encoding="utf-8") == "ab"
    common.write_bytes(b"x", "bytes")
    assert (here / "bytes").read_bytes() == b"x"
    writes: tuple[Callable[[], None], ...] = (
        lambda: common.write_output("a", "no/out"),
        lambda: common.write_bytes(b"a", "no/out"),
    )
    for write in writes:
        with pytest.raises(
            OptionError,
            match=r"^no/out cannot be written: No such file or directory. Name a file in",
        ):
            write()


class Life:
    """A subject of three trials of two steps."""

    def __init__(self) -> None:
        self.trial = self.steps = 0

    def begin_trial(self) -> str | None:
        self.trial, self.steps = self.trial + 1, 0
        return f"trial {self.trial}" if self.trial <= 3 else None

    def step(self, action: int) -> tuple[str, float, int]:
        assert action == 3
        self.steps += 1
        return "", 0.0, int(self.steps == 2)


def test_a_trial_is_waited_for() -> None:
    life: Any = Life()
    assert common.wait_for_trial(life, 3) == "trial 3"
    assert life.steps == 0
    life = Life()
    with pytest.raises(
        OptionError, match=r"^The schedule ends after 3 trials. Use a smaller --trial.$"
    ):
        common.wait_for_trial(life, 5)
