"""The eyes of the reasoner in the other views. It knows the nine places, and works out
its position in them.

It knows each scene that a subject can be in (the floor plan, doors, what is shown), but
neither the present one nor its own pose. Each observation and each action excludes some
scenes and poses. Squares on which the remaining ones agree are written as a map, and
all others as ``?``. If several poses remain, the reasoner is lost, and reads nothing.
"""

from __future__ import annotations

import io
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations

from cheesebench import Picture, Scene, Tile
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue

NINE = (
    *(
        "barnes_maze",
        "dnms",
        "morris_water_maze",
        "operant_chamber",
        "place_preference",
    ),
    *("radial_arm_maze", "shuttle_box", "star_maze", "t_maze"),
)
#: Replaces a picture in a message.
PICTURE = "(picture)"
ARROWS = "↑↗→↘↓↙←↖"
#: Rows and columns, by heading.
STEPS = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
#: Column, row, heading; a place (walls and landmarks) with a pose.
Pose = tuple[int, int, int]
Stand = tuple[str, Pose]
PLUGINS = PluginManager()


class _Recorder:
    """A view that stores the scenes it is given."""

    name = "recorder"
    characters = "\n"

    def __init__(self) -> None:
        # By identity, because hashing a scene takes long.
        self.scenes: dict[int, Scene] = {}

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        self.scenes[id(scene)] = scene
        return "\n".join(scene.text)

    def max_length(self, scene: Scene) -> int:
        return 99


@lru_cache(maxsize=1)
def scenes() -> list[Scene]:
    """Return the scenes that randomly moving subjects meet, and every choice of baited
    cups and of two windows.
    """
    chance, found = random.Random(0), _Recorder()
    catalogue = Catalogue(PLUGINS.protocol_directories)
    for protocol in NINE:
        paradigm = PLUGINS.compile(catalogue.find(protocol))
        for subject in range(24):
            life = paradigm.environment(found, 1, subject)
            for _ in range(20):
                if life.begin_trial() is None:
                    break
                while not life.step(chance.randrange(4))[2]:
                    pass
    known = dict.fromkeys(found.scenes.values())
    for scene in list(known):
        signs, most = ("o*", 4) if scene.text == ("food was here",) else ("=O", 2)
        spots = [
            (y, x)
            for y, row in enumerate(scene.tiles)
            for x, tile in enumerate(row)
            if tile.glyph in signs
        ]
        for chosen in combinations(spots, most):
            rows = [list(row) for row in scene.tiles]
            for y, x in spots:
                rows[y][x] = Tile(rows[y][x].kind, signs[(y, x) in chosen])
            known[Scene(tuple(map(tuple, rows)), scene.text)] = None
    return list(known)


@cache
def place_of(number: int) -> str:
    """Return the fixed part of a scene within a trial: its walls and landmarks."""
    scene = scenes()[number]
    kept = ("wall", "landmark", "void")
    return "\n".join(
        "".join(tile.glyph if tile.kind in kept else "." for tile in row)
        for row in scene.tiles
    )


def poses(scene: Scene) -> Iterable[Pose]:
    if scene.text == ("food was here",):  # the subject is held there
        return [(5, 5, heading) for heading in range(8)]
    return [
        (x, y, heading)
        for y, row in enumerate(scene.tiles)
        for x, tile in enumerate(row)
        if tile.kind == "floor"
        for heading in range(8)
    ]


#: Poses from which something is visible, with the numbers of the scenes there.
Stands = dict[Stand, list[int]]


@cache
def atlas(view: str) -> dict[str, Stands]:
    """Return, for each observation in a view of text, the poses where it occurs."""
    drawn, found = (
        PLUGINS.view(view),
        defaultdict[str, Stands](lambda: defaultdict(list)),
    )
    for number, scene in enumerate(scenes()):
        for pose in poses(scene):
            found[drawn.render(scene, *pose)][place_of(number), pose].append(number)
    return dict(found)


_topdown = cache(lambda: PLUGINS.view("topdown_2d"))


@lru_cache(maxsize=2000)
def _picture(number: int, pose: Pose) -> bytes:
    seen = _topdown().render(scenes()[number], *pose)
    assert isinstance(seen, Picture)
    return seen.png


@lru_cache(maxsize=10_000)
def pictured(png: bytes, words: str) -> Stands:
    """Return the poses of a picture, by the red drop in it, and by comparison."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    walls = (pixels == (66, 72, 84)).all(2)
    rows, columns = np.nonzero((pixels == (214, 0, 32)).all(2))
    found: Stands = defaultdict(list)
    for number, scene in enumerate(scenes()):
        if "\n".join(scene.text) != words:
            continue
        high, wide = len(scene.tiles), len(scene.tiles[0])
        side = len(pixels) // max(high, wide) // 2 * 2
        left, top = ((len(pixels) - size * side) // 4 * 2 for size in (wide, high))
        across, down = (
            (columns.mean() + 0.5 - left) / side,
            (rows.mean() + 0.5 - top) / side,
        )
        # The centre of the drop is a little ahead of the centre of the square.
        x, y = int(across), int(down)
        near = round(math.degrees(math.atan2(across - x - 0.5, y + 0.5 - down)) / 45)
        middles = walls[top + side // 2 :: side, left + side // 2 :: side][:high, :wide]
        solid = [[tile.kind == "wall" for tile in row] for row in scene.tiles]
        if 0 <= x < wide and 0 <= y < high and (middles <= np.array(solid)).all():
            for heading in (near % 8, (near - 1) % 8, (near + 1) % 8):
                if _picture(number, (x, y, heading)) == png:
                    found[place_of(number), (x, y, heading)].append(number)
                    break
    return found


def follows(before: Stand, after: Stand, action: str) -> bool:
    """Whether an action can lead from one position to another."""
    (place, (x, y, heading)), (other, (column, row, facing)) = before, after
    down, across = STEPS[heading]
    moved, turned = (column - x, row - y), (facing - heading) % 8
    allowed = {"ROTATE_LEFT": (6, 7), "ROTATE_RIGHT": (1, 2)}.get(action, (0,))
    steps = ((0, 0), (across, down)) if action == "FORWARD" else ((0, 0),)
    return place == other and moved in steps and turned in allowed


@cache
def drawn(stand: Stand, numbers: tuple[int, ...]) -> tuple[str, ...]:
    """Return the map on which all scenes agree."""
    column, row, heading = stand[1]
    agreeing = [scenes()[number] for number in numbers]
    lines = [
        [
            tiles[0].glyph if len({tile.glyph for tile in tiles}) == 1 else "?"
            for tiles in zip(*line, strict=True)
        ]
        for line in zip(*(scene.tiles for scene in agreeing), strict=True)
    ]
    lines[row][column] = ARROWS[heading]
    return (*map("".join, lines), *agreeing[0].text)


class Eyes:
    """Reads the observations of a prompt one after another."""

    def __init__(self) -> None:
        self.stands: Stands = {}

    def read(
        self, action: str, seen: Sequence[str], pictures: Iterator[bytes]
    ) -> tuple[str, ...]:
        """Return the observation as a map with words below it; nothing if
        it is lost.
        """
        if seen[0] == PICTURE:
            found = pictured(next(pictures), "\n".join(seen[1:]))
        elif seen[0].startswith("facing "):
            found = atlas("ascii_3d" if seen[1] else "ascii_2d_fpv")["\n".join(seen)]
        else:
            return tuple(seen)
        follow = {
            stand: some
            for stand, some in found.items()
            if any(follows(before, stand, action) for before in self.stands)
        }
        self.stands = follow or found
        if len(self.stands) > 1:
            return ()
        ((stand, numbers),) = self.stands.items()
        return drawn(stand, tuple(numbers))
