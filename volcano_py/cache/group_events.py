"""PodGroup, Queue and PriorityClass events.

A PodGroup is not ours if its annotation ``volcano.sh/scheduler-name`` names another scheduler, or if its pods do and
none of them is ours. The controllers write this annotation on the PodGroups of jobs that name another scheduler, since
such a PodGroup may have no pods yet. While a PodGroup is not ours, it is kept out of the store, so that it is neither
scheduled nor written.

Pods without a PodGroup may form a gang by annotations. A PodGroup of the same name replaces that gang, even if the
PodGroup cannot be read.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

import msgspec
import structlog

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.cache.annotation_gangs import AnnotationGangs, is_annotation_gang
from volcano_py.cache.assumed_queue import AssumedQueue
from volcano_py.cache.changes import Change
from volcano_py.cache.foreign_pods import ForeignPod, ForeignPods
from volcano_py.cache.groups import PriorityTable, job_record, queue_record, same_gang, shown_allocated
from volcano_py.cache.preemptability import unreadable_budgets
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable_objects import Unreadable, UnreadableObjects
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.model.decisions import Decision, RecordEvent, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import JobKey, JobRecord
from volcano_py.model.statuses import TaskStatus

log = structlog.get_logger()

_ENDED: Final = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})


class PodGroupEvents:
    """Keeps the store's jobs equal to the PodGroups that are ours."""

    def __init__(
        self,
        state: ClusterState,
        unreadable: UnreadableObjects,
        priorities: PriorityTable,
        default_queue: str,
        scheduler_names: Collection[str],
    ) -> None:
        self.assumed_queue = AssumedQueue(state, default_queue)
        self._state = state
        self._unreadable = unreadable
        self._priorities = priorities
        self._default_queue = default_queue
        self._scheduler_names = frozenset(scheduler_names)
        self._gangs = AnnotationGangs(default_queue, lambda key: state.store.count(key, *TaskStatus))
        self._problems: dict[JobKey, str] = {}  # why existing PodGroups cannot be read
        self._records: dict[JobKey, JobRecord] = {}  # every readable PodGroup, ours or not
        self._classes: dict[JobKey, str] = {}  # name of its PriorityClass
        self._foreign = ForeignPods()
        self._odd_budgets: dict[JobKey, list[str]] = {}  # what is wrong with annotations that have no effect
        self._left_to: dict[JobKey, str] = {}  # the other scheduler that its annotation names

    def on_events(self, events: list[Event[PodGroup]]) -> None:
        """Apply changes in order."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._unreadable.discard("PodGroup", event.uid)
                self._gone(JobKey(event.namespace, event.name))
            else:
                self._apply(event.object)
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a PodGroup that does not fit its type."""
        self._leave_out(Unreadable("PodGroup", entry.namespace, entry.name, entry.uid, entry.message))
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a PodGroup was left out; its event follows, unless it is gone."""
        self._unreadable.discard("PodGroup", entry.uid)
        self._gone(JobKey(entry.namespace, entry.name))
        self._state.notify()

    def join(self, key: JobKey, pod: Pod) -> None:
        """Take in what the annotations of one of our pods say about its gang."""
        for gang in self._gangs.join(key, pod, has_group=key in self._records):
            self._show(gang)
        if key in self._foreign:
            self._show(key)  # its first pod that is ours may make it ours

    def leave(self, uid: str) -> None:
        """Remove a pod from its gang by annotations: it ended, is gone, is not ours, or cannot be read."""
        for gang in self._gangs.leave(uid):
            self._show(gang)

    def recount(self, key: JobKey | None) -> None:
        """Note that a pod has ended or is gone: it changes the number of pods that a waiting gang has."""
        if key is not None and (key in self._gangs or key in self._foreign):
            self._show(key)

    def assume_queue(self) -> None:
        """Assume that the default queue exists if there are gangs by annotations and no queue."""
        self.assumed_queue.settle(bool(self._gangs))

    def to_write(self, decision: Decision) -> Decision | None:
        """Return a decision as it must be written to the API server; see `ClusterCache.to_write`."""
        match decision:
            case SetPodGroupStatus() if is_annotation_gang(decision.uid):
                self._gangs.keep(decision)
                self._show(decision.job)
                self._state.notify()
                return None
            case RecordEvent() if is_annotation_gang(decision.uid):
                return None
            case SetPodCondition() if len(self._gangs):
                return self._noted(decision)
        return decision

    def _noted(self, decision: SetPodCondition) -> SetPodCondition | None:
        """Add a remark about the gang's numbers to a pod's reason; None if the pod has this text already."""
        place = self._state.store.task(decision.task.uid)
        job = None if place is None or place.record.key is None else self._state.store.job(place.record.key)
        if place is None or job is None or not is_annotation_gang(job.uid):
            return decision
        message = decision.message + self._gangs.note(job.key)
        return None if message == place.record.condition else msgspec.structs.replace(decision, message=message)

    def note_foreign_pod(self, uid: str, pod: ForeignPod | None) -> None:
        """Note what counts of a pod that names another scheduler; None if it is gone."""
        for key in self._foreign.note(uid, pod):
            self._show(key)

    def is_ours(self, key: JobKey) -> bool:
        """Say whether this group names no other scheduler, and its pods name none or some of them are ours."""
        if key in self._left_to:
            return False
        return key not in self._foreign or self._state.store.count(key, *TaskStatus) > 0

    def reprioritise(self) -> None:
        """Give every job the present priority of its class."""
        for key, record in list(self._records.items()):
            priority = self._priorities.value(self._classes[key])
            if priority != record.priority:
                self._records[key] = replace(record, priority=priority)
                self._state.note(Change.PRIORITY)
                self._show(key)

    def _apply(self, group: PodGroup) -> None:
        meta = group.metadata
        try:
            record = job_record(group, self._priorities, self._default_queue)
        except ValueError as error:
            message = f"PodGroup {meta.namespace}/{meta.name} cannot be read: {error}"
            self._leave_out(Unreadable("PodGroup", meta.namespace, meta.name, meta.uid, message))
            return
        self._unreadable.discard("PodGroup", meta.uid)
        self._problems.pop(record.key, None)
        self._left_to.pop(record.key, None)
        scheduler = meta.annotations.get(keys.GROUP_SCHEDULER)
        if scheduler and scheduler not in self._scheduler_names:
            self._left_to[record.key] = scheduler
        odd = unreadable_budgets(meta.annotations)
        if odd and odd != self._odd_budgets.get(record.key):
            log.warning("disruption budget of a PodGroup has no effect", group=str(record.key), problem="; ".join(odd))
        self._odd_budgets.pop(record.key, None)
        if odd:
            self._odd_budgets[record.key] = odd
        self._records[record.key] = record
        self._classes[record.key] = group.spec.priority_class_name
        self._show(record.key)

    def _leave_out(self, entry: Unreadable) -> None:
        self._unreadable.add(entry)
        key = JobKey(entry.namespace, entry.name)
        self._problems[key] = entry.message
        self._drop(key)

    def _gone(self, key: JobKey) -> None:
        self._odd_budgets.pop(key, None)
        self._problems.pop(key, None)
        self._drop(key)

    def _drop(self, key: JobKey) -> None:
        if self._records.pop(key, None) is not None:
            # Its pods are a gang by annotations now, as they would be for a scheduler that starts now.
            places = (self._state.store.task(uid) for uid in self._state.store.tasks_of(key))
            self._gangs.join_without_number(
                place.record for place in places if place is not None and place.status not in _ENDED
            )
        self._classes.pop(key, None)
        self._left_to.pop(key, None)
        self._show(key)

    def _wanted(self, key: JobKey) -> tuple[JobRecord | None, str]:
        """Return the record that the store should have of a job; None and the reason if it should have none."""
        known = self._records.get(key)
        if known is not None and self.is_ours(key):
            return self._foreign.rest(known), ""
        if key in self._left_to:
            return None, f"PodGroup {key} is left to scheduler {self._left_to[key]}, which its job names"
        if known is not None:
            return None, f"PodGroup {key} is left to the scheduler that its pods name"
        if key in self._problems:
            return None, self._problems[key]
        return self._gangs.record(key), self._gangs.problem(key)

    def _show(self, key: JobKey) -> None:
        """Bring the store up to date with one job."""
        store = self._state.store
        before = store.job(key)
        after, withheld = self._wanted(key)
        store.withhold(key, withheld)
        if before == after:
            return
        if after is None:
            store.remove_job(key)
            if key in self._records:
                log.info("PodGroup left to another scheduler: its job or its pods name it", pod_group=str(key))
        else:
            store.set_job(after)
            self.assume_queue()
        if not same_gang(before, after):
            self._state.touch_group(key, present=after is not None)
            self._state.note(Change.GROUP)
        elif before is not None and after is not None and before.priority != after.priority:
            self._state.note(Change.GROUP)
        else:
            self._state.note(Change.GROUP_STATUS)


class QueueEvents:
    """Keeps the store's queues equal to the API server's."""

    def __init__(self, state: ClusterState, unreadable: UnreadableObjects, groups: PodGroupEvents) -> None:
        self._state = state
        self._unreadable = unreadable
        self._groups = groups
        self.allocated: dict[str, dict[str, float]] = {}
        """What the status of each queue shows as allocated, by resource."""
        self.on_allocated: Callable[[str], None] = lambda _: None
        """Is called with the name of a queue whose status shows something else as allocated than before."""

    def on_events(self, events: list[Event[Queue]]) -> None:
        """Apply changes in order."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._forget(event.name, event.uid)
                self._drop(event.name)
                continue
            self._apply(event.object)
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a queue that does not fit its type; its jobs report what is wrong with it."""
        self._leave_out(Unreadable("Queue", "", entry.name, entry.uid, entry.message))
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a queue was left out; its event follows, unless it is gone."""
        self._forget(entry.name, entry.uid)
        self._state.notify()

    def _apply(self, queue: Queue) -> None:
        name, uid = queue.metadata.name, queue.metadata.uid
        try:
            record = queue_record(queue)
        except ValueError as error:
            self._leave_out(Unreadable("Queue", "", name, uid, f"Queue {name} cannot be read: {error}"))
            return
        self._forget(name, uid)
        allocated = shown_allocated(queue)
        if allocated != self.allocated.get(name):
            self.allocated[name] = allocated
            self.on_allocated(name)
        self._groups.assumed_queue.end()
        if self._state.store.queues.get(name) != record:
            self._state.store.set_queue(record)
            self._state.note(Change.QUEUE)

    def _leave_out(self, entry: Unreadable) -> None:
        self._unreadable.add(entry)
        if self._state.store.facts.set_unreadable_queue(entry.name, entry.message):
            self._state.note(Change.QUEUE)
        self._drop(entry.name)

    def _forget(self, name: str, uid: str) -> None:
        self._unreadable.discard("Queue", uid)
        if self._state.store.facts.set_unreadable_queue(name, ""):
            self._state.note(Change.QUEUE)

    def _drop(self, name: str) -> None:
        self.allocated.pop(name, None)
        if name in self._state.store.queues:
            self._state.store.remove_queue(name)
            self._groups.assume_queue()
            self._state.note(Change.QUEUE)


class PriorityClassEvents:
    """Keeps the priorities of jobs equal to those of their PriorityClasses."""

    def __init__(
        self, state: ClusterState, unreadable: UnreadableObjects, priorities: PriorityTable, groups: PodGroupEvents
    ) -> None:
        self._state = state
        self._unreadable = unreadable
        self._priorities = priorities
        self._groups = groups

    def on_events(self, events: list[Event[PriorityClass]]) -> None:
        """Apply changes in order, then give every job its priority."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._unreadable.discard("PriorityClass", event.uid)
                self._priorities.remove(event.name)
            else:
                self._apply(event.object)
        self._groups.reprioritise()
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a class that does not fit its type: its jobs get the default priority."""
        self._unreadable.add(Unreadable("PriorityClass", "", entry.name, entry.uid, entry.message))
        self._priorities.remove(entry.name)
        self._groups.reprioritise()
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a class was left out; its event follows, unless it is gone."""
        self._unreadable.discard("PriorityClass", entry.uid)

    def _apply(self, entry: PriorityClass) -> None:
        name, uid = entry.metadata.name, entry.metadata.uid
        try:
            self._priorities.set(entry)
        except ValueError as error:
            self._priorities.remove(name)
            self._unreadable.add(
                Unreadable("PriorityClass", "", name, uid, f"PriorityClass {name} cannot be read: {error}")
            )
        else:
            self._unreadable.discard("PriorityClass", uid)
