"""Scheduling gates of queues: which waiting tasks are at the gate of their queue, and which went through it.

    at the gate      no node is looked for; nothing starts nodes for it (an autoscaler sees that the pod is gated)
    through it       the gate has been taken away, or that is decided: what the pod asks for counts for its queue from
                     then on, also while no node has room, and for every queue above
    on a node        it counts as every other task does

`placing.queue_admission` decides who goes through.
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.nominated_room import NominatedRoom
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.shape import Admission
from volcano_py.model.statuses import TaskStatus

PATIENCE_S: Final = 60.0
"""How long a gate that is to be taken away counts as taken away; then that is decided anew."""


class QueueGates:
    """Who is at the gate and who is through it in a session."""

    def __init__(self, state: State) -> None:
        self._state = state
        shapes, tasks = state.classes.shapes, state.tasks
        kinds = np.array([Admission.NONE if shape is None else shape.admission for shape in shapes], dtype=np.int8)
        gated = np.array([shape is not None and bool(shape.gates) for shape in shapes], dtype=bool)
        pending = np.flatnonzero((tasks.status == TaskStatus.PENDING) & (tasks.job >= 0))
        of_task = kinds[tasks.shape[pending]]
        self.at_gate: Bools = np.zeros(len(tasks.status), dtype=bool)
        """Which tasks wait at a gate, of their queue or of somebody else, shape (n_tasks,)."""
        self.at_gate[pending] = (of_task == Admission.AT_GATE) | gated[tasks.shape[pending]]
        self.since: dict[str, float] = {}
        """When gates that are still seen were decided to go, by uid of the task, for the memory of the next cycle."""
        before = state.memory.gates_lifted
        decided: list[int] = []
        # A Python loop over the tasks at the gate, if there is anything to remember of them.
        for row in pending[of_task == Admission.AT_GATE].tolist() if before else ():
            since = before.get(tasks.record(row).uid)
            if since is not None and state.now - since <= PATIENCE_S:
                self.since[tasks.record(row).uid] = since
                decided.append(row)
        through = pending[of_task == Admission.THROUGH]
        self.through: Rows = np.concatenate((through, np.array(decided, dtype=np.intp)))
        """The tasks that went through, shape (n,). Whoever lets more through puts another array in its place."""
        self._sums: tuple[Rows, int, Floats | None] | None = (
            None  # of whom, at which change of nodes, what they ask for
        )

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
    """What queues will hold besides what they hold now (`state.Coming`): behind gates, and by evictions under way."""

    __slots__ = ("_gates", "_room")

    def __init__(self, gates: QueueGates | None, room: NominatedRoom) -> None:
        self._gates = gates
        self._room = room

    def through_gates(self, task: TaskInfo) -> Floats | None:
        """Return the requests of waiting tasks that went through the gate of their queue; see `Coming`."""
        return None if self._gates is None else self._gates.against(task)

    def before(self, task: TaskInfo | None) -> Floats | None:
        """Return all that queues will hold before a task gets anything; see `Coming`."""
        ahead = np.zeros(0, dtype=np.intp)
        if self._gates is not None and task is not None:
            ahead = self._gates.ahead_of(task)
        parts = [self._room.promised(ahead)]
        if self._gates is not None and task is not None:
            parts.append(self._gates.against(task))
        found = [part for part in parts if part is not None]
        return np.asarray(sum(found)) if found else None
