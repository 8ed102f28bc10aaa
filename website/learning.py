"""``python -m website.learning`` makes the moving picture at the top of the README: the
place learner's first and last trial in the Barnes maze, beside one another.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

import cheesebench
from cheesebench.chat import Picture
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import film, recorded_protocol
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import Frame

PICTURE = Path(__file__).parents[1] / "docs/assets/learning.gif"
MODEL, PROTOCOL, SUBJECT = "place-learner", "barnes_maze", 0
#: Pixels of a maze: text, picture and command fit a laptop's first screen.
SIZE = 300
#: In the view's own picture of this maze: pixels of a square, and around the maze.
SQUARE, MARGIN = 26, 3
#: The colour of the learner, and of its way.
WAY = (213, 0, 28)
#: Milliseconds of a step and of the end; pixels between the two mazes.
STEP, END, BETWEEN = 160, 2500, 24


def trials() -> list[list[Image.Image]]:
    """Return the pictures of a subject's first trial and of its last success."""
    plugins = installed_plugins()
    with tempfile.TemporaryDirectory() as directory:
        run = cheesebench.run(
            MODEL,
            PROTOCOL,
            seed=0,
            subjects=SUBJECT + 1,
            design="cohort",
            view="ascii_2d",
            results=directory,
            progress=False,
        )
        with RunLog.open_read_only(Path(run)) as log:
            [plan] = log.plans()
            life = list(log.trials(plan, SUBJECT))
            last = next(one for one in reversed(life) if one.success)
            paradigm = plugins.compile(recorded_protocol(log, plan, plugins))
            view = plugins.view("topdown_2d")
            found = []
            for record in (life[0], last):
                frames = film(log, paradigm, view, record)
                found.append(
                    [_image(frames[: step + 1]) for step in range(len(frames))]
                )
    return found


def _image(frames: Sequence[Frame]) -> Image.Image:
    """Return the last picture, with the way that led there."""
    picture = frames[-1].observation
    assert isinstance(picture, Picture)
    with Image.open(io.BytesIO(picture.png)) as found:
        image = found.convert("RGB")
    way = [
        (MARGIN + SQUARE * (one.at.x + 0.5), MARGIN + SQUARE * (one.at.y + 0.5))
        for one in frames
        if one.at is not None
    ]
    ImageDraw.Draw(image).line(way, fill=WAY, width=5, joint="curve")
    return image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)


def side_by_side(both: list[list[Image.Image]]) -> list[Image.Image]:
    """Return pictures of both trials; the one that ends first stands still."""
    wide, high = both[0][0].size
    found = []
    for step in range(max(map(len, both))):
        page = Image.new("RGB", (2 * wide + BETWEEN, high), "white")
        for place, trial in enumerate(both):
            at = (place * (wide + BETWEEN), 0)
            page.paste(trial[min(step, len(trial) - 1)], at)
        found.append(page)
    return found


def main() -> None:
    pictures = side_by_side(trials())
    palette = pictures[0].quantize(64, Image.Quantize.MAXCOVERAGE)
    first, *rest = (
        one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures
    )
    first.save(
        PICTURE,
        save_all=True,
        append_images=rest,
        duration=[STEP] * len(rest) + [END],
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main()
