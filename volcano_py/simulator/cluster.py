"""The objects of a simulated cluster; decisions take effect as on an API server without failures."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup
from volcano_py.api.storage import PersistentVolume, PersistentVolumeClaim
from volcano_py.cache.binds import Assumed
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.feeding import (
    Known,
    added,
    deleted,
    modified,
    prepared,
    why_pending,
    with_status,
    without_queue_gate,
)
from volcano_py.cache.state import SnapshotToken
from volcano_py.model.decisions import (
    Bind,
    BindClaim,
    Decision,
    LiftGate,
    Nominate,
    PrepareStep,
    SetPodCondition,
    SetPodGroupStatus,
)
from volcano_py.model.objects import TaskRef

Key = tuple[type, str, str]  # kind, namespace, name


class SimulatedCluster:
    """Objects by kind, namespace and name; the cache receives every change at once."""

    def __init__(self, cache: ClusterCache) -> None:
        self.cache = cache
        self._objects: dict[Key, Known] = {}

    def put(self, *objects: Known) -> None:
        """Add objects, or replace those that exist."""
        for one in objects:
            key = (type(one), one.metadata.namespace, one.metadata.name)
            known = key in self._objects
            self._objects[key] = one
            (modified if known else added)(self.cache, one)

    def remove(self, *objects: Known) -> None:
        """Delete objects."""
        for one in objects:
            del self._objects[type(one), one.metadata.namespace, one.metadata.name]
            deleted(self.cache, one)

    def pod(self, task: TaskRef) -> Pod | None:
        """Return the present state of a pod, None if it is gone or another pod has its name."""
        found = self._objects.get((Pod, task.namespace, task.name))
        return found if isinstance(found, Pod) and found.metadata.uid == task.uid else None

    def groups(self) -> Iterator[PodGroup]:
        """Yield the present PodGroups."""
        return (one for one in self._objects.values() if isinstance(one, PodGroup))

    def bind(self, binds: Iterable[Bind], token: SnapshotToken) -> Iterator[Bind]:
        """Bind pods to their nodes; yield the binds that the cache did not refuse."""
        for answer in self.cache.binds.assume(tuple(binds), token):
            if isinstance(answer, Assumed):
                for step in answer.bind.prepare:
                    self._prepare(step)
                self.cache.binds.acknowledged(answer.bind.task)
                pod = self.pod(answer.bind.task)
                assert pod is not None, f"{answer.bind.task} is bound but does not exist"
                spec = msgspec.structs.replace(pod.spec, node_name=answer.bind.node)
                self.put(msgspec.structs.replace(pod, spec=spec))
                self.set_status(answer.bind.task, conditions=[], nominated_node_name="")
                yield answer.bind

    def _prepare(self, step: PrepareStep) -> None:
        """Let a step that prepares a bind take effect at once."""
        claim = self._objects.get((PersistentVolumeClaim, step.namespace, step.claim))
        volume = self._objects.get((PersistentVolume, "", step.volume)) if isinstance(step, BindClaim) else None
        assert isinstance(claim, PersistentVolumeClaim), f"{step}: the claim does not exist"
        done, bound = prepared(self.cache, step, claim, volume if isinstance(volume, PersistentVolume) else None)
        self.put(bound)
        self.put(done)

    def set_status(self, task: TaskRef, **fields: Any) -> None:
        """Change fields of a pod's status; do nothing if the pod is gone."""
        pod = self.pod(task)
        if pod is not None:
            self.put(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **fields)))

    def terminate(self, task: TaskRef, when: datetime) -> None:
        """Mark a pod as being deleted; it keeps its resources until it is removed."""
        pod = self.pod(task)
        if pod is not None:
            metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=when)
            self.put(msgspec.structs.replace(pod, metadata=metadata))

    def write(self, decision: Decision) -> None:
        """Write a decision about an object's status; the caller handles events, binds and evictions."""
        match decision:
            case SetPodGroupStatus():
                self._write_group(decision)
            case SetPodCondition():
                pod = self.pod(decision.task)
                if pod is not None and not pod.spec.node_name:
                    self.set_status(decision.task, conditions=[why_pending(decision)])
            case Nominate():
                self.set_status(decision.task, nominated_node_name=decision.node)
            case LiftGate():
                pod = self.pod(decision.task)
                if pod is not None:
                    self.put(without_queue_gate(pod))
            case _:
                pass  # events change nothing

    def _write_group(self, decision: SetPodGroupStatus) -> None:
        group = self._objects.get((PodGroup, *decision.job))
        if not isinstance(group, PodGroup):
            return
        self.put(with_status(group, decision))
