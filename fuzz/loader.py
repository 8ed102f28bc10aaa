"""Campaign of mutated protocols. The loader must answer with findings in bounded time,
and an accepted protocol must run.
"""

from __future__ import annotations

import random
import re

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from cheesebench.protocol.expressions import CALLED
from fuzz.life import live
from fuzz.protocols import EVERYTHING

#: Words to insert into a protocol, or to put in place of a value.
WORDS = (
    *(
        "",
        "|",
        ">",
        "[]",
        "{}",
        "[",
        "{",
        "- ",
        ": ",
        "*a",
        "&a x",
        "!!str 1",
        "~",
        "none",
        "true",
    ),
    *("\t", "\x00", "\u202e"),
    *(
        "0",
        "-1",
        "1e999",
        "99999999999",
        "0x1F",
        "1/0",
        "rand(1, 2)",
        "it",
        "last == found",
        "(((((",
        "not not x",
    ),
    *(f"{name}(arm, 2)" for name in CALLED),
    *(
        "100000",
        "shuffle",
        "timeout",
        "success",
        "yes",
        '"',
        "'",
        "::error",
        "x" * 5000,
        "---",
        "<<: *a",
        "\u2028",
    ),
)


class Loader:
    """Cases are texts of protocols."""

    name = "loader"

    def __init__(self) -> None:
        plugins = installed_plugins()
        self._catalogue = Catalogue(plugins.protocol_directories)
        self._texts = [
            path.read_text(encoding="utf-8")
            for path in (*self._catalogue.files.values(), EVERYTHING)
        ]
        self._view = plugins.view("ascii_2d")
        # This builds, before anything is timed, the objects that are built on first
        # use.
        for text in self._texts:
            self.check(text.encode())

    def draw(self, chance: random.Random) -> bytes:
        """Return a shipped protocol with one to six changes."""
        text = chance.choice(self._texts)
        for _ in range(chance.randint(1, 6)):
            text = changed(text, chance)
        return text.encode("utf-8", "surrogatepass")

    def check(self, case: bytes) -> None:
        """Load the protocol. If it is accepted, walk through it at random."""
        text = case.decode("utf-8", "replace")
        specification, found = self._catalogue.inspect_text(text, "case.protocol.yaml")
        for one in found:
            line = str(one)
            assert "\n" not in line, line
            assert len(line) < 2000, line[:200]
        if specification is None:
            assert any(one.severity == "error" for one in found), (
                "refused without an error message"
            )
            return
        if isinstance(specification, Specification):
            live(
                ArenaParadigm(specification), specification, self._view, seed=len(text)
            )


def changed(text: str, chance: random.Random) -> str:
    """Return a text with one rude change."""
    lines = text.split("\n")
    row = chance.randrange(len(lines))
    match chance.randrange(8):
        case 0:
            del lines[row]
        case 1:
            lines.insert(row, lines[chance.randrange(len(lines))])
        case 2:
            lines[row] = " " * chance.randrange(5) + lines[row]
        case 3:
            lines[row] = re.sub(
                r"(: *).*",
                lambda found: found[1] + chance.choice(WORDS),
                lines[row],
                count=1,
            )
        case 4:
            lines[row] = re.sub(
                r"\d+", chance.choice(WORDS).replace("\\", ""), lines[row], count=1
            )
        case 5:
            lines = lines[:row]
        case 6:
            place = chance.randrange(len(lines[row]) + 1)
            lines[row] = lines[row][:place] + chance.choice(WORDS) + lines[row][place:]
        case _:
            words = re.findall(r"\w+", text)
            lines[row] = re.sub(
                r"\w+",
                lambda found: chance.choice((found[0], chance.choice(words))),
                lines[row],
            )
    return "\n".join(lines)
