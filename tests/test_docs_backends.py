"""The page on backends names every option and fault; ``tests/docs/test_pages.py`` runs
its blocks.
"""

from __future__ import annotations

import json
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


def test_the_sdk_is_compared_as_it_was_measured() -> None:
    """CPU time and hostile answers are the reasons for our own client
    (``benchmarks/client.py --keep``).
    """
    path = Path(__file__).parents[1] / "benchmarks" / "measured" / "client.json"
    measured = json.loads(path.read_text(encoding="utf-8"))
    rows = {
        name.partition(": ")[2] for name in measured if name.startswith("sdk: tiny")
    }
    ours, sdk = (
        {row: measured[f"{name}: {row}"]["CPU, ms"] for row in rows}
        for name in ("openai", "sdk")
    )
    times = [sdk[row] / ours[row] for row in rows]
    assert f"{min(times):.1f} to {max(times):.0f} times the\nCPU time" in PAGE
    for row, words in (
        ("tiny, 14 messages, 1 in flight", "{:.3g} ms in place of {:.3g} for 14"),
        ("tiny, 201 messages, 32 in flight", "{:.3g} in place of {:.3g} for 201"),
        ("tiny, 14 messages, 1000 in flight", "{:.3g} ms each, in place of {:.3g}"),
    ):
        assert words.format(sdk[row], ours[row]) in PAGE
    held = {measured[f"{name}: hostile answers"]["held"] for name in ("openai", "sdk")}
    assert f"all {held.pop():.0f} classes" in PAGE
    assert not held
