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
        node_delta, _ = ssn.deltas(shape_id, status)
        job_change = ssn.job_change(shape_id, TaskStatus.PENDING, status)
        info = ssn.task_of(shape_id)
        request = info.request
        if len(tasks) == 1:
            task, node = int(tasks[0]), int(nodes[0])
            journal.add_to_nodes(ssn.nodes.block, node, node_delta)
            journal.add(ssn.jobs.block, job_row, job_change)
            journal.replace(ssn.tasks.status, task, status)
            journal.replace(ssn.tasks.node, task, node)
        else:
            distinct, counts = np.unique(nodes, return_counts=True)
            journal.add_to_nodes(ssn.nodes.block, distinct, node_delta[:, None] * counts)
            journal.add(ssn.jobs.block, job_row, job_change * len(tasks))
            request = request * len(tasks)
            journal.replace(ssn.tasks.status, tasks, status)
            journal.replace(ssn.tasks.node, tasks, nodes)
        ports = info.shape.host_ports
        # A Python loop over the placed tasks, only of shapes that take ports of their nodes.
        for node in nodes.tolist() if ports else ():
            journal.replace(ssn.nodes.ports.codes, node, ssn.nodes.ports.with_more(node, ports))
        for accounts in ssn.accounts:
            accounts.add(journal, job_row, request)
        self._operations.append(operation)
        for watcher in ssn.watchers:
            watcher.placed(job_row, info, tasks, nodes)

    def commit(self) -> int:
        """Make the allocations decisions, emitted at once as one batch; return how many tasks are bound by it.

        Promises (pipelined tasks) stay in the session and are not written anywhere.
        """
        ssn = self._ssn
        record, names = ssn.tasks.record, ssn.nodes.names
        binds: list[Bind] = []
        for status, job_row, shape_id, tasks, nodes in self._operations:
            if status is not TaskStatus.ALLOCATED:
                continue
            # Nothing takes a commit back, so it is not journalled.
            counts = ssn.jobs.block[:, job_row]
            counts += ssn.job_change(shape_id, TaskStatus.ALLOCATED, TaskStatus.BINDING) * len(tasks)
            ssn.tasks.status[tasks] = TaskStatus.BINDING
            ssn.forget_attempt(tasks)
            key = ssn.jobs.record(job_row).key
            # A Python loop over the placed tasks: each becomes one decision.
            for task, node in zip(tasks.tolist(), nodes.tolist(), strict=True):
                binds.append(Bind(record(task).ref, names[node], key))
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
