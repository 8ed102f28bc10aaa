"""Serves ``cheesebench people``: people are the subjects of an ordinary run, in their
browsers.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import math
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web

from cheesebench.chat import Picture
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import (
    check_plain,
    check_schema,
    connect,
    errors_explained,
)
from cheesebench.experiment.replay import films
from cheesebench.experiment.subjects import trial_record
from cheesebench.experiment.unfinished import is_finished
from cheesebench.interfaces import (
    ACTION_OF_LETTER,
    ACTIONS,
    WAITED_LETTER,
    Paradigm,
    SubjectEnvironment,
    View,
)
from cheesebench.records import CellPlan
from cheesebench.redaction import quoted
from cheesebench.server import pages
from cheesebench.server.http_guard import RequestGuard, Serving, new_token
from cheesebench.statistics.judgement import judge_set
from cheesebench.trial_loop import TrialLoop

FILE_NAME = "people.sqlite"
#: An unused place is given to another person after this many seconds.
UNUSED = 1800.0
#: Assumed duration of a step in seconds. The maximum duration that people are told is
#: computed from it.
PACE = 0.5
_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS participants (subject INTEGER PRIMARY KEY, mark TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS keys (
    subject INTEGER PRIMARY KEY, cell INTEGER NOT NULL, trial INTEGER NOT NULL, letters TEXT NOT NULL,
    times TEXT NOT NULL
) STRICT;
"""


#: Another program may hold the file. ``LOCKED_MS``: milliseconds that a write waits for
#: it. ``ATTEMPTS_APART``: seconds between attempts. ``LOCKED_TOO_LONG``: seconds until
#: the person is asked to try again later.
LOCKED_MS, ATTEMPTS_APART, LOCKED_TOO_LONG = 20, 0.2, 20.0


class Keys(NamedTuple):
    """The steps of an unfinished trial so far, with the numbers of its cell and of the
    trial (both from 0).

    ``times`` is a JSON object, which is empty unless times are recorded. It maps
    ``ms:STEP`` (from 1) to the milliseconds from the moment when the person could act
    to the key press.
    """

    cell: int
    trial: int
    letters: str
    times: str


class ParticipantStore:
    """The places of people in one run, and their keys in unfinished trials. They are in
    a small file beside the log.

    The file holds no name and no address. A place is identified by a digest of its
    token. A write survives the crash of any process.
    """

    def __init__(
        self, directory: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = directory / FILE_NAME
        self._clock = clock
        #: Time at which each taken place was given or, after a restart, first
        #: considered for another person.
        self._given: dict[int, float] = {}
        with errors_explained(self.path):
            check_plain(directory)
            self.path.touch(mode=0o600)
            self._connection = connect(self.path)
            self._connection.execute("PRAGMA journal_mode = WAL")
            # A wait here blocks the event loop, and so everybody else. That is why it
            # is short.
            self._connection.execute(f"PRAGMA busy_timeout = {LOCKED_MS}")
            self._connection.executescript(_SCHEMA)
            check_schema(self._connection, self.path, _SCHEMA)

    def setting(self, name: str, default: str) -> str:
        """Return a stored value. If there is none, store and return the default."""
        with errors_explained(self.path):
            self._connection.execute(
                "INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, default)
            )
            [(value,)] = self._connection.execute(
                "SELECT value FROM settings WHERE name = ?", (name,)
            )
        return str(value)

    def keep(self, name: str, value: str) -> None:
        with errors_explained(self.path):
            self._connection.execute(
                "INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value)
            )

    def subject_of(self, token: str) -> int | None:
        """Return the subject of a token. Return None if the token is unknown, or its
        place was given to another person.
        """
        with errors_explained(self.path):
            row = self._connection.execute(
                "SELECT subject FROM participants WHERE mark = ?", (_mark(token),)
            ).fetchone()
        return None if row is None else int(row[0])

    def take(self, places: int, used: Callable[[int], bool]) -> str | None:
        """Return a token for a new person, or None if all places are taken.

        ``used`` tells whether a subject has pressed a key. A place in which no key was
        pressed is given to another person after ``UNUSED`` seconds.
        """
        now = self._clock()
        with errors_explained(self.path):
            taken = {
                subject
                for (subject,) in self._connection.execute(
                    "SELECT subject FROM participants"
                )
            }
            for subject in range(places):
                if subject in taken and (
                    self._given.setdefault(subject, now) > now - UNUSED or used(subject)
                ):
                    continue
                token = new_token()
                self._connection.execute(
                    "INSERT OR REPLACE INTO participants VALUES (?, ?)",
                    (subject, _mark(token)),
                )
                self._given[subject] = now
                return token
        return None

    def count(self) -> int:
        with errors_explained(self.path):
            return int(
                self._connection.execute(
                    "SELECT count(*) FROM participants"
                ).fetchone()[0]
            )

    def keys(self, subject: int) -> Keys | None:
        with errors_explained(self.path):
            query = "SELECT cell, trial, letters, times FROM keys WHERE subject = ?"
            row = self._connection.execute(query, (subject,)).fetchone()
        return None if row is None else Keys(*row)

    def write(self, subject: int, keys: Keys) -> None:
        with errors_explained(self.path):
            self._connection.execute(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?)", (subject, *keys)
            )

    def close(self) -> None:
        self._connection.close()


def _mark(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


#: Maximum number of participants in memory. Others are replayed from the record when
#: they come back.
KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One cell of the run, ready to start. ``steps`` is the maximum number of steps of
    a trial.
    """

    plan: CellPlan
    paradigm: Paradigm
    view: View
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One screen for a person: the observation after a step (or at the beginning of a
    trial), and the reward.

    ``action`` is the name of the step's action: ``""`` at the beginning of a trial, and
    ``waited`` for ``times`` steps that passed whatever the person did.
    """

    action: str
    observation: str
    reward: float = 0.0
    times: int = 1
    ended: bool = False


class _Trial:
    """The trial that a person is in. ``shown`` is the latest observation on the
    page.
    """

    def __init__(
        self, environment: SubjectEnvironment, number: int, observation: str
    ) -> None:
        self.environment, self.number, self.times = (
            environment,
            number,
            dict[str, int](),
        )
        self.shown = Shown(action="", observation=observation)
        self._steps: list[tuple[float, str, bool]] = []
        self.loop = TrialLoop(
            environment,
            observation,
            lambda action, *step: self._steps.append(step),
            agent="a person",
        )

    def seen(self) -> list[Shown]:
        """Return the observations since the last call. Equal consecutive frozen steps
        are merged.
        """
        seen: list[Shown] = []
        letters = self.loop.letters[len(self.loop.letters) - len(self._steps) :]
        for letter, (reward, observation, ended) in zip(
            letters, self._steps, strict=True
        ):
            waited = letter == WAITED_LETTER
            action = "waited" if waited else ACTIONS[ACTION_OF_LETTER[letter]]
            now = Shown(
                action=action, observation=observation, reward=reward, ended=ended
            )
            if waited and seen and replace(seen[-1], times=1) == now:
                seen[-1] = replace(now, times=seen[-1].times + 1)
            else:
                seen.append(now)
        self._steps.clear()
        self.shown = seen[-1] if seen else self.shown
        return seen


class Participant:
    """One person with their present task and trial. Every step is on disk before it is
    shown.
    """

    _trial: _Trial | None

    def __init__(
        self,
        log: RunLog,
        store: ParticipantStore,
        tasks: Sequence[Task],
        seed: int,
        subject: int,
    ) -> None:
        self._log, self._store, self._tasks = log, store, tasks
        self._seed, self.subject = seed, subject
        self.task = -1
        self._next_task()
        kept = store.keys(subject)
        trial = self._trial
        if (
            trial is not None
            and kept is not None
            and kept[:2] == (self.task, trial.number)
        ):
            for plan in filter(None, kept.letters.split(WAITED_LETTER)):
                # Steps in which the subject is frozen have no keys: they pass as they
                # did before.
                trial.loop.act([ACTION_OF_LETTER[letter] for letter in plan])
            trial.times = json.loads(kept.times)
            trial.seen()

    @property
    def over(self) -> bool:
        """Whether the participant has completed all tasks."""
        return self._trial is None

    @property
    def at(self) -> str:
        """The person's task, trial and step, as a text that is different at
        every step.
        """
        trial = self._trial
        return (
            "end"
            if trial is None
            else f"{self.task}.{trial.number}.{len(trial.loop.letters)}"
        )

    @property
    def shown(self) -> Shown | None:
        """The latest observation, or None at the end."""
        return None if self._trial is None else self._trial.shown

    @property
    def place(self) -> str:
        """The number of this trial, and of the task if there are several, in words. It
        is empty at the end.
        """
        if self._trial is None:
            return ""
        trial = (
            f"Trial {self._trial.number + 1} of {self._tasks[self.task].plan.trials}"
        )
        return (
            f"{trial}, task {self.task + 1} of {len(self._tasks)}"
            if len(self._tasks) > 1
            else trial
        )

    def act(self, action: int, after: int | None = None) -> list[Shown]:
        """Execute an action (0-3), and the steps that pass after it. Return everything
        that the person sees, in order.

        ``after`` is the number of milliseconds since the person could act. It is
        recorded unless it is None.
        """
        if (trial := self._trial) is None:
            return []
        if after is not None:
            trial.times[f"ms:{len(trial.loop.letters) + 1}"] = after
        trial.loop.act([action])
        seen = self._after(trial)
        if (now := self._trial) is not None:
            keys = Keys(
                self.task, now.number, "".join(now.loop.letters), json.dumps(now.times)
            )
            self._store.write(self.subject, keys)
        return seen

    def _after(self, trial: _Trial) -> list[Shown]:
        """Return the new observations. A trial that has ended is recorded, and the next
        one begins.
        """
        seen = trial.seen()
        if trial.loop.ended:
            self._record(trial)
            seen += self._begin(trial.environment, trial.number + 1)
        return seen

    def _record(self, trial: _Trial) -> None:
        result = trial.environment.result()
        plan = self._tasks[self.task].plan
        record = trial_record(
            plan,
            self.subject,
            trial.number,
            result,
            **trial.loop.done,
            tally=trial.times,
        )
        self._log.write_trial(record, result.events)

    def _begin(self, environment: SubjectEnvironment, number: int) -> list[Shown]:
        plan = self._tasks[self.task].plan
        observation = environment.begin_trial() if number < plan.trials else None
        if observation is None:
            self._log.write_life(plan, self.subject, number)
            if is_finished(self._log, plan, judge_set):
                done = len(self._log.completed_subjects(plan))
                people = "person" if done == 1 else "people"
                self._log.note("finished", f"{done} {people}", plan)
            return self._next_task()
        trial = self._trial = _Trial(environment, number, observation)
        return [trial.shown, *self._after(trial)]

    def _next_task(self) -> list[Shown]:
        """Continue with the next incomplete task, after replaying its recorded trials.
        Return the new observations.
        """
        self._trial = None
        for number in range(self.task + 1, len(self._tasks)):
            task = self._tasks[number]
            if (
                self.subject >= task.plan.subjects
                or self.subject in self._log.completed_subjects(task.plan)
            ):
                continue
            self.task = number
            environment = task.paradigm.environment(task.view, self._seed, self.subject)
            recorded = [
                record
                for record in self._log.trials(task.plan, self.subject)
                if not record.missing
            ]
            for _ in films(environment, recorded):
                pass  # RunLogError is raised if a trial differs from its record.
            return self._begin(environment, len(recorded))
        return []


class Participants:
    """All people of a run. The class is not thread-safe: everything happens in one
    event loop.
    """

    def __init__(
        self, log: RunLog, store: ParticipantStore, tasks: Sequence[Task], seed: int
    ) -> None:
        self._log, self._store = log, store
        self.tasks = tuple(tasks)
        self._seed = seed
        self._participants: OrderedDict[int, Participant] = OrderedDict()

    @property
    def places(self) -> int:
        return max(task.plan.subjects for task in self.tasks)

    @property
    def complete(self) -> bool:
        """Whether all subjects that the cells need are finished."""
        return all(is_finished(self._log, task.plan, judge_set) for task in self.tasks)

    def join(self) -> str | None:
        """Return the token of a place for a new person. Return None if all places are
        taken, or no more people are needed.

        People who have begun can always finish. A set of subjects is judged when all of
        them have finished, so it waits even for people who have stopped.
        """
        if self.complete:
            return None
        return self._store.take(self.places, self._has_begun)

    def find(self, token: str) -> Participant | None:
        subject = self._store.subject_of(token)
        if subject is None:
            return None
        if subject not in self._participants:
            self._participants[subject] = Participant(
                self._log, self._store, self.tasks, self._seed, subject
            )
        self._participants.move_to_end(subject)
        while len(self._participants) > KEPT:
            self._participants.popitem(last=False)
        return self._participants[subject]

    def act(
        self, participant: Participant, action: int, after: int | None = None
    ) -> list[Shown]:
        """Let a person act. After an error, such as a full disk, the participant is
        replayed from the record at the next request.
        """
        try:
            return participant.act(action, after)
        except BaseException:
            self._participants.pop(participant.subject, None)
            raise

    def lives(self, participant: Participant) -> list[tuple[Task, list[float | None]]]:
        """Return the tasks, each with the participant's pass rates by session. The rate
        of a session without pass or fail is None.
        """
        found = []
        for task in self.tasks:
            passed: dict[int, list[bool]] = {}
            for record in self._log.trials(task.plan, participant.subject):
                passed.setdefault(record.session, []).extend(
                    [] if record.success is None else [record.success]
                )
            found.append(
                (
                    task,
                    [sum(own) / len(own) if own else None for own in passed.values()],
                )
            )
        return found

    def _has_begun(self, subject: int) -> bool:
        if self._store.keys(subject) is not None:
            return True
        return any(
            self._log.trials(task.plan, subject)
            for task in self.tasks
            if subject < task.plan.subjects
        )


#: Methods that these pages need.
METHODS = ("GET", "HEAD", "POST")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The texts that people read in addition to the tasks. ``consent`` and
    ``debriefing`` are additional paragraphs.

    ``completion`` is shown to people who have finished: a code, or a link back to the
    recruiting site.
    """

    instructions: str
    consent: Sequence[str] = ()
    debriefing: Sequence[str] = ()
    completion: str = ""


class People:
    """Serves participants: an invitation that lists the recorded data, then one page
    for each person who agreed.
    """

    def __init__(
        self, participants: Participants, words: Words, key_times: bool = False
    ) -> None:
        """``key_times`` says whether to record the time before each key press."""
        self._participants, self._words, self._key_times = (
            participants,
            words,
            key_times,
        )

    def serving(self, guard: RequestGuard) -> Serving:
        routes = [
            ("GET", "", self.invitation),
            ("POST", "join", _once_it_is_free(self.join)),
            ("GET", "participant/{participant}/", self.participant_page),
            ("GET", "participant/{participant}/now", self.now),
            ("POST", "participant/{participant}/act", _once_it_is_free(self.act)),
        ]
        return Serving(guard, routes, explains=False)

    async def invitation(self, request: web.Request) -> web.StreamResponse:
        """Return the page on which a person is asked to agree."""
        trials = sum(task.plan.trials for task in self._participants.tasks)
        steps = sum(task.plan.trials * task.steps for task in self._participants.tasks)
        return pages.page(
            "invitation.html.jinja",
            scripts=["invitation.js"],
            styles=["people.css"],
            trials=trials,
            minutes=math.ceil(steps * PACE / 60),
            tasks=len(self._participants.tasks),
            consent=self._words.consent,
            key_times=self._key_times,
        )

    async def join(self, request: web.Request) -> web.StreamResponse:
        """Give a place to a person who agreed."""
        wanted = await _content(request)
        if wanted.get("agreed") is not True:
            return _problem(400, "Please agree before you take part.")
        token = self._participants.join()
        if token is None:
            full = (
                "All places are taken."
                if not self._participants.complete
                else "Enough people have taken part."
            )
            return _problem(409, f"{full} Thank you for wanting to take part.")
        return _json({"participant": token})

    async def participant_page(self, request: web.Request) -> web.StreamResponse:
        participant, words = self._find(request), self._words
        if not participant.over:
            told = [part.split("\n") for part in words.instructions.split("\n\n")]
            scripts = ["participant.js"]
            return pages.page(
                "participant.html.jinja",
                scripts=scripts,
                styles=["people.css"],
                instructions=told,
            )
        lives = self._participants.lives(participant)
        return pages.page(
            "thanks.html.jinja", styles=["people.css"], lives=lives, words=words
        )

    async def now(self, request: web.Request) -> web.StreamResponse:
        """Return the person's present state, with the latest observation."""
        return _json(_state(self._find(request)))

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Execute one action of a person, unless the page that they saw was out of
        date.
        """
        participant = self._find(request)
        wanted = await _content(request)
        action = wanted.get("action")
        if action not in ACTIONS:
            return _problem(400, f"The actions are {', '.join(ACTIONS)}.")
        if wanted.get("at") != participant.at:
            # The request comes from another tab of the same person, or from a repeated
            # key. Do nothing, and let the page catch up.
            return _json(_state(participant) | {"stale": True})
        after = wanted.get("after") if self._key_times else None
        if after is not None and (type(after) is not int or not 0 <= after < 2**31):
            return _problem(400, "after: give whole milliseconds.")
        seen = self._participants.act(participant, ACTIONS.index(action), after)
        return _json(_state(participant) | {"shown": list(map(_shown, seen))})

    def _find(self, request: web.Request) -> Participant:
        participant = self._participants.find(request.match_info["participant"])
        if participant is None:
            raise web.HTTPNotFound(
                text="There is no participant at this address. Open the original link again."
            )
        return participant


def _once_it_is_free(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Return a handler that is retried while another program holds the store's file.
    Other requests are answered in the meantime.
    """

    async def patient(request: web.Request) -> web.StreamResponse:
        clock = asyncio.get_running_loop().time
        end = clock() + LOCKED_TOO_LONG
        while True:
            try:
                return await handler(request)
            except RunLogError as error:
                if not _is_held(error) or clock() > end:
                    raise
            await asyncio.sleep(ATTEMPTS_APART)

    return patient


def _is_held(error: RunLogError) -> bool:
    cause = error.__cause__
    return (
        isinstance(cause, sqlite3.OperationalError)
        and cause.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    )


def _state(participant: Participant) -> dict[str, Any]:
    shown = participant.shown
    where = {"at": participant.at, "over": participant.over, "place": participant.place}
    return where | {"shown": [] if shown is None else [_shown(shown)]}


def _shown(shown: Shown) -> dict[str, Any]:
    """Return the content of the page for a step."""
    seen = shown.observation
    return {
        "action": shown.action,
        "times": shown.times,
        "reward": (f"{shown.reward:+.6g}" if shown.reward else "0")
        if shown.action
        else "",
        "ended": shown.ended,
        "text": str(seen),
        "picture": base64.b64encode(seen.png).decode()
        if isinstance(seen, Picture)
        else None,
    }


async def _content(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request. Raise an HTTP error for any other content,
    such as that of a plain form on another site.
    """
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="JSON is expected.")
    try:
        content = json.loads(await request.read())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise web.HTTPBadRequest(text="A JSON object is expected.")
    return content


def _json(value: object) -> web.Response:
    return web.Response(text=json.dumps(value), content_type="application/json")


def _problem(status: int, text: str) -> web.Response:
    return web.Response(
        status=status,
        text=json.dumps({"problem": quoted(text)}),
        content_type="application/json",
    )
