"""The page in a real browser: it loads nothing, runs nothing that is not its own, and
its player plays.

Debian's Chromium will do (``apt-get install chromium``), and so will Playwright's
(``playwright install chromium``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

import cheesebench
from cheesebench.experiment.controls import control_cell
from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.reports.html import render
from cheesebench.statistics import RunSummary, summarise_run
from cheesebench.statistics.comparison import CellCounts, CountedRun, compare_runs
from cheesebench.statistics.sample import SubjectScore
from tests import chromium
from tests.reports.html.conftest import MAZE, make_log

if TYPE_CHECKING:
    from playwright import sync_api as playwright
else:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed"
    )

Scheme = Literal["light", "dark"]
Run = tuple[RunLog, PluginManager]
Report = Callable[[RunLog, PluginManager], str]
Open = Callable[..., "playwright.Page"]

pytestmark = pytest.mark.browser


browser = chromium.browser


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def open_page(
    browser: playwright.Browser, files: Path, report: Report
) -> Iterator[Open]:
    """Open the page of a run; any complaint or network request fails the test."""
    contexts: list[playwright.BrowserContext] = []
    complaints: list[str] = []

    def open_page(
        run: Run,
        link: str = "",
        width: int = 1400,
        scheme: Scheme = "light",
        tab: str = "Trials",
    ) -> playwright.Page:
        log, plugins = run
        path = files / f"{log.path.parent.parent.name}.html"
        if not path.exists():
            path.write_text(report(log, plugins), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on(
            "console",
            lambda message: complaints.append(f"{message.type}: {message.text}"),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        address = path.as_uri()
        allowed = (address, "data:")
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(allowed)
                else complaints.append(request.url)
            ),
        )
        page.goto(f"{address}{link}")
        if not link:
            page.get_by_role("tab", name=tab).click()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def said(page: playwright.Page, begins: str) -> None:
    """Wait until the player's sentence begins with this."""
    playwright.expect(page.locator("#sentence")).to_contain_text(begins)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_the_page_fits_and_draws(
    run: Run, open_page: Open, width: int, scheme: Scheme
) -> None:
    page = open_page(run, width=width, scheme=scheme)
    said(page, "Step 0 of 6: the trial begins.")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    blank = """() => [...document.querySelectorAll("canvas")].filter((canvas) => {
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return !pixels.some((value) => value !== 0);
    }).length"""
    for tab in ("Behaviour", "Numbers"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    # On paper, all of them.
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(blank) == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    back = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)"
    )
    assert (sum(back) < 200) == (scheme == "dark")


@pytest.mark.parametrize("width", [390, 900, 1400])
def test_no_table_is_wider_than_its_card(run: Run, open_page: Open, width: int) -> None:
    page = open_page(run, width=width, tab="Behaviour")
    page.evaluate(
        "document.querySelectorAll('[data-tab], .paradigm').forEach((one) => { one.hidden = false; })"
    )
    page.evaluate(
        "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
    )
    wider = """() => [...document.querySelectorAll("figure, section, .scroll")].filter((card) => {
        const seen = (table) => table.closest(".scroll") || table;
        const edge = card.getBoundingClientRect().right + 1;
        return [...card.querySelectorAll("table")].some((table) => seen(table).getBoundingClientRect().right > edge);
    }).map((card) => card.outerHTML.slice(0, 200))"""
    assert page.locator("figure table").count() >= 3
    assert page.evaluate(wider) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_where_nothing_can_pass_or_fail_nothing_is_said_about_it(
    open_page: Open, tmp_path: Path
) -> None:
    text = MAZE.format(name="order", title="Order", say="wait", dimension="order")
    text = text.replace("S.C.G", "S=C.G").replace(
        "S: box", '=: {zone: x, glyph: "="}, S: box'
    )
    text = text.replace("G: goal", 'G: {zone: goal, glyph: "u"}')
    text = text.replace("success: last == found\n", "").partition("reference:")[0]
    path = tmp_path / "order.protocol.yaml"
    path.write_text(
        f"{text}reference: [{{measure: latency, value: 4, curve: [6, 3], better: lower, "
        "margin: 1, range: [0, 15], status: made up}]\n",
        encoding="utf-8",
    )
    specification = with_arena(Catalogue().load(path))
    log, plugins = make_log(tmp_path, [specification])
    page = open_page((log, plugins), tab="Behaviour")
    caption = page.locator(".maps .aside")
    playwright.expect(caption).to_contain_text("● start, ▲ end.")
    assert "passed" not in page.locator("#behaviour").inner_text()
    playwright.expect(page.locator("figcaption small").first).to_have_text(
        "latency, by session"
    )
    drawn = "Chart.getChart(document.querySelector('.curves canvas'))"
    rodent = f"{drawn}.data.datasets.find((one) => one.label === 'rodent').data"
    assert page.evaluate(rodent) == [6, 3]
    assert page.evaluate(f"{drawn}.scales.y.max") < 20
    page.get_by_role("tab", name="Trials").click()
    assert page.get_by_text("failed ones only").is_hidden()
    assert page.get_by_text("of them failed").count() == 0
    assert page.locator("#trial-facts").get_by_text("in the verdict").count() == 1
    # Two things on the floor are told apart from above.
    assert page.locator("#above .sign").all_text_contents() == ["=", "u"]
    log.close()


NINE = "barnes_maze dnms morris_water_maze operant_chamber place_preference"
NINE += " radial_arm_maze shuttle_box star_maze t_maze"


def test_a_matrix_of_nine_paradigms_fits(
    browser: playwright.Browser,
    tmp_path: Path,
    make_plan: Callable[..., CellPlan],
    make_run: Callable[..., RunSummary],
) -> None:
    path = tmp_path / "nine.html"
    path.write_text(
        render(make_run([(make_plan(name), 0.604) for name in NINE.split()])),
        encoding="utf-8",
    )
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(path.as_uri())
    hidden = "one => one.scrollWidth - one.clientWidth"
    assert page.locator("#matrix .scroll").evaluate(hidden) == 0
    page.close()


@pytest.mark.parametrize("width", [390, 1366, 1920])
def test_the_result_on_one_paradigm_is_not_cut_off(
    browser: playwright.Browser,
    tmp_path: Path,
    make_plan: Callable[..., CellPlan],
    make_run: Callable[..., RunSummary],
    width: int,
) -> None:
    path = tmp_path / "few.html"
    plans = [make_plan("serial_order", model=f"provider/model-{n}") for n in range(3)]
    path.write_text(render(make_run([(one, 0.6) for one in plans])), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    region = page.locator("#matrix .scroll")
    assert region.evaluate("one => one.scrollWidth - one.clientWidth") == 0
    row = region.locator("tbody tr").first
    ends = (
        "one => { const at = one.getBoundingClientRect(); return [at.top, at.right]; }"
    )
    field, passed = (
        row.locator(name).evaluate(ends) for name in ("td.field", "td >> nth=0")
    )
    assert field[1] <= width
    assert field[0] < passed[0] or width > 700, "the verdict comes first"
    page.close()


def test_no_number_of_outcomes_is_cut_off_on_a_telephone(
    browser: playwright.Browser,
    tmp_path: Path,
    make_plan: Callable[..., CellPlan],
    make_run: Callable[..., RunSummary],
) -> None:
    path = tmp_path / "outcomes.html"
    run = make_run([(make_plan("serial_order"), 0.6)])
    path.write_text(render(run), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(path.as_uri())
    page.get_by_role("tab", name="Numbers").click()
    table = page.locator(".outcomes").first
    playwright.expect(table).to_be_visible()
    assert table.evaluate("one => one.scrollWidth - one.parentElement.clientWidth") == 0
    cells = table.locator("td.n").all()
    assert cells
    for cell in cells:
        assert cell.evaluate("one => one.getBoundingClientRect().right") <= 390
        lines = """one => {
            const text = document.createRange(); text.selectNodeContents(one);
            return text.getClientRects().length;
        }"""
        assert cell.evaluate(lines) == 1, "no number is broken"
        label = cell.evaluate("one => getComputedStyle(one, '::before').content")
        assert label.strip('"') == cell.get_attribute("data-label")
    page.close()


@pytest.mark.parametrize("width", [390, 1366])
def test_no_number_of_a_control_is_cut_off(
    browser: playwright.Browser,
    tmp_path: Path,
    make_plan: Callable[..., CellPlan],
    make_trials: Callable[..., list[TrialRecord]],
    width: int,
) -> None:
    plain = make_plan("pool")
    control = control_cell(plain, "reward-shuffled")
    trials = make_trials(plain, 0.9) + [
        replace(one, variant=str(control.variant)) for one in make_trials(control, 0.9)
    ]
    path = tmp_path / "controls.html"
    path.write_text(
        render(summarise_run({"options": {}}, [plain, control], trials)),
        encoding="utf-8",
    )
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    page.get_by_role("tab", name="Controls").click()
    glance = page.get_by_role("region", name="All controls")
    hidden = "one => one.scrollWidth - one.clientWidth"
    assert glance.evaluate(hidden) == 0
    for name in ("plain", "control", "difference"):
        playwright.expect(glance.locator(f"[data-label={name}]")).to_be_in_viewport()
    page.locator("#controls summary").click()
    sessions = page.locator("#controls details .scroll")
    playwright.expect(sessions).to_be_visible()
    if width > 700:
        assert sessions.evaluate(hidden) == 0
    # What does not fit scrolls, but not the number of the session.
    sessions.evaluate("one => { one.scrollLeft = 10_000; }")
    edge = "one => one.getBoundingClientRect().left"
    first = sessions.locator("tbody th").first
    assert abs(first.evaluate(edge) - sessions.evaluate(edge)) < 2
    collapsed = "one => getComputedStyle(one).borderCollapse"
    assert first.evaluate(collapsed) == "separate", "its line stays with it"
    page.close()


@pytest.mark.parametrize("width", [390, 1366])
def test_no_number_of_a_comparison_is_cut_off(
    browser: playwright.Browser,
    tmp_path: Path,
    make_plan: Callable[..., CellPlan],
    make_run: Callable[..., RunSummary],
    width: int,
) -> None:
    plan = make_plan("operant_chamber")
    runs = (
        CountedRun(
            name=name,
            seed=0,
            cells=(
                CellCounts(
                    model=plan.model, protocol=plan.protocol, view=plan.view, variant="", title="", sha256="0",
                    design="cohort", trials=20, estimand="all", agent="llm", settings={},
                    subjects={n: SubjectScore(passed - n % 3 * (name == "main"), 20, 0, f"{n}") for n in range(20)},
                ),
            ),
        )
        for name, passed in (("this run", 13), ("main", 15))
    )  # fmt: skip
    path = tmp_path / "compared.html"
    summary = replace(make_run([(plan, 0.604)]), compared=compare_runs(*runs))
    path.write_text(render(summary), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(path.as_uri())
    region = page.locator("#compared .scroll")
    assert region.evaluate("one => one.scrollWidth - one.clientWidth") == 0
    playwright.expect(
        region.get_by_role("cell", name="operant_chamber")
    ).to_be_visible()
    page.close()


def test_printed_pages_are_light_and_nothing_lies_over_anything_else(
    run: Run, open_page: Open
) -> None:
    page = open_page(run, scheme="dark")
    # Pixels of an A4 sheet with Chromium's margins.
    page.set_viewport_size({"width": 718, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    ink, paper = (
        page.evaluate(
            f"getComputedStyle(document.body).{name}.match(/[0-9]+/g).map(Number)"
        )
        for name in ("color", "backgroundColor")
    )
    assert sum(ink) < 200 < 700 < sum(paper)
    assert (
        page.evaluate(
            "Chart.getChart(document.querySelector('canvas')).options.plugins.legend.labels.color"
        )
        == "#5b626c"
    )
    outside = """() => [...document.querySelectorAll("canvas, table")].filter((one) => {
        const [own, around] = [one.getBoundingClientRect(), one.parentElement.getBoundingClientRect()];
        return own.width && (own.right > around.right + 1 || own.bottom > around.bottom + 1 || own.right > innerWidth);
    }).map((one) => one.outerHTML.slice(0, 80))"""
    assert page.evaluate(outside) == []
    assert page.locator(".verdicts thead").first.is_visible()
    instead = "one => getComputedStyle(one, '::before').content"
    maps = page.locator(".maps").first
    assert "on paper if" in maps.evaluate(instead), "not drawn yet"
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen", color_scheme="dark")
    page.get_by_role("tab", name="Behaviour").click()
    maps.scroll_into_view_if_needed()
    maps.locator("svg").first.wait_for()
    page.emulate_media(media="print", color_scheme="dark")
    assert maps.evaluate(instead) == "none"
    page.emulate_media(media="screen", color_scheme="dark")
    assert (
        sum(
            page.evaluate(
                "getComputedStyle(document.body).color.match(/[0-9]+/g).map(Number)"
            )
        )
        > 600
    )


def test_buttons_step_play_and_change_trials(run: Run, open_page: Open) -> None:
    page = open_page(run)
    said(page, "Step 0 of 6")
    page.get_by_role("button", name="One step forward").click()
    said(page, "Step 1 of 6: waited (the state is frozen), reward 0.")
    for _ in range(3):
        page.get_by_role("button", name="One step forward").click()
    said(page, "Step 4 of 6: FORWARD")
    page.get_by_role("button", name="One step back").click()
    said(page, "Step 3 of 6: FORWARD")
    page.locator("#speed").select_option("40")
    page.get_by_role("button", name="Play", exact=True).click()
    said(page, "Step 6 of 6: FORWARD, reward 1. The trial ends: found.")
    assert page.get_by_role("button", name="Pause").count() == 0
    page.get_by_role("button", name="Next trial").click()
    said(page, "Step 0 of 30")
    assert (
        "✘ 2: timeout, 30 steps"
        in page.locator("#pick-trial option:checked").inner_text()
    )
    page.get_by_role("button", name="Previous trial").click()
    said(page, "Step 0 of 6")


def test_keys_step_play_and_change_trials(run: Run, open_page: Open) -> None:
    page = open_page(run)
    said(page, "Step 0 of 6")
    page.locator("#to-play").focus()
    for key, begins in (
        ("ArrowRight", "Step 1 of 6"),
        ("End", "Step 6 of 6"),
        ("ArrowLeft", "Step 5 of 6"),
        ("Home", "Step 0 of 6"),
        ("n", "Step 0 of 30"),
        ("p", "Step 0 of 6"),
    ):
        page.keyboard.press(key)
        said(page, begins)
    page.locator("#scrub").focus()
    page.keyboard.press("ArrowRight")
    said(page, "Step 1 of 6")
    page.keyboard.press(" ")
    playwright.expect(page.locator("#to-play")).to_have_attribute("aria-label", "Pause")
    page.keyboard.press(" ")
    playwright.expect(page.locator("#to-play")).to_have_attribute("aria-label", "Play")


def test_what_a_step_shows_is_what_was_lived(run: Run, open_page: Open) -> None:
    page = open_page(run, "#middle/1/3/5")
    said(page, "Step 5 of 6: FORWARD")
    assert page.locator("#observation").inner_text() == "#######\n#..*→.#\n#######"
    assert page.locator("#now-action").inner_text() == "↑ FORWARD"
    page.keyboard.press("ArrowRight")
    said(page, "Step 6 of 6")
    assert page.locator("#now-reward").inner_text() == "1"
    assert "enter goal" in page.locator("#now-events").inner_text()
    assert "latency" in page.locator("#trial-facts").inner_text()


def test_links_lead_to_a_step_and_back(run: Run, open_page: Open) -> None:
    page = open_page(run, "#large/2/2/7")
    said(page, "Step 7 of 30")
    assert page.locator("#pick-subject").input_value() == "2"
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**#large/2/2/8")
    page.evaluate("location.hash = '#little/0/2/30'")
    said(page, "Step 30 of 30: STAY, reward 0. The trial ends: timeout.")
    page.get_by_role("tab", name="Verdicts").click()
    page.locator("a.watch").first.click()
    said(page, "Step 0 of 30")
    assert page.evaluate("location.hash") == "#little/0/2/0"
    for wrong in (
        "#nowhere/0/0/0",
        "#little/99/100/99",
        "#%E0%A4%A/0/0/0",
        "#little/x/y/z",
    ):
        page.evaluate(f"location.hash = '{wrong}'")
        assert page.locator("#sentence").inner_text().startswith("Step ")


def test_failed_trials_alone_and_other_cells_can_be_picked(
    run: Run, open_page: Open
) -> None:
    page = open_page(run)
    said(page, "Step 0 of 6")
    page.get_by_label("failed ones only").check()
    said(page, "Step 0 of 30")
    assert page.locator("#pick-trial option").all_inner_texts() == [
        "✘ 2: timeout, 30 steps",
        "✘ 6: timeout, 30 steps",
    ]
    page.locator("#pick-subject").select_option("2")
    page.locator("#pick-trial").select_option("6")
    page.locator("#pick-cell").select_option("1")
    said(page, "Step 0 of 30")
    assert (
        page.locator("#pick-cell option:checked")
        .inner_text()
        .startswith("A little maze (middle) (walker")
    )


def test_hostile_text_is_shown_and_runs_nothing(hostile: Run, open_page: Open) -> None:
    page = open_page(hostile)
    said(page, "Step 0 of 6")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 1  # the player's own
    page.get_by_role("tab", name="Verdicts").click()
    assert (
        "<img src=x onerror=window.hacked=2>"
        in page.locator("section.model h2").first.inner_text()
    )
    page.locator("a.watch").first.click()
    said(page, "Step 0 of 30")
    assert page.evaluate("window.hacked") is None


def test_what_can_be_reached_by_keyboard_is_seen_to_have_the_focus(
    run: Run, open_page: Open
) -> None:
    page = open_page(run)
    said(page, "Step 0 of 6")
    seen = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            """() => {
                const here = document.activeElement;
                return [here.id || here.className || here.tagName, getComputedStyle(here).outlineStyle];
            }"""
        )
        seen[name] = outline
    controls = (
        "pick-cell",
        "pick-subject",
        "pick-trial",
        "only-failed",
        "to-play",
        "scrub",
        "speed",
        "screen",
    )
    assert {"skip", *controls} <= seen.keys()
    assert {name for name, outline in seen.items() if outline != "solid"} <= {"BODY"}


def test_replies_and_learnings_stand_beside_their_steps(
    talk: Run, open_page: Open
) -> None:
    page = open_page(talk, "#little/0/1/2")
    said(page, "Step 2 of 6")
    assert page.locator("#no-call").inner_text() == "No call was made for this step."
    page.keyboard.press("ArrowRight")
    said(page, "Step 3 of 6: FORWARD")
    assert page.locator("#call-title").inner_text() == "Reply 1 of 1"
    reply = page.locator("#call-reply").inner_text()
    rant = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>⟨U+001B⟩[31m⟨U+202E⟩⟨U+0000⟩"
    assert reply.startswith(rant)
    assert page.locator("#call-learnings").inner_text().endswith("the goal lies east")
    page.get_by_text("Reasoning", exact=True).click()
    assert page.locator("#call-reasoning").inner_text().startswith("I think </script>")
    page.get_by_text("The prompt", exact=True).click()
    assert "#→....#" in page.locator("#call-asked").inner_text()
    page.keyboard.press("n")
    page.keyboard.press("End")
    said(page, "Step 6 of 6")
    assert (
        "more characters; the run log has the whole text"
        in page.locator("#call-reply").inner_text()
    )
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


def test_pictures_are_shown(pictures: Run, open_page: Open) -> None:
    page = open_page(pictures, "#little/0/1/1", width=360)
    said(page, "Step 1 of 6")
    picture = page.locator("#picture")
    assert picture.get_attribute("alt") == "The picture that the model saw at step 1"
    assert page.locator("#observation").inner_text() == "wait"
    before = picture.get_attribute("src")
    page.keyboard.press("End")
    said(page, "Step 6 of 6")
    assert picture.get_attribute("src") != before
    assert (
        picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
        == 448
    )
    assert page.locator("#observation").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_tables_are_sorted_and_filtered(run: Run, open_page: Open) -> None:
    page = open_page(run, tab="Verdicts")
    table = page.locator("table.matrix")
    head = table.locator("thead th").first
    names = table.locator("tbody th")
    before = names.all_inner_texts()
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert names.all_inner_texts() == sorted(before, key=str.lower)
    head.locator("button").click()
    assert names.all_inner_texts() == sorted(before, key=str.lower, reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") is None
    assert names.all_inner_texts() == before
    if len(before) > 3:
        page.get_by_label("Filter models and paradigms").fill("rodent")
        assert [name for name in names.all() if name.is_visible()] != []
        assert (
            page.locator("#matrix [role=status]").inner_text() == f"1 of {len(before)}"
        )


def test_tabs_remember_and_are_reached_by_keys(run: Run, open_page: Open) -> None:
    page = open_page(run, tab="Verdicts")
    tabs = page.get_by_role("tab")
    assert tabs.all_inner_texts() == [
        "Verdicts",
        "Behaviour",
        "Trials",
        "Numbers",
        "The run",
    ]
    page.keyboard.press("ArrowRight")
    assert page.locator("#behaviour").is_visible()
    page.keyboard.press("End")
    assert page.locator("#the-run").is_visible()
    assert page.locator("[data-tab]:visible").count() == 1
    page.reload()
    assert page.get_by_role("tab", selected=True).inner_text() == "The run"


def test_maps_show_the_time_on_each_square_and_single_tracks(
    run: Run, open_page: Open
) -> None:
    page = open_page(run, tab="Behaviour")
    maps = page.locator(".paradigm:visible .maps")
    maps.scroll_into_view_if_needed()
    # One for each session.
    playwright.expect(maps.locator("svg.floor")).to_have_count(2)
    # The walker stands on one square in the failed trial (28 steps there), and walks
    # over all five in the rest.
    shades = (
        maps.locator("svg")
        .first.locator(".heat")
        .evaluate_all("all => all.map(one => +one.getAttribute('fill-opacity'))")
    )
    assert len(shades) == 5
    # Steps: 30 on the first square in the failed trial; on three others two there and
    # one in each other trial.
    assert sorted(round(shade**2 / max(shades) ** 2 * 36) for shade in shades) == [
        3,
        3,
        3,
        3,
        36,
    ]
    maps.get_by_label("goals").check()
    assert maps.locator(".goal").count() == 2
    maps.locator("select").select_option("1")
    assert maps.locator("svg").first.locator(".track.passed").count() == 3
    assert maps.locator("svg").first.locator(".track.failed").count() == 1


def test_the_player_shows_the_arena_from_above(run: Run, open_page: Open) -> None:
    page = open_page(run, "#middle/1/3/5")
    said(page, "Step 5 of 6")
    above = page.locator("#above-map svg")
    assert (
        above.get_attribute("aria-label")
        == "The arena from above at step 5: column 4, row 1"
    )
    page.get_by_label("goal").check()
    assert [above.locator(".goal").get_attribute(name) for name in "xy"] == [
        "5.08",
        "1.08",
    ]


def test_two_models_on_nine_paradigms_are_whole_and_short(
    browser: playwright.Browser, tmp_path: Path
) -> None:
    """A laptop shows all columns of the verdicts, and no two parts have the same name
    for a screen reader.
    """
    run = cheesebench.run(
        ["random", "place-learner"],
        NINE.split(),
        design="cohort",
        subjects=4,
        seed=1,
        results=tmp_path,
        progress=False,
    )
    path = tmp_path / "two.html"
    path.write_text(run.report("html"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1366, "height": 700})
    page.goto(path.as_uri())
    hidden = "tables => tables.map(one => one.scrollWidth - one.clientWidth)"
    assert page.locator(".scroll:has(> .verdicts)").evaluate_all(hidden) == [0, 0]
    assert page.evaluate("document.documentElement.scrollHeight") <= 4400
    names = page.locator("[role=region]").evaluate_all(
        "all => all.map(one => one.getAttribute('aria-label'))"
    )
    assert len(names) > 6
    assert len(names) == len(set(names))
    assert page.locator(".forest:visible").count() == 18
    page.close()


@pytest.mark.parametrize("width", [434, 1058])
def test_a_trial_in_a_notebook_has_all_of_its_height(
    run: Run, browser: playwright.Browser, width: int
) -> None:
    log, plugins = run
    plan = next(one for one in log.plans() if next(log.trials_by_subject(one)))
    shown = cheesebench.Run(log.path, plugins).trial(
        plan.protocol, model=plan.model, view=plan.view, variant=str(plan.variant)
    )
    page = browser.new_page(viewport={"width": width, "height": 700})
    page.set_content(f'<body style="margin: 0">{shown._repr_html_()}</body>')
    inside = page.frame_locator("iframe")
    playwright.expect(inside.locator("#sentence")).to_contain_text("Step 0")
    playwright.expect(inside.locator("#link")).to_be_hidden()
    [frame] = page.frames[1:]
    page.wait_for_function(
        "parseInt(document.querySelector('iframe').style.height) != 900"
    )
    page.wait_for_timeout(300)
    height = page.locator("iframe").evaluate("frame => frame.clientHeight")
    assert frame.evaluate("document.documentElement.offsetHeight") == height
    assert frame.evaluate("document.documentElement.scrollHeight") == height
    page.close()
