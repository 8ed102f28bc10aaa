"""Fixtures that every part of the tests shares."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib
import importlib.metadata
import os
import pkgutil
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest_plugins = ["pytester"]

# Many container images set this variable. The tests start hundreds of processes, and
# with it each of them would compile the package again, which takes half of all time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The tests import these folders, which are in no distribution. The checkout itself is
# not put on the path, because its egg-info would be a second distribution with our
# plugin.
for _name in ("benchmarks", "fuzz", "website"):
    if _name not in sys.modules:
        sys.modules[_name] = ModuleType(_name)
        sys.modules[_name].__path__ = [str(Path(__file__).with_name(_name))]


#: Seconds after which a test counts as hanging. It stands here, because pytest refuses
#: it in the configuration where pytest-timeout (extra ``test``) is not installed, and
#: the README's first command runs without it.
TIMEOUT = 600.0


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set a time limit for each test, so that a test that hangs does not stop the whole
    run.
    """
    if (
        config.pluginmanager.has_plugin("timeout")
        and config.getoption("timeout") is None
    ):
        config.option.timeout = TIMEOUT


@pytest.hookimpl(tryfirst=True)  # This must run before ``-m`` chooses.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that were measured to be long (``benchmarks/long_tests.py``)."""
    names = Path(__file__).with_name("tests") / "long.txt"
    measured = set(names.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in measured:
            item.add_marker(pytest.mark.long)


def pytest_collection_finish() -> None:
    """Exclude everything that is loaded by now from garbage collection: these million
    objects stay until the end.

    Also switch off Hypothesis' time limit for examples, because any example can be slow
    on a busy machine.
    """
    if "hypothesis" in sys.modules:
        settings = importlib.import_module("hypothesis").settings
        settings.register_profile("untimed", deadline=None)
        settings.load_profile("untimed")
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs without ``--seed`` draw the seed 0, because tests compare their results
    with stored ones.
    """
    monkeypatch.setattr(secrets, "randbits", lambda bits: 0)


@pytest.fixture(autouse=True)
def _a_path_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the checkout off ``sys.path``, and restore the path after each test. Scripts
    that are imported put the checkout there, where its egg-info would be a second
    distribution with our plugin.
    """
    checkout = str(Path(__file__).parent)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != checkout])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start one worker more than there are processors, because many tests wait for a
    server, a browser or a clock.
    """
    processors = os.cpu_count() or 1
    return processors + 1 if config.option.numprocesses == "auto" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker consecutive tests, and let a worker that has finished take some
    of another's. In this way, the fixtures that a file shares are mostly made once.
    """
    if config.getoption("dist") != "load":  # Other modes keep xdist's own schedule.
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Iterator[None]:
    """Fail if a file of tests leaves a running event loop behind, because
    ``asyncio.run`` would fail in the files after it.
    """
    yield
    if nextitem is None or nextitem.path != item.path:
        with contextlib.suppress(RuntimeError):
            pytest.fail(
                f"{item.path.name} leaves {asyncio.get_running_loop()} running; whose fixture is it?"
            )


@pytest.fixture(scope="session", autouse=True)
def _installed() -> Iterator[None]:
    """Cache the installed distributions. Otherwise each session in this process would
    read two hundred files of metadata three times.
    """
    found = importlib.metadata.distributions

    @functools.cache
    def kept(*where: tuple[str, int]) -> list[importlib.metadata.Distribution]:
        return list(found())

    def distributions(**chosen: Any) -> Iterable[importlib.metadata.Distribution]:
        # A test may put a distribution on the path, or into a folder that is on it
        # already.
        there = (entry for entry in sys.path if os.path.exists(entry))
        return (
            found(**chosen)
            if chosen
            else kept(*((entry, os.stat(entry).st_mtime_ns) for entry in there))
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.metadata, "distributions", distributions)
        for name in ("entry_points", "files"):
            own = functools.cached_property(
                getattr(importlib.metadata.Distribution, name).fget
            )
            own.__set_name__(importlib.metadata.Distribution, name)
            patch.setattr(importlib.metadata.Distribution, name, own)
        yield


@pytest.fixture(scope="session")
def whole_package() -> None:
    """Import all modules of the package for which the required extras are installed."""
    # Functions import this module. A second copy of it would not catch the errors of
    # the compiled parser that the first copy loaded.
    import aiohttp.web  # noqa: F401

    import cheesebench

    # Sessions inside this process unload the modules that they have imported. These
    # must stay: numpy cannot be imported twice, and Hypothesis (whose pytest plugin
    # loads all of it at the end of every session) takes longer than everything else.
    for name in (
        "hypothesis",
        "scipy.optimize",
        "scipy.special",
        "scipy.stats",
        "tabulate",
        "jinja2",
    ):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(cheesebench.__path__, "cheesebench."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "cheesebench").startswith("cheesebench"):
                raise
    # As after collection, because each session ends with several garbage collections.
    gc.freeze()


@pytest.fixture
def pytester(whole_package: None, pytester: pytest.Pytester) -> pytest.Pytester:
    """The same as pytest's own fixture. A session in this process unloads what it has
    imported, so the package is imported first and stays.
    """
    return pytester


@pytest.fixture(scope="session")
def under_hash_seeds() -> Callable[..., list[str]]:
    """A function that returns what a program, with these arguments, prints under
    several values of PYTHONHASHSEED, each in a process of its own.
    """

    def printed(program: str, *arguments: str) -> list[str]:
        return [
            subprocess.run(
                [sys.executable, "-c", program, *arguments],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
                capture_output=True,
                encoding="utf-8",
                check=True,
            ).stdout
            for seed in ("0", "2")
        ]

    return printed
