"""The oracle in small arenas: a simulator of clause 7 (movement) around the real
view.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cheesebench import (
    FORWARD,
    HEADINGS,
    ROTATE_LEFT,
    ROTATE_RIGHT,
    AgentContext,
    AgentSpec,
    Scene,
    Tile,
)
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents import BfsOracle
from cheesebench.plugins.views.ascii_2d import Ascii2D

OFFSETS = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
LETTERS = "FLRS"


@dataclass
class Arena:
    """A map (the arrow is the agent), movement as on the language page, and the
    observation.
    """

    picture: str
    solids: str = ""
    headings: int = 8
    text: tuple[str, ...] = ()
    frozen: bool = False
    rows: list[list[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [list(line) for line in self.picture.strip("\n").split("\n")]
        self.x, self.y, self.heading = next(
            (x, y, Ascii2D.characters.index(glyph))
            for y, row in enumerate(self.rows)
            for x, glyph in enumerate(row)
            if glyph in "↑↗→↘↓↙←↖"
        )
        self.rows[self.y][self.x] = "."

    def observe(self) -> str:
        tiles = tuple(tuple(Tile("floor", glyph) for glyph in row) for row in self.rows)
        return Ascii2D().render(Scene(tiles, self.text), self.x, self.y, self.heading)

    @property
    def beneath(self) -> str:
        return self.rows[self.y][self.x]

    def free(self, x: int, y: int) -> bool:
        inside = 0 <= y < len(self.rows) and 0 <= x < len(self.rows[y])
        return inside and self.rows[y][x] not in "# " + self.solids

    def step(self, action: int) -> None:
        if self.frozen:
            return
        turn = 8 // self.headings
        if action == ROTATE_LEFT:
            self.heading = (self.heading - turn) % 8
        elif action == ROTATE_RIGHT:
            self.heading = (self.heading + turn) % 8
        elif action == FORWARD:
            dx, dy = OFFSETS[self.heading]
            squeezed = (
                dx
                and dy
                and not self.free(self.x + dx, self.y)
                and not self.free(self.x, self.y + dy)
            )
            if self.free(self.x + dx, self.y + dy) and not squeezed:
                self.x, self.y = self.x + dx, self.y + dy


def act(agent: BfsOracle, arena: Arena) -> str:
    (action,) = agent.act(arena.observe())
    arena.step(action)
    agent.observe(action, 0.0, arena.observe(), False)
    return LETTERS[action]


def walk(arena: Arena, *, limit: int = 500, seed: int = 1, stop_on: str = "G") -> str:
    """Let a new oracle live in the arena until it stands on ``stop_on``; return its
    actions.
    """
    agent, actions = BfsOracle(AgentContext(seed, "ascii_2d")), ""
    agent.begin_trial(arena.observe())
    while arena.beneath != stop_on and len(actions) < limit:
        actions += act(agent, arena)
    assert arena.beneath == stop_on, f"not there after {actions}\n{arena.observe()}"
    return actions


@pytest.mark.parametrize(
    ("picture", "actions"),
    [
        ("######\n#→..G#\n######", {"FFF"}),
        ("######\n#↑..G#\n######", {"RRFFF"}),
        ("#####\n#↘..#\n#...#\n#..G#\n#####", {"FF"}),
        # Two turns to either side are equally far.
        ("#####\n#↖..#\n#...#\n#..G#\n#####", {"RRRRFF", "LLLLFF"}),
        # One wall beside a diagonal step does not block it.
        ("####\n#↘##\n#..#\n#.G#\n####", {"FRF"}),
    ],
)
def test_the_shortest_way_to_a_visible_goal(picture: str, actions: set[str]) -> None:
    assert walk(Arena(picture)) in actions


def test_no_squeezing_through_a_corner() -> None:
    arena = Arena("#####\n#↘# #\n##G.#\n#...#\n#####")
    agent = BfsOracle(AgentContext(3, "ascii_2d"))
    agent.begin_trial(arena.observe())
    for _ in range(30):
        act(agent, arena)
    # The goal is diagonally behind the corner, and cannot be reached.
    assert (arena.x, arena.y) == (1, 1)


def test_four_headings_are_discovered_from_the_first_turn() -> None:
    # Planned with eighths (R R F F); the first turn faces east already.
    assert walk(Arena("#####\n#↑.G#\n#####", headings=4)) == "RFF"


def test_four_headings_around_a_corner() -> None:
    actions = walk(Arena("#####\n#↑..#\n###.#\n#G..#\n#####", headings=4))
    assert actions.count("F") == 6
    assert len(actions) <= 6 + 4


def test_unknown_glyphs_are_walked_on_until_one_stops_it() -> None:
    # The path along the top is shorter, but X is solid; the tilde is not.
    arena = Arena("######\n#→XXG#\n#.~~.#\n######", solids="X")
    actions = walk(arena)
    assert actions.count("F") <= 6
    assert actions[0] == "F"


def test_a_solid_is_bumped_into_once_per_trial() -> None:
    arena = Arena("#####\n#→XG#\n#####", solids="X")
    agent = BfsOracle(AgentContext(1, "ascii_2d"))
    for _ in range(2):
        arena.heading = HEADINGS.index("E")
        agent.begin_trial(arena.observe())
        actions = "".join(act(agent, arena) for _ in range(40))
        # In a box of one cell only random actions remain, which include turns.
        assert actions[0] == "F"
        assert set(actions[1:]) > {"L", "R"}


def test_exploration_finds_a_goal_that_is_not_drawn() -> None:
    arena = Arena("########\n#↑.....#\n#.####.#\n#......#\n########")
    agent = BfsOracle(AgentContext(1, "ascii_2d"))
    agent.begin_trial(arena.observe())
    visited = set()
    for _ in range(60):
        act(agent, arena)
        visited.add((arena.x, arena.y))
    assert len(visited) == 14  # the whole ring


def test_least_visited_cells_come_first() -> None:
    arena = Arena("##########\n#→.......#\n##########")
    agent = BfsOracle(AgentContext(5, "ascii_2d"))
    agent.begin_trial(arena.observe())
    visits = [0] * 10
    for _ in range(200):
        before = arena.x
        act(agent, arena)
        visits[arena.x] += arena.x != before
    # It sweeps to and fro: the ends once, the cells between them twice per round.
    assert max(visits[1:9]) <= 2 * min(visits[1:9]) + 1


def test_every_visible_goal_is_visited_in_turn() -> None:
    arena = Arena("#######\n#G.→.G#\n#######")
    agent = BfsOracle(AgentContext(2, "ascii_2d"))
    agent.begin_trial(arena.observe())
    seen = {(act(agent, arena), arena.x)[1] for _ in range(10)}
    assert {1, 5} <= seen


def test_a_goal_behind_a_closed_door_is_reached_when_the_door_opens() -> None:
    arena = Arena("#######\n#→.=.G#\n#######", solids="=")
    agent = BfsOracle(AgentContext(2, "ascii_2d"))
    agent.begin_trial(arena.observe())
    for _ in range(20):
        act(agent, arena)
    assert arena.x < 3
    arena.rows[1][3] = "."
    for _ in range(15):
        act(agent, arena)
        if arena.beneath == "G":
            break
    assert arena.beneath == "G"


def test_a_frozen_moment_teaches_nothing_about_walls() -> None:
    arena = Arena("#####\n#→.G#\n#####", frozen=True, text=("...",))
    agent = BfsOracle(AgentContext(4, "ascii_2d"))
    agent.begin_trial(arena.observe())
    for _ in range(7):
        act(agent, arena)
    arena.frozen, arena.text = False, ()
    actions = ""
    while arena.beneath != "G" and len(actions) < 20:
        actions += act(agent, arena)
    assert arena.beneath == "G"


def test_being_carried_elsewhere_is_noticed() -> None:
    arena = Arena("########\n#→....G#\n########")
    agent = BfsOracle(AgentContext(1, "ascii_2d"))
    agent.begin_trial(arena.observe())
    assert act(agent, arena) == "F"
    arena.step(FORWARD)
    arena.x, arena.heading = 1, HEADINGS.index("W")
    agent.observe(FORWARD, 0.0, arena.observe(), False)
    assert "".join(act(agent, arena) for _ in range(9)).endswith("FFFFF")
    assert arena.beneath == "G"


def test_letters_below_the_map_are_not_part_of_it() -> None:
    arena = Arena("####\n#↑.#\n#..#\n    ", text=("GO GET IT", "G"))
    agent = BfsOracle(AgentContext(1, "ascii_2d"))
    agent.begin_trial(arena.observe())
    cells = {(act(agent, arena), arena.x, arena.y)[1:] for _ in range(40)}
    assert cells == {(1, 1), (2, 1), (1, 2), (2, 2)}


ROOM = "#########\n#.......#\n###.↑.###\n#.......#\n#########"


def films(seed: int, trials: int = 3) -> list[str]:
    agent = BfsOracle(AgentContext(seed, "ascii_2d"))
    result = []
    for _ in range(trials):
        arena = Arena(ROOM)
        agent.begin_trial(arena.observe())
        result.append("".join(act(agent, arena) for _ in range(50)))
    return result


def test_same_seed_same_actions_and_seeds_differ() -> None:
    assert films(7) == films(7)
    assert len({tuple(films(seed)) for seed in range(8)}) > 1


def test_nothing_is_carried_from_trial_to_trial() -> None:
    # "memory none" is declared: a solid that one trial found is tried again in the
    # next.
    arena = Arena("#####\n#→X.#\n#..G#\n#####", solids="X")
    agent = BfsOracle(AgentContext(1, "ascii_2d"))
    firsts = []
    for _ in range(3):
        arena.x, arena.y, arena.heading = 1, 1, HEADINGS.index("E")
        agent.begin_trial(arena.observe())
        actions = ""
        while arena.beneath != "G":
            actions += act(agent, arena)
        firsts.append(sorted(actions))
    assert firsts[0] == firsts[1] == firsts[2]


TEXT = st.text(alphabet=st.sampled_from("↑↗→↘↓↙←↖#. ~GX\n\r1é"), max_size=60) | st.text(
    max_size=40
)


@pytest.mark.parametrize(
    "spec", PluginManager().agents.values(), ids=lambda spec: spec.name
)
@given(
    seed=st.integers(0, 2**63 - 1),
    life=st.lists(
        st.lists(
            st.tuples(st.integers(0, 3), TEXT, st.booleans()), min_size=1, max_size=12
        ),
        max_size=4,
    ),
)
@example(seed=0, life=[[(0, "1←", False), (0, "111←", True), (0, "", False)]])
def test_no_text_makes_an_agent_raise(
    spec: AgentSpec, seed: int, life: list[list[tuple[int, str, bool]]]
) -> None:
    agents = [spec.create(AgentContext(seed, "ascii_2d")) for _ in range(2)]
    for trial in life:
        for agent in agents:
            agent.begin_trial(trial[0][1])
        for executed, observation, ended in trial:
            first, second = (agent.act(observation) for agent in agents)
            assert first == second
            assert len(first) == 1
            assert first[0] in range(4)
            # The executed action may differ from the chosen one, because the runner
            # waits with STAY.
            following = observation[::-1] if executed == 3 else observation
            for agent in agents:
                agent.observe(executed, 1.0 if ended else -0.1, following, ended)
