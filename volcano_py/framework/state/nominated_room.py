"""Room that is held for nominated tasks: what others leave for them is not given to anybody who comes before them.

A nominated task waits for room on one node: pods were evicted for it, by us or by another scheduler. What it asks for
is taken from the node for as long as it waits there: first from what is idle, the rest from what is being released.
Its host ports and its terms about other pods count as if it stood there already, like those of pods that a session
promises a node: else a victim that comes back could take the place of whoever it went for without taking its room.
That holds against tasks of equal and lower priority, as in kube-scheduler; it does not hold against tasks of a higher
one that their job's minimum needs, unless the room was taken from that job, and never against tasks of its own job,
which are one another's equals. Allocate gives such a job what is held for lesser ones only if it finds its minimum
nowhere else: the lesser one would have to evict somebody else.

    with ssn.held_room.open_to(job):    # whatever is placed in here may use what is held for this job
        ...

Held nodes are tried before all others (Volcano: allocate, nominatedNodeName), so that what was planned together stands
as it was planned.

What a queue may hold is not held. So while room is held for a job, those it has taken from have their turns behind the
others of their queue: else, in an order of jobs
that does not follow priorities, they would take back at once what they have lost (`actions.allocate`).

A nomination of ours ends when its task is placed, wherever that is. If the task still waits a while after everything on
the node has left that was to leave, the nomination is taken back: something else is in its way. Those of other
schedulers end when they say so.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.memory import Nomination
from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.decisions import Nominate
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import NominatedTasks

if TYPE_CHECKING:
    from volcano_py.framework.session import Session
    from volcano_py.framework.state.statement import Statement

PATIENCE_S: Final = 60.0
"""How long a nomination of ours lasts after nothing is being released any more on its node."""

_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


class _Hold(NamedTuple):
    task: int
    node: int
    job: int  # row, -1 for a pod of another scheduler
    priority: int


class NominatedRoom:
    """What is held on the nodes of a session; nothing at all in nearly every session."""

    def __init__(self, ssn: "Session", nominated: NominatedTasks) -> None:
        """Hold the room of every nomination that has not run out, and take back those that have."""
        self._ssn = ssn
        self._taken: dict[int, Floats] = {}  # task -> what is taken from its node for it, shape (node_rows,)
        self.since: dict[str, Nomination] = {}
        """Nominations of ours by uid of the task, for the memory of the next cycle."""
        tasks = ssn.tasks
        self._holds = [
            _Hold(task, node, int(tasks.job[task]), int(tasks.priority[task]))
            for task, node in zip(nominated.tasks.tolist(), nominated.nodes.tolist(), strict=True)
            if not tasks.traits[task] & TaskTrait.BACKING_OFF.value  # others may have the room meanwhile
        ]
        if self._holds:
            self._holds = [hold for hold in self._holds if self._lasts(hold)]
            for hold in self._holds:
                self._take(hold)
        self._of_job: dict[int, list[_Hold]] = {}
        for hold in self._holds:
            self._of_job.setdefault(hold.job, []).append(hold)
        self._lowest = min((hold.priority for hold in self._holds), default=0)

    def __bool__(self) -> bool:
        return bool(self._holds)

    def jobs(self) -> set[int]:
        """Return the rows of the jobs for which room is held, -1 for those of other schedulers."""
        return {hold.job for hold in self._holds if hold.task in self._taken}

    def promised(self, besides: Rows) -> Floats | None:
        """Return what tasks wait for whose room is held, by queue, (n_resources, n_queues); None for nothing.

        What is open to a job is not in it, nor what is held for some tasks (n,) that are counted elsewhere.
        """
        if not self._taken:
            return None
        ssn = self._ssn
        found = np.zeros((len(ssn.resources), len(ssn.queues)))
        elsewhere = set(besides.tolist())
        # A Python loop over the nominated tasks.
        for hold in self._holds:
            queue = ssn.queue_of_job[hold.job] if hold.job >= 0 else -1
            if (
                queue >= 0
                and hold.task in self._taken
                and hold.task not in elsewhere
                and ssn.tasks.status[hold.task] == TaskStatus.PENDING
            ):
                found[:, queue] += ssn.task_of(int(ssn.tasks.shape[hold.task])).request
        return found

    def place_first(self, statement: "Statement", queue: QueueInfo, job: JobInfo, tasks: Rows) -> Rows:
        """Place tasks of a job on the nodes that are held for their like, as allocate would if there were no others.

        Tasks of one shape are one another's equals: the first of them in task order get the nodes that are held for any
        of them. Return the other tasks, and those that do not fit the node or their queue. To be asked while the room
        is open to the job.
        """
        nodes: dict[int, list[int]] = {}
        for hold in self._of_job.get(job.row, ()):
            if self._ssn.tasks.status[hold.task] != TaskStatus.PENDING:
                continue
            nodes.setdefault(int(self._ssn.tasks.shape[hold.task]), []).append(hold.node)
        if not nodes:
            return tasks
        left = []
        # A Python loop over the tasks of a job that has nominated ones.
        for task, shape_id in zip(tasks.tolist(), self._ssn.tasks.shape[tasks].tolist(), strict=True):
            held = nodes.get(shape_id)
            if not held or not self._place(statement, queue, job.row, task, held.pop(0)):
                left.append(task)
        return np.array(left, dtype=np.intp)

    def _place(self, statement: "Statement", queue: QueueInfo, job_row: int, task: int, node: int) -> bool:
        ssn, shape_id = self._ssn, int(self._ssn.tasks.shape[task])
        if not ssn.allocatable(queue, ssn.task_of(shape_id), 1):
            return False
        state = ssn.placement.candidates(shape_id, ssn.sharding.group_of(node))
        if state.ranked[node] > -np.inf:
            statement.allocate(job_row, shape_id, np.array([task]), np.array([node]))
            return True
        if ssn.looks_ahead and state.future[node] > -np.inf:
            statement.pipeline(job_row, shape_id, np.array([task]), np.array([node]))
            return True
        return False

    def open_to(self, job: JobInfo) -> AbstractContextManager[None]:
        """Let a job use what is held for it, and what is held for tasks of lower priority than its first ones have."""
        return self._opened(self._of_job.get(job.row, []) + self._of_lesser(job)) if self._holds else _NOTHING

    def open_own(self, job: JobInfo) -> AbstractContextManager[None] | None:
        """Let a job use what is held for it; None if that is all that `open_to` would let it use."""
        return self._opened(self._of_job.get(job.row, [])) if self._holds and self._of_lesser(job) else None

    def _of_lesser(self, job: JobInfo) -> list[_Hold]:
        """Return what is held for tasks of other jobs and does not hold against this one."""
        ssn = self._ssn
        waiting = ssn.pending.of(job.row)
        highest = int(ssn.tasks.priority[waiting].max()) if len(waiting) else np.iinfo(np.int64).min
        # Else all others keep what is held for them, and nobody need look at them. What is more than a job's minimum
        # takes nothing from a plan that was made for another one.
        if highest <= self._lowest or not job.missing():
            return []
        preemptors = {job.row, *ssn.pending_evictions.preemptors(job).tolist()}
        lesser = (hold for hold in self._holds if hold.priority < highest and hold.task in self._taken)
        return [hold for hold in lesser if hold.job not in preemptors]

    @contextmanager
    def _opened(self, holds: list[_Hold]) -> Iterator[None]:
        opened = [hold for hold in holds if hold.task in self._taken]  # not what is open already
        for hold in opened:
            self._give(hold)
        try:
            yield
        finally:
            self._close(opened)

    def restore(self) -> None:
        """Hold again what is not held any more for tasks that wait again, because their plan has been withdrawn."""
        self._close([hold for hold in self._holds if hold.task not in self._taken])

    def _close(self, holds: list[_Hold]) -> None:
        for hold in holds:
            if self._ssn.tasks.status[hold.task] == TaskStatus.PENDING:
                self._take(hold)

    def _lasts(self, hold: _Hold) -> bool:
        """Say whether a nomination still counts; take it back if it is ours and does not."""
        ssn = self._ssn
        record = ssn.tasks.record(hold.task)
        if record.foreign:
            return True
        known = ssn.memory.nominations.get(record.uid)
        since = ssn.now
        if known is not None and known.node == record.nominated and not ssn.nodes.releasing[:, hold.node].any():
            since = known.since
        if ssn.now - since > PATIENCE_S:
            ssn.emit((Nominate(record.ref, ""),))
            return False
        self.since[record.uid] = Nomination(record.nominated, since)
        return True

    def _take(self, hold: _Hold) -> None:
        ssn, n = self._ssn, len(self._ssn.resources)
        request = ssn.task_of(int(ssn.tasks.shape[hold.task])).request
        column = ssn.nodes.block[:, hold.node]
        idle = np.maximum(layout.section(column[:, None], layout.IDLE, n)[:, 0], 0.0)
        now = np.minimum(request, idle)
        delta = np.zeros(len(column))
        delta[layout.IDLE * n : (layout.IDLE + 1) * n] = -now
        delta[layout.PIPELINED * n : (layout.PIPELINED + 1) * n] = request - now
        self._taken[hold.task] = delta
        self._add(hold, delta, 1)

    def _give(self, hold: _Hold) -> None:
        self._add(hold, -self._taken.pop(hold.task), -1)

    def _add(self, hold: _Hold, delta: Floats, count: int) -> None:
        """Change a node beside the journal: what is held is no part of any statement, and no rollback undoes it."""
        ssn, node, shape_id = self._ssn, hold.node, int(self._ssn.tasks.shape[hold.task])
        ssn.nodes.block[:, node] += delta
        ssn.journal.touch(node)
        if ssn.topology_counts is not None:
            ssn.topology_counts.expected(shape_id, node, count)
        ports, taken = ssn.task_of(shape_id).shape.host_ports, ssn.nodes.ports
        if ports:
            taken.codes[node] = taken.with_more(node, ports) if count > 0 else taken.with_less(node, ports)
