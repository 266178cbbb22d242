"""Tentative placements and evictions, committed or discarded together. Cluster state changes in no other way.

A victim counts as releasing as soon as it is evicted: its room counts as future idle of its node, its job and queue do
not hold it any more, and predicates and scores do not see it (`layout.eviction_delta`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.decisions import Bind, Decision, Evict, Nominate
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus

_FEW: Final = 64
# An attribute of an enum costs a call; every placement needs these.
_PENDING: Final = TaskStatus.PENDING
_ALLOCATED: Final = TaskStatus.ALLOCATED
_PIPELINED: Final = TaskStatus.PIPELINED
_BINDING: Final = TaskStatus.BINDING
_RELEASING: Final = TaskStatus.RELEASING


class _Operation(NamedTuple):
    status: TaskStatus  # ALLOCATED or PIPELINED
    job_row: int
    shape_id: int
    tasks: Rows
    nodes: Rows


class Cause(NamedTuple):
    """Why tasks are evicted."""

    action: str
    message: str  # for the users of the victims
    beneficiary: JobKey | None = None


class Checkpoint(NamedTuple):
    """A point in a statement to which it can be rolled back."""

    journal: int
    operations: int
    evicted: tuple[tuple[int, TaskStatus], ...]


class PlacementWatcher(Protocol):
    """Counts placements and evictions (`PlacementWatch` of plugins)."""

    @property
    def placed(self) -> Callable[[int, TaskInfo, Rows, Rows], object]:
        """Takes the row of a job, what its tasks have in common, their rows, and the node row of each."""

    @property
    def freed(self) -> Callable[[int, TaskInfo, Rows, Rows], object]:
        """Takes the same for tasks that are to be evicted or wait again."""


class Statement:
    """Operations on one session, each applied at once and undone by `discard`, newest first."""

    __slots__ = ("_checkpoint", "_evicted", "_operations", "_state", "_watchers")

    def __init__(self, state: State, watchers: Sequence[PlacementWatcher] = ()) -> None:
        """Take the state to change, and the watchers of placements and evictions."""
        self._state = state
        self._watchers = watchers
        self._checkpoint = state.journal.checkpoint()
        self._operations: list[_Operation] = []
        self._evicted: dict[int, TaskStatus] = {}  # task row -> its status before, in order of eviction

    def __len__(self) -> int:
        return sum(len(operation.tasks) for operation in self._operations)

    def __bool__(self) -> bool:
        """Whether any task has been placed. This is asked for every job, so it must not count them."""
        return bool(self._operations)

    @property
    def evicted(self) -> list[int]:
        """The rows of the victims, in order of eviction."""
        return list(self._evicted)

    @property
    def placed(self) -> list[tuple[int, int]]:
        """Row and node row of every task that has been placed, in order."""
        return [
            pair
            for operation in self._operations
            for pair in zip(operation.tasks.tolist(), operation.nodes.tolist(), strict=True)
        ]

    def allocate(self, job_row: int, shape_id: int, tasks: Rows, nodes: Rows) -> None:
        """Put pending tasks of one shape and job on nodes, task i on node i; nodes may repeat."""
        self._place(_Operation(_ALLOCATED, job_row, shape_id, tasks, nodes))

    def pipeline(self, job_row: int, shape_id: int, tasks: Rows, nodes: Rows) -> None:
        """Promise pending tasks of one shape and job resources that are still being released, or idle."""
        self._state.looks_ahead = True
        self._place(_Operation(_PIPELINED, job_row, shape_id, tasks, nodes))

    def _place(self, operation: _Operation) -> None:
        state, journal = self._state, self._state.journal
        status, job_row, shape_id, tasks, nodes = operation
        node_delta, _ = state.classes.deltas(shape_id, status)
        job_change = state.classes.job_change(shape_id, _PENDING, status)
        if len(tasks) == 1:
            task, node = int(tasks[0]), int(nodes[0])
            journal.add_to_nodes(state.nodes.block, node, node_delta)
            journal.add(state.jobs.block, job_row, job_change)
            journal.replace(state.tasks.status, task, status)
            journal.replace(state.tasks.node, task, node)
        else:
            distinct, counts = _counted(nodes)
            journal.add_to_nodes(state.nodes.block, distinct, node_delta[:, None] * counts)
            journal.add(state.jobs.block, job_row, job_change * len(tasks))
            journal.replace(state.tasks.status, tasks, status)
            journal.replace(state.tasks.node, tasks, nodes)
        self._operations.append(operation)
        self._count_in(job_row, shape_id, tasks, nodes)

    def _count_in(self, job_row: int, shape_id: int, tasks: Rows, nodes: Rows) -> None:
        state, taken = self._state, self._state.nodes.ports
        info = state.task_of(shape_id)
        ports = info.shape.host_ports
        # A Python loop over the placed tasks, only of shapes that take ports of their nodes.
        for node in nodes.tolist() if ports else ():
            state.journal.replace(taken.codes, node, taken.with_more(node, ports))
        if state.topology_counts is not None:
            state.topology_counts.moved(state.journal, shape_id, nodes, 1)
        if state.volumes is not None:
            state.volumes.placed(info, tasks, nodes)
        state.accounts.add(job_row, info.request if len(tasks) == 1 else info.request * len(tasks))
        for watcher in self._watchers:
            watcher.placed(job_row, info, tasks, nodes)

    def _count_out(self, job_row: int, shape_id: int, tasks: Rows, nodes: Rows) -> None:
        state = self._state
        task, taken = state.task_of(shape_id), state.nodes.ports
        ports = task.shape.host_ports
        # A Python loop over the victims, only of shapes that take ports of their nodes.
        for node in nodes.tolist() if ports else ():
            state.journal.replace(taken.codes, node, taken.with_less(node, ports))
        if state.topology_counts is not None:
            state.topology_counts.moved(state.journal, shape_id, nodes, -1)
        if state.volumes is not None:
            state.volumes.freed(task, tasks, nodes)
        state.accounts.add(job_row, -task.request * len(tasks))
        for watcher in self._watchers:
            watcher.freed(job_row, task, tasks, nodes)

    def evict(self, tasks: Rows) -> None:
        """Evict tasks that are on nodes and belong to jobs; no task twice."""
        state = self._state
        for task, status in zip(tasks.tolist(), state.tasks.status[tasks].tolist(), strict=True):
            self._evicted[task] = TaskStatus(status)
        state.looks_ahead = True
        for job_row, shape_id, status, alike in self._alike(tasks):
            self._move(alike, job_row, shape_id, status, _RELEASING, state.classes.eviction_delta(shape_id))
            self._count_out(job_row, shape_id, alike, state.tasks.node[alike].astype(np.intp))

    def put_back(self, task: int) -> None:
        """Undo the eviction of one task by this statement."""
        state, row = self._state, np.array([task])
        job_row, shape_id, before = int(state.tasks.job[task]), int(state.tasks.shape[task]), self._evicted.pop(task)
        self._move(row, job_row, shape_id, _RELEASING, before, -state.classes.eviction_delta(shape_id))
        self._count_in(job_row, shape_id, row, state.tasks.node[row].astype(np.intp))

    def _alike(self, tasks: Rows) -> list[tuple[int, int, TaskStatus, Rows]]:
        """Return job, shape, status and rows of each group of tasks that have all three in common."""
        columns = self._state.tasks
        if len(tasks) == 1:
            task = int(tasks[0])
            return [(int(columns.job[task]), int(columns.shape[task]), TaskStatus(int(columns.status[task])), tasks)]
        keys = np.stack((columns.job[tasks], columns.shape[tasks], columns.status[tasks]))
        distinct, which = np.unique(keys, axis=1, return_inverse=True)
        which = which.reshape(-1)
        return [
            (job_row, shape_id, TaskStatus(status), tasks[which == number])
            for number, (job_row, shape_id, status) in enumerate(distinct.T.tolist())
        ]

    def _move(
        self,
        tasks: Rows,
        job_row: int,
        shape_id: int,
        before: TaskStatus,
        after: TaskStatus,
        node_delta: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    ) -> None:
        """Change the status of tasks that are alike and stay on their nodes."""
        state, journal = self._state, self._state.journal
        distinct, counts = _counted(state.tasks.node[tasks].astype(np.intp))
        journal.add_to_nodes(state.nodes.block, distinct, node_delta[:, None] * counts)
        journal.add(state.jobs.block, job_row, state.classes.job_change(shape_id, before, after) * len(tasks))
        journal.replace(state.tasks.status, tasks, after)

    def checkpoint(self) -> Checkpoint:
        """Return the present point."""
        return Checkpoint(self._state.journal.checkpoint(), len(self._operations), tuple(self._evicted.items()))

    def promises_since(self, checkpoint: Checkpoint) -> bool:
        """Say whether a task has been promised room that is not free yet since a checkpoint of this statement."""
        return any(one.status is _PIPELINED for one in self._operations[checkpoint.operations :])

    def rollback(self, checkpoint: Checkpoint) -> None:
        """Undo all that came after a checkpoint of this statement."""
        self._state.journal.rollback(checkpoint.journal, self._state.nodes.block)
        del self._operations[checkpoint.operations :]
        self._evicted = dict(checkpoint.evicted)

    def commit(self, cause: Cause | None = None) -> int:
        """Turn the operations into decisions, emitted as one batch; return how many tasks are bound or evicted.

        Promises (pipelined tasks) stay in the session. They are written, as nominations, only if the statement also
        evicts. Evictions need a ``cause``.
        """
        decisions = self._binds()
        if self._evicted:
            if cause is None:
                raise ValueError("evictions are committed without a cause: give commit() one")
            decisions += self._evictions(cause)
        count = len(decisions)
        if self._evicted:
            decisions += self._nominations()
        self._operations.clear()
        self._evicted.clear()
        if decisions:
            self._state.emit(tuple(decisions))
        return count

    def _binds(self) -> list[Decision]:
        state = self._state
        record, names, counts = state.tasks.record, state.nodes.names, state.jobs.counts
        binds: list[Decision] = []
        for status, job_row, shape_id, tasks, nodes in self._operations:
            if status is not _ALLOCATED:
                continue
            # Nothing undoes a commit, so it is not journalled. Both statuses count alike, except in the numbers below.
            counts[_ALLOCATED, job_row] -= len(tasks)
            counts[_BINDING, job_row] += len(tasks)
            state.tasks.status[tasks] = _BINDING
            state.outcome.forget_attempt(tasks)
            key = state.jobs.record(job_row).key
            volumes = state.volumes
            if volumes is not None and volumes.prepares(state.task_of(shape_id)):
                for task, node in zip(tasks.tolist(), nodes.tolist(), strict=True):
                    binds.append(Bind(record(task).ref, names[node], key, volumes.steps(task, node)))
                continue
            # A Python loop over the placed tasks: each becomes one decision.
            for task, node in zip(tasks.tolist(), nodes.tolist(), strict=True):
                binds.append(Bind(record(task).ref, names[node], key))
        return binds

    def _evictions(self, cause: Cause) -> list[Evict]:
        state, names = self._state, self._state.nodes.names
        # A Python loop over the victims: each becomes one decision.
        return [
            Evict(
                task=state.tasks.record(task).ref,
                node=names[int(state.tasks.node[task])],
                job=state.tasks.record(task).key,
                action=cause.action,
                message=cause.message,
                beneficiary=cause.beneficiary,
            )
            for task in self._evicted
        ]

    def _nominations(self) -> list[Nominate]:
        state, names = self._state, self._state.nodes.names
        return [
            Nominate(state.tasks.record(task).ref, names[node])
            for operation in self._operations
            if operation.status is _PIPELINED
            for task, node in zip(operation.tasks.tolist(), operation.nodes.tolist(), strict=True)
        ]

    def withdraw(self) -> None:
        """Make all placed tasks pending again, whatever other statements have done since."""
        state, journal = self._state, self._state.journal
        for status, job_row, shape_id, tasks, nodes in reversed(self._operations):
            node_delta, _ = state.classes.deltas(shape_id, status)
            distinct, counts = _counted(nodes)
            journal.add_to_nodes(state.nodes.block, distinct, -node_delta[:, None] * counts)
            journal.add(
                state.jobs.block, job_row, state.classes.job_change(shape_id, status, TaskStatus.PENDING) * len(tasks)
            )
            journal.replace(state.tasks.status, tasks, TaskStatus.PENDING)
            journal.replace(state.tasks.node, tasks, -1)
            self._count_out(job_row, shape_id, tasks, nodes)
        self._operations.clear()

    def discard(self) -> None:
        """Undo everything, and remember the status and node of each task for the texts that users read."""
        for operation in self._operations:
            self._state.outcome.remember_attempts(operation.tasks, operation.status, operation.nodes)
        self._state.journal.rollback(self._checkpoint, self._state.nodes.block)
        self._operations.clear()
        self._evicted.clear()


def _counted(nodes: Rows) -> tuple[Rows, Rows]:
    """Return the distinct nodes and how often each occurs, both (n_distinct,)."""
    if len(nodes) > _FEW:
        return np.unique(nodes, return_counts=True)
    counts = Counter(nodes.tolist())  # for few nodes this takes a quarter of the time
    return np.array(list(counts), dtype=np.intp), np.array(list(counts.values()), dtype=np.intp)
