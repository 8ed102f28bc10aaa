"""``cheesebench schema``: prints the JSON Schema of protocol files, or installs it for
VS Code.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from cheesebench.commands import common
from cheesebench.errors import OptionError
from cheesebench.files import write_whole
from cheesebench.protocol import SUFFIX
from cheesebench.protocol.schema import FILE_NAME, schema_text

#: ``SETTING`` is a key of VS Code's settings, for its YAML extension (by Red Hat).
#: ``FOLDER`` is the folder of the settings file.
SETTING, FOLDER = "yaml.schemas", ".vscode"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.describe(
        parser,
        "For editors. Begin a protocol with the line\n# yaml-language-server: $schema=protocol.schema.json",
        "--output protocol.schema.json",
        "--install",
    )
    parser.add_argument(
        "--install",
        action="store_true",
        help="set up VS Code to check and complete protocols (writes into .vscode in this directory)",
    )
    common.add_output(parser)


def run(options: argparse.Namespace) -> int:
    if not options.install:
        common.write_output(schema_text(), options.output)
        return 0
    if options.output is not None:
        raise OptionError(
            "--install writes into the folder .vscode, so --output has no effect. Remove it."
        )
    settings, schema = Path(FOLDER) / "settings.json", Path(FOLDER) / FILE_NAME
    text = with_schema(
        settings.read_text(encoding="utf-8") if settings.is_file() else "",
        schema.as_posix(),
    )
    schema.parent.mkdir(exist_ok=True)
    write_whole(schema, schema_text())
    write_whole(settings, text)
    print(common.one_line(f"Wrote {schema} and {settings}."))
    print(f"With the extension 'YAML', VS Code now checks and completes *{SUFFIX}.")
    return 0


def with_schema(settings: str, schema: str) -> str:
    """Return the settings of VS Code (JSON) with the schema for protocol files added.
    Raise OptionError if they cannot be read.

    Other settings are kept. A file with comments, which VS Code allows, counts as
    unreadable.
    """
    try:
        values: Any = json.loads(settings or "{}")
    except ValueError:
        values = None
    schemas = values.get(SETTING, {}) if isinstance(values, dict) else None
    if not isinstance(schemas, dict):
        entry = json.dumps({SETTING: {schema: f"*{SUFFIX}"}})
        raise OptionError(
            f"{FOLDER}/settings.json does not hold settings in plain JSON (it may have comments), so it was not changed. "
            f"Add {entry[1:-1]} to it, then write the schema: cheesebench schema --output {schema}."
        )
    return (
        json.dumps(
            {**values, SETTING: {**schemas, schema: f"*{SUFFIX}"}},
            indent=2,
            ensure_ascii=False,
        )
        + "\n"
    )
