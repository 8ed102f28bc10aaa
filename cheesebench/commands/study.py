"""``cheesebench study``: the studies there are, or one of them, run by pytest."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.commands.common import one_line, table
from cheesebench.experiment.studies import Study, find_study, shipped_studies


def run(options: argparse.Namespace) -> int:
    """List the studies, or hand over to pytest, whose exit code is returned."""
    if options.study is None:
        studies = [find_study(name, Path()) for name in shipped_studies()]
        print(table(("study", "what is varied", "title"), [(s.name, one_line(varies(s)), s.title) for s in studies]))
        return 0
    import pytest

    return int(pytest.main(["--study", options.study, *options.arguments]))


def varies(study: Study) -> str:
    """Return what a study varies, in words."""
    parts = [f"{axis}: {', '.join(map(str, levels))}" for axis, levels in study.axes.items()]
    for what, names in (("view", study.views), ("model", study.models)):
        if len(names) > 1:
            parts.append(f"{what}: {', '.join(names)}")
    return "; ".join(parts)
