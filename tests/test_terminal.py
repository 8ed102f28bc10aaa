"""Every glyph of ours has a stand-in of one character in every code page."""

from __future__ import annotations

import io
import re

import pytest

from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import Frame
from cheesebench.terminal import (
    HANDLER,
    STAND_INS,
    coloured,
    film_strip,
    printable,
    replace_unprintable,
    shows_colours,
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


def frame(action: str, picture: str, reward: float = 0.0) -> Frame:
    return Frame(action, picture, reward)


def test_frames_stand_side_by_side_as_far_as_there_is_room() -> None:
    frames = [
        frame("", "ab\n.#"), frame("F", "cd", 1.0), frame("L", "e\nf\ng\x1b", -0.5), frame(".", "h"), frame("?", "i"),
    ]  # fmt: skip
    wide = """\
0 start   1 FORWARD +1   2 ROTATE_LEFT -0.5   3 (frozen)   4 ?
ab        cd             e                    h            i
.#                       f
                         g\\x1b"""
    assert film_strip(frames, 62) == wide
    assert (
        film_strip(frames, 61)
        == wide.replace("   4 ?", "").replace("h            i", "h") + "\n\n4 ?\ni"
    )
    assert film_strip(frames[:2], 1) == "0 start\nab\n.#\n\n1 FORWARD +1\ncd"
    assert film_strip([]) == ""


def test_a_long_trial_is_cut_in_its_middle() -> None:
    frames = [frame("F", str(number)) for number in range(10)]
    assert film_strip(frames, 80, 4, 6).count("FORWARD") == 10
    assert film_strip(frames, 80, 2, 1) == (
        "0 FORWARD   1 FORWARD\n0           1\n\n... 7 more ...\n\n9 FORWARD\n9"
    )
    assert "... 2 more ..." in film_strip(frames)
    assert "more" not in film_strip(frames[:8])
    assert film_strip(frames[:8]).count("FORWARD") == 8


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_verdicts_are_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    said = "✔ PASS, FAIL; ? INCONCLUSIVE ERROR error warning better worse PASSED x-FAIL FAIL-x"
    shown = coloured(said, Terminal())
    colours = re.findall("\x1b\\[([\\d;]+)m(.*?)\x1b\\[0m", shown)
    assert colours == [
        ("32", "✔ PASS"), ("31", "FAIL"), ("33", "? INCONCLUSIVE"), ("1;31", "ERROR"), ("31", "error"),
        ("33", "warning"), ("32", "better"), ("31", "worse"),
    ]  # fmt: skip
    assert re.sub("\x1b\\[[\\d;]+m", "", shown) == said
    assert coloured(said, io.StringIO()) == said
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, value)
            assert not shows_colours(Terminal())
    assert shows_colours(Terminal())


def test_control_characters_are_spelt_out_line_by_line() -> None:
    assert printable("a\tb\nc\x1b[2Jd\r\né") == "a\\tb\nc\\x1b[2Jd\\r\né"
    assert printable("plain\ntext") == "plain\ntext"
