"""Reports a session, for example in the verdict table, the report files and the exit
status.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cheesebench.budgets import larger_budgets
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import LATEST
from cheesebench.files import write_whole
from cheesebench.ini_file import misspelt_variables
from cheesebench.options import BY_KEY
from cheesebench.pytest_session import ci, exit_status, refusals, resuming
from cheesebench.pytest_session.run import PytestRun, shown
from cheesebench.records import CellPlan
from cheesebench.statistics import CellResult, RunSummary, Verdict
from cheesebench.statistics.comparison import THIS_RUN, RunComparison
from cheesebench.statistics.wording import plural
from cheesebench.terminal import printable

#: If more cells than this failed, the terminal lists failures only in the table.
MOST_FAILURES = 24
#: Colours of the verdict at the beginning of a line.
_COLOURS = {
    Verdict.PASS.value: {"green": True},
    Verdict.FAIL.value: {"red": True},
    Verdict.INCONCLUSIVE.value: {"yellow": True},
    Verdict.ERROR.value: {"red": True, "bold": True},
}


class Reporting:
    def __init__(self, run: PytestRun) -> None:
        self._run = run
        #: Number of failures and errors other than the verdict FAIL.
        self._other_failures = 0
        #: Number of failures that are cells without a measurement, including controls.
        self._unmeasured = 0
        #: The protocols that could not be run. Each counts as a failure.
        self._broken: list[exit_status.Broken] = []
        #: Number of failures that are cells ended by another plugin.
        self._stopped = 0
        #: Names of the protocols that are left out.
        self._left_out: list[str] = []
        self._lines: list[str] = []
        self._summary: RunSummary | None = None
        #: Unfinished cells that a resumed run can continue.
        self._unfinished: Sequence[CellPlan] = ()
        #: Options that raise the budgets, and a text that explains them. Both are empty
        #: if no budget was spent.
        self._larger: tuple[dict[str, str], str] = ({}, "")
        #: Why the session has its exit status, and one remedy.
        self._decision, self._remedy = "", ""
        #: The result of the gate, in a few words.
        self._gate = ""
        #: Files of the protocols that are run.
        self._paths: dict[str, Path] = {}
        self._annotations: list[str] = []
        #: Whether an annotation says how the session ends. GitHub shows it in the log.
        self._shown_by_github = False
        #: The comparison with the baseline, or None if none was requested.
        self._compared: RunComparison | None = None
        #: Why the run cannot be compared, or an empty string if it can.
        self._refused = ""

    def pytest_report_header(self) -> list[str]:
        settings = self._run.settings
        lines = [
            f"cheesebench: {', '.join(settings.models)}; view {', '.join(settings.views)}; design {settings.design}; "
            f"seed {settings.seed_text}"
            + (f"; shard {settings.shard}" if settings.shard else "")
        ]
        lines += [f"cheesebench: warning: {text}" for text in misspelt_variables()]
        if self._run.config.option.verbose > 0:
            lines += [f"cheesebench: {line}" for line in settings.origins_text]
        plugins = self._run.plugins
        failures = plugins.failures.items()
        # Plugins from a conftest.py are left out. They belong to the root directory,
        # which pytest prints, and are in the manifest.
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
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, None, None]:
        """Count failures that ``--exit-zero`` must not hide."""
        verdict = getattr(report, "cheesebench_verdict", None)
        broken = getattr(report, "cheesebench_broken", ())
        unmeasured = getattr(report, "cheesebench_unmeasured", None)
        if report.failed and verdict != Verdict.FAIL:
            self._other_failures += 1
            if broken:
                self._broken.append(exit_status.Broken(*map(printable, broken)))
            self._unmeasured += bool(unmeasured)
            # A cell that is neither measured nor judged was ended by another plugin
            # (pytest-timeout).
            self._stopped += unmeasured is False and verdict is None
        yield
        if report.failed and (broken or unmeasured):
            ci.name_error(self._run.config, report)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Keep the names of the protocols that are left out (``-k``, ``-m``)."""
        self._left_out += [item.name.partition("[")[0] for item in items]

    def say_nothing_selected(self) -> None:
        names = list(dict.fromkeys(self._left_out))
        if said := refusals.nothing_selected(self._run.config, names):
            self._lines.append(exit_status.filled(said))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count failures that ``--exit-zero`` must not hide."""
        self._other_failures += report.failed

    def set_paths(self, paths: dict[str, Path]) -> None:
        """Set the files of the protocols that are run, by name."""
        self._paths = paths

    @contextmanager
    def failures_said(self) -> Iterator[None]:
        """If the ``with`` block cannot write the reports, add the reason to the text
        for the terminal.
        """
        try:
            yield
        except (CheeseBenchError, OSError) as error:
            self._lines.append(f"The report could not be made: {error}")

    def say_shard(self) -> None:
        run, shard = self._run, self._run.settings.shard
        if shard is not None and run.whole and run.log is not None:
            cells = f"{len(run.log.plans())} of {plural(len(run.whole), 'cell')}"
            self._lines.append(
                f"Shard {shard}: {cells}. When all shards have been run, merge them: cheesebench merge RUN RUN ..."
            )

    def compare(
        self,
        session: pytest.Session,
        exitstatus: int | pytest.ExitCode,
        summary: RunSummary,
    ) -> None:
        """Compare the run with its baseline, and decide the exit status. If there is a
        baseline, the reports begin with this status.
        """
        run = self._run
        assert run.log is not None
        self._summary = summary
        self._unfinished = self._resumable(run.log)
        self._larger = self._larger_budgets(summary, self._unfinished)
        if run.comparing is not None:
            try:
                self._compared = run.comparing.compare(run.log)
            except CheeseBenchError as error:
                self._refused = printable(str(error))
                self._compared = RunComparison(
                    first=THIS_RUN, second=run.comparing.name, models=(), changed=()
                )
                refusals.tell(run.config, self._refused, exit_status.NOT_COMPARED)
        self._decide(session, exitstatus)
        if self._compared is not None:
            self._compared = replace(
                self._compared,
                decision=self._decision,
                gate=self._gate,
                remedy=self._remedy,
            )
        self._summary = replace(summary, compared=self._compared)

    def write(self, text: str) -> None:
        """Write all reports of a run. The terminal shows ``text``."""
        run, summary = self._run, self._summary
        log = run.log
        assert log is not None
        assert summary is not None
        # What a gate asks comes first, as in the other reports.
        compared = self._tell_comparison()
        self._lines.append(text.rstrip())
        page = run.plugins.reporter("markdown").render(summary)
        self._say_unfinished(log)
        self._say_where(log)
        ci.add_suite_properties(
            run.config,
            [
                *ci.exit_properties(self._decision, ci.plain(self._remedy)),
                *ci.suite_properties(summary),
            ],
        )
        self._add_interrupted()
        # The page takes longest, and a session may be killed meanwhile. Until then, the
        # comment says that there is no result.
        written = self._write_html(run.config, summary)
        self._lines += _write_markdown(run, log.directory, compared, page)
        comment = _comment(
            run.plugins.reporter("comment").render(summary), compared, self._link(log)
        )
        self._lines.append(_write(comment, log.directory / "comment.md"))
        self._annotate(summary)
        self._lines += written
        self._lines += run.tell_finished(log, summary)

    def _resumable(self, log: RunLog) -> list[CellPlan]:
        """Return the unfinished cells that a resumed run can continue."""
        assert self._summary is not None
        cells = [
            one
            for one in self._summary.cells
            if self._run.interrupted or not one.lost_for_good
        ]
        return [one.plan for one in cells if not exit_status.is_over(log, one.plan)]

    def _link(self, log: RunLog) -> str:
        """Return the line of a comment that says where the rest is."""
        page, job = self._run.settings.html, ci.job_address()
        files = [log.directory / "report.md", *([page] if page else [])]
        shown = " and ".join(
            f"`{_short(path, self._run.config).as_posix()}`" for path in files
        )
        return f"The rest: {shown}{f', kept by [the job]({job})' if job else ''}.\n"

    def _say_unfinished(self, log: RunLog) -> None:
        plans, unfinished = log.plans(), self._unfinished
        self._run.told_how_to_go_on = True
        if not unfinished:
            return
        changed, why = self._larger
        changed = dict(changed)
        larger = "larger budgets" if len(changed) > 1 else "a larger budget"
        how = f", with {larger}" if changed else ""
        comparing = self._run.comparing
        named = self._run.config.getoption(BY_KEY["compare"].destination)
        if named == LATEST and comparing is not None and comparing.run_id:
            # From now on, `latest` would be this run, so the baseline is named.
            changed["compare"] = comparing.run_id
        known = exit_status.in_words(len(plans), plans)
        # The terminal may show no other text that says what a cell is.
        cell = " (a cell is a model on a protocol)" * ("cell" in known)
        self._lines.append(
            f"{why}{len(unfinished)} of {known} {'is' if len(unfinished) == 1 else 'are'} unfinished{cell}; finished trials "
            f"are kept. To continue{how}:\n"
            f"  {resuming.resume_command(self._run.config, log.run_id, changed)}"
        )

    def _larger_budgets(
        self, summary: RunSummary, unfinished: Sequence[CellPlan]
    ) -> tuple[dict[str, str], str]:
        if not any(cell.outcomes.get("budget") for cell in summary.cells):
            return {}, ""
        waiting = [
            cell
            for cell in summary.cells
            if cell.plan in unfinished and cell.plan.agent
        ]
        assert self._run.log is not None
        own = self._run.settings.calls.limits
        limits = {"max_cost": own.cost, "max_tokens": own.tokens}
        given = {key: limit for key, limit in limits.items() if limit is not None}
        found, why = larger_budgets(self._run.log, given, waiting, self._run.plugins)
        return found, why and f"{textwrap.fill(why, 80, break_on_hyphens=False)}\n"

    def _say_where(self, log: RunLog) -> None:
        shown = _short(log.directory, self._run.config)
        lines = [
            f"Run: {shown}",
            f"Report: {shown / 'report.md'}",
            f"To watch its trials: cheesebench report {shown} --html",
        ]
        assert self._summary is not None
        # A verdict about a measure has no failed trial to show.
        has_failed = any(
            cell.verdict is Verdict.FAIL and cell.plan.measured is None
            for cell in self._summary.cells
        )
        if has_failed and not self._run.forgives:
            lines.append("To print a failed trial step by step, add --film")
        self._lines.append("\n".join(lines))

    def _add_interrupted(self) -> None:
        """Add the interrupted cells to the JUnit file, which would look green without
        them.
        """
        if not self._run.interrupted:
            return
        cells = [f": {plan.model} on {plan.label}" for plan in self._unfinished]
        for name in cells or [""]:
            ci.add_case(
                self._run.config, f"interrupted{name}", self._said, when="setup"
            )

    def _annotate(self, summary: RunSummary) -> None:
        run, root = self._run, self._run.config.invocation_params.dir
        if run.interrupted or self._fails_comparison:
            self._annotations += ci.annotate_exit(self._said)
            self._shown_by_github = bool(self._annotations)
        if self._compared is not None:
            self._annotations += ci.annotate_comparison(
                self._compared, self._blamed, self._paths, root
            )
        self._annotations += ci.annotate_broken(self._broken, root)
        cells = [
            cell
            for cell in summary.cells
            if not any(_is_about(title, cell) for title, _, _ in self._blamed)
        ]
        self._annotations += ci.annotate(
            cells, self._paths, root, not run.settings.exit_zero, run.forgives
        )

    def set_exit_status(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> None:
        """Set the session's exit status, unless ``compare`` has set it, and add the
        reason to the text for the terminal.
        """
        if not self._decision:
            self._decide(session, exitstatus)
        if not self._shown_by_github:
            self._lines.append(exit_status.filled(self._said))
        if self._table_has_all_failures(session):
            session.config.option.tbstyle = "no"

    @property
    def _said(self) -> str:
        """How the session ends, why, and one remedy."""
        return ci.plain(f"{self._decision} {self._remedy}".strip())

    def _decide(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> None:
        run = self._run
        if run.whole and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        forgiven = run.settings.exit_zero and not self._other_failures
        if forgiven and exitstatus == pytest.ExitCode.TESTS_FAILED:
            session.exitstatus = pytest.ExitCode.OK
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = self._after_comparing(session.exitstatus)
        found = self._findings(session.exitstatus)
        self._decision = self._reason(session.exitstatus, found)
        self._remedy = exit_status.remedy(session.exitstatus, found)
        self._gate = exit_status.badge(session.exitstatus, found)

    def _findings(self, status: int | pytest.ExitCode) -> exit_status.Findings:
        run, broke = self._run, status == pytest.ExitCode.INTERNAL_ERROR
        return exit_status.Findings(
            run_id="" if run.log is None else run.log.run_id,
            cells=() if self._summary is None else self._summary.cells,
            unmeasured=self._unmeasured,
            stopped=self._stopped,
            broken=self._broken,
            other_failures=self._other_failures,
            exit_zero=run.settings.exit_zero,
            inconclusive_fails=run.settings.inconclusive_fails,
            compared=self._compared,
            gates=run.gates,
            fails_comparison=self._fails_comparison,
            budgets=" ".join(
                f"{BY_KEY[key].short} {value}" for key, value in self._larger[0].items()
            ),
            interrupted=run.interrupted or "an internal error" * broke,
            unfinished=self._unfinished,
            baseline=self._acting_baseline,
            in_ci=ci.is_ci(),
            replies=0 if run.log is None else run.log.calls.in_cells(),
            earlier=run.replies,
            may_retry=run.log is not None
            and all(map(run.log.may_retry, run.log.plans())),
        )

    def _reason(
        self, status: int | pytest.ExitCode, found: exit_status.Findings
    ) -> str:
        if self._refused:
            return f"{exit_status.NOT_COMPARED}: {self._refused}"
        return exit_status.reason(status, found)

    def _table_has_all_failures(self, session: pytest.Session) -> bool:
        """Return whether there are too many failures to list. The terminal then shows
        only the table, which has them all.
        """
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        in_short = session.config.option.verbose <= 0 and not self._run.settings.film
        if terminal is None or not in_short or terminal.stats.get("error"):
            return False
        failed = terminal.stats.get("failed", [])
        return len(failed) > MOST_FAILURES and all(map(_has_verdict, failed))

    def _after_comparing(self, status: int | pytest.ExitCode) -> int | pytest.ExitCode:
        if self._refused:
            return pytest.ExitCode.USAGE_ERROR
        return pytest.ExitCode.TESTS_FAILED if self._fails_comparison else status

    @property
    def _fails_comparison(self) -> bool:
        return bool(self._blamed)

    @property
    def _acting_baseline(self) -> str:
        """The baseline's name if its model acted where none of this run's replies named
        an action, otherwise "".
        """
        comparing, found = self._run.comparing, self._summary
        cells = () if found is None else found.cells
        mute = [cell.plan for cell in cells if exit_status.never_acted(cell)]
        return comparing.acted(mute[0]) if comparing and mute else ""

    @property
    def _blamed(self) -> list[tuple[str, str, str]]:
        """The reasons why the comparison fails the session. If the session was
        interrupted, they include only reasons that more trials cannot remove.
        """
        comparing, found = self._run.comparing, self._compared
        if comparing is None or found is None:
            return []
        blamed = comparing.blamed(found)
        losses = list(found.losses)
        return [one for one in blamed if one in losses or not self._run.interrupted]

    def _tell_comparison(self) -> str:
        """Report the comparison in the terminal and in the JUnit file. Return it as
        Markdown, or "" if there is none.
        """
        run, found = self._run, self._compared
        if run.comparing is None or found is None:
            return ""
        ci.add_suite_properties(run.config, ci.comparison_properties(found))
        assert self._summary is not None
        unmeasured = [
            cell for cell in self._summary.cells if cell.verdict is Verdict.ERROR
        ]
        # Only the first bad case of the JUnit file says how the session ends.
        said = self._said
        if unmeasured and ci.add_to_error(run.config, said):
            said = ""
        for title, _, reason in self._blamed:
            # A cell without a result is an error already.
            if not any(_is_about(title, cell) for cell in unmeasured):
                ci.add_failure(run.config, title, reason, said)
                said = ""
        self._lines.append(shown(run.plugins, found, "text").rstrip())
        return shown(run.plugins, found, "markdown")

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
        # The verdicts have just been listed, and pytest would list them again.
        failed = terminalreporter.stats.get("failed", [])
        usual = set(getattr(terminalreporter, "reportchars", "")) - {"w"} == {"E", "f"}
        if usual and self._lines and all(map(_has_verdict, failed)):
            terminalreporter.reportchars = terminalreporter.reportchars.replace("f", "")


def _is_about(title: str, cell: CellResult) -> bool:
    """Return whether a title of the comparison is about this cell."""
    model, protocol = cell.plan.model, cell.plan.protocol
    return f": {model} " in title and title.endswith(f" on {protocol}")


def _has_verdict(report: object) -> bool:
    return bool(getattr(report, "cheesebench_verdict", None))


def _comment(text: str, compared: str, link: str) -> str:
    """Return the comment for a pull request. The marker that identifies the job's own
    comment comes first, then the comparison, the report and the link.
    """
    # The headings are two levels lower here, because the text is part of a comment
    # instead of a page.
    part = re.sub("^(?=#)", "##", compared, flags=re.MULTILINE)
    marker, _, rest = text.partition("\n")
    return "\n".join(filter(None, (marker, part, rest, link)))


def _write_line(terminalreporter: pytest.TerminalReporter, line: str) -> None:
    """Write a line. On a terminal with colours, the verdict at its beginning is
    coloured.
    """
    found = re.match(rf"\S ({'|'.join(_COLOURS)})\b", line)
    if found is not None:
        terminalreporter.write(found.group(), **_COLOURS[found.group(1)])
    terminalreporter.write_line(line[found.end() :] if found else line)


def _write_markdown(
    run: PytestRun, directory: Path, compared: str, page: str
) -> list[str]:
    """Write the Markdown report to all requested places. Return a sentence for each
    place where this failed.
    """
    text = "\n".join(filter(None, (compared, page)))
    targets = filter(None, (directory / "report.md", run.settings.markdown))
    problems = [_write(text, path) for path in targets]
    try:
        ci.append_step_summary(
            f"{compared}\n{ci.folded('The whole report', page)}" if compared else page
        )
    except OSError as error:
        problems.append(
            f"The report could not be added to GITHUB_STEP_SUMMARY: {error.strerror}."
        )
    return [problem for problem in problems if problem]


def _write(text: str, path: Path) -> str:
    """Write a report. Return the error, or an empty string."""
    try:
        write_whole(path, text)
    except OSError as error:
        return f"The report could not be written to {path}: {error.strerror}."
    return ""


def _short(path: Path, config: pytest.Config) -> Path:
    """Return the path relative to the directory in which pytest was started, if it is
    inside.
    """
    directory = config.invocation_params.dir
    return path.relative_to(directory) if path.is_relative_to(directory) else path
