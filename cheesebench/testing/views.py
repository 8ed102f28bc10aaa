"""Rules for every view. For example, its observations have a bounded length, depend
only on the arguments, and show every cue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from cheesebench import interfaces
from cheesebench.chat import Picture
from cheesebench.redaction import quoted
from cheesebench.testing.rules import DECLARATION, Broken, Rules, assert_none, need

RULES: Rules[interfaces.View] = Rules()

#: The meanings of the characters in the drawings below. All other characters are floor.
_KINDS: dict[str, interfaces.TileKind] = {
    "#": "wall",
    " ": "void",
    "+": "door",
    "L": "solid",
    "1": "landmark",
    "2": "landmark",
}
#: An open field, crossing corridors, and a room so small that an agent can only turn.
_DRAWINGS = (
    "###1###\n#.....#\n#..o..#\n2.....L\n#.....#\n#.....#\n#######",
    "  ###  \n  #,#  \n###.###\n#..+..2\n###.###\n  #.#  \n  #1#  ",
    "###\n#.#\n###",
)
#: Maximum side of a picture, in pixels: more than any view needs.
MOST_PIXELS = 4096


@dataclass(frozen=True, slots=True)
class Cue:
    """Two scenes that differ in exactly one thing."""

    name: str
    present: interfaces.Scene
    absent: interfaces.Scene


def broken_view_rules(
    view: interfaces.View, *, but: Collection[str] = ()
) -> list[Broken]:
    """Return the rules that a view breaks. Rules in ``but`` are skipped."""
    return RULES.broken(view, but)


def assert_view_sound(view: interfaces.View, *, but: Collection[str] = ()) -> None:
    """Raise AssertionError with the rules that a view breaks.

    ``cheesebench audit PROTOCOL --view NAME`` says whether a protocol's cues can be
    seen in the view.
    """
    assert_none(
        f"the view '{getattr(view, 'name', view)}'", broken_view_rules(view, but=but)
    )


def scene_of(drawing: str, *text: str) -> interfaces.Scene:
    rows = drawing.split("\n")
    return interfaces.Scene(
        tuple(
            tuple(interfaces.Tile(_KINDS.get(glyph, "floor"), glyph) for glyph in row)
            for row in rows
        ),
        text,
    )


def poses(scene: interfaces.Scene) -> Iterator[tuple[int, int, int]]:
    """Yield the column, row and heading of every possible pose."""
    for row, tiles in enumerate(scene.tiles):
        for column, tile in enumerate(tiles):
            if tile.kind == "floor":
                for heading in range(len(interfaces.HEADINGS)):
                    yield column, row, heading


def cues() -> Iterator[Cue]:
    """Yield every kind of cue: landmarks, a glyph on the floor, a solid, a closed door,
    and words.
    """
    for drawing in _DRAWINGS[:2]:
        for glyph, name in (
            ("1", "landmark"),
            ("2", "another landmark"),
            ("o", "glyph on the floor"),
        ):
            if glyph in drawing:
                without = "." if glyph == "o" else "#"
                yield Cue(
                    name, scene_of(drawing), scene_of(drawing.replace(glyph, without))
                )
        for glyph, name in (
            ("L", "solid"),
            ("+", "closed door"),
            (",", "glyph at an end"),
        ):
            if glyph in drawing:
                without = "#" if glyph == "L" else "."
                yield Cue(
                    name, scene_of(drawing), scene_of(drawing.replace(glyph, without))
                )
        yield Cue("word", scene_of(drawing, "TONE"), scene_of(drawing))


def _scenes() -> Iterator[interfaces.Scene]:
    for drawing in _DRAWINGS:
        yield scene_of(drawing)
        yield scene_of(drawing, "TONE", "-- new trial --")


@RULES.rule(DECLARATION)
def _declaration(view: interfaces.View) -> None:
    name: Any = view.name
    need(
        isinstance(name, str) and name.replace("_", "").replace("-", "").isalnum(),
        f"the name {name!r} is not a word",
    )
    need(isinstance(view.characters, str), "characters is not text")
    reading: Any = getattr(view, "reading", "")
    good = isinstance(reading, str) and len(reading) < 1000
    need(
        good,
        "reading must be a string of fewer than 1000 characters, because it is part of every prompt",
    )


@RULES.rule("pure")
def _pure(view: interfaces.View) -> None:
    """An observation must depend only on the arguments, because it is drawn once and
    cached.
    """
    for scene in _scenes():
        first = {pose: view.render(scene, *pose) for pose in poses(scene)}
        for pose in reversed(list(first)):
            need(
                view.render(scene, *pose) == first[pose],
                f"the same pose {pose} of a scene is drawn in two ways",
            )
        twin = replace(scene)
        pose = next(iter(first))
        need(
            view.render(twin, *pose) == first[pose],
            "two equal scenes are drawn in two ways",
        )


@RULES.rule("bounded")
def _bounded(view: interfaces.View) -> None:
    for scene in _scenes():
        most = view.max_length(scene)
        for pose in poses(scene):
            observation = view.render(scene, *pose)
            need(
                isinstance(observation, str),
                f"render returns {type(observation).__name__}, but a string is expected",
            )
            length = len(observation)
            need(
                length <= most,
                f"an observation has {length} characters, but max_length is {most}",
            )


@RULES.rule("characters")
def _characters(view: interfaces.View) -> None:
    for scene in _scenes():
        allowed = (
            set(view.characters)
            | {tile.glyph for row in scene.tiles for tile in row}
            | set("\n".join(scene.text))
        )
        for pose in poses(scene):
            odd = "".join(sorted(set(str(view.render(scene, *pose))) - allowed))
            need(
                not odd,
                f"draws '{quoted(odd, 40)}', which is neither in the scene nor in 'characters'",
            )


@RULES.rule("heading")
def _heading(view: interfaces.View) -> None:
    """The heading is visible: no two headings share an observation."""
    for scene in _scenes():
        seen: dict[str, int] = {}
        for column, row, heading in poses(scene):
            observation = view.render(scene, column, row, heading)
            other = seen.setdefault(observation, heading)
            both = f"{interfaces.HEADINGS[other]} and {interfaces.HEADINGS[heading]}"
            need(
                other == heading,
                f"{both} look the same: the observation does not show the heading",
            )


@RULES.rule("cues")
def _cues(view: interfaces.View) -> None:
    hidden = []
    for cue in cues():
        standing = set(poses(cue.present)) & set(poses(cue.absent))
        if not any(
            view.render(cue.present, *pose) != view.render(cue.absent, *pose)
            for pose in sorted(standing)
        ):
            hidden.append(cue.name)
    names = ", ".join(dict.fromkeys(hidden))
    need(not hidden, f"these cannot be seen from any position: {names}")


@RULES.rule("words")
def _words(view: interfaces.View) -> None:
    for drawing in _DRAWINGS:
        scene = scene_of(drawing, "TONE", "-- new trial --")
        for pose in poses(scene):
            observation = view.render(scene, *pose)
            need(
                "TONE" in observation and "-- new trial --" in observation,
                "the state's text is missing from the observation",
            )


@RULES.rule("pictures")
def _pictures(view: interfaces.View) -> None:
    """Pictures have the declared size, and a text view returns no pictures."""
    for scene in _scenes():
        pose = next(poses(scene))
        observation = view.render(scene, *pose)
        if not isinstance(view, interfaces.PictureView):
            need(
                not isinstance(observation, Picture),
                "returns pictures but has no picture_size",
            )
            continue
        need(
            isinstance(observation, Picture), "has picture_size but returns no Picture"
        )
        if isinstance(observation, Picture):
            size, drawn = view.picture_size(scene), png_size(observation.png)
            need(
                size == drawn,
                f"picture_size is {size}, but the picture has {drawn} pixels",
            )
            need(
                max(drawn) <= MOST_PIXELS,
                f"a picture of {drawn} pixels is larger than models accept",
            )


def png_size(png: bytes) -> tuple[int, int]:
    """Return the width and height of a PNG. Raise BreachError for anything else."""
    need(
        png[:8] == b"\x89PNG\r\n\x1a\n" and png[12:16] == b"IHDR",
        "a picture is not a PNG file",
    )
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
