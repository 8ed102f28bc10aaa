"""The system prompts explain the interface, and nothing about any paradigm."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
import yaml

from cheesebench.interfaces import ReadableView, View
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents.llm.prompts import messages, system_prompt, variants
from cheesebench.protocol import Catalogue, Specification, with_arena


def words(text: str) -> set[str]:
    """Return the words of a text in lower case, including the parts
    of compound names.
    """
    return set(re.findall(r"[a-z]+", text.lower()))


MESSAGES = words(" ".join(text.template for text in messages().values()))
PROMPTS = [(variant, changes) for variant in variants() for changes in (False, True)]

#: Words that protocols use as well: those of the interface, and those without a meaning
#: of their own.
INTERFACE = {"end", "left", "right", "turn", "trial"}
GRAMMAR = {
    "after",
    "all",
    "and",
    "before",
    "from",
    "its",
    "new",
    "most",
    "none",
    "one",
    "the",
    "way",
    "with",
}

GOALS_AND_CUES = words(
    "goal target find food water cue signal tone shock lever arm arms maze pool platform hole box chamber corridor "
    "start home escape avoid danger safe memory spatial novel match bait press rat rodent mouse animal"
)
#: Words for directions and places in the explanations of the views.
SIGHT = {
    "between",
    "places",
    "same",
    "floor",
    "place",
    "first",
    "last",
    "side",
    "two",
    "steps",
    "hidden",
    "dark",
    "light",
    "middle",
    "north",
    "turned",
}


@lru_cache(maxsize=1)
def specifications() -> tuple[Specification, ...]:
    """Return every shipped protocol, in every edition."""
    catalogue = Catalogue(PluginManager().protocol_directories)
    return tuple(with_arena(catalogue.load(path)) for path in catalogue.files.values())


def told(node: Any) -> Iterator[str]:
    """Yield every name and text in a document."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield str(name)
            yield from told(value)
    elif isinstance(node, list | tuple | set | frozenset):
        for value in node:
            yield from told(value)
    elif isinstance(node, str):
        yield node


def vocabulary(specification: Specification) -> set[str]:
    """Return every word of the paradigm: its names, contents, texts and outcomes."""
    with open(specification.path, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    names: list[str] = [
        document.get(key, "") for key in ("paradigm", "title", "dimension", "species")
    ]
    arena = document.get("arena", {})
    for key in ("groups", "zones", "landmarks"):
        names += told(arena.get(key, {}))
    names += [
        entry if isinstance(entry, str) else " ".join(told(entry))
        for entry in arena.get("legend", {}).values()
    ]
    language = ("map", "legend", "groups", "zones", "landmarks", "headings")
    names += [name for name in arena if name not in language]
    for key in ("vars", "draw", "measures", "schedule"):
        names += document.get(key, {})
    names += told(document.get("draw", {}))
    names += specification.states
    names += [line for state in specification.states.values() for line in state.say]
    names += specification.counters
    names += specification.outcomes
    return {word for name in names for word in words(name) if len(word) > 2}


def test_the_vocabulary_is_not_empty() -> None:
    found = set().union(*map(vocabulary, specifications()))
    assert {
        "platform",
        "water",
        "maze",
        "lever",
        "shock",
        "tone",
        "baited",
        "spatial",
        "avoidance",
    } <= found


@pytest.mark.parametrize(("variant", "changes"), PROMPTS)
def test_no_prompt_names_what_a_paradigm_is_about(variant: str, changes: bool) -> None:
    prompt = (
        words(system_prompt(variant, "", 8, 500, changes=changes, patience=5))
        | MESSAGES
    )
    named = {
        word: spec.path
        for spec in specifications()
        for word in prompt & vocabulary(spec)
    }
    assert {
        word: path for word, path in named.items() if word not in INTERFACE | GRAMMAR
    } == {}


@pytest.mark.parametrize(
    "view", PluginManager().views.values(), ids=lambda view: view.name
)
def test_no_view_names_what_a_paradigm_is_about(view: View) -> None:
    assert isinstance(view, ReadableView)
    assert view.reading in system_prompt("default", view.reading, 8, 500)
    found = {
        word
        for specification in specifications()
        for word in words(view.reading) & vocabulary(specification)
    }
    assert found <= INTERFACE | GRAMMAR | SIGHT
    assert not words(view.reading) & GOALS_AND_CUES


def test_no_exception_is_idle() -> None:
    prompts = MESSAGES.union(
        *(
            words(system_prompt(variant, "", 8, 500, changes=changes, patience=5))
            for variant, changes in PROMPTS
        )
    )
    assert (
        prompts & set().union(*map(vocabulary, specifications())) == INTERFACE | GRAMMAR
    )


@pytest.mark.parametrize(("variant", "changes"), PROMPTS)
def test_nothing_is_said_of_goals_cues_and_layouts(variant: str, changes: bool) -> None:
    forbidden = GOALS_AND_CUES | {
        "door",
        "light",
        "centre",
        "corner",
        "edge",
        "border",
        "room",
    }
    assert (
        not words(system_prompt(variant, "", 8, 500, changes=changes, patience=5))
        & forbidden
    )


def test_the_example_is_of_no_shipped_arena() -> None:
    example = system_prompt("few_shot", "", 8, 500).split("An example")[1]
    # The example's picture, and the symbol in it, occur in no protocol.
    picture = re.findall(r"^[#.→& ]+$", example, re.MULTILINE)
    assert len(picture) == 15
    plugins = PluginManager()
    for specification in specifications():
        life = plugins.compile(specification).environment(
            plugins.view("ascii_2d"), 0, 0
        )
        observation = life.begin_trial()
        assert observation is not None
        assert "&" not in observation
        lines = observation.split("\n")
        shape = [len(line) for line in lines if set(line) & set("#.")]
        assert shape != [len(line) for line in picture[:5]]


@pytest.mark.parametrize(("variant", "changes"), PROMPTS)
def test_numbers_are_where_they_belong(variant: str, changes: bool) -> None:
    prompt = system_prompt(variant, "", 13, 321, changes=changes, patience=7)
    assert "at most 13;" in prompt
    assert "at most 321 characters" in prompt
    assert "After 7 such answers" in prompt
    assert "$" not in prompt
    assert "LEARNINGS" not in system_prompt(
        variant, "", 1, 0, changes=changes, patience=5
    )
    assert all(line == line.rstrip() for line in prompt.split("\n"))
    assert prompt == prompt.strip()
    assert not re.search(r"\n\n\n", prompt)


def test_variants_are_what_their_names_say() -> None:
    default = system_prompt("default", "", 8, 500)
    assert len(system_prompt("minimal", "", 8, 500)) < len(default) / 2
    assert "REASONING:" in system_prompt("cot", "", 8, 500)
    assert system_prompt("few_shot", "", 8, 500).startswith(default)
    for action in ("FORWARD", "ROTATE_LEFT", "ROTATE_RIGHT", "STAY"):
        assert all(
            action in system_prompt(variant, "", 8, 500) for variant in variants()
        )


def test_a_prompt_of_one_s_own_is_filled_in() -> None:
    own = "Live well. $reading At most $actions actions. $5 is no setting."
    assert (
        system_prompt(own, "Up is north.", 3, 500)
        == "Live well. Up is north. At most 3 actions. $5 is no setting."
    )


ARROWS = "↑↗→↘↓↙←↖"
COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


@pytest.mark.parametrize(
    "name", sorted(Catalogue(PluginManager().protocol_directories).files)
)
@pytest.mark.parametrize("view", ["ascii_2d", "ascii_2d_fpv", "ascii_3d"])
def test_what_the_prompt_says_of_a_view_is_so(name: str, view: str) -> None:
    """Each claim of the prompt is compared with the frames: the meaning of an arrow, a
    direction, a wall and an action.
    """
    plugins = PluginManager()
    specification = with_arena(
        Catalogue(plugins.protocol_directories).find(name.replace(".", "@"))
    )
    drawn = plugins.view(view)
    assert isinstance(drawn, ReadableView)
    assert not words(drawn.reading) & {"north", "compass", "south", "east", "west"}
    life: Any = plugins.compile(specification).environment(drawn, 4, 0)
    turn = 8 // len(specification.arena.headings)
    chance = random.Random(name)
    for _ in range(4):
        seen, status = life.begin_trial(), 0
        while seen is not None and not status:
            if not life.waiting:
                forward, left, right, stay = map(life.foreseen, range(4))
                assert stay == seen, "STAY does nothing"
                before = heading(seen, view)
                assert heading(left, view) == (before - turn) % 8
                assert heading(right, view) == (before + turn) % 8
                assert heading(forward, view) == before
                if view == "ascii_2d":
                    check_steps(seen, forward, left)
            seen, _, status = life.step(chance.choice((0, 0, 1, 2)))


def heading(seen: str, view: str) -> int:
    """Return the agent's heading, according to the prompt's explanation of the view."""
    if view != "ascii_2d":
        return COMPASS.index(seen.split("\n")[0].removeprefix("facing "))
    (arrow,) = [sign for sign in seen if sign in ARROWS]
    return ARROWS.index(arrow)


def check_steps(seen: str, forward: str, left: str) -> None:
    """FORWARD is one cell along the arrow, if nothing is in the way; turning does not
    move; # is never entered.
    """
    steps = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
    before, after, turned = map(place, (seen, forward, left))
    down, across = steps[heading(seen, "ascii_2d")]
    ahead = (before[0] + down, before[1] + across)
    assert turned == before
    assert after in (before, ahead)
    if seen.split("\n")[ahead[0]][ahead[1]] in "# ":
        assert after == before
    elif not (down and across) and seen.split("\n")[ahead[0]][ahead[1]] == ".":
        assert after == ahead


def place(seen: str) -> tuple[int, int]:
    return next(
        (row, column)
        for row, line in enumerate(seen.split("\n"))
        for column, sign in enumerate(line)
        if sign in ARROWS
    )
