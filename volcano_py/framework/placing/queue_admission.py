"""Queue admission by scheduling gates: a pod waits at its gate until its queue may hold it (`state.queue_gates`).

The requests of tasks that went through count against all tasks of the queue that did not go through. All tasks that a
gang still needs go through together or not at all. They go only if the queue may hold the whole gang, including its
tasks without a gate. So the queue always has room for the task that went through last, and no two tasks wait for each
other. Each task beyond the minimum goes separately. (Volcano: allocate with the feature SchedulingGatesQueueAdmission.
There tasks go one by one, and reservations count only for the plugin capacity and not for the queues above.)
"""

import numpy as np

from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.queue_gates import QueueGates
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.decisions import LiftGate
from volcano_py.model.statuses import TaskStatus


class QueueAdmission:
    """Lets tasks through the gates of their queues."""

    def __init__(self, state: State, hooks: Hooks, gates: QueueGates) -> None:
        self._state = state
        self._hooks = hooks
        self._gates = gates

    def waiting(self, tasks: Rows) -> Rows:
        """Return those of these tasks whose gate is not to be removed yet."""
        # A Python loop over one job's tasks at the gate.
        return np.array([row for row in tasks.tolist() if self._uid(row) not in self._gates.since], dtype=np.intp)

    def admit(self, queue: QueueInfo, job: JobInfo, tasks: Rows) -> dict[int, int]:
        """Let the tasks of a job that are at the gate through, in order, as far as the queue may hold them.

        Return, by shape, how many may not go through.
        """
        state, gates, before = self._state, self._gates, self._gates.through
        refused: dict[int, int] = {}
        admitted: list[int] = []
        shapes = state.tasks.shape[tasks]
        # A Python loop over the runs of equal tasks.
        for run in np.split(tasks, np.flatnonzero(shapes[1:] != shapes[:-1]) + 1):
            shape_id = int(state.tasks.shape[run[0]])
            info = state.task_of(shape_id)
            allowed = 0 if shape_id in refused else self._hooks.allocatable(queue, info, len(run))
            admitted += run[:allowed].tolist()
            gates.through = np.concatenate((gates.through, run[:allowed]))
            if allowed < len(run):
                refused[shape_id] = refused.get(shape_id, 0) + len(run) - allowed
        if admitted and not self._makes_whole(queue, job, admitted):
            gates.through = before
            return {int(shape): int(count) for shape, count in zip(*np.unique(shapes, return_counts=True), strict=True)}
        if admitted:
            gates.at_gate[admitted] = False
            # A Python loop over those admitted: each is a request to the API server.
            gates.since.update({self._uid(row): state.now for row in admitted})
            state.emit(tuple(LiftGate(state.tasks.record(row).ref) for row in admitted))
        return refused

    def _makes_whole(self, queue: QueueInfo, job: JobInfo, admitted: list[int]) -> bool:
        """Say whether a job has its minimum if these tasks go through, and its queue may hold all of it."""
        state, hooks = self._state, self._hooks
        rows = state.rows_of_job(job.row)
        waiting = rows[state.tasks.status[rows] == TaskStatus.PENDING]
        free = waiting[~self._gates.at_gate[waiting] | np.isin(waiting, admitted)]
        if hooks.missing_with(job, free):
            return False
        through = np.isin(free, self._gates.through)
        return self._has_room(queue, free[~through][: hooks.missing_with(job, free[through])])

    def _has_room(self, queue: QueueInfo, tasks: Rows) -> bool:
        """Say whether a queue may hold these tasks without a gate in addition to those that went through."""
        state, gates, before = self._state, self._gates, self._gates.through
        shapes = state.tasks.shape[tasks]
        try:
            # A Python loop over the runs of equal tasks of the gang that have no gate.
            for run in np.split(tasks, np.flatnonzero(shapes[1:] != shapes[:-1]) + 1) if len(tasks) else ():
                info = state.task_of(int(state.tasks.shape[run[0]]))
                if self._hooks.allocatable(queue, info, len(run)) < len(run):
                    return False
                gates.through = np.concatenate((gates.through, run))
            return True
        finally:
            gates.through = before

    def _uid(self, row: int) -> str:
        return self._state.tasks.record(row).uid
