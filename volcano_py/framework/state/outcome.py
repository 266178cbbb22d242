"""The outcome of a session: why jobs and tasks wait, and what is written about them when the session closes.

Actions record the reasons. When the session closes, texts, conditions and events are made from them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.memory import Memory
from volcano_py.model.arrays import Bools, Codes, Rows
from volcano_py.model.objects import GroupCondition, JobKey
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.statuses import TaskStatus

_ALLOCATED: Final = TaskStatus.ALLOCATED.value  # of an enum, numpy looks up half a dozen attributes: 2 us


def _not_known(job: JobInfo) -> str:
    raise RuntimeError(f"only a session can say why PodGroup {job.key} waits; this state belongs to none")


class Partial(NamedTuple):
    """What would come of a turn of a gang that fits only in part."""

    places: Rows  # of the tasks that would have nodes, among those that a turn would try in task order, (n,)
    statuses: Codes  # of these tasks, (n,)
    nodes: Rows  # rows of their nodes, (n,)
    rejections: Mapping[int, Rejection]  # shape id -> why its other tasks would have none


class Reasons(Protocol):
    """The reasons of jobs that got nothing, as long as nobody has asked for them."""

    def explain(self, jobs: Bools) -> None:
        """Record the reasons of those of these jobs, (n_jobs,)."""

    def settled(self) -> Bools:
        """Return the jobs that have such reasons, (n_jobs,)."""

    def futile_now(self) -> Bools:
        """Return such jobs to which a turn would give nothing now, also of what is to become free, (n_jobs,)."""

    def of_shapes(self) -> Mapping[int, Rejection]:
        """Return why no node takes tasks of a shape, for the shapes of such jobs."""

    def full(self, jobs: Codes, shapes: Codes) -> Bools | None:
        """Return for tasks of such jobs whether their queue may hold no more of them; jobs and shapes are (n,)."""

    def with_room_since(self) -> Bools:
        """Return such jobs whose queue was full and is not any more: their reasons are those of now, (n_jobs,)."""

    def partial(self) -> Iterable[tuple[Rows, Partial]]:
        """Return, for such jobs that fit in part, what would come of their turns: the rows of jobs alike, and what."""

    def tasks_of(self, job_row: int) -> Rows:
        """Return the rows of the tasks that a turn of such a job would try, in task order."""


class _NoReasons:
    """No action has left out a job."""

    def __init__(self, n_jobs: int) -> None:
        self._n_jobs = n_jobs

    def explain(self, jobs: Bools) -> None:
        """Do nothing."""

    def settled(self) -> Bools:
        return np.zeros(self._n_jobs, dtype=bool)

    def futile_now(self) -> Bools:
        return np.zeros(self._n_jobs, dtype=bool)

    def of_shapes(self) -> Mapping[int, Rejection]:
        return {}

    def full(self, jobs: Codes, shapes: Codes) -> None:
        return None

    def with_room_since(self) -> Bools:
        return np.zeros(self._n_jobs, dtype=bool)

    def partial(self) -> Iterable[tuple[Rows, Partial]]:
        return ()

    def tasks_of(self, job_row: int) -> Rows:
        return np.zeros(0, dtype=np.intp)


class Outcome:
    """Rejections, conditions and events of one session, by job."""

    def __init__(self, memory: Memory, n_tasks: int, n_jobs: int, withheld: Mapping[JobKey, str]) -> None:
        """Take the memory, the numbers of rows, and the PodGroups that the snapshot withholds, with reasons."""
        self.withheld = withheld
        self.rejections: dict[int, dict[int, Rejection]] = {}
        """Job row -> shape id -> why its tasks found no node."""
        self.blocked: dict[int, Reason] = {}
        """Job row -> why it was not tried at all."""
        self.skipped: dict[int, Reason] = {}
        """Job row -> the plugin that failed when the job was tried."""
        self.queue_limits: dict[str, Reason] = {}
        """Queue -> why its other tasks were not tried."""
        self.refusals: dict[JobKey, str] = {}
        """Jobs that plugins refused to enqueue -> why."""
        self.announced: dict[JobKey, str] = {}
        """Texts of events about statuses that were not written yet when this session closed."""
        self.enqueued: set[JobKey] = set()
        self.enqueued_before = frozenset(memory.enqueued)
        self.conditions: dict[int, list[GroupCondition]] = {}
        """Job row -> conditions to upsert."""
        self.domains: dict[JobKey, dict[str, str]] = {}
        """Jobs that were placed by topology -> the domain of each part, by the part's name."""
        self.times = dict(memory.times)
        """Plugin -> when it last did its periodic work; the next cycle remembers it."""
        self.fit_error: Callable[[JobInfo], str] = _not_known
        """Returns why a job waits at present; the session sets it."""
        self.reasons: Reasons = _NoReasons(n_jobs)
        """The reasons of jobs that got nothing; allocate sets it."""
        self.changed: Bools = np.ones(n_jobs, dtype=bool)
        """Jobs about which something may be told when the session closes; `scheduler.telling` sets it, (n_jobs,)."""
        self._n_tasks = n_tasks
        # By task row, -1 without an attempt. Most sessions discard no statement and need neither column.
        self._attempt_status: Codes | None = None
        self._attempt_node: Rows | None = None

    def remember_attempts(self, tasks: Rows, statuses: TaskStatus | Codes, nodes: Rows) -> None:
        """Remember the statuses and nodes that tasks had when their statement was discarded."""
        if self._attempt_status is None or self._attempt_node is None:
            self._attempt_status = np.full(self._n_tasks, -1, dtype=np.int32)
            self._attempt_node = np.full(self._n_tasks, -1, dtype=np.intp)
        self._attempt_status[tasks] = statuses
        self._attempt_node[tasks] = nodes

    def forget_attempt(self, tasks: Rows) -> None:
        """Forget the attempts of tasks that are now committed."""
        if self._attempt_status is not None:
            self._attempt_status[tasks] = -1

    def attempt(self, task_row: int) -> tuple[TaskStatus, int] | None:
        """Return the status and node row that a task had in its last discarded statement, None if it had none."""
        if self._attempt_status is None or self._attempt_node is None:
            return None
        status = int(self._attempt_status[task_row])
        return None if status < 0 else (TaskStatus(status), int(self._attempt_node[task_row]))

    def attempted_rows(self) -> Rows:
        """Return the rows of all tasks that had a node in a discarded statement."""
        if self._attempt_status is None:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self._attempt_status >= 0)

    def attempted(self, tasks: Rows) -> Bools:
        """Return for each of these tasks whether it had a node in a discarded statement, shape (n_tasks,)."""
        if self._attempt_status is None:
            return np.zeros(len(tasks), dtype=bool)
        return np.asarray(self._attempt_status[tasks] >= 0)

    def attempts(self, tasks: Rows) -> int:
        """Return how many of these tasks would have been allocated if their job had been complete."""
        if self._attempt_status is None:
            return 0
        return int(np.count_nonzero(self._attempt_status[tasks] == _ALLOCATED))
