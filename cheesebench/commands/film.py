"""``cheesebench film``: writes a recorded trial as a moving picture, for a talk or a
pull request.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from cheesebench.chat import Picture
from cheesebench.commands.common import (
    add_cell,
    add_recorded_trial,
    add_run,
    choose_cell,
    describe,
    positive_number,
    write_bytes,
)
from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.experiment.replay import film, recorded_protocol
from cheesebench.plugin_manager import installed_plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan, Frame, TrialRecord

#: The view that draws a maze from above, as people usually see one.
FROM_ABOVE = "topdown_2d"
#: Milliseconds for which the last picture is shown.
PAUSE = 1500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "The trial is replayed from the run's log and checked against it. Subjects count from 0, trials from 1. The "
        "film starts again when it has ended.",
        "20250131-093000-ab12 --output trial.gif",
        "20250131-093000-ab12 --protocol barnes_maze --subject 3 --trial 20 --output learned.gif",
    )
    add_run(parser)
    add_cell(parser)
    add_recorded_trial(parser, " (default: its last one)")
    parser.add_argument(
        "--speed",
        metavar="N",
        type=positive_number,
        default=5,
        help="steps a second (default: 5)",
    )
    parser.add_argument(
        "--output",
        metavar="GIF",
        required=True,
        help="the file to write, such as x.gif",
    )


def run(options: argparse.Namespace) -> int:
    plugins = installed_plugins()
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        plan = choose_cell(log.plans(), options)
        check(plan, options.output)
        record = _record(log, plan, options)
        content = film_of(log, plugins, plan, record, options.speed)
    write_bytes(content, options.output)
    print(
        f"{plan.label}, {plan.model}, subject {record.subject}, trial {record.trial + 1}: {record.outcome}"
    )
    return 0


def check(plan: CellPlan, output: str) -> None:
    """Raise OptionError for a cell that cannot be filmed, and for another file."""
    if Path(output).suffix.lower() != ".gif":
        raise OptionError(f"--output {output}: the name of a film must end in .gif")
    if plan.items:
        raise OptionError(f"{plan.label} is a dialogue: it has no arena to film.")


def film_of(
    log: RunLog, plugins: PluginManager, plan: CellPlan, record: TrialRecord, speed: int
) -> bytes:
    """Return a recorded trial as an animated GIF with ``speed`` steps a second."""
    paradigm = plugins.compile(recorded_protocol(log, plan, plugins))
    return gif(film(log, paradigm, plugins.view(FROM_ABOVE), record), speed)


def _record(log: RunLog, plan: CellPlan, options: argparse.Namespace) -> TrialRecord:
    run = [one for one in log.trials(plan, options.subject) if not one.missing]
    found = [one for one in run if options.trial in (None, one.trial + 1)]
    if not found:
        which = f"trial {options.trial} of " if run else ""
        raise RunLogError(
            f"The run has no {which}subject {options.subject} of {plan.model} on {plan.label}. Name another --subject or --trial."
        )
    return found[-1]


def gif(frames: Sequence[Frame], speed: int) -> bytes:
    """Return the pictures of a trial as an animated GIF with ``speed`` steps a second.
    The last picture stays longer.
    """
    pictures = []
    for frame in frames:
        assert isinstance(frame.observation, Picture)
        with Image.open(io.BytesIO(frame.observation.png)) as picture:
            pictures.append(picture.convert("RGB"))
    # All pictures have one palette, so that the colours do not flicker.
    palette = pictures[0].quantize(64)
    first, *rest = [
        one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures
    ]
    times = [1000 // speed] * (len(pictures) - 1) + [PAUSE]
    made = io.BytesIO()
    first.save(
        made,
        format="GIF",
        save_all=True,
        append_images=rest,
        duration=times,
        loop=0,
        optimize=True,
    )
    return made.getvalue()
