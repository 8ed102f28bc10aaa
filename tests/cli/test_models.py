"""``models``: the names that ``--model`` accepts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.chat import BackendContext, BackendSpec, ModelEntry
from cheesebench.commands.models import checked
from cheesebench.errors import OptionError
from cheesebench.plugin_manager import PluginManager, installed_plugins

Run = Callable[..., Any]

LIST = """models:
  mine: {backend: openai, id: org/mine, context: 4096, price: {prompt: 1, completion: 2, on: 2026-10-21}, note: "a|b"}
"""


@pytest.fixture(autouse=True)
def _no_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHEESEBENCH_MODELS", raising=False)


@pytest.mark.usefixtures("wide")
def test_all_models_with_backend_id_context_images_and_price(run: Run) -> None:
    result = run("models")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].split("  ")[0] == "model"
    assert [line.split()[0] for line in lines[2 : lines.index("")]] == list(
        installed_plugins().models
    )
    [line] = [line for line in lines if line.startswith("gpt-4.1 ")]
    assert " ".join(line.split()) == "gpt-4.1 openai/gpt-4.1 1,047,576 yes 2 / 0.5 / 8"


@pytest.mark.usefixtures("wide")
def test_a_part_of_a_name(run: Run) -> None:
    shown = [
        line.split()[0] for line in run("models", "QWEN2.5-vl").out.splitlines()[2:]
    ]
    assert shown == [f"qwen2.5-vl-{size}b" for size in (3, 7, 32, 72)]
    assert (
        run("models", "phi-4-mm-14b")
        .out.splitlines()[2]
        .startswith("phi-4-multimodal ")
    )
    missed = run("models", "nothing like it")
    assert missed.code == 2
    assert "No model matches 'nothing like it'" in missed.err


def test_a_list_of_one_s_own(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "mine.yaml").write_text(LIST, encoding="utf-8")
    line, *below = run("models", "org/mine", "--models", "mine.yaml").out.splitlines()[
        2:
    ]
    assert " ".join(line.split()) == "mine openai/org/mine 4,096 1 / - / 2"
    assert below == ["", "Prices of 2026-10-21.", "mine: a|b"]
    monkeypatch.setenv("CHEESEBENCH_MODELS", str(here / "mine.yaml"))
    assert (
        json.loads(run("models", "mine", "--json").out)[0]["price"]["on"]
        == "2026-10-21"
    )


def test_json_has_every_field(run: Run) -> None:
    entries = json.loads(run("models", "--json").out)
    assert {entry["name"] for entry in entries} == set(installed_plugins().models)
    assert {"aliases", "family", "parameters", "served", "options", "drops"} <= set(
        entries[0]
    )


def test_a_broken_list_is_told_line_by_line(run: Run, here: Path) -> None:
    (here / "mine.yaml").write_text(
        "models:\n  a: {backend: openai}\n  b: 3\n", encoding="utf-8"
    )
    result = run("models", "--models", "mine.yaml")
    assert result.code == 2
    assert result.err.splitlines() == [
        "cheesebench: mine.yaml:2:6: error E122: The key 'id' is missing in 'a'. Add 'id: ...'.",
        "mine.yaml:3:6: error E123: The value of 'b' does not fit: '3'. Expected a mapping of keys.",
    ]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_key_is_shown(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "4u-0123456789")
    mine = "models:\n  a: {backend: openai, id: x, options: {api_key_env: 4u-0123456789}, note: key 4u-0123456789}\n"
    (here / "mine.yaml").write_text(mine, encoding="utf-8")
    result = run("models", "a", "--models", "mine.yaml", *form)
    assert "4u-0123456789" not in result.out + result.err
    assert "key [redacted]" in result.out


def test_a_model_is_checked_by_its_backend() -> None:
    def check(context: BackendContext) -> str:
        if context.entry.id == "lost":
            raise OptionError("there is no file 'lost'")
        return f"{context.entry.id} with {dict(context.options)}"

    def answer(check: Any, **changes: Any) -> tuple[str, str, str]:
        spec = BackendSpec(name="lab", connect=cast(Any, len), check=check)
        plugins = PluginManager(entry_points=False, built_ins=())
        supply = SimpleNamespace(cheesebench_backends=lambda: [spec])
        plugins.register(supply, name="lab")
        given = {"name": "mine", "backend": "lab", "id": "x", "options": {"a": "b"}}
        return checked(plugins, ModelEntry(**(given | changes)))

    assert answer(check) == ("mine", "yes", "x with {'a': 'b'}")
    assert answer(check, id="lost") == ("mine", "no", "there is no file 'lost'")
    assert answer(None) == ("mine", "", "the backend lab cannot tell")
    assert answer(check, backend="bal")[:2] == ("mine", "no")
    name, ready, said = answer(lambda context: 1 / 0)
    assert (name, ready) == ("mine", "no")
    assert "ZeroDivisionError" in said
