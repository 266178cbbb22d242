"""The pods of one job, with counts that follow every change: no question walks through all pods.

A pod that is being deleted, or that this process has deleted, counts as terminating and as nothing else. A pod that
succeeded before somebody else deleted it has done its work: once it is gone, it counts as succeeded.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from volcano_py.controllers.job import objects
from volcano_py.controllers.job.missing import Missing
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.phases import Counts

PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN = "Pending", "Running", "Succeeded", "Failed", "Unknown"
ENDED: Final = frozenset({SUCCEEDED, FAILED})
_PHASES: Final = frozenset({PENDING, RUNNING, SUCCEEDED, FAILED})


class Member(msgspec.Struct, gc=False):
    """One pod of a job."""

    name: str
    uid: str
    version: int
    """status.version of the job when the pod was created."""
    task: str
    index: int
    phase: str
    deleting: bool
    killed: bool
    """Whether the controller kills the pod: it carries the mark of that, or was deleted."""
    ready: bool = False
    restarts: int = 0
    exit_code: int = 0
    partition: str = ""
    reason: str = ""
    created: datetime | None = None
    ended: datetime | None = None
    resource_version: str = ""
    dropped: bool = False
    """Whether the controller deletes the pod because it is not needed: its end is no eviction."""
    dismissed: bool = False
    """Whether the pod carries the mark of one that is not needed, and does not terminate."""
    unmarked: bool = False
    """Whether an attempt to mark the pod before its deletion has failed."""
    completed: bool = False
    """Whether the pod succeeded before anybody deleted it. A pod that is told to stop may succeed, too, unfinished."""
    retry: int | None = None
    """status.retryCount of the job when the pod was created, None if the pod does not say."""

    @classmethod
    def of(cls, pod: JobPod) -> "Member":
        """Read a pod."""
        meta, status = pod.metadata, pod.status
        annotations = meta.annotations
        phase = status.phase or PENDING
        task, index = objects.task_and_index(meta)
        deleting = meta.deletion_timestamp is not None
        member = cls(
            meta.name,
            meta.uid,
            objects.number(annotations.version) or 0,
            task,
            index,
            phase if phase in _PHASES else UNKNOWN,
            deleting,
            annotations.deleted == objects.KILLED,
            dropped=deleting and annotations.deleted == objects.NOT_NEEDED,
            dismissed=not deleting and annotations.deleted == objects.NOT_NEEDED,
            partition=meta.labels.partition,
            created=meta.creation_timestamp,
            resource_version=meta.resource_version,
            retry=objects.number(annotations.retry),
        )
        if status.container_statuses or status.init_container_statuses or phase in ENDED:
            member.ready = objects.is_ready(pod)
            member.restarts = objects.restarts(pod)
            if phase in ENDED:
                member.ended = objects.ended_at(pod)
                member.completed = phase == SUCCEEDED and not member.deleting
            if phase == FAILED:
                member.exit_code = objects.exit_code(pod)
                member.reason = status.reason or status.message
        else:
            member.ready = phase == RUNNING  # without containers, all of them are ready
        return member


@dataclass(slots=True)
class TaskMembers:
    """The pods of one task."""

    replicas: int = 0
    """How many pods the task should have."""
    by_index: dict[int, str] = field(default_factory=dict)
    """The name of the pod with each index, pods that terminate included."""
    missing: Missing = field(default_factory=Missing)
    """Indices below `replicas` that need a pod."""
    done: set[int] = field(default_factory=set)
    """Indices below `replicas` whose pods have succeeded and are gone; a pod that has such an index counts instead."""
    completed: set[int] = field(default_factory=set)
    """Those of them that no pod has: they count as succeeded."""
    extra: set[str] = field(default_factory=set)
    """Pods that are not terminating and have an index from `replicas`."""
    active: set[str] = field(default_factory=set)
    """Pods that have not ended and do not terminate."""
    ended: set[str] = field(default_factory=set)
    """Pods that succeeded or failed and do not terminate."""
    departing: set[str] = field(default_factory=set)
    """Pods that had succeeded before somebody deleted them, and are not gone yet."""
    phases: Counter[str] = field(default_factory=Counter)
    """Pods that do not terminate, by phase."""
    ready: int = 0
    restarts: int = 0
    """Restarts of the containers of all pods that do not terminate."""
    spent: int = 0
    """Restarts of pods that the controller has killed since the whole job started."""


class Members:
    """The pods of one job."""

    def __init__(self) -> None:
        self._by_name: dict[str, Member] = {}
        self._tasks: dict[str, TaskMembers] = {}
        self._phases: Counter[str] = Counter()
        self._terminating = 0
        self._marked: set[str] = set()
        self.leaving: set[str] = set()
        """Pods that are needed and that somebody else is deleting."""
        self._dismissed: set[str] = set()

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Member | None:
        """Return a pod by name."""
        return self._by_name.get(name)

    def task(self, name: str) -> TaskMembers:
        """Return the pods of a task."""
        found = self._tasks.get(name)
        if found is None:
            found = self._tasks[name] = TaskMembers()
        return found

    @property
    def tasks(self) -> Iterable[tuple[str, TaskMembers]]:
        """The tasks that have or should have pods, by name."""
        return self._tasks.items()

    def expect(self, replicas: Iterable[tuple[str, int]]) -> None:
        """Say how many pods each task should have; a task that is not named should have none."""
        wanted = dict(replicas)
        changed = [name for name in {*wanted, *self._tasks} if self.task(name).replicas != wanted.get(name, 0)]
        for name in changed:
            task, count = self.task(name), wanted.get(name, 0)
            task.replicas = count
            self.complete(name, task.done)
            task.missing = Missing(count, (*task.by_index, *task.completed))
        for member in self._by_name.values() if changed else ():
            self._place(self.task(member.task), member)

    def kill_departing(self, name: str, is_killed: Callable[[Member], bool]) -> None:
        """Say which departing pods of a task a restart kills: their work does not count any more."""
        for one in self.task(name).departing:
            member = self._by_name[one]
            member.killed = member.killed or is_killed(member)

    def complete(self, name: str, indices: Iterable[int]) -> None:
        """Say which indices of a task have succeeded, and their pods are gone."""
        task = self.task(name)
        task.done = {index for index in indices if 0 <= index < task.replicas}
        counted = task.done - task.by_index.keys()
        for index in task.completed - counted:
            self._count_completed(task, index, -1)
        for index in counted - task.completed:
            self._count_completed(task, index, +1)

    def complete_one(self, member: Member) -> None:
        """Say that a pod which is gone had succeeded."""
        task = self.task(member.task)
        if 0 <= member.index < task.replicas and member.index not in task.done:
            task.done.add(member.index)
            if member.index not in task.by_index:
                self._count_completed(task, member.index, +1)

    def _count_completed(self, task: TaskMembers, index: int, step: int) -> None:
        self._phases[SUCCEEDED] += step
        task.phases[SUCCEEDED] += step
        task.ready += step
        if step > 0:
            task.completed.add(index)
            task.missing.discard(index)
        else:
            task.completed.discard(index)
            if index < task.replicas:
                task.missing.add(index)

    def put(self, member: Member) -> Member | None:
        """Add or replace a pod; return its state before."""
        before = self._by_name.get(member.name)
        if before is not None:
            self._count(before, -1)
        self._by_name[member.name] = member
        self._count(member, +1)
        return before

    def remove(self, name: str) -> Member | None:
        """Remove a pod that is gone; return its last state."""
        member = self._by_name.pop(name, None)
        if member is not None:
            self._count(member, -1)
        return member

    def mark_deleting(self, name: str, uid: str) -> None:
        """Note that the controller deleted a pod; it terminates from now on."""
        member = self._by_name.get(name)
        if member is not None and member.uid == uid and not member.deleting:
            self._count(member, -1)
            member.deleting = member.killed = True
            self._count(member, +1)

    @property
    def completed(self) -> Mapping[str, Set[int]]:
        """Indices whose pods have succeeded and are gone, of the tasks that have such."""
        return {name: task.completed for name, task in self._tasks.items() if task.completed}

    def counts(self) -> Counts:
        """Return the numbers of pods."""
        phases = self._phases
        return Counts(
            pending=phases[PENDING],
            running=phases[RUNNING],
            succeeded=phases[SUCCEEDED],
            failed=phases[FAILED],
            terminating=self._terminating,
            unknown=phases[UNKNOWN],
        )

    def victims(
        self, *, ended: Set[str] = frozenset(), task: str | None = None, below: int | None = None
    ) -> list[Member]:
        """Return the pods to kill: those that do not terminate yet, of one task or of all, in order of their names.

        ``ended`` says which pods that have ended are among them, by phase. ``below`` limits them to pods of an earlier
        version of the job.
        """
        tasks: Sequence[TaskMembers] = list(self._tasks.values()) if task is None else [self.task(task)]
        names = [name for one in tasks for name in (*one.active, *(one.ended if ended else ()))]
        found = [self._by_name[name] for name in sorted(names)]
        found = [member for member in found if member.phase not in ENDED or member.phase in ended]
        return found if below is None else [member for member in found if member.version < below]

    def marked(self) -> list[Member]:
        """Return the pods that carry the mark of a kill and do not terminate yet."""
        return [self._by_name[name] for name in sorted(self._marked)]

    def dismissed(self) -> list[Member]:
        """Return the pods that are needed, do not terminate, and carry the mark of those that are not needed."""
        return [self._by_name[name] for name in sorted(self._dismissed)]

    def keep_mark(self, name: str) -> None:
        """Say that the mark of a pod cannot be taken away."""
        member = self._by_name.get(name)
        if member is not None:
            member.dismissed = False
            self._dismissed.discard(name)

    def extra(self) -> list[Member]:
        """Return the pods that are not needed and do not terminate yet."""
        return [self._by_name[name] for _, task in self._tasks.items() for name in sorted(task.extra)]

    def _place(self, task: TaskMembers, member: Member) -> None:
        """Note of a pod whether it is not needed, or needed and being deleted by somebody else."""
        needed = 0 <= member.index < task.replicas
        task.extra.discard(member.name)
        self.leaving.discard(member.name)
        self._dismissed.discard(member.name)
        if not needed and not member.deleting:
            task.extra.add(member.name)
        elif needed and member.dismissed and not member.deleting:
            self._dismissed.add(member.name)
        elif needed and member.deleting and not (member.killed or member.dropped or member.completed):
            self.leaving.add(member.name)

    def _count(self, member: Member, step: int) -> None:
        task = self.task(member.task)
        name, index = member.name, member.index
        if step > 0 and member.killed and not member.deleting:
            self._marked.add(name)
        else:
            self._marked.discard(name)
        if step > 0:
            self._place(task, member)
            if index in task.completed:
                self._count_completed(task, index, -1)
            task.by_index[index] = name
            task.missing.discard(index)
        else:
            task.extra.discard(name)
            self.leaving.discard(name)
            self._dismissed.discard(name)
            if task.by_index.get(index) == name:
                del task.by_index[index]
                if index in task.done:
                    self._count_completed(task, index, +1)
                elif 0 <= index < task.replicas:
                    task.missing.add(index)
        if step > 0 and member.deleting and member.completed:
            task.departing.add(name)
        else:
            task.departing.discard(name)
        if member.deleting:
            self._terminating += step
            return
        self._phases[member.phase] += step
        task.phases[member.phase] += step
        task.ready += step * member.ready
        task.restarts += step * member.restarts
        group = task.ended if member.phase in ENDED else task.active
        if step > 0:
            group.add(name)
        else:
            group.discard(name)
