"""A shape: everything about a pod that a scheduling answer may depend on, and nothing else.

A hundred thousand pods of a batch cluster have a few dozen shapes. Whatever depends on (shape, node) is computed once
per shape, so equality of shapes must mean equality of answers: `Field` lists what a shape holds, and every plugin
declares which of these fields it reads.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import Final, NamedTuple

from volcano_py.api import keys
from volcano_py.model.pod_terms import PodSelector, PodTerms, Spread
from volcano_py.model.requirements import Requirement as Requirement


class Field(Enum):
    """What of a pod an answer may depend on."""

    REQUEST = auto()  # what it asks for, pods included
    NODE_SELECTOR = auto()
    NODE_AFFINITY = auto()  # required terms
    PREFERRED_NODE_AFFINITY = auto()
    TOLERATIONS = auto()
    HOST_PORTS = auto()
    IMAGES = auto()  # and the number of containers
    POD_TERMS = auto()  # affinity and anti-affinity to other pods
    SPREAD = auto()
    SELECTED_BY = auto()  # what others' terms, and its own, say of it: namespace and labels as far as they matter
    GATES = auto()
    LIMITS = auto()
    STRATEGY = auto()
    UNSUPPORTED = auto()  # constraints that are recognised but not implemented yet


class Admission(IntEnum):
    """How a pod stands to the gate of its queue (`api.keys.QUEUE_GATE`)."""

    NONE = 0  # it has none, or this scheduler does not care for it
    AT_GATE = 1  # it waits until its queue may hold it
    THROUGH = 2  # the gate has been taken away: it counts for its queue


class NodeTerm(NamedTuple):
    """Requirements of which all must hold."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it requires nothing."""
        return not self.expressions and not self.fields


class PreferredTerm(NamedTuple):
    """A term that adds its weight to the nodes it matches."""

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
    """A port of the node that a pod takes for itself."""

    ip: str  # ALL_ADDRESSES, or one of them
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The scheduling-relevant part of a pod's spec, hashable."""

    request: tuple[tuple[str, float], ...] = ((keys.PODS, 1.0),)  # (resource, amount), sorted by name
    nonzero: tuple[float, float] = (0.0, 0.0)  # cpu and memory with kube-scheduler's defaults for missing requests
    node_selector: tuple[tuple[str, str], ...] = ()  # sorted by key
    node_affinity: tuple[NodeTerm, ...] | None = None  # any of the terms; None: no required affinity
    preferred: tuple[PreferredTerm, ...] = ()  # preferred node affinity, without terms that say nothing
    tolerations: tuple[Tolerance, ...] = ()
    host_ports: tuple[HostPort, ...] = ()  # distinct and sorted
    images: tuple[str, ...] = ()  # of containers and image volumes, sorted; the same image may stand there twice
    n_containers: int = 0  # init containers included
    pod_terms: PodTerms = NO_TERMS
    spread: tuple[Spread, ...] = ()
    selected_by: frozenset[PodSelector] = frozenset()
    """Those of the selectors in use that mean this pod: filled in by `snapshot.selection`, never by who reads pods."""
    gates: tuple[str, ...] = ()  # without that of its queue, if `admission` says how it stands to it
    admission: Admission = Admission.NONE
    limits: tuple[float, float] = (0.0, 0.0)  # cpu and memory it may use at most, 0 for no limit
    strategy: tuple[str, str] = (
        "",
        "",
    )  # kind and weights of the scores it wants, as annotated
    unsupported: tuple[str, ...] = ()  # field paths, for instance spec.volumes[data].persistentVolumeClaim

    @property
    def best_effort(self) -> bool:
        """Whether it asks for nothing but its own place."""
        return not any(amount >= 0.1 for name, amount in self.request if name != keys.PODS)

    @property
    def has_inter_pod_terms(self) -> bool:
        """Whether other pods make a difference to it, or it to them."""
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
