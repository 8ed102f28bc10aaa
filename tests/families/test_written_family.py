"""A family from ``cheesebench new-plugin`` can have everything that the arena has, by
overriding ``Paradigm``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.experiment.log import RunLog

ABILITIES = """
    def with_cues(self, how, seed):
        return self

    def lesioned(self, view, lesion):
        return view

    def yoked_environment(self, view, seed, subject, trials):
        return CupsSubject(self.specification, seed, subject)

    def own_tests(self, view):
        return [Passed()]

    def audit(self, views, settings):
        yield AuditFinding("prize", "ok", "every cup can have it", {})


class Passed:
    passed = True

    def __str__(self):
        return "cups.protocol.yaml:1: ok"

"""
STUDIES = """        if request.study is not None or request.controls:
            raise UnsuitableError(f"'{specification.name}' has neither studies nor controls.")
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory from which the plugin is found as if it were installed."""
    monkeypatch.chdir(tmp_path)
    assert main(["new-plugin", "family", "my-cups", "--output", "written"]) == 0
    site = tmp_path / "written" / "src"
    (module,) = (path for path in site.iterdir() if path.is_dir())
    text = (module / "family.py").read_text(encoding="utf-8")
    before, paradigm, after = text.partition(
        "        return CupsSubject(self.specification, seed, subject)\n"
    )
    text = f"{before}{paradigm}{ABILITIES}{after}".replace(STUDIES, "")
    text = text.replace(
        "        return [self.plan(", "        plain = self.plan("
    ).replace(
        ", **against)]",
        ", **against)\n        return self.with_controls(plain, specification, request)",
    )
    text = text.replace(
        "from pydantic import Field",
        "from cheesebench.interfaces import AuditFinding\nfrom pydantic import Field",
    )
    (module / "family.py").write_text(text, encoding="utf-8")
    (metadata := site / "cups-1.0.dist-info").mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: cups\nVersion: 1.0\n", encoding="utf-8"
    )
    (metadata / "entry_points.txt").write_text(
        f"[cheesebench]\ncups = {module.name}\n", encoding="utf-8"
    )
    return site


def test_it_can_have_all_that_the_arena_has(plugin: Path, tmp_path: Path) -> None:
    (path,) = plugin.glob("*/protocols/*.protocol.yaml")
    name = path.name.partition(".")[0]

    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            env={**os.environ, "PYTHONPATH": str(plugin)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "1 test: 0 failed" in call("cheesebench", "test", name)
    assert "every cup can have it" in call("cheesebench", "audit", name)
    assert "There is the prize." in call(
        "cheesebench", "play", name, "--actions", "F L R"
    )
    run = (
        "pytest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "--protocols",
        name,
        "--exit-zero",
        "--model",
        "random",
    )
    call(*run, "--subjects", "3", "--run-id", "master")
    controls = ["cue-off", "reward-shuffled", "blind", "yoked:master"]
    call(
        *run,
        "--subjects",
        "2",
        "--run-id",
        "run",
        *(f"--control={control}" for control in controls),
    )
    with RunLog.open_read_only(tmp_path / "results" / "run") as log:
        assert [plan.control for plan in log.plans()] == ["", *controls]
        assert not [record for record in log.trials() if record.missing]
