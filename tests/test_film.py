"""A film shows what happened, fits the terminal, and never lets a text command it."""

from __future__ import annotations

from cheesebench.film import Frame, film, printable


def test_frames_stand_side_by_side() -> None:
    frames = [
        Frame(0, "", 0.0, "####\n#↑.#\n####"),
        Frame(1, "FORWARD", 1.0, "####\n#.→#\n####\nTONE"),
    ]
    assert film(frames).split("\n") == [
        "0 start   1 FORWARD +1",
        "####      ####",
        "#↑.#      #.→#",
        "####      ####",
        "          TONE",
    ]


def test_a_narrow_terminal_gets_more_rows() -> None:
    frames = [Frame(number, "STAY", 0.0, "#" * 10) for number in range(4)]
    assert film(frames, width=23).count("\n\n") == 1
    assert film(frames, width=22).count("\n\n") == 3


def test_a_long_trial_is_cut_and_says_how_much() -> None:
    frames = [Frame(number, "STAY", 0.0, "#") for number in range(20)]
    shown = film(frames, first=3, last=5)
    assert "... 12 frames ..." in shown
    assert [f"{number} STAY" in shown for number in (0, 2, 3, 14, 15, 19)] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    assert "frames ..." not in film(frames[:8], first=3, last=5)


def test_a_text_cannot_command_the_terminal() -> None:
    assert printable("a\x1b[2J\r\u202eb\nc") == "a\\x1b[2J\\r\\u202eb\nc"
    assert "\x1b" not in film([Frame(0, "\x1b[1m", 0.0, "\x1b]0;title\x07")])
