"""The settings of a run, resolved once: from the command line (or the arguments of a
call), a profile, the manifest of an earlier run, a study, and the defaults.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.chat import check_address
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment import cells, executors
from cheesebench.experiment.calling import Limits, Patience
from cheesebench.experiment.controls import check_control
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.provenance import (
    SEED_DRAWN,
    check_run_id,
    draw_seed,
    recorded_options,
)
from cheesebench.experiment.shards import Shard
from cheesebench.family import CellRequest, Design, LanguageModel, Study
from cheesebench.files import read_bytes
from cheesebench.frozen import FrozenSet, frozen_set
from cheesebench.models import resolve_model, user_models
from cheesebench.options import BY_KEY, OPTIONS, Option
from cheesebench.protocol import SUFFIX
from cheesebench.published import check_against
from cheesebench.records import PERSON
from cheesebench.redaction import quoted, redactor

if TYPE_CHECKING:
    from cheesebench.chat import ModelEntry
    from cheesebench.experiment.earlier import Earlier
    from cheesebench.plugin_manager import PluginManager


class Origin(StrEnum):
    """The origin of a value."""

    GIVEN = "given"
    PROFILE = "profile"
    MANIFEST = "manifest"
    STUDY = "study"
    SET = "set"
    BASELINE = "baseline"
    DEFAULT = "default"


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionValues:
    """The value of every option, under its key (``cheesebench.options``).

    None, or an empty list, for an option with neither a value nor a default.
    """

    model: list[str] | None
    view: list[str] | None
    protocols: list[str] | None
    edition: str
    set: str | None
    study: str | None
    design: str | None
    familywise: bool
    subjects: int | None
    ahead: str
    against: str | None
    seed: int | None
    shard: str | None
    agent: str
    history: str | None
    actions: int | None
    prompt: str | None
    temperature: list[Any] | None
    top_p: float | None
    reasoning_effort: str | None
    reply_tokens: int | None
    agent_option: list[str] | None
    backend_option: list[str] | None
    base_url: list[str] | str | None
    models: str | None
    control: Sequence[str]
    max_cost: float | None
    max_tokens: int | None
    max_minutes: float | None
    concurrency: int
    timeout: float
    trial_timeout: float
    retries: int
    retry_errors: bool
    resume: str | None
    run_id: str | None
    results: str
    executor: str | None
    executor_option: list[str] | None
    processes: int | None
    markdown: str | None
    html: str | None
    profile: str | None
    compare: str | None
    compare_fail: str | None
    inconclusive: str
    film: bool
    exit_zero: bool

    @property
    def temperatures(self) -> list[Any]:
        """Temperatures, or ``"none"``, without duplicates."""
        return list(dict.fromkeys(as_list(self.temperature)))


@dataclass(frozen=True)
class Given:
    """The options of one run as they were given, by key (``cheesebench.options``)."""

    values: Mapping[str, Any]
    """None, or no entry, for an option that was not given."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """How options were spelled by the user; without an entry, ``--NAME``."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """The options in the manifest of the resumed or replayed run."""
    origin: str = ""
    """The option that names that run, as it was given."""
    made_here: bool = True
    """Whether this user made that run on this machine
    (``cheesebench.experiment.provenance``).
    """
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Sources of the values that were not typed."""

    def spelling(self, key: str) -> str:
        """Return the spelling of an option that the user used."""
        return self.spellings.get(key, BY_KEY[key].short)

    def continuing(self, earlier: Earlier) -> Given:
        """Return these options, completed with those of the resumed or replayed run,
        which they must not contradict.
        """
        if earlier.recorded is None:
            return self
        key = "resume" if earlier.replayed is None else "model"
        named = as_list(self.values.get(key))
        values = {**self.values, "model": None} if key == "model" else self.values
        return replace(
            self,
            values=values,
            recorded=earlier.recorded,
            origin=f"{self.spelling(key)} {_shown(named)}",
            made_here=earlier.made_here,
        )

    def filled_in(self, origin: Origin, **values: Any) -> Given:
        """Return the options with these values for those that were not given."""
        new = {
            key: value
            for key, value in values.items()
            if value is not None and self.values.get(key) is None
        }
        return replace(
            self,
            values={**self.values, **new},
            origins={**self.origins, **dict.fromkeys(new, origin)},
        )

    def check(self) -> None:
        """Raise OptionError for a number that makes no sense, and for an API key, which
        would be recorded.
        """
        # A stranger's run may use its own names, but must not read files of this
        # machine.
        for key in ("prompt", "study"):
            name = str(self.recorded.get(key) or "x")
            if not name.replace("_", "").replace("-", "").isalnum():
                self._refuse_recorded(key)
        redacted = redactor()
        for option in OPTIONS:
            value = self.values.get(option.key)
            if value is None:
                continue
            spelling = self.spelling(option.key)
            if any(redacted(text) != text for text in map(str, as_list(value))):
                raise OptionError(
                    f"{spelling} contains a key, and would be recorded. Put the key in an environment "
                    "variable, which --backend-option api_key_env=NAME names."
                )
            _check_number(option, value, spelling)

    def resolve(self) -> OptionValues:
        """Return the value of every option. Raises OptionError for one that contradicts
        the resumed run.
        """
        return OptionValues(**{option.key: self._value(option) for option in OPTIONS})

    def _value(self, option: Option) -> Any:
        given = self._given(option)
        is_known = option.recorded and option.key in self.recorded
        recorded = self.recorded[option.key] if is_known else None
        if given is None:
            return recorded if is_known else _default(option)
        if not is_known or option.overridable or given == recorded:
            return given
        if isinstance(given, list) and set(given) <= set(as_list(recorded)):
            return given
        raise self._contradiction(self.spelling(option.key), given, recorded)

    def _contradiction(self, spelling: str, given: Any, recorded: Any) -> OptionError:
        made = f"with {spelling} {_shown(recorded)}"
        if recorded is None:
            made = f"without {spelling}"
        return OptionError(
            f"{self.origin}: that run was made {made}, not {_shown(given)}. Remove "
            f"{spelling}, or start a new run."
        )

    def _given(self, option: Option) -> Any:
        value = self.values.get(option.key)
        if option.flag:
            return value or None
        if value is None or not option.commas:
            return value
        # Split at commas; drop duplicates, keep the order.
        names = (name.strip() for part in value for name in part.split(","))
        return list(dict.fromkeys(filter(None, names)))

    def origin_of(self, option: Option) -> Origin:
        if self._given(option) is not None:
            return self.origins.get(option.key, Origin.GIVEN)
        is_known = option.recorded and self.recorded.get(option.key) is not None
        return Origin.MANIFEST if is_known else Origin.DEFAULT

    def check_trusted(self) -> None:
        """Raise OptionError if a stranger's run would decide what is started, what is
        called, or where a key goes.
        """
        for option in OPTIONS:
            if option.trusted_only:
                self._refuse_recorded(option.key)

    def _refuse_recorded(self, key: str) -> None:
        recorded = self.recorded.get(key)
        if recorded and self.values.get(key) is None and not self.made_here:
            raise OptionError(
                f"{self.origin}: that run was not made by you on this machine, so {self.spelling(key)} "
                f"{quoted(_shown(recorded), 120)} is not used. Give the option again if you trust it."
            )


def _default(option: Option) -> Any:
    return False if option.flag else option.default


def _check_number(option: Option, value: Any, spelling: str) -> None:
    if option.minimum is not None and value < option.minimum:
        raise OptionError(f"{spelling} {value}: the minimum is {option.minimum}.")
    if option.positive and not 0 < value < math.inf:
        finite = "finite " if value == math.inf else ""
        raise OptionError(f"{spelling} {value}: give a {finite}number above 0.")


def as_list(value: Any) -> list[Any]:
    """Return the value of an option as a list; None becomes an empty one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    """The settings that determine the cells of a run."""

    models: tuple[str, ...]
    language: Mapping[str, LanguageModel]
    """The language models among ``models``, by name."""
    designs: Mapping[str, Design]
    """By model, because language models and agents have different default designs."""
    views: tuple[str, ...]
    protocols: tuple[str, ...]
    """Names, files or directories, as given; empty for the default selection."""
    edition: str
    named_edition: str | None
    """The edition that was given. Without one, a directory gives all its editions."""
    directory: Path
    """Directory that relative paths start from."""
    controls: tuple[str, ...]
    study: Study | None
    temperatures: tuple[float, ...]
    """As given; only dialogues use several."""
    subjects: int | None
    against: str | None
    """Published model that the run is shown beside."""
    familywise: bool
    """Whether verdicts hold for all cells of a model together."""

    @property
    def design(self) -> str:
        return ", ".join(dict.fromkeys(design.name for design in self.designs.values()))

    def request(
        self, plugins: PluginManager, model: str, views: tuple[str, ...] | None = None
    ) -> CellRequest:
        """Return the request for a model's cells, in these views or those of the
        settings.
        """
        return CellRequest(
            model=model,
            plugins=plugins,
            design=self.designs[model],
            language=self.language.get(model),
            views=self.views if views is None else views,
            controls=self.controls,
            study=self.study,
            temperatures=self.temperatures,
            subjects=self.subjects,
            against=self.against,
        )


@dataclass(frozen=True, kw_only=True)
class Settings(CellSettings):
    """The settings of a run, from any source."""

    seed: int
    seed_drawn: bool
    """Whether the seed was drawn. A typed seed is public, and so are all worlds of the
    run.
    """
    shard: Shard | None
    """The part of the cells to run; None for all."""
    resume: str | None
    run_id: str | None
    results: Path
    processes: int | None
    executor: str
    executor_options: Mapping[str, str]
    markdown: Path | None
    html: Path | None
    film: bool
    """Whether every FAIL shows a failed trial."""
    inconclusive_fails: bool
    exit_zero: bool
    calls: CallOptions
    ahead: bool
    """Whether subjects of the next set may start early if that costs nothing."""
    recorded: Mapping[str, Any]
    """The options that affect the results, in the form of the manifest."""
    origins: Mapping[str, Origin]
    """The origin of each option's value, by key."""

    @property
    def seed_text(self) -> str:
        """The seed, and its origin."""
        origin = self.origins.get("seed", Origin.GIVEN)
        where = "typed" if origin is Origin.GIVEN else f"from the {origin}"
        return f"{self.seed} ({'drawn' if self.seed_drawn else where})"

    @property
    def origins_text(self) -> list[str]:
        """Origins other than the command line: ``from the profile: --subjects``."""
        elsewhere = (
            Origin.PROFILE,
            Origin.STUDY,
            Origin.SET,
            Origin.MANIFEST,
            Origin.BASELINE,
        )
        named = {
            origin: [
                BY_KEY[key].short for key, one in self.origins.items() if one is origin
            ]
            for origin in elsewhere
        }
        return [
            f"from the {origin}: {', '.join(names)}"
            for origin, names in named.items()
            if names
        ]


def cell_settings(
    given: Given, plugins: PluginManager, directory: Path
) -> CellSettings:
    """Return the settings for the cells of a run with these options; paths are relative
    to ``directory``.
    """
    given.check()
    given, study = _completed(given, plugins, directory)
    return _cell_settings(given, given.resolve(), plugins, directory, study)


def _completed(
    given: Given, plugins: PluginManager, directory: Path
) -> tuple[Given, Study | None]:
    """Return the options, completed with those of a frozen set and of a study, and the
    study.
    """
    values = given.resolve()
    if values.set is not None:
        given = with_set(given, frozen_set(values.set), plugins, values.agent)
    if not values.study:
        return given, None
    study = cells.find_study(values.study, directory)
    return _with_study(given, study), study


def _cell_settings(
    given: Given,
    values: OptionValues,
    plugins: PluginManager,
    directory: Path,
    study: Study | None,
    replayed: Mapping[str, LanguageModel] | None = None,
    usual_protocols: Sequence[str] = (),
) -> CellSettings:
    models = _models(given, values, study, plugins)
    language = replayed
    if language is None:
        file = directory / values.models if values.models else None
        language = language_models(plugins, models, given, values, user_models(file))
    if study:
        cells.check_study(study, language, tuple(models))
    designs = _designs(values, models, language)
    for control in values.control:
        check_control(control, directory / values.results)
    return CellSettings(
        models=tuple(models),
        language=language,
        designs=designs,
        views=tuple(dict.fromkeys(values.view or _views_of(designs.values()))),
        protocols=tuple(values.protocols or usual_protocols),
        edition=values.edition,
        named_edition=given.values.get("edition"),
        directory=directory,
        controls=tuple(values.control),
        study=study,
        temperatures=tuple(t for t in values.temperatures if t != "none"),
        subjects=values.subjects,
        against=values.against,
        familywise=values.familywise,
    )


def _models(
    given: Given, values: OptionValues, study: Study | None, plugins: PluginManager
) -> Sequence[str]:
    """Return the given models, or else those of the study. Raises OptionError if there
    is none.
    """
    if models := values.model or (study.models if study else ()):
        return models
    if study:
        raise OptionError(
            f"{given.spelling('study')} {values.study} has no models of its own: add --model NAME."
        )
    raise OptionError(
        f"--model is empty. Models are {', '.join(sorted(plugins.agents))}."
    )


def _views_of(designs: Iterable[Design]) -> list[str]:
    return [view for design in designs for view in design.views]


def _designs(
    values: OptionValues, models: Sequence[str], language: Mapping[str, LanguageModel]
) -> dict[str, Design]:
    gates = bool(values.compare)
    return {
        model: cells.find_design(
            values.design or cells.usual_design(model in language, gates),
            values.subjects,
        )
        for model in models
    }


def with_set(
    given: Given, frozen: FrozenSet, plugins: PluginManager, agent: str
) -> Given:
    """Return the options, completed from a frozen set: its protocols and view, and its
    settings whose defaults have changed. Raises OptionError.
    """
    if given.values.get("edition") not in (None, BY_KEY["edition"].default):
        raise OptionError(
            f"A set has its protocols' editions: remove --edition, or --set {frozen.name}."
        )
    named = given.values.get("protocols") or sorted(frozen.protocols)
    changed = _changed_defaults(frozen, plugins.model_agent(agent).settings)
    options = {option.setting: option.key for option in OPTIONS if option.setting}
    own = {options[name]: changed[name] for name in changed if name in options}
    typed = as_list(given.values.get("agent_option"))
    known = {one.partition("=")[0] for one in typed} | set(options)
    rest = [f"{name}={changed[name]}" for name in sorted(set(changed) - known)]
    values = {**given.values, "protocols": _files_in(frozen, named)}
    if rest:
        values["agent_option"] = [*typed, *rest]
    return replace(given, values=values).filled_in(
        Origin.SET, view=list(frozen.views), **own
    )


def _changed_defaults(frozen: FrozenSet, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the set's settings that differ from an agent's present defaults."""
    return {
        name: value
        for name, value in frozen.settings.items()
        if defaults.get(name, value) != value
    }


def _files_in(frozen: FrozenSet, named: Iterable[str]) -> list[str]:
    """Return the set's files for protocols given by name. Files (twins, say) stay
    unchanged. Raises UnknownNameError.
    """
    return [_file_in(frozen, name) for part in named for name in part.split(",")]


def _file_in(frozen: FrozenSet, name: str) -> str:
    if name in frozen.protocols:
        return str(frozen.folder / f"{name}{SUFFIX}")
    if name.endswith(SUFFIX) or Path(name).exists():
        return name
    raise UnknownNameError(f"protocol of the set {frozen.name}", name, frozen.protocols)


def _with_study(given: Given, study: Study) -> Given:
    """Return the options, completed with the study's values."""
    # --subjects asks for whole schedules, which is the design cohort; a study's own
    # design has one subject.
    own = study.design if given.values.get("subjects") is None else "cohort"
    if given.recorded.get("design"):
        own = given.recorded["design"]  # the design of the resumed run
    return given.filled_in(Origin.STUDY, design=own, view=list(study.views) or None)


def read_settings(
    given: Given,
    plugins: PluginManager,
    directory: Path,
    earlier: Earlier | None = None,
    usual_protocols: Sequence[str] = (),
) -> Settings:
    """Return the settings; raises CheeseBenchError for contradictory or invalid
    options.

    Paths are relative to ``directory``; ``usual_protocols`` are run if none are given.
    """
    if earlier is not None:
        given = given.continuing(earlier)
    replayed = None if earlier is None else earlier.replayed
    given.check()
    given, study = _completed(given, plugins, directory)
    values = given.resolve()
    which = _cell_settings(
        given, values, plugins, directory, study, replayed, usual_protocols
    )
    calls = call_options(values)
    if replayed is None:  # a replay costs nothing
        check_prices(calls.limits, which.language.values())
    for model in which.models:
        cells.check_views(
            model, which.language.get(model), map(plugins.view, which.views)
        )
    if which.against is not None:
        check_against(which.against)
    _check_names(given, values)
    seed, seed_drawn = _seed(given, values)
    executor = plugins.executor(values.executor or executors.DEFAULT_EXECUTOR)
    executor_options = _pairs(given, "executor_option", values.executor_option)
    executors.check_options(executor, executor_options)
    return Settings(
        **vars(which),
        seed=seed,
        seed_drawn=seed_drawn,
        shard=Shard.parse(values.shard) if values.shard else None,
        resume=values.resume,
        run_id=values.run_id,
        results=directory / values.results,
        processes=values.processes,
        executor=executor.name,
        executor_options=executor_options,
        markdown=_report_file(directory, given, "markdown", values.markdown),
        html=_report_file(directory, given, "html", values.html),
        film=values.film,
        inconclusive_fails=values.inconclusive == "fail",
        exit_zero=values.exit_zero,
        calls=calls,
        ahead=values.ahead == "auto",
        recorded=_recorded(values, which, seed, seed_drawn),
        origins={option.key: given.origin_of(option) for option in OPTIONS},
    )


def _recorded(
    values: OptionValues, which: CellSettings, seed: int, seed_drawn: bool
) -> Mapping[str, Any]:
    designs = {design.name for design in which.designs.values()}
    resolved = replace(
        values,
        model=list(which.models),
        view=list(which.views),
        # Language models and agents may have different designs.
        design=designs.pop() if len(designs) == 1 else values.design,
        seed=seed,
        study=which.study.name if which.study else None,
    )
    return {**recorded_options(asdict(resolved)), SEED_DRAWN: seed_drawn}


def _check_names(given: Given, values: OptionValues) -> None:
    if values.resume is not None and values.run_id is not None:
        raise OptionError(
            f"{given.spelling('resume')} and {given.spelling('run_id')} cannot be combined: a resumed run keeps "
            "its name. Remove one."
        )
    for name in (values.run_id, values.resume):
        if name is not None:
            check_run_id(name)


def _seed(given: Given, values: OptionValues) -> tuple[int, bool]:
    """Return the seed of the run, and whether it was drawn (now, or when the run was
    started).
    """
    if values.seed is not None:
        return values.seed, bool(given.recorded.get(SEED_DRAWN))
    if values.shard:
        raise OptionError(
            f"{given.spelling('shard')} needs {given.spelling('seed')} N, the same for all shards."
        )
    return draw_seed(), True


def _report_file(
    directory: Path, given: Given, key: str, name: str | None
) -> Path | None:
    if name is None:
        return None
    path = directory / name
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OptionError(
            f"{given.spelling(key)} {name} cannot be written. Name a file in a directory that exists."
        )
    return path


def language_models(
    plugins: PluginManager,
    names: Sequence[str],
    given: Given,
    values: OptionValues,
    entries: Iterable[ModelEntry] = (),
) -> dict[str, LanguageModel]:
    """Return those of ``names`` that are language models, whose servers may be called.

    Raises CheeseBenchError for a name that is neither agent nor model, for options that
    have no meaning here, and for a stranger's run that would decide where calls go.
    """
    settings = _agent_settings(plugins, given, values)
    served = {"top_p": values.top_p, "reasoning_effort": values.reasoning_effort}
    url = cells.one_address(values.base_url)
    if url is not None:
        check_address(url, query=True)
    backend_options = _pairs(given, "backend_option", values.backend_option)
    entries = tuple(entries)
    models = {
        name: cells.language_model(
            plugins,
            _entry(plugins, name, entries),
            agent=values.agent,
            settings=settings,
            served={key: value for key, value in served.items() if value is not None},
            base_url=url,
            options=backend_options,
        )
        for name in names
        if not (name in plugins.agents or name in plugins.respondents)
    }
    if url:
        _check_one_backend(url, models.values())
    if models:
        given.check_trusted()
    else:
        _check_no_model_option(names, given, values)
    return models


def _check_one_backend(url: str, models: Iterable[LanguageModel]) -> None:
    """Raise OptionError if the key of one backend would go to the server of another."""
    used = {model.entry.backend for model in models}
    if len(used) > 1:
        raise OptionError(
            f"--base-url {url}: the models use different backends ({', '.join(sorted(used))}), so one "
            "server cannot serve all of them. Run them one after another."
        )


def _check_no_model_option(
    names: Sequence[str], given: Given, values: OptionValues
) -> None:
    """Raise OptionError for an option that only applies to language models, if there is
    none.
    """
    for option in OPTIONS:
        value = getattr(values, option.key)
        if option.models_only and value not in (None, [], False, option.default):
            raise OptionError(
                f"{given.spelling(option.key)} applies only to language models, and {', '.join(names)} is not one. "
                "Remove it."
            )


def _entry(
    plugins: PluginManager, name: str, entries: Iterable[ModelEntry]
) -> ModelEntry:
    try:
        return resolve_model(plugins, name, entries)
    except UnknownNameError:
        if name == PERSON:
            raise OptionError(
                f"--model {name}: people are run by 'cheesebench people --protocols NAME'."
            ) from None
        raise


def _agent_settings(
    plugins: PluginManager, given: Given, values: OptionValues
) -> dict[str, Any]:
    """Return the settings of the agent that asks the models: the user's own, then the
    design's.
    """
    settings: dict[str, Any] = {
        option.setting: getattr(values, option.key)
        for option in OPTIONS
        if option.setting
    }
    temperatures = values.temperatures
    if "none" in temperatures and len(temperatures) > 1:
        raise OptionError(
            f"{given.spelling('temperature')} none: give 'none' alone, without other temperatures."
        )
    # Each cell has one of several temperatures; checks look at the first.
    settings["temperature"] = next(iter(temperatures), None)
    if values.prompt is not None:
        settings["prompt"] = _prompt(values.prompt)
    settings |= _pairs(given, "agent_option", values.agent_option)
    usual = _settings_of_design(plugins, values)
    missing = [name for name in usual if settings.get(name) is None]
    return settings | {name: usual[name] for name in missing}


def _settings_of_design(
    plugins: PluginManager, values: OptionValues
) -> Mapping[str, Any]:
    """Return the design's settings that the agent has."""
    if values.agent not in plugins.model_agents:
        return {}
    own = plugins.model_agent(values.agent).settings
    usual = cells.find_design(values.design or cells.usual_design(True)).settings
    return {name: value for name, value in usual.items() if name in own}


#: Maximum size in bytes of a prompt from a file.
_PROMPT_BYTES = 64 * 1024


def _prompt(name: str) -> str:
    """Return the name of a prompt unchanged, or the text of a file for what looks like
    one (``my.txt``, ``./mine``).
    """
    path = Path(name)
    if not path.suffix and path.name == name:
        return name
    try:
        text = read_bytes(path, _PROMPT_BYTES + 1).decode()
    except (OSError, ValueError) as error:
        # ValueError: the text is not UTF-8, or the path is impossible.
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise OptionError(
            f"--prompt {name} cannot be read: {reason}. Name a text file."
        ) from None
    if len(text.split()) < 2 or len(text.encode()) > _PROMPT_BYTES:
        raise OptionError(
            f"--prompt {name}: a prompt must have more than one word and at most {_PROMPT_BYTES} bytes."
        )
    return text.strip()


def _pairs(given: Given, key: str, texts: Sequence[str] | None) -> dict[str, str]:
    """Return an option of the form ``NAME=VALUE`` as a mapping."""
    mapping = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise OptionError(
                f"{given.spelling(key)} {text}: expected NAME=VALUE, for example seed=1."
            )
        mapping[name.strip().replace("-", "_")] = value.strip()
    return mapping


def call_options(values: OptionValues) -> CallOptions:
    """Return the timeouts, retries, concurrency and budget of the run's calls."""
    return CallOptions(
        concurrency=values.concurrency,
        patience=Patience(
            request=values.timeout,
            trial=values.trial_timeout,
            retries=values.retries,
        ),
        limits=Limits(
            cost=values.max_cost,
            tokens=values.max_tokens,
            minutes=values.max_minutes,
        ),
        retry_errors=values.retry_errors,
    )


def check_prices(limits: Limits, models: Iterable[LanguageModel]) -> None:
    """Raise OptionError for a limit in dollars if a model has no known price."""
    for model in models:
        if limits.cost is not None and model.entry.price is None:
            raise OptionError(
                f"--max-cost {limits.cost:g}: no price is known for '{model.entry.name}', so its cost cannot be "
                "limited. Give --max-tokens instead, or a price in a file of models (--models)."
            )
