"""The page on backends names every option and fault; its blocks are run by ``tests/docs/test_pages.py``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from cheesebench.chat import FaultKind
from cheesebench.plugin_manager import PluginManager

PAGE = (Path(__file__).parents[1] / "docs" / "backends.md").read_text(encoding="utf-8")


def test_every_option_and_every_fault_is_named() -> None:
    for name in PluginManager().backend("openai").options:
        assert f"| `{name}` |" in PAGE
    table = PAGE.partition("| kind of fault |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == set(get_args(FaultKind))
