"""Handles on a job, a task or a queue of a session: a row number and the columns to read; nothing is copied."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from volcano_py.framework.retired import add_old_names
from volcano_py.model.arrays import Floats
from volcano_py.model.objects import JobKey, JobRecord, QueueRecord
from volcano_py.model.resources import PODS_ROW, Amounts, FitTest
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import (
    READY_STATUSES,
    SCHEDULED_STATUSES,
    PodGroupPhase,
    TaskStatus,
)
from volcano_py.snapshot.columns import JobColumns

_PIPELINED = TaskStatus.PIPELINED


@dataclass(eq=False)
class TaskInfo:
    """What predicates, scores and queues see of a task: the same for all tasks of one equivalence class.

    A class is a shape, unless a plugin tells tasks of one shape apart (`framework.state.equivalence`).
    """

    shape: Shape
    shape_id: int
    request: Floats  # (n_resources,)
    nonzero: Floats  # (2,), cpu and memory with kube-scheduler's defaults for missing requests
    equivalence_keys: Mapping[str, int] = field(default_factory=dict)  # by plugin; keys that are 0 are left out

    def equivalence_key(self, plugin: str) -> int:
        """Return the key that a plugin gave to tasks of this class, 0 for none."""
        return self.equivalence_keys.get(plugin, 0)

    @cached_property
    def fit(self) -> FitTest:
        """Compares this request with the resources of nodes."""
        return FitTest(self.request)

    @cached_property
    def amounts(self) -> Amounts:
        """The request, to be added to columns of nodes: (n_resources, ...)."""
        return Amounts(self.request)

    @cached_property
    def nonzero_amounts(self) -> Amounts:
        """The same for ``nonzero``: (2, ...)."""
        return Amounts(self.nonzero)

    @cached_property
    def asked(self) -> tuple[tuple[int, float], ...]:
        """Resource row and amount of every requested resource except pods."""
        rows = [row for row in np.flatnonzero(self.request > 0).tolist() if row != PODS_ROW]
        return tuple((row, float(self.request[row])) for row in rows)


add_old_names(TaskInfo, {"mark": "equivalence_key", "marks": "equivalence_keys"})


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """A queue."""

    record: QueueRecord
    row: int = -1  # its place among all queues in order of names

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name


CountRoles = Callable[[int, tuple[TaskStatus, ...], bool], dict[str, int]]
"""Returns the number of tasks of a job (row) by role, in some statuses and, if asked for, pending best-effort ones."""


class JobInfo:
    """A job: the gang's rule and how far it has come in this session. Names follow Volcano's JobInfo."""

    __slots__ = ("_count_roles", "_jobs", "record", "row")

    def __init__(self, jobs: JobColumns, row: int, count_roles: CountRoles) -> None:
        """Take the columns of jobs, the row of this job, and a function that counts the tasks of a job by role."""
        self._jobs = jobs
        self._count_roles = count_roles
        self.row = row
        self.record: JobRecord = jobs.record(row)

    @property
    def key(self) -> JobKey:
        """Namespace and name."""
        return self.record.key

    @property
    def min_available(self) -> int:
        """The size of the gang."""
        return self.record.min_available

    @property
    def phase(self) -> PodGroupPhase:
        """The phase of the PodGroup as this session has it."""
        return PodGroupPhase(int(self._jobs.phase[self.row]))

    def count(self, status: TaskStatus) -> int:
        """Number of tasks in a status."""
        return int(self._jobs.counts[status, self.row])

    @property
    def counts(self) -> Floats:
        """Number of tasks by status, shape (N_STATUSES,)."""
        return self._jobs.counts[:, self.row]

    @property
    def n_tasks(self) -> int:
        """Number of tasks of any status."""
        return int(sum(self.counts.tolist()))  # for ten numbers a list is faster than an array

    @property
    def ready_count(self) -> int:
        """Tasks that count towards the minimum: allocated or succeeded."""
        counts = self.counts.tolist()
        return int(sum([counts[status] for status in READY_STATUSES]))

    @property
    def valid_count(self) -> int:
        """Tasks that count towards the minimum now or may do so later."""
        return int(self._jobs.valid[self.row])

    @property
    def scheduled_count(self) -> int:
        """Tasks that have been scheduled."""
        counts = self.counts.tolist()
        return int(sum([counts[status] for status in SCHEDULED_STATUSES]))

    @property
    def is_pending(self) -> bool:
        """Whether the PodGroup still waits to be enqueued."""
        return self.phase is PodGroupPhase.PENDING

    def missing(self) -> int:
        """How many more tasks the gang needs to be ready: ready + pending best effort >= min_available."""
        return max(0, self.record.min_available - int(self._jobs.held[self.row]))

    def is_ready(self) -> bool:
        """Whether the minimum is met."""
        return self.missing() == 0

    def is_pipelined(self) -> bool:
        """Whether the minimum is met once promised resources are free."""
        return self.missing() <= self.count(_PIPELINED)

    @property
    def task_min_total(self) -> int:
        """Sum of the minimums of the roles."""
        return sum(self.record.task_min_available.values())

    def roles_short(self, statuses: tuple[TaskStatus, ...], best_effort: bool) -> list[tuple[str, int, int]]:
        """Return (role, tasks that count, minimum) of every role below its minimum.

        This counts tasks in the given statuses and, with ``best_effort``, pending tasks that request nothing.
        """
        minimums = self.record.role_rule
        if not minimums:
            return []
        counted = self.role_counts(statuses, best_effort)
        return [
            (role, counted.get(role, 0), minimum)
            for role, minimum in sorted(minimums.items())
            if counted.get(role, 0) < minimum
        ]

    def role_counts(self, statuses: tuple[TaskStatus, ...], best_effort: bool = False) -> dict[str, int]:
        """Return the number of tasks by role in these statuses and, with ``best_effort``, pending best-effort ones."""
        return self._count_roles(self.row, statuses, best_effort)

    def worth_continuing(self, failed_roles: frozenset[str]) -> bool:
        """Say whether other tasks are worth trying after these roles failed (Volcano: NeedContinueAllocating).

        If every task is needed: no. With a rule per role: no, if a failed role is below its minimum. Otherwise: yes, as
        long as tasks of roles that did not fail could still complete the minimum.
        """
        if self.min_available >= self.n_tasks:
            return False
        if self.min_available < self.task_min_total:
            pending = self.role_counts((TaskStatus.PENDING,))
            untried = sum(count for role, count in pending.items() if role not in failed_roles)
            return self.ready_count + untried >= self.min_available
        ready = self.role_counts(READY_STATUSES, best_effort=True) if self.record.task_min_available else {}
        return all(ready.get(role, 0) >= self.record.task_min_available.get(role, 0) for role in failed_roles)
