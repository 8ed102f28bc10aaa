"""The built-in names, functions, triggers and effects of the language, in one table.

The parser, the documents and both kernels read it. An entry that the compiled kernel does not implement is declared
``scalar_only``: a protocol that uses it is run by the scalar kernel, whatever the number of lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "truth", "name", "set"]
#: What a name can refer to. ``any`` is the domain of ``none``.
Domain = Literal["place", "symbol", "state", "outcome", "block", "any"]


@dataclass(frozen=True, slots=True)
class Type:
    """Type of an expression; for names and sets also what they may refer to."""

    kind: Kind
    domains: frozenset[Domain] = frozenset()

    def overlaps(self, other: Type) -> bool:
        """Whether names of both types can be equal."""
        return bool(self.domains & other.domains) or "any" in self.domains | other.domains


NUMBER = Type("number")
TRUTH = Type("truth")

#: What a value depends on besides variables: the path in this trial, the present pose, or the clock.
Reads = Literal["", "trace", "pose", "clock"]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in name. ``later``: added later, so an author's own name takes precedence and older files stay valid."""

    type: Type
    reads: Reads = ""
    later: bool = False
    scalar_only: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one argument, computed by the method of the same name in ``paradigms/arena/path.py``.

    ``takes`` is the kind of argument: a group, a set, any place (also a solid), or a zone of the floor.
    """

    takes: Literal["group", "set", "place", "zone"]
    reads: Reads = ""
    scalar_only: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A function of numbers: of how many, at least and at most (None: of any number of them)."""

    meaning: str
    least: int = 1
    most: int | None = 1
    scalar_only: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A trigger or an effect of a rule, by its key."""

    meaning: str
    scalar_only: bool = False


#: The built-in names (language page, section 1).
BUILT_INS: dict[str, BuiltIn] = {
    "it": BuiltIn(Type("name", frozenset({"place"}))),
    "last": BuiltIn(Type("name", frozenset({"outcome"}))),
    "block": BuiltIn(Type("name", frozenset({"block"}))),
    "session": BuiltIn(NUMBER),
    "trial": BuiltIn(NUMBER),
    "subject": BuiltIn(NUMBER),
    "steps": BuiltIn(NUMBER, reads="clock"),
    "state": BuiltIn(Type("name", frozenset({"state"}))),
    "x": BuiltIn(NUMBER, reads="clock", later=True),
    "y": BuiltIn(NUMBER, reads="clock", later=True),
    "heading": BuiltIn(NUMBER, reads="clock", later=True),
    "moves": BuiltIn(NUMBER, reads="trace", later=True),
}
#: The functions (language page, section 1).
FUNCTIONS: dict[str, Function] = {
    "where": Function("group"),
    "size": Function("set"),
    "time": Function("zone", reads="trace"),
    "entries": Function("zone", reads="trace"),
    "distance": Function("zone", reads="pose"),
    "bearing_error": Function("zone", reads="pose"),
    "departure_error": Function("zone", reads="trace"),
    "column": Function("place"),
    "row": Function("place"),
}
#: The functions of numbers (language page, section 1); arguments are expressions.
ARITHMETIC: dict[str, Arithmetic] = {
    "min": Arithmetic("The smallest.", 2, None),
    "max": Arithmetic("The largest.", 2, None),
    "abs": Arithmetic("Without its sign."),
    "round": Arithmetic("The nearest whole number; of two, the even one."),
    "floor": Arithmetic("The largest whole number that is not larger."),
    "exp": Arithmetic("e to the power of it."),
    "log": Arithmetic("The natural logarithm; undefined for 0 and below."),
}
#: The functions of a group as a sequence (language page, section 1): made of other expressions, so no kernel has them.
SEQUENCES: dict[str, Arithmetic] = {
    "member": Arithmetic("The member of a group at a place, from 1; `none` where there is none.", 2, 2),
    "position": Arithmetic("The place of a member in a group, from 1; 0 if it is not in it.", 2, 2),
}
#: The functions of earlier trials: of `success` or an outcome, and a number of trials.
HISTORY: dict[str, Arithmetic] = {
    "recent": Arithmetic("How many of the subject's last trials ended so.", 2, 2, scalar_only=True),
}
#: The names of all functions.
CALLED = (*FUNCTIONS, *ARITHMETIC, *SEQUENCES, *HISTORY)
#: Most trials that `recent` looks back.
MOST_RECENT = 1000
#: Triggers; a rule has exactly one.
TRIGGERS: dict[str, Part] = {
    "enter": Part("A zone, a group, or a variable holding one, was entered."),
    "inside": Part("The step ended inside a zone, a group, or a variable holding one, whether it was entered or not."),
    "press": Part("FORWARD was blocked by this solid; `any`: by whatever there is."),
    "after": Part("At least this many steps in the state."),
    "act": Part("This action was taken; `any`: any action."),
}
#: Effects, in the order in which they are executed.
EFFECTS: dict[str, Part] = {
    "set": Part("All right-hand sides read old values."),
    "add": Part("Adds a member, or all of a set, to a set."),
    "remove": Part("Takes a member, or all of a set, out of a set."),
    "count": Part("Counters of the trial, each increased by one."),
    "reward": Part("Added to the reward of the step."),
    "place": Part("Teleports to a zone; the heading is reset to `start.face`."),
    "put": Part("Teleports to the square nearest to this column and row; the heading stays.", scalar_only=True),
}
