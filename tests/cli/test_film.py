"""``cheesebench film``: a recorded trial as an animated picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from cheesebench.experiment.log import RunLog
from tests.cli.conftest import RUN


def test_a_film_has_a_picture_for_every_step(
    run: Callable[..., Any], results: Path
) -> None:
    with RunLog.open_read_only(results / RUN) as log:
        [plan] = log.plans()
        record = log.trials(plan, 1)[0]
    done = run("film", RUN, "--subject=1", "--trial=1", "--output", "x.gif")
    assert (done.code, done.err) == (0, "")
    assert f"subject 1, trial 1: {record.outcome}" in done.out
    with Image.open(results.parent / "x.gif") as film:
        frames, times = set(), []
        for number in range(film.n_frames):  # type: ignore[attr-defined]
            film.seek(number)
            times.append(film.info["duration"])
            frames.add(film.convert("RGB").tobytes())
    # Equal consecutive pictures become one with a longer duration.
    assert sum(times) == record.steps * 200 + 1500
    assert len(frames) > 1
    for mistake, said in [
        (("--trial=99", "--output=x.gif"), "has no trial 99 of subject 0"),
        (("--subject=99", "--output=x.gif"), "has no subject 99"),
        (("--output=x.png",), "the name of a film must end in .gif"),
        (("--protocol=litle", "--output=x.gif"), "Did you mean 'little'?"),
    ]:
        refused = run("film", RUN, *mistake)
        assert refused.code == 2
        assert said in refused.err
