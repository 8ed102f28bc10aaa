"""Calls the plugins that watch a run. They hear of each finished trial, and of the end
of the run. Their errors do not stop it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from pluggy import HookCaller, HookImpl


class Observers:
    """The implementations of a hook. An implementation that raises is reported once,
    and not called again.
    """

    #: The beginning of every sentence about a failed observer.
    FAILED = "the observer "

    def __init__(self, hook: HookCaller) -> None:
        self._hook = hook
        self._failed: set[str] = set()

    def __bool__(self) -> bool:
        return any(
            one.plugin_name not in self._failed for one in self._hook.get_hookimpls()
        )

    def show(self, **what: Any) -> Iterator[str]:
        """Call all observers that have not failed. Yield a sentence for each that fails
        in this call.
        """
        for one in reversed(self._hook.get_hookimpls()):
            if one.plugin_name in self._failed:
                continue
            try:
                one.function(*(what[name] for name in one.argnames))
            except (Exception, SystemExit) as error:  # A plugin may raise anything.
                self._failed.add(one.plugin_name)
                yield f"{_name(one)}: {type(error).__name__}: {quoted(str(error))}; it is not called again"


def _name(one: HookImpl) -> str:
    return f"{Observers.FAILED}'{quoted(one.plugin_name.removeprefix('pytest:'), 200)}' failed in {one.function.__name__}"
