"""Controls of the arena family: the same world with other cues, and yoked subjects."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cheesebench.errors import StepAfterEndError
from cheesebench.interfaces import RUNNING, TERMINATED, Scene, Tile, View
from cheesebench.paradigms.arena import schedule
from cheesebench.paradigms.arena.compiled import CompiledArena
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program, Rule, State
from cheesebench.paradigms.arena.scenes import LANDMARK, LookKey
from cheesebench.protocol import Specification, expressions
from cheesebench.protocol.arena import FLOOR, VOID, WALL
from cheesebench.protocol.documents import Scope
from cheesebench.protocol.names import TIMEOUT

#: Characters that draw the arena itself, and are not labels.
STRUCTURE = (WALL, FLOOR, VOID)
#: ``FRESH_GLYPHS``: letters. The first one that is not yet a label is permuted with the
#: glyphs. ``FRESH_TEXT``: a word that is permuted with the texts.
FRESH_GLYPHS = "QXKJZVWY"
FRESH_TEXT = "zup"


def without_cues(specification: Specification) -> Specification:
    """Return the protocol without landmarks, shown glyphs and texts. Doors, solids and
    drawn zones remain.
    """
    states = {
        name: dataclasses.replace(state, say=(), show=())
        for name, state in specification.states.items()
    }
    arena = dataclasses.replace(specification.arena, landmarks=())
    return dataclasses.replace(specification, states=states, arena=arena)


# -- cues drawn anew


class CuesDrawnAnew(CompiledArena):
    """A compiled protocol whose landmarks, shown glyphs and texts are random, and
    independent of state, draws and position.
    """

    def environment(self, view: View, seed: int, subject: int) -> ArenaSubject:
        return ShuffledCueSubject(self.program, view, seed, subject)


class ShuffledCueSubject(ArenaSubject):
    """An environment that differs from the plain one only in its pictures and texts.

    In every trial the landmarks swap glyphs at random, and all draws are made once
    more, independently, to determine the cues. Whenever a state is entered (or its
    clock restarts), glyphs and texts are taken from a state that is drawn uniformly
    from all states. If a variable holds a member of a group, a random member of that
    group stands for it. Doors and freezing are not cues, and remain as in the actual
    state.
    """

    def __init__(self, program: Program, view: View, seed: int, subject: int) -> None:
        super().__init__(program, view, seed, subject)
        specification = program.specification
        self._chance = schedule.Stream(seed, f"{specification.paradigm}|cues", subject)
        self._states = list(program.states.values())
        # The rows of different trials are independent, whatever order the protocol
        # prescribes.
        again = [
            dataclasses.replace(
                draw, per="trial", order="random", copies=1, max_run=None, keep_if=None
            )
            for draw in specification.draws
        ]
        self._other_draws = [
            (draw, schedule.DrawSequence(draw, self._chance, subject)) for draw in again
        ]

    def begin_trial(self) -> str | None:
        arena, chance = self._program.specification.arena, self._chance
        self._other: dict[str, Any] = {}
        for draw, sequence in self._other_draws:
            row = sequence.next(schedule.dealt(draw, arena.groups, self._other))
            self._other.update(zip(draw.columns, row, strict=True))
        glyphs = chance.shuffled(
            [mark.glyph for mark in arena.landmarks], f"landmarks|{self._trial_number}"
        )
        self._marks = tuple(
            (LANDMARK + mark.name, glyph)
            for mark, glyph in zip(arena.landmarks, glyphs, strict=True)
        )
        return super().begin_trial()

    def _appearance(self, state: State) -> LookKey:
        closed, frozen, _, _ = super()._appearance(state)
        key = f"cues|{self._trial_number}|{self._entered}"
        source = self._states[self._chance.below(len(self._states), key)]
        moved = {
            name: self._moved(self.values[name], f"{key}|{name}")
            for name in self._program.specification.variables
        }
        _, _, shown, text = source.read_look(
            _Memory({**self.values, **moved, **self._other})
        )
        return closed, frozen, (*self._marks, *shown), text

    def _moved(self, value: Any, key: str) -> Any:
        groups = self._program.specification.arena.groups.values()
        group = (
            next((members for members in groups if value in members), None)
            if isinstance(value, str)
            else None
        )
        return value if group is None else group[self._chance.below(len(group), key)]


@dataclass(frozen=True, slots=True)
class _Memory:
    """The values of the variables that determine how a state looks."""

    values: dict[str, Any]


# -- labels that change places


class LabelsSwapped(CompiledArena):
    """Labels are permuted for the whole run: each label takes the meaning of another.
    Texts with placeholders, and glyphs that effects compute or copy, stay as they are.
    """

    def __init__(self, specification: Specification, seed: int) -> None:
        super().__init__(specification)
        chance = schedule.Stream(seed, f"{specification.paradigm}|labels", 0)
        self._glyphs = _cycle(
            chance.shuffled([*_labels(self.program), _fresh(self.program)], "glyphs")
        )
        # Texts with placeholders are not swapped: a fixed text in their place would not
        # show the values.
        lines = [
            line
            for state in specification.states.values()
            for line in state.say
            if not expressions.names_in_text([line])
        ]
        plain = dict.fromkeys(expressions.filled(line, {}) for line in lines)
        self._texts = _cycle(chance.shuffled([*plain, FRESH_TEXT], "texts"))
        self._views: dict[str, SwappedView] = {}

    def environment(self, view: View, seed: int, subject: int) -> ArenaSubject:
        known = self._views.get(view.name)
        if known is None or known.view is not view:
            # All subjects share one view, so that drawn observations are cached.
            known = self._views[view.name] = SwappedView(
                view, self._glyphs, self._texts
            )
        return ArenaSubject(self.program, known, seed, subject)


class SwappedView:
    """A view of the same scene with other glyphs and texts."""

    def __init__(
        self, view: View, glyphs: Mapping[str, str], texts: Mapping[str, str]
    ) -> None:
        self.view, self._glyphs, self._texts = view, glyphs, texts
        self.name = view.name
        self.characters = view.characters
        # The latest scene and its changed copy. One pair is enough, because consecutive
        # observations mostly show the same scene.
        self._last: tuple[Scene, Scene] | None = None

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        return self.view.render(self._swapped(scene), column, row, heading)

    def max_length(self, scene: Scene) -> int:
        return self.view.max_length(self._swapped(scene))

    def _swapped(self, scene: Scene) -> Scene:
        if self._last is None or self._last[0] is not scene:
            tiles = tuple(
                tuple(self._tile(tile) for tile in row) for row in scene.tiles
            )
            self._last = (
                scene,
                Scene(tiles, tuple(self._texts.get(line, line) for line in scene.text)),
            )
        return self._last[1]

    def _tile(self, tile: Tile) -> Tile:
        return (
            tile
            if tile.kind == "door"
            else Tile(tile.kind, self._glyphs.get(tile.glyph, tile.glyph))
        )


def _labels(program: Program) -> list[str]:
    specification, arena = program.specification, program.specification.arena
    doors = {arena.cells[cell] for cells in arena.doors.values() for cell in cells}
    glyphs = [glyph for square, glyph in arena.glyphs.items() if square not in doors]
    glyphs += [mark.glyph for mark in arena.landmarks]
    for state in specification.states.values():
        for _, glyph in state.show:
            glyphs += _held(program, glyph.name) if glyph.variable else [glyph.name]
    return [
        glyph
        for glyph in dict.fromkeys(glyphs)
        if len(glyph) == 1 and glyph not in STRUCTURE
    ]


def _held(program: Program, variable: str) -> list[str]:
    """Return the glyphs that a variable may hold: drawn, given by the file or a block,
    or named where effects assign to it.
    """
    held = [*program.specification.drawn(variable), *program.values_at_start(variable)]
    for one in program.assignments_of(variable):
        nodes = expressions.walk(one.value)
        held += [n.value for n in nodes if isinstance(n, expressions.Constant)]
    return [str(one) for one in held]


def _fresh(program: Program) -> str:
    labels = _labels(program)
    return next(letter for letter in FRESH_GLYPHS if letter not in labels)


def _cycle(labels: Sequence[str]) -> dict[str, str]:
    return dict(zip(labels, [*labels[1:], labels[0]], strict=True))


# -- yoked subjects


class Master(ArenaSubject):
    """The replayed master of a yoked subject. It keeps the last rule of a state (no
    ``watch`` rule) to fire, and counts the entries into states.
    """

    taken: Rule | None = None
    arrivals = 0

    def _fire(self, rule: Rule) -> float:
        if not any(rule is watching for watching in self._program.watch):
            self.taken = rule
        return super()._fire(rule)

    def _enter(self, name: str) -> float:
        self.arrivals += 1
        return super()._enter(name)


class YokedSubject(ArenaSubject):
    """A subject in the world of another one (the master), which it cannot change.

    Its body and memory are its own: it walks under the doors and freezing of the
    master's state, and its ``watch`` rules react to its own events. When a rule of the
    master's state fires, or the master enters a state, the effects apply to the
    subject, too. So if they place the master, they place the subject.

    Rewards, states and the end of the trial are the master's. The outcome is the one
    that the subject would have had alone: the first ``end`` of a rule that its own
    events would have fired, or of a ``finish`` that would have held for it. Without
    either, the outcome is the end that a clock gave the master's trial, or else
    ``timeout``.
    """

    def __init__(
        self,
        program: Program,
        view: View,
        seed: int,
        subject: int,
        trials: Sequence[Sequence[int]],
    ) -> None:
        super().__init__(program, view, seed, subject)
        self._master = Master(program, view, seed, subject)
        self._trials = iter(trials)
        self._actions: Sequence[int] = ()
        self._would: str | None = None

    def begin_trial(self) -> str | None:
        actions = next(self._trials, None)
        if actions is None or self._master.begin_trial() is None:
            return None
        self._actions, self._would = actions, None
        observation = super().begin_trial()
        if observation is not None and self.state != self._master.state:
            # Enter the master's state, because the subject's own past led to another
            # one.
            self._enter(self._master.state)
            self._look_around()
            observation = self._observation()
        return observation

    def _draw_rows(self, began: set[Scope]) -> None:
        super()._draw_rows(began)
        columns = [column for draw, _ in self._draws for column in draw.columns]
        self.values.update({column: self._master.values[column] for column in columns})

    def step(self, action: int) -> tuple[str, float, int]:
        """Execute one action of the subject, and the master's action in this step.

        The observation is the subject's own. The reward and the end are the master's.
        Raise StepAfterEndError if the trial has ended.
        """
        master = self._master
        if self._ended or self.steps >= len(self._actions):
            raise StepAfterEndError(
                "This trial has ended. Begin the next one before you step."
            )
        arrivals, master.taken = master.arrivals, None
        _, reward, status = master.step(self._actions[self.steps])
        index = self._pose + action
        self.steps += 1
        self._pose = self._moves[index]
        self._note(self._pose + action)
        self._live_own_step(self._bits[index])
        self._meet(master.taken, master.arrivals > arrivals)
        if status != RUNNING:
            self._end(status)
        else:
            now = self._current
            self._apply(now.each, "each")
            self._apply(self._program.each, "each")
        self._look_around()
        return self._observation(), reward, status

    def _live_own_step(self, bits: int) -> None:
        """Fire the `watch` rules that the subject's own events fire, and note the
        outcome that these events would have. Other rules of the subject have no effect.
        """
        program, state, fired = self._program, self._current, False
        if bits & program.where_mask:
            self._update_occupied(self._geometry.cell(self._pose))
        for number, rule in enumerate(program.watch):
            if (not rule.mask or bits & rule.mask) and self._holds(
                rule, bits, "watch", number
            ):
                fired = True
                self._fire(rule)
        for number, rule in enumerate(state.rules):
            if (
                rule.after is None
                and bits & rule.mask
                and self._holds(rule, bits, state.name, number)
            ):
                fired = True
                self._would = self._would or rule.end
                break
        if fired and self._would is None:
            self._would = next(
                (
                    end
                    for guard, end, go, _ in program.finish
                    if go != self.state and (guard is None or guard(self))
                ),
                None,
            )

    def _meet(self, taken: Rule | None, entered: bool) -> None:
        if taken is not None:
            self.it = self._master.it
            self._events.append(
                (self.steps, self.state, taken.text, "by the master", taken.source)
            )
            self._apply(taken.effects, "place")
        if entered:
            self._enter(self._master.state)

    def _due(self, taken: Rule) -> str | None:
        """Return the end that a clock brings now, or None. The master decides when the
        trial ends, and the subject's own state decides which end it is.
        """
        for rule in self._current.rules:
            if rule.after is None or not self.steps - self._entered >= rule.after(self):
                continue
            # The master has already drawn `p` for the rule that fired. For other rules
            # it is not drawn.
            if (rule.guard is None or rule.guard(self)) and (
                rule.p is None or rule.source == taken.source
            ):
                return rule.end
        return None

    def _end(self, status: int) -> None:
        master = self._master
        taken = master.taken if status == TERMINATED else None
        by_clock = (
            self._due(taken) or master.outcome
            if taken is not None and taken.after is not None
            else None
        )
        self.outcome = self._would or by_clock or TIMEOUT
        self._ended = True
        self._close()
        self._schedule.note(master.noted if master.outcome else (TIMEOUT, TIMEOUT))
