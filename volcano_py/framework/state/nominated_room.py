"""Room that is held for nominated tasks: what others leave for them is not given to anybody who comes before them.

A nominated task waits for room on one node: pods were evicted for it, by us or by another scheduler. What it asks for
is taken from the node for as long as it waits there: first from what is idle, the rest from what is being released.
Its host ports and its terms about other pods count as if it stood there already, like those of pods that a session
promises a node: else a victim that comes back could take the place of whoever it went for without taking its room.
That holds against tasks of equal and lower priority, as in kube-scheduler; it does not hold against tasks of a higher
one that their job's minimum needs, unless the room was taken from that job, and never against tasks of its own job,
which are one another's equals. Allocate gives such a job what is held for lesser ones only if it finds its minimum
nowhere else: the lesser one would have to evict somebody else.

    with state.held_room.open_to(job):    # whatever is placed in here may use what is held for this job
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
from typing import Final, NamedTuple

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.memory import Nomination
from volcano_py.framework.state.pending_evictions import PendingEvictions
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.decisions import Nominate
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import NominatedTasks

PATIENCE_S: Final = 60.0
"""How long a nomination of ours lasts after nothing is being released any more on its node."""

_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


class _Nominated(NamedTuple):
    task: int
    node: int
    job: int  # row, -1 for a pod of another scheduler
    priority: int


class NominatedRoom:
    """What is held on the nodes of a session; nothing at all in nearly every session."""

    def __init__(self, state: State, nominated: NominatedTasks, evictions: PendingEvictions) -> None:
        """Reserve the room of every nomination that has not run out, and take back those that have."""
        self._state = state
        self._evictions = evictions
        self._taken: dict[int, Floats] = {}  # task -> what is taken from its node for it, shape (node_rows,)
        self.since: dict[str, Nomination] = {}
        """Nominations of ours by uid of the task, for the memory of the next cycle."""
        tasks = state.tasks
        self._nominated = [
            _Nominated(task, node, int(tasks.job[task]), int(tasks.priority[task]))
            for task, node in zip(nominated.tasks.tolist(), nominated.nodes.tolist(), strict=True)
            if not tasks.traits[task] & TaskTrait.BACKING_OFF.value  # others may have the room meanwhile
        ]
        if self._nominated:
            self._nominated = [one for one in self._nominated if self._lasts(one)]
            for one in self._nominated:
                self._take(one)
        self._of_job: dict[int, list[_Nominated]] = {}
        for one in self._nominated:
            self._of_job.setdefault(one.job, []).append(one)
        waited = (tasks.status == TaskStatus.PENDING) & (tasks.traits & TaskTrait.BACKING_OFF.value == 0)
        self._waited: Bools = waited if self._nominated else np.zeros(0, dtype=bool)
        self._lowest = min((one.priority for one in self._nominated), default=0)

    def __bool__(self) -> bool:
        return bool(self._nominated)

    def jobs(self) -> set[int]:
        """Return the rows of the jobs for which room is held, -1 for those of other schedulers."""
        return {one.job for one in self._nominated if one.task in self._taken}

    def promised(self, besides: Rows) -> Floats | None:
        """Return what tasks wait for whose room is held, by queue, (n_resources, n_queues); None for nothing.

        What is open to a job is not in it, nor what is held for some tasks (n,) that are counted elsewhere.
        """
        if not self._taken:
            return None
        state = self._state
        found = np.zeros((len(state.resources), len(state.queues)))
        elsewhere = set(besides.tolist())
        # A Python loop over the nominated tasks.
        for one in self._nominated:
            queue = state.queue_of_job[one.job] if one.job >= 0 else -1
            if (
                queue >= 0
                and one.task in self._taken
                and one.task not in elsewhere
                and state.tasks.status[one.task] == TaskStatus.PENDING
            ):
                found[:, queue] += state.task_of(int(state.tasks.shape[one.task])).request
        return found

    def nodes_of(self, job: JobInfo) -> dict[int, list[int]]:
        """Return the nodes nominated for those of a job's tasks that still wait, by shape of the task, in order."""
        nodes: dict[int, list[int]] = {}
        for nominated in self._of_job.get(job.row, ()):
            if self._state.tasks.status[nominated.task] == TaskStatus.PENDING:
                nodes.setdefault(int(self._state.tasks.shape[nominated.task]), []).append(nominated.node)
        return nodes

    def open_to(self, job: JobInfo) -> AbstractContextManager[None]:
        """Let a job use what is held for it, and what is held for tasks of lower priority than its first ones have."""
        return self._opened(self._of_job.get(job.row, []) + self._of_lesser(job)) if self._nominated else _NOTHING

    def open_own(self, job: JobInfo) -> AbstractContextManager[None] | None:
        """Let a job use what is held for it; None if that is all that `open_to` would let it use."""
        return self._opened(self._of_job.get(job.row, [])) if self._nominated and self._of_lesser(job) else None

    def _of_lesser(self, job: JobInfo) -> list[_Nominated]:
        """Return what is held for tasks of other jobs and does not hold against this one."""
        state = self._state
        waiting = self._waiting_of(job)
        highest = int(state.tasks.priority[waiting].max()) if len(waiting) else np.iinfo(np.int64).min
        # Else all others keep what is held for them, and nobody need look at them. What is more than a job's minimum
        # takes nothing from a plan that was made for another one.
        if highest <= self._lowest or not job.missing():
            return []
        preemptors = {job.row, *self._evictions.preemptors(job).tolist()}
        lesser = (one for one in self._nominated if one.priority < highest and one.task in self._taken)
        return [one for one in lesser if one.job not in preemptors]

    @contextmanager
    def _opened(self, nominated: list[_Nominated]) -> Iterator[None]:
        opened = [one for one in nominated if one.task in self._taken]  # not what is open already
        for one in opened:
            self._give(one)
        try:
            yield
        finally:
            self._close(opened)

    def _waiting_of(self, job: JobInfo) -> Rows:
        """Return the tasks of a job that waited when the session opened and are not backing off, shape (n,)."""
        rows = self._state.rows_of_job(job.row)
        return rows[self._waited[rows]]

    def restore(self) -> None:
        """Hold again what is not held any more for tasks that wait again, because their plan has been withdrawn."""
        self._close([one for one in self._nominated if one.task not in self._taken])

    def _close(self, nominated: list[_Nominated]) -> None:
        for one in nominated:
            if self._state.tasks.status[one.task] == TaskStatus.PENDING:
                self._take(one)

    def _lasts(self, one: _Nominated) -> bool:
        """Say whether a nomination still counts; take it back if it is ours and does not."""
        state = self._state
        record = state.tasks.record(one.task)
        if record.foreign:
            return True
        known = state.memory.nominations.get(record.uid)
        since = state.now
        if known is not None and known.node == record.nominated and not state.nodes.releasing[:, one.node].any():
            since = known.since
        if state.now - since > PATIENCE_S:
            state.emit((Nominate(record.ref, ""),))
            return False
        self.since[record.uid] = Nomination(record.nominated, since)
        return True

    def _take(self, one: _Nominated) -> None:
        state, n = self._state, len(self._state.resources)
        request = state.task_of(int(state.tasks.shape[one.task])).request
        column = state.nodes.block[:, one.node]
        idle = np.maximum(layout.section(column[:, None], layout.IDLE, n)[:, 0], 0.0)
        now = np.minimum(request, idle)
        delta = np.zeros(len(column))
        delta[layout.IDLE * n : (layout.IDLE + 1) * n] = -now
        delta[layout.PIPELINED * n : (layout.PIPELINED + 1) * n] = request - now
        self._taken[one.task] = delta
        self._add(one, delta, 1)

    def _give(self, one: _Nominated) -> None:
        self._add(one, -self._taken.pop(one.task), -1)

    def _add(self, one: _Nominated, delta: Floats, count: int) -> None:
        """Change a node beside the journal: what is held is no part of any statement, and no rollback undoes it."""
        state, node, shape_id = self._state, one.node, int(self._state.tasks.shape[one.task])
        state.nodes.block[:, node] += delta
        state.journal.touch(node)
        if state.topology_counts is not None:
            state.topology_counts.expected(shape_id, node, count)
        ports, taken = state.task_of(shape_id).shape.host_ports, state.nodes.ports
        if ports:
            taken.codes[node] = taken.with_more(node, ports) if count > 0 else taken.with_less(node, ports)
