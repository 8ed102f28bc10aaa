"""Named rules for plugins. A suite is a list of rules, and its result is the list of
broken rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from cheesebench.errors import UnknownNameError, raised_where
from cheesebench.redaction import quoted
from cheesebench.trial_loop import AgentFaultError

Case = TypeVar("Case")
#: The name of the first rule. If its breach hinders the others, they are not checked.
DECLARATION = "declaration"


class BreachError(Exception):
    """A rule is broken. The text describes the breach and a remedy."""

    #: Whether the plugin may be too wrong for the rules after the declaration.
    hinders = True


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken rule: its name, and the breach."""

    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def need(condition: object, text: str, *, hinders: bool = True) -> None:
    """Raise BreachError with ``text`` unless the condition holds."""
    if not condition:
        breach = BreachError(text)
        breach.hinders = hinders
        raise breach


class Rules(Generic[Case]):
    """The rules of one kind of plugin, in the order in which they are checked."""

    def __init__(self) -> None:
        self._checks: dict[str, Callable[[Case], None]] = {}

    def rule(
        self, name: str
    ) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
        def keep(check: Callable[[Case], None]) -> Callable[[Case], None]:
            self._checks[name] = check
            return check

        return keep

    def __iter__(self) -> Iterator[str]:
        return iter(self._checks)

    def broken(self, case: Case, but: Collection[str] = ()) -> list[Broken]:
        """Check all rules except the ones that ``but`` names. Raise UnknownNameError
        if ``but`` names an unknown rule.

        If the rule ``declaration`` is broken, the remaining rules are skipped, unless
        the breach does not hinder them.
        """
        if unknown := [name for name in but if name not in self._checks]:
            raise UnknownNameError("rule", unknown[0], self._checks)
        broken = []
        for name, check in self._checks.items():
            if name in but:
                continue
            hinders = False
            try:
                check(case)
            except BreachError as breach:
                hinders = breach.hinders
                broken.append(Broken(name, str(breach)))
            except Exception as error:
                # The other rules are checked even if the plugin raises an exception.
                hinders = True
                broken.append(Broken(name, f"raises {_raised(error)}"))
            if hinders and name == DECLARATION:
                break
        return broken


def _raised(error: Exception) -> str:
    """Return an exception with its class and line. The loop of a trial hands on only
    what ``observe`` raises as a fault with a cause.
    """
    cause = error.__cause__ if isinstance(error, AgentFaultError) else None
    if cause is None:
        return quoted(raised_where(error))
    return f"{quoted(raised_where(cause))} in observe(), which may come before act()"


class _UnsoundError(AssertionError):
    """Rules are broken. A notebook shows the line that was run, and the message."""

    _render_traceback_ = UnknownNameError._render_traceback_


_UnsoundError.__name__ = "AssertionError"


def assert_none(what: str, broken: list[Broken]) -> None:
    """Raise AssertionError with a line for each broken rule. Rules that fail for the
    same reason are one finding: whether they hold otherwise is not known.
    """
    if not broken:
        return
    alike: dict[str, list[str]] = {}
    for one in broken:
        alike.setdefault(one.text, []).append(one.rule)
    lines = []
    for text, (first, *others) in alike.items():
        lines.append(f"\n  {first}: {text}")
        if others:
            named = ", ".join(f"'{one}'" for one in others)
            lines.append(f"\n    (not checked for this reason: {named})")
    rules = "1 rule is" if len(alike) == 1 else f"{len(alike)} rules are"
    raise _UnsoundError(f"{what}: {rules} broken{''.join(lines)}")
