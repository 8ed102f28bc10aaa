"""The mkdocs hook. It replaces `<!-- generated: NAME -->` in a page by the table that
``website.pages`` makes from the code.

Pages are made in memory, so that a build writes no files except those of the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

# The site must describe this working tree, not an installed version. mkdocs removes the
# path again after the import.
sys.path.insert(0, str(Path(__file__).parents[1]))

from website.pages import PARTS

#: Matches a mark, and the line after it, which tells readers of a checkout where the
#: same information is.
_MARK = re.compile(
    r"^<!-- generated: (\S+) -->$(?:\n> In a checkout: .*$)?", re.MULTILINE
)


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """Return the text of a page with all marks replaced. mkdocs calls this function for
    every page.
    """

    def generated(mark: re.Match[str]) -> str:
        if mark[1] not in PARTS:
            from mkdocs.exceptions import PluginError

            raise PluginError(
                f"{page.file.src_uri}: nothing is called '{mark[1]}'. There are: {', '.join(PARTS)}."
            )
        return PARTS[mark[1]]()

    return _MARK.sub(generated, markdown)
