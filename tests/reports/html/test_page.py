"""The page as text: its contents, that they are nothing but text, and its size."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import PluginManager
from cheesebench.published import PublishedRow
from cheesebench.records import AbilityScale, CellPlan
from cheesebench.reports.cells import curves
from cheesebench.reports.html import curve, entry, render, render_run, together
from cheesebench.reports.player import Shelf
from cheesebench.statistics import RunSummary, summarise_subjects

Run = tuple[RunLog, PluginManager]
Report = Callable[[RunLog, PluginManager], str]
MakePlan = Callable[..., CellPlan]
MakeRun = Callable[..., RunSummary]


class Outline(HTMLParser):
    """A browser's understanding of a page: its tags and attributes, and the contents of
    scripts and styles.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.raw.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            tag, attributes, text = self.raw[-1]
            self.raw[-1] = (tag, attributes, text + data)
        else:
            self.words += data


def test_everything_is_on_the_page(run: Run, report: Report) -> None:
    page = Outline(report(*run))
    words = " ".join(page.words.split())
    for text in (
        "walker in ascii_2d",
        "? INCONCLUSIVE",
        "A little maze",
        "75 %",
        "12.5 %",
        "Learning curve",
    ):
        assert text in words
    for text in (
        "By dimension",
        "Outcomes of the trials",
        "latency",
        "20250131-093000-ab12",
        "Watch the trials",
    ):
        assert text in words
    charts = [a["data-chart"] for tag, a in page.tags if tag == "canvas"]
    assert sorted(map(str, charts)) == [
        str(number) for number in range(10)
    ]  # each paradigm has a curve, latency and path length
    assert all(
        a.get("aria-label")
        for tag, a in page.tags
        if tag in ("canvas", "svg") and "role" in a
    )
    data = next(
        json.loads(text) for _, a, text in page.raw if a.get("id") == "chart-data"
    )
    assert (
        sorted(chart["kind"] for chart in data)
        == ["curve"] * 3 + ["radar"] + ["took"] * 6
    )
    curve = next(chart for chart in data if chart["kind"] == "curve")
    assert (curve["rodent"], curve["model"]) == ([50.0, 75.0], [75.0, 75.0])
    assert curve["subjects"] == [[75.0, 75.0]] * 3


def test_models_side_by_side_are_beside_the_animals_curve(run: Run) -> None:
    log, _ = run
    cell = summarise_subjects(log.manifest, log.plans(), log.trials_by_subject).cells[0]
    chart = together(curves(cell) * 2, ["one", "other"])
    assert chart is not None
    assert [one["rates"] for one in chart["models"]] == [[75.0, 75.0]] * 2
    assert chart["rodent"] == [50.0, 75.0]


def test_the_line_of_a_subject_without_the_ability_spans_what_it_is_proved_for(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    plan = make_plan(
        "pool", ability=AbilityScale(without=0.25, ideal=1.0), estimand="last:8"
    )
    (cell,) = make_run([(plan, 0.6)]).cells
    (rate,) = curves(cell)
    own, shared = curve(rate), together([rate, rate], ["one", "other"])
    assert own is not None
    assert shared is not None
    judged = [None, None, None, 25.0, 25.0]
    assert (own["without"], shared["without"]) == (judged, judged)
    # So does the one number of the animals, where there is no curve of them.
    assert cell.plan.reference is not None
    number = [None, None, None, 80.0, 80.0]
    assert (own["reference"], shared["reference"]) == (number, number)


def test_a_summary_alone_has_a_page_without_player(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    page = render(make_run([(make_plan("pool"), 0.6), (make_plan("cage"), "budget")]))
    assert "Watch the trials" not in page
    assert "The pool" in page
    assert "ERROR" in page


def test_doubts_stand_at_the_top(make_plan: MakePlan, make_run: MakeRun) -> None:
    whole = make_run([(make_plan("pool"), 0.6)])
    assert "Doubtful" not in render(whole)
    doubtful = dataclasses.replace(whole.cells[0], warnings=("too few <animals>",))
    page = render(dataclasses.replace(whole, cells=(doubtful,)))
    header = page[: page.index("</header>")]
    assert "Doubtful, whatever the verdict: 1" in header
    assert "too few &lt;animals&gt;" in header


@pytest.mark.parametrize(("cells", "windows"), [(3, 0), (40, 3)])
def test_tables_of_many_rows_are_windows(
    make_plan: MakePlan, make_run: MakeRun, cells: int, windows: int
) -> None:
    page = render(
        make_run([(make_plan(f"pool{number}"), 0.6) for number in range(cells)])
    )
    tags = [a.get("class") or "" for tag, a in Outline(page).tags if tag == "div"]
    assert sum("many" in kind.split() for kind in tags) >= windows
    assert windows or not any("many" in kind.split() for kind in tags)
    assert page.count("<div") == page.count("</div>")


def test_published_rows_are_shown_among_the_models(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    summary = make_run([(make_plan("pool"), 0.6)])
    assert "a giant" not in render(summary)
    row = PublishedRow(
        model="a giant",
        rates={"pool": 0.35, "elsewhere": 1.0},
        overall=0.675,
        source="a paper",
    )
    words = Outline(render(dataclasses.replace(summary, published=(row,)))).words
    assert re.search(r"a giant\s+67.5 %\s+35 %", words)
    assert "no verdict depends on them. Source: a paper." in words


def test_the_policy_lets_exactly_the_pages_own_scripts_run(
    run: Run, report: Report
) -> None:
    page = Outline(report(*run))
    policy = next(
        a["content"] or ""
        for tag, a in page.tags
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    kinds = {"script": 7, "style": 1}
    for tag, attributes, text in page.raw:
        if "type" in attributes:
            assert attributes["type"] in (
                "application/json",
                "application/octet-stream",
            )
            continue
        kinds[tag] -= 1
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy.split(f"{tag}-src")[1].split(";")[0]
    assert kinds == {"script": 0, "style": 0}


def test_nothing_is_loaded_and_nothing_is_styled_or_handled_inline(
    run: Run, report: Report
) -> None:
    for tag, attributes in Outline(report(*run)).tags:
        assert tag not in ("iframe", "object", "embed", "base")
        assert not {name for name in attributes if name.startswith("on")} | (
            {"style", "src"} & attributes.keys()
        )
        assert (attributes.get("href") or "#").startswith("#") or attributes[
            "href"
        ] == "data:,"


def test_hostile_text_is_text(hostile: Run, run: Run, report: Report) -> None:
    text = report(*hostile)
    page, decent = Outline(text), Outline(report(*run))
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in decent.tags}
    assert sum(tag == "script" for tag, _ in page.tags) == 7 + 2 + 1
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert "window.hacked=1</script>" in html.unescape(page.words)


def test_the_page_has_at_most_the_bytes_it_may_have(run: Run) -> None:
    log, plugins = run
    summary = summarise_subjects(log.manifest, log.plans(), log.trials_by_subject)
    whole = len(render_run(summary, log, plugins).encode())
    bare = len(render(summary).encode())
    limit = whole - 1200
    page = render_run(summary, log, plugins, limit)
    assert bare < len(page.encode()) <= limit
    assert re.search(r"\b\d+ of 24\b", page)
    assert '<details class="shown" open>' in page


def test_the_same_run_gives_the_same_page(run: Run, report: Report) -> None:
    assert report(*run) == report(*run)


@pytest.mark.parametrize(
    "name", ["chart.umd.min.js", "charts.js", "player.js", "page.css"]
)
def test_what_is_put_between_tags_cannot_end_them(name: str) -> None:
    text = (Path(render.__code__.co_filename).parent / "static" / name).read_text(
        encoding="utf-8"
    )
    assert "</" + ("style" if name.endswith("css") else "script") not in text
    assert "<!--" not in text
    assert "\r" not in text
    assert "sourceMappingURL" not in text


def test_cells_compared_with_chance_speak_of_chance(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    asked = make_plan("words", reference=None, against="chance", chance=0.2, species="")
    page = render(make_run([(asked, 0.9)]))
    words = Outline(page).words
    assert 'data-label="chance"' in page
    assert "rate − random" in words
    assert "PASS: the model does better than chance" in words
    assert "rate − rodent" not in words
    assert "at least as well as the rodent" not in words
    # With animals, the rate of random moves is not a zero of a scale, and is in no
    # column.
    animal = make_plan("pool", chance=0.2)
    assert 'data-label="chance"' not in render(make_run([(animal, 0.9)]))


def test_questions_in_words_are_wrapped_and_maps_are_not(make_plan: MakePlan) -> None:
    asked, walked = make_plan("words", view="dialogue", items=True), make_plan("maze")
    assert [entry(Shelf(plan=plan), "link")["prose"] for plan in (asked, walked)] == [
        True,
        False,
    ]
