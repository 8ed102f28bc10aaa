"""The values of the run options: as given, else as recorded by the run that is resumed, else the default."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cheesebench.errors import OptionError
from cheesebench.options import BY_KEY, OPTIONS, Option
from cheesebench.redaction import quoted


@dataclass(frozen=True)
class RunOptions:
    """The options of one run by key (``cheesebench.options``), wherever they were given."""

    given: Mapping[str, Any]
    """None, or no entry, where an option is not given."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """How options are spelled where they were given; ``--NAME`` without an entry."""
    recorded: Mapping[str, Any] | None = None
    """The options in the manifest of the run that is resumed or replayed."""
    origin: str = ""
    """The option that names that run, as it was given."""
    made_here: bool = True
    """Whether that run was made by this user on this machine (``cheesebench.experiment.provenance``)."""

    def spelling(self, key: str) -> str:
        """Return the spelling of an option that the user used."""
        return self.spellings.get(key, BY_KEY[key].short)

    def with_given(self, **given: Any) -> RunOptions:
        """Return a copy with further options given."""
        return replace(self, given={**self.given, **given})

    def check(self) -> None:
        """Raise OptionError for a number that makes no sense."""
        for option in OPTIONS:
            value = self.given.get(option.key)
            if value is None:
                continue
            if option.minimum is not None and value < option.minimum:
                raise OptionError(f"{self.spelling(option.key)} {value}: the minimum is {option.minimum}.")
            if option.positive and not 0 < value < math.inf:
                finite = "finite " if value == math.inf else ""
                raise OptionError(f"{self.spelling(option.key)} {value}: give a {finite}number above 0.")

    def value(self, key: str) -> Any:
        """Return the value of an option; a repeatable one is a list, None if there is no default.

        Raises OptionError for a value that contradicts the run that is resumed.
        """
        option = BY_KEY[key]
        given = _given(option, self.given.get(key))
        if self.recorded is None or not option.recorded or key not in self.recorded:
            return option.default if given is None else given
        recorded = self.recorded[key]
        if given is None:
            return recorded
        if option.overridable or given == recorded:
            return given
        if isinstance(given, list) and set(given) <= set(as_list(recorded)):
            return given
        raise OptionError(
            f"{self.origin}: that run was made {self._with(key, recorded)}, not {_shown(given)}. Remove "
            f"{self.spelling(key)}, or start a new run."
        )

    def check_guarded(self) -> None:
        """Raise OptionError if a stranger's run would say what is started, what is called, or where a key goes."""
        for option in OPTIONS:
            recorded = (self.recorded or {}).get(option.key)
            if option.guarded and recorded and self.given.get(option.key) is None and not self.made_here:
                raise OptionError(
                    f"{self.origin}: that run was not made by you on this machine, so {self.spelling(option.key)} "
                    f"{quoted(_shown(recorded), 120)} is not used. Give the option again if you trust it."
                )

    def _with(self, key: str, value: Any) -> str:
        """Return "with OPTION VALUE" or "without OPTION"."""
        spelling = self.spelling(key)
        return f"without {spelling}" if value is None else f"with {spelling} {_shown(value)}"


def as_list(value: Any) -> list[Any]:
    """Return the value of an option as a list: empty for None, else one or several values."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _given(option: Option, value: Any) -> Any:
    if value is None or not option.commas:
        return value
    # Split at commas; drop repetitions, keep the order.
    names = (name.strip() for part in value for name in part.split(","))
    return list(dict.fromkeys(filter(None, names)))


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
