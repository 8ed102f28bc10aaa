"""Hostile text stays text."""

from __future__ import annotations

import html
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cheesebench.reports.cells import LONGEST, clean, escape, fenced, visible

HOSTILE = st.text(
    alphabet=st.sampled_from("|`<>&*_[]()\\~$#-!\n\r\t\x1b\x00\u202e\u2028ab 1"),
    max_size=40,
)
TEXT = HOSTILE | st.text(max_size=60)


def shown(markdown: str) -> str:
    """Return the text that a reader sees: without comments, and with backslash escapes
    and entities resolved.
    """
    return html.unescape(
        re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown.replace("<!-- -->", ""))
    )


@example("a@b://www.c")
@given(TEXT)
def test_escaped_text_shows_what_clean_text_says(text: str) -> None:
    # An entity in the text itself must survive, so its ampersand is escaped.
    assert shown(escape(text)) == clean(text)


@given(TEXT)
def test_nothing_in_escaped_text_means_anything_to_markdown(text: str) -> None:
    # Our own comment cannot come from a text, whose brackets become entities.
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", escape(text).replace("<!-- -->", ""))
    assert not set(bare) & set("|`*[]<>~$\\\n\r")
    assert not re.search(r"&(?!amp;|lt;|gt;)", bare)


@given(TEXT)
def test_clean_text_is_one_printable_line(text: str) -> None:
    line = clean(text)
    assert all(
        unicodedata.category(glyph) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        for glyph in line
    )
    assert line == line.strip()
    assert clean(line) == line
    line.encode("utf-8")


@given(TEXT, st.integers(1, 30))
@example("##[", 3)
def test_text_in_a_code_block_has_its_width_and_cannot_end_the_block(
    text: str, width: int
) -> None:
    assert len(fenced(text, width)) == width
    assert "`" not in fenced(text, width)


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("morris_water_maze", "morris_water_maze"),
        ("_private_ __all__", r"\_private\_ \_\_all\_\_"),
        ("a|b", r"a\|b"),
        ("<script>", "&lt;script&gt;"),
        ("`code` **bold** [x](y)", r"\`code\` \*\*bold\*\* \[x\](y)"),
        ("one\ntwo\x1b[31m", "one two\ufffd\\[31m"),
        ("-10.0 (2 of 9)", "-10.0 (2 of 9)"),
    ],
)
def test_examples(text: str, markdown: str) -> None:
    assert escape(text) == markdown


def test_endless_text_is_cut() -> None:
    assert clean("x" * 10_000) == "x" * (LONGEST - 1) + "…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb\tc\n", "a\nb    c\n"),
        ("\x1b[31mred\x00", "⟨U+001B⟩[31mred⟨U+0000⟩"),
        ("left \u202e thgir \ud800", "left ⟨U+202E⟩ thgir ⟨U+D800⟩"),
        ("<b> & 'é' 漢 🧀", "<b> & 'é' 漢 🧀"),
    ],
)
def test_visible_keeps_lines_and_spells_out_what_cannot_be_seen(
    text: str, shown: str
) -> None:
    assert visible(text, 100) == shown


def test_a_twin_is_no_mention() -> None:
    assert escape("maze@twin_a9") == "maze@twin_a9"
    assert escape("@maze, a@b.example") == "@<!-- -->maze, a@<!-- -->b.example"


def test_visible_says_how_much_it_leaves_out() -> None:
    assert (
        visible("abc" * 1000, 5)
        == "abcab\n[... 2,995 more characters; the run log has the whole text]"
    )


@given(TEXT)
def test_visible_text_hides_nothing(text: str) -> None:
    hidden = [
        glyph
        for glyph in visible(text, 100)
        if glyph != "\n" and unicodedata.category(glyph)[0] == "C"
    ]
    assert hidden == []
