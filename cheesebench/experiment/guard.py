"""Sanitises whatever a backend raises: no secrets, and no traceback of third-party code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cheesebench.errors import CheeseBenchError, PluginError, raised_where
from cheesebench.redaction import quoted, redact


@contextmanager
def guarded(backend: str, doing: str) -> Iterator[None]:
    """Run a backend's code: a mistake that it names stays what it is, but for secrets; all else is a PluginError.

    ``doing`` says what it was asked to do, as in "answering the first question". The errors have no cause and no
    context: whoever prints a chain would print what was kept out of the text.
    """
    raised: CheeseBenchError
    try:
        yield
        return
    except CheeseBenchError as error:
        if type(error).__module__ == CheeseBenchError.__module__:
            error.args = tuple(redact(part) if isinstance(part, str) else quoted(repr(part)) for part in error.args)
            raised = error
        else:  # a stranger's class, which may say what it likes
            raised = PluginError(f"The backend '{backend}' reports while {doing}: {quoted(str(error))}")
    except (Exception, SystemExit) as error:
        said = quoted(raised_where(error), 360)
        raised = PluginError(f"The backend '{backend}' fails while {doing}: {said}. Please report this to its author.")
    raised.__cause__ = raised.__context__ = None
    vars(raised).pop("__notes__", None)
    raise raised from None
