"""Queues as columns: what each of them holds in this session, kept up to date by every statement and its undo.

Rows are queues in order of their names. Sums over a queue's jobs come from the job columns, so a plugin states its rule
as arithmetic over arrays of shape (n_resources, n_queues).
"""

from collections.abc import Sequence

import numpy as np

from volcano_py.model.objects import QueueRecord
from volcano_py.model.resources import Bools, Floats
from volcano_py.snapshot.columns import JobColumns


class QueueColumns:
    """What queues hold, and which jobs are theirs."""

    __slots__ = ("_of_job", "records", "row_of_job", "taken")

    def __init__(self, records: Sequence[QueueRecord], jobs: JobColumns) -> None:
        self.records = records
        rows = {record.name: row for row, record in enumerate(records)}
        known = np.array([rows.get(name, -1) for name in jobs.rules.queue_names], dtype=np.intp)
        self._of_job = np.full(len(jobs), -1, dtype=np.intp)
        present = jobs.present()
        self._of_job[present] = known[jobs.rules.queue[present]]
        self.row_of_job: list[int] = self._of_job.tolist()  # by job row; -1 without a PodGroup or its queue
        self.taken = self.sums(jobs.taken)  # (n_resources, n_queues), what tasks of the queue hold or are promised

    def __len__(self) -> int:
        return len(self.records)

    def sums(self, amounts: Floats, counted: Bools | None = None) -> Floats:
        """Return amounts per job (n_rows, n_jobs), summed by queue, of all jobs or of those counted (n_jobs,)."""
        of_job = self._of_job if counted is None else np.where(counted, self._of_job, -1)
        bins = of_job + 1  # the first bin takes the jobs of no queue
        sums = [np.bincount(bins, weights=row, minlength=len(self) + 1)[1:] for row in amounts]
        return np.array(sums, dtype=float).reshape(len(amounts), len(self))

    def with_jobs(self) -> Bools:
        """Say which queues have a job, shape (n_queues,)."""
        return np.bincount(self._of_job + 1, minlength=len(self) + 1)[1:] > 0
