"""The entry point of the pytest plugin. pytest imports it in every project, so it imports next to nothing.

Without ``--model`` or ``--study`` it only registers options. With one of them, ``cheesebench.pytest_session`` is
loaded and does the work.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Literal, cast

import pytest

from cheesebench.options import BY_KEY, INI, LONG, OPTIONS, Option

#: The spellings of each option that are ours in this session, by key; the short one may be another plugin's.
SPELLINGS = pytest.StashKey[Mapping[str, Sequence[str]]]()

#: What is given for a session of ours.
_RUNS_MODELS = {name for key in ("model", "study") for name in (BY_KEY[key].short, BY_KEY[key].long)}


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, None, None]:
    """Register our options after those of all other plugins and conftests, and give way to them."""
    _keep_root(early_config, parser, args)
    try:
        yield
    except SystemExit as error:
        # Without a word, and maybe with the exit status of success, nothing would have been run.
        if any(word.partition("=")[0] in _RUNS_MODELS for word in args):
            raise ended(error) from None
        raise
    taken = _taken(parser, [option.short for option in OPTIONS])
    group = parser.getgroup("cheesebench", "CheeseBench: does a model do as well as the rodent?")
    for setting in INI:
        parser.addini(setting.name, setting.help, type=cast(Literal["args"], setting.kind))
    spellings = {option.key: [name for name in (option.short, option.long) if name not in taken] for option in OPTIONS}
    for option in OPTIONS:
        group.addoption(*spellings[option.key], dest=option.destination, **option.arguments())
    early_config.stash[SPELLINGS] = spellings
    _take_profile(early_config, args, spellings["profile"])
    _refuse_unknown(parser, args)


def ended(error: SystemExit) -> pytest.UsageError:
    """Return what is said of a conftest.py, or a plugin, that ends the program while it is loaded."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return pytest.UsageError(
        f"{where}: ends the program while it is loaded (SystemExit: {error}). Fix it, or remove it."
    )


def _keep_root(config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Have pytest take no value of ours for a path to tests."""
    with_value = [option for option in OPTIONS if not option.flag]
    names = {name for option in with_value for name in (option.short, option.long)}
    if names.isdisjoint(args):
        return
    from cheesebench.pytest_roots import redetect

    redetect(config, parser, args, names.difference(_taken(parser, [option.short for option in with_value])))


def _take_profile(config: pytest.Config, args: list[str], spellings: Sequence[str]) -> None:
    """Put the options of a profile before those that were typed; ``--profile`` may be another plugin's."""
    if not any(arg.partition("=")[0] in spellings for arg in args):
        return
    from cheesebench.errors import CheeseBenchError
    from cheesebench.profiles import expanded, find_file

    try:
        args[:0] = expanded(args, find_file(config.rootpath), spellings=spellings)[0]
    except CheeseBenchError as error:
        raise pytest.UsageError(str(error)) from error


def _taken(parser: pytest.Parser, names: list[str]) -> list[str]:
    """Return the names that are already options. pytest has no API for that, so parse them and see."""
    probes = [f"{name}=probe" for name in names]
    try:
        _, unknown = parser.parse_known_and_unknown_args(probes)
    except pytest.UsageError:  # one of them takes no value, or rejects this one
        if len(names) == 1:
            return names
        middle = len(names) // 2
        return _taken(parser, names[:middle]) + _taken(parser, names[middle:])
    return [name for name, probe in zip(names, probes, strict=True) if probe not in unknown]


def _refuse_unknown(parser: pytest.Parser, args: list[str]) -> None:
    """Raise UsageError with a suggestion for a misspelt option of ours: ``--cheese-modl``, ``--desing``."""
    if not any(arg.startswith("--") for arg in args):
        return
    prefix = LONG.rstrip("-")
    try:
        _, unknown = parser.parse_known_and_unknown_args(args)
    except pytest.UsageError:  # another mistake, which pytest itself is about to report
        return
    for arg in unknown:
        name = arg.partition("=")[0]
        is_long = name.startswith(prefix)
        if not is_long and not name.startswith("--"):
            continue
        from cheesebench.errors import did_you_mean

        # Compare without the common prefix, which would make any two names similar.
        bare = name.removeprefix(prefix).removeprefix("bench").lstrip("-")
        hint = did_you_mean(bare, [option.name for option in OPTIONS]).replace(" '", f" '{LONG if is_long else '--'}")
        if bare in ("lesion", "lesions"):
            hint = " A lesion is a control: write '--control blind'."
        if is_long or hint:
            raise pytest.UsageError(f"There is no option '{name}'.{hint}")


def pytest_configure(config: pytest.Config) -> None:
    """Start the session's own plugin when a model is given."""
    if _is_given(config, "model") or _is_given(config, "study"):
        from cheesebench.pytest_session import start

        start(config)
        return
    # What a project sets for all of its runs (addopts) may wait for the runs that have a model.
    typed = {str(argument).split("=", 1)[0] for argument in config.invocation_params.args}
    for option in OPTIONS:
        mine = typed.intersection(_spellings(config, option))
        if mine and _is_given(config, option.key):
            raise pytest.UsageError(
                f"{mine.pop()} has no effect without a model: add --model NAME, for example --model random."
            )
    # pytest itself would say that there is no such file.
    for path in config.args:
        if path in typed and path.endswith(".protocol.yaml"):
            raise pytest.UsageError(f"{path} needs a model: add --model NAME, for example --model random.")


def _is_given(config: pytest.Config, key: str) -> bool:
    return config.getoption(BY_KEY[key].destination, None) not in (None, False, [])


def _spellings(config: pytest.Config, option: Option) -> Sequence[str]:
    return config.stash.get(SPELLINGS, {}).get(option.key, ())
