"""The types of values in a protocol file (names, glyphs, counts, texts) and their validators."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

#: Version of the language that this loader reads.
VERSION = 1
#: The edition that is meant when none is named.
DEFAULT_EDITION = "default"
#: Sanity limit of ``trial.limit``, ``sessions``, ``trials`` and ``repeat``.
MAX_COUNT = 100_000
#: Largest number of squares of an arena.
MAX_SQUARES = 10_000

#: Longest name, in characters.
MAX_NAME = 80

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
Scope = Literal["subject", "block", "session", "trial"]
Scalar = int | float | str | bool


def is_name(value: object) -> bool:
    """Return whether a value is a valid name."""
    return isinstance(value, str) and len(value) <= MAX_NAME and bool(_NAME.fullmatch(value))


def is_protocol_name(value: object) -> bool:
    """Return whether a value is a valid name of a protocol: ``id`` or ``id@edition``."""
    return isinstance(value, str) and all(map(is_name, value.split("@", 1)))


def is_glyph(value: object) -> bool:
    """Return whether a value is one printable character of width 1 (a digit may be an int)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 <= value <= 9
    if not isinstance(value, str) or len(value) != 1 or not value.isprintable() or value.isspace():
        return False
    return unicodedata.east_asian_width(value) not in "WF" and not unicodedata.combining(value)


def checked(test: Callable[[Any], bool], expected: str) -> BeforeValidator:
    """Return a validator that accepts values for which ``test`` holds; ``expected`` describes them in messages."""

    def validate(value: Any) -> Any:
        if not test(value):
            raise PydanticCustomError("shape", "{expected}", {"expected": expected})
        return value

    return BeforeValidator(validate)


def contradiction(sentence: str, remedy: str) -> PydanticCustomError:
    """Return the error of keys that do not go together; ``{where}`` in the sentence is the place they are at."""
    return PydanticCustomError("contradiction", "{sentence} {remedy}", {"sentence": sentence, "remedy": remedy})


def is_number(value: Any) -> bool:
    """Return whether a value is a number (not a bool)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


_SESSIONS = re.compile("(all|last|last:[1-9][0-9]{0,5})")
#: Sessions in words: all, the last, the last K.
Sessions = Annotated[
    str,
    StringConstraints(pattern=f"^{_SESSIONS.pattern}$"),
    checked(lambda v: isinstance(v, str) and bool(_SESSIONS.fullmatch(v)), "all, last or last:K"),
]
Number = Annotated[float, checked(is_number, "a number")]
Name = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME.pattern}$"),
    checked(
        is_name,
        f"a name (letters, digits, _; no digit first; at most {MAX_NAME} characters)",
    ),
]
#: A protocol: its id, or id@edition.
ProtocolName = Annotated[
    str,
    StringConstraints(pattern=f"^{_NAME.pattern}(@{_NAME.pattern})?$"),
    checked(is_protocol_name, "the id of a protocol, or id@edition"),
]
#: One character as it is drawn; a digit may be written without quotes.
Glyph = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1),
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
        json_schema_input_type=str | int,
    ),
    checked(is_glyph, "one visible character"),
]
#: A glyph, or a blank, which draws a place like what is no place.
GlyphOrBlank = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1),
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
        json_schema_input_type=str | int,
    ),
    checked(lambda v: v == " " or is_glyph(v), "one visible character, or a space in quotes"),
]
#: A glyph, a blank, or the name of a variable that holds one (a declared name goes before a glyph).
GlyphOrName = Annotated[
    str,
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
        json_schema_input_type=str | int,
    ),
    checked(
        lambda v: v == " " or is_glyph(v) or is_name(v),
        "one visible character, a space in quotes, or the name of a variable that holds one",
    ),
]
#: An expression of the language (page section 1); numbers may stand as they are.
Expression = Annotated[
    int | float | bool | str, checked(lambda v: isinstance(v, int | float | str), "an expression or a number")
]
Probability = Annotated[float, Field(ge=0, le=1), checked(is_number, "a number from 0 to 1")]
Count = Annotated[
    int,
    Field(ge=1, le=MAX_COUNT),
    checked(lambda v: isinstance(v, int) and not isinstance(v, bool), "a whole number from 1"),
]
Truth = Annotated[bool, checked(lambda v: isinstance(v, bool), "true or false")]
Text = Annotated[
    str,
    BeforeValidator(lambda v: str(v) if is_number(v) else v, json_schema_input_type=str | int | float),
    checked(lambda v: isinstance(v, str | int | float) and not isinstance(v, bool), "text"),
]
#: One text or several; what begins with a brace, as a name to fill in may do, is no text without quotes.
Lines = Annotated[
    Text | list[Text],
    checked(lambda v: not isinstance(v, dict), "text, in quotes where it begins with a brace"),
]
ColumnAndRow = Annotated[
    list[Expression],
    Field(min_length=2, max_length=2),
    checked(lambda v: isinstance(v, list) and len(v) == 2, "a pair [column, row]"),
]
#: A number of an article. What YAML reads as a decimal number has lost its last zeros: `doi: 10.1000`.
Citation = Annotated[
    str,
    BeforeValidator(
        lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v, json_schema_input_type=str | int
    ),
    checked(lambda v: isinstance(v, str), "text; put a number with a point in quotes, such as '10.1000'"),
]


def short_form(key: str, is_short: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Return a validator that expands a short form to ``{key: value}``."""
    return lambda value: {key: value} if is_short(value) else value


def as_list(value: Any) -> Any:
    """Wrap a single name in a list."""
    return [value] if isinstance(value, str) else value


Names = Annotated[list[Name], BeforeValidator(as_list, json_schema_input_type=str | list[str])]
