"""Pods of other schedulers that name a PodGroup: what they do for its gang.

An operator may leave a driver or an initializer to the scheduler of the cluster, and the workers to us. If such a pod
has a node or has succeeded, its part of the minimum is done.
"""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.model.objects import JobKey, JobRecord


class ForeignPod(NamedTuple):
    """What counts of a pod of another scheduler."""

    group: JobKey
    role: str
    placed: bool
    """Whether it has a node and does not leave it, or has succeeded."""


def foreign_pod(pod: Pod) -> ForeignPod | None:
    """Return what counts of a pod of another scheduler; None if it names no PodGroup."""
    meta = pod.metadata
    name = meta.annotations.get(keys.GROUP_NAME)
    if not name:
        return None
    role = meta.annotations.get(keys.TASK_SPEC) or meta.labels.get(keys.TASK_SPEC, "")
    stays = bool(pod.spec.node_name) and meta.deletion_timestamp is None and pod.status.phase != "Failed"
    return ForeignPod(JobKey(meta.namespace, name), role, stays or pod.status.phase == "Succeeded")


class ForeignPods:
    """The pods of other schedulers by the PodGroup that they name."""

    def __init__(self) -> None:
        self._pods: dict[str, ForeignPod] = {}  # by uid
        self._uids: dict[JobKey, set[str]] = {}

    def __contains__(self, key: JobKey) -> bool:
        """Say whether pods of other schedulers name this PodGroup."""
        return key in self._uids

    def note(self, uid: str, pod: ForeignPod | None) -> list[JobKey]:
        """Note what counts of a pod, None if it is gone; return the PodGroups for which something has changed."""
        before = self._pods.get(uid)
        if before == pod:
            return []
        if before is not None:
            del self._pods[uid]
            uids = self._uids[before.group]
            uids.remove(uid)
            if not uids:
                del self._uids[before.group]
        if pod is not None:
            self._pods[uid] = pod
            self._uids.setdefault(pod.group, set()).add(uid)
        return list(dict.fromkeys(one.group for one in (before, pod) if one is not None))

    def rest(self, record: JobRecord) -> JobRecord:
        """Return a PodGroup with the minimum that is left for our pods."""
        placed = [pod for uid in self._uids.get(record.key, ()) if (pod := self._pods[uid]).placed]
        if not placed:
            return record
        roles = Counter(pod.role for pod in placed)
        return replace(
            record,
            min_available=max(record.min_available - len(placed), 0),
            task_min_available={role: max(least - roles[role], 0) for role, least in record.task_min_available.items()},
        )
