"""``cheesebench new-plugin``: a complete package for a backend, an agent or a view."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.author.packages import distribution, plugin_files
from cheesebench.author.writing import write_files
from cheesebench.commands.common import one_line


def run(options: argparse.Namespace) -> int:
    """Write the package and say what comes next."""
    texts = plugin_files(options.kind, options.name)
    directory = Path(options.output or distribution(options.name))
    write_files(directory, texts)
    for name in texts:
        print(one_line(directory / name))
    print(f"\nNext: cd {one_line(directory)} && pip install -e . && pytest && cheesebench plugins")
    return 0
