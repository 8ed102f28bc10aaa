"""The entry point of the pytest plugin. pytest imports it in every project, so it
imports next to nothing.

Without ``--model`` or ``--study`` it only registers and checks options, and supplies a
fixture. With one of them, ``cheesebench.pytest_session`` is loaded and does the work.
"""

from __future__ import annotations

import copy
import os
import shlex
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from _pytest.config.findpaths import determine_setup

import cheesebench
from cheesebench.options import BY_KEY, INI, LONG, OPTIONS, Option
from cheesebench.pytest_options import PROFILED, SPELLINGS, ended

if TYPE_CHECKING:
    from cheesebench.interop.verdicts import ScoreVerdict


@pytest.fixture
def score_verdict(request: pytest.FixtureRequest) -> Callable[..., ScoreVerdict]:
    """Return the function ``cheesebench.verdict``, for logs of other evaluations. Its
    results appear in JUnit reports.
    """

    def judge(*logs: Any, **how: Any) -> ScoreVerdict:
        found = cheesebench.verdict(*logs, **how)
        request.node.user_properties.append(("verdict", str(found)))
        return found

    return judge


def joined(words: Sequence[str], options: Collection[str]) -> list[str]:
    """Return a command line with each of ``options`` joined to its value:
    ``--NAME=VALUE``.
    """
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in options else None
        found.append(word if value is None else f"{word}={value}")
    return found


def redetect(
    config: pytest.Config,
    parser: pytest.Parser,
    args: list[str],
    options: Collection[str],
) -> None:
    """Repeat pytest's setup without the values of ``options``, because pytest took them
    for paths, and correct ``args``.

    Raise UsageError, with a spelling that works, if the setup cannot be repeated in
    this version of pytest.
    """
    # Change nothing if the values made no difference.
    ours = [
        word
        for word, value in pairwise(args)
        if word in options and _exists(config, value)
    ]
    if not ours:
        return
    try:
        _set_up(config, parser, args, options)
    except (AttributeError, ImportError, TypeError):
        raise pytest.UsageError(
            f"{ours[0]}: this version of pytest reads the value as a path to tests. Write {ours[0]}=VALUE, without a space."
        ) from None


def _set_up(
    config: pytest.Config,
    parser: pytest.Parser,
    args: list[str],
    options: Collection[str],
) -> None:
    # This does what _pytest.config.Config does at the beginning of a session. There is
    # no public API for it.
    given = [
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *map(os.fspath, config.invocation_params.args),
    ]
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
    config.known_args_namespace = parser.parse_known_args(
        args, namespace=copy.copy(config.option)
    )
    if config.known_args_namespace.confcutdir is None:
        config.known_args_namespace.confcutdir = str(
            ini.parent if ini is not None else root
        )


def _exists(config: pytest.Config, value: str) -> bool:
    try:
        return (config.invocation_params.dir / value).exists()
    except (OSError, ValueError):  # Not every value can be a path.
        return False


#: Options that start a session of ours.
_RUNS_MODELS = {
    name for key in ("model", "study") for name in (BY_KEY[key].short, BY_KEY[key].long)
}


def _runs_models(words: Iterable[str]) -> bool:
    return any(word.partition("=")[0] in _RUNS_MODELS for word in words)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Register our options last, because the options of other plugins and of conftests
    take precedence. Raise UsageError for options that cannot be read.
    """
    _keep_root(early_config, parser, args)
    try:
        yield
    except SystemExit as error:
        # Otherwise the session would end without a message, perhaps with exit status 0.
        if _runs_models(args):
            raise ended(error) from None
        raise
    taken = _taken(parser, [option.short for option in OPTIONS])
    group = parser.getgroup(
        "cheesebench", "CheeseBench: does a model do as well as the rodent?"
    )
    for setting in INI:
        parser.addini(
            setting.name, setting.help, type=cast(Literal["args"], setting.kind)
        )
    spellings = {
        option.key: [name for name in (option.short, option.long) if name not in taken]
        for option in OPTIONS
    }
    for option in OPTIONS:
        group.addoption(
            *spellings[option.key], dest=option.destination, **option.arguments()
        )
    early_config.stash[SPELLINGS] = spellings
    _check_options(early_config, parser, args)


def _check_options(
    config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Raise UsageError for options that cannot be read, and report this wherever a
    session reports.
    """
    try:
        _take_profile(config, args, config.stash[SPELLINGS]["profile"])
        _refuse_unknown(parser, args)
        if _runs_models(args):
            parser.parse_known_and_unknown_args(args)
    except pytest.UsageError as error:
        raise _session().refusals.refused_early(config, args, error) from None


def _keep_root(config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Keep pytest from taking a value of our options for a path."""
    with_value = [option for option in OPTIONS if not option.flag]
    names = {name for option in with_value for name in (option.short, option.long)}
    if names.isdisjoint(args):
        return

    redetect(
        config,
        parser,
        args,
        names.difference(_taken(parser, [option.short for option in with_value])),
    )


def _take_profile(
    config: pytest.Config, args: list[str], spellings: Sequence[str]
) -> None:
    """Insert a profile's options before the options on the command line. Raise
    UsageError for a profile that does not exist, or is invalid. ``spellings`` lacks
    ``--profile`` if that is another plugin's option.
    """
    if not any(arg.partition("=")[0] in spellings for arg in args):
        return
    # Imported here, because pytest imports this module in every project.
    from cheesebench.profiles import expanded, find_file

    try:
        added, _ = expanded(args, find_file(config.rootpath), spellings=spellings)
    except cheesebench.CheeseBenchError as error:
        raise pytest.UsageError(str(error)) from error
    args[:0] = added
    names = {word.partition("=")[0] for word in added}
    config.stash[PROFILED] = [o.key for o in OPTIONS if o.long in names]


def _taken(parser: pytest.Parser, names: list[str]) -> list[str]:
    """Return the names that are already options. pytest has no API for this, so parse
    them and see.
    """
    probes = [f"{name}=probe" for name in names]
    try:
        _, unknown = parser.parse_known_and_unknown_args(probes)
    except pytest.UsageError:  # an option takes no value, or rejects this one
        if len(names) == 1:
            return names
        middle = len(names) // 2
        return _taken(parser, names[:middle]) + _taken(parser, names[middle:])
    return [
        name for name, probe in zip(names, probes, strict=True) if probe not in unknown
    ]


def _refuse_unknown(parser: pytest.Parser, args: list[str]) -> None:
    """Raise UsageError for a misspelt option of ours (``--cheese-modl``, ``--desing``),
    with a suggestion if there is one.
    """
    if not any(arg.startswith("--") for arg in args):
        return
    prefix = LONG.rstrip("-")
    try:
        _, unknown = parser.parse_known_and_unknown_args(args)
    except pytest.UsageError:  # pytest will report this mistake.
        return
    for arg in unknown:
        name = arg.partition("=")[0]
        is_long = name.startswith(prefix)
        if not is_long and not name.startswith("--"):
            continue
        # Compare without the common prefix, which would make any two names similar.
        bare = name.removeprefix(prefix).removeprefix("bench").lstrip("-")
        hint = cheesebench.did_you_mean(
            bare, [option.name for option in OPTIONS]
        ).replace(" '", f" '{LONG if is_long else '--'}")
        hint = _HINTS.get(bare, hint)
        if is_long or hint:
            raise pytest.UsageError(f"There is no option '{name}'.{hint}")


#: Hints for options that we do not have, where a similar name would be a wrong one.
_HINTS = {
    **dict.fromkeys(
        ("lesion", "lesions"), " A lesion is a control: write '--control blind'."
    ),
    "max-steps": " The limit of a trial's steps is part of its protocol.",
}


def _session() -> Any:
    """Return the package that runs models. It is imported here because pytest imports
    this module in every project.
    """
    import cheesebench.pytest_session

    return cheesebench.pytest_session


def pytest_configure(config: pytest.Config) -> None:
    """Start a session of ours if a model or a study is given. Otherwise refuse options
    that need one.
    """
    runs_models = _is_given(config, "model") or _is_given(config, "study")
    check = _refuse_others if runs_models else _refuse_without_model
    try:
        check(config, _typed(config))
    except pytest.UsageError as error:
        raise _session().refusals.refused(config, error) from None
    if runs_models:
        _session().start(config)


def _refuse_without_model(config: pytest.Config, typed: set[str]) -> None:
    """Raise UsageError for a typed option or protocol file that needs a model."""
    # Options that a project sets in addopts apply only to runs with a model.
    for option in OPTIONS:
        mine = typed.intersection(_spellings(config, option))
        if mine and _is_given(config, option.key):
            raise pytest.UsageError(
                f"{mine.pop()} has no effect without a model: add --model NAME, for example --model random."
            )
    # Otherwise pytest would report that it cannot find the file, even if it exists.
    for path in config.args:
        if path in typed and path.endswith(".protocol.yaml"):
            raise pytest.UsageError(
                f"{path} needs a model: add --model NAME, for example --model random."
            )


def _typed(config: pytest.Config) -> set[str]:
    return {str(word).split("=", 1)[0] for word in config.invocation_params.args}


#: Options that share their short spelling with a widely used plugin. If the spelling
#: belongs to that plugin, it is not refused.
_SHARED = frozenset({"timeout"})


def _refuse_others(config: pytest.Config, typed: set[str]) -> None:
    """Raise UsageError for a typed short option that belongs to another plugin, because
    it would silently have no effect on the model.
    """
    for option in OPTIONS:
        spellings = _spellings(config, option)
        taken = spellings and option.short not in spellings
        if not taken or option.short not in typed or option.key in _SHARED:
            continue
        if typed.isdisjoint(spellings):
            raise pytest.UsageError(
                f"{option.short} belongs to another plugin or a conftest.py here: write {option.long}. "
                f"(If you mean the other option, give both.)"
            )


def _is_given(config: pytest.Config, key: str) -> bool:
    return config.getoption(BY_KEY[key].destination, None) not in (None, False, [])


def _spellings(config: pytest.Config, option: Option) -> Sequence[str]:
    return config.stash.get(SPELLINGS, {}).get(option.key, ())
