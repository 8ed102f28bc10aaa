"""``cheesebench show``: the calls that a run made to a real server, read from its
log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cheesebench.chat import ModelEntry
from cheesebench.commands.common import table
from cheesebench.commands.show import _HEADERS, EXCERPT, WIDE
from cheesebench.errors import RunLogError
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.controls import control_cell
from cheesebench.experiment.language_models import LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import rebuild_call
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.views.ascii_2d import Ascii2D
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.testing.fake_server import FakeServer
from fuzz.run_logs import rewritten

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]
RUN = "talked"
#: Replies of the model, in turn; the last one is hostile.
REPLIES = (
    "<think>east it is</think>LEARNINGS: I face east\nACTIONS: FORWARD, FORWARD, FORWARD, FORWARD",
    "I do not know.",
    "LEARNINGS: \x1b[2J red\nACTIONS: STAY, STAY, STAY, STAY",
)


def talk(
    here: Path, view: str, replies: Sequence[str], *controls: str, **settings: object
) -> Path:
    """Run one subject with a language model in ``little``; return the directory of the
    run's results.
    """
    plugins = installed_plugins()
    specification = with_arena(Catalogue().load(here / "little.protocol.yaml"))
    with FakeServer(lambda call: replies[call.number % len(replies)]) as server:
        model = language_model(
            plugins,
            ModelEntry(name="tiny", backend="openai", id="tiny-1", images=True),
            settings={"actions": 4, "history": 1, **settings},
            base_url=server.base_url,
        )
        plan = plan_cell(
            specification,
            "tiny",
            view,
            find_design("cohort", 1),
            agent="llm",
            settings=model.settings,
        )
        cells = [
            (control_cell(plan, control) if control else plan, specification)
            for control in ("", *controls)
        ]
        with RunLog.create(here / "results", RUN, cells, options={"seed": 0}) as log:
            models = LanguageModels(log, {"tiny": model})
            with RunSession(
                log, plugins, cells, seed=0, processes=0, language=models
            ) as session:
                session.finish()
    return here / "results"


@pytest.fixture
def talked(here: Path) -> Path:
    """The results of a run with ten calls."""
    return talk(here, "ascii_2d", REPLIES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("history", "-1"),
        ("history", "[]"),
        ("prompt", "5"),
        ("actions", "[]"),
        ("served", "1"),
        ("dropped", "null"),
    ],
)
def test_settings_that_no_run_has_are_no_traceback(
    run: Run, talked: Path, name: str, value: str
) -> None:
    with rewritten(talked / RUN / "run.sqlite") as connection:
        connection.execute(
            f"UPDATE cells SET plan = json_set(plan, '$.settings.{name}', json(?))",
            (value,),
        )
    found = run("show", RUN, "--call", 2)
    assert (found.code, found.err.count("\n")) == (2, 1)
    assert "cannot be rebuilt as recorded (" in found.err


def test_a_control_that_nobody_knows_is_no_traceback(run: Run, talked: Path) -> None:
    with rewritten(talked / RUN / "run.sqlite") as connection:
        for table in ("cells", "trials", "lives", "calls", "events"):
            connection.execute(f"UPDATE {table} SET variant = 'control=foo'")
        connection.execute(
            "UPDATE cells SET plan = json_set(plan, '$.variant', 'control=foo')"
        )
    for arguments in (("show", RUN, "--call", 2), ("export", RUN, "--csv")):
        found = run(*arguments)
        assert (found.code, "There is no control 'foo'" in found.err) == (2, True)


@pytest.mark.usefixtures("wide")
def test_the_list(run: Run, talked: Path) -> None:
    result = run("show", RUN)
    assert result.code == 0, result.err
    title, _, header, _, *rows = result.out.splitlines()
    assert title == "tiny on little (ascii_2d), subject 0"
    assert header.split()[:4] == ["call", "trial", "in", "trial"]
    assert [row.split()[:3] for row in rows[:4]] == [
        ["1", "1", "1"],
        ["2", "2", "1"],
        ["3", "2", "2"],
        ["4", "2", "3"],
    ]
    assert len(rows) == 10
    assert rows[1].endswith("I do not know.")
    # The model's text does not control the terminal.
    assert "\x1b" not in result.out
    assert r"LEARNINGS: \x1b[2J red" in rows[2]
    assert len(run("show", RUN, "--trial", 2).out.splitlines()) == 4 + 3
    # The actions read from each reply, and the replies without any.
    assert " FFFF " in rows[0]
    assert " no action " in rows[1]
    assert " SSSS " in rows[2]
    unread = [row for row in rows if "I do not know." in row]
    assert run("show", RUN, "--unparsed").out.splitlines()[4:] == unread
    told = run("show", RUN, "--trial", 1, "--subject", 0, "--unparsed").out
    assert told.endswith("This subject has no unparsed replies in trial 1.\n")
    told = run("show", RUN, "--trial", 1, "--unparsed").out
    assert told == "No subject has unparsed replies in trial 1.\n"


def test_the_whole_prompt_of_a_call(run: Run, below_a_loop: Run, talked: Path) -> None:
    result = run("show", RUN, "--call", 5)
    assert result.code == 0, result.err
    head, _, rest = result.out.partition("--- user ---\n")
    assert head.startswith(
        "tiny on little (ascii_2d), subject 0, trial 3, call 1 of the trial (call 5 of the subject)\n"
    )
    assert "asked by llm: history=1, actions=4, prompt=default," in head
    assert "the prompt equals the recorded one" in head
    assert "\n--- system ---\nYou are an agent with a body" in head
    assert Ascii2D.reading in head
    assert (
        rest
        == """\
STAY: reward 0
###1###
#→.*..#
#######
STAY x3: reward 0 each, unchanged
--- assistant ---
LEARNINGS: I face east
ACTIONS: FORWARD, FORWARD
--- user ---
FORWARD: reward 0
###1###
#.→*..#
#######
FORWARD: reward 0
###1###
#..→..#
#######
TRIAL ENDED
NEW TRIAL
###1###
#→....#
#######
...
waited: reward 0, unchanged
waited: reward 0
###1###
#→.*..#
#######

Your LEARNINGS: I face east
Your answer (at most 4 actions):
--- reply ---
I do not know.
--- read as ---
no action found (STAY played)
"""
    )
    assert run("show", RUN, "--trial", 3, "--call", 1).out == result.out
    assert below_a_loop("show", RUN, "--call", 5) == result
    assert run(
        "show",
        RUN,
        "--call",
        6,
        "--protocol",
        "little",
        "--model",
        "tiny",
        "--view",
        "ascii_2d",
    ).out.endswith("--- read as ---\nSTAY x4\n")


def test_reasoning_is_shown_apart(run: Run, talked: Path) -> None:
    assert run("show", RUN, "--call", 1).out.endswith(
        "\n--- reasoning ---\neast it is\n--- reply ---\nLEARNINGS: I face east\n"
        "ACTIONS: FORWARD, FORWARD, FORWARD, FORWARD\n--- read as ---\nFORWARD x4\n"
    )


def test_a_reply_without_an_action_is_no_stay(run: Run, here: Path) -> None:
    talk(
        here,
        "ascii_2d",
        ["ACTIONS: STAY", "What?", "Why?", "ACTIONS: STAY", "Who?"],
        unparsed="retry-with-feedback",
    )
    read = [
        run("show", RUN, "--call", call + 1).out.rpartition("--- read as ---\n")[2]
        for call in range(6)
    ]
    again = "no action found (the model is asked again)\n"
    assert read == ["STAY\n", again, again, "STAY\n", again, "STAY\n"]


def test_the_protocol_is_that_of_the_run(run: Run, talked: Path, here: Path) -> None:
    before = run("show", RUN, "--call", 10)
    (here / "little.protocol.yaml").unlink()
    assert run("show", RUN, "--call", 10) == before
    assert before.code == 0


def test_a_prompt_that_is_not_the_recorded_one(run: Run, talked: Path) -> None:
    with rewritten(talked / RUN / "run.sqlite") as connection:
        connection.execute("UPDATE calls SET reply = 'ACTIONS: STAY' WHERE trial = 0")
    assert run("show", RUN, "--call", 1).code == 0
    result = run("show", RUN, "--call", 5)
    assert result.code == 2
    assert result.err == (
        "cheesebench: Call 2 of trial 1 of subject 0 (tiny on little, ascii_2d) cannot be rebuilt as recorded. "
        "Use the version of CheeseBench, and the plugins, that the run was made with.\n"
    )


def test_a_call_that_no_log_has_is_counted_from_1(talked: Path) -> None:
    with RunLog.open_read_only(talked / RUN) as log:
        (plan,) = log.plans()
        with pytest.raises(
            RunLogError,
            match=r"^Call 9 of trial 2 of subject 0 .* is not in this run's log\. List its calls with `cheesebench show ",
        ):
            rebuild_call(log, installed_plugins(), plan, 0, trial=1, call=8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--call", "11"),
            "Subject 0 has 10 calls, and calls count from 1, so there is no call 11.",
        ),
        (
            ("--call", "4", "--trial", "2"),
            "Trial 2 of subject 0 has 3 calls, and calls count from 1, so there is no call 4.",
        ),
        (
            ("--subject", "1"),
            "There is no subject 1 (tiny on little, ascii_2d): the cell has 1 subject, and subjects count from 0.",
        ),
        (
            ("--model", "tinny"),
            "There is no model in this run called 'tinny'. Did you mean 'tiny'? Known: tiny.",
        ),
    ],
)
def test_what_is_not_there(
    run: Run, talked: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run("show", RUN, *arguments)
    assert (result.code, result.out, result.err) == (2, "", f"cheesebench: {message}\n")


def test_a_run_without_a_language_model(run: Run, results: Path) -> None:
    [name] = [path.name for path in results.iterdir()]
    result = run("show", name)
    assert result.code == 2
    assert (
        result.err
        == f"cheesebench: Run '{name}' asked no language model, so there are no calls to show.\n"
    )


def test_pictures_are_told_by_their_size(run: Run, here: Path) -> None:
    talk(here, "topdown_2d", ["ACTIONS: FORWARD, FORWARD"])
    result = run("show", RUN, "--call", 2)
    assert result.code == 0, result.err
    assert re.search(
        r"--- user ---\nFORWARD: reward 0\n\[picture, [\d,]+ bytes of PNG\]\nFORWARD: reward 0\n"
        r"\[picture, [\d,]+ bytes of PNG\]\n\nYour LEARNINGS: none\n",
        result.out,
    )


def test_calls_of_a_control(run: Run, here: Path) -> None:
    talk(
        here,
        "ascii_2d",
        ["ACTIONS: FORWARD, FORWARD, FORWARD, FORWARD"],
        "reward-shuffled",
    )
    plain = run("show", RUN, "--call", 2)
    assert "(ascii_2d), subject 0, trial 2" in plain.out
    # The earnings of the first trial are paid with the first step of the second one.
    assert "FORWARD: reward +1\n" in plain.out
    result = run("show", RUN, "--call", 3, "--variant", "control=reward-shuffled")
    assert result.code == 0, result.err
    assert "(ascii_2d, control=reward-shuffled), subject 0, trial 3" in result.out
    assert "FORWARD: reward +1\n" not in result.out
    assert "waited: reward +1, unchanged\n" in result.out


def test_an_excerpt_has_one_line_in_a_pipe() -> None:
    row = (
        1000,
        100,
        100,
        100_000,
        100_000,
        1000,
        100.25,
        "content_filter",
        "no action",
    )
    excerpt = "word " * (EXCERPT // 5)
    listed = table(_HEADERS, [(*row, excerpt.strip())], WIDE).splitlines()
    assert len(listed) == 3, "the headings, a rule and the call"
