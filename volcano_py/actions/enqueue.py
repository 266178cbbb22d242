"""Enqueue pending jobs: a job whose minimum the cluster cannot provide stays pending and costs later actions nothing.

A job that was enqueued and whose PodGroup does not show it yet stays enqueued, like one whose PodGroup shows it.
Otherwise the next job in order could take its room, and pods may have been evicted for it.

For a job without minResources only its queue must be open. A job that is refused is not tried again in the session. It
does not stop the next job, unless its queue serves strictly in order (dequeueStrategy fifo). Its users get an event,
once for each new reason. (In Volcano they get one in every session, and fifo has no effect.)

The PodGroup of a workload without pods gets no turn (`framework.state.workload_groups`).

A job that plugins certainly refuse gets no turn. Plugins say so about many jobs at once (`Hooks.enqueue_refusals`).
Such a refusal lasts for the session, because each job that is enqueued leaves less room. The reason of a job without a
turn is that of the end of the action.
"""

from typing import Final

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.texts import is_on_its_way
from volcano_py.framework.state.workload_groups import without_pods
from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import PodGroupPhase

_PATIENCE: Final = 100
"""After so many turns in which jobs were refused, plugins are asked again which jobs need none; then twice as many."""


def enqueue(ssn: Session) -> None:
    """Run the action: find for every pending job, in scheduling order, whether it may be enqueued."""
    rows = ssn.state.jobs.present()
    pending = rows[ssn.state.jobs.phase[rows] == PodGroupPhase.PENDING]
    pending = np.setdiff1d(pending, without_pods(ssn.state.jobs, PodGroupPhase.PENDING), assume_unique=True)
    if ssn.state.outcome.enqueued_before:
        pending = pending[~np.array([_stays_enqueued(ssn, row) for row in pending.tolist()], dtype=bool)]
    refused = _CertainlyRefused(ssn, pending)
    order = SchedulingOrder(ssn.state, ssn.hooks, pending, skip_overused=False, futile=refused)
    for queue, row in order:
        enqueued = _turn(ssn, queue, row)
        refused.after_turn(row, enqueued=enqueued)
        if not enqueued and (stopped := order.stop_behind(queue, ssn.state.job(row), "enqueue")) is not None:
            ssn.state.outcome.blocked.update(dict.fromkeys(stopped[0], stopped[1]))
            ssn.announce_refusals(np.array(stopped[0], dtype=np.int64), [_behind(queue)] * len(stopped[0]))
    queues = list(ssn.state.queues.values())
    for row in refused.explain():
        _turn(ssn, queues[ssn.state.queue_of_job[row]], row)


class _CertainlyRefused:
    """The pending jobs that plugins certainly refuse, and their reasons."""

    def __init__(self, ssn: Session, pending: Rows) -> None:
        state = ssn.state
        # A queue that is not open has another reason. In a queue that serves in order, a refused turn stops other jobs.
        asked = [queue.record.open and not queue.record.fifo for queue in state.queues.values()]
        asked.append(False)  # for jobs of no queue
        self._ssn = ssn
        self._rows = pending[np.array(asked)[state.queue_of_job[pending]] & state.jobs.has_min_resources[pending]]
        self._found: Bools = np.zeros(len(state.jobs), dtype=bool)
        self._had_turn: Bools = np.zeros(len(state.jobs), dtype=bool)
        self._refused_turns, self._patience = 0, _PATIENCE
        self._enqueued = False  # whether a job was enqueued since plugins were asked
        self._ask()

    def known(self) -> Bools:
        """Return the jobs that need no turn, (n_jobs,)."""
        if self._enqueued and self._refused_turns >= self._patience:
            self._ask()
            self._refused_turns, self._patience = 0, self._patience * 2
        return self._found

    def includes(self, row: int) -> bool:
        """Say whether a job needs no turn."""
        return bool(self._found[row])

    def _ask(self) -> None:
        """Ask plugins about all jobs that still wait for their turn."""
        rows = self._rows[~(self._had_turn | self._found)[self._rows]]
        if len(rows):
            places, _ = self._ssn.hooks.enqueue_refusals(rows)
            self._found[rows[places >= 0]] = True
        self._enqueued = False

    def after_turn(self, row: int, *, enqueued: bool) -> None:
        """Note that a job has had its turn."""
        self._had_turn[row] = True
        self._refused_turns += not enqueued
        self._enqueued |= enqueued

    def explain(self) -> list[int]:
        """Record why the jobs without a turn are refused. Return those that no plugin refuses any more.

        A plugin that keeps its promise leaves none of them.
        """
        rows, outcome = self._rows[self._found[self._rows]], self._ssn.state.outcome
        if not len(rows):
            return []
        places, reasons = self._ssn.hooks.enqueue_refusals(rows)
        found = [reasons[place] for place in places[places >= 0].tolist()]
        refused = rows[places >= 0]
        self._ssn.state.report.jobs_refused += len(refused)
        self._ssn.announce_refusals(refused, [reason.text for reason in found])
        for row, reason in zip(refused.tolist(), found, strict=True):  # a Python loop over the jobs that are refused
            outcome.blocked.setdefault(row, reason)
        return [int(row) for row in rows[places < 0]]


def _turn(ssn: Session, queue: QueueInfo, row: int) -> bool:
    """Enqueue a job if it may be enqueued, else record why not; say whether it is enqueued."""
    job, outcome = ssn.state.job(row), ssn.state.outcome
    try:
        refusal = _refusal(ssn, queue, job)
        if refusal is None:
            ssn.enqueue(row)
            ssn.hooks.job_enqueued(job)
            return True
    except PluginFailed as failure:
        ssn.state.report.jobs_refused += 1
        ssn.skip_job(job, failure)
        refusal = outcome.skipped[row]
    outcome.blocked.setdefault(row, refusal)
    return False


def _behind(queue: QueueInfo) -> str:
    """Return what the users of a job behind the first one are told; it names no job, so that it is told only once."""
    return f'queue "{queue.name}" serves in order (dequeueStrategy fifo), and a job before this one waits'


def _stays_enqueued(ssn: Session, row: int) -> bool:
    """Enqueue a job again whose phase was decided in the last cycle and is not visible yet; say whether it is one."""
    state = ssn.state
    known = state.jobs.record(row).key in state.outcome.enqueued_before
    if not known or not is_on_its_way(state.memory.texts.groups, state.jobs.rules.shown, row):
        return False
    ssn.enqueue(row)
    ssn.hooks.job_enqueued(state.job(row))
    return True


def _refusal(ssn: Session, queue: QueueInfo, job: JobInfo) -> Reason | None:
    if not queue.record.open:
        text = f'queue "{queue.name}" is {queue.record.state}, not Open: it takes no new job'
        if not job.n_tasks:  # otherwise its tasks and its status say it
            ssn.announce_refusal(job.record, keys.EVENT_WARNING, text)
        return Reason("enqueue", "queue-not-open", text)
    if job.record.min_resources is None:
        return None
    refusal = ssn.hooks.enqueue_refusal(job)
    if refusal is not None:
        ssn.state.report.jobs_refused += 1
        ssn.announce_refusal(job.record, keys.EVENT_NORMAL, refusal.text)
    return refusal
