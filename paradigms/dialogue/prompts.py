"""Renders questions from the graph, a vocabulary and its scene. The texts are data; this module fills them in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cheesebench.paradigms.dialogue.language.scenes import requests
from cheesebench.paradigms.dialogue.language.specification import ConditionSpec, DialogueSpecification, Domain, Item


def questions(specification: DialogueSpecification, domain: Domain, condition: ConditionSpec, item: Item) -> list[str]:
    """Return the user's turns: the description and the first question, then changes and the next."""
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
    """Return names as a list in English: ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


class _Writer:
    def __init__(self, specification: DialogueSpecification, domain: Domain) -> None:
        self._graph = specification.document.arena.graph
        self._first = specification.world
        self._names = domain.names
        self._sentences = domain.wording.sentences
        self._requests = requests()

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
        """Return the tour: every edge mentioned once, then the rewards."""
        sentences = [self._say("setting")]
        described: set[tuple[str, str]] = set()
        for node in self._first.nodes:
            onward = [after for after in self._first.steps(node) if (node, after) not in described]
            if onward:
                sentences.append(self._link(node, onward))
            if not self._graph.directed:
                described.update((after, node) for after in onward)
        sentences.append(self._say("one_way" if self._graph.directed else "two_way"))
        if rewards:
            given = ((node, self._first.rewards.get(node, 0)) for node in self._first.nodes)
            sentences += [self._reward("reward", node, amount) for node, amount in given if amount]
        return sentences

    def _link(self, node: str, onward: Sequence[str]) -> str:
        return self._say("link", place=self._names[node], places=listed([self._names[after] for after in onward]))

    def _reward(self, key: str, node: str, amount: float) -> str:
        return self._say(key, place=self._names[node], amount=f"{amount:g}")

    def changes(self, condition: ConditionSpec) -> list[str]:
        """Return what an edit changes."""
        edit = condition.edit
        assert edit is not None
        way = "_one_way" if self._graph.directed else ""
        sentences = [self._say("change")]
        sentences += [self._say(f"closed{way}", **self._ends(a, b)) for a, b in edit.remove]
        sentences += [self._say(f"opened{way}", **self._ends(a, b)) for a, b in edit.add]
        sentences += [self._say("portal", **self._ends(one.at, one.to_neighbours_of)) for one in edit.portal]
        sentences += [self._reward("new_reward", node, amount) for node, amount in edit.rewards.items()]
        for node in edit.chances:
            sentences.append(self._say("chances", place=self._names[node], outcomes=self._outcomes(condition, node)))
        return sentences

    def _ends(self, a: str, b: str) -> dict[str, str]:
        return {"place": self._names[a], "other": self._names[b]}

    def _outcomes(self, condition: ConditionSpec, node: str) -> str:
        chances = condition.world.chances[node].items()
        return listed([self._say("outcome", place=self._names[to], percent=f"{100 * p:g}") for to, p in chances])

    def question(self, condition: ConditionSpec, item: Item) -> list[str]:
        """Return the question and the required form of its answer."""
        sentences = []
        if condition.ask == "groups":
            sentences.append(self._say("groups"))
        elif condition.ask == "edges":
            sentences.append(self._say("edges"))
        elif condition.ask == "shortest_path":
            goal = self._names[item.goals[0]]
            sentences.append(self._say("shortest_path", item.start, goal=goal))
        else:
            sentences += [self._say("return"), self._say("only_one"), self._say(_best(condition))]
        if condition.instruct is not None:
            sentences.append(self._say(condition.instruct, item.start))
        if condition.ask == "edges":
            return [*sentences, self._requests["edges"]]
        request = condition.form if condition.form != "path" or condition.include_start else "rest"
        return [*sentences, self._say(request, item.start)]


def _best(condition: ConditionSpec) -> str:
    if condition.form == "path":
        return "best_path"
    return "best_chance" if condition.world.chances else "best_first_step"


def answer_text(domain: Domain, condition: ConditionSpec, path: Sequence[str]) -> str:
    """Return a path as an answer in the form that the condition asks for; of edges their nodes, two by two."""
    if condition.form == "edges":
        pairs = zip(path[::2], path[1::2], strict=False)
        return f"Answer: {', '.join(f'({domain.names[a]}, {domain.names[b]})' for a, b in pairs)}"
    said = path if condition.include_start else path[1:]
    if condition.form == "first_step":
        said = path[1:2]
    return f"Answer: {', '.join(domain.names[node] for node in said)}"
