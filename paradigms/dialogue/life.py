"""One subject's questions in one condition: the prompts it gets, and the scores of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cheesebench.dialogue import Puzzle
from cheesebench.errors import StepAfterEndError, UnknownNameError
from cheesebench.interfaces import TestOutcome, TrialResult, Value, View
from cheesebench.paradigms.dialogue.answers import Answer
from cheesebench.paradigms.dialogue.edges import read_reply
from cheesebench.paradigms.dialogue.language.specification import ConditionSpec, DialogueSpecification, Item
from cheesebench.paradigms.dialogue.language.worlds import simple_paths
from cheesebench.paradigms.dialogue.lexicon import Lexicon
from cheesebench.paradigms.dialogue.prompts import answer_text, questions
from cheesebench.paradigms.dialogue.scoring import Score, score

#: Most characters of an answer, as it was read, that a record keeps.
MAX_SHOWN = 200


class GraphParadigm:
    """A compiled dialogue protocol."""

    def __init__(self, specification: DialogueSpecification) -> None:
        self.specification = specification
        self._lexicons = {
            name: Lexicon(domain.names, domain.wording.nouns) for name, domain in specification.domains.items()
        }

    def dialogue(self, domain: str, condition: str, subject: int = 0) -> GraphDialogue:
        """Return a subject's questions of a condition in the words of a domain; every call begins anew."""
        for kind, name, known in (
            ("domain", domain, self.specification.domains),
            ("condition", condition, self.specification.conditions),
        ):
            if name not in known:
                raise UnknownNameError(kind, name, known)
        return GraphDialogue(self.specification, self._lexicons[domain], domain, condition, subject)

    def own_tests(self, view: View) -> Sequence[TestOutcome]:
        """Return nothing: a dialogue is checked when it is loaded, and has no tests to play."""
        return ()


class GraphDialogue:
    """Asks about every start-goal pair once, each in a conversation of its own (a trial)."""

    def __init__(
        self, specification: DialogueSpecification, lexicon: Lexicon, domain: str, condition: str, subject: int
    ) -> None:
        self._specification = specification
        self._lexicon = lexicon
        self._domain = specification.domains[domain]
        self._condition = specification.conditions[condition]
        self._items = self._condition.asked_of(subject)
        self._chain = [self._condition]
        while (before := self._chain[0].after) is not None:
            self._chain.insert(0, specification.conditions[before])
        self._trial, self._turn = -1, 0
        self._questions: list[str] = []
        self._answer: Answer | None = None

    @property
    def _item(self) -> Item:
        return self._items[self._trial]

    @property
    def system(self) -> str:
        """What a model is told before the first question; empty where nothing is."""
        return self._specification.document.system or ""

    def begin_trial(self) -> str | None:
        """Begin the next conversation and return its first question, or None when there are no more."""
        if self._trial + 1 >= len(self._items):
            return None
        self._trial += 1
        self._turn, self._answer = 0, None
        self._questions = questions(self._specification, self._domain, self._condition, self._item)
        return self._questions[0]

    def answer(self, text: str) -> str | None:
        """Take the whole reply (any text); return the next question, or None when the conversation is over."""
        if self._trial < 0 or self._answer is not None:
            raise StepAfterEndError("This conversation has ended. Begin the next trial before you answer.")
        self._turn += 1
        if self._turn < len(self._questions):
            return self._questions[self._turn]
        self._answer = read_reply(text, self._lexicon, self._condition.form)
        return None

    @property
    def puzzle(self) -> Puzzle:
        """The puzzle of the last question."""
        condition, item = self._asked()
        world = condition.world
        return Puzzle(
            start=item.start,
            arcs={node: tuple(world.steps(node)) for node in world.nodes},
            rewards=dict(world.rewards),
            keys=item.keys,
            number=item.number,
            walks=lambda: _walks(condition, item),
            say=lambda path: answer_text(self._domain, condition, path),
        )

    def _asked(self) -> tuple[ConditionSpec, Item]:
        condition = self._chain[min(self._turn, len(self._chain) - 1)]
        return condition, self._item if condition is self._condition else condition.items[0]

    def result(self) -> TrialResult:
        """Return the result of the conversation that has just ended; only its last answer counts."""
        if self._answer is None:
            raise StepAfterEndError("The conversation has not ended yet. Answer its questions first.")
        scored = score(self._answer, self._condition, self._item, self._specification.world)
        return TrialResult(
            block=self._condition.name,
            session=1,
            outcome=scored.outcome,
            success=scored.success,
            compared=True,
            counters={},
            measures=scored.measures,
            variables=self._variables(scored),
            path_length=max(0, len(scored.path) - 1),
            bumps=0,
            events=(),
        )

    def _variables(self, scored: Score) -> dict[str, Value]:
        assert self._answer is not None
        said = ["?" if node is None else node for node in self._answer.nodes]
        number = self._answer.number
        return {
            "graph": self._specification.paradigm,
            "domain": self._domain.name,
            "condition": self._condition.name,
            "group": self._condition.group,
            "start": self._item.start,
            "goal": " ".join(self._item.goals),
            "keys": len(self._item.keys),
            "answer": (" ".join(said) if number is None else str(number))[:MAX_SHOWN],
        }


def _walks(condition: ConditionSpec, item: Item) -> Sequence[Sequence[str]]:
    """Return the paths that define chance; where edges are asked for, the steps of each, two nodes for one."""
    paths = simple_paths(condition.world, item.start)
    if condition.form != "edges":
        return paths
    return [[node for step in pairwise(path) for node in step] for path in paths]
