"""The mkdocs hook. It replaces `<!-- generated: NAME -->` in a page by the table that
``website.pages`` makes from the code.

Pages are made in memory, so that a build writes no files except those of the site.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# The site must describe this working tree, not an installed version. mkdocs removes the
# path again after the import.
sys.path.insert(0, str(Path(__file__).parents[1]))

from website.pages import PARTS, replaced


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Return the text of a page with all marks replaced. mkdocs calls this function for
    every page.
    """

    def generated(name: str) -> str:
        if name not in PARTS:
            from mkdocs.exceptions import PluginError

            raise PluginError(
                f"{page.file.src_uri}: nothing is called '{name}'. There are: {', '.join(PARTS)}."
            )
        return PARTS[name]()

    return replaced(markdown, generated)
