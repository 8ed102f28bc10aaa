"""The compiled arena, which the controls, a protocol's tests and the audit use."""

from __future__ import annotations

from cheesebench.family import Words
from cheesebench.interfaces import (
    RUNNING,
    STAY,
    Ground,
    Paradigm,
    Still,
    SubjectEnvironment,
    View,
)
from cheesebench.lesions import Lesion, lesioned_view
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program
from cheesebench.paradigms.arena.scenes import canvas_of, hidden_by
from cheesebench.protocol import Specification


class CompiledArena(Paradigm):
    """A compiled protocol of the arena family, with its environments and pictures."""

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self.program = Program(specification)

    def environment(self, view: View, seed: int, subject: int) -> SubjectEnvironment:
        return ArenaSubject(self.program, view, seed, subject)

    def still(
        self,
        view: View,
        seed: int,
        subject: int,
        state: str | None = None,
        trial: int = 1,
    ) -> Still:
        """Return the picture at the beginning of a trial of this life, or the picture
        that ``state`` would show at that moment.

        The subject waits through earlier trials. Effects of entering ``state``, such as
        ``place``, are not applied.
        """
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
        gallery = self.program.gallery(Words())
        arena, turning = gallery.geometry.arena, self.program.turning
        return Ground(
            gallery.scene(arena.doors, self.program.shown_at_rest, ()),
            gallery.canvas.left,
            gallery.canvas.top,
            {
                name: frozenset(arena.cells[one] for one in cells)
                for name, cells in arena.zones.items()
            },
            None if turning is None else turning.centre,
        )

    def lesioned(self, view: View, lesion: Lesion) -> View:
        return lesioned_view(view, lesion, hidden_by(lesion, self.specification))
