"""What every queue holds when a cycle ends, for its status: pods that have a node, of the queue and of all below it.

A task counts in the queue of its job and in every queue above, whatever the configuration makes of parents (Volcano:
updateQueueStatus). A queue that has no place in the tree counts for itself.
"""

import numpy as np

from volcano_py.framework.session import Session
from volcano_py.framework.state.queue_accounts import QueueColumns
from volcano_py.model.queue_tree import QueueTree


def report_queues(ssn: Session) -> None:
    """Put what queues hold into the report, resources of which there is any."""
    records = [queue.record for queue in ssn.queues.values()]
    columns = ssn.queue_columns or QueueColumns(records, ssn.jobs)
    held = QueueTree.of(records).rolled_up(columns.sums(ssn.jobs.allocated))
    names = ssn.resources.names
    # A Python loop over queues and what they hold: it becomes text on the wire.
    ssn.report.queues_hold = {record.name: {} for record in records}
    for resource, row in np.argwhere(held > 0).tolist():
        ssn.report.queues_hold[records[row].name][names[resource]] = float(held[resource, row])
