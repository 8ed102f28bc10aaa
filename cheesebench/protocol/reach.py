"""A lower bound of a trial's length that ignores guards, chance, waiting times and closed doors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from cheesebench.interfaces import FORWARD, HEADINGS, ROTATE_LEFT, ROTATE_RIGHT, STAY
from cheesebench.protocol.specification import EffectsSpec, Place, RuleSpec, Specification

#: Maximum number of situations searched: about a second.
MAX_SITUATIONS = 200_000
#: What an end condition does besides.
NOTHING = EffectsSpec()
#: A state, a cell and a heading.
_Situation = tuple[str, int, int]


def shortest_trial(specification: Specification, possible: Callable[[Place], list[str]]) -> int | None:
    """Return the minimum number of steps to reach an ``end``; None if none can be reached.

    ``possible`` gives the names that a place can have. Guards (those of ``finish``, too) are assumed to hold, doors to
    be open, frozen states to allow movement and clocks to have run out, so the bound is never too high.
    """
    return _Search(specification, possible).run()


class _Search:
    """Breadth-first search over situations."""

    def __init__(self, specification: Specification, possible: Callable[[Place], list[str]]) -> None:
        self.spec, self.possible = specification, possible
        self.arena = specification.arena
        self.zones = {name: frozenset(cells) for name, cells in self.arena.zones.items()}
        self.open_cells = self.arena.open_cells()
        self.solid_at = {square: name for name, squares in self.arena.solids.items() for square in squares}
        self.turn = len(HEADINGS) // self.arena.turns
        rules = [rule for state in specification.states.values() for rule in state.rules] + [*specification.watch]
        #: Whether ``finish`` may end the trial once anything has fired.
        self.finishes = any(one.end is not None for one in specification.finish)
        self.targets = {id(rule): self._members(rule) for rule in rules}
        #: Rules whose placements have already been expanded.
        self.placed: set[tuple[int, str | None]] = set()

    def _members(self, rule: RuleSpec) -> list[str]:
        names = self.possible(rule.target) if rule.target is not None else []
        return [member for name in names for member in self.arena.members(name)]

    def _cells(self, place: Place) -> list[int]:
        return sorted({cell for name in self.possible(place) for cell in self.arena.cells_of(name)})

    def run(self) -> int | None:
        starts = self._cells(self.spec.start.at)
        situations = [(e.name, cell, h) for e in self.spec.entry for cell in starts for h in self.arena.headings]
        steps = dict.fromkeys(situations, 0)
        queue = deque(situations)
        while queue:
            if len(steps) > MAX_SITUATIONS:
                return 1  # unknown; the bound must not be too high
            situation = queue.popleft()
            for following in self._successors(situation):
                if following is None:
                    return steps[situation] + 1
                if following not in steps:
                    steps[following] = steps[situation] + 1
                    queue.append(following)
        return None

    def _successors(self, situation: _Situation) -> Iterator[_Situation | None]:
        """Yield the situations that one step can lead to; None is the end of the trial."""
        name, cell, heading = situation
        ahead = self.arena.step(cell, heading, self.open_cells)
        moves = {
            FORWARD: (cell if ahead is None else ahead, heading),
            ROTATE_LEFT: (cell, (heading - self.turn) % len(HEADINGS)),
            ROTATE_RIGHT: (cell, (heading + self.turn) % len(HEADINGS)),
            STAY: (cell, heading),
        }
        pressed = self.solid_at.get(self.arena.ahead(cell, heading)) if ahead is None else None
        for action, (target, facing) in moves.items():
            yield (name, target, facing)
            blocked = pressed if action == FORWARD else None
            if self.finishes and any(self._fires(rule, action, cell, target, blocked) for rule in self.spec.watch):
                yield None
            for rule in self.spec.states[name].rules:
                if not self._fires(rule, action, cell, target, blocked):
                    continue
                if rule.end is not None or self.finishes:
                    yield None
                yield from self._arrivals(rule.effects, rule.go, name, target, facing)
            for one in self.spec.finish:
                if one.go is not None:
                    yield from self._arrivals(NOTHING, one.go, name, target, facing)

    def _fires(self, rule: RuleSpec, action: int, old: int, new: int, pressed: str | None) -> bool:
        if rule.trigger == "after":
            return True
        if rule.trigger == "act":
            return rule.whatever or rule.action == action
        if rule.trigger == "press":
            return action == FORWARD and new == old if rule.whatever else pressed in self.targets[id(rule)]
        zones = (self.zones.get(member, frozenset()) for member in self.targets[id(rule)])
        return any(new in cells and (old not in cells or rule.trigger == "inside") for cells in zones)

    def _arrivals(
        self, effects: EffectsSpec, go: str | None, name: str, cell: int, heading: int
    ) -> Iterator[_Situation]:
        """Yield the situations after a rule or `finish`: the subject stays, or is placed (with any heading)."""
        state = go or name
        entry = self.spec.states[state].entry
        place = (entry.place if go else None) or effects.place
        put = effects.put is not None or (go is not None and entry.put is not None)
        if place is None and not put:
            yield (state, cell, heading)
            return
        if (id(effects), go) in self.placed:
            return  # these situations were already reached in fewer steps
        self.placed.add((id(effects), go))
        everywhere = range(len(self.arena.cells))
        for target in everywhere if place is None or put else self._cells(place):
            for facing in self.arena.headings:
                yield (state, target, facing)
