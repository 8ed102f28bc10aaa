"""The page on prompts shows real prompts, and lists every setting, every count, and
every name of an action.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from cheesebench.chat import ChatReply, ModelAgentContext
from cheesebench.interfaces import ACTIONS
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents.llm import COUNTS
from cheesebench.plugins.agents.llm.lists import FULL, SHORT
from cheesebench.plugins.agents.llm.prompts import system_prompt
from cheesebench.protocol import Catalogue, with_arena

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "prompts.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """Return the block after a mark: a code block, or a table."""
    text = PAGE.split(f"<!-- {name} -->\n")[1]
    fenced = re.match(r"```text\n(.*?)```\n", text, re.DOTALL)
    return fenced[1] if fenced else text.split("\n\n")[0] + "\n"


def rows(header: str) -> dict[str, list[str]]:
    """Return the rows of the table with this header, by the name in
    their first cell.
    """
    table = PAGE.split(header)[1].split("\n\n")[0]
    found = (re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()[2:])
    return {cells[0].strip("`"): cells[1:] for cells in found}


def test_the_conversation_is_what_is_sent() -> None:
    plugins = PluginManager()
    paradigm = plugins.compile(
        with_arena(Catalogue(plugins.protocol_directories).find("shuttle_box"))
    )
    life = paradigm.environment(plugins.view("ascii_2d"), 3, 1)
    spec = plugins.model_agent("llm")
    settings = {**spec.settings, "history": 1, "actions": 4}
    agent = spec.create(ModelAgentContext(seed=0, view="ascii_2d", settings=settings))
    first = life.begin_trial()
    assert first is not None
    agent.begin_trial(first)
    for reply in (
        "ACTIONS: ROTATE_RIGHT, FORWARD, ROTATE_RIGHT, STAY",
        "LEARNINGS: FORWARD takes me along the arrow.\nACTIONS: STAY, STAY, FORWARD, FORWARD",
    ):
        for action in agent.read(ChatReply(text=reply)):
            observation, reward, status = life.step(action)
            agent.observe(action, reward, observation, bool(status))
    sent = "".join(
        f"{message.role.upper()}\n{message.text}\n" for message in agent.prompt()[1:]
    )
    assert block("conversation") == sent


def test_the_system_prompt_is_what_is_sent() -> None:
    assert (
        block("system") == system_prompt("default", "[...]", 8, 500, patience=5) + "\n"
    )


def test_what_dropped_plans_cost_is_what_was_measured() -> None:
    found = json.loads(
        (ROOT / "benchmarks/measured/dropped_plans.json").read_text(encoding="utf-8")
    )
    never, change = (
        sum(one[setting] for one in found.values()) for setting in ("never", "change")
    )
    box = found["shuttle_box"]
    assert {
        name for name, one in found.items() if one["change"] - one["never"] > 0.5
    } == {"shuttle_box"}
    said = re.search(
        r"<!-- dropped -->(\d+) % more calls .*\((\d+) a subject, not (\d+);", PAGE
    )
    assert said
    assert list(map(int, said.groups())) == [
        round(100 * change / never - 100),
        *map(round, (box["change"], box["never"])),
    ]


def test_every_setting_is_listed_with_its_default() -> None:
    settings = PluginManager().model_agent("llm").settings
    listed = {
        name: cells[0].strip("`")
        for name, cells in rows("| setting | default | what it is |").items()
    }
    assert listed == {name: str(value) for name, value in settings.items()}


def test_every_count_is_listed() -> None:
    assert tuple(rows("| count | what it is |")) == COUNTS


def test_every_name_of_an_action_is_listed() -> None:
    assert block("names") == names_table()


def names_table() -> str:
    lines = ["| action | everywhere | only after the label |", "| --- | --- | --- |"]
    for number, action in enumerate(ACTIONS):
        cells = [
            ", ".join(name for name in names if names[name] == number)
            for names in (FULL, SHORT)
        ]
        lines.append(f"| `{action}` | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"
