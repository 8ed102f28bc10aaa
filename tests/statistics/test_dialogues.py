"""Results of dialogues: by condition and model, kinds of failure, and compared with
published results.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from cheesebench.paradigms.dialogue.cogeval_stats import draw
from cheesebench.paradigms.dialogue.life import NO_VIEW
from cheesebench.paradigms.dialogue.statistics import (
    KINDS,
    Score,
    Spread,
    by,
    contrast,
    deviance_table,
    failure_shares,
    scores_of,
    spread,
)
from cheesebench.records import CellPlan, TrialRecord, Variant
from cheesebench.statistics import Verdict, judge
from cheesebench.statistics.run import summarise_model


def score(**changes: object) -> Score:
    fields = {
        "model": "m",
        "graph": "g",
        "domain": "d",
        "condition": "c",
        "group": "T",
        "successes": 1,
        "total": 2,
    }
    return Score(**{**fields, **changes})  # type: ignore[arg-type]


def plan(chance: float = 0.25, **changes: object) -> CellPlan:
    fields = {
        "model": "m",
        "protocol": "fork",
        "view": NO_VIEW,
        "variant": Variant(condition="rooms-value"),
        "title": "",
        "dimension": "",
        "species": "",
        "sha256": "0",
        "design": "cohort",
        "subjects": 30,
        "trials": 1,
        "memory": "none",
        "chance": chance,
        "against": "chance",
        "items": True,
        "settings": {
            "domain": "rooms",
            "condition": "value",
            "group": "Traversal",
            "temperature": 0.5,
        },
    }
    return CellPlan(**{**fields, **changes})  # type: ignore[arg-type]


def record(
    subject: int, success: bool, start: str = "1", **measures: int
) -> TrialRecord:
    return TrialRecord(
        model="m",
        protocol="fork",
        view=NO_VIEW,
        variant="rooms-value",
        subject=subject,
        trial=int(start) - 1,
        success=success,
        outcome="correct" if success else "loop",
        variables={"start": start, "goal": "9"},
        measures=measures,
    )


def test_a_score_for_every_pair() -> None:
    records = [
        record(0, True),
        record(1, False, loop=1),
        record(0, True, "2"),
        record(1, True, "2"),
    ]
    missing = TrialRecord(
        model="m", protocol="fork", view=NO_VIEW, subject=2, trial=0, missing="budget"
    )
    first, second = scores_of(plan(trials=2), [*records, missing])
    assert (first.successes, first.total, first.temperature, first.group) == (
        1,
        2,
        "0.5",
        "Traversal",
    )
    assert (second.successes, second.total) == (2, 2)
    assert first.failures["loop"] == 1
    shares = failure_shares([first, second])
    assert shares["m"]["loop"] == 0.25
    assert shares["m"]["no answer"] == 0


def test_pairs_that_take_turns_are_one_item() -> None:
    (found,) = scores_of(
        plan(trials=1), [record(0, True), record(1, False, "2"), record(2, True, "3")]
    )
    assert (found.successes, found.total) == (2, 3)


def test_lists_of_edges_are_in_no_mean_of_plans() -> None:
    plans, lists = (
        score(successes=0),
        score(successes=2, condition="listEdges", group="Map"),
    )
    assert by([plans, lists], "graph")["g", "m"].mean == 0
    assert by([plans, lists], "condition")["listEdges", "m"].mean == 1
    assert by([lists], "graph")["g", "m"].mean == 1, "where there is nothing else"
    assert deviance_table([lists]) is None


def test_the_spread_is_over_items_and_keeps_sd_and_se_apart() -> None:
    found = by(
        [score(successes=0), score(successes=1), score(successes=2), score(model="n")],
        "condition",
    )
    assert found["c", "m"] == Spread(0.5, 0.5, 0.5 / math.sqrt(3), 3)
    assert found["c", "n"] == Spread(0.5, None, None, 1)


def test_the_table_has_the_terms_that_vary_and_leaves_groups_out() -> None:
    scores = [
        score(model=m, graph=g, successes=s) for m in "mn" for g in "gh" for s in (0, 1)
    ]
    table = deviance_table([*scores, score(group="Groups", domain="other")])
    assert table is not None
    assert [row.term for row in table.rows] == ["model", "graph"]
    assert deviance_table([score()]) is None


@pytest.mark.parametrize(
    ("values", "published", "verdict"),
    [
        ([0.9, 0.8, 0.85, 0.9], 0.6, Verdict.PASS),
        ([0.1, 0.2, 0.15, 0.1], 0.6, Verdict.FAIL),
        ([0.1, 0.9, 0.5, 0.6], 0.6, Verdict.INCONCLUSIVE),
        ([1.0], 0.6, Verdict.INCONCLUSIVE),
        ([1.0, 1.0], 0.9, Verdict.INCONCLUSIVE),
        ([0.0] * 40, 0.6, Verdict.FAIL),
    ],
)
def test_three_states_against_a_published_mean(
    values: list[float], published: float, verdict: Verdict
) -> None:
    assert contrast(spread(values), published, 0.10).verdict is verdict


@pytest.mark.parametrize(
    ("right", "verdict", "words"),
    [
        (30, Verdict.PASS, "better than chance"),
        (0, Verdict.FAIL, "less than 10 points better than chance"),
        (10, Verdict.INCONCLUSIVE, "20 to 1 decides"),
    ],
)
def test_three_states_against_chance(right: int, verdict: Verdict, words: str) -> None:
    cell = judge(
        plan(), [record(subject, subject * 7 % 30 < right) for subject in range(30)]
    )
    assert cell.verdict is verdict
    assert words in cell.reason
    assert (cell.subjects_needed is not None) == (verdict is Verdict.INCONCLUSIVE)
    assert cell.flags.duplicate_subjects == 0


def test_ways_of_failing_by_condition() -> None:
    records = [
        record(0, False, loop=1, excess_length=2),
        record(1, False, loop=1),
        record(2, True),
    ]
    (found,) = failure_shares(scores_of(plan(), records), "condition").items()
    assert found[0] == "value"
    assert found[1]["loop"] == pytest.approx(2 / 3)
    assert found[1]["too long"] == pytest.approx(1 / 3)


def test_every_wrong_answer_is_of_some_kind() -> None:
    records = [
        record(0, False),
        record(1, False, loop=1),
        record(2, True),
        record(3, True),
    ]
    (shares,) = failure_shares(scores_of(plan(), records)).values()
    assert (shares["none of these"], shares["loop"]) == (0.25, 0.25)


def test_the_remedy_names_the_option_that_there_is() -> None:
    cell = judge(
        plan(), [record(subject, subject * 7 % 30 < 10) for subject in range(30)]
    )
    assert (
        f"About {cell.subjects_needed} generations would decide it in 4 of 5 such cases: "
        f"--subjects {cell.subjects_needed}." in cell.reason
    )
    assert "0 subjects" not in cell.reason


@pytest.mark.parametrize("rights", [*itertools.product((30, 0, 10), repeat=2)])
def test_the_gate_says_what_the_tests_say(rights: tuple[int, int]) -> None:
    cells = [
        judge(
            plan(), [record(subject, subject * 7 % 30 < right) for subject in range(30)]
        )
        for right in rights
    ]
    gate, verdicts = summarise_model(cells).gate, {cell.verdict for cell in cells}
    assert (gate is Verdict.FAIL) == (Verdict.FAIL in verdicts)
    assert (gate is Verdict.PASS) == (verdicts == {Verdict.PASS})


def test_a_design_without_claims_makes_none() -> None:
    cell = judge(plan(claims=False), [record(subject, True) for subject in range(2)])
    assert cell.verdict is Verdict.INCONCLUSIVE


def test_kinds_of_failure_are_drawn_by_graph_and_condition(tmp_path: Path) -> None:
    """The paper's Figure 3; each kind has a bar in each group, and a name."""
    pytest.importorskip("matplotlib")
    loops = {**dict.fromkeys(KINDS, 0), "loop": 1}
    drawn = draw([score(failures=loops), score(graph="h", failures=loops)], tmp_path)
    assert {path.name for path in drawn} == {
        *(f"by_{factor}.svg" for factor in ("graph", "condition", "group")),
        *(f"failures_by_{factor}.svg" for factor in ("graph", "condition")),
    }
    text = (tmp_path / "failures_by_graph.svg").read_text(encoding="utf-8")
    assert all(f">{kind}<" in text for kind in KINDS)
    assert ">share of all answers<" in text
