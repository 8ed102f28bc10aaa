#!/usr/bin/env python3
"""Make a release of a clean checkout: ``.ci/release.py 0.2.0``.

It writes the version everywhere, makes the section of CHANGELOG.md from the fragments
in ``changes/`` (towncrier; the first release has a section already, which is dated),
commits, and tags. Nothing is pushed; the last line says how. CI builds and publishes
what is tagged.
"""

from __future__ import annotations

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

VERSION = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
#: File, and what stands before the version in it.
PLACES = (
    ("pyproject.toml", r'^version = "'),
    ("cheesebench/__init__.py", r'^__version__ = "'),
    ("CITATION.cff", r"^version: "),
)


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def refusal(version: str) -> str:
    """Return why there is no such release; empty if there can be one."""
    if not VERSION.fullmatch(version):
        return f"{version} is no version: X.Y.Z, or X.Y.Zrc1."
    if git("status", "--porcelain"):
        return "The checkout has changes. Commit them first."
    if git("tag", "--list", f"v{version}"):
        return f"The tag v{version} exists."
    return ""


def write_version(version: str) -> None:
    for name, before in PLACES:
        path = Path(name)
        text = path.read_text(encoding="utf-8")
        found, count = re.subn(
            f"({before}){VERSION.pattern}", rf"\g<1>{version}", text, flags=re.MULTILINE
        )
        assert count == 1, f"{name} has no version, or several"
        path.write_text(found, encoding="utf-8")


def write_date(today: str) -> None:
    path = Path("CITATION.cff")
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("date-released:")]
    at = next(n for n, line in enumerate(kept) if line.startswith("version:"))
    kept.insert(at + 1, f"date-released: {today}")
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def write_notes(version: str, today: str) -> None:
    """Write the section of the change log."""
    path = Path("CHANGELOG.md")
    text = path.read_text(encoding="utf-8")
    heading = f"## {version} (unreleased)\n"
    if heading in text:
        path.write_text(text.replace(heading, f"## {version} ({today})\n"))
        return
    command = ["towncrier", "build", "--yes", "--version", version, "--date", today]
    subprocess.run([sys.executable, "-m", *command], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", metavar="X.Y.Z")
    version = parser.parse_args().version
    if why := refusal(version):
        raise SystemExit(why)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    write_version(version)
    write_date(today)
    write_notes(version, today)
    git("add", "--all")
    git("commit", "--quiet", "--message", f"Release {version}")
    git("tag", "--annotate", f"v{version}", "--message", f"CheeseBench {version}")
    print(f"Look at it (git show), then: git push origin HEAD v{version}")


if __name__ == "__main__":
    main()
