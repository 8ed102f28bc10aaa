"""A run log describes its own contents, and the recipes of its page work on
a real run.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import SCHEMA
from cheesebench.exporting import TABLES
from cheesebench.records import FORMAT
from cheesebench.statistics import draw_sample, judge_sample
from fuzz.run_logs import rewritten

PAGE = (Path(__file__).parents[2] / "docs" / "run-log.md").read_text(encoding="utf-8")
RUN = "20250131-093000-ab12"
RECIPES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        yield connection


def test_a_log_says_what_every_table_and_column_of_it_means(
    database: sqlite3.Connection,
) -> None:
    tables = database.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
    ).fetchall()
    assert len(tables) == 9
    for name, sql in tables:
        first, _, rest = sql.partition("\n")
        assert re.fullmatch(r"CREATE TABLE \w+ \(  -- .+", first), name
        described = re.findall(r"^ +(\w+) [^-\n]*  -- .+$", rest, re.MULTILINE)
        assert described == [
            row[1] for row in database.execute(f"PRAGMA table_info({name})")
        ]


def test_the_format_is_the_one_that_is_described() -> None:
    assert f"`user_version` the format, now {FORMAT})" in PAGE


def test_there_are_recipes() -> None:
    assert len(RECIPES) >= 8


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_work_on_a_real_run(results: Path, recipe: str) -> None:
    with closing(
        sqlite3.connect(f"{(results / RUN / 'run.sqlite').as_uri()}?mode=ro", uri=True)
    ) as connection:
        cursor = connection.execute(recipe)
        rows = cursor.fetchall()
    names = [column[0] for column in cursor.description]
    assert len(set(names)) == len(names)
    finished_agent_without_calls = ("FROM calls", "HAVING unfinished", "FROM journal")
    assert bool(rows) is not any(
        words in recipe for words in finished_agent_without_calls
    )


def test_the_first_recipe_gives_the_rate_of_the_report(results: Path) -> None:
    with closing(sqlite3.connect(results / RUN / "run.sqlite")) as connection:
        [(_, protocol, _, _, rate, subjects, trials)] = connection.execute(
            RECIPES[0]
        ).fetchall()
        passed = connection.execute("SELECT sum(success) FROM trials").fetchone()[0]
    assert (protocol, rate, subjects, trials) == ("little", passed / 8, 2, 8)


@pytest.mark.parametrize(
    "estimand", ["all", "last:1", "last:3", "block:other,one", "block:two"]
)
def test_the_first_recipe_goes_by_the_estimand(results: Path, estimand: str) -> None:
    path = results / RUN / "run.sqlite"
    with rewritten(path) as connection:
        # Pretend that the first trials belong to another block, one is not compared,
        # and all but one of each life passed.
        connection.execute(
            "UPDATE trials SET block = iif(trial < 2, 'one', 'two'), success = trial <> 3"
        )
        connection.execute(
            "UPDATE trials SET compared = 0 WHERE subject = 1 AND trial = 1"
        )
        connection.execute(
            "UPDATE cells SET plan = json_set(plan, '$.estimand', ?)", [estimand]
        )
        [(*_, rate, _, trials)] = connection.execute(RECIPES[0]).fetchall()
    with RunLog.open_read_only(path.parent) as log:
        [plan] = log.plans()
        assert plan.estimand == estimand
        judged = judge_sample(plan, draw_sample(plan, log.trials_by_subject(plan)))
    assert (rate, trials) == (judged.rate, judged.valid)


def test_exported_tables_are_described() -> None:
    described = dict(
        re.findall(r"^\| `(\w+)` \| (one row .*?) \|$", PAGE, re.MULTILINE)
    )
    assert described == {table.name: table.about for table in TABLES.values()}
