"""``cheesebench schema``: the JSON Schema of protocol files."""

from __future__ import annotations

import argparse

from cheesebench.commands.common import write_output
from cheesebench.protocol.schema import schema_text


def run(options: argparse.Namespace) -> int:
    """Write the schema."""
    write_output(schema_text(), options.output)
    return 0
