"""The checked settings of a run: every error in the options is raised before anything is run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cheesebench.chat import ModelEntry
from cheesebench.errors import OptionError
from cheesebench.experiment.contestants import LanguageModel, check_views
from cheesebench.experiment.controls import check_control
from cheesebench.experiment.designs import Design, check_generations, find_design, usual_design
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.manifest import check_run_id, recorded_options
from cheesebench.experiment.model_options import call_options, check_prices, language_models, pairs
from cheesebench.experiment.queues import DEFAULT_EXECUTOR, check_options
from cheesebench.experiment.run_options import RunOptions, as_list
from cheesebench.experiment.shards import Shard
from cheesebench.experiment.studies import Study, find_study
from cheesebench.options import BY_KEY
from cheesebench.plugin_manager import PluginManager
from cheesebench.statistics.against_published import check_against


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of a run, wherever they were given."""

    models: tuple[str, ...]
    views: tuple[str, ...]
    protocols: tuple[str, ...]
    """Names, files or directories, as given; empty for the default selection."""
    edition: str
    designs: Mapping[str, Design]
    """By model: language models and agents have different default designs."""
    generations: int | None
    """Generations of a dialogue cell, instead of the design's."""
    temperatures: tuple[float, ...]
    """As given; only dialogues use several."""
    against: str | None
    """Published model that the run is shown beside."""
    seed: int
    shard: Shard | None
    """The part of the cells that is run; None for all."""
    controls: tuple[str, ...]
    study: Study | None
    resume: str | None
    run_id: str | None
    results: Path
    processes: int | None
    executor: str
    executor_options: Mapping[str, str]
    markdown: Path | None
    html: Path | None
    inconclusive_fails: bool
    exit_zero: bool
    language: Mapping[str, LanguageModel]
    """The language models among ``models``, by name."""
    calls: CallOptions
    ahead: bool
    """Whether subjects of the next look may start early, if that costs nothing."""
    values: Mapping[str, Any]
    """The value of every option by key (``cheesebench.options``)."""

    @property
    def design(self) -> str:
        """Name of the design, or names of all designs."""
        return ", ".join(dict.fromkeys(design.name for design in self.designs.values()))

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that affect the results, as the manifest stores them."""
        return recorded_options(self.values)


def read_settings(
    options: RunOptions,
    plugins: PluginManager,
    directory: Path,
    usual_protocols: Sequence[str] = (),
    replayed: Mapping[str, LanguageModel] | None = None,
) -> Settings:
    """Return the settings, or raise a CheeseBenchError for what cannot be meant.

    Paths are relative to ``directory``; ``usual_protocols`` are run where none are given. ``replayed`` are the language
    models of a run that is replayed.
    """
    options.check()
    named = options.value("study")
    study = find_study(named, directory) if named else None
    models = options.value("model") or (list(study.models) if study else None)
    if study:
        if not models:
            raise OptionError(f"{options.spelling('study')} {named} has no models of its own: add --model NAME.")
        options = _with_study(options, study)
    if not models:
        raise OptionError(f"--model is empty. Models are {', '.join(sorted(plugins.agents))}.")
    values = {key: options.value(key) for key in BY_KEY}
    language = replayed
    if language is None:
        language = language_models(plugins, models, options, _user_models(directory, values["models"]))
        if language:  # somebody is called
            options.check_guarded()
    designs = {
        model: find_design(values["design"] or usual_design(model in language), values["subjects"]) for model in models
    }
    views = values["view"] or list(dict.fromkeys(view for design in designs.values() for view in design.views))
    calls = call_options(options)
    if replayed is None:  # a replay costs nothing
        check_prices(calls.limits, language.values())
    if study:
        study.check(language, tuple(models))
    for model in models:
        check_views(model, language.get(model), map(plugins.view, views))
    results = directory / values["results"]
    for control in values["control"]:
        check_control(control, results)
    if values["against"] is not None:
        check_against(values["against"])
    resume, run_id = values["resume"], values["run_id"]
    if resume is not None and run_id is not None:
        raise OptionError(
            f"{options.spelling('resume')} and {options.spelling('run_id')} cannot be combined: a resumed run keeps "
            "its name. Remove one."
        )
    for name in (run_id, resume):
        if name is not None:
            check_run_id(name)
    generations = check_generations(values["generations"])
    executor = plugins.executor(values["executor"] or DEFAULT_EXECUTOR)
    executor_options = pairs(options, "executor_option")
    check_options(executor, executor_options)
    return Settings(
        models=tuple(models),
        views=tuple(views),
        protocols=tuple(values["protocols"] or usual_protocols),
        edition=values["edition"],
        designs=designs,
        generations=generations,
        against=values["against"],
        temperatures=tuple(dict.fromkeys(as_list(values["temperature"]))),
        seed=values["seed"],
        shard=Shard.parse(values["shard"]) if values["shard"] else None,
        controls=tuple(values["control"]),
        study=study,
        resume=resume,
        run_id=run_id,
        results=results,
        processes=values["processes"],
        executor=executor.name,
        executor_options=executor_options,
        markdown=_report_file(directory, options, "markdown"),
        html=_report_file(directory, options, "html"),
        inconclusive_fails=values["inconclusive"] == "fail",
        exit_zero=values["exit_zero"],
        language=language,
        calls=calls,
        ahead=values["ahead"] == "auto",
        values={
            **values,
            "model": list(models),
            "view": list(views),
            # With models of both kinds each has its own.
            "design": _only({design.name for design in designs.values()}) or values["design"],
            "subjects": _only({design.subjects for design in designs.values()}) or values["subjects"],
            "generations": generations,
            "study": study.name if study else None,
        },
    )


def _only(values: set[Any]) -> Any:
    return next(iter(values)) if len(values) == 1 else None


def _with_study(options: RunOptions, study: Study) -> RunOptions:
    """Return the options with the study's values filled in where none are given."""
    # --subjects asks for whole schedules, which is the design cohort; a study's own design has one subject.
    own = study.design if options.given["subjects"] is None else "cohort"
    if options.recorded and options.recorded.get("design"):
        own = options.recorded["design"]  # that of the run that is resumed
    return options.with_given(
        design=options.given["design"] or own,
        view=options.given["view"] or list(study.views) or None,
    )


def _user_models(directory: Path, given: str | None) -> list[ModelEntry]:
    from cheesebench.models import user_models

    return list(user_models(directory / given if given else None))


def _report_file(directory: Path, options: RunOptions, key: str) -> Path | None:
    given: str | None = options.value(key)
    if given is None:
        return None
    path = directory / given
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OptionError(f"{options.spelling(key)} {given} cannot be written. Name a file in a directory that exists.")
    return path
