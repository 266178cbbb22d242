"""A shape: exactly those properties of a pod on which a scheduling answer may depend.

A hundred thousand pods of a batch cluster have a few dozen shapes. Whatever depends on (shape, node) is computed once
per shape, so pods of equal shape must get equal answers. `Field` lists the contents of a shape, and every plugin
declares which of these fields it reads.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Final, NamedTuple

from volcano_py.api import keys
from volcano_py.model.pod_terms import PodSelector, PodTerms, Spread
from volcano_py.model.requirements import Requirement as Requirement

LEAST_REQUEST: Final = 0.1
"""The least amount of a resource that counts as a request, in its unit (millicores, bytes)."""


class Field(Enum):
    """The properties of a pod on which an answer may depend."""

    REQUEST = auto()  # pods included
    NODE_SELECTOR = auto()
    NODE_AFFINITY = auto()  # required terms
    PREFERRED_NODE_AFFINITY = auto()
    TOLERATIONS = auto()
    HOST_PORTS = auto()
    IMAGES = auto()  # and the number of containers
    POD_TERMS = auto()  # affinity and anti-affinity to other pods
    SPREAD = auto()
    SELECTED_BY = auto()  # the selectors in use that select it: all that matters of its namespace and labels
    GATES = auto()
    LIMITS = auto()
    STRATEGY = auto()
    UNSUPPORTED = auto()  # constraints that are recognised but not implemented


class Admission(IntEnum):
    """The state of a pod with regard to the scheduling gate of its queue (`api.keys.QUEUE_GATE`)."""

    NONE = 0  # it has no such gate, or this scheduler ignores it
    AT_GATE = 1  # it waits until its queue has room for it
    THROUGH = 2  # the gate has been removed: the pod counts for its queue


class NodeTerm(NamedTuple):
    """Requirements on a node, all of which must hold."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it requires nothing."""
        return not self.expressions and not self.fields


class PreferredTerm(NamedTuple):
    """A term that adds its weight to the score of each node it matches."""

    weight: int
    term: NodeTerm


class Tolerance(NamedTuple):
    """A toleration."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


ALL_ADDRESSES: Final = "0.0.0.0"
NO_TERMS: Final = PodTerms()


class HostPort(NamedTuple):
    """A port of the node that a pod occupies."""

    ip: str  # ALL_ADDRESSES or a single address
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The scheduling-relevant part of a pod's spec, hashable."""

    request: tuple[tuple[str, float], ...] = ((keys.PODS, 1.0),)  # (resource, amount), sorted by name
    nonzero: tuple[float, float] = (0.0, 0.0)  # cpu and memory with kube-scheduler's defaults for missing requests
    node_selector: tuple[tuple[str, str], ...] = ()  # sorted by key
    node_affinity: tuple[NodeTerm, ...] | None = None  # any of the terms; None: no required affinity
    preferred: tuple[PreferredTerm, ...] = ()  # preferred node affinity, without terms that have no effect
    tolerations: tuple[Tolerance, ...] = ()
    host_ports: tuple[HostPort, ...] = ()  # distinct and sorted
    images: tuple[str, ...] = ()  # of containers and image volumes, sorted; an image may appear more than once
    n_containers: int = 0  # init containers included
    pod_terms: PodTerms = NO_TERMS
    spread: tuple[Spread, ...] = ()
    selected_by: frozenset[PodSelector] = frozenset()
    """The selectors in use that select this pod. `snapshot.selection` fills them in, not the code that reads pods."""
    gates: tuple[str, ...] = ()  # scheduling gates; the queue's gate is left out if `admission` is not NONE
    admission: Admission = Admission.NONE
    limits: tuple[float, float] = (0.0, 0.0)  # cpu and memory it may use at most, 0 for no limit
    strategy: tuple[str, str] = ("", "")  # annotated type and weights of its resource strategy
    left_out: tuple[tuple[str, float], ...] = ()
    """The part of the request that has no row of its own (`resources.NOT_OFFERED`); `snapshot.shapes` fills it in."""
    unsupported: tuple[str, ...] = ()  # field paths, for instance spec.volumes[data].persistentVolumeClaim

    @property
    def best_effort(self) -> bool:
        """Whether it requests nothing besides pods."""
        return not any(amount >= LEAST_REQUEST for name, amount in self.request if name != keys.PODS)

    @property
    def gated(self) -> bool:
        """Whether a scheduling gate keeps it from being placed; the API server itself says why it waits."""
        return bool(self.gates) or self.admission is Admission.AT_GATE

    @property
    def has_inter_pod_terms(self) -> bool:
        """Whether other pods affect where it may go, or it affects other pods."""
        return bool(self.selected_by or self.spread or self.pod_terms != NO_TERMS)

    @property
    def selectors(self) -> frozenset[PodSelector]:
        """The selectors of its own terms."""
        terms = self.pod_terms
        if not self.spread and terms == NO_TERMS:
            return frozenset()
        preferred = (term.term for term in terms.preferred)
        of_terms = {term.selector for term in (*terms.near, *terms.away, *preferred)}
        return frozenset(of_terms | {spread.selector for spread in self.spread})
