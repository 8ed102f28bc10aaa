"""Plans of cells: settings of models, designs, studies, and which protocols are run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cheesebench.chat import ModelEntry
from cheesebench.errors import (
    CheeseBenchError,
    OptionError,
    PluginError,
    UnknownNameError,
)
from cheesebench.experiment import cells
from cheesebench.experiment.cells import (
    REASONING_TOKENS,
    TURN_ENDS,
    Broken,
    Selection,
    check_study,
    check_views,
    default_protocols,
    familywise,
    find_design,
    find_study,
    language_model,
    named_protocols,
    one_address,
    plan_cell,
    replayed_models,
    selected_protocols,
    usual_design,
    variant_of,
    varied,
    with_fixed_number,
)
from cheesebench.family import Design, LanguageModel, Study
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.protocol.specification import Dose
from cheesebench.records import GOAL, CellPlan, ReferenceValue, Variant
from tests.cli.conftest import MAZE


def model(entry: Mapping[str, Any] | None = None, **given: Any) -> LanguageModel:
    named: dict[str, Any] = {"name": "m", "backend": "openai", "id": "m-1"}
    return language_model(
        installed_plugins(), ModelEntry(**(named | dict(entry or {}))), **given
    )


def test_a_model_has_the_settings_of_its_agent_and_its_own() -> None:
    found = model(
        {"served": {"top_k": 3}, "trained_on": ("t_maze",)}, served={"min_p": 0.1}
    )
    own = {
        "backend": "openai", "id": "m-1", "served": {"top_k": 3, "min_p": 0.1}, "dropped": [], "stop": [],
        "reasoning": False, "trained_on": ["t_maze"],
    }  # fmt: skip
    assert own.items() <= found.settings.items()
    assert found.agent.settings.keys() <= found.settings.keys()
    assert found.settings["memory"] == found.agent.remembers(found.settings)
    assert "trained_on" not in model().settings
    assert (found.base_url, found.options) == (None, {})


def test_settings_are_read_as_their_defaults_are() -> None:
    found = model(
        settings={
            "history": "3",
            "temperature": "0.5",
            "prompt": "minimal",
            "actions": 2,
        }
    )
    kept = {name: found.settings[name] for name in ("temperature", "prompt", "actions")}
    assert kept == {"temperature": 0.5, "prompt": "minimal", "actions": 2}
    assert "3" in str(found.settings["history"])
    with pytest.raises(OptionError, match=r"^actions=x: expected a value such as "):
        model(settings={"actions": "x"})
    with pytest.raises(
        OptionError,
        match=r"The agent 'llm' has no setting 'promt'. Did you mean 'prompt'\?",
    ):
        model(settings={"promt": "x"})
    with pytest.raises(OptionError, match=r"has no setting 'zzz'. Known: "):
        model(settings={"zzz": "x"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("YES", True),
        ("1", True),
        ("false", False),
        ("no", False),
        ("0", False),
    ],
)
def test_flags_are_words(text: str, value: bool) -> None:
    agent = dataclasses.replace(
        installed_plugins().model_agent("llm"), settings={"flag": True}, readers={}
    )
    assert cells._typed(agent, "flag", text) is value
    with pytest.raises(OptionError, match=r"flag=maybe: expected a value such as True"):
        cells._typed(agent, "flag", "maybe")


@pytest.mark.parametrize(
    ("entry", "given", "tokens"),
    [
        ({}, {}, 256),
        ({"max_tokens": 99}, {}, 99),
        ({"reasoning": True}, {}, REASONING_TOKENS),
        ({"reasoning": True, "max_tokens": 99}, {}, 99),
        ({"reasoning": True}, {"max_tokens": "77"}, 77),
        ({"drops": ("max_tokens",)}, {}, None),
    ],
)
def test_the_limit_of_a_reply(
    entry: dict[str, Any], given: dict[str, Any], tokens: int | None
) -> None:
    assert model(entry, settings=given).settings["max_tokens"] == tokens


def test_what_a_model_does_not_support_is_not_sent() -> None:
    found = model({"drops": ("temperature", "seed", "system")})
    assert found.settings["dropped"] == ["temperature", "seed", "system"]
    assert found.settings["temperature"] is None
    with pytest.raises(
        OptionError,
        match=r"--temperature 0.5: the model 'm' does not support it. Remove",
    ):
        model({"drops": ("temperature",)}, settings={"temperature": "0.5"})
    for drops in ((), ("temperature",)):
        none = model({"drops": drops}, settings={"temperature": "none"})
        assert none.settings["dropped"] == ["temperature"]
        assert none.settings["temperature"] is None


def test_turn_ends_are_sent_to_one_s_own_server_alone() -> None:
    served = {"backend": "vllm"}
    assert model(served).settings["stop"] == list(TURN_ENDS)
    assert model(served | {"drops": ("stop",)}).settings["stop"] == []
    assert model().settings["stop"] == []


def test_addresses_and_options_of_a_backend() -> None:
    found = model({"options": {"base_url": "http://a/v1"}})
    assert found.base_url == "http://a/v1"
    assert (
        model({"options": {"base_url": "http://a/v1"}}, base_url="http://b").base_url
        == "http://b"
    )
    with pytest.raises(
        OptionError,
        match=r"The backend 'openai' has no option 'base_ulr'. Did you mean 'base_url'\?",
    ):
        model(options={"base_ulr": "x"})
    assert one_address(None) is None
    assert one_address(" , ") is None
    assert one_address(["http://a "]) == one_address(" http://a,") == "http://a"
    with pytest.raises(
        OptionError, match=r"There are 2 base URLs, but a model can have only one."
    ):
        one_address(["http://a", "http://b"])


def test_a_variation_changes_the_settings_that_follow_from_it() -> None:
    base = model()
    found = varied(base, {"history": "1"})
    assert found.keys() == base.settings.keys()
    assert found["history"] != base.settings["history"]
    other = {key for key in found if found[key] != base.settings[key]}
    assert other <= {"history", "memory"}
    fixed = model({"drops": ("temperature",)})
    with pytest.raises(
        OptionError,
        match=r"The model 'm' does not support a temperature, so it cannot be",
    ):
        varied(fixed, {"temperature": 0.1})
    assert varied(fixed, {"actions": 2})["actions"] == 2
    assert varied(base, {"max_tokens": 9})["max_tokens"] == 9


def test_pictures_are_for_models_that_read_them() -> None:
    plugins = installed_plugins()
    views = [plugins.view("ascii_2d"), plugins.view("topdown_2d")]
    check_views("m", None, views[:1])
    check_views("m", model({"images": True}), views)
    for name, one, said in (
        ("random", None, "the agent 'random' reads text"),
        ("m", model(), "the model 'm' is not registered as a vision model"),
    ):
        with pytest.raises(OptionError) as caught:
            check_views(name, one, views)
        assert str(caught.value) == (
            f"--view topdown_2d draws images, but {said}. Choose a text view, such as ascii_2d."
        )
    able = model({"images": True})
    blind = dataclasses.replace(able.backend.capabilities, images=False)
    mute = dataclasses.replace(
        able, backend=dataclasses.replace(able.backend, capabilities=blind)
    )
    with pytest.raises(
        OptionError, match=r"but the backend 'openai' cannot send images"
    ):
        check_views("m", mute, views)


def test_designs_are_what_the_reference_says() -> None:
    assert {
        name: (one.subjects, one.trials, one.claims, one.sequential, one.views, dict(one.settings))
        for name, one in {**cells.DESIGNS, "flat-7": find_design("flat-7")}.items()
    } == {
        "smoke": (2, 2, False, False, ("ascii_2d",), {}),
        "paper": (
            1, None, True, False, ("ascii_2d", "ascii_2d_fpv", "ascii_3d"),
            {"history": 5, "patience": 0, "interrupt": "never"},
        ),
        "cohort": (20, None, True, False, ("ascii_2d",), {}),
        "leaderboard": (40, None, True, False, ("ascii_2d",), {}),
        "sequential": (120, None, True, True, ("ascii_2d",), {}),
        "flat-7": (1, 7, False, False, ("ascii_2d",), {"history": 5, "patience": 0, "interrupt": "never"}),
    }  # fmt: skip
    assert [usual_design(*one) for one in ((True, False), (True, True), (False, False))] == [
        "sequential", "cohort", "cohort",
    ]  # fmt: skip
    for wrong in ("flat-0", "flat-1234567", "flat-x", "flat-7x"):
        with pytest.raises(UnknownNameError, match=r"flat-15"):
            find_design(wrong)
    assert find_design("smoke", 1).subjects == 1


def test_without_a_verdict_the_number_of_subjects_is_fixed() -> None:
    sequential = find_design("sequential")
    assert with_fixed_number(sequential) == find_design("cohort")
    assert with_fixed_number(dataclasses.replace(sequential, subjects=7)).subjects == 7
    assert with_fixed_number(find_design("smoke")) is find_design("smoke")


def plan(
    stranger: ModuleType, design: Design, trials: int = 6, **changes: Any
) -> CellPlan:
    specification = dataclasses.replace(stranger.corridor(trials=trials), **changes)
    return plan_cell(specification, "walker", "ascii_2d", design)


def test_a_plan_has_what_the_design_cuts(stranger: ModuleType) -> None:
    sequential = find_design("sequential")
    assert plan(stranger, sequential).sequential
    assert plan(stranger, sequential).subjects == 120
    alone = plan(stranger, sequential, references=())
    assert (alone.sequential, alone.subjects, alone.design) == (False, 20, "cohort")
    assert alone.reference is None
    assert plan(stranger, find_design("flat-4")).trials == 4
    assert plan(stranger, find_design("flat-9")).trials == 6
    assert plan(stranger, find_design("cohort")).blocks == (("training", 1, 6, True),)


def test_a_reference_says_how_much_training_there_was(stranger: ModuleType) -> None:
    specification = stranger.corridor()
    without = cells.reference_value(specification)
    assert without is not None
    assert without.training == ""
    told = tuple(
        dataclasses.replace(one, dose=Dose(3, 4)) for one in specification.references
    )
    found = cells.reference_value(dataclasses.replace(specification, references=told))
    assert found is not None
    here = specification.dose or "varies"
    assert found.training == f"training: animals 3 + 4 trials, here {here}"


def test_cells_of_a_family_need_more_evidence() -> None:
    base = CellPlan(
        model="m", protocol="p", view="v", title="", dimension="", species="", sha256="0", design="cohort",
        subjects=10, trials=20, memory="life", reference=ReferenceValue(value=0.5),
    )  # fmt: skip
    plans = [
        base, dataclasses.replace(base, protocol="q"), dataclasses.replace(base, model="n"),
        dataclasses.replace(base, protocol="r", claims=False), dataclasses.replace(base, protocol="s", reference=None),
        dataclasses.replace(base, view="w", claims=False), dataclasses.replace(base, variant=Variant((("a", "1"),))),
    ]  # fmt: skip
    assert [one.goal / GOAL for one in familywise(plans)] == [2, 2, 1, 2, 2, 1, 1]


def test_recorded_models_have_no_server(stranger: ModuleType) -> None:
    own = model(settings={"actions": 2})
    asked = dataclasses.replace(
        plan(stranger, find_design("smoke")),
        model="m",
        agent="llm",
        settings=own.settings,
    )
    found = replayed_models(
        installed_plugins(), [asked, plan(stranger, find_design("smoke"))]
    )
    assert list(found) == ["m"]
    again = found["m"]
    assert (again.entry.id, again.backend.name, again.settings) == (
        "m-1",
        "replay",
        own.settings,
    )
    assert again.backend.probe is False
    context: Any = SimpleNamespace(entry=again.entry)
    with pytest.raises(PluginError, match=r"A replay has no server for 'm'."):
        again.backend.connect(context)


STUDY = "version: 1\nstudy: mine\ntitle: Mine\n"


def test_a_study_is_found_by_name_or_file(tmp_path: Path) -> None:
    shipped = cells.shipped_studies()
    assert find_study("ablation-history", tmp_path) == find_study(
        str(shipped["ablation-history"]), tmp_path
    )
    text = f"{STUDY}about: x\ntrials: 3\nviews: [a, b]\nmodels: [m]\naxes: {{history: [1, 2], prompt: [cot]}}\n"
    (tmp_path / "mine.study.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "plain").write_text(text, encoding="utf-8")
    found = find_study("mine.study.yaml", tmp_path)
    assert found == find_study("plain", tmp_path) == Study(
        name="mine", title="Mine", about="x", views=("a", "b"), models=("m",), trials=3,
        axes={"history": (1, 2), "prompt": ("cot",)},
    )  # fmt: skip
    assert variant_of({"b": 1, "a": 0.5}) == Variant((("b", "1"), ("a", "0.5")))


@pytest.mark.parametrize(
    ("more", "varies"),
    [
        ("", False), ("views: [a]\nmodels: [m]\n", False), ("views: [a, b]\n", True), ("models: [m, n]\n", True),
        ("axes: {x: [1]}\n", True),
    ],
)  # fmt: skip
def test_a_study_varies_something(tmp_path: Path, more: str, varies: bool) -> None:
    (tmp_path / "mine").write_text(STUDY + more, encoding="utf-8")
    if varies:
        assert find_study("mine", tmp_path).trials == 15
        return
    with pytest.raises(
        OptionError, match=r"mine: the study varies nothing. Add axes, or several views"
    ):
        find_study("mine", tmp_path)


def test_a_study_needs_models_that_can_be_varied() -> None:
    study = Study(name="s", title="", axes={"history": (1, 2)})
    check_study(study, {"m": model()}, ("m",))
    with pytest.raises(OptionError) as caught:
        check_study(study, {}, ("random",))
    assert str(caught.value) == (
        "The study 's' varies history, but 'random' is not a language model, so it has no such settings."
    )
    check_study(dataclasses.replace(study, axes={}), {}, ("random",))
    with pytest.raises(OptionError, match=r"has no setting 'histry'"):
        check_study(
            dataclasses.replace(study, axes={"histry": (1,)}), {"m": model()}, ("m",)
        )


# -- which protocols are run


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "lab"
    folder.mkdir()
    for name, text in {
        "little": MAZE, "little.short": MAZE.replace("paradigm: little", "paradigm: little\nedition: short"),
        "torn": MAZE.replace("enter: goal", "entr: goal").replace("little", "torn"),
    }.items():  # fmt: skip
        (folder / f"{name}.protocol.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "own.protocol.yaml").write_text(
        MAZE.replace("little", "own"), encoding="utf-8"
    )
    (tmp_path / "own.short.protocol.yaml").write_text(
        MAZE.replace("paradigm: little", "paradigm: own\nedition: short"),
        encoding="utf-8",
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "known.protocol.yaml").write_text(
        MAZE.replace("little", "known"), encoding="utf-8"
    )
    return tmp_path


def names(found: list[Any]) -> list[str]:
    return [
        f"broken {one.path.name}" if isinstance(one, Broken) else one.name
        for one in found
    ]


def named(lab: Path, *given: str, edition: str | None = None) -> list[str]:
    return names(named_protocols(Catalogue([lab / "installed"]), lab, given, edition))


def test_protocols_are_named_by_file_folder_or_name(lab: Path) -> None:
    assert named(lab, "own.protocol.yaml, known,,lab") == [
        "own", "known", "little", "little@short", "broken torn.protocol.yaml",
    ]  # fmt: skip
    assert named(lab, "own") == ["own"]
    assert named(lab, "own@short") == ["own@short"]
    assert named(lab, "own", edition="short") == ["own@short"]
    assert named(lab, "lab", edition="short") == [
        "little@short",
        "broken torn.protocol.yaml",
    ]
    (lab / "a,b.protocol.yaml").write_text(MAZE, encoding="utf-8")
    assert named(lab, "a,b.protocol.yaml") == ["little"]
    found = named_protocols(Catalogue([]), lab, ["own.protocol.yaml"], None)
    assert str(found[0].path) == "own.protocol.yaml"


@pytest.mark.parametrize(
    ("given", "edition", "said"),
    [
        ("lob/", None, "--protocols lob/: there is no such directory."),
        ("ows.protocol.yaml", None, "--protocols ows.protocol.yaml: there is no such file. Did you mean 'own"),
        ("empty", None, "--protocols empty: there is no file *.protocol.yaml in that directory."),
        ("nobody", None, "There is no protocol 'nobody'."),
        ("onlylab", "long", "--protocols onlylab: none of its protocols has the edition 'long' (it has default). "),
    ],
)  # fmt: skip
def test_protocols_that_are_not_there(
    lab: Path, given: str, edition: str | None, said: str
) -> None:
    (lab / "onlylab").mkdir()
    (lab / "onlylab" / "x.protocol.yaml").write_text(MAZE, encoding="utf-8")
    with pytest.raises(CheeseBenchError) as caught:
        named(lab, given, edition=edition)
    assert str(caught.value).startswith(said)


def test_without_names_the_edition_s_own_protocols_are_run(lab: Path) -> None:
    short = (lab / "lab" / "little.short.protocol.yaml").read_text(encoding="utf-8")
    for folder, files in {
        "built_in": {"little": MAZE, "little.short": short, "other": MAZE.replace("little", "other")},
        "more": {"little": MAZE.replace("version: 1", "version: 1\ntitle: Mine"), "own": MAZE},
    }.items():  # fmt: skip
        (lab / folder).mkdir()
        for name, text in files.items():
            (lab / folder / f"{name}.protocol.yaml").write_text(text, encoding="utf-8")
    catalogue = Catalogue([lab / "built_in", lab / "more"])
    usual = default_protocols(catalogue, "default")
    assert names(usual) == ["little", "other"]
    assert [getattr(one, "title", "") for one in usual] == ["Mine", "Other"]
    assert names(default_protocols(catalogue, "short")) == ["little@short"]
    with pytest.raises(UnknownNameError, match=r"edition 'shrt'. Did you mean 'short'"):
        default_protocols(catalogue, "shrt")

    def selected(
        *given: str, usual: tuple[str, ...] = (), where: str = ""
    ) -> list[str]:
        selection = Selection(
            names=given, edition="default", named_edition=None, directory=lab, where=where
        )  # fmt: skip
        return names(selected_protocols(catalogue, selection, usual))

    assert selected() == names(usual)
    assert selected(usual=("own.protocol.yaml",)) == ["own"]
    assert selected("little", usual=("own.protocol.yaml",)) == ["little"]
    missing = "there is no such directory."
    with pytest.raises(OptionError) as caught:
        selected("lob/", where="tox.ini:3: cheese_protocols")
    assert str(caught.value) == f"tox.ini:3: cheese_protocols: lob/: {missing}"
    for given, default, where in ((("lob/",), (), ""), ((), ("lob/",), "tox.ini:3")):
        with pytest.raises(OptionError) as caught:
            selected(*given, usual=default, where=where)
        assert str(caught.value) == f"--protocols lob/: {missing}"


def test_a_broken_protocol_by_name_is_kept_with_its_error(lab: Path) -> None:
    torn = (lab / "lab" / "torn.protocol.yaml").read_text(encoding="utf-8")
    (lab / "torn.protocol.yaml").write_text(torn, encoding="utf-8")
    [found] = named_protocols(Catalogue([]), lab, ["torn"], None)
    assert isinstance(found, Broken)
    assert "torn.protocol.yaml:" in str(found.error)
    one = with_arena(Catalogue([]).load(lab / "own.protocol.yaml"))
    assert one.name == "own"


def test_plugins_are_managed(plugins: PluginManager) -> None:
    assert plugins.failures == {}
