"""PodGroup, Queue and PriorityClass events.

A PodGroup names no scheduler. It is ours unless a pod of it asks for another one; then it stays out of the store, so
that it is neither scheduled nor written, until no such pod is left.
"""

from dataclasses import replace

import structlog

from volcano_py.api.types import PodGroup, PriorityClass, Queue
from volcano_py.cache.changes import Change
from volcano_py.cache.groups import PriorityTable, job_record, queue_record, same_gang
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable import Unreadable, UnreadableBook
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.model.objects import JobKey, JobRecord

log = structlog.get_logger()


class GroupIntake:
    """Keeps the store's jobs equal to the PodGroups that are ours."""

    def __init__(
        self, state: ClusterState, book: UnreadableBook, priorities: PriorityTable, default_queue: str
    ) -> None:
        self._state = state
        self._book = book
        self._priorities = priorities
        self._default_queue = default_queue
        self._records: dict[JobKey, JobRecord] = {}  # every PodGroup that can be read, ours or not
        self._classes: dict[JobKey, str] = {}  # name of its PriorityClass
        self._foreign: dict[JobKey, set[str]] = {}  # uids of its pods that ask for another scheduler

    def on_events(self, events: list[Event[PodGroup]]) -> None:
        """Apply changes in order."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._book.discard("PodGroup", event.uid)
                self._drop(JobKey(event.namespace, event.name))
            else:
                self._apply(event.object)
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a PodGroup that does not fit its type."""
        self._leave_out(Unreadable("PodGroup", entry.namespace, entry.name, entry.uid, entry.message))
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a PodGroup was left out; its event follows, unless it is gone."""
        self._book.discard("PodGroup", entry.uid)

    def claim(self, key: JobKey, uid: str) -> None:
        """Note that a pod of this group asks for another scheduler."""
        members = self._foreign.setdefault(key, set())
        members.add(uid)
        if len(members) == 1:
            self._show(key)

    def release(self, key: JobKey, uid: str) -> None:
        """Note that such a pod is gone or has left the group."""
        members = self._foreign.get(key)
        if members is not None:
            members.discard(uid)
            if not members:
                del self._foreign[key]
                self._show(key)

    def is_ours(self, key: JobKey) -> bool:
        """Say whether no pod of this group asks for another scheduler."""
        return key not in self._foreign

    def reprioritise(self) -> None:
        """Give every job the priority that its class has now."""
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
        self._book.discard("PodGroup", meta.uid)
        self._records[record.key] = record
        self._classes[record.key] = group.spec.priority_class_name
        self._show(record.key)

    def _leave_out(self, entry: Unreadable) -> None:
        self._book.add(entry)
        key = JobKey(entry.namespace, entry.name)
        self._drop(key)
        self._state.store.withhold(key, entry.message)

    def _drop(self, key: JobKey) -> None:
        self._state.store.withhold(key, "")
        self._records.pop(key, None)
        self._classes.pop(key, None)
        self._show(key)

    def _show(self, key: JobKey) -> None:
        """Make the store have what it should have of one PodGroup."""
        store = self._state.store
        before = store.job(key)
        known = self._records.get(key)
        after = known if self.is_ours(key) else None
        if known is not None:
            left = f"PodGroup {key} waits: a pod of it asks for another scheduler; give all its pods the same one"
            store.withhold(key, left if after is None else "")
        if before == after:
            return
        if after is None:
            store.remove_job(key)
            if key in self._records:
                log.info("PodGroup left to another scheduler: a pod of it asks for one", pod_group=str(key))
        else:
            store.set_job(after)
        if not same_gang(before, after):
            self._state.touch_group(key, present=after is not None)
            self._state.note(Change.GROUP)
        elif before is not None and after is not None and before.priority != after.priority:
            self._state.note(Change.GROUP)
        else:
            self._state.note(Change.GROUP_STATUS)


class QueueIntake:
    """Keeps the store's queues equal to the API server's."""

    def __init__(self, state: ClusterState, book: UnreadableBook) -> None:
        self._state = state
        self._book = book

    def on_events(self, events: list[Event[Queue]]) -> None:
        """Apply changes in order."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._book.discard("Queue", event.uid)
                self._drop(event.name)
                continue
            self._apply(event.object)
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a queue that does not fit its type; its jobs say that it is missing."""
        self._leave_out(Unreadable("Queue", "", entry.name, entry.uid, entry.message))
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a queue was left out; its event follows, unless it is gone."""
        self._book.discard("Queue", entry.uid)

    def _apply(self, queue: Queue) -> None:
        name, uid = queue.metadata.name, queue.metadata.uid
        try:
            record = queue_record(queue)
        except ValueError as error:
            self._leave_out(Unreadable("Queue", "", name, uid, f"Queue {name} cannot be read: {error}"))
            return
        self._book.discard("Queue", uid)
        if self._state.store.queues.get(name) != record:
            self._state.store.set_queue(record)
            self._state.note(Change.QUEUE)

    def _leave_out(self, entry: Unreadable) -> None:
        self._book.add(entry)
        self._drop(entry.name)

    def _drop(self, name: str) -> None:
        if name in self._state.store.queues:
            self._state.store.remove_queue(name)
            self._state.note(Change.QUEUE)


class PriorityIntake:
    """Keeps the priorities of jobs equal to what their classes say."""

    def __init__(
        self, state: ClusterState, book: UnreadableBook, priorities: PriorityTable, groups: GroupIntake
    ) -> None:
        self._state = state
        self._book = book
        self._priorities = priorities
        self._groups = groups

    def on_events(self, events: list[Event[PriorityClass]]) -> None:
        """Apply changes in order, then give every job its priority."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._book.discard("PriorityClass", event.uid)
                self._priorities.remove(event.name)
            else:
                self._apply(event.object)
        self._groups.reprioritise()
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a class that does not fit its type: jobs that name it count as if they named none."""
        self._book.add(Unreadable("PriorityClass", "", entry.name, entry.uid, entry.message))
        self._priorities.remove(entry.name)
        self._groups.reprioritise()
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a class was left out; its event follows, unless it is gone."""
        self._book.discard("PriorityClass", entry.uid)

    def _apply(self, entry: PriorityClass) -> None:
        name, uid = entry.metadata.name, entry.metadata.uid
        try:
            self._priorities.set(entry)
        except ValueError as error:
            self._priorities.remove(name)
            self._book.add(Unreadable("PriorityClass", "", name, uid, f"PriorityClass {name} cannot be read: {error}"))
        else:
            self._book.discard("PriorityClass", uid)
