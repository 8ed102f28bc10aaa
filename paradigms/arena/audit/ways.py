"""Ways to events: for every pose the action that leads to a place, found once and looked up at every step."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cheesebench.interfaces import FORWARD
from cheesebench.paradigms.arena.navigation import arrives, destination, is_frozen
from cheesebench.paradigms.arena.program import Program, Rule
from cheesebench.paradigms.arena.tables import Tables
from cheesebench.protocol.features import FUNCTIONS

#: Cost, in steps, of a step that triggers another event: such paths are taken only if there is no other.
DETOUR = 1000
NO_WAY = -1


@dataclass(frozen=True, slots=True)
class Way:
    """For every pose (``pose >> 2``) the action that leads to the goal (NO_WAY: none does), and whether it arrives."""

    actions: list[int]
    last: list[bool]


class Ways:
    """All ways of one arena; they depend on the doors that are closed and on what is listened to."""

    def __init__(self, program: Program) -> None:
        self._geometry = program.geometry
        self._acts = sum(bit for (kind, _), bit in program.geometry.bit.items() if kind == "act")
        #: The tables are kept with their ways, so that no other tables can have their identity.
        self._known: dict[tuple[int, int, str], tuple[Tables, Way]] = {}

    def to(self, tables: Tables, listen: int, place: str) -> Way:
        """Return the ways that enter (or press) ``place``, round whatever else is listened to where that can be."""
        key = (id(tables), listen, place)
        if key not in self._known:
            self._known[key] = (tables, self._find(tables, listen & ~self._acts, place))
        return self._known[key][1]

    def _find(self, tables: Tables, listen: int, place: str) -> Way:
        geometry = self._geometry
        actions, last = [NO_WAY] * geometry.poses, [False] * geometry.poses
        if is_frozen(tables, 0):
            return Way(actions, last)
        goal = destination(geometry.arena, [place])
        before: list[list[int]] = [[] for _ in range(geometry.poses)]
        reached = [DETOUR * DETOUR] * geometry.poses
        queue: list[tuple[int, int]] = []
        for index, there in enumerate(tables.moves):
            pose = index >> 2
            if index & 3 == FORWARD and arrives(geometry, tables, index, goal):
                actions[pose], last[pose], reached[pose] = FORWARD, True, 1
                heapq.heappush(queue, (1, pose))
            elif index & 3 < 3 and there != index & ~3:
                before[there >> 2].append(index)
        while queue:
            steps, pose = heapq.heappop(queue)
            if steps > reached[pose]:
                continue
            for index in before[pose]:
                cost = steps + (DETOUR if tables.events[index] & listen else 1)
                if cost < reached[index >> 2]:
                    reached[index >> 2] = cost
                    actions[index >> 2], last[index >> 2] = index & 3, False
                    heapq.heappush(queue, (cost, index >> 2))
        return Way(actions, last)


class Events:
    """Which zones and solids each state listens to, in file order, and which places expressions read."""

    def __init__(self, program: Program) -> None:
        names = [
            (bit, name) for (kind, name), bit in program.geometry.bit.items() if kind in ("enter", "inside", "press")
        ]

        def heard(masks: Sequence[int]) -> tuple[str, ...]:
            return tuple(dict.fromkeys(name for mask in masks for bit, name in names if mask & bit))

        watched = heard([rule.mask for rule in program.watch if not _only_costs(rule)])
        read = tuple(_read(program))
        #: What the rules of a state listen to. Where they listen to no place: what ``watch`` listens to, and what
        #: expressions read, for then that is what the subject can choose.
        self.of_state = {
            name: heard([rule.mask for rule in state.rules if not _only_costs(rule)])
            or (() if state.freeze else watched or read)
            for name, state in program.states.items()
        }
        #: Everything that can be gone to and may matter.
        self.everywhere = tuple(
            dict.fromkeys([*(name for names in self.of_state.values() for name in names), *watched, *read])
        )


def _read(program: Program) -> list[str]:
    """Return the zones that ``where``, ``time`` and the like may read: members of groups, what variables can hold."""
    arena = program.geometry.arena
    members = [name for group in program.geometry.member_at for name in arena.groups[group]]
    if program.reads_path:
        held = {str(value) for draw in program.specification.draws for row in draw.rows for value in row}
        members += [name for name in arena.zones if name in held]
        text = program.specification.text
        functions = [name for name, function in FUNCTIONS.items() if function.reads]
        members += [name for name in arena.zones if any(f"{function}({name})" in text for function in functions)]
    return members


def _only_costs(rule: Rule) -> bool:
    """Return whether a rule only takes reward away (for a bump, say), so that no subject would choose it."""
    leads_on = rule.go is not None or rule.end is not None
    return not leads_on and rule.effects.only_constant_reward and (rule.effects.constant or 0.0) <= 0


def ways_of(program: Program) -> Ways:
    """Return the ways of a program; all who walk in it share them."""
    return _of(program)[0]


def events_of(program: Program) -> Events:
    """Return the events of a program."""
    return _of(program)[1]


@lru_cache(maxsize=4)
def _of(program: Program) -> tuple[Ways, Events]:
    return Ways(program), Events(program)
