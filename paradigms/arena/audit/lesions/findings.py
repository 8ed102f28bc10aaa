"""Rules on lesions: pass rates under each lesion, compared with what the construct abolishes or spares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cheesebench.interfaces import AuditFinding, AuditSettings, AuditVerdict
from cheesebench.lesions import INTACT
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.ceilings import TRIALS, Ceiling, Order, battery, ceilings, measure
from cheesebench.paradigms.arena.audit.numbers import shown
from cheesebench.paradigms.arena.audit.runs import Runner

#: The pass rate that an intact subject must finally reach; below, too little effort may look like validity.
INTACT_AT_LAST = 0.99
#: What must be left under a lesion that spares the construct.
SPARED = 0.95
#: What is said where more was found than may remain, and the interval or a proof allows for it.
EXCESS = "; the excess is within chance"
NOT_VALIDATED = "not validated: the protocol names no `construct`"


def audit_lesions(paradigm: ArenaParadigm, settings: AuditSettings, runner: Runner) -> Iterator[AuditFinding]:
    """Yield what is left under each lesion, and whether the construct allows it."""
    construct = paradigm.specification.construct
    if construct is None:
        yield AuditFinding("construct", "note", NOT_VALIDATED, {})
        if settings.parts is None:
            return  # minutes of work that were not asked for
    else:
        yield AuditFinding("construct", "note", f"{construct.name}", {"name": construct.name})
    found = ceilings(battery(paradigm.specification), settings, runner)
    intact = next(one for one in found if one.lesion == INTACT)
    is_void = intact.at_last.value < INTACT_AT_LAST
    at_most = dict(construct.abolished_by) if construct else {}
    spared = construct.spared_by if construct else ()
    for ceiling in found:
        yield _finding(ceiling, at_most.get(ceiling.lesion), ceiling.lesion in spared, is_void)


def _finding(ceiling: Ceiling, at_most: float | None, is_spared: bool, is_void: bool) -> AuditFinding:
    found, lesion = ceiling.found, ceiling.lesion
    text = f"found {found} in {found.trials} trials"
    text += f", proven at most {shown(ceiling.proven)}" if ceiling.proven is not None else ""
    verdict: AuditVerdict = "note"
    if not found.trials:
        text, verdict = "not judged: the estimand counts none of the trials", "FAIL" if lesion == INTACT else "note"
    elif lesion == INTACT:
        text += f"; at last {shown(ceiling.at_last.value)}"
        verdict = "note" if not is_void else "FAIL"
        if is_void:
            text += ": even a subject that knows all rules may fail, or --effort is too low; no `ok` below counts"
    elif at_most is not None:
        verdict, remark = _abolished(ceiling, at_most, is_void)
        text += f"; at most {shown(at_most)} may remain{remark}"
    elif is_spared:
        verdict = "ok" if found.value >= SPARED or ceiling.at_last.value >= INTACT_AT_LAST else "FAIL"
        text += f"; must not matter ({shown(SPARED)})"
    text += f"; by session {_curve(ceiling)}"
    numbers: dict[str, object] = {
        "found": found.numbers(), "proven": ceiling.proven, "at_last": ceiling.at_last.value, "at_most": at_most,
        "by_session": list(ceiling.by_session.values()), "by_trial": list(ceiling.by_trial.values()),
    }  # fmt: skip
    return AuditFinding(f"lesion: {lesion}", verdict, text, numbers)


def _abolished(ceiling: Ceiling, at_most: float, is_void: bool) -> tuple[AuditVerdict, str]:
    """Judge a lesion that must abolish: what was found by the interval's lower end, what was proven as it is."""
    if ceiling.surely > at_most + 1e-9:
        return "FAIL", ""
    if ceiling.proven is not None and ceiling.proven <= at_most + 1e-9:
        return "ok", EXCESS if ceiling.found.value > at_most + 1e-9 else ""
    remark = " (searched, not proven)"
    if ceiling.found.value > at_most + 1e-9:
        remark += EXCESS
    return ("note", f"{remark}; void: the intact subject does not succeed") if is_void else ("ok", remark)


def _curve(ceiling: Ceiling) -> str:
    values = [shown(value) for value in ceiling.by_session.values()]
    return " ".join(values if len(values) <= 12 else [*values[:6], "...", *values[-4:]])


def audit_decidable(
    paradigm: ArenaParadigm, settings: AuditSettings, solvable: Sequence[AuditFinding]
) -> Iterator[AuditFinding]:
    """Yield what the solver found, and where it succeeds, whether one who does not know the draws does, too."""
    yield from solvable
    if any(one.verdict == "FAIL" for one in solvable):
        return
    trials = min(TRIALS, settings.trials)
    ceiling = measure(paradigm, Order(INTACT, settings.effort, settings.seed, True, trials, is_bounded=False))
    at_last = ceiling.at_last
    if not at_last.trials:
        return
    lucky = any(rule.p is not None for state in paradigm.specification.states.values() for rule in state.rules)
    text = (
        f"a subject that knows the rules but not the draws succeeds in {shown(ceiling.found.value)}, at last {at_last}"
    )
    verdict: AuditVerdict = "ok"
    if at_last.value < INTACT_AT_LAST:
        verdict = "note" if lucky else "FAIL"
        text += "; chance (`p`) plays a part" if lucky else ": nothing reveals the right answer"
    numbers: dict[str, object] = {"found": ceiling.found.numbers(), "at_last": at_last.numbers()}
    yield AuditFinding("decidable", verdict, text, numbers)
