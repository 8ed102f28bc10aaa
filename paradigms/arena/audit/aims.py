"""Aims of a subject with little memory. An aim names a member of a group of places by
its rank, counted from something that the subject sees.

An aim contains no name of the protocol. Members are ranked clockwise from a zero
(north, straight ahead, the subject's own side, or a glyph that is not always on the
same squares), or by their distance from the subject or from such a glyph.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cheesebench.interfaces import Scene
from cheesebench.lesions import INTACT, Lesion
from cheesebench.paradigms.arena.audit import runs
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.scenes import canvas_of, hidden_by

#: Glyphs of walls, floor, void and water: they give no direction.
PLAIN = "#. ~"
#: How an aim goes on after the first member: not at all, or to the other members in one
#: direction.
WAITS, CLOCKWISE, ANTICLOCKWISE = "=", "+", "-"
NORTH, AHEAD, OWN_SIDE = "north", "straight ahead", "its own side"
#: Prefix of a zero whose ranks count by distance: from the glyph after the prefix, or
#: from the subject if no glyph follows.
NEAR = "near "
#: ``DELAYS``: possible waits, in steps. ``ROUNDS``: possible numbers of repetitions.
DELAYS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 64)
ROUNDS = (2, 3, 4, 5, 6, 8, 10, 15, 30)
#: A vector shorter than this (in cells) is too short to have a direction.
AT_THE_MIDDLE = 0.3
#: What is visible at a moment: the number of closed doors, each glyph with the number
#: of its squares, and the text.
Kind = tuple[int, tuple[tuple[str, int], ...], tuple[str, ...]]
#: Two keys for what a subject perceives. The first one: what is visible, which doors
#: are closed, and where each glyph is. The second one adds the names of the places in
#: which the subject stands.
Sight = tuple[tuple[object, ...], tuple[object, ...]]
Seen = tuple[frozenset[str], tuple[tuple[str, str], ...], tuple[str, ...]]
Square = tuple[int, int]


class Stop(NamedTuple):
    """A place to go to (an empty name: the place where the subject is), and the steps
    to spend there.
    """

    place: str
    steps: int


class Aim(NamedTuple):
    """The members of a group that a subject visits, and their order. Without a group,
    the subject waits.
    """

    group: int = -1
    """Number of the group, or -1 without a group."""
    zero: str = NORTH
    """What the members are numbered from: a direction or a glyph, clockwise, or by
    distance from the subject or a glyph (after ``NEAR``).
    """
    first: int = 0
    """Number of the member to visit first, from 0."""
    then: str = WAITS
    """WAITS, CLOCKWISE, ANTICLOCKWISE, or the number of members of an arc, whose
    nearest comes first.
    """
    lit: str = ""
    """Only members that show this glyph, if any do."""
    past: str = ""
    """Only members visited in this trial (``old``), or only the others (``new``), if
    there are any.
    """
    before: int = 0
    """Steps to wait at the beginning."""
    stay: int = 0
    """Steps to spend at each member."""
    rounds: int = 1
    """Number of visits to all of them."""
    onward: Aim | None = None
    """The next aim, if any."""

    @property
    def simple(self) -> Aim:
        """An aim that goes to the same first member, and does nothing else."""
        return Aim(self.group, self.zero, self.first)

    def words(self, names: Sequence[str]) -> str:
        """Return the aim in words. ``names`` are the names of the groups."""
        said = f"waits {self.before} steps, then " if self.before else ""
        said += self._goes(names[self.group]) if self.group >= 0 else "waits"
        said += f", {self.rounds} times" if self.rounds > 1 else ""
        said += f", staying {self.stay} steps" if self.stay else ""
        return said + (f"; then {self.onward.words(names)}" if self.onward else "")

    def _goes(self, name: str) -> str:
        name = " ".join(filter(None, [self.past, name]))
        name += f" that shows {self.lit}" if self.lit else ""
        counted = _counted_from(self.zero)
        if self.then.isdigit():
            return (
                f"goes to the nearest {name} of {self.then} from number "
                f"{self.first + 1} on, {counted}, then to the others"
            )
        after = {
            WAITS: "and waits",
            CLOCKWISE: "then on clockwise",
            ANTICLOCKWISE: "then on anticlockwise",
        }[self.then]
        return f"goes to {name} {self.first + 1}, {counted}, {after}"


def _counted_from(zero: str) -> str:
    if zero.startswith(NEAR):
        glyph = zero.removeprefix(NEAR)
        return f"by distance from {f'glyph {glyph}' if glyph else 'itself'}"
    known = zero in (NORTH, AHEAD, OWN_SIDE)
    return f"clockwise from {zero if known else f'glyph {zero}'}"


def manners(members: int) -> list[str]:
    """Return the possible ways to go on after the first member, in a group of this
    size.
    """
    arcs = {arc for arc in (2, members // 4, members // 2, members) if arc > 1}
    some = sorted(arcs) if members > 2 else []
    return [WAITS, CLOCKWISE, ANTICLOCKWISE, *map(str, some)]


class Places:
    """The groups of places that may matter in a protocol, and the positions of their
    members.
    """

    def __init__(self, paradigm: ArenaParadigm, lesion: Lesion = INTACT) -> None:
        program = paradigm.program
        self._lesion, self._hidden = lesion, hidden_by(lesion, paradigm.specification)
        self.geometry, self.states = program.geometry, program.states
        self.judged = paradigm.specification.judged_blocks
        self.ways = runs.ways_of(program)
        events, arena = runs.events_of(program), self.geometry.arena
        inside = {name for members in arena.groups.values() for name in members}
        alone = tuple(name for name in events.everywhere if name not in inside)
        self.groups: list[tuple[str, tuple[str, ...]]] = [
            (name, tuple(members))
            for name, members in arena.groups.items()
            if {*members} & {*events.everywhere}
        ]
        self.groups += [("place", alone)] if alone else []
        #: State -> indices (in ``groups``) of the groups whose members its rules react
        #: to, or of all groups if there are none.
        self.of_state = {
            state: [
                number
                for number, (_, members) in enumerate(self.groups)
                if {*members} & {*names}
            ]
            or [*range(len(self.groups))]
            for state, names in events.of_state.items()
        }
        names = [name for _, members in self.groups for name in members]
        self.middle = {name: self.geometry.middle((name,)) for name in names}
        self.cells = {name: {*self.geometry.cells_of((name,))} for name in names}
        self.squares: dict[str, set[Square]] = {
            name: {arena.cells[cell] for cell in self.cells[name]}
            | {*arena.solids.get(name, ())}
            for name in names
        }
        self._centre = [
            _mean([self.middle[name] for name in members]) for _, members in self.groups
        ]
        self._canvas = canvas_of(arena)
        self._glyphs: dict[object, dict[str, frozenset[Square]]] = {}
        #: Picture -> closed doors, shown glyphs and text with which it was first seen.
        self._pictures: dict[Scene, Seen] = {}
        self._seen: dict[object, Seen] = {}
        #: Glyph -> all sets of squares where it was seen.
        self.seen: dict[str, set[frozenset[Square]]] = {}

    def bearing(self, group: int, square: tuple[float, float]) -> float | None:
        """Return the direction of a square from the centre of a group, in degrees, or
        None at the centre.
        """
        x, y = self._centre[group]
        dx, dy = square[0] - x, square[1] - y
        if abs(dx) + abs(dy) < AT_THE_MIDDLE:
            return None
        return math.degrees(math.atan2(dx, -dy)) % 360

    def from_centre(self, group: int, name: str) -> float:
        return math.dist(self.middle[name], self._centre[group])

    def glyphs(self, life: ArenaSubject) -> dict[str, frozenset[Square]]:
        """Return the squares of each glyph that the subject sees in the present
        picture, without ``PLAIN`` glyphs.
        """
        look = life.look
        if look.key not in self._glyphs:
            found: dict[str, set[Square]] = {}
            for square, glyph in self._tiles(life):
                found.setdefault(glyph, set()).add(square)
            self._glyphs[look.key] = {one: frozenset(at) for one, at in found.items()}
            for glyph, squares in self._glyphs[look.key].items():
                self.seen.setdefault(glyph, set()).add(squares)
        return self._glyphs[look.key]

    def _tiles(self, life: ArenaSubject) -> Iterator[tuple[Square, str]]:
        """Yield the squares and glyphs that the subject sees under its lesion, without
        ``PLAIN`` glyphs.
        """
        if self._lesion.sees_nothing or self._lesion.sees_pose_only:
            return
        left, top = self._canvas.left, self._canvas.top
        for row, tiles in enumerate(self._hidden.filtered(life.look.scene).tiles):
            for column, tile in enumerate(tiles):
                if tile.glyph not in PLAIN:
                    yield (column + left, row + top), tile.glyph

    def seen_of(self, life: ArenaSubject) -> Seen:
        """Return the closed doors, the shown glyphs with their places, and the text, as
        far as the subject sees them under its lesion. If the lesion changes the
        picture, doors are left out.
        """
        if not self._lesion.changes_the_picture:
            return self._as_drawn(life)
        tiles = tuple((str(square), glyph) for square, glyph in self._tiles(life))
        blind = self._lesion.sees_nothing or self._lesion.sees_pose_only
        said = () if blind else self._hidden.filtered(life.look.scene).text
        return frozenset(), tiles, said

    def _as_drawn(self, life: ArenaSubject) -> Seen:
        """Return what is seen if no lesion changes the picture. Looks with equal
        pictures count as one, because the subject cannot tell them apart.
        """
        look = life.look
        if look.key not in self._seen:
            closed, _, shown, text = look.key
            self._seen[look.key] = self._pictures.setdefault(
                look.scene, (closed, shown, text)
            )
        return self._seen[look.key]

    def zeros(self) -> list[str]:
        """Return the zeros from which ranks may be counted. Glyphs that are not always
        on the same squares are among them.
        """
        sizes = {glyph: max(map(len, at)) for glyph, at in self.seen.items()}
        moving = [glyph for glyph, at in self.seen.items() if len(at) > 1]
        moving.sort(key=lambda one: (sizes[one], one))
        near = [NEAR + glyph for glyph in ["", *moving]]
        return [NORTH, AHEAD, OWN_SIDE, *moving, *near]

    def here(self, life: ArenaSubject) -> set[str]:
        cell = self.geometry.cell(life.pose)
        return {name for name, cells in self.cells.items() if cell in cells}


def _mean(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return (
        sum(x for x, _ in points) / len(points),
        sum(y for _, y in points) / len(points),
    )


class Moment:
    """A moment at which the subject decides: what it sees, and which places it can
    reach.
    """

    __slots__ = (
        "_open",
        "_orders",
        "at",
        "begun",
        "edges",
        "happened",
        "judged",
        "kind",
        "life",
        "memo",
        "places",
        "sight",
        "steps",
        "told",
        "visited",
        "waited",
    )

    def __init__(
        self,
        places: Places,
        life: ArenaSubject,
        visited: frozenset[str],
        at: tuple[int, int] | None = None,
    ) -> None:
        self.places, self.life, self.visited, self.at = places, life, visited, at
        closed, shown, text = places.seen_of(life)
        often = Counter(glyph for _, glyph in shown)
        self.kind: Kind = len(closed), tuple(sorted(often.items())), text
        here = tuple(sorted(places.here(life)))
        where = tuple(sorted(closed)), shown
        self.sight: Sight = (self.kind, *where), (self.kind, *where, here)
        self.judged = life.block in places.judged
        #: Reward and text before the first decision, if there were any.
        self.begun: tuple[float, tuple[str, ...]] | None = None
        #: ``edges``: number of an aim -> where it leads. ``memo``: one aim for each
        #: sight -> the result of the whole trial. ``steps``: number of an aim -> what
        #: an automaton needs to go on.
        self.edges: dict[int, Edge] = {}
        #: ``happened``: stops in order, up to the first event -> where they lead.
        #: ``waited``: the same for stops at which no event happened.
        self.happened: dict[tuple[Stop, ...], Edge] = {}
        self.waited: dict[tuple[Stop, ...], Edge] = {}
        self.memo: dict[tuple[int, ...], Passed] = {}
        self.steps: dict[int, tuple[Moment | None, int, tuple[int, ...], Edge]] = {}
        #: Place where a trial ended -> its ranks, one for each zero.
        self.told: dict[tuple[int, str], tuple[int, ...]] = {}
        self._orders: dict[tuple[int, str], dict[str, int]] = {}
        self._open: dict[int, list[str]] = {}

    def ranks(self, group: int, zero: str) -> dict[str, int]:
        """Return each member's rank: clockwise from a zero, or by distance. If the zero
        is not visible or gives no direction, members are ranked from north or, by
        distance, in the order of the file.
        """
        key = group, zero
        if key not in self._orders:
            near = zero.startswith(NEAR)
            by = self._by_distance(zero) if near else self._clockwise(group, zero)
            order = sorted(self.places.groups[group][1], key=by)
            self._orders[key] = {name: number for number, name in enumerate(order)}
        return self._orders[key]

    def _by_distance(self, zero: str) -> Callable[[str], float]:
        middle, geometry = self.places.middle, self.places.geometry
        own = geometry.arena.cells[geometry.cell(self.life.pose)]
        squares = self.places.glyphs(self.life).get(zero.removeprefix(NEAR), ())
        points = [own] if zero == NEAR else sorted(squares)
        return lambda name: round(
            min((math.dist(middle[name], one) for one in points), default=0.0), 2
        )

    def _clockwise(self, group: int, zero: str) -> Callable[[str], tuple[float, float]]:
        places = self.places
        start = self._direction(group, zero) or 0.0

        def clockwise(name: str) -> tuple[float, float]:
            way = places.bearing(group, places.middle[name]) or 0.0
            turned = round(way - start, 2) % 360
            apart = places.from_centre(group, name)
            return 0.0 if turned > 359.9 else turned, apart

        return clockwise

    def _direction(self, group: int, zero: str) -> float | None:
        places, geometry, pose = self.places, self.places.geometry, self.life.pose
        if zero == NORTH:
            return 0.0
        if zero == AHEAD:
            return 45.0 * geometry.heading(pose)
        if zero == OWN_SIDE:
            return places.bearing(group, geometry.arena.cells[geometry.cell(pose)])
        found = [
            math.radians(way)
            for square in sorted(places.glyphs(self.life).get(zero, ()))
            if (way := places.bearing(group, square)) is not None
        ]
        dx, dy = sum(map(math.sin, found)), sum(map(math.cos, found))
        if abs(dx) + abs(dy) < 1e-6:
            return None
        return math.degrees(math.atan2(dx, dy)) % 360

    def reachable(self, group: int) -> list[str]:
        if group not in self._open:
            life, places = self.life, self.places
            listen, near = places.states[life.state].listen, life.pose >> 2
            own = places.geometry.cell(life.pose)
            self._open[group] = [
                name
                for name in places.groups[group][1]
                if places.ways.to(life.tables, listen, name).actions[near]
                != runs.NO_WAY
                and own not in places.cells[name]
            ]
        return self._open[group]

    def stops(self, aim: Aim) -> tuple[Stop, ...]:
        first = (Stop("", aim.before),) if aim.before else ()
        every = tuple(Stop(name, aim.stay) for name in self.targets(aim))
        then = self.stops(aim.onward) if aim.onward is not None else ()
        return (*first, *every * aim.rounds, *then)

    def targets(self, aim: Aim) -> tuple[str, ...]:
        """Return the places that an aim goes to, in order."""
        if aim.group < 0:
            return ()
        names, squares = self.reachable(aim.group), self.places.squares
        if aim.lit:
            lit = self.places.glyphs(self.life).get(aim.lit, frozenset())
            names = [name for name in names if squares[name] & lit] or names
        if aim.past:
            is_old = aim.past == "old"
            names = [n for n in names if (n in self.visited) == is_old] or names
        ranks = self.ranks(aim.group, aim.zero)
        turn = -1 if aim.then == ANTICLOCKWISE else 1
        after = {name: turn * (ranks[name] - aim.first) % len(ranks) for name in names}
        if aim.then.isdigit():
            near = self._by_nearness([n for n in names if after[n] < int(aim.then)])
            return (
                *near,
                *self._by_nearness([n for n in names if n not in near], near),
            )
        order = sorted(names, key=after.__getitem__)
        return tuple(order[:1] if aim.then == WAITS else order)

    def _by_nearness(
        self, names: Sequence[str], before: Sequence[str] = ()
    ) -> list[str]:
        middle, geometry = self.places.middle, self.places.geometry
        here: tuple[float, float] = geometry.arena.cells[geometry.cell(self.life.pose)]
        here = middle[before[-1]] if before else here
        left, order = list(names), list[str]()
        while left:
            nearest = min(left, key=lambda one: round(math.dist(here, middle[one]), 3))
            left.remove(nearest)
            order.append(nearest)
            here = middle[nearest]
        return order


class Edge(NamedTuple):
    """Where an aim leads. ``next`` is the next moment, or None if the trial has
    ended.
    """

    next: Moment | None
    reward: float
    said: tuple[str, ...]
    ended: tuple[int, str] | None
    """Group and member where the aim or the trial ended, or None if that is not a
    member.
    """
    score: float | None
    """The score of the trial, if it has ended, is judged and has a value, otherwise
    None.
    """
    outcome: str = ""
    following: Moment | Edge | None = None
    """Beginning of the next trial if it depends on this one, otherwise None."""


class Passed(NamedTuple):
    """The result of a trial. ``code`` stands for its reward and texts. ``ranks`` are
    the ranks of the place where it ended, one for each zero. ``depth`` is the number of
    its decisions plus its reward (on a scale from -1 to 1). ``following`` is the
    beginning of the next trial.
    """

    score: float | None
    code: int
    ranks: tuple[int, ...]
    depth: float
    following: Moment | Edge | None
