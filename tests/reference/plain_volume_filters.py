"""Plain Python: the filters about volumes for one pod and one node, from records (kube-scheduler v1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.reference.plain_matching import match, reaches
from volcano_py.model.objects import TaskRecord
from volcano_py.model.shape import NodeTerm
from volcano_py.model.volumes import (
    LOST,
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    AttachmentRecord,
    CapacityRecord,
    ClaimKey,
    ClaimRecord,
    CsiDriverRecord,
    CsiNodeRecord,
    StorageClassRecord,
    VolumeRecord,
)

ZONES = {
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "",
    "topology.kubernetes.io/zone": "",
}


@dataclass
class PlainStorage:
    """Everything about storage, and the pods on nodes."""

    nodes: dict[str, Mapping[str, str]] = field(default_factory=dict)  # name -> labels
    claims: dict[ClaimKey, ClaimRecord] = field(default_factory=dict)
    volumes: dict[str, VolumeRecord] = field(default_factory=dict)
    classes: dict[str, StorageClassRecord] = field(default_factory=dict)
    csi_nodes: dict[str, CsiNodeRecord] = field(default_factory=dict)
    drivers: dict[str, CsiDriverRecord] = field(default_factory=dict)
    capacities: list[CapacityRecord] = field(default_factory=list)
    attachments: list[AttachmentRecord] = field(default_factory=list)
    standing: list[tuple[TaskRecord, str]] = field(default_factory=list)

    def claims_of(self, pod: TaskRecord) -> list[ClaimRecord | None]:
        return [self.claims.get(ClaimKey(pod.namespace, claim.name)) for claim in pod.claims]

    def waits(self, claim: ClaimRecord) -> bool:
        known = self.classes.get(claim.storage_class)
        return not claim.volume and known is not None and known.binding_mode == WAIT_FOR_FIRST_CONSUMER

    def usable(self, pod: TaskRecord) -> bool:
        """Say whether the claims of a pod allow any node at all."""
        for claim in self.claims_of(pod):
            if claim is None or claim.phase == LOST or claim.deleting:
                return False
            if not claim.bound and not self.waits(claim):
                return False
            if claim.volume and claim.volume not in self.volumes:
                return False
        return True

    def reasons(self, pod: TaskRecord, node: str) -> set[str]:
        """Return the codes of the reasons why a node refuses a pod whose claims are usable."""
        claims = [claim for claim in self.claims_of(pod) if claim is not None]
        found = {"volume-limits"} if self._too_many(pod, node) else set()
        if any(
            disk.conflicts(other)
            for disk in pod.disks
            for one, at in self.standing
            for other in one.disks
            if at == node
        ):
            found.add("disk-conflict")
        elif any(
            READ_WRITE_ONCE_POD in claim.access_modes and claim in self.claims_of(one)
            for claim in claims
            for one, _ in self.standing
        ):
            found.add("volume-exclusive")
        bound = [self.volumes[claim.volume] for claim in claims if claim.bound]
        if not all(self._in_zones(volume, node) for volume in bound):
            return found | {"volume-zone"}
        binding = self._unbound([claim for claim in claims if not claim.bound], node)
        if all(reaches(volume.node_affinity, self.nodes[node]) for volume in bound):
            return found | binding
        pairs = {f"volume-affinity-{code.removeprefix('volume-')}" for code in binding}
        return found | (pairs or {"volume-affinity"})

    def _unbound(self, claims: Sequence[ClaimRecord], node: str) -> set[str]:
        if any(claim.selected_node not in ("", node) for claim in claims):
            return {"volume-binding"}
        matched = match(claims, list(self.volumes.values()), self.nodes[node])
        first = sorted(claims, key=lambda claim: (not claim.selected_node, claim.size))
        for claim in [claim for claim in first if claim.name not in matched]:
            known = self.classes[claim.storage_class]
            if not known.provisions or not reaches(known.topologies or None, self.nodes[node]):
                return {"volume-binding"}
            driver = self.drivers.get(known.provisioner)
            if driver is not None and driver.storage_capacity and not self._room(claim, node):
                return {"volume-space"}
        return set()

    def _room(self, claim: ClaimRecord, node: str) -> bool:
        return any(
            one.storage_class == claim.storage_class
            and one.topology is not None
            and one.largest is not None
            and one.largest >= claim.size
            and reaches((NodeTerm(one.topology.requirements),) if one.topology.requirements else None, self.nodes[node])
            for one in self.capacities
        )

    def _in_zones(self, volume: VolumeRecord, node: str) -> bool:
        labels = self.nodes[node]
        if not any(key in labels for key in ZONES):
            return True
        return all(labels.get(key, labels.get(ZONES[key])) in values for key, values in volume.zones)

    def _too_many(self, pod: TaskRecord, node: str) -> bool:
        limits = self.csi_nodes[node].limits if node in self.csi_nodes else {}
        there = {handle for one, at in self.standing if at == node for handle in self._handles(one)}
        new = self._handles(pod) - there
        for one in self.attachments:
            volume = self.volumes.get(one.volume)
            if one.node == node and volume is not None and volume.handle is not None:
                there.add((one.driver, volume.handle.handle))
        return any(
            any(handle[0] == driver for handle in new)
            and sum(handle[0] == driver for handle in there) + sum(handle[0] == driver for handle in new) > most
            for driver, most in limits.items()
        )

    def _handles(self, pod: TaskRecord) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for claim in self.claims_of(pod):
            volume = self.volumes.get(claim.volume) if claim is not None else None
            known = self.classes.get(claim.storage_class) if claim is not None else None
            if volume is not None:
                if volume.handle is not None:
                    found.add((volume.handle.driver, volume.handle.handle))
            elif claim is not None and known is not None and known.provisions:
                found.add((known.provisioner, f"to come: {claim.name}"))
        return found
