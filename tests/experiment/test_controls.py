"""A control changes one thing only, after which subjects can no longer learn from that
thing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.errors import RunLogError, UnknownNameError, UnsuitableError
from cheesebench.executor import Yoke
from cheesebench.experiment.cells import plan_cell
from cheesebench.experiment.controls import (
    CONTROLS,
    LesionedParadigm,
    ShuffledRewards,
    check_control,
    claimed,
    control_cell,
    controlled,
    has_control,
    in_words,
    lesion_of,
    parse_control,
    takes_at_least,
    yokes_of,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import film
from cheesebench.experiment.session import RunSession
from cheesebench.family import Design
from cheesebench.interfaces import RUNNING, Paradigm
from cheesebench.lesions import INTACT, Lesion
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.records import CellPlan, LesionClaim
from cheesebench.statistics import ControlResult, summarise_subjects
from tests.cli.conftest import MAZE

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
    with pytest.raises(RunLogError, match="has 1 subject of t_maze to yoke to"):
        controlled(paradigm, control, 0, yokes_of(control, tmp_path))
    other = control_cell(next(iter(cells("random", "dnms", [], 1))), "yoked:alone")
    with pytest.raises(RunLogError, match="no cell of dnms without a control"):
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


@pytest.mark.parametrize(
    ("lesion", "words"),
    [
        ("blind", "without sight"), ("anhedonia", "without reward"), ("naive", "without reward"),
        ("memoryless", "without memory"), ("amnesia=trial", "without memory across trials"),
        ("amnesia=choice", "without memory of what came before 'choice' in a trial"),
        ("hide=landmarks", "without landmarks"), ("hide=text:lamp", "without the text of 'lamp'"),
        ("hide=glyph:x", "without x"), ("pose-only", "without any observation except position and heading"),
        ("anhedonia+hide=landmarks+amnesia=trial", "without reward and landmarks and memory across trials"),
        ("anhedonia+pose-only", "without reward and any observation except position and heading"),
    ],
)  # fmt: skip
def test_a_lesion_in_words(lesion: str, words: str) -> None:
    assert in_words(Lesion.parse(lesion)) == words


@pytest.mark.parametrize(
    ("lesion", "other", "takes"),
    [
        ("blind", "hide=landmarks", True), ("hide=landmarks", "blind", False), ("blind", "pose-only", True),
        ("pose-only", "blind", False), ("hide=landmarks", "pose-only", False), ("blind", "blind", True),
        ("hide=landmarks+hide=text", "hide=landmarks", True), ("hide=landmarks", "hide=landmarks+hide=text", False),
        ("hide=text", "hide=text:lamp", True), ("hide=text:lamp", "hide=text", False),
        ("memoryless", "amnesia=trial", True), ("amnesia=trial", "memoryless", False),
        ("amnesia=trial", "amnesia=choice", False), ("amnesia=trial+amnesia=choice", "amnesia=choice", True),
        ("anhedonia", "naive", True), ("naive", "anhedonia", True), ("blind", "anhedonia", False),
        ("anhedonia+blind", "anhedonia", True), ("anhedonia", "blind", False), ("blind", "amnesia=trial", False),
    ],
)  # fmt: skip
def test_a_lesion_takes_at_least_another(lesion: str, other: str, takes: bool) -> None:
    assert takes_at_least(Lesion.parse(lesion), Lesion.parse(other)) is takes


def test_a_construct_s_claim_about_a_lesion(here_maze: Specification) -> None:
    def claim(specification: Specification, lesion: str) -> LesionClaim:
        return claimed(specification, Lesion.parse(lesion))

    bare = dataclasses.replace(here_maze, construct=None)
    assert claim(bare, "blind") == LesionClaim(words="without sight")
    construct: Any = SimpleNamespace(
        abolished_by=((Lesion.parse("hide=landmarks"), 0.5), (Lesion.parse("blind"), 0.25)),
        spared_by=(Lesion.parse("amnesia=trial"),),
    )  # fmt: skip
    able = dataclasses.replace(here_maze, construct=construct)
    assert claim(able, "blind") == LesionClaim(words="without sight", at_most=0.25)
    assert claim(able, "hide=landmarks").at_most == 0.5
    assert claim(able, "anhedonia").at_most is None
    assert not claim(able, "anhedonia").spared
    assert claim(able, "amnesia=trial") == LesionClaim(
        words="without memory across trials", spared=True
    )


@pytest.fixture
def here_maze(tmp_path: Path) -> Specification:
    path = tmp_path / "little.protocol.yaml"
    path.write_text(MAZE, encoding="utf-8")
    return with_arena(Catalogue([]).load(path))


def plain_plan(
    specification: Specification, model: str = "random", **changes: Any
) -> CellPlan:
    plan = plan_cell(specification, model, "ascii_2d", Design(name="test", subjects=3))
    return dataclasses.replace(plan, **changes)


def test_a_control_claims_nothing_and_runs_all_its_subjects(
    here_maze: Specification,
) -> None:
    plan = plain_plan(
        here_maze,
        sequential=True,
        subjects=120,
        settings={"history": 3, "learnings": 2, "x": 1},
    )
    found = control_cell(plan, "no-memory")
    assert found.settings == {"history": 0, "learnings": 0, "x": 1}
    assert (found.control, found.claims, found.lesion) == ("no-memory", False, None)
    assert (found.sequential, found.design, found.subjects) == (False, "cohort", 20)
    assert control_cell(dataclasses.replace(plan, subjects=7), "blind").subjects == 7
    fixed = control_cell(
        dataclasses.replace(plan, sequential=False), "blind", here_maze
    )
    assert (fixed.subjects, fixed.design) == (120, "test")
    assert fixed.lesion == LesionClaim(words="without sight")
    assert lesion_of(fixed) == Lesion.parse("blind")
    assert lesion_of(found) == lesion_of(plan) == INTACT
    for agent, who in (("", "random"), ("other", "other")):
        with pytest.raises(UnsuitableError, match=f"'{who}'"):
            control_cell(
                dataclasses.replace(plan, settings={"history": 1}, agent=agent),
                "no-memory",
            )


def test_names_of_controls_are_checked(tmp_path: Path) -> None:
    assert check_control("hide=landmarks", tmp_path) == "hide=landmarks"
    for name in ("reward-shuffled", "cue-off", "no-memory"):
        assert check_control(name, tmp_path) == name
    for wrong in ("yoked", "yoked:", "yoked:RUN", "intact", "cue-of"):
        with pytest.raises((UnknownNameError, RunLogError)):
            check_control(wrong, tmp_path)
    assert [parse_control(one) for one in ("intact", "cue-off", "yoked:a")] == [
        None,
        None,
        None,
    ]


def test_what_no_control_is_leaves_the_paradigm_as_it_was(
    here_maze: Specification,
) -> None:
    paradigm = installed_plugins().compile(here_maze)
    plan = plain_plan(here_maze, settings={"history": 3, "learnings": 2})
    assert controlled(paradigm, plan, 0) is paradigm
    assert controlled(paradigm, control_cell(plan, "no-memory"), 0) is paradigm
    with pytest.raises(UnknownNameError, match="There is no control 'forged'"):
        controlled(paradigm, control_cell(plan, "forged"), 0)
    lesioned = controlled(paradigm, control_cell(plan, "anhedonia", here_maze), 0)
    assert isinstance(lesioned, LesionedParadigm)
    life = lesioned.environment(installed_plugins().view("ascii_2d"), 0, 0)
    assert life.begin_trial()
    assert life.waiting
    steps = [life.step(one) for one in (3, 3, 0, 0, 0, 0)]
    assert {reward for _, reward, _ in steps} == {0.0}
    assert steps[-1][2] != RUNNING
    assert life.result().success
    assert not has_control(here_maze, "amnesia=nowhere")
    assert has_control(here_maze, "blind")
    assert has_control(here_maze, "cue-off")


def test_a_subject_is_yoked_to_the_next_one_of_the_nearest_cell(
    tmp_path: Path, here_maze: Specification
) -> None:
    plan = plain_plan(here_maze)
    others = [
        plain_plan(here_maze, view="ascii_3d"), plain_plan(here_maze, "tabular-ql"), plan,
        control_cell(plan, "anhedonia", here_maze),
    ]  # fmt: skip
    run(tmp_path, "master", dict.fromkeys(others, here_maze)).close()
    yoked = control_cell(plan, "yoked:master")
    assert yokes_of(plan, tmp_path) is None
    yokes = yokes_of(yoked, tmp_path)
    assert yokes is not None
    with RunLog.open_read_only(tmp_path / "master") as log:
        for subject, other in ((0, 1), (1, 2), (2, 0), (3, 1)):
            letters = [record.actions for record in log.trials(plan, other)]
            trials = tuple(
                tuple("FLRS".index(one.replace(".", "S")) for one in trial)
                for trial in letters
            )
            assert yokes(subject) == Yoke(0, other, trials)
    for changes, said in (
        ({"protocol": "other"}, "(only of little). Yoke to a run"),
        ({"sha256": "f" * 64}, "was made with another version of little ("),
    ):  # fmt: skip
        with pytest.raises(RunLogError) as caught:
            yokes_of(dataclasses.replace(yoked, **changes), tmp_path)  # type: ignore[arg-type]
        assert said in str(caught.value)
    alone = plain_plan(here_maze, subjects=1)
    run(tmp_path, "alone", {alone: here_maze}).close()
    with pytest.raises(RunLogError, match=r"Yoke to a run with two or more"):
        yokes_of(control_cell(plan, "yoked:alone"), tmp_path)
    with RunLog.create(
        tmp_path, "begun", {plan: here_maze}.items(), options={"seed": 0}
    ):
        pass
    begun = yokes_of(control_cell(plan, "yoked:begun"), tmp_path)
    assert begun is not None
    with pytest.raises(
        RunLogError,
        match=r"subject 1 has not finished its trials. Resume that run first",
    ):
        begun(0)
