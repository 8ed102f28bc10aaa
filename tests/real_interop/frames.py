"""Reads eval logs with Inspect's own data frames: ``frames.py LOGS``; prints their
contents as JSON.
"""

from __future__ import annotations

import json
import sys

from inspect_ai.analysis import (
    EventInfo,
    ModelEventColumns,
    evals_df,
    events_df,
    messages_df,
    samples_df,
)

logs = sys.argv[1]
samples, messages, events = samples_df(logs), messages_df(logs), events_df(logs)
calls = events_df(
    logs,
    columns=EventInfo + ModelEventColumns,
    filter=lambda event: event.event == "model",
)
found = {
    "evals": len(evals_df(logs)),
    "samples": len(samples),
    "correct": int((samples.score_success == "C").sum()),
    "roles": messages.role.value_counts().to_dict(),
    "events": events.event.value_counts().to_dict(),
    "completions": calls.model_event_completion.value_counts().to_dict(),
}
print(json.dumps(found))
