"""Shards: the cells of one run, dealt to several sessions that know nothing of one another."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment.log_types import read_plan
from cheesebench.experiment.rows import plan_to_json, to_json

if TYPE_CHECKING:
    from cheesebench.experiment.records import CellPlan

#: More parts than any run is cut into.
MOST = 100_000
#: Key of the manifest with the shard and the plan of all.
KEY = "shard"


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Part ``index`` (from 1) of ``of`` parts."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shard that ``2/8`` names. Raises OptionError."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text, re.ASCII)
        index, of = map(int, found.groups()) if found else (0, 0)
        if not 1 <= index <= of <= MOST:
            raise OptionError(f"--shard {text}: write part and number of parts, from 1/N to N/N, for example 2/8.")
        return cls(index, of)

    def part(self, plans: Sequence[CellPlan]) -> list[CellPlan]:
        """Return the cells of this shard, in the order of ``plans``; see ``deal``."""
        return deal(plans, self.of).get(self, [])


def deal(plans: Sequence[CellPlan], of: int) -> dict[Shard, list[CellPlan]]:
    """Return the cells of each of so many shards, in the order of ``plans``; shards without any are left out.

    The same plans are always dealt in the same way: the cell with the most trials first, each to the shard that has
    the fewest trials so far. Cells are never cut: the verdict on one needs all of its subjects.
    """
    # More shards than cells would stay empty.
    lightest = [(0, index) for index in range(1, min(of, len(plans)) + 1)]
    shard_of = {}
    for at in sorted(range(len(plans)), key=lambda at: (-plans[at].subjects * plans[at].trials, at)):
        trials, index = lightest[0]
        heapq.heapreplace(lightest, (trials + max(1, plans[at].subjects * plans[at].trials), index))
        shard_of[at] = Shard(index, of)
    dealt: dict[Shard, list[CellPlan]] = {}
    for at, plan in enumerate(plans):
        dealt.setdefault(shard_of[at], []).append(plan)
    return dealt


def describe_shard(shard: Shard, plans: Sequence[CellPlan]) -> dict[str, Any]:
    """Return the manifest's entry of a shard: which it is, and the cells of all shards."""
    return {"index": shard.index, "of": shard.of, "cells": [plan_to_json(plan) for plan in plans]}


def read_shard(manifest: dict[str, Any]) -> tuple[Shard, list[CellPlan]] | None:
    """Return the shard of a run and the cells of all shards; None if it was run as a whole.

    Raises RunLogError for an entry that no run has written.
    """
    found = manifest.get(KEY)
    if found is None:
        return None
    try:
        shard = Shard.parse(f"{found['index']}/{found['of']}")
        plans = [read_plan(text) for text in found["cells"]]
        if len({plan.key for plan in plans}) != len(plans):
            raise ValueError("a cell is planned twice")
    except (OptionError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise RunLogError(
            f"The manifest of run '{manifest['run_id']}' has no valid shard ({to_json(str(error))})."
        ) from None
    return shard, plans
