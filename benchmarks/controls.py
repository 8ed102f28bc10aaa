"""Measures the effects of controls on learners with a rising curve, for the table of
docs/controls.md.

The table shows the gain from the first to the last session in percentage points, with
the design ``cohort``, seed 0 and the view ``ascii_2d``. This takes about a minute.

    python benchmarks/controls.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import Any

CELLS = (
    ("operant_chamber", "tabular-ql"),
    ("operant_chamber", "hippocampal-ql"),
    ("t_maze", "hippocampal-ql"),
)
CONTROLS = ("reward-shuffled", "cue-off", "cue-shuffled", "labels-swapped")


def gains() -> dict[tuple[str, str, str], float]:
    """Run all cells, and return the gains in percentage points by protocol, model and
    control ("" for the plain cell).
    """
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        for run, controls in (("plain", CONTROLS), ("yoked", ("yoked:plain",))):
            for cell in _run(directory, run, controls):
                plan, curve = cell["plan"], cell["curve"]
                control = plan["variant"].removeprefix("control=").partition(":")[0]
                found[plan["protocol"], plan["model"], control] = 100 * (
                    curve[-1]["rate"] - curve[0]["rate"]
                )
    return found


def table(found: dict[tuple[str, str, str], float]) -> str:
    """Return the table in the form of the page."""
    columns = ("", *CONTROLS, "yoked")
    lines = [
        "| protocol, agent | plain | " + " | ".join(columns[1:]) + " |",
        "| --- |" + " --: |" * len(columns),
    ]
    for protocol, model in CELLS:
        values = [f"{found[protocol, model, control]:+.0f}" for control in columns]
        lines.append(f"| {protocol}, {model} | {' | '.join(values)} |")
    return "\n".join(lines)


def _run(directory: str, name: str, controls: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run the cells with the controls, and return the cells of the JSON report."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--cheese-exit-zero",
        "--seed=0",
    ]
    command += [
        f"--cheese-run-id={name}",
        *(f"--control={control}" for control in controls),
    ]
    command += [
        f"--protocols={protocol}"
        for protocol in dict.fromkeys(protocol for protocol, _ in CELLS)
    ]
    command += [
        f"--model={model}" for model in dict.fromkeys(model for _, model in CELLS)
    ]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    report = [sys.executable, "-m", "cheesebench", "report", name, "--format", "json"]
    printed = subprocess.run(
        report, cwd=directory, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    found: list[dict[str, Any]] = json.loads(printed)["cells"]
    return found


if __name__ == "__main__":
    print(table(gains()))
