"""What every queue holds when a cycle ends, for its status: the pods with a node, of the queue and of all below it.

A task counts in the queue of its job and in every queue above, even if the plugins ignore parents (Volcano:
updateQueueStatus). A queue that has no place in the tree counts alone.
"""

import numpy as np

from volcano_py.framework.session import Session
from volcano_py.framework.state.queue_accounts import QueueColumns
from volcano_py.model.queue_tree import QueueTree


def report_queues(ssn: Session) -> None:
    """Put what queues hold into the report, except resources with an amount of 0."""
    records = [queue.record for queue in ssn.state.queues.values()]
    columns = ssn.state.accounts.queues or QueueColumns(records, ssn.state.jobs)
    held = QueueTree.of(records).rolled_up(columns.sums(ssn.state.jobs.allocated))
    names = ssn.state.resources.names
    # A Python loop over queues and the resources they hold: both become text.
    ssn.state.report.queues_hold = {record.name: {} for record in records}
    for resource, row in np.argwhere(held > 0).tolist():
        ssn.state.report.queues_hold[records[row].name][names[resource]] = float(held[resource, row])
