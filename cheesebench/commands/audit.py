"""``cheesebench audit``: does a protocol measure its construct, or can subjects pass
without it?
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from typing import Any

from cheesebench.amounts import duration
from cheesebench.auditing import AuditReport, findings_table
from cheesebench.commands import FINDINGS
from cheesebench.commands.common import (
    PROTOCOL,
    add_json,
    counted,
    describe,
    installed_catalogue,
    one_line,
    paragraph,
    positive_number,
    shown_path,
    whole_number,
)
from cheesebench.functions import audit, protocol_files
from cheesebench.interfaces import AUDIT_PARTS, BaseSpecification

#: Seconds between progress lines if stderr is not a terminal.
EVERY = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Checks, among other things, chance levels, blind policies, leaks, random assignments (draws), rewards and cues, "
        "whether the protocol can be solved, and what subjects with lesions or little memory can reach. The exit code is 1 "
        "if a rule fails. Finished parts are kept: if an audit was interrupted, the same command continues it.",
        "my_maze.protocol.yaml",
        "t_maze dnms --trials 5000 --seed 1 --json",
        "--edition paper",
    )
    parser.add_argument(
        "protocols",
        nargs="*",
        metavar="PROTOCOL",
        help=f"{PROTOCOL}, or a directory of them (default: this directory)",
    )
    parser.add_argument(
        "--edition",
        metavar="NAME",
        help="edition of the protocols; without PROTOCOL, audit all of that edition",
    )
    parser.add_argument(
        "--trials",
        metavar="N",
        type=positive_number,
        default=2000,
        help="trials per chance level; other parts of the audit scale with it (default: 2000)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number,
        default=0,
        help="seed of the audit (default: 0)",
    )
    parser.add_argument(
        "--view",
        metavar="NAME",
        action="append",
        help="a view, repeatable (default: all)",
    )
    parts = f"a part of the audit, repeatable (default: all but memory): {', '.join(AUDIT_PARTS)}"
    parser.add_argument(
        "--part",
        choices=AUDIT_PARTS,
        metavar="PART",
        action="append",
        help=parts,
    )
    effort = "search N times as long for ways to succeed under lesions (default: 1)"
    parser.add_argument(
        "--effort", metavar="N", type=positive_number, default=1, help=effort
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=positive_number,
        help="worker processes (default: one per processor)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Audit the chosen protocols. Return FINDINGS if a rule fails."""
    # All protocols are loaded first. Otherwise an error in the last file would appear
    # only after minutes of auditing the others.
    specifications = _chosen(options)
    reports = []
    for specification in specifications:
        with _Progress(specification) as progress:
            report = audit(
                specification,
                views=options.view,
                trials=options.trials,
                seed=options.seed,
                effort=options.effort,
                parts=options.part,
                processes=options.processes or os.cpu_count() or 1,
                progress=progress,
            )
        reports.append(report)
        if not options.json:
            print(_as_text(report), end="\n\n", flush=True)
    if options.json:
        print(json.dumps([_as_json(report) for report in reports], indent=2))
    failed = sum(len(report.failures) for report in reports)
    if not options.json:
        print(f"{counted(len(reports), 'protocol')}: {counted(failed, 'failure')}")
        print("\n".join(filter(None, map(_what_is_open, reports))), end="")
    return FINDINGS if failed else 0


def _chosen(options: argparse.Namespace) -> list[BaseSpecification]:
    """Return the named protocols or, without names, all protocols of ``--edition`` or
    in this directory.
    """
    catalogue = installed_catalogue()
    if options.edition is not None:
        return catalogue.select(options.protocols, options.edition)
    files = protocol_files(catalogue, options.protocols or ["."])
    return [catalogue.load(file) for file in files]


def _what_is_open(report: AuditReport) -> str:
    """Return a sentence about the rules that could not be decided, or "" if there are
    none.
    """
    found = [one for one in report.findings if one.verdict == "undecided"]
    if not found:
        return ""
    how = "A longer audit may help: --effort N (lesions), --trials N (blind ceiling, leaks)."
    if all("no effort can prove" in one.text for one in found):
        how = "A longer audit does not help; the table says what does."
    rules = ", ".join(one.rule for one in found)
    what = f"This audit of {report.protocol} did not decide {rules}."
    if any(one.rule.startswith("lesion") for one in found):
        what = f"This audit does not validate {report.protocol}, because it did not decide {rules}."
    return paragraph(f"{what} {how}") + "\n"


def _as_text(report: AuditReport) -> str:
    heading = f"{report.protocol} ({shown_path(report.path)}), {counted(report.trials, 'trial')}, seed {report.seed}"
    return f"{one_line(heading)}\n\n{findings_table(report)}"


def _as_json(report: AuditReport) -> dict[str, Any]:
    return {
        "protocol": report.protocol,
        "file": shown_path(report.path),
        "sha256": report.sha256,
        "life_sha256": report.life_sha256,
        "trials": report.trials,
        "seed": report.seed,
        "passed": report.passed,
        "findings": [
            {
                "rule": one.rule,
                "verdict": one.verdict,
                "text": one.text,
                "numbers": dict(one.numbers),
            }
            for one in report.findings
        ],
    }


class _Progress:
    """Shows the progress of an audit: on a terminal in a line that is overwritten,
    elsewhere in a new line every minute, because CI services end silent jobs.
    """

    def __init__(self, specification: BaseSpecification) -> None:
        self._name = one_line(specification.name)
        self._at = shown_path(specification.path)
        self._begun = time.monotonic()
        self._last = ""
        self._ended = threading.Event()
        self._speaker = threading.Thread(target=self._speak, daemon=True)

    def __enter__(self) -> _Progress:
        if not sys.stderr.isatty():
            self._speaker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            self._speaker.join()

    def __call__(self, what: str) -> None:
        what = one_line(what)
        if not self._last:
            # The path is shown, because one name may belong to a shipped protocol and
            # to a file in this directory.
            self._print(f"{self._name} ({one_line(self._at)}): {what}")
        elif sys.stderr.isatty():
            print(
                f"\r\x1b[K{self._name}: {what}",
                end="",
                file=sys.stderr,
                flush=True,
            )
        self._last = what

    def _speak(self) -> None:
        while not self._ended.wait(EVERY):
            if not self._last:
                continue
            took = duration(time.monotonic() - self._begun)
            self._print(f"{self._name}: {self._last} ({took})")

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)
