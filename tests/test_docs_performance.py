"""The pages on performance and on scale have the stored figures of the benchmarks
(``benchmarks/pages.py``).
"""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from cheesebench import exporting
from cheesebench.plugin_manager import installed_plugins

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
#: Maximum kB that a command may keep for each subject of a log, as the pages promise.
PER_SUBJECT = 2


def benchmark(name: str) -> Any:
    """The module of a benchmark script."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return runpy.run_path(str(BENCHMARKS / f"{name}.py"))
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def pages() -> Any:
    """The module ``benchmarks/pages.py``."""
    return benchmark("pages")


def text(pages: Any, page: str) -> str:
    return str((pages["DOCS"] / page).read_text(encoding="utf-8"))


def test_the_tables_are_what_was_measured(pages: Any) -> None:
    found = []
    for page in pages["PAGES"]:
        written = text(pages, page)
        assert pages["filled"](written) == written, (
            f"python benchmarks/pages.py writes {page} anew"
        )
        found += re.findall(r"<!-- measured: (.*?) -->", written)
    assert sorted(found) == sorted(pages["BLOCKS"]), "every table is in one page"


def peaks(pages: Any, trials: int) -> dict[str, float]:
    """The peaks of commands, in MB, with the log of that size."""
    begins = f"{pages['size'](trials)}: "
    rows = pages["kept"]("large_logs").items()
    found = {
        name.removeprefix(begins): row["peak MB"]
        for name, row in rows
        if name.startswith(begins)
    }
    return {
        command: peak for command, peak in found.items() if command != pages["INSPECT"]
    }


def test_no_command_takes_more_memory_than_the_pages_say(pages: Any) -> None:
    largest = pages["sizes"]()[-1]
    assert largest >= 100_000
    assert peaks(pages, largest).keys() >= {
        "write",
        "report",
        "report --html",
        "compare",
        "runs",
        "show",
    }
    for trials in pages["sizes"]():
        assert max(peaks(pages, trials).values()) <= pages["LIMIT"]
    for page in ("performance.md", "scale.md"):
        assert f" {pages['LIMIT']} MB" in text(pages, page)


def test_memory_does_not_grow_with_the_log(pages: Any) -> None:
    smaller, larger = pages["sizes"]()[-2:]
    few, many = peaks(pages, smaller), peaks(pages, larger)
    grown = {
        command: many[command] - few[command] for command in few.keys() & many.keys()
    }
    del grown[
        "report --html"
        # It grows until the maximum number of steps is replayed, which the test above
        # bounds.
    ]
    assert grown
    # A process's memory varies by a few MB.
    most = (larger - smaller) / 36 * PER_SUBJECT / 1024 + 8
    assert {command: size for command, size in grown.items() if size > most} == {}


def test_groups_of_parquet_are_as_large_as_the_page_says(pages: Any) -> None:
    said = f"in groups of {exporting.GROUP:,} rows or {exporting.GROUP_TEXT // 1_000_000} million characters"
    assert said in " ".join(text(pages, "performance.md").split())


def test_every_other_figure_is_compared(pages: Any) -> None:
    """A figure in a sentence would be copied by hand, so all of them
    are derived here.
    """
    written = text(pages, "performance.md")
    sentences = re.sub(pages["BLOCK"], "", written)
    sentences = re.sub(r"(?m)^\|.*$|`[^`]*`|\]\(.*?\)|<!--.*?-->", "", sentences)
    calls = benchmark("calls")
    [machine] = {
        row["machine"]
        for name in ("calls", "large_logs", "ray_speed")
        for row in pages["kept"](name).values()
    }
    assert machine in written
    compared = [
        *re.findall(r"[\d.]+", machine),
        *(f"{1000 * seconds:g}" for seconds in (calls["LATENCY"], calls["BRIEF"])),
        str(PER_SUBJECT),
        str(pages["LIMIT"]),
        f"{exporting.GROUP:,}",
        str(exporting.GROUP_TEXT // 1_000_000),
    ]
    assert sorted(re.findall(r"\d(?:[\d.,]*\d)?", sentences)) == sorted(compared)


def test_prompts_are_still_as_long_as_they_were(pages: Any) -> None:
    """Characters do not depend on the machine, so one row is counted again."""
    counted = benchmark("prompt_size")
    paradigm = installed_plugins().compile(
        next(counted["common"].specifications(["t_maze"]))
    )
    found = counted["measure"](paradigm, "3-7", 8, "full")
    kept = pages["kept"]("prompt_size")["t_maze full h=3-7 k=8"]
    again = {column: float(f"{found[column]:.4g}") for column in counted["KEPT"]}
    assert again.items() <= kept.items(), (
        "benchmarks/prompt_size.py t_maze morris_water_maze --keep counts them anew"
    )


def test_a_run_computes_no_prompt_twice_and_little_more_than_half_of_llama_cpp_s_default(
    pages: Any,
) -> None:
    path = BENCHMARKS / "measured" / "prompt_cache.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    run, bare, ours, _, default = (row["computed"] for row in rows)
    assert run == bare
    assert 0.5 < ours / default <= 0.6  # "nearly twice as much"


def test_every_script_that_the_page_names_is_there(pages: Any) -> None:
    """A table that no test compares can be measured again with the script named beside
    it.
    """
    named = set(
        re.findall(
            r"`(?:python )?(?:benchmarks/)?([a-z_]+\.py)\b",
            text(pages, "performance.md"),
        )
    )
    assert {"engine.py", "views.py", "whole_runs.py", "calls.py", "client.py"} <= named
    assert {name for name in named if not (BENCHMARKS / name).is_file()} == set()
