"""A film shows the events, fits the terminal, and never lets a text control it."""

from __future__ import annotations

from cheesebench.records import Frame
from cheesebench.terminal import film_strip, printable


def test_frames_stand_side_by_side() -> None:
    frames = [
        Frame("", "####\n#↑.#\n####", 0.0),
        Frame("F", "####\n#.→#\n####\nTONE", 1.0),
        Frame(".", "##", -0.5),
    ]
    assert film_strip(frames).split("\n") == [
        "0 start   1 FORWARD +1   2 (frozen) -0.5",
        "####      ####           ##",
        "#↑.#      #.→#",
        "####      ####",
        "          TONE",
    ]


def test_a_narrow_terminal_gets_more_rows() -> None:
    frames = [Frame("S", "#" * 10, 0.0)] * 4
    assert film_strip(frames, width=23).count("\n\n") == 1
    assert film_strip(frames, width=22).count("\n\n") == 3


def test_a_long_trial_is_cut_and_says_how_much() -> None:
    frames = [Frame("S", "#", 0.0)] * 20
    shown = film_strip(frames, first=3, last=5)
    assert "... 12 more ..." in shown
    seen = [f"{step} STAY" in shown for step in (0, 2, 3, 14, 15, 19)]
    assert seen == [True, True, False, False, True, True]
    assert "more ..." not in film_strip(frames[:8], first=3, last=5)


def test_a_text_cannot_command_the_terminal() -> None:
    assert printable("a\x1b[2J\r\u202eb\nc") == "a\\x1b[2J\\r\\u202eb\nc"
    assert "\x1b" not in film_strip([Frame("", "\x1b]0;title\x07", 0.0)])
