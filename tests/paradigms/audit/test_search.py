"""What the solver finds in small tasks: ways, rewards and steps of the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cheesebench.interfaces import ACTION_LETTERS
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.runs import DARKNESS
from cheesebench.paradigms.arena.audit.search import (
    Ending,
    Search,
    is_success,
    solve_subjects,
    temptations,
)
from cheesebench.paradigms.arena.life import ArenaSubject
from tests.paradigms.audit.test_adversary import SMALL
from tests.paradigms.audit.test_solver import ALTERNATION, KEPT_UP
from tests.paradigms.audit.test_validity import TEMPTING
from tests.stored import check_stored

Plant = Callable[..., ArenaParadigm]
TASKS = {
    **SMALL,
    "kept up": KEPT_UP,
    "alternation": ALTERNATION,
    "tempting": TEMPTING,
}


def told(ending: Ending | None) -> str:
    if ending is None:
        return "-"
    letters = "".join(ACTION_LETTERS[one] for one in ending.actions)
    moves = ", ".join(" ".join(filter(None, move)) for move in ending.moves[:5])
    return f"{letters} {ending.reward:g} waited {ending.waited} ({moves})"


def film(name: str, paradigm: ArenaParadigm) -> Iterator[str]:
    for seed in range(2):
        life = ArenaSubject(paradigm.program, DARKNESS, seed, seed)
        life.begin_trial()
        for effort in (30, 400):
            search = Search(paradigm.program, paradigm.specification, is_success)
            found = search.solve(life, effort, 60)
            yield f"{name}, seed {seed}, effort {effort}: {search.spent} steps"
            yield f"  shortest {told(found.shortest)}"
            yield f"  best {told(found.best_success)}"
            yield f"  failure {told(found.best_failure)}"
            rich = search.greedy(life, effort)
            yield f"  greedy {told(rich.best_success)}, {told(rich.best_failure)}"
    solved = solve_subjects(paradigm, 8, 0)
    yield (
        f"  solved {solved.solved} of {solved.trials} ({solved.lived} lived), "
        f"{solved.in_half} {solved.in_half_with_clocks} {solved.unsolved} "
        f"{dict(solved.failures)}"
    )
    for one in list(temptations(paradigm, 8, 0))[:4]:
        yield f"  {one.where}: gains {one.gain:g} by {one.how}"


def test_what_is_found_is_compared_with_what_is_stored(plant: Plant) -> None:
    lines = [
        line for name, changes in TASKS.items() for line in film(name, plant(*changes))
    ]
    check_stored("solver.txt", "\n".join(lines) + "\n")
