"""People as subjects: each runs the same trials as any other agent, one key after another, into the same run log."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cheesebench.chat import Picture
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.looks import is_finished
from cheesebench.experiment.records import CellPlan
from cheesebench.experiment.replay import films
from cheesebench.experiment.subjects import letter_of, trial_record
from cheesebench.interfaces import (
    ACTION_OF_LETTER,
    ACTIONS,
    RUNNING,
    STAY,
    WAITED_LETTER,
    Paradigm,
    SubjectEnvironment,
    View,
)
from cheesebench.server.seats import Keys, Seats
from cheesebench.statistics.course import CellCourse

#: Participants that are kept in memory; others are replayed from what was recorded when they come back.
KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One cell of the run, ready to be run."""

    plan: CellPlan
    paradigm: Paradigm
    view: View


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a person is shown: the observation after a step (or at the beginning of a trial), and the reward.

    ``action`` is the name of the step's action, ``""`` at the beginning of a trial, and ``waited`` for ``times`` steps
    that went by whatever the person did.
    """

    action: str
    observation: str
    reward: float = 0.0
    times: int = 1
    ended: bool = False


@dataclass(slots=True)
class _Trial:
    """The trial that a person is in."""

    environment: SubjectEnvironment
    number: int
    shown: Shown
    letters: str = ""
    reward: float = 0.0


class Participant:
    """One person: the task and the trial that they are in. Every step is on the disk before anybody sees it."""

    _trial: _Trial | None

    def __init__(self, log: RunLog, seats: Seats, tasks: Sequence[Task], seed: int, subject: int) -> None:
        self._log, self._seats, self._tasks = log, seats, tasks
        self._seed, self.subject = seed, subject
        self.task = -1
        self._next_task()
        kept = seats.keys(subject)
        trial = self._trial
        if trial is not None and kept is not None and kept[:2] == (self.task, trial.number):
            while len(trial.letters) < len(kept.letters):  # frozen steps go by themselves, again
                self._step(kept.letters[len(trial.letters)])

    @property
    def over(self) -> bool:
        """Whether the participant has completed all tasks."""
        return self._trial is None

    @property
    def at(self) -> str:
        """Where the person is: task, trial and step. It is never the same twice."""
        trial = self._trial
        return "end" if trial is None else f"{self.task}.{trial.number}.{len(trial.letters)}"

    @property
    def shown(self) -> Shown | None:
        """What was shown last; None at the end."""
        return None if self._trial is None else self._trial.shown

    def act(self, action: int) -> list[Shown]:
        """Execute an action (0-3), and what goes by after it; return all that the person is shown of it, in order."""
        if self._trial is None:
            return []
        seen = self._step(letter_of("a person", action))
        if self._trial is not None:
            self._seats.write(self.subject, Keys(self.task, self._trial.number, self._trial.letters))
        return seen

    def _step(self, letter: str) -> list[Shown]:
        """Execute one recorded step, and all frozen ones after it; a trial that ends is recorded, the next begins."""
        trial = self._trial
        assert trial is not None
        observation, reward, status = trial.environment.step(ACTION_OF_LETTER[letter])
        trial.letters += letter
        trial.reward += reward
        action = "waited" if letter == WAITED_LETTER else ACTIONS[ACTION_OF_LETTER[letter]]
        trial.shown = Shown(action=action, observation=observation, reward=reward, ended=status != RUNNING)
        seen = [trial.shown]
        if status != RUNNING:
            self._record(trial)
            return seen + self._begin(trial.environment, trial.number + 1)
        return seen + self._wait(trial)

    def _wait(self, trial: _Trial) -> list[Shown]:
        """Let frozen steps go by: nobody is asked about them."""
        seen: list[Shown] = []
        while trial.environment.waiting:
            observation, reward, status = trial.environment.step(STAY)
            trial.letters += WAITED_LETTER
            trial.reward += reward
            now = Shown(action="waited", observation=observation, reward=reward, ended=status != RUNNING)
            if seen and replace(seen[-1], times=1) == now:
                seen[-1] = replace(now, times=seen[-1].times + 1)
            else:
                seen.append(now)
            trial.shown = seen[-1]
            if status != RUNNING:
                self._record(trial)
                return seen + self._begin(trial.environment, trial.number + 1)
        return seen

    def _record(self, trial: _Trial) -> None:
        result = trial.environment.result()
        record = trial_record(
            self._tasks[self.task].plan,
            self.subject,
            trial.number,
            result,
            reward=trial.reward,
            steps=len(trial.letters),
            actions=trial.letters,
        )
        self._log.write_trial(record, result.events)

    def _begin(self, environment: SubjectEnvironment, number: int) -> list[Shown]:
        """Begin a trial; where there is none left, the task is complete, and the next one begins."""
        plan = self._tasks[self.task].plan
        observation = environment.begin_trial() if number < plan.trials else None
        if observation is None:
            self._log.write_life(plan, self.subject, number)
            if is_finished(self._log, plan, CellCourse):
                self._log.note("finished", f"{len(self._log.completed_subjects(plan))} people", plan)
            return self._next_task()
        self._trial = _Trial(environment, number, Shown(action="", observation=observation))
        return [self._trial.shown, *self._wait(self._trial)]

    def _next_task(self) -> list[Shown]:
        """Go on with the first task that is not complete, as far as its trials are recorded."""
        self._trial = None
        for number in range(self.task + 1, len(self._tasks)):
            task = self._tasks[number]
            if self.subject >= task.plan.subjects or self.subject in self._log.completed_subjects(task.plan):
                continue
            self.task = number
            environment = task.paradigm.environment(task.view, self._seed, self.subject)
            recorded = [record for record in self._log.trials(task.plan, self.subject) if not record.missing]
            for _ in films(environment, recorded):
                pass  # each comes out as recorded, or a RunLogError says which does not
            return self._begin(environment, len(recorded))
        return []


class Participants:
    """All people of a run. Not thread-safe: everything happens in one event loop."""

    def __init__(self, log: RunLog, seats: Seats, tasks: Sequence[Task], seed: int) -> None:
        self._log, self._seats = log, seats
        self.tasks = tuple(tasks)
        self._seed = seed
        self._participants: OrderedDict[int, Participant] = OrderedDict()

    @property
    def places(self) -> int:
        """How many people can take part."""
        return max(task.plan.subjects for task in self.tasks)

    @property
    def settled(self) -> bool:
        """Whether every verdict is decided: by all subjects, or at a look of a sequential design."""
        return all(is_finished(self._log, task.plan, CellCourse) for task in self.tasks)

    def join(self) -> str | None:
        """Return the token of a place for a new person; None if all are taken, or if nobody else is needed.

        Whoever has begun goes on in any case. A look waits for all of its subjects, also for one who has stopped.
        """
        if self.settled:
            return None
        return self._seats.take(self.places, self._has_begun)

    def find(self, token: str) -> Participant | None:
        """Return whoever has this token; None for a token of nobody."""
        subject = self._seats.subject_of(token)
        if subject is None:
            return None
        if subject not in self._participants:
            self._participants[subject] = Participant(self._log, self._seats, self.tasks, self._seed, subject)
        self._participants.move_to_end(subject)
        while len(self._participants) > KEPT:
            self._participants.popitem(last=False)
        return self._participants[subject]

    def act(self, participant: Participant, action: int) -> list[Shown]:
        """Let a person act. After an error (a full disk) the participant is replayed from what was recorded."""
        try:
            return participant.act(action)
        except BaseException:
            self._participants.pop(participant.subject, None)
            raise

    def _has_begun(self, subject: int) -> bool:
        if self._seats.keys(subject) is not None:
            return True
        return any(self._log.trials(task.plan, subject) for task in self.tasks if subject < task.plan.subjects)


def as_text(shown: Shown) -> str:
    """Return the reward of a step as a language model is told it."""
    return f"{shown.reward:+.6g}" if shown.reward else "0"


def picture_of(shown: Shown) -> bytes | None:
    """Return the picture (PNG) that is shown; None for text."""
    return shown.observation.png if isinstance(shown.observation, Picture) else None
