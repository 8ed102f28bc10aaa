"""Points out probable mistakes in a resolved protocol, as warnings and notes. The only
error is a distance to a solid (134).
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, product
from operator import eq, ge, gt, le, lt

from cheesebench.diagnostics import Diagnostics, EnoughFindingsError, Position
from cheesebench.errors import did_you_mean
from cheesebench.interfaces import FORWARD, HEADINGS, ROTATE_LEFT, ROTATE_RIGHT, STAY
from cheesebench.lesions import LANDMARKS
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.arena import FLOOR, WALL, Arena, naming_position
from cheesebench.protocol.documents import Turned
from cheesebench.protocol.names import Lookup, Names
from cheesebench.protocol.references import judged_reference
from cheesebench.protocol.specification import (
    VISIBLE_GOAL,
    Assignment,
    EffectsSpec,
    Place,
    RuleSpec,
    Specification,
    StateSpec,
)
from cheesebench.protocol.validation import doubts
from cheesebench.source import Node, walk

#: Maximum number of situations that the search visits, which takes about a second.
MAX_SITUATIONS = 200_000
#: The effects of an entry of ``finish``: none.
NOTHING = EffectsSpec()
#: Triggers that need a place. A state with one of them offers a choice of places.
_OF_PLACES = {"enter", "inside", "press"}
#: A situation of the search: a state, a cell and a heading.
_Situation = tuple[str, int, int]


def shortest_trial(
    specification: Specification, possible: Callable[[Place], list[str]]
) -> int | None:
    """Return a lower bound on the number of steps to an ``end``, or None if no end can
    be reached.

    ``possible`` returns the names that a place can have. The search assumes that all
    guards hold (also in ``finish``), doors are open, frozen states allow movement and
    clocks have run out.
    """
    return _Search(specification, possible).run()


class _Search:
    """Breadth-first search over situations."""

    def __init__(
        self, specification: Specification, possible: Callable[[Place], list[str]]
    ) -> None:
        self.spec, self.possible = specification, possible
        self.arena = specification.arena
        self.zones = {
            name: frozenset(cells) for name, cells in self.arena.zones.items()
        }
        self.open_cells = self.arena.open_cells()
        self.solid_at = {
            square: name
            for name, squares in self.arena.solids.items()
            for square in squares
        }
        self.turn = len(HEADINGS) // self.arena.turns
        rules = [
            rule for state in specification.states.values() for rule in state.rules
        ] + [*specification.watch]
        #: Whether ``finish`` may end the trial once any rule has fired.
        self.finishes = any(one.end is not None for one in specification.finish)
        self.targets = {id(rule): self._members(rule) for rule in rules}
        #: Effects (by id) and the states they lead to, if their placements have already
        #: been expanded.
        self.placed: set[tuple[int, str | None]] = set()

    def _members(self, rule: RuleSpec) -> list[str]:
        names = self.possible(rule.target) if rule.target is not None else []
        return [member for name in names for member in self.arena.members(name)]

    def _cells(self, place: Place) -> list[int]:
        return sorted(
            {
                cell
                for name in self.possible(place)
                for cell in self.arena.cells_of(name)
            }
        )

    def run(self) -> int | None:
        starts = self._cells(self.spec.start.at)
        situations = [
            (e.name, cell, h)
            for e in self.spec.entry
            for cell in starts
            for h in self.arena.headings
        ]
        steps = dict.fromkeys(situations, 0)
        queue = deque(situations)
        while queue:
            if len(steps) > MAX_SITUATIONS:
                return 1  # The number is unknown, and 1 is never too high.
            situation = queue.popleft()
            for following in self._successors(situation):
                if following is None:
                    return steps[situation] + 1
                if following not in steps:
                    steps[following] = steps[situation] + 1
                    queue.append(following)
        return None

    def _successors(self, situation: _Situation) -> Iterator[_Situation | None]:
        """Yield the situations after one step. None: the trial ends."""
        name, cell, heading = situation
        ahead = self.arena.step(cell, heading, self.open_cells)
        moves = {
            FORWARD: (cell if ahead is None else ahead, heading),
            ROTATE_LEFT: (cell, (heading - self.turn) % len(HEADINGS)),
            ROTATE_RIGHT: (cell, (heading + self.turn) % len(HEADINGS)),
            STAY: (cell, heading),
        }
        pressed = (
            self.solid_at.get(self.arena.ahead(cell, heading))
            if ahead is None
            else None
        )
        for action, (target, facing) in moves.items():
            yield (name, target, facing)
            blocked = pressed if action == FORWARD else None
            if self.finishes and any(
                self._fires(rule, action, cell, target, blocked)
                for rule in self.spec.watch
            ):
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

    def _fires(
        self, rule: RuleSpec, action: int, old: int, new: int, pressed: str | None
    ) -> bool:
        if rule.trigger == "after":
            return True
        if rule.trigger == "act":
            return rule.whatever or rule.action == action
        if rule.trigger == "press":
            bumped = action == FORWARD and new == old
            return bumped if rule.whatever else pressed in self.targets[id(rule)]
        return self._is_entered(rule, old, new)

    def _is_entered(self, rule: RuleSpec, old: int, new: int) -> bool:
        zones = (
            self.zones.get(member, frozenset()) for member in self.targets[id(rule)]
        )
        return any(
            new in cells and (old not in cells or rule.trigger == "inside")
            for cells in zones
        )

    def _arrivals(
        self, effects: EffectsSpec, go: str | None, name: str, cell: int, heading: int
    ) -> Iterator[_Situation]:
        """Yield the situations after a rule or `finish`. The subject stays where it is,
        or is placed with any heading.
        """
        state = go or name
        entry = self.spec.states[state].entry
        place = (entry.place if go else None) or effects.place
        put = effects.put is not None or (go is not None and entry.put is not None)
        if place is None and not put:
            yield (state, cell, heading)
            return
        if (id(effects), go) in self.placed:
            return  # These situations were already reached, in no more steps.
        self.placed.add((id(effects), go))
        everywhere = range(len(self.arena.cells))
        for target in everywhere if place is None or put else self._cells(place):
            for facing in self.arena.headings:
                yield (state, target, facing)


def check_promises(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    _late_clocks(spec, diagnostics)
    _frozen_traps(spec, diagnostics)
    _estimand(spec, root, diagnostics)
    _reference(spec, root, diagnostics)
    _not_compared(spec, root, diagnostics)
    _other_task(spec, root, diagnostics)
    _readable_rows(spec, root, diagnostics)
    _beyond_the_schedule(spec, root, diagnostics)
    _forgiven(spec, diagnostics)
    _distances(spec, root, diagnostics)
    for doubt in doubts(spec):
        diagnostics.warning(
            doubt.code, root.find(doubt.path).position, doubt.sentence, doubt.remedy
        )


#: ``_COMPARED`` has the function of each comparison. ``_TURNED`` has the comparison
#: that means the same with its sides exchanged.
_COMPARED = {"==": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _late_clocks(spec: Specification, diagnostics: Diagnostics) -> None:
    """Warn (303) of a rule whose clock never runs out, because the limit ends the trial
    earlier.
    """
    if not isinstance(spec.limit, int):
        return
    first = {entry.name for entry in spec.entry}
    limit, remedy = (
        f"a trial is over after {spec.limit} step{'s' * (spec.limit != 1)}.",
        "Shorten the time, or raise the limit.",
    )
    changed = {assignment.variable for assignment in _assignments(spec)}
    for state in spec.states.values():
        # A state that does not begin the trial is entered later, so its clock has at
        # least one step less.
        longest = spec.limit if state.name in first else spec.limit - 1
        for rule in state.rules:
            if (where := _never_due(spec, rule.after, longest, changed)) is not None:
                sentence = f"'{rule.text}' never fires{where}: {limit}"
                diagnostics.warning(303, rule.position, sentence, remedy)


def _never_due(
    spec: Specification,
    after: ex.Expression | None,
    longest: int,
    changed: Collection[str],
) -> str | None:
    """Return where a clock never runs out, as a part of a sentence. An empty string
    means everywhere, and None nowhere.
    """
    if isinstance(after, ex.Number) and after.value > longest:
        return ""
    if isinstance(after, ex.Variable) and after.name not in changed:
        late = list(_late_blocks(spec, after.name, longest))
        return f" {' and '.join(late)}" if late else None
    return None


def _late_blocks(spec: Specification, name: str, longest: int) -> Iterator[str]:
    """Yield, as parts of a sentence, the blocks in which the value of a variable is too
    long, and ``drawn`` if all its drawn values are. The variable must be one that no
    rule changes.
    """
    drawn = [
        row[draw.columns.index(name)]
        for draw in spec.draws
        if name in draw.columns
        for row in draw.rows
    ]
    if drawn and all(_is_longer(value, longest) for value in drawn):
        yield f"with any value that is drawn for '{name}'"
    variable = spec.variables.get(name)
    for block in spec.schedule if variable is not None else ():
        assert variable is not None
        value = dict(block.set).get(name, variable.initial)
        if _is_longer(value, longest):
            yield f"while '{name}' is {value:g} (block '{block.name}')"


def _is_longer(value: object, longest: int) -> bool:
    return isinstance(value, int | float) and value > longest


def _assignments(spec: Specification) -> Iterator[Assignment]:
    yield from spec.each.set
    for state in spec.states.values():
        for effects in (
            state.entry,
            state.each,
            *(rule.effects for rule in state.rules),
        ):
            yield from effects.set
    for rule in spec.watch:
        yield from rule.effects.set


def _frozen_traps(spec: Specification, diagnostics: Diagnostics) -> None:
    """Warn (304) of a frozen state that lasts until the limit."""
    for state in spec.states.values():
        if not state.freeze:
            continue
        passing = [rule for rule in state.rules if rule.trigger in ("after", "act")]
        if not passing:
            sentence = f"The state '{state.name}' is frozen and has no rule with 'after' or 'act', so it lasts until the limit."
            diagnostics.warning(304, state.position, sentence, "Add one.")
        elif not spec.finish and not any(
            _leads_out(rule, state.name) for rule in passing
        ):
            sentence = f"The state '{state.name}' is frozen and no rule leaves it, so it lasts until the limit."
            diagnostics.warning(
                304, state.position, sentence, "Give a rule a 'go' or an 'end'."
            )


def _leads_out(rule: RuleSpec, state: str) -> bool:
    return rule.end is not None or rule.go not in (None, state)


def _estimand(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """Warn (317) of an estimand whose ``last`` is more than the number of trials that
    count, and (336) of one whose trials the audit of a construct cannot judge.
    """
    estimand = spec.document.estimand
    if isinstance(estimand, str) or (last := estimand.last) is None:
        return
    place, most = (
        root.find(("estimand", "last")).position,
        sum(spec.judged_sessions.values()),
    )
    if last > most:
        sentence = f"'last: {last}' means all trials that count, because there are at most {most} for a subject."
        instead = (
            "Write 'estimand: all'" if estimand.where is None else "Leave out 'last'"
        )
        remedy = f"{instead}, or write a smaller number."
        diagnostics.warning(317, place, sentence, remedy)
    if spec.construct is not None and spec.judges_part_of_a_block:
        blocks = " and ".join(f"'{name}'" for name in spec.judged_blocks)
        sentence = f"'last: {last}' counts only a part of {blocks}. An audit judges whole blocks, so this construct will fail."
        remedy = "Put the trials that count into a block of their own, and write 'estimand: {block: NAME}'."
        diagnostics.warning(336, place, sentence, remedy)


def _reference(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """Note (402) that there are references, but none for a verdict."""
    references = spec.document.reference
    if (
        spec.success is None
        or not references
        or judged_reference(references) is not None
    ):
        return
    names = list(dict.fromkeys(f"'{one.measure}'" for one in references))
    those = "references" if len(names) > 1 else "reference"
    sentence = (
        f"There is no reference on 'success', so there is no verdict: the {those} on {', '.join(names)} "
        f"{'are' if len(names) > 1 else 'is'} only reported."
    )
    remedy = "Add one with 'measure: success', or give a reference 'better', 'margin' and 'range'."
    diagnostics.info(402, root.key_position("reference"), sentence, remedy)


def _other_task(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """Note (408) animals of the parent in an edition that changed the task.

    An edition that only adds to the trial, such as a probe, claims what its parent
    claims, and its animals may well be the same. With another construct they are not.
    """

    def is_own(*path: str) -> bool:
        return root.find(path).position.file == root.position.file

    if (
        root.child("reference") is None
        or root.child("construct") is None
        or is_own("reference")
        or not is_own("trial")
        or not (is_own("construct", "name") or is_own("construct", "kind"))
    ):
        return
    if all(one.kind == "analogy" for one in spec.document.reference):
        return
    diagnostics.info(
        408,
        root.key_position("trial"),
        "This edition changes 'trial' and 'construct', and is compared with the animals of its parent, which had another task.",
        "Write its own 'reference' (with 'kind: analogy' for animals of another task), or 'reference: null'.",
    )


def _not_compared(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """Note (406) a second reference on success, which no report has a row for."""
    judged = judged_reference(spec.document.reference)
    for number, one in enumerate(spec.document.reference):
        if judged not in (None, number) and one.measure == "success":
            diagnostics.info(
                406,
                root.find(("reference", number)).position,
                "The verdict is about the first reference on 'success'; reports name this one only among the sources.",
                "To compare it, write an edition with this one, or a measure for it, such as 'passed: good == 1'.",
            )


def _readable_rows(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """Note (405) a draw whose row follows from the subject's number."""
    for draw in spec.draws:
        if draw.order == "by_subject" and len(set(draw.rows)) > 1:
            place = root.find(("draw", draw.name)).key_position("order")
            sentence = f"The row of '{draw.name}' follows from the subject's number: subject 0 always gets the first row."
            diagnostics.info(
                405,
                place,
                sentence,
                "Write 'order: balanced', which permutes the rows by the run's seed.",
            )


def _beyond_the_schedule(
    spec: Specification, root: Node, diagnostics: Diagnostics
) -> None:
    """Warn (327) of a comparison of `trial` or `session` with a number that never holds
    in this schedule.
    """
    most = {
        "trial": (
            max(block.trials for block in spec.schedule),
            "it counts from 1, and the longest session ends with trial {}",
        ),
        "session": (
            max(block.sessions for block in spec.schedule),
            "it counts from 1, and no block goes beyond session {}",
        ),
    }
    remedies = {
        "trial": "'trial' counts within the session: compare 'session', use another number, or change the schedule.",
        "session": "'session' counts within a repetition of a block: compare 'block', use another number, or "
        "change the schedule.",
    }
    for tree, place in _conditions(spec, root):
        for node in ex.walk(tree):
            if (compared := _compared_with_a_number(node)) is None:
                continue
            name, sign, value = compared
            highest, why = most[name]
            if not any(_COMPARED[sign](one, value) for one in range(1, highest + 1)):
                sentence = (
                    f"'{name} {sign} {value:g}' never holds: {why.format(highest)}."
                )
                diagnostics.warning(327, place, sentence, remedies[name])


def _compared_with_a_number(node: ex.Expression) -> tuple[str, str, float] | None:
    """If the expression compares ``trial`` or ``session`` with a number, return this
    name, the sign and the number. Otherwise return None.
    """
    match node:
        case ex.Binary(sign, ex.BuiltIn("trial" | "session" as name), other):
            pass
        case ex.Binary(sign, other, ex.BuiltIn("trial" | "session" as name)):
            sign = _TURNED.get(sign, sign)
        case _:
            return None
    value = ex.constant(other)
    return None if value is None or sign not in _COMPARED else (name, sign, value)


def _forgiven(spec: Specification, diagnostics: Diagnostics) -> None:
    """Warn (331) of a rule that lets a subject make too many errors.

    In a maze that is rotated, a subject that does not see the landmarks would then pass
    by trying places.
    """
    lesions = spec.construct.abolished_by if spec.construct is not None else ()
    limit = min(
        (at_most for lesion, at_most in lesions if LANDMARKS in lesion.hide),
        default=1.0,
    )
    turns = _turns(spec)
    rules = chain.from_iterable(state.rules for state in spec.states.values())
    allowed = ((rule, most) for rule in rules for most in _errors_allowed(rule))
    for rule, most in allowed:
        left = min(turns, most + 1)
        if left > turns * limit:
            diagnostics.warning(
                331,
                rule.position,
                f"'{rule.text}' lets a subject try wrong places ({left - 1} of {turns} that look alike).",
                "Allow fewer errors, or add places to the maze and to the draw that turns it.",
            )


def _turns(spec: Specification) -> int:
    """Return the number of rotations of the maze that look alike, which is the number
    of rows of the draw that turns it, or 0 if no draw does.
    """
    rows = [0]
    for draw in spec.document.draw.values():
        if any(isinstance(column, Turned) for column in draw.columns_of.values()):
            rows += map(len, draw.of.values())
    return max(rows)


def _errors_allowed(rule: RuleSpec) -> Iterator[int]:
    """Yield the limits of a rule that counts errors: while the counter is below the
    limit, the trial goes on.
    """
    for node in ex.walk(rule.guard):
        match node:
            case ex.Binary("<", ex.Variable(name), other):
                if name in rule.effects.count:
                    yield int(ex.constant(other) or 0)


def _distances(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """Report (134) the distance to a solid. It is undefined, because a solid has no
    floor.
    """
    for tree, position, pressed in _read(spec, root):
        for node in ex.walk(tree):
            match node:
                case ex.Call("distance", ex.Variable(name)):
                    held = [
                        f"'{one}'"
                        for one in _held(spec, name)
                        if one in spec.arena.solids
                    ]
                case ex.Call("distance", ex.BuiltIn("it")):
                    name, held = "it", ["what is pressed"] if pressed else []
                case _:
                    continue
            if held:
                sentence = f"distance() needs floor to measure to, but '{name}' can be {held[0]}, which is solid."
                diagnostics.error(
                    134, position, sentence, "Name a zone of floor beside it."
                )


def _effects(
    spec: Specification, root: Node
) -> Iterator[tuple[EffectsSpec, Position, bool]]:
    """Yield all effects with their positions, and whether their rule presses
    something.
    """
    yield spec.each, root.find(("trial", "each")).position, False
    for state in spec.states.values():
        yield state.entry, state.position, False
        yield state.each, state.position, False
    for rule in _rules(spec):
        yield rule.effects, rule.position, rule.trigger == "press"


def _read(
    spec: Specification, root: Node
) -> Iterator[tuple[ex.Expression | None, Position, bool]]:
    """Yield the expressions of conditions, measures, rules and effects, each with its
    position, and whether it is an effect of a rule that presses something.
    """
    yield from ((tree, position, False) for tree, position in _conditions(spec, root))
    for name, measure in spec.measures.items():
        yield measure, root.find(("measures", name)).position, False
    for rule in _rules(spec):
        yield from ((tree, rule.position, False) for tree in (rule.p, rule.after))
    for effects, position, pressed in _effects(spec, root):
        values = [one.value for one in effects.assignments]
        for tree in (effects.reward, *(effects.put or ()), *values):
            yield tree, position, pressed


def _rules(spec: Specification) -> Iterator[RuleSpec]:
    yield from spec.watch
    for state in spec.states.values():
        yield from state.rules


def _held(spec: Specification, variable: str) -> set[str]:
    """Return the names that a variable can hold, including names that it gets from
    other variables.
    """
    found, pending, names = set[str](), [variable], set[str]()
    while pending:
        name = pending.pop()
        if name in names:
            continue
        names.add(name)
        found |= {*spec.drawn(name)}
        if name in spec.variables:
            found |= _places(spec.variables[name].initial)
        for one in _assignments(spec):
            if one.variable == name:
                found |= _places(one.value)
                if isinstance(one.value, ex.Variable):
                    pending.append(one.value.name)
    return found


def _places(value: object) -> set[str]:
    """Return the names in a value or, for an expression, the names that it spells
    out.
    """
    match value:
        case ex.Constant(str(name)) | str(name):
            return {name}
        case ex.Members(names):
            return {*names}
        case ex.Classes(cases):
            return {name for _, name in cases}
        case frozenset() | set() | tuple():
            return {str(one) for one in value}
    return set()


def _conditions(
    spec: Specification, root: Node
) -> Iterator[tuple[ex.Expression | None, Position]]:
    yield spec.success, root.find(["success"]).position
    yield spec.where, root.find(("estimand", "where")).position
    yield from ((entry.guard, entry.position) for entry in spec.entry)
    yield from ((entry.guard, entry.position) for entry in spec.finish)
    yield from ((rule.guard, rule.position) for rule in _rules(spec))


#: Glyphs that views draw for the agent. A cue must not look like the agent.
AGENT_GLYPHS = "↑↗→↘↓↙←↖"
#: Other characters that egocentric views draw, with their meaning.
DRAWN = {"│": "an edge", **dict.fromkeys("█▓▒░", "a wall in first person")}
#: Matches the name in a placeholder of a text, such as ``$cue`` or ``<cue>``.
_MARKED = re.compile(r"(?<=[$<%])\s*(\w+)")


def check(
    specification: Specification, names: Names, root: Node, diagnostics: Diagnostics
) -> Specification:
    checks = _Checks(specification, names, root, diagnostics)
    with contextlib.suppress(EnoughFindingsError):
        checks.all()
    warnings = tuple(d for d in diagnostics.found if d.severity == "warning")
    return dataclasses.replace(specification, warnings=warnings)


class _Checks:
    """Has a method for each group of warnings. The numbers in docstrings are the codes
    of the diagnostics.
    """

    def __init__(
        self,
        specification: Specification,
        names: Names,
        root: Node,
        diagnostics: Diagnostics,
    ) -> None:
        self.spec, self.names, self.root, self.diagnostics = (
            specification,
            names,
            root,
            diagnostics,
        )

    def all(self) -> None:
        self.states()
        self.rules()
        self.rewards()
        self.zones()
        self.shortest_path()
        self.unused()
        self.finish()
        self.words()
        self.glyphs()
        self.visible_goals()
        self.nothing_done()
        self.first_value()
        self.spellings()
        self.simultaneous()
        check_promises(self.spec, self.root, self.diagnostics)

    def states(self) -> None:
        """Warn (302) of a state that nothing leads to."""
        reached = self._reached({entry.name for entry in self.spec.entry})
        for name, state in self.spec.states.items():
            if name not in reached:
                self.diagnostics.warning(
                    302,
                    state.position,
                    f"No rule leads to the state '{name}'.",
                    "Remove it, or add a 'go'.",
                )

    def _reached(self, entered: set[str]) -> set[str]:
        entered = entered | {one.go for one in self.spec.finish if one.go is not None}
        reached, queue = set(entered), deque(sorted(entered))
        while queue:
            for rule in self.spec.states[queue.popleft()].rules:
                if rule.go is not None and rule.go not in reached:
                    reached.add(rule.go)
                    queue.append(rule.go)
        return reached

    def _judged(self) -> set[str]:
        """Return the states that can occur in trials that count."""
        blocks = self.spec.judged_blocks
        entered = set()
        for entry in self.spec.entry:
            match entry.guard:
                case ex.Binary("==", ex.BuiltIn("block"), ex.Constant(other)) if (
                    other not in blocks
                ):
                    continue
            entered.add(entry.name)
        return self._reached(entered)

    def rules(self) -> None:
        """Warn (303) of a rule that can never fire because an earlier rule covers every
        case.
        """
        for state in self.spec.states.values():
            for number, rule in enumerate(state.rules):
                for earlier in state.rules[:number]:
                    if (
                        earlier.guard is None
                        and earlier.p is None
                        and self._covers(earlier, rule)
                    ):
                        self.diagnostics.warning(
                            303,
                            rule.position,
                            f"This rule never fires: line {earlier.position.line} ('{earlier.text}') covers every "
                            "case.",
                            "Move this rule up, or give the earlier one an 'if'.",
                        )
                        break

    def _covers(self, earlier: RuleSpec, later: RuleSpec) -> bool:
        if isinstance(earlier.after, ex.Number) and earlier.after.value <= 1:
            return True
        if earlier.whatever and (earlier.trigger == "act" or later.trigger == "press"):
            return True
        if earlier.action == FORWARD and later.trigger in ("enter", "press"):
            return True
        if earlier.trigger != later.trigger or later.whatever:
            return False
        if earlier.trigger == "act":
            return earlier.action == later.action
        if earlier.trigger == "after":
            return _is_due_before(earlier.after, later.after)
        return self._covers_target(earlier.target, later.target)

    def _covers_target(self, earlier: Place | None, later: Place | None) -> bool:
        if earlier is None or later is None or earlier.variable or later.variable:
            return earlier == later
        members = self.spec.arena.members
        return set(members(later.name)) <= set(members(earlier.name))

    def _all_effects(self) -> Iterator[EffectsSpec]:
        for effects, _, _ in _effects(self.spec, self.root):
            yield effects

    def rewards(self) -> None:
        """Warn (305) if no reward can be positive, unless one is written as 0."""
        for effects in self._all_effects():
            reward = effects.reward
            fixed = reward.value if isinstance(reward, ex.Number) else None
            # A written zero says that the protocol rewards nothing on purpose.
            if (
                reward is not None
                and not isinstance(reward, ex.Unary)
                and (fixed is None or fixed >= 0)
            ):
                return
        place = self.root.key_position("trial")
        self.diagnostics.warning(
            305,
            place,
            "Nothing gives a positive reward.",
            "Reward something or, if only costs are meant, say so with 'reward: 0' in a rule, such as {act: any, reward: 0}.",
        )

    def zones(self) -> None:
        """Warn (306) of a zone that no subject can reach by walking or by being placed,
        even with all doors open.
        """
        arena = self.spec.arena
        starts = set(self._placed_cells())
        reached = set(starts)
        queue = deque(sorted(starts))
        open_cells = arena.open_cells()
        while queue:
            cell = queue.popleft()
            for heading in arena.headings:
                target = arena.step(cell, heading, open_cells)
                if target is not None and target not in reached:
                    reached.add(target)
                    queue.append(target)
        for zone, cells in arena.zones.items():
            if not reached & set(cells):
                place = naming_position(self.root.find(["arena"]), zone)
                sentence = (
                    f"The zone '{zone}' cannot be reached, even with all doors open."
                )
                remedy = "Open a way to it on the map, or place subjects there."
                self.diagnostics.warning(306, place, sentence, remedy)

    def _placed_cells(self) -> Iterator[int]:
        if any(effects.put is not None for effects in self._all_effects()):
            yield from range(len(self.spec.arena.cells))
        places = [self.spec.start.at] + [
            e.place for e in self._all_effects() if e.place is not None
        ]
        for place in places:
            for name in self.possible(place):
                yield from self.spec.arena.cells_of(name)

    def possible(self, place: Place) -> list[str]:
        """Return the places that are possible: the place itself, the values that its
        column can draw or, for any other variable, all zones and solids.
        """
        if not place.variable:
            return [place.name]
        if any(place.name in draw.columns for draw in self.spec.draws):
            return self.spec.drawn(place.name)
        # A variable that rules change can hold any place, for example after `set:
        # {here: it}`.
        return [*self.spec.arena.zones, *self.spec.arena.solids]

    def shortest_path(self) -> None:
        """Warn (307) if no end can be reached, or none within the limit."""
        if isinstance(self.spec.limit, str):
            return
        shortest = shortest_trial(self.spec, self.possible)
        ends = [rule.end for state in self.spec.states.values() for rule in state.rules]
        ends += [one.end for one in self.spec.finish]
        if shortest is None and any(ends):
            self.diagnostics.warning(
                307,
                self.root.key_position("start"),
                "No 'end' can be reached, even with all doors open.",
                "Open a way on the map, or give an 'end' to a rule that can fire.",
            )
        elif shortest is not None and shortest > self.spec.limit:
            self.diagnostics.warning(
                307,
                self.root.find(("trial", "limit")).position,
                f"No trial reaches an 'end' within 'limit: {self.spec.limit}': the shortest path has {shortest} steps.",
                "Raise the limit.",
            )

    def unused(self) -> None:
        """Warn (308) of zones, solids, variables, draws and symbols that nothing
        uses.
        """
        used = self.names.used
        for variable in self.spec.document.vars:
            if variable not in used:
                self._nothing_reads("vars", variable, "variable")
        for draw in self.spec.draws:
            if not any(column in used for column in draw.columns):
                self._nothing_reads("draw", draw.name, "draw")
        self._unused_symbols()
        # A generator has more zones than most protocols need, so its unused zones are
        # fine.
        if self.spec.arena.drawn is None:
            self._unused_zones()

    def _unused_symbols(self) -> None:
        for symbol in self.names.born:
            if symbol not in self.names.asked:
                others = [one for one in self.names.symbols if one != symbol]
                self.diagnostics.warning(
                    308,
                    self.root.key_position("trial"),
                    f"A 'set' assigns the symbol '{symbol}', but nothing reads it.",
                    did_you_mean(symbol, others).strip()
                    or "Read it in a condition or remove it.",
                )

    def _nothing_reads(self, where: str, name: str, what: str) -> None:
        place = self.root.find([where]).key_position(name)
        sentence = f"Nothing reads the {what} '{name}'."
        self.diagnostics.warning(308, place, sentence, "Remove it.")

    def _unused_zones(self) -> None:
        arena = self.spec.arena
        meant = {"wall", *arena.doors, *self._zones_in_use()}
        for zone in (*arena.zones, *arena.solids):
            if zone not in meant:
                place = naming_position(self.root.find(["arena"]), zone)
                plain = WALL if zone in arena.solids else FLOOR
                remedy = f"Remove it from the legend, and draw it as '{plain}'."
                kind = "solid" if zone in arena.solids else "zone"
                sentence = f"Nothing uses the {kind} '{zone}'."
                self.diagnostics.warning(308, place, sentence, remedy)

    def _zones_in_use(self) -> set[str]:
        """Return the zones in use. A zone is in use if it is named, held by a draw or a
        variable, in a named group, or drawn with a glyph of its own.
        """
        spec, used = self.spec, self.names.used
        held = {str(v) for draw in spec.draws for row in draw.rows for v in row}
        held |= {str(variable.initial) for variable in spec.variables.values()}
        groups = (spec.arena.groups.get(name, ()) for name in used)
        drawn = {
            zone
            for entry in spec.document.arena.legend.values()
            if entry.glyph
            for zone in [entry.zone, *(entry.zones or ())]
        }
        return {
            *used,
            *held,
            *chain.from_iterable(groups),
            *filter(None, drawn),
        }

    def glyphs(self) -> None:
        """Warn (310) of a glyph that looks like floor, a wall, the agent, or something
        else that a view draws.
        """
        for state in self.spec.states.values():
            own = self.root.find(("trial", "states", state.name, "show"))
            always = self.root.find(("trial", "show"))
            for place, glyph in state.show:
                shows = own if place.name in own.keys else always
                for character in self._characters(glyph):
                    if self._misleads(place, character):
                        position = shows.key_position(place.name)
                        self._alike(position, f"'{place.name}' is shown", character)
        self._legend_glyphs()

    def _characters(self, glyph: Place) -> list[str]:
        """Return the characters that a glyph can show: the glyph itself, or the values
        of its variable.
        """
        if not glyph.variable:
            return [glyph.name]
        lookup = Lookup(self.spec.document, self.root, self.names, self.diagnostics)
        return list(map(str, lookup.values(glyph.name)))

    def _misleads(self, place: Place, character: str) -> bool:
        return character in (WALL, *AGENT_GLYPHS, *DRAWN) or (
            character == FLOOR and not self._floor_is_special(place)
        )

    def _legend_glyphs(self) -> None:
        legend = self.root.find(("arena", "legend"))
        for character, entry in self.spec.document.arena.legend.items():
            glyph, walkable = entry.glyph, entry.zone or entry.zones
            if not glyph:
                continue
            if glyph in (*AGENT_GLYPHS, *DRAWN) or (glyph == WALL and walkable):
                place = legend.key_position(character)
                self._alike(place, f"'{character}' is drawn", glyph)

    def _alike(self, where: Position, what: str, glyph: str) -> None:
        like = {WALL: "a wall", FLOOR: "floor", **DRAWN}.get(glyph, "the agent")
        self.diagnostics.warning(
            310,
            where,
            f"{what} as '{glyph}', which looks like {like}.",
            "Use another glyph.",
        )

    def finish(self) -> None:
        """Warn of an entry of ``finish`` that is never tested (303), or that can become
        true without being tested (313).
        """
        for number, entry in enumerate(self.spec.finish):
            if any(
                earlier.guard is None and earlier.end
                for earlier in self.spec.finish[:number]
            ):
                sentence = (
                    "No trial gets here, because an entry above has no condition."
                )
                self.diagnostics.warning(
                    303,
                    entry.position,
                    sentence,
                    "Give that one an 'if', or put it last.",
                )
            if ex.reads_clock(entry.guard):
                place = self.root.find(("trial", "finish", number)).position
                self.diagnostics.warning(
                    313,
                    place,
                    "'finish' is tested only on steps on which a rule fires, but this entry reads a clock.",
                    "Use 'after' in a state, or 'limit'.",
                )

    def words(self) -> None:
        """Warn of a numeric `success` (312), a text that shows the name of a variable
        (314), and `split` without `success` (319).
        """
        if self.spec.success is not None and not ex.is_condition(self.spec.success):
            place = self.root.find(["success"]).position
            self.diagnostics.warning(
                312,
                place,
                "'success' is a number: anything except 0 counts as success.",
                "Write a comparison.",
            )
        if self.spec.success is None and self.spec.document.split:
            place = self.root.find(["split"]).position
            self.diagnostics.warning(
                319,
                place,
                "'split' is ignored: it splits the pass rate, but there is no 'success'.",
                "Write 'by' in a measure: 'latency: {value: steps, by: delay}'.",
            )
        for state in self.spec.states.values():
            for line in state.say:
                for name in dict.fromkeys([line, *_MARKED.findall(line)]):
                    if name in self.spec.variables or name in self.spec.columns:
                        place = self.root.find(
                            ("trial", "states", state.name, "say")
                        ).position
                        sentence = f"'say' shows the word '{name}', not what the variable holds."
                        self.diagnostics.warning(
                            314, place, sentence, f"Write '{{{name}}}' for its value."
                        )

    def _floor_is_special(self, place: Place) -> bool:
        """Return whether a floor glyph at this place hides another glyph, so that it is
        a visible change.
        """
        arena = self.spec.arena
        squares = {
            arena.cells[cell]
            for name in self.possible(place)
            for cell in arena.cells_of(name)
        }
        return bool(squares & set(arena.glyphs))

    def visible_goals(self) -> None:
        """Warn (311) of a rewarded place that looks like no unrewarded place, in trials
        that count. A sample that is shown before the choice is no goal.
        """
        judged = self._judged()
        for state in (
            state for name, state in self.spec.states.items() if name in judged
        ):
            paying = [
                one for one in self._paying(state) if self._is_last(one[0], state)
            ]
            looks = self._looks(state) if paying else []
            for rule, goal in paying:
                if self._stands_out(rule, looks):
                    self.diagnostics.warning(
                        VISIBLE_GOAL,
                        rule.position,
                        f"The goal is visible: reaching '{goal}' is rewarded, and no other square looks like it.",
                        "Draw it like the others or, if it is meant to be seen, write why: 'acknowledged: {W311: REASON}'.",
                    )

    def _looks(self, state: StateSpec) -> list[set[tuple[str, str]]]:
        """Return the possible looks of each cell. A look is a glyph, with the name of
        the variable whose place it is shown at (empty if the place is no variable).
        """
        arena: Arena = self.spec.arena
        doors = {cell for cells in arena.doors.values() for cell in cells}
        looks = [
            {(FLOOR if cell in doors else arena.glyphs.get(square, FLOOR), "")}
            for cell, square in enumerate(arena.cells)
        ]
        for place, glyph in state.show:
            # What a variable shows may be any of its values, and others may show the
            # same. A later glyph covers an earlier one, unless its place is a variable,
            # because it may then be elsewhere.
            drawn = self._drawn_by(place, glyph)
            for cell in (
                cell for name in self.possible(place) for cell in arena.cells_of(name)
            ):
                looks[cell] = looks[cell] | drawn if place.variable else drawn
        return looks

    def _drawn_by(self, place: Place, glyph: Place) -> set[tuple[str, str]]:
        """Return the possible looks of a square at which a state shows a glyph."""
        giver = place.name if place.variable else ""
        return set(product(self._characters(glyph), [giver]))

    def _paying(self, state: StateSpec) -> Iterator[tuple[RuleSpec, str]]:
        """Yield the rules that may reward a subject for being at a place, each with the
        place.
        """
        for rule in (*state.rules, *self.spec.watch):
            is_at_place = rule.trigger in _OF_PLACES - {"press"}
            if is_at_place and rule.target and _may_pay(rule.effects.reward):
                yield rule, rule.target.name

    def _is_last(self, rule: RuleSpec, state: StateSpec) -> bool:
        """Return whether the trial may end after this rule, or come back to its state,
        before another state offers places to choose from.
        """
        if rule.go is None or self.spec.finish:
            return True
        reached = self._before_a_choice(rule.go, state.name)
        rules = [self.spec.states[name].rules for name in reached]
        return state.name in reached or any(
            not own or any(one.end for one in own) for own in rules
        )

    def _before_a_choice(self, first: str, stop: str) -> set[str]:
        """Return the states from ``first`` on up to ``stop``, without states that offer
        places to choose from.
        """
        reached, ahead = set[str](), [first]
        while ahead:
            name = ahead.pop()
            rules = self.spec.states[name].rules
            if name in reached or (
                name != stop and any(one.trigger in _OF_PLACES for one in rules)
            ):
                continue
            reached.add(name)
            ahead += [one.go for one in rules if one.go and name != stop]
        return reached

    def _stands_out(self, rule: RuleSpec, looks: list[set[tuple[str, str]]]) -> bool:
        target = rule.target
        assert target is not None
        if self._is_discrimination(rule):
            return False
        possible = self.possible(target)
        if target.variable:
            if _has_own_glyph(target.name, looks):
                return True
            if len(possible) > 1:
                return False
        elif rule.guard is not None:
            return False  # The guard decides which member is rewarded.
        return self._looks_unlike(possible, looks)

    def _looks_unlike(
        self, names: Iterable[str], looks: list[set[tuple[str, str]]]
    ) -> bool:
        """Return whether no other square looks like a square of these zones."""
        inside = {cell for name in names for cell in self.spec.arena.cells_of(name)}
        seen, others = set[str](), {FLOOR}
        for cell, found in enumerate(looks):
            (seen if cell in inside else others).update(glyph for glyph, _ in found)
        return not seen & others

    def _is_discrimination(self, rule: RuleSpec) -> bool:
        """Return whether the protocol hides which of the drawn places is rewarded. The
        audit tests this.
        """
        read = {
            node.name for node in ex.walk(rule.guard) if isinstance(node, ex.Variable)
        }
        return any(check.hidden in read for check in self.spec.document.checks)

    def nothing_done(self) -> None:
        """Warn (338) of a verdict that asks for a low value of a measure that only
        actions raise, because a subject that does nothing passes.
        """
        about = self.spec.judged
        if about is None or about.better != "lower" or about.bar < 0:
            return
        if self._is_nought(self.spec.measures[about.measure]):
            self.diagnostics.warning(
                338,
                self.root.find(("reference",)).position,
                f"A subject that does nothing has the best value of '{about.measure}', 0, and passes.",
                "Let the verdict be about 'success', with some trials that ask for a response and some that ask for none.",
            )

    def _is_nought(self, tree: ex.Expression) -> bool:
        """Return whether an expression is surely 0 (or false) if nothing is done: a
        counter that only actions raise, an outcome that only they lead to, or what is
        made of these by a factor or a sum.
        """
        match tree:
            case ex.Variable(name):
                return self._is_only_done(name)
            case ex.Binary("==", ex.BuiltIn("last"), ex.Constant(outcome)):
                return outcome is not None and self._is_only_ended(outcome)
            case ex.Binary("==", ex.Constant(), ex.BuiltIn("last")):
                return self._is_nought(ex.Binary("==", tree.right, tree.left))
            case ex.Binary("and" | "*", left, right):
                return self._is_nought(left) or self._is_nought(right)
            case ex.Binary("or" | "+", left, right):
                return self._is_nought(left) and self._is_nought(right)
            case ex.Binary(">", left, ex.Number(0)):
                return self._is_nought(left)
        return False

    def _is_only_ended(self, outcome: str) -> bool:
        """Return whether only going somewhere and pressing end a trial so."""
        rules = [*self.spec.watch]
        for state in self.spec.states.values():
            rules += state.rules
        triggers = {rule.trigger for rule in rules if rule.end == outcome}
        finished = any(one.end == outcome for one in self.spec.finish)
        return not finished and bool(triggers) and triggers <= {"enter", "press"}

    def _is_only_done(self, counter: str) -> bool:
        """Return whether only going somewhere and pressing change this counter."""
        states = self.spec.states.values()
        idle = [self.spec.each]
        rules = list(self.spec.watch)
        for state in states:
            idle += [state.entry, state.each]
            rules += state.rules
        if counter in self.spec.variables or any(counter in one.count for one in idle):
            return False
        triggers = {rule.trigger for rule in rules if counter in rule.effects.count}
        return bool(triggers) and triggers <= {"enter", "press"}

    def first_value(self) -> None:
        """Warn (339) of a verdict about a variable that begins outside its range."""
        about = self.spec.judged
        tree = self.spec.measures.get(about.measure) if about else None
        if about is None or about.range is None or not isinstance(tree, ex.Variable):
            return
        variable = self.spec.variables.get(tree.name)
        low, high = about.range
        if variable is None or not isinstance(variable.initial, int | float):
            return
        if low <= variable.initial <= high or self._is_set_first(tree.name):
            return
        self.diagnostics.warning(
            339,
            self.root.find(("vars",)).key_position(tree.name),
            f"'{tree.name}' begins with {variable.initial:g}, which is not in the range {low:g} to {high:g} of '{about.measure}':"
            " a trial that does not change it counts as the end of the range.",
            "Widen the 'range', or begin with another value.",
        )

    def _is_set_first(self, name: str) -> bool:
        """Return whether a block, the first state or an ``each`` sets a variable."""
        entered = [self.spec.states[one.name].entry for one in self.spec.entry]
        first = [one.variable for e in (self.spec.each, *entered) for one in e.set]
        first += [one for block in self.spec.schedule for one, _ in block.set]
        return name in first

    def spellings(self) -> None:
        """Warn (340) of a drawn name if the draw is compared with names of which one
        is spelt nearly like it, and the name is on one side only.
        """
        for tree, _ in _conditions(self.spec, self.root):
            for node in ex.walk(tree):
                if isinstance(node, ex.Binary) and node.operator in ("==", "!="):
                    self._check_spellings(node.left, node.right)

    def _check_spellings(self, left: ex.Expression, right: ex.Expression) -> None:
        ours, theirs = self._spelt(left), self._spelt(right)
        for pair in product(sorted(ours - theirs), sorted(theirs - ours)):
            one, other = sorted(pair)
            if _is_slip(one, other):
                self.diagnostics.warning(
                    340,
                    self._place_of_drawn(one, other),
                    f"'{one}' is compared with '{other}': they are never equal.",
                    "Spell the name the same way in both places.",
                )

    def _spelt(self, side: ex.Expression) -> set[str]:
        """Return the names, other than places, that a side of a comparison may be."""
        found: Iterable[object] = ()
        if isinstance(side, ex.Constant):
            found = [side.value]
        elif isinstance(side, ex.Variable) and side.name not in self.spec.variables:
            found = self.spec.drawn(side.name)
        return {one for one in found if isinstance(one, str)} - {*self.names.places}

    def _place_of_drawn(self, *names: str) -> Position:
        """Return the position of the first of these names in a draw."""
        draws = self.root.find(("draw",))
        found = (node for node in walk(draws) if node.value in names)
        return next(found, draws).position

    def simultaneous(self) -> None:
        """Note (401) two triggers that can fire on the same step."""
        for state in self.spec.states.values():
            for number, rule in enumerate(state.rules):
                for earlier in state.rules[:number]:
                    if self._compete(earlier, rule, frozen=state.freeze):
                        self.diagnostics.info(
                            401, rule.position, f"'{rule.text}' can fire on the same step as '{earlier.text}' "
                            f"(line {earlier.position.line}), which comes first and wins if its condition holds.",
                        )  # fmt: skip

    def _compete(self, earlier: RuleSpec, later: RuleSpec, *, frozen: bool) -> bool:
        """Return whether two rules of a state can fire on the same step. A later rule
        for any action, or for anything that blocks the way, does not count, because it
        is meant to come last.
        """
        triggers = {earlier.trigger, later.trigger}
        if later.whatever or (frozen and triggers & {"enter", "press"}):
            return False
        if triggers in ({"after"}, {"press"}, {"act"}, {"enter", "press"}):
            return False
        return "after" in triggers or self._meet(earlier, later)

    def _meet(self, one: RuleSpec, other: RuleSpec) -> bool:
        """Return whether one step can trigger two rules, both without 'after'."""
        if "act" in (one.trigger, other.trigger):
            acting, place = (one, other) if one.trigger == "act" else (other, one)
            # Only FORWARD enters and presses.
            return place.trigger == "inside" or acting.action == 0
        if one.target is None or other.target is None:
            return False
        first, second = set(self.possible(one.target)), set(self.possible(other.target))
        return not first & second and bool(
            self._cells_in(first) & self._cells_in(second)
        )

    def _cells_in(self, places: Iterable[str]) -> set[int]:
        return {cell for name in places for cell in self.spec.arena.cells_of(name)}


def _is_slip(one: str, other: str) -> bool:
    """Return whether one name is probably the other with a typing error inside. Names
    that differ at an end or in digits (``tone_a``, ``tone_b``) are meant.
    """
    if (one[0], one[-1]) != (other[0], other[-1]) or min(len(one), len(other)) < 4:
        return False
    return one.isalpha() and other.isalpha() and bool(did_you_mean(one, [other]))


def _has_own_glyph(variable: str, looks: Iterable[set[tuple[str, str]]]) -> bool:
    """Return whether a glyph is drawn only through this variable."""
    givers: dict[str, set[str]] = {}
    for glyph, giver in set().union(*looks):
        givers.setdefault(glyph, set()).add(giver)
    return {variable} in givers.values()


def _is_due_before(earlier: ex.Expression | None, later: ex.Expression | None) -> bool:
    if isinstance(earlier, ex.Number) and isinstance(later, ex.Number):
        return earlier.value <= later.value
    return earlier == later


def _may_pay(reward: ex.Expression | None) -> bool:
    if reward is None:
        return False
    return not isinstance(reward, ex.Unary) and not (
        isinstance(reward, ex.Number) and reward.value <= 0
    )
