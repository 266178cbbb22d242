"""The parts of objects that explanations need. Ten thousand pods are 50 MB; decoded to these parts, a tenth of it.

A shape is a type for `Api.list_of`: what it does not name is skipped without being read. The objects stay plain
dictionaries.
"""

from typing import Any, TypedDict

Amounts = dict[str, Any]


class Owner(TypedDict, total=False):
    """Whom an object belongs to."""

    kind: str
    name: str
    uid: str


Annotations = TypedDict("Annotations", {"scheduling.k8s.io/group-name": str}, total=False)


class Resources(TypedDict, total=False):
    """What a container requests."""

    requests: Amounts | None
    limits: Amounts | None


class Container(TypedDict, total=False):
    """What a container holds."""

    resources: Resources | None
    restartPolicy: str


class PodMetadata(TypedDict, total=False):
    """Which pod, and of which PodGroup."""

    name: str
    namespace: str
    annotations: Annotations | None


class PodSpec(TypedDict, total=False):
    """Where a pod stands, and with what."""

    nodeName: str
    containers: list[Container] | None
    initContainers: list[Container] | None
    overhead: Amounts | None


class Phase(TypedDict, total=False):
    """Whether a pod has ended."""

    phase: str


class PlacedPod(TypedDict, total=False):
    """A pod that holds room on a node."""

    metadata: PodMetadata
    spec: PodSpec
    status: Phase


class MemberSpec(PodSpec, total=False):
    """What nodes judge of a pod, too."""

    nodeSelector: dict[str, str] | None
    affinity: dict[str, Any] | None
    schedulerName: str
    tolerations: list[dict[str, Any]] | None


class MemberStatus(Phase, total=False):
    """What the scheduler says of a pod, too."""

    conditions: list[dict[str, Any]] | None


class Metadata(TypedDict, total=False):
    """Metadata without the record of who wrote which field."""

    name: str
    namespace: str
    uid: str
    creationTimestamp: str | None
    labels: dict[str, str] | None
    annotations: dict[str, str] | None
    ownerReferences: list[Owner] | None


class MemberMetadata(Metadata, total=False):
    """Whether a pod is being deleted, too."""

    deletionTimestamp: str | None
    deletionGracePeriodSeconds: int | None
    finalizers: list[str] | None


class Member(TypedDict, total=False):
    """A pod of the gang that is explained."""

    metadata: MemberMetadata
    spec: MemberSpec
    status: MemberStatus


class Group(TypedDict, total=False):
    """A PodGroup."""

    metadata: Metadata
    spec: dict[str, Any]
    status: dict[str, Any]


class NodeSpec(TypedDict, total=False):
    """Whether a node takes pods."""

    unschedulable: bool
    taints: list[dict[str, Any]] | None


class NodeStatus(TypedDict, total=False):
    """What a node offers; its images, which are most of it, do not matter."""

    allocatable: Amounts | None
    conditions: list[dict[str, Any]] | None


class Node(TypedDict, total=False):
    """A node."""

    metadata: Metadata
    spec: NodeSpec
    status: NodeStatus


class Event(TypedDict, total=False):
    """An event."""

    involvedObject: dict[str, Any]
    type: str
    reason: str
    message: str
    series: dict[str, Any] | None
    firstTimestamp: str | None
    lastTimestamp: str | None
    eventTime: str | None
