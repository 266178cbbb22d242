"""Where there is room and who holds it: queue levels, nodes by group, and the PodGroups on them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from volcano_py.api import keys
from volcano_py.client import amounts, node_affinity
from volcano_py.client.amounts import Amounts
from volcano_py.client.counting import counted

Obj = Mapping[str, Any]
_ENDED = frozenset({"Succeeded", "Failed"})
ALL_NODES = "all nodes"


class Refusal(NamedTuple):
    """Why a node takes no pod, or no more."""

    text: str
    way: str = ""
    """What helps, if the amounts on the node do not matter; empty if they do."""
    too_small: bool = False
    """Whether a pod does not fit even if the node is empty."""

    @property
    def stays(self) -> bool:
        """Whether it stays when the pods on the node end."""
        return bool(self.way) or self.too_small


class Level(NamedTuple):
    """One queue on the way to the root, and what it still allows."""

    name: str
    state: str
    capability: Amounts
    deserved: Amounts
    allocated: Amounts
    lacks: Amounts
    """What the gang needs beyond the capability."""
    never: Amounts
    """What the gang needs in all, where that alone is beyond the capability."""

    @property
    def full(self) -> tuple[str, ...]:
        """The resources of which no more may be used."""
        return tuple(name for name, most in self.capability.items() if 0 < most <= self.allocated.get(name, Fraction()))


class NodeGroup(NamedTuple):
    """Nodes with one group label, judged for one pod of the gang."""

    name: str
    nodes: int
    fitting: int
    """Pods of this shape for which there is room."""
    refusals: tuple[tuple[Refusal, int], ...]
    """Why nodes do not take more, and how many nodes say so; the most common first."""
    suiting: Amounts
    """What the nodes have together that take such a pod when they are empty."""
    helping: frozenset[str]
    """What helps at once, because a node has room that it refuses for another reason."""


class _Judged(NamedTuple):
    """One node: how many such pods it takes, and why not more."""

    takes: int
    refusal: Refusal
    allocatable: Amounts
    has_room: bool
    """Whether it has room for one, also if it refuses for another reason."""


class Holder(NamedTuple):
    """A PodGroup, or a pod without one, whose pods stand on nodes."""

    name: str
    queue: str
    pods: int
    holds: Amounts


def path_of(queue: str, queues: Iterable[Obj]) -> list[str]:
    """Return the names from a queue to the root; a missing parent, or a circle, ends the path."""
    parents = {one["metadata"]["name"]: _parent(one) for one in queues}
    path: list[str] = []
    while queue in parents and queue not in path:
        path.append(queue)
        queue = parents[queue]
    return path


def subtree(queue: str, queues: Sequence[Obj]) -> set[str]:
    """Return the names of a queue and of all queues below it."""
    children: dict[str, list[str]] = {one["metadata"]["name"]: [] for one in queues}
    for one in queues:
        children.get(_parent(one), []).append(one["metadata"]["name"])
    found: set[str] = set()
    left = [queue] if queue in children else []
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += children[name]
    return found


def _parent(queue: Obj) -> str:
    named = str((queue.get("spec") or {}).get("parent") or "")
    return named or ("" if queue["metadata"]["name"] == keys.ROOT_QUEUE else keys.ROOT_QUEUE)


def queue_of(obj: Obj) -> str:
    """Return the queue of a job or PodGroup."""
    return str((obj.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE)


def levels(queue: str, queues: Sequence[Obj], needed: Amounts, held: Amounts) -> list[Level]:
    """Return what each level allows a gang that needs something, and holds something already."""
    by_name = {one["metadata"]["name"]: one for one in queues}
    found = []
    for name in path_of(queue, queues):
        spec, status = by_name[name].get("spec") or {}, by_name[name].get("status") or {}
        capability, allocated = amounts.read(spec.get("capability")), amounts.read(status.get("allocated"))
        beyond = {
            resource: allocated.get(resource, Fraction()) + amount - capability[resource]
            for resource, amount in needed.items()
            if resource in capability and amount > 0
        }
        lacks = {resource: amount for resource, amount in beyond.items() if amount > 0}
        in_all = {resource: needed[resource] + held.get(resource, Fraction()) for resource in lacks}
        never = {resource: amount for resource, amount in in_all.items() if amount > capability[resource]}
        state = str(status.get("state") or "")
        found.append(Level(name, state, capability, amounts.read(spec.get("deserved")), allocated, lacks, never))
    return found


def node_groups(nodes: Iterable[Obj], placed: Iterable[Obj], pod: Obj) -> list[NodeGroup]:
    """Return, for each group of nodes, how many such pods fit and why most nodes refuse."""
    used: dict[str, list[Amounts]] = {}
    requests = amounts.Requests()
    for one in placed:
        name = (one.get("spec") or {}).get("nodeName")
        if name and (one.get("status") or {}).get("phase") not in _ENDED:
            used.setdefault(name, []).append(requests.of(one))
    wanted = amounts.requests_of(pod)
    groups: dict[str, list[_Judged]] = {}
    for node in nodes:
        metadata = node["metadata"]
        group = (metadata.get("labels") or {}).get(keys.LABEL_NODE_GROUP) or ALL_NODES
        groups.setdefault(group, []).append(_judged(node, amounts.total(used.get(metadata["name"], [])), wanted, pod))
    if len(groups) > 1 and ALL_NODES in groups:
        groups["no group"] = groups.pop(ALL_NODES)
    return [_group(group, judged) for group, judged in sorted(groups.items())]


def _group(name: str, judged: Sequence[_Judged]) -> NodeGroup:
    refusals = tuple(Counter(one.refusal for one in judged).most_common())
    suiting = amounts.total(one.allocatable for one in judged if not one.refusal.stays)
    helping = frozenset(one.refusal.way for one in judged if one.refusal.way and one.has_room)
    return NodeGroup(name, len(judged), sum(one.takes for one in judged), refusals, suiting, helping)


def refusals_of(groups: Iterable[NodeGroup]) -> list[tuple[Refusal, int]]:
    """Return why nodes of all groups do not take more, and how many nodes say so; the most common first."""
    found: Counter[Refusal] = Counter()
    for group in groups:
        found.update(dict(group.refusals))
    return found.most_common()


def in_all(groups: Iterable[NodeGroup], names: Iterable[str]) -> Amounts:
    """Return what all nodes have together that take a pod of the gang when they are empty, whoever holds it."""
    found = amounts.total(one.suiting for one in groups)
    return {name: found.get(name, Fraction()) for name in names}


def holders(placed: Iterable[Obj], groups: Iterable[Obj], needed: Iterable[str], own: Iterable[str]) -> list[Holder]:
    """Return who holds the needed resources, most of the scarcest first; ``own`` are PodGroups to leave out."""
    queues = {key_of(one): queue_of(one) for one in groups}
    names = {key_of(one): _name(one) for one in groups}
    held: dict[str, list[Amounts]] = {}
    requests = amounts.Requests()
    for pod in placed:
        if not (pod.get("spec") or {}).get("nodeName") or (pod.get("status") or {}).get("phase") in _ENDED:
            continue
        held.setdefault(group_of(pod), []).append(requests.of(pod))
    order = list(needed)
    leave_out = set(own)
    found = [
        Holder(names.get(key, key), queues.get(key, "-"), len(lists), amounts.total(lists))
        for key, lists in held.items()
        if key not in leave_out
    ]
    return sorted(found, key=lambda one: ([-one.holds.get(name, Fraction()) for name in order], one.name))


def group_of(pod: Obj) -> str:
    """Return the key of a pod's PodGroup; a pod without one stands for itself."""
    metadata = pod["metadata"]
    group = (metadata.get("annotations") or {}).get(keys.GROUP_NAME) or f"pod {metadata['name']}"
    return f"{metadata.get('namespace', '')}/{group}"


def key_of(group: Obj) -> str:
    """Return namespace and name of a PodGroup."""
    return f"{group['metadata'].get('namespace', '')}/{group['metadata']['name']}"


def _name(group: Obj) -> str:
    """Return the job of a PodGroup, which users know, or the PodGroup itself."""
    owner = next((o for o in group["metadata"].get("ownerReferences") or () if o.get("kind") == "Job"), None)
    return f"{group['metadata'].get('namespace', '')}/{owner['name']}" if owner else key_of(group)


def _judged(node: Obj, used: Amounts, wanted: Amounts, pod: Obj) -> _Judged:
    allocatable = amounts.read((node.get("status") or {}).get("allocatable"))
    free = {name: allocatable.get(name, Fraction()) - used.get(name, Fraction()) for name in wanted}
    room = {name: int(free[name] // amount) for name, amount in wanted.items() if amount > 0}
    count = max(min(room.values(), default=0), 0)
    if refusal := _refusal(node, pod.get("spec") or {}):
        return _Judged(0, refusal, allocatable, count > 0)
    return _Judged(count, _by_amounts(room, allocatable, wanted), allocatable, count > 0)


def _by_amounts(room: Mapping[str, int], allocatable: Amounts, wanted: Amounts) -> Refusal:
    """Return why a node takes no more pods than it has room for; ``room`` says for how many, by resource."""
    count = min(room.values(), default=0)
    if count > 0:
        scarce = sorted(name for name, number in room.items() if number == count)
        return Refusal(f"{', '.join(scarce)} enough for {counted(count, 'pod')}")
    short = sorted(name for name, number in room.items() if number < 1)
    never = [name for name in short if allocatable.get(name, Fraction()) < wanted[name]]
    if never:
        return Refusal(f"node is too small: {', '.join(never)}", too_small=True)
    return Refusal(f"not enough free {', '.join(short)}")


def _refusal(node: Obj, wishes: Obj) -> Refusal | None:
    """Return why a node takes no pod with such a spec, however much room it has."""
    spec = node.get("spec") or {}
    conditions = {one.get("type"): one.get("status") for one in (node.get("status") or {}).get("conditions") or ()}
    if conditions.get("Ready", "True") != "True":
        return Refusal("node is not ready", "add nodes, or repair those that are not ready")
    if spec.get("unschedulable"):
        return Refusal("node is cordoned", "add nodes, or uncordon nodes (kubectl uncordon NODE)")
    labels = node["metadata"].get("labels") or {}
    selector = (wishes.get("nodeSelector") or {}).items()
    if lacking := [f"{key}={value}" for key, value in selector if labels.get(key) != value]:
        label = ",".join(lacking)
        return Refusal(f"node lacks label {label}", f"label nodes with {label}, or correct nodeSelector")
    if unmatched := node_affinity.unmatched(wishes, node):
        return Refusal(
            f"node affinity {unmatched} does not match",
            f"label nodes so that {unmatched} holds, or correct the node affinity",
        )
    tolerations = wishes.get("tolerations") or ()
    for taint in spec.get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not any(
            _tolerates(one, taint) for one in tolerations
        ):
            value = f"={taint['value']}" if taint.get("value") else ""
            full = f"{taint.get('key')}{value}:{taint['effect']}"
            return Refusal(f"taint {full} is not tolerated", f"tolerate the taint {full}, or remove it from nodes")
    return None


def _tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return bool(
        toleration.get("key") == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")
    )
