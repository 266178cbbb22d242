"""Nominated room: what a nominated task requests is reserved on its node, so that no other job takes it meanwhile.

A nominated task waits for room on one node, because pods were evicted for it, by us or by another scheduler. While it
waits, its request is reserved on the node: first from what is idle, the rest from what is being released. Its host
ports and its terms about other pods count as if it already ran there, like those of pods that a session promises a
node. Otherwise a victim that comes back could take the place of its preemptor without taking its room.

The reservation applies against tasks of equal and lower priority, as in kube-scheduler. It never applies against tasks
of the same job. It does not apply against tasks of higher priority that their job needs for its minimum, unless the
room was taken from that job. Allocate lets such a job use the room of jobs of lower priority only if it finds its
minimum nowhere else, because the job of lower priority would have to evict others again.

    with nominated_room.open_to(job):    # placements in here may use the room that is reserved for this job
        ...

Nominated nodes are tried before all others (Volcano: allocate, nominatedNodeName), so that a plan is carried out as it
was made.

The request also counts in the queue of the task, as if the queue held it already (`queue_gates.ComingUsage`). Otherwise
others could take what the queue may hold, and the victims would have died for nothing. It counts for the same tasks as
the room on the node. It does not count if the node will not have room for it even when all is released. This is decided
when the session opens.

A nomination of ours ends when its task is placed, on whichever node. If the task still waits for `PATIENCE_S` seconds
after nothing is being released on the node any more, the nomination is withdrawn: something else prevents the
placement, or the node is gone. Karpenter adds no node for a nominated pod. A nomination that another program wrote ends
when that program removes it. That may be another scheduler for a pod of its own, or a cluster autoscaler or
administrator for a pod of ours.
"""

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.memory import Nomination
from volcano_py.framework.state.pending_evictions import PendingEvictions
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.decisions import Nominate
from volcano_py.model.objects import TaskTrait
from volcano_py.model.resources import EPSILON
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
    """The room that is reserved on the nodes of a session; nearly every session has none."""

    def __init__(self, state: State, nominated: NominatedTasks, evictions: PendingEvictions) -> None:
        """Reserve the room of every nomination that has not expired, and withdraw those that have."""
        self._state = state
        self._evictions = evictions
        self._reserved: dict[int, Floats] = {}  # task -> what is reserved on its node for it, shape (node_rows,)
        self._fitting: set[int] = set()  # tasks whose node will have room for them; they count in their queue
        self._by_queue = np.zeros((len(state.resources), len(state.queues)))  # sums of what is reserved for the latter
        self._promised: Floats | None = None  # a copy of it, None if it has changed since
        self.since: dict[str, Nomination] = {}
        """Our nominations by uid of the task, for the memory of the next cycle."""
        tasks = state.tasks
        for task in nominated.lost.tolist():
            self._lasts(task, releasing=False)
        self._nominated = [
            _Nominated(task, node, int(tasks.job[task]), int(tasks.priority[task]))
            for task, node in zip(nominated.tasks.tolist(), nominated.nodes.tolist(), strict=True)
            if not tasks.traits[task] & TaskTrait.BACKING_OFF.value  # others may have the room meanwhile
        ]
        if self._nominated:
            self._nominated = [one for one in self._nominated if self._lasts(one.task, self._releases(one.node))]
            for one in self._nominated:
                if self._will_fit(one):
                    self._fitting.add(one.task)
                self._reserve(one)
        self._of_job: dict[int, list[_Nominated]] = {}
        for one in self._nominated:
            self._of_job.setdefault(one.job, []).append(one)
        pending = (tasks.status == TaskStatus.PENDING) & (tasks.traits & TaskTrait.BACKING_OFF.value == 0)
        self._pending_at_open: Bools = pending if self._nominated else np.zeros(0, dtype=bool)
        self._lowest = min((one.priority for one in self._nominated), default=0)
        self.given_up = 0
        """How often a turn with open room left more room to others than there was before."""

    def __bool__(self) -> bool:
        return bool(self._nominated)

    def promised(self, besides: Rows) -> Floats | None:
        """Return the requests of tasks that will get their room, by queue, (n_resources, n_queues); None for nothing.

        Room that is open to a job does not count, nor does the room of the tasks ``besides`` (n,), which the caller
        counts elsewhere. Equal answers are the same array as long as nothing changes.
        """
        if not (self._reserved and self._fitting):
            return None
        if self._promised is None:
            self._promised = self._by_queue.copy()
        twice = self._fitting & self._reserved.keys() & set(besides.tolist())
        if not twice:
            return self._promised
        state, found = self._state, self._promised.copy()
        # A Python loop over tasks that are nominated and went through the gate of their queue.
        for task in sorted(twice):
            found[:, state.queue_of_job[state.tasks.job[task]]] -= state.task_of(int(state.tasks.shape[task])).request
        return found

    def nodes_of(self, job: JobInfo) -> dict[int, list[int]]:
        """Return the nodes nominated for the pending tasks of a job, by shape of the task, in order."""
        nodes: dict[int, list[int]] = {}
        for nominated in self._of_job.get(job.row, ()):
            if self._state.tasks.status[nominated.task] == TaskStatus.PENDING:
                nodes.setdefault(int(self._state.tasks.shape[nominated.task]), []).append(nominated.node)
        return nodes

    def displaced(self, job: JobInfo, nodes: Collection[int]) -> bool:
        """Say whether room that is nominated for a job, and open to it, has gone to others on some of these nodes."""
        needs: dict[int, Floats] = {}
        for nominated in self._of_job.get(job.row, ()):
            if nominated.node in nodes and self._state.tasks.status[nominated.task] == TaskStatus.PENDING:
                request = self._state.task_of(int(self._state.tasks.shape[nominated.task])).request
                needs[nominated.node] = needs.get(nominated.node, 0.0) + request
        future_idle = self._state.nodes.future_idle
        return any(bool((need > future_idle[:, node] + EPSILON).any()) for node, need in needs.items())

    def open_to(self, job: JobInfo) -> AbstractContextManager[None]:
        """Let a job use the room reserved for it, and that of tasks with a lower priority than its highest."""
        return self._opened(self._of_job.get(job.row, []) + self._of_lower(job)) if self._nominated else _NOTHING

    @cached_property
    def may_be_opened(self) -> Bools:
        """The jobs to which `open_to` may open room, (n_jobs,); to all others it opens nothing."""
        tasks = self._state.tasks
        found = np.zeros(len(self._state.jobs), dtype=bool)
        if self._nominated:
            found[[job for job in self._of_job if job >= 0]] = True
            found[tasks.job[self._pending_at_open & (tasks.priority > self._lowest) & (tasks.job >= 0)]] = True
        return found

    def open_own(self, job: JobInfo) -> AbstractContextManager[None] | None:
        """Let a job use only the room reserved for it; None if `open_to` would not let it use more."""
        return self._opened(self._of_job.get(job.row, [])) if self._nominated and self._of_lower(job) else None

    def _of_lower(self, job: JobInfo) -> list[_Nominated]:
        """Return the nominated tasks of other jobs whose room this job may use because its priority is higher."""
        state = self._state
        waiting = self._waiting_of(job)
        highest = int(state.tasks.priority[waiting].max()) if len(waiting) else np.iinfo(np.int64).min
        # A job that has its minimum uses no room of a plan that was made for another job.
        if highest <= self._lowest or not job.missing():
            return []
        preemptors = {job.row, *self._evictions.preemptors(job).tolist()}
        lower = (one for one in self._nominated if one.priority < highest and one.task in self._reserved)
        return [one for one in lower if one.job not in preemptors]

    @contextmanager
    def _opened(self, nominated: list[_Nominated]) -> Iterator[None]:
        opened = [one for one in nominated if one.task in self._reserved]  # not what is open already
        before = self._room_on(opened)
        for one in opened:
            self._release(one)
        try:
            yield
        finally:
            self._close(opened)
            status, node = self._state.tasks.status, self._state.tasks.node
            elsewhere = any(status[one.task] != TaskStatus.PENDING and node[one.task] != one.node for one in opened)
            self.given_up += elsewhere or bool((self._room_on(opened) > before + EPSILON).any())

    def _room_on(self, nominated: list[_Nominated]) -> Floats:
        """Return what is idle now and once all is released on the nodes of these tasks, (2 * n_resources, n)."""
        view = self._state.nodes.rows_view(np.array([one.node for one in nominated], dtype=np.intp))
        return np.concatenate((view.idle, view.future_idle))

    def _waiting_of(self, job: JobInfo) -> Rows:
        """Return the tasks of a job that were pending when the session opened and are not backing off, shape (n,)."""
        rows = self._state.rows_of_job(job.row)
        return rows[self._pending_at_open[rows]]

    def restore(self) -> None:
        """Reserve room again for tasks that wait again because their plan was withdrawn."""
        self._close([one for one in self._nominated if one.task not in self._reserved])

    def _close(self, nominated: list[_Nominated]) -> None:
        for one in nominated:
            if self._state.tasks.status[one.task] == TaskStatus.PENDING:
                self._reserve(one)

    def _releases(self, node: int) -> bool:
        return bool(self._state.nodes.releasing[:, node].any())

    def _lasts(self, task: int, releasing: bool) -> bool:
        """Say whether a nomination is still valid; withdraw it if it is ours and has expired.

        ``releasing`` says whether its node has releasing resources.
        """
        state = self._state
        record = state.tasks.record(task)
        if record.foreign or not record.nominated_by_us:
            return True
        known = state.memory.nominations.get(record.uid)
        since = state.now
        if known is not None and known.node == record.nominated and not releasing:
            since = known.since
        if state.now - since > PATIENCE_S:
            state.emit((Nominate(record.ref, ""),))
            return False
        self.since[record.uid] = Nomination(record.nominated, since)
        return True

    def _reserve(self, one: _Nominated) -> None:
        state, n = self._state, len(self._state.resources)
        request = state.task_of(int(state.tasks.shape[one.task])).request
        column = state.nodes.block[:, one.node]
        idle = np.maximum(layout.section(column[:, None], layout.IDLE, n)[:, 0], 0.0)
        now = np.minimum(request, idle)
        delta = np.zeros(len(column))
        delta[layout.IDLE * n : (layout.IDLE + 1) * n] = -now
        delta[layout.PIPELINED * n : (layout.PIPELINED + 1) * n] = request - now
        self._reserved[one.task] = delta
        self._add(one, delta, 1)

    def _release(self, one: _Nominated) -> None:
        self._add(one, -self._reserved.pop(one.task), -1)

    def _will_fit(self, one: _Nominated) -> bool:
        """Say whether a task is of one of our queues, and its node will have room for it besides what is reserved."""
        state, n = self._state, len(self._state.resources)
        if one.job < 0 or state.queue_of_job[one.job] < 0:
            return False
        column = state.nodes.block[:, one.node, None]
        idle, releasing, pipelined = (
            layout.section(column, which, n)[:, 0] for which in (layout.IDLE, layout.RELEASING, layout.PIPELINED)
        )
        request = state.task_of(int(state.tasks.shape[one.task])).request
        return bool((request <= idle + releasing - pipelined + EPSILON).all())

    def _add(self, one: _Nominated, delta: Floats, count: int) -> None:
        """Change a node outside the journal: a reservation belongs to no statement, so no rollback undoes it."""
        state, node, shape_id = self._state, one.node, int(self._state.tasks.shape[one.task])
        if one.task in self._fitting:
            self._by_queue[:, state.queue_of_job[one.job]] += count * state.task_of(shape_id).request
            self._promised = None
        state.nodes.block[:, node] += delta
        state.journal.touch(node)
        if state.topology_counts is not None:
            state.topology_counts.expected(shape_id, node, count)
        ports, taken = state.task_of(shape_id).shape.host_ports, state.nodes.ports
        if ports:
            taken.codes[node] = taken.with_more(node, ports) if count > 0 else taken.with_less(node, ports)
