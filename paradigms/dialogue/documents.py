"""The shape of a dialogue protocol: a graph, its vocabularies, and the conditions under
which it is asked about.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from cheesebench.interfaces import DEFAULT_EDITION
from cheesebench.protocol import documents

_WORD = r"^[A-Za-z0-9_]+$"


def _is_word(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 <= value < 10**6
    return (
        isinstance(value, str)
        and 0 < len(value) <= documents.MAX_NAME
        and value.isascii()
        and value.replace("_", "a").isalnum()
    )


def _as_text(value: Any) -> Any:
    return (
        str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    )


def _as_pair(value: Any) -> Any:
    if isinstance(value, list):
        if len(value) != 2:
            raise PydanticCustomError(
                "shape", "{expected}", {"expected": "a pair of nodes [a, b]"}
            )
        return tuple(value)
    return value


#: A node of a graph: a number or a name.
NodeId = Annotated[
    str,
    Field(pattern=_WORD),
    BeforeValidator(_as_text, json_schema_input_type=str | int),
    documents.checked(
        _is_word,
        f"a node (a number or a name of letters, digits and _; at most {documents.MAX_NAME} characters)",
    ),
]
#: A condition's name may begin with a digit (``2stepPath``).
ConditionName = Annotated[
    str,
    Field(pattern=_WORD),
    documents.checked(
        _is_word,
        f"a name (letters, digits, _; at most {documents.MAX_NAME} characters)",
    ),
]
Edge = Annotated[tuple[NodeId, NodeId], BeforeValidator(_as_pair)]
Amount = Annotated[
    float, Field(ge=0), documents.checked(documents.is_number, "a number of at least 0")
]


class Vocabulary(documents.DocumentModel):
    """What the nodes are called in one domain."""

    each: documents.Text | None = Field(
        None,
        description="The name of every node that `names` does not list. It must contain {n}, which stands for the node.",
    )
    names: dict[NodeId, documents.Text] = Field(
        default_factory=dict, description="Names of single nodes."
    )
    scene: documents.Name | None = Field(
        None,
        description="The wording: rooms, places, people, objects, or one of `scenes`. Default: the one of `scenes` "
        'with the name of the domain, otherwise the shipped scene for this domain (docs/cogeval.md, "Words"), usually places.',
    )


def _vocabulary(value: Any) -> Any:
    if isinstance(value, str):
        return {"each": value}
    if isinstance(value, dict) and not set(value) & {"each", "names", "scene"}:
        return {"names": value}
    return value


class Graph(documents.DocumentModel):
    """Nodes, edges, rewards, and the names of the nodes in every domain."""

    directed: documents.Truth = Field(
        False,
        description="Whether edges lead only from the first node to the second. If false, they lead both ways.",
    )
    start: NodeId = Field(
        description="The node where paths begin, unless `pairs` sets another."
    )
    edges: list[Edge] = Field(
        min_length=1, description="Pairs of nodes. Every name used here is a node."
    )
    rewards: dict[NodeId, Amount] = Field(
        default_factory=dict,
        description="Rewards by node. Other nodes have no reward.",
    )
    vocabulary: dict[
        documents.Name,
        Annotated[
            Vocabulary,
            BeforeValidator(_vocabulary, json_schema_input_type=str | dict[str, Any]),
        ],
    ] = Field(
        min_length=1,
        description="What the nodes are called, by domain: a pattern such as `room {n}`, names by node, or a mapping "
        "with `each`, `names` and `scene`.",
    )


class GraphArena(documents.DocumentModel):
    """The place of a dialogue: a graph that is described."""

    graph: Graph = Field(description="What is described.")


class Portal(documents.DocumentModel):
    """A one-way step from one node to all nodes that were neighbours of another before
    the edit.
    """

    at: NodeId = Field(description="The node where the step begins.")
    to_neighbours_of: NodeId = Field(
        description="The node to whose neighbours (before the edit) the step leads."
    )


class Edit(documents.DocumentModel):
    """A local change to the graph or its rewards."""

    remove: list[Edge] = Field(default_factory=list, description="Edges to remove.")
    add: list[Edge] = Field(
        default_factory=list, description="Edges to add. Their nodes may be new."
    )
    rewards: dict[NodeId, Amount] = Field(
        default_factory=dict,
        description="New rewards by node. Other nodes keep theirs.",
    )
    portal: Annotated[
        list[Portal],
        BeforeValidator(
            lambda v: [v] if isinstance(v, dict) else v,
            json_schema_input_type=Portal | list[Portal],
        ),
    ] = Field(
        default_factory=list,
        description="One or more one-way steps, each to all neighbours of another node.",
    )
    chances: dict[NodeId, dict[NodeId, documents.Probability]] = Field(
        default_factory=dict,
        description="Nodes that are left at random, with the probability of each next node (adding up to 1). These "
        "next nodes replace the ones to which the node's edges led.",
    )


class Pairs(documents.DocumentModel):
    """``count`` start-goal pairs that are ``distance`` steps apart, spread evenly over
    all such pairs.
    """

    distance: documents.Count = Field(
        description="Length of the shortest path, in steps."
    )
    count: documents.Count = Field(
        2, description="Number of pairs (all, if there are fewer)."
    )
    each: documents.Count | None = Field(
        None,
        description="How many of these pairs each subject is asked about (default: all). The next subject is asked "
        "about the pairs after them.",
    )


class AnswerShape(documents.DocumentModel):
    """The form in which a path is asked for."""

    form: Literal["path", "first_step"] = Field(
        "path",
        description="The whole path, or its first step. Groups and edges are answered in forms of their own.",
    )
    include_start: documents.Truth = Field(
        True,
        description="Whether a path must begin with its start. If false, it may also begin with the next node. "
        "Answers to shortest_path must always begin with the start.",
    )


class Condition(documents.DocumentModel):
    """One way to ask. With ``after``, the question of that condition comes first, and
    only the last answer counts.
    """

    ask: Literal["best_path", "shortest_path", "groups", "edges"] = Field(
        description="The question: the path to the largest reward, the path from a start to a goal, the number of "
        "groups, or a list of all edges."
    )
    after: ConditionName | None = Field(
        None, description="The condition asked before this one."
    )
    edit: Edit | None = Field(None, description="What changes before the question.")
    pairs: Pairs | list[Edge] | None = Field(
        None,
        description="For shortest_path: the pairs [start, goal], or their distance.",
    )
    instruct: Literal["step_by_step", "breadth_first", "depth_first"] | None = Field(
        None, description="Instruction on how to think about the question."
    )
    answer: AnswerShape | None = Field(
        None,
        description="Form of the answer. Default: for best_path, the protocol's; for shortest_path, the whole path.",
    )
    group: documents.Text | None = Field(
        None,
        description="The group to which the analysis assigns the condition, such as Traversal, RewReval, TransReval, "
        "Shortcut or Detour. The analysis of deviance leaves out Groups and Map. Default: derived from `ask` and `edit`.",
    )
    same_policy: documents.Truth = Field(
        False,
        description="Whether an answer that was right before the edit may still be right after it.",
    )


class Scene(documents.DocumentModel):
    """The wording of a vocabulary. Sentences that are left out come from the scene
    ``like``.
    """

    like: documents.Name = Field(
        "places", description="The shipped scene that supplies all other sentences."
    )
    nouns: list[documents.Text] | None = Field(
        None, description="Words of a name that an answer may leave out."
    )
    thing: documents.Text | None = Field(
        None, description="The word for a node, in the singular."
    )
    things: documents.Text | None = Field(
        None, description="The word for nodes, in the plural."
    )
    setting: documents.Text | None = Field(
        None, description="How the description begins."
    )
    link: documents.Text | None = Field(
        None, description="Says to which nodes a node leads."
    )
    two_way: documents.Text | None = Field(
        None, description="Says that edges work in both directions."
    )
    one_way: documents.Text | None = Field(
        None, description="Says that edges work in one direction only."
    )
    reward: documents.Text | None = Field(
        None, description="Says what reward a node has."
    )
    return_: documents.Text | None = Field(
        None,
        alias="return",
        description="Says that the tour is over, back at the start.",
    )
    only_one: documents.Text | None = Field(
        None, description="Says that only one reward can be taken."
    )
    best_path: documents.Text | None = Field(
        None, description="The question for the best path."
    )
    best_first_step: documents.Text | None = Field(
        None, description="The question for the first step of the best path."
    )
    best_chance: documents.Text | None = Field(
        None, description="The question for the first step if steps are partly random."
    )
    shortest_path: documents.Text | None = Field(
        None, description="The question for the shortest path."
    )
    groups: documents.Text | None = Field(
        None, description="The question for the number of groups."
    )
    edges: documents.Text | None = Field(
        None, description="The question for all edges."
    )
    change: documents.Text | None = Field(
        None, description="Says that something has changed."
    )
    closed: documents.Text | None = Field(
        None, description="Says that an edge has been removed."
    )
    opened: documents.Text | None = Field(
        None, description="Says that there is a new edge."
    )
    closed_one_way: documents.Text | None = Field(
        None, description="Says that a one-way edge has been removed."
    )
    opened_one_way: documents.Text | None = Field(
        None, description="Says that there is a new one-way edge."
    )
    new_reward: documents.Text | None = Field(
        None, description="Says what new reward a node has."
    )
    portal: documents.Text | None = Field(
        None, description="Says where a portal is and leads."
    )
    chances: documents.Text | None = Field(
        None, description="Says that a node is now left at random."
    )
    outcome: documents.Text | None = Field(
        None, description="Part of `chances`: one next node, with its probability."
    )


class DialogueDocument(documents.DocumentModel):
    """A dialogue protocol: questions about a described graph, in one edition."""

    version: Literal[1] = Field(description="Version of the language.")
    paradigm: documents.Name = Field(
        description="The paradigm's id. Together with `edition` it names the protocol."
    )
    edition: documents.Name = Field(
        DEFAULT_EDITION, description="Which edition of the paradigm this is."
    )
    extends: documents.ProtocolName | None = Field(
        None,
        description="The parent protocol, as id or id@edition. Mappings are merged, other values are replaced, and null deletes "
        "a key.",
    )
    title: documents.Text | None = Field(None, description="Title for people.")
    cite: dict[documents.Name, documents.Text] = Field(
        default_factory=dict,
        description="Identifiers of the publication by kind: `arxiv`, `doi`, ...",
    )
    dimension: documents.Text = Field("planning", description="Cognitive dimension.")
    species: documents.Text | None = Field(
        None, description="Species that the task is modelled on, for readers only."
    )
    arena: GraphArena = Field(description="The graph.")
    system: documents.Text | None = Field(
        None,
        description="What a model is told before the first question of a conversation.",
    )
    scenes: dict[documents.Name, Scene] = Field(
        default_factory=dict, description="The protocol's own scenes (wordings)."
    )
    conditions: dict[ConditionName, Condition] = Field(
        min_length=1, description="Conditions (ways of asking), by name."
    )
    answer: AnswerShape = Field(
        AnswerShape(),
        description="The form of the answer to best_path, unless a condition sets another.",
    )
    margin: float = Field(
        0.10,
        gt=0,
        lt=1,
        description="Margin of the verdict, as a proportion: FAIL means that the model is not better than chance by this much.",
    )
    notes: documents.Text | list[documents.Text] | None = Field(
        None, description="Free text for readers."
    )
    acknowledged: dict[documents.Name, documents.Text] = Field(
        default_factory=dict,
        description="Why a warning or note of `cheesebench lint` is meant, or cannot be mended, by its code, as in "
        "`W311: the light is the cue`. Lint drops the finding, and reports give the reason.",
    )

    @property
    def reference(self) -> list[documents.Reference]:
        """Always empty, because no animal has been asked."""
        return []
