"""Errors in the words of a Python program. Messages are written for a command line, but
the public functions have an argument for each option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from cheesebench.errors import CheeseBenchError
from cheesebench.options import BY_KEY

#: Options of commands, by argument of the functions of the same names.
_OF_COMMANDS = {
    **{name: name for name in ("cluster", "dpi", "effort", "icc", "score", "trials")},
    **{name: name for name in ("value", "width", "ask", "baselines")},
    "first-model": "models",
    "format": "formats",
    "part": "parts",
    "protocol": "protocols",
    "range": "limits",
    "second-model": "models",
}
#: Arguments whose names differ from their options.
_RENAMED = {"model": "models", "models": "models_file"}
#: Words that continue the sentence after an option, instead of being its value.
_NO_VALUE = re.compile(
    "and|applies|are|asks|can|corrects|does|for|from|has|instead|is|makes|may|must|names"
    "|needs|or|out|reaches|reads|says|sets|that|to|was|where|which|with"
)
#: A command for a person to type, which stays unchanged; or an option and the next
#: word.
_OPTION = re.compile(
    r"(?P<command>\b(?:pytest|cheesebench|pip|python3?|mkdocs)\b(?: [^\s,;:()']+)*"
    r" --[^,;:()']*)"
    r"|(?<![\w-])--(?:cheese-)?(?P<name>[a-z]+(?:-[a-z]+)*)"
    r"(?:[ =](?P<value>[^\s,;:()']*[^\s,;:()'.]))?"
)


def name_of(key: str) -> str:
    """Return the argument for the option with this key."""
    return _RENAMED.get(key, key)


_FLAGS = {key for key, option in BY_KEY.items() if option.flag} | {"ask"}
_ARGUMENTS = _OF_COMMANDS | {
    option.name: name_of(key) for key, option in BY_KEY.items()
}


def in_python(text: str) -> str:
    """Return a message with arguments in place of options: ``subjects=0`` for
    ``--subjects 0``.
    """
    said = _OPTION.sub(_argument, text)
    # One argument replaces two options.
    return said.replace("models= and models=", "models=(FIRST, SECOND)")


def _argument(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    key = _ARGUMENTS.get(name or "")
    if key is None:
        return found[0]
    if key in _FLAGS:
        return f"{key}=True{found[0].removeprefix(f'--{name}')}"
    if value is None:
        return f"{key}="
    if _NO_VALUE.fullmatch(value):
        return f"{key}= {value}"
    inner, is_pair, one = value.partition("=")
    if is_pair and key.endswith("_option"):
        return f"{key}={{'{inner}': {_literal(one)}}}"
    return f"{key}={_literal(value)}"


def _literal(value: str) -> str:
    """Return a value as a Python literal; a placeholder in capitals stays."""
    if value.isupper() or value == "" or re.fullmatch(r"[-+.\de]+|\[.*", value):
        return value or "..."
    return repr(value)


@contextmanager
def named() -> Iterator[None]:
    """Let errors name the arguments of the caller. ``typed`` keeps the original message
    for the commands, which call the same functions.
    """
    try:
        yield
    except CheeseBenchError as error:
        if error.typed is None and error.args and isinstance(error.args[0], str):
            error.typed, *others = error.args
            error.args = (in_python(error.typed), *others)
        raise
