"""The shape of a protocol file, as typed models: keys, their values, and what each means.

The JSON Schema for editors and the language reference are generated from here. Names and expressions are only
text at this level; ``resolve`` gives them their meaning.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from cheesebench.protocol.values import (
    MAX_COUNT,
    Citation,
    Count,
    Expression,
    Glyph,
    GlyphOrName,
    Name,
    Names,
    Probability,
    Scalar,
    Scope,
    Text,
    Truth,
    as_list,
    checked,
    is_name,
    is_number,
    short_form,
)


class Model(BaseModel):
    """Base of all models here: unknown keys are errors, nothing is converted in silence."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class LegendEntry(Model):
    """What a map character stands for: one of zone, zones and solid, or a door (which may be in zones, too)."""

    zone: Name | None = Field(None, description="The cells belong to this zone.")
    zones: list[Name] | None = Field(None, description="The cells belong to all of these zones.")
    door: Name | None = Field(None, description="Floor that a state may close.")
    solid: Name | None = Field(None, description="Never entered, but pressed by FORWARD.")
    glyph: Glyph | None = Field(None, description="How it is drawn (a door: while closed). Zones: invisible without.")

    @model_validator(mode="after")
    def _one_kind(self) -> LegendEntry:
        given = sum(kind is not None for kind in (self.zone, self.zones, self.solid))
        if given > 1 or (self.door and self.solid) or not (given or self.door):
            raise PydanticCustomError("shape", "exactly one of 'zone', 'zones', 'door', 'solid'")
        return self


class PlacedLandmark(Model):
    """A landmark at a square of the map, ``at: [column, row]`` counted from 0 in the north-west."""

    at: tuple[int, int] = Field(description="Column and row; outside the walkable floor, also outside the map.")
    glyph: Glyph

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("at"), list):
            return {**value, "at": tuple(value["at"])}
        return value


class Pool(Model):
    """A round pool. Zones nw ne sw se, rim, spot_nw ..., edge_n ..., centre; groups quadrant, spot, edge."""

    radius: int = Field(ge=3, le=40)


class Ring(Model):
    """A disc with holes near its edge. Zones hole1 ... (from north, clockwise), centre; group hole."""

    radius: int = Field(ge=4, le=40)
    holes: int = Field(ge=2, le=40)


class Radial(Model):
    """A hub with arms. Zones hub, centre, arm1 ..., cup1 ...; doors gate1 ...; groups arm, cup, gate."""

    arms: int = Field(ge=2, le=8)
    length: int = Field(ge=1, le=40)
    width: Literal[1, 3] = 1
    hub: int | None = Field(None, ge=1, le=20, description="Half width of the hub; the smallest possible by default.")


class Boxes(Model):
    """Two compartments and a doorway. Zones west, east; door gate; group side."""

    width: int = Field(5, ge=1, le=40)
    height: int = Field(5, ge=1, le=40)
    doorway: int = Field(1, ge=1, le=40, description="Height of the doorway in cells.")


class Arena(Model):
    """The place: a map with legend and groups, or one generator."""

    map: str | None = None
    legend: dict[
        Glyph,
        Annotated[
            LegendEntry,
            BeforeValidator(short_form("zone", lambda v: isinstance(v, str)), json_schema_input_type=str | LegendEntry),
        ],
    ] = Field(default_factory=dict)
    groups: dict[Name, list[Name]] = Field(default_factory=dict, description="Ordered lists of zones.")
    pool: Pool | None = None
    ring: Ring | None = None
    radial: Radial | None = None
    boxes: Boxes | None = None
    landmarks: dict[Name, Glyph | PlacedLandmark] | list[PlacedLandmark] = Field(default_factory=dict)
    headings: Literal[8, 4] = Field(8, description="8: turns of 45 degrees; 4: turns of 90.")


class Variable(Model):
    """A mutable value: a number, a name or (from a list) a set."""

    init: Scalar | list[Scalar] = Field(description="Initial value; a list makes a set; `none` is no place, no name.")
    per: Scope = Field("trial", description="When it takes its initial value again.")


class Draw(Model):
    """A small table; when its scope begins, one row is drawn and its columns become variables."""

    per: Scope = "trial"
    order: Literal["random", "shuffle", "cycle", "by_subject"] = "random"
    of: dict[Name, Annotated[list[Scalar], Field(min_length=1)]] = Field(min_length=1)
    pick: Count | None = Field(None, description="A subset of this many rows: columns become sets.")
    copies: Count = Field(1, description="How often a row stands in one permuted block (order: shuffle).")
    max_run: Count | None = Field(None, description="Longest run of one value of the first column.")
    keep_if: Expression | None = Field(None, description="True keeps the previous row.")


class Start(Model):
    """Where a trial begins."""

    at: Name = Field(description="A zone, a group or a variable that holds one.")
    face: Name = Field("N", description="A heading, `random`, or a variable that holds a heading.")
    carry: Truth = Field(False, description="Trial k+1 begins where k ended; the first of a session uses `at`.")


class Effects(Model):
    """What happens: executed in the order set, add, count, reward, place."""

    set: dict[Name, Expression] = Field(default_factory=dict, description="All right-hand sides read old values.")
    add: dict[Name, Expression] = Field(default_factory=dict, description="Adds a member to a set.")
    count: Names = Field(default_factory=list, description="Counters of the trial that go up by one.")
    reward: Expression | None = None
    place: Name | None = Field(None, description="Teleports to a zone; the heading is reset to `start.face`.")


class Rule(Effects):
    """One trigger, guards, effects, and at most one exit."""

    enter: Name | None = Field(None, description="A zone, a group, or a variable holding one, was entered.")
    press: Name | None = Field(None, description="FORWARD was blocked by this solid.")
    after: Expression | None = Field(None, description="At least this many steps in the state.")
    act: Literal["STAY", "FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT"] | None = None
    if_: Expression | None = Field(None, alias="if")
    p: Expression | None = Field(None, description="Probability, drawn only when trigger and `if` hold.")
    go: Name | None = Field(None, description="The state to go to.")
    end: Name | None = Field(None, description="The outcome that ends the trial.")


class State(Effects):
    """What is said, shown, closed or frozen while here; effects on entry; rules in order."""

    say: Text | list[Text] | None = Field(None, description="Line (or lines) of text under the picture.")
    show: dict[Name, GlyphOrName] = Field(default_factory=dict, description="Zones, groups or solids and their glyphs.")
    close: Names = Field(default_factory=list, description="Doors that are closed.")
    freeze: Truth = Field(False, description="Nothing moves.")
    each: Effects | None = Field(None, description="Effects on every step spent here.")
    rules: list[Rule] = Field(default_factory=list)


class MeasureClass(Model):
    """A name that a measure has while its condition holds."""

    if_: Expression | None = Field(None, alias="if")
    is_: Name = Field(alias="is")


class Entry(Model):
    """A guarded choice of the initial state."""

    if_: Expression | None = Field(None, alias="if")
    go: Name


class Finish(Model):
    """An end condition, tested after anything fired."""

    if_: Expression | None = Field(None, alias="if")
    end: Name


_Entry = Annotated[
    Entry, BeforeValidator(short_form("go", lambda v: isinstance(v, str)), json_schema_input_type=str | Entry)
]


class Trial(Model):
    """What a trial is made of."""

    limit: Annotated[
        int | str,
        checked(
            lambda v: (isinstance(v, int) and not isinstance(v, bool) and 1 <= v <= MAX_COUNT) or is_name(v),
            f"a whole number of steps from 1 to {MAX_COUNT}, or a variable that holds one",
        ),
    ] = Field(description="Steps after which a trial is cut off.")
    start: Annotated[list[_Entry], BeforeValidator(as_list, json_schema_input_type=str | list[str | Entry])]
    states: dict[Name, State] = Field(min_length=1)
    each: Effects | None = None
    watch: list[Rule] = Field(default_factory=list, description="Rules that never move the trial.")
    finish: list[Finish] = Field(default_factory=list)


class Until(Model):
    """Ends a block's repetition once `count` of the last `of` outcomes were `outcome`."""

    outcome: Names
    count: Count
    of: Count


class Block(Model):
    """Sessions x trials, `repeat` times."""

    sessions: Count = 1
    trials: Count = 1
    repeat: Count = 1
    set: dict[Name, Scalar | list[Scalar]] = Field(
        default_factory=dict, description="Values of variables in this block."
    )
    until: Until | None = None


class Estimand(Model):
    """The trials that the pass rate is taken over: the last of each subject, or those of some blocks; and `where`."""

    last: Count | None = Field(None, description="The last trials of each subject.")
    block: Names | None = Field(None, description="The trials of this block, or of these.", min_length=1)
    where: Expression | None = Field(None, description="Only trials for which this holds at their end.")

    @model_validator(mode="after")
    def _says_which(self) -> Estimand:
        if self.last is not None and self.block is not None:
            raise PydanticCustomError("shape", "either 'last' or 'block'")
        if self.last is None and self.block is None and self.where is None:
            raise PydanticCustomError("shape", "one of 'last', 'block', 'where'")
        return self


class Reference(Model):
    """A number measured on animals, with its provenance."""

    measure: Name
    value: Annotated[float, checked(is_number, "a number")]
    interval: tuple[float, float] | None = Field(None, description="95 % interval, low and high.")
    n_animals: Count | None = None
    curve: list[Annotated[float, checked(is_number, "a number")]] = Field(
        default_factory=list, description="By session, from 1."
    )
    at: Scalar | None = Field(None, description="When the value was measured (free text or session).")
    where: Expression | None = Field(None, description="Only trials for which this holds are compared.")
    species: Text | None = None
    source: Text | None = None
    status: Text = Field(description="How the number was obtained, or 'as in Table 5; not re-derived'.")

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("interval"), list):
            return {**value, "interval": tuple(value["interval"])}
        return value


class Chance(Model):
    """The measured pass rate of the uniformly random agent."""

    value: Probability
    trials: Count = Field(description="Trials it was measured over.")
    how: Text


class Check(Model):
    """What must not be readable from the observation at entry to a state."""

    at: Name
    hidden: Name
    chance: Probability


class Expect(Model):
    """What a test trial must come to."""

    outcome: Name | None = None
    success: Truth | None = None
    reward: Annotated[float, checked(is_number, "a number")] | None = None
    steps: Count | None = None
    counters: dict[Name, int] = Field(default_factory=dict)
    measures: dict[Name, Scalar] = Field(default_factory=dict)
    variables: dict[Name, Scalar | list[Scalar]] = Field(default_factory=dict)


class Test(Model):
    """A trial played by the author's `test` command and by CI."""

    __test__ = False  # not for pytest to collect

    seed: int = 0
    subject: int = Field(0, ge=0)
    trial: Count = Field(1, description="Which trial of the life is played; the earlier ones are waited out.")
    actions: list[str] | str | None = Field(
        None, description="F, L, R, S or full names; one string of letters will do."
    )
    visit: Names | None = Field(None, description="Zones walked to, solids pressed, one after the other.")
    expect: Expect

    @model_validator(mode="after")
    def _one_way(self) -> Test:
        if (self.actions is None) == (self.visit is None):
            raise PydanticCustomError("shape", "either 'actions' or 'visit'")
        return self


_MeasureClass = Annotated[
    MeasureClass,
    BeforeValidator(short_form("is", lambda v: isinstance(v, str)), json_schema_input_type=str | MeasureClass),
]


class ProtocolDocument(Model):
    """A protocol: one paradigm in one edition."""

    version: Literal[1] = Field(description="Version of the language.")
    paradigm: Name
    edition: Name = "paper"
    extends: Name | None = Field(
        None, description="Id of the one parent; mappings merge, the rest replaces, null deletes."
    )
    title: Text | None = None
    cite: dict[Name, Citation] = Field(default_factory=dict)
    dimension: Text = Field("unclassified", description="Cognitive dimension.")
    species: Text | None = None
    arena: Arena
    vars: dict[
        Name,
        Annotated[
            Variable,
            BeforeValidator(
                short_form("init", lambda v: not isinstance(v, dict)),
                json_schema_input_type=Scalar | list[Scalar] | Variable,
            ),
        ],
    ] = Field(default_factory=dict)
    draw: dict[Name, Draw] = Field(default_factory=dict)
    start: Start
    trial: Trial
    schedule: dict[Name, Block] = Field(min_length=1)
    success: Expression | None = None
    estimand: Annotated[
        Literal["all"] | Estimand,
        checked(lambda v: v == "all" or isinstance(v, dict), "all, or keys of 'last', 'block', 'where'"),
    ] = "all"
    measures: dict[Name, Expression | list[_MeasureClass]] = Field(
        default_factory=dict,
        description="Expressions; or a list of names, of which the first is taken whose `if` holds.",
    )
    split: Names = Field(
        default_factory=list, description="Variables and measures by which reports split the pass rate."
    )
    reference: list[Reference] = Field(default_factory=list)
    chance: Chance | None = None
    margin: float = Field(0.10, gt=0, lt=1, description="Non-inferiority margin of the verdict.")
    checks: list[Check] = Field(default_factory=list)
    tests: list[Test] = Field(default_factory=list)
    notes: Text | list[Text] | None = None
