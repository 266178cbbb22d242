"""Tentative placements that are committed or discarded together. The only way in which a session changes."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from volcano_py.model.decisions import Bind
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import Rows

if TYPE_CHECKING:
    from volcano_py.framework.session import Session


class _Operation(NamedTuple):
    status: TaskStatus  # ALLOCATED or PIPELINED
    job_row: int
    shape_id: int
    tasks: Rows
    nodes: Rows


class Statement:
    """Operations on one session, each applied at once and undone by `discard`, newest first."""

    __slots__ = ("_checkpoint", "_operations", "_ssn")

    def __init__(self, ssn: "Session") -> None:
        self._ssn = ssn
        self._checkpoint = ssn.journal.checkpoint()
        self._operations: list[_Operation] = []

    def __len__(self) -> int:
        return sum(len(operation.tasks) for operation in self._operations)

    def allocate(self, job_row: int, shape_id: int, tasks: Rows, nodes: Rows) -> None:
        """Put pending tasks of one shape and job on nodes, task i on node i; nodes may repeat."""
        self._place(_Operation(TaskStatus.ALLOCATED, job_row, shape_id, tasks, nodes))

    def pipeline(self, job_row: int, shape_id: int, tasks: Rows, nodes: Rows) -> None:
        """Promise pending tasks of one shape and job resources that are still being released."""
        self._place(_Operation(TaskStatus.PIPELINED, job_row, shape_id, tasks, nodes))

    def _place(self, operation: _Operation) -> None:
        ssn, journal = self._ssn, self._ssn.journal
        status, job_row, shape_id, tasks, nodes = operation
        node_delta, job_after = ssn.deltas(shape_id, status)
        _, job_before = ssn.deltas(shape_id, TaskStatus.PENDING)
        if len(tasks) == 1:
            task, node = int(tasks[0]), int(nodes[0])
            journal.add_to_nodes(ssn.nodes.block, node, node_delta)
            journal.add(ssn.jobs.block, job_row, job_after - job_before)
            journal.replace(ssn.tasks.status, task, status)
            journal.replace(ssn.tasks.node, task, node)
        else:
            distinct, counts = np.unique(nodes, return_counts=True)
            journal.add_to_nodes(ssn.nodes.block, distinct, node_delta[:, None] * counts)
            journal.add(ssn.jobs.block, job_row, (job_after - job_before) * len(tasks))
            journal.replace(ssn.tasks.status, tasks, status)
            journal.replace(ssn.tasks.node, tasks, nodes)
        ports = ssn.shape_of(shape_id).host_ports
        # A Python loop over the placed tasks, only of shapes that take ports of their nodes.
        for node in nodes.tolist() if ports else ():
            journal.replace(ssn.nodes.ports.codes, node, ssn.nodes.ports.with_more(node, ports))
        for accounts in ssn.accounts:
            accounts.add(journal, job_row, ssn.task_of(shape_id).request * len(tasks))
        self._operations.append(operation)
        for watcher in ssn.watchers:
            watcher.placed(job_row, ssn.task_of(shape_id), tasks, nodes)

    def commit(self) -> int:
        """Make the allocations decisions, emitted at once as one batch; return how many tasks are bound by it.

        Promises (pipelined tasks) stay in the session and are not written anywhere.
        """
        ssn = self._ssn
        binds: list[Bind] = []
        for operation in self._operations:
            if operation.status is not TaskStatus.ALLOCATED:
                continue
            _, allocated = ssn.deltas(operation.shape_id, TaskStatus.ALLOCATED)
            _, binding = ssn.deltas(operation.shape_id, TaskStatus.BINDING)
            # Nothing takes a commit back, so it is not journalled.
            ssn.jobs.block[:, operation.job_row] += (binding - allocated) * len(operation.tasks)
            ssn.tasks.status[operation.tasks] = TaskStatus.BINDING
            ssn.forget_attempt(operation.tasks)
            key, names = ssn.jobs.record(operation.job_row).key, ssn.nodes.names
            # A Python loop over the placed tasks: each becomes one decision.
            binds.extend(
                Bind(ssn.tasks.record(task).ref, names[node], key)
                for task, node in zip(operation.tasks.tolist(), operation.nodes.tolist(), strict=True)
            )
        self._operations.clear()
        if binds:
            ssn.emit(tuple(binds))
        return len(binds)

    def discard(self) -> None:
        """Take everything back and remember, for the texts users read, how far each task had come."""
        for operation in self._operations:
            self._ssn.remember_attempt(operation.tasks, operation.status, operation.nodes)
        self._ssn.journal.rollback(self._checkpoint, self._ssn.nodes.block)
        self._operations.clear()
