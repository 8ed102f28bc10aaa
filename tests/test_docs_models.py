"""The page on models has the figures of the shipped profiles, and these are what the benchmark's respondents took."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from cheesebench.chat import Price
from cheesebench.models import resolve_model
from cheesebench.planning.profiles import RESPONDENTS, Profiles, Spent, shipped_profiles
from cheesebench.plugin_manager import installed_plugins

PAGE = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
HEADERS = "respondent, design, protocols, subjects, calls, prompt M, cached, reply M, dollars, PASS / FAIL / ?"


def summary_rows(profiles: Profiles, price: Price) -> list[tuple[str, ...]]:
    """Return the rows of the table: each respondent, fixed design and sequential."""
    rows: list[tuple[str, ...]] = []
    for kind in RESPONDENTS:
        cells = [measured[kind] for measured in profiles.by_protocol.values() if kind in measured]
        if not cells:
            continue
        for name in ("fixed", "sequential"):
            numbers = [profiles.fixed if name == "fixed" else cell.stopped for cell in cells]
            parts = [cell.spent(number, cell.trials) for cell, number in zip(cells, numbers, strict=True)]
            total = sum(parts, Spent())
            verdicts = [cell.verdict for cell in cells]
            counts = [verdicts.count(verdict) for verdict in ("PASS", "FAIL")]
            counts.append(len(verdicts) - sum(counts))
            rows.append(
                (
                    kind,
                    name,
                    str(len(cells)),
                    f"{sum(numbers) / len(numbers):.0f}",
                    f"{total.calls:,.0f}",
                    f"{total.prompt / 1e6:.1f}",
                    f"{100 * total.cached / total.prompt:.0f} %",
                    f"{total.completion / 1e6:.2f}",
                    f"{total.dollars(price):,.2f}",
                    " / ".join(map(str, counts)) if name == "sequential" else "",
                )
            )
    return rows


def costs() -> str:
    """Return the table of the page."""
    price = resolve_model(installed_plugins(), "gpt-5.4-mini").price
    assert price is not None
    rows = [" | ".join(("", *row, "")).strip() for row in summary_rows(shipped_profiles(), price)]
    return "\n".join([f"| {HEADERS.replace(', ', ' | ')} |", "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|", *rows]) + "\n"


def test_the_table_is_that_of_the_profiles() -> None:
    assert PAGE.split("<!-- costs -->\n")[1].split("\n\n")[0] + "\n" == costs()


def test_profiles_make_sense() -> None:
    found = shipped_profiles()
    assert found.history == installed_plugins().model_agent("llm").settings["history"]
    for measured in found.by_protocol.values():
        assert set(measured) <= set(RESPONDENTS)
        for profile in measured.values():
            assert profile.stopped in profile.looks
            assert found.fixed in profile.looks
            spent = [profile.looks[look] for look in sorted(profile.looks)]
            for fewer, more in pairwise(spent):
                assert fewer.calls < more.calls
                assert fewer.prompt < more.prompt
            for one in spent:
                assert one.api <= one.cached < one.prompt
    every = [measured for measured in found.by_protocol.values() if set(RESPONDENTS) <= set(measured)]
    assert every
    for good, bad in (("competent", "ratlike"), ("ratlike", "weak")):
        assert sum(one[good].rate for one in every) > sum(one[bad].rate for one in every)


def test_most_of_a_prompt_is_cached() -> None:
    for kind in RESPONDENTS:
        measured = [one[kind] for one in shipped_profiles().by_protocol.values() if kind in one]
        total = sum((one.looks[one.stopped] for one in measured), Spent())
        assert total.cached / total.prompt > 0.7


@pytest.mark.parametrize("subjects", [1, 6, 10, 60])
def test_subjects_between_looks_are_in_proportion(subjects: int) -> None:
    for measured in shipped_profiles().by_protocol.values():
        for profile in measured.values():
            spent = profile.spent(subjects, profile.trials)
            if subjects in profile.looks:
                assert spent.calls == pytest.approx(profile.looks[subjects].calls)
            assert profile.spent(2 * subjects, profile.trials).calls > spent.calls
            assert profile.spent(subjects, 1).calls == pytest.approx(spent.calls / profile.trials)


if __name__ == "__main__":
    print(costs())
