"""The audit: does a paradigm measure what it claims to? The rules are explained in
docs/audit.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, reduce

from cheesebench.interfaces import (
    AUDIT_PARTS,
    AuditFinding,
    AuditPart,
    AuditSettings,
    View,
)
from cheesebench.paradigms.arena.audit import chances, lesions, memory, runs, validity
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.protocol import expressions as ex

#: The parts that need a pass rate. They are left out if a protocol has no 'success',
#: and no verdict about a measure that could stand for it.
JUDGING: tuple[AuditPart, ...] = (
    "chance",
    "blind",
    "limit",
    "solvable",
    "rewards",
    "same-event",
    "lesions",
    "memory",
)
#: The memory part runs only on request: it takes minutes, and proves nothing.
NOT_SEARCHED = (
    "subjects with little memory were not searched (minutes): --part memory. Reports say"
    " 'memory not searched' without it"
)
USUAL = tuple(part for part in AUDIT_PARTS if part != "memory")


def audit(
    paradigm: ArenaParadigm, views: Sequence[View], settings: AuditSettings
) -> Iterator[AuditFinding]:
    """Yield the findings on a paradigm, one part of the audit after the other: the
    parts asked for, or all except ``memory`` (see ``interfaces.Paradigm.audit``). The
    caller adds the part ``animal``.
    """
    settings = replace(settings, seed=first_seed(settings.seed))
    stated, paradigm = paradigm.specification, _judging(paradigm)
    tallies: list[
        runs.Tally
    ] = []  # The rule on rewards also uses the tallies of all policies.
    intact = cache(lambda: lesions.intact(paradigm, settings))
    # The part `animal` needs the statistical test, so the caller of the audit adds it.
    wanted = [
        part
        for part in AUDIT_PARTS
        if part != "animal" and part in (settings.parts or USUAL)
    ]
    if stated.success is None:
        if paradigm.specification.success is None:
            wanted = [part for part in wanted if part not in JUDGING]
        yield _without_success(paradigm)
    _announce(wanted, paradigm, settings)
    with runs.Runner(paradigm, settings.processes) as runner:
        parts: dict[AuditPart, Callable[[], Iterable[AuditFinding]]] = {
            "chance": lambda: chances.audit_chances(
                paradigm, settings, runner, tallies
            ),
            "blind": lambda: chances.audit_blind(paradigm, settings, runner, tallies),
            "limit": lambda: chances.audit_limit(paradigm, settings, runner),
            "solvable": lambda: lesions.audit_decidable(
                paradigm,
                settings,
                list(validity.audit_solvable(paradigm, settings)),
                intact,
            ),
            "rewards": lambda: [
                *validity.audit_rewards(paradigm, settings, tallies),
                *lesions.audit_life_rewards(paradigm, settings, tallies, intact()),
            ],
            "same-event": lambda: validity.audit_same_event(paradigm, settings),
            "draws": lambda: validity.audit_draws(paradigm, settings),
            "leaks": lambda: validity.audit_leaks(paradigm, views, settings),
            "lesions": lambda: lesions.audit_lesions(paradigm, settings, runner),
            "memory": lambda: memory.audit_memory(paradigm, settings),
            "cues": lambda: validity.audit_cues(paradigm, views, settings),
        }
        for number, part in enumerate(wanted, 1):
            if settings.progress:
                settings.progress(f"part {number} of {len(wanted)}, {part}")
            yield from parts[part]()
    if settings.parts is None and stated.construct is not None:
        yield AuditFinding("little memory", "note", NOT_SEARCHED, {})


def _judging(paradigm: ArenaParadigm) -> ArenaParadigm:
    """Return the paradigm with a condition of success, which it may lack if its verdict
    is about a measure. Then a trial passes if its measure is what the verdict asks of
    the mean, and a trial without a value does not pass.
    """
    specification = paradigm.specification
    about = specification.judged
    if specification.success is not None or about is None:
        return paradigm
    value = specification.measures[about.measure]
    limits = [
        ex.Binary(sign, value, ex.Number(limit)) for sign, limit in runs.asked_of(about)
    ]
    success = reduce(lambda left, right: ex.Binary("and", left, right), limits)
    return ArenaParadigm(replace(specification, success=success))


def _without_success(paradigm: ArenaParadigm) -> AuditFinding:
    about = paradigm.specification.judged
    text = "there is no 'success', so the rules on pass rates are left out"
    if about is not None:
        text = (
            f"there is no 'success', so in this audit a trial passes if its {about.measure} is"
            f" {runs.asked_in_words(about)}, which the verdict asks of the mean"
        )
    return AuditFinding("success", "note", text, {})


def _announce(
    parts: Sequence[AuditPart], paradigm: ArenaParadigm, settings: AuditSettings
) -> None:
    if settings.progress and "lesions" in parts:
        settings.progress(lesions.outlook(paradigm, settings))


def first_seed(seed: int) -> int:
    """Return the seed of an audit's first life. The audit's other lives have the seeds
    after it, so two audits must start far apart. Seed 0 stays 0, because the stored
    results of the shipped protocols were measured with it.
    """
    return (
        int.from_bytes(
            hashlib.blake2b(str(seed).encode(), digest_size=5).digest(), "big"
        )
        if seed
        else 0
    )
