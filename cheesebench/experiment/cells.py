"""Plans the cells of a run from its models, designs, studies and protocols. A cell is
one model on one protocol in one view.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cheesebench.chat import (
    BackendContext,
    BackendSpec,
    Connection,
    ModelAgentSpec,
    ModelEntry,
)
from cheesebench.errors import (
    CheeseBenchError,
    OptionError,
    PluginError,
    ProtocolError,
    UnknownNameError,
    did_you_mean,
)
from cheesebench.family import CellRequest, Design, LanguageModel, Study
from cheesebench.interface_checks import blaming, returned_list
from cheesebench.interfaces import DEFAULT_EDITION, BaseSpecification, PictureView
from cheesebench.protocol import SUFFIX, Catalogue, validation
from cheesebench.protocol.answers import answers_for_life
from cheesebench.protocol.catalogue import file_names, protocol_name
from cheesebench.protocol.structure import read_document
from cheesebench.records import (
    GOAL,
    MOST_SUBJECTS,
    PLAIN,
    CellPlan,
    Construct,
    ReferenceValue,
    Variant,
)

if TYPE_CHECKING:
    from cheesebench.interfaces import Memory, View
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import Specification


#: Default limit on a reasoning model's reply, in tokens, reasoning included. It applies
#: if the model's entry has no limit.
REASONING_TOKENS = 8192
#: Texts of end-of-turn tokens, which are sent as stop sequences by backends that can
#: serve a model (``_stop``). A model whose server does not know its end-of-turn token
#: would otherwise go on writing.
TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|endoftext|>")


_EMPTY: Mapping[str, Any] = MappingProxyType({})


def language_model(
    plugins: PluginManager,
    entry: ModelEntry,
    *,
    agent: str = "llm",
    settings: Mapping[str, Any] = _EMPTY,
    served: Mapping[str, Any] = _EMPTY,
    base_url: str | None = None,
    options: Mapping[str, Any] = _EMPTY,
) -> LanguageModel:
    """Return a model with its agent.

    ``settings`` are the agent's settings that the user gives (a string is converted to
    the type of the default). ``served`` adds to the entry's request parameters.
    ``base_url`` is the address of the model's server; if it is None, the backend's
    option ``base_url`` is used. Raise UnknownNameError for an unknown agent or backend,
    and OptionError for settings or options that the agent, the model or its backend
    does not accept.
    """
    backend, asker = plugins.backend(entry.backend), plugins.model_agent(agent)
    wanted = dict(settings)
    dropped = _dropped(entry, backend, wanted)
    if wanted.get("temperature") == "none":
        del wanted["temperature"]
    own = {name: _typed(asker, name, value) for name, value in wanted.items()}
    values = {**asker.settings, **own}
    asker.check(values)
    if "max_tokens" not in wanted:
        values |= _reply_tokens(entry, asker, values)
    values |= {name: None for name in ("temperature", "max_tokens") if name in dropped}
    _check_known(backend, options)
    wishes = {**entry.options, **options}
    return LanguageModel(
        entry=entry,
        backend=backend,
        agent=asker,
        settings={
            **values,
            "backend": entry.backend,
            "id": entry.id,
            "served": {**entry.served, **served},
            "dropped": dropped,
            "stop": _stop(entry, backend),
            "reasoning": entry.reasoning,
            "memory": asker.remembers(values),
            **({"trained_on": list(entry.trained_on)} if entry.trained_on else {}),
        },
        base_url=base_url or one_address(wishes.get("base_url")),
        options=wishes,
    )


def _reply_tokens(
    entry: ModelEntry, asker: ModelAgentSpec, values: Mapping[str, Any]
) -> dict[str, int]:
    """Return the default limit on a reply, as a setting: the limit of the model's
    entry, ``REASONING_TOKENS`` for a reasoning model without one, or else the agent's
    limit. Return no setting if there is no limit.
    """
    if entry.max_tokens or entry.reasoning:
        return {"max_tokens": entry.max_tokens or REASONING_TOKENS}
    most = asker.reply_tokens(values)
    return {"max_tokens": most} if most else {}


def _stop(entry: ModelEntry, backend: BackendSpec) -> list[str]:
    """Return the tokens that end a reply, or none if the backend cannot serve a model:
    some other servers refuse tokens that they do not know.
    """
    takes = backend.serve is not None and backend.capabilities.stop
    return list(TURN_ENDS) if takes and "stop" not in entry.drops else []


def _dropped(
    entry: ModelEntry, backend: BackendSpec, wanted: Mapping[str, Any]
) -> list[str]:
    """Return the names of the parameters that are not sent. (``system`` stands for the
    role: the text goes to the first user message.) Raise OptionError if the user gives
    a temperature, or a limit on replies, to a model that does not support it.
    """
    if "max_tokens" in wanted and not backend.capabilities.max_tokens:
        raise OptionError(
            f"--reply-tokens {wanted['max_tokens']}: the model '{entry.name}' does not support it. Remove the option."
        )
    able = {
        "temperature": backend.capabilities.temperature,
        "seed": backend.capabilities.seed,
    }
    dropped = [
        name
        for name in ("temperature", "seed", "max_tokens", "system")
        if name in entry.drops or not able.get(name, True)
    ]
    temperature = wanted.get("temperature")
    if temperature == "none" and "temperature" not in dropped:
        return [*dropped, "temperature"]
    if temperature not in (None, "none") and "temperature" in dropped:
        raise OptionError(
            f"--temperature {temperature}: the model '{entry.name}' does not support it. Remove the option."
        )
    return dropped


def _check_known(backend: BackendSpec, given: Mapping[str, Any]) -> None:
    unknown = sorted(set(given) - set(backend.options))
    if unknown:
        hint = (
            did_you_mean(unknown[0], backend.options)
            or f" Known: {', '.join(sorted(backend.options)) or 'none'}."
        )
        raise OptionError(
            f"The backend '{backend.name}' has no option '{unknown[0]}'.{hint}"
        )


def one_address(given: object) -> str | None:
    """Return the address of a model's server, or None if none is given. In logs of
    earlier versions, ``given`` may be a list. Raise OptionError for several addresses.
    """
    texts = given if isinstance(given, list) else [] if given is None else [given]
    found = [one for text in texts for one in str(text).split(",") if one.strip()]
    if len(found) > 1:
        raise OptionError(
            f"There are {len(found)} base URLs, but a model can have only one. Give the address of a load balancer in front of "
            "the servers (docs/servers.md has an example), or of one server."
        )
    return found[0].strip() if found else None


def varied(model: LanguageModel, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a model's agent with these ``changes``. Raise OptionError
    for a change that the agent or the model does not support.
    """
    agent = model.agent
    values = {name: model.settings[name] for name in agent.settings}
    values |= {name: _typed(agent, name, value) for name, value in changes.items()}
    if (
        values.get("temperature") != model.settings.get("temperature")
        and "temperature" in model.settings["dropped"]
    ):
        raise OptionError(
            f"The model '{model.entry.name}' does not support a temperature, so it cannot be varied."
        )
    agent.check(values)
    limit = model.settings.get("max_tokens")
    if limit == agent.reply_tokens(model.settings) and "max_tokens" not in changes:
        values["max_tokens"] = agent.reply_tokens(values)
    return {**model.settings, **values, "memory": agent.remembers(values)}


def _typed(agent: ModelAgentSpec, name: str, value: Any) -> Any:
    if name not in agent.settings:
        hint = (
            did_you_mean(name, agent.settings)
            or f" Known: {', '.join(agent.settings) or 'none'}."
        )
        raise OptionError(f"The agent '{agent.name}' has no setting '{name}'.{hint}")
    default = agent.settings[name]
    reader = agent.readers.get(name)
    if not isinstance(value, str) or (reader is None and isinstance(default, str)):
        return value
    try:
        if reader is not None:
            return reader(value)
        if isinstance(default, bool):
            return {
                "true": True,
                "yes": True,
                "1": True,
                "false": False,
                "no": False,
                "0": False,
            }[value.lower()]
        return type(default)(value)
    except (KeyError, ValueError):
        raise OptionError(
            f"{name}={value}: expected a value such as {default!r}."
        ) from None


def check_views(name: str, model: LanguageModel | None, views: Iterable[View]) -> None:
    """Raise OptionError if ``name`` cannot use one of the views. ``model`` is None for
    an agent that acts by itself.
    """
    for view in views:
        if not isinstance(view, PictureView):
            continue
        if model is None:
            who = f"the agent '{name}' reads text"
        elif not model.entry.images:
            who = f"the model '{name}' is not registered as a vision model"
        elif not model.backend.capabilities.images:
            who = f"the backend '{model.backend.name}' cannot send images"
        else:
            continue
        raise OptionError(
            f"--view {view.name} draws images, but {who}. Choose a text view, such as ascii_2d."
        )


def replayed_models(
    plugins: PluginManager, plans: Iterable[CellPlan]
) -> dict[str, LanguageModel]:
    """Return the language models of a recorded run, by name, as its plans describe
    them. These models have no server.
    """
    return {
        plan.model: LanguageModel(
            entry=ModelEntry(
                name=plan.model, backend=REPLAY.name, id=plan.settings["id"]
            ),
            backend=REPLAY,
            agent=plugins.model_agent(plan.agent),
            settings=plan.settings,
        )
        for plan in plans
        if plan.agent
    }


def _no_server(context: BackendContext) -> Connection:
    raise PluginError(f"A replay has no server for '{context.entry.name}'.")


#: The backend that replaces a model's own when recorded replies are replayed.
REPLAY = BackendSpec(
    name="replay",
    connect=_no_server,
    probe=False,
    summary="replies of a finished run, without calls",
)


#: Settings of the CheeseBench paper: the prompt has the last five pairs of observation
#: and action, plans are carried out completely, and every trial goes on to its end.
_PAPER = {"history": 5, "patience": 0, "interrupt": "never"}
#: Number of subjects of the design ``cohort``. A sequential cell that no verdict could
#: stop early gets at most as many. Messages recommend this number, too.
COHORT = 20
#: Designs for ``--design``, by name.
DESIGNS = {
    design.name: design
    for design in (
        Design(
            name="smoke",
            subjects=2,
            trials=2,
            claims=False,
            summary="checks that everything runs, and claims nothing",
        ),
        Design(
            name="paper",
            subjects=1,
            views=("ascii_2d", "ascii_2d_fpv", "ascii_3d"),
            settings=_PAPER,
            summary="one subject through the protocol's schedule, in each of the three text views",
        ),
        Design(
            name="cohort",
            subjects=COHORT,
            summary="several subjects, each through the protocol's schedule",
        ),
        Design(
            name="leaderboard",
            subjects=40,
            summary="a fixed number of subjects, to rank models by their rates",
        ),
        Design(
            name="sequential",
            subjects=MOST_SUBJECTS,
            sequential=True,
            summary="as many subjects as a verdict needs, in sets: 6, 10, 14, ... 120",
        ),
    )
}


def usual_design(asks_model: bool, compares: bool = False) -> str:
    """Return the name of the default design. Language models get the design that saves
    calls, unless the run is compared with another one: then the number of subjects must
    not depend on the results.
    """
    return "sequential" if asks_model and not compares else "cohort"


def find_design(name: str, subjects: int | None = None) -> Design:
    """Return the design of that name (``flat-N`` has one subject with N trials). If
    ``subjects`` is given, it replaces the design's number of subjects.

    Raise UnknownNameError for an unknown name, and OptionError for fewer than one
    subject.
    """
    flat = re.fullmatch(r"flat-([1-9]\d{0,5})", name)
    if flat is None and name not in DESIGNS:
        raise UnknownNameError("design", name, [*DESIGNS, "flat-15"])
    design = DESIGNS[name] if flat is None else _flat(int(flat[1]))
    if subjects is None:
        return design
    if subjects < 1:
        raise OptionError(
            f"--subjects {subjects}: a run needs at least one subject. Give a number of at least 1."
        )
    return dataclasses.replace(design, subjects=subjects)


def _flat(trials: int) -> Design:
    """Return the design of the CheeseBench paper's studies: one subject with at most
    this many trials of the schedule.
    """
    return Design(
        name=f"flat-{trials}",
        subjects=1,
        trials=trials,
        claims=False,
        settings=_PAPER,
        summary="for comparing settings",
    )


def plan_cell(
    specification: Specification,
    model: str,
    view: str,
    design: Design,
    memory: Memory = "life",
    *,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    variant: Variant = PLAIN,
) -> CellPlan:
    """Return the plan of one cell: ``model`` on a protocol in a view.

    ``memory`` says what the agent remembers. For a language model, ``agent`` writes the
    prompts, with these ``settings``.
    """
    document = specification.document
    trials = specification.planned_trials
    reference = reference_value(specification)
    # Without a reference, no verdict could stop the cell early.
    sequential = design.sequential and reference is not None
    design = design if sequential else with_fixed_number(design)
    return CellPlan(
        model=model,
        protocol=specification.name,
        view=view,
        title=specification.title,
        dimension=document.dimension,
        species=document.species or "",
        sha256=specification.sha256,
        design=design.name,
        subjects=design.subjects,
        sequential=sequential,
        trials=trials if design.trials is None else min(trials, design.trials),
        memory=memory,
        estimand=specification.estimand,
        margin=document.margin
        if specification.judged is None
        else specification.judged.margin or document.margin,
        split=tuple(document.split),
        by=tuple(getattr(document, "by", ())),
        reference=reference,
        chance=None if document.chance is None else document.chance.value,
        goal_visible=specification.goal_visible,
        claims=design.claims,
        agent=agent,
        settings=settings or {},
        variant=variant,
        construct=_construct(specification),
        ceilings=validation.audited_ceilings(specification),
        # The audit used whole schedules, so it says nothing about the trials of a
        # shortened one.
        ability=validation.ability_scale(specification)
        if design.trials is None or design.trials >= trials
        else None,
        idle=validation.idle_sessions(specification),
        answers=answers_for_life(specification),
        twin_of=document.twin_of or "",
        blocks=specification.planned_blocks,
        acknowledged=tuple(specification.acknowledged.items()),
        reported=specification.reported,
    )


def familywise(cells: Sequence[CellPlan]) -> list[CellPlan]:
    """Return the cells with verdicts that are strict enough to hold for all cells of a
    model, view and variant together.
    """

    def group(plan: CellPlan) -> tuple[str, str, str]:
        return plan.model, plan.view, plan.series

    together = Counter(group(plan) for plan in cells if plan.claims and plan.comparable)
    return [
        dataclasses.replace(plan, goal=GOAL * max(1, together[group(plan)]))
        for plan in cells
    ]


def with_fixed_number(design: Design) -> Design:
    """Return the design of a cell without a verdict. A sequential design becomes a
    cohort, because nothing could stop the cell early.
    """
    if not design.sequential:
        return design
    return dataclasses.replace(DESIGNS["cohort"], subjects=min(design.subjects, COHORT))


def _construct(specification: Specification) -> Construct | None:
    construct = specification.construct
    if construct is None:
        return None
    abolished = tuple(
        (str(lesion), at_most) for lesion, at_most in construct.abolished_by
    )
    doubt = next((one.sentence for one in validation.doubts(specification)), "")
    left = validation.most_left(specification)
    return Construct(
        name=construct.name,
        abolished_by=abolished,
        status=validation.construct_status(specification),
        doubt=doubt,
        leaves=left and left[:2],
        leaves_at_most=left is not None and left[2],
        passed_by=validation.passed_by(specification),
        failed=validation.failed(specification),
        also_failed=validation.also_failed(specification),
        is_memory_searched=validation.is_memory_searched(specification),
    )


def reference_value(specification: Specification) -> ReferenceValue | None:
    """Return the animals' value that the verdict compares with: a pass rate, or the
    mean of a measure. Return None if the protocol has no such reference.
    """
    reference = specification.judged
    if reference is None:
        return None
    here = specification.dose or "varies"
    training = f"training: animals {reference.training}, here {here}"
    return dataclasses.replace(
        reference.record, training=training if reference.training else ""
    )


STUDY_SUFFIX = ".study.yaml"

_Word = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:/-]*$", max_length=100)
]
_Level = (
    int
    | float
    | bool
    | Annotated[str, StringConstraints(pattern=r"^[^\s,=][^,=\n]*$", max_length=60)]
)


class _Document(BaseModel):
    """Content of a study file; see Study for the keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: Literal[1]
    study: _Word
    title: str
    about: str = ""
    views: list[_Word] = Field(default_factory=list)
    models: list[_Word] = Field(default_factory=list)
    trials: Annotated[int, Field(ge=1)] = 15
    axes: dict[_Word, Annotated[list[_Level], Field(min_length=1)]] = Field(
        default_factory=dict
    )


def check_study(
    study: Study, models: Mapping[str, LanguageModel], names: tuple[str, ...]
) -> None:
    """Raise OptionError if one of the models (``names``) cannot have the study's
    variations.
    """
    for name in names:
        if study.axes and name not in models:
            raise OptionError(
                f"The study '{study.name}' varies {', '.join(study.axes)}, but '{name}' is not a language model, so "
                "it has no such settings."
            )
        for changes in study.variants():
            if name in models:
                varied(models[name], changes)


def variant_of(changes: Mapping[str, Any]) -> Variant:
    """Return the variant of a cell with these changed settings, such as ``history=1``.
    The settings keep the study's order.
    """
    return Variant(
        settings=tuple((name, str(value)) for name, value in changes.items())
    )


def shipped_studies() -> dict[str, Path]:
    folder = Path(str(files("cheesebench.studies")))
    return {
        path.name.removesuffix(STUDY_SUFFIX): path
        for path in sorted(folder.glob(f"*{STUDY_SUFFIX}"))
    }


def find_study(name: str, directory: Path) -> Study:
    """Return a study by name, or from a file (relative to ``directory``).

    Raise UnknownNameError, FileError with ``file:line:col`` for each error in the
    file, and OptionError for a study without variations.
    """
    shipped = shipped_studies()
    path = directory / name
    if not (name.endswith(STUDY_SUFFIX) or path.is_file()):
        if name not in shipped:
            raise UnknownNameError("study", name, shipped)
        path = shipped[name]
    document = read_document(path, _Document, "study", "study:")
    if not document.axes and len(document.views) < 2 and len(document.models) < 2:
        raise OptionError(
            f"{path}: the study varies nothing. Add axes, or several views or models."
        )
    return Study(
        name=document.study,
        title=document.title,
        about=document.about,
        views=tuple(document.views),
        models=tuple(document.models),
        trials=document.trials,
        axes={axis: tuple(levels) for axis, levels in document.axes.items()},
    )


@dataclass(frozen=True, slots=True)
class Broken:
    """A protocol file that cannot be loaded, and why."""

    path: Path
    error: ProtocolError


Selected = BaseSpecification | Broken


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which protocols a run has."""

    names: tuple[str, ...]
    """Names, files or directories, as given; empty for the edition's own protocols."""
    edition: str
    named_edition: str | None
    """The edition that the user gave. If it is None, a directory gives all its
    editions.
    """
    directory: Path
    """The directory that relative paths start from."""
    where: str = ""
    """The place that gives ``names``, for messages, or an empty string for the command
    line.
    """


def selected_protocols(
    catalogue: Catalogue, selection: Selection, names: Sequence[str] = ()
) -> list[Selected]:
    """Return the protocols of a run: the ones that the selection names or, if it names
    none, the ones in ``names``. Without any name, return the edition's built-in
    protocols. Raise CheeseBenchError if a protocol does not exist.
    """
    if not (names := selection.names or names):
        return default_protocols(catalogue, selection.edition)
    try:
        return named_protocols(
            catalogue, selection.directory, names, selection.named_edition
        )
    except CheeseBenchError as error:
        if not (selection.names and selection.where):
            raise
        said = str(error).removeprefix("--protocols ")
        raise OptionError(f"{selection.where}: {said}") from error


def default_protocols(catalogue: Catalogue, edition: str) -> list[Selected]:
    """Return the built-in protocols of an edition. A file of the same name in a later
    directory replaces a built-in one.

    If none of these files has that edition, the folders of protocols that run together,
    such as ``paper``, are searched. Raise UnknownNameError if no protocol has it.
    """
    built_in = Catalogue(catalogue.directories[:1]).files
    files = {stem: path for stem, path in catalogue.files.items() if stem in built_in}
    # The name of a built-in file tells its edition. Loading the files of other editions
    # would take a tenth of the time of a short run.
    others = [
        path
        for stem, path in files.items()
        if path == built_in[stem] and _edition(stem) != edition
    ]
    found = _load(catalogue, [path for path in files.values() if path not in others])
    if edition not in _editions(found):
        found += _load(catalogue, [*others, *catalogue.inside()])
    if edition not in _editions(found):
        raise UnknownNameError("edition", edition, _editions(found))
    return _of_edition(found, edition)


def named_protocols(
    catalogue: Catalogue, directory: Path, names: Iterable[str], edition: str | None
) -> list[Selected]:
    """Return the protocols for ``--protocols``: directories and files (relative to
    ``directory``), and names.

    A name refers to a folder of protocols that run together, to an installed protocol
    or, if there is neither, to a file in ``directory`` (``my_maze``,
    ``my_maze@short``). If ``edition`` is not given, a directory gives all its editions,
    and a name without ``@`` the default one.
    """
    # Commas separate names, as they do for models. Commas in the name of an existing
    # file or directory are part of the name.
    single = (
        part
        for name in names
        for part in ([name] if (directory / name).exists() else name.split(","))
    )
    return [
        one
        for name in filter(None, map(str.strip, single))
        for one in _named(catalogue, directory, name, edition)
    ]


def _named(
    catalogue: Catalogue, directory: Path, name: str, edition: str | None
) -> list[Selected]:
    path = directory / name
    if not path.exists() and name in catalogue.folders:
        path = catalogue.folders[name]
    if path.is_dir():
        return _in_directory(catalogue, path, name, edition)
    if name.endswith(("/", "\\")):
        raise OptionError(f"--protocols {name}: there is no such directory.")
    if path.is_file() or name.endswith(SUFFIX):
        return [_file(catalogue, path, name)]
    try:
        return [catalogue.find(name, edition)]
    except UnknownNameError:
        here = [
            directory / file
            for file in file_names(name if edition is None else f"{name}@{edition}")
        ]
        if (local := next(filter(Path.is_file, here), None)) is None:
            raise
        return [_load_one(catalogue, local)]
    except ProtocolError as error:
        return [Broken(catalogue.files.get(name, path), error)]


def _in_directory(
    catalogue: Catalogue, path: Path, name: str, edition: str | None
) -> list[Selected]:
    found = _load(catalogue, sorted(path.rglob(f"*{SUFFIX}")))
    if not found:
        raise OptionError(
            f"--protocols {name}: there is no file *{SUFFIX} in that directory."
        )
    chosen = found if edition is None else _of_edition(found, edition)
    if not chosen:
        known = sorted(_editions(found))
        raise OptionError(
            f"--protocols {name}: none of its protocols has the edition '{edition}' (it has {', '.join(known)}). "
            "Change --edition, or leave it out."
        )
    return chosen


def _file(catalogue: Catalogue, path: Path, name: str) -> Selected:
    if not path.exists():
        near = did_you_mean(
            path.name, [file.name for file in path.parent.glob(f"*{SUFFIX}")]
        )
        raise OptionError(f"--protocols {name}: there is no such file.{near}")
    return _load_one(catalogue, path)


def _load(catalogue: Catalogue, paths: Iterable[Path]) -> list[Selected]:
    return [_load_one(catalogue, path) for path in paths]


def cells_of(specification: BaseSpecification, request: CellRequest) -> list[CellPlan]:
    """Return a model's cells on a protocol. Raise UnsuitableError as the family does,
    and PluginError for an invalid result.
    """
    family = request.plugins.family(specification)
    who = f"The family '{family.name}': cells"
    with blaming(who):
        return returned_list(family.cells(specification, request), CellPlan, who)


def load_shortly_named(catalogue: Catalogue, path: Path) -> BaseSpecification:
    """Load a file. Diagnostics and records name it by its path, which is relative to
    the working directory if the file is inside.
    """
    here = Path.cwd()
    return catalogue.load(path.relative_to(here) if path.is_relative_to(here) else path)


def _load_one(catalogue: Catalogue, path: Path) -> Selected:
    try:
        return load_shortly_named(catalogue, path)
    except ProtocolError as error:
        return Broken(path, error)


def _edition(stem: str) -> str:
    return protocol_name(stem).partition("@")[2] or DEFAULT_EDITION


def _editions(found: Iterable[Selected]) -> set[str]:
    return {one.edition for one in found if not isinstance(one, Broken)}


def _of_edition(found: Iterable[Selected], edition: str) -> list[Selected]:
    """Return the protocols of an edition, and broken files, whose edition is
    unknown.
    """
    return [one for one in found if isinstance(one, Broken) or one.edition == edition]
