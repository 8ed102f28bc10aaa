"""The generated parts of pages, under the names that pages use for them.

``python -m website.pages NAME`` prints a part. Without a name, it writes the parts with
numbers into the pages, between their mark and its end, so that readers of the
repository have them, too; ``tests/docs/test_generated.py`` compares them. Other parts
change with every option; below their marks a line says how to see them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from website import (
    animals,
    attacks,
    built_in,
    commands,
    keys,
    lesions,
    models,
    protocols,
    published,
    readme,
    runs,
    verdicts,
)

#: Functions that return the Markdown for ``<!-- generated: NAME -->``, by name.
PARTS: Mapping[str, Callable[[], str]] = {
    "animals": animals.animals,
    "attacks": attacks.attacks,
    "classics": lesions.classics,
    "keys": keys.protocol_keys,
    "dialogue-keys": keys.dialogue_keys,
    "findings": keys.findings,
    "commands": commands.commands,
    "options": commands.options,
    "ini": commands.ini_settings,
    "environment": commands.environment,
    "hook-version": built_in.hook_version,
    "agents": built_in.agents,
    "backends": built_in.backends,
    "views": built_in.views,
    "reporters": built_in.reporters,
    "designs": built_in.designs,
    "studies": built_in.studies,
    "models": models.models,
    "protocols": protocols.protocols,
    "published": published.numbers,
    "readme": readme.readme,
    "run-log": runs.run_log,
    "verdicts": verdicts.verdicts,
    "thresholds": verdicts.thresholds,
    "outcomes": verdicts.outcomes,
    "flags": verdicts.flags,
    "examples": verdicts.examples,
}

DOCS = Path(__file__).parents[1] / "docs"
#: Matches a mark with what follows it in the repository: the text, up to the mark of
#: its end, or a line for readers of a checkout.
MARK = re.compile(
    r"^<!-- generated: (\S+) -->$"
    r"(?:\n> In a checkout: .*$|\n\n(?P<text>(?:(?!^<!-- generated: ).*\n)*?)\n<!-- end: \1 -->$)?",
    re.MULTILINE,
)


def replaced(page: str, part: Callable[[str], str]) -> str:
    """Return a page with each mark replaced by the part of this name."""
    return MARK.sub(lambda mark: part(mark[1]), page)


def written(page: str) -> str:
    """Return a page whose texts in the repository are up to date."""

    def block(mark: re.Match[str]) -> str:
        if mark["text"] is None:
            return mark[0]
        name = mark[1]
        return f"<!-- generated: {name} -->\n\n{PARTS[name]().strip()}\n\n<!-- end: {name} -->"

    return MARK.sub(block, page)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*(PARTS[name]() for name in sys.argv[1:]), sep="\n")
    else:
        for path in DOCS.rglob("*.md"):
            before = path.read_text(encoding="utf-8")
            if (after := written(before)) != before:
                path.write_text(after, encoding="utf-8")
