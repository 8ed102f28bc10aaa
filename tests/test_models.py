"""Names of models, and users' own lists."""

from __future__ import annotations

import dataclasses
import datetime
import re
from pathlib import Path

import pytest

from cheesebench.chat import ModelEntry, Price
from cheesebench.errors import FileError, OptionError, UnknownNameError
from cheesebench.models import check_options, load_models, resolve_model, user_models
from cheesebench.plugin_manager import PluginManager

PLUGINS = PluginManager()
MINE = ModelEntry(
    name="mine",
    backend="openai",
    id="org/mine-7B",
    aliases=("my-model",),
    context=99,
    drops=("seed",),
)

LIST = """
models:
  mine:
    backend: openai
    id: org/mine-7B
    aliases: [my-model]
    family: Mine
    parameters: 7
    images: true
    reasoning: true
    context: 32768
    max_tokens: 4096
    served: {top_k: 20, chat_template_kwargs: {enable_thinking: false}}
    options: {base_url: "http://127.0.0.1:8000/v1"}
    drops: [seed]
    price: {prompt: 1, completion: 2.5, on: 2026-10-21}
    note: a note
  plain: {backend: openai, id: plain}
"""


@pytest.mark.parametrize(
    "name", ["mine", "MINE", "my-model", "org/mine-7B", "ORG/MINE-7b"]
)
def test_names_aliases_and_ids(name: str) -> None:
    assert resolve_model(PLUGINS, name, [MINE]) is MINE


@pytest.mark.parametrize("name", ["openai/org/mine-7B", "openai:org/mine-7B"])
def test_what_is_known_of_an_id_holds_where_it_is_named_with_its_backend(
    name: str,
) -> None:
    assert resolve_model(PLUGINS, name, [MINE]) == dataclasses.replace(
        MINE, name=name, aliases=()
    )


@pytest.mark.parametrize(
    ("name", "backend", "identity"),
    [
        ("openai/a", "openai", "a"),
        ("openai:a/b:c", "openai", "a/b:c"),
        ("openai/a:b/c", "openai", "a:b/c"),
        ("scripted:here/replies.yaml", "scripted", "here/replies.yaml"),
        ("scripted:/there/replies.yaml", "scripted", "/there/replies.yaml"),
    ],
)
def test_as_it_stands(name: str, backend: str, identity: str) -> None:
    entry = resolve_model(PLUGINS, name)
    assert (entry.name, entry.backend, entry.id) == (name, backend, identity)
    assert entry.images == PLUGINS.backend(backend).capabilities.images


def test_a_name_comes_before_an_alias_and_mine_before_what_ships() -> None:
    shipped = resolve_model(PLUGINS, "gpt-4.1")
    assert (
        resolve_model(
            PLUGINS, "gpt-4.1", [dataclasses.replace(MINE, aliases=("gpt-4.1",))]
        )
        == shipped
    )
    mine = dataclasses.replace(MINE, name="gpt-4.1")
    assert resolve_model(PLUGINS, "gpt-4.1", [mine]) is mine
    theirs = dataclasses.replace(MINE, name="theirs")
    assert resolve_model(PLUGINS, "my-model", [theirs, MINE]) is MINE


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gpt4.1", "There is no model 'gpt4.1'. Did you mean 'gpt-4.1'?"),
        ("qwen2.5vl-77b", "Did you mean 'qwen2.5vl-7"),
        ("tabular", "Did you mean 'tabular-ql'?"),
        ("opena", "Did you mean 'openai'?"),
        ("nope", "There is no model 'nope'. Known: "),
        ("openai", "'openai' is a backend: write openai/MODEL-ID."),
        ("opnai/x", "There is no backend 'opnai'. Did you mean 'openai'?"),
        ("org/mine-7", "There is no backend 'org'. Did you mean 'org/mine-7B'?"),
        (
            "somebody/something",
            "If 'somebody/something' is the whole id, put a backend before it, as in openai/somebody/something.",
        ),
        (
            "opnai/x",
            "Is it in a plugin? 'cheesebench plugins' shows what is installed.",
        ),
        ("zzzzzz", "'cheesebench models' lists the models. Or write BACKEND/ID ("),
        ("", "There is no model ''."),
        ("/x", "There is no model '/x'."),
    ],
)
def test_unknown_names(name: str, said: str) -> None:
    with pytest.raises(UnknownNameError, match=re.escape(said)):
        resolve_model(PLUGINS, name, [MINE])


@pytest.mark.parametrize("plugin", ["acme", "cheesebench_acme"])
def test_an_unknown_backend_of_a_plugin_that_was_not_loaded(plugin: str) -> None:
    plugins = PluginManager(entry_points=False)
    plugins.failures[plugin] = "ImportError: no acme_sdk."
    said = f"The plugin '{plugin}' was not loaded: ImportError: no acme_sdk; see 'cheesebench plugins'."
    with pytest.raises(UnknownNameError, match=re.escape(said)):
        resolve_model(plugins, "acme/x")
    with pytest.raises(UnknownNameError, match=re.escape(said)):
        plugins.backend("acme")


def test_an_id_that_several_have_must_be_named() -> None:
    other = dataclasses.replace(MINE, name="mine-thinking", aliases=())
    with pytest.raises(
        UnknownNameError, match=r"Known: mine, mine-thinking. Name one of these"
    ):
        resolve_model(PLUGINS, "org/mine-7B", [MINE, other])


def test_a_backend_without_an_id() -> None:
    with pytest.raises(OptionError, match="'openai/' does not name a model"):
        resolve_model(PLUGINS, "openai/")


def test_an_entry_whose_backend_is_not_installed() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no backend 'opnai'. Did you mean 'openai'"
    ):
        resolve_model(PLUGINS, "mine", [dataclasses.replace(MINE, backend="opnai")])


def test_options_that_a_backend_does_not_take() -> None:
    check_options(PLUGINS.backend("openai"), {"base_url": "x"})
    with pytest.raises(
        UnknownNameError,
        match=r"no option of the backend openai named 'bas_url'. Did you mean 'base_url'",
    ):
        check_options(PLUGINS.backend("openai"), {"bas_url": "x"})


def test_a_list(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(LIST, encoding="utf-8")
    mine, plain = load_models(path)
    assert mine == ModelEntry(
        name="mine",
        backend="openai",
        id="org/mine-7B",
        aliases=("my-model",),
        family="Mine",
        parameters=7.0,
        images=True,
        reasoning=True,
        context=32768,
        max_tokens=4096,
        served={"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}},
        options={"base_url": "http://127.0.0.1:8000/v1"},
        drops=("seed",),
        price=Price(prompt=1.0, completion=2.5, on=datetime.date(2026, 10, 21)),
        note="a note",
    )
    assert plain == ModelEntry(name="plain", backend="openai", id="plain")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "backend: openai\n    id",
            "bakend: openai\n    id",
            "4:5: error E121: There is no key 'bakend' in 'mine'.",
        ),
        (
            "parameters: 7",
            "parameters: seven",
            "8:17: error E123: The value of 'parameters' does not fit: 'seven'.",
        ),
        (
            "prompt: 1,",
            "prompt: -1,",
            "16:21: error E123: The value of 'prompt' does not fit: '-1'.",
        ),
        ("2026-10-21", "last week", "Expected a date such as 2026-10-21."),
        ("2026-10-21", "2026-13-21", "Expected a date such as 2026-10-21."),
        (
            "[seed]",
            "[sed]",
            "15:13: error E123: The value of entry 1 of 'drops' does not fit: 'sed'.",
        ),
        (
            ", id: plain",
            "",
            "18:10: error E122: The key 'id' is missing in 'plain'. Add 'id: ...'.",
        ),
        (
            "images: true",
            "images: true\n    images: true",
            "E105: The key 'images' appears twice",
        ),
        ("images: true", "images: *yes", "E107"),
        ("id: plain", 'id: ""', "E123"),
        (
            "models:",
            "model:",
            "2:1: error E121: There is no key 'model'. Did you mean 'models'?",
        ),
    ],
)
def test_mistakes_in_a_list(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "models.yaml"
    assert old in LIST
    path.write_text(LIST.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FileError) as error:
        load_models(path)
    [line] = str(error.value).splitlines()
    assert line.startswith(f"{path}:")
    assert said in line


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(
        "models:\n  a: {backend: 1, id: x}\n  b: {id: x}\n  c: 5\n", encoding="utf-8"
    )
    with pytest.raises(FileError) as error:
        load_models(path)
    assert [
        line.removeprefix(str(path)).split(":")[1]
        for line in str(error.value).splitlines()
    ] == ["2", "3", "4"]


@pytest.mark.parametrize("text", ["", "- a", "just text"])
def test_no_list(tmp_path: Path, text: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        FileError, match=r"A list of models is a mapping of keys. Begin with 'models:'"
    ):
        load_models(path)


def test_the_user_s_list_is_named_by_an_option_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHEESEBENCH_MODELS", raising=False)
    assert user_models() == ()
    for name in ("one", "two"):
        text = f"models: {{{name}: {{backend: openai, id: x}}}}"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("CHEESEBENCH_MODELS", str(tmp_path / "one.yaml"))
    assert [entry.name for entry in user_models()] == ["one"]
    assert [entry.name for entry in user_models(tmp_path / "two.yaml")] == ["two"]
