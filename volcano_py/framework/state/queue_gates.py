"""Scheduling gates of queues: which waiting tasks are at the gate of their queue, and which went through it.

    at the gate         the scheduler looks for no node, and an autoscaler adds none, because the pod is gated
    through the gate    the gate was removed, or its removal is decided: from then on the request of the pod counts for
                        its queue and for every queue above, even while no node has room
    on a node           the pod counts like every other task

`placing.queue_admission` decides which tasks go through.
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.nominated_room import NominatedRoom
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.shape import Admission
from volcano_py.model.statuses import TaskStatus

_NONE: Final[Rows] = np.zeros(0, dtype=np.intp)

PATIENCE_S: Final = 60.0
"""How long a gate counts as removed once its removal is decided; after that it is decided again."""


class QueueGates:
    """The tasks of a session that are at a gate, and those that went through."""

    def __init__(self, state: State) -> None:
        self._state = state
        shapes, tasks = state.classes.shapes, state.tasks
        admission = np.array([Admission.NONE if shape is None else shape.admission for shape in shapes], dtype=np.int8)
        gated = np.array([shape is not None and bool(shape.gates) for shape in shapes], dtype=bool)
        pending = np.flatnonzero((tasks.status == TaskStatus.PENDING) & (tasks.job >= 0))
        of_task = admission[tasks.shape[pending]]
        self.at_gate: Bools = np.zeros(len(tasks.status), dtype=bool)
        """Which tasks wait at a gate, that of their queue or another one, shape (n_tasks,)."""
        self.at_gate[pending] = (of_task == Admission.AT_GATE) | gated[tasks.shape[pending]]
        self.since: dict[str, float] = {}
        """When the removal of each gate that is still seen was decided, by uid of the task, for the next cycle."""
        before = state.memory.gates_lifted
        decided: list[int] = []
        # A Python loop over the tasks at the gate, if the memory has any.
        for row in pending[of_task == Admission.AT_GATE].tolist() if before else ():
            since = before.get(tasks.record(row).uid)
            if since is not None and state.clock.is_before(since + PATIENCE_S):
                self.since[tasks.record(row).uid] = since
                decided.append(row)
        through = pending[of_task == Admission.THROUGH]
        self.through: Rows = np.concatenate((through, np.array(decided, dtype=np.intp)))
        """The tasks that went through, shape (n,). To let more tasks through, assign another array."""
        self._sums: tuple[Rows, int, Floats | None] | None = None  # the array `through`, n_touched, sums by queue

    def ahead_of(self, task: TaskInfo) -> Rows:
        """Return the waiting tasks whose requests come before a task, shape (n,)."""
        if task.shape.admission is Admission.THROUGH:
            return np.zeros(0, dtype=np.intp)
        rows: Rows = self.through[self._state.tasks.status[self.through] == TaskStatus.PENDING]
        return rows

    def against(self, task: TaskInfo) -> Floats | None:
        """Return the requests that come before a task, by queue, shape (n_resources, n_queues); None for nothing."""
        if task.shape.admission is Admission.THROUGH or not len(self.through):
            return None
        moment = self._state.journal.n_touched  # it grows with every placement and every undo
        if self._sums is None or self._sums[0] is not self.through or self._sums[1] != moment:
            self._sums = (self.through, moment, self._sum_of(self.ahead_of(task)))
        return self._sums[2]

    def _sum_of(self, rows: Rows) -> Floats | None:
        state = self._state
        queues = state.queue_of_job[state.tasks.job[rows]]
        rows, queues = rows[queues >= 0], queues[queues >= 0]
        if not len(rows):
            return None
        amounts = state.classes.requests[:, state.tasks.shape[rows]]
        sums = [np.bincount(queues, weights=row, minlength=len(state.queues)) for row in amounts]
        return np.array(sums, dtype=float).reshape(len(amounts), len(state.queues))


class ComingUsage:
    """What queues will hold in addition (`state.Coming`): tasks that went through gates, and nominated tasks."""

    __slots__ = ("_gates", "_room")

    def __init__(self, gates: QueueGates | None, room: NominatedRoom) -> None:
        self._gates = gates
        self._room = room

    def nominated(self) -> Floats | None:
        """Return what queues will hold because of nominated tasks; see `Coming`."""
        return self._room.promised(_NONE)

    def before(self, task: TaskInfo | None) -> Floats | None:
        """Return all that queues will hold before a task gets anything; see `Coming`."""
        if self._gates is None or task is None:
            return self._room.promised(_NONE)
        through = self._gates.against(task)
        promised = self._room.promised(_NONE if through is None else self._gates.ahead_of(task))
        return through if promised is None else promised if through is None else promised + through
