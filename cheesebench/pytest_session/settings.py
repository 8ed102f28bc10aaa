"""The options of a pytest session: read from its command line, its ini file and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cheesebench.experiment.run_options import RunOptions
from cheesebench.options import BY_KEY, OPTIONS
from cheesebench.pytest_plugin import SPELLINGS


def read_options(
    config: pytest.Config, recorded: Mapping[str, Any] | None = None, replays: bool = False, made_here: bool = True
) -> RunOptions:
    """Return the options of a session.

    ``recorded`` are the options in the manifest of the run that is resumed or replayed: they hold where nothing is
    given, and must not be contradicted; unless it was ``made_here``, none of the guarded ones is taken from there.
    """
    given = {option.key: config.getoption(option.destination) for option in OPTIONS}
    origin = f"--model {given['model'][0]}" if replays else f"--resume {given['resume']}"
    if replays:
        given["model"] = None
    typed = {os.fspath(argument).partition("=")[0] for argument in config.invocation_params.args}
    spellings = {
        key: next(filter(typed.__contains__, names), names[0]) for key, names in config.stash[SPELLINGS].items()
    }
    return RunOptions(given, spellings, recorded, origin, made_here)


def results_directory(config: pytest.Config) -> Path:
    """Return the directory that holds the runs."""
    option = BY_KEY["results"]
    given: str | None = config.getoption(option.destination)
    return config.invocation_params.dir / (given or str(option.default))


def usual_protocols(config: pytest.Config) -> list[str]:
    """Return the protocols that the ini file or the environment names; none if paths are given."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return []
    named: list[str] = list(config.getini("cheese_protocols"))
    if named and config.inipath is not None:
        # Like all paths in an ini file, directories and files are relative to it.
        beside = [(name, config.inipath.parent / name) for name in named]
        return [str(path) if path.exists() else name for name, path in beside]
    return [name for name in os.environ.get("CHEESEBENCH_PROTOCOLS", "").split(os.pathsep) if name]
