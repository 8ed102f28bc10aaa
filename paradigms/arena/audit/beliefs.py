"""Beliefs: weighted hypotheses about a life. All of them take each step in parallel,
and the percepts split them into groups.

Within a trial, a hypothesis is a node (all that the rest of the trial, and what it
passes on to later trials, depend on) and a history (draws and schedule, which the trial
does not change). Between trials, it is a number that stands for all that later trials
depend on.
"""

from __future__ import annotations

import gc
import itertools
import math
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from cheesebench.interfaces import RUNNING, STAY, Scene, View
from cheesebench.lesions import MOST_SCENES, Lesion
from cheesebench.paradigms.arena.audit import search
from cheesebench.paradigms.arena.audit.hypotheses import History, Hypothesis, Script
from cheesebench.paradigms.arena.audit.relevance import Relevance
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.program import NEVER, Program
from cheesebench.paradigms.arena.schedule import Schedule
from cheesebench.protocol import Specification
from cheesebench.protocol.expressions import RuntimeValue

#: Limits in steps. ``EFFORT``: the search for moves that lead to success. ``POLISH``:
#: the search for a shorter success after the first one.
EFFORT, POLISH = 3000, 600


# -- plans for a known hypothesis: actions to success, by moves along distance tables


#: Effort, in steps of nodes within beliefs. ``PER_STEP``: effort of a step of a life.
#: ``PER_EXPANSION``: effort of expanding a node. ``KEEPING_ON``: repeating single
#: actions takes this many steps of a life for each step that is left in the trial.
PER_STEP, PER_EXPANSION, KEEPING_ON = 4, 8, 5
#: Maximum number of failed searches in a stage (see ``Hypothesis.stage``) without a
#: known success. In other stages, single actions are no longer repeated through the
#: trial after this many.
IN_VAIN = 4
#: Maximum numbers. ``LISTS``: lists of moves that are kept for some circumstances once
#: one of them has succeeded, or failed lists that are tried again in a stage.
#: ``GENERAL``: lists of moves from the same state that are tried in new circumstances.
#: ``MOST_PLANS``: stored plans.
LISTS, GENERAL, MOST_PLANS = 3, 12, 200_000


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions to the end of the trial, and whether they succeed."""

    actions: tuple[int, ...]
    success: bool


class Solver(search.Search):
    """The audit's search, in which each hypothesis itself knows whether its trial is a
    success.

    If a measure stands for the success, the mean of the measure counts, too. So of
    trials that end alike, the one with the better value is worth more: a subject that
    can no longer pass makes the best of the trial.
    """

    def __init__(self, program: Program, specification: Specification) -> None:
        super().__init__(program, specification)
        about = specification.judged
        self._about = about if specification.document.success is None else None
        self._measure = None if about is None else program.measures.get(about.measure)
        #: Whether a measure stands for the success.
        self.is_measured = self._about is not None
        self._groups = [
            tuple(group)
            for group in program.geometry.arena.groups.values()
            if len(group) > 2
        ]

    def look(self, life: ArenaSubject, effort: int, polish: int) -> search.Found:
        found = self._descend(life, search.Found(), effort, polish)
        if found.shortest is None:
            spent = self.spent
            self._descend(life, found, effort, polish, is_wide=True)
            self.spent += spent
        return found

    def keep_on(self, life: ArenaSubject, found: search.Found) -> None:
        """Record the results of repeating one action, or one destination, through the
        trial. If no success is known then, record the successful tours through groups
        of more than two places.
        """
        self._keep_on(life, found)
        if found.shortest is None:
            self._go_round(life, found)

    def _go_round(self, life: ArenaSubject, found: search.Found) -> None:
        """Visit the members of each group of more than two in turn until the trial
        ends. Start at each member, in both directions. Record the tours that succeed.
        """
        for members in self._groups:
            for first, step in itertools.product(range(len(members)), (1, -1)):
                node, place = search.SearchNode(life.twin()), first
                while node.status == RUNNING:
                    if self.follow(node, ("go to", members[place % len(members)])):
                        place += step
                    else:
                        self.follow(node, search.WAIT)
                if self.judged(node.life):
                    found.add(node.ending(self.worth(node.life)), True)

    def judged(self, life: ArenaSubject) -> bool | None:
        return life.is_success()

    def worth(self, life: ArenaSubject) -> float:
        """Return the value of the measure in the direction that the verdict asks for,
        or minus infinity if the trial has none. It is 0 if no measure stands for the
        success.
        """
        if self._about is None or self._measure is None:
            return 0.0
        value = cast(float, self._measure(life))
        if not math.isfinite(value):
            return -math.inf
        distances = {"higher": -value, "lower": value}
        return -distances.get(self._about.better or "", abs(value - self._about.value))


class Plans:
    """Stored plans for hypotheses. The plan of one hypothesis is tried first for others
    in similar circumstances.
    """

    def __init__(self, program: Program, *, reads_clock: bool) -> None:
        self._solver = Solver(program, program.specification)
        self._places = {*program.geometry.arena.zones, *program.geometry.arena.solids}
        self._plans: dict[Hashable, Plan] = {}
        #: Plans whose success does not depend on the time. Each has the step at which
        #: it leaves its first state.
        self._timeless: dict[Hashable, list[tuple[Plan, int]]] = {}
        self._reads_clock = reads_clock
        #: Effort spent on searching, in steps of nodes within beliefs.
        self.work = 0
        #: Circumstances -> lists of moves that led to success, the latest first.
        self._moves: dict[Hashable, list[tuple[search.Move, ...]]] = {}
        #: State -> lists of moves for use in other circumstances. They name variables
        #: in place of values.
        self._general: dict[str, list[tuple[search.Move, ...]]] = {}
        #: Three tables by stage: the fewest steps to success, the moves that failed,
        #: and the number of failed searches.
        self._soonest: dict[Hashable, int] = {}
        self._failures: dict[Hashable, list[tuple[search.Move, ...]]] = {}
        self._searched_in_vain: dict[Hashable, int] = {}
        #: Circumstances -> the step from which no success is searched for, and the
        #: moves of the best failure.
        self._hopeless: dict[Hashable, tuple[int, tuple[search.Move, ...]]] = {}

    def of(self, life: Hypothesis) -> Plan:
        """Return the plan for a hypothesis. The hypothesis is left unchanged.

        A plan whose success depends on no clock is reused whenever enough steps are
        left for it, and it leaves the present state before a timer is due.
        """
        timeless = life.matters, life.pose
        for known, leaves in self._timeless.get(timeless, ()):
            if leaves < life.due and life.steps + len(known.actions) <= life.limit:
                return known
        key = *timeless, *life.clocks(0), life.steps
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
                self._timeless.clear()
            plan = self._plans[key] = self._find(life)
            if plan.success and not self._reads_clock:
                leaves = self._leaves(life, plan)
                if leaves < life.due:
                    self._timeless.setdefault(timeless, []).append((plan, leaves))
        return plan

    def _leaves(self, life: Hypothesis, plan: Plan) -> int:
        twin, state = life.twin(), life.state
        for number, action in enumerate(plan.actions, 1):
            twin.step(action)
            self.work += PER_STEP
            if twin.state != state or twin.entered == twin.steps:
                return number
        return len(plan.actions)

    def _find(self, life: Hypothesis) -> Plan:
        circumstances = life.matters
        if circumstances not in self._moves:
            general = self._general.get(life.state, ())
            self._moves[circumstances] = list(
                dict.fromkeys(_instance(moves, life) for moves in general)
            )
        lists = self._moves[circumstances]
        best: Plan | None = None
        for number, moves in enumerate(lists):
            plan = self._follow(life, moves)
            if (
                plan is not None
                and plan.success
                and (best is None or len(plan.actions) < len(best.actions))
            ):
                best, chosen = plan, number
        if best is not None:
            lists.insert(0, lists.pop(chosen))
            del lists[LISTS:]
            return best
        hopeless = self._hopeless.get(circumstances)
        if hopeless is not None and life.steps >= hopeless[0]:
            return self._follow(life, hopeless[1]) or self._wait(life)
        if self._is_vain(life):
            return self._fail(life)
        found = self._search(life)
        if found.shortest is not None:
            lists.insert(0, found.shortest.moves)
            self._note_success(life, found.shortest)
            return Plan(found.shortest.actions, True)
        moves = found.best_failure.moves if found.best_failure else ()
        self._hopeless[circumstances] = (life.steps, moves)
        failures = self._failures.setdefault(life.stage, [])
        if (ways := _generalised(moves, life)) in failures:
            failures.remove(ways)
        failures.insert(0, ways)
        self._searched_in_vain[life.stage] = (
            self._searched_in_vain.get(life.stage, 0) + 1
        )
        return (
            Plan(found.best_failure.actions, False)
            if found.best_failure
            else self._wait(life)
        )

    def _note_success(self, life: Hypothesis, success: search.Ending) -> None:
        # A success that lasts until the limit, or is the value of a measure when the
        # trial ends, takes whatever time is left. So its steps do not say how late it
        # can still begin.
        if not (success.is_cut_off or self._solver.is_measured):
            soonest = self._soonest.get(life.stage, NEVER)
            self._soonest[life.stage] = min(soonest, success.steps)
        general = self._general.setdefault(life.state, [])
        if (moves := _generalised(success.moves, life)) not in general:
            general.insert(0, moves)
            del general[GENERAL:]

    def _search(self, life: Hypothesis) -> search.Found:
        found = self._solver.look(life, EFFORT, POLISH)
        self.work += PER_STEP * self._solver.spent
        is_vain = self._searched_in_vain.get(life.stage, 0) >= IN_VAIN
        if found.shortest is None and (not is_vain or found.best_failure is None):
            self._solver.keep_on(life, found)
            self.work += PER_STEP * KEEPING_ON * (life.limit - life.steps)
        return found

    def _is_vain(self, life: Hypothesis) -> bool:
        soonest = self._soonest.get(life.stage)
        if soonest is None:
            return self._searched_in_vain.get(life.stage, 0) >= IN_VAIN
        return life.steps + soonest > life.limit

    def _fail(self, life: Hypothesis) -> Plan:
        for moves in self._failures.get(life.stage, [])[:LISTS]:
            plan = self._follow(life, _instance(moves, life))
            if plan is not None:
                return plan
        return self._wait(life)

    def _follow(self, life: Hypothesis, moves: tuple[search.Move, ...]) -> Plan | None:
        node = search.SearchNode(life.twin())
        for move in moves:
            if (
                node.status != RUNNING
                or move[0].startswith("always")
                or (move != search.WAIT and move[1] not in self._places)
                or not self._solver.follow(node, move)
            ):
                break
        self.work += PER_STEP * len(node.actions)
        if node.status == RUNNING:
            return None
        return Plan(tuple(node.actions), bool(self._solver.judged(node.life)))

    def _wait(self, life: Hypothesis) -> Plan:
        twin, status, actions = life.twin(), RUNNING, 0
        while status == RUNNING:
            _, _, status = twin.step(STAY)
            actions += 1
        self.work += PER_STEP * actions
        return Plan((STAY,) * actions, twin.is_success())


def _generalised(
    moves: tuple[search.Move, ...], life: Hypothesis
) -> tuple[search.Move, ...]:
    """Return the moves with each place replaced by ``=`` and the name of the variable
    that holds it, if there is one.
    """
    names = {
        value: name
        for name, value in reversed(life.named.items())
        if isinstance(value, str)
    }
    return tuple(
        (kind, f"={names[place]}" if place in names else place) for kind, place in moves
    )


def _instance(
    moves: tuple[search.Move, ...], life: Hypothesis
) -> tuple[search.Move, ...]:
    named = life.named
    return tuple(
        (kind, str(named.get(place[1:])) if place.startswith("=") else place)
        for kind, place in moves
    )


#: Function that returns the number of a percept. The arguments are the observation, the
#: reward, whether the trial has ended and whether the subject waits.
Perceive = Callable[[str, float, bool, bool], int]


# -- nodes: equal hypotheses share a node, and each step from a node is computed once. A
# node stores no time, because all nodes of a belief are at the same step. The last step
# before the limit has transitions of its own.


class Node:
    """All hypotheses that agree in everything that affects the rest of the trial, and
    what the trial passes on. One of them is at ``pose``, ``ahead`` steps after
    ``origin``, and no event has happened since. Many nodes share one ``origin``,
    because a life takes much memory.
    """

    __slots__ = (
        "ahead", "bare", "circumstances", "kind", "lasting", "leads", "limit", "number", "origin", "plans", "pose",
        "success",
    )  # fmt: skip

    def __init__(
        self, number: int, origin: Hypothesis, limit: int, circumstances: int, kind: int
    ) -> None:
        #: Numbers depend only on the order in which the nodes were first reached.
        self.number = number
        self.origin, self.limit, self.circumstances = origin, limit, circumstances
        self.kind, self.pose, self.ahead = kind, origin.pose, 0
        #: ``lasting`` is a number for the lasting knowledge that the trial can give, or
        #: 0 if it can give none. ``bare`` is the same node without that knowledge.
        self.lasting, self.bare = 0, self
        #: Transitions of the four actions, then of the same four actions in the last
        #: step before the limit.
        self.leads: list[tuple[Lead, ...] | None] = [None] * 8
        #: Plans, by the number of steps taken in the trial.
        self.plans: dict[int, Plan] | None = None
        #: Score of a trial that has ended, from 0 to 1 (a success), or NaN (see
        #: ``Hypothesis.worth``).
        self.success = 0.0

    @property
    def waiting(self) -> bool:
        return self.origin.waiting

    @property
    def state(self) -> str:
        return self.origin.state


#: One outcome of a step: its chance, its percept (see ``Nodes.step``), and the node.
Lead = tuple[float, int, Node]
Cloud = dict[Node, float]
"""A belief within a trial: nodes and weights."""


class Nodes:
    def __init__(
        self, relevance: Relevance, script: Script, perceive: Perceive
    ) -> None:
        self._relevance, self._script, self._perceive = relevance, script, perceive
        self._nodes: dict[Hashable, Node] = {}
        self._circumstances: dict[Hashable, int] = {}
        self._telling: dict[tuple[int, int], Node] = {}
        self._count = 0
        #: Effort spent on computing transitions, in steps of nodes within beliefs.
        self.work = 0
        #: Number of lives that nodes store. They take most of the memory.
        self.lives = 0

    def succeeded(self, cloud: Cloud) -> float:
        """Return the total score of trials that have ended alike.

        If trials without a value have a neutral grade, the total is at least this grade
        for each trial. If only some of the trials have a value, all count as successes.
        """
        score = sum(weight * node.success for node, weight in cloud.items())
        if (neutral := self._relevance.neutral) is None:
            return score
        if math.isnan(score):
            is_valued = any(not math.isnan(node.success) for node in cloud)
            return (1.0 if is_valued else neutral) * sum(cloud.values())
        return max(score, neutral * sum(cloud.values()))

    def __len__(self) -> int:
        return len(self._nodes)

    def clear(self) -> None:
        """Forget all nodes. Nodes that are still in use will not be shared with later
        beliefs.
        """
        self._nodes.clear()
        self._telling.clear()
        self._circumstances.clear()
        self.lives = 0

    def leads(self, node: Node, action: int, steps: int) -> tuple[Lead, ...]:
        """Return the outcomes of an action. The first one takes the likeliest choices.
        An outcome that ends the trial has the percept ``-1 - percept``. Raise
        ``TooManyError`` if there are too many outcomes.

        ``steps`` is how many steps of the trial were taken before the action.
        """
        place = action if steps + 1 < node.limit else action + 4
        leads = node.leads[place]
        if leads is None and node.bare is not node:
            ways = self.leads(node.bare, action, steps)
            leads = tuple(
                [
                    (chance, percept, self.telling(there, node.lasting))
                    for chance, percept, there in ways
                ]
            )
            node.leads[place] = leads
        elif leads is None:
            leads = node.leads[place] = tuple(
                self._expanded(node, action, is_last=place >= 4)
            )
        return leads

    def telling(self, bare: Node, lasting: int) -> Node:
        """Return a copy of a node, with the lasting knowledge that has this number."""
        key = bare.number, lasting
        node = self._telling.get(key)
        if node is None:
            self._count += 1
            node = self._telling[key] = Node(
                self._count, bare.origin, bare.limit, bare.circumstances, bare.kind
            )
            node.pose, node.ahead, node.success = bare.pose, bare.ahead, bare.success
            node.lasting, node.bare = lasting, bare
        return node

    def step(self, cloud: Cloud, action: int, steps: int) -> dict[int, Cloud]:
        """Return the clouds after an action, by percept. Clouds of ended trials are at
        ``-1 - percept``.

        ``steps`` is how many steps of the trial were taken before the action.
        """
        parts: dict[int, Cloud] = {}
        for node, weight in cloud.items():
            place = action if steps + 1 < node.limit else action + 4
            for chance, percept, there in node.leads[place] or self.leads(
                node, action, steps
            ):
                part = parts.get(percept)
                if part is None:
                    parts[percept] = {there: weight * chance}
                else:
                    part[there] = part.get(there, 0.0) + weight * chance
        return parts

    def release(self, cloud: Cloud) -> None:
        """Forget the transitions of a cloud's nodes if no other cloud will share these
        nodes.
        """
        if self._relevance.trace:
            self._telling.clear()
            for node in cloud:
                node.leads = node.bare.leads = [None] * 8

    def life(self, node: Node, steps: int) -> Hypothesis:
        """Return a life of this node, ``steps`` steps into the trial."""
        return node.origin.further(node.pose, node.ahead).at(steps, node.limit)

    def _expanded(self, node: Node, action: int, *, is_last: bool) -> Iterable[Lead]:
        origin, ahead = node.origin, node.ahead
        self.work += PER_EXPANSION
        if (
            not is_last
            and not self._relevance.trace
            and (pose := origin.quietly(node.pose, ahead, action)) is not None
        ):
            observation, reward, waiting = origin.seen_from(pose)
            yield (
                1.0,
                self._perceive(observation, reward, False, waiting),
                self.moved(node, pose, ahead + 1),
            )
            return
        life = origin.further(node.pose, ahead)
        if is_last:
            life.shorten(life.steps + 1)

        def step() -> tuple[Hypothesis, tuple[str, float, int]]:
            twin = life.twin()
            return twin, twin.step(action)

        ways = (
            all_of(self._script, step)
            if life.can_branch(action)
            else [(1.0, (life, life.step(action)))]
        )
        for chance, (twin, (observation, reward, status)) in ways:
            percept = self._perceive(
                observation, reward, status != RUNNING, twin.waiting
            )
            if status == RUNNING:
                yield chance, percept, self.node(twin, node.limit)
            else:
                there = self._ended(twin, node.limit)
                yield chance, -1 - percept, there

    def moved(self, node: Node, pose: int, ahead: int) -> Node:
        """Return the node at another pose, ``ahead`` steps after its origin, with no
        event since. Nodes that differ only in ``lasting`` become one.
        """
        origin = node.origin
        key = node.circumstances, pose, *origin.clocks(ahead)
        there = self._nodes.get(key)
        if there is None:
            there = self._nodes[key] = self._new(origin, node.limit, node.circumstances)
            there.pose, there.ahead = pose, ahead
        return there

    def node(self, life: Hypothesis, limit: int) -> Node:
        """Return the node of a life whose trial has this limit. The node may keep the
        life.
        """
        if self._relevance.trace:
            return self._new(life, limit, 0)
        around = life.matters, limit
        # Numbers are never reused, because bounds store them.
        circumstances = self._circumstances.setdefault(around, self._count + 1)
        key = circumstances, life.pose, *life.clocks(0)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._new(life, limit, circumstances)
            self.lives += 1
        return node

    def _ended(self, life: Hypothesis, limit: int) -> Node:
        """Return the node of an ended trial. It holds the result and all that later
        trials may depend on.
        """
        success = life.worth
        recent = (life.outcome, life.noted) if self._relevance.behaviour else None
        key = "ended", success, recent, life.kept(), life.whereabouts
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._new(life, limit, 0)
            node.success = success
            self.lives += 1
        return node

    def _new(self, life: Hypothesis, limit: int, circumstances: int) -> Node:
        self._count += 1
        return Node(self._count, life, limit, circumstances, life.kind)


# -- beliefs


K = TypeVar("K")
T = TypeVar("T")
#: Maximum number of hypotheses in a belief. The least likely ones beyond it are
#: dropped.
MOST = 20_000
#: Maximum numbers of nodes, of lives in nodes and of beginnings of trials in memory.
#: When one of them is exceeded, all nodes, lives and beginnings are forgotten.
MOST_NODES, MOST_LIVES, MOST_BEGINNINGS = 450_000, 120_000, 400_000
#: Maximum number of ways that chance may have in a trial. Each of them is a hypothesis,
#: so more of them would take hours, and nothing could be proved.
MOST_WAYS = 100_000


class TooManyError(Exception):
    """The search met more beliefs than its effort allows, too many ways that chance has
    in a trial, or a protocol to which the bound does not apply.
    """


Grain = tuple[Node, int]
"""A node, and the number of a distribution of pasts."""
Belief = dict[Grain, float]
"""A belief within a trial; weights need not add up to 1."""
Past = tuple[int, tuple[RuntimeValue, ...]]
"""The part of a life that a trial does not change: the number of a history, and the
values that outlast the trial.
"""
Ways = tuple[tuple[int, Node, float], ...]
"""Possible beginnings of a trial: percept, node and chance."""
Rest = dict[int, float]
"""A belief between trials: weights by the numbers of hypotheses."""
Parts = dict[int, Belief]
"""Beliefs by percept number. Beliefs about ended trials are at ``-1 - number``."""


class Everything:
    """A view that shows all that any view can show: the whole scene, and the pose.

    Its texts are short keys, made only to be compared.
    """

    characters = "0123456789 "

    def __init__(self, name: str) -> None:
        self.name = f"everything {name}"
        self._numbers: dict[Scene, int] = {}
        self._kept: dict[int, tuple[Scene, int]] = {}

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        kept = self._kept.get(id(scene))
        if kept is None:
            if len(self._kept) >= MOST_SCENES:
                self._kept.clear()
            kept = self._kept[id(scene)] = (
                scene,
                self._numbers.setdefault(scene, len(self._numbers)),
            )
        return f"{kept[1]} {column} {row} {heading}"

    def max_length(self, scene: Scene) -> int:
        return 40


class World:
    """One protocol as a subject with a lesion experiences it: the possible hypotheses,
    and the percepts that tell them apart.
    """

    def __init__(
        self,
        paradigm: ArenaParadigm,
        lesion: Lesion,
        subject: int = 0,
        *,
        faces_alike: bool = False,
    ) -> None:
        self.paradigm, self.lesion, self._subject = paradigm, lesion, subject
        self.program = paradigm.program
        self._feels_nothing = lesion.feels_no_reward
        self.view: View = paradigm.lesioned(Everything(str(lesion)), lesion)
        self.script = Script()
        self.script.faces_alike = faces_alike
        self.relevance = Relevance(self.program, lesion, self.view)
        self.nodes = Nodes(self.relevance, self.script, self.percept)
        self.plans = Plans(self.program, reads_clock=self.relevance.clock)
        #: Effort of the planner, in steps of nodes within beliefs.
        self.work = 0
        #: Whether unlikely hypotheses were ever dropped, and whether a trial has begun
        #: without them.
        self.has_dropped = self.is_partial = False
        self._percepts: dict[Hashable, int] = {}
        self.histories: list[History] = []
        self._history_numbers: dict[Hashable, int] = {}
        #: The hypotheses between trials: their numbers, a life for each, and the
        #: possible beginnings of its next trial.
        self._resting: dict[Hashable, int] = {}
        self._lives: list[Hypothesis] = []
        self._begun: dict[int, list[tuple[float, Past, int]]] = {}
        self._alike: dict[
            Hashable, list[tuple[float, int, Node, History, tuple[RuntimeValue, ...]]]
        ] = {}
        #: Possible beginnings of trials. Pasts with the same beginnings cannot be told
        #: apart within the trial.
        self._ways: list[Ways] = []
        self._way_numbers: dict[Hashable, int] = {}
        #: Distributions of pasts.
        self._pasts: list[tuple[tuple[Past, float], ...]] = []
        self._past_numbers: dict[Hashable, int] = {}
        self._room = MOST_BEGINNINGS

    @property
    def spent(self) -> int:
        """All effort so far, in steps of nodes within beliefs."""
        return self.work + self.nodes.work + self.plans.work

    def prior(self) -> Rest:
        """Return the belief before the first trial."""
        whole = self.program, self.view, self.script, self.relevance, self._subject
        return {self._rest("prior", lambda: Hypothesis(*whole)): 1.0}

    def percept(
        self, observation: str, reward: float, ended: bool, waiting: bool
    ) -> int:
        """Return the number of a percept. Percepts with different numbers tell
        hypotheses apart.
        """
        percept = (
            observation,
            0.0 if self._feels_nothing else reward,
            ended,
            waiting and not ended,
        )
        return self._percepts.setdefault(percept, len(self._percepts))

    def ways(self) -> tuple[int, ...]:
        """Return the number of alternatives of each choice that chance makes in the
        first trial: of draws, and of the place and heading at its beginning. Choices
        with one alternative are left out.
        """
        life = Hypothesis(
            self.program, self.view, self.script, self.relevance, self._subject
        )
        next(self.script.all_of(life.begin_trial))
        ways = _alternatives(self.script) + life.drawn_later()
        return tuple([number for number in ways if number > 1])

    def limit_ways(self) -> None:
        """Raise ``TooManyError`` if chance has too many ways in a trial."""
        if math.prod(ways := self.ways()) > MOST_WAYS:
            raise TooManyError(too_many(ways))

    # -- trials

    def begin(self, rest: Rest) -> dict[int | None, Belief]:
        """Begin the next trial in each hypothesis. Return the beliefs by first percept.
        If the schedule is over in a hypothesis, None is also a key, with an empty
        belief. Raise ``TooManyError`` if chance has too many ways in the trial.
        """
        self.is_partial = self.has_dropped
        if (
            len(self.nodes) > MOST_NODES
            or self.nodes.lives > MOST_LIVES
            or self._room < 0
        ):
            self.nodes.clear()
            for kept in (self._begun, self._alike, self._ways, self._way_numbers):
                kept.clear()
            self._room = MOST_BEGINNINGS
            # Collect garbage here, because nodes refer to one another in circles and
            # the audit switches automatic collection off.
            gc.collect()
        parts: dict[int | None, Belief] = defaultdict(dict)
        alike: dict[int, dict[Past, float]] = defaultdict(dict)
        for number, weight in rest.items():
            begun = self._begun.get(number)
            if begun is None:
                begun = self._begun[number] = self._beginnings(number)
            if not begun:
                parts[None] = {}
            for chance, past, ways in begun:
                pasts = alike[ways]
                pasts[past] = pasts.get(past, 0.0) + weight * chance
        for ways, pasts in alike.items():
            whole = sum(pasts.values())
            before = self._past(pasts, whole)
            self.work += len(self._ways[ways])
            for percept, node, chance in self._ways[ways]:
                grain = (
                    node if len(alike) == 1 else self.nodes.telling(node, ways + 1),
                    before,
                )
                part = parts[percept]
                part[grain] = part.get(grain, 0.0) + whole * chance
        return {percept: self.likeliest(part) for percept, part in parts.items()}

    def likeliest(self, belief: Belief) -> Belief:
        """Return the belief. If it is too large, leave out its least likely
        hypotheses.
        """
        if len(belief) <= MOST:
            return belief
        self.has_dropped = True
        return dict(sorted(belief.items(), key=lambda entry: -entry[1])[:MOST])

    def _past(self, pasts: dict[Past, float], whole: float) -> int:
        key = tuple(
            [(past, round(weight / whole, 12)) for past, weight in pasts.items()]
        )
        number = self._past_numbers.setdefault(key, len(self._pasts))
        if number == len(self._pasts):
            self._pasts.append(key)
        return number

    def _beginnings(self, number: int) -> list[tuple[float, Past, int]]:
        """Return the possible pasts of the next trial, or an empty list if the schedule
        is over. Each past has its probability, and the index of its beginnings in
        ``_ways``.
        """
        life = self._lives[number]
        plan, key = life.beginning()
        if key is None:
            return []
        if key not in self._alike:
            self._alike[key] = self._begin(life)
        found: dict[Past, dict[tuple[int, Node], float]] = defaultdict(
            lambda: defaultdict(float)
        )
        for chance, percept, node, history, held in self._alike[key]:
            past = (
                self._history(
                    History(plan, history.sequences, (plan.key(), history.key[1]))
                ),
                held,
            )
            found[past][percept, node] += chance
        begun = []
        for past, ways in found.items():
            whole = sum(ways.values())
            shares = {one: chance / whole for one, chance in ways.items()}
            alike = frozenset(
                [
                    (percept, node.number, round(p, 12))
                    for (percept, node), p in shares.items()
                ]
            )
            kind = self._way_numbers.setdefault(alike, len(self._ways))
            if kind == len(self._ways):
                self._ways.append(
                    tuple([(percept, node, p) for (percept, node), p in shares.items()])
                )
                self._room -= len(shares)
            begun.append((whole, past, kind))
        return begun

    def _begin(
        self, life: Hypothesis
    ) -> list[tuple[float, int, Node, History, tuple[RuntimeValue, ...]]]:
        def begin() -> tuple[Hypothesis, str | None]:
            twin = life.twin()
            return twin, twin.begin_trial()

        found: dict[
            Hashable, tuple[float, int, Node, History, tuple[RuntimeValue, ...]]
        ] = {}
        for chance, (twin, observation) in all_of(self.script, begin):
            assert observation is not None
            percept = self.percept(observation, 0.0, False, twin.waiting)
            history, limit, held = twin.history, twin.limit, twin.held()
            node = self.nodes.node(twin.unhurried(), limit)
            self.nodes.work += PER_EXPANSION
            key = percept, node.number, history.key[1], held
            before = found[key][0] if key in found else 0.0
            found[key] = before + chance, percept, node, history, held
        return list(found.values())

    def step(self, belief: Belief, action: int, steps: int) -> Parts:
        """Return the beliefs after an action, by percept. ``steps`` is how many steps
        of the trial were taken before the action.
        """
        parts: Parts = {}
        self.work += len(belief)
        leads = self.nodes.leads
        for (node, history), weight in belief.items():
            for chance, percept, there in leads(node, action, steps):
                part = parts.get(percept)
                if part is None:
                    parts[percept] = {(there, history): weight * chance}
                else:
                    grain = there, history
                    part[grain] = part.get(grain, 0.0) + weight * chance
        return parts

    def rest(self, belief: Belief) -> Rest:
        """Return the belief between trials, given a belief about ended trials."""
        rest: Rest = defaultdict(float)
        for (node, before), weight in belief.items():
            life = node.origin
            kept, whereabouts = life.kept(), life.whereabouts
            for (number, held), share in self._pasts[before]:
                history = self.histories[number]
                recent = (
                    (life.outcome, life.noted)
                    if history.plan.counts_outcomes or self.relevance.last
                    else None
                )
                resting = self._resting.get(
                    key := (number, held, kept, whereabouts, recent)
                )
                if resting is None:
                    resting = self._rest(
                        key,
                        lambda one=life, own=history, out=held: one.resting(own, out),  # type: ignore[misc]
                    )
                rest[resting] += weight * share
        return normalised(rest)

    def plan_of(self, belief: Belief) -> Schedule:
        """Return the schedule as it is once this trial has begun."""
        _, before = next(iter(belief))
        return self.histories[self._pasts[before][0][0][0]].plan

    def _rest(self, key: Hashable, life: Callable[[], Hypothesis]) -> int:
        number = self._resting.setdefault(key, len(self._lives))
        if number == len(self._lives):
            self._lives.append(life())
        return number

    def _history(self, history: History) -> int:
        number = self._history_numbers.setdefault(history.key, len(self.histories))
        if number == len(self.histories):
            self.histories.append(history)
        return number


def all_of(script: Script, do: Callable[[], T]) -> Iterator[tuple[float, T]]:
    """Yield what ``Script.all_of`` yields. Raise ``TooManyError`` if the choices of the
    first run have too many combinations.
    """
    for number, found in enumerate(script.all_of(do)):
        if not number and math.prod(ways := _alternatives(script)) > MOST_WAYS:
            raise TooManyError(too_many(ways))
        yield found


def _alternatives(script: Script) -> tuple[int, ...]:
    numbers = [sum(p > 0 for p in chances) for _, chances in script.taken]
    return tuple([number for number in numbers if number > 1])


def too_many(ways: Sequence[int]) -> str:
    """Return why a trial is not searched in which chance has so many ways."""
    factors = f"{' x '.join(map(str, ways))} = " * (len(ways) > 1)
    return (
        f"chance has {factors}{math.prod(ways):,} ways in a trial (draws and headings), and more than"
        f" {MOST_WAYS:,} are not searched, so no effort can prove the limit: draw fewer rows (a rotation of six has 6, a"
        " `permute` 720), or write an edition with fewer places"
    )


def cloud_of(belief: Belief) -> Cloud:
    """Return the part of a belief that concerns this trial alone: nodes and their
    weights.
    """
    cloud: Cloud = {}
    for (node, _), weight in belief.items():
        cloud[node] = cloud.get(node, 0.0) + weight
    return cloud


def normalised(weights: dict[K, float]) -> dict[K, float]:
    whole = sum(weights.values())
    return {one: weight / whole for one, weight in weights.items()}


def sampled(cloud: Cloud, size: int) -> Cloud:
    """Return a sample of at most ``size`` hypotheses. The sample is systematic, so that
    equal beliefs have equal samples.
    """
    if len(cloud) <= size:
        return cloud
    stride, place, chosen, so_far = sum(cloud.values()) / size, 0.5, Cloud(), 0.0
    for node, weight in cloud.items():
        so_far += weight
        times = 0
        while so_far > place * stride and place < size:
            place += 1
            times += 1
        if times:
            chosen[node] = times * stride
    return chosen


def signature(cloud: Cloud) -> Hashable:
    """Return a key that is equal for clouds with equal nodes and shares."""
    whole = sum(cloud.values())
    return frozenset(
        [(node.number, round(weight / whole, 9)) for node, weight in cloud.items()]
    )


#: Limits of the search for distinguishing actions. ``PAIRS``: maximum number of pairs
#: of nodes. ``ASKED``: maximum number of circumstances of which it asks whether success
#: is still possible.
PAIRS, ASKED = 3000, 30

IsAlive = Callable[[Node, int], bool]
"""Function that returns whether success is still possible from a node after this many
steps.
"""


# -- the shortest actions that tell two hypotheses apart before it is too late. A
# subject that follows the plan of a wrong hypothesis often notices this only when it
# fails. This search tries all action sequences for a pair of hypotheses. So it finds,
# say, a wall that the subject must touch, although neither a plan nor a macro leads
# there.


def mistaken(
    nodes: Nodes,
    cloud: Cloud,
    leader: Node,
    actions: tuple[int, ...],
    steps: int,
    is_alive: IsAlive,
) -> list[Node]:
    """Return the hypotheses in which the leader's plan fails: success is impossible
    once a percept shows that the leader is wrong, or the trial has ended. The likeliest
    one is first.
    """
    percepts, there = [], leader
    for number, action in enumerate(actions):
        _, percept, there = nodes.leads(there, action, steps + number)[0]
        percepts.append(percept)
        if percept < 0:
            break
    found = []
    for node, weight in cloud.items():
        here = node
        for number, expected in enumerate(percepts):
            _, percept, here = nodes.leads(here, actions[number], steps + number)[0]
            if percept < 0 or percept != expected:
                if not (
                    here.success if percept < 0 else is_alive(here, steps + number + 1)
                ):
                    found.append((weight, node))
                break
    return [
        node
        for _, node in sorted(found, key=lambda entry: (-entry[0], entry[1].number))
    ]


def tell_apart(
    nodes: Nodes,
    pair: tuple[Node, Node],
    steps: int,
    is_alive: IsAlive,
    *,
    pairs: int = PAIRS,
    asked: int = ASKED,
) -> tuple[tuple[int, ...], int]:
    """Return actions that tell two hypotheses apart while both can still succeed, and
    the effort in steps.

    The sequence is empty if none is found within the limits. Random events are assumed
    to have their likeliest outcome.
    """
    pending: deque[tuple[Node, Node, tuple[int, ...]]] = deque([(*pair, ())])
    seen = {(pair[0].number, pair[1].number)}
    alive = {node.circumstances: True for node in pair}
    spent = 0

    def is_lost(node: Node, percept: int, taken: int) -> bool:
        if percept < 0:
            return not node.success
        if node.circumstances not in alive:
            alive[node.circumstances] = is_alive(node, steps + taken)
        return not alive[node.circumstances]

    while pending and len(seen) < pairs and len(alive) < asked:
        one, other, taken = pending.popleft()
        for action in range(4):
            spent += 2
            _, percept, here = nodes.leads(one, action, steps + len(taken))[0]
            _, opposite, there = nodes.leads(other, action, steps + len(taken))[0]
            if is_lost(here, percept, len(taken) + 1) or is_lost(
                there, opposite, len(taken) + 1
            ):
                continue
            if percept != opposite:
                return (*taken, action), spent
            key = here.number, there.number
            if percept >= 0 and key not in seen:
                seen.add(key)
                pending.append((here, there, (*taken, action)))
    return (), spent
