"""What is true in a simulation: pods and nodes as the API server has them, kept up to date with every change.

Invariants ask here, so that none of them has to walk through all objects or to read quantities again.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.simulation import objects
from tests.simulation.loop import Process
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked

_SUFFIXES: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9}
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Amounts(NamedTuple):
    """What pods ask for and nodes have: CPU in thousandths, memory in bytes, and a number of pods."""

    cpu: int
    memory: int
    pods: int

    def plus(self, other: "Amounts") -> "Amounts":
        """Return the sum."""
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def beyond(self, other: "Amounts") -> str:
        """Return of what there is more here than there, "" if of nothing."""
        pairs = zip(self._fields, self, other, strict=True)
        return ", ".join(f"{mine} {name} of {theirs}" for name, mine, theirs in pairs if mine > theirs)


NOTHING: Final = Amounts(0, 0, 0)


@dataclass(slots=True, eq=False)
class PodTruth:
    """One pod, by its uid; it stays as it was last when the pod is gone."""

    uid: str
    key: str
    request: Amounts
    scheduler: str
    priority: int = 0
    job: str = ""
    """The PodGroup that its annotation names."""
    node: str = ""
    ended: bool = False
    there: bool = True
    terminating: bool = False
    binder: Process | None = None
    """The process whose Binding was successful; None for a pod that was bound by others."""
    bound_at: float = 0.0
    bound_sent_at: float = 0.0
    bound_version: int = 0
    """The resourceVersion with which it got its node."""
    changed_at: float = 0.0

    @property
    def group(self) -> str:
        """The namespace and name of its PodGroup."""
        return f"{self.key.partition('/')[0]}/{self.job}"


@dataclass(slots=True)
class Truth:
    """All pods that ever were, those that hold room on nodes now, and every version of every node."""

    pods: dict[str, PodTruth] = field(default_factory=dict)
    on_node: dict[str, dict[str, PodTruth]] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    """The versions of the nodes that are there."""
    room: dict[int, Amounts] = field(default_factory=dict)
    """What a node has, by the resourceVersion of the node."""
    cordoned: set[int] = field(default_factory=set)
    """The versions in which a node was cordoned."""

    def changed(self, resource: str, event: Event, asked: "Asked | None", at: float) -> None:
        """Follow a change; call this before anybody asks about it."""
        if resource == objects.PODS:
            self._pod(event, asked, at)
        elif resource == objects.NODES:
            name = event.stored.obj["metadata"]["name"]
            if event.type == "DELETED":
                self.nodes.pop(name, None)
            else:
                self.nodes[name] = event.rv
                if event.stored.obj.get("spec", {}).get("unschedulable"):
                    self.cordoned.add(event.rv)
                self.room[event.rv] = _amounts(event.stored.obj["status"].get("allocatable", {}))

    def _pod(self, event: Event, asked: "Asked | None", at: float) -> None:
        obj = event.stored.obj
        meta, spec = obj["metadata"], obj["spec"]
        pod = self.pods.get(meta["uid"])
        if pod is None:
            pod = PodTruth(meta["uid"], event.stored.key, requested(spec), spec.get("schedulerName", ""))
            pod.priority = int(spec.get("priority", 0))
            self.pods[pod.uid] = pod
        pod.changed_at = at
        pod.job = meta.get("annotations", {}).get(objects.GROUP_NAME, "")
        pod.terminating = "deletionTimestamp" in meta
        node = spec.get("nodeName", "")
        if node and not pod.node:
            pod.node, pod.bound_at, pod.bound_version = node, at, event.rv
            if asked is not None and asked.resource == "pods/binding":
                pod.binder, pod.bound_sent_at = asked.client, asked.sent_at
        pod.ended = obj.get("status", {}).get("phase") in _ENDED
        pod.there = event.type != "DELETED"
        if pod.node:
            held = self.on_node.setdefault(pod.node, {})
            if pod.there and not pod.ended:
                held[pod.uid] = pod
            else:
                held.pop(pod.uid, None)


def quantity(text: str | int) -> int:
    """Return a quantity in thousandths of its unit."""
    number = str(text)
    if number.endswith("m"):
        return int(number[:-1])
    for suffix, factor in _SUFFIXES.items():
        if number.endswith(suffix):
            return int(float(number.removesuffix(suffix)) * factor * 1000)
    return int(float(number) * 1000)


def _amounts(found: dict[str, Any]) -> Amounts:
    return Amounts(
        quantity(found.get("cpu", 0)), quantity(found.get("memory", 0)) // 1000, quantity(found.get("pods", 0)) // 1000
    )


def _containers(containers: list[dict[str, Any]]) -> list[Amounts]:
    return [_amounts(each.get("resources", {}).get("requests", {})) for each in containers]


def requested(spec: dict[str, Any]) -> Amounts:
    """Return what a pod asks for: its containers together, or its largest init container, and one place."""
    cpu = memory = 0
    for each in _containers(spec.get("containers", [])):
        cpu, memory = cpu + each.cpu, memory + each.memory
    for each in _containers(spec.get("initContainers", [])):
        cpu, memory = max(cpu, each.cpu), max(memory, each.memory)
    overhead = _amounts(spec.get("overhead", {}))
    return Amounts(cpu + overhead.cpu, memory + overhead.memory, 1)
