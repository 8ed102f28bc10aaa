"""What a protocol says about itself, checked: estimand, references, leak checks and its own tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cheesebench.interfaces import ACTION_LETTERS, ACTIONS
from cheesebench.protocol import documents as doc
from cheesebench.protocol.declare import counters
from cheesebench.protocol.expressions import TRUTH, Binary, Classes, Expression
from cheesebench.protocol.lookup import Lookup


class EvidenceBuilder(Lookup):
    """Reads what does not change a life."""

    def primary_reference(self) -> int | None:
        """Return the index of the reference that the verdict is about: the first on ``success``."""
        return next((n for n, r in enumerate(self.document.reference) if r.measure == "success"), None)

    def where(self) -> Expression | None:
        """Return the condition under which a trial is compared: that of the primary reference and the estimand's."""
        conditions = [tree for tree in (self._where_of_reference(), self._where_of_estimand()) if tree is not None]
        return Binary("and", *conditions) if len(conditions) == 2 else next(iter(conditions), None)

    def _where_of_estimand(self) -> Expression | None:
        estimand = self.document.estimand
        written = None if isinstance(estimand, str) else estimand.where
        return self.expression(written, ("estimand", "where"), TRUTH)

    def _where_of_reference(self) -> Expression | None:
        primary = self.primary_reference()
        condition = None
        for number, reference in enumerate(self.document.reference):
            tree = self.expression(reference.where, ("reference", number, "where"), TRUTH)
            if number == primary:
                condition = tree
        return condition

    def measure(self, written: object, path: Sequence[str | int]) -> Expression | None:
        """Resolve a measure: an expression, or a guarded list of names."""
        if not isinstance(written, list):
            return self.expression(written, path)
        cases = [
            (self.expression(case.if_, (*path, number, "if"), TRUTH), case.is_) for number, case in enumerate(written)
        ]
        for number, case in enumerate(written[:-1]):
            if case.if_ is None:
                position = self.root.find((*path, number + 1)).position
                sentence = f"No trial gets here: '{case.is_}' before it has no condition."
                self.diagnostics.error(221, position, sentence, "Give it an 'if', or put it last.")
                break
        return Classes(tuple(cases))

    def check(self) -> None:
        """Check what no other part reads: estimand, reference, checks, tests."""
        document = self.document
        blocks = document.estimand.block if isinstance(document.estimand, doc.Estimand) else None
        for number, block in enumerate(blocks or ()):
            if block not in self.names.blocks:
                self.unknown("block", block, self.names.blocks, ("estimand", "block", number))
        if "success" in document.measures:
            position = self.root.find(["measures"]).key_position("success")
            self.diagnostics.error(202, position, "'success' is no name for a measure.", "Use the key 'success'.")
        if document.success is None and self.primary_reference() is not None:
            position = self.root.find(("reference", self.primary_reference() or 0)).position
            self.diagnostics.error(
                220, position, "The reference is about 'success', but there is none.", "Add 'success: ...'."
            )
        for number, reference in enumerate(document.reference):
            path = ("reference", number)
            known = ["success", *document.measures, *counters(document)]
            if reference.measure not in known:
                self.unknown("measure", reference.measure, known, (*path, "measure"))
            rates = (
                [reference.value, *reference.curve, *(reference.interval or ())]
                if reference.measure == "success"
                else []
            )
            if outside := [rate for rate in rates if not 0 <= rate <= 1]:
                sentence = f"A pass rate lies between 0 and 1, and {outside[0]:g} does not."
                self.diagnostics.error(217, self.root.find(path).position, sentence, "Write 0.8 for 80 %.")
            if reference.interval and reference.interval[0] > reference.interval[1]:
                self.diagnostics.error(
                    217, self.root.find(path).position, "The interval runs backwards.", "Write [low, high]."
                )
        for number, name in enumerate(document.split):
            self.names.used.add(name)
            if name not in (known := [*self.names.variables, *document.measures]):
                self.unknown("variable or measure", name, known, ("split", number))
        for number, check in enumerate(document.checks):
            if check.at not in self.names.states:
                self.unknown("state", check.at, self.names.states, ("checks", number, "at"))
            if check.hidden not in self.names.variables:
                self.unknown("variable", check.hidden, self.names.variables, ("checks", number, "hidden"))
        for number, test in enumerate(document.tests):
            self._check_test(test, ("tests", number))

    def _check_test(self, test: doc.Test, path: Sequence[str | int]) -> None:
        for number, name in enumerate(test.visit or ()):
            if name not in self.names.places and name not in self.names.variables:
                self.unknown("zone", name, [*self.names.places, *self.names.variables], (*path, "visit", number))
        if test.expect.outcome is not None and test.expect.outcome not in self.names.outcomes:
            self.unknown("outcome", test.expect.outcome, self.names.outcomes, (*path, "expect", "outcome"))
        groups: tuple[tuple[str, Mapping[str, object], Iterable[str]], ...] = (
            ("counter", test.expect.counters, counters(self.document)),
            ("measure", test.expect.measures, self.document.measures),
            ("variable", test.expect.variables, self.names.variables),
        )
        for what, expected, known in groups:
            for name in expected:
                if name not in known:
                    self.unknown(what, name, known, (*path, "expect", f"{what}s", name))
        if isinstance(test.actions, list):
            letters = {*ACTIONS, *ACTION_LETTERS}
            for number, action in enumerate(test.actions):
                if action not in letters:
                    self.unknown("action", action, sorted(letters), (*path, "actions", number))
        elif test.actions is not None and (odd := set(test.actions) - set(ACTION_LETTERS + " ")):
            self.unknown("action", sorted(odd)[0], ACTION_LETTERS, (*path, "actions"))
