"""Studies: their variations, and errors in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.errors import FileError, OptionError, UnknownNameError
from cheesebench.experiment.cells import (
    check_study,
    find_design,
    find_study,
    language_model,
    shipped_studies,
    variant_of,
    varied,
)
from cheesebench.family import Study
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager


@pytest.mark.parametrize("name", shipped_studies())
def test_every_shipped_study_can_be_run_as_it_is(name: str) -> None:
    plugins = PluginManager()
    study = find_study(name, Path())
    assert study.name == name
    assert study.title
    names = study.models or ("openai/tiny",)
    models = {
        model: language_model(plugins, resolve_model(plugins, model)) for model in names
    }
    check_study(study, models, names)
    for view in study.views:
        plugins.view(view)
    assert find_design(study.design).trials == study.trials == 15


def test_every_combination_of_levels_is_a_variant() -> None:
    study = Study("s", "S", axes={"history": (1, 5), "prompt": ("cot", "minimal")})
    assert [str(variant_of(changes)) for changes in study.variants()] == [
        "history=1,prompt=cot",
        "history=1,prompt=minimal",
        "history=5,prompt=cot",
        "history=5,prompt=minimal",
    ]
    assert [str(variant_of(changes)) for changes in Study("s", "S").variants()] == [""]


def test_a_variant_changes_nothing_else() -> None:
    plugins = PluginManager()
    model = language_model(
        plugins, resolve_model(plugins, "openai/tiny"), settings={"actions": 4}
    )
    settings = varied(model, {"history": 1})
    changed = {
        name: settings[name]
        for name in settings
        if settings[name] != model.settings[name]
    }
    assert changed == {"history": 1, "memory": "1 past answer, 500 characters of notes"}
    assert settings["actions"] == 4
    with pytest.raises(OptionError, match="history"):
        varied(model, {"history": -1})


HEAD = "version: 1\nstudy: mine\ntitle: Mine\n"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (HEAD, OptionError, "the study varies nothing"),
        (
            HEAD + "axes: {}\nviews: [ascii_2d]\n",
            OptionError,
            "the study varies nothing",
        ),
        (
            HEAD + "axes: {history: []}\n",
            FileError,
            r"mine\.study\.yaml:4:\d+: error E",
        ),
        (
            HEAD + "axis: {history: [1]}\n",
            FileError,
            r"mine\.study\.yaml:4:1: error E.*Did you mean 'axes'",
        ),
        (
            HEAD + "trials: 0\naxes: {history: [1, 2]}\n",
            FileError,
            r"mine\.study\.yaml:4:",
        ),
        ("", FileError, r"mine\.study\.yaml"),
        ("[1, 2", FileError, r"mine\.study\.yaml:2:1: error E"),
    ],
)
def test_mistakes_in_a_study_are_told_with_their_place(
    tmp_path: Path, text: str, error: type[Exception], said: str
) -> None:
    (tmp_path / "mine.study.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(error, match=said):
        find_study("mine.study.yaml", tmp_path)


def test_an_unknown_study_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'ablation-history'"):
        find_study("ablation-histry", Path())
