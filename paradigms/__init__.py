"""What protocols compile into: the arena family (movement tables, step kernel, Gymnasium classes), and dialogues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cheesebench import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cheesebench.interfaces import AuditFinding, AuditSettings, CueControl, Life, Still, TestOutcome, View
    from cheesebench.paradigms.dialogue.life import GraphParadigm
    from cheesebench.protocol import DialogueSpecification, Specification


class ArenaParadigm:
    """A compiled protocol of the arena family."""

    def __init__(self, specification: Specification) -> None:
        from cheesebench.paradigms.program import Program

        self.specification = specification
        self.program = Program(specification)

    def life(self, view: View, seed: int, subject: int) -> Life:
        """Return the life of ``subject`` (from 0) under ``seed``."""
        from cheesebench.paradigms.life import ArenaLife

        return ArenaLife(self.program, view, seed, subject)

    def still(self, view: View, seed: int, subject: int, state: str | None = None) -> Still:
        """Return how the first trial of this life begins; or what ``state`` would show at that moment.

        Nothing happens for it: the subject stays where it is, whatever ``place`` would do on entry.
        """
        from cheesebench.interfaces import Still
        from cheesebench.paradigms.life import ArenaLife
        from cheesebench.paradigms.scenes import canvas_of

        life = ArenaLife(self.program, view, seed, subject)
        life.begin_trial()
        geometry, state = self.program.geometry, state or life.state
        canvas = canvas_of(geometry.arena)
        column, row = geometry.arena.cells[geometry.cell(life.pose)]
        return Still(
            state=state,
            scene=life.scene_of(state),
            column=column - canvas.left,
            row=row - canvas.top,
            heading=geometry.heading(life.pose),
            left=canvas.left,
            top=canvas.top,
        )

    def with_cues(self, how: CueControl, seed: int) -> ArenaParadigm:
        """Return the same paradigm with other cues; see ``controls``."""
        from cheesebench.paradigms import controls

        if how == "cue-off":
            return ArenaParadigm(controls.without_cues(self.specification))
        if how == "cue-shuffled":
            return controls.CuesDrawnAnew(self.specification)
        return controls.LabelsSwapped(self.specification, seed)

    def yoked_life(self, view: View, seed: int, subject: int, trials: Sequence[Sequence[int]]) -> Life:
        """Return the life yoked to the one that ``subject`` led with these actions; see ``controls.YokedLife``."""
        from cheesebench.paradigms.controls import YokedLife

        return YokedLife(self.program, view, seed, subject, trials)

    def own_tests(self, view: View) -> Sequence[TestOutcome]:
        """Play the protocol's ``tests:``; see ``author_tests.run_tests``."""
        from cheesebench.paradigms.author_tests import run_tests

        return run_tests(self, view)

    def audit(self, views: Sequence[View], settings: AuditSettings) -> Iterable[AuditFinding]:
        """Return what an audit finds: chance levels, blind policies, leaks and the rest; see ``audit``."""
        from cheesebench.paradigms.audit import audit

        return audit(self, views, settings)


class ArenaFamily:
    """Compiles protocols whose arena is a map or a generator."""

    name = "arena"

    def compile(self, specification: Specification) -> ArenaParadigm:
        """Return the compiled paradigm."""
        return ArenaParadigm(specification)


class DialogueFamily:
    """Compiles protocols whose arena is a graph that is told."""

    name = "dialogue"

    def compile(self, specification: DialogueSpecification) -> GraphParadigm:
        """Return the compiled paradigm."""
        from cheesebench.paradigms.dialogue.life import GraphParadigm

        return GraphParadigm(specification)


@hookimpl
def cheesebench_families() -> list[ArenaFamily | DialogueFamily]:
    """Return the families of this distribution."""
    return [ArenaFamily(), DialogueFamily()]


def __getattr__(name: str) -> Any:
    """Return the Gymnasium class of a shipped protocol: ``cheesebench.paradigms.MorrisWaterMaze``."""
    if name.startswith("_"):
        raise AttributeError(name)
    from cheesebench.paradigms.environment import class_named

    return class_named(name)
