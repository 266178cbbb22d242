"""Let pending jobs in: a job whose minimum the cluster could not give stays out and costs later actions nothing."""

import numpy as np

from volcano_py.framework.plugin import PluginFailed
from volcano_py.framework.session import Session
from volcano_py.framework.turns import QueueTurns
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import PodGroupPhase


def enqueue(ssn: Session) -> None:
    """Ask for every pending job, in order of queues and jobs, whether it may come in.

    A job without minResources is asked nothing but whether its queue is open. A job that is refused is not asked again
    in this session and does not hold up the next one.
    """
    rows = ssn.jobs.present()
    pending = rows[ssn.jobs.phase[rows] == PodGroupPhase.PENDING]
    for queue, row in QueueTurns(ssn, pending):
        job = ssn.job(row)
        if not queue.record.open:
            text = f'queue "{queue.name}" is {queue.record.state}, not Open: it takes no new job'
            ssn.blocked[row] = Reason("enqueue", "queue-not-open", text)
            continue
        try:
            admitted = job.record.min_resources is None or ssn.job_enqueueable(job)
        except PluginFailed as failure:
            ssn.report.failures.append(f"{failure}; PodGroup {job.key} waits for the next cycle")
            admitted = False
        if admitted:
            ssn.enqueue(row)
            ssn.report.jobs_enqueued += 1
    left_out = pending[ssn.jobs.phase[pending] == PodGroupPhase.PENDING]
    # A Python loop over the jobs that stay out: each is told why.
    for row in np.sort(left_out).tolist():
        text = f"PodGroup {ssn.jobs.record(row).key} waits to be enqueued: its minResources are not available"
        ssn.blocked.setdefault(row, Reason("enqueue", "not-enqueued", text))
