"""The cluster's objects as the core sees them: immutable records without wire details.

A record says what an object *is*; where it stands (status, node, counts) lives in columns. Records are shared between
the cache and every snapshot, so they are never changed, only replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import NamedTuple

import msgspec

from volcano_py.model.resource_lists import NOTHING, ResourceList


class JobKey(NamedTuple):
    """The namespace and name of a PodGroup."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TaskRef(NamedTuple):
    """One pod, not merely one of its name: a pod recreated under the same name has another uid."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class TaskTrait(IntFlag):
    """What a task is, in the bits of its column `TaskColumns.traits`."""

    PREEMPTABLE = 1  # its users agree that it is evicted
    CRITICAL = 2  # the cluster itself depends on it
    NEVER_PREEMPTS = 4  # nothing is evicted for it
    REVOCABLE = 8  # it may use nodes that are lent for a part of the day
    COOLS_DOWN = 16  # it is left alone for a while after it was placed, see TaskRecord.protected_until
    BEST_EFFORT = 32  # its quality of service; neither of both is burstable
    GUARANTEED = 64
    BACKING_OFF = 128  # its bind failed a moment ago; only in snapshots


class TaskRecord(msgspec.Struct, frozen=True, gc=False):
    """One pod. Small on purpose: there may be a hundred thousand."""

    uid: str
    namespace: str
    name: str
    job: str | None = None  # name of the PodGroup in the same namespace
    priority: int = 1  # pod.spec.priority, 1 when absent; the annotation volcano.sh/task-priority replaces it
    creation: float = 0.0  # seconds since the epoch
    role: str = ""  # volcano.sh/task-spec
    foreign: bool = False  # asks for another scheduler: counted where it stands, never placed by us
    labels: tuple[str, ...] = ()  # key, value, key, value, ...: flat, for there are many; see `label_map`
    owner: str = ""  # kind/name of the ReplicationController, ReplicaSet or StatefulSet that made it, "" for no such
    condition: str = ""  # message of PodScheduled=False as it stands on the pod, "" when there is none
    nominated: str = ""  # the node whose room is held for it while it waits (status.nominatedNodeName), "" for none
    started: float = 0.0  # when its node took it up, seconds since the epoch, 0 for never
    traits: int = TaskTrait.PREEMPTABLE.value  # TaskTrait
    protected_until: float = 0.0  # seconds since the epoch: it cools down until then

    @property
    def ref(self) -> TaskRef:
        """The identity used in decisions."""
        return TaskRef(self.namespace, self.name, self.uid)

    @property
    def label_map(self) -> dict[str, str]:
        """Its labels, made anew."""
        return dict(zip(self.labels[::2], self.labels[1::2], strict=True))

    @property
    def key(self) -> JobKey | None:
        """The job it belongs to; a pod of another scheduler belongs to none, whatever it names."""
        return None if self.job is None or self.foreign else JobKey(self.namespace, self.job)


class GroupCondition(NamedTuple):
    """A condition of a PodGroup; times are the shell's business."""

    type: str
    status: bool
    reason: str
    message: str
    transition_id: str = ""


class TopologyTexts(NamedTuple):
    """How a PodGroup wants its roles laid out over nodes, as annotated; None for an annotation that is not there."""

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
    """How many of its tasks a job can spare, as annotated; at most one of both is set."""

    min_available: Part | None = None
    max_unavailable: Part | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One PodGroup: the rule of the gang, its queue, and what its status says now."""

    key: JobKey
    uid: str
    queue: str
    min_available: int = 0
    task_min_available: Mapping[str, int] = field(default_factory=dict)  # role -> minimum of that role
    min_resources: Mapping[str, float] | None = None  # resource -> amount
    min_quota: Mapping[str, float] = field(default_factory=dict)  # the rest of minResources: names only quotas count
    priority: int = 0  # value of the PriorityClass, else the global default, else 0
    creation: float = 0.0  # seconds since the epoch
    waiting_time: float | None = None  # seconds after which it need not ask to be let in (sla-waiting-time)
    topology: TopologyTexts | None = None
    preemptable: bool | None = None  # whether its users agree that it is evicted; None: they do not say
    budget: JobBudget | None = None
    phase: str = ""  # as it stands on the wire, "" counts as Pending
    conditions: tuple[GroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class NodeGroupAffinity(NamedTuple):
    """Names of node groups for the tasks of a queue."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    anti_required: tuple[str, ...] = ()
    anti_preferred: tuple[str, ...] = ()


class NodeGroupLimits(NamedTuple):
    """What tasks of a queue may use of each node group."""

    amounts: Mapping[str, Mapping[str, float]] = {}  # group -> resource -> amount; what is not named has no limit
    problem: str = ""  # why they cannot be read; then nothing of the queue is placed


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """One queue."""

    name: str
    uid: str = ""
    weight: int = 1
    priority: int = 0
    creation: float = 0.0  # seconds since the epoch
    state: str = ""  # "" counts as Open: no controller has been there yet
    capability: ResourceList = NOTHING  # at most; nothing of cpu or memory, or a scalar not named: no limit
    deserved: ResourceList = NOTHING
    guarantee: ResourceList = NOTHING  # never taken from it
    reclaimable: bool = True
    node_groups: NodeGroupAffinity | None = None
    node_group_limits: NodeGroupLimits | None = None
    parent: str = ""
    fifo: bool = False  # dequeueStrategy: whether a job that gets nothing holds up those behind it
    hierarchy: tuple[tuple[str, float], ...] = ()  # drf's tree: names below the root with their weights, from the top

    @property
    def open(self) -> bool:
        """Whether it takes new work."""
        return self.state in ("", "Open")


class TaintRecord(NamedTuple):
    """A taint of a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """One node: what it has and what it keeps away."""

    name: str
    allocatable: Mapping[str, float] = field(default_factory=dict)  # resource -> amount, oversubscription included
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[TaintRecord, ...] = ()
    unschedulable: bool = False
    capacity: tuple[float, float] = (0.0, 0.0)  # cpu and memory it has altogether, 0 where it does not say
    oversubscription: tuple[float, float] = (0.0, 0.0)  # cpu and memory of these two that are not the kubelet's
    closed: str = ""  # why nothing more may be placed here, "" when it may
    images: Mapping[str, int] = field(default_factory=dict)  # name of an image that is there -> bytes
