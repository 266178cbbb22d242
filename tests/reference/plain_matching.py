"""Plain Python: which existing volume each claim of a pod gets on a node (kube-scheduler: FindMatchingVolume)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from volcano_py.model.shape import NodeTerm
from volcano_py.model.volumes import AVAILABLE, ClaimRecord, VolumeRecord


def reaches(terms: Iterable[NodeTerm] | None, labels: Mapping[str, str]) -> bool:
    """Say whether a node with these labels matches any of the terms; None matches every node."""
    return terms is None or any(_matches(term, labels) for term in terms)


def _matches(term: NodeTerm, labels: Mapping[str, str]) -> bool:
    if term.empty:
        return False
    for key, operator, values in term.expressions:
        found = labels.get(key)
        holds = {
            "In": found in values,
            "NotIn": found not in values,
            "Exists": found is not None,
            "DoesNotExist": found is None,
        }[operator]
        if not holds:
            return False
    return True


def match(claims: Sequence[ClaimRecord], volumes: Sequence[VolumeRecord], labels: Mapping[str, str]) -> dict[str, str]:
    """Return the volume of each claim that gets one on a node with these labels."""
    chosen: dict[str, str] = {}
    for claim in sorted(claims, key=lambda claim: claim.size):
        if claim.selected_node:
            continue
        found = _find(claim, [one for one in volumes if one.name not in chosen.values()], labels)
        if found is not None:
            chosen[claim.name] = found.name
    return chosen


def _find(claim: ClaimRecord, volumes: Sequence[VolumeRecord], labels: Mapping[str, str]) -> VolumeRecord | None:
    smallest: VolumeRecord | None = None
    for volume in sorted(volumes, key=lambda volume: volume.name):
        owner = volume.claim
        ours = owner is not None and owner[:2] == claim.key and owner.uid in ("", claim.uid)
        if owner is not None and not ours:
            continue
        if volume.storage_class != claim.storage_class or volume.capacity < claim.size or volume.deleting:
            continue
        if (volume.volume_mode, volume.attributes_class) != (claim.volume_mode, claim.attributes_class):
            continue
        if ours:
            return volume if reaches(volume.node_affinity, labels) else None
        if volume.phase != AVAILABLE or not claim.access_modes <= volume.access_modes:
            continue
        if claim.selector is not None and not claim.selector.matches(volume.labels):
            continue
        if reaches(volume.node_affinity, labels) and (smallest is None or volume.capacity < smallest.capacity):
            smallest = volume
    return smallest
