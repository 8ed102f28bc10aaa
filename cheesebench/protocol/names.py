"""The names of a protocol: their types, how builders look them up, and how expressions
resolve them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cheesebench.diagnostics import Diagnostics, Position, listed
from cheesebench.errors import did_you_mean
from cheesebench.protocol import documents as doc
from cheesebench.protocol import expressions as ex
from cheesebench.protocol import specification as spec
from cheesebench.protocol.arena import Arena
from cheesebench.source import Node

_PLACE = frozenset[ex.Domain]({"place"})
#: Words that cannot be names. Functions are recognised by their parentheses, so only
#: the three oldest are reserved.
RESERVED = (
    *(name for name, known in ex.BUILT_INS.items() if not known.later),
    "where",
    "size",
    "time",
    *ex.KEYWORDS,
)
_WORD_FOR: Mapping[ex.Domain, str] = {
    "place": "a zone",
    "symbol": "a symbol of a draw or variable",
    "state": "a state",
    "outcome": "an outcome",
    "block": "a block",
    "any": "none",
}
_WORDS_FOR: Mapping[ex.Domain, str] = {
    "place": "zones",
    "symbol": "symbols of draws or variables",
    "state": "states",
    "outcome": "outcomes",
    "block": "blocks",
}


@dataclass
class Names:
    """All names of one protocol. ``used`` collects the names that the protocol uses."""

    arena: Arena
    variables: dict[str, ex.Type] = field(default_factory=dict)
    states: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    has_success: bool = False
    used: set[str] = field(default_factory=set)
    #: ``born`` has the symbols that only a ``set`` declares, ``asked`` the constant
    #: names that are compared.
    born: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)

    @property
    def places(self) -> list[str]:
        return [*self.arena.zones, *self.arena.solids, *self.arena.groups]

    def domains(self, name: str) -> frozenset[ex.Domain]:
        sources: tuple[tuple[ex.Domain, Iterable[str]], ...] = (
            ("place", self.places),
            ("symbol", self.symbols),
            ("state", self.states),
            ("outcome", self.outcomes),
            ("block", self.blocks),
        )
        return frozenset(domain for domain, names in sources if name in names)

    def everything(self) -> list[str]:
        return [
            *self.variables, *ex.BUILT_INS, *self.places, *self.symbols, *self.states, *self.outcomes,
            *self.blocks,
        ]  # fmt: skip

    def expression(
        self,
        value: object,
        node: Node,
        diagnostics: Diagnostics,
        *,
        want: ex.Type | None = None,
        it: bool = False,
    ) -> ex.Expression | None:
        """Parse, resolve and type-check one expression. If its text has an error,
        report this at its column and return None.

        A number where a name is needed is reported, but still returned. ``want`` is the
        required type (None: any). ``it`` says whether the name ``it`` is defined in the
        expression.
        """
        if isinstance(value, bool):
            return ex.Number(int(value))
        if isinstance(value, int | float):
            tree, kind = ex.Number(value), ex.NUMBER
            if want is not None and want.kind not in ("number", "truth"):
                diagnostics.error(
                    133,
                    node.position,
                    f"{value} is a number, but {describe(want)} is needed.",
                    "Write a name.",
                )
            return tree
        try:
            typed = _Typer(self, it)
            resolved, kind = typed.resolve(ex.parse(str(value)), want)
            if (
                want is not None
                and want.kind == "set"
                and resolved == ex.Constant(None)
            ):
                return ex.Members(frozenset())  # `none` stands for an empty set.
            if want is not None and not _fits(kind, want):
                what, remedy = describe(kind), _remedy(want)
                if want.kind == "set" and str(value) in self.arena.groups:
                    what = "the name of a group"
                    members = ", ".join(self.arena.groups[str(value)])
                    remedy = f"Name a variable that holds the members: 'vars: {{all: [{members}]}}'."
                raise ex.ExpressionError(
                    0,
                    f"'{value}' is {what}, but {describe(want)} is needed.",
                    remedy,
                    133,
                )
            return resolved
        except ex.ExpressionError as error:
            place = node.inside(error.offset)
            diagnostics.error(error.code, place, error.sentence, error.remedy)
            return None


#: Remedies for names that are often tried.
_REMEDIES = {
    "tau": "Use 'after: n' for steps in this state, 'steps' for steps of the trial.",
    "reward": "The reward cannot be read: compare the outcome, 'last == NAME'.",
}


def describe(kind: ex.Type) -> str:
    if kind.kind == "number":
        return "a number"
    if kind.kind == "truth":
        return "a condition"
    domains = sorted(kind.domains)
    if kind.kind == "name":
        return " or ".join(_WORD_FOR[domain] for domain in domains) or "a name"
    members = " or ".join(_WORDS_FOR[one] for one in domains if one in _WORDS_FOR)
    return f"a set of {members}" if members else "a set"


def _remedy(want: ex.Type) -> str:
    if want.kind == "truth":
        return "Write a comparison, with a sign such as == or <."
    return f"Write {describe(want)}, or a variable that holds one."


def _fits(kind: ex.Type, want: ex.Type) -> bool:
    if want.kind in ("number", "truth"):
        # A number other than 0 counts as true, and a condition as 1 or 0.
        return kind.kind in ("number", "truth")
    return kind.kind == want.kind and kind.overlaps(want)


@dataclass
class _Typer:
    names: Names
    it: bool

    def resolve(
        self, tree: ex.Expression, want: ex.Type | None = None
    ) -> tuple[ex.Expression, ex.Type]:
        match tree:
            case ex.Number():
                return tree, ex.NUMBER
            case ex.Word(name, offset):
                return self.word(name, offset, want)
            case ex.Call(function, ex.Word() as argument):
                return self.call(function, argument)
            case ex.Compute("member", (group, number)):
                return self.member(group, number)
            case ex.Compute("position", (member, group)):
                return self.position(member, group)
            case ex.Compute("recent", (what, trials), offset):
                return self.recent(what, trials, offset)
            case ex.Compute(function, arguments, offset):
                return ex.Compute(
                    function,
                    tuple(self.number(argument) for argument in arguments),
                    offset,
                ), ex.NUMBER
            case ex.Unary("not", operand):
                return ex.Unary("not", self.condition(operand)), ex.TRUTH
            case ex.Unary(operator, operand):
                return ex.Unary(operator, self.number(operand)), ex.NUMBER
            case ex.Binary("and" | "or" as operator, left, right):
                return ex.Binary(
                    operator, self.condition(left), self.condition(right)
                ), ex.TRUTH
            case ex.Binary("==" | "!=" as operator, left, right):
                return ex.Binary(operator, *self.comparable(left, right)), ex.TRUTH
            case ex.Binary("in", left, right):
                return self.membership(left, right), ex.TRUTH
            case ex.Binary(operator, left, right):
                kind = ex.NUMBER if operator in ex.ARITHMETIC_SIGNS else ex.TRUTH
                return ex.Binary(operator, self.number(left), self.number(right)), kind
        raise TypeError(tree)  # pragma: no cover - the parser makes no other trees

    def word(
        self, name: str, offset: int, want: ex.Type | None = None
    ) -> tuple[ex.Expression, ex.Type]:
        if name == "none":
            return ex.Constant(None), ex.Type("name", frozenset({"any"}))
        constant = self.names.domains(name)
        wanted = (
            want.domains
            if want is not None and want.kind == "name"
            else frozenset[ex.Domain]()
        )
        if name in self.names.variables:
            kind = self.names.variables[name]
            # A state or a block may have the same name as a variable. The other side of
            # the comparison decides which of them is meant.
            if not (wanted & constant) or kind.overlaps(ex.Type("name", wanted)):
                self.names.used.add(name)
                return ex.Variable(name), kind
        elif name in ex.BUILT_INS and not ex.BUILT_INS[name].later:
            if name == "it" and not self.it:
                remedy = (
                    "Use it in a rule whose 'enter', 'inside' or 'press' names a place."
                )
                raise ex.ExpressionError(offset, "'it' is undefined here.", remedy, 132)
            return ex.BuiltIn(name), ex.BUILT_INS[name].type
        if constant:
            self.names.used.add(name)
            return ex.Constant(name), ex.Type("name", constant)
        if name in ex.BUILT_INS:
            return ex.BuiltIn(name), ex.BUILT_INS[name].type
        raise ex.ExpressionError(
            offset, f"The name '{name}' is unknown.", self._closest(name, wanted), 131
        )

    def _closest(self, name: str, wanted: frozenset[ex.Domain]) -> str:
        names = self.names
        if remedy := _REMEDIES.get(name):
            return remedy
        if name in names.measures:
            return "No expression can read a measure: write out what it is made of."
        if wanted and not wanted & {"any", "place", "symbol"}:
            return self._closest_of(name, wanted)
        if name in ex.CALLED:
            return f"It is a function: write {name}( ... )."
        return (
            did_you_mean(name, names.everything()).strip()
            or "Declare it, or check its spelling."
        )

    def _closest_of(self, name: str, wanted: frozenset[ex.Domain]) -> str:
        fitting = {
            "outcome": self.names.outcomes,
            "block": self.names.blocks,
            "state": self.names.states,
        }
        known = [one for domain in sorted(wanted) for one in fitting.get(domain, ())]
        close = did_you_mean(name, known).strip()
        if close and wanted == {"outcome"}:
            return f"{close} Outcomes are the words after 'end': correct the one or the other."
        return close or f"It can be {listed(known)}."

    def call(self, function: str, argument: ex.Word) -> tuple[ex.Expression, ex.Type]:
        name, names = argument.name, self.names
        takes = ex.FUNCTIONS[function].takes
        if takes == "group":
            if name not in names.arena.groups:
                hint = (
                    did_you_mean(name, names.arena.groups).strip()
                    or "Declare it under 'arena: groups'."
                )
                raise ex.ExpressionError(
                    argument.offset,
                    f"where() takes a group, but '{name}' is not a group.",
                    hint,
                    134,
                )
            names.used.add(name)
            return ex.Call(function, ex.Constant(name)), ex.Type("name", _PLACE)
        resolved, kind = self.word(name, argument.offset)
        if takes == "set":
            if name in names.arena.groups:
                return ex.Number(len(names.arena.groups[name])), ex.NUMBER
            if kind.kind != "set":
                raise ex.ExpressionError(
                    argument.offset,
                    f"size() takes a set, but '{name}' is {describe(kind)}.",
                    "Name a set.",
                    134,
                )
        elif takes == "place":
            if not kind.domains & {"place", "any"} or not (
                isinstance(resolved, ex.Variable | ex.Constant)
            ):
                sentence = f"{function}() takes a zone or solid, but '{name}' is {describe(kind)}."
                raise ex.ExpressionError(
                    argument.offset, sentence, "Name a zone or a solid.", 134
                )
        elif not _walkable(resolved, kind, names.arena):
            remedy = "Name a zone of the floor."
            raise ex.ExpressionError(
                argument.offset,
                f"{function}() takes a zone, but '{name}' is {describe(kind)}.",
                remedy,
                134,
            )
        return ex.Call(function, resolved), ex.NUMBER

    def members(
        self, function: str, tree: ex.Expression, other: ex.Expression
    ) -> list[str]:
        """Return the members of the group that ``member`` or ``position`` names.
        ``other`` is the function's other argument.
        """
        groups = self.names.arena.groups
        if isinstance(tree, ex.Word) and tree.name in groups:
            self.names.used.add(tree.name)
            return list(groups[tree.name])
        name, which = _written(tree), "first" if function == "member" else "second"
        hint = did_you_mean(name, groups).strip() or "Declare it under 'arena: groups'."
        if isinstance(other, ex.Word) and other.name in groups:
            first, second = (other, tree) if function == "member" else (tree, other)
            hint = f"Write {function}({_written(first)}, {_written(second)})."
        sentence = f"The {which} argument of {function}() must be a group, but '{name}' is not a group."
        raise ex.ExpressionError(_offset(tree), sentence, hint, 134)

    def member(
        self, group: ex.Expression, number: ex.Expression
    ) -> tuple[ex.Expression, ex.Type]:
        members, place = self.members("member", group, number), self.number(number)
        if isinstance(place, ex.Number) and place.value not in range(
            1, len(members) + 1
        ):
            sentence = f"There is no member {place.value:g}, because the group has {len(members)}."
            raise ex.ExpressionError(
                _offset(group), sentence, f"Count from 1 to {len(members)}.", 134
            )
        numbers = (
            (ex.Binary("==", place, ex.Number(n)), name)
            for n, name in enumerate(members, 1)
        )
        return ex.Classes(tuple(numbers)), ex.Type("name", _PLACE)

    def position(
        self, member: ex.Expression, group: ex.Expression
    ) -> tuple[ex.Expression, ex.Type]:
        """Resolve ``position`` as a sum over the members of the group. Each term is the
        member's number times 1 if the member is the place, and 0 otherwise.
        """
        members = self.members("position", group, member)
        place, kind = self.resolve(member, ex.Type("name", _PLACE))
        if kind.kind != "name" or not kind.overlaps(ex.Type("name", _PLACE)):
            sentence = f"position() takes a zone or solid first, not {describe(kind)}."
            raise ex.ExpressionError(
                _offset(member), sentence, "Write position(place, group).", 134
            )
        terms: list[ex.Expression] = [
            ex.Binary("*", ex.Binary("==", place, ex.Constant(name)), ex.Number(n))
            for n, name in enumerate(members, 1)
        ]
        while len(terms) > 1:  # Adding in pairs keeps the tree shallow.
            pairs = [terms[n : n + 2] for n in range(0, len(terms), 2)]
            terms = [
                ex.Binary("+", *pair) if len(pair) == 2 else pair[0] for pair in pairs
            ]
        return terms[0], ex.NUMBER

    def recent(
        self, what: ex.Expression, trials: ex.Expression, offset: int
    ) -> tuple[ex.Expression, ex.Type]:
        """Resolve ``recent``, the number of the last trials that ended in one way."""
        name = _written(what)
        is_success = name == "success" and (
            self.names.has_success or name not in self.names.outcomes
        )
        if is_success and not self.names.has_success:
            raise ex.ExpressionError(
                _offset(what),
                "The protocol has no 'success'.",
                "Add it, or name an outcome.",
                134,
            )
        if not is_success and name not in self.names.outcomes:
            raise self._is_no_outcome(what, trials)
        if not isinstance(trials, ex.Number) or trials.value not in range(
            1, ex.MOST_RECENT + 1
        ):
            sentence = f"recent() takes a fixed number of trials, 1 to {ex.MOST_RECENT}, not '{_written(trials)}'."
            raise ex.ExpressionError(
                offset, sentence, f"Write recent({name}, 10).", 134
            )
        return ex.Recent(None if is_success else name, int(trials.value)), ex.NUMBER

    def condition(self, tree: ex.Expression) -> ex.Expression:
        resolved, kind = self.resolve(tree)
        if kind.kind not in ("truth", "number"):
            remedy = "Write a comparison."
            raise ex.ExpressionError(
                _offset(tree),
                f"A condition is needed, not {describe(kind)}.",
                remedy,
                133,
            )
        return resolved

    def number(self, tree: ex.Expression) -> ex.Expression:
        resolved, kind = self.resolve(tree)
        if kind.kind not in ("number", "truth"):
            remedy = "Use its size()." if kind.kind == "set" else "Use '==' for names."
            raise ex.ExpressionError(
                _offset(tree), f"A number is needed, not {describe(kind)}.", remedy, 133
            )
        return resolved

    def _is_no_outcome(
        self, what: ex.Expression, trials: ex.Expression
    ) -> ex.ExpressionError:
        name, known = _written(what), ["success", *self.names.outcomes]
        hint = did_you_mean(name, known).strip()
        if _written(trials) in known:
            hint = f"Write recent({_written(trials)}, {name})."
        sentence = f"recent() counts 'success' or an outcome, but '{name}' is neither."
        hint = hint or f"The outcomes are {listed(self.names.outcomes)}."
        return ex.ExpressionError(_offset(what), sentence, hint, 134)

    def comparable(
        self, left: ex.Expression, right: ex.Expression
    ) -> tuple[ex.Expression, ex.Expression]:
        # If one side has only one meaning, it decides what the other side means.
        hint = self._meaning(left) or self._meaning(right)
        (a, a_type), (b, b_type) = self.resolve(left, hint), self.resolve(right, hint)
        self.names.asked.update(
            str(side.value) for side in (a, b) if isinstance(side, ex.Constant)
        )
        for side, other in ((a, b), (b, a)):
            if _is_member(side) and (group := self._group(other)) is not None:
                sentence = f"'{group}' is a group, and the other side is a zone or solid: they are never equal."
                raise ex.ExpressionError(
                    _offset(left), sentence, f"Write '... in {group}'.", 133
                )
        plain = all(kind.kind in ("number", "truth") for kind in (a_type, b_type))
        if not plain and not (a_type.kind == b_type.kind and a_type.overlaps(b_type)):
            sentence = (
                f"{describe(a_type).capitalize()} never equals {describe(b_type)}."
            )
            raise ex.ExpressionError(
                _offset(left), sentence, self._offer(a_type, b_type), 133
            )
        return a, b

    def _group(self, side: ex.Expression) -> str | None:
        """Return the group that a side of a comparison names, or None."""
        if isinstance(side, ex.Constant) and side.value in self.names.arena.groups:
            return str(side.value)
        return None

    def _offer(self, a_type: ex.Type, b_type: ex.Type) -> str:
        if "outcome" in a_type.domains | b_type.domains:
            return f"The outcomes are {listed(self.names.outcomes)}."
        return "Compare numbers with numbers, and names with names of the same kind."

    def _meaning(self, tree: ex.Expression) -> ex.Type | None:
        if isinstance(tree, ex.Word):
            if tree.name in ex.BUILT_INS and not ex.BUILT_INS[tree.name].later:
                return ex.BUILT_INS[tree.name].type
            if tree.name in self.names.variables and not self.names.domains(tree.name):
                return self.names.variables[tree.name]
        if isinstance(tree, ex.Call) and tree.function == "where":
            return ex.Type("name", _PLACE)
        return None

    def membership(self, left: ex.Expression, right: ex.Expression) -> ex.Expression:
        if isinstance(right, ex.Word) and right.name in self.names.arena.groups:
            self.names.used.add(right.name)
            collection: ex.Expression = ex.Members(
                frozenset(self.names.arena.groups[right.name])
            )
            kind = ex.Type("set", _PLACE)
        else:
            collection, kind = self.resolve(right)
            if kind.kind != "set":
                sentence = (
                    f"'in' needs a set or a group on its right, not {describe(kind)}."
                )
                raise ex.ExpressionError(
                    _offset(right), sentence, "Declare a set: 'seen: []'.", 133
                )
        member, member_type = self.resolve(left, ex.Type("name", kind.domains))
        wanted = ("name",) if kind.domains else ("number", "truth")
        fits = member_type.kind in wanted and (
            not kind.domains or member_type.overlaps(kind)
        )
        if not fits and not ("any" in kind.domains and member_type.kind != "set"):
            sentence = (
                f"{describe(member_type).capitalize()} is never in {describe(kind)}."
            )
            remedy = "Write a value that the set can have on the left of 'in'."
            raise ex.ExpressionError(_offset(left), sentence, remedy, 133)
        return ex.Binary("in", member, collection)


def _is_member(tree: ex.Expression) -> bool:
    """Return whether an expression names a single zone or solid, never a group."""
    return tree == ex.BuiltIn("it") or (
        isinstance(tree, ex.Call) and tree.function == "where"
    )


def _walkable(resolved: ex.Expression, kind: ex.Type, arena: Arena) -> bool:
    if isinstance(resolved, ex.Constant):
        return bool(arena.cells_of(resolved.value or ""))
    if resolved == ex.BuiltIn("it"):
        return True
    return (
        isinstance(resolved, ex.Variable)
        and kind.kind in ("name", "set")
        and bool(kind.domains & {"place", "any"})
    )


def _written(tree: ex.Expression) -> str:
    """Return a name or a number as it is written. For anything else, return in words
    what kind of expression it is.
    """
    match tree:
        case ex.Word(name):
            return name
        case ex.Number(value):
            return f"{value:g}"
    return "a condition" if ex.is_condition(tree) else "an expression"


def _offset(tree: ex.Expression) -> int:
    """Return the column of a tree's leftmost operand if it is a name or a call, or else
    0.
    """
    match tree:
        case (
            ex.Word(offset=offset) | ex.Call(offset=offset) | ex.Compute(offset=offset)
        ):
            return offset
        case ex.Unary(operand=operand):
            return _offset(operand)
        case ex.Binary(left=left):
            return _offset(left)
    return 0


#: Outcome of a trial that the step limit cut off.
TIMEOUT = "timeout"


def all_effects(document: doc.ProtocolDocument) -> Iterable[doc.Effects]:
    trial = document.trial
    for state in trial.states.values():
        yield state
        yield from state.rules
        if state.each:
            yield state.each
    yield from trial.watch
    if trial.each:
        yield trial.each


def counters(document: doc.ProtocolDocument) -> list[str]:
    return list(
        dict.fromkeys(
            name for effects in all_effects(document) for name in effects.count
        )
    )


def outcomes(document: doc.ProtocolDocument) -> list[str]:
    trial = document.trial
    ends = [rule.end for state in trial.states.values() for rule in state.rules]
    ends += [one.end for one in trial.finish]
    return list(dict.fromkeys([*(end for end in ends if end), TIMEOUT]))


def runtime_value(scalar: doc.Scalar) -> float | int | str | None:
    """Return the run-time value of a value in the file. ``true`` becomes 1,
    ``false`` becomes 0, and ``none`` becomes None.
    """
    if isinstance(scalar, bool):
        return int(scalar)
    return None if scalar == "none" else scalar


Path = Sequence[str | int]


class Lookup:
    """Base of the builders. A method that finds a mistake reports it and goes on."""

    def __init__(
        self,
        document: doc.ProtocolDocument,
        root: Node,
        names: Names,
        diagnostics: Diagnostics,
    ) -> None:
        self.document, self.root, self.names, self.diagnostics = (
            document,
            root,
            names,
            diagnostics,
        )

    def unknown(
        self, what: str, name: str, known: Iterable[str], path: Sequence[str | int]
    ) -> None:
        known = list(known)
        hint = did_you_mean(name, known).strip() or f"Known: {listed(known)}."
        self.diagnostics.error(
            201, self.root.find(path).position, f"There is no {what} '{name}'.", hint
        )

    def undeclared(self, name: str, value: object, position: Position) -> None:
        """Report the assignment to a variable that is not declared. The remedy may
        declare it with a value like the assigned one.
        """
        what, hint = "is not declared", did_you_mean(name, self.document.vars).strip()
        if name in counters(self.document):
            what, hint = "is a counter", "Use 'count', or rename the variable."
        elif name in self.names.variables:
            what, hint = (
                "is a column of a draw",
                "Copy it into a variable, and set that.",
            )
        elif name in self.names.places:
            what, hint = (
                "is a place on the map",
                "Declare a variable of another name, and set that.",
            )
        elif not hint:
            known = isinstance(value, str) and value in {
                *self.names.places,
                *self.names.symbols,
            }
            first = value if known else "[]" if isinstance(value, list) else 0
            hint = f"Add 'vars: {{{name}: {first}}}'."
        self.diagnostics.error(
            212, position, f"'{name}' is set here, but {what}.", hint
        )

    def expression(
        self,
        value: object,
        path: Sequence[str | int],
        want: ex.Type | None = None,
        *,
        it: bool = False,
    ) -> ex.Expression | None:
        if value is None:
            return None
        node = self.root.find(path)
        return self.names.expression(value, node, self.diagnostics, want=want, it=it)

    def place(
        self,
        name: str,
        path: Sequence[str | int],
        *,
        solid: bool | None = None,
        placing: bool = False,
    ) -> spec.Place:
        """Resolve a zone, group, door or solid, or a variable that holds one.

        ``solid`` is True if solids are required, False if floor is required, and None
        if both are accepted. ``placing`` says whether the subject is placed there.
        """
        position = self.root.find(path).position
        self.names.used.add(name)
        if name in self.names.variables:
            kind = self.names.variables[name]
            if kind.kind not in ("name", "set") or not kind.domains & {"place", "any"}:
                self.diagnostics.error(
                    204,
                    position,
                    f"The variable '{name}' does not hold a zone.",
                    "Name a zone or group.",
                )
            self._check_some_place(name, position)
            for held in self.held(name):
                self._check_ground(
                    held,
                    position,
                    solid,
                    f"'{held}', which '{name}' can hold,",
                    placing,
                )
            return spec.Place(name, variable=True)
        if name not in self.names.places:
            known = [*self.names.places, *self.place_variables()]
            self.unknown("zone or variable", name, known, path)
            return spec.Place(name)
        self._check_ground(name, position, solid, f"'{name}'", placing)
        return spec.Place(name)

    def _check_some_place(self, variable: str, position: Position) -> None:
        """Report a variable to which the file gives names, of which none is a place.

        A variable that effects set may copy one. A name of a variable is reported where
        it is given.
        """
        words = [one for one in self.values(variable) if isinstance(one, str)]
        is_open = any(variable in one.set for one in all_effects(self.document))
        known = {*self.names.places, *self.names.variables}
        if words and not is_open and not known.intersection(words):
            self.diagnostics.error(
                204,
                position,
                f"'{variable}' never holds a zone or solid, only {listed(words)}.",
                did_you_mean(words[0], self.names.places).strip()
                or f"The zones and solids are {listed(self.names.places)}.",
            )

    def _check_ground(
        self,
        name: str,
        position: Position,
        solid: bool | None,
        subject: str,
        placing: bool,
    ) -> None:
        arena = self.names.arena
        members = arena.members(name)
        solids = [member for member in members if member in arena.solids]
        some = "partly " if 0 < len(solids) < len(members) else ""
        if placing and solids:
            self.diagnostics.error(
                205,
                position,
                f"{subject} is {some}solid: no subject can be placed on a solid.",
                "Name a zone of floor.",
            )
        elif solid is False and solids:
            self.diagnostics.error(
                205,
                position,
                f"{subject} is {some}solid: a solid is never entered.",
                "Use 'press'.",
            )
        if solid is True and len(solids) < len(members):
            self.diagnostics.error(
                205,
                position,
                f"{subject} is {some}floor: floor is never pressed.",
                "Use 'enter'.",
            )

    def held(self, variable: str) -> list[str]:
        """Return the places that a variable can hold according to the file."""
        return [
            name
            for name in map(str, self.values(variable))
            if name in self.names.places
        ]

    def values(self, variable: str) -> list[doc.Scalar]:
        """Return the values that the file gives to a variable or column in draws,
        ``init`` and blocks, and the names that effects give it. Effects may also give
        it numbers, or copy another variable.

        ``none`` is left out, because it is valid everywhere.
        """
        return self._values(variable, len(self.document.draw))

    def _values(self, variable: str, before: int) -> list[doc.Scalar]:
        """Return the same as ``values``, but only of the first ``before`` draws. A draw
        can only deal out sets of earlier draws.
        """
        found: list[doc.Scalar | list[doc.Scalar]] = []
        for number, draw in enumerate([*self.document.draw.values()][:before]):
            found += draw.of.get(variable, [])
            if variable in draw.into and draw.sample is not None:
                found += self.names.arena.groups.get(draw.sample) or self._values(
                    draw.sample, number
                )
        if variable in self.document.vars:
            found.append(self.document.vars[variable].init)
            found += self._values_set(variable)
        flat: dict[doc.Scalar, None] = {}
        for values in found:
            flat |= dict.fromkeys(values if isinstance(values, list) else [values])
        return [value for value in flat if value != "none"]

    def _values_set(self, variable: str) -> Iterator[doc.Scalar | list[doc.Scalar]]:
        """Yield the values that blocks set, and the names that effects set."""
        for block in self.document.schedule.values():
            if variable in block.set:
                yield block.set[variable]
        read = {*self.names.variables, *RESERVED}
        for effects in all_effects(self.document):
            value = effects.set.get(variable)
            if value is not None and doc.is_name(value) and value not in read:
                yield value

    def place_variables(self) -> list[str]:
        """Return the variables and columns that may hold a place."""
        return [
            name
            for name, kind in self.names.variables.items()
            if kind.kind in ("name", "set") and kind.domains & {"place", "any"}
        ]
