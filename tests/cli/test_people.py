"""``cheesebench people``: a run of people, from the link to the last line."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cheesebench.commands.people import _paragraphs
from cheesebench.errors import OptionError
from cheesebench.experiment.log import RunLog
from cheesebench.records import PERSON
from cheesebench.server.http_guard import RequestGuard
from cheesebench.server.people import FILE_NAME
from tests.cli.conftest import RUN
from tests.server.test_people import act, ask, join

Run = Callable[..., Any]


@pytest.fixture
def port() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        return int(free.getsockname()[1])


def link(directory: Path) -> str:
    """Return the address of a run that accepts connections, or "" before it does."""
    path = directory / FILE_NAME
    if not path.is_file():
        return ""
    with contextlib.closing(
        sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    ) as store:
        try:
            kept = dict(store.execute("SELECT name, value FROM settings"))
        except sqlite3.OperationalError:  # not made yet
            return ""
    found = RequestGuard(token=kept.get("token", "")).url(int(kept.get("port", 0)))
    try:
        ask(found, "")
    except OSError:
        return ""
    return found


#: Seconds after which a server that is not there has failed.
PATIENCE = 60.0


@contextlib.contextmanager
def visited(directory: Path, visit: Callable[[str], None]) -> Iterator[None]:
    """Visit the server that the block starts here, then end it by a signal."""
    seen: list[BaseException] = []
    over = threading.Event()

    def go() -> None:
        latest = time.monotonic() + PATIENCE
        while not (base := link(directory)):
            if over.wait(0.02):
                return
            if time.monotonic() > latest:
                # Nothing may have begun that handles SIGTERM.
                os.kill(os.getpid(), signal.SIGINT)
                return
        try:
            visit(base)
        except BaseException as error:
            seen.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(30)
    assert not seen, seen
    assert not thread.is_alive()


def take_part(base: str) -> None:
    token = join(base)
    answers = (act(base, token, "FORWARD") for _ in range(1000))
    assert any(answer["over"] for answer in answers)


def texts(log: RunLog, kind: str) -> list[str]:
    return [entry.text for entry in log.journal(kind=kind)]


def test_people_take_part_and_the_run_goes_on(run: Run, here: Path, port: int) -> None:
    (here / "consent.txt").write_text(
        "Approved\nby none.\n\n \n\nReally.\n", encoding="utf-8"
    )
    directory = here / "results" / "mine"
    pages: list[str] = []

    def visit(base: str) -> None:
        pages.append(str(ask(base, "")[1]))
        take_part(base)

    given = [
        "--protocols",
        "little.protocol.yaml",
        "--subjects",
        2,
        "--seed",
        5,
        "--run-id",
        "mine",
        "--key-times",
    ]
    with visited(directory, visit):
        found = run("people", *given, "--port", port, "--consent", "consent.txt")
    assert found.code == 0, found.err
    first, shown, going_on, last = found.out.splitlines()
    assert first == "Give this link to people (run mine, 2 places):"
    assert shown.startswith(f"http://127.0.0.1:{port}/")
    assert going_on.endswith(" To continue: cheesebench people --resume mine")
    assert last.startswith("1 place taken, 1 complete. ")
    assert last.endswith("cheesebench report mine")
    assert found.err == "cheesebench: ended by SIGTERM.\n"
    assert "Approved by none." in pages[0]
    assert "How long you take for each key" in pages[0]
    # The port, the link and everything else are kept.
    with visited(directory, take_part):
        again = run("people", "--resume", "mine", "--key-times")
    assert again.out.splitlines()[:2] == [first, shown]
    last = again.out.splitlines()[-1]
    assert last.startswith("2 places taken, 2 complete. No more people are needed. ")
    with RunLog.open_read_only(directory) as log:
        [plan] = log.plans()
        assert plan.key == (PERSON, "little", "ascii_2d", "")
        assert (plan.subjects, plan.design, plan.memory) == (2, "cohort", "life")
        assert log.completed_subjects(plan) == {0: 4, 1: 4}
        options = log.manifest["options"]
        kept = {
            key: options[key]
            for key in (
                "model",
                "view",
                "edition",
                "design",
                "subjects",
                "seed",
            )
        }
        assert kept == {
            "model": [PERSON], "view": ["ascii_2d"], "edition": "default", "design": "cohort",
            "subjects": 2, "seed": 5,
        }  # fmt: skip
        assert options["seed_drawn"] is False
        assert texts(log, "started") == [
            "2 of 2 people to come",
            "1 of 2 people to come",
        ]
        assert texts(log, "closed") == ["people", "people"]
        assert texts(log, "finished") == ["2 people"]
    for option, value in (
        ("--protocols", "little.protocol.yaml"), ("--edition", "x"), ("--design", "cohort"), ("--seed", "5"), ("--run-id", "a"),
        ("--view", "ascii_2d"), ("--subjects", "2"),
    ):  # fmt: skip
        said = run("people", "--resume", "mine", "--key-times", option, value).err
        assert said == (
            "cheesebench: A resumed run keeps the settings that it was started with. "
            f"Leave {option} out.\n"
        )
    assert run("people", "--resume", "mine").err == (
        "cheesebench: This run was started with --key-times, and its people agreed to that. Resume it with --key-times, "
        "too.\n"
    )
    with visited(directory, lambda base: None):
        run("people", "--resume", "mine", "--key-times", "--port", port)
    with RunLog.open_read_only(directory) as log:
        assert texts(log, "finished") == ["2 people"] * 3


def test_people_join_a_run_of_a_model(run: Run, results: Path, port: int) -> None:
    directory = results / RUN
    with visited(directory, lambda base: None):
        found = run(
            "people",
            "--resume",
            RUN,
            "--port",
            port,
            "--view",
            "ascii_3d",
            "--subjects",
            3,
        )
    assert found.out.startswith(f"Give this link to people (run {RUN}, 3 places):")
    with RunLog.open_read_only(directory) as log:
        model, person = log.plans()
        assert (model.model, model.view, model.subjects) == ("random", "ascii_2d", 2)
        assert (person.model, person.view, person.subjects) == (PERSON, "ascii_3d", 3)
        assert person.sha256 == model.sha256
    said = run("people", "--resume", RUN, "--key-times").err
    assert "This run was started without --key-times" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["--protocols", "little.protocol.yaml", "--agent", "random"],
            "There is no agent 'random'",
        ),
        (
            ["--protocols", "little.protocol.yaml", "--address", "::"],
            "name this machine as people's browsers know it, with --host-name.",
        ),
        (
            ["--protocols", "little.protocol.yaml", "--view", "ascii"],
            "There is no view 'ascii'",
        ),
        (["--resume", RUN, "--seed", "0"], "Leave --seed out."),
        (
            ["--protocols", "little.protocol.yaml", "--debriefing", "."],
            ". cannot be read: ",
        ),
    ],
)
def test_nothing_is_begun_after_a_mistake(
    run: Run, results: Path, given: list[str], said: str
) -> None:
    found = run("people", *given)
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert [path.name for path in results.iterdir()] == [RUN]


def test_a_text_is_read_paragraph_by_paragraph(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("One\n two.\n\n\nThree.\n\n  \n", encoding="utf-8")
    assert _paragraphs(str(path)) == ["One two.", "Three."]
    assert _paragraphs(None) == []
    path.write_bytes(b"\xff")
    with pytest.raises(
        OptionError, match=r"text cannot be read: it is not UTF-8. Name a text file"
    ):
        _paragraphs(str(path))
    path.write_text("a" * 65_536, encoding="utf-8")
    assert _paragraphs(str(path)) == ["a" * 65_536]
    path.write_text("a" * 65_535 + "\N{BULLET}", encoding="utf-8")
    with pytest.raises(
        OptionError,
        match=r"text has more than 64 KB\. Shorten the text\.$",
    ):
        _paragraphs(str(path))
    with pytest.raises(
        OptionError, match=r"gone cannot be read: No such file or directory"
    ):
        _paragraphs(str(tmp_path / "gone"))
