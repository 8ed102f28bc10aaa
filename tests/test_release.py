"""A release, made by its script in a copy: the version everywhere, release notes from
fragments, a tag; and its refusals.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
FILES = ("pyproject.toml", "CHANGELOG.md", "CITATION.cff", "cheesebench/__init__.py")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a repository with the files that a release writes to."""
    pytest.importorskip("towncrier")
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").write_text("Fragments.\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "a maintainer")
    git(tmp_path, "config", "user.email", "name@example.org")
    commit(tmp_path)
    return tmp_path


def git(where: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=where, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(where: Path) -> None:
    git(where, "add", "--all")
    git(where, "commit", "--quiet", "--message", "as it is")


def release(where: Path, version: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / ".ci" / "release.py", version],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_release_and_the_next(copy: Path) -> None:
    first = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = first["version"]
    done = release(copy, version)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(f"git push origin HEAD v{version}")
    notes = (copy / "CHANGELOG.md").read_text("utf-8")
    # The pattern that .github/workflows/release.yml looks for.
    assert re.search(rf"^## {re.escape(version)} \(20", notes, re.MULTILINE)

    (copy / "changes" / "+speed.added.md").write_text("A film has a speed.\n")
    (copy / "changes" / "12.fixed.md").write_text("A film ends.\n")
    assert "has changes" in release(copy, "9.8.7").stderr
    commit(copy)
    done = release(copy, "9.8.7")
    assert done.returncode == 0, done.stderr
    notes = (copy / "CHANGELOG.md").read_text("utf-8")
    section = notes[notes.index("## 9.8.7 (20") : notes.index(f"## {version} (20")]
    assert "- A film has a speed." in section
    assert "- A film ends. (#12)" in section
    for name in FILES:
        assert "9.8.7" in (copy / name).read_text("utf-8"), name
    assert re.search(r"^date-released: 20", (copy / "CITATION.cff").read_text(), re.M)
    assert sorted(path.name for path in (copy / "changes").iterdir()) == ["README.md"]
    assert git(copy, "describe", "--exact-match") == "v9.8.7"
    assert not git(copy, "status", "--porcelain")


@pytest.mark.parametrize(
    ("version", "says"), [("1", "is no version"), ("v1.2.3", "is no version")]
)
def test_what_is_refused(copy: Path, version: str, says: str) -> None:
    done = release(copy, version)
    assert says in done.stderr
    assert done.returncode == 1
    assert not git(copy, "tag")


def test_the_readme_of_an_index_names_no_file_of_the_repository(copy: Path) -> None:
    readme = copy / "README.md"
    readme.write_bytes((ROOT / "README.md").read_bytes())
    address = "https://github.com/owner/name"
    script = str(ROOT / ".ci" / "readme.py")
    subprocess.run([sys.executable, script, address, "v9.8.7"], cwd=copy, check=True)
    html = MarkdownIt().render(readme.read_text("utf-8"))
    pictures = re.findall(r'<img src="([^"]+)', html)
    links = re.findall(r'href="([^"]+)', html)
    assert f"{address}/raw/v9.8.7/docs/assets/learning.gif" in pictures
    assert f"{address}/blob/v9.8.7/docs/results.md" in links
    assert all(one.startswith(("https://", "http://", "#")) for one in links)
    assert all(one.startswith("https://") for one in pictures)
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    assert workflow.index(".ci/readme.py") < workflow.index("python -m build")
