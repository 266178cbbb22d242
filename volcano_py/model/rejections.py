"""Rejections: each is a value with plugin, stable code and numbers, from which all texts are made.

Texts are Volcano's FitErrors word for word, except that the node count is always the true number of nodes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Remedy(Enum):
    """Whether an eviction could help; the values are kube-scheduler's codes."""

    EVICTION = "Unschedulable"
    NONE = "UnschedulableAndUnresolvable"
    UNKNOWN = "Error"  # there is only a text: a plugin gave no more, or failed before it looked at nodes


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """One kind of refusal; ``code`` is stable, ``text`` is what users read."""

    plugin: str
    code: str
    text: str
    resolvable: bool = False  # an eviction could lift it
    before_nodes: bool = False  # it holds for the pod itself: no node is looked at, and all of them refuse

    @property
    def remedy(self) -> Remedy:
        """Whether an eviction could help."""
        if self.before_nodes:
            return Remedy.UNKNOWN
        return Remedy.EVICTION if self.resolvable else Remedy.NONE


@dataclass(frozen=True, slots=True)
class Refusal:
    """How many nodes refused a task for one reason."""

    reason: Reason
    nodes: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a task found no node: the refusals of all nodes, or one reason that does not depend on nodes."""

    n_nodes: int
    refusals: tuple[Refusal, ...] = ()
    blocked: Reason | None = None

    @property
    def message(self) -> str:
        """The text for conditions and events; equal rejections have equal texts."""
        if self.blocked is not None:
            return self.blocked.text
        return unavailable(self.n_nodes, ((refusal.nodes, refusal.reason.text) for refusal in self.refusals))


def unavailable(n_nodes: int, reasons: Iterable[tuple[int, str]], head: str = "") -> str:
    """Return ``0/5 nodes are unavailable: 3 Insufficient cpu, 2 node(s) were unschedulable.``

    The reasons are sorted as text. ``head`` replaces the words before the colon.
    """
    histogram = ", ".join(sorted(f"{count} {text}" for count, text in reasons))
    head = head or f"0/{n_nodes} nodes are unavailable"
    return f"{head}: {histogram}." if histogram else head
