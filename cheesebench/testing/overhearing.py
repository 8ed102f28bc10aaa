"""Finds a key in whatever a backend says: errors and what caused them, what is printed, what is logged."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator


def texts_of(error: BaseException) -> Iterator[str]:
    """Give the texts of an error and of all that stands behind it, as a traceback would show them."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield str(one)
        yield from getattr(one, "__notes__", ())
        # A cause suppressed by ``from None`` is not displayed.
        waiting += [one.__cause__, None if one.__suppress_context__ else one.__context__]
        waiting += getattr(one, "exceptions", ())


@contextlib.contextmanager
def overhearing(secret: str, heard: list[str]) -> Iterator[None]:
    """Append to ``heard`` where ``secret`` was said: on standard output or error, or in a record of logging.

    What is printed comes out at the end. Records of all levels count: somebody will turn them on.
    """
    ears, root = _Ears(secret, heard), logging.getLogger()
    out, err, level = io.StringIO(), io.StringIO(), root.level
    root.addHandler(ears)
    root.setLevel(logging.DEBUG)
    loggers = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger) and one.level]
    levels = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    others = [(handler, handler.level) for handler in root.handlers if handler is not ears]
    for handler, own in others:
        handler.setLevel(max(own, level))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
    finally:
        root.removeHandler(ears)
        root.setLevel(level)
        for handler, own in others:
            handler.setLevel(own)
        for logger, own in levels:
            logger.setLevel(own)
        for name, stream, said in (("output", sys.stdout, out), ("error", sys.stderr, err)):
            stream.write(said.getvalue())
            if secret in said.getvalue():
                heard.append(f"the text on standard {name}")


class _Ears(logging.Handler):
    def __init__(self, secret: str, heard: list[str]) -> None:
        super().__init__()
        self._secret, self._heard = secret, heard

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = logging.Formatter().format(record)
        except Exception:  # its own mistake is not ours to tell
            text = f"{record.msg} {record.args}"
        if self._secret in text:
            self._heard.append(f"a record of the logger '{record.name}' ({record.levelname})")
