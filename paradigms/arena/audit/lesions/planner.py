"""The adversary's decisions: plans of single hypotheses and macros, rolled out exactly within the belief.

Whoever follows the plan of a hypothesis does what is right if that is true, and learns from what does not happen. Where
the belief parts, the likeliest hypothesis of each part is followed on. The first thing to do is the one whose roll-out
succeeds most often; what is learnt for later trials counts, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cheesebench.interfaces import FORWARD, ROTATE_LEFT, ROTATE_RIGHT, STAY
from cheesebench.paradigms.arena.audit.lesions.beliefs import World, sampled, signature
from cheesebench.paradigms.arena.audit.lesions.nodes import Cloud, Node
from cheesebench.paradigms.arena.audit.lesions.plans import Plan, Plans
from cheesebench.paradigms.arena.audit.lesions.sensing import mistaken, tell_apart

#: Kinds of hypotheses whose plans are tried to begin with, and of which the nearest is followed.
LEADERS, NEAREST = 10, 5
#: Hypotheses by which a belief is represented in each round of a decision, and candidates that are left after it.
ROUNDS = ((16, 14), (50, 5), (200, 1))
#: By how much something must be better than following the likeliest.
BETTER = 0.005
#: Steps of hypotheses that the decisions of one trial, and of one life, may take for an effort of 1.
TRIAL, LIFE = 1_600_000, 20_000_000
#: Parts of a belief that are less likely than this are not followed on: whoever is followed there counts.
NEGLIGIBLE = 0.004
#: Parts for which it is asked in what manner the likeliest is best followed.
LIKELY = 0.25
#: What is learnt for later trials, in successes: being certain of all that lasts, against not knowing.
LASTING, FULL_AFTER = 0.3, 5
#: Macros: turns, then steps forward; waiting.
STRIDES, WAITS = (1, 2, 4, 8, 16), (1, 4, 16)
#: Hypotheses that would fail by the plan of the likeliest, from which this is told by the shortest way.
RIVALS = 3
#: Questions in vain after which two kinds are taken to look alike in a state.
IN_VAIN = 3
#: A value that is as good as certain.
CERTAIN = 0.999


@dataclass(slots=True)
class Worth:
    """Value of a continuation, as weights: success, and knowledge about what lasts."""

    success: float = 0.0
    learnt: float = 0.0

    def add(self, other: Worth) -> None:
        """Add the value of another part of the belief."""
        self.success += other.success
        self.learnt += other.learnt


class Manner(NamedTuple):
    """How whoever is followed is chosen: what it counts that a kind is likely, and that its plan is short."""

    weight: int
    length: int


MANNERS = (Manner(1, 1), Manner(0, 1), Manner(1, 0))


class Course(NamedTuple):
    """Actions to begin with (none: following the likeliest at once), then the manner of following.

    They are taken for as long as ``leader`` stays possible; None: as long as most of the belief perceives the same.
    """

    actions: tuple[int, ...] = ()
    manner: Manner = MANNERS[0]
    leader: Node | None = None


BASE = Course()


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions to take one after the other for as long as ``leader`` (None: whatever) stays possible."""

    actions: tuple[int, ...]
    leader: Node | None


class Planner:
    """Decides for one subject with one lesion; equal beliefs get equal decisions."""

    def __init__(self, world: World, effort: float = 1.0) -> None:
        self.world, self.effort = world, effort
        self.plans, self._nodes = Plans(world.program), world.nodes
        self._known: dict[Hashable, Course] = {}
        turns = world.program.geometry.turns
        self._macros = [turn + stride for turn in _turns(turns) for stride in [(FORWARD,) * n for n in (0, *STRIDES)]]
        self._macros = [macro for macro in self._macros if macro] + [(STAY,) * n for n in WAITS]

        #: How often it was found that two kinds cannot be told apart in a state.
        self._in_vain: dict[Hashable, int] = {}
        #: Steps that may still be taken in this trial, and in this life.
        self._left, self._all = 0.0, 0.0

    def begin_life(self) -> None:
        """Reset the budget for another life: none is led worse because others took much thought."""
        self._all = LIFE * self.effort

    def begin_trial(self) -> None:
        """Reset the budget for another trial."""
        self._left = TRIAL * self.effort

    # -- following the likeliest

    def base(self, cloud: Cloud, steps: int, manner: Manner = MANNERS[0]) -> Decision:
        """Return what is done without looking ahead."""
        leader, plan = self.leader(cloud, steps, manner)
        return Decision(plan.actions, leader)

    def leader(self, cloud: Cloud, steps: int, manner: Manner) -> tuple[Node, Plan]:
        """Return the node to follow, and its plan: of a likely kind, near success."""
        if len(cloud) == 1:
            node = next(iter(cloud))
            return node, self._plan(node, steps)
        return _nearest([(w, node, self._plan(node, steps)) for w, node in _kinds(cloud)[:NEAREST]], manner)

    def _plan(self, node: Node, steps: int) -> Plan:
        if node.plans is None:
            node.plans = {}
        plan = node.plans.get(steps)
        if plan is None:
            plan = node.plans[steps] = self.plans.of(self._nodes.life(node, steps))
        return plan

    # -- looking ahead

    def decide(self, cloud: Cloud, steps: int, trials_left: int, *, is_settled: bool = False) -> Decision:
        """Return what to do now; ``is_settled``: what was decided is done, and nothing was learnt by it.

        It was decided in view of what would be followed then, so only in what manner that is followed is asked.
        """
        if len(cloud) == 1 or all(node.waiting for node in cloud):
            return self.base(cloud, steps)
        key: tuple[Hashable, ...] = signature(cloud), steps, min(trials_left, FULL_AFTER)
        if is_settled and key not in self._known:
            key = *key, "settled"
        if key not in self._known:
            self._known[key] = self._best(cloud, steps, trials_left, is_settled=is_settled)
        course = self._known[key]
        return Decision(course.actions, course.leader) if course.actions else self.base(cloud, steps, course.manner)

    def _best(self, cloud: Cloud, steps: int, trials_left: int, *, is_settled: bool) -> Course:
        """Return what to do: candidates are tried on ever larger samples of the belief, and ever fewer of them."""
        learning = LASTING * min(1.0, trials_left / FULL_AFTER)
        begun, allowed = self.world.spent, min(self._left / 3, self._all)
        ranked: list[tuple[float, Course]] = [(0.0, course) for course in self._candidates(cloud, steps, is_settled)]
        size = 0
        for number, (most, kept) in enumerate(ROUNDS, 1):
            if len(cloud) <= size:
                break  # all of it was looked at
            sample, size = sampled(cloud, most), most
            courses = dict.fromkeys([BASE, *(course for _, course in ranked)])
            ranked = []
            for course in courses:
                ranked.append((self._worth(sample, steps, course, learning), course))
                is_certain = ranked[-1][0] >= CERTAIN * (1 + learning)
                if is_certain or self.world.spent - begun > allowed * number / len(ROUNDS):
                    break
            base = ranked[0][0]
            ranked.sort(key=lambda entry: (-entry[0], len(entry[1].actions)))
            ranked = ranked[:kept]
        self._left -= self.world.spent - begun
        self._all -= self.world.spent - begun
        # Switching costs time: an alternative must be better by more than sampling error.
        return ranked[0][1] if ranked[0][0] > base + BETTER else BASE

    def _worth(self, cloud: Cloud, steps: int, course: Course, learning: float) -> float:
        """Return the value of a course of action."""
        whole = sum(cloud.values())
        worth = self.play(cloud, steps, course, whole)
        return round((worth.success + learning * worth.learnt) / whole, 9)

    def _candidates(self, cloud: Cloud, steps: int, is_settled: bool) -> Iterator[Course]:
        given: set[tuple[int, ...]] = {()}
        yield from (Course(manner=manner) for manner in MANNERS)  # the first is BASE
        if is_settled:
            return
        for _, node in _kinds(cloud)[:LEADERS]:
            plan = self._plan(node, steps)
            if plan.actions not in given:
                given.add(plan.actions)
                yield Course(plan.actions)
        yield from self._doubts(cloud, steps)
        yield from map(Course, self._macros)

    def _doubts(self, cloud: Cloud, steps: int) -> Iterator[Course]:
        """Yield what tells whoever would be followed from those who would fail by that."""
        leader, plan = self.leader(cloud, steps, MANNERS[0])
        if not plan.success or self.world.relevance.trace:  # with all of the way in mind, no two nodes are met again
            return
        sample = sampled(cloud, ROUNDS[0][0])
        for rival in mistaken(self._nodes, sample, leader, plan.actions, steps, self._is_alive)[:RIVALS]:
            pair = leader.state, leader.kind, rival.kind
            if self._in_vain.get(pair, 0) == IN_VAIN:
                continue
            actions, spent = tell_apart(self._nodes, (leader, rival), steps, self._is_alive)
            self.world.spent += spent
            if actions:
                yield Course(actions, leader=leader)
            else:
                self._in_vain[pair] = self._in_vain.get(pair, 0) + 1

    def _is_alive(self, node: Node, steps: int) -> bool:
        return self._plan(node, steps).success

    def _step(self, cloud: Cloud, action: int, steps: int) -> dict[int, Cloud]:
        self.world.spent += len(cloud)
        parts = self._nodes.step(cloud, action, steps)
        self._nodes.release(cloud)
        return parts

    def play(self, cloud: Cloud, steps: int, course: Course, whole: float) -> Worth:
        """Return the value of a course of action, where each part of the belief then follows its likeliest."""
        actions, manner, leader = course
        if not actions:
            return self.follow(cloud, steps, whole, manner)
        worth, pending = Worth(), [(cloud, 0, leader)]
        while pending:
            part, done, leader = pending.pop()
            if done == len(actions):
                worth.add(self._follow_best(part, steps + done, whole))
                continue
            half, expected = sum(part.values()) / 2, None
            if leader is not None:
                _, expected, leader = self._nodes.leads(leader, actions[done], steps + done)[0]
            parts = self._step(part, actions[done], steps + done)
            for percept, there in parts.items():
                if percept < 0:
                    worth.add(ended(there))
                # Whoever perceives something that the leader, or most, do not decides anew; the others go on.
                elif percept == expected if leader is not None else sum(there.values()) > half:
                    pending.append((there, done + 1, leader))
                elif next(iter(there)).waiting:
                    pending.append((there, done + 1, None))
                else:
                    worth.add(self._follow_best(there, steps + done + 1, whole))
        return worth

    def _follow_best(self, cloud: Cloud, steps: int, whole: float) -> Worth:
        """Return the value of following in the best manner, where it is likely enough to be worth the choice."""
        if len(cloud) == 1 or sum(cloud.values()) < LIKELY * whole:
            return self.follow(cloud, steps, whole, MANNERS[0])
        values = [self.follow(cloud, steps, whole, manner) for manner in MANNERS]
        return max(values, key=lambda worth: (worth.success, worth.learnt))

    def follow(self, cloud: Cloud, steps: int, whole: float, manner: Manner) -> Worth:
        """Return the value of following the likeliest hypothesis."""
        worth, pending, nodes = Worth(), [(cloud, steps)], self._nodes
        while pending:
            part, now = pending.pop()
            if sum(part.values()) < NEGLIGIBLE * whole:
                likeliest = max(part, key=part.__getitem__)
                part = {likeliest: part[likeliest]}
            followed, plan = self.leader(part, now, manner)
            if not plan.success:
                worth.learnt += certainty(part)  # no hypothesis in it is known to succeed
                continue
            if len(part) == 1:
                weight = part[followed]
                worth.add(Worth(weight, weight))
                continue
            for action in plan.actions:
                _, percept, followed = nodes.leads(followed, action, now)[0]
                parts = self._step(part, action, now)
                now += 1
                part = {} if percept < 0 else parts.pop(percept)
                for key, there in parts.items():
                    if key < 0:
                        worth.add(ended(there))
                    else:
                        pending.append((there, now))
                if len(part) <= 1:
                    weight = sum(part.values())
                    worth.add(Worth(weight, weight))
                    break
            else:
                worth.learnt += certainty(part)  # a random event contradicted the plan
        return worth


def ended(cloud: Cloud) -> Worth:
    """Return the value of a cloud whose trials have ended."""
    return Worth(sum(weight for node, weight in cloud.items() if node.success), certainty(cloud))


def certainty(cloud: Cloud) -> float:
    """Return how often the likeliest guess at what lasts is right, as a weight."""
    kinds: dict[int, float] = {}
    for node, weight in cloud.items():
        kinds[node.lasting] = kinds.get(node.lasting, 0.0) + weight
    return max(kinds.values(), default=0.0)


def _nearest(choices: Sequence[tuple[float, Node, Plan]], manner: Manner) -> tuple[Node, Plan]:
    """Return which is followed: one with a plan that succeeds, then by weight and length as in the manner."""
    best: tuple[tuple[bool, float], Node, Plan] | None = None
    for weight, node, plan in choices:
        score = (plan.success, weight**manner.weight / (len(plan.actions) + 10) ** manner.length)
        if best is None or score > best[0]:
            best = score, node, plan
    assert best is not None
    return best[1], best[2]


def _kinds(cloud: Cloud) -> list[tuple[float, Node]]:
    """Return each kind's (of equal draws) weight and likeliest node, the likeliest kind first.

    Of kinds that are as likely but for rounding, that comes first which was met first.
    """
    likeliest: dict[int, Node] = {}
    weights: dict[int, float] = {}
    whole = 0.0
    for node, weight in cloud.items():
        kind = node.kind
        weights[kind] = weights.get(kind, 0.0) + weight
        whole += weight
        if kind not in likeliest or weight > cloud[likeliest[kind]]:
            likeliest[kind] = node
    return sorted(
        ((weight, likeliest[kind]) for kind, weight in weights.items()),
        key=lambda entry: -round(entry[0] / whole, 9),
    )


def _turns(turns: int) -> list[tuple[int, ...]]:
    half = turns // 2
    return [(ROTATE_RIGHT,) * n if n <= half else (ROTATE_LEFT,) * (turns - n) for n in range(turns)]
