"""Checks the arguments of the public functions, and makes what they say name them.

Texts are written for the command line, with the names of options; in Python, each
option is an argument. Whatever a public function returns, prints or raises passes
``in_python`` (or ``report_in_python``) once, where it leaves CheeseBench. The commands
call the same functions, and keep the texts as they are (``on_command_line``).
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import re
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, TypeVar

from cheesebench import errors, options
from cheesebench.chat import BackendSpec
from cheesebench.interfaces import AgentSpec

P = ParamSpec("P")
T = TypeVar("T")

#: Maps an option of a command to the argument of the function with the command's name.
_OF_COMMANDS = {
    **{
        name: name
        for name in ("cluster", "dpi", "effort", "icc", "rate", "score", "trials")
    },
    **{name: name for name in ("value", "width", "ask", "baselines")},
    "first-model": "models",
    "only-seen": "only_seen",
    "output": "path",
    "speed": "speed",
    "format": "formats",
    "part": "parts",
    "protocol": "protocols",
    "range": "limits",
    "second-model": "models",
}
#: Maps an option to its argument if their names differ.
_RENAMED = {"model": "models", "models": "models_file"}
#: Matches a word that continues the sentence after an option, and is not its value.
_NO_VALUE = re.compile(
    "and|applies|are|asks|can|cannot|continues|corrects|does|for|from|gives|has|ignores"
    "|instead|is|leaves|makes|may|must|names|needs|or|out|reaches|reads|says|sets|shows"
    "|takes|that|then|to|was|where|which|with|works|writes"
)
#: Matches either a command for a person to type, which stays unchanged, or an option
#: and the next word.
_OPTION = re.compile(
    r"(?P<command>\b(?:pytest|cheesebench|pip|python3?|mkdocs)\b(?:\s[^\s,;:()']+)*"
    r"\s--[^,;:()']*)"
    r"|(?<![\w-])--(?:cheese-)?(?P<name>[a-z]+(?:-[a-z]+)*)"
    # The value may be at the beginning of the next line. A colon inside a word, as in
    # an address, is part of it.
    r"(?:(?:[ =]|\n[ >]*)(?P<value>'[^']*'|(?:[^\s,;:()']|:(?=[^\s,;:()']))*[^\s,;:()'.]))?"
)


#: Patterns of commands in messages, each with the text that replaces it in Python.
_CALLS = {
    "--range LOW HIGH": "limits=(LOW, HIGH)",
    r"\bpytest --resume ([\w.-]*\w)": r"cheesebench.run(resume='\1')",
    r"\bcheesebench compare (\S+) --first-model (\S+)": r"cheesebench.compare('\1', models=('\2', None))",
    r"\bcheesebench (plan|lint) (says|has)": r"cheesebench.\1(...) \2",
    r"The environment variable (\w+) has no key. Export it": r"The environment variable \1 has no key. Set it "
    r"(os.environ['\1'] = KEY)",
    "'cheesebench audit' prints": "cheesebench.audit(...) has",
    r"\bcheesebench show \S+ --protocol \S+ --unparsed": "column unparsed of run.calls()",
    r"`?\bcheesebench show RUN\b`?": "run.calls()",
    r"Make a run \(pytest [^)]*\), bless it": "Make a run, bless it on the command line",
    "'cheesebench models' lists the models": "cheesebench.catalogue() lists models and agents, and plugins=[SPEC] adds an "
    "agent of yours",
    "Load the plugin that did": "If it is an agent or a backend of yours, give plugins=[...] again",
    "'cheesebench models'": "cheesebench.catalogue('models')",
    "Is it in a plugin\\? 'cheesebench plugins' shows what is installed": "Is it your function? "
    "plugins=BackendSpec.of('NAME', FUNCTION) adds it",
}


def name_of(key: str) -> str:
    """Return the argument for the option with this key."""
    return _RENAMED.get(key, key)


_FLAGS = {key for key, option in options.BY_KEY.items() if option.flag} | {
    "ask",
    "only_seen",
}
_ARGUMENTS = _OF_COMMANDS | {
    option.name: name_of(key) for key, option in options.BY_KEY.items()
}


#: Whether a command is running, whose user types options.
_TYPES_OPTIONS = ContextVar("_TYPES_OPTIONS", default=False)


@contextmanager
def on_command_line() -> Iterator[None]:
    """Leave options in all texts of the block."""
    token = _TYPES_OPTIONS.set(True)
    try:
        yield
    finally:
        _TYPES_OPTIONS.reset(token)


def in_python(text: str) -> str:
    """Return a text with arguments in place of options, such as ``subjects=0`` for
    ``--subjects 0``, unless a command is running.
    """
    if _TYPES_OPTIONS.get():
        return text
    for command, call in _CALLS.items():
        text = re.sub(command.replace(" ", r"\s+"), call, text)
    said = _OPTION.sub(_argument, text)
    # The argument models= stands for two options.
    return said.replace("models= and models=", "models=(FIRST, SECOND)")


#: Matches what a reader of an HTML page does not read as a sentence of ours: tags,
#: scripts (which have the replies of models), styles, and verbatim text.
_NO_SENTENCE = re.compile(
    r"(<(?:script|style|pre|textarea)\b.*?</(?:script|style|pre|textarea)>|<[^>]*>)",
    re.DOTALL,
)


def report_in_python(report: str, suffix: str) -> str:
    """Return a report with arguments in place of options. ``suffix`` is the ending of
    its file. Reports for programs, and pictures, stay as they are.
    """
    if suffix in (".md", ".txt"):
        return in_python(report)
    if suffix != ".html":
        return report
    parts = _NO_SENTENCE.split(report)
    # Every other part is a match.
    return "".join(
        part if place % 2 else in_python(part) for place, part in enumerate(parts)
    )


def _argument(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    key = _ARGUMENTS.get(name or "")
    if key is None:
        return found[0]
    if key in _FLAGS:
        return f"{key}=True{found[0].removeprefix(f'--{name}')}"
    if value is None:
        return f"{key}="
    if value.startswith("'"):
        return f"{key}={value}"
    if _NO_VALUE.fullmatch(value):
        return f"{key}= {value}"
    inner, is_pair, one = value.partition("=")
    if is_pair and key.endswith("_option"):
        return f"{key}={{'{inner}': {_literal(one)}}}"
    is_text = key in options.BY_KEY and kind_of(options.BY_KEY[key]) is TEXT
    return f"{key}={_literal(value, is_text)}"


def _literal(value: str, is_text: bool = False) -> str:
    """Return a value as a Python literal. A placeholder, in capitals or brackets, stays
    as it is, and an empty value becomes ``...``.
    """
    if value.isupper() or value == "" or value.startswith("["):
        return value or "..."
    number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", value)
    return value if number and not is_text else repr(value)


@contextmanager
def named() -> Iterator[None]:
    """Make errors in the block name arguments instead of options."""
    try:
        yield
    except errors.CheeseBenchError as error:
        if error.args and isinstance(error.args[0], str):
            said, *others = error.args
            error.args = (in_python(said), *others)
        raise


class Kind(NamedTuple):
    """What an argument takes."""

    wanted: str
    """Valid values in words, to follow "expected"."""
    read: Callable[[Any], Any]
    """Returns the value as the function needs it, or raises TypeError, ValueError or
    OverflowError if it is not valid.
    """


def _text(value: Any) -> str:
    text = os.fspath(value)
    if not isinstance(text, str):
        raise TypeError
    return text


def _unchanged(value: Any) -> Any:
    _text(value)
    return value


def _names(value: Any) -> Any:
    """Return a name, a path or a ``Run`` unchanged, and several of them as a list."""
    if isinstance(value, (str, os.PathLike)):
        return _unchanged(value)
    if hasattr(value, "columns"):  # A data frame would give its columns.
        raise TypeError
    return [_unchanged(one) for one in value]


def _some(value: Any) -> Any:
    if (found := _names(value)) == []:
        raise ValueError
    return found


def _whole(value: Any) -> int:
    """Return an integer as int. It may be NumPy's, or a float such as 1e6, but not True
    or False.
    """
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return operator.index(value)


def _number(value: Any) -> float:
    if isinstance(value, (bool, str, bytes)):
        raise TypeError
    return float(value)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else str(_whole(value))


def _truth(value: Any) -> bool:
    if value not in (True, False):
        raise ValueError
    return bool(value)


def _pair(value: Any) -> tuple[Any, Any]:
    if isinstance(value, str):
        raise TypeError
    first, second = value
    return first, second


def _models(value: Any) -> tuple[str | None, str | None]:
    first, second = _pair(value)
    return (
        None if first is None else _text(first),
        None if second is None else _text(second),
    )


def _scores(value: Any) -> Any:
    """Return a path, a ``Run`` or scores unchanged. An iterator of scores becomes a
    list.
    """
    return _unchanged(value) if isinstance(value, str | os.PathLike) else _held(value)


def _held(value: Any) -> Any:
    if isinstance(value, bytes | Mapping):
        raise TypeError
    if isinstance(value, Iterator):
        return [*value]
    len(value)  # Raises TypeError for a value that is not a collection.
    return value


def _limits(value: Any) -> tuple[float, float]:
    low, high = _pair(value)
    return _number(low), _number(high)


def _objects(value: Any) -> tuple[Any, ...]:
    if isinstance(value, AgentSpec | BackendSpec):
        return (value,)
    if isinstance(value, (str, Mapping)):
        raise TypeError
    return tuple(value)


def _called(value: Any) -> Any:
    if not callable(value):
        raise TypeError
    return value


def _progress(value: Any) -> Any:
    return value if callable(value) else _truth(value)


TEXT = Kind("text", _text)
PATH = Kind("a path, as text or pathlib.Path", _unchanged)
RUN = Kind("a run, or its id, directory or file", _unchanged)
NAMES = Kind("a name, or a list of names", _names)
SOME = Kind("a name, or a list of at least one (or leave it out)", _some)
RUNS = Kind("a run, or a list of at least one", _some)
FILES = Kind("a name, file or directory, or a list of at least one", _some)
WHOLE = Kind("a whole number", _whole)
NUMBER = Kind("a number", _number)
WORD = Kind("text or a whole number", _word)
TRUTH = Kind("True or False", _truth)
MODELS = Kind("two names of models, or None for either", _models)
SCORES = Kind(
    "a run, a log, a data frame with a column 'score', or a list of scores", _scores
)
LIMITS = Kind("two numbers, the lowest and the highest", _limits)
OBJECTS = Kind(
    "a list of objects with hooks, agents (AgentSpec) or backends (BackendSpec)",
    _objects,
)
CALLED = Kind("a function that is called with a line", _called)
PROGRESS = Kind("True, False or a function that is called with a line", _progress)

#: What the arguments of the public functions take, by name.
KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("first", "second", "run", "resume"), RUN),
    "models": NAMES,
    **dict.fromkeys(("protocols", "view", "views", "formats", "parts"), SOME),
    "only": SOME,
    **dict.fromkeys(("results", "baselines", "path", "directory"), PATH),
    **dict.fromkeys(("design", "protocol", "model", "variant", "format", "name"), TEXT),
    **dict.fromkeys(("score", "cluster", "kind"), TEXT),
    **dict.fromkeys(("subject", "trial", "trials", "seed", "processes", "dpi"), WHOLE),
    "subjects": WHOLE,
    **dict.fromkeys(("value", "icc", "effort", "width", "rate"), NUMBER),
    **dict.fromkeys(("ask", "observations", "only_seen"), TRUTH),
    "runs": RUNS,
    "files": FILES,
    "limits": LIMITS,
    "plugins": OBJECTS,
    "progress": PROGRESS,
    "tell": CALLED,
}


def of_class(value: type) -> str:
    """Return the remedy for a class that is given where an agent is named."""
    name = value.__name__
    return f"To run your agent {name}, give plugins=[AgentSpec('NAME', {name}, memory='life')] and the model 'NAME'."


def of_function(value: Callable[..., Any]) -> str:
    """Return the remedy for a function that is given where a model is named."""
    name = getattr(value, "__name__", "")
    name = name if name.isidentifier() else "FUNCTION"
    return (
        f"If {name} replies to messages as a language model does, give plugins=BackendSpec.of('NAME', {name}) and "
        "the model 'NAME/ANYTHING'."
    )


def read(name: str, kind: Kind, value: Any) -> Any:
    """Return the value of an argument. Raise OptionError if it is not valid."""
    try:
        return kind.read(value)
    except (TypeError, ValueError, OverflowError):
        seen = reprlib.repr(value)
        remedy = ""
        if isinstance(value, AgentSpec):
            seen = f"AgentSpec({value.name!r}, ...)"
            remedy = f" Give its name, '{value.name}', and plugins=[SPEC]."
        elif isinstance(value, BackendSpec):
            seen = f"BackendSpec({value.name!r}, ...)"
            remedy = (
                f" Give a model of it, '{value.name}/ANYTHING', and plugins=[SPEC]."
            )
        elif isinstance(value, type):
            seen = value.__name__
            remedy = f" {of_class(value)}"
        elif callable(value) and name in ("models", "plugins"):
            remedy = f" {of_function(value)}"
        elif hasattr(value, "shape"):  # a data frame, or an array
            seen = f"<{type(value).__name__}>"
        elif hasattr(value, "rows"):
            seen = f"<{type(value).__name__}>"
            remedy = " This is a table: its frame() returns a data frame."
        raise errors.OptionError(
            f"{name}={seen}: expected {kind.wanted}.{remedy}"
        ) from None


def kind_of(option: options.Option) -> Kind:
    """Return what the argument for an option takes."""
    if option.flag:
        return TRUTH
    if option.metavar == "N":  # A range such as 3-7 is allowed.
        return WORD
    return {int: WHOLE, float: NUMBER}.get(option.type, TEXT)  # type: ignore[call-overload,no-any-return]


def _no_call(
    function: str, error: TypeError, given: Mapping[str, Any], known: Mapping[str, Any]
) -> errors.OptionError:
    """Return the error for a call with too few, too many or unknown arguments."""
    other = next((name for name in given if name not in known), "")
    meant = _ARGUMENTS.get(other.replace("_", "-"))
    hint = errors.did_you_mean(other, known) or f" See help(cheesebench.{function})."
    if meant in known:
        pair = "=(FIRST, SECOND)" if other.startswith(("first_", "second_")) else "="
        hint = f" Give {meant}{pair} instead."
    return errors.OptionError(f"{function}(): {error}.{hint}")


def checked(**own: Kind) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Check the arguments of a public function against ``own`` or KINDS, and make its
    errors name them.

    Defaults and ``**options`` are not checked. A given empty tuple is checked even if
    it equals the default, because it may be a selection that has found nothing.
    """

    def wrapped(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        kinds = {
            name: own.get(name) or KINDS[name]
            for name, parameter in signature.parameters.items()
            if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
        }
        known: dict[str, object] = dict(kinds)
        if any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values()):
            known |= dict.fromkeys(_ARGUMENTS.values())

        @functools.wraps(function)
        def call(*given: P.args, **by_name: P.kwargs) -> T:
            try:
                bound = signature.bind(*given, **by_name)
            except TypeError as error:
                raise _no_call(function.__qualname__, error, by_name, known) from None
            with named():
                for name in kinds.keys() & bound.arguments.keys():
                    value = bound.arguments[name]
                    default = signature.parameters[name].default
                    if value is not default or default == ():
                        bound.arguments[name] = read(name, kinds[name], value)
                try:
                    return function(*bound.args, **bound.kwargs)
                except KeyboardInterrupt as error:
                    raise errors.Interrupted(*error.args) from None

        return call

    return wrapped
