"""One way of rounding: the results of its functions, no number formatted elsewhere, and
the same in the scripts of the pages.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cheesebench.amounts import (
    dollars,
    duration,
    level,
    number,
    per_hundred,
    percent,
    points,
    rounded,
    signed,
)

ROOT = Path(__file__).parents[1]
#: Modules whose numbers are not for reports, or belong to a published table.
ELSEWHERE = {
    "cheesebench/amounts.py",
    "cheesebench/commands/plan.py",  # counts in thousands and millions
    "cheesebench/planning/told.py",  # the same
    "cheesebench/pytest_session/ci.py",  # properties that programs read
    "cheesebench/server/people.py",  # rewards, as a prompt writes them
    "cheesebench/statistics/wording.py",  # odds
}
#: ``:g`` writes a number as it was declared.
FLOAT = re.compile(r"\.\d+[efg%]'")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            [rounded(one, 1) for one in (44.75, 44.25, -2.25, -0.04, 99.95)],
            ["44.8", "44.3", "-2.3", "0.0", "100.0"],
        ),
        (
            # The mean of a rate is the same number in any order of summation.
            [percent(one) for one in (0.4475, 0.44749999999999995, 0.0625, 1, 0.0002)],
            ["44.8 %", "44.8 %", "6.3 %", "100 %", "0 %"],
        ),
        ([points(one) for one in (-0.6, 0.0004, 0.005)], ["-60", "0", "+0.5"]),
        (
            [number(one) for one in (4.25, 1310, 0.47, 99.96, 0, 12.345, 1e-9)],
            ["4.25", "1310", "0.47", "100", "0", "12.3", "1e-09"],
        ),
        ([number(one) for one in (float("inf"), float("nan"))], ["inf", "nan"]),
        ([signed(one) for one in (1.5, -12, 0)], ["+1.5", "-12", "0"]),
        (
            [dollars(one) for one in (0, 0.001234, 0.1, 1.005, 1234.5)],
            ["$0.00", "$0.0012", "$0.10", "$1.01", "$1,234.50"],
        ),
        (
            [duration(one) for one in (0.25, 40.5, 99.4, 100, 6000)],
            ["0.25 s", "41 s", "99 s", "2 min", "1.7 h"],
        ),
    ],
)
def test_numbers(found: list[str], expected: list[str]) -> None:
    assert found == expected


@pytest.mark.parametrize(
    ("column", "kinds", "expected"),
    [
        (["5 %", "76.6 %", "–"], None, ["5.0 %", "76.6 %", "–"]),
        (["0 %", "60 %"], None, ["0 %", "60 %"]),
        (
            ["-60 (-60 to -41.6)", "0.47 (0.1 to 0.773)"],
            ["", "path"],
            ["-60.0 (-60.0 to -41.6)", "0.470 (0.100 to 0.773)"],
        ),
        (
            ["80 % (declared, n = 12)", "66.3 % (61.8–70 %)"],
            None,
            ["80.0 % (declared, n = 12)", "66.3 % (61.8–70.0 %)"],
        ),
        (
            ["✔ 100 %", "✘ 3.5 %", "? path 14"],
            None,
            ["✔ 100.0 %", "✘ 3.5 %", "? path 14"],
        ),
    ],
)
def test_a_column_has_one_number_of_decimals(
    column: list[str], kinds: list[str] | None, expected: list[str]
) -> None:
    assert level(column, kinds) == expected


def test_nothing_else_writes_numbers() -> None:
    found = []
    for folder in ("cheesebench", "reports"):
        for file in (ROOT / folder).rglob("*.py"):
            name = file.relative_to(ROOT).as_posix()
            if any(one.is_symlink() for one in file.parents) or name in ELSEWHERE:
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            found += [
                f"{name}:{node.lineno} {ast.unparse(node.format_spec)}"
                for node in ast.walk(tree)
                if isinstance(node, ast.FormattedValue)
                and node.format_spec is not None
                and FLOAT.search(ast.unparse(node.format_spec))
            ]
        for template in (ROOT / folder).rglob("*.jinja"):
            text = template.read_text(encoding="utf-8")
            found += [
                f"{template.name}: {one}"
                for one in re.findall(r"%[+]?\.\d[fg][^\"]*\"\|format", text)
                if template.name != "thanks.html.jinja"  # coordinates of a drawing
            ]
    assert not found, "use cheesebench/amounts.py"


def test_the_scripts_of_the_pages_round_alike() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    script = ROOT / "cheesebench" / "server" / "static" / "stream.js"
    values = [one / 1600 for one in range(1601)] + [0.4475, 0.44749999999999995, 1 / 3]
    program = (
        "const document = {};"
        + script.read_text(encoding="utf-8")
        + f";console.log(JSON.stringify({json.dumps(values)}.map(perHundred)))"
    )
    said = subprocess.run(
        [node, "-e", program], capture_output=True, text=True, check=True
    )
    assert json.loads(said.stdout) == [per_hundred(one) for one in values]


def test_a_small_end_does_not_give_a_large_one_its_decimals() -> None:
    assert level(["-3.28", "-3.73 to -0.00487"]) == ["-3.280", "-3.730 to -0.005"]
    assert level(["0.0598", "0.004"]) == ["0.0598", "0.0040"]
