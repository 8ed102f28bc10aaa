"""``cheesebench plan``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.experiment.log_file import MOST_TRIALS
from cheesebench.testing.fake_server import FakeServer
from tests.stored import check_stored, without_prose

Run = Callable[..., Any]


def test_an_agent_that_acts_by_itself_is_free_and_has_power(run: Run) -> None:
    found = run("plan", "--model", "random", "--protocols", "little.protocol.yaml")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("No calls are made, so the run is free.")
    assert "little" in found.out
    assert "its subjects are assumed to be alike" in " ".join(found.out.split())
    assert all(len(line) <= 80 for line in found.out.splitlines())


def test_without_protocols_it_plans_those_that_a_run_here_has(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(*more: str) -> set[str]:
        found = run("plan", "--model", "random", "--json", *more)
        assert found.code == 0, found
        return {one["plan"]["protocol"] for one in json.loads(found.out)["cells"]}

    monkeypatch.setenv("CHEESEBENCH_PROTOCOLS", f"dnms{os.pathsep}t_maze")
    assert planned() == {"dnms", "t_maze"}
    ini = here / "pytest.ini"
    ini.write_text(
        "[pytest]\ncheese_protocols = little.protocol.yaml", encoding="utf-8"
    )
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert planned() == {"little"}, "files are relative to the ini file"
    assert planned("--protocols", "t_maze") == {"t_maze"}
    ini.unlink()
    text = "[tool.pytest.ini_options]\ncheese_protocols = ['t_maze', 'little.protocol.yaml']\n"
    (here / "pyproject.toml").write_text(text, encoding="utf-8")
    assert planned() == {"t_maze", "little"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "cheese_protocol = t_maze",
            "pytest.ini:2: There is no setting 'cheese_protocol'. Did you mean 'cheese_protocols'?",
        ),
        (
            "cheese_subjects = 4",
            "pytest.ini:2: There is no setting 'cheese_subjects'. --subjects is an option: write it into addopts, or "
            "into a profile.",
        ),
        (
            "cheese_protocols = t_mase",
            "pytest.ini:2: cheese_protocols: There is no protocol 't_mase'. Did you mean 't_maze'?",
        ),
        ("unexpected", "pytest.ini:2: "),
    ],
)
@pytest.mark.parametrize("command", ["plan --model random", "people"])
def test_a_mistake_in_the_ini_file_is_named_with_its_place(
    run: Run, here: Path, command: str, line: str, said: str
) -> None:
    (here / "pytest.ini").write_text(f"[pytest]\n{line}\n", encoding="utf-8")
    found = run(*command.split())
    assert found.code == 2
    assert said in found.err


def test_a_setting_of_another_plugin_is_none_of_ours(run: Run, here: Path) -> None:
    (here / "pytest.ini").write_text(
        "[pytest]\ncheese_shop = 1\nprotocols = http\n", encoding="utf-8"
    )
    given = ("plan", "--model", "random", "--protocols", "little.protocol.yaml")
    assert run(*given).code == 0


def test_it_says_how_many_subjects_a_model_as_good_as_the_animals_needs(
    run: Run, here: Path
) -> None:
    text = (here / "little.protocol.yaml").read_text(encoding="utf-8")
    given = ("plan", "--model", "random", "--subjects", "3", "--protocols")
    for sd, margin, said in (
        (
            0.05,
            0.2,
            r"passes in 4 of 5 runs with about this many subjects: little \d+\.",
        ),
        (0.05, 0.01, r"No number of subjects .* PASS in little: .* too uncertain"),
    ):
        animals = f"{{measure: success, value: 0.7, sd: {sd}, n_animals: 8, status: x}}"
        path = here / "own.protocol.yaml"
        head = text.partition("reference:")[0].partition("margin:")[0]
        path.write_text(
            f"{head}\nmargin: {margin}\nreference: [{animals}]\n", encoding="utf-8"
        )
        found = run(*given, path)
        assert re.search(said, " ".join(found.out.split())), found


def test_no_name_of_a_protocol_is_broken(run: Run) -> None:
    given = ("plan", "--model", "random", "--protocols", "morris_water_maze")
    for design, columns in (("sequential", 9), ("cohort", 6)):
        text = run(*given, "--design", design).out
        row = next(one for one in text.splitlines() if "morris" in one)
        assert len(re.split("  +", row)) == columns, text
        assert row.startswith("morris_water_maze ")


def test_profiles_that_are_too_deep_to_read_are_one_line(run: Run, here: Path) -> None:
    deep = f"[tool.cheesebench.profiles.deep]\nview = {'[' * 100_000}{']' * 100_000}"
    (here / "pyproject.toml").write_text(deep, encoding="utf-8")
    found = run(
        "plan",
        "--model",
        "random",
        "--protocols",
        "little.protocol.yaml",
        "--profile",
        "deep",
    )
    assert found.code == 2
    assert "pyproject.toml cannot be read: " in found.err
    assert found.err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "history"),
    [
        ((), "3-7"),
        (("--history", "2"), 2),
        (("--history", "2-4"), "2-4"),
        (("--design", "paper"), 5),
        (("--design", "flat-2"), 5),
        (("--design", "paper", "--history", "3-7"), "3-7"),
        (("--design", "paper", "--agent-option", "history=1"), 1),
    ],
)
def test_the_paper_s_designs_show_exactly_five_pairs(
    run: Run, given: tuple[str, ...], history: int | str
) -> None:
    found = run(
        "plan",
        "--model",
        "openai/some",
        "--protocols",
        "little.protocol.yaml",
        "--json",
        *given,
    )
    assert {
        cell["plan"]["settings"]["history"] for cell in json.loads(found.out)["cells"]
    } == {history}


def test_a_history_that_is_none_is_refused(run: Run) -> None:
    found = run(
        "plan",
        "--model",
        "openai/some",
        "--protocols",
        "little.protocol.yaml",
        "--history",
        "7-3",
    )
    assert found.code == 2
    assert "history=7-3: expected a value such as '3-7'" in " ".join(found.err.split())


def test_models_of_one_s_own_are_known(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "models.yaml").write_text(
        "models: {mine: {backend: openai, id: some}}", encoding="utf-8"
    )
    options = (
        "plan",
        "--model",
        "mine",
        "--protocols",
        "little.protocol.yaml",
        "--json",
    )
    assert run(*options).code == 2
    given = json.loads(run(*options, "--models", "models.yaml").out)
    monkeypatch.setenv("CHEESEBENCH_MODELS", "models.yaml")
    assert json.loads(run(*options).out) == given


def test_mistakes(run: Run) -> None:
    for arguments, said in (
        (("--model", "randon"), "Did you mean 'random'?"),
        (("--model", "random", "--history", "1"), "applies only to language models"),
        (("--model", "random", "--design", "cohrt"), "Did you mean 'cohort'?"),
        (("--model", "random", "--icc", "2"), "not a number from 0 to 1"),
        (("--model", "random", "--view", "ascii_9d"), "There is no view"),
        (("--model", "random", "--protocols", "litle"), "litle"),
        ((), "--model"),
    ):
        found = run("plan", *arguments)
        assert (found.code, found.out) == (2, "")
        assert said in found.err


def test_a_baseline_of_a_dialogue_is_free(run: Run) -> None:
    found = run("plan", "--model", "random-walk", "--protocols", "cogeval_n7line")
    assert found.code == 0
    assert found.out.startswith("No calls are made, so the run is free.")


@pytest.mark.parametrize("command", [("plan", "--model", "random"), ("people",)])
def test_a_cell_with_more_trials_than_a_log_can_have(
    run: Run, here: Path, command: tuple[str, ...]
) -> None:
    found = run(
        *command,
        "--protocols",
        "little.protocol.yaml",
        "--subjects",
        MOST_TRIALS // 4 + 1,
    )
    assert (found.code, found.out) == (2, "")
    assert found.err.endswith(
        "2,500,001 subjects of 4 trials, more than a log can hold (10,000,000 trials of a cell, 100,000 of a subject). "
        "Give fewer --subjects, or shorten the schedule.\n"
    )
    assert not (here / "results").exists()


def test_what_a_run_takes_grows_with_the_icc_and_the_players_are_told_apart(
    run: Run,
) -> None:
    options = (
        "plan",
        "--model",
        "tabular-ql",
        "--protocols",
        "t_maze",
        "--design",
        "sequential",
        "--json",
    )
    (cell,), (other,) = (
        json.loads(run(*options, "--icc", icc).out)["cells"] for icc in (0.6, 0)
    )
    assert cell["ability"] == other["ability"]
    # Animals have .7975, a PASS begins at .703, and half of all choices are right
    # without memory.
    assert cell["ability"]["rodent"] == pytest.approx(0.595)
    assert cell["ability"]["bar"] == pytest.approx(0.406, abs=0.001)
    alike, free = cell["outlooks"], other["outlooks"]
    assert (
        alike["as the animals"]["subjects"][1] > free["as the animals"]["subjects"][1]
    )
    assert alike["random"]["fails"] == 1
    assert alike["95 % right"]["passes"] == 1


def test_a_budget_suffices_for_a_share_of_runs(run: Run) -> None:
    options = ("plan", "--model", "gpt-5.4-mini", "--protocols", "dnms", "--json")
    for budget, share in (
        (("--max-cost", "0.01"), 0),
        (("--max-tokens", "1000"), 0),
        (("--max-tokens", "1000000000", "--max-cost", "1000"), 1),
        (("--max-tokens", "1000000000", "--max-cost", "0.01"), 0),
    ):
        found = json.loads(run(*options, *budget).out)
        assert found["needs"]["as the animals"]["suffices"] == share


def test_a_protocol_without_a_reference_has_no_verdict_to_simulate(
    run: Run, here: Path
) -> None:
    little = (here / "little.protocol.yaml").read_text(encoding="utf-8")
    (here / "lone.protocol.yaml").write_text(
        re.sub("(?m)^(reference|margin|construct):.*\n", "", little), encoding="utf-8"
    )
    words = "plan --model random --protocols lone.protocol.yaml --design cohort"
    found = run(*words.split())
    assert "The protocols have no reference, so there is no verdict" in found.out, found


def test_a_budget_in_dollars_without_a_price_is_refused_as_in_a_run(run: Run) -> None:
    found = run("plan", "--model", "openai/tiny", "--max-cost", "20")
    assert found.code == 2
    assert "no price is known for 'openai/tiny'" in found.err
    assert "Give --max-tokens instead" in found.err


@pytest.mark.parametrize("acts", [True, False], ids=["acts", "never acts"])
def test_a_model_is_asked_its_first_questions(run: Run, acts: bool) -> None:
    said = "ACTIONS: FORWARD" if acts else "I do not know what to do here. " * 20
    facts = {
        "/props": {"total_slots": 2, "default_generation_settings": {"n_ctx": 1100}}
    }
    with FakeServer(said, facts=facts) as server:
        options = [
            "plan",
            "--model",
            "openai/x",
            "--base-url",
            server.base_url,
            "--protocols",
            "t_maze",
        ]
        options += ["--design", "smoke", "--results", "none"]
        found = json.loads(run(*options, "--ask", "--json").out)
        assert server.count == 6
        assert server.peak == 1
        text = " ".join(run(*options, "--ask").out.split())
        assumed = json.loads(run(*options, "--json").out)
        assert server.count == 12
    manner = found["cells"][0]["manner"]
    assert (manner["replies"], manner["acts"], manner["asked"]) == (
        6,
        float(acts),
        True,
    )
    # Five answers without an action, then one in each later trial, for two subjects
    # with two trials. A model that names one action at a time is called at every step.
    calls, guessed = (one["needs"]["random"]["calls"][0] for one in (found, assumed))
    assert calls > 4 * guessed if acts else calls == 12
    assert manner["actions"] == (1 if acts else None)
    assert ("none of its replies name an action" in text) != acts
    assert "With --ask" not in text
    assert ("exceed the context of openai/x, 1,100 tokens" in text) == acts
    assert "With --ask" in " ".join(run(*options).out.split())


def test_a_study_is_planned_setting_by_setting(run: Run) -> None:
    options = ("plan", "--model", "openai/x", "--protocols", "t_maze", "--json")
    found = json.loads(run(*options, "--study", "ablation-history").out)
    variants = [cell["plan"]["variant"] for cell in found["cells"]]
    assert len(variants) == len(set(variants)) == 4
    one = json.loads(run(*options, "--design", "smoke").out)
    calls = (plan["needs"] for plan in (found, one))
    many, few = (next(iter(needs.values()))["calls"][0] for needs in calls)
    assert many > 4 * few


def test_a_model_that_cannot_be_asked_is_one_line(run: Run) -> None:
    options = (
        "--model",
        "openai/x",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--protocols",
        "t_maze",
        "--ask",
    )
    found = run("plan", *options, "--results", "none")
    assert found.code != 0
    assert "The model 'openai/x' does not answer: connection" in found.err
    assert "Traceback" not in found.err


def test_a_verdict_about_a_measure_is_planned_with_random_lives(run: Run) -> None:
    """By novel_object's own preference a random walker explores both objects alike, so
    it is not at the worse end.
    """
    planned = run(
        "plan",
        "--model",
        "random",
        "--protocols",
        "novel_object",
        "--design",
        "cohort",
        "--subjects",
        "40",
    )
    (row,) = (
        line.split()
        for line in planned.out.splitlines()
        if line.startswith("novel_object")
    )
    assert 5 < int(row[2]) < 95, "FAIL, but not for certain"


PLANS = """
--model random --protocols little.protocol.yaml --subjects 4
--model random --protocols little.protocol.yaml --design sequential --seed 3
--model random --protocols little.protocol.yaml --subjects 4 --json
--model gpt-4.1 --protocols little.protocol.yaml --subjects 5 --design cohort
--model gpt-4.1 --protocols little.protocol.yaml --subjects 5 --max-cost 0.01
--model gpt-4.1 --model random --protocols little.protocol.yaml --subjects 5 --familywise
--model gpt-4.1 --protocols little.protocol.yaml --subjects 30 --icc 0.6 --max-tokens 1000
--model gpt-4.1 --protocols n7tree --subjects 2
--model gpt-4.1 --protocols little.protocol.yaml --subjects 5 --control cue-off
--model gpt-4.1 --protocols little.protocol.yaml --view ascii_3d --subjects 3 --history 4
--study ablation-history --model gpt-4.1 --protocols little.protocol.yaml --subjects 2
--model random --protocols little.protocol.yaml --icc 2
--model random --protocols little.protocol.yaml --seed -1
"""


def test_plans_are_compared_with_what_is_stored(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    shown = []
    for line in PLANS.split("\n")[1:-1]:
        found = run("plan", *line.split())
        shown.append(f"$ plan {line}\n{found.out}{found.err}[{found.code}]\n")
    check_stored("plans.txt", without_prose("\n".join(shown)))
