"""The Markdown report, read back as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest

from cheesebench.amounts import number
from cheesebench.records import CellPlan, Measured, ReferenceValue, TrialRecord
from cheesebench.reports import cells as words
from cheesebench.reports import html, text
from cheesebench.reports.cells import interval, settings_table
from cheesebench.reports.markdown import render, run_facts
from cheesebench.reports.markdown import table as drawn
from cheesebench.statistics import RunSummary, summarise_run

MakePlan = Callable[..., CellPlan]
MakeRun = Callable[..., RunSummary]


def section(report: str, title: str) -> str:
    """The text under a heading, up to the next one."""
    found = re.search(
        rf"^#+ {re.escape(title)}.*?$\n(.*?)(?=^#|\Z)", report, re.MULTILINE | re.DOTALL
    )
    assert found, f"no section {title!r}"
    return found[1]


def table(text: str) -> list[dict[str, str]]:
    """The first Markdown table in the text, as one dictionary per row."""
    lines = [line for line in text.split("\n") if line.startswith("|")]
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
    ]
    assert {len(row) for row in cells} == {len(cells[0])}, "ragged table"
    assert all(set(cell) <= set("-:") for cell in cells[1])
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def test_a_run_with_every_verdict(make_plan: MakePlan, make_run: MakeRun) -> None:
    report = render(
        make_run(
            [
                (make_plan("pool", subjects=40), 0.95),
                (make_plan("maze", dimension="memory"), 0.2),
                (make_plan("box", subjects=2, trials=8), 0.7),
                (make_plan("cage"), "infrastructure"),
            ]
        )
    )
    rows = {row["protocol"]: row for row in table(section(report, "Verdicts"))}
    assert [row["verdict"] for row in rows.values()] == [
        "✔ PASS",
        "✘ FAIL",
        "? INCONCLUSIVE",
        "! ERROR",
    ]
    assert rows["pool"]["n"] == "40 subjects x 20 trials (800/800 valid)"
    assert rows["pool"]["rodent"] == "80 % (declared)"
    assert "random" not in rows["pool"]
    assert "Pass rates of random moves, which need not be 0: pool 25 %" in report
    assert (
        rows["cage"]["rate"]
        == rows["cage"]["95 %"]
        == rows["cage"]["rate − rodent"]
        == "–"
    )
    assert "200 missing" in rows["cage"]["remarks"]
    undecided = section(report, "Undecided, and why")
    assert re.search(r"\*\*box\*\*: .* subjects would decide it", undecided)
    assert "**cage**" in undecided
    assert "**pool**" not in undecided
    assert "✘ FAIL" in report.split("\n## ")[1].split("\n")[0]


def test_profile_and_curves_are_drawn_over_the_rodent(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    report = render(
        make_run(
            [(make_plan("pool"), 1.0), (make_plan("maze", dimension="memory"), 0.0)]
        )
    )
    assert section(report, "By dimension").count("\n") >= 7
    lines = section(report, "Learning curves").split("\n")
    start = lines.index("The pool, pass rate (%) by session")
    assert lines[start + 1 : start + 4] == [
        "          1   2   3   4   5",
        "model    ███ ███ ███ ███ ███   100",
        "rodent   ▃▃▃ ▅▅▅ ▆▆▆ ▆▆▆ ▇▇▇   30 50 65 75 80",
    ]
    profile = section(report, "By dimension")
    assert re.search(r"^spatial learning +model +█{25} +100 %", profile, re.MULTILINE)
    assert re.search(r"^memory +model +░{25} +0 %", profile, re.MULTILINE)
    assert re.search(r"^ +rodent +█{20}░{5} +80 %$", profile, re.MULTILINE)


def test_outcomes_and_measures_add_up(make_plan: MakePlan, make_run: MakeRun) -> None:
    report = render(make_run([(make_plan("pool"), 0.5), (make_plan("cage"), "budget")]))
    pool, cage = table(section(report, "Outcomes of the trials"))
    assert (
        sum(
            int(pool[name].replace("·", "0"))
            for name in ("success", "wrong or no choice", "timeout", "budget")
        )
        == 200
    )
    assert cage["budget"] == "200"
    assert "unscored" not in pool
    assert table(section(report, "Measures"))[0]["trials"] == "200"
    assert "forward share" in table(section(report, "Movement"))[0]


def test_the_manifest_says_which_run_it_was(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    report = render(make_run([(make_plan("pool"), 0.5)]))
    facts = section(report, "The run")
    for expected in (
        "20250101-101010-ab12",
        "0123456789ab with uncommitted changes",
        "| seed ",
        "cohort",
        "3.11.7",
    ):
        assert expected in facts
    assert table(section(report, "Protocols"))[0]["sha256"] == "0123456789ab"
    assert "80 %; declared; C57BL/6; PMC1; declared" in report


def test_a_run_without_a_seed_names_none(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    run = make_run([(make_plan("pool"), 0.5)])
    for options, said in (
        ({}, None),
        ({"seed": 0}, "0 (given)"),
        ({"seed": 7, "seed_drawn": True}, "7 (drawn)"),
    ):
        manifest = {**run.manifest, "options": options}
        facts = dict(run_facts(replace(run, manifest=manifest)))
        assert facts.get("seed") == said


def test_the_editions_are_those_that_ran(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    run = make_run([(make_plan(name), 0.8) for name in ("a@dark", "b")])
    manifest = {**run.manifest, "options": {"edition": "default"}}
    facts = dict(run_facts(replace(run, manifest=manifest)))
    assert facts["edition"] == "dark, default"


def test_remarks_are_explained_once(make_plan: MakePlan, make_run: MakeRun) -> None:
    cells = [
        (make_plan(name, chance=0.75, goal_visible=True), 0.8) for name in ("a", "b")
    ]
    report = render(make_run(cells))
    rows = table(section(report, "Verdicts"))
    assert all(
        "not diagnostic" in row["remarks"] and "goal visible" in row["remarks"]
        for row in rows
    )
    assert report.count("*not diagnostic*") == 1
    assert "*no claim*" not in report


def test_an_author_s_reason_replaces_the_remark(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    given = (("W311", "the light is *the* cue"), ("W333", "no spread is known"))
    plan = make_plan("pool", goal_visible=True, acknowledged=given)
    (row,) = table(section(render(make_run([(plan, 0.9)])), "Verdicts"))
    assert "goal visible" not in row["remarks"]
    assert r"W311 acknowledged: the light is \*the\* cue" in row["remarks"]
    assert "W333 acknowledged: no spread is known" in row["remarks"]


def test_one_subject(make_plan: MakePlan, make_run: MakeRun) -> None:
    (row,) = table(
        section(render(make_run([(make_plan("pool", subjects=1), 0.9)])), "Verdicts")
    )
    assert row["n"].startswith("1 subject x 20 trials")
    assert "this subject only" in row["remarks"]


def test_no_reference_no_curve_no_dimension(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    plan = make_plan(
        "pool", reference=None, chance=None, dimension="", title="", species=""
    )
    report = render(make_run([(plan, 0.5)]))
    (row,) = table(section(report, "Verdicts"))
    assert row["rodent"] == row["rate − rodent"] == "–"
    assert row["verdict"] == "? INCONCLUSIVE"
    assert "(no dimension)" in report
    assert "\nrodent" not in report
    assert "Sources of the rodents' numbers" not in report


def test_a_measured_reference_shows_its_interval(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    plans = [
        make_plan("pool", reference=ReferenceValue(value=0.8, interval=(0.7, 0.875))),
        make_plan("maze", reference=ReferenceValue(value=0.8, n_animals=12)),
        make_plan(
            "ring", reference=ReferenceValue(value=0.663, sd=0.131, n_animals=35)
        ),
        make_plan("star", reference=ReferenceValue(value=0.8, kind="analogy")),
        make_plan(
            "post",
            reference=ReferenceValue(
                value=0.663, sd=0.131, n_animals=35, kind="analogy"
            ),
        ),
    ]
    first, second, third, fourth, fifth = table(
        section(render(make_run([(plan, 0.8) for plan in plans])), "Verdicts")
    )
    assert first["rodent"] == "80.0 % (70.0–87.5 %)"
    assert second["rodent"] == "80.0 % (declared, n = 12)"
    assert third["rodent"] == "66.3 % (61.8–70.8 %, n = 35)"
    assert fourth["rodent"] == "80.0 % (analogy, declared)"
    assert fifth["rodent"] == "66.3 % (analogy, 61.8–70.8 %, n = 35)"


def test_nothing_at_all(make_run: MakeRun) -> None:
    report = render(make_run([], {}))
    assert "No cell was run" in report
    assert report.endswith("\n")


def test_nothing_but_errors(make_plan: MakePlan, make_run: MakeRun) -> None:
    report = render(make_run([(make_plan("pool"), "infrastructure")]))
    assert "! ERROR" in report
    assert "By dimension" not in report
    assert "Learning curves" not in report


def test_smoke_makes_no_claim(make_plan: MakePlan, make_run: MakeRun) -> None:
    report = render(
        make_run(
            [
                (
                    make_plan(
                        "pool", subjects=2, trials=2, design="smoke", claims=False
                    ),
                    1.0,
                )
            ]
        )
    )
    (row,) = table(section(report, "Verdicts"))
    assert "no claim" in row["remarks"]
    assert "PASS" not in row["verdict"]


def test_several_models_and_views(make_plan: MakePlan, make_run: MakeRun) -> None:
    cells = [
        (
            make_plan(name, model=model, view=view, subjects=40),
            1.0 if model == "swimmer" else 0.4,
        )
        for model in ("walker", "swimmer")
        for view in ("ascii_2d", "ascii_3d")
        for name in ("pool", "maze")
    ]
    report = render(make_run(cells))
    matrix = table(report.split("\n## ")[0])
    assert sorted(row["model"] for row in matrix) == [
        "**swimmer (ascii_2d)**",
        "**swimmer (ascii_3d)**",
        "**walker (ascii_2d)**",
        "**walker (ascii_3d)**",
        "*rodent*",
    ]
    assert matrix[-1]["model"] == "*rodent*"
    assert [row["PASS"] for row in matrix] == ["2 of 2"] * 2 + ["0 of 2"] * 2 + [""]
    assert re.fullmatch(r"✘ [\d.]+ % \([\d.]+–[\d.]+, n 40\)", matrix[2]["pool"])
    assert report.count("\n### Verdicts\n") == 4
    best = section(report, "Best of views: swimmer")
    assert "cross-fitted" in table(best)[0]
    assert "biased upward" in best


def test_long_lives_have_narrow_columns(make_plan: MakePlan, make_run: MakeRun) -> None:
    report = render(make_run([(make_plan("pool", trials=80, subjects=3), 0.5)]))
    curve = section(report, "Learning curves").split("\n")
    assert re.fullmatch(
        r"model    (. ){19}.   [\d.]+ → [\d.]+", curve[curve.index("```text") + 2]
    )


HOSTILE = "x | `y` <script>alert(1)</script>\n# heading\n```\x1b[2J\u202e *z*"


@pytest.mark.parametrize(
    "field",
    ["model", "protocol", "view", "title", "dimension", "species", "sha256", "design"],
)
def test_hostile_text_stays_in_its_place(
    make_plan: MakePlan, make_run: MakeRun, field: str
) -> None:
    def structure(report: str) -> int:
        return sum(line.startswith(("#", "```")) for line in report.split("\n"))

    report = render(make_run([(make_plan(**{field: HOSTILE}), 0.0)]))
    assert structure(report) == structure(
        render(make_run([(make_plan(**{field: "x"}), 0.0)]))
    )
    assert not any(text in report for text in ("<script", "\x1b", "\u202e", "`y`"))
    assert len(table(section(report, "Verdicts"))) == 1


def test_hostile_manifests_and_causes(make_plan: MakePlan, make_run: MakeRun) -> None:
    manifest: dict[str, object] = {
        "options": {HOSTILE: HOSTILE, "seed": [1, None]},
        "git": "none",
        "versions": 3,
    }
    report = render(make_run([(make_plan("pool"), HOSTILE)], manifest))
    assert "<script" not in report
    assert len(table(section(report, "The run"))) == 3
    assert table(section(report, "Outcomes of the trials"))[0]["protocol"] == "pool"
    assert section(report, "Undecided, and why").startswith("\n- **pool**: ")


@pytest.mark.parametrize(("agent", "said"), [("llm", "llm"), ("", "walker")])
def test_the_run_says_who_acted(
    make_plan: MakePlan, make_run: MakeRun, agent: str, said: str
) -> None:
    # The option has its default even if no language model is asked.
    plan = make_plan("pool", model="walker", agent=agent)
    report = render(make_run([(plan, 0.5)], {"options": {"agent": "llm"}}))
    assert f"| agent | {said} |" in re.sub(" +", " ", section(report, "The run"))


def test_cells_compared_with_chance_speak_of_chance(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    asked = make_plan("words", reference=None, against="chance", chance=0.2, species="")
    report = render(make_run([(asked, 0.9)]))
    (row,) = table(section(report, "Verdicts"))
    assert row["verdict"] == "✔ PASS"
    assert row["rate − random"].startswith("+")
    assert row["margin"] == "+10"
    assert "PASS: the model does better than chance" in report
    assert "at least as well as the rodent" not in report

    mixed = render(make_run([(asked, 0.9), (make_plan("pool"), 0.9)]))
    rows = {row["protocol"]: row for row in table(section(mixed, "Verdicts"))}
    assert rows["words"]["difference"].startswith("+")
    assert [rows["words"]["margin"], rows["pool"]["margin"]] == ["+10", "-10"]
    assert "at least as well as the rodent" in mixed
    assert "Without an animal: PASS: the model does better than chance" in mixed


def test_an_invented_rodent_is_called_so(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    animals = ReferenceValue(value=0.8, sd=0.1, n_animals=16, kind="invented")
    report = render(make_run([(make_plan("pool", reference=animals), 0.5)]))
    assert "> The rodents of pool are invented: no animal was observed" in report
    (row,) = table(section(report, "Verdicts"))
    assert row["rodent"].startswith("80.0 % (invented, ")
    assert "rodent invented" in row["remarks"]
    zone = "in between no number of subjects decides"
    two = [make_plan("pool", reference=animals, model=name) for name in ("a", "b")]
    (line,) = [
        line
        for line in render(make_run([(one, 0.5) for one in two])).split("\n")
        if zone in line
    ]
    assert line.count("pool") == 1, "the zone is that of the animals, not of a model"


@pytest.mark.parametrize("told", ["text", "markdown", "html"])
@pytest.mark.parametrize(
    ("better", "ends"),
    [
        ("higher", "PASS from the upper value, FAIL below the lower; in between"),
        ("lower", "PASS up to the lower value, FAIL above the upper; in between"),
        ("alike", "PASS between the two ranges, FAIL beyond both; within them"),
    ],
)
def test_the_zone_says_on_which_side_of_it_a_model_passes(
    better: Literal["higher", "lower", "alike"],
    ends: str,
    told: str,
    make_plan: MakePlan,
    make_run: MakeRun,
) -> None:
    animals = ReferenceValue(
        value=30.0,
        sd=4.0,
        n_animals=16,
        measured=Measured(name="latency", better=better, range=(0.0, 100.0)),
    )
    plans = [make_plan("swim", reference=animals, margin=9.0), make_plan("maze")]
    run = make_run([(plan, 0.5) for plan in plans])
    shown = {"text": text.render, "markdown": render, "html": html.render}[told](run)
    found = " ".join(shown.replace("> ", "").split())
    assert f"{ends} no number of subjects decides" in found
    assert found.count("no number of subjects decides") == 1


def test_a_judged_measure_has_its_curve_beside_the_animals(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    animals = ReferenceValue(
        value=30.0,
        curve=(50.0, 40.0, 30.0),
        curve_sd=(5.0, 4.0, 3.5),
        measured=Measured(name="latency", better="lower", range=(0.0, 100.0)),
    )
    run = make_run([(make_plan("swim", reference=animals, margin=9.0), 0.5)])
    (cell,) = run.cells
    assert cell.judged is not None
    curves = section(render(run), "Learning curves").split("\n")
    start = curves.index("The swim, latency by session")
    assert curves[start + 2].endswith(
        " ".join(number(point.rate) for point in cell.judged.curve)
    )
    assert "50 40 30  ± 5 4 3.5 (SD between animals)" in curves[start + 3]
    assert "The swim, pass rate (%) by session" in curves, "it has a success, too"
    judged, rate = words.curves(cell)
    chart = html.curve(judged)
    assert chart is not None
    assert (chart["name"], chart["percent"]) == ("latency", False)
    assert chart["rodent"] == [50, 40, 30, None, None]
    assert (chart["rodent_low"][0], chart["rodent_high"][0]) == (45, 55)
    assert chart["without"] == []
    assert chart["model"] == [pytest.approx(point.rate) for point in cell.judged.curve]
    assert (rate.name, rate.animals) == ("pass rate", None)
    page = html.render(run)
    assert "<small>latency, by session</small>" in page
    assert "50 ± 5 (SD)" in page


def test_items_have_no_learning_curve(make_plan: MakePlan, make_run: MakeRun) -> None:
    text = render(make_run([(make_plan("words", items=True), 0.5)]))
    assert "### Learning curves" not in text
    assert "### Learning curves" in render(make_run([(make_plan("maze"), 0.5)]))


@pytest.mark.parametrize("rate", [0.0, 0.8, 1.0])
def test_the_mean_over_one_protocol_has_the_interval_of_its_cell(
    rate: float, make_plan: MakePlan, make_run: MakeRun
) -> None:
    run = make_run([(make_plan("pool"), rate)])
    (line,) = [line for line in render(run).split("\n") if "Mean pass rate" in line]
    (cell,) = run.cells
    own = f"95 %: {interval(cell)}"
    assert f"({own})" in line
    assert own in section(render(run), "By dimension")
    assert own in str(settings_table(run)[1])


@pytest.mark.parametrize("told", ["text", "markdown", "html"])
def test_subjects_without_a_value_are_told_beside_a_pass(
    told: str, make_plan: MakePlan, make_trials: Callable[..., list[TrialRecord]]
) -> None:
    measured = Measured(name="latency", better="lower", range=(0.0, 100.0))
    animals = ReferenceValue(value=80.0, measured=measured)
    plan = make_plan("swim", reference=animals, margin=10.0, subjects=40)
    trials = [
        replace(one, measures={"latency": None}) if one.subject >= 14 else one
        for one in make_trials(plan, 0.5)
    ]
    run = summarise_run({}, [plan], trials)
    assert [cell.verdict for cell in run.cells] == ["PASS"]
    shown = {"text": text.render, "markdown": render, "html": html.render}[told](run)
    assert "14 of 40 subjects have a value" in " ".join(shown.split())
    everybody = summarise_run({}, [plan], make_trials(plan, 0.5))
    assert "have a value" not in render(everybody)


def test_numbers_in_a_table_stay_as_they_are() -> None:
    lines = drawn(["a", "b"], [["007", "1e3"], ["x|y", "0.50"]], ["b"]).splitlines()
    assert lines[1] == "|:-----|-----:|"
    assert lines[2].strip("|").split("|")[0].strip() == "007"
    assert lines[2].strip("|").split("|")[1].strip() == "1e3"
    assert "0.50" in lines[3]
