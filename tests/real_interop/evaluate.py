"""Asks a model with Inspect whether it knows each of 120 things: ``evaluate.py MODEL
LOGS``.
"""

from __future__ import annotations

import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes

TASK = Task(
    dataset=[
        Sample(id=number, input=f"Thing {number}?", target="yes")
        for number in range(120)
    ],
    scorer=includes(),
    name="things",
)
eval(TASK, model=sys.argv[1], log_dir=sys.argv[2], display="none")
