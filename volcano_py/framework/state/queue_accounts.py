"""Queues as columns: what each queue holds in this session, kept up to date by every statement and its undo.

Rows are queues in order of their names. Sums over the jobs of a queue come from the job columns. So a plugin states its
rule as arithmetic over arrays of shape (n_resources, n_queues).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import QueueRecord
from volcano_py.snapshot.columns import JobColumns
from volcano_py.snapshot.journal import Journal


class JobAccounts(Protocol):
    """An account of what jobs hold: every statement updates it (`Accounts.track`)."""

    def add(self, journal: Journal, job_row: int, amount: Floats) -> None:
        """Count ``amount`` (n_resources,) more for a job, less where it is negative; change numbers by the journal."""


class JobSums:
    """What groups of jobs hold; a job may be in several groups, or in none."""

    __slots__ = ("rows_of_job", "taken")

    def __init__(self, rows_of_job: Sequence[Rows], n_groups: int, jobs: JobColumns) -> None:
        """Take the rows of the groups of every job, each row once."""
        self.rows_of_job = rows_of_job
        counts = [len(rows) for rows in rows_of_job]
        of_entry = np.repeat(np.arange(len(jobs)), counts)
        groups = np.concatenate(rows_of_job) if rows_of_job else np.zeros(0, dtype=np.intp)
        sums = [np.bincount(groups, weights=row[of_entry], minlength=n_groups) for row in jobs.taken]
        self.taken = np.array(sums, dtype=float).reshape(len(jobs.taken), n_groups)

    def add(self, journal: Journal, job_row: int, amount: Floats) -> None:
        """Count ``amount`` more for every group of a job."""
        rows = self.rows_of_job[job_row]
        if len(rows):
            journal.add(self.taken, rows, amount[:, None])


class JobStamp:
    """A number for the present state of jobs: a result computed under a number is valid while the number is the same.

    Every change sets a new number, and an undo restores the number from before.
    """

    __slots__ = ("_changes", "_number")

    def __init__(self) -> None:
        self._changes: list[tuple[int, int]] = [(0, -1)]  # by number: the number before, and the job that changed
        self._number = np.zeros(1, dtype=np.int64)

    @property
    def value(self) -> int:
        """The number now."""
        return int(self._number[0])

    def changed_since(self, number: int) -> Rows:
        """Return the rows of jobs that may have changed since an earlier number, each once, ascending.

        These are the jobs of all changes between the last common state and either number. A later change always has
        the greater number.
        """
        one, other, rows = self.value, number, set()
        while one != other:
            one, other = max(one, other), min(one, other)
            one, row = self._changes[one]
            rows.add(row)
        return np.array(sorted(rows), dtype=np.intp)

    def add(self, journal: Journal, job_row: int, amount: Floats) -> None:
        """Note that a job has changed."""
        self._changes.append((self.value, job_row))
        journal.replace(self._number, 0, len(self._changes) - 1)


class QueueColumns:
    """What queues hold, and which jobs belong to them."""

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

    def rows_of_jobs(self, jobs: Rows) -> Rows:
        """Return the rows of the queues of these jobs, (n,); -1 without a PodGroup or its queue."""
        return self._of_job[jobs]

    def add(self, journal: Journal, job_row: int, amount: Floats) -> None:
        """Count ``amount`` more for the queue of a job."""
        row = self.row_of_job[job_row]
        if row >= 0:
            journal.add(self.taken, row, amount)

    def sums(self, amounts: Floats, counted: Bools | None = None) -> Floats:
        """Return amounts per job (n_rows, n_jobs), summed by queue, of all jobs or of those counted (n_jobs,)."""
        of_job = self._of_job if counted is None else np.where(counted, self._of_job, -1)
        bins = of_job + 1  # the first bin takes the jobs of no queue
        sums = [np.bincount(bins, weights=row, minlength=len(self) + 1)[1:] for row in amounts]
        return np.array(sums, dtype=float).reshape(len(amounts), len(self))

    def with_jobs(self) -> Bools:
        """Return which queues have a job, shape (n_queues,)."""
        return np.bincount(self._of_job + 1, minlength=len(self) + 1)[1:] > 0


class Accounts:
    """The accounts of one session: every statement updates them."""

    __slots__ = ("_accounts", "_jobs", "_journal", "_records", "queues")

    def __init__(self, records: Sequence[QueueRecord], jobs: JobColumns, journal: Journal) -> None:
        self._records = records
        self._jobs = jobs
        self._journal = journal
        self._accounts: list[JobAccounts] = []
        self.queues: QueueColumns | None = None
        """What queues hold, kept up to date once a plugin has asked for it with `track_queues`."""

    def track_queues(self) -> QueueColumns:
        """Return what queues hold, kept up to date by every statement; call it when the session opens."""
        if self.queues is None:
            self.queues = QueueColumns(self._records, self._jobs)
            self.track(self.queues)
        return self.queues

    def track(self, accounts: JobAccounts) -> None:
        """Keep an account up to date with all that jobs take and give back; call it when the session opens."""
        if self._journal.checkpoint():
            raise RuntimeError("what jobs hold must be tracked from the opening of the session on")
        self._accounts.append(accounts)

    def add(self, job_row: int, amount: Floats) -> None:
        """Count ``amount`` (n_resources,) more, or less where it is negative, for a job in every account."""
        for accounts in self._accounts:
            accounts.add(self._journal, job_row, amount)
