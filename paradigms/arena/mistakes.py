"""Run-time errors of a protocol, with messages for its author."""

from __future__ import annotations

from cheesebench.errors import ProtocolError
from cheesebench.paradigms.arena.program import Program, plain_name
from cheesebench.protocol.specification import RuntimeValue


def bad_limit(program: Program, limit: RuntimeValue, state: str | None) -> ProtocolError:
    """Return the error for a limit that is not a number of at least 1."""
    return _mistake(program, f"The limit of the trial is {limit}", "Set its variable to 1 or more.", state)


def no_floor(program: Program, place: RuntimeValue, state: str | None) -> ProtocolError:
    """Return the error of placing a subject where it cannot stand."""
    sentence = f"The subject would be placed at '{plain_name(place)}', which is not floor"
    return _mistake(program, sentence, "Name a zone.", state)


def bad_face(program: Program, face: RuntimeValue, state: str | None) -> ProtocolError:
    """Return the error of a variable that holds no heading."""
    sentence = f"'start: face' is '{plain_name(face)}', which is not a heading here"
    return _mistake(program, sentence, "Set the variable to a heading.", state)


def bad_reward(program: Program, reward: RuntimeValue, state: str | None) -> ProtocolError:
    """Return the error for a reward that is not a finite number."""
    return _mistake(program, f"A reward is {reward}", "Guard the division.", state)


def _mistake(program: Program, sentence: str, remedy: str, state: str | None) -> ProtocolError:
    """``state`` is the current one, or None at the start of a trial."""
    where = "" if state is None else f", in the state '{state}'"
    return ProtocolError(f"{program.specification.path}: {sentence}{where}. {remedy}")
