"""Whether a construct has been validated, by a stored audit of its lesions; also for the shipped protocols.

An audit is stored beside the protocol in a file ``*.audit.json``, the output of ``cheesebench audit FILE --json``. It
applies to the protocol with the digest that it names, whatever animals that is compared with (``life_hash``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from cheesebench.protocol.resolve import protocol_hash
from cheesebench.protocol.source import real_path
from cheesebench.protocol.specification import Specification

#: What the name of a kept audit ends with.
SUFFIX = ".audit.json"
#: What the name of a lesion's rule begins with in an audit.
RULE = "lesion: "
#: Keys that change a verdict, but not what subjects can achieve under a lesion.
_OF_THE_VERDICT = ("margin", "measures", "reference")
#: Larger files are no audits.
MAX_BYTES = 5_000_000

Status = Literal["validated", "failed", "declared"]
#: What is said of a construct, wherever it is said.
SAID: Mapping[Status, str] = {
    "validated": "validated",
    "failed": "construct fails its audit",
    "declared": "construct not measured",
}


def life_hash(specification: Specification) -> str:
    """Return the SHA-256 of all that the ceilings under lesions depend on: the protocol without the animals' numbers.

    What remains of the reference is its condition for a trial to count.
    """
    plain = {key: one for key, one in json.loads(specification.text).items() if key not in _OF_THE_VERDICT}
    judged = specification.judged
    return protocol_hash(plain if judged is None or judged.where is None else plain | {"where": judged.where})


def applies(specification: Specification, report: Mapping[str, Any]) -> bool:
    """Return whether an audit was of this protocol, up to the animals' numbers."""
    return report.get("sha256") == specification.sha256 or report.get("life_sha256") == life_hash(specification)


def construct_status(specification: Specification) -> Status:
    """Return what is known of a protocol's construct; ``declared`` if its lesions were not tried, or it has none.

    Where several audits are of this protocol, one that fails decides.
    """
    if specification.construct is None:
        return "declared"
    folder = real_path(Path(specification.path)).parent
    verdicts = {_verdict(specification, report) for report in _reports(folder, specification)} - {None}
    if "failed" in verdicts:
        return "failed"
    return "validated" if "validated" in verdicts else "declared"


def _reports(folder: Path, specification: Specification) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            if path.stat().st_size > MAX_BYTES:
                continue
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        for report in content if isinstance(content, list) else [content]:
            if isinstance(report, dict) and applies(specification, report):
                yield report


def _verdict(specification: Specification, report: Mapping[str, Any]) -> Status | None:
    """Return what one audit says of the construct; None where it has not tried all of its lesions."""
    construct = specification.construct
    assert construct is not None
    findings = report.get("findings")
    tried: dict[str, tuple[str, float]] = {}
    for finding in findings if isinstance(findings, list) else []:
        numbers = finding.get("numbers") if isinstance(finding, dict) else None
        if isinstance(numbers, dict) and isinstance(most := numbers.get("at_most"), int | float):
            tried[str(finding.get("rule"))] = (str(finding.get("verdict")), float(most))
    verdicts = set()
    for lesion, most in construct.abolished_by:
        verdict, bound = tried.get(f"{RULE}{lesion}", ("", 0.0))
        # The bound is not part of the hash: an audit of a looser one says nothing.
        verdicts.add(verdict if bound <= most else "")
    if "FAIL" in verdicts:
        return "failed"
    return "validated" if verdicts == {"ok"} else None
