"""Writes output for CI systems, such as annotations, the job summary, and the cases of
a JUnit file.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from _pytest.junitxml import LogXML, xml_key

from cheesebench.pytest_session import exit_status
from cheesebench.statistics import RunSummary, Verdict, wording
from cheesebench.statistics.comparison import RunComparison
from cheesebench.statistics.question import animals_interval
from cheesebench.statistics.wording import with_doubts
from cheesebench.terminal import printable

if TYPE_CHECKING:
    from cheesebench.statistics import CellResult

Properties = list[tuple[str, str]]

PREFIX = "cheesebench."


#: Properties that an unfinished cell does not have.
_NO_RESULT = frozenset(
    f"{name}{end}"
    for name in ("rate", "interval", "measure", "difference", "ability")
    for end in ("", "_mean", "_low", "_high")
) - {"measure"}


def case_properties(result: CellResult) -> Properties:
    """Return the properties of one judged cell. Properties without a value are left
    out, and so are the results of an unfinished cell (``_NO_RESULT``).

    Rates are proportions. A control has its name (``control``) instead of a verdict,
    unless it could not be measured.
    """
    left_out = _NO_RESULT if result.is_unfinished else frozenset()
    return _properties(one for one in _of_case(result) if one[0] not in left_out)


def _of_case(result: CellResult) -> list[tuple[str, object]]:
    plan, flags, reference = result.plan, result.flags, result.plan.reference
    interval = result.interval
    animals = animals_interval(reference)
    return [
        ("model", plan.model),
        ("protocol", plan.protocol),
        ("protocol_sha256", plan.sha256),
        ("view", plan.view),
        ("variant", str(plan.variant)),
        ("design", plan.design),
        ("control", plan.control),
        (
            "verdict",
            result.verdict and result.verdict.value,
        ),
        ("reason", result.reason),
        ("n", result.n_text),
        ("subjects", result.subjects),
        ("trials_per_subject", plan.trials),
        ("planned", result.planned),
        ("valid", result.valid),
        ("passed", result.passed),
        ("missing", result.missing),
        ("rate", result.rate),
        ("interval_low", interval and interval[0]),
        ("interval_high", interval and interval[1]),
        ("interval_method", result.interval_method),
        *_measure_properties(result),
        ("reference", reference and reference.value),
        ("reference_low", animals and animals[0]),
        ("reference_high", animals and animals[1]),
        (
            "reference_declared",
            flags.reference_declared if reference is not None else None,
        ),
        ("margin", plan.margin),
        ("difference", result.difference),
        ("difference_low", result.difference_low),
        ("difference_high", result.difference_high),
        ("icc", result.icc),
        ("random", plan.chance),
        *_ability_properties(result),
        ("undecidable", wording.undecidable(result)),
        ("subjects_needed", result.subjects_needed),
        ("not_diagnostic", flags.not_diagnostic),
        ("goal_visible", flags.goal_visible),
        ("this_subject_only", flags.this_subject_only),
        ("duplicate_subjects", flags.duplicate_subjects),
        ("memory_contradicted", flags.memory_contradicted),
        ("analogy", flags.analogy or None),
        ("warnings", "; ".join(result.warnings)),
        ("causes", "; ".join(result.causes)),
        *_game_properties(result),
        *_validity_properties(result),
        *_call_properties(result),
    ]


def _ability_properties(result: CellResult) -> list[tuple[str, object]]:
    """Return the values of the model, the animals and the bar on the ability scale, and
    the rates at the scale's two ends. The list is empty without such values.
    """
    scale, found = result.plan.ability, result.ability
    if scale is None or found is None:
        return []
    return [
        ("ability", found.model),
        ("ability_low", found.interval and found.interval[0]),
        ("ability_high", found.interval and found.interval[1]),
        ("ability_rodent", found.rodent),
        ("ability_bar", found.bar),
        ("ability_without", scale.without),
        ("ability_ideal", scale.ideal),
    ]


def _measure_properties(result: CellResult) -> list[tuple[str, object]]:
    """Return the properties of a judged measure, in whose unit the cell's reference,
    margin and differences are. The list is empty if the pass rate is judged.
    """
    measured, judged = result.plan.measured, result.judged
    if measured is None:
        return []
    return [
        ("measure", measured.name),
        ("measure_better", measured.better),
        ("measure_mean", judged and judged.mean),
        ("measure_low", judged and judged.interval and judged.interval[0]),
        ("measure_high", judged and judged.interval and judged.interval[1]),
        ("measure_sd", judged and judged.sd),
        ("measure_subjects", judged and judged.subjects),
    ]


def _game_properties(result: CellResult) -> list[tuple[str, object]]:
    game = result.game
    if game is None:
        return []
    return [
        ("evidence_pass", game.passing),
        ("evidence_fail", game.failing),
        ("evidence_goal", game.goal),
        ("p_value", game.p_value),
        ("decided_after", game.decided),
        ("stale", game.stale or None),
        ("subjects_most", game.most),
        ("subjects_beyond", game.beyond or None),
        ("stopped_by_result", result.flags.stopped_by_result or None),
    ]


def _validity_properties(result: CellResult) -> list[tuple[str, object]]:
    plan = result.plan
    if plan.items:
        return []
    construct, lesion = plan.construct, plan.lesion
    return [
        ("construct", construct and construct.name),
        (
            "validity",
            "not validated"
            if construct is None or construct.doubt
            else construct.status,
        ),
        (
            "abolished_by",
            construct and [f"{name} {most:g}" for name, most in construct.abolished_by],
        ),
        ("lesion", plan.control if lesion else None),
        ("lesion_at_most", lesion and lesion.at_most),
        ("contradicted", " ".join(result.contradicted)),
        ("memory", plan.settings.get("memory") or None),
        ("remarks", " ".join(result.remarks)),
    ]


def _call_properties(result: CellResult) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = [
        (f"agent.{name}", count) for name, count in result.agent_counts.items()
    ]
    if result.calls is not None:
        totals = result.calls.totals
        pairs += [(f"calls.{name}", getattr(totals, name)) for name in totals.__slots__]
        pairs.append(("served_by", result.calls.served_by))
    return pairs


def suite_properties(summary: RunSummary) -> Properties:
    """Return the properties of the whole run: its identity, options, versions and git
    state, and the result of each model in each view.
    """
    manifest = summary.manifest
    pairs: list[tuple[str, object]] = [
        (name, manifest.get(name)) for name in ("run_id", "created", "format")
    ]
    for section in ("options", "versions", "git"):
        values = manifest.get(section)
        if isinstance(values, Mapping):
            pairs.extend((f"{section}.{name}", value) for name, value in values.items())
    for model in summary.models:
        where = f"{model.model}[{'-'.join(filter(None, (model.view, model.variant)))}]"
        pairs.append((f"{where}.gate", model.gate.value))
        pairs.append((f"{where}.gate_reason", model.gate_reason))
        if model.overall is not None:
            pairs.append((f"{where}.mean_rate", model.overall.mean))
            pairs.append((f"{where}.mean_rate_interval", model.overall.interval))
    return _properties(pairs)


def comparison_properties(found: RunComparison) -> Properties:
    """Return the properties of the comparison with a baseline, which concerns the whole
    run.
    """
    pairs: list[tuple[str, object]] = [
        ("compared_with", found.second),
        ("worse", found.worse),
    ]
    for model in found.models:
        where = "-".join(filter(None, (model.view, model.variant)))
        for cell in model.cells:
            name = f"{model.first_model}[{where}].{cell.protocol}.compared"
            pairs += [
                (name, cell.said),
                (f"{name}_difference", cell.paired.difference),
            ]
        pairs.append((f"{model.first_model}[{where}].compared", model.said))
    pairs.append(("not_compared", list(found.unseen) or None))
    pairs.append(("comparison_warnings", " ".join(found.warnings)))
    return _properties(pairs)


def exit_properties(decision: str, remedy: str) -> Properties:
    """Return the properties that say how the session ends."""
    return _properties([("exit", decision), ("remedy", remedy)])


def _properties(pairs: Iterable[tuple[str, object]]) -> Properties:
    return [
        (printable(PREFIX + name), _text(value))
        for name, value in pairs
        if value is not None and value != ""
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return printable(",".join(map(str, value)))
    return printable(str(value))


#: Maximum size of a step's summary in bytes. GitHub drops a larger summary entirely.
LIMIT = 2**20
_FENCE = "```"
_CUT = (
    "\n\n*Cut here, because GitHub limits a summary to 1 MiB. The whole report is `report.md` in the run's "
    "directory.*\n"
)


def append_step_summary(text: str) -> None:
    """Append a Markdown report to the summary of this step, if there is one, up to its
    maximum size. Raise OSError if the file cannot be written.
    """
    given = os.environ.get("GITHUB_STEP_SUMMARY")
    if not given:
        return
    path = Path(given)
    taken = path.stat().st_size if path.exists() else 0
    with path.open("a", encoding="utf-8") as file:
        file.write(cut(text, LIMIT - taken))


def folded(title: str, text: str) -> str:
    """Return Markdown that is folded away on GitHub and GitLab until the reader opens
    it.
    """
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>\n"


def cut(text: str, room: int) -> str:
    """Return the text if it fits into ``room`` bytes. Otherwise return as many whole
    lines as fit, with a notice, or "" if there is no room for the notice.
    """
    content = text.encode()
    if len(content) <= room:
        return text
    # A truncated code block must be closed. Otherwise the rest of the page would be
    # code.
    closing = f"{_FENCE}{_CUT}"
    room -= len(closing.encode())
    if room <= 0:
        return ""
    kept = content[:room].rpartition(b"\n")[0].decode()
    return (
        kept + "\n" + (closing if kept.count(f"\n{_FENCE}") % 2 else _CUT.lstrip("\n"))
    )


#: Maximum number of annotations of a kind that GitHub shows for one step.
MOST = 10
_KINDS = {
    Verdict.FAIL: "error",
    Verdict.ERROR: "error",
    Verdict.INCONCLUSIVE: "warning",
}


def annotate(
    cells: Iterable[CellResult],
    paths: dict[str, Path],
    root: Path,
    fails: bool,
    forgives: bool,
) -> Iterator[str]:
    """Yield commands of GitHub Actions for cells, except controls: errors for a FAIL or
    ERROR, and warnings for an INCONCLUSIVE and for doubtful numbers. There are at most
    ``MOST`` of each kind.

    ``fails`` says whether a FAIL affects the exit code; if not, it is a warning. With
    ``forgives``, a comparison decides the code instead of the verdicts, so only an
    ERROR and doubtful numbers are annotated. So it is in a design that claims nothing,
    but for a FAIL that is an error.

    ``paths`` are the files of the protocols, by name. Outside GitHub, yield nothing.
    """
    if not is_github():
        return
    left = {"error": MOST, "warning": MOST}
    for cell in cells:
        kind, doubtful = _kind_of(cell, fails, forgives), ""
        if not kind and cell.warnings and not cell.plan.control:
            kind, doubtful = "warning", "doubtful "
        if not left.get(kind):
            continue
        left[kind] -= 1
        title = f"{doubtful}{cell.verdict}: {cell.plan.model} on {cell.plan.label}"
        yield command(
            kind, title, with_doubts(cell), paths.get(cell.plan.protocol), root
        )


def _kind_of(cell: CellResult, fails: bool, forgives: bool) -> str:
    """Return the kind of an annotation of a cell's verdict, or "" if there is none."""
    if cell.plan.control or cell.verdict is None:
        return ""
    kind = _KINDS.get(cell.verdict, "")
    if cell.verdict is Verdict.FAIL and not fails:
        kind = "warning"
    is_quiet = forgives or not cell.plan.claims
    return "" if kind == "warning" and is_quiet else kind


def annotate_exit(said: str) -> Iterator[str]:
    """Yield the command that says how the session ends, if this is GitHub Actions."""
    if is_github():
        yield command("error", "cheesebench", said)


def annotate_comparison(
    found: RunComparison,
    blamed: Sequence[tuple[str, str, str]],
    paths: dict[str, Path],
    root: Path,
) -> Iterator[str]:
    """Yield commands of GitHub Actions: errors for the comparisons in ``blamed``, which
    fail the run, and warnings for other losses (at most ``MOST`` of each), for what was
    not compared, and for doubts about the other run. Outside GitHub, yield nothing.
    """
    if not is_github():
        return
    losses = [one for one in found.losses if one not in blamed]
    for kind, shown in (("error", blamed), ("warning", losses)):
        for title, protocol, reason in shown[:MOST]:
            yield command(kind, title, reason, paths.get(protocol), root)
    yield from _annotate_doubts(found, {reason for _, _, reason in blamed})


def _annotate_doubts(found: RunComparison, known: Set[str]) -> Iterator[str]:
    # Doubts about this run are left out, because its cells have annotations of their
    # own.
    own = f" in {found.first} is doubtful in the trials that count: "
    for title, lines in (
        ("not compared", found.not_compared),
        ("doubtful", found.doubtful),
    ):
        for line in lines:
            if line not in known and own not in line:
                yield command("warning", title, line)


def annotate_broken(broken: Sequence[exit_status.Broken], root: Path) -> Iterator[str]:
    """Yield commands of GitHub Actions for the first ``MOST`` protocols that could not
    be run. Outside GitHub, yield nothing.
    """
    for one in broken[:MOST] if is_github() else ():
        title = f"{one.name} could not be run"
        yield command("error", title, one.text, Path(one.path), root, one.line)


def is_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def is_ci() -> bool:
    """Return whether this is a CI job. People then read the run's files from an
    artifact.
    """
    return is_github() or os.environ.get("CI") == "true"


def plain(text: str) -> str:
    """Return a remedy without backticks, for places that do not render Markdown."""
    return text.replace("`", "")


def job_address() -> str:
    """Return the address of this run of GitHub Actions, or "" if it is unknown."""
    server, repository = (
        os.environ.get("GITHUB_SERVER_URL", ""),
        os.environ.get("GITHUB_REPOSITORY", ""),
    )
    parts = (server, repository, os.environ.get("GITHUB_RUN_ID", ""))
    if not (is_github() and all(parts)) or re.search(r"[^\w:/.-]", "".join(parts)):
        return ""
    return "{}/{}/actions/runs/{}".format(*parts)


def command(
    kind: str,
    title: str,
    text: str,
    path: Path | None = None,
    root: Path = Path(),
    line: int = 1,
) -> str:
    """Return the command for one annotation. It names the file if the file is inside
    ``root``.
    """
    properties = {"title": title}
    if path is not None and path.absolute().is_relative_to(root):
        # GitHub knows only files of the repository.
        properties = {
            "file": path.absolute().relative_to(root).as_posix(),
            "line": str(line),
            **properties,
        }
    shown = ",".join(
        f"{name}={_escaped(value, ':,')}" for name, value in properties.items()
    )
    return f"::{kind} {shown}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    """Escape text for GitHub, so that it ends neither the command nor the property."""
    text = printable(text)
    for glyph in f"%\r\n{more}":
        text = text.replace(glyph, f"%{ord(glyph):02X}")
    return text


#: Class name of JUnit cases that do not belong to a test.
_CLASS = "cheesebench"


def add_failure(config: pytest.Config, name: str, reason: str, decision: str) -> None:
    """Add a failure to the JUnit file and to the failures in the terminal. In the JUnit
    file, ``decision`` (why the session fails, or "") follows the failure's own
    ``reason``.
    """
    add_case(config, name, f"{reason}\n\n{decision}".rstrip())
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        failed = terminal.stats.setdefault("failed", [])
        failed.append(_failed_case(name, reason, "call"))


def add_to_error(config: pytest.Config, decision: str) -> bool:
    """Append ``decision`` to the reason of the first error in the JUnit file. Return
    whether there is one.
    """
    xml = config.stash.get(xml_key, None)
    for case in () if xml is None else xml.node_reporters_ordered:
        for error in case.to_xml().iter("error"):
            error.text = f"{error.text or ''}\n\n{printable(decision)}"
            return True
    return False


def _failed_case(
    name: str, text: str, when: Literal["setup", "call"]
) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=f"{_CLASS}::{printable(name)}",
        location=("", None, printable(name)),
        keywords={},
        outcome="failed",
        longrepr=printable(text),
        when=when,
    )


def add_case(
    config: pytest.Config,
    name: str,
    text: str,
    *,
    when: Literal["setup", "call"] = "call",
    properties: Iterable[tuple[str, str]] = (),
) -> None:
    """Add a failed case, and properties of the whole run, to the JUnit file, if one is
    requested. If pytest has not begun the file, write it with this case alone. The case
    is an error if ``when`` is *setup*.
    """
    xml, own = config.stash.get(xml_key, None), None
    if (
        xml is None
        and config.getoption("xmlpath", None)
        and not hasattr(config, "workerinput")
    ):
        # Options are checked before pytest configures JUnit, and pytest writes no JUnit
        # file for a refused session. Write it here, so that no old file remains.
        suite, family = config.getini("junit_suite_name"), config.getini("junit_family")
        xml = own = LogXML(
            config.option.xmlpath, config.option.junitprefix, suite, family=family
        )
        own.pytest_sessionstart()
    if xml is None:
        return
    report = _failed_case(name, text, when)
    xml.pytest_runtest_logreport(report)
    _name_error(xml, report)
    for own_property in properties:
        xml.add_global_property(*own_property)
    if own is not None:
        with contextlib.suppress(OSError):
            own.pytest_sessionfinish()


def name_error(config: pytest.Config, report: pytest.TestReport) -> None:
    """Give an error in the JUnit file its own first paragraph as a message. In pytest's
    message the setup of a test failed, but in ours something could not be measured.
    """
    xml = config.stash.get(xml_key, None)
    if xml is not None and config.pluginmanager.is_registered(xml):
        _name_error(xml, report)


def _name_error(xml: LogXML, report: pytest.TestReport) -> None:
    said = printable(str(report.longrepr).strip()).partition("\n\n")[0]
    for node in xml.node_reporter(report).nodes:
        if node.tag in ("error", "failure"):
            node.set("message", said)


def add_suite_properties(config: pytest.Config, properties: Properties) -> None:
    """Add properties of the whole run to the JUnit file, if there is one."""
    xml = config.stash.get(xml_key, None)
    if xml is not None:
        for name, value in properties:
            xml.add_global_property(name, value)
