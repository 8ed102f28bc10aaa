"""The table of a real model's results, compared with the stored figures
of the script.
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]


FOUND = json.loads(
    (ROOT / "benchmarks/measured/real_model.json").read_text(encoding="utf-8")
)


def shown_rows(mark: str) -> set[tuple[str, ...]]:
    page = (ROOT / "docs/models.md").read_text(encoding="utf-8")
    lines = (
        page.partition(f"<!-- {mark} -->")[2]
        .partition("\n\n")[0]
        .strip()
        .splitlines()[2:]
    )
    return {
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines
    }


def test_plans_by_first_answers_come_within_a_factor_of_one_and_a_half() -> None:
    rows = FOUND["plans"]
    for row in rows:
        for name, made in row["made"].items():
            assert made / 1.5 <= row["planned"][name] <= 1.5 * made, row
    assert shown_rows("plans") == {
        (
            one["design"],
            one["protocol"],
            *(
                f"{one[kind][name]:,}"
                for name in ("calls", "tokens")
                for kind in ("planned", "made")
            ),
        )
        for one in rows
    }


def test_the_readme_counts_the_replies_of_all_paradigms() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    free, tools = (FOUND[agent]["protocols"].values() for agent in ("llm", "llm-tools"))
    calls = sum(one["calls"] for one in free)
    assert sum(one["counts"]["unparsed"] for one in free) == calls
    assert not any(one["counts"]["unparsed"] for one in tools)
    assert f"of {calls} replies in the nine paradigms, none names an action" in readme
    assert f"all {sum(one['calls'] for one in tools)} replies act" in readme


def test_the_table_is_what_was_measured() -> None:
    measured = {
        (
            agent,
            name,
            *map(str, numbers[:3]),
            *(f"{tokens:,}" for tokens in numbers[3:]),
        )
        for agent, run in ((name, FOUND[name]) for name in ("llm", "llm-tools"))
        for name, one in run["protocols"].items()
        for numbers in [
            (
                one["calls"],
                one["counts"]["unparsed"],
                one["counts"]["truncated"],
                one["prompt_tokens"],
                one["reply_tokens"],
            )
        ]
    }
    assert shown_rows("real model") == measured
