"""Says whether a construct is validated: its lesions must be able to show it, and a
stored audit must confirm them.

An audit is stored beside the protocol in a file ``*.audit.json``, which is the output
of ``cheesebench audit FILE --json``. It applies to the protocol with the digest in it,
whatever the animals' numbers are (``life_hash``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cheesebench import records
from cheesebench.errors import OptionError
from cheesebench.files import read_bytes
from cheesebench.lesions import INTACT, Lesion
from cheesebench.protocol.resolve import protocol_hash
from cheesebench.protocol.specification import ReferenceSpec, Specification
from cheesebench.source import real_path

#: Suffix of stored audits.
SUFFIX = ".audit.json"
#: Prefix of a lesion's rule in an audit.
RULE = "lesion: "
#: Keys that change a verdict, but not the possible results under a lesion.
_OF_THE_VERDICT = ("margin", "measures", "reference", "twin_of")
#: Maximum size in bytes of a file that is read as an audit.
MAX_BYTES = 5_000_000

Status = Literal["validated", "searched", "failed", "declared"]
#: Wording of each status in reports. If there are several audits, the first status in
#: this order counts.
SAID: Mapping[Status, str] = {
    "failed": "construct fails its audit",
    "validated": "validated",
    "searched": "construct searched, not proven",
    "declared": "construct not measured",
}


#: For each kind of construct, the lesion that must abolish it, in words, and an
#: example.
_DEFINING: Mapping[str, tuple[str, str]] = {
    "memory": ("an amnesia", "amnesia: trial"),
    "learning": ("anhedonia", "anhedonia"),
    "preference": ("anhedonia", "anhedonia"),
    "perception": ("blindness", "blind"),
    "strategy": ("hidden cues", "hide: landmarks"),
}


def _defines(lesion: Lesion, kind: str) -> bool:
    """Return whether a lesion removes exactly what a kind of construct needs.

    Besides anhedonia, parts of the picture may be hidden, because they may predict the
    reward.
    """
    forgets, unseen = (
        bool(lesion.amnesia) or lesion.memoryless,
        lesion.sees_nothing or lesion.sees_pose_only,
    )
    if kind in ("learning", "preference"):
        return lesion.feels_no_reward and not forgets and not unseen
    if lesion.feels_no_reward or forgets != (kind == "memory"):
        return False
    return {
        "memory": not lesion.changes_the_picture,
        "perception": lesion.sees_nothing,
        "strategy": lesion.changes_the_picture and not lesion.sees_nothing,
    }[kind]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason why the lesions of a construct cannot show it. ``code`` and ``path`` are
    those of the finding.
    """

    code: int
    path: tuple[str | int, ...]
    sentence: str
    remedy: str


def doubts(specification: Specification) -> Iterator[Doubt]:
    """Yield the reasons for which no audit could validate the construct.

    329: a lesioned subject within ``at_most`` could still pass. This is only checked
    for verdicts about success, because the effect of a lesion on a measure is unknown.
    330: the lesion that defines the kind of construct is missing.
    """
    construct, judged = specification.construct, specification.judged
    if construct is None:
        return
    if not any(
        _defines(lesion, construct.kind) for lesion, _ in construct.abolished_by
    ):
        lesion_name, example = _DEFINING[construct.kind]
        sentence = f"A construct of kind '{construct.kind}' must be abolished by {lesion_name} alone."
        yield Doubt(
            330,
            ("construct", "abolished_by"),
            sentence,
            f"Add a lesion such as '{example}', or change 'kind'.",
        )
    if judged is None or judged.measure != "success":
        return
    margin = specification.document.margin
    for number, (lesion, at_most) in enumerate(construct.abolished_by):
        room = judged.value - at_most
        if room < margin - 1e-9:
            yield Doubt(
                329,
                ("construct", "abolished_by", number),
                f"'{lesion}' may leave {at_most:g}, which is more than {judged.value:g} less the margin of {margin:g}.",
                _remedy_of_room(specification, judged, room, at_most),
            )


def _remedy_of_room(
    specification: Specification, judged: ReferenceSpec, room: float, at_most: float
) -> str:
    """Return the remedy for a lesion that leaves more than the animals' value minus the
    margin.
    """
    if judged.over and judged.over != tuple(specification.judged_sessions):
        return "Correct 'over' first: the animals' value is of other sessions than the pass rate."
    left, lower = (
        math.floor(limit * 1000 + 1e-6) / 1000
        for limit in (at_most - (specification.document.margin - room), room)
    )
    narrower = f"; if it leaves more, lower 'margin' to {lower:g}" if lower > 0 else ""
    return (
        f"Lower 'at_most' to {left:g}{narrower}."
        if left > 0
        else "Change the task so that the lesion leaves less."
    )


def life_hash(specification: Specification) -> str:
    """Return the SHA-256 of everything on which the ceilings under lesions depend: the
    protocol without the animals' numbers.

    Of the reference, only two parts remain: its condition for a trial to count, and the
    requirement of a verdict about a measure.
    """
    whole = json.loads(specification.text)
    plain = {key: one for key, one in whole.items() if key not in _OF_THE_VERDICT}
    judged = specification.judged
    if judged is not None and judged.where is not None:
        plain |= {"where": judged.where}
    if judged is not None and judged.better is not None:
        plain |= {
            "judged": [
                whole["measures"][judged.measure],
                judged.better,
                judged.range,
                judged.bar,
            ]
        }
    return protocol_hash(plain)


def applies(specification: Specification, report: Mapping[str, Any]) -> bool:
    """Return whether an audit belongs to this protocol, whatever the animals' numbers
    are.
    """
    return report.get("sha256") == specification.sha256 or report.get(
        "life_sha256"
    ) == life_hash(specification)


def construct_status(specification: Specification) -> Status:
    """Return the status of a protocol's construct.

    ``declared``: the protocol has no construct, its lesions could not show it
    (``doubts``), or they were not tried. ``searched``: the remaining rates were not
    proved. If several audits apply, one that fails decides.
    """
    if specification.construct is None or next(doubts(specification), None) is not None:
        return "declared"
    folder = real_path(Path(specification.path)).parent
    verdicts = [
        _verdict(specification, report) for report in _reports(folder, specification)
    ]
    return min(verdicts, key=[*SAID].index, default="declared")


def audited_ceilings(specification: Specification) -> records.Ceilings | None:
    """Return the highest pass rates that a stored audit of the protocol gives, or None
    if there is no audit.

    A subject that forgets everything between trials knows as much as one in its first
    trial, if the first trial is judged.
    """
    folder = real_path(Path(specification.path)).parent
    for report in _reports(folder, specification):
        most: dict[str, float] = {}
        for finding in report.get("findings", ()):
            try:
                numbers = finding["numbers"]
                most[finding["rule"]] = float(
                    max(numbers["found"]["high"], numbers["proven"] or 0.0)
                )
            except (TypeError, LookupError, ValueError):
                continue
        first = (
            most.get(f"{RULE}amnesia=trial")
            if specification.estimand == "all"
            else None
        )
        return records.Ceilings(first=first, all=most.get(f"{RULE}intact"))
    return None


def ability_scale(specification: Specification) -> records.AbilityScale | None:
    """Return the ends of the ability scale according to a stored audit. Return None if
    one of them is not proved, or the verdict concerns a measure, for which no ceiling
    is stored.

    ``without`` is the largest ceiling over the lesions that abolish the construct. A
    lesion without a proof may leave more than those with one, so all ceilings must be
    proved.
    """
    construct, judged = specification.construct, specification.judged
    if construct is None or (judged is not None and judged.measure != "success"):
        return None
    if construct_status(specification) == "failed":
        return None
    for report in _reports(real_path(Path(specification.path)).parent, specification):
        found = _findings_of(report)
        try:
            intact = found["intact"]
            proved = [
                float(found[str(one)]["numbers"]["proven"])
                for one, _ in construct.abolished_by
            ]
            ideal = float(intact["numbers"]["found"]["rate"])
        except (TypeError, LookupError, ValueError):
            continue
        # If the intact adversary fails, its effort was too small to define the ideal.
        if 0 <= (without := max(proved)) < ideal <= 1 and intact["verdict"] != "FAIL":
            return records.AbilityScale(without=without, ideal=ideal)
    return None


def idle_sessions(specification: Specification) -> tuple[int, ...]:
    """Return the sessions in which the intact adversary of a stored audit never
    succeeds; none without an audit.
    """
    for report in _reports(real_path(Path(specification.path)).parent, specification):
        intact = _findings_of(report).get("intact", {})
        numbers = intact.get("numbers")
        rates = numbers.get("by_session") if isinstance(numbers, dict) else None
        if isinstance(rates, list):
            return tuple(at for at, rate in enumerate(rates, 1) if rate == 0)
    return ()


def _findings_of(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the findings of an audit under each lesion, by the lesion's text."""
    return {str(one["rule"]).removeprefix(RULE): one for one in _rows(report, RULE)}


def _rows(report: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the findings of a report whose rules have this prefix."""
    findings = report.get("findings")
    return [
        one
        for one in (findings if isinstance(findings, list) else ())
        if isinstance(one, dict) and str(one.get("rule")).startswith(prefix)
    ]


def most_left(specification: Specification) -> tuple[str, float, bool] | None:
    """Return, according to a stored audit, the lesion with the highest remaining rate
    among those that the construct does not name, the rate, and whether this is a proved
    bound. If there is a bound, the adversary's own rate may exceed it by chance.
    """
    construct = specification.construct
    named = (
        {INTACT, *construct.spared_by, *(one for one, _ in construct.abolished_by)}
        if construct
        else {INTACT}
    )
    left: dict[str, tuple[float, bool]] = {}
    for report in _reports(real_path(Path(specification.path)).parent, specification):
        for finding in report.get("findings", ()):
            with suppress(
                TypeError, LookupError, ValueError, AttributeError, OptionError
            ):
                lesion, numbers = (
                    Lesion.parse(finding["rule"].removeprefix(RULE)),
                    finding["numbers"],
                )
                proven = numbers.get("proven")
                rate = numbers["found"]["rate"] if proven is None else proven
                if lesion not in named and 0 <= rate <= 1:
                    left[str(lesion)] = float(rate), proven is not None
    return max(
        ((lesion, *one) for lesion, one in left.items()),
        key=lambda one: one[1],
        default=None,
    )


def _reports(folder: Path, specification: Specification) -> Iterator[Mapping[str, Any]]:
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            content = json.loads(read_bytes(path, MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        for report in content if isinstance(content, list) else [content]:
            if isinstance(report, dict) and applies(specification, report):
                yield report


#: Prefix of the rules, in an audit, about the memory that a PASS needs.
MEMORY = "memory: "
#: Classes of subjects that remember neither places nor their actions.
FORBIDDEN = ("nothing", "outcome")
#: What each class remembers between trials. The class with the least memory comes
#: first.
_REMEMBERS: Mapping[str, str] = {
    "nothing": "no memory of earlier trials",
    "outcome": "memory only for what the last trial paid",
    "place": "{} for where the last trial ended",
    "any": "{}",
}


class Simple(NamedTuple):
    """The best subject that was found in a class with little memory: its rate in fresh
    lives, and the lower end of a 99 % interval.
    """

    kind: str
    states: int
    is_within: bool
    rate: float
    low: float

    @property
    def words(self) -> str:
        """The subject's memory in words, as in *one bit of memory*."""
        bits = {2: "one bit of memory", 4: "two bits of memory"}.get(self.states, "")
        words = _REMEMBERS[self.kind].format(bits)
        return words + (" within the trial" if self.is_within else "")


def simple_subjects(specification: Specification) -> list[Simple]:
    """Return the subjects with little memory that the stored audits found. Those with
    the least memory come first. A memory of the present trial is not counted, because
    every subject has it.
    """
    found = [
        one
        for report in _reports(
            real_path(Path(specification.path)).parent, specification
        )
        for one in map(_simple, _rows(report, MEMORY))
        if one is not None
    ]
    return sorted(found, key=lambda one: (one.states, [*_REMEMBERS].index(one.kind)))


def _simple(finding: Mapping[str, Any]) -> Simple | None:
    try:
        numbers = finding["numbers"]
        kind, within = str(numbers["class"]), numbers["clock"] == "trial"
        rate, low = float(numbers["rate"]), float(numbers["low"])
        found = Simple(kind, int(numbers["states"]), within, rate, low)
        known = kind in _REMEMBERS and not numbers["within"]
    except (TypeError, LookupError, ValueError):
        return None
    return found if known and found.words else None


def passed_by(specification: Specification) -> tuple[str, float] | None:
    """Return the memory of the simplest subject that is significantly above the bar,
    and its rate, or None if none was found.
    """
    bar = specification.bar
    if bar is None:
        return None
    passing = (one for one in simple_subjects(specification) if one.low > bar)
    return next(((one.words, one.rate) for one in passing), None)


def _is_passed_without(specification: Specification, report: Mapping[str, Any]) -> bool:
    """Return whether a subject that remembers neither a place nor its actions certainly
    passes, although the construct does not allow this.
    """
    construct, bar = specification.construct, specification.bar
    if construct is None or bar is None:
        return False
    return any(
        one is not None
        and one.kind in FORBIDDEN
        and one.kind not in construct.allows
        and one.low > bar
        for one in map(_simple, _rows(report, MEMORY))
    )


def _tried(report: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    """Return the rules of an audit that have a bound, each with its verdict and the
    bound. The report may be hostile.
    """
    tried: dict[str, tuple[str, float]] = {}
    findings = report.get("findings")
    for finding in findings if isinstance(findings, list) else ():
        numbers = finding.get("numbers") if isinstance(finding, dict) else None
        most = numbers.get("at_most") if isinstance(numbers, dict) else None
        if isinstance(most, int | float):
            tried[str(finding.get("rule"))] = (str(finding.get("verdict")), float(most))
    return tried


def _of_lesions(
    tried: Mapping[str, tuple[str, float]], named: Mapping[str, float]
) -> set[str]:
    """Return the verdicts on lesions. A lesion that was not tried, or was tried with a
    looser bound, has an empty one.
    """
    # A row that the construct does not name concerns an amnesia at an earlier state.
    verdicts = {
        verdict
        for rule, (verdict, _) in tried.items()
        if rule not in named and rule.startswith(RULE)
    }
    for rule, most in named.items():
        verdict, bound = tried.get(rule, ("", 0.0))
        # The bound is not part of the hash, so an audit with a looser bound does not
        # count.
        verdicts.add(verdict if bound <= most else "")
    return verdicts


def _verdict(specification: Specification, report: Mapping[str, Any]) -> Status:
    """Return the status of the construct according to one audit. It is ``declared`` if
    the audit has not tried all of its lesions.

    An intact subject that fails, and a lesion that should not matter but does, count as
    well: they have no bound.
    """
    construct = specification.construct
    assert construct is not None
    if _is_passed_without(specification, report):
        return "failed"
    if any(one.get("verdict") == "FAIL" for one in _rows(report, RULE)):
        return "failed"
    named = {f"{RULE}{lesion}": most for lesion, most in construct.abolished_by}
    verdicts = _of_lesions(_tried(report), named)
    if verdicts == {"ok"}:
        return "validated"
    return "searched" if verdicts <= {"ok", "undecided"} else "declared"
