"""The commands ``compare``, ``plan``, ``figures``, ``report``, ``lint``, ``audit`` and
``list`` (``catalogue``) as functions of the public API.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench import api, arguments, tables
from cheesebench.amounts import duration
from cheesebench.auditing import audit_specification
from cheesebench.baselines import compare_files, locate_counted
from cheesebench.chat import BackendSpec
from cheesebench.commands import installed
from cheesebench.commands.common import (
    find_protocol,
    installed_catalogue,
    load_protocol,
)
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment import cells as run_cells
from cheesebench.experiment import controls as run_controls
from cheesebench.experiment import settings as run_settings
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.extras import install_command
from cheesebench.files import write_whole
from cheesebench.hookspecs import FigureReporter, RunsReporter
from cheesebench.ini_file import usual_protocols
from cheesebench.interfaces import (
    AUDIT_PARTS,
    AgentSpec,
    AuditPart,
    AuditSettings,
    BaseSpecification,
)
from cheesebench.models import known_models, user_models
from cheesebench.planning import forecast
from cheesebench.planning.asking import first_answers
from cheesebench.planning.earlier import EarlierRuns
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue
from cheesebench.source import real_path
from cheesebench.summaries import summarise_log, summarise_logs
from cheesebench.terminal import printable
from cheesebench.verification import rows_only

if TYPE_CHECKING:
    import pandas

    from cheesebench.auditing import AuditReport
    from cheesebench.diagnostics import Diagnostic
    from cheesebench.experiment.settings import Given
    from cheesebench.planning import Forecast
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.statistics import RunSummary
    from cheesebench.statistics.comparison import RunComparison


@arguments.checked(models=arguments.MODELS)
def compare(
    first: str | os.PathLike[str],
    second: str | os.PathLike[str] | None = None,
    *,
    results: str | os.PathLike[str] = "results",
    baselines: str | os.PathLike[str] = "baselines",
    models: tuple[str | None, str | None] = (None, None),
    protocols: api.Names | None = None,
    tell: Callable[[str], None] | None = None,
) -> RunComparison:
    """Compare two runs of the same protocols and seed, or the models of one run,
    subject by subject. The answers are about the first of the two: ``better``
    or ``worse`` (chance does not explain the difference), ``no loss of 30 points``
    (it may do either, but a loss of 30 points of the pass rate is excluded; of a
    measure, a loss in its own unit), or ``undecided``.

    ``first`` and ``second`` are runs (``Run``), or the id, directory or file of a run
    or a baseline. ``models`` names the model to compare in each. If it names none,
    models of the same name are compared, or the only model of each run. Without
    ``second``, every two models of the run are compared (or only the two ``models``),
    without their controls, and Holm's correction is over all these comparisons. A
    single model, ``models=("A", None)``, is compared with each of its controls. Unlike
    ``verdict``, which imagines a pair for graded scores of your own unless
    ``only_seen``, this function imagines none for the p value.

    The compared trials of a run are replayed, and ``tell`` is called with a sentence
    about this. Without ``tell``, a terminal and a notebook show the progress, as for
    ``run``. Raise ComparisonError for runs that do not pair, or lack a named model or
    protocol. Raise RunLogError for a run that is missing or was changed, a language
    model that was never called, and a trial whose replay differs from its log.
    """
    line = api.teller(None if tell is None else False)
    paths = [
        locate_counted(Path(results), os.fspath(one), Path(baselines))
        for one in (first, second)
        if one is not None
    ]
    return compare_files(
        *paths,
        models=models,
        protocols=api.names_of(protocols or ()),
        tell=(lambda said: line(f"{said}\n")) if tell is None else api.teller(tell),
        progress=line,
    )


#: The data that a figure needs, for the figures that few runs have.
_NEEDS = {
    "best_of_views": "a run with several views",
    "profile": "protocols of several domains",
    "measures": "a verdict about a measure",
    "strategies": "a protocol with a measure of strategy",
    "conditions": "a run only of dialogues, with more than 24 conditions",
    "controls": "a run with a control",
    "scaling": "models whose number of parameters is known",
    "settings": "a study",
}
#: The page with all figures and their captions.
PAGE = "figures.md"


class Figures(dict[str, bytes]):
    """Contents of files by name. A notebook shows each figure once, with its caption;
    an SVG takes precedence. ``figures["forest"]`` has the files of one figure.
    """

    #: The figures that were asked for, but have no data.
    absent: tuple[str, ...] = ()

    def __missing__(self, name: str) -> Figures:
        found = {one: self[one] for one in self if one.rpartition(".")[0] == name}
        if not found:
            stems = {one.rpartition(".")[0] for one in self if one != PAGE}
            raise UnknownNameError("figure", name, stems)
        return Figures(found | {PAGE: self[PAGE]} if PAGE in self else found)

    @arguments.checked()
    def save(self, directory: str | os.PathLike[str] = "figures") -> list[Path]:
        """Write all files into a directory, which is created if necessary, and return
        their paths. Raise OptionError if they cannot be written.
        """
        folder = Path(directory)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self.items():
                write_whole(folder / name, content)
        except OSError as error:
            raise OptionError(
                f"{folder} cannot be written: {error.strerror}. Name another directory."
            ) from error
        return [folder / name for name in self]

    def __repr__(self) -> str:
        said = f"<Figures: {', '.join(self) or 'nothing'}>"
        return " ".join(filter(None, (said, self._no_data())))

    def _no_data(self) -> str:
        said = ", ".join(
            f"{name} (needs {_NEEDS.get(name, 'a cell that was measured')})"
            for name in self.absent
        )
        return f"No data for {said}." if said else ""

    def _repr_html_(self) -> str:
        kinds = {"svg": "image/svg+xml", "png": "image/png"}
        shown, captions = {}, self._captions()
        for name in sorted(self, key=lambda name: name.endswith(".svg")):
            stem, _, suffix = name.rpartition(".")
            if suffix in kinds:
                packed = base64.b64encode(self[name]).decode("ascii")
                source = f"data:{kinds[suffix]};base64,{packed}"
                alt = escape(captions.get(stem, stem))
                caption = alt.partition(". ")[0].removesuffix(".")
                shown[stem] = (
                    f"<figure><figcaption>{caption}</figcaption>"
                    f'<img alt="{alt}" src="{source}" style="max-width: 100%"></figure>'
                )
        no_data = self._no_data() or ("" if shown else "No figure has data.")
        return "".join(shown.values()) + (
            f"<p>{escape(no_data)}</p>" if no_data else ""
        )

    def _captions(self) -> dict[str, str]:
        """Return the captions of the figures, by file name without suffix."""
        page = self.get(PAGE, b"").decode()
        found = re.findall(r"^!\[(.*)\]\((.*)\.\w+\)$", page, re.MULTILINE)
        return {
            stem: unescape(re.sub(r"<!-- -->|\\(?=[^\w\s])", "", caption))
            for caption, stem in found
        }


class Findings(tables.Tabular, dict[Path, Sequence["Diagnostic"]]):
    """Findings in protocol files, by file."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each finding."""
        return [
            {
                "file": one.position.file,
                "line": one.position.line,
                "column": one.position.column,
                "severity": one.severity,
                "code": one.label,
                "sentence": one.sentence,
                "remedy": one.remedy,
            }
            for found in self.values()
            for one in found
        ]


def _check_drawing(formats: Sequence[str], width: float | None, dpi: int) -> None:
    unknown = [name for name in formats if name not in ("svg", "png", "pdf")]
    if unknown:
        raise OptionError(
            f"--format {','.join(formats)}: '{unknown[0]}' is not one of svg, png, pdf."
        )
    if width is not None and not 1 <= width <= 50:
        raise OptionError(f"--width {width:g}: give 1 to 50 inches.")
    if not 10 <= dpi <= 1200:
        raise OptionError(f"--dpi {dpi}: give 10 to 1200 dots per inch.")


@arguments.checked()
def figures(
    runs: api.Names,
    *,
    results: str | os.PathLike[str] = "results",
    only: api.Names = (),
    formats: api.Names = ("svg", "png"),
    width: float | None = None,
    dpi: int = 150,
    tell: Callable[[str], None] | None = None,
) -> Figures:
    """Return the figures and tables of runs, as contents by file name. Figures without
    data are left out. A notebook shows the result; ``figures(run).save("figures")``
    writes the files.

    ``only`` names the figures to draw, such as ``"forest"``; most of the time goes into
    the figures of behaviour, which replay trials (curves, measures, latency,
    path_length, strategies, occupancy, tracks).

    ``formats`` are svg, png and pdf. ``width`` is the width of every figure in inches
    (None: each has its own), ``dpi`` the resolution of a png. ``tell`` is called with a
    sentence about each log. Raise OptionError without the extra ``figures``, for an
    invalid format, width or dpi, and if runs have different protocols of the same name.
    Raise RunLogError for a run that is missing or was changed.
    """
    plugins = installed_plugins()
    reporter = plugins.reporter("figures")
    if not isinstance(reporter, FigureReporter):
        raise OptionError(
            "The plugin that registers the report format 'figures' draws no figures. "
            "Remove it ('cheesebench plugins' names it)."
        )
    formats = api.names_of(formats)
    _check_drawing(formats, width, dpi)
    sizes = {
        name: entry.parameters
        for entry in known_models(plugins, user_models()).values()
        if entry.parameters is not None
        for name in (entry.name, *entry.aliases)
    }
    line, began, chosen = api.teller(None), time.monotonic(), api.names_of(only)
    line(f"Drawing {', '.join(chosen) or 'all figures, some of which replay trials'}")
    try:
        with ExitStack() as stack:
            logs = [
                stack.enter_context(RunLog.open_read_only(locate(Path(results), name)))
                for name in api.names_of(runs)
            ]
            for log in logs:
                api.teller(tell or False)(rows_only(log))
            read = [(summarise_log(log), log) for log in logs]
            check_same_protocols([summary for summary, _ in read])
            found = Figures(
                reporter.render_figures(
                    read,
                    plugins,
                    sizes=sizes,
                    formats=tuple(dict.fromkeys(formats)),
                    width=width,
                    dpi=dpi,
                    only=chosen,
                )
            )
            drawn = {name.rpartition(".")[0] for name in found}
            found.absent = tuple(name for name in chosen if name not in drawn)
            line(f"Drawn in {duration(time.monotonic() - began)}.\n")
            return found
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise OptionError(
            f"Figures need matplotlib: {install_command('figures')}"
        ) from error


def check_same_protocols(summaries: Sequence[RunSummary]) -> None:
    """Raise OptionError if two runs have different protocols of the same name."""
    known: dict[str, tuple[str, object]] = {}
    for summary in summaries:
        run = summary.manifest.get("run_id")
        for cell in summary.cells:
            sha, other = known.setdefault(cell.plan.protocol, (cell.plan.sha256, run))
            if sha != cell.plan.sha256:
                raise OptionError(
                    f"The protocol '{cell.plan.protocol}' is not the same in the runs {other} ({sha[:8]}) and {run} "
                    f"({cell.plan.sha256[:8]}). Their results cannot be shown in one figure: leave one run out."
                )


class Runs:
    """The models of several runs, summarised like the models of one run."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """``paths`` are the files of the logs."""
        self._paths = paths
        self._plugins = installed_plugins()
        with self._logs() as logs:
            for log in logs:
                rows_only(log, ranked=True)
            self._read = summarise_logs(logs)
        #: The summary of the runs, as in reports, with arguments in place of options.
        self.summary: RunSummary = api.in_python(self._read)

    def frame(self) -> pandas.DataFrame:
        """Return one row for each cell, with the columns of ``Run.verdicts``."""
        return api.frame_of(api.verdict_rows(self.summary))

    @arguments.checked()
    def html(self, path: str | os.PathLike[str] = "board.html") -> Path:
        """Write the HTML page, with a player for the trials of all runs, and return its
        path. Raise OptionError if a plugin has replaced the report format ``html`` by
        one that shows only one run.
        """
        reporter = self._plugins.reporter("html")
        if not isinstance(reporter, RunsReporter):
            raise OptionError(
                "The plugin that registers the report format 'html' shows only one run. "
                "Remove it ('cheesebench plugins' names it)."
            )
        with self._logs() as logs:
            page = reporter.render_runs(self._read, logs, self._plugins)
        write_whole(Path(path), arguments.report_in_python(page, ".html"))
        return Path(path)

    @contextmanager
    def _logs(self) -> Iterator[list[RunLog]]:
        with ExitStack() as stack:
            yield [
                stack.enter_context(RunLog.open_read_only(path)) for path in self._paths
            ]

    def __repr__(self) -> str:
        said = [f"{one.model} in {one.view} {one.gate}" for one in self.summary.models]
        return printable(f"<Runs: {'; '.join(said)}>")

    def _repr_markdown_(self) -> str:
        """Show the matrix in a notebook."""
        return api.matrix_of(self._plugins, self.summary)


@arguments.checked()
def report(runs: api.Names, *, results: str | os.PathLike[str] = "results") -> Runs:
    """Return several runs of different models as one table, for a notebook, a data
    frame or a page (like ``cheesebench report RUN RUN --html``).

    Raise OptionError unless all cells are finished, all runs have the same rules, and
    every cell is in one run only. Raise RunLogError for a log whose rows were changed.
    """
    return Runs([locate(Path(results), name) for name in api.names_of(runs)])


@arguments.checked()
def lint(files: api.Names = ".") -> Findings:
    """Return the errors, warnings and notes of every protocol file; directories are
    searched recursively. Raise OptionError for a directory without such files.
    """
    catalogue = installed_catalogue()
    return Findings(
        (path, catalogue.inspect(path)[1])
        for path in protocol_files(catalogue, api.names_of(files))
    )


def protocol_files(catalogue: Catalogue, names: Iterable[str]) -> Iterator[Path]:
    """Yield the protocol files that are named, or are in a named directory, each once.
    Raise OptionError for a directory without such files.
    """
    seen: set[Path] = set()
    for name in names:
        directory = Path(name)
        found = (
            sorted(directory.rglob(f"*{SUFFIX}"))
            if directory.is_dir()
            else [find_protocol(catalogue, name)]
        )
        if not found:
            raise OptionError(
                f"There is no file *{SUFFIX} in the directory '{name}'. Name a protocol, or another directory."
            )
        for path in found:
            if real_path(path) not in seen:
                seen.add(real_path(path))
                yield path


class Installed(tables.Tabular, list[dict[str, object]]):
    """What is installed: a row for each thing, with its kind, name and description."""

    def rows(self) -> list[dict[str, object]]:
        """Return the rows, with ``kind``, ``name`` and ``about``."""
        return list(self)


@arguments.checked()
def catalogue(kind: str = "") -> Installed:
    """Return the protocols, agents, models, designs, controls, views, report formats,
    backends and executors that can be named, or only those of a ``kind`` (such as
    ``"models"``). Raise UnknownNameError for an unknown kind.
    """
    plugins = installed_plugins()
    families = [family.plural for family in plugins.families.values()]
    kinds = [*families, "agents", "models", *_OTHER_KINDS]
    if kind and kind not in kinds:
        raise UnknownNameError("kind", kind, kinds)
    sections = _sections(plugins)
    if not kind or kind in families:  # Loading all protocols takes seconds.
        sections |= installed.protocols(plugins, installed_catalogue())[0]
    return Installed(
        {"kind": one, **_described(found)}
        for one in ([kind] if kind else kinds)
        for found in sections[one]
    )


_OTHER_KINDS = (
    "designs",
    "controls",
    "views",
    "report_formats",
    "backends",
    "executors",
)


def _sections(plugins: PluginManager) -> dict[str, Any]:
    """Return what can be named besides protocols, by kind."""
    named: dict[str, Mapping[str, str]] = {
        "models": {
            entry.name: f"{entry.backend}/{entry.id}"
            for entry in known_models(plugins, user_models()).values()
        },
        "views": _summaries(plugins.views),
        "report_formats": _summaries(plugins.reporters),
        "designs": _summaries(run_cells.DESIGNS),
        "controls": run_controls.described(),
    }
    return installed.others(plugins) | {
        kind: [{"name": name, "summary": summary} for name, summary in found.items()]
        for kind, found in named.items()
    }


def _summaries(things: Mapping[str, object]) -> dict[str, str]:
    return {name: getattr(thing, "summary", "") for name, thing in things.items()}


def _described(found: Mapping[str, object]) -> dict[str, object]:
    about = found.get("title") or found.get("summary") or ""
    return {"name": found["name"], "about": arguments.in_python(str(about))}


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise OptionError(f"--{name} {number:g}: give a number above 0.")


def _check_shares(**numbers: float | None) -> None:
    for name, number in numbers.items():
        if number is not None and not 0 <= number <= 1:
            raise OptionError(f"--{name} {number:g}: give a number from 0 to 1.")


def _parts(names: Sequence[str]) -> tuple[AuditPart, ...] | None:
    for unknown in set(names) - set(AUDIT_PARTS):
        raise UnknownNameError("part of the audit", unknown, AUDIT_PARTS)
    return tuple(part for part in AUDIT_PARTS if part in names) or None


@arguments.checked(
    protocol=arguments.Kind(
        "a name, a file or a specification",
        lambda value: (
            value if isinstance(value, BaseSpecification) else os.fspath(value)
        ),
    ),
    progress=arguments.CALLED,
)
def audit(
    protocol: str | os.PathLike[str] | BaseSpecification,
    *,
    views: api.Names | None = None,
    trials: int = 2000,
    seed: int = 0,
    effort: float = 1.0,
    parts: api.Names | None = None,
    processes: int = 1,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit a protocol: its chance level, leaks, draws and lesions, and whether it can
    be solved.

    Finished searches are kept in the user's cache. An audit that was stopped continues
    from them, and so does an audit of the same protocol after the animals' pass rate
    was changed.

    Parameters:
        protocol: A name, a file, or a specification in which ``lint`` has found no
            error.
        views: The views to audit; by default all that fit.
        trials: Number of trials for each chance level.
        seed: Seed of the audit.
        effort: Factor on the time spent searching for ways to succeed under lesions.
        parts: The parts to run, such as ``"lesions"``; by default all but ``"memory"``.
        processes: Number of worker processes. It changes no finding.
        progress: Called with the name of each part, and each verdict. By default a
            terminal and a notebook show these lines.
    """
    _check_positive(trials=trials, effort=effort, processes=processes)
    specification = (
        protocol
        if isinstance(protocol, BaseSpecification)
        else load_protocol(os.fspath(protocol))
    )
    tell, began = api.teller(progress), time.monotonic()
    settings = AuditSettings(
        trials=trials,
        seed=seed,
        effort=effort,
        parts=_parts(api.names_of(parts or ())),
        processes=processes,
        progress=tell,
    )
    found = audit_specification(
        specification, settings, api.names_of(views or ()), is_kept=True
    )
    if progress is None:
        took = duration(time.monotonic() - began)
        tell(f"Audited {specification.name} in {took}.\n")
    return found


@arguments.checked()
def plan(
    models: api.Names | api.Run,
    protocols: api.Names = (),
    *,
    view: api.Names = (),
    icc: float | None = None,
    rate: float = 0.95,
    ask: bool = False,
    plugins: Iterable[object] | AgentSpec | BackendSpec = (),
    **options: Any,
) -> Forecast:
    """Forecast the subjects, calls, tokens and dollars of a run, and how often each
    verdict comes. Three simulated players take the model's place: one that moves at
    random, one as good as the animals, and one with a given pass rate.

    ``models`` may be a run (``open_run`` opens one by its id), whose models, protocols,
    views, design and subjects are then used, unless others are given. Where a model has
    run before with the same settings, its calls are forecast from its replies. ``rate``
    is the pass rate of the third player (for example, what a pilot run showed). With
    ``ask``, the model answers the first questions now. ``plugins`` is as in ``run``,
    and ``options`` are any other options of ``run``. To find how many subjects are
    needed, try several values of ``subjects``. Raise CheeseBenchError for a mistake in
    the arguments.

    ``icc`` is the intraclass correlation of a subject's trials. If it is None, it is 0
    for an agent without memory, the animals' own for the player as good as the animals
    if the protocol has their rows, and otherwise 0.3. The result says which.
    """
    _check_shares(icc=icc, rate=rate)
    _check_new(options)
    found = api.plugins_with(plugins, models)
    own = _like(models) if isinstance(models, api.Run) else {}
    if {"design", "subjects", "profile"} & options.keys():
        own = {name: own[name] for name in own if name not in ("design", "subjects")}
    options = own | {"models": own.get("models", models)} | options
    for name, value in (("protocols", protocols), ("view", view)):
        options[name] = value or own.get(name, ())
    given = _as_recorded(api.given_options(**options), models)
    try:
        return forecast_of(
            given,
            icc=icc,
            ask=ask,
            rate=rate,
            usual=usual_protocols(),
            plugins=found,
        )
    except UnknownNameError:
        is_run = isinstance(models, str) and Path("results", models).is_dir()
        if not is_run:
            raise
        raise OptionError(
            f"'{models}' is a run, not a model. Give plan(cheesebench.open_run('{models}'))."
        ) from None


def _check_new(options: Mapping[str, Any]) -> None:
    """Raise OptionError for options of a resumed run, which a forecast is not about."""
    if options.get("resume") is not None or options.get("retry_errors"):
        raise OptionError(
            "--resume and --retry-errors do not apply to plan: plan(cheesebench.open_run(ID)) plans a run that was made."
        )


def _as_recorded(given: Given, models: api.Names | api.Run) -> Given:
    """Return the options with the run that recorded their models, if it is one."""
    if not isinstance(models, api.Run):
        return given
    recorded = {"model": given.values["model"]}
    return replace(given, recorded=recorded, origin=f"Run '{models.id}'")


def _like(run: api.Run) -> dict[str, Any]:
    """Return the options that plan a run again."""
    plans = [cell.plan for cell in run.summary.cells]
    options: Any = run.summary.manifest["options"]
    return {
        "models": list(dict.fromkeys(one.model for one in plans)),
        "protocols": list(dict.fromkeys(one.protocol for one in plans)),
        "view": list(dict.fromkeys(one.view for one in plans)),
        "results": str(run.directory.parent),
        **{name: options.get(name) for name in ("design", "subjects")},
    }


def forecast_of(
    given: Given,
    *,
    plugins: PluginManager | None = None,
    icc: float | None = None,
    rate: float = 0.95,
    ask: bool = False,
    tell: Callable[[str], None] = lambda line: None,
    usual: tuple[Sequence[str], str],
) -> Forecast:
    """Return the forecast of a run with these options. Raise OptionError if they name
    no model. ``usual``: the protocols if none are given, and where they are named.
    """
    plugins, values = plugins or installed_plugins(), given.resolve()
    if not (values.model or values.study):
        raise OptionError(
            "Name a model: --model NAME, or a --profile or --study that names one."
        )
    settings, _ = run_settings.cell_settings(
        given, plugins, Path.cwd(), usual_protocols=usual
    )
    limits = run_settings.call_options(values).limits
    run_settings.check_prices(limits, settings.language.values())
    for view in settings.views:
        plugins.view(view)
    catalogue = Catalogue(plugins.protocol_directories)
    cells = list(settings.planned(catalogue))
    if settings.familywise:
        plans = run_cells.familywise([plan for plan, _ in cells])
        cells = [
            (plan, specification)
            for plan, (_, specification) in zip(plans, cells, strict=True)
        ]
    return forecast(
        plugins,
        cells,
        settings.language,
        seed=values.seed or 0,
        icc=icc,
        rate=rate,
        max_cost=values.max_cost,
        max_tokens=values.max_tokens,
        earlier=EarlierRuns(Path(values.results)),
        asked=first_answers(plugins, cells, settings.language, tell) if ask else {},
    )
