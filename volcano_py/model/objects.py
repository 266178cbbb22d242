"""The cluster's objects as the core sees them: immutable records without wire details.

A record describes an object; its status, node and counts live in columns. The cache and every snapshot share records,
so records are never changed, only replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import NamedTuple

import msgspec

from volcano_py.model.resource_lists import NOTHING, ResourceList
from volcano_py.model.sub_groups import NetworkTopology, SubGroupPolicy
from volcano_py.model.volumes import Disk, TaskClaim


class JobKey(NamedTuple):
    """The namespace and name of a PodGroup."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TaskRef(NamedTuple):
    """The identity of one pod. A pod recreated under the same name has another uid."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TaskTrait(IntFlag):
    """Properties of a task, one per bit of the column `TaskColumns.traits`."""

    PREEMPTABLE = 1  # its users allow evicting it
    CRITICAL = 2  # the cluster itself depends on it
    NEVER_PREEMPTS = 4  # nothing is evicted for it
    REVOCABLE = 8  # it may use revocable nodes, which are lent for a part of the day
    COOLS_DOWN = 16  # it is protected for a while after it was placed, see TaskRecord.protected_until
    BEST_EFFORT = 32  # its quality of service; a task with neither this nor GUARANTEED is burstable
    GUARANTEED = 64
    BACKING_OFF = 128  # its bind failed a moment ago; only in snapshots


class TaskRecord(msgspec.Struct, frozen=True, gc=False):
    """One pod. The record is small because there may be a hundred thousand of them."""

    uid: str
    namespace: str
    name: str
    job: str | None = None  # name of the PodGroup in the same namespace
    priority: int = 1  # pod.spec.priority, 1 when absent; the annotation volcano.sh/task-priority replaces it
    creation: float = 0.0  # seconds since the epoch
    role: str = ""  # volcano.sh/task-spec
    foreign: bool = False  # it belongs to another scheduler: counted on its node, never placed by us
    labels: tuple[str, ...] = ()  # key, value, key, value, ...: a flat tuple saves memory; see `label_map`
    owner: str = ""  # kind/name of the ReplicationController, ReplicaSet or StatefulSet that made it, "" for none
    condition: str = ""  # message of the pod's condition PodScheduled=False, "" if it has none
    nominated: str = ""  # the node on which room is reserved for it while pending (status.nominatedNodeName), "": none
    nominated_by_us: bool = True  # False if another program wrote this nomination, so that we must not withdraw it
    started: float = 0.0  # when the kubelet started it, seconds since the epoch, 0 for never
    traits: int = TaskTrait.PREEMPTABLE.value  # TaskTrait
    protected_until: float = 0.0  # seconds since the epoch: end of its cool-down
    claims: tuple[TaskClaim, ...] = ()  # the volume claims it uses, in the order of its volumes
    disks: tuple[Disk, ...] = ()  # the disks it names without a claim, sorted

    @property
    def ref(self) -> TaskRef:
        """The identity used in decisions."""
        return TaskRef(self.namespace, self.name, self.uid)

    @property
    def label_map(self) -> dict[str, str]:
        """Its labels as a new dictionary."""
        return dict(zip(self.labels[::2], self.labels[1::2], strict=True))

    @property
    def has_volumes(self) -> bool:
        """Whether it uses volume claims or disks."""
        return bool(self.claims or self.disks)

    @property
    def key(self) -> JobKey | None:
        """The job it belongs to; a pod of another scheduler never belongs to one."""
        return None if self.job is None or self.foreign else JobKey(self.namespace, self.job)


class GroupCondition(NamedTuple):
    """A condition of a PodGroup, without times: the shell adds them."""

    type: str
    status: bool
    reason: str
    message: str
    transition_id: str = ""


class TopologyTexts(NamedTuple):
    """A PodGroup's annotations about the layout of its roles over nodes; None for a missing annotation."""

    affinity: str | None
    anti_affinity: str | None
    order: str | None


class Part(NamedTuple):
    """A number of tasks, or a percentage of all of them."""

    number: int
    percent: bool = False

    def of(self, total: int) -> int:
        """Return the number out of a total; a percentage is rounded up."""
        return -(-total * self.number // 100) if self.percent else self.number


class JobBudget(NamedTuple):
    """A job's annotated limit on evicting its tasks; at most one of the two fields is set."""

    min_available: Part | None = None
    max_unavailable: Part | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One PodGroup: its gang rule, its queue, and its current status."""

    key: JobKey
    uid: str
    queue: str
    min_available: int = 0
    task_min_available: Mapping[str, int] = field(default_factory=dict)  # role -> minimum of that role
    min_resources: Mapping[str, float] | None = None  # resource -> amount
    min_quota: Mapping[str, float] = field(default_factory=dict)  # the names of minResources that only quotas count
    priority: int = 0  # value of the PriorityClass, else the global default, else 0
    creation: float = 0.0  # seconds since the epoch
    waiting_time: float | None = None  # seconds after which the plugin sla permits enqueueing it (sla-waiting-time)
    topology: TopologyTexts | None = None  # of its roles
    network_topology: NetworkTopology | None = None
    sub_group_policies: tuple[SubGroupPolicy, ...] = ()
    preemptable: bool | None = None  # whether its users allow evicting it; None if not specified
    budget: JobBudget | None = None
    follows_pods: bool = False  # whether it was made for pods that existed: none is made because of its phase
    phase: str = ""  # as on the wire, "" counts as Pending
    conditions: tuple[GroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def has_topology(self) -> bool:
        """Whether the job, or some of its sub-groups, has a network topology, hard or soft."""
        return any(
            topology is not None and (topology.hard or topology.soft)
            for topology in (self.network_topology, *(policy.topology for policy in self.sub_group_policies))
        )

    @property
    def role_rule(self) -> Mapping[str, int]:
        """The minimums of roles that the job must meet (Volcano: CheckTaskReady and others).

        There are none if min_available is below their sum.
        """
        if self.min_available < sum(self.task_min_available.values()):
            return {}
        return self.task_min_available


class NodeGroupAffinity(NamedTuple):
    """The node group affinity of a queue's tasks, by group name."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    anti_required: tuple[str, ...] = ()
    anti_preferred: tuple[str, ...] = ()


class NodeGroupLimits(NamedTuple):
    """How much of each node group the tasks of a queue may use."""

    amounts: Mapping[str, Mapping[str, float]] = {}  # group -> resource -> amount; resources not named are unlimited
    problem: str = ""  # why the limits cannot be read; then no task of the queue is placed


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """One queue."""

    name: str
    uid: str = ""
    weight: int = 1
    priority: int = 0
    creation: float = 0.0  # seconds since the epoch
    state: str = ""  # "" counts as Open: no controller has set it yet
    capability: ResourceList = NOTHING  # the ceiling; 0 cpu or memory, or a scalar that is not named, means no limit
    deserved: ResourceList = NOTHING
    guarantee: ResourceList = NOTHING  # never reclaimed from it
    reclaimable: bool = True
    node_groups: NodeGroupAffinity | None = None
    node_group_limits: NodeGroupLimits | None = None
    parent: str = ""
    fifo: bool = False  # dequeueStrategy: whether a job that gets nothing blocks the jobs behind it
    hierarchy: tuple[tuple[str, float], ...] = ()  # path in drf's tree: names with weights, from below the root down

    @property
    def open(self) -> bool:
        """Whether it accepts new jobs."""
        return self.state in ("", "Open")

    @property
    def named_resources(self) -> list[str]:
        """The resources that it gives or limits, besides cpu and memory; some more than once."""
        amounts = (self.capability.scalars, self.guarantee.scalars, self.deserved.scalars)
        limits = self.node_group_limits.amounts.values() if self.node_group_limits is not None else ()
        return [name for each in (*amounts, *limits) for name in each]


class TaintRecord(NamedTuple):
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One node: its resources, labels, taints and images."""

    name: str
    allocatable: Mapping[str, float] = field(default_factory=dict)  # resource -> amount, oversubscription included
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[TaintRecord, ...] = ()
    unschedulable: bool = False
    capacity: tuple[float, float] = (0.0, 0.0)  # total cpu and memory, 0 if unknown
    oversubscription: tuple[float, float] = (0.0, 0.0)  # the part of cpu and memory that Volcano's agent adds
    closed: str = ""  # why nothing more may be placed here, "" if pods may be placed
    images: Mapping[str, int] = field(default_factory=dict)  # name of a present image -> bytes
