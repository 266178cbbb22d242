"""Why each single node refuses a task. A `Rejection` only counts nodes; this names them, for tasks users ask about."""

from dataclasses import dataclass
from typing import NamedTuple

from volcano_py.model.rejections import Remedy, unavailable


class NodeAnswer(NamedTuple):
    """One reason why one node refuses a task."""

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
        """Whether an eviction on the node could help: no reason rules it out."""
        return all(answer.remedy is not Remedy.NONE for answer in self.answers)


@dataclass(frozen=True, slots=True)
class NodeRefusals:
    """Why all checked nodes refuse a task (Volcano: FitErrors)."""

    refusals: tuple[NodeRefusal, ...] = ()
    head: str = ""  # replaces the text that counts the checked nodes
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
