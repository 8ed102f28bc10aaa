"""Signals: what each does, in which order, and with which exit code."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from os import getpid, kill

import pytest

from cheesebench import interrupts
from tests.signals import reset_signals


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    state = interrupts._State
    kept = state.action, state.patience, state.stderr, state.last_words, state.code
    yield
    state.action, state.patience, state.stderr, state.last_words, state.code = kept


def test_an_interrupt_has_the_name_of_its_signal() -> None:
    undo = interrupts.install()
    try:
        interrupts.begin()
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            kill(getpid(), signal.SIGTERM)
        interrupts.end("")
        kill(getpid(), signal.SIGTERM)  # The first one is ignored.
        with pytest.raises(KeyboardInterrupt, match="SIGUSR1"), interrupts.heard():
            kill(getpid(), signal.SIGUSR1)
        assert interrupts._State.action is None
    finally:
        undo()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_handlers_of_others_are_left_alone_and_ours_are_taken_back() -> None:
    def theirs(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGUSR2, theirs)
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # In the background of a shell, SIGINT is ignored.
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        undo = interrupts.install()
        assert signal.getsignal(signal.SIGUSR2) is theirs
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is interrupts._handle
        assert signal.getsignal(signal.SIGUSR1) is interrupts._handle
        interrupts.install()()  # Nothing is left to install.
        assert signal.getsignal(signal.SIGINT) is interrupts._handle
        undo()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGUSR2, before)
        signal.signal(signal.SIGHUP, ignored)


def test_a_server_is_stopped_and_the_signal_is_named_at_the_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    stopped: list[str] = []
    interrupts.begin()
    action = interrupts._State.action
    with interrupts.passed_to(lambda: stopped.append("stop")):
        assert interrupts._State.action is not action
    assert (stopped, interrupts._State.action) == ([], action)
    with interrupts.passed_to(lambda: stopped.append("stop")):
        kill(getpid(), signal.SIGTERM)
        kill(getpid(), signal.SIGTERM)
    assert stopped == ["stop"]
    assert interrupts._State.action is None
    assert capfd.readouterr().err == "cheesebench: ended by SIGTERM.\n"


def test_signals_wait_for_the_end_of_a_block_and_of_what_c_calls() -> None:
    undo = interrupts.install()
    interrupts.begin()
    seen: list[str] = []

    @interrupts.called_by_c
    def called() -> None:
        kill(getpid(), signal.SIGTERM)
        seen.append("to its end")

    def hold() -> None:
        with interrupts.held():
            signal.raise_signal(signal.SIGTERM)
            seen.append("held")

    def wait() -> None:
        called()
        signal.pause()

    try:
        for one in (hold, wait):
            with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
                one()
    finally:
        undo()
    assert seen == ["held", "to its end"]


@pytest.mark.parametrize(
    ("raised", "said"),
    [("SIGTERM", ("SIGTERM", 143)), ("", ("SIGINT", 130)), ("enough", ("SIGINT", 130))],
)
def test_the_code_of_a_command_is_that_of_shells(
    raised: str, said: tuple[str, int]
) -> None:
    name, code = said
    line = f"cheesebench: ended by {name}. No file is half-written."
    assert interrupts.ended(KeyboardInterrupt(raised)) == (line, code)


SCRIPT = """
import os, signal
from cheesebench import interrupts
from tests.signals import reset_signals
def send(name="TERM"): os.kill(os.getpid(), getattr(signal, "SIG" + name))
"""


@pytest.mark.parametrize(
    ("code", "ended", "said"),
    [
        ("interrupts.install(); send()", 2, f"\n{interrupts.NOTHING_RUN}\n"),
        ("interrupts.install(); interrupts.end('bye'); send(); send('HUP')", 2, "\nbye\n"),
        ("interrupts.install(); interrupts.over(); send()", 2, ""),
        (
            "with interrupts.of_command(): send()", 143,
            "cheesebench: ended by SIGTERM. No file is half-written.\n",
        ),
        (
            "with interrupts.of_command():\n try: send()\n except KeyboardInterrupt: send(); print('on'); send('INT')", 130,
            "\ncheesebench: ended by SIGTERM. No file is half-written.\n",
        ),
        ("with interrupts.of_command(): pass\nsend(); print('ignored')", 0, ""),
    ],
)  # fmt: skip
def test_a_process_ends_with_its_code_and_last_words(
    code: str, ended: int, said: str
) -> None:
    words = [sys.executable, "-c", SCRIPT + code]
    found = subprocess.run(
        words, capture_output=True, text=True, check=False, preexec_fn=reset_signals
    )
    assert (found.returncode, found.stderr) == (ended, said)
