"""Every glyph of ours has a stand-in of one character in every code page."""

from __future__ import annotations

import io

import pytest

from cheesebench.plugin_manager import installed_plugins
from cheesebench.terminal import (
    HANDLER,
    STAND_INS,
    replace_unprintable,
    unprintable_replaced,
)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "latin-1", "utf-8"])
def test_glyphs_of_views_and_reports_take_one_character(encoding: str) -> None:
    drawn = "".join(view.characters for view in installed_plugins().views.values())
    for glyph in {*drawn, *"✔✘–−…·░█▁▄▇"}:
        assert len(glyph.encode(encoding, HANDLER).decode(encoding)) == 1, glyph


def test_stand_ins_are_ascii_and_stand_for_nothing_that_is() -> None:
    assert all(
        character.isascii() and len(character) == 1 for character in STAND_INS.values()
    )
    assert not any(glyph.isascii() for glyph in STAND_INS)


def test_what_is_none_of_ours_is_spelt_out() -> None:
    assert (
        "a→漢\U0001f9c0\ud800".encode("ascii", HANDLER) == rb"a>\u6f22\U0001f9c0\ud800"
    )


def test_a_stream_is_spared_for_a_while() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp437")
    with unprintable_replaced(stream):
        stream.write("✘")
    with pytest.raises(UnicodeEncodeError):
        stream.write("✘")
    replace_unprintable(stream)
    stream.write("✘")
    stream.flush()
    assert stream.buffer.getvalue() == b"xx"
    with unprintable_replaced(io.StringIO()):
        pass
