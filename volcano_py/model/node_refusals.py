"""Why not, node by node: what a `Rejection` counts, with names, for the few tasks that somebody asks about."""

from dataclasses import dataclass
from typing import NamedTuple

from volcano_py.model.rejections import Remedy, unavailable


class NodeAnswer(NamedTuple):
    """One reason of one node."""

    text: str
    remedy: Remedy = Remedy.UNKNOWN


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why one node refuses one task (Volcano: FitError)."""

    namespace: str
    task: str
    node: str
    answers: tuple[NodeAnswer, ...]

    @property
    def message(self) -> str:
        """The text for users."""
        reasons = ", ".join(answer.text for answer in self.answers)
        return f"task {self.namespace}/{self.task} on node {self.node} fit failed: {reasons}"

    @property
    def resolvable(self) -> bool:
        """Whether an eviction on the node is worth a thought: no reason says that none could help."""
        return all(answer.remedy is not Remedy.NONE for answer in self.answers)


@dataclass(frozen=True, slots=True)
class NodeRefusals:
    """Why all nodes that were asked refuse a task (Volcano: FitErrors)."""

    refusals: tuple[NodeRefusal, ...] = ()
    head: str = ""  # what happened, instead of how many nodes were asked
    hyper_node: str = ""  # the HyperNode that was searched, "" for the whole cluster

    @property
    def message(self) -> str:
        """The text for users: each reason with the number of nodes that gave it."""
        counts: dict[str, int] = {}
        for refusal in self.refusals:
            for answer in refusal.answers:
                counts[answer.text] = counts.get(answer.text, 0) + 1
        text = unavailable(len(self.refusals), ((count, text) for text, count in counts.items()), self.head)
        return f"In hyperNode {self.hyper_node}: {text}" if self.hyper_node else text

    @property
    def unresolvable_nodes(self) -> tuple[str, ...]:
        """Nodes on which no eviction could help, by name."""
        return tuple(sorted(refusal.node for refusal in self.refusals if not refusal.resolvable))
