"""Parts of a gallery: fences, pictures beside the page or in it, and what is kept."""

from __future__ import annotations

import pytest

from cheesebench.chat import Picture
from cheesebench.commands.gallery import (
    MARK,
    Plate,
    _address,
    _fenced,
    gallery,
    kept,
)


def plate(*looks: tuple[str, str]) -> Plate:
    return Plate("maze@paper", "A maze", "state `run`, facing N", looks)


def test_a_text_is_fenced_by_more_backticks_than_it_has() -> None:
    assert _fenced("") == []
    assert _fenced("a \nb") == ["```text\na\nb\n```"]
    assert _fenced("`a``") == ["``````text\n`a``\n``````"]


def test_a_page_names_its_pictures() -> None:
    picture = Picture(b"png", "see")
    text, pictures = gallery([plate(("ascii", "#"), ("top", picture))], 3, "views")
    assert text == "\n\n".join(
        [
            f"{MARK} --seed 3 -->",
            "## maze@paper",
            "A maze; state `run`, facing N.",
            "`ascii`",
            "```text\n#\n```",
            "`top`",
            "![maze@paper from above, as a picture](views/maze.paper.top.png)",
            "```text\nsee\n```\n",
        ]
    )
    assert pictures == {"views/maze.paper.top.png": picture}
    assert (_address(picture), _address("#")) == ("data:image/png;base64,cG5n", "")


@pytest.mark.parametrize(
    ("page", "words"),
    [("mine\n", "mine\n"), (f"mine\n{MARK} --seed 0 -->\nold", "mine\n"), ("", "")],
)
def test_words_above_the_generated_part_are_kept(page: str, words: str) -> None:
    assert kept(page) == words
