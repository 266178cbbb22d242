"""Let pending jobs in: a job whose minimum the cluster could not give stays out and costs later actions nothing.

A job without minResources is asked nothing but whether its queue is open. A job that is refused is not asked again in
the session and does not hold up the next one, unless its queue serves strictly in order (dequeueStrategy fifo); its
users get an event, once for each new reason (in Volcano one for every session, and fifo has no effect there).
"""

from volcano_py.api import keys
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import PodGroupPhase


def enqueue(ssn: Session) -> None:
    """Ask for every pending job, in order of queues and jobs, whether it may come in."""
    rows = ssn.state.jobs.present()
    pending = rows[ssn.state.jobs.phase[rows] == PodGroupPhase.PENDING]
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


def _refusal(ssn: Session, queue: QueueInfo, job: JobInfo) -> Reason | None:
    if not queue.record.open:
        text = f'queue "{queue.name}" is {queue.record.state}, not Open: it takes no new job'
        if not job.n_tasks:  # else its tasks and its status say it
            ssn.announce_refusal(job.record, keys.EVENT_WARNING, text)
        return Reason("enqueue", "queue-not-open", text)
    if job.record.min_resources is None:
        return None
    refusal = ssn.hooks.enqueue_refusal(job)
    if refusal is not None:
        ssn.state.report.jobs_refused += 1
        ssn.announce_refusal(job.record, keys.EVENT_NORMAL, refusal.text)
    return refusal
