"""The table of docs/controls.md must equal the output of ``benchmarks/controls.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_script_prints_the_table_of_the_page() -> None:
    script = ROOT / "benchmarks" / "controls.py"
    printed = subprocess.run(
        [sys.executable, script], check=True, capture_output=True, text=True
    ).stdout
    assert printed.count("\n") == 5
    assert printed in (ROOT / "docs" / "controls.md").read_text(encoding="utf-8")
