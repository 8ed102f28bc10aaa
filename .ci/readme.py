#!/usr/bin/env python3
"""Make README.md one for a package index, which has none of the repository's files:
``.ci/readme.py https://github.com/OWNER/NAME v0.2.0`` makes its links and pictures
point to them there. The release does it before it builds.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

#: A link or a picture of a file of the repository.
RELATIVE = re.compile(r"(!?)(\[[^\[\]]*\]\()(?!\w+:|#)([^)\s]+)")


def absolute(text: str, repository: str, ref: str) -> str:
    """Return a README with addresses in place of the paths of files."""
    return RELATIVE.sub(
        lambda found: (
            f"{found[1]}{found[2]}{repository}/{'raw' if found[1] else 'blob'}/{ref}/{found[3]}"
        ),
        text,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repository", metavar="URL")
    parser.add_argument("ref", metavar="TAG")
    told = parser.parse_args()
    path = Path("README.md")
    text = path.read_text(encoding="utf-8")
    path.write_text(absolute(text, told.repository, told.ref), encoding="utf-8")


if __name__ == "__main__":
    main()
