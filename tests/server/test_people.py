"""``cheesebench people``: people as subjects in a browser, with no data lost or visible
to others.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from cheesebench.chat import Picture
from cheesebench.cli import main
from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import film
from cheesebench.experiment.settings import Given, language_models
from cheesebench.interfaces import ACTIONS, FORWARD, STAY
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.records import PERSON, sets_until
from cheesebench.server.http_guard import RequestGuard, Serving
from cheesebench.server.people import (
    METHODS,
    UNUSED,
    Participants,
    ParticipantStore,
    People,
    Task,
    Words,
)
from cheesebench.statistics import Verdict, judge
from cheesebench.verification import verify

if TYPE_CHECKING:
    from playwright import sync_api as playwright

Serve = Callable[[Serving], str]
Open = Callable[..., "playwright.Page"]
Lived = Callable[..., RunLog]
Check = Callable[["playwright.Page"], None]

TOKEN = "a-token-that-is-known"
SEED = 3
KEYS = {
    "FORWARD": "ArrowUp",
    "ROTATE_LEFT": "ArrowLeft",
    "ROTATE_RIGHT": "ArrowRight",
    "STAY": "ArrowDown",
}


class Clock:
    """Time that passes on command."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Experiment:
    """A run of people in the little maze, served in this process."""

    log: RunLog
    store: ParticipantStore
    participants: Participants
    clock: Clock
    key_times: bool = False
    serving: Serving = field(init=False)

    def __post_init__(self) -> None:
        words = Words(
            instructions="You are here.\n\n- Look around.",
            consent=["Approved by no committee."],
            debriefing=["It was about cheese."],
            completion="https://lab.example/done?code=C1",
        )
        self.serving = People(self.participants, words, self.key_times).serving(
            RequestGuard(token=TOKEN, methods=METHODS)
        )


@contextmanager
def experiment(
    results: Path,
    maze: Specification,
    subjects: int = 3,
    view: str = "ascii_2d",
    design: str = "cohort",
    times: bool = False,
) -> Iterator[Experiment]:
    plugins = PluginManager()
    plan = plan_cell(maze, PERSON, view, find_design(design, subjects), "life")
    clock = Clock()
    with RunLog.create(
        results, "people", [(plan, maze)], options={"seed": SEED, "design": design}
    ) as log:
        store = ParticipantStore(log.directory, clock)
        task = Task(
            plan=plan,
            paradigm=plugins.compile(maze),
            view=plugins.view(view),
            steps=maze.most_calls,
        )
        yield Experiment(
            log, store, Participants(log, store, [task], SEED), clock, times
        )
        store.close()


@pytest.fixture
def lab(tmp_path: Path, maze: Specification) -> Iterator[Experiment]:
    with experiment(tmp_path / "results", maze) as made:
        yield made


class Person:
    """A person at a browser, who agrees, reads, and presses keys."""

    def __init__(self, page: playwright.Page) -> None:
        self.page = page
        self.pressed = ""

    def agree(self) -> Person:
        self.page.get_by_label("I have read this and agree").check()
        self.page.get_by_role("button", name="Begin").click()
        return self.begin()

    def begin(self) -> Person:
        self.page.get_by_role("button", name="I have read them").click()
        self.ready()
        return self

    def ready(self, before: str = "") -> str:
        """Wait until the page waits for this person, at another place than before;
        return the place.
        """
        code = "(before) => document.body.dataset.ready && document.body.dataset.ready !== before"
        self.page.wait_for_function(code, arg=before)
        return str(self.page.evaluate("document.body.dataset.ready"))

    def press(self, action: str) -> str:
        """Press the key of an action, and the button after a trial; return the new
        place (``over`` at the end).
        """
        before = self.ready()
        self.page.keyboard.press(KEYS[action])
        self.pressed += action[0] if action in ("FORWARD", "STAY") else action[7]
        after = self.ready(before)
        if after == "next":
            self.page.keyboard.press("Enter")
            after = self.ready("next")
        return after

    @property
    def sees(self) -> str:
        return str(self.page.locator("#observation").text_content())

    @property
    def told(self) -> str:
        return self.page.locator("#told").inner_text()


def walk(person: Person, trials: int = 6) -> None:
    """Walk on until the end, or for this many trials."""
    for _ in range(4 * trials):
        if person.press("FORWARD") == "over":
            return


@pytest.mark.browser
def test_three_people_at_once_one_of_whom_closes_the_tab(
    lab: Experiment, serve: Serve, open_page: Open
) -> None:
    base = serve(lab.serving)
    people = [
        Person(open_page(base, reduced_motion="reduce")).agree() for _ in range(3)
    ]
    for action in ("STAY", "ROTATE_LEFT"):
        for person, extra in zip(people, (1, 2, 3), strict=True):
            for _ in range(extra):
                person.press(action)
    before = people[1].sees
    context = people[1].page.context
    people[1].page.close()
    people[0].press("ROTATE_RIGHT")
    walk(people[0])
    people[0].page.get_by_role("heading", name="That was all. Thank you!").wait_for()
    tab = context.new_page()
    tab.goto(base)  # the invitation remembers where this person was, and nobody else
    tab.get_by_role("link", name="Go on where you were").click()
    back = Person(tab).begin()
    assert back.sees == before
    for _ in range(2):
        back.press("ROTATE_RIGHT")
    walk(back)
    for _ in range(3):
        people[2].press("ROTATE_RIGHT")
    walk(people[2])
    [plan] = lab.log.plans()
    assert lab.log.completed_subjects(plan) == {0: 6, 1: 6, 2: 6}
    firsts = [lab.log.trials(plan, subject)[0].actions for subject in range(3)]
    assert firsts[1:] == [
        "..SSLLRRFFFF",
        "..SSSLLLRRRF",
    ]  # frozen steps at first, then every key, across the closed tab
    judged = judge(plan, lab.log.trials_and_gaps())
    assert judged.subjects == 3
    assert judged.rate == pytest.approx(sum(life[-1] for life in rates(lab.log)) / 3)
    assert open_page(base).get_by_label("I have read this").is_visible()
    results = str(lab.log.directory.parent)
    assert main(["report", "people", "--results", results, "--html"]) == 0
    page = open_page((lab.log.directory / "report.html").as_uri() + "#little/1/0/5")
    page.locator("#sentence", has_text="Step 5 of 12").wait_for()
    assert "A person pressed a key" in page.locator("#no-call").inner_text()


def rates(log: RunLog) -> list[list[float]]:
    [plan] = log.plans()
    lives = (log.trials(plan, subject) for subject in range(plan.subjects))
    return [
        [sum(bool(record.success) for record in life) / len(life)] for life in lives
    ]


@pytest.mark.browser
@pytest.mark.parametrize("view", ["ascii_2d", "ascii_3d", "topdown_2d"])
def test_a_person_sees_exactly_what_an_agent_is_shown(
    tmp_path: Path, maze: Specification, serve: Serve, open_page: Open, view: str
) -> None:
    with experiment(tmp_path / "results", maze, 1, view) as lab:
        person = Person(open_page(serve(lab.serving), reduced_motion="reduce")).agree()
        seen = []
        for action in (
            "ROTATE_LEFT",
            "FORWARD",
            "ROTATE_RIGHT",
            "FORWARD",
            "FORWARD",
            "STAY",
        ):
            person.press(action)
            picture = person.page.locator("#picture").get_attribute("src") or ""
            seen.append(
                (
                    person.sees,
                    picture.removeprefix("data:image/png;base64,"),
                    person.told,
                )
            )
        walk(person, 1)
        [plan] = lab.log.plans()
        plugins = PluginManager()
        record = lab.log.trials(plan, 0)[0]
        frames = film(lab.log, plugins.compile(maze), plugins.view(view), record)[3:9]
        for frame, (text, picture, told) in zip(frames, seen, strict=True):
            assert text == str(frame.observation)
            drawn = (
                frame.observation.png if isinstance(frame.observation, Picture) else b""
            )
            assert base64.b64decode(picture) == drawn
            assert told.endswith(f"reward {frame.reward:+.6g}")
        # The only arrow in a map from above is marked, and every letter is still there.
        arrows = person.page.locator("#observation .agent").all_text_contents()
        assert len(arrows) == (view == "ascii_2d")
        assert "You are here." in (
            person.page.locator("#instructions").text_content() or ""
        )


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1400])
def test_pages_are_for_everybody(
    lab: Experiment, serve: Serve, open_page: Open, check_axe: Check, width: int
) -> None:
    base = serve(lab.serving)
    scheme = "dark" if width == 360 else "light"
    page = open_page(
        base,
        width=width,
        scheme=scheme,
        reduced_motion="reduce",
        has_touch=width == 360,
    )

    def fits() -> None:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        check_axe(page)

    fits()
    page.get_by_label("I have read this and agree").check()
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("button", name="I have read them").wait_for()
    fits()
    page.get_by_role("button", name="I have read them").click()
    person = Person(page)
    where = person.ready()
    assert page.locator("#place").inner_text() == "Trial 1 of 6"
    fits()
    page.get_by_role("button", name="Pause").click()
    page.keyboard.press("ArrowUp")  # no step passes
    assert not page.locator("#observation").is_visible()
    fits()
    page.get_by_role("button", name="Go on").click()
    assert person.ready() == where
    for _ in range(4):  # with the buttons alone
        button = page.get_by_role("button", name="Forward")
        button.tap() if width == 360 else button.click()
        where = person.ready(where)
    assert where == "next"
    assert "The trial is over" in person.told
    assert page.locator("#place").inner_text() == "Trial 1 of 6", (
        "the trial that is seen"
    )
    fits()
    page.get_by_role("button", name="Next trial").click()
    person.ready("next")
    walk(person)
    page.get_by_role("heading", name="That was all. Thank you!").wait_for()
    assert page.get_by_text("It was about cheese.").is_visible()
    assert page.get_by_role("img", name="You: 100 %").is_visible()
    done = page.get_by_role("link", name="Complete your participation").get_attribute(
        "href"
    )
    assert done == "https://lab.example/done?code=C1"
    fits()


@pytest.mark.browser
def test_another_task_is_announced(
    tmp_path: Path, maze: Specification, serve: Serve, open_page: Open
) -> None:
    with experiment(tmp_path / "results", maze, 1) as lab:
        [task] = lab.participants.tasks
        other = replace(task, plan=replace(task.plan, protocol="other"))
        lab.log.add_cells([(other.plan, maze)])
        lab.participants = Participants(lab.log, lab.store, [task, other], SEED)
        lab.__post_init__()
        person = Person(open_page(serve(lab.serving), reduced_motion="reduce")).agree()
        walk(person, 5)
        for _ in range(4):
            before = person.ready()
            assert (
                person.page.locator("#place").inner_text()
                == "Trial 6 of 6, task 1 of 2"
            )
            person.page.keyboard.press("ArrowUp")
            person.ready(before)
        assert person.page.get_by_text("That task is over.").is_visible()
        person.page.get_by_role("button", name="Next task").click()
        person.ready("next")
        assert person.page.locator("#place").inner_text() == "Trial 1 of 6, task 2 of 2"
        assert not person.page.get_by_text("That task is over.").is_visible()


@pytest.mark.parametrize("times", [True, False])
def test_key_times_are_recorded_where_people_agreed_to_it(
    tmp_path: Path, maze: Specification, serve: Serve, *, times: bool
) -> None:
    with experiment(tmp_path / "results", maze, 1, times=times) as lab:
        base = serve(lab.serving)
        assert ("How long you take for each key" in str(ask(base, "")[1])) is times
        token = join(base)
        for wrong in (-1, 0.5, "3", True, 2**31, [1]):
            status, _ = ask(
                base,
                f"participant/{token}/act",
                {"at": "0.0.2", "action": "STAY", "after": wrong},
            )
            assert status == (400 if times else 200)
            if not times:
                break
        for after in (120, 80, 30, 45):
            at = ask(base, f"participant/{token}/now")[1]["at"]
            ask(
                base,
                f"participant/{token}/act",
                {"at": at, "action": "FORWARD", "after": after},
            )
            lab.participants._participants.clear()  # as in a restarted server
        [plan] = lab.log.plans()
        [record] = lab.log.trials(plan, 0)
        assert record.tally == (
            {"ms:3": 120, "ms:4": 80, "ms:5": 30, "ms:6": 45} if times else {}
        )


@pytest.mark.browser
def test_the_whole_arena_and_the_buttons_fit_into_every_window(
    tmp_path: Path, serve: Serve, open_page: Open
) -> None:
    pool = with_arena(
        Catalogue(PluginManager().protocol_directories).find("morris_water_maze")
    )
    with experiment(tmp_path / "results", pool) as lab:
        base = serve(lab.serving)
        for width, height in ((1366, 700), (390, 844), (1920, 1080)):
            page = open_page(base, width=width, reduced_motion="reduce")
            page.set_viewport_size({"width": width, "height": height})
            person = Person(page).agree()
            assert page.evaluate("document.documentElement.scrollHeight") <= height
            inside = """() => {
                const [screen, text, pad] = ["screen", "observation", "pad"].map((id) => document.getElementById(id));
                const range = document.createRange();
                range.selectNodeContents(text);
                const [box, seen] = [screen.getBoundingClientRect(), range.getBoundingClientRect()];
                const rows = text.textContent.split("\\n");
                const columns = Math.max(...rows.map((row) => row.length));
                const pause = document.getElementById("pause").getBoundingClientRect();
                return [seen.top >= box.top && seen.bottom <= box.bottom + 1 && seen.left >= box.left,
                    pad.getBoundingClientRect().bottom <= innerHeight && pause.top >= 0 && pause.right <= innerWidth,
                    seen.width / columns / (seen.height / rows.length)];
            }"""
            fits, reachable, shape = page.evaluate(inside)
            assert fits
            assert reachable
            assert 0.9 < shape < 1.1, "cells are squares"
            assert set("1234") <= set(person.sees)


@pytest.mark.browser
def test_keys_that_are_pressed_while_a_step_is_on_its_way_are_kept(
    lab: Experiment, serve: Serve, open_page: Open
) -> None:
    person = Person(open_page(serve(lab.serving), reduced_motion="reduce")).agree()
    for action in ("ROTATE_LEFT", "ROTATE_LEFT", "STAY"):
        person.page.keyboard.press(KEYS[action])
    person.page.get_by_text("Waited: reward").wait_for()
    keys = lab.store.keys(0)
    assert keys is not None
    assert keys.letters == "..LLS"  # the little maze begins with two frozen steps


@pytest.mark.browser
def test_the_keyboard_is_enough(lab: Experiment, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(lab.serving), reduced_motion="reduce")
    page.get_by_label("I have read this and agree").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="I have read them").wait_for()
    for _ in range(3):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "start":
            break
    page.keyboard.press("Enter")
    person = Person(page)
    walk(person)
    assert lab.log.completed_subjects(lab.log.plans()[0]) == {0: 6}


@pytest.mark.browser
def test_two_tabs_of_one_person_are_one_person(
    lab: Experiment, serve: Serve, open_page: Open
) -> None:
    first = Person(open_page(serve(lab.serving), reduced_motion="reduce")).agree()
    tab = first.page.context.new_page()
    tab.goto(first.page.url)
    second = Person(tab).begin()
    second.press("STAY")
    second.press("ROTATE_LEFT")
    before = first.ready()
    # This tab shows a stale state, so its action must be ignored.
    first.page.keyboard.press("ArrowUp")
    assert first.ready(before) == second.ready()
    assert first.sees == second.sees
    assert "another window" in first.page.locator("#trouble").inner_text()
    first.press("ROTATE_RIGHT")
    [life] = lab.store._connection.execute("SELECT letters FROM keys").fetchall()
    assert life == ("..SLR",)


# ---- by HTTP alone


def ask(
    base: str, path: str, content: object = None, method: str = "", **headers: str
) -> tuple[int, Any]:
    """Return the status and the content of a reply to a request that any program could
    make.
    """
    parts = urlsplit(base)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=30
    )
    body = (
        None
        if content is None
        else content
        if isinstance(content, bytes)
        else json.dumps(content).encode()
    )
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named.setdefault("Content-Type", "application/json")
    try:
        connection.request(
            method or ("GET" if body is None else "POST"),
            parts.path + path,
            body,
            named,
        )
        response = connection.getresponse()
        text = response.read().decode()
        assert not [
            name
            for name, _ in response.getheaders()
            if name.lower().startswith("access-control-")
        ]
        assert "Set-Cookie" not in dict(response.getheaders())
    finally:
        connection.close()
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, text


def join(base: str) -> str:
    status, answer = ask(base, "join", {"agreed": True})
    assert status == 200
    return str(answer["participant"])


def act(base: str, token: str, action: str, at: str | None = None) -> dict[str, Any]:
    at = ask(base, f"participant/{token}/now")[1]["at"] if at is None else at
    status, answer = ask(base, f"participant/{token}/act", {"at": at, "action": action})
    assert status == 200, answer
    return dict(answer)


def test_nobody_takes_part_without_having_agreed(lab: Experiment, serve: Serve) -> None:
    base = serve(lab.serving)
    for content in ({}, {"agreed": False}, {"agreed": "yes"}, {"agreed": 1}):
        assert ask(base, "join", content)[0] == 400
    for noise in (b"", b"[]", b"true", b"{", b"\xff", b"[" * 3000):
        assert ask(base, "join", noise)[0] == 400
    assert (
        ask(
            base,
            "join",
            b"agreed=true",
            Content_Type="application/x-www-form-urlencoded",
        )[0]
        == 415
    )
    assert ask(base, "join", b'{"agreed": true}', Content_Type="text/plain")[0] == 415
    assert ask(base, "join", b" " * 10_000 + b"{}")[0] in (400, 413)
    assert ask(base, "join", {"agreed": True}, Origin="http://evil.example")[0] == 403
    assert ask(base, "join", {"agreed": True}, Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(base, "join", {"agreed": True}, Host="evil.example")[0] == 421
    assert ask(base, "join", method="PUT", content={"agreed": True})[0] == 405
    assert ask(base, "join", method="OPTIONS", Origin="http://evil.example")[0] == 405
    assert lab.store.count() == 0


def test_a_body_that_does_not_arrive_is_not_waited_for(
    lab: Experiment, serve: Serve
) -> None:
    serving = lab.serving
    serving.patience = 0.2
    parts = urlsplit(serve(serving))
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=30
    )
    connection.putrequest("POST", f"{parts.path}join")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", "16")
    connection.endheaders(b'{"agreed"')
    assert connection.getresponse().status == 408
    connection.close()
    assert lab.store.count() == 0


def test_a_place_belongs_to_whoever_has_its_token(
    lab: Experiment, serve: Serve
) -> None:
    base = serve(lab.serving)
    mine, other = join(base), join(base)
    for wrong in (
        "nobody",
        mine[:-1],
        mine.swapcase(),
        "0",
        "%00",
        "..",
        "é".encode().hex(),
        mine + other,
    ):
        for path, content in (
            ("", None),
            ("now", None),
            ("act", {"at": "0.0.2", "action": "STAY"}),
        ):
            assert ask(base, f"participant/{wrong}/{path}", content)[0] == 404, wrong
    act(base, mine, "STAY")
    assert ask(base, f"participant/{other}/now")[1]["at"] == "0.0.2"
    assert ask(base, f"participant/{mine}/now")[1]["at"] == "0.0.3"
    stored = (
        sqlite3.connect(lab.store.path)
        .execute("SELECT mark FROM participants")
        .fetchall()
    )
    assert not {mine, other} & {mark for (mark,) in stored}


def test_only_actions_of_the_present_moment_are_executed(
    lab: Experiment, serve: Serve
) -> None:
    base = serve(lab.serving)
    token = join(base)
    for action in (None, "", "JUMP", 0, ["STAY"], {"a": 1}, "forward"):
        assert (
            ask(base, f"participant/{token}/act", {"at": "0.0.2", "action": action})[0]
            == 400
        )
    assert act(base, token, "STAY", "0.0.2")["at"] == "0.0.3"
    # Sent twice, by a browser that had no answer.
    again = act(base, token, "STAY", "0.0.2")
    assert again["stale"] is True
    assert again["at"] == "0.0.3"
    for at in ("", "end", "0.0.99", "9.0.3", None, 3):
        answer = ask(base, f"participant/{token}/act", {"at": at, "action": "STAY"})[1]
        assert answer["stale"] is True


def test_a_file_that_is_held_by_another_program_stops_nobody_who_only_looks(
    lab: Experiment, serve: Serve
) -> None:
    base = serve(lab.serving)
    token = join(base)
    held = sqlite3.connect(lab.store.path, isolation_level=None)
    with closing(held), ThreadPoolExecutor(1) as pool:
        held.execute("BEGIN IMMEDIATE")
        acting = pool.submit(act, base, token, "FORWARD", "0.0.2")
        for _ in range(20):
            assert ask(base, f"participant/{token}/now")[1]["at"] == "0.0.2"
        assert not acting.done()
        held.execute("COMMIT")
        assert acting.result(timeout=60)["at"] == "0.0.3"


def test_places_are_limited_and_an_unused_one_goes_to_somebody_else(
    lab: Experiment, serve: Serve
) -> None:
    base = serve(lab.serving)
    store = [join(base) for _ in range(3)]
    act(base, store[0], "FORWARD")
    status, answer = ask(base, "join", {"agreed": True})
    assert status == 409
    assert "All places are taken" in answer["problem"]
    lab.clock.now += UNUSED + 1
    new = join(base)
    # The place now belongs to the new person.
    assert ask(base, f"participant/{store[1]}/now")[0] == 404
    # A person who has pressed a key keeps the place.
    assert ask(base, f"participant/{store[0]}/now")[0] == 200
    assert ask(base, f"participant/{new}/now")[1]["at"] == "0.0.2"


def test_nobody_else_is_asked_once_a_sequential_verdict_is_decided(
    tmp_path: Path, maze: Specification, serve: Serve
) -> None:
    with experiment(
        tmp_path / "results", maze, subjects=60, design="sequential"
    ) as lab:
        base, [plan] = serve(lab.serving), lab.log.plans()
        first = sets_until(plan.subjects)[0]
        early = [join(base) for _ in range(first + 1)]
        for waits, token in enumerate(early[:first]):
            # People differ, because otherwise they would be copies of one.
            assert not lab.participants.complete
            person = lab.participants.find(token)
            assert person is not None
            for _ in range(waits):
                person.act(STAY)
            while not person.over:
                person.act(FORWARD)
        status, answer = ask(base, "join", {"agreed": True})
        assert status == 409
        assert "Enough people have taken part" in answer["problem"]
        assert ask(base, f"participant/{early[first]}/now")[1]["over"] is False, (
            "whoever has begun may go on"
        )
        judged = judge(plan, lab.log.trials_and_gaps())
        assert judged.verdict is Verdict.PASS
        assert judged.game is not None
        assert judged.game.subjects == first


def test_nothing_that_is_recorded_says_who_it_was(
    lab: Experiment, serve: Serve
) -> None:
    base = serve(lab.serving)
    token = join(base)
    for _ in range(5):
        ask(
            base,
            f"participant/{token}/now",
            User_Agent="A Telltale/1.0",
            X_Forwarded_For="198.51.100.7",
            Cookie="me=Ann",
        )
        act(base, token, "FORWARD")
    written = b"".join(path.read_bytes() for path in lab.log.directory.iterdir())
    for trace in (b"Telltale", b"198.51", b"127.0.0.1", b"Ann", token.encode()):
        assert trace not in written
    assert (lab.store.path.stat().st_mode & 0o077) == 0 or sys.platform == "win32"


def test_a_life_that_nobody_watches_is_read_again_from_what_was_recorded(
    lab: Experiment, maze: Specification
) -> None:
    token = lab.participants.join()
    assert token is not None
    life = lab.participants.find(token)
    assert life is not None
    letters = "LRSFRLFSSFFFF" * 4
    for number, letter in enumerate(letters):
        lab.participants.act(life, "FLRS".index(letter))
        again = Participants(lab.log, lab.store, lab.participants.tasks, SEED).find(
            token
        )
        assert again is not None
        assert (again.at, again.shown) == (life.at, life.shown), number
        if life.over:
            break
    assert life.over


# ---- the command


@contextmanager
def command(*arguments: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run ``cheesebench people``; yield the process and the link that it prints."""
    words = [sys.executable, "-m", "cheesebench", "people", *arguments]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Give this link to people"), (
            first + process.stdout.read()
        )
        try:
            yield process, process.stdout.readline().strip()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(30)


ARROWS = "↑→↓←"


def turn_to(person: Person, wanted: str) -> None:
    while True:
        turns = (ARROWS.index(wanted) - ARROWS.index(heading(person.sees))) % 4
        if not turns:
            return
        person.press("ROTATE_LEFT" if turns == 3 else "ROTATE_RIGHT")


def heading(seen: str) -> str:
    found = re.search(f"[{ARROWS}]", seen)
    assert found is not None, seen
    return found[0]


def run_to(person: Person, side: str) -> str:
    """Run from the box into an arm; return the text shown there."""
    turn_to(person, "↑")
    for _ in range(3):
        person.press("FORWARD")
    turn_to(person, side)
    person.press("FORWARD")
    before = person.ready()
    person.page.keyboard.press("ArrowUp")
    person.ready(before)
    return person.told


@pytest.mark.browser
def test_a_person_learns_the_t_maze(
    tmp_path: Path,
    open_page: Open,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trials = 6
    arguments = [
        "--protocols",
        "t_maze",
        "--design",
        f"flat-{trials}",
        "--run-id",
        "learner",
    ]
    with command(*arguments, cwd=tmp_path) as (process, link):
        person = Person(open_page(link, reduced_motion="reduce")).agree()
        same = True  # a person's first belief: food is where it was
        right = []
        for _ in range(trials):
            shut = "←" if "+" in person.sees.split("\n")[1][:3] else "→"
            sample = "→" if shut == "←" else "←"
            run_to(person, sample)
            run_to(person, sample if same else shut)
            rewarded = "reward +1" in person.told
            right.append(rewarded)
            if not rewarded:
                same = not same
            if person.ready() == "next":
                person.page.keyboard.press("Enter")
                person.ready("next")
        person.page.get_by_role("heading", name="That was all. Thank you!").wait_for()
    assert process.returncode == 0
    assert right == [False] + [True] * (trials - 1)
    monkeypatch.chdir(tmp_path)
    with RunLog.open_read_only(tmp_path / "results" / "learner") as log:
        [plan] = log.plans()
        assert [record.success for record in log.trials(plan, 0)] == right
        assert log.journal(kind="finished")
    assert main(["report", "learner", "--verify"]) == 0
    assert PERSON in capsys.readouterr().out


@pytest.mark.browser
def test_a_server_that_is_killed_in_a_trial_goes_on_with_it(
    tmp_path: Path, maze: Specification, open_page: Open
) -> None:
    arguments = ["--protocols", str(maze.path), "--subjects", "1", "--run-id", "killed"]
    with command(*arguments, cwd=tmp_path) as (process, link):
        person = Person(
            open_page(link, expected="ERR_CONNECTION_REFUSED", reduced_motion="reduce")
        ).agree()
        for action in ("STAY", "ROTATE_LEFT", "ROTATE_RIGHT", "FORWARD"):
            person.press(action)
        where, seen = person.ready(), person.sees
        process.kill()
        process.wait(30)
    person.page.keyboard.press("ArrowUp")
    person.page.locator(
        "#trouble", has_text="The server does not answer. Nothing is lost"
    ).wait_for()
    assert (person.ready(), person.sees) == (where, seen)
    with command("--resume", "killed", cwd=tmp_path) as (_, again):
        assert again == link  # people's links stay valid
        person.ready(where)  # the page sends the lost key again
        person.page.locator("#trouble").wait_for(state="hidden")
        walk(person)
    with RunLog.open_read_only(tmp_path / "results" / "killed") as log:
        [plan] = log.plans()
        assert log.completed_subjects(plan) == {0: 6}
        assert log.trials(plan, 0)[0].actions == "..SLRFFFF"
        assert "6 trials" in verify(log)


def test_people_join_the_run_of_a_model(
    tmp_path: Path,
    maze: Specification,
    lived: Lived,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lived(tmp_path / "results", maze, "both", "tabular-ql", 2).close()
    with command("--resume", "both", cwd=tmp_path) as (_, link):
        for _ in range(2):
            token = join(link)
            while not act(link, token, "FORWARD")["over"]:
                pass
    monkeypatch.chdir(tmp_path)
    assert main(["report", "both", "--verify"]) == 0
    report = capsys.readouterr().out
    assert PERSON in report
    assert "tabular-ql" in report
    assert (
        main(
            [
                "compare",
                "both",
                "both",
                "--first-model",
                PERSON,
                "--second-model",
                "tabular-ql",
            ]
        )
        == 0
    )
    assert "little" in capsys.readouterr().out
    with RunLog.open_read_only(tmp_path / "results" / "both") as log:
        person = next(plan for plan in log.plans() if plan.model == PERSON)
        assert log.completed_subjects(person) == {0: 6, 1: 6}
        assert judge(person, log.trials()).rate == 1.0


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "Name the protocols"),
    (["--protocols", "nowhere"], "nowhere"),
    (["--protocols", "t_maze", "--view", "ascii_2e"], "ascii_2d"),
    (["--protocols", "t_maze", "--subjects", "0"], "at least one subject"),
    (["--protocols", "t_maze", "--address", "0.0.0.0"], "--host-name"),
    (["--protocols", "t_maze", "--consent", "missing.txt"], "missing.txt cannot be read: No such file or directory."),
    (["--protocols", "t_maze", "--address", "192.0.2.1"], "Cannot listen on 192.0.2.1"),
    (["--protocols", "t_maze", "--address", "192.0.2.1"], "name an address that this machine has"),
    (["--protocols", "t_maze", "--agent", "lim"], "llm"),
    (["--resume", "nothing"], "There is no run 'nothing'"),
])  # fmt: skip
def test_mistakes_are_explained(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["people", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("results/*")), "nothing was begun"


def test_pytest_says_how_people_are_run() -> None:
    given = Given({})
    with pytest.raises(OptionError, match="people are run by 'cheesebench people"):
        language_models(PluginManager(), [PERSON], given, given.resolve(), Path())


def test_people_are_told_what_a_model_is_told() -> None:
    plugins = PluginManager()
    agent = plugins.model_agent("llm")
    assert agent.instructions is not None
    from cheesebench.chat import ModelAgentContext

    for view in plugins.views.values():
        reading = getattr(view, "reading", "")
        context = ModelAgentContext(
            seed=0,
            view=view.name,
            settings={**agent.settings, "patience": 0},
            reading=reading,
        )
        prompt = "".join(map(str, agent.create(context).prompt()[0].parts))
        told = agent.instructions(reading)
        who, perception, *rest = told.split("\n\n")
        # The aim, the observations, the actions and the hints are the model's; the rest
        # of its prompt does not concern keys.
        assert (
            "The task is not explained. Make the sum of all your rewards as high as you can."
            in who
        )
        for shared in (
            who.partition("behavioural experiment. ")[2],
            perception.split("\n")[2],
            rest[-1],
        ):
            assert shared, told
            assert shared in prompt, shared
        assert reading in perception
        assert all(f"\n{key} or " in told for key in "↑←→↓")
        for word in ("$", "agent", "Answer", "LEARNINGS", "TRIAL", *ACTIONS):
            assert word not in told.replace(reading, "")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER more AFTER INSERT ON keys BEGIN INSERT INTO keys SELECT subject + 1, 0, 0, '' FROM keys; END",
        "CREATE VIEW everything AS SELECT * FROM keys",
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB)",
    ],
)
def test_a_file_of_participants_with_other_tables_is_refused(
    tmp_path: Path, statement: str
) -> None:
    if "settings" not in statement:
        ParticipantStore(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "people.sqlite")) as connection:
        connection.execute(statement)
    with pytest.raises(RunLogError, match="its tables differ from the tables of a run"):
        ParticipantStore(tmp_path)


@pytest.mark.browser
def test_a_screen_reader_says_each_prompt_result_and_button_in_order(
    lab: Experiment, serve: Serve, open_page: Open
) -> None:
    """Chromium's accessibility tree, top to bottom: the text before the trial, in it,
    and after a step.
    """
    page = open_page(serve(lab.serving), width=1366)

    def said() -> list[tuple[str, str]]:
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")[
            "nodes"
        ]
        nodes = {node["nodeId"]: node for node in tree}

        def walk(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
            if not node["ignored"] and node["role"]["value"] not in (
                "InlineTextBox",
                "none",
            ):
                yield (
                    node["role"]["value"],
                    node.get("name", {}).get("value", "").strip(),
                )
            for child in node.get("childIds", ()):
                yield from walk(nodes[child])

        return list(walk(tree[0]))

    page.get_by_label("I have read this and agree").check()
    page.get_by_role("button", name="Begin").click()
    page.get_by_role("button", name="I have read them").wait_for()
    before = said()
    assert before.index(("DisclosureTriangle", "Instructions")) < before.index(
        ("button", "I have read them")
    )
    page.get_by_role("button", name="I have read them").click()
    person = Person(page)
    where = person.ready()
    now = said()
    # The subject's own arrow, which is marked, is a separate piece.
    pieces = page.locator("#observation").evaluate(
        "one => [...one.childNodes].map(node => node.textContent.trim())"
    )
    prompts = [("StaticText", piece) for piece in pieces]
    buttons = [
        "Left: turn on the spot", "Forward: one step ahead", "Right: turn on the spot", "Wait: one moment",
    ]  # fmt: skip
    order = [
        ("StaticText", "Trial 1 of 6"),
        ("button", "Pause"),
        ("region", "What you see"),
        *prompts,
    ]
    order += [("group", "Actions"), *(("button", name) for name in buttons)]
    assert [one for one in now if one in order] == order
    assert [
        role for role, name in now if not name and role in ("button", "region", "image")
    ] == []
    page.get_by_role("button", name="Forward").click()
    person.ready(where)
    after = said()
    told = ("StaticText", person.told.strip())
    assert told in after
    assert after.index(told) < after.index(("region", "What you see"))
    assert any(role == "status" for role, _ in after), "said without being looked for"
