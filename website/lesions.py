"""The pass rates that remain under lesions, for the shipped protocols. A script
measures them, which takes minutes, and stores them beside the protocols.

``python -m website.lesions [PROTOCOL...]`` measures the named protocols, or all
protocols whose construct has changed. ``--part memory`` measures only that part, and
keeps the others. The script stores a short form of the output of ``cheesebench audit
--part lesions --json``, which is also the source of the word *validated* in reports.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.auditing import audit_specification
from cheesebench.interfaces import AuditPart, AuditSettings
from cheesebench.protocol import Specification, arenas
from cheesebench.protocol.validation import (
    FORBIDDEN,
    MEMORY,
    RULE,
    SAID,
    SUFFIX,
    applies,
    construct_status,
    most_left,
    simple_subjects,
)
from website.installed import CATALOGUE
from website.markup import code, escape, table

PROTOCOLS = Path(__file__).parents[1] / "protocols"
CLASSICS = PROTOCOLS / "classics"
#: An audit is stored in the folder of its protocols.
FILES = [folder / f"lesions{SUFFIX}" for folder in (PROTOCOLS, CLASSICS)]
#: The numbers of a finding that are not stored (see ``_lasting``).
OF_THE_DAY = ("bar", "passes")
#: The stored parts of an audit, and the prefix of the rules of each.
PARTS: dict[AuditPart, str] = {"lesions": RULE, "memory": MEMORY}


def validated() -> dict[str, Specification]:
    """Return, by name, the shipped protocols that name a construct. The classics are
    among them.
    """
    files = [*CATALOGUE.files.values(), *sorted(CLASSICS.glob("*.protocol.yaml"))]
    loaded = arenas(map(CATALOGUE.load, files))
    return {one.name: one for one in loaded if one.construct is not None}


def stored() -> dict[str, Any]:
    """Return the stored measurements by protocol."""
    reports = [
        report
        for path in FILES
        if path.is_file()
        for report in json.loads(path.read_text(encoding="utf-8"))
    ]
    return {report["protocol"]: report for report in reports}


def store(specification: Specification, report: Mapping[str, Any]) -> None:
    """Store the measurements of a protocol. Those of the others stay unchanged."""
    path = FILES[specification.name not in CATALOGUE.names()]
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    others = [one for one in kept if one["protocol"] != specification.name]
    reports = sorted([*others, report], key=lambda one: str(one["protocol"]))
    path.write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")


def rows_of(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return verdict and numbers of each lesion of a stored report."""
    return {
        one["rule"].removeprefix(RULE): {**one["numbers"], "verdict": one["verdict"]}
        for one in report["findings"]
        if one["rule"].startswith(RULE)
    }


def construct(specification: Specification) -> dict[str, float | None]:
    """Return the lesions of a construct, each with the rate that may remain, or None if
    the lesion must not matter.
    """
    found = specification.construct
    if found is None:
        return {}
    abolished: dict[str, float | None] = {
        str(lesion): at_most for lesion, at_most in found.abolished_by
    }
    return abolished | {str(lesion): None for lesion in found.spared_by}


def is_current(specification: Specification, entry: Mapping[str, Any] | None) -> bool:
    """Return whether a measurement belongs to this protocol, and has all lesions of its
    construct.
    """
    return (
        entry is not None
        and applies(specification, entry)
        and construct(specification).items()
        <= {name: row["at_most"] for name, row in rows_of(entry).items()}.items()
    )


def measure(
    specification: Specification, parts: Sequence[AuditPart] = tuple(PARTS)
) -> dict[str, Any]:
    """Return the findings of these parts of an audit: the ceilings of one protocol, and
    the memory that a PASS needs.
    """
    settings = AuditSettings(parts=tuple(parts), processes=os.cpu_count() or 1)
    report = audit_specification(specification, settings)
    findings = [
        {"rule": one.rule, "verdict": one.verdict, "numbers": _lasting(one.numbers)}
        for one in report.findings
        if one.rule.startswith(tuple(PARTS[part] for part in parts))
    ]
    return {
        "protocol": specification.name,
        "sha256": report.sha256,
        "life_sha256": report.life_sha256,
        "effort": settings.effort,
        "seed": settings.seed,
        "findings": findings,
    }


def _lasting(numbers: Mapping[str, object]) -> dict[str, object]:
    """Return the numbers without those that change with the animals' numbers: the bar
    of a row on memory, and whether it is passed. Whoever reads a row compares it with
    the bar of its day.
    """
    return {key: one for key, one in numbers.items() if key not in OF_THE_DAY}


def completed(
    entry: Mapping[str, Any], measured: Mapping[str, Any], parts: Sequence[AuditPart]
) -> dict[str, Any]:
    """Return the new measurements, completed with the stored measurements of the other
    parts.
    """
    now = tuple(PARTS[part] for part in parts)
    kept = [one for one in entry["findings"] if not one["rule"].startswith(now)]
    return {**measured, "findings": [*kept, *measured["findings"]]}


def lesions(specification: Specification) -> str:
    """Return a table of a protocol's remaining rates, or a sentence if the protocol
    names no construct.
    """
    if specification.construct is None:
        return "*Not validated*: the protocol names no construct."
    entry = stored().get(specification.name)
    heading = f"**Construct: {escape(specification.construct.name)}**"
    if entry is None or not is_current(specification, entry):
        return f"{heading}, not measured."
    rows = [
        [
            code(name),
            _left(row),
            "" if row["at_most"] is None else f"{row['at_most']:g}",
            _curve(row["by_session"]),
        ]
        for name, row in rows_of(entry).items()
    ]
    return "".join(
        [
            f"{heading}. Best pass rate under each lesion:\n\n",
            table(["lesion", "best pass rate", "limit", "by session"], rows),
            *memory(specification),
        ]
    )


def memory(specification: Specification) -> list[str]:
    """Return sentences on the memory that a PASS needs; none if the search was not
    made.
    """
    found = [
        f"{one.words} {one.rate:.2f}"
        for one in simple_subjects(specification)
        if not one.is_within
    ]
    bar = "" if specification.bar is None else f" PASS from {specification.bar:.3f}."
    return [f"\nFound with little memory: {'; '.join(found)}.{bar}\n"] if found else []


#: For each classic: why it has no construct, or none that an audit could validate; and
#: why it has no number of animals.
WHY = {
    "contextual_fear": "the visible shocks give the chamber away",
    "delayed_alternation": "counting alone passes",
    "five_choice": "a reflex suffices",
    "go_no_go": "the source gives responses and d', not this rate",
    "hebb_williams": "the picture shows the path, and the source scores other problems",
    "odd_one_out": "its problems can be learnt as a list, and the rats learnt other problems",
    "operant_goal": "we found no number that fits",
    "probabilistic_reversal": "counting alone passes",
    "progressive_ratio": "the clicks give away the lever that pays",
    "y_maze": "counting alone passes",
}


def classics() -> str:
    """Return a table of the classics. It says whether each is validated and has a
    reference, and if not, why.
    """
    rows = []
    for one in arenas(map(CATALOGUE.load, sorted(CLASSICS.glob("*.protocol.yaml")))):
        status = SAID[construct_status(one)] if one.construct else "not validated"
        judged = "no reference" if one.judged is None else ""
        leaves = most_left(one) if one.construct else None
        other = "" if leaves is None else _unnamed(*leaves)
        rows.append(
            [
                code(one.name),
                status,
                judged,
                other,
                _by_outcome(one),
                WHY.get(one.name, ""),
            ]
        )
    return table(
        [
            "protocol",
            "construct",
            "reference",
            "most left by an unnamed lesion",
            "memory only for what the last trial paid",
            "why not",
        ],
        rows,
    )


def _by_outcome(specification: Specification) -> str:
    """Return the rate of the best subject found that remembers neither a place nor its
    actions, the lower end of its interval, and the bar. Return "" if the search was not
    made.
    """
    found = [one for one in simple_subjects(specification) if one.kind in FORBIDDEN]
    if not found:
        return ""
    best = max(found, key=lambda one: one.rate)
    bar = specification.bar
    needed = "" if bar is None else f"; PASS from {bar:.3f}"
    return f"{best.rate:.2f} (at least {best.low:.2f}){needed}"


def _unnamed(lesion: str, rate: float, is_bound: bool) -> str:
    return f"{lesion} {'at most ' if is_bound else ''}{rate:.2f}"


def _left(row: Mapping[str, Any]) -> str:
    found = row["found"]
    text = f"found {found['rate']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
    return (
        f"{text}, proven at most {row['proven']:.2f}"
        if row["proven"] is not None
        else text
    )


def _curve(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values[:12])


def main() -> None:
    """Measure protocols, and store the results after each of them."""
    parser = argparse.ArgumentParser(description="Measure the shipped protocols.")
    parser.add_argument("protocols", nargs="*")
    parser.add_argument("--part", choices=PARTS)
    arguments = parser.parse_args()
    names = arguments.protocols
    parts = [arguments.part] if arguments.part else list(PARTS)
    for specification in validated().values():
        entry = stored().get(specification.name)
        current = is_current(specification, entry)
        if specification.name in names or not (names or current):
            measured = measure(specification, parts)
            if entry is not None and current:
                measured = completed(entry, measured, parts)
            store(specification, measured)
            print(specification.name, flush=True)


if __name__ == "__main__":
    main()
