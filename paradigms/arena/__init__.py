"""The arena family: maps and generators, movement tables, the step kernel, and the
Gymnasium classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cheesebench.interfaces import Paradigm

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cheesebench.interfaces import (
        AuditFinding,
        AuditSettings,
        CueControl,
        Ground,
        Still,
        SubjectEnvironment,
        TestOutcome,
        View,
    )
    from cheesebench.lesions import Lesion
    from cheesebench.protocol import Specification


class ArenaParadigm(Paradigm):
    """A compiled protocol of the arena family."""

    def __init__(self, specification: Specification) -> None:
        from cheesebench.paradigms.arena.program import Program

        self.specification = specification
        self.program = Program(specification)

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        from cheesebench.paradigms.arena.life import ArenaSubject

        return ArenaSubject(self.program, view, seed, subject)

    def still(
        self,
        view: View,
        seed: int,
        subject: int,
        state: str | None = None,
        trial: int = 1,
    ) -> Still:
        """Return how a trial of this life begins, or what ``state`` would show then.

        Earlier trials are waited out. ``place`` of ``state`` has no effect: the subject
        stays where it is.
        """
        from cheesebench.interfaces import RUNNING, STAY, Still
        from cheesebench.paradigms.arena.life import ArenaSubject
        from cheesebench.paradigms.arena.scenes import canvas_of

        life = ArenaSubject(self.program, view, seed, subject)
        for _ in range(trial - 1):
            life.begin_next_trial()
            while life.step(STAY)[2] == RUNNING:
                pass
        life.begin_next_trial()
        geometry, state = self.program.geometry, state or life.state
        canvas = canvas_of(geometry.arena)
        column, row, heading = life.standing
        return Still(
            state=state,
            scene=life.scene_of(state),
            column=column,
            row=row,
            heading=heading,
            left=canvas.left,
            top=canvas.top,
        )

    def ground(self) -> Ground:
        from cheesebench.family import Words
        from cheesebench.interfaces import Ground

        gallery = self.program.gallery(Words())
        return Ground(
            gallery.scene(gallery.geometry.arena.doors, (), ()),
            gallery.canvas.left,
            gallery.canvas.top,
        )

    def with_cues(self, how: CueControl, seed: int) -> ArenaParadigm:
        from cheesebench.paradigms.arena import controls

        if how == "cue-off":
            return ArenaParadigm(controls.without_cues(self.specification))
        if how == "cue-shuffled":
            return controls.CuesDrawnAnew(self.specification)
        return controls.LabelsSwapped(self.specification, seed)

    def lesioned(self, view: View, lesion: Lesion) -> View:
        from cheesebench.lesions import lesioned_view
        from cheesebench.paradigms.arena.scenes import hidden_by

        return lesioned_view(view, lesion, hidden_by(lesion, self.specification))

    def yoked_environment(
        self, view: View, seed: int, subject: int, trials: Sequence[Sequence[int]]
    ) -> SubjectEnvironment:
        """Return a life yoked to the one in which ``subject`` took these actions; see
        ``controls.YokedSubject``.
        """
        from cheesebench.paradigms.arena.controls import YokedSubject

        return YokedSubject(self.program, view, seed, subject, trials)

    def own_tests(self, view: View) -> Sequence[TestOutcome]:
        from cheesebench.paradigms.arena.author_tests import run_tests

        return run_tests(self, view)

    def audit(
        self, views: Sequence[View], settings: AuditSettings
    ) -> Iterable[AuditFinding]:
        from cheesebench.paradigms.arena.audit import audit

        return audit(self, views, settings)
