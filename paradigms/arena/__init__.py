"""The arena family: movement tables, the step kernel, controls, authors' tests, the
audit, and the Gymnasium classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cheesebench import interfaces
from cheesebench.paradigms.arena import audit, author_tests, controls
from cheesebench.paradigms.arena.compiled import CompiledArena


class ArenaParadigm(CompiledArena):
    """A compiled protocol of the arena family, with its controls, tests and audit."""

    def with_cues(self, how: interfaces.CueControl, seed: int) -> CompiledArena:
        if how == "cue-off":
            return CompiledArena(controls.without_cues(self.specification))
        if how == "cue-shuffled":
            return controls.CuesDrawnAnew(self.specification)
        return controls.LabelsSwapped(self.specification, seed)

    def yoked_environment(
        self,
        view: interfaces.View,
        seed: int,
        subject: int,
        trials: Sequence[Sequence[int]],
    ) -> interfaces.SubjectEnvironment:
        """Return a life yoked to the life in which ``subject`` took these actions (see
        ``controls.YokedSubject``).
        """
        return controls.YokedSubject(self.program, view, seed, subject, trials)

    def own_tests(self, view: interfaces.View) -> Sequence[interfaces.TestOutcome]:
        return author_tests.run_tests(self, view)

    def audit(
        self, views: Sequence[interfaces.View], settings: interfaces.AuditSettings
    ) -> Iterable[interfaces.AuditFinding]:
        return audit.audit(self, views, settings)
