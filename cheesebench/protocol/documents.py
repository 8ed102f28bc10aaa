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
    ProtocolName,
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
    """Base of all models here: unknown keys are errors, nothing is converted in silence; built when first needed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True, defer_build=True)


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
    glyph: Glyph = Field(description="How it is drawn.")

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("at"), list):
            return {**value, "at": tuple(value["at"])}
        return value


class Pool(Model):
    """A round pool. Zones nw ne sw se, rim, spot_nw ..., edge_n ..., centre; groups quadrant, spot, edge."""

    radius: int = Field(ge=3, le=40, description="In cells; there is water where the distance is below radius - 0.5.")


class Ring(Model):
    """A disc with holes near its edge. Zones hole1 ... (from north, clockwise), centre; group hole."""

    radius: int = Field(ge=4, le=40, description="In cells.")
    holes: int = Field(ge=2, le=40, description="Number of holes.")


class Radial(Model):
    """A hub with arms. Zones hub, centre, arm1 ..., cup1 ...; doors gate1 ...; groups arm, cup, gate."""

    arms: int = Field(ge=2, le=8, description="Number of arms, snapped to the compass.")
    length: int = Field(ge=1, le=40, description="Of an arm, in cells.")
    width: Literal[1, 3] = Field(1, description="Of an arm, in cells.")
    hub: int | None = Field(None, ge=1, le=20, description="Half width of the hub; the smallest possible by default.")


class Boxes(Model):
    """Two compartments and a doorway. Zones west, east; door gate; group side."""

    width: int = Field(5, ge=1, le=40, description="Of each compartment, in cells.")
    height: int = Field(5, ge=1, le=40, description="Of both, in cells.")
    doorway: int = Field(1, ge=1, le=40, description="Height of the doorway in cells.")


class Arena(Model):
    """The place: a map with legend and groups, or one generator."""

    map: str | None = Field(None, description="The picture: `#` wall, `.` floor, blank nothing; the rest in `legend`.")
    legend: dict[
        Glyph,
        Annotated[
            LegendEntry,
            BeforeValidator(short_form("zone", lambda v: isinstance(v, str)), json_schema_input_type=str | LegendEntry),
        ],
    ] = Field(default_factory=dict, description="What the characters of the map stand for; a name alone is a zone.")
    groups: dict[Name, list[Name]] = Field(default_factory=dict, description="Ordered lists of zones (or solids).")
    pool: Pool | None = Field(None, description="A round pool, instead of a map.")
    ring: Ring | None = Field(None, description="A disc with holes, instead of a map.")
    radial: Radial | None = Field(None, description="A hub with arms, instead of a map.")
    boxes: Boxes | None = Field(None, description="Two compartments, instead of a map.")
    landmarks: dict[Name, Glyph | PlacedLandmark] | list[PlacedLandmark] = Field(
        default_factory=dict, description="What stands around the floor: `N: glyph` ... `NW: glyph`, or placed."
    )
    headings: Literal[8, 4] = Field(8, description="8: turns of 45 degrees; 4: turns of 90.")


class Variable(Model):
    """A mutable value: a number, a name or (from a list) a set."""

    init: Scalar | list[Scalar] = Field(description="Initial value; a list makes a set; `none` is no place, no name.")
    per: Scope = Field("trial", description="When it takes its initial value again.")


class Draw(Model):
    """A small table; when its scope begins, one row is drawn and its columns become variables."""

    per: Scope = Field("trial", description="When a new row is drawn.")
    order: Literal["random", "shuffle", "cycle", "by_subject"] = Field(
        "random", description="Independent; in permuted blocks; row after row; row (subject mod rows)."
    )
    of: dict[Name, Annotated[list[Scalar], Field(min_length=1)]] = Field(
        min_length=1, description="The table: its columns, of equal length, become variables."
    )
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
    reward: Expression | None = Field(None, description="Added to the reward of the step.")
    place: Name | None = Field(None, description="Teleports to a zone; the heading is reset to `start.face`.")


class Rule(Effects):
    """One trigger, guards, effects, and at most one exit."""

    enter: Name | None = Field(None, description="A zone, a group, or a variable holding one, was entered.")
    press: Name | None = Field(None, description="FORWARD was blocked by this solid.")
    after: Expression | None = Field(None, description="At least this many steps in the state.")
    act: Literal["STAY", "FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT"] | None = Field(
        None, description="This action was taken."
    )
    if_: Expression | None = Field(None, alias="if", description="The rule fires only while this holds.")
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
    rules: list[Rule] = Field(default_factory=list, description="At most one fires on a step: the first that holds.")


class MeasureClass(Model):
    """A name that a measure has while its condition holds."""

    if_: Expression | None = Field(None, alias="if", description="The condition; without one it always holds.")
    is_: Name = Field(alias="is", description="The name.")


class Entry(Model):
    """A guarded choice of the initial state."""

    if_: Expression | None = Field(None, alias="if", description="The condition; the last entry has none.")
    go: Name = Field(description="The state.")


class Finish(Model):
    """An end condition, tested after anything fired."""

    if_: Expression | None = Field(None, alias="if", description="The condition.")
    end: Name = Field(description="The outcome that ends the trial.")


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
    ] = Field(description="Steps after which a trial is cut off; or a variable.")
    start: Annotated[list[_Entry], BeforeValidator(as_list, json_schema_input_type=str | list[str | Entry])] = Field(
        description="The initial state; of several the first whose `if` holds."
    )
    states: dict[Name, State] = Field(min_length=1, description="What holds at a time, and what leads on.")
    each: Effects | None = Field(None, description="Effects on every step, whatever the state.")
    watch: list[Rule] = Field(default_factory=list, description="Rules that never move the trial.")
    finish: list[Finish] = Field(default_factory=list, description="Ends, tested on steps on which a rule fired.")


class Until(Model):
    """Ends a block's repetition once `count` of the last `of` outcomes were `outcome`."""

    outcome: Names = Field(description="The outcomes that count.")
    count: Count = Field(description="How many of them are needed.")
    of: Count = Field(description="Among how many of the last trials.")


class Block(Model):
    """Sessions x trials, `repeat` times."""

    sessions: Count = Field(1, description="Sessions of one repetition.")
    trials: Count = Field(1, description="Trials of a session.")
    repeat: Count = Field(1, description="Repetitions of the block.")
    set: dict[Name, Scalar | list[Scalar]] = Field(
        default_factory=dict, description="Values of variables in this block."
    )
    until: Until | None = Field(None, description="A criterion that ends a repetition early.")


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

    measure: Name = Field(description="`success`, or one of `measures`; the first on `success` is what is compared.")
    value: Annotated[float, checked(is_number, "a number")] = Field(description="The animals' number.")
    interval: tuple[float, float] | None = Field(None, description="95 % interval, low and high.")
    n_animals: Count | None = Field(None, description="Animals behind the value.")
    curve: list[Annotated[float, checked(is_number, "a number")]] = Field(
        default_factory=list, description="By session, from 1."
    )
    at: Scalar | None = Field(None, description="When the value was measured (free text or session).")
    where: Expression | None = Field(None, description="Only trials for which this holds are compared.")
    species: Text | None = Field(None, description="Species and strain, if not the protocol's.")
    source: Text | None = Field(None, description="Where it is published.")
    status: Text = Field(description="How the number was obtained, or 'as in Table 5; not re-derived'.")

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("interval"), list):
            return {**value, "interval": tuple(value["interval"])}
        return value


class Chance(Model):
    """The measured pass rate of the uniformly random agent."""

    value: Probability = Field(description="The pass rate.")
    trials: Count = Field(description="Trials it was measured over.")
    how: Text = Field(description="How it was measured: command, seed, version.")


class Check(Model):
    """What must not be readable from the observation at entry to a state."""

    at: Name = Field(description="The state.")
    hidden: Name = Field(description="The variable that must not show.")
    chance: Probability = Field(description="How often guessing tells it.")


class Expect(Model):
    """What a test trial must come to."""

    outcome: Name | None = Field(None, description="How the trial ends.")
    success: Truth | None = Field(None, description="Whether it counts as success.")
    reward: Annotated[float, checked(is_number, "a number")] | None = Field(None, description="Sum over the trial.")
    steps: Count | None = Field(None, description="Steps until its end.")
    counters: dict[Name, int] = Field(default_factory=dict, description="Values of counters.")
    measures: dict[Name, Scalar] = Field(default_factory=dict, description="Values of measures.")
    variables: dict[Name, Scalar | list[Scalar]] = Field(default_factory=dict, description="Values of variables.")


class Test(Model):
    """A trial played by the author's `test` command and by CI."""

    __test__ = False  # not for pytest to collect

    seed: int = Field(0, description="Seed of the life.")
    subject: int = Field(0, ge=0, description="Number of the subject.")
    trial: Count = Field(1, description="Which trial of the life is played; the earlier ones are waited out.")
    actions: list[str] | str | None = Field(
        None, description="F, L, R, S or full names; one string of letters will do."
    )
    visit: Names | None = Field(None, description="Zones walked to, solids pressed, one after the other.")
    expect: Expect = Field(description="What it must come to.")

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
    paradigm: Name = Field(description="The id; with `edition` it names the protocol.")
    edition: Name = Field("paper", description="Which edition of the paradigm this is.")
    extends: ProtocolName | None = Field(
        None, description="The one parent, id or id@edition; mappings merge, the rest replaces, null deletes."
    )
    title: Text | None = Field(None, description="Title for people.")
    cite: dict[Name, Citation] = Field(default_factory=dict, description="Kind and number: `pmc`, `doi`, ...")
    dimension: Text = Field("unclassified", description="Cognitive dimension.")
    species: Text | None = Field(None, description="Species and strain of the animals.")
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
    ] = Field(default_factory=dict, description="Values that rules change; a value alone is `init`.")
    draw: dict[Name, Draw] = Field(default_factory=dict, description="Values that are drawn.")
    start: Start = Field(description="Place and heading at the beginning of a trial.")
    trial: Trial = Field(description="What happens in a trial.")
    schedule: dict[Name, Block] = Field(min_length=1, description="Blocks of sessions of trials, in order.")
    success: Expression | None = Field(
        None, description="Evaluated after each trial; without it there is no pass rate and no verdict."
    )
    estimand: Annotated[
        Literal["all"] | Estimand,
        checked(lambda v: v == "all" or isinstance(v, dict), "all, or keys of 'last', 'block', 'where'"),
    ] = Field("all", description="The trials that the pass rate is taken over.")
    measures: dict[Name, Expression | list[_MeasureClass]] = Field(
        default_factory=dict,
        description="Expressions; or a list of names, of which the first is taken whose `if` holds.",
    )
    split: Names = Field(
        default_factory=list, description="Variables and measures by which reports split the pass rate."
    )
    reference: list[Reference] = Field(default_factory=list, description="The animals' numbers.")
    chance: Chance | None = Field(None, description="What moving at random comes to.")
    margin: float = Field(0.10, gt=0, lt=1, description="Non-inferiority margin of the verdict.")
    checks: list[Check] = Field(default_factory=list, description="What the audit looks for in observations.")
    tests: list[Test] = Field(default_factory=list, description="Trials that prove the protocol.")
    notes: Text | list[Text] | None = Field(None, description="For people.")
