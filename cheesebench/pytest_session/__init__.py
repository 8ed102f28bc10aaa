"""A pytest session that runs models; loaded only when ``--model`` or ``--study`` is
given.
"""

from __future__ import annotations

import contextlib
import sys

import pluggy
import pytest

from cheesebench.errors import (
    NOT_AS_WRITTEN,
    CheeseBenchError,
    OptionError,
    said_of_logs,
)
from cheesebench.plugin_manager import PluginManager
from cheesebench.pytest_session import refusals
from cheesebench.pytest_session.cells import Cells
from cheesebench.pytest_session.collection import Collection
from cheesebench.pytest_session.outcomes import Outcomes
from cheesebench.pytest_session.reporting import Reporting
from cheesebench.pytest_session.run import PytestRun
from cheesebench.pytest_session.running import Running
from cheesebench.redaction import redact
from cheesebench.terminal import printable, unprintable_replaced


class _Adopter:
    """Passes objects that pytest loads (mainly conftests) to our plugin manager if they
    have one of our hooks.
    """

    def __init__(self, plugins: PluginManager) -> None:
        self._plugins = plugins

    def pytest_plugin_registered(
        self, plugin: object, plugin_name: str, manager: pytest.PytestPluginManager
    ) -> None:
        ours = any(
            name.startswith("cheesebench_") for name in getattr(plugin, "__dict__", ())
        )
        if self._plugins.is_registered(plugin) or not ours:
            return
        try:
            # The prefix distinguishes the plugin from an entry point of the same name.
            self._plugins.register(plugin, name=f"pytest:{plugin_name}")
        except (pluggy.PluginValidationError, CheeseBenchError) as error:
            raise pytest.UsageError(printable(redact(str(error)))) from error


def start(config: pytest.Config) -> None:
    """Check the options, and register the plugins that do the work; UsageError for a
    user's mistake.
    """
    plugins = PluginManager()
    config.pluginmanager.register(_Adopter(plugins), "cheesebench-adopter")
    try:
        run = PytestRun(config, plugins)
        collection = Collection(run)
    except CheeseBenchError as error:
        raise refusals.refused(config, error) from error
    except NOT_AS_WRITTEN as error:
        if (said := said_of_logs(error)) is None:
            raise
        raise refusals.refused(config, OptionError(said)) from error
    glyphs = contextlib.ExitStack()
    glyphs.enter_context(unprintable_replaced(sys.stdout))
    config.add_cleanup(glyphs.close)
    config.addinivalue_line(
        "markers", "cheesebench: a model on a protocol, judged against the rodent."
    )
    config.pluginmanager.register(collection, "cheesebench-collection")
    reporting = Reporting(run)
    config.pluginmanager.register(Running(run), "cheesebench-running")
    config.pluginmanager.register(Outcomes(run), "cheesebench-outcomes")
    config.pluginmanager.register(reporting, "cheesebench-reporting")
    config.pluginmanager.register(Cells(run, reporting), "cheesebench-cells")
