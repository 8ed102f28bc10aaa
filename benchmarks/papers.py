"""Writes our numbers next to those that two papers print into docs/papers.md and
docs/cogeval.md.

    python benchmarks/papers.py --scores scores.csv --write

``scores.csv`` is a table of CogEval's public scores (or the random half of them, as
described in the pages). The figures computed from it are kept, so that the pages can be
written again without it. The animals' curves come from the protocols.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean, median
from typing import Any

from cheesebench.amounts import rounded
from cheesebench.commands.common import load_protocol
from cheesebench.paradigms.dialogue.cogeval_stats import read_scores
from cheesebench.paradigms.dialogue.statistics import (
    Score,
    deviance_table,
    one_thread,
    read_published,
)
from cheesebench.protocol import Specification
from cheesebench.published import published

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))
from benchmarks.paper_commands import KEPT as HOW_THEY_END  # noqa: E402
from benchmarks.paper_commands import commands  # noqa: E402
from benchmarks.places import fill  # noqa: E402

KEPT = PROJECT / "benchmarks" / "measured" / "cogeval_scores.json"
PAPERS = PROJECT / "docs" / "papers.md"
COGEVAL = PROJECT / "docs" / "cogeval.md"
#: Table 2 of the paper: deviance of each term.
TABLE_2 = {
    "model": 2357.9,
    "graph": 3431.5,
    "domain": 458.7,
    "temperature": 1.3,
    "group": 2080.0,
    "model:temperature": 10.7,
    "graph:domain": 334.4,
    "graph:group": 1651.3,
    "domain:group": 310.5,
    "graph:domain:group": 1133.2,
}
#: The table's names for its terms, if they differ.
NAMES = {"group": "group of conditions"}
#: Degrees of freedom of the table's terms with empty cells in the public scores.
EMPTY = {"graph:domain:group": 44}
#: The paper's letters for its graphs.
LETTERS = {
    "A": "n7line",
    "B": "n7tree",
    "C": "n13line",
    "D": "n15star",
    "E": "n16cluster",
    "F": "n21star",
}
#: The paper's eight models, under their names in its Table 3 and in its public scores.
MODELS = {
    "gpt-4-32k": "gpt-4-32k",
    "gpt-35": "gpt-35-turbo",
    "davinci-003": "text-davinci-003",
    "claude-v1": "claude-v1",
    "pythia-20b": "pythia-20b",
    "cohere": "cohere-xlarge",
    "llama-13b": "llama-13b",
    "alpaca-7b": "alpaca-7b",
}
#: Protocols whose animals have a curve of more than five sessions.
LONG_CURVES = ("morris_water_maze", "t_maze")
#: Protocols in which the paper's Tabular-QL succeeds at all, as listed on the page.
QL_LEARNS = ("barnes_maze", "operant_chamber", "shuttle_box")
#: The end of each command of the page, and the rates of its run.
COMMANDS: dict[str, Any] = json.loads(HOW_THEY_END.read_text("utf-8"))


def measured(scores: Path) -> dict[str, Any]:
    """Compute the figures of the pages from a table of scores."""
    table_3 = read_published(PROJECT / "protocols" / "cogeval")
    found = read_scores(scores, table_3)
    eight = [one for one in found if one.model in MODELS.values()]
    with one_thread():
        table = deviance_table(eight)
    assert table is not None
    return {
        "answers": sum(one.total for one in eight),
        "terms": {row.term: [row.df, round(row.chi2, 1)] for row in table.rows},
        "means": {
            f"{condition} {model}": [mean, round(_mean(eight, condition, name), 3)]
            for condition, row in table_3.conditions.items()
            for model, (mean, _) in row.items()
            if (name := MODELS.get(model))
            and any((one.condition, one.model) == (condition, name) for one in eight)
        },
        "graphs": {
            letter: round(fmean(one.rate for one in eight if one.graph == graph), 3)
            for letter, graph in LETTERS.items()
        },
    }


def _mean(scores: Iterable[Score], condition: str, model: str) -> float:
    """Return a model's mean rate under a condition, over graphs, domains and
    temperatures.
    """
    cells: dict[tuple[str, str, str], list[Score]] = {}
    for one in scores:
        if (one.condition, one.model) == (condition, model):
            key = one.graph, one.domain, one.temperature
            cells.setdefault(key, []).append(one)
    return fmean(
        sum(one.successes for one in own) / sum(one.total for one in own)
        for own in cells.values()
    )


def table_2(kept: Mapping[str, Any]) -> str:
    lines = [
        "| term | df | Table 2 | half of the public scores |",
        "| --- | ---: | ---: | ---: |",
    ]
    for term, theirs in TABLE_2.items():
        df, chi2 = kept["terms"][term]
        own = f"{EMPTY[term]}, here {df}" if term in EMPTY else df
        lines.append(f"| {NAMES.get(term, term)} | {own} | {theirs} | {chi2} |")
    return "\n" + "\n".join(lines) + "\n"


def deviances(kept: Mapping[str, Any]) -> str:
    """Return the row of Table 2: published and here, term by term."""
    pairs = (
        f"{NAMES.get(term, term)} {theirs} / {kept['terms'][term][1]}"
        for term, theirs in TABLE_2.items()
    )
    return f"published / a half of the public scores: {', '.join(pairs)}"


def means(kept: Mapping[str, Any]) -> str:
    """Return the distances between the means of Table 3 and those of the scores."""
    gaps = [abs(here - there) for there, here in kept["means"].values()]
    near = sum(gap <= 0.1 for gap in gaps)
    return (
        f"of its {len(gaps)} means of models with public scores, {near} are within 0.1 of those of a half of the "
        f"scores, and the median difference is {median(gaps):.2f}: the table gives partial credit for a path"
    )


def graphs(kept: Mapping[str, Any]) -> str:
    """Return the means of the graphs that the paper's claim compares."""
    pairs = (
        f"{one} {kept['graphs'][one]:.2f}, {two} {kept['graphs'][two]:.2f}"
        for one, two in ("BC", "DE")
    )
    return f"means over a half of the public scores: {'; '.join(pairs)}"


def domains(kept: Mapping[str, Any]) -> str:
    return f"here {kept['terms']['domain'][1]} from a half of the public scores"


def asymptotes() -> str:
    """Return the animals' rates in the fifth and in the last session."""
    said = []
    for name in LONG_CURVES:
        protocol = load_protocol(name)
        assert isinstance(protocol, Specification)
        assert protocol.judged is not None
        curve = protocol.judged.curve
        said.append(
            f"{name} {100 * curve[4]:.0f} % in session 5, {100 * curve[-1]:.0f} % in session {len(curve)}"
        )
    return "; ".join(said)


def twenty(command: str, names: Iterable[str] = ()) -> str:
    """Return the rates of twenty subjects in some protocols, and their mean."""
    [rates] = COMMANDS[command]["rates"].values()
    said = [f"{rates[f'{name}@paper']:.0f}" for name in names]
    return ", ".join([*said, f"{rounded(fmean(rates.values()), 1)} in all"])


def best_of_views(command: str) -> str:
    """Return the mean of each view of a run, and that of the best ones."""
    by_view = COMMANDS[command]["rates"]
    means = ", ".join(rounded(fmean(one.values()), 1) for one in by_view.values())
    names = next(iter(by_view.values()))
    best = fmean(max(one[name] for one in by_view.values()) for name in names)
    return f"{means} in one view, {rounded(best, 1)} best of three"


def one_view() -> str:
    """Return how much lower published models are in one view than in the best one."""
    lower = [
        100 * (model["overall"] - fmean(model["views"]["ascii_2d"].values()))
        for model in published()["models"].values()
    ]
    return f"{abs(min(lower)):.0f} to {max(lower):.0f} points lower"


def ends() -> str:
    """Return the number of commands for each exit code."""
    codes = Counter(one["exit"] for one in COMMANDS.values())
    differ = sum(" diff " in command for command in COMMANDS)
    return (
        f"{len(COMMANDS)} of its {len(commands())} commands were carried out: {codes[0]} end with 0, {differ} with 1 "
        f"because two protocols differ, {codes[1] - differ} with 1 because there is a FAIL, and {codes[4]} with 4, "
        "because their models need vLLM"
    )


def parts() -> dict[str, tuple[Path, str]]:
    """Return the generated parts of the pages, by the name of their place."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    return {
        "table 2": (COGEVAL, table_2(kept)),
        "deviances": (PAPERS, deviances(kept)),
        "means": (PAPERS, means(kept)),
        "graphs": (PAPERS, graphs(kept)),
        "domains": (PAPERS, domains(kept)),
        "asymptotes": (PAPERS, asymptotes()),
        "one view": (PAPERS, one_view()),
        "ends": (PAPERS, ends()),
        "random": (PAPERS, twenty("pytest --model random --edition paper")),
        "tabular-ql": (
            PAPERS,
            twenty("pytest --model tabular-ql --edition paper", QL_LEARNS),
        ),
        "bfs-oracle": (
            PAPERS,
            twenty("pytest --model bfs-oracle --edition paper", ["morris_water_maze"]),
        ),
        "hippocampal-ql": (
            PAPERS,
            twenty("pytest --model hippocampal-ql --edition paper"),
        ),
        "flat-15": (
            PAPERS,
            twenty("pytest --model random --design flat-15 --edition paper"),
        ),
        "view-modes": (
            PAPERS,
            best_of_views("pytest --model random --study view-modes --edition paper"),
        ),
        "best of views": (
            PAPERS,
            best_of_views("pytest --model random --edition paper --design paper"),
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scores", type=Path, metavar="CSV")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if asked.scores:
        text = json.dumps(measured(asked.scores), indent=1) + "\n"
        KEPT.write_text(text, encoding="utf-8")
    for name, (page, text) in parts().items():
        print(f"{name}: {text}")
        if asked.write:
            fill(page, name, text)


if __name__ == "__main__":
    main()
