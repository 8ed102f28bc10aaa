"""Lesions: their texts, and the part of a scene that they leave."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.errors import OptionError
from cheesebench.interfaces import Scene, Tile
from cheesebench.lesions import INTACT, WORDS, Hidden, Lesion, lesioned_view

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
LESIONS = st.builds(
    Lesion,
    st.frozensets(st.sampled_from(list(WORDS))),
    st.frozensets(st.just("trial") | NAMES, max_size=2),
    st.frozensets(
        st.sampled_from(["landmarks", "text", "glyph:+", "glyph:o", "glyph:="])
        | NAMES
        | NAMES.map("text:{}".format),
        max_size=3,
    ),
)


@given(LESIONS)
def test_a_text_is_read_back(lesion: Lesion) -> None:
    assert Lesion.parse(str(lesion)) == lesion


@pytest.mark.parametrize(
    "text",
    [
        "",
        "blnd",
        "blind=1",
        "amnesia",
        "amnesia=",
        "hide=",
        "hide=glyph:",
        "blind+",
        "a=b",
    ],
)
def test_what_is_no_lesion_is_an_error_with_a_remedy(text: str) -> None:
    with pytest.raises(OptionError, match=r"is not a lesion\..*Known: blind, "):
        Lesion.parse(text)


def test_a_typing_mistake_is_guessed() -> None:
    with pytest.raises(OptionError, match="Did you mean 'anhedonia'"):
        Lesion.parse("blind+anhedonai")


def test_lesions_join() -> None:
    both = Lesion.parse("blind") | Lesion.parse("amnesia=trial")
    assert str(both) == "blind+amnesia=trial"
    assert both.forgets_trials
    assert both.sees_nothing
    assert not both.feels_no_reward
    assert str(INTACT) == "intact"


class Copy:
    """A view that shows everything."""

    name, characters, reading = "copy", "", "Everything."

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        rows = ["".join(tile.glyph for tile in line) for line in scene.tiles]
        return "\n".join([*rows, *scene.text, f"{column} {row} {heading}"])

    def max_length(self, scene: Scene) -> int:
        return len(self.render(scene, 99, 99, 9))


FLOOR, WALL, SIGN, CUP = (
    Tile("floor", "."),
    Tile("wall", "#"),
    Tile("landmark", "1"),
    Tile("solid", "o"),
)
SCENE = Scene(((WALL, SIGN, WALL), (WALL, FLOOR, CUP)), ("GO",))


@pytest.mark.parametrize(
    ("lesion", "hidden", "left"),
    [
        ("blind", Hidden(), "."),
        ("pose-only", Hidden(), "1 1 4"),
        ("blind+pose-only", Hidden(), "."),
        ("hide=landmarks", Hidden(landmarks=True), "# #\n#.o\nGO\n1 1 4"),
        (
            "hide=landmarks",
            Hidden(landmarks=True, instead={(1, 0): WALL}),
            "###\n#.o\nGO\n1 1 4",
        ),
        (
            "hide=cup",
            Hidden(squares=frozenset({(2, 1)}), instead={(2, 1): WALL}),
            "#1#\n#.#\nGO\n1 1 4",
        ),
        ("hide=glyph:o", Hidden(glyphs=frozenset("o")), "#1#\n#. \nGO\n1 1 4"),
        ("hide=text", Hidden(text=True), "#1#\n#.o\n1 1 4"),
        ("hide=text:run", Hidden(texts=(re.compile("GO"),)), "#1#\n#.o\n1 1 4"),
        ("hide=text:rest", Hidden(texts=(re.compile("STOP"),)), "#1#\n#.o\nGO\n1 1 4"),
        ("anhedonia", Hidden(), "#1#\n#.o\nGO\n1 1 4"),
    ],
)
def test_what_a_lesion_leaves_of_a_scene(
    lesion: str, hidden: Hidden, left: str
) -> None:
    view = lesioned_view(Copy(), Lesion.parse(lesion), hidden)
    assert view.render(SCENE, 1, 1, 4) == left
    assert len(left) <= view.max_length(SCENE)
    assert view.name == "copy"
