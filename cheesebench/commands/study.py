"""``cheesebench study``: lists the studies."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.commands.common import describe, one_line, table
from cheesebench.experiment import cells
from cheesebench.family import Study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Lists the studies: the same protocols under several settings (such as history, prompt or view). Run one with "
        "pytest --study NAME.",
        "",
    )


def run(options: argparse.Namespace) -> int:
    studies = [cells.find_study(name, Path()) for name in cells.shipped_studies()]
    print(
        table(
            ("study", "what is varied", "title"),
            [(s.name, one_line(varies(s)), s.title) for s in studies],
        )
    )
    return 0


def varies(study: Study) -> str:
    parts = [
        f"{axis}: {', '.join(map(str, levels))}" for axis, levels in study.axes.items()
    ]
    for what, names in (("view", study.views), ("model", study.models)):
        if len(names) > 1:
            parts.append(f"{what}: {', '.join(names)}")
    return "; ".join(parts)
