"""Typed models of a protocol file, with its keys, their values and their
descriptions.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic_core import PydanticCustomError

from cheesebench.interfaces import DEFAULT_EDITION
from cheesebench.protocol.expressions import EFFECTS, TRIGGERS

#: Version of the language that this loader reads.
VERSION = 1
#: Upper limit of counts such as ``trial.limit``, ``sessions``, ``trials`` and
#: ``repeat``. No real experiment comes near it.
MAX_COUNT = 100_000
#: Maximum number of squares in an arena.
MAX_SQUARES = 10_000

#: Maximum length of a name in characters.
MAX_NAME = 80

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Scope = Literal["subject", "block", "session", "trial"]
Scalar = int | float | str | bool


def is_name(value: object) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= MAX_NAME
        and bool(_NAME.fullmatch(value))
    )


def is_protocol_name(value: object) -> bool:
    return isinstance(value, str) and all(map(is_name, value.split("@", 1)))


def is_glyph(value: object) -> bool:
    """Return whether a value is one visible character that is one column wide. A digit
    may be an int.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 <= value <= 9
    if (
        not isinstance(value, str)
        or len(value) != 1
        or not value.isprintable()
        or value.isspace()
    ):
        return False
    return unicodedata.east_asian_width(
        value
    ) not in "WF" and not unicodedata.combining(value)


def checked(test: Callable[[Any], bool], expected: str) -> BeforeValidator:
    """Return a validator that accepts values for which ``test`` holds. In messages,
    ``expected`` describes these values.
    """

    def validate(value: Any) -> Any:
        if not test(value):
            raise PydanticCustomError("shape", "{expected}", {"expected": expected})
        return value

    return BeforeValidator(validate)


def contradiction(sentence: str, remedy: str) -> PydanticCustomError:
    """Return the error for keys or values that contradict each other. ``{where}`` in
    the sentence stands for their place in the file.
    """
    return PydanticCustomError(
        "contradiction", "{sentence} {remedy}", {"sentence": sentence, "remedy": remedy}
    )


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SESSIONS = re.compile("(all|last|last:[1-9][0-9]{0,5})")
#: A choice of sessions: ``all``, ``last`` or ``last:K`` (the last K).
Sessions = Annotated[
    str,
    StringConstraints(pattern=f"^{_SESSIONS.pattern}$"),
    checked(
        lambda v: isinstance(v, str) and bool(_SESSIONS.fullmatch(v)),
        "all, last or last:K",
    ),
]
Number = Annotated[float, checked(is_number, "a number")]
Name = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME.pattern}$"),
    checked(
        is_name,
        f"a name (letters, digits, _; no digit first; at most {MAX_NAME} characters)",
    ),
]
#: The name of a protocol: its id, or id@edition.
ProtocolName = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME.pattern}(@{_NAME.pattern})?$"),
    checked(is_protocol_name, "the id of a protocol, or id@edition"),
]
#: One character as it is drawn. A digit may be written without quotes.
Glyph = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1),
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
        json_schema_input_type=str | int,
    ),
    checked(is_glyph, "one visible character"),
]
#: A glyph, or a blank, which leaves a place undrawn.
GlyphOrBlank = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1),
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
        json_schema_input_type=str | int,
    ),
    checked(
        lambda v: v == " " or is_glyph(v), "one visible character, or a space in quotes"
    ),
]
#: A glyph, a blank, or the name of a variable that holds a glyph (a declared name takes
#: precedence).
GlyphOrName = Annotated[
    str,
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
        json_schema_input_type=str | int,
    ),
    checked(
        lambda v: v == " " or is_glyph(v) or is_name(v),
        "one visible character, a space in quotes, or the name of a variable that holds one",
    ),
]
#: An expression of the protocol language (docs/language.md, "Expressions"). A number
#: needs no quotes.
Expression = Annotated[
    int | float | bool | str,
    checked(lambda v: isinstance(v, int | float | str), "an expression or a number"),
]
Probability = Annotated[
    float, Field(ge=0, le=1), checked(is_number, "a number from 0 to 1")
]
Count = Annotated[
    int,
    Field(ge=1, le=MAX_COUNT),
    checked(
        lambda v: isinstance(v, int) and not isinstance(v, bool),
        "a whole number of at least 1",
    ),
]
Truth = Annotated[bool, checked(lambda v: isinstance(v, bool), "true or false")]
Text = Annotated[
    str,
    BeforeValidator(
        lambda v: str(v) if is_number(v) else v,
        json_schema_input_type=str | int | float,
    ),
    checked(
        lambda v: isinstance(v, str | int | float) and not isinstance(v, bool), "text"
    ),
]
#: One text or several. A text that begins with a brace, as a placeholder does, needs
#: quotes.
Lines = Annotated[
    Text | list[Text],
    checked(
        lambda v: not isinstance(v, dict),
        "text, in quotes if it begins with a brace",
    ),
]
ColumnAndRow = Annotated[
    list[Expression],
    Field(min_length=2, max_length=2),
    checked(
        lambda v: isinstance(v, list) and len(v) == 2,
        "a pair [column, row], with quotes around what has a comma",
    ),
]
#: A citation. A whole number, such as the number of an article, needs no quotes. A
#: decimal number does, because YAML drops trailing zeros, as in `doi: 10.1000`.
Citation = Annotated[
    str,
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
        json_schema_input_type=str | int,
    ),
    checked(
        lambda v: isinstance(v, str),
        "text, with quotes around a number with a point, such as '10.1000'",
    ),
]


def short_form(key: str, is_short: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Return a validator that expands a short form to ``{key: value}``."""
    return lambda value: {key: value} if is_short(value) else value


def as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[
    list[Name], BeforeValidator(as_list, json_schema_input_type=str | list[str])
]


class DocumentModel(BaseModel):
    """Base of the models of a protocol file: unknown keys are errors, and values are
    not converted.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        populate_by_name=True,
        defer_build=True,
    )


class LegendEntry(DocumentModel):
    """What a map character stands for: a ``zone``, several ``zones``, a ``solid``, or a
    ``door``. A door may also belong to a zone or zones.
    """

    zone: Name | None = Field(
        None, description="The cells with this character belong to this zone."
    )
    zones: list[Name] | None = Field(
        None, description="The cells with this character belong to all of these zones."
    )
    door: Name | None = Field(
        None,
        description="The cells are a door of this name: floor that a state may close.",
    )
    solid: Name | None = Field(
        None,
        description="The cells are a solid of this name: it is never entered, and FORWARD presses it.",
    )
    glyph: GlyphOrBlank | None = Field(
        None,
        description=(
            "How the cells are drawn (`' '`: not at all). A door looks like this while it is closed. A zone without a "
            "glyph looks like floor."
        ),
    )

    @model_validator(mode="after")
    def _one_kind(self) -> LegendEntry:
        given = sum(kind is not None for kind in (self.zone, self.zones, self.solid))
        if given > 1 or (self.door and self.solid) or not (given or self.door):
            raise PydanticCustomError(
                "shape", "exactly one of 'zone', 'zones' and 'solid', or a 'door'"
            )
        return self


class PlacedLandmark(DocumentModel):
    """A landmark at a square of the map. Column and row in ``at`` count from 0 in the
    north-west.
    """

    at: tuple[int, int] = Field(
        description="Column and row (from 0) of a wall or a blank, or of a square up to two squares outside the map."
    )
    glyph: GlyphOrBlank = Field(
        default=" ",
        description="How the landmark is drawn. With `' '` it is not drawn until a state shows it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("at"), list):
            return {**value, "at": tuple(value["at"])}
        return value


class Pool(DocumentModel):
    """A round pool. It has the zones nw, ne, sw, se, rim, spot_nw ..., edge_n ... and
    centre, and the groups quadrant, spot and edge.
    """

    radius: int = Field(
        ge=3,
        le=40,
        description="Radius in cells. A cell is water if its distance from the centre is below radius - 0.5.",
    )
    sites: Literal[4, 8] | None = Field(
        None,
        description=(
            "Adds the zones site1, site2, ... (clockwise from north, at two thirds of the radius) and inner, and the "
            "group site."
        ),
    )


class Ring(DocumentModel):
    """A disc with holes near its edge. It has the zones hole1 ... (clockwise from
    north) and centre, and the group hole.
    """

    radius: int = Field(ge=4, le=40, description="Radius in cells.")
    holes: int = Field(ge=2, le=40, description="Number of holes.")


class Radial(DocumentModel):
    """A hub with arms. It has the zones hub, centre, arm1 ... and cup1 ..., the doors
    gate1 ..., and the groups arm, cup and gate.
    """

    arms: int = Field(
        ge=2,
        le=8,
        description="Number of arms. Each is turned to the nearest compass direction.",
    )
    length: int = Field(ge=1, le=40, description="Length of an arm, in cells.")
    width: Literal[1, 3] = Field(1, description="Width of an arm, in cells.")
    hub: int | None = Field(
        None,
        ge=1,
        le=20,
        description="Number of the hub's cells on each side of its centre. Unless given, it is the smallest possible.",
    )


class Arena(DocumentModel):
    """The place: a map with legend and groups, or one generator."""

    map: str | None = Field(
        None,
        description="The picture: `#` is wall, `.` is floor, and a blank is nothing. `legend` explains other characters.",
    )
    legend: dict[
        Glyph,
        Annotated[
            LegendEntry,
            BeforeValidator(
                short_form("zone", lambda v: isinstance(v, str)),
                json_schema_input_type=str | LegendEntry,
            ),
        ],
    ] = Field(
        default_factory=dict,
        description="What the characters of the map mean. A plain name is a zone.",
    )
    groups: dict[Name, list[Name]] = Field(
        default_factory=dict, description="Ordered lists of zones (or solids)."
    )
    pool: Pool | None = Field(None, description="A round pool, instead of a map.")
    ring: Ring | None = Field(None, description="A disc with holes, instead of a map.")
    radial: Radial | None = Field(
        None, description="A hub with arms, instead of a map."
    )
    landmarks: dict[Name, GlyphOrBlank | PlacedLandmark] | list[PlacedLandmark] = Field(
        default_factory=dict,
        description="Landmarks around the floor: `N: glyph` ... `NW: glyph`, or at a given place.",
    )
    headings: Literal[8, 4] = Field(
        8,
        description="Number of headings. With 8 a turn is 45 degrees, with 4 it is 90.",
    )


#: Maximum number of rows of a draw: in a table, in a permuted block (including copies),
#: with weights, and with all permutations or samples written out. It also limits the
#: numbers in a range.
MAX_ROWS = 10_000


class Range(DocumentModel):
    """Evenly spaced numbers. Without `weights`, a random draw takes each with the same
    probability.
    """

    from_: Number = Field(alias="from", description="The first number.")
    to: Number = Field(
        description="The last number. If no step ends exactly on it, the range ends below it."
    )
    step: Number = Field(
        1, description="The distance between neighbouring numbers. It must be above 0."
    )

    @model_validator(mode="after")
    def _forward(self) -> Range:
        if not self.step > 0:
            raise contradiction(
                f"The step of {{where}} is {self.step:g}.", "Choose a step above 0."
            )
        if self.to < self.from_:
            sentence = f"The range of {{where}} ends at {self.to:g}, below its beginning, {self.from_:g}."
            raise contradiction(sentence, "Let 'to' be at least 'from'.")
        if self.size > MAX_ROWS:
            sentence = (
                f"The range of {{where}} has {self.size} numbers, more than {MAX_ROWS}."
            )
            raise contradiction(sentence, "Use a larger 'step'.")
        return self

    @property
    def size(self) -> int:
        return (
            int(
                (Decimal(str(self.to)) - Decimal(str(self.from_)))
                // Decimal(str(self.step))
            )
            + 1
        )

    @property
    def numbers(self) -> list[float]:
        """The numbers, without rounding errors. Whole numbers are ints."""
        first, step = Decimal(str(self.from_)), Decimal(str(self.step))
        found = [first + number * step for number in range(self.size)]
        return [
            int(number) if number == number.to_integral_value() else float(number)
            for number in found
        ]


class Turned(DocumentModel):
    """A column with the values of another column, rotated so that it begins with
    ``from_``. If a maze is turned in its room, each landmark has such a column of its
    places.
    """

    turned: Name = Field(
        description="The other column. Its values must be in the order in which they lie around the maze."
    )
    from_: Scalar = Field(
        alias="from",
        description="The value with which this column begins. It must be a value of the other column.",
    )


def _are_weights(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, int) and one is not True and one >= 1 for one in value
    )


_Weights = Annotated[
    list[Count],
    Field(min_length=1),
    checked(_are_weights, "whole numbers of at least 1, as in [4, 1] for 0.8 and 0.2"),
]
_Columns = dict[Name, Annotated[list[Scalar], Field(min_length=1)] | Range | Turned]


class Draw(DocumentModel):
    """A small table, whose columns become variables. Whenever the scope `per` begins, a
    row of values is drawn.
    """

    per: Scope = Field("trial", description="When a new row is drawn.")
    order: Literal["random", "shuffle", "cycle", "balanced", "by_subject"] = Field(
        "random",
        description=(
            "How rows are drawn. `random`: independently. `shuffle`: in permuted blocks. `cycle`: one after another. "
            "`balanced`: each row once per cycle of subjects, in an order set by the run's seed. `by_subject`: row "
            "(subject mod rows)."
        ),
    )
    columns_of: Annotated[
        _Columns, BeforeValidator(lambda v: v, json_schema_input_type=str | _Columns)
    ] = Field(
        default_factory=dict,
        alias="of",
        description=(
            "The table. Its columns have the same length, and become variables. A column may be a range of numbers, or "
            "another column, turned. Instead of a table, this may be the name of a CSV file in the protocol's folder, "
            "whose first line names the columns."
        ),
    )
    permute: Annotated[list[Scalar], Field(min_length=2)] | None = Field(
        None,
        description="Instead of `of`: a list of values. The rows are its permutations, with one value for each name in `into`.",
    )
    sample: Name | None = Field(
        None,
        description="Instead of `of`: a group, or a set drawn earlier, whose members are dealt out in random order.",
    )
    into: Names = Field(
        default_factory=list,
        description="The variables that receive what `sample` or `permute` deals out.",
    )
    distinct: Truth = Field(
        True,
        description="Whether `sample` deals out each member only once. If false, each draw is from all members of the group.",
    )
    weights: _Weights | None = Field(
        None, description="Whole numbers: how many times each row of `of` counts."
    )
    pick: Count | None = Field(
        None,
        description="Number of rows (or members of `sample`) that are drawn at a time. The columns become sets.",
    )
    copies: Count = Field(
        1,
        description="How often each row occurs in a permuted block (`order: shuffle`).",
    )
    max_run: Count | None = Field(
        None, description="Longest allowed run of one value in the first column."
    )
    keep_if: Expression | None = Field(
        None, description="A condition under which the previous row is kept."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Draw:
        given = {
            "of": self.columns_of or None,
            "sample": self.sample,
            "permute": self.permute,
        }
        sources = [key for key, value in given.items() if value is not None]
        if not sources:
            raise contradiction(
                "{where} has nothing to draw from.",
                "Add 'of', 'sample' or 'permute'.",
            )
        if len(sources) > 1:
            raise contradiction(
                f"{{where}} has '{sources[0]}' and '{sources[1]}'.", "Keep one of them."
            )
        if sources != ["of"] and not self.into:
            raise contradiction(
                f"{{where}} has '{sources[0]}', but no 'into'.",
                "Add 'into', with names of variables.",
            )
        if sources == ["of"] and self.into:
            raise contradiction(
                "{where} has 'of' and 'into'.", "Remove 'into': the columns have names."
            )
        for name, column in self.columns_of.items():
            if isinstance(column, Turned) and column.from_ not in self._listed(
                column.turned
            ):
                sentence = f"In {{where}}, '{name}' should begin with '{column.from_}', but '{column.turned}' has no such value."
                raise contradiction(
                    sentence, "Name a column that is a list, and one of its values."
                )
        return self

    def _listed(self, name: str) -> list[Scalar]:
        column = self.columns_of.get(name)
        return column if isinstance(column, list) else []

    @property
    def columns(self) -> list[str]:
        return list(self.columns_of) or self.into

    @property
    def permutations(self) -> int:
        return math.perm(len(self.permute or ()), len(self.into))

    @cached_property
    def of(self) -> dict[str, list[Scalar]]:
        """The table, written out. It is empty if ``sample`` deals out members. If there
        are no permutations, or too many, it has the values of ``permute`` as they are.
        """
        if self.permute is not None:
            if not 1 <= self.permutations <= MAX_ROWS:
                return {name: list(self.permute) for name in self.into}
            rows: Any = itertools.permutations(self.permute, len(self.into))
            return {
                name: list(column)
                for name, column in zip(self.into, zip(*rows, strict=True), strict=True)
            }
        return {
            name: self._written_out(column) for name, column in self.columns_of.items()
        }

    def _written_out(self, column: list[Scalar] | Range | Turned) -> list[Scalar]:
        if isinstance(column, Range):
            return list(column.numbers)
        if isinstance(column, Turned):
            listed = self._listed(column.turned)
            first = listed.index(column.from_)
            return listed[first:] + listed[:first]
        return column


class Until(DocumentModel):
    """Ends a repetition (or the block) once `count` of the last `of` trials had an
    outcome or met a condition.
    """

    outcome: Names = Field(default_factory=list, description="The outcomes that count.")
    if_: Expression | None = Field(
        None,
        alias="if",
        description="Instead of `outcome`: a condition, which is evaluated after each trial, like a measure.",
    )
    count: Count = Field(
        description="How many trials must have such an outcome, or meet the condition."
    )
    of: Count | None = Field(
        None,
        description="How many of the last trials are looked at. Unless given, this is `count`, so the trials must come in a row.",
    )

    @model_validator(mode="after")
    def _one_criterion(self) -> Until:
        if self.outcome and self.if_ is not None:
            raise contradiction(
                "{where} has 'outcome' and 'if'.",
                "Keep one of them. 'if: last == NAME' asks for an outcome, too.",
            )
        if not self.outcome and self.if_ is None:
            raise contradiction(
                "{where} does not say which trials count.", "Add 'outcome' or 'if'."
            )
        return self

    @property
    def window(self) -> int:
        """Number of the latest trials that are looked at."""
        return self.count if self.of is None else self.of


class Repeat(DocumentModel):
    """How often a block is repeated at most, and what ends it earlier."""

    at_most: Count = Field(description="Maximum number of repetitions of the block.")
    trials: Count | None = Field(
        None, description="Maximum number of trials in all repetitions together."
    )
    until: Until | None = Field(
        None,
        description="A criterion that ends the block early. It is tested on the last trial of each repetition.",
    )


class Block(DocumentModel):
    """A block of sessions of trials, which may be repeated."""

    sessions: Count = Field(1, description="Number of sessions in one repetition.")
    trials: Count = Field(1, description="Number of trials in a session.")
    repeat: Annotated[
        Repeat,
        BeforeValidator(
            short_form("at_most", lambda v: not isinstance(v, dict)),
            json_schema_input_type=Count | Repeat,
        ),
    ] = Field(
        default_factory=lambda: Repeat(at_most=1),
        description="Number of repetitions, or a mapping with their maximum number and what ends them early.",
    )
    set: dict[Name, Scalar | list[Scalar]] = Field(
        default_factory=dict, description="Values that variables have in this block."
    )
    until: Until | None = Field(
        None, description="A criterion that ends a repetition early."
    )


class Variable(DocumentModel):
    """A mutable value: a number, a name or (from a list) a set."""

    init: Scalar | list[Scalar] = Field(
        description="Initial value. A list makes a set, and `none` means no place or name."
    )
    per: Scope = Field(
        "trial", description="When the variable is reset to its initial value."
    )


class Start(DocumentModel):
    """Where a trial begins."""

    at: Name = Field(description="A zone, a group or a variable that holds one.")
    face: Name = Field(
        "N", description="A heading, `random`, or a variable that holds a heading."
    )
    carry: Truth = Field(
        False,
        description="Whether a trial begins where the last one ended. The first trial of a session uses `at`.",
    )


class Effects(DocumentModel):
    """Effects, executed in the order set, add, remove, count, reward, place, put."""

    set: dict[Name, Expression] = Field(
        default_factory=dict, description=EFFECTS["set"]
    )
    add: dict[Name, Expression] = Field(
        default_factory=dict, description=EFFECTS["add"]
    )
    remove: dict[Name, Expression] = Field(
        default_factory=dict, description=EFFECTS["remove"]
    )
    count: Names = Field(default_factory=list, description=EFFECTS["count"])
    reward: Expression | None = Field(None, description=EFFECTS["reward"])
    place: Name | None = Field(None, description=EFFECTS["place"])
    put: ColumnAndRow | None = Field(None, description=EFFECTS["put"])


class Rule(Effects):
    """One trigger, guards, effects, and at most one exit."""

    enter: Name | None = Field(None, description=TRIGGERS["enter"])
    inside: Name | None = Field(None, description=TRIGGERS["inside"])
    press: Name | None = Field(None, description=TRIGGERS["press"])
    after: Expression | None = Field(None, description=TRIGGERS["after"])
    act: Literal["STAY", "FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "any"] | None = (
        Field(None, description=TRIGGERS["act"])
    )
    if_: Expression | None = Field(
        None, alias="if", description="The rule fires only while this holds."
    )
    p: Expression | None = Field(
        None,
        description="Probability that the rule fires if its trigger and `if` hold.",
    )
    go: Name | None = Field(None, description="The state to go to.")
    end: Name | None = Field(
        None, description="The outcome with which the rule ends the trial."
    )


class State(Effects):
    """A state of a trial: what it says, shows, closes and freezes, its effects on
    entry, and its rules in order.
    """

    say: Lines | None = Field(
        None, description="Line (or lines) of text under the picture."
    )
    show: dict[Name, GlyphOrName] = Field(
        default_factory=dict,
        description="Zones, groups, solids or landmarks, each with its glyph in this state (`' '`: not drawn).",
    )
    close: Names = Field(
        default_factory=list, description="Doors that are closed in this state."
    )
    open: Names = Field(
        default_factory=list,
        description="Doors under `close`, here or in `trial`, that stay open in this state.",
    )
    freeze: Truth = Field(
        False, description="Whether movements have no effect in this state."
    )
    each: Effects | None = Field(
        None,
        description="Effects of every step that ends in this state, except the step that ends the trial.",
    )
    rules: list[Rule] = Field(
        default_factory=list,
        description="The rules. At most one fires on each step: the first that applies.",
    )


class MeasureClass(DocumentModel):
    """A value of a categorical measure, with its condition."""

    if_: Expression | None = Field(
        None,
        alias="if",
        description="The condition. Without one, the value always applies.",
    )
    is_: Name = Field(alias="is", description="The value, a name.")


class Entry(DocumentModel):
    """A possible initial state, with its condition."""

    if_: Expression | None = Field(
        None, alias="if", description="The condition. The last entry has none."
    )
    go: Name = Field(description="The state.")


class Finish(DocumentModel):
    """A condition on which the trial ends, or goes to another state. It is tested
    after a rule has fired, unless the rule ended the trial.
    """

    if_: Expression | None = Field(None, alias="if", description="The condition.")
    end: Name | None = Field(
        None, description="The outcome with which the rule ends the trial."
    )
    go: Name | None = Field(
        None, description="Instead of `end`: the state to go to, from any other state."
    )


_Entry = Annotated[
    Entry,
    BeforeValidator(
        short_form("go", lambda v: isinstance(v, str)),
        json_schema_input_type=str | Entry,
    ),
]


class Trial(DocumentModel):
    """The parts of a trial: its limit, its states, and what holds in all of them."""

    limit: Annotated[
        int | str,
        checked(
            lambda v: (
                (isinstance(v, int) and not isinstance(v, bool) and 1 <= v <= MAX_COUNT)
                or is_name(v)
            ),
            f"a whole number of steps from 1 to {MAX_COUNT}, or a variable that holds one",
        ),
    ] = Field(
        description="Maximum number of steps of a trial, or the variable that holds it."
    )
    start: Annotated[
        list[_Entry],
        BeforeValidator(as_list, json_schema_input_type=str | list[str | Entry]),
    ] = Field(
        description="The initial state. In a list it is the first whose `if` holds."
    )
    states: dict[Name, State] = Field(
        min_length=1,
        description="The states of a trial. Exactly one is active at a time.",
    )
    show: dict[Name, GlyphOrName] = Field(
        default_factory=dict,
        description="What is shown in every state. A state's own `show` takes precedence.",
    )
    close: Names = Field(
        default_factory=list,
        description="Doors that are closed in every state, unless the state's `open` names them.",
    )
    each: Effects | None = Field(
        None,
        description="Effects of every step in every state, except the step that ends the trial.",
    )
    watch: list[Rule] = Field(
        default_factory=list,
        description="Rules that never change the state. Every rule that holds fires.",
    )
    finish: list[Finish] = Field(
        default_factory=list,
        description="Conditions on which the trial ends (or goes to another state). They are tested in order, after a rule "
        "has fired, unless it ended the trial.",
    )


class Estimand(DocumentModel):
    """The trials that count for the pass rate. `last` or `block` selects trials, and
    `where` keeps only the trials for which it holds.
    """

    last: Count | None = Field(
        None,
        description="How many trials of each subject count: its last ones or, with `where`, the last for which it holds.",
    )
    block: Names | None = Field(
        None, description="The blocks whose trials count.", min_length=1
    )
    where: Expression | None = Field(
        None,
        description="A condition on the end of a trial. Only trials that meet it count.",
    )

    @model_validator(mode="after")
    def _says_which(self) -> Estimand:
        if self.last is not None and self.block is not None:
            raise PydanticCustomError("shape", "either 'last' or 'block'")
        if self.last is None and self.block is None and self.where is None:
            raise PydanticCustomError("shape", "one of 'last', 'block', 'where'")
        return self


class Counted(DocumentModel):
    """What counts as a passed trial of an animal: a measure that is within a limit."""

    measure: Name = Field(
        description="The measure. The file `animals` has a column of this name."
    )
    at_most: Number = Field(
        description="The highest value with which a trial counts as passed."
    )


class Dose(DocumentModel):
    """How much training each animal had before and during the judged trials."""

    before: Annotated[int, Field(ge=0)] = Field(
        description="Number of trials that each animal had before the trials that `value` is from."
    )
    judged: Count = Field(
        description="Number of trials, for each animal, from which `value` was obtained."
    )
    of: Text = Field(
        "trials",
        description="What these numbers count, such as trials, pokes or shocks.",
    )


class Reference(DocumentModel):
    """The animals' number for `success` or a measure, with its provenance."""

    measure: Name = Field(
        description="`success`, or a measure. The verdict uses the reference with `better` or, if there is none, the first "
        "one on `success`."
    )
    value: Number | None = Field(
        None,
        description="The animals' value. If absent, it is computed from `curve` or `animals`.",
    )
    interval: tuple[float, float] | None = Field(
        None, description="Lower and upper limit of the 95 % interval."
    )
    better: Literal["higher", "lower", "alike"] | None = Field(
        None,
        description="Makes the verdict about this measure, and says which values are better. `alike`: values like the "
        "animals'. Needs "
        "`margin` and `range`.",
    )
    margin: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="With `better`: how much worse (or, with `alike`, how different) a value may be, in the measure's unit.",
    )
    range: tuple[float, float] | None = Field(
        None, description="With `better`: the lowest and the highest possible value."
    )
    n_animals: Count | None = Field(
        None, description="Number of animals that the value is from."
    )
    sd: Number | None = Field(
        None,
        description="Standard deviation between the animals' rates (or mean values).",
    )
    sem: Number | None = Field(
        None,
        description="Standard error of the mean: `sd` divided by the square root of `n_animals`.",
    )
    curve: list[Number] = Field(
        default_factory=list,
        description="The value in each session, beginning with session 1.",
    )
    curve_sd: list[Number] = Field(
        default_factory=list,
        description="Standard deviation between animals in each session.",
    )
    over: Sessions | Annotated[list[Count], Field(min_length=1)] | None = Field(
        None,
        description="Sessions that the value covers: a list of numbers or, of the sessions in blocks that count, `all`, `last` "
        "or `last:K`.",
    )
    kind: Literal["measured", "declared", "analogy", "invented"] | None = Field(
        None,
        description="Unless given, `measured` with a spread or an interval, and `declared` without. `analogy`: the "
        "source measured "
        "an event other than `success`. `invented`: no animal did this, and the numbers serve to try out a protocol.",
    )
    animals: (
        Annotated[str, Field(max_length=200)] | list[list[int | float | str]] | None
    ) = Field(
        None,
        description="A CSV file in the protocol's folder, or its rows. The columns are `animal,session,trials,passed` or, for a "
        "measure, `animal,session,value`. With `counts` there is a row for each trial.",
    )
    counts: Counted | None = Field(
        None,
        description="What counted as a passed trial of an animal. A model's success must be the same event, which `audit` tests.",
    )
    only: dict[Text, Text | int] = Field(
        default_factory=dict,
        description="Chooses rows of the file `animals` by the value of another column, as in `{group: control}`.",
    )
    where: Expression | None = Field(
        None, description="Only trials for which this holds are compared."
    )
    dose: Dose | None = Field(
        None,
        description="How much training the animals had. If absent, medians over the `animals` are used.",
    )
    species: Text | None = Field(
        None, description="Species and strain, if they differ from the protocol's."
    )
    source: Text | None = Field(None, description="Where the number is published.")
    status: Text = Field(
        description="How the number was obtained, such as 'as in Table 5; not re-derived'."
    )

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        pairs = {
            key: tuple(value[key])
            for key in ("interval", "range")
            if isinstance(value.get(key), list)
        }
        return {**value, **pairs} if pairs else value


class Chance(DocumentModel):
    """The measured pass rate of an agent that acts uniformly at random."""

    value: Probability = Field(description="The pass rate.")
    trials: Count = Field(
        description="Number of trials over which the rate was measured."
    )
    how: Text = Field(description="How the rate was measured: command, seed, version.")


class Check(DocumentModel):
    """A variable that must not be readable from the observation on entry to a state."""

    at: Name = Field(description="The state.")
    hidden: Name = Field(description="The variable that must not be readable.")
    chance: Probability = Field(
        description="Probability that a guess is right by chance."
    )


class LesionKeys(DocumentModel):
    """A lesion that names what it removes. Other lesions are written as a word, such as
    `blind`.
    """

    hide: Annotated[
        list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str])
    ] = Field(
        default_factory=list,
        description="What is hidden: `landmarks`, a landmark, zone, door, solid or group, `glyph:X`, `text` or `text:STATE`.",
    )
    amnesia: Names = Field(
        default_factory=list,
        description="When the subject forgets: between trials (`trial`), or on the first entry into one of these states.",
    )

    @model_validator(mode="after")
    def _takes_something(self) -> LesionKeys:
        if not self.hide and not self.amnesia:
            raise PydanticCustomError("shape", "'hide' or 'amnesia'")
        return self


class Abolished(DocumentModel):
    """A lesion that must abolish success."""

    lesion: str | LesionKeys = Field(
        description="The lesion: a word such as `blind`, words joined by `+`, or a mapping with `hide` or `amnesia`."
    )
    at_most: Probability = Field(
        description="The highest pass rate that may remain under the lesion. Without `success`, a trial passes if its measure is"
        " what the verdict asks for."
    )


class Construct(DocumentModel):
    """What the paradigm claims to measure, and the lesions that must abolish it."""

    name: Text = Field(
        description="What is measured: spatial memory, working memory, ..."
    )
    kind: Literal["memory", "learning", "perception", "preference", "strategy"] = Field(
        description="The kind of construct. It decides which lesion is required: an amnesia for `memory`, "
        "anhedonia for `learning` and `preference`, blindness for `perception`, hidden cues for "
        "`strategy`."
    )
    abolished_by: list[Abolished] = Field(
        min_length=1,
        description="Lesions that must abolish success, or the PASS if a measure is judged.",
    )
    spared_by: Annotated[
        list[str | LesionKeys],
        BeforeValidator(as_list, json_schema_input_type=str | list[str | LesionKeys]),
    ] = Field(default_factory=list, description="Lesions that must not change success.")
    allows: Annotated[
        list[Literal["nothing", "outcome"]],
        BeforeValidator(
            as_list,
            json_schema_input_type=Literal["nothing", "outcome"]
            | list[Literal["nothing", "outcome"]],
        ),
    ] = Field(
        default_factory=list,
        description="Subjects that may pass although they remember neither a place nor what they did: `nothing` "
        "(without any memory), or `outcome` (with a memory of what the last trial paid).",
    )


class Twins(DocumentModel):
    """What may be exchanged without changing the task. ``cheesebench twin`` makes the
    exchange.
    """

    mirror: Truth = Field(
        False, description="Whether the whole map may be mirrored, left for right."
    )
    turn: Truth = Field(
        False, description="Whether the map may be turned by quarter turns."
    )
    glyphs: list[
        Annotated[
            str,
            checked(
                lambda v: (
                    isinstance(v, str)
                    and len(set(v)) == len(v) > 1
                    and all(map(is_glyph, v))
                    and not set("#.") & set(v)
                ),
                "two or more different characters, such as 1234ABCD, without # and .",
            ),
        ]
    ] = Field(
        default_factory=list,
        description="Sets of characters. Each drawn character may be replaced by another one of its set.",
    )
    texts: list[Annotated[list[str], Field(min_length=2)]] = Field(
        default_factory=list,
        description="Sets of lines under `say`. Each line may be replaced by another one of its set.",
    )

    @model_validator(mode="after")
    def _in_one_set(self) -> Twins:
        for kind, sets in (("character", self.glyphs), ("line", self.texts)):
            members = [one for own in sets for one in own]
            if twice := next((one for one in members if members.count(one) > 1), None):
                in_one = any([*own].count(twice) > 1 for own in sets)
                places = "twice in a set" if in_one else "in two sets"
                raise contradiction(
                    f"The {kind} '{twice}' is {places} of {{where}}.", "Keep it once."
                )
        return self


class Fidelity(DocumentModel):
    """What a protocol keeps of the laboratory's protocol, and what it changes."""

    preserved: Text = Field(description="What is the same as in the laboratory.")
    simplified: Text = Field(description="What is left out or replaced.")
    retained: Text = Field(description="The cognitive demand that should remain.")


class Expect(DocumentModel):
    """The expected results of a test trial."""

    outcome: Name | None = Field(None, description="How the trial ends.")
    success: Truth | None = Field(
        None, description="Whether the trial counts as a success."
    )
    reward: Number | None = Field(None, description="Total reward of the trial.")
    steps: Count | None = Field(
        None, description="Number of steps until the trial ends."
    )
    counters: dict[Name, int] = Field(
        default_factory=dict, description="Values of counters."
    )
    measures: dict[Name, Scalar] = Field(
        default_factory=dict, description="Values of measures."
    )
    variables: dict[Name, Scalar | list[Scalar]] = Field(
        default_factory=dict, description="Values of variables."
    )


class Test(DocumentModel):
    """A trial that `cheesebench test` and CI play."""

    __test__ = False  # This keeps pytest from collecting the class as a test.

    seed: int = Field(0, description="Seed of the subject.")
    subject: int = Field(0, ge=0, description="Number of the subject.")
    trial: Count = Field(
        1,
        description="Which of the subject's trials is played. In earlier trials the subject only waits.",
    )
    actions: list[str] | str | None = Field(
        None,
        description="Actions, as letters (F, L, R, S) or full names. Letters may be written as one string.",
    )
    visit: Names | None = Field(
        None,
        description="Zones to walk to and solids to press, in order, after `actions`.",
    )
    expect: Expect = Field(description="The expected result.")

    @model_validator(mode="after")
    def _one_way(self) -> Test:
        if self.actions is None and self.visit is None:
            raise PydanticCustomError("shape", "'actions', 'visit' or both")
        return self


_MeasureClass = Annotated[
    MeasureClass,
    BeforeValidator(
        short_form("is", lambda v: isinstance(v, str)),
        json_schema_input_type=str | MeasureClass,
    ),
]


_Measure = Expression | Annotated[list[_MeasureClass], Field(min_length=1)]


class MeasureBy(DocumentModel):
    """A measure that reports also give for each condition."""

    value: _Measure = Field(
        description="The measure: an expression, or a list of names."
    )
    by: Names = Field(
        min_length=1,
        description="Variables, draws, counters or measures. Reports also give the measure for each of their values.",
    )


class ProtocolDocument(DocumentModel):
    """A protocol: one paradigm in one edition."""

    version: Literal[1] = Field(description="Version of the language.")
    paradigm: Name = Field(
        description="The paradigm's id. Together with `edition` it names the protocol."
    )
    edition: Name = Field(
        DEFAULT_EDITION, description="Which edition of the paradigm this is."
    )
    extends: ProtocolName | None = Field(
        None,
        description="The parent protocol, as id or id@edition. Mappings are merged, other values are replaced, and "
        "null deletes a "
        "key.",
    )
    title: Text | None = Field(None, description="Title for readers.")
    cite: dict[Name, Citation] = Field(
        default_factory=dict,
        description="Identifiers of the publication by kind: `pmc`, `doi`, ...",
    )
    dimension: Text = Field("unclassified", description="Cognitive dimension.")
    species: Text | None = Field(None, description="Species and strain of the animals.")
    fidelity: Fidelity | None = Field(
        None,
        description="What is kept of the laboratory's protocol, and what is changed.",
    )
    arena: Arena = Field(description="The place.")
    vars: dict[
        Name,
        Annotated[
            Variable,
            BeforeValidator(
                short_form("init", lambda v: not isinstance(v, dict)),
                json_schema_input_type=Scalar | list[Scalar] | Variable,
            ),
        ],
    ] = Field(
        default_factory=dict,
        description="Variables that rules can change. A plain value is short for `init`.",
    )
    draw: dict[Name, Draw] = Field(
        default_factory=dict, description="Values drawn at random."
    )
    start: Start = Field(description="Place and heading at the start of a trial.")
    trial: Trial = Field(description="What happens in a trial.")
    schedule: dict[Name, Block] = Field(
        min_length=1, description="Blocks of sessions of trials, in order."
    )
    success: Expression | None = Field(
        None,
        description="The condition of a success, evaluated after each trial. Without it there is no pass rate, and no "
        "verdict on it.",
    )
    estimand: Annotated[
        Literal["all"] | Estimand,
        checked(
            lambda v: v == "all" or isinstance(v, dict),
            "all, or keys of 'last', 'block', 'where'",
        ),
    ] = Field("all", description="The trials that count for the pass rate.")
    measures: dict[Name, _Measure | MeasureBy] = Field(
        default_factory=dict,
        description="Measures by name. A measure is an expression, a list of names (the first whose `if` holds is used), or a "
        "mapping with `value` and `by`.",
    )
    split: Names = Field(
        default_factory=list,
        description="Variables and measures by which reports split the pass rate.",
    )
    reference: list[Reference] = Field(
        default_factory=list, description="The animals' numbers."
    )
    chance: Chance | None = Field(
        None, description="The measured pass rate of random actions."
    )
    margin: float = Field(
        0.10, gt=0, lt=1, description="Non-inferiority margin of the verdict."
    )
    checks: list[Check] = Field(
        default_factory=list,
        description="Hidden variables that the audit tries to guess from observations.",
    )
    # The name has an underscore because pydantic uses `construct` itself.
    construct_: Construct | None = Field(
        None,
        alias="construct",
        description="What is measured, and what abolishes it. Without this key, a result is not validated.",
    )
    tests: list[Test] = Field(
        default_factory=list, description="Example trials that check the protocol."
    )
    twins: Twins | None = Field(
        None, description="What may be exchanged without changing the task."
    )
    twin_of: ProtocolName | None = Field(
        None, description="The protocol that this is a twin of."
    )
    notes: Text | list[Text] | None = Field(None, description="Free text for readers.")
    acknowledged: dict[Name, Text] = Field(
        default_factory=dict,
        description="Why a warning or note of `cheesebench lint` is meant, or cannot be mended, by its code, as in "
        "`W311: the light is the cue`. Lint drops the finding, and reports give the reason.",
    )

    @property
    def by(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a measure and a variable. Reports split the measure by the
        variable's values.
        """
        given = (
            (name, one.by)
            for name, one in self.measures.items()
            if isinstance(one, MeasureBy)
        )
        return tuple(
            (name, variable) for name, variables in given for variable in variables
        )
