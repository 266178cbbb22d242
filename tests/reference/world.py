"""Builders of records, and a cluster of records with the store that it fills.

Quantities are in the units of manifests. The wire objects of tests come from `volcano_py.testing`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from random import Random

from volcano_py.api.quantity import WireQuantity
from volcano_py.model.facts import BudgetRecord, NamespaceRecord
from volcano_py.model.hyper_nodes import HyperNode
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaintRecord, TaskRecord
from volcano_py.model.pod_terms import PodTerms, Spread
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.resources import amounts_of
from volcano_py.model.shape import NO_TERMS, HostPort, NodeTerm, PreferredTerm, Shape, Tolerance
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.store import ClusterStore

GPU = "nvidia.com/gpu"
MIB = 1024.0 * 1024.0
NAMESPACE = "ns"


@dataclass(frozen=True)
class Task:
    record: TaskRecord
    shape: Shape
    status: TaskStatus = TaskStatus.PENDING
    node: str = ""


@dataclass(frozen=True)
class World:
    """The inputs of a snapshot."""

    nodes: tuple[NodeRecord, ...] = ()
    queues: tuple[QueueRecord, ...] = (QueueRecord("default", state="Open"),)
    jobs: tuple[JobRecord, ...] = ()
    tasks: tuple[Task, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # labels
    budgets: tuple[BudgetRecord, ...] = ()
    hyper_nodes: tuple[HyperNode, ...] = ()

    def store(self, shuffle: int | None = None) -> ClusterStore:
        """Fill a store; ``shuffle`` seeds another order of arrival."""
        steps = (
            [("set_node", (node,)) for node in self.nodes]
            + [("set_queue", (queue,)) for queue in self.queues]
            + [("set_job", (job,)) for job in self.jobs]
            + [("facts.set_namespace", (NamespaceRecord(name, labels),)) for name, labels in self.namespaces.items()]
            + [("facts.set_budget", (budget,)) for budget in self.budgets]
            + [("facts.set_hyper_node", (one,)) for one in self.hyper_nodes]
            + [("set_task", (task.record, task.shape, task.status, task.node)) for task in self.tasks]
        )
        if shuffle is not None:
            Random(shuffle).shuffle(steps)
        store = ClusterStore()
        for method, arguments in steps:
            attrgetter(method)(store)(*arguments)
        return store

    def task(self, name: str) -> Task:
        return next(task for task in self.tasks if task.record.name == name)


def a_node(
    name: str = "n1",
    *,
    cpu: WireQuantity | None = 4,
    memory: WireQuantity | None = "16Gi",
    pods: WireQuantity | None = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[TaintRecord] = (),
    unschedulable: bool = False,
    closed: str = "",
    images: Mapping[str, int] | None = None,
    **others: WireQuantity,
) -> NodeRecord:
    return NodeRecord(
        name=name,
        allocatable=amounts(cpu=cpu, memory=memory, pods=pods, **others),
        labels=dict(labels or {}),
        taints=tuple(taints),
        unschedulable=unschedulable,
        closed=closed,
        images=dict(images or {}),
    )


def a_shape(
    *,
    cpu: WireQuantity | None = None,
    memory: WireQuantity | None = None,
    node_selector: Mapping[str, str] | None = None,
    node_affinity: tuple[NodeTerm, ...] | None = None,
    preferred: Sequence[PreferredTerm] = (),
    tolerations: Sequence[Tolerance] = (),
    host_ports: Sequence[HostPort] = (),
    images: Sequence[str] = (),
    pod_terms: PodTerms = NO_TERMS,
    spread: Sequence[Spread] = (),
    gates: Sequence[str] = (),
    unsupported: Sequence[str] = (),
    **others: WireQuantity,
) -> Shape:
    """Return the shape of a pod of one container; a missing request counts 100m or 200 MiB in ``nonzero``."""
    asked = amounts(cpu=cpu, memory=memory, **others)
    return Shape(
        request=tuple(sorted({**{name: amount for name, amount in asked.items() if amount}, "pods": 1.0}.items())),
        nonzero=(asked.get("cpu", 100.0), asked.get("memory", 200 * MIB)),
        node_selector=tuple(sorted((node_selector or {}).items())),
        node_affinity=node_affinity,
        preferred=tuple(preferred),
        tolerations=tuple(tolerations),
        host_ports=tuple(sorted(host_ports)),
        images=tuple(sorted(images)),
        n_containers=1,
        pod_terms=pod_terms,
        spread=tuple(spread),
        gates=tuple(gates),
        unsupported=tuple(unsupported),
    )


def amounts(**quantities: WireQuantity | None) -> dict[str, float]:
    """Return amounts; ``gpu`` is short for the usual resource name."""
    written = {GPU if name == "gpu" else name: text for name, text in quantities.items() if text is not None}
    return amounts_of(written, "test")


def a_task(
    name: str,
    shape: Shape | None = None,
    *,
    job: str | None = None,
    status: TaskStatus = TaskStatus.PENDING,
    node: str = "",
    namespace: str = NAMESPACE,
    **record: object,
) -> Task:
    fields = {"uid": f"uid-{namespace}-{name}", **record}
    return Task(TaskRecord(namespace=namespace, name=name, job=job, **fields), shape or a_shape(cpu=1), status, node)


def a_job(name: str = "j", *, queue: str = "default", namespace: str = NAMESPACE, **record: object) -> JobRecord:
    return JobRecord(key=JobKey(namespace, name), uid=f"uid-{namespace}-{name}", queue=queue, **record)


def a_queue(
    name: str = "default",
    parent: str = "",
    *,
    capability: Mapping[str, WireQuantity] | None = None,
    guarantee: Mapping[str, WireQuantity] | None = None,
    deserved: Mapping[str, WireQuantity] | None = None,
    **record: object,
) -> QueueRecord:
    """Return a queue that is open."""
    written = {"capability": capability, "guarantee": guarantee, "deserved": deserved}
    lists = {key: ResourceList.of(amounts(**quantities)) for key, quantities in written.items() if quantities}
    return QueueRecord(name, parent=parent, **{"state": "Open", **record, **lists})


def tasks_of(
    job: str, count: int, shape: Shape | None = None, *, role: str = "", first: int = 0, **options: object
) -> tuple[Task, ...]:
    """Return tasks named ``job-role-0``, ``job-role-1`` and so on."""
    stem = f"{job}-{role}" if role else job
    return tuple(
        a_task(f"{stem}-{index}", shape, job=job, role=role, **options) for index in range(first, first + count)
    )


def fixture_f(**replaced: NodeRecord) -> World:
    """Return the three nodes, with one pod each, to which the policies' tables of numbers refer."""
    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    nodes = {
        "n1": a_node("n1", cpu=4, memory="8Gi", labels={zone: "a", host: "n1", "disk": "ssd"}),
        "n2": a_node("n2", cpu=8, memory="16Gi", labels={zone: "a", host: "n2", "disk": "hdd"}),
        "n3": a_node("n3", cpu=4, memory="16Gi", labels={zone: "b", host: "n3"}),
    }
    running = TaskStatus.RUNNING
    return World(
        nodes=tuple({**nodes, **replaced}.values()),
        tasks=(
            a_task("e1", a_shape(cpu=1, memory="1Gi"), status=running, node="n1"),
            a_task("e2", a_shape(), status=running, node="n2"),
            a_task("e3", a_shape(cpu=3, memory="4Gi"), status=running, node="n3"),
        ),
    )
