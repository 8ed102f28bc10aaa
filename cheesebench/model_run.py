"""One run of models through protocols, from its settings to its log: the same for
pytest and for Python.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cheesebench.chat import ModelEntry, Server
from cheesebench.errors import CheeseBenchError, OptionError
from cheesebench.experiment.cells import (
    RunOptions,
    as_list,
    cells_of,
    check_study,
    check_views,
    familywise,
    find_design,
    find_study,
    replayed_models,
    usual_design,
)
from cheesebench.experiment.controls import check_control
from cheesebench.experiment.language_models import (
    CallOptions,
    LanguageModels,
    call_options,
    check_prices,
    connected,
    language_models,
    pairs,
    probe,
    record_servers,
    start_servers,
    stop_after_failure,
    stop_servers,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import check_fits, claim, is_claimed, locate
from cheesebench.experiment.provenance import (
    SEED_DRAWN,
    check_run_id,
    describe_protocols,
    draw_seed,
    made_here,
    new_run_id,
    recorded_options,
)
from cheesebench.experiment.replay import check_resumable
from cheesebench.experiment.session import (
    DEFAULT_EXECUTOR,
    Progress,
    RunSession,
    check_options,
    is_finished,
)
from cheesebench.experiment.shards import KEY as SHARD
from cheesebench.experiment.shards import Shard, describe_shard
from cheesebench.family import CellRequest, Design, LanguageModel, Study
from cheesebench.frozen import FrozenSet, frozen_set
from cheesebench.interfaces import BaseSpecification
from cheesebench.models import user_models
from cheesebench.options import BY_KEY, OPTIONS
from cheesebench.planning import rehearse, too_short
from cheesebench.planning.asking import first_requests
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import SUFFIX, Catalogue
from cheesebench.published import check_against
from cheesebench.records import CellCalls, CellKey, CellPlan, TrialRecord
from cheesebench.statistics import (
    RunSummary,
    Verdict,
    draw_sample,
    judge_sample,
    summarise_subjects,
)
from cheesebench.statistics.judgement import judge_set
from cheesebench.statistics.wording import plural
from cheesebench.verification import check_calls


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
    temperatures: tuple[float, ...]
    """As given; only dialogues use several."""
    against: str | None
    """Published model that the run is shown beside."""
    seed: int
    seed_drawn: bool
    """Whether the seed was drawn; a seed that was typed is public, and with it all
    worlds of the run.
    """
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
    """Whether subjects of the next set may start early, if that costs nothing."""
    values: Mapping[str, Any]
    """The value of every option by key (``cheesebench.options``)."""

    @property
    def design(self) -> str:
        return ", ".join(dict.fromkeys(design.name for design in self.designs.values()))

    @property
    def recorded(self) -> dict[str, Any]:
        """The options that affect the results, as the manifest stores them."""
        return {**recorded_options(self.values), SEED_DRAWN: self.seed_drawn}


def read_settings(
    options: RunOptions,
    plugins: PluginManager,
    directory: Path,
    usual_protocols: Sequence[str] = (),
    replayed: Mapping[str, LanguageModel] | None = None,
) -> Settings:
    """Return the settings, or raise a CheeseBenchError for contradictory or invalid
    ones.

    Paths are relative to ``directory``; ``usual_protocols`` are run if none are given.
    ``replayed`` are the language models of a run that is replayed.
    """
    options.check()
    named = options.value("study")
    study = find_study(named, directory) if named else None
    models = options.value("model") or (list(study.models) if study else None)
    options = _with_named_set(options, plugins)
    if study:
        if not models:
            raise OptionError(
                f"{options.spelling('study')} {named} has no models of its own: add --model NAME."
            )
        options = with_study(options, study)
    if not models:
        raise OptionError(
            f"--model is empty. Models are {', '.join(sorted(plugins.agents))}."
        )
    values = {key: options.value(key) for key in BY_KEY}
    language = replayed
    if language is None:
        language = language_models(
            plugins, models, options, _user_models(directory, values["models"])
        )
        if language:  # a server may be called
            options.check_trusted()
    designs = {
        model: find_design(
            values["design"]
            or usual_design(model in language, values["compare"] is not None),
            values["subjects"],
        )
        for model in models
    }
    views = values["view"] or list(
        dict.fromkeys(view for design in designs.values() for view in design.views)
    )
    calls = call_options(options)
    if replayed is None:  # a replay costs nothing
        check_prices(calls.limits, language.values())
    if study:
        check_study(study, language, tuple(models))
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
    seed, drawn = _seed(options, values["seed"])
    executor = plugins.executor(values["executor"] or DEFAULT_EXECUTOR)
    executor_options = pairs(options, "executor_option")
    check_options(executor, executor_options)
    return Settings(
        models=tuple(models),
        views=tuple(views),
        protocols=tuple(values["protocols"] or usual_protocols),
        edition=values["edition"],
        designs=designs,
        against=values["against"],
        temperatures=tuple(
            one
            for one in dict.fromkeys(as_list(values["temperature"]))
            if one != "none"
        ),
        seed=seed,
        seed_drawn=drawn,
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
            # Language models and agents have different designs.
            "design": _only({design.name for design in designs.values()})
            or values["design"],
            "seed": seed,
            "study": study.name if study else None,
        },
    )


def _seed(options: RunOptions, seed: int | None) -> tuple[int, bool]:
    """Return the seed of the run, and whether it was drawn, now or when the run was
    started.
    """
    if seed is not None:
        return seed, options.recorded is not None and bool(
            options.recorded.get(SEED_DRAWN)
        )
    if options.value("shard"):
        raise OptionError(
            f"{options.spelling('shard')} needs {options.spelling('seed')} N, the same for all shards."
        )
    return draw_seed(), True


def _only(values: set[Any]) -> Any:
    return next(iter(values)) if len(values) == 1 else None


def _with_named_set(options: RunOptions, plugins: PluginManager) -> RunOptions:
    named = options.value("set")
    return options if named is None else with_set(options, frozen_set(named), plugins)


def with_set(
    options: RunOptions, frozen: FrozenSet, plugins: PluginManager
) -> RunOptions:
    """Return the options with the set's protocols and view, and with those of its
    settings that have other defaults by now, where none are given.
    """
    named = options.given.get("protocols") or sorted(frozen.protocols)
    files = [
        str(frozen.folder / f"{name}{SUFFIX}") if name in frozen.protocols else name
        for part in named
        for name in part.split(",")
    ]
    usual = plugins.model_agent(options.value("agent")).settings
    changed = {
        name: value
        for name, value in frozen.settings.items()
        if usual.get(name, value) != value
    }
    return options.with_given(
        protocols=files,
        view=options.given.get("view") or list(frozen.views),
        **_given_as_options(options, changed),
    )


def _given_as_options(
    options: RunOptions, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return settings of the agent as values of options, but for those that are
    given.
    """
    spelled = {option.setting: option.key for option in OPTIONS if option.setting}
    given = {
        spelled[name]: value
        for name, value in settings.items()
        if name in spelled and options.given.get(spelled[name]) is None
    }
    said = list(options.given.get("agent_option") or ())
    known = {one.partition("=")[0] for one in said} | set(spelled)
    rest = [f"{name}={settings[name]}" for name in sorted(set(settings) - known)]
    return {**given, **({"agent_option": [*said, *rest]} if rest else {})}


def with_study(options: RunOptions, study: Study) -> RunOptions:
    """Return the options with the study's values filled in where none are given."""
    # --subjects asks for whole schedules, which is the design cohort; a study's own
    # design has one subject.
    own = study.design if options.given["subjects"] is None else "cohort"
    if options.recorded and options.recorded.get("design"):
        own = options.recorded["design"]  # that of the run that is resumed
    return options.with_given(
        design=options.given["design"] or own,
        view=options.given["view"] or list(study.views) or None,
    )


def _user_models(directory: Path, given: str | None) -> list[ModelEntry]:
    return list(user_models(directory / given if given else None))


def _report_file(directory: Path, options: RunOptions, key: str) -> Path | None:
    given: str | None = options.value(key)
    if given is None:
        return None
    path = directory / given
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OptionError(
            f"{options.spelling(key)} {given} cannot be written. Name a file in a directory that exists."
        )
    return path


#: Seconds between two polls of the keyboard (and two redraws) while a cell is waited
#: for.
SLICE = 0.2
#: Seconds without any reply after which a line says so, and until the next such line.
SILENCE, REMINDER = 60.0, 240.0

Cell = tuple[CellPlan, BaseSpecification]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The earlier run that this one depends on: the resumed run, or the source of a
    replay.
    """

    existing: Path | None = None
    """The log that is continued."""
    source: RunLog | None = None
    """The run whose replies are given once more, in place of calls."""
    recorded: Mapping[str, Any] | None = None
    """Its options."""
    replayed: Mapping[str, LanguageModel] | None = None
    """Its language models."""
    made_here: bool = True
    """Whether it was made by this user on this machine."""


def read_earlier(
    plugins: PluginManager, results: Path, resume: str | None, models: Iterable[str]
) -> Earlier:
    """Read the earlier run in ``results``: the one to ``resume``, or that of
    ``replay:RUN`` among the models.
    """
    if resume is not None:
        existing = locate(results, resume)
        with RunLog.open_read_only(existing) as log:
            manifest = log.manifest
            return Earlier(
                existing=existing,
                recorded=manifest["options"],
                made_here=made_here(manifest),
            )
    replay = _replayed([name.strip() for part in models for name in part.split(",")])
    if replay is None:
        return Earlier()
    source = RunLog.open_read_only(locate(results, replay, exact=True))
    return Earlier(
        source=source,
        recorded=source.manifest["options"],
        replayed=replayed_models(plugins, source.plans()),
    )


class ModelRun:
    """One run: ``open``, ``start``, ``wait`` for every cell, ``close``. ``tell`` is
    called with lines for people.
    """

    is_worker = False

    def __init__(
        self,
        settings: Settings,
        plugins: PluginManager,
        earlier: Earlier | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        earlier = earlier or Earlier()
        self.settings = settings
        self.plugins = plugins
        self.source = earlier.source
        self.catalogue = Catalogue(plugins.protocol_directories, plugins.families)
        self.log: RunLog | None = None
        self._tell = tell
        self._existing = earlier.existing
        self._lock: sqlite3.Connection | None = None
        self._runner: RunSession | None = None
        self._language: LanguageModels | None = None
        self._servers: dict[str, Server] = {}
        #: Seconds without a reply at the last such line.
        self._silence_said = 0.0
        #: Of the servers that were started, by model.
        self._base_urls: dict[str, str] = {}
        #: With ``--shard``: the cells of all shards.
        self.whole: Sequence[Cell] = []

    def of_shard(self, cells: Sequence[Cell]) -> list[Cell]:
        if self.settings.shard is None:
            return list(cells)
        self.whole = cells
        mine = {
            plan.key for plan in self.settings.shard.part([plan for plan, _ in cells])
        }
        return [
            (plan, specification) for plan, specification in cells if plan.key in mine
        ]

    def open(self, cells: Sequence[Cell]) -> None:
        """Open the log, new or resumed, and reach the models."""
        cells = self._with_goals(cells)
        plans = [plan for plan, _ in self.whole or cells]
        for control in self.settings.controls if plans else ():
            if all(plan.control != control for plan in plans):
                raise OptionError(
                    f"--control {control}: these protocols have nothing that it removes. Name a state, zone or "
                    "landmarks of one of them."
                )
        for plan, _ in cells:
            check_fits(plan)
        self._open_log(cells)
        assert self.log is not None
        if self.settings.shard is not None and self.whole and self._existing is None:
            self.log.add_to_manifest(
                {
                    "protocols": describe_protocols(
                        specification for _, specification in self.whole
                    ),
                    SHARD: describe_shard(
                        self.settings.shard, [plan for plan, _ in self.whole]
                    ),
                }
            )
        if self._existing is not None:
            try:
                check_resumable(self.log, cells, self.settings.seed)
            except CheeseBenchError:
                self.close()  # nothing was run: the old run is not reported again
                raise
        if self.source is not None:
            check_resumable(self.source, cells, self.settings.seed, "replayed")
        if not self.is_worker:
            self._reach_models(cells)

    def _with_goals(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells with the purse that each verdict needs (``--familywise``:
        one for all cells of a model).
        """
        if not self.settings.values["familywise"]:
            return list(cells)
        goals = {
            plan.key: plan.goal
            for plan in familywise([plan for plan, _ in self.whole or cells])
        }
        return [
            (replace(plan, goal=goals[plan.key]), specification)
            for plan, specification in cells
        ]

    def _open_log(self, cells: Sequence[Cell]) -> None:
        if self._existing is not None:
            self._lock = claim(self._existing)
            self.log = RunLog.open(self._existing)
            self.log.verify()
            return
        run_id = self.settings.run_id or new_run_id()
        self.log = RunLog.create(
            self.settings.results,
            run_id,
            cells,
            options=self.settings.recorded,
            # A replay makes no calls; its manifest must not vouch for text from
            # elsewhere.
            signed=bool(self.settings.language) and self.source is None,
            plugins=self.plugins.strangers(),
        )
        self._lock = claim(self.log.path)

    def _reach_models(self, cells: Sequence[Cell]) -> None:
        """Start the servers that are needed, and make one test call to every model
        before anything runs.
        """
        assert self.log is not None
        models = {} if self.source is not None else dict(self.settings.language)
        if cells and self._existing is not None:
            # Models whose cells are all finished need no server.
            open_models = {
                plan.model
                for plan, _ in cells
                if not is_finished(self.log, plan, judge_set)
            }
            models = {
                name: model for name, model in models.items() if name in open_models
            }
        if not models:
            return
        try:
            self._servers = start_servers(models, self.log.directory, self._tell)
            record_servers(self.log, self._servers)
            self._base_urls |= {
                name: server.base_url for name, server in self._servers.items()
            }
            contexts = probe(
                connected(models, self._base_urls),
                self.log.directory,
                first_requests(
                    self.plugins,
                    [cell for cell in cells if cell[0].model in models],
                    self.settings.seed,
                ),
                timeout=self.settings.calls.patience.request,
                counts=self.settings.calls.limits.counts_tokens,
            )
            self._warn_of_contexts(cells, models, contexts)
        except BaseException:
            directory = self.log.directory
            servers, self._servers = self._servers, {}
            stop_after_failure(servers, self._tell)
            self.close()
            self._forget(directory)
            raise

    def _warn_of_contexts(
        self,
        cells: Sequence[Cell],
        models: Mapping[str, LanguageModel],
        contexts: Mapping[str, int],
    ) -> None:
        """Warn in one line of each model whose longest prompt exceeds its server's
        context.
        """
        for name, context in contexts.items():
            found = [
                (rehearse(self.plugins, plan, specification, models[name])[1], plan)
                for plan, specification in cells
                if plan.model == name
            ]
            longest, plan = max(found, key=lambda one: one[0])
            if short := too_short(plan, longest, context):
                self._tell(f"WARNING: {short}")

    def _forget(self, directory: Path) -> None:
        """Remove the directory of a new run that could not begin, unless something has
        left a log there.
        """
        if (
            self._existing is None
            and not self.is_worker
            and not any(directory.glob("*.log"))
        ):
            shutil.rmtree(directory, ignore_errors=True)

    def start(self, cells: Sequence[Cell]) -> None:
        assert self.log is not None
        settings, cells = self.settings, self._with_goals(cells)
        if settings.language:
            self._language = LanguageModels(
                self.log, self._models(), self._call_options(), self.source
            )
        self._runner = RunSession(
            self.log,
            self.plugins,
            cells,
            seed=settings.seed,
            processes=self._processes(),
            executor=settings.executor,
            executor_options=settings.executor_options,
            language=self._language,
            judge=judge_set,
            ahead=settings.ahead,
        )
        try:
            self._runner.connect()
        except BaseException:
            directory = self.log.directory
            self.close()
            self._forget(directory)
            raise
        if not self.is_worker:
            self._runner.start()

    def _models(self) -> dict[str, LanguageModel]:
        return connected(self.settings.language, self._base_urls)

    def _call_options(self) -> CallOptions:
        return self.settings.calls

    def _processes(self) -> int | None:
        return self.settings.processes

    def plans(
        self,
        specification: BaseSpecification,
        model: str,
        views: tuple[str, ...] | None = None,
    ) -> list[CellPlan]:
        """Return the plans of all cells of a model on a protocol, in the views of the
        settings or in these.

        Raises UnsuitableError if it cannot be run on it, PluginError if its family is
        wrong.
        """
        settings = self.settings
        request = CellRequest(
            model=model,
            plugins=self.plugins,
            design=settings.designs[model],
            language=settings.language.get(model),
            views=settings.views if views is None else views,
            controls=settings.controls,
            study=settings.study,
            temperatures=settings.temperatures,
            subjects=settings.values["subjects"],
            against=settings.against,
        )
        return cells_of(specification, request)

    def as_logged(self, plan: CellPlan) -> CellPlan:
        """Return the plan of a cell as the run has it: a resumed run is judged by what
        it was started with.
        """
        assert self.log is not None
        return next(
            (known for known in self.log.plans() if known.key == plan.key), plan
        )

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to run."""
        log = self.log
        return log is not None and all(
            is_finished(log, plan, judge_set) for plan in log.plans()
        )

    def is_over(self, plan: CellPlan) -> bool:
        assert self._runner is not None
        try:
            return self._runner.wait(plan, 0)
        except Exception:  # reported where the cell is awaited
            return True

    def progress(self, plan: CellPlan) -> Progress:
        assert self._runner is not None
        return self._runner.progress(plan)

    def wait(self, plan: CellPlan, waiting: Callable[[Progress], None]) -> None:
        """Wait until a cell is finished; ``waiting`` is called every SLICE seconds
        until it is.
        """
        assert self._runner is not None
        try:
            while not self._runner.wait(plan, SLICE):
                waiting(self._runner.progress(plan))
                self.mention_silence()
            self.mention_news()
        except KeyboardInterrupt:
            self.stop_sending()
            raise

    def stop_sending(self) -> None:
        """Make no further calls: the session is ending, and unsent calls cost
        nothing.
        """
        if self._runner is not None:
            self._runner.stop_sending()

    def mention_silence(self) -> None:
        """Write a line when no reply has come for a minute, and repeat it while that
        lasts.
        """
        self.mention_news()
        assert self._runner is not None
        model, seconds, fault = self._runner.silence() or ("", 0.0, "")
        if seconds < SILENCE:
            self._silence_said = 0.0
        elif seconds >= self._silence_said + (REMINDER if self._silence_said else 0.0):
            self._silence_said = seconds
            said = f" ({fault})" if fault else ""
            self._tell_at_once(
                f"cheesebench: no reply from '{model}' for {seconds:.0f} s{said}; waiting up to "
                f"{self.settings.calls.patience.request:g} s for each, or as long as a server says that it writes "
                "(--cheese-timeout; --reply-tokens makes replies shorter)."
            )

    def mention_news(self) -> None:
        """Write a line for every model server that has died or come back."""
        for line in self._language.news() if self._language is not None else ():
            self._tell_at_once(f"cheesebench: {line}")

    def _tell_at_once(self, line: str) -> None:
        self._tell(line)

    def trials_by_subject(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        assert self.log is not None
        return self.log.trials_by_subject(plan)

    def calls(self, plan: CellPlan) -> CellCalls | None:
        assert self.log is not None
        return self.log.calls.of_cell(plan)

    def causes(self, plan: CellPlan) -> tuple[str, ...]:
        assert self.log is not None
        return self.log.causes(plan).get(plan.key, ())

    def stop(self) -> None:
        """Stop running; finished trials stay in the log."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def close(self) -> None:
        self.stop()
        servers, self._servers = self._servers, {}
        try:
            stop_servers(servers)
        finally:
            if self.log is not None:
                self.log.close()
                self.log = None
            if self._lock is not None:
                self._lock.close()
                self._lock = None
            if self.source is not None:
                self.source.close()


def _replayed(given: Sequence[str]) -> str | None:
    """Return the run that ``--model replay:RUN`` names, None without it."""
    runs = [name.partition(":")[2] for name in given if name.startswith("replay:")]
    if not runs:
        return None
    if len(given) > 1 or not runs[0]:
        raise OptionError(
            f"--model {','.join(given)}: give 'replay:RUN' alone, with one run."
        )
    return runs[0]


def summarise_log(log: RunLog, *, finished_only: bool | None = None) -> RunSummary:
    """Judge a run.

    With ``finished_only`` (default: if a session is running it) only its finished cells
    are judged, and the summary's manifest says how many those are: trials of a running
    cell are not missing yet.
    """
    plans, manifest = log.plans(), log.manifest
    if is_claimed(log.path) if finished_only is None else finished_only:
        finished = [plan for plan in plans if is_finished(log, plan, judge_set)]
        manifest = {
            **manifest,
            "in_progress": f"{len(finished)} of {plural(len(plans), 'cell')}",
        }
        plans = finished
    return summarise_subjects(
        manifest,
        plans,
        log.trials_by_subject,
        log.calls.by_cell(),
        log.causes(),
        log.remarks,
    )


def summarise_logs(logs: Sequence[RunLog]) -> RunSummary:
    """Judge the cells of several runs as if they were of one run.

    Raises OptionError unless all are whole, their rules are equal, and every model is
    in one of them only.
    """
    owner: dict[CellKey, RunLog] = {}
    rules: dict[str, tuple[object, RunLog]] = {}
    for log in logs:
        check_calls(log)
        for plan in log.plans():
            if not is_finished(log, plan, judge_set):
                raise OptionError(
                    f"{log.path} is not whole: {plan.label} ({plan.model}) is not finished. Leave it out."
                )
            if plan.key in owner:
                raise OptionError(
                    f"{owner[plan.key].path} and {log.path} both have {plan.model} on {plan.label} in {plan.view}. "
                    "Leave one of them out."
                )
            owner[plan.key] = log
            rule = (plan.sha256, plan.trials, plan.estimand, plan.design, plan.margin)
            known, first = rules.setdefault(plan.protocol, (rule, log))
            if rule != known:
                raise OptionError(
                    f"{plan.protocol} has other rules in {log.path} than in {first.path} (protocol, design, trials or "
                    "margin). Their results cannot be compared: leave one of them out."
                )
    calls = {key: one for log in logs for key, one in log.calls.by_cell().items()}
    causes = {key: one for log in logs for key, one in log.causes().items()}
    manifest = {
        "run_id": ", ".join(str(log.manifest["run_id"]) for log in logs),
        "protocols": {
            name: text
            for log in logs
            for name, text in log.manifest["protocols"].items()
        },
        "options": {
            "seed": ", ".join(str(log.manifest["options"].get("seed")) for log in logs)
        },
    }
    plans = [plan for log in logs for plan in log.plans()]
    return summarise_subjects(
        manifest,
        plans,
        lambda plan: owner[plan.key].trials_by_subject(plan),
        calls,
        causes,
        lambda plan: owner[plan.key].remarks(plan),
    )


#: Seconds for which a poll stays valid: each one reads the log.
FRESH = 1.0
#: Seconds of running before which no estimate is shown.
EARLY = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a run is at one moment."""

    decided: int
    cells: int
    verdicts: Counter[Verdict]
    trials: int
    """Trials that are written."""
    share: float
    """Part of the planned trials that is written, 0 to 1; sets that are still to come
    are not planned.
    """
    cost: float
    """Dollars so far."""
    left: float | None
    """Dollars left of the budget; None without one."""
    seconds: tuple[float, float] | None
    """Seconds left at this pace: for the trials of the present sets, and if no cell is
    decided before its last subject; None while that is unknown.
    """


class Tally:
    """Counts the verdicts of cells as they are decided; each is judged once."""

    def __init__(self, run: ModelRun, plans: Sequence[CellPlan]) -> None:
        self._run = run
        self._waiting = list(plans)
        self.cells = len(self._waiting)
        self._verdicts: Counter[Verdict] = Counter()
        self._done: Counter[str] = Counter()
        self._begun = time.monotonic()
        self._first: float | None = None
        self._latest: tuple[float, Standing] | None = None

    def poll(self, fresh: bool = False) -> Standing:
        """Return how far the run is, at most FRESH seconds ago (``fresh``: now)."""
        now = time.monotonic()
        if fresh or self._latest is None or now - self._latest[0] > FRESH:
            self._latest = now, self._count(now)
        return self._latest[1]

    def _count(self, now: float) -> Standing:
        run = self._run
        for plan in [plan for plan in self._waiting if run.is_over(plan)]:
            self._waiting.remove(plan)
            lives = run.trials_by_subject(plan)
            self._verdicts[judge_sample(plan, draw_sample(plan, lives)).verdict] += 1
            progress = run.progress(plan)
            self._done.update(done=progress.done, planned=progress.done)
        open_ones = [run.progress(plan) for plan in self._waiting]
        done = self._done["done"] + sum(one.done for one in open_ones)
        planned = self._done["planned"] + sum(
            max(one.done, one.planned) for one in open_ones
        )
        if self._first is None:
            self._first = done  # those of earlier sessions do not count for the pace
        share = done / planned if planned else 0.0
        gained, spent = done - self._first, now - self._begun
        to_come = sum(one.to_come for one in open_ones)
        seconds = (
            (spent / gained * (planned - done), spent / gained * to_come)
            if gained > 0 and spent > EARLY and self._waiting
            else None
        )
        assert run.log is not None
        cost = run.log.calls.totals().cost if run.settings.language else 0.0
        most = run.settings.calls.limits.cost
        return Standing(
            decided=self.cells - len(self._waiting),
            cells=self.cells,
            verdicts=self._verdicts,
            trials=done,
            share=share,
            cost=cost,
            left=None if most is None else max(0.0, most - cost),
            seconds=seconds,
        )

    @property
    def unreadable(self) -> str:
        """``7 of 8 replies unreadable``; empty while all of them name an action."""
        language = self._run._language
        unreadable, read = (0, 0) if language is None else language.unreadable
        return f"{unreadable} of {read} replies unreadable" if unreadable else ""

    def line(self, fresh: bool = False) -> str:
        """Return all that as a line: ``4 of 9 cells: 3 PASS, 1 FAIL; $0.12, $4.88 left;
        61 %, about 2 min left``.
        """
        now = self.poll(fresh)
        counts = ", ".join(
            f"{now.verdicts[verdict]} {verdict}"
            for verdict in Verdict
            if now.verdicts[verdict]
        )
        parts = [f"{now.decided} of {now.cells} cells{': ' if counts else ''}{counts}"]
        parts += filter(None, [self.unreadable])
        if now.cost or now.left is not None:
            parts.append(
                f"${now.cost:.2f}"
                + ("" if now.left is None else f", ${now.left:.2f} left")
            )
        if now.decided < now.cells:
            left = "" if now.seconds is None else f", {time_left(*now.seconds)} left"
            parts.append(f"{now.share:.0%}{left}".replace("%", " %"))
        return "; ".join(parts)


def time_left(least: float, most: float) -> str:
    """Return ``about 40 s``, or ``40 s to 12 min`` where more sets may come."""
    few, many = duration(least), duration(most)
    return f"about {few}" if few == many or most <= least else f"{few} to {many}"


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
