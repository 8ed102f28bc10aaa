"""Attacks by hand on the default protocols: a policy that knows the file but lacks the
construct reaches at most the allowed rate.

Each policy lacks the channel that a lesion removes, and has everything else: the
protocol, the picture (as turned by the control), rewards, its own actions, waiting,
counts of trials, memory. Rates are over the judged trials of whole lives with fixed
seeds. If the ceiling is an equality by symmetry, a rate far below it would mean a
policy that does not even try.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import pytest

from cheesebench.commands.common import installed_catalogue
from cheesebench.interfaces import FORWARD, ROTATE_LEFT, RUNNING, STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.scenes import canvas_of
from cheesebench.paradigms.arena.tables import destination, shortest_path
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import with_arena

CATALOGUE = installed_catalogue()
VIEW = installed_plugins().view("ascii_2d")
PLAIN = (
    "morris_water_maze",
    "star_maze",
    "barnes_maze",
    "radial_arm_maze",
    "t_maze",
    "dnms",
    "operant_chamber",
    "shuttle_box",
    "place_preference",
)
Paths = dict[tuple[int, str], tuple[int, ...]]
PATHS: dict[str, Paths] = {}


@cache
def compiled(name: str) -> ArenaParadigm:
    return ArenaParadigm(with_arena(CATALOGUE.find(name)))


class Sense:
    """The perceptions of a policy, which uses only those that its lesion leaves."""

    def __init__(self, name: str, lesion: Lesion, seed: int, subject: int) -> None:
        self.paradigm = compiled(name)
        view = self.paradigm.lesioned(VIEW, lesion)
        self.life = ArenaSubject(self.paradigm.program, view, seed, subject)
        self.lesion = lesion
        self.geometry = self.paradigm.program.geometry
        arena = self.geometry.arena
        self.canvas = canvas_of(arena)
        self.cell_at = {square: cell for cell, square in enumerate(arena.cells)}
        self.paths = PATHS.setdefault(name, {})
        self.lots = random.Random(f"{seed}|{subject}")
        self.memory: dict[str, Any] = {}
        #: Number of trials so far in this life, and the rewards of this trial.
        self.trial = 0
        self.rewards: list[float] = []
        #: Steps of this trial, including waited ones.
        self.steps = 0
        self.picture = ""

    @property
    def pose(self) -> int:
        """The subject's pose in the picture, as if north were up."""
        assert not self.lesion.sees_nothing
        column, row, heading = self.life.standing
        return self.geometry.pose(
            self.cell_at[column + self.canvas.left, row + self.canvas.top], heading
        )

    @property
    def state(self) -> str:
        """The phase of the trial, which every protocol reveals by events (doors,
        waiting, text).
        """
        return self.life.state

    def here(self, zones: Iterable[str]) -> str | None:
        """The zone in which the subject is in the picture."""
        cell = self.geometry.cell(self.pose)
        return next(
            (zone for zone in zones if cell in self.geometry.arena.cells_of(zone)), None
        )

    def way(self, place: str, pose: int | None = None) -> tuple[int, ...]:
        """The shortest path in the picture, all doors open; none if the subject is
        there.
        """
        pose = self.pose if pose is None else pose
        if (pose, place) not in self.paths:
            tables = self.geometry.tables(frozenset(), False)
            found = shortest_path(
                self.geometry, tables, pose, destination(self.geometry.arena, [place])
            )
            self.paths[pose, place] = tuple(found or ())
        return self.paths[pose, place]

    def members(self, group: str) -> list[str]:
        return list(self.geometry.arena.groups[group])


#: Returns the next actions for a perception; called again when they are done or the
#: runner waited.
Policy = Callable[[Sense], Sequence[int]]
#: Remembers a perception at the end of a trial.
Learn = Callable[[Sense], None]


def rate(
    name: str,
    lesion: str,
    policy: Policy,
    learn: Learn | None = None,
    lives: Sequence[tuple[int, int]] = (),
    block: str = "",
) -> tuple[float, int, float]:
    """Return the success rate of judged trials (or of a block's), their number, and the
    rate in the last third.
    """
    taken = Lesion.parse(lesion)
    judged: list[list[bool]] = []
    for seed, subject in lives or list(itertools.product(range(900, 902), range(12))):
        one: list[bool] = []
        sense = Sense(name, taken, seed, subject)
        life = sense.life
        while (observation := life.begin_trial()) is not None:
            sense.trial, sense.steps, sense.rewards, sense.picture = (
                sense.trial + 1,
                0,
                [],
                observation,
            )
            if taken.forgets_trials:
                sense.memory.clear()
            actions: list[int] = []
            status = RUNNING
            before = life.state
            while status == RUNNING:
                if life.state != before and life.state in taken.forgets_at:
                    sense.memory = {"steps": 0}
                    sense.rewards, sense.steps, sense.trial = [], 0, 0
                before = life.state
                if life.waiting:
                    actions, action = [], STAY
                else:
                    actions = actions or list(policy(sense)) or [STAY]
                    action = actions.pop(0)
                sense.picture, reward, status = life.step(action)
                sense.rewards.append(0.0 if taken.feels_no_reward else reward)
                sense.steps += 1
            if learn is not None:
                learn(sense)
            if life.block in (
                [block] if block else sense.paradigm.specification.judged_blocks
            ):
                one.append(life.is_success())
        judged.append(one)
    trials = sum(map(len, judged))
    late = [value for one in judged for value in one[-(len(one) // 3) :]]
    return sum(map(sum, judged)) / trials, trials, sum(late) / len(late)


def by_luck(at_most: float, trials: int) -> float:
    """Return the rate that luck does not exceed if the expectation is ``at_most``:
    three standard errors more.
    """
    return at_most + 3 * math.sqrt(at_most * (1 - at_most) / trials)


# -- premises of the ceilings: without the landmarks, all rotations look alike


def quarter_turn(name: str) -> Callable[[int], int]:
    """Return a function that rotates a pose clockwise by a quarter turn about the
    centre.
    """
    geometry = compiled(name).program.geometry
    arena = geometry.arena
    last = len(arena.kinds) - 1
    cell_at = {square: cell for cell, square in enumerate(arena.cells)}

    def turned(pose: int) -> int:
        column, row = arena.cells[geometry.cell(pose)]
        return geometry.pose(
            cell_at[last - row, column], (geometry.heading(pose) + 2) % 8
        )

    return turned


@pytest.mark.parametrize(
    "name", ["morris_water_maze", "radial_arm_maze", "operant_chamber"]
)
def test_a_quarter_turn_changes_no_way(name: str) -> None:
    geometry, turned = compiled(name).program.geometry, quarter_turn(name)
    moves = geometry.tables(frozenset(), False).moves
    for pose, action in itertools.product(range(0, geometry.poses * 4, 4), range(4)):
        assert moves[turned(pose) + action] == turned(moves[pose + action])


@pytest.mark.parametrize("edition", ["", "@rodent"])
@pytest.mark.parametrize("name", ["morris_water_maze", "barnes_maze", "star_maze"])
def test_without_landmarks_all_turns_look_alike(name: str, edition: str) -> None:
    seen: dict[str, dict[Any, set[str]]] = {"intact": {}, "hide=landmarks": {}}
    for lesion, pictures in seen.items():
        for subject in range(40):
            life = Sense(name + edition, Lesion.parse(lesion), 7, subject).life
            picture = life.begin_trial()
            pictures.setdefault(life.standing, set()).add(str(picture))
    assert max(map(len, seen["intact"].values())) > 1
    assert max(map(len, seen["hide=landmarks"].values())) == 1


@cache
def on_time(pose: int, slack: int = 5) -> dict[int, tuple[int, ...]]:
    """Return, for each set of sites (as bits) that can be entered within the budgets, a
    path from ``pose``.
    """
    program = compiled("morris_water_maze").program
    arena, moves = (
        program.geometry.arena,
        program.geometry.tables(frozenset(), False).moves,
    )
    sites = {arena.cells_of(f"site{number + 1}")[0]: number for number in range(8)}
    origin = arena.cells[program.geometry.cell(pose)]
    budgets = {
        cell: math.ceil(math.dist(origin, arena.cells[cell]) + slack) for cell in sites
    }
    ways: dict[tuple[int, int], tuple[int, ...]] = {(pose, 0): ()}
    for step in range(1, max(budgets.values()) + 1):
        on: dict[tuple[int, int], tuple[int, ...]] = {}
        for (here, entered), way in ways.items():
            for action in (FORWARD, ROTATE_LEFT, ROTATE_LEFT + 1):
                there = moves[here + action]
                cell = program.geometry.cell(there)
                late = there == here or cell not in sites or step > budgets[cell]
                now = (
                    entered if late or action != FORWARD else entered | 1 << sites[cell]
                )
                on.setdefault((there, now), (*way, action))
        ways = on
    return {entered: way for (_, entered), way in ways.items()}


def test_no_way_of_swimming_is_in_time_for_more_of_eight_places() -> None:
    geometry = compiled("morris_water_maze").program.geometry
    poses = [
        geometry.pose(*one)
        for one in itertools.product(geometry.arena.cells_of("inner"), (0, 1))
    ]
    # The other releases by quarter turns.
    most = [max(map(int.bit_count, on_time(pose))) for pose in poses]
    assert Counter(most) == {1: 24, 2: 18}
    share = sum(most) / len(most) / 8
    for lesion in ("hide=landmarks", "blind", "amnesia=trial"):
        assert share <= at_most("morris_water_maze", lesion) < share + 0.01


def test_blind_in_the_radial_maze_even_who_is_told_all_baits_cannot_choose() -> None:
    """By counting: the heading is uniform, so the arms of one kind (or all arms) are
    equally likely to be entered.
    """
    total, number = 0.0, 0
    for baited in itertools.combinations(range(8), 4):
        for given in itertools.combinations(baited, 2):
            left = kinds(arm for arm in baited if arm not in given)
            total += blind_radial(
                left, kinds(arm for arm in range(8) if arm not in baited), 0
            )
            number += 1
    assert total / number == pytest.approx(0.1607, abs=1e-4)
    assert total / number <= at_most("radial_arm_maze", "blind")


def kinds(arms: Iterable[int]) -> tuple[int, int]:
    straight = [arm % 2 for arm in arms]
    return straight.count(0), straight.count(1)


def blind_radial(
    baited: tuple[int, int], others: tuple[int, int], errors: int
) -> float:
    """Return the best chance to find the baits of (straight, diagonal) arms, if all
    other arms except ``others`` are fatal.
    """
    best = 0.0
    for straight, diagonal in ((1 / 8, 1 / 8), (1 / 4, 0.0), (0.0, 1 / 4)):
        share = 0.0
        for kind, each in enumerate((straight, diagonal)):
            if baited[kind]:
                rest = less(baited, kind)
                share += (
                    each
                    * baited[kind]
                    * (blind_radial(rest, others, errors) if sum(rest) else 1)
                )
            if others[kind] and not errors:
                share += (
                    each * others[kind] * blind_radial(baited, less(others, kind), 1)
                )
        best = max(best, share)
    return best


def less(numbers: tuple[int, int], kind: int) -> tuple[int, int]:
    return numbers[0] - (kind == 0), numbers[1] - (kind == 1)


def at_most(name: str, lesion: str) -> float:
    """Return the ceiling that a protocol declares for a lesion."""
    construct = compiled(name).specification.construct
    assert construct is not None
    return float(
        next(most for known, most in construct.abolished_by if str(known) == lesion)
    )


# -- places: for subjects that do not see the landmarks, or forget


def goals(sense: Sense) -> list[str]:
    """The possible places of the goal, clockwise."""
    groups = sense.geometry.arena.groups
    return sense.members("site" if "site" in groups else "hole")


def end_at_goal(sense: Sense) -> None:
    """Every trial ends at the goal, whether reached or led to: remember its place in
    the picture.
    """
    if (place := sense.here(goals(sense))) is not None:
        sense.memory.setdefault("ends", []).append(place)


#: Strategies of a subject without landmarks, from the places in the picture where its
#: trials ended.
HOPES: dict[str, Callable[[Sense, list[str], str], float]] = {
    "any": lambda sense, ends, place: 0,
    "where the last trial ended": lambda sense, ends, place: place in ends[-1:],
    "where most ended": lambda sense, ends, place: ends.count(place),
    "what is due": lambda sense, ends, place: -ends.count(place),
    "the trial's number": lambda sense, ends, place: (
        place == goals(sense)[sense.trial * 5 % 8]
    ),
}


@pytest.mark.parametrize("lesion", ["hide=landmarks", "amnesia=trial"])
@pytest.mark.parametrize("hope", HOPES)
def test_without_landmarks_or_memory_no_more_places_are_reached_in_time(
    hope: str, lesion: str
) -> None:
    def policy(sense: Sense) -> Sequence[int]:
        places, ends = goals(sense), sense.memory.get("ends", [])

        def worth(entered: int) -> tuple[int, float]:
            sites = [
                place for number, place in enumerate(places) if entered >> number & 1
            ]
            return len(sites), sum(HOPES[hope](sense, ends, place) for place in sites)

        ways = on_time(sense.pose)
        return ways[max(ways, key=worth)]

    share, trials, _ = rate("morris_water_maze", lesion, policy, end_at_goal)
    most = 10 / 56  # one place, and two from six of fourteen releases
    assert abs(share - most) < 3 * math.sqrt(most * (1 - most) / trials)


def by_landmarks(sense: Sense) -> Sequence[int]:
    return sense.way(
        rotated(sense, sense.memory["place"], 1)
        if "place" in sense.memory
        else goals(sense)[0]
    )


def note_by_landmarks(sense: Sense) -> None:
    end_at_goal(sense)
    sense.memory["place"] = rotated(sense, sense.memory["ends"][-1], -1)


def rotated(sense: Sense, place: str, sign: int) -> str:
    """The place rotated into the picture (1), or back into the room (-1)."""
    around = goals(sense)
    return str(
        around[(around.index(place) + sign * sense.life.values["turn"]) % len(around)]
    )


@pytest.mark.parametrize("edition", ["", "@rodent"])
@pytest.mark.parametrize("name", ["morris_water_maze", "barnes_maze"])
def test_who_remembers_by_landmarks_is_right_from_the_second_trial_on(
    name: str, edition: str
) -> None:
    lives = list(itertools.product([900], range(8)))
    share, _, late = rate(
        name + edition, "intact", by_landmarks, note_by_landmarks, lives
    )
    assert share >= 0.95
    assert late == 1


def tour(sense: Sense) -> Sequence[int]:
    """Look into one hole after the other, from the one where a trial ended last."""
    around = goals(sense)
    began = around.index(sense.memory["ends"][-1]) if "ends" in sense.memory else 0
    looked = sense.memory.setdefault(f"looked {sense.trial}", [])
    if (here := sense.here(around)) is not None and here not in looked:
        looked.append(here)
    return sense.way(
        next(hole for hole in around[began:] + around[:began] if hole not in looked)
    )


@pytest.mark.parametrize("lesion", ["hide=landmarks", "amnesia=trial"])
def test_a_tour_of_the_rim_finds_the_box_in_eight_of_eighteen(lesion: str) -> None:
    share, trials, _ = rate("barnes_maze", lesion, tour, end_at_goal)
    assert abs(share - 8 / 18) < 3 * math.sqrt(8 / 18 * 10 / 18 / trials)
    assert share <= by_luck(at_most("barnes_maze", lesion), trials)


# -- star maze: a route of turns, or the place

Guess = Callable[[list[int], list[int], int], int]
#: Number of alleys to go clockwise from the start. Arguments of a guess: the turns and
#: alleys that were right so far, and the number of the trial.
GUESSES: dict[str, Guess] = {
    "the turns of the last trial": lambda turns, ends, trial: turns[-1],
    "the usual turns": lambda turns, ends, trial: Counter(turns).most_common(1)[0][0],
    "turns that are due": lambda turns, ends, trial: min(
        range(1, 5), key=Counter(turns).__getitem__
    ),
    "the same in the picture": lambda turns, ends, trial: ends[-1],
    "the trial's number": lambda turns, ends, trial: trial % 4 + 1,
}


def alley(sense: Sense) -> int:
    arms = sense.members("arm")
    return arms.index(sense.here(arms) or arms[0])


def going(guess: Guess) -> Policy:
    def policy(sense: Sense) -> Sequence[int]:
        if not sense.steps:
            sense.memory["home"] = alley(sense)
        home, ends = sense.memory["home"], sense.memory.setdefault("ends", [0])
        turns = guess(
            sense.memory.setdefault("turns", [1]),
            [(end - home) % 5 or 1 for end in ends],
            sense.trial,
        )
        return sense.way(sense.members("arm")[(home + turns) % 5])

    return policy


def end_in_alley(sense: Sense) -> None:
    """Every trial but the probe ends at the goal."""
    if sense.life.block != "probe":
        sense.memory.setdefault("ends", []).append(alley(sense))
        sense.memory.setdefault("turns", []).append(
            (alley(sense) - sense.memory["home"]) % 5
        )


@pytest.mark.parametrize("lesion", ["hide=landmarks", "amnesia=trial"])
@pytest.mark.parametrize("guess", GUESSES)
def test_from_several_starts_turns_lead_to_one_of_four_alleys(
    guess: str, lesion: str
) -> None:
    share, trials, _ = rate("star_maze", lesion, going(GUESSES[guess]), end_in_alley)
    assert abs(share - 0.25) < 3 * math.sqrt(0.25 * 0.75 / trials)


def test_from_one_start_the_usual_turns_are_as_good_as_the_place() -> None:
    policy = going(GUESSES["the usual turns"])
    assert (
        rate("star_maze", "hide=landmarks", policy, end_in_alley, block="route")[2] == 1
    )
    assert (
        rate("star_maze", "hide=landmarks", policy, end_in_alley, block="probe")[0] == 0
    )


def test_by_landmarks_one_is_right_from_several_starts_and_in_the_probe() -> None:
    def policy(sense: Sense) -> Sequence[int]:
        values = sense.life.values
        return sense.way(sense.members("arm")[(values["place"] + values["turn"]) % 5])

    assert all(
        rate("star_maze", "intact", policy, block=block)[0] == 1
        for block in ("route", "probe", "places")
    )


# -- radial arm maze


def entering(
    known: Callable[[Sense], Iterable[str]], order: Callable[[Sense, list[str]], str]
) -> Policy:
    """Return the policy that enters the supposedly baited arms, each once."""

    def policy(sense: Sense) -> Sequence[int]:
        entered = sense.memory.setdefault(f"entered {sense.trial}", [])
        left = [arm for arm in sorted(known(sense)) if arm not in entered]
        if not left:
            return [STAY]
        entered.append(order(sense, left))
        return sense.way(entered[-1])

    return policy


def nearest_arm(sense: Sense, arms: list[str]) -> str:
    return min(arms, key=lambda arm: len(sense.way(arm)))


def any_arm(sense: Sense, arms: list[str]) -> str:
    return sense.lots.choice(arms)


#: Orders in which arms are entered.
ORDERS: dict[str, Callable[[Sense, list[str]], str]] = {
    "next": lambda sense, arms: arms[0],
    "nearest": nearest_arm,
    "lot": any_arm,
}


def all_baited(sense: Sense) -> Iterable[str]:
    return sense.life.values["baited"]  # type: ignore[no-any-return]


def not_given(sense: Sense) -> Iterable[str]:
    values = sense.life.values
    return [
        arm
        for arm in sense.members("cup")
        if arm not in (values["given_1"], values["given_2"])
    ]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("lesion", "known"), [("amnesia=delay", all_baited), ("amnesia=trial", not_given)]
)
def test_half_of_what_there_is_to_remember_is_not_enough(
    lesion: str, known: Callable[[Sense], Iterable[str]], order: str
) -> None:
    lives = list(itertools.product(range(900, 906), range(12)))
    share, _, _ = rate(
        "radial_arm_maze", lesion, entering(known, ORDERS[order]), None, lives
    )
    # The arms are drawn once in a life, so lives count, not trials.
    assert share <= by_luck(at_most("radial_arm_maze", lesion), len(lives))


@pytest.mark.parametrize(
    "actions", [[0] * 14, [0, 0, 1, 1, 1, 0, 0, 2, 0, 0, 2, 0, 0, 0]]
)
def test_blind_walks_do_not_find_the_baits(actions: list[int]) -> None:
    share, trials, _ = rate("radial_arm_maze", "blind", lambda sense: actions)
    assert share <= by_luck(0.0625, trials)


def test_who_remembers_both_finds_all_baits() -> None:
    policy = entering(
        lambda sense: set(all_baited(sense)) & set(not_given(sense)), nearest_arm
    )
    assert rate("radial_arm_maze", "intact", policy)[0] == 1


# -- T-maze and delayed non-match: memory after the delay


def forced_run(sense: Sense) -> Sequence[int]:
    return sense.way("left" if sense.life.values["shut"] == "gate_right" else "right")


def coded(sense: Sense) -> Sequence[int]:
    """Take longer on the way to one side than to the other, and read the side off the
    clock.
    """
    if sense.state == "forced":
        waits = [STAY] * (sense.life.values["shut"] == "gate_left" and not sense.steps)
        return waits or forced_run(sense)
    return sense.way("left" if sense.steps % 2 else "right")


def habit(sense: Sense) -> Sequence[int]:
    return forced_run(sense) if sense.state == "forced" else sense.way("left")


def by_heading(sense: Sense) -> Sequence[int]:
    if sense.state == "forced":
        return forced_run(sense)
    return sense.way("left" if sense.geometry.heading(sense.pose) < 4 else "right")


@pytest.mark.parametrize("edition", ["", "@rodent"])
@pytest.mark.parametrize(
    "policy", [coded, habit, by_heading], ids=lambda one: one.__name__
)
def test_who_forgets_at_the_delay_alternates_by_chance(
    policy: Policy, edition: str
) -> None:
    share, trials, _ = rate(f"t_maze{edition}", "amnesia=delay", policy)
    assert share <= by_luck(at_most("t_maze", "amnesia=delay"), trials)


def test_who_remembers_the_forced_run_is_right() -> None:
    def policy(sense: Sense) -> Sequence[int]:
        if sense.state == "forced":
            sense.memory["way"] = forced_run(sense)
            sense.memory["other"] = (
                "left" if sense.life.values["shut"] == "gate_left" else "right"
            )
            return forced_run(sense)
        return sense.way(sense.memory["other"])

    assert rate("t_maze", "amnesia=trial", policy)[0] == 1


CHOICES: dict[str, Callable[[Sense, str], float]] = {
    "first": lambda sense, window: int(window[-1]),
    "north": lambda sense, window: abs(int(window[-1]) - 4.5),
    "near": lambda sense, window: len(sense.way(window)),
}


@pytest.mark.parametrize("edition", ["", "@rodent"])
@pytest.mark.parametrize("choice", CHOICES)
def test_who_forgets_the_sample_chooses_by_chance(choice: str, edition: str) -> None:
    def policy(sense: Sense) -> Sequence[int]:
        values = sense.life.values
        if sense.state == "sampling":
            return sense.way(values["sample"])
        lit = sorted([values["sample"], values["novel"]])
        return sense.way(min(lit, key=lambda window: CHOICES[choice](sense, window)))

    share, trials, _ = rate(f"dnms{edition}", "amnesia=choice", policy)
    assert share <= by_luck(at_most("dnms", "amnesia=choice"), trials)


# -- the body as memory: turned before the memory is lost, and looked at afterwards


def turned_by_the_sample(sense: Sense) -> Sequence[int]:
    values = sense.life.values
    if sense.state == "sampling":
        return sense.way(values["sample"])
    if sense.state == "retain":
        return [ROTATE_LEFT] * int(values["sample"][-1])
    lit = sorted([values["sample"], values["novel"]])
    return sense.way(lit[sense.geometry.heading(sense.pose) // 2 % 2])


def test_the_body_remembers_nothing() -> None:
    share, trials, _ = rate("dnms", "amnesia=choice", turned_by_the_sample)
    assert abs(share - 0.5) < 3 * math.sqrt(0.5 * 0.5 / trials)


# -- chambers: blind, with all rewards remembered


def note_failures(sense: Sense) -> None:
    sense.memory["failures"] = sense.memory.get("failures", 0) + (
        sum(sense.rewards) <= 0
    )


def another_turn_after_failure(sense: Sense) -> Sequence[int]:
    return [*[2] * (sense.memory.get("failures", 0) % 4), FORWARD, FORWARD, FORWARD]


def another_way_after_shock(sense: Sense) -> Sequence[int]:
    """Cross by the clock, at the first signal or at the second."""
    return [
        *[STAY] * (27 if sense.memory.get("failures", 0) % 2 else 6),
        ROTATE_LEFT + 1,
        *[FORWARD] * 4,
        *[STAY] * 60,
    ]


def side_by_order(sense: Sense) -> Sequence[int]:
    """The order of paid and unpaid stays can be felt, but not the side of each."""
    if sense.state != "choice":
        return [STAY]
    return [1 + sense.memory["failures"] % 2, FORWARD, FORWARD, FORWARD, *[STAY] * 6]


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("operant_chamber", another_turn_after_failure),
        ("shuttle_box", another_way_after_shock),
        ("place_preference", side_by_order),
        ("place_preference@rodent", side_by_order),
    ],
)
def test_the_blind_do_not_learn_from_reward_alone(name: str, policy: Policy) -> None:
    share, trials, _ = rate(name, "blind", policy, note_failures)
    assert share <= by_luck(at_most(name, "blind"), trials)


# -- the cost of a life


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("action", [STAY, ROTATE_LEFT])
def test_a_hopeless_life_is_short(name: str, action: int) -> None:
    life = ArenaSubject(compiled(name).program, VIEW, 900, 0)
    steps = 0
    while life.begin_trial() is not None:
        status = RUNNING
        while status == RUNNING:
            _, _, status = life.step(action)
            steps += 1
    assert steps <= 1200
