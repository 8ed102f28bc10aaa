"""The pages for authors and for plugins are accurate; ``tests/docs/test_pages.py`` runs
their blocks.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cheesebench.cli import main
from cheesebench.commands.new import protocol_text
from cheesebench.commands.new_plugin import KINDS
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
from cheesebench.testing import agents, backends, views

ROOT = Path(__file__).parents[1]
AUTHORS, PLUGINS = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("authors.md", "plugins.md")
)

#: Words of the language in the table of what experiments have in common.
KEYWORDS = {
    "balanced",
    "random",
    "shuffle",
    "max_run",
    "groups",
    "place",
    "freeze",
    "after",
    "until",
    "watch",
    "close",
}
KEYWORDS |= {
    "estimand",
    "session",
    "count",
    "timeout",
    "start",
    "draw",
    "sample",
    "into",
}


def test_the_actions_walk_to_the_food(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["new", "maze", "my_maze"])
    played = re.findall(r'my_maze --actions "?([RLFS ]+)"?$', AUTHORS, re.MULTILINE)
    assert len(played) == 2
    for actions in played:
        assert main(["trace", "my_maze", "--actions", actions]) == 0
        assert "The trial ends: correct, success." in capsys.readouterr().out


def test_the_construct_is_the_templates() -> None:
    [shown] = re.findall(
        r"^```yaml\n(construct:.*?)^```$", AUTHORS, re.MULTILINE | re.DOTALL
    )
    template = yaml.safe_load(protocol_text("maze", "my_maze"))
    assert yaml.safe_load(shown)["construct"] == template["construct"]


def test_the_light_gives_the_task_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["new", "maze", "my_maze"])
    path = tmp_path / "my_maze.protocol.yaml"
    [light] = re.findall(
        r"^```yaml\n(trial:.*?states.*?)^```$", AUTHORS, re.MULTILINE | re.DOTALL
    )
    text = path.read_text(encoding="utf-8")
    changed = re.sub(
        r"^trial:.*?(?=^schedule:)", light + "\n", text, flags=re.MULTILINE | re.DOTALL
    )
    assert changed != text
    found = Catalogue().inspect_text(changed)[1]
    assert [one.code for one in found if one.severity != "info"] == [311]
    path.write_text(changed, encoding="utf-8")
    assert main(["audit", "my_maze", "--trials", "200", "--view", "ascii_2d"]) == 1


def edition(name: str) -> str:
    """Return the text of an edition on the page."""
    blocks: list[str] = re.findall(
        r"^```yaml\n(version.*?)^```$", AUTHORS, re.MULTILINE | re.DOTALL
    )
    [own] = [block for block in blocks if f"edition: {name}" in block]
    return own


def test_a_cued_choice_passes_its_tests_and_its_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["new", "maze", "my_maze"])
    file = "my_maze.light.protocol.yaml"
    text = edition("light")
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert main(["test", file]) == 0
    audit = ["--trials", "200", "--view", "ascii_2d", "--processes", "1"]
    assert main(["audit", file, *audit]) == 0
    drawn = "  legend: {L: {zone: left, glyph: o}, R: {zone: right, glyph: o}}\n"
    (tmp_path / file).write_text(f"{text}arena:\n{drawn}", encoding="utf-8")
    lesions = ["--part", "lesions", *audit]
    assert main(["audit", file, *lesions]) == 1
    both = text.replace('{hide: "glyph:*"}', '"hide=glyph:*+hide=glyph:o"')
    (tmp_path / file).write_text(f"{both}arena:\n{drawn}", encoding="utf-8")
    assert main(["audit", file, *lesions]) == 0


#: The beginning of protocols made of rows of the page.
SHAPE = """
version: 1
paradigm: wait
arena: {map: "S.LF", legend: {S: box, L: {solid: lever}, F: food}}
start: {at: box, face: E}
"""


def test_the_rows_on_waiting_and_on_costs_are_protocols() -> None:
    rows = dict(re.findall(r"^\| (.*?)\. \| (.*) \|$", AUTHORS, re.MULTILINE))
    waits = rows["Too early is an error, too late as well (DRL)"]
    [early, late] = re.findall(r"`(early: {rules.*?}|{after: hold, end: late})`", waits)
    text = f"""{SHAPE}vars: {{gap: 4, hold: 3}}
trial:
  limit: 20
  start: early
  states:
    {early}
    ready: {{rules: [{{press: lever, reward: 1, end: correct}}, {late}]}}
schedule: {{one: {{trials: 3}}}}
success: last == correct
"""
    assert Catalogue().inspect_text(text)[0] is not None
    costs = re.findall(r"`(.*?)`", rows["Fewer errors, or a lower cost, are better"])
    variable, rule, measure, better, margin, limits = costs
    text = f"""{SHAPE}{variable}
trial: {{limit: 25, start: a, states: {{a: {{rules: [{rule.replace("food", "box")}]}}}}}}
schedule: {{one: {{trials: 3}}}}
{measure}
reference: [{{measure: price, value: 9, {better}, {margin}: 4, {limits}, status: x}}]
"""
    specification, found = Catalogue().inspect_text(text)
    assert specification is not None, found


def test_the_examples_are_shipped_and_do_what_is_said() -> None:
    catalogue = Catalogue(installed_plugins().protocol_directories)
    rows = re.findall(r"^\| .* \| (`.*`).* \(`(\w+)`\) \|$", AUTHORS, re.MULTILINE)
    assert len(rows) >= 8
    for said, name in rows:
        text = Path(catalogue.find(name).path).read_text(encoding="utf-8")
        words = sorted(set(re.findall(r"[a-z_]+", said)) & KEYWORDS)
        assert words
        assert [word for word in words if word not in text] == [], name


def test_every_kind_of_package_is_written() -> None:
    assert (
        tuple(re.findall(r"^cheesebench new-plugin (\w+)", PLUGINS, re.MULTILINE))
        == KINDS
    )


def test_a_backend_fits_into_twenty_lines() -> None:
    [code] = re.findall(
        r"acme\.py -->\n```python\n(import.*?)^```$", PLUGINS, re.MULTILINE | re.DOTALL
    )
    assert len([line for line in code.splitlines() if line.strip()]) <= 20


def test_every_rule_is_named() -> None:
    rules = [
        *backends.RULES,
        *backends.SERVER_RULES,
        *agents.RULES,
        *agents.MODEL_RULES,
        *views.RULES,
    ]
    words = " ".join(PLUGINS.split())
    assert [name for name in rules if f"`{name}`" not in words] == []
