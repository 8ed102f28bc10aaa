"""``cheesebench plan``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.experiment.log_types import MOST_TRIALS
from cheesebench.planning.profiles import shipped_profiles
from cheesebench.plugin_manager import installed_plugins

Run = Callable[..., Any]


def test_an_agent_that_acts_by_itself_is_free_and_has_power(run: Run) -> None:
    found = run("plan", "--model", "random", "--protocols", "little.protocol.yaml")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("No calls are made, so it is free.")
    assert "little" in found.out
    assert "its subjects are assumed to be alike" in " ".join(found.out.split())
    assert all(len(line) <= 80 for line in found.out.splitlines())


def test_profiles_that_are_too_deep_to_read_are_one_line(run: Run, here: Path) -> None:
    deep = f"[tool.cheesebench.profiles.deep]\nview = {'[' * 100_000}{']' * 100_000}"
    (here / "pyproject.toml").write_text(deep, encoding="utf-8")
    found = run("plan", "--model", "random", "--protocols", "little.protocol.yaml", "--profile", "deep")
    assert found.code == 2
    assert "pyproject.toml cannot be read: " in found.err
    assert found.err.count("\n") == 1


def test_a_language_model_has_bounds(run: Run) -> None:
    options = ("plan", "--model", "openai/some", "--protocols", "little.protocol.yaml", "--subjects", "3")
    found = run(*options)
    assert found.code == 0
    assert "at most 108 calls" in found.out, "3 subjects x 4 trials x 9 steps"
    assert "no earlier run" in " ".join(found.out.split())
    assert all(len(line) <= 80 for line in found.out.splitlines())
    told = json.loads(run(*options, "--json").out)
    assert told["most"]["calls"] == 108
    assert told["estimate"] is None
    short = json.loads(run(*options, "--json", "--history", "0").out)
    assert short["most"]["prompt"] < told["most"]["prompt"]


def test_controls_are_cells_of_their_own(run: Run) -> None:
    options = ("plan", "--model", "openai/some", "--protocols", "little.protocol.yaml", "--subjects", "3", "--json")
    both = json.loads(run(*options, "--control", "blind,amnesia=trial", "--control", "hide=a_zone").out)
    # 'little' has no such zone to hide.
    assert [cell["plan"]["variant"] for cell in both["cells"]] == ["", "control=blind", "control=amnesia=trial"]
    assert both["most"]["calls"] == 3 * 108
    wrong = run(*options, "--control", "blnd")
    assert wrong.code != 0
    assert "blnd" in wrong.err


def test_several_servers_are_listed_and_have_a_limit_each(run: Run) -> None:
    options = ("plan", "--model", "openai/some", "--protocols", "little.protocol.yaml", "--subjects", "9")
    servers = ("--concurrency", "2", "--base-url", "http://a:8000/v1,https://b/v1")
    found = run(*options, *servers)
    said = " ".join(found.out.split())
    assert "At most 4 calls in flight: one per running subject." in said
    assert "The subjects are dealt out evenly to http://a:8000, https://b." in said
    assert json.loads(run(*options, *servers, "--json").out)["servers"] == ["http://a:8000", "https://b"]
    repeated = ("--concurrency", "8", "--base-url", "http://a:8000/v1", "--base-url", "https://b/v1")
    assert "(the limit is 8 at each of 2 servers)" in " ".join(run(*options, *repeated).out.split())


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
def test_the_paper_s_designs_show_exactly_five_pairs(run: Run, given: tuple[str, ...], history: int | str) -> None:
    found = run("plan", "--model", "openai/some", "--protocols", "little.protocol.yaml", "--json", *given)
    assert {cell["plan"]["settings"]["history"] for cell in json.loads(found.out)["cells"]} == {history}


def test_a_history_that_is_none_is_refused(run: Run) -> None:
    found = run("plan", "--model", "openai/some", "--protocols", "little.protocol.yaml", "--history", "7-3")
    assert found.code == 2
    assert "history=7-3: expected a value such as '3-7'" in " ".join(found.err.split())


def test_models_of_one_s_own_are_known(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "models.yaml").write_text("models: {mine: {backend: openai, id: some}}", encoding="utf-8")
    options = ("plan", "--model", "mine", "--protocols", "little.protocol.yaml", "--json")
    assert run(*options).code == 2
    given = json.loads(run(*options, "--models", "models.yaml").out)
    monkeypatch.setenv("CHEESEBENCH_MODELS", "models.yaml")
    assert json.loads(run(*options).out) == given


def test_power_depends_on_how_alike_trials_are(run: Run) -> None:
    options = ("plan", "--model", "tabular-ql", "--protocols", "little.protocol.yaml", "--json", "--subjects", "60")
    alike, free = (json.loads(run(*options, "--icc", icc).out)["cells"][0]["outlook"] for icc in (0.9, 0))
    assert alike["at_rodent"]["PASS"] < free["at_rodent"]["PASS"]
    assert (alike["icc"], free["icc"]) == (0.9, 0)


def test_a_design_without_claims_has_no_power(run: Run) -> None:
    assert (
        "makes no claim"
        in run("plan", "--model", "random", "--protocols", "little.protocol.yaml", "--design", "smoke").out
    )


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


def test_a_plan_gives_a_range_first_and_the_bound_last(run: Run) -> None:
    found = run("plan", "--model", "gpt-5.4-mini", "--protocols", "dnms", "--design", "cohort", "--subjects", "10")
    assert found.code == 0
    text = " ".join(found.out.split())
    places = [
        text.index("as planned "),
        text.index("Between "),
        text.rindex("with the sequential design "),
        text.index("No estimate"),
        text.index("At most 10 calls in flight: one per running subject (the limit is 256)."),
        text.index("Simulated with the rule of the verdict"),
        text.index("The bound: at most "),
    ]
    assert places == sorted(places)
    assert all(len(line) <= 80 for line in found.out.splitlines())


def test_what_respondents_took_is_multiplied_out(run: Run) -> None:
    options = ("plan", "--model", "gpt-5.4-mini", "--protocols", "dnms", "--design", "cohort", "--json")
    profiles = shipped_profiles().by_protocol["dnms"]
    told = json.loads(run(*options, "--subjects", "10").out)
    twice = json.loads(run(*options, "--subjects", "20").out)
    price = installed_plugins().models["gpt-5.4-mini"].price
    assert price is not None
    assert {one["respondent"] for one in told["as_planned"]} == set(profiles)
    for one, more, sequential in zip(told["as_planned"], twice["as_planned"], told["sequential"], strict=True):
        profile = profiles[one["respondent"]]
        assert one["total"]["calls"] == profile.looks[10].calls
        assert one["dollars"] == pytest.approx(profile.looks[10].dollars(price))
        assert more["total"]["calls"] == pytest.approx(2 * one["total"]["calls"], rel=0.2)
        assert sequential["total"]["calls"] == profile.looks[profile.stopped].calls
        assert sequential["verdicts"] == {"dnms": profile.verdict}
        assert one["total"]["calls"] <= told["most"]["calls"]


def test_a_plan_says_whether_a_budget_suffices(run: Run) -> None:
    options = ("plan", "--model", "gpt-5.4-mini", "--protocols", "t_maze", "--max-cost")
    budgets = {
        cost: json.loads(run(*options, cost, "--json").out)["budget"] for cost in ("0.01", "0.5", "20", "100000")
    }
    said = {cost: budget["text"] for cost, budget in budgets.items()}
    assert "--max-cost 0.01 suffices for none of these respondents; $" in said["0.01"]
    assert "--max-cost 0.5 suffices for hopeless of these respondents; $" in said["0.5"]
    assert "--max-cost 20 suffices for all of these respondents, but not for the bound." in said["20"]
    assert "--max-cost 100000 suffices for any model: the bound is $" in said["100000"]
    # What would do is rounded up, so that it does.
    [(enough,)] = [re.findall(r"; (\$[0-9.]+) would do", said["0.01"])]
    assert "suffices for all of these" in json.loads(run(*options, enough.strip("$"), "--json").out)["budget"]["text"]
    for cost, budget in budgets.items():
        assert budget["dollars"] == float(cost)
        assert budget["any_model"] == (cost == "100000")
        assert sum(budget["respondents"].values()) == {"0.01": 0, "0.5": 1}.get(cost, 4)
    assert json.loads(run(*options[:-1], "--json").out)["budget"] is None
    # The extremes are named by what was measured, not by how good they are.
    told = " ".join(run(*options, "20").out.split())
    assert said["20"] in told
    assert "the fewest for 'hopeless', the most for 'ratlike'" in told


def test_a_protocol_that_was_not_measured_has_no_respondents(run: Run) -> None:
    told = json.loads(run("plan", "--model", "gpt-5.4-mini", "--protocols", "little.protocol.yaml", "--json").out)
    assert (told["as_planned"], told["sequential"]) == ([], [])


def test_a_dialogue_asks_what_is_known_beforehand(run: Run, below_a_loop: Run) -> None:
    options = ("plan", "--model", "gpt-5.4-mini", "--protocols", "cogeval_n7line", "--generations", "2")
    found = run(*options)
    assert found.code == 0
    assert "every question is asked once in each generation" in " ".join(found.out.split())
    assert "power is not simulated" in " ".join(found.out.split())
    forecast = json.loads(run(*options, "--json").out)
    assert {cell["plan"]["subjects"] for cell in forecast["cells"]} == {2}
    assert all(cell["most"]["calls"] >= 2 * cell["plan"]["trials"] for cell in forecast["cells"])
    assert forecast["most"]["calls"] == sum(cell["most"]["calls"] for cell in forecast["cells"])
    assert forecast["most"]["dollars"] > 0
    assert below_a_loop(*options) == found


def test_a_baseline_of_a_dialogue_is_free(run: Run) -> None:
    found = run("plan", "--model", "random-walk", "--protocols", "cogeval_n7line")
    assert found.code == 0
    assert found.out.startswith("No calls are made, so it is free.")


@pytest.mark.parametrize("command", [("plan", "--model", "random"), ("people",)])
def test_a_cell_with_more_trials_than_a_log_can_have(run: Run, here: Path, command: tuple[str, ...]) -> None:
    found = run(*command, "--protocols", "little.protocol.yaml", "--subjects", MOST_TRIALS // 4 + 1)
    assert (found.code, found.out) == (2, "")
    assert found.err.endswith(
        "2,500,001 subjects of 4 trials are more than a cell can have (10,000,000 trials). Give fewer --subjects.\n"
    )
    assert not (here / "results").exists()


def test_power_of_very_many_subjects_is_not_simulated(run: Run) -> None:
    found = run("plan", "--model", "random", "--protocols", "little.protocol.yaml", "--subjects", MOST_TRIALS // 4)
    assert found.code == 0, found.err
    assert "With more than 5,000 subjects, power is not simulated." in found.out
