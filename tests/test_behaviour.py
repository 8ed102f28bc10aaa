"""Positions, goals, tracks and curves, compared with the observations themselves."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import pytest

import cheesebench
from cheesebench.behaviour import CURVES, Room, Track, behaviour, tracks
from cheesebench.commands.common import load_protocol
from cheesebench.experiment.log import RunLog
from cheesebench.interfaces import RUNNING, STAY, Located
from cheesebench.plugin_manager import installed_plugins
from cheesebench.summaries import summarise_log
from tests.stored import check_stored

ARROWS = "↑↗→↘↓↙←↖"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> cheesebench.Run:
    results = tmp_path_factory.mktemp("results")
    protocols = ["morris_water_maze", "t_maze"]
    return cheesebench.run(
        ["place-learner"],
        protocols,
        design="cohort",
        subjects=3,
        seed=3,
        results=results,
        progress=False,
    )


def test_every_position_is_where_the_arrow_is(run: cheesebench.Run) -> None:
    for trial in range(1, 5):
        for frame in run.trial("t_maze", 0, trial).frames:
            rows = frame.observation.split("\n")[
                :6
            ]  # the text of the state is below the picture
            [at] = [(line.index(glyph), row, 45 * n) for row, line in enumerate(rows)
                    for n, glyph in enumerate(ARROWS) if glyph in line]  # fmt: skip
            assert frame.at is not None
            assert (frame.at.x, frame.at.y, frame.at.heading) == at


def test_goals_are_where_the_trial_pays(run: cheesebench.Run) -> None:
    for trial in range(1, 5):
        played = run.trial("morris_water_maze", 0, trial)
        if played.record.success:
            last = played.frames[-1]
            assert last.at is not None
            assert (last.at.x, last.at.y) in played.frames[1].goals
    played = run.trial("t_maze", 0, 20)
    forced, free = (
        next(f.goals for f in played.frames if f.at and f.at.state == s)
        for s in ("forced", "free")
    )
    assert len(free) == 1
    # Either arm pays in the forced run (one gate is closed), then only the other one.
    assert free < forced


def test_tracks_and_occupancy_are_those_of_the_exported_steps(
    run: cheesebench.Run,
) -> None:
    steps = run.table("steps").query("protocol == 'morris_water_maze'")
    plugins = installed_plugins()
    with RunLog.open_read_only(run.directory / "run.sqlite") as log:
        plan = next(
            plan for plan in log.plans() if plan.protocol == "morris_water_maze"
        )
        found = list(tracks(log, plugins, plan, 10**6))
        assert len(found) == plan.subjects
        for own in found:
            for track in own:
                rows = steps.query(
                    f"subject == {track.subject} and trial == {track.trial + 1}"
                )
                assert list(track.squares) == list(zip(rows.x, rows.y, strict=True))
        walked = steps.query("step > 0")
        spent = Counter(zip(walked.x, walked.y, strict=True))
        floor = Room.floor(log, plugins, plan)
        assert floor is not None
        everyone = [track for own in found for track in own]
        room = Room(floor, everyone)
        # In the room a subject has one platform, also in the probe, which pays nothing.
        assert room.targets.keys() == {track.subject for track in everyone}
        assert {len(room.goals(track)) for track in everyone} == {1}
        assert len({room.goals(track, together=True) for track in everyone}) == 1
        assert sum(room.occupancy(everyone).values()) == sum(spent.values())
        kinds = {
            floor.scene.tiles[y - floor.top][x - floor.left].kind for x, y in spent
        }
        assert kinds == {"floor"}
        # A budget for one subject shows exactly one, complete.
        first = sum(len(track.squares) - 1 for track in found[0])
        assert [len(own) for own in tracks(log, plugins, plan, first)] == [
            len(found[0])
        ]
        assert not list(tracks(log, plugins, plan, first - 1))


def test_curves_are_means_of_the_subjects_means(run: cheesebench.Run) -> None:
    cell = next(
        cell for cell in run.summary.cells if cell.plan.protocol == "morris_water_maze"
    )
    with RunLog.open_read_only(run.directory / "run.sqlite") as log:
        found = behaviour(cell, log.trials_by_subject(cell.plan))
    # As recorded, judged or not.
    trials = run.table("trials").query("protocol == 'morris_water_maze'")
    probes = trials[trials["recorded_success"].isna()]
    assert probes["session"].unique().tolist() == [*cell.plan.idle] == [6]
    assert probes["block"].unique().tolist() == ["probe"]
    for name, column in zip(
        CURVES, ("recorded_success", "steps", "path_length"), strict=True
    ):
        own = (
            trials.assign(value=trials[column].astype(float))
            .groupby(["subject", "session"])
            .value.mean()
        )
        # Nothing can succeed in the probe, the last session.
        means = own.groupby("session").mean().drop(6)
        assert list(found.points) == list(means.index)
        assert all(
            math.isclose(value, means[point])
            for point, value in found.mean(name).items()
        )
    assert [
        found.mean("pass rate")[point.session] for point in cell.curve
    ] == pytest.approx([point.rate for point in cell.curve])
    classes = found.strategies["strategy"]
    assert sorted(classes) == list(means.index)
    counted = sum(sum(counts.values()) for counts in classes.values())
    assert counted == len(trials.query("session != 6"))


def test_a_dialogue_has_no_floor(tmp_path: Path) -> None:
    run = cheesebench.run(
        "random-walk",
        "cogeval_n7line",
        design="smoke",
        subjects=1,
        seed=1,
        results=tmp_path,
        progress=False,
    )
    with RunLog.open_read_only(run.directory / "run.sqlite") as log:
        for plan in log.plans():
            assert Room.floor(log, installed_plugins(), plan) is None
            assert not list(tracks(log, installed_plugins(), plan, 10**6))


def test_many_conditions_are_one_heat_map(tmp_path: Path) -> None:
    """In the terminal, on the page and as a figure: means over a graph's domains,
    computed here from the trials.
    """
    run = cheesebench.run(
        "random-walk",
        "cogeval_n7line",
        design="cohort",
        subjects=2,
        seed=1,
        results=tmp_path,
        progress=False,
    )
    trials = run.trials()
    rates = trials.groupby("variant")["success"].mean()
    by_condition = (
        rates.groupby(lambda variant: variant.rpartition("-")[2]).mean() * 100
    )
    assert len(rates) > 24
    assert 0 < by_condition.max() <= 100
    page, text = run.report("html"), run.report("text")
    alt = cheesebench.figures(run.directory, formats=["svg"])["conditions.svg"].decode()
    for name, rate in by_condition.items():
        row = re.search(
            rf'<th scope="row">{name}</th><td class="n h(\d+)">. ([\d.]+) %</td>', page
        )
        assert row is not None, name
        assert int(row[1]) == round(rate / 10)
        assert float(row[2]) == pytest.approx(rate, abs=0.051)
        assert re.search(rf"^{name} +. {row[2]} %$", text, re.MULTILINE)
        assert f"{name}: cogeval_n7line {row[2]}" in alt


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("morris_water_maze", 45),
        ("barnes_maze", 20),
        ("star_maze", 72),
        ("operant_chamber", 180),
    ],
)
def test_a_turned_maze_has_one_goal_in_its_room(name: str, step: int) -> None:
    plugins = installed_plugins()
    paradigm = plugins.compile(load_protocol(name))
    floor = paradigm.ground()
    assert floor is not None
    marks = [t.glyph for row in floor.scene.tiles for t in row if t.kind == "landmark"]
    assert {"1", "2"} <= set(marks)
    found = []
    for subject in range(4):
        life = paradigm.environment(plugins.view("ascii_2d"), 1, subject)
        trial = 0
        while life.begin_trial() is not None:
            assert isinstance(life, Located)
            at, goals, status = life.location, life.goals, RUNNING
            while status == RUNNING:
                status = life.step(STAY)[2]
                goals = goals or life.goals
            assert at is not None
            assert at.turn % step == 0
            place = (at.x, at.y)
            found.append(Track(subject, 1, trial, None, (place,), goals, at.turn))
            trial += 1
    room = Room(floor, found)
    assert len({track.turn for track in found}) > 1
    assert {subject: len(goals) for subject, goals in room.targets.items()} == (
        dict.fromkeys(range(4), len(room.targets[0]))
    )
    assert len({room.goals(track, together=True) for track in found}) == 1


def test_a_maze_that_stays_is_not_turned() -> None:
    floor = installed_plugins().compile(load_protocol("radial_arm_maze")).ground()
    assert floor is not None
    assert floor.centre is None


def test_behaviour_is_compared_with_what_is_stored(run: cheesebench.Run) -> None:
    lines = []
    with RunLog.open_read_only(run.directory) as log:
        for cell in summarise_log(log).cells:
            found = behaviour(cell, log.trials_by_subject(cell.plan))
            lines.append(f"{cell.plan.label}: by {found.unit}, {found.points}")
            for name, curves in found.curves.items():
                for subject, own in curves.items():
                    shown = {at: round(value, 4) for at, value in own.items()}
                    lines.append(f"  {name} {subject} {shown}")
            for name, counts in found.strategies.items():
                lines.append(
                    f"  {name} { {at: dict(one) for at, one in counts.items()} }"
                )
    check_stored("behaviour.txt", "\n".join(lines) + "\n")
