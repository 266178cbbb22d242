"""The core group (``v1``): pods, nodes, namespaces, resource quotas, services, replication controllers."""

from datetime import datetime
from typing import Any

import msgspec

from volcano_py.api.meta import Condition, LabelSelector, LabelSelectorRequirement, ObjectMeta, ResourceList, Wire


class NodeSelectorTerm(Wire, frozen=True):
    """All of its requirements on labels and fields."""

    match_expressions: list[LabelSelectorRequirement] = []
    match_fields: list[LabelSelectorRequirement] = []


class NodeSelector(Wire, frozen=True):
    """Any of its terms."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Wire, frozen=True):
    """A term that adds its weight to the nodes it matches."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """Required and preferred nodes."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire, frozen=True):
    """Pods to stand near to or away from."""

    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A pod affinity term that adds its weight."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    """Pods to be near, required and preferred; as anti-affinity, pods to stay away from."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Wire, frozen=True):
    """A taint that a pod puts up with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Taint(Wire, frozen=True):
    """What a node keeps pods away with."""

    key: str
    effect: str
    value: str = ""


class ResourceRequirements(Wire, frozen=True):
    """Requests and limits of a container or of a whole pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Wire, frozen=True):
    """A port of a container."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class Container(Wire, frozen=True):
    """A container, init container or sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str = ""


class PersistentVolumeClaimSource(Wire, frozen=True):
    """A volume that is a claim."""

    claim_name: str = ""


class ImageVolumeSource(Wire, frozen=True):
    """A volume that is an image."""

    reference: str = ""


class GcePersistentDisk(Wire, frozen=True):
    """A volume that is a disk of Google."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Wire, frozen=True):
    """A volume that is a disk of Amazon."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class IscsiVolumeSource(Wire, frozen=True):
    """A volume that is a disk of an iSCSI target."""

    iqn: str = ""
    read_only: bool = False


class RbdVolumeSource(Wire, frozen=True):
    """A volume that is an image of Ceph."""

    monitors: list[str] = []
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Volume(Wire, frozen=True):
    """A volume of a pod; only what ties it to a node is read."""

    name: str = ""
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: IscsiVolumeSource | None = None
    rbd: RbdVolumeSource | None = None
    image: ImageVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: dict[str, Any] | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    """How evenly pods must stand over a topology."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: list[str] = []
    node_affinity_policy: str = ""
    node_taints_policy: str = ""


class PodResourceClaim(Wire, frozen=True):
    """A claim for a device."""

    name: str = ""


class PodSchedulingGate(Wire, frozen=True):
    """A gate that keeps a pod from being scheduled."""

    name: str = ""


class PodSpec(Wire, frozen=True):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    volumes: list[Volume] = []
    resource_claims: list[PodResourceClaim] = []
    scheduling_gates: list[PodSchedulingGate] = []
    host_network: bool = False


class ContainerStatus(Wire, frozen=True):
    """What a container has been given, which is not what it asks for while it is resized."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodStatus(Wire, frozen=True):
    """Where a pod stands."""

    phase: str = ""
    qos_class: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None  # of the pod as a whole, as those of its containers
    allocated_resources: ResourceList = {}
    nominated_node_name: str = ""
    start_time: datetime | None = None


class PodMeta(ObjectMeta, frozen=True):
    """What every object has, and who wrote which fields of it.

    The latter stays undecoded: it is as large as the rest of the pod, and hardly ever read.
    """

    managed_fields: msgspec.Raw = msgspec.Raw()


class Pod(Wire, frozen=True):
    """A pod."""

    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NodeSpec(Wire, frozen=True):
    """What an operator says about a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class ContainerImage(Wire, frozen=True):
    """An image that a node has, under all names it goes by."""

    names: list[str] = []
    size_bytes: int = 0


class NodeStatus(Wire, frozen=True):
    """What a node has."""

    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: list[Condition] = []
    images: list[ContainerImage] = []


class Node(Wire, frozen=True):
    """A node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Wire, frozen=True):
    """A namespace; what it says of itself is all in its metadata."""

    metadata: ObjectMeta


class ResourceQuotaSpec(Wire, frozen=True):
    """What a quota is meant to be."""

    hard: ResourceList = {}


class ResourceQuotaStatus(Wire, frozen=True):
    """What a quota enforces, and what is used of it."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Wire, frozen=True):
    """What the objects of a namespace may use together."""

    metadata: ObjectMeta
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class LabelledSpec(Wire, frozen=True):
    """Labels that pods must have, all of them."""

    selector: dict[str, str] | None = None


class Service(Wire, frozen=True):
    """A service."""

    metadata: ObjectMeta
    spec: LabelledSpec = LabelledSpec()


class ReplicationController(Wire, frozen=True):
    """A replication controller."""

    metadata: ObjectMeta
    spec: LabelledSpec = LabelledSpec()
