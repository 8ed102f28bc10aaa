"""Reporting of a session: the outcome of each item, the verdict table, the report
files, the exit status.
"""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from _pytest.junitxml import xml_key

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import LATEST
from cheesebench.experiment.session import OBSERVER, Observers, is_finished
from cheesebench.files import write_whole
from cheesebench.model_run import summarise_log
from cheesebench.options import BY_KEY, OPTIONS
from cheesebench.pytest_options import SPELLINGS
from cheesebench.pytest_session import collection
from cheesebench.pytest_session.ci import (
    add_case,
    add_suite_properties,
    annotate,
    annotate_comparison,
    append_step_summary,
    comparison_properties,
    forgive_case,
    job_address,
    suite_properties,
    tell_refusal,
)
from cheesebench.pytest_session.collection import BrokenProtocol, CellItem
from cheesebench.pytest_session.run import PytestRun, shown
from cheesebench.records import CallTotals
from cheesebench.statistics import CellResult, RunSummary, Verdict
from cheesebench.statistics.comparison import RunComparison
from cheesebench.statistics.judgement import judge_set
from cheesebench.statistics.wording import plural
from cheesebench.terminal import printable


def larger_budgets(
    run: PytestRun, unfinished: Sequence[CellResult]
) -> tuple[dict[str, str], str]:
    """Return budgets that suffice for the rest of the run, by the option's key, and
    lines that explain them.

    Without an estimate of the rest they are doubled, because the old ones are spent.
    Minutes are per session, so the next one has the same number again.
    """
    log, limits, found = run.log, run.settings.calls.limits, dict[str, str]()
    assert log is not None
    spent, parts, doubled = log.calls.totals(), list[str](), False
    needed = _still_needed(log, unfinished)
    tokens = spent.prompt + spent.completion
    more_tokens = None if needed is None else needed.prompt + needed.completion
    for key, limit, so_far, more, unit in (
        (
            "max_cost",
            limits.cost,
            spent.cost,
            None if needed is None else needed.cost,
            "${:,.2f}",
        ),
        (
            "max_tokens",
            limits.tokens,
            tokens,
            more_tokens,
            "{:,.0f} tokens",
        ),
    ):
        if limit is None:
            continue
        said = f"{unit.format(so_far)} spent so far"
        if more is None:
            doubled = True
            found[key] = _rounded_up(2 * max(limit, so_far))
        else:
            said += f", about {unit.format(float(_rounded_up(more)))} more needed"
            if so_far + more > limit:
                found[key] = _rounded_up(so_far + more)
        parts.append(said)
    if not found:
        return {}, ""
    why = (
        ". What the rest takes cannot be estimated yet, so the budget is doubled."
        if doubled
        else "."
    )
    return found, textwrap.fill(
        "; ".join(parts) + why, 80, break_on_hyphens=False
    ) + "\n"


def _still_needed(log: RunLog, unfinished: Iterable[CellResult]) -> CallTotals | None:
    """Estimate the rest from the mean cost of a trial of the cell, or of the run; None
    without any trial.
    """
    counts, calls = log.trial_counts(), log.calls.by_cell()
    done = {key: sum(run for run, _ in own.values()) for key, own in counts.items()}
    total, whole = CallTotals(), (log.calls.totals(), sum(done.values()))
    for cell in unfinished:
        key = cell.plan.key
        spent, trials = (
            (calls[key].totals, done[key]) if key in calls and done.get(key) else whole
        )
        if not trials:
            return None
        subjects = cell.plan.subjects
        if cell.game is not None and cell.plan.sequential:
            ahead = cell.game.outlook
            subjects = min(subjects, ahead.subjects if ahead else subjects)
        share = max(0, subjects * cell.plan.trials - done.get(key, 0)) / trials
        total += CallTotals(
            prompt=round(spent.prompt * share),
            completion=round(spent.completion * share),
            cost=spent.cost * share,
        )
    return total


def _rounded_up(value: float) -> str:
    """Return a number with two digits: enough for a decision about cost."""
    exact = Decimal(str(value))
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_UP):f}"


#: Failed cells above which the terminal shows them in the table alone.
MOST_FAILURES = 24
#: A verdict at the beginning of a line.
_COLOURS = {
    Verdict.PASS.value: {"green": True},
    Verdict.FAIL.value: {"red": True},
    Verdict.INCONCLUSIVE.value: {"yellow": True},
    Verdict.ERROR.value: {"red": True, "bold": True},
}
#: Category in pytest's counts, letter, and word with its colour.
_Status = tuple[str, str, str | tuple[str, dict[str, bool]]]


class Reporting:
    def __init__(self, run: PytestRun) -> None:
        self._run = run
        #: Number of failures and errors other than the verdict FAIL.
        self._other_failures = 0
        #: Those of them that are cells without a measurement, including controls.
        self._unmeasured = 0
        #: And those that another plugin has ended.
        self._stopped = 0
        self._lines: list[str] = []
        self._verdicts: Counter[Verdict] = Counter()
        self._items: list[CellItem] = []
        self._annotations: list[str] = []
        #: Text restored to a report after pytest has written its line.
        self._blanked: tuple[str, int, str] | None = None
        #: The comparison with the baseline, and whether there should have been one.
        self._compared: RunComparison | None = None
        self._refused = False

    def pytest_report_header(self) -> list[str]:
        settings = self._run.settings
        lines = [
            f"cheesebench: {', '.join(settings.models)}; view {', '.join(settings.views)}; design {settings.design}; "
            f"seed {settings.seed} ({'drawn' if settings.seed_drawn else 'typed'})"
            + (f"; shard {settings.shard}" if settings.shard else "")
        ]
        plugins = self._run.plugins
        failures = plugins.failures.items()
        # Options from a conftest.py are in the manifest; pytest prints its root
        # directory.
        installed = {
            name: what
            for name, what in plugins.strangers().items()
            if not name.startswith("pytest:")
        }
        lines += [
            f"cheesebench: plugin {name}: {what}" for name, what in installed.items()
        ]
        lines += [
            f"cheesebench: the plugin '{name}' was not loaded: {why}"
            for name, why in failures
        ]
        return [printable(line) for line in lines]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the verdict to the report, and remove the traceback unless it is a
        programming error.
        """
        if not isinstance(item, (CellItem, BrokenProtocol)):
            return (yield)
        ours = (
            call.excinfo
            if call.excinfo is not None
            and isinstance(call.excinfo.value, CheeseBenchError)
            else None
        )
        if ours is not None:
            # pytest would first read and parse the source of every frame, which takes
            # 0.1 s per failure.
            ours.traceback = ours.traceback[-1:]
        elif call.excinfo is not None:
            # Without pytest's own frames: the author of a plugin needs the last lines.
            call.excinfo.traceback = call.excinfo.traceback.cut(
                path=collection.__file__
            )
        report = yield
        if ours is not None:
            report.longrepr = _without_traceback(ours, item)
        if isinstance(item, CellItem) and call.when == "setup":
            report.cheesebench_unmeasured = ours is not None  # type: ignore[attr-defined]
        if (
            isinstance(item, CellItem)
            and call.when == "call"
            and item.result is not None
        ):
            # A plain attribute, which pytest-xdist passes from the worker to the
            # controller.
            report.cheesebench_verdict = item.result.verdict.value  # type: ignore[attr-defined]
            report.cheesebench_control = bool(item.plan.control)  # type: ignore[attr-defined]
            if report.skipped:
                path, _, _ = item.location
                kind = "CONTROL" if item.plan.control else "INCONCLUSIVE"
                report.longrepr = (path, 1, f"{kind}: {item.result.reason}")
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Pass every report to JUnit XML before the terminal, for which reasons are
        removed.
        """
        plugins, xml = (
            session.config.pluginmanager,
            session.config.stash.get(xml_key, None),
        )
        if xml is not None and plugins.is_registered(xml):
            plugins.register(plugins.unregister(xml))

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> _Status | None:
        """Show verdicts in place of pytest's words, and give INCONCLUSIVE a category of
        its own.
        """
        verdict = getattr(report, "cheesebench_verdict", None)
        if verdict is None or report.when != "call":
            return None
        if report.skipped:
            if (
                self._run.config.option.verbose == 1
                and isinstance(report.longrepr, tuple)
                and report.longrepr[2]
            ):
                # pytest would cut the reason at the end of the line.
                self._blanked = report.longrepr
                report.longrepr = (*report.longrepr[:2], "")
            if getattr(
                report, "cheesebench_control", False
            ):  # no claim is tested, so nothing can be undecided
                return "controls", "c", ("CONTROL", {"yellow": True})
            return "inconclusive", "?", (verdict, {"yellow": True})
        return report.outcome, "F" if report.failed else ".", verdict

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, None, None]:
        """Count failures that ``--exit-zero`` must not hide; with ``-v``, write reasons
        in full.
        """
        verdict = getattr(report, "cheesebench_verdict", None)
        if report.failed and verdict != Verdict.FAIL:
            self._other_failures += 1
            unmeasured = getattr(report, "cheesebench_unmeasured", None)
            self._unmeasured += bool(unmeasured)
            # Ours, and neither measured nor judged (pytest-timeout).
            self._stopped += unmeasured is False and verdict is None
        yield
        if report.failed and verdict == Verdict.FAIL and self._forgives:
            forgive_case(self._run.config, report)
        if self._blanked is not None:
            report.longrepr, self._blanked = self._blanked, None
            _write_reason(self._run.config, report.longrepr[2])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._items = [item for item in session.items if isinstance(item, CellItem)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count failures that ``--exit-zero`` must not hide."""
        self._other_failures += report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> None:
        """Judge the whole run once, from its log, and write the reports."""
        run = self._run
        run.stop()
        if run.is_worker or run.log is None:
            return
        if run.whole and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        try:
            self._report(session.config)
        except (CheeseBenchError, OSError) as error:
            self._lines.append(f"The report could not be written: {error}")
        forgiven = run.settings.exit_zero and not self._other_failures
        if forgiven and exitstatus == pytest.ExitCode.TESTS_FAILED:
            session.exitstatus = pytest.ExitCode.OK
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = self._after_comparing(session.exitstatus)
        self._lines.append(self._why(session.exitstatus))
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        failed = [] if terminal is None else terminal.stats.get("failed", [])
        verdicts = [
            report for report in failed if getattr(report, "cheesebench_verdict", None)
        ]
        in_short = (
            session.config.option.verbose <= 0 and not run.settings.values["film"]
        )
        if (
            in_short
            and len(verdicts) > MOST_FAILURES
            and verdicts == failed
            and not terminal.stats.get("error")
        ):
            session.config.option.tbstyle = "no"  # the table has them all

    def _why(self, status: int | pytest.ExitCode) -> str:
        failed, undecided = (
            self._verdicts[Verdict.FAIL],
            self._verdicts[Verdict.INCONCLUSIVE],
        )
        unmeasured, counts = self._unmeasured, self._run.settings.inconclusive_fails
        exempt = self._run.settings.exit_zero
        forgiven = (
            [f"{plural(failed, 'cell')} failed, which --exit-zero ignores"]
            if failed and exempt
            else []
        )
        if status == pytest.ExitCode.OK:
            parts = forgiven or ["nothing failed"]
            if self._compared is not None and not (
                self._compared.worse or self._compared.undecided
            ):
                parts.append(f"no loss against {self._compared.second}")
            if undecided:
                parts.append(
                    f"{undecided} inconclusive (to count them as failures: --inconclusive=fail)"
                )
        elif status == pytest.ExitCode.TESTS_FAILED:
            counted = [
                (0 if exempt else failed, "failed"),
                (unmeasured, "could not be measured"),
            ]
            parts = [
                f"{plural(number, 'cell')} {what}" for number, what in counted if number
            ]
            if undecided and counts:
                parts.append(
                    f"{undecided} inconclusive, which --inconclusive=fail counts"
                )
            if self._compared is not None and self._fails_comparison:
                parts.append(_why_compared(self._compared))
            if self._stopped:
                parts.append(
                    f"{plural(self._stopped, 'cell')} stopped by another plugin"
                )
            others = (
                self._other_failures
                - unmeasured
                - self._stopped
                - (undecided if counts else 0)
            )
            if others > 0 or not parts:
                parts.append("another test failed")
            parts += [f"not the cause: {text}" for text in forgiven]
        else:
            return ""
        return textwrap.fill(
            f"Exit code {int(status)}: {'; '.join(parts)}.",
            80,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )

    def _after_comparing(self, status: int | pytest.ExitCode) -> int | pytest.ExitCode:
        if self._refused:
            return pytest.ExitCode.USAGE_ERROR
        return pytest.ExitCode.TESTS_FAILED if self._fails_comparison else status

    @property
    def _fails_comparison(self) -> bool:
        comparing, found = self._run.comparing, self._compared
        return (
            comparing is not None
            and found is not None
            and bool(comparing.blamed(found))
        )

    @property
    def _forgives(self) -> bool:
        """Whether a FAIL is for the comparison to judge, and fails nothing itself."""
        run = self._run
        comparing = run.comparing
        return comparing is not None and comparing.gates and run.settings.exit_zero

    def _compare(self) -> str:
        run = self._run
        if run.comparing is None or run.log is None:
            return ""
        try:
            found = run.comparing.compare(run.log)
        except CheeseBenchError as error:
            self._refused = True
            self._lines.append(str(error))
            tell_refusal(run.config, printable(str(error)))
            return ""
        self._compared = found
        add_suite_properties(run.config, comparison_properties(found))
        for title, _, reason in run.comparing.blamed(found):
            add_case(run.config, title, reason)
        self._lines.append(shown(run.plugins, found, "text").rstrip())
        return shown(run.plugins, found, "markdown")

    def _report(self, config: pytest.Config) -> None:
        run = self._run
        log = run.log
        assert log is not None
        plans = log.plans()
        shard = run.settings.shard
        if shard is not None and run.whole:
            cells = f"{len(plans)} of {plural(len(run.whole), 'cell')}"
            self._lines.append(
                f"Shard {shard}: {cells}. When all are there: cheesebench merge RUN RUN ..."
            )
        if not plans:
            return
        summary = summarise_log(log, finished_only=False)
        self._verdicts = Counter(
            cell.verdict for cell in summary.cells if not cell.plan.control
        )
        self._lines.append(run.plugins.reporter("text").render(summary).rstrip())
        compared = self._compare()
        summary = replace(summary, compared=self._compared)
        text = run.plugins.reporter("markdown").render(summary)
        unfinished = [plan for plan in plans if not is_finished(log, plan, judge_set)]
        if unfinished:
            run.told_how_to_go_on = True
            spent = any(cell.outcomes.get("budget") for cell in summary.cells)
            waiting = [
                cell
                for cell in summary.cells
                if cell.plan in unfinished and cell.plan.agent
            ]
            changed, why = larger_budgets(run, waiting) if spent else ({}, "")
            how = ", with a larger budget" if changed else ""
            if (
                config.getoption(BY_KEY["compare"].destination) == LATEST
                and run.comparing
                and run.comparing.run_id
            ):
                changed["compare"] = (
                    run.comparing.run_id
                )  # from now on, this run is the latest
            self._lines.append(
                f"{why}{len(unfinished)} of {plural(len(plans), 'cell')} {'is' if len(unfinished) == 1 else 'are'} "
                f"unfinished; finished trials are kept. To continue{how}:\n"
                f"  {resume_command(config, log.run_id, changed)}"
            )
        shown = _short(log.directory, config)
        self._lines.append(
            f"Run: {shown}\nReport: {shown / 'report.md'}\nTo watch its trials: cheesebench report {shown} --html"
            + (
                "\nTo print a failed trial step by step, add --film"
                if self._verdicts[Verdict.FAIL]
                else ""
            )
        )
        add_suite_properties(config, suite_properties(summary))
        self._lines += _write_markdown(
            run, log.directory, "\n".join(filter(None, (text, compared)))
        )
        comment = run.plugins.reporter("comment").render(summary)
        # It is a page there and part of a comment here, so its headings are two levels
        # lower.
        part = re.sub("^(?=#)", "##", compared, flags=re.MULTILINE)
        # The comparison comes first, after the marker that identifies the job's own
        # comment.
        marker, _, rest = comment.partition("\n")
        link = f"[The job]({job_address()})\n" if job_address() else ""
        text = "\n".join(filter(None, (marker, part, rest, link)))
        self._lines.append(_write(text, log.directory / "comment.md"))
        paths = {
            item.plan.protocol: Path(item.specification.path) for item in self._items
        }
        forgiven = run.settings.exit_zero
        root = config.invocation_params.dir
        if self._compared is not None:
            assert run.comparing is not None
            self._annotations = list(
                annotate_comparison(
                    self._compared, run.comparing.blamed(self._compared), paths, root
                )
            )
        self._annotations += annotate(summary, paths, root, not forgiven)
        self._lines += self._write_html(config, summary)
        failed = [
            entry.text
            for entry in log.journal(kind="warning")
            if entry.text.startswith(OBSERVER)
        ]
        failed += Observers(run.plugins.hook.cheesebench_run_finished).show(
            summary=summary
        )
        self._lines += [f"{text[:1].upper()}{text[1:]}." for text in failed]

    def _write_html(self, config: pytest.Config, summary: RunSummary) -> list[str]:
        run, path = self._run, self._run.settings.html
        if path is None:
            return []
        assert run.log is not None
        problem = _write(run.plugins.report("html", summary, run.log), path)
        return [problem or f"Page: {_short(path, config)}"]

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        if self._lines:
            terminalreporter.section("cheesebench")
            for line in printable("\n\n".join(filter(None, self._lines))).split("\n"):
                _write_line(terminalreporter, line)
            if self._run.settings.seed_drawn:
                _write_line(
                    terminalreporter,
                    f"The seed was drawn; --seed {self._run.settings.seed} repeats the run.",
                )
        for command in self._annotations:
            terminalreporter.write_line(command)
        # The verdicts have just been listed; pytest would list them again.
        failed = terminalreporter.stats.get("failed", [])
        usual = set(getattr(terminalreporter, "reportchars", "")) - {"w"} == {"E", "f"}
        if (
            usual
            and self._lines
            and all(getattr(report, "cheesebench_verdict", None) for report in failed)
        ):
            terminalreporter.reportchars = terminalreporter.reportchars.replace("f", "")


def _why_compared(found: RunComparison) -> str:
    """Return why a comparison fails the run."""
    where = [name or "all protocols together" for _, name, _ in found.losses]
    if where:
        return f"worse than {found.second} on {', '.join(dict.fromkeys(where))}"
    cells = [
        one
        for model in found.models
        for one in model.cells
        if one.answer == "undecided"
    ]
    names = ", ".join(one.protocol for one in cells)
    gone = sum(one.missing[0] for one in cells)
    on = f" on {names}" if names else ""
    missing = f" ({plural(gone, 'missing trial')})" if gone else ""
    return f"undecided whether it is worse than {found.second}{on}{missing}"


def _write_reason(config: pytest.Config, reason: str) -> None:
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        terminal.ensure_newline()
        text = printable(reason.partition(": ")[2])
        indent = "    "
        filled = textwrap.fill(
            text,
            80,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        terminal.write_line(filled)


def _write_line(terminalreporter: pytest.TerminalReporter, line: str) -> None:
    """Write a line; on a coloured terminal, the verdict at its beginning is
    coloured.
    """
    found = re.match(rf"\S ({'|'.join(_COLOURS)})\b", line)
    if found is not None:
        terminalreporter.write(found.group(), **_COLOURS[found.group(1)])
    terminalreporter.write_line(line[found.end() :] if found else line)


def _without_traceback(
    excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item
) -> Any:
    shown = excinfo.getrepr(style="value", chain=False)
    if shown.reprcrash is not None:
        # The first line is enough for pytest's short summary and for the message in
        # JUnit XML.
        shown.reprcrash.message = str(excinfo.value).split("\n", 1)[0]
        shown.reprcrash.path, shown.reprcrash.lineno = item.location[0], 1
    return shown


def _write_markdown(run: PytestRun, directory: Path, text: str) -> list[str]:
    """Write the Markdown report to all requested places; return what went wrong."""
    targets = filter(None, (directory / "report.md", run.settings.markdown))
    problems = [_write(text, path) for path in targets]
    try:
        append_step_summary(text)
    except OSError as error:
        problems.append(
            f"The report could not be added to GITHUB_STEP_SUMMARY: {error.strerror}."
        )
    return [problem for problem in problems if problem]


def _write(text: str, path: Path) -> str:
    """Write a report; return what went wrong, or an empty string."""
    try:
        write_whole(path, text)
    except OSError as error:
        return f"The report could not be written to {path}: {error.strerror}."
    return ""


def resume_command(
    config: pytest.Config, run_id: str, changed: Mapping[str, str] | None = None
) -> str:
    """Return the command of this session, continuing the run, with other values for
    options (by key).
    """
    spellings, changed = config.stash[SPELLINGS], changed or {}
    options = [
        option for option in OPTIONS if option.names_run or option.key in changed
    ]
    left_out = {name for option in options for name in spellings[option.key]}
    kept: list[str] = []
    arguments = iter(config.invocation_params.args)
    for argument in map(os.fspath, arguments):
        if argument in left_out:
            next(arguments, None)
        elif argument.partition("=")[0] not in left_out:
            kept.append(argument)
    others = [f"{spellings[key][0]}={value}" for key, value in changed.items()]
    return " ".join(
        map(_shell_word, ["pytest", *kept, *others, spellings["resume"][0], run_id])
    )


def _shell_word(word: str) -> str:
    """Quote a word for a shell, using printable characters only."""
    if word.isprintable():
        return shlex.quote(word)
    spelt = (
        c if c.isprintable() and c not in "'\\" else c.encode("unicode_escape").decode()
        for c in word
    )
    return "$'" + "".join("\\'" if c == "'" else c for c in spelt) + "'"


def _short(path: Path, config: pytest.Config) -> Path:
    """Return the path relative to the directory that pytest was started in, if it is
    inside it.
    """
    directory = config.invocation_params.dir
    return path.relative_to(directory) if path.is_relative_to(directory) else path
