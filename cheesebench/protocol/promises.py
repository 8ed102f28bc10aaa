"""More warnings and notes: clocks that outlast the trial, frozen traps, estimand, references, predictable rows."""

from __future__ import annotations

from collections.abc import Iterator
from operator import eq, ge, gt, le, lt

from cheesebench.protocol import expressions as ex
from cheesebench.protocol.diagnostics import Diagnostics, Position
from cheesebench.protocol.references import judged_reference
from cheesebench.protocol.source import Node
from cheesebench.protocol.specification import Assignment, RuleSpec, Specification


def check_promises(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """Add the findings of all checks of this module."""
    _late_clocks(spec, diagnostics)
    _frozen_traps(spec, diagnostics)
    _estimand(spec, root, diagnostics)
    _reference(spec, root, diagnostics)
    _readable_rows(spec, root, diagnostics)
    _beyond_the_schedule(spec, root, diagnostics)


#: Comparisons, and what each is with its sides exchanged.
_COMPARED = {"==": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _late_clocks(spec: Specification, diagnostics: Diagnostics) -> None:
    """303: a rule whose clock never runs out, because the limit ends the trial before."""
    if not isinstance(spec.limit, int):
        return
    first = {entry.name for entry in spec.entry}
    limit, remedy = f"a trial is over after {spec.limit} steps.", "Shorten it, or raise the limit."
    changed = {assignment.variable for assignment in _assignments(spec)}
    for state in spec.states.values():
        # A state that is entered later starts its clock later, and the limit does not wait for it.
        longest = spec.limit if state.name in first else spec.limit - 1
        for rule in state.rules:
            if isinstance(rule.after, ex.Number) and rule.after.value > longest:
                diagnostics.warning(303, rule.position, f"'{rule.text}' never fires: {limit}", remedy)
            elif isinstance(rule.after, ex.Variable) and rule.after.name not in changed:
                late = list(_late_blocks(spec, rule.after.name, longest))
                if late:
                    sentence = f"'{rule.text}' never fires where it is {' and '.join(late)}: {limit}"
                    diagnostics.warning(303, rule.position, sentence, remedy)


def _late_blocks(spec: Specification, name: str, longest: int) -> Iterator[str]:
    """Yield the blocks (or ``drawn``) in which all values of an unchanging variable are too long."""
    drawn = [row[draw.columns.index(name)] for draw in spec.draws if name in draw.columns for row in draw.rows]
    if drawn and all(_is_longer(value, longest) for value in drawn):
        yield "drawn"
    variable = spec.variables.get(name)
    for block in spec.schedule if variable is not None else ():
        assert variable is not None
        value = dict(block.set).get(name, variable.initial)
        if _is_longer(value, longest):
            yield f"{value:g} ('{block.name}')"


def _is_longer(value: object, longest: int) -> bool:
    return isinstance(value, int | float) and value > longest


def _assignments(spec: Specification) -> Iterator[Assignment]:
    yield from spec.each.set
    for state in spec.states.values():
        for effects in (state.entry, state.each, *(rule.effects for rule in state.rules)):
            yield from effects.set
    for rule in spec.watch:
        yield from rule.effects.set


def _frozen_traps(spec: Specification, diagnostics: Diagnostics) -> None:
    """304: a frozen state that nothing ends."""
    for state in spec.states.values():
        if not state.freeze:
            continue
        passing = [rule for rule in state.rules if rule.trigger in ("after", "act")]
        if not passing:
            sentence = f"The state '{state.name}' is frozen and has no 'after', so it never ends."
            diagnostics.warning(304, state.position, sentence, "Add one.")
        elif not spec.finish and not any(_leads_out(rule, state.name) for rule in passing):
            sentence = f"The state '{state.name}' is frozen and no rule leaves it, so it lasts until the limit."
            diagnostics.warning(304, state.position, sentence, "Give a rule a 'go' or an 'end'.")


def _leads_out(rule: RuleSpec, state: str) -> bool:
    return rule.end is not None or rule.go not in (None, state)


def _estimand(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """317: the last trials of each life, and more of them than a life has."""
    estimand = spec.document.estimand
    last = None if isinstance(estimand, str) else estimand.last
    if last is not None and last > spec.planned_trials:
        sentence = f"A subject has {spec.planned_trials} trials, so its last {last} are all of them."
        diagnostics.warning(
            317, root.find(("estimand", "last")).position, sentence, "Write 'estimand: all', or a smaller number."
        )


def _reference(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """402: numbers of the animals, but none that a verdict could compare with."""
    references = spec.document.reference
    if spec.success is None or not references or judged_reference(references) is not None:
        return
    names = ", ".join(dict.fromkeys(f"'{one.measure}'" for one in references))
    sentence = f"There is no reference on 'success', so there will be no verdict: {names} is only reported."
    remedy = "Add one with 'measure: success', or 'better' and 'margin' to one of these."
    diagnostics.info(402, root.key_position("reference"), sentence, remedy)


def _readable_rows(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """405: a row that follows from the subject's number."""
    for draw in spec.draws:
        if draw.order == "by_subject" and len(set(draw.rows)) > 1:
            place = root.find(("draw", draw.name)).key_position("order")
            sentence = (
                f"The row of '{draw.name}' follows from the subject's number: subject 0 always gets the first row."
            )
            diagnostics.info(
                405, place, sentence, "Write 'order: balanced', which permutes the rows by the run's seed."
            )


def _beyond_the_schedule(spec: Specification, root: Node, diagnostics: Diagnostics) -> None:
    """327: a comparison of `trial` or `session` with a number that the schedule never reaches."""
    most = {
        "trial": (max(block.trials for block in spec.schedule), "the longest session has {} trials"),
        "session": (max(block.sessions for block in spec.schedule), "no block has more than {} sessions in a row"),
    }
    remedies = {
        "trial": "'trial' counts within the session: compare 'session', or change the schedule.",
        "session": "'session' counts within one repetition of a block: compare 'block', or change the schedule.",
    }
    for tree, place in _conditions(spec, root):
        for node in ex.walk(tree):
            match node:
                case ex.Binary(sign, ex.BuiltIn("trial" | "session" as name), other) if sign in _COMPARED:
                    pass
                case ex.Binary(sign, other, ex.BuiltIn("trial" | "session" as name)) if sign in _COMPARED:
                    sign = _TURNED[sign]
                case _:
                    continue
            value = ex.constant(other)
            highest, why = most[name]
            if value is None or any(_COMPARED[sign](number, value) for number in range(1, highest + 1)):
                continue
            sentence = f"'{name} {sign} {value:g}' never holds: {why.format(highest)}."
            diagnostics.warning(327, place, sentence, remedies[name])


def _conditions(spec: Specification, root: Node) -> Iterator[tuple[ex.Expression | None, Position]]:
    """Yield the conditions of a protocol, and where each stands."""
    yield spec.success, root.find(["success"]).position
    yield spec.where, root.find(("estimand", "where")).position
    yield from ((entry.guard, entry.position) for entry in spec.entry)
    yield from ((entry.guard, entry.position) for entry in spec.finish)
    for rule in (*spec.watch, *(rule for state in spec.states.values() for rule in state.rules)):
        yield rule.guard, rule.position
