"""``python -m fuzz.planted`` plants eleven mistakes in the code, one at a time. The
campaign for each mistake must find it.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from unittest import mock

from cheesebench.experiment import log_file
from cheesebench.experiment.log import RunLog
from cheesebench.interop import scores
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugins.backends import replies as reading
from cheesebench.protocol import Catalogue
from cheesebench.protocol.expressions import ExpressionError
from fuzz import expressions
from fuzz.__main__ import CAMPAIGNS
from fuzz.campaign import Campaign, attempt

#: Maximum number of seconds in which a mistake must be found.
SECONDS = 40.0


def _other_worlds(original: Any) -> Any:
    return lambda paradigm, view, seed, subject: original(
        paradigm, view, seed + len(type(view).__name__), subject
    )


def _by_chance(original: Any) -> Any:
    lives = itertools.count()
    return lambda paradigm, view, seed, subject: original(
        paradigm, view, seed + next(lives), subject
    )


def _beyond(original: Any) -> Any:
    return lambda error, offset, *more: original(error, offset + 1000, *more)


def _inexact(original: Any) -> Any:
    return lambda tree: (
        lambda life: value * 1.001 if (value := original(tree)(life)) % 1 else value
    )


def _silent(original: Any) -> Any:
    def inspect_text(catalogue: Catalogue, text: str, *more: Any) -> Any:
        specification, found = original(catalogue, text, *more)
        return specification, found if specification else []

    return inspect_text


def _impatient(original: Any) -> Any:
    def inspect_text(catalogue: Catalogue, text: str, *more: Any) -> Any:
        if "*a" in text or "&a" in text:
            raise KeyError("a")
        return original(catalogue, text, *more)

    return inspect_text


#: Name of a mistake -> its campaign, its place, and a function that turns the original
#: into the mistake.
PLANTS: Mapping[str, tuple[str, Any, str, Callable[[Any], Any]]] = {
    "an error beyond the text": ("expressions", ExpressionError, "__init__", _beyond),
    "fractions that are a little off": (
        "expressions",
        expressions,
        "compile_expression",
        _inexact,
    ),
    "refused without a word": ("loader", Catalogue, "inspect_text", _silent),
    "an anchor ends the program": ("loader", Catalogue, "inspect_text", _impatient),
    "the view changes the world": ("life", ArenaParadigm, "environment", _other_worlds),
    "chance from nowhere": ("life", ArenaParadigm, "environment", _by_chance),
    "nothing explains what a damaged row raises": (
        "log",
        log_file,
        "NOT_AS_WRITTEN",
        lambda original: (),
    ),
    "every log is whole": ("log", RunLog, "verify", lambda original: lambda log: 0),
    "negative tokens": (
        "replies",
        reading,
        "_tokens",
        lambda original: lambda value: int(value or 0),
    ),
    "an archive that is broken ends the program": (
        "verdicts",
        scores,
        "_BAD_ZIP",
        lambda original: (),
    ),
    "half a letter": (
        "replies",
        reading,
        "replace_surrogates",
        lambda original: lambda text: text,
    ),
}


@cache
def campaign(name: str) -> Campaign:
    """Return a campaign. It must be made before anything is planted."""
    return CAMPAIGNS[name]()


def found(name: str, seconds: float = SECONDS) -> int | None:
    """Return how many cases it took to find a planted mistake, or None if it was not
    found.
    """
    kind, place, attribute, change = PLANTS[name]
    one, end = campaign(kind), time.monotonic() + seconds
    with mock.patch.object(place, attribute, change(getattr(place, attribute))):
        for number in range(sys.maxsize):
            if attempt(one, one.draw(random.Random(f"planted {number}"))) is not None:
                return number + 1
            if time.monotonic() > end:
                break
    return None


def main() -> int:
    """Look for every mistake. Return exit code 1 if one was not found."""
    missed = 0
    for name, (kind, *_) in PLANTS.items():
        cases = found(name)
        missed += cases is None
        print(
            f"{kind}: {name}: {'NOT FOUND' if cases is None else f'found in {cases} cases'}",
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
