"""Paths that are values of our options move neither pytest's root directory nor its conftests.

pytest looks for both before any plugin is loaded, and takes each word that it does not know for a path to tests: with
``--protocols /data/mine`` its root would be ``/data``, with somebody else's ini file, cache and conftest.py.
"""

from __future__ import annotations

import copy
import os
import shlex
from collections.abc import Collection, Sequence
from itertools import pairwise

import pytest


def joined(words: Sequence[str], options: Collection[str]) -> list[str]:
    """Return a command line in which each option of ``options`` is one word with its value: ``--NAME=VALUE``."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in options else None
        found.append(word if value is None else f"{word}={value}")
    return found


def redetect(config: pytest.Config, parser: pytest.Parser, args: list[str], options: Collection[str]) -> None:
    """Set up once more what pytest has found by the values of ``options``, and put ``args`` right for what follows.

    Raises UsageError, with the spelling that helps, where this pytest cannot be corrected.
    """
    # Only where it makes a difference is anything touched.
    ours = [word for word, value in pairwise(args) if word in options and _exists(config, value)]
    if not ours:
        return
    try:
        _set_up(config, parser, args, options)
    except (AttributeError, ImportError, TypeError):
        raise pytest.UsageError(
            f"{ours[0]}: this pytest reads the value as a path to tests. Write {ours[0]}=VALUE, without a space."
        ) from None


def _set_up(config: pytest.Config, parser: pytest.Parser, args: list[str], options: Collection[str]) -> None:
    # As _pytest.config.Config does it at the beginning of a session; there is no public way.
    from _pytest.config.findpaths import determine_setup

    given = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(os.fspath, config.invocation_params.args)]
    given = joined(given, options)
    wanted = parser.parse_known_args(given, namespace=copy.copy(config.option))
    root, ini, settings, ignored = determine_setup(
        inifile=wanted.inifilename,
        override_ini=wanted.override_ini,
        args=wanted.file_or_dir,
        rootdir_cmd_arg=wanted.rootdir or None,
        invocation_dir=config.invocation_params.dir,
    )
    moved = (root, ini) != (config.rootpath, config.inipath)
    if moved:
        config._rootpath, config._inipath, config._inicfg = root, ini, settings
        config._ignored_config_files = ignored
        config._inicache.clear()
        parser.extra_info.update(rootdir=str(root), inifile=str(ini))
        args[:] = [*config.getini("addopts"), *given]
    else:
        args[:] = joined(args, options)
    config.known_args_namespace = parser.parse_known_args(args, namespace=copy.copy(config.option))
    if config.known_args_namespace.confcutdir is None:
        config.known_args_namespace.confcutdir = str(ini.parent if ini is not None else root)


def _exists(config: pytest.Config, value: str) -> bool:
    try:
        return (config.invocation_params.dir / value).exists()
    except (OSError, ValueError):  # no path at all
        return False
