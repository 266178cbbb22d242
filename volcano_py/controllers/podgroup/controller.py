"""The podgroup controller: watches pods and workloads, and carries out what `decision.plan` says."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.api.meta import ObjectMeta
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.podgroup import decision, names
from volcano_py.controllers.podgroup.decision import GroupKey, ReplicaSet, StatefulSet, Workload
from volcano_py.controllers.podgroup.owner_cycles import owner_cycle
from volcano_py.controllers.recent import Recent
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Create, Patch, Write
from volcano_py.kube import errors
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import PODGROUPS, PODS, REPLICA_SETS, STATEFUL_SETS
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.supervisor import Supervisor

EVENT_FAILED: Final = "FailedPodGroup"
EVENT_CYCLE: Final = "OwnerCycle"
_TIMEOUT_S: Final = 10.0
_PODS_AT_ONCE: Final = 8  # patches of pods of one group under way
_TOLD_PODS: Final = 10  # pods that get the event when their group was given up


class _Owner(msgspec.Struct):
    metadata: ObjectMeta


class PodGroupController:
    """Gives pods that name no PodGroup one, and takes away those of workloads that have no pods."""

    name: Final = "pg-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._writer = context.writer
        self._groups = context.groups
        self._events = context.events
        self._options = options = context.options
        self._served = context.served
        self._pods: View[Pod] = View(lambda pod: decision.needs_group(pod, options.scheduler_names))
        self._workloads: dict[GroupKey, Workload] = {}  # those whose pods will be ours
        self._waiting: dict[GroupKey, set[str]] = {}  # keys of pods that need the group
        self._written: Recent[tuple[str, str]] = Recent(context.clock)  # uid and version of pods that were annotated
        self._created: Recent[str] = Recent(context.clock)  # keys of PodGroups
        self._queue: WorkQueue[GroupKey] = WorkQueue(
            self.name,
            self._reconcile,
            options.work_queue(options.podgroup_workers),
            clock=context.clock,
            rng=context.rng,
            refill=self._unfinished,
            on_given_up=self._tell,
            observe=context.metrics.turn,
        )
        self._pods.subscribe(self._pod_changed)
        context.groups.subscribe(self._group_changed)

    def watch(self, informers: Informers) -> None:
        """Ask for what this controller needs beside PodGroups."""
        for scheduler in self._options.scheduler_names:
            selector = f"spec.schedulerName={scheduler}"
            informers.add(PODS, Pod, self._pods, name=f"pods of {scheduler}", field_selector=selector)
        replica_sets: View[ReplicaSet] = View(self._is_ours)
        stateful_sets: View[StatefulSet] = View(self._is_ours)
        replica_sets.subscribe(self._workload_changed)
        stateful_sets.subscribe(self._workload_changed)
        informers.add(REPLICA_SETS, ReplicaSet, replica_sets)
        informers.add(STATEFUL_SETS, StatefulSet, stateful_sets)

    def start(self, supervisor: Supervisor) -> None:
        """Start to work; before, changes are only gathered."""
        self._queue.start(supervisor)

    def backlog(self) -> int:
        """Return how many PodGroups wait for their turn or have it now."""
        return self._queue.backlog

    # What changed

    def _is_ours(self, workload: Workload) -> bool:
        return decision.makes_our_pods(workload, self._options.scheduler_names)

    def _pod_changed(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if before is not None:
            group = decision.group_key(before)
            waiting = self._waiting.get(group, set())
            waiting.discard(key)
            if not waiting:
                self._waiting.pop(group, None)
        if after is not None:
            group = decision.group_key(after)
            self._waiting.setdefault(group, set()).add(key)
            self._queue.add(group)

    def _workload_changed(self, _: str, before: Workload | None, after: Workload | None) -> None:
        if before is not None:
            self._workloads.pop(_key_of(before), None)
        if after is not None:
            self._workloads[_key_of(after)] = after
            self._queue.add(_key_of(after))

    def _group_changed(self, key: str, before: PodGroup | None, after: PodGroup | None) -> None:
        self._created.discard(key)
        namespace, _, name = key.partition("/")
        group = GroupKey(namespace, name.removeprefix(names.GROUP_PREFIX))
        if after is None and group.name == name and (group in self._waiting or group in self._workloads):
            self._queue.add(group)  # somebody deleted it while it is needed

    def _unfinished(self) -> Iterable[GroupKey]:
        """Return every group that may need work."""
        return sorted({*self._waiting, *self._workloads})

    # What is done about it

    async def _reconcile(self, key: GroupKey) -> None:
        if not self._served(PODGROUPS):
            return
        pods = [
            pod
            for name in sorted(self._waiting.get(key, ()))
            if (pod := self._pods.get(name)) is not None and _version(pod) not in self._written
        ]
        workload = self._workloads.get(key)
        if not pods and workload is None:
            return
        if pods:
            self._tell_cycle(pods[0])
        group = self._groups.get(str(key))
        annotations = await self._owner_annotations(pods[0] if pods else None, workload)
        plan = decision.plan(key, group, pods, workload, annotations)
        await self._write_group(str(key), plan.group)
        await self._annotate(plan.pods)

    async def _write_group(self, key: str, write: Write | None) -> None:
        if write is None or (isinstance(write, Create) and key in self._created):
            return
        await self._writer.write(write)
        if isinstance(write, Create):
            self._created.add(key)

    async def _owner_annotations(self, pod: Pod | None, workload: Workload | None) -> Mapping[str, str]:
        """Return what stands on the owner; it is read if no watch shows it, and counts only if it is still the one."""
        if not self._options.inherit_owner_annotations:
            return {}
        if workload is not None:
            return workload.metadata.annotations
        owner = decision.controller_of(pod.metadata) if pod is not None else None
        resource = names.OWNERS.get(owner.kind) if owner is not None else None
        if pod is None or owner is None or resource is None:
            return {}
        try:
            found = await self._client.get(
                resource, owner.name, _Owner, namespace=pod.metadata.namespace, timeout_s=_TIMEOUT_S
            )
        except errors.NotFound:
            return {}
        return found.metadata.annotations if found.metadata.uid == owner.uid else {}

    async def _annotate(self, patches: tuple[Patch, ...]) -> None:
        """Carry patches of pods out, some at once; one that fails keeps no other back."""
        limit = asyncio.Semaphore(_PODS_AT_ONCE)

        async def one(patch: Patch) -> None:
            meta = patch.body["metadata"]
            async with limit:
                await self._writer.write(patch)
            self._written.add((meta["uid"], meta["resourceVersion"]))

        results = await asyncio.gather(*(one(patch) for patch in patches), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            if not isinstance(failure, errors.ApiError):
                raise failure
        if failures:
            raise failures[0]

    def _tell_cycle(self, pod: Pod) -> None:
        """Say on a pod that its owners own each other; its group is made all the same."""
        meta = pod.metadata
        if cycle := owner_cycle(PODS.kind, meta, self._workloads):
            text = (
                f"metadata.ownerReferences of Pod {meta.namespace}/{meta.name} lead round in a cycle: "
                f"{' -> '.join(cycle)}; nothing ever collects these objects: remove one of the references"
            )
            who = ("Pod", meta.namespace, meta.name, meta.uid)
            self._events.record(RecordEvent(*who, keys.EVENT_WARNING, EVENT_CYCLE, text))

    def _tell(self, key: GroupKey, error: errors.ApiError) -> None:
        """Say on the pods that they wait because their group could not be written."""
        text = f"PodGroup {key} could not be written, the pod waits for it: {error}"
        for name in sorted(self._waiting.get(key, ()))[:_TOLD_PODS]:
            pod = self._pods.get(name)
            if pod is not None:
                meta = pod.metadata
                who = ("Pod", meta.namespace, meta.name, meta.uid)
                self._events.record(RecordEvent(*who, keys.EVENT_WARNING, EVENT_FAILED, text))


def _key_of(workload: Workload) -> GroupKey:
    return GroupKey(workload.metadata.namespace, workload.metadata.uid)


def _version(pod: Pod) -> tuple[str, str]:
    return pod.metadata.uid, pod.metadata.resource_version
