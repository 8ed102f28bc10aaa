"""``python -m website.learning`` makes the moving picture at the top of the README: the
place learner's first trial in the Barnes maze next to a later one.

The maze is turned from trial to trial. The picture shows the first subject with a later
success in the maze as it was in the first trial, so that a reader sees only one exit.
The exit has a ring.
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
from cheesebench.interfaces import Pose
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.records import Frame

PICTURE = Path(__file__).parents[1] / "docs/assets/learning.gif"
MODEL, PROTOCOL, SUBJECTS = "place-learner", "barnes_maze", 20
#: Trials from this number on (from 0) count as later ones.
LATER = 5
#: Size of a maze in pixels. It is so small that text, picture and command fit the first
#: screen of a laptop.
SIZE = 300
#: Sizes in pixels, in the picture that the view draws of this maze: ``SQUARE`` is that
#: of a square, ``MARGIN`` that of the margin.
SQUARE, MARGIN = 26, 3
#: Colours of the learner's path, and of the ring around the exit.
WAY, RING = (213, 0, 28), (0, 92, 230)
#: ``STEP`` is the duration of a step, ``END`` that of the last picture, both in
#: milliseconds. ``BETWEEN`` is the distance between the two mazes, in pixels.
STEP, END, BETWEEN = 160, 2500, 24


def trials() -> list[list[Image.Image]]:
    """Return the pictures of a subject's first trial and of a later success."""
    plugins = installed_plugins()
    with tempfile.TemporaryDirectory() as directory:
        run = cheesebench.run(
            MODEL,
            PROTOCOL,
            seed=0,
            subjects=SUBJECTS,
            design="cohort",
            view="ascii_2d",
            results=directory,
            progress=False,
        )
        with RunLog.open_read_only(Path(run)) as log:
            return _in_one_maze(log, plugins)


def _in_one_maze(log: RunLog, plugins: PluginManager) -> list[list[Image.Image]]:
    [plan] = log.plans()
    paradigm = plugins.compile(recorded_protocol(log, plan, plugins))
    view = plugins.view("topdown_2d")
    for subject in range(SUBJECTS):
        first, *rest = log.trials(plan, subject)
        begun = film(log, paradigm, view, first)
        for later in (one for one in rest if one.success and one.trial >= LATER):
            learned = film(log, paradigm, view, later)
            if _maze(begun) == _maze(learned):
                print(f"subject {subject}: trials 1 and {later.trial + 1}")
                exit_ = learned[-1].at
                return [_moving(frames, exit_) for frames in (begun, learned)]
    raise LookupError("No subject has the maze of its first trial again.")


def _maze(frames: Sequence[Frame]) -> bytes:
    """Return the picture of the maze without the learner at its start."""
    image, pose = _drawn(frames[0]), frames[0].at
    assert pose is not None
    at = [MARGIN + SQUARE * place for place in (pose.x, pose.y)]
    image.paste("white", (at[0], at[1], at[0] + SQUARE, at[1] + SQUARE))
    return image.tobytes()


def _moving(frames: Sequence[Frame], exit_: Pose | None) -> list[Image.Image]:
    return [_image(frames[: step + 1], exit_) for step in range(len(frames))]


def _drawn(frame: Frame) -> Image.Image:
    picture = frame.observation
    assert isinstance(picture, Picture)
    with Image.open(io.BytesIO(picture.png)) as found:
        return found.convert("RGB")


def _centre(pose: Pose) -> tuple[float, float]:
    return MARGIN + SQUARE * (pose.x + 0.5), MARGIN + SQUARE * (pose.y + 0.5)


def _image(frames: Sequence[Frame], exit_: Pose | None) -> Image.Image:
    """Return the last picture of a trial, with the path so far, and a ring at the
    exit.
    """
    image = _drawn(frames[-1])
    way = [_centre(one.at) for one in frames if one.at is not None]
    pen = ImageDraw.Draw(image)
    pen.line(way, fill=WAY, width=5, joint="curve")
    if exit_ is not None:
        pen.circle(_centre(exit_), 0.8 * SQUARE, outline=RING, width=5)
    return image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)


def side_by_side(both: list[list[Image.Image]]) -> list[Image.Image]:
    """Return pictures of both trials side by side. The trial that ends first stands
    still after its end.
    """
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
    palette = pictures[-1].quantize(128)
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
