import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from cheesebench import (
    ACTIONS,
    TERMINATED,
    BaseSpecification,
    CellPlan,
    CellRequest,
    Diagnostics,
    DocumentModel,
    Listing,
    Node,
    Paradigm,
    StepwiseFamily,
    TrialResult,
    UnsuitableError,
    View,
    Words,
    hookimpl,
    identity,
    read_structure,
)

Chance = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1000)]


class Bandit(DocumentModel):
    """The levers: how often each pays, and how often a subject may pull."""

    levers: list[Chance] = Field(
        min_length=2, max_length=len(ACTIONS), description="Probability that each pays."
    )
    pulls: Count = Field(50, description="Trials of a subject: each is one pull.")


class BanditDocument(DocumentModel):
    """A bandit protocol."""

    version: Literal[1] = Field(description="Version of the language.")
    paradigm: str = Field(description="The id; with `edition` it names the protocol.")
    edition: str = Field(
        "default", description="Which edition of the paradigm this is."
    )
    extends: str | None = Field(None, description="The one parent, id or id@edition.")
    title: str | None = Field(None, description="Title for readers.")
    dimension: str = Field("exploration", description="Cognitive dimension.")
    bandit: Bandit = Field(description="The levers.")
    margin: float = Field(
        0.1, gt=0, lt=1, description="How far above chance counts as above chance."
    )


@dataclass(frozen=True)
class BanditSpecification(BaseSpecification):
    document: BanditDocument


class BanditSubject:
    """One subject. Its levers are in an order of their own, so that it has to find the
    best one.
    """

    waiting = False  # there are no steps without a choice

    def __init__(
        self, specification: BanditSpecification, seed: int, subject: int
    ) -> None:
        bandit = specification.document.bandit
        # All randomness comes from the seed.
        self._random = random.Random(f"{specification.sha256}|{seed}|{subject}")
        self._levers = self._random.sample(bandit.levers, len(bandit.levers))
        self._left = bandit.pulls

    def begin_trial(self) -> str | None:
        self._left -= 1
        levers = ", ".join(
            f"{action} pulls lever {n}"
            for n, action in enumerate(ACTIONS[: len(self._levers)], 1)
        )
        return (
            f"Before you are {len(self._levers)} levers. {levers}."
            if self._left >= 0
            else None
        )

    def step(self, action: int) -> tuple[str, float, int]:
        self._pulled = self._levers[action] if action < len(self._levers) else None
        paid = self._pulled is not None and self._random.random() < self._pulled
        return "The lever pays." if paid else "Nothing.", float(paid), TERMINATED

    def result(self) -> TrialResult:
        best = self._pulled == max(self._levers)
        return TrialResult(
            block="main",
            session=1,
            outcome="none" if self._pulled is None else "best" if best else "worse",
            success=best,
            compared=True,
            counters={},
            measures={"chance": self._pulled},
            variables={"best": f"lever {self._levers.index(max(self._levers)) + 1}"},
            path_length=0,
            bumps=0,
            events=(),
        )


@dataclass(frozen=True)
class BanditParadigm(Paradigm):
    specification: BanditSpecification

    def environment(self, view: View, seed: int, subject: int) -> BanditSubject:
        return BanditSubject(self.specification, seed, subject)


class BanditFamily(StepwiseFamily[BanditSpecification, BanditParadigm]):
    name, plural, document = "bandit", "bandits", BanditDocument
    recognised_by: ClassVar[dict[str, Any]] = {
        "required": ["bandit"]
    }  # for editors; CheeseBench calls ``matches``

    def matches(self, tree: Node) -> bool:
        return tree.child("bandit") is not None

    def load(
        self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
    ) -> BanditSpecification | None:
        document = read_structure(tree, diagnostics, BanditDocument)
        if document is None:
            return None
        levers = document.bandit.levers
        if levers.count(max(levers)) > 1:
            place = tree.find(["bandit", "levers"]).position
            diagnostics.error(
                900,
                place,
                "Two levers are the best.",
                "Let one pay more often than all others.",
            )
            return None
        return BanditSpecification(
            **identity(self.name, document, tree, path, ancestors)
        )

    def compile(self, specification: BanditSpecification) -> BanditParadigm:
        return BanditParadigm(specification)

    def listing(self, specification: BanditSpecification) -> Listing:
        bandit = specification.document.bandit
        row = {
            "bandit": specification.name,
            "levers": len(bandit.levers),
            "pulls": bandit.pulls,
        }
        return Listing(values={"levers": bandit.levers, "pulls": bandit.pulls}, row=row)

    def cells(
        self, specification: BanditSpecification, request: CellRequest
    ) -> Iterable[CellPlan]:
        if request.study is not None or request.controls:
            raise UnsuitableError(
                f"'{specification.name}' is a bandit, which has neither studies nor controls."
            )
        bandit = specification.document.bandit
        against = {
            "against": "chance",
            "chance": 1 / len(bandit.levers),
            "margin": specification.document.margin,
        }
        return [self.plan(specification, request, Words.name, bandit.pulls, **against)]


@hookimpl
def cheesebench_families() -> Iterable[BanditFamily]:
    return [BanditFamily()]


@hookimpl
def cheesebench_protocols() -> Iterable[Path]:
    return [Path(__file__).parent / "bandits"]
