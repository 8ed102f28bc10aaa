"""A set of subjects that cannot be judged ends its cell with the error."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import CellPlan, SetResult, TrialRecord
from tests.reports.html.conftest import maze


def test_what_cannot_be_judged_ends_with_the_error(tmp_path: Path) -> None:
    def judge(plan: CellPlan, lives: Iterable[Sequence[TrialRecord]]) -> SetResult:
        if [*lives]:
            raise ArithmeticError("no number")
        return SetResult(decided=False, futile=False, subjects=0, needed=6, text="")

    plugins, little = installed_plugins(), maze(tmp_path)
    design = dataclasses.replace(find_design("cohort", 12), sequential=True)
    plan = plan_cell(little, "random", "ascii_2d", design, "none")
    cells = [(plan, little)]
    options = {"seed": 3, "design": "cohort"}
    with RunLog.create(tmp_path, "judged", cells, options=options) as log:
        with (
            RunSession(
                log, plugins, cells, seed=3, processes=0, judge=judge
            ) as session,
            pytest.raises(ArithmeticError, match="no number"),
        ):
            session.finish()
        [noted] = [one.text for one in log.journal() if one.kind == "error"]
        assert "ArithmeticError: no number" in noted
        # The first set has run, and no other one.
        assert {one.subject for one in log.trials()} == set(range(6))
