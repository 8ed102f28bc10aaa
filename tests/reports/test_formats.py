"""JSON, text, and the registration of all formats."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from cheesebench.amounts import percent
from cheesebench.plugin_manager import PluginManager
from cheesebench.published import PublishedRow
from cheesebench.records import CellPlan, ReferenceValue
from cheesebench.reports import (
    board,
    cheesebench_reporters,
    comparison,
    markdown,
    matrix,
    text,
)
from cheesebench.reports import html as page
from cheesebench.statistics import RunSummary, Verdict, gate
from cheesebench.statistics.summary import PublishedContrast

MakePlan = Callable[..., CellPlan]
MakeRun = Callable[..., RunSummary]


@pytest.mark.parametrize(
    "reporter", list(cheesebench_reporters()), ids=lambda reporter: reporter.name
)
def test_every_registered_format_renders_the_same_text_twice(
    reporter: object, make_plan: MakePlan, make_run: MakeRun
) -> None:
    known = PluginManager().reporters
    name = str(getattr(reporter, "name", ""))
    assert known[name].suffix.startswith(".")
    summary = make_run([(make_plan("pool"), 0.6), (make_plan("cage"), "budget")])
    assert known[name].render(summary) == known[name].render(summary)
    assert known[name].render(summary).endswith("\n")
    assert known[name].render(make_run([], {}))


def test_json_is_the_whole_summary_with_sorted_keys(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    summary = make_run([(make_plan("pool"), 0.6)])
    document = comparison.plain_json(summary)
    assert json.loads(document) == json.loads(json.dumps(summary.to_dict()))
    assert document == json.dumps(json.loads(document), sort_keys=True, indent=2) + "\n"


def test_json_has_null_for_what_is_no_number_and_survives_any_text(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    summary = make_run([(make_plan("pool", title="\ud800 \u2028"), 0.6)])
    strange = dataclasses.replace(
        summary, manifest={"x": float("nan"), "y": [float("inf"), 1.5]}
    )
    document = comparison.plain_json(strange)
    assert json.loads(document)["manifest"] == {"x": None, "y": [None, 1.5]}
    assert document.isascii()


def test_text_is_a_table_for_each_model(make_plan: MakePlan, make_run: MakeRun) -> None:
    cells = [
        (make_plan("pool", model=model, subjects=40), rate)
        for model, rate in (("walker", 0.1), ("swimmer\x1b[2J", 0.99))
    ]
    report = text.render(make_run(cells))
    assert "\x1b" not in report
    matrix, walker, swimmer = re.split(r"\n\n(?=walker in|swimmer.* in)", report)
    assert re.search(
        r"PASS\s+mean\s+pool\nswimmer\S*\s+1 of 1\s.*✔ \S+ %.*\nwalker\s+0 of 1\s.*✘ \S+ %",
        matrix,
    ), "models are rows, the best first"
    assert walker.startswith("walker in ascii_2d (1 FAIL)")
    assert "✘ FAIL" in walker
    assert "✔ PASS" in swimmer
    assert "40 subjects; " in walker


def test_models_are_rows_and_their_names_are_whole(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    """Columns that do not fit are below, with the models again."""
    models = [f"provider/a-family-of-models-{size}b-instruct" for size in (7, 70)]
    labels = [f"paradigm_number_{number}_of_the_run" for number in range(9)]
    cells = [
        (make_plan(label, model=model, subjects=40), 0.6)
        for model in models
        for label in labels
    ]
    matrix = text.render(make_run(cells)).partition(f"\n\n{models[0]} in ")[0]
    assert max(map(len, matrix.splitlines())) <= 80
    rows = [re.split(r" {2,}", line) for line in matrix.splitlines()]
    shown = {
        model: sum(
            field[0] in "✘?" for row in rows if row[0] == model for field in row[1:]
        )
        for model in models
    }
    assert shown == dict.fromkeys(models, 9), "a mark for each paradigm"


def test_names_that_look_alike_when_shortened_are_given_in_full(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    names = [
        f"a_graph_with_a_name[{domain}-transReval]"
        for domain in ("ordered_rooms", "social_ties")
    ]
    report = text.render(make_run([(make_plan(name), 0.6) for name in names]))
    shown = re.findall(r"(\S+…\S+)", report)
    assert len(shown) == 2
    assert len(set(shown)) == 1, "the table has no room for them"
    assert "Each protocol: 10 subjects; " in report
    assert all(name in " ".join(report.split()) for name in names)


def test_a_run_of_several_views_is_compared_with_the_best_of_as_many(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    summary = make_run(
        [
            (make_plan("pool", view=view), rate)
            for view, rate in (("ascii_2d", 0.3), ("ascii_3d", 0.7))
        ]
    )
    assert "best of 2 views" not in markdown.render(summary).split("\n## ")[0]
    row = PublishedRow(
        model="a giant",
        rates={"pool": 0.35},
        how="their rules",
        where="best of three text views; 10 of each",
        source="A",
    )
    shown = markdown.render(dataclasses.replace(summary, published=(row,))).split(
        "\n## "
    )[0]
    (best,) = [line for line in shown.splitlines() if "best of 2 views" in line]
    (rates,) = [
        choice.rates for found in summary.best_of_views for choice in found.protocols
    ]
    assert f" {percent(max(rates.values()))} " in best
    assert "*a giant (best of three text views; 10 of each)*" in shown
    assert (
        "The published numbers do not come from this run, and no verdict depends on them. Source: their rules. A."
        in shown
    )


def test_every_format_shows_a_run_beside_a_published_model(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    summary = make_run([(make_plan("pool"), 0.6)])
    beside = PublishedContrast(
        model="a giant", protocol="pool", view="ascii_2d", rate=0.6, trials=10,
        published=0.25, published_trials=10, low=-0.05, high=0.65,
    )  # fmt: skip
    for render in (markdown.render, text.render, page.render):
        assert "Beside a giant" not in render(summary)
        shown = render(dataclasses.replace(summary, contrasts=(beside,)))
        assert "Beside a giant, as published" in shown
        for part in ("60 % of 10", "25 % of 10", "+35", "(-5 to +65)"):
            assert part in shown


def test_every_format_ranks_the_models_of_a_leaderboard(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    rates = {"good": 0.95, "like": 0.94, "weak": 0.1}
    cells = [
        (make_plan(model=name, design="leaderboard", subjects=40), rate)
        for name, rate in rates.items()
    ]
    for render in (markdown.render, text.render, page.render):
        shown = html.unescape(re.sub(r"<[^>]*>", " ", render(make_run(cells)))).replace(
            "|", " "
        )
        plain = " ".join(shown.split())
        assert (
            "Leaderboard in ascii_2d: 1 protocol (not validated: pool), 40 subjects each"
            in plain
        )
        assert re.search(r"1–2 (good|like) 9", plain)
        assert re.search(r"3 weak \d[\d.]* % -8\d[\d.]* -\d+[\d.]* to -\d", plain)
        assert "PASS: good on pool, like on pool. FAIL: weak on pool." in plain
        assert "Leaderboard" not in render(make_run(cells[:1]))


def test_registering_the_formats_imports_nothing_heavy() -> None:
    program = (
        "import sys, cheesebench.reports as reports\n"
        "list(reports.cheesebench_reporters())\n"
        "print([m for m in ('scipy', 'numpy', 'matplotlib', 'jinja2', 'aiohttp') if m in sys.modules])\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert finished.stdout.strip() == "[]"


def test_a_badge_says_how_many_are_passed(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    one = matrix.render_badge(
        make_run(
            [
                (make_plan("pool", subjects=40), 0.99),
                (make_plan("maze", subjects=40), 0.1),
            ]
        )
    )
    assert "<title>as good as the rodent: 1 of 2</title>" in one
    assert matrix.COLOURS[Verdict.FAIL] in one
    two = matrix.render_badge(
        make_run(
            [
                (make_plan("pool", model=name, subjects=40), 0.99)
                for name in ("a", "b<c")
            ]
        )
    )
    assert "2 of 2 models" in two
    assert matrix.COLOURS[Verdict.PASS] in two
    ElementTree.fromstring(two)


def test_a_board_is_an_image_with_the_best_model_first(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    rates = {"weak": 0.1, "a<b": 0.99}
    summary = make_run(
        [
            (make_plan(protocol, model=name, subjects=40), rate)
            for name, rate in rates.items()
            for protocol in ("pool", "maze")
        ]
    )
    image = ElementTree.fromstring(board.render(summary))
    texts = [one.text for one in image.iter("{http://www.w3.org/2000/svg}text")]
    # Its columns, then a line for each model, and the rodent's.
    assert texts[:4] == ["PASS", "mean", "pool", "maze"]
    names = [one for one in texts if "(ascii_2d)" in str(one) or one == "rodent"]
    assert [str(name).split(" ")[0] for name in names] == ["a<b", "weak", "rodent"]
    best = texts.index(names[0])
    passed, _, *fields = texts[best + 1 : best + 5]
    assert passed == "2 of 2"
    assert all(str(one).startswith("✔ ") for one in fields)


def test_a_board_has_borrowed_numbers_whole(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    found = ReferenceValue(value=0.797, species="rat", kind="analogy", source="rats")
    image = board.render(make_run([(make_plan("pool", reference=found), 0.6)]))
    assert ">(79.7 %)<" in image


def test_a_comment_has_the_matrix_and_room_for_more(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    cells = [(make_plan(f"pool_{number}_{'x' * 300}"), 0.1) for number in range(20)]
    text = matrix.render_comment(make_run(cells))
    assert text.startswith(gate.MARK)
    assert re.search(
        r"^\|\s+\| +walker \(ascii_2d\) \| +rodent \|$", text, re.MULTILINE
    )
    assert len(re.findall(r"^\| pool_", text, re.MULTILINE)) == 20, "paradigms are rows"
    assert " %" not in text
    many = [(make_plan(f"pool_{number}_{'x' * 4000}"), 0.1) for number in range(20)]
    assert len(matrix.render_comment(make_run(many))) < 65_536
    assert text.count("<details>") == text.count("</details>") == 1


def test_numbers_of_a_comparison_have_the_decimals_of_their_kind() -> None:
    kinds = ["", "", "", "latency"]
    for column, levelled in (
        (["49 %", "100 %", "30.4 %", "7"], ["49.0 %", "100.0 %", "30.4 %", "7"]),
        (["-51", "–", "+0.5", "-2"], ["-51.0", "–", "+0.5", "-2"]),
        (
            ["-3..0", "–", "-78.5..-60.7", "-4..+1"],
            ["-3.0..0.0", "–", "-78.5..-60.7", "-4..+1"],
        ),
    ):
        assert comparison._level_ends(column, kinds) == levelled


def test_the_text_report_splits_no_word_and_shortens_names_in_the_middle() -> None:
    command = "--cheese-" + "long-" * 20
    filled = text._filled(f"say {command} to stop", 40, first="* ")
    assert filled.splitlines() == ["* say", f"  {command}", "  to stop"]
    assert max(map(len, text._filled("of mice " * 30, 40).splitlines())) <= 40
    assert text._shortened("abcdefghij", 10) == "abcdefghij"
    assert text._shortened("abcdefghij", 5) == "ab…ij"
    assert text._shortened("abcdefghij", 6) == "abc…ij"


def test_a_folded_list_says_how_many_lines_have_no_room() -> None:
    lines = [letter * 99 for letter in "abcde"]
    head = "<details><summary>Why</summary>\n\n"
    # 200 characters are left for the end of the comment.
    assert matrix._folded("Why", lines, 400) == (
        f"{head}{lines[0]}\n{lines[1]}\n- and 3 more\n\n</details>"
    )
    assert matrix._folded("Why", lines, 399).count("\n- and 4 more\n") == 1
    assert matrix._folded("Why", lines, 700) == (
        f"{head}{chr(10).join(lines)}\n\n</details>"
    )
    assert matrix._folded("Why", [], 700) == ""
