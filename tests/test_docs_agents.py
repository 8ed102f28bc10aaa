"""The page on the agents names every agent that ships, and every protocol it was measured on exists."""

from __future__ import annotations

import re
from pathlib import Path

from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def test_every_agent_is_described_and_measured() -> None:
    described = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE))
    shipped = set(PluginManager().agents)
    assert described == shipped
    [header] = [line for line in PAGE.splitlines() if line.startswith("| protocol | random")]
    assert {cell.strip() for cell in header.split("|")} >= shipped


def test_the_nine_are_measured_and_the_rodent_s_curves_are_those_declared() -> None:
    specifications = Catalogue([ROOT / "protocols"]).select()
    rates = re.findall(r"^\| (\w+) \|(?: *\d+ \|){5}$", PAGE, re.MULTILINE)
    assert sorted(rates) == sorted(specification.name for specification in specifications)
    names = re.findall(r"^\| (\w+) \| hippocampal-ql \|", PAGE, re.MULTILINE)
    curves = re.findall(r"^\|  \| rodent \| ([\d ]+) \|$", PAGE, re.MULTILINE)
    declared = {s.name: [round(100 * value) for value in s.document.reference[0].curve] for s in specifications}
    assert {name: [int(v) for v in curve.split()] for name, curve in zip(names, curves, strict=True)} == declared
