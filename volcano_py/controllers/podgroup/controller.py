"""The podgroup controller: watches pods and workloads, and carries out the writes of `decision.plan`."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.api.core import Pod
from volcano_py.api.meta import ObjectMeta, OwnerReference
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.controller import UNSERVED_S, ControllerContext
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.podgroup import decision, job_groups, leader_worker, names
from volcano_py.controllers.podgroup.decision import GroupKey, ReplicaSet, StatefulSet, Workload
from volcano_py.controllers.podgroup.leader_worker import LeaderWorkerSet
from volcano_py.controllers.podgroup.owner_cycles import owner_cycle
from volcano_py.controllers.recent import Recent
from volcano_py.controllers.shell import Shell
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Create, Patch, Write
from volcano_py.kube import errors
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import LEADER_WORKER_SETS, PODGROUPS, PODS, REPLICA_SETS, STATEFUL_SETS
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.supervisor import Supervisor

EVENT_FAILED: Final = "FailedPodGroup"
EVENT_NEVER: Final = "GangNeverComplete"
EVENT_CYCLE: Final = "OwnerCycle"
_TIMEOUT_S: Final = 10.0
_COPIES_S: Final = 10.0  # until the next look at a copied pod, and the least age at which its PodGroup counts as gone
_REFUSED: Final = (
    errors.BadRequest,
    errors.Forbidden,
    errors.Invalid,
)  # somebody must act: a retry alone changes nothing
_TOLD_AGAIN_S: Final = 600.0
_PODS_AT_ONCE: Final = 8  # patches of pods of one group under way
_PODS_WITH_EVENT: Final = 10  # pods that get an event when their group is given up


class _Owner(msgspec.Struct):
    metadata: ObjectMeta


class PodGroupController:
    """Creates PodGroups for pods that name none, and deletes those of workloads that are scaled to zero."""

    name: Final = "pg-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._writer = context.writer
        self._groups = context.groups
        self._events = context.events
        self._clock = context.clock
        self._options = options = context.options
        self._served = context.served
        self._pods: View[Pod] = View(lambda pod: decision.needs_group(pod, options.scheduler_names))
        self._workloads: dict[GroupKey, Workload] = {}  # workloads whose pods will be ours
        self._waiting: dict[GroupKey, set[str]] = {}  # keys of pods that need the group
        self._without: dict[GroupKey, Workload] = {}  # states of workloads none of whose pods needs the group
        self._copies: Counter[str] = Counter()  # key of a PodGroup -> pods that name it, but it is not theirs
        self._written: Recent[tuple[str, str]] = Recent(context.clock)  # uid and version of annotated pods
        self._created: Recent[str] = Recent(context.clock)  # keys of PodGroups
        self._told: Recent[tuple[str, ...]] = Recent(context.clock, _TOLD_AGAIN_S)  # PodGroup and its pods
        self._queue: WorkQueue[GroupKey] = WorkQueue(
            self.name,
            self._reconcile,
            options.work_queue(options.podgroup_workers),
            clock=context.clock,
            rng=context.rng,
            refill=self._unfinished,
            on_given_up=self._report_failure,
            observe=context.metrics.turn,
            outage=context.client.outage,
        )
        self._jobs = context.jobs
        self._by_job: dict[str, set[str]] = {}  # job -> the PodGroups that it owns
        self._job_groups: Shell[str] = Shell(
            context, "pg-controller for jobs", self._look_at_group_of_job, workers=1, refill=self._groups_of_jobs
        )
        context.excuses.subscribe(self._queue.excuse)
        self._pods.subscribe(self._pod_changed)
        context.jobs.subscribe(self._job_changed)
        context.groups.subscribe(self._group_changed)

    def watch(self, informers: Informers) -> None:
        """Add the informers of the objects that this controller needs in addition to PodGroups."""
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
        """Start to reconcile; until then, changes are only collected."""
        self._queue.start(supervisor)
        self._job_groups.start(supervisor)

    def backlog(self) -> int:
        """Return how many PodGroups wait in the work queue or are being reconciled."""
        return self._queue.overdue + self._job_groups.backlog

    # Changes

    def _is_ours(self, workload: Workload) -> bool:
        return decision.makes_our_pods(workload, self._options.scheduler_names)

    def _pod_changed(self, key: str, before: Pod | None, after: Pod | None) -> None:
        if before is not None:
            group = decision.group_key(before)
            self._count_copy(before, -1)
            waiting = self._waiting.get(group, set())
            waiting.discard(key)
            if not waiting:
                self._waiting.pop(group, None)
        if after is not None:
            group = decision.group_key(after)
            self._count_copy(after, 1)
            self._waiting.setdefault(group, set()).add(key)
            self._without.pop(group, None)
            self._queue.add(group)

    def _count_copy(self, pod: Pod, step: int) -> None:
        if name := decision.copied_group(pod):
            group = f"{pod.metadata.namespace}/{name}"
            self._copies[group] += step
            if not self._copies[group]:
                del self._copies[group]

    def _workload_changed(self, _: str, before: Workload | None, after: Workload | None) -> None:
        if before is not None:
            self._workloads.pop(_key_of(before), None)
            self._without.pop(_key_of(before), None)
        if after is not None:
            self._workloads[_key_of(after)] = after
            self._queue.add(_key_of(after))

    def _group_changed(self, key: str, before: PodGroup | None, after: PodGroup | None) -> None:
        self._created.discard(key)
        self._note_job(key, before, after)
        namespace, _, name = key.partition("/")
        group = GroupKey(namespace, name.removeprefix(names.GROUP_PREFIX))
        self._without.pop(group, None)
        if after is None and group.name == name and (group in self._waiting or group in self._workloads):
            self._queue.add(group)  # it was deleted although it is needed

    def _note_job(self, key: str, before: PodGroup | None, after: PodGroup | None) -> None:
        """Note which job owns a PodGroup."""
        if before is not None and (job := job_groups.job_of(before)):
            groups = self._by_job[job]
            groups.discard(key)
            if not groups:
                del self._by_job[job]
        if after is not None and (job := job_groups.job_of(after)):
            self._by_job.setdefault(job, set()).add(key)
            self._job_groups.changed(key)

    def _job_changed(self, key: str, before: Job | None, after: Job | None) -> None:
        if after is not None and (before is None or before.spec.scheduler_name != after.spec.scheduler_name):
            for group in sorted(self._by_job.get(key, ())):
                self._job_groups.changed(group)

    def _groups_of_jobs(self) -> Iterable[str]:
        return sorted(group for groups in self._by_job.values() for group in groups)

    def _look_at_group_of_job(self, key: str) -> Plan:
        group = self._groups.get(key)
        job = None if group is None else self._jobs.get(job_groups.job_of(group))
        if group is None or job is None:
            return NOTHING
        return job_groups.plan(group, job, self._options.scheduler_names)

    def _unfinished(self) -> Iterable[GroupKey]:
        """Return every group that may need work."""
        return sorted({*self._waiting, *self._workloads})

    # Reconciling

    async def _reconcile(self, key: GroupKey) -> None:
        try:
            await self._look_at(key)
        except _REFUSED as error:
            about = (str(key), *self._first_waiting(key))
            if about not in self._told:
                self._told.add(about)
                self._report_failure(key, error)
            raise

    def _first_waiting(self, key: GroupKey) -> list[str]:
        """Return the pods that have the event if their PodGroup is not written."""
        return sorted(self._waiting.get(key, ()))[:_PODS_WITH_EVENT]

    async def _look_at(self, key: GroupKey) -> None:
        if not self._served(PODGROUPS):
            self._queue.add_later(key, UNSERVED_S)
            return
        pods = [
            pod
            for name in sorted(self._waiting.get(key, ()))
            if (pod := self._pods.get(name)) is not None and _version(pod) not in self._written
        ]
        workload = self._workloads.get(key)
        if copies := [pod for pod in pods if await self._may_get_its_group(pod, workload)]:
            self._queue.add_later(key, _COPIES_S)
            pods = [pod for pod in pods if pod not in copies]
        if not pods and workload is None:
            return
        if pods:
            self._report_cycle(pods[0])
        if (owner := leader_worker.owner_name(pods[0].metadata if pods else None, workload)) is not None:
            if pods and (leader := await self._leader_of(pods[0], workload)) is not None:
                await self._join_leader(pods, leader, owner)
            return
        group = self._groups.get(str(key))
        annotations = await self._owner_annotations(pods[0] if pods else None, workload)
        if group is None and not pods and workload is not None:
            pod = await self._pod_without_group(key, workload)
            if pod is not None:
                await self._write_group(str(key), decision.create(key, pod, annotations, workload))
            return
        if pods and workload is not None and (text := decision.never_complete(workload, len(pods), annotations)):
            meta = workload.metadata
            who = (workload.kind, meta.namespace, meta.name, meta.uid)
            self._events.record(RecordEvent(*who, keys.EVENT_WARNING, EVENT_NEVER, text))
        plan = decision.plan(key, group, pods, workload, annotations)
        if group is None:
            await self._write_group(str(key), plan.group)
        await self._annotate(plan.pods)
        if group is not None:  # a change of the PodGroup that is refused holds up no pods
            await self._write_group(str(key), plan.group)

    async def _may_get_its_group(self, pod: Pod, workload: Workload | None) -> bool:
        """Say whether a pod names the PodGroup of another pod, and this PodGroup exists or may still be created.

        Others write the pods of a gang first and its PodGroup later, and may name it like those that are made here.
        A workload whose template names no PodGroup did not: it has adopted the pod.
        """
        name, namespace = decision.copied_group(pod), pod.metadata.namespace
        if not name:
            return False
        group, created = f"{namespace}/{name}", pod.metadata.creation_timestamp
        adopted = decision.controller_of(pod.metadata) is not None
        gang = workload is None if adopted else self._copies[group] > 1
        if gang or self._groups.get(group) is not None:
            return True
        if created is not None and abs((self._clock.now() - created).total_seconds()) < _COPIES_S:
            return True
        try:
            await self._client.get(PODGROUPS, name, PodGroup, namespace=namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound:
            return False
        return True

    async def _pod_without_group(self, key: GroupKey, workload: Workload) -> Pod | None:
        """Read a pod of a workload that names a PodGroup that is gone, None if there is no such pod.

        Pods that name a group are not kept. Those of a workload may also name another one, which an admission webhook
        has written on them; then they are not listed again before the workload or the PodGroup changes.
        """
        if workload.spec.replicas == 0 or workload.status.replicas == 0 or str(key) in self._created:
            return None
        if self._without.get(key) is workload or self._workloads.get(key) is not workload:
            return None
        selector = decision.selector_of(workload)
        pages = self._client.list_pages(
            PODS, Pod, namespace=key.namespace, label_selector=selector, timeout_s=_TIMEOUT_S
        )
        self._without[key] = workload  # a change while they are listed takes it away
        try:
            async for page in pages:
                for pod in page.items:
                    if decision.needs_its_group(pod, key):
                        self._without.pop(key, None)
                        return pod
        except errors.ApiError:
            self._without.pop(key, None)
            raise
        return None

    async def _leader_of(self, pod: Pod, workload: Workload | None) -> OwnerReference | None:
        """Return the leader of a pod of a LeaderWorkerSet; None if it is gone."""
        if decision.is_leader(pod.metadata):
            return leader_worker.reference(pod.metadata)
        meta = workload.metadata if workload is not None else await self._owner_of(pod)
        return None if meta is None else leader_worker.leader(meta)

    async def _join_leader(self, pods: Sequence[Pod], leader: OwnerReference, owner_name: str) -> None:
        """Create the PodGroup of a group of a LeaderWorkerSet unless it exists, and annotate pods of the group."""
        meta = pods[0].metadata
        key = GroupKey(meta.namespace, leader.uid)
        if self._groups.get(str(key)) is None and str(key) not in self._created:
            owner = await self._leader_worker_set(meta.namespace, owner_name)
            if not self._options.inherit_owner_annotations and owner is not None:
                owner = leader_worker.without_annotations(owner)
            await self._write_group(str(key), leader_worker.create(key, leader, pods[0], owner))
        await self._annotate(decision.annotate(pods, key))

    async def _leader_worker_set(self, namespace: str, name: str) -> LeaderWorkerSet | None:
        try:
            return await self._client.get(
                LEADER_WORKER_SETS, name, LeaderWorkerSet, namespace=namespace, timeout_s=_TIMEOUT_S
            )
        except errors.NotFound:
            return None

    async def _write_group(self, key: str, write: Write | None) -> None:
        if write is None or (isinstance(write, Create) and key in self._created):
            return
        await self._writer.write(write)
        if isinstance(write, Create):
            self._created.add(key)

    async def _owner_annotations(self, pod: Pod | None, workload: Workload | None) -> Mapping[str, str]:
        """Return the annotations of the owner; an owner that is not watched is read, and must have the expected uid."""
        if not self._options.inherit_owner_annotations:
            return {}
        if workload is not None:
            return workload.metadata.annotations
        meta = None if pod is None else await self._owner_of(pod)
        return {} if meta is None else meta.annotations

    async def _owner_of(self, pod: Pod) -> ObjectMeta | None:
        """Read the controller of a pod; None if its kind is not read, or if it is gone."""
        owner = decision.controller_of(pod.metadata)
        resource = names.OWNERS.get(owner.kind) if owner is not None else None
        if owner is None or resource is None:
            return None
        try:
            found = await self._client.get(
                resource, owner.name, _Owner, namespace=pod.metadata.namespace, timeout_s=_TIMEOUT_S
            )
        except errors.NotFound:
            return None
        return found.metadata if found.metadata.uid == owner.uid else None

    async def _annotate(self, patches: tuple[Patch, ...]) -> None:
        """Carry out the patches of pods, some of them at once; after a failure, the others still go on."""
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

    def _report_cycle(self, pod: Pod) -> None:
        """Record an event on a pod whose owners form a cycle; its PodGroup is created all the same."""
        meta = pod.metadata
        if cycle := owner_cycle(PODS.kind, meta, self._workloads):
            text = (
                f"metadata.ownerReferences of Pod {meta.namespace}/{meta.name} form a cycle: "
                f"{' -> '.join(cycle)}; these objects are never garbage-collected: remove one of the references"
            )
            who = ("Pod", meta.namespace, meta.name, meta.uid)
            self._events.record(RecordEvent(*who, keys.EVENT_WARNING, EVENT_CYCLE, text))

    def _report_failure(self, key: GroupKey, error: errors.ApiError) -> None:
        """Record an event on the pods that wait because their PodGroup could not be written, else on the workload."""
        text = f"the pod waits because PodGroup {key} could not be written: {error}"
        workload = self._workloads.get(key)
        if not self._waiting.get(key) and workload is not None:
            meta = workload.metadata
            who = (workload.kind, meta.namespace, meta.name, meta.uid)
            text = f"PodGroup {key} could not be written: {error}"
            self._events.record(RecordEvent(*who, keys.EVENT_WARNING, EVENT_FAILED, text))
        for name in self._first_waiting(key):
            pod = self._pods.get(name)
            if pod is not None:
                meta = pod.metadata
                who = ("Pod", meta.namespace, meta.name, meta.uid)
                self._events.record(RecordEvent(*who, keys.EVENT_WARNING, EVENT_FAILED, text))


def _key_of(workload: Workload) -> GroupKey:
    return GroupKey(workload.metadata.namespace, workload.metadata.uid)


def _version(pod: Pod) -> tuple[str, str]:
    return pod.metadata.uid, pod.metadata.resource_version
