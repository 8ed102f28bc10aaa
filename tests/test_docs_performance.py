"""The pages on performance and on scale have the figures that the benchmarks have kept (``benchmarks/pages.py``)."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from cheesebench.experiment import jobs, log_file
from cheesebench.exporting import files
from cheesebench.paradigms.arena import pages as arena_pages
from cheesebench.paradigms.arena import scenes, tables
from cheesebench.plugins.views import boards

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def pages() -> Any:
    """What ``benchmarks/pages.py`` defines."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return runpy.run_path(str(BENCHMARKS / "pages.py"))
    finally:
        sys.path.remove(str(BENCHMARKS))


def text(pages: Any, page: str) -> str:
    return str((pages["DOCS"] / page).read_text(encoding="utf-8"))


def test_the_tables_are_what_was_measured(pages: Any) -> None:
    found = []
    for page in pages["PAGES"]:
        written = text(pages, page)
        assert pages["filled"](written) == written, f"python benchmarks/pages.py writes {page} anew"
        found += re.findall(r"<!-- measured: (.*?) -->", written)
    assert sorted(found) == sorted(pages["BLOCKS"]), "every table is in one page"


def peaks(pages: Any, trials: int) -> dict[str, float]:
    """The peaks of commands, in MB, with the log of that size."""
    begins = f"{pages['size'](trials)}: "
    rows = pages["kept"]("large_logs").items()
    found = {name.removeprefix(begins): row["peak MB"] for name, row in rows if name.startswith(begins)}
    return {command: peak for command, peak in found.items() if command != pages["INSPECT"]}


def test_no_command_takes_more_memory_than_the_pages_say(pages: Any) -> None:
    largest = pages["sizes"]()[-1]
    assert largest >= 100_000
    assert peaks(pages, largest).keys() >= {"write", "report", "report --html", "compare", "measures", "runs", "show"}
    for trials in pages["sizes"]():
        assert max(peaks(pages, trials).values()) <= pages["LIMIT"]
    for page in pages["PAGES"]:
        assert f" {pages['LIMIT']} MB" in text(pages, page)


def test_memory_does_not_grow_with_the_log(pages: Any) -> None:
    smaller, larger = pages["sizes"]()[-2:]
    few, many = peaks(pages, smaller), peaks(pages, larger)
    grown = {command: many[command] - few[command] for command in few.keys() & many.keys()}
    del grown["report --html"]  # it grows until as many steps as it may are replayed; the test above bounds it
    assert grown
    # The pages promise less than 2 kB for each subject; what a process takes varies by a few MB.
    most = (larger - smaller) / 36 * 2 / 1024 + 8
    assert {command: size for command, size in grown.items() if size > most} == {}


def test_groups_of_parquet_are_as_large_as_the_page_says(pages: Any) -> None:
    said = f"in groups of {files.GROUP:,} rows or {files.GROUP_TEXT // 1_000_000} million characters"
    assert said in " ".join(text(pages, "performance.md").split())


def test_figures_of_these_sections_are_in_their_tables(pages: Any) -> None:
    """A figure in a sentence would be copied by hand."""
    written = text(pages, "performance.md")
    sections = written[written.index("## Large logs") : written.index("## Where the time goes")]
    sentences = re.sub(pages["BLOCK"], "", sections).replace("300 MB", "").replace("2 kB", "")
    assert re.findall(r"\d[\d.,]* (?:MB|GB|ms|s|times|a second)\b", sentences) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("scenes.MAX_BYTES", f"{scenes.MAX_BYTES // 2**20} MB"),
        ("boards.Boards.BITS", f"{boards.Boards.BITS // 1_000_000} million bits"),
        ("tables.MAX_POSES", f"{tables.MAX_POSES:,} poses"),
        ("pages.MAX_POSES", f"{arena_pages.MAX_POSES:,} poses"),
        ("log_file.CHECKPOINT", f"{log_file.CHECKPOINT * 4 // 1000} MB"),
        ("jobs.KEPT", f"{jobs.KEPT}, because"),
    ],
)
def test_bounds_on_memory_are_those_of_the_code(pages: Any, name: str, said: str) -> None:
    [row] = [
        line for line in text(pages, "performance.md").splitlines() if line.startswith("| ") and f"`{name}`" in line
    ]
    assert f"| {said}" in row


def test_every_script_that_the_page_names_is_there(pages: Any) -> None:
    """A table that no test compares can be measured again with the script that is named beside it."""
    named = set(re.findall(r"`(?:python )?(?:benchmarks/)?([a-z_]+\.py)\b", text(pages, "performance.md")))
    assert {"engine.py", "batch.py", "views.py", "whole_runs.py", "calls.py", "client.py"} <= named
    assert {name for name in named if not (BENCHMARKS / name).is_file()} == set()
