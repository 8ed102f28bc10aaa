"""A control changes one thing only, after which subjects can no longer learn from that
thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import RunLogError, UnknownNameError, UnsuitableError
from cheesebench.experiment.cells import plan_cell
from cheesebench.experiment.controls import (
    CONTROLS,
    ShuffledRewards,
    check_control,
    control_cell,
    controlled,
    yokes_of,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import film
from cheesebench.experiment.session import RunSession
from cheesebench.family import Design
from cheesebench.interfaces import RUNNING, Paradigm
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.records import CellPlan
from cheesebench.statistics import ControlResult, summarise_subjects

CATALOGUE = Catalogue(installed_plugins().protocol_directories)
#: Protocols that never change: reward learning with a lever, and a signal to answer.
KEPT = Catalogue([Path(__file__).parents[1] / "fixtures" / "old_nine"])
Cells = dict[CellPlan, Specification]


def cells(
    model: str,
    protocol: str,
    controls: Sequence[str],
    subjects: int,
    catalogue: Catalogue = CATALOGUE,
) -> Cells:
    """The plain cell and its controls."""
    specification = with_arena(catalogue.find(protocol))
    design = Design(name="test", subjects=subjects)
    plain = plan_cell(
        specification,
        model,
        "ascii_2d",
        design,
        installed_plugins().agent(model).memory,
    )
    return dict.fromkeys(
        (plain, *(control_cell(plain, control) for control in controls)), specification
    )


def run(results: Path, name: str, wanted: Cells) -> RunLog:
    """Run the cells; the log stays open."""
    plugins = PluginManager()
    log = RunLog.create(results, name, wanted.items(), options={"seed": 0})
    with RunSession(log, plugins, wanted, seed=0, processes=0) as session:
        session.finish()
    assert not [entry.text for entry in log.journal(kind="error")]
    return log


def compared(log: RunLog) -> dict[str, ControlResult]:
    summary = summarise_subjects(log.manifest, log.plans(), log.trials_by_subject)
    assert not [model for model in summary.models if "control" in model.variant], (
        "controls are in no gate"
    )
    return {result.control.plan.control: result for result in summary.controls}


def test_learning_vanishes_when_reward_does_not_depend_on_behaviour(
    tmp_path: Path,
) -> None:
    with run(
        tmp_path,
        "r",
        cells("tabular-ql", "operant_chamber", ["reward-shuffled"], 12, KEPT),
    ) as log:
        result = compared(log)["reward-shuffled"]
        assert result.gain_plain is not None
        assert result.gain_control is not None
        assert result.gain_plain.mean > 0.2
        assert abs(result.gain_control.mean) < 0.05
        assert result.comparison.answer == "better", "plain is the first of the two"
        assert [point.pairs for point in result.points] == [12] * 5
        assert result.points[-1].difference == pytest.approx(
            result.points[-1].plain - result.points[-1].control
        )
        plugins = installed_plugins()
        control = log.plans()[1]
        record = log.trials(control, 1)[3]
        frames = film(
            log,
            plugins.compile(with_arena(KEPT.find("operant_chamber"))),
            plugins.view("ascii_2d"),
            record,
        )
        assert sum(frame.reward for frame in frames) == record.reward


def test_who_cannot_change_what_happens_does_not_learn_to_avoid_it(
    tmp_path: Path,
) -> None:
    run(tmp_path, "master", cells("hippocampal-ql", "shuttle_box", [], 4, KEPT)).close()
    with run(
        tmp_path,
        "r",
        cells("hippocampal-ql", "shuttle_box", ["yoked:master", "cue-off"], 4, KEPT),
    ) as log:
        results = compared(log)
        for name in ("yoked:master", "cue-off"):
            assert results[name].gain_difference is not None
            assert (
                results[name].points[-1].plain > results[name].points[-1].control + 0.2
            )
        plain, yoked = log.plans()[0], log.plans()[1]
        rewards = [record.reward for record in log.trials(plain, 1)]
        assert [record.reward for record in log.trials(yoked, 0)] == rewards, (
            "those of the next subject"
        )


def test_a_run_with_controls_is_resumed(tmp_path: Path) -> None:
    wanted = cells("tabular-ql", "t_maze", ["reward-shuffled", "cue-shuffled"], 2)
    with run(tmp_path, "r", wanted) as log:
        before = list(log.dump())
        with RunSession(log, PluginManager(), wanted, seed=0, processes=0) as session:
            session.finish()
        assert list(log.dump()) == before


class Payer:
    """A life that pays 1, 2, 3 ... for its trials, half of it on the first of two
    steps.
    """

    waiting = False

    def __init__(self) -> None:
        self.trial = 0
        self.steps = 0

    def begin_trial(self) -> str:
        self.trial, self.steps = self.trial + 1, 0
        return ""

    def step(self, action: int) -> tuple[str, float, int]:
        self.steps += 1
        return "", self.trial / 2, int(self.steps == 2)

    def result(self) -> Any:
        return None


def test_shuffled_rewards_are_those_of_earlier_trials_paid_at_once() -> None:
    life = ShuffledRewards(Payer(), "key")
    paid = []
    for _ in range(200):
        life.begin_trial()
        first, second = life.step(0)[1], life.step(0)[1]
        assert second == 0
        paid.append(first)
    assert paid[0] == 0, "there was no trial before the first"
    assert all(0 < reward <= trial for trial, reward in enumerate(paid) if trial)
    assert len(set(paid)) > 80
    assert list(life.earned) == [float(n) for n in range(1, 201)]


def test_unknown_controls_and_runs_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'cue-off'"):
        check_control("cue-of", tmp_path)
    with pytest.raises(UnknownNameError, match="yoked:RUN"):
        check_control("yoked:", tmp_path)
    with pytest.raises(RunLogError, match="There is no run 'nobody'"):
        check_control("yoked:nobody", tmp_path)
    assert [check_control(name, tmp_path) for name in CONTROLS if "RUN" not in name]


def test_an_agent_without_a_history_has_none_to_leave_out() -> None:
    plan = next(iter(cells("random", "t_maze", [], 1)))
    with pytest.raises(UnsuitableError, match="Use --control memoryless"):
        control_cell(plan, "no-memory")


def test_nobody_is_yoked_to_what_is_not_there(tmp_path: Path) -> None:
    run(tmp_path, "alone", cells("random", "t_maze", [], 1)).close()
    paradigm = installed_plugins().compile(with_arena(CATALOGUE.find("t_maze")))
    [plan, control] = cells("random", "t_maze", ["yoked:alone"], 1)
    with pytest.raises(RunLogError, match="has only one subject"):
        controlled(paradigm, control, 0, yokes_of(control, tmp_path))
    other = control_cell(next(iter(cells("random", "dnms", [], 1))), "yoked:alone")
    with pytest.raises(RunLogError, match="no plain cell of dnms"):
        controlled(paradigm, other, 0, yokes_of(other, tmp_path))
    assert controlled(paradigm, plan, 0, yokes_of(plan, tmp_path)) is paradigm


def test_a_family_without_a_control_says_so() -> None:
    class Plain(Paradigm):
        specification = with_arena(CATALOGUE.find("t_maze"))

    [_, off, _] = cells("random", "t_maze", ["cue-off", "yoked:x"], 2)
    with pytest.raises(
        UnsuitableError,
        match="'t_maze': protocols of the family 'arena' have no control 'cue-off'",
    ):
        controlled(Plain(), off, 0)


def test_a_control_keeps_the_protocol_of_its_paradigm() -> None:
    specification = with_arena(CATALOGUE.find("t_maze"))
    paradigm = installed_plugins().compile(specification)
    names = ["cue-off", "reward-shuffled", "yoked:x"]
    plain, *others = cells("random", "t_maze", names, 2)
    assert controlled(paradigm, plain, 0) is paradigm
    for plan in others:
        yokes = None if "yoked" not in plan.control else lambda subject: None
        changed = controlled(paradigm, plan, 0, yokes)  # type: ignore[arg-type]
        assert changed is not paradigm
        assert changed.specification.name == specification.name
        assert changed.specification.schedule == specification.schedule


def test_variants_of_controls_name_their_plain_cell() -> None:
    [plain, control] = cells("random", "t_maze", ["cue-off"], 2)
    assert (plain.control, plain.plain_key) == ("", plain.key)
    assert (str(control.variant), control.control, control.plain_key) == (
        "control=cue-off",
        "cue-off",
        plain.key,
    )
    assert not control.claims


assert RUNNING == 0  # the text of ``Payer`` while its trial runs
