"""The earlier run that the present run resumes or replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.errors import OptionError
from cheesebench.experiment.cells import replayed_models
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.experiment.provenance import made_here

if TYPE_CHECKING:
    from cheesebench.family import LanguageModel
    from cheesebench.plugin_manager import PluginManager


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The earlier run on which the present one depends: the resumed run, or the run
    that is replayed.
    """

    existing: Path | None = None
    """The log of the resumed run, or None if no run is resumed."""
    source: RunLog | None = None
    """The run whose recorded replies replace calls, or None if no run is replayed."""
    recorded: Mapping[str, Any] | None = None
    """Options of the earlier run, or None if there is none."""
    replayed: Mapping[str, LanguageModel] | None = None
    """Language models of the replayed run, or None if no run is replayed."""
    made_here: bool = True
    """Whether this user made the earlier run on this machine. It is True, too, if there
    is none.
    """


def read_earlier(
    plugins: PluginManager, results: Path, resume: str | None, models: Sequence[str]
) -> Earlier:
    """Read the earlier run in ``results``: the run to ``resume``, or the run that a
    model ``replay:RUN`` names. Without either, all fields have their defaults. Raise
    RunLogError if there is no such run, and OptionError if ``replay:RUN`` is not the
    only model.
    """
    if resume is not None:
        existing = locate(results, resume)
        with RunLog.open_read_only(existing) as log:
            manifest = log.manifest
            return Earlier(
                existing=existing,
                recorded=manifest["options"],
                made_here=made_here(manifest),
            )
    replay = _replayed(models)
    if replay is None:
        return Earlier()
    source = RunLog.open_read_only(locate(results, replay, exact=True))
    manifest = source.manifest
    return Earlier(
        source=source,
        recorded=manifest["options"],
        made_here=made_here(manifest),
        replayed=replayed_models(plugins, source.plans()),
    )


def _replayed(models: Sequence[str]) -> str | None:
    """Return the run that ``--model replay:RUN`` names, or None if there is no such
    model. Raise OptionError if there are other models, too, or RUN is empty.
    """
    runs = [name.partition(":")[2] for name in models if name.startswith("replay:")]
    if not runs:
        return None
    if len(models) > 1 or not runs[0]:
        raise OptionError(
            f"--model {','.join(models)}: give 'replay:RUN' alone, with one run."
        )
    return runs[0]
