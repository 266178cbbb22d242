"""Enqueue pending jobs: a job whose minimum the cluster cannot provide stays pending and costs later actions nothing.

A job that was enqueued and whose PodGroup does not show it yet stays enqueued, like one whose PodGroup shows it.
Otherwise the next job in order could take its room, and pods may have been evicted for it.

For a job without minResources only its queue must be open. A job that is refused is not tried again in the session. It
does not stop the next job, unless its queue serves strictly in order (dequeueStrategy fifo). Its users get an event,
once for each new reason. (In Volcano they get one in every session, and fifo has no effect.)
"""

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.texts import is_on_its_way
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import PodGroupPhase


def enqueue(ssn: Session) -> None:
    """Run the action: ask for every pending job, in scheduling order, whether it may be enqueued."""
    rows = ssn.state.jobs.present()
    pending = rows[ssn.state.jobs.phase[rows] == PodGroupPhase.PENDING]
    if ssn.state.outcome.enqueued_before:
        pending = pending[~np.array([_stays_enqueued(ssn, row) for row in pending.tolist()], dtype=bool)]
    order = SchedulingOrder(ssn.state, ssn.hooks, pending, skip_overused=False)
    for queue, row in order:
        job = ssn.state.job(row)
        try:
            refusal = _refusal(ssn, queue, job)
            if refusal is None:
                ssn.enqueue(row)
                ssn.hooks.job_enqueued(job)
                continue
        except PluginFailed as failure:
            ssn.state.report.jobs_refused += 1
            ssn.skip_job(job, failure)
            refusal = ssn.state.outcome.skipped[row]
        ssn.state.outcome.blocked.setdefault(row, refusal)
        stopped = order.stop_behind(queue, job, "enqueue")
        if stopped is not None:
            ssn.state.outcome.blocked.update(dict.fromkeys(stopped[0], stopped[1]))


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
