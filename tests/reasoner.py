"""A reasoner that sees nothing but the text of the prompts. Its results show the
abilities of a perfect language model.

It is a backend (``cheesebench.run("reasoner/ideal", plugins=[reasoner])``) and keeps
nothing between calls: all its knowledge of a life comes from the messages of the prompt
and from its own LEARNINGS, which are facts as JSON. It knows how the nine paradigms
work, like somebody who has read about them, and distinguishes them by their maps. If it
knows nothing, it guesses by a hash of the prompt. In views other than the map it sees
with ``tests/reasoner_eyes.py``; "?" is a square that it cannot see.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import cheesebench
from cheesebench import (
    BackendContext,
    BackendSpec,
    ChatReply,
    ChatRequest,
    Message,
    ModelEntry,
    hookimpl,
)
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, with_arena
from tests.reasoner_eyes import ARROWS, PICTURE, STEPS, Eyes

NAMES = ("FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "STAY")
_HEAD = re.compile(
    r"(NEW TRIAL|YOUR TURN|(?P<action>FORWARD|ROTATE_LEFT|ROTATE_RIGHT|STAY|waited)(?: x(?P<times>\d+))?: "
    r"reward (?P<reward>[-+.\de]+)(?: each)?)(?P<same>, unchanged)?$"
)
Facts = dict[str, Any]
Spot = tuple[int, int]


@dataclass(frozen=True)
class Moment:
    """One step or beginning in a prompt: its heading, its reward, the observation after
    it, and whether the trial ended there.
    """

    head: str
    reward: float
    seen: tuple[str, ...]
    ended: bool = False


def moments(messages: Iterable[Message]) -> Iterator[Moment]:
    """Read the messages as they are written, in any view."""
    eyes = Eyes()
    for message in messages:
        pictures = iter([part for part in message.parts if isinstance(part, bytes)])
        text = "".join(
            part if isinstance(part, str) else PICTURE for part in message.parts
        )
        head, reward, ended = "", 0.0, False
        seen: tuple[str, ...] = ()
        lines: list[str] = []
        for line in [*text.split("\n\nYour ")[0].split("\n"), "NEW TRIAL"]:
            found = _HEAD.match(line)
            if found is None and line != "TRIAL ENDED":
                lines.append(line)
                continue
            if line == "TRIAL ENDED":
                ended = True
                continue
            if head:
                seen = eyes.read(head, lines, pictures) if lines else seen
                yield Moment(head, reward, seen, ended)
            assert found is not None
            head, reward = found["action"] or found[1], float(found["reward"] or 0)
            lines, ended = [], False


def map_of(seen: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the rows of the map, and the lines of text below it."""
    walls = [
        number
        for number, line in enumerate(seen)
        if "#" in line or line.strip().isdigit()
    ]
    end = walls[-1] + 1 if walls else 0
    return list(seen[:end]), list(seen[end:])


class Picture:
    """A map: its glyphs and their places, the subject's pose, and shortest paths."""

    def __init__(self, seen: Sequence[str], headings: int) -> None:
        self.rows, words = map_of(seen)
        self.words = " ".join(words)
        self.turn = 8 // headings
        self.at = {
            (r, c): sign
            for r, row in enumerate(self.rows)
            for c, sign in enumerate(row)
        }
        self.me = next(
            (spot for spot, sign in self.at.items() if sign in ARROWS), (0, 0)
        )
        self.heading = ARROWS.find(self.at.get(self.me, "↑"))
        self.centre = (
            (len(self.rows) - 1) / 2,
            (max(map(len, self.rows), default=1) - 1) / 2,
        )

    def spots(self, signs: str) -> list[Spot]:
        return [spot for spot, sign in self.at.items() if sign in signs]

    def way(self, goal: Spot, avoid: Iterable[Spot] = ()) -> list[int]:
        """Return the actions to a square, or to pressing the object on it; none if
        there is no path.
        """
        blocked = set(avoid) - {goal}

        def free(spot: Spot) -> bool:
            return spot == goal or (
                self.at.get(spot, " ") in "?.o~,:u*" + ARROWS and spot not in blocked
            )

        queue = deque([(self.me, self.heading)])
        before: dict[tuple[Spot, int], tuple[tuple[Spot, int], int]] = {
            queue[0]: (queue[0], -1)
        }
        while queue:
            here = (r, c), heading = queue.popleft()
            if (r, c) == goal:
                way = []
                while before[here][1] >= 0:
                    here, action = before[here]
                    way.append(action)
                return way[::-1]
            dr, dc = STEPS[heading]
            ahead = (r + dr, c + dc)
            diagonal = bool(dr and dc)
            passes = not diagonal or free((r + dr, c)) or free((r, c + dc))
            moves = [
                (((r, c), (heading - self.turn) % 8), 1),
                (((r, c), (heading + self.turn) % 8), 2),
            ]
            if (
                free(ahead)
                and passes
                and not (diagonal and self.at.get(goal, " ") in "=OL")
            ):
                moves.insert(0, ((ahead, heading), 0))
            for pose, action in moves:
                if pose not in before:
                    before[pose] = (here, action)
                    queue.append(pose)
        return []

    def ring(self) -> tuple[list[Spot], int]:
        """Return the holes clockwise, and the number of the one after landmark 1."""

        def bearing(spot: Spot) -> float:
            return math.atan2(spot[0] - self.centre[0], spot[1] - self.centre[1])

        holes = self.spots("o")
        if (
            all(max(abs(self.me[0] - r), abs(self.me[1] - c)) > 1 for r, c in holes)
            and math.dist(self.me, self.centre) > 5
        ):
            holes.append(self.me)
        holes.sort(key=bearing)
        [mark] = self.spots("1")
        return holes, min(
            range(len(holes)),
            key=lambda number: (bearing(holes[number]) - bearing(mark)) % math.tau,
        )

    def in_room(self, spot: Spot) -> list[float]:
        """Return a square relative to the centre, as if landmark 1 were up, or next to
        it.
        """
        return self._turned(spot[0] - self.centre[0], spot[1] - self.centre[1], -1)

    def between(self, spot: Spot) -> str:
        """Return the two nearest landmarks."""
        return "".join(
            sorted(
                self.at[mark]
                for mark in sorted(self.spots("12345"), key=partial(math.dist, spot))[
                    :2
                ]
            )
        )

    def in_picture(self, place: Sequence[float]) -> Spot:
        r, c = self._turned(place[0], place[1], 1)
        return round(r + self.centre[0]), round(c + self.centre[1])

    def _turned(self, r: float, c: float, sign: int) -> list[float]:
        """Rotate a place about the centre as far as landmark 1 is rotated (or back), by
        eighths.
        """
        for row, column in self.spots("1")[:1]:
            bearing = math.atan2(column - self.centre[1], self.centre[0] - row)
            angle = sign * math.floor(bearing / (math.pi / 4)) * math.pi / 4
            r, c = (
                r * math.cos(angle) + c * math.sin(angle),
                c * math.cos(angle) - r * math.sin(angle),
            )
        return [round(r, 2), round(c, 2)]


def kind_of(seen: Sequence[str]) -> str:
    """Recognise the paradigm by its map."""
    text = "\n".join(seen)
    rows, _ = map_of(seen)
    if "~" in text:
        return "morris"
    if "=" in text:
        return "dnms"
    if len(rows) == 5 and len(rows[0]) == 5:
        return "operant"
    if rows and len(rows[0]) == 8:
        return "shuttle"
    if len(rows) == 5 and len(rows[0]) == 11:
        return "preference"
    if text.count("o") > 10:
        return "barnes"
    if len(rows) == 6:
        return "t_maze"
    if len(rows) == 15:
        return "star"
    return "radial"


#: Signals that may announce a shock.
SIGNALS = ("tone", "clicks", "light")


def signal_of(there: Picture) -> str | None:
    """Return the signal that is heard or seen."""
    for word in ("TONE", "CLICKS"):
        if word in there.words:
            return word.lower()
    return "light" if there.spots("*") else None


class Mind:
    """The facts that follow from a prompt, and the actions chosen by them."""

    def __init__(self, messages: Sequence[Message]) -> None:
        told = [message for message in messages if message.role == "user"]
        self.lives = list(moments(told))
        noted = re.search(r"\n\nYour LEARNINGS: (\{.*\})$", told[-1].text, re.MULTILINE)
        self.facts: Facts = json.loads(noted[1]) if noted else {}
        self.only_notes = "LEARNINGS only" in told[-1].text
        self.system = messages[0].text
        self.dice = int.from_bytes(
            hashlib.sha256(repr([m.text for m in messages]).encode()).digest()[:8],
            "big",
        )
        self.lost = not self.lives[-1].seen
        seen = next((one.seen for one in reversed(self.lives) if one.seen), ())
        self.kind = kind_of(seen)
        self.headings = (
            4
            if self.kind in ("t_maze", "operant", "shuttle", "preference", "dnms")
            else 8
        )
        self.now = self.picture(seen)
        learn = getattr(self, f"learn_{self.kind}")
        # Its own notes cover everything before them.
        new = len(list(moments(told[-1:]))) if noted else len(self.lives)
        last = self.lives[-new - 1] if new < len(self.lives) else None
        for one in self.lives[-new:]:
            if one.head == "NEW TRIAL":
                self.facts = {
                    name: value for name, value in self.facts.items() if name.isupper()
                }
            if one.seen:
                learn(one, self.picture(one.seen), last)
            last = one

    def picture(self, seen: Sequence[str]) -> Picture:
        return Picture(seen, self.headings)

    def guess(self, options: Sequence[Any]) -> Any:
        return options[self.dice % len(options)]

    def reply(self) -> str:
        actions = (
            []
            if self.only_notes
            else [2]
            if self.lost
            else getattr(self, f"do_{self.kind}")() or [3]
        )
        notes = json.dumps(self.facts, separators=(",", ":"))
        lines = [f"LEARNINGS: {notes}"] if "LEARNINGS:" in self.system else []
        return "\n".join(
            [*lines, "ACTIONS: " + ", ".join(NAMES[action] for action in actions[:8])]
        )

    # Facts in capital letters are kept from trial to trial.

    def learn_place(self, one: Moment, there: Picture) -> None:
        if "led to" in there.words or (one.ended and one.reward == 1):
            self.facts["GOAL"] = there.in_room(there.me)

    def learn_morris(self, one: Moment, there: Picture, last: Moment | None) -> None:
        self.learn_place(one, there)

    def do_morris(self) -> list[int]:
        goal = self.facts.get("GOAL")
        return self.now.way(
            self.now.in_picture(goal) if goal else self.guess(self.now.spots("~"))
        )

    def learn_barnes(self, one: Moment, there: Picture, last: Moment | None) -> None:
        ring, mark = there.ring()
        if there.me in ring:
            self.add("tried", list(there.me))
            if "led to" in there.words or (one.ended and one.reward == 1):
                self.facts["GOAL"] = (ring.index(there.me) - mark) % len(ring)

    def do_barnes(self) -> list[int]:
        ring, mark = self.now.ring()
        if "GOAL" in self.facts:
            return self.now.way(ring[(self.facts["GOAL"] + mark) % len(ring)], ring)
        return self.now.way(
            self.guess(
                [hole for hole in ring if list(hole) not in self.facts.get("tried", [])]
            ),
            ring,
        )

    def learn_star(self, one: Moment, there: Picture, last: Moment | None) -> None:
        if "led to" in there.words or (one.ended and one.reward == 1):
            self.facts["GOAL"] = there.between(there.me)

    def do_star(self) -> list[int]:
        cups = self.now.spots("o")
        known = [cup for cup in cups if self.now.between(cup) == self.facts.get("GOAL")]
        return self.now.way(self.guess(known or cups))

    def learn_radial(self, one: Moment, there: Picture, last: Moment | None) -> None:
        me = there.in_room(there.me)
        if there.words == "food":
            self.add("given", me)
            self.add("BAITED", me)
        baited = [there.in_room(spot) for spot in there.spots("*")]
        for place in baited:
            self.add("BAITED", place)
        if one.head == "FORWARD" and last is not None and last.seen:
            from_ = self.picture(last.seen)
            dr, dc = STEPS[from_.heading]
            ahead = (from_.me[0] + dr, from_.me[1] + dc)
            if (
                from_.at.get(ahead) == "o"
                and not one.ended
                and "led" not in there.words
            ):
                self.add("entered", from_.in_room(ahead))
                if one.reward > 0:
                    self.add("BAITED", from_.in_room(ahead))
            elif from_.at.get(ahead) == "o" and one.reward == 1:
                self.add("BAITED", from_.in_room(ahead))

    def add(self, name: str, one: list[float] | str) -> None:
        known = self.facts.setdefault(name, [])
        if one not in known:
            known.append(one)

    def do_radial(self) -> list[int]:
        cups = self.now.spots("o")
        done = [*self.facts.get("given", []), *self.facts.get("entered", [])]
        left = [spot for spot in cups if self.now.in_room(spot) not in done]
        known = [
            spot
            for spot in left
            if self.now.in_room(spot) in self.facts.get("BAITED", [])
        ]
        ways = [
            way
            for spot in (known or [self.guess(left)] if left else [])
            if (way := self.now.way(spot, cups))
        ]
        return min(ways, key=len, default=[3])

    def learn_t_maze(self, one: Moment, there: Picture, last: Moment | None) -> None:
        if gates := there.spots("+"):
            self.facts["sample"] = "left" if gates[0][1] > 3 else "right"

    def do_t_maze(self) -> list[int]:
        if "?" in self.now.rows[1]:
            return [2]
        sample = self.facts.get("sample") or self.guess(["left", "right"])
        forced = bool(self.now.spots("+"))
        goes_left = (sample == "left") == forced
        return self.now.way((1, 1) if goes_left else (1, 5))

    def learn_dnms(self, one: Moment, there: Picture, last: Moment | None) -> None:
        if "..." in there.words:
            self.facts["held"] = True
        shown = there.spots("O")
        if len(shown) == 1 and "held" not in self.facts:
            self.facts["sample"] = list(shown[0])

    def do_dnms(self) -> list[int]:
        shown = self.now.spots("O")
        others = [
            spot
            for spot in shown
            if list(spot) != self.facts.get("sample") or "held" not in self.facts
        ]
        if self.now.spots("?") and not others:
            return [2]
        new = (
            [spot for spot in shown if list(spot) != self.facts.get("sample")]
            if len(shown) > 1
            else shown
        )
        options = new if len(new) == 1 else shown
        return self.now.way(self.guess(options)) if options else [3]

    def learn_operant(self, one: Moment, there: Picture, last: Moment | None) -> None:
        if not one.ended or one.head != "FORWARD":
            return
        dr, dc = STEPS[there.heading]
        ahead = (there.me[0] + dr, there.me[1] + dc)
        if there.at.get(ahead) == "L":
            if one.reward == 1:
                self.facts["GOOD"] = there.in_room(ahead)
            else:
                self.add("BAD", there.in_room(ahead))

    def do_operant(self) -> list[int]:
        levers = [
            spot
            for spot in self.now.spots("L")
            if self.now.in_room(spot) not in self.facts.get("BAD", [])
        ]
        good = self.facts.get("GOOD")
        return self.now.way(self.now.in_picture(good) if good else self.guess(levers))

    def learn_shuttle(self, one: Moment, there: Picture, last: Moment | None) -> None:
        if signal := signal_of(there):
            self.facts.setdefault("from", "W" if there.me[1] < 4 else "E")
            self.facts |= {"signal": signal, "over": 0}
        elif before := self.facts.get("signal"):
            # The effect of a signal is felt from the second step after it, unless the
            # subject crossed.
            self.facts["over"] += 1
            if one.reward <= -1:
                self.facts["DANGER"] = before
            elif self.facts["over"] > 1 and self.facts["from"] == (
                "W" if there.me[1] < 4 else "E"
            ):
                self.add("SAFE", before)
                left = [one for one in SIGNALS if one not in self.facts["SAFE"]]
                if len(left) == 1:
                    self.facts.setdefault("DANGER", left[0])
            if self.facts["over"] > 1:
                del self.facts["signal"], self.facts["from"]

    def do_shuttle(self) -> list[int]:
        signal = signal_of(self.now)
        if signal is None or signal != self.facts.get("DANGER"):
            return (
                [2 if self.now.heading < 4 else 1]
                if self.now.spots("?") and self.now.heading
                else [3] * 8
            )
        west = self.now.me[1] < 4
        return [*self.now.way((2, 5 if west else 2)), *[3] * 8]

    def learn_preference(
        self, one: Moment, there: Picture, last: Moment | None
    ) -> None:
        if one.reward > 0:
            self.facts["SIDE"] = "west" if there.me[1] < 5 else "east"

    def do_preference(self) -> list[int]:
        side = self.facts.get("SIDE")
        if side is None or self.now.spots("+"):
            return [3] * 8
        way = self.now.way((2, 2 if side == "west" else 8))
        return [*way, *[3] * 8]


class Tourist(Mind):
    """The best possible without memory: tours, reflexes and habits."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__([messages[0], messages[-1]])
        self.facts = {}

    def tour(self, stops: Sequence[Spot], avoid: Iterable[Spot] = ()) -> list[int]:
        """Return the path to the nearest stop, or from one to the next clockwise."""
        if self.now.me in stops:
            after = stops[(stops.index(self.now.me) + 1) % len(stops)]
            return self.now.way(after, avoid)
        ways = [way for stop in stops if (way := self.now.way(stop, avoid))]
        return min(ways, key=len, default=[3])

    def do_morris(self) -> list[int]:
        return self.tour(places_in_the_pool())

    def do_barnes(self) -> list[int]:
        ring, _ = self.now.ring()
        return self.tour(ring, ring)

    def do_star(self) -> list[int]:
        cups = sorted(self.now.spots("o"), key=partial(math.dist, self.now.me))
        return self.now.way(cups[-1])

    def do_t_maze(self) -> list[int]:
        gates = self.now.spots("+")
        return self.now.way((1, 5) if gates and gates[0][1] < 3 else (1, 1))

    def do_dnms(self) -> list[int]:
        return self.now.way(shown[0]) if (shown := self.now.spots("O")) else [3]

    def do_operant(self) -> list[int]:
        return self.now.way(min(self.now.spots("L"), key=self.now.in_room))

    def do_shuttle(self) -> list[int]:
        self.facts["DANGER"] = "tone"
        return super().do_shuttle()

    def do_preference(self) -> list[int]:
        self.facts["SIDE"] = "west"
        return super().do_preference()


@cache
def places_in_the_pool() -> list[Spot]:
    """Return the possible places of the water maze's platform in its picture,
    clockwise.
    """
    catalogue = Catalogue(PluginManager().protocol_directories)
    arena = with_arena(catalogue.find("morris_water_maze")).arena
    cells = [arena.cells_of(site)[0] for site in arena.groups["site"]]
    return [(arena.cells[cell][1], arena.cells[cell][0]) for cell in cells]


#: Answerer of each model.
MINDS = {"ideal": Mind, "tourist": Tourist}


def think(messages: Sequence[Message], model: str = "ideal") -> str:
    """Return the reply to a prompt."""
    return MINDS[model](messages).reply()


class _Connection:
    async def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply(text=think(request.messages, request.model))

    async def close(self) -> None:
        """Do nothing, because nothing is open."""


@hookimpl
def cheesebench_backends() -> Iterable[BackendSpec]:
    """Return the reasoner as a backend."""

    def connect(context: BackendContext) -> _Connection:
        return _Connection()

    return [
        BackendSpec(
            name="reasoner",
            connect=connect,
            probe=False,
            summary="reads the prompts and nothing else",
        )
    ]


@hookimpl
def cheesebench_models() -> Iterable[ModelEntry]:
    """Return one model for each mind."""
    return [
        ModelEntry(name=name, backend="reasoner", id=name, images=True)
        for name in MINDS
    ]


def judged(
    protocol: str,
    history: str,
    learnings: int,
    results: Path | str,
    view: str = "ascii_2d",
    model: str = "ideal",
) -> Any:
    """Run it through the real path with this memory, in the default design; return its
    row of ``Run.verdicts``.
    """
    run = cheesebench.run(
        model,
        protocol,
        results=results,
        seed=0,
        view=view,
        plugins=[sys.modules[__name__]],
        progress=False,
        history=history,
        agent_option=[f"learnings={learnings}"],
    )
    return run.verdicts().iloc[0]
