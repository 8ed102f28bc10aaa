"""``cheesebench plan``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_an_agent_that_acts_by_itself_is_free_and_has_power(run: Run) -> None:
    found = run("plan", "--model", "random", "--protocols", "little.protocol.yaml")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("No calls are made; it is free.")
    assert "little" in found.out
    assert "trials are independent" in " ".join(found.out.split())
    assert all(len(line) <= 80 for line in found.out.splitlines())


def test_a_language_model_has_bounds(run: Run) -> None:
    options = ("plan", "--model", "openai/some", "--protocols", "little.protocol.yaml", "--subjects", "3")
    found = run(*options)
    assert found.code == 0
    assert "At most 108 calls" in found.out, "3 subjects x 4 trials x 9 steps"
    assert "no earlier run" in " ".join(found.out.split())
    assert all(len(line) <= 80 for line in found.out.splitlines())
    told = json.loads(run(*options, "--json").out)
    assert told["most"]["calls"] == 108
    assert told["estimate"] is None
    short = json.loads(run(*options, "--json", "--history", "0").out)
    assert short["most"]["prompt"] < told["most"]["prompt"]


def test_models_of_one_s_own_are_known(run: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "models.yaml").write_text("models: {mine: {backend: openai, id: some}}", encoding="utf-8")
    options = ("plan", "--model", "mine", "--protocols", "little.protocol.yaml", "--json")
    assert run(*options).code == 2
    given = json.loads(run(*options, "--models", "models.yaml").out)
    monkeypatch.setenv("CHEESEBENCH_MODELS", "models.yaml")
    assert json.loads(run(*options).out) == given


def test_power_depends_on_how_alike_trials_are(run: Run) -> None:
    options = ("plan", "--model", "tabular-ql", "--protocols", "little.protocol.yaml", "--json")
    alike, free = (json.loads(run(*options, "--icc", icc).out)["cells"][0]["outlook"] for icc in (0.9, 0))
    assert alike["at_rodent"]["PASS"] < free["at_rodent"]["PASS"]
    assert (alike["icc"], free["icc"]) == (0.9, 0)


def test_a_design_without_claims_has_no_power(run: Run) -> None:
    assert (
        "makes no claim"
        in run("plan", "--model", "random", "--protocols", "little.protocol.yaml", "--design", "smoke").out
    )


def test_mistakes(run: Run) -> None:
    for arguments, said in (
        (("--model", "randon"), "Did you mean 'random'?"),
        (("--model", "random", "--history", "1"), "is about language models"),
        (("--model", "random", "--design", "cohrt"), "Did you mean 'cohort'?"),
        (("--model", "random", "--icc", "2"), "no number from 0 to 1"),
        (("--model", "random", "--view", "ascii_9d"), "There is no view"),
        (("--model", "random", "--protocols", "litle"), "litle"),
        ((), "--model"),
    ):
        found = run("plan", *arguments)
        assert (found.code, found.out) == (2, "")
        assert said in found.err
