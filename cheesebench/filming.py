"""Films of recorded trials as moving pictures, for a talk or a pull request."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from cheesebench.chat import Picture
from cheesebench.errors import OptionError
from cheesebench.experiment.replay import film, recorded_protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cheesebench.experiment.log import RunLog
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan, Frame, TrialRecord

#: The view that draws a maze from above, as people usually see one.
FROM_ABOVE = "topdown_2d"
#: Milliseconds for which the last picture is shown.
PAUSE = 1500


def check(plan: CellPlan, output: str) -> None:
    """Raise OptionError for a dialogue, and for a file that is not named ``*.gif``."""
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
