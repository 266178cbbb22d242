"""Inter-pod terms, pod by pod and node by node: kube-scheduler's rules in plain Python."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.reference.selection import selected, tolerates
from tests.reference.world import Task, World
from volcano_py.model.objects import NodeRecord
from volcano_py.model.pod_terms import PodSelector, PodTerm, Spread
from volcano_py.model.requirements import Requirement
from volcano_py.model.statuses import OCCUPYING_STATUSES, TaskStatus

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True)
class PlacedPod:
    """A pod on a node."""

    task: Task
    node: str
    terminating: bool = False


@dataclass
class PlacedPods:
    """Nodes and the pods on them; change ``pods`` as pods come and go."""

    nodes: dict[str, NodeRecord]
    pods: list[PlacedPod]
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def on(self, node: str) -> Iterator[PlacedPod]:
        return (pod for pod in self.pods if pod.node == node)

    def means(self, selector: PodSelector, task: Task) -> bool:
        space = task.record.namespace
        wanted = selector.namespace_labels
        inside = space in selector.namespaces
        if wanted is not None and all(_met(one, self.namespaces.get(space, {})) for one in wanted):
            inside = True
        if not inside or selector.labels is None or not selector.readable:
            return False
        labels = dict(zip(task.record.labels[::2], task.record.labels[1::2], strict=True))
        return all(_met(one, labels) for one in selector.labels)


def placed_pods(world: World) -> PlacedPods:
    nodes = {node.name: node for node in sorted(world.nodes, key=lambda node: node.name)}
    pods = [
        PlacedPod(task, task.node, task.status is TaskStatus.RELEASING)
        for task in world.tasks
        if task.node in nodes and task.status in OCCUPYING_STATUSES
    ]
    return PlacedPods(nodes, pods, world.namespaces)


def _met(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return not (key in labels and labels[key] in values)
    return (key in labels) == (operator == "Exists")


def affinity_reason(task: Task, node: NodeRecord, cluster: PlacedPods) -> str:
    """Return the code of InterPodAffinity's refusal of a node, "" if it accepts the node."""
    terms = task.shape.pod_terms
    if terms.near and not _near(task, terms.near, node, cluster):
        return "pod-affinity"
    for term in terms.away:
        if any(cluster.means(term.selector, pod.task) for pod in _in_domain(term.key, node, cluster)):
            return "pod-anti-affinity"
    for pod in cluster.pods:
        for term in pod.task.shape.pod_terms.away:
            if cluster.means(term.selector, task) and _same(term.key, node, cluster.nodes[pod.node]):
                return "existing-anti-affinity"
    return ""


def _near(task: Task, terms: Sequence[PodTerm], node: NodeRecord, cluster: PlacedPods) -> bool:
    if any(term.key not in node.labels for term in terms):
        return False
    fitting = [pod for pod in cluster.pods if all(cluster.means(term.selector, pod.task) for term in terms)]
    if all(any(_same(term.key, node, cluster.nodes[pod.node]) for pod in fitting) for term in terms):
        return True
    somewhere = any(term.key in cluster.nodes[pod.node].labels for pod in fitting for term in terms)
    return not somewhere and all(cluster.means(term.selector, task) for term in terms)


def _same(key: str, one: NodeRecord, other: NodeRecord) -> bool:
    return key in one.labels and key in other.labels and one.labels[key] == other.labels[key]


def _in_domain(key: str, node: NodeRecord, cluster: PlacedPods) -> Iterator[PlacedPod]:
    return (pod for pod in cluster.pods if _same(key, node, cluster.nodes[pod.node]))


def spread_reason(task: Task, node: NodeRecord, cluster: PlacedPods) -> str:
    """Return the code of the hard spread constraints' refusal of a node, "" if they accept the node."""
    hard = [spread for spread in task.shape.spread if spread.hard]
    for spread in hard:
        if spread.key not in node.labels:
            return "topology-spread-label"
        counts: Counter[str] = Counter()
        for other in cluster.nodes.values():
            if all(one.key in other.labels for one in hard) and _included(task, spread, other):
                counts[other.labels[spread.key]] += _pods_of(task, spread, other, cluster)
        fewest = min(counts.values()) if counts and len(counts) >= spread.min_domains else 0
        itself = int(cluster.means(spread.selector, task))
        if counts[node.labels[spread.key]] + itself - fewest > spread.max_skew:
            return "topology-spread"
    return ""


def _included(task: Task, spread: Spread, node: NodeRecord) -> bool:
    if spread.honor_affinity and not selected(task.shape, node):
        return False
    hard = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    tolerated = (any(tolerates(one, taint) for one in task.shape.tolerations) for taint in hard)
    return not spread.honor_taints or all(tolerated)


def _pods_of(task: Task, spread: Spread, node: NodeRecord, cluster: PlacedPods) -> int:
    if not spread.selector.labels:
        return 0
    return sum(cluster.means(spread.selector, pod.task) and not pod.terminating for pod in cluster.on(node.name))


def affinity_scores(task: Task, group: Sequence[NodeRecord], cluster: PlacedPods) -> list[int]:
    """Return InterPodAffinity's scores of a group of candidates."""
    raw = []
    for node in group:
        total = 0
        for weight, term in task.shape.pod_terms.preferred:
            total += weight * sum(cluster.means(term.selector, pod.task) for pod in _in_domain(term.key, node, cluster))
        for pod in cluster.pods:
            for weight, term in pod.task.shape.pod_terms.preferred:
                if cluster.means(term.selector, task) and _same(term.key, node, cluster.nodes[pod.node]):
                    total += weight
        raw.append(total)
    lowest, width = min(raw), max(raw) - min(raw)
    return [int(100.0 * ((total - lowest) / width)) if width else 0 for total in raw]


def spread_scores(task: Task, group: Sequence[NodeRecord], cluster: PlacedPods) -> list[int]:
    """Return PodTopologySpread's scores of a group of candidates, 0 for all without a soft constraint."""
    soft = [spread for spread in task.shape.spread if not spread.hard]
    own = not any(spread.default for spread in soft)
    counting = [node for node in group if not own or all(spread.key in node.labels for spread in soft)]
    if not soft or not counting:
        return [0] * len(group)
    raw: dict[str, int] = {}
    for node in counting:
        total = 0.0
        for spread in soft:
            if spread.key not in node.labels:
                continue
            if spread.key == HOSTNAME:
                size, pods = len(counting), _pods_of(task, spread, node, cluster)
            else:
                size = len({one.labels.get(spread.key, "") for one in counting})
                pods = sum(
                    _pods_of(task, spread, other, cluster)
                    for other in cluster.nodes.values()
                    if _same(spread.key, node, other)
                    and (not own or all(one.key in other.labels for one in soft))
                    and _included(task, spread, other)
                )
            total += pods * math.log(size + 2) + (spread.max_skew - 1)
        raw[node.name] = math.floor(total + 0.5)
    lowest, highest = min(raw.values()), max(0, *raw.values())
    return [
        0 if node.name not in raw else 100 * (highest + lowest - raw[node.name]) // highest if highest else 100
        for node in group
    ]
