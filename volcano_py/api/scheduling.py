"""The groups ``scheduling.k8s.io`` (priority classes) and ``scheduling.volcano.sh`` (PodGroups, queues)."""

from typing import Any

import msgspec

from volcano_py.api.meta import Condition, LabelSelector, ObjectMeta, ResourceList, Wire


class PriorityClass(Wire, frozen=True):
    """A named priority."""

    metadata: ObjectMeta
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class NetworkTopology(Wire, frozen=True):
    """How far apart pods may be placed."""

    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Wire, frozen=True):
    """How pods of a gang form sub-groups, and what each of them needs."""

    name: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Wire, frozen=True):
    """A gang: how many of its pods must run together, and in which queue."""

    min_member: int = 0
    min_task_member: dict[str, int] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] = []


class PodGroupStatus(Wire, frozen=True):
    """Where a gang stands."""

    phase: str = ""
    conditions: list[Condition] = []
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(Wire, frozen=True):
    """A gang of pods."""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class QueueGuarantee(Wire, frozen=True):
    """What is never taken from a queue."""

    resource: ResourceList = {}


class NodeGroups(Wire, frozen=True):
    """Names of node groups that a queue must or would rather use, or as anti-affinity must not or would rather not."""

    required: list[str] = msgspec.field(default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[str] = msgspec.field(default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution")


class QueueAffinity(Wire, frozen=True):
    """Which node groups a queue's tasks go to."""

    node_group_affinity: NodeGroups | None = None
    node_group_anti_affinity: NodeGroups | None = None


class QueueSpec(Wire, frozen=True):
    """A share of the cluster."""

    weight: int = 1
    capability: ResourceList = {}
    deserved: ResourceList = {}
    guarantee: QueueGuarantee = QueueGuarantee()
    reclaimable: bool | None = None
    affinity: QueueAffinity | None = None
    parent: str = ""
    priority: int = 0
    dequeue_strategy: str = ""
    extend_clusters: list[dict[str, Any]] = []
    """Clusters that jobs of the queue may be forwarded to, by another project."""


class QueueStatus(Wire, frozen=True):
    """Where a queue stands."""

    state: str = ""
    allocated: ResourceList = {}


class Queue(Wire, frozen=True):
    """A queue."""

    metadata: ObjectMeta
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
