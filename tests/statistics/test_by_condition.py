"""Measures by condition: from the protocol to the tables, without a success."""

from __future__ import annotations

from typing import Any

from cheesebench.interfaces import Value
from cheesebench.records import TrialRecord
from cheesebench.statistics.measures import Tally
from tests.arenas import examine_text

PROTOCOL = """
version: 1
paradigm: delays
arena: {map: "S..Z", legend: {S: box, Z: goal}}
draw: {d: {of: {delay: [2, 10]}}}
start: {at: box, face: E}
trial: {limit: 9, start: run, states: {run: {rules: [{after: delay, if: steps > 1, end: found}]}}}
schedule: {main: {trials: 4}}
measures:
  latency: {value: steps, by: delay}
  choice: {value: [{if: steps > 5, is: late}, soon], by: [delay, latency]}
"""
BY = (("latency", "delay"), ("choice", "delay"))


def trial(subject: int, number: int, **more: Any) -> TrialRecord:
    return TrialRecord(
        model="m",
        protocol="delays",
        view="ascii_2d",
        subject=subject,
        trial=number,
        session=1,
        **more,
    )


def records() -> list[TrialRecord]:
    given: list[tuple[Value, Value, str]] = [
        (10, 5, "late"), (2, 1, "soon"), (10, 7, "soon"), (2.5, 2, "soon"), (None, 9, "late"),
    ]  # fmt: skip
    return [
        trial(
            n % 2,
            n,
            success=None,
            measures={"latency": steps, "choice": choice},
            variables={"delay": delay},
        )
        for n, (delay, steps, choice) in enumerate(given)
    ]


def test_a_protocol_names_conditions_which_change_nothing_that_is_measured() -> None:
    specification, found = examine_text(PROTOCOL, "delays.protocol.yaml")
    assert specification is not None, found
    assert specification.document.by == (
        ("latency", "delay"),
        ("choice", "delay"),
        ("choice", "latency"),
    )
    plain, _ = examine_text(
        PROTOCOL.replace("{value: steps, by: delay}", "steps"), "delays.protocol.yaml"
    )
    assert plain is not None
    assert plain.sha256 == specification.sha256
    other, _ = examine_text(
        PROTOCOL.replace("{value: steps,", "{value: steps + 1,"), "delays.protocol.yaml"
    )
    assert other is not None
    assert other.sha256 != specification.sha256


def test_conditions_follow_their_measure_in_rising_order() -> None:
    lives = sorted(records(), key=lambda record: record.subject)
    tally = Tally(lives, by=BY)
    assert [(m.name, m.mean, m.n) for m in tally.own_measures()] == [
        ("latency", 4.25, 5),  # Subjects have 7 and 1.5.
        ("latency (delay = 2)", 1, 1),
        ("latency (delay = 2.5)", 2, 1),
        ("latency (delay = 10)", 6, 2),
        ("latency (delay = none)", 9, 1),
    ]
    shares = {found.name: dict(found.counts) for found in tally.class_shares()}
    assert shares["choice (delay = 10)"] == {"late": 1, "soon": 1}
    assert Tally(lives).own_measures()[0] == tally.own_measures()[0]
