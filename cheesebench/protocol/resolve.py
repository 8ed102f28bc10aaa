"""Resolves a typed document into a specification: names are looked up and expressions typed; errors are reported."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.interfaces import HEADINGS
from cheesebench.protocol import documents as doc
from cheesebench.protocol import specification as spec
from cheesebench.protocol.arena import build_arena
from cheesebench.protocol.arena_documents import Model
from cheesebench.protocol.declare import counters, declare_names, outcomes, runtime_value
from cheesebench.protocol.diagnostics import Diagnostics, listed
from cheesebench.protocol.draws import DrawBuilder
from cheesebench.protocol.evidence import EvidenceBuilder
from cheesebench.protocol.expressions import Expression, Recent, walk
from cheesebench.protocol.features import NUMBER, TRUTH
from cheesebench.protocol.lookup import Lookup
from cheesebench.protocol.names import Names
from cheesebench.protocol.references import resolve_references
from cheesebench.protocol.resolve_trial import TrialBuilder
from cheesebench.protocol.schedule_documents import Until
from cheesebench.protocol.source import Node
from cheesebench.protocol.structure import without_nulls
from cheesebench.protocol.values import DEFAULT_EDITION, VERSION, Scalar

#: Trials of a life, which is planned as a whole.
MAX_TRIALS = 100_000
#: Keys that describe a protocol without changing a life or a verdict; the hash leaves them out.
DESCRIPTIVE = ("title", "cite", "fidelity", "notes", "tests", "checks", "chance", "split", "construct")


def resolve(
    document: doc.ProtocolDocument, root: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
) -> tuple[spec.Specification, Names] | None:
    """Resolve a document; None if there are errors (all reported)."""
    arena = build_arena(document.arena, root.find(["arena"]), diagnostics)
    if arena is None:
        return None
    names = declare_names(document, root, arena, diagnostics)
    builder = _Builder(document, root, names, diagnostics)
    trial = TrialBuilder(document, root, names, diagnostics)
    evidence = EvidenceBuilder(document, root, names, diagnostics)
    plain = without_nulls(root.plain())
    specification = spec.Specification(
        paradigm=document.paradigm,
        edition=document.edition,
        family="arena",
        path=str(path),
        text=canonical(plain),
        sha256=protocol_hash(plain),
        ancestors=tuple(ancestors),
        document=document,
        arena=arena,
        variables=builder.variables(),
        draws=DrawBuilder(document, root, names, diagnostics).draws(),
        columns={name: kind for name, kind in names.variables.items() if name not in document.vars},
        counters=tuple(counters(document)),
        start=builder.start(),
        limit=trial.limit(),
        entry=trial.entry(),
        states=trial.states(),
        each=trial.effects(document.trial.each, ("trial", "each")),
        watch=trial.rules(document.trial.watch, ("trial", "watch"), watch=True),
        finish=trial.finish(),
        schedule=builder.schedule(),
        success=builder.success(),
        where=evidence.where(),
        measures={
            name: tree
            for name, text in document.measures.items()
            if (tree := evidence.measure(text, ("measures", name))) is not None
        },
        outcomes=tuple(outcomes(document)),
        construct=evidence.construct(),
        rotate=builder.rotate(),
        test_positions=tuple(root.find(("tests", number)).position for number in range(len(document.tests))),
    )
    evidence.check()
    specification = dataclasses.replace(specification, references=resolve_references(specification, root, diagnostics))
    return None if diagnostics.errors else (specification, names)


def identity(family: str, document: Model, root: Node, path: Path, ancestors: Sequence[str]) -> dict[str, Any]:
    """Return the fields of ``BaseSpecification`` for a document with ``paradigm`` and ``edition``, read from ``root``.

    The digest covers everything in the file except descriptions (DESCRIPTIVE). A family that shows subjects further
    texts of its own must add them to the digest.
    """
    plain = without_nulls(root.plain())
    return {
        "paradigm": plain["paradigm"],
        "edition": plain.get("edition", DEFAULT_EDITION),
        "family": family,
        "path": str(path),
        "text": canonical(plain),
        "sha256": protocol_hash(plain),
        "ancestors": tuple(ancestors),
        "document": document,
    }


def canonical(plain: Mapping[str, Any]) -> str:
    """Return plain data as canonical JSON."""
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def protocol_hash(plain: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a resolved protocol (without descriptions) and the language version."""
    relevant = {key: value for key, value in plain.items() if key not in DESCRIPTIVE}
    measures = relevant.get("measures")
    if isinstance(measures, dict):  # by what a measure is shown changes nothing that is measured
        plainly = {
            name: one["value"] if isinstance(one, dict) and "value" in one else one for name, one in measures.items()
        }
        relevant["measures"] = plainly
    return hashlib.sha256(f"{VERSION}\n{canonical(relevant)}".encode()).hexdigest()


class _Builder(Lookup):
    """Builds what surrounds the trial: variables, draws, start and schedule."""

    def variables(self) -> dict[str, spec.VariableSpec]:
        variables = {}
        for name, variable in self.document.vars.items():
            initial: spec.RuntimeValue
            if isinstance(variable.init, list):
                initial = frozenset(v for v in map(runtime_value, variable.init) if v is not None)
            else:
                initial = runtime_value(variable.init)
            kind = self.names.variables.get(name, NUMBER)
            variables[name] = spec.VariableSpec(name, kind, initial, variable.per)
        return variables

    def success(self) -> Expression | None:
        """Return the condition of success; it cannot count earlier successes, of which it is one."""
        tree = self.expression(self.document.success, ("success",), TRUTH)
        if any(isinstance(node, Recent) and node.outcome is None for node in walk(tree)):
            position = self.root.find(["success"]).position
            self.diagnostics.error(134, position, "'success' counts itself.", "Count outcomes: recent(correct, 10).")
        return tree

    def rotate(self) -> str | None:
        """Return the column by which the picture is turned; it must hold quarter turns, and the picture be square."""
        name, path = self.document.arena.rotate, ("arena", "rotate")
        if name is None:
            return None
        drawn = [column for draw in self.document.draw.values() for column in draw.of]
        if name not in drawn:
            self.unknown("column of a draw", name, drawn, path)
            return None
        self.names.used.add(name)
        position = self.root.find(path).position
        if odd := [value for value in self.values(name) if value not in (0, 90, 180, 270)]:
            sentence = f"'{name}' can be {listed(map(str, odd))}, which is not a rotation."
            self.diagnostics.error(148, position, sentence, "Use 0, 90, 180 and 270 degrees only.")
        _, _, width, height = self.names.arena.extent
        if width != height:
            sentence = f"Only a square picture can be rotated; this one (landmarks included) is {width} by {height}."
            self.diagnostics.error(148, position, sentence, "Add rows or columns of blanks.")
        return name

    def start(self) -> spec.StartSpec:
        start = self.document.start
        at = self.place(start.at, ("start", "at"), solid=False, placing=True)
        is_variable = start.face not in (*HEADINGS, "random")
        position = self.root.find(("start", "face")).position
        if is_variable and start.face not in self.names.variables:
            known = [*HEADINGS, "random", *self.names.variables]
            self.unknown("heading", start.face, known, ("start", "face"))
        elif is_variable:
            self.names.used.add(start.face)
            known = [*(HEADINGS if self.document.arena.headings == 8 else HEADINGS[::2]), "random"]
            if self.names.variables[start.face].kind != "name":
                self.diagnostics.error(
                    207, position, f"The variable '{start.face}' does not hold a heading.", "Hold N, E, ..."
                )
            for value in self.values(start.face) if self.names.variables[start.face].kind == "name" else ():
                if value not in known:
                    sentence = f"'{start.face}' can hold '{value}', which is not a heading here."
                    self.diagnostics.error(207, position, sentence, f"Use {' '.join(known)}.")
        elif self.document.arena.headings == 4 and start.face in HEADINGS[1::2]:
            self.diagnostics.error(
                207, position, f"With four headings, {start.face} is not a heading.", "Use N, E, S or W."
            )
        return spec.StartSpec(at, start.face, is_variable, start.carry)

    def schedule(self) -> tuple[spec.BlockSpec, ...]:
        blocks, planned = [], 0
        for name, block in self.document.schedule.items():
            values: list[tuple[str, spec.RuntimeValue]] = []
            for variable, value in block.set.items():
                path = ("schedule", name, "set")
                if variable not in self.document.vars:
                    position = self.root.find(path).key_position(variable)
                    self.undeclared(variable, value, position)
                    continue
                values.append((variable, self._constant(variable, value, (*path, variable))))
            repeat, each = block.repeat, block.sessions * block.trials
            alone = each if repeat.trials is None else min(each, repeat.trials)
            until = self._until(block.until, ("schedule", name, "until"))
            if until is not None and until.count > alone:
                position = self.root.find(("schedule", name, "until")).position
                sentence = f"it needs {until.count} trials, and each repetition of the block has {alone}."
                self.diagnostics.warning(
                    315, position, f"'until' is never reached: {sentence}", "Add trials, or lower 'count'."
                )
            ends = self._until(repeat.until, ("schedule", name, "repeat", "until"))
            if ends is not None and ends.count >= repeat.at_most:
                position = self.root.find(("schedule", name, "repeat", "until")).position
                sentence = f"it needs {ends.count} repetitions, and there are at most {repeat.at_most}."
                self.diagnostics.warning(
                    315, position, f"'until' ends nothing early: {sentence}", "Raise 'at_most', or lower 'count'."
                )
            if repeat.trials is not None and repeat.trials >= each * repeat.at_most:
                position = self.root.find(("schedule", name, "repeat")).key_position("trials")
                sentence = f"'trials' limits nothing: all repetitions together have {each * repeat.at_most}."
                self.diagnostics.warning(315, position, sentence, "Lower it, or raise 'at_most'.")
            made = spec.BlockSpec(
                name, block.sessions, block.trials, repeat.at_most, tuple(values), until, repeat.trials, ends
            )
            planned += made.planned
            if planned > MAX_TRIALS:
                position = self.root.find(("schedule", name)).position
                sentence = f"The schedule has {planned} trials up to here; a subject can have at most {MAX_TRIALS}."
                self.diagnostics.error(224, position, sentence, "Use fewer sessions, trials or repetitions.")
                planned = 0
            blocks.append(made)
        return tuple(blocks)

    def _until(self, until: Until | None, path: Sequence[str | int]) -> spec.UntilSpec | None:
        """Resolve a criterion; report outcomes that there are not, and more than can be."""
        if until is None:
            return None
        condition = self.expression(until.if_, (*path, "if"), TRUTH)
        for outcome in until.outcome:
            if outcome not in self.names.outcomes:
                self.unknown("outcome", outcome, self.names.outcomes, (*path, "outcome"))
        if until.count > until.window:
            sentence = f"{until.count} of the last {until.of} outcomes is impossible."
            self.diagnostics.error(216, self.root.find(path).position, sentence, "Let 'count' be at most 'of'.")
        met = frozenset([spec.MET] if until.if_ is not None else until.outcome)
        return spec.UntilSpec(met, until.count, until.window, condition)

    def _constant(self, variable: str, value: Scalar | list[Scalar], path: Sequence[str | int]) -> spec.RuntimeValue:
        kind = self.names.variables.get(variable, NUMBER)
        runtime: spec.RuntimeValue
        if isinstance(value, list):
            runtime = frozenset(v for v in map(runtime_value, value) if v is not None)
        else:
            runtime = runtime_value(value)
        held = "set" if isinstance(value, list) else "name" if isinstance(runtime, str | None) else "number"
        names_places_only = kind.domains == {"place"}
        for name in value if isinstance(value, list) else [value]:
            if names_places_only and isinstance(name, str) and name not in (*self.names.places, "none"):
                self.unknown("zone", name, self.names.places, path)
        if held != kind.kind and not (runtime is None and kind.kind == "name"):
            position = self.root.find(path).position
            self.diagnostics.error(
                133, position, f"'{variable}' is a {kind.kind}, but this is a {held}.", "Keep its kind."
            )
        return runtime
