"""The settings of a run: given options, a profile, the manifest, a
study, and defaults.
"""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cheesebench.chat import Price
from cheesebench.errors import CheeseBenchError, OptionError, ProtocolError
from cheesebench.experiment.calling import Limits
from cheesebench.experiment.earlier import Earlier
from cheesebench.experiment.settings import (
    Given,
    OptionValues,
    Origin,
    Settings,
    as_list,
    check_prices,
    read_settings,
)
from cheesebench.options import BY_KEY, OPTIONS
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from tests.cli.conftest import MAZE


def settings(
    given: dict[str, Any], recorded: dict[str, Any] | None = None, **profile: Any
) -> Settings:
    options = Given({"model": ["random"], **given})
    options = options.filled_in(Origin.PROFILE, **profile)
    earlier = Earlier(recorded=recorded)
    return read_settings(options, installed_plugins(), Path.cwd(), earlier)


def test_every_option_has_one_value_and_one_default() -> None:
    names = [field.name for field in dataclasses.fields(OptionValues)]
    assert sorted(names) == sorted(BY_KEY)
    found = Given({}).resolve()
    for option in OPTIONS:
        expected = False if option.flag else option.default
        assert getattr(found, option.key) == expected


def test_what_is_typed_goes_before_a_profile_and_both_before_a_manifest() -> None:
    recorded = {"seed": 5, "seed_drawn": True, "subjects": 4, "edition": "rodent"}
    found = settings({"subjects": 4}, recorded, subjects=9, edition="rodent")
    assert found.requests["random"].subjects == 4
    assert (found.selection.edition, found.seed) == ("rodent", 5)
    assert found.seed_drawn
    assert found.selection.named_edition == "rodent"
    assert found.origins["subjects"] is Origin.GIVEN
    assert found.origins["results"] is Origin.DEFAULT
    assert found.origins_text == [
        "from the profile: --edition",
        "from the manifest: --seed",
    ]
    with pytest.raises(OptionError, match="made with --subjects 4, not 9"):
        settings({}, recorded, subjects=9)


def test_a_flag_of_the_run_that_is_resumed_holds_without_being_typed() -> None:
    """pytest gives False for a flag that is not there."""
    for flag in (False, None, True):
        found = settings({"familywise": flag}, {"familywise": True})
        assert found.familywise
    with pytest.raises(OptionError, match="made without --familywise"):
        settings({"familywise": True}, {"familywise": False})


def test_the_manifest_has_what_was_resolved() -> None:
    found = settings({"seed": 3, "control": ["blind"]})
    assert found.recorded.keys() == {
        *(option.key for option in OPTIONS if option.recorded),
        "seed_drawn",
    }
    assert found.recorded["view"] == ["ascii_2d"]
    assert found.recorded["design"] == "cohort"
    assert found.recorded["model"] == ["random"]
    assert (found.recorded["seed"], found.recorded["seed_drawn"]) == (3, False)
    again = settings({}, dict(found.recorded))
    assert again == dataclasses.replace(found, origins=again.origins, calls=again.calls)


def test_a_study_fills_in_what_nobody_gives() -> None:
    study = "ablation-history"
    model = {"model": ["openai/tiny"]}
    found = settings({**model, "study": study})
    assert found.design == "flat-15"
    assert found.origins["design"] is Origin.STUDY
    assert found.recorded["study"] == study
    assert settings({**model, "study": study, "subjects": 3}).design == "cohort"
    assert settings({**model, "study": study, "design": "smoke"}).design == "smoke"


def refusal(given: dict[str, Any], *more: Any, **profile: Any) -> str:
    with pytest.raises(CheeseBenchError) as caught:
        settings(given, *more, **profile)
    return str(caught.value)


TINY = {"model": ["openai/tiny"]}
KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
HERE = ["http://127.0.0.1:9"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subjects": 0}, "--subjects 0: a run needs at least one subject."),
        ({"seed": -1}, "--seed -1: the minimum is 0."),
        ({**TINY, "timeout": 0.0}, "--timeout 0: give a number above 0."),
        ({**TINY, "max_cost": float("inf")}, "--max-cost inf: give a finite number above 0."),
        ({**TINY, "base_url": [KEY]}, "--base-url contains a key, and would be recorded."),
        ({"model": []}, "--model is empty. Name a model or an agent. Agents: "),
        ({"model": [" , "]}, "--model is empty."),
        ({"model": [], "study": "ablation-history"}, "--study ablation-history has no models of its own: add --model NAME."),
        ({"study": "ablation-history"}, "The study 'ablation-history' varies history, but 'random' is not a language model"),
        ({"model": ["human"]}, "--model human: people are run by 'cheesebench people --protocols NAME'."),
        ({"model": ["randm"]}, "There is no model 'randm'. Did you mean 'random'?"),
        ({"prompt": "minimal"}, "--prompt applies only to language models, not to random. Remove it."),
        ({"temperature": [0.5]}, "--temperature applies only to language models, not to random."),
        ({**TINY, "temperature": ["none", 0.5]}, "--temperature none: give 'none' alone, without other temperatures."),
        ({**TINY, "agent_option": ["x"]}, "--agent-option x: expected NAME=VALUE"),
        ({**TINY, "backend_option": [" =1"]}, "--backend-option  =1: expected NAME=VALUE"),
        ({**TINY, "executor_option": ["a=1"]}, "--executor-option a: the executor 'local' has no such option. It has none."),
        ({"executor": "treads"}, "There is no executor 'treads'. Did you mean 'threads'?"),
        ({"resume": "a", "run_id": "b"}, "--resume and --run-id cannot be combined: a resumed run keeps its name. Remove one."),
        ({"run_id": "a/b"}, "--run-id 'a/b' cannot name a run."),
        ({"resume": "a/b"}, "--resume 'a/b' cannot name a run."),
        ({"retry_errors": True}, "--retry-errors is for a run that is resumed: a new run has no refused calls."),
        ({"shard": "1/2"}, "--shard needs --seed N, the same for all shards."),
        ({"view": ["topdown_2d"]}, "--view topdown_2d draws images, but the agent 'random' reads text."),
        ({"html": "nowhere/page.html"}, "--html nowhere/page.html cannot be written. Name a file in an existing directory"),
        ({"markdown": "."}, "--markdown . cannot be written."),
        ({**TINY, "max_cost": 1.0}, "--max-cost 1: no price is known for 'openai/tiny', so its cost cannot be limited."),
        ({"model": ["openai/a", "vllm/b"], "base_url": HERE}, "the models use different backends (openai, vllm), so one"),
        ({**TINY, "prompt": "no.txt"}, "--prompt no.txt cannot be read: No such file or directory. Name a text file."),
        ({**TINY, "prompt": "./bytes"}, "--prompt ./bytes cannot be read: it is not UTF-8 text."),
        ({**TINY, "prompt": "one.txt"}, "--prompt one.txt: a prompt must have more than one word and at most 65536 bytes."),
        ({**TINY, "prompt": "long.txt"}, "--prompt long.txt: a prompt must have more than one word"),
        ({"set": "2020.1"}, "There is no set '2020.1'."),
        ({"set": "2026.1", "edition": "paper"}, "their own editions: remove --edition, or --set 2026.1."),
        ({"set": "2026.1", "protocols": ["t_mase"]}, "no protocol of the set 2026.1 called 't_mase'. Did you mean 't_maze'?"),
        ({"against": "nobody"}, "nobody"),
        ({"control": ["unknown"]}, "unknown"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe bad")
    (tmp_path / "one.txt").write_text("word\n", encoding="utf-8")
    (tmp_path / "long.txt").write_text("word " * 13_108, encoding="utf-8")
    assert said in refusal(given)


def test_options_become_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text(" Be a rat.\n", encoding="utf-8")
    found = settings(
        {
            "model": ["openai/a,random", "openai/a"], "base_url": ["http://127.0.0.1:9/v1"], "prompt": "mine.txt", "top_p": 0.5,
            "reasoning_effort": "low", "agent_option": ["actions = 3"], "view": ["ascii_3d", "ascii_3d,ascii_2d"], "shard": "1/2",
            "seed": 4, "concurrency": 3, "timeout": 7.0, "trial_timeout": 70.0, "retries": 2, "max_tokens": 9, "max_minutes": 1.5,
            "html": "p.html", "markdown": "m.md", "film": True, "inconclusive": "fail", "exit_zero": True,
            "ahead": "never", "run_id": "mine", "processes": 2, "executor": "threads", "subjects": 3, "compare": "x",
            "protocols": ["t_maze"], "results": "out",
        }
    )  # fmt: skip
    assert found.models == ("openai/a", "random")
    assert list(found.language) == ["openai/a"]
    model = found.language["openai/a"]
    assert model.base_url == "http://127.0.0.1:9/v1"
    assert (model.settings["prompt"], model.settings["actions"]) == ("Be a rat.", 3)
    assert model.settings["served"] == {"top_p": 0.5, "reasoning_effort": "low"}
    assert found.views == ("ascii_3d", "ascii_2d")
    assert found.requests["random"].views == found.views
    assert found.requests["random"].language is None
    assert found.design == "cohort", (
        "a run that is compared has a fixed number of subjects"
    )
    assert {one.design.subjects for one in found.requests.values()} == {3}
    assert str(found.shard) == "1/2"
    assert (found.seed, found.seed_drawn, found.seed_text) == (4, False, "4 (typed)")
    assert (found.html, found.markdown) == (tmp_path / "p.html", tmp_path / "m.md")
    assert found.results == tmp_path / "out"
    assert (found.film, found.inconclusive_fails, found.exit_zero, found.ahead) == (
        True,
        True,
        True,
        False,
    )
    assert (found.run_id, found.resume, found.processes, found.executor) == (
        "mine",
        None,
        2,
        "threads",
    )
    assert (found.selection.names, found.selection.where) == (("t_maze",), "")
    calls = found.calls
    assert (calls.concurrency, calls.retry_errors) == (3, False)
    assert (calls.patience.request, calls.patience.trial, calls.patience.retries) == (
        7.0,
        70.0,
        2,
    )
    assert (calls.limits.cost, calls.limits.tokens, calls.limits.minutes) == (
        None,
        9,
        1.5,
    )


def test_what_nobody_gives_has_its_usual_value() -> None:
    found = settings({"model": ["openai/tiny", "random"]})
    assert [one.design.name for one in found.requests.values()] == [
        "sequential",
        "cohort",
    ]
    assert found.design == "sequential, cohort"
    assert found.recorded["design"] is None
    assert found.seed_drawn
    assert found.seed_text == f"{found.seed} (drawn)"
    assert (found.shard, found.html, found.inconclusive_fails, found.exit_zero) == (
        None,
        None,
        False,
        False,
    )
    assert (found.film, found.ahead, found.executor) == (False, True, "local")
    assert found.views == ("ascii_2d",)
    paper = settings({"model": ["openai/tiny"], "design": "paper"})
    assert paper.views == ("ascii_2d", "ascii_2d_fpv", "ascii_3d")
    own = paper.language["openai/tiny"].settings
    assert (own["patience"], own["interrupt"]) == (0, "never")


def test_seeds_say_where_they_are_from() -> None:
    found = settings({}, {"seed": 5, "seed_drawn": False})
    assert found.seed_text == "5 (from the manifest)"
    options = Given({"model": ["random"]}).filled_in(Origin.BASELINE, seed=6)
    found = read_settings(options, installed_plugins(), Path.cwd(), Earlier())
    assert (found.seed_text, found.seed_drawn) == ("6 (from the baseline)", False)
    assert found.origins_text == ["from the baseline: --seed"]


def test_protocols_are_where_they_are_named() -> None:
    def selection(given: dict[str, Any], **profile: Any) -> tuple[tuple[str, ...], str]:
        options = Given({"model": ["random"], **given}).filled_in(
            Origin.PROFILE, **profile
        )
        usual = ["dnms"], "tox.ini:3"
        found = read_settings(
            options, installed_plugins(), Path.cwd(), Earlier(), usual
        )
        return found.selection.names, found.selection.where

    assert selection({}) == (("dnms",), "tox.ini:3")
    assert selection({"protocols": ["t_maze"]}) == (("t_maze",), "")
    named = selection({"profile": "ci"}, protocols=["t_maze"])
    assert named == (("t_maze",), "profile ci: protocols")


def test_a_set_has_its_own_protocols_and_views() -> None:
    found = settings({"set": "2026.1", "protocols": ["t_maze,own.protocol.yaml"]})
    maze, own = found.selection.names
    assert maze.endswith("t_maze.protocol.yaml")
    assert Path(maze).is_file()
    assert own == "own.protocol.yaml"
    assert len(settings({"set": "2026.1"}).selection.names) == 9
    assert "from the set: --view" in " ".join(found.origins_text)


def test_a_run_of_a_stranger_decides_nothing_that_matters() -> None:
    strange = Earlier(
        recorded={
            "model": ["openai/x"],
            "prompt": "minimal",
            "base_url": ["http://127.0.0.1:9"],
        },
        made_here=False,
    )
    options = Given({"resume": "r1"}, {"base_url": "--cheese-base-url"})

    def read(**values: Any) -> Settings:
        given = dataclasses.replace(options, values={**options.values, **values})
        return read_settings(given, installed_plugins(), Path.cwd(), strange)

    with pytest.raises(
        OptionError,
        match=r"--resume r1: that run was not made by you on this machine, so --model",
    ):
        read()
    with pytest.raises(OptionError, match=r"so --cheese-base-url"):
        read(model=["openai/x"])
    assert read(model=["openai/x"], base_url=["http://127.0.0.1:9"]).models == (
        "openai/x",
    )
    hostile = {
        "prompt": ["../secret.txt"],
        "study": ["../secret.study.yaml", "Makefile"],
        "control": ["yoked:../run", "yoked:run.sqlite"],
    }
    for key, named in hostile.items():
        for name in named:
            recorded = {**strange.recorded, key: name}  # type: ignore[dict-item]
            strange = dataclasses.replace(strange, recorded=recorded)
            with pytest.raises(OptionError, match=rf"so --{key} {name} is not used"):
                read(model=["openai/x"], base_url=["http://127.0.0.1:9"])
        strange = dataclasses.replace(
            strange,
            recorded={**strange.recorded, key: None},  # type: ignore[dict-item]
        )


@pytest.mark.parametrize(
    ("given", "recorded", "said"),
    [
        ({"view": ["ascii_2d"]}, {"view": ["ascii_2d", "ascii_3d"]}, ""),
        (
            {"view": ["ascii_2d_fpv"]},
            {"view": ["ascii_2d", "ascii_3d"]},
            "with --view ascii_2d,ascii_3d, not ascii_2d_fpv.",
        ),
        (
            {"edition": "paper"},
            {"edition": None},
            "was made without --edition. Remove --edition, or start a new run.",
        ),
        (
            {"model": ["tabular-ql"]},
            {"model": ["random"]},
            "not tabular-ql. Give --model random, or start a new run.",
        ),
        ({"seed": 4}, {"seed": 4}, ""),
    ],
)
def test_a_resumed_run_keeps_its_settings(
    given: dict[str, Any], recorded: dict[str, Any], said: str
) -> None:
    options = Given(
        {"model": ["random"], **given}, recorded=recorded, origin="--resume r1"
    )
    if not said:
        options.resolve()
        return
    with pytest.raises(OptionError) as caught:
        options.resolve()
    assert str(caught.value).startswith("--resume r1: that run was made ")
    assert said in str(caught.value)


def test_a_known_price_allows_a_budget_in_dollars() -> None:
    [model] = settings({**TINY}).language.values()
    priced = dataclasses.replace(
        model, entry=dataclasses.replace(model.entry, price=Price(prompt=1, completion=1, on=date(2026, 1, 1)))
    )  # fmt: skip
    check_prices(Limits(cost=1.0), [priced])
    check_prices(Limits(tokens=1), [model])


def test_temperatures_are_given_once_and_none_is_left_out() -> None:
    found = Given({"temperature": [0.5, 1.0, 0.5]}).resolve()
    assert found.temperatures == (0.5, 1.0)
    assert Given({"temperature": ["none"]}).resolve().temperatures == ()
    assert as_list(None) == []
    assert as_list((1, 2)) == [1, 2]
    assert as_list("ab") == ["ab"]


def test_cells_are_planned_once_in_the_order_of_a_run(tmp_path: Path) -> None:
    for name, text in {
        "a": MAZE, "b": MAZE, "c": MAZE.replace("little", "other"), "d": MAZE.replace("enter: goal", "entr: goal"),
    }.items():  # fmt: skip
        (tmp_path / f"{name}.protocol.yaml").write_text(text, encoding="utf-8")
    files = [str(tmp_path / f"{name}.protocol.yaml") for name in "abc"]
    found = settings({"model": ["random", "tabular-ql"], "protocols": files})
    plans = [(plan.protocol, plan.model) for plan, _ in found.planned(Catalogue([]))]
    assert plans == [
        ("little", "random"), ("little", "tabular-ql"), ("other", "random"), ("other", "tabular-ql"),
    ]  # fmt: skip
    broken = settings({"protocols": [str(tmp_path)]})
    with pytest.raises(ProtocolError, match=r"d.protocol.yaml"):
        list(broken.planned(Catalogue([])))
