"""Draws protocols with small changes, many of which the loader accepts. They are cases
for lives.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from cheesebench.protocol.expressions import CALLED

#: A protocol that has every key of the language. It is used in addition to the shipped
#: protocols.
EVERYTHING = Path(__file__).parents[1] / "tests" / "protocol" / "everything.yaml"
#: Maximum number of attempts to find a change that the loader accepts, and of changes
#: to one protocol.
TRIES, CHANGES = 20, 3
_NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "5",
    "0.5",
    "-1",
    "12",
    "40",
    "it",
    "steps",
    "trial",
    "subject",
    "1 / 0",
    "heading",
)
_VALUES = (
    "none",
    "random",
    "timeout",
    "shuffle",
    "cycle",
    "balanced",
    "by_subject",
    "last",
    "block",
    "state",
    "it",
)
#: Matches a value in the text: a word after a colon, a bracket, a comma or an operator.
_WORD = re.compile(r"(?<=[:\[,(=<>+*/-] )\w+|(?<=[\[({])\w+")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")


class Protocols:
    """The shipped protocols that can be walked through, with small changes."""

    def __init__(self) -> None:
        self.catalogue = Catalogue(installed_plugins().protocol_directories)
        classics = sorted(self.catalogue.folders["classics"].glob("*.protocol.yaml"))
        files = [*self.catalogue.files.values(), *classics, EVERYTHING]
        texts = [path.read_text(encoding="utf-8") for path in files]
        self.texts = [text for text in texts if self.load(text) is not None]

    def load(self, text: str) -> Specification | None:
        """Return an arena protocol, or None if the text is refused, or its arena has no
        place to visit.
        """
        specification, _ = self.catalogue.inspect_text(text, "case.protocol.yaml")
        return specification if isinstance(specification, Specification) else None

    def draw(self, chance: random.Random) -> str:
        """Return a protocol with some changes that the loader accepts. After too many
        attempts, return one that it may refuse.
        """
        whole = chance.choice(self.texts)
        text = whole
        for _ in range(TRIES):
            text = whole
            for _ in range(chance.randint(1, CHANGES)):
                text = changed(text, chance)
            if text != whole and self.load(text) is not None:
                break
        return text


def changed(text: str, chance: random.Random) -> str:
    """Return the text with one of its numbers, words or lines replaced by something
    similar.
    """
    lines = text.split("\n")
    row = chance.randrange(len(lines))
    match chance.randrange(7):
        case 0 | 1:
            return _replaced(
                text,
                _NUMBER,
                chance,
                lambda: chance.choice((*_NUMBERS, *_NUMBER.findall(text))),
            )
        case 6:
            return _replaced(
                text,
                chance.choice((_NUMBER, _WORD)),
                chance,
                lambda: _call(text, chance),
            )
        case 2 | 3:
            return _replaced(
                text,
                _WORD,
                chance,
                lambda: chance.choice((*_VALUES, *_WORD.findall(text))),
            )
        case 4:
            del lines[row]
        case _:
            lines.insert(chance.randrange(len(lines)), lines[row])
    return "\n".join(lines)


def _call(text: str, chance: random.Random) -> str:
    """Return a call of a function with words and numbers of the text. It is in quotes,
    because it may contain a comma.
    """
    words = [
        "success",
        "last",
        *chance.choices(_WORD.findall(text) or ["0"], k=3),
        *_NUMBERS,
    ]
    return f'"{chance.choice(CALLED)}({", ".join(chance.choices(words, k=chance.choice((1, 2, 2, 3))))})"'


def _replaced(
    text: str, pattern: re.Pattern[str], chance: random.Random, other: Callable[[], str]
) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = chance.choice(places)
    return text[: place.start()] + other() + text[place.end() :]


def case_of(seed: int, text: str) -> bytes:
    """Return a case: the protocol after a comment line with the seed for its use."""
    return f"# seed {seed}\n{text}".encode("utf-8", "surrogatepass")


def of_case(case: bytes) -> tuple[int, str]:
    """Return seed and text of a case. Without a comment line, the seed is 0."""
    text = case.decode("utf-8", "replace")
    found = re.match(r"# seed (\d{1,9})\n", text)
    return int(found[1]) if found else 0, text
