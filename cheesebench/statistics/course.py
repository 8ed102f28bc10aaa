"""A sequential cell while it runs: its current look, the subjects it waits for, and which subjects may be stopped.

All decisions depend on what subjects did, never on timing. The subjects that a look has added are all stopped after the
same number of trials, the smallest with which the look is decided (``is_settled``); trials beyond it are discarded. So
a run that was interrupted or used a slower server has the same records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cheesebench.experiment.records import CellPlan, End, TrialRecord
from cheesebench.statistics.comparison import Question, SubjectTrials
from cheesebench.statistics.counts import SubjectCounts
from cheesebench.statistics.judgement import question_of
from cheesebench.statistics.merit import scale_of
from cheesebench.statistics.regression import Change, loss_of, regression_look
from cheesebench.statistics.sample import Lives, enter_estimand, has_acted, trial_bytes
from cheesebench.statistics.sequential import decide, is_settled, next_look, what_it_still_needs
from cheesebench.statistics.summary import Verdict


class TrialFacts(NamedTuple):
    """What a verdict needs to know about one trial, and a digest of the subject's trials up to it."""

    compared: bool
    block: str
    merit: float | None
    digest: str
    acted: bool
    missing: str = ""


@dataclass(slots=True)
class _Subject:
    trials: list[TrialFacts] = field(default_factory=list)
    hasher: hashlib.blake2b = field(default_factory=lambda: hashlib.blake2b(digest_size=10))
    complete: bool = False
    broken: bool = False
    #: Trials after which it was stopped.
    settled: int | None = None

    @property
    def ended(self) -> bool:
        return self.complete or self.broken or self.settled is not None

    def add(self, record: TrialRecord, merit: float | None) -> None:
        self.hasher.update(trial_bytes(record))
        acted = has_acted(record) or (bool(self.trials) and self.trials[-1].acted)
        self.trials.append(TrialFacts(record.compared, record.block, merit, self.hasher.hexdigest(), acted))

    def whole(self, trials: int | None, most: int) -> bool:
        """Return whether the subject had ended before it could be stopped after ``trials`` of at most ``most`` trials.

        False if it ended with that very trial: the report of its end may arrive later, or not at all.
        """
        return self.complete and (trials is None or len(self.trials) < trials or trials >= most)

    def prefixes(self, trials: int | None) -> list[str]:
        """Return digests of the first ``trials`` trials, as ``cheesebench.statistics.sample.prefixes`` does."""
        return [facts.digest for facts in self.trials[:trials] if facts.acted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The baseline of a cell while it runs: the cell continues until the comparison, too, is decided.

    ``tests`` is the number of cells compared; ``only``: the cell needs no verdict against its reference.
    """

    subjects: Mapping[int, SubjectCounts]
    tests: int
    only: bool


class CellCourse:
    """The course of one cell; see ``cheesebench.experiment.looks.Course``."""

    def __init__(self, plan: CellPlan, baseline: Baseline | None = None) -> None:
        self._plan = plan
        self._baseline = baseline
        self._question = question_of(plan)
        self._scale = scale_of(plan)
        self._subjects: dict[int, _Subject] = {}
        self.look = plan.looks[0]
        #: Subjects of the previous look, which can no longer be stopped.
        self._before = 0
        self.over = False
        self.standing = "no look yet"
        self.needed = self._least()
        #: Number of trials at which ``cut`` last checked whether the look is settled.
        self._asked = 0

    def _least(self) -> int:
        """Return the look that decides whoever never passes, and whoever always does."""
        question, looks = self._question, self._plan.looks
        if question is None:
            return looks[-1]

        def decided(look: int, tail: float) -> bool:
            return all(question.verdict_of([rate] * look, tail) is not Verdict.INCONCLUSIVE for rate in extremes)

        means, value = question.means, question.reference.value
        # Without bounds, extreme is what is far from the margin on either side.
        extremes = (0.0, 1.0) if self._scale.bounded else (value + 10 * question.fails, value - 10 * question.fails)
        decisive = (look for look, tail in zip(looks, means.tails(looks), strict=True) if decided(look, tail))
        return next(decisive, looks[-1])

    @property
    def following(self) -> int | None:
        """See ``Course``."""
        return next_look(self._plan.looks, self.look)

    def see(self, record: TrialRecord) -> None:
        """See ``Course``."""
        subject = self._subject(record.subject)
        if not record.missing and record.trial == len(subject.trials) and subject.settled is None:
            subject.add(record, self._scale.merit_of(record))

    def end(self, subject: int, how: End) -> None:
        """See ``Course``."""
        own = self._subject(subject)
        own.complete, own.broken = how == "complete", how == "broken"
        own.settled = len(own.trials) if how == "settled" else None

    def reopen(self) -> None:
        """See ``Course``."""
        found = self._trials(None)
        if self._question is not None and self._baseline is None and not self.wanted():
            decision = decide(self._question, found, self.look, self._plan.looks)
            if decision.verdict is not Verdict.INCONCLUSIVE:
                return
        for subject in self._subjects.values():
            subject.broken = False

    def wanted(self) -> list[int]:
        """See ``Course``."""
        return [number for number in range(self.look) if not self._subject(number).ended]

    def cut(self) -> tuple[list[int], int] | None:
        """See ``Course``."""
        question, new = self._question, self._new()
        if question is None or self.over:
            return None
        # A subject that is complete or broke off has come as far as it ever will; the others decide how far all are.
        alive = [len(one.trials) for one in new if not one.ended]
        reached = min(alive) if alive else max((len(one.trials) for one in new), default=0)
        while self._asked < reached:
            self._asked += 1
            if self._settled(question, self._asked):
                stopped = [self._before + at for at, one in enumerate(new) if not self._whole(one, self._asked)]
                return (stopped, self._asked) if stopped else None
        return None

    def _settled(self, question: Question, cut: int) -> bool:
        """Return whether the look is decided if its new subjects are stopped after ``cut`` trials."""
        if self._baseline is None or not self._baseline.only:
            found = self._trials(cut)
            if not self._may_settle(question, found):
                return False
            if not is_settled(question, found, self.look, self._plan.looks):
                return False
        return self._baseline is None or self._change(self._baseline, cut) in (Change.WORSE, Change.NOT_WORSE)

    def _change(self, baseline: Baseline, cut: int | None) -> Change:
        """Return what the pairs of the look say, whatever the open trials would be."""
        known: set[tuple[str, str]] = set()
        lives = Lives()
        lowest, highest = list[float](), list[float]()
        for number in range(self.look):
            other, subject = baseline.subjects.get(number), self._subject(number)
            limit = cut if number >= self._before else None
            own = self._counted(subject, limit, True)
            name = lives.name(subject.prefixes(limit), whole=self._whole(subject, limit))
            if other is None or not own.scored + own.open or not other.scored + other.missing:
                continue
            if not self._scale.bounded and (own.open or other.missing):
                return Change.GO_ON  # without bounds what is open could be anything
            digests = other.digest, name
            if all(digests) and digests in known:
                if own.open:  # a repeat as yet: whether it stays one is not known
                    return Change.GO_ON
                continue
            known.add(digests)
            lowest.append(own.rate(False) - other.rate(True))
            highest.append(own.rate(True) - other.rate(False))
        last = self.look >= max(baseline.subjects, default=-1) + 1
        if not lowest:
            return Change.UNDECIDED if last else Change.GO_ON
        most, means = max(len(baseline.subjects), len(lowest)), self._scale.means
        found = regression_look(
            lowest, highest, most, loss=loss_of(self._plan.margin, self._scale), tests=baseline.tests, means=means
        ).change
        return Change.UNDECIDED if last and found is Change.GO_ON else found

    def settle(self, trials: int) -> None:
        """See ``Course``."""
        for subject in self._new():
            if not self._whole(subject, trials):
                subject.settled, subject.complete, subject.broken = trials, False, False
                del subject.trials[trials:]

    def advance(self) -> bool:
        """See ``Course``."""
        looks = self._plan.looks
        if self._question is None:
            return self._go_to(next_look(looks, self.look))
        found = self._trials(None)
        decision = decide(self._question, found, self.look, looks)
        self.standing = f"look at {self.look} of at most {looks[-1]} subjects: {decision.standing}"
        decided = decision.final
        if self._baseline is not None:
            change = self._change(self._baseline, None)
            self.standing += f"; against the baseline: {change}"
            decided = change is not Change.GO_ON and (decided or self._baseline.only)
        # A broken subject makes the cell an ERROR, or undecided if the budget is spent; more subjects change neither.
        if decided or any(self._subject(number).broken for number in range(self.look)):
            self.over = True
            return False
        self.needed = what_it_still_needs(self._question, found, self.look, looks) or looks[-1]
        return self._go_to(next_look(looks, self.look))

    def _go_to(self, look: int | None) -> bool:
        if look is None:
            self.over = True
            return False
        self._before, self.look, self._asked = self.look, look, 0
        self.needed = max(self.needed, look)
        return True

    def _may_settle(self, question: Question, found: list[SubjectTrials]) -> bool:
        """Return False if a quick check shows that the look is not settled: p values are much faster than limits."""
        if not self._scale.bounded:
            return not any(one.open for one in found)  # an open trial could have any value
        tail = question.means.tails(self._plan.looks)[self._plan.looks.index(self.look)]
        if any(one.scored + one.open == 0 for one in found):
            return True
        worst, best = ([one.rate(passing) for one in found] for passing in (False, True))
        return (
            question.verdict_of(worst, tail) is Verdict.PASS
            or question.verdict_of(best, tail) is Verdict.FAIL
            or not all(one.distinct for one in found)
        )

    def _whole(self, subject: _Subject, limit: int | None) -> bool:
        return subject.whole(limit, self._plan.trials)

    def _subject(self, number: int) -> _Subject:
        return self._subjects.setdefault(number, _Subject())

    def _new(self) -> list[_Subject]:
        return [self._subject(number) for number in range(self._before, self.look)]

    def _trials(self, cut: int | None) -> list[SubjectTrials]:
        """Return the subjects of the look as they would be if its new ones were stopped after ``cut`` trials."""
        lives, counted = Lives(), []
        for number in range(self.look):
            subject, limit = self._subject(number), cut if number >= self._before else None
            whole = self._whole(subject, limit)
            name = lives.name(subject.prefixes(limit), whole=whole)
            counted.append(self._counted(subject, limit, lives.is_new(name, whole=whole)))
        return counted

    def _counted(self, subject: _Subject, limit: int | None, distinct: bool) -> SubjectTrials:
        facts = subject.trials[:limit]
        whole = self._whole(subject, limit)
        estimand, rest = self._plan.estimand, 0 if whole else self._plan.trials - len(facts)
        if not whole and estimand.startswith("last:"):
            # Which trials are the last ones is known only at the end.
            return SubjectTrials(0, 0, min(self._plan.trials, int(estimand.partition(":")[2])), distinct)
        scored = [one.merit for one in enter_estimand(estimand, facts) if one.merit is not None]
        return SubjectTrials(sum(scored), len(scored), rest, distinct)
