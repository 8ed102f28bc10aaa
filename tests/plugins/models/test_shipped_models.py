"""The models that ship: the paper's thirteen, and nothing ambiguous."""

from __future__ import annotations

import datetime
from collections import Counter
from pathlib import Path

import pytest

from cheesebench.models import check_options, resolve_model
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins import models

PLUGINS = PluginManager()
ENTRIES = PLUGINS.models
NAMES = sorted(ENTRIES)
PAPER = {
    "claude-opus-4.7",
    "claude-opus-4.6",
    "claude-sonnet-4.6",
    "claude-haiku-4.5",
    "gpt-5.2-codex",
    "gpt-5.2",
    "gpt-4.1",
    "qwen2.5vl-3b",
    "qwen2.5vl-7b",
    "qwen2.5vl-32b",
    "qwen2.5vl-72b",
    "internvl2.5-8b",
    "phi-4-mm-14b",
}


def test_every_list_is_read() -> None:
    folder = Path(models.__file__).parent
    assert {path.stem for path in folder.glob("*.yaml")} == set(models.LISTS)


def test_the_paper_s_thirteen() -> None:
    known = {
        name: entry.id
        for entry in ENTRIES.values()
        for name in (entry.name, *entry.aliases)
    }
    assert len({known[name] for name in PAPER}) == 13


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_makes_sense(name: str) -> None:
    entry = ENTRIES[name]
    assert resolve_model(PLUGINS, name) is resolve_model(PLUGINS, name.upper())
    assert all(resolve_model(PLUGINS, alias) == entry for alias in entry.aliases)
    check_options(PLUGINS.backend(entry.backend), entry.options)
    assert entry.context is not None
    if entry.backend == "vllm":
        assert entry.parameters is not None
        assert entry.price is None
    if entry.price is not None:
        assert entry.price.prompt < entry.price.completion
        assert entry.price.cached is None or entry.price.cached < entry.price.prompt
        # Writing to Claude's cache costs a quarter more than not using it.
        claude = "claude" in entry.id
        assert entry.price.written == (
            pytest.approx(1.25 * entry.price.prompt) if claude else None
        )
        assert datetime.date(2026, 1, 1) < entry.price.on
    # The agent's own limit is for models without reasoning.
    assert (entry.max_tokens is not None) == entry.reasoning


def test_no_name_means_two_models() -> None:
    spoken = Counter(
        word.casefold()
        for entry in ENTRIES.values()
        for word in {entry.name, *entry.aliases, f"{entry.backend}/{entry.id}"}
    )
    twice = {word for word, times in spoken.items() if times > 1}
    assert twice == {"vllm/qwen/qwen3.5-27b"}
