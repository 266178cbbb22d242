"""Pod events: they add, change and remove tasks, and end what is assumed of them.

    pod                               in the store
    ours, not on a node               PENDING; BINDING on its node while a bind is assumed
    ours, on a node                   status of its phase; an assumed bind is confirmed, or forgotten if the node
                                      differs; RELEASING while an eviction is assumed, until the pod terminates or ends
    ours, ended                       SUCCEEDED or FAILED, on no node; it counts in its job
    of another scheduler, on a node   counted on the node, marked foreign
    of another, nominated to a node   PENDING, marked foreign; it has nominated room
    of another scheduler, otherwise   not kept; its PodGroup is ours only if it also has pods of ours
    cannot be read, on a node         its last known state stays, and the node is closed
    cannot be read, otherwise         not kept and not scheduled

A pod never loses its node, and an ended pod never runs again. An event that says so is older than the known state,
because the pod was read again meanwhile. Such an event is ignored.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

import msgspec

from volcano_py.api.core import Pod
from volcano_py.cache.assumed_nominations import AssumedNominations, Nomination
from volcano_py.cache.changes import Change
from volcano_py.cache.foreign_pods import foreign_pod
from volcano_py.cache.group_events import PodGroupEvents
from volcano_py.cache.node_events import NodeEvents
from volcano_py.cache.pods import ShapeReader, is_terminal, nominated_node, task_record, task_status
from volcano_py.cache.raw_pod import peek
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable_objects import Unreadable, UnreadableObjects
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.ledger.ledger import Ledger
from volcano_py.model.objects import TaskRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.task_place import TaskPlace

_ENDED = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})
_WAITING = frozenset({TaskStatus.PENDING, TaskStatus.BINDING})
_LEAVING = frozenset({TaskStatus.RELEASING, *_ENDED})


class PodEvents:
    """Keeps the store's tasks equal to the API server's pods, and to what is assumed of them."""

    def __init__(
        self,
        state: ClusterState,
        unreadable: UnreadableObjects,
        binds: Ledger,
        evictions: Ledger,
        nominations: AssumedNominations,
        nodes: NodeEvents,
        groups: PodGroupEvents,
        scheduler_names: Collection[str],
        on_changed: Callable[[str], None] = lambda uid: None,
        *,
        queue_admission: bool,
        only_unschedulable: bool,
    ) -> None:
        """Take the other parts of the cache; ``on_changed`` gets the uids of pods that are bound, gone or changed."""
        self._state = state
        self._store = state.store
        self._unreadable = unreadable
        self._binds = binds
        self._evictions = evictions
        self._nominations = nominations
        self._nodes = nodes
        self._groups = groups
        self._scheduler_names = frozenset(scheduler_names)
        self._on_changed = on_changed
        self._only_unschedulable = only_unschedulable
        self._shapes = ShapeReader(queue_admission=queue_admission)
        self._waiting: dict[str, Shape] = {}  # uid of every task that is PENDING or BINDING -> shape
        self._before_eviction: dict[str, TaskStatus] = {}  # uid of a task whose eviction is assumed -> shown status

    def on_events(self, events: list[Event[Pod]]) -> None:
        """Apply changes in order."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self.remove(event.uid)
            else:
                self.apply(event.object)
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out a pod that does not fit its type, and close its node."""
        known = peek(entry.raw)
        ours = known.scheduler_name is None or known.scheduler_name in self._scheduler_names
        if ours or known.node or self._store.task(entry.uid) is not None:
            node = "" if known.ended else known.node
            unreadable = Unreadable("Pod", entry.namespace, entry.name, entry.uid, entry.message, node)
            self._leave_out(unreadable, known.ended)
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why a pod was left out; its event follows, unless it is gone."""
        self._readable(entry.uid)
        self._state.notify()

    def apply(self, pod: Pod) -> None:
        """Bring the store up to date with one pod."""
        uid = pod.metadata.uid
        place = self._store.task(uid)
        if place is not None and _is_older(pod, place):
            return
        node = "" if is_terminal(pod) else pod.spec.node_name
        if pod.spec.scheduler_name not in self._scheduler_names:
            self._groups.note_foreign_pod(uid, foreign_pod(pod))
            if not node and not (nominated_node(pod) and task_status(pod) is TaskStatus.PENDING):
                self._readable(uid)
                self._drop(uid, place)
                return
        try:
            shape = self._shapes.shape(pod)
            record = task_record(pod, self._scheduler_names, only_unschedulable=self._only_unschedulable)
        except ValueError as error:
            self._refuse(pod, node, error)
            return
        if len(self._unreadable):
            self._readable(uid)
        self._put(place, record, shape, task_status(pod), node)
        if place is not None and place.record.key != record.key:
            self._groups.recount(place.record.key)  # the group that it has left
        if record.key is None or is_terminal(pod):
            self._groups.leave(uid)
            self._groups.recount(record.key)
        else:
            self._groups.join(record.key, pod)

    def remove(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._readable(uid)
        self._groups.note_foreign_pod(uid, None)
        self._binds.forget(uid)
        self._drop(uid, self._store.task(uid))

    def wait_again(self, uid: str) -> None:
        """Make a BINDING task PENDING again, because its bind failed or was not sent."""
        place = self._store.task(uid)
        if place is None or place.status is not TaskStatus.BINDING:
            return
        if self._unreadable.get("Pod", uid) is not None:
            self._drop(uid, place)  # it became unreadable meanwhile
            return
        self._state.move_task(place, TaskStatus.PENDING, "")
        self._state.touch_job(place.record.key)
        self._state.note(Change.BIND_FAILED)

    # What is assumed

    def count_as_releasing(self, uid: str) -> None:
        """Count a task as terminating until the watch shows it, or until `end_releasing`."""
        place = self._store.task(uid)
        if place is not None:
            self._before_eviction[uid] = place.status
            self._state.move_task(place, TaskStatus.RELEASING, place.node)

    def end_releasing(self, uid: str) -> None:
        """Give a task the status again that the watch shows, because its eviction failed."""
        status, place = self._before_eviction.pop(uid, None), self._store.task(uid)
        if status is not None and place is not None:
            self._state.move_task(place, status, place.node)
            self._state.touch_job(place.record.key)
            self._state.note(Change.EVICTION_FAILED)

    def counted_as_releasing(self) -> frozenset[str]:
        """Return the uids of tasks that count as terminating because their eviction is assumed."""
        return frozenset(self._before_eviction)

    def nominated(self, uid: str) -> Nomination | None:
        """Return the nomination of a waiting task; None if the task does not wait."""
        place = self._store.task(uid)
        return None if place is None or place.status not in _WAITING else _nomination(place.record)

    def set_nominated(self, uid: str, nomination: Nomination) -> None:
        """Count a waiting task as nominated to a node."""
        place, shape = self._store.task(uid), self._waiting.get(uid)
        if place is not None and shape is not None:
            record = _nominated_as(place.record, nomination)
            self._state.set_task(place, record, shape, place.status, place.node)

    def unreadable_bound_pods(self) -> int:
        """Return how many pods on nodes are not in the store because they cannot be read."""
        return sum(
            1
            for entry in self._unreadable.entries()
            if entry.kind == "Pod" and entry.node and not self._store.task(entry.uid)
        )

    # Readable pods

    def _put(self, before: TaskPlace | None, record: TaskRecord, shape: Shape, status: TaskStatus, node: str) -> None:
        uid = record.uid
        confirmed = False
        if len(self._nominations):
            record = self._with_nomination(record, status)
        if self._evictions.get(uid) is not None:
            status = self._unless_evicted(uid, status)
        assumed = self._binds.get(uid)
        if assumed is not None:
            if status is TaskStatus.PENDING:
                status, node = TaskStatus.BINDING, assumed.node
            elif node == assumed.node:
                confirmed = self._binds.confirm(uid) is not None
            else:
                self._binds.forget(uid)
        if status in _WAITING and before == TaskPlace(record, status, node) and shape == self._waiting.get(uid):
            return
        self._state.set_task(before, record, shape, status, node)
        if status in _WAITING:
            self._note_waiting(before, record, shape, status)
            self._waiting[uid] = shape
        else:
            self._waiting.pop(uid, None)
            self._on_changed(uid)
            self._note_on_node(before, status, node)
            if not confirmed:
                self._state.touch_job(record.key)

    def _unless_evicted(self, uid: str, status: TaskStatus) -> TaskStatus:
        """Return the status of a task whose eviction is assumed; a terminating or ended pod confirms the eviction."""
        if status in _LEAVING:
            self._evictions.confirm(uid)
            self._before_eviction.pop(uid, None)
            return status
        self._before_eviction[uid] = status
        return TaskStatus.RELEASING

    def _with_nomination(self, record: TaskRecord, status: TaskStatus) -> TaskRecord:
        if status is not TaskStatus.PENDING:
            self._nominations.end(record.uid)
            return record
        return _nominated_as(record, self._nominations.see(record.uid, _nomination(record)))

    def _note_waiting(self, before: TaskPlace | None, record: TaskRecord, shape: Shape, status: TaskStatus) -> None:
        """Note how a waiting task has changed: only its status, or also what it asks for."""
        if before is not None and shape == self._waiting.get(record.uid):
            same = msgspec.structs.replace(before.record, condition=record.condition)
            if _nominated_as(same, _nomination(record)) == record:
                self._state.note(Change.POD)
                return
        self._on_changed(record.uid)
        self._state.touch_job(record.key)
        ours_waits = status is TaskStatus.PENDING and not record.foreign
        self._state.note(Change.POD_PENDING if ours_waits else Change.POD)

    def _note_on_node(self, before: TaskPlace | None, status: TaskStatus, node: str) -> None:
        """Note how a task on a node has changed: it makes room if it ended, or is on another node than assumed."""
        ended = status in _ENDED and before is not None and before.status not in _ENDED
        left = before is not None and before.node not in ("", node)
        self._state.note(Change.POD_GONE if ended or left else Change.POD)

    def _drop(self, uid: str, place: TaskPlace | None) -> None:
        if place is None:
            return
        self._waiting.pop(uid, None)
        self._before_eviction.pop(uid, None)
        self._evictions.confirm(uid)
        self._nominations.end(uid)
        self._on_changed(uid)
        self._state.drop_task(place)
        self._groups.leave(uid)
        self._groups.recount(place.record.key)
        self._state.note(Change.POD if place.status in _ENDED else Change.POD_GONE)

    # Unreadable pods

    def _refuse(self, pod: Pod, node: str, error: ValueError) -> None:
        meta = pod.metadata
        message = f"pod {meta.namespace}/{meta.name} cannot be read: {error}"
        self._leave_out(Unreadable("Pod", meta.namespace, meta.name, meta.uid, message, node), is_terminal(pod))

    def _leave_out(self, entry: Unreadable, ended: bool) -> None:
        """Leave a pod out, but keep its last known state while it may use a node, so that its room stays counted."""
        uid = entry.uid
        place = self._store.task(uid)
        if place is not None and place.node and place.status is not TaskStatus.BINDING and not ended:
            entry = replace(entry, node=place.node)  # it is still there, even if its node cannot be read now
        if entry.node:
            self._nodes.close(entry.node, uid, f"pod {entry.namespace}/{entry.name} on it cannot be read")
            if self._binds.get(uid) is not None:
                self._binds.confirm(uid)
            if place is not None and (place.node != entry.node or place.status is TaskStatus.BINDING):
                self._waiting.pop(uid, None)
                self._state.move_task(place, TaskStatus.BOUND, entry.node)
                self._state.touch_job(place.record.key)
                self._state.note(Change.POD)
        else:
            self._nodes.reopen(uid)
            if ended or self._binds.get(uid) is None:
                self._binds.forget(uid)
                self._drop(uid, place)
        self._unreadable.add(entry)

    def _readable(self, uid: str) -> None:
        if self._unreadable.discard("Pod", uid) is not None:
            self._nodes.reopen(uid)


def _nomination(record: TaskRecord) -> Nomination:
    return Nomination(record.nominated, record.nominated_by_us)


def _nominated_as(record: TaskRecord, to: Nomination) -> TaskRecord:
    if to == _nomination(record):
        return record
    return msgspec.structs.replace(record, nominated=to.node, nominated_by_us=to.ours)


def _is_older(pod: Pod, place: TaskPlace) -> bool:
    """Say whether a state of a pod is older than the known one."""
    if place.status in _ENDED:
        return not is_terminal(pod)
    return bool(place.node) and place.status is not TaskStatus.BINDING and not pod.spec.node_name
