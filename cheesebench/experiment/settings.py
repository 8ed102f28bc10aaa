"""The settings of a run. They are resolved once, from the command line (or the
arguments of a call), pytest's ini file, a profile, the manifest of an earlier run, a
frozen set, a study, a baseline, and the defaults.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.chat import check_address
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment import cells, controls, executors
from cheesebench.experiment.calling import Limits, Patience
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.provenance import (
    SEED_DRAWN,
    check_name,
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
    from cheesebench.interfaces import BaseSpecification
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import Catalogue
    from cheesebench.records import CellPlan


class Origin(StrEnum):
    """Where the value of an option comes from."""

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

    An option with neither a value nor a default has None (a flag: False).
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
    def temperatures(self) -> tuple[float, ...]:
        """The given temperatures, without duplicates and without ``none``, which leaves
        the choice to the server. Only dialogues use more than one.
        """
        given = dict.fromkeys(as_list(self.temperature))
        return tuple(one for one in given if one != "none")


@dataclass(frozen=True)
class Given:
    """The options of one run as they were given, by key (``cheesebench.options``)."""

    values: Mapping[str, Any]
    """The given values. The value of an option that was not given is None, or absent.
    """
    spellings: Mapping[str, str] = field(default_factory=dict)
    """How the user spelled options. An option without an entry was spelled
    ``--NAME``.
    """
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """The options in the manifest of the resumed or replayed run. There are none
    without such a run.
    """
    origin: str = ""
    """The option that names the resumed or replayed run, as it was given."""
    made_here: bool = True
    """Whether this user made the resumed or replayed run on this machine
    (``cheesebench.experiment.provenance``). It is True, too, without such a run.
    """
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """The origins of the values that the user did not type."""

    def spelling(self, key: str) -> str:
        """Return the user's spelling of an option."""
        return self.spellings.get(key, BY_KEY[key].short)

    def continuing(self, earlier: Earlier, recorded: Mapping[str, Any]) -> Given:
        """Return these options, completed with the options that the resumed or replayed
        run ``recorded``. ``resolve`` refuses contradictions between the two.
        """
        key = "resume" if earlier.replayed is None else "model"
        named = as_list(self.values.get(key))
        values = {**self.values, "model": None} if key == "model" else self.values
        return replace(
            self,
            values=values,
            recorded=recorded,
            origin=f"{self.spelling(key)} {_shown(named)}",
            made_here=earlier.made_here,
        )

    def filled_in(self, origin: Origin, **values: Any) -> Given:
        """Return the options, with these ``values`` for options that were not given."""
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
        """Raise OptionError for a number out of range, and for an API key, which would
        be recorded.
        """
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
        """Return the value of every option: the given value, or else the value of the
        resumed or replayed run, or else the default. Raise OptionError for a value that
        contradicts that run.
        """
        given = {
            option.key: _names(self.values[option.key])
            if option.commas
            else self.values[option.key]
            for option in OPTIONS
            if self._is_given(option)
        }
        recorded = {
            option.key: self.recorded[option.key]
            for option in OPTIONS
            if option.recorded and option.key in self.recorded
        }
        for key in given:
            if key in recorded:
                self._check_agrees(BY_KEY[key], given[key], recorded[key])
        return OptionValues(**{**_DEFAULTS, **recorded, **given})

    def _is_given(self, option: Option) -> bool:
        value = self.values.get(option.key)
        # pytest's value for a flag that was not given is False.
        return value is not None and value is not False

    def _check_agrees(self, option: Option, given: Any, recorded: Any) -> None:
        """Raise OptionError if an option contradicts the resumed or replayed run.
        Overridable options, and a part of that run's list, do not.
        """
        is_part = isinstance(given, list) and set(given) <= set(as_list(recorded))
        if not (option.overridable or given == recorded or is_part):
            raise self._contradiction(self.spelling(option.key), given, recorded)

    def _contradiction(self, spelling: str, given: Any, recorded: Any) -> OptionError:
        made = f"without {spelling}"
        if recorded not in (None, False):
            made = f"with {spelling} {_shown(recorded)}, not {_shown(given)}"
        remedy = f"Remove {spelling}"
        if spelling == self.spelling("model"):  # Python needs it.
            remedy = f"Give {spelling} {_shown(recorded)}"
        return OptionError(
            f"{self.origin}: that run was made {made}. {remedy}, or start a new run."
        )

    def origin_of(self, option: Option) -> Origin:
        if self._is_given(option):
            return self.origins.get(option.key, Origin.GIVEN)
        is_known = option.recorded and self.recorded.get(option.key) is not None
        return Origin.MANIFEST if is_known else Origin.DEFAULT

    def check_trusted(self) -> None:
        """Raise OptionError if a stranger's run would decide which programs are
        started, what is called, or where a key goes.
        """
        for option in OPTIONS:
            if option.trusted_only:
                self._refuse_recorded(option.key)

    def check_file(self, key: str, known: Collection[str] = ()) -> None:
        """Raise OptionError if a stranger's run would decide which file of this machine
        is read. A recorded name is that of a file if it is not ``known`` or, where
        nothing is, unless it is a plain word. Call this before the file is read.
        """
        names = map(str, as_list(self.recorded.get(key)))
        if any(
            name not in known if known else not _WORD.fullmatch(name) for name in names
        ):
            self._refuse_recorded(key)

    def _refuse_recorded(self, key: str) -> None:
        recorded = self.recorded.get(key)
        if recorded and self.values.get(key) is None and not self.made_here:
            raise OptionError(
                f"{self.origin}: that run was not made by you on this machine, so {self.spelling(key)} "
                f"{quoted(_shown(recorded), 120)} is not used. Give the option again if you trust it."
            )


#: Matches a recorded name that is never that of a file outside the results.
_WORD = re.compile(r"(yoked:)?[\w=+-]+")
#: The value of each option that is neither given nor recorded.
_DEFAULTS = {option.key: False if option.flag else option.default for option in OPTIONS}


def _names(several: Iterable[str]) -> list[str]:
    """Return the names of a repeatable option, split at commas, each once."""
    names = (name.strip() for part in several for name in part.split(","))
    return list(dict.fromkeys(filter(None, names)))


def _check_number(option: Option, value: Any, spelling: str) -> None:
    if option.minimum is not None and value < option.minimum:
        raise OptionError(f"{spelling} {value}: the minimum is {option.minimum}.")
    if option.positive and not 0 < value < math.inf:
        finite = "finite " if value == math.inf else ""
        raise OptionError(f"{spelling} {value:g}: give a {finite}number above 0.")


def as_list(value: Any) -> list[Any]:
    """Return the value of an option as a list. None becomes an empty list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True, kw_only=True)
class CellSettings:
    """The settings that determine the cells of a run."""

    requests: Mapping[str, CellRequest]
    """The requests to the families, by model. Language models and agents may have
    different designs.
    """
    language: Mapping[str, LanguageModel]
    """The language models, by name."""
    selection: cells.Selection
    """Which protocols the run has."""
    views: tuple[str, ...]
    controls: tuple[str, ...]
    study: Study | None
    familywise: bool
    """Whether verdicts hold for all cells of a model together."""

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self.requests)

    @property
    def design(self) -> str:
        return ", ".join(
            dict.fromkeys(one.design.name for one in self.requests.values())
        )

    def planned(
        self, catalogue: Catalogue
    ) -> Iterator[tuple[CellPlan, BaseSpecification]]:
        """Yield every cell of the run once, in the order in which pytest runs them.
        Raise the error of a protocol, or of a model that does not suit it.
        """
        known = set()
        for one in cells.selected_protocols(catalogue, self.selection):
            if isinstance(one, cells.Broken):
                raise one.error
            for request in self.requests.values():
                for plan in cells.cells_of(one, request):
                    if plan.key not in known:
                        known.add(plan.key)
                        yield plan, one


@dataclass(frozen=True, kw_only=True)
class Settings(CellSettings):
    """The settings of a run, from any source."""

    seed: int
    seed_drawn: bool
    """Whether the seed was drawn. A typed seed may be known to others, who could
    compute all worlds of the run.
    """
    shard: Shard | None
    """The shard that is run, or None if all cells are run."""
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
    """The origin of each option's value, by the option's key."""

    @property
    def seed_text(self) -> str:
        """The seed and its origin, as text."""
        origin = self.origins.get("seed", Origin.GIVEN)
        where = "typed" if origin is Origin.GIVEN else f"from the {origin}"
        return f"{self.seed} ({'drawn' if self.seed_drawn else where})"

    @property
    def origins_text(self) -> list[str]:
        """Lines that name the options that come neither from the command line nor from
        the defaults, such as ``from the profile: --subjects``.
        """
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
    given: Given,
    plugins: PluginManager,
    directory: Path,
    replayed: Mapping[str, LanguageModel] | None = None,
    usual_protocols: tuple[Sequence[str], str] = ((), ""),
) -> tuple[CellSettings, Given]:
    """Return the settings for the cells of a run with these options. Also return the
    options, completed from a frozen set and a study.

    Paths are relative to ``directory``. ``replayed`` are the models of a replayed run
    (None if no run is replayed). ``usual_protocols`` are run if no protocols are given;
    the text says where they are named.
    """
    given.check()
    values = given.resolve()
    if values.set is not None:
        given = with_set(given, frozen_set(values.set), plugins, values.agent)
    given.check_file("study", cells.shipped_studies())
    given.check_file("control")
    study = cells.find_study(values.study, directory) if values.study else None
    if study is not None:
        given = _with_study(given, study)
    values = given.resolve()
    models = _models(given, values, study, plugins)
    language = replayed
    if language is None:
        language = language_models(plugins, models, given, values, directory)
    if study is not None:
        cells.check_study(study, language, tuple(models))
    designs = _designs(values, models, language)
    views = tuple(dict.fromkeys(values.view or _views_of(designs.values())))
    _check_controls(values, directory)
    settings = CellSettings(
        requests={
            model: CellRequest(
                model=model,
                plugins=plugins,
                design=design,
                language=language.get(model),
                views=views,
                controls=tuple(values.control),
                study=study,
                temperatures=values.temperatures,
                subjects=values.subjects,
                against=values.against,
            )
            for model, design in designs.items()
        },
        language=language,
        selection=cells.Selection(
            names=tuple(values.protocols or usual_protocols[0]),
            where=_where_named(given, values, usual_protocols[1]),
            edition=values.edition,
            named_edition=given.values.get("edition"),
            directory=directory,
        ),
        views=views,
        controls=tuple(values.control),
        study=study,
        familywise=values.familywise,
    )
    return settings, given


def _where_named(given: Given, values: OptionValues, usual: str) -> str:
    """Return where the protocols are named, or "" if that is the command line."""
    if not values.protocols:
        return usual
    is_profile = given.origins.get("protocols") is Origin.PROFILE
    return f"profile {values.profile}: protocols" if is_profile else ""


def _check_controls(values: OptionValues, directory: Path) -> None:
    for control in values.control:
        controls.check_control(control, directory / values.results)


def _models(
    given: Given, values: OptionValues, study: Study | None, plugins: PluginManager
) -> Sequence[str]:
    """Return the given models or, if there are none, the study's models. Raise
    OptionError if there are none either.
    """
    if models := values.model or (study.models if study else ()):
        return models
    if study:
        raise OptionError(
            f"{given.spelling('study')} {values.study} has no models of its own: add --model NAME."
        )
    raise OptionError(
        f"--model is empty. Name a model or an agent. Agents: {', '.join(sorted(plugins.agents))}."
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
    """Return the options, completed from a frozen set: its protocols and views, and the
    settings whose defaults have changed since. Raise OptionError for an edition other
    than the default, and UnknownNameError for a protocol that the set does not have.
    """
    if given.values.get("edition") not in (None, BY_KEY["edition"].default):
        raise OptionError(
            f"The protocols of a set have their own editions: remove --edition, or --set {frozen.name}."
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
    """Return the set's files for the protocols that are given by name. Protocols that
    are given by file (such as twins) stay unchanged. Raise UnknownNameError for a name
    that the set does not have.
    """
    return [_file_in(frozen, name) for part in named for name in part.split(",")]


def _file_in(frozen: FrozenSet, name: str) -> str:
    if name in frozen.protocols:
        return str(frozen.folder / f"{name}{SUFFIX}")
    if name.endswith(SUFFIX) or Path(name).exists():
        return name
    raise UnknownNameError(
        f"protocol of the set {frozen.name} called", name, frozen.protocols
    )


def _with_study(given: Given, study: Study) -> Given:
    """Return the options, completed with the study's design and views."""
    # --subjects asks for several subjects with whole schedules, as in the design
    # cohort. A study's own design has only one subject.
    own = study.design if given.values.get("subjects") is None else "cohort"
    if given.recorded.get("design"):
        own = given.recorded["design"]  # A resumed or replayed run keeps its design.
    return given.filled_in(Origin.STUDY, design=own, view=list(study.views) or None)


def read_settings(
    given: Given,
    plugins: PluginManager,
    directory: Path,
    earlier: Earlier,
    usual_protocols: tuple[Sequence[str], str] = ((), ""),
) -> Settings:
    """Return the settings of a run. Raise CheeseBenchError for contradictory or
    invalid options.

    Paths are relative to ``directory``. ``usual_protocols``: see ``cell_settings``.
    """
    if earlier.recorded is not None:
        given = given.continuing(earlier, earlier.recorded)
    which, given = cell_settings(
        given, plugins, directory, earlier.replayed, usual_protocols
    )
    values = given.resolve()
    calls = call_options(values)
    if earlier.replayed is None:  # a replay costs nothing
        check_prices(calls.limits, which.language.values())
    for model in which.models:
        cells.check_views(
            model, which.language.get(model), map(plugins.view, which.views)
        )
    if values.against is not None:
        check_against(values.against)
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
    designs = {one.design.name for one in which.requests.values()}
    resolved = replace(
        values,
        model=list(which.models),
        view=list(which.views),
        # Language models and agents may have different designs.
        design=designs.pop() if len(designs) == 1 else values.design,
        seed=seed,
        study=values.study,
    )
    return {**recorded_options(asdict(resolved)), SEED_DRAWN: seed_drawn}


def _check_names(given: Given, values: OptionValues) -> None:
    if values.resume is not None and values.run_id is not None:
        raise OptionError(
            f"{given.spelling('resume')} and {given.spelling('run_id')} cannot be combined: a resumed run keeps "
            "its name. Remove one."
        )
    if values.retry_errors and values.resume is None:
        raise OptionError(
            f"{given.spelling('retry_errors')} is for a run that is resumed: a new run has no refused calls. Remove it, "
            f"or add {given.spelling('resume')} RUN."
        )
    for key in ("run_id", "resume"):
        if (name := getattr(values, key)) is not None:
            check_name(name, "a run", f"{given.spelling(key)} ")


def _seed(given: Given, values: OptionValues) -> tuple[int, bool]:
    """Return the seed of the run, and whether it was drawn (now, or when the run was
    started). Raise OptionError for a shard without a given seed.
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
            f"{given.spelling(key)} {name} cannot be written. Name a file in an existing directory that you can write to."
        )
    return path


def language_models(
    plugins: PluginManager,
    names: Sequence[str],
    given: Given,
    values: OptionValues,
    directory: Path,
) -> dict[str, LanguageModel]:
    """Return the language models among ``names``. The file of ``--models`` is relative
    to ``directory``.

    Raise CheeseBenchError for a name that is neither an agent nor a model, for options
    that do not apply to the models, and for a stranger's run that would decide where
    calls go.
    """
    entries = user_models(values.models and directory / values.models)
    _check_temperature(given, values)
    typed = {
        option.setting: getattr(values, option.key)
        for option in OPTIONS
        if option.setting
    }
    # The first temperature is the model's setting. A study or a dialogue with several
    # temperatures gives each cell its own.
    typed["temperature"] = next(iter(as_list(values.temperature)), None)
    given.check_file("prompt")
    typed["prompt"] = _prompt(values.prompt)
    typed |= _pairs(given, "agent_option", values.agent_option)
    own = {name: value for name, value in typed.items() if value is not None}
    settings = {**_settings_of_design(plugins, values), **own}
    url, served = _address(values), _served(values)
    options = _pairs(given, "backend_option", values.backend_option)
    others = {*plugins.agents, *plugins.respondents}
    models = {
        name: cells.language_model(
            plugins,
            _entry(plugins, name, entries, given),
            agent=values.agent,
            settings=settings,
            served=served,
            base_url=url,
            options=options,
        )
        for name in names
        if name not in others
    }
    if url:
        _check_one_backend(url, models.values())
    if models:
        given.check_trusted()
    else:
        _check_no_model_option(names, given, values)
    return models


def _check_one_backend(url: str, models: Iterable[LanguageModel]) -> None:
    """Raise OptionError if models of different backends share a base URL, because one
    backend's key would go to another backend's server.
    """
    used = {model.entry.backend for model in models}
    if len(used) > 1:
        raise OptionError(
            f"--base-url {url}: the models use different backends ({', '.join(sorted(used))}), so one "
            "server cannot serve all of them. Run them one after another."
        )


def _check_no_model_option(
    names: Sequence[str], given: Given, values: OptionValues
) -> None:
    """Raise OptionError if an option is given that applies only to language models,
    because none of ``names`` is one.
    """
    for option in OPTIONS:
        value = getattr(values, option.key)
        if option.models_only and value not in (None, [], False, option.default):
            raise OptionError(
                f"{given.spelling(option.key)} applies only to language models, not to {', '.join(names)}. Remove it."
            )


def _entry(
    plugins: PluginManager, name: str, entries: Iterable[ModelEntry], given: Given
) -> ModelEntry:
    try:
        return resolve_model(plugins, name, entries)
    except UnknownNameError:
        if name == PERSON:
            raise OptionError(
                f"--model {name}: people are run by 'cheesebench people --protocols NAME'."
            ) from None
        if name in as_list(given.recorded.get("model")):
            raise OptionError(
                f"{given.origin}: that run was made with '{name}', which no plugin supplies now. Load the plugin that did."
            ) from None
        raise


def _check_temperature(given: Given, values: OptionValues) -> None:
    temperatures = as_list(values.temperature)
    if "none" in temperatures and len({*temperatures}) > 1:
        raise OptionError(
            f"{given.spelling('temperature')} none: give 'none' alone, without other temperatures."
        )


def _address(values: OptionValues) -> str | None:
    """Return the address of the models' server, or None if none is given."""
    url = cells.one_address(values.base_url)
    if url is not None:
        check_address(url, query=True)
    return url


def _served(values: OptionValues) -> dict[str, Any]:
    """Return the request parameters that --top-p and --reasoning-effort give."""
    given = {"top_p": values.top_p, "reasoning_effort": values.reasoning_effort}
    return {name: value for name, value in given.items() if value is not None}


def _settings_of_design(
    plugins: PluginManager, values: OptionValues
) -> Mapping[str, Any]:
    """Return the design's settings that the agent also has."""
    if values.agent not in plugins.model_agents:
        return {}
    own = plugins.model_agent(values.agent).settings
    usual = cells.find_design(values.design or cells.usual_design(True)).settings
    return {name: value for name, value in usual.items() if name in own}


#: Maximum size in bytes of a prompt from a file.
_PROMPT_BYTES = 64 * 1024


def _prompt(name: str | None) -> str | None:
    """Return the name of a prompt unchanged or, if it looks like a file (``my.txt``,
    ``./mine``), the file's text. Raise OptionError if the file cannot be used. None,
    which means no given prompt, is returned unchanged, too.
    """
    if name is None:
        return None
    path = Path(name)
    if not path.suffix and path.name == name:
        return name
    try:
        text = read_bytes(path, _PROMPT_BYTES + 1).decode()
    except (OSError, ValueError) as error:
        # ValueError is raised if the text is not UTF-8, or the path is impossible.
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
    """Return the values ``NAME=VALUE`` of an option as a mapping, with ``_`` for ``-``
    in names. Raise OptionError for another form.
    """
    mapping = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise OptionError(f"{given.spelling(key)} {text}: expected NAME=VALUE.")
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
