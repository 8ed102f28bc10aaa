"""Reports why a session has no result, such as an error before anything is run (exit
code 4), in the places where people look at a pipeline.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cheesebench import errors
from cheesebench.experiment import log_file
from cheesebench.files import write_whole
from cheesebench.options import BY_KEY
from cheesebench.pytest_options import SPELLINGS
from cheesebench.pytest_session import ci, exit_status
from cheesebench.redaction import redact
from cheesebench.statistics import gate
from cheesebench.terminal import printable

#: Options that name files, or a run, which an earlier attempt may have left.
_LEFT = ("results", "resume", "html", "markdown")


def refused(config: pytest.Config, error: Exception | str) -> pytest.UsageError:
    """Report an error that ends the session, in the terminal and wherever else people
    look (``tell``), and return it as a pytest.UsageError.
    """
    text = _for_a_job(config, printable(redact(str(error))))
    tell(config, text)
    return pytest.UsageError(f"{text}\n\n{exit_status.REFUSED}.")


def is_told(error: pytest.UsageError) -> bool:
    """Return whether an error has been reported wherever people look (``refused``)."""
    return str(error).endswith(f"{exit_status.REFUSED}.")


#: Matches a remedy whose last resort is a new run.
_NEW_RUN = re.compile(
    r"(?<=[.;:)] )(?:[A-Z](?:[^.;]|\.(?! ))*\bs|S)tart a new (?:run|one)\b[^.;]*\."
)


#: Matches the remedy for a missing baseline, with the latest run before it, which is
#: in a job's cache.
_MAKE_BASELINE = re.compile(
    r"(?: The latest run is '[^']*'\.)?(?P<there> (?:There is no baseline|Baselines) in .*) Make a run \((?=pytest )"
)


def _for_a_job(config: pytest.Config, text: str) -> str:
    """Return the text of an error with a remedy for a CI job. A job continues a run by
    itself. Nobody can copy a file, bless a run or type other options there.
    """
    run_id = config.getoption(BY_KEY["resume"].destination, None)
    if not ci.is_ci():
        return text
    text = _MAKE_BASELINE.sub(
        r"\g<there> If you have it, commit it. Otherwise make a run in your clone, with the model and protocols of this "
        "job (",
        # The clone is not where the job's checkout is.
        text.replace(f"{config.invocation_params.dir}{os.sep}", ""),
    )
    if not run_id:
        return text
    remedy = (
        "Push a commit: that begins a new run. Where the run id stays the same, delete "
        f"the directory of {run_id} from the cache instead."
    )
    return _NEW_RUN.sub(remedy, text, count=1)


def nothing_selected(config: pytest.Config, names: Sequence[str]) -> str:
    """Report a session without a test, unless it only lists tests, and return the
    sentence about it for the terminal, or "" if GitHub's log has it. ``names`` are the
    names of the protocols that were left out.
    """
    option = config.option
    given = {"-k": option.keyword, "-m": option.markexpr}
    how = [f"{name} '{value}'" for name, value in given.items() if value]
    text = "No protocol is in the given paths. Name a *.protocol.yaml file, or leave the paths out."
    if how or names:
        hint = errors.did_you_mean(option.keyword, names)
        known = f"Known: {', '.join(names)}." if names else ""
        listed = known or "To list the names, write --collect-only instead."
        text = f"{' and '.join(how) or 'What is left out'} leaves no protocol.{hint} {listed}"
    if not option.collectonly:
        tell(config, text, exit_status.NOTHING_SELECTED)
        if ci.is_github():
            return ""
    return f"{exit_status.NOTHING_SELECTED}: {text}"


def refused_early(
    config: pytest.Config, words: Sequence[str], error: pytest.UsageError
) -> pytest.UsageError:
    """Report the error that ends a session whose options cannot be read, and return
    it.
    """
    config.option = _readable(config, words)
    said = str(error).rpartition(": error: ")[2]
    worded = errors.OptionError.of_argparse(said.partition("\n  inifile: ")[0])
    return refused(config, str(worded))


def _readable(config: pytest.Config, words: Sequence[str]) -> argparse.Namespace:
    """Return the options that can be read, the options of ``_LEFT`` among them."""
    options = copy.copy(config.known_args_namespace)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for key in _LEFT:
        option = BY_KEY[key]
        names = config.stash[SPELLINGS][key]
        parser.add_argument(*names, dest=option.destination, nargs="?")
    return parser.parse_known_args(words, options)[0]


def tell(config: pytest.Config, text: str, refusal: str = exit_status.REFUSED) -> None:
    """Report an error to GitHub, on the job's summary page, in the JUnit file (which
    would look green without a case), and in place of an earlier attempt's reports.
    """
    decision = f"{refusal}: {text}"
    if ci.is_github():
        sentence = decision.partition("\n\n")[0]
        print(ci.command("error", "cheesebench", sentence), flush=True)
    quoted = text.replace("`", "'")  # The text must not end the code block.
    page = f"**{refusal}:**\n\n```text\n{quoted}\n```\n"
    with contextlib.suppress(OSError):  # The terminal shows the error in any case.
        ci.append_step_summary(page)
    # A run that began and cannot be compared has its own properties.
    began = refusal == exit_status.NOT_COMPARED
    said = () if began else ci.exit_properties(decision.partition("\n\n")[0], "")
    ci.add_case(config, "start", decision, when="setup", properties=said)
    if not hasattr(config, "workerinput"):
        with contextlib.suppress(OSError, errors.CheeseBenchError):
            _replace_reports(config, page)


def tell_interruption(config: pytest.Config, by: str) -> None:
    """Report a session that was interrupted before its run began, if it was."""
    if by:
        why = f"Exit code 2, {exit_status.interrupted(by)} before the run began, so nothing was tested"
        tell(config, "Run it again.", why)


def announce(config: pytest.Config, directory: Path) -> None:
    """Replace a run's comment, and the reports of an earlier attempt, with a page that
    says that the run is in progress. If the session is killed, this page remains.
    """
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    page = (
        f"**CheeseBench has no result yet:** the session that began {began} is still running, or was killed (for "
        f"example, for lack of memory).\n\nIf it has ended, continue the run with `--resume {directory.name}`; a job that is "
        "run again does that by itself.\n"
    )
    with contextlib.suppress(OSError):
        if config.getoption(BY_KEY["resume"].destination, None):
            _replace(config, directory, page)
        else:
            write_whole(directory / "report.md", page)
        _comment(directory / "comment.md", gate.MARK, page, "has the output")


def _replace_reports(config: pytest.Config, page: str) -> None:
    """Replace the reports that an earlier attempt of the run has left. Otherwise their
    verdict would be read as this session's.
    """
    left = {key: config.getoption(BY_KEY[key].destination, None) for key in _LEFT}
    if not left["resume"]:
        return
    here = config.invocation_params.dir
    results = here / (left["results"] or str(BY_KEY["results"].default))
    log = log_file.locate(results, left["resume"])
    if log_file.is_claimed(log):
        return  # Another session is running this run, and will report it.
    directory = log.parent
    _replace(config, directory, page, is_kept=str(log) not in page)
    comment = directory / "comment.md"
    if comment.is_file():
        marker = comment.read_text(encoding="utf-8").partition("\n")[0]
        _comment(comment, marker, page, "says the same")


def _replace(
    config: pytest.Config, directory: Path, page: str, *, is_kept: bool = True
) -> None:
    """Replace the existing Markdown reports, except the comment, and delete the HTML
    page. ``is_kept`` is false if the run's log cannot be read.
    """
    here = config.invocation_params.dir
    html, markdown = (
        config.getoption(BY_KEY[key].destination, None) for key in ("html", "markdown")
    )
    kept = f"\nWhat an earlier attempt measured is kept: `cheesebench report {directory.name}`.\n"
    targets = [directory / "report.md", *_given(here, markdown)]
    for path in filter(Path.is_file, targets):
        write_whole(path, page + kept * is_kept)
    for path in _given(here, html):
        path.unlink(missing_ok=True)


def _comment(path: Path, marker: str, page: str, the_job: str) -> None:
    job = ci.job_address()
    where = f"\n[The job]({job}) {the_job}.\n" if job else ""
    write_whole(path, f"{marker}\n{page}{where}")


def _given(here: Path, name: str | None) -> Iterator[Path]:
    if name:
        yield here / name
