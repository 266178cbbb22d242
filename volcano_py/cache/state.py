"""What all event handlers share: the store, revisions, change notices, and the number of pods on nodes."""

from typing import NewType

from volcano_py.cache.changes import Change, ChangeCallback
from volcano_py.model.objects import JobKey, TaskRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import READY_STATUSES, TaskStatus
from volcano_py.snapshot.store import ClusterStore
from volcano_py.snapshot.task_place import TaskPlace

SnapshotToken = NewType("SnapshotToken", int)
"""The revision of the state that a decision was made on."""


class _JobTrack:
    """Revisions and counts of one job."""

    __slots__ = ("generation", "group_revision", "has_group", "loss_revision", "members")

    def __init__(self) -> None:
        self.generation = 0  # revision of the last change of the PodGroup's demand or of its members
        self.group_revision = 0  # revision of the last change of the PodGroup's demand
        self.loss_revision = 0  # revision at which it last lost a member that counted towards its minimum
        self.has_group = False
        self.members = 0


class ClusterState:
    """The store, with revisions and change notices; owned by one thread, like the store."""

    def __init__(self) -> None:
        self.store = ClusterStore()
        self.revision = 1
        self.bound_pods = 0
        """Pods in the store that the API server shows on a node; assumed binds do not count."""
        self._jobs: dict[JobKey, _JobTrack] = {}
        self._node_revisions: dict[str, int] = {}
        self._changes: set[Change] = set()
        self._callbacks: list[ChangeCallback] = []

    # Change notices

    def subscribe(self, callback: ChangeCallback) -> None:
        """Call ``callback`` with the changes of every batch."""
        self._callbacks.append(callback)

    def note(self, change: Change) -> None:
        """Note a change; the next `notify` reports it."""
        self._changes.add(change)

    def notify(self) -> None:
        """Report the changes since the last call."""
        if self._changes:
            changes, self._changes = frozenset(self._changes), set()
            for callback in self._callbacks:
                callback(changes)

    # Revisions

    def advance(self) -> int:
        """Return a revision that is higher than all before."""
        self.revision += 1
        return self.revision

    def generation(self, key: JobKey) -> int:
        """Return the revision of the last change of a job's demand or members, 0 for an unknown job."""
        track = self._jobs.get(key)
        return 0 if track is None else track.generation

    def group_revision(self, key: JobKey) -> int:
        """Return the revision of the last change of what a PodGroup asks for, 0 if there is none."""
        track = self._jobs.get(key)
        return 0 if track is None or not track.has_group else track.group_revision

    def loss_revision(self, key: JobKey) -> int:
        """Return the revision at which a job last lost a member that counted towards its minimum, 0 for never."""
        track = self._jobs.get(key)
        return 0 if track is None else track.loss_revision

    def node_revision(self, name: str) -> int:
        """Return the revision of the last change that may make a node refuse a pod, 0 for an unknown node."""
        return self._node_revisions.get(name, 0)

    def touch_job(self, key: JobKey | None) -> None:
        """Give a job a new generation."""
        if key is not None:
            self._track(key).generation = self.advance()

    def touch_group(self, key: JobKey, *, present: bool) -> None:
        """Note that what a PodGroup asks for has changed, or that it is gone."""
        track = self._track(key)
        track.generation = track.group_revision = self.advance()
        track.has_group = present
        self._drop_if_unused(key, track)

    def touch_node(self, name: str, *, present: bool) -> None:
        """Note that a node may refuse a pod that it accepted before, or that it is gone."""
        if present:
            self._node_revisions[name] = self.advance()
        else:
            self._node_revisions.pop(name, None)

    # Tasks

    def set_task(
        self, before: TaskPlace | None, record: TaskRecord, shape: Shape, status: TaskStatus, node: str
    ) -> None:
        """Add or replace a task; ``before`` is where the store has it now."""
        self.store.set_task(record, shape, status, node)
        self.bound_pods += _shown_on_node(status, node) - (
            before is not None and _shown_on_node(before.status, before.node)
        )
        if before is None:
            self._join(record.key)
            return
        if before.record.job != record.job or status not in READY_STATUSES:
            self._note_loss(before)
        if before.record.job != record.job:
            self._join(record.key)
            self._leave(before.record.key)

    def move_task(self, before: TaskPlace, status: TaskStatus, node: str) -> None:
        """Change the status and node of a task."""
        self.store.move_task(before.record.uid, status, node)
        self.bound_pods += _shown_on_node(status, node) - _shown_on_node(before.status, before.node)

    def drop_task(self, before: TaskPlace) -> None:
        """Forget a task."""
        self.store.remove_task(before.record.uid)
        self.bound_pods -= _shown_on_node(before.status, before.node)
        self._note_loss(before)
        self._leave(before.record.key)

    def _note_loss(self, before: TaskPlace) -> None:
        """Note that a job has lost this member, if it counted towards its minimum."""
        key = before.record.key
        if key is not None and before.status in READY_STATUSES:
            self._track(key).loss_revision = self.advance()

    def _track(self, key: JobKey) -> _JobTrack:
        track = self._jobs.get(key)
        if track is None:
            track = self._jobs[key] = _JobTrack()
        return track

    def _join(self, key: JobKey | None) -> None:
        if key is not None:
            self._track(key).members += 1

    def _leave(self, key: JobKey | None) -> None:
        if key is not None:
            track = self._track(key)
            track.members -= 1
            track.generation = self.advance()
            self._drop_if_unused(key, track)

    def _drop_if_unused(self, key: JobKey, track: _JobTrack) -> None:
        if not track.members and not track.has_group:
            del self._jobs[key]


def _shown_on_node(status: TaskStatus, node: str) -> bool:
    return bool(node) and status is not TaskStatus.BINDING
