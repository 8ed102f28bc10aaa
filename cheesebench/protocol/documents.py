"""Typed models of a protocol file: its keys, their values and their descriptions.

The JSON Schema for editors and the language reference are generated from here. Names and expressions are plain text
at this level; ``resolve`` resolves them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from cheesebench.protocol.arena_documents import Arena, Model
from cheesebench.protocol.draw_documents import Draw
from cheesebench.protocol.features import EFFECTS, TRIGGERS
from cheesebench.protocol.schedule_documents import Block
from cheesebench.protocol.values import (
    DEFAULT_EDITION,
    MAX_COUNT,
    Citation,
    ColumnAndRow,
    Count,
    Expression,
    GlyphOrName,
    Lines,
    Name,
    Names,
    Number,
    Probability,
    ProtocolName,
    Scalar,
    Scope,
    Sessions,
    Text,
    Truth,
    as_list,
    checked,
    is_name,
    short_form,
)


class Variable(Model):
    """A mutable value: a number, a name or (from a list) a set."""

    init: Scalar | list[Scalar] = Field(description="Initial value; a list makes a set; `none` means no place or name.")
    per: Scope = Field("trial", description="When it is reset to its initial value.")


class Start(Model):
    """Where a trial begins."""

    at: Name = Field(description="A zone, a group or a variable that holds one.")
    face: Name = Field("N", description="A heading, `random`, or a variable that holds a heading.")
    carry: Truth = Field(False, description="Trial k+1 begins where k ended; the first of a session uses `at`.")


class Effects(Model):
    """Effects, executed in the order set, add, remove, count, reward, place, put."""

    set: dict[Name, Expression] = Field(default_factory=dict, description=EFFECTS["set"].meaning)
    add: dict[Name, Expression] = Field(default_factory=dict, description=EFFECTS["add"].meaning)
    remove: dict[Name, Expression] = Field(default_factory=dict, description=EFFECTS["remove"].meaning)
    count: Names = Field(default_factory=list, description=EFFECTS["count"].meaning)
    reward: Expression | None = Field(None, description=EFFECTS["reward"].meaning)
    place: Name | None = Field(None, description=EFFECTS["place"].meaning)
    put: ColumnAndRow | None = Field(None, description=EFFECTS["put"].meaning)


class Rule(Effects):
    """One trigger, guards, effects, and at most one exit."""

    enter: Name | None = Field(None, description=TRIGGERS["enter"].meaning)
    inside: Name | None = Field(None, description=TRIGGERS["inside"].meaning)
    press: Name | None = Field(None, description=TRIGGERS["press"].meaning)
    after: Expression | None = Field(None, description=TRIGGERS["after"].meaning)
    act: Literal["STAY", "FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "any"] | None = Field(
        None, description=TRIGGERS["act"].meaning
    )
    if_: Expression | None = Field(None, alias="if", description="The rule fires only while this holds.")
    p: Expression | None = Field(None, description="Probability, drawn only when trigger and `if` hold.")
    go: Name | None = Field(None, description="The state to go to.")
    end: Name | None = Field(None, description="The outcome that ends the trial.")


class State(Effects):
    """What is said, shown, closed or frozen while here; effects on entry; rules in order."""

    say: Lines | None = Field(None, description="Line (or lines) of text under the picture.")
    show: dict[Name, GlyphOrName] = Field(
        default_factory=dict, description="Zones, groups, solids or landmarks and their glyphs (`' '`: not drawn)."
    )
    close: Names = Field(default_factory=list, description="Doors that are closed.")
    open: Names = Field(default_factory=list, description="Of the doors under `close`, those that stay open.")
    freeze: Truth = Field(False, description="Nothing moves.")
    each: Effects | None = Field(None, description="Effects on every step spent here.")
    rules: list[Rule] = Field(
        default_factory=list, description="At most one fires on each step: the first that applies."
    )


class MeasureClass(Model):
    """A value of a categorical measure, and its condition."""

    if_: Expression | None = Field(None, alias="if", description="The condition; without one it always holds.")
    is_: Name = Field(alias="is", description="The value, a name.")


class Entry(Model):
    """A guarded choice of the initial state."""

    if_: Expression | None = Field(None, alias="if", description="The condition; the last entry has none.")
    go: Name = Field(description="The state.")


class Finish(Model):
    """An end condition, tested after anything fired; or a condition on which the trial goes to another state."""

    if_: Expression | None = Field(None, alias="if", description="The condition.")
    end: Name | None = Field(None, description="The outcome that ends the trial.")
    go: Name | None = Field(None, description="Instead of `end`: the state to go to, from any other state.")


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
        description="The initial state; in a list, the first whose `if` holds."
    )
    states: dict[Name, State] = Field(
        min_length=1, description="The states of a trial; exactly one is active at a time."
    )
    show: dict[Name, GlyphOrName] = Field(
        default_factory=dict, description="What is shown whatever the state; a state's own `show` takes precedence."
    )
    close: Names = Field(default_factory=list, description="Doors that are closed whatever the state.")
    each: Effects | None = Field(None, description="Effects on every step, whatever the state.")
    watch: list[Rule] = Field(
        default_factory=list, description="Rules that never change the state; all that hold fire."
    )
    finish: list[Finish] = Field(
        default_factory=list, description="Ends (or `go`), tested on steps where a rule fired."
    )


class Estimand(Model):
    """The trials that the pass rate is taken over: `last` or `block`, and of these those for which `where` holds."""

    last: Count | None = Field(None, description="The last trials of each subject.")
    block: Names | None = Field(None, description="The trials of this block, or of these.", min_length=1)
    where: Expression | None = Field(None, description="Only trials at whose end this holds.")

    @model_validator(mode="after")
    def _says_which(self) -> Estimand:
        if self.last is not None and self.block is not None:
            raise PydanticCustomError("shape", "either 'last' or 'block'")
        if self.last is None and self.block is None and self.where is None:
            raise PydanticCustomError("shape", "one of 'last', 'block', 'where'")
        return self


class Reference(Model):
    """A number measured on animals, with its provenance."""

    measure: Name = Field(
        description="`success`, or a measure; a verdict uses the one with `better`, else the first on `success`."
    )
    value: Number | None = Field(None, description="The animals' value; computed from `curve` or `animals` if absent.")
    interval: tuple[float, float] | None = Field(None, description="95 % interval, low and high.")
    better: Literal["higher", "lower"] | None = Field(
        None, description="The verdict is about this measure; its better side. Needs `margin`."
    )
    margin: Annotated[float, Field(gt=0)] | None = Field(
        None, description="With `better`: how much worse still counts as equal, in the measure's unit."
    )
    range: tuple[float, float] | None = Field(
        None, description="With `better`: lowest and highest possible value; without it the verdict is by Student's t."
    )
    n_animals: Count | None = Field(None, description="Number of animals behind the value.")
    sd: Number | None = Field(None, description="Standard deviation, between animals, of each animal's rate.")
    sem: Number | None = Field(
        None, description="Standard error of the mean: `sd` divided by the square root of `n_animals`."
    )
    curve: list[Number] = Field(default_factory=list, description="The value for each session, from session 1.")
    curve_sd: list[Number] = Field(
        default_factory=list, description="Standard deviation between animals, for each session."
    )
    over: Sessions | Annotated[list[Count], Field(min_length=1)] | None = Field(
        None, description="Sessions that the value covers: `all`, `last`, `last:K`, or their numbers."
    )
    kind: Literal["measured", "declared", "analogy"] | None = Field(
        None, description="`analogy`: the source measured a different event than `success`."
    )
    animals: Annotated[str, Field(max_length=200)] | list[list[int | str]] | None = Field(
        None, description="CSV file in the protocol's folder with `animal,session,trials,passed`, or its rows."
    )
    at: Scalar | None = Field(None, description="When the value was measured (free text or session).")
    where: Expression | None = Field(None, description="Only trials for which this holds are compared.")
    species: Text | None = Field(None, description="Species and strain, if not the protocol's.")
    source: Text | None = Field(None, description="Where it is published.")
    status: Text = Field(description="How the number was obtained, or 'as in Table 5; not re-derived'.")

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        pairs = {key: tuple(value[key]) for key in ("interval", "range") if isinstance(value.get(key), list)}
        return {**value, **pairs} if pairs else value


class Chance(Model):
    """The measured pass rate of an agent that acts uniformly at random."""

    value: Probability = Field(description="The pass rate.")
    trials: Count = Field(description="Number of trials it was measured over.")
    how: Text = Field(description="How it was measured: command, seed, version.")


class Check(Model):
    """What must not be readable from the observation at entry to a state."""

    at: Name = Field(description="The state.")
    hidden: Name = Field(description="The variable that must not be readable.")
    chance: Probability = Field(description="How often a guess is right.")


class LesionKeys(Model):
    """A lesion with its object; a lesion without one is written as a word, such as `blind`."""

    hide: Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str])] = Field(
        default_factory=list, description="`landmarks`, a zone, solid or landmark, `glyph:X`, `text` or `text:STATE`."
    )
    amnesia: Names = Field(
        default_factory=list,
        description="`trial` (between trials), or the states at whose entry everything is forgotten.",
    )

    @model_validator(mode="after")
    def _takes_something(self) -> LesionKeys:
        if not self.hide and not self.amnesia:
            raise PydanticCustomError("shape", "'hide' or 'amnesia'")
        return self


class Abolished(Model):
    """A lesion that must abolish success."""

    lesion: str | LesionKeys = Field(description="`blind`, `anhedonia`, ..., `blind+anhedonia`; or its keys.")
    at_most: Probability = Field(description="The highest pass rate that may remain.")


class Construct(Model):
    """What the paradigm claims to measure, and the lesions that must abolish it."""

    name: Text = Field(description="What is measured: spatial memory, working memory, ...")
    abolished_by: list[Abolished] = Field(min_length=1, description="Lesions that must abolish success.")
    spared_by: Annotated[
        list[str | LesionKeys],
        BeforeValidator(as_list, json_schema_input_type=str | list[str | LesionKeys]),
    ] = Field(default_factory=list, description="Lesions that must not matter.")


class Fidelity(Model):
    """What a protocol keeps of the laboratory's protocol, and what it does not."""

    preserved: Text = Field(description="What is the same as in the laboratory.")
    simplified: Text = Field(description="What is left out or replaced.")
    retained: Text = Field(description="The cognitive demand that should remain.")


class Expect(Model):
    """The expected results of a test trial."""

    outcome: Name | None = Field(None, description="How the trial ends.")
    success: Truth | None = Field(None, description="Whether it counts as success.")
    reward: Number | None = Field(None, description="Sum over the trial.")
    steps: Count | None = Field(None, description="Steps until its end.")
    counters: dict[Name, int] = Field(default_factory=dict, description="Values of counters.")
    measures: dict[Name, Scalar] = Field(default_factory=dict, description="Values of measures.")
    variables: dict[Name, Scalar | list[Scalar]] = Field(default_factory=dict, description="Values of variables.")


class Test(Model):
    """A trial played by the author's `test` command and by CI."""

    __test__ = False  # not for pytest to collect

    seed: int = Field(0, description="Seed of the subject.")
    subject: int = Field(0, ge=0, description="Number of the subject.")
    trial: Count = Field(
        1, description="Which of the subject's trials is played; in the earlier ones the subject only waits."
    )
    actions: list[str] | str | None = Field(None, description="F, L, R, S or full names; letters may be one string.")
    visit: Names | None = Field(None, description="Zones to walk to and solids to press, in order.")
    expect: Expect = Field(description="The expected result.")

    @model_validator(mode="after")
    def _one_way(self) -> Test:
        if (self.actions is None) == (self.visit is None):
            raise PydanticCustomError("shape", "either 'actions' or 'visit'")
        return self


_MeasureClass = Annotated[
    MeasureClass,
    BeforeValidator(short_form("is", lambda v: isinstance(v, str)), json_schema_input_type=str | MeasureClass),
]


_Measure = Expression | Annotated[list[_MeasureClass], Field(min_length=1)]


class MeasureBy(Model):
    """A measure that reports give by condition, too."""

    value: _Measure = Field(description="An expression, or a list of names, as for any measure.")
    by: Names = Field(
        min_length=1,
        description="Variables, draws, counters or measures: reports give the measure for each of their values.",
    )


class ProtocolDocument(Model):
    """A protocol: one paradigm in one edition."""

    version: Literal[1] = Field(description="Version of the language.")
    paradigm: Name = Field(description="The id; with `edition` it names the protocol.")
    edition: Name = Field(DEFAULT_EDITION, description="Which edition of the paradigm this is.")
    extends: ProtocolName | None = Field(
        None,
        description="The one parent, as id or id@edition; mappings are merged, other values replaced, null deletes.",
    )
    title: Text | None = Field(None, description="Title for readers.")
    cite: dict[Name, Citation] = Field(default_factory=dict, description="Kind and number: `pmc`, `doi`, ...")
    dimension: Text = Field("unclassified", description="Cognitive dimension.")
    species: Text | None = Field(None, description="Species and strain of the animals.")
    fidelity: Fidelity | None = Field(
        None, description="What is preserved of the laboratory's protocol, and what is not."
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
    ] = Field(default_factory=dict, description="Variables that rules change; a plain value is `init`.")
    draw: dict[Name, Draw] = Field(default_factory=dict, description="Values drawn at random.")
    start: Start = Field(description="Place and heading at the start of a trial.")
    trial: Trial = Field(description="What happens in a trial.")
    schedule: dict[Name, Block] = Field(min_length=1, description="Blocks of sessions of trials, in order.")
    success: Expression | None = Field(
        None, description="Evaluated after each trial; without it there is no pass rate and no verdict."
    )
    estimand: Annotated[
        Literal["all"] | Estimand,
        checked(lambda v: v == "all" or isinstance(v, dict), "all, or keys of 'last', 'block', 'where'"),
    ] = Field("all", description="The trials that count for the pass rate.")
    measures: dict[Name, _Measure | MeasureBy] = Field(
        default_factory=dict,
        description="Expressions; or names, of which the first whose `if` holds is used; or `value` and `by`.",
    )
    split: Names = Field(
        default_factory=list, description="Variables and measures by which reports split the pass rate."
    )
    reference: list[Reference] = Field(default_factory=list, description="The animals' numbers.")
    chance: Chance | None = Field(None, description="The measured pass rate of random actions.")
    margin: float = Field(0.10, gt=0, lt=1, description="Non-inferiority margin of the verdict.")
    checks: list[Check] = Field(default_factory=list, description="What the audit looks for in observations.")
    construct_: Construct | None = Field(  # `construct` is a name of pydantic's
        None,
        alias="construct",
        description="What is measured, and what abolishes it; without this key a result is not validated.",
    )
    tests: list[Test] = Field(default_factory=list, description="Example trials that check the protocol.")
    notes: Text | list[Text] | None = Field(None, description="Free text for readers.")

    @property
    def by(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a measure and a variable by whose values reports give it."""
        given = ((name, one.by) for name, one in self.measures.items() if isinstance(one, MeasureBy))
        return tuple((name, variable) for name, variables in given for variable in variables)
