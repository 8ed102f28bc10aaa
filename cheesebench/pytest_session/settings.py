"""What the command line asks for, checked: everything wrong with it is told before anything is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cheesebench.chat import ModelEntry
from cheesebench.errors import OptionError
from cheesebench.experiment.contestants import LanguageModel, check_views
from cheesebench.experiment.controls import check_control
from cheesebench.experiment.designs import Design, find_design
from cheesebench.experiment.dialogues import check_generations
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.manifest import check_run_id
from cheesebench.experiment.studies import Study, find_study
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import DEFAULT_EDITION
from cheesebench.pytest_plugin import PREFIX
from cheesebench.pytest_session.model_options import RECORDED, call_options, check_prices, language_models

#: What a new run is where the command line says nothing; a resumed run takes these from its manifest instead.
DEFAULTS: Mapping[str, Any] = {
    "view": None,
    "edition": DEFAULT_EDITION,
    "design": "cohort",
    "subjects": None,
    "generations": None,
    "against": None,
    "seed": 0,
    "agent": "llm",
    "control": [],
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of a session that runs models."""

    models: tuple[str, ...]
    views: tuple[str, ...]
    protocols: tuple[str, ...]
    """Names, files or directories, as given; empty for the default selection."""
    edition: str
    design: Design
    generations: int | None
    """Generations of a dialogue's cell, instead of the design's."""
    temperatures: tuple[float, ...]
    """As given; several are for dialogues."""
    against: str | None
    """Published model that dialogues are compared with, where something is printed of it; else chance."""
    seed: int
    controls: tuple[str, ...]
    study: Study | None
    resume: str | None
    run_id: str | None
    results: Path
    processes: int | None
    markdown: Path | None
    html: Path | None
    inconclusive_fails: bool
    exit_zero: bool
    language: Mapping[str, LanguageModel]
    """Those of ``models`` that are language models."""
    calls: CallOptions
    interface: Mapping[str, Any]
    """The options of the command line that say how language models are asked, as given."""

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that matter for the result, as the manifest keeps them (names as in DEFAULTS)."""
        return {
            "model": list(self.models),
            "view": list(self.views),
            "edition": self.edition,
            "design": self.design.name,
            "subjects": self.design.subjects,
            "generations": self.generations,
            "against": self.against,
            "seed": self.seed,
            **self.interface,
            "control": list(self.controls),
            "study": self.study.name if self.study else None,
        }


def results_directory(config: pytest.Config) -> Path:
    """Return the directory that holds the runs."""
    given = config.getoption(PREFIX + "results")
    return config.invocation_params.dir / given if given else config.rootpath / "results"


def read_settings(
    config: pytest.Config,
    plugins: PluginManager,
    recorded: Mapping[str, Any] | None = None,
    replayed: Mapping[str, LanguageModel] | None = None,
) -> Settings:
    """Return the settings, or raise a CheeseBenchError for what cannot be meant.

    ``recorded`` are the options in the manifest of the run that is resumed or replayed: they hold where nothing is
    given, and must not be contradicted. ``replayed`` are the language models of a run that is replayed.
    """

    def option(name: str) -> Any:
        return config.getoption(PREFIX + name)

    def of_the_run(name: str, given: Any) -> Any:
        if recorded is None or name not in recorded:
            return DEFAULTS.get(name) if given is None else given
        if isinstance(given, list) and set(given) <= set(_as_list(recorded[name])):
            return given
        if given is not None and given != recorded[name]:
            how = f"--resume {option('resume')}" if replayed is None else f"--model {option('model')[0]}"
            raise OptionError(
                f"{how}: that run was made {_with_option(name, recorded[name])}, "
                f"not {_shown(given)}. Leave --{name} out, or start a new run."
            )
        return recorded[name]

    given = of_the_run("study", option("study"))
    study = find_study(given, config.invocation_params.dir) if given else None
    models = of_the_run("model", None if replayed is not None else _names(option("model")))
    models = models or (list(study.models) if study else None)
    if study and not models:
        raise OptionError(f"--study {given} names no models of its own: add --model NAME.")
    subjects = of_the_run("subjects", option("subjects"))
    # So many subjects through the whole schedule are a cohort; a study's own design is one subject and few trials.
    own = study.design if study and subjects is None else None
    design = find_design(of_the_run("design", option("design") or own), subjects)
    views = of_the_run("view", _names(option("view")) or (list(study.views) if study else None) or None)
    views = views or list(design.views)
    if not models:
        raise OptionError(f"--model names nothing. Models are {', '.join(sorted(plugins.agents))}.")
    interface = {name: of_the_run(name, option(name)) for name in RECORDED}
    interface["base_url"] = option("base_url") or (recorded or {}).get("base_url")
    language = replayed
    if language is None:
        language = language_models(plugins, models, interface, _user_models(config))
    calls = call_options(option)
    if replayed is None:  # a replay costs nothing
        check_prices(calls.limits, language.values())
    if study:
        study.check(language, tuple(models))
    for model in models:
        check_views(model, language.get(model), map(plugins.view, views))
    controls = of_the_run("control", _names(option("control")))
    for control in controls:
        check_control(control, results_directory(config))
    _at_least("seed", option("seed"), 0)
    _at_least("cheese-processes", option("processes"), 1)
    if option("resume") is not None and option("run_id") is not None:
        raise OptionError(
            "--resume and --cheese-run-id contradict each other: a resumed run keeps its name. Leave one out."
        )
    for run_id in (option("run_id"), option("resume")):
        if run_id is not None:
            check_run_id(run_id)
    return Settings(
        models=tuple(models),
        views=tuple(views),
        protocols=tuple(option("protocols") or _usual_protocols(config)),
        edition=of_the_run("edition", option("edition")),
        design=design,
        generations=check_generations(of_the_run("generations", option("generations"))),
        against=of_the_run("against", option("against")),
        temperatures=tuple(dict.fromkeys(_as_list(interface["temperature"]))),
        seed=of_the_run("seed", option("seed")),
        controls=tuple(controls),
        study=study,
        resume=option("resume"),
        run_id=option("run_id"),
        results=results_directory(config),
        processes=option("processes"),
        markdown=_report_file(config, "markdown"),
        html=_report_file(config, "html"),
        inconclusive_fails=option("inconclusive") == "fail",
        exit_zero=option("exit_zero"),
        language=language,
        calls=calls,
        interface=interface,
    )


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def _names(given: list[str] | None) -> list[str] | None:
    """Split at commas and drop repetitions, in the order given."""
    if given is None:
        return None
    return list(dict.fromkeys(name.strip() for part in given for name in part.split(",") if name.strip()))


def _user_models(config: pytest.Config) -> list[ModelEntry]:
    given: str | None = config.getoption(PREFIX + "models")
    from cheesebench.models import user_models

    return list(user_models(config.invocation_params.dir / given if given else None))


def _usual_protocols(config: pytest.Config) -> list[str]:
    """Return the protocols that the ini file or the environment names; none where paths are given."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return []
    named: list[str] = list(config.getini("cheese_protocols"))
    if named and config.inipath is not None:
        # As everything in an ini file, directories and files are relative to it.
        beside = [(name, config.inipath.parent / name) for name in named]
        return [str(path) if path.exists() else name for name, path in beside]
    return [name for name in os.environ.get("CHEESEBENCH_PROTOCOLS", "").split(os.pathsep) if name]


def _at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise OptionError(f"--{name} {value}: the smallest number that makes sense is {least}.")


def _report_file(config: pytest.Config, name: str) -> Path | None:
    given: str | None = config.getoption(PREFIX + name)
    if given is None:
        return None
    path = config.invocation_params.dir / given
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OptionError(f"--cheese-{name} {given} cannot be written. Name a file in a directory that exists.")
    return path


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _with_option(name: str, value: Any) -> str:
    """Say how an option was given; one that was left out has no value that a person could write."""
    return f"without --{name}" if value is None else f"with --{name} {_shown(value)}"
