"""Views with one fault each must break the rule of that name."""

from __future__ import annotations

import itertools

import pytest

from cheesebench import HEADINGS, Picture, Scene
from cheesebench.testing import assert_view_sound, broken_view_rules

COUNTER = itertools.count()


class Good:
    """The map, the position in numbers, and the heading in letters."""

    name = "letters"
    characters = "\n" + "".join(HEADINGS) + "0123456789 "

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        rows = ["".join(tile.glyph for tile in row) for row in scene.tiles]
        return "\n".join(
            [f"{HEADINGS[heading]:2}{column:2}{row:2}", *rows, *scene.text]
        )

    def max_length(self, scene: Scene) -> int:
        return len(self.render(scene, 0, 0, 0))


class NoHeading(Good):
    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return super().render(scene, column, row, 0)


class Longer(Good):
    def max_length(self, scene: Scene) -> int:
        return super().max_length(scene) - 1


class Impure(Good):
    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return f"{super().render(scene, column, row, heading)}{next(COUNTER) % 2}"


class Undeclared(Good):
    characters = "\n"


class BlindToDoors(Good):
    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return super().render(scene, column, row, heading).replace("+", ".")


class BlindToLandmarks(Good):
    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        first, _, rest = super().render(scene, column, row, heading).partition("\n")
        return f"{first}\n{rest.replace('1', '#')}"


class Silent(Good):
    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return super().render(Scene(scene.tiles), column, row, heading)


class Painter(Good):
    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return Picture(b"GIF", super().render(scene, column, row, heading))


class WrongSize(Painter):
    def picture_size(self, scene: Scene) -> tuple[int, int]:
        return 9, 9


class Shouting(Good):
    name = "two words"


def test_a_good_view_passes() -> None:
    assert_view_sound(Good())


@pytest.mark.parametrize(
    ("view", "rule", "said"),
    [
        (NoHeading(), "heading", "look the same"),
        (Longer(), "bounded", "max_length is"),
        (Impure(), "pure", "drawn in two ways"),
        (Undeclared(), "characters", "neither in the scene"),
        (BlindToDoors(), "cues", "closed door"),
        (BlindToLandmarks(), "cues", "landmark"),
        (Silent(), "words", "is missing from the observation"),
        (Painter(), "pictures", "has no picture_size"),
        (WrongSize(), "pictures", "is not a PNG file"),
        (Shouting(), "declaration", "is not a word"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Good) else "",
)
def test_a_wrong_view_is_failed_by_the_name_of_the_rule(
    view: Good, rule: str, said: str
) -> None:
    found = {one.rule: one.text for one in broken_view_rules(view)}
    assert said in found[rule]


def test_the_error_names_the_view() -> None:
    with pytest.raises(
        AssertionError,
        match=r"the view 'letters': 1 rule is broken\n  heading: N and NE look the same",
    ):
        assert_view_sound(NoHeading())
