"""The state of a session: columns, journal, handles of jobs and tasks, memory, report. It knows no plugin.

Plugins get it when a session opens. Cluster state changes only through a `Statement`, and every change can be undone.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.retired import add_old_names
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.equivalence import EquivalenceClasses
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.outcome import Outcome
from volcano_py.framework.state.queue_accounts import Accounts
from volcano_py.framework.state.report import CycleReport
from volcano_py.framework.state.roles import counting
from volcano_py.framework.state.session_volumes import NEED, SessionVolumes
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.framework.state.sub_groups import JobSubGroups
from volcano_py.framework.state.topology_counts import TopologyCounts
from volcano_py.framework.state.workload_groups import withdraw
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.decisions import Emit
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import NodeColumns, Snapshot
from volcano_py.snapshot.journal import Journal


class Coming(Protocol):
    """What queues will hold in addition to what they hold now."""

    def before(self, task: TaskInfo | None) -> Floats | None:
        """Return all that queues will additionally hold before a task, or a job (None), gets anything.

        Shape (n_resources, n_queues); None for nothing. Counted are the requests of tasks for which room is reserved
        on a node (`NominatedRoom`), and of waiting tasks that went through the gate of their queue. The latter do not
        come before a task that itself went through.
        """

    def nominated(self) -> Floats | None:
        """Return what of it is due to tasks for which room is reserved on a node, (n_resources, n_queues)."""


class _Nothing:
    def before(self, task: TaskInfo | None) -> Floats | None:
        return None

    def nominated(self) -> Floats | None:
        return None


class State:
    """The state of one session."""

    def __init__(
        self, snapshot: Snapshot, clock: CycleClock, memory: Memory, emit: Emit, static_filters: StaticFilterCache
    ) -> None:
        """Take a snapshot, which the session changes, and the receiver of decisions."""
        self.resources = snapshot.resources
        self.nodes = snapshot.nodes
        self.tasks = snapshot.tasks
        self.jobs = snapshot.jobs
        withdraw(self.jobs)
        self.queues = {name: QueueInfo(record, row) for row, (name, record) in enumerate(snapshot.queues.items())}
        self.facts = snapshot.facts
        self.loads = snapshot.loads
        self.domains = snapshot.domains
        """The HyperNodes of the cluster as domains of nodes."""
        self.clock = clock
        self.memory = memory
        self.emit = emit
        self.journal = Journal()
        self.report = CycleReport()
        self.classes = EquivalenceClasses(snapshot)
        self.task_of = self.classes.task_of
        """Returns what predicates, scores and queues see of a task of a class (shape id)."""
        self.accounts = Accounts(tuple(queue.record for queue in self.queues.values()), self.jobs, self.journal)
        self.outcome = Outcome(memory, len(self.tasks.records), len(self.jobs), snapshot.withheld)
        self.looks_ahead = bool(self.nodes.releasing.any())
        """Whether idle and future idle may differ: something is being released, or is promised."""
        self.coming: Coming = _Nothing()
        self.topology_counts: TopologyCounts | None = None
        """Pods by topology domain; None if no pod has terms about other pods. See `split_classes`."""
        self._has_inter_pod_terms = snapshot.has_inter_pod_terms
        self._static_filters = static_filters
        self.volumes: SessionVolumes | None = None
        """What volume claims need and get; None if no pod uses claims."""
        if snapshot.volumes is not None:
            self.volumes = SessionVolumes(
                snapshot.volumes, self.nodes, self.journal, static_filters.volume_reach, self.static_row
            )
        self._job_infos: dict[int, JobInfo] = {}
        self._sub_groups: dict[int, JobSubGroups] = {}

    @property
    def now(self) -> float:
        """The time of the cycle, seconds since the epoch."""
        return self.clock.now

    def split_classes(self, keys: Mapping[str, Ints]) -> None:
        """Split classes by the keys of plugins and the needs of claims, and begin to count pods by topology."""
        if self.volumes is not None:
            keys = {**keys, NEED: self.volumes.storage.need.astype(np.int64)}
        self.classes.split(self.tasks, keys)
        if self._has_inter_pod_terms:
            self.topology_counts = TopologyCounts(self.nodes, self.tasks, self.classes.shapes)

    def job(self, row: int) -> JobInfo:
        """Return a handle on a job that has a PodGroup."""
        found = self._job_infos.get(row)
        if found is None:
            found = self._job_infos[row] = JobInfo(self.jobs, row, self._count_roles)
        return found

    def sub_groups(self, job_row: int) -> JobSubGroups | None:
        """Return the sub-groups of a job, None if its PodGroup has no policies for them."""
        record = self.jobs.record(job_row)
        if not record.sub_group_policies:
            return None
        found = self._sub_groups.get(job_row)
        if found is None:
            found = self._sub_groups[job_row] = JobSubGroups(
                record,
                self.tasks,
                self.rows_of_job(job_row),
                lambda rows: np.asarray(self.classes.best_effort[self.tasks.shape[rows]]),
            )
        return found

    def rows_of_job(self, job_row: int) -> Rows:
        """Return the task rows of a job, whatever their status, shape (n_tasks,)."""
        order, bounds = self._tasks_by_job
        return order[bounds[job_row] : bounds[job_row + 1]]

    @cached_property
    def _tasks_by_job(self) -> tuple[Rows, Rows]:
        order = np.argsort(self.tasks.job, kind="stable")
        return order, np.searchsorted(self.tasks.job[order], np.arange(len(self.jobs) + 1))

    def _count_roles(self, job_row: int, statuses: tuple[TaskStatus, ...], best_effort: bool) -> dict[str, int]:
        rows = self.rows_of_job(job_row)
        rows = rows[counting(self.tasks, self.classes, rows, statuses, best_effort)]
        names = self.tasks.role_names
        counts = np.bincount(self.tasks.role[rows])
        present = np.flatnonzero(counts)
        return {names[role]: count for role, count in zip(present.tolist(), counts[present].tolist(), strict=True)}

    def jobs_short_of_roles(self, statuses: tuple[TaskStatus, ...], best_effort: bool) -> Bools:
        """Return which jobs have a role below its minimum, as `JobInfo.roles_short` says, shape (n_jobs,)."""
        rules = self.jobs.rules.role_minimums
        if not len(rules.jobs):
            return np.zeros(len(self.jobs), dtype=bool)
        rows = np.flatnonzero(self.tasks.job >= 0)
        rows = rows[counting(self.tasks, self.classes, rows, statuses, best_effort)]
        return rules.unmet(self.tasks.job[rows], self.tasks.role[rows], len(self.jobs))

    @cached_property
    def queue_of_job(self) -> Rows:
        """The row of each job's queue among the queues, -1 where there is none, shape (n_jobs,)."""
        known = np.array(
            [-1 if (queue := self.queues.get(name)) is None else queue.row for name in self.jobs.rules.queue_names],
            dtype=np.intp,
        )
        rules = self.jobs.rules
        of_job = np.full(len(self.jobs), -1, dtype=np.intp)
        of_job[rules.present] = known[rules.queue[rules.present]]
        return of_job

    @cached_property
    def total(self) -> Floats:
        """What all nodes together offer to pods, shape (n_resources,)."""
        total: Floats = self.nodes.allocatable.sum(axis=1)
        return total

    def static_row(self, key: Hashable, ask: Callable[[NodeColumns], NDArray[Any]]) -> NDArray[Any]:
        """Return answers that depend on node records only, one per node, kept over cycles (`StaticFilterCache.row`)."""
        return self._static_filters.row(key, self.nodes, ask)


@contextmanager
def without_kept_answers(state: State) -> Iterator[None]:
    """Within this, ask for all answers about nodes anew instead of using those of earlier cycles."""
    kept, state._static_filters = state._static_filters, StaticFilterCache()
    try:
        yield
    finally:
        state._static_filters = kept


add_old_names(
    State,
    {
        "attempts": "outcome.attempts",
        "conditions": "outcome.conditions",
        "has_queue_gates": "classes.queue_gates",
        "id": "memory.session_id",
        "neighbours": "topology_counts",
        "queue_limits": "outcome.queue_limits",
        "requests": "classes.requests",
        "shape_of": "classes.shape_of",
        "shapes": "classes.shapes",
        "times": "outcome.times",
        "track": "accounts.track",
        "track_queues": "accounts.track_queues",
        "utc_offset": "clock.utc_offset",
    },
)
