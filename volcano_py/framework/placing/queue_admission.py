"""Queue admission by scheduling gates: a pod waits at its gate until its queue may hold it.

    at the gate      no node is looked for; nothing starts nodes for it (an autoscaler sees that the pod is gated)
    through it       the gate has been taken away, or that is decided: what the pod asks for counts for its queue from
                     then on, also while no node has room, and for every queue above
    on a node        it counts as every other task does

What those who are through will take holds against all tasks of the queue that are not through themselves. All tasks
that a gang lacks go through together or not at all, and only if the queue may hold the gang as a whole, with those of
its tasks that have no gate. So the one that came through last can always be placed as far as the queue is concerned,
and no two wait for each other. Each task beyond the minimum goes by itself. (Volcano: allocate with the feature
SchedulingGatesQueueAdmission, where tasks go one by one, and what is reserved counts for the plugin capacity and not
for queues above.)
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.decisions import LiftGate
from volcano_py.model.shape import Admission
from volcano_py.model.statuses import TaskStatus

if TYPE_CHECKING:
    from volcano_py.framework.session import Session

PATIENCE_S: Final = 60.0
"""How long a gate that is to be taken away counts as taken away; then that is decided anew."""


class QueueAdmission:
    """Who is at the gate and who is through it in a session."""

    def __init__(self, ssn: "Session") -> None:
        self._ssn = ssn
        kinds = np.array([Admission.NONE if shape is None else shape.admission for shape in ssn.shapes], dtype=np.int8)
        gated = np.array([shape is not None and bool(shape.gates) for shape in ssn.shapes], dtype=bool)
        pending = np.flatnonzero((ssn.tasks.status == TaskStatus.PENDING) & (ssn.tasks.job >= 0))
        of_task = kinds[ssn.tasks.shape[pending]]
        self._at_gate = np.zeros(len(ssn.tasks.status), dtype=bool)  # of the queue, or of somebody else
        self._at_gate[pending] = (of_task == Admission.AT_GATE) | gated[ssn.tasks.shape[pending]]
        self.since: dict[str, float] = {}
        """When gates that are still seen were decided to go, by uid of the task, for the memory of the next cycle."""
        before = ssn.memory.gates_lifted
        decided: list[int] = []
        # A Python loop over the tasks at the gate, if there is anything to remember of them.
        for row in pending[of_task == Admission.AT_GATE].tolist() if before else ():
            since = before.get(ssn.tasks.record(row).uid)
            if since is not None and ssn.now - since <= PATIENCE_S:
                self.since[ssn.tasks.record(row).uid] = since
                decided.append(row)
        through = pending[of_task == Admission.THROUGH]
        self._through: Rows = np.concatenate((through, np.array(decided, dtype=np.intp)))
        self._sums: tuple[Rows, int, Floats | None] | None = (
            None  # of whom, at which change of nodes, what they ask for
        )

    def ahead_of(self, task: TaskInfo) -> Rows:
        """Return the tasks that wait and whose requests hold against a task, shape (n,)."""
        if task.shape.admission is Admission.THROUGH:
            return np.zeros(0, dtype=np.intp)
        rows: Rows = self._through[self._ssn.tasks.status[self._through] == TaskStatus.PENDING]
        return rows

    def against(self, task: TaskInfo) -> Floats | None:
        """Return what holds against a task, by queue, shape (n_resources, n_queues); None for nothing."""
        if task.shape.admission is Admission.THROUGH or not len(self._through):
            return None
        moment = self._ssn.journal.n_touched  # it grows with every placement and every undo
        if self._sums is None or self._sums[0] is not self._through or self._sums[1] != moment:
            self._sums = (self._through, moment, self._sum_of(self.ahead_of(task)))
        return self._sums[2]

    def _sum_of(self, rows: Rows) -> Floats | None:
        ssn = self._ssn
        queues = ssn.queue_of_job[ssn.tasks.job[rows]]
        rows, queues = rows[queues >= 0], queues[queues >= 0]
        if not len(rows):
            return None
        amounts = ssn.requests[:, ssn.tasks.shape[rows]]
        sums = [np.bincount(queues, weights=row, minlength=len(ssn.queues)) for row in amounts]
        return np.array(sums, dtype=float).reshape(len(amounts), len(ssn.queues))

    def waiting(self, tasks: Rows) -> Rows:
        """Return those of these tasks for which it has not been decided yet that the gate goes."""
        # A Python loop over one job's tasks at the gate.
        return np.array([row for row in tasks.tolist() if self._uid(row) not in self.since], dtype=np.intp)

    def admit(self, queue: QueueInfo, job: JobInfo, tasks: Rows) -> dict[int, int]:
        """Let a job's tasks that are at the gate through, in order, as far as the queue may hold them.

        Return how many of each shape may not go through.
        """
        ssn, before = self._ssn, self._through
        refused: dict[int, int] = {}
        enqueued: list[int] = []
        shapes = ssn.tasks.shape[tasks]
        # A Python loop over the runs of equal tasks.
        for run in np.split(tasks, np.flatnonzero(shapes[1:] != shapes[:-1]) + 1):
            shape_id = int(ssn.tasks.shape[run[0]])
            allowed = 0 if shape_id in refused else ssn.allocatable(queue, ssn.task_of(shape_id), len(run))
            enqueued += run[:allowed].tolist()
            self._through = np.concatenate((self._through, run[:allowed]))
            if allowed < len(run):
                refused[shape_id] = refused.get(shape_id, 0) + len(run) - allowed
        if enqueued and not self._makes_whole(queue, job, enqueued):
            self._through = before
            return {int(shape): int(count) for shape, count in zip(*np.unique(shapes, return_counts=True), strict=True)}
        if enqueued:
            self._at_gate[enqueued] = False
            # A Python loop over those let in: each is a request to the API server.
            self.since.update({self._uid(row): ssn.now for row in enqueued})
            ssn.emit(tuple(LiftGate(ssn.tasks.record(row).ref) for row in enqueued))
        return refused

    def _makes_whole(self, queue: QueueInfo, job: JobInfo, enqueued: list[int]) -> bool:
        """Say whether a job has its minimum if these tasks go through, and its queue may hold all of it."""
        ssn = self._ssn
        rows = ssn.rows_of_job(job.row)
        waiting = rows[ssn.tasks.status[rows] == TaskStatus.PENDING]
        free = waiting[~self._at_gate[waiting] | np.isin(waiting, enqueued)]
        if ssn.missing_with(job, free):
            return False
        through = np.isin(free, self._through)
        return self._has_room(queue, free[~through][: ssn.missing_with(job, free[through])])

    def _has_room(self, queue: QueueInfo, tasks: Rows) -> bool:
        """Say whether a queue may hold these tasks, which have no gate, beside those who are through."""
        ssn, before = self._ssn, self._through
        shapes = ssn.tasks.shape[tasks]
        try:
            # A Python loop over the runs of equal tasks that a gang has beside those at the gate.
            for run in np.split(tasks, np.flatnonzero(shapes[1:] != shapes[:-1]) + 1) if len(tasks) else ():
                if ssn.allocatable(queue, ssn.task_of(int(ssn.tasks.shape[run[0]])), len(run)) < len(run):
                    return False
                self._through = np.concatenate((self._through, run))
            return True
        finally:
            self._through = before

    def _uid(self, row: int) -> str:
        return self._ssn.tasks.record(row).uid
