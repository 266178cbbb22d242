"""Place pending tasks, job by job, and commit complete gangs.

while a queue has a job: take the first job in scheduling order; place its tasks in order until it is ready;
    ready -> commit, and give the job back to place its other tasks, one at a time
    not ready, but would be once promised resources are free -> keep, uncommitted, for this session
    otherwise -> undo everything

Tasks that wait at the gate of their queue (`framework.placing.queue_admission`) go through it when their job is first
tried, as far as the queue may hold them. They are placed once the gate is removed.

If the configuration has no ``enqueue`` action, every pending job is enqueued first, even one without tasks: some
controllers create pods only for PodGroups in phase Inqueue.

Jobs that cannot get anything have no turn (`framework.placing.turns`).

A job that gets nothing does not stop the jobs behind it, unless its queue serves strictly in order (dequeueStrategy
fifo): then the others are not tried in this session. (In Volcano fifo has no effect.)
"""

from typing import Final

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.fit_errors import placeable
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.placing.task_loop import JobGoal
from volcano_py.framework.placing.turns import Turns
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.shape import Admission
from volcano_py.model.statuses import PodGroupPhase

_NOT_ENQUEUED: Final = PodGroupPhase.PENDING.value
_NOTHING: Final = np.zeros(0, dtype=np.intp)
_LATE: Final = Reason(
    "scheduler",
    "late-room",
    "room that was reserved for another PodGroup has just become free: the next cycle tries it",
)
_MANY: Final = 64  # jobs; fewer are not looked at all at once before their turns
_IN_VAIN: Final = 8  # turns in vain that cost as much as a look at all jobs
_FIRST_AHEAD: Final = 16  # jobs whose tasks are put in order at once
_MOST_AHEAD: Final = 4096


def allocate(ssn: Session) -> None:
    """Run the action."""
    if "enqueue" not in ssn.hooks.actions:  # wherever it is in the conf, it alone enqueues jobs
        _enqueue_all(ssn)
    usable = _usable(ssn)
    shapes = placeable(ssn.state, ssn.hooks, lambda shape: not shape.best_effort)
    _forget_refusals(ssn, shapes)
    at_gate = _at_gate(ssn, usable)
    turns = Turns(ssn.state, ssn.hooks, ssn.placement, ssn.task_loop, shapes, usable, ssn.topology.concerned)
    alike = ssn.admission is None  # otherwise what is open differs from job to job
    _Allocation(ssn, shapes, at_gate, turns if alike else None).run(turns.jobs())


class _Allocation:
    """One run of the action."""

    def __init__(self, ssn: Session, shapes: Bools, at_gate: dict[int, Rows], turns: Turns | None) -> None:
        self._ssn = ssn
        self._shapes = shapes
        self._at_gate = at_gate
        self._turns = turns  # None: every job has its turn, and the reasons are those of the turns
        self._skips = ssn.hooks.built_in
        self._left: dict[int, Rows] = {}  # what is still to be tried of jobs that had a turn
        self._ahead = _FIRST_AHEAD
        self._in_vain: list[int] = []  # jobs that had their turn in vain since the last look at all jobs
        self._moved = True  # whether any job got something since then
        self._served = np.zeros(len(ssn.state.jobs), dtype=bool)  # jobs that got something
        self._had_turn = np.zeros(len(ssn.state.jobs), dtype=bool)
        self._reserving: _BehindReservations | None = None

    def run(self, with_tasks: Bools) -> None:
        """Give every job its turn that may get something, of these (n_jobs,) and of those at the gate."""
        ssn = self._ssn
        tried = with_tasks.copy()
        tried[list(self._at_gate)] = True
        many = self._skips and np.count_nonzero(tried) > _MANY
        if ssn.nominated_room:
            if self._turns is not None and many:
                self._reserving = _BehindReservations(ssn, self._turns)
            else:
                self._turns = None
        elif self._turns is not None and many:
            tried &= self._look_at_all(self._turns, tried)
        rows = np.flatnonzero(tried)
        order = SchedulingOrder(ssn.state, ssn.hooks, rows, skip_overused=True, futile=self._reserving)
        for queue, row in order:
            self._turn(order, queue, row, with_tasks[row])
        if self._turns is not None:
            self._settle(self._turns, with_tasks)

    def _settle(self, turns: Turns, with_tasks: Bools) -> None:
        """Let the reasons of jobs that got nothing be those of the end, except of jobs that see room of their own."""
        ssn = self._ssn
        if self._reserving is not None:
            self._reserving.known()  # the last turn may have left room to others
            turns.in_vain(with_tasks & ~self._served & ~ssn.nominated_room.may_be_opened)
        else:
            self._note(turns)
        turns.settle()
        ssn.state.outcome.reasons = turns
        if self._reserving is not None:
            self._reserving.explain_late_hope(with_tasks & ~self._had_turn)

    def _turn(self, order: SchedulingOrder, queue: QueueInfo, row: int, places: bool) -> None:
        ssn = self._ssn
        job = ssn.state.job(row)
        self._had_turn[row] = True
        try:
            admitted = _admit(ssn, queue, job, self._at_gate.pop(row, None))
            try_job = _try_with_nominated_room if ssn.nominated_room else _try
            left, moved = try_job(ssn, queue, job, self._tasks(order, queue, row)) if places else (_NOTHING, admitted)
        except PluginFailed as failure:
            ssn.skip_job(job, failure)
            _stop_behind(ssn, order, queue, job)
            return
        self._moved |= moved
        self._served[row] |= moved
        if not moved:
            _stop_behind(ssn, order, queue, job)
        if len(left):
            self._left[row] = left
            order.give_back(queue, row)
        if not moved:
            self._had_nothing(order, row)  # after the job is back: queues without jobs are dropped

    def _tasks(self, order: SchedulingOrder, queue: QueueInfo, row: int) -> Rows:
        """Return the tasks to place, in task order; those of the next jobs are put in order together with them."""
        left = self._left.pop(row, None)
        if left is not None:
            return left
        pending = self._ssn.hooks.pending
        if not pending.prepared(row):
            pending.prepare(np.append(order.following(queue, self._ahead), row))
            self._ahead = min(2 * self._ahead, _MOST_AHEAD)
        return pending.of_shapes(self._shapes, row)

    def _had_nothing(self, order: SchedulingOrder, row: int) -> None:
        """Note a turn in vain; after some of them, drop all jobs from the order that will get nothing."""
        turns = self._turns
        if turns is None:
            return
        self._in_vain.append(row)
        if self._skips and self._moved and len(self._in_vain) >= _IN_VAIN:
            if self._reserving is not None:
                self._moved = False
                self._in_vain.clear()
                self._reserving.look_again()
                return
            self._note(turns)
            order.keep(self._look_at_all(turns, turns.jobs()))

    def _look_at_all(self, turns: Turns, jobs: Bools) -> Bools:
        """Return which of these jobs may get something, and note the others."""
        self._moved = False
        possible = turns.possible()
        turns.in_vain(jobs & ~possible)
        return possible

    def _note(self, turns: Turns) -> None:
        mask = np.zeros(len(self._ssn.state.jobs), dtype=bool)
        mask[self._in_vain] = True
        turns.in_vain(mask)
        self._in_vain.clear()


class _BehindReservations:
    """The jobs that would get nothing at their turn while room is nominated (`scheduling_order.Futile`).

    Room that is open to a job is closed again after its turn, so a no stays a no for the jobs to which no room is open,
    until somebody takes room elsewhere than where it was reserved. Then all jobs are looked at again.
    """

    def __init__(self, ssn: Session, turns: Turns) -> None:
        self._ssn = ssn
        self._turns = turns
        self._given_up = ssn.nominated_room.given_up
        self._known = self._look()

    def _look(self) -> Bools:
        return self._turns.jobs() & ~self._turns.possible() & ~self._ssn.nominated_room.may_be_opened

    def look_again(self) -> None:
        """Look at all jobs: some have got something."""
        self._known = self._look()

    def known(self) -> Bools:
        """Return these jobs, (n_jobs,)."""
        if self._given_up != self._ssn.nominated_room.given_up:
            self._given_up = self._ssn.nominated_room.given_up
            self._turns.begin_again()
            self.look_again()
        return self._known

    def includes(self, row: int) -> bool:
        return bool(self.known()[row])

    def explain_late_hope(self, without_turn: Bools) -> None:
        """Record why jobs (n_jobs,) got nothing whose tasks would find a node only since their turn."""
        state = self._ssn.state
        late = without_turn & ~self._turns.settled() & ~self._ssn.nominated_room.may_be_opened
        # A Python loop over these jobs: nearly always there are none.
        for row in np.flatnonzero(late).tolist():
            if state.jobs.record(row).queue not in state.outcome.queue_limits:
                shapes = np.unique(state.tasks.shape[self._ssn.hooks.pending.of(row)]).tolist()
                state.outcome.rejections[row] = dict.fromkeys(shapes, Rejection(len(state.nodes), blocked=_LATE))


def _stop_behind(ssn: Session, order: SchedulingOrder, queue: QueueInfo, job: JobInfo) -> None:
    stopped = order.stop_behind(queue, job, "allocate")
    if stopped is not None:
        ssn.state.outcome.queue_limits[queue.name] = stopped[1]


def _enqueue_all(ssn: Session) -> None:
    rows = ssn.state.jobs.present()
    # A Python loop over the jobs that are pending: each is enqueued by name.
    for row in rows[ssn.state.jobs.phase[rows] == PodGroupPhase.PENDING].tolist():
        if row not in ssn.state.outcome.blocked:
            ssn.enqueue(row)


def _forget_refusals(ssn: Session, shapes: Bools) -> None:
    """Forget what an earlier allocate of this cycle refused to tasks of these shapes: evictions may have made room."""
    rejections = ssn.state.outcome.rejections
    # A Python loop over the jobs that got less than they want from an earlier action; nearly always there is none.
    for row, found in rejections.items():
        rejections[row] = {shape_id: why for shape_id, why in found.items() if not shapes[shape_id]}


def _usable(ssn: Session) -> Rows:
    """Return the rows of the jobs that have pending tasks and may be scheduled now."""
    state = ssn.state
    usable = (ssn.hooks.pending.counts() > 0) & state.jobs.rules.present & (state.jobs.phase != _NOT_ENQUEUED)
    usable[list(state.outcome.blocked)] = False
    # A Python loop over the jobs that may be invalid.
    for row in np.flatnonzero(usable & ~ssn.hooks.surely_valid()).tolist():
        refusal = ssn.hooks.job_valid(state.job(row))
        if refusal is not None:
            usable[row] = False
            state.outcome.blocked[row] = refusal
    return np.flatnonzero(usable)


def _at_gate(ssn: Session, usable: Rows) -> dict[int, Rows]:
    """Return the tasks that wait at the gate of their queue and for nothing else, by row of the job."""
    if ssn.admission is None:
        return {}
    waits = ssn.hooks.pending.shapes(
        lambda shape: shape.admission is Admission.AT_GATE and not shape.gates and not shape.unsupported
    )
    found = {row: ssn.admission.waiting(tasks) for row, tasks in ssn.hooks.pending.only(waits, usable).items()}
    return {row: tasks for row, tasks in found.items() if len(tasks)}


def _admit(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows | None) -> bool:
    """Let tasks through the gate of their queue, and record why the others wait; say whether any went through."""
    if ssn.admission is None or tasks is None:
        return False
    refused = ssn.admission.admit(queue, job, tasks)
    whole = sum(refused.values()) == len(tasks)
    for shape_id in refused:
        lacking = tasks if whole else tasks[ssn.state.tasks.shape[tasks] == shape_id]
        rejection = ssn.task_loop.over_limit(queue, shape_id, lacking[: max(1, ssn.hooks.missing(job)) if whole else 1])
        ssn.state.outcome.rejections.setdefault(job.row, {})[shape_id] = rejection
    return not whole


def _try_with_nominated_room(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> tuple[Rows, bool]:
    """Try a job first without the nominated room of tasks of lower priority; if it gets nothing, try with it."""
    own = ssn.nominated_room.open_own(job)
    if own is not None:
        refused = dict(ssn.state.outcome.rejections.get(job.row, {}))
        with own:
            left, moved = _try(ssn, queue, job, tasks, final=False)
        if moved:
            return left, moved
        ssn.state.outcome.rejections[job.row] = refused
    with ssn.nominated_room.open_to(job):
        return _try(ssn, queue, job, tasks)


def _try(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, *, final: bool = True) -> tuple[Rows, bool]:
    """Place a job once; return the tasks that are still to be tried, and whether it got or was promised anything.

    If this is not the ``final`` try, a job that is not ready is promised nothing.
    """
    statement = ssn.statement()
    warning = ssn.topology.not_enforced(job) if job.row in ssn.topology.concerned else ""
    try:
        left = _place_nominated(ssn, statement, queue, job, tasks) if ssn.nominated_room else tasks
        ready = len(left) < len(tasks) and ssn.hooks.missing(job) == 0
        if not ready:
            left, ready = _place_until_ready(ssn, statement, queue, job, left)
        keep = ready or (final and ssn.hooks.job_pipelined(job))
    except PluginFailed:
        statement.discard()
        raise
    if not keep:
        if statement and final:
            ssn.state.report.jobs_discarded += 1
        statement.discard()
        return left[:0], False
    if not ready:
        return left[:0], bool(statement)
    moved = bool(statement)
    placed = statement.commit()
    if warning:
        ssn.warn(job.record, warning)
    ssn.state.report.tasks_placed += placed
    ssn.state.report.jobs_committed += bool(placed)
    return left, moved


def _place_nominated(ssn: Session, statement: Statement, queue: QueueInfo, job: JobInfo, tasks: Rows) -> Rows:
    """Place tasks on their nominated nodes, unless these are too far apart by now; return the other tasks."""
    before = statement.checkpoint()
    left = ssn.nominated_nodes.place_first(statement, queue, job, tasks)
    if ssn.topology.limited(job) and not ssn.topology.holds(job):
        statement.rollback(before)
        return tasks
    return left


def _place_until_ready(
    ssn: Session, statement: Statement, queue: QueueInfo, job: JobInfo, tasks: Rows
) -> tuple[Rows, bool]:
    """Place tasks in order until the job is ready or no task is worth trying.

    Return the tasks that are still to be tried, and whether the job is ready.
    """
    if job.row in ssn.topology.concerned and ssn.topology.applies(job):
        return ssn.topology.place(statement, queue, job, tasks)
    return ssn.task_loop.run(statement, queue, job, tasks, JobGoal(ssn.hooks, job), ssn.placement)
