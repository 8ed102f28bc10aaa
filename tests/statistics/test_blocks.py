"""Blocks summarised from trials, and two-choice trials told apart."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import pytest

from cheesebench.experiment.records import TrialRecord
from cheesebench.statistics.blocks import KINDS, BlockSummary, block_summaries, trial_values
from cheesebench.statistics.choices import ChoiceCounter, Choices


def trial(subject: int, number: int, **changes: Any) -> TrialRecord:
    values: dict[str, Any] = {"block": "main", "outcome": "correct", "success": True, "actions": "FFLS", "steps": 4}
    return TrialRecord(model="m", protocol="p", view="v", subject=subject, trial=number, **(values | changes))


def choice(subject: int, side: str, right: bool) -> TrialRecord:
    return trial(
        subject, 0, outcome="correct" if right else "error", success=right, variables={"side": side, "delay": 4}
    )


def two_choices(records: Iterable[TrialRecord], split: Sequence[str] = ()) -> tuple[Choices, ...]:
    counter = ChoiceCounter(split)
    for record in records:
        counter.add(record)
    return counter.choices()


def values(summary: BlockSummary) -> dict[str, tuple[float, float | None, float | None, int]]:
    return {m.name: (m.mean, m.sd, m.sd_subjects, m.n) for m in summary.measures}


def test_mean_and_spread_over_trials_and_over_subjects() -> None:
    records = [trial(0, 0, measures={"x": 1}), trial(0, 1, measures={"x": 3}), trial(1, 0, measures={"x": 8})]
    [block] = block_summaries(records)
    assert (block.subjects, block.trials, block.missing) == (2, 3, 0)
    mean, sd, sd_subjects, n = values(block)["x"]
    assert (mean, n) == (4, 3)
    assert sd == pytest.approx(13**0.5)  # of 1, 3, 8
    assert sd_subjects == pytest.approx(18**0.5)  # of 2, 8


def test_yes_or_no_is_a_share_and_text_is_left_out() -> None:
    records = [trial(0, n, measures={"reached": n == 0, "name": "west", "set": ["a"]}) for n in range(4)]
    [block] = block_summaries(records)
    assert values(block)["reached"][0] == 0.25
    assert not {"name", "set", "outcome", "compared"} & set(values(block))


def test_blocks_stand_in_the_order_of_life_and_missing_trials_are_counted() -> None:
    records = [trial(0, 0, block="z"), trial(0, 1, block="a"), trial(0, 2, block="a", missing="budget", actions="")]
    assert [(b.block, b.trials, b.missing) for b in block_summaries(records)] == [("z", 1, 0), ("a", 1, 1)]
    assert values(block_summaries(records)[0])["steps"] == (4, None, None, 1)


def test_values_of_a_trial_have_kinds() -> None:
    found = trial_values(trial(0, 0, counters={"visits": 2}, variables={"goal": "a"}))
    assert tuple(found) == KINDS
    assert found["counter"] == {"visits": 2}
    assert found["strategy"]["forward_share"] == 0.5
    assert "steps" in found["trial"]
    assert "steps" not in found["strategy"]


def test_who_always_goes_left_has_a_bias_and_no_sensitivity() -> None:
    records = [choice(0, side, side == "left") for side in ("left", "right") * 20]
    [found] = two_choices(records)
    assert (found.variable, found.first, found.second) == ("side", "left", "right")
    assert (found.right_on_first, found.trials_of_first, found.right_on_second, found.trials_of_second) == (
        20,
        20,
        0,
        20,
    )
    assert found.d_prime == pytest.approx(0)
    assert found.bias < -1.5  # the answer that is right on `left`
    assert found.side_bias == 1


def test_who_knows_the_side_has_sensitivity_and_no_bias() -> None:
    [found] = two_choices(
        [choice(0, "left", True)] * 20 + [choice(0, "right", True)] * 20 + [choice(0, "right", False)]
    )
    assert found.d_prime > 3
    assert abs(found.bias) < 0.3


def test_d_prime_is_the_textbook_s() -> None:
    records = [choice(0, "left", n < 8) for n in range(10)] + [choice(0, "right", n < 6) for n in range(10)]
    [found] = two_choices(records)
    z = NormalDist().inv_cdf
    assert found.d_prime == pytest.approx(z(8.5 / 11) - z(4.5 / 11))
    assert found.bias == pytest.approx(-(z(8.5 / 11) + z(4.5 / 11)) / 2)


def test_opposite_leanings_do_not_hide_each_other() -> None:
    left = [choice(0, side, side == "left") for side in ("left", "right") * 10]
    right = [choice(1, side, side == "right") for side in ("left", "right") * 10]
    [found] = two_choices(left + right)
    assert found.bias == pytest.approx(0)
    assert found.side_bias == 1


@pytest.mark.parametrize(
    "records",
    [
        [],
        [choice(0, "left", True), choice(0, "right", True)],  # never wrong: no second outcome
        [choice(0, "left", True), choice(0, "left", False)],  # one kind of trial
        [choice(0, side, side == "a") for side in "abc"],  # three kinds
        [choice(0, "left", True), trial(0, 1, outcome="timeout", success=False, variables={"side": "right"})],
        [choice(0, "left", True), choice(0, "right", False), trial(0, 2, outcome="escape", success=False)],
        [choice(0, "left", True), choice(0, "right", False), trial(0, 2, outcome="correct", success=False)],
    ],
)
def test_what_is_no_choice_of_two(records: list[TrialRecord]) -> None:
    assert two_choices(records) == ()


def test_names_are_shared_out_and_conditions_split_the_rate() -> None:
    records = [
        trial(n, 0, success=n < 3, variables={"delay": n % 2 * 8 + 2}, measures={"way": "east" if n else "west"})
        for n in range(4)
    ]
    [block] = block_summaries(records, ["delay"])
    assert [(found.name, dict(found.counts)) for found in block.classes] == [("way", {"east": 3, "west": 1})]
    assert [(s.value, s.passed, s.trials) for s in block.splits] == [(2, 2, 2), (10, 1, 2)]


def test_choices_are_split_by_conditions_and_told_by_measures() -> None:
    records = []
    for number in range(40):
        side, delay, right = ("left", "right")[number % 2], (2, 8)[number // 2 % 2], number % 4 != 3 or number > 30
        one = choice(number % 5, side, right)
        records.append(replace(one, variables={"delay": delay}, measures={"side": side}))
    found = two_choices(records, ["side", "delay"])
    assert [(c.variable, c.given) for c in found] == [("side", ""), ("side", "delay = 2"), ("side", "delay = 8")]
    assert found[1].d_prime > found[0].d_prime > found[2].d_prime
    assert sum(c.trials_of_first for c in found[1:]) == found[0].trials_of_first


def test_nothing_is_kept_of_earlier_trials() -> None:
    """A log may have a million subjects."""

    def records(subjects: int) -> Iterator[TrialRecord]:
        for subject in range(subjects):
            for side in ("left", "right"):
                right = subject % 3 == 0
                yield replace(choice(subject, side, right), measures={"x": subject / 7, "reached": right})

    def kept(subjects: int) -> int:
        tracemalloc.start()
        try:
            [block] = block_summaries(records(subjects), ["side"])
            assert block.subjects == subjects
            assert len(block.choices) == 1
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    kept(10)  # what is imported, and cached, at the first call
    assert kept(1100) - kept(100) < 1000 * 64
