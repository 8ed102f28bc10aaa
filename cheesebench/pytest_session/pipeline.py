"""What a pipeline reads besides the terminal: GitHub's annotations and page of a job, and cases of a JUnit file."""

from __future__ import annotations

import contextlib

import pytest

from cheesebench.film import printable
from cheesebench.junit import Properties
from cheesebench.pytest_session.github import command, is_github
from cheesebench.pytest_session.step_summary import append_step_summary
from cheesebench.redaction import redact

#: The name of the class of cases that are no test.
_CLASS = "cheesebench"


def refused(config: pytest.Config, error: Exception) -> pytest.UsageError:
    """Return the error that ends a session (exit code 4), after telling every reader of the pipeline."""
    text = printable(redact(str(error)))
    tell_refusal(config, text)
    return pytest.UsageError(text)


def tell_refusal(config: pytest.Config, text: str) -> None:
    """Tell GitHub, its page of the job, and the JUnit file, in which no case at all would look green."""
    if is_github():
        print(command("error", "cheesebench", text), flush=True)
    with contextlib.suppress(OSError):  # the reader of the terminal has the error itself
        quoted = text.replace("`", "'")  # nothing in it may end the block
        append_step_summary(f"**cheesebench could not run:**\n\n```text\n{quoted}\n```\n")
    add_case(config, "start", text, when="setup")


def add_case(config: pytest.Config, name: str, text: str, *, when: str = "call") -> None:
    """Add a failed case to the JUnit file, if there is one: an error if ``when`` is *setup*."""
    from _pytest.junitxml import LogXML, xml_key

    xml, own = config.stash.get(xml_key, None), None
    if xml is None and config.getoption("xmlpath", None) and not hasattr(config, "workerinput"):
        # Options are checked before pytest has configured its own, and then it writes no file: an old one would stay.
        suite, family = config.getini("junit_suite_name"), config.getini("junit_family")
        xml = own = LogXML(config.option.xmlpath, config.option.junitprefix, suite, family=family)
        own.pytest_sessionstart()
    if xml is None:
        return
    xml.pytest_runtest_logreport(
        pytest.TestReport(
            nodeid=f"{_CLASS}::{printable(name)}",
            location=("", None, name),
            keywords={},
            outcome="failed",
            longrepr=printable(text),
            when="setup" if when == "setup" else "call",
        )
    )
    if own is not None:
        with contextlib.suppress(OSError):
            own.pytest_sessionfinish()


def add_suite_properties(config: pytest.Config, properties: Properties) -> None:
    """Add properties of the whole run to the JUnit file, if there is one."""
    from _pytest.junitxml import xml_key

    xml = config.stash.get(xml_key, None)
    if xml is not None:
        for name, value in properties:
            xml.add_global_property(name, value)
