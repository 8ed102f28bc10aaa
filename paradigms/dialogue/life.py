"""A subject of a dialogue: its prompts, scores, cells and records.

A subject is one generation: it answers each of its items once, in a conversation of
its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import textwrap
from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cheesebench.chat import ChatRequest, Message, Sampling
from cheesebench.dialogue import Puzzle
from cheesebench.errors import RunLogError, StepAfterEndError, UnknownNameError
from cheesebench.experiment.cells import with_fixed_number
from cheesebench.experiment.replay import check_same
from cheesebench.experiment.subjects import (
    SilenceWatch,
    agent_seed,
    call_seed,
    trial_record,
)
from cheesebench.family import Design, WatchedTrial
from cheesebench.interfaces import Paradigm, TaskEvent, TrialResult, Value
from cheesebench.paradigms.dialogue import answers
from cheesebench.paradigms.dialogue import specification as spec
from cheesebench.records import CellPlan, Frame, ReplayedCall, TrialRecord, Variant

if TYPE_CHECKING:
    from cheesebench.dialogue import RespondentSpec
    from cheesebench.family import Asker, CellRequest, Plugins, RecordedRun
    from cheesebench.records import CallRecord

    #: Function that answers a question. Its arguments are the trial, the number of the
    #: question within the trial (both from 0), and the text of the question.
    _Answer = Callable[[int, int, str], str]


#: Maximum number of characters of a parsed answer in a record.
MAX_SHOWN = 200


class GraphParadigm(Paradigm):
    """A compiled dialogue protocol."""

    def __init__(self, specification: spec.DialogueSpecification) -> None:
        self.specification = specification
        self._lexicons = {
            name: answers.Lexicon(domain.names, domain.wording.nouns)
            for name, domain in specification.domains.items()
        }

    def dialogue(self, domain: str, condition: str, subject: int = 0) -> GraphDialogue:
        """Return the questions of a condition for a subject, in the words of a domain.
        Every call begins with the first question. Raise UnknownNameError for an unknown
        domain or condition.
        """
        for kind, name, known in (
            ("domain", domain, self.specification.domains),
            ("condition", condition, self.specification.conditions),
        ):
            if name not in known:
                raise UnknownNameError(kind, name, known)
        return GraphDialogue(
            self.specification, self._lexicons[domain], domain, condition, subject
        )


class GraphDialogue:
    """Asks a subject each of its items (``ConditionSpec``) once. Each item has a
    conversation of its own (a trial).
    """

    def __init__(
        self,
        specification: spec.DialogueSpecification,
        lexicon: answers.Lexicon,
        domain: str,
        condition: str,
        subject: int,
    ) -> None:
        self._specification = specification
        self._lexicon = lexicon
        self._domain = specification.domains[domain]
        self._condition = specification.conditions[condition]
        self._items = self._condition.asked_of(subject)
        self._chain = [self._condition]
        while (before := self._chain[0].after) is not None:
            self._chain.insert(0, specification.conditions[before])
        self._trial = -1
        # ``begin_trial`` sets these.
        self._turn: int
        self._questions: list[str]
        self._answer: answers.Answer | None = None

    @property
    def _item(self) -> spec.Item:
        return self._items[self._trial]

    @property
    def system(self) -> str:
        """The system prompt before the first question, possibly empty."""
        return self._specification.document.system or ""

    def begin_trial(self) -> str | None:
        """Begin the next conversation and return its first question, or None after the
        last conversation.
        """
        if self._trial + 1 >= len(self._items):
            return None
        self._trial += 1
        self._turn, self._answer = 0, None
        self._questions = questions(
            self._specification, self._domain, self._condition, self._item
        )
        return self._questions[0]

    def answer(self, text: str) -> str | None:
        """Take the whole reply (any text) and return the next question, or None at the
        end of the conversation. Raise StepAfterEndError if there is no conversation.
        """
        if self._trial < 0 or self._answer is not None:
            raise StepAfterEndError(
                "No conversation is in progress. Begin the next trial before you answer."
            )
        self._turn += 1
        if self._turn < len(self._questions):
            return self._questions[self._turn]
        self._answer = answers.read_reply(text, self._lexicon, self._condition.form)
        return None

    @property
    def puzzle(self) -> Puzzle:
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

    def _asked(self) -> tuple[spec.ConditionSpec, spec.Item]:
        condition = self._chain[min(self._turn, len(self._chain) - 1)]
        return (
            condition,
            self._item if condition is self._condition else condition.items[0],
        )

    def result(self) -> TrialResult:
        """Return the result of the conversation that just ended. Only its last answer
        counts. Raise StepAfterEndError if the conversation has not ended.
        """
        if self._answer is None:
            raise StepAfterEndError(
                "The conversation has not ended yet. Answer its questions first."
            )
        scored = answers.score(
            self._answer, self._condition, self._item, self._specification.world
        )
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

    def _variables(self, scored: answers.Score) -> dict[str, Value]:
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


def _walks(condition: spec.ConditionSpec, item: spec.Item) -> Sequence[Sequence[str]]:
    """Return the paths that define the chance level. If edges are asked for, each path
    is a flat list of two nodes per step.
    """
    paths = spec.simple_paths(condition.world, item.start)
    if condition.form != "edges":
        return paths
    return [[node for step in pairwise(path) for node in step] for path in paths]


# -- the prompts: the texts are data (``scenes.yaml``), and are filled in here


def questions(
    specification: spec.DialogueSpecification,
    domain: spec.Domain,
    condition: spec.ConditionSpec,
    item: spec.Item,
) -> list[str]:
    """Return the user's turns: the description with the first question, then each
    further question, with its change if it has one.
    """
    chain = [condition]
    while chain[0].after is not None:
        chain.insert(0, specification.conditions[chain[0].after])
    writer = _Writer(specification, domain)
    described = writer.description(rewards=any(one.ask == "best_path" for one in chain))
    texts: list[str] = []
    for number, one in enumerate(chain):
        asked = item if one is condition else one.items[0]
        if one.edit is not None:
            described = [*([] if number else described), *writer.changes(one)]
        elif number:
            described = []
        texts.append(_paragraphs([described, writer.question(one, asked)]))
    return texts


def _paragraphs(parts: Iterable[Sequence[str]]) -> str:
    return "\n\n".join(" ".join(map(_capital, part)) for part in parts if part)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def listed(names: Sequence[str]) -> str:
    """Return names as an enumeration: ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


class _Writer:
    def __init__(
        self, specification: spec.DialogueSpecification, domain: spec.Domain
    ) -> None:
        self._graph = specification.document.arena.graph
        self._first = specification.world
        self._names = domain.names
        self._sentences = domain.wording.sentences
        self._requests = spec.requests()

    def _say(self, key: str, start: str | None = None, **slots: str) -> str:
        texts = self._requests if key not in self._sentences else self._sentences
        return texts[key].format(
            thing=self._sentences["thing"],
            things=self._sentences["things"],
            count=len(self._first.nodes),
            start=self._names[start or self._graph.start],
            **slots,
        )

    def description(self, rewards: bool) -> list[str]:
        """Return the description as a tour: every edge once, then the rewards if they
        are to be described.
        """
        sentences = [self._say("setting")]
        described: set[tuple[str, str]] = set()
        for node in self._first.nodes:
            onward = [
                after
                for after in self._first.steps(node)
                if (node, after) not in described
            ]
            if onward:
                sentences.append(self._link(node, onward))
            if not self._graph.directed:
                described.update((after, node) for after in onward)
        sentences.append(self._say("one_way" if self._graph.directed else "two_way"))
        return [*sentences, *(self._rewards() if rewards else ())]

    def _rewards(self) -> Iterator[str]:
        for node in self._first.nodes:
            if amount := self._first.rewards.get(node, 0):
                yield self._reward("reward", node, amount)

    def _link(self, node: str, onward: Sequence[str]) -> str:
        return self._say(
            "link",
            place=self._names[node],
            places=listed([self._names[after] for after in onward]),
        )

    def _reward(self, key: str, node: str, amount: float) -> str:
        return self._say(key, place=self._names[node], amount=f"{amount:g}")

    def changes(self, condition: spec.ConditionSpec) -> list[str]:
        edit = condition.edit
        assert edit is not None
        way = "_one_way" if self._graph.directed else ""
        sentences = [self._say("change")]
        sentences += [
            self._say(f"closed{way}", **self._ends(a, b)) for a, b in edit.remove
        ]
        sentences += [
            self._say(f"opened{way}", **self._ends(a, b)) for a, b in edit.add
        ]
        sentences += [
            self._say("portal", **self._ends(one.at, one.to_neighbours_of))
            for one in edit.portal
        ]
        sentences += [
            self._reward("new_reward", node, amount)
            for node, amount in edit.rewards.items()
        ]
        for node in edit.chances:
            sentences.append(
                self._say(
                    "chances",
                    place=self._names[node],
                    outcomes=self._outcomes(condition, node),
                )
            )
        return sentences

    def _ends(self, a: str, b: str) -> dict[str, str]:
        return {"place": self._names[a], "other": self._names[b]}

    def _outcomes(self, condition: spec.ConditionSpec, node: str) -> str:
        chances = condition.world.chances[node].items()
        return listed(
            [
                self._say("outcome", place=self._names[to], percent=f"{100 * p:g}")
                for to, p in chances
            ]
        )

    def question(self, condition: spec.ConditionSpec, item: spec.Item) -> list[str]:
        sentences = []
        if condition.ask == "groups":
            sentences.append(self._say("groups"))
        elif condition.ask == "edges":
            sentences.append(self._say("edges"))
        elif condition.ask == "shortest_path":
            goal = self._names[item.goals[0]]
            sentences.append(self._say("shortest_path", item.start, goal=goal))
        else:
            sentences += [
                self._say("return"),
                self._say("only_one"),
                self._say(_best(condition)),
            ]
        if condition.instruct is not None:
            sentences.append(self._say(condition.instruct, item.start))
        if condition.ask == "edges":
            return [*sentences, self._requests["edges"]]
        request = (
            condition.form
            if condition.form != "path" or condition.include_start
            else "rest"
        )
        return [*sentences, self._say(request, item.start)]


def _best(condition: spec.ConditionSpec) -> str:
    if condition.form == "path":
        return "best_path"
    return "best_chance" if condition.world.chances else "best_first_step"


def answer_text(
    domain: spec.Domain, condition: spec.ConditionSpec, path: Sequence[str]
) -> str:
    """Return a path as an answer in the required form. If edges are asked for, ``path``
    has two nodes per edge.
    """
    if condition.form == "edges":
        pairs = zip(path[::2], path[1::2], strict=False)
        return f"Answer: {', '.join(f'({domain.names[a]}, {domain.names[b]})' for a, b in pairs)}"
    said = path if condition.include_start else path[1:]
    if condition.form == "first_step":
        said = path[1:2]
    return f"Answer: {', '.join(domain.names[node] for node in said)}"


# -- cells, and their subjects

#: Name under which the log records the view of a dialogue, which has none.
NO_VIEW = "dialogue"
#: Number of generations in a design with a verdict, if the user does not set it.
GENERATIONS = 30
#: Settings of a language model that apply to a dialogue.
_OF_A_DIALOGUE = (
    "temperature",
    "max_tokens",
    "backend",
    "id",
    "served",
    "dropped",
    "reasoning",
)

_Trials = tuple[TrialRecord, tuple[TaskEvent, ...]]


def plan_dialogues(
    specification: spec.DialogueSpecification, request: CellRequest
) -> Iterator[CellPlan]:
    """Yield the plans of all cells of a dialogue: every condition in every domain (at
    every temperature).
    """
    language = request.language
    several = len(request.temperatures) > 1
    own: Mapping[str, Any] = language.settings if language else {}
    temperatures = (
        request.temperatures if language and several else (own.get("temperature"),)
    )
    for temperature in temperatures:
        for domain, condition in specification.variants:
            yield plan_dialogue(
                specification,
                request.model,
                domain,
                condition,
                request.design,
                subjects=request.subjects,
                agent=language.agent.name if language else "",
                settings={**own, "temperature": temperature} if language else None,
                in_variant=bool(language) and several,
            )


def plan_dialogue(
    specification: spec.DialogueSpecification,
    model: str,
    domain: str,
    condition: str,
    design: Design,
    *,
    subjects: int | None = None,
    agent: str = "",
    settings: Mapping[str, Any] | None = None,
    in_variant: bool = False,
) -> CellPlan:
    """Return the plan of one cell: a condition in the words of a domain, compared with
    chance.

    ``settings`` are the settings of a language model, or None for a baseline. Without
    ``subjects``, a design with a verdict has ``GENERATIONS`` of them, and another
    design its own number. ``in_variant`` says whether to add the model's temperature to
    the cell's name.
    """
    asked, document = specification.conditions[condition], specification.document
    kept = {
        name: value
        for name, value in (settings or {}).items()
        if name in _OF_A_DIALOGUE
    }
    temperature = kept.get("temperature")
    trials = len(asked.asked_of(0))
    subjects = subjects or (GENERATIONS if design.claims else design.subjects)
    # The number of subjects is fixed, as in the published study.
    design = with_fixed_number(design)
    return CellPlan(
        model=model,
        protocol=specification.name,
        view=NO_VIEW,
        variant=Variant(
            condition=spec.variant_name(
                domain, condition, temperature if in_variant else None
            )
        ),
        title=f"{specification.title}: {condition}, {domain.replace('_', ' ')}",
        dimension=document.dimension,
        species=document.species or "",
        sha256=specification.sha256,
        design=design.name,
        subjects=subjects,
        trials=trials if design.trials is None else min(trials, design.trials),
        memory="none",
        margin=document.margin,
        chance=asked.chance(subjects),
        against="chance",
        items=True,
        claims=design.claims,
        agent=agent,
        settings={
            **kept,
            "domain": domain,
            "condition": condition,
            "group": asked.group,
        },
    )


def begin(paradigm: GraphParadigm, plan: CellPlan, subject: int) -> GraphDialogue:
    return paradigm.dialogue(
        setting(plan, "domain"), setting(plan, "condition"), subject
    )


def setting(plan: CellPlan, name: str) -> str:
    """Return a setting that ``plan_dialogue`` recorded in the cell. Raise RunLogError
    if it is missing.
    """
    found = plan.settings.get(name)
    if not isinstance(found, str):
        raise RunLogError(
            f"The plan of {plan.label} has no {name}, so the log is damaged. Use an undamaged copy."
        )
    return found


def respond(
    paradigm: GraphParadigm,
    respondent: RespondentSpec,
    plan: CellPlan,
    seed: int,
    subject: int,
) -> Iterator[_Trials]:
    """Run a baseline. Yield each conversation when it ends."""
    dialogue = begin(paradigm, plan, subject)
    answer = _answers_of(respondent, dialogue, plan, seed, subject)
    for trial in range(plan.trials):
        turns = len(_held(dialogue, trial, answer))
        if not turns:
            return
        yield _record(dialogue, plan, subject, trial, turns, {}), ()


def _held(dialogue: GraphDialogue, trial: int, answer: _Answer) -> list[str]:
    """Hold the next conversation and return its questions. An empty list says that no
    conversation is left.
    """
    questions = []
    question = dialogue.begin_trial()
    while question is not None:
        questions.append(question)
        question = dialogue.answer(answer(trial, len(questions) - 1, question))
    return questions


def _answers_of(
    respondent: RespondentSpec,
    dialogue: GraphDialogue,
    plan: CellPlan,
    seed: int,
    subject: int,
) -> _Answer:
    origin = agent_seed(plan, seed, subject)

    def answer(trial: int, turn: int, question: str) -> str:
        name = f"{origin}|{plan.variant}|{trial}|{turn}"
        own = hashlib.sha256(name.encode()).digest()
        return respondent.reply(
            dialogue.puzzle, question, int.from_bytes(own[:8], "big") >> 1
        )

    return answer


async def talk(
    paradigm: GraphParadigm, plan: CellPlan, seed: int, subject: int, caller: Asker
) -> AsyncGenerator[_Trials, None]:
    """Run a language model. Yield each conversation when it ends.

    The messages are the protocol's system prompt, the questions, and the model's own
    replies, and nothing else. Raise what ``caller.ask`` raises, and SubjectStoppedError
    after too many empty replies in a row.
    """
    dialogue, watch = begin(paradigm, plan, subject), SilenceWatch()
    before = (Message("system", (dialogue.system,)),) if dialogue.system else ()
    origin = _origin(plan, seed, subject)
    settings, asked = plan.settings, 0
    for trial in range(plan.trials):
        question = dialogue.begin_trial()
        if question is None:
            return
        messages: tuple[Message, ...] = before
        cut_off = empty = 0
        while question is not None:
            messages = (*messages, Message("user", (question,)))
            asked += 1
            request = ChatRequest(
                model=settings["id"],
                messages=messages,
                sampling=Sampling(
                    temperature=settings.get("temperature"),
                    max_tokens=settings.get("max_tokens"),
                    seed=None
                    if "seed" in settings["dropped"]
                    else call_seed(origin, asked),
                ),
                conversation=f"{origin:016x}",
                extra=settings["served"],
            )
            reply = await caller.ask(trial, request)
            watch.see(reply)
            cut_off += reply.finish == "length"
            empty += not reply.text.strip() and reply.finish != "length"
            messages = (*messages, Message("assistant", (reply.text,)))
            question = dialogue.answer(reply.text)
        tally = {"calls": len(messages) // 2, "truncated": cut_off, "empty": empty}
        yield _record(dialogue, plan, subject, trial, len(messages) // 2, tally), ()


def _origin(plan: CellPlan, seed: int, subject: int) -> int:
    """Return the seed of a subject's calls. It differs between cells, because their
    calls share a server's cache.
    """
    state = hashlib.sha256(
        f"{agent_seed(plan, seed, subject)}|{plan.variant}".encode()
    ).digest()
    return int.from_bytes(state[:8], "big") >> 1


def _record(
    dialogue: GraphDialogue,
    plan: CellPlan,
    subject: int,
    trial: int,
    turns: int,
    tally: Mapping[str, int],
) -> TrialRecord:
    result = dialogue.result()
    temperature = plan.settings.get("temperature")
    if temperature is not None:
        result = dataclasses.replace(
            result, variables={**result.variables, "temperature": temperature}
        )
    done = {"reward": float(bool(result.success)), "steps": turns, "tally": dict(tally)}
    return trial_record(plan, subject, trial, result, **done)


# -- conversations of a run, for the player and for the explanation of failures

#: Stands for the action in the frame of an answer.
ANSWERED = "?"


def watch(
    log: RecordedRun,
    plugins: Plugins,
    paradigm: GraphParadigm,
    plan: CellPlan,
    wanted: Mapping[int, set[int]],
) -> Iterator[WatchedTrial]:
    """Yield the wanted trials with scores computed anew. A language model's answers
    come from the log, but a baseline answers again.

    Raise RunLogError for a trial whose result differs from the log, or whose answers
    are not all in the log.
    """
    for subject, trials in wanted.items():
        calls: dict[int, list[CallRecord]] = {}
        for call in log.calls.of_life(plan, subject):
            calls.setdefault(call.trial, []).append(call)
        dialogue = begin(paradigm, plan, subject)
        if plan.agent:
            answer = _recorded(plan, subject, calls)
        else:
            seed = log.manifest["options"]["seed"]
            baseline = plugins.respondent(plan.model)
            answer = _answers_of(baseline, dialogue, plan, seed, subject)
        for record in log.trials(plan, subject):
            if record.missing:
                break
            asked = _held(dialogue, record.trial, answer)
            done = len(asked), record.tally
            check_same(record, _record(dialogue, plan, subject, record.trial, *done))
            if record.trial in trials:
                yield _watched(record, asked, calls.get(record.trial, ()))


def _watched(
    record: TrialRecord, asked: Sequence[str], calls: Sequence[CallRecord]
) -> WatchedTrial:
    rewards = [0.0] * (len(asked) - 1) + [record.reward]
    frames = [Frame("", question, 0.0) for question in asked[:1]]
    frames += map(Frame, ANSWERED * len(asked), asked, rewards)
    replayed = [ReplayedCall(one, step, "") for step, one in enumerate(calls)]
    return WatchedTrial(record=record, frames=frames, calls=replayed)


def _recorded(
    plan: CellPlan, subject: int, calls: Mapping[int, Sequence[CallRecord]]
) -> _Answer:
    """Return a function that gives the answers recorded in the log."""

    def answer(trial: int, turn: int, question: str) -> str:
        own = [one.reply.text for one in calls.get(trial, ()) if one.fault is None]
        if turn < len(own):
            return own[turn]
        raise RunLogError(
            f"The log has only {len(own)} of the answers in trial {trial + 1} of subject {subject} "
            f"({plan.model} on {plan.label}). Use an undamaged copy."
        )

    return answer


def conversation(
    log: RecordedRun, specification: spec.DialogueSpecification, record: TrialRecord
) -> str:
    """Return a failed trial in words: its outcome, the parsed answer, up to three
    correct answers, and the shortened questions and replies.
    """
    condition, said = (
        specification.conditions[str(record.variables["condition"])],
        record.variables,
    )
    domain = specification.domains[str(said["domain"])]
    item = next(
        item
        for item in condition.items
        if item.start == said["start"] and " ".join(item.goals) == said["goal"]
    )
    right = [
        " - ".join(domain.names[node] for node in key) for key in item.keys[:3]
    ] or [str(item.number)]
    answer = " - ".join(
        domain.names.get(node, node) for node in str(said["answer"]).split()
    )
    lines = [
        f"A failed trial: generation {record.subject}, question {record.trial + 1}: {record.outcome}.",
        f"  read as    {answer or 'nothing'}",
        f"  right is   {' | '.join(right)}",
    ]
    return "\n".join([*lines, *_said(log, record)])


def _said(log: RecordedRun, record: TrialRecord) -> Iterator[str]:
    """Yield the questions and replies of a trial, shortened."""
    plan = next(plan for plan in log.plans() if plan.key == record.key)
    for call in log.calls.of_life(plan, record.subject):
        if call.trial == record.trial:
            yield f"  question   {textwrap.shorten(call.asked, 400, placeholder=' ...')}"
            yield f"  reply      {textwrap.shorten(call.reply.text, 800, placeholder=' ...')}"
