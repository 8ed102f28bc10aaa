"""Trials for the player: chosen, replayed, packed, with nothing lost or invented."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import io
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from cheesebench.chat import ChatReply, ModelAgentContext, Picture
from cheesebench.experiment.log import CallLog, RunLog
from cheesebench.experiment.replay import film, recorded_protocol
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import with_arena
from cheesebench.records import CallRecord, CellPlan
from cheesebench.reports.html import entry
from cheesebench.reports.player import (
    Shelf,
    Sketch,
    _judged,
    _observation,
    choose,
    fair_share,
    make_room,
    pack,
    shelves,
    subject_shelf,
)
from tests.reports.html.conftest import make_log, maze

Run = tuple[RunLog, PluginManager]


def packed(run: Run, room: int) -> list[Shelf]:
    """Return the shelves of a run, packed into ``room`` characters."""
    filled = shelves(*run, run[0].plans())
    make_room(filled, room)
    return filled


def unpacked(packed: str) -> dict[str, Any]:
    contents: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return contents


def test_why_a_step_has_no_reply_depends_on_who_acts(run: Run) -> None:
    plan = run[0].plans()[0]

    def silence(note: str = "", **changes: str) -> object:
        shelf = Shelf(dataclasses.replace(plan, **changes), note=note)  # type: ignore[arg-type]
        return entry(shelf, "#")["silence"]

    model = {"model": "gpt", "agent": "llm"}
    assert silence(**model) == "No call was made for this step."
    program = "This agent is a program: it gives no replies."
    assert silence(model="random", agent="") == program
    assert "A person pressed a key" in str(silence(model="human", agent=""))
    assert silence("They are lost.", **model) == "They are lost."


def test_every_trial_is_there_as_it_was_lived(run: Run) -> None:
    log, plugins = run
    for plan, shelf in zip(log.plans(), packed(run, 10**7), strict=True):
        contents = unpacked(shelf.packed)
        assert (shelf.plan, shelf.played, shelf.shown, shelf.problem) == (
            plan,
            24,
            24,
            "",
        )
        assert (shelf.failed, shelf.shown_failed, shelf.complete) == (6, 6, True)
        paradigm = plugins.compile(with_arena(recorded_protocol(log, plan)))
        for record, trial in zip(log.trials(plan), contents["trials"], strict=True):
            frames = film(log, paradigm, plugins.view(plan.view), record)
            assert [contents["observations"][k] for k in trial["observations"]] == [
                f.observation for f in frames
            ]
            assert trial["actions"] == record.actions
            assert {int(step): reward for step, reward in trial["rewards"].items()} == {
                step: frame.reward for step, frame in enumerate(frames) if frame.reward
            }
            assert (
                trial["subject"],
                trial["trial"],
                trial["outcome"],
                trial["success"],
            ) == (
                record.subject,
                record.trial + 1,
                record.outcome,
                record.success,
            )
            assert trial["events"] == [
                [event.step, event.state, event.event] for event in log.events(record)
            ]
            assert trial["measures"] == dict(record.measures)
        assert len(contents["observations"]) == len(set(contents["observations"])) < 20


def test_a_trial_says_whether_the_pass_rate_is_taken_over_it(
    tmp_path: Path,
) -> None:
    log, plugins = make_log(tmp_path, [maze(tmp_path)], subjects=1, estimand="last:3")
    with log:
        [shelf] = packed((log, plugins), 10**7)
        assert {trial["trial"] for trial in shelf.trials if trial["compared"]} == {
            6,
            7,
            8,
        }
        [plan] = log.plans()
        longer = dataclasses.replace(plan, trials=10)
        assert _judged(log, longer, 0) == {5, 6, 7}, "it finished early"
        going_on: Any = SimpleNamespace(
            trials=log.trials, completed_subjects=lambda plan: {}
        )
        assert _judged(going_on, longer, 0) & set(range(8)) == {7}, (
            "two of its last three trials are to come"
        )


def test_a_trial_of_a_session_in_which_nothing_succeeds_is_no_failure(run: Run) -> None:
    log, plugins = run
    plans = log.plans()
    probed = [dataclasses.replace(plan, idle=(1,)) for plan in plans]
    (plain, *_), (shelf, *_) = shelves(log, plugins, plans), shelves(*run, probed)
    assert plain.failed > shelf.failed
    assert shelf.failed == sum(one["success"] is False for one in shelf.trials)
    known = {one["session"]: one["success"] for one in shelf.trials}
    assert known.pop(1) is None
    assert None not in known.values()


def test_where_there_is_no_room_failed_trials_come_first(run: Run) -> None:
    room = sum(len(shelf.packed) for shelf in packed(run, 10**7)) * 4 // 5
    cut = packed(run, room)
    assert 0 < sum(len(shelf.packed) for shelf in cut) <= room
    for shelf in cut:
        assert 0 < shelf.shown < 24
        assert not shelf.complete
        contents = unpacked(shelf.packed)
        assert len(contents["trials"]) == shelf.shown
        assert sum(trial["success"] is False for trial in contents["trials"]) == min(
            6, shelf.shown
        )
    assert [(shelf.shown, shelf.packed) for shelf in packed(run, 0)] == [(0, "")] * 3


def test_where_there_are_too_many_steps_failed_trials_come_first(run: Run) -> None:
    # Of sixty steps for each cell, 36 lead to the first failed trial, and none of the
    # others is as near.
    for shelf in shelves(*run, run[0].plans(), budget=3 * 60):
        shown = [
            (trial["subject"], trial["trial"], trial["success"])
            for trial in shelf.trials
        ]
        assert shown[0] == (0, 2, False)
        assert shown[1:] == [
            (0, 1, True),
            (0, 3, True),
            (0, 4, True),
            (0, 5, True),
            (1, 1, True),
        ]
        assert (shelf.shown, shelf.shown_failed, shelf.complete) == (6, 1, False)


def test_a_trial_costs_all_that_must_be_lived_before_it() -> None:
    lives = [
        [Sketch(0, 0, 10, True), Sketch(0, 1, 10, False), Sketch(0, 2, 10, True)],
        [Sketch(1, 0, 5, False), Sketch(1, 1, 30, False), Sketch(1, 2, 1, True)],
    ]

    def chosen(lived: int) -> list[tuple[int, int]]:
        return [(sketch.subject, sketch.trial) for sketch in choose(lives, lived)]

    assert chosen(0) == []
    assert chosen(5) == [(1, 0)]
    assert chosen(20) == [(0, 1), (0, 0)]
    assert chosen(25) == [(0, 1), (1, 0), (0, 0)]
    assert chosen(66) == [(0, 1), (1, 0), (1, 1), (0, 0), (0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("sizes", "room", "share"),
    [
        ([10, 10], 100, 100),
        ([10, 90], 100, 100),
        ([10, 95], 100, 90),
        ([50, 60, 70], 90, 30),
        ([], 5, 5),
        ([7], 0, 0),
    ],
)
def test_small_cells_leave_their_room_to_large_ones(
    sizes: list[int], room: int, share: int
) -> None:
    assert fair_share(sizes, room) == share
    assert sum(min(size, share) for size in sizes) <= room


def test_pictures_with_the_same_words_are_different_observations() -> None:
    known: dict[str, Any] = {}
    drawn = [drawing(colour) for colour in ("red", "green")]
    one, other = (_observation(Picture(png, "here"), known) for png in drawn)
    assert _observation("here", known) == "here"
    assert _observation(Picture(drawn[0], "here"), known) is one
    contents = unpacked(
        pack([{"subject": 0, "trial": 0, "observations": [one, other, one]}])
    )
    assert contents["trials"][0]["observations"] == [0, 1, 0]
    for png, kept in zip(drawn, contents["observations"], strict=True):
        assert kept["text"] == "here"
        small = base64.b64decode(kept["webp"])
        assert len(small) < len(png)
        assert pixels(small) == pixels(png)


def drawing(colour: str) -> bytes:
    png = io.BytesIO()
    picture = Image.new("RGB", (96, 96), "white")
    picture.paste(colour, (20, 30, 50, 70))
    picture.save(png, format="PNG")
    return png.getvalue()


def pixels(data: bytes) -> bytes:
    with Image.open(io.BytesIO(data)) as picture:
        return picture.convert("RGB").tobytes()


def test_a_run_that_cannot_be_lived_again_says_why(run: Run) -> None:
    log, _ = run
    with_nothing = PluginManager()
    with_nothing.unregister(name="cheesebench.paradigms")
    for shelf in shelves(log, with_nothing, log.plans()):
        assert shelf.shown == 0
        assert "no plugin handles this kind of protocol" in shelf.problem


def test_calls_stand_at_the_step_before_which_they_were_made(talk: Run) -> None:
    (shelf,) = packed(talk, 10**7)
    assert (shelf.problem, shelf.note, shelf.shown) == ("", "", 8)
    for trial in unpacked(shelf.packed)["trials"]:
        (call,) = trial["calls"]
        assert trial["actions"] == "..FFFF"
        assert call["step"] == 2  # the first two steps are waited through
        assert "NEW TRIAL" in call["asked"]
        assert "ACTIONS: F, F, F, F" in call["reply"] or call["reply"].startswith("xxx")
        assert call["learnings"].endswith("the goal lies east")
        assert call["usage"].startswith(
            "1,200 prompt tokens (1,000 cached), 34 reply tokens, "
        )
        assert trial["measures"]["calls"] == 1


def test_texts_show_what_cannot_be_seen_and_stop_somewhere(talk: Run) -> None:
    (shelf,) = packed(talk, 10**7)
    calls = [
        call for trial in unpacked(shelf.packed)["trials"] for call in trial["calls"]
    ]
    for call in calls:
        text = call["reply"] + call["reasoning"] + call["learnings"]
        assert "⟨U+001B⟩[31m⟨U+202E⟩⟨U+0000⟩" in text
        assert text.replace("\n", "").isprintable()
    (long,) = [call["reply"] for call in calls if len(call["reply"]) > 1000]
    assert len(long) < 20_200
    assert long.endswith("more characters; the run log has the whole text]")


def test_replies_that_the_agent_reads_otherwise_are_not_shown(talk: Run) -> None:
    log, _ = talk
    changed = PluginManager()
    original = changed.model_agent("llm")

    class Contrary:
        """Reads the opposite out of every reply."""

        def __init__(self, context: ModelAgentContext) -> None:
            self._agent = original.create(context)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._agent, name)

        def read(self, reply: ChatReply) -> list[int]:
            return [3 - action for action in self._agent.read(reply)]

    agent = dataclasses.replace(original, create=Contrary)
    changed.register(
        SimpleNamespace(cheesebench_model_agents=lambda: [agent]), name="contrary"
    )
    (shelf,) = shelves(log, changed, log.plans())
    assert (shelf.shown, shelf.problem) == (8, "")
    assert (
        "After call 1 of trial 1, the agent acts differently than in the run"
        in shelf.note
    )
    assert not any("calls" in trial for trial in shelf.trials)


def test_no_more_calls_are_read_than_a_trial_has_room_for(
    talk: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, plugins = talk
    shutil.copytree(log.directory, tmp_path / "run")
    with RunLog.open(tmp_path / "run") as stranger:
        (plan,) = stranger.plans()
        known = list(stranger.calls.of_life(plan, 0))
        own = [call for call in known if call.trial == 0]
        more = range(len(own), 1000)
        stranger.calls.write(
            plan, 0, *(dataclasses.replace(own[-1], call=number) for number in more)
        )
    read: list[int] = []
    find = CallLog.find

    def counted(
        calls: CallLog, plan: CellPlan, subject: int, trial: int, call: int
    ) -> CallRecord | None:
        read.append(call)
        return find(calls, plan, subject, trial, call)

    monkeypatch.setattr(CallLog, "find", counted)
    with RunLog.open_read_only(tmp_path / "run") as stranger:
        shelf = subject_shelf(stranger, plugins, plan, 0)
    assert (
        f"After call {len(own) + 1} of trial 1, the agent acts differently"
        in shelf.note
    )
    assert max(read) == len(own)
    assert shelf.shown == len({call.trial for call in known})
