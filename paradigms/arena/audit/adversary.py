"""Adversaries: subjects with a lesion that know the protocol, and plan by what they
believe about the hidden draws.

An adversary decides by trying plans in simulation. A plan is made for one hypothesis.
If the hypothesis is true, all events that the plan predicts happen. If not, one of them
fails to happen, which is informative. When percepts split the belief, each part follows
its own likeliest hypothesis. The adversary carries out the plan that succeeds most
often, and decides anew when percepts contradict it. Knowledge that helps in later
trials counts, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from cheesebench.interfaces import FORWARD, ROTATE_LEFT, ROTATE_RIGHT, RUNNING, STAY
from cheesebench.lesions import INTACT, Lesion
from cheesebench.paradigms.arena.audit import beliefs, runs
from cheesebench.paradigms.arena.audit.search import Search
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

#: ``LEADERS``: number of kinds of hypotheses whose plans become candidates.
#: ``NEAREST``: number of likeliest kinds among which the one to follow is chosen.
LEADERS, NEAREST = 10, 5
#: For each round of a decision: how many sampled hypotheses represent the belief, and
#: how many candidates stay for the next round.
ROUNDS = ((16, 14), (50, 5), (200, 1))
#: A candidate must be worth this much more than following the likeliest hypothesis.
BETTER = 0.005
#: Limits for decisions, in steps of nodes within beliefs, at an effort of 1.
#: ``TRIAL``: all decisions of a trial. ``LIFE``: all decisions of a life.
TRIAL, LIFE = 1_600_000, 20_000_000
#: A part of the belief that is less likely than this is represented by its likeliest
#: hypothesis alone.
NEGLIGIBLE = 0.004
#: For a part of the belief that is at least this likely, the adversary decides again
#: how to follow it.
LIKELY = 0.25
#: ``LASTING``: value, in successes, of complete knowledge about all that lasts into
#: later trials. It is worth less if fewer than ``FULL_AFTER`` trials remain.
LASTING, FULL_AFTER = 0.3, 5
#: Macro actions. ``STRIDES``: numbers of forward steps after a turn. ``WAITS``: numbers
#: of steps to wait.
STRIDES, WAITS = (1, 2, 4, 8, 16), (1, 4, 16)
#: Maximum number of rivals: hypotheses in which the likeliest hypothesis's plan would
#: fail. For each rival, the shortest action sequence to an observation that
#: distinguishes the two is a candidate.
RIVALS = 3
#: Maximum number of failed attempts to distinguish two kinds in a state.
IN_VAIN = 3
#: A course counts as certain to succeed if its value is at least this share of the
#: largest possible value.
CERTAIN = 0.999


@dataclass(slots=True)
class Worth:
    """The value of a continuation: the weight of the hypotheses in which it succeeds,
    and of the hypotheses in which the likeliest guess at the lasting values is right
    after it (see ``certainty``).
    """

    success: float = 0.0
    learnt: float = 0.0

    def add(self, other: Worth) -> None:
        self.success += other.success
        self.learnt += other.learnt


class Manner(NamedTuple):
    """How the hypothesis to follow is chosen: the exponents of its weight and of the
    inverse length of its plan.
    """

    weight: int
    length: int


MANNERS = (Manner(1, 1), Manner(0, 1), Manner(1, 0))


class Course(NamedTuple):
    """A candidate: its first actions, and its manner of following a hypothesis after
    them. The actions are taken as long as ``leader`` stays possible. If ``leader`` is
    None, they are taken as long as each percept is the one that most of the belief
    predicts.
    """

    actions: tuple[int, ...] = ()
    manner: Manner = MANNERS[0]
    leader: beliefs.Node | None = None


BASE = Course()


@dataclass(frozen=True, slots=True)
class Decision:
    """Actions to take in order, as long as ``leader`` stays possible. If ``leader`` is
    None, they are taken as long as at least half of the hypotheses stay possible.
    """

    actions: tuple[int, ...]
    leader: beliefs.Node | None


class Planner:
    """Decides for one subject with one lesion. Equal beliefs get equal decisions."""

    def __init__(self, world: beliefs.World, effort: float = 1.0) -> None:
        self.world, self.effort = world, effort
        self.plans, self._nodes = world.plans, world.nodes
        self._known: dict[Hashable, Course] = {}
        turns = world.program.geometry.turns
        self._macros = [
            turn + stride
            for turn in _turns(turns)
            for stride in [(FORWARD,) * n for n in (0, *STRIDES)]
        ]
        self._macros = [macro for macro in self._macros if macro] + [
            (STAY,) * n for n in WAITS
        ]

        #: (State, two kinds) -> number of attempts that could not distinguish the
        #: kinds.
        self._in_vain: dict[Hashable, int] = {}
        #: Values of ``world.spent`` at which planning ahead stops for the rest of the
        #: trial, and of the life.
        self._trial, self._life = 0.0, 0.0

    def begin_life(self) -> None:
        """Reset the budget, so that no life is planned worse because others took much
        effort.
        """
        self._life = self.world.spent + LIFE * self.effort

    def begin_trial(self) -> None:
        self._trial = self.world.spent + TRIAL * self.effort

    # -- following the likeliest

    def base(
        self, cloud: beliefs.Cloud, steps: int, manner: Manner = MANNERS[0]
    ) -> Decision:
        """Return the decision to follow the likeliest hypothesis, without planning
        ahead.
        """
        leader, plan = self.leader(cloud, steps, manner)
        return Decision(plan.actions, leader)

    def leader(
        self, cloud: beliefs.Cloud, steps: int, manner: Manner
    ) -> tuple[beliefs.Node, beliefs.Plan]:
        """Return the node of the hypothesis to follow, and its plan. The hypothesis
        belongs to a likely kind and is near success.
        """
        if len(cloud) == 1:
            node = next(iter(cloud))
            return node, self._plan(node, steps)
        self.world.work += len(cloud)
        return _nearest(
            [(w, node, self._plan(node, steps)) for w, node in _kinds(cloud)[:NEAREST]],
            manner,
        )

    def _plan(self, node: beliefs.Node, steps: int) -> beliefs.Plan:
        if node.plans is None:
            node.plans = {}
        plan = node.plans.get(steps)
        if plan is None:
            plan = node.plans[steps] = self.plans.of(self._nodes.life(node, steps))
        return plan

    # -- looking ahead

    def decide(
        self,
        cloud: beliefs.Cloud,
        steps: int,
        trials_left: int,
        *,
        is_settled: bool = False,
    ) -> Decision:
        """Return the next decision. ``is_settled`` says whether the last decision was
        carried out without any news. If so, that decision had planned for the present
        situation, and only the manner of following is decided now.
        """
        if (
            len(cloud) == 1
            or self.world.spent > self._life
            or all(node.waiting for node in cloud)
        ):
            return self.base(cloud, steps)
        key: tuple[Hashable, ...] = (
            beliefs.signature(cloud),
            steps,
            min(trials_left, FULL_AFTER),
        )
        if is_settled and key not in self._known:
            key = *key, "settled"
        if key not in self._known:
            self._known[key] = self._best(
                cloud, steps, trials_left, is_settled=is_settled
            )
        course = self._known[key]
        return (
            Decision(course.actions, course.leader)
            if course.actions
            else self.base(cloud, steps, course.manner)
        )

    def _best(
        self, cloud: beliefs.Cloud, steps: int, trials_left: int, *, is_settled: bool
    ) -> Course:
        """Return the best candidate, or ``BASE`` if no other is better by more than
        ``BETTER``. Each round keeps fewer of them and tests these on a larger sample of
        the belief.
        """
        learning = LASTING * min(1.0, trials_left / FULL_AFTER)
        begun = self.world.spent
        allowed = min((self._trial - begun) / 3, self._life - begun)
        ranked, base, size = list[tuple[float, Course]](), 0.0, 0
        for number, (most, kept) in enumerate(ROUNDS, 1):
            if number > 1 and len(cloud) <= size:
                break  # The sample is already the whole belief.
            sample, size = beliefs.sampled(cloud, most), most
            courses = (
                [BASE, *(course for _, course in ranked)]
                if ranked
                else self._candidates(cloud, steps, is_settled)
            )
            ranked = []
            for course in dict.fromkeys(courses) if number > 1 else courses:
                ranked.append((self._worth(sample, steps, course, learning), course))
                is_certain = ranked[-1][0] >= CERTAIN * (1 + learning)
                if is_certain or self.world.spent - begun > allowed * number / len(
                    ROUNDS
                ):
                    break
            base = ranked[0][0]
            ranked.sort(key=lambda entry: (-entry[0], len(entry[1].actions)))
            ranked = ranked[:kept]
        # Switching costs time: an alternative must be better by more than the sampling
        # error.
        return ranked[0][1] if ranked[0][0] > base + BETTER else BASE

    def _worth(
        self, cloud: beliefs.Cloud, steps: int, course: Course, learning: float
    ) -> float:
        whole = sum(cloud.values())
        worth = self.play(cloud, steps, course, whole)
        return round((worth.success + learning * worth.learnt) / whole, 9)

    def _candidates(
        self, cloud: beliefs.Cloud, steps: int, is_settled: bool
    ) -> Iterator[Course]:
        given: set[tuple[int, ...]] = {()}
        # The first of them is BASE.
        yield from (Course(manner=manner) for manner in MANNERS)
        if is_settled:
            return
        for _, node in _kinds(cloud)[:LEADERS]:
            plan = self._plan(node, steps)
            if plan.actions not in given:
                given.add(plan.actions)
                yield Course(plan.actions)
        yield from self._doubts(cloud, steps)
        yield from map(Course, self._macros)

    def _doubts(self, cloud: beliefs.Cloud, steps: int) -> Iterator[Course]:
        leader, plan = self.leader(cloud, steps, MANNERS[0])
        if not plan.success or self.world.relevance.trace:
            # If a rule reads the whole path, each path leads to a node of its own, and
            # the search for a distinguishing observation could merge nothing.
            return
        sample = beliefs.sampled(cloud, ROUNDS[0][0])
        for rival in beliefs.mistaken(
            self._nodes, sample, leader, plan.actions, steps, self._is_alive
        )[:RIVALS]:
            pair = leader.state, leader.kind, rival.kind
            if self._in_vain.get(pair, 0) == IN_VAIN:
                continue
            actions, spent = beliefs.tell_apart(
                self._nodes, (leader, rival), steps, self._is_alive
            )
            self.world.work += spent
            if actions:
                yield Course(actions, leader=leader)
            else:
                self._in_vain[pair] = self._in_vain.get(pair, 0) + 1

    def _is_alive(self, node: beliefs.Node, steps: int) -> bool:
        return self._plan(node, steps).success

    def _step(
        self, cloud: beliefs.Cloud, action: int, steps: int
    ) -> dict[int, beliefs.Cloud]:
        self.world.work += len(cloud)
        parts = self._nodes.step(cloud, action, steps)
        self._nodes.release(cloud)
        return parts

    def play(
        self, cloud: beliefs.Cloud, steps: int, course: Course, whole: float
    ) -> Worth:
        """Return the value of a course, after which each part of the belief follows its
        likeliest hypothesis.
        """
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
                _, expected, leader = self._nodes.leads(
                    leader, actions[done], steps + done
                )[0]
            parts = self._step(part, actions[done], steps + done)
            for percept, there in parts.items():
                if percept < 0:
                    worth.add(ended(there))
                # A part goes on with the actions if its percept is the leader's, or,
                # without a leader, the percept of most of the belief. Other parts
                # decide anew, unless they can only wait.
                elif (
                    percept == expected
                    if leader is not None
                    else sum(there.values()) > half
                ):
                    pending.append((there, done + 1, leader))
                elif next(iter(there)).waiting:
                    pending.append((there, done + 1, None))
                else:
                    worth.add(self._follow_best(there, steps + done + 1, whole))
        return worth

    def _follow_best(self, cloud: beliefs.Cloud, steps: int, whole: float) -> Worth:
        if len(cloud) == 1 or sum(cloud.values()) < LIKELY * whole:
            return self.follow(cloud, steps, whole, MANNERS[0])
        values = [self.follow(cloud, steps, whole, manner) for manner in MANNERS]
        return max(values, key=lambda worth: (worth.success, worth.learnt))

    def follow(
        self, cloud: beliefs.Cloud, steps: int, whole: float, manner: Manner
    ) -> Worth:
        """Return the value of following the likeliest hypothesis."""
        worth, pending, nodes = Worth(), [(cloud, steps)], self._nodes
        while pending:
            part, now = pending.pop()
            if sum(part.values()) < NEGLIGIBLE * whole:
                likeliest = max(part, key=part.__getitem__)
                part = {likeliest: part[likeliest]}
            followed, plan = self.leader(part, now, manner)
            if not plan.success:
                # No likely hypothesis in this part has a plan that succeeds.
                worth.learnt += certainty(part)
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
                worth.learnt += certainty(part)  # A random event contradicted the plan.
        return worth


def ended(cloud: beliefs.Cloud) -> Worth:
    return Worth(
        sum(weight for node, weight in cloud.items() if node.success), certainty(cloud)
    )


def certainty(cloud: beliefs.Cloud) -> float:
    """Return the weight of the hypotheses in which the likeliest guess at the lasting
    values is right.
    """
    kinds: dict[int, float] = {}
    for node, weight in cloud.items():
        kinds[node.lasting] = kinds.get(node.lasting, 0.0) + weight
    return max(kinds.values(), default=0.0)


def _nearest(
    choices: Sequence[tuple[float, beliefs.Node, beliefs.Plan]], manner: Manner
) -> tuple[beliefs.Node, beliefs.Plan]:
    """Return the best of these hypotheses to follow. Hypotheses with a plan that
    succeeds come first. ``manner`` says how weight and plan length count.
    """
    best: tuple[tuple[bool, float], beliefs.Node, beliefs.Plan] | None = None
    for weight, node, plan in choices:
        score = (
            plan.success,
            weight**manner.weight / (len(plan.actions) + 10) ** manner.length,
        )
        if best is None or score > best[0]:
            best = score, node, plan
    assert best is not None
    return best[1], best[2]


def _kinds(cloud: beliefs.Cloud) -> list[tuple[float, beliefs.Node]]:
    """Return weight and likeliest node of each kind (nodes with equal draws), the
    likeliest kind first.

    Kinds whose weights differ only by rounding keep the order in which they were met.
    """
    likeliest: dict[int, beliefs.Node] = {}
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
    return [
        (ROTATE_RIGHT,) * n if n <= half else (ROTATE_LEFT,) * (turns - n)
        for n in range(turns)
    ]


# -- real lives: the adversary knows the protocol but not its draws, and its lesion
# takes senses or memory away


#: Limits of the effort, at an effort of 1, for following all subjects that act alike.
#: ``TO_THE_END``: until their trials end. ``PUSHED``: until they enter a state.
TO_THE_END, PUSHED = 1_000_000, 1_000_000
#: Limits in steps. ``SEARCHED``: the search for a way to do an errand. ``POLISHED``:
#: the search for a shorter way after the first one.
SEARCHED, POLISHED = 6_000, 200
#: A hypothesis that is added to a belief only because it is true gets this weight, or
#: its earlier weight times this.
UNLIKELY = 1e-12
_NONE: beliefs.Rest = {}


class Errand(NamedTuple):
    """A state or an outcome that a subject must reach in each of the first ``trials``
    trials of a life, whatever it costs.
    """

    target: str
    trials: int


@dataclass(frozen=True, slots=True)
class Lived:
    """One trial of a real life: its place in the schedule, and its results."""

    trial: int
    session: int
    success: bool
    judged: bool
    steps: int
    measured: float | None = None
    """Value of the measure that the verdict is about, if any."""
    reward: float = 0.0


def lived_trial(
    life: ArenaSubject, number: int, specification: Specification, reward: float = 0.0
) -> Lived:
    result = life.result()
    return Lived(
        number,
        result.session,
        bool(result.success),
        runs.is_judged(result, specification) is not None,
        life.steps,
        runs.measured_value(result, specification),
        reward,
    )


class Adversary:
    """One subject with a lesion, leading one life after the other."""

    def __init__(
        self,
        paradigm: ArenaParadigm,
        lesion: Lesion,
        effort: float,
        *,
        faces_alike: bool = False,
    ) -> None:
        self.world = beliefs.World(paradigm, lesion, faces_alike=faces_alike)
        self.planner = Planner(self.world, effort)
        self._paradigm, self._lesion, self._effort = paradigm, lesion, effort
        # The blocks after the last judged block: nothing in them counts.
        self._over = (
            frozenset[str]()
            if lesion == INTACT
            else paradigm.specification.blocks_after_judged
        )
        self._pushed: dict[Hashable, beliefs.Parts] = {}
        self._carried: dict[Hashable, beliefs.Rest | None] = {}
        #: Reward of the latest trial.
        self._earned = 0.0
        #: The smallest share of subjects that could be followed up to the point where
        #: they forget.
        self.followed = 1.0

    def live(
        self, seed: int, subject: int, trials: int, errand: Errand | None = None
    ) -> list[Lived]:
        """Lead a real life of at most ``trials`` trials. Under a lesion, it ends after
        the last judged block.
        """
        # If the protocol reads the subject's number, the adversary may know it.
        if self.world.relevance.subject:
            self.world = beliefs.World(self._paradigm, self._lesion, subject)
            self.planner = Planner(self.world, self.planner.effort)
            self._pushed, self._carried = {}, {}
        life = ArenaSubject(self._paradigm.program, self.world.view, seed, subject)
        rest, lived = self.world.prior(), list[Lived]()
        self.planner.begin_life()
        while (
            len(lived) < trials
            and (observation := life.begin_trial()) is not None
            and life.block not in self._over
        ):
            ensemble = self.world.begin(rest)
            percept = self.world.percept(observation, 0.0, False, life.waiting)
            prescribed = (
                None
                if errand is None or len(lived) >= errand.trials
                else self._run(life, errand)
            )
            actions, rest_after = self._trial(life, ensemble, percept, prescribed)
            lived.append(
                lived_trial(
                    life, len(lived), self._paradigm.specification, self._earned
                )
            )
            if self._lesion.forgets_trials:
                rest_after = self.carried(
                    ensemble, actions, rest_after, is_errand=prescribed is not None
                )
            rest = rest_after
        return lived

    def _run(self, life: ArenaSubject, errand: Errand) -> Sequence[int]:
        """Return actions that do the errand, whatever they cost, or an empty sequence
        if it cannot be done.
        """

        def is_done(one: ArenaSubject, _: Specification) -> bool:
            return errand.target in (
                one.outcome,
                one.state,
                *(event.state for event in one.events),
            )

        search = Search(self.world.program, self._paradigm.specification, is_done)
        found = search.solve(life, SEARCHED, POLISHED).shortest
        self.world.work += search.spent
        return found.actions if found is not None else ()

    def _trial(
        self,
        life: ArenaSubject,
        ensemble: Mapping[int | None, beliefs.Belief],
        percept: int,
        prescribed: Sequence[int] | None = None,
    ) -> tuple[list[int], beliefs.Rest]:
        """Live one trial. ``prescribed`` actions are taken in order, then the subject
        waits. If ``prescribed`` is None, the planner decides. Return the actions taken,
        and the belief at the end.
        """
        world, remaining = self.world, set(self._lesion.forgets_at)
        root, forgotten = begun(ensemble), 0
        self.planner.begin_trial()
        taken: list[int] = []
        progress = Progress(possible(root, percept))
        self._earned = 0.0
        while True:
            if life.state in remaining:
                root = self.entries(root, forgotten, frozenset(remaining), life.state)
                forgotten = life.steps
                # If some hypotheses could not be followed, the true one may be missing.
                # It is added last, so that its position in the order does not give it
                # away.
                true = [
                    (one, weight)
                    for one, weight in progress.belief.items()
                    if one[0].state == life.state
                ]
                believed = dict(root.get(percept, {}))
                for one, weight in true:
                    believed.setdefault(one, weight * UNLIKELY)
                progress = Progress(believed, life.steps)
                remaining.discard(life.state)
            elif remaining:
                progress.belief = {
                    one: weight
                    for one, weight in progress.belief.items()
                    if one[0].state not in remaining
                }
            if prescribed is None:
                action = self._act(progress, bool(remaining))
            else:
                action = (
                    prescribed[len(taken)] if len(taken) < len(prescribed) else STAY
                )
            observation, reward, status = life.step(action)
            self._earned += reward
            taken.append(action)
            percept = world.percept(
                observation, reward, status != RUNNING, life.waiting
            )
            percept = percept if status == RUNNING else -1 - percept
            parts = world.step(progress.belief, action, progress.steps)
            progress.go_on(world, action, percept, possible(parts, percept))
            if status != RUNNING:
                return taken, world.rest(progress.belief)

    def _act(self, progress: Progress, is_pushed: bool) -> int:
        if next(iter(progress.belief))[0].waiting:
            progress.decision = None
            return STAY
        if progress.decision is None or progress.is_over:
            progress.decision = decision = self._decide(progress, is_pushed)
            progress.place, progress.size, progress.leader = (
                0,
                len(progress.belief),
                decision.leader,
            )
        progress.place += 1
        return progress.decision.actions[progress.place - 1]

    def _decide(self, progress: Progress, is_pushed: bool) -> Decision:
        """Return the next decision. Before a subject forgets, it follows the likeliest
        hypothesis without planning ahead, because all subjects that act like it must be
        followed, too.
        """
        cloud = beliefs.cloud_of(progress.belief)
        if is_pushed:
            return self.planner.base(cloud, progress.steps)
        left = (
            0
            if self._lesion.forgets_trials
            else self.world.plan_of(progress.belief).left
        )
        return self.planner.decide(
            cloud, progress.steps, left, is_settled=progress.is_settled
        )

    def entries(
        self, root: beliefs.Parts, steps: int, states: frozenset[str], state: str
    ) -> beliefs.Parts:
        """Return, for each percept, the belief of a subject that enters a state. It
        covers all subjects that act like this one.

        They start from ``root``, ``steps`` into the trial. Early and late entries are
        merged, because the elapsed time is forgotten, too.
        """
        key = _signature(root), steps, states, state
        if key not in self._pushed:
            self._pushed[key] = self._push(root, steps, states, state)
        return self._pushed[key]

    def _push(
        self, root: beliefs.Parts, steps: int, states: frozenset[str], state: str
    ) -> beliefs.Parts:
        """Compute what ``entries`` returns. The groups of subjects whose percepts have
        been equal so far are followed, the largest first, within the effort.
        """
        entries: beliefs.Parts = {}
        for _, percept, part in self.arrivals(root, steps, states, state):
            _add(entries.setdefault(percept, {}), part)
        return {
            percept: self.world.likeliest(part)
            for percept, part in entries.items()
            if part
        }

    def arrivals(
        self, root: beliefs.Parts, steps: int, states: frozenset[str], state: str
    ) -> Iterator[tuple[int, int, beliefs.Belief]]:
        """Yield the ways in which subjects enter a state. Subjects whose percepts have
        been equal so far form a group. Each entry has the number of the group before
        the step, the percept, and the belief of the subjects that entered, which may be
        empty.

        A subject that enters any of ``states`` is followed no further.
        """
        pending = [
            (-sum(part.values()), number, percept, Progress(part, steps), -1 - number)
            for number, (percept, part) in enumerate(root.items())
        ]
        heapify(pending)
        count, most, lost = (
            len(pending),
            self.world.spent + PUSHED * self._effort,
            0.0,
        )
        while pending:
            weight, own, percept, progress, before = heappop(pending)
            yield (
                before,
                percept,
                {
                    grain: share
                    for grain, share in progress.belief.items()
                    if grain[0].state == state
                },
            )
            progress.belief = {
                one: share
                for one, share in progress.belief.items()
                if one[0].state not in states
            }
            if not progress.belief:
                continue
            if self.world.spent > most:
                lost -= weight
                continue
            for number, further in self._branches(progress, True):
                if number >= 0:
                    count += 1
                    whole = sum(further.belief.values())
                    heappush(pending, (-whole, count, number, further, own))
        self.followed = min(
            self.followed, 1 - lost / sum(sum(part.values()) for part in root.values())
        )

    def carried(
        self,
        ensemble: Mapping[int | None, beliefs.Belief],
        actions: Sequence[int] = (),
        real: beliefs.Rest = _NONE,
        *,
        is_errand: bool = False,
    ) -> beliefs.Rest:
        """Return the belief about the end of a trial that the subject has forgotten. It
        covers all subjects that act like this one.

        Each of them decides as this subject would have decided on the same percepts.
        All of them repeat the real ``actions`` if deciding takes too much effort,
        something is forgotten within the trial as well, or the trial was an errand. The
        actual end (``real``) always stays possible.
        """
        root = begun(ensemble)
        if not self.world.relevance.behaviour:
            return self.world.rest(_together(root))
        key = _signature(root)
        if key not in self._carried and not is_errand:
            self._carried[key] = (
                None if self._lesion.forgets_at else self._to_the_end(root)
            )
        found = (None if is_errand else self._carried[key]) or self._repeated(
            root, actions
        )
        # A true end that is missing is added last, so that the order does not give it
        # away.
        return found | {one: UNLIKELY for one in real if one not in found}

    def _to_the_end(self, root: beliefs.Parts) -> beliefs.Rest | None:
        """Let all subjects with this beginning decide for themselves until their trials
        end. Return None if there are too many ways to follow.
        """
        self.planner.begin_trial()
        ended, most = (
            beliefs.Belief(),
            self.world.spent + TO_THE_END * self.planner.effort,
        )
        pending = [Progress(part) for part in root.values()]
        while pending:
            if self.world.spent > most:
                return None
            for percept, further in self._branches(pending.pop(), False):
                if percept < 0:
                    _add(ended, further.belief)
                else:
                    pending.append(further)
        return self.world.rest(self.world.likeliest(ended))

    def _branches(
        self, progress: Progress, is_pushed: bool
    ) -> Iterator[tuple[int, Progress]]:
        action = self._act(progress, is_pushed)
        for percept, part in self.world.step(
            progress.belief, action, progress.steps
        ).items():
            further = progress.copy()
            further.go_on(self.world, action, percept, part)
            yield percept, further

    def _repeated(self, root: beliefs.Parts, actions: Sequence[int]) -> beliefs.Rest:
        belief, ended = _together(root), beliefs.Belief()
        steps, rest = 0, iter(actions)
        while belief:
            parts = self.world.step(belief, next(rest, STAY), steps)
            belief, steps = {}, steps + 1
            for percept, part in parts.items():
                _add(belief if percept >= 0 else ended, part)
        return self.world.rest(ended)


@dataclass(slots=True)
class Progress:
    """The belief after ``steps`` steps of a trial, and the decision that is being
    carried out.
    """

    belief: beliefs.Belief
    steps: int = 0
    decision: Decision | None = None
    place: int = 0
    """Number of the decision's actions that have been taken."""
    size: int = 0
    """Size of the belief when the decision was made."""
    leader: beliefs.Node | None = None
    """The decision's leader after the steps since, or None if it has none, or it is no
    longer possible.
    """

    def copy(self) -> Progress:
        return Progress(
            self.belief, self.steps, self.decision, self.place, self.size, self.leader
        )

    def go_on(
        self, world: beliefs.World, action: int, percept: int, belief: beliefs.Belief
    ) -> None:
        """Take over the belief after a step."""
        if self.leader is not None:
            _, expected, there = world.nodes.leads(self.leader, action, self.steps)[0]
            self.leader = there if expected == percept else None
        self.belief, self.steps = belief, self.steps + 1

    @property
    def is_settled(self) -> bool:
        """Whether the decision has been carried out without any news. Always False for
        a decision with a leader.
        """
        done = (
            self.decision is not None
            and self.decision.leader is None
            and self.place >= len(self.decision.actions)
        )
        return done and len(self.belief) == self.size

    @property
    def is_over(self) -> bool:
        """Whether the decision has been carried out, or its leader is no longer
        possible. Without a leader, it is over if less than half of the belief remains.
        """
        assert self.decision is not None
        if self.place >= len(self.decision.actions):
            return True
        if self.decision.leader is not None:
            return self.leader is None
        return 2 * len(self.belief) < self.size


def begun(ensemble: Mapping[int | None, beliefs.Belief]) -> beliefs.Parts:
    """Return the possible beginnings of a trial, without the hypotheses whose schedule
    is over.
    """
    return {percept: part for percept, part in ensemble.items() if percept is not None}


def possible(parts: beliefs.Parts, percept: int) -> beliefs.Belief:
    """Return the belief that remains after a percept. Raise ``AssertionError`` if
    nothing remains.
    """
    belief = parts.get(percept)
    assert belief, (
        "what happened was not among the hypotheses: the planner's model of the protocol is wrong"
    )
    return belief


def _together(parts: beliefs.Parts) -> beliefs.Belief:
    belief = beliefs.Belief()
    for part in parts.values():
        _add(belief, part)
    return belief


def _add(belief: beliefs.Belief, other: beliefs.Belief) -> None:
    for grain, weight in other.items():
        belief[grain] = belief.get(grain, 0.0) + weight


def _signature(parts: beliefs.Parts) -> Hashable:
    return frozenset(
        [
            (percept, one.number, past, round(w, 9))
            for percept, part in parts.items()
            for (one, past), w in part.items()
        ]
    )
