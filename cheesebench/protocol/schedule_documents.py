"""Typed models of the key `schedule`; ``documents`` has the rest of a protocol file."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from cheesebench.protocol.arena_documents import Model
from cheesebench.protocol.values import Count, Expression, Name, Names, Scalar, contradiction, short_form


class Until(Model):
    """Ends a repetition (or the block) once `count` of the last `of` trials had an outcome, or met a condition."""

    outcome: Names = Field(default_factory=list, description="The outcomes that count.")
    if_: Expression | None = Field(
        None, alias="if", description="Instead of `outcome`: a condition, evaluated after each trial as measures are."
    )
    count: Count = Field(description="How many such trials are needed.")
    of: Count | None = Field(None, description="Out of how many of the last trials (default: `count`, in a row).")

    @model_validator(mode="after")
    def _one_criterion(self) -> Until:
        if self.outcome and self.if_ is not None:
            raise contradiction("{where} has 'outcome' and 'if'.", "Keep one; 'if: last == NAME' is an outcome, too.")
        if not self.outcome and self.if_ is None:
            raise contradiction("{where} does not say which trials count.", "Add 'outcome' or 'if'.")
        return self

    @property
    def window(self) -> int:
        """Over how many of the last trials is counted."""
        return self.count if self.of is None else self.of


class Repeat(Model):
    """How often a block is repeated, at most, and what ends it sooner."""

    at_most: Count = Field(description="Repetitions of the block, at most.")
    trials: Count | None = Field(None, description="Trials of all repetitions together, at most.")
    until: Until | None = Field(
        None, description="Ends the block early: a criterion, tested after each repetition on its last trial."
    )


class Block(Model):
    """Sessions x trials, `repeat` times."""

    sessions: Count = Field(1, description="Sessions of one repetition.")
    trials: Count = Field(1, description="Trials of a session.")
    repeat: Annotated[
        Repeat,
        BeforeValidator(
            short_form("at_most", lambda v: not isinstance(v, dict)), json_schema_input_type=Count | Repeat
        ),
    ] = Field(
        default_factory=lambda: Repeat(at_most=1), description="Repetitions; or how many at most, and until what."
    )
    set: dict[Name, Scalar | list[Scalar]] = Field(
        default_factory=dict, description="Values of variables in this block."
    )
    until: Until | None = Field(None, description="A criterion that ends a repetition early.")
