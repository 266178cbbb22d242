"""Converts pods to their status, their record, and the shape that they share with equal pods."""

from collections.abc import Collection, Iterable
from sys import intern
from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.core import NodeSelector, NodeSelectorTerm, Pod, PodSpec, PreferredSchedulingTerm, Volume
from volcano_py.cache import pod_terms
from volcano_py.cache.field_managers import nominated_by_us
from volcano_py.cache.fields import int32, integer_or_none, seconds
from volcano_py.cache.preemptability import protected_until, traits
from volcano_py.cache.series import owner
from volcano_py.model.objects import TaskRecord
from volcano_py.model.pod_request import SIDECAR, in_force, pod_limits, pod_request
from volcano_py.model.shape import (
    ALL_ADDRESSES,
    Admission,
    HostPort,
    NodeTerm,
    PreferredTerm,
    Requirement,
    Shape,
    Tolerance,
)
from volcano_py.model.statuses import TaskStatus
from volcano_py.model.volumes import Disk, TaskClaim

_CONDITION_FALSE: Final = "False"
_TCP: Final = "TCP"
_NONE: Final = "0"
_DEFAULT_PRIORITY: Final = 1
_TERMINAL: Final = frozenset({"Succeeded", "Failed"})


def task_status(pod: Pod) -> TaskStatus:
    """Return the status of a pod, from its phase, node and deletion (Volcano: getTaskStatus)."""
    phase = pod.status.phase
    if phase == "Running":
        return TaskStatus.RELEASING if pod.metadata.deletion_timestamp else TaskStatus.RUNNING
    if phase == "Pending":
        if pod.metadata.deletion_timestamp:
            return TaskStatus.RELEASING
        return TaskStatus.BOUND if pod.spec.node_name else TaskStatus.PENDING
    if phase == "Succeeded":
        return TaskStatus.SUCCEEDED
    return TaskStatus.FAILED if phase == "Failed" else TaskStatus.UNKNOWN


def is_terminal(pod: Pod) -> bool:
    """Say whether a pod has ended, so that it uses no resources of its node."""
    return pod.status.phase in _TERMINAL


def task_record(pod: Pod, scheduler_names: Collection[str], *, only_unschedulable: bool = False) -> TaskRecord:
    """Return the record of a pod; raise ValueError naming the field that cannot be read.

    With ``only_unschedulable``, a condition with the reason Schedulable counts as none, so that it is written again: it
    is older than the option, and autoscalers read only Unschedulable. Strings that many pods share are interned.
    """
    meta = pod.metadata
    annotations = meta.annotations
    group = annotations.get(keys.GROUP_NAME)
    nominated = nominated_node(pod)
    role = annotations.get(keys.TASK_SPEC) or meta.labels.get(keys.TASK_SPEC, "")
    return TaskRecord(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        job=intern(group) if group else None,
        priority=_priority(pod.spec.priority, annotations.get(keys.TASK_PRIORITY)),
        creation=seconds(meta.creation_timestamp),
        role=intern(role),
        foreign=pod.spec.scheduler_name not in scheduler_names,
        labels=tuple(intern(text) for pair in sorted(meta.labels.items()) for text in pair),
        owner=owner(pod.metadata),
        condition=_why_not_scheduled(pod, only_unschedulable),
        nominated=nominated,
        nominated_by_us=not nominated or nominated_by_us(pod.metadata.managed_fields),
        started=seconds(pod.status.start_time),
        traits=traits(pod),
        protected_until=protected_until(pod),
        claims=claims(pod) if pod.spec.volumes else (),
        disks=disks(pod.spec.volumes) if pod.spec.volumes else (),
    )


def nominated_node(pod: Pod) -> str:
    """Return the node that a waiting pod is nominated to, "" for none."""
    return "" if pod.spec.node_name else intern(pod.status.nominated_node_name)


def _priority(spec: int | None, annotation: str | None) -> int:
    """Return a task's priority; an annotation that is not an integer does not count (as in Volcano)."""
    override = None if annotation is None else integer_or_none(annotation)
    if override is not None:
        return override
    return _DEFAULT_PRIORITY if spec is None else int32(spec, "spec.priority")


def _why_not_scheduled(pod: Pod, only_unschedulable: bool) -> str:
    for condition in pod.status.conditions:
        if condition.type == keys.CONDITION_POD_SCHEDULED and condition.status == _CONDITION_FALSE:
            unseen = only_unschedulable and condition.reason == keys.REASON_SCHEDULABLE
            return "" if unseen else intern(condition.message)
    return ""


_LONGEST_KEPT: Final = 8 * 1024
"""Bytes of the content of a shape that is kept, ten times what most have; thousands of a megabyte would fill memory."""


class ShapeReader:
    """Makes the shapes of pods, one for all pods of equal content, unless that is very long.

    Making a shape takes 25 us. Finding a known one takes 1 us: its fields are encoded again and looked up.
    """

    def __init__(self, *, queue_admission: bool = False, capacity: int = 4096) -> None:
        """``queue_admission`` says whether this scheduler handles the scheduling gates of queues."""
        self._queue_admission = queue_admission
        self._capacity = capacity
        self._shapes: dict[bytes, Shape] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def shape(self, pod: Pod) -> Shape:
        """Return the shape of a pod; raise ValueError naming the field that cannot be read."""
        spec = in_force(pod)
        try:
            strategy = _strategy(pod)
            admission = _admission(pod) if self._queue_admission else Admission.NONE
            content = self._content(spec, strategy, pod_terms.identity(pod), admission)
        except OverflowError as error:
            raise ValueError(f"spec: a number in it is too large ({error}): write a smaller one") from error
        shape = self._shapes.get(content)
        if shape is None:
            shape = shape_of(pod, admission)
            if len(content) > _LONGEST_KEPT:
                return shape
            if len(self._shapes) >= self._capacity:
                del self._shapes[next(iter(self._shapes))]  # the oldest
            self._shapes[content] = shape
        return shape

    def _content(
        self, spec: PodSpec, strategy: tuple[str, str], identity: tuple[str, ...], admission: Admission
    ) -> bytes:
        return self._encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                _image_volumes(spec) if spec.volumes else (),  # other volumes may have names made up per pod
                spec.resource_claims,
                spec.scheduling_gates,
                strategy,
                identity,
                admission.value,
            )
        )


def _admission(pod: Pod) -> Admission:
    """Return whether a pod is at the scheduling gate of its queue or through it; a lifted gate leaves an annotation."""
    gates = pod.spec.scheduling_gates
    if gates and any(gate.name == keys.QUEUE_GATE for gate in gates):
        return Admission.AT_GATE
    through = not gates and pod.metadata.annotations.get(keys.QUEUE_GATE) == "true"
    return Admission.THROUGH if through else Admission.NONE


def _strategy(pod: Pod) -> tuple[str, str]:
    """Return type and weights of a pod's scoring strategy; weights without a type do not count."""
    annotations = pod.metadata.annotations
    kind = annotations.get(keys.STRATEGY_TYPE, "")
    return (kind, annotations.get(keys.STRATEGY_WEIGHT, "")) if kind else ("", "")


def shape_of(pod: Pod, admission: Admission = Admission.NONE) -> Shape:
    """Return the shape of a pod; raise QuantityError naming the field that cannot be read.

    ``admission`` says whether it is at the scheduling gate of its queue or through it.
    """
    spec = in_force(pod)
    gates = (gate.name for gate in spec.scheduling_gates)
    request = pod_request(spec)
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = node_affinity.required if node_affinity is not None else None
    return Shape(
        request=tuple(sorted(request.raw.items())),
        nonzero=request.nonzero,
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_affinity=None if required is None else _terms(required),
        preferred=() if node_affinity is None else _preferred(node_affinity.preferred),
        host_ports=_host_ports(spec),
        images=_images(spec),
        n_containers=len(spec.init_containers) + len(spec.containers),
        tolerations=tuple(Tolerance(t.key, t.operator, t.value, t.effect) for t in spec.tolerations),
        pod_terms=pod_terms.pod_terms(pod),
        spread=pod_terms.spreads(pod),
        gates=tuple(gate for gate in gates if admission is not Admission.AT_GATE or gate != keys.QUEUE_GATE),
        admission=admission,
        limits=pod_limits(spec),
        strategy=_strategy(pod),
        unsupported=tuple(unsupported(spec)),
    )


def unsupported(spec: PodSpec) -> list[str]:
    """Return the fields that restrict the nodes of a pod and are not supported yet.

    A shared device counts in ``requests`` if it counts in ``limits``, so ``limits`` says it all.
    """
    claims = [f"spec.resourceClaims[{claim.name}]" for claim in spec.resource_claims]
    return claims + [
        f"spec.{field}[{container.name}].resources.limits[{name}]"
        for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers))
        for container in containers
        for name in keys.SHARED_DEVICES
        if str(container.resources.limits.get(name, _NONE)) != _NONE
    ]


def _host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of a pod, from its containers and sidecars, each once."""
    sidecars = (container for container in spec.init_containers if container.restart_policy == SIDECAR)
    ports = {
        HostPort(port.host_ip or ALL_ADDRESSES, port.protocol or _TCP, port.host_port)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    }
    return tuple(sorted(ports))


def claims(pod: Pod) -> tuple[TaskClaim, ...]:
    """Return the volume claims of a pod, each once; that of an ephemeral volume is called <pod>-<volume>."""
    found: dict[str, TaskClaim] = {}
    for volume in pod.spec.volumes:
        source = volume.persistent_volume_claim
        if source is not None:
            found.setdefault(source.claim_name, TaskClaim(source.claim_name))
        elif volume.ephemeral is not None:
            name = f"{pod.metadata.name}-{volume.name}"
            found.setdefault(name, TaskClaim(name, ephemeral=True))
    return tuple(found.values())


def disks(volumes: Iterable[Volume]) -> tuple[Disk, ...]:
    """Return the disks that a pod names without a claim."""
    found: set[Disk] = set()
    for volume in volumes:
        if volume.gce_persistent_disk is not None:
            found.add(Disk("gce", volume.gce_persistent_disk.pd_name, volume.gce_persistent_disk.read_only))
        if volume.aws_elastic_block_store is not None:
            found.add(Disk("aws", volume.aws_elastic_block_store.volume_id))
        if volume.iscsi is not None:
            found.add(Disk("iscsi", volume.iscsi.iqn, volume.iscsi.read_only))
        if volume.rbd is not None:
            name = f"{volume.rbd.pool}/{volume.rbd.image}"
            found.add(Disk("rbd", name, volume.rbd.read_only, tuple(sorted(volume.rbd.monitors))))
    return tuple(sorted(found))


def _image_volumes(spec: PodSpec) -> list[str]:
    return [volume.image.reference for volume in spec.volumes if volume.image is not None]


def _images(spec: PodSpec) -> tuple[str, ...]:
    containers = (container.image for container in (*spec.init_containers, *spec.containers))
    return tuple(sorted(intern(image_name(image)) for image in (*containers, *_image_volumes(spec)) if image))


def image_name(written: str) -> str:
    """Return the name under which nodes list an image; a name without a tag gets the tag latest (kube-scheduler)."""
    return written if written.rfind(":") > written.rfind("/") else f"{written}:latest"


def _preferred(terms: Iterable[PreferredSchedulingTerm]) -> tuple[PreferredTerm, ...]:
    """Return the preferred terms, without those that are empty or have weight 0."""
    found = (PreferredTerm(term.weight, _term(term.preference)) for term in terms)
    return tuple(term for term in found if term.weight and not term.term.empty)


def _terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    return tuple(_term(term) for term in selector.node_selector_terms)


def _term(term: NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(
        tuple(Requirement(r.key, r.operator, tuple(r.values)) for r in term.match_expressions),
        tuple(Requirement(r.key, r.operator, tuple(r.values)) for r in term.match_fields),
    )
