"""A pytest session that runs models. This package is loaded only if ``--model`` or
``--study`` is given.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

import pluggy
import pytest

from cheesebench.baselines import DIRECTORY
from cheesebench.errors import (
    NOT_AS_WRITTEN,
    CheeseBenchError,
    OptionError,
    said_of_logs,
)
from cheesebench.experiment.earlier import read_earlier
from cheesebench.experiment.settings import Given, Origin, read_settings
from cheesebench.ini_file import usual_protocols
from cheesebench.options import OPTIONS
from cheesebench.plugin_manager import PluginManager
from cheesebench.pytest_options import PROFILED, SPELLINGS
from cheesebench.pytest_session import refusals
from cheesebench.pytest_session.cells import Cells
from cheesebench.pytest_session.collection import Collection
from cheesebench.pytest_session.outcomes import Outcomes
from cheesebench.pytest_session.reporting import Reporting
from cheesebench.pytest_session.run import Handed, PytestRun, read_comparing
from cheesebench.pytest_session.running import Running
from cheesebench.redaction import redact
from cheesebench.terminal import printable, unprintable_replaced


class _Adopter:
    """Registers plugins that pytest loads (mainly conftests) with our plugin manager,
    too, if they have one of our hooks.
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
    """Read the options, and register the plugins that do the work. Raise
    pytest.UsageError for a user's mistake.
    """
    plugins = PluginManager()
    config.pluginmanager.register(_Adopter(plugins), "cheesebench-adopter")
    with _mistakes_refused(config):
        given = Given(
            {option.key: config.getoption(option.destination) for option in OPTIONS},
            _spellings(config),
            origins=dict.fromkeys(config.stash.get(PROFILED, ()), Origin.PROFILE),
        )
        values, directory = given.resolve(), config.invocation_params.dir
        results, resume = directory / values.results, values.resume
        handed = Handed.to(config)
        if handed is not None:  # In a worker, `latest` may be another run by now.
            given = given.filled_in(Origin.GIVEN, seed=handed.seed)
            resume = resume and handed.log
        earlier = read_earlier(plugins, results, resume, values.model or ())
        comparing = None
        if handed is None:
            blessed = config.rootpath / DIRECTORY
            comparing = read_comparing(
                given, values, results, blessed, earlier.existing
            )
        if comparing is not None and earlier.recorded is None:
            given = given.filled_in(Origin.BASELINE, seed=comparing.seed)
        settings = read_settings(given, plugins, directory, earlier, _usual(config))
        if handed is not None:
            settings = handed.of_worker(settings)
        run = PytestRun(
            config,
            settings,
            plugins,
            earlier,
            comparing=comparing,
            handed=handed,
            gates=bool(values.compare and values.compare_fail),
        )
        collection = Collection(run, settings)
    _register(config, run, collection)


@contextlib.contextmanager
def _mistakes_refused(config: pytest.Config) -> Iterator[None]:
    """Convert the error of a user's mistake to a UsageError, which ends the session,
    and report it wherever people look.
    """
    try:
        yield
    except CheeseBenchError as error:
        raise refusals.refused(config, error) from error
    except NOT_AS_WRITTEN as error:
        if (said := said_of_logs(error)) is None:
            raise
        raise refusals.refused(config, OptionError(said)) from error


def _spellings(config: pytest.Config) -> Mapping[str, str]:
    """Return, by key, how the user spelled each option or, if it was not given, could
    spell it.
    """
    typed = {
        os.fspath(argument).partition("=")[0]
        for argument in config.invocation_params.args
    }
    return {
        key: next(filter(typed.__contains__, names), names[0])
        for key, names in config.stash[SPELLINGS].items()
    }


def _usual(config: pytest.Config) -> tuple[Sequence[str], str]:
    """Return the protocols of a run without ``--protocols``, and where they are named.
    Return none if paths are given.
    """
    found = usual_protocols(
        config.getini("cheese_protocols"),
        config.inipath,
        config._get_unknown_ini_keys(),  # pytest itself only warns of them
        plugins_known=True,
    )
    paths = config.args_source is pytest.Config.ArgsSource.ARGS
    return ((), "") if paths else found


def _register(config: pytest.Config, run: PytestRun, collection: Collection) -> None:
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
