"""Measures the speed of every registered view: for first drawings (``cold``), and for
steps after everything has been drawn (``warm``).

The cold figure is for every pose of a look, drawn by a new view, so it includes the
view's preparations (lines of sight, paths of rays). The figures are the median over
protocols, and the slowest one; ``warm, of ascii_2d`` is the ratio to that view's speed
(1 = equal).
"""

from __future__ import annotations

import random
import statistics

import common
from engine import run

from cheesebench.interfaces import Scene, Tile, View
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.scenes import Gallery
from cheesebench.plugin_manager import PluginManager, installed_plugins

STEPS = 100_000


def cold_speed(paradigm: ArenaParadigm, name: str) -> float:
    """Return drawn views per second."""
    unused = iter([new_view(name) for _ in range(common.REPETITIONS)])
    program = paradigm.program
    poses = range(0, program.geometry.poses * 4, 4)

    def draw() -> None:
        gallery = Gallery(program.geometry, next(unused))
        look = gallery.look((frozenset(), False, (), ()))
        for pose in poses:
            gallery.draw(look, pose)

    return len(poses) / common.cpu_times(draw).least


def new_view(name: str) -> View:
    """Return a view that has not drawn anything yet, but has its libraries."""
    view = PluginManager().view(name)
    view.render(Scene(((Tile("floor", "."),),)), 0, 0, 0)
    return view


def warm_speed(paradigm: ArenaParadigm, view: View) -> float:
    """Return steps per second."""
    life = ArenaSubject(paradigm.program, view, 1, 0)
    actions = random.Random(0).choices(range(4), k=STEPS)
    run(life, actions)
    run(life, actions)
    return STEPS / common.cpu_times(lambda: run(life, actions)).least


def measure(
    paradigms: list[ArenaParadigm], view: View, usual: list[float]
) -> common.Row:
    """Return the figures of one view; ``usual`` are the warm speeds in ascii_2d."""
    cold = [cold_speed(paradigm, view.name) for paradigm in paradigms]
    warm = [warm_speed(paradigm, view) for paradigm in paradigms]
    ratios = [speed / other for speed, other in zip(warm, usual, strict=True)]
    return {
        "cold views/s": statistics.median(cold),
        "cold, slowest/s": min(cold),
        "warm steps/s": statistics.median(warm),
        "warm, of ascii_2d": statistics.median(ratios),
    }


if __name__ == "__main__":
    options = common.arguments(__doc__)
    views = installed_plugins().views
    compiled = [
        ArenaParadigm(specification)
        for specification in common.specifications(options.protocols)
    ]
    speeds = [warm_speed(paradigm, views["ascii_2d"]) for paradigm in compiled]
    common.report(
        "views",
        {name: measure(compiled, view, speeds) for name, view in views.items()},
        options.json,
    )
