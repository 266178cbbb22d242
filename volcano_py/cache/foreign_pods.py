"""Pods of other schedulers that name a PodGroup: what they do for its gang.

An operator may leave a driver or an initializer to the scheduler of the cluster, and the workers to us. If such a pod
has a node or has succeeded, its part of the minimum is done, and what it requests is no longer needed.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.model.objects import JobKey, JobRecord
from volcano_py.model.pod_request import in_force, pod_request

_NO_REQUEST: Mapping[str, float] = {}


class ForeignPod(NamedTuple):
    """What counts of a pod of another scheduler."""

    group: JobKey
    role: str
    placed: bool
    """Whether it has a node and does not leave it, or has succeeded."""
    request: Mapping[str, float] = _NO_REQUEST
    """What it requests if it is placed."""


def foreign_pod(pod: Pod) -> ForeignPod | None:
    """Return what counts of a pod of another scheduler; None if it names no PodGroup."""
    meta = pod.metadata
    name = meta.annotations.get(keys.GROUP_NAME)
    if not name:
        return None
    role = meta.annotations.get(keys.TASK_SPEC) or meta.labels.get(keys.TASK_SPEC, "")
    stays = bool(pod.spec.node_name) and meta.deletion_timestamp is None and pod.status.phase != "Failed"
    placed = stays or pod.status.phase == "Succeeded"
    return ForeignPod(JobKey(meta.namespace, name), role, placed, _request(pod) if placed else _NO_REQUEST)


def _request(pod: Pod) -> Mapping[str, float]:
    try:
        return pod_request(in_force(pod)).raw
    except (ValueError, OverflowError):
        return _NO_REQUEST  # its node is closed, and says why


class _Placed:
    """What the placed pods of one PodGroup add up to, so that a change of one of many pods costs little."""

    def __init__(self) -> None:
        self.pods = 0
        self.roles: Counter[str] = Counter()
        self.request: dict[str, float] = {}

    def add(self, pod: ForeignPod, sign: int) -> None:
        """Add a placed pod, or take it out."""
        self.pods += sign
        self.roles[pod.role] += sign
        for name, amount in pod.request.items():
            self.request[name] = self.request.get(name, 0.0) + sign * amount


class ForeignPods:
    """The pods of other schedulers by the PodGroup that they name."""

    def __init__(self) -> None:
        self._pods: dict[str, ForeignPod] = {}  # by uid
        self._counts: Counter[JobKey] = Counter()
        self._placed: dict[JobKey, _Placed] = {}  # of PodGroups that have placed ones

    def __contains__(self, key: JobKey) -> bool:
        """Say whether pods of other schedulers name this PodGroup."""
        return key in self._counts

    def note(self, uid: str, pod: ForeignPod | None) -> list[JobKey]:
        """Note what counts of a pod, None if it is gone; return the PodGroups for which something has changed."""
        before = self._pods.get(uid)
        if before == pod:
            return []
        if before is not None:
            del self._pods[uid]
            self._count(before, -1)
        if pod is not None:
            self._pods[uid] = pod
            self._count(pod, 1)
        return list(dict.fromkeys(one.group for one in (before, pod) if one is not None))

    def _count(self, pod: ForeignPod, sign: int) -> None:
        key = pod.group
        self._counts[key] += sign
        if not self._counts[key]:
            del self._counts[key]
        if pod.placed:
            placed = self._placed.setdefault(key, _Placed())
            placed.add(pod, sign)
            if not placed.pods:
                del self._placed[key]

    def rest(self, record: JobRecord) -> JobRecord:
        """Return a PodGroup with the minimum that is left for our pods.

        The minimum does not fall below those of its roles, because they would have no effect then.
        """
        placed = self._placed.get(record.key)
        if placed is None:
            return record
        roles = {role: max(least - placed.roles[role], 0) for role, least in record.task_min_available.items()}
        of_roles = sum(roles.values()) if record.role_rule else 0
        asked = record.min_resources
        if asked is not None:
            asked = {name: max(amount - placed.request.get(name, 0.0), 0.0) for name, amount in asked.items()}
        return replace(
            record,
            min_available=max(record.min_available - placed.pods, of_roles),
            task_min_available=roles,
            min_resources=asked,
        )
