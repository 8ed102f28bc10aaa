"""The calls of a trial (prompt, reply, reasoning, token usage) for the page's player."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cheesebench.reports.escaping import clean, visible

if TYPE_CHECKING:
    from cheesebench.experiment.call_log import CallRecord
    from cheesebench.experiment.call_replay import ReplayedCall

#: Characters of a question, a reply, its reasoning or learnings that the page shows.
LONGEST = 20_000


def call_of(replayed: ReplayedCall) -> dict[str, Any]:
    """Return a call in its place as JSON values."""
    record = replayed.record
    return {
        "step": replayed.step,
        "asked": visible(record.asked, LONGEST),
        "reply": visible(record.reply.text, LONGEST),
        "reasoning": visible(record.reply.reasoning, LONGEST),
        "learnings": visible(replayed.learnings, LONGEST),
        "usage": clean(_usage(record)),
    }


def _usage(record: CallRecord) -> str:
    """Return what a call took, in a line."""
    used = record.reply.usage
    shares = {"cached": used.cached, "written to the cache": used.written}
    replayed = ", ".join(f"{tokens:,} {what}" for what, tokens in shares.items() if tokens)
    parts = [f"{used.prompt:,} tokens asked" + (f" ({replayed})" if replayed else "")]
    parts.append(f"{used.completion:,} replied" + (f" ({used.reasoning:,} reasoning)" if used.reasoning else ""))
    parts.append(f"{record.seconds:.1f} s")
    if record.attempts > 1:
        parts.append(f"{record.attempts} attempts")
    if record.reply.finish == "length":
        parts.append("cut off at the limit")
    if record.cost is not None:
        parts.append(f"${record.cost:.4f}")
    if record.reply.model:
        parts.append(record.reply.model)
    return ", ".join(parts)
