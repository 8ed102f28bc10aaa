"""Serves protocols as an OpenEnv environment. An episode is a trial or the whole life
of one subject, for which a client answers.

The client gets the prompts of the same agent as in a run, and replies in text or with
the agent's tool.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi.responses import JSONResponse
from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from cheesebench.errors import CheeseBenchError, OptionError, UnknownNameError
from cheesebench.interfaces import ACTIONS
from cheesebench.interop.hosted import Hosted, Turns
from cheesebench.records import TrialRecord
from cheesebench.redaction import quoted

#: Added to every seed of the split ``train``. The sum differs from every seed that a
#: run draws: these have 53 bits, and had 128. The seeds and subjects that a client
#: names must be below this number.
TRAINING = 2**128
SPLITS = ("train", "test")
_FIELDS = ("text", "actions", "learnings")
#: Maximum number of characters of a reply, and of the learnings in it. It is far above
#: any use.
LONGEST = 200_000


class Reply(Action):  # type: ignore[misc]
    """The model's answer: its ``text`` unchanged, or ``actions`` (and ``learnings``) as
    in a call of the tool.
    """

    text: str = Field("", max_length=LONGEST)
    actions: list[Annotated[str, Field(max_length=100)]] = Field(
        default=[], max_length=1000
    )
    """Names from ``ACTIONS``. ``step`` reports other names."""
    learnings: str | None = Field(None, max_length=LONGEST)

    @model_validator(mode="wrap")
    @classmethod
    def _told(cls, values: Any, read: ModelWrapValidatorHandler[Reply]) -> Reply:
        """Raise an error of ours for an impossible reply. OpenEnv's own says only
        "Invalid message" to its clients.
        """
        try:
            return read(values)
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else "step"
            if first["type"] == "extra_forbidden":
                raise UnknownNameError(
                    "field of an action called", field, _FIELDS
                ) from None
            raise OptionError(
                f"{field}={quoted(repr(first['input']), 60)}: {first['msg']}."
            ) from None

    @property
    def said(self) -> str:
        """The reply in the form that the agent reads."""
        learnt = {} if self.learnings is None else {"learnings": self.learnings}
        return (
            json.dumps({"actions": self.actions, **learnt})
            if self.actions
            else self.text
        )


class Prompt(Observation):  # type: ignore[misc]
    """The whole prompt for the model (``messages``), and the text of its last message,
    which is the new part (``prompt``).
    """

    messages: list[dict[str, str]] = Field(default_factory=list)
    prompt: str = ""
    tool: dict[str, Any] | None = None
    """Name, description and JSON schema of the agent's tool, if it has one."""
    trials: list[dict[str, Any]] = Field(default_factory=list)
    """Outcome, success and reward of each trial that ended with this step."""


class LifeState(State):  # type: ignore[misc]
    """The life that a session runs. In the split ``test`` it is a life of ``pytest
    --seed SEED``.
    """

    protocol: str = ""
    split: str = "train"
    seed: int = 0
    subject: int = 0
    trial: int = 0


class Served:
    """State shared by all sessions of a server. Lives are numbered across sessions, and
    cycle through the protocols.
    """

    def __init__(
        self, cells: Sequence[Hosted], *, episode: str, reward: str, seed: int
    ) -> None:
        self.cells = {cell.plan.label: cell for cell in cells}
        self.episode, self.reward, self.seed = episode, reward, seed
        self.begun: Counter[str] = Counter()
        self._number = itertools.count()

    def next_life(self) -> tuple[str, int]:
        number = next(self._number)
        return list(self.cells)[number % len(self.cells)], number // len(self.cells)

    def app(self, sessions: int) -> Any:
        """Return the server's application, for at most ``sessions`` sessions at
        once.
        """
        names = {"env_name": "cheesebench", "state_cls": LifeState}
        app = create_fastapi_app(
            lambda: CheeseBench(self),
            Reply,
            Prompt,
            max_concurrent_envs=sessions,
            **names,
        )

        # Over HTTP each request has an environment of its own, so no session can report
        # a mistake.
        app.add_exception_handler(CheeseBenchError, _mistake)
        return forgiving(app)


async def _mistake(request: Any, error: CheeseBenchError) -> Any:
    return JSONResponse({"detail": quoted(str(error), 2000)}, 400)


def forgiving(app: Any) -> Any:
    """Return ``app`` wrapped so that no traceback (of 60 lines) is printed when a
    client leaves in the middle of a life.

    The traceback comes from OpenEnv, which tells the client about the failed connection
    over this very connection.
    """

    async def call(scope: Any, receive: Any, send: Any) -> None:
        gone = False

        async def sent(message: Any) -> None:
            nonlocal gone
            try:
                await send(message)
            except OSError:
                gone = True
                raise

        try:
            await app(scope, receive, sent)
        except RuntimeError:
            if not gone:
                raise

    return call


def _check_life(
    life: Mapping[str, Any], seed: object, protocols: Mapping[str, Hosted]
) -> None:
    """Raise OptionError or UnknownNameError for an impossible life."""
    for name in life:
        if name not in LifeState.model_fields:
            known = ["split", "subject", "protocol", "seed"]
            raise UnknownNameError("option of reset() called", str(name), known)
    for name, names in (("split", SPLITS), ("protocol", protocols)):
        if not isinstance(life[name], str) or life[name] not in names:
            raise UnknownNameError(f"{name} called", str(life[name]), names)
    for name, number in (("subject", life["subject"]), ("seed", seed)):
        if type(number) is not int or not 0 <= number < TRAINING:
            raise OptionError(
                f"{name}={quoted(repr(number), 60)}: give a whole number of at least 0, and below 2**128."
            )


class CheeseBench(Environment):  # type: ignore[misc]
    """A session, which runs one life at a time."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, served: Served) -> None:
        super().__init__()
        self._served = served
        self._turns: Turns | None = None
        self._state = LifeState()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> Prompt:
        """Begin an episode. Without arguments, this is the next life. If episodes are
        trials, it is the next trial of the present life, or the next life if no trial
        is left. A trial that has not ended goes on instead, with the same prompt.

        ``split`` is ``train`` or ``test``. ``seed``, ``subject`` and ``protocol``
        choose a life.
        """
        if (
            not options
            and seed is None
            and self._turns is not None
            and self._served.episode == "trial"
        ):
            self._turns.go_on()
            if self._turns.request is not None:
                self._state.episode_id, self._state.trial = (
                    episode_id,
                    len(self._turns.records),
                )
                return self._prompt()
        self._new_life(seed, **options)
        self._state.episode_id = episode_id
        return self._prompt()

    def _new_life(self, seed: int | None, **options: Any) -> None:
        usual, number = (
            next(iter(self._served.cells)),
            self._served.seed if seed is None else seed,
        )
        if seed is None and "subject" not in options:
            usual, options["subject"] = self._served.next_life()
        life = {"split": "train", "subject": 0, "protocol": usual, **options}
        _check_life(life, number, self._served.cells)
        self._state = LifeState(**life, seed=number)
        trained = life["split"] == "train"
        self._turns = Turns(
            self._served.cells[life["protocol"]],
            number + TRAINING * trained,
            life["subject"],
        )
        self._served.begun[life["protocol"]] += trained

    def step(
        self, action: Reply, timeout_s: float | None = None, **options: Any
    ) -> Prompt:
        turns = self._turns
        if turns is None or turns.request is None:
            raise OptionError(
                "No prompt is pending: the episode is over, or none has begun. Call reset()."
            )
        for name in action.actions:
            if name not in ACTIONS:
                raise UnknownNameError("action", name, ACTIONS)
        before = len(turns.records)
        try:
            turns.reply(action.said)
            if self._served.episode == "life":
                turns.go_on()
        except CheeseBenchError as error:
            # For example, ten replies in a row were empty. A run would not record such
            # a trial either.
            turns.request, turns.over = None, True
            return Prompt(done=True, reward=0.0, metadata={"stopped": str(error)})
        self._state.step_count += 1
        self._state.trial = len(turns.records)
        return self._prompt(turns.records[before:])

    def _prompt(self, ended: Sequence[TrialRecord] = ()) -> Prompt:
        assert self._turns is not None
        request = self._turns.request
        told = ("outcome", "success", "reward")
        trials = [
            {"trial": one.trial + 1, **{name: getattr(one, name) for name in told}}
            for one in ended
        ]
        own = self._served.reward == "protocol"
        reward = float(sum(one.reward if own else bool(one.success) for one in ended))
        if request is None:
            return Prompt(done=True, reward=reward, trials=trials)
        form = request.form
        tool = form and {
            "name": form.name,
            "description": form.description,
            "parameters": form.schema,
        }
        messages = [{"role": one.role, "content": one.text} for one in request.messages]
        return Prompt(
            reward=reward,
            messages=messages,
            prompt=messages[-1]["content"],
            tool=tool,
            trials=trials,
        )

    @property
    def state(self) -> LifeState:
        return self._state
