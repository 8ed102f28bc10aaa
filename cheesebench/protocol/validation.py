"""Says whether a protocol's construct is validated. Its lesions must be able to abolish
a PASS (``doubts``), and a stored audit must confirm that they do.

An audit is stored beside the protocol in a file ``*.audit.json``, which is the output
of ``cheesebench audit FILE --json``. It belongs to the protocol whose digest it
contains. The digest leaves out the animals' numbers, so they may change without a new
audit (``life_hash``).
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
#: How reports word each status. If there are several audits, the first status in this
#: order counts.
SAID: Mapping[Status, str] = {
    "failed": "construct fails its audit",
    "validated": "validated",
    "searched": "construct searched, not proven",
    "declared": "construct not measured",
}


#: For each kind of construct: the lesion that must abolish it, in words, and an example
#: of it.
_DEFINING: Mapping[str, tuple[str, str]] = {
    "memory": ("an amnesia", "amnesia: trial"),
    "learning": ("anhedonia", "anhedonia"),
    "preference": ("anhedonia", "anhedonia"),
    "perception": ("blindness", "blind"),
    "strategy": ("hidden cues", "hide: landmarks"),
}


def _defines(lesion: Lesion, kind: str) -> bool:
    """Return whether a lesion removes what a kind of construct needs, and nothing else.

    With anhedonia, parts of the picture may be hidden, too, because they may predict
    the reward.
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
    """A reason why lesions cannot validate a construct. ``code`` and ``path`` are the
    code and the place of the finding.
    """

    code: int
    path: tuple[str | int, ...]
    sentence: str
    remedy: str


def doubts(specification: Specification) -> Iterator[Doubt]:
    """Yield the reasons why no audit can validate the construct.

    329: a lesioned subject could pass although its rate is within ``at_most``. This is
    only checked for verdicts about success, because the effect of a lesion on a measure
    is unknown. 330: no lesion removes what the kind of construct needs, and nothing
    else.
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
                f"'{lesion}' may leave {at_most:g}, which is more than the animals' {judged.value:g} minus the margin "
                f"of {margin:g}.",
                _remedy_of_room(specification, judged, room, at_most),
            )


def _remedy_of_room(
    specification: Specification, judged: ReferenceSpec, room: float, at_most: float
) -> str:
    """Return the remedy for a lesion that may leave more than the animals' value minus
    the margin.
    """
    if judged.over and judged.over != tuple(specification.judged_sessions):
        return "Correct 'over' first: the animals' value covers other sessions than the pass rate."
    left, lower = (
        math.floor(limit * 1000 + 1e-6) / 1000
        for limit in (at_most - (specification.document.margin - room), room)
    )
    narrower = (
        f". If the lesion leaves more, lower 'margin' to {lower:g}" if lower > 0 else ""
    )
    return (
        f"Lower 'at_most' to {left:g}{narrower}."
        if left > 0
        else "Change the task so that the lesion leaves less."
    )


def life_hash(specification: Specification) -> str:
    """Return the SHA-256 of everything that decides the highest pass rates under
    lesions: the protocol without margin, measures and references.

    Of these, only the condition under which a trial counts remains and, for a verdict
    about a measure, this measure and what the verdict asks for.
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
    """Return whether an audit was made of this protocol, or of one with the same
    ``life_hash``.
    """
    return report.get("sha256") == specification.sha256 or report.get(
        "life_sha256"
    ) == life_hash(specification)


def construct_status(specification: Specification) -> Status:
    """Return the status of a protocol's construct.

    ``declared``: the protocol has no construct, its lesions cannot validate it
    (``doubts``), or they were not all tried. ``searched``: not all of the rates that
    they leave were proved. If several audits belong to the protocol, the first of their
    statuses in ``SAID`` counts.
    """
    if specification.construct is None or next(doubts(specification), None) is not None:
        return "declared"
    folder = real_path(Path(specification.path)).parent
    verdicts = [
        _verdict(specification, report) for report in _reports(folder, specification)
    ]
    return min(verdicts, key=[*SAID].index, default="declared")


def audited_ceilings(specification: Specification) -> records.Ceilings | None:
    """Return the highest pass rates that subjects can have according to a stored audit,
    or None if no audit belongs to the protocol. A rate is None if the audit does not
    have it.

    ``first`` is for the first trial. It is the rate of a subject that forgets
    everything between trials, because each of its trials is like the first. It is
    None unless all trials are judged.
    """
    folder = real_path(Path(specification.path)).parent
    for report in _reports(folder, specification):
        most: dict[str, float] = {}
        for finding in _rows(report, RULE):
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
    no audit gives them, if there is no construct or it fails an audit, or if the
    verdict is about a measure, for which no ceiling is stored.

    ``without`` is the highest ceiling of the lesions that abolish the construct. A
    lesion whose ceiling is not proved may leave more, so all ceilings must be proved.
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
        # If the intact adversary fails or is undecided, its rate may be too low to be
        # the ideal.
        is_ideal = intact["verdict"] not in ("FAIL", "undecided")
        if 0 <= (without := max(proved)) < ideal <= 1 and is_ideal:
            return records.AbilityScale(without=without, ideal=ideal)
    return None


def idle_sessions(specification: Specification) -> tuple[int, ...]:
    """Return the sessions in which the intact adversary of a stored audit never
    succeeds. There are none without an audit.
    """
    for report in _reports(real_path(Path(specification.path)).parent, specification):
        intact = _findings_of(report).get("intact", {})
        numbers = intact.get("numbers")
        rates = numbers.get("by_session") if isinstance(numbers, dict) else None
        if isinstance(rates, list):
            return tuple(at for at, rate in enumerate(rates, 1) if rate == 0)
    return ()


def _findings_of(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the findings of an audit about lesions, by the lesion's text."""
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
    """Return the lesion that leaves the highest rate, the rate, and whether the rate is
    a proved bound. Only lesions that a stored audit tried but the construct does not
    name are compared. Return None if there are none.

    A bound replaces the adversary's own rate, which may exceed it by chance.
    """
    construct = specification.construct
    named = (
        {INTACT, *construct.spared_by, *(one for one, _ in construct.abolished_by)}
        if construct
        else {INTACT}
    )
    left: dict[str, tuple[float, bool]] = {}
    for report in _reports(real_path(Path(specification.path)).parent, specification):
        for finding in _rows(report, RULE):
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


#: Rule of an audit that could not search for subjects with little memory, and prefix of
#: the rules about the subjects that were found.
NO_MEMORY = "memory"
MEMORY = f"{NO_MEMORY}: "
#: Classes of subjects that remember neither places nor their actions.
FORBIDDEN = ("nothing", "outcome")
#: What each class of subjects remembers between trials. The class with the least memory
#: comes first.
_REMEMBERS: Mapping[str, str] = {
    "nothing": "no memory of earlier trials",
    "outcome": "memory only for what the last trial paid",
    "place": "{} for where the last trial ended",
    "any": "{}",
}


class Simple(NamedTuple):
    """The best subject that an audit found in a class with little memory.

    ``rate`` is its pass rate (or its mean of the judged measure) in new lives, and
    ``low`` the lower end of a 99 % interval. ``states`` is the number of states of its
    memory, which it loses at the end of a trial if ``is_within``.
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
    """Return the subjects with little memory that the stored audits found, the least
    memory first. Subjects that also know where they have been in the present trial are
    left out.
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


def is_memory_searched(specification: Specification) -> bool:
    """Return whether a stored audit has the part ``memory``."""
    folder = real_path(Path(specification.path)).parent
    reports = _reports(folder, specification)
    return any(_rows(report, NO_MEMORY) for report in reports)


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


def failed(specification: Specification) -> tuple[str, float] | None:
    """Return the first lesion of the construct that fails a stored audit, and the rate
    (or the mean of the measure that is judged) with it. Return None if there is none,
    or its audit lacks the rate.
    """
    construct = specification.construct
    named = [] if construct is None else [str(one) for one, _ in construct.abolished_by]
    for report in _reports(real_path(Path(specification.path)).parent, specification):
        for row in _rows(report, RULE):
            lesion = str(row.get("rule")).removeprefix(RULE)
            if row.get("verdict") == "FAIL" and lesion in named:
                rate = _reached(row)
                return None if rate is None else (lesion, rate)
    return None


def also_failed(specification: Specification) -> tuple[str, ...]:
    """Return the rules that fail in stored audits, without the rules of lesions.
    Whether a rule about memory fails is decided by the present bar.
    """
    failed: list[str] = []
    for report in _reports(real_path(Path(specification.path)).parent, specification):
        rows = (one for one in _rows(report, "") if one.get("verdict") == "FAIL")
        rules = (str(one.get("rule"))[:60] for one in rows)
        failed += [one for one in rules if not one.startswith((RULE, MEMORY))]
        failed += _passed_without(specification, report)
    return tuple(dict.fromkeys(failed))


def _reached(finding: Mapping[str, Any]) -> float | None:
    try:
        numbers = finding["numbers"]
        return float(
            numbers["measured"][0]
            if numbers.get("measured")
            else numbers["found"]["rate"]
        )
    except (TypeError, LookupError, ValueError, AttributeError):
        return None


def passed_by(specification: Specification) -> tuple[str, float] | None:
    """Return, for the simplest subject that is significantly above the bar, its memory
    in words and its pass rate (or its mean of the judged measure). Return None if no
    audit found one, or there is no bar.
    """
    bar = specification.bar
    if bar is None:
        return None
    passing = (one for one in simple_subjects(specification) if one.low > bar)
    return next(((one.words, one.rate) for one in passing), None)


def _passed_without(
    specification: Specification, report: Mapping[str, Any]
) -> list[str]:
    """Return the rules of an audit whose subject remembers neither a place nor its
    actions, and certainly passes, although the construct does not allow this.
    """
    construct, bar = specification.construct, specification.bar
    if construct is None or bar is None:
        return []
    rows = ((row, _simple(row)) for row in _rows(report, MEMORY))
    return [
        str(row["rule"])[:60]
        for row, one in rows
        if one is not None
        and one.kind in FORBIDDEN
        and one.kind not in construct.allows
        and one.low > bar
    ]


def _tried(report: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    """Return the verdict and the bound of each rule that has a bound in an audit. The
    report may contain anything, even hostile input.
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
    looser bound, has an empty verdict.
    """
    # A rule with a bound that the construct does not name is about an amnesia at an
    # earlier state.
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
    the audit has no verdict on one of its lesions.

    The construct fails if the intact subject fails, if any lesion fails (also one that
    should not matter), or if a subject passes that remembers too little. If any of
    these rows is undecided, it is not validated.
    """
    construct = specification.construct
    assert construct is not None
    rows = [one.get("verdict") for one in _rows(report, RULE)]
    if "FAIL" in rows or _passed_without(specification, report):
        return "failed"
    named = {f"{RULE}{lesion}": most for lesion, most in construct.abolished_by}
    verdicts = _of_lesions(_tried(report), named)
    if verdicts == {"ok"} and "undecided" not in rows:
        return "validated"
    return "searched" if verdicts <= {"ok", "undecided"} else "declared"
