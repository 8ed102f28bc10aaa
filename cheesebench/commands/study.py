"""``cheesebench study``: list the studies, or run one with pytest."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from cheesebench.commands.common import one_line, table
from cheesebench.commands.parsing import describe
from cheesebench.experiment.studies import Study, find_study, shipped_studies
from cheesebench.options import BY_KEY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "A study runs the same protocols under several settings: history, prompt, view. Everything after the name "
        "goes to pytest: cheesebench study NAME is pytest --study NAME.",
        "",
        "ablation-history --model qwen2.5-vl-7b",
        "my.study.yaml --model openai/tiny --base-url http://127.0.0.1:8000/v1 --subjects 10",
    )
    parser.add_argument(
        "study", metavar="NAME", nargs="?", help="a study's name or file; without it, studies are listed"
    )
    parser.add_argument("arguments", metavar="OPTION", nargs=argparse.REMAINDER, help="options for pytest")


def run(options: argparse.Namespace) -> int:
    """List the studies, or run one with pytest and return pytest's exit code."""
    if options.study is None:
        studies = [find_study(name, Path()) for name in shipped_studies()]
        print(table(("study", "what is varied", "title"), [(s.name, one_line(varies(s)), s.title) for s in studies]))
        return 0
    import pytest

    # pytest warns that modules which this command has imported can no longer be rewritten. The filter goes into the
    # environment because arguments are repeated in the printed command that resumes an unfinished run.
    quiet = "'-Wignore:Module already imported:pytest.PytestAssertRewriteWarning'"
    os.environ["PYTEST_ADDOPTS"] = f"{quiet} {os.environ.get('PYTEST_ADDOPTS', '')}"
    return int(pytest.main([BY_KEY["study"].long, options.study, *options.arguments]))


def varies(study: Study) -> str:
    """Return what a study varies, in words."""
    parts = [f"{axis}: {', '.join(map(str, levels))}" for axis, levels in study.axes.items()]
    for what, names in (("view", study.views), ("model", study.models)):
        if len(names) > 1:
            parts.append(f"{what}: {', '.join(names)}")
    return "; ".join(parts)
