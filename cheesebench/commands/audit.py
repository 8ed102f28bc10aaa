"""``cheesebench audit``: does a protocol measure what it claims to measure, or can it
be gamed?
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from cheesebench.auditing import AuditReport, findings_table
from cheesebench.commands import FINDINGS
from cheesebench.commands.common import (
    PROTOCOL,
    add_json,
    counted,
    describe,
    installed_catalogue,
    load_protocol,
    one_line,
    paragraph,
    positive_number,
    shown_path,
    whole_number,
)
from cheesebench.errors import OptionError
from cheesebench.functions import audit
from cheesebench.interfaces import AUDIT_PARTS, BaseSpecification


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Checks chance levels, blind policies, leaks, random assignments (draws), rewards and cues, and whether the "
        "protocol can be solved. The exit code is 1 if a rule fails.",
        "my_maze.protocol.yaml",
        "t_maze dnms --trials 5000 --seed 1 --json",
        "--edition paper",
    )
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=PROTOCOL)
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
        help="trials per chance level (default: 2000)",
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
        default=[],
        help="a view, repeatable (default: all)",
    )
    parts = f"a part of the audit, repeatable (default: all): {', '.join(AUDIT_PARTS)}"
    parser.add_argument(
        "--part",
        choices=AUDIT_PARTS,
        metavar="PART",
        action="append",
        default=[],
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
    """Audit every named protocol; return FINDINGS when a rule fails."""
    # Load all of them first: an error in the last file should not surface after minutes
    # of auditing the others.
    specifications = _chosen(options)
    reports = []
    for specification in specifications:
        report = audit(
            specification,
            views=options.view,
            trials=options.trials,
            seed=options.seed,
            effort=options.effort,
            parts=options.part,
            processes=options.processes or os.cpu_count() or 1,
            progress=_progress(specification.name),
        )
        _clear_progress()
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
    """Return the named protocols, or all of the edition; raises OptionError if neither
    is given.
    """
    if options.edition is not None:
        return installed_catalogue().select(options.protocols, options.edition)
    if not options.protocols:
        raise OptionError(
            "cheesebench audit: no protocol given. Name one or more, or give --edition."
        )
    return [load_protocol(name) for name in options.protocols]


def _what_is_open(report: AuditReport) -> str:
    """Return what follows from rules that could not be decided."""
    rules = [one.rule for one in report.findings if one.verdict == "undecided"]
    if not rules:
        return ""
    return (
        paragraph(
            f"{report.protocol} is not validated by this audit: undecided {', '.join(rules)}. A longer one may decide: "
            "--effort N (lesions), --trials N (leaks)."
        )
        + "\n"
    )


def _as_text(report: AuditReport) -> str:
    heading = f"{report.protocol} ({shown_path(report.path)}), {report.trials} trials, seed {report.seed}"
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


def _progress(name: str) -> Callable[[str], None]:
    """Return a function that shows parts and verdicts as they come: on one line of a
    terminal, else a line each.
    """
    before, after = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
    return lambda what: print(
        f"{before}{one_line(name)}: {one_line(what)}",
        end=after,
        file=sys.stderr,
        flush=True,
    )


def _clear_progress() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
