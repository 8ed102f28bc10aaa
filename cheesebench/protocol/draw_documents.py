"""Typed models of the key `draw`; ``documents`` has the rest of a protocol file.

What is written in short (permutations, ranges) is a table of columns for everybody else: ``Draw.of``.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from cheesebench.protocol.arena_documents import Model
from cheesebench.protocol.values import (
    Count,
    Expression,
    Name,
    Names,
    Number,
    Scalar,
    Scope,
    Truth,
    checked,
    contradiction,
)

#: Most rows of a permuted block, copies included; of a table that is written in short.
MAX_ROWS = 10_000


class Range(Model):
    """Numbers at equal distances, all equally likely where rows are drawn at random."""

    from_: Number = Field(alias="from", description="The first number.")
    to: Number = Field(description="The last number; if `step` does not fit, the range ends below it.")
    step: Number = Field(1, description="The distance between two numbers, above 0.")

    @model_validator(mode="after")
    def _forward(self) -> Range:
        if not self.step > 0:
            raise contradiction(f"The step of {{where}} is {self.step:g}.", "Let it be above 0.")
        if self.to < self.from_:
            sentence = f"The range of {{where}} ends at {self.to:g}, below its beginning, {self.from_:g}."
            raise contradiction(sentence, "Let 'to' be at least 'from'.")
        if self.size > MAX_ROWS:
            sentence = f"The range of {{where}} has {self.size} numbers, more than {MAX_ROWS}."
            raise contradiction(sentence, "Use a larger 'step'.")
        return self

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int((Decimal(str(self.to)) - Decimal(str(self.from_))) // Decimal(str(self.step))) + 1

    @property
    def numbers(self) -> list[float]:
        """The numbers, as exact as they are written; whole ones as whole numbers."""
        first, step = Decimal(str(self.from_)), Decimal(str(self.step))
        found = [first + number * step for number in range(self.size)]
        return [int(number) if number == number.to_integral_value() else float(number) for number in found]


def _are_weights(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, int) and one is not True and one >= 1 for one in value)


_Weights = Annotated[
    list[Count], Field(min_length=1), checked(_are_weights, "whole numbers from 1, as in [4, 1] for 0.8 and 0.2")
]
_Columns = dict[Name, Annotated[list[Scalar], Field(min_length=1)] | Range]


class Draw(Model):
    """A small table; when its scope begins, one row is drawn and its columns become variables."""

    per: Scope = Field("trial", description="When a new row is drawn.")
    order: Literal["random", "shuffle", "cycle", "balanced", "by_subject"] = Field(
        "random",
        description=(
            "`random`: independently; `shuffle`: in permuted blocks; `cycle`: one row after another; `balanced`: each "
            "row once per cycle of subjects, in an order set by the run's seed; `by_subject`: row (subject mod rows)."
        ),
    )
    columns_of: Annotated[_Columns, BeforeValidator(lambda v: v, json_schema_input_type=str | _Columns)] = Field(
        default_factory=dict,
        alias="of",
        description=(
            "The table: its columns, of equal length, become variables; a column of numbers may be a range. "
            "Or a CSV file in the protocol's folder, whose first line names the columns."
        ),
    )
    permute: Annotated[list[Scalar], Field(min_length=2)] | None = Field(
        None, description="Instead of `of`: values, whose permutations (as many at a time as `into` has) are the rows."
    )
    sample: Name | None = Field(
        None, description="Instead of `of`: a group, or a set drawn earlier, dealt out in random order."
    )
    into: Names = Field(
        default_factory=list, description="The variables that receive what `sample` or `permute` deals out."
    )
    distinct: Truth = Field(
        True, description="Whether `sample` deals out each member once; if false, each draw is from all of a group."
    )
    weights: _Weights | None = Field(None, description="How many times each row of `of` counts, in whole numbers.")
    pick: Count | None = Field(
        None, description="Draws a subset of this many rows (or members of `sample`); the columns become sets."
    )
    copies: Count = Field(1, description="How often each row occurs in one permuted block (order: shuffle).")
    max_run: Count | None = Field(None, description="Longest run of one value of the first column.")
    keep_if: Expression | None = Field(None, description="If true, the previous row is kept.")

    @model_validator(mode="after")
    def _one_source(self) -> Draw:
        given = {"of": self.columns_of or None, "sample": self.sample, "permute": self.permute}
        sources = [key for key, value in given.items() if value is not None]
        if not sources:
            raise contradiction("There is nothing that {where} draws from.", "Add 'of', 'sample' or 'permute'.")
        if len(sources) > 1:
            raise contradiction(f"{{where}} has '{sources[0]}' and '{sources[1]}'.", "Keep one of them.")
        if sources != ["of"] and not self.into:
            raise contradiction(f"{{where}} has '{sources[0]}', but no 'into'.", "Add 'into', with names of variables.")
        if sources == ["of"] and self.into:
            raise contradiction("{where} has 'of' and 'into'.", "Remove 'into': the columns have names.")
        return self

    @property
    def columns(self) -> list[str]:
        """The variables that the draw assigns."""
        return list(self.columns_of) or self.into

    @property
    def permutations(self) -> int:
        """How many rows `permute` has."""
        return math.perm(len(self.permute or ()), len(self.into))

    @cached_property
    def of(self) -> dict[str, list[Scalar]]:
        """The table, written out; empty where `sample` deals out, or where there would be too many rows."""
        if self.permute is not None:
            if not 1 <= self.permutations <= MAX_ROWS:
                return {name: list(self.permute) for name in self.into}
            rows: Any = itertools.permutations(self.permute, len(self.into))
            return {name: list(column) for name, column in zip(self.into, zip(*rows, strict=True), strict=True)}
        return {
            name: list(column.numbers) if isinstance(column, Range) else column
            for name, column in self.columns_of.items()
        }
