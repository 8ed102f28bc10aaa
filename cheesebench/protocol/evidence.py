"""Checks of a protocol's claims: estimand, references, construct, leak checks and tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cheesebench.errors import OptionError
from cheesebench.interfaces import ACTION_LETTERS, ACTIONS
from cheesebench.lesions import INTACT, LANDMARKS, TEXT, TRIAL, Lesion
from cheesebench.protocol import documents as doc
from cheesebench.protocol.declare import counters
from cheesebench.protocol.expressions import Binary, Classes, Expression
from cheesebench.protocol.features import BUILT_INS, TRUTH
from cheesebench.protocol.lookup import Lookup
from cheesebench.protocol.references import judged_reference
from cheesebench.protocol.specification import ConstructSpec


class EvidenceBuilder(Lookup):
    """Reads what does not change a life."""

    def primary_reference(self) -> int | None:
        """Return the index of the reference that the verdict uses."""
        return judged_reference(self.document.reference)

    def where(self) -> Expression | None:
        """Return the condition for a trial to be compared: that of the primary reference and of the estimand."""
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
        if isinstance(written, doc.MeasureBy):
            self._check_conditions(written, path)
            return self.measure(written.value, (*path, "value"))
        if not isinstance(written, list):
            return self.expression(written, path)
        cases = [
            (self.expression(case.if_, (*path, number, "if"), TRUTH), case.is_) for number, case in enumerate(written)
        ]
        for number, case in enumerate(written[:-1]):
            if case.if_ is None:
                position = self.root.find((*path, number + 1)).position
                sentence = f"No trial gets here: '{case.is_}' above it has no condition."
                self.diagnostics.error(221, position, sentence, "Give it an 'if', or put it last.")
                break
        return Classes(tuple(cases))

    def _check_conditions(self, written: doc.MeasureBy, path: Sequence[str | int]) -> None:
        """Report conditions that there are not, and a measure that would be its own."""
        for number, name in enumerate(written.by):
            self.names.used.add(name)
            here = (*path, "by", number)
            if name == path[-1]:
                position = self.root.find(here).position
                self.diagnostics.error(228, position, f"'{name}' is not its own condition.", "Name another variable.")
            elif name not in (known := [*self.names.variables, *self.document.measures]):
                if name in BUILT_INS:
                    sentence = f"'{name}' is no variable or measure."
                    remedy = f"Add a measure, 'in_{name}: {name}', and name that."
                    self.diagnostics.error(201, self.root.find(here).position, sentence, remedy)
                    continue
                self.unknown("variable or measure", name, [one for one in known if one != path[-1]], here)
            elif name in written.by[:number]:
                position = self.root.find(here).position
                self.diagnostics.error(228, position, f"'{name}' appears twice in 'by'.", "Keep one.")

    def construct(self) -> ConstructSpec | None:
        """Resolve the construct; every lesion in it is checked."""
        construct = self.document.construct_
        if construct is None:
            return None
        if self.document.success is None:
            position = self.root.key_position("construct")
            sentence = "A lesion abolishes success, but the protocol has none."
            self.diagnostics.error(220, position, sentence, "Add 'success: ...'.")
        known: set[Lesion] = set()
        abolished, spared = [], []
        for number, entry in enumerate(construct.abolished_by):
            path = ("construct", "abolished_by", number, "lesion")
            if (lesion := self._lesion(entry.lesion, path, known)) is not None:
                abolished.append((lesion, entry.at_most))
        for number, written in enumerate(construct.spared_by):
            if (lesion := self._lesion(written, ("construct", "spared_by", number), known)) is not None:
                spared.append(lesion)
        return ConstructSpec(construct.name, tuple(abolished), tuple(spared))

    def _lesion(self, written: str | doc.LesionKeys, path: Sequence[str | int], known: set[Lesion]) -> Lesion | None:
        """Resolve one lesion; ``known`` holds those before it. None when there is no such lesion."""
        position = self.root.find(path).position
        if isinstance(written, str):
            try:
                lesion = Lesion.parse(written)
            except OptionError as error:
                sentence, _, remedy = str(error).partition(". ")
                self.diagnostics.error(222, position, f"{sentence}.", remedy)
                return None
        else:
            lesion = Lesion(amnesia=frozenset(written.amnesia), hide=frozenset(written.hide))
        if lesion == INTACT:
            self.diagnostics.error(222, position, "An intact subject has no lesion.", "Name a lesion, such as blind.")
        for name in sorted(lesion.forgets_at):
            if name not in self.names.states:
                self.unknown("state", name, [TRIAL, *self.names.states], path)
        for name in sorted(lesion.hide):
            self._check_hidden(name, path)
        if lesion in known:
            sentence = f"'{lesion}' appears twice."
            self.diagnostics.error(
                223, position, sentence, "A lesion either abolishes the construct or spares it: keep one."
            )
        known.add(lesion)
        return lesion

    def _check_hidden(self, name: str, path: Sequence[str | int]) -> None:
        kind, colon, rest = name.partition(":")
        position = self.root.find(path).position
        if kind == "text" and colon:
            if rest not in self.names.states:
                self.unknown("state", rest, self.names.states, path)
        elif kind == "glyph" and colon:
            if len(rest) != 1:
                self.diagnostics.error(222, position, f"'{rest}' is not a glyph.", "A glyph is one character: glyph:o.")
        elif name == LANDMARKS:
            if not self.names.arena.landmarks:
                self.diagnostics.error(222, position, "There are no landmarks to hide.", "Add 'arena: landmarks'.")
        elif name != TEXT and name not in self.names.places and self.names.arena.landmark(name) is None:
            if name in self.names.variables:
                sentence = f"'{name}' is a variable, and only what is drawn can be hidden."
                remedy = "Hide how it is shown, such as 'glyph:*', or 'text'."
                self.diagnostics.error(222, position, sentence, remedy)
                return
            landmarks = [mark.name for mark in self.names.arena.landmarks]
            self.unknown("zone", name, [LANDMARKS, TEXT, *landmarks, *self.names.places], path)

    def check(self) -> None:
        """Check what no other part reads: estimand, reference, checks, tests."""
        document = self.document
        blocks = document.estimand.block if isinstance(document.estimand, doc.Estimand) else None
        for number, block in enumerate(blocks or ()):
            if block not in self.names.blocks:
                self.unknown("block", block, self.names.blocks, ("estimand", "block", number))
        if "success" in document.measures:
            position = self.root.find(["measures"]).key_position("success")
            self.diagnostics.error(202, position, "A measure cannot be called 'success'.", "Use the key 'success'.")
        rated = next((n for n, one in enumerate(document.reference) if one.measure == "success"), None)
        if document.success is None and rated is not None:
            position = self.root.find(("reference", rated)).position
            self.diagnostics.error(
                220, position, "The reference is on 'success', but the protocol has none.", "Add 'success: ...'."
            )
        for number, reference in enumerate(document.reference):
            path = ("reference", number)
            known = ["success", *document.measures, *counters(document)]
            if reference.measure not in known:
                self.unknown("measure", reference.measure, known, (*path, "measure"))
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
