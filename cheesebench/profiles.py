"""Profiles: sets of run options with a name, in ``[tool.cheesebench.profiles.NAME]`` of
pyproject.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.errors import OptionError, UnknownNameError, did_you_mean
from cheesebench.files import read_bytes
from cheesebench.options import BY_KEY, LONG, Option

FILE = "pyproject.toml"
#: Maximum size in bytes of a pyproject.toml.
_MOST_BYTES = 1024 * 1024
#: Spellings of the option that names a profile.
SPELLINGS = ("--profile", f"{LONG}profile")


def find_file(directory: Path) -> Path | None:
    """Return the nearest pyproject.toml with profiles, in the directory or above it, or
    None. Raise OptionError for a pyproject.toml that cannot be read, or whose profiles
    are not tables.
    """
    for one in (directory, *directory.parents):
        path = one / FILE
        if path.is_file() and _profiles(path):
            return path
    return None


def read_profile(name: str, path: Path | None) -> dict[str, Any]:
    """Return the options of a profile by key, with the values as written. Raise
    CheeseBenchError for an unknown profile or an invalid option.
    """
    if path is None:
        raise OptionError(
            f"--profile {name}: no {FILE} here or above has [tool.cheesebench.profiles.{name}]. Start in the project that "
            "has it, or add it, with a line for each option, such as subjects = 20."
        )
    profiles = _profiles(path)
    if name not in profiles:
        raise UnknownNameError("profile", name, profiles, remedy=f"They are in {path}.")
    found: dict[str, Any] = {}
    for spelling, value in profiles[name].items():
        option = BY_KEY.get(str(spelling).replace("-", "_"))
        place = f"{path}: [tool.cheesebench.profiles.{name}] {spelling}"
        if option is None or option.key == "profile":
            hint = did_you_mean(
                str(spelling), [option.name for option in BY_KEY.values()]
            )
            raise OptionError(
                f"{place} is not a CheeseBench run option.{hint} Options for pytest itself and for other plugins belong "
                "in addopts or on the command line."
            )
        found[option.key] = _checked(option, value, place)
    return found


def _profiles(path: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        data = read_bytes(path, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES // 1024} KB")
        content = tomllib.loads(data.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(
            f"{path} cannot be read: {error}. Correct the file."
        ) from None
    found: Any = content
    for key in ("tool", "cheesebench", "profiles"):
        found = found.get(key, {}) if isinstance(found, dict) else {}
    wrong = (
        [name for name, values in found.items() if not isinstance(values, dict)]
        if isinstance(found, dict)
        else [""]
    )
    if wrong:
        where = (
            f".{wrong[0]} must be a table of options"
            if wrong[0]
            else " must be a table"
        )
        raise OptionError(f"{path}: tool.cheesebench.profiles{where}.")
    profiles: Mapping[str, Mapping[str, Any]] = found
    return profiles


def _checked(option: Option, value: Any, place: str) -> Any:
    if option.flag:
        if not isinstance(value, bool):
            raise OptionError(f"{place} = {value!r}: write true or false.")
        return value
    several = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not option.repeatable:
        raise OptionError(f"{place}: give one value, not a list.")
    for one in several:
        wanted: tuple[type, ...] = {int: (int,), float: (int, float)}.get(
            option.type, (str,)
        )  # type: ignore[call-overload]
        if one not in option.words and (
            isinstance(one, bool) or not isinstance(one, wanted)
        ):
            kind = {int: "a whole number", float: "a number"}.get(
                option.type, "text in quotes"
            )  # type: ignore[call-overload]
            raise OptionError(f"{place} = {one!r}: write {kind}.")
    return value


def expanded(
    arguments: Sequence[str],
    path: Path | None,
    known: Collection[str] | None = None,
    spellings: Collection[str] = SPELLINGS,
) -> tuple[list[str], list[str]]:
    """Return the arguments that the last profile on a command line adds, and the names
    of all profiles on the command line.

    Options on the command line are left out, and so are options that are not in
    ``known`` (spellings such as ``--seed``; None: all are known). ``spellings`` are the
    spellings of the option that names a profile.
    """
    names = _named(arguments, spellings)
    if not names:
        return [], []
    typed = {argument.partition("=")[0] for argument in arguments}
    found: list[str] = []
    for key, value in read_profile(names[-1], path).items():
        option = BY_KEY[key]
        if {option.short, option.long} & typed or (
            known is not None and option.short not in known
        ):
            continue
        found += _typed(option.long if known is None else option.short, value)
    return found, names


def _typed(spelling: str, value: object) -> list[str]:
    """Return an option as a user would type it. A flag that is off is not typed."""
    if isinstance(value, bool):
        return [spelling] * value
    values = value if isinstance(value, list) else [value]
    return [f"{spelling}={one}" for one in values]


def _named(arguments: Sequence[str], spellings: Collection[str]) -> list[str]:
    named = []
    for number, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if option in spellings:
            value = (
                value if equals else next(iter(arguments[number + 1 : number + 2]), "")
            )
            named.append(value)
    return named
