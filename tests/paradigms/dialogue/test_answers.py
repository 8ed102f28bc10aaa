"""Reading free text; every line is a real or a possible answer."""

from __future__ import annotations

import gc
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.paradigms.dialogue.answers import (
    MAX_READ,
    Answer,
    Lexicon,
    read_answer,
)
from cheesebench.paradigms.dialogue.specification import Form

ROOMS = Lexicon(
    {str(n): f"room {n}" for n in range(1, 16)} | {"0": "the lobby"}, ["room", "rooms"]
)
PEOPLE = Lexicon({"1": "Ada", "2": "Ben", "3": "Cleo", "4": "Dan", "5": "Will"})
PARK = Lexicon(
    {
        "1": "the old oak",
        "2": "the oak gate",
        "3": "the pond",
        "4": "black and white house",
    }
)


def path(reply: str, lexicon: Lexicon = ROOMS, form: Form = "path") -> list[str | None]:
    answer = read_answer(reply, lexicon, form)
    assert not answer.several
    return list(answer.nodes)


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: 1, 3, 5",
        "Answer: 1,3,5.",
        "ANSWER: Room 1, room 3, room 5",
        "**Answer:** 1 -> 3 -> 5",
        "**Answer**: room1 → room3 → room5",
        "Answer: (1, 3, 5)",
        "Answer: [1, 3, 5]",
        "Answer: Room 1, then room 3, and finally room 5.",
        "Answer: The shortest way is room 1, room 3, room 5.",
        "Answer: The shortest path from room 1 to room 5 is 1, 3, 5.",
        "Answer: from room 1 to room 5: 1, 3, 5",
        "Answer: 1, 3, 5 (2 steps)",
        "Answer: 1, 3, 5, because room 4 is blocked.",
        "Answer: 1, 3, 5 with a total of 2 steps",
        "Answer: 1, 3, 5. The other way, 1, 2, 4, 5, is longer.",
        "Answer: 1 (start), 3, 5 (goal)",
        "Answer:\n1, 3, 5",
        "Answer:\n\n```\n1, 3, 5\n```",
        "Answer:\n1. Room 1\n2. Room 3\n3. Room 5",
        "Answer:\n- room 1\n- room 3\n- room 5\n\nGood luck!",
        "Answer: 1,\n3,\n5",
        "Answer: 9, 9\nNo, wait.\nAnswer: 1, 3, 5\nIs there anything else?",
        "The format is `Answer: ([0-9]+,\\s*)*[0-9]+`.\nAnswer: 1, 3, 5",
        "Answer: 1, 3, 5\n\n**Answer:**\n",
        "Therefore, the answer is: 1, 3, 5.",
        "I go 1, 3, 5.",
        "```\n1, 3, 5\n```\nThis way goes through room 3 to room 5 in 2 steps.",
        "```\n1, 3, 5\n```\n\nSo you collect 50 in room 5.",
        "**1, 3, 5**\n\n| step | room |\n|---|---|\n| 1 | 3 |\n| 2 | 5 |",
        "The shortest path is **1, 3, 5**.\n\n| step | room |\n| 1 | room 3 |",
        "**1, 2, 4** is closed.\nThe shortest path is 1, 3, 5",
        "**Room 1** and **room 2, room 4** are near.\nI go 1, 3, 5.",
        "Some thoughts about 7 and 8.\nThe way is 1, 3, 5",
        "Answer: 1, 3, 5\nuser: And from 2 to 4?\nAnswer: 2, 4",
        "１，３，５",
    ],
)
def test_one_answer_in_many_words(reply: str) -> None:
    assert path(reply) == ["1", "3", "5"]


@pytest.mark.parametrize(
    ("reply", "nodes"),
    [
        ("Answer: 1, 3", ["1", "3"]),
        ("Answer: 1, 3, 5, 7", ["1", "3", "5", "7"]),
        ("Answer: 1, 3, 5 and possibly 7", ["1", "3", "5", "7"]),
        ("Answer: 1, 3, 1, 5", ["1", "3", "1", "5"]),
        ("Answer: 1, 99, 5", ["1", None, "5"]),
        ("Answer: 1, cellar, 5", ["1", None, "5"]),
        ("Answer: lobby, 2", ["0", "2"]),
        ("Answer: the cellar", [None]),
        ("Answer: room 12, room 3, in that order", ["12", "3"]),
        ("Answer: 13", ["13"]),
    ],
)
def test_nothing_is_added_and_nothing_left_out(
    reply: str, nodes: list[str | None]
) -> None:
    assert path(reply) == nodes


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: Ada or Ben",
        "Answer: either Ada, Cleo or Ben",
        "Ada, Ben or Ada, Cleo",
        "Answer: Ben (or Cleo)",
        "Answer: Ben. Or Cleo.",
        "Answer: Ben. Alternatively, Cleo.",
    ],
)
def test_two_answers_are_none(reply: str) -> None:
    assert read_answer(reply, PEOPLE, "path").several
    assert read_answer(reply, PEOPLE, "first_step").several


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n\t ",
        "I do not know.",
        "Answer:",
        "Answer: [names]",
        "```\n```",
        "🧀" * 9,
    ],
)
@pytest.mark.parametrize("form", ["path", "first_step"])
def test_no_answer_is_read_from_nothing(reply: str, form: Form) -> None:
    assert read_answer(reply, PEOPLE, form).empty


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: Ben",
        "Answer: the best is Ben, who knows Cleo and Dan.",
        "Answer: You should ask Ben, because Dan gives more.",
        "Answer: Ben's",
        "Ada can put you in touch with Dan.\nSo I would ask Ben.",
        "Answer: Ben (not Dan)",
        "Answer: Ben rather than Dan",
    ],
)
def test_one_node(reply: str) -> None:
    assert path(reply, PEOPLE, "first_step") == ["2"]


FLOWERS = Lexicon({"1": "rose", "2": "hydrangea", "3": "tulip"}, ["flower", "flowers"])


def test_an_amount_of_something_is_not_its_name() -> None:
    assert path("Answer: 50 hydrangea flowers", FLOWERS) == [None]
    assert path(
        "From the rose to the hydrangea.\nYou will find 50 hydrangea flowers.", FLOWERS
    ) == ["1", "2"]
    assert path("Answer: tulip, hydrangea (50 flowers)", FLOWERS) == ["3", "2"]
    assert path("Answer: 1. rose flowers", FLOWERS, "first_step") == ["1"]
    assert path(
        "Take the rose. It gets you 50 free hydrangea flowers.", FLOWERS, "first_step"
    ) == ["1"]


@pytest.mark.parametrize(
    ("reply", "nodes"),
    [
        ("Ada, Ben, Dan.\nShall I say more about Ada and Cleo?", ["1", "2", "4"]),
        ("The way from Ada to Ben is the following:\n7, 8, 9", []),
        ("**Answer:**\n```\nAnswer: Ada, Ben\n```\nHow I got to the answer:\n1. Ada.\n2. Cleo is far.", ["1", "2"]),
        ("1. I looked at Cleo. Her friend is Dan.\n2. The shortest path is Ada → Ben → Dan.", ["1", "2", "4"]),
        ("- Ada\n- Ben\n- Dan", ["1", "2", "4"]),
    ],
)  # fmt: skip
def test_what_announces_asks_or_explains_is_no_answer(
    reply: str, nodes: list[str]
) -> None:
    assert path(reply, PEOPLE) == nodes


def test_what_somebody_gives_is_no_answer_if_there_is_another() -> None:
    assert path(
        "Ada can put you in touch with Ben. Dan is giving 50 books.",
        PEOPLE,
        "first_step",
    ) != ["4"]
    assert path(
        "You should ask Ben. Dan is giving 50 books.", PEOPLE, "first_step"
    ) == ["2"]


def test_names_of_several_words_and_names_that_are_words() -> None:
    assert path("Answer: old oak, oak gate, the pond", PARK) == ["1", "2", "3"]
    assert path("Answer: the black and white house and the pond", PARK) == ["4", "3"]
    assert path("Answer: will, ADA", PEOPLE) == ["5", "1"]


def test_names_that_share_their_core_need_their_nouns() -> None:
    lexicon = Lexicon({"1": "red room", "2": "red hall"}, ["room", "hall"])
    assert path("Answer: red hall, red room", lexicon) == ["2", "1"]
    assert path("Answer: red", lexicon) == [None]


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("Answer: 3", 3),
        ("Answer: there are 3 groups", 3),
        ("Answer: three", 3),
        ("There are **four densely connected clusters** with 4 members each.", 4),
        ("Answer: 3 clusters of 5 rooms each.", 3),
        ("Answer: 3 groups. Group 1 has rooms 1 and 2.", 3),
        ("There are **5 clusters** in 2 zones.", 5),
        (
            "There are a total of **5 clusters**:\n\n* Cluster 1: rooms 1, 2\n* Cluster 2: rooms 3, 4",
            5,
        ),
        ("There are three main clusters. Cluster 2 is small.", 3),
        (
            "**Three densely connected clusters**\nThe 2 links between them are single.",
            3,
        ),
        ("Answer: three well separated clusters, of which cluster 2 is small", 3),
        ("Answer: 3 or 4", None),
        ("Answer: 3-4 groups", None),
        ("Answer: many", None),
        ("", None),
        ("Answer: " + "9" * 5000, 10**6),
    ],
)
def test_numbers(reply: str, number: int | None) -> None:
    assert read_answer(reply, ROOMS, "number").number == number


HOSTILE = [
    "Answer:" * 20_000,
    "Answer:\n" * 15_000,
    "Answer: (" * 12_000,
    "1, " * 40_000,
    "answer " * 15_000 + ": 1",
    "[" * 100_000,
    "\n" * 100_000,
    " " * 100_000,
    "1. 1\n" * 20_000,
    "- " * 50_000,
    "room " * 20_000,
    "a" * 100_000,
    "is is: " * 15_000,
    "room 1 " + "is " * 30_000,
    "from " * 10_000 + "1 to " * 10_000,
    "* " * 50_000 + "Answer*:",
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:8] for text in HOSTILE])
@pytest.mark.parametrize("form", ["path", "first_step", "number"])
def test_large_answers_are_read_to_their_end(text: str, form: Form) -> None:
    """Answers of 100 kB, for which the test would hang if the time were more than
    proportional to the length.
    """
    answer = read_answer(f"{text}\nAnswer: room 3", ROOMS, form)
    assert (answer.number == 3) if form == "number" else (answer.nodes == ("3",))
    assert isinstance(read_answer(text, ROOMS, form), Answer)


@given(st.text(), st.sampled_from(["path", "first_step", "number"]))
def test_any_text_is_read(reply: str, form: Form) -> None:
    answer = read_answer(reply, ROOMS, form)
    assert isinstance(answer, Answer)
    assert all(node is None or node in ROOMS.names for node in answer.nodes)


@given(
    st.lists(st.sampled_from(sorted(ROOMS.names)), min_size=1, max_size=12),
    st.sampled_from([", ", " -> ", " → "]),
)
def test_what_is_listed_plainly_is_read_exactly(
    nodes: list[str], separator: str
) -> None:
    reply = f"Let me think.\n\nAnswer: {separator.join(ROOMS.names[node] for node in nodes)}"
    assert path(reply) == nodes


@pytest.mark.parametrize(
    "piece",
    [
        "-",
        "=",
        "[",
        "<",
        "[^",
        "answer: ",
        "answer\t",
        "\n",
        "* ",
        "a'",
        "( ",
        "1. ",
        "**",
    ],
)
def test_no_reply_takes_more_than_linear_time(piece: str) -> None:
    """Eight times the length takes eight times as long; quadratic time would take 64
    times as long.
    """

    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        gc.disable()  # One collection may take longer than all replies.
        begun = time.process_time()
        for form in ("path", "edges"):
            read_answer(text, ROOMS, form)
        gc.enable()
        return time.process_time() - begun

    short = max(seconds(MAX_READ // 64) for _ in range(3))
    assert min(seconds(MAX_READ // 8) for _ in range(4)) < 24 * max(short, 1e-3)


def test_the_end_of_a_very_long_reply_counts() -> None:
    assert path(f"Answer: 1, 2\n{'x' * (MAX_READ + 9)}\nAnswer: 1, 3, 5") == [
        "1",
        "3",
        "5",
    ]
