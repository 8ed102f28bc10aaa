"""Memoryless subjects: they always answer the same picture with the same action.

They belong to the class *nothing* of ``automata``, without the aims that count steps.
An aim may still depend on more than the picture, such as how far a tour has come. So
each finalist leads a real life in which its first answer to a picture is its answer to
every equal picture.
"""

from __future__ import annotations

from collections import Counter

from cheesebench.interfaces import View
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena.audit import automata, beliefs, climbing, runs
from cheesebench.paradigms.arena.audit.adversary import Lived, lived_trial
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import Program

#: ``KEPT``: number of trials whose beginnings are stored. ``STEPS``: number of steps of
#: the search, at an effort of 1.
KEPT, STEPS = 200, 6_000_000
#: ``FINALISTS``: number of the best behaviours that lead real lives. ``TRIALS``: number
#: of judged trials that each of them gets.
FINALISTS, TRIALS = 6, 120
#: Offset of the seeds of the lives that select a subject, so that these lives differ
#: from the lives that are measured.
APART = 77_000_000


class ReflexiveLife(ArenaSubject):
    """A life in which the first action at an observation is repeated whenever the same
    observation occurs, also in later lives with the same ``answers``.
    """

    def __init__(
        self,
        program: Program,
        view: View,
        seed: int,
        subject: int,
        answers: dict[str, int],
    ) -> None:
        super().__init__(program, view, seed, subject)
        self._answers = answers
        self._seen = ""

    def begin_trial(self) -> str | None:
        observation = super().begin_trial()
        self._seen = observation or ""
        return observation

    def step(self, action: int) -> tuple[str, float, int]:
        if not self.waiting:
            action = self._answers.setdefault(self._seen, action)
        self._seen, reward, status = super().step(action)
        return self._seen, reward, status


class Reflexes:
    """The best memoryless subject that is found for a lesion. The lives used to select
    it are not used to measure it.
    """

    def __init__(
        self, paradigm: ArenaParadigm, lesion: Lesion, effort: float, seed: int
    ) -> None:
        self._paradigm = paradigm
        self._view = paradigm.lesioned(beliefs.Everything(str(lesion)), lesion)
        self._world = automata.Experience(
            paradigm, seed + APART, KEPT, lesion, counts=False
        )
        memory = automata.Memory("nothing")
        search = climbing.Search(self._world, memory, seed, STEPS * effort)
        _, best = search.find()
        others = self._world.best(FINALISTS - 1)
        finalists = [best, *(climbing.without_memory(row) for row in others)]
        self._automaton, self._answers = best, dict[str, int]()
        self._automaton = max(finalists, key=self._reached)
        self._answers = {}

    def _reached(self, automaton: automata.Automaton) -> float:
        """Return a finalist's share of successes in the judged trials of real lives."""
        self._automaton, self._answers = automaton, {}
        passed, judged = 0, 0
        for seed, subject, _ in runs.lives_for(
            self._paradigm.specification, TRIALS, APART, judged=True
        ):
            trials = [one for one in self.live(seed, subject) if one.judged]
            passed += sum(one.success for one in trials)
            judged += len(trials)
        return passed / max(1, judged)

    def live(self, seed: int, subject: int) -> list[Lived]:
        """Lead a real life, until the end of the last judged block."""
        life = ReflexiveLife(
            self._paradigm.program, self._view, seed, subject, self._answers
        )
        trials: list[Lived] = []
        for _ in self._world.lived(self._automaton, life, Counter()):
            trials.append(lived_trial(life, len(trials), self._paradigm.specification))
        return trials
