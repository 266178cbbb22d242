"""A shape: everything about a pod that a scheduling answer may depend on, and nothing else.

A hundred thousand pods of a batch cluster have a few dozen shapes. Whatever depends on (shape, node) is computed once
per shape, so equality of shapes must mean equality of answers: `Field` lists what a shape holds, and every plugin
declares which of these fields it reads.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

from volcano_py.api import keys


class Field(Enum):
    """What of a pod an answer may depend on."""

    REQUEST = auto()  # what it asks for, pods included
    NODE_SELECTOR = auto()
    NODE_AFFINITY = auto()  # required terms
    PREFERRED_NODE_AFFINITY = auto()
    TOLERATIONS = auto()
    HOST_PORTS = auto()
    IMAGES = auto()  # and the number of containers
    GATES = auto()
    LIMITS = auto()
    STRATEGY = auto()
    UNSUPPORTED = auto()  # constraints that are recognised but not implemented yet


class Requirement(NamedTuple):
    """One requirement on a label or field of a node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


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
    gates: tuple[str, ...] = ()
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
