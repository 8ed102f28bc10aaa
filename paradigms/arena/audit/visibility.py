"""Cue visibility: in every view, does each cue look unlike its absence from at least one pose that can be reached?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cheesebench.interface_checks import rendered
from cheesebench.interfaces import Scene, Tile, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import DARKNESS, lives_for
from cheesebench.paradigms.arena.audit.walkers import Walker, walk, wanderer
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.scenes import LANDMARK, Gallery, LookKey, canvas_of
from cheesebench.protocol import Arena
from cheesebench.protocol.arena import FLOOR, VOID, WALL, Square


@dataclass(frozen=True, slots=True)
class Cue:
    """Something that is to be seen: what it is, a scene with it, the same one without it, and where one can stand."""

    name: str
    present: Scene
    absent: Scene
    poses: Sequence[int]


@dataclass(slots=True)
class Met:
    """Where an appearance occurs: its first state, and the poses that the subject can reach while it lasts."""

    state: str
    poses: set[int] = field(default_factory=set)


def looks(paradigm: ArenaParadigm, trials: int, seed: int) -> dict[LookKey, Met]:
    """Return the looks that a wandering subject meets, with all poses that it could take while it is met with them."""
    found: dict[LookKey, Met] = {}
    program = paradigm.program

    def note(life: ArenaSubject, _: str) -> None:
        met = found.setdefault(program.states[life.state].read_look(life), Met(life.state))
        _spread(met.poses, life.pose, life.tables.moves)

    for own_seed, subject, count in lives_for(paradigm.specification, trials, seed):
        chance = random.Random(f"{own_seed}|{subject}|looks")
        life = ArenaSubject(program, DARKNESS, own_seed, subject)
        walker = Walker(program, wanderer(chance), everywhere=True)
        for _ in walk(life, walker, paradigm.specification, count, note, every_block=True):
            pass
    return found


def _spread(poses: set[int], start: int, moves: Sequence[int]) -> None:
    """Add a pose, and all that can be reached from it."""
    waiting = [] if start in poses else [start]
    poses.update(waiting)
    while waiting:
        pose = waiting.pop()
        for following in moves[pose : pose + 4]:
            if following not in poses:
                poses.add(following)
                waiting.append(following)


def cues(paradigm: ArenaParadigm, view: View, met: dict[LookKey, Met]) -> Iterator[Cue]:
    """Yield the cues: landmarks, glyphs of zones and solids; and of each look its own."""
    arena = paradigm.program.geometry.arena
    gallery = Gallery(paradigm.program.geometry, view)
    scenes = [gallery.scene(closed, shown, text) for closed, _, shown, text in met]
    anywhere = sorted(set().union(*(one.poses for one in met.values())))
    canvas = canvas_of(arena)
    for mark in arena.landmarks:
        square = (mark.column - canvas.left, mark.row - canvas.top)
        outside = square_kind(arena, mark.column, mark.row) == VOID
        bare = Tile("void", VOID) if outside else Tile("wall", WALL)
        # A state may show it as a blank: what counts is that it can be seen where it is drawn.
        drawn = (scene for scene in scenes if scene.tiles[square[1]][square[0]].kind == "landmark")
        usual = next(drawn, scenes[0])
        yield Cue(f"landmark {mark.name}", usual, _replaced(usual, [square], bare), anywhere)
    for name, squares, usual_tile in _drawn(arena):
        present = gallery.scene((), (), ())
        at = [(column - canvas.left, row - canvas.top) for column, row in squares]
        yield Cue(f"glyph of {name}", present, _replaced(present, at, usual_tile), anywhere)
    yield from _of_states(gallery, met)


def _of_states(gallery: Gallery, met: dict[LookKey, Met]) -> Iterator[Cue]:
    for (closed, _, shown, text), one in met.items():
        state, poses = one.state, sorted(one.poses)
        whole = gallery.scene(closed, shown, text)
        for door in sorted(closed):
            yield Cue(f"{door} closed at '{state}'", whole, gallery.scene(closed - {door}, shown, text), poses)
        for pair in shown:
            without = tuple(other for other in shown if other[0] != pair[0])
            name = pair[0].removeprefix(LANDMARK)
            if name != pair[0] and pair[1] != VOID:
                without = (*without, (pair[0], VOID))  # it may be shown as it is anyway
            yield Cue(f"'{pair[1]}' on {name} at '{state}'", whole, gallery.scene(closed, without, text), poses)
        if text:
            yield Cue(f"text of '{state}'", whole, gallery.scene(closed, shown, ()), poses)


def square_kind(arena: Arena, column: int, row: int) -> str:
    """Return what a square is; void outside the map."""
    inside = 0 <= row < len(arena.kinds) and 0 <= column < len(arena.kinds[0])
    return arena.kind((column, row)) if inside else VOID


def _drawn(arena: Arena) -> Iterator[tuple[str, list[Square], Tile]]:
    """Yield zones and solids with a glyph of their own, their squares, and the tile that others of the kind have.

    Where zones overlap, a square is drawn for the smallest of them.
    """
    owners: dict[Square, str] = {}
    for name in sorted(arena.zones, key=lambda name: len(arena.zones[name]), reverse=True):
        owners |= {arena.cells[cell]: name for cell in arena.zones[name]}
    owners |= {square: name for name, solid in arena.solids.items() for square in solid}
    drawn: dict[str, list[Square]] = {}
    for square, glyph in arena.glyphs.items():
        name = owners.get(square, "")
        if name not in arena.doors and glyph != (WALL if name in arena.solids else FLOOR):
            drawn.setdefault(name, []).append(square)
    for name, squares in drawn.items():
        yield name, squares, Tile("wall", WALL) if name in arena.solids else Tile("floor", FLOOR)


def _replaced(scene: Scene, squares: Sequence[tuple[int, int]], tile: Tile) -> Scene:
    rows = [list(row) for row in scene.tiles]
    for column, row in squares:
        rows[row][column] = tile
    return Scene(tuple(map(tuple, rows)), scene.text)


def is_visible(paradigm: ArenaParadigm, view: View, cue: Cue, chance: random.Random) -> bool:
    """Return whether at least one pose shows a difference."""
    # The order does not matter, and few are needed: most cues are visible from nearly everywhere.
    poses = chance.sample(cue.poses, len(cue.poses))
    return any(seen_from(paradigm, view, cue, pose) for pose in poses)


def seen_from(paradigm: ArenaParadigm, view: View, cue: Cue, pose: int) -> bool:
    """Return whether the cue looks unlike its absence from a pose."""
    geometry = paradigm.program.geometry
    canvas = canvas_of(geometry.arena)
    column, row = geometry.arena.cells[geometry.cell(pose)]
    here = (column - canvas.left, row - canvas.top, geometry.heading(pose))
    return rendered(view, cue.present, *here) != rendered(view, cue.absent, *here)
