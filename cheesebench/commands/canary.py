"""``cheesebench canary``: prints the string that marks CheeseBench's files, and tests
whether a model has read it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cheesebench import canary
from cheesebench.commands import FINDINGS
from cheesebench.commands.common import add_json, add_option, add_options, describe
from cheesebench.errors import OptionError
from cheesebench.experiment.settings import Given, language_models
from cheesebench.options import OPTIONS
from cheesebench.planning.recall import answers
from cheesebench.plugin_manager import installed_plugins
from cheesebench.redaction import redact
from cheesebench.terminal import printable

#: Number of characters after which a shown answer is cut off.
SHOWN = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints the string that is in CheeseBench's protocols, pages and logs. With --model, asks the model to complete it "
        "(one call). The exit code is 1 if it can, because it has then very probably read such files. If it cannot, that "
        "proves nothing.",
        "",
        "--model NAME",
        "--model openai/llama3.2 --base-url http://127.0.0.1:11434/v1 --json",
    )
    add_option(parser, "model", help="ask this model; repeatable (or use commas)")
    add_options(
        parser,
        "base-url",
        *(option.name for option in OPTIONS if option.models_only),
        "models",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    given = Given(vars(options))
    values = given.resolve()
    names = values.model
    if not names:
        print(json.dumps({"canary": canary.CANARY}) if options.json else canary.CANARY)
        return 0
    given.check()
    plugins = installed_plugins()
    models = language_models(plugins, names, given, values, Path())
    for name in names:
        if name not in models:
            raise OptionError(
                f"'{name}' is not a language model, so it cannot complete a text. Name a language model."
            )
    told = answers(models, canary.QUESTION, lambda line: print(line, file=sys.stderr))
    found = [
        (name, canary.recalled(text), redact(text)[:SHOWN])
        for name, text in told.items()
    ]
    _print(found, options.json)
    return FINDINGS if any(characters for _, characters, _ in found) else 0


def _print(found: Sequence[tuple[str, int, str]], as_json: bool) -> None:
    if as_json:
        values = {
            name: {"characters": characters, "answer": answer}
            for name, characters, answer in found
        }
        print(json.dumps(values))
    else:
        for name, characters, answer in found:
            print(printable(f"{name}: {_said(characters)} {answer!r}"))


def _said(characters: int) -> str:
    return (
        f"completes {characters} of {len(canary.HIDDEN)} characters: it has read CheeseBench's files."
        if characters
        else "does not complete it."
    )
