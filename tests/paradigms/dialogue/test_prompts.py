"""Questions contain everything necessary, in the words of their vocabulary, and nothing
of the key.
"""

from __future__ import annotations

import re

import pytest

from cheesebench.paradigms.dialogue.answers import Lexicon, read_reply, score
from cheesebench.paradigms.dialogue.documents import Scene
from cheesebench.paradigms.dialogue.life import answer_text, questions
from cheesebench.paradigms.dialogue.specification import (
    DialogueSpecification,
    slots_of,
    wording,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue

_catalogue = Catalogue(installed_plugins().protocol_directories)
SHIPPED = sorted(_catalogue.folders["cogeval"].glob(f"*{SUFFIX}"))
every_dialogue = pytest.mark.parametrize(
    "path", SHIPPED, ids=[path.name.split(".")[0] for path in SHIPPED]
)


def load(path: object) -> DialogueSpecification:
    specification = _catalogue.load(path)  # type: ignore[arg-type]
    assert isinstance(specification, DialogueSpecification)
    return specification


def asked(
    garden: DialogueSpecification, domain: str, condition: str, item: int = 0
) -> list[str]:
    spec = garden.conditions[condition]
    return questions(garden, garden.domains[domain], spec, spec.items[item])


def test_a_conversation_can_be_read(garden: DialogueSpecification) -> None:
    first, second, third = asked(garden, "people", "gate")
    assert "Ada can put you in touch with Ben and Dan." in first
    # The edge 3 - 4 is described from 3.
    assert "Dan can put you in touch with Finn." in first
    assert "Eve gives away 40 books. Finn gives away 10 books." in first
    assert first.endswith(
        "beginning with Ada, separated by commas, in a last line that begins with 'Answer:'."
    )
    assert (
        "Cleo and Eve are no longer in touch. Finn and Eve are now in touch with each other."
        in second
    )
    assert "reason step by step" in second
    assert "Ada and Gus are now in touch" in third
    assert "anybody who was in touch with Finn" in third


def test_only_what_is_asked_about_is_told(garden: DialogueSpecification) -> None:
    (near,) = asked(garden, "numbers", "near", 1)
    assert "What is the shortest way from room 6 to room 2?" in near.replace(
        "place", "room"
    )
    assert "beginning with room 6" in near
    assert "apples" not in near
    assert "one step from room 6" in near
    (groups,) = asked(garden, "numbers", "groups")
    assert groups.endswith("Give the number in a last line that begins with 'Answer:'.")


@every_dialogue
def test_every_edge_is_told_once_and_every_name_is_known(path: object) -> None:
    specification = load(path)
    for domain in specification.domains.values():
        for condition in specification.conditions.values():
            for item in condition.items:
                texts = questions(specification, domain, condition, item)
                assert len(texts) == (2 if condition.after else 1)
                assert not re.search(r"[{}]|  |None", " ".join(texts)), texts
        condition = next(iter(specification.conditions.values()))
        (first,) = questions(specification, domain, condition, condition.items[0])
        edges = specification.document.arena.graph.edges
        link = re.escape(domain.wording.sentences["link"]).replace(
            "\\{place\\}", "(.+)"
        )
        told = [
            re.fullmatch(link.replace("\\{places\\}", "(.+)"), f"{part}.")
            for part in first.split(". ")
        ]
        links = [
            match[2] for match in told if match and match[1] in domain.names.values()
        ]
        assert sum(len(re.split(r", | and ", ends)) for ends in links) == len(edges)


@every_dialogue
def test_every_key_said_in_words_is_scored_as_right(path: object) -> None:
    specification = load(path)
    for domain in specification.domains.values():
        lexicon = Lexicon(domain.names, domain.wording.nouns)
        for condition in specification.conditions.values():
            for item in condition.items:
                replies = [
                    answer_text(domain, condition, key) for key in item.keys
                ] or [f"Answer: {item.number}"]
                for reply in replies:
                    answer = read_reply(reply, lexicon, condition.form)
                    assert score(
                        answer, condition, item, specification.world
                    ).success, (condition.name, reply)


@pytest.mark.parametrize(
    ("sentence", "slots"),
    [
        ("from {start} to {goal}", ["start", "goal"]),
        ("{{braces}} and {start}", ["start"]),
        ("none", []),
        ("{start!r}", None),
        ("{start:>3}", None),
        ("{start!r:>3}", None),
        ("{two words}", None),
        ("{start.name}", None),
        ("{}", None),
        ("{start", None),
        ("start}", None),
    ],
)
def test_slots_are_names_in_braces_and_nothing_else(
    sentence: str, slots: list[str] | None
) -> None:
    assert slots_of(sentence) == slots


def test_a_scene_takes_what_it_does_not_say_from_the_one_it_is_like() -> None:
    people = wording("people", {})
    own = {
        "bare": Scene(like="people"),
        "mine": Scene(like="people", nouns=["cat"], thing="cat", **{"return": "Home."}),
    }
    assert wording("people", own) == wording("bare", own) == people
    mine = wording("mine", own)
    assert mine.nouns == ("cat",)
    changed = {"thing": "cat", "return": "Home."}
    assert mine.sentences == {**people.sentences, **changed}
    assert wording("bare", own) != wording("places", own)
